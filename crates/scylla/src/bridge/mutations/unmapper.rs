//! The way back: from the `full` mapping to writes.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Bytes, Error, Failed, Limits, Result};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::schema::Schema;

use super::back::{Back, Last};
use super::plan::{Plan, group_of};
use super::{MutationMapping, Present};
use crate::sstable::TableColumns;
use crate::sstable::batch::{MutationBatch, number_of};

/// What a step of an [`Unmapper`] brings.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a step is looked at once, and its batch moved on")]
pub enum UnmapStep {
    /// Writes.
    Ready(MutationBatch),
    /// It waits for [`Unmapper::feed`] or [`Unmapper::finish`].
    Need,
    /// The budget is spent; call again.
    Yield,
    /// Nothing more will come.
    Done,
}

/// Makes batches of writes, of the table, from batches of Parquet in the `full` mapping. It is the inverse of
/// [`Mapper`](super::Mapper), and is driven in the same way.
///
/// Rows must be in the table's order, those of a partition together; where batches end does not matter. A row is converted in one go, so one of
/// many elements makes a long step.
///
/// Where partitions were in Data.db is not in the mapping: [`Partitions::offsets`](crate::sstable::batch::Partitions::offsets) are 0.
#[derive(Debug)]
pub struct Unmapper {
    /// Files have a column that is passed over.
    has_other: bool,
    plan: Plan,
    names: BTreeMap<Bytes, u32>,
    limits: Limits,
    columns: Arc<TableColumns>,
    next: Option<Batch>,
    back: Option<Back>,
    /// The number of its first row.
    first_row: u64,
    /// A batch whose last partition may go on in the next.
    held: Option<MutationBatch>,
    last: Last,
    /// Of the batches that were made last: the rows of their entries.
    entry_rows: VecDeque<EntryRows>,
    /// Entries of all batches, and the batches that were taken.
    entries: u64,
    batches: u64,
    is_finished: bool,
    failed: Failed,
}

/// Batches whose rows are known: the one that is held, the one that was handed out, some on their way to a writer, and two that it has not done with.
const BATCHES_KNOWN: usize = 8;

/// The rows of a batch's entries.
#[derive(Debug)]
struct EntryRows {
    first_entry: u64,
    batch: u64,
    first_row: u64,
    rows: Vec<u32>,
}

impl Unmapper {
    /// An inverse for files of this schema, of a table with these columns.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Misuse`](marquetry_base::ErrorKind::Misuse) for a schema that is not one of a `full` mapping of this table; and as
    /// [`Mapper::new`](super::Mapper::new)'s.
    pub fn new(columns: Arc<TableColumns>, schema: &Schema, limits: Limits) -> Result<Unmapper> {
        Unmapper::beside(columns, schema, limits, None)
    }

    /// The same for files that have a column more, after those of the mapping, which is passed over: of rows that were rejected, the reason.
    ///
    /// # Errors
    ///
    /// As [`Unmapper::new`].
    pub fn beside(
        columns: Arc<TableColumns>,
        schema: &Schema,
        limits: Limits,
        other: Option<&str>,
    ) -> Result<Unmapper> {
        let mut paths: Vec<_> = (0..schema.leaves().len()).map(|leaf| schema.leaf_path(leaf)).collect();
        // Its name depends on the columns alone, not on what is present.
        let group = group_of(&columns)?;
        let has = |field: &str| paths.iter().any(|path| path.strip_prefix(&*group) == Some(field));
        let present = Present {
            ttls: has(".expires_at"),
            deletions: has(".local_deletion_time"),
            write_times: has(".cells.list.element.write_time"),
        };
        let plan = Plan::new(MutationMapping::Full, &columns, present)?;
        let physical = |schema: &Schema, leaf: usize| {
            schema
                .leaves()
                .get(leaf)
                .map(|leaf| (leaf.physical_type, leaf.definition_max, leaf.repetition_max))
        };
        for leaf in 0..plan.schema.leaves().len() {
            let path = plan.schema.leaf_path(leaf);
            let is_same =
                paths.get(leaf) == Some(&path) && physical(schema, leaf) == physical(&plan.schema, leaf);
            if !is_same {
                return Err(Error::misuse(format!(
                    "not the full mapping of the table: column {leaf} is not {path}"
                )));
            }
        }
        let more = paths.split_off(plan.schema.leaves().len());
        if let Some(other) = more.into_iter().find(|path| other != Some(&**path)) {
            return Err(Error::misuse(format!(
                "not the full mapping of the table: it has the column {other}"
            )));
        }
        let names =
            plan.names.iter().enumerate().map(|(number, name)| (name.clone(), number_of(number))).collect();
        Ok(Unmapper {
            has_other: schema.leaves().len() > plan.schema.leaves().len(),
            plan,
            names,
            limits,
            columns,
            next: None,
            back: None,
            first_row: 0,
            held: None,
            last: Last::default(),
            entry_rows: VecDeque::new(),
            entries: 0,
            batches: 0,
            is_finished: false,
            failed: Failed::default(),
        })
    }

