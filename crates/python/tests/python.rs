//! The package `marquetry`, by Python: `tests/python/` has the tests, which are put on record here.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use marquetry_testing::stores::s3;
use marquetry_testing::{cassandra, cassandra_directory, corpus, python, root, spark};

/// A folder with the package as it is installed: its Python files, and the library that was built for this test.
fn package(folder: &Path) -> PathBuf {
    let package = folder.join("marquetry");
    fs::create_dir(&package).unwrap();
    for file in fs::read_dir(root().join("crates/python/python/marquetry")).unwrap() {
        let path = file.unwrap().path();
        if path.is_file() {
            symlink(&path, package.join(path.file_name().unwrap())).unwrap();
        }
    }
    let program = std::env::current_exe().unwrap();
    let built = program.parent().unwrap().join("lib_marquetry.so");
    assert!(built.is_file(), "{} was not built", built.display());
    symlink(built, package.join("_marquetry.abi3.so")).unwrap();
    folder.to_owned()
}

/// Long tests run one after the other: each takes what the machine has, and one of them stops the server that others use.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs one file of tests by the Python that has the peers.
fn run(tests: &str) {
    if let Some(python) = python() {
        run_by(&python, tests);
    }
}

fn run_by(python: &Path, tests: &str) {
    run_with(python, tests, &[]);
}

/// The same, with variables.
fn run_with(python: &Path, tests: &str, variables: &[(&str, &OsStr)]) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(python);
    command.envs(variables.iter().copied());
    // What it prints, it prints as UTF-8, and nothing is left beside the sources.
    command.args(["-X", "utf8", "-B", "-W", "error::ResourceWarning", "-m", "unittest", "--failfast", tests]);
    command.env("PYTHONPATH", package(folder.path())).env("MARQUETRY_ROOT", root());
    command.current_dir(root().join("crates/python/tests/python"));
    let ended = command.output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{}{said}", String::from_utf8_lossy(&ended.stdout));
    // A file without tests passes, too.
    assert!(!said.contains("Ran 0 tests"), "{said}");
}

#[test]
fn tables_are_read() {
    run("test_reading");
}

#[test]
fn rows_are_found_by_keys() {
    run("test_finding");
}

#[test]
fn tables_are_written_and_compared() {
    run("test_writing");
}

#[test]
fn types_go_there_and_back() {
    if let Some(python) = python() {
        let corpus = corpus();
        let files = corpus.as_ref().map(|corpus| ("MARQUETRY_FILES", corpus.as_os_str()));
        run_with(&python, "test_types", files.as_slice());
    }
}

#[test]
fn errors_have_fields() {
    run("test_errors");
}

#[test]
fn work_ends_with_signals_and_forks() {
    run("test_processes");
}

#[test]
fn asyncio_waits_for_it() {
    run("test_aio");
}

#[test]
fn examples_of_the_documents_run() {
    run("test_documents");
}

#[test]
fn objects_of_a_store_are_read_and_written() {
    let (Some(python), Some(server)) = (python(), s3()) else { return };
    server.create_bucket("python");
    run_with(&python, "test_stores", &of_store(&format!("http://{}", server.at)));
    assert!(server.uploads("python").is_empty(), "something is left of an object that did not appear");
}

/// The variables that lead to a server of S3.
fn of_store(endpoint: &str) -> [(&str, &OsStr); 4] {
    [
        ("AWS_ENDPOINT_URL", endpoint.as_ref()),
        ("AWS_ACCESS_KEY_ID", "someone".as_ref()),
        ("AWS_SECRET_ACCESS_KEY", "a-secret".as_ref()),
        ("AWS_REGION", "us-east-1".as_ref()),
    ]
}

#[test]
fn tables_of_a_cluster_are_read_and_written() {
    if cassandra().is_some() {
        run("test_cluster");
    }
}

#[test]
#[ignore = "soak: a million batches each way, threads and forks for minutes"]
fn batches_threads_and_forks_leave_nothing() {
    let _alone = alone();
    run("test_soak");
}

#[test]
#[ignore = "soak: a Spark of 450 MB"]
fn spark_reads_and_writes() {
    let _alone = alone();
    let Some(python) = spark() else { return };
    // Puts on record that its part with a cluster does not run, if there is none.
    let _ = cassandra();
    let Some(server) = s3() else { return run_by(&python, "test_spark") };
    server.create_bucket("spark");
    run_with(&python, "test_spark", &of_store(&format!("http://{}", server.at)));
}

#[test]
#[ignore = "soak: a Spark of 450 MB, with a master and two workers"]
fn spark_reads_and_writes_on_two_workers() {
    let _alone = alone();
    let Some(python) = spark() else { return };
    let _ = (cassandra(), cassandra_directory());
    run_by(&python, "test_spark_cluster");
}
