//! Batches of rows from a file's column chunks.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::{
    Budget, Bytes, Codecs, Demand, Error, Input, Limit, Machine, Object, Price, Priority, Result, Segmented,
    Step, check_supply,
};

use super::ReadOptions;
use super::column::{Advance, ColumnReader};
use super::decompressors::Decompressors;
use crate::batch::Batch;
use crate::batch::store::{rows_max, value_bytes};
use crate::format::FileMetaData;
use crate::schema::Leaf;

/// Columns behind the one that waits whose bytes are asked for with it.
const LOOK_AHEAD_COLUMNS: usize = 64;
/// What starting a column chunk costs.
const CHUNK_UNITS: u64 = 300;
/// The price of looking at a column, to go on with it or to hand out its batch, beside its values: where there are hundreds, its state and its
/// memory have left the caches since it was looked at last.
const COLUMN_PRICE: Price = Price::per_kilovalue(6_000 << 10);
/// What a row group costs beside its chunks.
const GROUP_UNITS: u64 = 50;
/// What building a column costs.
const BUILD_UNITS: u64 = 500;
/// Leaves that are measured together, and the price of each.
const MEASURED_AT_ONCE: usize = 4096;
const MEASURE_PRICE: Price = Price::per_kilovalue(5 * 1024);

/// The leaves that a reader reads.
enum Wanted {
    /// So many, all of them.
    All(usize),
    /// These.
    These(Vec<usize>),
}

impl Wanted {
    fn len(&self) -> usize {
        match self {
            Wanted::All(leaves) => *leaves,
            Wanted::These(leaves) => leaves.len(),
        }
    }

    fn leaf(&self, at: usize) -> usize {
        match self {
            Wanted::All(_) => at,
            Wanted::These(leaves) => leaves[at],
        }
    }
}

/// Reads rows in batches, column by column, row group after row group.
///
/// A batch never spans row groups. All columns of a batch have the same rows; it may have fewer than
/// [`ReadOptions::batch_rows`], where a row group ends, where values are large, and where a kept dictionary ends.
pub struct BatchReader {
    object: Object,
    metadata: Arc<FileMetaData>,
    decompressors: Decompressors,
    options: ReadOptions,
    /// The columns, as far as they are built: a wide table has many. At the end they are let go of.
    columns: Segmented<ColumnReader>,
    is_built: bool,
    /// The leaves wanted, and how many of them are measured.
    wanted: Wanted,
    measured: usize,
    /// Bytes of a row, of those that are measured.
    row_bytes: usize,
    input: Input,
    /// Row groups not begun.
    row_groups: Range<usize>,
    current: Option<RowGroup>,
    failed: Option<Error>,
    /// Bytes that the columns hold.
    held: u64,
}

/// The row group that is being read.
struct RowGroup {
    number: usize,
    /// The file's row that the next batch begins with.
    next_row: u64,
    rows_left: u64,
    /// Columns whose chunks are begun.
    started: usize,
    /// Columns that are done with the current batch, from the first on, and the fewest rows that one of them has.
    full: usize,
    full_rows: usize,
    /// The fewest rows that a column has left over from the batch before.
    spare_rows: usize,
    /// Columns whose part of the current batch is taken, once all are full.
    taken: Vec<crate::batch::ColumnBatch>,
}

impl BatchReader {
    /// A reader of `object`, whose footer is `metadata`.
    ///
    /// # Errors
    ///
    /// `Misuse` for leaves or row groups that are not there, or a batch of no rows. What a column cannot be read for is told by the
    /// first step: the columns are built in steps.
    pub fn new(
        object: Object,
        metadata: Arc<FileMetaData>,
        codecs: Arc<dyn Codecs>,
        options: ReadOptions,
    ) -> Result<BatchReader> {
        let leaves = metadata.schema.leaves().len();
        let groups = metadata.row_groups.len();
        if options.batch_rows == 0 {
            return Err(Error::misuse("batches of no rows"));
        }
        let row_groups = options.row_groups.clone().unwrap_or(0..groups);
        if row_groups.start > row_groups.end || row_groups.end > groups {
            return Err(Error::misuse(format!("row groups {row_groups:?} of {groups}")));
        }
        let wanted = match &options.leaves {
            None => Wanted::All(leaves),
            Some(wanted) => {
                if let Some(number) = wanted.iter().find(|number| **number >= leaves) {
                    return Err(Error::misuse(format!("leaf {number} of {leaves}")));
                }
                Wanted::These(wanted.clone())
            }
        };
        Ok(BatchReader {
            object,
            metadata,
            decompressors: Decompressors::new(codecs),
            options,
            columns: Segmented::new(),
            is_built: false,
            wanted,
            measured: 0,
            row_bytes: 0,
            input: Input::new(),
            row_groups,
            current: None,
            failed: None,
            held: 0,
        })
    }

