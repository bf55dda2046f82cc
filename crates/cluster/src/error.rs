//! What can go wrong with a cluster, sorted by what a person would do about it.

use std::fmt;
use std::io;

use marquetry_base::{Detail, ErrorKind};
use marquetry_scylla::cql::ddl::TableError;
use marquetry_scylla::cql::identifier::{Name, TableName};
use marquetry_scylla::cql::types::CqlType;
use scylla::errors::{
    BrokenConnectionError, BrokenConnectionErrorKind, ConnectionError, ConnectionPoolError,
    ConnectionSetupRequestErrorKind, DbError, ExecutionError, FrameHeaderParseError, MetadataError,
    NewSessionError, PrepareError, RequestAttemptError,
};

use crate::retry::is_passing_attempt;
use crate::tls;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a cluster could not be reached, or would not take a table or a row. No part of it holds a password.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// Something was asked for that this version cannot do.
    Unsupported(&'static str),
    /// There is no user for a password, more than one password, or none where one is looked for.
    Credentials(marquetry_base::Error),
    /// A certificate or a key cannot be used.
    Tls(marquetry_base::Error),
    /// A secure connect bundle cannot be used, or does not lead to a database.
    Bundle(marquetry_base::Error),
    /// The runtime or a thread could not be started.
    Start(std::io::Error),
    /// No node of the cluster could be reached and logged in to.
    Connect {
        /// The address, without its password.
        address: String,
        /// What the driver says.
        reason: Box<NewSessionError>,
    },
    /// The address has no host, and no bundle leads to its database.
    NoHost,
    /// The cluster has no such datacenter, but these.
    NoDatacenter {
        /// The one that was asked for.
        wanted: String,
        /// Those that there are.
        known: Vec<String>,
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
    /// The cluster has no such table or view to read.
    NotThere {
        /// The table.
        table: TableName,
        /// Its keyspace is there.
        has_keyspace: bool,
    },
    /// The table was dropped while it was read.
    Dropped(TableName),
    /// The table is not any more what it was when its rows began to be sent.
    Changed {
        /// The table.
        table: TableName,
        /// What became of it.
        how: String,
    },
    /// The cluster would not prepare the `SELECT`.
    Select(Box<ExecutionError>),
    /// The cluster did not answer with a page of rows.
    Read {
        /// How often it was asked.
        tries: u32,
        /// What the driver says.
        reason: Box<ExecutionError>,
    },
    /// The cluster sorts partitions by other tokens than those that ranges are known of.
    Partitioner(String),
    /// A table cannot be made from its definition.
    Definition(TableError),
    /// A table or user-defined types are there already, and are others than those that are needed.
    Differ(Vec<Differing>),
    /// The cluster would not create the table with options of the source's. Nothing was created.
    Properties {
        /// Those that it seems to refuse, as they are written.
        properties: Vec<String>,
        /// What the driver says.
        reason: Box<ExecutionError>,
    },
    /// All rows are loaded, and the cluster would not create an index of the source's table.
    Index {
        /// The statement.
        statement: String,
        /// What the driver says.
        reason: Box<ExecutionError>,
    },
    /// All rows are loaded, and an index of the source's table was not created, because another table of the keyspace has one of its name.
    IndexOfAnother {
        /// The statement.
        statement: String,
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
    /// The caller cancelled the work.
    Cancelled,
    /// A process that was forked uses what its parent opened, whose threads it has not.
    Forked,
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
            Error::Unsupported(what) => write!(f, "{what}: not supported yet"),
            Error::Credentials(reason) | Error::Tls(reason) | Error::Bundle(reason) => write!(f, "{reason}"),
            Error::Start(error) => {
                write!(f, "the threads that talk to the cluster could not be started: {error}")
            }
            Error::Connect { address, reason } => {
                if let NewSessionError::FailedToResolveAnyHostname(hosts) = &**reason {
                    return write!(f, "cannot connect to {address}: unknown host {}", hosts.join(", "));
                }
                match login_of(reason) {
                    Some(Login::Missing) => {
                        return write!(
                            f,
                            "{address} asks for a user and a password: name the user in the address, cql://USER@HOST/…"
                        );
                    }
                    Some(Login::Wrong) => {
                        return write!(f, "{address} refuses the user or the password");
                    }
                    None => {}
                }
                // The driver tells the way down to the reason; what helps is the end of it.
                let told = reason.to_string();
                let last = told.rsplit_once("Last connection failed with: ").map_or(&*told, |(_, last)| last);
                write!(f, "cannot connect to {address}: {last}")
            }
            Error::NoHost => f.write_str(
                "the address has no host, and no secure connect bundle says where the database is",
            ),
            Error::NoDatacenter { wanted, known } => {
                write!(f, "the cluster has no datacenter {wanted:?}; it has {}", known.join(", "))
            }
            Error::ConnectTimeout { address, timeout_ms } => {
                write!(f, "cannot connect to {address}: no answer within {timeout_ms} ms")
            }
            Error::Statement { purpose, reason } => {
                write!(f, "the cluster {} not {purpose}: {reason}", self.would())
            }
            Error::Prepare(reason) => {
                write!(f, "the cluster {} not prepare the INSERT: {reason}", self.would())
            }
            Error::Answer { purpose, reason } => {
                write!(f, "unexpected answer from the cluster, asked to {purpose}: {reason}")
            }
            Error::NoKeyspace(name) => {
                // Of all strategies, this one with one number is taken by Cassandra since 4.0 and by ScyllaDB, whatever their
                // datacenters are called.
                write!(
                    f,
                    "the cluster has no keyspace {name}: create it first, with 3 instead of 1 where three nodes or more are to \
                     hold each row: CREATE KEYSPACE {name} WITH replication = \
                     {{'class': 'NetworkTopologyStrategy', 'replication_factor': 1}};"
                )
            }
            Error::NoTable(table) => write!(f, "the cluster has no table {table}"),
            Error::NotThere { table, has_keyspace: true } => {
                write!(f, "the cluster has no table or view {table}")
            }
            Error::NotThere { table, .. } => {
                let keyspace = table.keyspace.as_ref().map(ToString::to_string).unwrap_or_default();
                write!(f, "the cluster has no keyspace {keyspace}, and so no table {table}")
            }
            Error::Dropped(table) => write!(f, "the table {table} was dropped while it was read"),
            Error::Changed { table, how } => {
                write!(f, "the table {table} was changed while rows were loaded; it was {how}")
            }
            Error::Select(reason) => {
                write!(f, "the cluster {} not prepare the SELECT: {reason}", self.would())
            }
            Error::Read { tries, reason } => {
                let times = if *tries == 1 { "once" } else { "times" };
                let tries = if *tries == 1 { String::new() } else { format!("{tries} ") };
                write!(f, "the cluster {} not read rows, asked {tries}{times}: {reason}", self.would())
            }
            Error::Partitioner(class) => {
                write!(
                    f,
                    "token ranges of the partitioner {class}: not supported, only those of Murmur3Partitioner are"
                )
            }
            Error::Definition(error) => error.fmt(f),
            Error::Differ(differing) => {
                join(f, differing)?;
                f.write_str("; drop it first, or choose another name for the table")
            }
            Error::Properties { properties, reason } => write!(
                f,
                "the cluster {} not create the table with {}, as the source's table has it: {reason}; create it by the statements of the source's \
                 (schema.cql, or marquetry.table.schema in a file) without that, and load into the table that is there",
                self.would(),
                properties.join(" AND ")
            ),
            Error::Index { statement, reason } => write!(
                f,
                "the rows are loaded, but the cluster {} not create an index of the source's table: {reason}; it is {statement}",
                self.would()
            ),
            Error::IndexOfAnother { statement } => write!(
                f,
                "the rows are loaded, but an index of the source's table was not created, because another table of the keyspace has one of its name; \
                 create it by another: {statement}"
            ),
            Error::NoType(name) => write!(f, "the keyspace has no type {}", name.as_type()),
            Error::TypesLeft { types, reason } => {
                write!(f, "{reason}; types created before it remain: {}", list(types))
            }
            Error::Insert { tries, reason, .. } => {
                let times = if *tries == 1 { "time" } else { "times" };
                let did = match self.kind() {
                    ErrorKind::Io => "did not acknowledge",
                    _ => "rejected",
                };
                write!(f, "the cluster {did} a row, sent {tries} {times}: {reason}")
            }
            Error::Cancelled => f.write_str("cancelled"),
            Error::Forked => f.write_str(
                "the connections are kept by threads of the process that was forked: connect in the child",
            ),
            Error::Internal(what) => write!(f, "a bug in this library: {what}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Credentials(reason) | Error::Tls(reason) | Error::Bundle(reason) => Some(reason),
            Error::Start(error) => Some(error),
            Error::Connect { reason, .. } => Some(&**reason),
            Error::Statement { reason, .. }
            | Error::Properties { reason, .. }
            | Error::Index { reason, .. }
            | Error::Insert { reason, .. }
            | Error::Read { reason, .. }
            | Error::Select(reason) => Some(&**reason),
            Error::Prepare(reason) => Some(&**reason),
            Error::Definition(error) => Some(error),
            Error::TypesLeft { reason, .. } => Some(&**reason),
            _ => None,
        }
    }
}

impl Error {
    /// Whose fault it is.
    pub(crate) fn kind(&self) -> ErrorKind {
        match self {
            Error::Unsupported(_) => ErrorKind::Unsupported,
            Error::Credentials(reason) | Error::Tls(reason) | Error::Bundle(reason) => reason.kind(),
            Error::Connect { reason, .. } if login_of(reason).is_some() || distrust_of(reason).is_some() => {
                ErrorKind::Refused
            }
            Error::NoHost | Error::NoDatacenter { .. } => ErrorKind::Misuse,
            Error::Start(_) | Error::Connect { .. } | Error::ConnectTimeout { .. } => ErrorKind::Io,
            Error::Statement { reason, .. }
            | Error::Properties { reason, .. }
            | Error::Index { reason, .. }
            | Error::Insert { reason, .. }
            | Error::Read { reason, .. }
            | Error::Select(reason) => kind_of(reason),
            Error::Partitioner(_) => ErrorKind::Unsupported,
            Error::Prepare(reason) => kind_of_preparing(reason),
            Error::TypesLeft { reason, .. } => reason.kind(),
            Error::NoKeyspace(_)
            | Error::NoTable(_)
            | Error::NotThere { .. }
            | Error::Dropped(_)
            | Error::Changed { .. }
            | Error::IndexOfAnother { .. }
            | Error::NoType(_)
            | Error::Differ(_)
            | Error::Answer { .. } => ErrorKind::Refused,
            Error::Definition(_) => ErrorKind::Misuse,
            Error::Cancelled => ErrorKind::Cancelled,
            Error::Forked => ErrorKind::Misuse,
            Error::Internal(_) => ErrorKind::Internal,
        }
    }

    /// What exactly is wrong, where a program may act on it.
    fn detail(&self) -> Option<Detail> {
        match self {
            Error::NoKeyspace(_) | Error::NoType(_) | Error::NotThere { .. } => Some(Detail::NotFound),
            Error::Connect { reason, .. } => match login_of(reason) {
                Some(_) => Some(Detail::AdmittedBy(&["password_file"])),
                None => distrust_of(reason).map(Detail::AdmittedBy),
            },
            Error::NoHost => Some(Detail::AdmittedBy(&["bundle"])),
            Error::NoDatacenter { .. } => Some(Detail::Option("local_datacenter")),
            Error::NoTable(_) => Some(Detail::AdmittedBy(&["create"])),
            Error::Differ(_) => Some(Detail::AlreadyExists),
            _ => None,
        }
    }

    fn would(&self) -> &'static str {
        if self.kind() == ErrorKind::Io { "could" } else { "would" }
    }
}

