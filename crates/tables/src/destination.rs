//! Where rows go.

use std::path::PathBuf;
use std::sync::Arc;

use marquetry_base::{Error, Result};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::format::SortingColumn;

use crate::{Cancel, Source, Table};

/// A table that rows are written to: a file, a directory of files, a live table, text.
///
/// [`copy`](crate::copy) calls, in this order:
///
/// 1. [`cancelled_by`](Destination::cancelled_by), [`set_threads`](Destination::set_threads), [`rows_of`](Destination::rows_of),
///    [`set_sorting`](Destination::set_sorting) and [`begin`](Destination::begin), once;
/// 2. [`write`](Destination::write), once per batch, and before it [`rows_from`](Destination::rows_from), whenever
///    the batch comes from another object than the one before it; or [`drain`](Destination::drain), if the source fails;
/// 3. [`finish`](Destination::finish), once;
/// 4. [`written`](Destination::written), if the output is verified;
/// 5. [`commit`](Destination::commit), once; or, after an error or if the copy is cancelled,
///    [`settle`](Destination::settle).
///
/// [`progress`](Destination::progress) may be called at any time. A [`Guard`](crate::Guard) refuses calls in another
/// order, and repeats the error of a destination that has failed. After an error, or if it is dropped before `commit`,
/// nothing of the output is left. A destination that cannot guarantee this (rows of a live table, standard output) says
/// so in its documentation.
///
/// ```
/// use marquetry_base::Result;
/// use marquetry_parquet::batch::Batch;
/// use marquetry_tables::{Destination, Table, Wants, Written};
///
/// /// Counts rows, and keeps none.
/// #[derive(Default)]
/// struct Count(Written);
///
/// impl Destination for Count {
///     fn name(&self) -> &str {
///         "a count"
///     }
///
///     fn begin(&mut self, table: &Table) -> Result<Wants> {
///         println!("rows of {} columns", table.schema.leaves().len());
///         Ok(Wants::default())
///     }
///
///     fn write(&mut self, batch: Batch) -> Result<()> {
///         self.0.rows += batch.rows as u64;
///         Ok(())
///     }
///
///     fn finish(&mut self) -> Result<Written> {
///         Ok(self.0)
///     }
/// }
/// ```
pub trait Destination: Send {
    /// The name for messages.
    fn name(&self) -> &str;

    /// Receives what cancels the copy. [`copy`](crate::copy) checks it between two calls, which is enough where no call
    /// takes long. A destination that waits for others (a server, an object store), or computes for long (a compressor of
    /// large values), keeps it, and checks it meanwhile: so that each of its calls ends within a small part of a second
    /// once it is set, with [`Cancelled`](marquetry_base::ErrorKind::Cancelled), whatever the other side does.
    fn cancelled_by(&mut self, _cancel: &Cancel) {}

    /// Receives the number of threads that the copy may use, the caller's included. A destination whose work takes long
    /// (it encodes, or compresses) spreads it over them; what it writes, and the error that it returns, do not depend
    /// on their number.
    fn set_threads(&mut self, _threads: usize) {}

    /// Receives the source of the rows, if they come as they are numbered there: for who wants to know the [lines](crate::lines_of) of some.
    fn rows_of(&mut self, _source: &Arc<dyn Source>) {}

    /// Receives how many bytes of rows may be in memory if the destination sorts rows itself; `None` if the copy sorts
    /// them anyway, and so can bring them in any [order](Wants::order) at little cost.
    fn set_sorting(&mut self, _memory_bytes: Option<u64>) {}

    /// Receives the description of the table whose rows will come, and returns how it wants them.
    ///
    /// # Errors
    ///
    /// Everything about the table that it cannot hold, as far as it is known before the first row, in one error.
    /// Nothing is written then.
    fn begin(&mut self, table: &Table) -> Result<Wants>;

    /// Announces that the following rows come from this object, such as a file: for errors about rows that were taken
    /// earlier. Errors about the rows just passed to `write` need not name it.
    fn rows_from(&mut self, _object: &str) {}

    /// Takes rows. They may be buffered.
    ///
    /// # Errors
    ///
    /// The reason why it cannot; of these rows, or of earlier ones. Rows are identified by their number in the object that they come from
    /// ([`Place::row`](marquetry_base::Place), counted from [`Batch::first_row`]).
    fn write(&mut self, batch: Batch) -> Result<()>;

