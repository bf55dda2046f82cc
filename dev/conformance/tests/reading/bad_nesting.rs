//! Bad nesting: levels that cannot be, columns that disagree, schemas that lie: a typed error with its place, as columns or as
//! records; and what is legal but rare, read right.

use std::sync::Arc;

use marquetry_base::{Bytes, Error, ErrorKind, Limits, Result};
use marquetry_conformance::canonical::{self, FILE};
use marquetry_conformance::craft::*;
use marquetry_conformance::hostile::{self, Manner};
use marquetry_conformance::records::{FieldSum, array_sums, check_batch, read_all};
use marquetry_parquet::batch::Array;
use marquetry_parquet::read::{BatchReader, FooterReader, ReadOptions};
use marquetry_parquet::record::Program;
use marquetry_parquet::schema::{Plan, Union};

/// Reads all batches, and nothing of records.
fn columns(bytes: &Bytes) -> Result<u64> {
    let metadata = canonical::metadata(bytes, Manner::KIND)?;
    let mut rows = 0;
    let codecs = Arc::new(marquetry_codecs::StandardCodecs::default());
    let mut reader = BatchReader::new(FILE, Arc::clone(&metadata), codecs, ReadOptions::default())?;
    hostile::run(&mut reader, FILE, bytes, Manner::KIND, |batch| {
        check_batch(&metadata.schema, &batch);
        rows += batch.rows as u64;
        Ok(())
    })?;
    Ok(rows)
}

fn records(bytes: &Bytes) -> Result<Vec<FieldSum>> {
    let options = ReadOptions { batch_rows: 2, ..ReadOptions::default() };
    let usual = read_all(bytes, ReadOptions::default(), Manner::KIND);
    let small = read_all(bytes, options, Manner::DISORDERLY);
    // Batches before the bad one may end otherwise; what is found wrong is the same.
    match (&usual, &small) {
        (Ok(usual), Ok(small)) => assert_eq!(usual, small),
        (usual, small) => assert_eq!(message(usual), message(small)),
    }
    if let Ok(usual) = &usual {
        let metadata = canonical::metadata(bytes, Manner::KIND)?;
        for manner in [Manner::KIND, Manner::DISORDERLY] {
            assert_eq!(&array_sums(bytes, &metadata, ReadOptions::default(), manner)?, usual);
        }
    }
    usual
}

/// Assembles all batches' arrays, and does not look at them; says their slots.
fn arrays(bytes: &Bytes) -> usize {
    let metadata = canonical::metadata(bytes, Manner::KIND).unwrap();
    let schema = Arc::clone(&metadata.schema);
    let codecs = Arc::new(marquetry_codecs::StandardCodecs::default());
    let mut reader = BatchReader::new(FILE, metadata, codecs, ReadOptions::default()).unwrap();
    let mut slots = 0;
    hostile::run(&mut reader, FILE, bytes, Manner::KIND, |batch| {
        slots += Array::assemble(schema.shape(1), batch.rows, &|leaf| batch.columns.get(leaf))?.length;
        Ok(())
    })
    .unwrap();
    slots
}

fn message<T: std::fmt::Debug>(result: &Result<T>) -> &str {
    result.as_ref().expect_err("it is bad").message()
}

/// All rows in clear.
fn heads(bytes: &Bytes) -> Vec<Vec<String>> {
    records(bytes).unwrap().into_iter().map(|field| field.head).collect()
}

/// Checks that both readings fail so, and name the column.
fn fails(bytes: &Bytes, message: &str, column: &str) {
    for error in [columns(bytes).unwrap_err(), records(bytes).unwrap_err()] {
        check(&error, ErrorKind::Corrupt, message, column);
    }
}

/// Checks that each column is right for itself, but not as records, nor as arrays.
fn fails_together(bytes: &Bytes, column: &str, row: u64) {
    columns(bytes).unwrap();
    let metadata = canonical::metadata(bytes, Manner::KIND).unwrap();
    for manner in [Manner::KIND, Manner::DISORDERLY] {
        let arrays = array_sums(bytes, &metadata, ReadOptions::default(), manner).unwrap_err();
        for error in [arrays, records(bytes).unwrap_err()] {
            check(&error, ErrorKind::Corrupt, "the levels of a column contradict those of others", column);
            assert_eq!((error.place().row_group, error.place().row), (Some(0), Some(row)), "{error:?}");
        }
    }
}