/// What is wrong with who logs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Login {
    /// Nobody does, and the cluster wants somebody.
    Missing,
    /// The cluster does not know the user, or it is another password.
    Wrong,
}

/// Whether a session could not begin because of that.
fn login_of(reason: &NewSessionError) -> Option<Login> {
    let ConnectionError::ConnectionSetupRequestError(setup) = last_failure(reason)? else { return None };
    match &setup.error {
        ConnectionSetupRequestErrorKind::MissingAuthentication => Some(Login::Missing),
        ConnectionSetupRequestErrorKind::DbError(DbError::AuthenticationError, _) => Some(Login::Wrong),
        _ => None,
    }
}

/// Why the last connection could not be made.
fn last_failure(reason: &NewSessionError) -> Option<&ConnectionError> {
    match reason {
        NewSessionError::MetadataError(MetadataError::ConnectionPoolError(ConnectionPoolError::Broken {
            last_connection_error,
        })) => Some(last_connection_error),
        _ => None,
    }
}

/// Whether a session could not begin because one side does not trust the other's certificate: the options that another value of would change
/// that. Who waits waits in vain, as with a wrong password.
fn distrust_of(reason: &NewSessionError) -> Option<&'static [&'static str]> {
    let failure = match last_failure(reason)? {
        ConnectionError::IoError(failure) => &**failure,
        ConnectionError::BrokenConnection(broken) => broken_by(broken)?,
        ConnectionError::ConnectionSetupRequestError(setup) => match &setup.error {
            ConnectionSetupRequestErrorKind::BrokenConnection(broken) => broken_by(broken)?,
            _ => return None,
        },
        _ => return None,
    };
    tls::distrust(failure)
}

