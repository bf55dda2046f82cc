//! Files of ALP for the reading benchmark, by parquet-rs, which alone writes it: `bench-alp-files DIR [SCALE]` adds them to DIR/cases.json, which
//! `make_files.py` made, unless they are there.
#![forbid(unsafe_code)]

use std::fs::File;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use marquetry_bench::protocol::{Sum, sum};
use parquet::basic::{Compression, Encoding};
use parquet::data_type::{DataType, DoubleType, FloatType};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use serde_json::{Value, json};

/// As many rows as the other files of numbers have, in row groups of as many.
const ROWS: f64 = 20e6;
const GROUP_ROWS: usize = 1_000_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let made = match &arguments[..] {
        [directory] => add(Path::new(directory), 1.0),
        [directory, scale] => match scale.parse() {
            Ok(scale) => add(Path::new(directory), scale),
            Err(_) => Err(format!("{scale} is not a number")),
        },
        _ => Err("usage: bench-alp-files DIR [SCALE]".to_owned()),
    };
    match made {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("bench-alp-files: {message}");
            ExitCode::FAILURE
        }
    }
}

fn add(directory: &Path, scale: f64) -> Result<(), String> {
    let path = directory.join("cases.json");
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = std::fs::read_to_string(&path).map_err(|error| failed(&error))?;
    let mut listing: Value = serde_json::from_str(&text).map_err(|error| failed(&error))?;
    let cases = listing["cases"].as_array_mut().ok_or_else(|| failed(&"a listing of no cases"))?;
    if cases.iter().any(|case| case["encoding"] == "ALP") {
        return Ok(());
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some millions")]
    let rows = (ROWS * scale) as usize;
    // Prices: two digits after the point.
    cases.push(case::<FloatType>(directory, "float", rows, |cents| cents as f32 / 100.0)?);
    cases.push(case::<DoubleType>(directory, "double", rows, |cents| f64::from(cents) / 100.0)?);
    std::fs::write(&path, format!("{listing:#}\n")).map_err(|error| failed(&error))
}

/// Writes a file, and returns its entry in the listing.
fn case<T: DataType<T: Sum + Copy>>(
    directory: &Path,
    kind: &str,
    rows: usize,
    value: fn(u32) -> T::T,
) -> Result<Value, String> {
    let name = format!("{kind}-alp-uncompressed.parquet");
    eprintln!("writing {name}");
    let path = directory.join(&name);
    let unfinished = path.with_extension("unfinished");
    let total = write::<T>(&unfinished, kind, rows, value).map_err(|error| format!("{name}: {error}"))?;
    let bytes = std::fs::rename(&unfinished, &path).and_then(|()| std::fs::metadata(&path));
    let bytes = bytes.map_err(|error| format!("{name}: {error}"))?.len();
    Ok(json!({
        "name": format!("{kind} ALP UNCOMPRESSED"),
        "file": name,
        "type": kind,
        "encoding": "ALP",
        "codec": "UNCOMPRESSED",
        "level": null,
        "nulls": "none",
        "page": "V1",
        "products": ["dense", "arrow"],
        "rows": rows,
        "null_rows": 0,
        "sum": total,
        "bytes": bytes,
    }))
}

fn write<T: DataType<T: Sum + Copy>>(
    path: &Path,
    kind: &str,
    rows: usize,
    value: fn(u32) -> T::T,
) -> Result<u64, ParquetError> {
    let schema = parse_message_type(&format!("message schema {{ required {kind} v; }}"))?;
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(false)
        .set_encoding(Encoding::ALP)
        .set_compression(Compression::UNCOMPRESSED)
        .build();
    let file = File::create(path)?;
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))?;
    let (mut state, mut total) = (0x9e37_79b9_u32, 0_u64);
    for start in (0..rows).step_by(GROUP_ROWS) {
        // xorshift32 (Marsaglia): up to ten thousand, as prices are.
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            state % 1_000_000
        };
        let values: Vec<T::T> = (start..rows.min(start + GROUP_ROWS)).map(|_| value(next())).collect();
        total = total.wrapping_add(sum(values.iter().copied()));
        let mut group = writer.next_row_group()?;
        if let Some(mut column) = group.next_column()? {
            column.typed::<T>().write_batch(&values, None, None)?;
            column.close()?;
        }
        group.close()?;
    }
    let metadata = writer.close()?;
    let is_alp =
        metadata.row_groups().iter().all(|group| group.column(0).encodings().any(|it| it == Encoding::ALP));
    if is_alp {
        Ok(total)
    } else {
        Err(ParquetError::General("parquet-rs chose another encoding".to_owned()))
    }
}
