//! What a query makes of the rows that it finds: rows as an Arrow IPC stream or a Parquet file, their number, or aggregates of them.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::SchemaRef;
use marquetry_arrow::{ArrowOptions, FromArrow, ToArrow};
use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Error, Price, Result};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::format::FileMetaData;

use crate::aggregate::{Aggregates, Asking, COMPARED_BYTES, FOLD_PRICE, compared};
use crate::compact::{ROW_BYTES_MAX, batch_text_bytes, compact_batch, fitting_rows};
use crate::failure::of_arrow;
use crate::groups::Groups;
use crate::host::{Host, price_of};
use crate::parquet_rows::{ParquetRows, ROWS_PRICE, batch_bytes};
use crate::request::Format;
use crate::rows::piece;

/// What it costs to take a batch, however few rows it has, about: of each column, and beside them.
const TAKE_PRICE: Price = Price::per_kilovalue(300 << 10);
/// What it costs to write a byte of an answer: it is copied into an array of its own, and from there.
const WRITE_PRICE: Price = Price::per_kib(600);
/// What a value costs that is written into a row.
const ROW_PRICE: Price = Price::per_kilovalue(40 << 10);
/// Bytes of values that are taken of a batch at once.
const TAKEN_BYTES: usize = 4 << 20;
/// The part of an answer's bytes that a batch has which others are likely to follow: as many are reserved for all of them, and this part more.
const ROOM_PART: usize = 16;
/// Units of a batch whose aggregates are computed at once; and the rows that are taken of it whatever they cost.
const FOLD_UNITS_MAX: u64 = 1_000_000;
const FOLD_ROWS_MIN: usize = 64;

/// Rows, or aggregates, of an answer.
pub(crate) struct Output {
    sink: Sink,
    /// Of aggregates.
    format: Format,
    /// The number that the first row has in the object.
    first_row: Option<u64>,
}

/// What an answer has in the end.
pub(crate) struct Made {
    pub(crate) data: Option<Vec<u8>>,
    pub(crate) rows: u64,
    pub(crate) first_row: Option<u64>,
}

enum Sink {
    /// Rows, of which as many are still wanted; and bytes that they may take.
    Rows {
        to_arrow: Box<ToArrow>,
        stream: Box<StreamWriter<Vec<u8>>>,
        rows: u64,
        wanted: u64,
        bytes_max: usize,
    },
    Parquet(Box<ParquetRows>),
    /// Pieces of an object of rows, of which the next row has this number.
    Pieces {
        to_arrow: Box<ToArrow>,
        pieces: Vec<u8>,
        next: u64,
        wanted: u64,
        bytes_max: usize,
    },
    /// Rows that are counted, and as many as are still wanted.
    Count {
        rows: u64,
        wanted: u64,
    },
    Aggregates(Box<ToArrow>, Aggregates),
    Groups(Box<ToArrow>, Box<Groups>),
}

impl Output {
    /// Of these leaves of an object. A Parquet file that is kept has what it is searched by, and is compressed better.
    pub(crate) fn rows(
        metadata: &FileMetaData,
        leaves: Option<&[usize]>,
        (limit, format): (Option<u64>, Format),
        bytes_max: usize,
        is_kept: bool,
    ) -> Result<Output> {
        let wanted = limit.unwrap_or(u64::MAX);
        let sink = match format {
            Format::Arrow => {
                let to_arrow = Box::new(ToArrow::of_file(metadata, leaves, ArrowOptions::default())?);
                let stream = StreamWriter::try_new(Vec::new(), to_arrow.schema()).map_err(of_arrow)?;
                Sink::Rows { to_arrow, stream: Box::new(stream), rows: 0, wanted, bytes_max }
            }
            Format::Parquet => {
                let rows = ParquetRows::new(metadata, leaves, (limit, bytes_max), is_kept)?;
                Sink::Parquet(Box::new(rows))
            }
            Format::Count => Sink::Count { rows: 0, wanted },
            Format::Rows => {
                let to_arrow = Box::new(ToArrow::of_file(metadata, leaves, ArrowOptions::default())?);
                Sink::Pieces { to_arrow, pieces: Vec::new(), next: 1, wanted, bytes_max }
            }
        };
        Ok(Output { sink, format, first_row: None })
    }

