//! Encodings that are chosen by the values: the same however these are fed, and as befits the row groups that there may be.

use std::ops::Range;
use std::sync::Arc;

use marquetry_base::{Bytes, Codec, Codecs, Compressor, Decompressor, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical::{self, FILE};
use marquetry_conformance::craft::{BYTE_ARRAY, Column, DOUBLE, FLOAT, INT32, INT64, Table};
use marquetry_conformance::hostile::Manner;
use marquetry_conformance::leaves::sums;
use marquetry_conformance::written;
use marquetry_parquet::batch::{Batch, ByteArrays, ColumnBatch, Layout, Values};
use marquetry_parquet::format::{Compression, Encoding};
use marquetry_parquet::read::ReadOptions;
use marquetry_parquet::schema::Schema;
use marquetry_parquet::write::{BloomOptions, ColumnOptions, Fed, FileWriter, WriteOptions};

use crate::given::{self, Flavour};
use crate::rewritten::{SPILL, batches, write};

/// A number that says nothing.
fn mixed(row: usize) -> u64 {
    let mixed = (row as u64 ^ 0x9e37_79b9).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb)
}

fn schema() -> Arc<Schema> {
    let columns = [
        Column::required("number", INT64),
        Column::required("measure", DOUBLE),
        Column::optional("text", BYTE_ARRAY),
        Column::optional("long", BYTE_ARRAY),
    ];
    let file = Table::new(columns).write();
    canonical::metadata(&file, Manner::KIND).unwrap().schema.clone()
}

fn column(leaf: usize, rows: usize, values: Values) -> ColumnBatch {
    let (validity, levels) = (None, None);
    ColumnBatch { leaf, rows, nulls: 0, validity, values, layout: Layout::Dense, levels, provisional: false }
}

fn strings(all: impl Iterator<Item = String>) -> Values {
    let all: Vec<String> = all.collect();
    Values::ByteArray(ByteArrays::from_lengths(all.concat().into(), all.iter().map(String::len)).unwrap())
}

/// Rows that begin like nothing that comes later: some hundreds that are all the same, then ones that differ, and now and then a long
/// string.
fn batch(rows: Range<usize>) -> Batch {
    let is_same = |row: usize| row < 800;
    let number = |row: usize| if is_same(row) { 7 } else { mixed(row).cast_signed() };
    let measure = |row: usize| if is_same(row) { 0.5 } else { (mixed(row) >> 60) as f64 / 7.0 };
    let text = |row: usize| format!("item {}", if is_same(row) { 0 } else { mixed(row) % 5000 });
    let long = |row: usize| match row % 700 {
        100 => mixed(row).to_string().repeat(if row % 1400 == 100 { 5000 } else { 500 }),
        _ => format!("{:x}", mixed(row)),
    };
    let count = rows.len();
    let columns = vec![
        column(0, count, Values::Int64(rows.clone().map(number).collect::<Vec<_>>().into())),
        column(1, count, Values::Double(rows.clone().map(measure).collect::<Vec<_>>().into())),
        column(2, count, strings(rows.clone().map(text))),
        column(3, count, strings(rows.clone().map(long))),
    ];
    Batch { row_group: 0, first_row: rows.start as u64, rows: count, columns }
}

fn cut(rows: usize, at_once: usize) -> Vec<Batch> {
    (0..rows).step_by(at_once).map(|start| batch(start..rows.min(start + at_once))).collect()
}

/// The encodings of data pages, by row group and leaf.
fn encodings(file: &Bytes) -> Vec<Vec<Vec<Encoding>>> {
    let metadata = canonical::metadata(file, Manner::KIND).unwrap();
    let of_chunk = |stats: &marquetry_parquet::format::PageEncodingStats| {
        (stats.page_type != 2).then_some(stats.encoding)
    };
    let groups = metadata.row_groups.iter();
    groups
        .map(|group| {
            let chunks = group.columns.iter();
            chunks.map(|chunk| chunk.encoding_stats.iter().filter_map(of_chunk).collect()).collect()
        })
        .collect()
}

#[test]
fn the_same_however_they_are_fed() {
    let schema = schema();
    for row_group_rows in [300, 4000, 8191, 8192, 8193, 20_000] {
        let options = WriteOptions { row_group_rows, page_rows: 5000, ..WriteOptions::default() };
        let mut first: Option<Vec<_>> = None;
        for at_once in [1 << 20, 8192, 1000, 37] {
            let given = cut(20_000, at_once);
            let file = write(&schema, &given, options.clone(), Manner::KIND).unwrap().object(FILE);
            let found = encodings(&file);
            assert_eq!(
                *first.get_or_insert(found.clone()),
                found,
                "{row_group_rows} rows, {at_once} at once"
            );
            let (again, read) = batches(&file, ReadOptions::default()).unwrap();
            assert_eq!(sums(&schema, &given), sums(&again, &read));
        }
    }
}

