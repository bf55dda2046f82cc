//! The batch that a column is filling.

mod buffers;
mod kept;
mod nulls;

use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::{Bitmap, Budget, Bytes, Error, Release, Result, release_all};
use marquetry_kernels::{Plain, bits, gather, spread};

use super::dictionary::{Entries, Segmented, Segments};
use crate::batch::store::{ARRAY_BYTES_MAX, Store, disagree, rows_max, value_bytes};
use crate::batch::{ByteArrays, ColumnBatch, FixedBytes, Layout, Levels, Values};
use crate::encoding::hybrid::{Hybrid, beyond_dictionary};
use crate::growing::SLICE_BYTES;
use crate::memory::Memory;
use crate::schema::PhysicalType;
pub(super) use buffers::{Buffers, reserve};

/// Bytes of pages that a batch of one column may hold, at most. Beyond it the batch ends early, so that huge values make
/// small batches and not huge memory.
const BATCH_BYTES_MAX: usize = 16 << 20;
/// Bytes that an array of a nested leaf may have where the last row of its batch begins: so a row of as many is no exception to
/// [`ARRAY_BYTES_MAX`].
const NESTED_BYTES_MAX: usize = 512 << 10;
/// Bytes that an entry of a nested leaf takes at least, in what is made of it: it may become a view.
const ENTRY_BYTES_MIN: usize = 16;
/// Bytes of a value that is null, at most, where nulls take room: zeros that no byte of the file stands for.
pub(super) const NULL_BYTES_MAX: usize = ARRAY_BYTES_MAX;
/// The part of a row that must be there before memory for all of it is allocated, if its length is known.
const JOINED_PART: usize = 8;
/// The values of the batch.
#[derive(Debug)]
pub(super) enum Output {
    /// Bits.
    Boolean(Store<u8>),
    /// INT32.
    Int32(Store<i32>),
    /// INT64.
    Int64(Store<i64>),
    /// FLOAT.
    Float(Store<f32>),
    /// DOUBLE.
    Double(Store<f64>),
    /// INT96 and FIXED_LEN_BYTE_ARRAY.
    Fixed(usize, Store<u8>),
    /// BYTE_ARRAY.
    ByteArray(Store<u128>, Buffers),
}

impl Release for Output {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        match self {
            Output::Boolean(store) | Output::Fixed(_, store) => store.release(budget),
            Output::Int32(store) => store.release(budget),
            Output::Int64(store) => store.release(budget),
            Output::Float(store) => store.release(budget),
            Output::Double(store) => store.release(budget),
            Output::ByteArray(store, buffers) => release_all(&mut [store, buffers], budget),
        }
    }
}

/// The batch of one column, while it is being filled.
#[derive(Debug)]
pub(super) struct Builder {
    pub(super) capacity: usize,
    /// Bytes of pages that the batch should hold at most, if that is less than usual: see [`Builder::is_heavy`].
    pub(super) pages_max: usize,
    pub(super) rows: usize,
    /// Slots that have their value: of a spaced layout, once a slice has ended, as many as rows.
    pub(super) values: usize,
    /// Bytes that are there of the value behind them, where one is so wide that it takes several slices.
    pub(super) partial: usize,
    /// The same of slots of nulls that are being cleared; of numbers and views, slots.
    cleared: usize,
    /// Whether [`Builder::hold`] was said to hold indices, while it clears their slots.
    clears_indices: Option<bool>,
    nulls: usize,
    validity: Store<u8>,
    pub(super) output: Output,
    /// Indices, of a batch whose dictionary is kept.
    pub(super) indices: Store<u32>,
    /// Levels of a nested leaf, and how many of each.
    definition: Store<u8>,
    repetition: Store<u8>,
    entries: usize,
    /// Entries after which no row begins in the batch of a nested leaf.
    entries_max: usize,
    /// Whether the batch holds indices; not known before its first value, if dictionaries are kept.
    pub(super) holds_indices: Option<bool>,
    keep_dictionaries: bool,
    layout: Layout,
}

