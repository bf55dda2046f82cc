//! The live database: makes a table in a ScyllaDB or Cassandra cluster and loads rows into it, over the ScyllaDB Rust
//! driver.
//!
//! * [`Address`]: where a table is, `cql://user@host1,host2:9042/keyspace.table`;
//! * [`Loader`]: a connection to it, which makes the table and loads rows;
//! * [`RowSource`]: where rows come from; [`BatchSource`] makes them of Parquet batches.
//!
//! What it holds to:
//!
//! * **What could be checked is checked before the first row**: the table's columns and types, and that the rows have
//!   its primary key. A row that no server would take (a null in its key, an empty partition key, too large) is refused
//!   here, by number.
//! * **A value arrives as it is**: values are sent as the native protocol holds them, never as text.
//! * **Of two rows with one key the later wins**, whatever the order in which they arrive: rows carry write times that
//!   grow by their order. A row that is sent twice is the same row.
//! * **Memory is bounded**, in rows and in bytes in flight; it does not grow with the number of rows.
//! * **No password is shown**: not in messages, not by `Debug`.
#![forbid(unsafe_code)]

mod address;
mod batches;
mod error;
mod load;
mod loader;
mod options;
mod rows;
mod schema;

pub use address::{Address, AddressError, Host, PORT_DEFAULT};
pub use batches::BatchSource;
pub use error::{Difference, Error, Misfit, Result};
pub use load::Loaded;
pub use loader::{Created, Loader};
pub use options::{
    CONCURRENCY, CONCURRENCY_MAX, CONNECT_TIMEOUT, ConnectOptions, Consistency, ConsistencyError,
    LoadOptions, Nulls, ROW_BYTES_MAX, TRIES,
};
pub use rows::{RowBlock, RowSource};
