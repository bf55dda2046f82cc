//! parquet-rs as a contestant of wide tables: `bench-wide-parquet-rs FILE COLUMNS KIND TASK ROUNDS`.
//!
//! `open` reads the metadata; `open10` skips all that it can: the statistics of columns that are not wanted, and all sizes. Arrow's schema, which
//! takes as long again, is made by `read10` alone, whose reader needs it; what Arrow stored of it is not looked at.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use bytes::Bytes;
use marquetry_bench::wide::{Done, Table, contest, wanted};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    PageIndexPolicy, ParquetMetaDataOptions, ParquetMetaDataReader, ParquetStatisticsPolicy,
};

fn main() -> ExitCode {
    let version = parquet::file::properties::DEFAULT_CREATED_BY.trim_start_matches("parquet-rs version ");
    contest(("bench-wide-parquet-rs", version), |file, table, task| {
        run(file, table, task).map_err(|error| error.to_string())
    })
}

fn run(file: &Bytes, table: &Table<'_>, task: &str) -> Result<Done, ParquetError> {
    let wanted = wanted(table.columns);
    let some = || ParquetStatisticsPolicy::skip_except(&wanted);
    let proof = match task {
        "open" => open(file, ParquetMetaDataOptions::new())?,
        "open10" => {
            let options = ParquetMetaDataOptions::new()
                .with_column_stats_policy(some())
                .with_encoding_stats_policy(ParquetStatisticsPolicy::SkipAll)
                .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll);
            open(file, options)?
        }
        "read10" => {
            let options = ArrowReaderOptions::new()
                .with_skip_arrow_metadata(true)
                .with_page_index_policy(PageIndexPolicy::Skip)
                .with_column_stats_policy(ParquetStatisticsPolicy::SkipAll)
                .with_encoding_stats_policy(ParquetStatisticsPolicy::SkipAll)
                .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll);
            let metadata = ArrowReaderMetadata::load(file, options)?;
            let mask = ProjectionMask::leaves(metadata.parquet_schema(), wanted);
            let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(file.clone(), metadata);
            let mut proof = 0;
            for batch in builder.with_projection(mask).build()? {
                proof += batch?.columns().iter().map(|column| sum(column)).sum::<u64>();
            }
            proof
        }
        other => return Err(ParquetError::General(format!("no task is called {other}"))),
    };
    Ok(Done { proof, ..Done::default() })
}

fn open(file: &Bytes, options: ParquetMetaDataOptions) -> Result<u64, ParquetError> {
    let reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Skip);
    let metadata = reader.with_metadata_options(Some(options)).parse_and_finish(file)?;
    Ok(metadata.file_metadata().schema_descr().num_columns() as u64)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole numbers below a thousand")]
fn sum(column: &dyn Array) -> u64 {
    if let Some(values) = column.as_primitive_opt::<Float64Type>() {
        return values.iter().flatten().map(|value| value as u64).sum();
    }
    if let Some(values) = column.as_string_opt::<i32>() {
        return values.iter().flatten().map(|value| value.len() as u64).sum();
    }
    match column.as_binary_opt::<i32>() {
        Some(values) => values.iter().flatten().map(|value| value.len() as u64).sum(),
        None => u64::MAX / 1024,
    }
}
