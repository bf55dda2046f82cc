//! Definitions: tables, types, primary keys, and the head of an `INSERT`.

mod key;
mod table;

pub use key::{KeyError, KeyPart, KeySpec, Order};
pub use table::{ColumnDef, TableDef, TableError, TypeDef, insert_prefix};
