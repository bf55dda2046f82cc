//! Where the files are that others made.

use std::path::{Path, PathBuf};

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The corpus of files by others: `MARQUETRY_CORPUS`, or `../shared/corpus` beside the repository. `None`, and a line that
/// says so, when it is not there.
pub fn corpus() -> Option<PathBuf> {
    let path = match std::env::var_os("MARQUETRY_CORPUS") {
        Some(path) => PathBuf::from(path),
        None => root().join("../shared/corpus"),
    };
    if path.join("parquet-testing/data").is_dir() {
        return Some(path);
    }
    println!("skipped: there is no corpus at {} (set MARQUETRY_CORPUS)", path.display());
    None
}

/// A Python that has the peers: `MARQUETRY_PYTHON`. `None`, and a line that says so, when it is not set.
pub fn python() -> Option<PathBuf> {
    let python = std::env::var_os("MARQUETRY_PYTHON").map(PathBuf::from);
    if python.is_none() {
        println!("skipped: no Python with the peers (make test sets MARQUETRY_PYTHON)");
    }
    python
}

/// The files in a folder that end in `.parquet`, sorted.
pub fn parquet_files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "parquet"))
        .collect();
    files.sort();
    files
}
