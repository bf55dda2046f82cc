//! A Parquet file that is written into a table.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use marquetry_base::cast::{bits_u64, low_u32, u64_of, usize_of_u32};
use marquetry_base::{Bytes, Detail, Error, Limits, Result};
use marquetry_io::blocking::SpillFile;
use marquetry_io::store::{Found, IsCancelled, NewObject, NewObjects, ObjectStream, Spooled, Store};
use marquetry_io::{ByteSink, ByteSource, ObjectVersion};
use marquetry_tables::Cancel;
use marquetry_tables::files::{FileMap, MapOptions, ParquetFile};
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinSet};

use super::head::Head;
use super::part::{Part, Version};
use super::plan::{Cell, plan};
use super::statements::{LEASE_SECONDS, definition, is_columns, properties};
use super::table::Table;
use crate::address::CqlAddress;
use crate::cluster::Cluster;
use crate::error::Error as ClusterError;
use crate::options::CqlOptions;
use crate::rate::Limiter;
use crate::unload::is_scylla;

/// Bytes of cells that are sent and not answered: a node holds each of them several times.
const FLYING_BYTES: u32 = 8 << 20;
/// Partitions that are dropped at a time.
const DROPS: usize = 32;
/// How long it may take to drop a version that failed: the next writer does it, too.
const GIVING_UP: Duration = Duration::from_secs(20);
/// How often a version that is being written says so.
const RENEWED_AFTER: Duration = Duration::from_secs(600);
const _: () = assert!(RENEWED_AFTER.as_secs() * 4 <= LEASE_SECONDS);

/// A table of a cluster that a Parquet file is written into (the layout `columns`), as a [`Store`]: what is
/// [created](Store::create) becomes the table's current version when it is [committed](NewObject::commit).
///
/// Until then it waits in a file without a name, in the system's temporary directory. Of two writers, the one that ends first wins; the other one's
/// version is dropped, and that is an error. Whatever a writer leaves that was killed, the next one drops.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use marquetry_cluster::{CqlOptions, NewColumns};
/// use marquetry_tables::parquet::{NewParquetFile, ParquetOptions};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let mut options = CqlOptions::default();
/// options.create = true;
/// let table = NewColumns::new("cql://localhost/ks.trips".parse().unwrap(), options);
/// let path = table.name().to_owned();
/// let trips = NewParquetFile::new_in(Arc::new(table), path, ParquetOptions::default())?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct NewColumns {
    address: CqlAddress,
    name: String,
    options: CqlOptions,
    is_cancelled: IsCancelled,
}

impl NewColumns {
    /// The table of this address. Nothing is connected yet. Of the options those count that say how to connect, whether to create the table, the
    /// consistency, the bytes a second, and how long is tried again what may pass.
    pub fn new(address: CqlAddress, options: CqlOptions) -> NewColumns {
        NewColumns { name: address.to_string(), address, options, is_cancelled: Arc::new(|| false) }
    }

    /// Its address, without a password: what the file is called in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Connects; makes the table, or looks whether it is one of this layout.
    fn open(&self, replaces: bool) -> Result<NewTableFile> {
        if self.options.rate.rows.is_some() {
            let what = "the layout columns has cells, not rows, which have no rate: say bytes a second";
            return Err(Error::option("rate", what));
        }
        let is_cancelled = Arc::clone(&self.is_cancelled);
        let cancel = Cancel::when(move || is_cancelled());
        let CqlOptions { connect, create, consistency, retry_for, .. } = &self.options;
        let cluster = Cluster::connect_unless(cancel, self.address.clone(), connect)?;
        let name = self.address.table();
        if *create {
            cluster.create_table_with(&definition(name)?, &[], properties(is_scylla(cluster.session())))?;
        } else {
            let existing = cluster.table()?.ok_or_else(|| ClusterError::NoTable(name.clone()))?;
            if !is_columns(&existing) {
                let what = format!(
                    "the table {name} has columns of its own, and so not the layout columns: choose another name, or create a table"
                );
                return Err(Error::refused(what));
            }
        }
        let table = Table::new(cluster, (*consistency, *retry_for), true)?;
        let looking = {
            let table = Arc::clone(&table);
            async move { table.agreed().await }
        };
        let (was, _) = table.cluster.runtime().wait(looking)??;
        // A later format is not written over.
        was.as_deref().map(Head::parse).transpose()?;
        if was.is_some() && !replaces {
            let what = "the table has a file already, which would be replaced";
            return Err(Error::io(what).with(Detail::AlreadyExists));
        }
        Ok(NewTableFile {
            name: self.name.clone(),
            table,
            was,
            spill: SpillFile::create(None)?,
            bytes: 0,
            limiter: Limiter::new(self.options.rate),
            is_cancelled: Arc::clone(&self.is_cancelled),
        })
    }

