//! Rows that cannot be loaded go to a file, and the others are loaded.

use std::path::Path;
use std::time::Duration;

use marquetry_base::{Detail, ErrorKind};
use marquetry_cluster::{Consistency, CqlOptions, CqlTable, Error, MaxErrors};
use marquetry_parquet::batch::Value;
use marquetry_scylla::bridge::MappingOptions;
use marquetry_scylla::cql::KeySpec;
use marquetry_tables::files::{Files, FilesOptions};
use marquetry_tables::{CopyOptions, Destination, Reading, ReadingOptions, Source, copy};

use crate::made::{Cell, Made, int, text};
use crate::server::Server;

pub(crate) fn all(server: &Server) {
    bad_rows_go_to_a_file(server);
    too_many_end_the_load(server);
    what_passes_rejects_no_row(server);
    a_dry_run_writes_nothing(server);
    a_table_that_is_changed_ends_the_load(server);
}

/// Somebody drops the table, or a column of it, while rows are loaded: neither are the rows bad, nor are they there.
fn a_table_that_is_changed_ends_the_load(server: &Server) {
    let create = "CREATE TABLE cluster_test.changing (k int PRIMARY KEY, v int, w int)";
    for (statements, said) in [
        (
            &["DROP TABLE cluster_test.changing", create][..],
            // What is looked at may be between the two.
            "it was dropped",
        ),
        (&["ALTER TABLE cluster_test.changing DROP v"], "it was altered: missing column v"),
        (&["DROP TABLE cluster_test.changing"], "it was dropped"),
    ] {
        server.run("DROP TABLE IF EXISTS cluster_test.changing");
        server.run(create);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bad.parquet");
        let mut table = rejecting(server, "changing", &path);
        let rows =
            Made::new(&[("k", "int"), ("v", "int"), ("w", "int")], (0..30_000).map(|at| vec![int(at); 3]));
        let mut is_done = false;
        let rows = rows.in_batches_of(500).shared();
        let ended = copy(&rows, &mut table, &CopyOptions::default(), &mut |copied| {
            if copied.written.rows > 3000 && !is_done {
                is_done = true;
                statements.iter().for_each(|statement| server.run(statement));
            }
        });
        let error = ended.unwrap_err();
        assert!(is_done && error.kind() == ErrorKind::Refused, "{error}");
        assert!(
            error.to_string().contains("cluster_test.changing was changed while rows were loaded"),
            "{error}"
        );
        assert!(error.to_string().contains(said), "{error}");
        assert!(!path.exists(), "{said}");
    }
}

/// The keys and the reasons of a file of rejected rows.
fn rejected(path: &Path) -> Vec<(Option<Vec<u8>>, String)> {
    let files = Files::open([path], &FilesOptions::default()).unwrap();
    let errors = files.table().schema.leaves().len() - 1;
    assert_eq!(files.table().schema.leaf_path(errors), "error");
    let mut reading = Reading::new(std::sync::Arc::new(files), ReadingOptions::default()).unwrap();
    let mut rows = Vec::new();
    while let Some((_, batch)) = reading.next_batch().unwrap() {
        for row in 0..batch.rows {
            let bytes = |column: usize| match Value::of_values(&batch.columns[column].values, row) {
                Some(Value::Bytes(bytes)) => bytes.to_vec(),
                other => panic!("{other:?}"),
            };
            let key = (!batch.columns[0].is_null(row)).then(|| bytes(0));
            rows.push((key, String::from_utf8(bytes(errors)).unwrap()));
        }
    }
    rows
}

fn rejecting(server: &Server, table: &str, path: &Path) -> CqlTable {
    let mut options = CqlOptions::default();
    options.rejects = Some(path.to_path_buf());
    CqlTable::new(server.address(table), options)
}

const COLUMNS: [(&str, &str); 3] = [("k", "text"), ("c", "blob"), ("v", "text")];

fn row(key: Cell, length: usize, v: &str) -> Vec<Cell> {
    vec![key, Cell::Bytes(vec![7; length]), text(v)]
}

fn bad_rows_go_to_a_file(server: &Server) {
    server.run("CREATE TABLE cluster_test.some_bad (k text, c blob, v int, PRIMARY KEY (k, c))");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.parquet");
    let good =
        |from: usize| (from..from + 3000).map(|at| row(text(&format!("good {at}")), 4, &at.to_string()));
    let bad = [
        row(text("not an int"), 4, "seven"),
        row(Cell::Null, 4, "1"),
        // What only the server knows: a clustering key that is too long.
        row(text("too long"), 70_000, "1"),
        row(text(""), 4, "1"),
        row(text("too large"), 4, "2147483648"),
    ];
    let rows = good(0).chain(bad).chain(good(3000));
    let mut table = rejecting(server, "some_bad", &path);
    let (loaded, ended) = Made::new(&COLUMNS, rows).in_batches_of(500).load(&mut table);
    assert_eq!((loaded.rows, ended), (6000, Ok(6005)));
    assert_eq!(server.count("some_bad"), 6000);
    assert_eq!(table.notes(), [format!("5 rows were rejected: see {}", path.display())]);
    let mut found = rejected(&path);
    found.sort();
    let [null, empty, int, large, long] = &found[..] else { panic!("{found:?}") };
    assert_eq!(null, &(None, "a column of the primary key is null (column k, row 3001, made 0)".to_owned()));
    let key = |text: &str| Some(text.as_bytes().to_vec());
    assert_eq!(
        (&empty.0, &int.0, &large.0, &long.0),
        (&key(""), &key("not an int"), &key("too large"), &key("too long"))
    );
    assert!(empty.1.starts_with("the partition key is empty"), "{}", empty.1);
    assert!(
        int.1.starts_with("'seven' does not fit the table's type there, int (column v, row 3000"),
        "{}",
        int.1
    );
    assert!(long.1.starts_with("the cluster rejected a row, sent 1 time: "), "{}", long.1);
    assert!(long.1.ends_with("(row 3002, made 0)"), "{}", long.1);

    // It is not replaced, which is known before a row is sent.
    let error =
        Made::new(&COLUMNS, good(9000)).load(&mut rejecting(server, "some_bad", &path)).1.unwrap_err();
    assert_eq!(error.detail(), Some(Detail::Option("rejects")), "{error}");
    assert_eq!(server.count("some_bad"), 6000);
    // Where nothing is rejected, there is no file.
    let none = folder.path().join("none.parquet");
    assert_eq!(Made::new(&COLUMNS, good(0)).load(&mut rejecting(server, "some_bad", &none)).1, Ok(3000));
    assert!(!none.exists());
    let nowhere = folder.path().join("no/such.parquet");
    let error = Made::new(&COLUMNS, []).load(&mut rejecting(server, "some_bad", &nowhere)).1.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
}

