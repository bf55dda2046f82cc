//! What a request may ask for, and an object may have, is bounded: no call takes an OSD's memory, or its thread, for long.

use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, StructArray};
use arrow_ipc::reader::StreamReader;
use arrow_schema::{DataType, Field};
use marquetry::Writer;
use marquetry::tables::parquet::ParquetOptions;
use marquetry_arrow::FromArrow;
use marquetry_base::{Fields, Frame, Result};
use marquetry_parquet::format::{Compression, Encoding};

use marquetry_ceph::request::Share;
use marquetry_ceph::{ANSWER, AnswerField, Format, Method, REQUEST, RadosObject, RequestField, call, change};

/// A Parquet file of these columns.
fn parquet(columns: Vec<(String, ArrayRef)>) -> Vec<u8> {
    parquet_by(columns, ParquetOptions::default())
}

fn parquet_by(columns: Vec<(String, ArrayRef)>, options: ParquetOptions) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.parquet");
    let schema = FromArrow::new(&batch.schema()).unwrap().schema().as_ref().clone();
    let mut writer = Writer::with(&path, schema, options).unwrap();
    writer.write_arrow(&batch).unwrap();
    writer.finish().unwrap();
    std::fs::read(path).unwrap()
}

/// So many columns `c0`, `c1`, … of so many different integers.
fn wide(columns: usize, rows: i64) -> Vec<(String, ArrayRef)> {
    let column = |at| (format!("c{at}"), Arc::new(Int64Array::from_iter_values(0..rows)) as ArrayRef);
    (0..columns).map(column).collect()
}

type Asked<'a> = (RequestField, &'a str);

fn request(fields: &[Asked<'_>]) -> Frame {
    let mut frame = Frame::new(REQUEST);
    for (number, text) in fields {
        frame.push(*number as u16, text.as_bytes());
    }
    frame
}

#[derive(Debug, Default)]
struct Answered {
    batches: Vec<RecordBatch>,
    data: Vec<u8>,
    rows: u64,
    cursor: Option<Vec<u8>>,
    units: u64,
    error: Option<(u8, String)>,
}

fn read(answer: &[u8]) -> Answered {
    let mut read = Answered::default();
    for field in Fields::of(answer, ANSWER).unwrap() {
        let field = field.unwrap();
        let is = |known: AnswerField| known as u16 == field.number;
        if is(AnswerField::Data) {
            read.data = field.bytes.to_vec();
            if let Ok(stream) = StreamReader::try_new(field.bytes, None) {
                read.batches = stream.collect::<Result<Vec<_>, _>>().unwrap();
            }
        } else if is(AnswerField::Rows) {
            read.rows = field.u64().unwrap();
        } else if is(AnswerField::Cursor) {
            read.cursor = Some(field.bytes.to_vec());
        } else if is(AnswerField::Work) {
            read.units = u64::from_le_bytes(field.bytes[..8].try_into().unwrap());
        } else if is(AnswerField::Error) {
            read.error = Some((field.bytes[0], String::from_utf8(field.bytes[1..].to_vec()).unwrap()));
        }
    }
    read
}

/// The answers of all calls, or of as many.
fn calls(method: Method, mut object: &[u8], frame: &Frame, most: usize) -> Vec<Answered> {
    let mut answers: Vec<Answered> = Vec::new();
    loop {
        let mut frame = frame.clone();
        if let Some(cursor) = answers.last().and_then(|last| last.cursor.as_deref()) {
            frame.push(RequestField::Cursor as u16, cursor);
        }
        let answer = read(&call(method, &mut object, &frame.into_bytes()));
        assert_eq!(answer.error, None);
        let is_last = answer.cursor.is_none();
        answers.push(answer);
        if is_last || answers.len() == most {
            return answers;
        }
        assert!(answers.len() < 10_000, "calls that do not end");
    }
}

/// The largest memory that this process had, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).map_or(0, |kib| kib << 10)
}

