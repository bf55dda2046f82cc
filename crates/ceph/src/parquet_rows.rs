//! Rows as a Parquet file: the object's own types, which Arrow's are not always, and compressed.

use std::sync::Arc;

use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::{Budget, Codec, Error, Machine, Object, Price, Result, Step};
use marquetry_parquet::batch::{Batch, Values};
use marquetry_parquet::format::{ColumnChunk, Compression, Encoding, FileMetaData};
use marquetry_parquet::schema::{PhysicalType, Plan as _, Projection, Schema};
use marquetry_parquet::write::{ColumnOptions, Fed, FileWriter, Room, WriteOptions};

use crate::host::{Host, LIMITS, price_of};

/// The file that is written: nobody reads another object beside it.
const FILE: Object = Object(1);

/// Bytes, before compression, of the pages and dictionaries that a call decompresses to come to a row of all columns of a file that is kept: by the
/// price of ZSTD a fifth of a call's share. `copy` to `rados://` writes as many (`BEGUN_BYTES_MAX` of `marquetry-rados`).
const BEGUN_BYTES_MAX: usize = 256 << 10;
/// What it costs to write values, and their bytes, about.
pub(crate) const ROWS_PRICE: Price = Price { kib: 1_500, kilovalue: 12 << 10 };
/// What it costs to end a file, about: of the bytes of its values, which are compressed then, and of its columns.
const END_PRICE: Price = Price { kib: 500, kilovalue: 10_000 << 10 };
/// Aggregates of so many groups are not compressed: to begin a codec for each column costs more.
const FEW_GROUPS: usize = 64;
/// The widest values, in bytes, that are split into streams of their bytes as the object has them.
const SPLIT_BYTES_MAX: u32 = 1024;

/// Rows of an answer that are being written.
pub(crate) struct ParquetRows {
    writer: FileWriter,
    columns: usize,
    /// Nobody reads it once only: it is compressed better than [`END_PRICE`] has it, and a call may take longer for it.
    is_kept: bool,
    file: Vec<u8>,
    rows: u64,
    wanted: u64,
    /// Bytes of the values that were taken, before they are encoded: what is held is bounded by them.
    bytes: usize,
    bytes_max: usize,
}

impl ParquetRows {
    /// Of these leaves of an object, which ascend; `None`: of all. Their values are encoded as the object has them: to choose by values costs more
    /// than to encode some thousand rows, and is not paid before the file ends.
    pub(crate) fn new(
        metadata: &FileMetaData,
        leaves: Option<&[usize]>,
        (limit, bytes_max): (Option<u64>, usize),
        is_kept: bool,
    ) -> Result<ParquetRows> {
        let schema = schema_of(&metadata.schema, leaves)?;
        let mut options = options_of(is_kept);
        if let Some(group) = metadata.row_groups.first() {
            for (at, leaf) in schema.leaves().iter().enumerate() {
                let of_object = leaves.and_then(|leaves| leaves.get(at).copied()).unwrap_or(at);
                let Some(chunk) = group.columns.get(of_object) else { continue };
                let (encoding, fallback) = encodings_of(chunk, leaf.physical_type);
                let encoding = Some(encoding);
                options.columns.insert(at, ColumnOptions { encoding, fallback, ..options.column.clone() });
            }
        }
        let rows = ParquetRows::by(schema, bytes_max, options, is_kept)?;
        Ok(ParquetRows { wanted: limit.unwrap_or(u64::MAX), ..rows })
    }

    /// Of these columns. A file that is kept has what it is searched by, and is compressed better.
    pub(crate) fn of_schema(schema: Arc<Schema>, bytes_max: usize, is_kept: bool) -> Result<ParquetRows> {
        ParquetRows::by(schema, bytes_max, options_of(is_kept), is_kept)
    }

    /// Of aggregates, of so many groups: nothing is chosen by their values.
    pub(crate) fn of_aggregates(schema: Arc<Schema>, groups: usize) -> Result<ParquetRows> {
        let mut options = options_of(false);
        options.column.encoding = Some(Encoding::Plain);
        if groups <= FEW_GROUPS {
            options.column.compression = Compression::Uncompressed;
        }
        ParquetRows::by(schema, usize::MAX, options, false)
    }

