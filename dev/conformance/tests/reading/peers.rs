//! Every flat column of files by other writers reads equal to pyarrow; where pyarrow cannot, to DuckDB or to what was written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use marquetry_base::Bytes;
use marquetry_conformance::canonical::{self, Sum};
use marquetry_conformance::features::{self, Evidence, Source};
use marquetry_conformance::files;
use marquetry_conformance::hostile::Manner;
use marquetry_conformance::parquet_rs::{self, Compared};
use marquetry_parquet::batch::Layout;
use marquetry_parquet::read::ReadOptions;
use serde_json::Value;

use crate::given::{self, Given};
use crate::{EXPECT, EXPECT_NESTED, Outcome, expect, file_name, nested, run};

/// The writers, by the names of their folders. All but one are run by `generate.py`.
const WRITERS: [(&str, Source); 5] = [
    ("pyarrow", Source::Pyarrow),
    ("duckdb", Source::DuckDb),
    ("polars", Source::Polars),
    ("fastparquet", Source::Fastparquet),
    (PARQUET_RS, Source::ParquetRs),
];
const PARQUET_RS: &str = "parquet-rs";

/// What came of the files of all writers. `None` without the peers.
pub(crate) fn outcomes() -> Option<Vec<&'static Outcome>> {
    (0..WRITERS.len()).map(outcome).collect()
}

/// Makes the files of a writer and compares them, once. `None` without the peers.
fn outcome(writer: usize) -> Option<&'static Outcome> {
    static OUTCOMES: [OnceLock<Outcome>; WRITERS.len()] = [const { OnceLock::new() }; _];
    // Asked by every test, so that each is on record that does without.
    let python = files::python()?;
    let (name, source) = WRITERS[writer];
    Some(OUTCOMES[writer].get_or_init(|| compare(&python, name, source)))
}

fn compare(python: &Path, writer: &str, source: Source) -> Outcome {
    let all = files::root().join("target/conformance/files");
    if writer == PARQUET_RS {
        run(Command::new(env!("CARGO_BIN_EXE_generate_rs")).arg(&all));
    } else {
        let script = files::root().join("dev/conformance/generate.py");
        run(Command::new(python).arg(script).arg(&all).arg(writer));
    }
    let folder = all.join(writer);
    let given = given::read(&folder.join("manifest.json"));
    let parquet = files::parquet_files(&folder);
    let mut tally = Tally::new(source);
    for (path, expected) in parquet.iter().zip(&expect(python, EXPECT, &folder, &parquet)) {
        tally.compare(path, expected, given.get(&file_name(path)));
    }
    // Files that have nested columns are read as records too.
    let with_nested: Vec<PathBuf> = std::mem::take(&mut tally.with_nested);
    let mut outcome = tally.outcome();
    if !with_nested.is_empty() {
        let mut nested = nested::Tally::new(source);
        let expected = expect(python, EXPECT_NESTED, &folder, &with_nested);
        with_nested.iter().zip(&expected).for_each(|(path, expected)| nested.compare(path, expected));
        outcome.add("of nested columns", nested.outcome());
    }
    outcome
}

/// What came of the files of a source.
pub(crate) struct Tally {
    source: Source,
    files: usize,
    columns: usize,
    metadata: Compared,
    /// Files with columns that are not flat.
    with_nested: Vec<PathBuf>,
    by_others: BTreeMap<&'static str, usize>,
    pub(crate) wrong: Vec<String>,
    evidence: Evidence,
}

impl Tally {
    pub(crate) fn new(source: Source) -> Tally {
        Tally {
            source,
            files: 0,
            columns: 0,
            metadata: Compared::default(),
            with_nested: Vec::new(),
            by_others: BTreeMap::new(),
            wrong: Vec::new(),
            evidence: Evidence::default(),
        }
    }

    /// Compares a file with what the oracle says of it, and with what was given to its writer, where that is known. Files of
    /// flat columns alone that are equal become evidence.
    pub(crate) fn compare(&mut self, path: &Path, expected: &Value, given: Option<&Given>) {
        let name = file_name(path);
        self.files += 1;
        let wrong_before = self.wrong.len();
        let bytes = Bytes::from(std::fs::read(path).unwrap());
        let metadata = match canonical::metadata(&bytes, Manner::KIND) {
            Ok(metadata) => metadata,
            Err(error) => return self.wrong.push(format!("{name}: {error:?}")),
        };
        if let Some(error) = expected["error"].as_str()
            && given.is_none()
        {
            return self.wrong.push(format!("{name}: pyarrow does not read it: {error}"));
        }
        if expected["rows"].as_u64().is_some_and(|rows| rows != metadata.rows) {
            self.wrong.push(format!("{name}: {} rows, pyarrow has {}", metadata.rows, expected["rows"]));
        }
        match parquet_rs::compare(&bytes, &metadata) {
            Ok(compared) => self.metadata += compared,
            Err(error) => self.wrong.push(format!("{name}: {error}")),
        }
        let leaves = metadata.schema.leaves().iter().enumerate();
        for (number, leaf) in leaves.filter(|(_, leaf)| leaf.is_flat()) {
            match self.wanted(number, expected, given) {
                Ok(wanted) => self.read(&name, &bytes, &metadata, number, &wanted),
                Err(error) => {
                    self.wrong.push(format!("{name}: column {}: {error}", metadata.schema.path(leaf.node)))
                }
            }
        }
        if metadata.schema.leaves().iter().any(|leaf| !leaf.is_flat()) {
            return self.with_nested.push(path.to_owned());
        }
        if self.wrong.len() == wrong_before {
            match features::observe(&bytes, &metadata) {
                Ok(seen) => self.evidence.add(self.source, &name, seen),
                Err(error) => self.wrong.push(format!("{name}: its pages cannot be scanned: {error:?}")),
            }
        }
    }

