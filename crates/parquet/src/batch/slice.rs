//! Borrowed values, for encoders and dictionaries.

use core::ops::Range;

use marquetry_base::{Bytes, cast};
use marquetry_kernels::plain::as_bytes;

use super::Values;
use crate::schema::PhysicalType;

/// Values of one physical type, as in batches and arrays, without nulls: those with nulls are
/// [compacted](crate::write::encoder::Compacted) first.
#[derive(Debug, Clone, Copy)]
pub enum Slice<'a> {
    /// BOOLEAN: `values` bits, from bit `first` of `bits` on, least significant bit first.
    Boolean {
        /// The bytes that hold the bits.
        bits: &'a [u8],
        /// The first value's bit.
        first: usize,
        /// Values.
        values: usize,
    },
    /// INT32.
    Int32(&'a [i32]),
    /// INT64.
    Int64(&'a [i64]),
    /// FLOAT.
    Float(&'a [f32]),
    /// DOUBLE.
    Double(&'a [f64]),
    /// BYTE_ARRAY, as views of [`ByteArrays`](crate::batch::ByteArrays), and the buffers that they point into.
    ByteArray(&'a [u128], &'a [Bytes]),
    /// INT96 and FIXED_LEN_BYTE_ARRAY: strings of `width` bytes, one after the other.
    Fixed {
        /// Bytes of a value.
        width: usize,
        /// Values: if the width is 0, `bytes` doesn't say how many.
        values: usize,
        /// All bytes.
        bytes: &'a [u8],
    },
    /// Indices into a dictionary.
    Indices(&'a [u32]),
}

impl<'a> Slice<'a> {
    /// The values of a batch. Dictionary values become indices.
    pub fn of(values: &'a Values) -> Slice<'a> {
        match values {
            Values::Boolean(bits) => {
                Slice::Boolean { bits: bits.bytes(), first: bits.offset(), values: bits.len() }
            }
            Values::Int32(values) => Slice::Int32(values),
            Values::Int64(values) => Slice::Int64(values),
            Values::Float(values) => Slice::Float(values),
            Values::Double(values) => Slice::Double(values),
            Values::ByteArray(values) => Slice::ByteArray(values.views(), values.buffers()),
            Values::Int96(values) | Values::FixedLenByteArray(values) => {
                Slice::Fixed { width: values.width(), values: values.len(), bytes: values.bytes() }
            }
            Values::Dictionary(indices, _) => Slice::Indices(indices),
        }
    }

    /// Values.
    pub fn len(&self) -> usize {
        match *self {
            Slice::Boolean { values, .. } | Slice::Fixed { values, .. } => values,
            Slice::Int32(values) => values.len(),
            Slice::Int64(values) => values.len(),
            Slice::Float(values) => values.len(),
            Slice::Double(values) => values.len(),
            Slice::ByteArray(views, _) => views.len(),
            Slice::Indices(indices) => indices.len(),
        }
    }

    /// True when there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Some of them.
    ///
    /// # Panics
    ///
    /// When the range reaches beyond them, as for slices.
    #[must_use]
    pub fn part(&self, range: Range<usize>) -> Slice<'a> {
        match *self {
            Slice::Boolean { bits, first, values } => {
                assert!(range.start <= range.end && range.end <= values, "range {range:?} of {values}");
                Slice::Boolean { bits, first: first + range.start, values: range.len() }
            }
            Slice::Int32(values) => Slice::Int32(&values[range]),
            Slice::Int64(values) => Slice::Int64(&values[range]),
            Slice::Float(values) => Slice::Float(&values[range]),
            Slice::Double(values) => Slice::Double(&values[range]),
            Slice::ByteArray(views, buffers) => Slice::ByteArray(&views[range], buffers),
            Slice::Fixed { width, values, bytes } => {
                assert!(range.start <= range.end && range.end <= values, "range {range:?} of {values}");
                let bytes = &bytes[range.start * width..range.end * width];
                Slice::Fixed { width, values: range.len(), bytes }
            }
            Slice::Indices(indices) => Slice::Indices(&indices[range]),
        }
    }

    /// True if the values are of that type. Indices are of none.
    pub(crate) fn is_of(&self, physical: PhysicalType) -> bool {
        match (*self, physical) {
            (Slice::Boolean { .. }, PhysicalType::Boolean)
            | (Slice::Int32(_), PhysicalType::Int32)
            | (Slice::Int64(_), PhysicalType::Int64)
            | (Slice::Float(_), PhysicalType::Float)
            | (Slice::Double(_), PhysicalType::Double)
            | (Slice::ByteArray(..), PhysicalType::ByteArray) => true,
            (Slice::Fixed { width, .. }, PhysicalType::Int96) => width == 12,
            (Slice::Fixed { width, .. }, PhysicalType::FixedLenByteArray(length)) => {
                width == cast::usize_of_u32(length)
            }
            _ => false,
        }
    }

    /// The bytes of numbers and strings of one length, one value after the other, and a value's width.
    pub(crate) fn fixed(&self) -> Option<(usize, &'a [u8])> {
        Some(match *self {
            Slice::Int32(values) => (4, as_bytes(values)),
            Slice::Int64(values) => (8, as_bytes(values)),
            Slice::Float(values) => (4, as_bytes(values)),
            Slice::Double(values) => (8, as_bytes(values)),
            Slice::Fixed { width, values, bytes } => (width, bytes.get(..width * values)?),
            Slice::Boolean { .. } | Slice::ByteArray(..) | Slice::Indices(_) => return None,
        })
    }
}
