//! Calls end where pages begin, so that little is read twice: the units of all calls of a query, and where their cursors lead.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float64Type, Int64Type, UInt64Type};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_ipc::reader::StreamReader;
use marquetry::Writer;
use marquetry::tables::parquet::ParquetOptions;
use marquetry_arrow::FromArrow;
use marquetry_base::{Codec, Fields, Frame};
use marquetry_parquet::format::{Compression, Encoding};

use marquetry_ceph::request::Share;
use marquetry_ceph::{ANSWER, AnswerField, Format, Method, REQUEST, RequestField, call};

const ROWS: u64 = 60_000;
const PAGE_ROWS: u64 = 4_000;

/// Three columns of values that no codec makes less, in pages of as many rows.
fn object(page_index: bool) -> Vec<u8> {
    let mut seed = 1_u64;
    let mut next = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        seed >> 33
    };
    let mut numbers =
        |below: u64| Int64Array::from_iter_values((0..ROWS).map(|_| i64::try_from(next() % below).unwrap()));
    let (keys, amounts) = (numbers(1000), numbers(1 << 30));
    let fares =
        Float64Array::from_iter_values(numbers(1 << 20).values().iter().map(|fare| *fare as f64 / 8.0));
    let columns: [(&str, ArrayRef); 3] =
        [("key", Arc::new(keys)), ("amount", Arc::new(amounts)), ("fare", Arc::new(fares))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut options = ParquetOptions::default();
    options.write.page_rows = usize::try_from(PAGE_ROWS).unwrap();
    options.write.page_index = page_index;
    options.write.column.encoding = Some(Encoding::Plain);
    options.write.column.compression = Compression::Codec(Codec::Zstd);
    written(&batch, options)
}

/// A Parquet file of these rows.
fn written(batch: &RecordBatch, options: ParquetOptions) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.parquet");
    let schema = FromArrow::new(&batch.schema()).unwrap().schema().as_ref().clone();
    let mut writer = Writer::with(&path, schema, options).unwrap();
    writer.write_arrow(batch).unwrap();
    writer.finish().unwrap();
    std::fs::read(path).unwrap()
}

/// Columns of few texts and of few numbers, and some of any numbers, in pages of as many rows.
fn object_of_few_values() -> Vec<u8> {
    let numbers = |column: u64, below: u64| {
        let value = move |row: u64| (row + column).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        (0..ROWS).map(move |row| value(row) % below)
    };
    let mut columns: Vec<(String, ArrayRef)> = Vec::new();
    for column in 0..3 {
        let texts = numbers(column, 40).map(|number| format!("one of forty texts, number {number}"));
        columns.push((format!("text {column}"), Arc::new(StringArray::from_iter_values(texts))));
        let few = numbers(column, 100).map(|number| number as f64 / 8.0);
        columns.push((format!("few {column}"), Arc::new(Float64Array::from_iter_values(few))));
    }
    let any = numbers(7, 1 << 24).map(|number| i64::try_from(number).unwrap());
    columns.push(("any".to_owned(), Arc::new(Int64Array::from_iter_values(any))));
    let mut options = ParquetOptions::default();
    options.write.page_rows = usize::try_from(PAGE_ROWS).unwrap();
    options.write.column.compression = Compression::Codec(Codec::Zstd);
    written(&RecordBatch::try_from_iter(columns).unwrap(), options)
}

/// What the calls of a query came to: rows, the sums of their columns (of `max(…)`, the greatest), the units of each call, and the rows at which they ended.
#[derive(Debug, Default)]
struct Calls {
    rows: u64,
    /// Bytes of the answers' rows, and messages that have rows.
    bytes: usize,
    messages: usize,
    sums: BTreeMap<String, f64>,
    units: Vec<u64>,
    ends: Vec<u64>,
}

impl Calls {
    fn of(mut object: &[u8], asked: &[(RequestField, &[u8])], units: u64) -> Calls {
        let (mut calls, mut cursor) = (Calls::default(), None::<Vec<u8>>);
        loop {
            let mut frame = Frame::new(REQUEST);
            for (number, bytes) in asked {
                frame.push(*number as u16, bytes);
            }
            frame.push_u64(RequestField::Units as u16, units);
            frame.push_u64(RequestField::AnswerBytes as u16, 4 << 20);
            if let Some(cursor) = cursor.take() {
                frame.push(RequestField::Cursor as u16, &cursor);
            }
            for field in Fields::of(&call(Method::Query, &mut object, &frame.into_bytes()), ANSWER).unwrap() {
                let field = field.unwrap();
                let is = |known: AnswerField| known as u16 == field.number;
                assert!(!is(AnswerField::Error), "{}", String::from_utf8_lossy(field.bytes));
                if is(AnswerField::Rows) {
                    calls.rows += field.u64().unwrap();
                } else if is(AnswerField::Data) {
                    calls.bytes += field.bytes.len();
                    if let Ok(stream) = StreamReader::try_new(field.bytes, None) {
                        stream.for_each(|batch| calls.add(&batch.unwrap()));
                    }
                } else if is(AnswerField::Work) {
                    calls.units.push(u64::from_le_bytes(field.bytes[..8].try_into().unwrap()));
                } else if is(AnswerField::Cursor) {
                    calls.ends.push(u64::from_le_bytes(field.bytes[4..12].try_into().unwrap()));
                    cursor = Some(field.bytes.to_vec());
                }
            }
            if cursor.is_none() {
                return calls;
            }
            assert!(calls.units.len() < 1000, "calls that do not end");
        }
    }

