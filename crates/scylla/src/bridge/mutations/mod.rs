//! SSTables to Parquet: batches of writes become batches of columns.
//!
//! | mapping | a row of Parquet is | it has |
//! |---|---|---|
//! | [`Full`](MutationMapping::Full) | a row of the table, or a deletion | everything: the write can be made of it again |
//! | [`Logical`](MutationMapping::Logical) | a row of the table | what a `SELECT` returns |
//! | [`Verbatim`](MutationMapping::Verbatim) | a partition | Cassandra's flags and times, for comparison |
//!
//! In both, columns have their own names and natural types: `docs/full-mapping.md` lists them, and what `full` has besides.
//!
//! A [`Mapper`] is a machine without I/O:
//!
//! ```text
//! step(budget)  ->  Ready(batch of Parquet) | Need | Yield | Done
//! feed(batch)       answers Need: a batch of the table (see TableColumns)
//! finish()          answers Need: there is no more
//! recycle()     ->  a batch whose arrays are no longer used, for DataReader::recycle
//! ```
//!
//! An [`SstableReader`] has a mapper, and the machines that read one SSTable: files in, batches of Parquet out.
//!
//! A row that is continued over several batches becomes one: it is held until its last part is there.
//!
//! ```text
//! batch ──► held ──────────────► Work ─► keys, natural columns ─► what is not like its row ─► Batch
//!            ▲ next batch: does its last row go on?
//! ```

mod append;
mod back;
mod cells;
mod decode;
mod described;
mod elements;
mod encode;
mod exceptions;
mod flat;
mod keys;
mod leaf;
mod listed;
mod mapper;
mod partition_work;
mod plan;
mod rows;
mod shape;
mod sstable_reader;
pub mod statements;
mod statics;
mod survey;
mod unmapper;
mod verbatim;
mod work;

pub use mapper::{MapStep, Mapper, MapperOptions};
/// What comes out, for tests of what goes in.
#[cfg(test)]
pub(crate) use marquetry_parquet::batch::{Batch, Values as ParquetValues};
pub use sstable_reader::{SstableOptions, SstableReader};
pub use unmapper::{UnmapStep, Unmapper};

use crate::sstable::batch::NO_DELETION_TIME;
use crate::sstable::statistics::Stats;

/// How writes become rows of Parquet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MutationMapping {
    /// Everything, natural to query.
    Full,
    /// What a `SELECT` returns. Its batches must come from a merge as of a time, even if there is only one SSTable.
    Logical,
    /// The first published mapping, for comparison.
    Verbatim,
}

impl MutationMapping {
    /// Its name, in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            MutationMapping::Full => "full",
            MutationMapping::Logical => "logical",
            MutationMapping::Verbatim => "verbatim",
        }
    }
}

/// What is in SSTables, as far as their statistics say. What is not there has no column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Present {
    /// Something expires.
    pub ttls: bool,
    /// Something is deleted.
    pub deletions: bool,
    /// Not everything was written at the same time.
    pub write_times: bool,
}

impl Present {
    /// Everything may be there.
    pub const ALL: Present = Present { ttls: true, deletions: true, write_times: true };

    /// What is in all of these SSTables together.
    pub fn of<'a>(stats: impl IntoIterator<Item = &'a Stats>) -> Present {
        let mut present = Present { ttls: false, deletions: false, write_times: false };
        let mut first = None;
        for stats in stats {
            present.ttls |= stats.ttl_max > 0 || stats.ttl_min > 0;
            // What expires has such a time, too.
            present.deletions |= stats.local_deletion_min != NO_DELETION_TIME;
            let first = *first.get_or_insert(stats.timestamp_min);
            present.write_times |= stats.timestamp_min != first || stats.timestamp_max != first;
        }
        present
    }
}
