//! Objects of rows, as the Skyhook project stored them before it had columns: read, queried, and written as other forms are.
//!
//! They are for comparison, and to bring what is stored in that form to Parquet. Of a query, all that is about how rows are found is Parquet's:
//! here each row is looked at, and of it the columns that are wanted. A call reads a piece, which is a table of its own, as a whole.

mod flat;
mod flex;
pub(crate) mod piece;
mod types;

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{Field, Schema, SchemaRef};
use marquetry_arrow::FromArrow;
use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Error, Price, Result};
use marquetry_parquet::prune::Evaluator;

use self::piece::{Piece, Record};
use self::types::{Column, values_of};
use crate::aggregate::{Aggregates, Asking, FOLD_PRICE};
use crate::answer::Answer;
use crate::asked::asked_of;
use crate::cursor::Cursor;
use crate::failure::of_arrow;
use crate::groups::Groups;
use crate::host::{Host, too_much};
use crate::output::aggregates_of;
use crate::parquet_rows::{ParquetRows, batch_bytes};
use crate::request::{Format, Request};

/// Bytes of a piece that is read, at most.
const PIECE_BYTES_MAX: u64 = 8 << 20;
/// Rows that are looked at at a time, and bytes of their texts: many values may refer to one text of a piece.
const BATCH_ROWS: usize = 2048;
const BATCH_BYTES: usize = 512 << 10;
/// Bytes of the texts of one row, at most.
const ROW_BYTES_MAX: usize = 8 << 20;
/// What a value of a row costs, and a row.
const VALUE_PRICE: Price = Price::per_kilovalue(12 << 10);
const ROW_PRICE: Price = Price::per_kilovalue(40 << 10);
/// What a byte of a text costs that is read of a row: it is looked at, and copied.
const TEXT_PRICE: Price = Price::per_kib(400);
/// What a byte of an answer costs.
const WRITE_PRICE: Price = Price::per_kib(600);
/// The part of a share below which nothing more is begun.
const LEFT_MIN: u64 = 8;
/// The part of a share that rows of a piece take at least.
const PIECE_PART: u64 = 4;

/// Whether an object has rows, not Parquet: it begins with the length of a piece, which fits.
pub(crate) fn is_of_rows(host: &mut Host<'_>) -> Result<bool> {
    let length = host.length()?;
    if length < 8 {
        return Ok(false);
    }
    let head = host.read(&(0..4))?;
    let [a, b, c, d] = *head.first_chunk::<4>().unwrap_or(b"PAR1");
    let piece = u64::from(u32::from_le_bytes([a, b, c, d]));
    Ok([a, b, c, d] != *b"PAR1" && piece >= 4 && piece <= length - 4)
}

