//! Objects of Arrow: the same answers as of a Parquet object, what pyarrow writes, and whatever hostile bytes say, an answer.
#![allow(clippy::cast_possible_truncation, reason = "random bytes")]

use std::process::Command;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Decimal128Type, Int64Type};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringViewArray};
use arrow_buffer::Buffer;
use arrow_ipc::writer::StreamWriter;
use marquetry_ceph::{Format, Method, RequestField};

use super::skyhook::{QUERIES, answers, hostile, one_call, parquet, rows_of, same_answers, table, together};

/// How a stream ends.
const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
/// What tests/data/make.py makes.
const STREAM: &[u8] = include_bytes!("../data/pyarrow.arrows");
const FILE: &[u8] = include_bytes!("../data/pyarrow.arrow");

fn stream(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.into_inner().unwrap()
}

/// The streams of all calls as one, as the client puts them together.
fn joined(streams: &[Vec<u8>]) -> Vec<u8> {
    let schema = 8 + u32::from_le_bytes(streams[0][4..8].try_into().unwrap()) as usize;
    let mut all = streams[0][..schema].to_vec();
    for stream in streams {
        all.extend_from_slice(stream[schema..].strip_suffix(&END).unwrap());
    }
    [all.as_slice(), &END].concat()
}

fn format(format: Format) -> [u8; 1] {
    [format as u8]
}

#[test]
fn rows_go_round_by_all_three_forms() {
    let columns = parquet(&table(3000));
    let all = together(&answers(Method::Query, &columns, &[]).unwrap().0);
    let to = |object: &[u8], form: Format| {
        let (data, rows) =
            answers(Method::Transform, object, &[(RequestField::Format, &format(form))]).unwrap();
        assert_eq!(rows, 3000, "{form:?}");
        data
    };
    let of_columns = to(&columns, Format::Arrow);
    assert!(of_columns.len() > 3, "{} calls", of_columns.len());
    let arrow = joined(&of_columns);
    let of_rows = joined(&to(&rows_of(&table(3000)), Format::Arrow));
    for object in [&arrow, &of_rows, &arrow[..arrow.len() - END.len()].to_vec()] {
        let back = together(&answers(Method::Query, object, &[]).unwrap().0);
        assert_eq!(back.columns(), all.columns());
    }
    // And from Arrow the others.
    let files: Vec<Vec<u8>> = to(&arrow, Format::Parquet);
    assert!(files.len() > 1);
    let again: Vec<Vec<u8>> =
        files.iter().flat_map(|file| answers(Method::Query, file, &[]).unwrap().0).collect();
    assert_eq!(together(&again).columns(), all.columns());
    let rows = to(&arrow, Format::Rows).concat();
    assert_eq!(together(&answers(Method::Query, &rows, &[]).unwrap().0).columns(), all.columns());
    let error =
        answers(Method::Transform, &arrow, &[(RequestField::Format, &format(Format::Arrow))]).unwrap_err();
    assert!(error.starts_with('2'), "{error}");
}

#[test]
fn queries_of_arrow_answer_what_those_of_columns_do() {
    let columns = parquet(&table(2000));
    let arrow = joined(&answers(Method::Transform, &columns, &[(RequestField::Format, &[1])]).unwrap().0);
    // One record batch, in which calls end.
    let one = stream(&[together(std::slice::from_ref(&arrow))]);
    let three = 3_u64.to_le_bytes();
    let more: [&[(RequestField, &[u8])]; 3] = [
        &[(RequestField::Format, &[Format::Count as u8])],
        &[(RequestField::Leaf, b"is"), (RequestField::Leaf, b"int")],
        &[
            (RequestField::Where, b"short >= 5"),
            (RequestField::Column, b"note"),
            (RequestField::Column, b"real"),
        ],
    ];
    for object in [&arrow, &one] {
        same_answers(object, &columns, &QUERIES);
        same_answers(object, &columns, &more);
        let limited: [(RequestField, &[u8]); 2] =
            [(RequestField::Limit, &three), (RequestField::Where, b"tiny > 100")];
        assert_eq!(answers(Method::Query, object, &limited).unwrap().1, 3);
        let sums: [(RequestField, &[u8]); 4] = [
            (RequestField::Aggregate, b"count(*)"),
            (RequestField::Aggregate, b"max(short)"),
            (RequestField::GroupBy, b"city"),
            (RequestField::Where, b"id >= 0"),
        ];
        let sums_of = |object: &[u8]| {
            let all = together(&answers(Method::Query, object, &sums).unwrap().0);
            let counts = all.column(1).as_primitive::<arrow_array::types::UInt64Type>();
            counts.values().iter().sum::<u64>()
        };
        assert_eq!((sums_of(object), sums_of(&columns)), (2000, 2000));
        let count = [(RequestField::Aggregate, &b"count(*)"[..])];
        assert_eq!(answers(Method::Query, object, &count).unwrap().0.len(), 1);
        for wrong in [&b"speed > 7"[..], b"id ="] {
            let refused = answers(Method::Query, object, &[(RequestField::Where, wrong)]).unwrap_err();
            assert!(refused.starts_with('5'), "{refused}");
        }
    }
}

