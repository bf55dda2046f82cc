//! Bytes on their way to the ends of components.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use marquetry_base::{Budget, Bytes, Price};

use crate::sstable::toc::Component;

/// The price of bytes that are copied, and of a piece of them.
pub(super) const COPY_PRICE: Price = Price { kib: 150, kilovalue: 20 << 10 };
/// Pieces are put together up to this many bytes, which saves the host calls.
const TOGETHER_BYTES: usize = 128 << 10;

/// Pieces to append, in order; those of a component are put together.
#[derive(Debug, Default)]
pub(super) struct Out {
    pieces: VecDeque<(Component, Bytes)>,
    together: Vec<(Component, Vec<u8>)>,
}

impl Out {
    /// Adds bytes, and charges for them.
    pub(super) fn push(&mut self, component: &Component, bytes: &[u8], budget: &mut Budget<'_>) {
        budget.charge(COPY_PRICE, bytes.len(), 1);
        self.push_now(component, bytes);
    }

    /// Adds bytes that were charged for.
    pub(super) fn push_now(&mut self, component: &Component, bytes: &[u8]) {
        let number = self.together.iter().position(|(of, _)| of == component).unwrap_or_else(|| {
            self.together.push((component.clone(), Vec::new()));
            self.together.len() - 1
        });
        let mut rest = bytes;
        while !rest.is_empty() {
            let (_, held) = &mut self.together[number];
            if held.capacity() == 0 {
                held.reserve_exact(rest.len().clamp(4 << 10, TOGETHER_BYTES));
            }
            let (part, more) = rest.split_at(rest.len().min(TOGETHER_BYTES - held.len()));
            held.extend_from_slice(part);
            rest = more;
            if held.len() == TOGETHER_BYTES {
                let piece = core::mem::take(held);
                self.pieces.push_back((component.clone(), piece.into()));
            }
        }
    }

    /// Ends all pieces that are being put together.
    pub(super) fn seal(&mut self) {
        for (component, held) in self.together.drain(..) {
            if !held.is_empty() {
                self.pieces.push_back((component, held.into()));
            }
        }
    }

    /// The next complete piece.
    pub(super) fn take(&mut self) -> Option<(Component, Bytes)> {
        self.pieces.pop_front()
    }
}
