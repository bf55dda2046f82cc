//! Types of values in text, given or inferred.

use alloc::format;
use alloc::string::String;
use core::fmt;

use marquetry_parquet::schema::{FieldType, LogicalType, Meaning, PhysicalType, TimeUnit};

use crate::parse;

/// The type of a single value. Printed and parsed in CQL's words where CQL has one, else in Parquet's: `bigint`,
/// `timestamp(6)`, `decimal(12, 2)`; `uint32`, `float16`, `interval`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scalar {
    /// `true` or `false`, in any case.
    Boolean,
    /// A signed integer of 8, 16, 32 or 64 bits.
    Integer(u8),
    /// An unsigned integer of 8, 16, 32 or 64 bits.
    Unsigned(u8),
    /// A binary16.
    Float16,
    /// A binary32.
    Float,
    /// A binary64.
    Double,
    /// UTF-8, unchanged.
    Text,
    /// One of a set of texts.
    Enum,
    /// A JSON document, kept as it is written.
    Json,
    /// Bytes: `0x` and hexadecimal digits.
    Blob,
    /// A BSON document, written as bytes.
    Bson,
    /// As many bytes, written likewise.
    Fixed(u16),
    /// A day: `2024-02-29`.
    Date,
    /// A time of day: `23:59:59.5`.
    Time {
        /// The unit that is counted since midnight.
        unit: TimeUnit,
        /// In UTC; otherwise a local time.
        is_instant: bool,
    },
    /// A point in time, as ISO 8601 writes it.
    Timestamp {
        /// The unit that is counted since 1970.
        unit: TimeUnit,
        /// An instant; otherwise a local time, without a zone.
        is_instant: bool,
    },
    /// A point in time without a zone, in the deprecated type of twelve bytes.
    Int96,
    /// Months, days and milliseconds: `P1M2DT3.004S`.
    Interval,
    /// 32 hexadecimal digits, with or without hyphens.
    Uuid,
    /// Nothing but nulls: Parquet's UNKNOWN.
    Unknown,
    /// A decimal number.
    Decimal {
        /// Digits, at most 38.
        precision: u32,
        /// Digits after the point.
        scale: u32,
    },
}

/// CQL's `time`.
pub(crate) const TIME: Scalar = Scalar::Time { unit: TimeUnit::Nanos, is_instant: false };

impl Scalar {
    /// Its type in Parquet.
    pub fn field_type(self) -> FieldType {
        let (physical, logical) = self.types();
        FieldType::Leaf(physical, logical)
    }

    /// Its physical type in Parquet, and what that means.
    pub fn types(self) -> (PhysicalType, Option<LogicalType>) {
        match self {
            Scalar::Boolean => (PhysicalType::Boolean, None),
            Scalar::Integer(64) => (PhysicalType::Int64, None),
            Scalar::Integer(32) => (PhysicalType::Int32, None),
            Scalar::Integer(bit_width) => {
                (PhysicalType::Int32, Some(LogicalType::Integer { bit_width, is_signed: true }))
            }
            Scalar::Unsigned(bit_width) => {
                let physical = if bit_width == 64 { PhysicalType::Int64 } else { PhysicalType::Int32 };
                (physical, Some(LogicalType::Integer { bit_width, is_signed: false }))
            }
            Scalar::Float16 => (PhysicalType::FixedLenByteArray(2), Some(LogicalType::Float16)),
            Scalar::Float => (PhysicalType::Float, None),
            Scalar::Double => (PhysicalType::Double, None),
            Scalar::Text => (PhysicalType::ByteArray, Some(LogicalType::String)),
            Scalar::Enum => (PhysicalType::ByteArray, Some(LogicalType::Enum)),
            Scalar::Json => (PhysicalType::ByteArray, Some(LogicalType::Json)),
            Scalar::Blob => (PhysicalType::ByteArray, None),
            Scalar::Bson => (PhysicalType::ByteArray, Some(LogicalType::Bson)),
            Scalar::Fixed(bytes) => (PhysicalType::FixedLenByteArray(bytes.into()), None),
            Scalar::Date => (PhysicalType::Int32, Some(LogicalType::Date)),
            Scalar::Time { unit, is_instant } => {
                let physical =
                    if unit == TimeUnit::Millis { PhysicalType::Int32 } else { PhysicalType::Int64 };
                (physical, Some(LogicalType::Time { is_adjusted_to_utc: is_instant, unit }))
            }
            Scalar::Timestamp { unit, is_instant } => {
                let timestamp = LogicalType::Timestamp { is_adjusted_to_utc: is_instant, unit };
                (PhysicalType::Int64, Some(timestamp))
            }
            Scalar::Int96 => (PhysicalType::Int96, None),
            Scalar::Interval => (PhysicalType::FixedLenByteArray(12), Some(LogicalType::Interval)),
            Scalar::Uuid => (PhysicalType::FixedLenByteArray(16), Some(LogicalType::Uuid)),
            // As Arrow C++ writes it.
            Scalar::Unknown => (PhysicalType::Int32, Some(LogicalType::Unknown)),
            Scalar::Decimal { precision, scale } => {
                let physical = match precision {
                    0..=9 => PhysicalType::Int32,
                    10..=18 => PhysicalType::Int64,
                    _ => PhysicalType::FixedLenByteArray(16),
                };
                let number = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
                let decimal = LogicalType::Decimal { scale: number(scale), precision: number(precision) };
                (physical, Some(decimal))
            }
        }
    }

