//! Files whose bytes are few or plain, and which are work all the same: what codecs, pages, schemas and metadata can ask of a reader.

use marquetry_base::ErrorKind::{Corrupt, LimitExceeded};
use marquetry_base::Limits;
use marquetry_base::cast::{u64_of, usize_of};

use super::files::{
    LARGE, Make, all_x, chunk, end, file, footer, i32_of, i64_of, no_rows, one_column, packed, root, zero,
};
use super::streams::Values;
use super::{Adversary, Computed, Expected, Scale, compress};
use crate::craft::{self, BROTLI, Column, GZIP, Levels, Page, SNAPPY, Struct, UNCOMPRESSED, V, ZSTD};

#[path = "../../../../crates/codecs/tests/pages/encoders/brotli_bits.rs"]
#[allow(dead_code, reason = "shared with the tests of the codecs")]
mod brotli_bits;
#[path = "../../../../crates/codecs/tests/pages/encoders/zstd_bits.rs"]
#[allow(dead_code, reason = "shared with the tests of the codecs")]
mod zstd_bits;

/// See [`super::names`].
pub(super) const FILES: &[(&str, Make)] = &[
    ("zstd/far_matches", zstd_far),
    ("zstd/tables", zstd_tables),
    ("brotli/far_copies", brotli_far),
    ("brotli/metadata", brotli_metadata),
    ("split/fixed_512", split),
    ("pages/one_delta", |scale| one_value_pages(scale, UNCOMPRESSED, &delta_page())),
    ("pages/one_delta_string", |scale| one_value_pages(scale, UNCOMPRESSED, &delta_string_page())),
    ("pages/one_index", one_index_pages),
    ("pages/one_nested", |scale| nested_pages(scale, &nested_page())),
    ("pages/one_nested_v2", |scale| nested_pages(scale, &nested_v2_page())),
    ("pages/one_snappy", |scale| one_value_pages(scale, SNAPPY, &plain_page(SNAPPY))),
    ("pages/one_gzip", |scale| one_value_pages(scale, GZIP, &plain_page(GZIP))),
    ("pages/one_zstd", |scale| one_value_pages(scale, ZSTD, &plain_page(ZSTD))),
    ("pages/one_brotli", |scale| one_value_pages(scale, BROTLI, &plain_page(BROTLI))),
    ("pages/unknown", |scale| unknown_pages(scale.pages, 0)),
    ("pages/unknown_long", |scale| unknown_pages(1, scale.string_bytes)),
    ("dictionary/one_string", one_string_dictionary),
    ("dictionary/of_60_columns", |_| shared_dictionary(60)),
    ("columns/one_chunk", |scale| one_chunk(scale.columns / 10)),
    ("row/of_runs", |_| endless_row()),
    ("footer/long_paths", |scale| long_paths(scale.columns.min(4_000))),
    ("footer/statistics", footer_statistics),
    ("footer/histograms", |scale| footer_histograms(scale, &[0])),
    ("footer/varints", |scale| footer_histograms(scale, &VARINT)),
    ("index/pages", page_index),
    ("index/histograms", |scale| index_histograms(scale, &[0])),
    ("index/varints", |scale| index_histograms(scale, &VARINT)),
];

/// The longest number.
const VARINT: [u8; 10] = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];

