//! What the readers make: batches of rows, column by column.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::{Bitmap, Buffer, Bytes, Error, Result};
use marquetry_kernels::levels as kernel;

use crate::schema::Schema;

/// Rows of one row group, column by column.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The row group's number.
    pub row_group: usize,
    /// The first row's number in the file.
    pub first_row: u64,
    /// Rows; the same in every column.
    pub rows: usize,
    /// The columns asked for, in the order they were asked for. One list: of more than 6,000 columns it has 1 MiB or more.
    pub columns: Vec<ColumnBatch>,
}

impl Batch {
    /// Who takes rows of a table takes all of its leaves.
    ///
    /// # Errors
    ///
    /// `Misuse` for another number of columns.
    pub(crate) fn check_columns(&self, schema: &Schema) -> Result<()> {
        let (columns, leaves) = (self.columns.len(), schema.leaves().len());
        if columns == leaves {
            return Ok(());
        }
        Err(Error::misuse(format!("a batch of {columns} columns, of a schema of {leaves} leaves")))
    }
}

/// One column's part of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnBatch {
    /// The leaf's index in the schema.
    pub leaf: usize,
    /// Rows.
    pub rows: usize,
    /// Rows that are null; of a nested leaf, entries without a value.
    pub nulls: usize,
    /// A bit a row: there (1) or null (0). `None` when no row is null.
    pub validity: Option<Bitmap>,
    /// The values.
    pub values: Values,
    /// Where the values stand.
    pub layout: Layout,
    /// The levels of a nested leaf, whose values are always dense and which has no validity. `None` for a flat one.
    pub levels: Option<Levels>,
    /// Some of the values are of a page that is so large that its checksum will be known only at its end: see
    /// [`ReadOptions::verify_first_bytes`](super::ReadOptions::verify_first_bytes). If it should be wrong, the reader fails
    /// then. A host that must not act on such values waits for the column's first batch that is not provisional, or for the end.
    pub provisional: bool,
}

/// The levels of a nested leaf: an entry for each value, null, and list that is null or empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Levels {
    /// The definition level of each entry.
    pub definition: Buffer<u8>,
    /// The repetition level of each entry: 0 begins a row. `None` below no list, where each entry is a row.
    pub repetition: Option<Buffer<u8>>,
}

/// Where values stand in a column with nulls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// A value a row; a null's is zero or empty. Arrow's layout.
    #[default]
    Spaced,
    /// Only the values that are there, one after the other: what the file holds.
    Dense,
}

/// Values of one physical type.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// BOOLEAN, a bit a value.
    Boolean(Bitmap),
    /// INT32.
    Int32(Buffer<i32>),
    /// INT64.
    Int64(Buffer<i64>),
    /// INT96, twelve bytes a value.
    Int96(FixedBytes),
    /// FLOAT.
    Float(Buffer<f32>),
    /// DOUBLE.
    Double(Buffer<f64>),
    /// BYTE_ARRAY.
    ByteArray(ByteArrays),
    /// FIXED_LEN_BYTE_ARRAY.
    FixedLenByteArray(FixedBytes),
    /// Indices into a dictionary, where the reader was asked to [keep dictionaries](super::ReadOptions::keep_dictionaries). A null's
    /// index is 0.
    Dictionary(Buffer<u32>, Arc<Values>),
}

/// Byte strings as views: 16 bytes a value, in the layout of Arrow's `Utf8View` and `BinaryView`.
///
/// A view is a little-endian `u128`: the length in bytes 0..4; then, if it is at most 12, the bytes themselves, padded with
/// zeros; else the first four bytes, the number of a buffer (4 bytes) and the offset in it (4 bytes).
#[derive(Debug, Clone, Default)]
pub struct ByteArrays {
    views: Buffer<u128>,
    buffers: Arc<Vec<Bytes>>,
}

/// Byte strings of one length, one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct FixedBytes {
    width: usize,
    values: usize,
    bytes: Buffer<u8>,
}

/// The longest byte string that a view holds itself.
pub const INLINE_BYTES_MAX: usize = 12;

impl ByteArrays {
    /// Views and the buffers that they point into. A view that points outside of them reads as empty.
    pub fn new(views: Buffer<u128>, buffers: Arc<Vec<Bytes>>) -> ByteArrays {
        ByteArrays { views, buffers }
    }

