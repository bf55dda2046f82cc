//! Bits that are read backwards, from the end of a stream. RFC 8878, section 4.1.

use core::ops::Range;

use marquetry_base::cast::{low_u32, usize_of_u32};

/// Bytes that a buffer has before its first stream: so the reader never looks before the buffer, and a stream that is
/// read too far is noticed afterwards.
pub(super) const MARGIN: usize = 16;

/// Bits that may be read beyond a stream before that is noticed: three states of a table at most, and then a sequence's
/// numbers and its next states (47 and 42). Symbols of a tree are at most four times 12.
const BEYOND_MAX: usize = 26 + 47 + 42;
const _: () = assert!(BEYOND_MAX <= 8 * MARGIN);

/// A stream within a buffer, as far as it is not read.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Backward {
    /// The number of bits in the buffer before the stream's first.
    start: usize,
    /// The same, up to the next bit and with it.
    end: usize,
}

impl Backward {
    /// The stream in this range of the buffer. Its last byte has a mark above its last bit: `None` if not.
    pub(super) fn new(buffer: &[u8], range: Range<usize>) -> Option<Backward> {
        let start = 8 * range.start;
        let last = buffer.get(range.clone())?.last()?;
        let mark = last.checked_ilog2()?;
        Some(Backward { start, end: 8 * (range.end - 1) + usize_of_u32(mark) })
    }

    /// The next bits, the first of them highest: 57 at least, where the stream has as many.
    #[inline(always)]
    pub(super) fn ahead(&self, buffer: &[u8]) -> u64 {
        let byte = (self.end + 7) >> 3;
        // The range is in the buffer: see `BEYOND_MAX`.
        match buffer.get(byte.wrapping_sub(8)..).and_then(|bytes| bytes.first_chunk()) {
            Some(&word) => u64::from_le_bytes(word) << (8 * byte - self.end),
            None => 0,
        }
    }

    /// Counts bits as read.
    #[inline(always)]
    pub(super) fn skip(&mut self, bits: usize) {
        self.end = self.end.wrapping_sub(bits);
    }

    /// More was read than there is.
    #[inline(always)]
    pub(super) fn is_overrun(&self) -> bool {
        self.end < self.start
    }

    /// All was read, and no more.
    pub(super) fn is_exhausted(&self) -> bool {
        self.end == self.start
    }
}

/// Bits that were looked at ([`Backward::ahead`]), to be taken apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word {
    pub(super) bits: u64,
    pub(super) taken: usize,
}

impl Word {
    /// The next bits, at most 31.
    #[inline(always)]
    pub(super) fn take(&mut self, count: u8) -> u32 {
        let value = (self.bits >> 1) >> (63 - u32::from(count));
        self.bits <<= count;
        self.taken += usize::from(count);
        low_u32(value)
    }
}
