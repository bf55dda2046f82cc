use super::*;
use alloc::string::ToString;

fn text(text: &str) -> Value<'_> {
    Value::Text { bytes: Cow::Borrowed(text.as_bytes()), is_plain: false }
}

fn cast(to: &str) -> Cast {
    Cast::to(&CqlType::parse(to).unwrap(), &MappingOptions::default()).unwrap()
}

/// A value in another type, as CQL prints it; `None` if it does not fit.
fn printed(value: Value<'_>, to: &str) -> Option<String> {
    let made = cast(to).of(value).ok()?;
    let mut out = Vec::new();
    literals::write(&mut out, &made).unwrap();
    Some(String::from_utf8(out).unwrap())
}

#[track_caller]
fn fits(value: &Value<'_>, to: &str, expected: &str) {
    assert_eq!(printed(value.clone(), to).as_deref(), Some(expected), "{value:?} to {to}");
}

#[track_caller]
fn misfits(value: &Value<'_>, to: &str) {
    assert_eq!(printed(value.clone(), to), None, "{value:?} to {to}");
}

#[test]
fn integers_are_checked() {
    for to in ["tinyint", "smallint", "int", "bigint", "counter", "varint", "decimal", "double", "float"] {
        let printed = if matches!(to, "double" | "float") { "127.0" } else { "127" };
        fits(&Value::Bigint(127), to, printed);
        fits(&Value::Tinyint(127), to, printed);
        fits(&Value::Unsigned(127), to, printed);
    }
    fits(&Value::Bigint(-7), "text", "'-7'");
    for (value, to) in [(128, "tinyint"), (-129, "tinyint"), (1 << 15, "smallint"), (1 << 31, "int")] {
        misfits(&Value::Bigint(value), to);
    }
    misfits(&Value::Unsigned(1 << 63), "bigint");
    fits(&Value::Unsigned(u64::MAX), "varint", "18446744073709551615");
    // 2^24 + 1 is no binary32, 2^53 + 1 no binary64.
    misfits(&Value::Int((1 << 24) + 1), "float");
    fits(&Value::Int((1 << 24) + 2), "float", "16777218.0");
    misfits(&Value::Bigint((1 << 53) + 1), "double");
    let error = cast("tinyint").of(Value::Bigint(300)).unwrap_err();
    assert_eq!(error.to_string(), "300 does not fit the table's type there, tinyint");
}

#[test]
fn integers_may_be_written_with_a_fraction_of_zeros() {
    for (written, printed) in
        [("7.00", "7"), ("-0.0", "0"), ("1e3", "1000"), ("-1.20e2", "-120"), ("1200e-2", "12"), ("0e-9", "0")]
    {
        for to in ["int", "bigint", "varint"] {
            fits(&text(written), to, printed);
        }
    }
    fits(&text("9007199254740993.0"), "bigint", "9007199254740993");
    fits(&text("1e30"), "varint", "1000000000000000000000000000000");
    for written in ["9007199254740993.5", "0.1", "12e-1", "1e99999", ".", "e3"] {
        misfits(&text(written), "varint");
        misfits(&text(written), "bigint");
    }
    misfits(&text("1e30"), "bigint");
}

#[test]
fn decimals_and_floats_lose_no_digit() {
    let decimal = |unscaled, scale| Value::Decimal { unscaled, scale };
    fits(&decimal(1250, 2), "decimal", "12.50");
    fits(&decimal(1200, 2), "int", "12");
    misfits(&decimal(1250, 2), "int");
    misfits(&decimal(1 << 40, 0), "int");
    fits(&decimal(1250, 2), "double", "12.5");
    fits(&decimal(999_999_999_999_999, 15), "double", "0.999999999999999");
    misfits(&decimal(9_999_999_999_999_999, 15), "double");
    fits(&decimal(123_456, 3), "float", "123.456");
    misfits(&decimal(1_234_567, 3), "float");
    fits(&decimal(-5, 1), "text", "'-0.5'");
    let bytes = |unscaled: &'static [u8]| Value::DecimalBytes { unscaled: Cow::Borrowed(unscaled), scale: 2 };
    fits(&bytes(&[0, 200]), "varint", "2");
    misfits(&bytes(&[1, 0]), "varint");
    fits(&bytes(&[1, 0]), "decimal", "2.56");

    fits(&Value::Double(0.1), "float", "0.1");
    fits(&Value::Double(0.5), "float", "0.5");
    misfits(&Value::Double(0.123_456_789), "float");
    misfits(&Value::Double(1e300), "float");
    fits(&Value::Double(f64::NAN), "float", "NaN");
    fits(&Value::Float(0.5), "double", "0.5");
    fits(&Value::Double(-3.0), "int", "-3");
    misfits(&Value::Double(-3.5), "bigint");
    misfits(&Value::Double(f64::INFINITY), "bigint");
    fits(&Value::Double(1.25), "decimal", "1.25");
    misfits(&Value::Double(f64::NAN), "decimal");
    let error = cast("float").of(Value::Double(0.123_456_789)).unwrap_err();
    assert_eq!(error.detail(), Some(Detail::AdmittedBy(&["types"])));
}

