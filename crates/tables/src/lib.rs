//! Tables: sources of rows, destinations for rows, and the one function that copies between them.
//!
//! * [`Source`]: a table that rows are read from, in pieces that several threads can read in parallel;
//! * [`Destination`]: a table that rows are written to, which appears complete or not at all;
//! * [`copy`](copy()): copies rows from a source to a destination; sorts and verifies on request;
//! * [`Reading`]: the rows of a source, batch by batch; [`project`], [`filter`](filter()), [`limit`], [`offset`] and [`sample`](sample()):
//!   some of its columns and rows; [`some_pieces`]: one of several readers' share of it;
//! * [`aggregate`](aggregate()): sums, means and the like of its columns, also by groups;
//! * [`convert`](convert()) and [`rename`]: its columns in other types, under other names;
//! * [`column_stats`](column_stats()): what the values of its columns are like;
//! * [`CqlText`]: a destination that writes CQL statements;
//! * [`files`]: Parquet files, directories of them and patterns, as one source;
//! * [`parquet`]: a new Parquet file, or a directory of them, as a destination;
//! * [`sstables`]: the SSTables of a table as a source;
//! * [`ColumnPath`], [`SortBy`]: columns and orders, as people write them;
//! * [`Address`]: what names a table: a path, a URL, standard input;
//! * [`diff`](diff()): where two tables differ;
//! * [`text`]: CSV, TSV and JSON lines, compressed or not, as sources and destinations;
//! * [`Cancel`]: cancels work in progress.
//!
//! What travels is a Parquet schema and column batches; nothing else couples the sources to the destinations.
#![forbid(unsafe_code)]

mod address;
mod aggregate;
mod arrow_durations;
mod bytes_read;
mod cancel;
mod column_stats;
mod convert;
mod copy;
mod cql_text;
mod described;
mod destination;
mod detached;
mod diff;
mod digest;
mod durations;
mod entries;
pub mod files;
mod filter;
mod filtered;
mod gather;
mod kept;
mod key_values;
mod lanes;
mod limit;
mod lost_values;
mod names;
mod note;
pub mod parquet;
mod parts;
mod portions;
mod project;
mod reading;
mod row_order;
mod sample;
mod some_pieces;
mod sort_by;
mod sorting;
mod source;
mod spaced;
pub mod sstables;
mod stage;
pub mod stamps;
mod subject;
pub mod text;
mod token_range;

pub use address::{Address, without_secrets};
pub use aggregate::{Aggregates, Partials, aggregate};
pub use bytes_read::BytesRead;
pub use cancel::Cancel;
pub use column_stats::{
    ColumnStats, Distinct, DistinctCounter, FrequentValue, LeafStats, PlainValue, column_stats,
};
pub use convert::{Rename, convert, rename};
pub use copy::{Copied, CopyOptions, copy};
pub use cql_text::{CqlParts, CqlText, CqlTextOptions};
pub use described::Described;
pub use destination::{Destination, Doing, Wants, Watch, Written};
pub use diff::{
    ColumnDifference, DiffOptions, Differences, DifferentRow, RowDifferences, RowId, SchemaDifferences, diff,
    missing,
};
pub use durations::durations_as_text;
pub use filter::Filter;
pub use filtered::{count, filter};
pub use key_values::TABLE_SCHEMA_KEY;
pub use limit::{limit, offset};
pub use lost_values::LostValues;
pub use marquetry_text::predicate;
pub use names::ColumnPath;
pub use note::Note;
pub use parts::Parts;
pub use portions::Portions;
pub use project::project;
pub use reading::{Reading, ReadingOptions};
pub use sample::sample;
pub use some_pieces::some_pieces;
pub use sort_by::SortBy;
pub use sorting::MEMORY_BYTES;
pub use source::{Batches, Key, Piece, PieceOptions, Source, Table, lines_of};
pub use spaced::spaced;
pub use stage::{Guard, Stage};
pub use token_range::TokenRange;
