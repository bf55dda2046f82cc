//! Literals as values of a column's type.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use marquetry_base::Bytes;
use marquetry_parquet::prune::{Comparison, Ranges, double_key};
use marquetry_parquet::scalar::{float_of_half, half_of_float};
use marquetry_parquet::schema::{Meaning, PhysicalType, TimeUnit};

use super::tokens::{Literal, number_of};
use crate::parse;
use crate::scalar::Scalar;

/// A comparison of a column with a literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparing {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparing {
    pub(super) fn of(sign: &str) -> Option<Comparing> {
        Some(match sign {
            "=" | "==" => Comparing::Equal,
            "!=" | "<>" => Comparing::Unequal,
            "<" => Comparing::Less,
            "<=" => Comparing::LessOrEqual,
            ">" => Comparing::Greater,
            ">=" => Comparing::GreaterOrEqual,
            _ => return None,
        })
    }

    /// The same with its sides exchanged.
    pub(super) fn mirrored(self) -> Comparing {
        match self {
            Comparing::Less => Comparing::Greater,
            Comparing::LessOrEqual => Comparing::GreaterOrEqual,
            Comparing::Greater => Comparing::Less,
            Comparing::GreaterOrEqual => Comparing::LessOrEqual,
            same => same,
        }
    }
}

/// The type of a column's values.
#[derive(Debug, Clone, Copy)]
pub(super) struct ValueType {
    pub(super) meaning: Meaning,
    pub(super) physical_type: PhysicalType,
}

/// Where a literal is among the keys of a type: the greatest key that is not greater, and whether it is the literal.
#[derive(Debug, Clone, Copy)]
struct Place {
    floor: i128,
    is_exact: bool,
}

/// Digits of a number that 128 bits hold.
const DIGITS_MAX: usize = 38;

impl ValueType {
    pub(super) fn comparison(self) -> Comparison {
        Comparison::of(self.meaning, self.physical_type)
    }

    pub(super) fn is_text(self) -> bool {
        matches!(self.meaning, Meaning::String | Meaning::Enum | Meaning::Json)
    }

    /// The type in words, with its article.
    pub(super) fn with_article(self) -> String {
        match (self.meaning, Scalar::of_meaning(self.meaning, self.physical_type)) {
            (_, Some(scalar)) => scalar.with_article(),
            (Meaning::Decimal { precision, scale }, None) => format!("a decimal({precision}, {scale})"),
            (meaning, None) => format!("a value of type {meaning:?}"),
        }
    }

    /// The values that compare so with a literal.
    pub(super) fn ranges(self, comparing: Comparing, literal: &Literal) -> Result<Ranges, String> {
        if self.meaning == Meaning::Null {
            return Ok(Ranges::none(self.comparison()));
        }
        if self.comparison() == Comparison::Number {
            return self.place(literal).map(|place| place.ranges(comparing));
        }
        let is_ordered = self.comparison() == Comparison::Bytes;
        if !is_ordered && !matches!(comparing, Comparing::Equal | Comparing::Unequal) {
            return Err(format!("values like {} have no order, only = and <>", self.with_article()));
        }
        let value = Bytes::from(self.bytes(literal)?);
        Ok(match comparing {
            Comparing::Equal => Ranges::of_bytes(value),
            Comparing::Unequal => Ranges::of_bytes(value).complement(),
            Comparing::Less => Ranges::bytes_before(&value, false),
            Comparing::LessOrEqual => Ranges::bytes_before(&value, true),
            Comparing::Greater => Ranges::bytes_before(&value, true).complement(),
            Comparing::GreaterOrEqual => Ranges::bytes_before(&value, false).complement(),
        })
    }

    fn wrong(self, literal: &Literal) -> String {
        format!("{} is not {}", literal.shown(), self.with_article())
    }

