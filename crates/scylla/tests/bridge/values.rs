//! Every type: its CQL type, its literals, its cells.

use marquetry_parquet::batch::Values;
use marquetry_scylla::bridge::{InvalidUtf8, MappingOptions};

use crate::batch::{batch, bytes, cell, fixed, fixed_bytes, int32, int64, mapping, numbered, text};
use crate::schema::{self, BYTE_ARRAY, INT32, INT64, Note, Physical, UTF8, leaf, logical};

/// Checks a column's type, and each value's literal and cell (in hexadecimal digits).
#[track_caller]
fn check_with(
    options: &MappingOptions,
    physical: Physical,
    note: Note,
    values: Values,
    cql: &str,
    expected: &[(&str, &str)],
) {
    let mapping = mapping(&[leaf("c", physical, note)], options).unwrap();
    assert_eq!(mapping.columns()[1].cql_type.to_string(), cql);
    assert_eq!(values.len(), expected.len());
    let batch = batch(vec![(values, None)]);
    let statements: String = (0..)
        .zip(expected)
        .map(|(row, (literal, _))| format!("INSERT INTO t (n, c) VALUES ({row}, {literal});\n"))
        .collect();
    assert_eq!(text(&mapping, &batch).unwrap(), statements);
    for (row, (literal, digits)) in expected.iter().enumerate() {
        let cell = cell(&mapping, 1, &batch, row).unwrap().unwrap();
        let hex: String = cell.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, *digits, "{literal}");
    }
}

#[track_caller]
fn check(physical: Physical, note: Note, values: Values, cql: &str, expected: &[(&str, &str)]) {
    check_with(&numbered(), physical, note, values, cql, expected);
}

/// Checks that the value in the second row is refused, as text and as a cell, and that the first is not.
#[track_caller]
fn refused(physical: Physical, note: Note, values: Values, message: &str) {
    let mapping = mapping(&[leaf("c", physical, note)], &numbered()).unwrap();
    let batch = batch(vec![(values, None)]);
    let expected = format!("{message} (column c, row 1001, row group 2)");
    assert_eq!(text(&mapping, &batch).unwrap_err().to_string(), expected);
    assert!(cell(&mapping, 1, &batch, 0).is_ok());
    let error = cell(&mapping, 1, &batch, 1).unwrap_err();
    assert_eq!(error.to_string(), expected);
    assert_eq!(error.kind(), marquetry_base::ErrorKind::Conversion);
}

#[test]
fn booleans_and_floats() {
    let bits = Values::Boolean([true, false].into_iter().collect());
    check(schema::BOOLEAN, Note::None, bits, "boolean", &[("true", "01"), ("false", "00")]);
    let floats = Values::Float(vec![0.1, -0.0, f32::NEG_INFINITY, f32::NAN].into());
    let expected =
        [("0.1", "3dcccccd"), ("-0.0", "80000000"), ("-Infinity", "ff800000"), ("NaN", "7fc00000")];
    check(schema::FLOAT, Note::None, floats, "float", &expected);
    let doubles = Values::Double(vec![0.1, f64::INFINITY, f64::NAN].into());
    let expected =
        [("0.1", "3fb999999999999a"), ("Infinity", "7ff0000000000000"), ("NaN", "7ff8000000000000")];
    check(schema::DOUBLE, Note::None, doubles, "double", &expected);
    let halves = fixed(&[&[0x00, 0x3c], &[0x01, 0x80], &[0x00, 0x7c]]);
    let expected = [("1.0", "3f800000"), ("-5.9604645e-8", "b3800000"), ("Infinity", "7f800000")];
    check(schema::fixed(2), logical(15), halves, "float", &expected);
}

#[test]
fn signed_integers() {
    let both = || int32(&[i32::MIN, i32::MAX]);
    let expected = [("-2147483648", "80000000"), ("2147483647", "7fffffff")];
    check(INT32, Note::None, both(), "int", &expected);
    check(INT32, schema::integer(32, true), both(), "int", &expected);
    let both = || int64(&[i64::MIN, i64::MAX]);
    let expected =
        [("-9223372036854775808", "8000000000000000"), ("9223372036854775807", "7fffffffffffffff")];
    check(INT64, Note::None, both(), "bigint", &expected);
    check(INT64, Note::Converted(18), both(), "bigint", &expected);
    for note in [Note::Converted(15), schema::integer(8, true)] {
        check(INT32, note.clone(), int32(&[-128, 127]), "tinyint", &[("-128", "80"), ("127", "7f")]);
        refused(INT32, note.clone(), int32(&[0, 128]), "128 is outside of the range of its type, INT(8)");
        refused(INT32, note, int32(&[0, -129]), "-129 is outside of the range of its type, INT(8)");
    }
    let note = schema::integer(16, true);
    check(INT32, note.clone(), int32(&[-32768, 32767]), "smallint", &[("-32768", "8000"), ("32767", "7fff")]);
    refused(INT32, note, int32(&[0, 32768]), "32768 is outside of the range of its type, INT(16)");
}

