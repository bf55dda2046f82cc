//! A Parquet file that is being written.

use std::ops::Range;
use std::path::{Path, PathBuf};
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

use super::crew::{Crew, CrewWriter};
use crate::row_order::RowOrder;
use crate::{Cancel, Written};

/// The file that is written, and the one in which pages wait that are too much for memory.
const FILE: Object = Object(0);
pub(super) const SPILL: Object = Object(1);

/// What all files of a destination have in common.
#[derive(Clone)]
pub(super) struct Shape {
    schema: Arc<Schema>,
    options: Arc<WriteOptions>,
    cancel: Cancel,
    crew: Arc<Crew>,
}

impl Shape {
    /// Files with these columns, written by as many threads. An order of their rows is stated as far as it can be checked.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the options, after what the caller has found.
    pub(super) fn new(
        schema: Arc<Schema>,
        mut options: WriteOptions,
        mut faults: Faults,
        (threads, cancel): (usize, &Cancel),
    ) -> Result<Shape> {
        let order = faults.take(RowOrder::new(&schema, &options.sorting_columns));
        options.sorting_columns = order.map(|order| order.columns().collect()).unwrap_or_default();
        // A column at fault would be found a second time.
        if faults.is_empty() {
            for leaf in 0..schema.leaves().len() {
                faults.take(options.of(leaf).check_leaf(&schema, leaf, &options.limits));
            }
        }
        let crew = Arc::new(Crew::new(threads, cancel));
        let options = Arc::new(options);
        let shape = Shape { schema, options, cancel: cancel.clone(), crew };
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
        FileWriter::new(FILE, Arc::clone(&self.schema), codecs, (*self.options).clone())
    }

    /// The same, with row groups of so many bytes at most.
    pub(super) fn with_row_group_bytes(&self, most: u64) -> Shape {
        let mut options = (*self.options).clone();
        options.row_group_bytes = options.row_group_bytes.min(most);
        Shape { options: Arc::new(options), ..self.clone() }
    }

    /// What is asked for.
    pub(super) fn options(&self) -> &WriteOptions {
        &self.options
    }
}

/// A file of a store.
pub(super) type OpenObject = OpenFile<Box<dyn NewObject>>;

pub(super) struct OpenFile<S> {
    writer: CrewWriter,
    columns: usize,
    pub(super) file: S,
    spill: Spill,
    /// The order that the rows are said to have, while they have it.
    order: Option<RowOrder>,
    rows: u64,
    bytes: u64,
    /// The row of its error, counted in it.
    failed_row: Option<u64>,
    cancel: Cancel,
}

impl<S: ByteSink> OpenFile<S> {
    /// A file of which nothing is written yet. What is too much for memory waits beside `scratch`, or in the system's
    /// temporary directory.
    pub(super) fn new(shape: &Shape, file: S, scratch: Option<&Path>) -> Result<OpenFile<S>> {
        OpenFile::begin(shape, file, scratch, true)
    }

    /// The same for one of several files that are open at a time.
    pub(super) fn of_many(shape: &Shape, file: S, scratch: Option<&Path>) -> Result<OpenFile<S>> {
        OpenFile::begin(shape, file, scratch, false)
    }

    fn begin(shape: &Shape, file: S, scratch: Option<&Path>, is_only: bool) -> Result<OpenFile<S>> {
        let writer = shape.crew.begin(shape.writer()?, is_only)?;
        let spill = Spill { scratch: scratch.map(Path::to_path_buf), file: None };
        let order = Some(RowOrder::new(&shape.schema, &shape.options.sorting_columns)?);
        let (columns, cancel) = (shape.schema.leaves().len(), shape.cancel.clone());
        Ok(OpenFile { writer, columns, file, spill, order, rows: 0, bytes: 0, failed_row: None, cancel })
    }

    fn drive(&mut self) -> Result<bool> {
        let mut file = Counting { file: &mut self.file, bytes: &mut self.bytes };
        let mut sinks =
            ByteSinks::<&mut dyn ByteSink>::new().with(FILE, &mut file).with(SPILL, &mut self.spill);
        Ok(drive_into_while(&mut self.writer, &mut sinks, || self.cancel.check())?.is_some())
    }

