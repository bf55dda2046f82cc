//! What SSTables say of themselves, without a look at their rows.

use std::path::Path;

use marquetry_base::Result;
use marquetry_base::cast::unsigned;
use marquetry_scylla::sstable::Packing;
use marquetry_scylla::sstable::marshal::MarshalType;
use marquetry_scylla::sstable::statistics::{Histogram, Stats};

use super::SstablesOf;
use super::component::Sstable;
use super::options::SstablesOptions;
use crate::Note;

/// What is known of the SSTables of a table from all of their components but Data.db.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SstablesDescription {
    /// What was described: a path.
    pub name: String,
    /// The table's name, where a path or a definition says it.
    pub table: Option<String>,
    /// The file of the definition that key columns have their names from, if there is one.
    pub definition: Option<String>,
    /// Columns that SSTables have and the table does not, by its definition.
    pub left_out: Vec<String>,
    /// What whoever reads the table should know.
    pub notes: Vec<Note>,
    /// The table's columns: the partition key, clustering columns, static and other columns.
    pub columns: Vec<DescribedColumn>,
    /// The SSTables.
    pub sstables: Vec<SstableDescription>,
    /// All of them together: what is added up, the least and the greatest.
    pub total: Facts,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DescribedColumn {
    /// Its name.
    pub name: String,
    /// Its type in CQL, or the class that CQL has no name for.
    pub kind: String,
    /// What it is.
    pub role: ColumnRole,
    /// A clustering column in descending order.
    pub is_descending: bool,
}

/// What a column is in its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ColumnRole {
    /// Of the partition key.
    PartitionKey,
    /// A clustering column.
    Clustering,
    /// Static.
    Static,
    /// Any other.
    Regular,
}

/// What is known of an SSTable.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SstableDescription {
    /// The path of its Data.db.
    pub name: String,
    /// The version of the format.
    pub version: String,
    /// `big` or `bti`.
    pub format: String,
    /// The names of its components, and their bytes.
    pub components: Vec<(String, u64)>,
    /// How Data.db is compressed. `None`: it is not.
    pub compression: Option<Compression>,
    /// The class of the partitioner.
    pub partitioner: String,
    /// Its level, of levelled compaction.
    pub level: i32,
    /// When it was repaired, in milliseconds since 1970. `None`: it was not.
    pub repaired_at: Option<i64>,
    /// The node that wrote it.
    pub host_id: Option<[u8; 16]>,
    /// The share of the token range that it covers.
    pub token_space_coverage: Option<f64>,
    /// Numbers and times.
    pub facts: Facts,
}

/// How a Data.db is compressed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compression {
    /// The compressor, as the server names its class.
    pub class: String,
    /// Bytes of a chunk, uncompressed.
    pub chunk_bytes: u32,
    /// Bytes of the data, uncompressed.
    pub data_bytes: u64,
}

/// Numbers and times of one SSTable, or of several.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Facts {
    /// Partitions. One that is in several SSTables is counted in each.
    pub partitions: u64,
    /// Rows, static ones in some versions; counted in each SSTable that has them.
    pub rows: u64,
    /// Cells.
    pub cells: u64,
    /// Tombstones, and cells that expire: what compaction may drop at some time.
    pub droppable: u64,
    /// When the first and the last of them may be dropped, in seconds since 1970.
    pub droppable_times: Option<(u64, u64)>,
    /// Whether partitions are deleted, where that is known.
    pub has_partition_deletions: Option<bool>,
    /// The least and the greatest write time, in microseconds since 1970. `None` where nothing has one.
    pub timestamps: Option<(i64, i64)>,
    /// The earliest and the latest local deletion time, in seconds since 1970; each is [`NO_DELETION_TIME`](marquetry_scylla::sstable::batch::NO_DELETION_TIME) for what is live for good: the
    /// earliest if nothing is deleted or expires, the latest if anything is not.
    pub local_deletion_times: (u32, u32),
    /// The least and the greatest TTL, in seconds; the least is 0 if something has none. `None` if nothing has one.
    pub ttls: Option<(u32, u32)>,
    /// Bytes of Data.db.
    pub data_bytes: u64,
    /// Bytes of the data, uncompressed.
    pub uncompressed_bytes: u64,
    /// Bytes of all components.
    pub bytes: u64,
    /// How many bytes partitions have, uncompressed.
    pub partition_sizes: Histogram,
    /// How many cells partitions have.
    pub partition_cells: Histogram,
}

/// Describes the SSTables that a path names.
///
/// ```no_run
/// use marquetry_tables::sstables::{SstablesOptions, describe};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let described = describe("data/ks/t-f34b6ff0f8f711eb9fcf000000000000".as_ref(), &SstablesOptions::default())?;
/// println!("{} rows in {} SSTables", described.total.rows, described.sstables.len());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As [`Sstables::open`](super::Sstables::open).
pub fn describe(path: &Path, options: &SstablesOptions) -> Result<SstablesDescription> {
    let table = SstablesOf::open(path, options)?;
    let sstables = table.sstables.iter().map(|sstable| one(&table, sstable)).collect::<Result<Vec<_>>>()?;
    let mut facts = sstables.iter().map(|sstable| &sstable.facts);
    let mut total = facts.next().cloned().unwrap_or_default();
    facts.for_each(|facts| total.add(facts));
    let columns = columns(&table);
    let (notes, left_out) = (table.notes(), table.defined.left_out());
    let SstablesOf { name, defined, .. } = table;
    let (table, definition) = (defined.name, defined.from);
    Ok(SstablesDescription { name, table, definition, left_out, notes, columns, sstables, total })
}

