//! Bad nesting: levels, columns and schemas that cannot be, read as columns, as records and as arrays. Each is a typed error with
//! its place, in memory that the file's size justifies. What such files say when they are good stands in `bad_nesting`.

use std::sync::Arc;

use marquetry_base::{Bytes, ErrorKind, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical::{self, FILE};
use marquetry_conformance::craft::*;
use marquetry_conformance::hostile::Manner;
use marquetry_conformance::records::{array_sums, check_batch, field_sums};
use marquetry_parquet::batch::Layout;
use marquetry_parquet::read::{BatchReader, ReadOptions};
use marquetry_testing::memory;

use super::{PEAK_BYTES_MAX, PEAK_BYTES_PER_BYTE, check_error};

/// Files up to this size are read in every manner; larger ones, which are footers, in the kind one.
const EVERY_MANNER_FILE_BYTES_MAX: usize = 500_000;

const MANNERS: [Manner; 3] = [Manner::KIND, Manner::USUAL, Manner::DISORDERLY];

/// Reads a file in each manner as columns, as records and as arrays. What was wrong: of columns, and of records and arrays.
fn examine(name: &str, bytes: &Bytes) -> (Result<()>, Result<()>) {
    let mut found = Vec::new();
    let peak = memory::peak();
    let manners = if bytes.len() <= EVERY_MANNER_FILE_BYTES_MAX { MANNERS.len() } else { 1 };
    for (number, manner) in MANNERS.into_iter().enumerate().take(manners) {
        let layout = if number == 1 { Layout::Dense } else { Layout::Spaced };
        let options = ReadOptions { batch_rows: [8192, 2, 100][number], layout, ..ReadOptions::default() };
        let metadata = match canonical::metadata(bytes, manner) {
            Ok(metadata) => metadata,
            Err(error) => {
                found.push((Err(error.clone()), Err(error)));
                continue;
            }
        };
        let codecs = Arc::new(StandardCodecs::default());
        let columns =
            BatchReader::new(FILE, Arc::clone(&metadata), codecs, options.clone()).and_then(|mut reader| {
                canonical::read(&mut reader, bytes, manner, |batch| check_batch(&metadata.schema, &batch))
                    .map(drop)
            });
        let records = field_sums(bytes, &metadata, options.clone(), manner);
        let arrays = array_sums(bytes, &metadata, options, manner);
        match (&records, &arrays) {
            (Ok(records), Ok(arrays)) => assert_eq!(records, arrays, "{name}"),
            (Err(records), Err(arrays)) => assert_eq!(records.kind(), arrays.kind(), "{name}"),
            other => panic!("{name}: as records and as arrays: {other:?}"),
        }
        found.push((columns, records.map(drop)));
    }
    let peak = peak.bytes();
    let allowed = PEAK_BYTES_MAX + PEAK_BYTES_PER_BYTE * bytes.len();
    assert!(peak <= allowed, "{name}: {peak} bytes allocated for a file of {}", bytes.len());
    for (columns, records) in &found {
        columns.as_ref().err().into_iter().chain(records.as_ref().err()).for_each(check_error);
        let said = |result: &Result<()>| result.as_ref().err().map(|error| error.message().to_owned());
        assert_eq!((said(columns), said(records)), (said(&found[0].0), said(&found[0].1)), "{name}");
    }
    found.swap_remove(0)
}

/// Checks that the file is refused in every way with an error that begins so.
fn refused(name: &str, bytes: &Bytes, kind: ErrorKind, begins: &str) {
    let (columns, records) = examine(name, bytes);
    for result in [columns, records] {
        let error = result.expect_err(name);
        assert!(error.kind() == kind && error.message().starts_with(begins), "{name}: {error:?}");
    }
}

/// Checks that each column is right for itself, but they are not together; says so of this column and row.
fn disagree(name: &str, bytes: &Bytes, column: &str, row: u64) {
    let (columns, records) = examine(name, bytes);
    assert_eq!(columns, Ok(()), "{name}");
    let error = records.expect_err(name);
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{name}: {error:?}");
    let place = error.place();
    assert_eq!((place.column.as_deref(), place.row), (Some(column), Some(row)), "{name}: {error:?}");
}

/// `optional list of optional int32`: levels up to 3 and 1.
fn list_of(pages: impl IntoIterator<Item = Page>, rows: i64, entries: i64) -> Bytes {
    let elements = list("a", 1).into_iter().chain([leaf("element", 1, INT32)]);
    Table::nested(1, elements).group(rows, [Chunk::new(entries, pages)]).write()
}

/// Its levels of `[1, null], [3]`.
const REPETITION: &[u32] = &[0, 1, 0];
const DEFINITION: &[u32] = &[3, 2, 3];

fn streams() -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    (packed_run(REPETITION, 1), packed_run(DEFINITION, 2), plain_i32(&[1, 3]))
}

