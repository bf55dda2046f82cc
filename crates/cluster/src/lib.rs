//! The live database: a table of a ScyllaDB or Cassandra cluster as a destination and as a source of rows, over the ScyllaDB Rust driver.
//!
//! * [`CqlAddress`]: where a table is, `cql://user@host1,host2:9042/keyspace.table`;
//! * [`CqlTable`]: a [`Destination`](marquetry_tables::Destination), which creates the table, or uses it as it is,
//!   and loads rows;
//! * [`CqlSource`]: a [`Source`](marquetry_tables::Source), which reads a table or a view by token ranges;
//! * [`Cluster`]: a connection, only to inspect or create a table.
//!
//! What it guarantees:
//!
//! * **Everything that can be checked is checked before the first row, and reported at once**: the table's columns
//!   and types, and that the rows have its primary key. A row that no server would take (a null in its key, an empty
//!   partition key, too large) is refused here, by number.
//! * **Values arrive unchanged**: they are sent in the native protocol's form, never as text.
//! * **Of two rows with one key the later wins**, whatever the order in which they arrive: rows carry write times
//!   that grow in their order. A row that is sent twice is the same row.
//! * **Cancelling ends it at once**, also while a node does not answer; what is counted as loaded is what was acknowledged.
//! * **Memory is bounded**, in rows and in bytes in flight; it does not grow with the number of rows.
//! * **No password is shown**: not in messages, not by `Debug`.
//! * **The runtime has threads of its own.** Every function may be called on any thread, and blocks it.
#![forbid(unsafe_code)]

mod address;
mod cluster;
mod counts;
mod credentials;
mod error;
mod load;
mod options;
mod rows;
mod runtime;
mod schema;
mod table;
mod unload;

pub use address::{CqlAddress, CqlAddressError, Host, PORT_DEFAULT};
pub use cluster::{Cluster, Created};
pub use error::{Difference, Differing, Error, Item, Result};
pub use options::{
    CONCURRENCY, CONCURRENCY_MAX, CONNECT_TIMEOUT, ConnectOptions, Consistency, ConsistencyError, CqlOptions,
    ROW_BYTES_MAX, TRIES,
};
pub use table::CqlTable;
pub use unload::{CqlSource, PAGE_BYTES, PIECE_BYTES, UnloadOptions};
