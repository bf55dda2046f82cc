//! Batches that are held to be sorted.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::{Budget, Buffer, Error, Price, RELEASE_PRICE, Result, Segmented};
use marquetry_kernels::bits;

use super::collected::{Collected, Compacting, no_entry, room};
use crate::batch::{Batch, ColumnBatch, FixedBytes, Layout, Levels, Maxima, Values, check_column};
use crate::growing::SLICE_BYTES;
use crate::schema::{Leaf, Schema};
use crate::write::released::Released;

/// The prices of looking at a column; of copying strings; of finding where rows begin, and how long strings are; of moving values to their
/// rows; and of translating indices.
pub(super) const COLUMN_PRICE: Price = Price::per_kilovalue(60 << 10);
const STRING_PRICE: Price = Price { kib: 900, kilovalue: 60 << 10 };
pub(super) const START_PRICE: Price = Price::per_kilovalue(3 << 10);
const PUT_PRICE: Price = Price { kib: 450, kilovalue: 30 << 10 };
const TRANSLATE_PRICE: Price = Price::per_kilovalue(3 << 10);

/// Values that are processed between two checks of the budget; and strings and their bytes.
const SLICE_VALUES: usize = 1024;
const SLICE_STRINGS: usize = 256;
const SLICE_STRING_BYTES: usize = 16 << 10;

/// Rows that can be taken one by one: flat columns have one value per row, and in nested ones the start of each row is
/// known.
#[derive(Debug, Default)]
pub(super) struct Stored {
    /// Rows.
    pub(super) rows: usize,
    /// All leaves.
    pub(super) columns: Vec<ColumnBatch>,
    /// Of nested columns.
    starts: Segmented<Option<Starts>>,
    /// Instead of a column's values, indices of its dictionary.
    indices: Segmented<Option<Vec<u16>>>,
    /// Bytes of memory, about.
    pub(super) held: u64,
    /// Leading bytes that the keys of its rows share, as far as that is known.
    pub(super) common: usize,
}

/// Where the rows of a nested column begin, and where the last one ends.
#[derive(Debug, Default)]
pub(super) struct Starts {
    /// Among the entries. Empty if each entry is a row.
    entries: Vec<u32>,
    /// Among the values.
    values: Vec<u32>,
}

impl Stored {
    /// Where the rows of a nested column begin.
    pub(super) fn starts(&self, column: usize) -> Option<&Starts> {
        self.starts.get(column)?.as_ref()
    }

    /// The indices that a column has instead of values.
    pub(super) fn indices(&self, column: usize) -> Option<&[u16]> {
        self.indices.get(column)?.as_deref()
    }

    /// Begins to release everything: columns go to `released`, and the rest is released column by column. True once nothing is left here.
    pub(super) fn release(&mut self, released: &mut Released, budget: &mut Budget<'_>) -> bool {
        if !self.columns.is_empty() {
            released.columns(core::mem::take(&mut self.columns));
        }
        while let Some(starts) = self.starts.pop() {
            budget.charge(RELEASE_PRICE, starts.as_ref().map_or(0, Starts::held), 1);
            if budget.is_spent() {
                return self.starts.is_empty() && self.indices.is_empty();
            }
        }
        while let Some(indices) = self.indices.pop() {
            budget.charge(RELEASE_PRICE, indices.map_or(0, |indices| size_of_val(&*indices)), 1);
            if budget.is_spent() {
                return self.indices.is_empty();
            }
        }
        true
    }
}

impl Starts {
    /// The entries of a row: their start and end, the end excluded.
    pub(super) fn entries(&self, row: u32) -> (usize, usize) {
        let row = usize_of_u32(row);
        if self.entries.is_empty() {
            return (row, row + 1);
        }
        (usize_of_u32(self.entries[row]), usize_of_u32(self.entries[row + 1]))
    }

    /// The values of a row, likewise.
    pub(super) fn values(&self, row: u32) -> (usize, usize) {
        let row = usize_of_u32(row);
        (usize_of_u32(self.values[row]), usize_of_u32(self.values[row + 1]))
    }

    fn held(&self) -> usize {
        (self.entries.capacity() + self.values.capacity()) * size_of::<u32>()
    }
}

/// Rows that were gathered.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) batch: Batch,
    /// Of each column that has indices instead of values. Empty if none has.
    pub(super) indices: Vec<Option<Vec<u16>>>,
}

/// A batch's indices as those of its column's dictionary: a number for each entry of the batch's.
pub(super) type Renumbered = Arc<Vec<u16>>;