#[test]
fn by_more_than_the_first_rows() {
    let file = write(&schema(), &cut(60_000, 64), WriteOptions::default(), Manner::KIND).unwrap();
    let found = encodings(&file.object(FILE));
    use Encoding::{DeltaLengthByteArray, Plain, RleDictionary};
    assert_eq!(found, [[vec![Plain], vec![RleDictionary], vec![RleDictionary], vec![DeltaLengthByteArray]]]);
}

/// The encodings of doubles, so many of them different, in row groups of 1,000 rows; and what the file takes.
fn of_doubles(different: u64, groups: usize, spill: bool) -> (Vec<Vec<Encoding>>, usize) {
    let file = Table::new([Column::required("measure", DOUBLE)]).write();
    let schema = canonical::metadata(&file, Manner::KIND).unwrap().schema.clone();
    let value = |row: usize| ((mixed(row) >> 20) % different) as f64 / 65_536.0;
    let given: Vec<Batch> = (0..groups * 10)
        .map(|number| {
            let values: Vec<f64> = (number * 100..(number + 1) * 100).map(value).collect();
            let columns = vec![column(0, 100, Values::Double(values.into()))];
            Batch { row_group: 0, first_row: 0, rows: 100, columns }
        })
        .collect();
    let options = WriteOptions {
        row_group_rows: 1000,
        spill: spill.then_some(SPILL),
        held_bytes_max: 4000,
        ..WriteOptions::default()
    };
    let file = write(&schema, &given, options, Manner::KIND).unwrap().object(FILE);
    let (again, read) = batches(&file, ReadOptions::default()).unwrap();
    assert_eq!(sums(&schema, &given), sums(&again, &read));
    let found = encodings(&file).into_iter().map(|mut chunks| chunks.remove(0)).collect();
    (found, file.len())
}

#[test]
fn a_dictionary_is_judged_by_the_rows_that_there_are() {
    for spill in [false, true] {
        let (many, bytes) = of_doubles(1 << 16, 3, spill);
        assert_eq!(many, vec![vec![Encoding::ByteStreamSplit]; 3]);
        // Two bytes each that say something, of eight.
        assert!(bytes < 3 * 5000, "{bytes} bytes");
        let (few, bytes) = of_doubles(20, 3, spill);
        assert_eq!(few, vec![vec![Encoding::RleDictionary]; 3]);
        assert!(bytes < 3 * 1200, "{bytes} bytes");
    }
}

#[test]
fn a_dictionary_that_does_not_pay_in_its_first_page_is_given_up() {
    let file = Table::new([Column::required("measure", FLOAT)]).write();
    let schema = canonical::metadata(&file, Manner::KIND).unwrap().schema.clone();
    // Those that are chosen by come again, those behind them do not.
    let value = |row: usize| {
        let bits = if row < 8300 { row as u64 % 200 } else { mixed(row) >> 41 };
        f32::from_bits(0x4000_0000 | u32::try_from(bits).unwrap())
    };
    let given: Vec<Batch> = (0..20)
        .map(|number| {
            let values: Vec<f32> = (number * 1000..(number + 1) * 1000).map(value).collect();
            let columns = vec![column(0, 1000, Values::Float(values.into()))];
            Batch { row_group: 0, first_row: 0, rows: 1000, columns }
        })
        .collect();
    for bloom in [None, Some(BloomOptions::default())] {
        let column = ColumnOptions { bloom, ..ColumnOptions::default() };
        let options =
            WriteOptions { column, page_rows: 20_000, row_group_rows: 20_000, ..WriteOptions::default() };
        let kind = write(&schema, &given, options.clone(), Manner::KIND).unwrap().object(FILE);
        assert_eq!(encodings(&kind), [[[Encoding::ByteStreamSplit]]]);
        let (again, read) = batches(&kind, ReadOptions::default()).unwrap();
        assert_eq!(sums(&schema, &given), sums(&again, &read));
        let usual = write(&schema, &given, options, Manner::USUAL).unwrap().object(FILE);
        assert!(kind == usual, "budgets change what is written");
    }
}

/// Pages of DELTA_BINARY_PACKED end with a block of it, behind their first value; others where they are asked to.
#[test]
fn pages_of_deltas_end_with_a_block() {
    let first_rows = |encoding, page_rows: usize| -> Vec<u64> {
        let schema = given::wide(1, INT64);
        let given = [given::batch(&schema, 50_000, Flavour::Ascending, Layout::Spaced, 1)];
        let column = ColumnOptions { encoding: Some(encoding), ..ColumnOptions::default() };
        let options = WriteOptions { column, page_rows, ..WriteOptions::default() };
        let file = write(&schema, &given, options, Manner::KIND).unwrap().object(FILE);
        let metadata = canonical::metadata(&file, Manner::KIND).unwrap();
        let indexes = canonical::indexes(&file, &metadata).unwrap();
        indexes[0].offset_index.pages.iter().map(|page| page.first_row).collect()
    };
    assert_eq!(first_rows(Encoding::DeltaBinaryPacked, 20_000), [0, 19_969, 2 * 19_969]);
    assert_eq!(first_rows(Encoding::DeltaBinaryPacked, 19_969), [0, 19_969, 2 * 19_969]);
    assert_eq!(first_rows(Encoding::Plain, 20_000), [0, 20_000, 40_000]);
    let small = first_rows(Encoding::DeltaBinaryPacked, 256);
    assert_eq!((small[1], small.len()), (256, 50_000_usize.div_ceil(256)));
}