    /// The type whose values mean this. `None` for meanings that no text is read as: geometries, decimals of more than
    /// 38 digits, and fixed-length bytes that are very long.
    pub fn of_meaning(meaning: Meaning, physical_type: PhysicalType) -> Option<Scalar> {
        Some(match meaning.read_as(physical_type) {
            Meaning::Boolean => Scalar::Boolean,
            Meaning::Integer { bit_width, is_signed: true } => Scalar::Integer(bit_width),
            Meaning::Integer { bit_width, is_signed: false } => Scalar::Unsigned(bit_width),
            Meaning::Float16 => Scalar::Float16,
            Meaning::Float => Scalar::Float,
            Meaning::Double => Scalar::Double,
            Meaning::Decimal { precision, scale } => {
                let number = |number: i32| u32::try_from(number).ok();
                let (precision, scale) = (number(precision)?, number(scale)?);
                (precision <= DECIMAL_DIGITS_MAX).then_some(Scalar::Decimal { precision, scale })?
            }
            Meaning::Date => Scalar::Date,
            Meaning::Time { unit, is_adjusted_to_utc } => {
                Scalar::Time { unit, is_instant: is_adjusted_to_utc }
            }
            Meaning::Timestamp { unit, is_adjusted_to_utc } => {
                Scalar::Timestamp { unit, is_instant: is_adjusted_to_utc }
            }
            Meaning::Int96 => Scalar::Int96,
            Meaning::Interval => Scalar::Interval,
            Meaning::Uuid => Scalar::Uuid,
            Meaning::String => Scalar::Text,
            Meaning::Enum => Scalar::Enum,
            Meaning::Json => Scalar::Json,
            Meaning::Bson => Scalar::Bson,
            Meaning::Bytes => match physical_type {
                PhysicalType::FixedLenByteArray(bytes @ 1..=FIXED_BYTES_MAX) => {
                    Scalar::Fixed(u16::try_from(bytes).ok()?)
                }
                PhysicalType::FixedLenByteArray(_) => return None,
                _ => Scalar::Blob,
            },
            Meaning::Null => Scalar::Unknown,
            Meaning::Geometry | Meaning::Geography | Meaning::Unrecognised => return None,
        })
    }

    /// Whether its values are UTF-8, kept as they are.
    pub(crate) fn is_text(self) -> bool {
        matches!(self, Scalar::Text | Scalar::Enum | Scalar::Json)
    }

    /// Whether its values are bytes of any length.
    pub(crate) fn is_blob(self) -> bool {
        matches!(self, Scalar::Blob | Scalar::Bson)
    }

    /// The type with its article, for messages: `an int`.
    pub fn with_article(self) -> String {
        if self == Scalar::Unknown {
            return "null, the only value of unknown".into();
        }
        let word = format!("{self}");
        let article = match word.as_bytes() {
            [b'a' | b'e' | b'i' | b'o', ..] => "an",
            _ => "a",
        };
        format!("{article} {word}")
    }
}

