//! One column of a batch, filled a value at a time.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Bitmap, Budget, Buffer, Bytes, Error, Pool, Result};

use super::Value;
use super::program::ProgramLeaf;
use crate::batch::{ByteArrays, ColumnBatch, FixedBytes, INLINE_BYTES_MAX, Layout, Levels, Values};
use crate::growing::{ROOM_PRICE, ROOM_SLICE_BYTES};
use crate::schema::PhysicalType;

/// Maximum bytes of a piece of an array: this much is moved at once when an array grows.
const PIECE_BYTES: usize = 128 << 10;
/// Values that a piece has room for at first.
const PIECE_VALUES_MIN: usize = 64;
/// Bytes of strings after which a new buffer begins.
const BUILT_BYTES: usize = 64 << 10;
/// The longest value that is copied together with others.
const COPIED_BYTES_MAX: usize = 16 << 10;

/// A column of the current batch.
#[derive(Debug)]
pub(super) struct ColumnBuilder {
    leaf: usize,
    definition_max: u8,
    form: Form,
    layout: Layout,
    /// Entries: rows of a flat column.
    entries: usize,
    nulls: usize,
    /// Of a flat column, once it has a null.
    validity: Bits,
    definition: Pieces<u8>,
    repetition: Pieces<u8>,
    values: Building,
    /// The finished parts of the batch that is being returned.
    made: Made,
}

/// What a column has besides its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A value or null a row.
    Flat,
    /// Definition levels.
    Leveled,
    /// Repetition levels as well.
    Repeated,
}

#[derive(Debug, Default)]
struct Made {
    validity: Option<Bitmap>,
    definition: Option<Buffer<u8>>,
    repetition: Option<Buffer<u8>>,
}

/// The values so far.
#[derive(Debug)]
enum Building {
    Boolean(Bits),
    Int32(Pieces<i32>),
    Int64(Pieces<i64>),
    Float(Pieces<f32>),
    Double(Pieces<f64>),
    /// Values of that many bytes each, and whether they are INT96.
    Fixed(usize, bool, Pieces<u8>),
    Strings(Strings),
}

impl ColumnBuilder {
    pub(super) fn new(leaf: &ProgramLeaf, layout: Layout) -> ColumnBuilder {
        let form = match (leaf.is_repeated, leaf.definition_max) {
            (true, _) => Form::Repeated,
            (false, 0..=1) => Form::Flat,
            (false, _) => Form::Leveled,
        };
        ColumnBuilder {
            leaf: leaf.number,
            definition_max: leaf.definition_max,
            form,
            layout: if form == Form::Flat { layout } else { Layout::Dense },
            entries: 0,
            nulls: 0,
            validity: Bits::default(),
            definition: Pieces::default(),
            repetition: Pieces::default(),
            values: match leaf.physical_type {
                PhysicalType::Boolean => Building::Boolean(Bits::default()),
                PhysicalType::Int32 => Building::Int32(Pieces::default()),
                PhysicalType::Int64 => Building::Int64(Pieces::default()),
                PhysicalType::Int96 => Building::Fixed(12, true, Pieces::default()),
                PhysicalType::Float => Building::Float(Pieces::default()),
                PhysicalType::Double => Building::Double(Pieces::default()),
                PhysicalType::ByteArray => Building::Strings(Strings::default()),
                PhysicalType::FixedLenByteArray(width) => {
                    Building::Fixed(usize_of_u32(width), false, Pieces::default())
                }
            },
            made: Made::default(),
        }
    }

    /// Bytes of the largest array so far, of a column below lists or of wide values; 0 for any other: it has a few per
    /// row.
    pub(super) fn array_bytes(&self) -> usize {
        match (&self.values, self.form) {
            (Building::Fixed(_, _, bytes), _) => bytes.len(),
            (_, Form::Repeated) => self.entries * size_of::<u128>(),
            _ => 0,
        }
    }

    /// Bytes of strings that were copied or kept.
    pub(super) fn string_bytes(&self) -> usize {
        match &self.values {
            Building::Strings(strings) => strings.bytes,
            _ => 0,
        }
    }

    /// Bytes that a null takes in the array of values, beside those of an entry.
    pub(super) fn null_bytes(&self) -> usize {
        match (&self.values, self.layout) {
            (Building::Fixed(width, ..), Layout::Spaced) => *width,
            _ => 0,
        }
    }

    /// An entry without a value.
    #[inline]
    pub(super) fn push_null(&mut self, definition: u8, repetition: u8) {
        if self.form == Form::Flat {
            self.validity.push_ones(self.entries);
            self.validity.push(false);
            if self.layout == Layout::Spaced {
                self.values.push_default();
            }
        } else {
            self.push_levels(definition, repetition);
        }
        self.entries += 1;
        self.nulls += 1;
    }

