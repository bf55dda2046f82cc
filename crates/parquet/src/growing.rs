//! Memory for bytes whose number is only claimed: it grows as they arrive, or is allocated once they have; a slice at a
//! time.

use alloc::vec::Vec;

use marquetry_base::{Budget, Bytes, Error, Price, RELEASE_PRICE, Release, Result, Segmented, release_all};
use marquetry_kernels::plain;

use crate::memory::Memory;

/// Bytes that are copied, filled or checked at a time.
pub(crate) const SLICE_BYTES: usize = 64 << 10;

/// Bytes of new memory that are filled, or moved to, at a time.
pub(crate) const ROOM_SLICE_BYTES: usize = 32 << 10;

/// The price of copying.
pub(crate) const COPY_PRICE: Price = Price::per_kib(150);
/// The price of filling memory that was never used: the system provides it page by page.
pub(crate) const ROOM_PRICE: Price = Price::per_kib(450);

/// The most bytes that are released at a time in a step that does something else, too: a window, an array's part.
const RELEASE_BYTES_MAX: usize = 256 << 10;

/// Releases something in such a step. If the budget does not pay for it any more, the step ends, and the next one does
/// it: so steps are not longer than their budgets by a slice of this, too. (True once nothing is left.)
pub(crate) fn release_in_step(thing: &mut dyn Release, budget: &mut Budget<'_>) -> bool {
    if budget.spent() > 0 && budget.bytes_left(RELEASE_PRICE) < RELEASE_BYTES_MAX {
        budget.charge_units(budget.left());
        return false;
    }
    thing.release(budget)
}

/// Bytes, and room for more. If no room is left, everything is moved to larger memory: a slice at a time, so that no
/// single step depends on sizes in the file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Growing {
    /// The bytes, then the room, which is filled with anything.
    memory: Vec<u8>,
    filled: usize,
    /// Larger memory that they are being moved to.
    larger: Vec<u8>,
}

impl Growing {
    /// Empty, in memory that was used before or is empty.
    pub(crate) fn within(memory: Vec<u8>) -> Growing {
        Growing { memory, filled: 0, larger: Vec::new() }
    }

