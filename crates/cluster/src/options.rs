//! How to connect, and how to write.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use marquetry_scylla::bridge::MappingOptions;

use marquetry_tables::stamps::{Ttl, WriteTimes};

use crate::layout::TableLayout;
use crate::rate::Rate;
use crate::rejects::MaxErrors;
use crate::state::StateOptions;
use crate::tls::TlsOptions;

/// How to connect to a cluster.
#[derive(Clone)]
pub struct ConnectOptions {
    /// The user, in place of the address's.
    pub user: Option<String>,
    /// The password, in place of the address's. `Debug` does not show it.
    pub password: Option<String>,
    /// A file whose first line is the password. It is read when connecting, unless the address names a file of its own; there must be no other
    /// password then.
    pub password_file: Option<PathBuf>,
    /// An environment variable that holds the password, if there is no other.
    pub password_variable: Option<String>,
    /// The datacenter whose nodes requests are sent to, and no others. `None`: any, the nearest replicas first.
    pub local_datacenter: Option<String>,
    /// Encrypt connections. `None`: unless the address asks for it (`?tls=yes`), they are plain. There is no falling back from one to the other.
    pub tls: Option<TlsOptions>,
    /// The secure connect bundle (a ZIP archive) of a database in a cloud such as DataStax Astra: where its nodes are, and how connections to
    /// them are encrypted. It is for [addresses](crate::CqlAddress) that have no host, `cql:///KEYSPACE.TABLE`, and nothing else is.
    pub bundle: Option<PathBuf>,
    /// The timeout for connecting: names, connections, login, and the cluster's metadata.
    pub timeout: Duration,
}

/// The environment variable that holds the password for those who type commands, and for scripts: what doors set
/// [`password_variable`](ConnectOptions::password_variable) to.
pub const PASSWORD_VARIABLE: &str = "MARQUETRY_PASSWORD";

impl Default for ConnectOptions {
    fn default() -> ConnectOptions {
        ConnectOptions {
            user: None,
            password: None,
            password_file: None,
            password_variable: None,
            local_datacenter: None,
            tls: None,
            bundle: None,
            timeout: CONNECT_TIMEOUT,
        }
    }
}

impl fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectOptions")
            .field("user", &self.user)
            .field("password", &self.password.as_ref().map(|_| "…"))
            .field("password_file", &self.password_file)
            .field("password_variable", &self.password_variable)
            .field("local_datacenter", &self.local_datacenter)
            .field("tls", &self.tls)
            .field("bundle", &self.bundle)
            .field("timeout", &self.timeout)
            .finish()
    }
}

