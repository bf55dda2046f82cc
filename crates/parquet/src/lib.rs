//! A Parquet engine that does no I/O, never blocks, and never works longer than its caller allows.
//!
//! * [`format`](mod@format): what a file holds besides data: Thrift structures, the footer, page headers;
//! * [`scalar`]: values of types that Rust lacks;
//! * [`schema`]: the tree of types, logical types, levels;
//! * [`batch`]: what travels: batches of rows, column by column;
//! * [`bloom`]: Bloom filters and their hash;
//! * [`encoding`]: one module per encoding;
//! * [`hive`]: columns in the names of directories;
//! * [`print`]: how values are printed, and batches as JSON lines and CSV;
//! * [`prune`]: what statistics and the page index say about values before they are read;
//! * [`geometry`]: well-known binary as well-known text;
//! * [`read`]: the machines that read;
//! * [`sort`]: sorting, even more rows than memory holds;
//! * [`thrift`]: the compact protocol that the structures of `format` are written in;
//! * [`variant`]: the values of VARIANT columns: read, built, reassembled from shredded columns;
//! * [`write`](mod@write): the machines that write.
//!
//! The machines keep the contract of [`marquetry_base`]. For example, driven by hand over a file in memory:
//!
//! ```
//! # fn main() -> Result<(), marquetry_base::Error> {
//! use marquetry_base::{Budget, Bytes, Error, Limits, Machine, Object, Step, Want};
//! use marquetry_parquet::read::FooterReader;
//!
//! let file = Bytes::from_static(b"PAR1PAR1");
//! let mut footer = FooterReader::new(Object(0), Limits::DEFAULT);
//! let failed = loop {
//!     match footer.step(&mut Budget::default()) {
//!         Ok(Step::Need(demand)) => {
//!             for want in demand.wants {
//!                 match want {
//!                     Want::Length(object) => footer.supply_length(object, 8)?,
//!                     Want::Range(object, range, _) => {
//!                         let bytes = file.slice(range.start as usize..range.end as usize);
//!                         footer.supply(object, range, bytes)?;
//!                     }
//!                 }
//!             }
//!         }
//!         Ok(_) => continue,
//!         Err(error) => break error,
//!     }
//! };
//! assert_eq!(failed.message(), "a Parquet file of 8 bytes: the smallest has 12");
//! # Ok(())
//! # }
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod batch;
pub mod bloom;
pub mod encoding;
pub mod find;
pub mod format;
pub mod geometry;
mod going;
mod growing;
pub mod hive;
mod memory;
pub mod print;
pub mod prune;
pub mod read;
pub mod record;
pub mod scalar;
pub mod schema;
pub mod sort;
pub mod thrift;
pub mod variant;
pub mod write;