/// What a connection ended with. By TLS 1.3, a client is connected before its certificate is looked at: that it is refused comes instead of the
/// first answer.
fn broken_by(broken: &BrokenConnectionError) -> Option<&io::Error> {
    match broken.downcast_ref::<BrokenConnectionErrorKind>()? {
        BrokenConnectionErrorKind::FrameHeaderParseError(FrameHeaderParseError::HeaderIoError(failure))
        | BrokenConnectionErrorKind::WriteError(failure) => Some(failure),
        _ => None,
    }
}

/// Whose fault it is that a statement was not executed: `Io` if no node, or too few of those that hold the rows, could be
/// reached or answered in time; otherwise the cluster refuses it.
fn kind_of(reason: &ExecutionError) -> ErrorKind {
    match reason {
        ExecutionError::EmptyPlan
        | ExecutionError::ConnectionPoolError(_)
        | ExecutionError::RequestTimeout(_)
        | ExecutionError::SchemaAgreementError(_)
        | ExecutionError::MetadataError(_) => ErrorKind::Io,
        ExecutionError::PrepareError(reason) => kind_of_preparing(reason),
        ExecutionError::LastAttemptError(reason) => kind_of_attempt(reason),
        _ => ErrorKind::Refused,
    }
}

fn kind_of_preparing(reason: &PrepareError) -> ErrorKind {
    match reason {
        PrepareError::ConnectionPoolError(_) => ErrorKind::Io,
        PrepareError::AllAttemptsFailed { first_attempt, .. } => kind_of_attempt(first_attempt),
        _ => ErrorKind::Refused,
    }
}

