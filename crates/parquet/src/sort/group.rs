//! Batches as they came, and the block that becomes of them.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::{Budget, Error, Result};

use super::dictionaries::{Dictionaries, Learned};
use super::pieces::Piece;
use super::producer::{Block, Common, Producer};
use super::stored::{COLUMN_PRICE, Renumbered, START_PRICE, Stored, Storing, held_by, needs_spreading};
use crate::batch::store::value_bytes;
use crate::batch::{Batch, ColumnBatch, INLINE_BYTES_MAX, Values};
use crate::going::Going;
use crate::schema::Schema;

/// Batches of a group, at most.
const GROUP_BATCHES: usize = 1024;
/// Strings that are looked at between two checks of the budget.
const SLICE_VALUES: usize = 16 << 10;

/// Batches in the order in which they came. The same columns of all have dictionaries that are kept.
#[derive(Debug, Default)]
pub(super) struct Group {
    batches: VecDeque<Arrived>,
    rows: usize,
    bytes: u64,
    /// Of the columns, as far as some do, whether they have dictionaries that are kept.
    keeps: Vec<bool>,
}

/// A batch as it came.
#[derive(Debug)]
enum Arrived {
    /// And what the entries of those of its dictionaries that are kept become. There may be fewer of these than columns.
    Batch(Batch, Vec<Option<Renumbered>>),
    /// It is stored already.
    Stored(Stored),
}

/// The bytes of a batch once it is stored, about: values are spread to their rows, and strings have bytes of their own.
#[derive(Debug, Default)]
pub(super) struct Sizing {
    column: usize,
    value: usize,
    bytes: u64,
    kept: Vec<Option<Renumbered>>,
    keeps: Vec<bool>,
    /// Some column of the group has a dictionary that is kept and this batch's has none, or the other way.
    differs: bool,
}

impl Group {
    /// Adds a batch that was looked at, unless other columns of it have dictionaries: then it belongs to another group.
    pub(super) fn add(&mut self, batch: Batch, sizing: Sizing) {
        self.rows += batch.rows;
        self.bytes += sizing.bytes;
        self.keeps = sizing.keeps;
        self.batches.push_back(Arrived::Batch(batch, sizing.kept));
    }

    /// The same for one that was stored since.
    pub(super) fn add_stored(&mut self, stored: Stored, keeps: Vec<bool>) {
        self.rows += stored.rows;
        self.bytes += stored.held;
        self.keeps = keeps;
        self.batches.push_back(Arrived::Stored(stored));
    }

    /// Whether dictionaries of a column are kept, if there is any batch.
    fn keeps(&self, column: usize) -> Option<bool> {
        (!self.is_empty()).then(|| self.keeps.get(column).copied().unwrap_or(false))
    }

    /// Whether it has no rows.
    pub(super) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Whether it has these rows or bytes, or many batches.
    pub(super) fn is_full(&self, rows: usize, bytes: u64) -> bool {
        self.rows >= rows || self.bytes >= bytes || self.batches.len() >= GROUP_BATCHES
    }

    /// Rows.
    pub(super) fn rows(&self) -> u64 {
        u64_of(self.rows)
    }

