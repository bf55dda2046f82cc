use std::fs;
use std::path::{Path, PathBuf};

use marquetry_base::Limits;
use marquetry_parquet::schema::Plan as _;

use super::*;
use crate::digest::{Digest, Meanings};
use crate::files::{FileFormat, Files, FilesOptions};
use crate::parquet::{NewParquetFile, ParquetOptions};
use crate::text::{TextFormat, TextOptions};
use crate::{CopyOptions, Source, copy};

/// A table of 3,000 rows with nested columns, in one row group.
fn nested(folder: &Path) -> PathBuf {
    let line = |row: usize| {
        let tags: Vec<String> = (0..row % 4).map(|tag| format!("\"tag {tag}\"")).collect();
        let place = match row % 5 {
            0 => "null".to_string(),
            _ => format!("{{\"lat\":{row}.5,\"names\":[[{row}],[],[1,2]]}}"),
        };
        format!(
            "{{\"id\":{row},\"tags\":[{}],\"place\":{place},\"word\":\"word {}\",\"text\":\"{}\"}}\n",
            tags.join(","),
            row % 7,
            "x".repeat(row % 300)
        )
    };
    let (text, path) = (folder.join("a.jsonl"), folder.join("a.parquet"));
    fs::write(&text, (0..3000).map(line).collect::<String>()).unwrap();
    let formats: Vec<Arc<dyn FileFormat>> = vec![Arc::new(TextFormat::new(TextOptions::default()))];
    let options = FilesOptions { formats, ..FilesOptions::default() };
    let source: Arc<dyn Source> = Arc::new(Files::open([&text], &options).unwrap());
    let mut file = NewParquetFile::new(&path, ParquetOptions::default()).unwrap();
    copy(&source, &mut file, &CopyOptions::default(), &mut |_| {}).unwrap();
    path
}

/// All rows of a file, by so many threads even if they are few. Beside them, whether one thread read them in the end.
fn read(file: &ParquetFile, options: &PieceOptions) -> (Result<Digest>, bool) {
    let schema = &file.metadata().schema;
    let conform = Conform::plan(Arc::clone(schema), Arc::clone(schema), &[]).at_once().unwrap();
    let of = Rows {
        file: file.clone(),
        groups: 0..file.metadata().row_groups.len(),
        conform: Arc::new(conform),
        constants: Vec::new(),
        options: options.clone(),
    };
    let mut rows = match if options.threads > 1 { of.side_by_side() } else { of.one_by_one() } {
        Ok(how) => ParquetRows { of, how, left: options.limit.unwrap_or(u64::MAX), done: 0 },
        Err(error) => return (Err(error), false),
    };
    let (mut digest, meanings) = (Digest::new(true), Meanings::of(schema));
    let read = loop {
        match rows.next() {
            Ok(Some(batch)) => {
                if let Err(error) = batch.check(schema) {
                    break Err(error);
                }
                assert_eq!(batch.first_row, digest.rows());
                digest.add(&batch, &meanings);
            }
            Ok(None) => break Ok(digest),
            Err(error) => break Err(error),
        }
    };
    (read, matches!(rows.how, How::OneByOne(..)))
}

fn options(threads: usize, batch_rows: usize) -> PieceOptions {
    PieceOptions { threads, batch_rows: Some(batch_rows), ..PieceOptions::default() }
}