fn kind_of_attempt(reason: &RequestAttemptError) -> ErrorKind {
    if is_passing_attempt(reason) { ErrorKind::Io } else { ErrorKind::Refused }
}

/// As a destination's error: whose fault it is, the row and its object; and this one as the cause.
impl From<Error> for marquetry_base::Error {
    fn from(error: Error) -> marquetry_base::Error {
        if let Error::Credentials(reason) | Error::Tls(reason) | Error::Bundle(reason) = error {
            return reason;
        }
        let message = match &error {
            Error::Unsupported(what) => (*what).to_owned(),
            other => other.to_string(),
        };
        let mut made = marquetry_base::Error::new(error.kind(), message);
        if let Some(detail) = error.detail() {
            made = made.with(detail);
        }
        if let Error::Insert { object, row, .. } = &error {
            made = made.at(|place| {
                place.row = Some(*row);
                place.object = (!object.is_empty()).then(|| object.clone());
            });
        }
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
    use scylla::statement::Consistency;
    use std::time::Duration;

    /// Nothing of what was said is lost where it becomes a destination's error.
    #[test]
    fn as_a_destinations_error() {
        let name = |text: &str| Name::new(text).unwrap();
        let db = |error| RequestAttemptError::DbError(error, String::new()).into();
        let unavailable = DbError::Unavailable { consistency: Consistency::One, required: 1, alive: 0 };
        for (reason, kind, said) in [
            (ExecutionError::EmptyPlan, ErrorKind::Io, "did not acknowledge"),
            (ExecutionError::RequestTimeout(Duration::from_secs(30)), ErrorKind::Io, "did not acknowledge"),
            (db(unavailable), ErrorKind::Io, "did not acknowledge"),
            (RequestAttemptError::UnableToAllocStreamId.into(), ErrorKind::Io, "did not acknowledge"),
            (db(DbError::Invalid), ErrorKind::Refused, "rejected"),
            (db(DbError::Overloaded), ErrorKind::Io, "did not acknowledge"),
            (db(DbError::Unauthorized), ErrorKind::Refused, "rejected"),
        ] {
            let text = format!("the cluster {said} a row, sent 2 times: {reason} (row 7, a.parquet)");
            let reason = Box::new(reason);
            let insert = Error::Insert { object: "a.parquet".to_owned(), row: 7, tries: 2, reason };
            let error = marquetry_base::Error::from(insert);
            assert_eq!((error.kind(), error.to_string()), (kind, text));
            let cause = std::error::Error::source(&error).and_then(|cause| cause.downcast_ref::<Error>());
            assert!(matches!(cause, Some(Error::Insert { tries: 2, .. })), "{cause:?}");
        }
        let reason = Box::new(ExecutionError::EmptyPlan);
        let statement = Error::Statement { purpose: "create a type", reason };
        assert!(statement.to_string().starts_with("the cluster could not create a type: "), "{statement}");
        let left = Error::TypesLeft { types: vec![name("a")], reason: Box::new(statement) };
        assert_eq!(marquetry_base::Error::from(left).kind(), ErrorKind::Io);
        let error = marquetry_base::Error::from(Error::Cancelled);
        assert_eq!((error.kind(), error.message()), (ErrorKind::Cancelled, "cancelled"));

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
             the type p exists with a different definition: extra field c; drop it first, or choose another name for the table"
        );
        let error = marquetry_base::Error::from(Error::NoKeyspace(name("k")));
        assert_eq!((error.kind(), error.detail()), (ErrorKind::Refused, Some(Detail::NotFound)));
        // What is to be run is said, as CQL writes the name.
        for (keyspace, written) in [("k", "k"), ("My Keyspace", "\"My Keyspace\"")] {
            let said = Error::NoKeyspace(name(keyspace)).to_string();
            let statement = format!(
                ": CREATE KEYSPACE {written} WITH replication = {{'class': 'NetworkTopologyStrategy', 'replication_factor': 1}};"
            );
            assert!(said.ends_with(&statement), "{said}");
        }
        let table = TableName::parse("k.t").unwrap();
        for (has_keyspace, said) in [
            (true, "the cluster has no table or view k.t"),
            (false, "the cluster has no keyspace k, and so no table k.t"),
        ] {
            let error = marquetry_base::Error::from(Error::NotThere { table: table.clone(), has_keyspace });
            assert_eq!((error.message(), error.detail()), (said, Some(Detail::NotFound)));
        }
        let read = |tries, reason| Error::Read { tries, reason: Box::new(reason) }.to_string();
        let once = read(1, ExecutionError::EmptyPlan);
        assert!(once.starts_with("the cluster could not read rows, asked once: "), "{once}");
        let refused = read(6, db(DbError::Unauthorized));
        assert!(refused.starts_with("the cluster would not read rows, asked 6 times: "), "{refused}");
        let reason = NewSessionError::FailedToResolveAnyHostname(vec!["h.invalid:9042".to_owned()]);
        let error = Error::Connect { address: "cql://h.invalid/k.t".to_owned(), reason: Box::new(reason) };
        assert_eq!(error.to_string(), "cannot connect to cql://h.invalid/k.t: unknown host h.invalid:9042");
        let error = Error::ConnectTimeout { address: "cql://h/k.t".to_owned(), timeout_ms: 5 };
        let error = marquetry_base::Error::from(error);
        assert_eq!(error.kind(), ErrorKind::Io);
        assert_eq!(error.message(), "cannot connect to cql://h/k.t: no answer within 5 ms");
    }

