//! A copy of the bytes as a contestant, which is no reader: `bench-copy VALUE_BYTES BATCH_VALUES FILE`.
//!
//! It copies as many bytes from the file's beginning as its rows have, as many at a time as a batch of `BATCH_VALUES` values has, to
//! memory that is used again. No reader that hands out values in memory of its own can be faster.
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::process::ExitCode;

use bytes::Bytes;
use marquetry_base::{Limits, Object};
use marquetry_bench::protocol::{Count, refuse, serve};
use marquetry_io::memory::Memory;
use marquetry_io::{ByteSources, drive};
use marquetry_parquet::read::FooterReader;

const FILE: Object = Object(0);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [value_bytes, batch_values, path] = &arguments[..] else {
        return refuse("usage: bench-copy VALUE_BYTES BATCH_VALUES FILE");
    };
    let (Ok(value_bytes), Ok(batch_values)) = (value_bytes.parse::<usize>(), batch_values.parse::<usize>())
    else {
        return refuse("a number of bytes and a number of values");
    };
    let (file, rows) = match file(path) {
        Ok(file) => file,
        Err(message) => return refuse(&message),
    };
    let batch_bytes = value_bytes * batch_values;
    let Some(values) = usize::try_from(rows).ok().and_then(|rows| file.get(..rows * value_bytes)) else {
        return refuse("the file has fewer bytes than its values");
    };
    let mut batch = vec![0; batch_bytes];
    serve("memcpy", |_| {
        for bytes in values.chunks(batch_bytes.max(1)) {
            batch[..bytes.len()].copy_from_slice(bytes);
            black_box(&mut batch);
        }
        Ok(Count { rows, sum: 0 })
    })
}

/// The file's bytes and rows.
fn file(path: &str) -> Result<(Bytes, u64), String> {
    let file = Bytes::from(std::fs::read(path).map_err(|error| format!("{path}: {error}"))?);
    let sources = ByteSources::new().with(FILE, Memory::new("file", file.clone()));
    let mut footer = FooterReader::new(FILE, Limits::DEFAULT);
    let metadata = drive(&mut footer, &sources).map_err(|error| error.to_string())?.ok_or("no metadata")?;
    Ok((file, metadata.rows))
}