fn check(error: &Error, kind: ErrorKind, message: &str, column: &str) {
    let found = (error.kind(), error.message(), error.place().column.as_deref());
    assert_eq!(found, (kind, message, Some(column)), "{error:?}");
}

/// `optional group a (LIST) { repeated group list { optional int32 element } }`: levels up to 3 and 1.
fn list_schema() -> Vec<Struct> {
    let mut elements = list("a", 1).to_vec();
    elements.push(leaf("element", 1, INT32));
    elements
}

const LIST_PATH: &str = "a.list.element";

fn list_page(repetition: &[u32], definition: &[u32]) -> Page {
    let values: Vec<i32> = (0..).take(definition.iter().filter(|&&level| level == 3).count()).collect();
    let levels = [Levels { width: 1, levels: repetition }, Levels { width: 2, levels: definition }];
    Page::nested(&levels, PLAIN, &plain_i32(&values))
}

fn list_page_v2(repetition: &[u32], definition: &[u32], rows: i32) -> Page {
    let values: Vec<i32> = (0..).take(definition.iter().filter(|&&level| level == 3).count()).collect();
    let (repetition, definition) =
        (Levels { width: 1, levels: repetition }, Levels { width: 2, levels: definition });
    Page::nested_v2(&repetition, &definition, rows, &plain_i32(&values))
}

/// A file of one list of pages.
fn list_file(rows: i64, entries: i64, pages: impl IntoIterator<Item = Page>) -> Bytes {
    Table::nested(1, list_schema()).group(rows, [Chunk::new(entries, pages)]).write()
}

#[test]
fn a_list_as_it_should_be() {
    let (repetition, definition) = ([0, 1, 0, 0, 0, 1, 1], [3, 2, 0, 1, 3, 3, 3]);
    let expected = [vec!["[00000000,n,]", "n,", "[]", "[01000000,02000000,03000000,]"]];
    assert_eq!(heads(&list_file(4, 7, [list_page(&repetition, &definition)])), expected);
    assert_eq!(heads(&list_file(4, 7, [list_page_v2(&repetition, &definition, 4)])), expected);
    // A page may begin in the middle of a row, and be empty.
    let pages =
        [list_page(&[0, 1], &[3, 3]), list_page(&[], &[]), list_page(&[1], &[3]), list_page(&[0], &[0])];
    assert_eq!(heads(&list_file(2, 4, pages)), [["[00000000,01000000,00000000,]", "n,"]]);
}

#[test]
fn levels_in_the_deprecated_bit_packed_encoding() {
    // Most significant bit first: repetition 0 1 0 1, definition 3 2 3 3.
    let body = [&[0b0101_0000, 0b1110_1111][..], &plain_i32(&[7, 8, 9])].concat();
    let page = Page::data(4, PLAIN, body).with_own(3, V::I32(BIT_PACKED)).with_own(4, V::I32(BIT_PACKED));
    assert_eq!(heads(&list_file(2, 4, [page])), [["[07000000,n,]", "[08000000,09000000,]"]]);
}

#[test]
fn levels_beyond_the_largest() {
    // Two bits hold a 3, where 2 is the largest.
    let schema = [group("a", 1, 1), leaf("b", 1, INT32)];
    let file = |definition: &[u32]| {
        let page = Page::nested(&[Levels { width: 2, levels: definition }], PLAIN, &plain_i32(&[1, 2, 3]));
        Table::nested(1, schema.clone()).group(3, [Chunk::new(3, [page])]).write()
    };
    assert_eq!(heads(&file(&[2, 1, 0])), [["{01000000,}", "{n,}", "n,"]]);
    fails(&file(&[2, 3, 0]), "the level 3, where 2 is the largest", "a.b");
    // Repetition levels of two lists: 3, where 2 is the largest.
    let mut schema = list("a", 0).to_vec();
    schema.extend(list("element", 0));
    schema.push(leaf("element", 0, INT32));
    let file = |repetition: &[u32], definition: &[u32]| {
        let levels = [Levels { width: 2, levels: repetition }, Levels { width: 2, levels: definition }];
        let page = Page::nested(&levels, PLAIN, &plain_i32(&[1, 2, 3]));
        Table::nested(1, schema.clone()).group(1, [Chunk::new(3, [page])]).write()
    };
    assert_eq!(heads(&file(&[0, 2, 1], &[2, 2, 2])), [["[[01000000,02000000,][03000000,]]"]]);
    let path = "a.list.element.list.element";
    fails(&file(&[0, 3, 1], &[2, 2, 2]), "the level 3, where 2 is the largest", path);
}

