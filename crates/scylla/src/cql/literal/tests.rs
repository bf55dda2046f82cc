//! Edge values, and seeded random values that independent code reads back.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "the tests take a few bits of random numbers, and count short texts"
)]

use super::*;
use alloc::format;
use alloc::string::{String, ToString};

fn printed(write: impl FnOnce(&mut Vec<u8>)) -> String {
    // What precedes it must stay.
    let mut out = b"(".to_vec();
    write(&mut out);
    String::from_utf8(out).unwrap().strip_prefix('(').unwrap().to_string()
}

fn checked(write: impl FnOnce(&mut Vec<u8>) -> Result<(), LiteralError>) -> Result<String, LiteralError> {
    let mut result = Ok(());
    let text = printed(|out| result = write(out));
    if result.is_err() {
        assert_eq!(text, "", "a failed literal appends nothing");
    }
    result.map(|()| text)
}

/// A xorshift generator: the tests are the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[test]
fn simple_values() {
    assert_eq!(printed(null), "null");
    assert_eq!(printed(|out| boolean(out, true)), "true");
    assert_eq!(printed(|out| boolean(out, false)), "false");
    assert_eq!(printed(|out| integer(out, i8::MIN)), "-128");
    assert_eq!(printed(|out| integer(out, i64::MIN)), "-9223372036854775808");
    assert_eq!(printed(|out| integer(out, u64::MAX)), "18446744073709551615");
}

#[test]
fn texts() {
    assert_eq!(printed(|out| text(out, "")), "''");
    assert_eq!(printed(|out| text(out, "'")), "''''");
    assert_eq!(printed(|out| text(out, "it's ''so''")), "'it''s ''''so'''''");
    assert_eq!(printed(|out| text(out, "a\0b\n\r\"\\🦀--/*$$")), "'a\0b\n\r\"\\🦀--/*$$'");
    assert_eq!(checked(|out| ascii(out, "a'b")), Ok("'a''b'".into()));
    assert_eq!(checked(|out| ascii(out, "naïve")), Err(LiteralError::NotAscii { found: 'ï' }));
}

#[test]
fn random_texts_unquote_to_themselves() {
    let mut random = Random(7);
    for _ in 0..2000 {
        let length = random.next() % 50;
        let value: String =
            (0..length).map(|_| ['\'', 'a', 'é', '🦀', '\n'][(random.next() % 5) as usize]).collect();
        let quoted = printed(|out| text(out, &value));
        let inner = quoted.strip_prefix('\'').unwrap().strip_suffix('\'').unwrap();
        assert!(inner.split("''").all(|part| !part.contains('\'')));
        assert_eq!(inner.replace("''", "'"), value);
    }
}

#[test]
fn blobs_and_uuids() {
    assert_eq!(printed(|out| blob(out, b"")), "0x");
    assert_eq!(printed(|out| blob(out, &[0, 0x0f, 0xf0, 0xff])), "0x000ff0ff");
    let bytes: Vec<u8> = (0..=255).collect();
    let expected: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(printed(|out| blob(out, &bytes)), format!("0x{expected}"));
    assert_eq!(
        printed(|out| uuid(out, &0x0011_2233_4455_6677_8899_aabb_ccdd_eeff_u128.to_be_bytes())),
        "00112233-4455-6677-8899-aabbccddeeff"
    );
}

#[test]
fn addresses() {
    let address = |text: &str| printed(|out| inet(out, text.parse().unwrap()));
    assert_eq!(address("1.2.3.4"), "'1.2.3.4'");
    assert_eq!(address("2001:db8::1"), "'2001:db8::1'");
    assert_eq!(address("::"), "'::'");
    assert_eq!(address("::ffff:1.2.3.4"), "blobAsInet(0x00000000000000000000ffff01020304)");
}

