//! Headers of frames. RFC 8878, section 3.1.1.1.

use marquetry_base::cast::u64_of;
use marquetry_base::{Error, Limit, Result};

use super::work::BLOCK_BYTES_MAX;
use crate::page::Page;

/// Bytes of a frame's header, at most: magic, descriptor, window, dictionary, content size.
const HEADER_BYTES_MAX: usize = 18;
/// Bytes of it that tell how long it is.
const HEADER_BYTES_MIN: usize = 5;
/// Bytes of a skippable frame's header: magic and length.
const SKIPPABLE_HEADER_BYTES: usize = 8;
const MAGIC: u32 = 0xfd2f_b528;
const SKIPPABLE_MAGIC: u32 = 0x184d_2a50;
/// The smallest window that the format has (RFC 8878, section 3.1.1.1.2).
const WINDOW_BYTES_MIN: u64 = 1 << 10;

/// Bits of the descriptor, the first byte after the magic.
const CHECKSUM_BIT: u8 = 1 << 2;
const RESERVED_BIT: u8 = 1 << 3;

/// The header of a frame (RFC 8878, section 3.1.1.1), as far as it has arrived.
#[derive(Debug, Default)]
pub(super) struct Header {
    bytes: [u8; HEADER_BYTES_MAX],
    length: usize,
}

impl Header {
    /// Takes the bytes that it lacks; returns how many these are.
    pub(super) fn take(&mut self, input: &[u8]) -> usize {
        let mut taken = 0;
        while !self.is_complete() && taken < input.len() {
            let bytes = (self.needed() - self.length).min(input.len() - taken);
            self.bytes[self.length..self.length + bytes].copy_from_slice(&input[taken..taken + bytes]);
            (self.length, taken) = (self.length + bytes, taken + bytes);
        }
        taken
    }

    pub(super) fn is_complete(&self) -> bool {
        self.length == self.needed()
    }

    fn magic(&self) -> u32 {
        self.bytes.first_chunk().map_or(0, |magic| u32::from_le_bytes(*magic))
    }

    /// Bytes that it has in all, as far as is known.
    fn needed(&self) -> usize {
        if self.length < HEADER_BYTES_MIN {
            return HEADER_BYTES_MIN;
        }
        match self.magic() {
            MAGIC => self.content_at() + self.content_bytes(),
            magic if magic & !15 == SKIPPABLE_MAGIC => SKIPPABLE_HEADER_BYTES,
            // The library says what is wrong with it.
            _ => HEADER_BYTES_MIN,
        }
    }

    fn has_window(&self) -> bool {
        self.bytes[4] & 1 << 5 == 0
    }

    fn content_at(&self) -> usize {
        let dictionary = [0, 1, 2, 4][usize::from(self.bytes[4] & 3)];
        HEADER_BYTES_MIN + usize::from(self.has_window()) + dictionary
    }

    fn content_bytes(&self) -> usize {
        match self.bytes[4] >> 6 {
            0 => usize::from(!self.has_window()),
            size => 1 << size,
        }
    }

    /// Its bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Makes it ask for no larger window than the page has bytes to come, because no match refers to what is before the
    /// page. Returns the bytes of that window; `None` if it is not a frame's.
    pub(super) fn limit_window(&mut self, page: &Page, window_bytes_max: u64) -> Result<Option<u64>> {
        let Some((window, content)) = self.sizes() else { return Ok(None) };
        let owed = u64_of(page.owed());
        if content.is_some_and(|content| content > owed) {
            return Err(page.too_long());
        }
        let window = window.min(owed.max(WINDOW_BYTES_MIN));
        if window > window_bytes_max {
            return Err(Error::limit(
                Limit::WindowBytes,
                format!("a ZSTD frame's window is more than the limit window_bytes of {window_bytes_max}"),
            ));
        }
        Ok(Some(self.cut_window(window)))
    }

    /// True if it asks for nothing that frames may not: then it need not be shown to the library, which knows the errors.
    pub(super) fn is_usual(&self) -> bool {
        let dictionary = &self.bytes[HEADER_BYTES_MIN + usize::from(self.has_window())..self.content_at()];
        self.magic() == MAGIC && self.bytes[4] & RESERVED_BIT == 0 && dictionary.iter().all(|&byte| byte == 0)
    }

    /// True if a checksum follows the last block.
    pub(super) fn has_checksum(&self) -> bool {
        self.bytes[4] & CHECKSUM_BIT != 0
    }

    /// The bytes of the window that it asks for, and those of the frame's content if it says them. `None` if it is not a
    /// frame's.
    pub(super) fn sizes(&self) -> Option<(u64, Option<u64>)> {
        if self.magic() != MAGIC {
            return None;
        }
        let (at, bytes) = (self.content_at(), self.content_bytes());
        let mut number = [0; 8];
        number[..bytes].copy_from_slice(&self.bytes[at..at + bytes]);
        // Sizes in two bytes begin with 256.
        let content = u64::from_le_bytes(number).saturating_add(if bytes == 2 { 256 } else { 0 });
        let window = if self.has_window() { window_of(self.bytes[HEADER_BYTES_MIN]) } else { content };
        Some((window, (bytes > 0).then_some(content)))
    }

    /// Asks for a window of `bytes`, or the next larger one there is; returns it. Blocks are not larger than a window, so
    /// it stays as large as one block.
    fn cut_window(&mut self, bytes: u64) -> u64 {
        if !self.has_window() {
            return bytes;
        }
        let descriptor = &mut self.bytes[HEADER_BYTES_MIN];
        let bytes = bytes.max(u64_of(BLOCK_BYTES_MAX)).min(window_of(*descriptor));
        *descriptor = (0..*descriptor).find(|smaller| window_of(*smaller) >= bytes).unwrap_or(*descriptor);
        window_of(*descriptor)
    }
}

/// Bytes of the window that a descriptor stands for.
fn window_of(descriptor: u8) -> u64 {
    let base = WINDOW_BYTES_MIN << (descriptor >> 3);
    base + base / 8 * u64::from(descriptor & 7)
}
