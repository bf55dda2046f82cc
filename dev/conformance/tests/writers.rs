//! Files by writers that the tests do not run, kept in `writers/files`, read equal to what `expected.json` beside them says.
//!
//! `MARQUETRY_FILES=DIR` adds a folder with an `expected.json` of its own (`writers/expect.py DIR`).

use std::path::{Path, PathBuf};

use marquetry_base::{Bytes, Result};
use marquetry_conformance::canonical;
use marquetry_conformance::files;
use marquetry_conformance::hostile::Manner;
use marquetry_conformance::records::{FieldSum, array_sums, field_sums};
use marquetry_parquet::read::{Layout, ReadOptions};
use serde_json::Value;

/// Files up to this size are read in the hardest manner too.
const DISORDERLY_FILE_BYTES_MAX: usize = 20_000;

#[test]
fn kept_files_read_equal() {
    let folder = files::root().join("dev/conformance/writers/files");
    let compared = compare(&folder);
    println!("{compared} readings");
    if let Some(other) = std::env::var_os("MARQUETRY_FILES") {
        println!("{} readings of others", compare(&PathBuf::from(other)));
    }
}

/// Reads all files of a folder's `expected.json` in several ways; says how many readings that were.
fn compare(folder: &Path) -> usize {
    let expected = std::fs::read(folder.join("expected.json")).unwrap();
    let expected: Value = serde_json::from_slice(&expected).unwrap();
    let (mut readings, mut wrong) = (0, Vec::new());
    for entry in expected.as_array().unwrap() {
        let name = entry["file"].as_str().unwrap();
        let bytes = Bytes::from(std::fs::read(folder.join(name)).unwrap());
        for (what, found) in read(&bytes) {
            readings += 1;
            if let Some(why) = difference(entry, found) {
                wrong.push(format!("{name}, {what}: {why}"));
            }
        }
    }
    assert!(readings > 0, "nothing was compared");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    readings
}

/// A way of reading, and what came of it.
type Reading = (String, Result<Vec<FieldSum>>);

fn read(bytes: &Bytes) -> Vec<Reading> {
    let metadata = match canonical::metadata(bytes, Manner::KIND) {
        Ok(metadata) => metadata,
        Err(error) => return vec![("the footer".to_owned(), Err(error))],
    };
    let hard = if bytes.len() <= DISORDERLY_FILE_BYTES_MAX { Manner::DISORDERLY } else { Manner::USUAL };
    let few = metadata.rows <= 2000;
    let ways = [
        (8192, Manner::KIND, Layout::Spaced),
        (7, Manner::USUAL, Layout::Dense),
        (1, Manner::KIND, Layout::Spaced),
        (1000, hard, Layout::Dense),
    ];
    let mut readings = Vec::new();
    for (batch_rows, manner, layout) in ways.into_iter().filter(|way| few || way.0 >= 1000) {
        let options = ReadOptions { batch_rows, layout, ..ReadOptions::default() };
        let sums = field_sums(bytes, &metadata, options.clone(), manner);
        readings.push((format!("records of {batch_rows}"), sums));
        if layout == Layout::Spaced {
            readings.push((format!("arrays of {batch_rows}"), array_sums(bytes, &metadata, options, manner)));
        }
    }
    readings
}

/// How a reading differs from what is expected: fields, or an error's kind.
fn difference(expected: &Value, found: Result<Vec<FieldSum>>) -> Option<String> {
    if let Some(kind) = expected["error"].as_str() {
        return match found {
            Err(error) if format!("{:?}", error.kind()) == kind => None,
            Err(error) => Some(format!("{error:?}, where {kind} is expected")),
            Ok(_) => Some(format!("it reads, where {kind} is expected")),
        };
    }
    let found = match found {
        Ok(found) => found,
        Err(error) => return Some(format!("{error:?}")),
    };
    let fields = expected["fields"].as_array().unwrap();
    let names = |names: Vec<&str>| names.join(", ");
    let ours = names(found.iter().map(|field| &*field.name).collect());
    let theirs = names(fields.iter().filter_map(|field| field["name"].as_str()).collect());
    if ours != theirs {
        return Some(format!("fields {ours}, where {theirs} are expected"));
    }
    let mut wrong = Vec::new();
    for (found, expected) in found.iter().zip(fields) {
        if Some(u64::from(found.crc32)) != expected["crc32"].as_u64() {
            wrong.push(format!(
                "field {}:\n  ours     {:?}\n  expected {}",
                found.name, found.head, expected["head"]
            ));
        }
    }
    (!wrong.is_empty()).then(|| wrong.join("\n"))
}
