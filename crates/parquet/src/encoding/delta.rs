//! DELTA_BINARY_PACKED: blocks of bit-packed differences.
//!
//! Source: `Encodings.md`, "Delta Encoding".

pub(crate) mod encode;

use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::{Error, Result};
use marquetry_kernels::delta;

use super::stream::{FIRST_BYTES, Stream};
use super::{VARINT_BYTES_MAX, too_few_values, varint, zigzag};

/// An integer that can be delta-encoded.
pub(crate) trait DeltaInteger: Copy + Default {
    /// The low bits of a number.
    fn from_i64(number: i64) -> Self;

    /// Decodes `out.len()` values of bit-packed differences that start at `input`. Each is added to the smallest
    /// difference and to the previous value, which is `last` at first.
    fn miniblock(width: u32, input: &[u8], min_delta: Self, last: &mut Self, out: &mut [Self]) -> bool;

    /// Decodes a block's miniblocks, which start at `input` and have `values` values each. Returns their bytes. `None`
    /// if they are incomplete, or one of them is wider than values are.
    fn block(
        widths: &[u8],
        values: usize,
        input: &[u8],
        min_delta: Self,
        last: &mut Self,
        out: &mut [Self],
    ) -> Option<usize>;
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

    fn block(
        widths: &[u8],
        values: usize,
        input: &[u8],
        min_delta: i32,
        last: &mut i32,
        out: &mut [i32],
    ) -> Option<usize> {
        delta::block_i32(widths, values, input, min_delta, last, out).ok()
    }
}

impl DeltaInteger for i64 {
    fn from_i64(number: i64) -> i64 {
        number
    }

    fn miniblock(width: u32, input: &[u8], min_delta: i64, last: &mut i64, out: &mut [i64]) -> bool {
        delta::miniblock_i64(width, input, 0, min_delta, last, out).is_ok()
    }

    fn block(
        widths: &[u8],
        values: usize,
        input: &[u8],
        min_delta: i64,
        last: &mut i64,
        out: &mut [i64],
    ) -> Option<usize> {
        delta::block_i64(widths, values, input, min_delta, last, out).ok()
    }
}

/// The widest differences, in bits, whatever the type: see [`DeltaInteger::miniblock`] of `i32`.
const WIDTH_MAX: u8 = 64;

/// Values that are unpacked at a time. Miniblocks hold a multiple of it, so a unit starts at a byte of any width.
const UNIT: usize = 32;

/// Miniblocks per block whose widths a decoder keeps without allocating; all known writers have fewer.
const WIDTHS_KEPT: usize = 32;

/// Maximum miniblocks of a block. A block's widths are read in one piece; writers have four, or a few more.
const MINIBLOCKS_MAX: usize = 1 << 14;

/// A decoder of one delta-encoded stream.
#[derive(Debug, Clone)]
pub(crate) struct Delta<T> {
    stream: Stream,
    header: Header,
    /// Values not yet returned, by the header's count.
    left: u64,
    /// Values not yet unpacked, the first included.
    unread: u64,
    last: T,
    min_delta: T,
    /// The widths of the current block's miniblocks, in one of two places, and the index of the current miniblock.
    widths: [u8; WIDTHS_KEPT],
    widths_many: Vec<u8>,
    miniblock: usize,
    /// Values of the current miniblock not yet unpacked.
    miniblock_left: usize,
    width: u32,
    /// A unit that was unpacked but not completely returned: `unit[unit_next..unit_end]`.
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
}

// A header is available when a decoder is created.
const _: () = assert!(4 * VARINT_BYTES_MAX <= FIRST_BYTES);

impl Header {
    fn read(stream: &mut Stream) -> Result<Header> {
        let bytes = stream.there();
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
        if miniblocks > stream.left() - at && values > 1 {
            return Err(too_few_values());
        }
        if miniblocks > MINIBLOCKS_MAX {
            return Err(Error::unsupported(alloc::format!("delta blocks of {miniblocks} miniblocks")));
        }
        stream.advance(at);
        Ok(Header { miniblocks, miniblock_values: block_values / miniblocks, values, first })
    }

