//! The Parquet files of `shredded_variant`, put together again, against the variants that they were made of.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use marquetry_base::{Bytes, Error, ErrorKind, Object, Result};
use marquetry_parquet::batch::Array;
use marquetry_parquet::read::{BatchReader, FooterReader, ReadOptions};
use marquetry_parquet::variant::{Metadata, Reassembler, Variant, VariantColumns};

use crate::common::{NoCodecs, products};
use crate::json::Json;
use crate::{LIMITS, corpus, with_metadata};

/// Files that are not valid, "and implementations can choose to error, or read the shredded value": this one refuses those
/// where a field is both shredded and not.
const REFUSED: [u64; 2] = [43, 125];

/// What a file's column `var` holds, a row each, in Iceberg's words.
fn rows(file: &Path, options: &ReadOptions) -> Result<Vec<String>> {
    rows_of("var", |_| true, file, options)
}

/// The same of any column, with only some of the leaves below it.
fn rows_of(
    column: &str,
    leaves: impl Fn(usize) -> bool,
    file: &Path,
    options: &ReadOptions,
) -> Result<Vec<String>> {
    let file = Bytes::from(fs::read(file).unwrap());
    let metadata = products(&mut FooterReader::new(Object(0), LIMITS), &file, u64::MAX)?.remove(0);
    let schema = &metadata.schema;
    let node = schema.child_of_root(column).ok_or_else(|| Error::misuse("no such column"))?;
    let leaves: Vec<usize> = schema.leaves_of(node).filter(|leaf| leaves(*leaf)).collect();
    let shape = schema.shape(node).only(&leaves).ok_or_else(|| Error::misuse("no leaf below it"))?;
    let mut reader = BatchReader::new(Object(0), metadata.clone(), Arc::new(NoCodecs), options.clone())?;
    let mut rows = Vec::new();
    for batch in products(&mut reader, &file, u64::MAX)? {
        let column_of = |leaf| batch.columns.iter().find(|column| column.leaf == leaf);
        let array = Array::assemble(shape, batch.rows, &column_of)?;
        let columns = VariantColumns::new(schema, &array)?;
        assert_eq!(columns.len(), batch.rows);
        let mut reassembler = Reassembler::new(&LIMITS);
        for row in 0..columns.len() {
            if columns.is_null(row) {
                rows.push("null".to_string());
                continue;
            }
            let metadata = columns.metadata(row)?;
            let value = reassembler.reassemble(metadata, columns.row(row))?;
            rows.push(with_metadata(metadata, Variant::new(metadata, value, &LIMITS)?));
        }
    }
    Ok(rows)
}

/// What the file of a variant, metadata and value, holds.
fn expected(folder: &Path, file: &Json) -> String {
    let Some(name) = file.text() else { return "null".to_string() };
    let bytes = fs::read(folder.join(name)).unwrap();
    let metadata = Metadata::new(&bytes).unwrap();
    with_metadata(metadata, Variant::new(metadata, &bytes[metadata.bytes().len()..], &LIMITS).unwrap())
}

#[test]
fn shredded_files_are_put_together_again() {
    let Some(folder) = corpus("shredded_variant") else { return };
    let cases = Json::read(&fs::read_to_string(folder.join("cases.json")).unwrap()).unwrap();
    let (mut equal, mut refused) = (0, BTreeSet::new());
    for case in cases.elements() {
        let Some(file) = case.get("parquet_file") else { continue };
        let Some(Json::Number(number)) = case.get("case_number") else { panic!("{case:?}") };
        let number: u64 = number.parse().unwrap();
        let file = folder.join(file.text().unwrap());
        for keep_dictionaries in [false, true] {
            let found =
                rows(&file, &ReadOptions { keep_dictionaries, batch_rows: 3, ..ReadOptions::default() });
            if case.get("error_message").is_some() || REFUSED.contains(&number) {
                let error = found.unwrap_err();
                assert!(
                    matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported),
                    "{number}: {error}"
                );
                refused.insert(format!("{number}: {error}"));
                continue;
            }
            let wanted = match (case.get("variant_file"), case.get("variant_files")) {
                (Some(file), _) => vec![expected(&folder, file)],
                (None, files) => {
                    files.unwrap().elements().iter().map(|file| expected(&folder, file)).collect()
                }
            };
            assert_eq!(found.unwrap_or_else(|error| panic!("{number}: {error}")), wanted, "{number}");
            equal += 1;
        }
    }
    println!("{refused:#?}");
    assert!(
        equal >= 2 * 128 && refused.len() == 6 + REFUSED.len(),
        "{equal} equal, {} refused",
        refused.len()
    );
}

/// What is no variant, or not all of one: columns of case 44, `var` of `metadata`, `value` and shredded fields.
#[test]
fn columns_that_are_no_variant() {
    let Some(folder) = corpus("shredded_variant") else { return };
    let file = folder.join("case-044.parquet");
    let error = |column, leaves: &dyn Fn(usize) -> bool| {
        let error = rows_of(column, leaves, &file, &ReadOptions::default()).unwrap_err();
        (error.kind(), error.message().to_string())
    };
    let no_group = "a variant, or a part of a shredded one, that is no group".to_string();
    assert_eq!(error("id", &|_| true), (ErrorKind::Corrupt, no_group));
    let left_out = (ErrorKind::Misuse, "a variant without some of its columns".to_string());
    for leaf in 1..5 {
        assert_eq!(error("var", &|other| other != leaf), left_out, "without leaf {leaf}");
    }
}
