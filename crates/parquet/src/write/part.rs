//! The next few entries of a column's batch, which are processed together.

use core::ops::Range;

use alloc::format;
use alloc::vec::Vec;

use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::{Budget, Error, Price, Result};
use marquetry_kernels::{bits, gather, levels as kernel};

use super::encoder::{Compacted, Slice};
use crate::batch::{ColumnBatch, Layout, Maxima, Values};
use crate::growing::SLICE_BYTES;

/// Maximum entries that are processed together: enough that the cost per part hardly matters.
pub(super) const PART_ENTRIES: usize = 1024;

/// The price of finding the parts of a column, per entry.
pub(super) const PART_PRICE: Price = Price::per_kilovalue(700);
/// The price of looking a value up in a batch's dictionary; byte strings of one width are copied.
const GATHER_PRICE: Price = Price { kib: 150, kilovalue: 2 << 10 };

/// A position in a column of a batch.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cursor {
    /// Rows that are begun before.
    pub(super) row: usize,
    /// Entries before.
    pub(super) entry: usize,
    /// Values before it, nulls not included.
    pub(super) value: usize,
}

/// Entries that are processed together. They end with a row if possible; else they are part of one.
#[derive(Debug, Clone)]
pub(super) struct Part {
    /// Which entries of the batch.
    pub(super) entries: Range<usize>,
    /// Rows that begin among them.
    pub(super) rows: usize,
    /// Values, nulls not included.
    pub(super) values: usize,
    /// Bytes of the values, without lengths. At most [`SLICE_BYTES`], unless it is a single entry.
    pub(super) bytes: usize,
}

/// The repetition levels, if their maximum is above 0.
pub(super) fn repetition_of(column: &ColumnBatch, maxima: Maxima) -> Option<&[u8]> {
    column.levels.as_ref()?.repetition.as_deref().filter(|_| maxima.repetition > 0)
}

impl Part {
    /// The next entries: none that begin a row from `until` on, and at most `rows` that begin one.
    pub(super) fn next(
        column: &ColumnBatch,
        maxima: Maxima,
        cursor: Cursor,
        until: usize,
        rows: usize,
    ) -> Result<Part> {
        let entries = column.levels.as_ref().map_or(column.rows, |levels| levels.definition.len());
        let rows = rows.min(until.saturating_sub(cursor.row));
        let mut count = PART_ENTRIES.min(entries - cursor.entry.min(entries));
        let repetition = repetition_of(column, maxima).map(|levels| &levels[cursor.entry..]);
        count = match repetition {
            None => count.min(rows),
            Some(levels) => kernel::find_below(&levels[..count], 1, rows).unwrap_or(count),
        };
        loop {
            count = match repetition {
                Some(levels) => whole_rows(levels, count),
                None => count,
            };
            let range = cursor.entry..cursor.entry + count;
            let values = there(column, maxima, range.clone());
            let bytes = bytes_of(column, range.clone(), cursor.value, values)?;
            if bytes <= SLICE_BYTES || count <= 1 {
                let rows = repetition.map_or(count, |levels| count - kernel::count(&levels[..count], 1));
                return Ok(Part { entries: range, rows, values, bytes });
            }
            count /= 2;
        }
    }

    /// The first value of more than `most` bytes, if values are of different lengths: its entry, and its bytes. `first` is the
    /// part's first value, as of [`Cursor::value`].
    pub(super) fn longer(
        &self,
        column: &ColumnBatch,
        maxima: Maxima,
        first: usize,
        most: u64,
    ) -> Option<(usize, u64)> {
        let range = if is_spaced(column) { self.entries.clone() } else { first..first + self.values };
        let is_longer = |(_, bytes): &(usize, u64)| *bytes > most;
        let (value, bytes) = match &column.values {
            Values::ByteArray(values) => {
                values.views()[range].iter().map(length).enumerate().find(is_longer)?
            }
            Values::Dictionary(indices, values) => {
                let Values::ByteArray(values) = &**values else { return None };
                let views = indices[range].iter().map(|&index| values.views().get(index as usize));
                views.map(|view| view.map_or(0, length)).enumerate().find(is_longer)?
            }
            _ => return None,
        };
        let is_value = |entry: &usize| match (&column.levels, &column.validity) {
            (Some(levels), _) => levels.definition.get(*entry) == Some(&maxima.definition),
            (None, Some(validity)) => is_spaced(column) || validity.get(*entry),
            (None, None) => true,
        };
        Some((self.entries.clone().filter(is_value).nth(value)?, bytes))
    }

    /// Whether it begins a row.
    pub(super) fn begins_row(&self, column: &ColumnBatch, maxima: Maxima) -> bool {
        repetition_of(column, maxima).is_none_or(|levels| levels.get(self.entries.start) == Some(&0))
    }
}