    /// What is read.
    pub fn metadata(&self) -> &Arc<FileMetaData> {
        &self.metadata
    }

    /// Builds the columns: true once all are. First all leaves are measured, for the rows of a batch depend on all of them.
    fn build(&mut self, budget: &mut Budget<'_>) -> Result<bool> {
        let leaves = self.metadata.schema.leaves();
        while self.measured < self.wanted.len() {
            let end = self.wanted.len().min(self.measured + MEASURED_AT_ONCE);
            budget.charge(MEASURE_PRICE, 0, end - self.measured);
            let some = (self.measured..end).filter_map(|at| leaves.get(self.wanted.leaf(at)));
            for physical_type in some.map(|leaf: &Leaf| leaf.physical_type) {
                self.row_bytes = self.row_bytes.saturating_add(value_bytes(physical_type));
                self.options.batch_rows = self.options.batch_rows.min(rows_max(physical_type));
            }
            self.measured = end;
            if end == self.wanted.len() {
                let rows = self.options.batch_bytes / self.row_bytes.max(1);
                self.options.batch_rows = self.options.batch_rows.min(rows).max(1);
            }
            if budget.is_spent() {
                return Ok(false);
            }
        }
        while self.columns.len() < self.wanted.len() {
            let leaf = self.wanted.leaf(self.columns.len());
            self.columns.push(ColumnReader::new(leaf, &self.metadata, &self.options)?);
            budget.charge_units(BUILD_UNITS);
            if budget.is_spent() {
                return Ok(false);
            }
        }
        self.is_built = true;
        Ok(true)
    }

    /// At the end: what the columns hold is given back in steps, so that dropping the reader is little work.
    fn let_go(&mut self, budget: &mut Budget<'_>) -> Step<Batch> {
        while let Some(column) = self.columns.last_mut() {
            if !column.let_go(budget) {
                return Step::Yield;
            }
            self.columns.pop();
            budget.charge_units(BUILD_UNITS);
            if budget.is_spent() && !self.columns.is_empty() {
                return Step::Yield;
            }
        }
        self.held = 0;
        Step::Done
    }

