//! A Parquet file that is being written.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Bytes, Error, ErrorKind, Faults, Object, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_io::blocking::SpillFile;
use marquetry_io::store::NewObject;
use marquetry_io::{ByteSink, ByteSinks, drive_into_while};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::schema::Schema;
use marquetry_parquet::write::{Fed, FileWriter, WriteOptions};

use crate::row_order::RowOrder;
use crate::{Cancel, Written};

/// The file that is written, and the one in which pages wait that are too much for memory.
const FILE: Object = Object(0);
pub(super) const SPILL: Object = Object(1);

/// What all files of a destination have in common.
#[derive(Debug)]
pub(super) struct Shape {
    schema: Arc<Schema>,
    options: WriteOptions,
    cancel: Cancel,
}

impl Shape {
    /// Files with these columns. An order of their rows is stated as far as it can be checked.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the options, after what the caller has found.
    pub(super) fn new(
        schema: Arc<Schema>,
        mut options: WriteOptions,
        mut faults: Faults,
        cancel: &Cancel,
    ) -> Result<Shape> {
        let order = faults.take(RowOrder::new(&schema, &options.sorting_columns));
        options.sorting_columns = order.map(|order| order.columns().collect()).unwrap_or_default();
        // A column at fault would be found a second time.
        if faults.is_empty() {
            for leaf in 0..schema.leaves().len() {
                faults.take(options.of(leaf).check_leaf(&schema, leaf, &options.limits));
            }
        }
        let shape = Shape { schema, options, cancel: cancel.clone() };
        if faults.is_empty() {
            faults.take(shape.writer());
        }
        faults.into_result().map(|()| shape)
    }

    pub(super) fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    fn writer(&self) -> Result<FileWriter> {
        let codecs = Arc::new(StandardCodecs::default());
        FileWriter::new(FILE, Arc::clone(&self.schema), codecs, self.options.clone())
    }
}

/// A file of a store.
pub(super) type OpenObject = OpenFile<Box<dyn NewObject>>;

pub(super) struct OpenFile<S> {
    writer: FileWriter,
    pub(super) file: S,
    spill: SpillFile,
    /// The order that the rows are said to have, while they have it.
    order: Option<RowOrder>,
    rows: u64,
    bytes: u64,
    cancel: Cancel,
}

impl<S: ByteSink> OpenFile<S> {
    /// A file of which nothing is written yet. What is too much for memory waits beside `scratch`, or in the system's
    /// temporary directory.
    pub(super) fn new(shape: &Shape, file: S, scratch: Option<&Path>) -> Result<OpenFile<S>> {
        let (writer, spill) = (shape.writer()?, SpillFile::create(scratch)?);
        let order = Some(RowOrder::new(&shape.schema, &shape.options.sorting_columns)?);
        Ok(OpenFile { writer, file, spill, order, rows: 0, bytes: 0, cancel: shape.cancel.clone() })
    }

    fn drive(&mut self) -> Result<bool> {
        let mut file = Counting { file: &mut self.file, bytes: &mut self.bytes };
        let mut sinks =
            ByteSinks::<&mut dyn ByteSink>::new().with(FILE, &mut file).with(SPILL, &mut self.spill);
        Ok(drive_into_while(&mut self.writer, &mut sinks, || self.cancel.check())?.is_some())
    }

    /// Writes rows.
    pub(super) fn write(&mut self, batch: Batch) -> Result<()> {
        self.rows += u64_of(batch.rows);
        if let Some(order) = &mut self.order
            && order.first_misplaced(&batch)?.is_some()
        {
            self.writer.withdraw_order();
            self.order = None;
        }
        let Fed::Taken = self.writer.feed(batch)? else {
            return Err(Error::internal("a writer that asked for rows has no room for them"));
        };
        // All of the batch is written now: what is wrong with it is the caller's to know while it knows where it is from,
        // and nothing of it is kept. The writer numbers rows as in its file, which is what its limits are about.
        let is_about_file = |error: &Error| error.kind() == ErrorKind::LimitExceeded;
        match self.drive().map_err(|error| if is_about_file(&error) { error } else { error.without_row() })? {
            true => Ok(()),
            false => Err(Error::internal("a writer that ends before its rows")),
        }
    }

    /// Writes the end.
    pub(super) fn finish(&mut self) -> Result<()> {
        self.writer.finish();
        while self.drive()? {}
        Ok(())
    }

    /// Rows so far.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes that it has, about, while it is written.
    pub(super) fn size(&self) -> u64 {
        self.bytes + self.writer.held()
    }

    /// What was written, at the end.
    pub(super) fn written(&self) -> Written {
        let row_groups = u64_of(self.writer.row_groups());
        Written { rows: self.rows, files: 1, bytes: self.bytes, row_groups, ..Written::default() }
    }
}

/// Counts what is appended.
struct Counting<'a, S> {
    file: &'a mut S,
    bytes: &'a mut u64,
}

impl<S: ByteSink> ByteSink for Counting<'_, S> {
    fn name(&self) -> &str {
        self.file.name()
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        *self.bytes += u64_of(bytes.len());
        self.file.append(bytes)
    }

    fn read(&mut self, range: Range<u64>) -> Result<Bytes> {
        self.file.read(range)
    }
}
