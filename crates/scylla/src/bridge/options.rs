//! What a mapping is asked for.

use alloc::string::String;
use alloc::vec::Vec;

use crate::cql::{KeySpec, Name};

/// What a [`Mapping`](super::Mapping) is asked for.
///
/// It needs a `key`, a `row_number`, or both.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MappingOptions {
    /// TIMESTAMP(MICROS) and TIMESTAMP(NANOS) become `timestamp`, which has milliseconds: the rest is cut off towards
    /// the past (−1 µs is −1 ms). Without it they become `bigint` and keep their unit.
    pub timestamps_as_millis: bool,
    /// What to do about text that is not UTF-8.
    pub invalid_utf8: InvalidUtf8,
    /// The columns to take, by name, in the order wanted. `None`: all of them.
    ///
    /// A name means the column of exactly this name, or else the one of the name in lower case.
    pub columns: Option<Vec<String>>,
    /// The primary key. It may name the row number's column. `None`: the row number is the key.
    pub key: Option<KeySpec>,
    /// A `bigint` column of this name, the table's first, that numbers the rows.
    pub row_number: Option<Name>,
    /// How nulls are printed. Cells do not depend on it.
    pub nulls: Nulls,
}

/// What to do about text (STRING, ENUM, JSON) that is not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum InvalidUtf8 {
    /// It is an error that names row and column.
    #[default]
    Error,
    /// What is not UTF-8 is replaced by U+FFFD, `�`.
    Replace,
    /// Text columns, all of them, become `blob`, and no text is checked: the table is made before the text is seen.
    Blob,
}

/// How nulls are printed in `INSERT` statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Nulls {
    /// The column is not named in the row's statement, so nothing is written.
    #[default]
    Unset,
    /// As `null`, which deletes: a server keeps a tombstone for each.
    Null,
}
