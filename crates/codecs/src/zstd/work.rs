//! What a frame's parts share: what they do at a time, what it costs, and why they stop.

use marquetry_base::{Budget, Error, Price, Result};

/// A block is decoded to so many bytes: Block_Maximum_Size, RFC 8878, section 3.1.1.2.4.
pub(super) const BLOCK_BYTES_MAX: usize = 128 << 10;

/// Bytes of a block's header.
pub(super) const BLOCK_HEADER_BYTES: usize = 3;

pub(super) const BLOCK_TOO_LONG: &str = "a block is longer than it may be";

/// Why a frame stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// It needs more input.
    Input,
    /// The room is full, and more follows.
    Room,
    /// Enough was done.
    Tired,
    /// A block ended.
    Block,
    /// The frame is complete.
    End,
}

/// What was done, and why no more.
pub(super) struct Done {
    pub(super) consumed: usize,
    pub(super) produced: usize,
    pub(super) stop: Stop,
}

/// The work of a call, in elements.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) elements: usize,
    /// The number of elements to stop after, give or take what is not interrupted: a tree, a table, a batch.
    pub(super) elements_max: usize,
}

/// An element is about a nanosecond of work. What costs how many stands with it; `examples/prices.rs` measures them all.
pub(super) const PRICE: Price = Price::per_kilovalue(1 << 10);

/// Elements of a slice, at least and at most.
pub(super) const ELEMENTS_MIN: usize = 4 << 10;
pub(super) const ELEMENTS_MAX: usize = 32 << 10;

/// Bytes that are copied, hashed or filled for an element; and those of memory that is used for the first time, which
/// the system provides page by page.
const BYTES: usize = 8;
const FRESH_BYTES: usize = 2;

impl Work {
    /// Work that the rest of a budget pays for, or the least that there is.
    pub(super) fn within(budget: &Budget<'_>) -> Work {
        Work { elements: 0, elements_max: budget.values_left(PRICE).clamp(ELEMENTS_MIN, ELEMENTS_MAX) }
    }

    /// True if enough was done.
    #[inline(always)]
    pub(super) fn is_tired(&self) -> bool {
        self.elements >= self.elements_max
    }

    /// Counts bytes that are copied or filled.
    #[inline(always)]
    pub(super) fn bytes(&mut self, bytes: usize) {
        self.elements += bytes / BYTES;
    }

    /// Counts bytes of memory that is used for the first time.
    pub(super) fn fresh(&mut self, bytes: usize) {
        self.elements += bytes / FRESH_BYTES;
    }
}

/// Allocates memory for `bytes`, which are used as they are needed.
pub(super) fn reserve(memory: &mut Vec<u8>, bytes: usize) -> Result<()> {
    let more = bytes.saturating_sub(memory.len());
    memory.try_reserve_exact(more).map_err(|_| Error::out_of_memory(bytes))
}
