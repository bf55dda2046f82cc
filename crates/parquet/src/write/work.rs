//! The work on one column of the open row group, which any thread may do.

use alloc::sync::Arc;

use alloc::format;
use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Codecs, Error, Release, Result, Segmented};

use super::column::{ColumnWriter, Shared, Slack};
use super::options::WriteOptions;
use super::out::Out;
use super::page::PageMaker;
use super::part::Room;
use crate::batch::Batch;
use crate::schema::Schema;

/// What a [`FileWriter`](super::FileWriter) that [shares](super::FileWriter::share) its work hands out: a column, and
/// what must be done to it next. A [`ColumnWorker`] does it; then it is
/// [returned](super::FileWriter::return_work).
#[derive(Debug)]
pub struct ColumnWork {
    pub(super) number: usize,
    pub(super) column: ColumnWriter,
    pub(super) before: Sizes,
    pub(super) task: Task,
    pub(super) facts: Facts,
    /// How it ended, once it has.
    pub(super) result: Result<()>,
}

/// What is done to each column.
#[derive(Debug, Clone)]
pub(super) enum Task {
    /// It takes rows.
    Rows(Strip),
    /// Its chunk ends. The row group ends with this row of the file.
    End(u64),
}

/// Rows that all columns take before the next ones are begun, or far ahead of them.
#[derive(Debug, Clone)]
pub(super) struct Strip {
    pub(super) batch: Arc<Batch>,
    /// The first row after them.
    pub(super) until: usize,
    /// The number of the batch's first row.
    pub(super) first_row: u64,
}

/// What is known of the file, for work elsewhere.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    options: Arc<WriteOptions>,
    schema: Arc<Schema>,
    has_arrow_schema: bool,
    group_rows_max: u64,
}

impl Facts {
    pub(super) fn of(shared: &Shared) -> Facts {
        Facts {
            options: Arc::clone(&shared.options),
            schema: Arc::clone(&shared.schema),
            has_arrow_schema: shared.has_arrow_schema,
            group_rows_max: shared.group_rows_max,
        }
    }
}

impl Strip {
    /// Passes the strip to its column. True once it is taken.
    pub(super) fn take(
        &self,
        number: usize,
        column: &mut ColumnWriter,
        shared: &mut Shared,
        out: Option<&mut Out>,
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        let batch = &self.batch.columns[number];
        let taken = match batch.rows == self.batch.rows {
            true => column.advance(batch, self.until, shared, out, budget),
            false => Err(Error::misuse(format!(
                "a column of {} rows, in a batch of {}",
                batch.rows, self.batch.rows
            ))),
        };
        let ended = taken.and_then(|is_taken| {
            if is_taken && self.until == self.batch.rows {
                column.end_batch(batch)?;
            }
            Ok(is_taken)
        });
        ended.map_err(|error| {
            let row = self.first_row + u64_of(column.row(batch));
            error.at(|at| {
                at.column = Some(shared.schema.leaf_path(number));
                at.row = Some(row);
            })
        })
    }
}

impl ColumnWork {
    fn advance(&mut self, shared: &mut Shared, budget: &mut Budget<'_>) -> Result<bool> {
        match &self.task {
            Task::Rows(strip) => strip.take(self.number, &mut self.column, shared, None, budget),
            Task::End(last_row) => self.column.end_chunk(shared, budget).map_err(|error| {
                error.at(|at| {
                    at.column = Some(shared.schema.leaf_path(self.number));
                    // The page that ends it is what may be wrong.
                    at.row = Some(*last_row);
                })
            }),
        }
    }
}

/// Does the work of columns, one after the other. Each thread has one of its own, which keeps compressors and memory from
/// column to column.
///
/// ```text
/// start(work), then step(budget) until it returns the work, to be returned to the writer
/// ```
pub struct ColumnWorker {
    shared: Shared,
    work: Option<ColumnWork>,
}

