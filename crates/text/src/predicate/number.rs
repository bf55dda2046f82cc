//! Numbers as they are written, and where they are among the keys of a leaf.

use marquetry_parquet::prune::{Ranges, double_key};
use marquetry_parquet::scalar::{float_of_half, half_of_float};

use crate::parse;

/// A decimal number: digits, of which some are after the point, and an exponent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Number<'a> {
    is_negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
    exponent: i64,
}

impl<'a> Number<'a> {
    /// Parses `-1.5e3`; a point needs digits on one side only.
    pub(super) fn parse(text: &'a [u8]) -> Option<Number<'a>> {
        let (is_negative, rest) = signed(text);
        let (whole, rest) = digits(rest);
        let (fraction, rest) = rest.strip_prefix(b".").map_or((&[][..], rest), digits);
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let exponent = match rest {
            [] => 0,
            [b'e' | b'E', rest @ ..] => {
                let (is_negative, rest) = signed(rest);
                let (digits, rest) = digits(rest);
                if digits.is_empty() || !rest.is_empty() {
                    return None;
                }
                // No text has as many digits as would bring a larger one back.
                let add = |exponent: i64, digit: &u8| {
                    exponent.saturating_mul(10).saturating_add(i64::from(digit - b'0')).min(EXPONENT_MAX)
                };
                let exponent = digits.iter().fold(0, add);
                if is_negative { -exponent } else { exponent }
            }
            _ => return None,
        };
        Some(Number { is_negative, whole, fraction, exponent })
    }

    /// Whether it is written without a point and an exponent.
    pub(super) fn is_integer(text: &[u8]) -> bool {
        let (_, rest) = signed(text);
        !rest.is_empty() && digits(rest).1.is_empty()
    }

    /// Where it is among numbers with so many digits after the point, by their unscaled values.
    pub(super) fn scaled(&self, scale: i32) -> Point {
        let all = || self.whole.iter().chain(self.fraction).map(|digit| digit - b'0');
        let digits = self.whole.len() + self.fraction.len();
        let zeros = all().take_while(|digit| *digit == 0).count();
        if zeros == digits {
            return Point::at(0);
        }
        let length = |bytes: usize| i64::try_from(bytes).unwrap_or(EXPONENT_MAX);
        // The digits before the point of the unscaled value, from the first that is not zero.
        let kept = length(self.whole.len()) - length(zeros) + self.exponent + i64::from(scale);
        if kept > DIGITS_MAX {
            return if self.is_negative { Point::BELOW_ALL } else { Point::ABOVE_ALL };
        }
        let kept = usize::try_from(kept).unwrap_or(0);
        let mut rest = all().skip(zeros);
        let mut magnitude = Some(0_u128);
        for _ in 0..kept {
            let digit = rest.next().unwrap_or(0);
            magnitude = magnitude.and_then(|it| it.checked_mul(10)?.checked_add(digit.into()));
        }
        let has_more = rest.any(|digit| digit > 0);
        // What the digits that are left add is away from zero.
        let key = magnitude.and_then(|it| i128::try_from(it).ok());
        match (key, self.is_negative, has_more) {
            (Some(key), false, false) => Point::at(key),
            (Some(key), true, false) => Point::at(-key),
            (Some(key), false, true) => Point::after(key),
            (Some(key), true, true) => (-key).checked_sub(1).map_or(Point::BELOW_ALL, Point::after),
            // The least number has no positive counterpart.
            (None, true, false) if magnitude == Some(i128::MIN.unsigned_abs()) => Point::at(i128::MIN),
            (None, true, _) => Point::BELOW_ALL,
            (None, false, _) => Point::ABOVE_ALL,
        }
    }
}

/// The digits of 128 bits.
const DIGITS_MAX: i64 = 39;
/// Exponents up to this are exact: more than a text has digits.
const EXPONENT_MAX: i64 = 1 << 40;

fn signed(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    }
}

