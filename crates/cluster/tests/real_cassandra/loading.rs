//! Making tables and loading rows that are made here, one by one.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use marquetry_base::{Detail, ErrorKind};
use marquetry_cluster::{
    Cluster, ConnectOptions, CqlOptions, CqlTable, Created, Error, ROW_BYTES_MAX, TlsOptions, WriteTimes,
};
use marquetry_scylla::bridge::{MappingOptions, Nulls};
use marquetry_scylla::cql::{ColumnDef, CqlType, KeySpec, Name, Order, TableDef, TableName};
use marquetry_tables::{Cancel, CopyOptions, Destination, copy};
use marquetry_testing::{Break, Proxy};
use scylla::value::CqlValue;

use crate::made::{Cell, Made, int, load_watched, text};
use crate::server::{KEYSPACE, Server};

pub(crate) fn all(server: &Server) {
    tables_are_made_once(server);
    what_a_table_is_made_without_is_said(server);
    misfits_come_before_the_first_row(server);
    rows_that_no_server_takes(server);
    nulls_are_unset_or_tombstones(server);
    the_last_of_many_wins(server);
    the_largest_row_fits(server);
    trouble_stops_the_load(server);
    a_copy_that_is_cancelled_is_counted(server);
    nobody_waits_for_a_server_that_is_silent(server);
    a_broken_network_is_survived(server);
    wrong_addresses(server);
    only_nodes_of_a_datacenter(server);
}

/// A table that is there.
fn existing(server: &Server, table: &str) -> CqlTable {
    CqlTable::new(server.address(table), CqlOptions::default())
}

/// The cluster's own error behind a destination's.
fn cause(error: &marquetry_base::Error) -> &Error {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref());
    cause.unwrap_or_else(|| panic!("{error} has no cause"))
}

fn table(columns: &[(&str, &str)], clustering: &[(usize, Order)]) -> TableDef {
    let columns = columns
        .iter()
        .map(|(name, cql_type)| ColumnDef {
            name: Name::new(name).unwrap(),
            cql_type: CqlType::parse(cql_type).unwrap(),
            is_static: false,
        })
        .collect();
    TableDef {
        table: TableName::parse("no.matter").unwrap(),
        if_not_exists: false,
        columns,
        partition_key: vec![0],
        clustering: clustering.to_vec(),
        comment: Some("it's a comment".to_owned()),
    }
}

/// Options and indexes of the source's table that the new one does not have.
fn what_a_table_is_made_without_is_said(server: &Server) {
    let unknown = "options and indexes that the source's table may have: its statements (schema.cql, or marquetry.table.schema in a file)";
    let view = "CREATE MATERIALIZED VIEW ks.w AS SELECT k, v FROM ks.t WHERE k IS NOT NULL PRIMARY KEY (k) WITH gc_grace_seconds = 7;";
    let table = "CREATE TABLE ks.t (k int PRIMARY KEY, v int, w int) WITH gc_grace_seconds = 7 AND compression = {'enabled': 'false'};";
    for (statements, without) in [
        (view, format!("{unknown} do not make one table; a view's do not")),
        ("CREATE TABLE ks.t (", format!("{unknown} are not understood")),
        (table, "gc_grace_seconds = 7, which the source's table has, because its columns".to_owned()),
    ] {
        server.run("DROP TABLE IF EXISTS cluster_test.without");
        for (dry_run, made) in [(true, "would be made"), (false, "was made")] {
            let key = Some(KeySpec::parse("k").unwrap());
            let mut options = CqlOptions::create(MappingOptions { key, ..MappingOptions::default() });
            options.dry_run = dry_run;
            let mut table = CqlTable::new(server.address("without"), options);
            let rows = Made::new(&[("k", "int"), ("v", "int")], [vec![int(1), int(2)]]).made_by(statements);
            assert_eq!(rows.load(&mut table).1, Ok(1));
            let said = format!("the table cluster_test.without {made} without {without}");
            assert!(table.notes().iter().any(|note| note.starts_with(&said)), "{:?}", table.notes());
        }
    }
}