    pub(crate) fn aggregates(
        metadata: &FileMetaData,
        leaves: &[usize],
        asked: &[Asking],
        groups: &[usize],
        format: Format,
    ) -> Result<Output> {
        // In a Parquet file, values are as the object has them: those of an Arrow schema that its writer stored may be in other units.
        let to_arrow = Box::new(match format {
            Format::Parquet => ToArrow::new(&metadata.schema, Some(leaves))?,
            _ => ToArrow::of_file(metadata, Some(leaves), ArrowOptions::default())?,
        });
        let sink = match groups {
            [] => {
                let aggregates = Aggregates::of_all(asked, to_arrow.schema())?;
                Sink::Aggregates(to_arrow, aggregates)
            }
            groups => {
                let groups = Groups::new(asked, groups, to_arrow.schema())?;
                Sink::Groups(to_arrow, Box::new(groups))
            }
        };
        Ok(Output { sink, format, first_row: None })
    }

    /// The rows that are still wanted.
    pub(crate) fn wanted(&self) -> u64 {
        match &self.sink {
            Sink::Rows { wanted, .. } | Sink::Count { wanted, .. } | Sink::Pieces { wanted, .. } => *wanted,
            Sink::Parquet(rows) => rows.wanted(),
            Sink::Aggregates(..) | Sink::Groups(..) => u64::MAX,
        }
    }

    /// Whether the answer has as many bytes as it may have.
    pub(crate) fn is_full(&self) -> bool {
        match &self.sink {
            Sink::Rows { stream, bytes_max, rows, .. } => *rows > 0 && stream.get_ref().len() >= *bytes_max,
            Sink::Parquet(rows) => rows.is_full(),
            Sink::Pieces { pieces, bytes_max, .. } => !pieces.is_empty() && pieces.len() >= *bytes_max,
            Sink::Aggregates(..) | Sink::Count { .. } => false,
            Sink::Groups(_, groups) => groups.is_full(),
        }
    }

    /// Bytes that the answer still has room for, about.
    pub(crate) fn room(&self) -> u64 {
        match &self.sink {
            Sink::Rows { stream, bytes_max, .. } => u64_of(bytes_max.saturating_sub(stream.get_ref().len())),
            Sink::Parquet(rows) => rows.room(),
            Sink::Pieces { pieces, bytes_max, .. } => u64_of(bytes_max.saturating_sub(pieces.len())),
            Sink::Aggregates(..) | Sink::Count { .. } | Sink::Groups(..) => u64::MAX,
        }
    }

    /// Units, about, to hand out so many rows of so many values, with their bytes.
    pub(crate) fn units_of(&self, rows: u64, values: u64, bytes: u64) -> u64 {
        match &self.sink {
            Sink::Rows { .. } => price_of(WRITE_PRICE, bytes, 0),
            Sink::Parquet(_) => price_of(ROWS_PRICE, bytes, values),
            Sink::Pieces { .. } => {
                let written = price_of(WRITE_PRICE, bytes.saturating_mul(2), 0);
                written.saturating_add(price_of(ROW_PRICE, 0, values))
            }
            Sink::Count { .. } => 0,
            Sink::Aggregates(_, aggregates) => {
                price_of(FOLD_PRICE, 0, values.max(rows.saturating_mul(u64_of(aggregates.len()))))
            }
            Sink::Groups(_, groups) => groups.units_of(rows, values),
        }
    }

    /// Units, about, to begin and to end an answer of which nothing is there yet, beside its rows.
    pub(crate) fn opening(&self) -> u64 {
        match &self.sink {
            Sink::Parquet(rows) if rows.is_empty() => rows.owed(),
            _ => 0,
        }
    }

    /// Whether rows of a batch that were not taken are taken by a further call of [`take`](Output::take), as long as there is time.
    pub(crate) fn goes_on(&self) -> bool {
        match &self.sink {
            Sink::Aggregates(..) => true,
            Sink::Groups(_, groups) => !groups.has_all(),
            Sink::Rows { .. } | Sink::Parquet(_) | Sink::Pieces { .. } | Sink::Count { .. } => false,
        }
    }

    /// Whether columns are taken as indices of dictionaries, where the object has them so.
    pub(crate) fn keeps_dictionaries(&self) -> bool {
        matches!(self.sink, Sink::Parquet(_))
    }

