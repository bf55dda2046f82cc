//! Files whose schemas differ, read as one table.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use marquetry_base::Bytes;
use marquetry_conformance::conformed::{Part, conformed_sums};
use marquetry_conformance::hostile::Manner;
use marquetry_conformance::records::{FieldSum, field_sums};
use marquetry_conformance::{canonical, files};
use marquetry_parquet::batch::Layout;
use marquetry_parquet::read::ReadOptions;
use marquetry_parquet::schema::{DifferenceKind, PhysicalType, Plan, Schema, Unified, Union};

fn part(path: &Path) -> Part {
    let bytes = Bytes::from(std::fs::read(path).unwrap());
    let metadata = canonical::metadata(&bytes, Manner::KIND).unwrap();
    (bytes, metadata)
}

fn union<'a>(parts: impl IntoIterator<Item = &'a Part>) -> Unified {
    let mut union = Union::new();
    for (_, metadata) in parts {
        union.add(Arc::clone(&metadata.schema));
    }
    union.plan().at_once().unwrap()
}

/// What the parts should be: the sums of the whole table, and which of its fields have other types in the union, for decimals have
/// many carriers.
fn expected(whole: &Part, schema: &Schema) -> Vec<(FieldSum, bool)> {
    let sums = field_sums(&whole.0, &whole.1, ReadOptions::default(), Manner::KIND).unwrap();
    let types = |schema: &Schema, node| -> Vec<PhysicalType> {
        schema.leaves_of(node).map(|leaf| schema.leaves()[leaf].physical_type).collect()
    };
    let nodes = schema.children(0).zip(whole.1.schema.children(0));
    let is_same = nodes.map(|(one, other)| types(schema, one) == types(&whole.1.schema, other));
    sums.into_iter().zip(is_same).collect()
}

fn random_cases(python: &Path, name: &str, first: u64, count: u64) {
    let folder = files::root().join("target/conformance").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let status = Command::new(python)
        .arg(files::root().join("dev/conformance/generate_union.py"))
        .arg(&folder)
        .args([first.to_string(), count.to_string()])
        .status();
    assert!(status.is_ok_and(|status| status.success()));
    let (mut wrong, mut missing, mut widened) = (Vec::new(), 0, 0);
    for case in first..first + count {
        let case = folder.join(format!("case_{case:06}"));
        let (whole, parts): (Vec<PathBuf>, Vec<PathBuf>) =
            files::parquet_files(&case).into_iter().partition(|path| path.ends_with("whole.parquet"));
        let parts: Vec<Part> = parts.iter().map(|path| part(path)).collect();
        let unified = union(&parts);
        for difference in &unified.differences {
            match difference.kind {
                DifferenceKind::Missing { .. } => missing += 1,
                DifferenceKind::Widened { .. } => widened += 1,
                _ => wrong.push(format!("{}: {difference:?}", case.display())),
            }
        }
        let whole = part(&whole[0]);
        let expected = expected(&whole, &unified.schema);
        // The union with the whole, whose decimals have one carrier.
        let mut wider = Union::new();
        wider.add(Arc::clone(&unified.schema));
        wider.add(Arc::clone(&whole.1.schema));
        let wider = wider.plan().at_once().unwrap().schema;
        let expected_wider = conformed_sums(&[whole], &wider, &ReadOptions::default(), Manner::KIND).unwrap();
        for (batch_rows, layout, keep_dictionaries, manner) in [
            (8192, Layout::Spaced, false, Manner::KIND),
            (5, Layout::Dense, false, Manner::USUAL),
            (1000, Layout::Spaced, true, Manner::DISORDERLY),
            (6, Layout::Dense, true, Manner::KIND),
        ] {
            let options = ReadOptions { batch_rows, layout, keep_dictionaries, ..ReadOptions::default() };
            let mut sums = |schema| match conformed_sums(&parts, schema, &options, manner) {
                Ok(sums) => sums,
                Err(error) => {
                    wrong.push(format!("{}: {error:?}", case.display()));
                    Vec::new()
                }
            };
            let (found, found_wider) = (sums(&unified.schema), sums(&wider));
            let is_equal = found.len() == expected.len()
                && found.iter().zip(&expected).all(|(found, (sum, is_same))| !is_same || found == sum);
            if !is_equal || found_wider != expected_wider {
                wrong
                    .push(format!("{} in batches of {batch_rows}: {found:#?} {expected:#?}", case.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong[..wrong.len().min(5)].join("\n"));
    assert!(missing > count && widened > count / 2, "{missing} missing, {widened} widened");
}

#[test]
fn random_unions_are_what_python_makes_of_them() {
    let Some(python) = files::python() else { return };
    random_cases(&python, "union", 0, 100);
}

#[test]
#[ignore = "soak: 3,000 random unions take some minutes"]
fn three_thousand_random_unions() {
    let Some(python) = files::python() else { return };
    for batch in 0..6 {
        random_cases(&python, "union-soak", 1000 + batch * 500, 500);
    }
}

/// However lists and maps are spelt, and variants shredded: the union of one file has the format's own spelling, and the same values.
#[test]
fn the_corpus_in_the_usual_spelling_is_the_same() {
    let Some(corpus) = files::corpus() else { return };
    let mut read = 0;
    for folder in ["data", "shredded_variant", "variant"] {
        for path in files::parquet_files(&corpus.join("parquet-testing").join(folder)) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let bytes = Bytes::from(std::fs::read(&path).unwrap());
            // Large ones, and those that others test the errors of.
            let Ok(metadata) = canonical::metadata(&bytes, Manner::KIND) else { continue };
            if bytes.len() > 1 << 20 || metadata.schema.leaves().is_empty() {
                continue;
            }
            let one = (bytes, metadata);
            let unified = union([&one]);
            if unified.differences.iter().any(|difference| !difference.kind.is_bridged()) {
                continue;
            }
            let options = ReadOptions { batch_rows: 100, ..ReadOptions::default() };
            let Ok(expected) = field_sums(&one.0, &one.1, options.clone(), Manner::KIND) else { continue };
            let found = conformed_sums(&[one], &unified.schema, &options, Manner::KIND).unwrap();
            assert_eq!(found, expected, "{name}");
            read += 1;
        }
    }
    assert!(read > 150, "{read}");
}
