//! Making tables and loading rows that are made here, cell by cell.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use marquetry_base::Error as RowError;
use marquetry_cluster::{
    Address, ConnectOptions, Created, Error, LoadOptions, Loaded, Loader, Nulls, ROW_BYTES_MAX, RowBlock,
    RowSource,
};
use marquetry_scylla::cql::{ColumnDef, CqlType, Name, Order, TableDef, TableName};
use scylla::value::CqlValue;

use crate::proxy::Proxy;
use crate::server::{KEYSPACE, Server};

pub(crate) fn all(server: &Server) {
    tables_are_made_once(server);
    misfits_come_before_the_first_row(server);
    rows_that_no_server_takes(server);
    nulls_are_unset_or_tombstones(server);
    the_last_of_many_wins(server);
    the_largest_row_fits(server);
    trouble_stops_the_load(server);
    a_broken_network_is_survived(server);
    wrong_addresses(server);
}

/// Rows of cells as the protocol holds them, made one by one.
struct Made {
    columns: Vec<(Name, CqlType)>,
    rows: Box<dyn Iterator<Item = Vec<Option<Vec<u8>>>> + Send>,
    next: u64,
}

impl Made {
    fn new<R>(columns: &[(&str, &str)], rows: R) -> Box<Made>
    where
        R: IntoIterator<Item = Vec<Option<Vec<u8>>>>,
        R::IntoIter: Send + 'static,
    {
        let columns = columns
            .iter()
            .map(|(name, cql_type)| (Name::new(name).unwrap(), CqlType::parse(cql_type).unwrap()))
            .collect();
        Box::new(Made { columns, rows: Box::new(rows.into_iter()), next: 0 })
    }
}

impl RowSource for Made {
    fn name(&self) -> &str {
        "made"
    }

    fn columns(&self) -> &[(Name, CqlType)] {
        &self.columns
    }

    fn fill(&mut self, block: &mut RowBlock) -> Result<bool, RowError> {
        while !block.is_full() {
            let Some(row) = self.rows.next() else {
                return Ok(false);
            };
            block.start_row(self.next);
            self.next += 1;
            for cell in row {
                block.cell(|out| {
                    out.extend_from_slice(cell.as_deref().unwrap_or_default());
                    Ok(cell.is_some())
                })?;
            }
        }
        Ok(true)
    }
}

fn int(value: i32) -> Option<Vec<u8>> {
    Some(value.to_be_bytes().to_vec())
}

fn text(value: &str) -> Option<Vec<u8>> {
    Some(value.as_bytes().to_vec())
}

fn connect(address: Address) -> Loader {
    Loader::connect(address, &ConnectOptions::default()).unwrap()
}

