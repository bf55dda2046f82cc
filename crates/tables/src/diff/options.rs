//! How two tables are compared.

use marquetry_base::Limits;

use crate::sorting::MEMORY_BYTES;
use crate::{BytesRead, Cancel, ColumnPath, LostValues};

/// How two tables are compared.
///
/// ```
/// use marquetry_tables::{ColumnPath, DiffOptions};
///
/// let mut options = DiffOptions::default();
/// options.rows_shown = 10;
/// options.key = ColumnPath::parse_list("day, trip").unwrap();
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DiffOptions {
    /// How many of the first differing rows are kept for each column, and of the rows that only one table has.
    pub rows_shown: usize,
    /// The columns by which rows are matched, whatever their order, none of them nested. Empty: rows are matched in order.
    pub key: Vec<ColumnPath>,
    /// The approximate bytes of rows held while both tables are sorted by the key; more rows go to temporary files.
    pub memory_bytes: u64,
    /// Threads that read, and sort: half of them read each table, or all of them one table after the other if there is a key. `None`: one
    /// per processor. Without one of its own, a table is read by the thread that compares.
    pub threads: Option<usize>,
    /// Values are compared as a table of a cluster has them once they are loaded: FLOAT and DOUBLE with the digits of FLOAT, times as the
    /// integers that they are loaded as, and an empty collection that is not frozen as the null that it is to the servers.
    pub as_loaded: bool,
    /// A null of the first table, and with [`as_loaded`](DiffOptions::as_loaded) an empty collection that is not frozen, is not compared: loading it
    /// leaves what is there.
    pub keeps_nulls: bool,
    /// Limits of variants, whose JSON is compared.
    pub limits: Limits,
    /// Cancels the comparison.
    pub cancel: Cancel,
    /// Where the bytes are counted that were read of both tables: see [`PieceOptions::bytes_read`](crate::PieceOptions).
    pub bytes_read: BytesRead,
    /// Where the values of each table are counted that are null when they are compared, because columns cannot hold them.
    pub lost: [LostValues; 2],
}

impl Default for DiffOptions {
    fn default() -> DiffOptions {
        DiffOptions {
            rows_shown: 3,
            key: Vec::new(),
            memory_bytes: MEMORY_BYTES,
            threads: None,
            as_loaded: false,
            keeps_nulls: false,
            limits: Limits::DEFAULT,
            cancel: Cancel::new(),
            bytes_read: BytesRead::default(),
            lost: [LostValues::default(), LostValues::default()],
        }
    }
}
