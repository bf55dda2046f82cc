//! Structures that a search uses where there are no others, and those that it does without because they are corrupt.

use std::sync::Arc;

use marquetry_base::Bytes;
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical::{self, FILE};
use marquetry_conformance::craft::{
    BYTE_ARRAY, Chunk, Column, INT64, PLAIN, Page, RLE_DICTIONARY, Struct, Table, V, levels, packed_run,
    plain_bytes, plain_i64, prefixed,
};
use marquetry_conformance::hostile::{Manner, Random};
use marquetry_parquet::batch::{Batch, Layout};
use marquetry_parquet::find::{FindOptions, Report, RowFinder};
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::prune::{Comparison, Predicate, Ranges, Test};
use marquetry_parquet::write::{BloomOptions, ColumnOptions, WriteOptions};

use crate::found::{Done, check, found};
use crate::given::{self, Flavour};
use crate::rewritten::{plain, write};

const MANNERS: [Manner; 8] = [
    Manner::KIND,
    Manner::USUAL,
    Manner::DISORDERLY,
    Manner::KIND,
    Manner::ONE_BYTE,
    Manner::KIND,
    Manner::USUAL,
    Manner::KIND,
];

/// Searches for a predicate: the rows, and what came of it.
fn search(file: &Bytes, predicate: &Predicate, options: FindOptions) -> (Vec<usize>, Report) {
    let metadata = canonical::metadata(file, Manner::KIND).unwrap();
    search_in(file, &metadata, predicate, options)
}

fn search_in(
    file: &Bytes,
    metadata: &Arc<FileMetaData>,
    predicate: &Predicate,
    options: FindOptions,
) -> (Vec<usize>, Report) {
    let codecs = Arc::new(StandardCodecs::default());
    let mut finder = RowFinder::new(FILE, Arc::clone(metadata), codecs, predicate.clone(), options).unwrap();
    let rows = found(&mut finder, file, metadata, Manner::KIND).unwrap();
    (rows, *finder.report())
}

fn is(leaf: usize, key: i128) -> Predicate {
    Predicate::Test(Test::accepting(leaf, Ranges::of_keys(key, key)))
}

fn is_text(leaf: usize, text: &str) -> Predicate {
    Predicate::Test(Test::accepting(leaf, Ranges::of_bytes(Bytes::copy_from_slice(text.as_bytes()))))
}

/// A page's statistics, of PLAIN values; in the fields of old, or in new ones.
fn bounds(values: &[Vec<u8>], order: impl Fn(&[u8], &[u8]) -> std::cmp::Ordering, is_old: bool) -> Struct {
    let (min, max) = (values.iter().min_by(|a, b| order(a, b)), values.iter().max_by(|a, b| order(a, b)));
    let ids = if is_old { [2, 1] } else { [6, 5] };
    let both = ids.into_iter().zip([min, max]);
    Struct::of(both.filter_map(|(id, bound)| Some((id, V::Binary(bound?.clone())))))
}

