//! BYTE_STREAM_SPLIT: the first bytes of all values, then the second bytes, and so on.
//!
//! Source: `Encodings.md`, "Byte Stream Split".

pub(crate) mod encode;

use alloc::vec::Vec;

use marquetry_base::{Error, Result};
use marquetry_kernels::bss;

use super::stream::Stream;
use super::too_few_values;
use crate::growing::SLICE_BYTES;

/// Bytes of values that are gathered from segments at a time.
const SCRATCH_BYTES: usize = 16 << 10;
/// Streams of a value that are looked up at a time, if each may be anywhere in segments or in a large page.
const STREAMS_AT_ONCE: usize = 512;
/// The cost of looking up where a stream goes on, in bytes that could be copied instead.
const LOOK_UP_BYTES: usize = 256;

/// A decoder of values of one width. The complete page must be held, because its streams follow one another.
#[derive(Debug, Clone)]
pub(crate) struct ByteStreamSplit {
    page: Stream,
    width: usize,
    values: usize,
    next: usize,
    /// Room for a piece of each stream, one after the other, if the page is in segments.
    scratch: Vec<u8>,
    /// What was looked up since that was last asked.
    looked_up: usize,
}

impl ByteStreamSplit {
    /// A decoder of the streams that `page` is.
    pub(crate) fn new(page: Stream, width: usize) -> Result<ByteStreamSplit> {
        let bytes = page.left();
        // Values of no bytes are as many as are asked for.
        let values = bytes.checked_div(width).unwrap_or(usize::MAX);
        if values * width != bytes {
            return Err(Error::corrupt(alloc::format!(
                "{bytes} bytes are no {width} streams of equal length"
            )));
        }
        Ok(ByteStreamSplit { page, width, values, next: 0, scratch: Vec::new(), looked_up: 0 })
    }

    /// An error unless `count` values are left: checked before wide ones are allocated.
    pub(crate) fn check_left(&self, count: usize) -> Result<()> {
        if count <= self.values - self.next { Ok(()) } else { Err(too_few_values()) }
    }

    /// Steps over values.
    pub(crate) fn skip(&mut self, count: usize) -> Result<()> {
        self.check_left(count)?;
        self.next += count;
        Ok(())
    }

    /// True if a value has so many streams that they are taken a few at a time, by [`Self::decode_bytes`].
    pub(crate) fn is_wide(&self) -> bool {
        self.width > if self.page.is_last() { SLICE_BYTES } else { STREAMS_AT_ONCE }
    }

    /// Decodes as many values as `out` has room for, in the form of PLAIN; from segments, some of them.
    pub(crate) fn decode(&mut self, out: &mut [u8]) -> Result<usize> {
        if self.width == 0 {
            return if out.is_empty() { Ok(0) } else { Err(too_few_values()) };
        }
        let mut wanted = out.len() / self.width;
        if wanted > self.values - self.next {
            return Err(too_few_values());
        }
        let refused = |_| Error::internal("streams of a checked length were refused");
        if self.page.is_last() {
            bss::decode(self.width, self.page.there(), self.values, self.next, out).map_err(refused)?;
        } else {
            wanted = wanted.min((SCRATCH_BYTES / self.width).max(1));
            self.scratch.clear();
            for stream in 0..self.width {
                let (mut at, end) = (stream * self.values + self.next, (stream * wanted) + wanted);
                while self.scratch.len() < end {
                    let piece = self.page.peek(at, end - self.scratch.len());
                    if piece.is_empty() {
                        return Err(Error::internal("a segment that is not there"));
                    }
                    at += piece.len();
                    self.looked_up += 1;
                    self.scratch.extend_from_slice(&piece);
                }
            }
            bss::decode(self.width, &self.scratch, wanted, 0, &mut out[..wanted * self.width])
                .map_err(refused)?;
        }
        self.next += wanted;
        Ok(wanted)
    }

    /// What looking up streams has cost since this was last asked, in bytes that could be copied instead.
    pub(crate) fn take_looked_up(&mut self) -> usize {
        core::mem::take(&mut self.looked_up) * LOOK_UP_BYTES
    }

    /// Decodes bytes of one wide value, starting with byte `first`, some at a time. Returns how many, and what they
    /// cost in bytes that are copied. The last byte completes the value.
    pub(crate) fn decode_bytes(&mut self, first: usize, out: &mut [u8]) -> Result<(usize, usize)> {
        self.check_left(1)?;
        let bytes = out.len().min(STREAMS_AT_ONCE);
        for (stream, out) in (first..).zip(&mut out[..bytes]) {
            let piece = self.page.peek(stream * self.values + self.next, 1);
            *out = *piece.first().ok_or_else(|| Error::internal("a segment that is not there"))?;
        }
        let is_whole = first + bytes == self.width;
        self.next += usize::from(is_whole);
        Ok((bytes, bytes * LOOK_UP_BYTES))
    }
}

#[cfg(test)]
mod tests {
    use super::super::stream::in_segments;
    use super::*;

    #[test]
    fn segments_of_any_length() {
        for (width, count) in [(1, 100), (4, 1000), (8, 3000), (12, 77), (600, 5)] {
            let values: Vec<u8> =
                (0..width * count).map(|at: usize| (at * 31 % 251).to_le_bytes()[0]).collect();
            let page: Vec<u8> =
                (0..width).flat_map(|stream| values.iter().skip(stream).step_by(width).copied()).collect();
            for segment in [1, 13, 1000, page.len()] {
                let mut split = ByteStreamSplit::new(in_segments(&page, segment), width).unwrap();
                let (mut out, mut done) = (alloc::vec![0; page.len()], 0);
                while done < page.len() {
                    let slice = (done + 64 * width).min(page.len());
                    done += split.decode(&mut out[done..slice]).unwrap() * width;
                }
                assert_eq!(out, values, "{count} values of {width} in segments of {segment}");
                assert!(split.decode(&mut out[..width]).is_err());

                let mut split = ByteStreamSplit::new(in_segments(&page, segment), width).unwrap();
                let (mut out, mut done) = (alloc::vec![0; page.len()], 0);
                while done < page.len() {
                    let (value, first) = (done / width, done % width);
                    let room = &mut out[done..(value + 1) * width];
                    done += split.decode_bytes(first, room).unwrap().0;
                }
                assert_eq!(out, values);
            }
        }
    }
}