    /// An entry with a value.
    ///
    /// # Errors
    ///
    /// `Misuse` for a value of another type, `Conversion` for bytes of another length.
    #[inline]
    pub(super) fn push(&mut self, value: Value<'_>, repetition: u8) -> Result<()> {
        self.values.push(value)?;
        self.end_value(repetition);
        Ok(())
    }

    /// Adds an entry whose bytes are shared, not copied.
    ///
    /// # Errors
    ///
    /// As [`ColumnBuilder::push`].
    pub(super) fn push_shared(&mut self, value: Bytes, repetition: u8) -> Result<()> {
        match &mut self.values {
            Building::Strings(strings) => strings.push_shared(value)?,
            other => other.push(Value::Bytes(&value))?,
        }
        self.end_value(repetition);
        Ok(())
    }

    #[inline]
    fn end_value(&mut self, repetition: u8) {
        if self.form != Form::Flat {
            self.push_levels(self.definition_max, repetition);
        }
        self.entries += 1;
    }

    #[inline]
    fn push_levels(&mut self, definition: u8, repetition: u8) {
        self.definition.push(definition);
        if self.form == Form::Repeated {
            self.repetition.push(repetition);
        }
    }

    /// Returns the values so far, of `rows` rows; the column is then empty again. `None` if the budget is spent first:
    /// call again.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated.
    pub(super) fn share(&mut self, rows: usize, budget: &mut Budget<'_>) -> Result<Option<ColumnBatch>> {
        let mut levels = None;
        if self.form == Form::Flat {
            if self.nulls > 0 && self.made.validity.is_none() {
                self.validity.push_ones(rows);
                self.made.validity = self.validity.share(budget)?;
                if self.made.validity.is_none() {
                    return Ok(None);
                }
            }
        } else {
            for (pieces, made) in [
                (&mut self.definition, &mut self.made.definition),
                (&mut self.repetition, &mut self.made.repetition),
            ] {
                if made.is_none() {
                    *made = pieces.share(budget)?;
                    if made.is_none() {
                        return Ok(None);
                    }
                }
            }
        }
        let Some(values) = self.values.share(budget)? else { return Ok(None) };
        let Made { validity, definition, repetition } = core::mem::take(&mut self.made);
        if let Some(definition) = definition {
            levels =
                Some(Levels { definition, repetition: repetition.filter(|_| self.form == Form::Repeated) });
        }
        let nulls = self.nulls;
        (self.entries, self.nulls) = (0, 0);
        let (leaf, layout) = (self.leaf, self.layout);
        Ok(Some(ColumnBatch { leaf, rows, nulls, validity, values, layout, levels, provisional: false }))
    }
}

impl Building {
    #[inline]
    fn push(&mut self, value: Value<'_>) -> Result<()> {
        match (self, value) {
            (Building::Boolean(bits), Value::Boolean(value)) => bits.push(value),
            (Building::Int32(values), Value::Int32(value)) => values.push(value),
            (Building::Int64(values), Value::Int64(value)) => values.push(value),
            (Building::Float(values), Value::Float(value)) => values.push(value),
            (Building::Double(values), Value::Double(value)) => values.push(value),
            (Building::Strings(strings), Value::Bytes(value)) => return strings.push(value),
            (Building::Fixed(width, _, bytes), Value::Bytes(value)) => {
                if value.len() != *width {
                    let found = value.len();
                    return Err(Error::conversion(format!("{found} bytes, where each value has {width}")));
                }
                bytes.extend(value);
            }
            (building, value) => return Err(building.mismatch(value)),
        }
        Ok(())
    }

    /// Adds the placeholder of a null.
    fn push_default(&mut self) {
        match self {
            Building::Boolean(bits) => bits.push(false),
            Building::Int32(values) => values.push(0),
            Building::Int64(values) => values.push(0),
            Building::Float(values) => values.push(0.0),
            Building::Double(values) => values.push(0.0),
            Building::Fixed(width, _, bytes) => bytes.extend_zeros(*width),
            Building::Strings(strings) => strings.views.push(0),
        }
    }

    fn share(&mut self, budget: &mut Budget<'_>) -> Result<Option<Values>> {
        Ok(match self {
            Building::Boolean(bits) => bits.share(budget)?.map(Values::Boolean),
            Building::Int32(values) => values.share(budget)?.map(Values::Int32),
            Building::Int64(values) => values.share(budget)?.map(Values::Int64),
            Building::Float(values) => values.share(budget)?.map(Values::Float),
            Building::Double(values) => values.share(budget)?.map(Values::Double),
            Building::Fixed(width, is_int96, bytes) => bytes.share(budget)?.map(|bytes| {
                // With a width of 0, any number of values would be possible; the format has no such type.
                let values = bytes.len() / (*width).max(1);
                let values = FixedBytes::new(*width, values, bytes);
                if *is_int96 { Values::Int96(values) } else { Values::FixedLenByteArray(values) }
            }),
            Building::Strings(strings) => strings.share(budget)?.map(Values::ByteArray),
        })
    }