impl Builder {
    /// A batch of at most `capacity` rows. Dictionaries of nested leaves are not kept.
    pub(super) fn new(
        physical_type: PhysicalType,
        capacity: usize,
        layout: Layout,
        keep_dictionaries: bool,
    ) -> Builder {
        let output = match physical_type {
            PhysicalType::Boolean => Output::Boolean(Store::default()),
            PhysicalType::Int32 => Output::Int32(Store::default()),
            PhysicalType::Int64 => Output::Int64(Store::default()),
            PhysicalType::Float => Output::Float(Store::default()),
            PhysicalType::Double => Output::Double(Store::default()),
            PhysicalType::Int96 => Output::Fixed(12, Store::default()),
            PhysicalType::FixedLenByteArray(width) => Output::Fixed(width as usize, Store::default()),
            PhysicalType::ByteArray => Output::ByteArray(Store::default(), Buffers::default()),
        };
        Builder {
            capacity: capacity.min(rows_max(physical_type)),
            pages_max: usize::MAX,
            rows: 0,
            values: 0,
            partial: 0,
            cleared: 0,
            clears_indices: None,
            nulls: 0,
            validity: Store::default(),
            output,
            indices: Store::default(),
            definition: Store::default(),
            repetition: Store::default(),
            entries: 0,
            entries_max: (NESTED_BYTES_MAX / value_bytes(physical_type).max(ENTRY_BYTES_MIN)).max(1),
            holds_indices: (!keep_dictionaries).then_some(false),
            keep_dictionaries,
            layout,
        }
    }

    /// Bytes of a value, where all have as many; else 0.
    pub(super) fn value_width(&self) -> usize {
        match &self.output {
            Output::Int32(_) | Output::Float(_) => 4,
            Output::Int64(_) | Output::Double(_) => 8,
            Output::Fixed(width, _) => *width,
            Output::Boolean(_) | Output::ByteArray(..) => 0,
        }
    }

    /// Makes room for a slice: `rows` more rows, or entries of a nested leaf, each perhaps with a value. False when the budget is spent
    /// before; then call again. (Values that are long are looked for before room is made for them: see
    /// [`ValueDecoder::decode`](super::values::ValueDecoder::decode).)
    pub(super) fn prepare(
        &mut self,
        rows: usize,
        memory: &mut Memory,
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        let (capacity, at, end) = (self.capacity, self.values, self.values + rows);
        if self.holds_indices == Some(true) {
            return prepare(&mut self.indices, (capacity, at, end), memory, budget);
        }
        match &mut self.output {
            Output::Int32(store) => prepare(store, (capacity, at, end), memory, budget),
            Output::Int64(store) => prepare(store, (capacity, at, end), memory, budget),
            Output::Float(store) => prepare(store, (capacity, at, end), memory, budget),
            Output::Double(store) => prepare(store, (capacity, at, end), memory, budget),
            Output::ByteArray(store, _) => prepare(store, (capacity, at, end), memory, budget),
            Output::Boolean(store) => {
                prepare(store, (capacity.div_ceil(8), at / 8, end.div_ceil(8)), memory, budget)
            }
            Output::Fixed(width, store) if *width <= SLICE_BYTES => {
                prepare(store, (capacity * *width, at * *width, end * *width), memory, budget)
            }
            // A slice of one value.
            Output::Fixed(width, store) if rows > 0 => {
                let start = at.saturating_mul(*width).saturating_add(self.partial);
                let end = start.saturating_add(SLICE_BYTES.min(*width - self.partial));
                prepare(store, (capacity.saturating_mul(*width), start, end), memory, budget)
            }
            Output::Fixed(..) => Ok(true),
        }
    }

    /// The same for the levels of `entries` more entries of a nested leaf.
    pub(super) fn prepare_levels(
        &mut self,
        entries: usize,
        has_repetition: bool,
        memory: &mut Memory,
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        let place = (self.capacity, self.entries, self.entries + entries);
        let is_ready = prepare(&mut self.definition, place, memory, budget)?;
        Ok(is_ready && (!has_repetition || prepare(&mut self.repetition, place, memory, budget)?))
    }

    /// Entries of a nested leaf to take at a time: those of large values are few.
    pub(super) fn slice_entries(&self) -> usize {
        (self.entries_max / 4).max(1)
    }

