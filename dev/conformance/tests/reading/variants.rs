//! The variants of the corpus: shredded ones put together again are the variants that they were made of.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry_base::{Bytes, Error, Limits, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical::{self, FILE};
use marquetry_conformance::features::{self, Evidence, Source};
use marquetry_conformance::hostile::Manner;
use marquetry_parquet::batch::Array;
use marquetry_parquet::read::{BatchReader, ReadOptions};
use marquetry_parquet::variant::{Metadata, Reassembler, Variant, VariantColumns};
use serde_json::Value;

use crate::Outcome;

const SHREDDED: &str = "shredded_variant";
const SAMPLES: &str = "variant";

/// Cases whose files are not valid "and implementations can choose to error, or read the shredded value" (the cases' README and
/// names): a field that is both shredded and not is refused. Case 84, whose value conflicts with nothing, is read.
const REFUSED: [u64; 2] = [43, 125];

/// The files of the cases and samples, by their paths from the corpus' root; each is read by [`compare`], or as a sample in the
/// tests of `variant`.
pub(crate) fn files(root: &Path) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for case in cases(root) {
        let of_rows = case["variant_files"].as_array().map_or(&[][..], Vec::as_slice);
        let names = [&case["parquet_file"], &case["variant_file"]].into_iter().chain(of_rows);
        all.extend(names.filter_map(|name| Some(format!("{SHREDDED}/{}", name.as_str()?))));
    }
    for name in SAMPLE_NAMES {
        all.extend(["metadata", "value"].map(|part| format!("{SAMPLES}/{name}.{part}")));
    }
    all
}

/// The samples, which crates/parquet/tests/variant compares with their dictionary.
const SAMPLE_NAMES: [&str; 29] = [
    "array_empty",
    "array_nested",
    "array_primitive",
    "long_string",
    "object_empty",
    "object_nested",
    "object_primitive",
    "primitive_binary",
    "primitive_boolean_false",
    "primitive_boolean_true",
    "primitive_date",
    "primitive_decimal16",
    "primitive_decimal4",
    "primitive_decimal8",
    "primitive_double",
    "primitive_float",
    "primitive_int16",
    "primitive_int32",
    "primitive_int64",
    "primitive_int8",
    "primitive_null",
    "primitive_string",
    "primitive_time",
    "primitive_timestamp",
    "primitive_timestamp_nanos",
    "primitive_timestampntz",
    "primitive_timestampntz_nanos",
    "primitive_uuid",
    "short_string",
];

/// The Parquet files of the cases.
pub(crate) fn parquet_files(root: &Path) -> Vec<PathBuf> {
    let names: BTreeSet<String> = files(root);
    names.into_iter().filter(|name| name.ends_with(".parquet")).map(|name| root.join(name)).collect()
}

fn cases(root: &Path) -> Vec<Value> {
    let cases = std::fs::read(root.join(SHREDDED).join("cases.json")).unwrap();
    let cases: Value = serde_json::from_slice(&cases).unwrap();
    cases.as_array().unwrap().clone()
}

/// Compares each case's file with its variants.
pub(crate) fn compare(root: &Path) -> Outcome {
    let (mut wrong, mut evidence) = (Vec::new(), Evidence::default());
    let (mut equal, mut refused) = (0, 0);
    for case in cases(root) {
        let Some(name) = case["parquet_file"].as_str() else { continue };
        let bytes = Bytes::from(std::fs::read(root.join(SHREDDED).join(name)).unwrap());
        let found = rows(&bytes);
        let number = case["case_number"].as_u64().unwrap();
        if case["error_message"].is_string() || REFUSED.contains(&number) {
            refused += 1;
            if found.is_ok() {
                wrong.push(format!("{name} is not refused"));
            }
            continue;
        }
        let one = std::slice::from_ref(&case["variant_file"]);
        let wanted = case["variant_files"].as_array().map_or(one, Vec::as_slice);
        let wanted: Vec<String> = wanted.iter().map(|file| variant(root, file)).collect();
        match found {
            Ok(found) if found == wanted => {
                equal += 1;
                let metadata = canonical::metadata(&bytes, Manner::KIND).unwrap();
                evidence.add(Source::Corpus, name, features::observe(&bytes, &metadata).unwrap());
            }
            Ok(found) => wrong.push(format!("{name}: {found:?}, expected {wanted:?}")),
            Err(error) => wrong.push(format!("{name}: {error:?}")),
        }
    }
    Outcome { summary: format!("{equal} files put together again, {refused} refused"), wrong, evidence }
}

/// A variant's file, which holds metadata and value, as JSON.
fn variant(root: &Path, file: &Value) -> String {
    let Some(name) = file.as_str() else { return "null row".to_owned() };
    let bytes = std::fs::read(root.join(SHREDDED).join(name)).unwrap();
    let metadata = Metadata::new(&bytes).unwrap();
    json(metadata, &bytes[metadata.bytes().len()..]).unwrap()
}

fn json(metadata: Metadata<'_>, value: &[u8]) -> Result<String> {
    let mut out = Vec::new();
    Variant::new(metadata, value, &Limits::DEFAULT)?.to_json(&Limits::DEFAULT, &mut out)?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// Each row of the column `var`, put together, as JSON.
fn rows(bytes: &Bytes) -> Result<Vec<String>> {
    let metadata = canonical::metadata(bytes, Manner::KIND)?;
    let schema = &metadata.schema;
    let node = schema.child_of_root("var").ok_or_else(|| Error::misuse("no such column"))?;
    let shape = schema.shape(node);
    let codecs = Arc::new(StandardCodecs::default());
    let options = ReadOptions { batch_rows: 3, ..ReadOptions::default() };
    let mut reader = BatchReader::new(FILE, Arc::clone(&metadata), codecs, options)?;
    let mut batches = Vec::new();
    canonical::read(&mut reader, bytes, Manner::USUAL, |batch| batches.push(batch))?;
    let mut rows = Vec::new();
    for batch in batches {
        let array = Array::assemble(shape, batch.rows, &|leaf| {
            batch.columns.iter().find(|column| column.leaf == leaf)
        })?;
        let columns = VariantColumns::new(schema, &array)?;
        let mut reassembler = Reassembler::new(&Limits::DEFAULT);
        for row in 0..columns.len() {
            if columns.is_null(row) {
                rows.push("null row".to_owned());
                continue;
            }
            let metadata = columns.metadata(row)?;
            rows.push(json(metadata, reassembler.reassemble(metadata, columns.row(row))?)?);
        }
    }
    Ok(rows)
}