    /// What a column should hold, by all who know.
    fn wanted(&mut self, leaf: usize, expected: &Value, given: Option<&Given>) -> Result<Wanted, String> {
        let columns = expected["columns"].as_array().map_or(&[][..], Vec::as_slice);
        let found = columns.iter().find(|column| column["index"].as_u64() == Some(leaf as u64));
        let theirs = found.filter(|column| column["error"].is_null()).map(|column| Wanted {
            nulls: column["nulls"].as_u64(),
            crc32: column["crc32"].as_u64(),
            head: column["head"].clone(),
        });
        if found.is_some_and(|column| column["oracle"] == "duckdb") {
            *self.by_others.entry("by DuckDB").or_default() += 1;
        }
        let given = given.map(|given| given.column(leaf));
        match (theirs, given) {
            (Some(theirs), Some((nulls, crc32))) => {
                if (theirs.nulls, theirs.crc32) != (Some(nulls), Some(crc32)) {
                    return Err(format!(
                        "pyarrow reads {theirs:?}, {nulls} nulls and CRC {crc32} were given"
                    ));
                }
                Ok(theirs)
            }
            (Some(theirs), None) => Ok(theirs),
            (None, Some((nulls, crc32))) => {
                *self.by_others.entry("by what was written alone").or_default() += 1;
                Ok(Wanted { nulls: Some(nulls), crc32: Some(crc32), head: Value::Null })
            }
            (None, None) => {
                let error = found.and_then(|column| column["error"].as_str()).unwrap_or("nobody says");
                Err(format!("no other reader reads it: {error}"))
            }
        }
    }

    fn read(
        &mut self,
        name: &str,
        bytes: &Bytes,
        metadata: &std::sync::Arc<marquetry_parquet::format::FileMetaData>,
        leaf: usize,
        wanted: &Wanted,
    ) {
        for options in self.options(leaf) {
            self.columns += 1;
            let manner = if self.columns.is_multiple_of(9) { Manner::USUAL } else { Manner::KIND };
            match canonical::sums(bytes, metadata, options, manner) {
                Ok((sums, _)) => self.check(name, &sums[0], wanted),
                Err(error) => {
                    let path = metadata.schema.leaf_path(leaf);
                    self.wrong.push(format!("{name}: column {path}: {error:?}"));
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

    fn check(&mut self, name: &str, sum: &Sum, wanted: &Wanted) {
        if (Some(sum.nulls), Some(u64::from(sum.crc32))) != (wanted.nulls, wanted.crc32) {
            let ours: Vec<String> = sum.head.iter().take(5).map(|value| format!("{value:02x?}")).collect();
            self.wrong.push(format!(
                "{name}: column {}: nulls {} (expected {:?}), crc {} (expected {:?})\n  ours {}\n  expected {}",
                sum.path,
                sum.nulls,
                wanted.nulls,
                sum.crc32,
                wanted.crc32,
                ours.join(" "),
                wanted.head.as_array().map_or(String::new(), |head| format!("{:?}", &head[..head.len().min(5)])),
            ));
        }
    }

    pub(crate) fn outcome(mut self) -> Outcome {
        if self.columns == 0 {
            self.wrong.push("nothing was compared".to_owned());
        }
        Outcome {
            summary: format!(
                "{} files, {} readings of flat columns, {:?}, equal to parquet-rs: {:?}",
                self.files, self.columns, self.by_others, self.metadata
            ),
            wrong: self.wrong,
            evidence: self.evidence,
        }
    }
}

/// What a column should hold.
#[derive(Debug)]
struct Wanted {
    nulls: Option<u64>,
    crc32: Option<u64>,
    head: Value,
}

fn read_equal(writer: &str) {
    let number = WRITERS.iter().position(|(name, _)| *name == writer).unwrap();
    if let Some(outcome) = outcome(number) {
        outcome.assert_right(writer);
    }
}

#[test]
fn files_by_pyarrow_read_equal() {
    read_equal("pyarrow");
}

#[test]
fn files_by_duckdb_read_equal() {
    read_equal("duckdb");
}

#[test]
fn files_by_polars_read_equal() {
    read_equal("polars");
}

#[test]
fn files_by_fastparquet_read_equal() {
    read_equal("fastparquet");
}

#[test]
fn files_by_parquet_rs_read_equal() {
    read_equal(PARQUET_RS);
}
