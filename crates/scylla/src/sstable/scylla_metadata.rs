//! Scylla.db: what ScyllaDB adds to an SSTable. Of that, the table's schema (the names of its columns), and what made the SSTable.
//!
//! The file is a list of parts, each after its number and its length; part 6 has the origin, and part 11 the schema, in files of
//! recent versions. (ScyllaDB's
//! documents: `sstable-scylla-format.md`. Not checked with a file of ScyllaDB.)

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use marquetry_base::{Budget, Error, Limit, Limits, Object, Release, Result};

use super::elements::{ComponentReader, Cursor, Elements, Fault, Going, Parser, text};
use super::table_columns::KeyNames;

/// What Scylla.db holds, as far as it is of use here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScyllaMetadata {
    /// The table, if the file says it.
    pub schema: Option<ScyllaSchema>,
    /// What made the SSTable, if the file says it: `memtable` for a flush, `compaction`, `streaming` and so on.
    pub origin: Option<String>,
}

/// The table of an SSTable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScyllaSchema {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub table: String,
    /// Its columns, in the order of the file.
    pub columns: Vec<SchemaColumn>,
}

/// A column of a [`ScyllaSchema`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaColumn {
    /// What it is.
    pub kind: ColumnKind,
    /// Its name.
    pub name: String,
    /// The class of its type, as [`MarshalType`](super::marshal::MarshalType) parses it.
    pub class: String,
}

/// What a column is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColumnKind {
    /// Of the partition key.
    PartitionKey,
    /// Of the clustering key.
    Clustering,
    /// A static one.
    Static,
    /// Any other.
    Regular,
}

impl ScyllaSchema {
    /// The names of the key columns.
    pub fn key_names(&self) -> KeyNames {
        KeyNames {
            partition_key: self.names(ColumnKind::PartitionKey),
            clustering: self.names(ColumnKind::Clustering),
        }
    }

    /// The names of the columns of a kind, in their order.
    pub fn names(&self, kind: ColumnKind) -> Vec<String> {
        self.columns.iter().filter(|column| column.kind == kind).map(|column| column.name.clone()).collect()
    }
}

/// Reads Scylla.db.
pub type ScyllaMetadataReader = ComponentReader<ScyllaMetadataParser>;

/// What a [`ScyllaMetadataReader`] has read.
#[derive(Debug)]
pub struct ScyllaMetadataParser {
    expects: Expects,
    made: ScyllaMetadata,
}

#[derive(Debug, Clone, Copy)]
enum Expects {
    Count,
    Part {
        left: u32,
    },
    /// The schema, which ends at a place.
    Table {
        left: u32,
        end: u64,
    },
    Columns {
        left: u32,
        end: u64,
        columns: u32,
    },
    /// The origin, which ends at a place.
    Origin {
        left: u32,
        end: u64,
    },
}

/// The numbers of the parts that have the origin and the schema.
const ORIGIN: u32 = 6;
const SCHEMA: u32 = 11;

impl ScyllaMetadataReader {
    /// A reader of the Scylla.db that `object` is.
    pub fn new(object: Object, limits: Limits) -> ScyllaMetadataReader {
        let limit = (Limit::PageIndexBytes, limits.page_index_bytes);
        let parser = ScyllaMetadataParser { expects: Expects::Count, made: ScyllaMetadata::default() };
        ComponentReader::of(Elements::new(object, "Scylla.db", limit, &limits), parser)
    }
}

impl Parser for ScyllaMetadataParser {
    type Product = ScyllaMetadata;

    fn next(
        &mut self,
        elements: &mut Elements,
        budget: &mut Budget<'_>,
    ) -> Result<Going<Option<ScyllaMetadata>>> {
        let going = match self.expects {
            Expects::Count => {
                elements.next(budget, |cursor| cursor.u32())?.map(|left| Expects::Part { left })
            }
            // A digest may follow.
            Expects::Part { left: 0 } => return Ok(Going::Done(Some(core::mem::take(&mut self.made)))),
            Expects::Part { left } => {
                let read = elements.next(budget, |cursor| Ok((cursor.u32()?, u64::from(cursor.u32()?))))?;
                let (number, bytes) = match read {
                    Going::Done(part) => part,
                    Going::Need(demand) => return Ok(Going::Need(demand)),
                };
                if bytes > elements.left() {
                    return Err(elements.corrupt("a part that goes on beyond the end", elements.at()));
                }
                let end = elements.at() + bytes;
                if number == SCHEMA && self.made.schema.is_none() {
                    Going::Done(Expects::Table { left: left - 1, end })
                } else if number == ORIGIN && self.made.origin.is_none() {
                    Going::Done(Expects::Origin { left: left - 1, end })
                } else {
                    elements.skip(bytes);
                    Going::Done(Expects::Part { left: left - 1 })
                }
            }
            Expects::Table { left, end } => {
                let read = elements.next(budget, |cursor| {
                    // The identifiers of the table, and of its schema's version.
                    cursor.take(2 * 16)?;
                    let (keyspace, table) = (long_text(cursor)?, long_text(cursor)?);
                    Ok((keyspace, table, cursor.u32()?))
                })?;
                read.map(|(keyspace, table, columns)| {
                    self.made.schema = Some(ScyllaSchema { keyspace, table, columns: Vec::new() });
                    Expects::Columns { left, end, columns }
                })
            }
            Expects::Origin { left, end } => {
                let origin = match elements.next(budget, long_text)? {
                    Going::Done(origin) => origin,
                    Going::Need(demand) => return Ok(Going::Need(demand)),
                };
                if elements.at() != end {
                    return Err(elements.corrupt("an origin that is not as long as it says", elements.at()));
                }
                self.made.origin = Some(origin);
                Going::Done(Expects::Part { left })
            }
            Expects::Columns { left, end, columns: 0 } => {
                if elements.at() != end {
                    return Err(elements.corrupt("a schema that is not as long as it says", elements.at()));
                }
                Going::Done(Expects::Part { left })
            }
            Expects::Columns { left, end, columns } => {
                let read = elements.next(budget, column)?;
                read.map(|column| {
                    self.made.schema.get_or_insert_default().columns.push(column);
                    Expects::Columns { left, end, columns: columns - 1 }
                })
            }
        };
        Ok(going.map(|expects| {
            self.expects = expects;
            None
        }))
    }
}

fn column(cursor: &mut Cursor<'_>) -> Result<SchemaColumn, Fault> {
    let kind = match cursor.u8()? {
        1 => ColumnKind::PartitionKey,
        2 => ColumnKind::Clustering,
        3 => ColumnKind::Static,
        4 => ColumnKind::Regular,
        other => return Err(Error::corrupt(format!("a column of the kind {other}")).into()),
    };
    Ok(SchemaColumn { kind, name: long_text(cursor)?, class: long_text(cursor)? })
}

/// Text after its length of 32 bits.
fn long_text(cursor: &mut Cursor<'_>) -> Result<String, Fault> {
    let length = cursor.u32()?;
    text(cursor.long(u64::from(length))?).map(str::to_string)
}

impl Release for ScyllaMetadataParser {}