    /// Entries of a nested leaf that the batch should have at most, beside those that it has.
    pub(super) fn entries_left(&self) -> usize {
        self.entries_max.saturating_sub(self.entries)
    }

    /// Room for the validity of the first `rows`.
    pub(super) fn validity(&mut self, rows: usize) -> Result<&mut [u8]> {
        self.validity.room(self.capacity.div_ceil(8), 0, rows.div_ceil(8))
    }

    /// Adds the levels of entries of a nested leaf.
    pub(super) fn add_levels(&mut self, definition: &[u8], repetition: &[u8]) -> Result<()> {
        let (capacity, at) = (self.capacity, self.entries);
        self.definition.room(capacity, at, definition.len())?.copy_from_slice(definition);
        if !repetition.is_empty() {
            self.repetition.room(capacity, at, repetition.len())?.copy_from_slice(repetition);
        }
        self.entries += definition.len();
        Ok(())
    }

    /// The batch's first value is an index into a kept dictionary, or is not: there the nulls before it have their slots. False when
    /// the budget is spent before; then call again.
    pub(super) fn hold(
        &mut self,
        indices: bool,
        memory: &mut Memory,
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        if self.clears_indices.replace(indices) != Some(indices) {
            // What was cleared is of the other kind.
            self.cleared = 0;
        }
        self.holds_indices = Some(indices);
        // The memory may have values of another batch.
        let is_ready = self.clear(0, self.values, memory, budget)?;
        if is_ready {
            self.clears_indices = None;
        } else {
            self.holds_indices = None;
        }
        Ok(is_ready)
    }

    /// Ends a slice of `rows` rows of a flat leaf, whose validity is there if any can be null. `there` of them have the values that were
    /// decoded last: where the layout has a slot for a null, they are moved to their rows.
    pub(super) fn end_slice(&mut self, rows: usize, there: usize) -> Result<()> {
        let at = self.rows;
        self.rows += rows;
        self.nulls += rows - there;
        if self.layout == Layout::Dense || there == rows {
            return Ok(());
        }
        self.values = self.rows;
        let validity = self.validity.values();
        match (&mut self.output, self.holds_indices) {
            // Where its slots are is not known yet.
            (_, None) => Ok(()),
            (_, Some(true)) => self.indices.spread(at, there, rows, validity),
            (Output::Int32(store), _) => store.spread(at, there, rows, validity),
            (Output::Int64(store), _) => store.spread(at, there, rows, validity),
            (Output::Float(store), _) => store.spread(at, there, rows, validity),
            (Output::Double(store), _) => store.spread(at, there, rows, validity),
            (Output::ByteArray(store, _), _) => store.spread(at, there, rows, validity),
            (Output::Boolean(store), _) => {
                let out = store.room(self.capacity.div_ceil(8), 0, self.rows.div_ceil(8))?;
                spread_bits(out, at, there, rows, validity)
            }
            // One row, whose slot is clear: see `clear_wide_null`.
            (Output::Fixed(width, _), _) if *width > SLICE_BYTES => Ok(()),
            (Output::Fixed(width, store), _) => {
                let width = *width;
                let out = store.room(self.capacity.saturating_mul(width), at * width, rows * width)?;
                spread_fixed(out, width, there, rows, (validity, at))
            }
        }
    }

