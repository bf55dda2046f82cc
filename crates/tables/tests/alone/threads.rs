//! Any number of threads: the same bytes, the same errors, bounded memory.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use marquetry_base::{Error, ErrorKind, Result};
use marquetry_tables::files::{Files, FilesOptions};
use marquetry_tables::parquet::{NewParquetFile, ParquetOptions};
use marquetry_tables::text::{TextFormat, TextOptions};
use marquetry_tables::{Cancel, CopyOptions, Reading, ReadingOptions, Source, copy};

use crate::{MEMORY, alone};

const THREADS: [usize; 4] = [1, 2, 3, 8];
const MIB: usize = 1 << 20;

fn open(path: &Path) -> Arc<dyn Source> {
    let mut options = FilesOptions::default();
    options.formats = vec![Arc::new(TextFormat::new(TextOptions::default()))];
    Arc::new(Files::open([path], &options).unwrap())
}

/// Copies to a new Parquet file, by so many threads.
fn copied(source: &Arc<dyn Source>, to: &Path, threads: usize) -> Result<Vec<u8>> {
    let mut file = NewParquetFile::new(to, ParquetOptions::default())?;
    let mut options = CopyOptions::default();
    options.threads = Some(threads);
    copy(source, &mut file, &options, &mut |_| {})?;
    let bytes = fs::read(to).unwrap();
    fs::remove_file(to).unwrap();
    Ok(bytes)
}

/// A CSV of some blocks, with line ends and doubled quotes in quotes, and quotes that are text.
fn csv(rows: usize) -> String {
    let mut text = String::from("id,name,note,at\n");
    for row in 0..rows {
        let end = if row % 3 == 0 { "\r\n" } else { "\n" };
        let name = match row % 4 {
            0 => format!("\"Hyde, {row}\""),
            1 => format!("{}\" pipe", row % 100),
            2 => "\"a \"\"b\"\"\n\"\"\nc\"".to_string(),
            _ => String::new(),
        };
        let note = "x".repeat(row % 90);
        write!(text, "{row},{name},\"{note}\",2024-02-{:02}{end}", 1 + row % 28).unwrap();
    }
    text
}

fn json_lines(rows: usize) -> String {
    let line = |row: usize| {
        let words: Vec<String> =
            (0..row % 5).map(|word| format!("{{\"w\":\"word {word}\",\"n\":[{row}]}}")).collect();
        format!("{{\"id\":{row},\"words\":[{}],\"x\":{row}.25}}\n", words.join(","))
    };
    (0..rows).map(line).collect()
}

#[test]
fn files_are_the_same_whatever_the_threads() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let text = csv(60_000);
    assert!(text.len() > 4 * MIB);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    gzip.write_all(text.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let texts = [("a.csv", text.as_bytes()), ("b.csv.gz", &gzip), ("c.jsonl", json_lines(30_000).as_bytes())]
        .map(|(name, text)| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path
        });
    for path in texts {
        let source = open(&path);
        assert!(source.pieces()[0].splits);
        let parquet = copied(&source, &folder.path().join("to.parquet"), 1).unwrap();
        for threads in THREADS {
            let again = copied(&source, &folder.path().join("to.parquet"), threads).unwrap();
            assert!(again == parquet, "{path:?} by {threads}");
        }
        // The same of its one row group, whose columns are read side by side.
        let one = folder.path().join("one.parquet");
        fs::write(&one, &parquet).unwrap();
        let source = open(&one);
        assert_eq!((source.pieces().len(), source.table().row_groups), (1, Some(1)));
        let parquet = copied(&source, &folder.path().join("to.parquet"), 0).unwrap();
        for threads in THREADS {
            let again = copied(&source, &folder.path().join("to.parquet"), threads).unwrap();
            assert!(again == parquet, "{path:?} as Parquet by {threads}");
        }
    }
}

