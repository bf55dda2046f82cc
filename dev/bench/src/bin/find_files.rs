//! The files of the look-up benchmark: `bench-find-files FILE ROWS ORDER GROUPS STYLE` writes one, and the keys of its order.
//!
//! `ORDER` is `sorted` or `mixed`, `GROUPS` a number of row groups, `STYLE` `plain` (PLAIN, uncompressed) or `default`; `plain-pages` and
//! `default-pages` have Bloom filters of pages, too; those of `plain-rate-0.5` have that false-positive rate.
#![forbid(unsafe_code)]

use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use bytes::Bytes;
use marquetry_base::{Error, Object, Result};
use marquetry_bench::find::{PAGE_ROWS, keys, number, string, write_keys};
use marquetry_codecs::StandardCodecs;
use marquetry_io::{ByteSink, ByteSinks, drive_into};
use marquetry_parquet::batch::{Batch, Values};
use marquetry_parquet::format::{Compression, Encoding};
use marquetry_parquet::schema::{FieldDef, FieldType, LogicalType, PhysicalType, Schema};
use marquetry_parquet::write::{BloomOptions, ColumnOptions, FileWriter, PageBloomOptions, WriteOptions};

const FILE: Object = Object(0);
const BATCH_ROWS: u64 = 65_536;
/// Keys that are looked up: so many that are there, and as many that are not.
const KEYS: u64 = 1000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [path, rows, order, groups, style] = arguments[..] else {
        eprintln!("usage: bench-find-files FILE ROWS sorted|mixed GROUPS plain|default[-pages|-rate-RATE]");
        return ExitCode::FAILURE;
    };
    let (Ok(rows), Ok(groups)) = (rows.parse(), groups.parse()) else {
        eprintln!("bench-find-files: {rows} rows, {groups} groups: not numbers");
        return ExitCode::FAILURE;
    };
    let rate = style.split_once("-rate-").map(|(_, rate)| rate.parse());
    let Ok(rate) = rate.transpose() else {
        eprintln!("bench-find-files: {style}: no rate");
        return ExitCode::FAILURE;
    };
    let table = Table {
        rows,
        groups,
        is_sorted: order == "sorted",
        is_plain: style.starts_with("plain"),
        has_page_blooms: style.ends_with("-pages"),
        rate,
    };
    match table.write(Path::new(path)) {
        Ok(()) => {
            println!("{{}}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("bench-find-files: {error}");
            ExitCode::FAILURE
        }
    }
}

struct Table {
    rows: u64,
    groups: u64,
    is_sorted: bool,
    is_plain: bool,
    has_page_blooms: bool,
    /// The false-positive rate of Bloom filters, if not the usual one.
    rate: Option<f64>,
}

impl Table {
    fn write(&self, path: &Path) -> std::result::Result<(), String> {
        let place = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        write_keys(&path.with_extension("keys.json"), &keys(KEYS, self.rows, self.is_sorted))?;
        // What has its name is whole.
        let unfinished = path.with_extension("unfinished");
        let file = std::fs::File::create(&unfinished).map_err(|error| place(&error))?;
        let mut file = ToFile(BufWriter::with_capacity(1 << 20, file));
        self.write_to(&mut file).map_err(|error| place(&error))?;
        file.0.flush().and_then(|()| std::fs::rename(&unfinished, path)).map_err(|error| place(&error))
    }

    fn write_to(&self, file: &mut ToFile) -> Result<()> {
        let leaf = |name: &str, physical_type, logical_type| {
            FieldDef::new(name, FieldType::Leaf(physical_type, logical_type)).required()
        };
        let schema = Schema::of_fields(&[
            leaf("int32", PhysicalType::Int32, None),
            leaf("int64", PhysicalType::Int64, None),
            leaf("float", PhysicalType::Float, None),
            leaf("double", PhysicalType::Double, None),
            leaf("string", PhysicalType::ByteArray, Some(LogicalType::String)),
        ])?;
        let usual = BloomOptions::default();
        let bloom = Some(BloomOptions { fpp: self.rate.unwrap_or(usual.fpp), ..usual });
        let mut column = ColumnOptions {
            bloom,
            page_bloom: self.has_page_blooms.then(PageBloomOptions::default),
            ..ColumnOptions::default()
        };
        if self.is_plain {
            column.encoding = Some(Encoding::Plain);
            column.compression = Compression::Uncompressed;
        }
        let options = WriteOptions {
            column,
            page_rows: PAGE_ROWS,
            row_group_rows: self.rows.div_ceil(self.groups),
            row_group_bytes: u64::MAX,
            // parquet-rs checks none, and by default writes none.
            crc: false,
            ..WriteOptions::default()
        };
        let mut writer =
            FileWriter::new(FILE, Arc::new(schema), Arc::new(StandardCodecs::default()), options)?;
        let mut sinks = ByteSinks::new().with(FILE, file);
        let mut row = 0;
        while row < self.rows {
            let end = self.rows.min(row + BATCH_ROWS);
            drive_into(&mut writer, &mut sinks)?;
            writer.feed(self.batch(row..end)?)?;
            row = end;
        }
        writer.finish();
        while drive_into(&mut writer, &mut sinks)?.is_some() {}
        Ok(())
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_possible_wrap,
        reason = "numbers are below 2^25"
    )]
    fn batch(&self, rows: std::ops::Range<u64>) -> Result<Batch> {
        let numbers: Vec<u64> = rows.map(|row| number(row, self.rows, self.is_sorted)).collect();
        let strings: Vec<String> = numbers.iter().map(|number| string(*number)).collect();
        Batch::of_values([
            Values::from(numbers.iter().map(|number| *number as i32).collect::<Vec<_>>()),
            numbers.iter().map(|number| *number as i64).collect::<Vec<_>>().into(),
            numbers.iter().map(|number| *number as f32).collect::<Vec<_>>().into(),
            numbers.iter().map(|number| *number as f64).collect::<Vec<_>>().into(),
            strings.iter().map(String::as_str).collect(),
        ])
    }
}

struct ToFile(BufWriter<std::fs::File>);

impl ByteSink for &mut ToFile {
    fn name(&self) -> &str {
        "a file"
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.write_all(bytes).map_err(|error| Error::io(error.to_string()))
    }

    fn read(&mut self, _: std::ops::Range<u64>) -> Result<Bytes> {
        Err(Error::io("what is written is not read"))
    }
}