fn page_v2(repetition: &[u8], definition: &[u8], values: &[u8]) -> Page {
    let length = |bytes: &[u8]| V::I32(i32::try_from(bytes.len()).unwrap());
    Page::data_v2(3, 1, PLAIN, &[repetition, definition].concat(), values)
        .with_own(3, V::I32(2))
        .with_own(5, length(definition))
        .with_own(6, length(repetition))
}

#[test]
fn streams_of_levels_that_lie() {
    let (repetition, definition, values) = streams();
    let v1 = |parts: &[&[u8]]| Page::data(3, PLAIN, parts.concat());
    let (r, d, v) = (&*prefixed(&repetition), &*prefixed(&definition), &*values);
    let v2 = || page_v2(&repetition, &definition, &values);
    for good in [v1(&[r, d, v]), v2()] {
        assert_eq!(examine("good", &list_of([good], 2, 3)), (Ok(()), Ok(())));
    }
    let huge = [&u32::MAX.to_le_bytes()[..], &repetition].concat();
    let ends = "the page ends";
    let bad = [
        ("no levels at all", v1(&[]), ends),
        ("repetition levels alone", v1(&[r]), ends),
        ("a length of four bytes alone", v1(&[&r[..4]]), "runs of"),
        ("repetition levels beyond the page", v1(&[&huge, d, v]), "runs of 4294967295 bytes"),
        ("definition levels beyond the page", v1(&[r, &huge, v]), "runs of 4294967295 bytes"),
        ("no run of repetition levels", v1(&[&prefixed(&[]), d, v]), ends),
        ("no run of definition levels", v1(&[r, &prefixed(&[]), v]), ends),
        ("a run header without its levels", v1(&[&prefixed(&repetition[..1]), d, v]), ends),
        ("a run of no levels", v1(&[&prefixed(&[0, 0]), d, v]), "a run of no values"),
        ("a run header that does not end", v1(&[&prefixed(&[0xff; 12]), d, v]), ""),
        ("values that are too few", v1(&[r, d, &v[..4]]), ends),
        ("a part of a value", v1(&[r, d, &v[..7]]), ends),
        ("levels as deltas", v1(&[r, d, v]).with_own(3, V::I32(DELTA_BINARY_PACKED)), "levels encoded as"),
        ("levels as indices", v1(&[r, d, v]).with_own(4, V::I32(RLE_DICTIONARY)), "levels encoded as"),
        (
            "BIT_PACKED levels cut off",
            v1(&[]).with_own(3, V::I32(BIT_PACKED)).with_own(4, V::I32(BIT_PACKED)),
            ends,
        ),
        (
            "V2 levels longer than the page",
            v2().with_own(6, V::I32(1000)),
            "levels of 1003 bytes in a page of",
        ),
        (
            "V2 levels of two times 2 GiB",
            v2().with_own(5, V::I32(i32::MAX)).with_own(6, V::I32(i32::MAX)),
            "levels of 4294967294 bytes",
        ),
        (
            "V2 levels of a negative length",
            v2().with_own(5, V::I32(-1)),
            "a page header: a negative count or size",
        ),
        (
            "V2 repetition levels that are definition levels",
            v2().with_own(5, V::I32(0)).with_own(6, V::I32(4)),
            "",
        ),
        ("V2 without repetition levels", v2().with_own(6, V::I32(0)), ""),
        ("V2 of more nulls than entries", v2().with_own(2, V::I32(4)), "4 nulls among 3 values"),
    ];
    for (name, page, begins) in bad {
        refused(name, &list_of([page.clone()], 2, 3), ErrorKind::Corrupt, begins);
        // The same after a good page.
        refused(name, &list_of([v2(), page], 4, 6), ErrorKind::Corrupt, begins);
    }
    // A header's rows are not believed, for some writers put entries there: the levels know.
    let lies = "V2 of more rows than entries";
    let (columns, records) = examine(lies, &list_of([v2().with_own(3, V::I32(4))], 2, 3));
    assert_eq!((columns, records), (Ok(()), Ok(())), "{lies}");
}

