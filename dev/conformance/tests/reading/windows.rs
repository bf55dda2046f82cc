//! A page reads the same whatever the window: the corpus and crafted pages of every layout through windows of a few bytes; and
//! pages of hundreds of megabytes, which nobody ever has in memory, within a few.

use std::ops::Range;
use std::sync::Arc;

use marquetry_base::cast::usize_of;
use marquetry_base::{Budget, Bytes, Error, ErrorKind, Limits, Machine, Step, Want};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical::FILE;
use marquetry_conformance::craft::*;
use marquetry_conformance::hostile::{Manner, Random};
use marquetry_conformance::{canonical, files};
use marquetry_io::memory::Memory;
use marquetry_io::{ByteSources, drive};
use marquetry_parquet::batch::Values;
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::read::{BatchReader, LargePages, ReadOptions};

/// What a reading gives of each leaf: rows, entries without a value, a sum of the levels, and one of the values.
type Reading = Result<Vec<(u64, u64, u32, u32)>, Error>;

fn read(bytes: &Bytes, options: &ReadOptions, manner: Manner) -> Reading {
    let metadata = canonical::metadata(bytes, Manner::KIND)?;
    (0..metadata.schema.leaves().len())
        .map(|leaf| {
            read_leaf(bytes, &metadata, ReadOptions { leaves: Some(vec![leaf]), ..options.clone() }, manner)
        })
        .collect()
}

fn read_leaf(
    bytes: &Bytes,
    metadata: &Arc<FileMetaData>,
    options: ReadOptions,
    manner: Manner,
) -> Result<(u64, u64, u32, u32), Error> {
    let codecs = Arc::new(StandardCodecs::default());
    let mut reader = BatchReader::new(FILE, Arc::clone(metadata), codecs, options)?;
    let (mut rows, mut nulls) = (0, 0);
    let (mut levels, mut values) = (crc32fast::Hasher::new(), crc32fast::Hasher::new());
    canonical::read(&mut reader, bytes, manner, |batch| {
        let column = &batch.columns[0];
        rows += column.rows as u64;
        nulls += column.nulls as u64;
        if let Some(found) = &column.levels {
            let repetition = found.repetition.as_deref().unwrap_or_default();
            for (at, &level) in found.definition.iter().enumerate() {
                levels.update(&[level, repetition.get(at).copied().unwrap_or(0)]);
            }
        }
        let is_flat = column.levels.is_none();
        for row in 0..column.rows {
            levels.update(&[u8::from(is_flat && column.is_null(row))]);
        }
        for index in 0..column.values.len() {
            // In a kept dictionary a null has some value.
            if !(is_flat && column.is_null(index)) {
                canonical::with_bytes(&column.values, index, |bytes| values.update(bytes));
            }
        }
    })?;
    Ok((rows, nulls, levels.finalize(), values.finalize()))
}

#[test]
fn the_corpus_through_small_windows() {
    let Some(corpus) = files::corpus() else { return };
    let (mut good, mut bad) = (0, 0);
    for folder in ["parquet-testing/data", "parquet-testing/bad_data", "real"] {
        for path in files::parquet_files(&corpus.join(folder)) {
            let bytes = Bytes::from(std::fs::read(&path).unwrap());
            let expected = read(&bytes, &ReadOptions::default(), Manner::KIND);
            let runs: &[(usize, Manner)] = match bytes.len() {
                0..20_000 => &[
                    (1, Manner::KIND),
                    (64, Manner::DISORDERLY),
                    (1000, Manner::ONE_BYTE),
                    (20_000, Manner::USUAL),
                ],
                _ => &[(5000, Manner::USUAL)],
            };
            for &(window_bytes, manner) in runs {
                let large_pages =
                    if window_bytes == 64 { LargePages::Provisional } else { LargePages::ReadTwice };
                let options = ReadOptions {
                    window_bytes,
                    verify_first_bytes: 0,
                    large_pages,
                    ..ReadOptions::default()
                };
                let found = read(&bytes, &options, manner);
                let what = || format!("{}, windows of {window_bytes}, {manner:?}", path.display());
                match &expected {
                    Ok(_) => assert_eq!(found, expected, "{}", what()),
                    // Which of several faults is found first may differ.
                    Err(_) => assert!(found.is_err(), "{}", what()),
                }
            }
            good += usize::from(expected.is_ok());
            bad += usize::from(expected.is_err());
        }
    }
    println!("{good} files read, {bad} refused");
    assert!(good > 40 && bad > 3);
}

