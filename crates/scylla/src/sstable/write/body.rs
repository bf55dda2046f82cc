//! The bytes of a row, before it is known how many they are.

use alloc::vec::Vec;

use marquetry_base::{Budget, Release};

use crate::sstable::vint;

/// Bytes of a segment: rows may be larger than hosts like allocations to be.
pub(super) const SEGMENT_BYTES: usize = 64 << 10;
/// The most bytes that are added in one piece, but for [`Body::push_part`].
const PIECE_BYTES: usize = 64;

/// Bytes in segments, which are kept for the next row.
#[derive(Debug, Default)]
pub(super) struct Body {
    segments: Vec<Vec<u8>>,
    /// The segment that is filled.
    last: usize,
    /// Bytes of the segments before it.
    full_bytes: usize,
}

impl Body {
    /// Empties it. Only the first segment's memory is kept.
    pub(super) fn clear(&mut self) {
        self.segments.truncate(1);
        if let Some(first) = self.segments.first_mut() {
            first.clear();
        }
        (self.last, self.full_bytes) = (0, 0);
    }

    /// The number of bytes.
    pub(super) fn len(&self) -> usize {
        self.full_bytes + self.segments.get(self.last).map_or(0, Vec::len)
    }

    /// Room for a few bytes.
    #[inline]
    fn room(&mut self) -> &mut Vec<u8> {
        self.room_for(PIECE_BYTES)
    }

    /// Where so many bytes, which are no more than a segment's, can be appended.
    #[inline]
    pub(super) fn room_for(&mut self, bytes: usize) -> &mut Vec<u8> {
        let is_full = self.segments.get(self.last).is_none_or(|last| last.len() + bytes > SEGMENT_BYTES);
        if is_full {
            self.begin_segment();
        }
        &mut self.segments[self.last]
    }

    #[cold]
    fn begin_segment(&mut self) {
        self.full_bytes = self.len();
        // The first one grows: most rows are short.
        self.segments.push(if self.segments.is_empty() {
            Vec::new()
        } else {
            Vec::with_capacity(SEGMENT_BYTES)
        });
        self.last = self.segments.len() - 1;
    }

    pub(super) fn push_unsigned(&mut self, number: u64) {
        vint::push_unsigned(self.room(), number);
    }

    /// Adds bytes, as many as fit the segment; returns the others.
    pub(super) fn push_part<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let room = self.room();
        let (part, rest) = bytes.split_at(bytes.len().min(SEGMENT_BYTES - room.len()));
        room.extend_from_slice(part);
        rest
    }

    /// Adds bytes that are mostly few.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = self.push_part(rest);
        }
    }

    /// All bytes, if they are in one segment.
    pub(super) fn only_segment(&self) -> Option<&[u8]> {
        if self.last == 0 { self.segment(0) } else { None }
    }

    /// A segment.
    pub(super) fn segment(&self, number: usize) -> Option<&[u8]> {
        self.segments.get(number).map(Vec::as_slice)
    }
}

impl Release for Body {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.segments.release(budget)
    }
}