/// Maximum bytes of a value of fixed length: those of a batch are allocated at once.
pub(crate) const FIXED_BYTES_MAX: u32 = 4096;
/// Maximum digits of a decimal: those that 128 bits hold.
pub(crate) const DECIMAL_DIGITS_MAX: u32 = 38;

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = |unit| match unit {
            TimeUnit::Millis => 3,
            TimeUnit::Micros => 6,
            TimeUnit::Nanos => 9,
        };
        f.write_str(match *self {
            Scalar::Boolean => "boolean",
            Scalar::Integer(8) => "tinyint",
            Scalar::Integer(16) => "smallint",
            Scalar::Integer(32) => "int",
            Scalar::Integer(_) => "bigint",
            Scalar::Unsigned(bits) => return write!(f, "uint{bits}"),
            Scalar::Float16 => "float16",
            Scalar::Float => "float",
            Scalar::Double => "double",
            Scalar::Text => "text",
            Scalar::Enum => "enum",
            Scalar::Json => "json",
            Scalar::Blob => "blob",
            Scalar::Bson => "bson",
            Scalar::Fixed(bytes) => return write!(f, "fixed({bytes})"),
            Scalar::Date => "date",
            TIME => "time",
            Scalar::Time { unit, is_instant } => {
                return write!(f, "{}time({})", if is_instant { "utc" } else { "" }, digits(unit));
            }
            Scalar::Timestamp { unit, is_instant } => {
                let digits = digits(unit);
                return write!(f, "{}timestamp({digits})", if is_instant { "" } else { "local" });
            }
            Scalar::Int96 => "int96",
            Scalar::Interval => "interval",
            Scalar::Uuid => "uuid",
            Scalar::Unknown => "unknown",
            Scalar::Decimal { precision, scale } => return write!(f, "decimal({precision}, {scale})"),
        })
    }
}

/// What all values seen so far could be, besides text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kinds {
    bits: u16,
    has_values: bool,
    /// Not all of them are words for doubles that have no digits.
    has_others: bool,
}

const BOOLEAN: u16 = 1;
const INTEGER: u16 = 2;
const DOUBLE: u16 = 4;
const DATE: u16 = 8;
const LOCAL_MICROS: u16 = 16;
const LOCAL_NANOS: u16 = 32;
const MICROS: u16 = 64;
const NANOS: u16 = 128;
/// Integers that binary64 holds exactly.
const EXACT_MAX: u64 = 1 << 53;

impl Kinds {
    /// Without any value yet.
    pub(crate) const ANY: Kinds = Kinds { bits: u16::MAX, has_values: false, has_others: false };

    /// Adds a value's text.
    #[inline]
    pub(crate) fn see(&mut self, text: &[u8]) {
        self.see_if_short(text, fits);
    }

    /// Adds a text that has no digits of a number, whatever it contains: it may be a point in time, or one of the words
    /// for doubles without digits.
    pub(crate) fn see_text(&mut self, text: &[u8]) {
        self.see_if_short(text, times);
    }

    #[inline]
    fn see_if_short(&mut self, text: &[u8], fits: impl FnOnce(&[u8]) -> u16) {
        self.has_values = true;
        if self.bits != 0 {
            let bits = match text.len() {
                0..=parse::VALUE_BYTES_MAX if is_word(text) => DOUBLE,
                0..=parse::VALUE_BYTES_MAX => {
                    self.has_others = true;
                    fits(text)
                }
                _ => 0,
            };
            self.bits &= bits;
        }
    }

    /// Adds an integer.
    pub(crate) fn see_integer(&mut self, value: i64) {
        self.see_bits(if value.unsigned_abs() <= EXACT_MAX { INTEGER | DOUBLE } else { INTEGER });
    }

    /// Adds a number that is not an integer.
    pub(crate) fn see_double(&mut self) {
        self.see_bits(DOUBLE);
    }

    /// Adds a truth value.
    pub(crate) fn see_boolean(&mut self) {
        self.see_bits(BOOLEAN);
    }

    fn see_bits(&mut self, bits: u16) {
        (self.has_values, self.has_others) = (true, true);
        self.bits &= bits;
    }

    /// What the values of both could be.
    pub(crate) fn join(self, other: Kinds) -> Kinds {
        Kinds {
            bits: self.bits & other.bits,
            has_values: self.has_values || other.has_values,
            has_others: self.has_others || other.has_others,
        }
    }

    /// Whether all values are words for doubles without digits, which only numbers among them make doubles.
    pub(crate) fn is_words(self) -> bool {
        self.has_values && !self.has_others && self.bits != 0
    }

    /// Whether there is any value.
    pub(crate) fn has_values(self) -> bool {
        self.has_values
    }

    /// Whether all values are text, and nothing narrower.
    pub(crate) fn is_text(self) -> bool {
        self.bits == 0 || !self.has_others
    }

    /// Their type, with timestamps in a given unit.
    pub(crate) fn scalar_in(self, unit: Option<TimeUnit>) -> Scalar {
        match (self.scalar(), unit) {
            (Scalar::Timestamp { is_instant, .. }, Some(unit)) => Scalar::Timestamp { unit, is_instant },
            (found, _) => found,
        }
    }

