//! Apache Parquet for ScyllaDB and Apache Cassandra: the front door.
//!
//! All rows of a file, a directory of files, or a pattern:
//!
//! ```no_run
//! # fn main() -> marquetry::Result<()> {
//! for batch in marquetry::open("trips.parquet")?.batches()? {
//!     println!("{} rows", batch?.rows);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! From anywhere to anywhere, as `marquetry copy` does it:
//!
//! ```no_run
//! # fn main() -> marquetry::Result<()> {
//! let copied = marquetry::copy("trips/", "trips.parquet")?;
//! println!("{} rows", copied.rows);
//! # Ok(())
//! # }
//! ```
//!
//! [`Reader`] has columns by name, limits, Arrow's record batches (feature `arrow`) and streams (feature `stream`);
//! [`create`] creates a file; [`Target`] is any other place to write to, with its options. [`tables`] has what these are built on: sources, destinations, and the copy between
//! them with all of its options. `examples/` has programs to start from.
//!
//! Underneath are machines, which do no I/O, never block, and work no longer than their budget, so that they can live
//! inside a database's reactor. A host with its own reactor turns the default features off and drives them itself.
//!
//! | module | what it is | waits? |
//! |---|---|---|
//! | [`base`] | the step contract: what a machine asks of its host, and promises | no |
//! | [`parquet`] | the engine: footers, schemas, batches of rows | no |
//! | [`codecs`] | Snappy, GZIP, Zstandard, LZ4 and more for the engine | no |
//! | [`scylla`] | CQL types, literals and definitions, and Parquet values as CQL | no |
//! | `arrow` (feature `arrow`) | batches as Arrow's record batches, without a copy where layouts agree | no |
//! | `io` (feature `io`, on by default; `tokio`, `uring`, `object-store`) | drivers that read and write files and objects for the machines | yes |
//! | `tables` (feature `tables`, on by default) | sources and destinations of rows, and the copy between them | yes |
//! | `describe` (feature `describe`) | pictures of files, and bounds as people read them | yes |
//! | `cluster` (feature `cluster`; encrypted connections: `tls`, on by default) | tables of a live cluster: created, loaded and read | yes |
#![forbid(unsafe_code)]

#[cfg(all(feature = "arrow", feature = "tables"))]
mod arrow_door;
#[cfg(feature = "describe")]
pub mod describe;
#[cfg(feature = "tables")]
mod door;
#[cfg(feature = "tables")]
mod kinds;
#[cfg(feature = "tables")]
mod left_out;
#[cfg(feature = "tables")]
mod metrics;
#[cfg(feature = "tables")]
mod options;
#[cfg(feature = "tables")]
mod reader;
#[cfg(feature = "stream")]
mod stream;
#[cfg(feature = "tables")]
mod words;
#[cfg(feature = "tables")]
mod writer;

#[cfg(all(feature = "arrow", feature = "tables"))]
pub use arrow_door::{RecordBatches, create_arrow};
#[cfg(feature = "tables")]
pub use door::{copy, create, destination, open, open_all, open_columns};
#[cfg(feature = "tables")]
pub use kinds::Target;
#[cfg(feature = "arrow")]
pub use marquetry_arrow as arrow;
pub use marquetry_base as base;
pub use marquetry_base::{Error, Result};
#[cfg(feature = "cluster")]
pub use marquetry_cluster as cluster;
pub use marquetry_codecs as codecs;
#[cfg(feature = "io")]
pub use marquetry_io as io;
pub use marquetry_parquet as parquet;
pub use marquetry_parquet::{batch, schema};
#[cfg(feature = "rados")]
pub use marquetry_rados as rados;
pub use marquetry_scylla as scylla;
#[cfg(feature = "tables")]
pub use marquetry_tables as tables;
#[cfg(feature = "tables")]
pub use metrics::Metrics;
#[cfg(feature = "tables")]
pub use options::{DestinationOptions, OptionGroup, OutputFormat, SourceOptions, stores};
#[cfg(feature = "tables")]
pub use reader::{Batches, Reader};
#[cfg(feature = "stream")]
pub use stream::BatchStream;
#[cfg(feature = "tables")]
pub use words::CopyWords;
#[cfg(feature = "tables")]
pub use writer::Writer;

/// The README's snippets are programs.
#[cfg(all(doctest, feature = "tables", feature = "arrow"))]
#[doc = include_str!("../../../README.md")]
struct Readme;
