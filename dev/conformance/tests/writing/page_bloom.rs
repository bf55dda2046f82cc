//! Bloom filters of pages find every value of their page, wherever they are moved to; what is not what was announced is
//! not believed.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::Arc;

use marquetry_base::{Budget, Bytes, ErrorKind};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical::{self, FILE};
use marquetry_conformance::craft;
use marquetry_conformance::files;
use marquetry_conformance::hostile::{Manner, Random};
use marquetry_conformance::page_blooms::{self, Checked};
use marquetry_conformance::written;
use marquetry_parquet::batch::{Batch, Layout, Values};
use marquetry_parquet::format::{Encoding, FileMetaData, PAGE_BLOOM_KEY};
use marquetry_parquet::read::PageBloom;
use marquetry_parquet::schema::Schema;
use marquetry_parquet::write::{
    BloomOptions, ColumnOptions, Fed, FileWriter, PageBloomOptions, PageVersion, WriteOptions,
};

use crate::given::{self, Flavour, SHAPES, TYPES};
use crate::rewritten::{SPILL, plain, write};

/// All types that can have filters.
fn types() -> Vec<(&'static str, i32)> {
    TYPES.into_iter().filter(|(_, number)| *number != craft::BOOLEAN).collect()
}

fn with_bloom(column: ColumnOptions, fpp: f64) -> ColumnOptions {
    ColumnOptions { page_bloom: Some(PageBloomOptions { fpp, ..PageBloomOptions::default() }), ..column }
}

/// Checks all filters of a file, of which each chunk has some.
fn check(bytes: &Bytes, manner: Manner) -> Vec<Checked> {
    let metadata = canonical::metadata(bytes, Manner::KIND).unwrap();
    let checked = page_blooms::check(bytes, &metadata, manner).unwrap();
    let chunks: usize = metadata.row_groups.iter().map(|group| group.columns.len()).sum();
    assert_eq!(checked.len(), chunks);
    checked
}

/// The share of pages that were said to have a value that they do not have.
fn false_share<'a>(checked: impl IntoIterator<Item = &'a Checked>) -> f64 {
    let (mut found, mut tried) = (0, 0);
    checked.into_iter().for_each(|chunk| {
        found += chunk.false_ones;
        tried += chunk.tried;
    });
    println!("{found} of {tried} are found that are not there");
    found as f64 / tried as f64
}

#[test]
fn every_type_shape_and_encoding() {
    let schema = given::schema(&types(), &SHAPES);
    let small = |column: ColumnOptions| WriteOptions { column, page_rows: 100, ..WriteOptions::default() };
    let both = ColumnOptions { bloom: Some(BloomOptions::default()), ..with_bloom(plain(), 0.05) };
    let ways = [
        WriteOptions { row_group_rows: 400, ..small(with_bloom(plain(), 0.01)) },
        WriteOptions {
            spill: Some(SPILL),
            held_bytes_max: 10_000,
            ..small(ColumnOptions { dictionary: false, ..both })
        },
        // A dictionary that is left between two pages.
        WriteOptions {
            dictionary_bytes: 2000,
            ..small(with_bloom(ColumnOptions { encoding: Some(Encoding::RleDictionary), ..plain() }, 0.01))
        },
        WriteOptions {
            page_version: PageVersion::V2,
            row_group_rows: 700,
            ..small(with_bloom(ColumnOptions::default(), 0.001))
        },
    ];
    for (way, options) in ways.into_iter().enumerate() {
        let fpp = options.column.page_bloom.unwrap().fpp;
        let mut all = Vec::new();
        for (flavour, layout) in [
            (Flavour::Few, Layout::Spaced),
            (Flavour::Ascending, Layout::Dense),
            (Flavour::Random, Layout::Spaced),
        ] {
            let rows = [300, 1, 600];
            let given = rows.map(|rows| given::batch(&schema, rows, flavour, layout, 5));
            let written = write(&schema, &given, options.clone(), Manner::KIND).unwrap();
            all.extend(check(&written.object(FILE), Manner::KIND));
            let again = write(&schema, &given, options.clone(), Manner::DISORDERLY).unwrap();
            assert!(written.object(FILE) == again.object(FILE), "budgets change what is written");
        }
        assert!(all.iter().any(|chunk| chunk.bloom.pages() > 3));
        let share = false_share(&all);
        println!("way {way}: {share}, asked for {fpp}");
        assert!(share <= fpp * 1.2, "{share}, asked for {fpp}");
    }
}

