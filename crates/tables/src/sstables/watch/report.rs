//! What is reported while SSTables are watched.

use std::path::Path;
use std::time::Duration;

use marquetry_base::Error;

/// Something that happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum WatchEvent<'a> {
    /// The watching begins: so many tables, and SSTables that are to be converted.
    Started {
        /// Tables that are watched.
        tables: usize,
        /// SSTables that wait.
        waiting: usize,
        /// Why the kernel does not report changes, so that directories are looked at from time to time. `None` if it does.
        polling: Option<&'a str>,
    },
    /// An SSTable became a Parquet file.
    Converted(&'a WatchedFile),
    /// An SSTable is left out: what it has is in other files already.
    Skipped {
        /// Its table.
        table: &'a str,
        /// Its name.
        sstable: &'a str,
        /// Why.
        why: &'a str,
    },
    /// A file was removed, because its SSTable is not part of the table any more.
    Removed {
        /// Its table.
        table: &'a str,
        /// Where it was.
        path: &'a Path,
    },
    /// An SSTable cannot be converted, or something cannot be read or written.
    Failed {
        /// What it is about: an SSTable, a directory.
        subject: &'a str,
        /// Why.
        error: &'a Error,
        /// When it is tried again; `None` if it is not.
        again: Option<Duration>,
    },
    /// An SSTable that the server still has, and that an earlier run could not convert. It is not tried again.
    FailedBefore {
        /// What it is about.
        subject: &'a str,
        /// Why, as it was reported then.
        why: &'a str,
    },
    /// What people should know.
    Note(&'a str),
}

/// An SSTable that became a Parquet file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchedFile {
    /// Its table: `ks.t`.
    pub table: String,
    /// The SSTable: `nb-7-big`.
    pub sstable: String,
    /// The file.
    pub path: std::path::PathBuf,
    /// Rows of the file.
    pub rows: u64,
    /// Bytes of the SSTable's Data.db.
    pub bytes_read: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// How long the conversion took.
    pub took: Duration,
    /// How long it took since the SSTable was noticed.
    pub since_noticed: Duration,
}

/// What was done in all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchSummary {
    /// SSTables that became files.
    pub converted: u64,
    /// Rows of these files.
    pub rows: u64,
    /// Bytes of these SSTables' data.
    pub bytes_read: u64,
    /// Bytes of these files.
    pub bytes: u64,
    /// Time that conversions took.
    pub busy: Duration,
    /// SSTables that were left out.
    pub skipped: u64,
    /// Files that were removed.
    pub removed: u64,
    /// SSTables that cannot be converted: corrupt, or not supported.
    pub failed: u64,
    /// Those that an earlier run had found, and that the server still has.
    pub failed_before: u64,
    /// Tries that failed, because something could not be read or written just then.
    pub retries: u64,
    /// SSTables that wait, at the end.
    pub waiting: u64,
    /// SSTables that are not complete, at the end.
    pub incomplete: u64,
    /// The last error of what is still to be tried again, at the end.
    pub unreachable: Option<Error>,
    /// When the last file appeared, in seconds since 1970.
    pub last_converted: u64,
}
