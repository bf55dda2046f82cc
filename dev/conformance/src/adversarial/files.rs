//! The files, one function each.

use marquetry_base::ErrorKind::{Corrupt, LimitExceeded, Unsupported};
use marquetry_base::Limits;
use marquetry_base::cast::u64_of;

use super::streams::{ValueOf, Values, lz4_head, lz4_sequence};
use super::{Adversary, Computed, Expected, Scale, compress};
use crate::craft::{self, Column, GZIP, LZ4_RAW, Page, SNAPPY, Struct, UNCOMPRESSED, V, ZSTD};

/// Makes a file at a scale.
pub(super) type Make = fn(&Scale) -> Adversary;

/// All but the large pages.
pub(super) const FILES: &[(&str, Make)] = &[
    ("dictionary/int64", |scale| dictionary(scale.dictionary_bytes, craft::INT64, long)),
    ("dictionary/strings", |scale| dictionary(scale.dictionary_bytes, craft::BYTE_ARRAY, short_string)),
    ("dictionary/long_strings", |scale| dictionary(scale.dictionary_bytes, craft::BYTE_ARRAY, long_string)),
    ("string/plain", |scale| one_string(scale.string_bytes, craft::PLAIN)),
    ("string/delta_length", |scale| one_string(scale.string_bytes, craft::DELTA_LENGTH_BYTE_ARRAY)),
    ("string/delta_byte_array", |scale| one_string(scale.string_bytes, craft::DELTA_BYTE_ARRAY)),
    ("dictionary/fixed_1_kib", |scale| large_fixed_dictionary(scale, 1 << 10)),
    ("dictionary/fixed_64_kib", |scale| large_fixed_dictionary(scale, 64 << 10)),
    ("delta_byte_array/growing_prefixes", growing_prefixes),
    ("delta_byte_array/wrong_width", wrong_width),
    ("delta/largest_block", |_| delta_header(1 << 31, 1 << 26)),
    ("delta/64_bit_block", |_| delta_header(1 << 63, 1 << 58)),
    ("delta/one_miniblock", |_| delta_header(1 << 30, 1)),
    ("delta/most_miniblocks", |_| delta_header(1 << 30, 1 << 25)),
    ("footer/columns", columns),
    ("footer/row_groups", row_groups),
    ("footer/key_value", key_value),
    ("footer/key_values", key_values),
    ("footer/unknown_fields", unknown_in_footer),
    ("footer/long_name", long_name),
    ("footer/deepest", |_| nesting(64)),
    ("footer/too_deep", |_| nesting(65)),
    ("pages/one_value", one_value_pages),
    ("header/statistics", statistics_in_header),
    ("header/unknown_fields", |scale| unknown_in_header(scale.string_bytes.min(15 << 20))),
    ("header/too_long", |_| unknown_in_header(17 << 20)),
    ("levels/one_row", |scale| one_row(scale.entries, INT32S)),
    ("row/int64", |scale| one_row(scale.elements, INT64S)),
    ("row/strings", |scale| one_row(scale.elements / 4, STRINGS)),
    ("row/booleans", |scale| one_row(scale.elements, BOOLEANS)),
    ("fixed/one_value", one_fixed),
    ("fixed/dictionary", fixed_dictionary),
    ("runs/nulls", nulls),
    ("nulls/fixed_64_kib", |_| wide_nulls(64 << 10, |_, out| out.resize(64 << 10, 0))),
    ("nulls/fixed_512_kib", |_| wide_nulls(512 << 10, |_, out| out.resize(512 << 10, 0))),
    ("runs/longer_than_the_page", |_| long_run()),
    ("snappy/copy_from_far", snappy_far),
    ("snappy/copy_from_4_gib", |_| snappy_before_start()),
    ("lz4/copy_from_far", lz4_far),
    ("gzip/members", gzip_members),
    ("zstd/bomb", zstd_bomb),
    ("zstd/largest_window", zstd_window),
    ("brotli/large_window", |_| brotli_window()),
    ("snappy/bomb", snappy_bomb),
];

/// Limits for pages of a gibibyte.
pub(super) const LARGE: Limits = Limits {
    page_bytes: 2 << 30,
    dictionary_bytes: 1 << 30,
    value_bytes: 1 << 30,
    footer_bytes: 1 << 30,
    expansion: u64::MAX,
    ..Limits::DEFAULT
};

/// A file of one page of these values.
pub(super) fn one_page(values: &Values, codec: i32) -> Adversary {
    let held = if values.is_one_stream { 0 } else { values.body.len() };
    one_column(values, codec, &values.body)
        .within(Limits { dictionary_bytes: Limits::DEFAULT.dictionary_bytes, ..LARGE })
        .holding(held)
}

