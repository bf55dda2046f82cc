//! Bytes on their way to an object's end.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Bytes, Release, release_all};

use crate::growing::COPY_PRICE;

/// Smaller pieces are put together: that saves the host a call for each page of a wide table.
const SMALL_BYTES: usize = 32 << 10;
/// Pieces are put together up to this many bytes.
const TOGETHER_BYTES: usize = 128 << 10;

/// Pieces to append, in order.
#[derive(Debug, Default)]
pub(super) struct Out {
    pieces: VecDeque<Bytes>,
    together: Vec<u8>,
    /// Where the next byte will be in the object.
    position: u64,
}

impl Out {
    /// Where the next byte will be in the object.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Adds a piece.
    pub(super) fn push(&mut self, piece: Bytes, budget: &mut Budget<'_>) {
        self.position += u64_of(piece.len());
        if piece.len() >= SMALL_BYTES {
            self.seal();
            self.pieces.push_back(piece);
            return;
        }
        budget.charge(COPY_PRICE, piece.len(), 1);
        if self.together.capacity() == 0 && self.together.try_reserve_exact(TOGETHER_BYTES).is_err() {
            // Nothing depends on it but the number of the host's calls.
            self.pieces.push_back(piece);
            return;
        }
        self.together.extend_from_slice(&piece);
        if self.together.len() + SMALL_BYTES > TOGETHER_BYTES {
            self.seal();
        }
    }

    /// Ends the piece that is being put together.
    pub(super) fn seal(&mut self) {
        if !self.together.is_empty() {
            let piece = core::mem::take(&mut self.together);
            self.pieces.push_back(piece.into());
        }
    }

    /// The next complete piece.
    pub(super) fn take(&mut self) -> Option<Bytes> {
        self.pieces.pop_front()
    }

    /// True if a piece is complete.
    pub(super) fn is_ready(&self) -> bool {
        !self.pieces.is_empty()
    }
}

impl Release for Out {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.pieces, &mut self.together], budget)
    }
}
