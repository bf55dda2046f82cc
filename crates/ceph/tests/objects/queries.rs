//! The class over objects in memory: what it answers, in how many calls, and by reading how much.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_ipc::reader::StreamReader;
use arrow_select::concat::concat_batches;
use marquetry::Writer;
use marquetry::tables::parquet::ParquetOptions;
use marquetry_arrow::FromArrow;
use marquetry_base::{Error, ErrorKind, Fields, Frame, Result};

use marquetry_ceph::request::Share;
use marquetry_ceph::{ANSWER, AnswerField, Method, REQUEST, RadosObject, RequestField, call, change};

const ROWS: i64 = 60_000;

/// An object in memory, what was read of it, and whether reads fail from some on.
struct Fake {
    bytes: Vec<u8>,
    read: u64,
    reads: u64,
    fails_after: u64,
}

impl Fake {
    fn of(path: &Path) -> Fake {
        Fake::new(std::fs::read(path).unwrap())
    }

    fn new(bytes: Vec<u8>) -> Fake {
        Fake { bytes, read: 0, reads: 0, fails_after: u64::MAX }
    }
}

impl RadosObject for Fake {
    fn length(&mut self) -> Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<()> {
        self.reads += 1;
        if self.reads > self.fails_after {
            return Err(Error::io("the disk is gone"));
        }
        self.read += into.len() as u64;
        self.bytes.as_slice().read(offset, into)
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        let at = usize::try_from(offset).unwrap();
        self.bytes.resize(self.bytes.len().max(at + bytes.len()), 0);
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
}

/// Trips in four row groups of pages of 1,000 rows, with nulls, texts and lists.
fn trips(folder: &Path) -> PathBuf {
    let ids = Int64Array::from_iter_values(0..ROWS);
    let fares = Float64Array::from_iter((0..ROWS).map(|id| (id % 7 != 0).then(|| (id % 1000) as f64 / 8.0)));
    let city = |id: i64| (id % 5 != 0).then(|| format!("a city with quite a long name, number {}", id % 100));
    let cities = StringArray::from_iter((0..ROWS).map(city));
    let mut tags = ListBuilder::new(StringBuilder::new());
    for id in 0..ROWS {
        match id % 4 {
            0 => tags.append_null(),
            n => tags.append_value((1..n).map(|tag| Some(format!("tag {tag} of {id}")))),
        }
    }
    let columns: [(&str, ArrayRef); 4] = [
        ("id", Arc::new(ids)),
        ("fare", Arc::new(fares)),
        ("city", Arc::new(cities)),
        ("tags", Arc::new(tags.finish())),
    ];
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap();
    let mut options = ParquetOptions::default();
    (options.write.row_group_rows, options.write.page_rows) = (ROWS as u64 / 4, 1000);
    let schema = FromArrow::new(&batch.schema()).unwrap().schema().as_ref().clone();
    let path = folder.join("trips.parquet");
    let mut writer = Writer::with(&path, schema, options).unwrap();
    writer.write_arrow(&batch).unwrap();
    writer.finish().unwrap();
    path
}

fn request(fields: &[(RequestField, &[u8])]) -> Frame {
    let mut frame = Frame::new(REQUEST);
    for (number, bytes) in fields {
        frame.push(*number as u16, bytes);
    }
    frame
}

/// What an answer has.
#[derive(Debug, Default)]
struct Answered {
    batches: Vec<RecordBatch>,
    rows: u64,
    cursor: Option<Vec<u8>>,
    units: u64,
    bytes: usize,
    error: Option<(u8, String)>,
}

fn read(answer: &[u8]) -> Answered {
    let mut read = Answered { bytes: answer.len(), ..Answered::default() };
    for field in Fields::of(answer, ANSWER).unwrap() {
        let field = field.unwrap();
        let is = |known: AnswerField| known as u16 == field.number;
        if is(AnswerField::Data) {
            let stream = StreamReader::try_new(field.bytes, None).unwrap();
            read.batches = stream.collect::<Result<Vec<_>, _>>().unwrap();
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

/// Calls until there is no cursor. The answers of all calls.
fn all_calls(object: &mut Fake, fields: &[(RequestField, &[u8])], units: u64, bytes: u64) -> Vec<Answered> {
    let mut answers: Vec<Answered> = Vec::new();
    loop {
        let mut frame = request(fields);
        frame.push_u64(RequestField::Units as u16, units).push_u64(RequestField::AnswerBytes as u16, bytes);
        if let Some(cursor) = answers.last().and_then(|last| last.cursor.as_deref()) {
            frame.push(RequestField::Cursor as u16, cursor);
        }
        let answer = read(&call(Method::Query, object, &frame.into_bytes()));
        assert_eq!(answer.error, None);
        assert!(answers.len() < 10_000, "a query that does not end");
        let is_last = answer.cursor.is_none();
        answers.push(answer);
        if is_last {
            return answers;
        }
    }
}

fn together(answers: &[Answered]) -> RecordBatch {
    let batches: Vec<&RecordBatch> = answers.iter().flat_map(|answer| &answer.batches).collect();
    concat_batches(&batches[0].schema(), batches).unwrap()
}

#[test]
fn a_query_in_many_calls_finds_what_find_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = trips(folder.path());
    let predicates = [
        "id BETWEEN 14990 AND 15300",
        "city = 'a city with quite a long name, number 42' AND fare > 100",
        "tags = 'tag 1 of 58002' OR id < 3",
        "fare IS NULL",
        "id >= 0",
        "id < 0",
    ];
    for predicate in predicates {
        let columns = ["city", "tags", "id"];
        let reader = marquetry::open(&path).unwrap().filter(predicate).unwrap().columns(columns).unwrap();
        let expected: Vec<RecordBatch> = reader.record_batches().unwrap().map(Result::unwrap).collect();
        let expected = concat_batches(&reader.arrow_schema().unwrap(), &expected).unwrap();
        let mut fields: Vec<(RequestField, &[u8])> =
            columns.iter().map(|column| (RequestField::Column, column.as_bytes())).collect();
        fields.push((RequestField::Where, predicate.as_bytes()));
        for (units, bytes) in [(Share::UNITS, 1 << 20), (1, 1 << 20), (100_000, 1), (u64::MAX, 10_000)] {
            if bytes == 1 && expected.num_rows() > 1000 {
                continue;
            }
            let answers = all_calls(&mut Fake::of(&path), &fields, units, bytes);
            let rows: u64 = answers.iter().map(|answer| answer.rows).sum();
            assert_eq!(rows, expected.num_rows() as u64, "{predicate} by {units} units");
            if rows > 0 {
                assert_eq!(together(&answers).columns(), expected.columns(), "{predicate} by {units} units");
            }
            assert!(bytes > 1 || answers.len() as u64 >= rows, "one row a call");
        }
    }
}

#[test]
fn a_call_ends_after_its_share_and_reads_little() {
    let folder = tempfile::tempdir().unwrap();
    let path = trips(folder.path());
    let mut object = Fake::of(&path);
    let length = object.bytes.len() as u64;
    let fields: [(RequestField, &[u8]); 2] =
        [(RequestField::Column, b"id"), (RequestField::Where, b"id = 31234")];
    let answers = all_calls(&mut object, &fields, Share::UNITS, 1 << 20);
    assert_eq!((answers.len(), together(&answers).num_rows()), (1, 1));
    // The footer, guessed to be in the last 64 KiB; an index; a page.
    assert!(object.read < 64 * 1024 + 64 * 1024, "{} bytes of {length} were read", object.read);
    assert!(answers[0].bytes < 4096, "an answer of {} bytes", answers[0].bytes);
    // All rows: no call takes much more than its share, nor an answer much more than its bytes.
    let (units, bytes) = (500_000, 100_000);
    let answers = all_calls(&mut object, &[], units, bytes);
    assert!(answers.len() > 10, "{} calls", answers.len());
    let most = answers.iter().map(|answer| answer.units).max().unwrap();
    assert!(most < 8 * units, "{most} units in a call of {units}");
    let largest = answers.iter().map(|answer| answer.bytes).max().unwrap();
    assert!(largest < 3 * usize::try_from(bytes).unwrap(), "{largest} bytes");
    assert_eq!(i64::try_from(together(&answers).num_rows()), Ok(ROWS));
}

#[test]
fn limits_and_aggregates_are_of_all_calls_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = trips(folder.path());
    let limit = 5_u64.to_le_bytes();
    let fields: [(RequestField, &[u8]); 2] =
        [(RequestField::Limit, &limit), (RequestField::Where, b"fare > 120")];
    let answers = all_calls(&mut Fake::of(&path), &fields, Share::UNITS, 1 << 20);
    assert_eq!((answers.len(), answers[0].rows), (1, 5));

    let asked = ["count(*)", "count(fare)", "sum(id)", "sum(fare)", "min(city)", "max(id)"];
    let mut fields: Vec<(RequestField, &[u8])> =
        asked.iter().map(|text| (RequestField::Aggregate, text.as_bytes())).collect();
    fields.push((RequestField::Where, b"id >= 20000 AND id % 1 = 0"));
    let wrong = read(&call(Method::Query, &mut Fake::of(&path), &request(&fields).into_bytes()));
    assert_eq!(wrong.error.map(|(kind, _)| kind), Some(5));
    fields.pop();
    fields.push((RequestField::Where, b"id >= 20000"));
    for units in [1, Share::UNITS] {
        let answers = all_calls(&mut Fake::of(&path), &fields, units, 1 << 20);
        assert!(units > 1 || answers.len() > 3);
        let all = together(&answers);
        let sum =
            |column: usize| all.column(column).as_primitive::<UInt64Type>().values().iter().sum::<u64>();
        let (first, last) = (20_000, ROWS - 1);
        assert_eq!(sum(0), 40_000);
        assert_eq!(sum(1), (first..=last).filter(|id| id % 7 != 0).count() as u64);
        let ids: i128 = all.column(2).as_primitive::<Decimal128Type>().iter().flatten().sum();
        assert_eq!(ids, i128::from(first + last) * 20_000);
        let city = all.column(4).as_string_view().iter().flatten().min();
        assert_eq!(city, Some("a city with quite a long name, number 1"));
        assert_eq!(all.column(5).as_primitive::<Int64Type>().iter().flatten().max(), Some(last));
    }
    // A mean is handed out as what it is made of.
    let answers =
        all_calls(&mut Fake::of(&path), &[(RequestField::Aggregate, b"avg(fare)")], Share::UNITS, 1);
    let all = together(&answers);
    assert_eq!(
        (all.schema().field(0).name().as_str(), all.schema().field(1).name().as_str()),
        ("sum(fare)", "count(fare)")
    );
    let sum: f64 = all.column(0).as_primitive::<Float64Type>().iter().flatten().sum();
    let values: Vec<f64> = (0..ROWS).filter(|id| id % 7 != 0).map(|id| (id % 1000) as f64 / 8.0).collect();
    let counted: u64 = all.column(1).as_primitive::<UInt64Type>().values().iter().sum();
    assert_eq!((sum, counted), (values.iter().sum(), values.len() as u64));
    // Of all rows, from the footer alone.
    let mut object = Fake::of(&path);
    let answers = all_calls(&mut object, &[(RequestField::Aggregate, b"count(*)")], Share::UNITS, 1);
    assert_eq!(together(&answers).column(0).as_primitive::<UInt64Type>().value(0), ROWS as u64);
    assert!(object.reads <= 2, "{} reads", object.reads);
}

#[test]
fn groups_are_of_all_calls_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = trips(folder.path());
    let fields: [(RequestField, &[u8]); 5] = [
        (RequestField::Aggregate, b"count(*)"),
        (RequestField::Aggregate, b"max(id)"),
        (RequestField::GroupBy, b"city"),
        (RequestField::GroupBy, b"fare"),
        (RequestField::Where, b"fare < 0.3 AND id >= 10000"),
    ];
    // By city and fare: the rows, and the largest id.
    let mut expected: BTreeMap<(Option<String>, u64), (u64, i64)> = BTreeMap::new();
    for id in (10_000..ROWS).filter(|id| id % 7 != 0 && id % 1000 < 3) {
        let city = (id % 5 != 0).then(|| format!("a city with quite a long name, number {}", id % 100));
        let group = expected.entry((city, ((id % 1000) as f64 / 8.0).to_bits())).or_default();
        *group = (group.0 + 1, id);
    }
    for units in [1, Share::UNITS] {
        let answers = all_calls(&mut Fake::of(&path), &fields, units, 1 << 20);
        let all = together(&answers);
        let mut found: BTreeMap<(Option<String>, u64), (u64, i64)> = BTreeMap::new();
        for row in 0..all.num_rows() {
            let city =
                all.column(0).is_valid(row).then(|| all.column(0).as_string_view().value(row).to_owned());
            let fare = all.column(1).as_primitive::<Float64Type>().value(row).to_bits();
            let group = found.entry((city, fare)).or_default();
            group.0 += all.column(2).as_primitive::<UInt64Type>().value(row);
            group.1 = group.1.max(all.column(3).as_primitive::<Int64Type>().value(row));
        }
        assert_eq!(found, expected, "{units}");
    }
    let mut none = fields;
    none[4] = (RequestField::Where, b"id < 0");
    let answers = all_calls(&mut Fake::of(&path), &none, Share::UNITS, 1 << 20);
    assert_eq!((answers[0].rows, answers[0].batches[0].num_columns()), (0, 4));
}

#[test]
fn what_an_object_has_is_described() {
    let folder = tempfile::tempdir().unwrap();
    let mut object = Fake::of(&trips(folder.path()));
    let request = request(&[]).into_bytes();
    let answer = read(&call(Method::Describe, &mut object, &request));
    assert_eq!((answer.rows, answer.error), (ROWS as u64, None));
    let stats = read(&call(Method::Stats, &mut object, &request));
    // Four row groups of four leaves.
    assert_eq!((stats.rows, stats.batches[0].num_columns()), (16, 9));
    let nulls: u64 = stats.batches[0].column(4).as_primitive::<UInt64Type>().iter().flatten().sum();
    assert!(nulls > 0);
    assert_eq!([Method::of("query"), Method::of("merge")], [Some(Method::Query), Some(Method::Merge)]);
    assert_eq!(Method::of("drop"), None);
}

#[test]
fn what_is_wrong_is_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let path = trips(folder.path());
    let ask = |object: &mut Fake, fields: &[(RequestField, &[u8])]| {
        read(&call(Method::Query, object, &request(fields).into_bytes())).error.map(|(kind, _)| kind)
    };
    let mut object = Fake::of(&path);
    let faults: [&[(RequestField, &[u8])]; 10] = [
        &[(RequestField::GroupBy, b"city")],
        &[(RequestField::Column, b"nothing")],
        &[(RequestField::Column, b"id, fare")],
        &[(RequestField::Column, b"id"), (RequestField::Column, b"id")],
        &[(RequestField::Where, b"id =")],
        &[(RequestField::Cursor, b"elsewhere")],
        &[(RequestField::Aggregate, b"median(fare)")],
        &[(RequestField::Aggregate, b"count(*)"), (RequestField::Column, b"id")],
        &[(RequestField::Aggregate, b"sum(*)")],
        &[(RequestField::Cursor, &[255; 16])],
    ];
    for fields in faults {
        assert!(matches!(ask(&mut object, fields), Some(4 | 5)), "{fields:?}");
    }
    assert_eq!(ask(&mut object, &[(RequestField::Where, b"\xff")]), Some(1));
    assert_eq!(ask(&mut object, &[(RequestField::Limit, b"seven")]), Some(1));
    assert_eq!(ask(&mut object, &[(RequestField::Aggregate, b"sum(city)")]), Some(2));
    assert_eq!(ask(&mut object, &[(RequestField::Aggregate, b"min(tags)")]), Some(2));
    // A field of a later version, unless it says that it may be ignored.
    let mut frame = request(&[]);
    frame.push_optional(99, b"a hint");
    assert_eq!(read(&call(Method::Query, &mut object, &frame.clone().into_bytes())).error, None);
    frame.push(99, b"a demand");
    let refused = read(&call(Method::Query, &mut object, &frame.into_bytes())).error;
    assert_eq!(refused.map(|(kind, _)| kind), Some(2));
    // An object that changes between two calls.
    let first = read(&call(Method::Query, &mut object, &request(&[]).into_bytes()));
    let cursor = first.cursor.unwrap();
    let end = object.bytes.len();
    object.bytes[end - 600] ^= 1;
    let changed = ask(&mut object, &[(RequestField::Cursor, &cursor)]);
    assert!(matches!(changed, Some(1 | 4)), "{changed:?}");
    // Reads that fail, at each place.
    let asked: [(RequestField, &[u8]); 1] = [(RequestField::Where, b"fare > 124")];
    let mut object = Fake::of(&path);
    assert_eq!((ask(&mut object, &asked), object.reads > 3), (None, true));
    for fails_after in 0..object.reads {
        let mut object = Fake { fails_after, ..Fake::of(&path) };
        assert_eq!(ask(&mut object, &asked), Some(4), "{fails_after}");
    }
}

