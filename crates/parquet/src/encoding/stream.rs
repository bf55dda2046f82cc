//! The bytes of a page, a chunk at a time.
//!
//! A page may be longer than what should be held in one piece. So a decoder reads a [`Stream`]: a *chunk*, a position
//! in it, and the length of what follows. A decoder consumes what the chunk has; if that is not enough, it says how
//! many bytes it needs in one piece: for a value, eight bit-packed numbers, a header. It never knows where they come
//! from: the decompressor, the input, or segments that are held because several streams of a page are read at once.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::{Budget, Bytes, Error, Release, Result, release_all};

use crate::growing::Joining;
use crate::memory::Memory;

/// Bytes that are available when a decoder is created, if the stream has that many: enough for any encoding's header.
pub(crate) const FIRST_BYTES: usize = 64;

/// Minimum bytes that are joined where a segment ends, if they follow: so small segments cost little each.
const JOINT_BYTES: usize = 4 << 10;

/// Bytes of a page, held in pieces.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    /// Where each starts, and its bytes; none is empty.
    parts: Vec<(usize, Bytes)>,
    length: usize,
}

impl Segments {
    /// Bytes in all.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Adds bytes at the end.
    pub(crate) fn push(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            let start = self.length;
            self.length += bytes.len();
            self.parts.push((start, bytes));
        }
    }

    /// A stream of all the bytes.
    pub(crate) fn into_stream(mut self) -> Stream {
        if self.parts.len() <= 1 {
            return self.parts.pop().map(|(_, bytes)| bytes).unwrap_or_default().into();
        }
        Stream { behind: self.length, rest: Rest::Held(self.length, Arc::new(self)), ..Stream::default() }
    }

    /// Bytes from `at` on, up to the end of the segment, at most `most`.
    fn segment(&self, at: usize, most: usize) -> Bytes {
        let behind = self.parts.partition_point(|(start, _)| *start <= at);
        match behind.checked_sub(1).and_then(|last| self.parts.get(last)) {
            Some((start, bytes)) if at - start < bytes.len() => {
                let skip = at - start;
                bytes.slice(skip..bytes.len().min(skip.saturating_add(most)))
            }
            _ => Bytes::new(),
        }
    }
}

impl Release for Segments {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let is_done = self.parts.release(budget);
        self.length = self.parts.last().map_or(0, |(start, bytes)| start + bytes.len());
        is_done
    }
}

/// A stream of bytes, of which a chunk is available.
#[derive(Debug, Clone, Default)]
pub(crate) struct Stream {
    chunk: Bytes,
    at: usize,
    /// Bytes that follow the chunk.
    behind: usize,
    /// Bytes at the end of the supplied ones that are not part of the stream.
    surplus: usize,
    /// Bytes from `at` on that are needed in one piece; 0 if none are.
    wanted: usize,
    rest: Rest,
    /// The next chunk, while it is joined from segments; and whether the chunk was.
    joint: Option<Box<Joining>>,
    is_joined: bool,
}

/// Where the bytes after the chunk are.
#[derive(Debug, Clone, Default)]
enum Rest {
    /// Not here yet: the page's reader supplies them.
    #[default]
    Coming,
    /// In segments; the stream ends at this position.
    Held(usize, Arc<Segments>),
}

impl Release for Stream {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        (self.at, self.behind) = (0, 0);
        let (mut none, chunk, joint) = ((), &mut self.chunk, &mut self.joint);
        let rest: &mut dyn Release = match &mut self.rest {
            Rest::Coming => &mut none,
            Rest::Held(_, segments) => segments,
        };
        release_all(&mut [chunk, joint, rest], budget)
    }
}

impl From<Bytes> for Stream {
    /// A stream of one chunk.
    fn from(chunk: Bytes) -> Stream {
        Stream { chunk, ..Stream::default() }
    }
}

impl Stream {
    /// A stream of `length` bytes, none of which has arrived.
    pub(crate) fn coming(length: usize) -> Stream {
        Stream { behind: length, ..Stream::default() }
    }

    /// The available bytes, from here on.
    #[inline]
    pub(crate) fn there(&self) -> &[u8] {
        &self.chunk[self.at..]
    }

    /// The chunk, and the place in it.
    #[inline]
    pub(crate) fn chunk(&self) -> (&Bytes, usize) {
        (&self.chunk, self.at)
    }

    /// Bytes left in all.
    #[inline]
    pub(crate) fn left(&self) -> usize {
        self.chunk.len() - self.at + self.behind
    }

