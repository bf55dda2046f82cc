//! What a column holds, as a sum over all its rows that other readers' values can be brought to as well.
//!
//! A row adds a byte 0 if it is null, else a byte 1, the value's length (`u32`, little-endian) and the value's bytes as PLAIN
//! holds them. `expect.py` does the same with what pyarrow reads.

use std::sync::Arc;

use marquetry_base::{Bytes, Error, Limits, Machine, Object, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_parquet::batch::{Batch, ColumnBatch, Layout, Values};
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::read::{BatchReader, ChunkIndex, FooterReader, PageIndexReader, ReadOptions};
use marquetry_parquet::schema::{Leaf, LogicalType, PhysicalType, Schema};

use crate::hostile::{self, Manner, Report};

/// The object that a file is.
pub const FILE: Object = Object(0);

/// The sum of one column.
#[derive(Debug, Clone)]
pub struct Sum {
    /// The leaf's index.
    pub leaf: usize,
    /// Its path.
    pub path: String,
    /// Rows.
    pub rows: u64,
    /// Nulls.
    pub nulls: u64,
    /// The CRC-32 of all rows.
    pub crc32: u32,
    /// The first rows' bytes.
    pub head: Vec<Option<Vec<u8>>>,
    form: Form,
    hasher: crc32fast::Hasher,
}

/// Rows whose bytes a [`Sum`] keeps, and how many bytes of each.
const HEAD_ROWS: usize = 20;

/// How values are brought to one form where a logical reading cannot tell several apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// As they are.
    Plain,
    /// Decimals of BYTE_ARRAY: their shortest form.
    ShortestDecimal,
    /// INT96: nanoseconds within their day.
    NanosWithinDay,
}

impl Form {
    /// The form of a leaf's values.
    pub(crate) fn of(leaf: &Leaf, logical_type: Option<&LogicalType>) -> Form {
        match (leaf.physical_type, logical_type) {
            (PhysicalType::ByteArray, Some(LogicalType::Decimal { .. })) => Form::ShortestDecimal,
            (PhysicalType::Int96, _) => Form::NanosWithinDay,
            _ => Form::Plain,
        }
    }

    /// A value in this form.
    pub(crate) fn bring(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Form::Plain => bytes.to_vec(),
            Form::ShortestDecimal => shortest(bytes).to_vec(),
            Form::NanosWithinDay => within_day(bytes),
        }
    }
}

impl Sum {
    /// The sum of no rows of a leaf.
    pub fn new(schema: &Schema, number: usize, logical_type: Option<&LogicalType>) -> Sum {
        let leaf = &schema.leaves()[number];
        Sum {
            leaf: number,
            path: schema.leaf_path(number),
            rows: 0,
            nulls: 0,
            crc32: 0,
            head: Vec::new(),
            form: Form::of(leaf, logical_type),
            hasher: crc32fast::Hasher::new(),
        }
    }

    /// Adds a part of the column.
    ///
    /// # Panics
    ///
    /// When the batch contradicts itself.
    pub fn add(&mut self, column: &ColumnBatch) {
        let mut dense = 0;
        let mut nulls = 0;
        for row in 0..column.rows {
            let index = if column.layout == Layout::Dense { dense } else { row };
            if column.is_null(row) {
                nulls += 1;
                self.add_row(None);
            } else {
                dense += 1;
                with_bytes(&column.values, index, |bytes| self.add_row(Some(bytes)));
            }
        }
        assert_eq!(nulls, column.nulls, "{}: nulls", self.path);
        let values = if column.layout == Layout::Dense { dense } else { column.rows };
        assert_eq!(column.values.len(), values, "{}: values", self.path);
    }

