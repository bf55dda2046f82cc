//! Bloom filters find every value of their chunks, by us and by others, and about as many more as was asked for; they are no larger
//! than they need be, and so is what collecting them takes.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use marquetry_base::{Budget, Bytes, ErrorKind, Machine, Step};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::blooms;
use marquetry_conformance::canonical::{self, FILE};
use marquetry_conformance::craft;
use marquetry_conformance::files;
use marquetry_conformance::hostile::{self, Manner, Random};
use marquetry_conformance::parquet_rs;
use marquetry_parquet::batch::{Batch, Layout, Values};
use marquetry_parquet::format::{Encoding, FileMetaData};
use marquetry_parquet::read::BloomProbe;
use marquetry_parquet::schema::Schema;
use marquetry_parquet::write::{BloomOptions, ColumnOptions, Fed, FileWriter, PageVersion, WriteOptions};
use serde_json::Value;

use crate::given::{self, Flavour, SHAPES, TYPES};
use crate::rewritten::{SPILL, plain, write};

/// All types that can have filters.
fn types() -> Vec<(&'static str, i32)> {
    TYPES.into_iter().filter(|(_, number)| *number != craft::BOOLEAN).collect()
}

fn with_bloom(column: ColumnOptions, fpp: f64) -> ColumnOptions {
    ColumnOptions { bloom: Some(BloomOptions { fpp, ..BloomOptions::default() }), ..column }
}

/// Values that nobody wrote, of the length of these.
fn others(values: &BTreeSet<Vec<u8>>, count: usize, random: &mut Random) -> Vec<Vec<u8>> {
    let length = values.iter().map(Vec::len).max().unwrap_or(8).max(8);
    let other = |_| (0..length).map(|_| random.byte()).collect::<Vec<u8>>();
    (0..count).map(other).filter(|value| !values.contains(value)).collect()
}

/// Checks all filters of a file; of each, the values and the bytes. And how many of the values that are not there were found, and looked for.
fn check(bytes: &Bytes, manner: Manner) -> (Vec<(usize, u32)>, [usize; 2]) {
    let metadata = canonical::metadata(bytes, Manner::KIND).unwrap();
    let (mut sizes, mut false_ones, mut tried) = (Vec::new(), 0, 0);
    let mut random = Random(77);
    let checked = blooms::check(bytes, &metadata).unwrap();
    let chunks: usize = metadata.row_groups.iter().map(|group| group.columns.len()).sum();
    assert_eq!(checked.len(), chunks);
    for (row_group, leaf, _) in checked {
        let place = (row_group, leaf);
        let values = blooms::values(bytes, &metadata, row_group, leaf).unwrap();
        let others = others(&values, 200, &mut random);
        let theirs = parquet_rs::bloom_filter(bytes, row_group, leaf).unwrap();
        assert!(values.iter().all(|value| theirs(value)), "parquet-rs does not find a value");
        let ours = blooms::probe(bytes, &metadata, place, others.iter().map(Vec::as_slice), manner).unwrap();
        let theirs: Vec<bool> = others.iter().map(|value| theirs(value)).collect();
        assert_eq!(ours, theirs);
        false_ones += ours.iter().filter(|found| **found).count();
        tried += ours.len();
        let mut probe = BloomProbe::new(FILE, &metadata, row_group, leaf, Vec::new()).unwrap();
        hostile::run(&mut probe, FILE, bytes, manner, |_| Ok(())).unwrap();
        let size = probe.filter_bytes().unwrap();
        assert!(size.is_power_of_two() && size >= 32);
        let (_, length) = metadata.row_groups[row_group].columns[leaf].bloom_filter.unwrap();
        assert!((size + 10..size + 20).contains(&length.unwrap()));
        sizes.push((values.len(), size));
    }
    (sizes, [false_ones, tried])
}