/// Rows of which the object has some, and files have the others.
#[test]
fn files_are_merged_into_an_object_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(trips(folder.path())).unwrap();
    let path = folder.path().join("merged.parquet");
    let mut object = Fake::new(bytes.clone());
    let merge = |object: &mut Fake, file: &[u8]| {
        change(Method::Merge, object, &request(&[(RequestField::File, file)]).into_bytes())
    };
    let answer = read(&merge(&mut object, &bytes).unwrap());
    assert_eq!(answer.rows, 2 * ROWS as u64);
    assert_eq!(read(&merge(&mut object, &bytes).unwrap()).rows, 3 * ROWS as u64);
    // Whatever was there stays where it is.
    let body = bytes.len() - 2000;
    assert!(object.bytes.len() < 3 * bytes.len() + 20_000 && object.bytes[..body / 2] == bytes[..body / 2]);
    std::fs::write(&path, &object.bytes).unwrap();
    let merged = marquetry::open(&path).unwrap();
    assert_eq!((merged.rows(), merged.row_groups()), (Some(3 * ROWS as u64), Some(12)));
    let all: Vec<RecordBatch> = merged.record_batches().unwrap().map(Result::unwrap).collect();
    let all = concat_batches(&merged.arrow_schema().unwrap(), &all).unwrap();
    let once = marquetry::open(folder.path().join("trips.parquet")).unwrap();
    let once: Vec<RecordBatch> = once.record_batches().unwrap().map(Result::unwrap).collect();
    let once = concat_batches(&all.schema(), &once).unwrap();
    for at in 0..3 {
        let rows = once.num_rows();
        assert_eq!(all.slice(at * rows, rows).columns(), once.columns());
    }
    // Its pages are found by their index, wherever they came from.
    let mut merged = Fake::of(&path);
    let fields: [(RequestField, &[u8]); 2] =
        [(RequestField::Column, b"id"), (RequestField::Where, b"id = 31234")];
    let answers = all_calls(&mut merged, &fields, Share::UNITS, 1 << 20);
    assert_eq!(together(&answers).num_rows(), 3);
    assert!(merged.read < 200 * 1024, "{} bytes were read", merged.read);

    // What does not fit is refused, and nothing is written.
    let before = object.bytes.clone();
    let other = folder.path().join("other.parquet");
    let ids: [(&str, ArrayRef); 1] = [("id", Arc::new(Int64Array::from_iter_values(0..5)))];
    let batch = RecordBatch::try_from_iter(ids).unwrap();
    let schema = FromArrow::new(&batch.schema()).unwrap().schema().as_ref().clone();
    let mut writer = Writer::with(&other, schema, ParquetOptions::default()).unwrap();
    writer.write_arrow(&batch).unwrap();
    writer.finish().unwrap();
    let other = std::fs::read(other).unwrap();
    assert_eq!(merge(&mut object, &other).unwrap_err().kind(), ErrorKind::Misuse);
    assert_eq!(merge(&mut object, b"PAR1 and nothing else").unwrap_err().kind(), ErrorKind::Corrupt);
    let mut seed = 3_u64;
    for _ in 0..200 {
        let mut file = bytes.clone();
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let at = file.len() - 1 - (seed >> 33) as usize % 3000;
        file[at] ^= 1 << (seed >> 60 & 7);
        let mut object = Fake::new(bytes.clone());
        match merge(&mut object, &file) {
            Err(error) => {
                assert_ne!(error.kind(), ErrorKind::Internal, "{error}");
                assert_eq!(object.bytes, bytes);
            }
            // What is wrong in the file's pages is wrong in the object's then; the rows before are as they were.
            Ok(_) => {
                let described = read(&call(Method::Describe, &mut object, &request(&[]).into_bytes()));
                assert_eq!(described.error, None);
            }
        }
    }
    assert_eq!(object.bytes, before);
    // A method that only reads does not write.
    let mut reads = bytes.as_slice();
    let refused = change(Method::Merge, &mut reads, &request(&[(RequestField::File, &bytes)]).into_bytes());
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Misuse);
}

