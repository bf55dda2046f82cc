//! Complete statements: nulls, dictionaries, row numbers, pieces.

use std::sync::Arc;

use marquetry_parquet::batch::{Batch, Values};
use marquetry_scylla::bridge::{InsertWriter, Mapping, MappingOptions, Nulls, Written};

use crate::batch::{batch, bytes, cell, dictionary, int32, int64, keyed, mapped, mapping, numbered, text};
use crate::schema::{BYTE_ARRAY, Field, INT32, INT64, Note, UTF8, leaf};

fn three() -> (Vec<Field>, Batch) {
    let fields =
        vec![leaf("a", INT32, Note::None), leaf("B", BYTE_ARRAY, UTF8), leaf("c", INT64, Note::None)];
    let columns = vec![
        (int32(&[1, 2, 3, 4]), None),
        (bytes(&["x", "", "", "y"]), Some(&[1, 0, 1, 0][..])),
        (int64(&[0, 0, 5, 6]), Some(&[1, 0, 0, 1][..])),
    ];
    (fields, batch(columns))
}

#[test]
fn nulls_are_left_out_or_printed() {
    let (fields, batch) = three();
    let unset = mapping(&fields, &keyed("a")).unwrap();
    assert_eq!(
        text(&unset, &batch).unwrap(),
        "INSERT INTO t (a, \"B\", c) VALUES (1, 'x', 0);\nINSERT INTO t (a) VALUES (2);\nINSERT INTO t (a, \"B\") VALUES \
         (3, '');\nINSERT INTO t (a, c) VALUES (4, 6);\n"
    );
    let null = mapping(&fields, &MappingOptions { nulls: Nulls::Null, ..keyed("a") }).unwrap();
    assert_eq!(
        text(&null, &batch).unwrap(),
        "INSERT INTO t (a, \"B\", c) VALUES (1, 'x', 0);\nINSERT INTO t (a, \"B\", c) VALUES (2, null, null);\nINSERT \
         INTO t (a, \"B\", c) VALUES (3, '', null);\nINSERT INTO t (a, \"B\", c) VALUES (4, null, 6);\n"
    );
    assert_eq!(cell(&unset, 1, &batch, 1).unwrap(), None);
    assert_eq!(cell(&unset, 1, &batch, 2).unwrap(), Some(vec![]));
}

#[test]
fn a_validity_bitmap_may_start_anywhere() {
    let (fields, whole) = three();
    let mapping = mapping(&fields, &keyed("a")).unwrap();
    let all = text(&mapping, &whole).unwrap();
    let columns = whole.columns.iter().map(|column| column.slice(1..4)).collect();
    let part = Batch { rows: 3, columns, ..whole };
    assert_eq!(text(&mapping, &part).unwrap(), all.split_once('\n').unwrap().1);
}

#[test]
fn many_columns_with_any_nulls() {
    // More columns than a word has bits, and more sets of nulls than are kept.
    const COLUMNS: usize = 150;
    const ROWS: usize = 600;
    let fields: Vec<Field> = (0..COLUMNS).map(|at| leaf(&format!("c{at}"), INT32, Note::None)).collect();
    let is_there = |row: usize, column: usize| {
        column == 0 || !((row * 7919 + column * column * 104_729) / 13).is_multiple_of(3)
    };
    let valid: Vec<Vec<u8>> =
        (0..COLUMNS).map(|column| (0..ROWS).map(|row| u8::from(is_there(row, column))).collect()).collect();
    let values: Vec<i32> = (0..ROWS as i32).collect();
    let columns = valid.iter().map(|valid| (int32(&values), Some(&valid[..]))).collect();
    let mapping = mapping(&fields, &keyed("c0")).unwrap();
    let expected: String = (0..ROWS)
        .map(|row| {
            let there: Vec<usize> = (0..COLUMNS).filter(|column| is_there(row, *column)).collect();
            let names: Vec<String> = there.iter().map(|column| format!("c{column}")).collect();
            format!(
                "INSERT INTO t ({}) VALUES ({});\n",
                names.join(", "),
                vec![row.to_string(); there.len()].join(", ")
            )
        })
        .collect();
    assert_eq!(text(&mapping, &batch(columns)).unwrap(), expected);
}

/// Both, with one writer, as text and cell by cell.
fn same(mapping: &Mapping, pairs: &[(Batch, Batch)]) {
    let (mut first, mut second) = (InsertWriter::new(mapping), InsertWriter::new(mapping));
    for (one, other) in pairs {
        let (mut expected, mut got) = (Vec::new(), Vec::new());
        first.write(&mapped(mapping, one), 0..one.rows, 0, &mut expected, usize::MAX).unwrap();
        second.write(&mapped(mapping, other), 0..other.rows, 0, &mut got, usize::MAX).unwrap();
        assert_eq!(String::from_utf8(got).unwrap(), String::from_utf8(expected).unwrap());
        for row in 0..one.rows {
            for column in 0..mapping.columns().len() {
                let expected = cell(mapping, column, one, row).unwrap();
                assert_eq!(cell(mapping, column, other, row).unwrap(), expected);
            }
        }
    }
}