#[test]
fn every_type_shape_and_encoding() {
    let schema = given::schema(&types(), &SHAPES);
    let spilled = |column: ColumnOptions| WriteOptions {
        column,
        spill: Some(SPILL),
        held_bytes_max: 10_000,
        ..WriteOptions::default()
    };
    let no_dictionary = ColumnOptions { dictionary: false, ..plain() };
    let leaving = WriteOptions {
        column: with_bloom(ColumnOptions { encoding: Some(Encoding::RleDictionary), ..plain() }, 0.01),
        dictionary_bytes: 2000,
        page_rows: 100,
        ..WriteOptions::default()
    };
    let ways = [
        WriteOptions { column: with_bloom(plain(), 0.01), row_group_rows: 400, ..WriteOptions::default() },
        spilled(with_bloom(no_dictionary, 0.05)),
        leaving,
        WriteOptions {
            column: with_bloom(ColumnOptions::default(), 0.001),
            page_version: PageVersion::V2,
            ..WriteOptions::default()
        },
    ];
    for (way, options) in ways.into_iter().enumerate() {
        let fpp = options.column.bloom.unwrap().fpp;
        let (mut false_ones, mut tried) = (0, 0);
        for (flavour, layout) in [
            (Flavour::Few, Layout::Spaced),
            (Flavour::Ascending, Layout::Dense),
            (Flavour::Random, Layout::Spaced),
        ] {
            let rows = [300, 1, 900];
            let given = rows.map(|rows| given::batch(&schema, rows, flavour, layout, 5));
            let written = write(&schema, &given, options.clone(), Manner::KIND).unwrap();
            let (_, [found, all]) = check(&written.object(FILE), Manner::KIND);
            (false_ones, tried) = (false_ones + found, tried + all);
            let again = write(&schema, &given, options.clone(), Manner::DISORDERLY).unwrap();
            assert!(written.object(FILE) == again.object(FILE), "budgets change what is written");
        }
        let share = f64::from(u32::try_from(false_ones).unwrap()) / f64::from(u32::try_from(tried).unwrap());
        println!("way {way}: {false_ones} of {tried} are found that are not there: {share}, asked for {fpp}");
        assert!(share <= fpp * 1.2, "{share}, asked for {fpp}");
    }
}

/// Batches of INT64 in one column.
fn numbers(of: impl Iterator<Item = i64>) -> Vec<Batch> {
    let all: Vec<i64> = of.collect();
    let batch = |(rows, first_row): (&[i64], u64)| {
        let schema = given::wide(1, craft::INT64);
        let mut batch = given::batch(&schema, rows.len(), Flavour::Few, Layout::Dense, 1);
        batch.columns[0].values = Values::Int64(rows.to_vec().into());
        batch.first_row = first_row;
        batch
    };
    all.chunks(8192).zip((0..).step_by(8192)).map(batch).collect()
}

#[test]
fn as_large_as_the_different_values_need() {
    let schema = given::wide(1, craft::INT64);
    let dictionary = |dictionary| ColumnOptions { dictionary, ..plain() };
    for (column, values, rows, bytes) in [
        (dictionary(true), 20, 40_000, 32),
        (dictionary(false), 20, 40_000, 32),
        (dictionary(false), 40_000, 40_000, 64 << 10),
        (dictionary(true), 40_000, 40_000, 64 << 10),
        // Beyond what hashes are kept for, so that a filter for all rows that a row group may have is begun, and folded.
        (dictionary(false), 390_000, 390_000, 512 << 10),
        (dictionary(false), 3000, 400_000, 4 << 10),
    ] {
        let batches = numbers((0..rows).map(|at| at % values * 1000));
        let options = WriteOptions { column: with_bloom(column, 0.01), ..WriteOptions::default() };
        let manner = Manner { budget: Budget::DEFAULT_UNITS, ..Manner::KIND };
        let written = write(&schema, &batches, options, manner).unwrap();
        let units_max = written.report.units_max;
        assert!(units_max <= Budget::DEFAULT_UNITS + 50_000, "{units_max} units in a step");
        assert!(written.piece_bytes_max < 1 << 20);
        let (sizes, _) = check(&written.object(FILE), Manner::KIND);
        assert_eq!(sizes, [(usize::try_from(values).unwrap(), bytes)]);
    }
}