#[test]
fn repetition_that_cannot_be() {
    let begins = "a column chunk that begins in the middle of a row";
    fails(&list_file(1, 2, [list_page(&[1, 0], &[3, 3])]), begins, LIST_PATH);
    fails(&list_file(1, 2, [list_page(&[], &[]), list_page_v2(&[1, 0], &[3, 3], 1)]), begins, LIST_PATH);
    // A further element of a list that is null, or empty, or an element that the list does not have.
    let not_there = "levels of an element of a list that is not there";
    for definition in [[0, 3], [1, 3], [1, 1], [3, 0], [2, 1], [0, 2], [0, 1]] {
        fails(&list_file(1, 2, [list_page(&[0, 1], &definition)]), not_there, LIST_PATH);
        // The same, when another page begins in between.
        let pages = [list_page(&[0], &definition[..1]), list_page(&[1], &definition[1..])];
        fails(&list_file(1, 2, pages), not_there, LIST_PATH);
    }
}

#[test]
fn elements_that_a_null_hides() {
    // DuckDB writes as many entries for a null of its ARRAY as an array has elements.
    let page = list_page(&[0, 1, 0, 1, 1, 0], &[3, 3, 0, 0, 0, 3]);
    let expected = [["[00000000,01000000,]", "n,", "[02000000,]"]];
    assert_eq!(heads(&list_file(3, 6, [page])), expected);
    let pages = [list_page(&[0, 1, 0], &[3, 3, 0]), list_page(&[1], &[0]), list_page(&[1, 0], &[0, 3])];
    assert_eq!(heads(&list_file(3, 6, pages))[0][1], "n,");
}

#[test]
fn rows_and_entries_that_do_not_add_up() {
    let page = || list_page(&[0, 1, 0], &[3, 3, 3]);
    let file = |rows, entries| list_file(rows, entries, [page()]);
    assert_eq!(heads(&file(2, 3)), [["[00000000,01000000,]", "[02000000,]"]]);
    fails(&file(1, 3), "a column chunk of more rows than its row group", LIST_PATH);
    fails(&file(3, 3), "the column chunk ends 1 rows and 0 entries early", LIST_PATH);
    fails(&file(4, 3), "3 values in a row group of 4 rows", LIST_PATH);
    fails(&file(2, 4), "the column chunk ends 0 rows and 1 entries early", LIST_PATH);
    fails(&file(2, 2), "a page of 3 values in a column chunk that has 2 left", LIST_PATH);
    // Of a nested leaf that is not repeated, an entry is a row.
    let schema = [group("a", 1, 1), leaf("b", 1, INT32)];
    let file = |rows, entries| {
        let page = Page::nested(&[Levels { width: 2, levels: &[2, 1, 0] }], PLAIN, &plain_i32(&[1]));
        Table::nested(1, schema.clone()).group(rows, [Chunk::new(entries, [page])]).write()
    };
    assert_eq!(heads(&file(3, 3)), [["{01000000,}", "{n,}", "n,"]]);
    fails(&file(2, 3), "3 values in a row group of 2 rows", "a.b");
    fails(&file(4, 4), "the column chunk ends 1 rows and 1 entries early", "a.b");
    // A page of fewer levels than its header says.
    let page = list_page(&[0, 1, 0], &[3, 3, 3]).with_own(1, V::I32(300));
    fails(&list_file(2, 300, [page]), "the page ends before its last value", LIST_PATH);
}

#[test]
fn the_rows_of_v2_headers_are_not_believed() {
    for rows in [0, 1, 2, 4, i32::MAX] {
        let file = list_file(2, 3, [list_page_v2(&[0, 1, 0], &[3, 3, 3], rows)]);
        assert_eq!(heads(&file), [["[00000000,01000000,]", "[02000000,]"]], "{rows}");
        // A nested leaf that is not repeated.
        let schema = [group("a", 1, 1), leaf("b", 1, INT32)];
        let levels = Levels { width: 2, levels: &[2, 1, 0] };
        let page = Page::nested_v2(&Levels { width: 0, levels: &[] }, &levels, rows, &plain_i32(&[1]));
        let file = Table::nested(1, schema).group(3, [Chunk::new(3, [page])]).write();
        assert_eq!(heads(&file), [["{01000000,}", "{n,}", "n,"]], "{rows}");
    }
}