/// How a table is written.
///
/// ```
/// use marquetry_cluster::{Consistency, CqlOptions};
/// use marquetry_scylla::bridge::MappingOptions;
/// use marquetry_scylla::cql::KeySpec;
///
/// // Into a table that is there: its columns, types and key are what they are.
/// let mut options = CqlOptions::default();
/// options.consistency = Consistency::One;
/// options.connect.user = Some("etl".to_owned());
///
/// // Into one that is made, unless it is there already and the same.
/// let mapping = MappingOptions { key: Some(KeySpec::parse("day, trip")?), ..MappingOptions::default() };
/// let options = CqlOptions::create(mapping);
/// # Ok::<(), marquetry_scylla::cql::ddl::KeyError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CqlOptions {
    /// How to connect.
    pub connect: ConnectOptions,
    /// Create the table and its types, unless they exist with the same columns and key. Otherwise the table must
    /// exist.
    pub create: bool,
    /// How the table's rows hold those that are loaded. `None`: as the table does that is there; one that is created has rows.
    pub layout: Option<TableLayout>,
    /// How the rows' columns map to the table's.
    ///
    /// A table that is not created here has its own key and types: `key`, `sets`, `frozen` and `existing` must not be
    /// given. A null is left unset unless [`Nulls::Null`](marquetry_scylla::bridge::Nulls::Null) asks for a
    /// tombstone: a new row has no value either way; an existing row keeps its value, or loses it. So is an empty list, set or map that is
    /// not frozen, which is null to the databases.
    /// Many tombstones make reads slow until they are compacted away.
    pub mapping: MappingOptions,
    /// The most rows in flight: sent, and not yet answered. There are fewer while the cluster answers slowly or is overloaded, and never more
    /// than [`IN_FLIGHT_MAX`].
    pub in_flight: NonZeroUsize,
    /// The most rows and bytes a second.
    pub rate: Rate,
    /// The consistency level: how many replicas must have a row before it counts as loaded.
    pub consistency: Consistency,
    /// How long a row is sent again and again before the load gives up: while no node answers, too few replicas do, or the cluster is
    /// overloaded. The waits between grow from 0.1 s, doubling each time, to 5 s. So a server that restarts is waited for.
    pub retry_for: Duration,
    /// The largest row in bytes, as the protocol holds it. Servers refuse more than [`ROW_BYTES_MAX`] unless they are
    /// configured otherwise.
    pub row_bytes_max: usize,
    /// The rows' write times.
    ///
    /// A row that is sent again has the write time that it had, and so changes nothing. Rows with lists that are not frozen are an exception:
    /// they replace what is older, but elements of the same write time would stay beside the new ones. So each time that such a row is
    /// sent, it is a microsecond later; rows have 32 of them each, and are sent at most as often: the waits grow to a tenth of `retry_for`.
    ///
    /// A column that has them is loaded as well only if the table has a column of its name.
    pub timestamp: WriteTimes,
    /// After what time the rows expire. `None`: the table's default.
    pub ttl: Option<Ttl>,
    /// Add to the table's counters, if it has any, although no row can be sent again safely: one whose answer is lost may be counted
    /// twice. Otherwise a table with counters is refused.
    pub counters_at_least_once: bool,
    /// Load lists that are not frozen although [`timestamp`](CqlOptions::timestamp) gives the write times: loading the same rows a second time
    /// then adds their elements a second time. Otherwise such a table is refused. (Without given write times, a later load replaces the lists.)
    ///
    /// Rows of the mapping `full` that add elements to lists are then sent again if an answer was lost, and by a load that goes on. Otherwise
    /// either ends the load.
    pub lists_at_least_once: bool,
    /// A new Parquet file for rows that cannot be loaded: rows of which a value does not fit, or a key is null, and those that the cluster
    /// refuses as invalid. It has their own columns and another for the reason, `error`, and appears at the end, if there are any, also if
    /// the load fails. Rows that are lost on the way never go there. A load that goes on, and finds the file of the run before, writes
    /// `bad-2.parquet` beside `bad.parquet`, and so on. `None`: the first such row ends the load.
    pub rejects: Option<PathBuf>,
    /// How many rows may be rejected before the load ends. Those of a load that goes on are added up.
    pub max_errors: MaxErrors,
    /// Do everything but write: connect, compare the table, convert and count all rows. A table to be created is not.
    pub dry_run: bool,
    /// Where the load keeps how far it is, so that it can go on after whatever ends it.
    pub state: Option<StateOptions>,
}

impl Default for CqlOptions {
    fn default() -> CqlOptions {
        CqlOptions {
            connect: ConnectOptions::default(),
            create: false,
            layout: None,
            mapping: MappingOptions::default(),
            in_flight: IN_FLIGHT,
            rate: Rate::default(),
            consistency: Consistency::LocalQuorum,
            retry_for: RETRY_FOR,
            row_bytes_max: ROW_BYTES_MAX,
            timestamp: WriteTimes::Now,
            ttl: None,
            counters_at_least_once: false,
            lists_at_least_once: false,
            rejects: None,
            max_errors: MaxErrors::default(),
            dry_run: false,
            state: None,
        }
    }
}

impl CqlOptions {
    /// Creates the table, by this mapping, which has a key.
    pub fn create(mapping: MappingOptions) -> CqlOptions {
        CqlOptions { create: true, mapping, ..CqlOptions::default() }
    }
}

/// How many replicas must have a row before the cluster acknowledges it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Consistency {
    /// One, or another node that keeps the row for them.
    Any,
    /// One.
    One,
    /// Two.
    Two,
    /// Three.
    Three,
    /// Most of them, over all datacenters.
    Quorum,
    /// All.
    All,
    /// Most of those in the coordinator's datacenter.
    #[default]
    LocalQuorum,
    /// Most of those in each datacenter.
    EachQuorum,
    /// One in the coordinator's datacenter.
    LocalOne,
}

