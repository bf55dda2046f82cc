//! The texts of statements.
//!
//! There are few of them, whatever the rows are: a statement names all columns, and those that it does not write are bound to UNSET.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Error, Result};

use crate::bridge::mutations::shape::Multi;
use crate::cql::{Name, TableName, insert_prefix};
use crate::sstable::TableColumns;
use crate::sstable::marshal::MarshalType;

/// Which statement it is, of those of a table: [`StatementTexts::text`] has its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StatementId(u32);

impl StatementId {
    /// It as a number, to be kept or sent.
    pub fn number(self) -> u32 {
        self.0
    }

    /// The statement that has a number; if none has, it has no text.
    pub fn of_number(number: u32) -> StatementId {
        StatementId(number)
    }
}

/// What a statement does. What is bound is, in this order:
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The key, the regular columns, TTL: writes a row marker, too.
    Insert,
    /// TTL, the regular columns, the key.
    Update,
    /// TTL, the static columns, the partition key.
    UpdateStatics,
    /// The partition key.
    DeletePartition,
    /// The key.
    DeleteRow,
    /// The partition key: deletes all static columns.
    DeleteStatics,
    /// TTL, a value, the key: replaces a collection.
    Whole(u32),
    /// TTL, a value, the key: adds elements to a collection.
    Add(u32),
    /// A set of elements or keys, the key: deletes these elements of a collection.
    Remove(u32),
    /// TTL, the fields of a user-defined type, the key.
    Fields(u32),
    /// TTL, the key of a list's element, its value or null, the key: only ScyllaDB knows it.
    Element(u32),
    /// The key: deletes all of a column.
    Delete(u32),
    /// The partition key, `prefix` clustering values, a value for each end that there is: deletes rows.
    Range(Slice),
}

/// Rows with the same first clustering values, between two values of the next column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slice {
    /// Clustering values that are the same.
    pub(super) prefix: u32,
    /// Whether there is a least value of the next column, and whether it is one of them.
    pub(super) least: Edge,
    pub(super) greatest: Edge,
}

/// An end of a slice, in the order of values (not of the table).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edge {
    /// There is none.
    Open,
    Inclusive,
    Exclusive,
}

impl Edge {
    const ALL: [Edge; 3] = [Edge::Open, Edge::Inclusive, Edge::Exclusive];

    fn number(self) -> u32 {
        match self {
            Edge::Open => 0,
            Edge::Inclusive => 1,
            Edge::Exclusive => 2,
        }
    }
}

/// The kind is in the lowest four bits of a number, and what it is of above them.
const KIND_BITS: u32 = 4;

impl Kind {
    pub(super) fn id(self) -> StatementId {
        let (kind, of) = match self {
            Kind::Insert => (0, 0),
            Kind::Update => (1, 0),
            Kind::UpdateStatics => (2, 0),
            Kind::DeletePartition => (3, 0),
            Kind::DeleteRow => (4, 0),
            Kind::DeleteStatics => (5, 0),
            Kind::Whole(column) => (6, column),
            Kind::Add(column) => (7, column),
            Kind::Remove(column) => (8, column),
            Kind::Fields(column) => (9, column),
            Kind::Delete(column) => (10, column),
            Kind::Element(column) => (12, column),
            Kind::Range(Slice { prefix, least, greatest }) => {
                (11, (prefix * 3 + least.number()) * 3 + greatest.number())
            }
        };
        StatementId(of << KIND_BITS | kind)
    }

    fn of(id: StatementId) -> Option<Kind> {
        let of = id.0 >> KIND_BITS;
        let edge = |number: u32| Edge::ALL.get(usize_of_u32(number % 3)).copied();
        Some(match id.0 & ((1 << KIND_BITS) - 1) {
            0 => Kind::Insert,
            1 => Kind::Update,
            2 => Kind::UpdateStatics,
            3 => Kind::DeletePartition,
            4 => Kind::DeleteRow,
            5 => Kind::DeleteStatics,
            6 => Kind::Whole(of),
            7 => Kind::Add(of),
            8 => Kind::Remove(of),
            9 => Kind::Fields(of),
            10 => Kind::Delete(of),
            12 => Kind::Element(of),
            11 => Kind::Range(Slice { prefix: of / 9, least: edge(of / 3)?, greatest: edge(of)? }),
            _ => return None,
        })
    }
}

