//! What a table of a cluster is read as.

use marquetry_base::{Error, Result};

use crate::address::CqlAddress;
use crate::cluster::Cluster;
use crate::columns::{ColumnsTable, is_columns};
use crate::layout::{LaidSource, described};
use crate::unload::{self, CqlSource, UnloadOptions};

/// A table of a live cluster that is read: rows, rows in other rows, or a Parquet file within the table.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenedTable {
    /// Its rows are the table's.
    Rows(Box<CqlSource>),
    /// Its rows hold others: the layouts `wide` and `blob`.
    Laid(Box<LaidSource>),
    /// It holds a Parquet file: the layout `columns`.
    Columns(ColumnsTable),
}

impl OpenedTable {
    /// Connects, and finds what the table is: by its columns and its comment.
    ///
    /// # Errors
    ///
    /// As [`CqlSource::open`]; `Misuse` for [metadata](UnloadOptions::with_metadata) of a table whose rows hold others; `Corrupt` for a comment that
    /// says what is not so.
    pub fn open(address: CqlAddress, options: &UnloadOptions) -> Result<OpenedTable> {
        let cluster = Cluster::connect_unless(options.cancel.clone(), address, &options.connect)?;
        let definition = unload::definition(&cluster)?;
        if is_columns(&definition) {
            return Ok(OpenedTable::Columns(ColumnsTable::new(cluster, options)?));
        }
        let Some(described) = described(&cluster)? else {
            let source = CqlSource::of_table(cluster, definition, options)?;
            return Ok(OpenedTable::Rows(Box::new(source)));
        };
        if options.with_metadata {
            let what = "write times and TTLs are those of the table's rows, which hold others (the layouts wide and blob)";
            let name = cluster.address().to_string();
            return Err(Error::option("with_metadata", what).at(|place| place.object = Some(name)));
        }
        let source = CqlSource::of_table(cluster, definition, options)?;
        Ok(OpenedTable::Laid(Box::new(LaidSource::new(source, described)?)))
    }
}
