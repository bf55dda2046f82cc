//! Real files read the same by every driver: the one that waits, tokio's, and compio's with io_uring and with threads.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use compio::driver::{DriverType, ProactorBuilder};
use compio::runtime::Runtime;
use marquetry_base::{Error, Limits, Object};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical::FILE;
use marquetry_conformance::{canonical, files};
use marquetry_io::{ByteSink, ByteSinks, ByteSources, ReadAhead, blocking, drive, drive_into, tokio, uring};
use marquetry_parquet::batch::{Batch, ColumnBatch, Values};
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::read::{BatchReader, FooterReader, ReadOptions};
use marquetry_parquet::write::{Fed, FileWriter, WriteOptions};

/// Odd, and so small that nearly every page is several pieces, and there is more to read than there is room for.
const SMALL: ReadAhead = ReadAhead { piece_bytes: 997, ahead_bytes: 10_000 };
/// Files up to this size are read so; larger ones in the usual way.
const SMALL_FILE_BYTES_MAX: u64 = 200_000;

fn read_ahead(path: &Path) -> ReadAhead {
    let length = path.metadata().unwrap().len();
    if length <= SMALL_FILE_BYTES_MAX { SMALL } else { ReadAhead::default() }
}

fn corpus() -> Option<Vec<PathBuf>> {
    let corpus = files::corpus()?;
    let folders = ["parquet-testing/data", "parquet-testing/bad_data", "real"];
    Some(folders.into_iter().flat_map(|folder| files::parquet_files(&corpus.join(folder))).collect())
}

fn reader(metadata: &Arc<FileMetaData>) -> Result<BatchReader, Error> {
    let options = ReadOptions { batch_rows: 1000, ..ReadOptions::default() };
    BatchReader::new(FILE, Arc::clone(metadata), Arc::new(StandardCodecs::default()), options)
}

/// True when both answers are the same. A NaN is no value's equal, so values that are not equal are compared by their bytes.
fn is_same(found: &Result<Option<Batch>, Error>, expected: &Result<Option<Batch>, Error>) -> bool {
    let (Ok(Some(found)), Ok(Some(expected))) = (found, expected) else { return found == expected };
    let bytes = |values: &Values| -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        for index in 0..values.len() {
            canonical::with_bytes(values, index, |bytes| all.push(bytes.to_vec()));
        }
        all
    };
    let is_same = |(found, expected): (&ColumnBatch, &ColumnBatch)| {
        (found.leaf, found.rows, found.nulls) == (expected.leaf, expected.rows, expected.nulls)
            && (&found.validity, &found.levels) == (&expected.validity, &expected.levels)
            && (found.values == expected.values || bytes(&found.values) == bytes(&expected.values))
    };
    (found.row_group, found.first_row, found.rows) == (expected.row_group, expected.first_row, expected.rows)
        && found.columns.len() == expected.columns.len()
        && found.columns.iter().zip(&expected.columns).all(is_same)
}

/// Reads a file by a driver and by the one that waits, side by side, so that neither's batches are held. The number of
/// batches, or the error that both told. The drivers have their own types; what is done with them is the same.
macro_rules! compare {
    ($driver:ident, $path:expr) => {
        async {
            let path: &Path = $path;
            let ahead = read_ahead(path);
            let waiting = ByteSources::new().with(FILE, blocking::File::open(path)?);
            let sources = ByteSources::new().with(FILE, $driver::File::open(path).await?);
            let footer = || FooterReader::new(FILE, Limits::DEFAULT);
            let expected = drive(&mut footer(), &waiting);
            let found = $driver::drive_ahead(footer(), sources.clone(), ahead).next().await;
            assert_eq!(found, expected, "{}", path.display());
            let metadata = found?.expect("a footer");
            let mut expected = reader(&metadata)?;
            let mut found = $driver::drive_ahead(reader(&metadata)?, sources, ahead);
            let mut batches = 0;
            loop {
                let (expected, found) = (drive(&mut expected, &waiting), found.next().await);
                assert!(is_same(&found, &expected), "{}, batch {batches}", path.display());
                match found? {
                    Some(_) => batches += 1,
                    None => return Ok::<usize, Error>(batches),
                }
            }
        }
    };
}

fn check(read: impl Fn(&Path) -> Result<usize, Error>) {
    let (mut batches, mut refused) = (0, 0);
    let Some(corpus) = corpus() else { return };
    for path in corpus {
        match read(&path) {
            Ok(number) => batches += number,
            Err(_) => refused += 1,
        }
    }
    println!("{batches} batches; {refused} files refused by both");
    assert!(batches > 100 && refused > 3);
}