const BYTE_STREAM_SPLIT: i32 = 9;
const STRING: (i16, V) = (6, V::I32(0));

/// A layout of values: its type, encoding, and how many values there are in how many bytes.
struct Layout {
    name: &'static str,
    column: Column,
    encoding: i32,
    values: usize,
    body: Vec<u8>,
    dictionary: Option<Page>,
}

fn layouts() -> Vec<Layout> {
    let mut random = Random(77);
    let mut layouts = Vec::new();
    let mut add = |name, column, encoding, values, body| {
        layouts.push(Layout { name, column, encoding, values, body, dictionary: None });
    };
    let numbers: Vec<i64> = (0..20_000).map(|at| at * 7 + (random.number() % 1000).cast_signed()).collect();
    let small: Vec<i32> = numbers.iter().map(|number| i32::try_from(*number).unwrap()).collect();
    let words: Vec<Vec<u8>> = (0..3000)
        .map(|at| {
            let length = if at % 1000 == 500 { 5000 } else { random.index(40) };
            format!("{at}é").bytes().cycle().take(length / 3 * 3).collect::<Vec<u8>>()
        })
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned().into_bytes())
        .collect();
    let text = |column: Column| column.with(STRING.0, STRING.1.clone());
    let optional = Column::optional;
    add("PLAIN INT32", optional("v", INT32), PLAIN, 20_000, plain_i32(&small));
    add("PLAIN INT64", optional("v", INT64), PLAIN, 20_000, plain_i64(&numbers));
    add("PLAIN strings", text(optional("v", BYTE_ARRAY)), PLAIN, 3000, plain_bytes(&words));
    add(
        "lengths, strings",
        text(optional("v", BYTE_ARRAY)),
        DELTA_LENGTH_BYTE_ARRAY,
        3000,
        delta_length(&words),
    );
    add("prefixes", text(optional("v", BYTE_ARRAY)), DELTA_BYTE_ARRAY, 3000, delta_byte_array(&words));
    add("deltas, INT64", optional("v", INT64), DELTA_BINARY_PACKED, 20_000, delta(&numbers, 128, 4));
    add("deltas, INT32", optional("v", INT32), DELTA_BINARY_PACKED, 20_000, delta(&numbers, 1024, 8));
    let bytes = |count: usize, random: &mut Random| (0..count).map(|_| random.byte()).collect::<Vec<u8>>();
    add("bits", optional("v", BOOLEAN), PLAIN, 80_000, bytes(10_000, &mut random));
    let fixed = |width: i32| Column::optional("v", FIXED_LEN_BYTE_ARRAY).with(2, V::I32(width));
    add("fixed", fixed(17), PLAIN, 1000, bytes(17_000, &mut random));
    add("fixed, wide", fixed(300_000), PLAIN, 3, bytes(900_000, &mut random));
    add("split floats", optional("v", FLOAT), BYTE_STREAM_SPLIT, 5000, bytes(20_000, &mut random));
    add("split doubles", optional("v", DOUBLE), BYTE_STREAM_SPLIT, 5000, bytes(40_000, &mut random));
    add("split fixed", fixed(13), BYTE_STREAM_SPLIT, 1000, bytes(13_000, &mut random));
    add("split fixed, wide", fixed(2000), BYTE_STREAM_SPLIT, 20, bytes(40_000, &mut random));
    let wide: Vec<Vec<u8>> = (0..4u8).map(|at| [vec![7; 150_000], vec![at; 1000]].concat()).collect();
    add("prefixes, wide", fixed(151_000), DELTA_BYTE_ARRAY, 4, delta_byte_array(&wide));
    // A long value between short ones, and one more that shares its beginning.
    let long = "Ärmel".repeat(60_000).into_bytes();
    let mixed = [
        b"a".to_vec(),
        long.clone(),
        b"bcd".to_vec(),
        [&long[..299_999], b"\xa9xy"].concat(),
        vec![b'z'; 20],
    ];
    let text_of = |at: usize| String::from_utf8_lossy(&mixed[at]).into_owned().into_bytes();
    let mixed: Vec<Vec<u8>> = (0..5).map(text_of).collect();
    add("PLAIN, a long value", text(optional("v", BYTE_ARRAY)), PLAIN, 5, plain_bytes(&mixed));
    add(
        "lengths, a long value",
        text(optional("v", BYTE_ARRAY)),
        DELTA_LENGTH_BYTE_ARRAY,
        5,
        delta_length(&mixed),
    );
    add(
        "prefixes, a long value",
        text(optional("v", BYTE_ARRAY)),
        DELTA_BYTE_ARRAY,
        5,
        delta_byte_array(&mixed),
    );
    // Indices: packed runs and repeated ones.
    let mut indices = vec![11];
    for at in 0..50u32 {
        let packed: Vec<u32> = (0..160).map(|_| u32::try_from(random.below(2000)).unwrap()).collect();
        indices.extend(packed_run(&packed, 11));
        indices.extend(repeated_run(300, at * 17, 11));
    }
    for (name, column, encoding, page) in [
        ("indices, INT64", optional("v", INT64), RLE_DICTIONARY, plain_i64(&numbers[..2000])),
        ("indices, strings", text(optional("v", BYTE_ARRAY)), RLE_DICTIONARY, plain_bytes(&words[..2000])),
        ("indices, fixed", fixed(17), PLAIN_DICTIONARY, bytes(34_000, &mut random)),
    ] {
        let dictionary = Some(Page::dictionary(2000, page));
        let body = indices.clone();
        layouts.push(Layout { name, column, encoding, values: 50 * 460, body, dictionary });
    }
    let mut bits = Vec::new();
    for at in 0..200 {
        let packed: Vec<u32> = (0..80).map(|_| u32::from(random.byte() & 1)).collect();
        bits.extend(packed_run(&packed, 1));
        bits.extend(repeated_run(100, at & 1, 1));
    }
    // What follows the runs is no part of them.
    let body = [prefixed(&bits), vec![0xff; 30]].concat();
    layouts.push(Layout {
        name: "RLE bits",
        column: optional("v", BOOLEAN),
        encoding: RLE,
        values: 200 * 180,
        body,
        dictionary: None,
    });
    layouts
}