/// The bytes of a column's values in PLAIN, about, and its entries.
pub(super) fn measure(column: &ColumnBatch) -> (u64, usize) {
    let entries = column.levels.as_ref().map_or(column.rows, |levels| levels.definition.len());
    let values = column.values.len();
    if values == 0 {
        return (0, entries);
    }
    (u64_of(bytes_of_values(&column.values, 0..values)) + 4 * u64_of(values), entries.max(values))
}

/// The largest number of entries, up to `count`, that ends with a row; `count` if no row ends there.
fn whole_rows(levels: &[u8], count: usize) -> usize {
    if levels.get(count).is_none_or(|level| *level == 0) {
        return count;
    }
    match levels[..count].iter().rposition(|level| *level == 0) {
        Some(start) if start > 0 => start,
        _ => count,
    }
}

/// Values, nulls not included.
fn there(column: &ColumnBatch, maxima: Maxima, entries: Range<usize>) -> usize {
    match (&column.levels, &column.validity) {
        (Some(levels), _) => kernel::count(&levels.definition[entries], maxima.definition),
        (None, None) => entries.len(),
        (None, Some(validity)) => {
            bits::count_ones(validity.bytes(), validity.offset() + entries.start, entries.len()).unwrap_or(0)
        }
    }
}

/// Whether every entry has a slot for a value, though some are null.
fn is_spaced(column: &ColumnBatch) -> bool {
    column.levels.is_none() && column.layout == Layout::Spaced
}

fn bytes_of(column: &ColumnBatch, entries: Range<usize>, first: usize, values: usize) -> Result<usize> {
    let range = if is_spaced(column) { entries } else { first..first + values };
    if range.end > column.values.len() {
        return Err(too_few(column));
    }
    match &column.validity {
        // What is in the place of a null may be anything.
        Some(validity) if is_spaced(column) && values < range.len() => {
            let there = |at: usize| u64::from(validity.get(at));
            let bytes: u64 = match &column.values {
                Values::ByteArray(strings) => {
                    let views = range.clone().zip(&strings.views()[range]);
                    views.map(|(at, view)| there(at) * length(view)).sum()
                }
                Values::Dictionary(indices, entries) => match &**entries {
                    Values::ByteArray(strings) => {
                        let entry = |index: u32| strings.views().get(usize_of_u32(index)).map_or(0, length);
                        range.map(|at| there(at) * entry(indices[at])).sum()
                    }
                    _ => return Ok(bytes_of_values(&column.values, range)),
                },
                _ => return Ok(bytes_of_values(&column.values, range)),
            };
            Ok(usize::try_from(bytes).unwrap_or(usize::MAX))
        }
        _ => Ok(bytes_of_values(&column.values, range)),
    }
}

fn length(view: &u128) -> u64 {
    let words: &[u32; 4] = bytemuck::cast_ref(view);
    u64::from(words[0])
}

fn bytes_of_values(values: &Values, range: Range<usize>) -> usize {
    // No batch has values whose lengths add up to more.
    let sum = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    match values {
        Values::Boolean(_) => range.len() / 8,
        Values::Int32(_) | Values::Float(_) => range.len() * 4,
        Values::Int64(_) | Values::Double(_) => range.len() * 8,
        Values::Int96(values) | Values::FixedLenByteArray(values) => range.len() * values.width(),
        Values::ByteArray(values) => sum(values.views()[range].iter().map(length).sum()),
        Values::Dictionary(indices, values) => match &**values {
            Values::ByteArray(values) => {
                let views = indices[range].iter().map(|&index| values.views().get(index as usize));
                sum(views.map(|view| view.map_or(0, length)).sum())
            }
            values => bytes_of_values(values, 0..1) * range.len(),
        },
    }
}

fn too_few(column: &ColumnBatch) -> Error {
    Error::misuse(format!(
        "a batch whose levels tell of more values than the {} there are",
        column.values.len()
    ))
}

/// Memory for values that must be gathered.
#[derive(Debug, Default)]
pub(super) struct Room {
    pub(super) compacted: Compacted,
    pub(super) gathered: Gathered,
}

/// Memory for values that are looked up in a dictionary.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    four: Vec<u32>,
    eight: Vec<u64>,
    views: Vec<u128>,
    bytes: Vec<u8>,
}