    fn by(
        schema: Arc<Schema>,
        bytes_max: usize,
        options: WriteOptions,
        is_kept: bool,
    ) -> Result<ParquetRows> {
        let columns = schema.leaves().len();
        let writer = FileWriter::new(FILE, schema, Host::codecs(), options)?;
        let file = Vec::new();
        Ok(ParquetRows { writer, columns, is_kept, file, rows: 0, wanted: u64::MAX, bytes: 0, bytes_max })
    }

    /// Units, about, that it takes to end the file: pages are compressed then, and the footer is written.
    pub(crate) fn owed(&self) -> u64 {
        if self.is_kept { 0 } else { price_of(END_PRICE, u64_of(self.bytes), u64_of(self.columns)) }
    }

    /// Whether no rows were taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Bytes of values that there is room for.
    pub(crate) fn room(&self) -> u64 {
        u64_of(self.bytes_max.saturating_sub(self.bytes))
    }

    pub(crate) fn wanted(&self) -> u64 {
        self.wanted
    }

    pub(crate) fn is_full(&self) -> bool {
        self.rows > 0 && self.bytes >= self.bytes_max
    }

    /// Takes rows of a batch, whose values have so many bytes, from its first on: how many, at least one.
    pub(crate) fn take(&mut self, batch: &Batch, bytes: usize, host: &mut Host<'_>) -> Result<usize> {
        let most = usize::try_from(self.wanted).unwrap_or(usize::MAX).min(batch.rows);
        let room = self.bytes_max.saturating_sub(self.bytes);
        let some = match bytes <= room || batch.rows <= 1 {
            true => most,
            false => {
                let fitting = u128::from(u64_of(batch.rows)) * u128::from(u64_of(room))
                    / u128::from(u64_of(bytes.max(1)));
                usize::try_from(fitting).unwrap_or(most).clamp(1, most.max(1))
            }
        };
        let mut next = batch.slice(0..some.min(batch.rows));
        self.bytes += if some < batch.rows { batch_bytes(&next) } else { bytes };
        loop {
            match self.writer.feed(next)? {
                Fed::Taken => break,
                Fed::Full(again) => next = again,
            }
            self.drive(host)?;
        }
        self.drive(host)?;
        self.rows += u64_of(some);
        self.wanted = self.wanted.saturating_sub(u64_of(some));
        Ok(some)
    }

    /// Works until there is room for a batch, or the file ends.
    fn drive(&mut self, host: &mut Host<'_>) -> Result<()> {
        loop {
            let mut budget = Budget::new(Budget::DEFAULT_UNITS);
            let step = self.writer.step(&mut budget);
            host.charge(budget.spent());
            match step? {
                Step::Ready(Room) | Step::Done => return Ok(()),
                Step::Append(_, bytes) => self.file.extend_from_slice(&bytes),
                Step::Yield => {}
                Step::Need(_) => return Err(Error::internal("a writer that reads")),
            }
        }
    }

    /// The file, and the rows in it.
    pub(crate) fn finish(mut self, host: &mut Host<'_>) -> Result<(Vec<u8>, u64)> {
        self.writer.finish();
        self.drive(host)?;
        Ok((self.file, self.rows))
    }
}

/// How a file is written that is kept, or read once.
fn options_of(is_kept: bool) -> WriteOptions {
    let mut options = WriteOptions::default();
    if is_kept {
        options.column.compression = Compression::Codec(Codec::Zstd);
        options.begun_bytes_max = BEGUN_BYTES_MAX;
    } else {
        // The cheapest codec that is worth its time. A file of one call needs nothing to search it by.
        options.column.compression = Compression::Codec(Codec::Lz4Raw);
        (options.column.bounds, options.page_index) = (false, false);
    }
    options.limits = LIMITS;
    options
}