#[test]
fn requests_have_so_many_fields_and_no_more() {
    let object = parquet(wide(64, 10));
    let ask = |fields: &[Asked<'_>]| {
        read(&call(Method::Query, &mut object.as_slice(), &request(fields).into_bytes()))
    };
    let refused = |fields: &[Asked<'_>], kind: u8, words: &str| {
        let error = ask(fields).error.expect("an error");
        assert!(error.0 == kind && error.1.contains(words), "{error:?}, not {words}");
    };
    let extremes: Vec<String> =
        (0..128).map(|at| format!("{}(c{})", ["min", "max"][at % 2], at / 2)).collect();
    let names: Vec<String> = (0..64).map(|at| format!("c{at}")).collect();
    let mut aggregates: Vec<Asked<'_>> =
        extremes.iter().map(|text| (RequestField::Aggregate, text.as_str())).collect();
    let answer = ask(&aggregates);
    assert_eq!((answer.error, answer.batches[0].num_columns()), (None, 128));
    aggregates.push((RequestField::Aggregate, "count(*)"));
    refused(&aggregates, 3, "more than 128 aggregates");

    let mut groups: Vec<Asked<'_>> = vec![(RequestField::Aggregate, "count(*)")];
    groups.extend(names[..32].iter().map(|name| (RequestField::GroupBy, name.as_str())));
    assert_eq!(ask(&groups).rows, 10);
    groups.push((RequestField::GroupBy, "c32"));
    refused(&groups, 3, "more than 32 columns that make groups");
    groups.truncate(2);
    groups.push((RequestField::GroupBy, "\"c0\""));
    // Once more changes nothing of the groups.
    let answer = ask(&groups);
    assert_eq!((answer.error, answer.batches[0].num_columns()), (None, 3));
    let twice = [(RequestField::Aggregate, "min(c1)"), (RequestField::Aggregate, "MIN( c1 )")];
    refused(&twice, 5, "named twice");
    // What a mean is made of may be asked for, too.
    let mean = ["avg(c1)", "sum(c1)", "count(c1)"].map(|text| (RequestField::Aggregate, text));
    assert_eq!(ask(&mean).batches[0].num_columns(), 4);

    refused(&vec![(RequestField::Column, "c0"); 10_001], 3, "more than 10000 columns");
    refused(&vec![(RequestField::Leaf, "c0"); 10_001], 3, "more than 10000 columns");
    let path = vec!["c0"; 257].join(".");
    refused(&[(RequestField::Column, &path)], 5, "a path of more than 256 names");
    let predicate = |keys: usize| format!("c0 IN ({}1)", "12345678, ".repeat(keys));
    assert_eq!(ask(&[(RequestField::Where, &predicate(13_100))]).rows, 1);
    refused(&[(RequestField::Where, &predicate(13_200))], 3, "a predicate of more than 131072 bytes");
    refused(&[(RequestField::Where, "c0 = 1"), (RequestField::Where, "c0 = 1")], 5, "two predicates");
}

#[test]
fn columns_of_a_wide_table_are_looked_up_once() {
    let object = parquet(wide(2000, 1));
    let names: Vec<String> = (0..2000).map(|at| format!("c{at}")).collect();
    for field in [RequestField::Column, RequestField::Leaf] {
        let fields: Vec<Asked<'_>> = names.iter().map(|name| (field, name.as_str())).collect();
        let answer = &calls(Method::Query, &object, &request(&fields), 1)[0];
        assert_eq!(answer.batches[0].num_columns(), 2000);
        // Most are for reading them. Each with an index of its own would be 10,000 millions.
        assert!(answer.units < 80_000_000, "{} units", answer.units);
    }
}

#[test]
fn calls_keep_to_their_share_whatever_is_aggregated() {
    let rows = 6_000;
    let columns = parquet(wide(24, rows));
    let rows_request = {
        let mut frame = request(&[]);
        frame.push(RequestField::Format as u16, &[Format::Rows as u8]);
        frame
    };
    let pieces = calls(Method::Transform, &columns, &rows_request, usize::MAX);
    let of_rows: Vec<u8> = pieces.into_iter().flat_map(|answer| answer.data).collect();
    // Each row is a group, of few aggregates and of many.
    let many: Vec<String> = (0..48).map(|at| format!("{}(c{})", ["min", "max"][at % 2], at / 2)).collect();
    for object in [&columns, &of_rows] {
        for extremes in [&many[..1], &many[..]] {
            let mut fields: Vec<Asked<'_>> =
                vec![(RequestField::Aggregate, "count(*)"), (RequestField::GroupBy, "c3")];
            fields.extend(extremes.iter().map(|text| (RequestField::Aggregate, text.as_str())));
            let answers = calls(Method::Query, object, &request(&fields), usize::MAX);
            let counted = |answer: &Answered| -> u64 {
                answer.batches[0].column(1).as_primitive::<UInt64Type>().values().iter().sum()
            };
            assert_eq!(answers.iter().map(counted).sum::<u64>(), rows.unsigned_abs());
            let most = answers.iter().map(|answer| answer.units).max().unwrap();
            assert!(most < 2 * Share::UNITS + 2_000_000, "{most} units for {} aggregates", fields.len() - 1);
            let largest = answers.iter().map(|answer| answer.batches[0].num_rows()).max().unwrap();
            assert!(largest * fields.len() <= 80_000, "{largest} groups");
        }
        // Predicates of many tests: batches are smaller.
        let tests: Vec<String> = (0..300).map(|at| format!("(c1 = {at} AND c2 > {at})")).collect();
        let predicate = tests.join(" OR ");
        let answers = calls(Method::Query, object, &request(&[(RequestField::Where, &predicate)]), 2);
        let most = answers.iter().map(|answer| answer.units).max().unwrap();
        assert!(most < 30_000_000, "{most} units");
    }
}