    /// All are whole numbers, or eighths of them, below 2^53.
    fn add(&mut self, batch: &RecordBatch) {
        self.messages += 1;
        for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
            let numbers: Vec<f64> = if let Some(numbers) = column.as_primitive_opt::<Int64Type>() {
                numbers.iter().flatten().map(|number| number as f64).collect()
            } else if let Some(numbers) = column.as_primitive_opt::<UInt64Type>() {
                numbers.iter().flatten().map(|number| number as f64).collect()
            } else if let Some(numbers) = column.as_primitive_opt::<Decimal128Type>() {
                numbers.iter().flatten().map(|number| number as f64).collect()
            } else {
                column.as_primitive::<Float64Type>().iter().flatten().collect()
            };
            let sum = self.sums.entry(field.name().clone()).or_default();
            for number in numbers {
                *sum = if field.name().starts_with("max") { sum.max(number) } else { *sum + number };
            }
        }
    }

    fn all_units(&self) -> u64 {
        self.units.iter().sum()
    }
}

#[test]
fn calls_end_with_pages_and_all_of_them_cost_little_more_than_one() {
    let (with_index, without) = (object(true), object(false));
    let format = |format: Format| (RequestField::Format, [format as u8]);
    let (parquet, count) = (format(Format::Parquet), format(Format::Count));
    let few: (RequestField, &[u8]) = (RequestField::Where, b"key < 100");
    let fare: (RequestField, &[u8]) = (RequestField::Column, b"fare");
    let queries: [&[(RequestField, &[u8])]; 7] = [
        &[],
        &[fare, (RequestField::Column, b"key")],
        &[fare, (parquet.0, &parquet.1)],
        &[(RequestField::Aggregate, b"sum(amount)"), (RequestField::Aggregate, b"max(fare)")],
        &[few, fare],
        &[few, (RequestField::Aggregate, b"count(*)"), (RequestField::Aggregate, b"sum(fare)")],
        &[few, (count.0, &count.1)],
    ];
    for (number, asked) in queries.into_iter().enumerate() {
        let whole = Calls::of(&with_index, asked, Share::UNITS_MAX);
        assert!(whole.units.len() <= 2, "query {number}: {:?}", whole.units);
        let share = 1_400_000;
        let calls = Calls::of(&with_index, asked, share);
        println!("query {number}: {} units, {:?}, {:?}", whole.all_units(), calls.units, calls.ends);
        // Of aggregates, each call has a row.
        let is_aggregated = asked.iter().any(|(field, _)| *field == RequestField::Aggregate);
        assert!(is_aggregated || calls.rows == whole.rows, "query {number}: {} rows", calls.rows);
        assert_eq!(calls.sums, whole.sums, "query {number}");
        for end in &calls.ends {
            assert!(end % PAGE_ROWS == 0, "query {number} ends at {end}");
        }
        // Each call reads the footer, which is most of what is done again.
        let sum = calls.all_units();
        assert!(sum * 10 <= whole.all_units() * 13, "query {number}: {sum}, not {}", whole.all_units());
        let most = calls.units.iter().max().unwrap();
        assert!(*most <= share + share / 4, "query {number}: {most} units");
        // Without an index nobody knows where pages begin.
        let unknown = Calls::of(&without, asked, share);
        assert!(is_aggregated || unknown.rows == whole.rows, "query {number}: {} rows", unknown.rows);
        assert_eq!(unknown.sums, whole.sums, "query {number}");
        assert!(unknown.units.iter().all(|units| *units <= 2 * share), "query {number}: {:?}", unknown.units);
    }
}

/// Nothing is chosen by values once the share is spent, because the answer is encoded as the object is; and what it takes to end it is kept
/// of the share.
#[test]
fn calls_that_write_parquet_keep_to_their_share() {
    let object = object_of_few_values();
    let parquet = [Format::Parquet as u8];
    let few: (RequestField, &[u8]) = (RequestField::Where, b"any < 5000000");
    let form: (RequestField, &[u8]) = (RequestField::Format, &parquet);
    let queries: [&[(RequestField, &[u8])]; 2] = [&[form], &[form, few]];
    for asked in queries {
        let calls = Calls::of(&object, asked, Share::UNITS);
        println!("{} rows in {} bytes, {:?}, {:?}", calls.rows, calls.bytes, calls.units, calls.ends);
        let most = calls.units.iter().max().unwrap();
        assert!(*most <= Share::UNITS + Share::UNITS / 8, "{most} units");
        // Six columns of indices of six and seven bits, one of numbers of 24, and what each file has beside them.
        let of_values = calls.rows * (6 * 7 + 24) / 8;
        let beside = 8_000 * u64::try_from(calls.units.len()).unwrap();
        let bytes = u64::try_from(calls.bytes).unwrap();
        assert!(bytes <= of_values + of_values / 8 + beside, "{bytes} bytes, and {of_values} of values");
    }
    let all = Calls::of(&object, queries[0], Share::UNITS);
    assert_eq!(all.rows, ROWS);
}

