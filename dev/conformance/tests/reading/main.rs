//! What is read is equal: the corpus, files by five other writers, random nested files, and files made by hand, whatever the host, the
//! driver and the window; and the matrix of features that this shows, `docs/FEATURES.md`.

mod bad_nesting;
mod columns;
mod corpus;
mod crafted;
mod crafted_faults;
mod crafted_types;
mod drivers;
mod given;
mod hostile;
mod locator;
mod matrix;
mod metadata;
mod nested;
mod peers;
mod union;
mod variants;
mod windows;
mod writers;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use marquetry_conformance::features::Evidence;
use marquetry_conformance::files;
use serde_json::Value;

/// What came of files that were compared.
#[derive(Default)]
struct Outcome {
    /// How many of what.
    summary: String,
    /// What is not as it should be.
    wrong: Vec<String>,
    /// What the files used that are.
    evidence: Evidence,
}

/// Faults that are printed of many.
const FAULTS_PRINTED_MAX: usize = 25;

impl Outcome {
    /// Adds what came of others.
    fn add(&mut self, what: &str, other: Outcome) {
        self.summary += &format!("\n  {what}: {}", other.summary);
        self.wrong.extend(other.wrong);
        self.evidence.merge(&other.evidence);
    }

    fn assert_right(&self, what: &str) {
        println!("{what}: {}", self.summary);
        let printed = &self.wrong[..self.wrong.len().min(FAULTS_PRINTED_MAX)];
        // Of many faults only some are told, but each file that has one is named.
        assert!(
            printed.is_empty(),
            "{what}: {} wrong:\n{}\nin {:?}",
            self.wrong.len(),
            printed.join("\n"),
            self.files_with_faults()
        );
    }

    /// A fault begins with its file's name.
    fn files_with_faults(&self) -> BTreeSet<&str> {
        self.wrong.iter().filter_map(|fault| fault.split([' ', ':', ',']).next()).collect()
    }
}

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}

/// What an oracle, a script of this package, says of each file.
fn expect(python: &Path, script: &str, folder: &Path, parquet: &[PathBuf]) -> Vec<Value> {
    std::fs::create_dir_all(folder).unwrap();
    let list = folder.join(format!("{script}.list"));
    let lines: Vec<String> = parquet.iter().map(|path| path.display().to_string()).collect();
    std::fs::write(&list, lines.join("\n")).unwrap();
    let out = folder.join(format!("{script}.json"));
    run(Command::new(python)
        .arg(files::root().join("dev/conformance").join(script))
        .arg(&out)
        .arg(format!("@{}", list.display())));
    let all: Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
    let all = all.as_array().unwrap().clone();
    assert_eq!(all.len(), parquet.len());
    all
}

/// The oracle of flat columns, and that of records.
const EXPECT: &str = "expect.py";
const EXPECT_NESTED: &str = "expect_nested.py";

/// An empty folder of the tests' own.
fn folder(name: &str) -> PathBuf {
    let folder = files::root().join("target/conformance").join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
