//! Apache Parquet for ScyllaDB and Apache Cassandra: the front of Marquetry's libraries.
//!
//! | module | what it is | waits? |
//! |---|---|---|
//! | [`base`] | the step contract: what a machine asks of its host, and promises | no |
//! | [`parquet`] | the engine: footers, schemas, batches of rows | no |
//! | [`codecs`] | Snappy, GZIP, Zstandard, LZ4 for the engine | no |
//! | [`scylla`] | CQL types, literals and definitions, and Parquet values as CQL | no |
//! | `arrow` (feature `arrow`) | batches as Arrow's record batches, without a copy where layouts agree | no |
//! | `io` (feature `io`, on by default; `tokio`, `uring`) | drivers that read files for the machines | yes |
//! | `cluster` (feature `cluster`) | tables of a live cluster: made and loaded | yes |
//!
//! A program with a reactor of its own turns `io` off and drives the machines itself; one without lets
//! `io::drive` do so. A file in memory, read to its rows:
//!
//! ```
//! # #[cfg(feature = "io")]
//! # fn main() -> marquetry::base::Result<()> {
//! # let bytes = marquetry::base::Bytes::from_static(EXAMPLE);
//! use std::sync::Arc;
//!
//! use marquetry::base::{Limits, Object};
//! use marquetry::codecs::StandardCodecs;
//! use marquetry::io::{ByteSources, drive, memory::Memory};
//! use marquetry::parquet::batch::Values;
//! use marquetry::parquet::read::{BatchReader, FooterReader, ReadOptions};
//!
//! let file = Object(0);
//! let sources = ByteSources::new().with(file, Memory::new("numbers.parquet", bytes));
//!
//! let metadata = drive(&mut FooterReader::new(file, Limits::DEFAULT), &sources)?.expect("a footer");
//! assert_eq!((metadata.rows, metadata.schema.leaves()[0].path.as_str()), (3, "n"));
//!
//! let codecs = Arc::new(StandardCodecs::default());
//! let mut reader = BatchReader::new(file, metadata, codecs, ReadOptions::default())?;
//! while let Some(batch) = drive(&mut reader, &sources)? {
//!     let Values::Int32(numbers) = &batch.columns[0].values else { panic!() };
//!     assert_eq!(numbers[..], [1, 2, 3]);
//! }
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "io"))]
//! # fn main() {}
//! # /// One required INT32 column `n` with the values 1, 2 and 3, PLAIN and uncompressed.
//! # const EXAMPLE: &[u8] = b"\
//! #     PAR1\x15\0\x15\x18\x15\x18,\x15\x06\x15\0\x15\x06\x15\x06\0\0\x01\0\0\
//! #     \0\x02\0\0\0\x03\0\0\0\x15\x02\x19,H\x05table\x15\x02\0\x15\
//! #     \x02%\0\x18\x01n\0\x16\x06\x19\x1c\x19\x1c&\0\x1c\x15\x02\x19\x15\0\x19\x18\x01\
//! #     n\x15\0\x16\x06\x16:\x16:&\x08\0\0\x16:\x16\x06\0\0:\0\0\0P\
//! #     AR1";
//! ```
#![forbid(unsafe_code)]

#[cfg(feature = "arrow")]
pub use marquetry_arrow as arrow;
pub use marquetry_base as base;
#[cfg(feature = "cluster")]
pub use marquetry_cluster as cluster;
pub use marquetry_codecs as codecs;
#[cfg(feature = "io")]
pub use marquetry_io as io;
pub use marquetry_parquet as parquet;
pub use marquetry_scylla as scylla;