    /// True if nothing follows the chunk.
    #[inline]
    pub(crate) fn is_last(&self) -> bool {
        self.behind == 0
    }

    /// True if the next `bytes` bytes are available, or all that are left. Otherwise they are requested.
    #[inline]
    pub(crate) fn has(&mut self, bytes: usize) -> bool {
        let there = self.behind == 0 || self.chunk.len() - self.at >= bytes;
        if !there {
            self.wanted = bytes;
        }
        there
    }

    /// True if requested bytes are not available.
    #[inline]
    pub(crate) fn is_starved(&self) -> bool {
        self.wanted > 0
    }

    /// Bytes requested in one piece, from here on; not more than are left.
    pub(crate) fn wanted(&self) -> usize {
        self.wanted.min(self.left())
    }

    /// True if the bytes after the chunk are held, so that [`Stream::gather`] finds them.
    pub(crate) fn is_held(&self) -> bool {
        matches!(self.rest, Rest::Held(..))
    }

    /// The segments that hold its bytes.
    pub(crate) fn segments(&self) -> Option<&Arc<Segments>> {
        match &self.rest {
            Rest::Held(_, segments) => Some(segments),
            Rest::Coming => None,
        }
    }

    /// Advances by `bytes`, which must be available.
    #[inline]
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.chunk.len());
    }

    /// Advances by `bytes`, in a stream that is held.
    ///
    /// # Errors
    ///
    /// When it has fewer.
    pub(crate) fn skip(&mut self, bytes: usize) -> Result<()> {
        let there = self.chunk.len() - self.at;
        if bytes <= there {
            self.at += bytes;
            return Ok(());
        }
        self.behind = self.behind.checked_sub(bytes - there).ok_or_else(super::too_few_values)?;
        self.at = self.chunk.len();
        Ok(())
    }

    /// Part of the rest of a stream that is held. Beyond the end it is empty.
    pub(crate) fn part(&self, start: usize, length: usize) -> Stream {
        let left = self.left();
        let (start, length) = (start.min(left), length.min(left - start.min(left)));
        let from = self.at + start;
        if from + length <= self.chunk.len() {
            return self.chunk.slice(from..from + length).into();
        }
        let rest = match &self.rest {
            Rest::Held(end, segments) => Rest::Held(end - (left - start - length), Arc::clone(segments)),
            Rest::Coming => Rest::Coming,
        };
        Stream { behind: length, rest, ..Stream::default() }
    }

    /// Looks ahead in a stream that is held: bytes from there on, up to the end of the segment, at most `most`.
    pub(crate) fn peek(&self, start: usize, most: usize) -> Bytes {
        let from = self.at + start;
        if from < self.chunk.len() {
            return self.chunk.slice(from..self.chunk.len().min(from.saturating_add(most)));
        }
        match &self.rest {
            Rest::Held(end, segments) => {
                let left = self.left().saturating_sub(start);
                segments.segment(end - left, most.min(left))
            }
            Rest::Coming => Bytes::new(),
        }
    }

    /// Ends the stream after `length` more bytes, in the chunk or not here yet.
    pub(crate) fn cut(&mut self, length: usize) {
        let (chunk, behind) = (core::mem::take(&mut self.chunk), self.behind + self.surplus);
        self.surplus += (chunk.len() - self.at + self.behind).saturating_sub(length);
        self.supply(chunk, self.at, behind);
    }

    /// Releases the chunk: the rest of it will be supplied again.
    pub(crate) fn rewind(&mut self) {
        self.behind = self.left();
        (self.chunk, self.at) = (Bytes::new(), 0);
    }

    /// Supplies a chunk. Its first `at` bytes have been consumed already, and `behind` bytes follow it.
    pub(crate) fn supply(&mut self, mut chunk: Bytes, at: usize, behind: usize) {
        let length = chunk.len() - self.surplus.saturating_sub(behind).min(chunk.len() - at);
        chunk.truncate(length);
        (self.chunk, self.at, self.behind) = (chunk, at, behind.saturating_sub(self.surplus));
        (self.wanted, self.is_joined) = (0, false);
    }

    /// Bytes held, beside what the input and segments hold: of a chunk that is in no segment.
    pub(crate) fn held(&self) -> usize {
        let chunk = if self.is_held() && !self.is_joined { 0 } else { self.chunk.len() };
        chunk + self.joint.as_ref().map_or(0, |joint| joint.allocated())
    }

    /// Joins the requested bytes from the segments. False if the budget is spent first.
    ///
    /// # Errors
    ///
    /// If the memory to join them is not admitted, or cannot be allocated.
    pub(crate) fn gather(&mut self, memory: &mut Memory, budget: &mut Budget<'_>) -> Result<bool> {
        let Rest::Held(end, segments) = &self.rest else {
            return Err(Error::internal("bytes that are not held"));
        };
        let left = self.left();
        let start = end - left;
        let wanted = self.wanted.min(left);
        if self.joint.is_none() {
            let piece = segments.segment(start, left);
            if piece.len() >= wanted {
                let behind = left - piece.len();
                self.supply(piece, 0, behind);
                return Ok(true);
            }
        }
        // The last chunk is not needed any more, and may be long, too.
        (self.chunk, self.at, self.behind) = (Bytes::new(), 0, left);
        let goal = left.min(wanted.max(JOINT_BYTES));
        let joint = self.joint.get_or_insert_with(|| Box::new(Joining::new(goal)));
        loop {
            // (Pieces are slices of segments, which are held anyway: copied is what takes memory.)
            if !joint.join(memory, budget)? {
                return Ok(false);
            }
            if joint.left() == 0 {
                break;
            }
            let piece = segments.segment(start + joint.len(), joint.left());
            if piece.is_empty() {
                return Err(Error::internal("a segment that is not there"));
            }
            joint.push(piece, budget);
            if budget.is_spent() {
                return Ok(false);
            }
        }
        let joint = self.joint.take().map(|joint| joint.finish()).unwrap_or_default();
        self.supply(joint, 0, left - goal);
        self.is_joined = true;
        Ok(true)
    }
}

