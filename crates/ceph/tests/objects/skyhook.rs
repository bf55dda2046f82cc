//! Objects of rows: the same rows both ways, the same answers as of a Parquet object, and whatever hostile bytes say, an answer.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "values of a test's rows, which are made to fit or to wrap"
)]

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Float64Type, Int64Type, UInt64Type};
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array, Int32Array,
    Int64Array, RecordBatch, StringArray, UInt16Array, UInt64Array,
};
use arrow_ipc::reader::StreamReader;
use arrow_select::concat::concat_batches;
use flatbuffers::{FlatBufferBuilder, WIPOffset};
use marquetry::Writer;
use marquetry::tables::parquet::ParquetOptions;
use marquetry_arrow::FromArrow;
use marquetry_base::{Fields, Frame};

use marquetry_ceph::{ANSWER, AnswerField, Format, Method, REQUEST, RequestField, call};

/// A column of each type that rows have, with nulls.
pub(crate) fn table(rows: i32) -> RecordBatch {
    let some = |row: i32| row % 7 != 3;
    let columns: [(&str, ArrayRef); 11] = [
        ("id", Arc::new(Int64Array::from_iter_values((0..rows).map(|row| i64::from(row) * 1_000_003)))),
        (
            "tiny",
            Arc::new(Int8Array::from_iter((0..rows).map(|row| some(row).then(|| (row % 256 - 128) as i8)))),
        ),
        ("int", Arc::new(Int32Array::from_iter((0..rows).map(|row| some(row).then_some(-row))))),
        ("short", Arc::new(UInt16Array::from_iter_values((0..rows).map(|row| (row % 65_536) as u16)))),
        ("large", Arc::new(UInt64Array::from_iter_values((0..rows).map(|row| u64::MAX - row as u64)))),
        ("is", Arc::new(BooleanArray::from_iter((0..rows).map(|row| some(row).then_some(row % 2 == 0))))),
        ("real", Arc::new(Float32Array::from_iter_values((0..rows).map(|row| row as f32 / 3.0)))),
        (
            "fare",
            Arc::new(Float64Array::from_iter((0..rows).map(|row| some(row).then(|| f64::from(row) / 3.0)))),
        ),
        ("day", Arc::new(Date32Array::from_iter((0..rows).map(|row| some(row).then_some(row - 500))))),
        (
            "city",
            Arc::new(StringArray::from_iter(
                (0..rows).map(|row| some(row).then(|| format!("a city {}", row % 50))),
            )),
        ),
        (
            "note",
            Arc::new(StringArray::from_iter_values((0..rows).map(|row| "x".repeat(row as usize % 300)))),
        ),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap()
}

/// The same as a Parquet object.
pub(crate) fn parquet(batch: &RecordBatch) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.parquet");
    let schema = FromArrow::new(&batch.schema()).unwrap().schema().as_ref().clone();
    let mut options = ParquetOptions::default();
    options.write.row_group_rows = 700;
    let mut writer = Writer::with(&path, schema, options).unwrap();
    writer.write_arrow(batch).unwrap();
    writer.finish().unwrap();
    std::fs::read(path).unwrap()
}

/// The same as an object of rows.
pub(crate) fn rows_of(batch: &RecordBatch) -> Vec<u8> {
    answers(Method::Transform, &parquet(batch), &[(RequestField::Format, &[Format::Rows as u8])])
        .unwrap()
        .0
        .concat()
}

/// The data of all calls, by a method, with small shares.
pub(crate) fn answers(
    method: Method,
    object: &[u8],
    fields: &[(RequestField, &[u8])],
) -> Result<(Vec<Vec<u8>>, u64), String> {
    let (mut data, mut rows, mut cursor) = (Vec::new(), 0, None::<Vec<u8>>);
    loop {
        let mut frame = Frame::new(REQUEST);
        for (number, bytes) in fields {
            frame.push(*number as u16, bytes);
        }
        frame
            .push_u64(RequestField::Units as u16, 400_000)
            .push_u64(RequestField::AnswerBytes as u16, 60_000);
        if let Some(cursor) = cursor.take() {
            frame.push(RequestField::Cursor as u16, &cursor);
        }
        let answer = call(method, &mut &*object, &frame.into_bytes());
        for field in Fields::of(&answer, ANSWER).unwrap() {
            let field = field.unwrap();
            let is = |known: AnswerField| known as u16 == field.number;
            if is(AnswerField::Data) {
                data.push(field.bytes.to_vec());
            } else if is(AnswerField::Rows) {
                rows += field.u64().unwrap();
            } else if is(AnswerField::Cursor) {
                cursor = Some(field.bytes.to_vec());
            } else if is(AnswerField::Error) {
                return Err(format!("{} {}", field.bytes[0], String::from_utf8_lossy(&field.bytes[1..])));
            }
        }
        assert!(data.len() < 1000, "a query that does not end");
        if cursor.is_none() {
            return Ok((data, rows));
        }
    }
}