/// A file whose pages have statistics in their headers, most of them, and no page index.
fn with_headers(random: &mut Random, is_new: bool) -> Bytes {
    const PAGES: usize = 12;
    let number = |bytes: &[u8]| i64::from_le_bytes(bytes.try_into().unwrap());
    let mut table = Table::new([
        Column::required("id", INT64),
        Column::optional("number", INT64),
        Column::optional("text", BYTE_ARRAY).with(6, V::I32(0)),
    ]);
    if is_new {
        let orders = (0..3).map(|_| V::Struct(Struct::of([(1, V::Struct(Struct::default()))])));
        table.footer.set(7, V::List(orders.collect()));
    }
    for group in 0..2 {
        let mut chunks = Vec::new();
        for column in 0..3 {
            let (mut pages, mut rows) = (Vec::new(), 0);
            for page in 0..PAGES {
                // Pages of the columns end at different rows.
                let count = if page + 1 == PAGES {
                    600 - rows
                } else {
                    30 + usize::try_from(random.below(20)).unwrap()
                };
                let base = i64::try_from(group * 600 + rows).unwrap();
                rows += count;
                let is_there: Vec<bool> = (0..count).map(|_| column == 0 || random.below(5) > 0).collect();
                let mut values: Vec<Vec<u8>> = Vec::new();
                for (at, _) in is_there.iter().enumerate().filter(|(_, there)| **there) {
                    let at = base + i64::try_from(at).unwrap();
                    values.push(match column {
                        0 => at.to_le_bytes().to_vec(),
                        1 => {
                            (i64::try_from(random.below(40)).unwrap() + base / 7 - 40).to_le_bytes().to_vec()
                        }
                        _ => format!("{:03}", base / 10 + i64::try_from(random.below(30)).unwrap())
                            .into_bytes(),
                    });
                }
                let order = |a: &[u8], b: &[u8]| match column {
                    2 => a.cmp(b),
                    _ => number(a).cmp(&number(b)),
                };
                let mut statistics = bounds(&values, order, !is_new);
                if random.below(3) > 0 {
                    let nulls = is_there.iter().filter(|there| !**there).count();
                    statistics.set(3, V::I64(i64::try_from(nulls).unwrap()));
                }
                let body = match column {
                    2 => plain_bytes(&values),
                    _ => values.concat(),
                };
                let (count, nulls) = (i32::try_from(count).unwrap(), count - values.len());
                let has_statistics = random.below(5) > 0;
                let of_levels = if column == 0 { Vec::new() } else { levels(&is_there) };
                pages.push(if random.below(2) == 0 {
                    let levels = if column == 0 { Vec::new() } else { prefixed(&of_levels) };
                    let page = Page::data(count, PLAIN, [levels, body].concat());
                    if has_statistics { page.with_own(5, V::Struct(statistics)) } else { page }
                } else {
                    let page = Page::data_v2(count, i32::try_from(nulls).unwrap(), PLAIN, &of_levels, &body);
                    if has_statistics { page.with_own(8, V::Struct(statistics)) } else { page }
                });
            }
            chunks.push(Chunk::new(600, pages));
        }
        table = table.group(600, chunks);
    }
    table.write()
}

#[test]
fn pages_are_judged_by_their_headers() {
    let mut random = Random(77);
    let mut done = Done::default();
    for number in 0..40 {
        let file = with_headers(&mut random, number % 2 == 0);
        check("headers", &file, 400 + number, &MANNERS, &mut done);
    }
    assert!(done.searches == 320 && done.by_headers > 500, "{} pages", done.by_headers);
    let file = with_headers(&mut random, true);
    let (rows, report) = search(&file, &is(0, 700), FindOptions::default());
    assert_eq!(rows, [700]);
    let pages = report.page_statistics;
    assert!(pages.pruned > 10 && pages.undecided > 0 && report.index.absent == 2, "{report:?}");
    let mut options = FindOptions::default();
    options.structures.statistics = false;
    let (rows, report) = search(&file, &is(0, 700), options);
    assert_eq!((rows, report.page_statistics.pruned), (vec![700], 0));
}

/// Values of pages that cannot match are not looked at: here they are no values at all.
#[test]
fn pages_that_are_ruled_out_are_not_decoded() {
    let bound = |value: i64| V::Binary(value.to_le_bytes().to_vec());
    let page = |first: i64, body: Vec<u8>| {
        let statistics = Struct::of([(1, bound(first + 9)), (2, bound(first))]);
        Page::data(10, PLAIN, body).with_own(5, V::Struct(statistics))
    };
    let good = |first: i64| page(first, plain_i64(&(first..first + 10).collect::<Vec<_>>()));
    let pages = [good(0), page(10, vec![1; 3]), good(20), page(30, Vec::new())];
    let file = Table::new([Column::required("id", INT64)]).group(40, [Chunk::new(40, pages)]).write();
    let (rows, report) = search(&file, &is(0, 25), FindOptions::default());
    assert_eq!((rows, report.page_statistics.pruned, report.page_statistics.undecided), (vec![25], 3, 1));
}

/// Chunks that have nothing but a dictionary, of every type.
#[test]
fn dictionaries_decide_where_nothing_else_does() {
    let mut done = Done::default();
    for (number, (name, physical_type)) in given::TYPES.into_iter().enumerate() {
        if name == "boolean" {
            continue;
        }
        for shape in ["required", "optional"] {
            let schema = given::schema(&[(name, physical_type)], &[shape]);
            let batches = [given::batch(&schema, 3000, Flavour::Few, Layout::Spaced, number as u64)];
            let options = WriteOptions {
                column: ColumnOptions { bounds: false, ..ColumnOptions::default() },
                page_rows: 200,
                row_group_rows: 1000,
                ..WriteOptions::default()
            };
            let file = write(&schema, &batches, options, Manner::KIND).unwrap().object(FILE);
            check(name, &file, 90 + number as u64, &MANNERS, &mut done);
        }
    }
    assert!(done.by_dictionary > 20, "{} row groups", done.by_dictionary);
}