#[test]
fn floats() {
    for (value, expected) in [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (0.1, "0.1"),
        (f32::MAX, "3.4028235e38"),
        (f32::MIN_POSITIVE, "1.1754944e-38"),
        (f32::from_bits(1), "1e-45"),
        (f32::INFINITY, "Infinity"),
        (f32::NEG_INFINITY, "-Infinity"),
        (f32::NAN, "NaN"),
        (-f32::NAN, "NaN"),
    ] {
        assert_eq!(printed(|out| float(out, value)).replace("e+", "e"), expected);
    }
    assert_eq!(printed(|out| double(out, 0.1 + 0.2)), "0.30000000000000004");
    assert_eq!(printed(|out| double(out, f64::from_bits(1))), "5e-324");
    assert_eq!(printed(|out| double(out, f64::NEG_INFINITY)), "-Infinity");
    assert_eq!(printed(|out| double(out, -f64::NAN)), "NaN");
}

#[test]
fn random_floats_read_back_and_are_tokens_of_the_grammar() {
    let mut random = Random(11);
    for _ in 0..100_000 {
        let bits = random.next();
        let wide = f64::from_bits(bits);
        if wide.is_finite() {
            let text = printed(|out| double(out, wide));
            assert!(is_float_token(&text), "{text}");
            assert_eq!(text.parse::<f64>().unwrap().to_bits(), bits);
        }
        let narrow = f32::from_bits((bits >> 32) as u32);
        if narrow.is_finite() {
            let text = printed(|out| float(out, narrow));
            assert!(is_float_token(&text), "{text}");
            assert_eq!(text.parse::<f32>().unwrap().to_bits(), narrow.to_bits());
        }
    }
}

/// The grammars' `INTEGER ('.' DIGIT*)? (E ('+' | '-')? DIGIT+)?`.
fn is_float_token(text: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let whole = whole.strip_prefix('-').unwrap_or(whole);
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    !whole.is_empty() && digits(whole) && digits(fraction) && !exponent.is_empty() && digits(exponent)
}

#[test]
fn varints() {
    let of = |bytes: &[u8]| checked(|out| varint(out, bytes));
    assert_eq!(of(&[]), Err(LiteralError::EmptyNumber));
    assert_eq!(of(&[0]), Ok("0".into()));
    assert_eq!(of(&[0xff; 40]), Ok("-1".into()));
    assert_eq!(of(&[0x80]), Ok("-128".into()));
    assert_eq!(of(&[0, 0xff]), Ok("255".into()));
    assert_eq!(of(&i128::MIN.to_be_bytes()), Ok(i128::MIN.to_string()));
    // 2^128 and -2^128.
    let mut bytes = [0; 17];
    bytes[0] = 1;
    assert_eq!(of(&bytes), Ok("340282366920938463463374607431768211456".into()));
    bytes[0] = 0xff;
    assert_eq!(of(&bytes), Ok("-340282366920938463463374607431768211456".into()));
    // -2^159, the smallest of 20 bytes: its magnitude fills the limbs.
    let mut bytes = [0; 20];
    bytes[0] = 0x80;
    assert_eq!(of(&bytes), Ok("-730750818665451459101842416358141509827966271488".into()));
    // -255 × 2^4080 of 512 bytes is digits, one byte more is not.
    let mut bytes = alloc::vec![0; VARINT_TEXT_BYTES_MAX];
    bytes[0] = 0xff;
    bytes[1] = 1;
    assert_eq!(of(&bytes).unwrap().len(), 1 + 1231);
    bytes[0] = 1;
    bytes.push(0);
    let text = of(&bytes).unwrap();
    assert!(text.starts_with("blobAsVarint(0x010100") && text.ends_with("00)"));
    assert_eq!(text.len(), "blobAsVarint(0x)".len() + 2 * 513);
    assert_eq!(of(&alloc::vec![0xff; 10_000_000]), Ok("-1".into()));
}

/// The value of decimal digits, as big-endian two's complement bytes: Horner's rule, on bytes.
fn bytes_of_digits(text: &str) -> Vec<u8> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let mut little = alloc::vec![0_u8];
    for digit in digits.bytes() {
        let mut carry = u32::from(digit - b'0');
        for byte in &mut little {
            carry += u32::from(*byte) * 10;
            *byte = (carry & 0xff) as u8;
            carry >>= 8;
        }
        if carry > 0 {
            little.push(carry as u8);
        }
    }
    little.push(0);
    if negative {
        let mut carry = 1;
        for byte in &mut little {
            carry += u32::from(!*byte);
            *byte = (carry & 0xff) as u8;
            carry >>= 8;
        }
    }
    little.reverse();
    little
}

