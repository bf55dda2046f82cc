//! DELTA_BINARY_PACKED: blocks of bit-packed differences.
//!
//! Source: `Encodings.md`, "Delta Encoding".

use marquetry_base::{Bytes, Error, Result};
use marquetry_kernels::delta;

use super::{too_few_values, varint, zigzag};

/// An integer that can be delta-encoded.
pub(crate) trait DeltaInteger: Copy + Default {
    /// The low bits of a number.
    fn from_i64(number: i64) -> Self;

    /// Decodes `out.len()` values of packed differences that start at `input`, each added to the smallest difference and
    /// to the value before, which is `last`.
    fn miniblock(width: u32, input: &[u8], min_delta: Self, last: &mut Self, out: &mut [Self]) -> bool;
}

impl DeltaInteger for i32 {
    #[expect(clippy::cast_possible_truncation, reason = "the encoding wraps around")]
    fn from_i64(number: i64) -> i32 {
        number as i32
    }

    fn miniblock(width: u32, input: &[u8], min_delta: i32, last: &mut i32, out: &mut [i32]) -> bool {
        if width <= i32::BITS {
            return delta::miniblock_i32(width, input, 0, min_delta, last, out).is_ok();
        }
        // DuckDB writes INT32 with differences of 64 bits. The sums wrap around, so their low bits are the values.
        let mut wide = [0i64; UNIT];
        for (unit, out) in out.chunks_mut(UNIT).enumerate() {
            let (wide, mut wide_last) = (&mut wide[..out.len()], i64::from(*last));
            let first = unit * UNIT;
            if delta::miniblock_i64(width, input, first, min_delta.into(), &mut wide_last, wide).is_err() {
                return false;
            }
            for (out, &wide) in out.iter_mut().zip(&*wide) {
                *out = i32::from_i64(wide);
            }
            *last = i32::from_i64(wide_last);
        }
        true
    }
}

impl DeltaInteger for i64 {
    fn from_i64(number: i64) -> i64 {
        number
    }

    fn miniblock(width: u32, input: &[u8], min_delta: i64, last: &mut i64, out: &mut [i64]) -> bool {
        delta::miniblock_i64(width, input, 0, min_delta, last, out).is_ok()
    }
}

/// The widest differences, in bits, whatever the type: see [`DeltaInteger::miniblock`] of `i32`.
const WIDTH_MAX: u32 = 64;

/// Values that are unpacked at a time. Miniblocks hold a multiple of it, so a unit starts at a byte of any width.
const UNIT: usize = 32;

/// A decoder of one delta-encoded stream.
#[derive(Debug, Clone)]
pub(crate) struct Delta<T> {
    bytes: Bytes,
    header: Header,
    /// Values not yet handed out, by the header's count.
    left: u64,
    /// Values not yet unpacked, the first included.
    unread: u64,
    last: T,
    min_delta: T,
    /// Where the next unit's packed differences start.
    at: usize,
    /// Where the current block's widths start, and the number of the current miniblock.
    widths: usize,
    miniblock: usize,
    /// Values of the current miniblock not yet unpacked.
    miniblock_left: usize,
    width: u32,
    /// A unit that was unpacked but not all handed out: `unit[unit_next..unit_end]`.
    unit: [T; UNIT],
    unit_next: usize,
    unit_end: usize,
}

/// A stream's header.
#[derive(Debug, Clone, Copy)]
struct Header {
    miniblocks: usize,
    miniblock_values: usize,
    values: u64,
    first: i64,
    /// Where the first block starts.
    end: usize,
}

impl Header {
    fn read(bytes: &[u8]) -> Result<Header> {
        let mut at = 0;
        let block_values = varint(bytes, &mut at)?;
        let miniblocks = varint(bytes, &mut at)?;
        let values = varint(bytes, &mut at)?;
        let first = zigzag(varint(bytes, &mut at)?);
        let fits = |number: u64| usize::try_from(number).ok().filter(|&number| number <= i32::MAX as usize);
        let (Some(block_values), Some(miniblocks)) = (fits(block_values), fits(miniblocks)) else {
            return Err(Error::corrupt("a delta block too large"));
        };
        if miniblocks == 0
            || block_values % miniblocks != 0
            || block_values / miniblocks % UNIT != 0
            || block_values == 0
        {
            return Err(Error::corrupt(alloc::format!(
                "a delta block of {block_values} values in {miniblocks} miniblocks"
            )));
        }
        Ok(Header { miniblocks, miniblock_values: block_values / miniblocks, values, first, end: at })
    }
}