    /// A value that is compared byte by byte.
    fn bytes(self, literal: &Literal) -> Result<Vec<u8>, String> {
        let wrong = || self.wrong(literal);
        match (self.meaning, literal) {
            (Meaning::String | Meaning::Enum | Meaning::Json, Literal::Text(text)) => {
                Ok(text.as_bytes().to_vec())
            }
            (Meaning::String | Meaning::Enum | Meaning::Json, _) => {
                Err(format!("{}; a text is put in single quotes", wrong()))
            }
            (Meaning::Uuid, Literal::Uuid(text) | Literal::Text(text)) => {
                parse::uuid(text.as_bytes()).map(|uuid| uuid.to_vec()).ok_or_else(wrong)
            }
            (Meaning::Interval, Literal::Text(text)) => {
                parse::interval(text.as_bytes()).map(|interval| interval.to_vec()).ok_or_else(wrong)
            }
            (Meaning::Uuid | Meaning::Interval, _) => Err(wrong()),
            (_, Literal::Blob(digits)) => {
                let mut bytes = Vec::new();
                parse::blob(digits.as_bytes(), &mut bytes).ok_or_else(wrong)?;
                Ok(bytes)
            }
            // Many writers do not say that their bytes are text.
            (_, Literal::Text(text)) => Ok(text.as_bytes().to_vec()),
            _ => Err(wrong()),
        }
    }

    /// Where a literal is among numbers.
    fn place(self, literal: &Literal) -> Result<Place, String> {
        let found = match (self.meaning.read_as(self.physical_type), literal) {
            (Meaning::Boolean, Literal::Boolean(value)) => Some(Place::exact((*value).into())),
            (Meaning::Boolean, Literal::Text(text)) => {
                parse::boolean(text.as_bytes()).map(|value| Place::exact(value.into()))
            }
            (Meaning::Integer { .. }, Literal::Number(text) | Literal::Text(text)) => scaled(text, 0),
            (Meaning::Decimal { scale, .. }, Literal::Number(text) | Literal::Text(text)) => {
                scaled(text, scale)
            }
            (Meaning::Double, Literal::Number(text) | Literal::Text(text)) => {
                parse::double(text.as_bytes()).map(|value| Place::exact(double_key(value)))
            }
            (Meaning::Float, Literal::Number(text) | Literal::Text(text)) => {
                parse::float(text.as_bytes()).map(|value| Place::exact(double_key(value.into())))
            }
            (Meaning::Float16, Literal::Number(text) | Literal::Text(text)) => parse::float(text.as_bytes())
                .and_then(half_of_float)
                .map(|half| Place::exact(double_key(float_of_half(half).into()))),
            (Meaning::Date, Literal::Text(text)) => {
                let point = parse::timestamp(text.as_bytes()).filter(|point| point.offset.is_none());
                point.map(|point| Place::floor_of(nanos_of(point), DAY_NANOS))
            }
            (Meaning::Time { unit, is_adjusted_to_utc }, Literal::Text(text)) => {
                let bare = text.strip_suffix('Z').filter(|_| is_adjusted_to_utc).unwrap_or(text);
                parse::time(bare.as_bytes()).map(|nanos| Place::floor_of(nanos.into(), nanos_of_unit(unit)))
            }
            (Meaning::Timestamp { unit, is_adjusted_to_utc }, Literal::Text(text)) => {
                point_of(text, is_adjusted_to_utc)?.map(|nanos| Place::floor_of(nanos, nanos_of_unit(unit)))
            }
            (Meaning::Timestamp { unit, .. }, Literal::Number(text)) => {
                scaled(text, 0).map(|millis| millis.times(MILLI_NANOS / nanos_of_unit(unit)))
            }
            (Meaning::Int96, Literal::Text(text)) => point_of(text, false)?.map(Place::exact),
            (Meaning::Int96, Literal::Number(text)) => {
                scaled(text, 0).map(|millis| millis.times(MILLI_NANOS))
            }
            (Meaning::Date, Literal::Number(_)) => {
                return Err(format!("{}; a date is written like '2024-02-29'", self.wrong(literal)));
            }
            (Meaning::Time { .. }, Literal::Number(_)) => {
                return Err(format!("{}; a time is written like '12:34:56'", self.wrong(literal)));
            }
            _ => None,
        };
        found.ok_or_else(|| self.wrong(literal))
    }
}

const DAY_NANOS: i128 = 86_400_000_000_000;
const MILLI_NANOS: i128 = 1_000_000;

fn nanos_of_unit(unit: TimeUnit) -> i128 {
    1_000_000_000 / i128::from(unit.per_second())
}

fn nanos_of(point: parse::Timestamp) -> i128 {
    let seconds = i128::from(point.seconds) - i128::from(point.offset.unwrap_or(0)) * 60;
    seconds * 1_000_000_000 + i128::from(point.nanos)
}