/// A file of columns that are fed one by one is the same.
#[test]
fn fed_by_columns() {
    let schema = given::schema(&types(), &SHAPES[..3]);
    let batch = given::batch(&schema, 700, Flavour::Random, Layout::Spaced, 8);
    let options = WriteOptions {
        column: with_bloom(ColumnOptions::default(), 0.01),
        page_rows: 100,
        row_group_rows: 700,
        ..WriteOptions::default()
    };
    let by_rows = write(&schema, std::slice::from_ref(&batch), options.clone(), Manner::KIND).unwrap();
    for manner in [Manner::KIND, Manner { budget: 1, ..Manner::KIND }] {
        let codecs = Arc::new(StandardCodecs::default());
        let mut writer = FileWriter::new(FILE, Arc::clone(&schema), codecs, options.clone()).unwrap();
        let mut columns = batch.columns.clone().into_iter();
        let by_columns = written::write(&mut writer, manner, |writer: &mut FileWriter, _| {
            match columns.next() {
                Some(column) => assert_eq!(writer.feed_column(column)?, Fed::Taken),
                None => writer.finish(),
            }
            Ok(())
        });
        assert!(by_columns.unwrap().object(FILE) == by_rows.object(FILE), "another file");
    }
    check(&by_rows.object(FILE), Manner::USUAL);
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

/// Numbers in an order that is not theirs.
fn mixed(count: i64) -> impl Iterator<Item = i64> {
    (0..count).map(move |at| at * 0x5851_F42D % count)
}

#[test]
fn as_large_as_the_fullest_page_needs() {
    let schema = given::wide(1, craft::INT64);
    for (column, page_rows, rows, values, blocks) in [
        (plain(), 4096, 40_960, 40_960, 256),
        (ColumnOptions { encoding: Some(Encoding::Plain), ..plain() }, 4096, 40_960, 40_960, 256),
        (plain(), 1000, 20_000, 20, 1),
        (ColumnOptions { encoding: Some(Encoding::Plain), ..plain() }, 20_000, 60_000, 3000, 128),
        // The last page has fewer values.
        (ColumnOptions { encoding: Some(Encoding::Plain), ..plain() }, 4096, 30_000, 30_000, 256),
    ] {
        let column = with_bloom(column, 0.01);
        let options = WriteOptions { column, page_rows, ..WriteOptions::default() };
        let batches = numbers(mixed(rows).map(|value| value % values));
        let manner = Manner { budget: Budget::DEFAULT_UNITS, ..Manner::KIND };
        let written = write(&schema, &batches, options, manner).unwrap();
        let units_max = written.report.units_max;
        assert!(units_max <= Budget::DEFAULT_UNITS + 50_000, "{units_max} units in a step");
        assert!(written.piece_bytes_max < 1 << 20);
        let checked = check(&written.object(FILE), Manner::KIND);
        assert_eq!(checked.len(), 1);
        assert_eq!(checked[0].bloom.blocks(), blocks, "{:?}", checked[0].values);
        // Of few questions the share is a matter of luck.
        let share = false_share(&checked);
        assert!(share <= 0.011 || checked[0].tried < 10_000, "{share}");
    }
}

/// Pages without any value, and a page of one: all have a filter of the same size.
#[test]
fn pages_of_nulls() {
    let schema = given::schema(&[("int64", craft::INT64)], &["optional"]);
    let mut batch = given::batch(&schema, 1000, Flavour::Ascending, Layout::Spaced, 1);
    let valid: Vec<bool> = (0..1000).map(|row| (300..500).contains(&row) || row == 999).collect();
    batch.columns[0].validity = Some(valid.iter().copied().collect());
    let column = with_bloom(ColumnOptions { encoding: Some(Encoding::Plain), ..plain() }, 0.01);
    let options = WriteOptions { column, page_rows: 100, ..WriteOptions::default() };
    let file = write(&schema, &[batch], options, Manner::KIND).unwrap().object(FILE);
    let checked = check(&file, Manner::ONE_BYTE);
    assert_eq!(checked[0].values, [0, 0, 0, 100, 100, 0, 0, 0, 0, 1]);
    assert_eq!(checked[0].bloom.blocks(), 8);
}

/// A chunk whose filters would take too much memory has none; others have theirs.
#[test]
fn no_more_than_allowed() {
    let schema = given::flat(&[craft::INT64, craft::INT64]);
    let column = |bytes_max| {
        let bloom = PageBloomOptions { bytes_max, ..PageBloomOptions::default() };
        ColumnOptions { page_bloom: Some(bloom), dictionary: false, ..plain() }
    };
    let batches: Vec<Batch> = [40_960, 40_960, 8192]
        .map(|rows| given::batch(&schema, rows, Flavour::Random, Layout::Dense, 3))
        .into();
    // Ten pages of 8 KiB are too much, two are not.
    let options = WriteOptions {
        column: column(32 << 20),
        columns: [(1, column(78 << 10))].into(),
        page_rows: 4096,
        row_group_rows: 40_960,
        ..WriteOptions::default()
    };
    for manner in [Manner::KIND, Manner { budget: 1, ..Manner::KIND }] {
        let file = write(&schema, &batches, options.clone(), manner).unwrap().object(FILE);
        let metadata = canonical::metadata(&file, Manner::KIND).unwrap();
        let checked = page_blooms::check(&file, &metadata, Manner::KIND).unwrap();
        let chunks: Vec<(usize, usize)> = checked.iter().map(|chunk| chunk.chunk).collect();
        assert_eq!(chunks, [(0, 0), (1, 0), (2, 0), (2, 1)]);
        assert!(metadata.row_groups[0].columns[1].key_values.is_empty());
    }
    // Smaller filters than asked for find more.
    let bloom = PageBloomOptions { page_bytes_max: 1024, ..PageBloomOptions::default() };
    let column = ColumnOptions { page_bloom: Some(bloom), dictionary: false, ..plain() };
    let options = WriteOptions { column, page_rows: 4096, ..WriteOptions::default() };
    let checked =
        check(&write(&schema, &batches[2..], options, Manner::KIND).unwrap().object(FILE), Manner::KIND);
    assert_eq!(checked[0].bloom.blocks(), 32);
    assert!(false_share(&checked) > 0.5);
}

/// Without the page index nobody knows where pages are.
#[test]
fn without_a_page_index() {
    let schema = given::wide(1, craft::INT64);
    let column = with_bloom(plain(), 0.01);
    let none = |options: WriteOptions| {
        let file = write(&schema, &numbers(0..20_000), options, Manner::KIND).unwrap().object(FILE);
        let metadata = canonical::metadata(&file, Manner::KIND).unwrap();
        assert_eq!(metadata.row_groups[0].columns[0].offset_index, None);
        assert!(metadata.row_groups[0].columns[0].key_values.is_empty());
    };
    none(WriteOptions { column: column.clone(), page_index: false, ..WriteOptions::default() });
    let mut options = WriteOptions { column, page_rows: 100, ..WriteOptions::default() };
    options.limits.page_index_bytes = 1000;
    none(options);
}

#[test]
fn where_it_has_no_meaning() {
    let error_of = |schema: &Arc<Schema>, bloom: PageBloomOptions| {
        let column = ColumnOptions { page_bloom: Some(bloom), ..plain() };
        let options = WriteOptions { column, ..WriteOptions::default() };
        let error = write(schema, &[], options, Manner::KIND).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Misuse);
        error.to_string()
    };
    let (booleans, numbers) =
        (given::schema(&[("boolean", craft::BOOLEAN)], &["required"]), given::wide(1, craft::INT64));
    let told = error_of(&booleans, PageBloomOptions::default());
    assert_eq!(told, "a Bloom filter of BOOLEAN, which has two values (column boolean_required)");
    for fpp in [0.0, 1.0, f64::NAN] {
        let told = error_of(&numbers, PageBloomOptions { fpp, ..PageBloomOptions::default() });
        assert!(told.starts_with("a Bloom filter of a rate of"), "{told}");
    }
    for page_bytes_max in [0, 33, 256 << 10] {
        let told = error_of(&numbers, PageBloomOptions { page_bytes_max, ..PageBloomOptions::default() });
        assert!(told.contains("not a power of two from 32 to 131072"), "{told}");
    }
}

