//! Copying rows from a source to a destination.

use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Error, ErrorKind, Result};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::format::SortingColumn;

use crate::digest::Digest;
use crate::reading::{Reading, ReadingOptions};
use crate::row_order::RowOrder;
use crate::sorting::{SORT_MEMORY_BYTES, Sorting};
use crate::subject::named;
use crate::{Cancel, Destination, PieceOptions, Source, Table, Written};

/// How rows are copied.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CopyOptions {
    /// Copy at most this many rows, from the start.
    pub limit: Option<u64>,
    /// Sort the rows by these leaves of the source's schema. The sort is stable. If empty, rows keep the source's
    /// order.
    pub sort: Vec<SortingColumn>,
    /// About how many bytes of rows are sorted in memory; more go to a temporary file beside the output.
    pub sort_memory_bytes: u64,
    /// Read the output back before it is committed, and compare it with the input: the rows and, if the source or
    /// [`sort`](CopyOptions::sort) states one, their order. A source whose rows are not in the order that it claims is
    /// an error then. (Otherwise the claim is dropped: no output of this crate states an order that its rows lack.)
    pub verify: bool,
    /// Threads that read pieces of the source in parallel. `None`: one per processor.
    pub threads: Option<usize>,
    /// Cancels the copy.
    pub cancel: Cancel,
}

impl Default for CopyOptions {
    fn default() -> CopyOptions {
        CopyOptions {
            limit: None,
            sort: Vec::new(),
            sort_memory_bytes: SORT_MEMORY_BYTES,
            verify: false,
            threads: None,
            cancel: Cancel::new(),
        }
    }
}

/// What is reported while rows are copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Rows were read.
    Read {
        /// Rows so far.
        rows: u64,
        /// Rows in total, if known.
        of: Option<u64>,
    },
    /// Rows were sorted and written. (Without a sort, rows are written as soon as they are read.)
    Sorted {
        /// Rows so far.
        rows: u64,
        /// Rows in total.
        of: u64,
    },
    /// Rows were read back and compared.
    Verified {
        /// Rows so far.
        rows: u64,
        /// Rows in total.
        of: u64,
    },
}

/// What was copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Copied {
    /// Rows.
    pub rows: u64,
    /// What the destination wrote.
    pub written: Written,
    /// If rows were sorted, the bytes of them that were spilled to a temporary file.
    pub sorted_by_way_of: Option<u64>,
}

/// Copies the rows of a source to a destination. Memory is bounded, whatever the number of rows: some batches per
/// thread, and [`CopyOptions::sort_memory_bytes`] if rows are sorted.
///
/// Pieces of the source are read in parallel, each by one thread. The destination is called only from the caller's
/// thread, and gets rows in the source's order unless it [wants](crate::Wants) otherwise. After an error nothing of
/// the output is left, as far as the destination can guarantee that.
///
/// # Errors
///
/// The source's and the destination's. Each names its object ([`Place::object`](marquetry_base::Place)): for a value
/// that cannot be written, the object that it came from. With [`CopyOptions::verify`], `Corrupt` for a source whose
/// rows are not in the [order](Table::order) that it claims, with the first misplaced row; `Internal` if what was
/// written is not what was read. [`Cancelled`](ErrorKind::Cancelled) once
/// [`CopyOptions::cancel`] is set.
pub fn copy(
    source: &Arc<dyn Source>,
    destination: &mut dyn Destination,
    options: &CopyOptions,
    report: &mut dyn FnMut(Event),
) -> Result<Copied> {
    let mut table = source.table().clone();
    if !options.sort.is_empty() {
        table.order.clone_from(&options.sort);
    }
    if let (Some(rows), Some(limit)) = (&mut table.rows, options.limit) {
        *rows = limit.min(*rows);
    }
    let wants = destination.begin(&table).map_err(|error| named(error, destination.name()))?;
    if options.verify && !wants.can_verify {
        return Err(Error::option("verify", "what is written here cannot be read again"));
    }
    let by = sorted_by(&wants.order, &options.sort);
    let mut sorting = match &*by {
        [] => None,
        by => {
            let CopyOptions { sort_memory_bytes, cancel, .. } = options;
            Some(Sorting::new(&table.schema, by, *sort_memory_bytes, cancel, wants.scratch.as_deref())?)
        }
    };
    let keep_dictionaries = wants.keep_dictionaries && sorting.is_none();
    let piece = PieceOptions { limit: options.limit, keep_dictionaries, ..PieceOptions::default() };
    let is_in_order = !wants.any_order || sorting.is_some() || options.limit.is_some();
    let reading = ReadingOptions {
        piece,
        threads: options.threads,
        any_order: !is_in_order,
        cancel: options.cancel.clone(),
    };
    let mut reading = Reading::new(Arc::clone(source), reading)?;
    let mut digest = options.verify.then(|| Digest::new(by.is_empty() && is_in_order));
    let claimed = if options.sort.is_empty() && is_in_order { &*table.order } else { &[] };
    let mut claim = options.verify.then(|| RowOrder::new(&table.schema, claimed)).transpose()?;
    let (mut rows, mut of_piece) = (0, None);
    while let Some((piece, batch)) = reading.next_batch()? {
        rows += u64_of(batch.rows);
        if let Some(digest) = &mut digest {
            digest.add(&batch)?;
        }
        if let Some(claim) = &mut claim {
            check_claim(claim, &batch).map_err(|error| named(error, reading.name_of(piece)))?;
        }
        match &mut sorting {
            Some(sorting) => {
                sorting.push(batch, piece).map_err(|error| unsorted(error, sorting, &reading))?;
            }
            None => {
                let subject = reading.name_of(piece);
                if of_piece != Some(piece) {
                    of_piece = Some(piece);
                    destination.rows_from(subject);
                }
                write(destination, batch, subject)?;
            }
        }
        report(Event::Read { rows, of: table.rows });
    }
    if let Some(sorting) = &mut sorting {
        let mut done = 0;
        destination.rows_from(&table.name);
        while let Some(batch) = sorting.next().map_err(|error| unsorted(error, sorting, &reading))? {
            options.cancel.check()?;
            done += u64_of(batch.rows);
            // Its number is that among the sorted rows, which nobody can look up.
            write(destination, batch, &table.name).map_err(Error::without_row)?;
            report(Event::Sorted { rows: done, of: rows });
        }
    }
    options.cancel.check()?;
    let written = destination.finish().map_err(|error| {
        let error = if sorting.is_some() { error.without_row() } else { error };
        named(error, destination.name())
    })?;
    if let Some(digest) = &digest {
        let order = if sorting.is_some() || is_in_order { sorted_by(&by, &table.order) } else { Vec::new() };
        verify(destination, digest, (&table, &order, rows), options, report)
            .map_err(|error| named(error, destination.name()))?;
    }
    options.cancel.check()?;
    destination.commit().map_err(|error| named(error, destination.name()))?;
    let sorted_by_way_of = sorting.as_ref().map(Sorting::spilled_bytes);
    Ok(Copied { rows, written, sorted_by_way_of })
}