#[test]
fn unsigned_integers() {
    let note = schema::integer(8, false);
    check(INT32, note.clone(), int32(&[0, 255]), "smallint", &[("0", "0000"), ("255", "00ff")]);
    refused(INT32, note.clone(), int32(&[0, 256]), "256 is outside of the range of its type, UINT(8)");
    refused(INT32, note, int32(&[0, -1]), "-1 is outside of the range of its type, UINT(8)");
    let note = Note::Converted(12);
    check(INT32, note.clone(), int32(&[0, 65535]), "int", &[("0", "00000000"), ("65535", "0000ffff")]);
    refused(INT32, note, int32(&[0, 65536]), "65536 is outside of the range of its type, UINT(16)");
    let expected = [("1", "0000000000000001"), ("4294967295", "00000000ffffffff")];
    check(INT32, Note::Converted(13), int32(&[1, -1]), "bigint", &expected);
    let expected = [
        ("0", "00"),
        ("127", "7f"),
        ("128", "0080"),
        ("9223372036854775808", "008000000000000000"),
        ("18446744073709551615", "00ffffffffffffffff"),
    ];
    check(INT64, Note::Converted(14), int64(&[0, 127, 128, i64::MIN, -1]), "varint", &expected);
}

#[test]
fn decimals() {
    let expected = [("123.45", "000000023039"), ("-0.01", "00000002ff"), ("0.00", "0000000200")];
    check(INT32, Note::Decimal(2, 9), int32(&[12345, -1, 0]), "decimal", &expected);
    let expected = [("-9223372036854775808", "000000008000000000000000"), ("128", "000000000080")];
    check(INT64, Note::Decimal(0, 18), int64(&[i64::MIN, 128]), "decimal", &expected);
    let expected = [("1.5", "000000010f"), ("-0.1", "00000001ff"), ("12.8", "000000010080")];
    check(
        BYTE_ARRAY,
        Note::Decimal(1, 38),
        bytes(&[&[0, 0, 15][..], &[255], &[0, 128]]),
        "decimal",
        &expected,
    );
    let mut large = [0; 17];
    large[0] = 1;
    let expected = [
        ("340282366920938463463374607431768211.456", "0000000301".to_owned() + &"00".repeat(16)),
        ("-0.001", "00000003ff".to_owned()),
    ];
    let expected = expected.each_ref().map(|(literal, digits)| (*literal, digits.as_str()));
    check(schema::fixed(17), Note::Decimal(3, 39), fixed(&[&large, &[255; 17]]), "decimal", &expected);
    refused(BYTE_ARRAY, Note::Decimal(1, 5), bytes(&[&[1][..], &[]]), "a DECIMAL of no bytes");
}

#[test]
fn dates_and_times() {
    let expected = [
        ("'1970-01-01'", "80000000"),
        ("'1969-12-31'", "7fffffff"),
        ("'2024-02-29'", "80004d46"),
        ("0", "00000000"),
        ("4294967295", "ffffffff"),
    ];
    check(INT32, Note::Converted(6), int32(&[0, -1, 19_782, i32::MIN, i32::MAX]), "date", &expected);

    let expected =
        [("'00:00:00.000000000'", "0000000000000000"), ("'23:59:59.999000000'", "00004e94913fbdc0")];
    check(INT32, Note::Converted(7), int32(&[0, 86_399_999]), "time", &expected);
    refused(
        INT32,
        Note::Converted(7),
        int32(&[0, 86_400_000]),
        "86400000 is not a TIME(MILLIS) within a day",
    );
    refused(INT32, Note::Converted(7), int32(&[0, -1]), "-1 is not a TIME(MILLIS) within a day");
    let expected =
        [("'23:59:59.999999000'", "00004e94914efc18"), ("'00:00:00.000001000'", "00000000000003e8")];
    check(INT64, Note::Converted(8), int64(&[86_399_999_999, 1]), "time", &expected);
    let message = "9223372036854775807 is not a TIME(MICROS) within a day";
    refused(INT64, Note::Converted(8), int64(&[0, i64::MAX]), message);
    let expected = [("'23:59:59.999999999'", "00004e94914effff")];
    check(INT64, schema::time(7, true, 3), int64(&[86_399_999_999_999]), "time", &expected);
    let message = "86400000000000 is not a TIME(NANOS) within a day";
    refused(INT64, schema::time(7, false, 3), int64(&[0, 86_400_000_000_000]), message);
}