    /// Bytes of memory, about.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Sizing {
    /// Looks at the columns of a batch. True once all were looked at.
    ///
    /// # Errors
    ///
    /// As [`Dictionaries::learn`].
    pub(super) fn step(
        &mut self,
        (batch, group): (&Batch, &Group),
        schema: &Schema,
        dictionaries: &mut Dictionaries,
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        while let (Some(column), Some(leaf)) =
            (batch.columns.get(self.column), schema.leaves().get(self.column))
        {
            let are_nulls = column.nulls == column.rows && column.levels.is_none();
            let mut kept = if are_nulls { dictionaries.nulls(self.column) } else { None };
            if let Values::Dictionary(_, entries) = &column.values
                && column.levels.is_none()
                && self.value == 0
                && kept.is_none()
            {
                match dictionaries.learn((self.column, leaf), (entries, batch.rows), budget)? {
                    Learned::Yield => return Ok(false),
                    Learned::Kept(renumbered) => kept = Some(renumbered),
                    Learned::LeftOut => {}
                }
            }
            let is_done = kept.is_some() || self.measure(column, budget);
            if is_done {
                budget.charge(COLUMN_PRICE, 0, 1);
                let value = if kept.is_some() { size_of::<u16>() } else { value_bytes(leaf.physical_type) };
                let values = if needs_spreading(column) { column.rows.max(column.values.len()) } else { 0 };
                self.bytes += u64_of(held_by(column) + values.saturating_mul(value));
                self.differs |= group.keeps(self.column).is_some_and(|keeps| keeps != kept.is_some());
                if kept.is_some() {
                    self.kept.resize(self.column, None);
                    self.keeps.resize(self.column, false);
                    self.kept.push(kept);
                    self.keeps.push(true);
                }
                (self.column, self.value) = (self.column + 1, 0);
            }
            if budget.is_spent() && self.column < batch.columns.len() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the batch cannot be in the group.
    pub(super) fn differs(&self) -> bool {
        self.differs
    }

    /// What the batch's dictionaries become that are kept; and which columns have one.
    pub(super) fn into_kept(self) -> (Vec<Option<Renumbered>>, Vec<bool>) {
        (self.kept, self.keeps)
    }

    /// Counts the bytes of a column's next strings. True once all are counted.
    fn measure(&mut self, column: &ColumnBatch, budget: &mut Budget<'_>) -> bool {
        let far_bytes = |view: &u128| {
            let words: &[u32; 4] = bytemuck::cast_ref(view);
            u64_of(Some(usize_of_u32(words[0])).filter(|length| *length > INLINE_BYTES_MAX).unwrap_or(0))
        };
        let until = column.values.len().min(self.value + SLICE_VALUES);
        let part = self.value..until;
        let (looked_at, bytes) = match &column.values {
            Values::ByteArray(strings) => {
                (part.len(), strings.views()[part].iter().map(far_bytes).sum::<u64>())
            }
            Values::Dictionary(indices, entries) => match &**entries {
                Values::ByteArray(strings) => {
                    let entry = |index: &u32| strings.views().get(usize_of_u32(*index));
                    (2 * part.len(), indices[part].iter().filter_map(entry).map(far_bytes).sum())
                }
                _ => (0, 0),
            },
            _ => (0, 0),
        };
        self.bytes += bytes;
        budget.charge(START_PRICE, 0, looked_at);
        self.value = until;
        looked_at == 0 || until == column.values.len()
    }
}

/// A group on its way to a block.
pub(super) struct GroupWork {
    common: Common,
    block_rows: usize,
    /// Among all groups.
    pub(super) number: u64,
    /// Rows before those of the batch at hand, among all that were taken.
    first_row: u64,
    batches: VecDeque<Arrived>,
    stage: Stage,
    /// Batches that are stored, and sorted pieces of them.
    stored: Vec<Stored>,
    pieces: Vec<Piece>,
    block: Block,
}

enum Stage {
    /// The next batch is begun, or all are merged.
    Begin,
    Storing(Storing),
    /// The rows of the last batch are sorted, from this one on.
    Sorting(usize),
    /// What is sorted is merged, and a batch of it stored.
    Merging(Box<Producer>, Option<Storing>),
    Done,
}

impl GroupWork {
    /// Takes the group: its number among all groups, and the number of its first row. The block's batches have `block_rows` rows at most.
    pub(super) fn new(
        group: &mut Group,
        common: Common,
        block_rows: usize,
        (number, first_row): (u64, u64),
    ) -> GroupWork {
        let Group { batches, .. } = core::mem::take(group);
        GroupWork {
            common,
            block_rows,
            number,
            first_row,
            batches,
            stage: Stage::Begin,
            stored: Vec::new(),
            pieces: Vec::new(),
            block: Vec::new(),
        }
    }

    /// Works on it. True once it is done.
    ///
    /// # Errors
    ///
    /// As [`Piece::new`], and for a batch that does not fit the schema, with the row among all that were taken.
    pub(super) fn step(&mut self, budget: &mut Budget<'_>) -> Result<bool> {
        loop {
            match &mut self.stage {
                Stage::Begin => {
                    self.stage = match self.batches.pop_front() {
                        Some(Arrived::Batch(batch, kept)) => {
                            Stage::Storing(Storing::keeping(batch, kept, false))
                        }
                        Some(Arrived::Stored(stored)) => {
                            self.stored.push(stored);
                            Stage::Sorting(0)
                        }
                        None => {
                            let (stored, pieces) =
                                (core::mem::take(&mut self.stored), core::mem::take(&mut self.pieces));
                            Stage::Merging(
                                Box::new(Producer::of_pieces(stored, pieces, self.block_rows)),
                                None,
                            )
                        }
                    };
                }
                Stage::Storing(storing) => {
                    let is_stored = storing.step(&self.common.schema, budget);
                    if !self.in_input(is_stored)? {
                        return Ok(false);
                    }
                    if let Stage::Storing(storing) = core::mem::replace(&mut self.stage, Stage::Sorting(0)) {
                        self.stored.push(storing.finish());
                    }
                }
                Stage::Sorting(first) => {
                    let (first, Some(last)) = (*first, self.stored.last()) else {
                        return Err(Error::internal("nothing to sort"));
                    };
                    if first == last.rows {
                        self.first_row += u64_of(last.rows);
                        self.stage = Stage::Begin;
                        continue;
                    }
                    if !Piece::is_paid_for(budget) {
                        return Ok(false);
                    }
                    let source = u32::try_from(self.stored.len() - 1)
                        .map_err(|_| Error::internal("too many batches"))?;
                    let (keys, rows) = (&self.common.keys, first..last.rows);
                    let piece =
                        self.in_input(Piece::new(keys, &last.columns, source, rows, false, budget))?;
                    self.stage = Stage::Sorting(first + piece.len());
                    self.pieces.push(piece);
                }
                Stage::Merging(producer, storing) => {
                    if let Some(work) = storing {
                        if !work.step(&self.common.schema, budget)? {
                            return Ok(false);
                        }
                        let common = producer.common();
                        if let Some(mut stored) = storing.take().map(Storing::finish) {
                            stored.common = common;
                            self.block.push(stored);
                        }
                    }
                    match producer.step(&self.common, budget)? {
                        Going::Done(Some(rows)) => *storing = Some(Storing::gathered(rows)),
                        Going::Done(None) => self.stage = Stage::Done,
                        Going::Yield => return Ok(false),
                        Going::Need(_) => return Err(Error::internal("rows in memory that are read")),
                    }
                }
                Stage::Done => return Ok(true),
            }
            if budget.is_spent() {
                return Ok(matches!(self.stage, Stage::Done));
            }
        }
    }

    /// The block.
    pub(super) fn finish(self) -> Block {
        self.block
    }

    /// An error of a batch, with the row's number among all that were taken.
    fn in_input<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| match error.place().row {
            Some(row) => {
                let number = self.first_row + row;
                error.replaced(|place| place.row = Some(number))
            }
            None => error,
        })
    }
}
