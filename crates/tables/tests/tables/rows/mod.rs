//! What is checked of rows on their way: their order, all that does not fit, and which row an error means.

mod mismatches;
mod numbers;
mod order;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry_base::{Error, Limits, Object, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_io::blocking::NewFile;
use marquetry_io::{ByteSinks, drive_into};
use marquetry_parquet::batch::{Batch, Values};
use marquetry_parquet::format::SortingColumn;
use marquetry_parquet::schema::{FieldDef, FieldType, LogicalType, PhysicalType, Schema};
use marquetry_parquet::write::{Fed, FileWriter, WriteOptions};
use marquetry_tables::files::{Files, FilesOptions, ParquetFile};
use marquetry_tables::{Batches, CopyOptions, Piece, PieceOptions, Source, Table};

/// A table whose pieces are objects of their own, each with rows `(n, text)`.
struct Given {
    table: Table,
    names: Vec<Piece>,
    rows: Vec<Vec<(i32, &'static str)>>,
}

impl Given {
    fn new(rows: Vec<Vec<(i32, &'static str)>>) -> Given {
        let names = (0..rows.len()).map(|number| Piece::of(format!("piece {number}"))).collect();
        Given { table: Table::new("given", schema()), names, rows }
    }

    /// The same, which claims an order.
    fn ordered_by(mut self, order: &[SortingColumn]) -> Given {
        self.table.order = order.to_vec();
        self
    }

    fn source(self) -> Arc<dyn Source> {
        Arc::new(self)
    }
}

fn schema() -> Arc<Schema> {
    let leaf =
        |name: &str, physical, logical| FieldDef::new(name, FieldType::Leaf(physical, logical)).required();
    let fields = [
        leaf("n", PhysicalType::Int32, None),
        leaf("text", PhysicalType::ByteArray, Some(LogicalType::String)),
    ];
    Arc::new(Schema::of_fields(&fields).unwrap())
}

impl Source for Given {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        &self.names
    }

    fn open(&self, piece: usize, _: &PieceOptions) -> Result<Box<dyn Batches>> {
        Ok(Box::new(Rows { rows: self.rows[piece].clone(), next: 0 }))
    }
}

struct Rows {
    rows: Vec<(i32, &'static str)>,
    next: usize,
}

impl Batches for Rows {
    /// Two rows at a time.
    fn next(&mut self) -> Result<Option<Batch>> {
        let rows = &self.rows[self.next..self.rows.len().min(self.next + 2)];
        if rows.is_empty() {
            return Ok(None);
        }
        self.next += rows.len();
        batch(rows).map(Some)
    }
}

fn batch(rows: &[(i32, &'static str)]) -> Result<Batch> {
    let numbers: Vec<i32> = rows.iter().map(|row| row.0).collect();
    let texts: Values = rows.iter().map(|row| row.1).collect();
    Batch::of_values([numbers.into(), texts])
}

/// A file as the engine writes it: it takes an order on trust.
fn written(path: &Path, schema: Arc<Schema>, batch: Batch, order: &[SortingColumn]) -> PathBuf {
    const FILE: Object = Object(0);
    let options = WriteOptions { sorting_columns: order.to_vec(), ..WriteOptions::default() };
    let mut writer = FileWriter::new(FILE, schema, Arc::new(StandardCodecs::default()), options).unwrap();
    let mut file = NewFile::create(path).unwrap();
    assert_eq!(writer.feed(batch).unwrap(), Fed::Taken);
    writer.finish();
    while drive_into(&mut writer, &mut ByteSinks::new().with(FILE, &mut file)).unwrap().is_some() {}
    file.commit().unwrap();
    path.to_path_buf()
}

fn files<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Arc<dyn Source> {
    Arc::new(Files::open(paths, &FilesOptions::default()).unwrap())
}

/// The order that each row group of a file states.
fn stated(path: &Path) -> Vec<Vec<SortingColumn>> {
    let file = ParquetFile::open(path, Limits::DEFAULT).unwrap();
    file.metadata().row_groups.iter().map(|group| group.sorting_columns.clone()).collect()
}

fn options(set: impl FnOnce(&mut CopyOptions)) -> CopyOptions {
    let mut options = CopyOptions::default();
    set(&mut options);
    options
}

/// The object and the row that an error names.
fn place(error: &Error) -> (Option<&str>, Option<u64>) {
    (error.place().object.as_deref(), error.place().row)
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}
