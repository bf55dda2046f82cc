//! What the parts of a reader are handed.

use marquetry_base::{Budget, Input, Pool};

use super::decompressors::Decompressors;
use crate::memory::Memory;

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
