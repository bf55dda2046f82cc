//! Loads that end early and go on.

use std::path::Path;
use std::time::Duration;

use marquetry_base::{Detail, ErrorKind};
use marquetry_cluster::{CqlOptions, CqlTable, StateOptions};
use marquetry_tables::{Cancel, CopyOptions, Destination, copy};
use marquetry_testing::{Break, Proxy};
use scylla::value::CqlValue;

use crate::made::{Cell, Made, int};
use crate::server::{KEYSPACE, Server};

pub(crate) fn all(server: &Server) {
    a_load_goes_on(server);
    a_load_that_lost_its_server_goes_on(server);
    rejected_rows_are_not_lost(server);
}

const ROWS: i32 = 20_000;

/// Rows of a key, and the row's number.
fn rows(bad: Option<i32>) -> Made {
    let row = move |row: i32| {
        let key = if Some(row) == bad { Cell::Null } else { int(row) };
        vec![key, int(row)]
    };
    let half = ROWS / 2;
    Made::new(&[("k", "int"), ("v", "int")], (0..half).map(row)).and((half..ROWS).map(row))
}

fn options(path: &Path, resume: bool) -> CqlOptions {
    let mut options = CqlOptions::default();
    let mut state = StateOptions::new(path);
    state.resume = resume;
    options.state = Some(state);
    options
}

/// A number in the state's file.
fn number(path: &Path, key: &str) -> i64 {
    let text = std::fs::read_to_string(path).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_else(|| panic!("{text}"));
    line.trim().parse().unwrap()
}

/// All rows are there, with the write times of the first run.
fn assert_loaded(server: &Server, table: &str, first_write_time: i64) {
    let mut found: Vec<(i32, i32, i64)> = server
        .select(&format!("SELECT k, v, writetime(v) AS t FROM cluster_test.{table}"))
        .into_iter()
        .map(|row| match (&row["k"], &row["v"], &row["t"]) {
            (Some(CqlValue::Int(k)), Some(CqlValue::Int(v)), Some(CqlValue::BigInt(t))) => (*k, *v, *t),
            other => panic!("{other:?}"),
        })
        .collect();
    found.sort_unstable();
    assert_eq!(found.len(), usize::try_from(ROWS).unwrap());
    for (at, row) in (0..).zip(found) {
        assert_eq!(row, (at, at, first_write_time + i64::from(at)));
    }
}

fn a_load_goes_on(server: &Server) {
    server.run("CREATE TABLE cluster_test.resumed (k int PRIMARY KEY, v int)");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("load.state");
    // It is cancelled.
    let mut table = CqlTable::new(server.address("resumed"), options(&path, false));
    let (cancel, mut copying) = (Cancel::new(), CopyOptions::default());
    copying.cancel = cancel.clone();
    let ended = copy(&rows(None).shared(), &mut table, &copying, &mut |copied| {
        if copied.written.rows > 3000 {
            cancel.cancel();
        }
    });
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::Cancelled);
    let loaded = table.progress().unwrap().rows;
    drop(table);
    let (until, first) = (number(&path, "rows "), number(&path, "first-write-time "));
    assert!(until > 1000 && until <= i64::try_from(loaded).unwrap(), "{until} of {loaded}");
    // By accident it is not begun again, and other rows are other rows.
    let again = |options| rows(None).load(&mut CqlTable::new(server.address("resumed"), options)).1;
    let error = again(options(&path, false)).unwrap_err();
    assert_eq!(error.detail(), Some(Detail::AdmittedBy(&["resume"])), "{error}");
    let mut table = CqlTable::new(server.address("resumed"), options(&path, true));
    let error = Made::new(&[("k", "int")], []).load(&mut table).1.unwrap_err();
    assert!(error.to_string().contains("whose source is another"), "{error}");
    let mut other = options(&path, true);
    other.ttl = Some("60".parse().unwrap());
    let error = again(other).unwrap_err();
    assert!(error.to_string().contains("with other options"), "{error}");
    // A state that somebody changed is not believed, and rows that end before those that were loaded are others.
    let kept = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, kept.replace(&format!("\nrows {until}\n"), "\nrows 19999\n")).unwrap();
    let error = again(options(&path, true)).unwrap_err();
    assert!(error.to_string().contains("its checksum"), "{error}");
    let text = kept.replace(&format!("\nrows {until}\n"), "\nrows 20001\n");
    let text = &text[..text.find("checksum ").unwrap()];
    std::fs::write(&path, marquetry_io::state_file::sealed(text)).unwrap();
    let error = again(options(&path, true)).unwrap_err();
    assert!(
        error.to_string().contains("the rows ended after 20000, and 20001 were loaded before"),
        "{error}"
    );
    std::fs::write(&path, kept).unwrap();
    // It goes on.
    let mut table = CqlTable::new(server.address("resumed"), options(&path, true));
    let (loaded, ended) = rows(None).load(&mut table);
    assert_eq!(ended, Ok(20_000));
    assert_eq!(i64::try_from(loaded.rows).unwrap(), i64::from(ROWS) - until);
    assert_loaded(server, "resumed", first);
    assert_eq!(number(&path, "rows "), i64::from(ROWS));
    // It is finished.
    assert!(again(options(&path, false)).unwrap_err().to_string().contains("was finished, with 20000 rows"));
    let mut table = CqlTable::new(server.address("resumed"), options(&path, true));
    let (loaded, ended) = rows(None).load(&mut table);
    assert_eq!((loaded.rows, ended), (0, Ok(20_000)));
    assert!(table.notes()[0].contains("was finished before"), "{:?}", table.notes());
    // Another table of that name has none of the rows.
    server.run("DROP TABLE cluster_test.resumed");
    server.run("CREATE TABLE cluster_test.resumed (k int PRIMARY KEY, v int)");
    let error = again(options(&path, true)).unwrap_err();
    assert!(error.to_string().contains("into another table of that name"), "{error}");
    assert_eq!(server.count("resumed"), 0);
}