/// The values of a part, together; of a dictionary, their indices.
pub(super) fn values_of<'a>(
    column: &'a ColumnBatch,
    part: &Part,
    first: usize,
    compacted: &'a mut Compacted,
    budget: &mut Budget<'_>,
) -> Result<Slice<'a>> {
    let range = if is_spaced(column) { part.entries.clone() } else { first..first + part.values };
    let slice = Slice::of(&column.values).part(range);
    let validity = column.validity.as_ref().filter(|_| is_spaced(column) && part.values < part.entries.len());
    match validity {
        Some(validity) => compacted.compact(slice, &validity.slice(part.entries.clone()), budget),
        None => Ok(slice),
    }
}

impl Gathered {
    /// The values of a dictionary at these indices.
    ///
    /// # Errors
    ///
    /// `Misuse` for an index that it does not have.
    pub(super) fn look_up<'a>(
        &'a mut self,
        values: &'a Values,
        indices: &[u32],
        budget: &mut Budget<'_>,
    ) -> Result<Slice<'a>> {
        let bytes = match (values, indices) {
            (Values::Int96(values) | Values::FixedLenByteArray(values), [_, _, ..]) => {
                indices.len() * values.width()
            }
            _ => 0,
        };
        budget.charge(GATHER_PRICE, bytes, indices.len());
        self.gather(values, indices)
    }

    /// Of these indices as many as are looked up at a time: byte strings of one width are copied, but for one alone.
    pub(super) fn at_once<'i>(values: &Values, indices: &'i [u32]) -> &'i [u32] {
        let width = match values {
            Values::Int96(values) | Values::FixedLenByteArray(values) => values.width(),
            _ => 0,
        };
        let most = SLICE_BYTES.checked_div(width).map_or(usize::MAX, |most| most.max(1));
        &indices[..indices.len().min(most)]
    }

    fn gather<'a>(&'a mut self, values: &'a Values, indices: &[u32]) -> Result<Slice<'a>> {
        let count = indices.len();
        self.four.clear();
        self.eight.clear();
        let beyond = || Error::misuse("an index that the dictionary of its batch does not have");
        let wrong = |_| beyond();
        match values {
            Values::Int32(values) => {
                self.four.resize(count, 0);
                let out = bytemuck::cast_slice_mut(&mut self.four);
                gather::values(values, indices, out).map_err(wrong)?;
                Ok(Slice::Int32(bytemuck::cast_slice(&self.four)))
            }
            Values::Float(values) => {
                self.four.resize(count, 0);
                let out = bytemuck::cast_slice_mut(&mut self.four);
                gather::values(values, indices, out).map_err(wrong)?;
                Ok(Slice::Float(bytemuck::cast_slice(&self.four)))
            }
            Values::Int64(values) => {
                self.eight.resize(count, 0);
                let out = bytemuck::cast_slice_mut(&mut self.eight);
                gather::values(values, indices, out).map_err(wrong)?;
                Ok(Slice::Int64(bytemuck::cast_slice(&self.eight)))
            }
            Values::Double(values) => {
                self.eight.resize(count, 0);
                let out = bytemuck::cast_slice_mut(&mut self.eight);
                gather::values(values, indices, out).map_err(wrong)?;
                Ok(Slice::Double(bytemuck::cast_slice(&self.eight)))
            }
            Values::ByteArray(values) => {
                self.views.clear();
                self.views.resize(count, 0);
                gather::values(values.views(), indices, &mut self.views).map_err(wrong)?;
                Ok(Slice::ByteArray(&self.views, values.buffers()))
            }
            Values::Int96(values) | Values::FixedLenByteArray(values) if values.width() > 0 => {
                let width = values.width();
                if let [index] = indices {
                    // It may be long, and is asked for again after each slice of it.
                    let start = usize_of_u32(*index).saturating_mul(width);
                    let value = values.bytes().get(start..start.saturating_add(width)).ok_or_else(beyond)?;
                    return Ok(Slice::Fixed { width, values: 1, bytes: value });
                }
                self.bytes.clear();
                self.bytes.resize(count * width, 0);
                gather::fixed(values.bytes(), width, indices, &mut self.bytes).map_err(wrong)?;
                Ok(Slice::Fixed { width, values: count, bytes: &self.bytes })
            }
            Values::Int96(_) | Values::FixedLenByteArray(_) => {
                Ok(Slice::Fixed { width: 0, values: count, bytes: &[] })
            }
            Values::Boolean(bits) => {
                self.bytes.clear();
                self.bytes.resize(count.div_ceil(8), 0);
                for (at, &index) in indices.iter().enumerate() {
                    self.bytes[at / 8] |= u8::from(bits.get(index as usize)) << (at % 8);
                }
                Ok(Slice::Boolean { bits: &self.bytes, first: 0, values: count })
            }
            Values::Dictionary(..) => Err(Error::misuse("a dictionary of a dictionary")),
        }
    }
}
