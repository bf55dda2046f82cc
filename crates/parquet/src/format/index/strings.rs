//! Byte strings of an index, where they are.

use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::{Budget, Bytes, Release, Segmented, release_all};

/// Byte strings, in the pieces of memory in which they arrived.
#[derive(Debug, Clone, Default)]
pub struct ByteStrings {
    /// Those pieces that have some, by their starts. A string is in the last piece that does not start after it.
    pieces: Segmented<Window>,
    /// Start and end of each.
    ranges: Segmented<(u32, u32)>,
}

/// Contiguous bytes of an index.
#[derive(Debug, Clone, Default)]
pub(super) struct Window {
    /// Where they start in the index, which is at most 4 GiB long.
    pub(super) start: u32,
    pub(super) bytes: Bytes,
}

/// Bytes of a piece, of strings that are copied. A longer string has its own.
const PIECE_BYTES: usize = 128 << 10;

/// Strings of such a piece.
const PIECE_STRINGS: usize = PIECE_BYTES / size_of::<usize>();

impl ByteStrings {
    /// How many.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns one of them; empty if `at` is beyond the end.
    pub fn get(&self, at: usize) -> &[u8] {
        self.find(at).unwrap_or_default()
    }

    fn find(&self, at: usize) -> Option<&[u8]> {
        let &(start, end) = self.ranges.get(at)?;
        let after = self.pieces.partition_point(|piece| piece.start <= start);
        let piece = self.pieces.get(after.checked_sub(1)?)?;
        let place = |at: u32| usize::try_from(at.checked_sub(piece.start)?).ok();
        piece.bytes.get(place(start)?..place(end)?)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|at| self.get(at))
    }

    /// Adds a string that follows the others: a range of a window. False beyond 4 GiB.
    pub(super) fn push(&mut self, window: &Window, range: Range<usize>) -> bool {
        let place = |at: usize| u32::try_from(at).ok()?.checked_add(window.start);
        let (Some(start), Some(end)) = (place(range.start), place(range.end)) else { return false };
        let is_new = |last: &Window| last.start < window.start || last.bytes.len() < window.bytes.len();
        if self.pieces.last().is_none_or(is_new) {
            self.pieces.push(window.clone());
        }
        self.ranges.push((start, end));
        true
    }
}

/// Strings after the first 4 GiB in total are left out.
impl<B: AsRef<[u8]>> FromIterator<B> for ByteStrings {
    fn from_iter<I: IntoIterator<Item = B>>(strings: I) -> ByteStrings {
        let (mut made, mut start) = (ByteStrings::default(), 0);
        let mut strings = strings.into_iter().peekable();
        while strings.peek().is_some() {
            let (mut bytes, mut ends) = (Vec::new(), Vec::new());
            let fits = |string: &B, bytes: &Vec<u8>, ends: &Vec<usize>| {
                let length = bytes.len() + string.as_ref().len();
                ends.len() < PIECE_STRINGS && (bytes.is_empty() || length <= PIECE_BYTES)
            };
            while let Some(string) = strings.next_if(|string| fits(string, &bytes, &ends)) {
                bytes.extend_from_slice(string.as_ref());
                ends.push(bytes.len());
            }
            let window = Window { start, bytes: bytes.into() };
            let mut before = 0;
            for end in ends {
                if !made.push(&window, before..end) {
                    return made;
                }
                before = end;
            }
            start = made.ranges.last().map_or(0, |(_, end)| *end);
        }
        made
    }
}

/// Equal if the strings are, wherever they are stored.
impl PartialEq for ByteStrings {
    fn eq(&self, other: &ByteStrings) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for ByteStrings {}

impl Release for ByteStrings {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.ranges, &mut self.pieces], budget)
    }
}

impl Release for Window {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.bytes.release(budget)
    }
}