/// A small budget: each step does little.
#[test]
fn steps_are_small() {
    let schema = given::wide(1, craft::INT64);
    let column = with_bloom(ColumnOptions { dictionary: false, ..plain() }, 0.01);
    let options =
        WriteOptions { column, page_rows: 10_000, row_group_rows: 48_000, ..WriteOptions::default() };
    let manner = Manner { budget: 1, ..Manner::KIND };
    let written = write(&schema, &numbers(mixed(120_000)), options, manner).unwrap();
    println!("{:?}", written.report);
    assert!(written.report.units_max < 250_000, "{}", written.report.units_max);
    let checked = check(&written.object(FILE), Manner::KIND);
    assert_eq!(checked.len(), 3);
}

/// A file of one column of 3,000 different numbers in 30 pages, and its filters.
fn one() -> (Bytes, Arc<FileMetaData>, PageBloom) {
    let schema = given::wide(1, craft::INT64);
    let column = with_bloom(ColumnOptions { dictionary: false, ..plain() }, 0.01);
    let options = WriteOptions { column, page_rows: 100, ..WriteOptions::default() };
    let file = write(&schema, &numbers(mixed(3_000)), options, Manner::KIND).unwrap().object(FILE);
    let metadata = canonical::metadata(&file, Manner::KIND).unwrap();
    let bloom = PageBloom::of(&metadata, 0, 0).unwrap();
    assert_eq!((bloom.pages(), bloom.chunk()), (30, (0, 0)));
    assert_eq!((bloom.blocks(), bloom.row_bytes()), (8, 964));
    assert_eq!(bloom.range().end - bloom.range().start, 8 * 964);
    (file, metadata, bloom)
}

