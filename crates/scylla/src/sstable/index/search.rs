//! What is searched for in an index, and what a search finds.

use alloc::vec::Vec;

/// What is searched for.
#[derive(Debug, Clone)]
pub(super) enum Target {
    /// The first partition that has this token or a greater one.
    Token(i64),
    /// The partition that has this key.
    Key { key: Vec<u8>, token: i64, hash: u8 },
    /// The last partition there is.
    Last,
}

impl Target {
    pub(super) fn token(&self) -> i64 {
        match self {
            Target::Token(token) | Target::Key { token, .. } => *token,
            Target::Last => i64::MAX,
        }
    }
}

/// What a search did.
pub(super) enum Move {
    /// It goes on.
    On,
    /// It found something.
    To(Candidate),
    /// There is nothing.
    End,
}

/// A partition that may be the answer.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// Where it is in the data.
    pub(super) position: u64,
    /// What its key must be, or the index is wrong.
    pub(super) expected: Expected,
    /// It is the answer, if the index is right. Or else its key says so.
    pub(super) is_answer: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Expected {
    Key(Vec<u8>),
    /// The first bytes of its key in the trie.
    Prefix(Vec<u8>),
}
