//! Columns and fields of the same name: each can be named, and none is lost.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, RecordBatchIterator, StringArray, StructArray};
use arrow_schema::{DataType, Field, Fields, Schema as ArrowSchema};
use marquetry::tables::parquet::{NewParquetDirectory, NewParquetFile};
use marquetry::tables::text::{Format, NewTextFile, TextOutputOptions};
use marquetry::tables::{ColumnPath, CopyOptions, Destination, DiffOptions, SortBy, Source, copy, diff};
use marquetry::{Reader, Result};

/// Three rows of `a` BIGINT, `a` text, `s` with two fields `x`, and `a#2` BIGINT.
fn rows() -> RecordBatch {
    let numbers = |first: i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(first..first + 3)) };
    let words: ArrayRef = Arc::new(StringArray::from_iter_values(["z", "y", "x"]));
    let field = |name: &str, values: &ArrayRef| Field::new(name, values.data_type().clone(), true);
    let inner = [numbers(10), numbers(20)];
    let fields: Fields = inner.iter().map(|values| field("x", values)).collect();
    let group: ArrayRef = Arc::new(StructArray::new(fields, inner.to_vec(), None));
    let columns = [numbers(1), words, group, numbers(30)];
    let names = ["a", "a", "s", "a#2"];
    let fields: Fields = names.iter().zip(&columns).map(|(name, values)| field(name, values)).collect();
    RecordBatch::try_new(Arc::new(ArrowSchema::new(fields)), columns.to_vec()).unwrap()
}

fn file(folder: &Path, name: &str, batch: &RecordBatch) -> PathBuf {
    let path = folder.join(name);
    let mut writer = marquetry::create_arrow(&path, &batch.schema()).unwrap();
    writer.write_arrow(batch).unwrap();
    writer.finish().unwrap();
    path
}

/// The rows as JSON lines.
fn json(reader: &Reader) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    let mut text = NewTextFile::new(&path, Format::JsonLines, TextOutputOptions::default()).unwrap();
    copied(reader, &mut text, &CopyOptions::default()).unwrap();
    std::fs::read_to_string(path).unwrap()
}

fn copied(reader: &Reader, to: &mut dyn Destination, options: &CopyOptions) -> Result<()> {
    let source: Arc<dyn Source> = Arc::clone(reader.source());
    copy(&source, to, options, &mut |_| {}).map(drop)
}

fn verified() -> CopyOptions {
    let mut options = CopyOptions::default();
    options.verify = true;
    options
}