/// `a (LIST) of struct { x: int32, y: int32 }`, all optional: levels up to 4 and 1.
fn struct_list_file(rows: i64, leaves: [(&[u32], &[u32]); 2]) -> Bytes {
    let mut elements = list("a", 1).to_vec();
    elements.extend([group("element", 1, 2), leaf("x", 1, INT32), leaf("y", 1, INT32)]);
    let chunks = leaves.map(|(repetition, definition)| {
        let values = vec![5; definition.iter().filter(|&&level| level == 4).count()];
        let levels = [Levels { width: 1, levels: repetition }, Levels { width: 3, levels: definition }];
        let page = Page::nested(&levels, PLAIN, &plain_i32(&values));
        Chunk::new(i64::try_from(definition.len()).unwrap(), [page])
    });
    Table::nested(1, elements).group(rows, chunks).write()
}

#[test]
fn columns_that_disagree() {
    let (x, y) = ("a.list.element.x", "a.list.element.y");
    let good = struct_list_file(3, [(&[0, 1, 0, 0], &[4, 2, 0, 4]), (&[0, 1, 0, 0], &[3, 2, 0, 4])]);
    assert_eq!(heads(&good), [["[{05000000,n,}n,]", "n,", "[{05000000,05000000,}]"]]);
    let disagree = |leaves, column, row| fails_together(&struct_list_file(2, leaves), column, row);
    // In the length of a list, both ways.
    disagree([(&[0, 1, 0], &[4, 4, 4]), (&[0, 0], &[4, 4])], y, 0);
    disagree([(&[0, 0], &[4, 4]), (&[0, 0, 1], &[4, 4, 4])], y, 1);
    // In whether the list, its elements, or the struct are there.
    disagree([(&[0, 0], &[4, 0]), (&[0, 0], &[4, 4])], y, 1);
    disagree([(&[0, 0], &[4, 4]), (&[0, 0], &[4, 0])], y, 1);
    disagree([(&[0, 0], &[1, 4]), (&[0, 0], &[4, 4])], y, 0);
    disagree([(&[0, 0], &[0, 4]), (&[0, 0], &[1, 4])], y, 0);
    disagree([(&[0, 0], &[2, 4]), (&[0, 0], &[3, 4])], y, 0);
    disagree([(&[0, 0], &[3, 4]), (&[0, 0], &[2, 4])], y, 0);
    // In rows.
    let file = struct_list_file(2, [(&[0, 0], &[4, 4]), (&[0, 0, 0], &[4, 4, 4])]);
    fails(&file, "a column chunk of more rows than its row group", y);
    let file = struct_list_file(2, [(&[0, 1], &[4, 4]), (&[0, 0], &[4, 4])]);
    fails(&file, "the column chunk ends 1 rows and 0 entries early", x);
}

#[test]
fn a_row_of_billions_of_entries() {
    // Runs: one row, of which each entry is the only value of the dictionary.
    const ENTRIES: u32 = 1 << 30;
    let mut repetition = repeated_run(1, 0, 1);
    repetition.extend(repeated_run(u64::from(ENTRIES) - 1, 1, 1));
    let definition = repeated_run(ENTRIES.into(), 3, 2);
    let mut indices = vec![1];
    indices.extend(repeated_run(ENTRIES.into(), 0, 1));
    let body = [prefixed(&repetition), prefixed(&definition), indices].concat();
    for width in [4, 1 << 16] {
        let mut elements = list("a", 1).to_vec();
        let mut element = leaf("element", 1, FIXED_LEN_BYTE_ARRAY);
        element.set(2, V::I32(width));
        elements.push(element);
        let dictionary = Page::dictionary(1, vec![7; usize::try_from(width).unwrap()]);
        let page = Page::data(i32::try_from(ENTRIES).unwrap(), RLE_DICTIONARY, body.clone());
        let bytes =
            Table::nested(1, elements).group(1, [Chunk::new(ENTRIES.into(), [dictionary, page])]).write();
        let limits = Limits { total_bytes: 32 << 20, ..Limits::DEFAULT };
        for manner in [Manner::KIND, Manner::USUAL] {
            let options = ReadOptions { limits, ..ReadOptions::default() };
            let error = read_all(&bytes, options, manner).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{error:?}");
            assert!(error.message().contains("total_bytes"), "{error:?}");
        }
    }
}