    /// Reads a block's smallest difference; also returns the range of the widths that follow it, from here on. `None`
    /// if the stream needs bytes first.
    fn block(&self, stream: &mut Stream) -> Result<Option<(i64, Range<usize>)>> {
        if stream.left() == 0 {
            return Err(too_few_values());
        }
        if !stream.has(VARINT_BYTES_MAX) {
            return Ok(None);
        }
        let mut at = 0;
        let min_delta = zigzag(varint(stream.there(), &mut at)?);
        let widths = at..at + self.miniblocks;
        if widths.end > stream.left() {
            return Err(too_few_values());
        }
        Ok(stream.has(widths.end).then_some((min_delta, widths)))
    }
}

impl<T: DeltaInteger> Delta<T> {
    /// A decoder of `stream`.
    pub(crate) fn new(mut stream: Stream) -> Result<Delta<T>> {
        let header = Header::read(&mut stream)?;
        Ok(Delta {
            stream,
            header,
            left: header.values,
            unread: header.values,
            last: T::from_i64(header.first),
            min_delta: T::default(),
            widths: [0; WIDTHS_KEPT],
            widths_many: Vec::new(),
            miniblock: header.miniblocks,
            miniblock_left: 0,
            width: 0,
            unit: [T::default(); UNIT],
            unit_next: 0,
            unit_end: 0,
        })
    }

    /// The stream that it reads.
    pub(crate) fn stream(&mut self) -> &mut Stream {
        &mut self.stream
    }

    /// The same, to look at.
    pub(crate) fn peek_stream(&self) -> &Stream {
        &self.stream
    }

    /// Values not yet decoded, by the header's count.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Decodes values, as many as have arrived.
    pub(crate) fn decode(&mut self, out: &mut [T]) -> Result<usize> {
        if out.len() as u64 > self.left {
            return Err(too_few_values());
        }
        let done = self.decode_there(out)?;
        self.left -= done as u64;
        Ok(done)
    }

    fn decode_there(&mut self, out: &mut [T]) -> Result<usize> {
        let mut done = 0;
        if self.unread == self.header.values && !out.is_empty() {
            out[0] = self.last;
            self.unread -= 1;
            done = 1;
        }
        while done < out.len() {
            let out = &mut out[done..];
            if self.unit_next < self.unit_end {
                let take = out.len().min(self.unit_end - self.unit_next);
                out[..take].copy_from_slice(&self.unit[self.unit_next..self.unit_next + take]);
                self.unit_next += take;
                done += take;
                continue;
            }
            if self.miniblock_left == 0 {
                let blocks = self.whole_blocks(out)?;
                if blocks > 0 {
                    done += blocks;
                    continue;
                }
                if !self.next_miniblock()? {
                    break;
                }
            }
            // Complete units go straight to the output; part of one goes through the unit's own memory.
            let left = self.miniblock_left.min(usize::try_from(self.unread).unwrap_or(usize::MAX));
            let there = self.there(left);
            if there == 0 {
                break;
            }
            let whole = there.min(out.len()) / UNIT * UNIT;
            if whole > 0 {
                self.unpack_into(&mut out[..whole])?;
                done += whole;
            } else {
                let mut unit = self.unit;
                let values = there.min(UNIT);
                self.unpack_into(&mut unit[..values])?;
                (self.unit, self.unit_next, self.unit_end) = (unit, 0, values);
            }
        }
        Ok(done)
    }

    /// Decodes the following blocks while they are completely available and needed, without tracking each miniblock.
    /// Anything unusual is left to the caller.
    fn whole_blocks(&mut self, out: &mut [T]) -> Result<usize> {
        let Header { miniblocks, miniblock_values, .. } = self.header;
        if self.miniblock != miniblocks || miniblocks > WIDTHS_KEPT {
            return Ok(0);
        }
        let wanted = out.len().min(usize::try_from(self.unread).unwrap_or(usize::MAX));
        let (there, mut at, mut done) = (self.stream.there(), 0, 0);
        for out in out[..wanted].chunks_exact_mut(miniblocks * miniblock_values) {
            let mut next = at;
            let Some(begin) = there.get(at..).filter(|there| there.len() >= VARINT_BYTES_MAX) else { break };
            let min_delta = match begin[0] {
                short @ ..0x80 => {
                    next += 1;
                    zigzag(short.into())
                }
                _ => zigzag(varint(there, &mut next)?),
            };
            let Some(widths) = there.get(next..next + miniblocks) else { break };
            next += miniblocks;
            let (input, min_delta) = (&there[next..], T::from_i64(min_delta));
            let Some(bytes) = T::block(widths, miniblock_values, input, min_delta, &mut self.last, out)
            else {
                break;
            };
            next += bytes;
            at = next;
            done += out.len();
        }
        self.stream.advance(at);
        self.unread -= done as u64;
        Ok(done)
    }

