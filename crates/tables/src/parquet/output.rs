//! A Parquet file that goes to any writer.

use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use marquetry_base::{Bytes, Error, Faults, Result};
use marquetry_io::ByteSink;
use marquetry_parquet::batch::Batch;

use super::ParquetOptions;
use super::open_file::{OpenFile, Shape};
use crate::gather::not_written;
use crate::stage::{Guard, Stage};
use crate::{Cancel, Destination, Table, Wants, Written};

/// A Parquet file to any writer: standard output, a `Vec<u8>`, a socket. For files there is
/// [`NewParquetFile`](super::NewParquetFile).
///
/// What is written cannot be taken back: after an error, or if dropped before it is finished, the output is the
/// beginning of a file, which no reader takes for a complete one. Pages that are too much for memory wait in the
/// system's temporary directory.
///
/// ```
/// use std::sync::Arc;
///
/// use marquetry_parquet::batch::Batch;
/// use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};
/// use marquetry_tables::parquet::{ParquetOptions, ParquetOutput};
/// use marquetry_tables::{Destination, Table};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let mut bytes = Vec::new();
/// let mut trips = ParquetOutput::new(&mut bytes, ParquetOptions::default())?;
///
/// // What `copy` does with the table of its source, and then with its rows:
/// let schema = Schema::of_fields(&[FieldDef::new("id", FieldType::Leaf(PhysicalType::Int64, None))])?;
/// trips.begin(&Table::new("trips.csv", Arc::new(schema)))?;
/// trips.write(Batch::of_values([vec![1_i64, 2].into()])?)?;
/// trips.finish()?;
/// drop(trips);
/// assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
/// # Ok(())
/// # }
/// ```
pub struct ParquetOutput<W: Write> {
    options: ParquetOptions,
    guard: Guard,
    cancel: Cancel,
    threads: usize,
    /// Until it is begun.
    writer: Option<Appending<W>>,
    open: Option<Box<OpenFile<Appending<W>>>>,
    name: String,
}

impl<W: Write> ParquetOutput<W> {
    /// A file to this writer. Nothing is written yet.
    ///
    /// # Errors
    ///
    /// `Misuse` for invalid options.
    pub fn new(writer: W, options: ParquetOptions) -> Result<ParquetOutput<W>> {
        options.check()?;
        let (name, writer) = ("a Parquet file".to_owned(), Some(Appending(writer)));
        Ok(ParquetOutput {
            options,
            guard: Guard::default(),
            cancel: Cancel::new(),
            threads: 1,
            writer,
            open: None,
            name,
        })
    }

    /// The writer's name in messages: `standard output`.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> ParquetOutput<W> {
        self.name = name.into();
        self
    }

    fn begin_file(&mut self, table: &Table) -> Result<Wants> {
        let mut faults = Faults::default();
        let mut options = self.options.of_table(&table.schema, table, &mut faults);
        if !table.order.is_empty() {
            options.sorting_columns.clone_from(&table.order);
        }
        let shape = Shape::new(Arc::clone(&table.schema), options, faults, (self.threads, &self.cancel))?;
        let writer = self.writer.take().ok_or_else(|| Error::internal("a writer that is taken twice"))?;
        self.open = Some(Box::new(OpenFile::new(&shape, writer, None)?));
        Ok(Wants::default())
    }

    fn open(&mut self) -> Result<&mut OpenFile<Appending<W>>> {
        self.open.as_deref_mut().ok_or_else(|| Error::internal("a file that is not open"))
    }
}

impl<W: Write + Send> Destination for ParquetOutput<W> {
    fn name(&self) -> &str {
        &self.name
    }

    fn cancelled_by(&mut self, cancel: &Cancel) {
        self.cancel = cancel.clone();
    }

    fn set_threads(&mut self, threads: usize) {
        self.threads = threads;
    }

    fn begin(&mut self, table: &Table) -> Result<Wants> {
        self.guard.expect(Stage::New)?;
        let begun = self.begin_file(table);
        self.guard.then(Stage::Begun, begun)
    }

    fn write(&mut self, batch: Batch) -> Result<()> {
        self.guard.expect(Stage::Begun)?;
        let written = self.open().and_then(|open| open.write(batch));
        self.guard.then(Stage::Begun, written)
    }

    fn drain(&mut self) -> Result<()> {
        self.guard.expect(Stage::Begun)?;
        let drained = self.open().and_then(OpenFile::drain);
        self.guard.then(Stage::Begun, drained)
    }

    fn finish(&mut self) -> Result<Written> {
        self.guard.expect(Stage::Begun)?;
        let written = self.open().and_then(|open| {
            open.finish()?;
            open.file.0.flush().map_err(not_written)?;
            Ok(Written { files: 0, ..open.written()? })
        });
        self.guard.then(Stage::Finished, written)
    }

    fn commit(&mut self) -> Result<()> {
        self.guard.expect(Stage::Finished)?;
        self.guard.then(Stage::Committed, Ok(()))
    }
}

/// A writer, as the end of an object.
struct Appending<W>(W);

impl<W: Write> ByteSink for Appending<W> {
    /// [`copy`](crate::copy) adds the destination's.
    fn name(&self) -> &'static str {
        ""
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.write_all(bytes).map_err(not_written)
    }

    fn read(&mut self, _: Range<u64>) -> Result<Bytes> {
        Err(Error::internal("a writer cannot be read"))
    }
}
