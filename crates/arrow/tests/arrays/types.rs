//! Hand-made batches become arrays of the right type and values, in the same memory if possible.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::{ToByteSlice, i256};
use arrow_schema::{DataType, Field, IntervalUnit, TimeUnit as Unit};
use marquetry_arrow::{ArrowOptions, StringLayout, ToArrow, arrow_schema};
use marquetry_base::{Bitmap, Buffer, Bytes, Error, ErrorKind};
use marquetry_parquet::batch::{Batch, ByteArrays, ColumnBatch, FixedBytes, Layout, Levels, Values};
use marquetry_parquet::format::{FileMetaData, KeyValue};
use marquetry_parquet::schema::{Schema, TimeUnit};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::common;

/// The footer of a file without rows, with the fields given as text.
fn footer(fields: &str) -> Arc<FileMetaData> {
    let message = parse_message_type(&format!("message m {{ {fields} }}")).unwrap();
    let mut file = Vec::new();
    SerializedFileWriter::new(&mut file, Arc::new(message), Default::default()).unwrap().close().unwrap();
    common::footer(&file.into()).unwrap()
}

fn validity(bits: &str) -> (usize, Option<Bitmap>) {
    let nulls = bits.matches('0').count();
    (nulls, (nulls > 0).then(|| bits.chars().map(|bit| bit == '1').collect()))
}

/// A flat column with one value per row; rows with a 0 in `bits` are null.
fn flat(leaf: usize, values: Values, bits: &str) -> ColumnBatch {
    let (nulls, validity) = validity(bits);
    ColumnBatch {
        leaf,
        rows: bits.len(),
        nulls,
        validity,
        values,
        layout: Layout::Spaced,
        levels: None,
        provisional: false,
    }
}

/// A nested column of dense values.
fn nested(leaf: usize, rows: usize, values: Values, definition: &[u8], repetition: &[u8]) -> ColumnBatch {
    let repetition = (!repetition.is_empty()).then(|| repetition.to_vec().into());
    let levels = Some(Levels { definition: definition.to_vec().into(), repetition });
    let nulls = definition.len() - values.len();
    ColumnBatch {
        leaf,
        rows,
        nulls,
        validity: None,
        values,
        layout: Layout::Dense,
        levels,
        provisional: false,
    }
}

fn batch(columns: Vec<ColumnBatch>) -> Batch {
    Batch { row_group: 2, first_row: 100, rows: columns[0].rows, columns }
}

fn converted(schema: &Arc<Schema>, columns: Vec<ColumnBatch>) -> Result<RecordBatch, Error> {
    ToArrow::new(schema, None)?.record_batch(&batch(columns))
}

/// The only column of a schema.
fn column(fields: &str, values: Values, bits: &str) -> Result<ArrayRef, Error> {
    let batch = converted(&footer(fields).schema, vec![flat(0, values, bits)])?;
    Ok(Arc::clone(batch.column(0)))
}

fn int32(values: &[i32]) -> Values {
    Values::Int32(values.to_vec().into())
}

fn int64(values: &[i64]) -> Values {
    Values::Int64(values.to_vec().into())
}

fn fixed(width: usize, values: &[&[u8]]) -> Values {
    Values::FixedLenByteArray(FixedBytes::new(width, values.len(), values.concat().into()))
}

/// Strings. Those that do not fit a view are in one buffer, after an empty one, as in the reader's batches.
fn strings(values: &[&[u8]]) -> ByteArrays {
    let (mut views, mut page) = (Vec::new(), Vec::new());
    for value in values {
        let mut view = [0u8; 16];
        view[..4].copy_from_slice(&u32::try_from(value.len()).unwrap().to_le_bytes());
        if value.len() <= 12 {
            view[4..4 + value.len()].copy_from_slice(value);
        } else {
            view[4..8].copy_from_slice(&value[..4]);
            view[8..12].copy_from_slice(&1u32.to_le_bytes());
            view[12..].copy_from_slice(&u32::try_from(page.len()).unwrap().to_le_bytes());
            page.extend_from_slice(value);
        }
        views.push(u128::from_le_bytes(view));
    }
    ByteArrays::new(views.into(), Arc::new(vec![Bytes::new(), page.into()]))
}

fn text(values: &[&[u8]]) -> Values {
    Values::ByteArray(strings(values))
}

/// The numbers of an array; a null is `None`.
fn numbers<P: ArrowPrimitiveType>(array: &ArrayRef) -> Vec<Option<P::Native>> {
    array.as_primitive::<P>().iter().collect()
}

