//! What tests need from outside, and the one way to say that they were skipped without it.
//!
//! A test asks here for what not every machine has, and returns where it gets `None`. That it did not run is then on record: under
//! `make test` in the file that `MARQUETRY_SKIPPED` names, which `dev/skipped.sh` turns into a list at the end (and, in CI, into a failure
//! unless `WITHOUT` names what is missing); elsewhere on standard error.
//!
//! ```
//! # fn test() {
//! let Some(corpus) = marquetry_testing::corpus() else { return };
//! assert!(corpus.join("parquet-testing/data").is_dir());
//! # }
//! # test();
//! ```

#![deny(unsafe_code)]

pub mod counting;
pub mod http;
pub mod memory;
mod proxy;
mod scylla;
pub mod stores;

pub use proxy::{Break, Proxy};
pub use scylla::{Executed, Scylla};

use std::env;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Something that a machine may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// parquet-testing, at the commit of `dev/setup.sh`.
    Corpus,
    /// Real files, which nobody may pass on.
    Real,
    /// SSTables of real servers.
    Sstables,
    /// Python with the other implementations of Parquet.
    Peers,
    /// Python with Spark.
    Spark,
    /// A Cassandra, or what it takes to run one.
    Cassandra,
    /// A Ceph, or what it takes to run one.
    Ceph,
    /// A server of S3, or what it takes to run one.
    S3,
    /// A server of Azure's blobs, or what it takes to run one.
    Azure,
    /// Linux's io_uring, allowed.
    Uring,
    /// `mkfifo`.
    Fifo,
    /// Chromium, and ChromeDriver to drive it.
    Chromium,
    /// mandoc, which reads manual pages.
    Mandoc,
    /// Compilers of C and C++.
    Compiler,
    /// valgrind.
    Valgrind,
    /// liburing's header and library.
    Liburing,
    /// Seastar, for C++.
    Seastar,
}

impl Need {
    /// The word for it in `WITHOUT`, and in the list of what was skipped. `dev/skipped.sh` says how to get it.
    pub const fn word(self) -> &'static str {
        match self {
            Need::Corpus => "corpus",
            Need::Real => "real",
            Need::Sstables => "sstables",
            Need::Peers => "peers",
            Need::Spark => "spark",
            Need::Cassandra => "cassandra",
            Need::Ceph => "ceph",
            Need::S3 => "s3",
            Need::Azure => "azure",
            Need::Uring => "uring",
            Need::Fifo => "fifo",
            Need::Chromium => "chromium",
            Need::Mandoc => "mandoc",
            Need::Compiler => "compiler",
            Need::Valgrind => "valgrind",
            Need::Liburing => "liburing",
            Need::Seastar => "seastar",
        }
    }
}

/// Puts on record that the test which runs on this thread does not do all it should, for want of something.
///
/// # Panics
///
/// When the record cannot be written: a test that is skipped must not be forgotten.
pub fn skipped(need: Need) {
    if !record("MARQUETRY_SKIPPED", need) {
        eprintln!("skipped without `{}`: {}: {}", need.word(), program(), test());
    }
}

/// Adds a line about the test that runs on this thread to the file that a variable names; `false` where it is not set.
fn record(variable: &str, need: Need) -> bool {
    let Some(path) = env::var_os(variable) else { return false };
    // One write, so that lines of tests that run side by side stay apart.
    let line = format!("{}\t{}\t{}\n", need.word(), program(), test());
    let file = OpenOptions::new().create(true).append(true).open(&path);
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    written.unwrap_or_else(|error| panic!("{} cannot be written: {error}", path.display()));
    true
}

/// The name of the test that runs on this thread.
fn test() -> String {
    std::thread::current().name().unwrap_or("a thread of a test").to_owned()
}

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The corpus of files by others, with parquet-testing in it: `MARQUETRY_CORPUS`; or `../shared/corpus` beside the repository; or what
/// `dev/setup.sh corpus` fetches. `None`, put on record, without one.
pub fn corpus() -> Option<PathBuf> {
    let found = corpora().into_iter().find(|path| path.join("parquet-testing/data").is_dir());
    recorded(found, Need::Corpus)
}

/// A file or folder of the corpus: `parquet-testing/data/…` or `real/…`. `None`, put on record, without that part of it.
///
/// # Panics
///
/// Where that part is there, and the file is not.
pub fn corpus_file(name: &str) -> Option<PathBuf> {
    let (part, need) = match name.split_once('/') {
        Some(("real", _)) => ("real", Need::Real),
        Some(("parquet-testing", _)) => ("parquet-testing/data", Need::Corpus),
        None if name == "real" => ("real", Need::Real),
        _ => panic!("{name} is in no part of the corpus"),
    };
    let root = recorded(corpora().into_iter().find(|path| path.join(part).is_dir()), need)?;
    let path = root.join(name);
    assert!(path.exists(), "the corpus has no {name}");
    Some(path)
}