/// The statements of a table.
#[derive(Debug, Clone)]
pub struct StatementTexts {
    table: TableName,
    partition_key: Vec<Name>,
    clustering: Vec<Name>,
    /// Static columns, and then the others.
    cells: Vec<Column>,
    statics: usize,
}

/// A column with cells.
#[derive(Debug, Clone)]
struct Column {
    name: Name,
    multi: Multi,
    /// Of a user-defined type that is not frozen.
    fields: Vec<Name>,
}

impl StatementTexts {
    pub(super) fn new(columns: &TableColumns, table: &TableName) -> Result<StatementTexts> {
        let name = |text: &str| {
            Name::new(text).map_err(|error| Error::unsupported(format!("the column {text:?}: {error}")))
        };
        let keys = |keys: &[crate::sstable::KeyColumn]| {
            keys.iter().map(|key| name(&key.name)).collect::<Result<Vec<_>>>()
        };
        let cells = columns.cells().map(|column| {
            let text = core::str::from_utf8(&column.name)
                .map_err(|_| Error::unsupported("a column whose name is not UTF-8"))?;
            let fields = match &column.kind {
                MarshalType::User { fields, .. } => {
                    fields.iter().map(|(field, _)| name(field)).collect::<Result<_>>()?
                }
                _ => Vec::new(),
            };
            Ok(Column { name: name(text)?, multi: Multi::of(&column.kind), fields })
        });
        Ok(StatementTexts {
            table: table.clone(),
            partition_key: keys(&columns.partition_key)?,
            clustering: keys(&columns.clustering)?,
            cells: cells.collect::<Result<_>>()?,
            statics: columns.statics.len(),
        })
    }

    /// The text of a statement, with a `?` for each value.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Misuse`](marquetry_base::ErrorKind::Misuse) for a statement that the table does not have.
    pub fn text(&self, id: StatementId) -> Result<String> {
        let none = || Error::misuse(format!("the table has no statement {}", id.0));
        let kind = Kind::of(id).ok_or_else(none)?;
        let (table, column) = (&self.table, |number| self.cells.get(usize_of_u32(number)).ok_or_else(none));
        let update = |what: String, columns: &str, is_static: bool| {
            format!("UPDATE {table}{what} SET {columns} WHERE {}", self.key(is_static))
        };
        let ttl = || " USING TTL ?".to_string();
        let is_static = |number: u32| usize_of_u32(number) < self.statics;
        Ok(match kind {
            Kind::Insert => {
                let columns: Vec<&Name> = self
                    .partition_key
                    .iter()
                    .chain(&self.clustering)
                    .chain(self.cells.iter().skip(self.statics).map(|column| &column.name))
                    .collect();
                let marks = alloc::vec!["?"; columns.len()].join(", ");
                format!("{}{marks}) USING TTL ?", insert_prefix(table, columns))
            }
            Kind::Update => update(ttl(), &all(self.cells.get(self.statics..).unwrap_or_default()), false),
            Kind::UpdateStatics => {
                update(ttl(), &all(self.cells.get(..self.statics).unwrap_or_default()), true)
            }
            Kind::Whole(number) => update(ttl(), &format!("{} = ?", column(number)?.name), is_static(number)),
            Kind::Add(number) => {
                let name = &column(number)?.name;
                update(ttl(), &format!("{name} = {name} + ?"), is_static(number))
            }
            Kind::Remove(number) => {
                let name = &column(number)?.name;
                update(String::new(), &format!("{name} = {name} - ?"), is_static(number))
            }
            Kind::Fields(number) => {
                let Column { name, fields, .. } = column(number)?;
                let fields: Vec<String> = fields.iter().map(|field| format!("{name}.{field} = ?")).collect();
                update(ttl(), &fields.join(", "), is_static(number))
            }
            Kind::Element(number) => {
                let set = format!("{}[SCYLLA_TIMEUUID_LIST_INDEX(?)] = ?", column(number)?.name);
                update(ttl(), &set, is_static(number))
            }
            Kind::Delete(number) => {
                format!("DELETE {} FROM {table} WHERE {}", column(number)?.name, self.key(is_static(number)))
            }
            Kind::DeletePartition => format!("DELETE FROM {table} WHERE {}", self.key(true)),
            Kind::DeleteRow => format!("DELETE FROM {table} WHERE {}", self.key(false)),
            Kind::DeleteStatics => {
                let statics: Vec<String> =
                    self.cells.iter().take(self.statics).map(|column| column.name.to_string()).collect();
                format!("DELETE {} FROM {table} WHERE {}", statics.join(", "), self.key(true))
            }
            Kind::Range(Slice { prefix, least, greatest }) => {
                let prefix = usize_of_u32(prefix);
                let same = self.clustering.get(..prefix).ok_or_else(none)?;
                let mut text = format!("DELETE FROM {table} WHERE {}", self.key(true));
                for name in same {
                    text.push_str(&format!(" AND {name} = ?"));
                }
                for (edge, with, without) in [(least, ">=", ">"), (greatest, "<=", "<")] {
                    let sign = match edge {
                        Edge::Open => continue,
                        Edge::Inclusive => with,
                        Edge::Exclusive => without,
                    };
                    let name = self.clustering.get(prefix).ok_or_else(none)?;
                    text.push_str(&format!(" AND {name} {sign} ?"));
                }
                text
            }
        })
    }