#[test]
fn row_groups_that_begin_in_a_row() {
    let (repetition, definition, values) = streams();
    let good = || Chunk::new(3, [page_v2(&repetition, &definition, &values)]);
    let begins = packed_run(&[1, 0, 0], 1);
    let bad = Chunk::new(
        3,
        [Page::data(3, PLAIN, [prefixed(&begins), prefixed(&definition), values.clone()].concat())],
    );
    let elements: Vec<Struct> = list("a", 1).into_iter().chain([leaf("element", 1, INT32)]).collect();
    let table =
        |second: Chunk| Table::nested(1, elements.clone()).group(2, [good()]).group(2, [second]).write();
    assert_eq!(examine("good", &table(good())), (Ok(()), Ok(())));
    let bytes = table(bad);
    refused(
        "the second row group",
        &bytes,
        ErrorKind::Corrupt,
        "a column chunk that begins in the middle of a row",
    );
    let (_, records) = examine("the second row group", &bytes);
    let error = records.unwrap_err();
    assert_eq!((error.place().row_group, error.place().page), (Some(1), Some(0)), "{error:?}");
}

#[test]
fn maps_whose_keys_and_values_disagree() {
    let map = |key: (&[u32], &[u32]), value: (&[u32], &[u32])| {
        let mut outer = group("m", 1, 1);
        outer.set(6, V::I32(MAP));
        let elements = [outer, group("key_value", 2, 2), leaf("key", 0, INT32), leaf("value", 1, INT32)];
        let chunk = |(repetition, definition): (&[u32], &[u32]), max| {
            let there = definition.iter().filter(|&&level| level == max).count();
            let levels = [Levels { width: 1, levels: repetition }, Levels { width: 2, levels: definition }];
            let page = Page::nested(&levels, PLAIN, &plain_i32(&vec![7; there]));
            Chunk::new(i64::try_from(definition.len()).unwrap(), [page])
        };
        Table::nested(1, elements).group(2, [chunk(key, 2), chunk(value, 3)]).write()
    };
    let good = map((&[0, 1, 0], &[2, 2, 0]), (&[0, 1, 0], &[3, 2, 0]));
    assert_eq!(examine("good", &good), (Ok(()), Ok(())));
    let value = "m.key_value.value";
    disagree("a value too many", &map((&[0, 0], &[2, 0]), (&[0, 1, 0], &[3, 3, 0])), value, 0);
    disagree("a value too few", &map((&[0, 1, 0], &[2, 2, 0]), (&[0, 0], &[3, 0])), value, 0);
    disagree("an entry without a key", &map((&[0, 0], &[2, 1]), (&[0, 0], &[3, 3])), value, 1);
    disagree("null, or empty", &map((&[0, 0], &[2, 1]), (&[0, 0], &[3, 0])), value, 1);
}

#[test]
fn columns_that_disagree_far_behind() {
    // Two leaves of a list's structs, alike for 20,000 rows, of which the last says otherwise; and a flat column before them.
    const ROWS: u32 = 20_000;
    let mut elements = vec![leaf("flat", 0, INT32)];
    elements.extend(list("a", 1));
    elements.extend([group("element", 1, 2), leaf("x", 1, INT32), leaf("y", 1, INT32)]);
    let chunk = |last: u32| {
        let mut definition = vec![4; ROWS as usize - 1];
        definition.push(last);
        let there = definition.iter().filter(|&&level| level == 4).count();
        let levels =
            [Levels { width: 1, levels: &vec![0; ROWS as usize] }, Levels { width: 3, levels: &definition }];
        Chunk::new(ROWS.into(), [Page::nested(&levels, PLAIN, &plain_i32(&vec![5; there]))])
    };
    let flat = || {
        let values: Vec<i32> = (0..).take(ROWS as usize).collect();
        Chunk::new(ROWS.into(), [Page::data(ROWS.cast_signed(), PLAIN, plain_i32(&values))])
    };
    let file = |flat: Chunk, y: u32| {
        Table::nested(2, elements.clone()).group(ROWS.into(), [flat, chunk(4), chunk(y)]).write()
    };
    assert_eq!(examine("good", &file(flat(), 3)), (Ok(()), Ok(())));
    disagree("the last row", &file(flat(), 1), "a.list.element.y", (ROWS - 1).into());
    // The flat column has fewer rows than its row group, and so than the others.
    let mut short = flat();
    short.pages[0] = Page::data(ROWS.cast_signed() - 1, PLAIN, plain_i32(&vec![1; ROWS as usize - 1]));
    refused("a flat column of fewer rows", &file(short, 3), ErrorKind::Corrupt, "the column chunk ends");
}

