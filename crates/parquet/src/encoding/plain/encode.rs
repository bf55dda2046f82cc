//! Writing PLAIN.

use marquetry_base::{Budget, Error, Result};
use marquetry_kernels::bits;

use super::super::output::{Body, Output};
use super::super::{Part, other_type, strings};
use crate::batch::Slice;
use crate::growing::{ROOM_PRICE, SLICE_BYTES};

/// Space before a page for its header, and for its levels if they are runs, so that everything can be one piece.
const HEAD_BYTES: usize = 64;

/// Bits that are copied at a time.
const BITS_AT_ONCE: usize = 8 * SLICE_BYTES;

/// An encoder of values of any type.
#[derive(Debug, Default)]
pub(crate) struct PlainEncoder {
    out: Output,
    /// Bits that do not fill a byte yet, and how many.
    bits: u8,
    bit_count: usize,
    /// How much of a long value is done.
    part: Part,
}

impl PlainEncoder {
    /// See [`Encoder::put`](crate::write::encoder::Encoder::put).
    pub(crate) fn put(&mut self, values: Slice<'_>, budget: &mut Budget<'_>) -> Result<usize> {
        let mut done = 0;
        if self.out.is_new() && !values.is_empty() {
            self.out.leave_head(HEAD_BYTES)?;
        }
        while done < values.len() {
            let rest = values.part(done..values.len());
            done += match rest {
                Slice::Boolean { bits, first, values } => self.booleans(bits, first, values, budget)?,
                Slice::ByteArray(views, buffers) => {
                    strings::put::<true>(&mut self.out, &mut self.part, views, buffers, budget)?
                }
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
    pub(crate) fn finish(&mut self) -> Result<Body> {
        self.part.ended()?;
        if self.bit_count > 0 {
            self.out.put(&[self.bits])?;
            (self.bits, self.bit_count) = (0, 0);
        }
        self.out.finish(&[])
    }

    fn fixed(&mut self, width: usize, bytes: &[u8], values: usize, budget: &mut Budget<'_>) -> Result<usize> {
        if width == 0 {
            budget.charge_units(1);
            return Ok(values);
        }
        if width > SLICE_BYTES {
            return strings::put_part(&mut self.out, &mut self.part, &bytes[..width], budget);
        }
        let take = values.min(SLICE_BYTES / width);
        budget.charge(ROOM_PRICE, take * width, 0);
        self.out.put(&bytes[..take * width])?;
        Ok(take)
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
        budget.charge(ROOM_PRICE, room.len(), 0);
        self.bit_count = (self.bit_count + take) % 8;
        self.bits = 0;
        if self.bit_count > 0 {
            self.bits = room.last().copied().unwrap_or(0);
            self.out.give_back(1);
        }
        Ok(take)
    }
}
