//! How the sources of a union differ.

use alloc::string::String;

use marquetry_base::Error;

/// A difference between sources in one field.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The field's node in [`Unified::schema`](crate::schema::Unified::schema).
    pub node: usize,
    /// What it is.
    pub kind: DifferenceKind,
}

/// How sources differ. They are numbered from 0 in the order in which they were added.
#[derive(Debug, Clone, PartialEq)]
pub enum DifferenceKind {
    /// The field is missing from one source, and null there.
    Missing {
        /// The first that has it.
        with: usize,
        /// The first that lacks it, but has the struct around it.
        without: usize,
    },
    /// The types differ, and one type holds both.
    Widened {
        /// A source, and its type in words.
        one: (usize, String),
        /// Another source, and its type.
        other: (usize, String),
    },
    /// The types differ, and no type holds both.
    Clash {
        /// A source, and its type in words.
        one: (usize, String),
        /// Another source, and its type.
        other: (usize, String),
    },
    /// A source has two fields of this name in the same struct, which is ambiguous.
    Twice {
        /// Which.
        source: usize,
    },
    /// In one source, the field has no meaning in the format.
    Broken {
        /// Which.
        source: usize,
        /// Why.
        error: Error,
    },
}

impl DifferenceKind {
    /// Whether the field can be read from all sources nevertheless.
    pub fn is_bridged(&self) -> bool {
        matches!(self, DifferenceKind::Missing { .. } | DifferenceKind::Widened { .. })
    }
}
