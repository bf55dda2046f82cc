//! Every flat file by other writers reads equal to pyarrow.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use marquetry_base::{Bytes, Error, ErrorKind};
use marquetry_conformance::canonical::{self, Sum};
use marquetry_conformance::files;
use marquetry_conformance::hostile::Manner;
use marquetry_parquet::read::{Layout, ReadOptions};
use serde_json::Value;

/// Files whose values pyarrow refuses to read, so there is nothing to compare with: each with its reason.
const NOT_READ_BY_PYARROW: &[(&str, &str)] = &[
    ("unreadable_by_pyarrow_snappy.parquet", "integers of 128 bits"),
    ("datapage_v1-corrupt-checksum.parquet", "a wrong CRC; Marquetry refuses it too"),
    ("rle-dict-uncompressed-corrupt-checksum.parquet", "a wrong CRC; Marquetry refuses it too"),
    ("incorrect_map_schema.parquet", "an optional map key"),
];

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}

/// What the oracle says of each file, by its path.
fn expect(python: &Path, name: &str, parquet: &[PathBuf]) -> Vec<(PathBuf, Value)> {
    let folder = files::root().join("target/conformance");
    std::fs::create_dir_all(&folder).unwrap();
    let list = folder.join(format!("{name}.list"));
    let lines: Vec<String> = parquet.iter().map(|path| path.display().to_string()).collect();
    std::fs::write(&list, lines.join("\n")).unwrap();
    let out = folder.join(format!("{name}.json"));
    run(Command::new(python)
        .arg(files::root().join("dev/conformance/expect.py"))
        .arg(&out)
        .arg(format!("@{}", list.display())));
    let all: Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
    let all = all.as_array().unwrap().clone();
    assert_eq!(all.len(), parquet.len());
    parquet.iter().cloned().zip(all).collect()
}

/// The generated files, made once for all tests.
fn generated(python: &Path) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER
        .get_or_init(|| {
            let folder = files::root().join("target/conformance/files");
            let _ = std::fs::remove_dir_all(&folder);
            std::fs::create_dir_all(&folder).unwrap();
            run(Command::new(python).arg(files::root().join("dev/conformance/generate.py")).arg(&folder));
            run(Command::new(env!("CARGO_BIN_EXE_generate_rs")).arg(&folder));
            folder
        })
        .clone()
}

/// What came of a file.
#[derive(Default)]
struct Tally {
    files: usize,
    columns: usize,
    nested: usize,
    unsupported: Vec<String>,
    wrong: Vec<String>,
}

impl Tally {
    fn compare(&mut self, path: &Path, expected: &Value) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        self.files += 1;
        let bytes = Bytes::from(std::fs::read(path).unwrap());
        if let Some(error) = expected["error"].as_str() {
            if !NOT_READ_BY_PYARROW.iter().any(|(known, _)| *known == name) {
                self.wrong.push(format!("{name}: pyarrow reads it no longer: {error}"));
            }
            return;
        }
        let metadata = match canonical::metadata(&bytes, Manner::KIND) {
            Ok(metadata) => metadata,
            Err(error) => return self.wrong.push(format!("{name}: {error:?}")),
        };
        if Some(metadata.rows) != expected["rows"].as_u64() {
            self.wrong.push(format!("{name}: {} rows, pyarrow has {}", metadata.rows, expected["rows"]));
        }
        for column in expected["columns"].as_array().unwrap() {
            let leaf = usize::try_from(column["index"].as_u64().unwrap()).unwrap();
            if column["error"].is_string() {
                continue;
            }
            if !metadata.schema.leaves()[leaf].is_flat() {
                self.nested += 1;
                continue;
            }
            for options in self.options(leaf) {
                self.columns += 1;
                match canonical::sums(&bytes, &metadata, options, Manner::KIND) {
                    Ok((sums, _)) => self.check(&name, &sums[0], column),
                    Err(error) => self.failed(&name, column, &error),
                }
            }
        }
    }

    /// Ways to read a column: of each other column another one, so that all are tried on all kinds of files.
    fn options(&self, leaf: usize) -> Vec<ReadOptions> {
        let plain = ReadOptions { leaves: Some(vec![leaf]), ..ReadOptions::default() };
        let layout = if (self.columns + leaf).is_multiple_of(2) { Layout::Dense } else { Layout::Spaced };
        let batch_rows = [100, 1, 1000, 64, 77][(self.columns / 2 + leaf) % 5];
        let keep_dictionaries = !(self.columns + leaf).is_multiple_of(3);
        vec![plain.clone(), ReadOptions { layout, keep_dictionaries, batch_rows, ..plain }]
    }

    fn check(&mut self, name: &str, sum: &Sum, expected: &Value) {
        let same = Some(sum.nulls) == expected["nulls"].as_u64()
            && Some(u64::from(sum.crc32)) == expected["crc32"].as_u64();
        if !same {
            let ours: Vec<String> = sum.head.iter().take(5).map(|value| format!("{value:02x?}")).collect();
            self.wrong.push(format!(
                "{name}: column {} ({}): nulls {} (expected {}), crc {} (expected {})\n  ours {}\n  expected {}",
                sum.path,
                expected["physical_type"],
                sum.nulls,
                expected["nulls"],
                sum.crc32,
                expected["crc32"],
                ours.join(" "),
                expected["head"].as_array().map_or(String::new(), |head| format!("{:?}", &head[..head.len().min(5)])),
            ));
        }
    }

    fn failed(&mut self, name: &str, column: &Value, error: &Error) {
        if error.kind() == ErrorKind::Unsupported {
            let line = error.message().to_owned();
            if !self.unsupported.contains(&line) {
                self.unsupported.push(line);
            }
        } else {
            self.wrong.push(format!("{name}: column {}: {error:?}", column["path"]));
        }
    }

    fn report(self, what: &str) {
        println!(
            "{what}: {} files, {} readings of columns, {} nested columns left out; not supported: {:?}",
            self.files, self.columns, self.nested, self.unsupported
        );
        assert!(
            self.wrong.is_empty(),
            "{} wrong:\n{}",
            self.wrong.len(),
            self.wrong[..self.wrong.len().min(40)].join("\n")
        );
        assert!(self.unsupported.is_empty(), "not supported: {:?}", self.unsupported);
        assert!(self.columns > 0, "nothing was compared");
    }
}

#[test]
fn files_by_the_peers_read_equal() {
    let Some(python) = files::python() else { return };
    let folder = generated(&python);
    for writer in ["pyarrow", "duckdb", "polars", "fastparquet", "parquet-rs"] {
        let mut tally = Tally::default();
        for (path, expected) in expect(&python, writer, &files::parquet_files(&folder.join(writer))) {
            tally.compare(&path, &expected);
        }
        tally.report(writer);
    }
}

#[test]
fn the_corpus_reads_equal() {
    let (Some(python), Some(corpus)) = (files::python(), files::corpus()) else { return };
    let mut parquet = files::parquet_files(&corpus.join("parquet-testing/data"));
    parquet.extend(files::parquet_files(&corpus.join("real")));
    let mut tally = Tally::default();
    for (path, expected) in expect(&python, "corpus", &parquet) {
        tally.compare(&path, &expected);
    }
    tally.report("corpus");
}
