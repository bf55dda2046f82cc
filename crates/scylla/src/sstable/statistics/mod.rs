//! Statistics.db: the columns of an SSTable, and what is known of its rows.
//!
//! The file is a list of components (`MetadataSerializer.java`): how the Bloom filter was made, how many partitions there are (which
//! is skipped here), statistics, and the *serialization header*: the types of keys and columns, without which Data.db cannot be read.
//!
//! In memory it may take ten times its bytes, so it is limited as the page index of a Parquet file is.
//!
//! Names of key columns are not in it. [`StatisticsReader`] reads it.

mod read;

use alloc::string::String;
use alloc::vec::Vec;

use marquetry_base::{Budget, RELEASE_PRICE, Release};

use super::marshal::MarshalType;

pub use read::StatisticsReader;
pub(in crate::sstable) use read::{DELETION_TIME_EPOCH, TIMESTAMP_EPOCH};

/// What Statistics.db holds.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Statistics {
    /// The class of the partitioner, which says in what order partitions are: `org.apache.cassandra.dht.Murmur3Partitioner`.
    pub partitioner: String,
    /// The share of false positives that the Bloom filter was made for.
    pub bloom_false_positives: f64,
    /// What is known of the rows.
    pub stats: Stats,
    /// The types of keys and columns.
    pub header: SerializationHeader,
}

/// The types of keys and columns (`SerializationHeader.java`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SerializationHeader {
    /// What timestamps are stored as differences from, in microseconds since 1970, whatever clients make of that.
    pub timestamp_min: i64,
    /// What local deletion times are stored as differences from: seconds since 1970, in 32 bits.
    pub local_deletion_min: u32,
    /// What TTLs are stored as differences from, in seconds.
    pub ttl_min: u32,
    /// The type of partition keys: a [composite](MarshalType::Composite) if several columns are in it.
    pub key: MarshalType,
    /// The types of clustering columns.
    pub clustering: Vec<MarshalType>,
    /// The static columns, in the order of their cells.
    pub statics: Vec<HeaderColumn>,
    /// The other columns, in the order of their cells.
    pub regulars: Vec<HeaderColumn>,
}

/// A column of a [`SerializationHeader`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderColumn {
    /// Its name: UTF-8, except in tables made without CQL.
    pub name: Vec<u8>,
    /// Its type.
    pub kind: MarshalType,
}

/// What is known of the rows of an SSTable (`StatsMetadata.java`).
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// How large partitions are, in bytes.
    pub partition_sizes: Histogram,
    /// How many cells partitions have.
    pub partition_cells: Histogram,
    /// The least write time, in microseconds.
    pub timestamp_min: i64,
    /// The greatest write time.
    pub timestamp_max: i64,
    /// The earliest local deletion time: when something was deleted, or expires. [`NO_DELETION_TIME`] if nothing was or does.
    ///
    /// [`NO_DELETION_TIME`]: super::batch::NO_DELETION_TIME
    pub local_deletion_min: u32,
    /// The latest local deletion time; [`NO_DELETION_TIME`](super::batch::NO_DELETION_TIME) if anything is live for good.
    pub local_deletion_max: u32,
    /// The least TTL, in seconds; 0 if something has none.
    pub ttl_min: i32,
    /// The greatest TTL.
    pub ttl_max: i32,
    /// Bytes of Data.db to bytes that it has uncompressed; -1 if it is not compressed.
    pub compression_ratio: f64,
    /// When tombstones can be dropped, in seconds, and how many are there.
    pub tombstone_drop_times: Vec<(u64, u64)>,
    /// Its level, of levelled compaction.
    pub level: i32,
    /// When it was repaired, in milliseconds since 1970; 0 if it was not.
    pub repaired_at: i64,
    /// The least clustering values, one a column, as far as known. See
    /// [`Version::has_accurate_min_max`](super::Version::has_accurate_min_max).
    pub clustering_min: Vec<Vec<u8>>,
    /// The greatest clustering values.
    pub clustering_max: Vec<Vec<u8>>,
    /// Counters have shards of Cassandra before 2.1.
    pub has_legacy_counter_shards: bool,
    /// Cells.
    pub cells: i64,
    /// Rows.
    pub rows: i64,
    /// The parts of the commit log whose writes are in it, of the node that [wrote](Stats::host_id) it. A flush has that of its memtable; what
    /// is compacted has those of all that went into it, joined where they meet. ScyllaDB has none, nor have SSTables that came from elsewhere.
    pub commit_log_intervals: Vec<CommitLogInterval>,
    /// The session that repairs it.
    pub pending_repair: Option<[u8; 16]>,
    /// It is a transient replica's.
    pub is_transient: bool,
    /// The node that wrote it.
    pub host_id: Option<[u8; 16]>,
    /// Whether partitions are deleted, if that is known.
    pub has_partition_deletions: Option<bool>,
    /// The first and the last partition key.
    pub key_range: Option<(Vec<u8>, Vec<u8>)>,
    /// The share of the token range that it covers.
    pub token_space_coverage: Option<f64>,
}

/// A part of a commit log, from one position to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitLogInterval {
    /// Where it begins.
    pub start: CommitLogPosition,
    /// Where it ends.
    pub end: CommitLogPosition,
}

/// A place in a commit log. Later ones are greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitLogPosition {
    /// The number of the segment, which begins with the time when the server started.
    pub segment: i64,
    /// The byte in the segment.
    pub byte: i32,
}

/// Numbers of things, by their size.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    /// The upper bound of a bucket (the sizes in it are up to and including that), and how many things are in it. The last one has no
    /// upper bound: its number is the bound of the one before it.
    pub buckets: Vec<(u64, u64)>,
}

impl Histogram {
    /// The number of things.
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// The bound of the bucket that has the thing before which this share of them is, in percent; 0 if there are none.
    ///
    /// ```
    /// use marquetry_scylla::sstable::statistics::Histogram;
    ///
    /// let sizes = Histogram { buckets: vec![(10, 98), (20, 1), (30, 1)] };
    /// assert_eq!([50, 98, 99, 100].map(|percent| sizes.percentile(percent)), [10, 10, 20, 30]);
    /// ```
    pub fn percentile(&self, percent: u64) -> u64 {
        let wanted = u128::from(self.count()) * u128::from(percent.min(100));
        let mut seen = 0_u128;
        let is_there = |(_, count): &&(u64, u64)| {
            seen += 100 * u128::from(*count);
            *count > 0 && seen >= wanted
        };
        self.buckets.iter().find(is_there).map_or(0, |(bound, _)| *bound)
    }

    /// The bound of the last bucket that is not empty; 0 if all are.
    pub fn most(&self) -> u64 {
        self.buckets.iter().rev().find(|(_, count)| *count > 0).map_or(0, |(bound, _)| *bound)
    }
}

impl Release for Statistics {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        // A file's statistics have some kilobytes; only columns can be many.
        release_columns(&mut self.header.statics, budget)
            && release_columns(&mut self.header.regulars, budget)
    }
}

/// Drops columns, as many as the budget pays for. True if none is left.
pub(super) fn release_columns(columns: &mut Vec<HeaderColumn>, budget: &mut Budget<'_>) -> bool {
    while columns.pop().is_some() {
        // A name, and the parts of a type.
        budget.charge(RELEASE_PRICE, 0, 4);
        if budget.is_spent() {
            return columns.is_empty();
        }
    }
    true
}
