//! A Parquet column that is filled a value at a time.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;

use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::{Bitmap, Buffer, Bytes, Error, Result};
use marquetry_kernels::{bits, strings};
use marquetry_parquet::batch::{
    ByteArrays, ColumnBatch, FixedBytes, INLINE_BYTES_MAX, Layout, Levels, Values,
};
use marquetry_parquet::schema::PhysicalType;

/// Values that are made here and copied together, up to this length. Longer ones keep memory of their own.
const COPIED_BYTES_MAX: usize = 4 << 10;
/// Bytes of a buffer of copied values, after which another one begins.
const BUFFER_BYTES: usize = 256 << 10;

/// A column of a batch: levels, and values without slots for nulls.
#[derive(Debug)]
pub(super) struct LeafBuilder {
    /// The definition level of a value.
    definition_max: u8,
    has_repetition: bool,
    definition: Vec<u8>,
    repetition: Vec<u8>,
    pub(super) values: Store,
}

/// Values of one physical type.
#[derive(Debug)]
pub(super) enum Store {
    Boolean(Vec<u8>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    /// Of sixteen bytes.
    Uuid(Vec<u8>),
    Strings(Views),
}

/// Strings: views of buffers.
#[derive(Debug, Default)]
pub(super) struct Views {
    views: Vec<u128>,
    buffers: Vec<Bytes>,
    /// Copied values, which become the buffer of this number.
    copied: Vec<u8>,
    copied_buffer: Option<usize>,
}

/// How many entries and values a column has: what it can be cut back to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    entries: usize,
    values: usize,
}

impl LeafBuilder {
    pub(super) fn new(physical: PhysicalType, definition_max: u8, has_repetition: bool) -> LeafBuilder {
        LeafBuilder {
            definition_max,
            has_repetition,
            definition: Vec::new(),
            repetition: Vec::new(),
            values: match physical {
                PhysicalType::Boolean => Store::Boolean(Vec::new()),
                PhysicalType::Int32 => Store::Int32(Vec::new()),
                PhysicalType::Int64 => Store::Int64(Vec::new()),
                PhysicalType::Float => Store::Float(Vec::new()),
                PhysicalType::Double => Store::Double(Vec::new()),
                PhysicalType::FixedLenByteArray(_) | PhysicalType::Int96 => Store::Uuid(Vec::new()),
                PhysicalType::ByteArray => Store::Strings(Views::default()),
            },
        }
    }

    /// Entries: one a row of a column that is not in a list.
    pub(super) fn entries(&self) -> usize {
        self.definition.len()
    }

    pub(super) fn mark(&self) -> Mark {
        let values = match &self.values {
            Store::Boolean(values) | Store::Uuid(values) => values.len(),
            Store::Int32(values) => values.len(),
            Store::Int64(values) => values.len(),
            Store::Float(values) => values.len(),
            Store::Double(values) => values.len(),
            Store::Strings(views) => views.views.len(),
        };
        Mark { entries: self.definition.len(), values }
    }

    /// Forgets what came after the mark.
    pub(super) fn cut(&mut self, mark: Mark) {
        self.definition.truncate(mark.entries);
        self.repetition.truncate(mark.entries);
        match &mut self.values {
            Store::Boolean(values) | Store::Uuid(values) => values.truncate(mark.values),
            Store::Int32(values) => values.truncate(mark.values),
            Store::Int64(values) => values.truncate(mark.values),
            Store::Float(values) => values.truncate(mark.values),
            Store::Double(values) => values.truncate(mark.values),
            Store::Strings(views) => views.views.truncate(mark.values),
        }
    }

    /// An entry whose value is in the store already.
    #[inline]
    pub(super) fn close(&mut self, repetition: u8) {
        self.push_null(self.definition_max, repetition);
    }

    /// An entry without a value.
    #[inline]
    pub(super) fn push_null(&mut self, definition: u8, repetition: u8) {
        self.definition.push(definition);
        if self.has_repetition {
            self.repetition.push(repetition);
        }
    }

    /// So many rows that are null at this definition level.
    pub(super) fn push_nulls(&mut self, definition: u8, count: usize) {
        self.definition.resize(self.definition.len() + count, definition);
        if self.has_repetition {
            self.repetition.resize(self.repetition.len() + count, 0);
        }
    }

    /// Repeats the last entry, of a column that is not in a list, so many times.
    pub(super) fn repeat(&mut self, times: usize) {
        let Some(&level) = self.definition.last() else { return };
        self.definition.resize(self.definition.len() + times, level);
        if self.has_repetition {
            self.repetition.resize(self.repetition.len() + times, 0);
        }
        if level == self.definition_max {
            match &mut self.values {
                Store::Boolean(values) => again(values, times),
                Store::Int32(values) => again(values, times),
                Store::Int64(values) => again(values, times),
                Store::Float(values) => again(values, times),
                Store::Double(values) => again(values, times),
                Store::Uuid(values) => {
                    if let Some(last) = values.last_chunk::<16>().copied() {
                        for _ in 0..times {
                            values.extend_from_slice(&last);
                        }
                    }
                }
                Store::Strings(views) => again(&mut views.views, times),
            }
        }
    }