#[test]
fn pyarrow_reads_what_transform_makes() {
    let Some(python) = marquetry_testing::python() else { return };
    let streams =
        answers(Method::Transform, &parquet(&table(3000)), &[(RequestField::Format, &[1])]).unwrap().0;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.arrows");
    std::fs::write(&path, joined(&streams)).unwrap();
    let script = "import sys, pyarrow.ipc as ipc\n\
        table = ipc.open_stream(sys.argv[1]).read_all()\n\
        table.validate(full=True)\n\
        rows = table.num_rows\n\
        print(rows, table['id'][rows - 1], table['city'][7], table['tiny'][3], sep='|')";
    let ran = Command::new(python).args(["-c", script]).arg(&path).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    assert_eq!(String::from_utf8_lossy(&ran.stdout).trim(), "3000|2999008997|a city 7|None");
}

/// Fifty rows in three record batches, of which one is empty.
#[test]
fn what_pyarrow_writes_is_read() {
    for object in [STREAM, FILE] {
        let asked: [(RequestField, &[u8]); 9] = [
            (RequestField::Column, b"id"),
            (RequestField::Column, b"city"),
            (RequestField::Column, b"day"),
            (RequestField::Column, b"tags"),
            (RequestField::Column, b"place"),
            (RequestField::Column, b"note"),
            (RequestField::Column, b"price"),
            (RequestField::Column, b"none"),
            (RequestField::Column, b"key"),
        ];
        let all = together(&answers(Method::Query, object, &asked).unwrap().0);
        assert_eq!(all.num_rows(), 50);
        assert_eq!(all.column(0).as_primitive::<Int64Type>().values().to_vec(), (0..50).collect::<Vec<_>>());
        let cities = all.column(1).as_string::<i32>();
        assert!(cities.is_null(3) && cities.value(44) == "city 4", "{cities:?}");
        assert_eq!(all.column(2).as_primitive::<Date32Type>().value(31), 31);
        let tags = all.column(3).as_list::<i32>();
        assert!(tags.is_null(8) && tags.value(47).as_string::<i32>().value(1) == "tag 1");
        assert_eq!(all.column(4).as_struct().column(1).len(), 50);
        assert_eq!(all.column(5).as_string_view().value(49), "a note that is longer than a view, 49");
        assert_eq!(all.column(6).as_primitive::<Decimal128Type>().value(9), 900);
        assert_eq!(all.column(8).as_fixed_size_binary().value(7), [7; 4]);
        // Of a list and a struct, rows are found; a dictionary is said to be one, and hinders nothing else.
        let counted = |predicate: &[u8]| {
            let fields: [(RequestField, &[u8]); 2] =
                [(RequestField::Where, predicate), (RequestField::Format, &[3])];
            answers(Method::Query, object, &fields).map(|(_, rows)| rows)
        };
        assert_eq!(counted(b"place.lat >= 20 AND at < '1970-01-01T00:00:00.045Z'").unwrap(), 5);
        assert_eq!(counted(b"fare IS NULL").unwrap(), 17);
        assert_eq!(counted(b"tags = 'tag 1' AND \"is\" = false").unwrap(), 8);
        let error = counted(b"kind = 'a'").unwrap_err();
        assert!(
            error.starts_with('2') && error.contains("dictionaries") && error.contains("kind"),
            "{error}"
        );
        let part = answers(Method::Query, object, &[(RequestField::Column, b"place.lat")]).unwrap_err();
        assert!(part.starts_with('2'), "{part}");
        for form in [Format::Parquet, Format::Rows] {
            let error = answers(Method::Transform, object, &[(RequestField::Format, &[form as u8])]);
            assert!(error.unwrap_err().starts_with('2'));
        }
    }
}

