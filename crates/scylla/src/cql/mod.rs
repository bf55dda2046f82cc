//! The text of CQL, as Cassandra 5.0 and ScyllaDB read it.
//!
//! * [`types`]: column types, printed and parsed;
//! * [`identifier`]: names, when they need quotes, and which of them a server refuses;
//! * [`literal`]: values, appended to a byte buffer (the hot path of a dump);
//! * [`ddl`]: `CREATE TABLE`, `CREATE TYPE`, printed and read; the head of an `INSERT`, and primary keys as a person
//!   types them.

pub mod ddl;
pub mod identifier;
pub mod literal;
pub mod types;

pub use ddl::{
    ColumnDef, Definitions, IndexDef, KeySpec, Order, TableDef, TableOptions, TypeDef, ViewDef, insert_prefix,
};
pub use identifier::{Name, NameError, TableName};
pub use literal::LiteralError;
pub use types::{CqlType, TypeError};
