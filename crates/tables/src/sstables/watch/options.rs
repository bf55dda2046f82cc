//! What is watched, and what becomes of it.

use std::fmt;
use std::path::{Component, Path, PathBuf};
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
    /// Its other data directories, if it has several (`data_file_directories`). The same table in two of them is one table.
    pub more_data: Vec<PathBuf>,
    /// The directory that Parquet files go to.
    pub destination: PathBuf,
    /// Where the destination is.
    pub store: Arc<dyn Store>,
    /// The directory for links to SSTables that are being converted, and for what must be known after a restart. It must be on the
    /// data directories' file system. `None`: `.marquetry` in the data directory; links to what is in another one are in `.marquetry` there.
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
    /// The data directory is an inbox: what is taken from it is removed there as soon as it is held, and so need not be known afterwards. It
    /// must have the file `_marquetry_inbox`, so that no database's directory is emptied by mistake.
    pub inbox: bool,
    /// Ends the watching.
    pub cancel: Cancel,
}

impl WatchOptions {
    /// The defaults, for a data directory and a local destination.
    pub fn new(data: impl Into<PathBuf>, destination: impl Into<PathBuf>) -> WatchOptions {
        WatchOptions {
            data: data.into(),
            more_data: Vec::new(),
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
            inbox: false,
            cancel: Cancel::new(),
        }
    }

    /// The directory for links and state.
    pub(super) fn work(&self) -> PathBuf {
        self.work_of(&self.data)
    }

    /// The directory for links to what is in a data directory.
    pub(super) fn work_of(&self, data: &Path) -> PathBuf {
        self.work.clone().unwrap_or_else(|| data.join(".marquetry"))
    }

    /// All data directories.
    pub(super) fn directories(&self) -> impl Iterator<Item = &PathBuf> {
        std::iter::once(&self.data).chain(&self.more_data)
    }

    /// The one that a path is in.
    pub(super) fn directory_of(&self, path: &Path) -> &Path {
        self.directories().find(|data| path.starts_with(data)).unwrap_or(&self.data)
    }

    /// Looks for what cannot be meant.
    ///
    /// # Errors
    ///
    /// `Misuse`.
    pub(super) fn check(&self) -> Result<()> {
        self.parquet.check()?;
        if self.poll.is_some_and(|every| every.is_zero()) {
            return Err(Error::option("poll", "a time between two looks is more than 0"));
        }
        if self.inbox && self.keep != Keep::Flushes {
            let what = "what is taken out of an inbox is not a table as it is now: --keep flushes";
            return Err(Error::option("inbox", what));
        }
        if self.inbox && !self.data.join(INBOX_MARK).is_file() {
            let what =
                format!("not an inbox, whose SSTables may be removed: the file {INBOX_MARK} is missing");
            return Err(Error::misuse(what).at(|place| place.object = Some(self.data.display().to_string())));
        }
        if self.inbox && !self.more_data.is_empty() {
            return Err(Error::option("inbox", "an inbox is one directory"));
        }
        if is_remote(&self.destination) {
            return Ok(());
        }
        let destination = resolved(&self.destination);
        let of_data = self.directories().map(|data| ("data directory", data.clone()));
        for (what, directory) in of_data.chain([("directory for work", self.work())]) {
            if destination.starts_with(resolved(&directory)) {
                let what =
                    format!("the destination is in the {what} {}: name another one", directory.display());
                let place = self.destination.display().to_string();
                return Err(Error::misuse(what).at(|at| at.object = Some(place)));
            }
        }
        Ok(())
    }
}

/// The file that an inbox has.
const INBOX_MARK: &str = "_marquetry_inbox";

/// A path without links and dots, as far as that can be known: the end of it need not exist yet.
pub(super) fn resolved(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let there = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    let Some((above, mut real)) = there else { return path };
    for part in path.strip_prefix(above).unwrap_or(Path::new("")).components() {
        match part {
            Component::ParentDir => drop(real.pop()),
            Component::CurDir => {}
            part => real.push(part),
        }
    }
    real
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

    /// Whether the table called `ks.t` is one of them.
    pub(super) fn contains_named(&self, name: &str) -> bool {
        name.split_once('.').is_some_and(|(keyspace, table)| self.contains(keyspace, table))
    }

    /// Whether a table is one of them.
    pub fn contains(&self, keyspace: &str, table: &str) -> bool {
        self.keyspace == keyspace && self.table.as_deref().is_none_or(|its| its == table)
    }
}

impl fmt::Display for TablePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.table {
            Some(table) => write!(f, "{}.{table}", self.keyspace),
            None => f.write_str(&self.keyspace),
        }
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
    fn paths_are_compared_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("data/ks")).unwrap();
        for (path, real) in [
            ("data/ks/../new/lake", "data/new/lake"),
            ("lake/../data/x", "data/x"),
            ("./lake/.", "lake"),
            ("data2", "data2"),
        ] {
            assert_eq!(resolved(&folder.path().join(path)), root.join(real), "{path}");
        }
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(root.join("data"), root.join("link")).unwrap();
            assert_eq!(resolved(&root.join("link/lake")), root.join("data/lake"));
        }
    }

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
