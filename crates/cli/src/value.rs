//! Single values as people and programs read them: by logical type, exactly.

use std::io::Write;

use marquetry_base::cast;
use marquetry_parquet::batch::Values;
use marquetry_parquet::geometry;
use marquetry_parquet::scalar::{float_of_half, int96_nanos};
use marquetry_parquet::schema::{Leaf, LogicalType, PhysicalType, Schema, TimeUnit};
use marquetry_scylla::cql::literal;

use crate::calendar;

/// One value as the file holds it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Raw<'a> {
    Boolean(bool),
    Int32(i32),
    Int64(i64),
    Float(f32),
    Double(f64),
    /// INT96, BYTE_ARRAY and FIXED_LEN_BYTE_ARRAY.
    Bytes(&'a [u8]),
}

/// What a column's values mean, and so how they are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// The physical type itself.
    Plain,
    Unsigned,
    Text,
    Decimal {
        scale: i32,
    },
    Date,
    Time(TimeUnit),
    Timestamp {
        unit: TimeUnit,
        utc: bool,
    },
    /// The deprecated timestamps of 96 bits.
    Int96,
    Interval,
    Uuid,
    Float16,
    /// GEOMETRY and GEOGRAPHY.
    Geometry,
}

/// A value in words. The text of the variants without one was appended to the buffer given to [`Meaning::show`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown<'a> {
    /// `true` or `false`.
    Boolean,
    /// A number that JSON can spell too.
    Number,
    /// ASCII that needs no escape anywhere: dates, UUIDs, decimals, `NaN`, `0x…`.
    Word,
    /// Well-known text of a geometry: ASCII whose commas and spaces need quotes in CSV, and nothing else.
    Wkt,
    /// Text.
    Text(&'a str),
    /// Text that is not UTF-8.
    NotText(&'a [u8]),
}

impl Raw<'_> {
    /// A value of a batch. `None` beyond the end.
    pub(crate) fn of_values(values: &Values, at: usize) -> Option<Raw<'_>> {
        Some(match values {
            Values::Boolean(bits) => Raw::Boolean((at < bits.len()).then(|| bits.get(at))?),
            Values::Int32(values) => Raw::Int32(*values.get(at)?),
            Values::Int64(values) => Raw::Int64(*values.get(at)?),
            Values::Float(values) => Raw::Float(*values.get(at)?),
            Values::Double(values) => Raw::Double(*values.get(at)?),
            Values::ByteArray(values) => Raw::Bytes((at < values.len()).then(|| values.get(at))?),
            Values::Int96(values) | Values::FixedLenByteArray(values) => {
                Raw::Bytes((at < values.len()).then(|| values.get(at))?)
            }
            Values::Dictionary(indices, values) => {
                return Raw::of_values(values, cast::usize_of_u32(*indices.get(at)?));
            }
        })
    }

    /// A bound of statistics, which is PLAIN-encoded. `None` when its length is not the type's.
    pub(crate) fn of_bound(physical_type: PhysicalType, bytes: &[u8]) -> Option<Raw<'_>> {
        Some(match physical_type {
            PhysicalType::Boolean => match bytes {
                [byte] => Raw::Boolean(byte & 1 == 1),
                _ => return None,
            },
            PhysicalType::Int32 => Raw::Int32(i32::from_le_bytes(bytes.try_into().ok()?)),
            PhysicalType::Int64 => Raw::Int64(i64::from_le_bytes(bytes.try_into().ok()?)),
            PhysicalType::Float => Raw::Float(f32::from_le_bytes(bytes.try_into().ok()?)),
            PhysicalType::Double => Raw::Double(f64::from_le_bytes(bytes.try_into().ok()?)),
            PhysicalType::Int96 => Raw::Bytes((bytes.len() == 12).then_some(bytes)?),
            // Bounds may be cut shorter than the type.
            PhysicalType::ByteArray | PhysicalType::FixedLenByteArray(_) => Raw::Bytes(bytes),
        })
    }
}