pub(crate) fn together(data: &[Vec<u8>]) -> RecordBatch {
    let mut batches = Vec::new();
    let mut schema = None;
    for data in data {
        let stream = StreamReader::try_new(data.as_slice(), None).unwrap();
        schema = Some(stream.schema());
        batches.extend(stream.map(Result::unwrap));
    }
    concat_batches(&schema.unwrap(), &batches).unwrap()
}

#[test]
fn rows_of_all_types_come_back_as_they_were() {
    let columns = parquet(&table(3000));
    let (pieces, rows) =
        answers(Method::Transform, &columns, &[(RequestField::Format, &[Format::Rows as u8])]).unwrap();
    assert_eq!(rows, 3000);
    assert!(pieces.len() > 3, "{} calls", pieces.len());
    let object = pieces.concat();
    let all = together(&answers(Method::Query, &columns, &[]).unwrap().0);
    let back = together(&answers(Method::Query, &object, &[]).unwrap().0);
    assert_eq!(back.columns(), all.columns());
    // As Parquet, and from that.
    let parquet = [(RequestField::Format, &[Format::Parquet as u8][..])];
    let (files, rows) = answers(Method::Transform, &object, &parquet).unwrap();
    assert_eq!(rows, 3000);
    let again: Vec<Vec<u8>> =
        files.iter().flat_map(|file| answers(Method::Query, file, &[]).unwrap().0).collect();
    assert_eq!(together(&again).columns(), all.columns());
    let decimals = Decimal128Array::from(vec![Some(12_345), None]).with_precision_and_scale(9, 2).unwrap();
    let decimals = RecordBatch::try_from_iter([("price", Arc::new(decimals) as ArrayRef)]).unwrap();
    let back = together(&answers(Method::Query, &rows_of(&decimals), &[]).unwrap().0);
    assert_eq!(back.column(0).as_string_view().iter().collect::<Vec<_>>(), [Some("123.45"), None]);
}

/// An object that the FlatBuffers library for Python (25.12) made: a piece that is deleted, and one of four rows, of which one is.
#[test]
fn what_the_library_writes_is_read() {
    let object = include_bytes!("../data/library.rows");
    let all = together(&answers(Method::Query, object, &[]).unwrap().0);
    assert_eq!(all.column(0).as_primitive::<Int64Type>().values().to_vec(), [7, -8, 1 << 40]);
    assert_eq!(all.column(1).as_string_view().iter().collect::<Vec<_>>(), [Some("Rome"), None, Some("")]);
    let fares: Vec<Option<f64>> = all.column(2).as_primitive::<Float64Type>().iter().collect();
    assert_eq!(fares, [Some(1.5), Some(0.1), None]);
    let days: Vec<Option<i32>> = all.column(3).as_primitive::<Date32Type>().iter().collect();
    assert_eq!(days, [Some(19_782), None, Some(-719_162)]);
}