#[test]
fn text_is_read_as_cql_writes_it() {
    for (to, written, printed) in [
        ("boolean", "TRUE", "true"),
        ("tinyint", " -128 ", "-128"),
        ("smallint", "+7", "7"),
        ("int", "2147483647", "2147483647"),
        ("bigint", "-9223372036854775808", "-9223372036854775808"),
        ("counter", "3", "3"),
        ("varint", "-123456789012345678901234567890", "-123456789012345678901234567890"),
        ("decimal", "-1.50", "-1.50"),
        ("decimal", "1.5e-3", "0.0015"),
        ("decimal", ".5", "0.5"),
        ("double", "1e3", "1000.0"),
        ("double", "NaN", "NaN"),
        ("float", "0.1", "0.1"),
        ("date", "2024-02-29", "'2024-02-29'"),
        ("time", "01:02:03.000000004", "'01:02:03.000000004'"),
        ("timestamp", "2024-02-29T12:00:00.123Z", "'2024-02-29T12:00:00.123Z'"),
        ("timestamp", "2024-02-29 13:00:00.123000+0100", "'2024-02-29T12:00:00.123Z'"),
        ("timestamp", "1709208000123", "'2024-02-29T12:00:00.123Z'"),
        ("uuid", "00112233-4455-6677-8899-aabbccddeeff", "00112233-4455-6677-8899-aabbccddeeff"),
        ("timeuuid", "00112233-4455-1677-8899-AABBCCDDEEFF", "00112233-4455-1677-8899-aabbccddeeff"),
        ("inet", "127.0.0.1", "'127.0.0.1'"),
        ("inet", "2001:db8::1", "'2001:db8::1'"),
        ("blob", "0xCAfe", "0xcafe"),
        ("ascii", "it's", "'it''s'"),
        ("duration", "1y2mo3w4d", "14mo25d"),
        ("duration", "-1h2m3s4ms5us6ns", "-3723004005006ns"),
        ("duration", "P1Y2M3DT4H", "14mo3d14400000000000ns"),
        ("duration", "P2W", "14d"),
    ] {
        fits(&text(written), to, printed);
    }
    for (to, written) in [
        ("boolean", "yes"),
        ("tinyint", "128"),
        ("int", "2147483648"),
        ("int", ""),
        ("varint", "-"),
        ("decimal", "1.5.0"),
        ("decimal", "NaN"),
        ("decimal", "."),
        ("decimal", "1e99999999999"),
        ("double", "1e400"),
        ("date", "2024-02-30"),
        ("time", "24:00:00"),
        ("timestamp", "2024-02-29T12:00:00.1234Z"),
        ("timestamp", "yesterday"),
        ("uuid", "00112233"),
        ("timeuuid", "00112233-4455-6677-8899-aabbccddeeff"),
        ("inet", "127.0.0"),
        ("inet", "localhost"),
        ("blob", "cafe"),
        ("ascii", "é"),
        ("duration", "1d1y"),
        ("duration", "1d1d"),
        ("duration", "P"),
        ("duration", "P1DT"),
        ("duration", "5"),
        ("duration", "d"),
        ("duration", "-"),
        ("duration", "3000000000d"),
    ] {
        misfits(&text(written), to);
    }
    // Cut off, if that is asked for.
    let options = MappingOptions { timestamps_as_millis: true, ..MappingOptions::default() };
    let rounding = Cast::to(&CqlType::Timestamp, &options).unwrap();
    let millis = |written| rounding.of(text(written)).unwrap();
    assert_eq!(millis("1970-01-01T00:00:00.0019Z"), Value::Timestamp(1));
    assert_eq!(millis("1969-12-31T23:59:59.9999Z"), Value::Timestamp(-1));
    let error = cast("timestamp").of(text("1970-01-01T00:00:00.0019Z")).unwrap_err();
    assert_eq!(error.detail(), Some(Detail::AdmittedBy(&["timestamps_as_millis"])));
    let error = cast("int").of(text(&"x".repeat(100))).unwrap_err().to_string();
    assert!(error.contains("xxx… does not fit the table's type there, int") && error.len() < 120, "{error}");
}

