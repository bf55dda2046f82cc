//! What a live table wants of text.

use marquetry_base::Result;
use marquetry_scylla::cql::{ColumnDef, CqlType};
use marquetry_tables::Cancel;
use marquetry_tables::files::WantedColumns;
use marquetry_tables::text::Wanted;

use crate::address::CqlAddress;
use crate::cluster::Cluster;
use crate::columns::is_columns;
use crate::layout::described;
use crate::options::ConnectOptions;

/// What a live table wants of text whose rows go there, or are compared with its own: text as it is written, and the digits of exact numbers.
///
/// The table is looked at when there is text, over a connection of its own. What fails then fails the opening of the text: types that were
/// inferred without a look at the table would lose digits, and nothing would say so. A table that is not there wants nothing.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use marquetry_cluster::{ConnectOptions, WantedByTable};
/// use marquetry_tables::Cancel;
/// use marquetry_tables::files::{FileFormat, WantedColumns};
/// use marquetry_tables::text::{TextFormat, TextOptions};
///
/// let trips = "cql://localhost/ks.trips".parse().unwrap();
/// let wanted: Arc<dyn WantedColumns> =
///     Arc::new(WantedByTable::new(trips, ConnectOptions::default(), Cancel::new()));
/// let format = TextFormat::new(TextOptions::default()).going_to(&wanted);
/// assert!(format.is_some());
/// ```
#[derive(Debug)]
pub struct WantedByTable {
    address: CqlAddress,
    connect: ConnectOptions,
    cancel: Cancel,
}

impl WantedByTable {
    /// The table of this address. Nothing is connected yet; `cancel` ends waiting for a connection.
    pub fn new(address: CqlAddress, connect: ConnectOptions, cancel: Cancel) -> WantedByTable {
        WantedByTable { address, connect, cancel }
    }
}

impl WantedColumns for WantedByTable {
    /// As the errors of [`Cluster::connect`] and [`Cluster::table`]: the same that the load itself would have.
    fn wanted(&self) -> Result<Vec<(String, Wanted)>> {
        let cluster = Cluster::connect_unless(self.cancel.clone(), self.address.clone(), &self.connect)?;
        let Some(table) = cluster.table()?.filter(|table| !is_columns(table)) else { return Ok(Vec::new()) };
        let laid = described(&cluster)?;
        Ok(match laid {
            Some(laid) => laid.wanted(),
            None => table.columns.iter().filter_map(wanted).collect(),
        })
    }
}

/// What a column wants.
fn wanted(column: &ColumnDef) -> Option<(String, Wanted)> {
    let wanted = match column.cql_type {
        CqlType::Text | CqlType::Ascii => Wanted::Text,
        CqlType::Decimal
        | CqlType::Varint
        | CqlType::Bigint
        | CqlType::Counter
        | CqlType::Int
        | CqlType::Smallint
        | CqlType::Tinyint => Wanted::Exact,
        _ => return None,
    };
    Some((column.name.as_str().to_owned(), wanted))
}
