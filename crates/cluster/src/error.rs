//! What can go wrong with a cluster, sorted by what a person would do about it.

use std::fmt;

use marquetry_scylla::cql::ddl::TableError;
use marquetry_scylla::cql::identifier::{Name, TableName};
use marquetry_scylla::cql::types::CqlType;
use scylla::errors::{ExecutionError, NewSessionError, PrepareError};

use crate::load::Loaded;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a cluster could not be reached, or would not take a table or a row. No part of it holds a password.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// Something was asked for that this version cannot do.
    Unsupported(&'static str),
    /// The runtime or a thread could not be started.
    Start(std::io::Error),
    /// No node of the cluster could be reached and logged in to.
    Connect {
        /// The address, without its password.
        address: String,
        /// What the driver says.
        reason: Box<NewSessionError>,
    },
    /// No node answered within [`ConnectOptions::timeout`](crate::ConnectOptions::timeout).
    ConnectTimeout {
        /// The address, without its password.
        address: String,
        /// The time given.
        timeout_ms: u128,
    },
    /// The cluster refused a statement, or failed to run it.
    Statement {
        /// What the statement was to do.
        purpose: &'static str,
        /// What the driver says.
        reason: Box<ExecutionError>,
    },
    /// The cluster would not prepare the `INSERT`.
    Prepare(Box<PrepareError>),
    /// The cluster answered with something that the protocol does not have there.
    Answer {
        /// What the statement was to do.
        purpose: &'static str,
        /// What is wrong with the answer.
        reason: String,
    },
    /// The cluster has no such keyspace.
    NoKeyspace(Name),
    /// The cluster has no such table.
    NoTable(TableName),
    /// A table cannot be made from its definition.
    Definition(TableError),
    /// The table is there already and is another than the one that was to be made.
    TableDiffers {
        /// The table.
        table: TableName,
        /// The first difference found.
        difference: Box<Difference>,
    },
    /// A user-defined type is there already and is another than the one that is needed.
    TypeDiffers {
        /// The type.
        name: Name,
        /// The first difference found.
        difference: Box<Difference>,
    },
    /// The keyspace does not have a user-defined type that is needed.
    NoType(Name),
    /// User-defined types were made, and then the next type or the table could not be. They are left.
    TypesLeft {
        /// The types that were made.
        types: Vec<Name>,
        /// Why it went no further.
        reason: Box<Error>,
    },
    /// The rows do not fit the table.
    Misfit {
        /// The table.
        table: TableName,
        /// The first reason found.
        reason: Box<Misfit>,
    },
    /// The rows could not be read, or one of them cannot be a row of the table. Its place says which.
    Row(marquetry_base::Error),
    /// The cluster did not take a row.
    Insert {
        /// Where the rows come from.
        source: String,
        /// The row in it, counted from 0.
        row: u64,
        /// How often it was sent.
        tries: u32,
        /// What the driver says.
        reason: Box<ExecutionError>,
    },
    /// A load ended before its last row.
    Stopped {
        /// Why.
        reason: Box<Error>,
        /// What the cluster has of the rows. Others may have arrived too: those whose answer did not.
        loaded: Loaded,
    },
    /// A check found a bug in this library.
    Internal(&'static str),
}

/// How an existing table or user-defined type differs from a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Difference {
    /// The table lacks a column.
    Missing(Name),
    /// The table has a column that the definition lacks.
    Extra(Name),
    /// The type lacks a field.
    MissingField(Name),
    /// The type has a field that the definition lacks.
    ExtraField(Name),
    /// A column or field has another type.
    Type {
        /// The column or field.
        name: Name,
        /// Its type as it is.
        table: CqlType,
        /// Its type in the definition.
        wanted: CqlType,
    },
    /// The fields of a type are in another order.
    Order {
        /// Its fields.
        existing: Vec<Name>,
        /// The definition's.
        wanted: Vec<Name>,
    },
    /// A column is static in one and not in the other.
    Static(Name),
    /// The keys are not of the same columns in the same places and orders.
    Key {
        /// The table's, as CQL.
        table: String,
        /// The definition's, as CQL.
        wanted: String,
    },
}

