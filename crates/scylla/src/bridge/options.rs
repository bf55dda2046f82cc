//! Options of a mapping.

use alloc::string::String;
use alloc::vec::Vec;

use marquetry_base::Limits;

use crate::cql::{CqlType, KeySpec, Name, TableDef, TypeDef};

/// Options of a [`Mapping`](super::Mapping).
///
/// It needs a `key`, a `row_number`, or both.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MappingOptions {
    /// TIMESTAMP(MICROS) and TIMESTAMP(NANOS) become `timestamp`, rounded down to milliseconds (−1 µs becomes −1 ms).
    /// Otherwise they become `bigint` and keep their unit.
    pub timestamps_as_millis: bool,
    /// What to do about text that is not UTF-8.
    pub invalid_utf8: InvalidUtf8,
    /// The columns to write, by name, in this order. `None`: all of them.
    ///
    /// A name means the column with exactly this name, or else the one with this name in lower case.
    pub columns: Option<Vec<String>>,
    /// The primary key. It may include the row number's column. `None`: the row number is the key.
    pub key: Option<KeySpec>,
    /// The name of a `bigint` column, the table's first, that numbers the rows.
    pub row_number: Option<Name>,
    /// How nulls are printed. Cells are not affected.
    pub nulls: Nulls,
    /// The lists that become sets, by their paths, as in [`Projection`](marquetry_parquet::schema::Projection): names
    /// joined with dots, with `element` for a list's elements, and `key` and `value` for a map's; `element` may be left
    /// out before a field's name: `tags`, `stops.tags`, `stops.element.tags`, `stops.list.element.tags`. A path matches
    /// exactly, or else in lower case. A map without values always becomes a set.
    pub sets: Vec<String>,
    /// Also freeze collections and user-defined types that are columns. Those inside others, and those in the key,
    /// are always frozen.
    pub frozen: bool,
    /// What to do about nulls in lists, sets and maps.
    pub null_elements: NullElements,
    /// What to do about equal keys in a map.
    pub duplicate_keys: DuplicateKeys,
    /// An existing table: its types determine what nested columns become, and all columns must fit it.
    pub existing: Option<Existing>,
    /// Bounds on what nested values and variants take while they are put together.
    pub limits: Limits,
}

impl MappingOptions {
    /// These options for rows of a table that is defined: its key, its columns, and their types.
    #[must_use]
    pub fn defined_by(self, table: &TableDef, types: Vec<TypeDef>) -> MappingOptions {
        let statics = table.columns.iter().filter(|column| column.is_static);
        let existing = Existing {
            columns: table.columns.iter().map(|it| (it.name.clone(), it.cql_type.clone())).collect(),
            statics: statics.map(|column| column.name.clone()).collect(),
            types,
        };
        MappingOptions { key: Some(table.key()), existing: Some(existing), ..self }
    }

    /// Whether they say what a table that is created is like, so that it is not as its source defines it.
    pub fn shape_table(&self) -> bool {
        self.key.is_some() || self.row_number.is_some() || !self.sets.is_empty() || self.frozen
    }
}

/// The columns and types of an existing table.
///
/// A list becomes a list, a set or a vector, depending on the column; a group becomes the column's user-defined type, with fields
/// matched by name: a field missing from the file is null; or its tuple, whose members are called `_0`, `_1` and so on; or its
/// duration. Flat columns are converted to the table's types, if nothing is lost.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Existing {
    /// The table's columns.
    pub columns: Vec<(Name, CqlType)>,
    /// Its static columns. A row that has no other values, and nulls for the clustering columns, is a partition with only these.
    pub statics: Vec<Name>,
    /// The keyspace's user-defined types.
    pub types: Vec<TypeDef>,
}

/// What to do about nulls in lists, sets and maps, which CQL cannot hold. (It can hold null fields of a group.)
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum NullElements {
    /// It is an error that names row and path.
    #[default]
    Error,
    /// Leaves them out: null elements of a list or set, and entries of a map whose key or value is null.
    Drop,
}

/// What to do about equal keys in a map: CQL keeps only one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum DuplicateKeys {
    /// It is an error that names row, path and key.
    #[default]
    Error,
    /// The last entry with a key wins. (Entries that [`NullElements::Drop`] leaves out do not count.)
    Last,
}

/// What to do about text (STRING, ENUM, JSON) that is not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum InvalidUtf8 {
    /// It is an error that names row and column.
    #[default]
    Error,
    /// Invalid bytes are replaced by U+FFFD, `�`.
    Replace,
    /// All text columns become `blob`, and no text is checked, because the table is created before the text is read.
    Blob,
}

/// How nulls are printed in `INSERT` statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Nulls {
    /// The row's statement does not name the column, so nothing is written.
    #[default]
    Unset,
    /// Written as `null`, which deletes: a server keeps a tombstone for each.
    Null,
}