#[test]
fn types() {
    let utc = || Some("UTC".into());
    let cases: Vec<(&str, DataType)> = vec![
        ("BOOLEAN", DataType::Boolean),
        ("INT32", DataType::Int32),
        ("INT64", DataType::Int64),
        ("INT96", DataType::Timestamp(Unit::Nanosecond, None)),
        ("FLOAT", DataType::Float32),
        ("DOUBLE", DataType::Float64),
        ("BYTE_ARRAY", DataType::BinaryView),
        ("FIXED_LEN_BYTE_ARRAY(5)", DataType::FixedSizeBinary(5)),
        ("INT32 _ (INTEGER(8,true))", DataType::Int8),
        ("INT32 _ (INTEGER(16,true))", DataType::Int16),
        ("INT32 _ (INTEGER(32,true))", DataType::Int32),
        ("INT64 _ (INTEGER(64,true))", DataType::Int64),
        ("INT32 _ (INTEGER(8,false))", DataType::UInt8),
        ("INT32 _ (INTEGER(16,false))", DataType::UInt16),
        ("INT32 _ (INTEGER(32,false))", DataType::UInt32),
        ("INT64 _ (INTEGER(64,false))", DataType::UInt64),
        ("INT32 _ (DATE)", DataType::Date32),
        ("INT32 _ (TIME(MILLIS,true))", DataType::Time32(Unit::Millisecond)),
        ("INT64 _ (TIME(MICROS,false))", DataType::Time64(Unit::Microsecond)),
        ("INT64 _ (TIME(NANOS,true))", DataType::Time64(Unit::Nanosecond)),
        ("INT64 _ (TIMESTAMP(MILLIS,true))", DataType::Timestamp(Unit::Millisecond, utc())),
        ("INT64 _ (TIMESTAMP(MICROS,false))", DataType::Timestamp(Unit::Microsecond, None)),
        ("INT64 _ (TIMESTAMP(NANOS,true))", DataType::Timestamp(Unit::Nanosecond, utc())),
        ("INT32 _ (DECIMAL(9,2))", DataType::Decimal128(9, 2)),
        ("INT64 _ (DECIMAL(18,0))", DataType::Decimal128(18, 0)),
        ("BYTE_ARRAY _ (DECIMAL(38,3))", DataType::Decimal128(38, 3)),
        ("BYTE_ARRAY _ (DECIMAL(39,3))", DataType::Decimal256(39, 3)),
        ("FIXED_LEN_BYTE_ARRAY(16) _ (DECIMAL(38,38))", DataType::Decimal128(38, 38)),
        ("FIXED_LEN_BYTE_ARRAY(32) _ (DECIMAL(76,10))", DataType::Decimal256(76, 10)),
        // By precision, not by width.
        ("FIXED_LEN_BYTE_ARRAY(20) _ (DECIMAL(38,10))", DataType::Decimal128(38, 10)),
        ("BYTE_ARRAY _ (STRING)", DataType::Utf8View),
        ("BYTE_ARRAY _ (ENUM)", DataType::Utf8View),
        ("BYTE_ARRAY _ (JSON)", DataType::Utf8View),
        ("BYTE_ARRAY _ (BSON)", DataType::BinaryView),
        ("FIXED_LEN_BYTE_ARRAY(2) _ (FLOAT16)", DataType::Float16),
        ("FIXED_LEN_BYTE_ARRAY(16) _ (UUID)", DataType::FixedSizeBinary(16)),
        ("FIXED_LEN_BYTE_ARRAY(12) _ (INTERVAL)", DataType::Interval(IntervalUnit::MonthDayNano)),
        ("INT32 _ (UNKNOWN)", DataType::Null),
    ];
    for (words, expected) in cases {
        let (physical, annotation) = words.split_once(" _ ").unwrap_or((words, ""));
        let footer = footer(&format!("OPTIONAL {physical} f {annotation} = 7;"));
        let schema = arrow_schema(&footer.schema, None).unwrap();
        let field = schema.field(0);
        assert_eq!((field.name().as_str(), field.data_type()), ("f", &expected), "{words}");
        assert!(field.is_nullable());
        assert_eq!(field.metadata()["PARQUET:field_id"], "7");
        let extension = match annotation {
            "(UUID)" => Some("arrow.uuid"),
            "(JSON)" => Some("arrow.json"),
            _ => None,
        };
        assert_eq!(field.extension_type_name(), extension, "{words}");
    }
    let required = footer("REQUIRED INT32 a; REQUIRED INT32 b (UNKNOWN);");
    let schema = arrow_schema(&required.schema, None).unwrap();
    assert_eq!((schema.field(0).is_nullable(), schema.field(1).is_nullable()), (false, true));
}

#[test]
fn geometry_keeps_its_crs() {
    let footer = footer("OPTIONAL BYTE_ARRAY plane (GEOMETRY); OPTIONAL BYTE_ARRAY globe (GEOGRAPHY);");
    let schema = arrow_schema(&footer.schema, None).unwrap();
    let of = |field: usize| {
        let field = schema.field(field);
        (field.data_type().clone(), field.extension_type_name(), field.extension_type_metadata())
    };
    let crs84 = "{\"crs\":\"OGC:CRS84\",\"crs_type\":\"authority_code\"}";
    assert_eq!(of(0), (DataType::BinaryView, Some("geoarrow.wkb"), Some(crs84)));
    let spherical = "{\"crs\":\"OGC:CRS84\",\"crs_type\":\"authority_code\",\"edges\":\"spherical\"}";
    assert_eq!(of(1), (DataType::BinaryView, Some("geoarrow.wkb"), Some(spherical)));
}

#[test]
fn decimals_beyond_arrow() {
    let footer = footer("REQUIRED BYTE_ARRAY d (DECIMAL(77,3));");
    let error = arrow_schema(&footer.schema, None).unwrap_err();
    assert_eq!((error.kind(), error.place().column.as_deref()), (ErrorKind::Unsupported, Some("d")));
}