    /// Whether a statement may be sent again without harm: the table is the same, however often it is applied. One that adds to a list,
    /// or replaces it, is not so: elements get keys that the server makes, so they would be there twice.
    pub fn is_idempotent(&self, id: StatementId) -> bool {
        match Kind::of(id) {
            Some(Kind::Whole(number) | Kind::Add(number)) => {
                self.cells.get(usize_of_u32(number)).is_some_and(|column| column.multi != Multi::List)
            }
            _ => true,
        }
    }

    /// The statement that most rows need: a table that is not as it should be refuses it.
    pub fn usual(&self) -> StatementId {
        Kind::Insert.id()
    }

    /// Whether a statement replaces a collection.
    pub fn is_replacing(&self, id: StatementId) -> bool {
        matches!(Kind::of(id), Some(Kind::Whole(_)))
    }

    /// A column by its number, as [`Statement::list`](super::Statement::list) has it.
    pub fn column(&self, number: u32) -> Option<&Name> {
        self.cells.get(usize_of_u32(number)).map(|column| &column.name)
    }

    /// The columns of lists that are not frozen.
    pub fn lists(&self) -> Vec<&Name> {
        let lists = self.cells.iter().filter(|column| column.multi == Multi::List);
        lists.map(|column| &column.name).collect()
    }

    fn key(&self, is_static: bool) -> String {
        let clustering: &[Name] = if is_static { &[] } else { &self.clustering };
        let all: Vec<String> =
            self.partition_key.iter().chain(clustering).map(|name| format!("{name} = ?")).collect();
        all.join(" AND ")
    }
}

/// `a = ?, b = ?`
fn all(columns: &[Column]) -> String {
    let columns: Vec<String> = columns.iter().map(|column| format!("{} = ?", column.name)).collect();
    columns.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_numbers_and_back() {
        let slice = |prefix, least, greatest| Kind::Range(Slice { prefix, least, greatest });
        let mut ids = Vec::new();
        let of_columns = [Kind::Whole, Kind::Add, Kind::Remove, Kind::Fields, Kind::Delete, Kind::Element];
        let mut kinds = alloc::vec![
            Kind::Insert,
            Kind::Update,
            Kind::UpdateStatics,
            Kind::DeletePartition,
            Kind::DeleteRow,
            Kind::DeleteStatics,
        ];
        kinds.extend((0..3).flat_map(|column| of_columns.map(|kind| kind(column))));
        for prefix in 0..3 {
            for least in Edge::ALL {
                kinds.extend(Edge::ALL.map(|greatest| slice(prefix, least, greatest)));
            }
        }
        for kind in kinds {
            assert_eq!(Kind::of(kind.id()), Some(kind));
            assert_eq!(StatementId::of_number(kind.id().number()), kind.id());
            ids.push(kind.id());
        }
        let count = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), count);
        assert_eq!(Kind::of(StatementId(15)), None);
    }
}
