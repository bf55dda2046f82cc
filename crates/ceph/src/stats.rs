//! What the footer says of each column chunk.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, StringBuilder, UInt32Builder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use marquetry_base::cast::u64_of;
use marquetry_base::{Error, Price, Result};
use marquetry_parquet::format::ColumnChunk;

use crate::answer::Answer;
use crate::cursor::Cursor;
use crate::failure::of_arrow;
use crate::host::Host;
use crate::output::stream_of;
use crate::request::Request;

/// Chunks of an answer, at most; and those that it has whatever they cost, as long as there is room: a call reads the footer first.
const CHUNKS_MAX: usize = 4096;
const CHUNKS_MIN: usize = 128;
/// What a chunk costs, and a byte of its name and bounds.
const CHUNK_UNITS: u64 = 500;
const BYTE_PRICE: Price = Price::per_kib(600);

/// One row for each chunk, from where the cursor says: of its two numbers, the second is that of the chunk in its row group.
pub(crate) fn stats(host: &mut Host<'_>, request: &Request<'_>) -> Result<Answer> {
    let (metadata, mark) = host.footer()?;
    let (groups, leaves) = (metadata.row_groups.len(), metadata.schema.leaves().len());
    let (mut row_group, mut leaf) = (0, 0);
    if let Some(cursor) = request.cursor {
        cursor.check(mark)?;
        row_group = usize::try_from(cursor.row_group).unwrap_or(usize::MAX);
        leaf = usize::try_from(cursor.row).unwrap_or(usize::MAX);
    }
    if row_group > groups || leaf > 0 && (row_group == groups || leaf >= leaves) {
        return Err(Error::misuse("a cursor to rows that the object does not have"));
    }
    let mut table = Table::default();
    while let Some(group) = metadata.row_groups.get(row_group) {
        let Some(chunk) = group.columns.get(leaf).filter(|_| leaf < leaves) else {
            (row_group, leaf) = (row_group + 1, 0);
            continue;
        };
        let is_spent = table.chunks >= CHUNKS_MIN && host.left() == 0;
        let is_full = table.chunks > 0 && table.bytes >= host.share().answer_bytes;
        if table.chunks >= CHUNKS_MAX || is_spent || is_full {
            break;
        }
        // Names of a path are repeated by each leaf below them, so of these there is one at a time.
        let path = metadata.schema.leaf_path(leaf);
        let bytes = table.push(row_group, &path, group.rows, chunk);
        host.charge(CHUNK_UNITS + BYTE_PRICE.of(bytes, 0));
        leaf += 1;
    }
    let cursor = (row_group < groups).then(|| Cursor {
        row_group: u32::try_from(row_group).unwrap_or(u32::MAX),
        row: u64_of(leaf),
        mark,
    });
    let batch = table.finish()?;
    let rows = u64_of(batch.num_rows());
    Ok(Answer { data: Some(stream_of(&batch)?), cursor, rows, ..Answer::default() })
}

#[derive(Default)]
struct Table {
    chunks: usize,
    /// Of names and bounds.
    bytes: usize,
    row_group: UInt32Builder,
    path: StringBuilder,
    rows: UInt64Builder,
    values: UInt64Builder,
    nulls: UInt64Builder,
    compressed: UInt64Builder,
    uncompressed: UInt64Builder,
    min: BinaryBuilder,
    max: BinaryBuilder,
}

impl Table {
    /// Adds a chunk: how many bytes its name and bounds have.
    fn push(&mut self, row_group: usize, path: &str, rows: u64, chunk: &ColumnChunk) -> usize {
        let statistics = chunk.statistics.as_deref();
        let min = statistics.and_then(|known| known.min_value.as_ref());
        let max = statistics.and_then(|known| known.max_value.as_ref());
        self.row_group.append_value(u32::try_from(row_group).unwrap_or(u32::MAX));
        self.path.append_value(path);
        self.rows.append_value(rows);
        self.values.append_value(chunk.values);
        self.compressed.append_value(chunk.compressed_bytes);
        self.uncompressed.append_value(chunk.uncompressed_bytes);
        self.nulls.append_option(statistics.and_then(|known| known.null_count));
        let bytes = path.len() + [min, max].into_iter().flatten().map(|bound| bound.len()).sum::<usize>();
        self.min.append_option(min);
        self.max.append_option(max);
        self.chunks += 1;
        self.bytes += bytes;
        bytes
    }

    fn finish(mut self) -> Result<RecordBatch> {
        let number = |name: &str| Field::new(name, DataType::UInt64, false);
        let bound = |name: &str| Field::new(name, DataType::Binary, true);
        let fields = vec![
            Field::new("row_group", DataType::UInt32, false),
            Field::new("column", DataType::Utf8, false),
            number("rows"),
            number("values"),
            Field::new("nulls", DataType::UInt64, true),
            number("compressed_bytes"),
            number("uncompressed_bytes"),
            bound("min"),
            bound("max"),
        ];
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.row_group.finish()),
            Arc::new(self.path.finish()),
            Arc::new(self.rows.finish()),
            Arc::new(self.values.finish()),
            Arc::new(self.nulls.finish()),
            Arc::new(self.compressed.finish()),
            Arc::new(self.uncompressed.finish()),
            Arc::new(self.min.finish()),
            Arc::new(self.max.finish()),
        ];
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(of_arrow)
    }
}
