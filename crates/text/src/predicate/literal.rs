//! Literals: the values of a leaf that a comparison with one accepts.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::Bytes;
use marquetry_parquet::prune::Ranges;
use marquetry_parquet::schema::{Meaning, TimeUnit};

use super::columns::Leaf;
use super::error::{PredicateError, excerpt};
use super::lexer::LITERAL_BYTES_MAX;
use super::number::{Floating, Number, Operator, Point};
use crate::parse;

/// A literal as it is written.
pub(super) struct Literal<'a> {
    pub(super) form: Form,
    pub(super) source: &'a str,
    pub(super) at: Range<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Number,
    Text,
    Blob,
    Uuid,
    Boolean(bool),
    Null,
}

/// What a literal is for a leaf.
enum Value {
    Point(Point),
    Bytes(Bytes),
}

const NANOS: i64 = 1_000_000_000;
const DAY_SECONDS: i64 = 86_400;

impl<'a> Literal<'a> {
    /// What is between its quotes, or the literal itself.
    pub(super) fn text(&self) -> Cow<'a, str> {
        let between = |start: &str, end: &str| self.source.strip_prefix(start)?.strip_suffix(end);
        if self.form != Form::Text {
            return self.source.into();
        }
        match (between("'", "'"), between("$$", "$$")) {
            (Some(text), _) if text.contains('\'') => text.replace("''", "'").into(),
            (Some(text), _) | (_, Some(text)) => text.into(),
            (None, None) => self.source.into(),
        }
    }

    /// The values of a leaf that are less, equal, … than it. The leaf's values have an order, if it is asked for.
    pub(super) fn ranges(&self, leaf: Leaf, operator: Operator) -> Result<Ranges, PredicateError> {
        if self.form == Form::Null {
            return Err(self.fail("a comparison with NULL is never true; IS NULL and IS NOT NULL are".into()));
        }
        if leaf.meaning == Meaning::Null {
            return Ok(Ranges::none(leaf.comparison()));
        }
        let value = self.value(leaf).map_err(|message| self.fail(message))?;
        Ok(match value.ok_or_else(|| self.fail(self.is_not(leaf)))? {
            Value::Point(point) => point.ranges(operator),
            Value::Bytes(value) => of_bytes(value, operator),
        })
    }

    fn value(&self, leaf: Leaf) -> Result<Option<Value>, String> {
        let text = self.text();
        // As everywhere: around a value that is not text, spaces mean nothing.
        let bare = text.trim_ascii().as_bytes();
        let is_short = bare.len() <= LITERAL_BYTES_MAX;
        let (is_text, is_number) =
            (self.form == Form::Text && is_short, self.form == Form::Number && is_short);
        let number = || if is_text || is_number { Number::parse(bare) } else { None };
        let at = |key: Option<i128>| key.map(|key| Value::Point(Point::at(key)));
        Ok(match leaf.meaning {
            Meaning::Boolean => match self.form {
                Form::Boolean(value) => at(Some(value.into())),
                Form::Text if is_short => at(parse::boolean(bare).map(i128::from)),
                _ => None,
            },
            Meaning::Integer { .. } => number().map(|it| Value::Point(it.scaled(0))),
            Meaning::Decimal { scale, precision } => match number().map(|it| it.scaled(scale)) {
                // The keys of values beyond 128 bits are the greatest and the least.
                Some(point) if precision > PRECISION_MAX && !point.is_within() => {
                    return Err(format!("{} has too many digits to be compared", excerpt(self.source)));
                }
                point => point.map(Value::Point),
            },
            Meaning::Float16 | Meaning::Float | Meaning::Double => {
                let floating = match leaf.meaning {
                    Meaning::Float16 => Floating::Half,
                    Meaning::Float => Floating::Single,
                    _ => Floating::Double,
                };
                let is_any = is_text || is_number;
                is_any.then(|| floating.point(bare)).flatten().map(Value::Point)
            }
            Meaning::Date if is_text => match parse::timestamp(bare) {
                Some(found) if found.offset.is_some() => return Err(self.has_zone(leaf)),
                found => found.map(|found| {
                    let nanos = i128::from(found.seconds) * i128::from(NANOS) + i128::from(found.nanos);
                    Value::Point(Point::of_parts(nanos, DAY_SECONDS * NANOS))
                }),
            },
            Meaning::Time { unit, is_adjusted_to_utc } if is_text => {
                let clock = bare.strip_suffix(b"Z").unwrap_or(bare);
                let nanos = parse::time(clock);
                if nanos.is_some() && clock.len() < bare.len() && !is_adjusted_to_utc {
                    return Err(self.has_zone(leaf));
                }
                nanos.map(|nanos| Value::Point(Point::of_parts(nanos.into(), nanos_of(unit))))
            }
            Meaning::Timestamp { unit, is_adjusted_to_utc } => {
                self.point_in_time(leaf, bare, unit, is_adjusted_to_utc)?.map(Value::Point)
            }
            Meaning::Int96 => self.point_in_time(leaf, bare, TimeUnit::Nanos, false)?.map(Value::Point),
            Meaning::Uuid if is_text || self.form == Form::Uuid => {
                parse::uuid(bare).map(|value| Value::Bytes(value.to_vec().into()))
            }
            Meaning::Interval if is_text => {
                parse::interval(bare).map(|value| Value::Bytes(value.to_vec().into()))
            }
            Meaning::String | Meaning::Enum | Meaning::Json => {
                (self.form == Form::Text).then(|| Value::Bytes(text.as_bytes().to_vec().into()))
            }
            // Many writers do not say that their bytes are text.
            Meaning::Bytes if self.form == Form::Text => Some(Value::Bytes(text.as_bytes().to_vec().into())),
            Meaning::Bson | Meaning::Bytes | Meaning::Geometry | Meaning::Geography
                if matches!(self.form, Form::Blob | Form::Text) =>
            {
                let mut bytes = Vec::new();
                parse::blob(bare, &mut bytes).map(|()| Value::Bytes(bytes.into()))
            }
            _ => None,
        })
    }

    /// A point in time of a leaf that counts such units; an integer is in milliseconds.
    fn point_in_time(
        &self,
        leaf: Leaf,
        bare: &[u8],
        unit: TimeUnit,
        is_instant: bool,
    ) -> Result<Option<Point>, String> {
        if self.form == Form::Number {
            let digits = match unit {
                TimeUnit::Millis => 0,
                TimeUnit::Micros => 3,
                TimeUnit::Nanos => 6,
            };
            let number = Number::parse(bare).filter(|_| Number::is_integer(bare));
            return Ok(number.map(|number| number.scaled(digits)));
        }
        if self.form != Form::Text || bare.len() > LITERAL_BYTES_MAX {
            return Ok(None);
        }
        let Some(found) = parse::timestamp(bare) else { return Ok(None) };
        if found.offset.is_some() && !is_instant {
            return Err(self.has_zone(leaf));
        }
        let seconds = found.seconds - found.offset.unwrap_or(0) * 60;
        let nanos = i128::from(seconds) * i128::from(NANOS) + i128::from(found.nanos);
        Ok(Some(Point::of_parts(nanos, nanos_of(unit))))
    }

    fn has_zone(&self, leaf: Leaf) -> String {
        format!("{} has a zone, and {} has none", excerpt(self.source), leaf.type_name())
    }

    /// That it is no value of the leaf, and how one is written.
    fn is_not(&self, leaf: Leaf) -> String {
        let hint = match leaf.meaning {
            Meaning::String | Meaning::Enum | Meaning::Json => {
                format!("; text is put in single quotes: '{}'", excerpt(self.source))
            }
            Meaning::Date => "; a date is written '2024-02-29'".into(),
            Meaning::Time { .. } => "; a time is written '12:34:56.789'".into(),
            Meaning::Timestamp { is_adjusted_to_utc: true, .. } => {
                "; a point in time is written '2024-02-29T12:34:56Z', or as milliseconds since 1970".into()
            }
            Meaning::Timestamp { .. } | Meaning::Int96 => {
                "; a point in time is written '2024-02-29T12:34:56', or as milliseconds since 1970".into()
            }
            Meaning::Interval => "; an interval is written 'P1M2DT3.004S'".into(),
            Meaning::Uuid => "; a UUID is written 550e8400-e29b-41d4-a716-446655440000".into(),
            Meaning::Bson | Meaning::Bytes | Meaning::Geometry | Meaning::Geography => {
                "; bytes are written 0x616263".into()
            }
            _ => String::new(),
        };
        format!("{} is not {}{hint}", excerpt(self.source), leaf.type_name())
    }

    fn fail(&self, message: String) -> PredicateError {
        PredicateError { at: self.at.clone(), message }
    }
}

/// Digits of decimals that 128 bits hold.
const PRECISION_MAX: i32 = 38;

fn nanos_of(unit: TimeUnit) -> i64 {
    NANOS / unit.per_second()
}

/// The byte strings that are less, equal, … than one.
fn of_bytes(value: Bytes, operator: Operator) -> Ranges {
    match operator {
        Operator::Equal => Ranges::of_bytes(value),
        Operator::NotEqual => Ranges::of_bytes(value).complement(),
        Operator::Less => Ranges::bytes_before(&value, false),
        Operator::AtMost => Ranges::bytes_before(&value, true),
        Operator::Greater => Ranges::bytes_before(&value, true).complement(),
        Operator::AtLeast => Ranges::bytes_before(&value, false).complement(),
    }
}