/// The numbers of [`one`], as PLAIN has them.
fn all() -> Vec<[u8; 8]> {
    (0..3_000_i64).map(i64::to_le_bytes).collect()
}

#[test]
fn a_probe_reads_a_single_range_for_a_hash() {
    use marquetry_base::{Machine, Step, Want};
    let (file, _, bloom) = one();
    let hash = marquetry_parquet::bloom::hash(&7_i64.to_le_bytes());
    let mut probe = marquetry_parquet::read::PageBloomProbe::new(FILE, bloom, vec![hash, hash]);
    let Step::Need(demand) = probe.step(&mut Budget::default()).unwrap() else { panic!("nothing is needed") };
    let [Want::Range(_, range, _)] = &demand.wants[..] else { panic!("{demand:?}") };
    assert_eq!(range.end - range.start, 30 * 32 + 4);
    let bytes = file.slice(usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap());
    probe.supply(FILE, range.clone(), bytes).unwrap();
    let mut found = Vec::new();
    while let Step::Ready(pages) = probe.step(&mut Budget::default()).unwrap() {
        found.push(pages.unwrap());
    }
    assert_eq!(found.len(), 2);
    assert_eq!(found[0], found[1]);
    assert!(!found[0].is_empty() && found[0].count() < 4, "{:?}", found[0]);
    assert_eq!(probe.step(&mut Budget::default()).unwrap(), Step::Done);
}