    /// One side does not trust the other, now and later.
    #[cfg(feature = "tls")]
    #[test]
    fn distrust_is_no_trouble_that_passes() {
        let distrusted = |of: rustls::Error| {
            let failure = io::Error::new(io::ErrorKind::InvalidData, of);
            let last_connection_error = ConnectionError::from(failure);
            let broken = ConnectionPoolError::Broken { last_connection_error };
            let reason = Box::new(NewSessionError::MetadataError(broken.into()));
            marquetry_base::Error::from(Error::Connect { address: "cql://h/k.t".to_owned(), reason })
        };
        let unknown = distrusted(rustls::CertificateError::UnknownIssuer.into());
        assert_eq!(
            (unknown.kind(), unknown.detail()),
            (ErrorKind::Refused, Some(Detail::AdmittedBy(&["ca"])))
        );
        assert_eq!(
            unknown.message(),
            "cannot connect to cql://h/k.t: invalid peer certificate: UnknownIssuer"
        );
        let refused = distrusted(rustls::Error::AlertReceived(rustls::AlertDescription::UnknownCA));
        assert_eq!(
            (refused.kind(), refused.detail()),
            (ErrorKind::Refused, Some(Detail::AdmittedBy(&["cert"])))
        );
        let broken = distrusted(rustls::Error::DecryptError);
        assert_eq!((broken.kind(), broken.detail()), (ErrorKind::Io, None));
    }
}
