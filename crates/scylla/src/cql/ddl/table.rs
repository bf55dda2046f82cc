//! `CREATE TABLE`, `CREATE TYPE` and the head of an `INSERT`.

use super::{KeyPart, KeySpec, Order};
use crate::cql::identifier::{Name, TableName, find_duplicate};
use crate::cql::literal;
use crate::cql::types::CqlType;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::{self, Write};

/// A column of a [`TableDef`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnDef {
    /// Its name.
    pub name: Name,
    /// Its type.
    pub cql_type: CqlType,
    /// Whether all rows of a partition share its value.
    pub is_static: bool,
}

/// A table. `Display` prints its `CREATE TABLE`, with a semicolon and a line end; call [`TableDef::check`] first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableDef {
    /// Its keyspace and name.
    pub table: TableName,
    /// Prints `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// Its columns, in the order they are printed.
    pub columns: Vec<ColumnDef>,
    /// The partition key: positions in `columns`.
    pub partition_key: Vec<usize>,
    /// The clustering columns: positions in `columns`.
    pub clustering: Vec<(usize, Order)>,
    /// The table's comment.
    pub comment: Option<String>,
}

impl TableDef {
    /// Checks what a server would refuse.
    ///
    /// # Errors
    /// The first [`TableError`] found.
    pub fn check(&self) -> Result<(), TableError> {
        let name = |at: usize| self.columns[at].name.clone();
        if self.partition_key.is_empty() {
            return Err(TableError::NoPartitionKey);
        }
        check_distinct(self.columns.iter().map(|column| &column.name))?;
        let mut in_key = alloc::vec![false; self.columns.len()];
        for at in self.key_positions() {
            let column = self.columns.get(at).ok_or(TableError::NoSuchColumn { position: at })?;
            if core::mem::replace(&mut in_key[at], true) {
                return Err(TableError::KeyTwice { name: name(at) });
            }
            if column.is_static {
                return Err(TableError::StaticKey { name: name(at) });
            }
            if !column.cql_type.can_be_key() {
                return Err(TableError::KeyType { name: name(at), cql_type: column.cql_type.clone() });
            }
        }
        let mut counters = None;
        for (at, column) in self.columns.iter().enumerate().filter(|(at, _)| !in_key[*at]) {
            if column.is_static && self.clustering.is_empty() {
                return Err(TableError::StaticWithoutClustering { name: name(at) });
            }
            let is_counter = column.cql_type == CqlType::Counter;
            if *counters.get_or_insert(is_counter) != is_counter {
                return Err(TableError::CounterMix { name: name(at) });
            }
        }
        Ok(())
    }

    /// The primary key, as a person would type it.
    #[must_use]
    pub fn key(&self) -> KeySpec {
        let part = |at: &usize| KeyPart {
            text: self.columns.get(*at).map(|column| column.name.as_str().to_string()).unwrap_or_default(),
            quoted: true,
        };
        KeySpec {
            partition: self.partition_key.iter().map(part).collect(),
            clustering: self.clustering.iter().map(|(at, order)| (part(at), *order)).collect(),
        }
    }

    fn key_positions(&self) -> impl Iterator<Item = usize> + '_ {
        self.partition_key.iter().copied().chain(self.clustering.iter().map(|(at, _)| *at))
    }

    /// The name of a key column; empty for a position that [`TableDef::check`] refuses.
    fn key_name(&self, at: usize) -> &dyn fmt::Display {
        self.columns.get(at).map_or(&"", |column| &column.name)
    }
}

impl fmt::Display for TableDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let condition = if self.if_not_exists { "IF NOT EXISTS " } else { "" };
        writeln!(f, "CREATE TABLE {condition}{} (", self.table)?;
        for column in &self.columns {
            let suffix = if column.is_static { " STATIC" } else { "" };
            writeln!(f, "    {} {}{suffix},", column.name, column.cql_type)?;
        }
        f.write_str("    PRIMARY KEY (")?;
        let composite = self.partition_key.len() > 1;
        f.write_str(if composite { "(" } else { "" })?;
        for (nth, at) in self.partition_key.iter().enumerate() {
            write!(f, "{}{}", comma(nth), self.key_name(*at))?;
        }
        f.write_str(if composite { ")" } else { "" })?;
        for (at, _) in &self.clustering {
            write!(f, ", {}", self.key_name(*at))?;
        }
        f.write_str(")\n)")?;
        let mut option = " WITH ";
        // Only the first columns up to the last descending one need to be named, but all of them are clearer.
        if self.clustering.iter().any(|(_, order)| *order == Order::Descending) {
            write!(f, "{option}CLUSTERING ORDER BY (")?;
            for (nth, (at, order)) in self.clustering.iter().enumerate() {
                let order = if *order == Order::Ascending { "ASC" } else { "DESC" };
                write!(f, "{}{} {order}", comma(nth), self.key_name(*at))?;
            }
            f.write_char(')')?;
            option = "\n  AND ";
        }
        if let Some(comment) = &self.comment {
            let mut text = Vec::new();
            literal::text(&mut text, comment);
            write!(f, "{option}comment = {}", core::str::from_utf8(&text).map_err(|_| fmt::Error)?)?;
        }
        f.write_str(";\n")
    }
}