pub(super) fn one_column(values: &Values, codec: i32, body: &Computed) -> Adversary {
    let mut column = Column::required("a", values.physical_type);
    if let Some(length) = values.type_length {
        column = column.with(2, V::I32(length));
    }
    let page = Page::data(i32_of(values.count), values.encoding, Vec::new());
    let mut pages = Computed::new();
    if let Some((entries, dictionary)) = &values.dictionary {
        pages = add_page(pages, Page::dictionary(i32_of(*entries), Vec::new()), codec, dictionary);
    }
    let dictionary_bytes = pages.len();
    pages = add_page(pages, page, codec, body);
    let file = file(column, codec, values.count, dictionary_bytes, pages);
    Adversary::new(file, Expected::Rows(values.count, Some(values.value)))
}

fn add_page(pages: Computed, mut page: Page, codec: i32, plain: &Computed) -> Computed {
    let packed = compress(codec, plain);
    page.header.set(2, V::I32(i32_of(plain.len()))).set(3, V::I32(i32_of(packed.len())));
    pages.bytes(page.header.write()).then(packed)
}

pub(super) fn i32_of(number: u64) -> i32 {
    i32::try_from(number).expect("a page below 2 GiB")
}

pub(super) fn i64_of(number: u64) -> i64 {
    i64::try_from(number).expect("a file below 2^63 bytes")
}

/// A file of one column chunk, whose pages stand ready, the first bytes of which are the dictionary.
pub(super) fn file(
    column: Column,
    codec: i32,
    values: u64,
    dictionary_bytes: u64,
    pages: Computed,
) -> Computed {
    let chunk = chunk(&column, codec, values, dictionary_bytes, pages.len());
    let group = Struct::of([(1, V::List(vec![chunk])), (2, V::I64(0)), (3, V::I64(i64_of(values)))]);
    let schema = vec![V::Struct(root(1)), V::Struct(column.element)];
    end(
        Computed::new().bytes(&b"PAR1"[..]).then(pages),
        Computed::new().bytes(footer(schema, vec![V::Struct(group)], values).write()),
    )
}

pub(super) fn root(children: u64) -> Struct {
    Struct::of([(4, V::text("schema")), (5, V::I32(i32_of(children)))])
}

pub(super) fn chunk(column: &Column, codec: i32, values: u64, dictionary_bytes: u64, bytes: u64) -> V {
    let mut metadata = Struct::of([
        (1, column.element.0.get(&1).cloned().unwrap_or(V::I32(0))),
        (2, V::List(vec![V::I32(craft::PLAIN), V::I32(craft::RLE)])),
        (3, V::List(vec![column.element.0.get(&4).cloned().unwrap_or(V::text("a"))])),
        (4, V::I32(codec)),
        (5, V::I64(i64_of(values))),
        (6, V::I64(i64_of(bytes))),
        (7, V::I64(i64_of(bytes))),
        (9, V::I64(4 + i64_of(dictionary_bytes))),
    ]);
    if dictionary_bytes > 0 {
        metadata.set(11, V::I64(4));
    }
    V::Struct(Struct::of([(2, V::I64(0)), (3, V::Struct(metadata))]))
}

pub(super) fn footer(schema: Vec<V>, groups: Vec<V>, rows: u64) -> Struct {
    Struct::of([(1, V::I32(2)), (2, V::List(schema)), (3, V::I64(i64_of(rows))), (4, V::List(groups))])
}

pub(super) fn end(file: Computed, footer: Computed) -> Computed {
    let length = u32::try_from(footer.len()).expect("a footer below 4 GiB");
    file.then(footer).bytes(length.to_le_bytes().to_vec()).bytes(&b"PAR1"[..])
}

/// A column of this type whose pages are empty: for footers that are of interest themselves.
pub(super) fn no_rows() -> Vec<V> {
    vec![V::Struct(root(1)), V::Struct(Column::required("a", craft::INT32).element)]
}

