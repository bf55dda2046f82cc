//! What the values of a column of text are: as inferred from the values, or as told.

use marquetry_parquet::schema::{FieldType, LogicalType, PhysicalType, TimeUnit};

use super::parse;

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Boolean,
    /// Of so many bits.
    Integer(u8),
    Float,
    Double,
    Text,
    Blob,
    Date,
    /// Nanoseconds of a day.
    Time,
    /// An instant, or a wall clock's reading.
    Timestamp {
        unit: TimeUnit,
        is_instant: bool,
    },
    Uuid,
    Decimal {
        precision: u32,
        scale: u32,
    },
}

impl Kind {
    /// How it is written.
    pub(super) fn field_type(self) -> FieldType {
        let (physical, logical) = match self {
            Kind::Boolean => (PhysicalType::Boolean, None),
            Kind::Integer(64) => (PhysicalType::Int64, None),
            Kind::Integer(32) => (PhysicalType::Int32, None),
            Kind::Integer(bit_width) => {
                (PhysicalType::Int32, Some(LogicalType::Integer { bit_width, is_signed: true }))
            }
            Kind::Float => (PhysicalType::Float, None),
            Kind::Double => (PhysicalType::Double, None),
            Kind::Text => (PhysicalType::ByteArray, Some(LogicalType::String)),
            Kind::Blob => (PhysicalType::ByteArray, None),
            Kind::Date => (PhysicalType::Int32, Some(LogicalType::Date)),
            Kind::Time => {
                let time = LogicalType::Time { is_adjusted_to_utc: false, unit: TimeUnit::Nanos };
                (PhysicalType::Int64, Some(time))
            }
            Kind::Timestamp { unit, is_instant } => {
                let timestamp = LogicalType::Timestamp { is_adjusted_to_utc: is_instant, unit };
                (PhysicalType::Int64, Some(timestamp))
            }
            Kind::Uuid => (PhysicalType::FixedLenByteArray(16), Some(LogicalType::Uuid)),
            Kind::Decimal { precision, scale } => {
                let physical = match precision {
                    0..=9 => PhysicalType::Int32,
                    10..=18 => PhysicalType::Int64,
                    _ => PhysicalType::FixedLenByteArray(16),
                };
                let number = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
                let decimal = LogicalType::Decimal { scale: number(scale), precision: number(precision) };
                (physical, Some(decimal))
            }
        };
        FieldType::Leaf(physical, logical)
    }

    /// Its name, as `--schema` has it.
    pub(super) fn name(self) -> String {
        let name = match self {
            Kind::Boolean => "boolean",
            Kind::Integer(8) => "tinyint",
            Kind::Integer(16) => "smallint",
            Kind::Integer(32) => "int",
            Kind::Integer(_) => "bigint",
            Kind::Float => "float",
            Kind::Double => "double",
            Kind::Text => "text",
            Kind::Blob => "blob",
            Kind::Date => "date",
            Kind::Time => "time",
            Kind::Timestamp { unit, is_instant } => {
                let digits = match unit {
                    TimeUnit::Millis => 3,
                    TimeUnit::Micros => 6,
                    TimeUnit::Nanos => 9,
                };
                return format!("{}timestamp({digits})", if is_instant { "" } else { "local" });
            }
            Kind::Uuid => "uuid",
            Kind::Decimal { precision, scale } => return format!("decimal({precision}, {scale})"),
        };
        name.to_string()
    }
}

/// What all values seen so far could be, beside text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kinds {
    bits: u16,
    has_values: bool,
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
    /// Of no value yet.
    pub(super) const ANY: Kinds = Kinds { bits: u16::MAX, has_values: false };

    /// Takes a value's text into account.
    #[inline]
    pub(super) fn see(&mut self, text: &[u8]) {
        self.has_values = true;
        if self.bits != 0 {
            self.bits &= fits(text);
        }
    }

    /// Takes a text into account that is text and no number, whatever stands in it: it may be a point in time.
    pub(super) fn see_text(&mut self, text: &[u8]) {
        self.has_values = true;
        if self.bits != 0 {
            self.bits &= times(text);
        }
    }

    /// Takes an integer into account.
    pub(super) fn see_integer(&mut self, value: i64) {
        self.see_bits(if value.unsigned_abs() <= EXACT_MAX { INTEGER | DOUBLE } else { INTEGER });
    }

    /// Takes a number into account that is no integer.
    pub(super) fn see_double(&mut self) {
        self.see_bits(DOUBLE);
    }

    /// Takes a truth value into account.
    pub(super) fn see_boolean(&mut self) {
        self.see_bits(BOOLEAN);
    }

    fn see_bits(&mut self, bits: u16) {
        self.has_values = true;
        self.bits &= bits;
    }

    /// What the values of both could be.
    pub(super) fn join(self, other: Kinds) -> Kinds {
        Kinds { bits: self.bits & other.bits, has_values: self.has_values || other.has_values }
    }

    /// Whether all values are text, and nothing else.
    pub(super) fn is_text(self) -> bool {
        self.bits == 0 || !self.has_values
    }

    /// What they are: the narrowest that loses nothing.
    pub(super) fn kind(self) -> Kind {
        if self.is_text() {
            return Kind::Text;
        }
        let timestamp = |unit, is_instant| Kind::Timestamp { unit, is_instant };
        let order = [
            (BOOLEAN, Kind::Boolean),
            (INTEGER, Kind::Integer(64)),
            (DOUBLE, Kind::Double),
            (DATE, Kind::Date),
            (LOCAL_MICROS, timestamp(TimeUnit::Micros, false)),
            (LOCAL_NANOS, timestamp(TimeUnit::Nanos, false)),
            (MICROS, timestamp(TimeUnit::Micros, true)),
            (NANOS, timestamp(TimeUnit::Nanos, true)),
        ];
        order.into_iter().find(|(bit, _)| self.bits & bit != 0).map_or(Kind::Text, |(_, kind)| kind)
    }
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
    use super::*;

    fn kind_of(texts: &[&str]) -> String {
        let mut kinds = Kinds::ANY;
        texts.iter().for_each(|text| kinds.see(text.as_bytes()));
        kinds.kind().name()
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
            (&["NaN", "1.5"], "text"),
            (&["1.5", "1e400"], "text"),
            (&["1e300", "1e-400"], "double"),
            (&[], "text"),
        ] {
            assert_eq!(kind_of(texts), kind, "{texts:?}");
        }
        let mut one = Kinds::ANY;
        one.see(b"1");
        assert_eq!(one.join(Kinds::ANY).kind(), Kind::Integer(64));
        assert_eq!(Kinds::ANY.join(Kinds::ANY).kind(), Kind::Text);
    }
}
