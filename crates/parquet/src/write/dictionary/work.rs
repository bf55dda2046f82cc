//! How much is interned at a time, and what it cost.

/// Values that are interned at a time.
pub(super) const AT_ONCE: usize = 256;

/// Bounds of a dictionary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DictionaryLimits {
    /// Entries.
    pub entries: usize,
    /// Bytes of its page.
    pub bytes: usize,
}

/// The work of interning some values.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Slots that were probed, besides a value's first.
    pub(super) probes: usize,
    /// New entries.
    pub(super) new: usize,
    /// Entries that were moved.
    pub(super) moved: usize,
    /// Bytes of strings that were looked at.
    pub(super) bytes: usize,
    /// Bytes of strings that were stored, beyond those in views.
    pub(super) stored: usize,
    pub(super) full: bool,
}