    /// How many of the `left` values of a miniblock have their bytes available; none if the stream needs some first.
    #[inline]
    fn there(&mut self, left: usize) -> usize {
        let unit_bytes = UNIT / 8 * self.width as usize;
        let there = self.stream.there().len();
        // The last unit of a stream is padded to its full length, but some writers cut it off.
        if self.stream.is_last() || there >= left.div_ceil(UNIT).saturating_mul(unit_bytes) {
            return left;
        }
        self.stream.has(unit_bytes);
        there / unit_bytes * UNIT
    }

    fn unpack_into(&mut self, out: &mut [T]) -> Result<()> {
        if !T::miniblock(self.width, self.stream.there(), self.min_delta, &mut self.last, out) {
            return Err(too_few_values());
        }
        self.stream.advance(out.len().div_ceil(UNIT) * UNIT / 8 * self.width as usize);
        self.miniblock_left -= out.len();
        self.unread -= out.len() as u64;
        Ok(())
    }

    /// Begins the next miniblock. False if the stream needs bytes first.
    fn next_miniblock(&mut self) -> Result<bool> {
        if self.miniblock == self.header.miniblocks {
            let Some((min_delta, widths)) = self.header.block(&mut self.stream)? else { return Ok(false) };
            self.min_delta = T::from_i64(min_delta);
            let end = widths.end;
            let there = &self.stream.there()[widths.start..];
            let found = &there[..widths.len()];
            match (self.widths.get_mut(..found.len()), there.first_chunk()) {
                // A constant length, which is faster.
                (Some(_), Some(some)) => self.widths = *some,
                (Some(kept), None) => kept.copy_from_slice(found),
                (None, _) => {
                    self.widths_many.clear();
                    self.widths_many
                        .try_reserve_exact(found.len())
                        .map_err(|_| Error::out_of_memory(found.len()))?;
                    self.widths_many.extend_from_slice(found);
                }
            }
            self.stream.advance(end);
            self.miniblock = 0;
        }
        let widths = if self.header.miniblocks <= WIDTHS_KEPT { &self.widths[..] } else { &self.widths_many };
        let width = widths[self.miniblock];
        if width > WIDTH_MAX {
            return Err(Error::corrupt(alloc::format!("deltas of {width} bits")));
        }
        self.width = width.into();
        self.miniblock += 1;
        self.miniblock_left = self.header.miniblock_values;
        Ok(true)
    }
}

/// Looks for the end of a delta-encoded stream, which another one follows. The stream must be held.
#[derive(Debug)]
pub(crate) struct StreamEnd {
    stream: Stream,
    bytes: usize,
    header: Header,
    left: u64,
}

/// Blocks that are stepped over at a time.
const BLOCKS_AT_ONCE: usize = 1024;

impl StreamEnd {
    /// Begins with a stream's first byte, but consumes nothing of the stream itself.
    pub(crate) fn new(stream: &Stream) -> Result<StreamEnd> {
        let mut stream = stream.clone();
        let bytes = stream.left();
        let header = Header::read(&mut stream)?;
        Ok(StreamEnd { stream, bytes, header, left: header.values.saturating_sub(1) })
    }

    /// The stream that is looked through.
    pub(crate) fn stream(&mut self) -> &mut Stream {
        &mut self.stream
    }

