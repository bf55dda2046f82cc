//! The machine: batches of writes in, batches of Parquet out.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::{Budget, Bytes, Error, Failed, Limit, Limits, Price, Release, Result, release_all};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::format::KeyValue;
use marquetry_parquet::schema::Schema;

use super::append::{bytes_of, drop_first, move_cells};
use super::partition_work::PartitionWork;
use super::plan::Plan;
use super::rows::Rows;
use super::statics::{Statics, cells_of};
use super::work::Work;
use super::{MutationMapping, Present};
use crate::sstable::TableColumns;
use crate::sstable::batch::{Continues, EntryKind, MutationBatch, number_of};

/// The price of a cell that is moved to the batch that its row began in: of its bytes, and of itself.
const MOVE_PRICE: Price = Price { kib: 200, kilovalue: 10 << 10 };

/// How a [`Mapper`] works.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MapperOptions {
    /// What the SSTables have. By default everything may be there, and has its columns.
    pub present: Present,
    /// Bounds on what is held: a row that is continued over several batches must fit [`Limits::total_bytes`].
    pub limits: Limits,
}

impl Default for MapperOptions {
    fn default() -> MapperOptions {
        MapperOptions { present: Present::ALL, limits: Limits::DEFAULT }
    }
}

/// What a step of a [`Mapper`] brings.
#[derive(Debug)]
pub enum MapStep {
    /// Rows of Parquet.
    Ready(Batch),
    /// It waits for [`Mapper::feed`] or [`Mapper::finish`].
    Need,
    /// The budget is spent; call again.
    Yield,
    /// Nothing more will come.
    Done,
}

/// Makes batches of Parquet from batches of writes. See the [module](super).
#[derive(Debug)]
pub struct Mapper {
    kind: MutationMapping,
    columns: Arc<TableColumns>,
    plan: Plan,
    limits: Limits,
    /// A batch whose last row may go on in the next one.
    held: Option<Held>,
    /// The next one.
    next: Option<Next>,
    work: Option<Doing>,
    statics: Statics,
    /// The partition that goes on has no row of the `full` mapping yet.
    is_bare: bool,
    spare: Option<MutationBatch>,
    /// Values that became null, by the numbers of their columns' names.
    lost: Vec<(usize, u64)>,
    rows: u64,
    is_finished: bool,
    failed: Failed,
}

/// A batch that is being mapped: to rows, or to partitions.
#[derive(Debug)]
enum Doing {
    Rows(Box<Work>),
    Partitions(Box<PartitionWork>),
}

impl Doing {
    fn step(&mut self, plan: &Plan, statics: &Statics, budget: &mut Budget<'_>) -> Result<Option<Batch>> {
        match (self, &plan.verbatim) {
            (Doing::Rows(work), _) => work.step(plan, statics, budget),
            (Doing::Partitions(work), Some(verbatim)) => work.step(verbatim, budget),
            (Doing::Partitions(_), None) => Err(Error::internal("partitions of no plan")),
        }
    }

    /// Whether all rows of its batch are made.
    fn is_done(&self) -> bool {
        match self {
            Doing::Rows(work) => work.is_done(),
            Doing::Partitions(_) => true,
        }
    }

    fn into_batch(self) -> MutationBatch {
        match self {
            Doing::Rows(work) => work.batch,
            Doing::Partitions(work) => work.batch,
        }
    }
}

#[derive(Debug)]
struct Held {
    batch: MutationBatch,
    /// Its first entry was mapped with the batch before.
    without_first: bool,
}

#[derive(Debug)]
struct Next {
    batch: MutationBatch,
    /// The column and the cell, of the row that goes on, that is moved next.
    column: usize,
    cell: usize,
    /// Bytes of a long value that were moved.
    part: usize,
    bytes: u64,
}

/// The columns. Rows that are being mapped are freed when it is dropped.
impl Release for Mapper {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.failed.set_released();
        release_all(&mut [&mut self.plan, &mut self.columns], budget)
    }
}

impl Mapper {
    /// A mapper of batches of this table.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](marquetry_base::ErrorKind::Unsupported) for names that are not UTF-8;
    /// [`ErrorKind::LimitExceeded`](marquetry_base::ErrorKind::LimitExceeded) for types nested too deeply.
    pub fn new(kind: MutationMapping, columns: Arc<TableColumns>, options: &MapperOptions) -> Result<Mapper> {
        Ok(Mapper {
            kind,
            plan: Plan::new(kind, &columns, options.present)?,
            columns,
            limits: options.limits,
            held: None,
            next: None,
            work: None,
            statics: Statics::default(),
            is_bare: false,
            spare: None,
            lost: Vec::new(),
            rows: 0,
            is_finished: false,
            failed: Failed::default(),
        })
    }

