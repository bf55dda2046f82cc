//! Write times and TTLs, of all rows and by columns; lists, which are appended to when a row is sent again.

use std::time::{Duration, Instant};

use marquetry_cluster::{CqlOptions, CqlTable, Rate};
use marquetry_testing::{Break, Proxy};
use scylla::value::CqlValue;

use crate::made::{Cell, Made, int, of_lists};
use crate::server::{KEYSPACE, Server};

pub(crate) fn all(server: &Server) {
    times_and_ttls_are_those_of_columns(server);
    a_ttl_is_that_of_all_rows(server);
    rows_are_not_sent_faster(server);
    errors_of_slow_loads_are_told_soon(server);
    lists_with_given_times_are_refused(server);
    lists_are_not_appended_to(server);
}

fn times_and_ttls_are_those_of_columns(server: &Server) {
    // The table has a column of the name of one of them, which is loaded as well.
    server.run("CREATE TABLE cluster_test.stamped (k int PRIMARY KEY, v int, at bigint)");
    let columns = [("k", "int"), ("v", "int"), ("at", "bigint"), ("seconds", "int")];
    let mut options = CqlOptions::default();
    (options.timestamp, options.ttl) = ("at".parse().unwrap(), Some("seconds".parse().unwrap()));
    let rows = [
        vec![int(1), int(1), Cell::Big(1000), int(5000)],
        vec![int(2), int(2), Cell::Big(2000), Cell::Null],
        vec![int(3), int(3), Cell::Big(3000), int(0)],
        // Older than the first.
        vec![int(1), int(9), Cell::Big(999), int(5000)],
    ];
    let mut table = CqlTable::new(server.address("stamped"), options.clone());
    assert_eq!(Made::new(&columns, rows).load(&mut table).1, Ok(4));
    let read = |k: i32| {
        let columns = "v, at, writetime(v) AS t, ttl(v) AS l";
        server.select(&format!("SELECT {columns} FROM cluster_test.stamped WHERE k = {k}")).remove(0)
    };
    let first = read(1);
    assert_eq!((&first["v"], &first["at"]), (&Some(CqlValue::Int(1)), &Some(CqlValue::BigInt(1000))));
    assert_eq!(first["t"], Some(CqlValue::BigInt(1000)));
    assert!(matches!(first["l"], Some(CqlValue::Int(4000..=5000))), "{first:?}");
    for k in [2, 3] {
        let row = read(k);
        assert_eq!((&row["t"], &row["l"]), (&Some(CqlValue::BigInt(i64::from(k) * 1000)), &None));
    }
    // What has no time is refused; what is not a column, before anything is sent.
    let mut table = CqlTable::new(server.address("stamped"), options.clone());
    let row = vec![int(4), int(1), Cell::Null, int(1)];
    let error = Made::new(&columns, [row]).load(&mut table).1.unwrap_err().to_string();
    assert_eq!(error, "the row's write time is null (column at, row 0, made 0)");
    (options.timestamp, options.ttl) = ("nowhere".parse().unwrap(), Some("never".parse().unwrap()));
    let mut table = CqlTable::new(server.address("stamped"), options);
    let error = Made::new(&columns, []).load(&mut table).1.unwrap_err().to_string();
    for name in ["nowhere", "never"] {
        assert!(error.contains(&format!("the rows have no column {name:?}")), "{error}");
    }
    assert_eq!(server.count("stamped"), 3);
}

fn a_ttl_is_that_of_all_rows(server: &Server) {
    server
        .run("CREATE TABLE cluster_test.expiring (k int PRIMARY KEY, v int) WITH default_time_to_live = 99");
    let columns = [("k", "int"), ("v", "int")];
    for (ttl, expected) in [("5000", 4000..=5000), ("0", 0..=0)] {
        let mut options = CqlOptions::default();
        options.ttl = Some(ttl.parse().unwrap());
        let mut table = CqlTable::new(server.address("expiring"), options);
        assert_eq!(Made::new(&columns, [vec![int(1), int(1)]]).load(&mut table).1, Ok(1));
        let read = match server.value("SELECT ttl(v) FROM cluster_test.expiring WHERE k = 1") {
            Some(CqlValue::Int(seconds)) => seconds,
            None => 0,
            other => panic!("{other:?}"),
        };
        assert!(expected.contains(&read), "{read}");
    }
}