/// The rows that are there: at first some together, then now and then one that is not.
fn validity(values: usize) -> Vec<bool> {
    let mut random = Random(9);
    let mut rows = Vec::new();
    let mut there = 0;
    // Few values are wide ones: one of them begins behind nulls.
    let is_wide = values < 500;
    rows.extend(is_wide.then_some([false; 2]).into_iter().flatten());
    while there < values {
        let is_there = !is_wide && there % 500 < 100 || random.below(5) > 0;
        there += usize::from(is_there);
        rows.push(is_there);
    }
    rows.extend([false; 3]);
    rows
}

fn table(layout: &Layout, codec: i32, is_v2: bool) -> Bytes {
    let rows = validity(layout.values);
    let count = i32::try_from(rows.len()).unwrap();
    let page = if is_v2 {
        let nulls = count - i32::try_from(layout.values).unwrap();
        Page::data_v2(count, nulls, layout.encoding, &levels(&rows), &layout.body)
    } else {
        Page::data(count, layout.encoding, [prefixed(&levels(&rows)), layout.body.clone()].concat())
    };
    let finish = |page: Page| if codec == UNCOMPRESSED { page } else { page.compressed(codec) }.with_crc();
    let pages = layout.dictionary.iter().cloned().chain([page]).map(finish);
    let chunk = Chunk::new(count.into(), pages).codec(codec);
    Table::new([layout.column.clone()]).group(count.into(), [chunk]).write()
}