/// Codecs that have one compressor each.
struct OnlyUsual(StandardCodecs);

impl Codecs for OnlyUsual {
    fn decompressor(&self, codec: Codec) -> Result<Box<dyn Decompressor>> {
        self.0.decompressor(codec)
    }

    fn compressor(&self, codec: Codec, level: Option<i32>) -> Result<Box<dyn Compressor>> {
        self.0.compressor(codec, level)
    }
}

/// A column that SNAPPY's other compressor makes smaller gets it; one that it would make larger does not, nor one of few pages.
#[test]
fn the_better_compressor_is_found() {
    // Words of eight digits.
    let words = |rows: usize| {
        let word = |at: usize| format!("{:08}", mixed((mixed(at) % 4000) as usize) % 100_000_000);
        let text = |row: usize| (10 * row..10 * row + 10).map(word).collect();
        (BYTE_ARRAY, strings((0..rows).map(text)))
    };
    let numbers = |rows: usize| {
        let values: Vec<i32> = (0..rows).map(|row| (mixed(row) % 10_000) as i32).collect();
        (INT32, Values::Int32(values.into()))
    };
    let options = WriteOptions {
        column: ColumnOptions {
            encoding: Some(Encoding::Plain),
            compression: Compression::Codec(Codec::Snappy),
            ..ColumnOptions::default()
        },
        ..WriteOptions::default()
    };
    for ((physical_type, values), page_rows, is_smaller) in
        [(words(100_000), 12_000, true), (words(30_000), 12_000, false), (numbers(200_000), 20_000, false)]
    {
        let schema = given::wide(1, physical_type);
        let rows = values.len();
        let given = [Batch { row_group: 0, first_row: 0, rows, columns: vec![column(0, rows, values)] }];
        let options = WriteOptions { page_rows, ..options.clone() };
        let of = |codecs: Arc<dyn Codecs>| {
            let mut writer = FileWriter::new(FILE, Arc::clone(&schema), codecs, options.clone()).unwrap();
            let mut left = given.iter();
            let written = written::write(&mut writer, Manner::KIND, |writer, _room| {
                match left.next() {
                    Some(batch) => assert_eq!(writer.feed(batch.clone())?, Fed::Taken),
                    None => writer.finish(),
                }
                Ok(())
            });
            written.unwrap().object(FILE)
        };
        let (both, usual) =
            (of(Arc::new(StandardCodecs::default())), of(Arc::new(OnlyUsual(StandardCodecs::default()))));
        match is_smaller {
            true => assert!(
                both.len() < usual.len() * 99 / 100,
                "{} bytes instead of {}",
                both.len(),
                usual.len()
            ),
            false => assert!(both == usual, "{} bytes instead of {}", both.len(), usual.len()),
        }
        let (again, read) = batches(&both, ReadOptions::default()).unwrap();
        assert_eq!(sums(&schema, &given), sums(&again, &read));
        let usual_host = write(&schema, &given, options.clone(), Manner::USUAL).unwrap().object(FILE);
        assert!(both == usual_host, "budgets change what is written");
    }
}

/// Where little may be held, pages are ended early: late enough that there are few.
#[test]
fn pages_that_are_moved_away_are_as_large_as_can_be() {
    let columns = (0..200).map(|column| Column::required(&format!("c{column}"), DOUBLE));
    let schema = canonical::metadata(&Table::new(columns).write(), Manner::KIND).unwrap().schema.clone();
    let given: Vec<Batch> = (0..100)
        .map(|number| {
            let values =
                |leaf: usize| (number * 10..(number + 1) * 10).map(move |row| mixed(row * 200 + leaf) as f64);
            let columns = (0..200)
                .map(|leaf| column(leaf, 10, Values::Double(values(leaf).collect::<Vec<_>>().into())))
                .collect();
            Batch { row_group: 0, first_row: 0, rows: 10, columns }
        })
        .collect();
    // 1.6 MB of doubles.
    let options = WriteOptions { spill: Some(SPILL), held_bytes_max: 100_000, ..WriteOptions::default() };
    let written = write(&schema, &given, options, Manner::KIND).unwrap();
    let metadata = canonical::metadata(&written.object(FILE), Manner::KIND).unwrap();
    let pages = |chunk: &marquetry_parquet::format::ColumnChunk| {
        chunk.encoding_stats.iter().map(|stats| stats.count).sum::<i32>()
    };
    let all: i32 = metadata.row_groups[0].columns.iter().map(pages).sum();
    // Half as many as if all were ended whenever 204,800 bytes are held.
    assert!((200 * 3..200 * 6).contains(&all), "{all} pages of 200 columns");
    let (again, read) = batches(&written.object(FILE), ReadOptions::default()).unwrap();
    assert_eq!(sums(&schema, &given), sums(&again, &read));
}
