//! Lines row by row and together, and in pieces.

use super::*;
use crate::batch::{ByteArrays, ColumnBatch, Layout, Levels, Values};
use crate::schema::{FieldDef, FieldType, LogicalType, PhysicalType};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use marquetry_base::{Bytes, Detail};

const ROWS: usize = 200;

fn schema() -> Schema {
    let text = || FieldType::Leaf(PhysicalType::ByteArray, Some(LogicalType::String));
    let int64 = || FieldType::Leaf(PhysicalType::Int64, None);
    let tags = FieldType::List(Box::new(FieldDef::new("element", int64()).required()));
    Schema::of_fields(&[
        FieldDef::new("id", int64()).required(),
        FieldDef::new("n,ame", text()),
        FieldDef::new("kind", text()).required(),
        FieldDef::new("tags", tags).required(),
    ])
    .unwrap()
}

fn texts(texts: &[&[u8]]) -> ByteArrays {
    ByteArrays::from_lengths(Bytes::from(texts.concat()), texts.iter().map(|text| text.len())).unwrap()
}

/// Numbers; dense text that is null in every third row, and may be invalid UTF-8 in one; a dictionary; lists of 0 to 2.
fn batch(bad_row: Option<usize>) -> Batch {
    let flat = |leaf, values, layout| ColumnBatch {
        leaf,
        rows: ROWS,
        nulls: 0,
        validity: None,
        values,
        layout,
        levels: None,
        provisional: false,
    };
    let id = flat(0, Values::Int64((0..ROWS as i64).collect::<Vec<_>>().into()), Layout::Spaced);
    let names: Vec<&[u8]> = (0..ROWS)
        .filter(|row| row % 3 != 0)
        .map(|row| if Some(row) == bad_row { b"\xff".as_slice() } else { b"say \"hi\", twice" })
        .collect();
    let mut name = flat(1, Values::ByteArray(texts(&names)), Layout::Dense);
    name.validity = Some((0..ROWS).map(|row| row % 3 != 0).collect());
    name.nulls = ROWS - names.len();
    let entries = Arc::new(Values::ByteArray(texts(&[b"", b"a dictionary's entry"])));
    let indices: Vec<u32> = (0..ROWS as u32).map(|row| row % 2).collect();
    let kind = flat(2, Values::Dictionary(indices.into(), entries), Layout::Spaced);
    let (mut definition, mut repetition, mut values) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..ROWS {
        definition.push(u8::from(row % 3 > 0));
        repetition.push(0);
        values.extend((0..row % 3).map(|at| (row * 10 + at) as i64));
        if row % 3 == 2 {
            definition.push(1);
            repetition.push(1);
        }
    }
    let mut tags = flat(3, Values::Int64(values.into()), Layout::Dense);
    tags.levels = Some(Levels { definition: definition.into(), repetition: Some(repetition.into()) });
    tags.nulls = ROWS.div_ceil(3);
    Batch { row_group: 0, first_row: 1000, rows: ROWS, columns: vec![id, name, kind, tags] }
}

fn columns() -> Columns {
    Columns::new(&schema().into(), InvalidUtf8::Error, &Limits::DEFAULT).unwrap()
}

