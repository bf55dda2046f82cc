//! How much is done at a time, and what is said where columns contradict each other.

use marquetry_base::Error;

/// Entries that are looked at at a time; a multiple of the bits of a word.
pub(super) const SLICE: usize = 4096;
/// Bytes of values of a fixed length that are copied at a time; one may be longer.
pub(super) const SLICE_BYTES: usize = 128 << 10;

/// Levels of columns that cannot be of the same rows.
pub(super) fn disagree() -> Error {
    Error::corrupt("the levels of a column contradict those of others")
}
