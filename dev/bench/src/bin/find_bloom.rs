//! The Bloom filters of a file of the look-up benchmark: `bench-find-bloom FILE` prints of each column's filters what they take, how long
//! reading all of them takes, how often they are wrong, and what compressing them would save.
#![forbid(unsafe_code)]

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use marquetry_base::{Error, Limits, Object, Result};
use marquetry_bench::find::{COLUMNS, Input, keys, plain, run};
use marquetry_parquet::bloom;
use marquetry_parquet::read::{BloomProbe, FooterReader};
use serde_json::{Value, json};

const FILE: Object = Object(0);
/// Values that are asked for, none of which is there.
const ASKED: u64 = 100_000;
/// Rounds of reading, of which the shortest counts.
const ROUNDS: usize = 5;

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: bench-find-bloom FILE");
        return ExitCode::FAILURE;
    };
    let looked = Input::file(Path::new(&path)).and_then(|file| {
        (0..COLUMNS.len()).map(|leaf| filters(&file, leaf).map_err(|error| error.to_string())).collect()
    });
    match looked {
        Ok(columns) => {
            println!("{}", Value::Array(columns));
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("bench-find-bloom: {message}");
            ExitCode::FAILURE
        }
    }
}

#[allow(clippy::cast_precision_loss, reason = "shares, to be read")]
fn filters(file: &Input, leaf: usize) -> Result<Value> {
    let metadata = run(&mut FooterReader::new(FILE, Limits::DEFAULT), file)?;
    let metadata = metadata.ok_or_else(|| Error::internal("no metadata"))?;
    let absent = keys(ASKED, metadata.rows, true).into_iter().filter(|key| key.row.is_none());
    let hashes: Vec<u64> = absent.map(|key| bloom::hash(&plain(leaf, key.number))).collect();
    let (mut bytes, mut wrong, mut packed, mut micros) = (0, 0, 0, 0.0);
    for row_group in 0..metadata.row_groups.len() {
        let mut probe = BloomProbe::new(FILE, &metadata, row_group, leaf, hashes.clone())?;
        while let Some(may_have) = run(&mut probe, file)? {
            wrong += u64::from(may_have);
        }
        let place = probe.place().ok_or_else(|| Error::internal("a filter without a place"))?;
        let read = || {
            let start = Instant::now();
            let blocks = file.read(place.range()).map_err(|error| Error::io(error.to_string()))?;
            Ok::<_, Error>((start.elapsed().as_secs_f64() * 1e6, blocks))
        };
        let mut shortest = read()?;
        for _ in 1..ROUNDS {
            let again = read()?;
            if again.0 < shortest.0 {
                shortest = again;
            }
        }
        micros += shortest.0;
        bytes += shortest.1.len();
        packed += zstd(&shortest.1)?;
    }
    let asked = hashes.len() * metadata.row_groups.len();
    Ok(json!({
        "column": COLUMNS[leaf],
        "bytes": bytes,
        "bits_a_value": bytes as f64 * 8.0 / metadata.rows as f64,
        "wrong": wrong as f64 / asked as f64,
        "load": micros,
        "zstd": packed as f64 / bytes as f64,
    }))
}

/// Bytes that Zstandard makes of some, at its usual level.
fn zstd(bytes: &[u8]) -> Result<usize> {
    let mut packed = Vec::with_capacity(zstd_safe::compress_bound(bytes.len()));
    zstd_safe::compress(&mut packed, bytes, zstd_safe::CLEVEL_DEFAULT)
        .map_err(|code| Error::internal(format!("zstd: {}", zstd_safe::get_error_name(code))))
}