    /// The schema of the batches.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.plan.schema
    }

    /// The name of the group of columns that the `full` mapping has besides the table's: `mutation`, unless a column is called that.
    pub fn group(&self) -> &str {
        &self.plan.group
    }

    /// Key-value metadata for files of these batches: the mapping's name and version, its group, and the columns of the table with their types.
    ///
    /// # Errors
    ///
    /// None, once there is a mapper.
    pub fn key_values(&self) -> Result<Vec<KeyValue>> {
        let pair = |key: &str, value: &str| KeyValue {
            key: key.to_string(),
            value: Some(Bytes::copy_from_slice(value.as_bytes())),
        };
        let mut pairs =
            alloc::vec![pair("marquetry.mapping", self.kind.name()), pair("marquetry.mapping.version", "1")];
        if self.kind == MutationMapping::Full {
            pairs.push(pair("marquetry.mapping.group", &self.plan.group));
        }
        pairs.push(pair("marquetry.table.columns", &Plan::described(&self.columns)?));
        Ok(pairs)
    }

    /// Takes the next batch, of the table.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Misuse`](marquetry_base::ErrorKind::Misuse) if it did not ask for one, or the batch has other columns.
    pub fn feed(&mut self, batch: MutationBatch) -> Result<()> {
        self.failed.check()?;
        if self.next.is_some() || self.is_finished {
            return Err(Error::misuse("a batch that was not asked for"));
        }
        if batch.columns.len() != self.plan.cells.len() {
            return Err(Error::misuse("a batch of other columns than the table's"));
        }
        self.next = Some(Next { batch, column: 0, cell: 0, part: 0, bytes: 0 });
        Ok(())
    }

    /// Takes notice that there is no further batch.
    pub fn finish(&mut self) {
        self.is_finished = true;
    }

    /// A batch that was mapped: some of its arrays are left, to be filled again.
    pub fn recycle(&mut self) -> Option<MutationBatch> {
        self.spare.take()
    }

    /// The values of the batches that came since this was last called which are null in them because their columns cannot hold them, by the
    /// columns' names: those of no bytes of types other than text and blobs (which `blobAsInt(0x)` makes), for the most part; text that is not UTF-8
    /// and numbers of thousands of digits are others. Of a static column and of the partition key each row counts. A `logical` mapping loses them; `full`
    /// has their bytes beside the columns, and `verbatim` in them.
    pub fn take_lost(&mut self) -> Vec<(String, u64)> {
        let named = |(name, values): (usize, u64)| {
            let name = self.plan.names.get(name).map(|name| &**name).unwrap_or_default();
            (String::from_utf8_lossy(name).into_owned(), values)
        };
        core::mem::take(&mut self.lost).into_iter().map(named).collect()
    }

    /// Works until there is a batch, another one is needed, or the budget is spent.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`](marquetry_base::ErrorKind::Corrupt) for keys that are not of as many columns as the table's, and for what the statistics
    /// rule out; [`ErrorKind::LimitExceeded`](marquetry_base::ErrorKind::LimitExceeded) for a row that is too large;
    /// [`ErrorKind::Misuse`](marquetry_base::ErrorKind::Misuse) for deletions in a `logical` mapping.
    pub fn step(&mut self, budget: &mut Budget<'_>) -> Result<MapStep> {
        Failed::run(self, |mapper| &mut mapper.failed, |mapper| mapper.advance(budget))
    }

    fn advance(&mut self, budget: &mut Budget<'_>) -> Result<MapStep> {
        loop {
            if let Some(work) = &mut self.work {
                let Some(mut batch) = work.step(&self.plan, &self.statics, budget)? else {
                    return Ok(MapStep::Yield);
                };
                if let Doing::Rows(work) = work {
                    self.lost.extend(work.take_lost());
                }
                if work.is_done()
                    && let Some(work) = self.work.take()
                {
                    let batch = work.into_batch();
                    if self.kind == MutationMapping::Logical {
                        self.statics.keep(&batch, self.plan.statics, budget);
                    }
                    self.spare = Some(batch);
                }
                if batch.rows == 0 {
                    continue;
                }
                batch.first_row = self.rows;
                self.rows += marquetry_base::cast::u64_of(batch.rows);
                return Ok(MapStep::Ready(batch));
            }
            match (self.held.take(), self.next.take()) {
                (None, None) if self.is_finished => return Ok(MapStep::Done),
                (None, None) => return Ok(MapStep::Need),
                (None, Some(next)) => self.hold(next.batch, false),
                (Some(held), None) if !held.batch.is_open || self.is_finished => self.begin(held, budget)?,
                (Some(held), None) => {
                    self.held = Some(held);
                    return Ok(MapStep::Need);
                }
                (Some(mut held), Some(mut next)) => {
                    if next.batch.continues == Continues::Entry && held.batch.is_open {
                        let is_moved = self.join(&mut held, &mut next, budget)?;
                        if !is_moved {
                            (self.held, self.next) = (Some(held), Some(next));
                            return Ok(MapStep::Yield);
                        }
                        if next.batch.entries.kinds.len() == 1 && next.batch.is_open {
                            // All of it is that row, which may go on.
                            self.spare = Some(next.batch);
                            self.held = Some(held);
                            continue;
                        }
                        self.hold(next.batch, true);
                    } else {
                        self.hold(next.batch, false);
                    }
                    self.begin(held, budget)?;
                }
            }
            if budget.is_spent() {
                return Ok(MapStep::Yield);
            }
        }
    }

    fn hold(&mut self, batch: MutationBatch, without_first: bool) {
        self.held = Some(Held { batch, without_first });
    }

    fn begin(&mut self, held: Held, budget: &mut Budget<'_>) -> Result<()> {
        let Held { batch, without_first } = held;
        if let Some(verbatim) = &self.plan.verbatim {
            let work = PartitionWork::new(verbatim, batch, without_first, budget)?;
            self.work = Some(Doing::Partitions(Box::new(work)));
            return Ok(());
        }
        let rows = match self.kind {
            MutationMapping::Logical => {
                check_merged(&batch)?;
                let Statics { has_static, has_row, .. } = &mut self.statics;
                Rows::logical(&batch, without_first, has_static, has_row)
            }
            _ => Rows::full(&batch, without_first, &mut self.is_bare),
        };
        self.work = Some(Doing::Rows(Box::new(Work::new(&self.plan, batch, rows, budget)?)));
        Ok(())
    }

    /// Moves the cells of the row that goes on to where it began; false if the budget is spent first.
    fn join(&self, held: &mut Held, next: &mut Next, budget: &mut Budget<'_>) -> Result<bool> {
        let entry = number_of(held.batch.entries.kinds.len().saturating_sub(1));
        if next.column == 0 && next.cell == 0 && next.part == 0 {
            next.bytes = held.batch.columns.iter().map(bytes_of).sum();
        }
        while let (Some(from), Some(to)) =
            (next.batch.columns.get_mut(next.column), held.batch.columns.get_mut(next.column))
        {
            let cells = cells_of(from, 0);
            let before = bytes_of(to);
            let end = move_cells(from, next.cell..cells.end, &mut next.part, entry, to);
            let moved = bytes_of(to) - before;
            next.bytes += moved;
            self.limits.check(Limit::TotalBytes, next.bytes)?;
            budget.charge(MOVE_PRICE, usize::try_from(moved).unwrap_or(usize::MAX), end - next.cell);
            next.cell = end;
            if end == cells.end {
                if from.deletions.at.first() == Some(&0) {
                    from.deletions.at.remove(0);
                    to.deletions.push(entry, from.deletions.values.remove(0));
                }
                drop_first(from, cells.end);
                budget.charge(MOVE_PRICE, 0, from.len());
                (next.column, next.cell) = (next.column + 1, 0);
            }
            if budget.is_spent() && next.column < next.batch.columns.len() {
                return Ok(false);
            }
        }
        // Whether its partition goes on after that row.
        held.batch.is_open = next.batch.is_open || next.batch.entries_of(0).len() > 1;
        Ok(true)
    }
}

/// Checks that nothing in a batch is deleted.
fn check_merged(batch: &MutationBatch) -> Result<()> {
    let is_deleted = !batch.partitions.deletions.is_empty()
        || !batch.entries.deletions.is_empty()
        || batch.entries.kinds.iter().any(|kind| !matches!(kind, EntryKind::Row | EntryKind::Static))
        || batch.columns.iter().any(|cells| !cells.tombstones.is_empty());
    match is_deleted {
        true => Err(Error::misuse(
            "a logical mapping of batches with deletions: they are to be merged, as of a time",
        )),
        false => Ok(()),
    }
}
