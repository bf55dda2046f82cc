//! ScyllaDB and Apache Cassandra for Marquetry, without I/O.
//!
//! * [`cql`]: the text of CQL. Types, names, literals, and the definitions of tables.
//! * [`sstable`]: the files that both keep tables in, read.
//! * [`select`]: the rows that a server answers a `SELECT` with, as the writes that SSTables hold.
//! * [`bridge`]: from Parquet to CQL: column types, and batches as statements or cells; and from the writes that SSTables hold to
//!   Parquet, and back ([`bridge::mutations`]);
//! * [`packed`]: records of any schema as single cells, and back.
//!
//! Both Cassandra 5.0 and ScyllaDB accept what is printed here, and store exactly the given value, to the last bit and
//! digit. If that is impossible (the sign of a NaN), the function says so.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod bridge;
pub mod cql;
pub mod packed;
pub mod select;
pub mod sstable;
