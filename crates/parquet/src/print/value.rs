//! Single values as text, according to their meaning.

use alloc::vec::Vec;

use marquetry_base::calendar::TimeUnit;
use marquetry_base::print::{self, Digits};

use super::InvalidUtf8;
use crate::batch::Value;
use crate::geometry;
use crate::scalar::{float_of_half, int96_nanos};
use crate::schema::Meaning;

/// What [`value`] printed. For variants without text of their own, it was appended to the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown<'a> {
    /// `true` or `false`.
    Boolean,
    /// A number that JSON can spell too.
    Number,
    /// ASCII that needs no escape anywhere: dates, UUIDs, decimals, `NaN`, `0x…`.
    Word,
    /// Well-known text of a geometry: ASCII that needs quotes in CSV, because of commas and spaces, but nothing else.
    Wkt,
    /// Text, which is not appended: the caller knows what to escape.
    Text(&'a str),
    /// Text that is not UTF-8; not appended, either.
    NotText(&'a [u8]),
}

/// Prints a value: appends its text to `out`, or returns text that the caller must escape.
///
/// If the annotation is unknown ([`Meaning::Unrecognised`]), or the value is invalid for its meaning, the value's own
/// type decides.
///
/// ```
/// use marquetry_parquet::batch::Value;
/// use marquetry_parquet::print::{Shown, value};
/// use marquetry_parquet::schema::Meaning;
///
/// let mut out = Vec::new();
/// assert_eq!(value(&mut out, Meaning::Date, Value::Int32(19_782)), Shown::Word);
/// assert_eq!(out, b"2024-02-29");
/// assert_eq!(value(&mut out, Meaning::String, Value::Bytes(b"text")), Shown::Text("text"));
/// ```
pub fn value<'a>(out: &mut Vec<u8>, meaning: Meaning, value: Value<'a>) -> Shown<'a> {
    match (meaning, value) {
        (Meaning::String | Meaning::Enum | Meaning::Json, Value::Bytes(bytes)) => {
            return match core::str::from_utf8(bytes) {
                Ok(text) => Shown::Text(text),
                Err(_) => Shown::NotText(bytes),
            };
        }
        (Meaning::Integer { is_signed: false, .. }, Value::Int32(value)) => {
            print::integer(out, value.cast_unsigned());
        }
        (Meaning::Integer { is_signed: false, .. }, Value::Int64(value)) => {
            print::integer(out, value.cast_unsigned());
        }
        (Meaning::Decimal { scale, .. }, value) => {
            decimal(out, value, scale);
            return Shown::Word;
        }
        (Meaning::Date, Value::Int32(days)) => {
            print::date(out, days.into());
            return Shown::Word;
        }
        (Meaning::Time { unit, .. }, Value::Int32(units)) => {
            print::time(out, units.into(), unit);
            return Shown::Word;
        }
        (Meaning::Time { unit, .. }, Value::Int64(units)) => {
            print::time(out, units, unit);
            return Shown::Word;
        }
        (Meaning::Timestamp { unit, is_adjusted_to_utc }, Value::Int64(units)) => {
            timestamp(out, units, unit, is_adjusted_to_utc);
            return Shown::Word;
        }
        (Meaning::Int96, Value::Bytes(bytes)) => {
            match bytes.try_into() {
                Ok(int96) => print::timestamp_nanos(out, int96_nanos(int96)),
                Err(_) => print::bytes(out, bytes),
            }
            return Shown::Word;
        }
        (Meaning::Interval, Value::Bytes(bytes)) => {
            interval(out, bytes);
            return Shown::Word;
        }
        (Meaning::Uuid, Value::Bytes(bytes)) => {
            match bytes.try_into() {
                Ok(uuid) => print::uuid(out, uuid),
                Err(_) => print::bytes(out, bytes),
            }
            return Shown::Word;
        }
        (Meaning::Float16, Value::Bytes(&[low, high])) => {
            return float(out, float_of_half(u16::from_le_bytes([low, high])));
        }
        (Meaning::Geometry | Meaning::Geography, Value::Bytes(bytes)) => {
            return match geometry::write_wkt(bytes, out) {
                Ok(()) => Shown::Wkt,
                // An invalid geometry is shown as its bytes.
                Err(_) => {
                    print::bytes(out, bytes);
                    Shown::Word
                }
            };
        }
        (_, Value::Boolean(value)) => {
            print::boolean(out, value);
            return Shown::Boolean;
        }
        (_, Value::Int32(value)) => print::integer(out, value),
        (_, Value::Int64(value)) => print::integer(out, value),
        (_, Value::Float(value)) => return float(out, value),
        (_, Value::Double(value)) => {
            print::double(out, value);
            return if value.is_finite() { Shown::Number } else { Shown::Word };
        }
        (_, Value::Bytes(bytes)) => {
            print::bytes(out, bytes);
            return Shown::Word;
        }
    }
    Shown::Number
}

