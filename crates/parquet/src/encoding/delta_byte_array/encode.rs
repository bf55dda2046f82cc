//! Writing DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY.

use alloc::vec::Vec;

use marquetry_base::{Budget, Bytes, Error, Price, Result};
use marquetry_kernels::prefix;

use super::super::delta::encode::{DeltaEncoder, VALUE_PRICE};
use super::super::output::{Body, Output};
use super::super::strings::{self, STRINGS_AT_ONCE};
use super::super::view::{length as view_length, view_bytes};
use super::super::{Part, other_type};
use crate::batch::Slice;
use crate::growing::SLICE_BYTES;

/// The price of a value whose prefix is compared with the previous value's.
const PREFIX_PRICE: Price = Price { kib: 300, kilovalue: 12 << 10 };

/// An encoder of byte strings: their lengths, then their bytes.
#[derive(Debug, Default)]
pub(crate) struct LengthsEncoder {
    lengths: DeltaEncoder<i32>,
    out: Output,
    part: Part,
}

impl LengthsEncoder {
    /// Takes as many values as the budget pays for, and returns how many.
    pub(crate) fn put(&mut self, values: Slice<'_>, budget: &mut Budget<'_>) -> Result<usize> {
        let Slice::ByteArray(views, buffers) = values else { return Err(other_type()) };
        let mut done = 0;
        while done < views.len() {
            let rest = &views[done..];
            let now = strings::put::<false>(&mut self.out, &mut self.part, rest, buffers, budget)?;
            let mut lengths = [0; STRINGS_AT_ONCE];
            for (length, &view) in lengths.iter_mut().zip(&rest[..now]) {
                *length = as_length(view_length(view) as usize)?;
            }
            budget.charge(VALUE_PRICE, 0, now);
            self.lengths.put_slice(&lengths[..now])?;
            done += now;
            if budget.is_spent() {
                break;
            }
        }
        Ok(done)
    }

    /// Bytes of the page so far, approximately.
    pub(crate) fn bytes(&self) -> usize {
        self.lengths.bytes() + self.out.len()
    }

    /// Ends the page.
    pub(crate) fn finish(&mut self) -> Result<Body> {
        self.part.ended()?;
        let mut body = self.lengths.finish()?;
        body.append(self.out.finish(&[])?);
        Ok(body)
    }
}

/// An encoder of byte strings as the prefixes that they share with the previous one, and suffixes.
#[derive(Debug, Default)]
pub(crate) struct PrefixEncoder {
    prefixes: DeltaEncoder<i32>,
    suffixes: DeltaEncoder<i32>,
    out: Output,
    part: Part,
    /// The last value, as far as it is compared: at most [`SLICE_BYTES`].
    last: Vec<u8>,
}

impl PrefixEncoder {
    /// Takes as many values as the budget pays for, and returns how many.
    pub(crate) fn put(&mut self, values: Slice<'_>, budget: &mut Budget<'_>) -> Result<usize> {
        let mut done = 0;
        while done < values.len() {
            done += match values {
                Slice::ByteArray(views, buffers) => self.views(&views[done..], buffers, budget)?,
                Slice::Fixed { width, values, bytes } => {
                    let value = |at: usize| bytes.get((done + at) * width..(done + at + 1) * width);
                    self.some(values - done, |at| value(at).ok_or_else(other_type), budget)?
                }
                _ => return Err(other_type()),
            };
            if budget.is_spent() {
                break;
            }
        }
        Ok(done)
    }

    /// Bytes of the page so far, approximately.
    pub(crate) fn bytes(&self) -> usize {
        self.prefixes.bytes() + self.suffixes.bytes() + self.out.len()
    }

    /// Ends the page. The first value of the next one shares nothing with the last of this one: pages are independent.
    pub(crate) fn finish(&mut self) -> Result<Body> {
        self.part.ended()?;
        self.last.clear();
        let mut body = self.prefixes.finish()?;
        body.append(self.suffixes.finish()?);
        body.append(self.out.finish(&[])?);
        Ok(body)
    }

    fn views(&mut self, views: &[u128], buffers: &[Bytes], budget: &mut Budget<'_>) -> Result<usize> {
        let views = &views[..views.len().min(STRINGS_AT_ONCE)];
        // The bytes of short strings are in their views, which must be in memory to be read.
        let mut raw = [[0; 16]; STRINGS_AT_ONCE];
        for (raw, view) in raw.iter_mut().zip(views) {
            *raw = view.to_le_bytes();
        }
        self.some(views.len(), |at| view_bytes(&raw[at], buffers), budget)
    }

    /// Takes some of `count` values, at most a slice of bytes, and returns how many.
    fn some<'a>(
        &mut self,
        count: usize,
        value: impl Fn(usize) -> Result<&'a [u8]>,
        budget: &mut Budget<'_>,
    ) -> Result<usize> {
        let (mut prefixes, mut suffixes) = ([0; STRINGS_AT_ONCE], [0; STRINGS_AT_ONCE]);
        let (mut done, mut bytes) = (0, 0);
        let mut before: Option<&[u8]> = None;
        while done < count.min(STRINGS_AT_ONCE) {
            let now = value(done)?;
            if bytes + now.len() > SLICE_BYTES && done > 0 {
                break;
            }
            let shared = prefix::common(before.unwrap_or(&self.last), now);
            let suffix = &now[shared..];
            if suffix.len() > SLICE_BYTES || !self.part.is_none() {
                budget.charge(PREFIX_PRICE, shared, 1);
                if strings::put_part(&mut self.out, &mut self.part, suffix, budget)? == 0 {
                    return Ok(0);
                }
            } else {
                self.out.put(suffix)?;
            }
            (prefixes[done], suffixes[done]) = (as_length(shared)?, as_length(suffix.len())?);
            // As far as the next is compared with it.
            before = Some(&now[..now.len().min(SLICE_BYTES)]);
            bytes += now.len().min(SLICE_BYTES);
            done += 1;
        }
        if let Some(before) = before {
            self.last.clear();
            self.last.try_reserve(before.len()).map_err(|_| Error::out_of_memory(before.len()))?;
            self.last.extend_from_slice(before);
        }
        budget.charge(PREFIX_PRICE, bytes, done);
        self.prefixes.put_slice(&prefixes[..done])?;
        self.suffixes.put_slice(&suffixes[..done])?;
        Ok(done)
    }
}

/// Lengths are INT32 here.
fn as_length(length: usize) -> Result<i32> {
    let too_long =
        || Error::too_large("a byte string of 2 GiB or more, which this encoding has no length for");
    i32::try_from(length).map_err(|_| too_long())
}
