//! Files that are opened for some of their columns are the tables that they are when all is opened.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use marquetry_base::{Bytes, Result};
use marquetry_io::store::{Found, LocalFiles, NewObject, NewObjects, ObjectStream, Store};
use marquetry_io::{ByteSource, ObjectVersion};
use marquetry_parquet::batch::{Batch, Values};
use marquetry_parquet::format::KeyValue;
use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};
use marquetry_tables::files::{Files, FilesOptions};
use marquetry_tables::parquet::{NewParquetFile, ParquetOptions};
use marquetry_tables::{
    ColumnPath, Destination, Filter, Reading, ReadingOptions, Source, Table, filter, project,
};

/// The local file system, of which is counted what is read.
#[derive(Debug, Default)]
struct Counted(Arc<AtomicU64>);

struct CountedSource(Box<dyn ByteSource + Send>, Arc<AtomicU64>);

impl ByteSource for CountedSource {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn length(&self) -> Result<u64> {
        self.0.length()
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        self.1.fetch_add(range.end - range.start, Ordering::Relaxed);
        self.0.read(range)
    }
}

impl Store for Counted {
    fn look(&self, path: &Path) -> Result<Found> {
        LocalFiles.look(path)
    }

    fn find(&self, path: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>> {
        LocalFiles.find(path, extensions)
    }

    fn open(&self, path: &Path) -> Result<(Box<dyn ByteSource + Send>, ObjectVersion)> {
        let (source, version) = LocalFiles.open(path)?;
        Ok((Box::new(CountedSource(source, Arc::clone(&self.0))), version))
    }

    fn stream(&self, path: &Path, is_cancelled: Box<dyn Fn() -> bool + Send>) -> Result<ObjectStream> {
        LocalFiles.stream(path, is_cancelled)
    }

    fn create(&self, path: &Path, replaces: bool) -> Result<Box<dyn NewObject>> {
        LocalFiles.create(path, replaces)
    }

    fn create_directory(
        &self,
        path: &Path,
        replaces: bool,
        extensions: &'static [&'static str],
    ) -> Result<Box<dyn NewObjects>> {
        LocalFiles.create_directory(path, replaces, extensions)
    }
}

const COLUMNS: usize = 1500;
const ROWS: i64 = 40;

fn value(column: usize, row: i64) -> i64 {
    row * 10 + i64::try_from(column % 10).unwrap()
}

/// A group, columns `c1`, `c2`, …, and one called as another, but for upper case.
fn write(path: &Path, columns: usize, locator: bool) {
    let leaf = |name: String| FieldDef::new(name, FieldType::Leaf(PhysicalType::Int64, None)).required();
    let group = vec![leaf("lat".to_owned()), leaf("lon".to_owned())];
    let mut fields = vec![FieldDef::new("place", FieldType::Struct(group, None)).required()];
    fields.extend((2..columns).map(|column| leaf(format!("c{column}"))));
    fields.push(leaf("C7".to_owned()));
    let mut options = ParquetOptions::default();
    options.write.locator = locator;
    options.write.row_group_rows = 10;
    options.write.key_values = vec![KeyValue { key: "pandas".to_owned(), value: Some("of all".into()) }];
    let mut file = NewParquetFile::new(path, options).unwrap();
    let table = Table::new("a table", Arc::new(Schema::of_fields(&fields).unwrap()));
    file.begin(&table).unwrap();
    let of = |column: usize| Values::from((0..ROWS).map(|row| value(column, row)).collect::<Vec<_>>());
    file.write(Batch::of_values((0..=columns).map(of)).unwrap()).unwrap();
    file.finish().unwrap();
    file.commit().unwrap();
}

fn options(needed: Option<&str>) -> (FilesOptions, Arc<AtomicU64>) {
    let (store, mut options) = (Counted::default(), FilesOptions::default());
    let read = Arc::clone(&store.0);
    options.store = Arc::new(store);
    options.needed = needed.map(|list| ColumnPath::parse_list(list).unwrap());
    (options, read)
}