/// A point in time in nanoseconds; `None` if the text is none.
fn point_of(text: &str, is_instant: bool) -> Result<Option<i128>, String> {
    let Some(point) = parse::timestamp(text.as_bytes()) else { return Ok(None) };
    if point.offset.is_some() && !is_instant {
        return Err(format!("'{text}' has a zone, but the column's times are local: leave the zone out"));
    }
    Ok(Some(nanos_of(point)))
}

impl Place {
    fn exact(floor: i128) -> Place {
        Place { floor, is_exact: true }
    }

    fn floor_of(number: i128, unit: i128) -> Place {
        Place { floor: number.div_euclid(unit), is_exact: number.rem_euclid(unit) == 0 }
    }

    /// The same in a unit that is so many times smaller. What was between two keys is in the middle of many then, whichever.
    fn times(self, factor: i128) -> Place {
        let floor = self.floor.saturating_mul(factor);
        let is_exact = self.is_exact && self.floor.checked_mul(factor).is_some();
        let inside = if self.is_exact { 0 } else { factor / 2 };
        Place { floor: floor.saturating_add(inside), is_exact }
    }

    fn ranges(self, comparing: Comparing) -> Ranges {
        let Place { floor, is_exact } = self;
        let none = || Ranges::of_keys(1, 0);
        let above = || floor.checked_add(1).map_or_else(none, |first| Ranges::of_keys(first, i128::MAX));
        let below = || floor.checked_sub(1).map_or_else(none, |last| Ranges::of_keys(i128::MIN, last));
        match (comparing, is_exact) {
            (Comparing::Equal, true) => Ranges::of_keys(floor, floor),
            (Comparing::Equal, false) => none(),
            (Comparing::Unequal, true) => Ranges::of_keys(floor, floor).complement(),
            (Comparing::Unequal, false) => none().complement(),
            (Comparing::Less, true) => below(),
            (Comparing::Less, false) | (Comparing::LessOrEqual, _) => Ranges::of_keys(i128::MIN, floor),
            (Comparing::GreaterOrEqual, true) => Ranges::of_keys(floor, i128::MAX),
            (Comparing::GreaterOrEqual, false) | (Comparing::Greater, _) => above(),
        }
    }
}

impl Literal {
    /// As it was written.
    pub(super) fn shown(&self) -> String {
        match self {
            Literal::Text(text) => format!("'{}'", text.replace('\'', "''")),
            Literal::Number(text) | Literal::Blob(text) | Literal::Uuid(text) => text.clone(),
            Literal::Boolean(value) => format!("{value}"),
        }
    }
}

/// Where a number is among integers that count units of 10^-scale. `None` for what is no number.
fn scaled(text: &str, scale: i32) -> Option<Place> {
    if number_of(text) != Some(text.len()) || !text.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent),
        None => (text, "0"),
    };
    // An exponent of more digits than 64 bits hold is as good as one of as many.
    let exponent: i64 =
        exponent.parse().unwrap_or(if exponent.starts_with('-') { i64::MIN / 4 } else { i64::MAX / 4 });
    let is_negative = mantissa.starts_with('-');
    let bare = mantissa.trim_start_matches(['-', '+']);
    let fraction = bare.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let mut shift =
        exponent.saturating_add(scale.into()).saturating_sub(i64::try_from(fraction).unwrap_or(i64::MAX));
    let (mut magnitude, mut has_rest, mut digits) = (0_i128, false, 0);
    for digit in bare.bytes().filter(u8::is_ascii_digit) {
        let digit = digit - b'0';
        if digits == DIGITS_MAX {
            has_rest |= digit > 0;
            shift = shift.saturating_add(1);
            continue;
        }
        magnitude = magnitude * 10 + i128::from(digit);
        digits += usize::from(magnitude > 0);
    }
    while shift > 0 && magnitude > 0 {
        let Some(larger) = magnitude.checked_mul(10) else {
            let floor = if is_negative { i128::MIN } else { i128::MAX };
            return Some(Place { floor, is_exact: false });
        };
        (magnitude, shift) = (larger, shift - 1);
    }
    while shift < 0 && (magnitude > 0) {
        has_rest |= magnitude % 10 > 0;
        (magnitude, shift) = (magnitude / 10, shift + 1);
    }
    let floor = if is_negative { -magnitude - i128::from(has_rest) } else { magnitude };
    Some(Place { floor, is_exact: !has_rest })
}
