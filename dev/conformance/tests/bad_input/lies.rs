//! Headers, footers and pages that claim what is not so.

use std::sync::Arc;

use marquetry_base::{Budget, Bytes, Detail, ErrorKind, Limit, Limits, Machine, Step, Want};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical::{self, FILE};
use marquetry_conformance::craft::*;
use marquetry_conformance::hostile::{Manner, part};
use marquetry_parquet::batch::Layout;
use marquetry_parquet::read::{BatchReader, FooterReader, ReadOptions};
use marquetry_testing::memory;

use super::{PRODUCTS_MAX, examine};

/// A lie, and what must come of it: the start of the error's message, or nothing for an answer.
type Lie = (&'static str, Table, Option<&'static str>);

fn one(column: Column, chunk: Chunk) -> Table {
    let rows = chunk.values;
    Table::new([column]).group(rows, [chunk])
}

fn lies_of_size() -> Vec<Lie> {
    let int = || Column::required("a", INT32);
    let plain = || Page::data(3, PLAIN, plain_i32(&[1, 2, 3]));
    let huge = 1i64 << 62;
    let max = i32::MAX;
    vec![
        ("rows", one(int(), Chunk::new(huge, [plain()])), Some("the column chunk ends")),
        (
            "rows beyond 64 bits",
            Table::new([int()])
                .group(i64::MAX, [Chunk::new(i64::MAX, [])])
                .group(i64::MAX, [Chunk::new(i64::MAX, [])])
                .group(i64::MAX, [Chunk::new(i64::MAX, [])]),
            Some("the footer: more rows than 64 bits can count"),
        ),
        ("negative rows", one(int(), Chunk::new(-1, [plain()])), Some("the footer: a negative")),
        (
            "no rows, and values",
            Table::new([int()]).group(0, [Chunk::new(0, [])]).group(0, [Chunk::new(3, [plain()])]),
            Some("a column chunk of 3 values in a row group of 0 rows"),
        ),
        (
            "other values",
            Table::new([int()]).group(4, [Chunk::new(3, [plain()])]),
            Some("3 values in a row group of 4"),
        ),
        (
            "page values",
            one(int(), Chunk::new(max.into(), [plain().with_own(1, V::I32(max))])),
            Some("the page ends"),
        ),
        (
            "page values beyond the chunk",
            one(int(), Chunk::new(3, [plain().with_own(1, V::I32(max))])),
            Some("a page of 2147483647 values"),
        ),
        (
            "compressed page bytes",
            one(int(), Chunk::new(3, [plain().with(3, V::I32(max))])),
            Some("a page of 2147483647 bytes"),
        ),
        (
            "uncompressed page bytes",
            one(int(), Chunk::new(3, [plain().with(2, V::I32(max))])),
            Some("2147483647 is more than the limit page_bytes"),
        ),
        (
            "uncompressed page bytes below the limit",
            one(int(), Chunk::new(3, [plain().with(2, V::I32(200 << 20))])),
            Some("an uncompressed page of 12 bytes"),
        ),
        (
            "negative page bytes",
            one(int(), Chunk::new(3, [plain().with(3, V::I32(-1))])),
            Some("a page header: a negative"),
        ),
        (
            "chunk bytes",
            one(int(), Chunk::new(3, [plain()]).with(7, V::I64(huge))),
            Some("a column chunk of"),
        ),
        (
            "chunk bytes that overflow",
            one(int(), Chunk::new(3, [plain()]).with(7, V::I64(i64::MAX)).with(9, V::I64(i64::MAX))),
            Some("a column chunk of"),
        ),
        (
            "chunk in the footer",
            one(int(), Chunk::new(3, [plain()]).with(9, V::I64(60))),
            Some("a column chunk of"),
        ),
        (
            "page header of list elements",
            one(
                int(),
                Chunk::new(3, [plain().with(99, V::Raw(9, vec![0xf5, 0xff, 0xff, 0xff, 0xff, 0x07]))]),
            ),
            Some("a page header ends"),
        ),
        (
            "dictionary entries",
            one(int(), Chunk::new(3, [Page::dictionary(max, vec![0; 10]), plain()])),
            Some("a dictionary of 2147483647 entries in 10 bytes"),
        ),
        (
            "dictionary entries of no bytes",
            one(
                Column::required("a", FIXED_LEN_BYTE_ARRAY).with(2, V::I32(0)),
                Chunk::new(3, [Page::dictionary(max, vec![]), Page::data(3, PLAIN, vec![])]),
            ),
            Some("2147483647 is more than the limit dictionary_bytes"),
        ),
        (
            "two dictionaries",
            one(
                int(),
                Chunk::new(3, [Page::dictionary(1, vec![0; 4]), Page::dictionary(1, vec![0; 4]), plain()]),
            ),
            Some("a second dictionary"),
        ),
        (
            "type length",
            one(
                Column::required("a", FIXED_LEN_BYTE_ARRAY).with(2, V::I32(max)),
                Chunk::new(3, [Page::data(3, PLAIN, vec![1; 9])]),
            ),
            Some("2147483647 is more than the limit value_bytes"),
        ),
        (
            "type length below the limit",
            one(
                Column::required("a", FIXED_LEN_BYTE_ARRAY).with(2, V::I32(200 << 20)),
                Chunk::new(3, [Page::data(3, PLAIN, vec![1; 9])]),
            ),
            Some("the page ends"),
        ),
        (
            "nulls of a wide type",
            one(
                Column::optional("a", FIXED_LEN_BYTE_ARRAY).with(2, V::I32((1 << 20) - 1)),
                Chunk::new(9000, [Page::data_v2(9000, 9000, PLAIN, &repeated_run(9000, 0, 1), &[])]),
            ),
            None,
        ),
        (
            "nulls of a type too wide",
            one(
                Column::optional("a", FIXED_LEN_BYTE_ARRAY).with(2, V::I32(200 << 20)),
                Chunk::new(9, [Page::data_v2(9, 9, PLAIN, &repeated_run(9, 0, 1), &[])]),
            ),
            Some("a null of 209715200 bytes"),
        ),
        (
            "billions of nulls",
            one(
                Column::optional("a", INT64),
                Chunk::new(
                    max.into(),
                    [Page::data_v2(max, max, PLAIN, &repeated_run(max.unsigned_abs().into(), 0, 1), &[])],
                ),
            ),
            None,
        ),
        ("rows without columns", Table::new([]).group(huge, []), None),
    ]
}