#[test]
fn driven_by_a_hostile_host() {
    let (file, metadata, _) = one();
    let found = check(&file, Manner::KIND);
    for manner in [Manner::ONE_BYTE, Manner::DISORDERLY, Manner::USUAL] {
        assert_eq!(page_blooms::check(&file, &metadata, manner).unwrap(), found);
    }
}

/// More pages than are looked at together; a last page of one row.
#[test]
fn many_pages() {
    const ROWS: i64 = 6001;
    let schema = given::wide(1, craft::INT64);
    let column = with_bloom(ColumnOptions { dictionary: false, ..plain() }, 0.01);
    let options = WriteOptions { column, page_rows: 8, ..WriteOptions::default() };
    let file = write(&schema, &numbers(mixed(ROWS)), options, Manner::KIND).unwrap().object(FILE);
    let metadata = canonical::metadata(&file, Manner::KIND).unwrap();
    let bloom = PageBloom::of(&metadata, 0, 0).unwrap();
    assert_eq!(bloom.pages(), 751);
    for (manner, step) in
        [(Manner::KIND, 1), (Manner::USUAL, 1), (Manner::DISORDERLY, 40), (Manner::ONE_BYTE, 400)]
    {
        let values: Vec<[u8; 8]> = mixed(ROWS).step_by(step).map(i64::to_le_bytes).collect();
        let found = page_blooms::probe(&file, bloom, values.iter().map(|value| &value[..]), manner).unwrap();
        let mut pages = 0;
        for (at, found) in found.into_iter().enumerate() {
            let found = found.unwrap();
            assert_eq!(found.pages(), 751);
            assert!(found.contains(at * step / 8), "row {}", at * step);
            pages += found.count();
        }
        assert!(pages < values.len() * 8, "{pages} pages for {} values", values.len());
    }
}

/// Bits all over the filters: a row that has another is not believed, and the other rows are.
#[test]
fn no_bit_may_be_another() {
    let (file, _, bloom) = one();
    let values = all();
    let ask = |bytes: &Bytes| {
        page_blooms::probe(bytes, bloom, values.iter().map(|value| &value[..]), Manner::KIND).unwrap()
    };
    let before = ask(&file);
    assert!(before.iter().all(Option::is_some));
    let range = usize::try_from(bloom.range().start).unwrap()..usize::try_from(bloom.range().end).unwrap();
    let mut random = Random(5);
    for first in range.clone().step_by(4) {
        let at = (first + usize::try_from(random.below(4)).unwrap()).min(range.end - 1);
        let mut changed = file.to_vec();
        changed[at] ^= 1 << random.below(8);
        let after = ask(&changed.into());
        let doubted = after.iter().zip(&before).filter(|(after, before)| match after {
            Some(_) => {
                assert_eq!(after, before);
                false
            }
            None => true,
        });
        assert!(doubted.count() > 100, "byte {at}");
    }
}

/// Every bit of the announcement, wherever the footer has it.
#[test]
fn no_bit_of_the_announcement_may_be_another() {
    let (file, metadata, _) = one();
    let pair = &metadata.row_groups[0].columns[0].key_values[0];
    assert_eq!(pair.key, PAGE_BLOOM_KEY);
    let value = pair.value.as_ref().unwrap();
    println!("{}", std::str::from_utf8(value).unwrap());
    for at in 0..value.len() {
        for bit in 0..8 {
            let mut changed = value.to_vec();
            changed[at] ^= 1 << bit;
            if changed.eq_ignore_ascii_case(value) {
                continue;
            }
            let mut other = FileMetaData::clone(&metadata);
            other.row_groups[0].columns[0].key_values[0].value = Some(changed.into());
            assert_eq!(PageBloom::of(&other, 0, 0), None);
        }
    }
    assert_eq!(PageBloom::of(&metadata, 0, 1), None);
    assert_eq!(PageBloom::of(&metadata, 1, 0), None);
    // Cut off: what is announced is not within the file.
    let mut other = FileMetaData::clone(&metadata);
    other.footer_start = PageBloom::of(&metadata, 0, 0).unwrap().range().end - 1;
    assert_eq!(PageBloom::of(&other, 0, 0), None);
    drop(file);
}