#[test]
fn errors_are_the_same_whatever_the_threads() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    let right = csv(60_000);
    // Lines that begin with a digit begin rows.
    let starts: Vec<usize> = right.match_indices("\n1").map(|(at, _)| at + 1).collect();
    let middle = |part: usize| starts[starts.len() * part / 10];
    for (wrong, part) in
        [("1,a\n", 1), ("1,\"a\"b,c,2024-02-01\n", 5), ("1,\"open,c,2024-02-01\n", 5), ("x,,,\n", 9)]
    {
        let text = [&right[..middle(part)], wrong, &right[middle(part)..], "y,,,,,\n"].concat();
        fs::write(&path, &text).unwrap();
        let mut schema = TextOptions::default();
        schema.schema = Some("id bigint, name text, note text, at date".parse().unwrap());
        let mut options = FilesOptions::default();
        options.formats = vec![Arc::new(TextFormat::new(schema))];
        let source: Arc<dyn Source> = Arc::new(Files::open([&path], &options).unwrap());
        let failed = |threads| copied(&source, &folder.path().join("to.parquet"), threads).unwrap_err();
        let error = failed(0);
        let line = text[..middle(part)].matches('\n').count() + 1;
        if !wrong.contains("open") {
            assert!(error.message().starts_with(&format!("line {line}: ")), "{error}");
        }
        for threads in THREADS {
            assert_eq!(failed(threads), error, "{threads} threads");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left");
    }
}

/// Reads all rows, holding each batch for a moment only.
fn read(source: &Arc<dyn Source>, threads: usize, cancel: &Cancel) -> Result<usize, Error> {
    let mut options = ReadingOptions::default();
    (options.threads, options.cancel) = (Some(threads), cancel.clone());
    let mut reading = Reading::new(Arc::clone(source), options)?;
    let mut rows = 0;
    while let Some((_, batch)) = reading.next_batch()? {
        assert_eq!(batch.first_row, rows as u64);
        rows += batch.rows;
    }
    Ok(rows)
}

/// Memory is a matter of threads and blocks, not of the text; of columns side by side, not even of the threads.
#[test]
fn memory_is_bounded() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    let text = csv(500_000);
    fs::write(&path, &text).unwrap();
    assert!(text.len() > 30 * MIB);
    drop(text);
    let peak = |source: &Arc<dyn Source>, threads: usize, is_slow: bool| {
        let before = MEMORY.current_usage();
        MEMORY.reset_peak_usage();
        let mut options = ReadingOptions::default();
        options.threads = Some(threads);
        let mut reading = Reading::new(Arc::clone(source), options).unwrap();
        let mut rows = 0;
        while let Some((_, batch)) = reading.next_batch().unwrap() {
            if is_slow && rows == 0 {
                // The threads are as far ahead as they may be.
                std::thread::sleep(std::time::Duration::from_millis(500));
            }
            rows += batch.rows;
        }
        assert_eq!(rows, 500_000);
        MEMORY.peak_usage() - before
    };
    let source = open(&path);
    for threads in [1, 2, 4] {
        // Of each block in flight its text, and its values; and what waits outside.
        let bound = (2 * threads + 4) * 3 * MIB;
        let peak = peak(&source, threads, true);
        assert!(peak < bound, "{threads} threads: {} KiB", peak >> 10);
    }
    let parquet = folder.path().join("a.parquet");
    fs::write(&parquet, copied(&source, &folder.path().join("to.parquet"), 2).unwrap()).unwrap();
    let source = open(&parquet);
    let one = peak(&source, 1, true);
    for threads in [2, 8] {
        let several = peak(&source, threads, true);
        assert!(several < one + 4 * MIB, "{} KiB by {threads}, {} by one", several >> 10, one >> 10);
    }
}

#[test]
fn threads_are_cancelled() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    fs::write(&path, csv(60_000)).unwrap();
    let text = open(&path);
    let parquet = folder.path().join("a.parquet");
    fs::write(&parquet, copied(&text, &folder.path().join("to.parquet"), 2).unwrap()).unwrap();
    for source in [text, open(&parquet)] {
        assert_eq!(read(&source, 3, &Cancel::new()).unwrap(), 60_000);
        let mut options = ReadingOptions::default();
        options.threads = Some(3);
        let mut reading = Reading::new(Arc::clone(&source), options.clone()).unwrap();
        assert!(reading.next_batch().unwrap().is_some());
        options.cancel.cancel();
        assert_eq!(reading.next_batch().unwrap_err().kind(), ErrorKind::Cancelled);
        assert_eq!(read(&source, 3, &options.cancel).unwrap_err().kind(), ErrorKind::Cancelled);
    }
}
