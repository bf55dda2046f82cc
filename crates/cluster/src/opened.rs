//! What a table of a cluster is read as.

use marquetry_base::Result;

use crate::address::CqlAddress;
use crate::cluster::Cluster;
use crate::columns::{ColumnsTable, is_columns};
use crate::unload::{self, CqlSource, UnloadOptions};

/// A table of a live cluster that is read: rows, or a Parquet file within the table.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenedTable {
    /// Its rows are the table's.
    Rows(Box<CqlSource>),
    /// It holds a Parquet file: the layout `columns`.
    Columns(ColumnsTable),
}

impl OpenedTable {
    /// Connects, and finds what the table is: by its columns.
    ///
    /// # Errors
    ///
    /// As [`CqlSource::open`].
    pub fn open(address: CqlAddress, options: &UnloadOptions) -> Result<OpenedTable> {
        let cluster = Cluster::connect_unless(options.cancel.clone(), address, &options.connect)?;
        let definition = unload::definition(&cluster)?;
        Ok(match is_columns(&definition) {
            true => OpenedTable::Columns(ColumnsTable::new(cluster, options)?),
            false => OpenedTable::Rows(Box::new(CqlSource::of_table(cluster, definition, options)?)),
        })
    }
}