    /// The number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.filled
    }

    /// The number of bytes that fit, including those already there.
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

    /// The bytes and the room after them, up to `end` in total.
    pub(crate) fn with_room(&mut self, end: usize) -> &mut [u8] {
        let end = end.min(self.memory.len());
        &mut self.memory[..end]
    }

    /// `bytes` more bytes were written into the room.
    pub(crate) fn add(&mut self, bytes: usize) {
        self.filled = (self.filled + bytes).min(self.memory.len());
    }

    /// Removes all but the first `bytes`; the others become room.
    pub(crate) fn keep(&mut self, bytes: usize) {
        self.filled = self.filled.min(bytes);
    }

    /// Copies bytes into the room, as many as fit.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        let take = bytes.len().min(self.memory.len() - self.filled);
        plain::copy(&bytes[..take], &mut self.memory[self.filled..self.filled + take]);
        self.filled += take;
    }

    /// Allocates memory for this many bytes, which the caller has admitted, so that growing moves nothing. It must be
    /// empty.
    ///
    /// # Errors
    ///
    /// If the memory cannot be allocated.
    pub(crate) fn reserve(&mut self, bytes: usize) -> Result<()> {
        let more = bytes.saturating_sub(self.memory.len());
        self.memory.try_reserve_exact(more).map_err(|_| Error::out_of_memory(bytes))
    }

    /// Makes room for `least` bytes in total, or more if that is cheap, but at most `most`. False if the budget is
    /// spent first.
    ///
    /// # Errors
    ///
    /// If larger memory is not admitted, or cannot be allocated.
    pub(crate) fn grow(
        &mut self,
        least: usize,
        most: usize,
        memory: &mut Memory,
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        while self.memory.len() < least {
            let room = self.memory.len();
            if self.larger.capacity() == 0 && room < self.memory.capacity() {
                let end = self.memory.capacity().min(most.max(least)).min(room + ROOM_SLICE_BYTES);
                budget.charge(ROOM_PRICE, end - room, 0);
                self.memory.resize(end, 0);
            } else {
                if self.larger.capacity() == 0 {
                    let more = room.saturating_mul(2).min(most).max(least);
                    memory.admit(more)?;
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

    /// The memory, and how many of its bytes are used.
    pub(crate) fn into_parts(self) -> (Vec<u8>, usize) {
        (self.memory, self.filled)
    }

    /// The bytes alone.
    pub(crate) fn into_vec(mut self) -> Vec<u8> {
        self.memory.truncate(self.filled);
        self.memory
    }
}

impl Release for Growing {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.filled = 0;
        release_all(&mut [&mut self.memory, &mut self.larger], budget)
    }
}

/// Bytes that will be one piece, and arrive in several. A piece that has all of them is shared. Otherwise memory for them
/// is allocated once, when a part of them has arrived: they are copied to it, and each piece is released as soon as it
/// is copied. So they are hardly ever there twice, nothing large is moved or freed, and a length that is a lie allocates
/// a few times what has arrived.
#[derive(Debug, Clone, Default)]
pub(crate) struct Joining {
    /// Bytes that there will be, and those that have arrived.
    goal: usize,
    length: usize,
    /// The pieces, of which those before `next` are copied.
    pieces: Segmented<Bytes>,
    next: usize,
    /// The last pieces, if they are small.
    small: Vec<u8>,
    whole: Vec<u8>,
}

/// Smaller pieces are copied as they arrive: many of them would take more memory than their bytes.
const PIECE_BYTES_MIN: usize = 16 << 10;

/// The part of the bytes that must have arrived before memory for all of them is allocated.
const ARRIVED_PART: usize = 8;

impl Joining {
    /// Of `goal` bytes.
    pub(crate) fn new(goal: usize) -> Joining {
        Joining { goal, ..Joining::default() }
    }

    /// The number of bytes that have arrived.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// The number of bytes that are still to come.
    pub(crate) fn left(&self) -> usize {
        self.goal.saturating_sub(self.length)
    }

    /// Bytes of memory taken, beside that of the pieces.
    pub(crate) fn allocated(&self) -> usize {
        self.small.capacity() + self.whole.capacity()
    }

    /// Bytes of memory taken.
    pub(crate) fn held(&self) -> usize {
        self.length - self.whole.len() + self.whole.capacity()
    }

    /// Adds a piece.
    pub(crate) fn push(&mut self, piece: Bytes, budget: &mut Budget<'_>) {
        self.length += piece.len();
        if piece.len() >= PIECE_BYTES_MIN {
            self.end_small();
            self.pieces.push(piece);
            budget.charge(COPY_PRICE, 0, 1);
        } else {
            self.small.extend_from_slice(&piece);
            budget.charge(COPY_PRICE, piece.len(), 1);
            if self.small.len() + PIECE_BYTES_MIN > SLICE_BYTES {
                self.end_small();
            }
        }
    }

    fn end_small(&mut self) {
        if !self.small.is_empty() {
            self.pieces.push(core::mem::take(&mut self.small).into());
        }
    }

    /// Joins the pieces that are there, if it is time; all of them, once the last has arrived. False if the budget is
    /// spent first.
    ///
    /// # Errors
    ///
    /// If the memory is not admitted, or cannot be allocated.
    pub(crate) fn join(&mut self, memory: &mut Memory, budget: &mut Budget<'_>) -> Result<bool> {
        let has_all = self.left() == 0;
        if has_all {
            self.end_small();
        }
        if self.whole.capacity() == 0 {
            let is_whole = has_all && self.pieces.len() <= 1;
            if is_whole || self.length < self.goal / ARRIVED_PART {
                return Ok(true);
            }
            let bytes = self.goal.max(self.length);
            memory.admit(bytes)?;
            self.whole.try_reserve_exact(bytes).map_err(|_| Error::out_of_memory(bytes))?;
        }
        while let Some(piece) = self.pieces.get_mut(self.next) {
            let part = piece.split_to(piece.len().min(ROOM_SLICE_BYTES));
            self.whole.extend_from_slice(&part);
            budget.charge(COPY_PRICE, part.len(), 0);
            budget.charge(ROOM_PRICE, part.len(), 0);
            if piece.is_empty() {
                // An empty slice may still hold the memory that it was part of.
                *piece = Bytes::new();
                self.next += 1;
            }
            if self.next < self.pieces.len() && budget.is_spent() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// All bytes, once they are joined.
    pub(crate) fn finish(mut self) -> Bytes {
        match self.pieces.get_mut(0) {
            Some(only) if self.whole.is_empty() => core::mem::take(only),
            _ => self.whole.into(),
        }
    }
}

impl Release for Joining {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.pieces, &mut self.small, &mut self.whole], budget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(pieces: &[usize], units: u64) -> (Joining, usize, u64) {
        let total = pieces.iter().sum();
        let mut joining = Joining::new(total);
        let mut at = 0u32;
        for &length in pieces {
            let piece: Vec<u8> =
                (at..).map(|at| at.to_le_bytes()[0] ^ at.to_le_bytes()[1]).take(length).collect();
            at += u32::try_from(length).unwrap();
            joining.push(piece.into(), &mut Budget::unlimited());
        }
        let (mut steps, mut largest) = (0, 0);
        loop {
            let mut budget = Budget::new(units);
            let is_done = joining.join(&mut Memory::unlimited(), &mut budget).unwrap();
            (steps, largest) = (steps + 1, largest.max(budget.spent()));
            if is_done {
                return (joining, steps, largest);
            }
        }
    }

    #[test]
    fn pieces_are_joined_in_slices_and_released() {
        for pieces in [
            &[0][..],
            &[7],
            &[100_000],
            &[5, 6],
            &[3, 100_000, 2, 70_000, 40_000, 1],
            &[9_000; 40],
            &[1 << 20; 3],
        ] {
            let total: usize = pieces.iter().sum();
            let (joining, steps, largest) = joined(pieces, 0);
            assert_eq!(
                (joining.len(), joining.pieces.iter().map(Bytes::len).sum::<usize>().min(1)),
                (total, usize::from(joining.pieces.len() == 1))
            );
            assert!(largest <= ROOM_PRICE.of(ROOM_SLICE_BYTES, 0) + COPY_PRICE.of(ROOM_SLICE_BYTES, 0));
            assert!(
                steps >= if joining.pieces.len() > 1 { total / ROOM_SLICE_BYTES } else { 1 },
                "{pieces:?}"
            );
            let whole = joining.finish();
            assert_eq!(whole.len(), total);
            assert!(
                (0u32..).zip(&whole).all(|(at, byte)| *byte == at.to_le_bytes()[0] ^ at.to_le_bytes()[1])
            );
        }
    }

    #[test]
    fn one_piece_is_shared_and_small_ones_are_few() {
        let piece = Bytes::from(alloc::vec![1; 100_000]);
        let mut joining = Joining::new(100_000);
        joining.push(piece.clone(), &mut Budget::unlimited());
        assert!(joining.join(&mut Memory::unlimited(), &mut Budget::new(0)).unwrap());
        assert_eq!(joining.finish().as_ptr(), piece.as_ptr());
        let (joining, ..) = joined(&[10; 100_000], u64::MAX);
        assert!(joining.pieces.len() <= 1_000_000 / (SLICE_BYTES - PIECE_BYTES_MIN) + 1);
    }

    #[test]
    fn a_long_value_is_hardly_there_twice_and_a_lie_allocates_little() {
        const PIECE: usize = 100_000;
        let mut joining = Joining::new(100 * PIECE);
        let (mut held, mut memory) = (0, Memory::unlimited());
        let pieces: Vec<Bytes> = (0..100).map(|at| Bytes::from(alloc::vec![at; PIECE])).collect();
        for (number, piece) in (1..).zip(&pieces) {
            joining.push(piece.clone(), &mut Budget::unlimited());
            held = held.max(joining.held());
            while !joining.join(&mut memory, &mut Budget::new(0)).unwrap() {
                held = held.max(joining.held());
            }
            held = held.max(joining.held());
            assert!(joining.held() <= ARRIVED_PART * number * PIECE, "{} of {number}", joining.held());
            // What is copied is released.
            let kept = pieces.iter().filter(|piece| !piece.is_unique()).count();
            assert!(kept == 0 || joining.whole.is_empty(), "{kept} of {number}");
        }
        assert!(held < 114 * PIECE, "{held} bytes");
        assert_eq!(joining.left(), 0);
        assert!(
            joining.finish().iter().zip(0..100 * PIECE).all(|(byte, at)| usize::from(*byte) == at / PIECE)
        );
        // Of a value that is not admitted, only pieces are kept.
        let mut joining = Joining::new(100 * PIECE);
        let mut memory = Memory::new((marquetry_base::Limit::TotalBytes, 50 * PIECE as u64), 0, 0).unwrap();
        let pushed = pieces.iter().take_while(|piece| {
            joining.push((*piece).clone(), &mut Budget::unlimited());
            joining.join(&mut memory, &mut Budget::unlimited()).is_ok()
        });
        assert_eq!(pushed.count(), 100 / ARRIVED_PART);
        assert_eq!(joining.whole.capacity(), 0);
    }

    #[test]
    fn it_moves_a_slice_at_a_time() {
        let mut growing = Growing::default();
        let (total, mut largest, mut steps) = (3 << 20, 0, 0);
        while growing.len() < total {
            let least = (growing.len() + 1000).min(total);
            let mut budget = Budget::new(0);
            steps += 1;
            if growing.grow(least, total, &mut Memory::unlimited(), &mut budget).unwrap() {
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
        assert!(growing.grow(100, 1000, &mut Memory::unlimited(), &mut Budget::new(0)).unwrap());
        growing.append(&[1; 200]);
        assert_eq!(growing.bytes(), [1; 100]);
    }
}