/// No more bytes than allowed: then more is found that is not there, but nothing is missed.
#[test]
fn as_large_as_allowed() {
    let schema = given::wide(1, craft::INT64);
    let bloom = Some(BloomOptions { fpp: 0.01, bytes_max: 1024 });
    let column = ColumnOptions { bloom, dictionary: false, ..plain() };
    let options = WriteOptions { column, ..WriteOptions::default() };
    let written = write(&schema, &numbers(0..20_000), options, Manner::KIND).unwrap();
    let (sizes, [found, tried]) = check(&written.object(FILE), Manner::KIND);
    assert_eq!((sizes, found), (vec![(20_000, 1024)], tried));
}

/// A small budget: each step does little, also where hashes become a filter and where that is folded.
#[test]
fn steps_are_small() {
    let schema = given::wide(1, craft::INT64);
    let column = with_bloom(ColumnOptions { dictionary: false, ..plain() }, 0.01);
    let options = WriteOptions { column, row_group_rows: 48_000, ..WriteOptions::default() };
    let manner = Manner { budget: 1, ..Manner::KIND };
    let written = write(&schema, &numbers(0..120_000), options, manner).unwrap();
    println!("{:?}", written.report);
    assert!(written.report.units_max < 250_000, "{}", written.report.units_max);
    let (sizes, _) = check(&written.object(FILE), Manner::DISORDERLY);
    assert_eq!(sizes, [(48_000, 64 << 10), (48_000, 64 << 10), (24_000, 32 << 10)]);
}

/// What a wide table takes grows with its values, not with what filters may have.
#[test]
fn a_wide_table() {
    let columns = 3000;
    let schema = given::wide(columns, craft::INT64);
    let held = |bloom: Option<BloomOptions>| {
        let column = ColumnOptions { bloom, ..plain() };
        let codecs = Arc::new(StandardCodecs::default());
        let options = WriteOptions { column, ..WriteOptions::default() };
        let mut writer = FileWriter::new(FILE, Arc::clone(&schema), codecs, options).unwrap();
        let batch = given::batch(&schema, 200, Flavour::Random, Layout::Dense, 3);
        let (mut is_fed, mut most, mut file) = (false, 0, Vec::new());
        loop {
            match writer.step(&mut Budget::default()).unwrap() {
                Step::Ready(_) if is_fed => writer.finish(),
                Step::Ready(_) => {
                    assert_eq!(writer.feed(batch.clone()).unwrap(), Fed::Taken);
                    is_fed = true;
                }
                Step::Append(_, bytes) => file.extend_from_slice(&bytes),
                Step::Done => return (most, Bytes::from(file)),
                _ => {}
            }
            most = most.max(writer.held());
        }
    };
    let (without, _) = held(None);
    let (with, file) = held(Some(BloomOptions::default()));
    // The hash of a value takes as much as an INT64 does in a page; and the metadata tell where filters are.
    println!("{with} bytes held, {without} without filters");
    assert!(with <= without + 3000 * (200 * 8 + 16), "{with} bytes held, {without} without filters");
    let metadata = canonical::metadata(&file, Manner::KIND).unwrap();
    let filter = metadata.row_groups[0].columns[2999].bloom_filter.unwrap();
    // 512 bytes and a header: without a dictionary, all 200 values count as different ones.
    assert!(filter.1.is_some_and(|bytes| bytes < 600), "{filter:?}");
}

