//! Copying rows from a source to a destination.

use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Error, ErrorKind, Result};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::format::SortingColumn;
use marquetry_parquet::schema::{Leaf, Meaning, PhysicalType, Schema};
use marquetry_parquet::sort::SortOptions;

use crate::digest::{Digest, Meanings};
use crate::lanes::WAITING_BYTES_MAX;
use crate::reading::{Reading, ReadingOptions, processors};
use crate::row_order::RowOrder;
use crate::sorting::{MEMORY_BYTES, Sorting};
use crate::subject::{named, of_rows};
use crate::{BytesRead, Cancel, Destination, LostValues, PieceOptions, Source, Table, Written, lines_of};

/// The part of all memory in which batches wait between threads, at most.
const WAITING_PART: u64 = 8;

/// How rows are copied.
///
/// ```
/// use marquetry_tables::{Cancel, CopyOptions};
///
/// let stop = Cancel::new();
/// let mut options = CopyOptions::default();
/// (options.limit, options.verify, options.cancel) = (Some(1_000_000), true, stop.clone());
/// stop.cancel(); // from any thread, or a signal's handler
/// assert!(options.cancel.is_set());
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CopyOptions {
    /// Copy at most this many rows, from the start.
    pub limit: Option<u64>,
    /// Sort the rows by these leaves of the source's schema. The sort is stable. If empty, rows keep the source's
    /// order.
    pub sort: Vec<SortingColumn>,
    /// About how many bytes of rows are in memory: sorted (more go to a temporary file beside the output), and, of an
    /// eighth of these bytes or 64 MiB, on their way between threads. Pages that wait for their row group have a
    /// bound of [their own](marquetry_parquet::write::WriteOptions::held_bytes_max).
    pub memory_bytes: u64,
    /// Read the output back before it is committed, and compare it with the input: the rows and, if the source or
    /// [`sort`](CopyOptions::sort) states one, their order. A source whose rows are not in the order that it claims is
    /// an error then. (Otherwise the claim is dropped: no output of this crate states an order that its rows lack.) A
    /// Parquet file is read with the limits that it was written with: one that readers would refuse is an error, too.
    pub verify: bool,
    /// Threads that read, sort and write. `None`: one per processor. Their number does not change what is written, nor
    /// which error is returned.
    pub threads: Option<usize>,
    /// Cancels the copy. Rows that are in flight to a server are abandoned if it does not answer.
    pub cancel: Cancel,
    /// Where the values are counted that became null because columns cannot hold them: for those who want to say of which columns.
    pub lost: LostValues,
}

impl Default for CopyOptions {
    fn default() -> CopyOptions {
        CopyOptions {
            limit: None,
            sort: Vec::new(),
            memory_bytes: MEMORY_BYTES,
            verify: false,
            threads: None,
            cancel: Cancel::new(),
            lost: LostValues::default(),
        }
    }
}

/// What was copied: so far, as [`copy`](copy()) reports it, and in all, as it returns it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Copied {
    /// Rows that were read.
    pub rows: u64,
    /// Rows to be read, if known.
    pub rows_total: Option<u64>,
    /// Bytes of the input that were read for these rows, as far as the source [counts](PieceOptions::bytes_read) them.
    pub bytes_read: u64,
    /// Bytes of all of the input, if known; with a limit, not all of it is read.
    pub bytes_total: Option<u64>,
    /// What the destination wrote. Rows that are sorted are written after all were read.
    pub written: Written,
    /// Rows that were read back and compared, if the output is verified.
    pub verified: u64,
    /// If rows are sorted, the bytes of them that were spilled to a temporary file.
    pub sorted_by_way_of: Option<u64>,
    /// Values that were read and became null because columns cannot hold them ([`CopyOptions::lost`]). Known at the end.
    pub values_lost: u64,
}

