//! What a mapping is asked for.

use alloc::string::String;
use alloc::vec::Vec;

use crate::cql::{CqlType, KeySpec, Name, TypeDef};

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
    /// The lists that become sets, by their paths, as [`Projection`](marquetry_parquet::schema::Projection) has them: names joined with
    /// dots, with `element` for what a list holds, `key` and `value` for what a map does, and without `element` before the field of a
    /// group if one likes: `tags`, `stops.tags`, `stops.element.tags`, `stops.list.element.tags`. A path is that of exactly these
    /// names, or else the one in lower case. A map without values is a set anyway.
    pub sets: Vec<String>,
    /// Freeze collections and user-defined types that are columns too. Those inside of others, and those of the key, always
    /// are frozen.
    pub frozen: bool,
    /// What to do about nulls in lists, sets and maps.
    pub null_elements: NullElements,
    /// What to do about equal keys in a map.
    pub duplicate_keys: DuplicateKeys,
    /// A table that is there: its types decide what nested columns become, and all columns must fit it.
    pub existing: Option<Existing>,
}

/// What a table that is there says of its columns' types.
///
/// A list becomes the list or set that the column is; a group becomes the column's user-defined type, whose fields are found by
/// their names: one that is missing from the file is null. Flat columns are mapped as ever, and their types must be the table's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Existing {
    /// The table's columns.
    pub columns: Vec<(Name, CqlType)>,
    /// The keyspace's user-defined types.
    pub types: Vec<TypeDef>,
}

/// What to do about nulls in lists, sets and maps, which CQL cannot hold. (Those of a group's fields it can.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum NullElements {
    /// It is an error that names row and path.
    #[default]
    Error,
    /// They are left out: a null element of a list or set, and an entry of a map whose key or value is null.
    Drop,
}

/// What to do about equal keys in a map, of which CQL keeps one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum DuplicateKeys {
    /// It is an error that names row, path and key.
    #[default]
    Error,
    /// The last entry of a key stays. (Entries that [`NullElements::Drop`] leaves out do not count.)
    Last,
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
