//! What is around values: pages, levels, footers, indexes, arrays, records.

use bytes::Bytes;
use marquetry_conformance::craft::{
    BYTE_ARRAY, Chunk, Column, DELTA_BINARY_PACKED, DELTA_BYTE_ARRAY, INT32, INT64, Levels, PLAIN, Page,
    SNAPPY, Struct, Table, V, delta, delta_byte_array, group, leaf, list, packed_run, plain_bytes, plain_i32,
    plain_i64, prefixed,
};

use super::{Case, Random, Work};

const CRC: &str = "read/body/packed.rs CRC_PRICE";
const COPY: &str = "growing.rs COPY_PRICE";
const ROOM: &str = "growing.rs ROOM_PRICE";
const HEADER: &str = "read/page.rs HEADER_PRICE";
const COLUMN: &str = "read/reader.rs COLUMN_PRICE";
const FOOTER: &str = "thrift/skim.rs READ_PRICE";
const GROUPS: &str = "format/parse.rs GROUP_PRICE";
const SKIM: &str = "thrift/skim.rs SKIM_PRICE";
const SKIP: &str = "thrift/skip.rs SKIP_PRICE";
const COMPARE: &str = "thrift/alike.rs COMPARE_PRICE";
const MEASURE: &str = "read/reader.rs MEASURE_PRICE";
const MEASURE_GROUP: &str = "read/reader.rs MEASURE_GROUP_PRICE";
const JOIN: &str = "format/index.rs JOIN_PRICE";
const JUDGE: &str = "find/pages.rs JUDGE_PRICE";
const INDEX: &str = "format/index.rs ELEMENT_PRICE";
const CHUNK: &str = "read/index.rs CHUNK_PRICE";
const ENTRY: &str = "batch/assembler.rs ENTRY_PRICE";
const LEVEL: &str = "read/column.rs LEVEL_PRICE";
const KEEP: &str = "read/column.rs KEEP_PRICE";
const OP: &str = "record/mod.rs OP_PRICE";
const EVENT: &str = "record/shred.rs EVENT_PRICE";
const ABSENT: &str = "record/shred.rs ENTRY_PRICE";
const VALUE: &str = "read/conform/cast.rs VALUE_PRICE";

/// See [`super::cases`].
pub(super) fn cases(thousands: usize) -> Vec<Case> {
    let count = thousands * 1000;
    [
        bodies(thousands),
        headers(count),
        small_pages(count / 10),
        tables(thousands),
        counts(thousands),
        skipped(thousands),
        nested(count),
        conformed(count),
    ]
    .concat()
}