fn tables_are_made_once(server: &Server) {
    let connect = |address| Cluster::connect(address, &ConnectOptions::default()).unwrap();
    let cluster = connect(server.address("\"Order\""));
    assert_eq!(cluster.table().unwrap(), None);
    let wanted = table(
        &[("a", "int"), ("select", "text"), ("C c", "timestamp"), ("d", "decimal")],
        &[(2, Order::Descending)],
    );
    assert_eq!(cluster.create_table(&wanted, &[]).unwrap(), Created::New);
    let made = cluster.table().unwrap().unwrap();
    assert_eq!(made.table.to_string(), "cluster_test.\"Order\"");
    assert_eq!(cluster.create_table(&wanted, &[]).unwrap(), Created::AlreadyThere);
    assert_eq!(connect(server.address("\"Order\"")).create_table(&made, &[]).unwrap(), Created::AlreadyThere);
    let comment = server.value(
        "SELECT comment FROM system_schema.tables WHERE keyspace_name = 'cluster_test' AND table_name = 'Order'",
    );
    assert_eq!(comment, Some(CqlValue::Text("it's a comment".to_owned())));

    let error = |wanted: &TableDef| cluster.create_table(wanted, &[]).unwrap_err().to_string();
    let mut other = wanted.clone();
    other.columns[3].cql_type = CqlType::Double;
    let differs = |how: &str| {
        let table = "the table cluster_test.\"Order\" exists with a different definition";
        format!("{table}: {how}; drop it first, or choose another name for the table")
    };
    assert_eq!(error(&other), differs("d is decimal, expected double"));
    let mut other = wanted.clone();
    other.clustering[0].1 = Order::Ascending;
    assert_eq!(error(&other), differs("PRIMARY KEY is (a, \"C c\" DESC), expected (a, \"C c\")"));
    let mut other = wanted.clone();
    other.columns.pop();
    assert_eq!(error(&other), differs("extra column d"));
    other.columns[1].cql_type = CqlType::Int;
    other.clustering.clear();
    let all = "select is text, expected int; extra column d; \
               PRIMARY KEY is (a, \"C c\" DESC), expected (a)";
    assert_eq!(error(&other), differs(&all.replace("select", "\"select\"")));
    let mut other = wanted.clone();
    other.partition_key.clear();
    assert_eq!(error(&other), "the table has no partition key");

    let cluster = connect(format!("cql://{}/cluster_nowhere.t", server.at).parse().unwrap());
    let error = cluster.create_table(&wanted, &[]).unwrap_err();
    assert!(matches!(error, Error::NoKeyspace(_)), "{error}");
}

