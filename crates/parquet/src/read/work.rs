//! What the parts of a reader are handed.

use marquetry_base::{Budget, Input, Limit, Pool, Result};

use super::decompressors::Decompressors;

/// What a part of a reader works with during a step.
pub(super) struct Work<'w, 'b> {
    /// The bytes that were supplied and not consumed.
    pub(super) input: &'w mut Input,
    /// Those that all columns share.
    pub(super) decompressors: &'w mut Decompressors,
    /// Memory for what the column's pages become.
    pub(super) pool: &'w mut Pool<u8>,
    /// The memory that there may be.
    pub(super) memory: Memory,
    /// The step's budget.
    pub(super) budget: &'w mut Budget<'b>,
}

/// The memory that a part of a reader may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Memory {
    /// Bytes that all parts may hold, and the limit that says so: see [`Limits::total_of`](marquetry_base::Limits).
    pub(super) total: (Limit, u64),
    /// Bytes that the other parts hold.
    pub(super) others: u64,
}

impl Memory {
    /// Checks that `held` bytes, with those of the other parts, are within the limit.
    pub(super) fn check(self, held: u64) -> Result<()> {
        let (limit, most) = self.total;
        limit.check(most, self.others.saturating_add(held))
    }
}
