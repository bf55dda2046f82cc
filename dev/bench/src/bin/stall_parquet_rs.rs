//! parquet-rs's push decoder as a contestant of the stall benchmark: `bench-stall-parquet-rs FILE [--memory]`.
//!
//! It is the reader of that crate which leaves I/O to its host, and so the one that a reactor could use. Its batches are of 1,024 rows, its own default:
//! smaller calls are shorter. What it asks for it is given at once, without a copy.
#![forbid(unsafe_code)]

use std::ops::Range;
use std::process::ExitCode;
use std::sync::Arc;

use marquetry_bench::stall::ours::Source;
use marquetry_bench::stall::{Call, Calls, Read, serve};
use parquet::DecodeResult;
use parquet::arrow::push_decoder::ParquetPushDecoderBuilder;
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaDataPushDecoder;

const BATCH_ROWS: usize = 1_024;

fn main() -> ExitCode {
    let version = parquet::file::properties::DEFAULT_CREATED_BY.trim_start_matches("parquet-rs version ");
    serve(version, |source, calls, _unlimited| {
        // Nobody asks this contestant for a reading that is not timed.
        let mut own = Calls::default();
        match read(source, calls.unwrap_or(&mut own)) {
            Ok(rows) => Read::Rows(rows),
            Err(error) => Read::Refused(error.to_string()),
        }
    })
}

fn read(source: &Source, calls: &mut Calls) -> Result<u64, ParquetError> {
    let bytes = |ranges: &[Range<u64>]| -> Result<Vec<_>, ParquetError> {
        let found: Result<Vec<_>, _> = ranges.iter().map(|range| source.bytes(range.clone())).collect();
        found.map_err(|error| ParquetError::External(Box::new(error)))
    };
    let mut footer = calls.time(Call::New, || ParquetMetaDataPushDecoder::try_new(source.length()))?;
    let metadata = loop {
        match calls.time(Call::Step, || footer.try_decode())? {
            DecodeResult::NeedsData(ranges) => {
                let pieces = bytes(&ranges)?;
                calls.time(Call::Supply, || footer.push_ranges(ranges, pieces))?;
            }
            DecodeResult::Data(metadata) => break Arc::new(metadata),
            DecodeResult::Finished => {
                return Err(ParquetError::General("a footer decoder without metadata".to_owned()));
            }
        }
    };
    let kept = Arc::clone(&metadata);
    let mut decoder = calls.time(Call::New, || {
        ParquetPushDecoderBuilder::try_new_decoder(metadata)?.with_batch_size(BATCH_ROWS).build()
    })?;
    let mut rows = 0;
    loop {
        match calls.time(Call::Step, || decoder.try_decode())? {
            DecodeResult::NeedsData(ranges) => {
                let pieces = bytes(&ranges)?;
                calls.time(Call::Supply, || decoder.push_ranges(ranges, pieces))?;
            }
            DecodeResult::Data(batch) => {
                rows += batch.num_rows() as u64;
                calls.time(Call::Drop, || drop(batch));
            }
            DecodeResult::Finished => break,
        }
    }
    calls.time(Call::Drop, || drop(decoder));
    calls.time(Call::Drop, || drop(kept));
    Ok(rows)
}
