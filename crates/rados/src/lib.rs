//! Objects of a Ceph cluster, through librados: read, written, listed, and queried where they are by the object class
//! `cls_marquetry` (`docs/ceph.md`).
//!
//! librados is loaded when a cluster is opened, not linked, so a program that has this crate needs nothing of Ceph until
//! then. Its C interface is used, of which the few functions that are needed have not changed in ten years.
//!
//! ```no_run
//! use marquetry_rados::{Asked, Pool};
//!
//! # fn main() -> marquetry_base::Result<()> {
//! let pool = Pool::open("/etc/ceph/ceph.conf", "lake")?;
//! let asked = Asked::new().column("id").column("fare").predicate("fare > 100");
//! for answer in pool.query("trips/2024.parquet", &asked)? {
//!     let answer = answer?;
//!     println!("{} rows, {} bytes of Arrow IPC", answer.rows, answer.data.len());
//! }
//! # Ok(())
//! # }
//! ```
#![deny(unsafe_code)]

mod asked;
mod described;
mod directory;
#[cfg(test)]
mod fake;
mod joined;
mod librados;
mod looked;
mod names;
mod objects;
mod pool;
mod query;
mod rewrite;
mod search;
mod store;
mod written;

pub use asked::Asked;
pub use described::Described;
pub use objects::Stored;
pub use pool::Pool;
pub use query::{Answer, Execute, Query};
pub use rewrite::{Change, Form, Recoding, compress, index};
pub use search::search;
pub use store::RadosObjects;

/// The name of the object class.
pub const CLASS: &str = "marquetry";

/// Bytes, before compression, of the pages and dictionaries that a call of the class decompresses to come to a row of all columns, at most: what
/// `WriteOptions::begun_bytes_max` of `marquetry-parquet` is for objects. By the price of ZSTD they take a fifth of a call's share (2,000,000
/// units): what else there is to begin takes twice as much at most, and the rest is for rows.
pub const BEGUN_BYTES_MAX: usize = 256 << 10;