#[test]
fn timestamps() {
    let expected = [
        ("'1970-01-01T00:00:00.000Z'", "0000000000000000"),
        ("'1969-12-31T23:59:59.999Z'", "ffffffffffffffff"),
        ("9223372036854775807", "7fffffffffffffff"),
    ];
    for note in [Note::Converted(9), schema::time(8, true, 1), schema::time(8, false, 1)] {
        check(INT64, note, int64(&[0, -1, i64::MAX]), "timestamp", &expected);
    }
    for note in [Note::Converted(10), schema::time(8, false, 2), schema::time(8, true, 3)] {
        let expected = [("-1", "ffffffffffffffff"), ("1700000000000001", "00060a24181e4001")];
        check(INT64, note, int64(&[-1, 1_700_000_000_000_001]), "bigint", &expected);
    }
    let millis = MappingOptions { timestamps_as_millis: true, ..numbered() };
    let expected = [
        ("'1969-12-31T23:59:59.999Z'", "ffffffffffffffff"),
        ("'1970-01-01T00:00:00.000Z'", "0000000000000000"),
        ("'1970-01-01T00:00:00.001Z'", "0000000000000001"),
    ];
    check_with(&millis, INT64, Note::Converted(10), int64(&[-1, 999, 1000]), "timestamp", &expected);
    let nanos = int64(&[-1, 999_999, 1_000_000]);
    check_with(&millis, INT64, schema::time(8, true, 3), nanos, "timestamp", &expected);
}

#[test]
fn int96_timestamps() {
    let int96 = |nanos: i64, day: i32| [&nanos.to_le_bytes()[..], &day.to_le_bytes()].concat();
    let values = [
        int96(0, 2_440_588),
        int96(-1, 2_440_588),
        int96(86_400_000_000_000, 2_440_588),
        int96(999_999, 2_440_589),
        int96(i64::MIN, 2_440_588),
        int96(0, i32::MIN),
        // As Spark 3.4 writes the year 290000, and its first microsecond.
        int96(53_890_448_384_000, -105_862_233),
        int96(71_945_224_192_000, -104_311_404),
    ];
    let values = Values::Int96(fixed_bytes(&values.each_ref().map(|value| &value[..])));
    let expected = [
        ("'1970-01-01T00:00:00.000Z'", "0000000000000000"),
        ("'1969-12-31T23:59:59.999Z'", "ffffffffffffffff"),
        ("'1970-01-02T00:00:00.000Z'", "0000000005265c00"),
        ("'1970-01-02T00:00:00.000Z'", "0000000005265c00"),
        ("'1677-09-21T00:12:43.145Z'", "fffff79c842fa509"),
        ("-185753453990400000", "fd6c1237bf19b000"),
        ("9089380393200000", "00204abe4990a980"),
        ("-9223372036854776", "ffdf3b645a1cac08"),
    ];
    assert_eq!((-2_147_483_648_i64 - 2_440_588) * 86_400_000, -185_753_453_990_400_000);
    check(schema::INT96, Note::None, values, "timestamp", &expected);
}

#[test]
fn intervals() {
    let interval = |parts: [u32; 3]| parts.map(u32::to_le_bytes).concat();
    let values = [interval([1, 2, 3]), interval([0, 0, 0]), interval([i32::MAX as u32, 0, u32::MAX])];
    let values = fixed(&values.each_ref().map(|value| &value[..]));
    let expected = [
        ("1mo2d3000000ns", "0204e05b8d80"),
        ("0ns", "000000"),
        ("2147483647mo4294967295000000ns", "f0fffffffe00fe1e847fffe17b80"),
    ];
    check(schema::fixed(12), Note::Converted(21), values, "duration", &expected);
    for (parts, message) in [
        ([1 << 31, 0, 0], "an INTERVAL of 2147483648 months and 0 days is beyond a duration"),
        ([0, u32::MAX, 0], "an INTERVAL of 0 months and 4294967295 days is beyond a duration"),
    ] {
        let values = [interval([0, 0, 0]), interval(parts)];
        let values = fixed(&values.each_ref().map(|value| &value[..]));
        refused(schema::fixed(12), Note::Converted(21), values, message);
    }
}