/// A file of a schema and no row group; the elements are all there are, the root first.
fn schema_only(elements: Vec<Struct>) -> Bytes {
    let mut table = Table::new([]);
    table.footer.set(2, V::List(elements.into_iter().map(V::Struct).collect()));
    table.write()
}

fn root(children: i32) -> Struct {
    Struct::of([(4, V::text("schema")), (5, V::I32(children))])
}

#[test]
fn schemas_that_lie() {
    let x = || leaf("x", 0, INT32);
    let without = |mut element: Struct, field| {
        element.remove(field);
        element
    };
    let with = |mut element: Struct, field, value| {
        element.set(field, value);
        element
    };
    let lies = [
        ("no element", vec![], ErrorKind::Corrupt),
        ("a root that is a leaf", vec![without(with(root(0), 1, V::I32(INT32)), 5)], ErrorKind::Corrupt),
        ("a root of fewer children", vec![root(1), x(), x()], ErrorKind::Corrupt),
        ("a root of more children", vec![root(3), x(), x()], ErrorKind::Corrupt),
        ("a root of a negative number of children", vec![root(-1), x()], ErrorKind::Corrupt),
        ("a root of 2^31 children", vec![root(i32::MAX), x()], ErrorKind::Corrupt),
        ("a root of no children", vec![root(0), x()], ErrorKind::Corrupt),
        ("neither type nor children", vec![root(1), without(x(), 1)], ErrorKind::Corrupt),
        ("type and children", vec![root(1), with(x(), 5, V::I32(1)), x()], ErrorKind::Corrupt),
        ("a group that takes its sibling", vec![root(2), group("g", 0, 2), x(), x()], ErrorKind::Corrupt),
        ("an unknown repetition", vec![root(1), with(x(), 3, V::I32(7))], ErrorKind::Corrupt),
        ("an unknown physical type", vec![root(1), with(x(), 1, V::I32(99))], ErrorKind::Corrupt),
        (
            "a fixed length of -1",
            vec![root(1), with(leaf("f", 0, FIXED_LEN_BYTE_ARRAY), 2, V::I32(-1))],
            ErrorKind::Corrupt,
        ),
        ("no fixed length", vec![root(1), leaf("f", 0, FIXED_LEN_BYTE_ARRAY)], ErrorKind::Corrupt),
    ];
    for (name, elements, kind) in lies {
        refused(name, &schema_only(elements), kind, "");
    }
}

#[test]
fn deep_and_wide_schemas() {
    for repetition in [0, 1, 2] {
        // A million levels, honest and not.
        let mut deep = vec![root(1)];
        deep.resize_with(1_000_000, || group("g", repetition, 1));
        let cut = schema_only(deep.clone());
        deep.push(leaf("x", 0, INT32));
        let limit = "65 is more than the limit nesting of 64";
        refused("a million levels", &schema_only(deep), ErrorKind::LimitExceeded, limit);
        refused("a million levels without an end", &cut, ErrorKind::LimitExceeded, limit);
        // Each group claims two thousand million children.
        let mut greedy = vec![root(1)];
        greedy.resize_with(60, || group("g", repetition, i32::MAX));
        greedy.push(leaf("x", 0, INT32));
        refused("greedy groups", &schema_only(greedy), ErrorKind::Corrupt, "a schema that ends");
    }
    // A hundred thousand columns, each below eight groups.
    let mut wide = vec![root(100_000)];
    for _ in 0..100_000 {
        wide.extend((0..8).map(|_| group("g", 1, 1)));
        wide.push(leaf("x", 1, INT32));
    }
    assert_eq!(examine("wide", &schema_only(wide)), (Ok(()), Ok(())));
}