#[test]
fn large_values_make_small_batches() {
    // Rows of ten strings of 64 KiB, all of them from a dictionary of one.
    const ROWS: u32 = 200;
    const WIDTH: i32 = 1 << 16;
    let mut element = leaf("element", 1, FIXED_LEN_BYTE_ARRAY);
    element.set(2, V::I32(WIDTH));
    let mut elements = list("a", 1).to_vec();
    elements.push(element);
    let repetition: Vec<u32> = (0..ROWS * 10).map(|entry| u32::from(entry % 10 > 0)).collect();
    let mut levels = prefixed(&packed_run(&repetition, 1));
    levels.extend(prefixed(&repeated_run((ROWS * 10).into(), 3, 2)));
    levels.push(1);
    levels.extend(repeated_run((ROWS * 10).into(), 0, 1));
    let entries = i32::try_from(ROWS * 10).unwrap();
    let page = Page::data(entries, RLE_DICTIONARY, levels);
    let dictionary = Page::dictionary(1, vec![7; usize::try_from(WIDTH).unwrap()]);
    let bytes = Table::nested(1, elements)
        .group(ROWS.into(), [Chunk::new(entries.into(), [dictionary, page])])
        .write();
    let metadata = canonical::metadata(&bytes, Manner::KIND).unwrap();
    let codecs = Arc::new(marquetry_codecs::StandardCodecs::default());
    let mut reader = BatchReader::new(FILE, Arc::clone(&metadata), codecs, ReadOptions::default()).unwrap();
    let (mut rows, mut values_max) = (0, 0);
    hostile::run(&mut reader, FILE, &bytes, Manner::KIND, |batch| {
        check_batch(&metadata.schema, &batch);
        rows += batch.rows;
        values_max = values_max.max(batch.columns[0].values.len());
        Ok(())
    })
    .unwrap();
    // Two rows would be more than 1 MiB.
    assert_eq!((rows, values_max), (200, 10));
}

#[test]
fn every_byte_changed() {
    // Few bytes can stand for billions of entries; this is enough to see that they are refused.
    let options = ReadOptions {
        limits: Limits { total_bytes: 4 << 20, ..Limits::DEFAULT },
        verify_crc: false,
        ..ReadOptions::default()
    };
    let (repetition, definition): (&[u32], &[u32]) = (&[0, 1, 0, 0, 1], &[4, 2, 0, 3, 4]);
    let files = [
        struct_list_file(3, [(repetition, definition), (repetition, definition)]),
        list_file(3, 5, [list_page_v2(&[0, 1, 0], &[3, 2, 0], 2), list_page_v2(&[0, 1], &[3, 3], 1)]),
    ];
    let (mut good, mut bad) = (0, 0);
    for file in files {
        assert!(read_all(&file, options.clone(), Manner::KIND).is_ok());
        for at in 0..file.len() {
            for bits in [1, 2, 4, 8, 16, 32, 64, 128, 255] {
                let mut bytes = file.to_vec();
                bytes[at] ^= bits;
                let bytes = Bytes::from(bytes);
                let records = read_all(&bytes, options.clone(), Manner::KIND);
                let arrays = canonical::metadata(&bytes, Manner::KIND)
                    .and_then(|metadata| array_sums(&bytes, &metadata, options.clone(), Manner::KIND));
                // Records and arrays take the same for good.
                match (&records, &arrays) {
                    (Ok(records), Ok(arrays)) => {
                        assert_eq!(records, arrays, "byte {at} ^ {bits}");
                        good += 1;
                    }
                    (Err(records), Err(arrays)) => {
                        let kinds = [ErrorKind::Corrupt, ErrorKind::Unsupported, ErrorKind::LimitExceeded];
                        assert!(
                            kinds.contains(&records.kind()) && kinds.contains(&arrays.kind()),
                            "{records:?}"
                        );
                        bad += 1;
                    }
                    _ => panic!("byte {at} ^ {bits}: {records:?}, but {arrays:?}"),
                }
            }
        }
    }
    println!("{good} good, {bad} bad");
    assert!(good > 100 && bad > 1000);
}