/// A server that does not come back in time ends the load, which goes on when it is back.
fn a_load_that_lost_its_server_goes_on(server: &Server) {
    server.run("CREATE TABLE cluster_test.outage (k int PRIMARY KEY, v int)");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("load.state");
    let proxy = Proxy::start(&server.at, 500_000, Break::Cut);
    let mut cut = options(&path, true);
    cut.retry_for = Duration::ZERO;
    let address = format!("cql://{}/{KEYSPACE}.outage", proxy.at).parse().unwrap();
    let error = rows(None).load(&mut CqlTable::new(address, cut)).1.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    let (until, first) = (number(&path, "rows "), number(&path, "first-write-time "));
    assert!(until < i64::from(ROWS), "{until}");
    let mut table = CqlTable::new(server.address("outage"), options(&path, true));
    let (loaded, ended) = rows(None).load(&mut table);
    assert_eq!(ended, Ok(20_000));
    assert_eq!(i64::try_from(loaded.rows).unwrap(), i64::from(ROWS) - until);
    assert_loaded(server, "outage", first);
}

/// Until the file of rejected rows is there, a load goes on from before the first of them.
fn rejected_rows_are_not_lost(server: &Server) {
    server.run("CREATE TABLE cluster_test.resumed2 (k int PRIMARY KEY, v int)");
    let folder = tempfile::tempdir().unwrap();
    let (path, bad) = (folder.path().join("load.state"), folder.path().join("bad.parquet"));
    let mut rejecting = options(&path, true);
    rejecting.rejects = Some(bad.clone());
    let (loaded, ended) =
        rows(Some(5000)).load(&mut CqlTable::new(server.address("resumed2"), rejecting.clone()));
    assert_eq!((loaded.rows, ended), (19_999, Ok(20_000)));
    assert_eq!((number(&path, "rows "), bad.exists()), (i64::from(ROWS), true));
    // Where it cannot appear, the load is not finished.
    std::fs::remove_file(&path).unwrap();
    std::fs::remove_file(&bad).unwrap();
    let mut table = CqlTable::new(server.address("resumed2"), rejecting.clone());
    let copied = copy(&rows(Some(5000)).shared(), &mut table, &CopyOptions::default(), &mut |copied| {
        if copied.written.rows > 15_000 && !bad.exists() {
            std::fs::write(&bad, "somebody else's").unwrap();
        }
    });
    assert!(copied.is_err(), "{copied:?}");
    assert_eq!(number(&path, "rows "), 5000);
    std::fs::remove_file(&bad).unwrap();
    let (loaded, ended) = rows(Some(5000)).load(&mut CqlTable::new(server.address("resumed2"), rejecting));
    assert_eq!((loaded.rows, ended), (14_999, Ok(20_000)));
    assert_eq!((number(&path, "rows "), bad.exists()), (i64::from(ROWS), true));
}
