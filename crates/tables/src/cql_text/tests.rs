use std::io;
use std::sync::{Arc, Mutex};

use marquetry_base::{Bytes, ErrorKind};
use marquetry_parquet::batch::{ByteArrays, ColumnBatch, Layout, Values};
use marquetry_parquet::schema::{FieldDef, FieldType, LogicalType, PhysicalType, Schema};
use marquetry_scylla::cql::{KeySpec, Name};

use super::*;

/// A writer that keeps what it has got, and fails when it has too much.
#[derive(Clone, Default)]
struct Kept {
    bytes: Arc<Mutex<Vec<u8>>>,
    writes: Arc<Mutex<usize>>,
    room: Option<usize>,
}

impl Kept {
    fn text(&self) -> String {
        String::from_utf8(self.bytes.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        *self.writes.lock().unwrap() += 1;
        let mut kept = self.bytes.lock().unwrap();
        let room = self.room.map_or(bytes.len(), |room| room.saturating_sub(kept.len()).min(bytes.len()));
        if room == 0 {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        kept.extend_from_slice(&bytes[..room]);
        Ok(room)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A table of a number and a text.
fn table() -> Table {
    let text = FieldType::Leaf(PhysicalType::ByteArray, Some(LogicalType::String));
    let fields = [FieldDef::new("id", FieldType::Leaf(PhysicalType::Int32, None)), FieldDef::new("T", text)];
    Table::new("a.parquet", Arc::new(Schema::of_fields(&fields).unwrap()))
}

fn batch(first_row: u64, rows: &[(i32, &[u8])]) -> Batch {
    let column = |leaf, values| ColumnBatch {
        leaf,
        rows: rows.len(),
        nulls: 0,
        validity: None,
        values,
        layout: Layout::Spaced,
        levels: None,
        provisional: false,
    };
    let ids: Vec<i32> = rows.iter().map(|row| row.0).collect();
    let bytes: Vec<u8> = rows.iter().flat_map(|row| row.1).copied().collect();
    let texts = ByteArrays::from_lengths(Bytes::from(bytes), rows.iter().map(|row| row.1.len())).unwrap();
    let columns = vec![column(0, Values::Int32(ids.into())), column(1, Values::ByteArray(texts))];
    Batch { row_group: 0, first_row, rows: rows.len(), columns }
}

fn by_id() -> MappingOptions {
    MappingOptions { key: Some(KeySpec::parse("id").unwrap()), ..MappingOptions::default() }
}

fn text_of(options: CqlTextOptions, kept: &Kept) -> CqlText<Kept> {
    CqlText::new(kept.clone(), TableName::parse("ks.t").unwrap(), options)
}

const TABLE: &str = "CREATE TABLE ks.t (\n    id int,\n    \"T\" text,\n    PRIMARY KEY (id)\n);\n";

#[test]
fn parts() {
    let rows = "INSERT INTO ks.t (id, \"T\") VALUES (1, 'a');\n";
    for (parts, expected) in [
        (CqlParts::All, [TABLE, rows].concat()),
        (CqlParts::Schema, TABLE.to_string()),
        (CqlParts::Rows, rows.to_string()),
    ] {
        let kept = Kept::default();
        let mut text = text_of(CqlTextOptions::of(by_id()).only(parts), &kept);
        assert!(text.begin(&table()).unwrap().keep_dictionaries);
        text.write(batch(0, &[(1, b"a")])).unwrap();
        let written = text.finish().unwrap();
        assert_eq!(kept.text(), expected);
        assert_eq!(written.bytes, u64_of(expected.len()));
        assert_eq!(written.rows, u64::from(parts != CqlParts::Schema));
    }
}

/// Numbers run on over pieces, each of which counts its rows from 0; and of all leaves some columns are taken, in another order.
#[test]
fn rows_are_numbered_on() {
    let mapping = MappingOptions {
        row_number: Some(Name::new("n").unwrap()),
        columns: Some(vec!["T".to_string(), "id".to_string()]),
        ..MappingOptions::default()
    };
    let kept = Kept::default();
    let mut text = text_of(CqlTextOptions::of(mapping).only(CqlParts::Rows), &kept);
    text.begin(&table()).unwrap();
    for first_row in [0, 2, 0] {
        text.write(batch(first_row, &[(7, b"a"), (8, b"b")])).unwrap();
    }
    assert_eq!(text.progress().unwrap().rows, 6);
    let written = text.finish().unwrap();
    let expected: String = (0..6)
        .map(|n| {
            let (text, id) = if n % 2 == 0 { ("a", 7) } else { ("b", 8) };
            format!("INSERT INTO ks.t (n, \"T\", id) VALUES ({n}, '{text}', {id});\n")
        })
        .collect();
    assert_eq!(kept.text(), expected);
    assert_eq!(written.bytes, u64_of(expected.len()));
}

/// Nothing is written of a table that cannot be, and all that is wrong is said, about the source.
#[test]
fn what_cannot_be_held_is_said_first() {
    let kept = Kept::default();
    let mapping = MappingOptions {
        key: Some(KeySpec::parse("a, b").unwrap()),
        sets: vec!["s".to_string()],
        ..MappingOptions::default()
    };
    let mut text = text_of(CqlTextOptions::of(mapping), &kept);
    let error = text.begin(&table()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "\"s\" is to be a set, but no list is called so; there are none; the key names \"a\", which is not a column; there are \
         id, \"T\"; the key names \"b\", which is not a column; there are id, \"T\" (a.parquet)"
    );
    assert_eq!(text.write(batch(0, &[(1, b"")])).unwrap_err(), error);
    drop(text);
    assert_eq!(kept.text(), "");
}

#[test]
fn before_an_error_stand_whole_statements() {
    let kept = Kept::default();
    let mut text = text_of(CqlTextOptions::of(by_id()), &kept);
    text.begin(&table()).unwrap();
    text.write(batch(100, &[(1, b"a")])).unwrap();
    let error = text.write(batch(101, &[(2, b"b"), (3, b"\xff"), (4, b"c")])).unwrap_err();
    assert_eq!((error.kind(), error.place().row), (ErrorKind::Conversion, Some(102)));
    assert_eq!(error.place().column.as_deref(), Some("T"));
    let row = |id, text| format!("INSERT INTO ks.t (id, \"T\") VALUES ({id}, '{text}');\n");
    let expected = [TABLE, &row(1, "a"), &row(2, "b")].concat();
    // Before it is dropped already.
    assert_eq!(kept.text(), expected);
    // No row is written after one that is missing.
    assert_eq!(text.write(batch(104, &[(5, b"e")])).unwrap_err(), error);
    assert_eq!((text.finish().unwrap_err(), text.commit().unwrap_err()), (error.clone(), error));
    drop(text);
    assert_eq!(kept.text(), expected);
    // Where the source fails, or whoever copies wants no more, it is only dropped.
    let kept = Kept::default();
    let mut text = text_of(CqlTextOptions::of(by_id()), &kept);
    text.begin(&table()).unwrap();
    text.write(batch(0, &[(1, b"a")])).unwrap();
    drop(text);
    assert_eq!(kept.text(), [TABLE, &row(1, "a")].concat());
}

#[test]
fn calls_come_in_their_order() {
    let mut text = text_of(CqlTextOptions::of(by_id()), &Kept::default());
    let misuse = |done: Result<()>| done.is_err_and(|error| error.kind() == ErrorKind::Misuse);
    assert!(misuse(text.write(batch(0, &[(1, b"a")]))) && misuse(text.finish().map(drop)));
    text.begin(&table()).unwrap();
    assert!(misuse(text.begin(&table()).map(drop)) && misuse(text.commit()));
    text.finish().unwrap();
    assert!(misuse(text.write(batch(0, &[(1, b"a")]))));
    text.commit().unwrap();
}

#[test]
fn a_writer_that_fails_is_left_alone() {
    let kept = Kept { room: Some(10), ..Kept::default() };
    let mut text = text_of(CqlTextOptions::of(by_id()), &kept).named("standard output");
    text.begin(&table()).unwrap();
    let error = text.finish().unwrap_err();
    assert_eq!((error.kind(), error.message()), (ErrorKind::Io, "it could not be written: broken pipe"));
    let cause = std::error::Error::source(&error).and_then(|cause| cause.downcast_ref::<io::Error>());
    assert_eq!(cause.map(io::Error::kind), Some(io::ErrorKind::BrokenPipe));
    assert_eq!(text.name(), "standard output");
    drop(text);
    assert_eq!((kept.text().len(), *kept.writes.lock().unwrap()), (10, 2));
}

/// However long the rows are, what is gathered is not much more than one of them.
#[test]
fn memory_is_bounded() {
    let kept = Kept::default();
    let mut text = text_of(CqlTextOptions::of(by_id()).only(CqlParts::Rows), &kept);
    text.begin(&table()).unwrap();
    let long = vec![b'x'; 40_000];
    let rows: Vec<(i32, &[u8])> = (0..200).map(|id| (id, long.as_slice())).collect();
    text.write(batch(0, &rows)).unwrap();
    assert!(text.out.text().capacity() < 4 * GATHERED_BYTES, "{}", text.out.text().capacity());
    assert!(*kept.writes.lock().unwrap() >= 40);
    text.finish().unwrap();
    assert_eq!(kept.text().lines().count(), 200);
}

/// A column of numbers.
fn numbers(leaf: usize, values: &[Option<i32>]) -> ColumnBatch {
    ColumnBatch {
        leaf,
        rows: values.len(),
        nulls: values.iter().filter(|value| value.is_none()).count(),
        validity: Some(values.iter().map(Option::is_some).collect()),
        values: Values::Int32(values.iter().map(|value| value.unwrap_or(0)).collect::<Vec<_>>().into()),
        layout: Layout::Spaced,
        levels: None,
        provisional: false,
    }
}

#[test]
fn a_table_is_as_its_source_defines_it() {
    let names = ["p", "c", "s", "v"];
    let fields = names.map(|name| FieldDef::new(name, FieldType::Leaf(PhysicalType::Int32, None)));
    let mut table = Table::new("t", Arc::new(Schema::of_fields(&fields).unwrap()));
    let class = |name| if name == "c" { "ReversedType(Int32Type)" } else { "Int32Type" };
    let kinds = ["partition_key", "clustering", "static", "regular"];
    let columns = names.iter().zip(kinds).map(|(name, kind)| {
        format!(r#"{{"name":"{name}","kind":"{kind}","type":"int","class":"{}"}}"#, class(*name))
    });
    let columns = format!("[{}]", columns.collect::<Vec<_>>().join(","));
    let pairs = [
        ("marquetry.mapping", "logical"),
        ("marquetry.mapping.version", "1"),
        ("marquetry.table.columns", &columns),
    ];
    let pair = |(key, value): (&str, &str)| marquetry_parquet::format::KeyValue {
        key: key.to_owned(),
        value: Some(Bytes::copy_from_slice(value.as_bytes())),
    };
    table.key_values = pairs.map(pair).to_vec();
    let rows = |v: Option<i32>| Batch {
        row_group: 0,
        first_row: 0,
        rows: 2,
        columns: vec![
            numbers(0, &[Some(1), Some(5)]),
            numbers(1, &[Some(2), None]),
            numbers(2, &[Some(3), Some(6)]),
            numbers(3, &[Some(4), v]),
        ],
    };
    for nulls in [marquetry_scylla::bridge::Nulls::Unset, marquetry_scylla::bridge::Nulls::Null] {
        let kept = Kept::default();
        let options = MappingOptions { nulls, ..MappingOptions::default() };
        let mut text = text_of(CqlTextOptions::of(options), &kept);
        text.begin(&table).unwrap();
        text.write(rows(None)).unwrap();
        text.finish().unwrap();
        // A partition that has only a static value has no clustering value.
        assert_eq!(
            kept.text(),
            "CREATE TABLE ks.t (\n    p int,\n    c int,\n    s int STATIC,\n    v int,\n    PRIMARY KEY (p, c)\n) \
             WITH CLUSTERING ORDER BY (c DESC);\nINSERT INTO ks.t (p, c, s, v) VALUES (1, 2, 3, 4);\n\
             INSERT INTO ks.t (p, s) VALUES (5, 6);\n"
        );
    }
    let kept = Kept::default();
    let mut text = text_of(CqlTextOptions::of(MappingOptions::default()), &kept);
    text.begin(&table).unwrap();
    let error = text.write(rows(Some(7))).unwrap_err();
    assert_eq!((error.kind(), error.place().row), (ErrorKind::Conversion, Some(1)));
    // A key that is given is the table's.
    let key = MappingOptions { key: Some(KeySpec::parse("p").unwrap()), ..MappingOptions::default() };
    let mut text = text_of(CqlTextOptions::of(key).only(CqlParts::Schema), &kept);
    text.begin(&table).unwrap();
    text.finish().unwrap();
    assert!(kept.text().ends_with("    v int,\n    PRIMARY KEY (p)\n);\n"), "{}", kept.text());
    // Writes are no rows.
    let full = pair(("marquetry.mapping", "full"));
    table.key_values[0] = full;
    let error = text_of(CqlTextOptions::of(MappingOptions::default()), &kept).begin(&table).unwrap_err();
    assert_eq!(
        (error.kind(), error.detail()),
        (ErrorKind::Unsupported, Some(Detail::AdmittedBy(&["mapping"])))
    );
}
