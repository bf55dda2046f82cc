//! ScyllaDB and Apache Cassandra for Marquetry, without I/O.
//!
//! * [`cql`]: the text of CQL. Types, names, literals, and the definitions of tables.
//! * [`bridge`]: from Parquet to CQL. Column types, and batches as statements or cells.
//!
//! What is printed here is accepted by Cassandra 5.0 and by ScyllaDB, and what the servers then
//! store is the value that was given, to the last bit and digit. Where that is impossible (the sign
//! of a NaN) the function says so.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod bridge;
pub mod cql;