fn load(loader: &mut Loader, source: Box<Made>, options: &LoadOptions) -> Result<Loaded, Error> {
    loader.load(source, options, &mut |_| {})
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

fn tables_are_made_once(server: &Server) {
    let loader = connect(server.address("\"Order\""));
    assert_eq!(loader.table().unwrap(), None);
    let wanted = table(
        &[("a", "int"), ("select", "text"), ("C c", "timestamp"), ("d", "decimal")],
        &[(2, Order::Descending)],
    );
    assert_eq!(loader.create_table(&wanted, &[]).unwrap(), Created::New);
    let made = loader.table().unwrap().unwrap();
    assert_eq!(made.table.to_string(), "cluster_test.\"Order\"");
    assert_eq!(loader.create_table(&wanted, &[]).unwrap(), Created::AlreadyThere);
    assert_eq!(connect(server.address("\"Order\"")).create_table(&made, &[]).unwrap(), Created::AlreadyThere);
    let comment = server.value(
        "SELECT comment FROM system_schema.tables WHERE keyspace_name = 'cluster_test' AND table_name = 'Order'",
    );
    assert_eq!(comment, Some(CqlValue::Text("it's a comment".to_owned())));

    let error = |wanted: &TableDef| loader.create_table(wanted, &[]).unwrap_err().to_string();
    let mut other = wanted.clone();
    other.columns[3].cql_type = CqlType::Double;
    let prefix = "the table cluster_test.\"Order\" exists, and is another:";
    assert_eq!(error(&other), format!("{prefix} its d is decimal, wanted is double"));
    let mut other = wanted.clone();
    other.clustering[0].1 = Order::Ascending;
    assert_eq!(
        error(&other),
        format!("{prefix} its PRIMARY KEY is (a, \"C c\" DESC), wanted is (a, \"C c\")")
    );
    let mut other = wanted.clone();
    other.columns.pop();
    assert_eq!(error(&other), format!("{prefix} it has a column d, which is not wanted"));
    let mut other = wanted.clone();
    other.partition_key.clear();
    assert_eq!(error(&other), "the table has no partition key");

    let loader = connect(format!("cql://{}/cluster_nowhere.t", server.at).parse().unwrap());
    let error = loader.create_table(&wanted, &[]).unwrap_err();
    assert!(matches!(error, Error::NoKeyspace(_)), "{error}");
}

fn misfits_come_before_the_first_row(server: &Server) {
    server.run("CREATE TABLE cluster_test.misfit (k int, c text, v bigint, w int, PRIMARY KEY (k, c))");
    let mut loader = connect(server.address("misfit"));
    let row = || [vec![int(1), text("c"), Some(vec![0; 8])]];
    let mut error = |columns: &[(&str, &str)], width: usize| {
        let rows: Vec<_> = row().into_iter().map(|row| row[..width].to_vec()).collect();
        load(&mut loader, Made::new(columns, rows), &LoadOptions::default()).unwrap_err().to_string()
    };
    let prefix = "the rows do not fit the table cluster_test.misfit:";
    assert_eq!(
        error(&[("k", "int"), ("c", "text"), ("V", "bigint")], 3),
        format!("{prefix} it has no column \"V\"")
    );
    assert_eq!(
        error(&[("k", "int"), ("c", "text"), ("v", "timestamp")], 3),
        format!("{prefix} its column v is bigint, the values are timestamp")
    );
    assert_eq!(error(&[("k", "int")], 1), format!("{prefix} they have no c, which is in its primary key"));
    assert_eq!(server.count("misfit"), 0);
    // A column of the table that the rows lack is no misfit.
    let loaded = load(
        &mut loader,
        Made::new(&[("k", "int"), ("c", "text"), ("v", "bigint")], row()),
        &LoadOptions::default(),
    );
    assert_eq!(loaded.unwrap(), Loaded { rows: 1, bytes: 8 + 5 + 12, retries: 0 });
    let error = load(
        &mut connect(server.address("misfit2")),
        Made::new(&[("k", "int")], []),
        &LoadOptions::default(),
    );
    assert_eq!(error.unwrap_err().to_string(), "the cluster has no table cluster_test.misfit2");
}

fn rows_that_no_server_takes(server: &Server) {
    server.run("CREATE TABLE cluster_test.refused (k text, c int, PRIMARY KEY (k, c))");
    let mut loader = connect(server.address("refused"));
    let columns = [("c", "int"), ("k", "text")];
    let mut stopped = |bad: Vec<Option<Vec<u8>>>| {
        let good = (0..3000).map(|row| vec![int(row), text("k")]);
        let rows: Vec<_> = good.clone().chain([bad]).chain(good).collect();
        match load(&mut loader, Made::new(&columns, rows), &LoadOptions::default()).unwrap_err() {
            Error::Stopped { reason, loaded } => {
                // The blocks before the bad one were loaded, whole.
                assert_eq!(loaded.rows, 2048);
                reason.to_string()
            }
            other => panic!("{other}"),
        }
    };
    assert_eq!(
        stopped(vec![None, text("k")]),
        "a column of the primary key is null (column c, row 3000, made)"
    );
    assert_eq!(stopped(vec![int(1), None]), "a column of the primary key is null (column k, row 3000, made)");
    assert_eq!(
        stopped(vec![int(1), text("")]),
        "the partition key is empty, and neither database takes that (column k, row 3000, made)"
    );
    assert_eq!(server.count("refused"), 2048);
    // Keys of the greatest length are taken, and so is an empty clustering key.
    let rows = [vec![int(1), text(&"x".repeat(65_535))]];
    assert_eq!(load(&mut loader, Made::new(&columns, rows), &LoadOptions::default()).unwrap().rows, 1);
    server.run("CREATE TABLE cluster_test.refused2 (k text, l text, c text, PRIMARY KEY ((k, l), c))");
    let rows = [vec![text(""), text(""), text("")]];
    let columns = [("k", "text"), ("l", "text"), ("c", "text")];
    let mut loader = connect(server.address("refused2"));
    assert_eq!(load(&mut loader, Made::new(&columns, rows), &LoadOptions::default()).unwrap().rows, 1);
    assert_eq!(server.count("refused2"), 1);
}

fn nulls_are_unset_or_tombstones(server: &Server) {
    server.run("CREATE TABLE cluster_test.nulls (k int PRIMARY KEY, v int)");
    let mut loader = connect(server.address("nulls"));
    let mut after = |nulls: Nulls| {
        server.run("INSERT INTO cluster_test.nulls (k, v) VALUES (1, 7)");
        let source = Made::new(&[("k", "int"), ("v", "int")], [vec![int(1), None]]);
        load(&mut loader, source, &LoadOptions { nulls, ..LoadOptions::default() }).unwrap();
        server.value("SELECT v FROM cluster_test.nulls WHERE k = 1")
    };
    assert_eq!(after(Nulls::Unset), Some(CqlValue::Int(7)));
    assert_eq!(after(Nulls::Tombstone), None);
}

/// Rows with one key overtake each other in flight; the last of them must win all the same, and over earlier loads.
fn the_last_of_many_wins(server: &Server) {
    const ROWS: i32 = 30_000;
    const KEYS: i32 = 7;
    server.run("CREATE TABLE cluster_test.last (k int PRIMARY KEY, v int)");
    let mut loader = connect(server.address("last"));
    let columns = [("k", "int"), ("v", "int")];
    let options = LoadOptions { concurrency: NonZeroUsize::new(1000).unwrap(), ..LoadOptions::default() };
    for sign in [1, -1] {
        let rows = (0..ROWS).map(move |row| vec![int(row % KEYS), int(row * sign)]);
        let mut told = Vec::new();
        let started = Instant::now();
        let loaded =
            loader.load(Made::new(&columns, rows), &options, &mut |loaded| told.push(loaded.rows)).unwrap();
        println!("{ROWS} rows in {:?}", started.elapsed());
        assert_eq!(loaded, Loaded { rows: 30_000, bytes: 16 * 30_000, retries: loaded.retries });
        assert_eq!(told.last(), Some(&30_000));
        assert!(told.len() > 20 && told.is_sorted(), "{told:?}");
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
    let options = LoadOptions { write_time_us: Some(i64::MAX - 10), ..options };
    load(&mut loader, Made::new(&columns, [vec![int(1), int(1)], vec![int(2), int(2)]]), &options).unwrap();
    let time = server.value("SELECT writetime(v) FROM cluster_test.last WHERE k = 2");
    assert_eq!(time, Some(CqlValue::BigInt(i64::MAX - 9)));
}

fn the_largest_row_fits(server: &Server) {
    server.run("CREATE TABLE cluster_test.large (k int PRIMARY KEY, v blob, w int)");
    let mut loader = connect(server.address("large"));
    let columns = [("k", "int"), ("v", "blob"), ("w", "int")];
    // Three lengths of four bytes, and two ints.
    let largest = ROW_BYTES_MAX - 20;
    let rows = (0..3).map(move |key| vec![int(key), Some(vec![7; largest]), int(1)]);
    assert_eq!(load(&mut loader, Made::new(&columns, rows), &LoadOptions::default()).unwrap().rows, 3);
    let read = server.value("SELECT v FROM cluster_test.large WHERE k = 2");
    assert_eq!(read, Some(CqlValue::Blob(vec![7; largest])));
    let rows = [vec![int(5), Some(vec![7; largest + 1]), int(1)]];
    let error = load(&mut loader, Made::new(&columns, rows), &LoadOptions::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "the row has {} bytes, {} of them in this column; the cluster takes {ROW_BYTES_MAX} (column v, row 0, made); \
             0 rows had been loaded",
            ROW_BYTES_MAX + 1,
            largest + 1
        )
    );
}

/// A row that only the server knows to be wrong: the load ends with its number, and what was in flight is awaited.
fn trouble_stops_the_load(server: &Server) {
    server.run("CREATE TABLE cluster_test.trouble (k int, c blob, PRIMARY KEY (k, c))");
    let mut loader = connect(server.address("trouble"));
    let columns = [("k", "int"), ("c", "blob")];
    let rows = (0..50_000).map(|row: i32| {
        let length = if row == 5000 { 70_000 } else { 4 };
        let mut cell = row.to_be_bytes().to_vec();
        cell.resize(length, 0);
        vec![int(row % 100), Some(cell)]
    });
    let Error::Stopped { reason, loaded } =
        load(&mut loader, Made::new(&columns, rows), &LoadOptions::default()).unwrap_err()
    else {
        panic!("not stopped");
    };
    let Error::Insert { source, row: 5000, tries: 1, .. } = &*reason else { panic!("{reason}") };
    assert_eq!(source, "made");
    assert!(reason.to_string().ends_with("(row 5000, made)"), "{reason}");
    assert!((4700..10_000).contains(&loaded.rows), "{loaded:?}");
    // All that was sent is counted: nothing arrives later.
    assert_eq!(u64::try_from(server.count("trouble")).unwrap(), loaded.rows);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(u64::try_from(server.count("trouble")).unwrap(), loaded.rows);
}

/// All connections are cut in the midst of a load: what was in flight is sent again, and nothing is lost.
fn a_broken_network_is_survived(server: &Server) {
    const ROWS: i32 = 20_000;
    server.run("CREATE TABLE cluster_test.network (k int PRIMARY KEY, v int)");
    let proxy = Proxy::start(&server.at, 500_000);
    let mut loader = connect(format!("cql://{}/{KEYSPACE}.network", proxy.at).parse().unwrap());
    let columns = [("k", "int"), ("v", "int")];
    let rows = (0..ROWS).map(|row| vec![int(row % 10_000), int(row)]);
    let loaded = load(&mut loader, Made::new(&columns, rows), &LoadOptions::default()).unwrap();
    assert_eq!(proxy.cuts(), 1);
    assert_eq!(loaded.rows, 20_000);
    assert!(loaded.retries > 0, "{loaded:?}");
    assert_eq!(server.count("network"), 10_000);
    // Rows that were sent again are as old as they were.
    let smallest = server.value("SELECT min(v) FROM cluster_test.network");
    assert_eq!(smallest, Some(CqlValue::Int(10_000)));
    // With one try, a row that was in flight ends the load.
    let proxy = Proxy::start(&server.at, 500_000);
    let mut loader = connect(format!("cql://{}/{KEYSPACE}.network", proxy.at).parse().unwrap());
    let rows = (0..ROWS).map(|row| vec![int(row), int(row)]);
    let options = LoadOptions { tries: 1, ..LoadOptions::default() };
    let error = load(&mut loader, Made::new(&columns, rows), &options).unwrap_err();
    let Error::Stopped { reason, loaded } = error else { panic!("{error}") };
    assert!(matches!(*reason, Error::Insert { tries: 1, .. }), "{reason}");
    assert!(loaded.rows < 20_000 && loaded.retries == 0, "{loaded:?}");
}

fn wrong_addresses(server: &Server) {
    let options = ConnectOptions { timeout: Duration::from_secs(3), ..ConnectOptions::default() };
    // A port that is free, or was a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("cql://scott:tiger@127.0.0.1:{port}/k.t");
    let started = Instant::now();
    let error = Loader::connect(address.parse().unwrap(), &options).unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(5));
    let told = format!("{error} {error:?}");
    assert!(told.starts_with(&format!("cannot connect to cql://scott@127.0.0.1:{port}/k.t: ")), "{told}");
    assert!(!told.contains("tiger"), "{told}");
    // A server that says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("cql://{}/k.t", silent.local_addr().unwrap());
    let options = ConnectOptions { timeout: Duration::from_secs(1), ..ConnectOptions::default() };
    let started = Instant::now();
    let error = Loader::connect(address.parse().unwrap(), &options).unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(3), "{error}");
    assert!(error.to_string().starts_with("cannot connect to cql://127.0.0.1:"), "{error}");
    // Never in the clear instead.
    let options = ConnectOptions { tls: true, ..ConnectOptions::default() };
    let error = Loader::connect(format!("cql://{}/k.t", server.at).parse().unwrap(), &options).unwrap_err();
    assert!(matches!(error, Error::Unsupported(_)), "{error}");
}