impl Meaning {
    /// What a leaf's values mean.
    pub(crate) fn of(schema: &Schema, leaf: &Leaf) -> Meaning {
        match &schema.node_of(leaf).logical_type {
            Some(LogicalType::String | LogicalType::Enum | LogicalType::Json) => Meaning::Text,
            Some(LogicalType::Decimal { scale, .. }) => Meaning::Decimal { scale: *scale },
            Some(LogicalType::Date) => Meaning::Date,
            Some(LogicalType::Time { unit, .. }) => Meaning::Time(*unit),
            Some(LogicalType::Timestamp { is_adjusted_to_utc, unit }) => {
                Meaning::Timestamp { unit: *unit, utc: *is_adjusted_to_utc }
            }
            Some(LogicalType::Integer { is_signed: false, .. }) => Meaning::Unsigned,
            Some(LogicalType::Interval) => Meaning::Interval,
            Some(LogicalType::Uuid) => Meaning::Uuid,
            Some(LogicalType::Float16) => Meaning::Float16,
            Some(LogicalType::Geometry { .. } | LogicalType::Geography { .. }) => Meaning::Geometry,
            _ if leaf.physical_type == PhysicalType::Int96 => Meaning::Int96,
            _ => Meaning::Plain,
        }
    }

    /// Shows a value: appends its text to `out`, or gives the text that is to be escaped.
    pub(crate) fn show<'a>(self, raw: Raw<'a>, out: &mut Vec<u8>) -> Shown<'a> {
        match (self, raw) {
            (Meaning::Text, Raw::Bytes(bytes)) => match std::str::from_utf8(bytes) {
                Ok(text) => return Shown::Text(text),
                Err(_) => return Shown::NotText(bytes),
            },
            (Meaning::Unsigned, Raw::Int32(value)) => literal::integer(out, value.cast_unsigned()),
            (Meaning::Unsigned, Raw::Int64(value)) => literal::integer(out, value.cast_unsigned()),
            (Meaning::Decimal { scale }, raw) => {
                decimal(raw, scale, out);
                return Shown::Word;
            }
            (Meaning::Date, Raw::Int32(days)) => {
                calendar::date(out, i64::from(days));
                return Shown::Word;
            }
            (Meaning::Time(unit), Raw::Int32(_) | Raw::Int64(_)) => {
                calendar::time(out, raw.integer(), unit.per_second());
                return Shown::Word;
            }
            (Meaning::Timestamp { unit, utc }, Raw::Int64(value)) => {
                calendar::timestamp(out, i128::from(value), unit.per_second());
                if utc {
                    out.push(b'Z');
                }
                return Shown::Word;
            }
            (Meaning::Int96, Raw::Bytes(bytes)) => {
                match int96(bytes) {
                    Some(nanos) => calendar::timestamp(out, nanos, TimeUnit::Nanos.per_second()),
                    None => hex(out, bytes),
                }
                return Shown::Word;
            }
            (Meaning::Interval, Raw::Bytes(bytes)) => {
                interval(bytes, out);
                return Shown::Word;
            }
            (Meaning::Uuid, Raw::Bytes(bytes)) => {
                match bytes.try_into() {
                    Ok(uuid) => literal::uuid(out, uuid),
                    Err(_) => hex(out, bytes),
                }
                return Shown::Word;
            }
            (Meaning::Float16, Raw::Bytes(&[low, high])) => {
                return float(float_of_half(u16::from_le_bytes([low, high])), out);
            }
            (Meaning::Geometry, Raw::Bytes(bytes)) => match geometry::write_wkt(bytes, out) {
                Ok(()) => return Shown::Wkt,
                // What is no geometry is shown as what is there.
                Err(_) => {
                    hex(out, bytes);
                    return Shown::Word;
                }
            },
            (_, Raw::Boolean(value)) => {
                literal::boolean(out, value);
                return Shown::Boolean;
            }
            (_, Raw::Int32(value)) => literal::integer(out, value),
            (_, Raw::Int64(value)) => literal::integer(out, value),
            (_, Raw::Float(value)) => return float(value, out),
            (_, Raw::Double(value)) => {
                literal::double(out, value);
                return if value.is_finite() { Shown::Number } else { Shown::Word };
            }
            (_, Raw::Bytes(bytes)) => {
                hex(out, bytes);
                return Shown::Word;
            }
        }
        Shown::Number
    }

    /// Whether its values are numbers, also those that have no digits (NaN).
    pub(crate) fn is_number(self, raw: Raw<'_>) -> bool {
        match self {
            Meaning::Plain => !matches!(raw, Raw::Boolean(_) | Raw::Bytes(_)),
            Meaning::Unsigned | Meaning::Decimal { .. } | Meaning::Float16 => true,
            _ => false,
        }
    }

    /// Whether its values are times, which people read without zeros at the end.
    pub(crate) fn is_time(self) -> bool {
        matches!(self, Meaning::Time(_) | Meaning::Timestamp { .. } | Meaning::Int96)
    }
}

