//! Rows as the writes that an SSTable is made of: what `INSERT` statements would leave, without a server.
//!
//! ```text
//! batch ──► RowEncoder ──► RowRecords: a sort key and a record for each row ──► sorted by the key ──► RowAssembler ──► MutationBatch
//! ```
//!
//! A [`RowEncoder`] makes a record of each row of a [`Mapping`](super::Mapping): its cells as SSTables store them, its write time and TTL. The
//! key of a record is a string of bytes whose order is that of SSTables: the token, the partition key, the clustering values. Whoever sorts
//! records needs to know nothing else of CQL. A [`RowAssembler`] is given the records in that order; those with one key become one row, as
//! servers merge them.
//!
//! Sets and maps are sorted and each element is there once, in values of any depth; elements of lists get time UUIDs, which are derived from the write
//! time: the same rows are the same bytes each time.

mod assemble;
mod elements;
mod encode;
mod merged;
mod record;
mod sorted;

pub use assemble::RowAssembler;
pub use encode::{RowEncoder, RowStamp};
pub use record::RowRecords;