fn lies_of_pages() -> Vec<Lie> {
    let int = || Column::required("a", INT32);
    let text = || Column::required("a", BYTE_ARRAY);
    let max = i32::MAX;
    let header = |numbers: &[u64]| {
        let mut out = Vec::new();
        numbers.iter().for_each(|&number| varint(&mut out, number));
        out
    };
    let delta_page = |column, encoding, body| one(column, Chunk::new(3, [Page::data(3, encoding, body)]));
    let zeros = vec![0u8; 64 << 20];
    let bomb = |codec: i32| {
        let page = Page::data(3, PLAIN, zeros.clone()).compressed(codec);
        one(int(), Chunk::new(3, [page.with(2, V::I32(12))]).codec(codec))
    };
    // The levels or the dictionary's indices stand for more than any page.
    let forever = repeated_run(u64::MAX >> 2, 1, 1);
    let there = [prefixed(&forever), plain_i32(&[1, 2, 3])].concat();
    let plain_text = |length: i32| Page::data(3, PLAIN, [&length.to_le_bytes()[..], b"abc"].concat());
    // Snappy's own length, and nothing behind it.
    let mut snappy_claim = Vec::new();
    varint(&mut snappy_claim, 200 << 20);
    let snappy_claim = Page::data(3, PLAIN, snappy_claim);
    vec![
        (
            "miniblocks",
            delta_page(int(), DELTA_BINARY_PACKED, header(&[128 << 20, max.unsigned_abs().into(), 3, 0])),
            Some("a delta block of"),
        ),
        (
            "a large block",
            delta_page(int(), DELTA_BINARY_PACKED, header(&[1 << 30, 1 << 20, 3, 0, 0])),
            Some("the page ends"),
        ),
        (
            "a block beyond 64 bits",
            delta_page(int(), DELTA_BINARY_PACKED, vec![0xff; 12]),
            Some("a number in the page is longer"),
        ),
        (
            "a huge block",
            delta_page(int(), DELTA_BINARY_PACKED, header(&[u64::MAX, 1, 3, 0])),
            Some("a delta block too large"),
        ),
        (
            "delta values",
            delta_page(int(), DELTA_BINARY_PACKED, header(&[128, 4, u64::MAX, 0, 0])),
            Some("the page ends"),
        ),
        (
            "delta lengths",
            delta_page(text(), DELTA_LENGTH_BYTE_ARRAY, header(&[128, 1, u64::MAX, 0, 0, 0])),
            Some("the page ends"),
        ),
        (
            "delta prefixes",
            delta_page(text(), DELTA_BYTE_ARRAY, header(&[1 << 30, 1, u64::MAX, 0, 0, 64])),
            Some("the page ends"),
        ),
        (
            "a long first value",
            delta_page(
                text(),
                DELTA_BYTE_ARRAY,
                [delta(&[0, i64::from(max), 0], 128, 4), delta_length(&["a", "b", "c"])].concat(),
            ),
            Some("a prefix of 2147483647 bytes of a value of 1"),
        ),
        ("a gzip bomb", bomb(GZIP), Some("corrupt GZIP page")),
        ("a zstd bomb", bomb(ZSTD), Some("corrupt ZSTD page")),
        ("a snappy bomb", bomb(SNAPPY), Some("corrupt SNAPPY page")),
        (
            "snappy's length",
            one(int(), Chunk::new(3, [snappy_claim.with(2, V::I32(200 << 20))]).codec(SNAPPY)),
            Some("corrupt SNAPPY page"),
        ),
        (
            "zstd's length",
            one(
                int(),
                Chunk::new(
                    3,
                    [Page::data(3, PLAIN, plain_i32(&[1, 2, 3])).compressed(ZSTD).with(2, V::I32(200 << 20))],
                )
                .codec(ZSTD),
            ),
            Some("corrupt ZSTD page"),
        ),
        (
            "gzip's length",
            one(
                int(),
                Chunk::new(
                    3,
                    [Page::data(3, PLAIN, plain_i32(&[1, 2, 3])).compressed(GZIP).with(2, V::I32(20 << 10))],
                )
                .codec(GZIP),
            ),
            Some("corrupt GZIP page"),
        ),
        (
            "levels for ever",
            one(Column::optional("a", INT32), Chunk::new(3, [Page::data(3, PLAIN, there.clone())])),
            None,
        ),
        (
            "levels of other lengths",
            one(
                Column::optional("a", INT32),
                Chunk::new(3, [Page::data(3, PLAIN, [&[0xff; 4][..], &there].concat())]),
            ),
            Some("runs of 4294967295 bytes"),
        ),
        (
            "level 2",
            one(
                Column::optional("a", INT32),
                Chunk::new(
                    3,
                    [Page::data(3, PLAIN, [prefixed(&repeated_run(3, 2, 1)), plain_i32(&[1; 3])].concat())],
                ),
            ),
            Some("a level or boolean beyond 1"),
        ),
        (
            "levels in no encoding",
            one(
                Column::optional("a", INT32),
                Chunk::new(3, [Page::data(3, PLAIN, there).with_own(3, V::I32(7))]),
            ),
            Some("definition levels encoded as"),
        ),
        (
            "V2 levels beyond the page",
            one(
                Column::optional("a", INT32),
                Chunk::new(3, [Page::data_v2(3, 0, PLAIN, &[6, 1], &[0; 12]).with_own(5, V::I32(max))]),
            ),
            Some("levels of 2147483647 bytes"),
        ),
        (
            "V2 nulls",
            one(Column::optional("a", INT32), Chunk::new(3, [Page::data_v2(3, 1, PLAIN, &[6, 1], &[0; 12])])),
            Some("a page with fewer nulls"),
        ),
        (
            "V2 more nulls",
            one(Column::optional("a", INT32), Chunk::new(3, [Page::data_v2(3, 1, PLAIN, &[6, 0], &[])])),
            Some("a page with more nulls"),
        ),
        (
            "V2 nulls beyond values",
            one(Column::optional("a", INT32), Chunk::new(3, [Page::data_v2(3, 4, PLAIN, &[6, 0], &[])])),
            Some("4 nulls among 3 values"),
        ),
        (
            "a long string",
            one(text(), Chunk::new(3, [plain_text(max)])),
            Some("2147483647 is more than the limit value_bytes"),
        ),
        (
            "a string beyond the page",
            one(text(), Chunk::new(3, [plain_text(4)])),
            Some("a value reaches beyond"),
        ),
        (
            "a string of negative length",
            one(text(), Chunk::new(3, [plain_text(-1)])),
            Some("a value of negative length"),
        ),
        (
            "indices without a dictionary",
            one(
                text(),
                Chunk::new(3, [Page::data(3, RLE_DICTIONARY, [vec![1], repeated_run(3, 0, 1)].concat())]),
            ),
            Some("indices into a dictionary"),
        ),
        (
            "indices beyond the dictionary",
            one(
                text(),
                Chunk::new(
                    3,
                    [
                        Page::dictionary(1, plain_bytes(["a"])),
                        Page::data(3, RLE_DICTIONARY, [vec![1], packed_run(&[0, 1, 0], 1)].concat()),
                    ],
                ),
            ),
            Some("an index beyond a dictionary of 1 entries"),
        ),
        (
            "wide indices",
            one(
                text(),
                Chunk::new(
                    3,
                    [Page::dictionary(1, plain_bytes(["a"])), Page::data(3, RLE_DICTIONARY, vec![33, 6, 0])],
                ),
            ),
            Some("dictionary indices of 33 bits"),
        ),
        (
            "an encoding of another type",
            one(int(), Chunk::new(3, [Page::data(3, DELTA_BYTE_ARRAY, vec![0; 9])])),
            Some("the encoding DELTA_BYTE_ARRAY cannot hold INT32"),
        ),
        (
            "an unknown encoding",
            one(int(), Chunk::new(3, [Page::data(3, 99, vec![0; 9])])),
            Some("the encoding ENCODING 99"),
        ),
        (
            "an unknown codec",
            one(int(), Chunk::new(3, [Page::data(3, PLAIN, vec![0; 12])]).codec(99)),
            Some("the unknown compression codec 99"),
        ),
        (
            "a wrong CRC",
            one(int(), Chunk::new(3, [Page::data(3, PLAIN, vec![0; 12]).with(4, V::I32(1))])),
            Some("the page's CRC is"),
        ),
        (
            "a page too short",
            one(int(), Chunk::new(3, [Page::data(3, PLAIN, vec![0; 11])])),
            Some("the page ends"),
        ),
        (
            "no page type",
            one(int(), Chunk::new(3, [Page::data(3, PLAIN, vec![0; 12]).with(1, V::Bool(true))])),
            Some("a page header: no page type"),
        ),
    ]
}

