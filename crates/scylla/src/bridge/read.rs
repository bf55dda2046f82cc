//! Values from text, as CQL writes them, without its quotes: the forms that are CQL's own.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use marquetry_base::calendar::TimeUnit;
use marquetry_base::{parse, twos_complement};

use super::value::Value;

/// Maximum bytes of a value other than a blob.
pub(super) const VALUE_BYTES_MAX: usize = 16 << 10;

/// Bytes: `0x` and hexadecimal digits.
pub(super) fn blob(text: &[u8]) -> Option<Value<'static>> {
    let mut bytes = Vec::new();
    parse::blob(text, &mut bytes)?;
    Some(Value::Blob(Cow::Owned(bytes)))
}

/// An integer of any length.
pub(super) fn varint(text: &[u8]) -> Option<Value<'static>> {
    let (is_negative, digits) = signed(text);
    twos_complement::of_digits(is_negative, digits).map(Value::Varint)
}

/// Whether it is negative, and what is after the sign.
fn signed(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    }
}

/// A decimal number, optionally with an exponent. Its scale is that of the text: `1.50` is not `1.5`.
pub(super) fn decimal(text: &[u8]) -> Option<Value<'static>> {
    let (mantissa, exponent) = match text.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        Some(at) => (&text[..at], parse::integer(&text[at + 1..])?),
        None => (text, 0),
    };
    let (is_negative, digits) = signed(mantissa);
    let (whole, fraction) = match digits.iter().position(|byte| *byte == b'.') {
        Some(at) => (&digits[..at], &digits[at + 1..]),
        None => (digits, &digits[..0]),
    };
    let unscaled = twos_complement::of_digits(is_negative, &[whole, fraction].concat())?;
    let scale = i64::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    Some(Value::DecimalBytes { unscaled: Cow::Owned(unscaled), scale: i32::try_from(scale).ok()? })
}

/// The integer that a decimal number is, with a fraction of zeros or an exponent: `7.00`, `1e3`. Nothing is rounded.
pub(super) fn whole(text: &[u8]) -> Option<Vec<u8>> {
    let Some(Value::DecimalBytes { scale, .. }) = decimal(text) else { return None };
    let mantissa = text.split(|byte| matches!(byte, b'e' | b'E')).next()?;
    let (is_negative, digits) = signed(mantissa);
    let mut digits: Vec<u8> = digits.iter().copied().filter(|byte| *byte != b'.').collect();
    match usize::try_from(scale) {
        Ok(fraction) => {
            let zeros = digits.iter().rev().take_while(|digit| **digit == b'0').count();
            let is_zero = zeros == digits.len();
            (is_zero || fraction <= zeros).then_some(())?;
            digits.truncate(digits.len().saturating_sub(fraction));
            if digits.is_empty() {
                digits.push(b'0');
            }
        }
        Err(_) => {
            let zeros = usize::try_from(scale.unsigned_abs()).ok()?;
            (zeros <= twos_complement::DIGITS_MAX).then_some(())?;
            digits.resize(digits.len() + zeros, b'0');
        }
    }
    twos_complement::of_digits(is_negative, &digits)
}

/// Milliseconds since 1970: of a point in time as ISO 8601 writes it (in UTC if it has no zone), or the number itself.
pub(super) fn timestamp(text: &[u8], rounds: bool) -> Option<i64> {
    let Some(mut time) = parse::timestamp(text) else { return parse::integer(text) };
    if rounds {
        time.nanos -= time.nanos % (TimeUnit::Nanos.per_second() / TimeUnit::Millis.per_second());
    }
    time.in_unit(TimeUnit::Millis)
}

/// A duration in either of CQL's forms: `1y2mo3w4d5h6m7s8ms9us10ns`, each unit at most once and in this order, or ISO 8601's
/// `P1Y2M3DT4H5M6S` and `P3W`; after a sign that is for all of it.
pub(super) fn duration(text: &[u8]) -> Option<Value<'static>> {
    let (is_negative, rest) = match text {
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let mut parts = Parts::default();
    match rest {
        [b'P' | b'p', iso @ ..] => {
            let (date, clock) = match iso.iter().position(|byte| byte.eq_ignore_ascii_case(&b'T')) {
                Some(at) => (&iso[..at], Some(&iso[at + 1..])),
                None => (iso, None),
            };
            parts.add(date, &[("y", YEAR), ("m", MONTH), ("w", WEEK), ("d", DAY)])?;
            if let Some(clock) = clock {
                let before = parts.count;
                parts.add(clock, &[("h", HOUR), ("m", MINUTE), ("s", SECOND)])?;
                (parts.count > before).then_some(())?;
            }
        }
        usual => parts.add(
            usual,
            &[
                ("y", YEAR),
                ("mo", MONTH),
                ("w", WEEK),
                ("d", DAY),
                ("h", HOUR),
                ("m", MINUTE),
                ("s", SECOND),
                ("ms", Unit::Nanos(1_000_000)),
                ("us", Unit::Nanos(1_000)),
                ("µs", Unit::Nanos(1_000)),
                ("ns", Unit::Nanos(1)),
            ],
        )?,
    }
    (parts.count > 0).then_some(())?;
    let sign = if is_negative { -1 } else { 1 };
    Some(Value::Duration {
        months: i32::try_from(parts.months).ok()? * sign,
        days: i32::try_from(parts.days).ok()? * sign,
        nanos: parts.nanos * i64::from(sign),
    })
}

#[derive(Debug, Clone, Copy)]
enum Unit {
    Months(i64),
    Days(i64),
    Nanos(i64),
}

const YEAR: Unit = Unit::Months(12);
const MONTH: Unit = Unit::Months(1);
const WEEK: Unit = Unit::Days(7);
const DAY: Unit = Unit::Days(1);
const HOUR: Unit = Unit::Nanos(3_600_000_000_000);
const MINUTE: Unit = Unit::Nanos(60_000_000_000);
const SECOND: Unit = Unit::Nanos(1_000_000_000);

/// The parts of a duration, none of them negative.
#[derive(Debug, Default)]
struct Parts {
    months: i64,
    days: i64,
    nanos: i64,
    /// How many were written.
    count: usize,
}

impl Parts {
    /// Adds numbers, each with one of these units after it, in this order.
    fn add(&mut self, mut rest: &[u8], mut units: &[(&str, Unit)]) -> Option<()> {
        while !rest.is_empty() {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let letters = rest[digits..].iter().take_while(|byte| !byte.is_ascii_digit()).count();
            let (number, after) = rest.split_at(digits);
            let (unit, after) = after.split_at(letters);
            let at = units.iter().position(|(word, _)| unit.eq_ignore_ascii_case(word.as_bytes()))?;
            let number = (!number.is_empty()).then(|| parse::integer(number)).flatten()?;
            match units[at].1 {
                Unit::Months(times) => self.months = self.months.checked_add(number.checked_mul(times)?)?,
                Unit::Days(times) => self.days = self.days.checked_add(number.checked_mul(times)?)?,
                Unit::Nanos(times) => self.nanos = self.nanos.checked_add(number.checked_mul(times)?)?,
            }
            self.count += 1;
            (units, rest) = (&units[at + 1..], after);
        }
        Some(())
    }
}
