//! The way back: what was made of each flush becomes SSTables again, all of it together.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use marquetry_base::ErrorKind;
use marquetry_scylla::bridge::mutations::MutationMapping;
use marquetry_scylla::cql::TableName;
use marquetry_tables::files::{Files, FilesOptions};
use marquetry_tables::parquet::{NewParquetFile, ParquetOptions};
use marquetry_tables::sstables::{FullFiles, NewSstables, NewSstablesOptions, Sstables, SstablesOptions};
use marquetry_tables::text::{TextFormat, TextOptions};
use marquetry_tables::{CopyOptions, DiffOptions, ReadingOptions, Source, copy, count, diff};

use super::node::{DELETED, INSERTED, Node, TABLE, UPDATED};

fn sstables(path: &Path) -> Arc<dyn Source> {
    Arc::new(Sstables::open(path, &SstablesOptions::default()).unwrap())
}

fn full_files(path: &Path) -> marquetry_base::Result<Option<Arc<dyn Source>>> {
    let full = FullFiles::open([path], &FilesOptions::default())?;
    Ok(full.map(|full| Arc::new(full) as Arc<dyn Source>))
}

fn expect_same(a: &Arc<dyn Source>, b: &Arc<dyn Source>) {
    let found = diff([a, b], &DiffOptions::default(), &mut |_| {}).unwrap();
    assert!(found.are_rows_equal() && found.schema.is_none(), "{found:?}");
}

/// Writes an SSTable of a table that got a column, and defines it for the node.
fn altered(node: &Node) {
    let folder = tempfile::tempdir().unwrap();
    let (text, made) = (folder.path().join("rows.jsonl"), folder.path().join("made"));
    fs::write(
        &text,
        "{\"pk\":\"a\",\"ck\":1,\"added\":\"later\"}\n{\"pk\":\"new\",\"ck\":2,\"added\":\"too\"}\n",
    )
    .unwrap();
    let mut files = FilesOptions::default();
    files.formats = vec![Arc::new(TextFormat::new(TextOptions::default()))];
    let rows: Arc<dyn Source> = Arc::new(Files::open([&text], &files).unwrap());
    let definition = "CREATE TABLE ks.t (pk text, ck int, st int static, v int, added text, tags set<text>, PRIMARY KEY (pk, ck)) \
                      WITH CLUSTERING ORDER BY (ck DESC);";
    let mut options = NewSstablesOptions::new("nb").unwrap();
    options.rows.schema_cql = Some(definition.to_owned());
    options.rows.table = Some(TableName::parse("ks.t").unwrap());
    let mut to = NewSstables::new(&made, options).unwrap();
    copy(&rows, &mut to, &CopyOptions::default(), &mut |_| {}).unwrap();
    for entry in fs::read_dir(&made).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if let Some(component) = name.strip_prefix("nb-1-big-") {
            fs::copy(&path, node.table(TABLE).join(format!("nb-9-big-{component}"))).unwrap();
        }
    }
    fs::write(node.data().join("schema.cql"), definition).unwrap();
}

/// Three flushes of a table: rows, others that overwrite them, and deletions; and one of after an `ALTER TABLE … ADD`.
fn flushed() -> Node {
    let node = Node::new();
    node.schema();
    for (of, stem) in [(INSERTED, "oa-2-big"), (UPDATED, "nb-3-big"), (DELETED, "oa-4-big")] {
        node.put(TABLE, of, stem);
        assert_eq!(node.once().len(), 2, "each as it comes");
    }
    altered(&node);
    assert_eq!(node.once()[1..], ["converted ks.t nb-9-big 2"]);
    node
}

#[test]
fn files_of_all_flushes_are_the_sstables_again() {
    let node = flushed();
    let lake = node.file(&Node::place(TABLE));
    let of_files = full_files(&lake).unwrap().unwrap();
    let original = sstables(&node.table(TABLE));
    let names = |table: &Arc<dyn Source>| {
        let schema = &table.table().schema;
        (0..schema.leaves().len()).map(|leaf| schema.leaf_path(leaf)).collect::<Vec<_>>()
    };
    assert!(names(&of_files).contains(&"added".to_owned()), "{:?}", names(&of_files));
    expect_same(&original, &of_files);
    for version in ["nb", "da"] {
        let made = node.data().with_file_name(version);
        let mut to = NewSstables::new(&made, NewSstablesOptions::new(version).unwrap()).unwrap();
        let copied = copy(&of_files, &mut to, &CopyOptions::default(), &mut |_| {}).unwrap();
        assert!(copied.rows > 10);
        let schema = fs::read_to_string(made.join("schema.cql")).unwrap();
        assert!(schema.contains("ks.t") && schema.contains("added"), "{schema}");
        expect_same(&original, &sstables(&made));
    }
    // Something in them was deleted, and is not there any more.
    let rows = |source: &Arc<dyn Source>| count(source, &ReadingOptions::default()).unwrap();
    let of_all: u64 = node.files().iter().map(|file| node.rows(file)).sum();
    assert!(rows(&of_files) < of_all);
}