#[test]
fn lies() {
    for (name, table, expected) in lies_of_size().into_iter().chain(lies_of_pages()) {
        let result = examine(&table.write(), Layout::Spaced);
        match (&result, expected) {
            (Ok(()), None) => {}
            (Err(error), Some(start)) if error.message().starts_with(start) => {}
            _ => panic!("{name}: expected {expected:?}, got {result:?}"),
        }
    }
}

/// Units that a step on a lie may charge beyond its budget: what a block of ZSTD takes more, or a copy of 64 KiB, and some.
const SLICE_UNITS_MAX: u64 = 75_000;

#[test]
fn no_lie_makes_a_long_step() {
    let mut largest = (0, "");
    for (name, table, _) in lies_of_size().into_iter().chain(lies_of_pages()) {
        let bytes = table.write();
        let mut footer = FooterReader::new(FILE, Limits::DEFAULT);
        let mut metadata = None;
        let mut units = units_max(&mut footer, &bytes, |found| metadata = Some(found));
        if let Some(metadata) = metadata {
            let codecs = Arc::new(StandardCodecs::default());
            if let Ok(mut reader) = BatchReader::new(FILE, metadata, codecs, ReadOptions::default()) {
                units = units.max(units_max(&mut reader, &bytes, |_| ()));
            }
        }
        assert!(units <= Budget::DEFAULT_UNITS + SLICE_UNITS_MAX, "{name}: a step of {units} units");
        largest = largest.max((units, name));
    }
    println!("the largest step: {largest:?}");
}