    /// Their type: the narrowest that loses nothing.
    pub(crate) fn scalar(self) -> Scalar {
        if self.is_text() {
            return Scalar::Text;
        }
        let timestamp = |unit, is_instant| Scalar::Timestamp { unit, is_instant };
        let order = [
            (BOOLEAN, Scalar::Boolean),
            (INTEGER, Scalar::Integer(64)),
            (DOUBLE, Scalar::Double),
            (DATE, Scalar::Date),
            (LOCAL_MICROS, timestamp(TimeUnit::Micros, false)),
            (LOCAL_NANOS, timestamp(TimeUnit::Nanos, false)),
            (MICROS, timestamp(TimeUnit::Micros, true)),
            (NANOS, timestamp(TimeUnit::Nanos, true)),
        ];
        order.into_iter().find(|(bit, _)| self.bits & bit != 0).map_or(Scalar::Text, |(_, kind)| kind)
    }
}

/// Whether a text is one that is printed for a double without digits.
#[inline]
pub(crate) fn is_word(text: &[u8]) -> bool {
    matches!(text, b"NaN" | b"Infinity" | b"-Infinity")
}

fn fits(text: &[u8]) -> u16 {
    match text {
        [b'0'..=b'9' | b'-' | b'.', ..] => match parse::integer(text) {
            Some(value) if parse::is_canonical(text) => {
                if value.unsigned_abs() <= EXACT_MAX {
                    INTEGER | DOUBLE
                } else {
                    INTEGER
                }
            }
            None if parse::is_number(text)
                && !text.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-')
                && !parse::is_too_large(text) =>
            {
                DOUBLE
            }
            _ => times(text),
        },
        [b't' | b'T' | b'f' | b'F', ..] if parse::boolean(text).is_some() => BOOLEAN,
        _ => 0,
    }
}

/// What a text is if it is a point in time.
fn times(text: &[u8]) -> u16 {
    // 2024-02-29
    if text.len() < 10 || text[4] != b'-' || text[7] != b'-' {
        return 0;
    }
    let Some(found) = parse::timestamp(text) else { return 0 };
    let reaches = |unit, bit| if found.in_unit(unit).is_some() { bit } else { 0 };
    if found.offset.is_some() {
        reaches(TimeUnit::Micros, MICROS) | reaches(TimeUnit::Nanos, NANOS)
    } else {
        let date = if text.len() == 10 { DATE } else { 0 };
        date | reaches(TimeUnit::Micros, LOCAL_MICROS) | reaches(TimeUnit::Nanos, LOCAL_NANOS)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};

    use super::*;

    fn kind_of(texts: &[&str]) -> String {
        let mut kinds = Kinds::ANY;
        texts.iter().for_each(|text| kinds.see(text.as_bytes()));
        kinds.scalar().to_string()
    }

    #[test]
    fn kinds_lose_nothing() {
        for (texts, kind) in [
            (&["1", "-20", "0"][..], "bigint"),
            (&["1", "2.5"], "double"),
            (&["1", "010"], "text"),
            (&["9007199254740993", "2.5"], "text"),
            (&["9007199254740993"], "bigint"),
            (&["9223372036854775808"], "text"),
            (&["1", "x"], "text"),
            (&["true", "FALSE"], "boolean"),
            (&["true", "1"], "text"),
            (&["2024-02-29"], "date"),
            (&["2024-02-29", "2024-02-29 12:00"], "localtimestamp(6)"),
            (&["2024-02-29T12:00:00.123456789"], "localtimestamp(9)"),
            (&["2024-02-29T12:00:00.1Z", "2024-02-29T12:00:00+02:00"], "timestamp(6)"),
            (&["2024-02-29T12:00:00.1Z", "2024-02-29T12:00:00"], "text"),
            (&["2024-02-29", "20240229"], "text"),
            (&["3024-02-29", "2024-02-29T12:00:00.123456789"], "text"),
            (&["NaN", "1.5"], "double"),
            (&["1", "-Infinity", "Infinity"], "double"),
            (&["9007199254740993", "NaN"], "text"),
            (&["NaN", "Infinity"], "text"),
            (&["NaN", "nan", "1.5"], "text"),
            (&["NaN", "2024-02-29"], "text"),
            (&["NaN", "true"], "text"),
            (&["1.5", "1e400"], "text"),
            (&["1e300", "1e-400"], "double"),
            (&[], "text"),
        ] {
            assert_eq!(kind_of(texts), kind, "{texts:?}");
        }
        let mut one = Kinds::ANY;
        one.see(b"1");
        assert_eq!(one.join(Kinds::ANY).scalar(), Scalar::Integer(64));
        assert_eq!(Kinds::ANY.join(Kinds::ANY).scalar(), Scalar::Text);
    }
}
