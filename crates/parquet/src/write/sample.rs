//! The first values of a chunk, kept until their encoding is chosen.

use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::{Budget, Bytes, Error, Price, Result, cast};
use marquetry_kernels::bits;

use super::chooser::{FIRST_BYTES, FIRST_VALUES, bytes_of, first_values, values_within};
use super::encoder::Slice;
use super::part::PART_ENTRIES;
use crate::batch::INLINE_BYTES_MAX;
use crate::encoding::other_type;
use crate::encoding::view::{far_bytes, length};
use crate::growing::SLICE_BYTES;
use crate::schema::PhysicalType;

/// The price of keeping a value.
const KEEP_PRICE: Price = Price { kib: 200, kilovalue: 6 << 10 };

/// The first values of a chunk, unencoded and in order: as many as a choice looks at, and one part more. So the choice
/// does not depend on how values are split.
#[derive(Debug)]
pub(super) struct Sample {
    kept: Kept,
    values: usize,
    /// Bytes of the values, without lengths.
    bytes: usize,
    /// How many were taken again.
    taken: usize,
}

#[derive(Debug)]
enum Kept {
    Bits(Vec<u8>),
    Int32(Vec<i32>),
    Int64(Vec<i64>),
    Float(Vec<f32>),
    Double(Vec<f64>),
    /// Strings of one length.
    Fixed(usize, Vec<u8>),
    /// Views, and what they point to: bytes while values arrive, then a buffer.
    Strings(Vec<u128>, Vec<u8>, Bytes),
}

impl Sample {
    /// No values yet.
    pub(super) fn new(physical: PhysicalType) -> Sample {
        let kept = match physical {
            PhysicalType::Boolean => Kept::Bits(Vec::new()),
            PhysicalType::Int32 => Kept::Int32(Vec::new()),
            PhysicalType::Int64 => Kept::Int64(Vec::new()),
            PhysicalType::Float => Kept::Float(Vec::new()),
            PhysicalType::Double => Kept::Double(Vec::new()),
            PhysicalType::ByteArray => Kept::Strings(Vec::new(), Vec::new(), Bytes::new()),
            PhysicalType::Int96 | PhysicalType::FixedLenByteArray(_) => {
                Kept::Fixed(physical.width().unwrap_or(0), Vec::new())
            }
        };
        Sample { kept, values: 0, bytes: 0, taken: 0 }
    }

    /// Bytes that the values take in PLAIN.
    pub(super) fn plain_bytes(&self) -> usize {
        match &self.kept {
            Kept::Strings(views, ..) => self.bytes + 4 * views.len(),
            Kept::Bits(bytes) => bytes.len(),
            _ => self.bytes,
        }
    }

    /// Bytes of memory, about.
    pub(super) fn held(&self) -> usize {
        match &self.kept {
            Kept::Strings(views, bytes, buffer) => size_of_val(&**views) + bytes.len() + buffer.len(),
            _ => self.plain_bytes(),
        }
    }

    /// No more values are needed.
    pub(super) fn is_full(&self) -> bool {
        self.values >= FIRST_VALUES || self.bytes >= FIRST_BYTES
    }

    /// Keeps the values of a part, at most [`SLICE_BYTES`].
    ///
    /// # Errors
    ///
    /// `Misuse` for values of another type; an error if memory cannot be allocated.
    pub(super) fn add(&mut self, values: Slice<'_>, bytes: usize, budget: &mut Budget<'_>) -> Result<()> {
        budget.charge(KEEP_PRICE, bytes, values.len());
        match (&mut self.kept, values) {
            (Kept::Bits(kept), Slice::Boolean { bits: from, first, values }) => {
                kept.resize((self.values + values).div_ceil(8), 0);
                bits::copy(from, first, kept, self.values, values)
                    .map_err(|_| Error::misuse("a bitmap too short"))?;
            }
            (Kept::Int32(kept), Slice::Int32(values)) => extend(kept, values)?,
            (Kept::Int64(kept), Slice::Int64(values)) => extend(kept, values)?,
            (Kept::Float(kept), Slice::Float(values)) => extend(kept, values)?,
            (Kept::Double(kept), Slice::Double(values)) => extend(kept, values)?,
            (Kept::Fixed(width, kept), Slice::Fixed { width: of, bytes, .. }) if *width == of => {
                extend(kept, bytes)?;
            }
            (Kept::Strings(views, kept, _), Slice::ByteArray(more, buffers)) => {
                views.try_reserve(more.len()).map_err(|_| Error::out_of_memory(16 * more.len()))?;
                for view in more {
                    views.push(keep_string(*view, buffers, kept)?);
                }
            }
            _ => return Err(other_type()),
        }
        self.values += values.len();
        self.bytes += bytes;
        Ok(())
    }

    /// All values, to choose by, and whether a choice looks at all of them.
    pub(super) fn all(&mut self) -> (Slice<'_>, bool) {
        let values = self.values;
        let all = self.part(0..values);
        (all, first_values(all) == values)
    }

    /// The next values to encode, at most a part's worth, and their bytes in PLAIN. `None` if there are no more.
    pub(super) fn next(&mut self) -> Option<(Slice<'_>, usize)> {
        let rest = self.part(self.taken..self.values);
        (!rest.is_empty()).then(|| part_of(rest))
    }

    /// They are encoded.
    pub(super) fn end_part(&mut self, values: usize) {
        self.taken += values;
    }

    fn part(&mut self, range: Range<usize>) -> Slice<'_> {
        let all = match &mut self.kept {
            Kept::Bits(bits) => Slice::Boolean { bits, first: 0, values: self.values },
            Kept::Int32(values) => Slice::Int32(values),
            Kept::Int64(values) => Slice::Int64(values),
            Kept::Float(values) => Slice::Float(values),
            Kept::Double(values) => Slice::Double(values),
            Kept::Fixed(width, bytes) => Slice::Fixed { width: *width, values: self.values, bytes },
            Kept::Strings(views, bytes, buffer) => {
                if !bytes.is_empty() {
                    *buffer = Bytes::from(core::mem::take(bytes));
                }
                Slice::ByteArray(views, core::slice::from_ref(buffer))
            }
        };
        all.part(range)
    }
}

/// The first of some values, as many as are processed together, and their bytes in PLAIN.
pub(super) fn part_of(values: Slice<'_>) -> (Slice<'_>, usize) {
    let count = values_within(values, PART_ENTRIES, SLICE_BYTES).max(1).min(values.len());
    let part = values.part(0..count);
    let lengths = if let Slice::ByteArray(..) = part { 4 * count } else { 0 };
    (part, bytes_of(part) + lengths)
}

fn extend<T: Copy>(kept: &mut Vec<T>, values: &[T]) -> Result<()> {
    kept.try_reserve(values.len()).map_err(|_| Error::out_of_memory(size_of_val(values)))?;
    kept.extend_from_slice(values);
    Ok(())
}

/// Appends a string to others and returns its view there.
fn keep_string(view: u128, buffers: &[Bytes], kept: &mut Vec<u8>) -> Result<u128> {
    if length(view) as usize <= INLINE_BYTES_MAX {
        return Ok(view);
    }
    let start = cast::u64_of(kept.len());
    extend(kept, far_bytes(view, buffers)?)?;
    // Length and first bytes stay; it is in buffer 0.
    Ok(view & u128::from(u64::MAX) | u128::from(start) << 96)
}