/// Units of the largest step of a machine that is given what it asks for, up to its end, its error, or its 50th product.
fn units_max<M: Machine>(machine: &mut M, bytes: &Bytes, mut take: impl FnMut(M::Product)) -> u64 {
    let (mut largest, mut products) = (0, 0);
    loop {
        let mut budget = Budget::default();
        let step = machine.step(&mut budget);
        largest = largest.max(budget.spent());
        match step {
            Ok(Step::Need(demand)) => {
                for want in demand.wants {
                    match want {
                        Want::Length(object) => machine.supply_length(object, bytes.len() as u64).unwrap(),
                        Want::Range(object, range, _) => {
                            let supplied = part(bytes, &range);
                            machine.supply(object, range, supplied).unwrap();
                        }
                    }
                }
            }
            Ok(Step::Ready(product)) if products < PRODUCTS_MAX => {
                products += 1;
                take(product);
            }
            Ok(Step::Yield) => {}
            _ => return largest,
        }
    }
}

#[test]
fn long_names_of_groups_do_not_multiply() {
    // A group with a name of a megabyte, and 20,000 leaves in it: paths of 20 GB.
    let group = Struct::of([(3, V::I32(0)), (4, V::Binary(vec![b'g'; 1 << 20])), (5, V::I32(20_000))]);
    let leaf = Struct::of([(1, V::I32(INT32)), (3, V::I32(0)), (4, V::text("x"))]);
    let root = Struct::of([(4, V::text("root")), (5, V::I32(1))]);
    let elements = [root, group].into_iter().chain(vec![leaf; 20_000]).map(V::Struct).collect();
    let footer = Struct::of([(1, V::I32(1)), (2, V::List(elements)), (3, V::I64(0)), (4, V::List(vec![]))]);
    let bytes = end_file(b"PAR1".to_vec(), &footer.write());
    let peak = memory::peak();
    let error = canonical::metadata(&bytes, Manner::KIND).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{error:?}");
    let peak = peak.bytes();
    assert!(peak < 512 << 20, "{peak} bytes");
}