#[test]
fn numbers_of_every_width() {
    let ints = |annotation: &str, values: &[i32]| {
        column(&format!("OPTIONAL INT32 f {annotation};"), int32(values), "1101")
    };
    assert_eq!(numbers::<Int32Type>(&ints("", &[1, -2, 0, 3]).unwrap()), [Some(1), Some(-2), None, Some(3)]);
    let array = ints("(INTEGER(8,true))", &[-128, 127, 0, 1]).unwrap();
    assert_eq!(numbers::<Int8Type>(&array), [Some(-128), Some(127), None, Some(1)]);
    let array = ints("(INTEGER(16,true))", &[-32768, 32767, 0, 1]).unwrap();
    assert_eq!(numbers::<Int16Type>(&array), [Some(-32768), Some(32767), None, Some(1)]);
    let array = ints("(INTEGER(8,false))", &[0, 255, 0, 1]).unwrap();
    assert_eq!(numbers::<UInt8Type>(&array), [Some(0), Some(255), None, Some(1)]);
    let array = ints("(INTEGER(16,false))", &[0, 65535, 0, 1]).unwrap();
    assert_eq!(numbers::<UInt16Type>(&array), [Some(0), Some(65535), None, Some(1)]);
    let array = ints("(INTEGER(32,false))", &[-1, 5, 0, 1]).unwrap();
    assert_eq!(numbers::<UInt32Type>(&array), [Some(u32::MAX), Some(5), None, Some(1)]);
    let array = ints("(DATE)", &[-1, 20_000, 0, 1]).unwrap();
    assert_eq!(numbers::<Date32Type>(&array), [Some(-1), Some(20_000), None, Some(1)]);
    let array = ints("(TIME(MILLIS,true))", &[0, 86_399_999, 0, 1]).unwrap();
    assert_eq!(numbers::<Time32MillisecondType>(&array), [Some(0), Some(86_399_999), None, Some(1)]);
    let array = ints("(DECIMAL(9,2))", &[-999_999_999, 5, 0, 1]).unwrap();
    assert_eq!(numbers::<Decimal128Type>(&array), [Some(-999_999_999), Some(5), None, Some(1)]);
    assert_eq!(array.data_type(), &DataType::Decimal128(9, 2));

    let longs = |annotation: &str, values: &[i64]| {
        column(&format!("OPTIONAL INT64 f {annotation};"), int64(values), "101")
    };
    assert_eq!(numbers::<Int64Type>(&longs("", &[i64::MIN, 0, 3]).unwrap()), [Some(i64::MIN), None, Some(3)]);
    let array = longs("(INTEGER(64,false))", &[-1, 0, 3]).unwrap();
    assert_eq!(numbers::<UInt64Type>(&array), [Some(u64::MAX), None, Some(3)]);
    let array = longs("(TIME(MICROS,true))", &[1, 0, 3]).unwrap();
    assert_eq!(numbers::<Time64MicrosecondType>(&array), [Some(1), None, Some(3)]);
    let array = longs("(TIME(NANOS,true))", &[1, 0, 3]).unwrap();
    assert_eq!(numbers::<Time64NanosecondType>(&array), [Some(1), None, Some(3)]);
    let array = longs("(TIMESTAMP(MILLIS,true))", &[-1, 0, 3]).unwrap();
    assert_eq!(numbers::<TimestampMillisecondType>(&array), [Some(-1), None, Some(3)]);
    assert_eq!(array.data_type(), &DataType::Timestamp(Unit::Millisecond, Some("UTC".into())));
    let array = longs("(TIMESTAMP(MICROS,false))", &[-1, 0, 3]).unwrap();
    assert_eq!(numbers::<TimestampMicrosecondType>(&array), [Some(-1), None, Some(3)]);
    let array = longs("(TIMESTAMP(NANOS,false))", &[-1, 0, 3]).unwrap();
    assert_eq!(numbers::<TimestampNanosecondType>(&array), [Some(-1), None, Some(3)]);
    let array = longs("(DECIMAL(18,1))", &[-1, 0, 3]).unwrap();
    assert_eq!(numbers::<Decimal128Type>(&array), [Some(-1), None, Some(3)]);

    let floats = Values::Float(vec![1.5f32, -0.0].into());
    let array = column("REQUIRED FLOAT f;", floats, "11").unwrap();
    assert_eq!(array.as_primitive::<Float32Type>().values().to_byte_slice(), [1.5f32, -0.0].to_byte_slice());
    let doubles = Values::Double(vec![1.5, f64::INFINITY].into());
    let array = column("REQUIRED DOUBLE f;", doubles, "11").unwrap();
    assert_eq!(numbers::<Float64Type>(&array), [Some(1.5), Some(f64::INFINITY)]);
}

#[test]
fn bits_at_any_offset() {
    let whole: Bitmap = (0..40).map(|bit| bit % 3 == 0).collect();
    let there: Bitmap = (0..40).map(|bit| bit % 5 != 0).collect();
    for start in 0..20 {
        let mut found = flat(0, Values::Boolean(whole.slice(start..start + 20)), &"1".repeat(20));
        found.validity = Some(there.slice(start..start + 20));
        found.nulls = 4;
        let batch = converted(&footer("OPTIONAL BOOLEAN b;").schema, vec![found]).unwrap();
        let expected: Vec<Option<bool>> =
            (start..start + 20).map(|bit| (bit % 5 != 0).then_some(bit % 3 == 0)).collect();
        assert_eq!(batch.column(0).as_boolean().iter().collect::<Vec<_>>(), expected, "from {start}");
    }
}

#[test]
fn byte_strings() {
    let values: &[&[u8]] = &[b"short", b"", b"longer than a view can hold", "é".as_bytes()];
    let expected = [Some("short"), None, Some("longer than a view can hold"), Some("é")];
    for annotation in ["(STRING)", "(ENUM)", "(JSON)"] {
        let array = column(&format!("OPTIONAL BYTE_ARRAY f {annotation};"), text(values), "1011").unwrap();
        assert_eq!(array.as_string_view().iter().collect::<Vec<_>>(), expected);
    }
    for annotation in ["", "(BSON)", "(GEOMETRY)"] {
        let array = column(&format!("OPTIONAL BYTE_ARRAY f {annotation};"), text(values), "1011").unwrap();
        let expected = expected.map(|value| value.map(str::as_bytes));
        assert_eq!(array.as_binary_view().iter().collect::<Vec<_>>(), expected);
    }
    let array =
        column("OPTIONAL FIXED_LEN_BYTE_ARRAY(3) f;", fixed(3, &[b"abc", b"\0\0\0", b"def"]), "101").unwrap();
    let expected: [Option<&[u8]>; 3] = [Some(b"abc"), None, Some(b"def")];
    assert_eq!(array.as_fixed_size_binary().iter().collect::<Vec<_>>(), expected);
}

