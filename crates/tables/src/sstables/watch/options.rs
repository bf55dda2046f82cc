//! What is watched, and what becomes of it.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use marquetry_base::{Error, Limits, Result};
use marquetry_io::store::{LocalFiles, Store};
use marquetry_scylla::bridge::mutations::MutationMapping;

use crate::parquet::ParquetOptions;
use crate::sstables::options::Definition;
use crate::{Cancel, MEMORY_BYTES};

/// How a node's SSTables are watched. [`watch`](super::watch) has an example.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WatchOptions {
    /// The node's data directory: keyspaces, and in each its tables' directories.
    pub data: PathBuf,
    /// The directory that Parquet files go to.
    pub destination: PathBuf,
    /// Where the destination is.
    pub store: Arc<dyn Store>,
    /// The directory for links to SSTables that are being converted, and for what must be known after a restart. It must be on the
    /// data directory's file system. `None`: `.marquetry` in the data directory.
    pub work: Option<PathBuf>,
    /// The tables that are watched. If empty, all but those of the system's keyspaces.
    pub tables: Vec<TablePattern>,
    /// Which SSTables become files, and how long files stay.
    pub keep: Keep,
    /// How writes become rows.
    pub mapping: MutationMapping,
    /// What the tables' key columns are called. [`Definition::Beside`]: as the node's own schema tables have it, or else a `schema.cql` in the
    /// table's directory, its keyspace's, or the data directory.
    pub definition: Definition,
    /// How Parquet files are written.
    pub parquet: ParquetOptions,
    /// Limits on sizes in SSTables.
    pub limits: Limits,
    /// Convert what is there, and return.
    pub once: bool,
    /// Try again what could not be converted in earlier runs, because it is corrupt or not supported.
    pub retry_failed: bool,
    /// Threads of a conversion. `None`: one per processor.
    pub threads: Option<usize>,
    /// About how many bytes of rows are in memory.
    pub memory_bytes: u64,
    /// The most that may be used of all processors' time, in percent. `None`: what others leave.
    pub share_percent: Option<u8>,
    /// Look again after this time, instead of waiting for the kernel to report changes.
    pub poll: Option<Duration>,
    /// A file for counters, in Prometheus's text format.
    pub metrics: Option<PathBuf>,
    /// Ends the watching.
    pub cancel: Cancel,
}

impl WatchOptions {
    /// The defaults, for a data directory and a local destination.
    pub fn new(data: impl Into<PathBuf>, destination: impl Into<PathBuf>) -> WatchOptions {
        WatchOptions {
            data: data.into(),
            destination: destination.into(),
            store: Arc::new(LocalFiles),
            work: None,
            tables: Vec::new(),
            keep: Keep::default(),
            mapping: MutationMapping::Full,
            definition: Definition::default(),
            parquet: ParquetOptions::default(),
            limits: Limits::DEFAULT,
            once: false,
            retry_failed: false,
            threads: None,
            memory_bytes: MEMORY_BYTES,
            share_percent: None,
            poll: None,
            metrics: None,
            cancel: Cancel::new(),
        }
    }

    /// The directory for links and state.
    pub(super) fn work(&self) -> PathBuf {
        self.work.clone().unwrap_or_else(|| self.data.join(".marquetry"))
    }
}

/// Which SSTables become files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Keep {
    /// What is flushed, or comes from other nodes. Files stay for good. What servers only write anew (by compactions and the like) is left
    /// out, unless it has what was never converted.
    #[default]
    Flushes,
    /// What the table consists of now: when a compaction has replaced SSTables by others, the files of these replace theirs.
    Current,
}

impl Keep {
    /// Its name, in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Keep::Flushes => "flushes",
            Keep::Current => "current",
        }
    }
}

/// Tables, by name: `ks.t`, `ks.*` or `ks`.
///
/// ```
/// use marquetry_tables::sstables::TablePattern;
///
/// let all: TablePattern = "ks".parse().unwrap();
/// assert!(all.contains("ks", "t") && !all.contains("other", "t"));
/// assert!("ks.t.u".parse::<TablePattern>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TablePattern {
    keyspace: String,
    table: Option<String>,
}

impl TablePattern {
    /// Whether it is of a keyspace.
    pub(super) fn is_of(&self, keyspace: &str) -> bool {
        self.keyspace == keyspace
    }

    /// Whether a table is one of them.
    pub fn contains(&self, keyspace: &str, table: &str) -> bool {
        self.keyspace == keyspace && self.table.as_deref().is_none_or(|its| its == table)
    }
}

impl FromStr for TablePattern {
    type Err = Error;

    fn from_str(text: &str) -> Result<TablePattern> {
        let (keyspace, table) = text.split_once('.').unwrap_or((text, "*"));
        if !is_name(keyspace) || !(table == "*" || is_name(table)) {
            return Err(Error::option("table", format!("'{text}' is not KEYSPACE.TABLE, nor KEYSPACE")));
        }
        Ok(TablePattern { keyspace: keyspace.to_owned(), table: (table != "*").then(|| table.to_owned()) })
    }
}

/// Whether a keyspace or a table may be called so: servers allow no other letters.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|letter| letter.is_ascii_alphanumeric() || letter == b'_')
}

/// Whether a path is the address of an object, not a file of this machine.
pub(super) fn is_remote(path: &Path) -> bool {
    path.to_string_lossy().contains("://")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_named_one_by_one_or_by_keyspace() {
        let contains = |pattern: &str| {
            let pattern: TablePattern = pattern.parse().unwrap();
            [("ks", "t"), ("ks", "u"), ("k", "t")].map(|(keyspace, table)| pattern.contains(keyspace, table))
        };
        assert_eq!(contains("ks.t"), [true, false, false]);
        assert_eq!(contains("ks.*"), [true, true, false]);
        assert_eq!(contains("k"), [false, false, true]);
        for wrong in ["", ".t", "ks.", "k s", "ks.t.u", "a/b", "*"] {
            assert!(wrong.parse::<TablePattern>().is_err(), "{wrong}");
        }
    }
}