/// The sort order: first as the destination needs it, then as requested.
fn sorted_by(wanted: &[SortingColumn], asked: &[SortingColumn]) -> Vec<SortingColumn> {
    let is_new = |column: &&SortingColumn| wanted.iter().all(|before| before.column != column.column);
    wanted.iter().chain(asked.iter().filter(is_new)).copied().collect()
}

fn write(destination: &mut dyn Destination, batch: Batch, subject: &str) -> Result<()> {
    destination.write(batch).map_err(|error| match error.kind() {
        // Faults of rows concern the source, faults of writing the destination.
        ErrorKind::Conversion | ErrorKind::Corrupt => named(error, subject),
        _ => named(error, destination.name()),
    })
}

/// A sorter's error, with the row as its object has it.
fn unsorted(error: Error, sorting: &Sorting, reading: &Reading) -> Error {
    match error.place().row.and_then(|row| sorting.origin(row)) {
        Some((piece, row)) => named(error.replaced(|place| place.row = Some(row)), reading.name_of(piece)),
        None => named(error, reading.table_name()),
    }
}

/// Fails for a row that is not where the source's own order has it.
fn check_claim(claim: &mut RowOrder, batch: &Batch) -> Result<()> {
    match claim.first_misplaced_number(batch)? {
        Some(row) => {
            let error = Error::corrupt("the rows are not in the order that is claimed for them");
            Err(error.at(|place| place.row = Some(row)))
        }
        None => Ok(()),
    }
}

/// Reads the output back and compares it with the input.
fn verify(
    destination: &dyn Destination,
    read: &Digest,
    (table, order, rows): (&Table, &[SortingColumn], u64),
    options: &CopyOptions,
    report: &mut dyn FnMut(Event),
) -> Result<()> {
    let again = destination
        .written()?
        .ok_or_else(|| Error::option("verify", "what is written here cannot be read again"))?;
    let again: Arc<dyn Source> = Arc::from(again);
    if again.table().schema.leaves().len() != table.schema.leaves().len() {
        return Err(Error::internal("what was written has other columns than what was read"));
    }
    let reading =
        ReadingOptions { threads: options.threads, cancel: options.cancel.clone(), ..Default::default() };
    let mut reading = Reading::new(Arc::clone(&again), reading)?;
    let mut written = Digest::new(read.is_in_order());
    let mut order = RowOrder::new(&again.table().schema, order)?;
    while let Some((piece, batch)) = reading.next_batch()? {
        written.add(&batch)?;
        if let Some(row) = order.first_misplaced_number(&batch)? {
            let error = Error::internal("what was written is not in order, and is removed");
            return Err(named(error.at(|place| place.row = Some(row)), reading.name_of(piece)));
        }
        report(Event::Verified { rows: written.rows(), of: rows });
    }
    if written == *read {
        return Ok(());
    }
    Err(Error::internal(format!(
        "what was written ({} rows) is not what was read ({} rows), and is removed",
        written.rows(),
        read.rows()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_destination_needs_comes_first() {
        let by = |column: u32, descending| SortingColumn { column, descending, nulls_first: false };
        assert_eq!(sorted_by(&[], &[]), []);
        assert_eq!(sorted_by(&[by(2, false)], &[by(1, true), by(2, true)]), [by(2, false), by(1, true)]);
    }
}