#[test]
fn every_layout_through_small_windows() {
    for layout in layouts() {
        for (codec, is_v2) in
            [(UNCOMPRESSED, false), (SNAPPY, true), (GZIP, false), (ZSTD, true), (UNCOMPRESSED, true)]
        {
            let bytes = table(&layout, codec, is_v2);
            let whole = ReadOptions { window_bytes: 4 << 20, verify_utf8: true, ..ReadOptions::default() };
            let expected = read(&bytes, &whole, Manner::KIND);
            assert!(expected.is_ok(), "{}: {expected:?}", layout.name);
            for (window_bytes, manner) in [
                (1, Manner::USUAL),
                (64, Manner::KIND),
                (1000, Manner::USUAL),
                (20_000, Manner::DISORDERLY),
                (300_000, Manner::USUAL),
            ] {
                // Each window begins with all that a copy may refer to.
                let copies = codec != UNCOMPRESSED && codec != ZSTD;
                let large = if copies { 30_000 } else { 100_000 };
                if window_bytes < 1000 && bytes.len() > large {
                    continue;
                }
                for keep_dictionaries in [false, layout.dictionary.is_some()] {
                    let options = ReadOptions {
                        window_bytes,
                        keep_dictionaries,
                        verify_first_bytes: 0,
                        large_pages: if window_bytes % 1000 == 0 {
                            LargePages::ReadTwice
                        } else {
                            LargePages::Provisional
                        },
                        verify_utf8: true,
                        batch_rows: 777,
                        ..ReadOptions::default()
                    };
                    assert_eq!(
                        read(&bytes, &options, manner),
                        expected,
                        "{}, codec {codec}, V2 {is_v2}, windows of {window_bytes}",
                        layout.name
                    );
                }
            }
        }
    }
}

#[test]
fn batches_are_provisional_until_the_crc_is_known_if_asked_for() {
    let numbers: Vec<i64> = (0..50_000).collect();
    for is_right in [true, false] {
        for codec in [UNCOMPRESSED, SNAPPY] {
            let page = |first| Page::data(50_000, PLAIN, plain_i64(&numbers[first..])).with(1, V::I32(0));
            let (small, mut large) = (
                Page::data(1000, PLAIN, plain_i64(&numbers[..1000])).compressed(codec).with_crc(),
                page(0).compressed(codec).with_crc(),
            );
            if !is_right {
                large = large.with(4, V::I32(12345));
            }
            let chunk = Chunk::new(51_000, [small, large]).codec(codec);
            let bytes = Table::new([Column::required("v", INT64)]).group(51_000, [chunk]).write();
            let metadata = canonical::metadata(&bytes, Manner::KIND).unwrap();
            let codecs = Arc::new(StandardCodecs::default());
            let read = |verify_first_bytes, verify_crc| {
                let options = ReadOptions {
                    window_bytes: 10_000,
                    verify_first_bytes,
                    large_pages: LargePages::Provisional,
                    verify_crc,
                    batch_rows: 4000,
                    ..ReadOptions::default()
                };
                let mut reader =
                    BatchReader::new(FILE, Arc::clone(&metadata), codecs.clone(), options).unwrap();
                let mut flags = Vec::new();
                let result = canonical::read(&mut reader, &bytes, Manner::USUAL, |batch| {
                    flags.push(batch.columns[0].provisional);
                });
                (flags, result.map(|_| ()))
            };
            let (flags, result) = read(0, true);
            if is_right {
                assert_eq!(result, Ok(()));
                assert!(flags[..flags.len() - 1].iter().all(|&flag| flag), "{flags:?}");
                assert_eq!(flags.last(), Some(&false), "the last batch comes when the CRC is known");
            } else {
                assert!(result.unwrap_err().message().contains("CRC"));
                assert!(!flags.is_empty() && flags.iter().all(|&flag| flag), "{flags:?}");
            }
            let (flags, result) = read(1 << 20, true);
            assert!(!flags.contains(&true) && result.is_ok() == is_right);
            let (flags, result) = read(0, false);
            assert!(flags.len() == 13 && !flags.contains(&true) && result.is_ok());
        }
    }
}