/// Words in no order: bounds of pages say nothing, the dictionary says all.
#[test]
fn a_dictionary_lists_every_value() {
    let entries: Vec<String> = (0..50).map(|at| format!("word{:02}", at * 2)).collect();
    let indices: Vec<u32> = (0..5000).map(|at| at * 7 % 50).collect();
    let chunk = || {
        let page = |part: &[u32]| Page::data(1000, RLE_DICTIONARY, [vec![6], packed_run(part, 6)].concat());
        let pages = indices.chunks(1000).map(page);
        let dictionary = Page::dictionary(50, plain_bytes(&entries));
        Chunk::new(5000, std::iter::once(dictionary).chain(pages))
    };
    let columns = [Column::required("word", BYTE_ARRAY).with(6, V::I32(0))];
    let file = Table::new(columns).group(5000, [chunk()]).group(5000, [chunk()]).write();
    let find = |predicate: &Predicate| search(&file, predicate, FindOptions::default());
    let (rows, report) = find(&is_text(0, "word01"));
    assert_eq!((rows.len(), report.dictionary.pruned, report.tested), (0, 2, 0));
    // The two dictionaries, and not a page.
    assert!(report.bytes < 1500 && file.len() > 6000, "{} bytes of {}", report.bytes, file.len());
    let (rows, report) = find(&is_text(0, "word01").not());
    assert_eq!((rows.len(), report.dictionary.pruned, report.tested), (10_000, 2, 0));
    let (rows, report) = find(&is_text(0, "word02"));
    assert_eq!((rows.len(), report.dictionary.undecided, report.tested), (200, 2, 10_000));
    let prefix = |text: &'static str| {
        Predicate::Test(Test::accepting(0, Ranges::with_prefix(Bytes::from_static(text.as_bytes()))))
    };
    assert_eq!(find(&prefix("word")).1.dictionary.pruned, 2);
    assert_eq!(find(&prefix("wore")).1.dictionary.pruned, 2);
    assert_eq!(find(&prefix("word1")).0.len(), 1000);
    let mut options = FindOptions::default();
    options.structures.dictionary = false;
    let (rows, report) = search(&file, &is_text(0, "word01"), options);
    assert_eq!((rows.len(), report.dictionary, report.tested), (0, Default::default(), 10_000));
}

/// Ten thousand numbers, with indexes and Bloom filters.
fn numbers() -> Bytes {
    let schema = given::flat(&[INT64]);
    let ids: Vec<i64> = (0..10_000).map(|at| at * 2).collect();
    let column = ColumnOptions { bloom: Some(BloomOptions::default()), ..plain() };
    let options = WriteOptions { column, page_rows: 100, row_group_rows: 5000, ..WriteOptions::default() };
    let batches = [Batch::of_values([ids.into()]).unwrap()];
    write(&schema, &batches, options, Manner::KIND).unwrap().object(FILE)
}

#[test]
fn what_is_corrupt_and_dispensable_is_not_used() {
    let file = numbers();
    let metadata = canonical::metadata(&file, Manner::KIND).unwrap();
    let chunk = &metadata.row_groups[0].columns[0];
    let index = |(offset, _): (u64, u32)| usize::try_from(offset).unwrap();
    let (bloom, _) = chunk.bloom_filter.unwrap();
    let places = [
        (index(chunk.column_index.unwrap()), true),
        (index(chunk.offset_index.unwrap()), true),
        (usize::try_from(bloom).unwrap(), false),
    ];
    for (at, is_index) in places {
        let mut broken = file.to_vec();
        broken[at..at + 12].fill(0xff);
        let broken = Bytes::from(broken);
        for (key, expected) in [(4242, vec![2121]), (4243, vec![]), (12_000, vec![6000])] {
            let (rows, report) = search(&broken, &is(0, key), FindOptions::default());
            assert_eq!(rows, expected, "{key}");
            let distrusted = [report.bloom.distrusted, report.index.distrusted];
            let met = u64::from(key < 10_000);
            assert_eq!(
                distrusted,
                if is_index && !expected.is_empty() {
                    [0, met]
                } else if is_index {
                    [0, 0]
                } else {
                    [met, 0]
                }
            );
        }
        // And it is not asked again.
        let codecs = Arc::new(StandardCodecs::default());
        let mut finder =
            RowFinder::new(FILE, Arc::clone(&metadata), codecs, is(0, 4242), FindOptions::default()).unwrap();
        for _ in 0..2 {
            assert_eq!(found(&mut finder, &broken, &metadata, Manner::USUAL).unwrap(), [2121]);
            let report = *finder.report();
            assert_eq!(report.bloom.distrusted + report.index.distrusted, 1);
            finder.start(is(0, 4242)).unwrap();
        }
    }
    // What says where data are is corrupt data.
    let mut broken = file.to_vec();
    let data = usize::try_from(chunk.data_page_offset).unwrap();
    broken[data..data + 8].fill(0xff);
    let mut options = FindOptions::default();
    options.structures.index = false;
    let codecs = Arc::new(StandardCodecs::default());
    let mut finder = RowFinder::new(FILE, Arc::clone(&metadata), codecs, is(0, 4242), options).unwrap();
    assert!(found(&mut finder, &Bytes::from(broken), &metadata, Manner::KIND).is_err());
}