/// Copies the rows of a source to a destination. Memory is bounded, whatever the number of rows: some batches per
/// thread, and [`CopyOptions::memory_bytes`] if rows are sorted.
///
/// Pieces of the source are read in parallel, large ones by several threads. The destination is called only from the caller's
/// thread, and gets rows in the source's order unless it [wants](crate::Wants) otherwise. After an error nothing of
/// the output is left, as far as the destination can guarantee that, and the destination has [settled](Destination::settle).
/// Threads that are in a call of the source are not waited for: [`PieceOptions::cancel`] is set, and each ends when that
/// call returns.
///
/// `report` gets what was copied so far, after each batch.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use marquetry_tables::files::{Files, FilesOptions};
/// use marquetry_tables::parquet::{NewParquetFile, ParquetOptions};
/// use marquetry_tables::{CopyOptions, SortBy, Source, copy};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let trips: Arc<dyn Source> = Arc::new(Files::open(["trips/"], &FilesOptions::default())?);
/// let mut sorted = NewParquetFile::new("sorted.parquet", ParquetOptions::default())?;
/// let mut options = CopyOptions::default();
/// options.sort = SortBy::resolve(&SortBy::parse_list("day, fare desc")?, &trips.table().schema)?;
/// options.verify = true;
/// let copied = copy(&trips, &mut sorted, &options, &mut |so_far| eprint!("\r{} rows", so_far.rows))?;
/// println!("{} rows in {} bytes", copied.rows, copied.written.bytes);
/// # Ok(())
/// # }
/// ```
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
    report: &mut dyn FnMut(&Copied),
) -> Result<Copied> {
    destination.cancelled_by(&options.cancel);
    destination.set_threads(threads_of(options));
    // Rows that are sorted have other numbers than in their source.
    if options.sort.is_empty() {
        destination.rows_of(source);
    }
    destination.set_sorting(options.sort.is_empty().then(|| options.memory_bytes - waiting_bytes(options)));
    let copied = copy_all(source, destination, options, report);
    copied.map_err(|error| {
        destination.settle();
        with_line(source.as_ref(), error, &options.cancel)
    })
}

/// An error about a row of a text says the line, as those do that are found as the text is read.
fn with_line(source: &dyn Source, error: Error, cancel: &Cancel) -> Error {
    let place = error.place();
    let (Some(row), Some(object), []) = (place.row, &place.object, error.parts()) else { return error };
    // A server or a disk that fails has nothing to do with the text.
    if error.kind() == ErrorKind::Io {
        return error;
    }
    match lines_of(source, object, &[row], cancel).as_deref() {
        Some([line]) => {
            let message = format!("line {line}: {}", error.message());
            error.reworded(message)
        }
        _ => error,
    }
}

