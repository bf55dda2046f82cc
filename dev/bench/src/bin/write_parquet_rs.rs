//! parquet-rs's writer as a contestant: `bench-write-parquet-rs FILE ENCODING CODEC`.
//!
//! Strings are given as Arrow's `Utf8`, of which it writes faster than of views; statistics are those of column chunks, as everybody's.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use marquetry_bench::protocol::{Count, refuse, serve};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{DEFAULT_CREATED_BY, EnabledStatistics, WriterProperties};

/// The best of 8,192 … 1,048,576 in most cases.
const BATCH_ROWS: usize = 65_536;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, encoding, codec] = &arguments[..] else {
        return refuse("usage: bench-write-parquet-rs FILE ENCODING CODEC");
    };
    let loaded = std::fs::read(path).map_err(|error| format!("{path}: {error}")).and_then(|bytes| {
        let properties = properties(encoding, codec)?;
        let (schema, batches) = load(bytes.into()).map_err(|error| error.to_string())?;
        Ok((properties, schema, batches))
    });
    let (properties, schema, batches) = match loaded {
        Ok(loaded) => loaded,
        Err(message) => return refuse(&message),
    };
    let rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
    // The same memory for each file: what is measured is writing, not how memory grows.
    let mut written = Vec::new();
    serve(DEFAULT_CREATED_BY.trim_start_matches("parquet-rs version "), |check| {
        written.clear();
        write(&schema, &batches, &properties, &mut written).map_err(|error| error.to_string())?;
        if !check {
            return Ok(Count { rows, sum: written.len() as u64 });
        }
        let (_, again) = load(Bytes::copy_from_slice(&written)).map_err(|error| error.to_string())?;
        Ok(Count { rows: again.iter().map(|batch| batch.num_rows() as u64).sum(), sum: 0 })
    })
}

fn load(file: Bytes) -> Result<(SchemaRef, Vec<RecordBatch>), ParquetError> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(file)?;
    let schema = Arc::clone(builder.schema());
    let batches = builder.with_batch_size(BATCH_ROWS).build()?.collect::<Result<_, _>>()?;
    Ok((schema, batches))
}

fn write(
    schema: &SchemaRef,
    batches: &[RecordBatch],
    properties: &WriterProperties,
    written: &mut Vec<u8>,
) -> Result<(), ParquetError> {
    let mut writer = ArrowWriter::try_new(written, Arc::clone(schema), Some(properties.clone()))?;
    for batch in batches {
        writer.write(batch)?;
    }
    writer.close().map(drop)
}

fn properties(encoding: &str, codec: &str) -> Result<WriterProperties, String> {
    let compression = match codec {
        "UNCOMPRESSED" => Compression::UNCOMPRESSED,
        "SNAPPY" => Compression::SNAPPY,
        "ZSTD" => Compression::ZSTD(ZstdLevel::try_new(1).map_err(|error| error.to_string())?),
        other => return Err(format!("no codec is called {other}")),
    };
    let builder = WriterProperties::builder()
        .set_compression(compression)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_max_row_group_row_count(Some(1 << 20))
        .set_offset_index_disabled(true);
    let builder = match encoding {
        "default" | "RLE_DICTIONARY" => builder,
        other => {
            let encoding: Encoding = other.parse().map_err(|_| format!("no encoding is called {other}"))?;
            builder.set_dictionary_enabled(false).set_encoding(encoding)
        }
    };
    Ok(builder.build())
}