fn i32_of(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

fn i64_of(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Pages of few long strings, which cost next to nothing beside what is done to the page.
fn bodies(thousands: usize) -> Vec<Case> {
    const VALUE_BYTES: usize = 100_000;
    let mut random = Random::new();
    let noise: Vec<u8> = (0..VALUE_BYTES / 8).flat_map(|_| random.next().to_le_bytes()).collect();
    let page = |byte: Option<u8>| {
        let value = byte.map_or(noise.clone(), |byte| vec![byte; VALUE_BYTES]);
        Page::data(10, PLAIN, plain_bytes(std::iter::repeat_n(value, 10)))
    };
    let count = thousands / 20 + 1;
    let file = |page: &Page, codec: Option<i32>| {
        let pages: Vec<Page> =
            (0..count).map(|_| codec.map_or(page.clone(), |codec| page.clone().compressed(codec))).collect();
        let chunk = Chunk::new(i64_of(10 * count), pages);
        let chunk = codec.map_or(chunk.clone(), |codec| chunk.clone().codec(codec));
        Table::new([Column::required("v", BYTE_ARRAY)]).group(i64_of(10 * count), [chunk]).write()
    };
    let bytes = count * 10 * (VALUE_BYTES + 4);
    let pieces = |piece_bytes| Work::Batches { piece_bytes, verify_utf8: false };
    vec![
        Case::new(CRC, "pages of 1 MB", bytes, file(&page(None).with_crc(), None)).bytes(),
        Case::new(COPY, "pages of 1 MB in pieces of 64 KiB", bytes, file(&page(None), None))
            .bytes()
            .work(pieces(64 << 10)),
        Case::new(COPY, "pages of 1 MB in pieces of 4 KiB", bytes, file(&page(None), None))
            .bytes()
            .work(pieces(4 << 10)),
        Case::new(COPY, "pages of 1 MB of one byte, SNAPPY", bytes, file(&page(Some(0)), Some(SNAPPY)))
            .bytes(),
    ]
}

fn headers(count: usize) -> Vec<Case> {
    let column = || Column::required("v", INT32);
    let of = |name: &str, page: Page, count: usize| {
        let pages = vec![page; count];
        let file = Table::new([column()]).group(i64_of(count), [Chunk::new(i64_of(count), pages)]).write();
        Case::new(HEADER, name, count, file)
    };
    let bound = |bytes: usize| V::Binary(vec![b'x'; bytes]);
    let bounds = |bytes: usize| V::Struct(Struct::of([(3, V::I64(0)), (5, bound(bytes)), (6, bound(bytes))]));
    let page = || Page::data(1, PLAIN, plain_i32(&[1]));
    let one_delta = Page::data(1, DELTA_BINARY_PACKED, delta(&[1], 128, 4));
    vec![
        of("pages of one value", page(), count / 10),
        of("pages of one value, bounds of 16 bytes", page().with_own(5, bounds(16)), count / 10),
        of(
            "pages of one value, bounds of 100 KB",
            page().with_own(5, bounds(100_000)),
            (count / 10_000).max(1),
        ),
        Case {
            price: SKIM,
            ..of("bounds of 10 KB", page().with_own(5, bounds(10_000)), (count / 1000).max(1))
        },
        Case { price: ROOM, ..of("bounds of 1 MB", page().with_own(5, bounds(1_000_000)), count / 10_000) },
        of("pages of no value", Page::data(0, PLAIN, Vec::new()), count / 10),
        of("pages of one value, DELTA_BINARY_PACKED", one_delta, count / 10),
    ]
    .into_iter()
    .map(|mut case| {
        // A chunk of pages without values has none.
        if case.name.ends_with("no value") {
            let mut pages = vec![Page::data(0, PLAIN, Vec::new()); case.amount];
            pages.push(page());
            case.file = Table::new([column()]).group(1, [Chunk::new(1, pages)]).write();
        }
        case
    })
    .collect()
}

/// Pages of one value: of a string that may share a prefix, and of a list.
fn small_pages(count: usize) -> Vec<Case> {
    let chunk = |page: Page| [Chunk::new(i64_of(count), vec![page; count])];
    let strings = Table::new([Column::required("v", BYTE_ARRAY)])
        .group(i64_of(count), chunk(Page::data(1, DELTA_BYTE_ARRAY, delta_byte_array(&[b"value"]))));
    let [outer, middle] = list("v", 1);
    let (repetition, definition) = (Levels { width: 1, levels: &[0] }, Levels { width: 2, levels: &[3] });
    let lists = Table::nested(1, [outer, middle, leaf("element", 1, INT64)])
        .group(i64_of(count), chunk(Page::nested_v2(&repetition, &definition, 1, &plain_i64(&[7]))));
    vec![
        Case::new(HEADER, "pages of one value, DELTA_BYTE_ARRAY", count, strings.write()),
        Case::new(HEADER, "pages of one value, list<int64> V2", count, lists.write()),
    ]
}

/// Counts of levels of column chunks, nearly as many as a structure may have, in the shortest and the longest form.
fn counts(thousands: usize) -> Vec<Case> {
    const BYTES: usize = 60_000;
    let groups = thousands.div_ceil(20);
    let of = |price: &'static str, name: &str, count: i64, bytes: usize| {
        let sizes = Struct::of([(2, V::List(vec![V::I64(count); BYTES / bytes]))]);
        let mut table = Table::new([Column::required("v", INT32)]);
        for _ in 0..groups {
            let mut chunk = Chunk::new(1, [Page::data(1, PLAIN, plain_i32(&[1]))]);
            chunk.metadata.set(16, V::Struct(sizes.clone()));
            table = table.group(1, [chunk]);
        }
        Case::new(price, name, groups * BYTES, table.write()).bytes().work(Work::Footer)
    };
    vec![of(FOOTER, "counts of one byte", 0, 1), of(SKIM, "counts of ten bytes", i64::MAX, 10)]
}

/// Column chunks that are skipped: usual ones, and those whose fields are the shortest, the deepest, and the longest
/// numbers.
fn skipped(thousands: usize) -> Vec<Case> {
    const FIELDS: usize = 3000;
    let groups = thousands.div_ceil(4);
    let of = |name: &str, tokens: usize, value: Option<V>| {
        let mut table = Table::new([Column::required("v", INT32)]);
        for _ in 0..groups {
            let mut chunk = Chunk::new(1, [Page::data(1, PLAIN, plain_i32(&[1]))]);
            if let Some(value) = &value {
                chunk.outer.set(100, value.clone());
            }
            table = table.group(1, vec![chunk]);
        }
        Case::new(SKIP, name, groups * tokens, table.write()).work(Work::NoColumns)
    };
    // Column after column, with more fields of each.
    let wide = |columns: usize, more: &dyn Fn(&mut Chunk, usize)| {
        let chunk = |at: usize| {
            let mut chunk = Chunk::new(1, [Page::data(1, PLAIN, plain_i32(&[1]))]);
            more(&mut chunk, at);
            chunk
        };
        let table = Table::new((0..columns).map(|at| Column::required(&format!("column {at}"), INT32)));
        table.group(1, (0..columns).map(chunk)).write()
    };
    let of_lengths = |chunk: &mut Chunk, at: usize| {
        for field in 0..6_u8 {
            let bits = (at * 7 + usize::from(field) * 13) * 31 % 60;
            chunk.outer.set(100 + i16::from(field), V::I64(1 << bits));
        }
    };
    let of_layouts = |chunk: &mut Chunk, at: usize| {
        for bit in 0..4_u8 {
            chunk.outer.set(100 + i16::from(bit), V::Bool((at >> bit) & 1 == 1));
        }
    };
    let empty = || V::Struct(Struct::default());
    let nested = (0..20).fold(Struct::default(), |inner, _| Struct::of([(1, V::Struct(inner))]));
    vec![
        Case::new(COMPARE, "columns", thousands * 10, wide(thousands * 10, &|_, _| {})).work(Work::NoColumns),
        Case::new(COMPARE, "numbers of many lengths", thousands * 10, wide(thousands * 10, &of_lengths))
            .work(Work::NoColumns),
        Case::new(COMPARE, "of many layouts", thousands * 10, wide(thousands * 10, &of_layouts))
            .work(Work::NoColumns),
        of("empty structures", FIELDS, Some(V::List(vec![empty(); FIELDS]))),
        of("nested structures", FIELDS, Some(V::List(vec![V::Struct(nested); FIELDS / 42]))),
        of("numbers of one byte", FIELDS, Some(V::List(vec![V::I64(1); FIELDS]))),
        of("numbers of ten bytes", FIELDS, Some(V::List(vec![V::I64(i64::MIN); FIELDS]))),
        of("strings of one byte", FIELDS, Some(V::List(vec![V::Binary(vec![1]); FIELDS]))),
    ]
}

/// Wide tables, and tables of many row groups and pages.
fn tables(thousands: usize) -> Vec<Case> {
    let wide = |columns: usize, groups: usize| {
        let chunk = || Chunk::new(1, [Page::data(1, PLAIN, plain_i32(&[1]))]);
        let mut table = Table::new((0..columns).map(|at| Column::required(&format!("column {at}"), INT32)));
        for _ in 0..groups {
            table = table.group(1, (0..columns).map(|_| chunk()));
        }
        table.write()
    };
    let columns = thousands * 10;
    let indexed = |pages: usize| {
        let locations = (0..pages).map(|at| {
            V::Struct(Struct::of([(1, V::I64(i64_of(4 + at))), (2, V::I32(1)), (3, V::I64(i64_of(at)))]))
        });
        let offsets = Struct::of([(1, V::List(locations.collect()))]);
        let bound = || V::List(vec![V::Binary(vec![1; 4]); pages]);
        let bounds = Struct::of([
            (1, V::List(vec![V::Bool(false); pages])),
            (2, bound()),
            (3, bound()),
            (4, V::I32(1)),
            (5, V::List(vec![V::I64(0); pages])),
        ]);
        let data = vec![Page::data(1, PLAIN, plain_i32(&[1])); pages];
        let rows = i64_of(pages);
        let chunk = Chunk::new(rows, data).indexed(offsets, bounds);
        Table::new([Column::required("v", INT32)]).group(rows, [chunk]).write()
    };
    let few = |columns: usize| {
        let page = Page::data(1, PLAIN, plain_i32(&[1]));
        let page_bytes = page.header.write().len() + page.body.len();
        let mut start = 4;
        let mut chunk = |_| {
            let place = V::I64(i64_of(start));
            let location = Struct::of([(1, place), (2, V::I32(i32_of(page_bytes))), (3, V::I64(0))]);
            let offsets = Struct::of([(1, V::List(vec![V::Struct(location)]))]);
            // A chunk's indexes follow its pages.
            start += page_bytes + offsets.write().len() + bounds_of_one().write().len();
            Chunk::new(1, [page.clone()]).indexed(offsets, bounds_of_one())
        };
        let table = Table::new((0..columns).map(|at| Column::required(&format!("column {at}"), INT32)));
        table.group(1, (0..columns).map(&mut chunk)).write()
    };
    vec![
        Case::new(FOOTER, "columns", columns, wide(columns, 1)).work(Work::Footer),
        Case::new(GROUPS, "row groups of one column", columns, wide(1, columns)).work(Work::Footer),
        Case::new(COLUMN, "columns of one row", columns, wide(columns, 1)),
        Case::new(COLUMN, "row groups of one row", columns, wide(1, columns)),
        Case::new(MEASURE_GROUP, "row groups that are measured", columns, wide(1, columns)),
        Case::new(ROOM, "columns of one row", columns, wide(columns, 1)),
        Case::new(MEASURE, "columns of one row", columns, wide(columns, 1)),
        Case::new(OP, "columns of one row", columns, wide(columns, 1)).work(Work::Records),
        Case::new(OP, "a struct of many columns, null", columns, nothing(1, columns)).work(Work::Records),
        Case::new(JOIN, "one chunk of many pages, in pieces of 4 KiB", columns, indexed(columns))
            .work(Work::Index { piece_bytes: 4 << 10 }),
        Case::new(INDEX, "one chunk of many pages", columns, indexed(columns))
            .work(Work::Index { piece_bytes: u64::MAX }),
        Case::new(JUDGE, "one chunk of many pages, left out", columns, indexed(columns)).work(Work::Judged),
        Case::new(CHUNK, "many chunks of one page", columns, few(columns))
            .work(Work::Index { piece_bytes: u64::MAX }),
    ]
}

fn bounds_of_one() -> Struct {
    let bound = || V::List(vec![V::Binary(vec![1; 4])]);
    Struct::of([
        (1, V::List(vec![V::Bool(false)])),
        (2, bound()),
        (3, bound()),
        (4, V::I32(1)),
        (5, V::List(vec![V::I64(0)])),
    ])
}

/// A list of integers with as many entries as asked for: rows of `length` elements.
fn lists(count: usize, length: usize, runs: bool) -> Bytes {
    let rows = (count / length).max(1);
    let entries = rows * length;
    let width = |levels: &[u32], width: u32| -> Vec<u8> {
        if runs {
            levels
                .iter()
                .flat_map(|&level| marquetry_conformance::craft::repeated_run(1, level, width))
                .collect()
        } else {
            packed_run(levels, width)
        }
    };
    let mut random = Random::new();
    let repetition: Vec<u32> = (0..entries).map(|at| u32::from(at % length != 0)).collect();
    let definition: Vec<u32> = (0..entries).map(|_| if random.below(10) == 0 { 2 } else { 3 }).collect();
    let values: Vec<i64> = definition.iter().filter(|&&level| level == 3).map(|_| 7).collect();
    let body =
        [prefixed(&width(&repetition, 1)), prefixed(&width(&definition, 2)), plain_i64(&values)].concat();
    let [outer, middle] = list("v", 1);
    Table::nested(1, [outer, middle, leaf("element", 1, INT64)])
        .group(i64_of(rows), [Chunk::new(i64_of(entries), [Page::data(i32_of(entries), PLAIN, body)])])
        .write()
}

/// A struct that is null here and there, of two integers.
fn structs(count: usize) -> Bytes {
    let mut random = Random::new();
    let levels: Vec<u32> = (0..count).map(|_| random.index(3)).collect();
    let there = levels.iter().filter(|&&level| level == 2).map(|_| 7).collect::<Vec<i64>>();
    let page = || {
        let body = [prefixed(&packed_run(&levels, 2)), plain_i64(&there)].concat();
        Chunk::new(i64_of(count), [Page::data(i32_of(count), PLAIN, body)])
    };
    Table::nested(1, [group("s", 1, 2), leaf("a", 1, INT64), leaf("b", 1, INT64)])
        .group(i64_of(count), [page(), page()])
        .write()
}

/// A struct of so many columns that is null in each row.
fn nothing(rows: usize, columns: usize) -> Bytes {
    let levels = prefixed(&packed_run(&vec![0; rows], 2));
    let page = || Chunk::new(i64_of(rows), [Page::data(i32_of(rows), PLAIN, levels.clone())]);
    let elements = (0..columns).map(|at| leaf(&format!("c{at}"), 1, INT64));
    Table::nested(1, [group("s", 1, i32_of(columns))].into_iter().chain(elements))
        .group(i64_of(rows), (0..columns).map(|_| page()))
        .write()
}

fn flat(count: usize, columns: usize) -> Bytes {
    let values: Vec<i64> = (0..i64_of(count)).collect();
    let body = plain_i64(&values);
    let chunk = || Chunk::new(i64_of(count), [Page::data(i32_of(count), PLAIN, body.clone())]);
    Table::new((0..columns).map(|at| Column::required(&format!("v{at}"), INT64)))
        .group(i64_of(count), (0..columns).map(|_| chunk()))
        .write()
}

fn nested(count: usize) -> Vec<Case> {
    let long = count / 2;
    vec![
        Case::new(LEVEL, "list<int64> of 3", count, lists(count, 3, false)),
        Case::new(LEVEL, "list<int64> of 3, runs of one", count, lists(count, 3, true)),
        Case::new(LEVEL, "list<int64>, two rows", count, lists(count, long, false)),
        Case::new(LEVEL, "struct of two int64", count, structs(count)),
        Case::new(KEEP, "every other list<int64> of 1", count, lists(count, 1, false)).work(Work::EveryOther),
        Case::new(KEEP, "every other list<int64> of 3", count, lists(count, 3, false)).work(Work::EveryOther),
        Case::new(KEEP, "every other struct of two int64", count, structs(count)).work(Work::EveryOther),
        Case::new(ENTRY, "list<int64> of 1", count, lists(count, 1, false)).work(Work::Arrays),
        Case::new(ENTRY, "list<int64> of 3", count, lists(count, 3, false)).work(Work::Arrays),
        Case::new(ENTRY, "list<int64>, two rows", count, lists(count, long, false)).work(Work::Arrays),
        Case::new(ENTRY, "struct of two int64", count, structs(count)).work(Work::Arrays),
        Case::new(OP, "four int64", 4 * count, flat(count, 4)).work(Work::Records),
        Case::new(OP, "list<int64> of 3", count, lists(count, 3, false)).work(Work::Records),
        Case::new(OP, "struct of two int64", count, structs(count)).work(Work::Records),
        Case::new(EVENT, "four int64", 4 * count, flat(count, 4)).work(Work::Shredded),
        Case::new(EVENT, "list<int64> of 3", count, lists(count, 3, false)).work(Work::Shredded),
        Case::new(EVENT, "list<int64>, two rows", count, lists(count, long, false)).work(Work::Shredded),
        Case::new(EVENT, "struct of two int64", count, structs(count)).work(Work::Shredded),
        Case::new(ABSENT, "struct of a hundred that is null", count, nothing(count / 100, 100))
            .work(Work::Shredded),
    ]
}

fn conformed(count: usize) -> Vec<Case> {
    let values: Vec<i32> = (0..i32_of(count)).collect();
    let narrow = |column: Column, levels: Vec<u8>| {
        let body = [levels, plain_i32(&values)].concat();
        Table::new([column])
            .group(i64_of(count), [Chunk::new(i64_of(count), [Page::data(i32_of(count), PLAIN, body)])])
            .write()
    };
    let wide = |column: Column| Table::new([column]).write();
    let required = narrow(Column::required("v", INT32), Vec::new());
    vec![
        Case::new(VALUE, "int32 as int64", count, required.clone())
            .work(Work::Conform(wide(Column::required("v", INT64)))),
        Case::new(VALUE, "int32 with a column of nulls", count, required).work(Work::Conform(
            Table::new([Column::required("v", INT32), Column::optional("w", INT64)]).write(),
        )),
    ]
}
