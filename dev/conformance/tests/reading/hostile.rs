//! Real files read the same whatever the host does, on a small stack, and no step does more than a counted amount of work.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use marquetry_base::{Budget, Bytes, Error, Limits};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical::FILE;
use marquetry_conformance::craft::{self, Chunk, Column, Page, Table};
use marquetry_conformance::hostile::{self, Manner};
use marquetry_conformance::{canonical, files};
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::read::{BatchReader, PageInfo, PageScanner, ReadOptions};

/// Files up to this size are read in every manner; larger ones in the usual one.
const EVERY_MANNER_FILE_BYTES_MAX: usize = 100_000;

/// Units that a step may charge beyond its budget, for the slice that it was in the middle of. The dearest is a block
/// of ZSTD.
const SLICE_UNITS_MAX: u64 = 75_000;

fn corpus() -> Option<Vec<(PathBuf, Bytes)>> {
    let corpus = files::corpus()?;
    let mut paths = Vec::new();
    for folder in ["parquet-testing/data", "parquet-testing/bad_data", "real"] {
        paths.extend(files::parquet_files(&corpus.join(folder)));
    }
    Some(paths.into_iter().map(|path| (path.clone(), Bytes::from(std::fs::read(path).unwrap()))).collect())
}

/// What a reading gives: of each column its rows, entries that hold no value, and a sum; or the error.
type Reading = Result<Vec<(u64, u64, u32)>, Error>;

fn flat_leaves(metadata: &FileMetaData) -> Vec<usize> {
    let leaves = metadata.schema.leaves();
    (0..leaves.len()).filter(|&leaf| leaves[leaf].is_flat()).collect()
}

fn read(bytes: &Bytes, manner: Manner) -> Reading {
    let metadata = canonical::metadata(bytes, manner)?;
    let options = ReadOptions { batch_rows: 1000, ..ReadOptions::default() };
    let flat = ReadOptions { leaves: Some(flat_leaves(&metadata)), ..options.clone() };
    let (sums, _) = canonical::sums(bytes, &metadata, flat, manner)?;
    let mut all: Vec<_> = sums.into_iter().map(|sum| (sum.rows, sum.nulls, sum.crc32)).collect();
    for leaf in (0..metadata.schema.leaves().len()).filter(|&leaf| !metadata.schema.leaves()[leaf].is_flat())
    {
        let options = ReadOptions { leaves: Some(vec![leaf]), ..options.clone() };
        all.push(read_nested(bytes, &metadata, options, manner)?);
    }
    Ok(all)
}

/// The same of one nested column: its sum is over its levels, then over its values.
fn read_nested(
    bytes: &Bytes,
    metadata: &Arc<FileMetaData>,
    options: ReadOptions,
    manner: Manner,
) -> Result<(u64, u64, u32), Error> {
    let codecs = Arc::new(StandardCodecs::default());
    let mut reader = BatchReader::new(FILE, Arc::clone(metadata), codecs, options)?;
    let (mut rows, mut nulls) = (0, 0);
    let [mut definition, mut repetition, mut values] = [(); 3].map(|()| crc32fast::Hasher::new());
    canonical::read(&mut reader, bytes, manner, |batch| {
        let column = &batch.columns[0];
        let levels = column.levels.as_ref().expect("a nested leaf has levels");
        assert_eq!(levels.definition.len(), column.values.len() + column.nulls);
        rows += column.rows as u64;
        nulls += column.nulls as u64;
        definition.update(&levels.definition);
        if let Some(levels) = &levels.repetition {
            assert_eq!(levels.iter().filter(|level| **level == 0).count(), column.rows);
            repetition.update(levels);
        }
        for index in 0..column.values.len() {
            canonical::with_bytes(&column.values, index, |bytes| values.update(bytes));
        }
    })?;
    Ok((
        rows,
        nulls,
        definition.finalize() ^ repetition.finalize().rotate_left(1) ^ values.finalize().rotate_left(2),
    ))
}

#[test]
fn every_manner_gives_the_same() {
    let Some(corpus) = corpus() else { return };
    let (mut good, mut bad) = (0, 0);
    for (path, bytes) in corpus {
        let expected = read(&bytes, Manner::KIND);
        match &expected {
            Ok(_) => good += 1,
            Err(error) => {
                bad += 1;
                println!("{}: {error:?}", path.display());
            }
        }
        let small = bytes.len() <= EVERY_MANNER_FILE_BYTES_MAX;
        let manners: &[Manner] =
            if small { &[Manner::ONE_BYTE, Manner::DISORDERLY, Manner::USUAL] } else { &[Manner::USUAL] };
        for &manner in manners {
            assert_eq!(read(&bytes, manner), expected, "{} read as {manner:?}", path.display());
        }
    }
    println!("{good} files read, {bad} refused");
    assert!(good > 40 && bad > 3);
}