#[test]
fn days_and_uuids() {
    fits(&Value::Date(1), "timestamp", "'1970-01-02T00:00:00.000Z'");
    fits(&Value::Date(1), "text", "'1970-01-02'");
    fits(&Value::Timestamp(-DAY_MILLIS), "date", "'1969-12-31'");
    misfits(&Value::Timestamp(1), "date");
    let mut bytes = [7; 16];
    misfits(&Value::Uuid(bytes), "timeuuid");
    bytes[6] = 0x1a;
    fits(&Value::Uuid(bytes), "timeuuid", "07070707-0707-1a07-0707-070707070707");
    fits(&Value::Blob(Cow::Borrowed(&bytes)), "uuid", "07070707-0707-1a07-0707-070707070707");
    misfits(&Value::Blob(Cow::Borrowed(&bytes[1..])), "uuid");
    fits(&Value::Blob(Cow::Borrowed("é".as_bytes())), "text", "'é'");
    misfits(&Value::Blob(Cow::Borrowed(&[0xff])), "text");
    misfits(&Value::Blob(Cow::Borrowed("é".as_bytes())), "ascii");
}

/// What text is made of values reads as the same values.
#[test]
fn values_are_written_as_text() {
    for (value, written, from) in [
        (Value::Double(0.1), "0.1", "double"),
        (Value::Double(1e300), "1e+300", "double"),
        (Value::Double(-3.0), "-3.0", "double"),
        (Value::Float(0.1), "0.1", "float"),
        (Value::Boolean(true), "true", "boolean"),
        (Value::Time(3_723_000_000_004), "01:02:03.000000004", "time"),
        (Value::Timestamp(1_709_208_000_123), "2024-02-29T12:00:00.123Z", "timestamp"),
        (Value::Timestamp(-1), "1969-12-31T23:59:59.999Z", "timestamp"),
        (Value::Duration { months: 1, days: 2, nanos: 3 }, "1mo2d3ns", "duration"),
        (Value::Inet("2001:db8::1".parse().unwrap()), "2001:db8::1", "inet"),
    ] {
        for to in ["text", "ascii"] {
            fits(&value, to, &alloc::format!("'{written}'"));
        }
        assert_eq!(cast(from).of(text(written)).unwrap(), value, "{written}");
        assert!(is_possible(&cast(from).cql_type(), &CqlType::Text));
    }
    fits(&Value::Double(f64::NAN), "text", "'NaN'");
    fits(&Value::Double(f64::NEG_INFINITY), "text", "'-Infinity'");
}

/// Types that no value can be converted to are told before the first row.
#[test]
fn what_is_possible() {
    let parse = |text: &str| CqlType::parse(text).unwrap();
    for (from, to) in [
        ("boolean", "int"),
        ("int", "timestamp"),
        ("time", "timestamp"),
        ("timestamp", "bigint"),
        ("boolean", "inet"),
        ("duration", "bigint"),
        ("blob", "int"),
    ] {
        assert!(!is_possible(&parse(from), &parse(to)), "{from} to {to}");
    }
    assert!(is_possible(&CqlType::Text, &CqlType::Inet) && is_possible(&CqlType::Bigint, &CqlType::Counter));
    assert_eq!(Cast::to(&parse("list<int>"), &MappingOptions::default()), None);
}
