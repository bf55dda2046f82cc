//! Which of some definitions SSTables are of.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use marquetry_base::{Error, Result};

use super::merge::Liveness;
use super::statistics::SerializationHeader;
use super::table_columns::{KeyNames, TableColumns};
use crate::cql::{Definitions, Name, TableDef, TableName, ViewDef};

/// What is known of a table besides its SSTables, as far as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KnownName<'a> {
    /// Its keyspace.
    pub keyspace: Option<&'a str>,
    /// Its name.
    pub table: Option<&'a str>,
}

/// The table or the view that SSTables are of, by definitions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TableOf {
    /// Its columns.
    pub columns: TableColumns,
    /// What it is called.
    pub name: String,
    /// What its rows need to be alive.
    pub liveness: Liveness,
}

impl TableOf {
    /// What the definitions say of the table whose SSTables have these headers. `None` if it is not among them; but a table of another name
    /// is it, if it is the only one that the SSTables fit, and, unless the definitions were given for these SSTables, nothing says what the
    /// name is.
    ///
    /// # Errors
    ///
    /// As [`TableColumns::of_definition`]; `Misuse` if definitions that were given fit as two tables.
    pub fn find(
        made: &Definitions,
        headers: &[&SerializationHeader],
        known: KnownName<'_>,
        is_given: bool,
    ) -> Result<Option<TableOf>> {
        let defined = |table: &TableDef| {
            let mut columns = TableColumns::of_definition(headers, table, &made.types)?;
            for dropped in made.dropped.iter().filter(|it| it.table == table.table) {
                columns.leave_out_before(dropped.name.as_str(), dropped.timestamp);
            }
            Ok::<_, Error>(TableOf { columns, name: table.table.to_string(), liveness: Liveness::Anything })
        };
        if let Some(table) = made.tables.iter().find(|table| known.is_of(&table.table)) {
            return defined(table).map(Some);
        }
        let only_view = match (&*made.tables, &*made.views) {
            ([], [view]) if is_given => Some(view),
            _ => None,
        };
        if let Some(view) = made.views.iter().find(|view| known.is_of(&view.view)).or(only_view) {
            let columns = TableColumns::new(headers, Some(&names_of(view)))?;
            let (name, liveness) = (view.view.to_string(), liveness_of(view, made));
            return Ok(Some(TableOf { columns, name, liveness }));
        }
        if known.table.is_some() && !is_given {
            return Ok(None);
        }
        if let ([table], [], true) = (&*made.tables, &*made.views, is_given) {
            return defined(table).map(Some);
        }
        // A stranger's table may have such keys, too: only one that has all columns is taken for theirs.
        let fitting = made.tables.iter().filter_map(|table| defined(table).ok());
        let mut fitting = fitting.filter(|it| is_given || it.columns.left_out().next().is_none());
        match (fitting.next(), fitting.next()) {
            (Some(only), None) => Ok(Some(only)),
            (Some(one), Some(other)) if is_given => Err(Error::misuse(format!(
                "the SSTables may be of {} and of {}, by their columns: give the definition of one",
                one.name, other.name
            ))),
            _ => Ok(None),
        }
    }

    /// The error for definitions that were given, and of which none is the table's.
    pub fn not_there(made: &Definitions, known: KnownName<'_>) -> Error {
        let name = known.to_text().map_or_else(String::new, |name| format!(" {name}, or"));
        Error::misuse(match made.tables.len() {
            0 => "no CREATE TABLE, which SSTables want".to_owned(),
            count => {
                let tables = if count == 1 { "table is" } else { "tables are" };
                format!("no definition of{name} a table that the SSTables are of ({count} {tables} defined)")
            }
        })
    }
}

impl KnownName<'_> {
    /// Whether it may be the name of this table: its own name is known, and nothing else contradicts.
    pub fn is_of(self, table: &TableName) -> bool {
        let is_keyspace = |keyspace: &Name| self.keyspace.is_none_or(|its| its == keyspace.as_str());
        self.table == Some(table.table.as_str()) && table.keyspace.as_ref().is_none_or(is_keyspace)
    }

    fn to_text(self) -> Option<String> {
        let table = self.table?;
        Some(match self.keyspace {
            Some(keyspace) => format!("{keyspace}.{table}"),
            None => table.to_owned(),
        })
    }
}

fn names_of(view: &ViewDef) -> KeyNames {
    let names =
        |columns: &[Name]| -> Vec<String> { columns.iter().map(|name| name.as_str().to_owned()).collect() };
    KeyNames { partition_key: names(&view.partition_key), clustering: names(&view.clustering) }
}

/// What rows of a view need to be alive: depends on whether its key has a column that is not in its table's.
fn liveness_of(view: &ViewDef, made: &Definitions) -> Liveness {
    let Some(base) = made.tables.iter().find(|table| table.table == view.base) else {
        return Liveness::NotExpired;
    };
    let is_key = |name: &Name| {
        let clustering = base.clustering.iter().map(|(at, _)| at);
        let mut key = base.partition_key.iter().chain(clustering).filter_map(|at| base.columns.get(*at));
        key.any(|column| column.name == *name)
    };
    match view.partition_key.iter().chain(&view.clustering).all(is_key) {
        true => Liveness::Anything,
        false => Liveness::Marker,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_views_live_by_their_keys() {
        let view = "CREATE MATERIALIZED VIEW ks.v AS SELECT * FROM ks.t WHERE a IS NOT NULL AND c IS NOT NULL PRIMARY KEY (a, c);";
        let liveness = |tables: &str| {
            let made = Definitions::parse(&format!("{tables}{view}")).unwrap();
            liveness_of(&made.views[0], &made)
        };
        assert_eq!(liveness("CREATE TABLE ks.t (c int PRIMARY KEY, a int);"), Liveness::Marker);
        assert_eq!(liveness("CREATE TABLE ks.t (c int, a int, PRIMARY KEY (c, a));"), Liveness::Anything);
        assert_eq!(
            liveness("CREATE TABLE other.t (c int, a int, PRIMARY KEY (c, a));"),
            Liveness::NotExpired
        );
    }

    #[test]
    fn names_contradict_or_not() {
        let is_of = |keyspace, table, name: &str| {
            KnownName { keyspace, table }.is_of(&TableName::parse(name).unwrap())
        };
        assert!(is_of(Some("ks"), Some("t"), "ks.t") && is_of(Some("ks"), Some("t"), "t"));
        assert!(is_of(None, Some("t"), "ks.t"));
        assert!(!is_of(Some("other"), Some("t"), "ks.t") && !is_of(None, None, "ks.t"));
        assert!(!is_of(Some("ks"), Some("u"), "ks.t"));
    }
}