#[test]
fn more_levels_than_a_byte_counts() {
    let deep = |groups: i32, repetition| {
        let mut elements: Vec<Struct> = (0..groups).map(|_| group("g", repetition, 1)).collect();
        elements.push(leaf("x", 0, INT32));
        Table::nested(1, elements).write()
    };
    let read = |bytes: &Bytes, limits: Limits| -> Result<(Option<Error>, Option<Error>)> {
        let mut metadata = None;
        hostile::run(&mut FooterReader::new(FILE, limits), FILE, bytes, Manner::KIND, |found| {
            metadata = Some(found);
            Ok(())
        })?;
        let metadata = metadata.unwrap();
        let codecs = Arc::new(marquetry_codecs::StandardCodecs::default());
        let mut reader = BatchReader::new(FILE, Arc::clone(&metadata), codecs, ReadOptions::default())?;
        // The columns are built by its steps.
        let columns = hostile::run(&mut reader, FILE, bytes, Manner::KIND, |_| Ok(()));
        let program = Program::plan(Arc::clone(&metadata.schema), Some([0].into())).at_once();
        Ok((columns.err(), program.err()))
    };
    let small = std::thread::Builder::new().stack_size(128 << 10).spawn(move || {
        // As deep as the default limit lets it be: both readers take it.
        for repetition in [0, 1, 2] {
            assert_eq!(read(&deep(64, repetition), Limits::DEFAULT).unwrap(), (None, None));
            let error = read(&deep(65, repetition), Limits::DEFAULT).unwrap_err();
            assert_eq!(
                (error.kind(), error.message()),
                (ErrorKind::LimitExceeded, "65 is more than the limit nesting of 64")
            );
        }
        // And read it.
        for (repetition, opening, closing) in [(1, "{", "}"), (2, "[{", "}]")] {
            let max = [64];
            let definition = Levels { width: 7, levels: &max };
            let levels = [Levels { width: 7, levels: &[0] }, definition];
            let levels = if repetition == 2 { &levels[..] } else { &levels[1..] };
            let mut elements = vec![group("g", repetition, 1); 64];
            elements.push(leaf("x", 0, INT32));
            let chunk = Chunk::new(1, [Page::nested(levels, PLAIN, &plain_i32(&[5]))]);
            let bytes = Table::nested(1, elements).group(1, [chunk]).write();
            let found = read_all(&bytes, ReadOptions::default(), Manner::USUAL).unwrap();
            let expected = format!("{}05000000,{}", opening.repeat(64), closing.repeat(64));
            assert_eq!(found[0].head, [expected]);
            assert_eq!(arrays(&bytes), 1);
            // And as one of many files, whose lists are all spelt in three levels.
            let mut union = Union::new();
            union.add(Arc::clone(&canonical::metadata(&bytes, Manner::KIND).unwrap().schema));
            let unified = union.plan().at_once().unwrap();
            assert!(unified.differences.is_empty());
            assert_eq!(Program::plan(unified.schema, None).at_once().err(), None);
        }
        for repetition in [1, 2] {
            let (_, records) = read(&deep(65, repetition), Limits::TRUSTED).unwrap();
            assert_eq!(records.unwrap().message(), "a record of more than 65 levels");
        }
        // Deeper, with larger limits: columns up to 255 levels, records as deep as a small stack takes.
        let (columns, records) = read(&deep(255, 1), Limits::TRUSTED).unwrap();
        assert_eq!(columns, None);
        assert_eq!(records.unwrap().kind(), ErrorKind::LimitExceeded);
        let (columns, records) = read(&deep(256, 1), Limits::TRUSTED).unwrap();
        assert_eq!(columns.unwrap().kind(), ErrorKind::LimitExceeded);
        assert_eq!(records.unwrap().kind(), ErrorKind::LimitExceeded);
        let (columns, records) = read(&deep(1000, 0), Limits::TRUSTED).unwrap();
        assert_eq!(columns, None);
        assert_eq!(records.unwrap().kind(), ErrorKind::LimitExceeded);
        // A million, with and without limits.
        let million = deep(1_000_000, 2);
        let unlimited = Limits { nesting: u32::MAX, ..Limits::TRUSTED };
        for limits in [Limits::DEFAULT, Limits::TRUSTED, unlimited] {
            assert_eq!(read(&million, limits).unwrap_err().kind(), ErrorKind::LimitExceeded);
        }
    });
    small.unwrap().join().unwrap();
}

