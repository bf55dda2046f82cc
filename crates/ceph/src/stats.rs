//! What the footer says of each column chunk.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, StringBuilder, UInt32Builder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use marquetry_base::cast::u64_of;
use marquetry_base::{Error, Result};

use crate::answer::Answer;
use crate::cursor::Cursor;
use crate::failure::of_arrow;
use crate::host::Host;
use crate::output::stream_of;
use crate::request::Request;

/// Chunks of an answer, at most, unless a single row group has more.
const CHUNKS_MAX: usize = 4096;
/// What a chunk costs.
const CHUNK_UNITS: u64 = 500;

/// One row for each chunk: row groups from the cursor's on.
pub(crate) fn stats(host: &mut Host<'_>, request: &Request<'_>) -> Result<Answer> {
    let (metadata, mark) = host.footer()?;
    let mut row_group = 0;
    if let Some(cursor) = request.cursor {
        cursor.check(mark)?;
        row_group = usize::try_from(cursor.row_group).unwrap_or(usize::MAX);
    }
    if row_group > metadata.row_groups.len() {
        return Err(Error::misuse("a cursor to rows that the object does not have"));
    }
    let leaves = metadata.schema.leaves().len();
    let paths: Vec<String> = (0..leaves).map(|leaf| metadata.schema.leaf_path(leaf)).collect();
    let mut table = Table::default();
    for group in metadata.row_groups.iter_from(row_group) {
        if table.chunks > 0 && (table.chunks + leaves > CHUNKS_MAX || host.left() == 0) {
            break;
        }
        for (path, chunk) in paths.iter().zip(group.columns.iter()) {
            host.charge(CHUNK_UNITS);
            table.chunks += 1;
            table.row_group.append_value(u32::try_from(row_group).unwrap_or(u32::MAX));
            table.path.append_value(path);
            table.rows.append_value(group.rows);
            table.values.append_value(chunk.values);
            table.compressed.append_value(chunk.compressed_bytes);
            table.uncompressed.append_value(chunk.uncompressed_bytes);
            let statistics = chunk.statistics.as_deref();
            table.nulls.append_option(statistics.and_then(|known| known.null_count));
            table.min.append_option(statistics.and_then(|known| known.min_value.as_ref()));
            table.max.append_option(statistics.and_then(|known| known.max_value.as_ref()));
        }
        row_group += 1;
    }
    let cursor = (row_group < metadata.row_groups.len()).then(|| Cursor {
        row_group: u32::try_from(row_group).unwrap_or(u32::MAX),
        row: 0,
        mark,
    });
    let batch = table.finish()?;
    let rows = u64_of(batch.num_rows());
    Ok(Answer { data: Some(stream_of(&batch)?), cursor, rows, ..Answer::default() })
}

#[derive(Default)]
struct Table {
    chunks: usize,
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
