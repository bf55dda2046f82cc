//! Definitions: tables, types, primary keys, and the head of an `INSERT`.

mod key;
mod parse;
mod table;

pub use key::{KeyError, KeyPart, KeySpec, Order};
pub use parse::{
    DefinitionError, DefinitionFault, Definitions, DroppedColumn, IndexDef, TableOptions, ViewDef,
};
pub use table::{ColumnDef, TableDef, TableError, TypeDef, insert_prefix};