#[test]
fn lines_of_json_and_of_csv() {
    let mut json = JsonLines::new(&schema().into(), InvalidUtf8::Error, &Limits::DEFAULT).unwrap();
    json.feed(batch(None)).unwrap();
    assert_eq!(json.feed(batch(None)).unwrap_err().kind(), marquetry_base::ErrorKind::Misuse);
    let mut out = Vec::new();
    assert!(json.write(&mut out, usize::MAX).unwrap());
    let text = String::from_utf8(out).unwrap();
    let lines: Vec<&str> = text.lines().take(3).collect();
    assert_eq!(
        lines,
        [
            r#"{"id":0,"n,ame":null,"kind":"","tags":[]}"#,
            r#"{"id":1,"n,ame":"say \"hi\", twice","kind":"a dictionary's entry","tags":[10]}"#,
            r#"{"id":2,"n,ame":"say \"hi\", twice","kind":"","tags":[20,21]}"#,
        ]
    );
    let mut csv = Csv::new(&schema().into(), InvalidUtf8::Error, &Limits::DEFAULT).unwrap();
    let mut out = Vec::new();
    csv.header(&mut out);
    csv.feed(batch(None)).unwrap();
    assert!(csv.write(&mut out, usize::MAX).unwrap());
    let text = String::from_utf8(out).unwrap();
    let lines: Vec<&str> = text.lines().take(4).collect();
    assert_eq!(
        lines,
        [
            r#"id,"n,ame",kind,tags"#,
            r#"0,,"",[]"#,
            r#"1,"say ""hi"", twice",a dictionary's entry,[10]"#,
            r#"2,"say ""hi"", twice","","[20,21]""#,
        ]
    );
    assert_eq!(text.lines().count(), 1 + ROWS);
}

/// With any limit the lines are the same, and none exceeds the limit by much.
#[test]
fn lines_in_pieces() {
    let mut whole = Vec::new();
    let mut json = JsonLines::new(&schema().into(), InvalidUtf8::Error, &Limits::DEFAULT).unwrap();
    json.feed(batch(None)).unwrap();
    json.write(&mut whole, usize::MAX).unwrap();
    let longest = whole.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::len).max().unwrap();
    for bytes in [1, 100, 5000] {
        let mut out = Vec::new();
        json.feed(batch(None)).unwrap();
        loop {
            let before = out.len();
            let is_done = json.write(&mut out, bytes).unwrap();
            assert!(out.len() > before && out.len() - before < bytes + longest);
            if is_done {
                break;
            }
        }
        assert_eq!(out, whole);
        assert!(json.write(&mut out, bytes).unwrap(), "nothing is left");
        assert_eq!(out, whole);
    }
}

/// Wide tables are printed in another way; the lines are the same, and so is the first that cannot be printed.
#[test]
fn lines_together_are_the_same() {
    fn check<F: Form>() {
        for bad_row in [None, Some(40), Some(64), Some(199)] {
            let batch = batch(bad_row);
            let (mut one, mut other) = (Vec::new(), Vec::new());
            let in_turn = columns()
                .visit(&batch, |columns| {
                    (0..ROWS).try_for_each(|row| line::<F>(columns, row, usize::MAX, &mut one))
                })
                .unwrap();
            let mut lines = Vec::new();
            let together = columns()
                .visit(&batch, |columns| {
                    (0..ROWS).step_by(LINES_TOGETHER).try_for_each(|row| {
                        let rows = row..ROWS.min(row + LINES_TOGETHER);
                        lines_together::<F>(columns, rows, (&mut lines, usize::MAX), &mut other)
                    })
                })
                .unwrap();
            assert_eq!(one, other);
            assert_eq!(in_turn, together);
            let whole = one.iter().filter(|byte| **byte == b'\n').count();
            assert_eq!(whole, bad_row.unwrap_or(ROWS));
            if let Some(row) = bad_row {
                let error = in_turn.unwrap_err();
                assert_eq!(error.detail(), Some(Detail::NotUtf8));
                let place = error.place();
                assert_eq!((place.row, place.column.as_deref()), (Some(1000 + row as u64), Some("n,ame")));
            }
        }
    }
    check::<Json>();
    check::<CommaSeparated>();
}