impl Raw<'_> {
    /// The integer that it is; 0 for what is none, which callers have ruled out.
    fn integer(self) -> i64 {
        match self {
            Raw::Int32(value) => i64::from(value),
            Raw::Int64(value) => value,
            _ => 0,
        }
    }
}

/// Bytes as `0x` and hexadecimal digits, as CQL writes them.
pub(crate) fn hex(out: &mut Vec<u8>, bytes: &[u8]) {
    literal::blob(out, bytes);
}

fn float<'a>(value: f32, out: &mut Vec<u8>) -> Shown<'a> {
    literal::float(out, value);
    if value.is_finite() { Shown::Number } else { Shown::Word }
}

/// Zeros that are written between the decimal point and the first digit. A hostile scale asks for two thousand million.
const DECIMAL_ZEROS_MAX: usize = 1000;

/// An unscaled integer with its decimal point: all digits, and no exponent unless the zeros would be too many.
fn decimal(raw: Raw<'_>, scale: i32, out: &mut Vec<u8>) {
    let mut digits = Vec::new();
    match raw {
        Raw::Int32(value) => literal::integer(&mut digits, value),
        Raw::Int64(value) => literal::integer(&mut digits, value),
        Raw::Bytes(bytes) if bytes.len() <= literal::VARINT_TEXT_BYTES_MAX => {
            if literal::varint(&mut digits, bytes).is_err() {
                // No bytes are no number; what is there is shown.
                return hex(out, bytes);
            }
        }
        // Beyond any real precision: more than 2,400 digits.
        Raw::Bytes(bytes) => return hex(out, bytes),
        Raw::Boolean(_) | Raw::Float(_) | Raw::Double(_) => return,
    }
    let digits = match digits.strip_prefix(b"-") {
        Some(rest) => {
            out.push(b'-');
            rest
        }
        None => &digits,
    };
    let scale = usize::try_from(scale).unwrap_or(0);
    if scale == 0 {
        out.extend_from_slice(digits);
        return;
    }
    if scale > digits.len() + DECIMAL_ZEROS_MAX {
        out.extend_from_slice(digits);
        out.extend_from_slice(b"E-");
        return literal::integer(out, scale);
    }
    let padded = [&vec![b'0'; (scale + 1).saturating_sub(digits.len())], digits].concat();
    let (before, after) = padded.split_at(padded.len() - scale);
    out.extend_from_slice(before);
    out.push(b'.');
    out.extend_from_slice(after);
}

/// An INT96 as nanoseconds since 1970. `None` for a value of another length.
fn int96(bytes: &[u8]) -> Option<i128> {
    bytes.try_into().ok().map(int96_nanos)
}