fn long(row: u64, out: &mut Vec<u8>) {
    out.extend((row % 1024).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
}

fn short_string(row: u64, out: &mut Vec<u8>) {
    out.extend(format!("word{:04}", row % 1024).into_bytes());
}

fn long_string(row: u64, out: &mut Vec<u8>) {
    out.extend(format!("word{:04}", row % 1024).repeat(8).into_bytes());
}

/// A dictionary of so many bytes, of which a thousand rows use the first entries.
fn dictionary(bytes: u64, physical_type: i32, value: ValueOf) -> Adversary {
    let mut unit = Vec::new();
    for row in 0..1024 {
        let mut one = Vec::new();
        value(row, &mut one);
        if physical_type == craft::BYTE_ARRAY {
            unit.extend(u32::try_from(one.len()).expect("short").to_le_bytes());
        }
        unit.extend(one);
    }
    let units = (bytes / u64_of(unit.len())).max(1);
    let mut body = vec![10];
    body.extend(craft::packed_run(&(0..1024).collect::<Vec<u32>>(), 10));
    let values = Values {
        physical_type,
        type_length: None,
        encoding: craft::RLE_DICTIONARY,
        count: 1024,
        body: Computed::new().bytes(body),
        dictionary: Some((units * 1024, Computed::new().repeat(unit, units))),
        value,
        is_one_stream: true,
    };
    // The page, and what it is decoded to: of a string a view, and the page that it points into.
    let held = units * 1024 * 16 + 2 * bytes;
    one_column(&values, UNCOMPRESSED, &values.body).within(LARGE).holding(held)
}

/// One string of so many bytes.
fn one_string(bytes: u64, encoding: i32) -> Adversary {
    let length = i64_of(bytes);
    let body = match encoding {
        craft::PLAIN => Computed::new().bytes(u32::try_from(bytes).expect("32 bits").to_le_bytes().to_vec()),
        craft::DELTA_BYTE_ARRAY => {
            Computed::new().bytes(craft::delta(&[0], 128, 4)).bytes(craft::delta(&[length], 128, 4))
        }
        _ => Computed::new().bytes(craft::delta(&[length], 128, 4)),
    };
    let body = body.repeat(vec![b'x'; 1 << 10], bytes >> 10).bytes(vec![
        b'x';
        usize::try_from(bytes & 1023)
            .expect("small")
    ]);
    let values = Values {
        physical_type: craft::BYTE_ARRAY,
        type_length: None,
        encoding,
        count: 1,
        body,
        dictionary: None,
        value: all_x,
        is_one_stream: true,
    };
    let held = if encoding == craft::PLAIN { 0 } else { bytes };
    one_column(&values, UNCOMPRESSED, &values.body).within(LARGE).holding(held)
}

/// A string of nothing but `x`; how many is not looked at.
pub(super) fn all_x(_row: u64, out: &mut Vec<u8>) {
    out.push(b'x');
}

/// Each string is the one before and a byte: a page becomes its square.
fn growing_prefixes(scale: &Scale) -> Adversary {
    let count = scale.page_bytes.isqrt().max(129);
    let count = 1 + (count - 1).next_multiple_of(128);
    let prefixes: Vec<i64> = (0..i64_of(count)).map(|row| (row - 1).max(0)).collect();
    let suffixes = vec![1i64; prefixes.len()];
    let lengths = [craft::delta(&prefixes, 128, 4), craft::delta(&suffixes, 128, 4)].concat();
    // The first has no prefix and a suffix of one byte, as the others.
    let body = Computed::new().bytes(lengths).repeat(&b"x"[..], count);
    let values = Values {
        physical_type: craft::BYTE_ARRAY,
        type_length: None,
        encoding: craft::DELTA_BYTE_ARRAY,
        count,
        body,
        dictionary: None,
        value: all_x,
        is_one_stream: false,
    };
    one_column(&values, UNCOMPRESSED, &values.body).within(LARGE)
}

/// A DELTA_BINARY_PACKED header at the limits of what its numbers can say.
fn delta_header(block: u64, miniblocks: u64) -> Adversary {
    let mut body = Vec::new();
    [block, miniblocks, 1000].iter().for_each(|&number| craft::varint(&mut body, number));
    craft::zigzag(&mut body, i64::MIN);
    craft::zigzag(&mut body, i64::MAX);
    body.extend([64; 4096]);
    let values = Values {
        physical_type: craft::INT64,
        type_length: None,
        encoding: craft::DELTA_BINARY_PACKED,
        count: 1000,
        body: Computed::new().bytes(body),
        dictionary: None,
        value: all_x,
        is_one_stream: true,
    };
    let made = one_column(&values, UNCOMPRESSED, &values.body);
    Adversary { expected: Expected::Error(Corrupt, ""), ..made }
}

/// A wide table of two row groups without rows.
fn columns(scale: &Scale) -> Adversary {
    let columns: Vec<Column> = (0..scale.columns)
        .map(|number| Column::required(&format!("column_{number}"), craft::INT64))
        .collect();
    let statistics = Struct::of([(3, V::I64(0)), (5, V::Binary(vec![255; 8])), (6, V::Binary(vec![0; 8]))]);
    let group = || {
        let chunks = columns.iter().map(|column| {
            let mut chunk = chunk(column, UNCOMPRESSED, 0, 0, 0);
            if let V::Struct(outer) = &mut chunk {
                outer.child(3).set(12, V::Struct(statistics.clone()));
            }
            chunk
        });
        V::Struct(Struct::of([(1, V::List(chunks.collect())), (2, V::I64(0)), (3, V::I64(0))]))
    };
    let schema = std::iter::once(V::Struct(root(scale.columns)))
        .chain(columns.iter().map(|column| V::Struct(column.element.clone())))
        .collect();
    let footer = footer(schema, vec![group(), group()], 0).write();
    Adversary::new(
        end(Computed::new().bytes(&b"PAR1"[..]), Computed::new().bytes(footer)),
        Expected::Rows(0, None),
    )
    .holding(scale.columns * 4096)
}

/// The beginning of a footer, without its last byte: fields up to 4 stand in it.
fn open_footer(schema: Vec<V>, groups: Vec<V>) -> Vec<u8> {
    let mut bytes = footer(schema, groups, 0).write();
    bytes.pop();
    bytes
}

/// Row groups without rows.
fn row_groups(scale: &Scale) -> Adversary {
    let column = Column::required("a", craft::INT32);
    let chunk = chunk(&column, UNCOMPRESSED, 0, 0, 0);
    let group = Struct::of([(1, V::List(vec![chunk])), (2, V::I64(0)), (3, V::I64(0))]).write();
    let start = Struct::of([(1, V::I32(2)), (2, V::List(no_rows())), (3, V::I64(0))]).write();
    let mut head = start[..start.len() - 1].to_vec();
    head.extend([1 << 4 | 9, 0xfc]);
    craft::varint(&mut head, scale.row_groups);
    let footer = Computed::new().bytes(head).repeat(group, scale.row_groups).bytes(vec![0]);
    Adversary::new(end(Computed::new().bytes(&b"PAR1"[..]), footer), Expected::Rows(0, None))
        .within(LARGE)
        .holding(scale.row_groups * 1024)
}

/// A key whose value has so many bytes.
fn key_value(scale: &Scale) -> Adversary {
    let bytes = scale.string_bytes;
    let mut head = open_footer(no_rows(), Vec::new());
    head.extend([1 << 4 | 9, 0x1c, 0x18, 1, b'k', 0x18]);
    craft::varint(&mut head, bytes);
    let value =
        Computed::new().repeat(vec![b'v'; 1000], bytes / 1000).bytes(vec![
            b'v';
            usize::try_from(bytes % 1000)
                .expect("small")
        ]);
    let footer = Computed::new().bytes(head).then(value).bytes(vec![0, 0]);
    Adversary::new(end(Computed::new().bytes(&b"PAR1"[..]), footer), Expected::Rows(0, None))
        .within(LARGE)
        .holding(2 * bytes)
}

/// So many keys.
fn key_values(scale: &Scale) -> Adversary {
    let mut head = open_footer(no_rows(), Vec::new());
    head.extend([1 << 4 | 9, 0xfc]);
    craft::varint(&mut head, scale.entries);
    let pair = [0x18, 1, b'k', 0x18, 3, b'v', b'v', b'v', 0];
    let footer = Computed::new().bytes(head).repeat(pair.to_vec(), scale.entries).bytes(vec![0]);
    Adversary::new(end(Computed::new().bytes(&b"PAR1"[..]), footer), Expected::Rows(0, None))
        .holding(scale.entries * 512)
}

/// Values of every type that nobody knows, and together are long: the header of a field, and what it holds.
fn unknown(bytes: u64) -> Computed {
    let part = bytes / 5;
    let long = |head: &[u8], length: u64| {
        let mut head = head.to_vec();
        craft::varint(&mut head, length);
        Computed::new().bytes(head)
    };
    // Field 1000 and then by ones: a list of booleans, one of empty structures, a map of numbers, text, and structures in structures.
    let deep = [vec![0x1c; 60], vec![0; 60]].concat();
    long(&[9, 0xd0, 0x0f, 0xf1], part)
        .repeat(vec![1; 1000], part / 1000)
        .bytes(vec![2; usize::try_from(part % 1000).expect("small")])
        .then(long(&[0x19, 0xfc], part))
        .repeat(vec![0; 1000], part / 1000)
        .bytes(vec![0; usize::try_from(part % 1000).expect("small")])
        .then(long(&[0x1b], part / 2))
        .bytes(vec![0x55])
        .repeat(vec![7], part / 2 * 2)
        .then(long(&[0x18], part))
        .repeat(vec![b'?'], part)
        .then(long(&[0x19, 0xfc], part / 121))
        .repeat([deep, vec![0]].concat(), part / 121)
}

fn unknown_in_footer(scale: &Scale) -> Adversary {
    let head = open_footer(no_rows(), Vec::new());
    let footer = Computed::new().bytes(head).then(unknown(scale.string_bytes)).bytes(vec![0]);
    Adversary::new(end(Computed::new().bytes(&b"PAR1"[..]), footer), Expected::Rows(0, None)).within(LARGE)
}

/// A column's name that is longer than any structure may be.
fn long_name(scale: &Scale) -> Adversary {
    let bytes = scale.string_bytes.min(Limits::DEFAULT.footer_bytes / 2);
    let mut head = Struct::of([(1, V::I32(2))]).write();
    head.pop();
    // The schema: the root, and a leaf with its type, its repetition and its name.
    head.extend([1 << 4 | 9, 0x2c]);
    head.extend(root(1).write());
    head.extend([0x15, 2, 0x25, 0, 0x18]);
    craft::varint(&mut head, bytes);
    let mut rest = Struct::of([(3, V::I64(0)), (4, V::List(Vec::new()))]).write();
    // Counted from field 2, not from none.
    rest[0] = 1 << 4 | 6;
    let footer = Computed::new().bytes(head).repeat(&b"n"[..], bytes).bytes(vec![0]).bytes(rest);
    Adversary::new(
        end(Computed::new().bytes(&b"PAR1"[..]), footer),
        Expected::Error(LimitExceeded, "structure_bytes"),
    )
}

/// So many groups in groups, below the root.
fn nesting(levels: u64) -> Adversary {
    let groups = (0..levels).map(|_| V::Struct(craft::group("g", 1, 1)));
    let leaf = V::Struct(craft::leaf("a", 1, craft::INT32));
    let schema = std::iter::once(V::Struct(root(1))).chain(groups).chain([leaf]).collect();
    let is_too_deep = levels > u64::from(Limits::DEFAULT.nesting);
    let footer = footer(schema, Vec::new(), 0).write();
    let expected =
        if is_too_deep { Expected::Error(LimitExceeded, "nesting") } else { Expected::Rows(0, None) };
    Adversary::new(end(Computed::new().bytes(&b"PAR1"[..]), Computed::new().bytes(footer)), expected)
}

/// Pages of one value each.
fn one_value_pages(scale: &Scale) -> Adversary {
    let mut unit = Vec::new();
    for row in 0..1024 {
        let mut value = Vec::new();
        long(row, &mut value);
        let page = Page::data(1, craft::PLAIN, value);
        unit.extend(page.header.write());
        unit.extend(page.body);
    }
    let units = (scale.pages / 1024).max(1);
    let rows = units * 1024;
    let pages = Computed::new().repeat(unit, units);
    let file = file(Column::required("a", craft::INT64), UNCOMPRESSED, rows, 0, pages);
    Adversary::new(file, Expected::Rows(rows, Some(long)))
}

/// A page of a thousand values, whose header is followed by more fields.
fn page_with(fields: Computed, expected: Option<Expected>) -> Adversary {
    let mut body = Vec::new();
    (0..1024).for_each(|row| long(row, &mut body));
    let mut header = Page::data(1024, craft::PLAIN, body.clone()).header.write();
    header.pop();
    let pages = Computed::new().bytes(header).then(fields).bytes(vec![0]).bytes(body);
    let file = file(Column::required("a", craft::INT64), UNCOMPRESSED, 1024, 0, pages);
    Adversary::new(file, expected.unwrap_or(Expected::Rows(1024, Some(long))))
}

/// A page header whose bounds have several mebibytes.
fn statistics_in_header(scale: &Scale) -> Adversary {
    let bytes = scale.string_bytes.min(7 << 20);
    let bound = |head: &[u8]| {
        let mut head = head.to_vec();
        craft::varint(&mut head, bytes);
        Computed::new().bytes(head).repeat(&b"b"[..], bytes)
    };
    let mut body = Vec::new();
    (0..1024).for_each(|row| long(row, &mut body));
    let page = Page::data(1024, craft::PLAIN, body.clone());
    let mut header = page.header.write();
    // Both structures end; the inner one goes on with its field 5.
    header.truncate(header.len() - 2);
    header.push(0x1c);
    let statistics = bound(&[0x58]).then(bound(&[0x18])).bytes(vec![0, 0, 0]);
    let pages = Computed::new().bytes(header).then(statistics).bytes(body);
    let file = file(Column::required("a", craft::INT64), UNCOMPRESSED, 1024, 0, pages);
    Adversary::new(file, Expected::Rows(1024, Some(long)))
}

fn unknown_in_header(bytes: u64) -> Adversary {
    let limit = Limits::DEFAULT.page_header_bytes;
    let expected = (bytes > limit + 1000).then_some(Expected::Error(LimitExceeded, "page_header_bytes"));
    let bytes = if expected.is_some() { bytes } else { bytes.min(limit - (64 << 10)) };
    page_with(unknown(bytes), expected)
}

/// Elements of a list: their type; a thousand of them, PLAIN; and each.
type Elements = (i32, fn() -> Vec<u8>, ValueOf);

const INT32S: Elements = (craft::INT32, || (0..1000u32).flat_map(u32::to_le_bytes).collect(), thousand);
const INT64S: Elements = (
    craft::INT64,
    || (0..1000u64).flat_map(u64::to_le_bytes).collect(),
    |row, out| out.extend((row % 1000).to_le_bytes()),
);
const STRINGS: Elements = (
    craft::BYTE_ARRAY,
    || (0..1000u64).flat_map(|row| [&8u32.to_le_bytes()[..], &thousandth(row)].concat()).collect(),
    |row, out| out.extend(thousandth(row)),
);
/// Every third is true: a thousand of them are bytes.
const BOOLEANS: Elements = (
    craft::BOOLEAN,
    || {
        (0..125)
            .map(|byte| (0..8).map(|bit| u8::from((byte * 8 + bit) % 1000 % 3 == 0) << bit).sum())
            .collect()
    },
    |row, out| out.push(u8::from(row % 1000 % 3 == 0)),
);

fn thousandth(row: u64) -> [u8; 8] {
    let mut text = *b"word0000";
    text[4..].copy_from_slice(format!("{:04}", row % 1000).as_bytes());
    text
}

/// A list of so many elements in one row.
fn one_row(entries: u64, (physical_type, unit, value): Elements) -> Adversary {
    let entries = entries / 1000 * 1000;
    let [outer, middle] = craft::list("a", 0);
    let element = craft::leaf("element", 0, physical_type);
    let repetition = [craft::repeated_run(1, 0, 1), craft::repeated_run(entries - 1, 1, 1)].concat();
    let levels =
        [craft::prefixed(&repetition), craft::prefixed(&craft::repeated_run(entries, 1, 1))].concat();
    let body = Computed::new().bytes(levels).repeat(unit(), entries / 1000);
    let page = Page::data(i32_of(entries), craft::PLAIN, Vec::new());
    let pages = add_page(Computed::new(), page, UNCOMPRESSED, &body);
    let column = Column { element: element.clone() };
    let chunk = chunk(&column, UNCOMPRESSED, entries, 0, pages.len());
    let group = Struct::of([(1, V::List(vec![chunk])), (2, V::I64(0)), (3, V::I64(1))]);
    let schema = [root(1), outer, middle, element].map(V::Struct).to_vec();
    let footer = footer(schema, vec![V::Struct(group)], 1).write();
    let file = end(Computed::new().bytes(&b"PAR1"[..]).then(pages), Computed::new().bytes(footer));
    // An element, two levels, and the bytes that a view points into; twice while they are joined.
    Adversary::new(file, Expected::Rows(1, Some(value))).within(LARGE).holding(entries * 48)
}

/// A value of one width, of nothing but `x`, `count` times, in a page and maybe a dictionary of one.
fn fixed(width: u64, count: u64, is_dictionary: bool) -> Adversary {
    let value = Computed::new().repeat(vec![b'x'; 1 << 10], width >> 10);
    let width = value.len();
    let body = match is_dictionary {
        true => Computed::new().bytes([&[1][..], &craft::repeated_run(count, 0, 1)].concat()),
        false => value.clone(),
    };
    let values = Values {
        physical_type: craft::FIXED_LEN_BYTE_ARRAY,
        type_length: Some(i32_of(width)),
        encoding: if is_dictionary { craft::RLE_DICTIONARY } else { craft::PLAIN },
        count,
        body,
        dictionary: is_dictionary.then_some((1, value)),
        value: all_x,
        is_one_stream: true,
    };
    one_column(&values, UNCOMPRESSED, &values.body).within(LARGE).holding(3 * width)
}

fn one_fixed(scale: &Scale) -> Adversary {
    fixed(scale.string_bytes, 1, false)
}

fn fixed_dictionary(scale: &Scale) -> Adversary {
    fixed(scale.dictionary_bytes, 3, true)
}

/// Values of `width` bytes, looked up in a dictionary of two mebibytes at least, which is in segments.
fn large_fixed_dictionary(scale: &Scale, width: u64) -> Adversary {
    let entries = (scale.dictionary_bytes.max(2 << 20) / width).min(1 << 15);
    let count = (scale.page_bytes * 8 / width).div_ceil(1024) * 1024 / 8;
    let indices: Vec<u32> =
        (0..count).map(|row| u32::try_from(row * 7919 % entries).expect("few entries")).collect();
    let values = Values {
        physical_type: craft::FIXED_LEN_BYTE_ARRAY,
        type_length: Some(i32_of(width)),
        encoding: craft::RLE_DICTIONARY,
        count,
        body: Computed::new().bytes([&[15][..], &craft::packed_run(&indices, 15)].concat()),
        dictionary: Some((entries, Computed::new().repeat(vec![b'x'; 1 << 10], (entries * width) >> 10))),
        value: all_x,
        is_one_stream: true,
    };
    one_column(&values, UNCOMPRESSED, &values.body).within(LARGE).holding(2 * entries * width)
}

/// A string of many bytes where all have sixteen: it is refused before it is built.
fn wrong_width(scale: &Scale) -> Adversary {
    let made = one_string(scale.string_bytes, craft::DELTA_BYTE_ARRAY);
    let bytes = scale.string_bytes;
    let body = Computed::new()
        .bytes(craft::delta(&[0], 128, 4))
        .bytes(craft::delta(&[i64_of(bytes)], 128, 4))
        .repeat(&b"x"[..], bytes);
    let values = Values {
        physical_type: craft::FIXED_LEN_BYTE_ARRAY,
        type_length: Some(16),
        encoding: craft::DELTA_BYTE_ARRAY,
        count: 1,
        body,
        dictionary: None,
        value: all_x,
        is_one_stream: false,
    };
    let file = one_column(&values, UNCOMPRESSED, &values.body).file;
    Adversary { file, expected: Expected::Error(Corrupt, "bytes, not 16"), ..made }
}

/// A page of nulls of byte strings of one width, with a slot for each.
fn wide_nulls(width: u64, value: ValueOf) -> Adversary {
    const ROWS: u64 = 30;
    let body = craft::prefixed(&craft::repeated_run(ROWS, 0, 1));
    let page = Page::data(i32_of(ROWS), craft::PLAIN, body);
    let pages = Computed::new().bytes(page.header.write()).bytes(page.body);
    let column = Column::optional("a", craft::FIXED_LEN_BYTE_ARRAY).with(2, V::I32(i32_of(width)));
    let file = file(column, UNCOMPRESSED, ROWS, 0, pages);
    let made = Adversary::new(file, Expected::Rows(ROWS, Some(value)));
    Adversary { has_slots: true, ..made }
}

fn thousand(row: u64, out: &mut Vec<u8>) {
    out.extend(u32::try_from(row % 1000).expect("small").to_le_bytes());
}

/// A page of nothing but nulls: a run of as many levels as there can be.
fn nulls(scale: &Scale) -> Adversary {
    let rows = if scale.page_bytes > 64 << 20 { i32::MAX as u64 } else { 10_000_000 };
    let mut body = Vec::new();
    craft::varint(&mut body, rows << 1);
    body.push(0);
    let page = Page::data(i32_of(rows), craft::PLAIN, craft::prefixed(&body));
    let pages = Computed::new().bytes(page.header.write()).bytes(page.body);
    let file = file(Column::optional("a", craft::INT32), UNCOMPRESSED, rows, 0, pages);
    Adversary::new(file, Expected::Rows(rows, None))
}

/// A run of 2^31 - 1 indices in a page of a thousand.
fn long_run() -> Adversary {
    let body = [vec![10], craft::repeated_run(i32::MAX as u64, 7, 10)].concat();
    let mut entries = Vec::new();
    (0..1024).for_each(|_| long(7, &mut entries));
    let values = Values {
        physical_type: craft::INT64,
        type_length: None,
        encoding: craft::RLE_DICTIONARY,
        count: 1000,
        body: Computed::new().bytes(body),
        dictionary: Some((1024, Computed::new().bytes(entries))),
        value: |_, out| long(7, out),
        is_one_stream: true,
    };
    one_column(&values, UNCOMPRESSED, &values.body)
}

/// A page of PLAIN INT64 that stands packed already.
pub(super) fn packed(codec: i32, rows: u64, value: ValueOf, packed: Computed) -> Adversary {
    let mut page = Page::data(i32_of(rows), craft::PLAIN, Vec::new());
    page.header.set(2, V::I32(i32_of(rows * 8))).set(3, V::I32(i32_of(packed.len())));
    let pages = Computed::new().bytes(page.header.write()).then(packed);
    let file = file(Column::required("a", craft::INT64), codec, rows, 0, pages);
    Adversary::new(file, Expected::Rows(rows, Some(value))).within(LARGE)
}

/// The last 64 bytes are copied from the page's start.
fn snappy_far(scale: &Scale) -> Adversary {
    let mut unit = Vec::new();
    (0..1024).for_each(|row| long(row, &mut unit));
    let units = (scale.page_bytes / 8192).max(1);
    let plain = units * 8192;
    let mut head = Vec::new();
    craft::varint(&mut head, plain + 64);
    // A literal of 8,192 bytes, whose length has two bytes; then a copy of 64 bytes whose offset has four.
    let literal = [&[61 << 2, 0xff, 0x1f][..], &unit].concat();
    let offset = u32::try_from(plain).expect("32 bits");
    let copy = [&[63 << 2 | 3][..], &offset.to_le_bytes()].concat();
    let stream = Computed::new().bytes(head).repeat(literal, units).bytes(copy);
    let made = packed(SNAPPY, units * 1024 + 8, long, stream);
    // Only a window of the page is held. Writers compress 64 KiB at a time, so none of them copies from further back.
    Adversary { expected: Expected::Error(LimitExceeded, "a window of"), ..made }
}

/// A copy from as far back as the format can say.
fn snappy_before_start() -> Adversary {
    let stream = [&[64, 7 << 2, 1, 2, 3, 4, 5, 6, 7, 8, 55 << 2 | 3][..], &u32::MAX.to_le_bytes()].concat();
    let made = packed(SNAPPY, 8, long, Computed::new().bytes(stream));
    Adversary { expected: Expected::Error(Corrupt, ""), ..made }
}

/// Zeros: a match of them from as far back as the format can say.
fn lz4_far(scale: &Scale) -> Adversary {
    const OFFSET: usize = 65_535;
    let matched = (scale.page_bytes >> 16).clamp(1, 1 << 10) << 16;
    let sequence = lz4_sequence(&[0; OFFSET], OFFSET, usize::try_from(matched).expect("small"));
    let tail = [0; 17];
    let stream = Computed::new().bytes(sequence).bytes(lz4_head(&tail, 0)).bytes(tail.to_vec());
    packed(LZ4_RAW, (u64_of(OFFSET + tail.len()) + matched) / 8, zero, stream)
}

/// A gzip of so many empty members, and one that is not.
fn gzip_members(scale: &Scale) -> Adversary {
    let empty = compress(GZIP, &Computed::new());
    let empty = empty.read(0..empty.len());
    let mut unit = Vec::new();
    (0..1024).for_each(|row| long(row, &mut unit));
    let last = compress(GZIP, &Computed::new().bytes(unit));
    packed(GZIP, 1024, long, Computed::new().repeat(empty, scale.entries).then(last))
}

/// Zeros: 128 KiB of them take four bytes.
fn zstd_bomb(scale: &Scale) -> Adversary {
    // Magic; a window of 128 KiB; blocks of one byte that repeats; the last is marked.
    let block = |last: u32| {
        let head = (128u32 << 10) << 3 | 1 << 1 | last;
        [&head.to_le_bytes()[..3], &[0]].concat()
    };
    let blocks = (scale.page_bytes >> 17).max(1);
    let stream = Computed::new()
        .bytes(vec![0x28, 0xb5, 0x2f, 0xfd, 0, 7 << 3])
        .repeat(block(0), blocks - 1)
        .bytes(block(1));
    packed(ZSTD, blocks << 14, zero, stream)
}

pub(super) fn zero(_row: u64, out: &mut Vec<u8>) {
    out.extend([0; 8]);
}

/// A frame whose window is as large as its header can say.
fn zstd_window(scale: &Scale) -> Adversary {
    let blocks = (scale.page_bytes >> 17).clamp(1, 8);
    let head = ((128u32 << 10) << 3 | 1 << 1).to_le_bytes();
    let last = ((128u32 << 10) << 3 | 1 << 1 | 1).to_le_bytes();
    let stream = Computed::new()
        .bytes(vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0xff])
        .repeat([&head[..3], &[0]].concat(), blocks - 1)
        .bytes([&last[..3], &[0]].concat());
    packed(ZSTD, blocks << 14, zero, stream)
}

/// A stream that begins as those of Brotli's large windows do.
fn brotli_window() -> Adversary {
    let stream = Computed::new().bytes(vec![0x11, 30, 0x03]).bytes(vec![0; 16]);
    let made = packed(craft::BROTLI, 1024, zero, stream);
    Adversary { expected: Expected::Error(Unsupported, "large window"), ..made }
}

/// Zeros: 64 of them take three bytes.
fn snappy_bomb(scale: &Scale) -> Adversary {
    let copies = (scale.page_bytes / 64).max(2) - 1;
    let mut head = Vec::new();
    craft::varint(&mut head, 64 * (copies + 1));
    // A literal of 64 bytes, and copies of them.
    head.extend([60 << 2, 63]);
    head.extend([0; 64]);
    let stream = Computed::new().bytes(head).repeat(vec![63 << 2 | 2, 64, 0], copies);
    packed(SNAPPY, 8 * (copies + 1), zero, stream)
}