impl ColumnWorker {
    /// A worker for writers that use these codecs.
    pub(super) fn new(codecs: Arc<dyn Codecs>, facts: Facts) -> ColumnWorker {
        let Facts { options, schema, has_arrow_schema, group_rows_max } = facts;
        let maker = PageMaker::new(codecs, options.crc, options.limits);
        let (room, indices) = (Room::default(), alloc::vec::Vec::new());
        let shared = Shared { options, schema, has_arrow_schema, group_rows_max, maker, room, indices };
        ColumnWorker { shared, work: None }
    }

    /// Takes on work.
    ///
    /// # Errors
    ///
    /// `Misuse` while it has other work.
    pub fn start(&mut self, work: ColumnWork) -> Result<()> {
        if self.work.is_some() {
            return Err(Error::misuse("work for a worker that has work"));
        }
        let Facts { options, schema, has_arrow_schema, group_rows_max } = work.facts.clone();
        self.shared.maker.adopt(options.crc, options.limits);
        (self.shared.options, self.shared.schema) = (options, schema);
        (self.shared.has_arrow_schema, self.shared.group_rows_max) = (has_arrow_schema, group_rows_max);
        self.work = Some(work);
        Ok(())
    }

    /// Works on. Returns the work once it is done, or has failed: the writer reports errors. `None` if the budget is
    /// spent first, and if there is no work.
    pub fn step(&mut self, budget: &mut Budget<'_>) -> Option<ColumnWork> {
        let work = self.work.as_mut()?;
        work.result = match work.advance(&mut self.shared, budget) {
            Ok(false) => return None,
            Ok(true) => Ok(()),
            Err(error) => Err(error),
        };
        self.work.take()
    }
}

/// The columns of the open row group. Those whose work is done elsewhere are absent.
#[derive(Debug, Default)]
pub(super) struct Columns(Segmented<Place>);

/// A column's place.
#[derive(Debug)]
pub(super) struct Place {
    column: Option<ColumnWriter>,
    /// The number of the task that is its next.
    pub(super) next: u64,
    /// By how much it was last expected to grow by itself, and whether it may still have a dictionary.
    pub(super) slack: Slack,
    pub(super) has_no_dictionary: bool,
}

/// What a column has, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) held: u64,
    pub(super) size: u64,
    pub(super) pages: u64,
}

impl Sizes {
    pub(super) fn of(column: &ColumnWriter) -> Sizes {
        Sizes { held: column.held(), size: column.size(), pages: column.chunk.held }
    }
}

impl Columns {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn push(&mut self, column: ColumnWriter) {
        self.0.push(Place {
            column: Some(column),
            next: 0,
            slack: Slack::default(),
            has_no_dictionary: false,
        });
    }

    /// A column that is here.
    pub(super) fn get_mut(&mut self, number: usize) -> Option<&mut ColumnWriter> {
        self.0.get_mut(number)?.column.as_mut()
    }

    /// Releases the last one. False if none is left.
    pub(super) fn pop(&mut self) -> bool {
        self.0.pop().is_some()
    }

    pub(super) fn place(&mut self, number: usize) -> Option<&mut Place> {
        self.0.get_mut(number)
    }
}

impl Release for Columns {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.0.release(budget)
    }
}

impl Release for Place {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.column.release(budget)
    }
}

impl Place {
    /// Takes the column away, if a task before `end` is its next.
    pub(super) fn take(&mut self, end: u64) -> Option<ColumnWriter> {
        if self.next < end { self.column.take() } else { None }
    }

    /// The slack of a column that has taken nothing yet, once.
    pub(super) fn first_slack(&mut self) -> Option<Slack> {
        let column = self.column.as_ref().filter(|_| self.slack.size == 0)?;
        self.slack = column.slack();
        Some(self.slack)
    }

    pub(super) fn put(&mut self, column: ColumnWriter) {
        self.column = Some(column);
    }
}