/// Every layout in a file whose only page is larger than is kept, and has a CRC: right, or wrong in its last byte, or over a body with
/// a bit that was turned at its end. By default no row of it leaves unless the CRC is right, whatever the host.
#[test]
fn no_row_of_a_large_page_leaves_before_its_crc_is_known() {
    for layout in layouts() {
        for (codec, is_v2) in [(UNCOMPRESSED, false), (SNAPPY, true)] {
            let right = table(&layout, codec, is_v2);
            let metadata = canonical::metadata(&right, Manner::KIND).unwrap();
            let chunk = &metadata.row_groups[0].columns[0];
            let end = usize_of(chunk.first_page_offset() + chunk.compressed_bytes).unwrap();
            let mut turned = right.to_vec();
            turned[end - 1] ^= 1;
            for (bytes, is_right) in [(right.clone(), true), (turned.into(), false)] {
                for manner in [Manner::KIND, Manner::USUAL, Manner::DISORDERLY, Manner::ONE_BYTE] {
                    // Steps without a budget are many, and a megabyte of them takes minutes.
                    let bytes_max = match manner.budget {
                        0 => 60_000,
                        1 => 15_000,
                        _ => usize::MAX,
                    };
                    if bytes.len() > bytes_max {
                        continue;
                    }
                    let options = ReadOptions {
                        window_bytes: 1000,
                        verify_first_bytes: 0,
                        batch_rows: 100,
                        read_bytes: 5000,
                        ..ReadOptions::default()
                    };
                    let codecs = Arc::new(StandardCodecs::default());
                    let mut reader = BatchReader::new(FILE, Arc::clone(&metadata), codecs, options).unwrap();
                    let mut rows = 0;
                    let result = canonical::read(&mut reader, &bytes, manner, |batch| {
                        assert!(!batch.columns[0].provisional);
                        rows += batch.rows;
                    });
                    let what = format!("{}, codec {codec}, V2 {is_v2}, {manner:?}", layout.name);
                    if is_right {
                        assert_eq!(result.map(|_| rows as u64), Ok(metadata.row_groups[0].rows), "{what}");
                    } else {
                        assert!(result.unwrap_err().message().contains("CRC"), "{what}");
                        assert_eq!(rows, 0, "{what}");
                    }
                }
            }
        }
    }
}