fn random() -> impl FnMut() -> u64 {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

/// Zeros: half of them in few bytes, and then matches of three, each from another place far back: at every scale so far
/// that a block takes the C library long, and is not left to it.
fn zstd_far(scale: &Scale) -> Adversary {
    let block_bytes = u64_of(zstd_bits::BLOCK_BYTES);
    let history = (scale.page_bytes / 2).clamp(4 << 20, 64 << 20) / block_bytes * block_bytes;
    let log = u8::try_from(history.ilog2() - 2).expect("a logarithm");
    let mut random = random();
    // As many as come to values of eight bytes.
    let count = zstd_bits::matches_max(log) / 8 * 8;
    let distances: Vec<u64> = (0..count).map(|_| random()).collect();
    let blocks = (scale.page_bytes / 2 / block_bytes).max(1);
    let stream = Computed::new()
        .bytes(zstd_bits::frame(log + 3))
        .repeat(zstd_bits::run(0), history / block_bytes)
        .repeat(zstd_bits::matches(log, &distances), blocks)
        .bytes(zstd_bits::END.to_vec());
    // A window, and what its last block needs.
    let made = packed(ZSTD, (history + blocks * 3 * u64_of(count)) / 8, zero, stream);
    made.holding((8 << log) + (1 << 20))
}

/// Zeros: blocks of four bytes, each with a Huffman tree and three tables of its own.
fn zstd_tables(scale: &Scale) -> Adversary {
    let blocks = scale.page_bytes / 64 * 2;
    let stream = Computed::new()
        .bytes(zstd_bits::frame(17))
        .bytes(zstd_bits::raw(&[0; 16]))
        .repeat(zstd_bits::tables(1), blocks)
        .bytes(zstd_bits::END.to_vec());
    packed(ZSTD, (16 + 4 * blocks) / 8, zero, stream)
}

/// Copies of two bytes, each from another place far back.
fn brotli_far(scale: &Scale) -> Adversary {
    const STORED_BYTES: usize = 4 << 10;
    let log = usize_of(scale.page_bytes / 2).expect("small").min(12 << 20).ilog2() - 3;
    let history = 6usize << log;
    let copies = usize_of(scale.page_bytes / 4).expect("small").min(1 << 22);
    let mut random = random();
    let distances: Vec<u64> = (0..copies).map(|_| random()).collect();
    let mut bits = brotli_bits::Bits::stream();
    bits.stored(&[b'x'; STORED_BYTES]);
    // Copies that take no bits.
    bits.metablock(history - STORED_BYTES, 2);
    bits.far(log, &distances);
    packed(BROTLI, u64_of(history + 2 * copies) / 8, all_x, Computed::new().bytes(bits.finish()))
}

/// Metadata, empty and of one byte by turns, and then a value.
fn brotli_metadata(scale: &Scale) -> Adversary {
    let mut unit = brotli_bits::Bits::default();
    unit.metadata();
    unit.metadata_byte();
    // The stream's head has four bits; what begins with it ends at a byte.
    let mut head = brotli_bits::Bits::stream();
    head.metadata();
    let mut tail = brotli_bits::Bits::default();
    tail.stored(&[b'x'; 8]);
    let stream =
        Computed::new().bytes(head.bytes).repeat(unit.bytes, scale.page_bytes / 8).bytes(tail.finish());
    packed(BROTLI, 1, all_x, stream)
}

/// BYTE_STREAM_SPLIT of wide values, in segments.
fn split(scale: &Scale) -> Adversary {
    const WIDTH: i32 = 512;
    let count = (scale.page_bytes / 512).max(8);
    let values = Values {
        physical_type: craft::FIXED_LEN_BYTE_ARRAY,
        type_length: Some(WIDTH),
        encoding: craft::BYTE_STREAM_SPLIT,
        count,
        body: Computed::new().repeat(vec![b'x'; 512], count),
        dictionary: None,
        value: all_x,
        is_one_stream: false,
    };
    one_column(&values, SNAPPY, &values.body).within(LARGE).holding(2 * scale.page_bytes)
}

const ONE: [u8; 8] = *b"xxxxxxxx";

fn plain_page(codec: i32) -> Page {
    if codec != BROTLI {
        return Page::data(1, craft::PLAIN, ONE.to_vec()).compressed(codec);
    }
    let body = compress(BROTLI, &Computed::new().bytes(ONE.to_vec()));
    let body = body.read(0..body.len()).to_vec();
    let uncompressed = V::I32(i32_of(u64_of(ONE.len())));
    Page::data(1, craft::PLAIN, body).with(2, uncompressed)
}

fn delta_page() -> Page {
    Page::data(1, craft::DELTA_BINARY_PACKED, craft::delta(&[i64::from_le_bytes(ONE)], 128, 4))
}

fn delta_string_page() -> Page {
    Page::data(1, craft::DELTA_BYTE_ARRAY, craft::delta_byte_array(&[ONE]))
}

fn nested_levels() -> [[u32; 1]; 2] {
    [[0], [1]]
}

fn nested_page() -> Page {
    let [repetition, definition] = nested_levels();
    let levels = [Levels { width: 1, levels: &repetition }, Levels { width: 1, levels: &definition }];
    Page::nested(&levels, craft::PLAIN, &ONE)
}

fn nested_v2_page() -> Page {
    let [repetition, definition] = nested_levels();
    let [repetition, definition] =
        [Levels { width: 1, levels: &repetition }, Levels { width: 1, levels: &definition }];
    Page::nested_v2(&repetition, &definition, 1, &ONE)
}

/// A page as often as the scale says, a tenth of what has the least to do.
fn pages_of(scale: &Scale, page: &Page) -> (u64, Computed) {
    let count = (scale.pages / 10).max(1);
    let bytes = [page.header.write(), page.body.clone()].concat();
    (count, Computed::new().repeat(bytes, count))
}

/// Pages of one value each.
fn one_value_pages(scale: &Scale, codec: i32, page: &Page) -> Adversary {
    let (count, pages) = pages_of(scale, page);
    let strings = page.header.0.get(&5).is_some_and(
        |own| matches!(own, V::Struct(own) if own.0.get(&2) == Some(&V::I32(craft::DELTA_BYTE_ARRAY))),
    );
    let column = Column::required("a", if strings { craft::BYTE_ARRAY } else { craft::INT64 });
    Adversary::new(file(column, codec, count, 0, pages), Expected::Rows(count, Some(all_x)))
}

/// The same of an index into a dictionary.
fn one_index_pages(scale: &Scale) -> Adversary {
    let dictionary = Page::dictionary(1, ONE.to_vec());
    let dictionary = Computed::new().bytes([dictionary.header.write(), dictionary.body].concat());
    let body = [&[1][..], &craft::repeated_run(1, 0, 1)].concat();
    let (count, pages) = pages_of(scale, &Page::data(1, craft::RLE_DICTIONARY, body));
    let dictionary_bytes = dictionary.len();
    let file = file(
        Column::required("a", craft::INT64),
        UNCOMPRESSED,
        count,
        dictionary_bytes,
        dictionary.then(pages),
    );
    Adversary::new(file, Expected::Rows(count, Some(all_x)))
}

/// The same of a list of one element.
fn nested_pages(scale: &Scale, page: &Page) -> Adversary {
    let (count, pages) = pages_of(scale, page);
    list_file(count, count, UNCOMPRESSED, 0, pages, craft::INT64, Expected::Rows(count, Some(all_x)))
}

/// A file of one column, a list whose elements are never null.
fn list_file(
    entries: u64,
    rows: u64,
    codec: i32,
    dictionary_bytes: u64,
    pages: Computed,
    physical_type: i32,
    expected: Expected,
) -> Adversary {
    let [outer, middle] = craft::list("a", 0);
    let element = craft::leaf("element", 0, physical_type);
    let column = Column { element: element.clone() };
    let chunk = chunk(&column, codec, entries, dictionary_bytes, pages.len());
    let group = Struct::of([(1, V::List(vec![chunk])), (2, V::I64(0)), (3, V::I64(i64_of(rows)))]);
    let schema = [root(1), outer, middle, element].map(V::Struct).to_vec();
    let footer = footer(schema, vec![V::Struct(group)], rows).write();
    Adversary::new(end(start().then(pages), Computed::new().bytes(footer)), expected)
}

fn start() -> Computed {
    Computed::new().bytes(&b"PAR1"[..])
}

/// Pages of a type that nobody knows, of so many bytes each, and then a page of one value.
fn unknown_pages(count: u64, bytes: u64) -> Adversary {
    const NOBODY: i32 = 9;
    let mut page = Page::other(NOBODY, Vec::new());
    page.header.set(2, V::I32(i32_of(bytes))).set(3, V::I32(i32_of(bytes)));
    let known = plain_page(UNCOMPRESSED);
    let mut pages = Computed::new();
    if bytes == 0 {
        pages = pages.repeat(page.header.write(), count);
    } else {
        for _ in 0..count {
            let rest = vec![b'?'; usize_of(bytes & 1023).expect("small")];
            pages = pages.bytes(page.header.write()).repeat(vec![b'?'; 1 << 10], bytes >> 10).bytes(rest);
        }
    }
    let pages = pages.bytes([known.header.write(), known.body].concat());
    let file = file(Column::required("a", craft::INT64), UNCOMPRESSED, 1, 0, pages);
    Adversary::new(file, Expected::Rows(1, Some(all_x))).within(LARGE)
}

/// A dictionary of one long string.
fn one_string_dictionary(scale: &Scale) -> Adversary {
    let bytes = scale.dictionary_bytes & !1023;
    let length = u32::try_from(bytes).expect("32 bits").to_le_bytes().to_vec();
    let values = Values {
        physical_type: craft::BYTE_ARRAY,
        type_length: None,
        encoding: craft::RLE_DICTIONARY,
        count: 3,
        body: Computed::new().bytes([&[1][..], &craft::repeated_run(3, 0, 1)].concat()),
        dictionary: Some((1, Computed::new().bytes(length).repeat(vec![b'x'; 1 << 10], bytes >> 10))),
        value: all_x,
        is_one_stream: true,
    };
    one_column(&values, UNCOMPRESSED, &values.body).within(LARGE).holding(4 * bytes)
}

/// A file of columns that all have the same bytes for their chunk.
fn same_chunks(columns: u64, codec: i32, rows: u64, dictionary_bytes: u64, pages: Computed) -> Computed {
    let columns: Vec<Column> =
        (0..columns).map(|number| Column::required(&format!("c{number}"), craft::INT64)).collect();
    let chunks =
        columns.iter().map(|column| chunk(column, codec, rows, dictionary_bytes, pages.len())).collect();
    let group = Struct::of([(1, V::List(chunks)), (2, V::I64(0)), (3, V::I64(i64_of(rows)))]);
    let schema = std::iter::once(V::Struct(root(u64_of(columns.len()))))
        .chain(columns.into_iter().map(|column| V::Struct(column.element)))
        .collect();
    end(start().then(pages), Computed::new().bytes(footer(schema, vec![V::Struct(group)], rows).write()))
}

/// A compressed page of zeros.
fn zeros(mut page: Page, bytes: u64) -> Computed {
    let plain = Computed::new().repeat(vec![0; 1 << 10], bytes >> 10);
    let packed = compress(ZSTD, &plain);
    page.header.set(2, V::I32(i32_of(plain.len()))).set(3, V::I32(i32_of(packed.len())));
    Computed::new().bytes(page.header.write()).then(packed)
}

/// Columns that share a dictionary, which each of them decodes for itself.
fn shared_dictionary(columns: u64) -> Adversary {
    const BYTES: u64 = 8 << 20;
    let dictionary = zeros(Page::dictionary(i32_of(BYTES / 8), Vec::new()), BYTES);
    let dictionary_bytes = dictionary.len();
    let body = [&[1][..], &craft::repeated_run(1, 0, 1)].concat();
    let body = Page::data(1, craft::RLE_DICTIONARY, body).compressed(ZSTD);
    let pages = dictionary.bytes([body.header.write(), body.body].concat());
    let file = same_chunks(columns, ZSTD, 1, dictionary_bytes, pages);
    let (_, most) = Limits::DEFAULT.total_of(file.len(), columns);
    Adversary::new(file, Expected::Error(LimitExceeded, "expansion")).holding(most)
}

/// Columns that share a chunk, of which each has a page: some thousand of them are more than so small a file may take.
fn one_chunk(columns: u64) -> Adversary {
    const BYTES: u64 = 256 << 10;
    let pages = zeros(Page::data(i32_of(BYTES / 8), craft::PLAIN, Vec::new()), BYTES);
    let file = same_chunks(columns, ZSTD, BYTES / 8, 0, pages);
    let (_, most) = Limits::DEFAULT.total_of(file.len(), columns);
    let expected = match columns * BYTES > most {
        true => Expected::Error(LimitExceeded, "expansion"),
        false => Expected::Rows(BYTES / 8, None),
    };
    // Windows and pages, and batches beside them.
    Adversary::new(file, expected).holding((columns * 2 * BYTES).min(most))
}

/// A list of as many elements as a page can have, all of them runs.
fn endless_row() -> Adversary {
    let entries = i32::MAX as u64;
    let repetition = [craft::repeated_run(1, 0, 1), craft::repeated_run(entries - 1, 1, 1)].concat();
    let levels = [repetition, craft::repeated_run(entries, 1, 1)].map(|levels| craft::prefixed(&levels));
    let body = [levels.concat(), vec![1], craft::repeated_run(entries, 0, 1)].concat();
    let dictionary = Page::dictionary(1, ONE.to_vec());
    let data = Page::data(i32_of(entries), craft::RLE_DICTIONARY, body);
    let dictionary = [dictionary.header.write(), dictionary.body].concat();
    let dictionary_bytes = u64_of(dictionary.len());
    let pages = Computed::new().bytes([dictionary, data.header.write(), data.body].concat());
    let expected = Expected::Error(LimitExceeded, "expansion");
    let made = list_file(entries, 1, UNCOMPRESSED, dictionary_bytes, pages, craft::INT64, expected);
    let (_, most) = Limits::DEFAULT.total_of(made.file.len(), 1);
    made.holding(most)
}

/// Leaves below groups of long names.
fn long_paths(leaves: u64) -> Adversary {
    const GROUPS: u64 = 60;
    let groups = (0..GROUPS).map(|number| {
        let children = if number + 1 == GROUPS { i32_of(leaves) } else { 1 };
        V::Struct(craft::group(&"g".repeat(250), 1, children))
    });
    let elements = (0..leaves).map(|number| V::Struct(craft::leaf(&format!("l{number}"), 1, craft::INT32)));
    let schema = std::iter::once(V::Struct(root(1))).chain(groups).chain(elements).collect();
    let footer = footer(schema, Vec::new(), 0).write();
    Adversary::new(end(start(), Computed::new().bytes(footer)), Expected::Rows(0, None))
        .holding(leaves * 8192)
}

/// The footer of a row group without rows, of one column whose metadata has one more field, at the end.
fn footer_with(field: Computed) -> Adversary {
    let column = Column::required("a", craft::INT32);
    let V::Struct(outer) = chunk(&column, UNCOMPRESSED, 0, 0, 0) else {
        unreachable!("a chunk is a structure")
    };
    let Some(V::Struct(metadata)) = outer.0.get(&3) else { unreachable!("a chunk has metadata") };
    let mut metadata = metadata.write();
    metadata.pop();
    // Version, schema, rows; the list of row groups; the list of chunks; the chunk's first field and its metadata.
    let mut head = Struct::of([(1, V::I32(2)), (2, V::List(no_rows())), (3, V::I64(0))]).write();
    head.pop();
    head.extend([1 << 4 | 9, 0x1c, 1 << 4 | 9, 0x1c, 2 << 4 | 6, 0, 1 << 4 | 12]);
    let tail = [&[0, 0][..], &[1 << 4 | 6, 0, 1 << 4 | 6, 0, 0], &[0]].concat();
    let footer = Computed::new().bytes(head).bytes(metadata).then(field).bytes(tail);
    Adversary::new(end(start(), footer), Expected::Rows(0, None)).within(LARGE)
}

/// Bounds of many bytes.
fn footer_statistics(scale: &Scale) -> Adversary {
    let bytes = scale.string_bytes.min(100_000_000);
    let bound = |head: u8| {
        let mut head = vec![head];
        craft::varint(&mut head, bytes);
        Computed::new().bytes(head).repeat(&b"b"[..], bytes)
    };
    // Field 12 after field 9; in it, fields 5 and 6.
    let statistics = Computed::new().bytes(vec![3 << 4 | 12]);
    footer_with(statistics.then(bound(0x58)).then(bound(0x18)).bytes(vec![0])).holding(4 * bytes)
}

/// Counts of levels, as many as a structure may have of this length.
fn footer_histograms(scale: &Scale, count: &[u8]) -> Adversary {
    let counts = (scale.entries * 5).min((Limits::DEFAULT.structure_bytes - 1024) / u64_of(count.len()));
    let mut head = vec![7 << 4 | 12, 2 << 4 | 9, 0xf6];
    craft::varint(&mut head, counts);
    let field = Computed::new().bytes(head).repeat(count.to_vec(), counts).bytes(vec![0]);
    footer_with(field)
}

/// A file of one-value pages, as many as the index says, and the index.
fn with_index(pages: u64, offsets: Computed, bounds: Computed, expected: Expected) -> Adversary {
    let page = plain_page(UNCOMPRESSED);
    let bytes = [page.header.write(), page.body].concat();
    let data = Computed::new().repeat(bytes, pages);
    let column = Column::required("a", craft::INT64);
    let mut chunk = chunk(&column, UNCOMPRESSED, pages, 0, data.len());
    let V::Struct(outer) = &mut chunk else { unreachable!("a chunk is a structure") };
    let at = 4 + data.len();
    let place = |start: u64, index: &Computed| (V::I64(i64_of(start)), V::I32(i32_of(index.len())));
    let ((offset, length), (bounds_offset, bounds_length)) =
        (place(at, &offsets), place(at + offsets.len(), &bounds));
    outer.set(4, offset).set(5, length).set(6, bounds_offset).set(7, bounds_length);
    let group = Struct::of([(1, V::List(vec![chunk])), (2, V::I64(0)), (3, V::I64(i64_of(pages)))]);
    let schema = vec![V::Struct(root(1)), V::Struct(column.element)];
    let footer = Computed::new().bytes(footer(schema, vec![V::Struct(group)], pages).write());
    let file = end(start().then(data).then(offsets).then(bounds), footer);
    let limits = Limits { page_index_bytes: 1 << 30, ..LARGE };
    Adversary::new(file, expected).within(limits).holding(pages * 256)
}

/// An offset index of pages of one value.
fn offsets(pages: u64) -> Computed {
    let page = plain_page(UNCOMPRESSED);
    let bytes = u64_of(page.header.write().len() + page.body.len());
    let mut out = vec![1 << 4 | 9, 0xfc];
    craft::varint(&mut out, pages);
    for number in 0..pages {
        let location = [
            (1, V::I64(i64_of(4 + number * bytes))),
            (2, V::I32(i32_of(bytes))),
            (3, V::I64(i64_of(number))),
        ];
        out.extend(Struct::of(location).write());
    }
    out.push(0);
    Computed::new().bytes(out)
}

/// A list that repeats an element, as a field after the one before.
fn repeated(kind: u8, element: &[u8], count: u64) -> Computed {
    let mut head = vec![1 << 4 | 9, 0xf0 | kind];
    craft::varint(&mut head, count);
    Computed::new().bytes(head).repeat(element.to_vec(), count)
}

/// A column index without its end: null pages, bounds of one byte, unordered.
fn bounds(pages: u64) -> Computed {
    let bound = || repeated(8, &[1, b'x'], pages);
    repeated(1, &[2], pages).then(bound()).then(bound()).bytes(vec![1 << 4 | 5, 0])
}

fn page_index(scale: &Scale) -> Adversary {
    let pages = (scale.pages / 5).max(1);
    // And counts of nulls.
    let column_index = bounds(pages).then(repeated(6, &[0], pages)).bytes(vec![0]);
    with_index(pages, offsets(pages), column_index, Expected::Rows(pages, Some(all_x)))
}

/// A column index of one page, with many counts of levels.
fn index_histograms(scale: &Scale, count: &[u8]) -> Adversary {
    let counts = scale.entries * 5;
    let column_index = bounds(1).then(repeated(6, &[0], 1)).then(repeated(6, count, counts)).bytes(vec![0]);
    let expected = Expected::Error(Corrupt, "counts of repetition levels");
    with_index(1, offsets(1), column_index, expected).holding(32 * counts)
}
