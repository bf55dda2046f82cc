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
mod directory;
mod librados;
mod names;
mod pool;
mod query;
mod rewrite;
mod search;
mod store;
mod written;

pub use asked::Asked;
pub use pool::{Pool, Stored};
pub use query::{Answer, Execute, Query};
pub use rewrite::{Change, Form, Recoding, compress, index};
pub use search::search;
pub use store::RadosObjects;

/// The name of the object class.
pub const CLASS: &str = "marquetry";