/// A batch that is being converted so that any row can be taken.
#[derive(Debug)]
pub(super) struct Storing {
    stored: Stored,
    /// Copies strings, so that their original buffers can be released.
    copies: bool,
    /// Of each column whose dictionary is kept, what its indices become; or the indices. Shorter if no further column has any.
    kept: Vec<Option<Renumbered>>,
    given: Vec<Option<Vec<u16>>>,
    /// The current column, and its indices.
    column: usize,
    indices: Option<Vec<u16>>,
    work: Work,
    /// Values that others have replaced.
    released: Released,
}

/// The work on a column, in this order.
#[derive(Debug)]
enum Work {
    Begin,
    /// Moves values to their rows, or looks them up in a dictionary. Rows so far, and values so far.
    Spreading {
        to: Collected,
        row: usize,
        value: usize,
    },
    /// Indices become those of the column's dictionary, in their rows. Values so far.
    Translating {
        numbers: Renumbered,
        value: usize,
    },
    Strings(Compacting),
    Starts {
        starts: Starts,
        entry: usize,
        values: u32,
    },
}

impl Storing {
    pub(super) fn new(batch: Batch, copies: bool) -> Storing {
        Storing {
            stored: Stored { rows: batch.rows, columns: batch.columns, ..Stored::default() },
            copies,
            kept: Vec::new(),
            given: Vec::new(),
            column: 0,
            indices: None,
            work: Work::Begin,
            released: Released::default(),
        }
    }

    /// Of a batch whose dictionaries are kept, if there is a number for each of their entries.
    pub(super) fn keeping(batch: Batch, kept: Vec<Option<Renumbered>>, copies: bool) -> Storing {
        Storing { kept, ..Storing::new(batch, copies) }
    }

    /// Of rows that were gathered. Their strings are copied.
    pub(super) fn gathered(rows: Rows) -> Storing {
        Storing { given: rows.indices, ..Storing::new(rows.batch, true) }
    }

    /// Works on it: true once it is done.
    ///
    /// # Errors
    ///
    /// `Misuse`, naming the column, for a batch that does not fit the schema.
    pub(super) fn step(&mut self, schema: &Schema, budget: &mut Budget<'_>) -> Result<bool> {
        while self.released.step(budget) && self.column < self.stored.columns.len() {
            let leaf = schema
                .leaves()
                .get(self.column)
                .ok_or_else(|| Error::internal("a leaf that is not there"))?;
            let is_done = self
                .work(leaf, budget)
                .map_err(|error| error.at(|place| place.column = Some(schema.path(leaf.node))))?;
            if is_done {
                self.column += 1;
                self.work = Work::Begin;
            }
            if budget.is_spent() {
                break;
            }
        }
        Ok(self.column == self.stored.columns.len() && self.released.is_empty())
    }

    /// The result.
    pub(super) fn finish(self) -> Stored {
        self.stored
    }