#[test]
fn texts() {
    let values = ["", "abc", "it's", "''", "zwölf Züge, it's", "a long one, beyond a view", "line\nend\0"];
    let expected = [
        "''",
        "'abc'",
        "'it''s'",
        "''''''",
        "'zwölf Züge, it''s'",
        "'a long one, beyond a view'",
        "'line\nend\0'",
    ];
    let digits = values.map(|value| value.bytes().map(|byte| format!("{byte:02x}")).collect::<String>());
    let expected: Vec<_> =
        expected.iter().zip(&digits).map(|(literal, digits)| (*literal, digits.as_str())).collect();
    for note in [UTF8, Note::Converted(4), Note::Converted(19), logical(1), logical(4), logical(12)] {
        check(BYTE_ARRAY, note, bytes(&values), "text", &expected);
    }
}

#[test]
fn texts_that_are_not_utf8() {
    let values = || bytes(&[&b"fine"[..], b"ab\xffc", b"cut \xe2\x82"]);
    refused(BYTE_ARRAY, UTF8, values(), "text that is not UTF-8: the byte 0xff at 2");
    let long = || bytes(&[vec![b'a'; 100], [vec![b'a'; 98], vec![0xe2, 0x82]].concat()]);
    refused(BYTE_ARRAY, logical(12), long(), "text that is not UTF-8: the byte 0xe2 at 98");
    let replace = MappingOptions { invalid_utf8: InvalidUtf8::Replace, ..numbered() };
    let expected =
        [("'fine'", "66696e65"), ("'ab\u{fffd}c'", "6162efbfbd63"), ("'cut \u{fffd}'", "63757420efbfbd")];
    check_with(&replace, BYTE_ARRAY, UTF8, values(), "text", &expected);
    let blob = MappingOptions { invalid_utf8: InvalidUtf8::Blob, ..numbered() };
    let expected =
        [("0x66696e65", "66696e65"), ("0x6162ff63", "6162ff63"), ("0x63757420e282", "63757420e282")];
    check_with(&blob, BYTE_ARRAY, UTF8, values(), "blob", &expected);
}

#[test]
fn bytes_and_uuids() {
    let values = || bytes(&[&b""[..], b"\x00\xff'", b"longer than a view is"]);
    let expected = [
        ("0x", ""),
        ("0x00ff27", "00ff27"),
        ("0x6c6f6e676572207468616e20612076696577206973", "6c6f6e676572207468616e20612076696577206973"),
    ];
    // Raw, BSON, GEOMETRY, GEOGRAPHY, and an unknown logical type.
    for note in [Note::None, Note::Converted(20), logical(13), logical(17), logical(18), logical(99)] {
        check(BYTE_ARRAY, note, values(), "blob", &expected);
    }
    check(schema::fixed(3), Note::None, fixed(&[b"\x01\x02\x03"]), "blob", &[("0x010203", "010203")]);
    check(INT32, logical(99), int32(&[7]), "int", &[("7", "00000007")]);
    let uuid: Vec<u8> = (0..16).map(|byte| byte * 0x11).collect();
    let expected = [("00112233-4455-6677-8899-aabbccddeeff", "00112233445566778899aabbccddeeff")];
    check(schema::fixed(16), logical(14), fixed(&[&uuid]), "uuid", &expected);
}

#[test]
fn unknown_is_null_whatever_holds_it() {
    let values = [int32(&[0, 0]), bytes(&["", ""]), Values::Boolean([false, false].into_iter().collect())];
    for (physical, values) in [INT32, BYTE_ARRAY, schema::BOOLEAN].into_iter().zip(values) {
        let mapping = mapping(&[leaf("c", physical, logical(11))], &numbered()).unwrap();
        assert_eq!(mapping.columns()[1].cql_type.to_string(), "int");
        let nulls = batch(vec![(values.clone(), Some(&[0, 0]))]);
        let expected = "INSERT INTO t (n) VALUES (0);\nINSERT INTO t (n) VALUES (1);\n";
        assert_eq!(text(&mapping, &nulls).unwrap(), expected);
        assert_eq!(cell(&mapping, 1, &nulls, 1).unwrap(), None);
        let there = batch(vec![(values, Some(&[0, 1]))]);
        let message =
            "a value in a column of the type UNKNOWN, which is always null (column c, row 1001, row group 2)";
        assert_eq!(text(&mapping, &there).unwrap_err().to_string(), message);
        assert_eq!(cell(&mapping, 1, &there, 1).unwrap_err().to_string(), message);
    }
}