/// Many rows may have one long text, which the object has once.
#[test]
fn a_text_of_many_rows_is_not_copied_for_all_of_them() {
    // Of which no codec makes less, and as long as those that our writer finds again.
    let mut seed = 1_u64;
    let letter = |_| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'!' + u8::try_from(seed >> 58).unwrap())
    };
    let text: String = (0..60 << 10).map(letter).collect();
    let mut texts = StringViewBuilder::new().with_deduplicate_strings();
    (0..4_000).for_each(|_| texts.append_value(&text));
    let mut columns = wide(1, 4_000);
    columns.push(("text".to_owned(), Arc::new(texts.finish())));
    let mut options = ParquetOptions::default();
    options.write.column.encoding = Some(Encoding::RleDictionary);
    let object = parquet_by(columns, options);
    assert!(object.len() < 1 << 20, "{} bytes: the test is of a dictionary", object.len());
    let before = peak();
    for format in [Format::Arrow, Format::Parquet, Format::Rows] {
        let mut frame = request(&[]);
        frame.push(RequestField::Format as u16, &[format as u8]);
        for answer in calls(Method::Query, &object, &frame, 2) {
            assert!(answer.rows > 0 && answer.data.len() < 6 << 20, "{} bytes", answer.data.len());
        }
    }
    let aggregates: [&[Asked<'_>]; 2] = [
        &[(RequestField::Aggregate, "count(*)"), (RequestField::GroupBy, "text")],
        &[(RequestField::Aggregate, "min(text)"), (RequestField::Aggregate, "max(text)")],
    ];
    for fields in aggregates {
        for answer in calls(Method::Query, &object, &request(fields), 2) {
            assert!(answer.units < 2 * Share::UNITS + 2_000_000, "{} units", answer.units);
        }
    }
    let mut frame = request(&[(RequestField::Column, "text")]);
    frame.push(RequestField::Step as u16, &[1]);
    let indexed = change(Method::Index, &mut object.as_slice() as &mut dyn RadosObject, &frame.into_bytes());
    assert!(indexed.unwrap_err().message().contains("bytes of text in rows to be indexed"));
    let more = peak().saturating_sub(before);
    assert!(more < 128 << 20, "{more} bytes of memory");
}

/// Each is compared twice, and held once.
#[test]
fn two_long_texts_of_a_row_may_be_the_smallest_and_the_largest() {
    let text = |letter: &str| Arc::new(StringArray::from(vec![letter.repeat(7 << 20)])) as ArrayRef;
    let mut options = ParquetOptions::default();
    options.write.column.compression = Compression::Uncompressed;
    options.write.column.encoding = Some(Encoding::Plain);
    let object = parquet_by(vec![("a".to_owned(), text("a")), ("b".to_owned(), text("b"))], options);
    let extremes = ["min(a)", "max(a)", "min(b)", "max(b)"].map(|text| (RequestField::Aggregate, text));
    let answers = calls(Method::Query, &object, &request(&extremes), 1);
    let lengths: Vec<u32> = answers[0].batches[0]
        .columns()
        .iter()
        .flat_map(|column| column.as_string_view().lengths().collect::<Vec<_>>())
        .collect();
    assert_eq!(lengths, [7 << 20; 4]);
}

/// A path of a leaf has the names of all groups around it.
#[test]
fn statistics_come_a_part_of_a_row_group_at_a_time() {
    let leaves = 200;
    let field = |at: usize| Arc::new(Field::new(format!("f{at}"), DataType::Int64, false));
    let value = |_| Arc::new(Int64Array::from(vec![7])) as ArrayRef;
    let fields: Vec<_> = (0..leaves).map(|at| (field(at), value(at))).collect();
    let name = "n".repeat(40_000);
    let object = parquet(vec![(name.clone(), Arc::new(StructArray::from(fields)) as ArrayRef)]);
    assert!(object.len() < 16 << 20, "{} bytes", object.len());
    let answers = calls(Method::Stats, &object, &request(&[]), usize::MAX);
    assert!(answers.len() > 5);
    // However little an answer may have.
    let mut least = request(&[]);
    least.push_u64(RequestField::AnswerBytes as u16, 0);
    assert_eq!(calls(Method::Stats, &object, &least, usize::MAX).len(), leaves);
    let mut at = 0;
    for answer in &answers {
        assert!(answer.data.len() < (1 << 20) + (256 << 10), "{} bytes", answer.data.len());
        for path in answer.batches[0].column(1).as_string::<i32>().iter().flatten() {
            assert!(path == format!("{name}.f{at}"), "the path of leaf {at}");
            at += 1;
        }
    }
    assert_eq!(at, leaves);
}

/// Its row groups would be those of calls, without anything to search them by.
#[test]
fn a_parquet_object_is_not_transformed_into_parquet() {
    let object = parquet(wide(2, 10));
    let mut frame = request(&[]);
    frame.push(RequestField::Format as u16, &[Format::Parquet as u8]);
    let refused = read(&call(Method::Transform, &mut object.as_slice(), &frame.clone().into_bytes()));
    let (kind, words) = refused.error.expect("an error");
    assert!(kind == 2 && words.contains("copy") && words.contains("compress"), "{words}");
    assert_eq!(calls(Method::Query, &object, &frame, 1)[0].rows, 10);
}
