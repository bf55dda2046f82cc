//! What `tests/data/all_types.parquet` must become in CQL: constants, in the order of `dev/conformance/all_types.py`,
//! which wrote the file with pyarrow.

use scylla::value::{CqlDate, CqlDecimal, CqlDuration, CqlTime, CqlTimestamp, CqlValue, CqlVarint};

/// Rows of the file.
pub(crate) const ROWS: usize = 6;

/// A column: its name in the file and in the table, its CQL type, and its value in each row.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) cql_type: &'static str,
    pub(crate) values: [Option<CqlValue>; ROWS],
}

/// Whether a value that was read is the one expected, to the last bit. CQL has one NaN. Sets and maps have the server's order.
pub(crate) fn same(read: &Option<CqlValue>, expected: &Option<CqlValue>) -> bool {
    match (read, expected) {
        (Some(read), Some(expected)) => same_value(read, expected),
        (read, expected) => read.is_none() && expected.is_none(),
    }
}

fn same_value(read: &CqlValue, expected: &CqlValue) -> bool {
    match (read, expected) {
        (CqlValue::Float(a), CqlValue::Float(b)) => a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(),
        (CqlValue::Double(a), CqlValue::Double(b)) => a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(),
        // Digits and scale: 1.10 is not 1.1.
        (CqlValue::Decimal(a), CqlValue::Decimal(b)) => {
            let parts = |decimal: &CqlDecimal| {
                let (unscaled, scale) = decimal.as_signed_be_bytes_slice_and_exponent();
                (CqlVarint::from_signed_bytes_be_slice(unscaled), scale)
            };
            parts(a) == parts(b)
        }
        (CqlValue::List(a), CqlValue::List(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_value(a, b))
        }
        (CqlValue::Set(a), CqlValue::Set(b)) => {
            a.len() == b.len() && b.iter().all(|b| a.iter().any(|a| same_value(a, b)))
        }
        (CqlValue::Map(a), CqlValue::Map(b)) => {
            let has = |(key, value): &(CqlValue, CqlValue)| {
                a.iter().any(|(k, v)| same_value(k, key) && same_value(v, value))
            };
            a.len() == b.len() && b.iter().all(has)
        }
        (CqlValue::UserDefinedType { fields: a, .. }, CqlValue::UserDefinedType { fields: b, .. }) => {
            a.len() == b.len() && a.iter().zip(b).all(|((m, a), (n, b))| m == n && same(a, b))
        }
        (read, expected) => read == expected,
    }
}

const DAY_NS: i64 = 86_400_000_000_000;

