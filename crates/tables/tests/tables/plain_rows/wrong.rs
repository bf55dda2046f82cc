//! Rows and options that cannot be a table's: said with their place, and nothing is left.

use std::sync::Arc;

use marquetry_base::{Detail, ErrorKind};
use marquetry_parquet::format::SortingColumn;
use marquetry_scylla::bridge::Nulls;
use marquetry_tables::files::{Files, FilesOptions};
use marquetry_tables::parquet::{NewParquetFile, ParquetOptions};
use marquetry_tables::sstables::{Compressor, NewSstables, NewSstablesOptions, WriteCompression};
use marquetry_tables::stamps::WriteTimes;
use marquetry_tables::{CopyOptions, Destination, Source, copy};

use super::made::{keyed, source};
use super::{contents, full, options, write};

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("t");
    let fails = |name: &str, text: &str, options: NewSstablesOptions| {
        let error =
            write(&source(folder.path(), name, text), &to, options, &CopyOptions::default()).unwrap_err();
        let left: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .filter(|entry| *entry != *name)
            .collect();
        assert!(left.is_empty(), "{left:?}");
        std::fs::remove_file(folder.path().join(name)).unwrap();
        error
    };
    let csv = "k,c,v\n1,1,a\n2,2,b\n3,,c\n";
    let error = fails("a.csv", csv, keyed("me", "k, c"));
    assert_eq!(
        (error.kind(), error.place().row, error.place().column.as_deref()),
        (ErrorKind::Conversion, Some(2), Some("c"))
    );
    assert!(error.message().contains("null"), "{error}");
    let mut nameless = keyed("me", "k");
    nameless.rows.table = None;
    assert_eq!(fails("a.csv", csv, nameless).detail(), Some(Detail::Option("table")));
    let mut keyless = keyed("me", "k");
    keyless.rows.mapping.key = None;
    assert!(fails("a.csv", csv, keyless).message().contains("primary key"));
    let defined = |text: &str| {
        let mut made = options("me");
        made.rows.schema_cql = Some(text.to_owned());
        made
    };
    let error = fails("a.csv", csv, defined("CREATE TABLE ks.t (k int PRIMARY KEY, v text)"));
    assert!(
        error.kind() == ErrorKind::Conversion && error.message().contains("from the table: c"),
        "{error}"
    );
    let error =
        fails("a.csv", csv, defined("CREATE TABLE ks.t (k int, c int, v counter, PRIMARY KEY (k, c))"));
    assert!(error.message().contains("counter"), "{error}");
    let error = fails("a.csv", csv, defined("CREATE TABLE t (k int, c int, v text, PRIMARY KEY (k, c))"));
    assert_eq!(error.detail(), Some(Detail::Option("table")));
    let error = fails("a.csv", csv, defined("CREATE TYPE ks.u (a int)"));
    assert!(error.message().contains("no CREATE TABLE"), "{error}");
    let error = fails("a.csv", csv, defined("CREATE TABLE ks.t (k int, c int, v int, PRIMARY KEY (k, c))"));
    assert_eq!((error.place().row, error.place().column.as_deref()), (Some(0), Some("v")), "{error}");
    let compact =
        "CREATE TABLE ks.t (k int PRIMARY KEY, c int, v text) WITH comment = 'x' AND COMPACT STORAGE";
    let error = fails("a.csv", csv, defined(compact));
    assert_eq!((error.kind(), error.detail()), (ErrorKind::Unsupported, Some(Detail::Option("schema_cql"))));
    let mut both = keyed("me", "k");
    both.rows.schema_cql = Some("CREATE TABLE ks.t (k int PRIMARY KEY)".to_owned());
    assert_eq!(fails("a.csv", csv, both).detail(), Some(Detail::Option("schema_cql")));
    // A time or a TTL that is none.
    let stamped = "k,v,at\n1,a,5\n2,b,\n";
    let mut made = keyed("me", "k");
    made.rows.timestamp = "at".parse().unwrap();
    let error = fails("a.csv", stamped, made);
    assert_eq!((error.place().row, error.place().column.as_deref()), (Some(1), Some("at")));
    // Of rows of one key the last one has to win, so none may be as late as the one before it.
    let mut late = keyed("me", "k");
    late.rows.timestamp = (i64::MAX - 1).to_string().parse().unwrap();
    let error = fails("a.csv", "k,v\n1,a\n1,b\n1,c\n", late);
    assert_eq!((error.kind(), error.place().row), (ErrorKind::Conversion, Some(2)), "{error}");
    let mut least = keyed("me", "k");
    least.rows.timestamp = WriteTimes::From(i64::MIN);
    assert_eq!(fails("a.csv", csv, least).detail(), Some(Detail::Option("timestamp")));
    // Keys that servers do not store.
    let long = format!("k,c,v\n{},1,a\n", "x".repeat(65_536));
    let error = fails("a.csv", &long, keyed("me", "k, c"));
    assert_eq!((error.kind(), error.place().row), (ErrorKind::Conversion, Some(0)), "{error}");
    let error = fails("a.csv", &long, keyed("me", "c, k"));
    assert_eq!((error.kind(), error.place().row), (ErrorKind::Conversion, Some(0)), "{error}");
}