/// The file appears then, too.
fn too_many_end_the_load(server: &Server) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.parquet");
    let rows = (0..5000).map(|at| row(text(&format!("many {at}")), 4, if at % 10 == 0 { "x" } else { "1" }));
    let (loaded, ended) = Made::new(&COLUMNS, rows.clone()).load(&mut rejecting(server, "some_bad", &path));
    let error = ended.unwrap_err();
    assert_eq!(
        (error.kind(), error.detail()),
        (ErrorKind::Conversion, Some(Detail::AdmittedBy(&["max_errors"])))
    );
    let told = "101 rows were rejected, and 100 may be; the last of them: 'x' does not fit";
    assert!(error.to_string().starts_with(told), "{error}");
    assert_eq!(rejected(&path).len(), 101);
    assert_eq!(loaded.rows, 900);
    for (max, fails) in [("9%", true), ("11%", false)] {
        let path = folder.path().join(format!("{max}.parquet"));
        let mut options = CqlOptions::default();
        (options.rejects, options.max_errors) = (Some(path.clone()), max.parse::<MaxErrors>().unwrap());
        let mut table = CqlTable::new(server.address("some_bad"), options);
        let ended = Made::new(&COLUMNS, rows.clone()).load(&mut table).1;
        assert_eq!(ended.is_err(), fails, "{max}: {ended:?}");
        assert!(path.exists());
    }
}

/// A row for which there are too few replicas is as good as any other: it ends the load after a while, and is not in the file of the bad ones.
fn what_passes_rejects_no_row(server: &Server) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.parquet");
    let mut options = CqlOptions::default();
    (options.rejects, options.max_errors) = (Some(path.clone()), MaxErrors::Rows(1_000_000));
    (options.consistency, options.retry_for) = (Consistency::Three, Duration::from_secs(2));
    let rows = (0..2000).map(|at| row(text(&format!("passing {at}")), 4, "1"));
    let mut table = CqlTable::new(server.address("some_bad"), options);
    let (loaded, ended) = Made::new(&COLUMNS, rows).load(&mut table);
    let error = ended.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
    let cause = std::error::Error::source(&error).and_then(|cause| cause.downcast_ref::<Error>());
    assert!(matches!(cause, Some(Error::Insert { tries: 2.., .. })), "{error}");
    assert!(error.to_string().starts_with("the cluster did not acknowledge a row, sent "), "{error}");
    assert!(loaded.rows == 0 && loaded.retries > 0, "{loaded:?}");
    assert!(!path.exists() && table.notes().is_empty(), "{:?}", table.notes());
}

fn a_dry_run_writes_nothing(server: &Server) {
    server.run("CREATE TABLE cluster_test.dry (k text, c blob, v int, PRIMARY KEY (k, c))");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bad.parquet");
    let mut options = CqlOptions::default();
    (options.rejects, options.dry_run) = (Some(path.clone()), true);
    let rows = [row(text("a"), 1, "1"), row(text("b"), 1, "x"), row(text("c"), 1, "3")];
    let mut table = CqlTable::new(server.address("dry"), options);
    let (loaded, ended) = Made::new(&COLUMNS, rows).load(&mut table);
    assert_eq!((loaded.rows, ended), (2, Ok(3)));
    assert_eq!((server.count("dry"), rejected(&path).len()), (0, 1));
    // A table that would be created is not.
    let mut options = CqlOptions::create(MappingOptions {
        key: Some(KeySpec::parse("k").unwrap()),
        ..MappingOptions::default()
    });
    options.dry_run = true;
    for (table, note) in [("dry2", "the table cluster_test.dry2 would be created"), ("dry3", "exists")] {
        if table == "dry3" {
            server.run("CREATE TABLE cluster_test.dry3 (k int PRIMARY KEY)");
        }
        let mut dry = CqlTable::new(server.address(table), options.clone());
        let (loaded, ended) = Made::new(&[("k", "int")], [vec![int(1)]]).load(&mut dry);
        assert_eq!((loaded.rows, ended), (1, Ok(1)));
        assert!(dry.notes()[0].contains(note), "{:?}", dry.notes());
    }
    let tables = "SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'cluster_test' AND table_name = 'dry2'";
    assert_eq!(server.select(tables).len(), 0);
    assert_eq!(server.count("dry3"), 0);
}