    /// Buffers that strings may be views of: the first ones of the column.
    pub(super) fn set_buffers(&mut self, buffers: &[Bytes]) {
        if let Store::Strings(views) = &mut self.values {
            views.buffers = buffers.to_vec();
        }
    }

    /// Adds a buffer that strings may be views of, and returns its number.
    pub(super) fn add_buffer(&mut self, bytes: &Bytes) -> u32 {
        let Store::Strings(views) = &mut self.values else { return 0 };
        views.buffers.push(bytes.clone());
        u32::try_from(views.buffers.len() - 1).unwrap_or(u32::MAX)
    }

    /// Makes room for so many entries.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated.
    pub(super) fn reserve(&mut self, entries: usize) -> Result<()> {
        reserve(&mut self.definition, entries)?;
        if self.has_repetition {
            reserve(&mut self.repetition, entries)?;
        }
        match &mut self.values {
            Store::Boolean(values) => reserve(values, entries),
            Store::Int32(values) => reserve(values, entries),
            Store::Int64(values) => reserve(values, entries),
            Store::Float(values) => reserve(values, entries),
            Store::Double(values) => reserve(values, entries),
            Store::Uuid(values) => reserve(values, entries.saturating_mul(16)),
            Store::Strings(views) => reserve(&mut views.views, entries),
        }
    }

    /// The column, of so many rows. The builder is empty again.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Internal`](marquetry_base::ErrorKind::Internal) if it does not have as many rows.
    pub(super) fn finish(&mut self, leaf: usize, rows: usize) -> Result<ColumnBatch> {
        let definition = mem::take(&mut self.definition);
        let repetition = mem::take(&mut self.repetition);
        let values = self.values.take();
        let entries = definition.len();
        if entries < rows || (!self.has_repetition && entries != rows) {
            let message = alloc::format!("leaf {leaf} has {entries} entries in {rows} rows");
            return Err(Error::internal(message));
        }
        let nulls = entries - values.len();
        let is_flat = !self.has_repetition && self.definition_max <= 1;
        let (mut validity, mut levels) = (None, None);
        if !is_flat {
            let repetition = self.has_repetition.then(|| repetition.into());
            levels = Some(Levels { definition: definition.into(), repetition });
        } else if nulls > 0 {
            let mut bitmap = alloc::vec![0; rows.div_ceil(8)];
            // The bitmap is as long as it must be.
            let _ = bits::from_levels(&definition, 1_u8, &mut bitmap, 0);
            validity = Some(Bitmap::new(bitmap.into(), 0, rows));
        }
        let layout = Layout::Dense;
        Ok(ColumnBatch { leaf, rows, nulls, validity, values, layout, levels, provisional: false })
    }
}

impl Store {
    /// The values, as Parquet has them. The store is empty again.
    pub(super) fn take(&mut self) -> Values {
        match self {
            Store::Boolean(values) => Values::Boolean(bits_of(&mem::take(values))),
            Store::Int32(values) => mem::take(values).into(),
            Store::Int64(values) => mem::take(values).into(),
            Store::Float(values) => mem::take(values).into(),
            Store::Double(values) => mem::take(values).into(),
            Store::Uuid(values) => {
                let bytes = mem::take(values);
                let count = bytes.len() / 16;
                Values::FixedLenByteArray(FixedBytes::new(16, count, bytes.into()))
            }
            Store::Strings(views) => {
                views.seal();
                let buffers = mem::take(&mut views.buffers);
                let made = mem::take(&mut views.views);
                Values::ByteArray(ByteArrays::new(made.into(), Arc::new(buffers)))
            }
        }
    }

    /// Adds a string: a view of the buffer with this number, where it is at this offset.
    #[inline]
    pub(super) fn push_view(&mut self, bytes: &[u8], buffer: u32, offset: usize) {
        if let Store::Strings(views) = self {
            views.views.push(strings::view(bytes, buffer, u32::try_from(offset).unwrap_or(u32::MAX)));
        }
    }

    /// Adds a string that is copied; but one that is long and shared is kept.
    pub(super) fn push_bytes(&mut self, bytes: &[u8], shared: Option<&Bytes>) {
        let Store::Strings(views) = self else { return };
        match shared {
            Some(shared) if bytes.len() > COPIED_BYTES_MAX => {
                let buffer = u32::try_from(views.buffers.len()).unwrap_or(u32::MAX);
                views.buffers.push(shared.clone());
                views.views.push(strings::view(bytes, buffer, 0));
            }
            _ => views.push_copy(bytes),
        }
    }

