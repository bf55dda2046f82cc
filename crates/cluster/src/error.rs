//! What can go wrong with a cluster, sorted by what a person would do about it.

use std::fmt;

use marquetry_base::Detail;
use marquetry_scylla::cql::ddl::TableError;
use marquetry_scylla::cql::identifier::{Name, TableName};
use marquetry_scylla::cql::types::CqlType;
use scylla::errors::{ExecutionError, NewSessionError, PrepareError};

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
    /// A table or user-defined types are there already, and are others than those that are needed.
    Differ(Vec<Differing>),
    /// The keyspace does not have a user-defined type that is needed.
    NoType(Name),
    /// User-defined types were made, and then the next type or the table could not be. They are left.
    TypesLeft {
        /// The types that were made.
        types: Vec<Name>,
        /// Why it went no further.
        reason: Box<Error>,
    },
    /// The cluster did not take a row.
    Insert {
        /// The object that the row is from: a file, for one.
        object: String,
        /// The row in it, counted from 0.
        row: u64,
        /// How often it was sent.
        tries: u32,
        /// What the driver says.
        reason: Box<ExecutionError>,
    },
    /// A check found a bug in this library.
    Internal(&'static str),
}

/// A table or user-defined type that is there, and is another than the one that is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Differing {
    /// What it is.
    pub item: Item,
    /// All that differs.
    pub differences: Vec<Difference>,
}

/// A thing in a keyspace.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Item {
    /// A table.
    Table(TableName),
    /// A user-defined type.
    Type(Name),
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
                write!(f, "unexpected answer from the cluster, asked to {purpose}: {reason}")
            }
            Error::NoKeyspace(name) => write!(f, "the cluster has no keyspace {name}: create it first"),
            Error::NoTable(table) => write!(f, "the cluster has no table {table}"),
            Error::Definition(error) => error.fmt(f),
            Error::Differ(differing) => join(f, differing),
            Error::NoType(name) => write!(f, "the keyspace has no type {}", name.as_type()),
            Error::TypesLeft { types, reason } => {
                write!(f, "{reason}; types created before it remain: {}", list(types))
            }
            Error::Insert { tries, reason, .. } => {
                let times = if *tries == 1 { "time" } else { "times" };
                write!(f, "the cluster rejected a row, sent {tries} {times}: {reason}")
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
            Error::TypesLeft { reason, .. } => Some(&**reason),
            _ => None,
        }
    }
}

/// As a destination's error: whose fault it is, the row and its object; and this one as the cause.
impl From<Error> for marquetry_base::Error {
    fn from(error: Error) -> marquetry_base::Error {
        use marquetry_base::Error as Base;
        let message = error.to_string();
        let made = match &error {
            Error::Unsupported(_) => Base::unsupported(message),
            Error::Start(_) | Error::Connect { .. } | Error::ConnectTimeout { .. } => Base::io(message),
            Error::NoKeyspace(_) | Error::NoTable(_) | Error::NoType(_) => {
                Base::refused(message).with(Detail::NotFound)
            }
            Error::Differ(_) => Base::refused(message).with(Detail::AlreadyExists),
            Error::Definition(_) => Base::misuse(message),
            Error::Insert { object, row, .. } => Base::refused(message).at(|place| {
                place.row = Some(*row);
                place.object = (!object.is_empty()).then(|| object.clone());
            }),
            Error::Internal(_) => Base::internal(message),
            Error::Statement { .. } | Error::Prepare(_) | Error::Answer { .. } | Error::TypesLeft { .. } => {
                Base::refused(message)
            }
        };
        made.caused_by(error)
    }
}

/// Clauses of a message.
fn join<T: fmt::Display>(f: &mut fmt::Formatter<'_>, clauses: &[T]) -> fmt::Result {
    for (nth, clause) in clauses.iter().enumerate() {
        write!(f, "{}{clause}", if nth == 0 { "" } else { "; " })?;
    }
    Ok(())
}

impl fmt::Display for Differing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.item {
            Item::Table(table) => write!(f, "the table {table} exists with a different definition: ")?,
            Item::Type(name) => {
                write!(f, "the type {} exists with a different definition: ", name.as_type())?
            }
        }
        join(f, &self.differences)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Missing(name) => write!(f, "missing column {name}"),
            Difference::Extra(name) => write!(f, "extra column {name}"),
            Difference::MissingField(name) => write!(f, "missing field {name}"),
            Difference::ExtraField(name) => write!(f, "extra field {name}"),
            Difference::Order { existing, wanted } => {
                write!(f, "its fields are ordered {}, expected {}", list(existing), list(wanted))
            }
            Difference::Type { name, table, wanted } => {
                write!(f, "{name} is {table}, expected {wanted}")
            }
            Difference::Static(name) => write!(f, "{name} is static in only one of them"),
            Difference::Key { table, wanted } => {
                write!(f, "PRIMARY KEY is ({table}), expected ({wanted})")
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

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_base::ErrorKind;

    /// Nothing of what was said is lost where it becomes a destination's error.
    #[test]
    fn as_a_destinations_error() {
        let name = |text: &str| Name::new(text).unwrap();
        let reason = Box::new(ExecutionError::EmptyPlan);
        let insert = Error::Insert { object: "a.parquet".to_owned(), row: 7, tries: 2, reason };
        let said = insert.to_string();
        let error = marquetry_base::Error::from(insert);
        assert_eq!(
            (error.kind(), error.to_string()),
            (ErrorKind::Refused, format!("{said} (row 7, a.parquet)"))
        );
        let cause = std::error::Error::source(&error).and_then(|cause| cause.downcast_ref::<Error>());
        assert!(matches!(cause, Some(Error::Insert { tries: 2, .. })), "{cause:?}");

        let differing = [
            Differing {
                item: Item::Table(TableName::parse("k.t").unwrap()),
                differences: vec![Difference::Missing(name("a")), Difference::Static(name("b"))],
            },
            Differing { item: Item::Type(name("p")), differences: vec![Difference::ExtraField(name("c"))] },
        ];
        let error = marquetry_base::Error::from(Error::Differ(differing.to_vec()));
        assert_eq!((error.kind(), error.detail()), (ErrorKind::Refused, Some(Detail::AlreadyExists)));
        assert_eq!(
            error.to_string(),
            "the table k.t exists with a different definition: missing column a; b is static in only one of them; \
             the type p exists with a different definition: extra field c"
        );
        let error = marquetry_base::Error::from(Error::NoKeyspace(name("k")));
        assert_eq!((error.kind(), error.detail()), (ErrorKind::Refused, Some(Detail::NotFound)));
        let error = Error::ConnectTimeout { address: "cql://h/k.t".to_owned(), timeout_ms: 5 };
        let error = marquetry_base::Error::from(error);
        assert_eq!(error.kind(), ErrorKind::Io);
        assert_eq!(error.message(), "cannot connect to cql://h/k.t: no answer within 5 ms");
    }
}