    /// Rows come, of which the first has this number in the object.
    pub(crate) fn begins_at(&mut self, row: u64) {
        self.first_row.get_or_insert(row);
    }

    /// Counts rows of which no column is read: how many of them.
    pub(crate) fn count(&mut self, found: u64) -> u64 {
        match &mut self.sink {
            Sink::Aggregates(_, aggregates) => {
                aggregates.count(found);
                found
            }
            Sink::Count { rows, wanted } => {
                let some = found.min(*wanted);
                (*rows, *wanted) = (*rows + some, *wanted - some);
                some
            }
            Sink::Rows { .. } | Sink::Parquet(_) | Sink::Pieces { .. } | Sink::Groups(..) => found,
        }
    }

    /// Takes rows of a batch, from its first on: how many, at least one. Not all if the answer is full with them.
    pub(crate) fn take(&mut self, batch: &Batch, host: &mut Host<'_>) -> Result<usize> {
        let first_row = self.first_row.unwrap_or(0);
        host.charge(TAKE_PRICE.of(0, 1 + batch.columns.len()));
        let (batch, bytes) = of_bounded_bytes(batch)?;
        let batch = &*batch;
        match &mut self.sink {
            Sink::Rows { to_arrow, stream, rows, wanted, bytes_max } => {
                let made = arrow_of(to_arrow, batch, host)?;
                let most = usize::try_from(*wanted).unwrap_or(usize::MAX).min(made.num_rows());
                let room = bytes_max.saturating_sub(stream.get_ref().len());
                let made = made.slice(0, most);
                let most = fitting_rows(&made, (u64_of(room), ROW_BYTES_MAX), batch_text_bytes)?;
                let made = compact_batch(&made.slice(0, most))?;
                let made = fitting(made, room)?;
                let before = stream.get_ref().len();
                if before < *bytes_max && made.get_array_memory_size() >= *bytes_max / ROOM_PART {
                    // Memory that grows bit by bit is copied as often.
                    stream.get_mut().reserve_exact(*bytes_max + *bytes_max / ROOM_PART - before);
                }
                stream.write(&made).map_err(of_arrow)?;
                host.charge(WRITE_PRICE.of(stream.get_ref().len() - before, 0));
                *rows += u64_of(made.num_rows());
                *wanted -= u64_of(made.num_rows());
                Ok(made.num_rows())
            }
            Sink::Parquet(rows) => {
                let some = rows.take(batch, bytes, host)?;
                host.owe(rows.owed());
                Ok(some)
            }
            Sink::Pieces { to_arrow, pieces, next, wanted, bytes_max } => {
                let made = arrow_of(to_arrow, batch, host)?;
                let most = usize::try_from(*wanted).unwrap_or(usize::MAX).min(made.num_rows());
                let room = bytes_max.saturating_sub(pieces.len());
                let room = (u64_of(room), ROW_BYTES_MAX);
                let most = fitting_rows(&made.slice(0, most), room, batch_text_bytes)?;
                let written = piece::write(&made.slice(0, most), first_row + *next)?;
                host.charge(WRITE_PRICE.of(written.len(), 0) + ROW_PRICE.of(0, most * made.num_columns()));
                pieces.extend_from_slice(&written);
                (*next, *wanted) = (*next + u64_of(most), *wanted - u64_of(most));
                Ok(most)
            }
            Sink::Count { .. } => Err(Error::internal("columns of rows that are counted")),
            Sink::Aggregates(to_arrow, aggregates) => {
                let made = arrow_of(to_arrow, batch, host)?;
                let per_row = FOLD_PRICE.of(0, aggregates.len().max(made.num_columns()));
                let most = usize::try_from(FOLD_UNITS_MAX / per_row).unwrap_or(usize::MAX).max(FOLD_ROWS_MIN);
                let made = made.slice(0, most.min(made.num_rows()));
                let most = fitting_rows(&made, COMPARED_BYTES, |made| aggregates.compared_bytes(made))?;
                let made = made.slice(0, most);
                host.charge(
                    per_row.saturating_mul(u64_of(most)) + compared(aggregates.compared_bytes(&made)),
                );
                aggregates.add(&made)?;
                Ok(most)
            }
            Sink::Groups(to_arrow, groups) => {
                let made = arrow_of(to_arrow, batch, host)?;
                groups.add(&made, host)
            }
        }
    }

