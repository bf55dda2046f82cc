//! Where a frame's bytes go: the page, or a window of it.

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Error, Release, Result};
use marquetry_kernels::lz::{COPY_SLACK, copy_back};
use marquetry_kernels::plain;

use super::work::BLOCK_BYTES_MAX;
use crate::block::repeat;
use crate::page::Page;

/// What a frame is decoded to: the page, if the host holds it, or else the window.
pub(super) struct Target<'page> {
    pub(super) page: &'page Page,
    pub(super) bytes: &'page mut [u8],
    /// Where the bytes start that matches may refer to.
    pub(super) start: usize,
    /// Where the next byte goes.
    pub(super) at: usize,
    /// The end of the bytes that precede the first: those that the window had when it began anew. 0 if there are none.
    pub(super) before: usize,
    /// Where the room ends: that of the page.
    pub(super) end: usize,
}

/// Bytes after a copy that may be overwritten with garbage.
pub(super) const SLACK: usize = COPY_SLACK;

/// Bytes that are copied at a time, at most.
pub(super) const PART_BYTES: usize = 8 << 10;

impl Target<'_> {
    /// The room that is left of the page.
    pub(super) fn room(&self) -> usize {
        self.end - self.at
    }

    /// How far back a match may refer whose first byte is the next.
    #[inline(always)]
    fn reach(&self) -> usize {
        (self.at - self.start).max(self.before.saturating_sub(SLACK))
    }

    /// The place that is `distance` bytes back; `None` if there is no such byte, or if it is not kept any more.
    #[inline(always)]
    pub(super) fn place(&self, distance: usize) -> Option<usize> {
        if distance > self.reach() || distance == 0 {
            return None;
        }
        Some(self.at.checked_sub(distance).unwrap_or_else(|| self.before + self.at - distance))
    }

    /// Appends bytes, for which there is room.
    pub(super) fn append(&mut self, bytes: &[u8]) {
        plain::copy(bytes, &mut self.bytes[self.at..self.at + bytes.len()]);
        self.at += bytes.len();
    }

    /// Appends a match, for which there is room, of [`PART_BYTES`] at most. False if there is nothing so far back.
    #[inline(always)]
    pub(super) fn copy(&mut self, distance: usize, length: usize) -> bool {
        let Some(from) = self.place(distance) else { return false };
        let is_near = from < self.at;
        if !is_near || !copy_back(self.bytes, self.at, distance, length) {
            self.copy_carefully(from, distance, length);
        }
        self.at += length;
        true
    }

    /// Copies at the end of the room, or from the bytes before the first.
    #[cold]
    fn copy_carefully(&mut self, from: usize, distance: usize, length: usize) {
        if from < self.at {
            return repeat(self.bytes, self.at, distance, length);
        }
        let first = length.min(self.before - from);
        self.bytes.copy_within(from..from + first, self.at);
        if first < length {
            let at = self.at + first;
            repeat(self.bytes, at, at, length - first);
        }
    }

    /// The error for a faulty frame.
    pub(super) fn bad(&self, what: &'static str) -> Error {
        self.page.corrupt(what)
    }
}

/// The last bytes of a page that its host does not hold. It is filled from its start, and then again.
#[derive(Debug, Default)]
pub(super) struct Window {
    memory: Vec<u8>,
    /// Its bytes when it is full.
    bytes: usize,
    at: usize,
    before: usize,
    /// Bytes before this were passed on to the host.
    given: usize,
}

impl Window {
    /// The bytes of a window that keeps `kept` bytes while it is filled with a block.
    pub(super) fn bytes_for(kept: u64) -> u64 {
        kept.saturating_add(u64_of(BLOCK_BYTES_MAX + 2 * SLACK))
    }

    /// Bytes of memory.
    pub(super) fn held(&self) -> usize {
        self.memory.capacity()
    }

    /// Begins a frame. False if that takes another call: a smaller window is released before a larger one is allocated.
    pub(super) fn begin(&mut self, bytes: usize, budget: &mut Budget<'_>) -> Result<bool> {
        if self.memory.capacity() < bytes {
            if !self.memory.release(budget) {
                return Ok(false);
            }
            self.memory.try_reserve_exact(bytes).map_err(|_| {
                Error::out_of_memory(bytes)
                    .reworded("the memory for a ZSTD frame's window could not be allocated")
            })?;
        }
        (self.bytes, self.at, self.before, self.given) = (bytes, 0, 0, 0);
        Ok(true)
    }

    /// Makes room for a block, and returns the number of bytes that were never used before.
    pub(super) fn make_room(&mut self, block: usize) -> usize {
        if self.at + block + SLACK > self.bytes {
            // What precedes the first byte is never less than a window.
            (self.before, self.at, self.given) = (self.at, 0, 0);
        }
        let end = self.at + block + SLACK;
        let new = end.saturating_sub(self.memory.len());
        if new > 0 {
            self.memory.resize(end, 0);
        }
        new
    }

    /// What to decode to, with room for `owed` bytes of the page.
    pub(super) fn target<'window>(&'window mut self, page: &'window Page, owed: usize) -> Target<'window> {
        let Window { memory, at, before, .. } = self;
        Target { page, bytes: memory, start: 0, at: *at, before: *before, end: *at + owed }
    }

    /// Counts what was decoded.
    pub(super) fn advance(&mut self, at: usize) {
        self.at = at;
    }

    /// The bytes that are still to be passed on.
    pub(super) fn pending(&self) -> &[u8] {
        &self.memory[self.given..self.at]
    }

    /// Counts bytes as passed on.
    pub(super) fn give(&mut self, bytes: usize) {
        self.given += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_base::Codec;

    /// Matches from as far back as anything is kept, beside a copy of everything.
    #[test]
    fn what_is_kept_is_what_was_there() {
        const BYTES: usize = 3_000;
        const BLOCK: usize = 500;
        let mut random = 12_345_u64;
        let mut below = |bound: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(random >> 33).unwrap() % bound
        };
        let page = Page::none(Codec::Zstd);
        let (mut window, mut all) = (Window::default(), Vec::new());
        assert!(window.begin(BYTES, &mut Budget::unlimited()).unwrap());
        let (mut far, mut farther) = (0, 0);
        for _ in 0..2_000 {
            window.make_room(BLOCK);
            let begin = all.len();
            let mut target = window.target(&page, BLOCK);
            while all.len() - begin < BLOCK - 80 {
                let bytes: Vec<u8> = (0..below(5)).map(|_| below(256).to_le_bytes()[0]).collect();
                target.append(&bytes);
                all.extend(bytes);
                let near = 1 + below(20);
                let distance = if below(2) == 0 { near } else { BYTES - BLOCK - 100 + below(200 + BLOCK) };
                let length = 1 + below(70);
                if target.place(distance).is_none() {
                    farther += 1;
                    // All of a window is there, but for a block and what copies may overwrite.
                    assert!(distance > all.len() || distance > BYTES - BLOCK - 2 * SLACK);
                    continue;
                }
                assert!(distance <= all.len());
                far += usize::from(distance > 1_000);
                assert!(target.copy(distance, length));
                (0..length).for_each(|_| all.push(all[all.len() - distance]));
            }
            let at = target.at;
            window.advance(at);
            assert!(window.pending() == &all[begin..], "other bytes");
            window.give(all.len() - begin);
        }
        assert!(far > 1_000 && farther > 1_000, "{far} and {farther}");
    }
}