    /// Continues. Returns the length in bytes, once known. `None` if the stream needs bytes first, and after a slice's
    /// work. Adds the blocks stepped over to `work`; many miniblocks count as a block.
    pub(crate) fn step(&mut self, work: &mut usize) -> Result<Option<usize>> {
        while self.left > 0 {
            if *work >= BLOCKS_AT_ONCE {
                return Ok(None);
            }
            let Some((_, widths)) = self.header.block(&mut self.stream)? else { return Ok(None) };
            let mut bytes = widths.end;
            let widths = &self.stream.there()[widths];
            *work += 1 + widths.len() / 8;
            for &width in widths {
                // Miniblocks after the last value have widths, but no bytes.
                if self.left == 0 {
                    break;
                }
                if width > WIDTH_MAX {
                    return Err(Error::corrupt(alloc::format!("deltas of {width} bits")));
                }
                bytes = self
                    .header
                    .miniblock_values
                    .checked_mul(usize::from(width))
                    .and_then(|bits| bytes.checked_add(bits / 8))
                    .ok_or_else(too_few_values)?;
                self.left = self.left.saturating_sub(self.header.miniblock_values as u64);
            }
            self.stream.skip(bytes)?;
        }
        Ok(Some(self.bytes - self.stream.left()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::stream::{feed, in_segments};
    use super::*;
    use alloc::vec;
    use marquetry_base::Bytes;

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

    fn stream_bytes(stream: Stream) -> Result<usize> {
        let mut end = StreamEnd::new(&stream)?;
        loop {
            if let Some(bytes) = end.step(&mut 0)? {
                return Ok(bytes);
            }
            feed(end.stream());
        }
    }

    fn whole(bytes: &[u8]) -> Stream {
        Bytes::copy_from_slice(bytes).into()
    }

    #[test]
    fn any_blocks_in_any_slices() {
        for values in samples() {
            for (block, miniblocks) in [(128, 4), (128, 1), (256, 8), (1024, 2)] {
                let mut bytes = encode(&values, block, miniblocks);
                let length = bytes.len();
                assert_eq!(stream_bytes(whole(&bytes)).unwrap(), length);
                bytes.extend([0xab; 9]);
                assert_eq!(stream_bytes(whole(&bytes)).unwrap(), length);
                for segment in [FIRST_BYTES, 100, 300, 100_000] {
                    assert_eq!(stream_bytes(first_there(&bytes, segment)).unwrap(), length);
                    for slice in [1, 3, 31, 32, 33, 64, 100, 1000] {
                        let mut delta = Delta::<i64>::new(first_there(&bytes, segment)).unwrap();
                        let mut out = vec![0; values.len()];
                        for mut out in out.chunks_mut(slice) {
                            while !out.is_empty() {
                                let done = delta.decode(out).unwrap();
                                feed(delta.stream());
                                out = &mut out[done..];
                            }
                        }
                        assert_eq!(out, values, "{block} / {miniblocks}, slices of {slice}");
                        assert!(delta.decode(&mut [0]).is_err());
                    }
                }
            }
        }
    }

    /// In segments, the first of which is available unchanged when a decoder is created.
    fn first_there(bytes: &[u8], segment: usize) -> Stream {
        let mut stream = in_segments(bytes, segment);
        stream.has(FIRST_BYTES);
        feed(&mut stream);
        stream
    }

    #[test]
    fn every_truncation_ends_in_an_error() {
        let values: Vec<i64> = (0..300).map(|i| i * i).collect();
        let bytes = encode(&values, 128, 4);
        for cut in 0..bytes.len() {
            let decoded =
                Delta::<i64>::new(whole(&bytes[..cut])).and_then(|mut delta| delta.decode(&mut [0; 300]));
            // The padding of the last miniblock is not needed.
            assert!(decoded.is_err() || cut > bytes.len() - 60, "cut at {cut}");
            assert!(stream_bytes(whole(&bytes[..cut])).is_err());
        }
    }

    #[test]
    fn a_block_of_many_miniblocks() {
        let values: Vec<i64> = (0..5000).map(|i| i * i % 1000).collect();
        let bytes = encode(&values, 32 * 64, 64);
        let mut delta = Delta::<i64>::new(first_there(&bytes, 70)).unwrap();
        let (mut out, mut done) = (vec![0; 5000], 0);
        while done < 5000 {
            done += delta.decode(&mut out[done..]).unwrap();
            feed(delta.stream());
        }
        assert_eq!(out, values);
    }

    #[test]
    fn headers_that_cannot_be() {
        for (block, miniblocks) in [(0, 4), (128, 0), (100, 4), (128, 3), (128, 8), (1 << 40, 4)] {
            let mut bytes = Vec::new();
            write_varint(&mut bytes, block);
            write_varint(&mut bytes, miniblocks);
            bytes.extend([2, 0, 0, 0, 0, 0, 0]);
            assert!(Delta::<i32>::new(whole(&bytes)).is_err(), "{block} / {miniblocks}");
        }
    }
}
