//! The batch that a column is filling.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::{Bitmap, Buffer, Bytes, Error, ErrorKind, Pool, Result};
use marquetry_kernels::{Plain, bits, spread};

use super::{ByteArrays, ColumnBatch, FixedBytes, Layout, Levels, Values};
use crate::schema::PhysicalType;

/// Bytes of pages that a batch of one column may hold. Beyond it the batch ends early, so that huge values make small
/// batches and not huge memory.
const BATCH_BYTES_MAX: usize = 16 << 20;
/// Room that an array starts with, in bytes, if its batch may become larger. It grows as values arrive: neither the rows
/// that a host would take nor the width that a schema claims are there yet.
const ROOM_BYTES_MIN: usize = 256 << 10;

/// Bytes of values that are built in one buffer.
const BUILT_BYTES_MAX: usize = 512 << 10;

/// Memory for one array of the batch, used again and again.
#[derive(Debug)]
pub(super) struct Store<T> {
    values: Vec<T>,
    pool: Pool<T>,
}

impl<T: Clone + Default> Default for Store<T> {
    fn default() -> Store<T> {
        Store { values: Vec::new(), pool: Pool::new() }
    }
}

impl<T: Clone + Default> Store<T> {
    /// Room for the values `at..at + length`, in an array that will probably need `capacity`. What is before `at` stays.
    pub(super) fn room(&mut self, capacity: usize, at: usize, length: usize) -> Result<&mut [T]> {
        let end = at + length;
        if self.values.len() < end {
            let doubled = self.values.len().saturating_mul(2);
            // Lists have more entries than rows: how many more, only they tell.
            let needed = if end > capacity {
                doubled.max(end)
            } else {
                capacity.min(doubled.max(ROOM_BYTES_MIN / size_of::<T>())).max(end)
            };
            if self.values.is_empty() {
                self.values = self.pool.take(needed)?;
            } else {
                self.values
                    .try_reserve_exact(needed - self.values.len())
                    .map_err(|_| Error::out_of_memory(needed.saturating_mul(size_of::<T>())))?;
                self.values.resize(needed, T::default());
            }
        }
        Ok(&mut self.values[at..end])
    }

    /// Bytes that the array takes.
    fn held(&self) -> usize {
        self.values.len() * size_of::<T>()
    }

    /// Hands the array out, of so many values.
    pub(super) fn share(&mut self, length: usize) -> Buffer<T> {
        let values = core::mem::take(&mut self.values);
        self.pool.share(values, length)
    }
}

impl<T: Plain + Default> Store<T> {
    /// Moves the first `values` to the rows that are there, and zeroes the others.
    fn spread(&mut self, values: usize, rows: usize, validity: &[u8]) -> Result<()> {
        let room = self.room(rows, 0, rows)?;
        spread::in_place(room, values, validity, 0)
            .map_err(|_| Error::internal("validity and values disagree"))
    }
}

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

/// The buffers that the views of a batch point into. The first is the dictionary's, or empty.
#[derive(Debug, Default)]
pub(super) struct Buffers {
    shared: Vec<Bytes>,
    /// The number of the page's chunk that a view points into last.
    page: Option<u32>,
    /// Values that are built here, not taken from a page, and the number that their buffer will have.
    built: Vec<u8>,
    built_index: Option<u32>,
    bytes: usize,
}

fn too_many_buffers() -> Error {
    Error::internal("too many buffers in a batch")
}

/// The number of the dictionary's buffer in every batch.
pub(super) const DICTIONARY_BUFFER: u32 = 0;

impl Buffers {
    /// Adds a buffer: its number.
    pub(super) fn push(&mut self, bytes: Bytes) -> Result<u32> {
        if self.shared.is_empty() {
            self.shared.push(Bytes::new());
        }
        let index = u32::try_from(self.shared.len()).map_err(|_| too_many_buffers())?;
        self.bytes += bytes.len();
        self.shared.push(bytes);
        Ok(index)
    }

    /// The number that a chunk of a page has, or will have once it is kept.
    pub(super) fn number_of(&self, chunk: &Bytes) -> Result<u32> {
        match self.page {
            Some(index) if self.is_current(chunk) => Ok(index),
            _ => u32::try_from(self.shared.len().max(1)).map_err(|_| too_many_buffers()),
        }
    }

    /// True when views point into this chunk already.
    fn is_current(&self, chunk: &Bytes) -> bool {
        let current = self.page.and_then(|index| self.shared.get(index as usize));
        current.is_some_and(|bytes| bytes.as_ptr() == chunk.as_ptr() && bytes.len() == chunk.len())
    }

    /// Keeps a chunk that views point into, under the number that [`Buffers::number_of`] said.
    pub(super) fn keep(&mut self, chunk: Bytes, number: u32) {
        if !self.is_current(&chunk) && self.push(chunk).is_ok() {
            self.page = Some(number);
        }
    }