#[test]
fn half_floats_at_any_address() {
    // One of the two starts is at an odd address.
    for start in [0, 1] {
        let bytes = [&vec![9u8; start][..], &[0x00, 0x3c, 0x00, 0xc0]].concat();
        let bytes = Buffer::from(bytes).slice(start..start + 4);
        let values = Values::FixedLenByteArray(FixedBytes::new(2, 2, bytes));
        let array = column("REQUIRED FIXED_LEN_BYTE_ARRAY(2) h (FLOAT16);", values, "11").unwrap();
        let halves = array.as_primitive::<Float16Type>().values();
        assert_eq!(halves.iter().map(|half| half.to_f32()).collect::<Vec<_>>(), [1.0, -2.0]);
    }
}

#[test]
fn decimals_of_bytes() {
    let wide = |value: i128, width: usize| -> Vec<u8> {
        let sign = if value < 0 { 0xff } else { 0 };
        [vec![sign; width.saturating_sub(16)], value.to_be_bytes()[16 - width.min(16)..].to_vec()].concat()
    };
    for number in [0, 1, -1, 127, 128, -128, -129, 99_999] {
        for width in [3, 8, 16, 20, 32] {
            let bytes = wide(number, width);
            let fields = format!("REQUIRED FIXED_LEN_BYTE_ARRAY({width}) d (DECIMAL(6,2));");
            let array = column(&fields, fixed(width, &[&bytes]), "1").unwrap();
            assert_eq!(numbers::<Decimal128Type>(&array), [Some(number)], "{number} in {width} bytes");
            let array = column("REQUIRED BYTE_ARRAY d (DECIMAL(38,2));", text(&[&bytes]), "1").unwrap();
            assert_eq!(numbers::<Decimal128Type>(&array), [Some(number)]);
            let array = column("REQUIRED BYTE_ARRAY d (DECIMAL(50,2));", text(&[&bytes]), "1").unwrap();
            assert_eq!(numbers::<Decimal256Type>(&array), [Some(i256::from_i128(number))]);
        }
    }
    // 2¹²⁷ and 2¹²⁸ need seventeen bytes.
    for bytes in [[&[0u8, 0x80][..], &[0; 15]].concat(), [&[1u8][..], &[0; 16]].concat()] {
        let error = column("OPTIONAL BYTE_ARRAY d (DECIMAL(38,2));", text(&[b"", &bytes]), "01").unwrap_err();
        assert_eq!((error.kind(), error.place().row), (ErrorKind::Conversion, Some(101)));
        assert_eq!(error.message(), "a decimal of 17 bytes, which does not fit 16 bytes");
        let array = column("OPTIONAL BYTE_ARRAY d (DECIMAL(39,2));", text(&[b"", &bytes]), "01").unwrap();
        assert_eq!(array.null_count(), 1);
        assert!(array.as_primitive::<Decimal256Type>().value(1) > i256::from_i128(i128::MAX));
    }
}

#[test]
fn narrow_decimals() {
    let footer = footer("REQUIRED INT32 a (DECIMAL(9,2)); REQUIRED INT64 b (DECIMAL(18,2));");
    let (a, b) = (int32(&[1, -2]), int64(&[3, -4]));
    let addresses = [address(&a), address(&b)];
    let options = ArrowOptions { narrow_decimals: true, ..ArrowOptions::default() };
    let mut to_arrow = ToArrow::with_options(&footer.schema, None, options).unwrap();
    let batch = to_arrow.record_batch(&batch(vec![flat(0, a, "11"), flat(1, b, "11")])).unwrap();
    assert_eq!(batch.column(0).data_type(), &DataType::Decimal32(9, 2));
    assert_eq!(numbers::<Decimal32Type>(batch.column(0)), [Some(1), Some(-2)]);
    assert_eq!(batch.column(1).data_type(), &DataType::Decimal64(18, 2));
    assert_eq!(numbers::<Decimal64Type>(batch.column(1)), [Some(3), Some(-4)]);
    assert_eq!([0, 1].map(|column| first_buffer(batch.column(column))), addresses);
}

fn int96(nanos: i64, day: i32) -> Vec<u8> {
    [&nanos.to_le_bytes()[..], &day.to_le_bytes()].concat()
}

#[test]
fn int96_timestamps() {
    let values =
        |values: &[Vec<u8>]| Values::Int96(FixedBytes::new(12, values.len(), values.concat().into()));
    let there = [int96(5, 2_440_588), int96(0, 0), int96(-1, 2_440_589), int96(1, 2_440_587)];
    let array = column("OPTIONAL INT96 t;", values(&there), "1011").unwrap();
    let day = 86_400_000_000_000;
    assert_eq!(numbers::<TimestampNanosecondType>(&array), [Some(5), None, Some(day - 1), Some(1 - day)]);

    let error = column("OPTIONAL INT96 t;", values(&there), "1111").unwrap_err();
    assert_eq!((error.kind(), error.place().row), (ErrorKind::Conversion, Some(101)));
    let footer = footer("OPTIONAL INT96 t;");
    let options = ArrowOptions { int96_unit: TimeUnit::Micros, ..ArrowOptions::default() };
    let mut to_arrow = ToArrow::with_options(&footer.schema, None, options).unwrap();
    let batch = to_arrow.record_batch(&batch(vec![flat(0, values(&there), "1111")])).unwrap();
    let micros = [Some(0), Some(-2_440_588 * (day / 1000)), Some(day / 1000 - 1), Some(-day / 1000)];
    assert_eq!(numbers::<TimestampMicrosecondType>(batch.column(0)), micros);

    // Spark's last microsecond, which it writes as a day before its first, and a day beyond the range of microseconds.
    let last = i128::from(i64::MAX) - (1 << 64);
    let (day, micros) = (last.div_euclid(86_400_000_000), last.rem_euclid(86_400_000_000));
    let last = int96(i64::try_from(micros * 1000).unwrap(), i32::try_from(day + 2_440_588).unwrap());
    let batch = to_arrow.record_batch(&self::batch(vec![flat(0, values(&[last]), "1")])).unwrap();
    assert_eq!(numbers::<TimestampMicrosecondType>(batch.column(0)), [Some(i64::MAX)]);
    let beyond = self::batch(vec![flat(0, values(&[int96(0, i32::MAX)]), "1")]);
    assert_eq!(to_arrow.record_batch(&beyond).unwrap_err().kind(), ErrorKind::Conversion);
}

