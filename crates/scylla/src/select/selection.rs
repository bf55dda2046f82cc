//! What is selected of a table, and the statement's text.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Write;

use marquetry_base::{Error, Result};

use crate::cql::{Name, TableName};
use crate::sstable::TableColumns;
use crate::sstable::marshal::MarshalType;

/// Which write times and times to live are selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Times {
    /// None.
    None,
    /// Those of columns with one value a row; not those of the elements of lists, sets, maps and user-defined types that are not frozen.
    Cells,
    /// Those of all columns, as Cassandra has them since 5.0: of a column with several cells, a list.
    Elements,
}

/// Which rows are selected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Partitions of a token range: `token(…) > ? AND token(…) <= ?`.
    Tokens,
    /// One partition: `a = ? AND b = ?`, in the order of the key.
    Partition,
}

/// What only some servers understand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dialect {
    /// ScyllaDB: what is read once need not replace what its cache holds.
    pub bypasses_cache: bool,
    /// ScyllaDB: how long the server may take for a page, in seconds, whatever it is configured to.
    pub timeout_seconds: Option<u32>,
}

/// The columns that are selected of a table: all of its key, and those that the [`TableColumns`] have.
#[derive(Debug, Clone)]
pub struct Selection {
    columns: Arc<TableColumns>,
    times: Times,
    partition: Vec<Name>,
    clustering: Vec<Name>,
    cells: Vec<Name>,
}

impl Selection {
    /// A selection of these columns.
    ///
    /// # Errors
    ///
    /// `Unsupported` for names that CQL cannot have.
    pub fn new(columns: Arc<TableColumns>, times: Times) -> Result<Selection> {
        let name = |text: &str| {
            Name::new(text).map_err(|error| Error::unsupported(format!("the column {text:?}: {error}")))
        };
        let partition = columns.partition_key.iter().map(|key| name(&key.name)).collect::<Result<_>>()?;
        let clustering = columns.clustering.iter().map(|key| name(&key.name)).collect::<Result<_>>()?;
        let cells = columns.cells().map(|column| {
            let text = core::str::from_utf8(&column.name);
            name(text.map_err(|_| Error::unsupported("a column whose name is not UTF-8"))?)
        });
        let cells = cells.collect::<Result<_>>()?;
        Ok(Selection { times, partition, clustering, cells, columns })
    }

    /// The columns.
    pub fn columns(&self) -> &Arc<TableColumns> {
        &self.columns
    }

    /// Which times are selected.
    pub fn times(&self) -> Times {
        self.times
    }

    /// The number of columns that a row of the answer has: key, then other columns, then the write time and the TTL of each that has them.
    pub fn width(&self) -> usize {
        let timed = self.columns.cells().filter(|column| self.has_times(&column.kind)).count();
        self.partition.len() + self.clustering.len() + self.cells.len() + 2 * timed
    }

    /// Whether times of a column are selected.
    pub(super) fn has_times(&self, kind: &MarshalType) -> bool {
        match self.times {
            Times::None => false,
            Times::Cells => !kind.is_multi_cell(),
            Times::Elements => true,
        }
    }

    /// The statement.
    pub fn statement(&self, table: &TableName, part: Part, dialect: Dialect) -> String {
        let values =
            self.partition.iter().chain(&self.clustering).chain(&self.cells).map(ToString::to_string);
        let timed = self.columns.cells().zip(&self.cells).filter(|(column, _)| self.has_times(&column.kind));
        let times = timed.flat_map(|(_, name)| [format!("WRITETIME({name})"), format!("TTL({name})")]);
        let selected: Vec<String> = values.chain(times).collect();
        let key: Vec<String> = self.partition.iter().map(ToString::to_string).collect();
        let conditions = match part {
            Part::Tokens => {
                let token = format!("token({})", key.join(", "));
                format!("{token} > ? AND {token} <= ?")
            }
            Part::Partition => key.iter().map(|name| format!("{name} = ?")).collect::<Vec<_>>().join(" AND "),
        };
        let mut text = format!("SELECT {} FROM {table} WHERE {conditions}", selected.join(", "));
        if dialect.bypasses_cache {
            text.push_str(" BYPASS CACHE");
        }
        if let Some(seconds) = dialect.timeout_seconds {
            // Writing to memory does not fail.
            let _ = write!(text, " USING TIMEOUT {seconds}s");
        }
        text
    }
}