/// A user-defined type. `Display` prints its `CREATE TYPE`, with a semicolon and a line end; call [`TypeDef::check`]
/// first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeDef {
    /// Its keyspace. `None`: the session's.
    pub keyspace: Option<Name>,
    /// Its name.
    pub name: Name,
    /// Prints `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// Its fields, in order. Types that can be frozen are printed as frozen.
    pub fields: Vec<(Name, CqlType)>,
}

impl TypeDef {
    /// Checks what a server would refuse.
    ///
    /// # Errors
    /// The first [`TableError`] found.
    pub fn check(&self) -> Result<(), TableError> {
        if self.fields.is_empty() {
            return Err(TableError::NoFields { name: self.name.clone() });
        }
        check_distinct(self.fields.iter().map(|(name, _)| name))?;
        match self.fields.iter().find(|(_, cql_type)| *cql_type == CqlType::Counter) {
            Some((name, _)) => Err(TableError::CounterMix { name: name.clone() }),
            None => Ok(()),
        }
    }
}

impl fmt::Display for TypeDef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let condition = if self.if_not_exists { "IF NOT EXISTS " } else { "" };
        let cql_type = CqlType::Udt { keyspace: self.keyspace.clone(), name: self.name.clone() };
        writeln!(f, "CREATE TYPE {condition}{cql_type} (")?;
        for (nth, (name, cql_type)) in self.fields.iter().enumerate() {
            let end = if nth + 1 < self.fields.len() { "," } else { "" };
            writeln!(f, "    {name} {}{end}", cql_type.nested())?;
        }
        f.write_str(");\n")
    }
}

/// `INSERT INTO table (columns) VALUES (`, the same for every row.
pub fn insert_prefix<'a>(table: &TableName, columns: impl IntoIterator<Item = &'a Name>) -> String {
    let mut prefix = String::new();
    // Writing to memory does not fail.
    let _ = write!(prefix, "INSERT INTO {table} (");
    for (nth, name) in columns.into_iter().enumerate() {
        let _ = write!(prefix, "{}{name}", comma(nth));
    }
    prefix.push_str(") VALUES (");
    prefix
}

/// Why a server would refuse a table or a type.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TableError {
    /// No partition key.
    NoPartitionKey,
    /// A type has no fields.
    NoFields {
        /// The type.
        name: Name,
    },
    /// Two columns or fields with the same name in CQL.
    Duplicate {
        /// Their name.
        name: Name,
        /// The position of the first.
        first: usize,
        /// The position of the second.
        second: usize,
    },
    /// The key has a position without a column.
    NoSuchColumn {
        /// The position.
        position: usize,
    },
    /// A column is twice in the key.
    KeyTwice {
        /// The column.
        name: Name,
    },
    /// A key column is static.
    StaticKey {
        /// The column.
        name: Name,
    },
    /// A key column of a type that cannot be in a key.
    KeyType {
        /// The column.
        name: Name,
        /// Its type.
        cql_type: CqlType,
    },
    /// A static column in a table without clustering columns.
    StaticWithoutClustering {
        /// The column.
        name: Name,
    },
    /// A counter together with other columns, or in a type.
    CounterMix {
        /// The column or field.
        name: Name,
    },
}

impl fmt::Display for TableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPartitionKey => f.write_str("the table has no partition key"),
            Self::NoFields { name } => write!(f, "the type {name} has no fields"),
            Self::Duplicate { name, first, second } => {
                write!(f, "columns {} and {} are both {name} in CQL", first + 1, second + 1)
            }
            Self::NoSuchColumn { position } => {
                write!(f, "the key has column {}, but there is none", position + 1)
            }
            Self::KeyTwice { name } => write!(f, "{name} is twice in the key"),
            Self::StaticKey { name } => write!(f, "{name} is in the key and cannot be static"),
            Self::KeyType { name, cql_type } => {
                write!(f, "{name} cannot be in the key: CQL allows no {cql_type} there")
            }
            Self::StaticWithoutClustering { name } => {
                write!(f, "{name} cannot be static: the table has no clustering columns")
            }
            Self::CounterMix { name } => {
                write!(f, "{name}: counters stand only beside counters, and not in a type")
            }
        }
    }
}

impl core::error::Error for TableError {}

fn check_distinct<'a>(names: impl Iterator<Item = &'a Name>) -> Result<(), TableError> {
    let names: Vec<Name> = names.cloned().collect();
    match find_duplicate(&names) {
        Some((first, second)) => Err(TableError::Duplicate { name: names[second].clone(), first, second }),
        None => Ok(()),
    }
}