    /// Decodes `count` indices into a large dictionary, or as many as are there, and looks them up to the end of the values; how many.
    pub(super) fn look_up(
        &mut self,
        dictionary: &Segmented,
        hybrid: &mut Hybrid,
        count: usize,
    ) -> Result<usize> {
        /// The same for each kind of values that are numbers, views among them.
        fn look_up<T: Plain + Default>(
            (segments, shift): (&[Vec<T>], u32),
            hybrid: &mut Hybrid,
            store: &mut Store<T>,
            (capacity, at, count): (usize, usize, usize),
        ) -> Result<usize> {
            let segmented = gather::Segmented::new(segments, shift)
                .map_err(|_| Error::internal("a dictionary's segment that is not full"))?;
            hybrid.look_up_segmented(segmented, store.room(capacity, at, count)?)
        }
        let (shift, capacity, at) = (dictionary.shift, self.capacity, self.values);
        let place = (capacity, at, count);
        let found = match (&dictionary.segments, &mut self.output) {
            (Segments::Int32(segments), Output::Int32(store)) => {
                look_up((segments, shift), hybrid, store, place)?
            }
            (Segments::Int64(segments), Output::Int64(store)) => {
                look_up((segments, shift), hybrid, store, place)?
            }
            (Segments::Float(segments), Output::Float(store)) => {
                look_up((segments, shift), hybrid, store, place)?
            }
            (Segments::Double(segments), Output::Double(store)) => {
                look_up((segments, shift), hybrid, store, place)?
            }
            (Segments::ByteArray(segments), Output::ByteArray(store, _)) => {
                look_up((segments, shift), hybrid, store, place)?
            }
            (Segments::Fixed(width, segments), Output::Fixed(_, store)) => {
                let indices = self.indices.room(capacity, 0, count)?;
                let found = hybrid.decode(indices)?;
                let out = store.room(capacity.saturating_mul(*width), at * width, found * width)?;
                gather::segmented_fixed(segments, shift, *width, &indices[..found], out)
                    .map_err(|_| beyond_dictionary(dictionary.entries))?;
                found
            }
            _ => return Err(Error::internal("a dictionary of another type than its column")),
        };
        self.values += found;
        Ok(found)
    }

    /// True if an array was collected in parts, which must be [joined](Builder::join) before the batch ends.
    pub(super) fn has_parts(&self) -> bool {
        let values = match &self.output {
            Output::Boolean(store) | Output::Fixed(_, store) => store.has_parts(),
            Output::Int32(store) => store.has_parts(),
            Output::Int64(store) => store.has_parts(),
            Output::Float(store) => store.has_parts(),
            Output::Double(store) => store.has_parts(),
            Output::ByteArray(store, _) => store.has_parts(),
        };
        values || self.indices.has_parts() || self.definition.has_parts() || self.repetition.has_parts()
    }

    /// Joins one array that was collected in parts, with room for what `more` entries add. False when the budget is spent before: then
    /// call again, and add nothing to the batch.
    pub(super) fn join(&mut self, more: usize, memory: &mut Memory, budget: &mut Budget<'_>) -> Result<bool> {
        /// Joins an array, if it has parts.
        fn join<T: Copy + Default + Release>(
            store: &mut Store<T>,
            (length, total): (usize, usize),
            memory: &mut Memory,
            budget: &mut Budget<'_>,
        ) -> Result<Option<bool>> {
            if !store.has_parts() {
                return Ok(None);
            }
            memory.admit(store.joins_bytes(total))?;
            store.join(length, total, budget).map(Some)
        }
        let (values, entries) = (self.values, self.entries);
        let all_entries = entries.saturating_add(more);
        let all_values = values.saturating_add(self.values_in(more));
        let lengths = (values, all_values);
        let joined = match &mut self.output {
            Output::Boolean(store) => {
                join(store, (values.div_ceil(8), all_values.div_ceil(8)), memory, budget)?
            }
            Output::Int32(store) => join(store, lengths, memory, budget)?,
            Output::Int64(store) => join(store, lengths, memory, budget)?,
            Output::Float(store) => join(store, lengths, memory, budget)?,
            Output::Double(store) => join(store, lengths, memory, budget)?,
            Output::Fixed(width, store) => {
                join(store, (values * *width, all_values.saturating_mul(*width)), memory, budget)?
            }
            Output::ByteArray(store, _) => join(store, lengths, memory, budget)?,
        };
        if let Some(joined) = joined {
            return Ok(joined);
        }
        if let Some(joined) = join(&mut self.indices, lengths, memory, budget)? {
            return Ok(joined);
        }
        for levels in [&mut self.definition, &mut self.repetition] {
            if let Some(joined) = join(levels, (entries, all_entries), memory, budget)? {
                return Ok(joined);
            }
        }
        Ok(true)
    }

    /// About how many values `more` entries have, if they are like those before: what more there are would be parts again.
    fn values_in(&self, more: usize) -> usize {
        match (more as u128 * self.values as u128).checked_div(self.entries as u128) {
            Some(values) if self.values < self.entries => {
                usize::try_from(values + values / 16).unwrap_or(usize::MAX).min(more)
            }
            _ => more,
        }
    }