    /// Works on the current column. True once it is done.
    fn work(&mut self, leaf: &Leaf, budget: &mut Budget<'_>) -> Result<bool> {
        let rows = self.stored.rows;
        let Some(column) = self.stored.columns.get_mut(self.column) else {
            return Err(Error::internal("a column that is not there"));
        };
        loop {
            match &mut self.work {
                Work::Begin => {
                    budget.charge(COLUMN_PRICE, 0, 1);
                    self.indices = self.given.get_mut(self.column).and_then(Option::take);
                    if self.indices.is_some() {
                        // It has no values to look at.
                        self.work = next_of(column, false)?;
                        continue;
                    }
                    check(column, rows, leaf)?;
                    let numbers = self.kept.get_mut(self.column).and_then(Option::take);
                    self.work = if let Some(numbers) = numbers {
                        self.indices = Some(room(rows)?);
                        Work::Translating { numbers, value: 0 }
                    } else if needs_spreading(column) {
                        let values = if column.levels.is_some() { column.values.len() } else { rows };
                        Work::Spreading {
                            to: Collected::new(leaf.physical_type, values, 1)?,
                            row: 0,
                            value: 0,
                        }
                    } else {
                        next_of(column, self.copies)?
                    };
                }
                Work::Spreading { to, row, value } => {
                    let all = if column.levels.is_some() { column.values.len() } else { rows };
                    let until = all.min(*row + SLICE_VALUES);
                    let is_dense = column.layout == Layout::Dense;
                    let (first, mut bytes) = (*row, 0);
                    if column.validity.is_none()
                        && let Values::Dictionary(indices, entries) = &column.values
                        && to.look_up(entries, indices.get(first..until).unwrap_or_default())?
                    {
                        (*row, *value) = (until, until);
                    }
                    while *row < until && bytes < SLICE_BYTES {
                        let is_null = column.levels.is_none() && column.is_null(*row);
                        let (is_put, copied) = match (is_null, is_dense) {
                            (true, _) => to.put(&column.values, None)?,
                            (false, true) => to.put(&column.values, Some(*value))?,
                            (false, false) => to.put(&column.values, Some(*row))?,
                        };
                        bytes += copied;
                        if is_put {
                            *value += usize::from(!is_null);
                            *row += 1;
                        }
                    }
                    budget.charge(PUT_PRICE, bytes, *row - first + 1);
                    if *row < all {
                        return Ok(false);
                    }
                    let nothing = Collected::Int32(Vec::new());
                    let values = core::mem::replace(to, nothing).finish();
                    self.released.values(core::mem::replace(&mut column.values, values));
                    if column.levels.is_none() {
                        column.layout = Layout::Spaced;
                    }
                    self.work = next_of(column, self.copies)?;
                }
                Work::Translating { numbers, value } => {
                    let Some(indices) = &mut self.indices else {
                        return Err(Error::internal("indices that are not there"));
                    };
                    let first = indices.len();
                    translate(column, numbers, indices, value)?;
                    budget.charge(TRANSLATE_PRICE, 0, indices.len() - first);
                    if indices.len() < rows {
                        return Ok(false);
                    }
                    self.released.values(core::mem::replace(&mut column.values, no_values()));
                    column.layout = Layout::Spaced;
                    self.work = next_of(column, false)?;
                }
                Work::Strings(compacting) => {
                    let Values::ByteArray(values) = &column.values else {
                        return Err(Error::internal("strings that are none"));
                    };
                    let mut bytes = 0;
                    let (first, until) =
                        (compacting.len(), values.len().min(compacting.len() + SLICE_STRINGS));
                    while compacting.len() < until && bytes < SLICE_STRING_BYTES {
                        bytes += compacting.push(values, compacting.len())?;
                    }
                    budget.charge(STRING_PRICE, bytes, compacting.len() - first);
                    if compacting.len() < values.len() {
                        return Ok(false);
                    }
                    let (strings, held) = core::mem::replace(compacting, Compacting::new(0)?).finish();
                    let strings = Values::ByteArray(strings);
                    self.released.values(core::mem::replace(&mut column.values, strings));
                    self.stored.held += held;
                    self.work = next_of(column, false)?;
                }
                Work::Starts { starts, entry, values } => {
                    let mut held = held_by(column);
                    let starts = match &column.levels {
                        None => None,
                        Some(levels) => {
                            if !find_starts(levels, leaf, starts, entry, values, budget)? {
                                return Ok(false);
                            }
                            let found = (starts.values.len() - 1, usize_of_u32(*values));
                            if found != (rows, column.values.len()) {
                                return Err(Error::misuse(format!(
                                    "levels that tell of {} rows and {} values, in a batch of {rows} and {}",
                                    found.0,
                                    found.1,
                                    column.values.len()
                                )));
                            }
                            held += starts.held();
                            Some(core::mem::take(starts))
                        }
                    };
                    let indices = self.indices.take();
                    held += indices.as_ref().map_or(0, |indices| size_of_val(&**indices));
                    self.stored.held += u64_of(held);
                    self.stored.starts.push(starts);
                    self.stored.indices.push(indices);
                    return Ok(true);
                }
            }
            if budget.is_spent() {
                return Ok(false);
            }
        }
    }
}

/// Checks that a column can belong to a leaf, and has the right number of values.
fn check(column: &ColumnBatch, rows: usize, leaf: &Leaf) -> Result<()> {
    let level = |level: u16| {
        u8::try_from(level).map_err(|_| Error::unsupported("sorting rows of more than 255 levels"))
    };
    let maxima = Maxima { definition: level(leaf.definition_max)?, repetition: level(leaf.repetition_max)? };
    check_column(column, leaf.physical_type, maxima)?;
    if column.rows != rows {
        return Err(Error::misuse(format!("a column of {} rows, in a batch of {rows}", column.rows)));
    }
    if column.levels.is_some() {
        if maxima.repetition == 0 && maxima.definition < 2 {
            return Err(Error::misuse("levels of a column that is flat"));
        }
        return Ok(());
    }
    let nulls = match &column.validity {
        // As many bits as rows were found above.
        Some(validity) => rows - bits::count_ones(validity.bytes(), validity.offset(), rows).unwrap_or(rows),
        None => 0,
    };
    let values = if column.layout == Layout::Spaced { rows } else { rows - nulls };
    if column.values.len() != values {
        return Err(Error::misuse(format!("{} values, where {values} are to be", column.values.len())));
    }
    Ok(())
}