/// The most rows in flight by default: enough to keep a small cluster busy over a network with a few ms of latency.
pub const IN_FLIGHT: NonZeroUsize = NonZeroUsize::new(256).expect("is not zero");
/// The most rows in flight: a connection has 32768 stream ids.
pub const IN_FLIGHT_MAX: usize = 32_768;
/// How long rows are sent again by default: a server that restarts needs a minute.
pub const RETRY_FOR: Duration = Duration::from_secs(120);
/// The largest row that servers take unless configured otherwise, in bytes: half of a commit log segment of 32 MiB
/// (Cassandra's `max_mutation_size`, ScyllaDB's the same), and Cassandra's largest frame
/// (`native_transport_max_frame_size`), less 64 KiB for the names, write times and headers that go with it.
pub const ROW_BYTES_MAX: usize = (16 << 20) - (64 << 10);
/// The default timeout for connecting.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

impl Consistency {
    const NAMES: [(&'static str, Consistency); 9] = [
        ("ANY", Consistency::Any),
        ("ONE", Consistency::One),
        ("TWO", Consistency::Two),
        ("THREE", Consistency::Three),
        ("QUORUM", Consistency::Quorum),
        ("ALL", Consistency::All),
        ("LOCAL_QUORUM", Consistency::LocalQuorum),
        ("EACH_QUORUM", Consistency::EachQuorum),
        ("LOCAL_ONE", Consistency::LocalOne),
    ];

    pub(crate) fn for_driver(self) -> scylla::statement::Consistency {
        use scylla::statement::Consistency as Driver;
        match self {
            Consistency::Any => Driver::Any,
            Consistency::One => Driver::One,
            Consistency::Two => Driver::Two,
            Consistency::Three => Driver::Three,
            Consistency::Quorum => Driver::Quorum,
            Consistency::All => Driver::All,
            Consistency::LocalQuorum => Driver::LocalQuorum,
            Consistency::EachQuorum => Driver::EachQuorum,
            Consistency::LocalOne => Driver::LocalOne,
        }
    }
}

impl fmt::Display for Consistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name =
            Self::NAMES.iter().find(|(_, consistency)| consistency == self).map_or("", |(name, _)| name);
        f.write_str(name)
    }
}

/// A text that is not a [`Consistency`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConsistencyError;

impl fmt::Display for ConsistencyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a consistency level is one of")?;
        for (nth, (name, _)) in Consistency::NAMES.iter().enumerate() {
            write!(f, "{} {name}", if nth == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl std::error::Error for ConsistencyError {}

impl FromStr for Consistency {
    type Err = ConsistencyError;

    /// Reads a level's name as CQL spells it, in capitals or not, with `-` for `_` if one likes.
    ///
    /// # Errors
    ///
    /// [`ConsistencyError`].
    fn from_str(text: &str) -> Result<Consistency, ConsistencyError> {
        let name = text.replace('-', "_").to_ascii_uppercase();
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, level)| *level).ok_or(ConsistencyError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_print_as_they_parse() {
        for (name, level) in Consistency::NAMES {
            assert_eq!(name.parse(), Ok(level));
            assert_eq!(name.to_ascii_lowercase().replace('_', "-").parse(), Ok(level));
            assert_eq!(level.to_string(), name);
            assert_eq!(level.for_driver().to_string().to_ascii_uppercase(), name.replace('_', ""));
        }
        assert_eq!("serial".parse::<Consistency>(), Err(ConsistencyError));
        assert!(
            ConsistencyError
                .to_string()
                .ends_with("one of ANY, ONE, TWO, THREE, QUORUM, ALL, LOCAL_QUORUM, EACH_QUORUM, LOCAL_ONE")
        );
    }

    #[test]
    fn no_password_in_debug() {
        let options = ConnectOptions { password: Some("tiger".to_owned()), ..ConnectOptions::default() };
        let shown = format!("{options:?}");
        assert!(!shown.contains("tiger") && shown.contains("password: Some("), "{shown}");
    }
}