#[test]
fn indices_just_beyond_a_dictionary_of_wide_values() {
    // Eleven entries of 100,000 bytes are two segments, the second of which is not full; three of 600,000 are several each.
    for (width, entries) in [(100_000, 11), (600_000, 3)] {
        let column = || Column::required("a", FIXED_LEN_BYTE_ARRAY).with(2, V::I32(width));
        let bytes = vec![7; usize::try_from(width * entries).unwrap()];
        let dictionary = Page::dictionary(entries, bytes);
        for beyond in [entries, entries + 1] {
            let indices = [u32::try_from(beyond).unwrap(), 0, 0];
            let page = Page::data(3, RLE_DICTIONARY, [vec![4], packed_run(&indices, 4)].concat());
            let file = one(column(), Chunk::new(3, [dictionary.clone(), page])).write();
            let metadata = canonical::metadata(&file, Manner::KIND).unwrap();
            for manner in [Manner::KIND, Manner::USUAL] {
                let error = canonical::sums(&file, &metadata, ReadOptions::default(), manner).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Corrupt, "{width}, {beyond}: {error:?}");
                assert!(error.message().contains("beyond"), "{width}, {beyond}: {error:?}");
            }
        }
    }
}

#[test]
fn a_small_file_has_little_memory_by_default() {
    // Twenty columns, each with a dictionary of 32 MiB that is a few kilobytes in the file.
    let dictionary = Page::dictionary(4 << 20, plain_i64(&vec![0; 4 << 20])).compressed(ZSTD);
    let page = Page::data(3, RLE_DICTIONARY, [vec![1], repeated_run(3, 0, 1)].concat()).compressed(ZSTD);
    let columns = (0..20).map(|number| Column::required(&format!("c{number}"), INT64));
    let chunks = (0..20).map(|_| Chunk::new(3, [dictionary.clone(), page.clone()]).codec(ZSTD));
    let bytes = Table::new(columns).group(3, chunks).write();
    assert!(bytes.len() < 1 << 20, "{}", bytes.len());
    let metadata = canonical::metadata(&bytes, Manner::KIND).unwrap();
    let allowed = ((256 + 20 * 2) << 20) + 16 * bytes.len();
    for manner in [Manner::KIND, Manner::USUAL] {
        let peak = memory::peak();
        let error = canonical::sums(&bytes, &metadata, ReadOptions::default(), manner).unwrap_err();
        assert_eq!(error.detail(), Some(Detail::Limit(Limit::Expansion)), "{error:?}");
        let said = format!("is more than the limit expansion of {allowed}");
        assert!(error.message().ends_with(&said), "{error:?}");
        let peak = peak.bytes();
        assert!(peak < allowed + (16 << 20), "{peak} bytes");
    }
    let options = ReadOptions { limits: Limits::TRUSTED, ..ReadOptions::default() };
    assert_eq!(canonical::sums(&bytes, &metadata, options, Manner::USUAL).unwrap().0.len(), 20);
}

