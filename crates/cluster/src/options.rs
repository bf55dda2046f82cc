//! How to connect, and how to write.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use marquetry_scylla::bridge::MappingOptions;

/// How to connect to a cluster.
#[derive(Clone)]
pub struct ConnectOptions {
    /// The user, in place of the address's.
    pub user: Option<String>,
    /// The password, in place of the address's. `Debug` does not show it.
    pub password: Option<String>,
    /// A file whose first line is the password. It is read when connecting; there must be no other password then.
    pub password_file: Option<PathBuf>,
    /// An environment variable that holds the password, if there is no other.
    pub password_variable: Option<String>,
    /// Encrypt the connection. Not supported yet: connecting with it is an error, never a silent fallback to plain
    /// text.
    pub tls: bool,
    /// The timeout for connecting: names, connections, login, and the cluster's metadata.
    pub timeout: Duration,
}

impl Default for ConnectOptions {
    fn default() -> ConnectOptions {
        ConnectOptions {
            user: None,
            password: None,
            password_file: None,
            password_variable: None,
            tls: false,
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
            .field("tls", &self.tls)
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
    /// How the rows' columns map to the table's.
    ///
    /// A table that is not created here has its own key and types: `key`, `sets`, `frozen` and `existing` must not be
    /// given. A null is left unset unless [`Nulls::Null`](marquetry_scylla::bridge::Nulls::Null) asks for a
    /// tombstone: a new row has no value either way; an existing row keeps its value, or loses it.
    /// Many tombstones make reads slow until they are compacted away.
    pub mapping: MappingOptions,
    /// Rows in flight: sent, and not yet answered. At most [`CONCURRENCY_MAX`] are.
    pub concurrency: NonZeroUsize,
    /// The consistency level: how many replicas must have a row before it counts as loaded.
    pub consistency: Consistency,
    /// How often a row is sent before the load gives up, when the cluster is overloaded or does not answer in time.
    /// The waits between grow from 0.1 s, doubling each time, to 5 s.
    pub tries: u32,
    /// The largest row in bytes, as the protocol holds it. Servers refuse more than [`ROW_BYTES_MAX`] unless they are
    /// configured otherwise.
    pub row_bytes_max: usize,
    /// The write time of the first row, in microseconds since 1970; each later row's is one larger. `None`: now.
    ///
    /// So of two rows with one key the later one wins, even if they overtake each other. The clock is
    /// this machine's: writes by others with a later clock win over the load, as always in these databases.
    pub write_time_us: Option<i64>,
}

impl Default for CqlOptions {
    fn default() -> CqlOptions {
        CqlOptions {
            connect: ConnectOptions::default(),
            create: false,
            mapping: MappingOptions::default(),
            concurrency: CONCURRENCY,
            consistency: Consistency::LocalQuorum,
            tries: TRIES,
            row_bytes_max: ROW_BYTES_MAX,
            write_time_us: None,
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

/// Rows in flight by default: enough to keep a small cluster busy over a network with a few ms of latency.
pub const CONCURRENCY: NonZeroUsize = NonZeroUsize::new(256).expect("is not zero");
/// The most rows in flight: a connection has 32768 stream ids.
pub const CONCURRENCY_MAX: usize = 32_768;
/// How often a row is sent by default.
pub const TRIES: u32 = 6;
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