    /// Adds a row: null, or a value as PLAIN holds it.
    pub fn add_row(&mut self, value: Option<&[u8]>) {
        let value = value.map(|bytes| self.form.bring(bytes));
        self.rows += 1;
        match &value {
            Some(bytes) => {
                self.hasher.update(&[1]);
                self.hasher.update(&u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
                self.hasher.update(bytes);
            }
            None => {
                self.nulls += 1;
                self.hasher.update(&[0]);
            }
        }
        if self.head.len() < HEAD_ROWS {
            self.head.push(value);
        }
    }

    /// The sum of all that was added.
    #[must_use]
    pub fn finish(mut self) -> Sum {
        self.crc32 = self.hasher.clone().finalize();
        self
    }
}

/// Hands out a value's bytes as PLAIN holds them; a boolean is one byte.
pub fn with_bytes(values: &Values, index: usize, mut take: impl FnMut(&[u8])) {
    match values {
        Values::Boolean(bits) => take(&[u8::from(bits.get(index))]),
        Values::Int32(values) => take(&values[index].to_le_bytes()),
        Values::Int64(values) => take(&values[index].to_le_bytes()),
        Values::Float(values) => take(&values[index].to_le_bytes()),
        Values::Double(values) => take(&values[index].to_le_bytes()),
        Values::ByteArray(values) => take(values.get(index)),
        Values::Int96(values) | Values::FixedLenByteArray(values) => take(values.get(index)),
        Values::Dictionary(indices, values) => with_bytes(values, indices[index] as usize, take),
    }
}

/// The shortest two's-complement form of a big-endian number.
fn shortest(mut bytes: &[u8]) -> &[u8] {
    while let [first, second, ..] = bytes {
        let is_padding = (*first == 0 && *second < 0x80) || (*first == 0xff && *second >= 0x80);
        if !is_padding {
            break;
        }
        bytes = &bytes[1..];
    }
    if bytes.is_empty() { &[0] } else { bytes }
}

fn within_day(bytes: &[u8]) -> Vec<u8> {
    const DAY_NANOS: u64 = 86_400_000_000_000;
    let nanos = u64::from_le_bytes(bytes[..8].try_into().unwrap_or_default());
    let day = u32::from_le_bytes(bytes[8..].try_into().unwrap_or_default());
    let days = u32::try_from(nanos / DAY_NANOS).unwrap_or(u32::MAX);
    let mut normal = (nanos % DAY_NANOS).to_le_bytes().to_vec();
    normal.extend(day.wrapping_add(days).to_le_bytes());
    normal
}

/// Reads a file's footer.
///
/// # Errors
///
/// The machine's.
pub fn metadata(bytes: &Bytes, manner: Manner) -> Result<Arc<FileMetaData>> {
    let mut footer = FooterReader::new(FILE, Limits::DEFAULT);
    let mut metadata = None;
    hostile::run(&mut footer, FILE, bytes, manner, |found| {
        metadata = Some(found);
        Ok(())
    })?;
    metadata.ok_or_else(|| Error::internal("a footer without metadata"))
}

/// The page index of all column chunks that have one.
///
/// # Errors
///
/// The machine's.
pub fn indexes(bytes: &Bytes, metadata: &Arc<FileMetaData>) -> Result<Vec<ChunkIndex>> {
    let mut reader = PageIndexReader::new(FILE, Arc::clone(metadata), &ReadOptions::default())?;
    let mut all = Vec::new();
    hostile::run(&mut reader, FILE, bytes, Manner::KIND, |index| {
        all.push(index);
        Ok(())
    })?;
    Ok(all)
}

/// Reads flat columns, each row of them; says their sums.
///
/// # Errors
///
/// The machine's.
pub fn sums(
    bytes: &Bytes,
    metadata: &Arc<FileMetaData>,
    options: ReadOptions,
    manner: Manner,
) -> Result<(Vec<Sum>, Report)> {
    let leaves = options.leaves.clone().unwrap_or_else(|| (0..metadata.schema.leaves().len()).collect());
    let mut sums: Vec<Sum> = leaves
        .iter()
        .map(|&number| {
            let leaf = &metadata.schema.leaves()[number];
            Sum::new(&metadata.schema, number, metadata.schema.node_of(leaf).logical_type.as_ref())
        })
        .collect();
    let codecs = Arc::new(StandardCodecs::default());
    let mut reader = BatchReader::new(FILE, Arc::clone(metadata), codecs, options.clone())?;
    let mut next_row = 0;
    let report = read(&mut reader, bytes, manner, |batch| {
        assert_eq!(batch.first_row, next_row, "a batch that does not follow the one before");
        assert!(batch.rows > 0 && batch.rows <= options.batch_rows);
        next_row += batch.rows as u64;
        for (sum, column) in sums.iter_mut().zip(&batch.columns) {
            assert_eq!((column.leaf, column.rows), (sum.leaf, batch.rows));
            sum.add(column);
        }
    })?;
    assert_eq!(next_row, metadata.rows);
    Ok((sums.into_iter().map(Sum::finish).collect(), report))
}

/// Drives a reader of batches to its end.
///
/// # Errors
///
/// The machine's.
pub fn read<M: Machine<Product = Batch>>(
    reader: &mut M,
    bytes: &Bytes,
    manner: Manner,
    mut take: impl FnMut(Batch),
) -> Result<Report> {
    hostile::run(reader, FILE, bytes, manner, |batch| {
        take(batch);
        Ok(())
    })
}