/// What a table is, and its rows; or what is wrong with it.
fn rows(files: &[PathBuf], needed: Option<&str>, columns: &str, predicate: Option<&str>) -> (String, u64) {
    let (options, read) = options(needed);
    let rows = || -> Result<String> {
        let mut source: Arc<dyn Source> = Arc::new(Files::open(files, &options)?);
        if let Some(predicate) = predicate {
            source = filter(&source, &Filter::new(predicate))?;
        }
        let source = project(&source, &ColumnPath::parse_list(columns)?)?;
        let table = source.table();
        let mut text = format!(
            "{:?}\n{:?}\n{:?} {:?} {:?} {:?}\n",
            table.schema, table.key_values, table.order, table.rows, table.row_groups, table.bytes
        );
        let mut reading = Reading::new(source, ReadingOptions::default())?;
        while let Some((_, batch)) = reading.next_batch()? {
            text += &format!("{:?}\n", batch.columns.iter().map(|column| &column.values).collect::<Vec<_>>());
        }
        Ok(text)
    };
    let text = rows().unwrap_or_else(|error| format!("{:?}: {error}", error.kind()));
    (text, read.load(Ordering::Relaxed))
}

#[test]
fn rows_and_errors_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    write(&file("plain.parquet"), COLUMNS, false);
    write(&file("located.parquet"), COLUMNS, true);
    write(&file("narrow.parquet"), 9, false);
    let one = [file("plain.parquet")];
    let located = [file("located.parquet")];
    let both = [file("plain.parquet"), file("located.parquet")];
    let differing = [file("plain.parquet"), file("narrow.parquet")];
    for (columns, predicate, needed) in [
        ("c3", None, "c3"),
        ("c1400, place.lon", None, "place.lon, c1400"),
        ("place", Some("place.lat > 100 AND c9 < 300"), "place, c9"),
        ("c7, C7", None, "C7, c7"),
        ("C7", None, "c7"),
        ("c12", Some("C700 = 20"), "c12, C700"),
        ("c12", Some("\"c13\" IN (3, 33)"), "c12, c13"),
        // What is missing, or wrong.
        ("c9, nothing", None, "c9, nothing"),
        ("c9", Some("nothing = 1"), "c9, nothing"),
        ("c9", Some("c10 = 'a'"), "c9, c10"),
        ("place.alt", None, "place.alt"),
        ("c9.x", None, "c9.x"),
        ("c8#2", None, "c8#2"),
        // What is asked for after all.
        ("c99", None, "c98"),
    ] {
        for files in [&one[..], &located, &both, &differing] {
            let (expected, _) = rows(files, None, columns, predicate);
            let (found, _) = rows(files, Some(needed), columns, predicate);
            // Columns that differ and nobody needs are no hindrance.
            if !(files.len() == 2 && expected.contains("which") && found.contains("Int64")) {
                assert_eq!(found, expected, "{columns}, {predicate:?} of {files:?}");
            }
        }
    }
    let all = (2..9).map(|column| format!("c{column}")).collect::<Vec<_>>().join(", ");
    let all = format!("place, {all}, C7");
    let narrow = [file("narrow.parquet")];
    let (expected, _) = rows(&narrow, None, &all, None);
    assert!(expected.contains("of all"), "all columns keep what is said of them");
    assert_eq!(rows(&narrow, Some(&all), &all, None).0, expected);
    assert!(!rows(&narrow, Some("c2"), "c2", None).0.contains("of all"));
}

#[test]
fn a_locator_saves_reading_the_footer() {
    let folder = tempfile::tempdir().unwrap();
    let file = [folder.path().join("located.parquet")];
    write(&file[0], COLUMNS, true);
    let (_, whole) = rows(&file, None, "c3, c900", None);
    let (_, some) = rows(&file, Some("c3, c900"), "c3, c900", None);
    assert!(some < whole / 3, "{some} bytes of {whole}");
}
