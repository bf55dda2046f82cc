//! What is written is read equal by pyarrow, parquet-rs, DuckDB, Polars and fastparquet.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use marquetry_base::{Bytes, Codec};
use marquetry_conformance::canonical::{self, FILE};
use marquetry_conformance::craft;
use marquetry_conformance::features::{self, Evidence, Source};
use marquetry_conformance::files;
use marquetry_conformance::hostile::Manner;
use marquetry_conformance::parquet_rs;
use marquetry_conformance::records::field_sums;
use marquetry_parquet::format::{Compression, Encoding};
use marquetry_parquet::read::{Layout, ReadOptions, Values};
use marquetry_parquet::write::{BloomOptions, ColumnOptions, PageVersion, WriteOptions};
use serde_json::Value;

use crate::given::{self, Flavour, SHAPES, TYPES};
use crate::rewritten::{plain, write};

/// What an oracle, a script of this package, says of each file.
fn expect(python: &Path, script: &str, folder: &Path, parquet: &[PathBuf]) -> Vec<Value> {
    let list = folder.join(format!("{script}.list"));
    let lines: Vec<String> = parquet.iter().map(|path| path.display().to_string()).collect();
    std::fs::write(&list, lines.join("\n")).unwrap();
    let out = folder.join(format!("{script}.json"));
    let script = files::root().join("dev/conformance").join(script);
    let status =
        Command::new(python).arg(script).arg(&out).arg(format!("@{}", list.display())).status().unwrap();
    assert!(status.success(), "{status}");
    let all: Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
    all.as_array().unwrap().clone()
}

/// The encodings that a type may have.
fn encodings(number: i32) -> Vec<Encoding> {
    let mut all = vec![Encoding::Plain];
    if number != craft::BOOLEAN {
        all.push(Encoding::RleDictionary);
    }
    all.extend(match number {
        craft::BOOLEAN => &[Encoding::Rle][..],
        craft::INT32 | craft::INT64 => &[Encoding::DeltaBinaryPacked, Encoding::ByteStreamSplit],
        craft::BYTE_ARRAY => &[Encoding::DeltaLengthByteArray, Encoding::DeltaByteArray],
        craft::FIXED_LEN_BYTE_ARRAY => &[Encoding::DeltaByteArray, Encoding::ByteStreamSplit],
        craft::INT96 => &[],
        _ => &[Encoding::ByteStreamSplit],
    });
    all
}

/// A way to write.
struct Way {
    name: String,
    types: Vec<(&'static str, i32)>,
    shapes: &'static [&'static str],
    options: WriteOptions,
}

fn ways() -> Vec<Way> {
    let mut ways = Vec::new();
    for page_version in [PageVersion::V1, PageVersion::V2] {
        for (name, number) in TYPES {
            for encoding in encodings(number) {
                let column = ColumnOptions { encoding: Some(encoding), ..plain() };
                // Several pages, and several row groups.
                let options = WriteOptions {
                    column,
                    page_version,
                    page_rows: 100,
                    row_group_rows: 600,
                    ..WriteOptions::default()
                };
                let types = vec![(name, number)];
                let name = format!("{name}-{encoding}-{page_version:?}");
                ways.push(Way { name, types, shapes: &SHAPES, options });
            }
        }
        for codec in codecs() {
            let column = ColumnOptions { compression: codec, ..ColumnOptions::default() };
            let options = WriteOptions { column, page_version, ..WriteOptions::default() };
            for (name, shapes) in [("all", &SHAPES[..]), ("flat", &SHAPES[..2])] {
                let name = format!("{name}-{codec}-{page_version:?}");
                ways.push(Way { name, types: TYPES.to_vec(), shapes, options: options.clone() });
            }
        }
        // A dictionary that is left between two pages.
        let column = ColumnOptions { encoding: Some(Encoding::RleDictionary), ..plain() };
        let options = WriteOptions {
            column,
            page_version,
            page_rows: 100,
            dictionary_bytes: 1000,
            ..WriteOptions::default()
        };
        let (name, types) = (format!("int64-left-{page_version:?}"), vec![("int64", craft::INT64)]);
        ways.push(Way { name, types, shapes: &SHAPES, options });
        let column = ColumnOptions { bloom: Some(BloomOptions::default()), ..ColumnOptions::default() };
        let types: Vec<_> = TYPES.into_iter().filter(|(_, number)| *number != craft::BOOLEAN).collect();
        for (name, shapes, row_group_rows) in [("all", &SHAPES[..], 1 << 20), ("flat", &SHAPES[..2], 600)] {
            let options = WriteOptions {
                column: column.clone(),
                page_version,
                row_group_rows,
                ..WriteOptions::default()
            };
            let name = format!("{name}-bloom-{page_version:?}");
            ways.push(Way { name, types: types.clone(), shapes, options });
        }
    }
    ways
}

