//! Writing PLAIN.

use marquetry_base::{Budget, Bytes, Error, Price, Result, cast};
use marquetry_kernels::bits;

use super::super::output::{Body, Output};
use super::super::{Part, beyond_buffers, other_type, view_bytes};
use crate::growing::{COPY_PRICE, SLICE_BYTES};
use crate::read::INLINE_BYTES_MAX;
use crate::write::encoder::Slice;

/// What a byte string costs.
const STRING_PRICE: Price = Price { kib: 150, kilovalue: 4 << 10 };

/// Byte strings that are written at a time.
const STRINGS_AT_ONCE: usize = 256;

/// Bytes behind a string's place that a copy of a whole block may write to.
const SLACK: usize = 32;

/// The longest string that is copied in blocks.
const BLOCKS_MAX: usize = 32;

/// Bits that are copied at a time.
const BITS_AT_ONCE: usize = 8 * SLICE_BYTES;

/// An encoder of values of any type.
#[derive(Debug, Default)]
pub(crate) struct PlainEncoder {
    out: Output,
    /// Bits that do not fill a byte yet, and how many.
    bits: u8,
    bit_count: usize,
    /// What is done of a long value.
    part: Part,
}

impl PlainEncoder {
    /// See [`Encoder::put`](crate::write::encoder::Encoder::put).
    pub(crate) fn put(&mut self, values: Slice<'_>, budget: &mut Budget<'_>) -> Result<usize> {
        let mut done = 0;
        while done < values.len() {
            let rest = values.part(done..values.len());
            done += match rest {
                Slice::Boolean { bits, first, values } => self.booleans(bits, first, values, budget)?,
                Slice::ByteArray(views, buffers) => self.strings(views, buffers, budget)?,
                _ => {
                    let (width, bytes) = rest.fixed().ok_or_else(other_type)?;
                    self.fixed(width, bytes, rest.len(), budget)?
                }
            };
            if budget.is_spent() {
                break;
            }
        }
        Ok(done)
    }

    /// Bytes of the page so far.
    pub(crate) fn bytes(&self) -> usize {
        self.out.len() + self.bit_count.div_ceil(8)
    }

    /// See [`Encoder::finish`](crate::write::encoder::Encoder::finish).
    pub(crate) fn finish(&mut self, budget: &mut Budget<'_>) -> Result<Option<Body>> {
        self.part.none()?;
        if self.bit_count > 0 {
            self.out.put(&[self.bits])?;
            (self.bits, self.bit_count) = (0, 0);
        }
        budget.charge_units(1);
        self.out.finish(&[]).map(Some)
    }

    /// What was written, to write on.
    pub(crate) fn out(&mut self) -> &mut Output {
        &mut self.out
    }

    fn fixed(&mut self, width: usize, bytes: &[u8], values: usize, budget: &mut Budget<'_>) -> Result<usize> {
        if width == 0 {
            return Ok(values);
        }
        if width > SLICE_BYTES {
            return self.long(&bytes[..width], budget);
        }
        let take = values.min(SLICE_BYTES / width);
        budget.charge(COPY_PRICE, take * width, 0);
        self.out.put(&bytes[..take * width])?;
        Ok(take)
    }

    /// A slice of a long value; 1 when that was its end.
    fn long(&mut self, value: &[u8], budget: &mut Budget<'_>) -> Result<usize> {
        let piece = self.part.next(value)?;
        budget.charge(COPY_PRICE, piece.len(), 0);
        self.out.put(piece)?;
        Ok(usize::from(self.part.is_done(value)))
    }

    fn booleans(
        &mut self,
        bits: &[u8],
        first: usize,
        values: usize,
        budget: &mut Budget<'_>,
    ) -> Result<usize> {
        let take = values.min(BITS_AT_ONCE);
        let room = self.out.room((self.bit_count + take).div_ceil(8))?;
        if let Some(byte) = room.first_mut() {
            *byte = self.bits;
        }
        bits::copy(bits, first, room, self.bit_count, take)
            .map_err(|_| Error::misuse("a bitmap too short"))?;
        budget.charge(COPY_PRICE, room.len(), 0);
        self.bit_count = (self.bit_count + take) % 8;
        self.bits = 0;
        if self.bit_count > 0 {
            self.bits = room.last().copied().unwrap_or(0);
            self.out.give_back(1);
        }
        Ok(take)
    }

    fn strings(&mut self, views: &[u128], buffers: &[Bytes], budget: &mut Budget<'_>) -> Result<usize> {
        let now = &views[..views.len().min(STRINGS_AT_ONCE)];
        let bytes: u64 = now.iter().map(|&view| u64::from(length(view)) + 4).sum();
        match cast::usize_of(bytes).filter(|&bytes| bytes <= SLICE_BYTES) {
            Some(bytes) if self.part.none().is_ok() => {
                budget.charge(STRING_PRICE, bytes, now.len());
                let room = self.out.room(bytes + SLACK)?;
                write_strings(now, buffers, room)?;
                self.out.give_back(SLACK);
                Ok(now.len())
            }
            // Some are long: one by one.
            _ => self.string(now[0], buffers, budget),
        }
    }

    fn string(&mut self, view: u128, buffers: &[Bytes], budget: &mut Budget<'_>) -> Result<usize> {
        let raw = view.to_le_bytes();
        let value = view_bytes(&raw, buffers)?;
        budget.charge(STRING_PRICE, 0, 1);
        if self.part.none().is_ok() {
            self.out.put(&raw[..4])?;
        }
        self.long(value, budget)
    }
}

/// The length that a view says.
#[inline]
fn length(view: u128) -> u32 {
    cast::low_u32(u64::try_from(view & u128::from(u32::MAX)).unwrap_or(0))
}

/// Writes strings, each behind its length, to the start of `room`, which has [`SLACK`] bytes more than they need.
fn write_strings(views: &[u128], buffers: &[Bytes], room: &mut [u8]) -> Result<()> {
    let mut at = 0;
    for view in views {
        let raw = view.to_le_bytes();
        let length = length(*view) as usize;
        // The first 16 bytes are right of a short string, and the length of any.
        let Some(to) = room[at..].first_chunk_mut::<16>() else { return Err(Error::internal("no room")) };
        *to = raw;
        at += 4;
        if length > INLINE_BYTES_MAX {
            let [.., b0, b1, b2, b3, o0, o1, o2, o3] = raw;
            let buffer =
                buffers.get(u32::from_le_bytes([b0, b1, b2, b3]) as usize).ok_or_else(beyond_buffers)?;
            let from =
                buffer.get(u32::from_le_bytes([o0, o1, o2, o3]) as usize..).ok_or_else(beyond_buffers)?;
            match (from.first_chunk::<BLOCKS_MAX>(), room[at..].first_chunk_mut::<BLOCKS_MAX>()) {
                // A copy of one length is several times faster than one of any.
                (Some(from), Some(to)) if length <= BLOCKS_MAX => *to = *from,
                _ => {
                    let from = from.get(..length).ok_or_else(beyond_buffers)?;
                    room[at..at + length].copy_from_slice(from);
                }
            }
        }
        at += length;
    }
    Ok(())
}