#[test]
fn files_read_the_same_on_tokio() {
    let runtime = ::tokio::runtime::Builder::new_current_thread().build().unwrap();
    check(|path| runtime.block_on(compare!(tokio, path)));
}

#[test]
fn files_read_the_same_by_io_uring() {
    let mut proactor = ProactorBuilder::new();
    proactor.driver_type(DriverType::IoUring);
    match Runtime::builder().with_proactor(proactor).build() {
        Ok(runtime) => check(|path| runtime.block_on(compare!(uring, path))),
        Err(_) => marquetry_testing::skipped(marquetry_testing::Need::Uring),
    }
}

#[test]
fn files_read_the_same_where_io_uring_is_not_allowed() {
    let mut proactor = ProactorBuilder::new();
    proactor.driver_type(DriverType::Poll);
    let runtime = Runtime::builder().with_proactor(proactor).build().unwrap();
    check(|path| runtime.block_on(compare!(uring, path)));
}

const SPILL: Object = Object(7);

/// A file of nested columns, and its batches.
fn table() -> (Arc<FileMetaData>, Vec<Batch>) {
    let path = files::root().join("dev/conformance/writers/files/parquet-java/nested_small_pages_v2.parquet");
    let sources = ByteSources::new().with(FILE, blocking::File::open(path).unwrap());
    let mut footer = FooterReader::new(FILE, Limits::DEFAULT);
    let metadata = drive(&mut footer, &sources).unwrap().unwrap();
    let mut reader = reader(&metadata).unwrap();
    let mut batches = Vec::new();
    while let Some(batch) = drive(&mut reader, &sources).unwrap() {
        batches.push(batch);
    }
    (metadata, batches)
}

/// A writer that moves most of its pages out of memory.
fn writer(metadata: &FileMetaData) -> FileWriter {
    let options = WriteOptions { spill: Some(SPILL), held_bytes_max: 2_000, ..WriteOptions::default() };
    FileWriter::new(FILE, Arc::clone(&metadata.schema), Arc::new(StandardCodecs::default()), options).unwrap()
}

/// What the writer is fed when it asks for more.
fn feed(writer: &mut FileWriter, batches: &mut impl Iterator<Item = Batch>) {
    match batches.next() {
        Some(batch) => assert_eq!(writer.feed(batch).unwrap(), Fed::Taken),
        None => writer.finish(),
    }
}

#[test]
fn a_file_is_written_the_same_by_every_driver() {
    let folder = tempfile::tempdir().unwrap();
    let (metadata, batches) = table();
    // More than once, so that there is something to spill.
    let batches = || std::iter::repeat_n(&batches, 20).flatten().cloned();
    let expected = {
        let path = folder.path().join("waits");
        let mut file = blocking::NewFile::create(&path).unwrap();
        let mut spill = blocking::SpillFile::create_beside(&path).unwrap();
        let mut sinks = ByteSinks::new().with(FILE, &mut file as &mut dyn ByteSink).with(SPILL, &mut spill);
        let (mut writer, mut batches) = (writer(&metadata), batches());
        while drive_into(&mut writer, &mut sinks).unwrap().is_some() {
            feed(&mut writer, &mut batches);
        }
        file.commit().unwrap();
        std::fs::read(path).unwrap()
    };
    assert!(expected.len() > 50_000, "{} bytes", expected.len());
    macro_rules! written {
        ($driver:ident, $path:expr) => {
            async {
                let mut file = $driver::NewFile::create(&$path).await.unwrap();
                let mut spill = $driver::SpillFile::create_beside(&$path).await.unwrap();
                let sinks =
                    ByteSinks::new().with(FILE, &mut file as &mut $driver::Sink).with(SPILL, &mut spill);
                let mut writing = $driver::drive_into_ahead(writer(&metadata), sinks, SMALL);
                let mut batches = batches();
                while writing.next().await.unwrap().is_some() {
                    feed(writing.machine_mut(), &mut batches);
                }
                drop(writing);
                file.commit().await.unwrap();
                std::fs::read(&$path).unwrap()
            }
        };
    }
    let path = folder.path().join("tokio");
    let runtime = ::tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert!(runtime.block_on(written!(tokio, path)) == expected);
    for kind in [DriverType::IoUring, DriverType::Poll] {
        let mut proactor = ProactorBuilder::new();
        proactor.driver_type(kind);
        let path = folder.path().join(format!("{kind:?}"));
        match Runtime::builder().with_proactor(proactor).build() {
            Ok(runtime) => assert!(runtime.block_on(written!(uring, path)) == expected),
            Err(_) => marquetry_testing::skipped(marquetry_testing::Need::Uring),
        }
    }
}
