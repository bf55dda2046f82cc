//! How much is done at a time, and the error if columns contradict each other.

use marquetry_base::Error;

/// Entries that are looked at in one slice; a multiple of the bits of a word.
pub(super) const SLICE: usize = 4096;
/// Bytes of fixed-length values that are copied in one slice; a single value may be longer.
pub(super) const SLICE_BYTES: usize = 128 << 10;

/// The error for columns whose levels cannot belong to the same rows.
pub(super) fn disagree() -> Error {
    Error::corrupt("the levels of a column contradict those of others")
}