#[test]
fn intervals() {
    let interval = |parts: [u32; 3]| parts.map(u32::to_le_bytes).concat();
    let fields = "OPTIONAL FIXED_LEN_BYTE_ARRAY(12) i (INTERVAL);";
    let array =
        column(fields, fixed(12, &[&interval([1, 2, 3]), &[0; 12], &interval([0, 0, u32::MAX])]), "101")
            .unwrap();
    let expected = IntervalMonthDayNano::new(1, 2, 3_000_000);
    let largest = IntervalMonthDayNano::new(0, 0, 4_294_967_295_000_000);
    assert_eq!(numbers::<IntervalMonthDayNanoType>(&array), [Some(expected), None, Some(largest)]);
    let error = column(fields, fixed(12, &[&interval([1 << 31, 2, 3])]), "1").unwrap_err();
    assert_eq!((error.kind(), error.place().row), (ErrorKind::Conversion, Some(100)));
}

#[test]
fn unknown_is_null() {
    let array = column("OPTIONAL INT32 u (UNKNOWN);", int32(&[0, 0]), "00").unwrap();
    assert_eq!((array.data_type(), array.len()), (&DataType::Null, 2));
    let error = column("OPTIONAL INT32 u (UNKNOWN);", int32(&[0, 4]), "01").unwrap_err();
    assert_eq!(
        error.to_string(),
        "values in a column of UNKNOWN, which is always null (column u, row group 2)"
    );
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}