#[rustfmt::skip]
pub(crate) fn columns() -> Vec<Column> {
    use CqlValue::{BigInt, Boolean, Double, Float, Int, SmallInt, TinyInt};
    let (text, blob) = (|text: &str| CqlValue::Text(text.to_owned()), |bytes: &[u8]| CqlValue::Blob(bytes.to_vec()));
    let varint = |hex: &str| CqlValue::Varint(CqlVarint::from_signed_bytes_be(bytes(hex)));
    let decimal = |hex: &str, scale| CqlValue::Decimal(CqlDecimal::from_signed_be_bytes_and_exponent(bytes(hex), scale));
    let uuid = |hex: &str| CqlValue::Uuid(hex.parse().unwrap());
    let date = |raw| CqlValue::Date(CqlDate(raw));
    let time = |nanos| CqlValue::Time(CqlTime(nanos));
    let millis = |millis| CqlValue::Timestamp(CqlTimestamp(millis));
    let span = |months, days, nanoseconds| CqlValue::Duration(CqlDuration { months, days, nanoseconds });
    let column = |name, cql_type, values: [Option<CqlValue>; ROWS]| Column { name, cql_type, values };
    let integers = |name, cql_type: &'static str| column(name, cql_type, {
        let of = |value| Some(if cql_type == "timestamp" { millis(value) } else { BigInt(value) });
        [of(0), of(-1), of(i64::MIN), of(i64::MAX), of(1_763_596_800_123), None]
    });
    vec![
        column("id", "int", [0, 1, 2, 3, 4, 5].map(|id| Some(Int(id)))),
        column("Boolean", "boolean", [Some(Boolean(true)), Some(Boolean(false)), Some(Boolean(true)), None, Some(Boolean(false)), None]),
        column("int8", "tinyint", [Some(TinyInt(-128)), Some(TinyInt(127)), Some(TinyInt(0)), Some(TinyInt(-1)), None, None]),
        column("int16", "smallint", [Some(SmallInt(-32768)), Some(SmallInt(32767)), Some(SmallInt(0)), Some(SmallInt(-1)), None, None]),
        column("int32", "int", [Some(Int(i32::MIN)), Some(Int(i32::MAX)), Some(Int(0)), Some(Int(-1)), None, None]),
        column("int64", "bigint", [Some(BigInt(i64::MIN)), Some(BigInt(i64::MAX)), Some(BigInt(0)), Some(BigInt(-1)), None, None]),
        column("uint8", "smallint", [Some(SmallInt(255)), Some(SmallInt(128)), Some(SmallInt(0)), Some(SmallInt(1)), None, None]),
        column("uint16", "int", [Some(Int(65535)), Some(Int(32768)), Some(Int(0)), Some(Int(1)), None, None]),
        column("uint32", "bigint", [Some(BigInt(4_294_967_295)), Some(BigInt(2_147_483_648)), Some(BigInt(0)), Some(BigInt(1)), None, None]),
        column("uint64", "varint", [Some(varint("00ffffffffffffffff")), Some(varint("008000000000000000")), Some(varint("00")), Some(varint("7f")), Some(varint("0080")), None]),
        column("float16", "float", [Some(Float(0.5)), Some(Float(-65504.0)), Some(Float(5.960_464_5e-8)), Some(Float(f32::INFINITY)), Some(Float(f32::NAN)), None]),
        column("float", "float", [Some(Float(0.1)), Some(Float(f32::MAX)), Some(Float(f32::from_bits(1))), Some(Float(f32::NEG_INFINITY)), Some(Float(f32::NAN)), None]),
        column("double", "double", [Some(Double(0.1)), Some(Double(f64::MAX)), Some(Double(f64::from_bits(1))), Some(Double(f64::INFINITY)), Some(Double(f64::NAN)), None]),
        column("minus zero", "double", [Some(Double(-0.0)), Some(Double(0.0)), Some(Double(1e21)), Some(Double(1e-7)), Some(Double(123_456_789.125)), None]),
        column("decimal_9_2", "decimal", [Some(decimal("3b9ac9ff", 2)), Some(decimal("c4653601", 2)), Some(decimal("00", 2)), Some(decimal("6e", 2)), Some(decimal("ff", 2)), None]),
        column("decimal_18_0", "decimal", [Some(decimal("0de0b6b3a763ffff", 0)), Some(decimal("f21f494c589c0001", 0)), Some(decimal("00", 0)), Some(decimal("03e8", 0)), None, None]),
        column("decimal_38_10", "decimal", [Some(decimal("4b3b4ca85a86c47a098a223fffffffff", 10)), Some(decimal("b4c4b357a5793b85f675ddc000000001", 10)), Some(decimal("00", 10)), Some(decimal("0080", 10)), Some(decimal("80", 10)), None]),
        column("decimal_76_76", "decimal", [Some(decimal("161bcca7119915b50764b4abe86529797775a5f171950fffffffffffffffffff", 76)), Some(decimal("e9e43358ee66ea4af89b4b54179ad686888a5a0e8e6af0000000000000000001", 76)), Some(decimal("00", 76)), Some(decimal("01", 76)), None, None]),
        column("decimal_bytes", "decimal", [Some(decimal("7f", 3)), Some(decimal("80", 3)), Some(decimal("01", 3)), Some(decimal("ff7f", 3)), Some(decimal("0080", 3)), None]),
        column("string", "text", [Some(text("")), Some(text("it's \"quoted\"")), Some(text("a\nb\r\t\\n\0$$--/*")), Some(text("Grüße 🚀 \u{2028}")), Some(text(&"x".repeat(5000))), None]),
        column("enum", "text", [Some(text("HEARTS")), Some(text("")), Some(text("'")), Some(text("SPADES")), None, None]),
        column("json", "text", [Some(text(r#"{"a": [1, "it's"]}"#)), Some(text("null")), Some(text("\"\"")), Some(text("[]")), None, None]),
        column("uuid", "uuid", [Some(uuid("00000000-0000-0000-0000-000000000000")), Some(uuid("ffffffff-ffff-ffff-ffff-ffffffffffff")), Some(uuid("00010203-0405-0607-0809-0a0b0c0d0e0f")), Some(uuid("550e8400-e29b-41d4-a716-446655440000")), None, None]),
        column("binary", "blob", [Some(blob(b"")), Some(blob(b"\0")), Some(blob(&(0..=255).collect::<Vec<u8>>())), Some(blob(b"not \xff UTF-8")), Some(blob(b"'")), None]),
        column("fixed", "blob", [Some(blob(b"abc")), Some(blob(b"\0\0\0")), Some(blob(b"\xff\xff\xff")), None, None, None]),
        column("bson", "blob", [Some(blob(b"\x05\0\0\0\0")), Some(blob(b"")), None, None, None, None]),
        // The raw number has 1970-01-01 at 2^31.
        column("date", "date", [Some(date(1 << 31)), Some(date((1 << 31) - 1)), Some(date((1 << 31) + 20412)), Some(date(0)), Some(date(u32::MAX)), None]),
        column("time_millis", "time", [Some(time(0)), Some(time(DAY_NS - 1_000_000)), Some(time(1_000_000)), None, None, None]),
        column("time_micros", "time", [Some(time(0)), Some(time(DAY_NS - 1000)), Some(time(1000)), None, None, None]),
        column("time_nanos", "time", [Some(time(0)), Some(time(DAY_NS - 1)), Some(time(1)), None, None, None]),
        integers("timestamp_ms_utc", "timestamp"),
        integers("timestamp_ms_local", "timestamp"),
        integers("timestamp_us_utc", "bigint"),
        integers("timestamp_us_local", "bigint"),
        integers("timestamp_ns_utc", "bigint"),
        integers("timestamp_ns_local", "bigint"),
        column("int96", "timestamp", [Some(millis(0)), Some(millis(-1)), Some(millis(1_763_600_523_004)), Some(millis(-60_480_000_000_000)), None, None]),
        column("interval", "duration", [Some(span(0, 0, 0)), Some(span(1, 2, 3_000_000)), Some(span(i32::MAX, i32::MAX, 4_294_967_295_000_000)), Some(span(0, 0, 1_000_000)), None, None]),
        column("unknown", "int", [const { None }; ROWS]),
    ]
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}