#[test]
fn lines_of_tsv_have_no_quotes() {
    let fields = [
        FieldDef::new("id", FieldType::Leaf(PhysicalType::Int32, None)),
        FieldDef::new("n,\"ame", FieldType::Leaf(PhysicalType::ByteArray, Some(LogicalType::String))),
    ];
    let schema = Arc::new(Schema::of_fields(&fields).unwrap());
    let batch = |names: &[&[u8]]| {
        let ids: Vec<i32> = (0..names.len() as i32).collect();
        Batch::of_values([ids.into(), Values::ByteArray(texts(names))]).unwrap()
    };
    let printed = |names: &[&[u8]]| {
        let mut tsv = Tsv::new(&schema, InvalidUtf8::Error, &Limits::DEFAULT).unwrap();
        let mut out = Vec::new();
        tsv.header(&mut out);
        tsv.feed(batch(names)).unwrap();
        let written = tsv.write(&mut out, usize::MAX);
        (String::from_utf8(out).unwrap(), written)
    };
    assert_eq!(
        printed(&[b"a \"b\", c", b"\xc3\xa9"]),
        (String::from("id\tn,\"ame\n0\ta \"b\", c\n1\t\u{e9}\n"), Ok(true))
    );
    for bad in [b"".as_slice(), b"a\tb", b"a\nb", b"a\r", b"\xff"] {
        let (text, written) = printed(&[b"good", bad]);
        assert_eq!(text, "id\tn,\"ame\n0\tgood\n", "what is before the error is complete lines");
        let error = written.unwrap_err();
        assert_eq!(error.kind(), marquetry_base::ErrorKind::Conversion);
        assert_eq!((error.place().row, error.place().column.as_deref()), (Some(1), Some("n,\"ame")));
    }
    // What is refused of text that was made valid is said of it, too.
    let mut replacing = Tsv::new(&schema, InvalidUtf8::Replace, &Limits::DEFAULT).unwrap();
    replacing.feed(batch(&[b"\xff", b"\xff\t"])).unwrap();
    let mut out = Vec::new();
    let error = replacing.write(&mut out, usize::MAX).unwrap_err();
    assert_eq!(out, "0\t\u{fffd}\n".as_bytes());
    assert!(error.message().contains("a tab or a line end"), "{error}");
    let named = |name: &str| {
        let field = FieldDef::new(name, FieldType::Leaf(PhysicalType::Int32, None));
        Arc::new(Schema::of_fields(&[field]).unwrap())
    };
    for name in ["a\tb", "", "\u{feff}a"] {
        let error = Tsv::new(&named(name), InvalidUtf8::Error, &Limits::DEFAULT).unwrap_err();
        assert_eq!(error.kind(), marquetry_base::ErrorKind::Conversion);
    }
    for (name, header) in [("", "\"\"\n"), ("\u{feff}a\"", "\"\u{feff}a\"\"\"\n")] {
        let mut out = Vec::new();
        Csv::new(&named(name), InvalidUtf8::Error, &Limits::DEFAULT).unwrap().header(&mut out);
        assert_eq!(out, header.as_bytes());
    }
}

#[test]
fn an_error_stays_and_what_is_before_it_is_whole() {
    let mut json = JsonLines::new(&schema().into(), InvalidUtf8::Error, &Limits::DEFAULT).unwrap();
    json.feed(batch(Some(40))).unwrap();
    let mut out = Vec::new();
    let error = json.write(&mut out, usize::MAX).unwrap_err();
    assert!(out.ends_with(b"}\n") && out.iter().filter(|byte| **byte == b'\n').count() == 40);
    assert_eq!(json.write(&mut out, 1).unwrap_err(), error);
    assert_eq!(json.feed(batch(None)).unwrap_err(), error);
    for (invalid_utf8, shown) in [(InvalidUtf8::Replace, "\"\u{fffd}\""), (InvalidUtf8::Bytes, "\"0xff\"")] {
        let mut json = JsonLines::new(&schema().into(), invalid_utf8, &Limits::DEFAULT).unwrap();
        json.feed(batch(Some(40))).unwrap();
        let mut out = Vec::new();
        assert!(json.write(&mut out, usize::MAX).unwrap());
        let text = String::from_utf8(out).unwrap();
        assert!(text.lines().nth(40).unwrap().contains(shown));
    }
}

#[test]
fn single_cells() {
    let mut columns = columns();
    let cells = |columns: &mut BatchColumns<'_>| {
        let mut texts = Vec::new();
        for column in 0..columns.len() {
            let mut out = Vec::new();
            columns.json(0, column, &mut out).unwrap();
            texts.push(String::from_utf8(out).unwrap());
        }
        texts
    };
    let mut one = batch(None);
    one.columns = one.columns.iter().map(|column| column.slice(1..2)).collect();
    one.rows = 1;
    let expected = ["1", r#""say \"hi\", twice""#, "\"a dictionary's entry\"", "[10]"];
    assert_eq!(columns.visit(&one, cells).unwrap(), expected);
    one.columns.pop();
    assert_eq!(columns.visit(&one, |_| ()).unwrap_err().kind(), marquetry_base::ErrorKind::Misuse);
}

