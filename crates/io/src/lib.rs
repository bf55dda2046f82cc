//! Drivers for Marquetry's machines: the only tier that waits.
//!
//! A machine says what it needs (see [`marquetry_base`]); a driver gets it from [`ByteSource`]s:
//!
//! * [`memory::Memory`]: bytes that are already in memory, handed over without a copy;
//! * [`blocking::File`] (feature `blocking`, on by default): a local file, read by positional reads;
//! * `tokio::File` (feature `tokio`): the same, read on tokio's threads for blocking work;
//! * `uring::File` (feature `uring`): a local file, read by Linux's io_uring, on the thread that uses it.
//!
//! `files` (feature `files`, on by default) finds what a directory or a pattern names. A `store::Store` is where objects
//! with paths are found, opened and created: the local file system is one, and `store::Stores` (feature `object-store`) has
//! S3, Azure, Google Cloud Storage and HTTP servers beside it. `Noticing` (feature `inotify`) reports what changes in directories.
//!
//! Three drivers run a machine up to its next product. [`drive`] blocks in between. `tokio::drive` and `uring::drive`
//! let other tasks of their thread run meanwhile, read ahead, and never keep the thread for longer than a step's
//! default budget: they share how an `AsyncByteSource` is read (`ReadAhead`) and when other tasks run.
//!
//! What a machine writes goes to [`ByteSink`]s, through [`drive_into`]: [`blocking::NewFile`] is a file that appears
//! when it is complete, [`blocking::NewDirectory`] a directory of such files, [`blocking::SpillFile`] a temporary
//! file without a name. `tokio::drive_into` and `uring::drive_into` share their thread here, too; their files
//! (`tokio::NewFile`, `uring::NewFile`, …) are `AsyncByteSink`s.
//!
//! ```
//! use marquetry_base::{Bytes, Object};
//! use marquetry_io::{ByteSource, ByteSources, memory::Memory};
//!
//! let sources = ByteSources::new().with(Object(0), Memory::new("greeting", Bytes::from_static(b"hello")));
//! assert_eq!(ByteSource::length(sources.get(Object(0)).unwrap()).unwrap(), 5);
//! ```
#![forbid(unsafe_code)]

#[cfg(any(feature = "tokio", feature = "uring"))]
mod async_sink;
#[cfg(any(feature = "tokio", feature = "uring"))]
mod async_source;
#[cfg(feature = "blocking")]
pub mod blocking;
mod drive;
#[cfg(any(feature = "tokio", feature = "uring"))]
mod driving;
mod failure;
#[cfg(feature = "files")]
pub mod files;
pub mod memory;
#[cfg(feature = "inotify")]
mod noticing;
#[cfg(any(feature = "tokio", feature = "uring"))]
mod objects;
mod pattern;
#[cfg(feature = "blocking")]
pub mod process;
#[cfg(any(feature = "tokio", feature = "uring"))]
mod schedule;
mod shown;
mod sink;
mod source;
pub mod state_file;
#[cfg(all(feature = "blocking", feature = "files"))]
pub mod store;
#[cfg(feature = "tokio")]
pub mod tokio;
#[cfg(feature = "uring")]
pub mod uring;

/// The file that may be beside the Parquet files of a table in their directory: the statements that make the table.
#[cfg(any(feature = "blocking", feature = "files"))]
pub const SCHEMA_FILE: &str = "schema.cql";

#[cfg(any(feature = "tokio", feature = "uring"))]
pub use async_sink::AsyncByteSink;
#[cfg(any(feature = "tokio", feature = "uring"))]
pub use async_source::AsyncByteSource;
pub use drive::drive;
pub use failure::{failed, said};
#[cfg(feature = "inotify")]
pub use noticing::{Noticed, Noticing};
#[cfg(any(feature = "tokio", feature = "uring"))]
pub use schedule::ReadAhead;
pub use shown::shown;
pub use sink::{ByteSink, ByteSinks, drive_into, drive_into_while};
pub use source::{ByteSource, ByteSources, ObjectVersion};

/// Bytes between two wanted ranges that are read along, rather than read around: a seek costs more than these.
const GAP_BYTES_MAX: u64 = 64 << 10;