fn misfits_come_before_the_first_row(server: &Server) {
    server.run("CREATE TABLE cluster_test.misfit (k int, c text, v bigint, w int, PRIMARY KEY (k, c))");
    let row = || [vec![int(1), text("c"), Cell::Big(0)]];
    let error = |columns: &[(&str, &str)]| {
        let (loaded, ended) = Made::new(columns, []).load(&mut existing(server, "misfit"));
        assert_eq!(loaded.rows, 0);
        ended.unwrap_err().to_string()
    };
    let prefix = "the rows do not fit the table cluster_test.misfit:";
    assert_eq!(
        error(&[("k", "int"), ("c", "text"), ("V", "bigint")]),
        format!("{prefix} missing from the table: \"V\" (made)")
    );
    assert_eq!(
        error(&[("k", "int"), ("c", "text"), ("v", "blob")]),
        format!("{prefix} the table has bigint there, the values are blob (column v, made)")
    );
    assert_eq!(
        error(&[("k", "int")]),
        format!("{prefix} the rows have no column \"c\", which is in the table's primary key (made)")
    );
    // All at once.
    assert_eq!(
        error(&[("k", "bigint"), ("V", "bigint"), ("v", "bigint"), ("w", "blob")]),
        format!(
            "{prefix} missing from the table: \"V\"; the table has int there, the values are blob (column w); \
             the rows have no column \"c\", which is in the table's primary key (made)"
        )
    );
    assert_eq!(server.count("misfit"), 0);
    // A column of the table that the rows lack is no misfit.
    let mut table = existing(server, "misfit");
    let (loaded, ended) = Made::new(&[("k", "int"), ("c", "text"), ("v", "bigint")], row()).load(&mut table);
    assert_eq!((loaded.rows, loaded.bytes, loaded.retries), (1, 8 + 5 + 12, 0));
    assert_eq!(ended, Ok(1));
    // It is over.
    let error = table.begin(marquetry_tables::Source::table(&Made::new(&[("k", "int")], []))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);

    let mut nowhere = existing(server, "misfit2");
    let error = Made::new(&[("k", "int")], []).load(&mut nowhere).1.unwrap_err();
    assert_eq!(error.message(), "the cluster has no table cluster_test.misfit2");
    assert_eq!((error.kind(), error.detail()), (ErrorKind::Refused, Some(Detail::AdmittedBy(&["create"]))));
    assert!(matches!(cause(&error), Error::NoTable(_)));
    assert_eq!(error.place().object.as_deref(), Some(nowhere.name()));
    // A key is for a table that is created.
    let mut options = CqlOptions::default();
    options.mapping.key = Some(KeySpec::parse("k").unwrap());
    let mut table = CqlTable::new(server.address("misfit"), options);
    let error = Made::new(&[("k", "int")], []).load(&mut table).1.unwrap_err();
    assert_eq!((error.kind(), error.detail()), (ErrorKind::Misuse, Some(Detail::Option("key"))));
}

fn rows_that_no_server_takes(server: &Server) {
    server.run("CREATE TABLE cluster_test.refused (k text, c int, PRIMARY KEY (k, c))");
    let columns = [("c", "int"), ("k", "text")];
    let stopped = |bad: Vec<Cell>| {
        let good = |from: i32| (from..from + 3000).map(|row| vec![int(row), text("k")]);
        let rows = good(0).chain([bad]).chain(good(3000));
        let made = Made::new(&columns, rows).in_batches_of(5000);
        let (loaded, ended) = made.load(&mut existing(server, "refused"));
        // All rows before the bad one were loaded.
        assert_eq!(loaded.rows, 3000);
        ended.unwrap_err().to_string()
    };
    let null = "a column of the primary key is null";
    let place = |column: &str| format!("(column {column}, row 3000, made 0)");
    assert_eq!(stopped(vec![Cell::Null, text("k")]), format!("{null} {}", place("c")));
    assert_eq!(stopped(vec![int(1), Cell::Null]), format!("{null} {}", place("k")));
    assert_eq!(stopped(vec![int(1), text("")]), format!("the partition key is empty {}", place("k")));
    assert_eq!(server.count("refused"), 3000);
    // Keys of the greatest length are taken, and so is an empty clustering key.
    let rows = [vec![int(1), text(&"x".repeat(65_535))]];
    assert_eq!(Made::new(&columns, rows).load(&mut existing(server, "refused")).1, Ok(1));
    server.run("CREATE TABLE cluster_test.refused2 (k text, l text, c text, PRIMARY KEY ((k, l), c))");
    let rows = [vec![text(""), text(""), text("")]];
    let columns = [("k", "text"), ("l", "text"), ("c", "text")];
    assert_eq!(Made::new(&columns, rows).load(&mut existing(server, "refused2")).1, Ok(1));
    assert_eq!(server.count("refused2"), 1);
}

