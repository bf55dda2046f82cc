//! Where rows go.

use std::path::PathBuf;

use marquetry_base::Result;
use marquetry_parquet::batch::Batch;
use marquetry_parquet::format::SortingColumn;

use crate::{Source, Table};

/// A table that rows are written to: a file, a directory of files, a live table, text.
///
/// [`copy`](crate::copy) calls, in this order:
///
/// 1. [`begin`](Destination::begin), once;
/// 2. [`write`](Destination::write), once a batch, and before it [`rows_from`](Destination::rows_from), whenever the batch is
///    of another object than the one before it;
/// 3. [`finish`](Destination::finish), once;
/// 4. [`written`](Destination::written), where what was written is verified;
/// 5. [`commit`](Destination::commit), once.
///
/// After an error, or where it is dropped before `commit`, nothing is left of what was written. Where that cannot be (rows of a
/// live table, standard output), its documentation says so.
pub trait Destination: Send {
    /// What people call it, for messages.
    fn name(&self) -> &str;

    /// Takes note of the table whose rows will come, and says how it wants them.
    ///
    /// # Errors
    ///
    /// What of the table it cannot hold: everything that can be known before the first row, at once. Nothing was written then.
    fn begin(&mut self, table: &Table) -> Result<Wants>;

    /// The rows that come from now on are of this object: a file, for one. For messages about rows that were taken before; what
    /// is wrong with those that `write` is just given it need not name.
    fn rows_from(&mut self, _object: &str) {}

    /// Takes rows.
    ///
    /// # Errors
    ///
    /// Why it cannot. Rows are told by the number that they have in the batch's piece ([`Place::row`](marquetry_base::Place)).
    fn write(&mut self, batch: Batch) -> Result<()>;

    /// All rows have come: writes what is left.
    ///
    /// # Errors
    ///
    /// Why it cannot.
    fn finish(&mut self) -> Result<Written>;

    /// What was written, to be read again before it is committed. `None` where it cannot be.
    ///
    /// # Errors
    ///
    /// Why what was written cannot be opened.
    fn written(&self) -> Result<Option<Box<dyn Source>>> {
        Ok(None)
    }

    /// Makes what was written appear, as a whole.
    ///
    /// # Errors
    ///
    /// Why it cannot appear; then nothing is left.
    fn commit(&mut self) -> Result<()> {
        Ok(())
    }
}

/// How a destination wants its rows.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Wants {
    /// The order that they must be in, by leaves of the table. Where they come in another, they are sorted.
    pub order: Vec<SortingColumn>,
    /// Pieces may come in any order, and mixed: so none waits for another.
    pub any_order: bool,
    /// Values of dictionaries may come as indices and the dictionary.
    pub keep_dictionaries: bool,
    /// A path beside which temporary files may be made. `None`: the system's own folder for them.
    pub scratch: Option<PathBuf>,
}

/// What was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// Rows.
    pub rows: u64,
    /// Bytes, where they are counted.
    pub bytes: u64,
    /// Files.
    pub files: u64,
    /// Row groups, where what was written has some.
    pub row_groups: u64,
}
