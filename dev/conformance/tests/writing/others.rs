//! What is written is read equal by pyarrow, parquet-rs, DuckDB, Polars and fastparquet.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use marquetry_base::Bytes;
use marquetry_conformance::canonical::{self, FILE};
use marquetry_conformance::craft;
use marquetry_conformance::features::{self, Evidence, Source};
use marquetry_conformance::files;
use marquetry_conformance::hostile::Manner;
use marquetry_conformance::parquet_rs;
use marquetry_conformance::records::field_sums;
use marquetry_parquet::batch::{Layout, Values};
use marquetry_parquet::format::Encoding;
use marquetry_parquet::read::ReadOptions;
use marquetry_parquet::write::{ColumnOptions, WriteOptions};
use serde_json::Value;

use crate::given::{self, Flavour};
use crate::rewritten::{plain, write};
use crate::ways::{self, Way, ways};

/// What an oracle, a script of this package, says of each file.
pub(crate) fn expect(python: &Path, script: &str, folder: &Path, parquet: &[PathBuf]) -> Vec<Value> {
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
    /// Columns that others read equal, by reader.
    pub(crate) by_others: BTreeMap<String, u64>,
    /// The files.
    pub(crate) paths: Vec<PathBuf>,
}

impl Outcome {
    pub(crate) fn assert_right(&self) {
        let printed = &self.wrong[..self.wrong.len().min(40)];
        assert!(self.wrong.is_empty(), "{} wrong:\n{}", self.wrong.len(), printed.join("\n"));
    }
}

/// Asks pyarrow and parquet-rs what files hold. What they read equal is evidence.
pub(crate) fn by_pyarrow(python: &Path, folder: &Path, paths: &[PathBuf]) -> Outcome {
    let mut all = Outcome { files: paths.len(), paths: paths.to_vec(), ..Outcome::default() };
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
    // Asked by every test, so that each is on record that does without.
    let python = files::python()?;
    OUTCOME.get_or_init(|| Some(made(&python, "written", ways()))).as_ref()
}

/// Writes in these ways into a folder, and asks all about what is there.
fn made(python: &Path, folder: &str, ways: Vec<Way>) -> Outcome {
    let folder = files::root().join("target/conformance").join(folder);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let (mut paths, mut ways_of) = (Vec::new(), BTreeMap::new());
    for way in ways {
        let schema = given::schema(&way.types, &way.shapes);
        for flavour in way.flavours.iter().copied() {
            let batches = way.rows.map(|rows| {
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
    // Side by side: other tests wait for both.
    let (mut all, by_others) = std::thread::scope(|scope| {
        let by_others = scope.spawn(|| expect(python, "expect_written.py", &folder, &paths));
        (by_pyarrow(python, &folder, &paths), by_others.join().unwrap())
    });
    let mut columns = BTreeMap::<String, u64>::new();
    for entry in by_others {
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
    all.by_others = columns;
    all
}

#[test]
fn every_encoding_codec_and_page_version() {
    let Some(outcome) = outcome() else { return };
    outcome.assert_right();
    let by_others = &outcome.by_others;
    assert!(outcome.fields > 4000 && outcome.by_parquet_rs > outcome.fields, "{}", outcome.fields);
    assert!(by_others.len() == 3 && by_others.values().all(|count| *count > 900), "{by_others:?}");
}

#[test]
#[ignore = "soak: each type in each encoding, codec, page version and nesting of three, a thousand files"]
fn every_type_encoding_codec_page_version_and_nesting() {
    let Some(python) = files::python() else { return };
    for codec in ways::codecs() {
        let outcome = made(&python, "product", ways::product(codec));
        outcome.assert_right();
        assert!(outcome.fields > 8000 && outcome.by_parquet_rs > outcome.fields, "{}", outcome.fields);
    }
    std::fs::remove_dir_all(files::root().join("target/conformance/product")).unwrap();
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
