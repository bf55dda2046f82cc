//! SSTables: the files that Cassandra and ScyllaDB keep tables in.
//!
//! An SSTable is a handful of files, its *components*, whose names differ only at their ends. To read one takes three machines:
//!
//! 1. [`StatisticsReader`](statistics::StatisticsReader): Statistics.db has the types of keys and columns;
//! 2. [`CompressionInfoReader`](compression_info::CompressionInfoReader), if there is a CompressionInfo.db; or else
//!    [`ChecksumsReader`](checksums::ChecksumsReader), if there is a CRC.db;
//! 3. [`DataReader`]: Data.db has the rows, which come out as [batches](batch::MutationBatch) of writes.
//!
//! A [`PartitionFinder`](index::PartitionFinder) finds the part of the data that has a partition, or those of a token range, and splits an
//! SSTable in pieces that can be read on their own: by Index.db and Summary.db, or by Partitions.db and Rows.db.
//! [`FilterReader`](filter::FilterReader) says whether a key may be there at all, and
//! [`ScyllaMetadataReader`](scylla_metadata::ScyllaMetadataReader) how ScyllaDB calls the columns of the key.
//!
//! An [`SstableReader`](crate::bridge::mutations::SstableReader) is all of these for one SSTable: its products are batches of Parquet.
//!
//! A [`SstableWriter`](write::SstableWriter) makes an SSTable of batches of writes.
//!
//! A [`Merger`](merge::Merger) makes one stream of batches of those of many SSTables, or of what is alive in them.
//!
//! While servers replace SSTables by others, a [`TransactionLog`] says which of them count.
//!
//! [`FileName`] says which component a file is, and the [`Version`] of the format.
//!
//! | version | checked with files of |
//! |---|---|
//! | `mc`, `md`, `me` | Cassandra 3.0 and 3.11 |
//! | `nb` | Cassandra 4.1 |
//! | `oa`, `da` | Cassandra 5.0 |
//! | `ma`, `mb`, `na` | none; their differences are in Statistics.db, by Cassandra's source |
//! | `ms`, `mt`; files of ScyllaDB; its compressors with dictionaries, and its chunks that are stored as they are | none; by its documents and source |

pub mod batch;
pub mod checksums;
mod chunks;
pub mod compare;
pub mod compression_info;
pub mod counter;
mod data;
mod defined;
mod definition;
mod dropped;
mod elements;
pub mod filter;
mod flags;
pub mod index;
pub mod marshal;
pub mod merge;
pub mod scylla_metadata;
pub mod statistics;
mod table_columns;
mod table_of;
mod text;
mod toc;
mod token;
mod transaction;
mod version;
pub mod vint;
pub mod write;

pub use chunks::Packing;
pub(crate) use data::fill::{push_empty, push_value};
pub use data::{DataOptions, DataReader};
pub use elements::ComponentReader;
pub use table_columns::{ColumnMap, KeyColumn, KeyNames, TableColumns};
pub use table_of::{KnownName, TableOf};
pub use text::{TextParser, TextReader};
pub use toc::{Component, FileName, parse_toc};
pub use token::murmur3_token;
pub use transaction::{Operation, TransactionEnd, TransactionLog, parse_pending_delete};
pub use version::{IndexKind, Version};