pub(super) fn needs_spreading(column: &ColumnBatch) -> bool {
    let is_dense = column.levels.is_none() && column.layout == Layout::Dense && column.validity.is_some();
    is_dense || matches!(column.values, Values::Dictionary(..))
}

/// Appends the numbers of the next entries' indices, for a slice of rows, of which `value` have had a value.
fn translate(column: &ColumnBatch, numbers: &[u16], to: &mut Vec<u16>, value: &mut usize) -> Result<()> {
    let indices = match &column.values {
        Values::Dictionary(indices, _) => &**indices,
        // There are only nulls.
        _ => &[],
    };
    let number = |index: Option<&u32>| {
        let found = index.and_then(|index| numbers.get(usize_of_u32(*index)));
        found.copied().ok_or_else(no_entry)
    };
    let until = column.rows.min(to.len() + SLICE_VALUES);
    let Some(validity) = &column.validity else {
        for index in indices.get(to.len()..until).unwrap_or_default() {
            to.push(number(Some(index))?);
        }
        return if to.len() == until { Ok(()) } else { Err(Error::misuse("fewer values than rows")) };
    };
    for row in to.len()..until {
        let is_there = validity.get(row);
        let at = if column.layout == Layout::Dense { *value } else { row };
        to.push(if is_there { number(indices.get(at))? } else { 0 });
        *value += usize::from(is_there);
    }
    Ok(())
}

/// In the place of values of which there are indices.
pub(super) fn no_values() -> Values {
    Values::Int32(Buffer::default())
}

/// What must be done once each value is in its row.
fn next_of(column: &ColumnBatch, copies: bool) -> Result<Work> {
    if copies && let Values::ByteArray(values) = &column.values {
        return Ok(Work::Strings(Compacting::new(values.len())?));
    }
    let mut starts = Starts::default();
    if let Some(levels) = &column.levels {
        starts.values = room(column.rows + 1)?;
        if levels.repetition.is_some() {
            starts.entries = room(column.rows + 1)?;
        }
    }
    Ok(Work::Starts { starts, entry: 0, values: 0 })
}

/// Finds where rows begin. True once all are found.
fn find_starts(
    levels: &Levels,
    leaf: &Leaf,
    starts: &mut Starts,
    entry: &mut usize,
    values: &mut u32,
    budget: &mut Budget<'_>,
) -> Result<bool> {
    let number =
        |at: usize| u32::try_from(at).map_err(|_| Error::too_large("a batch of more than 2^32 entries"));
    let all = levels.definition.len();
    let until = all.min(*entry + 16 * SLICE_VALUES);
    budget.charge(START_PRICE, 0, until - *entry);
    for at in *entry..until {
        if levels.repetition.as_ref().is_none_or(|repetition| repetition[at] == 0) {
            if levels.repetition.is_some() {
                starts.entries.push(number(at)?);
            }
            starts.values.push(*values);
        }
        *values += u32::from(u16::from(levels.definition[at]) == leaf.definition_max);
    }
    *entry = until;
    if until < all {
        return Ok(false);
    }
    if levels.repetition.is_some() {
        starts.entries.push(number(all)?);
    }
    starts.values.push(*values);
    Ok(true)
}

/// Bytes of a column, without what strings point to. What its buffers have room for beyond that does not count: it depends on
/// what they held before, and with that where runs end would depend on the threads that the rows come from.
pub(super) fn held_by(column: &ColumnBatch) -> usize {
    fn of<T: Clone>(buffer: &Buffer<T>) -> usize {
        size_of_val(&**buffer)
    }
    let fixed = |values: &FixedBytes| of(values.bytes());
    let values = match &column.values {
        Values::Boolean(bits) => of(bits.bytes()),
        Values::Int32(values) => of(values),
        Values::Int64(values) => of(values),
        Values::Float(values) => of(values),
        Values::Double(values) => of(values),
        Values::ByteArray(values) => of(values.views()),
        Values::Int96(values) | Values::FixedLenByteArray(values) => fixed(values),
        Values::Dictionary(indices, _) => of(indices),
    };
    let validity = column.validity.as_ref().map_or(0, |validity| of(validity.bytes()));
    let levels = column
        .levels
        .as_ref()
        .map_or(0, |levels| of(&levels.definition) + levels.repetition.as_ref().map_or(0, of));
    size_of::<ColumnBatch>() + values + validity + levels
}
