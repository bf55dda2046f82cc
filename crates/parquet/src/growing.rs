//! Memory for bytes whose number is only claimed: it grows as they arrive, a slice at a time.

use alloc::vec::Vec;

use marquetry_base::{Budget, Error, Price, Result};

/// Bytes that are copied, filled or checked at a time.
pub(crate) const SLICE_BYTES: usize = 64 << 10;

/// Bytes of new memory that are filled, or moved to, at a time.
pub(crate) const ROOM_SLICE_BYTES: usize = 32 << 10;

/// What copying costs.
pub(crate) const COPY_PRICE: Price = Price::per_kib(150);
/// What it costs to fill memory that was never used: it has to be had from the system, page by page.
pub(crate) const ROOM_PRICE: Price = Price::per_kib(450);

/// Bytes, and room for more. Where there is none left, all is moved to memory that is larger: a slice at a time, so that
/// nothing is done at once whose size a file decides.
#[derive(Debug, Clone, Default)]
pub(crate) struct Growing {
    /// The bytes, then room, all of it filled with something.
    memory: Vec<u8>,
    filled: usize,
    /// Larger memory that they are being moved to.
    larger: Vec<u8>,
}

impl Growing {
    /// Nothing yet, in memory that was used before or is empty.
    pub(crate) fn within(memory: Vec<u8>) -> Growing {
        Growing { memory, filled: 0, larger: Vec::new() }
    }

    /// Bytes there.
    pub(crate) fn len(&self) -> usize {
        self.filled
    }

    /// Bytes that there is room for, those that are there included.
    pub(crate) fn room(&self) -> usize {
        self.memory.len()
    }

    /// Bytes of memory taken.
    pub(crate) fn held(&self) -> usize {
        self.memory.capacity() + self.larger.capacity()
    }

    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.memory[..self.filled]
    }

    /// The bytes and the room behind them, up to `end` in all.
    pub(crate) fn with_room(&mut self, end: usize) -> &mut [u8] {
        let end = end.min(self.memory.len());
        &mut self.memory[..end]
    }

    /// So many bytes more were written into the room.
    pub(crate) fn add(&mut self, bytes: usize) {
        self.filled = (self.filled + bytes).min(self.memory.len());
    }

    /// Forgets all but the first `bytes`; there is room in their place.
    pub(crate) fn keep(&mut self, bytes: usize) {
        self.filled = self.filled.min(bytes);
    }

    /// Copies bytes into the room, as many as it takes.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        let take = bytes.len().min(self.memory.len() - self.filled);
        self.memory[self.filled..self.filled + take].copy_from_slice(&bytes[..take]);
        self.filled += take;
    }

    /// Makes room for `least` bytes in all, or more if that is cheap, but not beyond `most`. False when the budget was spent
    /// before it was done.
    ///
    /// # Errors
    ///
    /// When the memory cannot be had.
    pub(crate) fn grow(&mut self, least: usize, most: usize, budget: &mut Budget<'_>) -> Result<bool> {
        while self.memory.len() < least {
            let room = self.memory.len();
            if self.larger.capacity() == 0 && room < self.memory.capacity() {
                let end = self.memory.capacity().min(most.max(least)).min(room + ROOM_SLICE_BYTES);
                budget.charge(ROOM_PRICE, end - room, 0);
                self.memory.resize(end, 0);
            } else {
                if self.larger.capacity() == 0 {
                    let more = room.saturating_mul(2).min(most).max(least);
                    self.larger.try_reserve_exact(more).map_err(|_| Error::out_of_memory(more))?;
                }
                let moved = self.larger.len();
                let end = self.filled.min(moved + ROOM_SLICE_BYTES);
                budget.charge(ROOM_PRICE, end - moved, 0);
                self.larger.extend_from_slice(&self.memory[moved..end]);
                if end == self.filled {
                    self.memory = core::mem::take(&mut self.larger);
                }
            }
            if self.memory.len() < least && budget.is_spent() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The memory, and how many bytes of it are there.
    pub(crate) fn into_parts(self) -> (Vec<u8>, usize) {
        (self.memory, self.filled)
    }

    /// The bytes alone.
    pub(crate) fn into_vec(mut self) -> Vec<u8> {
        self.memory.truncate(self.filled);
        self.memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_moves_a_slice_at_a_time() {
        let mut growing = Growing::default();
        let (total, mut largest, mut steps) = (3 << 20, 0, 0);
        while growing.len() < total {
            let least = (growing.len() + 1000).min(total);
            let mut budget = Budget::new(0);
            steps += 1;
            if growing.grow(least, total, &mut budget).unwrap() {
                let value = growing.len().to_le_bytes();
                growing.append(&value[..value.len().min(total - growing.len())]);
            }
            largest = largest.max(budget.spent());
        }
        assert!(largest <= ROOM_PRICE.of(ROOM_SLICE_BYTES, 0), "{largest} units");
        assert!(steps > total / 8);
        let (memory, filled) = growing.into_parts();
        assert_eq!((filled, memory.capacity()), (total, total));
        assert!(memory.chunks(8).enumerate().all(|(number, value)| value == (number * 8).to_le_bytes()));
    }

    #[test]
    fn memory_that_was_used_is_room() {
        let mut growing = Growing::within(alloc::vec![7; 100]);
        assert_eq!((growing.len(), growing.room()), (0, 100));
        assert!(growing.grow(100, 1000, &mut Budget::new(0)).unwrap());
        growing.append(&[1; 200]);
        assert_eq!(growing.bytes(), [1; 100]);
    }
}