fn nulls_are_unset_or_tombstones(server: &Server) {
    server.run("CREATE TABLE cluster_test.nulls (k int PRIMARY KEY, v int)");
    let after = |nulls: Nulls| {
        server.run("INSERT INTO cluster_test.nulls (k, v) VALUES (1, 7)");
        let mut options = CqlOptions::default();
        options.mapping.nulls = nulls;
        let mut table = CqlTable::new(server.address("nulls"), options);
        Made::new(&[("k", "int"), ("v", "int")], [vec![int(1), Cell::Null]]).load(&mut table).1.unwrap();
        server.value("SELECT v FROM cluster_test.nulls WHERE k = 1")
    };
    assert_eq!(after(Nulls::Unset), Some(CqlValue::Int(7)));
    assert_eq!(after(Nulls::Null), None);
}

/// Rows with one key overtake each other in flight; the last of them must win all the same, and over earlier loads.
fn the_last_of_many_wins(server: &Server) {
    const ROWS: i32 = 30_000;
    const KEYS: i32 = 7;
    server.run("CREATE TABLE cluster_test.last (k int PRIMARY KEY, v int)");
    let columns = [("k", "int"), ("v", "int")];
    let mut options = CqlOptions::default();
    options.in_flight = NonZeroUsize::new(1000).unwrap();
    for sign in [1, -1] {
        let mut table = CqlTable::new(server.address("last"), options.clone());
        let rows = move |rows: std::ops::Range<i32>| {
            rows.map(move |row| vec![int(row % KEYS), int(row * sign)]).collect::<Vec<_>>()
        };
        // Pieces that are read side by side are rows in their order all the same.
        let source = Made::new(&columns, rows(0..20_000)).and(rows(20_000..ROWS)).shared();
        let mut told = Vec::new();
        let started = Instant::now();
        let (loaded, ended) = load_watched(&mut table, &source, &mut |written| told.push(written.rows));
        println!("{ROWS} rows in {:?}", started.elapsed());
        assert_eq!(ended, Ok(30_000));
        let said =
            "30000 rows were sent; they have 7 different keys: of rows with one key the last one is kept";
        assert_eq!(table.notes(), [said]);
        assert_eq!((loaded.rows, loaded.bytes), (30_000, 16 * 30_000));
        assert!(told.len() == 30 && told.is_sorted() && told[29] > 10_000, "{told:?}");
        let mut read: Vec<_> = server
            .select("SELECT k, v FROM cluster_test.last")
            .into_iter()
            .map(|row| (row["k"].clone(), row["v"].clone()))
            .collect();
        read.sort_by_key(|(key, _)| format!("{key:?}"));
        let last = |key: i32| (0..ROWS).rev().find(|row| row % KEYS == key).unwrap() * sign;
        let expected: Vec<_> =
            (0..KEYS).map(|key| (Some(CqlValue::Int(key)), Some(CqlValue::Int(last(key))))).collect();
        assert_eq!(read, expected);
    }
    // The write times are those asked for.
    options.timestamp = WriteTimes::From(i64::MAX - 10);
    let mut table = CqlTable::new(server.address("last"), options);
    Made::new(&columns, [vec![int(1), int(1)], vec![int(2), int(2)]]).load(&mut table).1.unwrap();
    let time = server.value("SELECT writetime(v) FROM cluster_test.last WHERE k = 2");
    assert_eq!(time, Some(CqlValue::BigInt(i64::MAX - 9)));
}

fn the_largest_row_fits(server: &Server) {
    server.run("CREATE TABLE cluster_test.large (k int PRIMARY KEY, v blob, w int)");
    let columns = [("k", "int"), ("v", "blob"), ("w", "int")];
    // Three lengths of four bytes, and two ints.
    let largest = ROW_BYTES_MAX - 20;
    let row = move |key: i32, length: usize| vec![int(key), Cell::Bytes(vec![7; length]), int(1)];
    let rows = (0..3).map(move |key| row(key, largest));
    assert_eq!(Made::new(&columns, rows).load(&mut existing(server, "large")).1, Ok(3));
    let read = server.value("SELECT v FROM cluster_test.large WHERE k = 2");
    assert_eq!(read, Some(CqlValue::Blob(vec![7; largest])));
    let (loaded, ended) = Made::new(&columns, [row(5, largest + 1)]).load(&mut existing(server, "large"));
    assert_eq!(
        ended.unwrap_err().to_string(),
        format!(
            "the row has {} bytes, {} of them in this column; the cluster takes {ROW_BYTES_MAX} (column v, row 0, made 0)",
            ROW_BYTES_MAX + 1,
            largest + 1
        )
    );
    assert_eq!(loaded.rows, 0);
}