#[test]
fn schemas_that_lie() {
    let refused = |children, elements: Vec<Struct>| {
        let error = columns(&Table::nested(children, elements).write()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error:?}");
        error.message().to_owned()
    };
    let x = || leaf("x", 0, INT32);
    assert_eq!(refused(2, vec![x()]), "a schema that ends 1 children early");
    assert_eq!(refused(1, vec![group("a", 0, 3), x(), x()]), "a schema that ends 1 children early");
    assert_eq!(refused(1, vec![x(), x()]), "a schema of 3 elements, of which 2 are a tree");
    assert_eq!(refused(1, vec![group("a", 0, -1), x()]), "a group of -1 children");
    assert_eq!(
        refused(1, vec![group("a", 0, i32::MAX), x()]),
        format!("a schema that ends {} children early", i32::MAX - 1)
    );
    let mut both = x();
    both.set(5, V::I32(1));
    assert_eq!(refused(1, vec![both, x()]), "a field with both a type and children");
}

/// A file without rows of a schema; it is read as columns, and as records fails so.
fn neither(elements: Vec<Struct>, kind: ErrorKind, message: &str, column: &str) {
    let leaves = elements.iter().filter(|element| element.0.contains_key(&1)).count();
    let bytes = Table::nested(1, elements).group(0, (0..leaves).map(|_| Chunk::new(0, []))).write();
    assert_eq!(columns(&bytes).unwrap(), 0);
    check(&records(&bytes).unwrap_err(), kind, message, column);
}

#[test]
fn lists_and_maps_that_are_neither() {
    let annotated = |mut group: Struct, converted| {
        group.set(6, V::I32(converted));
        group
    };
    let x = |repetition| leaf("x", repetition, INT32);
    let not_a_list = "a LIST that is not one repeated field";
    let list = |children| annotated(group("a", 1, children), LIST);
    neither(vec![list(1), x(1)], ErrorKind::Corrupt, not_a_list, "a");
    neither(vec![list(2), x(2), x(1)], ErrorKind::Corrupt, not_a_list, "a");
    neither(vec![list(0)], ErrorKind::Corrupt, not_a_list, "a");
    let nothing = "a list whose elements hold nothing";
    neither(vec![list(1), group("list", 2, 0)], ErrorKind::Unsupported, nothing, "a");
    neither(vec![list(1), group("list", 2, 1), group("s", 1, 0)], ErrorKind::Unsupported, nothing, "a");
    neither(vec![group("a", 2, 0)], ErrorKind::Unsupported, nothing, "a");
    let map = |children| annotated(group("a", 1, children), MAP);
    let entries = "a MAP whose entries are not a key and a value";
    neither(vec![map(1), x(2)], ErrorKind::Corrupt, entries, "a");
    neither(vec![map(1), group("key_value", 2, 0)], ErrorKind::Corrupt, entries, "a");
    neither(vec![map(1), group("key_value", 2, 3), x(0), x(1), x(1)], ErrorKind::Corrupt, entries, "a");
    neither(vec![map(1), group("key_value", 2, 1), group("key", 0, 0)], ErrorKind::Unsupported, nothing, "a");
}

#[test]
fn a_map_annotation_on_another_group() {
    let mut map = group("a", 0, 2);
    map.set(6, V::I32(MAP));
    let page = |value| Page::data(1, PLAIN, plain_i32(&[value]));
    let chunks = [7, 8].map(|value| Chunk::new(1, [page(value)]));
    let bytes = Table::nested(1, [map, leaf("x", 0, INT32), leaf("y", 0, INT32)]).group(1, chunks).write();
    assert_eq!(heads(&bytes), [["{07000000,08000000,}"]]);
}

#[test]
fn structs_of_nothing() {
    // At the root and in a struct; beside a leaf.
    let elements = [group("e", 1, 0), group("s", 0, 2), group("f", 1, 0), leaf("x", 0, INT32)];
    let page = Page::data(2, PLAIN, plain_i32(&[1, 2]));
    let bytes = Table::nested(2, elements).group(2, [Chunk::new(2, [page])]).write();
    let fields = records(&bytes).unwrap();
    assert_eq!(fields.iter().map(|field| &*field.name).collect::<Vec<_>>(), ["s"]);
    assert_eq!(fields[0].head, ["{{}01000000,}", "{{}02000000,}"]);
    // Nothing else at all: rows without a column.
    let bytes = Table::nested(1, [group("e", 1, 0)]).group(3, []).write();
    assert_eq!((columns(&bytes).unwrap(), records(&bytes).unwrap()), (3, Vec::new()));
}