/// Rows of an object of rows, or aggregates of them, from where the cursor says, in the form that the request says. Of a Parquet file that
/// is `kept`, statistics and indexes are written.
pub(crate) fn query(host: &mut Host<'_>, request: &Request<'_>, is_kept: bool) -> Result<Answer> {
    let length = host.length()?;
    let mark = host.mark_of_beginning()?;
    let (mut at, mut row) = (0, 0);
    if let Some(cursor) = request.cursor {
        cursor.check(mark)?;
        at = u64::from(cursor.row_group);
        row = usize::try_from(cursor.row).unwrap_or(usize::MAX);
    }
    let begin = at;
    let mut rows: Option<Rows> = None;
    let mut wanted = request.limit.unwrap_or(u64::MAX);
    while at < length && wanted > 0 {
        let is_spent = host.left() <= host.share().units / LEFT_MIN;
        // Pieces that are deleted are a call's work, too.
        if at > begin && is_spent || rows.as_ref().is_some_and(|rows| is_spent || rows.is_full(host)) {
            break;
        }
        let bytes = host.read(&(at..length.min(at + 4)))?;
        let size = bytes.first_chunk::<4>().ok_or_else(|| Error::corrupt("a piece that ends early"))?;
        let (start, size) = (at + 4, u64::from(u32::from_le_bytes(*size)));
        let end = start.checked_add(size).filter(|end| *end <= length);
        let end = end.ok_or_else(|| Error::corrupt("a piece that ends early").at_offset(at))?;
        if size > PIECE_BYTES_MAX {
            return Err(Error::too_large(format!("a piece of {size} bytes in a row object")));
        }
        let bytes = host.read(&(start..end))?;
        let Some(piece) = Piece::of(&bytes).map_err(|error| error.at_offset(at))? else {
            (at, row) = (end, 0);
            continue;
        };
        if row > piece.rows() {
            return Err(Error::misuse("a cursor to rows that the object does not have"));
        }
        let rows = match &mut rows {
            Some(rows) => rows,
            none => none.insert(Rows::new(&piece.columns, request, is_kept, host)?),
        };
        if rows.columns != piece.columns {
            return Err(Error::unsupported("pieces of different columns in a row object"));
        }
        // To read a piece costs so much that more than one batch of it is worth that, whatever is left.
        let (mut is_first, begun) = (true, host.work().units);
        while row < piece.rows() && wanted > 0 {
            let is_spent = host.left() <= host.share().units / LEFT_MIN
                && host.work().units - begun >= host.share().units / PIECE_PART;
            if !is_first && (is_spent || rows.is_full(host)) {
                break;
            }
            is_first = false;
            let some = row..piece.rows().min(row + rows.rows_at_once);
            row = rows.add(&piece, some, &mut wanted, host).map_err(|error| error.at_offset(at))?;
        }
        if row >= piece.rows() {
            (at, row) = (end, 0);
        }
    }
    let place = u32::try_from(at).map_err(|_| Error::too_large("a row object beyond 4 GiB"))?;
    let cursor = (at < length && wanted > 0).then_some(Cursor { row_group: place, row: u64_of(row), mark });
    let (data, rows) = match rows {
        Some(rows) => rows.finish(host)?,
        None => (None, 0),
    };
    Ok(Answer { data, cursor, rows, ..Answer::default() })
}

/// What becomes of rows.
struct Rows {
    /// All columns of the object.
    columns: Vec<Column>,
    tested: Option<Tested>,
    /// The columns that are handed out, and their fields in Arrow.
    handed_out: Vec<usize>,
    schema: SchemaRef,
    /// The places in a row of the texts that are read.
    texts: Vec<usize>,
    sink: Sink,
    /// Of aggregates.
    format: Format,
    rows_at_once: usize,
    rows: u64,
    /// Bytes of the rows.
    bytes: usize,
}

/// A predicate, and the columns that it tests.
struct Tested {
    columns: Vec<usize>,
    schema: SchemaRef,
    from_arrow: FromArrow,
    evaluator: Evaluator,
}

enum Sink {
    Arrow(Box<StreamWriter<Vec<u8>>>),
    Parquet(Box<FromArrow>, Box<ParquetRows>),
    Count,
    Aggregates(Aggregates),
    Groups(Box<Groups>),
}