    /// True if an array was collected in parts, and it is time to join them, because it is known that exactly `more` entries of the batch
    /// are to come: an eighth of all are there, and nothing is in the middle of a value.
    pub(super) fn joins_ahead(&self, more: usize) -> bool {
        self.has_parts() && self.partial == 0 && more / JOINED_PART <= self.entries
    }

    /// True while an array is being joined.
    pub(super) fn is_joining(&self) -> bool {
        let values = match &self.output {
            Output::Boolean(store) | Output::Fixed(_, store) => store.is_joining(),
            Output::Int32(store) => store.is_joining(),
            Output::Int64(store) => store.is_joining(),
            Output::Float(store) => store.is_joining(),
            Output::Double(store) => store.is_joining(),
            Output::ByteArray(store, _) => store.is_joining(),
        };
        values || self.indices.is_joining() || self.definition.is_joining() || self.repetition.is_joining()
    }

    /// Ends the batch of a nested leaf.
    pub(super) fn finish_nested(
        &mut self,
        leaf: usize,
        physical_type: PhysicalType,
        has_repetition: bool,
        dictionary: Option<&Entries>,
    ) -> Result<ColumnBatch> {
        let (rows, entries, there) = (self.rows, self.entries, self.values);
        let values = self.finish_values(physical_type, dictionary)?;
        let levels = Levels {
            definition: self.definition.share(entries)?,
            repetition: has_repetition.then(|| self.repetition.share(entries)).transpose()?,
        };
        self.begin();
        let nulls = entries - there;
        Ok(ColumnBatch {
            leaf,
            rows,
            nulls,
            validity: None,
            values,
            layout: Layout::Dense,
            levels: Some(levels),
            provisional: false,
        })
    }

    /// True if the batch holds these bytes, which a view points into that was made last.
    pub(super) fn holds(&self, bytes: &Bytes) -> bool {
        match &self.output {
            Output::ByteArray(_, buffers) => buffers.is_current(bytes) || buffers.is_last(bytes),
            _ => false,
        }
    }

    /// True when the batch of a nested leaf, whose rows may be of any size, should end.
    pub(super) fn is_large(&self) -> bool {
        self.rows > 0 && self.entries >= self.entries_max
    }

    /// Bytes that the batch holds.
    pub(super) fn held(&self) -> usize {
        let values = match &self.output {
            Output::Boolean(store) | Output::Fixed(_, store) => store.held(),
            Output::Int32(store) => store.held(),
            Output::Int64(store) => store.held(),
            Output::Float(store) => store.held(),
            Output::Double(store) => store.held(),
            Output::ByteArray(store, buffers) => store.held() + buffers.held() + buffers.idle(),
        };
        values + self.validity.held() + self.indices.held() + self.definition.held() + self.repetition.held()
    }

    /// Lets views of a dictionary of so many buffers into the batch. False when the batch must end first.
    pub(super) fn admits_dictionary(&mut self, buffers: usize) -> bool {
        match &mut self.output {
            Output::ByteArray(_, own) => own.admit(buffers),
            _ => true,
        }
    }

    /// True when the batch should end before more is decoded, which will point into `chunk`. It may hold two chunks in any
    /// case: where it begins in the rest of one it would else end there, and so would all other columns'.
    pub(super) fn is_heavy(&self, chunk: Option<&Bytes>) -> bool {
        match &self.output {
            Output::ByteArray(_, buffers) => {
                let is_current = chunk.is_some_and(|chunk| buffers.is_current(chunk));
                let chunk = chunk.map_or(0, Bytes::len);
                let all = if is_current { buffers.filled() } else { buffers.filled() + chunk };
                self.rows > 0 && all > self.pages_max.max(2 * chunk).min(BATCH_BYTES_MAX)
            }
            _ => false,
        }
    }