    /// Values that stand one after the other in `bytes`, each of these lengths. Lengths beyond the end, or beyond 4 GiB, read as
    /// empty.
    pub fn from_lengths(bytes: Bytes, lengths: impl IntoIterator<Item = usize>) -> ByteArrays {
        let mut offset = 0usize;
        let views = lengths.into_iter().map(|length| {
            let range = offset..offset.saturating_add(length);
            offset = range.end;
            let mut view = [0; 16];
            let (Some(value), Ok(length), Ok(start)) =
                (bytes.get(range.clone()), u32::try_from(length), u32::try_from(range.start))
            else {
                return 0;
            };
            view[..4].copy_from_slice(&length.to_le_bytes());
            if value.len() <= INLINE_BYTES_MAX {
                view[4..4 + value.len()].copy_from_slice(value);
            } else {
                view[4..8].copy_from_slice(&value[..4]);
                view[12..].copy_from_slice(&start.to_le_bytes());
            }
            u128::from_le_bytes(view)
        });
        let views = views.collect::<Vec<_>>().into();
        ByteArrays { views, buffers: Arc::new(alloc::vec![bytes]) }
    }

    /// Values.
    pub fn len(&self) -> usize {
        self.views.len()
    }

    /// True when there are no values.
    pub fn is_empty(&self) -> bool {
        self.views.is_empty()
    }

    /// The views.
    pub fn views(&self) -> &Buffer<u128> {
        &self.views
    }

    /// The buffers that views point into.
    pub fn buffers(&self) -> &Arc<Vec<Bytes>> {
        &self.buffers
    }

    /// A value.
    ///
    /// # Panics
    ///
    /// When `index` is beyond the end, as slices do.
    #[inline]
    pub fn get(&self, index: usize) -> &[u8] {
        let view = &self.views[index];
        let words: &[u32; 4] = bytemuck::cast_ref(view);
        let length = words[0] as usize;
        if length <= INLINE_BYTES_MAX {
            let bytes: &[u8; 16] = bytemuck::cast_ref(view);
            return &bytes[4..4 + length];
        }
        let offset = words[3] as usize;
        self.buffers
            .get(words[2] as usize)
            .and_then(|buffer| buffer.get(offset..)?.get(..length))
            .unwrap_or(&[])
    }

    /// All values, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u8]> + '_ {
        (0..self.len()).map(|index| self.get(index))
    }

    /// A part of them.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> ByteArrays {
        ByteArrays { views: self.views.slice(range), buffers: Arc::clone(&self.buffers) }
    }
}

impl PartialEq for ByteArrays {
    fn eq(&self, other: &ByteArrays) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl FixedBytes {
    /// `values` strings of `width` bytes.
    ///
    /// # Panics
    ///
    /// When `bytes` has another length than they need.
    pub fn new(width: usize, values: usize, bytes: Buffer<u8>) -> FixedBytes {
        assert_eq!(bytes.len(), width * values, "{values} strings of {width} bytes");
        FixedBytes { width, values, bytes }
    }

    /// Bytes of a value.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Values.
    pub fn len(&self) -> usize {
        self.values
    }

    /// True when there are no values.
    pub fn is_empty(&self) -> bool {
        self.values == 0
    }

    /// All bytes.
    pub fn bytes(&self) -> &Buffer<u8> {
        &self.bytes
    }

    /// A value.
    ///
    /// # Panics
    ///
    /// When `index` is beyond the end, as slices do.
    #[inline]
    pub fn get(&self, index: usize) -> &[u8] {
        &self.bytes[index * self.width..(index + 1) * self.width]
    }

    /// A part of them.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> FixedBytes {
        FixedBytes {
            width: self.width,
            values: range.len(),
            bytes: self.bytes.slice(range.start * self.width..range.end * self.width),
        }
    }
}

impl Values {
    /// Values.
    pub fn len(&self) -> usize {
        match self {
            Values::Boolean(bits) => bits.len(),
            Values::Int32(values) => values.len(),
            Values::Int64(values) => values.len(),
            Values::Float(values) => values.len(),
            Values::Double(values) => values.len(),
            Values::ByteArray(values) => values.len(),
            Values::Int96(values) | Values::FixedLenByteArray(values) => values.len(),
            Values::Dictionary(indices, _) => indices.len(),
        }
    }