/// The encoding of a chunk's values, and the one of those that do not fit a dictionary.
fn encodings_of(chunk: &ColumnChunk, physical_type: PhysicalType) -> (Encoding, Option<Encoding>) {
    use PhysicalType::{Boolean, ByteArray, Double, FixedLenByteArray, Float, Int32, Int64};
    let suits = |encoding: &Encoding| match encoding {
        Encoding::DeltaBinaryPacked => matches!(physical_type, Int32 | Int64),
        Encoding::ByteStreamSplit => match physical_type {
            Int32 | Int64 | Float | Double => true,
            FixedLenByteArray(width) => width <= SPLIT_BYTES_MAX,
            _ => false,
        },
        Encoding::DeltaLengthByteArray => physical_type == ByteArray,
        Encoding::DeltaByteArray => matches!(physical_type, ByteArray | FixedLenByteArray(_)),
        _ => false,
    };
    let other = chunk.encodings.iter().copied().find(suits).unwrap_or(Encoding::Plain);
    let is_dictionary =
        |encoding: &Encoding| matches!(encoding, Encoding::RleDictionary | Encoding::PlainDictionary);
    let has_dictionary = physical_type != Boolean && chunk.encodings.iter().any(is_dictionary);
    // Of numbers, a dictionary that makes them less than two times smaller is nearly as long as the values of a few thousand rows.
    let width = physical_type.width().and_then(|width| u64::try_from(width).ok());
    let is_small =
        width.is_none_or(|width| chunk.uncompressed_bytes <= chunk.values.saturating_mul(width) / 2);
    match has_dictionary && is_small {
        true => (Encoding::RleDictionary, Some(other)),
        false => (other, None),
    }
}

/// The schema of some leaves, each of them as it is in the object.
fn schema_of(schema: &Arc<Schema>, leaves: Option<&[usize]>) -> Result<Arc<Schema>> {
    let all = schema.leaves();
    let Some(leaves) = leaves.filter(|leaves| leaves.len() < all.len()) else {
        return Ok(Arc::clone(schema));
    };
    let mut projection = Projection::new(Arc::clone(schema));
    for leaf in leaves {
        let node = all.get(*leaf).map_or(0, |leaf| leaf.node);
        projection
            .add_field(node)
            .map_err(|error| Error::internal(format!("a leaf that cannot be chosen: {error:?}")))?;
    }
    let made = projection.plan().at_once()?;
    let is_same = made.leaves().len() == leaves.len()
        && made.leaves().iter().zip(leaves).all(|(made, leaf)| {
            all.get(*leaf).is_some_and(|leaf| {
                (made.physical_type, made.definition_max, made.repetition_max)
                    == (leaf.physical_type, leaf.definition_max, leaf.repetition_max)
            })
        });
    if !is_same {
        return Err(Error::unsupported("a part of a nested column that is another one without the rest"));
    }
    Ok(Arc::new(made))
}

/// About the bytes of a batch's values, each counted as often as it is there.
pub(crate) fn batch_bytes(batch: &Batch) -> usize {
    batch.columns.iter().map(|column| bytes_of(&column.values)).fold(0, usize::saturating_add)
}

/// About the bytes of values; of a dictionary's, as they are without it.
fn bytes_of(values: &Values) -> usize {
    // What its view says: the text itself need not be looked at.
    let text = |view: &u128| {
        let [a, b, c, d, ..] = view.to_le_bytes();
        u64::from(u32::from_le_bytes([a, b, c, d])) + 4
    };
    let texts = |views: &[u128]| usize::try_from(views.iter().map(text).sum::<u64>()).unwrap_or(usize::MAX);
    match values {
        Values::Boolean(bits) => bits.len() / 8,
        Values::Int32(values) => values.len() * 4,
        Values::Int64(values) => values.len() * 8,
        Values::Float(values) => values.len() * 4,
        Values::Double(values) => values.len() * 8,
        Values::ByteArray(values) => texts(values.views()),
        Values::Int96(values) | Values::FixedLenByteArray(values) => values.len() * values.width(),
        Values::Dictionary(indices, entries) => match &**entries {
            Values::ByteArray(entries) => {
                let views = entries.views();
                let length = |index: &u32| {
                    let bytes = views.get(usize_of_u32(*index)).map_or(4, text);
                    usize::try_from(bytes).unwrap_or(usize::MAX)
                };
                indices.iter().map(length).fold(0, usize::saturating_add)
            }
            entries => (bytes_of(entries) / entries.len().max(1)).saturating_mul(indices.len()),
        },
    }
}