/// An INTERVAL as an ISO 8601 duration: `P1M2DT3.004S`.
fn interval(bytes: &[u8], out: &mut Vec<u8>) {
    let Ok(bytes) = <&[u8; 12]>::try_from(bytes) else { return hex(out, bytes) };
    let part = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let (months, days, millis) = (part(0), part(4), part(8));
    // Writing to memory does not fail.
    let _ = write!(out, "P{months}M{days}DT{}.{:03}S", millis / 1000, millis % 1000);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(meaning: Meaning, raw: Raw<'_>) -> String {
        let mut out = Vec::new();
        match meaning.show(raw, &mut out) {
            Shown::Text(text) => format!("{text:?}"),
            Shown::NotText(bytes) => format!("not text {bytes:?}"),
            Shown::Boolean | Shown::Number | Shown::Word | Shown::Wkt => String::from_utf8(out).unwrap(),
        }
    }

    #[test]
    fn values_are_shown_by_their_meaning() {
        assert_eq!(shown(Meaning::Plain, Raw::Boolean(true)), "true");
        assert_eq!(shown(Meaning::Plain, Raw::Int64(i64::MIN)), "-9223372036854775808");
        assert_eq!(shown(Meaning::Unsigned, Raw::Int32(-1)), "4294967295");
        assert_eq!(shown(Meaning::Unsigned, Raw::Int64(-1)), "18446744073709551615");
        assert_eq!(shown(Meaning::Plain, Raw::Float(0.1)), "0.1");
        assert_eq!(shown(Meaning::Plain, Raw::Double(f64::NEG_INFINITY)), "-Infinity");
        assert_eq!(shown(Meaning::Plain, Raw::Bytes(b"\x00\xff")), "0x00ff");
        assert_eq!(shown(Meaning::Text, Raw::Bytes("é".as_bytes())), "\"é\"");
        assert_eq!(shown(Meaning::Text, Raw::Bytes(&[0xff])), "not text [255]");
        assert_eq!(shown(Meaning::Uuid, Raw::Bytes(&[0x11; 16])), "11111111-1111-1111-1111-111111111111");
        let mut int96 = [0; 12];
        int96[..8].copy_from_slice(&1_000_000_001_i64.to_le_bytes());
        int96[8..].copy_from_slice(&2_440_589_i32.to_le_bytes());
        assert_eq!(shown(Meaning::Int96, Raw::Bytes(&int96)), "1970-01-02T00:00:01.000000001");
        assert_eq!(
            shown(Meaning::Interval, Raw::Bytes(&[1, 0, 0, 0, 2, 0, 0, 0, 0xbc, 0x0b, 0, 0])),
            "P1M2DT3.004S"
        );
    }

    #[test]
    fn geometries_are_text_and_what_is_none_is_bytes() {
        let mut point = vec![0, 0, 0, 0, 1];
        point.extend(1.5f64.to_be_bytes());
        point.extend((-2.0f64).to_be_bytes());
        assert_eq!(shown(Meaning::Geometry, Raw::Bytes(&point)), "POINT (1.5 -2)");
        assert_eq!(shown(Meaning::Geometry, Raw::Bytes(&point[..6])), "0x00000000013f");
    }

    #[test]
    fn decimals_keep_every_digit() {
        let decimal = |raw, scale| shown(Meaning::Decimal { scale }, raw);
        assert_eq!(decimal(Raw::Int32(12345), 2), "123.45");
        assert_eq!(decimal(Raw::Int32(-5), 3), "-0.005");
        assert_eq!(decimal(Raw::Int64(0), 2), "0.00");
        assert_eq!(decimal(Raw::Int64(7), 0), "7");
        assert_eq!(decimal(Raw::Bytes(&[0xff, 0x85]), 1), "-12.3");
        let mut wide = [0xff; 20];
        wide[0] = 0x7f;
        assert_eq!(decimal(Raw::Bytes(&wide), 0), "730750818665451459101842416358141509827966271487");
        assert_eq!(decimal(Raw::Bytes(&[]), 2), "0x");
        assert_eq!(decimal(Raw::Int32(-7), 1001), format!("-0.{}7", "0".repeat(1000)));
        assert_eq!(decimal(Raw::Int32(-7), i32::MAX), "-7E-2147483647");
    }
}
