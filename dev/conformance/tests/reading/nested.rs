//! Nested files by other writers read equal to pyarrow, as records and as columns.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, OnceLock};

use marquetry_base::{Bytes, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical::{self, FILE};
use marquetry_conformance::craft::*;
use marquetry_conformance::features::{self, Evidence, Source};
use marquetry_conformance::files;
use marquetry_conformance::hostile::{self, Manner};
use marquetry_conformance::records::{FieldSum, array_sums, field_sums};
use marquetry_parquet::batch::Layout;
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::read::{BatchReader, ReadOptions};
use serde_json::Value;

use crate::{EXPECT_NESTED, Outcome, expect, file_name, folder, run};

/// Files up to this size are read in the hardest manner too, others in the usual one.
const DISORDERLY_FILE_BYTES_MAX: usize = 20_000;

/// Files up to this size are also read a byte and a unit of work at a time.
const ONE_BYTE_FILE_BYTES_MAX: usize = 5_000;

/// What came of the files.
pub(crate) struct Tally {
    source: Source,
    files: usize,
    readings: usize,
    fields: usize,
    pub(crate) wrong: Vec<String>,
    evidence: Evidence,
}

impl Tally {
    pub(crate) fn new(source: Source) -> Tally {
        Tally { source, files: 0, readings: 0, fields: 0, wrong: Vec::new(), evidence: Evidence::default() }
    }

    /// Compares a file with what the oracle says of it. Files that are equal become evidence.
    pub(crate) fn compare(&mut self, path: &Path, expected: &Value) {
        let wrong_before = self.wrong.len();
        self.read(path, expected);
        if self.wrong.len() > wrong_before {
            return;
        }
        let name = file_name(path);
        let bytes = Bytes::from(std::fs::read(path).unwrap());
        let seen = canonical::metadata(&bytes, Manner::KIND)
            .and_then(|metadata| features::observe(&bytes, &metadata));
        match seen {
            Ok(seen) => self.evidence.add(self.source, &name, seen),
            Err(error) => self.failed(&name, &format!("its pages cannot be scanned: {error:?}")),
        }
    }

    fn read(&mut self, path: &Path, expected: &Value) {
        let name = file_name(path);
        self.files += 1;
        let bytes = Bytes::from(std::fs::read(path).unwrap());
        if let Some(error) = expected["error"].as_str() {
            return self.failed(&name, &format!("pyarrow does not read it: {error}"));
        }
        let metadata = match canonical::metadata(&bytes, Manner::KIND) {
            Ok(metadata) => metadata,
            Err(error) => return self.wrong.push(format!("{name}: {error:?}")),
        };
        let fields = &expected["fields"];
        let small = bytes.len() <= DISORDERLY_FILE_BYTES_MAX;
        let tiny = bytes.len() <= ONE_BYTE_FILE_BYTES_MAX;
        for (batch_rows, manner) in [
            (8192, Manner::KIND),
            (1000, Manner::KIND),
            (7, Manner::USUAL),
            (1, Manner::KIND),
            (1000, if small { Manner::DISORDERLY } else { Manner::USUAL }),
            (300, if tiny { Manner::ONE_BYTE } else { Manner::USUAL }),
        ] {
            if batch_rows < 1000 && metadata.rows > 20_000 {
                continue;
            }
            let layout = if batch_rows == 7 { Layout::Dense } else { Layout::Spaced };
            let keep_dictionaries = batch_rows == 1000;
            let options = ReadOptions { batch_rows, layout, keep_dictionaries, ..ReadOptions::default() };
            let what = format!("{name} in batches of {batch_rows}, budgets of {}", manner.budget);
            self.check(&what, field_sums(&bytes, &metadata, options.clone(), manner), fields);
            if batch_rows != 1 && manner.budget > 0 {
                let what = format!("{name} as arrays of {batch_rows}");
                self.check(&what, array_sums(&bytes, &metadata, options, manner), fields);
            }
        }
        for (number, projection) in expected["projections"].as_array().into_iter().flatten().enumerate() {
            let leaves: Vec<usize> = projection["leaves"]
                .as_array()
                .unwrap()
                .iter()
                .map(|leaf| usize::try_from(leaf.as_u64().unwrap()).unwrap())
                .collect();
            let batch_rows = [8192, 7, 1000, 100][number % 4];
            let manner = if number % 2 == 0 { Manner::KIND } else { Manner::USUAL };
            let what = format!("{name}, leaves {leaves:?}, in batches of {batch_rows}");
            let wrong_before = self.wrong.len();
            let cuts = if cuts_a_field(&metadata, &leaves) { "fields of nested columns" } else { "columns" };
            let options = ReadOptions { leaves: Some(leaves), batch_rows, ..ReadOptions::default() };
            let found = field_sums(&bytes, &metadata, options.clone(), manner);
            self.check(&what, found, &projection["fields"]);
            let found = array_sums(&bytes, &metadata, options, manner);
            self.check(&format!("{what}, as arrays"), found, &projection["fields"]);
            if self.wrong.len() == wrong_before {
                self.evidence.add(self.source, &name, [(features::SELECT, cuts.to_owned())]);
            }
        }
        if let Err(error) = columns_alone(&bytes, &metadata) {
            self.failed(&name, &format!("{error:?}"));
        }
    }

    fn check(&mut self, what: &str, found: Result<Vec<FieldSum>>, expected: &Value) {
        self.readings += 1;
        let found = match found {
            Ok(found) => found,
            Err(error) => return self.failed(what, &format!("{error:?}")),
        };
        let expected = expected.as_array().unwrap();
        if found.len() != expected.len() {
            return self.failed(what, &format!("{} fields, pyarrow has {}", found.len(), expected.len()));
        }
        for (found, expected) in found.iter().zip(expected) {
            if let Some(error) = expected["error"].as_str() {
                self.failed(what, &format!("no other reader reads {}: {error}", found.name));
                continue;
            }
            self.fields += 1;
            let same = Some(&*found.name) == expected["name"].as_str()
                && Some(u64::from(found.crc32)) == expected["crc32"].as_u64();
            if !same {
                let expected_head: Vec<&str> =
                    expected["head"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
                self.failed(
                    what,
                    &format!(
                        "field {} is another:\n  ours     {}\n  expected {}",
                        found.name,
                        found.head.join("\n           "),
                        expected_head.join("\n           ")
                    ),
                );
            }
        }
    }

    fn failed(&mut self, what: &str, why: &str) {
        self.wrong.push(format!("{what}: {why}"));
    }

    pub(crate) fn outcome(mut self) -> Outcome {
        if self.fields == 0 {
            self.wrong.push("nothing was compared".to_owned());
        }
        let summary =
            format!("{} files, {} readings, {} sums of fields", self.files, self.readings, self.fields);
        Outcome { summary, wrong: self.wrong, evidence: self.evidence }
    }
}

/// Whether some column loses a part of its leaves, and not all.
fn cuts_a_field(metadata: &FileMetaData, leaves: &[usize]) -> bool {
    let schema = &metadata.schema;
    schema.children(0).any(|child| {
        let (mut wanted, mut left_out) = (false, false);
        for leaf in schema.leaves_of(child) {
            if leaves.contains(&leaf) { wanted = true } else { left_out = true }
        }
        wanted && left_out
    })
}

/// What one leaf holds: levels, and the bytes of its values.
#[derive(Debug, Default, PartialEq)]
struct Column {
    definition: Vec<u8>,
    repetition: Vec<u8>,
    rows: usize,
    values: Vec<u8>,
}

/// Each leaf read alone is the leaf read with all others.
fn columns_alone(bytes: &Bytes, metadata: &Arc<FileMetaData>) -> Result<()> {
    let leaves = metadata.schema.leaves().len();
    let together = columns(bytes, metadata, None, 1000)?;
    for leaf in (0..leaves).step_by(leaves.div_ceil(20)) {
        let alone = columns(bytes, metadata, Some(vec![leaf]), 300)?;
        assert_eq!(alone[0], together[leaf], "leaf {leaf} alone");
    }
    Ok(())
}

fn columns(
    bytes: &Bytes,
    metadata: &Arc<FileMetaData>,
    leaves: Option<Vec<usize>>,
    batch_rows: usize,
) -> Result<Vec<Column>> {
    let options = ReadOptions { leaves, batch_rows, ..ReadOptions::default() };
    let codecs = Arc::new(StandardCodecs::default());
    let mut reader = BatchReader::new(FILE, Arc::clone(metadata), codecs, options)?;
    let mut all: Vec<Column> = Vec::new();
    hostile::run(&mut reader, FILE, bytes, Manner::KIND, |batch| {
        all.resize_with(batch.columns.len(), Column::default);
        for (all, column) in all.iter_mut().zip(&batch.columns) {
            all.rows += column.rows;
            if let Some(levels) = &column.levels {
                all.definition.extend(&*levels.definition);
                all.repetition.extend(levels.repetition.iter().flat_map(|levels| levels.iter()));
            }
            for index in 0..column.values.len() {
                canonical::with_bytes(&column.values, index, |bytes| all.values.extend(bytes));
            }
        }
        Ok(())
    })?;
    all.resize_with(leaves_of(metadata, &all), Column::default);
    Ok(all)
}

/// Columns there must be, also of a file without rows.
fn leaves_of(metadata: &FileMetaData, found: &[Column]) -> usize {
    if found.is_empty() { metadata.schema.leaves().len() } else { found.len() }
}

/// The legacy shapes of lists and maps, and fields without annotation: each with the levels of its leaves.
fn legacy_shapes() -> Vec<(&'static str, i32, Vec<Struct>)> {
    let annotated = |name: &str, repetition, converted| {
        let mut group = group(name, repetition, 1);
        group.set(6, V::I32(converted));
        group
    };
    let of_list = |rest: Vec<Struct>| [vec![annotated("my_list", 1, LIST)], rest].concat();
    let int = |name: &str, repetition| leaf(name, repetition, INT32);
    vec![
        ("repeated_leaf", 1, vec![int("num", 2)]),
        ("repeated_group", 1, vec![group("g", 2, 2), int("num", 0), int("str", 1)]),
        ("repeated_in_struct", 1, vec![group("s", 1, 1), int("num", 2)]),
        ("repeated_in_repeated", 1, vec![group("g", 2, 1), int("num", 2)]),
        ("rule_1", 1, of_list(vec![int("element", 2)])),
        ("rule_2", 1, of_list(vec![group("element", 2, 2), int("str", 0), int("num", 1)])),
        ("rule_3", 1, of_list(vec![annotated("array", 2, LIST), int("array", 2)])),
        ("rule_3_bare", 1, of_list(vec![group("list", 2, 1), int("item", 2)])),
        ("rule_4_array", 1, of_list(vec![group("array", 2, 1), int("str", 0)])),
        ("rule_4_tuple", 1, of_list(vec![group("my_list_tuple", 2, 1), int("str", 1)])),
        ("rule_5", 1, of_list(vec![group("element", 2, 1), int("str", 0)])),
        ("hive_bag", 1, of_list(vec![group("bag", 2, 1), int("array_element", 1)])),
        (
            "list_of_list",
            1,
            of_list(vec![
                group("list", 2, 1),
                annotated("element", 0, LIST),
                group("list", 2, 1),
                int("element", 1),
            ]),
        ),
        ("map", 1, vec![annotated("m", 1, MAP), group("map", 2, 2), int("key", 0), int("value", 1)]),
        ("map_key_value_inside", 1, {
            let mut entries = annotated("key_value", 2, MAP_KEY_VALUE);
            entries.set(5, V::I32(2));
            vec![annotated("m", 0, MAP), entries, int("k", 0), int("v", 0)]
        }),
        (
            "map_key_value",
            1,
            vec![annotated("m", 1, MAP_KEY_VALUE), group("map", 2, 2), int("key", 0), int("value", 1)],
        ),
    ]
}

/// Two rows: one of two elements at each level of lists, one that is null or empty.
fn legacy_file(children: i32, elements: &[Struct]) -> Bytes {
    let table = Table::nested(children, elements.to_vec());
    let metadata = canonical::metadata(&table.write(), Manner::KIND).unwrap();
    let chunks = metadata.schema.leaves().iter().map(|leaf| {
        let max = u32::from(leaf.definition_max);
        let (repetition, definition): (&[u32], &[u32]) = match leaf.repetition_max {
            1 => (&[0, 1, 0], &[max, max, 0]),
            2 => (&[0, 2, 1, 2, 0], &[max, max, max, max, 0]),
            other => panic!("{other} lists"),
        };
        let values: Vec<i32> = (1..).take(definition.len() - 1).collect();
        let width = |max: u32| u32::BITS - max.leading_zeros();
        let levels = [
            Levels { width: width(leaf.repetition_max.into()), levels: repetition },
            Levels { width: width(max), levels: definition },
        ];
        let entries = i64::try_from(definition.len()).unwrap();
        Chunk::new(entries, [Page::nested(&levels, PLAIN, &plain_i32(&values))])
    });
    table.clone().group(2, chunks.collect::<Vec<_>>()).write()
}

/// Compares them, once. `None` without pyarrow.
pub(crate) fn legacy_outcome() -> Option<&'static Outcome> {
    static OUTCOME: OnceLock<Option<Outcome>> = OnceLock::new();
    // Asked by every test, so that each is on record that does without.
    let python = files::python()?;
    let compare = || {
        let folder = folder("nested-legacy");
        let mut paths = Vec::new();
        for (name, children, elements) in legacy_shapes() {
            let path = folder.join(format!("{name}.parquet"));
            std::fs::write(&path, legacy_file(children, &elements)).unwrap();
            paths.push(path);
        }
        let mut tally = Tally::new(Source::Crafted);
        for (path, expected) in paths.iter().zip(&expect(&python, EXPECT_NESTED, &folder, &paths)) {
            tally.compare(path, expected);
        }
        Some(tally.outcome())
    };
    OUTCOME.get_or_init(compare).as_ref()
}

#[test]
fn legacy_shapes_mean_what_pyarrow_takes_them_for() {
    if let Some(outcome) = legacy_outcome() {
        outcome.assert_right("legacy shapes");
    }
}

/// Random cases, by their numbers, of which each is a seed.
fn random_cases(python: &Path, name: &str, first: u64, count: u64) -> Outcome {
    let folder = folder(name);
    run(Command::new(python)
        .arg(files::root().join("dev/conformance/generate_nested.py"))
        .arg(&folder)
        .args([first.to_string(), count.to_string()]));
    let parquet = files::parquet_files(&folder.join("nested"));
    // DuckDB has internal errors with a few.
    assert!(parquet.len() as u64 * 100 >= count * 99, "only {} files of {count}", parquet.len());
    let mut tally = Tally::new(Source::Pyarrow);
    for (path, expected) in parquet.iter().zip(&expect(python, EXPECT_NESTED, &folder, &parquet)) {
        tally.compare(path, expected);
    }
    tally.outcome()
}

/// How to see a case again, whose number is in its file's name.
const AGAIN: &str = "random cases (one again: MARQUETRY_CASES=NUMBER..NUMBER+1)";

/// The cases that `MARQUETRY_CASES` asks for, `FIRST..END`, instead of those of every test run.
fn asked_for() -> Option<(u64, u64)> {
    let asked = std::env::var("MARQUETRY_CASES").ok()?;
    let (first, end) = asked.split_once("..").expect("MARQUETRY_CASES=FIRST..END");
    let (first, end): (u64, u64) = (first.parse().unwrap(), end.parse().unwrap());
    Some((first, end - first))
}

#[test]
fn random_schemas_read_equal() {
    let Some(python) = files::python() else { return };
    let (first, count) = asked_for().unwrap_or((0, 150));
    random_cases(&python, "nested", first, count).assert_right(AGAIN);
}

#[test]
#[ignore = "soak: 10,000 random schemas take half an hour"]
fn ten_thousand_random_schemas_read_equal() {
    let Some(python) = files::python() else { return };
    let mut all = Outcome::default();
    for first in (1000..11_000).step_by(500) {
        let outcome = random_cases(&python, "nested-soak", first, 500);
        println!("from {first}: {}; wrong: {:?}", outcome.summary, outcome.files_with_faults());
        all.add(&format!("from {first}"), outcome);
    }
    all.assert_right(AGAIN);
}