fn copy_all(
    source: &Arc<dyn Source>,
    destination: &mut dyn Destination,
    options: &CopyOptions,
    report: &mut dyn FnMut(&Copied),
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
        return Err(wants.unverifiable.map_or_else(not_read_again, |error| named(error, &table.name)));
    }
    let by = sorted_by(&wants.order, &options.sort);
    let mut sorting = match &*by {
        [] => None,
        by => {
            let (host, scratch) = ((threads_of(options), &options.cancel), wants.scratch.as_deref());
            let sort = SortOptions {
                memory_bytes: options.memory_bytes - waiting_bytes(options),
                rows: table.rows,
                keep_dictionaries: wants.keep_dictionaries,
                ..SortOptions::default()
            };
            Some(Sorting::new(&table.schema, by, sort, host, scratch)?)
        }
    };
    // A sorter looks up what the destination does not take.
    let keep_dictionaries = wants.keep_dictionaries || sorting.is_some();
    let bytes_read = BytesRead::default();
    let piece = PieceOptions {
        limit: options.limit,
        keep_dictionaries,
        bytes_read: bytes_read.clone(),
        lost: options.lost.clone(),
        ..PieceOptions::default()
    };
    let waiting_bytes = Some(waiting_bytes(options));
    let reading =
        ReadingOptions { piece, threads: options.threads, waiting_bytes, cancel: options.cancel.clone() };
    let mut reading = Reading::new(Arc::clone(source), reading)?;
    let mut digest =
        options.verify.then(|| (Digest::new(by.is_empty() && !wants.reorders), Meanings::of(&table.schema)));
    let claimed = if options.sort.is_empty() { &*table.order } else { &[] };
    let mut claim = options.verify.then(|| RowOrder::new(&table.schema, claimed)).transpose()?;
    let mut copied = Copied { rows_total: table.rows, bytes_total: table.bytes, ..Copied::default() };
    let mut of_piece = None;
    loop {
        let next = reading.next_batch();
        let Some((piece, batch)) =
            next.map_err(|error| first(destination, (&mut sorting, &reading), error))?
        else {
            break;
        };
        copied.rows += u64_of(batch.rows);
        copied.bytes_read = reading.bytes_read();
        if let Some((digest, meanings)) = &mut digest {
            digest.add(&batch, meanings);
        }
        if let Some(claim) = &mut claim {
            check_claim(claim, &batch).map_err(|error| {
                let error = named(error, reading.name_of(piece));
                first(destination, (&mut sorting, &reading), error)
            })?;
        }
        match &mut sorting {
            Some(sorting) => {
                sorting.push(batch, piece).map_err(|error| unsorted(error, sorting, &reading))?;
                copied.sorted_by_way_of = Some(sorting.spilled_bytes());
            }
            None => {
                let subject = reading.name_of(piece);
                if of_piece != Some(piece) {
                    of_piece = Some(piece);
                    destination.rows_from(subject);
                }
                write(destination, batch, subject, &mut copied.written)?;
            }
        }
        report(&copied);
    }
    (copied.bytes_read, copied.values_lost) = (bytes_read.get(), options.lost.total());
    if let Some(sorting) = &mut sorting {
        destination.rows_from(&table.name);
        while let Some(batch) = sorting.next().map_err(|error| unsorted(error, sorting, &reading))? {
            options.cancel.check()?;
            // Its number is that among the sorted rows, which nobody can look up.
            write(destination, batch, &table.name, &mut copied.written).map_err(Error::without_row)?;
            report(&copied);
        }
        copied.sorted_by_way_of = Some(sorting.spilled_bytes());
    }
    options.cancel.check()?;
    copied.written = destination.finish().map_err(|error| {
        let error = if sorting.is_some() { error.without_row() } else { error };
        named(error, destination.name())
    })?;
    copied.sorted_by_way_of = copied.sorted_by_way_of.or(copied.written.sorted_by_way_of);
    if let Some((digest, _)) = &digest {
        let order = if wants.reorders { Vec::new() } else { sorted_by(&by, &table.order) };
        verify(destination, digest, (&table, &order), options, &mut |rows| {
            copied.verified = rows;
            report(&copied);
        })
        .map_err(|error| named(error, destination.name()))?;
    }
    options.cancel.check()?;
    destination.commit().map_err(|error| named(error, destination.name()))?;
    Ok(copied)
}

/// The sort order: first as the destination needs it, then as requested.
fn sorted_by(wanted: &[SortingColumn], asked: &[SortingColumn]) -> Vec<SortingColumn> {
    let is_new = |column: &&SortingColumn| wanted.iter().all(|before| before.column != column.column);
    wanted.iter().chain(asked.iter().filter(is_new)).copied().collect()
}

/// The threads that a copy may use.
fn threads_of(options: &CopyOptions) -> usize {
    options.threads.unwrap_or_else(processors).max(1)
}

/// Bytes of batches that may wait between threads.
fn waiting_bytes(options: &CopyOptions) -> u64 {
    WAITING_BYTES_MAX.min(options.memory_bytes / WAITING_PART)
}