    #[cold]
    fn mismatch(&self, value: Value<'_>) -> Error {
        let wanted = match self {
            Building::Boolean(_) => "BOOLEAN",
            Building::Int32(_) => "INT32",
            Building::Int64(_) => "INT64",
            Building::Float(_) => "FLOAT",
            Building::Double(_) => "DOUBLE",
            Building::Fixed(..) | Building::Strings(_) => "bytes",
        };
        let found = match value {
            Value::Boolean(_) => "BOOLEAN",
            Value::Int32(_) => "INT32",
            Value::Int64(_) => "INT64",
            Value::Float(_) => "FLOAT",
            Value::Double(_) => "DOUBLE",
            Value::Bytes(_) => "bytes",
        };
        Error::misuse(format!("a value of {found}, where {wanted} is to be"))
    }
}

/// A growing array: in pieces, which are joined in slices when it is returned. Nearly always there is only one.
#[derive(Debug)]
struct Pieces<T> {
    open: Vec<T>,
    /// Those before, all of the same length.
    full: Vec<Vec<T>>,
    /// The array, while it is joined; the pieces in it; and how many values of the next one are.
    whole: Vec<T>,
    joined: usize,
    moved: usize,
    pool: Pool<T>,
}

impl<T: Copy + Default> Default for Pieces<T> {
    fn default() -> Pieces<T> {
        Pieces {
            open: Vec::new(),
            full: Vec::new(),
            whole: Vec::new(),
            joined: 0,
            moved: 0,
            pool: Pool::new(),
        }
    }
}

impl<T: Copy + Default> Pieces<T> {
    /// Values of a full piece.
    const LENGTH: usize = PIECE_BYTES / size_of::<T>();

    #[inline]
    fn push(&mut self, value: T) {
        if self.open.len() == self.open.capacity() {
            self.grow();
        }
        self.open.push(value);
    }

    /// Appends values.
    fn extend(&mut self, mut values: &[T]) {
        while !values.is_empty() {
            let (now, later) = values.split_at(values.len().min(self.room()));
            self.open.extend_from_slice(now);
            values = later;
        }
    }

    /// Appends `count` times zero.
    fn extend_zeros(&mut self, mut count: usize) {
        while count > 0 {
            let now = count.min(self.room());
            self.open.resize(self.open.len() + now, T::default());
            count -= now;
        }
    }

    /// Values that fit the open piece: at least one.
    fn room(&mut self) -> usize {
        if self.open.len() == self.open.capacity() {
            self.grow();
        }
        self.open.capacity() - self.open.len()
    }

    fn len(&self) -> usize {
        self.full.len() * Self::LENGTH + self.open.len()
    }

    /// Makes room for a value.
    #[cold]
    fn grow(&mut self) {
        if self.open.len() == Self::LENGTH {
            self.full.push(core::mem::take(&mut self.open));
        }
        if self.open.capacity() == 0 {
            // Memory for reuse, if any.
            self.open = self.pool.take_memory(0).unwrap_or_default();
            self.open.clear();
        }
        if self.open.len() == self.open.capacity() {
            let length = self.open.len();
            self.open.reserve_exact(length.max(PIECE_VALUES_MIN).min(Self::LENGTH - length));
        }
    }

    fn share(&mut self, budget: &mut Budget<'_>) -> Result<Option<Buffer<T>>> {
        if self.full.is_empty() {
            let values = core::mem::take(&mut self.open);
            let length = values.len();
            return Ok(Some(self.pool.share(values, length)));
        }
        if self.whole.capacity() == 0 {
            let length = self.len();
            self.full.push(core::mem::take(&mut self.open));
            self.whole
                .try_reserve_exact(length)
                .map_err(|_| Error::out_of_memory(length.saturating_mul(size_of::<T>())))?;
        }
        while let Some(piece) = self.full.get_mut(self.joined) {
            let slice = self.moved..piece.len().min(self.moved + ROOM_SLICE_BYTES / size_of::<T>());
            budget.charge(ROOM_PRICE, size_of_val(&piece[slice.clone()]), 0);
            self.moved = slice.end;
            self.whole.extend_from_slice(&piece[slice]);
            if self.moved == piece.len() {
                *piece = Vec::new();
                (self.joined, self.moved) = (self.joined + 1, 0);
            }
            if self.joined < self.full.len() && budget.is_spent() {
                return Ok(None);
            }
        }
        self.full.clear();
        self.joined = 0;
        Ok(Some(core::mem::take(&mut self.whole).into()))
    }
}