/// Writes that were sorted in another way: said with the first row that is wrong.
#[test]
fn writes_in_another_order_are_said_with_their_row() {
    let folder = tempfile::tempdir().unwrap();
    let rows = source(folder.path(), "a.csv", "k,v\n1,a\n2,b\n3,c\n4,d\n");
    let first = folder.path().join("first");
    write(&rows, &first, keyed("me", "k"), &CopyOptions::default()).unwrap();
    let mut how = CopyOptions::default();
    how.sort = vec![SortingColumn { column: 0, descending: false, nulls_first: false }];
    let file = folder.path().join("sorted.parquet");
    let mut sorted = NewParquetFile::new(&file, ParquetOptions::default()).unwrap();
    copy(&full(&first), &mut sorted, &how, &mut |_| {}).unwrap();
    let sorted: Arc<dyn Source> = Arc::new(Files::open([&file], &FilesOptions::default()).unwrap());
    let options = NewSstablesOptions::default();
    let error = write(&sorted, &folder.path().join("second"), options, &CopyOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conversion);
    assert!(error.place().row.is_some() && error.message().contains("order of tokens"), "{error}");
    assert!(!folder.path().join("second").exists());
}

/// Rows of a partition that were sorted in another way are said with their row, and the file that it is in.
#[test]
fn rows_of_a_partition_in_another_order_are_said_with_their_row() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let options = NewSstablesOptions::default;
    // A file of writes with these clustering values, which are in this order in it.
    let of_key = |key: u32, name: &str, rows: std::ops::Range<usize>, descending: bool| {
        let lines: Vec<String> = rows.map(|row| format!("{key},{row},v\n")).collect();
        let rows = source(folder.path(), "rows.csv", &format!("k,c,v\n{}", lines.concat()));
        write(&rows, &at("first"), keyed("me", "k, c"), &CopyOptions::default()).unwrap();
        let mut how = CopyOptions::default();
        if descending {
            how.sort = vec![SortingColumn { column: 1, descending, nulls_first: false }];
        }
        let mut file = NewParquetFile::new(at(name), ParquetOptions::default()).unwrap();
        copy(&full(&at("first")), &mut file, &how, &mut |_| {}).unwrap();
        std::fs::remove_dir_all(at("first")).unwrap();
    };
    let made = |name: &str, rows, descending| of_key(1, name, rows, descending);
    made("a.parquet", 0..20_000, false);
    made("b.parquet", 20_000..40_000, true);
    made("c.parquet", 40_000..40_010, false);
    // A partition before that one.
    of_key(2, "d.parquet", 0..10, false);
    let error = |names: &[&str], threads: usize| {
        let paths: Vec<_> = names.iter().map(|name| at(name)).collect();
        let rows: Arc<dyn Source> = Arc::new(Files::open(&paths, &FilesOptions::default()).unwrap());
        let mut how = CopyOptions::default();
        how.threads = Some(threads);
        let error = write(&rows, &at("t"), options(), &how).unwrap_err();
        assert!(error.kind() == ErrorKind::Conversion && !at("t").exists());
        error
    };
    let fails = |names: &[&str], threads: usize| {
        let error = error(names, threads);
        assert!(error.message().contains("order of their clustering columns"), "{threads}: {error}");
        (error.place().row, error.place().object.clone().unwrap_or_default())
    };
    for (names, row, file) in [
        // Its second row is before its first.
        (&["b.parquet"][..], 1, "b.parquet"),
        (&["a.parquet", "b.parquet", "c.parquet"], 1, "b.parquet"),
        // The first of another file is before the last of the one before it.
        (&["c.parquet", "a.parquet"], 0, "a.parquet"),
        (&["c.parquet", "c.parquet"], 0, "c.parquet"),
        // What comes later is wrong, too, and is found by another thread, perhaps first.
        (&["b.parquet", "d.parquet"], 1, "b.parquet"),
    ] {
        for threads in [1, 2, 4] {
            let (found, object) = fails(names, threads);
            assert!(found == Some(row) && object.ends_with(file), "{names:?} {threads}: {found:?} {object}");
        }
    }
    for threads in [1, 2] {
        let error = error(&["a.parquet", "d.parquet"], threads);
        assert!(error.message().contains("order of tokens"), "{threads}: {error}");
    }
    let paths = ["a.parquet", "c.parquet"].map(at);
    let rows: Arc<dyn Source> = Arc::new(Files::open(&paths, &FilesOptions::default()).unwrap());
    write(&rows, &at("t"), options(), &CopyOptions::default()).unwrap();
}

