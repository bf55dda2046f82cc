//! Rows as Arrow's record batches.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use marquetry_arrow::{ArrowOptions, FromArrow, StringLayout, ToArrow};
use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Error, Failed, Result};
use marquetry_parquet::batch::{Batch, Values};
use marquetry_parquet::read::ReadOptions;
use marquetry_parquet::schema::{Leaf, Schema};
use marquetry_tables::parquet::ParquetOptions;
use marquetry_tables::{
    Batches as PieceBatches, Cancel, Destination, Piece, PieceOptions, Source, Table, spaced,
};

use crate::{Batches, Reader, Writer};

impl Reader {
    /// What the rows are as Arrow's record batches, without reading any: the schema of [`record_batches`](Reader::record_batches).
    ///
    /// # Errors
    ///
    /// As [`ToArrow::new`].
    pub fn arrow_schema(&self) -> Result<SchemaRef> {
        self.to_arrow().map(|to_arrow| Arc::clone(to_arrow.schema()))
    }

    fn to_arrow(&self) -> Result<ToArrow> {
        let table = self.table();
        let (schema, options) = (&table.schema, ArrowOptions::default());
        let to_arrow = match table.key_values_of_all_columns() {
            [] => ToArrow::of_table(schema, &table.key_values, None, options)?,
            of_all => ToArrow::of_part(schema, &table.key_values, of_all, options)?,
        };
        Ok(match self.strings {
            Some(layout) => to_arrow.with_strings(layout),
            None => to_arrow,
        })
    }

    /// Lays out strings, and bytes of any length, in this way in record batches: as [`ToArrow::with_strings`].
    #[must_use]
    pub fn strings(mut self, layout: StringLayout) -> Reader {
        self.strings = Some(layout);
        self
    }

    /// The rows as Arrow's record batches, without a copy where the layouts agree. Types are the writer's, if it
    /// stored an Arrow schema and columns have the names and types that it knows.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// for batch in marquetry::open("trips.parquet")?.columns(["id", "fare"])?.record_batches()? {
    ///     println!("{:?}", batch?);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`ToArrow::new`] and [`Reader::batches`].
    pub fn record_batches(&self) -> Result<RecordBatches> {
        let to_arrow = self.to_arrow()?;
        Ok(RecordBatches {
            batches: self.batches()?,
            is_copied: is_copied(to_arrow.schema()),
            to_arrow,
            rest: None,
        })
    }

    /// The rows of any reader of record batches, such as one of DataFusion, DuckDB or pyarrow, which can be read once.
    /// They are read by one thread, a record batch at a time. `name` is what errors call them.
    ///
    /// ```no_run
    /// use arrow_array::RecordBatchReader;
    /// use marquetry::Reader;
    /// use marquetry::tables::{CopyOptions, copy};
    ///
    /// # fn example(result: impl RecordBatchReader + Send + 'static) -> marquetry::Result<()> {
    /// let trips = Reader::of_record_batches("a query's result", result)?;
    /// let mut file = marquetry::destination("trips.parquet")?;
    /// copy(trips.source(), file.as_mut(), &CopyOptions::default(), &mut |_| {})?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`FromArrow::new`]: `Unsupported` for types that Parquet lacks.
    pub fn of_record_batches(
        name: impl Into<String>,
        reader: impl RecordBatchReader + Send + 'static,
    ) -> Result<Reader> {
        let name = name.into();
        let from_arrow = FromArrow::new(&reader.schema())
            .map_err(|error| error.at(|place| place.object = Some(name.clone())))?;
        let mut table = Table::new(name.clone(), Arc::clone(from_arrow.schema()));
        table.key_values = vec![from_arrow.key_value()];
        table.note_durations();
        let reader: Box<dyn RecordBatchReader + Send> = Box::new(reader);
        let rest = Mutex::new(Some((reader, from_arrow)));
        Ok(Reader::of(Incoming { table, pieces: [Piece::of(name)], rest }))
    }
}

/// Record batches as a source, until they are opened.
struct Incoming {
    table: Table,
    pieces: [Piece; 1],
    rest: Mutex<Option<(Box<dyn RecordBatchReader + Send>, FromArrow)>>,
}

impl Source for Incoming {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn open(&self, _: usize, options: &PieceOptions) -> Result<Box<dyn PieceBatches>> {
        let taken = self.rest.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (reader, from_arrow) =
            taken.ok_or_else(|| Error::misuse("a reader of record batches can be read once"))?;
        let row_bytes = u64_of(self.table.schema.leaves().len().max(1)).saturating_mul(VALUE_BYTES);
        let of_bytes = options.batch_bytes.and_then(|bytes| usize_of(bytes / row_bytes));
        let rows = options.batch_rows.unwrap_or(BATCH_ROWS).min(of_bytes.unwrap_or(BATCH_ROWS));
        let rows = rows.clamp(1, BATCH_ROWS);
        Ok(Box::new(IncomingRows { reader, from_arrow, open: None, rows, cancel: options.cancel.clone() }))
    }
}