/// The error to report after the source has failed: that of earlier rows which cannot be written, if there is one.
fn first(
    destination: &mut dyn Destination,
    (sorting, reading): (&mut Option<Sorting>, &Reading),
    error: Error,
) -> Error {
    if error.kind() == ErrorKind::Cancelled {
        return error;
    }
    let earlier = match sorting {
        Some(sorting) => sorting.drain().map_err(|earlier| unsorted(earlier, sorting, reading)),
        None => destination.drain().map_err(|earlier| named(earlier, destination.name())),
    };
    earlier.err().unwrap_or(error)
}

fn write(
    destination: &mut dyn Destination,
    batch: Batch,
    subject: &str,
    written: &mut Written,
) -> Result<()> {
    let rows = u64_of(batch.rows);
    destination.write(batch).map_err(|error| named(of_rows(error, subject), destination.name()))?;
    written.rows += rows;
    if let Some(counted) = destination.progress() {
        *written = counted;
    }
    Ok(())
}

/// A sorter's error, with the row as its object has it.
pub(crate) fn unsorted(error: Error, sorting: &Sorting, reading: &Reading) -> Error {
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
    (table, order): (&Table, &[SortingColumn]),
    options: &CopyOptions,
    report: &mut dyn FnMut(u64),
) -> Result<()> {
    let again = destination.written()?.ok_or_else(not_read_again)?;
    let again: Arc<dyn Source> = Arc::from(again);
    check_columns(&table.schema, &again.table().schema)?;
    let reading =
        ReadingOptions { threads: options.threads, cancel: options.cancel.clone(), ..Default::default() };
    let mut reading = Reading::new(Arc::clone(&again), reading)?;
    let (mut written, meanings) = (Digest::new(read.is_in_order()), Meanings::of(&again.table().schema));
    let mut order = RowOrder::new(&again.table().schema, order)?;
    while let Some((piece, batch)) = reading.next_batch()? {
        written.add(&batch, &meanings);
        if let Some(row) = order.first_misplaced_number(&batch)? {
            let error = Error::internal("what was written is not in order, and is removed");
            return Err(named(error.at(|place| place.row = Some(row)), reading.name_of(piece)));
        }
        report(written.rows());
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

fn not_read_again() -> Error {
    Error::option("verify", "what is written here cannot be read again")
}

/// Fails unless the columns that are read back are those that were written. Types may differ in what the rows cannot
/// show: a format may have its own spelling of lists, only one length of bytes, decimals in another number of them, and
/// nullable columns alone; and nulls are nulls in any type.
fn check_columns(read: &Schema, written: &Schema) -> Result<()> {
    let columns = |schema: &Schema| -> Vec<usize> { schema.children(0).collect() };
    let (ours, theirs) = (columns(read), columns(written));
    let name = |schema: &Schema, column: &usize| schema.nodes()[*column].name.clone();
    for (one, other) in ours.iter().zip(&theirs) {
        let (one_name, other_name) = (name(read, one), name(written, other));
        if one_name != other_name {
            let message = format!("the column {other_name:?} was written, where {one_name:?} was read");
            return Err(Error::internal(message));
        }
        let types = |schema: &Schema, column: usize| -> Vec<Option<PhysicalType>> {
            let held = |leaf: &Leaf| match (schema.meaning_of(leaf), leaf.physical_type) {
                (Meaning::Null, _) => None,
                (Meaning::Decimal { .. }, _) | (_, PhysicalType::FixedLenByteArray(_)) => {
                    Some(PhysicalType::ByteArray)
                }
                (_, held) => Some(held),
            };
            schema.leaves_of(column).map(|leaf| held(&schema.leaves()[leaf])).collect()
        };
        if types(read, *one) != types(written, *other) {
            let error = Error::internal("the column was written with another type than it was read with");
            return Err(error.at(|place| place.column = Some(one_name.to_string())));
        }
    }
    if ours.len() == theirs.len() {
        return Ok(());
    }
    Err(Error::internal(format!("{} columns were written, where {} were read", theirs.len(), ours.len())))
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