/// An index whose pages are where others are: what is read with it is wrong, which is noticed, and read again without it.
#[test]
fn an_index_that_contradicts_pages_is_not_used() {
    let place = |offset: usize, bytes: usize, row: i64| {
        let long = |value: usize| i64::try_from(value).unwrap();
        let fields =
            [(1, V::I64(long(offset))), (2, V::I32(i32::try_from(bytes).unwrap())), (3, V::I64(row))];
        V::Struct(Struct::of(fields))
    };
    let pages: Vec<Page> = [30_i64, 10, 20]
        .iter()
        .scan(0, |first, count| {
            let values: Vec<i64> = (*first..*first + count).collect();
            *first += count;
            Some(Page::data(i32::try_from(*count).unwrap(), PLAIN, plain_i64(&values)))
        })
        .collect();
    let sizes: Vec<usize> = pages.iter().map(|page| page.header.write().len() + page.body.len()).collect();
    let offsets = [4, 4 + sizes[0], 4 + sizes[0] + sizes[1]];
    // The second page begins with row 30, not 20.
    let rows = [0, 20, 40];
    let places = (0..3).map(|at| place(offsets[at], sizes[at], rows[at])).collect();
    let bound =
        |values: [i64; 3]| V::List(values.iter().map(|it| V::Binary(it.to_le_bytes().to_vec())).collect());
    let column_index = Struct::of([
        (1, V::List(vec![V::Bool(false), V::Bool(false), V::Bool(false)])),
        (2, bound([0, 30, 40])),
        (3, bound([29, 39, 59])),
        (4, V::I32(1)),
    ]);
    let chunk = Chunk::new(60, pages).indexed(Struct::of([(1, V::List(places))]), column_index);
    let mut table = Table::new([Column::required("id", INT64)]).group(60, [chunk]);
    table.footer.set(7, V::List(vec![V::Struct(Struct::of([(1, V::Struct(Struct::default()))]))]));
    let file = table.write();
    for key in [35, 33] {
        let (rows, report) = search(&file, &is(0, key), FindOptions::default());
        assert_eq!((rows, report.index.distrusted), (vec![usize::try_from(key).unwrap()], 1), "{report:?}");
    }
}

/// Thousands of alternatives that each ask a Bloom filter take as many times longer as there are more of them, and not the square.
#[test]
fn many_alternatives_take_linear_time() {
    let file = numbers();
    let metadata = canonical::metadata(&file, Manner::KIND).unwrap();
    let units = |count: i128| {
        // None of them is there, and each is a test of its own.
        let predicate = Predicate::Or((0..count).map(|at| is(0, 4 * at + 1)).collect());
        let codecs = Arc::new(StandardCodecs::default());
        let mut options = FindOptions::default();
        options.structures.index = false;
        let mut finder = RowFinder::new(FILE, Arc::clone(&metadata), codecs, predicate, options).unwrap();
        let mut spent = 0;
        let report = marquetry_conformance::hostile::run(
            &mut marquetry_conformance::finding::Runs(&mut finder),
            FILE,
            &file,
            Manner { budget: 100_000, ..Manner::KIND },
            |_| Ok(()),
        );
        spent += report.unwrap().units;
        assert!(finder.report().bloom.pruned + finder.report().bloom.undecided > 0);
        spent
    };
    let (few, many) = (units(200), units(3200));
    assert!(many < 40 * few, "{few} units for 200, {many} for 3200");
    // Numbers in a set are one test.
    let set = Ranges::union((0..300).map(|at| Ranges::of_keys(4 * at + 1, 4 * at + 1)), Comparison::Number);
    let (rows, _) =
        search_in(&file, &metadata, &Predicate::Test(Test::accepting(0, set)), FindOptions::default());
    assert_eq!(rows.len(), 0);
}