    /// Writes rows. Columns may still be at work on them afterwards: what is wrong with them may be reported by any later
    /// call.
    pub(super) fn write(&mut self, batch: Batch) -> Result<()> {
        self.feed(batch).map_err(|error| self.first(error))
    }

    fn feed(&mut self, batch: Batch) -> Result<()> {
        self.rows += u64_of(batch.rows);
        if let Some(order) = &mut self.order
            && order.first_misplaced(&batch)?.is_some()
        {
            self.writer.with(FileWriter::withdraw_order)?;
            self.order = None;
        }
        self.writer.expect(batch.rows.saturating_mul(self.columns))?;
        let Fed::Taken = self.writer.with(|writer| writer.feed(batch))?? else {
            return Err(Error::internal("a writer that asked for rows has no room for them"));
        };
        match self.drive().map_err(|error| self.of_file(error))? {
            true => Ok(()),
            false => Err(Error::internal("a writer that ends before its rows")),
        }
    }

    /// The error to report, after the caller or a call has failed with `error`: if earlier rows cannot be written, that
    /// comes first, whatever the number of threads.
    pub(super) fn first(&mut self, error: Error) -> Error {
        match self.drain() {
            Err(earlier) if error.kind() != ErrorKind::Cancelled => earlier,
            _ => error,
        }
    }

    /// Waits until the rows are with their columns, as they are at once where one thread does everything.
    pub(super) fn drain(&mut self) -> Result<()> {
        self.writer.settle()?;
        self.drive().map(drop).map_err(|error| self.of_file(error))
    }

    /// Writes the end. What is wrong with rows is found before: an error of the end is not that of a row, whatever the
    /// number of threads.
    pub(super) fn finish(&mut self) -> Result<()> {
        self.drain()?;
        self.writer.with(FileWriter::finish)?;
        loop {
            match self.drive() {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(error) => {
                    let error = self.of_file(error);
                    self.failed_row = None;
                    return Err(error);
                }
            }
        }
    }

    /// Has at most so many bytes of its pages in memory, about, from now on.
    pub(super) fn hold_at_most(&mut self, bytes: u64) -> Result<()> {
        self.writer.with(|writer| writer.hold_at_most(bytes))
    }

    /// The row of the error that was returned last, counted in the file, where it is one of a row.
    pub(super) fn failed_row(&self) -> Option<u64> {
        self.failed_row
    }

    /// Rows so far.
    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    /// Whether it would have this many bytes, about, if it ended now.
    pub(super) fn has_reached(&mut self, bytes: u64) -> Result<bool> {
        let most = self.writer.with(|writer| writer.size())?;
        if most < bytes {
            return Ok(false);
        }
        self.drain()?;
        Ok(self.writer.with(|writer| writer.size())? >= bytes)
    }

    /// What was written, at the end.
    pub(super) fn written(&self) -> Result<Written> {
        let row_groups = u64_of(self.writer.with(|writer| writer.row_groups())?);
        Ok(Written { rows: self.rows, files: 1, bytes: self.bytes, row_groups, ..Written::default() })
    }

    /// An error of the file. The writer numbers rows as in it, which is what its limits are about. Of the other errors, the
    /// caller knows what the rows are.
    fn of_file(&mut self, error: Error) -> Error {
        self.failed_row = error.place().row;
        if error.kind() == ErrorKind::LimitExceeded { error } else { error.without_row() }
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

/// The file in which pages wait, once there are any: most files have none.
struct Spill {
    scratch: Option<PathBuf>,
    file: Option<SpillFile>,
}

impl ByteSink for Spill {
    fn name(&self) -> &str {
        self.file.as_ref().map_or("a temporary file", |file| file.name())
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(SpillFile::create(self.scratch.as_deref())?),
        };
        file.append(bytes)
    }

    fn read(&mut self, range: Range<u64>) -> Result<Bytes> {
        match &mut self.file {
            Some(file) => file.read(range),
            None => Err(Error::internal("pages of a file that has none elsewhere")),
        }
    }
}