/// A row that only the server knows to be wrong: the load ends with its number and where it is from, though rows of another piece
/// are on their way by then; and what was in flight is awaited.
fn trouble_stops_the_load(server: &Server) {
    server.run("CREATE TABLE cluster_test.trouble (k int, c blob, PRIMARY KEY (k, c))");
    let columns = [("k", "int"), ("c", "blob")];
    let rows = |rows: std::ops::Range<i32>, bad: i32| {
        rows.map(move |row| {
            let length = if row == bad { 70_000 } else { 4 };
            let mut cell = row.to_be_bytes().to_vec();
            cell.resize(length, 0);
            vec![int(row % 100), Cell::Bytes(cell)]
        })
    };
    let mut table = existing(server, "trouble");
    let made = Made::new(&columns, rows(0..3001, -1)).and(rows(3001..5002, 5001)).and(rows(5002..50_000, -1));
    let (loaded, ended) = made.load(&mut table);
    let error = ended.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    let Error::Insert { object, row: 2000, tries: 1, .. } = cause(&error) else { panic!("{error}") };
    assert_eq!(object, "made 1");
    let text = error.to_string();
    assert!(text.starts_with("the cluster rejected a row, sent 1 time: "), "{text}");
    assert!(text.ends_with(" (row 2000, made 1)"), "{text}");
    assert!((4700..12_000).contains(&loaded.rows), "{loaded:?}");
    // All that was sent is counted: nothing arrives later.
    assert_eq!(u64::try_from(server.count("trouble")).unwrap(), loaded.rows);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(u64::try_from(server.count("trouble")).unwrap(), loaded.rows);
    // It stays failed.
    assert_eq!(table.finish().unwrap_err().to_string(), text);
}

/// Whoever cancels a copy is told what arrived, and nothing arrives later.
fn a_copy_that_is_cancelled_is_counted(server: &Server) {
    server.run("CREATE TABLE cluster_test.cancelled (k int PRIMARY KEY)");
    let source = Made::new(&[("k", "int")], (0..100_000).map(|row| vec![int(row)])).shared();
    let mut table = existing(server, "cancelled");
    let cancel = Cancel::new();
    let mut options = CopyOptions::default();
    options.cancel = cancel.clone();
    let copied = copy(&source, &mut table, &options, &mut |copied| {
        if copied.written.rows > 2000 {
            cancel.cancel();
        }
    });
    assert_eq!(copied.unwrap_err().kind(), ErrorKind::Cancelled);
    // A server that is well has answered to all that was sent; of one that was busy just then, what was in flight is not counted.
    let loaded = table.progress().unwrap();
    assert!((2000..20_000).contains(&loaded.rows), "{loaded:?}");
    let arrived = u64::try_from(server.count("cancelled")).unwrap();
    let in_flight = u64::try_from(CqlOptions::default().in_flight.get()).unwrap();
    assert!((loaded.rows..=loaded.rows + in_flight).contains(&arrived), "{arrived} of {loaded:?}");
}

