//! A table that holds a Parquet file, as a store of that file.

use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use marquetry_base::{Bytes, Error, Limits, Result};
use marquetry_io::store::{Found, IsCancelled, NewObject, NewObjects, ObjectStream, Store};
use marquetry_io::{ByteSource, ObjectVersion};
use marquetry_tables::Cancel;

use super::source::{Opened, Requested, TableFile};
use super::table::Table;
use crate::cluster::Cluster;
use crate::unload::UnloadOptions;

/// How long what was found is good for opening it: it need not be asked for twice.
const FOUND: Duration = Duration::from_secs(2);
/// Bytes that are read at a time from the file's start to its end.
const STREAM_BYTES: u64 = 4 << 20;

/// A table of a cluster that holds a Parquet file (the layout `columns`), as a [`Store`] of that file: every path leads to it.
///
/// Whoever reads Parquet files reads it, too, and finds rows in it by its statistics, indexes and Bloom filters. What is read of it is asked of
/// the cluster: a column costs that column's partitions. All is read of the version that was opened. If another one is written meanwhile, that is an
/// error.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use marquetry_cluster::{OpenedTable, UnloadOptions};
/// use marquetry_tables::files::{Files, FilesOptions};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let opened = OpenedTable::open("cql://localhost/ks.trips".parse().unwrap(), &UnloadOptions::default())?;
/// if let OpenedTable::Columns(table) = opened {
///     let path = table.name().to_owned();
///     let mut options = FilesOptions::default();
///     options.store = Arc::new(table);
///     let trips = Files::open([path], &options)?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ColumnsTable {
    shared: Arc<Shared>,
    is_cancelled: IsCancelled,
}

struct Shared {
    // Before the table, whose connection their requests need.
    found: Mutex<Option<(Instant, Arc<Opened>)>>,
    table: Arc<Table>,
    name: String,
    cancel: Cancel,
    limits: Limits,
    requested: Arc<Requested>,
}

impl ColumnsTable {
    /// The table that a cluster is connected for.
    pub(crate) fn new(cluster: Cluster, options: &UnloadOptions) -> Result<ColumnsTable> {
        let name = cluster.address().to_string();
        let table = Table::new(cluster, (options.consistency, options.retry_for), false)?;
        let (cancel, found, limits) = (options.cancel.clone(), Mutex::new(None), options.limits);
        let shared = Shared { found, table, name, cancel, limits, requested: Arc::default() };
        Ok(ColumnsTable { shared: Arc::new(shared), is_cancelled: Arc::new(|| false) })
    }

    /// Its address, without a password: what the file is called in messages.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// The cells of the file that have come so far, and their bytes. Its map and its end, which are asked for when it is opened, are not counted.
    pub fn requested(&self) -> (u64, u64) {
        let Requested { cells, bytes } = &*self.shared.requested;
        (cells.load(Ordering::Relaxed), bytes.load(Ordering::Relaxed))
    }

    /// Finds what is current.
    fn find_current(&self) -> Result<Arc<Opened>> {
        let Shared { table, name, limits, requested, .. } = &*self.shared;
        let finding = Opened::find(Arc::clone(table), name.clone(), Arc::clone(requested), *limits);
        let found = table.cluster.runtime().wait(finding).map_err(Error::from).and_then(|found| found);
        let nothing = || {
            Error::io("the table is there, and no version of a file in it was completed")
                .with(marquetry_base::Detail::NotFound)
        };
        found.and_then(|found| found.ok_or_else(nothing)).map(Arc::new).map_err(|error| self.named(error))
    }

    /// What was found a moment ago, or is found now.
    fn current(&self) -> Result<Arc<Opened>> {
        let mut found = self.shared.found.lock().unwrap_or_else(PoisonError::into_inner);
        match &*found {
            Some((when, opened)) if when.elapsed() < FOUND => Ok(Arc::clone(opened)),
            _ => {
                let opened = self.find_current()?;
                *found = Some((Instant::now(), Arc::clone(&opened)));
                Ok(opened)
            }
        }
    }

    fn source(&self, opened: Arc<Opened>) -> TableFile {
        let (one, other) = (Arc::clone(&self.is_cancelled), self.shared.cancel.clone());
        TableFile::new(opened, Arc::new(move || one() || other.is_set()))
    }

    fn named(&self, error: Error) -> Error {
        error.at(|place| place.object = Some(self.shared.name.clone()))
    }

    fn read_only(&self) -> Error {
        self.named(Error::misuse("this table was opened to be read"))
    }
}

impl fmt::Debug for ColumnsTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ColumnsTable").field("name", &self.shared.name).finish_non_exhaustive()
    }
}

impl Store for ColumnsTable {
    fn cancellable(&self, is_cancelled: IsCancelled) -> Option<Arc<dyn Store>> {
        let before = Arc::clone(&self.is_cancelled);
        let is_cancelled: IsCancelled = Arc::new(move || before() || is_cancelled());
        Some(Arc::new(ColumnsTable { shared: Arc::clone(&self.shared), is_cancelled }))
    }

    fn holds_parquet(&self) -> bool {
        true
    }

    fn look(&self, _: &Path) -> Result<Found> {
        Ok(Found::Object { bytes: self.current()?.object_version().bytes() })
    }

    fn find(&self, path: &Path, _: &[&str]) -> Result<Vec<PathBuf>> {
        Ok(vec![path.to_path_buf()])
    }

    fn open(&self, _: &Path) -> Result<(Box<dyn ByteSource + Send>, ObjectVersion)> {
        let opened = self.current()?;
        let version = opened.object_version();
        Ok((Box::new(self.source(opened)), version))
    }

    /// Of the version that was opened nothing is asked again.
    fn reopen(&self, path: &Path, version: &ObjectVersion) -> Result<Box<dyn ByteSource + Send>> {
        let known = self.shared.found.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, opened)) = known.filter(|(_, opened)| opened.object_version() == *version) {
            return Ok(Box::new(self.source(opened)));
        }
        let (source, now) = self.open(path)?;
        version.expect(&now).map_err(|error| self.named(error))?;
        Ok(source)
    }

    fn stream(&self, _: &Path, _: Box<dyn Fn() -> bool + Send>) -> Result<ObjectStream> {
        let opened = self.current()?;
        let version = opened.object_version();
        let reader =
            FromStart { bytes: version.bytes(), source: self.source(opened), at: 0, unread: Bytes::new() };
        Ok(ObjectStream { reader: Box::new(reader), version: Some(version) })
    }

    fn create(&self, _: &Path, _: bool) -> Result<Box<dyn NewObject>> {
        Err(self.read_only())
    }

    fn create_directory(&self, _: &Path, _: bool, _: &'static [&'static str]) -> Result<Box<dyn NewObjects>> {
        Err(self.read_only())
    }
}

/// Reads it from its start to its end.
struct FromStart {
    source: TableFile,
    bytes: u64,
    at: u64,
    unread: Bytes,
}

impl Read for FromStart {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.unread.is_empty() {
            let end = self.bytes.min(self.at.saturating_add(STREAM_BYTES));
            self.unread = self.source.read(self.at..end).map_err(io::Error::other)?;
            self.at = end;
        }
        let length = self.unread.len().min(out.len());
        let now = self.unread.split_to(length);
        out.get_mut(..length).unwrap_or_default().copy_from_slice(&now);
        Ok(length)
    }
}