    /// Finds out what is wrong with the rows that were taken, as far as a destination that works on them elsewhere would
    /// report it later: a source that fails after them must not hide it.
    ///
    /// # Errors
    ///
    /// As [`write`](Destination::write), of earlier rows.
    fn drain(&mut self) -> Result<()> {
        Ok(())
    }

    /// Writes what is left, after the last row.
    ///
    /// # Errors
    ///
    /// The reason why it cannot.
    fn finish(&mut self) -> Result<Written>;

    /// The output as a source, to be read back before it is committed. `None` if it cannot be read.
    ///
    /// # Errors
    ///
    /// If the output cannot be opened.
    fn written(&self) -> Result<Option<Box<dyn Source>>> {
        Ok(None)
    }

    /// Makes the output appear, all at once.
    ///
    /// # Errors
    ///
    /// The reason why it cannot; then nothing is left. There is one exception, which the message states: files that
    /// are complete, on disk and in place, in a directory that could not be synced, so that their name may not survive
    /// a power failure.
    fn commit(&mut self) -> Result<()> {
        Ok(())
    }

    /// Ends a copy that failed or was cancelled: takes no more rows, and returns when nothing is in flight. Only for
    /// destinations that have something in flight between two calls.
    fn settle(&mut self) {}

    /// What people should know of the output besides its counts, a sentence each: that a table existed already, where one was
    /// to be created. Known after [`begin`](Destination::begin), and what the rows showed after [`finish`](Destination::finish).
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Something that tells, at any time and on any thread, what the destination does: for those who show it while a call takes long. `None` if
    /// nothing is in flight between two calls.
    fn watch(&self) -> Option<Watch> {
        None
    }

    /// What was written so far, if the destination keeps count: a live table's rows, as they are acknowledged. After an
    /// error it is what stays written. `None` before rows are expected, and if rows count as soon as
    /// [`write`](Destination::write) has taken them.
    fn progress(&self) -> Option<Written> {
        None
    }
}

/// How a destination wants its rows.
///
/// ```
/// use marquetry_tables::Wants;
///
/// // Values of dictionaries may come as indices:
/// let mut wants = Wants::default();
/// wants.keep_dictionaries = true;
/// assert!(wants.order.is_empty() && !wants.can_verify);
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Wants {
    /// The order that they must have, by leaves of the table. Rows in another order are sorted.
    pub order: Vec<SortingColumn>,
    /// Rows are written in another order than they come in, so they are verified in any.
    pub reorders: bool,
    /// Values of dictionaries may come as indices and the dictionary.
    pub keep_dictionaries: bool,
    /// What was written can be read again before it is committed ([`Destination::written`]).
    pub can_verify: bool,
    /// Why not, if it is about columns: what is read of them is not what was written.
    pub unverifiable: Option<Error>,
    /// A path beside which temporary files may be created. `None`: the system's temporary directory.
    pub scratch: Option<PathBuf>,
}

/// What a destination has written.
///
/// ```
/// use marquetry_tables::Written;
///
/// let mut written = Written::default();
/// (written.rows, written.files) = (3, 1);
/// assert_eq!((written.rows, written.row_groups), (3, 0));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// Rows. Those of a live table count when they are acknowledged; several rows with one key count as several.
    pub rows: u64,
    /// Bytes, if they are counted: of files, of text, of values as a protocol holds them.
    pub bytes: u64,
    /// Files.
    pub files: u64,
    /// Row groups, if the output has any.
    pub row_groups: u64,
    /// If the destination has sorted rows, the bytes of them that were spilled to a temporary file.
    pub sorted_by_way_of: Option<u64>,
    /// Requests that had to be sent again, each time counted, if rows go to a server.
    pub retries: u64,
    /// Rows that could not be written, and are in a file of their own.
    pub rejected: u64,
}

/// What a destination does at a moment, if it has something in flight.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Doing {
    /// What it has written.
    pub written: Written,
    /// Rows that were sent, and not yet answered.
    pub in_flight: u64,
    /// How many rows may be in flight now.
    pub in_flight_max: u64,
}

/// Tells what a destination does, on any thread.
pub type Watch = Arc<dyn Fn() -> Doing + Send + Sync>;