    /// Adds a string that `print` appends.
    pub(super) fn push_printed(&mut self, print: impl FnOnce(&mut Vec<u8>)) {
        let Store::Strings(views) = self else { return };
        views.begin_copy();
        let start = views.copied.len();
        print(&mut views.copied);
        let text = &views.copied[start..];
        let buffer = views.copied_buffer.and_then(|buffer| u32::try_from(buffer).ok()).unwrap_or(u32::MAX);
        let offset = u32::try_from(start).unwrap_or(u32::MAX);
        views.views.push(strings::view(text, buffer, offset));
        if text.len() <= INLINE_BYTES_MAX {
            views.copied.truncate(start);
        }
    }
}

impl Views {
    fn push_copy(&mut self, bytes: &[u8]) {
        if bytes.len() <= INLINE_BYTES_MAX {
            self.views.push(strings::view(bytes, 0, 0));
            return;
        }
        self.begin_copy();
        let offset = u32::try_from(self.copied.len()).unwrap_or(u32::MAX);
        let buffer = self.copied_buffer.and_then(|buffer| u32::try_from(buffer).ok()).unwrap_or(u32::MAX);
        self.copied.extend_from_slice(bytes);
        self.views.push(strings::view(bytes, buffer, offset));
    }

    fn begin_copy(&mut self) {
        if self.copied.len() >= BUFFER_BYTES {
            self.seal();
        }
        if self.copied_buffer.is_none() {
            self.copied_buffer = Some(self.buffers.len());
            self.buffers.push(Bytes::new());
        }
    }

    fn seal(&mut self) {
        let copied = mem::take(&mut self.copied);
        if let Some(number) = self.copied_buffer.take()
            && let Some(buffer) = self.buffers.get_mut(number)
        {
            *buffer = copied.into();
        }
    }
}

/// Bits of bytes that are 0 or not.
pub(super) fn bits_of(values: &[u8]) -> Bitmap {
    let bytes: Vec<u8> = values
        .chunks(8)
        .map(|eight| eight.iter().enumerate().fold(0, |bits, (at, value)| bits | u8::from(*value != 0) << at))
        .collect();
    Bitmap::new(bytes.into(), 0, values.len())
}

/// A bitmap of so many rows, of which these are set.
pub(super) fn validity_of(rows: usize, set: impl Iterator<Item = u32>) -> Bitmap {
    let mut bytes = alloc::vec![0_u8; rows.div_ceil(8)];
    for row in set {
        let row = usize_of_u32(row);
        if let Some(byte) = bytes.get_mut(row / 8) {
            *byte |= 1 << (row % 8);
        }
    }
    Bitmap::new(bytes.into(), 0, rows)
}

/// A flat column of values without slots for nulls, and the rows that have one.
pub(super) fn flat(
    leaf: usize,
    rows: usize,
    values: Values,
    validity: impl FnOnce() -> Bitmap,
) -> ColumnBatch {
    let nulls = rows.saturating_sub(values.len());
    ColumnBatch {
        leaf,
        rows,
        nulls,
        validity: (nulls > 0).then(validity),
        values,
        layout: Layout::Dense,
        levels: None,
        provisional: false,
    }
}

/// A column below a list that is null in every row.
pub(super) fn null_list(leaf: usize, levels: &Buffer<u8>, physical: PhysicalType) -> ColumnBatch {
    ColumnBatch {
        leaf,
        rows: levels.len(),
        nulls: levels.len(),
        validity: None,
        values: LeafBuilder::new(physical, 0, true).values.take(),
        layout: Layout::Dense,
        levels: Some(Levels { definition: levels.clone(), repetition: Some(levels.clone()) }),
        provisional: false,
    }
}

fn again<T: Copy>(values: &mut Vec<T>, times: usize) {
    if let Some(last) = values.last().copied() {
        values.resize_with(values.len() + times, || last);
    }
}

fn reserve<T>(values: &mut Vec<T>, more: usize) -> Result<()> {
    let bytes = more.saturating_mul(size_of::<T>());
    values.try_reserve(more).map_err(|_| Error::out_of_memory(bytes))
}

/// Where a value of a column is: bytes in a buffer that columns of strings share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) bytes: &'a [u8],
    /// The buffer's number.
    pub(super) buffer: u32,
}

impl Source<'_> {
    /// Checks that offsets in it fit a view.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::LimitExceeded`](marquetry_base::ErrorKind::LimitExceeded) from 4 GiB on.
    pub(super) fn check(&self) -> Result<()> {
        if u64_of(self.bytes.len()) < 1 << 32 {
            Ok(())
        } else {
            Err(Error::too_large("values of a column in one row with more than 4 GiB"))
        }
    }
}