/// A folder of SSTables of real servers, at any depth: `MARQUETRY_SSTABLES`, or `../shared/fixtures/sstables` beside the repository; and
/// those of the corpus, `legacy-sstables`, if it has them. `None`, put on record, without the first.
pub fn sstables() -> Option<Vec<PathBuf>> {
    let named = variable("MARQUETRY_SSTABLES").map(PathBuf::from);
    let folder = named.unwrap_or_else(|| root().join("../shared/fixtures/sstables"));
    let folder = recorded(Some(folder).filter(|folder| folder.is_dir()), Need::Sstables)?;
    let legacy = corpora().into_iter().map(|corpus| corpus.join("legacy-sstables"));
    Some([folder].into_iter().chain(legacy.filter(|legacy| legacy.is_dir()).take(1)).collect())
}

/// The script that prints SSTables as JSON, with Cassandra's own tool: `dev/cassandra.sh`, whose command is `dump`. `None`, put on record,
/// if it has not fetched Cassandra.
pub fn sstabledump() -> Option<PathBuf> {
    cassandra_script()
}

/// `dev/cassandra.sh`, for tests that start a server of their own. `None`, put on record, if it has not fetched Cassandra.
pub fn cassandra_script() -> Option<PathBuf> {
    let script = root().join("dev/cassandra.sh");
    let fetched = std::process::Command::new(&script).arg("fetched").status();
    let java = || std::process::Command::new(&script).arg("java").output();
    let is_there = fetched.is_ok_and(|status| status.success()) && java().is_ok_and(|it| it.status.success());
    recorded(Some(script).filter(|_| is_there), Need::Cassandra)
}

/// A Python that has the other implementations: `MARQUETRY_PYTHON`. `None`, put on record, when it is not set.
pub fn python() -> Option<PathBuf> {
    recorded(variable("MARQUETRY_PYTHON").map(PathBuf::from), Need::Peers)
}

/// A Python that has Spark: `MARQUETRY_SPARK`. `None`, put on record, when it is not set.
pub fn spark() -> Option<PathBuf> {
    recorded(variable("MARQUETRY_SPARK").map(PathBuf::from), Need::Spark)
}

/// `HOST:PORT` of a Cassandra: `MARQUETRY_CASSANDRA`. `None`, put on record, when it is not set.
pub fn cassandra() -> Option<String> {
    recorded(variable("MARQUETRY_CASSANDRA"), Need::Cassandra)
}

/// The directory of that Cassandra, which `dev/cassandra.sh` started: `MARQUETRY_CASSANDRA_DIR`. `None`, put on record, when it is not set.
pub fn cassandra_directory() -> Option<PathBuf> {
    recorded(variable("MARQUETRY_CASSANDRA_DIR").map(PathBuf::from), Need::Cassandra)
}

/// The configuration of a Ceph, which `dev/ceph.sh` started: `MARQUETRY_CEPH`. `None`, put on record, when it is not set.
pub fn ceph() -> Option<PathBuf> {
    recorded(variable("MARQUETRY_CEPH").map(PathBuf::from), Need::Ceph)
}

/// Chromium and ChromeDriver, as they are installed. `None`, put on record, when one is not.
pub fn chromium() -> Option<(PathBuf, PathBuf)> {
    recorded(program_file("chromium").zip(program_file("chromedriver")), Need::Chromium)
}

/// mandoc. `None`, put on record, when it is not installed.
pub fn mandoc() -> Option<PathBuf> {
    recorded(program_file("mandoc"), Need::Mandoc)
}

/// A program that is on the path.
fn program_file(name: &str) -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Where a corpus may be. One that is named is the only one.
fn corpora() -> Vec<PathBuf> {
    match env::var_os("MARQUETRY_CORPUS") {
        Some(path) => vec![PathBuf::from(path)],
        None => vec![root().join("../shared/corpus"), root().join("target/corpus")],
    }
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn recorded<T>(found: Option<T>, need: Need) -> Option<T> {
    match found {
        Some(_) => drop(record("MARQUETRY_USED", need)),
        None => skipped(need),
    }
    found
}

/// The package and the test program: `marquetry-cli, copy`.
fn program() -> String {
    let package = env::var("CARGO_PKG_NAME").unwrap_or_default();
    let path = env::current_exe().unwrap_or_default();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let stem = match stem.rsplit_once('-') {
        Some((name, hash)) if hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => name,
        _ => &*stem,
    };
    format!("{package}, {stem}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words are those that the scripts know.
    #[test]
    fn every_need_is_in_the_list_of_ways_to_get_it() {
        let script = std::fs::read_to_string(root().join("dev/skipped.sh")).unwrap();
        let needs = [
            Need::Corpus,
            Need::Real,
            Need::Sstables,
            Need::Peers,
            Need::Spark,
            Need::Cassandra,
            Need::Ceph,
            Need::S3,
            Need::Azure,
            Need::Uring,
            Need::Fifo,
            Need::Chromium,
            Need::Mandoc,
            Need::Compiler,
            Need::Valgrind,
            Need::Liburing,
            Need::Seastar,
        ];
        for need in needs {
            assert!(script.contains(&format!("\n    {})", need.word())), "{need:?} is not in dev/skipped.sh");
        }
    }

    #[test]
    fn programs_have_no_hash() {
        assert_eq!(program(), "marquetry-testing, marquetry_testing");
    }
}