    /// Copies a value to where values are built: the number of the buffer, and the offset in it.
    pub(super) fn build(&mut self, value: &[u8]) -> Result<(u32, u32)> {
        if self.built.len() + value.len() > BUILT_BYTES_MAX && !self.built.is_empty() {
            self.close_built();
        }
        let index = match self.built_index {
            Some(index) => index,
            None => {
                let index = self.push(Bytes::new())?;
                self.built_index = Some(index);
                index
            }
        };
        let offset = u32::try_from(self.built.len()).map_err(|_| Error::internal("values beyond 4 GiB"))?;
        self.built.try_reserve(value.len()).map_err(|_| Error::out_of_memory(value.len()))?;
        self.built.extend_from_slice(value);
        Ok((index, offset))
    }

    /// No more is built in the current buffer.
    fn close_built(&mut self) {
        if let Some(index) = self.built_index.take() {
            let built = core::mem::take(&mut self.built);
            self.bytes += built.len();
            if let Some(slot) = self.shared.get_mut(index as usize) {
                *slot = built.into();
            }
        }
    }

    fn share(&mut self, dictionary: Option<&Bytes>) -> Arc<Vec<Bytes>> {
        self.close_built();
        let mut shared = core::mem::take(&mut self.shared);
        if let Some(dictionary) = dictionary {
            match shared.first_mut() {
                Some(first) => *first = dictionary.clone(),
                None => shared.push(dictionary.clone()),
            }
        }
        self.page = None;
        self.bytes = 0;
        Arc::new(shared)
    }
}

/// The batch of one column, while it is being filled.
#[derive(Debug)]
pub(super) struct Builder {
    pub(super) capacity: usize,
    pub(super) rows: usize,
    pub(super) values: usize,
    /// Bytes that are there of the value behind them, where one is so wide that it takes several slices.
    pub(super) partial: usize,
    validity: Store<u8>,
    pub(super) output: Output,
    /// Indices, of a batch whose dictionary is kept.
    pub(super) indices: Store<u32>,
    /// Levels of a nested leaf, and how many of each.
    definition: Store<u8>,
    repetition: Store<u8>,
    entries: usize,
    /// Whether the batch holds indices; not known before its first value.
    pub(super) holds_indices: Option<bool>,
    layout: Layout,
}

impl Builder {
    /// A batch of at most `capacity` rows.
    pub(super) fn new(physical_type: PhysicalType, capacity: usize, layout: Layout) -> Builder {
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
            capacity: match output {
                Output::Fixed(width, _) => capacity.min((BATCH_BYTES_MAX / width.max(1)).max(1)),
                _ => capacity,
            },
            rows: 0,
            values: 0,
            partial: 0,
            validity: Store::default(),
            output,
            indices: Store::default(),
            definition: Store::default(),
            repetition: Store::default(),
            entries: 0,
            holds_indices: None,
            layout,
        }
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

