//! Record batches survive being written and read back by us, by parquet-rs and by pyarrow.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use arrow_array::builder::*;
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::{NullBuffer, OffsetBuffer, i256};
use arrow_schema::{DataType, Field, Fields, IntervalUnit, Schema, TimeUnit};
use marquetry_arrow::{ArrowOptions, FromArrow, ToArrow};
use marquetry_base::{Bytes, ErrorKind, Object, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_io::{ByteSink, ByteSinks, ByteSources, drive, drive_into, memory::Memory};
use marquetry_parquet::read::{BatchReader, ReadOptions};
use marquetry_parquet::write::{Fed, FileWriter, WriteOptions};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::common::{self, FILE};

/// A file in memory that is written.
struct Growing(Vec<u8>);

impl ByteSink for Growing {
    fn name(&self) -> &str {
        "memory"
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn read(&mut self, range: std::ops::Range<u64>) -> Result<Bytes> {
        let index = |at| usize::try_from(at).unwrap();
        Ok(Bytes::copy_from_slice(&self.0[index(range.start)..index(range.end)]))
    }
}

/// Writes record batches of one schema.
fn write(batches: &[RecordBatch]) -> Result<Bytes> {
    let mut from_arrow = FromArrow::new(&batches[0].schema())?;
    let options = WriteOptions { key_values: vec![from_arrow.key_value()], ..WriteOptions::default() };
    let schema = Arc::clone(from_arrow.schema());
    let mut writer = FileWriter::new(FILE, schema, Arc::new(StandardCodecs::default()), options)?;
    let mut file = Growing(Vec::new());
    let mut sinks = ByteSinks::<&mut dyn ByteSink>::new().with(FILE, &mut file);
    for record_batch in batches {
        for batch in from_arrow.batches(record_batch) {
            assert!(drive_into(&mut writer, &mut sinks)?.is_some());
            assert_eq!(writer.feed(batch?)?, Fed::Taken);
        }
    }
    writer.finish();
    while drive_into(&mut writer, &mut sinks)?.is_some() {}
    drop(sinks);
    Ok(file.0.into())
}

/// Reads all rows as one record batch, with the types that were written.
fn read(bytes: &Bytes) -> Result<RecordBatch> {
    let metadata = common::footer(bytes)?;
    let sources = ByteSources::new().with(Object(0), Memory::new("file", bytes.clone()));
    let codecs = Arc::new(StandardCodecs::default());
    let mut reader = BatchReader::new(FILE, Arc::clone(&metadata), codecs, ReadOptions::default())?;
    let mut to_arrow = ToArrow::of_file(&metadata, None, ArrowOptions::default())?;
    assert_eq!(to_arrow.stored_schema_error(), None);
    let mut made = Vec::new();
    while let Some(batch) = drive(&mut reader, &sources)? {
        made.push(to_arrow.record_batch(&batch)?);
    }
    Ok(arrow_select::concat::concat_batches(to_arrow.schema(), &made).unwrap())
}

fn nullable(name: &str, array: ArrayRef) -> (Field, ArrayRef) {
    (Field::new(name, array.data_type().clone(), true), array)
}

fn record_batch(columns: Vec<(Field, ArrayRef)>) -> RecordBatch {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

/// Every type that survives the round trip unchanged.
fn all_types() -> RecordBatch {
    fn ints<P: ArrowPrimitiveType>(values: [P::Native; 3]) -> ArrayRef {
        let [a, b, c] = values;
        Arc::new(PrimitiveArray::<P>::from_iter([Some(a), None, Some(b), Some(c), None]))
    }
    let strings = || [Some("a"), None, Some("a longer string than a view"), Some(""), None];
    let bytes = || strings().map(|it| it.map(str::as_bytes));
    let zone = |array: ArrayRef| {
        let array = array.as_any().downcast_ref::<TimestampMicrosecondArray>().unwrap().clone();
        Arc::new(array.with_timezone("Europe/Berlin")) as ArrayRef
    };
    let decimals = |precision, scale, values: [i128; 3]| {
        let array = ints::<Decimal128Type>(values);
        let array = array.as_any().downcast_ref::<Decimal128Array>().unwrap().clone();
        Arc::new(array.with_precision_and_scale(precision, scale).unwrap()) as ArrayRef
    };
    let huge = i256::from_i128(i128::MAX).wrapping_mul(i256::from_i128(1 << 100));
    let wide = ints::<Decimal256Type>([huge, i256::MINUS_ONE, huge.wrapping_neg()]);
    let wide = wide.as_any().downcast_ref::<Decimal256Array>().unwrap().clone();
    let mut fixed = FixedSizeBinaryBuilder::new(3);
    fixed.append_value(b"abc").unwrap();
    fixed.append_null();
    (0..3).for_each(|_| fixed.append_value(b"xyz").unwrap());
    let mut columns = vec![
        nullable("null", Arc::new(NullArray::new(5))),
        nullable("bool", Arc::new(BooleanArray::from(vec![Some(true), None, Some(false), Some(true), None]))),
        nullable("i8", ints::<Int8Type>([i8::MIN, 0, i8::MAX])),
        nullable("i16", ints::<Int16Type>([i16::MIN, 0, i16::MAX])),
        nullable("i32", ints::<Int32Type>([i32::MIN, 0, i32::MAX])),
        nullable("i64", ints::<Int64Type>([i64::MIN, 0, i64::MAX])),
        nullable("u8", ints::<UInt8Type>([0, 1, u8::MAX])),
        nullable("u16", ints::<UInt16Type>([0, 1, u16::MAX])),
        nullable("u32", ints::<UInt32Type>([0, 1, u32::MAX])),
        nullable("u64", ints::<UInt64Type>([0, 1, u64::MAX])),
        nullable("f16", ints::<Float16Type>([1.5, -2.0, 0.0].map(half))),
        nullable("f32", ints::<Float32Type>([1.5, -0.0, f32::INFINITY])),
        nullable("f64", ints::<Float64Type>([1.5, -0.0, f64::MIN])),
        nullable("date32", ints::<Date32Type>([-1, 0, 20_000])),
        nullable("date64", ints::<Date64Type>([-86_400_000, 0, 86_400_000])),
        nullable("time_ms", ints::<Time32MillisecondType>([0, 1, 86_399_999])),
        nullable("time_us", ints::<Time64MicrosecondType>([0, 1, 86_399_999_999])),
        nullable("time_ns", ints::<Time64NanosecondType>([0, 1, 86_399_999_999_999])),
        nullable("ms", ints::<TimestampMillisecondType>([-1, 0, 1])),
        nullable("us", ints::<TimestampMicrosecondType>([-1, 0, 1])),
        nullable("ns", ints::<TimestampNanosecondType>([-1, 0, 1])),
        nullable("zoned", zone(ints::<TimestampMicrosecondType>([-1, 0, 1]))),
        nullable("duration", ints::<DurationMillisecondType>([-1, 0, 1])),
        nullable("decimal9", decimals(9, 2, [-999_999_999, 0, 1])),
        nullable("decimal18", decimals(18, 2, [-999_999_999_999_999_999, 0, 1])),
        nullable("decimal38", decimals(38, 10, [i128::pow(10, 38) - 1, 0, -1])),
        nullable("decimal76", Arc::new(wide.with_precision_and_scale(76, 3).unwrap())),
        nullable("utf8", Arc::new(StringArray::from_iter(strings()))),
        nullable("large_utf8", Arc::new(LargeStringArray::from_iter(strings()))),
        nullable("utf8_view", Arc::new(StringViewArray::from_iter(strings()))),
        nullable("binary", Arc::new(BinaryArray::from_iter(bytes()))),
        nullable("large_binary", Arc::new(LargeBinaryArray::from_iter(bytes()))),
        nullable("binary_view", Arc::new(BinaryViewArray::from_iter(bytes()))),
        nullable("fixed", Arc::new(fixed.finish())),
        nullable("dictionary", Arc::new(DictionaryArray::<Int8Type>::from_iter(strings()))),
    ];
    columns.push((
        Field::new("required", DataType::Int32, false),
        Arc::new(Int32Array::from(vec![1, 2, 3, 4, 5])),
    ));
    let id: std::collections::HashMap<_, _> =
        [("PARQUET:field_id".to_string(), "7".to_string()), ("k".to_string(), "v".to_string())].into();
    let field = Field::new("with_id", DataType::Utf8, false).with_metadata(id);
    columns.push((field, Arc::new(StringArray::from(vec!["a", "b", "c", "d", "e"]))));
    record_batch(columns)
}

fn half(value: f32) -> <Float16Type as ArrowPrimitiveType>::Native {
    <Float16Type as ArrowPrimitiveType>::Native::from_f32(value)
}

/// Nested lists, maps and structs.
fn nested() -> RecordBatch {
    let int = |name: &str, is_nullable| Arc::new(Field::new(name, DataType::Int32, is_nullable));
    let numbers = Int32Array::from(vec![Some(1), None, Some(3), Some(4), None, Some(6), Some(7), Some(8)]);
    let nulls = || Some(NullBuffer::from(vec![true, false, true, true, true]));
    let list = ListArray::new(
        int("element", true),
        OffsetBuffer::new(vec![0, 2, 3, 3, 7, 8].into()),
        Arc::new(numbers.clone()),
        nulls(),
    );
    let large = LargeListArray::new(
        int("element", true),
        OffsetBuffer::new(vec![0, 0, 3, 4, 7, 8].into()),
        Arc::new(numbers.clone()),
        None,
    );
    let ten = Int32Array::from((0..10).collect::<Vec<i32>>());
    let fixed = FixedSizeListArray::new(int("element", true), 2, Arc::new(ten.clone()), nulls());
    let texts = StringArray::from(vec![Some("p"), Some("q"), None, Some("a string that is long"), Some("")]);
    let pair: Fields =
        vec![Field::new("n", DataType::Int32, false), Field::new("t", DataType::Utf8, true)].into();
    let structs = StructArray::new(
        pair.clone(),
        vec![Arc::new(Int32Array::from(vec![1, 2, 3, 4, 5])), Arc::new(texts.clone())],
        nulls(),
    );
    let of_structs = ListArray::new(
        Arc::new(Field::new("element", DataType::Struct(pair), true)),
        OffsetBuffer::new(vec![0, 2, 2, 3, 5, 5].into()),
        Arc::new(structs.clone()),
        nulls(),
    );
    let of_lists = ListArray::new(
        Arc::new(Field::new("element", list.data_type().clone(), true)),
        OffsetBuffer::new(vec![0, 0, 3, 4, 4, 5].into()),
        Arc::new(list.clone()),
        nulls(),
    );
    let entries: Fields =
        vec![Field::new("key", DataType::Int32, false), Field::new("value", DataType::Utf8, true)].into();
    let map = MapArray::new(
        Arc::new(Field::new("key_value", DataType::Struct(entries.clone()), false)),
        OffsetBuffer::new(vec![0, 1, 1, 3, 4, 5].into()),
        StructArray::new(
            entries,
            vec![Arc::new(Int32Array::from(vec![9, 8, 7, 6, 5])), Arc::new(texts)],
            None,
        ),
        nulls(),
        false,
    );
    let dictionary =
        DictionaryArray::<Int16Type>::from_iter([Some("x"), None, Some("y"), Some("x"), Some("y")]);
    let of_dictionary = StructArray::new(
        vec![Field::new("d", dictionary.data_type().clone(), true)].into(),
        vec![Arc::new(dictionary)],
        nulls(),
    );
    let columns: [(&str, ArrayRef); 8] = [
        ("list", Arc::new(list)),
        ("large", Arc::new(large)),
        ("fixed", Arc::new(fixed)),
        ("struct", Arc::new(structs)),
        ("of_structs", Arc::new(of_structs)),
        ("of_lists", Arc::new(of_lists)),
        ("map", Arc::new(map)),
        ("of_dictionary", Arc::new(of_dictionary)),
    ];
    record_batch(columns.into_iter().map(|(name, array)| nullable(name, array)).collect())
}

#[test]
fn what_is_written_comes_back() {
    for (name, given) in [("types", all_types()), ("nested", nested())] {
        for (what, given) in
            [("whole", given.clone()), ("a part", given.slice(1, 3)), ("none", given.slice(2, 0))]
        {
            let file = write(std::slice::from_ref(&given)).unwrap();
            let again = read(&file).unwrap();
            for (at, field) in given.schema().fields().iter().enumerate() {
                let (ours, expected) = (again.column(at), given.column(at));
                assert_eq!(again.schema().field(at), field.as_ref(), "{name}, {what}");
                assert_eq!(ours.as_ref(), expected.as_ref(), "{name}, {what}, {}", field.name());
            }
            // As parquet-rs reads it: most types come back, and all values.
            let theirs = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
            let theirs: Vec<RecordBatch> = theirs.map(|batch| batch.unwrap()).collect();
            assert_eq!(theirs.iter().map(RecordBatch::num_rows).sum::<usize>(), given.num_rows());
            for batch in &theirs {
                for (at, field) in given.schema().fields().iter().enumerate() {
                    let (found, expected) = (batch.column(at), given.column(at));
                    if found.data_type() == expected.data_type() {
                        assert_eq!(found.as_ref(), expected.as_ref(), "{name}, {what}, {}", field.name());
                    }
                }
            }
        }
    }
}

/// Many rows in several record batches, each with a different dictionary.
#[test]
fn many_rows() {
    let batch = |start: i32, rows: i32| {
        let ids = Int32Array::from((start..start + rows).collect::<Vec<_>>());
        let texts =
            (start..start + rows).map(|at| (at % 7 != 0).then(|| format!("text number {}", at % 1000)));
        let texts: Vec<Option<String>> = texts.collect();
        let dictionary: DictionaryArray<Int32Type> = texts.iter().map(|it| it.as_deref()).collect();
        let lists = (start..start + rows).map(|at| {
            (at % 5 != 0).then(|| {
                (0..at % 4).map(|element| (element != 1).then_some(at + element)).collect::<Vec<_>>()
            })
        });
        let (_, offsets, values, nulls) =
            ListArray::from_iter_primitive::<Int32Type, _, _>(lists).into_parts();
        // The name of an element is the file's.
        let lists =
            ListArray::new(Arc::new(Field::new("element", DataType::Int32, true)), offsets, values, nulls);
        record_batch(vec![
            nullable("id", Arc::new(ids)),
            nullable("text", Arc::new(StringArray::from(texts))),
            nullable("dictionary", Arc::new(dictionary)),
            nullable("list", Arc::new(lists)),
        ])
    };
    let given = [batch(0, 20_000), batch(20_000, 1), batch(20_001, 9000)];
    let again = read(&write(&given).unwrap()).unwrap();
    let mut start = 0;
    for given in &given {
        let part = again.slice(start, given.num_rows());
        start += given.num_rows();
        for (ours, expected) in part.columns().iter().zip(given.columns()) {
            match expected.data_type() {
                // Their entries are in a different order.
                DataType::Dictionary(..) => {
                    let strings = |array: &ArrayRef| {
                        let array =
                            array.as_any().downcast_ref::<DictionaryArray<Int32Type>>().unwrap().clone();
                        let typed = array.downcast_dict::<StringArray>().unwrap();
                        typed.into_iter().map(|it| it.map(str::to_string)).collect::<Vec<_>>()
                    };
                    assert_eq!(strings(ours), strings(expected));
                }
                _ => assert_eq!(ours.as_ref(), expected.as_ref()),
            }
        }
    }
    assert_eq!(start, again.num_rows());
}

/// Types without a Parquet equivalent, and values that a column cannot hold.
#[test]
fn what_cannot_be_written() {
    let refused = |data_type: DataType| {
        let inner = Field::new("inner", data_type, true);
        let list =
            DataType::List(Arc::new(Field::new("element", DataType::Struct(vec![inner].into()), true)));
        FromArrow::new(&Schema::new(vec![Field::new("outer", list, true)])).unwrap_err()
    };
    for data_type in [
        DataType::Interval(IntervalUnit::DayTime),
        DataType::Decimal128(5, -2),
        DataType::Struct(Fields::empty()),
        DataType::ListView(Arc::new(Field::new("element", DataType::Int32, true))),
    ] {
        let error = refused(data_type);
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert_eq!(error.place().column.as_deref(), Some("outer.element.inner"), "{error}");
    }
    let of = |name: &str, array: ArrayRef| write(&[record_batch(vec![nullable(name, array)])]).unwrap_err();
    let error = of("date", Arc::new(Date64Array::from(vec![0, 5])));
    assert_eq!((error.kind(), error.place().column.as_deref()), (ErrorKind::Conversion, Some("date")));
    let nanos = IntervalMonthDayNano::new(1, 2, 3);
    let error = of("interval", Arc::new(IntervalMonthDayNanoArray::from(vec![nanos])));
    assert!(error.message().contains("3 ns"), "{error}");
    let error = of("seconds", Arc::new(TimestampSecondArray::from(vec![i64::MAX])));
    assert_eq!(error.kind(), ErrorKind::Conversion);
    // A batch of another schema.
    let one = record_batch(vec![nullable("a", Arc::new(Int32Array::from(vec![1])))]);
    let other = record_batch(vec![nullable("a", Arc::new(Int64Array::from(vec![1])))]);
    let mut from_arrow = FromArrow::new(&one.schema()).unwrap();
    let error = from_arrow.batches(&other).next().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
}

/// Intervals and times in seconds are written as types that Parquet has.
#[test]
fn what_changes_its_type() {
    let seconds = TimestampSecondArray::from(vec![Some(5), None]).with_timezone("UTC");
    let given = record_batch(vec![
        nullable("seconds", Arc::new(seconds)),
        nullable("time", Arc::new(Time32SecondArray::from(vec![Some(7), None]))),
        nullable(
            "interval",
            Arc::new(IntervalMonthDayNanoArray::from(vec![
                Some(IntervalMonthDayNano::new(1, 2, 3_000_000)),
                None,
            ])),
        ),
    ]);
    let again = read(&write(std::slice::from_ref(&given)).unwrap()).unwrap();
    assert_eq!(again.column(0).data_type(), &DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into())));
    let millis = again.column(0).as_any().downcast_ref::<TimestampMillisecondArray>().unwrap();
    assert_eq!(millis.iter().collect::<Vec<_>>(), [Some(5000), None]);
    let time = again.column(1).as_any().downcast_ref::<Time32MillisecondArray>().unwrap();
    assert_eq!(time.iter().collect::<Vec<_>>(), [Some(7000), None]);
    assert_eq!(again.column(2), given.column(2));
}

/// pyarrow reads what we wrote as it was in its memory.
#[test]
fn what_pyarrow_has() {
    let Some(python) = marquetry_testing::python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let run = |script: &str| {
        let out = Command::new(&python).arg(scripts.join(script)).arg(folder.path()).output().unwrap();
        assert!(
            out.status.success(),
            "{}{}",
            String::from_utf8_lossy(&out.stdout),
            String::from_utf8_lossy(&out.stderr)
        );
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    run("stored.py");
    let mut count = 0;
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|it| it != "arrow") {
            continue;
        }
        let stream = arrow_ipc::reader::StreamReader::try_new(File::open(&path).unwrap(), None).unwrap();
        let batches: Vec<RecordBatch> = stream.map(|batch| batch.unwrap()).collect();
        match write(&batches) {
            Ok(file) => {
                std::fs::write(path.with_extension("ours"), &file).unwrap();
                count += 1;
            }
            Err(error) => println!("{}: {error}", path.display()),
        }
    }
    println!("{}", run("incoming.py"));
    assert!(count > 30, "{count} files");
}