/// A timestamp, as [`value`] prints it.
#[inline]
pub(super) fn timestamp(out: &mut Vec<u8>, units: i64, unit: TimeUnit, is_adjusted_to_utc: bool) {
    print::timestamp(out, units, unit);
    if is_adjusted_to_utc {
        out.push(b'Z');
    }
}

/// Appends a value as JSON. `None` for invalid UTF-8, if that is an error.
#[inline]
pub(super) fn json(
    out: &mut Vec<u8>,
    meaning: Meaning,
    of: Value<'_>,
    invalid_utf8: InvalidUtf8,
) -> Option<()> {
    let start = out.len();
    match value(out, meaning, of) {
        Shown::Boolean | Shown::Number => {}
        Shown::Word | Shown::Wkt => {
            out.insert(start, b'"');
            out.push(b'"');
        }
        Shown::Text(text) => print::json::string(out, text),
        Shown::NotText(bytes) => print::json::string(out, &invalid_utf8.text(bytes)?),
    }
    Some(())
}

fn float<'a>(out: &mut Vec<u8>, value: f32) -> Shown<'a> {
    print::float(out, value);
    if value.is_finite() { Shown::Number } else { Shown::Word }
}

/// Maximum zeros between the decimal point and the first digit. A hostile scale demands two billion.
const DECIMAL_ZEROS_MAX: usize = 1000;

/// An unscaled integer with its decimal point: all digits, and no exponent unless the zeros would be too many.
fn decimal(out: &mut Vec<u8>, value: Value<'_>, scale: i32) {
    let digits = match value {
        Value::Int32(value) => Some(Digits::of(value.into())),
        Value::Int64(value) => Some(Digits::of(value.into())),
        // No bytes are zero, as they are in Arrow.
        Value::Bytes([]) => Some(Digits::of(0)),
        Value::Bytes(bytes) => match Digits::of_bytes(bytes) {
            Some(digits) => Some(digits),
            // More than 512 bytes are beyond any real precision: the bytes are shown instead.
            None => return print::bytes(out, bytes),
        },
        Value::Boolean(_) | Value::Float(_) | Value::Double(_) => None,
    };
    let Some(digits) = digits else { return };
    let places = usize::try_from(scale).unwrap_or(0);
    if places > digits.as_slice().len() + DECIMAL_ZEROS_MAX {
        digits.scientific(out, -i64::from(scale));
    } else {
        digits.fixed(out, places);
    }
}

/// An INTERVAL as an ISO 8601 duration: `P1M2DT3.004S`.
fn interval(out: &mut Vec<u8>, bytes: &[u8]) {
    let Ok(&[a, b, c, d, e, f, g, h, millis @ ..]) = <&[u8; 12]>::try_from(bytes) else {
        return print::bytes(out, bytes);
    };
    out.push(b'P');
    print::integer(out, u32::from_le_bytes([a, b, c, d]));
    out.push(b'M');
    print::integer(out, u32::from_le_bytes([e, f, g, h]));
    out.extend_from_slice(b"DT");
    print_seconds(out, u32::from_le_bytes(millis));
    out.push(b'S');
}