#[test]
fn where_it_has_no_meaning() {
    let error_of = |schema: &Arc<Schema>, bloom: BloomOptions| {
        let column = ColumnOptions { bloom: Some(bloom), ..plain() };
        let options = WriteOptions { column, ..WriteOptions::default() };
        let error = write(schema, &[], options, Manner::KIND).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse);
        error.to_string()
    };
    let booleans = given::schema(&[("boolean", craft::BOOLEAN)], &["required"]);
    let numbers = given::wide(1, craft::INT64);
    assert_eq!(
        error_of(&booleans, BloomOptions::default()),
        "a Bloom filter of BOOLEAN, which has two values (column boolean_required)"
    );
    for fpp in [0.0, 1.0, -0.5, f64::NAN, f64::INFINITY] {
        let told = error_of(&numbers, BloomOptions { fpp, ..BloomOptions::default() });
        assert!(told.starts_with("a Bloom filter of a rate of"), "{told}");
    }
    for bytes_max in [0, 16, 33, 1 << 28, u32::MAX] {
        let told = error_of(&numbers, BloomOptions { bytes_max, ..BloomOptions::default() });
        assert!(told.contains("not a power of two from 32"), "{told}");
    }
}

/// A file of one column with a filter.
fn one() -> (Bytes, Arc<FileMetaData>) {
    let schema = given::wide(1, craft::INT64);
    let options = WriteOptions { column: with_bloom(plain(), 0.01), ..WriteOptions::default() };
    let file = write(&schema, &numbers(0..500), options, Manner::KIND).unwrap().object(FILE);
    let metadata = canonical::metadata(&file, Manner::KIND).unwrap();
    (file, metadata)
}

