//! The files of others, written again, are read by pyarrow and parquet-rs as before: with all logical types, and all that schemas are made of.

use std::path::Path;
use std::sync::OnceLock;

use marquetry_base::{Bytes, ErrorKind};
use marquetry_conformance::canonical;
use marquetry_conformance::craft::*;
use marquetry_conformance::files;
use marquetry_conformance::hostile::Manner;
use marquetry_parquet::batch::Layout;
use marquetry_parquet::read::ReadOptions;
use marquetry_parquet::schema::Schema;
use marquetry_parquet::write::WriteOptions;

use crate::others::{Outcome, by_pyarrow};
use crate::rewritten::rewrite;

/// Larger files are left to others' tests: pyarrow takes seconds for their records.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// What pyarrow does not read of these files, whoever wrote them, or reads as something else: a part of the name, and why.
const NOT_BY_PYARROW: &[(&str, &str)] = &[
    ("spark-nested_legacy", "a list that is repeated itself, which it refuses"),
    ("incorrect_map_schema", "keys that may be null, which it refuses"),
    ("map_no_value", "a map of keys alone, which it reads as a list"),
];

/// Files of the corpus and those that are kept, written again. `None` without pyarrow or the corpus.
pub(crate) fn outcome() -> Option<&'static Outcome> {
    static OUTCOME: OnceLock<Option<Outcome>> = OnceLock::new();
    // Asked by every test, so that each is on record that does without.
    let (corpus, python) = files::corpus().zip(files::python())?;
    OUTCOME.get_or_init(|| Some(made(&corpus, &python))).as_ref()
}

fn made(corpus: &Path, python: &Path) -> Outcome {
    let folder = files::root().join("target/conformance/rewritten");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let kept = files::root().join("dev/conformance/writers/files");
    let mut folders: Vec<_> = std::fs::read_dir(&kept).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    folders.extend(
        ["data", "data/geospatial", "shredded_variant"].map(|name| corpus.join("parquet-testing").join(name)),
    );
    let mut paths = Vec::new();
    for path in folders.iter().filter(|path| path.is_dir()).flat_map(|folder| files::parquet_files(folder)) {
        let from = path.strip_prefix(&kept).or(path.strip_prefix(corpus)).unwrap_or(&path);
        let name = from.to_string_lossy().replace('/', "-");
        if std::fs::metadata(&path).unwrap().len() > FILE_BYTES_MAX
            || NOT_BY_PYARROW.iter().any(|(part, _)| name.contains(part))
        {
            continue;
        }
        let bytes = Bytes::from(std::fs::read(&path).unwrap());
        if canonical::metadata(&bytes, Manner::KIND).is_err() {
            continue;
        }
        let read = ReadOptions { layout: Layout::Dense, ..ReadOptions::default() };
        match rewrite(&bytes, read, WriteOptions::default(), Manner::KIND) {
            Ok(again) => {
                let path = folder.join(name);
                std::fs::write(&path, again).unwrap();
                paths.push(path);
            }
            // What is not read is another test's matter.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::Unsupported | ErrorKind::Corrupt | ErrorKind::LimitExceeded
                ) => {}
            Err(error) => panic!("{name}: {error}"),
        }
    }
    by_pyarrow(python, &folder, &paths)
}

#[test]
fn files_of_others_written_again() {
    let Some(outcome) = outcome() else { return };
    println!(
        "{} files, {} fields equal to pyarrow, {} columns to parquet-rs",
        outcome.files, outcome.fields, outcome.by_parquet_rs
    );
    outcome.assert_right();
    assert!(outcome.files > 100, "{}", outcome.files);
}

#[test]
fn annotations_are_written_as_old_as_they_were() {
    // TIMESTAMP_MICROS, and that with its `logicalType`: DuckDB and Polars take the two for different types.
    let of_unit = V::Struct(Struct::of([(2, V::Struct(Struct::default()))]));
    let newer = Struct::of([(8, V::Struct(Struct::of([(1, V::Bool(true)), (2, of_unit)])))]);
    let older = Column::required("older", INT64).with(6, V::I32(10));
    let both = Column::required("both", INT64).with(6, V::I32(10)).with(10, V::Struct(newer));
    let page = Page::data(3, PLAIN, plain_i64(&[1, 2, 3]));
    let chunks = [(); 2].map(|()| Chunk::new(3, [page.clone()]));
    let bytes = Table::new([older, both]).group(3, chunks).write();
    let again = rewrite(&bytes, ReadOptions::default(), WriteOptions::default(), Manner::KIND).unwrap();
    let [given, written] =
        [&bytes, &again].map(|bytes| canonical::metadata(bytes, Manner::KIND).unwrap().schema.clone());
    let annotated = |schema: &Schema| {
        let nodes = schema.nodes().iter().skip(1);
        nodes
            .map(|node| (node.logical_type.clone(), node.converted_type, node.is_older_only))
            .collect::<Vec<_>>()
    };
    assert_eq!(annotated(&written), annotated(&given));
    assert_eq!(annotated(&written).iter().map(|node| node.2).collect::<Vec<_>>(), [true, false]);
    assert_eq!(annotated(&written)[0].0, annotated(&written)[1].0, "they mean the same");
}
