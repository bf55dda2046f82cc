//! Values of each encoding, in shapes that are easy and hard.

use bytes::Bytes;
use marquetry_conformance::craft::{
    BOOLEAN, BYTE_ARRAY, Chunk, Column, DELTA_BINARY_PACKED, DELTA_BYTE_ARRAY, DELTA_LENGTH_BYTE_ARRAY,
    FIXED_LEN_BYTE_ARRAY, INT32, INT64, INT96, PLAIN, Page, RLE, RLE_DICTIONARY, Table, V, delta,
    delta_byte_array, delta_length, packed_run, plain_bytes, plain_i64, prefixed, repeated_run,
};

use super::{Case, Random, Work};

const FIXED: &str = "read/values.rs FIXED";
const SPLIT: &str = "read/values.rs BYTE_STREAM_SPLIT";
const DICTIONARY: &str = "read/values.rs DICTIONARY";
const BYTES: &str = "read/values.rs BYTE_ARRAY";
const DELTA: &str = "read/values.rs DELTA";
const DELTA_BYTES: &str = "read/values.rs DELTA_BYTE_ARRAY";
const ALP: &str = "read/values.rs ALP";
const LEVEL: &str = "read/column.rs LEVEL_PRICE";
const RUN: &str = "read/data_page.rs RUN_PRICE";
const SPREAD: &str = "read/column.rs SPREAD_PRICE";
const FIXED_SPREAD: &str = "read/column.rs FIXED_SPREAD_PRICE";
const KEEP: &str = "read/column.rs KEEP_PRICE";
const FIXED_KEEP: &str = "read/column.rs FIXED_KEEP_PRICE";
const BLOCK: &str = "read/data_page.rs BLOCK_PRICE";
const NUMBERS: &str = "read/dictionary.rs NUMBERS";
const VIEWS: &str = "read/dictionary.rs VIEWS";
const TEXT: &str = "read/dictionary.rs TEXT";
const SEGMENTED: &str = "read/dictionary.rs SEGMENTED";

/// Numbers of the format that nothing else is crafted with.
const DOUBLE: i32 = 5;
const BYTE_STREAM_SPLIT: i32 = 9;
const ALP_ENCODING: i32 = 10;
/// `ConvertedType` UTF8.
const UTF8: i32 = 0;

/// See [`super::cases`].
pub(super) fn cases(thousands: usize) -> Vec<Case> {
    let count = thousands * 1000;
    [
        fixed(count),
        dictionaries(count),
        strings(count),
        deltas(count),
        delta_strings(count),
        alp(count),
        levels(count),
        every_other(count),
    ]
    .concat()
}

/// Every other row is wanted, and the rest is dropped.
fn every_other(count: usize) -> Vec<Case> {
    let strings = || plain_bytes((0..count).map(|at| format!("{at:08}")));
    let cases = [
        (KEEP, "int32", Column::required("v", INT32), noise(count * 4)),
        (KEEP, "int64", Column::required("v", INT64), noise(count * 8)),
        (KEEP, "string", Column::required("v", BYTE_ARRAY), strings()),
        (KEEP, "boolean", Column::required("v", BOOLEAN), noise(count.div_ceil(8))),
        (FIXED_KEEP, "int96", Column::required("v", INT96), noise(count * 12)),
        (FIXED_KEEP, "fixed[1]", of_width(1), noise(count)),
        (FIXED_KEEP, "fixed[16]", of_width(16), noise(count * 16)),
    ];
    cases
        .map(|(price, name, column, body)| {
            let file = one_page(column, PLAIN, body, count);
            Case::new(price, format!("every other {name}"), count, file).work(Work::EveryOther)
        })
        .into()
}

pub(super) fn file(column: Column, pages: Vec<Page>, count: usize) -> Bytes {
    let rows = i64_of(count);
    Table::new([column]).group(rows, [Chunk::new(rows, pages)]).write()
}

pub(super) fn one_page(column: Column, encoding: i32, body: Vec<u8>, count: usize) -> Bytes {
    file(column, vec![Page::data(i32_of(count), encoding, body)], count)
}