/// Bytes of objects and requests, changed at random: whatever they are, the class answers.
#[test]
fn hostile_objects_and_requests_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    let whole = std::fs::read(trips(folder.path())).unwrap();
    let fields: [(RequestField, &[u8]); 3] = [
        (RequestField::Column, b"city"),
        (RequestField::Where, b"fare > 100 AND city LIKE 'a%'"),
        (RequestField::Units, &200_000_u64.to_le_bytes()),
    ];
    let asked = request(&fields).into_bytes();
    let mut random = super::random(7);
    let (mut answered, mut refused) = (0, 0);
    for round in 0..300 {
        let (mut bytes, mut asked) = (whole.clone(), asked.clone());
        match round % 3 {
            // The footer and the indexes, which are at the end.
            0 => {
                for _ in 0..=random(3) {
                    let end = bytes.len();
                    bytes[end - 1 - random(3000)] = u8::try_from(random(256)).unwrap();
                }
            }
            1 => {
                for _ in 0..20 {
                    let length = bytes.len();
                    bytes[random(length)] ^= 1 << random(8);
                }
            }
            _ => {
                let at = random(asked.len());
                asked[at] = u8::try_from(random(256)).unwrap();
            }
        }
        let method = [Method::Query, Method::Describe, Method::Stats][random(8).saturating_sub(5)];
        let answer = read(&call(method, &mut Fake::new(bytes), &asked));
        match answer.error {
            Some((kind, message)) => {
                assert_ne!(kind, 7, "{message}");
                refused += 1;
            }
            None => answered += 1,
        }
    }
    assert!(answered > 50 && refused > 50, "{answered} answered, {refused} refused");
}