/// What is written can be read: a row is refused before it is longer than those that are read.
#[test]
fn rows_that_no_reader_takes() {
    let limits = Limits { value_bytes: 4096 + 50, ..Limits::DEFAULT };
    let mut json = JsonLines::new(&Arc::new(schema()), InvalidUtf8::Error, &limits).unwrap();
    json.feed(batch(None)).unwrap();
    let mut out = Vec::new();
    let error = json.write(&mut out, usize::MAX).unwrap_err();
    assert_eq!(error.detail(), Some(Detail::Limit(marquetry_base::Limit::ValueBytes)), "{error}");
    assert_eq!(error.message(), "a row of more than 50 bytes of text");
    assert_eq!((error.place().row, error.place().column.as_deref()), (Some(1001), Some("kind")));
    assert_eq!(json.write(&mut out, usize::MAX), Err(error));
    assert_eq!(out, b"{\"id\":0,\"n,ame\":null,\"kind\":\"\",\"tags\":[]}\n");

    // Rows of wide tables are printed together.
    let wide = Batch::of_values((0..WIDE_COLUMNS).map(|_| vec![1_i64, 22, 1].into())).unwrap();
    let leaf = |at: usize| FieldDef::new(alloc::format!("c{at}"), FieldType::Leaf(PhysicalType::Int64, None));
    let fields: Vec<FieldDef> = (0..WIDE_COLUMNS).map(|at| leaf(at).required()).collect();
    let limits = Limits { value_bytes: 4096 + 2 * WIDE_COLUMNS as u64, ..Limits::DEFAULT };
    let mut csv =
        Csv::new(&Arc::new(Schema::of_fields(&fields).unwrap()), InvalidUtf8::Error, &limits).unwrap();
    csv.feed(wide).unwrap();
    let mut out = Vec::new();
    let error = csv.write(&mut out, usize::MAX).unwrap_err();
    assert_eq!((error.kind(), error.place().row), (ErrorKind::LimitExceeded, Some(1)));
    assert_eq!(out.len(), 2 * WIDE_COLUMNS);
}

/// Names are those of one object each.
#[test]
fn fields_of_the_same_name() {
    let leaf = |name: &str| FieldDef::new(name, FieldType::Leaf(PhysicalType::Int64, None)).required();
    let schema = Arc::new(Schema::of_fields(&[leaf("a"), leaf("a#2"), leaf("a")]).unwrap());
    let batch = || Batch::of_values([vec![1_i64].into(), vec![2_i64].into(), vec![3_i64].into()]).unwrap();
    let mut out = Vec::new();
    let mut json = JsonLines::new(&schema, InvalidUtf8::Error, &Limits::DEFAULT).unwrap();
    json.feed(batch()).unwrap();
    json.write(&mut out, usize::MAX).unwrap();
    let csv = Csv::new(&schema, InvalidUtf8::Error, &Limits::DEFAULT).unwrap();
    csv.header(&mut out);
    assert_eq!(out, b"{\"a\":1,\"a#2\":2,\"a#3\":3}\na,a#2,a#3\n");
}

/// Rows without columns are counted.
#[test]
fn rows_without_columns() {
    let schema = Arc::new(Schema::of_fields(&[]).unwrap());
    let mut json = JsonLines::new(&schema, InvalidUtf8::Error, &Limits::DEFAULT).unwrap();
    json.feed(Batch { row_group: 0, first_row: 0, rows: 3, columns: vec![] }).unwrap();
    let mut out = Vec::new();
    assert!(json.write(&mut out, usize::MAX).unwrap());
    assert_eq!(out, b"{}\n{}\n{}\n");
}