    /// The data, and the rows in it.
    pub(crate) fn finish(self, host: &mut Host<'_>) -> Result<Made> {
        host.owe(0);
        let (data, rows) = match self.sink {
            Sink::Rows { stream, rows, .. } => (Some(stream.into_inner().map_err(of_arrow)?), rows),
            Sink::Parquet(rows) => {
                let (file, rows) = rows.finish(host)?;
                (Some(file), rows)
            }
            Sink::Pieces { pieces, next, .. } => (Some(pieces), next - 1),
            Sink::Count { rows, .. } => (None, rows),
            Sink::Aggregates(_, aggregates) => {
                (Some(aggregates_of(&aggregates.finish()?, self.format, host)?), 1)
            }
            Sink::Groups(_, groups) => {
                let groups = groups.finish()?;
                (Some(aggregates_of(&groups, self.format, host)?), u64_of(groups.num_rows()))
            }
        };
        Ok(Made { data, rows, first_row: self.first_row })
    }
}

fn arrow_of(to_arrow: &mut ToArrow, batch: &Batch, host: &mut Host<'_>) -> Result<RecordBatch> {
    let mut budget = Budget::unlimited();
    let made = to_arrow.step(batch, &mut budget)?;
    host.charge(budget.spent());
    made.ok_or_else(|| Error::internal("a budget without an end is spent"))
}

/// The first rows of a batch, whose values have at most [`TAKEN_BYTES`] where more than one row has, and their bytes: many may be one text of a
/// dictionary, and each is looked at, and copied.
fn of_bounded_bytes(batch: &Batch) -> Result<(Cow<'_, Batch>, usize)> {
    let mut some = Cow::Borrowed(batch);
    loop {
        let bytes = batch_bytes(&some);
        if bytes <= TAKEN_BYTES {
            return Ok((some, bytes));
        }
        if some.rows <= 1 {
            let is_too_much = u64_of(bytes) > ROW_BYTES_MAX;
            return if is_too_much {
                Err(Error::too_large(format!("a row of {bytes} bytes")))
            } else {
                Ok((some, bytes))
            };
        }
        some = Cow::Owned(some.slice(0..some.rows / 2));
    }
}

/// The first rows of a batch that take about `room` bytes; at least one.
fn fitting(batch: RecordBatch, room: usize) -> Result<RecordBatch> {
    let (bytes, rows) = (batch.get_array_memory_size(), batch.num_rows());
    if bytes <= room || rows <= 1 {
        return Ok(batch);
    }
    let some = u128::from(u64_of(rows)) * u128::from(u64_of(room)) / u128::from(u64_of(bytes));
    let some = usize::try_from(some).unwrap_or(rows).clamp(1, rows);
    compact_batch(&batch.slice(0, some))
}

/// Aggregates in the form that was asked for.
pub(crate) fn aggregates_of(batch: &RecordBatch, format: Format, host: &mut Host<'_>) -> Result<Vec<u8>> {
    if format != Format::Parquet {
        return stream_of(batch);
    }
    let mut from_arrow = FromArrow::new(&batch.schema())?;
    let mut rows = ParquetRows::of_aggregates(Arc::clone(from_arrow.schema()), batch.num_rows())?;
    for part in from_arrow.batches(batch) {
        let part = part?;
        rows.take(&part, batch_bytes(&part), host)?;
    }
    rows.finish(host).map(|(file, _)| file)
}

/// An Arrow IPC stream of one batch.
pub(crate) fn stream_of(batch: &RecordBatch) -> Result<Vec<u8>> {
    let mut stream = StreamWriter::try_new(Vec::new(), &batch.schema()).map_err(of_arrow)?;
    stream.write(batch).map_err(of_arrow)?;
    stream.into_inner().map_err(of_arrow)
}

/// An Arrow IPC stream without a batch.
pub(crate) fn schema_stream(schema: &SchemaRef) -> Result<Vec<u8>> {
    let stream = StreamWriter::try_new(Vec::new(), schema).map_err(of_arrow)?;
    stream.into_inner().map_err(of_arrow)
}