/// Bits that are pushed.
#[derive(Debug, Default)]
struct Bits {
    bytes: Pieces<u8>,
    /// The bits of an incomplete byte.
    open: u8,
    length: usize,
    is_flushed: bool,
}

impl Bits {
    #[inline]
    fn push(&mut self, bit: bool) {
        self.open |= u8::from(bit) << (self.length % 8);
        self.length += 1;
        if self.length.is_multiple_of(8) {
            self.bytes.push(self.open);
            self.open = 0;
        }
    }

    /// Appends ones up to `length` bits.
    #[inline]
    fn push_ones(&mut self, length: usize) {
        while self.length < length {
            if self.length.is_multiple_of(8) && length - self.length >= 8 {
                self.bytes.push(0xff);
                self.length += 8;
            } else {
                self.push(true);
            }
        }
    }

    fn share(&mut self, budget: &mut Budget<'_>) -> Result<Option<Bitmap>> {
        if !self.is_flushed && !self.length.is_multiple_of(8) {
            self.bytes.push(self.open);
        }
        self.is_flushed = true;
        let Some(bytes) = self.bytes.share(budget)? else { return Ok(None) };
        let length = core::mem::take(&mut self.length);
        (self.open, self.is_flushed) = (0, false);
        Ok(Some(Bitmap::new(bytes, 0, length)))
    }
}

/// Byte strings: views, and buffers for strings that do not fit into them.
#[derive(Debug, Default)]
struct Strings {
    views: Pieces<u128>,
    buffers: Vec<Bytes>,
    /// Copied strings, and the place among the buffers that is reserved for them.
    built: Vec<u8>,
    built_index: Option<u32>,
    bytes: usize,
}

impl Strings {
    #[inline]
    fn push(&mut self, value: &[u8]) -> Result<()> {
        let mut view = [0; 16];
        if value.len() <= INLINE_BYTES_MAX {
            view[0] = marquetry_base::cast::low_u8(marquetry_base::cast::u64_of(value.len()));
            view[4..4 + value.len()].copy_from_slice(value);
            self.views.push(u128::from_le_bytes(view));
            return Ok(());
        }
        if value.len() > COPIED_BYTES_MAX {
            let mut own = Vec::new();
            own.try_reserve_exact(value.len()).map_err(|_| Error::out_of_memory(value.len()))?;
            own.extend_from_slice(value);
            return self.push_shared(own.into());
        }
        if self.built.len() + value.len() > BUILT_BYTES {
            self.close_built();
        }
        let buffer = match self.built_index {
            Some(buffer) => buffer,
            None => {
                let buffer = self.keep(Bytes::new())?;
                self.built_index = Some(buffer);
                buffer
            }
        };
        let offset = low(self.built.len())?;
        self.built.extend_from_slice(value);
        self.bytes += value.len();
        self.push_view(value, buffer, offset)
    }

    fn push_shared(&mut self, value: Bytes) -> Result<()> {
        if value.len() <= INLINE_BYTES_MAX {
            return self.push(&value);
        }
        self.bytes += value.len();
        let buffer = self.keep(value.clone())?;
        self.push_view(&value, buffer, 0)
    }

    /// Adds the view of a value that does not fit into it.
    fn push_view(&mut self, value: &[u8], buffer: u32, offset: u32) -> Result<()> {
        let mut view = [0; 16];
        view[..4].copy_from_slice(&low(value.len())?.to_le_bytes());
        view[4..8].copy_from_slice(&value[..4]);
        view[8..12].copy_from_slice(&buffer.to_le_bytes());
        view[12..].copy_from_slice(&offset.to_le_bytes());
        self.views.push(u128::from_le_bytes(view));
        Ok(())
    }

    fn keep(&mut self, bytes: Bytes) -> Result<u32> {
        let index = low(self.buffers.len())?;
        self.buffers.push(bytes);
        Ok(index)
    }

    fn close_built(&mut self) {
        let built = core::mem::take(&mut self.built);
        let place = self.built_index.take().and_then(|index| self.buffers.get_mut(usize_of_u32(index)));
        if let Some(place) = place {
            *place = built.into();
        }
    }

    fn share(&mut self, budget: &mut Budget<'_>) -> Result<Option<ByteArrays>> {
        let Some(views) = self.views.share(budget)? else { return Ok(None) };
        self.close_built();
        self.bytes = 0;
        Ok(Some(ByteArrays::new(views, Arc::new(core::mem::take(&mut self.buffers)))))
    }
}

/// A number that must fit the 32 bits that a view has for it.
fn low(number: usize) -> Result<u32> {
    u32::try_from(number).map_err(|_| Error::too_large("a value, or as many of them, beyond 4 GiB"))
}