#[test]
fn filters_that_are_not_what_they_say() {
    let (file, metadata) = one();
    let (offset, length) = metadata.row_groups[0].columns[0].bloom_filter.unwrap();
    let ask = |bytes: &Bytes, metadata: &Arc<FileMetaData>| {
        let values = [7i64, 8, 9].map(i64::to_le_bytes);
        blooms::probe(bytes, metadata, (0, 0), values.iter().map(|value| &value[..]), Manner::DISORDERLY)
    };
    assert_eq!(ask(&file, &metadata).unwrap(), [true; 3]);
    let elsewhere = |offset: u64, length: Option<u32>| {
        let mut changed = FileMetaData::clone(&metadata);
        changed.row_groups[0].columns[0].bloom_filter = Some((offset, length));
        ask(&file, &Arc::new(changed))
    };
    assert_eq!(elsewhere(offset, None).unwrap(), [true; 3]);
    for (offset, length) in [
        (0, length),
        (u64::MAX, length),
        (u64::MAX, None),
        (offset, Some(u32::MAX)),
        (offset, Some(5)),
        (offset, Some(0)),
        (offset, length.map(|length| length - 1)),
        (metadata.footer_start - 3, None),
        (metadata.footer_start, None),
        (metadata.footer_start, Some(0)),
    ] {
        let error = elsewhere(offset, length).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{offset} {length:?}: {error}");
        assert_eq!((error.place().row_group, error.place().column.as_deref()), (Some(0), Some("c0")));
    }
    let mut changed = FileMetaData::clone(&metadata);
    changed.row_groups[0].columns[0].bloom_filter = None;
    assert_eq!(ask(&file, &Arc::new(changed)).unwrap_err().kind(), ErrorKind::Misuse);
    assert_eq!(BloomProbe::new(FILE, &metadata, 1, 0, Vec::new()).unwrap_err().kind(), ErrorKind::Misuse);
    assert_eq!(BloomProbe::new(FILE, &metadata, 0, 1, Vec::new()).unwrap_err().kind(), ErrorKind::Misuse);
    // Every change of a byte of its header: an answer or an error.
    let start = usize::try_from(offset).unwrap();
    let mut refused = 0;
    for at in start..start + 20 {
        for byte in 0..=u8::MAX {
            let mut changed = file.to_vec();
            changed[at] = byte;
            match ask(&changed.into(), &metadata) {
                Ok(found) => assert_eq!(found.len(), 3),
                Err(error) => {
                    assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported), "{error}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 3000, "{refused}");
}

/// The filter of the format's other implementations, for the same four texts, byte for byte; and one of another hash.
#[test]
fn the_filters_of_parquet_testing() {
    let Some(corpus) = files::corpus() else { return };
    let folder = corpus.join("parquet-testing/data");
    let theirs = Bytes::from(std::fs::read(folder.join("bloom_filter.xxhash.bin")).unwrap());
    let (header, length) = marquetry_parquet::format::BloomFilterHeader::read(&theirs, 0).unwrap();
    assert_eq!((header.bytes as usize, theirs.len()), (1024, 1024 + length));
    let (_, metadata) = one();
    // As if it stood in a file.
    let mut changed = FileMetaData::clone(&metadata);
    changed.row_groups[0].columns[0].bloom_filter = Some((4, None));
    changed.footer_start = 4 + theirs.len() as u64;
    let changed = Arc::new(changed);
    let file = Bytes::from([b"PAR1", &theirs[..]].concat());
    let ask = |texts: &[&str]| {
        let values = texts.iter().map(|text| text.as_bytes());
        blooms::probe(&file, &changed, (0, 0), values, Manner::ONE_BYTE).unwrap()
    };
    assert_eq!(ask(&["hello", "parquet", "bloom", "filter"]), [true; 4]);
    assert_eq!(ask(&["Hello", "arrow", "", "filters"]), [false; 4]);
    let murmur = std::fs::read(folder.join("bloom_filter.bin")).unwrap();
    let error = marquetry_parquet::format::BloomFilterHeader::read(&murmur, 0).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported), "{error}");
}

/// DuckDB finds all values, and passes over most of those that are not there.
#[test]
fn by_duckdb() {
    let Some(python) = files::python() else { return };
    let folder = files::root().join("target/conformance/bloom");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let of = ["int32", "int64", "float", "double", "bytes"];
    let types: Vec<(&str, i32)> = types().into_iter().filter(|(name, _)| of.contains(name)).collect();
    let schema = given::schema(&types, &["required", "optional"]);
    let mut paths = Vec::new();
    for (name, column) in [("dictionary", plain()), ("plain", ColumnOptions { dictionary: false, ..plain() })]
    {
        for flavour in [Flavour::Few, Flavour::Ascending, Flavour::Random] {
            let options = WriteOptions {
                column: with_bloom(column.clone(), 0.01),
                row_group_rows: 150,
                ..WriteOptions::default()
            };
            let batch = given::batch(&schema, 300, flavour, Layout::Spaced, 9);
            let written = write(&schema, &[batch], options, Manner::KIND).unwrap();
            let path = folder.join(format!("{name}-{flavour:?}.parquet"));
            std::fs::write(&path, written.object(FILE)).unwrap();
            paths.push(path);
        }
    }
    let told = ask_python(&python, &folder, &paths);
    let sum = |key: &str| told.iter().map(|file| file[key].as_u64().unwrap()).sum::<u64>();
    let (present, missed, absent, found) = (sum("present"), sum("missed"), sum("absent"), sum("found"));
    println!("DuckDB: {missed} of {present} values missed, {found} of {absent} others found");
    assert_eq!((missed, sum("chunks"), sum("filters")), (0, 6 * 20, 6 * 20));
    assert!(present > 1000 && absent > 2000 && found * 100 <= absent * 2, "{found} of {absent}");
}

fn ask_python(python: &Path, folder: &Path, paths: &[std::path::PathBuf]) -> Vec<Value> {
    let out = folder.join("told.json");
    let script = files::root().join("dev/conformance/expect_bloom.py");
    let status = Command::new(python).arg(script).arg(&out).args(paths).status().unwrap();
    assert!(status.success(), "{status}");
    let told: Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
    told.as_array().unwrap().clone()
}