#[test]
fn wide_tables_of_few_rows_are_no_lies() {
    let read = |columns: Vec<Column>, page: &Page| {
        let chunks: Vec<Chunk> = columns.iter().map(|_| Chunk::new(10, [page.clone()])).collect();
        let bytes = Table::new(columns).group(10, chunks).write();
        let metadata = canonical::metadata(&bytes, Manner::KIND).unwrap();
        canonical::sums(&bytes, &metadata, ReadOptions::default(), Manner::USUAL).unwrap().0.len()
    };
    let doubles = (0..2_000).map(|number| Column::optional(&format!("c{number}"), DOUBLE)).collect();
    let page = Page::data(10, PLAIN, [prefixed(&levels(&[true; 10])), vec![0; 80]].concat());
    assert_eq!(read(doubles, &page), 2_000);
    let times = (0..2_000).map(|number| Column::required(&format!("c{number}"), INT96)).collect();
    assert_eq!(read(times, &Page::data(10, PLAIN, vec![0; 120])), 2_000);
}

#[test]
fn what_columns_hold_is_limited_together() {
    // A hundred columns, each of one page of 4 MiB in a few hundred bytes; each would be held while the others are read.
    let page = Page::data(1000, PLAIN, plain_bytes(vec![vec![b'x'; 4 << 10]; 1000])).compressed(ZSTD);
    let columns = (0..100).map(|number| Column::required(&format!("c{number}"), BYTE_ARRAY));
    let chunks = (0..100).map(|_| Chunk::new(1000, [page.clone()]).codec(ZSTD));
    let bytes = Table::new(columns).group(1000, chunks).write();
    let metadata = canonical::metadata(&bytes, Manner::KIND).unwrap();
    let limits = Limits { total_bytes: 64 << 20, ..Limits::DEFAULT };
    let options = ReadOptions { limits, ..ReadOptions::default() };
    let peak = memory::peak();
    let error = canonical::sums(&bytes, &metadata, options, Manner::USUAL).unwrap_err();
    assert!(error.message().ends_with("is more than the limit total_bytes of 67108864"), "{error:?}");
    let peak = peak.bytes();
    assert!(peak < 80 << 20, "{peak} bytes");
}