/// For tests: a stream of the same bytes, held in segments of `length` bytes.
#[cfg(test)]
pub(crate) fn in_segments(bytes: &[u8], length: usize) -> Stream {
    let mut segments = Segments::default();
    bytes.chunks(length).for_each(|part| segments.push(Bytes::copy_from_slice(part)));
    segments.into_stream()
}

/// For tests: supplies what a stream requests, if anything.
#[cfg(test)]
pub(crate) fn feed(stream: &mut Stream) {
    while stream.is_starved() && !stream.gather(&mut Memory::unlimited(), &mut Budget::new(0)).unwrap() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_gives_all_its_bytes_whatever_the_segments() {
        let bytes: Vec<u8> = (0..20_000u32).map(|at| at.to_le_bytes()[0] ^ at.to_le_bytes()[1]).collect();
        for length in [1, 7, 100, 5000, 19_999, 20_000] {
            for need in [1, 3, 64, 4097, 30_000] {
                let mut stream = in_segments(&bytes, length);
                let mut all = Vec::new();
                while stream.left() > 0 {
                    while !stream.has(need) {
                        while !stream.gather(&mut Memory::unlimited(), &mut Budget::new(0)).unwrap() {}
                        assert!(!stream.is_starved());
                    }
                    let take = need.min(stream.left());
                    all.extend_from_slice(&stream.there()[..take]);
                    stream.advance(take);
                }
                assert_eq!(all, bytes, "segments of {length}, {need} at a time");
            }
        }
    }

    #[test]
    fn parts_and_places() {
        let bytes: Vec<u8> = (0..200).collect();
        let mut stream = in_segments(&bytes, 30);
        stream.skip(10).unwrap();
        assert!(!stream.has(5));
        feed(&mut stream);
        assert_eq!(&*stream.peek(35, 100), &bytes[45..60]);
        let mut part = stream.part(15, 40);
        assert_eq!(part.left(), 40);
        assert!(!part.has(40));
        feed(&mut part);
        assert_eq!(part.there(), &bytes[25..65]);
        assert_eq!(stream.part(185, 40).left(), 5);
        assert_eq!(stream.part(500, 40).left(), 0);
        stream.skip(190).unwrap();
        assert!(stream.skip(1).is_err());
    }

    #[test]
    fn a_stream_is_cut_wherever_its_chunks_end() {
        for length in 0..=10 {
            for chunk in 0..=10 {
                let mut stream = Stream::from(Bytes::from_static(b"0123456789").slice(..chunk));
                stream.behind = 10 - chunk;
                let taken = chunk.min(2).min(length);
                stream.advance(taken);
                stream.cut(length - taken);
                assert_eq!(stream.left(), length - taken, "{length} of a chunk of {chunk}");
                // The rest, or everything again.
                stream.supply(Bytes::from_static(b"0123456789"), taken, 0);
                assert_eq!(stream.there(), &b"0123456789"[taken..length]);
            }
        }
    }
}
