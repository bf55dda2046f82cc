//! The beginning of a page: its levels are taken out, and what must be held is held.

use marquetry_base::{Budget, Error, Release, Result, release_all};

use crate::encoding::stream::{FIRST_BYTES, Segments, Stream};
use crate::format::PageKind;

/// Bytes in one piece that are asked for while a page is taken into segments: small pieces are joined.
const SEGMENT_BYTES_MIN: usize = 16 << 10;

/// What a page has of one kind of levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Nothing.
    Absent,
    /// Bytes with their number (`u32`, little-endian) before them.
    Prefixed,
    /// So many bytes.
    Bytes(usize),
}

/// A page that is being opened. Levels and values are read at the same time, but levels stand before the values: so they
/// are held, in segments; and so is the whole page if its values are several streams.
pub(super) struct Opening {
    pub(super) kind: PageKind,
    body: Stream,
    /// What is left to be taken out: repetition levels, then definition levels.
    parts: [Part; 2],
    levels: [Stream; 2],
    taken: Segments,
    /// Whether the values are held, and whether they are.
    holds_values: bool,
    is_held: bool,
    held: usize,
}

/// A page that is open.
pub(super) struct Opened {
    pub(super) kind: PageKind,
    /// Repetition levels and definition levels.
    pub(super) levels: [Stream; 2],
    pub(super) values: Stream,
    /// Bytes held of it in segments.
    pub(super) held: usize,
}

impl Release for Opening {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.body, &mut self.levels, &mut self.taken], budget)
    }
}

impl Opening {
    /// Of a page whose levels are `parts`; `holds_values` if its values are to be held too.
    pub(super) fn new(kind: PageKind, body: Stream, parts: [Part; 2], holds_values: bool) -> Opening {
        let (levels, taken) = (Default::default(), Segments::default());
        Opening { kind, body, parts, levels, taken, holds_values, is_held: false, held: 0 }
    }

    /// The stream that is being taken apart, which may want bytes.
    pub(super) fn body(&mut self) -> &mut Stream {
        &mut self.body
    }

    /// Whether nothing of the page's body is wanted any more once it is open.
    pub(super) fn holds_values(&self) -> bool {
        self.holds_values
    }

    /// Bytes held.
    pub(super) fn held(&self) -> usize {
        self.held + self.taken.len() + self.body.there().len()
    }

    /// Goes on; false when the body wants bytes first.
    pub(super) fn step(&mut self) -> Result<bool> {
        for number in 0..self.parts.len() {
            if self.parts[number] == Part::Prefixed {
                if !self.body.has(4) {
                    return Ok(false);
                }
                let length = self.body.there().first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
                let length =
                    length.ok_or_else(|| Error::corrupt("the page ends in the middle of a length"))?;
                self.body.advance(4);
                let (length, left) = (length as usize, self.body.left());
                if length > left {
                    return Err(Error::corrupt(alloc::format!(
                        "runs of {length} bytes in a page with {left} left"
                    )));
                }
                self.parts[number] = Part::Bytes(length);
            }
            if let Part::Bytes(bytes) = self.parts[number] {
                if bytes.saturating_sub(self.taken.len()) > self.body.left() {
                    return Err(Error::corrupt("the page ends before its last level"));
                }
                if !self.take(bytes) {
                    return Ok(false);
                }
                self.levels[number] = core::mem::take(&mut self.taken).into_stream();
                self.held += bytes;
                self.parts[number] = Part::Absent;
            }
        }
        if self.holds_values && !self.is_held {
            let all = self.taken.len() + self.body.left();
            if !self.take(all) {
                return Ok(false);
            }
            self.body = core::mem::take(&mut self.taken).into_stream();
            self.held += all;
            self.is_held = true;
        }
        // Whatever decodes the values may look at their first bytes.
        Ok(self.body.has(FIRST_BYTES))
    }

    /// Takes bytes until there are `all`; false when some are missing.
    fn take(&mut self, all: usize) -> bool {
        while self.taken.len() < all {
            let left = all - self.taken.len();
            if self.body.there().is_empty() && !self.body.has(left.min(SEGMENT_BYTES_MIN)) {
                return false;
            }
            let piece = self.body.peek(0, left);
            self.body.advance(piece.len());
            self.taken.push(piece);
        }
        true
    }

    /// The page, once `step` has said that it is open.
    pub(super) fn finish(self) -> Opened {
        Opened { kind: self.kind, levels: self.levels, values: self.body, held: self.held }
    }
}
