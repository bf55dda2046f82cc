//! Nested files by other writers read equal to pyarrow, as records and as columns.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use marquetry_base::{Bytes, ErrorKind, Limits, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical::{self, FILE};
use marquetry_conformance::craft::*;
use marquetry_conformance::files;
use marquetry_conformance::hostile::{self, Manner};
use marquetry_conformance::records::{FieldSum, array_sums, check_batch, field_sums, read_all};
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::read::{BatchReader, Layout, ReadOptions};
use serde_json::Value;

/// Files up to this size are read in the hardest manner too, others in the usual one.
const DISORDERLY_FILE_BYTES_MAX: usize = 20_000;

/// Files that pyarrow does not read, or reads otherwise, and what is expected instead.
const NOT_AS_PYARROW: &[(&str, Instead)] = &[
    // README of parquet-testing: the CRC is wrong.
    ("datapage_v1-corrupt-checksum.parquet", Instead::Error(ErrorKind::Corrupt)),
    ("rle-dict-uncompressed-corrupt-checksum.parquet", Instead::Error(ErrorKind::Corrupt)),
    // pyarrow does not take two keys of 1 GiB each; they are beyond the default limits here, and read in the soak tests.
    ("large_string_map.brotli.parquet", Instead::Error(ErrorKind::LimitExceeded)),
    // pyarrow refuses map keys that may be null. As DuckDB reads it: {parent=another, name=report}.
    (
        "incorrect_map_schema.parquet",
        Instead::Heads(&[("my_map", &["<706172656e74,616e6f74686572,6e616d65,7265706f7274,>"])]),
    ),
    // pyarrow reads a map without values as a list; the format calls it a set of keys. As the file's README has it.
    (
        "map_no_value.parquet",
        Instead::Heads(&[
            (
                "my_map",
                &[
                    "<01000000,n,02000000,n,03000000,n,>",
                    "<04000000,n,05000000,n,06000000,n,>",
                    "<07000000,n,08000000,n,09000000,n,>",
                ],
            ),
            (
                "my_map_no_v",
                &[
                    "<01000000,02000000,03000000,>",
                    "<04000000,05000000,06000000,>",
                    "<07000000,08000000,09000000,>",
                ],
            ),
            (
                "my_list",
                &[
                    "[01000000,02000000,03000000,]",
                    "[04000000,05000000,06000000,]",
                    "[07000000,08000000,09000000,]",
                ],
            ),
        ]),
    ),
];

/// What is expected of a file whose reading by pyarrow is not.
#[derive(Debug)]
enum Instead {
    /// An error of this kind.
    Error(ErrorKind),
    /// All rows in clear, field by field.
    Heads(&'static [(&'static str, &'static [&'static str])]),
}

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}

/// What the oracle says of each file.
fn expect(python: &Path, folder: &Path, parquet: &[PathBuf]) -> Vec<Value> {
    let list = folder.join("nested.list");
    let lines: Vec<String> = parquet.iter().map(|path| path.display().to_string()).collect();
    std::fs::write(&list, lines.join("\n")).unwrap();
    let out = folder.join("nested.json");
    run(Command::new(python)
        .arg(files::root().join("dev/conformance/expect_nested.py"))
        .arg(&out)
        .arg(format!("@{}", list.display())));
    let all: Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
    let all = all.as_array().unwrap().clone();
    assert_eq!(all.len(), parquet.len());
    all
}

