//! Files by writers that the tests do not run, kept in `writers/files`, read equal to what `expected.json` beside them says.
//!
//! `MARQUETRY_FILES=DIR` adds a folder with an `expected.json` of its own (`writers/expect.py DIR`).

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use marquetry_base::{Bytes, ErrorKind, Limits, Result};
use marquetry_conformance::canonical;
use marquetry_conformance::features::{self, Source};
use marquetry_conformance::files;
use marquetry_conformance::hostile::Manner;
use marquetry_conformance::records::{FieldSum, array_sums, field_sums};
use marquetry_parquet::batch::Layout;
use marquetry_parquet::read::ReadOptions;
use serde_json::Value;

use crate::Outcome;

/// Files up to this size are read in the hardest manner too.
const DISORDERLY_FILE_BYTES_MAX: usize = 20_000;

/// Compares the kept files, once.
pub(crate) fn outcome() -> &'static Outcome {
    static OUTCOME: OnceLock<Outcome> = OnceLock::new();
    OUTCOME.get_or_init(|| compare(&kept()))
}

#[test]
fn kept_files_read_equal() {
    outcome().assert_right("kept files");
    if let Some(other) = std::env::var_os("MARQUETRY_FILES") {
        compare(&PathBuf::from(other)).assert_right("other files");
    }
}

#[test]
fn kept_files_with_changed_bytes() {
    changed_bytes(20);
}

#[test]
#[ignore = "soak: thousands of changes of each file"]
fn kept_files_with_many_changed_bytes() {
    changed_bytes(3000);
}

fn kept() -> PathBuf {
    files::root().join("dev/conformance/writers/files")
}

/// Reads the kept files with some bytes changed, or cut short: in `changes` ways each, by seeds.
fn changed_bytes(changes: u64) {
    let mut tally = [0; 2];
    for (path, bytes) in kept_bytes() {
        for seed in 0..changes {
            let changed = change(&bytes, seed);
            let outcome = std::panic::catch_unwind(|| read_changed(&changed));
            match outcome {
                Ok(Ok(())) => tally[0] += 1,
                Ok(Err(error)) => {
                    let fault = [ErrorKind::Corrupt, ErrorKind::Unsupported, ErrorKind::LimitExceeded];
                    assert!(fault.contains(&error.kind()), "{}, seed {seed}: {error:?}", path.display());
                    tally[1] += 1;
                }
                Err(_) => panic!("{}, seed {seed}: a panic", path.display()),
            }
        }
    }
    println!("{} read, {} refused", tally[0], tally[1]);
    assert!(tally.iter().all(|&count| count > 0), "{tally:?}");
}

fn kept_bytes() -> Vec<(PathBuf, Vec<u8>)> {
    let folders = std::fs::read_dir(kept()).unwrap().map(|entry| entry.unwrap().path());
    let paths = folders.flat_map(|folder| files::parquet_files(&folder));
    paths.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// One to four bytes changed; every eighth time the file is cut short instead.
fn change(bytes: &[u8], seed: u64) -> Bytes {
    // SplitMix64.
    let mut state = seed;
    let mut random = |below: usize| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % below as u64).unwrap()
    };
    let mut bytes = bytes.to_vec();
    if seed % 8 == 7 {
        bytes.truncate(random(bytes.len()));
        return bytes.into();
    }
    for _ in 0..=random(4) {
        let at = random(bytes.len());
        bytes[at] ^= u8::try_from(1 + random(255)).unwrap();
    }
    bytes.into()
}

/// Reads what may be anything: records, arrays, and each column on its own, so that one fault does not hide the others'.
fn read_changed(bytes: &Bytes) -> Result<()> {
    // Few bytes can stand for billions of entries; this is enough to see that they are refused.
    let options = ReadOptions {
        limits: Limits { total_bytes: 8 << 20, ..Limits::DEFAULT },
        verify_crc: false,
        ..ReadOptions::default()
    };
    let metadata = canonical::metadata(bytes, Manner::KIND)?;
    let rows: u64 = metadata.row_groups.iter().map(|group| group.rows).sum();
    if rows > 200_000 {
        // Legal where a column is one run of nulls, and slow to look at slot by slot.
        return Ok(());
    }
    let mut result = field_sums(bytes, &metadata, options.clone(), Manner::KIND).map(drop);
    for leaf in 0..metadata.schema.leaves().len() {
        let options = ReadOptions { leaves: Some(vec![leaf]), ..options.clone() };
        result = result.and(array_sums(bytes, &metadata, options, Manner::KIND).map(drop));
    }
    result
}

/// Reads all files of a folder's `expected.json` in several ways. Those that are equal become evidence.
fn compare(folder: &Path) -> Outcome {
    let expected = std::fs::read(folder.join("expected.json")).unwrap();
    let expected: Value = serde_json::from_slice(&expected).unwrap();
    let (mut readings, mut all) = (0, Outcome::default());
    for entry in expected.as_array().unwrap() {
        let name = entry["file"].as_str().unwrap();
        let bytes = Bytes::from(std::fs::read(folder.join(name)).unwrap());
        let wrong_before = all.wrong.len();
        for (what, found) in read(&bytes) {
            readings += 1;
            if let Some(why) = difference(entry, found) {
                all.wrong.push(format!("{name}, {what}: {why}"));
            }
        }
        if all.wrong.len() == wrong_before && entry["error"].is_null() {
            let metadata = canonical::metadata(&bytes, Manner::KIND).unwrap();
            match features::observe(&bytes, &metadata) {
                Ok(seen) => all.evidence.add(Source::Kept, name, seen),
                Err(error) => all.wrong.push(format!("{name}: its pages cannot be scanned: {error:?}")),
            }
        }
    }
    if readings == 0 {
        all.wrong.push("nothing was compared".to_owned());
    }
    all.summary = format!("{readings} readings");
    all
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