impl Rows {
    fn new(columns: &[Column], request: &Request<'_>, is_kept: bool, host: &mut Host<'_>) -> Result<Rows> {
        let fields = |places: &[usize]| -> SchemaRef {
            let fields = places.iter().map(|place| &columns[*place]);
            let fields = fields.map(|it| Field::new(&it.name, it.data_type.arrow(), it.is_nullable));
            Arc::new(Schema::new(fields.collect::<Vec<Field>>()))
        };
        let every: Vec<usize> = (0..columns.len()).collect();
        let all = FromArrow::new(&fields(&every))?;
        // As of a Parquet file of the same columns, each of which has one leaf.
        let asked = asked_of(all.schema(), request, host)?;
        let handed_out = asked.leaves.clone().unwrap_or(every);
        let tested = match &asked.predicate {
            None => None,
            Some(predicate) => {
                let mut columns = predicate.leaves();
                columns.sort_unstable();
                columns.dedup();
                let schema = fields(&columns);
                let from_arrow = FromArrow::new(&schema)?;
                let place = |leaf: usize| columns.binary_search(&leaf).ok();
                let mapped = predicate
                    .map_leaves(&place)
                    .ok_or_else(|| Error::internal("a predicate of columns that are not read"))?;
                let places: Vec<usize> = (0..columns.len()).collect();
                let evaluator = Evaluator::new(&mapped, from_arrow.schema(), &places)?;
                Some(Tested { columns, schema, from_arrow, evaluator })
            }
        };
        let mut read = handed_out.clone();
        read.extend(tested.iter().flat_map(|tested| &tested.columns));
        read.sort_unstable();
        read.dedup();
        // One for each column, also where two have the same place: each gets an array.
        let read = read.iter().map(|place| &columns[*place]);
        let texts = read.filter(|column| column.data_type.is_text()).map(|column| column.at).collect();
        let schema = fields(&handed_out);
        let sink = match (&asked.aggregates, request.format) {
            (Some(aggregates), _) => sink_of(aggregates, &asked.groups, &schema)?,
            (None, Format::Arrow) => {
                Sink::Arrow(Box::new(StreamWriter::try_new(Vec::new(), &schema).map_err(of_arrow)?))
            }
            (None, Format::Parquet) => {
                let from_arrow = FromArrow::new(&schema)?;
                let rows = ParquetRows::of_schema(Arc::clone(from_arrow.schema()), usize::MAX, is_kept)?;
                Sink::Parquet(Box::new(from_arrow), Box::new(rows))
            }
            (None, Format::Count) => Sink::Count,
            (None, Format::Rows) => return Err(Error::unsupported("rows of an object of rows")),
        };
        let columns = columns.to_vec();
        let format = request.format;
        let rows_at_once = asked.rows_at_once(match &sink {
            Sink::Groups(groups) => groups.rows_at_once(),
            _ => BATCH_ROWS,
        });
        let (rows, bytes) = (0, 0);
        Ok(Rows { columns, tested, handed_out, schema, texts, sink, format, rows_at_once, rows, bytes })
    }

    fn is_full(&self, host: &Host<'_>) -> bool {
        match &self.sink {
            Sink::Groups(groups) => groups.is_full(),
            Sink::Aggregates(_) | Sink::Count => false,
            Sink::Arrow(_) | Sink::Parquet(..) => self.rows > 0 && self.bytes >= host.share().answer_bytes,
        }
    }

    /// Adds rows of a piece, as many as are wanted: the row after the last of them.
    fn add(
        &mut self,
        piece: &Piece<'_>,
        rows: std::ops::Range<usize>,
        wanted: &mut u64,
        host: &mut Host<'_>,
    ) -> Result<usize> {
        // Rows are looked up first, and read column by column then: so each loop is about one type.
        let (mut records, mut end, mut bytes) = (Vec::with_capacity(rows.len()), rows.start, 0);
        while end < rows.end && bytes < BATCH_BYTES {
            if let Some(record) = piece.record(end)? {
                let mut row_bytes = 0;
                for at in &self.texts {
                    row_bytes += record.text_length(*at)?;
                    if row_bytes > ROW_BYTES_MAX {
                        return Err(Error::too_large("a row of so much text"));
                    }
                }
                bytes += row_bytes;
                records.push(record);
            }
            end += 1;
        }
        host.charge(ROW_PRICE.of(0, end - rows.start) + TEXT_PRICE.of(bytes, 0));
        if let Some(tested) = &mut self.tested {
            let mut bits = tested.bits(&self.columns, &records, host)?.into_iter();
            records.retain(|_| bits.next() == Some(true));
        }
        records.truncate(usize::try_from(*wanted).unwrap_or(usize::MAX));
        *wanted -= u64_of(records.len());
        self.take(&records, host)?;
        Ok(end)
    }

