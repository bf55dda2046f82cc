//! Conformance of Marquetry with its peers, and the hostile driver that every machine is developed under.
//!
//! * [`hostile`]: a host that answers late, in pieces, out of order, a byte at a time, and gives no budget;
//! * [`craft`]: files made by hand, legal and not;
//! * [`adversarial`]: files that are as hard as can be on a reader that must never stall;
//! * [`blooms`]: Bloom filters, held against the values of their chunks;
//! * [`page_blooms`]: the same of the filters of pages;
//! * [`canonical`]: what a file holds, as sums that can be compared with another reader's;
//! * [`leaves`]: the same of leaves, with their levels;
//! * [`records`]: the same of records;
//! * [`parquet_rs`]: what parquet-rs makes of a file's metadata, and of its values;
//! * [`conformed`]: the same of several files as one table;
//! * [`written`]: what machines write, collected;
//! * [`shared`]: a writer whose columns' work others do;
//! * [`features`]: what of the format a file uses, and the matrix of what is read;
//! * [`files`]: where the files are that others made.
#![forbid(unsafe_code)]

pub mod adversarial;
pub mod blooms;
pub mod canonical;
pub mod conformed;
pub mod craft;
pub mod features;
pub mod files;
pub mod finding;
pub mod hostile;
pub mod leaves;
pub mod page_blooms;
#[cfg(feature = "parquet-rs")]
pub mod parquet_rs;
pub mod records;
pub mod shared;
pub mod written;
