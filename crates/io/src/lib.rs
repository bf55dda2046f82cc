//! Drivers for Marquetry's machines: the only tier that waits.
//!
//! A machine says what it needs (see [`marquetry_base`]); a driver gets it from [`Source`]s:
//!
//! * [`memory::Memory`]: bytes that are there already, handed over without a copy;
//! * [`blocking::File`] (feature `blocking`, on by default): a local file, read by positional reads.
//!
//! `files` (feature `files`, on by default) finds what a directory or a pattern names.
//!
//! [`drive`] works a machine up to its next product, and waits in between.
//!
//! ```
//! use marquetry_base::{Bytes, Object};
//! use marquetry_io::{Source, Sources, memory::Memory};
//!
//! let sources = Sources::new().with(Object(0), Memory::new("greeting", Bytes::from_static(b"hello")));
//! assert_eq!(sources.get(Object(0)).unwrap().length().unwrap(), 5);
//! ```
#![forbid(unsafe_code)]

#[cfg(feature = "blocking")]
pub mod blocking;
mod drive;
#[cfg(feature = "files")]
pub mod files;
pub mod memory;
mod source;

pub use drive::drive;
pub use source::{Source, Sources};