/// Rows in flight to a server that does not answer any more are abandoned when the copy is cancelled, wherever it waits: while it
/// connects, for room to write, for the last answers. What is counted was acknowledged.
fn nobody_waits_for_a_server_that_is_silent(server: &Server) {
    server.run("CREATE TABLE cluster_test.silent (k int PRIMARY KEY, v blob)");
    let columns = [("k", "int"), ("v", "blob")];
    let row = |key: i32| vec![int(key), Cell::Bytes(vec![7; 1000])];
    // The last one has sent its rows, all in flight, before the network is gone.
    for (silent_after, rows) in [(1, 10), (2_000_000, 100_000), (100_000, 300)] {
        server.run("TRUNCATE cluster_test.silent");
        let proxy = Proxy::start(&server.at, silent_after, Break::Silent);
        let mut table = CqlTable::new(
            format!("cql://{}/{KEYSPACE}.silent", proxy.at).parse().unwrap(),
            CqlOptions::default(),
        );
        let mut options = CopyOptions::default();
        let cancel = options.cancel.clone();
        let source = Made::new(&columns, (0..rows).map(row)).shared();
        let cancelling = std::thread::spawn(move || {
            while proxy.breaks() == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(300));
            cancel.cancel();
            Instant::now()
        });
        options.threads = Some(1);
        let error = copy(&source, &mut table, &options, &mut |_| {}).unwrap_err();
        let ended = Instant::now();
        assert_eq!(error.kind(), ErrorKind::Cancelled, "{error}");
        let waited = ended.saturating_duration_since(cancelling.join().unwrap());
        assert!(waited < Duration::from_millis(900), "{waited:?} after {silent_after} bytes");
        let loaded = table.progress().map(|written| written.rows);
        assert_eq!(loaded.is_some(), silent_after > 1);
        // Nothing arrives later; what had arrived, without an answer that came through, is not counted.
        let there = u64::try_from(server.count("silent")).unwrap();
        let loaded = loaded.unwrap_or(0);
        assert!(loaded <= there && there <= loaded + 256, "{loaded} of {there}");
        assert!(there < u64::try_from(rows).unwrap());
        drop(table);
        assert!(ended.elapsed() < Duration::from_secs(2));
    }
}

/// All connections are cut in the midst of a load, also of one whose server is away for a while: what was in flight is sent again, and nothing is
/// lost.
fn a_broken_network_is_survived(server: &Server) {
    const ROWS: i32 = 20_000;
    server.run("CREATE TABLE cluster_test.network (k int PRIMARY KEY, v int)");
    let behind = |proxy: &Proxy, options: CqlOptions| {
        CqlTable::new(format!("cql://{}/{KEYSPACE}.network", proxy.at).parse().unwrap(), options)
    };
    let columns = [("k", "int"), ("v", "int")];
    for kind in [Break::Cut, Break::Away(Duration::from_secs(2))] {
        server.run("TRUNCATE cluster_test.network");
        let proxy = Proxy::start(&server.at, 500_000, kind);
        let rows = (0..ROWS).map(|row| vec![int(row % 10_000), int(row)]);
        let (loaded, ended) = Made::new(&columns, rows).load(&mut behind(&proxy, CqlOptions::default()));
        assert_eq!(ended, Ok(20_000));
        assert_eq!(proxy.breaks(), 1);
        assert_eq!(loaded.rows, 20_000);
        assert!(loaded.retries > 0, "{loaded:?}");
        assert_eq!(server.count("network"), 10_000);
        // Rows that were sent again are as old as they were.
        let smallest = server.value("SELECT min(v) FROM cluster_test.network");
        assert_eq!(smallest, Some(CqlValue::Int(10_000)));
    }
    // If nothing is sent again, a row that was in flight ends the load.
    let proxy = Proxy::start(&server.at, 500_000, Break::Cut);
    let rows = (0..ROWS).map(|row| vec![int(row), int(row)]);
    let mut options = CqlOptions::default();
    options.retry_for = Duration::ZERO;
    let (loaded, ended) = Made::new(&columns, rows).load(&mut behind(&proxy, options));
    let error = ended.unwrap_err();
    assert!(matches!(cause(&error), Error::Insert { tries: 1, .. }), "{error}");
    // Whoever copies may try again.
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(loaded.rows < 20_000 && loaded.retries == 0, "{loaded:?}");
}