/// Why rows do not fit a table.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Misfit {
    /// There are no columns to load.
    NoColumns,
    /// The rows have two columns of this name.
    Twice(Name),
    /// The table lacks a column.
    Missing(Name),
    /// A column has another type.
    Type {
        /// The column.
        name: Name,
        /// Its type in the table.
        table: CqlType,
        /// The type of its values.
        values: CqlType,
    },
    /// The rows lack a column of the primary key.
    KeyMissing(Name),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unsupported(what) => f.write_str(what),
            Error::Start(error) => {
                write!(f, "the threads that talk to the cluster could not be started: {error}")
            }
            Error::Connect { address, reason } => {
                // The driver tells the way down to the reason; what helps is the end of it.
                let told = reason.to_string();
                let last = told.rsplit_once("Last connection failed with: ").map_or(&*told, |(_, last)| last);
                write!(f, "cannot connect to {address}: {last}")
            }
            Error::ConnectTimeout { address, timeout_ms } => {
                write!(f, "cannot connect to {address}: no answer within {timeout_ms} ms")
            }
            Error::Statement { purpose, reason } => write!(f, "the cluster would not {purpose}: {reason}"),
            Error::Prepare(reason) => write!(f, "the cluster would not prepare the INSERT: {reason}"),
            Error::Answer { purpose, reason } => {
                write!(f, "the cluster's answer makes no sense, when asked to {purpose}: {reason}")
            }
            Error::NoKeyspace(name) => write!(f, "the cluster has no keyspace {name}: create it first"),
            Error::NoTable(table) => write!(f, "the cluster has no table {table}"),
            Error::Definition(error) => error.fmt(f),
            Error::TableDiffers { table, difference } => {
                write!(f, "the table {table} exists, and is another: {difference}")
            }
            Error::TypeDiffers { name, difference } => {
                write!(f, "the type {} exists, and is another: {difference}", name.as_type())
            }
            Error::NoType(name) => write!(f, "the keyspace has no type {}", name.as_type()),
            Error::TypesLeft { types, reason } => {
                write!(f, "{reason}; types were made before it, and are left: {}", list(types))
            }
            Error::Misfit { table, reason } => write!(f, "the rows do not fit the table {table}: {reason}"),
            Error::Row(error) => error.fmt(f),
            Error::Insert { source, row, tries, reason } => {
                let times = if *tries == 1 { "time" } else { "times" };
                write!(
                    f,
                    "the cluster did not take a row, sent {tries} {times}: {reason} (row {row}, {source})"
                )
            }
            Error::Stopped { reason, loaded } => {
                write!(f, "{reason}; {} rows had been loaded", loaded.rows)
            }
            Error::Internal(what) => write!(f, "a bug in this library: {what}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Start(error) => Some(error),
            Error::Connect { reason, .. } => Some(&**reason),
            Error::Statement { reason, .. } | Error::Insert { reason, .. } => Some(&**reason),
            Error::Prepare(reason) => Some(&**reason),
            Error::Definition(error) => Some(error),
            Error::Row(error) => Some(error),
            Error::Stopped { reason, .. } | Error::TypesLeft { reason, .. } => Some(&**reason),
            _ => None,
        }
    }
}

impl From<marquetry_base::Error> for Error {
    fn from(error: marquetry_base::Error) -> Error {
        Error::Row(error)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Missing(name) => write!(f, "it has no column {name}"),
            Difference::Extra(name) => write!(f, "it has a column {name}, which is not wanted"),
            Difference::MissingField(name) => write!(f, "it has no field {name}"),
            Difference::ExtraField(name) => write!(f, "it has a field {name}, which is not wanted"),
            Difference::Order { existing, wanted } => {
                write!(f, "its fields are in the order {}, wanted is {}", list(existing), list(wanted))
            }
            Difference::Type { name, table, wanted } => {
                write!(f, "its {name} is {table}, wanted is {wanted}")
            }
            Difference::Static(name) => write!(f, "{name} is static in only one of them"),
            Difference::Key { table, wanted } => {
                write!(f, "its PRIMARY KEY is ({table}), wanted is ({wanted})")
            }
        }
    }
}

/// Names in a message, not too many.
fn list(names: &[Name]) -> String {
    const NAMES_MAX: usize = 20;
    let mut text: Vec<String> = names.iter().take(NAMES_MAX).map(ToString::to_string).collect();
    if names.len() > NAMES_MAX {
        text.push("…".to_owned());
    }
    text.join(", ")
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Misfit::NoColumns => f.write_str("they have no columns"),
            Misfit::Twice(name) => write!(f, "they have two columns {name}"),
            Misfit::Missing(name) => write!(f, "it has no column {name}"),
            Misfit::Type { name, table, values } => {
                write!(f, "its column {name} is {table}, the values are {values}")
            }
            Misfit::KeyMissing(name) => write!(f, "they have no {name}, which is in its primary key"),
        }
    }
}