impl<T: DeltaInteger> Delta<T> {
    /// A decoder of a stream at the start of `bytes`.
    pub(crate) fn new(bytes: Bytes) -> Result<Delta<T>> {
        let header = Header::read(&bytes)?;
        Ok(Delta {
            bytes,
            header,
            left: header.values,
            unread: header.values,
            last: T::from_i64(header.first),
            min_delta: T::default(),
            at: header.end,
            widths: 0,
            miniblock: header.miniblocks,
            miniblock_left: 0,
            width: 0,
            unit: [T::default(); UNIT],
            unit_next: 0,
            unit_end: 0,
        })
    }

    /// Values not yet decoded, by the header's count.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Decodes values.
    pub(crate) fn decode(&mut self, mut out: &mut [T]) -> Result<()> {
        if out.len() as u64 > self.left {
            return Err(too_few_values());
        }
        self.left -= out.len() as u64;
        if self.unread == self.header.values && !out.is_empty() {
            out[0] = self.last;
            self.unread -= 1;
            out = &mut out[1..];
        }
        while !out.is_empty() {
            if self.unit_next < self.unit_end {
                let take = out.len().min(self.unit_end - self.unit_next);
                out[..take].copy_from_slice(&self.unit[self.unit_next..self.unit_next + take]);
                self.unit_next += take;
                out = &mut out[take..];
                continue;
            }
            if self.miniblock_left == 0 {
                self.next_miniblock()?;
            }
            // Whole units go straight to the output; a part of one goes by the unit's own room.
            let there = self.miniblock_left.min(usize::try_from(self.unread).unwrap_or(usize::MAX));
            let whole = there.min(out.len()) / UNIT * UNIT;
            if whole > 0 {
                self.unpack_into(&mut out[..whole])?;
                out = &mut out[whole..];
            } else {
                let mut unit = self.unit;
                let values = there.min(UNIT);
                self.unpack_into(&mut unit[..values])?;
                (self.unit, self.unit_next, self.unit_end) = (unit, 0, values);
            }
        }
        Ok(())
    }

    fn unpack_into(&mut self, out: &mut [T]) -> Result<()> {
        let input = self.bytes.get(self.at..).unwrap_or(&[]);
        if !T::miniblock(self.width, input, self.min_delta, &mut self.last, out) {
            return Err(too_few_values());
        }
        // The last unit of a stream is padded to its full length, but some writers cut it off.
        self.at += out.len().div_ceil(UNIT) * UNIT / 8 * self.width as usize;
        self.miniblock_left -= out.len();
        self.unread -= out.len() as u64;
        Ok(())
    }

    fn next_miniblock(&mut self) -> Result<()> {
        if self.miniblock == self.header.miniblocks {
            if self.at >= self.bytes.len() {
                return Err(too_few_values());
            }
            self.min_delta = T::from_i64(zigzag(varint(&self.bytes, &mut self.at)?));
            self.widths = self.at;
            self.at = self.at.checked_add(self.header.miniblocks).ok_or_else(too_few_values)?;
            if self.at > self.bytes.len() {
                return Err(too_few_values());
            }
            self.miniblock = 0;
        }
        self.width = u32::from(self.bytes[self.widths + self.miniblock]);
        if self.width > WIDTH_MAX {
            return Err(Error::corrupt(alloc::format!("deltas of {} bits", self.width)));
        }
        self.miniblock += 1;
        self.miniblock_left = self.header.miniblock_values;
        Ok(())
    }
}

