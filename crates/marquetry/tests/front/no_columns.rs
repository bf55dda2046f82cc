//! Rows without columns: a number of rows, wherever they are from and wherever they go.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchOptions};
use arrow_schema::Schema as ArrowSchema;
use marquetry::base::ErrorKind;
use marquetry::tables::parquet::NewParquetFile;
use marquetry::tables::text::{Format, NewTextFile, TextOutputOptions};
use marquetry::tables::{CopyOptions, Destination, Source, copy};
use marquetry::{Reader, Result};

fn nothing(rows: usize) -> RecordBatch {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(ArrowSchema::empty()), vec![], &options).unwrap()
}

fn verified(reader: &Reader, to: &mut dyn Destination) -> Result<u64> {
    let mut options = CopyOptions::default();
    options.verify = true;
    let source: Arc<dyn Source> = Arc::clone(reader.source());
    copy(&source, to, &options, &mut |_| {}).map(|copied| copied.verified)
}

fn rows(reader: &Reader) -> usize {
    reader.batches().unwrap().map(|batch| batch.unwrap().rows).sum()
}

/// 20,005 rows of nothing.
fn file(path: &Path) {
    let mut writer = marquetry::create_arrow(path, &ArrowSchema::empty()).unwrap();
    for rows in [5, 0, 20_000] {
        writer.write_arrow(&nothing(rows)).unwrap();
    }
    assert_eq!(writer.finish().unwrap().rows, 20_005);
}

#[test]
fn they_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nothing.parquet");
    file(&path);
    let reader = marquetry::open(&path).unwrap();
    assert_eq!((reader.rows(), reader.names().len(), rows(&reader)), (Some(20_005), 0, 20_005));
    assert_eq!(rows(&marquetry::open(&path).unwrap().limit(9_000)), 9_000);

    let out = reader.record_batches().unwrap().map(|batch| batch.unwrap().num_rows()).sum::<usize>();
    assert_eq!(out, 20_005);
    let batches = [3, 0, 9_000].map(|rows| Ok(nothing(rows)));
    let incoming =
        Reader::of_record_batches("rows", RecordBatchIterator::new(batches, nothing(0).schema())).unwrap();
    assert_eq!(rows(&incoming), 9_003);
}

#[test]
fn they_are_copied() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nothing.parquet");
    file(&path);
    let reader = marquetry::open(&path).unwrap();
    let copy = folder.path().join("copy.parquet");
    assert_eq!(verified(&reader, &mut NewParquetFile::new(&copy, Default::default()).unwrap()), Ok(20_005));
    assert_eq!(rows(&marquetry::open(&copy).unwrap()), 20_005);

    let lines = folder.path().join("nothing.jsonl");
    let mut to = NewTextFile::new(&lines, Format::JsonLines, TextOutputOptions::default()).unwrap();
    assert_eq!(verified(&reader, &mut to), Ok(20_005));
    assert_eq!(std::fs::read_to_string(&lines).unwrap(), "{}\n".repeat(20_005));
    let again = marquetry::open(&lines).unwrap();
    assert_eq!((again.names().len(), rows(&again)), (0, 20_005));

    // A line of CSV has a field.
    for (name, format) in [("a.csv", Format::Csv), ("a.tsv", Format::Tsv)] {
        let mut to =
            NewTextFile::new(folder.path().join(name), format, TextOutputOptions::default()).unwrap();
        let error = verified(&reader, &mut to).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conversion, "{error}");
        assert!(error.message().ends_with("SV cannot hold rows without columns; JSON lines can"), "{error}");
    }
}

#[test]
fn they_are_rows_of_a_table_of_many_files() {
    let folder = tempfile::tempdir().unwrap();
    for day in ["day=1", "day=2"] {
        std::fs::create_dir(folder.path().join(day)).unwrap();
        file(&folder.path().join(day).join("nothing.parquet"));
    }
    let all = marquetry::open(folder.path()).unwrap();
    assert_eq!((all.names(), rows(&all)), (vec!["day"], 40_010));
    // Of any table no columns can be taken.
    let none = marquetry::open(folder.path()).unwrap().columns::<&str>([]).unwrap();
    assert_eq!((none.names().len(), rows(&none)), (0, 40_010));
}