    /// Ends the batch of a nested leaf.
    pub(super) fn finish_nested(
        &mut self,
        leaf: usize,
        physical_type: PhysicalType,
        has_repetition: bool,
        dictionary: Option<&Arc<Values>>,
    ) -> Result<ColumnBatch> {
        let (rows, entries, there) = (self.rows, self.entries, self.values);
        let values = self.finish_values(physical_type, there, None, dictionary)?;
        let levels = Levels {
            definition: self.definition.share(entries),
            repetition: has_repetition.then(|| self.repetition.share(entries)),
        };
        self.rows = 0;
        self.values = 0;
        self.entries = 0;
        self.holds_indices = None;
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

    /// True when the batch of a nested leaf, whose rows may be of any size, should end.
    pub(super) fn is_large(&self) -> bool {
        self.rows > 0 && self.held() > BATCH_BYTES_MAX
    }

    /// Bytes that the batch holds.
    pub(super) fn held(&self) -> usize {
        let values = match &self.output {
            Output::Boolean(store) | Output::Fixed(_, store) => store.held(),
            Output::Int32(store) => store.held(),
            Output::Int64(store) => store.held(),
            Output::Float(store) => store.held(),
            Output::Double(store) => store.held(),
            Output::ByteArray(store, buffers) => store.held() + buffers.bytes + buffers.built.len(),
        };
        values + self.validity.held() + self.indices.held() + self.definition.held() + self.repetition.held()
    }

    /// True when the batch should end before more is decoded, which will point into `chunk`.
    pub(super) fn is_heavy(&self, chunk: Option<&Bytes>) -> bool {
        match &self.output {
            Output::ByteArray(_, buffers) => {
                let more = chunk.filter(|chunk| !buffers.is_current(chunk)).map_or(0, Bytes::len);
                self.rows > 0 && buffers.bytes + buffers.built.len() + more > BATCH_BYTES_MAX
            }
            _ => false,
        }
    }

    /// Ends the batch.
    pub(super) fn finish(
        &mut self,
        leaf: usize,
        physical_type: PhysicalType,
        dictionary: Option<&Arc<Values>>,
    ) -> Result<ColumnBatch> {
        let (rows, there) = (self.rows, self.values);
        let nulls = rows - there;
        let length = match self.layout {
            Layout::Spaced => rows,
            Layout::Dense => there,
        };
        let validity = if nulls > 0 { Some(self.validity.share(rows.div_ceil(8))) } else { None };
        let spread = validity.as_ref().filter(|_| self.layout == Layout::Spaced);
        let values = match (self.holds_indices, dictionary) {
            (Some(true), Some(dictionary)) => {
                if let Some(validity) = spread {
                    self.indices.spread(there, rows, validity)?;
                }
                self.indices.room(length, 0, length)?;
                Values::Dictionary(self.indices.share(length), Arc::clone(dictionary))
            }
            _ => self.finish_values(physical_type, length, spread, dictionary)?,
        };
        self.rows = 0;
        self.values = 0;
        self.holds_indices = None;
        let validity = validity.map(|bytes| Bitmap::new(bytes, 0, rows));
        Ok(ColumnBatch {
            leaf,
            rows,
            nulls,
            validity,
            values,
            layout: self.layout,
            levels: None,
            provisional: false,
        })
    }

    fn finish_values(
        &mut self,
        physical_type: PhysicalType,
        length: usize,
        spread: Option<&Buffer<u8>>,
        dictionary: Option<&Arc<Values>>,
    ) -> Result<Values> {
        let there = self.values;
        /// Spreads a store of plain values and shares it.
        macro_rules! finish {
            ($store:expr) => {{
                if let Some(validity) = spread {
                    $store.spread(there, length, validity)?;
                }
                $store.room(length, 0, length)?;
                $store.share(length)
            }};
        }
        Ok(match &mut self.output {
            Output::Int32(store) => Values::Int32(finish!(store)),
            Output::Int64(store) => Values::Int64(finish!(store)),
            Output::Float(store) => Values::Float(finish!(store)),
            Output::Double(store) => Values::Double(finish!(store)),
            Output::Boolean(store) => {
                if let Some(validity) = spread {
                    spread_bits(
                        store.room(length.div_ceil(8), 0, length.div_ceil(8))?,
                        there,
                        length,
                        validity,
                    )?;
                }
                store.room(length.div_ceil(8), 0, length.div_ceil(8))?;
                Values::Boolean(Bitmap::new(store.share(length.div_ceil(8)), 0, length))
            }
            Output::Fixed(width, store) => {
                let bytes = length * *width;
                if let Some(validity) = spread {
                    if *width > BATCH_BYTES_MAX {
                        // Zeros that no byte of the file stands for.
                        return Err(Error::new(
                            ErrorKind::LimitExceeded,
                            format!(
                                "a null of {width} bytes: at most {BATCH_BYTES_MAX} where nulls take room"
                            ),
                        ));
                    }
                    spread_fixed(store.room(bytes, 0, bytes)?, *width, there, length, validity)?;
                }
                store.room(bytes, 0, bytes)?;
                let values = FixedBytes::new(*width, length, store.share(bytes));
                match physical_type {
                    PhysicalType::Int96 => Values::Int96(values),
                    _ => Values::FixedLenByteArray(values),
                }
            }
            Output::ByteArray(store, buffers) => {
                let dictionary = match dictionary.map(|values| &**values) {
                    Some(Values::ByteArray(dictionary)) => dictionary.buffers().first(),
                    _ => None,
                };
                let buffers = buffers.share(dictionary);
                Values::ByteArray(ByteArrays::new(finish!(store), buffers))
            }
        })
    }
}

/// Moves the first `there` bits to the rows that are there, and clears the others. From the back, so in place.
pub(super) fn spread_bits(out: &mut [u8], mut there: usize, rows: usize, validity: &[u8]) -> Result<()> {
    let gone = |_| Error::internal("validity and values disagree");
    for row in (0..rows).rev() {
        let mut bit = false;
        if bits::get(validity, row) == Some(true) {
            there = there.checked_sub(1).ok_or(()).map_err(gone)?;
            bit = bits::get(out, there).ok_or(()).map_err(gone)?;
        }
        bits::set(out, row, bit).map_err(|_| gone(()))?;
    }
    Ok(())
}

/// The same for byte strings of one width.
pub(super) fn spread_fixed(
    out: &mut [u8],
    width: usize,
    mut there: usize,
    rows: usize,
    validity: &[u8],
) -> Result<()> {
    for row in (0..rows).rev() {
        if bits::get(validity, row) == Some(true) {
            there = there.checked_sub(1).ok_or_else(|| Error::internal("validity and values disagree"))?;
            out.copy_within(there * width..(there + 1) * width, row * width);
        } else {
            out[row * width..(row + 1) * width].fill(0);
        }
    }
    Ok(())
}