/// The most rows of a record batch that are converted at a time.
const BATCH_ROWS: usize = 8192;
/// Bytes of a value in a batch, at most: those of a view. What views point into is the record batch's.
const VALUE_BYTES: u64 = 16;

struct IncomingRows {
    reader: Box<dyn RecordBatchReader + Send>,
    from_arrow: FromArrow,
    /// The record batch at hand, and how many of its rows were taken.
    open: Option<(RecordBatch, usize)>,
    rows: usize,
    cancel: Cancel,
}

impl PieceBatches for IncomingRows {
    fn next(&mut self) -> Result<Option<Batch>> {
        loop {
            if let Some((batch, taken)) = &mut self.open
                && *taken < batch.num_rows()
            {
                let part = batch.slice(*taken, self.rows.min(batch.num_rows() - *taken));
                *taken += part.num_rows();
                let batch = self.from_arrow.batches(&part).next().transpose()?;
                // As batches of all sources: filters, sorters and CQL count on slots for nulls.
                return Ok(batch.map(spaced));
            }
            self.cancel.check()?;
            self.open = match self.reader.next() {
                Some(read) => Some((read.map_err(of_arrow)?, 0)),
                None => return Ok(None),
            };
        }
    }
}

/// The error of a reader of record batches: ours, if it comes from here.
fn of_arrow(error: ArrowError) -> Error {
    if let ArrowError::ExternalError(inner) = &error
        && let Some(ours) = inner.downcast_ref::<Error>()
    {
        return ours.clone();
    }
    Error::io(format!("the record batches cannot be read: {error}")).caused_by(error)
}

/// The rows of a table as record batches: see [`Reader::record_batches`]. Errors are
/// [`ArrowError::ExternalError`] around ours.
///
/// ```no_run
/// use arrow_array::RecordBatchReader;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let batches = marquetry::open("trips.parquet")?.record_batches()?;
/// // Whatever takes a `RecordBatchReader` takes this: DataFusion, DuckDB, lance.
/// println!("{}", batches.schema());
/// # Ok(())
/// # }
/// ```
pub struct RecordBatches {
    batches: Batches,
    to_arrow: ToArrow,
    /// Whether a record batch may have many times the bytes of its batch.
    is_copied: bool,
    /// A batch of which not all rows are handed out, and the first of those.
    rest: Option<(Batch, usize)>,
}

/// Whether arrays of a schema are put together of values that batches share, or do not have: strings with offsets, of a dictionary's, and lists of a fixed
/// length, of which nulls have all places.
fn is_copied(schema: &arrow_schema::Schema) -> bool {
    fn is(data_type: &DataType) -> bool {
        match data_type {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => true,
            DataType::FixedSizeList(..) => true,
            DataType::List(field) | DataType::LargeList(field) | DataType::Map(field, _) => {
                is(field.data_type())
            }
            DataType::Struct(fields) => fields.iter().any(|field| is(field.data_type())),
            _ => false,
        }
    }
    schema.fields().iter().any(|field| is(field.data_type()))
}

/// Bytes of text that a record batch has which are copied, about: many values may share those of a dictionary's entry.
const COPIED_BYTES_MAX: u64 = 64 << 20;

/// Bytes of all byte arrays of a batch, each counted as often as it is there.
fn text_bytes(batch: &Batch) -> u64 {
    let of = |values: &Values| match values {
        Values::ByteArray(texts) => texts.lengths().map(u64::from).sum(),
        _ => 0,
    };
    batch.columns.iter().map(|column| of(&column.values)).sum()
}

impl RecordBatches {
    /// Gives the types that a schema asks for, as far as they are other layouts of the same values: as [`ToArrow::request`]. The next record batch
    /// is the first that has them.
    ///
    /// # Errors
    ///
    /// Those of [`ToArrow::request`]; then nothing is changed.
    pub fn request(&mut self, requested: &arrow_schema::Schema) -> Result<()> {
        self.to_arrow.request(requested)?;
        self.is_copied = is_copied(self.to_arrow.schema());
        Ok(())
    }

