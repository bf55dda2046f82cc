//! What came of asking a structure.

/// How often a structure helped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// It is not there.
    pub absent: u64,
    /// It did not decide.
    pub undecided: u64,
    /// It decided, so that no value had to be looked at.
    pub pruned: u64,
    /// It is corrupt, or of a kind that is not known, and was not used.
    pub distrusted: u64,
}