    fn write_only(&self) -> Error {
        self.named(Error::misuse("this table was opened to be written"))
    }

    fn named(&self, error: Error) -> Error {
        error.at(|place| place.object = Some(self.name.clone()))
    }
}

impl fmt::Debug for NewColumns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewColumns").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Store for NewColumns {
    fn cancellable(&self, is_cancelled: IsCancelled) -> Option<Arc<dyn Store>> {
        let before = Arc::clone(&self.is_cancelled);
        let is_cancelled: IsCancelled = Arc::new(move || before() || is_cancelled());
        Some(Arc::new(NewColumns { is_cancelled, ..self.clone() }))
    }

    /// Nothing, as far as is known before it is connected to: whether a file is there that may not be replaced is found when one is created.
    fn look(&self, _: &Path) -> Result<Found> {
        Ok(Found::Nothing)
    }

    fn find(&self, _: &Path, _: &[&str]) -> Result<Vec<PathBuf>> {
        Err(self.write_only())
    }

    fn open(&self, _: &Path) -> Result<(Box<dyn ByteSource + Send>, ObjectVersion)> {
        Err(self.write_only())
    }

    fn stream(&self, _: &Path, _: Box<dyn Fn() -> bool + Send>) -> Result<ObjectStream> {
        Err(self.write_only())
    }

    fn create(&self, _: &Path, replaces: bool) -> Result<Box<dyn NewObject>> {
        let file = NewColumns::open(self, replaces).map_err(|error| self.named(error))?;
        Ok(Box::new(file))
    }

    fn create_directory(&self, _: &Path, _: bool, _: &'static [&'static str]) -> Result<Box<dyn NewObjects>> {
        Err(self.named(Error::misuse("a table holds one file, and no directory")))
    }
}

/// A file that is being written.
struct NewTableFile {
    name: String,
    table: Arc<Table>,
    /// What was current when it began.
    was: Option<Bytes>,
    spill: SpillFile,
    bytes: u64,
    limiter: Limiter,
    is_cancelled: IsCancelled,
}

impl ByteSink for NewTableFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.spill.append(bytes)?;
        self.bytes += u64_of(bytes.len());
        Ok(())
    }

    fn read(&mut self, range: Range<u64>) -> Result<Bytes> {
        self.spill.read(range)
    }
}

impl NewObject for NewTableFile {
    fn readable(&self) -> Option<PathBuf> {
        None
    }

    fn scratch(&self) -> Option<&Path> {
        None
    }

    fn commit(self: Box<Self>) -> Result<()> {
        let NewTableFile { name, table, was, spill, bytes, limiter, is_cancelled } = *self;
        let named = |error: Error| error.at(|place| place.object = Some(name.clone()));
        let file = Spooled::of(name.clone(), spill, bytes);
        let store: Arc<dyn Store> = Arc::new(file.clone());
        let mut options = MapOptions::default();
        options.cancel = Cancel::when(move || is_cancelled());
        // It was written here, with the limits that were asked for.
        let extents = ParquetFile::open_in(&store, Path::new(&name), Limits::TRUSTED)
            .and_then(|file| FileMap::of(&file, &options))
            .map_err(&named)?
            .extents;
        let (cells, map) = plan(&extents);
        let encoded = map.encoded();
        let version = Version::random();
        let head = Head { version, file_bytes: map.bytes(), map_bytes: u64_of(encoded.len()) };
        // A later one could not read it.
        Head::parse(head.text().as_bytes()).map_err(&named)?;
        let runtime = table.cluster.runtime();
        let mut pieces: Vec<(Cell, Source)> = cells.into_iter().map(|cell| (cell, Source::File)).collect();
        for (nth, piece) in encoded.chunks(MAP_CELL_BYTES).enumerate() {
            let start = u64_of(nth * MAP_CELL_BYTES);
            let cell = Cell { part: Part::MAP, range: start..start + u64_of(piece.len()) };
            pieces.push((cell, Source::Bytes(Bytes::copy_from_slice(piece))));
        }
        let mut parts = map.parts();
        parts.push(Part::MAP);
        let writing = write(Arc::clone(&table), version, pieces, file, limiter);
        let written = runtime.wait(writing).map_err(Error::from).and_then(|written| written);
        let published = written.and_then(|()| {
            let (table, text) = (Arc::clone(&table), head.text());
            let publishing = async move { table.publish(version, was.as_ref(), &text).await };
            runtime.wait_through(publishing).map_err(Error::from).and_then(|published| published)
        });
        if let Err(error) = published {
            let giving_up = in_time(give_up(Arc::clone(&table), version, parts));
            match runtime.wait_through(giving_up) {
                // The answer to what made it current was lost.
                Ok(Ok(Given::Current)) => {}
                // What is left of it, if anything is, the next writer drops.
                _ => return Err(named(error)),
            }
        }
        let dropping = drop_others(Arc::clone(&table));
        let dropped = runtime.wait(dropping).map_err(Error::from).and_then(|dropped| dropped);
        dropped.map_err(|error| {
            let message = format!(
                "the new version is in place, but what is left of others could not be dropped, which the next one does: {}",
                error.message()
            );
            named(error.reworded(message))
        })
    }
}