/// The codecs that are there to write.
fn codecs() -> Vec<Compression> {
    use marquetry_base::Codecs;
    let all = [Codec::Snappy, Codec::Gzip, Codec::Brotli, Codec::Lz4, Codec::Zstd, Codec::Lz4Raw];
    let there = marquetry_codecs::StandardCodecs::default();
    let there = all.into_iter().filter(|codec| there.compressor(*codec, None).is_ok());
    std::iter::once(Compression::Uncompressed).chain(there.map(Compression::Codec)).collect()
}

/// What came of files that others read.
#[derive(Default)]
pub(crate) struct Outcome {
    /// What is not as it should be.
    pub(crate) wrong: Vec<String>,
    /// What the files use of which each column was read equal.
    pub(crate) evidence: Evidence,
    /// Files, and fields of them that are equal to pyarrow's.
    pub(crate) files: usize,
    pub(crate) fields: usize,
    /// Columns of which parquet-rs reads the same levels and values.
    pub(crate) by_parquet_rs: usize,
}

impl Outcome {
    pub(crate) fn assert_right(&self) {
        let printed = &self.wrong[..self.wrong.len().min(40)];
        assert!(self.wrong.is_empty(), "{} wrong:\n{}", self.wrong.len(), printed.join("\n"));
    }
}

/// Asks pyarrow and parquet-rs what files hold. What they read equal is evidence.
pub(crate) fn by_pyarrow(python: &Path, folder: &Path, paths: &[PathBuf]) -> Outcome {
    let mut all = Outcome { files: paths.len(), ..Outcome::default() };
    for (path, expected) in paths.iter().zip(expect(python, "expect_nested.py", folder, paths)) {
        let name = path.file_name().unwrap().to_string_lossy();
        let bytes = Bytes::from(std::fs::read(path).unwrap());
        let metadata = canonical::metadata(&bytes, Manner::KIND).unwrap();
        let ours = field_sums(&bytes, &metadata, ReadOptions::default(), Manner::KIND).unwrap();
        let theirs = expected["fields"].as_array().map_or(&[][..], Vec::as_slice);
        let wrong_before = all.wrong.len();
        if theirs.len() != ours.len() {
            all.wrong.push(format!("{name}: {}", expected["error"]));
        }
        for (ours, theirs) in ours.iter().zip(theirs) {
            all.fields += 1;
            if Some(u64::from(ours.crc32)) != theirs["crc32"].as_u64() {
                all.wrong.push(format!(
                    "{name}: {}: {} {:?} {:?}",
                    ours.name, theirs["error"], ours.head, theirs["head"]
                ));
            }
        }
        // The footer and the page index tell parquet-rs the same.
        all.wrong.extend(
            parquet_rs::compare(&bytes, &metadata).err().map(|error| format!("{name}: parquet-rs: {error}")),
        );
        let by_parquet_rs = parquet_rs::values::compare(&bytes, &metadata);
        let is_by_parquet_rs = by_parquet_rs.as_ref().is_ok_and(|columns| *columns > 0);
        match by_parquet_rs {
            Ok(columns) => all.by_parquet_rs += columns,
            Err(error) => all.wrong.push(format!("{name}: parquet-rs: {error}")),
        }
        match features::observe(&bytes, &metadata) {
            Ok(seen) if all.wrong.len() == wrong_before => {
                if is_by_parquet_rs {
                    let of_values = seen.iter().filter(|(row, _)| features::is_of_values(row));
                    all.evidence.add(Source::ParquetRs, &name, of_values.cloned());
                }
                all.evidence.add(Source::Pyarrow, &name, seen);
            }
            Ok(_) => {}
            Err(error) => all.wrong.push(format!("{name}: {error}")),
        }
    }
    all
}

/// Everything there is to write, as others read it. `None` without them.
pub(crate) fn outcome() -> Option<&'static Outcome> {
    static OUTCOME: OnceLock<Option<Outcome>> = OnceLock::new();
    OUTCOME.get_or_init(|| files::python().map(|python| made(&python))).as_ref()
}

