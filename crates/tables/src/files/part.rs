//! Parts of files.

use std::ops::Range;

/// A part of a file that can be read independently of the others.
pub(super) struct Part {
    /// Its row groups, if it has any.
    pub(super) groups: Range<usize>,
    pub(super) rows: Option<u64>,
    pub(super) bytes: Option<u64>,
    /// Whether several threads can read it.
    pub(super) splits: bool,
}