/// A datacenter that there is not is named, with those that there are.
fn only_nodes_of_a_datacenter(server: &Server) {
    let Some(CqlValue::Text(known)) = server.value("SELECT data_center FROM system.local") else {
        panic!("a node without a datacenter")
    };
    let options = |name: &str| {
        let mut options = CqlOptions::default();
        options.connect.local_datacenter = Some(name.to_owned());
        options
    };
    server.run("CREATE TABLE cluster_test.near (k int PRIMARY KEY)");
    let load = |name: &str| {
        let rows = Made::new(&[("k", "int")], (0..100).map(|row| vec![int(row)]));
        rows.load(&mut CqlTable::new(server.address("near"), options(name))).1
    };
    assert_eq!(load(&known), Ok(100));
    assert_eq!(server.count("near"), 100);
    let error = load("nowhere").unwrap_err();
    assert_eq!(error.detail(), Some(Detail::Option("local_datacenter")));
    assert_eq!(error.message(), format!("the cluster has no datacenter \"nowhere\"; it has {known}"));
}

fn wrong_addresses(server: &Server) {
    let options = ConnectOptions { timeout: Duration::from_secs(3), ..ConnectOptions::default() };
    // A port that is free, or was a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("cql://scott:tiger@127.0.0.1:{port}/k.t");
    let started = Instant::now();
    let error = Cluster::connect(address.parse().unwrap(), &options).unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(5));
    let told = format!("{error} {error:?}");
    assert!(told.starts_with(&format!("cannot connect to cql://scott@127.0.0.1:{port}/k.t: ")), "{told}");
    assert!(!told.contains("tiger"), "{told}");
    // A server that says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("cql://{}/k.t", silent.local_addr().unwrap());
    let options = ConnectOptions { timeout: Duration::from_secs(1), ..ConnectOptions::default() };
    let started = Instant::now();
    let error = Cluster::connect(address.parse().unwrap(), &options).unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(3), "{error}");
    assert!(error.to_string().starts_with("cannot connect to cql://127.0.0.1:"), "{error}");
    // One that does not encrypt: never in the clear instead.
    let mut options = ConnectOptions { timeout: Duration::from_secs(2), ..ConnectOptions::default() };
    let mut tls = TlsOptions::default();
    tls.authorities = Some(crate::encrypted::data("authority.pem"));
    options.tls = Some(tls);
    let error = Cluster::connect(format!("cql://{}/k.t", server.at).parse().unwrap(), &options).unwrap_err();
    assert!(matches!(error, Error::Connect { .. } | Error::ConnectTimeout { .. }), "{error}");
    // As a destination.
    let mut options = CqlOptions::create(MappingOptions {
        key: Some(KeySpec::parse("k").unwrap()),
        ..MappingOptions::default()
    });
    options.connect.timeout = Duration::from_secs(1);
    let mut table = CqlTable::new(
        format!("cql://me:tiger@{}/k.t", silent.local_addr().unwrap()).parse().unwrap(),
        options,
    );
    // What is wrong with the rows alone is said before anybody is waited for.
    let started = Instant::now();
    let error = Made::new(&[("a", "int")], []).load(&mut table).1.unwrap_err();
    assert!(started.elapsed() < Duration::from_millis(900), "{error}");
    assert_eq!(error.to_string(), "the key names \"k\", which is not a column; there are a (made)");
    let mut table = CqlTable::new(table.address().clone(), {
        let mut options = CqlOptions::default();
        options.connect.timeout = Duration::from_secs(1);
        options
    });
    let error = Made::new(&[("k", "int")], []).load(&mut table).1.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
    assert!(matches!(cause(&error), Error::ConnectTimeout { .. }), "{error}");
    let told = format!("{error} {table:?} {:?}", cause(&error));
    assert!(!told.contains("tiger") && told.contains("no answer within 1000 ms"), "{told}");
}