/// The name of a key column was not known when the first file was made; or it was renamed.
#[test]
fn files_with_other_names_of_the_key_are_told_to_be_of_one_table() {
    let node = Node::new();
    node.put(TABLE, INSERTED, "oa-2-big");
    node.once();
    node.schema();
    node.put(TABLE, DELETED, "oa-4-big");
    node.once();
    assert_eq!(node.files().len(), 2);
    let error = full_files(&node.file(&Node::place(TABLE))).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
    for part in ["of the same table", "(pk)", "(pk0)", "a column of the key was renamed"] {
        assert!(error.message().contains(part), "{part}: {error}");
    }
}

/// Files whose rows are one after the other are no table of writes, and files of two tables none at all.
#[test]
fn only_writes_of_one_table_are_merged() {
    let node = flushed();
    let lake = node.file(&Node::place(TABLE));
    let files = node.files();
    assert!(full_files(&node.file(&files[0])).unwrap().is_none(), "one file is what it is");
    let expect_misuse = |what: &str| {
        let error = full_files(&lake).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
        assert!(error.message().contains(what), "{error}");
    };
    // Of a table that was dropped, and of the one that has its name.
    let again = node.data().join("ks/t-ffffffffffffffffffffffffffffffff");
    node.put_at(&again, INSERTED, "oa-7-big");
    node.once();
    let other = node.files().into_iter().find(|file| file.contains("oa-7-big")).unwrap();
    fs::copy(node.file(&other), lake.join("other.parquet")).unwrap();
    expect_misuse("writes of another table");
    // One of rows.
    let text = node.data().with_file_name("rows.csv");
    fs::write(&text, "pk,ck\na,1\n").unwrap();
    let mut options = FilesOptions::default();
    options.formats = vec![Arc::new(TextFormat::new(TextOptions::default()))];
    let rows: Arc<dyn Source> = Arc::new(Files::open([&text], &options).unwrap());
    fs::remove_file(lake.join("other.parquet")).unwrap();
    let mut to = NewParquetFile::new(lake.join("rows.parquet"), ParquetOptions::default()).unwrap();
    copy(&rows, &mut to, &CopyOptions::default(), &mut |_| {}).unwrap();
    expect_misuse("copy files of either kind by themselves");
    let mut options = FilesOptions::default();
    options.union = true;
    assert!(Files::open([&lake], &options).unwrap().has_lost_writes());
    assert!(!Files::open([node.file(&files[0])], &options).unwrap().has_lost_writes());
}

/// Files of SSTables of which nothing says whose they are: other columns may be those of another table.
#[test]
fn files_of_nobody_are_of_one_table_if_that_is_said() {
    let node = flushed();
    let folder = tempfile::tempdir().unwrap();
    let lake = folder.path().join("lake");
    fs::create_dir(&lake).unwrap();
    for (name, stem) in [("a", "oa-2-big-"), ("b", "nb-9-big-")] {
        let plain = folder.path().join(name);
        fs::create_dir(&plain).unwrap();
        for entry in fs::read_dir(node.table(TABLE)).unwrap() {
            let entry = entry.unwrap();
            if entry.file_name().to_str().unwrap().starts_with(stem) {
                fs::copy(entry.path(), plain.join(entry.file_name())).unwrap();
            }
        }
        let mut options = SstablesOptions::default();
        options.mapping = MutationMapping::Full;
        let writes: Arc<dyn Source> = Arc::new(Sstables::open(&plain, &options).unwrap());
        let mut to =
            NewParquetFile::new(lake.join(format!("{name}.parquet")), ParquetOptions::default()).unwrap();
        copy(&writes, &mut to, &CopyOptions::default(), &mut |_| {}).unwrap();
    }
    let error = full_files(&lake).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
    assert!(error.message().contains("not both say which table they are of"), "{error}");
    let mut options = FilesOptions::default();
    options.union = true;
    let all = FullFiles::open([&lake], &options).unwrap().unwrap();
    assert!(all.table().key.is_some());
}