/// The fields of a request.
pub(crate) type Asked<'a> = &'a [(RequestField, &'a [u8])];

/// Queries of [`table`].
pub(crate) const QUERIES: [Asked<'static>; 5] = [
    &[
        (RequestField::Column, b"city"),
        (RequestField::Column, b"id"),
        (RequestField::Where, b"fare > 400 AND city IS NOT NULL"),
    ],
    &[(RequestField::Where, b"day = '1970-01-11' OR note = 'xx'")],
    &[(RequestField::Where, b"tiny IS NULL"), (RequestField::Column, b"large")],
    &[(RequestField::Where, b"city LIKE 'a city 4%'"), (RequestField::Format, &[Format::Count as u8])],
    &[(RequestField::Where, b"id < 0")],
];

/// Queries of an object find what they do in a Parquet object of the same rows.
pub(crate) fn same_answers(object: &[u8], columns: &[u8], queries: &[Asked<'_>]) {
    for fields in queries {
        let (expected, count) = answers(Method::Query, columns, fields).unwrap();
        let (found, found_count) = answers(Method::Query, object, fields).unwrap();
        assert_eq!(found_count, count, "{fields:?}");
        if !expected.is_empty() && count > 0 {
            assert_eq!(together(&found).columns(), together(&expected).columns(), "{fields:?}");
        }
    }
}

#[test]
fn queries_of_rows_answer_what_those_of_columns_do() {
    let columns = parquet(&table(2000));
    let rows = [(RequestField::Format, &[Format::Rows as u8][..])];
    let object = answers(Method::Transform, &columns, &rows).unwrap().0.concat();
    same_answers(&object, &columns, &QUERIES);
    let sums: [(RequestField, &[u8]); 4] = [
        (RequestField::Aggregate, b"count(*)"),
        (RequestField::Aggregate, b"sum(short)"),
        (RequestField::GroupBy, b"city"),
        (RequestField::Where, b"id >= 0"),
    ];
    let all = together(&answers(Method::Query, &object, &sums).unwrap().0);
    assert_eq!(all.column(1).as_primitive::<UInt64Type>().values().iter().sum::<u64>(), 2000);
    for wrong in [&b"speed > 7"[..], b"id ="] {
        assert!(
            answers(Method::Query, &object, &[(RequestField::Where, wrong)]).unwrap_err().starts_with('5')
        );
    }
}

/// An object of one piece whose rows are all the same, with values that all refer to one text.
fn one_text(rows: usize, columns: usize, text_bytes: usize) -> Vec<u8> {
    // A text, a vector of distances back to it and of their types, and the distance back to that: all in four bytes.
    let length = |number: usize| u32::try_from(number).unwrap().to_le_bytes();
    let mut row = length(text_bytes).to_vec();
    row.resize(4 + text_bytes, b'x');
    row.resize((row.len() + 4) / 4 * 4, 0);
    row.extend_from_slice(&length(columns));
    let vector = row.len();
    for column in 0..columns {
        row.extend_from_slice(&length(vector + 4 * column - 4));
    }
    row.resize(row.len() + columns, 5 << 2 | 2);
    row.extend_from_slice(&length(row.len() - vector));
    row.extend_from_slice(&[10 << 2 | 2, 4]);
    let slot = |field: u16| 4 + 2 * field;
    let mut table = FlatBufferBuilder::new();
    let (data, nulls) = (table.create_vector(&row), table.create_vector(&[0_u64; 2]));
    let start = table.start_table();
    table.push_slot_always::<WIPOffset<_>>(slot(1), nulls);
    table.push_slot_always::<WIPOffset<_>>(slot(2), data);
    let record = table.end_table(start);
    let records = table.create_vector(&vec![record; rows]);
    let schema: String = (0..columns).map(|at| format!("{at} 15 0 1 c{at}\n")).collect();
    let schema = table.create_string(&schema);
    let start = table.start_table();
    table.push_slot_always::<WIPOffset<_>>(slot(4), schema);
    table.push_slot_always::<WIPOffset<_>>(slot(8), records);
    table.push_slot_always::<u32>(slot(9), u32::try_from(rows).unwrap());
    let end = table.end_table(start);
    table.finish_minimal(end);
    let mut meta = FlatBufferBuilder::new();
    let data = meta.create_vector(table.finished_data());
    let start = meta.start_table();
    meta.push_slot_always::<WIPOffset<_>>(slot(1), data);
    meta.push_slot_always::<i32>(slot(0), 1);
    let end = meta.end_table(start);
    meta.finish_minimal(end);
    [&length(meta.finished_data().len()), meta.finished_data()].concat()
}

/// What one call answers: the length of its data, its rows, its units of work, and where it goes on.
pub(crate) fn one_call(
    object: &[u8],
    fields: &[(RequestField, &[u8])],
) -> (usize, u64, u64, Option<Vec<u8>>) {
    let mut frame = Frame::new(REQUEST);
    for (number, bytes) in fields {
        frame.push(*number as u16, bytes);
    }
    let answer = call(Method::Query, &mut &*object, &frame.into_bytes());
    let (mut data, mut rows, mut units, mut cursor) = (0, 0, 0, None);
    for field in Fields::of(&answer, ANSWER).unwrap() {
        let field = field.unwrap();
        let is = |known: AnswerField| known as u16 == field.number;
        if is(AnswerField::Data) {
            data = field.bytes.len();
        } else if is(AnswerField::Rows) {
            rows = field.u64().unwrap();
        } else if is(AnswerField::Work) {
            units = u64::from_le_bytes(field.bytes[..8].try_into().unwrap());
        } else if is(AnswerField::Cursor) {
            cursor = Some(field.bytes.to_vec());
        } else if is(AnswerField::Error) {
            panic!("{}", String::from_utf8_lossy(&field.bytes[1..]));
        }
    }
    (data, rows, units, cursor)
}

/// Two megabytes that say that they are gigabytes.
#[test]
fn texts_that_many_values_refer_to_are_counted_each_time() {
    let object = one_text(5000, 2, 1 << 20);
    assert!(object.len() < 2 << 20);
    // A call ends after a row or two, by its share or by its answer, and tells what that took.
    let (data, rows, units, cursor) = one_call(&object, &[]);
    assert!(data > 2 << 20 && data < 5 << 20 && rows < 3 && cursor.is_some(), "{data} bytes of {rows} rows");
    assert!(units > 800_000, "{units} units");
    let count = (RequestField::Format, &[Format::Count as u8][..]);
    let (_, rows, units, cursor) = one_call(&object, &[(RequestField::Where, b"c1 IS NOT NULL"), count]);
    assert!(rows > 0 && rows < 10 && cursor.is_some(), "{rows} rows by {units} units");
    // A call goes on in the piece, row by row.
    let object = one_text(7, 2, 1 << 20);
    let (data, rows) = answers(Method::Query, &object, &[]).unwrap();
    assert_eq!((rows, together(&data).num_rows()), (7, 7));
    let error = answers(Method::Query, &one_text(1, 100, 1 << 20), &[]).unwrap_err();
    assert!(error.starts_with('3'), "{error}");
    assert_eq!(answers(Method::Query, &one_text(3, 128, 9), &[]).unwrap().1, 3);
    let error = answers(Method::Query, &one_text(3, 129, 9), &[]).unwrap_err();
    assert!(error.starts_with('2'), "{error}");
}

#[test]
fn deleted_pieces_end_a_call_that_has_spent_its_share() {
    let library = include_bytes!("../data/library.rows");
    let length = u32::from_le_bytes(library[..4].try_into().unwrap()) as usize;
    let deleted = &library[..4 + length];
    let object = [deleted.repeat(3000).as_slice(), library].concat();
    let (data, rows, units, cursor) = one_call(&object, &[]);
    assert_eq!((data, rows), (0, 0));
    assert!(cursor.is_some() && units < 3_000_000, "{units} units");
    let (data, rows) = answers(Method::Query, &object, &[]).unwrap();
    assert_eq!((rows, together(&data).num_rows()), (3, 3));
}

/// Bytes of objects, changed at random, those at the beginning more often: each call answers, and some with an error.
pub(crate) fn hostile(objects: &[&[u8]], (queries, rounds): (&[Asked<'_>], usize), head: usize, seed: u64) {
    let mut random = super::random(seed);
    let (mut answered, mut refused) = (0, 0);
    for round in 0..rounds {
        let mut object = objects[round % objects.len()].to_vec();
        for _ in 0..=random(3) {
            let at = random(if round % 2 == 0 { object.len() } else { head.min(object.len()) });
            object[at] = random(256) as u8;
        }
        if round % 5 == 0 {
            object.truncate(random(object.len()));
        }
        match answers(Method::Query, &object, queries[round / objects.len() % queries.len()]) {
            Ok(_) => answered += 1,
            Err(error) => {
                assert!(!error.starts_with('7'), "{error}");
                refused += 1;
            }
        }
    }
    assert!(answered > rounds / 12 && refused > rounds / 12, "{answered} answered, {refused} refused");
}

#[test]
fn hostile_rows_are_answered() {
    hostile(&[&rows_of(&table(60))], (&[&[(RequestField::Where, b"city IS NOT NULL")]], 600), 200, 5);
}