/// The same, `by` bytes further on.
fn moved(metadata: &FileMetaData, by: u64) -> FileMetaData {
    let mut moved = metadata.clone();
    moved.footer_start += by;
    for group in moved.row_groups.iter_mut() {
        for chunk in group.columns.iter_mut() {
            chunk.data_page_offset += by;
            chunk.dictionary_page_offset = chunk.dictionary_page_offset.map(|offset| offset + by);
        }
    }
    moved
}

/// What follows a chunk may be moved with it, or not.
#[test]
fn moved_with_their_chunk_and_without() {
    let (file, metadata, bloom) = one();
    let values = all();
    let ask = |bytes: &Bytes, metadata: &FileMetaData| {
        let found = PageBloom::of(metadata, 0, 0)?;
        Some(page_blooms::probe(bytes, found, values.iter().map(|value| &value[..]), Manner::KIND).unwrap())
    };
    let before = ask(&file, &metadata).unwrap();
    for by in [1, 32, 964, 5000] {
        let body = [&vec![0xAB; by], &file[..]].concat();
        let with = ask(&body.into(), &moved(&metadata, u64::try_from(by).unwrap())).unwrap();
        assert_eq!(with, before);
        // The chunk's pages are elsewhere, and other bytes, or the same filters, are where they would be.
        let more = [&file[..], &vec![0; by], &file[..]].concat();
        let without = ask(&more.into(), &moved(&metadata, u64::try_from(by).unwrap())).unwrap();
        assert!(without.iter().all(Option::is_none), "moved by {by}");
    }
    assert_eq!(bloom, PageBloom::of(&metadata, 0, 0).unwrap());
}

/// Two chunks of one path and of the same sizes: the filters of one are not believed of the other.
#[test]
fn filters_of_another_chunk() {
    let schema = given::wide(1, craft::INT64);
    let column = with_bloom(ColumnOptions { encoding: Some(Encoding::Plain), ..plain() }, 0.01);
    // The checksums of pages are numbers of different lengths.
    let options =
        WriteOptions { column, page_rows: 100, row_group_rows: 8192, crc: false, ..WriteOptions::default() };
    let file = write(&schema, &numbers(mixed(16_384)), options, Manner::KIND).unwrap().object(FILE);
    let metadata = canonical::metadata(&file, Manner::KIND).unwrap();
    let [first, second] = [0, 1].map(|group| PageBloom::of(&metadata, group, 0).unwrap());
    let columns = [0, 1].map(|group| &metadata.row_groups[group].columns[0]);
    assert_eq!(columns[0].compressed_bytes, columns[1].compressed_bytes);
    assert_eq!(
        first.row_bytes() * u64::from(first.blocks()),
        second.row_bytes() * u64::from(second.blocks())
    );
    let place = |bloom: &PageBloom| {
        usize::try_from(bloom.range().start).unwrap()..usize::try_from(bloom.range().end).unwrap()
    };
    let mut swapped = file.to_vec();
    swapped[place(&first)].copy_from_slice(&file[place(&second)]);
    swapped[place(&second)].copy_from_slice(&file[place(&first)]);
    let values = all();
    for bloom in [first, second] {
        let ask = |bytes: &Bytes| {
            page_blooms::probe(bytes, bloom, values.iter().map(|value| &value[..]), Manner::KIND).unwrap()
        };
        assert!(ask(&file).iter().all(Option::is_some));
        assert!(ask(&Bytes::from(swapped.clone())).iter().all(Option::is_none));
    }
}

