//! Programs in C and C++, compiled with every warning and run.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::folder;

fn example(name: &str) -> PathBuf {
    folder().join("examples").join(name)
}

/// Rows of a file, as the Rust reader counts them.
fn rows(path: &Path) -> marquetry_base::Result<u64> {
    use marquetry_base::{Bytes, Limits, Object};
    use marquetry_io::{ByteSources, drive, memory::Memory};
    use marquetry_parquet::read::{BatchReader, FooterReader, ReadOptions};
    let bytes = Bytes::from(std::fs::read(path).unwrap());
    let sources = ByteSources::new().with(Object(0), Memory::new("file", bytes));
    let metadata = drive(&mut FooterReader::new(Object(0), Limits::DEFAULT), &sources)?.unwrap();
    let codecs = std::sync::Arc::new(marquetry_codecs::StandardCodecs::default());
    let mut to_arrow = marquetry_arrow::ToArrow::of_file(&metadata, None, Default::default())?;
    let mut reader = BatchReader::new(Object(0), metadata, codecs, ReadOptions::default())?;
    let mut rows = 0;
    while let Some(batch) = drive(&mut reader, &sources)? {
        rows += marquetry_base::cast::u64_of(to_arrow.record_batch(&batch)?.num_rows());
    }
    Ok(rows)
}

#[test]
fn c_reads_what_rust_reads() {
    let Some(corpus) = marquetry_testing::corpus() else { return };
    let mut files: Vec<PathBuf> = std::fs::read_dir(corpus.join("parquet-testing/data"))
        .unwrap()
        .map(|it| it.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "parquet"))
        .collect();
    files.sort();
    assert!(files.len() > 40);
    let scratch = tempfile::tempdir().unwrap();
    for compiler in common::c() {
        let program = compiler.compile(&[example("read.c")], &[], scratch.path());
        let (mut read, mut failed) = (0, 0);
        for file in &files {
            let output = Command::new(&program).arg(file).output().unwrap();
            let (out, err) =
                (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            match rows(file) {
                Ok(rows) => {
                    assert_eq!(out, format!("{rows} rows\n"), "{}: {err}", file.display());
                    read += 1;
                }
                Err(error) => {
                    // Its driver adds the name of the file, which the library does not know.
                    let said = error.to_string().replace(", file)", ")").replace(" (file)", "");
                    assert_eq!(
                        (err.trim_end(), output.status.code()),
                        (&*said, Some(1)),
                        "{}",
                        file.display()
                    );
                    failed += 1;
                }
            }
        }
        assert!(read > 40, "{read} were read, {failed} were not");
    }
}

#[test]
fn a_file_that_is_none_is_an_error_with_words() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("none");
    std::fs::write(&file, b"PAR1PAR1").unwrap();
    for compiler in common::c() {
        let program = compiler.compile(&[example("read.c")], &[], scratch.path());
        let output = Command::new(&program).arg(&file).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(said, "a Parquet file of 8 bytes: the smallest has 12\n");
    }
}