/// Digits at the start of a text, and the rest.
fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(text.iter().take_while(|byte| byte.is_ascii_digit()).count())
}

/// A floating-point type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Floating {
    Half,
    Single,
    Double,
}

impl Floating {
    /// Where the value of the type is that a text is nearest to. What is too large for a number of the type is between
    /// its largest one and infinity.
    pub(super) fn point(self, text: &[u8]) -> Option<Point> {
        let half = |value: f32| half_of_float(value).map(float_of_half);
        let value = match self {
            Floating::Half => parse::float(text).and_then(half).map(f64::from),
            Floating::Single => parse::float(text).map(f64::from),
            Floating::Double => parse::double(text),
        };
        if let Some(value) = value {
            return Some(Point::at(double_key(value)));
        }
        let number = Number::parse(text)?;
        let largest = match self {
            Floating::Half => 65_504.0,
            Floating::Single => f64::from(f32::MAX),
            Floating::Double => f64::MAX,
        };
        Some(match number.is_negative {
            false => Point {
                below: Some(double_key(largest)),
                equal: None,
                above: Some(double_key(f64::INFINITY)),
            },
            true => Point {
                below: Some(double_key(f64::NEG_INFINITY)),
                equal: None,
                above: Some(double_key(-largest)),
            },
        })
    }
}

/// How values are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl Operator {
    /// The one that says the same with its sides exchanged.
    pub(super) fn mirrored(self) -> Operator {
        match self {
            Operator::Equal | Operator::NotEqual => self,
            Operator::Less => Operator::Greater,
            Operator::AtMost => Operator::AtLeast,
            Operator::Greater => Operator::Less,
            Operator::AtLeast => Operator::AtMost,
        }
    }
}

/// Where a literal is among the keys of a leaf: at one of them, or between two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Point {
    /// The greatest key that is less.
    below: Option<i128>,
    equal: Option<i128>,
    /// The least key that is greater.
    above: Option<i128>,
}

impl Point {
    const BELOW_ALL: Point = Point { below: None, equal: None, above: Some(i128::MIN) };
    const ABOVE_ALL: Point = Point { below: Some(i128::MAX), equal: None, above: None };

    pub(super) fn at(key: i128) -> Point {
        Point { below: key.checked_sub(1), equal: Some(key), above: key.checked_add(1) }
    }

    /// Between a key and the next one.
    fn after(key: i128) -> Point {
        Point { below: Some(key), equal: None, above: key.checked_add(1) }
    }

    /// At a number of parts, of which so many are one of a key.
    pub(super) fn of_parts(parts: i128, parts_of_key: i64) -> Point {
        let (key, rest) = (parts.div_euclid(parts_of_key.into()), parts.rem_euclid(parts_of_key.into()));
        if rest == 0 { Point::at(key) } else { Point::after(key) }
    }

    /// Whether it is at neither end of all keys: where keys are the nearest of more numbers, those have many.
    pub(super) fn is_within(self) -> bool {
        self.below.is_some_and(|key| key < i128::MAX - 1) && self.above.is_some_and(|key| key > i128::MIN + 1)
    }

    /// The keys that are less, equal, … than it.
    pub(super) fn ranges(self, operator: Operator) -> Ranges {
        let keys = match operator {
            Operator::NotEqual => return self.ranges(Operator::Equal).complement(),
            Operator::Equal => self.equal.map(|key| [key, key]),
            Operator::Less => self.below.map(|key| [i128::MIN, key]),
            Operator::AtMost => self.equal.or(self.below).map(|key| [i128::MIN, key]),
            Operator::Greater => self.above.map(|key| [key, i128::MAX]),
            Operator::AtLeast => self.equal.or(self.above).map(|key| [key, i128::MAX]),
        };
        // From the greatest to the least there is none.
        let [first, last] = keys.unwrap_or([i128::MAX, i128::MIN]);
        Ranges::of_keys(first, last)
    }
}
