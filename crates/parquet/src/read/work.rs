//! What the parts of a reader are handed, and what they answer.

use marquetry_base::{Budget, Input, Pool};

use super::decompressors::Decompressors;

/// What a part of a reader works with during a step.
pub(super) struct Work<'w, 'b> {
    /// The bytes that were supplied and not consumed.
    pub(super) input: &'w mut Input,
    /// Those that all columns share.
    pub(super) decompressors: &'w mut Decompressors,
    /// Memory for what the column's pages become.
    pub(super) pool: &'w mut Pool<u8>,
    /// The step's budget.
    pub(super) budget: &'w mut Budget<'b>,
}

/// How far a part of a reader has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Going<T = ()> {
    /// It has what it was asked for.
    Done(T),
    /// Bytes are missing: see [`PageReader::want`](super::page::PageReader::want).
    Need,
    /// The budget is spent.
    Yield,
}

impl<T> Going<T> {
    /// Converts what is there.
    pub(super) fn map<U>(self, turn: impl FnOnce(T) -> U) -> Going<U> {
        match self {
            Going::Done(there) => Going::Done(turn(there)),
            Going::Need => Going::Need,
            Going::Yield => Going::Yield,
        }
    }
}

/// What is done; what is not is returned, as `?` does with errors.
macro_rules! done {
    ($going:expr) => {
        match $going {
            Going::Done(there) => there,
            Going::Need => return Ok(Going::Need),
            Going::Yield => return Ok(Going::Yield),
        }
    };
}
pub(super) use done;