/// A page that comes in a few large pieces, whose last is more than is copied at a time.
#[test]
fn large_pieces_of_a_page_give_the_same() {
    let numbers: Vec<i64> = (0..200_000).collect();
    for codec in [craft::UNCOMPRESSED, craft::SNAPPY, craft::GZIP, craft::ZSTD] {
        let page = Page::data(200_000, craft::PLAIN, craft::plain_i64(&numbers)).compressed(codec);
        let bytes = Table::new([Column::required("a", craft::INT64)])
            .group(200_000, [Chunk::new(200_000, [page]).codec(codec)])
            .write();
        let expected = read(&bytes, Manner::KIND);
        assert!(expected.is_ok(), "codec {codec}: {expected:?}");
        for piece_bytes in [300 << 10, 600 << 10, 1000 << 10] {
            let manner = Manner { piece_bytes, ..Manner::USUAL };
            assert_eq!(read(&bytes, manner), expected, "codec {codec}, pieces of {piece_bytes} bytes");
        }
    }
}

#[test]
fn page_headers_are_scanned_the_same() {
    let Some(corpus) = corpus() else { return };
    let mut pages = 0;
    for (path, bytes) in corpus {
        let Ok(metadata) = canonical::metadata(&bytes, Manner::KIND) else { continue };
        let small = bytes.len() <= EVERY_MANNER_FILE_BYTES_MAX;
        for leaf in 0..metadata.schema.leaves().len() {
            let scan = |manner| -> Result<Vec<PageInfo>, Error> {
                let mut scanner = PageScanner::new(FILE, &metadata, 0, leaf, Limits::DEFAULT)?;
                let mut found = Vec::new();
                hostile::run(&mut scanner, FILE, &bytes, manner, |page| {
                    found.push(page);
                    Ok(())
                })?;
                Ok(found)
            };
            let expected = scan(Manner::KIND);
            pages += expected.as_ref().map_or(0, Vec::len);
            for manner in [Manner::DISORDERLY, Manner::USUAL, Manner::ONE_BYTE] {
                if small || manner.piece_bytes > 1 {
                    assert_eq!(scan(manner), expected, "{}, column {leaf}, {manner:?}", path.display());
                }
            }
        }
    }
    println!("{pages} pages");
    assert!(pages > 1000);
}

#[test]
fn a_small_stack_is_enough() {
    /// Seastar's threads have 128 KiB.
    const STACK_BYTES: usize = 128 << 10;
    let Some(corpus) = corpus() else { return };
    for (path, bytes) in corpus {
        let expected = read(&bytes, Manner::KIND);
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        let small = thread.spawn(move || read(&bytes, Manner::USUAL)).unwrap().join().unwrap();
        assert_eq!(small, expected, "{}", path.display());
    }
}

#[test]
fn no_step_does_more_than_it_may() {
    let Some(corpus) = corpus() else { return };
    let mut largest: BTreeMap<String, (u64, String)> = BTreeMap::new();
    for (path, bytes) in corpus {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Ok(metadata) = canonical::metadata(&bytes, Manner::USUAL) else { continue };
        for leaf in flat_leaves(&metadata) {
            let Some(group) = metadata.row_groups.first() else { continue };
            let compression = group.columns[leaf].compression;
            if let Some(units) = units_max(&bytes, &metadata, leaf) {
                let entry = largest.entry(compression.to_string()).or_default();
                *entry = entry.clone().max((units, format!("{name}, column {leaf}")));
                let bound = Budget::DEFAULT_UNITS + SLICE_UNITS_MAX;
                assert!(units <= bound, "{name}, column {leaf} ({compression}): a step of {units} units");
            }
        }
    }
    println!("the largest steps, in units: {largest:#?}");
    assert!(largest.len() >= 5, "{largest:?}");
}

/// Units of the largest step; `None` for a column that cannot be read.
fn units_max(bytes: &Bytes, metadata: &Arc<FileMetaData>, leaf: usize) -> Option<u64> {
    let options = ReadOptions { leaves: Some(vec![leaf]), ..ReadOptions::default() };
    canonical::sums(bytes, metadata, options, Manner::USUAL).ok().map(|(_, report)| report.units_max)
}

/// A page that is not compressed, and comes in pieces, is copied: in slices, of which the last pieces may have several.
#[test]
fn large_pages_come_in_large_pieces() {
    use marquetry_conformance::craft::{Chunk, Column, INT64, PLAIN, Page, Table, plain_i64};
    let values: Vec<i64> = (0..150_000).collect();
    let page = Page::data(150_000, PLAIN, plain_i64(&values));
    let table = Table::new([Column::required("a", INT64)]).group(150_000, [Chunk::new(150_000, [page])]);
    let bytes = table.write();
    let expected = read(&bytes, Manner::KIND);
    assert!(expected.is_ok());
    for seed in 1..20 {
        let manner = Manner { seed, piece_bytes: 900_000, ..Manner::USUAL };
        assert_eq!(read(&bytes, manner), expected, "{manner:?}");
    }
}