pub(super) fn i32_of(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

fn i64_of(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn of_width(width: usize) -> Column {
    Column::required("v", FIXED_LEN_BYTE_ARRAY).with(2, V::I32(i32_of(width)))
}

pub(super) fn noise(bytes: usize) -> Vec<u8> {
    let mut random = Random::new();
    let mut out: Vec<u8> = (0..bytes.div_ceil(8)).flat_map(|_| random.next().to_le_bytes()).collect();
    out.truncate(bytes);
    out
}

fn fixed(count: usize) -> Vec<Case> {
    let plain = |name: &str, column: Column, width: usize, count: usize| {
        Case::new(FIXED, format!("{name} PLAIN"), count, one_page(column, PLAIN, noise(count * width), count))
    };
    let split = |name: &str, column: Column, width: usize, count: usize| {
        let file = one_page(column, BYTE_STREAM_SPLIT, noise(count * width), count);
        Case::new(SPLIT, format!("{name} BYTE_STREAM_SPLIT"), count, file)
    };
    let booleans = |name: &str, encoding: i32, body: Vec<u8>| {
        Case::new(FIXED, name, count, one_page(Column::required("v", BOOLEAN), encoding, body, count))
    };
    let runs: Vec<u8> = (0..count).flat_map(|at| repeated_run(1, u32::from(at % 2 == 0), 1)).collect();
    vec![
        plain("int32", Column::required("v", INT32), 4, count),
        plain("int64", Column::required("v", INT64), 8, count),
        plain("int96", Column::required("v", INT96), 12, count),
        plain("fixed[1]", of_width(1), 1, count),
        plain("fixed[16]", of_width(16), 16, count),
        plain("fixed[1000]", of_width(1000), 1000, count / 50),
        plain("fixed[300000]", of_width(300_000), 300_000, count / 10_000),
        split("int32", Column::required("v", INT32), 4, count),
        split("int64", Column::required("v", INT64), 8, count),
        split("fixed[2]", of_width(2), 2, count),
        split("fixed[16]", of_width(16), 16, count),
        split("fixed[37]", of_width(37), 37, count / 4),
        split("fixed[1000]", of_width(1000), 1000, count / 50),
        booleans("boolean PLAIN", PLAIN, noise(count.div_ceil(8))),
        booleans("boolean RLE, runs of one", RLE, prefixed(&runs)),
        booleans("boolean RLE, one run", RLE, prefixed(&repeated_run(count as u64, 1, 1))),
    ]
}

fn dictionaries(count: usize) -> Vec<Case> {
    // As large a dictionary as the values: each look-up misses the caches.
    let large = count * 4;
    let indices = |entries: usize| -> Vec<u32> {
        let mut random = Random::new();
        (0..count).map(|_| random.index(entries)).collect()
    };
    let width = |entries: usize| (entries.max(2) - 1).ilog2() + 1;
    let pages = |entries: usize, dictionary: Vec<u8>, runs: Vec<u8>| {
        let width = width(entries).to_le_bytes()[0];
        let data = [&[width], runs.as_slice()].concat();
        vec![Page::dictionary(i32_of(entries), dictionary), Page::data(i32_of(count), RLE_DICTIONARY, data)]
    };
    let packed = |entries: usize| packed_run(&indices(entries), width(entries));
    let integers = |entries: usize| plain_i64(&(0..i64_of(entries)).collect::<Vec<_>>());
    let strings = |entries: usize| plain_bytes((0..entries).map(|entry| format!("{entry:08}")));
    let int64 = |name: &str, entries: usize, runs: Vec<u8>| {
        let file = file(Column::required("v", INT64), pages(entries, integers(entries), runs), count);
        Case::new(DICTIONARY, format!("int64, {name}"), count, file)
    };
    let string = |name: &str, entries: usize, runs: Vec<u8>| {
        let file = file(
            Column::required("v", BYTE_ARRAY).with(6, V::I32(UTF8)),
            pages(entries, strings(entries), runs),
            count,
        );
        Case::new(DICTIONARY, format!("string, {name}"), count, file)
    };
    let fixed = |name: &str, entries: usize, runs: Vec<u8>| {
        let file = file(of_width(16), pages(entries, noise(16 * entries), runs), count);
        Case::new(DICTIONARY, format!("fixed[16], {name}"), count, file)
    };
    let ones = |entries: usize| -> Vec<u8> {
        indices(entries).iter().flat_map(|&index| repeated_run(1, index, width(entries))).collect()
    };
    let eights = |entries: usize| -> Vec<u8> {
        indices(entries).chunks(8).flat_map(|indices| packed_run(indices, width(entries))).collect()
    };
    vec![
        int64("one run", 1000, repeated_run(count as u64, 7, width(1000))),
        int64("of 1,000", 1000, packed(1000)),
        int64("of 1,000, runs of one", 1000, ones(1000)),
        int64("of 1,000, runs of eight", 1000, eights(1000)),
        Case { price: SEGMENTED, ..int64("of four times as many", large, packed(large)) },
        Case {
            price: NUMBERS,
            ..int64("of four times as many, one run", large, repeated_run(count as u64, 7, width(large)))
        },
        string("of 1,000", 1000, packed(1000)),
        string("of 1,000, runs of one", 1000, ones(1000)),
        Case { price: SEGMENTED, ..string("of four times as many", large, packed(large)) },
        Case {
            price: VIEWS,
            ..string("of four times as many, one run", large, repeated_run(count as u64, 7, width(large)))
        },
        Case {
            price: TEXT,
            ..string(
                "of four times as many, UTF-8, one run",
                large,
                repeated_run(count as u64, 7, width(large)),
            )
        }
        .work(Work::Batches { piece_bytes: u64::MAX, verify_utf8: true }),
        fixed("of 1,000", 1000, packed(1000)),
        Case { price: SEGMENTED, ..fixed("of four times as many", large, packed(large)) },
        wide_dictionary(64, count),
        wide_dictionary(1000, count),
        wide_dictionary(65_536, count),
    ]
}

/// Wide byte strings, each from somewhere in a dictionary that is in segments, and of which a value is looked up several times: so little
/// is charged for the dictionary itself.
fn wide_dictionary(width: usize, count: usize) -> Case {
    let entries = ((2 << 20) + count * 4) / width;
    let values = (((16 << 20) + count * 200) / width).next_multiple_of(8);
    let mut random = Random::new();
    let indices: Vec<u32> = (0..values).map(|_| random.index(entries)).collect();
    let bits = entries.ilog2() + 1;
    let body = [&bits.to_le_bytes()[..1], &packed_run(&indices, bits)].concat();
    let pages = vec![
        Page::dictionary(i32_of(entries), noise(width * entries)),
        Page::data(i32_of(values), RLE_DICTIONARY, body),
    ];
    Case::new(SEGMENTED, format!("fixed[{width}], wide"), values, file(of_width(width), pages, values))
}

/// Strings of `bytes` bytes: digits, or characters of four bytes.
fn text(bytes: usize, count: usize, wide: bool) -> Vec<Vec<u8>> {
    let mut random = Random::new();
    let mut one = || -> Vec<u8> {
        if wide {
            "😀𝄞".repeat(bytes / 8).into_bytes()
        } else {
            (0..bytes).map(|_| b"0123456789abcdef"[random.below(16)]).collect()
        }
    };
    (0..count).map(|_| one()).collect()
}

/// As many strings as are not too much to make.
fn strings_of(bytes: usize, count: usize) -> usize {
    count.min(count * 32 / bytes.max(1)).max(count / 1000)
}

fn strings(count: usize) -> Vec<Case> {
    let checked = Work::Batches { piece_bytes: u64::MAX, verify_utf8: true };
    let column = || Column::required("v", BYTE_ARRAY).with(6, V::I32(UTF8));
    let mut cases = Vec::new();
    for (bytes, wide) in [
        (0, false),
        (8, false),
        (12, false),
        (13, false),
        (80, false),
        (1000, false),
        (8, true),
        (80, true),
        (1000, true),
        (100_000, false),
        (100_000, true),
    ] {
        let count = strings_of(bytes, count);
        let values = text(bytes, count, wide);
        let name = format!("{}{bytes} bytes", if wide { "4-byte characters, " } else { "" });
        let plain = one_page(column(), PLAIN, plain_bytes(&values), count);
        let lengths = one_page(column(), DELTA_LENGTH_BYTE_ARRAY, delta_length(&values), count);
        if !wide {
            cases.push(Case::new(BYTES, format!("PLAIN, {name}"), count, plain.clone()));
            // Before its bytes are found, a page's lengths are stepped over.
            let price = if bytes == 0 { BLOCK } else { BYTES };
            cases.push(Case::new(price, format!("DELTA_LENGTH, {name}"), count, lengths.clone()));
        }
        cases.push(Case::new(BYTES, format!("PLAIN UTF-8, {name}"), count, plain).work(checked.clone()));
        cases.push(
            Case::new(BYTES, format!("DELTA_LENGTH UTF-8, {name}"), count, lengths).work(checked.clone()),
        );
    }
    let mut random = Random::new();
    let values: Vec<Vec<u8>> = (0..count).map(|_| vec![b'x'; random.below(25)]).collect();
    let mixed = one_page(column(), PLAIN, plain_bytes(&values), count);
    cases.push(Case::new(BYTES, "PLAIN, 0 to 24 bytes", count, mixed.clone()));
    cases.push(Case::new(BYTES, "PLAIN UTF-8, 0 to 24 bytes", count, mixed).work(checked));
    cases
}

fn deltas(count: usize) -> Vec<Case> {
    let mut random = Random::new();
    let steps: Vec<i64> = (0..count).map(|at| i64_of(at * 10) + i64_of(random.below(100))).collect();
    let wide: Vec<i64> = (0..count).map(|_| random.next().cast_signed()).collect();
    // In 32 bits, whatever the differences are.
    let narrow: Vec<i64> = (0..count).map(|_| i64::from(random.index(1 << 31))).collect();
    let same: Vec<i64> = (0..i64_of(count)).collect();
    let of = |name: &str, physical_type: i32, values: &[i64], block: usize, miniblocks: usize| {
        let column = Column::required("v", physical_type);
        let file = one_page(column, DELTA_BINARY_PACKED, delta(values, block, miniblocks), count);
        Case::new(DELTA, name, count, file)
    };
    vec![
        of("int64, no bits", INT64, &same, 128, 4),
        of("int32, 8 bits", INT32, &steps, 128, 4),
        of("int64, 8 bits", INT64, &steps, 128, 4),
        of("int32, 32 bits", INT32, &narrow, 128, 4),
        of("int64, 64 bits", INT64, &wide, 128, 4),
        of("int32 in 64 bits", INT32, &wide, 128, 4),
        of("int64, 64 bits, blocks of 32,768", INT64, &wide, 32_768, 4),
    ]
}

fn delta_strings(count: usize) -> Vec<Case> {
    let column = || Column::required("v", BYTE_ARRAY).with(6, V::I32(UTF8));
    let of = |name: &str, values: &[Vec<u8>]| {
        let file = one_page(column(), DELTA_BYTE_ARRAY, delta_byte_array(values), values.len());
        Case::new(DELTA_BYTES, name, values.len(), file)
    };
    let short: Vec<Vec<u8>> = (0..count).map(|at| format!("{at:08}").into_bytes()).collect();
    let links: Vec<Vec<u8>> =
        (0..count).map(|at| format!("https://example.com/{at:08}").into_bytes()).collect();
    let long: Vec<Vec<u8>> =
        (0..count / 50).map(|at| format!("{}{at:08}", "x".repeat(992)).into_bytes()).collect();
    let longer: Vec<Vec<u8>> =
        (0..count / 2000).map(|at| format!("{}{at:08}", "é".repeat(20_000)).into_bytes()).collect();
    let nothing: Vec<Vec<u8>> = vec![Vec::new(); count];
    let checked = Work::Batches { piece_bytes: u64::MAX, verify_utf8: true };
    vec![
        of("0 bytes", &nothing),
        of("8 bytes", &short),
        of("28 bytes", &links),
        of("28 bytes UTF-8", &links).work(checked.clone()),
        of("1,000 bytes", &long),
        of("1,000 bytes UTF-8", &long).work(checked.clone()),
        of("40,008 bytes", &longer),
        of("40,008 bytes UTF-8", &longer).work(checked),
    ]
}

/// ALP pages of decimals, in which one value of so many is an exception.
fn alp(count: usize) -> Vec<Case> {
    const VECTOR: usize = 1024;
    const WIDTH: usize = 20;
    let page = |exception: usize| -> Vec<u8> {
        let mut random = Random::new();
        let vectors: Vec<Vec<u8>> = (0..count.div_ceil(VECTOR))
            .map(|vector| {
                let values = VECTOR.min(count - vector * VECTOR);
                let exceptions: Vec<usize> =
                    (0..values).filter(|at| exception > 0 && at % exception == 0).collect();
                // The exponent, the factor, the number of exceptions, the frame of reference, the bits of a value.
                let mut out = vec![2, 0];
                out.extend(u16::try_from(exceptions.len()).unwrap_or(0).to_le_bytes());
                out.extend(0u64.to_le_bytes());
                out.push(u8::try_from(WIDTH).unwrap_or(0));
                out.extend((0..(values * WIDTH).div_ceil(8)).map(|_| random.next().to_le_bytes()[0]));
                exceptions.iter().for_each(|&at| out.extend(u16::try_from(at).unwrap_or(0).to_le_bytes()));
                exceptions.iter().for_each(|_| out.extend(0.1f64.to_le_bytes()));
                out
            })
            .collect();
        let mut out = vec![0, 0, 10];
        out.extend(i32_of(count).to_le_bytes());
        let mut offset = vectors.len() * 4;
        for vector in &vectors {
            out.extend(i32_of(offset).to_le_bytes());
            offset += vector.len();
        }
        out.extend(vectors.concat());
        out
    };
    let of = |name: &str, exception: usize| {
        Case::new(
            ALP,
            name,
            count,
            one_page(Column::required("v", DOUBLE), ALP_ENCODING, page(exception), count),
        )
    };
    vec![
        of("double, no exceptions", 0),
        of("double, 1 of 20 an exception", 20),
        of("double, all exceptions", 1),
    ]
}

/// Levels of flat columns. (Those of nested ones are with the arrays.)
fn levels(count: usize) -> Vec<Case> {
    let mut random = Random::new();
    let some: Vec<u32> = (0..count).map(|_| u32::from(random.below(10) > 0)).collect();
    let half: Vec<u32> = (0..count).map(|_| u32::from(random.below(2) > 0)).collect();
    let of = |name: &str, runs: Vec<u8>, there: usize, width: usize| {
        let column = match width {
            8 => Column::optional("v", INT64),
            _ => of_width(width).with(3, V::I32(1)),
        };
        let body = [prefixed(&runs), noise(there * width)].concat();
        Case::new(LEVEL, name, count, one_page(column, PLAIN, body, count))
    };
    let there = |levels: &[u32]| levels.iter().map(|&level| level as usize).sum::<usize>();
    let ones: Vec<u8> = half.iter().flat_map(|&level| repeated_run(1, level, 1)).collect();
    vec![
        of("all null, one run", repeated_run(count as u64, 0, 1), 0, 8),
        of("int64, 1 of 10 null", packed_run(&some, 1), there(&some), 8),
        Case { price: SPREAD, ..of("int64, half null", packed_run(&half, 1), there(&half), 8) },
        Case { price: RUN, ..of("int64, half null, runs of one", ones, there(&half), 8) },
        Case { price: FIXED_SPREAD, ..of("fixed[16], half null", packed_run(&half, 1), there(&half), 16) },
        Case { price: FIXED_SPREAD, ..of("fixed[3], half null", packed_run(&half, 1), there(&half), 3) },
    ]
}