fn columns(table: &SstablesOf) -> Vec<DescribedColumn> {
    let described = |name: String, kind: &MarshalType, role| DescribedColumn {
        name,
        kind: kind.cql().map_or_else(|| format!("{kind:?}"), |kind| kind.to_string()),
        role,
        is_descending: kind.is_reversed(),
    };
    let columns = &table.defined.columns;
    let keys = columns.partition_key.iter().map(|key| (key, ColumnRole::PartitionKey));
    let keys = keys.chain(columns.clustering.iter().map(|key| (key, ColumnRole::Clustering)));
    let cells = columns.statics.iter().map(|column| (column, ColumnRole::Static));
    let cells = cells.chain(columns.regulars.iter().map(|column| (column, ColumnRole::Regular)));
    let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    keys.map(|(key, role)| described(key.name.clone(), &key.kind, role))
        .chain(cells.map(|(column, role)| described(text(&column.name), &column.kind, role)))
        .collect()
}

fn one(table: &SstablesOf, sstable: &Sstable) -> Result<SstableDescription> {
    let (statistics, files) = (&sstable.statistics, &sstable.files);
    let compression = match sstable.packing(&*table.store, table.limits)? {
        Packing::Compressed(info) => Some(Compression {
            class: info.compressor.name().to_owned(),
            chunk_bytes: info.chunk_bytes,
            data_bytes: info.data_bytes,
        }),
        Packing::Plain(_) => None,
    };
    let mut facts = Facts::of(&statistics.stats);
    facts.data_bytes = sstable.data_bytes();
    facts.uncompressed_bytes = compression.as_ref().map_or(facts.data_bytes, |it| it.data_bytes);
    facts.bytes = files.components.iter().fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes));
    let stats = &statistics.stats;
    Ok(SstableDescription {
        name: files.shown(),
        version: files.name.version.to_string(),
        format: files.name.format.clone(),
        components: files.components.iter().map(|(it, bytes)| (it.name().to_owned(), *bytes)).collect(),
        compression,
        partitioner: statistics.partitioner.clone(),
        level: stats.level,
        repaired_at: Some(stats.repaired_at).filter(|at| *at != 0),
        host_id: stats.host_id,
        token_space_coverage: stats.token_space_coverage,
        facts,
    })
}

/// Cassandra's `Cell.NO_DELETION_TIME`: its early versions count cells that are not deleted among what can be dropped, at this time.
const NO_DELETION_TIME: u64 = 0x7fff_ffff;

impl Facts {
    fn of(stats: &Stats) -> Facts {
        let droppable = stats.tombstone_drop_times.iter().filter(|(at, _)| *at != NO_DELETION_TIME);
        let drop_times = droppable.clone().map(|(at, _)| *at);
        // What is empty has them the wrong way round.
        let timestamps = (stats.timestamp_min, stats.timestamp_max);
        let seconds = |ttl: i32| u32::try_from(ttl).unwrap_or(0);
        Facts {
            partitions: stats.partition_sizes.count(),
            rows: unsigned(stats.rows).unwrap_or(0),
            cells: unsigned(stats.cells).unwrap_or(0),
            droppable: droppable.fold(0, |sum, (_, count)| sum.saturating_add(*count)),
            droppable_times: drop_times.clone().min().zip(drop_times.max()),
            has_partition_deletions: stats.has_partition_deletions,
            timestamps: Some(timestamps).filter(|(least, greatest)| least <= greatest),
            local_deletion_times: (stats.local_deletion_min, stats.local_deletion_max),
            ttls: (stats.ttl_max > 0).then(|| (seconds(stats.ttl_min), seconds(stats.ttl_max))),
            partition_sizes: stats.partition_sizes.clone(),
            partition_cells: stats.partition_cells.clone(),
            ..Facts::default()
        }
    }

    /// Adds those of another SSTable.
    fn add(&mut self, other: &Facts) {
        self.partitions = self.partitions.saturating_add(other.partitions);
        self.rows = self.rows.saturating_add(other.rows);
        self.cells = self.cells.saturating_add(other.cells);
        self.droppable = self.droppable.saturating_add(other.droppable);
        self.droppable_times = widest(self.droppable_times, other.droppable_times);
        self.has_partition_deletions = match (self.has_partition_deletions, other.has_partition_deletions) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (Some(false), Some(false)) => Some(false),
            _ => None,
        };
        self.timestamps = widest(self.timestamps, other.timestamps);
        let (from, to) = &mut self.local_deletion_times;
        *from = (*from).min(other.local_deletion_times.0);
        *to = (*to).max(other.local_deletion_times.1);
        self.ttls = widest(self.ttls, other.ttls);
        self.data_bytes = self.data_bytes.saturating_add(other.data_bytes);
        self.uncompressed_bytes = self.uncompressed_bytes.saturating_add(other.uncompressed_bytes);
        self.bytes = self.bytes.saturating_add(other.bytes);
        add_histogram(&mut self.partition_sizes, &other.partition_sizes);
        add_histogram(&mut self.partition_cells, &other.partition_cells);
    }
}

/// The range that has both.
fn widest<T: Ord + Copy>(one: Option<(T, T)>, other: Option<(T, T)>) -> Option<(T, T)> {
    match (one, other) {
        (Some((from, to)), Some((other_from, other_to))) => Some((from.min(other_from), to.max(other_to))),
        (one, other) => one.or(other),
    }
}

/// Adds the buckets of a histogram to those of another, by their bounds.
fn add_histogram(sum: &mut Histogram, other: &Histogram) {
    for (bound, count) in other.buckets.iter().filter(|(_, count)| *count > 0) {
        match sum.buckets.binary_search_by_key(bound, |(bound, _)| *bound) {
            Ok(at) => sum.buckets[at].1 = sum.buckets[at].1.saturating_add(*count),
            Err(at) => sum.buckets.insert(at, (*bound, *count)),
        }
    }
}