fn rows_are_not_sent_faster(server: &Server) {
    server.run("CREATE TABLE cluster_test.slowly (k int PRIMARY KEY, v int)");
    let columns = [("k", "int"), ("v", "int")];
    for rate in ["1000", "16KB"] {
        let mut options = CqlOptions::default();
        options.rate = rate.parse::<Rate>().unwrap();
        let rows = (0..1500).map(|row| vec![int(row), int(row)]);
        let started = Instant::now();
        let mut table = CqlTable::new(server.address("slowly"), options);
        assert_eq!(Made::new(&columns, rows).load(&mut table).1, Ok(1500));
        let took = started.elapsed();
        assert!(took > Duration::from_millis(1300) && took < Duration::from_secs(8), "{took:?}");
    }
}

/// At twenty rows a second, a row that cannot be loaded is told when it comes, and not when hundreds of others are through.
fn errors_of_slow_loads_are_told_soon(server: &Server) {
    server.run("CREATE TABLE cluster_test.slow_and_wrong (k int PRIMARY KEY, v int)");
    let mut options = CqlOptions::default();
    options.rate = "20".parse().unwrap();
    let row = |row: i32| vec![if row == 10 { Cell::Null } else { int(row) }, int(row)];
    let started = Instant::now();
    let mut table = CqlTable::new(server.address("slow_and_wrong"), options);
    let error = Made::new(&[("k", "int"), ("v", "int")], (0..600).map(row)).load(&mut table).1.unwrap_err();
    assert!(error.to_string().contains("row 10"), "{error}");
    assert!(started.elapsed() < Duration::from_secs(8), "{:?}", started.elapsed());
    assert_eq!(server.count("slow_and_wrong"), 10);
}

/// A second load of the same rows would add the elements again.
fn lists_with_given_times_are_refused(server: &Server) {
    server.run("CREATE TABLE cluster_test.listed (k int PRIMARY KEY, v list<int>)");
    let mut options = CqlOptions::default();
    options.timestamp = "1000".parse().unwrap();
    // Without the list there is nothing to double.
    let rows = || Made::new(&[("k", "int")], [vec![int(100)]]);
    assert_eq!(rows().load(&mut CqlTable::new(server.address("listed"), options.clone())).1, Ok(1));
    let source = of_lists(10);
    let mut table = CqlTable::new(server.address("listed"), options.clone());
    let error = crate::made::load(&mut table, &source).1.unwrap_err();
    assert_eq!(error.detail(), Some(marquetry_base::Detail::AdmittedBy(&["lists_at_least_once"])), "{error}");
    assert!(error.to_string().contains("v is a list that is not frozen"), "{error}");
    assert_eq!(server.count("listed"), 1);
    options.lists_at_least_once = true;
    assert_eq!(crate::made::load(&mut CqlTable::new(server.address("listed"), options), &source).1, Ok(10));
}

/// The network breaks in the midst of a load of lists: rows that were sent twice have each element once.
fn lists_are_not_appended_to(server: &Server) {
    server.run("CREATE TABLE cluster_test.lists (k int PRIMARY KEY, v list<int>)");
    let source = of_lists(20_000);
    let proxy = Proxy::start(&server.at, 900_000, Break::Cut);
    let address = format!("cql://{}/{KEYSPACE}.lists", proxy.at).parse().unwrap();
    let mut table = CqlTable::new(address, CqlOptions::default());
    let (loaded, ended) = crate::made::load(&mut table, &source);
    assert_eq!(ended, Ok(20_000));
    assert!(loaded.retries > 0 && proxy.breaks() == 1, "{loaded:?}");
    let rows = server.select("SELECT k, v FROM cluster_test.lists");
    assert_eq!(rows.len(), 20_000);
    for row in rows {
        let Some(CqlValue::Int(key)) = row["k"] else { panic!("{row:?}") };
        let list = CqlValue::List(vec![CqlValue::Int(key), CqlValue::Int(key + 1)]);
        assert_eq!(row["v"], Some(list), "{key}");
    }
}