#[test]
fn values_that_cannot_be() {
    let error = column("OPTIONAL INT32 f (INTEGER(8,true));", int32(&[1, 128]), "11").unwrap_err();
    assert_eq!(error.to_string(), "128 in a column of Int8 (column f, row 101, row group 2)");
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(column("OPTIONAL INT32 f (INTEGER(16,false));", int32(&[-1]), "1").is_err());

    for bad in [&b"\xff"[..], b"more than twelve \xc3"] {
        let error = column("OPTIONAL BYTE_ARRAY f (STRING);", text(&[b"good", b"", bad]), "101").unwrap_err();
        assert_eq!(error.to_string(), "text that is not UTF-8 (column f, row 102, row group 2)");
        // As text with offsets, and as bytes, too.
        let footer = footer("OPTIONAL BYTE_ARRAY f (STRING);");
        let plain = || ToArrow::new(&footer.schema, None).unwrap();
        for mut other in [
            plain().with_strings(StringLayout::Offset32),
            plain().with_strings(StringLayout::Offset64),
            plain().with_text_as_bytes(),
        ] {
            let columns = vec![flat(0, text(&[b"good", b"", bad]), "101")];
            let same = other.record_batch(&batch(columns)).unwrap_err();
            assert_eq!((same.to_string(), same.kind()), (error.to_string(), error.kind()));
        }
        assert_eq!(error.kind(), ErrorKind::Corrupt);
    }
    // A view of twenty bytes in a missing page.
    let views = ByteArrays::new(vec![20u128 | 7 << 64].into(), Arc::default());
    let error = column("OPTIONAL BYTE_ARRAY f (STRING);", Values::ByteArray(views), "1").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    // Values of another type, too few values, and values of another leaf.
    assert_eq!(column("OPTIONAL INT32 f;", int64(&[1]), "1").unwrap_err().kind(), ErrorKind::Misuse);
    assert_eq!(column("OPTIONAL INT32 f;", int32(&[1]), "10").unwrap_err().kind(), ErrorKind::Misuse);
    assert_eq!(column("OPTIONAL INT32 f;", int32(&[1]), "11").unwrap_err().kind(), ErrorKind::Misuse);
    let bits = Values::Boolean([true].into_iter().collect());
    assert_eq!(column("OPTIONAL BOOLEAN f;", bits, "10").unwrap_err().kind(), ErrorKind::Misuse);
    let error = converted(&footer("OPTIONAL INT32 f;").schema, vec![flat(3, int32(&[1]), "1")]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
}

/// Where the first buffer of an array is.
fn first_buffer(array: &ArrayRef) -> *const u8 {
    array.to_data().buffers()[0].as_ptr()
}

/// Where values are.
fn address(values: &Values) -> *const u8 {
    match values {
        Values::Boolean(bits) => bits.bytes().as_ptr(),
        Values::Int32(values) => values.as_ptr().cast(),
        Values::Int64(values) => values.as_ptr().cast(),
        Values::Float(values) => values.as_ptr().cast(),
        Values::Double(values) => values.as_ptr().cast(),
        Values::Int96(values) | Values::FixedLenByteArray(values) => values.bytes().as_ptr(),
        Values::ByteArray(values) => values.views().as_ptr().cast(),
        Values::Dictionary(indices, _) => indices.as_ptr().cast(),
    }
}

#[test]
fn nothing_is_copied() {
    let strings = || text(&[b"x", b"", b"longer than a view can hold"]);
    let cases: [(&str, Values); 13] = [
        ("BOOLEAN f", Values::Boolean([true, false, true].into_iter().collect())),
        ("INT32 f", int32(&[1, 2, 3])),
        ("INT32 f (INTEGER(32,false))", int32(&[1, 2, 3])),
        ("INT32 f (DATE)", int32(&[1, 2, 3])),
        ("INT64 f", int64(&[1, 2, 3])),
        ("INT64 f (TIMESTAMP(MICROS,true))", int64(&[1, 2, 3])),
        ("FLOAT f", Values::Float(vec![1.0, 2.0, 3.0].into())),
        ("DOUBLE f", Values::Double(vec![1.0, 2.0, 3.0].into())),
        ("BYTE_ARRAY f", strings()),
        ("BYTE_ARRAY f (STRING)", strings()),
        ("FIXED_LEN_BYTE_ARRAY(2) f (FLOAT16)", fixed(2, &[b"ab", b"cd", b"ef"])),
        ("FIXED_LEN_BYTE_ARRAY(5) f", fixed(5, &[b"abcde", b"fghij", b"klmno"])),
        ("INT64 f (TIME(NANOS,true))", int64(&[1, 2, 3])),
    ];
    for (words, values) in cases {
        let footer = footer(&format!("OPTIONAL {words};"));
        let found = flat(0, values.clone(), "101");
        let validity = found.validity.clone().unwrap();
        let made = converted(&footer.schema, vec![found]).unwrap();
        let data = made.column(0).to_data();
        assert_eq!(data.buffers()[0].as_ptr(), address(&values), "{words}");
        assert_eq!(data.nulls().unwrap().buffer().as_ptr(), validity.bytes().as_ptr(), "{words}");
        if let Values::ByteArray(values) = &values {
            assert_eq!(data.buffers()[2].as_ptr(), values.buffers()[1].as_ptr(), "{words}: the page");
        }
        // A slice is of the same memory, further on.
        let slice = flat(0, values.clone(), "101").slice(1..3);
        let address = address(&slice.values);
        let made = converted(&footer.schema, vec![slice]).unwrap();
        assert_eq!((first_buffer(made.column(0)), made.num_rows()), (address, 2), "{words}, sliced");
    }
}

#[test]
fn the_memory_lives_as_long_as_the_array() {
    let values: Buffer<i64> = vec![1, 2].into();
    let array = column("REQUIRED INT64 f;", Values::Int64(values.clone()), "11").unwrap();
    assert_eq!(values.clone().into_vec(), None, "the array holds it");
    drop(array);
    assert_eq!(values.into_vec(), Some(vec![1, 2]), "and lets go of it");
}

#[test]
fn dense_values_are_spread() {
    let (nulls, validity) = validity("0101");
    let dense = |values| ColumnBatch {
        leaf: 0,
        rows: 4,
        nulls,
        validity: validity.clone(),
        values,
        layout: Layout::Dense,
        levels: None,
        provisional: false,
    };
    let batch = converted(&footer("OPTIONAL INT64 f;").schema, vec![dense(int64(&[1, 2]))]).unwrap();
    assert_eq!(numbers::<Int64Type>(batch.column(0)), [None, Some(1), None, Some(2)]);
}

#[test]
fn dictionaries_stay() {
    let footer = footer("OPTIONAL BYTE_ARRAY s (JSON) = 1; OPTIONAL INT32 d (DATE);");
    let entries = Arc::new(text(&[b"\"one\"", b"\"an entry of some length\""]));
    let dates = Arc::new(int32(&[5, 6, 7]));
    let of = |indices: &[u32], entries: &Arc<Values>| {
        Values::Dictionary(indices.to_vec().into(), Arc::clone(entries))
    };
    let mut to_arrow = ToArrow::new(&footer.schema, None).unwrap();
    let mut convert = |strings: Values, dates: Values| {
        to_arrow.record_batch(&batch(vec![flat(0, strings, "101"), flat(1, dates, "111")]))
    };

    let indices = of(&[1, 0, 0], &entries);
    let address = address(&indices);
    let made = convert(indices, of(&[2, 0, 1], &dates)).unwrap();
    let of_type = |values| DataType::Dictionary(Box::new(DataType::UInt32), Box::new(values));
    assert_eq!(made.schema().field(0).data_type(), &of_type(DataType::Utf8View));
    assert_eq!(made.schema().field(1).data_type(), &of_type(DataType::Date32));
    assert_eq!(made.schema().field(0).metadata()["PARQUET:field_id"], "1");
    assert_eq!(made.schema().field(0).extension_type_name(), None);
    let strings = made.column(0).as_dictionary::<UInt32Type>();
    assert_eq!(strings.keys().iter().collect::<Vec<_>>(), [Some(1), None, Some(0)]);
    assert_eq!(strings.keys().values().as_ptr().cast(), address, "indices are not copied");
    assert_eq!(strings.values().as_string_view().value(1), "\"an entry of some length\"");

    // The next batch has the same dictionary of strings, which is not converted again. Dates are plain by now.
    let next = convert(of(&[0, 0, 1], &entries), int32(&[1, 2, 3])).unwrap();
    assert!(Arc::ptr_eq(next.column(0).as_dictionary::<UInt32Type>().values(), strings.values()));
    assert_eq!(next.schema().field(1).data_type(), &DataType::Date32);

    assert_eq!(convert(of(&[0, 0, 2], &entries), int32(&[1, 2, 3])).unwrap_err().kind(), ErrorKind::Misuse);
    let bad = Arc::new(text(&[b"\xff"]));
    let error = convert(of(&[0, 0, 0], &bad), int32(&[1, 2, 3])).unwrap_err();
    assert_eq!(error.to_string(), "text that is not UTF-8 (column s, row group 2)");
    // Only nulls, of a dictionary without entries.
    let nothing = of(&[0, 0], &Arc::new(text(&[])));
    let made = column("OPTIONAL BYTE_ARRAY s (STRING);", nothing, "00").unwrap();
    assert_eq!((made.len(), made.logical_null_count()), (2, 2));
}

const LIST: &str =
    "OPTIONAL GROUP l (LIST) = 1 { REPEATED GROUP list { OPTIONAL BYTE_ARRAY element (STRING) = 2; } }";

#[test]
fn lists() {
    let footer = footer(LIST);
    // [a, null], null, [], [b].
    let found = || nested(0, 4, text(&[b"a", b"b"]), &[3, 2, 0, 1, 3], &[0, 1, 0, 0, 0]);
    let made = converted(&footer.schema, vec![found()]).unwrap();
    let field = made.schema().field(0).clone();
    let element = Field::new("element", DataType::Utf8View, true)
        .with_metadata([("PARQUET:field_id".to_owned(), "2".to_owned())]);
    assert_eq!(field.data_type(), &DataType::List(Arc::new(element)));
    assert_eq!(field.metadata()["PARQUET:field_id"], "1");
    let list = made.column(0).as_list::<i32>();
    assert_eq!(list.offsets()[..], [0, 2, 2, 2, 3]);
    assert_eq!((0..4).map(|row| list.is_null(row)).collect::<Vec<_>>(), [false, true, false, false]);
    assert_eq!(list.values().as_string_view().iter().collect::<Vec<_>>(), [Some("a"), None, Some("b")]);

    // A dictionary below a list: the list's type changes, too.
    let entries = Arc::new(text(&[b"b", b"a"]));
    let found =
        nested(0, 4, Values::Dictionary(vec![1, 0].into(), entries), &[3, 2, 0, 1, 3], &[0, 1, 0, 0, 0]);
    let made = converted(&footer.schema, vec![found]).unwrap();
    let DataType::List(element) = made.schema().field(0).data_type().clone() else { panic!() };
    assert_eq!(element.data_type().to_string(), "Dictionary(UInt32, Utf8View)");
    let keys = made.column(0).as_list::<i32>().values().as_dictionary::<UInt32Type>().keys().clone();
    assert_eq!(keys.iter().collect::<Vec<_>>(), [Some(1), None, Some(0)]);

    // An error below a list names no row.
    let found = nested(0, 1, text(&[b"a", b"\xff"]), &[3, 3], &[0, 1]);
    let error = converted(&footer.schema, vec![found]).unwrap_err();
    assert_eq!(error.to_string(), "text that is not UTF-8 (column l.list.element, row group 2)");
}

#[test]
fn nested_values_are_not_copied_again() {
    let footer = footer("REQUIRED GROUP l (LIST) { REPEATED GROUP list { REQUIRED INT64 element; } }");
    let values = int64(&[1, 2, 3]);
    let address = address(&values);
    let made = converted(&footer.schema, vec![nested(0, 2, values, &[1, 1, 1], &[0, 1, 0])]).unwrap();
    assert_eq!(first_buffer(made.column(0).as_list::<i32>().values()), address);
}

#[test]
fn repeated_fields_without_annotation() {
    let footer = footer("REPEATED INT32 r = 4;");
    let made = converted(&footer.schema, vec![nested(0, 2, int32(&[1, 2]), &[1, 1, 0], &[0, 1, 0])]).unwrap();
    let element = Field::new("r", DataType::Int32, false);
    assert_eq!(made.schema().field(0).data_type(), &DataType::List(Arc::new(element)));
    assert_eq!(made.schema().field(0).metadata()["PARQUET:field_id"], "4");
    assert_eq!(made.column(0).as_list::<i32>().offsets()[..], [0, 2, 2]);
}

const MAP: &str = "OPTIONAL GROUP m (MAP) {
    REPEATED GROUP key_value { OPTIONAL BYTE_ARRAY key (STRING); OPTIONAL INT32 value; } }";

