//! What is written is read equal by pyarrow, DuckDB, Polars and fastparquet.

use std::path::{Path, PathBuf};
use std::process::Command;

use marquetry_base::{Bytes, Codec};
use marquetry_conformance::canonical::{self, FILE};
use marquetry_conformance::craft;
use marquetry_conformance::files;
use marquetry_conformance::hostile::Manner;
use marquetry_conformance::records::field_sums;
use marquetry_parquet::format::{Compression, Encoding};
use marquetry_parquet::read::{Layout, ReadOptions};
use marquetry_parquet::write::{ColumnOptions, PageVersion, WriteOptions};
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

#[test]
fn every_encoding_codec_and_page_version() {
    let Some(python) = files::python() else { return };
    let folder = files::root().join("target/conformance/written");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let mut paths = Vec::new();
    for Way { name, types, shapes, options } in ways() {
        let schema = given::schema(&types, shapes);
        for flavour in [Flavour::Few, Flavour::Ascending, Flavour::Random] {
            let batches = [300, 1, 500].map(|rows| {
                given::batch(&schema, rows, flavour, Layout::Spaced, u64::try_from(rows).unwrap())
            });
            let written = write(&schema, &batches, options.clone(), Manner::KIND).unwrap();
            let path = folder.join(format!("{name}-{flavour:?}.parquet"));
            std::fs::write(&path, written.object(FILE)).unwrap();
            paths.push(path);
        }
    }
    let mut wrong = Vec::new();
    let mut fields = 0;
    for (path, expected) in paths.iter().zip(expect(&python, "expect_nested.py", &folder, &paths)) {
        let name = path.file_name().unwrap().to_string_lossy();
        let bytes = Bytes::from(std::fs::read(path).unwrap());
        let metadata = canonical::metadata(&bytes, Manner::KIND).unwrap();
        let ours = field_sums(&bytes, &metadata, ReadOptions::default(), Manner::KIND).unwrap();
        let theirs = expected["fields"].as_array().map_or(&[][..], Vec::as_slice);
        if theirs.len() != ours.len() {
            wrong.push(format!("{name}: {}", expected["error"]));
        }
        for (ours, theirs) in ours.iter().zip(theirs) {
            fields += 1;
            if Some(u64::from(ours.crc32)) != theirs["crc32"].as_u64() {
                wrong.push(format!(
                    "{name}: {}: {} {:?} {:?}",
                    ours.name, theirs["error"], ours.head, theirs["head"]
                ));
            }
        }
    }
    let mut columns = std::collections::BTreeMap::<String, u64>::new();
    for entry in expect(&python, "expect_written.py", &folder, &paths) {
        let name =
            Path::new(entry["file"].as_str().unwrap()).file_name().unwrap().to_string_lossy().into_owned();
        let faults = entry["wrong"].as_array().unwrap().iter();
        wrong.extend(faults.map(|fault| format!("{name}: {}", fault.as_str().unwrap())));
        for (reader, count) in entry["columns"].as_object().into_iter().flatten() {
            *columns.entry(reader.clone()).or_default() += count.as_u64().unwrap();
        }
    }
    println!("{} files, {fields} fields equal to pyarrow, columns of others {columns:?}", paths.len());
    let printed = &wrong[..wrong.len().min(40)];
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), printed.join("\n"));
    assert!(fields > 1000 && columns.values().all(|count| *count > 100), "{fields} {columns:?}");
}