/// What a search had of the rows that it found is handed out, and not read once more.
#[test]
fn a_column_that_is_tested_and_handed_out_is_decoded_once() {
    let (with_index, without) = (object(true), object(false));
    let few: (RequestField, &[u8]) = (RequestField::Where, b"key < 100");
    let parquet = [Format::Parquet as u8];
    let form: (RequestField, &[u8]) = (RequestField::Format, &parquet);
    let counted = Calls::of(&with_index, &[few, (RequestField::Aggregate, b"count(*)")], Share::UNITS_MAX);
    let queries: [&[(RequestField, &[u8])]; 3] = [
        &[few, (RequestField::Aggregate, b"sum(key)"), (RequestField::Aggregate, b"max(key)")],
        &[few, (RequestField::Column, b"key")],
        &[few, form, (RequestField::Column, b"key")],
    ];
    for (number, asked) in queries.into_iter().enumerate() {
        let calls = Calls::of(&with_index, asked, Share::UNITS_MAX);
        println!("query {number}: {} units, {} to count", calls.all_units(), counted.all_units());
        assert!(
            4 * calls.all_units() <= 5 * counted.all_units(),
            "query {number}: {} units",
            calls.all_units()
        );
    }
    // Beside others, whichever column it is that has found a row, and however often a call ends.
    let either: (RequestField, &[u8]) = (RequestField::Where, b"key < 30 OR amount < 20000000");
    let columns = ["fare", "amount", "key"].map(|column| (RequestField::Column, column.as_bytes()));
    let asked = [either, columns[0], columns[1], columns[2]];
    let sums = ["sum(fare)", "sum(amount)", "sum(key)"];
    let sums = sums.map(|aggregate| (RequestField::Aggregate, aggregate.as_bytes()));
    let expected = Calls::of(&with_index, &asked, Share::UNITS_MAX);
    assert!(expected.rows > ROWS / 30 && expected.rows < ROWS / 10, "{} rows", expected.rows);
    for object in [&with_index, &without] {
        for share in [100_000, 700_000, Share::UNITS_MAX] {
            let rows = Calls::of(object, &asked, share);
            assert_eq!((rows.rows, &rows.sums), (expected.rows, &expected.sums), "{share}");
            let summed = Calls::of(object, &[either, sums[0], sums[1], sums[2]], share);
            for column in ["fare", "amount", "key"] {
                assert_eq!(
                    summed.sums[&format!("sum({column})")],
                    expected.sums[column],
                    "{column}, {share}"
                );
            }
        }
    }
}

/// Where few rows are found, those of many batches make one message, and not one each.
#[test]
fn sparse_rows_are_put_together() {
    let object = object(true);
    let sparse: (RequestField, &[u8]) = (RequestField::Where, b"key < 10");
    let columns = ["key", "amount", "fare"].map(|column| (RequestField::Column, column.as_bytes()));
    let expected = Calls::of(&object, &[sparse, columns[1]], Share::UNITS_MAX);
    for asked in [&[sparse, columns[0]][..], &[sparse, columns[0], columns[1], columns[2]]] {
        for share in [1_400_000, Share::UNITS_MAX] {
            let calls = Calls::of(&object, asked, share);
            println!("{} rows in {} messages of {} calls", calls.rows, calls.messages, calls.units.len());
            assert_eq!(calls.rows, expected.rows);
            // Fifteen batches are tested, and each has some forty. Rows that cost much are handed out in two.
            assert!(calls.messages <= 2 * calls.units.len(), "{} messages", calls.messages);
        }
    }
}

/// A call that has found what there is, and spent its share, says so where bounds rule out all rows after it: no other call comes for that.
#[test]
fn a_call_ends_with_rows_that_are_ruled_out() {
    let ids = Int64Array::from_iter_values(0..i64::try_from(ROWS).unwrap());
    let batch = RecordBatch::try_from_iter([("id", Arc::new(ids) as ArrayRef)]).unwrap();
    let mut options = ParquetOptions::default();
    options.write.page_rows = usize::try_from(PAGE_ROWS).unwrap();
    let object = written(&batch, options);
    for id in [0, 1_234, 30_000, 59_999] {
        let predicate = format!("id = {id}");
        for share in [100_000, Share::UNITS] {
            let calls = Calls::of(&object, &[(RequestField::Where, predicate.as_bytes())], share);
            assert_eq!((calls.rows, calls.ends.len()), (1, 0), "{id} by {share}: {:?}", calls.units);
            assert_eq!(calls.sums["id"], f64::from(id), "{id} by {share}");
        }
    }
}