/// Milliseconds as seconds: `3.004`.
fn print_seconds(out: &mut Vec<u8>, millis: u32) {
    Digits::of(millis.into()).fixed(out, TimeUnit::Millis.digits());
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::String;
    use alloc::vec;

    const INT32: Meaning = Meaning::Integer { bit_width: 32, is_signed: true };

    fn shown(meaning: Meaning, of: Value<'_>) -> String {
        let mut out = Vec::new();
        match value(&mut out, meaning, of) {
            Shown::Text(text) => format!("{text:?}"),
            Shown::NotText(bytes) => format!("not text {bytes:?}"),
            Shown::Boolean | Shown::Number | Shown::Word | Shown::Wkt => String::from_utf8(out).unwrap(),
        }
    }

    #[test]
    fn values_are_printed_by_their_meaning() {
        let unsigned = |bit_width| Meaning::Integer { bit_width, is_signed: false };
        assert_eq!(shown(Meaning::Boolean, Value::Boolean(true)), "true");
        assert_eq!(shown(INT32, Value::Int64(i64::MIN)), "-9223372036854775808");
        assert_eq!(shown(unsigned(32), Value::Int32(-1)), "4294967295");
        assert_eq!(shown(unsigned(64), Value::Int64(-1)), "18446744073709551615");
        assert_eq!(shown(Meaning::Float, Value::Float(0.1)), "0.1");
        assert_eq!(shown(Meaning::Double, Value::Double(f64::NEG_INFINITY)), "-Infinity");
        assert_eq!(shown(Meaning::Float16, Value::Bytes(&[0, 0x3c])), "1.0");
        assert_eq!(shown(Meaning::Bytes, Value::Bytes(b"\x00\xff")), "0x00ff");
        assert_eq!(shown(Meaning::Bson, Value::Bytes(b"\x01")), "0x01");
        assert_eq!(shown(Meaning::Unrecognised, Value::Int32(-7)), "-7");
        assert_eq!(shown(Meaning::String, Value::Bytes("é".as_bytes())), "\"é\"");
        assert_eq!(shown(Meaning::Json, Value::Bytes(&[0xff])), "not text [255]");
        assert_eq!(shown(Meaning::Uuid, Value::Bytes(&[0x11; 16])), "11111111-1111-1111-1111-111111111111");
        let time = Meaning::Time { unit: TimeUnit::Millis, is_adjusted_to_utc: true };
        assert_eq!(shown(time, Value::Int32(1)), "00:00:00.001");
        let mut int96 = [0; 12];
        int96[..8].copy_from_slice(&1_000_000_001_i64.to_le_bytes());
        int96[8..].copy_from_slice(&2_440_589_i32.to_le_bytes());
        assert_eq!(shown(Meaning::Int96, Value::Bytes(&int96)), "1970-01-02T00:00:01.000000001");
        let mut interval = [1, 0, 0, 0, 2, 0, 0, 0, 0xbc, 0x0b, 0, 0];
        assert_eq!(shown(Meaning::Interval, Value::Bytes(&interval)), "P1M2DT3.004S");
        interval[8..].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(shown(Meaning::Interval, Value::Bytes(&interval)), "P1M2DT4294967.295S");
        interval[8..].fill(0);
        assert_eq!(shown(Meaning::Interval, Value::Bytes(&interval)), "P1M2DT0.000S");
    }

    #[test]
    fn geometries_are_text_and_what_is_none_is_bytes() {
        let mut point = vec![0, 0, 0, 0, 1];
        point.extend(1.5f64.to_be_bytes());
        point.extend((-2.0f64).to_be_bytes());
        assert_eq!(shown(Meaning::Geometry, Value::Bytes(&point)), "POINT (1.5 -2)");
        assert_eq!(shown(Meaning::Geography, Value::Bytes(&point[..6])), "0x00000000013f");
    }

    #[test]
    fn decimals_keep_every_digit() {
        let decimal = |value, scale| shown(Meaning::Decimal { precision: 9, scale }, value);
        assert_eq!(decimal(Value::Int32(12345), 2), "123.45");
        assert_eq!(decimal(Value::Int32(-5), 3), "-0.005");
        assert_eq!(decimal(Value::Int64(0), 2), "0.00");
        assert_eq!(decimal(Value::Int64(7), 0), "7");
        assert_eq!(decimal(Value::Bytes(&[0xff, 0x85]), 1), "-12.3");
        let mut wide = [0xff; 20];
        wide[0] = 0x7f;
        assert_eq!(decimal(Value::Bytes(&wide), 0), "730750818665451459101842416358141509827966271487");
        assert_eq!(decimal(Value::Bytes(&[]), 2), "0.00");
        assert_eq!(decimal(Value::Int32(-7), 1001), format!("-0.{}7", "0".repeat(1000)));
        assert_eq!(decimal(Value::Int32(-7), i32::MAX), "-7E-2147483647");
    }
}