/// What a definition alters counts: the time to live, and the names of what the table is ordered by.
#[test]
fn what_is_altered_counts() {
    let folder = tempfile::tempdir().unwrap();
    let rows = source(folder.path(), "a.csv", "k,c,v\n1,2,a\n");
    let mut made = options("me");
    made.rows.schema_cql = Some(
        "CREATE TABLE ks.t (k int, old int, gone int, PRIMARY KEY (k, old)) WITH CLUSTERING ORDER BY (old DESC) AND comment = 'x';
         ALTER TABLE ks.t RENAME old TO c; ALTER TABLE ks.t DROP gone; ALTER TABLE ks.t ADD v text;
         ALTER TABLE ks.t WITH default_time_to_live = 864000 AND comment = 'y';"
            .to_owned(),
    );
    let to = folder.path().join("t");
    write(&rows, &to, made, &CopyOptions::default()).unwrap();
    let schema = std::fs::read_to_string(to.join("schema.cql")).unwrap();
    assert!(schema.contains("CLUSTERING ORDER BY (c DESC)") && !schema.contains("old"), "{schema}");
    assert!(schema.contains("comment = 'y'") && schema.contains("default_time_to_live = 864000"), "{schema}");
    // It is a definition of these SSTables, so they are read by it.
    let read = full(&to);
    let names: Vec<String> = (0..3).map(|leaf| read.table().schema.leaf_path(leaf)).collect();
    assert_eq!(names, ["k", "c", "v"]);
    let ttl = (0..read.table().schema.leaves().len())
        .find(|leaf| read.table().schema.leaf_path(*leaf) == "mutation.expires_at");
    assert!(ttl.is_some(), "the rows expire");
}

/// Writes are of the table that they are of.
#[test]
fn writes_have_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let rows = source(folder.path(), "a.csv", "k,v\n1,a\n");
    let first = folder.path().join("first");
    write(&rows, &first, keyed("me", "k"), &CopyOptions::default()).unwrap();
    let second = folder.path().join("second");
    let fails = |options: NewSstablesOptions| {
        let error = write(&full(&first), &second, options, &CopyOptions::default()).unwrap_err();
        assert!(!second.exists());
        error.detail()
    };
    let mut other = NewSstablesOptions::default();
    other.rows.table = keyed("me", "k").rows.table;
    assert_eq!(fails(other), Some(Detail::Option("table")));
    let mut nulls = NewSstablesOptions::default();
    nulls.rows.mapping.nulls = Nulls::Null;
    assert_eq!(fails(nulls), Some(Detail::Option("nulls")));
}

/// Without rows there are no SSTables, which is said.
#[test]
fn nothing_to_write_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let rows = source(folder.path(), "a.csv", "k,v\n1,a\n");
    let to = folder.path().join("t");
    let mut how = CopyOptions::default();
    how.limit = Some(0);
    let mut zstd = keyed("me", "k");
    zstd.compression = Some(WriteCompression::new(Compressor::Zstd));
    let mut made = NewSstables::new(&to, zstd).unwrap();
    copy(&rows, &mut made, &how, &mut |_| {}).unwrap();
    let notes = made.notes();
    assert!(notes.iter().any(|note| note.contains("no SSTables, and schema.cql alone")), "{notes:?}");
    assert!(notes.iter().any(|note| note.contains("Cassandra 3.11 cannot read")), "{notes:?}");
    assert_eq!(contents(&to).len(), 1);
}

/// What a process that was killed left is removed; what another one writes is not.
#[test]
fn what_a_killed_process_left_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let (left, other) = (folder.path().join(".t.99999-0.part"), folder.path().join(".t.99999-1.part"));
    for (path, file) in [(&left, "me-1-big-Data.db"), (&other, "notes.txt")] {
        std::fs::create_dir(path).unwrap();
        std::fs::write(path.join(file), "x").unwrap();
    }
    let rows = source(folder.path(), "a.csv", "k,v\n1,a\n");
    write(&rows, &folder.path().join("t"), keyed("me", "k"), &CopyOptions::default()).unwrap();
    assert!(!left.exists() && other.exists());
}