    /// Ends the batch, of which it must be known what it [holds](Builder::hold). What it is made of stands there already.
    pub(super) fn finish(
        &mut self,
        leaf: usize,
        physical_type: PhysicalType,
        dictionary: Option<&Entries>,
    ) -> Result<ColumnBatch> {
        let (rows, nulls) = (self.rows, self.nulls);
        let values = match (self.holds_indices, dictionary.and_then(Entries::kept)) {
            (Some(true), Some(dictionary)) => {
                Values::Dictionary(self.indices.share(self.values)?, Arc::clone(dictionary))
            }
            (Some(true), None) => return Err(Error::internal("indices without their dictionary")),
            _ => self.finish_values(physical_type, dictionary)?,
        };
        let validity = match nulls {
            0 => None,
            _ => Some(Bitmap::new(self.validity.share(rows.div_ceil(8))?, 0, rows)),
        };
        self.begin();
        let (layout, levels, provisional) = (self.layout, None, false);
        Ok(ColumnBatch { leaf, rows, nulls, validity, values, layout, levels, provisional })
    }

    /// Begins another batch.
    fn begin(&mut self) {
        (self.rows, self.values, self.nulls, self.entries) = (0, 0, 0, 0);
        (self.cleared, self.clears_indices) = (0, None);
        self.holds_indices = (!self.keep_dictionaries).then_some(false);
    }

    fn finish_values(&mut self, physical_type: PhysicalType, dictionary: Option<&Entries>) -> Result<Values> {
        let length = self.values;
        Ok(match &mut self.output {
            Output::Int32(store) => Values::Int32(store.share(length)?),
            Output::Int64(store) => Values::Int64(store.share(length)?),
            Output::Float(store) => Values::Float(store.share(length)?),
            Output::Double(store) => Values::Double(store.share(length)?),
            Output::Boolean(store) => {
                Values::Boolean(Bitmap::new(store.share(length.div_ceil(8))?, 0, length))
            }
            Output::Fixed(width, store) => {
                let values = FixedBytes::new(*width, length, store.share(length * *width)?);
                match physical_type {
                    PhysicalType::Int96 => Values::Int96(values),
                    _ => Values::FixedLenByteArray(values),
                }
            }
            Output::ByteArray(store, buffers) => {
                let buffers = buffers.share(dictionary.and_then(Entries::buffers));
                Values::ByteArray(ByteArrays::new(store.share(length)?, buffers))
            }
        })
    }
}

impl Release for Builder {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let Builder { output, validity, indices, definition, repetition, .. } = self;
        release_all(&mut [output, validity, indices, definition, repetition], budget)
    }
}

/// Makes room in an array for the values `at..end`, if the memory is admitted. False when the budget is spent before.
fn prepare<T: Copy + Default>(
    store: &mut Store<T>,
    (capacity, at, end): (usize, usize, usize),
    memory: &mut Memory,
    budget: &mut Budget<'_>,
) -> Result<bool> {
    let bytes = store.grows_bytes(capacity, at, end);
    if bytes > 0 {
        memory.admit(bytes)?;
    }
    store.prepare(capacity, at, end, budget)
}

/// Bits that are spread at a time, on the stack.
const SPREAD_BITS: usize = 8192;

/// Moves the `there` bits that stand at `at` to those of the `rows` bits there whose bit in `validity` is set; the others are cleared.
fn spread_bits(out: &mut [u8], at: usize, there: usize, rows: usize, validity: &[u8]) -> Result<()> {
    let mut dense = [0; SPREAD_BITS / 8];
    bits::copy(out, at, &mut dense, 0, there).map_err(|_| disagree())?;
    spread::copy_bits((&dense, 0), out, at, (validity, at), rows).map_err(|_| disagree())
}

/// The same for byte strings of one width, which stand at the start of `out`; validity begins at the bit given with it.
fn spread_fixed(
    out: &mut [u8],
    width: usize,
    mut there: usize,
    rows: usize,
    (validity, first): (&[u8], usize),
) -> Result<()> {
    // From the back, so that none is overwritten before it is moved.
    for row in (0..rows).rev() {
        if bits::get(validity, first + row) == Some(true) {
            there = there.checked_sub(1).ok_or_else(disagree)?;
            out.copy_within(there * width..(there + 1) * width, row * width);
        } else {
            out[row * width..(row + 1) * width].fill(0);
        }
    }
    Ok(())
}