/// The defaults, by the driver that waits: a page of more bytes than are kept, whose CRC is wrong, gives no row.
#[test]
fn no_row_of_a_large_page_with_a_wrong_crc_leaves_by_default() {
    let numbers: Vec<i64> = (0..1_200_000).collect();
    for (is_right, large_pages) in
        [(true, LargePages::ReadTwice), (false, LargePages::ReadTwice), (false, LargePages::Provisional)]
    {
        let mut page = Page::data(1_200_000, PLAIN, plain_i64(&numbers)).with_crc();
        if !is_right {
            page = page.with(4, V::I32(12345));
        }
        let chunk = Chunk::new(1_200_000, [page]);
        let bytes = Table::new([Column::required("v", INT64)]).group(1_200_000, [chunk]).write();
        let metadata = canonical::metadata(&bytes, Manner::KIND).unwrap();
        let options = match large_pages {
            LargePages::Provisional => ReadOptions { large_pages, ..ReadOptions::default() },
            _ => ReadOptions::default(),
        };
        let codecs = Arc::new(StandardCodecs::default());
        let mut reader = BatchReader::new(FILE, metadata, codecs, options).unwrap();
        let file = ByteSources::new().with(FILE, Memory::new("a file", bytes));
        let (mut rows, mut provisional) = (0, 0);
        let result = loop {
            match drive(&mut reader, &file) {
                Ok(Some(batch)) => {
                    rows += batch.rows;
                    provisional += usize::from(batch.columns[0].provisional);
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        match (is_right, large_pages) {
            (true, _) => assert_eq!((result, rows, provisional), (Ok(()), 1_200_000, 0)),
            (false, LargePages::Provisional) => {
                assert!(result.unwrap_err().message().contains("CRC"));
                assert!(rows > 1_000_000 && provisional > 100, "{rows} rows, {provisional} provisional");
            }
            (false, _) => {
                assert!(result.unwrap_err().message().contains("CRC"));
                assert_eq!(rows, 0);
            }
        }
    }
}

/// A file that is another one when it is read again: the second reading is checked, too.
#[test]
fn a_file_that_changes_between_two_readings_is_found() {
    let numbers: Vec<i64> = (0..20_000).collect();
    let page = Page::data(20_000, PLAIN, plain_i64(&numbers)).with_crc();
    let table = Table::new([Column::required("v", INT64)]).group(20_000, [Chunk::new(20_000, [page])]);
    let bytes = table.write();
    let metadata = canonical::metadata(&bytes, Manner::KIND).unwrap();
    let options = ReadOptions {
        window_bytes: 10_000,
        verify_first_bytes: 0,
        read_bytes: 10_000,
        ..ReadOptions::default()
    };
    let mut reader = BatchReader::new(FILE, metadata, Arc::new(StandardCodecs::default()), options).unwrap();
    let (mut asked, mut last) = (0, 0);
    let error = loop {
        match reader.step(&mut Budget::default()) {
            Ok(Step::Need(demand)) => {
                for want in demand.wants {
                    let Want::Range(object, range, _) = want else { continue };
                    // Where a range lies before the last one, the page is being read again.
                    asked += u64::from(range.start < last);
                    last = range.start;
                    let mut piece =
                        bytes.slice(usize_of(range.start).unwrap()..usize_of(range.end).unwrap()).to_vec();
                    if asked > 0 && range.start > 100_000 {
                        piece[20] ^= 4;
                    }
                    reader.supply(object, range, piece.into()).unwrap();
                }
            }
            Ok(Step::Done) => panic!("a changed file is not found"),
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert_eq!(asked, 1, "the page is read twice");
    assert!(error.message().contains("the file has changed"), "{error}");
}

/// A column chunk of one page that is computed where it is asked for.
struct Computed {
    head: Bytes,
    metadata: Arc<FileMetaData>,
    body: fn(u64) -> u8,
}

impl Computed {
    /// Of a page whose header is `page`'s, but for the lengths of its body, which `body` gives.
    fn new(column: Column, page: Page, codec: i32, lengths: (u64, u64), body: fn(u64) -> u8) -> Computed {
        let number = |length: u64| V::I32(i32::try_from(length).unwrap());
        let page = page.with(2, number(lengths.0)).with(3, number(lengths.1));
        let head = [b"PAR1", &page.header.write()[..]].concat();
        let Some(V::Struct(own)) = page.header.0.get(&5) else { panic!("a data page") };
        let Some(V::I32(values)) = own.0.get(&1).cloned() else { panic!("a number of values") };
        let end = head.len() as u64 + lengths.1;
        let chunk = Chunk::new(values.into(), [page]).codec(codec);
        let chunk = chunk.with(7, V::I64(i64::try_from(end - 4).unwrap()));
        let file = Table::new([column]).group(values.into(), [chunk]).write();
        let metadata = canonical::metadata(&file, Manner::KIND).unwrap();
        let metadata = Arc::new(FileMetaData { footer_start: end, ..(*metadata).clone() });
        Computed { head: head.into(), metadata, body }
    }

    fn bytes(&self, range: Range<u64>) -> Bytes {
        let head = self.head.len() as u64;
        let byte = |at: u64| match at.checked_sub(head) {
            None => self.head[usize_of(at).unwrap()],
            Some(at) => (self.body)(at),
        };
        range.map(byte).collect::<Vec<u8>>().into()
    }

    /// Reads it with the default budget, in pieces of `piece_bytes`; nothing held may be more than `total_bytes`.
    fn read(&self, total_bytes: u64, piece_bytes: u64, mut take: impl FnMut(&Values)) -> Result<u64, Error> {
        /// What a step may do beyond its budget: a block of ZSTD takes more than one.
        const SLICE_UNITS_MAX: u64 = 75_000;
        let limits = Limits { total_bytes, page_bytes: 1 << 30, value_bytes: 1 << 30, ..Limits::DEFAULT };
        let options = ReadOptions { limits, verify_utf8: true, ..ReadOptions::default() };
        let codecs = Arc::new(StandardCodecs::default());
        let mut reader = BatchReader::new(FILE, Arc::clone(&self.metadata), codecs, options)?;
        let mut rows = 0;
        loop {
            let mut budget = Budget::default();
            let step = reader.step(&mut budget)?;
            let most = Budget::DEFAULT_UNITS + SLICE_UNITS_MAX;
            assert!(budget.spent() <= most, "a step of {} units", budget.spent());
            match step {
                Step::Ready(batch) => {
                    rows += batch.rows as u64;
                    take(&batch.columns[0].values);
                }
                Step::Need(demand) => {
                    for want in demand.wants {
                        let Want::Range(object, range, _) = want else { continue };
                        let mut at = range.start;
                        while at < range.end {
                            let end = range.end.min(at + piece_bytes);
                            reader.supply(object, at..end, self.bytes(at..end))?;
                            at = end;
                        }
                    }
                }
                Step::Yield => {}
                Step::Append(..) => panic!("a reader that writes"),
                Step::Done => return Ok(rows),
            }
        }
    }
}

/// Bytes of INT64 values that count.
fn counting(at: u64) -> u8 {
    (at / 8).to_le_bytes()[usize_of(at % 8).unwrap()]
}

const MIB: u64 = 1 << 20;

fn counts(expected: &mut i64) -> impl FnMut(&Values) + '_ {
    move |values| {
        let Values::Int64(values) = values else { panic!("INT64") };
        for &value in &**values {
            assert_eq!(value, *expected);
            *expected += 1;
        }
    }
}

#[test]
fn a_large_page_is_never_held() {
    let length = 192 * MIB;
    let values = i32::try_from(length / 8).unwrap();
    let page = || Page::data(values, PLAIN, Vec::new());
    let plain = Computed::new(Column::required("v", INT64), page(), UNCOMPRESSED, (length, length), counting);
    // What is read ahead, a window, and a batch.
    let total_bytes = 11 * MIB;
    for piece_bytes in [MIB - 3, 64 << 20] {
        let mut next = 0;
        assert_eq!(plain.read(total_bytes, piece_bytes, counts(&mut next)).unwrap(), length / 8);
        assert_eq!(next, i64::from(values));
    }

    // Literals of 64 KiB: their tags, and the page's length before them.
    const PIECE: u64 = 3 + (64 << 10);
    let packed = 4 + (length >> 16) * PIECE;
    let body = |at: u64| match at {
        0..4 => [0x80, 0x80, 0x80, 0x60][usize_of(at).unwrap()],
        _ => match (at - 4) % PIECE {
            tag @ 0..3 => [61 << 2, 0xff, 0xff][usize_of(tag).unwrap()],
            in_piece => counting((((at - 4) / PIECE) << 16) + in_piece - 3),
        },
    };
    let snappy = Computed::new(Column::required("v", INT64), page(), SNAPPY, (length, packed), body);
    let mut next = 0;
    assert_eq!(snappy.read(total_bytes, MIB, counts(&mut next)).unwrap(), length / 8);
    assert_eq!(next, i64::from(values));
}

/// One with a CRC is read twice, in the same memory.
#[test]
fn a_large_page_with_a_crc_is_never_held() {
    let length = 32 * MIB;
    let values = i32::try_from(length / 8).unwrap();
    let (column, page) = (|| Column::required("v", INT64), || Page::data(values, PLAIN, Vec::new()));
    let plain = Computed::new(column(), page(), UNCOMPRESSED, (length, length), counting);
    let mut crc = crc32fast::Hasher::new();
    let head = plain.head.len() as u64;
    for at in (0..length).step_by(usize_of(MIB).unwrap()) {
        crc.update(&plain.bytes(head + at..head + at + MIB));
    }
    let crc = crc.finalize();
    for (crc, rows) in [(crc, length / 8), (!crc, 0)] {
        let page = page().with(4, V::I32(crc.cast_signed()));
        let plain = Computed::new(column(), page, UNCOMPRESSED, (length, length), counting);
        for piece_bytes in [MIB - 3, 64 << 20] {
            let mut next = 0;
            let read = plain.read(11 * MIB, piece_bytes, counts(&mut next));
            assert_eq!(read.is_ok(), rows > 0);
            assert_eq!(next.cast_unsigned(), rows);
        }
    }
}

#[test]
fn a_large_page_of_strings_is_never_held() {
    // Strings of 96 bytes behind their lengths.
    let length = 100 * MIB;
    let body = |at: u64| match at % 100 {
        0 => 96,
        1..4 => 0,
        in_value => b'a' + u8::try_from((in_value + at / 100) % 26).unwrap(),
    };
    let values = i32::try_from(length / 100).unwrap();
    let page = Page::data(values, PLAIN, Vec::new());
    let column = Column::required("v", BYTE_ARRAY).with(STRING.0, STRING.1);
    let length = u64::try_from(values).unwrap() * 100;
    let strings = Computed::new(column, page, UNCOMPRESSED, (length, length), body);
    let (mut number, mut sum) = (0u64, 0);
    let rows = strings.read(30 * MIB, MIB / 3, |found| {
        let Values::ByteArray(found) = found else { panic!("BYTE_ARRAY") };
        for value in found.iter() {
            assert_eq!((value.len(), u64::from(value[0] - b'a')), (96, (4 + number) % 26));
            number += 1;
            sum += value.len();
        }
    });
    assert_eq!((rows.unwrap(), sum), (length / 100, usize_of(length / 100 * 96).unwrap()));
}

#[test]
fn a_huge_value_grows_as_it_comes() {
    let length = 150 * MIB;
    let body = |at: u64| match at {
        0..4 => (150 * MIB - 4).to_le_bytes()[usize_of(at).unwrap()],
        _ => b'a' + u8::try_from(at % 26).unwrap(),
    };
    let column = || Column::required("v", BYTE_ARRAY).with(STRING.0, STRING.1);
    let page = || Page::data(1, PLAIN, Vec::new());
    let huge = Computed::new(column(), page(), UNCOMPRESSED, (length, length), body);
    let mut found = 0;
    let check = |values: &Values, found: &mut usize| {
        let Values::ByteArray(values) = values else { panic!("BYTE_ARRAY") };
        *found = values.get(0).len();
        assert_eq!(values.get(0).last(), Some(&(b'a' + u8::try_from((length - 1) % 26).unwrap())));
    };
    // While it is moved to larger memory, it is there twice.
    huge.read(2 * length + 20 * MIB, MIB, |values| check(values, &mut found)).unwrap();
    assert_eq!(found as u64, length - 4);
    // What its length claims is not there: only what came.
    let error = huge.read(20 * MIB, MIB, |_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{error}");
}

#[test]
fn a_page_of_several_streams_is_held_in_segments() {
    // Of INT64 values that count to 256, the first byte of each; all others are 0.
    let values = 8 * MIB;
    let body = |at: u64| if at < 8 * MIB { at.to_le_bytes()[0] } else { 0 };
    let page = Page::data(i32::try_from(values).unwrap(), BYTE_STREAM_SPLIT, Vec::new());
    let length = values * 8;
    let split = Computed::new(Column::required("v", INT64), page, UNCOMPRESSED, (length, length), body);
    let mut number = 0;
    let mut check = |found: &Values| {
        let Values::Int64(found) = found else { panic!("INT64") };
        for &value in &**found {
            assert_eq!(value, number % 256);
            number += 1;
        }
    };
    assert_eq!(split.read(length + 12 * MIB, MIB, &mut check).unwrap(), values);
    assert_eq!(number.cast_unsigned(), values);
    let error = split.read(length / 2, MIB, |_| {}).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded, "what is held is charged: {error}");
}