/// Bytes of a cell of the map.
const MAP_CELL_BYTES: usize = 256 << 10;

/// Where a cell's bytes are.
enum Source {
    File,
    Bytes(Bytes),
}

/// Writes all cells of a version.
async fn write(
    table: Arc<Table>,
    version: Version,
    cells: Vec<(Cell, Source)>,
    file: Spooled,
    mut limiter: Limiter,
) -> Result<()> {
    table.lease(version).await?;
    let began = Instant::now();
    let (room, mut sending, mut renewed) =
        (Arc::new(Semaphore::new(usize_of_u32(FLYING_BYTES))), JoinSet::new(), Instant::now());
    for (Cell { part, range }, source) in cells {
        while let Some(sent) = sending.try_join_next() {
            sent.map_err(panicked)??;
        }
        if renewed.elapsed() > RENEWED_AFTER {
            table.renew(version).await?;
            renewed = Instant::now();
        }
        let length = range.end - range.start;
        let wait = limiter.take_all(began.elapsed(), 0, length);
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        let permits = low_u32(length.min(u64::from(FLYING_BYTES)));
        let permit = Arc::clone(&room).acquire_many_owned(permits).await;
        let bytes = match source {
            Source::File => ByteSource::read(&file, range.clone())?,
            Source::Bytes(bytes) => bytes,
        };
        let table = Arc::clone(&table);
        sending.spawn(async move {
            let _permit = permit;
            table.put(version, part, range.start, &bytes).await
        });
    }
    while let Some(sent) = sending.join_next().await {
        sent.map_err(panicked)??;
    }
    Ok(())
}

/// What became of a version that was given up.
enum Given {
    /// It is current all the same.
    Current,
    /// It was dropped.
    Dropped,
}

/// Drops what was written of a version that will not be current. Without its lease it cannot become that, however late what was to make it current
/// arrives; so it is dropped only after that.
async fn give_up(table: Arc<Table>, version: Version, parts: Vec<Part>) -> Result<Given> {
    table.give_back(version).await?;
    let (head, leases) = table.agreed().await?;
    if head.as_deref().and_then(|head| Head::parse(head).ok()).is_some_and(|head| head.version == version) {
        return Ok(Given::Current);
    }
    if leases.contains(&bits_u64(version.lease())) {
        return Err(Error::internal("a lease that was given back is there"));
    }
    drop_parts(&table, parts.into_iter().map(|part| (version, part)).collect()).await?;
    Ok(Given::Dropped)
}

/// Gives something up that takes too long.
async fn in_time<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let done = tokio::time::timeout(GIVING_UP, work).await;
    done.unwrap_or_else(|_| Err(Error::io("what was written could not be dropped in time")))
}

/// Drops all versions but the one that is current, and those that are being written.
///
/// A version says that it is being written before its first cell is. So of those whose partitions are seen, one that does not say so any more, and
/// is not current, will never be.
async fn drop_others(table: Arc<Table>) -> Result<()> {
    let seen = table.partitions().await?;
    let (head, leases) = table.agreed().await?;
    let current = head.as_deref().map(Head::parse).transpose()?.map(|head| head.version);
    let leases: BTreeSet<u64> = leases.into_iter().collect();
    let is_left = |version: &Version| {
        *version != Version::NONE && Some(*version) != current && !leases.contains(&bits_u64(version.lease()))
    };
    drop_parts(&table, seen.into_iter().filter(|(version, _)| is_left(version)).collect()).await
}

async fn drop_parts(table: &Arc<Table>, parts: Vec<(Version, Part)>) -> Result<()> {
    let mut dropping = JoinSet::new();
    for (version, part) in parts {
        if dropping.len() >= DROPS
            && let Some(dropped) = dropping.join_next().await
        {
            dropped.map_err(panicked)??;
        }
        let table = Arc::clone(table);
        dropping.spawn(async move { table.drop_part(version, part).await });
    }
    while let Some(dropped) = dropping.join_next().await {
        dropped.map_err(panicked)??;
    }
    Ok(())
}

fn panicked(_: JoinError) -> Error {
    Error::internal("a task panicked")
}