    /// The next rows, as many as become one record batch: of those that are [copied](is_copied), no more than a reader gives who is not asked for larger
    /// ones, and no more than have [`COPIED_BYTES_MAX`] of text, but at least one.
    fn next_batch(&mut self) -> Option<Result<Batch>> {
        let (batch, first) = match self.rest.take() {
            Some(rest) => rest,
            None => match self.batches.next()? {
                Ok(batch) => (batch, 0),
                Err(error) => return Some(Err(error)),
            },
        };
        let (all, most) = (batch.rows - first, ReadOptions::default().batch_rows);
        if first == 0 && (!self.is_copied || all <= most && text_bytes(&batch) <= COPIED_BYTES_MAX) {
            return Some(Ok(batch));
        }
        let mut rows = if self.is_copied { all.min(most) } else { all };
        let mut part = batch.slice(first..first + rows);
        while self.is_copied && rows > 1 && text_bytes(&part) > COPIED_BYTES_MAX {
            rows = rows.div_ceil(2);
            part = part.slice(0..rows);
        }
        if rows < all {
            self.rest = Some((batch, first + rows));
        }
        Some(Ok(part))
    }

    /// Makes record batches for Arrow's C interfaces, to be handed over with the schema of these: as [`ToArrow::with_text_as_bytes`].
    #[must_use]
    pub fn with_text_as_bytes(self) -> RecordBatches {
        RecordBatches { to_arrow: self.to_arrow.with_text_as_bytes(), ..self }
    }
}

impl Iterator for RecordBatches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Result<RecordBatch, ArrowError>> {
        let batch = self.next_batch()?.and_then(|batch| self.to_arrow.record_batch(&batch));
        if batch.is_err() {
            self.batches.end();
            self.rest = None;
        }
        Some(batch.map_err(|error| ArrowError::ExternalError(Box::new(error))))
    }
}

impl RecordBatchReader for RecordBatches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.to_arrow.schema())
    }
}

/// Creates a Parquet file for record batches of this schema, which is stored in the file, so that Arrow's readers
/// restore the types.
///
/// ```no_run
/// # fn example(batches: Vec<arrow_array::RecordBatch>) -> marquetry::Result<()> {
/// let mut writer = marquetry::create_arrow("trips.parquet", &batches[0].schema())?;
/// for batch in &batches {
///     writer.write_arrow(batch)?;
/// }
/// writer.finish()?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// As [`create`](crate::create); `Unsupported` for types that Parquet lacks.
pub fn create_arrow(path: impl AsRef<Path>, schema: &arrow_schema::Schema) -> Result<Writer> {
    let from_arrow = FromArrow::new(schema)?;
    let mut options = ParquetOptions::default();
    options.write.key_values.push(from_arrow.key_value());
    let mut writer = Writer::with(path, from_arrow.schema().as_ref().clone(), options)?;
    writer.from_arrow = Some(from_arrow);
    Ok(writer)
}

impl Writer {
    /// Writes the rows of a record batch, which must have the schema that the file was created with, by
    /// [`create_arrow`] or [`create`](crate::create).
    ///
    /// # Errors
    ///
    /// As [`Writer::write`]; `Conversion` for values that Parquet cannot hold.
    pub fn write_arrow(&mut self, batch: &RecordBatch) -> Result<()> {
        Failed::run(
            self,
            |writer| &mut writer.failed,
            |writer| {
                let mut from_arrow = match writer.from_arrow.take() {
                    Some(from_arrow) => from_arrow,
                    None => writer.checked(FromArrow::new(&batch.schema())?)?,
                };
                let written = from_arrow.batches(batch).try_for_each(|batch| writer.file.write(batch?));
                writer.from_arrow = Some(from_arrow);
                written
            },
        )
    }

    /// Record batches whose columns are those of the file: by order, name, and what their values are and mean.
    fn checked(&self, from_arrow: FromArrow) -> Result<FromArrow> {
        let (file, batches) = (self.schema(), from_arrow.schema());
        let wrong =
            |name: &str, why: String| Error::misuse(why).at(|place| place.column = Some(name.to_string()));
        for (wanted, found) in file.leaves().iter().zip(batches.leaves()) {
            let types = |schema: &Schema, leaf: &Leaf| {
                let node = schema.node_of(leaf);
                (leaf.physical_type, node.logical_type.clone(), leaf.definition_max, leaf.repetition_max)
            };
            let (path, found_path) = (file.path(wanted.node), batches.path(found.node));
            if path != found_path {
                return Err(wrong(&path, format!("the record batch has the column {found_path} here")));
            }
            if types(file, wanted) != types(batches, found) {
                return Err(wrong(&path, "the record batch has another type here than the file".to_string()));
            }
        }
        match (file.leaves().len(), batches.leaves().len()) {
            (wanted, found) if wanted == found => Ok(from_arrow),
            (wanted, found) => {
                Err(Error::misuse(format!("a record batch of {found} leaf columns, in a file of {wanted}")))
            }
        }
    }
}