#[test]
fn a_call_reads_the_columns_that_are_wanted() {
    let long = "x".repeat(200);
    let batches: Vec<RecordBatch> = (0..4_i64)
        .map(|batch| {
            let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(batch * 1000..(batch + 1) * 1000));
            let notes: ArrayRef =
                Arc::new(StringViewArray::from_iter_values((0..1000).map(|at| format!("{long}{at}"))));
            RecordBatch::try_from_iter([("id", ids), ("note", notes)]).unwrap()
        })
        .collect();
    let object = stream(&batches);
    let count = (RequestField::Format, &[Format::Count as u8][..]);
    let by_id = one_call(&object, &[(RequestField::Where, b"id >= 3990"), count]);
    let by_note = one_call(&object, &[(RequestField::Where, b"note >= 'y'"), count]);
    assert_eq!((by_id.1, by_note.1), (10, 0));
    assert!(by_id.2 * 3 < by_note.2, "{} and {} units", by_id.2, by_note.2);
}

/// Views of which each shows the same text: few bytes that say that they are many.
#[test]
fn texts_that_many_views_show_are_counted_each_time() {
    let text = vec![b'x'; 1 << 20];
    let same = |rows: usize| {
        let view = [1_u32 << 20, u32::from_le_bytes(*b"xxxx"), 0, 0].map(u32::to_le_bytes).concat();
        let views = u128::from_le_bytes(view.try_into().unwrap());
        let array: ArrayRef = Arc::new(
            StringViewArray::try_new(vec![views; rows].into(), vec![Buffer::from(text.clone())], None)
                .unwrap(),
        );
        stream(&[RecordBatch::try_from_iter([("text", array)]).unwrap()])
    };
    let (data, rows) = answers(Method::Query, &same(7), &[]).unwrap();
    assert_eq!((rows, together(&data).num_rows()), (7, 7));
    assert!(data.len() > 3, "{} calls", data.len());
    let error = answers(Method::Query, &same(1000), &[]).unwrap_err();
    assert!(error.starts_with('3'), "{error}");
}

#[test]
fn what_is_not_read_is_said() {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..(2 << 20)));
    let error = answers(Method::Query, &stream(&[RecordBatch::try_from_iter([("id", ids)]).unwrap()]), &[]);
    assert!(error.unwrap_err().starts_with('3'), "a record batch of two million rows");
    let whole = stream(&[table(10)]);
    for length in [0, 3, 8, 12, 100, whole.len() - END.len() - 1] {
        let error = answers(Method::Query, &whole[..length], &[]).unwrap_err();
        assert!(error.starts_with('1'), "{length} bytes: {error}");
    }
    // Neither an end nor a footer is needed.
    assert_eq!(answers(Method::Query, &whole[..whole.len() - END.len()], &[]).unwrap().1, 10);
}

/// Bytes of an object of Arrow, changed at random.
#[test]
fn hostile_arrow_is_answered() {
    let ours = stream(&[table(60), table(20)]);
    let fields: [&[(RequestField, &[u8])]; 3] = [
        &[],
        &[(RequestField::Where, b"id > 5")],
        &[
            (RequestField::Column, b"id"),
            (RequestField::Column, b"city"),
            (RequestField::Where, b"fare IS NOT NULL"),
        ],
    ];
    hostile(&[&ours, STREAM, FILE], (&fields, 1500), 1200, 11);
}