#[test]
fn dictionaries_print_as_their_values() {
    let fields = [leaf("a", BYTE_ARRAY, UTF8), leaf("b", INT32, Note::Converted(6))];
    let mapping = mapping(&fields, &numbered()).unwrap();
    let texts = [Arc::new(bytes(&["x", "it's", "zwölf"])), Arc::new(bytes(&["other", "another"]))];
    let days = Arc::new(int32(&[0, 19_000]));
    let valid: &[u8] = &[1, 1, 0, 1];
    let pair = |plain: [&str; 4], indices: &[u32], dictionary_at: usize| {
        let plain_days = int32(&[0, 19_000, 19_000, 0]);
        (
            batch(vec![(bytes(&plain), Some(valid)), (plain_days, None)]),
            batch(vec![
                (dictionary(indices, &texts[dictionary_at]), Some(valid)),
                (dictionary(&[0, 1, 1, 0], &days), None),
            ]),
        )
    };
    same(
        &mapping,
        &[
            pair(["x", "it's", "", "it's"], &[0, 1, 0, 1], 0),
            pair(["zwölf", "x", "", "it's"], &[2, 0, 0, 1], 0),
            pair(["other", "other", "", "another"], &[0, 0, 0, 1], 1),
            pair(["zwölf", "zwölf", "", "x"], &[2, 2, 0, 0], 0),
        ],
    );
    // Later pages of a column chunk can be plain, once its dictionary is full.
    let (plain, kept) = pair(["other", "another", "", "other"], &[0, 1, 0, 0], 1);
    same(&mapping, &[(plain.clone(), kept.clone()), (plain.clone(), plain.clone()), (plain, kept)]);
}

#[test]
fn a_dictionary_larger_than_what_is_kept() {
    let mapping = mapping(&[leaf("a", BYTE_ARRAY, UTF8)], &numbered()).unwrap();
    let long: Vec<String> = (0..60).map(|at| format!("{at} ").repeat(30_000)).collect();
    let indices: Vec<u32> = (0..60).chain(0..60).collect();
    let plain: Vec<&String> = indices.iter().map(|at| &long[*at as usize]).collect();
    let pair = (
        batch(vec![(bytes(&plain), None)]),
        batch(vec![(dictionary(&indices, &Arc::new(bytes(&long))), None)]),
    );
    same(&mapping, &[pair]);
}

#[test]
fn a_column_of_nulls_with_an_empty_dictionary() {
    let mapping = mapping(&[leaf("a", BYTE_ARRAY, UTF8)], &numbered()).unwrap();
    let none: [&str; 0] = [];
    let batch = batch(vec![(dictionary(&[0, 0], &Arc::new(bytes(&none))), Some(&[0, 0]))]);
    assert_eq!(
        text(&mapping, &batch).unwrap(),
        "INSERT INTO t (n) VALUES (0);\nINSERT INTO t (n) VALUES (1);\n"
    );
}

#[test]
fn pieces_and_row_numbers() {
    let (fields, batch) = three();
    let mapping = mapping(&fields, &numbered()).unwrap();
    let batch = mapped(&mapping, &batch);
    let mut writer = InsertWriter::new(&mapping);
    let mut whole = Vec::new();
    let done = writer.write(&batch, 0..4, 500, &mut whole, usize::MAX).unwrap();
    assert_eq!(done, Written { next_row: 4 });
    assert!(whole.starts_with(b"INSERT INTO t (n, a, \"B\", c) VALUES (500, 1, 'x', 0);\n"));
    assert!(whole.ends_with(b"INSERT INTO t (n, a, c) VALUES (503, 4, 6);\n"));
    for bytes_max in [0, 1, 40, 90, 1000] {
        let (mut pieces, mut row) = (Vec::new(), 0);
        while row < 4 {
            let mut out = Vec::new();
            let next = writer.write(&batch, row..4, 500, &mut out, bytes_max).unwrap().next_row;
            assert!(next > row && (out.len() >= bytes_max || next == 4));
            pieces.extend(out);
            row = next;
        }
        assert_eq!(pieces, whole);
    }
    assert_eq!(writer.write(&batch, 2..2, 0, &mut whole, 0).unwrap(), Written { next_row: 2 });
    let mut cell = Vec::new();
    mapping.bind(&batch, 500).unwrap().write_cell(0, 3, &mut cell).unwrap();
    assert_eq!(cell, 503_i64.to_be_bytes());
}

#[test]
fn only_the_key() {
    let mapping = mapping(&[leaf("a", INT32, Note::None)], &keyed("a")).unwrap();
    let batch = batch(vec![(int32(&[7]), Some(&[1]))]);
    assert_eq!(text(&mapping, &batch).unwrap(), "INSERT INTO t (a) VALUES (7);\n");
    let mut none = batch.clone();
    none.rows = 0;
    none.columns[0] = none.columns[0].slice(0..0);
    assert!(matches!(none.columns[0].values, Values::Int32(_)));
    assert_eq!(text(&mapping, &none).unwrap(), "");
}