#[test]
fn maps() {
    let footer = footer(MAP);
    // {a: 1, b: null}, {}.
    let values = nested(1, 2, int32(&[1]), &[3, 2, 1], &[0, 1, 0]);
    let keys = nested(0, 2, text(&[b"a", b"b"]), &[3, 3, 1], &[0, 1, 0]);
    let made = converted(&footer.schema, vec![keys, values.clone()]).unwrap();
    let pairs = Field::new_struct(
        "key_value",
        vec![Field::new("key", DataType::Utf8View, false), Field::new("value", DataType::Int32, true)],
        false,
    );
    assert_eq!(made.schema().field(0).data_type(), &DataType::Map(Arc::new(pairs), false));
    let map = made.column(0).as_map();
    assert_eq!(map.offsets()[..], [0, 2, 2]);
    assert_eq!(map.keys().as_string_view().iter().collect::<Vec<_>>(), [Some("a"), Some("b")]);
    assert_eq!(numbers::<Int32Type>(map.values()), [Some(1), None]);

    let keys = nested(0, 2, text(&[b"a"]), &[3, 2, 1], &[0, 1, 0]);
    let error = converted(&footer.schema, vec![keys, values]).unwrap_err();
    assert_eq!(error.to_string(), "a null map key, which Arrow's maps cannot hold (column m, row group 2)");
    assert_eq!(error.kind(), ErrorKind::Conversion);

    // Without its values it is a list of keys; without its keys, of values.
    for (leaf, name) in [(0, "key"), (1, "value")] {
        let schema = arrow_schema(&footer.schema, Some(&[leaf])).unwrap();
        let DataType::List(element) = schema.field(0).data_type() else { panic!("{schema}") };
        assert_eq!(element.name(), name);
    }
}

const STRUCT: &str =
    "OPTIONAL GROUP s { REQUIRED INT96 t; REQUIRED BYTE_ARRAY b (STRING); OPTIONAL INT32 i; }";