    fn advance(&mut self, budget: &mut Budget<'_>) -> Result<Step<Batch>> {
        if !self.is_built && !self.build(budget)? {
            return Ok(Step::Yield);
        }
        loop {
            let Some(group) = &mut self.current else {
                let Some(number) = self.row_groups.next() else { return Ok(self.let_go(budget)) };
                let found = &self.metadata.row_groups[number];
                self.input.clear();
                self.current = Some(RowGroup {
                    number,
                    next_row: found.first_row,
                    rows_left: found.rows,
                    started: 0,
                    full: 0,
                    full_rows: usize::MAX,
                    spare_rows: usize::MAX,
                    taken: Vec::new(),
                });
                budget.charge_units(GROUP_UNITS);
                continue;
            };
            if group.rows_left == 0 {
                self.current = None;
                if budget.is_spent() {
                    return Ok(Step::Yield);
                }
                continue;
            }
            let found = &self.metadata.row_groups[group.number];
            while group.started < self.columns.len() {
                let column = &mut self.columns[group.started];
                let chunk = &found.columns[column.leaf()];
                let held_before = column.held();
                column.start(
                    self.object,
                    group.number,
                    found.rows,
                    chunk,
                    self.metadata.footer_start,
                    &self.options,
                )?;
                self.held = (self.held + column.held()).saturating_sub(held_before);
                group.started += 1;
                budget.charge_units(CHUNK_UNITS);
                if budget.is_spent() {
                    return Ok(Step::Yield);
                }
            }
            let rows_left = usize::try_from(group.rows_left).unwrap_or(usize::MAX);
            if group.taken.is_empty() {
                // Spare rows of an earlier batch are handed out before more are decoded.
                let target = self.options.batch_rows.min(rows_left).min(group.spare_rows);
                while group.full < self.columns.len() {
                    let column = &mut self.columns[group.full];
                    let held_before = column.held();
                    let advance = column.advance(target, &mut self.input, &mut self.decompressors, budget)?;
                    self.held = (self.held + column.held()).saturating_sub(held_before);
                    let total_bytes = self.options.limits.total_bytes;
                    let held = self.held.saturating_add(self.input.held()) + self.decompressors.held();
                    Limit::TotalBytes.check(total_bytes, held)?;
                    match advance {
                        Advance::Full => {
                            group.full += 1;
                            group.full_rows = group.full_rows.min(column.rows());
                            budget.charge(COLUMN_PRICE, 0, 1);
                        }
                        Advance::Yield => return Ok(Step::Yield),
                        Advance::Need => {
                            let first = group.full;
                            return self.demand(first);
                        }
                    }
                    if budget.is_spent() && group.full < self.columns.len() {
                        return Ok(Step::Yield);
                    }
                }
            }
            // A reader of no columns still counts rows.
            let rows = match self.columns.is_empty() {
                true => self.options.batch_rows,
                false => group.full_rows,
            };
            let rows = rows.min(rows_left);
            if rows == 0 {
                return Err(Error::internal("a batch of no rows"));
            }
            if group.taken.is_empty() {
                group.spare_rows = usize::MAX;
                group.taken.reserve_exact(self.columns.len());
            }
            while group.taken.len() < self.columns.len() {
                let column = &mut self.columns[group.taken.len()];
                let held_before = column.held();
                let taken = column.take(rows, budget)?;
                if taken.is_some() && column.has_spare() {
                    group.spare_rows = group.spare_rows.min(column.rows());
                }
                self.held = (self.held + column.held()).saturating_sub(held_before);
                let Some(taken) = taken else { return Ok(Step::Yield) };
                group.taken.push(taken);
                budget.charge(COLUMN_PRICE, 0, 1);
                if budget.is_spent() && group.taken.len() < self.columns.len() {
                    return Ok(Step::Yield);
                }
            }
            let batch = Batch {
                row_group: group.number,
                first_row: group.next_row,
                rows,
                columns: core::mem::take(&mut group.taken),
            };
            group.next_row += rows as u64;
            group.rows_left -= rows as u64;
            (group.full, group.full_rows) = (0, usize::MAX);
            return Ok(Step::Ready(batch));
        }
    }

    /// What the column `first` waits for, and what those behind it will want.
    fn demand(&self, first: usize) -> Result<Step<Batch>> {
        let mut demand = Demand::default();
        for (number, column) in self.columns.iter_from(first).take(LOOK_AHEAD_COLUMNS).enumerate() {
            let priority = if number == 0 { Priority::Now } else { Priority::Soon };
            column.want(&self.input, priority, &mut demand);
        }
        if demand.is_empty() {
            return Err(Error::internal("a column waits for nothing"));
        }
        Ok(Step::Need(demand))
    }

    fn check_object(&self, object: Object) -> Result<()> {
        if object == self.object {
            Ok(())
        } else {
            Err(Error::misuse("an object that is not this machine's"))
        }
    }
}

impl Machine for BatchReader {
    type Product = Batch;

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Batch>> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let step = self.advance(budget);
        if let Err(error) = &step {
            self.failed = Some(error.clone());
        }
        step
    }

    fn supply(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()> {
        self.check_object(object)?;
        check_supply(&range, &bytes, None)?;
        if self.current.is_some() { self.input.supply(range.start, bytes) } else { Ok(()) }
    }

    fn supply_length(&mut self, object: Object, _length: u64) -> Result<()> {
        self.check_object(object)
    }

    fn fail(&mut self, object: Object, _range: Range<u64>, reason: Error) {
        if object == self.object && self.failed.is_none() {
            self.failed = Some(reason);
        }
    }
}