    fn take(&mut self, records: &[Record<'_>], host: &mut Host<'_>) -> Result<()> {
        self.rows += u64_of(records.len());
        if records.is_empty() || matches!(self.sink, Sink::Count) {
            return Ok(());
        }
        let batch = batch_of((&self.columns, &self.handed_out), &self.schema, records, host)?;
        let bytes = batch.get_array_memory_size();
        self.bytes += bytes;
        match &mut self.sink {
            Sink::Count => {}
            Sink::Arrow(stream) => {
                stream.write(&batch).map_err(of_arrow)?;
                host.charge(WRITE_PRICE.of(bytes, 0));
            }
            Sink::Parquet(from_arrow, rows) => {
                for part in from_arrow.batches(&batch) {
                    let part = part?;
                    rows.take(&part, batch_bytes(&part), host)?;
                }
                host.owe(rows.owed());
            }
            Sink::Aggregates(aggregates) => {
                aggregates.add(&batch)?;
                host.charge(FOLD_PRICE.of(0, batch.num_rows() * aggregates.len()));
            }
            Sink::Groups(groups) => groups.add_all(&batch, host)?,
        }
        Ok(())
    }

    fn finish(self, host: &mut Host<'_>) -> Result<(Option<Vec<u8>>, u64)> {
        Ok(match self.sink {
            Sink::Arrow(stream) => (Some(stream.into_inner().map_err(of_arrow)?), self.rows),
            Sink::Parquet(_, rows) => {
                host.owe(0);
                let (file, rows) = rows.finish(host)?;
                (Some(file), rows)
            }
            Sink::Count => (None, self.rows),
            Sink::Aggregates(aggregates) => {
                (Some(aggregates_of(&aggregates.finish()?, self.format, host)?), 1)
            }
            Sink::Groups(groups) => {
                let groups = groups.finish()?;
                (Some(aggregates_of(&groups, self.format, host)?), u64_of(groups.num_rows()))
            }
        })
    }
}

impl Tested {
    /// For which of the rows the predicate is true.
    fn bits(&mut self, columns: &[Column], records: &[Record<'_>], host: &mut Host<'_>) -> Result<Vec<bool>> {
        let batch = batch_of((columns, &self.columns), &self.schema, records, host)?;
        let mut bits: Vec<bool> = Vec::with_capacity(records.len());
        for part in self.from_arrow.batches(&batch) {
            let part = part?;
            let mut budget = Budget::new(host.left_at_all());
            let found = self.evaluator.step(&part, &mut budget)?;
            host.charge(budget.spent());
            let found = found.ok_or_else(too_much)?;
            bits.extend(found.iter());
        }
        Ok(bits)
    }
}

/// The values that rows have in some columns.
fn batch_of(
    (columns, places): (&[Column], &[usize]),
    schema: &SchemaRef,
    records: &[Record<'_>],
    host: &mut Host<'_>,
) -> Result<RecordBatch> {
    host.charge(VALUE_PRICE.of(0, records.len() * places.len()));
    let mut values = Vec::with_capacity(places.len());
    for column in places.iter().map(|place| &columns[*place]) {
        values.push(values_of(column.data_type, records.iter().map(|record| record.value(column.at)))?);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(records.len()));
    RecordBatch::try_new_with_options(Arc::clone(schema), values, &options)
        .map_err(|error| Error::corrupt("rows with a null in a column that has none").caused_by(error))
}

fn sink_of(aggregates: &[Asking], groups: &[usize], schema: &SchemaRef) -> Result<Sink> {
    Ok(match groups {
        [] => Sink::Aggregates(Aggregates::of_all(aggregates, schema)?),
        groups => Sink::Groups(Box::new(Groups::new(aggregates, groups, schema)?)),
    })
}