/// Both without repeated sign bytes.
fn same_integer(a: &[u8], b: &[u8]) -> bool {
    let wide = |bytes: &[u8], length: usize| {
        let fill = if bytes[0] < 0x80 { 0 } else { 0xff };
        let mut wide = alloc::vec![fill; length - bytes.len()];
        wide.extend_from_slice(bytes);
        wide
    };
    let length = a.len().max(b.len());
    wide(a, length) == wide(b, length)
}

#[test]
fn random_varints_read_back() {
    let mut random = Random(13);
    for _ in 0..3000 {
        let length = 1 + (random.next() % 60) as usize;
        let mut bytes: Vec<u8> = (0..length).map(|_| (random.next() >> 24) as u8).collect();
        if random.next().is_multiple_of(4) {
            bytes[length / 2..].fill(0);
        }
        let text = checked(|out| varint(out, &bytes)).unwrap();
        assert!(same_integer(&bytes_of_digits(&text), &bytes), "{text} {bytes:?}");
    }
}

#[test]
fn decimals() {
    for (unscaled, scale, expected) in [
        (150, 2, "1.50"),
        (0, 2, "0.00"),
        (0, 0, "0"),
        (-1, 3, "-0.001"),
        (12345, 2, "123.45"),
        (-12345, 5, "-0.12345"),
        (123, -5, "123E+5"),
        (-123, -5, "-123E+5"),
        (1, 40, "0.0000000000000000000000000000000000000001"),
        (1, 41, "1E-41"),
        (0, 41, "0E-41"),
        (1, i32::MAX, "1E-2147483647"),
        (1, -307, "1E+307"),
        (1, -308, "blobAsDecimal(0xfffffecc01)"),
        (-1, -308, "blobAsDecimal(0xfffffeccff)"),
        (0, -308, "0E+308"),
        (0, i32::MIN, "blobAsDecimal(0x8000000000)"),
        (123, i32::MIN, "blobAsDecimal(0x800000007b)"),
        (i64::MIN, 18, "-9.223372036854775808"),
    ] {
        assert_eq!(printed(|out| decimal(out, unscaled, scale)), expected);
        assert_eq!(checked(|out| decimal_bytes(out, &unscaled.to_be_bytes(), scale)).unwrap(), expected);
    }
    assert_eq!(printed(|out| decimal(out, i128::MIN, 38)), "-1.70141183460469231731687303715884105728");
    assert_eq!(checked(|out| decimal_bytes(out, &[], 2)), Err(LiteralError::EmptyNumber));
    // 2^2000 has 603 digits: too many before a decimal point, but not without one.
    let mut bytes = alloc::vec![0; 251];
    bytes[0] = 1;
    let of = |scale| checked(|out| decimal_bytes(out, &bytes, scale)).unwrap();
    assert_eq!(of(0).len(), 603);
    assert!(of(1).starts_with("blobAsDecimal(0x0000000101"));
    assert_eq!(of(295).len(), 604);
    assert_eq!(of(295).find('.'), Some(308));
    let huge = alloc::vec![1; VARINT_TEXT_BYTES_MAX + 1];
    assert!(checked(|out| decimal_bytes(out, &huge, 0)).unwrap().starts_with("blobAsDecimal(0x000000000101"));
}

/// Unscaled value and scale of a decimal literal, by the rule of `BigDecimal`.
fn read_decimal(text: &str) -> (i128, i64) {
    let (mantissa, exponent) = text.split_once('E').unwrap_or((text, "0"));
    let fraction = mantissa.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let digits = mantissa.replace('.', "");
    (digits.parse().unwrap(), fraction as i64 - exponent.parse::<i64>().unwrap())
}