#[test]
fn threads_read_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    let file = ParquetFile::open(&nested(folder.path()), Limits::default()).unwrap();
    assert_eq!((file.metadata().row_groups.len(), file.metadata().schema.leaves().len()), (1, 6));
    let (one, _) = read(&file, &options(1, 8192));
    assert_eq!(one.as_ref().unwrap().rows(), 3000);
    for threads in [2, 3, 8] {
        for batch_rows in [1, 100, 8192] {
            let mut options = options(threads, batch_rows);
            assert_eq!(read(&file, &options), (one.clone(), false), "{threads} threads");
            options.keep_dictionaries = true;
            assert_eq!(read(&file, &options), (one.clone(), false), "{threads} threads");
            options.limit = Some(1234);
            let first = PieceOptions { threads: 1, ..options.clone() };
            assert_eq!(read(&file, &options).0, read(&file, &first).0);
        }
    }
    // Through the door: few rows are read by one thread, many by several.
    let open = |rows: usize| {
        let path = folder.path().join(format!("{rows}.csv"));
        fs::write(&path, format!("a,b\n{}", "1,2\n".repeat(rows))).unwrap();
        let formats: Vec<Arc<dyn FileFormat>> = vec![Arc::new(TextFormat::new(TextOptions::default()))];
        let options = FilesOptions { formats, ..FilesOptions::default() };
        let source: Arc<dyn Source> = Arc::new(Files::open([&path], &options).unwrap());
        let path = path.with_extension("parquet");
        let mut file = NewParquetFile::new(&path, ParquetOptions::default()).unwrap();
        copy(&source, &mut file, &CopyOptions::default(), &mut |_| {}).unwrap();
        let file = ParquetFile::open(&path, Limits::default()).unwrap();
        let schema = &file.metadata().schema;
        let conform = Conform::plan(Arc::clone(schema), Arc::clone(schema), &[]).at_once().unwrap();
        let plan = (Arc::new(conform), Vec::new());
        let rows = ParquetRows::open(file, 0..1, plan, &self::options(2, 8192)).unwrap();
        matches!(rows.how, How::SideBySide(..))
    };
    assert_eq!([1000, 100_000].map(open), [false, true]);
}

/// A file that is damaged has the same error for any number of threads, wherever it is damaged.
#[test]
fn threads_find_the_same_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = nested(folder.path());
    let right = fs::read(&path).unwrap();
    let footer = right.len()
        - 8
        - usize::try_from(u32::from_le_bytes(right[right.len() - 8..right.len() - 4].try_into().unwrap()))
            .unwrap();
    let (mut failed, mut read_on) = (0, 0);
    for place in (4..footer).step_by(footer / 150) {
        // Two places at once: the first error is not that of the first thread which notices.
        let mut wrong = right.clone();
        for at in [place, footer - place] {
            wrong[at] ^= 0x55;
        }
        fs::write(&path, &wrong).unwrap();
        let file = ParquetFile::open(&path, Limits::default()).unwrap();
        let (one, _) = read(&file, &options(1, 100));
        for threads in [2, 8] {
            let (several, is_one) = read(&file, &options(threads, 100));
            assert_eq!(several, one, "{threads} threads, damaged at {place}");
            assert!(several.is_ok() || is_one);
        }
        failed += usize::from(one.is_err());
        read_on += usize::from(one.is_ok());
    }
    assert!(failed > 100, "{failed} of {}", failed + read_on);
}

#[test]
fn threads_read_the_corpus() {
    let Some(corpus) = marquetry_testing::corpus() else { return };
    let mut read_by_threads = 0;
    let folders = ["parquet-testing/data", "parquet-testing/bad_data"];
    for entry in folders.into_iter().flat_map(|folder| fs::read_dir(corpus.join(folder)).unwrap()) {
        let path = entry.unwrap().path();
        let Ok(file) = ParquetFile::open(&path, Limits::default()) else { continue };
        if file.metadata().schema.leaves().len() < 2 {
            continue;
        }
        let (one, _) = read(&file, &options(1, 100));
        for threads in [2, 5] {
            let (several, is_one) = read(&file, &options(threads, 100));
            assert_eq!(several, one, "{path:?} by {threads}");
            read_by_threads += usize::from(!is_one);
        }
    }
    assert!(read_by_threads > 20, "{read_by_threads}");
}

/// Threads that read columns end with the rows.
#[test]
fn threads_are_left() {
    let folder = tempfile::tempdir().unwrap();
    let file = ParquetFile::open(&nested(folder.path()), Limits::default()).unwrap();
    let leaves: Vec<usize> = (0..6).collect();
    let read = file.read_options(0..1, &options(4, 10));
    let cancel = crate::Cancel::new();
    let mut columns = SideBySide::new(&file, &leaves, &read, 4, &cancel).unwrap();
    assert_eq!(columns.next().unwrap().unwrap().columns.len(), 6);
    let left = columns.threads();
    assert!(left() > 0);
    drop(columns);
    let started = std::time::Instant::now();
    while left() > 0 {
        assert!(started.elapsed().as_secs() < 20, "a thread stays");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let mut columns = SideBySide::new(&file, &leaves, &read, 4, &cancel).unwrap();
    cancel.cancel();
    let error = loop {
        match columns.next() {
            Ok(batch) => assert!(batch.is_some(), "it is read to its end"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::Cancelled);
}
