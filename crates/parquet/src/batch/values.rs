//! Values of a column, by physical type.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Bitmap, Budget, Buffer, Bytes, Error, Release, Result, release_all};
use marquetry_kernels::strings;

/// Values of one physical type.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// BOOLEAN, one bit per value.
    Boolean(Bitmap),
    /// INT32.
    Int32(Buffer<i32>),
    /// INT64.
    Int64(Buffer<i64>),
    /// INT96, twelve bytes per value.
    Int96(FixedBytes),
    /// FLOAT.
    Float(Buffer<f32>),
    /// DOUBLE.
    Double(Buffer<f64>),
    /// BYTE_ARRAY.
    ByteArray(ByteArrays),
    /// FIXED_LEN_BYTE_ARRAY.
    FixedLenByteArray(FixedBytes),
    /// Indices into a dictionary, if the reader was asked to [keep
    /// dictionaries](crate::read::ReadOptions::keep_dictionaries). A null's index is 0.
    Dictionary(Buffer<u32>, Arc<Values>),
}

/// Byte strings as views of 16 bytes each, in the layout of Arrow's `Utf8View` and `BinaryView`.
///
/// A view is a little-endian `u128`: the length in bytes 0..4; then, if it is at most 12, the bytes themselves, padded with
/// zeros; else the first four bytes, the number of a buffer (4 bytes) and the offset in it (4 bytes).
#[derive(Debug, Clone, Default)]
pub struct ByteArrays {
    views: Buffer<u128>,
    buffers: Arc<Vec<Bytes>>,
}

/// Contiguous byte strings of one length.
#[derive(Debug, Clone, PartialEq)]
pub struct FixedBytes {
    width: usize,
    values: usize,
    bytes: Buffer<u8>,
}

/// The longest byte string that is stored in its view.
pub const INLINE_BYTES_MAX: usize = 12;

impl ByteArrays {
    /// Views and the buffers that they point into. A view that points outside of them reads as empty.
    pub fn new(views: Buffer<u128>, buffers: Arc<Vec<Bytes>>) -> ByteArrays {
        ByteArrays { views, buffers }
    }

    /// Contiguous values in `bytes` with these lengths. Values that reach beyond the end, or beyond 4 GiB, read as
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
    /// When `index` is beyond the end, as for slices.
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

    /// The length of each value in bytes, in order.
    pub fn lengths(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.views.iter().map(|view| bytemuck::cast_ref::<u128, [u32; 4]>(view)[0])
    }

    /// Appends the bytes of all values to `out`, one value after the other.
    ///
    /// # Errors
    ///
    /// `Misuse` for a view that points outside of the buffers; `LimitExceeded` if the memory cannot be allocated. Then `out` is as it was.
    pub fn append_to(&self, out: &mut Vec<u8>) -> Result<()> {
        let total = self
            .lengths()
            .fold(strings::APPEND_SLACK, |sum, length| sum.saturating_add(usize_of_u32(length)));
        out.try_reserve_exact(total).map_err(|_| Error::out_of_memory(total))?;
        strings::append::<false>(&self.views, &self.buffers[..], out)
            .map_err(|_| Error::misuse("a batch with a view that points outside of its buffers"))
    }

    /// Some of them.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> ByteArrays {
        ByteArrays { views: self.views.slice(range), buffers: Arc::clone(&self.buffers) }
    }
}

impl Release for ByteArrays {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.views, &mut self.buffers], budget)
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
    /// If `bytes` does not have `width × values` bytes.
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
    /// When `index` is beyond the end, as for slices.
    #[inline]
    pub fn get(&self, index: usize) -> &[u8] {
        &self.bytes[index * self.width..(index + 1) * self.width]
    }

    /// Some of them.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> FixedBytes {
        FixedBytes {
            width: self.width,
            values: range.len(),
            bytes: self.bytes.slice(range.start * self.width..range.end * self.width),
        }
    }
}

impl Release for FixedBytes {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.values = 0;
        self.bytes.release(budget)
    }
}

macro_rules! of_numbers {
    ($($variant:ident: $number:ty),*) => {$(
        impl From<Vec<$number>> for Values {
            fn from(values: Vec<$number>) -> Values {
                Values::$variant(values.into())
            }
        }
    )*};
}

of_numbers!(Int32: i32, Int64: i64, Float: f32, Double: f64);

/// Byte strings, copied.
impl<T: AsRef<[u8]>> FromIterator<T> for Values {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Values {
        let (mut bytes, mut lengths) = (Vec::new(), Vec::new());
        for value in values {
            bytes.extend_from_slice(value.as_ref());
            lengths.push(value.as_ref().len());
        }
        Values::ByteArray(ByteArrays::from_lengths(bytes.into(), lengths))
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

    /// Some of them.
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

impl Release for Values {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        match self {
            Values::Boolean(bits) => bits.release(budget),
            Values::Int32(values) => values.release(budget),
            Values::Int64(values) => values.release(budget),
            Values::Float(values) => values.release(budget),
            Values::Double(values) => values.release(budget),
            Values::ByteArray(values) => values.release(budget),
            Values::Int96(values) | Values::FixedLenByteArray(values) => values.release(budget),
            Values::Dictionary(indices, values) => release_all(&mut [indices, values], budget),
        }
    }
}