/// The length in bytes of the delta-encoded stream at the start of `bytes`: where what follows it starts.
pub(crate) fn stream_bytes(bytes: &[u8]) -> Result<usize> {
    let header = Header::read(bytes)?;
    let mut at = header.end;
    let mut left = header.values.saturating_sub(1);
    while left > 0 {
        varint(bytes, &mut at)?;
        let widths = bytes.get(at..at + header.miniblocks).ok_or_else(too_few_values)?;
        at += header.miniblocks;
        for &width in widths {
            // Miniblocks behind the last value have widths, but no bytes.
            if left == 0 {
                break;
            }
            if u32::from(width) > WIDTH_MAX {
                return Err(Error::corrupt(alloc::format!("deltas of {width} bits")));
            }
            at = at
                .checked_add(header.miniblock_values / 8 * usize::from(width))
                .filter(|&at| at <= bytes.len())
                .ok_or_else(too_few_values)?;
            left = left.saturating_sub(header.miniblock_values as u64);
        }
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    fn write_varint(out: &mut Vec<u8>, mut value: u64) {
        while value >= 0x80 {
            out.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        out.push(value.to_le_bytes()[0]);
    }

    /// A naive encoder, as the format's document describes it.
    fn encode(values: &[i64], block: usize, miniblocks: usize) -> Vec<u8> {
        let zigzag = |value: i64| ((value << 1) ^ (value >> 63)).cast_unsigned();
        let mut out = Vec::new();
        write_varint(&mut out, block as u64);
        write_varint(&mut out, miniblocks as u64);
        write_varint(&mut out, values.len() as u64);
        write_varint(&mut out, zigzag(values.first().copied().unwrap_or(0)));
        let deltas: Vec<i64> = values.windows(2).map(|pair| pair[1].wrapping_sub(pair[0])).collect();
        for deltas in deltas.chunks(block) {
            let min = *deltas.iter().min().unwrap();
            write_varint(&mut out, zigzag(min));
            let packed: Vec<u64> =
                deltas.iter().map(|delta| delta.wrapping_sub(min).cast_unsigned()).collect();
            let minis: Vec<&[u64]> = packed.chunks(block / miniblocks).collect();
            let width = |mini: &&[u64]| 64 - mini.iter().fold(0, |all, value| all | value).leading_zeros();
            for at in 0..miniblocks {
                out.push(u8::try_from(minis.get(at).map_or(0, width)).unwrap());
            }
            for mini in &minis {
                let width = width(mini) as usize;
                let start = out.len();
                out.resize(start + block / miniblocks * width / 8, 0);
                for (number, value) in mini.iter().enumerate() {
                    for bit in 0..width {
                        let at = number * width + bit;
                        out[start + at / 8] |= u8::from(value >> bit & 1 == 1) << (at % 8);
                    }
                }
            }
        }
        out
    }

    fn samples() -> Vec<Vec<i64>> {
        let mut state = 88172645463325252u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.cast_signed()
        };
        let mut samples = vec![vec![], vec![7], vec![i64::MIN, i64::MAX, 0, -1], (0..1000).collect()];
        for shift in [1, 20, 40, 60] {
            samples.push((0..777).map(|_| random() >> shift).collect());
        }
        samples
    }

    #[test]
    fn any_blocks_in_any_slices() {
        for values in samples() {
            for (block, miniblocks) in [(128, 4), (128, 1), (256, 8), (1024, 2)] {
                let mut bytes = encode(&values, block, miniblocks);
                let length = bytes.len();
                assert_eq!(stream_bytes(&bytes).unwrap(), length);
                bytes.extend([0xab; 9]);
                assert_eq!(stream_bytes(&bytes).unwrap(), length);
                for slice in [1, 3, 31, 32, 33, 64, 100, 1000] {
                    let mut delta = Delta::<i64>::new(bytes.clone().into()).unwrap();
                    let mut out = vec![0; values.len()];
                    out.chunks_mut(slice).for_each(|out| delta.decode(out).unwrap());
                    assert_eq!(out, values, "{block} / {miniblocks}, slices of {slice}");
                    assert!(delta.decode(&mut [0]).is_err());
                }
            }
        }
    }

    #[test]
    fn every_truncation_ends_in_an_error() {
        let values: Vec<i64> = (0..300).map(|i| i * i).collect();
        let bytes = encode(&values, 128, 4);
        for cut in 0..bytes.len() {
            let whole = Delta::<i64>::new(bytes[..cut].to_vec().into())
                .and_then(|mut delta| delta.decode(&mut [0; 300]));
            // The padding of the last miniblock is not needed.
            assert!(whole.is_err() || cut > bytes.len() - 60, "cut at {cut}");
            assert!(stream_bytes(&bytes[..cut]).is_err());
        }
    }

    #[test]
    fn headers_that_cannot_be() {
        for (block, miniblocks) in [(0, 4), (128, 0), (100, 4), (128, 3), (128, 8), (1 << 40, 4)] {
            let mut bytes = Vec::new();
            write_varint(&mut bytes, block);
            write_varint(&mut bytes, miniblocks);
            bytes.extend([2, 0, 0, 0, 0, 0, 0]);
            assert!(Delta::<i32>::new(bytes.into()).is_err(), "{block} / {miniblocks}");
        }
    }
}
