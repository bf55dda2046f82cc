//! Where the files are that others made.

use std::path::{Path, PathBuf};

pub use marquetry_testing::{corpus, corpus_file, python, root, spark};

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