    /// Makes partitions that are not in the order of their tokens an error of the kind
    /// [`ErrorKind::Conversion`](marquetry_base::ErrorKind::Conversion), with the row: SSTables have them in that order.
    /// And the rows of entries are [known](Unmapper::row_of).
    #[must_use]
    pub fn in_order(mut self) -> Unmapper {
        self.last.is_in_order = true;
        self
    }

    /// Of an entry, by its number among those of all batches that were handed out: the batch that its row was in, counted from 0, and the row's number. `None` if it is
    /// not one of the last batches', or nobody said that they are [in order](Unmapper::in_order).
    pub fn row_of(&self, entry: u64) -> Option<(u64, u64)> {
        let of = self.entry_rows.iter().rev().find(|of| of.first_entry <= entry)?;
        let row = of.rows.get(usize::try_from(entry - of.first_entry).ok()?)?;
        Some((of.batch, of.first_row.saturating_add(u64::from(*row))))
    }

    /// Takes the next batch.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Misuse`](marquetry_base::ErrorKind::Misuse) if it did not ask for one, or the batch is not of the schema.
    pub fn feed(&mut self, mut batch: Batch) -> Result<()> {
        self.failed.check()?;
        if self.next.is_some() || self.is_finished {
            return Err(Error::misuse("a batch that was not asked for"));
        }
        if self.has_other {
            batch.columns.truncate(self.plan.schema.leaves().len());
        }
        batch.check(&self.plan.schema)?;
        self.next = Some(batch);
        Ok(())
    }

    /// Takes notice that there is no further batch.
    pub fn finish(&mut self) {
        self.is_finished = true;
    }

    /// Begins anew, with other rows of such files: what it knows of the table stays. So a partition is found and read without that work.
    pub fn restart(&mut self) {
        (self.next, self.back, self.held) = (None, None, None);
        self.entry_rows.clear();
        (self.entries, self.batches) = (0, 0);
        let is_in_order = self.last.is_in_order;
        (self.last, self.is_finished, self.failed) = (Last::default(), false, Failed::default());
        self.last.is_in_order = is_in_order;
    }

    /// Works until there is a batch, another one is needed, or the budget is spent.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`](marquetry_base::ErrorKind::Corrupt) for columns that contradict each other, and
    /// [`ErrorKind::Conversion`](marquetry_base::ErrorKind::Conversion) for values that are none of their type; with the row.
    pub fn step(&mut self, budget: &mut Budget<'_>) -> Result<UnmapStep> {
        Failed::run(self, |unmapper| &mut unmapper.failed, |unmapper| unmapper.advance(budget))
    }

    fn advance(&mut self, budget: &mut Budget<'_>) -> Result<UnmapStep> {
        loop {
            if let Some(back) = &mut self.back {
                let held = self.held.as_mut();
                let first_row = self.first_row;
                let is_done = back
                    .step(&self.plan, &self.names, &self.limits, held, &mut self.last, budget)
                    .map_err(|error| {
                        let row = error.place().row.map(|row| row.saturating_add(first_row));
                        error.replaced(|place| place.row = row)
                    })?;
                if !is_done {
                    return Ok(UnmapStep::Yield);
                }
                let made = self.back.take().map(|back| self.number(back));
                let held = core::mem::replace(&mut self.held, made);
                match held {
                    Some(held) => return Ok(UnmapStep::Ready(held)),
                    None => continue,
                }
            }
            match self.next.take() {
                Some(batch) if batch.rows > 0 => {
                    self.first_row = batch.first_row;
                    self.back = Some(Back::new(&self.plan, &self.columns, &batch, self.last.is_in_order));
                    self.batches += 1;
                }
                Some(_) => self.batches += 1,
                None if self.is_finished => {
                    return Ok(self.held.take().map_or(UnmapStep::Done, UnmapStep::Ready));
                }
                None => return Ok(UnmapStep::Need),
            }
        }
    }

    /// Keeps the rows of a batch's entries, for a while.
    fn number(&mut self, back: Back) -> MutationBatch {
        let (made, rows) = back.into_batch();
        if let Some(rows) = rows {
            if self.entry_rows.len() == BATCHES_KNOWN {
                self.entry_rows.pop_front();
            }
            let batch = self.batches.saturating_sub(1);
            self.entry_rows.push_back(EntryRows {
                first_entry: self.entries,
                batch,
                first_row: self.first_row,
                rows,
            });
        }
        self.entries += u64_of(made.entries.kinds.len());
        made
    }
}