fn made(python: &Path) -> Outcome {
    let folder = files::root().join("target/conformance/written");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let (mut paths, mut ways_of) = (Vec::new(), BTreeMap::new());
    for way in ways() {
        let schema = given::schema(&way.types, way.shapes);
        for flavour in [Flavour::Few, Flavour::Ascending, Flavour::Random] {
            let batches = [300, 1, 500].map(|rows| {
                given::batch(&schema, rows, flavour, Layout::Spaced, u64::try_from(rows).unwrap())
            });
            let written = write(&schema, &batches, way.options.clone(), Manner::KIND).unwrap();
            let name = format!("{}-{flavour:?}.parquet", way.name);
            let path = folder.join(&name);
            std::fs::write(&path, written.object(FILE)).unwrap();
            ways_of.insert(name, (way.types.len(), way.shapes.len()));
            paths.push(path);
        }
    }
    let mut all = by_pyarrow(python, &folder, &paths);
    let mut columns = BTreeMap::<String, u64>::new();
    for entry in expect(python, "expect_written.py", &folder, &paths) {
        let path = Path::new(entry["file"].as_str().unwrap());
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let faults = entry["wrong"].as_array().unwrap().iter();
        all.wrong.extend(faults.map(|fault| format!("{name}: {}", fault.as_str().unwrap())));
        for (reader, count) in entry["columns"].as_object().into_iter().flatten() {
            let count = count.as_u64().unwrap();
            *columns.entry(reader.clone()).or_default() += count;
            let (types, shapes) = ways_of[&name];
            let source = match reader.as_str() {
                "duckdb" => Source::DuckDb,
                "polars" => Source::Polars,
                "fastparquet" => Source::Fastparquet,
                other => panic!("no reader {other}"),
            };
            // Of a file of one type any column says it all; of others, all columns.
            let is_all = count == u64::try_from(types * shapes).unwrap();
            if is_all || (types == 1 && count > 0) {
                let bytes = Bytes::from(std::fs::read(path).unwrap());
                let metadata = canonical::metadata(&bytes, Manner::KIND).unwrap();
                let seen = features::observe(&bytes, &metadata).unwrap();
                all.evidence.add(
                    source,
                    &name,
                    seen.into_iter().filter(|(row, _)| features::is_of_values(row)),
                );
            }
        }
    }
    println!(
        "{} files, {} fields equal to pyarrow, {} columns to parquet-rs, to others {columns:?}",
        all.files, all.fields, all.by_parquet_rs
    );
    assert!(
        all.fields > 1000 && all.by_parquet_rs > 1000 && columns.values().all(|count| *count > 100),
        "{} {columns:?}",
        all.fields
    );
    all
}

#[test]
fn every_encoding_codec_and_page_version() {
    if let Some(outcome) = outcome() {
        outcome.assert_right();
    }
}

/// Floats in ALP, which only parquet-rs reads beside us.
pub(crate) fn alp() -> Evidence {
    let mut evidence = Evidence::default();
    for (name, number) in [("float", craft::FLOAT), ("double", craft::DOUBLE)] {
        let schema = given::schema(&[(name, number)], &["required"]);
        let column = ColumnOptions { encoding: Some(Encoding::Alp), ..plain() };
        let options = WriteOptions { column, page_rows: 1500, ..WriteOptions::default() };
        for flavour in [Flavour::Few, Flavour::Ascending, Flavour::Random] {
            let batch = given::batch(&schema, 5000, flavour, Layout::Spaced, 3);
            let bytes = write(&schema, std::slice::from_ref(&batch), options.clone(), Manner::KIND).unwrap();
            let bytes = bytes.object(FILE);
            let theirs = parquet_rs::floats(&bytes, 0).unwrap();
            let bits: Vec<u64> = match &batch.columns[0].values {
                Values::Float(values) => values.iter().map(|value| f64::from(*value).to_bits()).collect(),
                Values::Double(values) => values.iter().map(|value| value.to_bits()).collect(),
                _ => panic!("no floats"),
            };
            assert!(theirs.iter().map(|value| value.to_bits()).eq(bits), "{name} {flavour:?}");
            let metadata = canonical::metadata(&bytes, Manner::KIND).unwrap();
            let seen = features::observe(&bytes, &metadata).unwrap();
            evidence.add(
                Source::ParquetRs,
                name,
                seen.into_iter().filter(|(row, _)| features::is_of_values(row)),
            );
        }
    }
    evidence
}

#[test]
fn alp_by_parquet_rs() {
    alp();
}