fn comma(nth: usize) -> &'static str {
    if nth == 0 { "" } else { ", " }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Name {
        Name::new(text).unwrap()
    }

    fn table(columns: &[(&str, &str)], partition_key: &[usize], clustering: &[(usize, Order)]) -> TableDef {
        TableDef {
            table: TableName::parse("ks.\"T\"").unwrap(),
            if_not_exists: false,
            columns: columns
                .iter()
                .map(|(text, cql_type)| ColumnDef {
                    name: name(text),
                    cql_type: CqlType::parse(cql_type).unwrap(),
                    is_static: false,
                })
                .collect(),
            partition_key: partition_key.to_vec(),
            clustering: clustering.to_vec(),
            comment: None,
        }
    }

    #[test]
    fn smallest_table() {
        let table = table(&[("a", "int")], &[0], &[]);
        assert_eq!(table.check(), Ok(()));
        assert_eq!(table.to_string(), "CREATE TABLE ks.\"T\" (\n    a int,\n    PRIMARY KEY (a)\n);\n");
    }

    #[test]
    fn table_with_everything() {
        let mut table = table(
            &[("a", "int"), ("B c", "text"), ("d", "date"), ("e", "time"), ("order", "map<text,list<int>>")],
            &[0, 1],
            &[(2, Order::Ascending), (3, Order::Descending)],
        );
        table.columns[4].is_static = true;
        table.if_not_exists = true;
        table.comment = Some("it's".into());
        assert_eq!(table.check(), Ok(()));
        let names: Vec<Name> = table.columns.iter().map(|column| column.name.clone()).collect();
        assert_eq!(table.key().resolve(&names), Ok((table.partition_key.clone(), table.clustering.clone())));
        assert_eq!(
            table.to_string(),
            "CREATE TABLE IF NOT EXISTS ks.\"T\" (\n    a int,\n    \"B c\" text,\n    d date,\n    e time,\n    \
             \"order\" map<text, frozen<list<int>>> STATIC,\n    PRIMARY KEY ((a, \"B c\"), d, e)\n) WITH \
             CLUSTERING ORDER BY (d ASC, e DESC)\n  AND comment = 'it''s';\n"
        );
        table.clustering[1].1 = Order::Ascending;
        assert!(table.to_string().ends_with("\n) WITH comment = 'it''s';\n"));
    }

    #[test]
    fn refused_tables() {
        let columns = [("a", "int"), ("b", "duration"), ("c", "counter")];
        let error = |table: TableDef| table.check().unwrap_err();
        assert_eq!(error(table(&columns, &[], &[])), TableError::NoPartitionKey);
        assert_eq!(error(table(&columns, &[3], &[])), TableError::NoSuchColumn { position: 3 });
        assert_eq!(error(table(&columns, &[0, 0], &[])), TableError::KeyTwice { name: name("a") });
        assert_eq!(
            error(table(&columns, &[1], &[])),
            TableError::KeyType { name: name("b"), cql_type: CqlType::Duration }
        );
        assert_eq!(error(table(&columns, &[0], &[])), TableError::CounterMix { name: name("c") });
        assert_eq!(
            error(table(&[("a", "int"), ("A", "int"), ("a", "text")], &[0], &[])),
            TableError::Duplicate { name: name("a"), first: 0, second: 2 }
        );
        let mut statics = table(&columns[..2], &[0], &[]);
        statics.columns[1].is_static = true;
        assert_eq!(error(statics.clone()), TableError::StaticWithoutClustering { name: name("b") });
        statics.columns[0].is_static = true;
        assert_eq!(error(statics), TableError::StaticKey { name: name("a") });
    }

    #[test]
    fn types_freeze_their_fields() {
        let mut def = TypeDef {
            keyspace: Some(name("ks")),
            name: name("date"),
            if_not_exists: false,
            fields: ["int", "list<int>", "other"]
                .iter()
                .map(|text| (name(&text[..1]), CqlType::parse(text).unwrap()))
                .collect(),
        };
        assert_eq!(def.check(), Ok(()));
        assert_eq!(
            def.to_string(),
            "CREATE TYPE ks.\"date\" (\n    i int,\n    l frozen<list<int>>,\n    o frozen<other>\n);\n"
        );
        def.fields[1].0 = name("i");
        assert_eq!(def.check(), Err(TableError::Duplicate { name: name("i"), first: 0, second: 1 }));
        def.fields.clear();
        assert_eq!(def.check(), Err(TableError::NoFields { name: name("date") }));
    }

    #[test]
    fn insert_heads() {
        let table = TableName::parse("Ks.t").unwrap();
        assert_eq!(insert_prefix(&table, &[name("a"), name("B")]), "INSERT INTO ks.t (a, \"B\") VALUES (");
    }
}
