//! The live database: a table of a ScyllaDB or Cassandra cluster as a destination and as a source of rows, over the ScyllaDB Rust driver.
//!
//! * [`CqlAddress`]: where a table is, `cql://user@host1,host2:9042/keyspace.table`;
//! * [`CqlTable`]: a [`Destination`](marquetry_tables::Destination), which creates the table, or uses it as it is,
//!   and loads rows;
//! * [`CqlSource`]: a [`Source`](marquetry_tables::Source), which reads a table or a view by token ranges;
//! * [`OpenedTable`]: what a table is read as: rows, rows in other rows ([`LaidSource`]; loaded by [`CqlOptions::layout`]), or a Parquet file within the
//!   table ([`ColumnsTable`], written by [`NewColumns`]);
//! * [`Cluster`]: a connection, only to inspect or create a table.
//!
//! What it guarantees:
//!
//! * **Everything that can be checked is checked before the first row, and reported at once**: the table's columns
//!   and types, and that the rows have its primary key. A row that no server would take (a null in its key, an empty
//!   partition key, too large) is refused here, by number.
//! * **Values arrive unchanged**: they are sent in the native protocol's form, never as text. A table that exists has its own types: what
//!   fits is converted, exactly.
//! * **Writes arrive as they were written**: rows that are the writes of a table (the mapping `full`) with their write times, TTLs and deletions.
//! * **Of two rows with one key the later wins**, whatever the order in which they arrive: rows carry write times
//!   that grow in their order. A row that is sent twice is the same row.
//! * **Trouble is waited for** ([`CqlOptions::retry_for`]), and rows that cannot be loaded may go to a file
//!   ([`CqlOptions::rejects`]). A load that was ended, by whatever, can go on ([`CqlOptions::state`]), and loses nothing.
//! * **Cancelling ends it at once**, also while a node does not answer; what is counted as loaded is what was acknowledged.
//! * **Memory is bounded**, in rows and in bytes in flight; it does not grow with the number of rows.
//! * **No password is shown**: not in messages, not by `Debug`.
//! * **The runtime has threads of its own.** Every function may be called on any thread, and blocks it.
//!
//! Without the feature `tls`, which is on by default, connections are plain: what asks for others ([`ConnectOptions::tls`],
//! [`ConnectOptions::bundle`], `?tls=yes`) is refused.
#![forbid(unsafe_code)]

mod acknowledged;
mod address;
#[cfg(feature = "tls")]
mod bundle;
mod cluster;
mod columns;
mod counts;
mod credentials;
mod error;
mod hidden;
mod layout;
mod load;
mod loading;
mod made_like;
mod mapped;
mod opened;
mod options;
mod pace;
mod prepare;
mod rate;
mod reach;
mod rejects;
mod retry;
mod rows;
mod runtime;
mod same_table;
mod schema;
mod state;
mod statement;
mod table;
mod tls;
mod unload;
mod wanted;
mod writes;

pub use marquetry_tables::stamps::{TTL_SECONDS_MAX, Ttl, WriteTimes};

pub use address::{CqlAddress, CqlAddressError, Host, PORT_DEFAULT};
pub use cluster::{Cluster, Created};
pub use columns::{ColumnsTable, NewColumns};
pub use error::{Difference, Differing, Error, Item, Result};
pub use layout::{LaidSource, TableLayout};
pub use opened::OpenedTable;
pub use options::{
    CONNECT_TIMEOUT, ConnectOptions, Consistency, ConsistencyError, CqlOptions, IN_FLIGHT, IN_FLIGHT_MAX,
    PASSWORD_VARIABLE, RETRY_FOR, ROW_BYTES_MAX,
};
pub use rate::Rate;
pub use rejects::MaxErrors;
pub use state::StateOptions;
pub use table::CqlTable;
pub use tls::TlsOptions;
pub use unload::{CqlSource, PAGE_BYTES, PIECE_BYTES, UnloadOptions};
pub use wanted::WantedByTable;