#[test]
fn each_column_can_be_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "twice.parquet", &rows());
    let all = marquetry::open(&path).unwrap();
    // The column that is really called a#2 keeps its name.
    assert_eq!(all.names(), ["a", "a#3", "s", "a#2"]);
    let first = json(&all).lines().next().map(str::to_owned);
    assert_eq!(first.as_deref(), Some(r#"{"a":1,"a#3":"z","s":{"x":10,"x#2":20},"a#2":30}"#));
    for (columns, row) in [
        ("a", r#"{"a":1}"#),
        ("a#2", r#"{"a#2":30}"#),
        ("a#3", r#"{"a#3":"z"}"#),
        ("A#3,a", r#"{"a#3":"z","a":1}"#),
        ("s.x#2", r#"{"s":{"x#2":20}}"#),
        ("s.x", r#"{"s":{"x":10}}"#),
    ] {
        let some = marquetry::open(&path).unwrap().columns(columns.split(",")).unwrap();
        assert_eq!(json(&some).lines().next(), Some(row), "{columns}");
    }
    let error = marquetry::open(&path).unwrap().columns(["a#4"]).map(drop).unwrap_err();
    assert!(error.message().contains(r#"no column "a#4"; its columns are a, a#3, s, a#2"#), "{error}");
}

#[test]
fn copies_of_parquet_keep_the_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "twice.parquet", &rows());
    let all = marquetry::open(&path).unwrap();
    let copy = folder.path().join("copy.parquet");
    let mut to = NewParquetFile::new(&copy, Default::default()).unwrap();
    let mut options = verified();
    options.sort = SortBy::resolve(&SortBy::parse_list("a#3").unwrap(), all.schema()).unwrap();
    copied(&all, &mut to, &options).unwrap();
    let in_file = |path: &Path| -> Vec<String> {
        let schema = marquetry::open(path).unwrap().record_batches().unwrap();
        use arrow_array::RecordBatchReader;
        schema.schema().fields().iter().map(|field| field.name().clone()).collect()
    };
    assert_eq!(in_file(&copy), ["a", "a", "s", "a#2"]);
    let batches: Vec<RecordBatch> =
        marquetry::open(&copy).unwrap().record_batches().unwrap().map(|batch| batch.unwrap()).collect();
    let numbers = batches[0].column(0).as_any().downcast_ref::<Int64Array>().unwrap();
    assert_eq!(numbers.values(), &[3, 2, 1], "sorted by the second a");
    let group = batches[0].column(2).data_type();
    assert!(matches!(group, DataType::Struct(fields) if fields.iter().all(|field| field.name() == "x")));

    // Where columns are chosen by name, they are called so.
    let some = marquetry::open(&path).unwrap().columns(["a#3", "a"]).unwrap();
    let chosen = folder.path().join("some.parquet");
    copied(&some, &mut NewParquetFile::new(&chosen, Default::default()).unwrap(), &verified()).unwrap();
    assert_eq!(in_file(&chosen), ["a#3", "a"]);
}

#[test]
fn other_destinations_get_names_that_differ() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), "twice.parquet", &rows());
    let flat = || marquetry::open(&path).unwrap().columns(["a", "a#3", "a#2"]).unwrap();
    let csv = folder.path().join("rows.csv");
    let mut to = NewTextFile::new(&csv, Format::Csv, TextOutputOptions::default()).unwrap();
    copied(&flat(), &mut to, &verified()).unwrap();
    assert_eq!(std::fs::read_to_string(csv).unwrap().lines().next(), Some("a,a#3,a#2"));
    let lines = folder.path().join("rows.jsonl");
    let mut to = NewTextFile::new(&lines, Format::JsonLines, TextOutputOptions::default()).unwrap();
    copied(&marquetry::open(&path).unwrap(), &mut to, &verified()).unwrap();

    let mut options = marquetry::tables::parquet::DirectoryOptions::default();
    options.partition_by = ColumnPath::parse_list("a#3").unwrap();
    let out = folder.path().join("out");
    let mut to = NewParquetDirectory::new(&out, options).unwrap();
    copied(&marquetry::open(&path).unwrap(), &mut to, &verified()).unwrap();
    assert!(out.join("a%233=z").is_dir());
    assert_eq!(marquetry::open(&out).unwrap().names(), ["a", "s", "a#2", "a#3"]);
}

#[test]
fn several_files_and_other_sources() {
    let folder = tempfile::tempdir().unwrap();
    let one = file(folder.path(), "1.parquet", &rows());
    // The second column of a name is the second in each file, wherever it is.
    let other = rows().project(&[0, 3, 1]).unwrap();
    let two = file(folder.path(), "2.parquet", &other);
    let mut options = marquetry::SourceOptions::default();
    options.files.union = true;
    let both = marquetry::open_all([&one, &two], &options).unwrap();
    assert_eq!(both.names(), ["a", "a#3", "s", "a#2"]);
    let lines = json(&both);
    assert_eq!(lines.lines().nth(3), Some(r#"{"a":1,"a#3":"z","s":null,"a#2":30}"#));

    let [one, two] = [one, two].map(|path| Arc::clone(marquetry::open(path).unwrap().source()));
    let found = diff([&one, &two], &DiffOptions::default(), &mut |_| {}).unwrap();
    assert_eq!(
        (found.rows.compared, found.values.len(), &found.schema.only),
        (3, 0, &[vec!["s".to_owned()], vec![]])
    );

    let batches = RecordBatchIterator::new([Ok(rows())], rows().schema());
    let incoming = Reader::of_record_batches("rows", batches).unwrap();
    assert_eq!(incoming.names(), ["a", "a#3", "s", "a#2"]);
    assert!(json(&incoming).starts_with(r#"{"a":1,"a#3":"z","s":{"x":10,"x#2":20},"a#2":30}"#));
}