const REWRITE: &str = "
import sys, duckdb, pyarrow.parquet as pq
source, folder = sys.argv[1:]
table = pq.read_table(source)
(name,) = table.column_names
rows = [(value,) for value in table[name].to_pylist()]
assert duckdb.sql(f\"SELECT * FROM '{source}'\").fetchall() == rows
assert duckdb.sql(f\"SELECT * FROM '{source}' WHERE {name} = 7\").fetchall() == [(7,)]
for name, options in [('plain', dict(use_dictionary=False, compression='none')), ('default', {})]:
    pq.write_table(table, f'{folder}/pyarrow-{name}.parquet', data_page_size=800, write_page_index=True, **options)
duckdb.sql(f\"COPY (SELECT * FROM '{source}') TO '{folder}/duckdb.parquet'\")
";

/// Others read such files equal; of what they write nothing is believed, though what was announced is announced again.
#[test]
fn rewritten_by_others() {
    let Some(python) = files::python() else { return };
    let folder = files::root().join("target/conformance/page_bloom");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let (file, metadata, _) = one();
    let source = folder.join("source.parquet");
    std::fs::write(&source, &file).unwrap();
    let status = Command::new(python).arg("-c").arg(REWRITE).args([&source, &folder]).status().unwrap();
    assert!(status.success(), "{status}");
    let announced = &metadata.row_groups[0].columns[0].key_values;
    let values = all();
    let mut names = BTreeSet::new();
    for path in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path == source || !name.ends_with(".parquet") {
            continue;
        }
        let bytes = Bytes::from(std::fs::read(&path).unwrap());
        let theirs = canonical::metadata(&bytes, Manner::KIND).unwrap();
        for with_pair in [false, true] {
            let mut theirs = FileMetaData::clone(&theirs);
            assert_eq!(theirs.rows, 3000);
            if with_pair {
                theirs.row_groups[0].columns[0].key_values.extend(announced.iter().cloned());
            }
            // The announcement is of another chunk; or else its bytes are.
            if let Some(found) = PageBloom::of(&theirs, 0, 0) {
                let found =
                    page_blooms::probe(&bytes, found, values.iter().map(|value| &value[..]), Manner::KIND);
                assert!(found.unwrap().iter().all(Option::is_none), "{name}");
            }
        }
        names.insert(name);
    }
    assert_eq!(names.len(), 3, "{names:?}");
}

/// The example of `docs/page-bloom.md`.
#[test]
fn the_example_of_the_note() {
    use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType};
    let id = FieldDef::new("id", FieldType::Leaf(PhysicalType::Int64, None)).required();
    let schema = Arc::new(Schema::of_fields(&[id]).unwrap());
    let column = with_bloom(ColumnOptions { encoding: Some(Encoding::Plain), ..plain() }, 0.01);
    let options = WriteOptions { column, page_rows: 2, ..WriteOptions::default() };
    let mut batch = given::batch(&schema, 5, Flavour::Few, Layout::Dense, 1);
    batch.columns[0].values = Values::Int64(vec![10, 20, 30, 40, 50].into());
    let file = write(&schema, &[batch], options, Manner::KIND).unwrap().object(FILE);
    check(&file, Manner::ONE_BYTE);
    let metadata = canonical::metadata(&file, Manner::KIND).unwrap();
    let chunk = &metadata.row_groups[0].columns[0];
    let bloom = PageBloom::of(&metadata, 0, 0).unwrap();
    let place = usize::try_from(bloom.range().start).unwrap()..usize::try_from(bloom.range().end).unwrap();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let row = &file[place];
    let announced = chunk.key_values[0].value.as_ref().unwrap();
    let mut lines = vec![
        std::str::from_utf8(announced).unwrap().to_owned(),
        format!("the hash of 10: {:016x}", marquetry_parquet::bloom::hash(&10_i64.to_le_bytes())),
        format!("total_uncompressed_size and total_compressed_size {}", chunk.compressed_bytes),
    ];
    lines.extend((0..3).map(|page| format!("page {page}  {}", hex(&row[page * 32..page * 32 + 32]))));
    lines.push(format!("CRC     {}", hex(&row[96..])));
    let note = std::fs::read_to_string(files::root().join("docs/page-bloom.md")).unwrap();
    for line in lines.iter() {
        assert!(note.contains(line), "the note lacks, or has otherwise:\n{}", lines.join("\n"));
    }
}
