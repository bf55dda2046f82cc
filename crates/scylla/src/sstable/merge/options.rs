//! What a merge comes to, and what it depends on.

use marquetry_base::{Error, Limits, Result};

use crate::sstable::murmur3_token;

/// What a merge comes to.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MergeOptions {
    /// Hand out only what a SELECT returns at this time: seconds since 1970.
    pub live_at: Option<u32>,
    /// Bounds on what is held.
    pub limits: Limits,
    /// How partitions are sorted.
    pub partitioner: Partitioner,
    /// Which of two cells counts that differ only in their TTLs and values.
    pub ties: Ties,
    /// What a row needs to be alive, if only that is wanted.
    pub liveness: Liveness,
}

impl Default for MergeOptions {
    fn default() -> MergeOptions {
        MergeOptions {
            live_at: None,
            limits: Limits::DEFAULT,
            partitioner: Partitioner::Murmur3,
            ties: Ties::LowerTtl,
            liveness: Liveness::Anything,
        }
    }
}

/// How partitions are sorted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Partitioner {
    /// By [their tokens](murmur3_token), and then by their keys.
    #[default]
    Murmur3,
    /// By their keys.
    ByteOrdered,
    /// In another way, which is not known: of one input only, whose order stays as it is.
    Other,
}

impl Partitioner {
    /// The partitioner of a class that [`Statistics::partitioner`](crate::sstable::statistics::Statistics::partitioner) names.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](marquetry_base::ErrorKind::Unsupported) for others, as `RandomPartitioner` (whose tokens are MD5 sums) and
    /// the partitioners of local tables.
    pub fn of_class(class: &str) -> Result<Partitioner> {
        match class.rsplit('.').next() {
            Some("Murmur3Partitioner") => Ok(Partitioner::Murmur3),
            Some("ByteOrderedPartitioner") => Ok(Partitioner::ByteOrdered),
            _ => Err(Error::unsupported(alloc::format!("merging SSTables that {class} sorts"))),
        }
    }

    /// The number that keys are sorted by first.
    pub(super) fn token(self, key: &[u8]) -> i64 {
        match self {
            Partitioner::Murmur3 => murmur3_token(key),
            Partitioner::ByteOrdered | Partitioner::Other => 0,
        }
    }
}

/// Which of two cells counts whose write times and expiry are equal, but whose TTLs are not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ties {
    /// The one with the lower TTL, which was written later: ScyllaDB, and Cassandra after 5.0.
    #[default]
    LowerTtl,
    /// The one with the greater value: Cassandra up to 5.0.
    GreaterValue,
}

/// What a row needs to be alive.
///
/// A row of a table lives while anything in it does. That of a materialized view whose key has a column that is not in its table's key lives
/// only while its row marker does: when that column changes, the row moves, and of the old one nothing but the marker may be deleted.
/// Cassandra overwrites it with one that has expired, of TTL 2³¹ - 1. (`ScyllaDB` writes such markers in tables, too, for those that expired
/// by themselves.)
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Liveness {
    /// A live marker, or a live cell: tables, and views whose key is that of their table in another order.
    #[default]
    Anything,
    /// That, and no marker of TTL 2³¹ - 1: SSTables of Cassandra that may be of a table or of a view.
    NotMoved,
    /// That, and no marker that has expired, or that a shadowable deletion deleted: a view of which the table's key is not known.
    NotExpired,
    /// A live marker: views whose key has a column that is not in their table's key.
    Marker,
}