#[test]
fn random_decimals_read_back() {
    let mut random = Random(17);
    for _ in 0..50_000 {
        let wide = i128::from(random.next() as i64) << 64 | i128::from(random.next());
        let unscaled = wide >> (random.next() % 128);
        let scale = (random.next() % 400) as i32 - 200;
        let text = printed(|out| decimal(out, unscaled, scale));
        assert!(is_float_token(&text), "{text}");
        assert_eq!(read_decimal(&text), (unscaled, i64::from(scale)), "{text}");
        assert_eq!(checked(|out| decimal_bytes(out, &unscaled.to_be_bytes(), scale)).unwrap(), text);
    }
}

#[test]
fn dates() {
    for (days, expected) in [
        (0, "'1970-01-01'"),
        (-1, "'1969-12-31'"),
        (11_016, "'2000-02-29'"),
        (-25_509, "'1900-02-28'"),
        (-25_508, "'1900-03-01'"),
        (-141_428, "'1582-10-14'"),
        (-719_162, "'0001-01-01'"),
        (-719_163, "2146764485"),
        (2_932_896, "'9999-12-31'"),
        (2_932_897, "2150416545"),
        (i32::MIN, "0"),
        (i32::MAX, "4294967295"),
    ] {
        assert_eq!(printed(|out| date(out, days)), expected);
    }
}

#[test]
fn every_date_follows_the_one_before() {
    let (mut year, mut month, mut day) = (1, 1, 1);
    for days in -719_162..=2_932_896 {
        let mut out = Vec::new();
        date(&mut out, days);
        let number = |range: core::ops::Range<usize>| {
            out[range].iter().fold(0, |value, digit| value * 10 + u32::from(digit - b'0'))
        };
        assert_eq!((number(1..5), number(6..8), number(9..11)), (year, month, day));
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let length = match month {
            2 => 28 + u32::from(leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        day += 1;
        if day > length {
            (month, day) = (month + 1, 1);
        }
        if month > 12 {
            (year, month) = (year + 1, 1);
        }
    }
    assert_eq!(year, 10_000);
}

#[test]
fn times() {
    assert_eq!(checked(|out| time(out, 0)), Ok("'00:00:00.000000000'".into()));
    assert_eq!(checked(|out| time(out, 45_296_000_000_007)), Ok("'12:34:56.000000007'".into()));
    assert_eq!(checked(|out| time(out, DAY_NANOS - 1)), Ok("'23:59:59.999999999'".into()));
    for nanos in [-1, DAY_NANOS, i64::MIN, i64::MAX] {
        assert_eq!(checked(|out| time(out, nanos)), Err(LiteralError::TimeOutOfDay { nanos }));
    }
}

#[test]
fn timestamps() {
    for (millis, expected) in [
        (0, "'1970-01-01T00:00:00.000Z'"),
        (-1, "'1969-12-31T23:59:59.999Z'"),
        (1_700_000_000_123, "'2023-11-14T22:13:20.123Z'"),
        (-12_212_553_600_000, "'1583-01-01T00:00:00.000Z'"),
        (-12_212_553_600_001, "-12212553600001"),
        (253_402_300_799_999, "'9999-12-31T23:59:59.999Z'"),
        (253_402_300_800_000, "253402300800000"),
        (i64::MIN, "-9223372036854775808"),
        (i64::MAX, "9223372036854775807"),
    ] {
        assert_eq!(printed(|out| timestamp(out, millis)), expected);
    }
}

#[test]
fn durations() {
    let of = |months, days, nanos| checked(|out| duration(out, months, days, nanos));
    assert_eq!(of(0, 0, 0), Ok("0ns".into()));
    assert_eq!(of(1, 2, 3), Ok("1mo2d3ns".into()));
    assert_eq!(of(-1, 0, -3), Ok("-1mo3ns".into()));
    assert_eq!(of(0, 7, 0), Ok("7d".into()));
    assert_eq!(
        of(-i32::MAX, -i32::MAX, -i64::MAX),
        Ok("-2147483647mo2147483647d9223372036854775807ns".into())
    );
    assert_eq!(of(1, -1, 0), Err(LiteralError::DurationSigns));
    assert_eq!(of(0, 1, -1), Err(LiteralError::DurationSigns));
    assert_eq!(of(i32::MIN, 0, 0), Err(LiteralError::DurationOutOfRange));
    assert_eq!(of(0, 0, i64::MIN), Err(LiteralError::DurationOutOfRange));
}