    /// True when there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A part of them.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Values {
        match self {
            Values::Boolean(bits) => Values::Boolean(bits.slice(range)),
            Values::Int32(values) => Values::Int32(values.slice(range)),
            Values::Int64(values) => Values::Int64(values.slice(range)),
            Values::Float(values) => Values::Float(values.slice(range)),
            Values::Double(values) => Values::Double(values.slice(range)),
            Values::ByteArray(values) => Values::ByteArray(values.slice(range)),
            Values::Int96(values) => Values::Int96(values.slice(range)),
            Values::FixedLenByteArray(values) => Values::FixedLenByteArray(values.slice(range)),
            Values::Dictionary(indices, values) => {
                Values::Dictionary(indices.slice(range), Arc::clone(values))
            }
        }
    }
}

impl ColumnBatch {
    /// True when the row is null.
    #[inline]
    pub fn is_null(&self, row: usize) -> bool {
        self.validity.as_ref().is_some_and(|validity| !validity.get(row))
    }

    /// A part of its rows.
    ///
    /// # Panics
    ///
    /// When the range reaches beyond the rows, as slices do.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> ColumnBatch {
        assert!(range.start <= range.end && range.end <= self.rows, "rows {range:?} of {}", self.rows);
        if let Some(levels) = &self.levels {
            return self.slice_nested(levels, range);
        }
        let ones = |range: Range<usize>| match &self.validity {
            Some(validity) => {
                let first = validity.offset() + range.start;
                // `Bitmap` has as many bits as it says.
                marquetry_kernels::bits::count_ones(validity.bytes(), first, range.len()).unwrap_or(0)
            }
            None => range.len(),
        };
        let there = ones(range.clone());
        let values = match self.layout {
            Layout::Spaced => range.clone(),
            Layout::Dense => {
                let before = ones(0..range.start);
                before..before + there
            }
        };
        let nulls = range.len() - there;
        ColumnBatch {
            leaf: self.leaf,
            rows: range.len(),
            nulls,
            validity: self.validity.as_ref().filter(|_| nulls > 0).map(|validity| validity.slice(range)),
            values: self.values.slice(values),
            layout: self.layout,
            levels: None,
            provisional: self.provisional,
        }
    }

    fn slice_nested(&self, levels: &Levels, range: Range<usize>) -> ColumnBatch {
        let entries = match &levels.repetition {
            None => range.clone(),
            Some(repetition) => {
                // Where a row begins; the end, for the one after the last.
                let start_of =
                    |row: usize| kernel::find_below(repetition, 1, row).unwrap_or(repetition.len());
                let start = start_of(range.start);
                start..if range.is_empty() { start } else { start_of(range.end) }
            }
        };
        // A value stands where the definition level is the largest there can be, which the leaf knows; here the number of
        // values of all entries tells it: a batch without a value has none in any part.
        let largest = levels.definition.iter().max().filter(|_| !self.values.is_empty());
        let there = |entries: Range<usize>| {
            largest.map_or(0, |&largest| kernel::count(&levels.definition[entries], largest))
        };
        let before = there(0..entries.start);
        let values = there(entries.clone());
        self.part_of_nested(levels, range.len(), entries, before..before + values)
    }

    /// The batch of a nested leaf in two: `rows`, which are the first `entries` and have the first `values`, and the others.
    pub(super) fn split_nested(
        &self,
        levels: &Levels,
        rows: usize,
        entries: usize,
        values: usize,
    ) -> (ColumnBatch, ColumnBatch) {
        let (all_entries, all_values) = (levels.definition.len(), self.values.len());
        (
            self.part_of_nested(levels, rows, 0..entries, 0..values),
            self.part_of_nested(levels, self.rows - rows, entries..all_entries, values..all_values),
        )
    }

    fn part_of_nested(
        &self,
        levels: &Levels,
        rows: usize,
        entries: Range<usize>,
        values: Range<usize>,
    ) -> ColumnBatch {
        ColumnBatch {
            leaf: self.leaf,
            rows,
            nulls: entries.len() - values.len(),
            validity: None,
            values: self.values.slice(values),
            layout: self.layout,
            levels: Some(Levels {
                definition: levels.definition.slice(entries.clone()),
                repetition: levels.repetition.as_ref().map(|repetition| repetition.slice(entries)),
            }),
            provisional: self.provisional,
        }
    }
}
