//! The layout `columns`: a Parquet file within a table, so that one column costs that column's partitions only.
//!
//! ```text
//! NewColumns ── create ──► a file without a name ── commit ──► FileMap ──► plan: cells, parts
//!                                                      cells of a new version, many at a time
//!                                                      one conditional write makes the version current
//!                                                      partitions of other versions are deleted
//! ColumnsTable ── open ──► the current version, its map, its last cell
//!     └─ TableFile: a range of bytes ──► the parts that hold it ──► SELECT of the cells that begin in it
//! ```
//!
//! Both are [stores](marquetry_io::store::Store) of one object. So whatever reads or writes Parquet files reads and writes those in tables, by the
//! same machines. The format is in `docs/layouts.md`.

mod head;
mod map;
mod new_file;
mod part;
mod plan;
mod run;
mod source;
mod statements;
mod store;
mod table;

pub use new_file::NewColumns;
pub(crate) use statements::is_columns;
pub use store::ColumnsTable;