#[test]
fn structs() {
    let footer = footer(STRUCT);
    // null, {t, b, null}, {t, b, 3}.
    let day = int96(7, 2_440_588);
    let times = Values::Int96(FixedBytes::new(12, 2, [day.clone(), day].concat().into()));
    let columns = |texts| {
        let times = nested(0, 3, times.clone(), &[0, 1, 1], &[]);
        vec![times, nested(1, 3, texts, &[0, 1, 1], &[]), nested(2, 3, int32(&[3]), &[0, 1, 2], &[])]
    };
    let made = converted(&footer.schema, columns(text(&[b"x", b"y"]))).unwrap();
    let found = made.column(0).as_struct();
    assert_eq!((found.is_null(0), found.null_count()), (true, 1));
    // The slot below the null is not a timestamp out of range, because it has no value.
    assert_eq!(numbers::<TimestampNanosecondType>(found.column(0)), [Some(0), Some(7), Some(7)]);
    assert_eq!(found.column(1).as_string_view().value(2), "y");
    assert_eq!(numbers::<Int32Type>(found.column(2)), [None, None, Some(3)]);
    // In a struct, rows are known.
    let error = converted(&footer.schema, columns(text(&[b"x", b"\xff"]))).unwrap_err();
    assert_eq!(error.to_string(), "text that is not UTF-8 (column s.b, row 102, row group 2)");

    // Only null structs, so dictionaries without entries for required fields.
    let no_times = Values::Int96(FixedBytes::new(12, 0, Vec::new().into()));
    let columns = vec![
        nested(0, 2, Values::Dictionary(Vec::new().into(), Arc::new(no_times)), &[0, 0], &[]),
        nested(1, 2, Values::Dictionary(Vec::new().into(), Arc::new(text(&[]))), &[0, 0], &[]),
        nested(2, 2, int32(&[]), &[0, 0], &[]),
    ];
    assert_eq!(converted(&footer.schema, columns).unwrap().column(0).null_count(), 2);
}

#[test]
fn required_fields_far_below_a_null() {
    let fields = "OPTIONAL GROUP s { REQUIRED GROUP t { REQUIRED BYTE_ARRAY b (STRING); } }";
    let nothing = |definition: &[u8]| {
        let dictionary = Values::Dictionary(Vec::new().into(), Arc::new(text(&[])));
        converted(&footer(fields).schema, vec![nested(0, definition.len(), dictionary, definition, &[])])
    };
    let made = nothing(&[0, 0]).unwrap();
    assert_eq!((made.num_rows(), made.column(0).null_count()), (2, 2));
    assert_eq!(nothing(&[]).unwrap().num_rows(), 0);
    // But if there is a value, there must be an entry.
    let flat = flat(0, Values::Dictionary(vec![0].into(), Arc::new(text(&[]))), "1");
    let error = converted(&footer("REQUIRED BYTE_ARRAY b (STRING);").schema, vec![flat]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
}

#[test]
fn variants_are_marked() {
    let footer =
        footer("OPTIONAL GROUP v (VARIANT) { REQUIRED BYTE_ARRAY metadata; REQUIRED BYTE_ARRAY value; }");
    let schema = arrow_schema(&footer.schema, None).unwrap();
    assert_eq!(schema.field(0).extension_type_name(), Some("arrow.parquet.variant"));
    assert_eq!(schema.field(0).data_type().to_string().matches("BinaryView").count(), 2);
}

#[test]
fn projections() {
    let footer = footer(&format!("REQUIRED INT32 a; {STRUCT} REQUIRED INT32 z;"));
    let names = |leaves: &[usize]| {
        arrow_schema(&footer.schema, Some(leaves)).map(|schema| {
            let name = |field: &Arc<Field>| match field.data_type() {
                DataType::Struct(fields) => {
                    fields.iter().map(|field| field.name().as_str()).collect::<String>()
                }
                _ => field.name().clone(),
            };
            schema.fields().iter().map(name).collect::<Vec<_>>()
        })
    };
    assert_eq!(names(&[4, 0]).unwrap(), ["z", "a"]);
    // A struct's fields are in the schema's order, at the place of its first requested leaf.
    assert_eq!(names(&[3, 0, 1]).unwrap(), ["ti", "a"]);
    assert_eq!(names(&[]).unwrap(), [""; 0]);
    assert_eq!(names(&[0, 0]).unwrap_err().message(), "leaf 0 is asked for twice");
    assert_eq!(names(&[5]).unwrap_err().kind(), ErrorKind::Misuse);

    let mut to_arrow = ToArrow::new(&footer.schema, Some(&[4, 0])).unwrap();
    let both = batch(vec![flat(4, int32(&[9]), "1"), flat(0, int32(&[8]), "1")]);
    let made = to_arrow.record_batch(&both).unwrap();
    assert_eq!(numbers::<Int32Type>(made.column(0)), [Some(9)]);
    assert_eq!(to_arrow.schema(), &made.schema());
    // Of no columns, rows are counted all the same.
    let none = Batch { columns: Vec::new(), ..both };
    assert_eq!(ToArrow::new(&footer.schema, Some(&[])).unwrap().record_batch(&none).unwrap().num_rows(), 1);
}

#[test]
fn key_values_are_handed_on() {
    let pair = |key: &str, value: Option<&[u8]>| KeyValue {
        key: key.into(),
        value: value.map(Bytes::copy_from_slice),
    };
    let pairs = [pair("ARROW:schema", Some(b"/////w==")), pair("none", None), pair("bytes", Some(b"\xff"))];
    let footer = footer("REQUIRED INT32 a;");
    let to_arrow = ToArrow::new(&footer.schema, None).unwrap().with_key_values(&pairs);
    let made = { to_arrow }.record_batch(&batch(vec![flat(0, int32(&[1]), "1")])).unwrap();
    assert_eq!(made.schema().metadata().len(), 1);
    assert_eq!(made.schema().metadata()["ARROW:schema"], "/////w==");
}