/// An empty folder of the tests' own.
fn folder(name: &str) -> PathBuf {
    let folder = files::root().join("target/conformance").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// What came of the files.
#[derive(Default)]
struct Tally {
    files: usize,
    readings: usize,
    fields: usize,
    wrong: Vec<String>,
}

impl Tally {
    fn compare(&mut self, path: &Path, expected: &Value) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
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
        for (batch_rows, manner) in [
            (8192, Manner::KIND),
            (1000, Manner::KIND),
            (7, Manner::USUAL),
            (1, Manner::KIND),
            (1000, if small { Manner::DISORDERLY } else { Manner::USUAL }),
        ] {
            if batch_rows < 1000 && metadata.rows > 20_000 {
                continue;
            }
            let layout = if batch_rows == 7 { Layout::Dense } else { Layout::Spaced };
            let options = ReadOptions { batch_rows, layout, ..ReadOptions::default() };
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
            let options = ReadOptions { leaves: Some(leaves), batch_rows, ..ReadOptions::default() };
            let found = field_sums(&bytes, &metadata, options.clone(), manner);
            self.check(&what, found, &projection["fields"]);
            let found = array_sums(&bytes, &metadata, options, manner);
            self.check(&format!("{what}, as arrays"), found, &projection["fields"]);
        }
        if let Err(error) = columns_alone(&bytes, &metadata) {
            self.failed(&name, &format!("{error:?}"));
        }
    }

    fn compare_instead(&mut self, name: &str, bytes: &Bytes, instead: &Instead) {
        for (batch_rows, manner) in [(8192, Manner::KIND), (1, Manner::USUAL)] {
            let options = ReadOptions { batch_rows, ..ReadOptions::default() };
            self.readings += 1;
            let found = read_all(bytes, options, manner);
            let same = match (&found, instead) {
                (Err(error), Instead::Error(kind)) => error.kind() == *kind,
                (Ok(found), Instead::Heads(expected)) => {
                    let found = found.iter().map(|field| (&*field.name, field.head.iter().map(|row| &**row)));
                    found
                        .map(|(name, head)| (name, head.collect()))
                        .eq(expected.iter().map(|(name, head)| (*name, head.to_vec())))
                }
                _ => false,
            };
            if !same {
                self.failed(name, &format!("{found:?}, where {instead:?} is expected"));
            }
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

    fn report(self, what: &str) {
        println!("{what}: {} files, {} readings, {} sums of fields", self.files, self.readings, self.fields);
        let wrong = self.wrong;
        assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong[..wrong.len().min(25)].join("\n"));
        assert!(self.fields > 0, "nothing was compared");
    }
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

#[test]
fn the_corpus_reads_equal() {
    let (Some(python), Some(corpus)) = (files::python(), files::corpus()) else { return };
    let mut parquet = Vec::new();
    for part in ["data", "data/geospatial", "shredded_variant", "variant"] {
        parquet.extend(files::parquet_files(&corpus.join("parquet-testing").join(part)));
    }
    parquet.extend(files::parquet_files(&corpus.join("real")));
    let mut tally = Tally::default();
    let (mut compared, mut instead) = (Vec::new(), 0);
    for path in parquet {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        match NOT_AS_PYARROW.iter().find(|(known, _)| *known == name) {
            Some((_, other)) => {
                tally.compare_instead(&name, &Bytes::from(std::fs::read(path).unwrap()), other);
                instead += 1;
            }
            None => compared.push(path),
        }
    }
    assert_eq!(instead, NOT_AS_PYARROW.len(), "a file that is no longer there");
    let expected = expect(&python, &folder("nested-corpus"), &compared);
    for (path, expected) in compared.iter().zip(&expected) {
        tally.compare(path, expected);
    }
    tally.report("corpus");
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

#[test]
fn legacy_shapes_mean_what_pyarrow_takes_them_for() {
    let Some(python) = files::python() else { return };
    let folder = folder("nested-legacy");
    let paths: Vec<PathBuf> = legacy_shapes()
        .into_iter()
        .map(|(name, children, elements)| {
            let path = folder.join(format!("{name}.parquet"));
            std::fs::write(&path, legacy_file(children, &elements)).unwrap();
            path
        })
        .collect();
    let mut tally = Tally::default();
    for (path, expected) in paths.iter().zip(&expect(&python, &folder, &paths)) {
        tally.compare(path, expected);
    }
    tally.report("legacy shapes");
}

/// Two keys of 1 GiB each, all `a`; README of parquet-testing.
#[test]
#[ignore = "soak: 2 GiB of strings"]
fn keys_of_a_gibibyte() {
    const KEY_BYTES: usize = 1 << 30;
    let Some(corpus) = files::corpus() else { return };
    let bytes = std::fs::read(corpus.join("parquet-testing/data/large_string_map.brotli.parquet")).unwrap();
    let bytes = Bytes::from(bytes);
    let metadata = canonical::metadata(&bytes, Manner::KIND).unwrap();
    let options = ReadOptions { limits: Limits::TRUSTED, ..ReadOptions::default() };
    let codecs = Arc::new(StandardCodecs::default());
    let mut reader = BatchReader::new(FILE, Arc::clone(&metadata), codecs, options).unwrap();
    let mut keys = 0;
    hostile::run(&mut reader, FILE, &bytes, Manner::USUAL, |batch| {
        check_batch(&metadata.schema, &batch);
        for index in 0..batch.columns[0].values.len() {
            canonical::with_bytes(&batch.columns[0].values, index, |key| {
                assert!(key.len() == KEY_BYTES && key.iter().all(|&byte| byte == b'a'));
                keys += 1;
            });
            canonical::with_bytes(&batch.columns[1].values, index, |value| assert_eq!(value, [1, 0, 0, 0]));
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(keys, 2);
}

fn random_cases(python: &Path, name: &str, first: u64, count: u64) {
    let folder = folder(name);
    run(Command::new(python)
        .arg(files::root().join("dev/conformance/generate_nested.py"))
        .arg(&folder)
        .args([first.to_string(), count.to_string()]));
    let parquet = files::parquet_files(&folder.join("nested"));
    // DuckDB has internal errors with a few.
    assert!(parquet.len() as u64 * 100 >= count * 99, "only {} files of {count}", parquet.len());
    let mut tally = Tally::default();
    for (path, expected) in parquet.iter().zip(&expect(python, &folder, &parquet)) {
        tally.compare(path, expected);
    }
    tally.report(&format!("cases {first}..{}", first + count));
}

#[test]
fn random_schemas_read_equal() {
    let Some(python) = files::python() else { return };
    random_cases(&python, "nested", 0, 150);
}

#[test]
#[ignore = "soak: 10,000 random schemas take half an hour"]
fn ten_thousand_random_schemas_read_equal() {
    let Some(python) = files::python() else { return };
    for batch in 0..20 {
        random_cases(&python, "nested-soak", 1000 + batch * 500, 500);
    }
}
