//! Values of two types, compared by what they mean: numbers as numbers, times as times, bytes as bytes.

use std::cmp::Ordering;

use marquetry_base::print::{self, Digits};
use marquetry_base::twos_complement::{shortest, to_i128};
use marquetry_parquet::batch::Value;
use marquetry_parquet::scalar::{float_of_half, int96_nanos};
use marquetry_parquet::schema::{Meaning, TimeUnit};

/// A value, freed of how its type stores it.
#[derive(Debug, Clone, Copy)]
pub(super) enum Item<'a> {
    Boolean(bool),
    /// Integers, decimals and dates.
    Number(Number<'a>),
    Float(f64),
    /// Times, with or without a day.
    Nanos(i128),
    Bytes(&'a [u8]),
    Uuid(&'a [u8; 16]),
}

/// A number: an integer divided by 10 to the power of `scale`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Number<'a> {
    unscaled: Unscaled<'a>,
    scale: i32,
}

#[derive(Debug, Clone, Copy)]
enum Unscaled<'a> {
    Short(i128),
    /// Beyond 128 bits: big-endian, in two's complement.
    Long(&'a [u8]),
}

/// Whether values with these meanings can be equal, and it is always clear whether they are.
///
/// Beyond what is a matter of width: integers compare with decimals and, exactly, with floats; decimals do not compare with
/// floats, most of which no decimal equals that is written the same. Times of any unit compare with each other, adjusted to
/// UTC or not; bytes without an annotation compare with whatever is held in bytes; text compares with UUIDs as their text.
pub(super) fn are_comparable(a: Meaning, b: Meaning) -> bool {
    use Meaning::{Bytes, Date, Decimal, Int96, Integer, Null, Time, Timestamp, Uuid};
    let one_way = |a: Meaning, b: Meaning| match (a, b) {
        (Null, _) => true,
        (Integer { .. } | Decimal { .. }, Integer { .. } | Decimal { .. }) => true,
        (Integer { .. }, b) => b.is_floating(),
        (Time { .. }, Time { .. }) => true,
        (Timestamp { .. } | Int96, Timestamp { .. } | Int96) => true,
        (Bytes, b) => !b.is_number() && !b.is_time() && !matches!(b, Meaning::Boolean | Date),
        (Uuid, b) => b.is_text(),
        (a, b) => (a.is_floating() && b.is_floating()) || (a.is_text() && b.is_text()),
    };
    a == b || one_way(a, b) || one_way(b, a)
}

/// What values mean once they are loaded: a time is an integer where the other table has that.
pub(super) fn loaded([a, b]: [Meaning; 2]) -> [Meaning; 2] {
    let is_time =
        |meaning| matches!(meaning, Meaning::Timestamp { unit: TimeUnit::Micros | TimeUnit::Nanos, .. });
    let is_integer = |meaning| matches!(meaning, Meaning::Integer { bit_width: 64, is_signed: true });
    match (a, b) {
        (a, b) if is_time(a) && is_integer(b) => [b, b],
        (a, b) if is_integer(a) && is_time(b) => [a, a],
        both => [both.0, both.1],
    }
}

/// A value by its meaning.
pub(super) fn item(meaning: Meaning, value: Value<'_>) -> Item<'_> {
    let nanos = |units: i64, unit: TimeUnit| {
        let per_unit = match unit {
            TimeUnit::Millis => 1_000_000,
            TimeUnit::Micros => 1_000,
            TimeUnit::Nanos => 1,
        };
        Item::Nanos(i128::from(units) * per_unit)
    };
    let scale = if let Meaning::Decimal { scale, .. } = meaning { scale } else { 0 };
    let number = |value: i128| Item::Number(Number { unscaled: Unscaled::Short(value), scale });
    let is_unsigned = matches!(meaning, Meaning::Integer { is_signed: false, .. });
    match (meaning, value) {
        (Meaning::Time { unit, .. }, Value::Int32(units)) => nanos(units.into(), unit),
        (Meaning::Time { unit, .. } | Meaning::Timestamp { unit, .. }, Value::Int64(units)) => {
            nanos(units, unit)
        }
        (Meaning::Decimal { .. }, Value::Bytes(bytes)) => match to_i128(bytes) {
            Some(value) => number(value),
            None => Item::Number(Number { unscaled: Unscaled::Long(bytes), scale }),
        },
        (Meaning::Int96, Value::Bytes(bytes)) => match bytes.try_into() {
            Ok(int96) => Item::Nanos(int96_nanos(int96)),
            Err(_) => Item::Bytes(bytes),
        },
        (Meaning::Float16, Value::Bytes(&[low, high])) => {
            Item::Float(float_of_half(u16::from_le_bytes([low, high])).into())
        }
        (Meaning::Uuid, Value::Bytes(bytes)) => bytes.try_into().map_or(Item::Bytes(bytes), Item::Uuid),
        (_, Value::Boolean(value)) => Item::Boolean(value),
        (_, Value::Int32(value)) if is_unsigned => number(value.cast_unsigned().into()),
        (_, Value::Int64(value)) if is_unsigned => number(value.cast_unsigned().into()),
        (_, Value::Int32(value)) => number(value.into()),
        (_, Value::Int64(value)) => number(value.into()),
        (_, Value::Float(value)) => Item::Float(value.into()),
        (_, Value::Double(value)) => Item::Float(value),
        (_, Value::Bytes(bytes)) => Item::Bytes(bytes),
    }
}

/// The order of two values whose meanings are [comparable](are_comparable). It agrees with the order in which each of their types
/// is sorted: −0 equals 0, and all NaNs are equal and greater than all numbers.
pub(super) fn compare(a: Item<'_>, b: Item<'_>) -> Ordering {
    match (a, b) {
        (Item::Boolean(a), Item::Boolean(b)) => a.cmp(&b),
        (Item::Number(a), Item::Number(b)) => compare_numbers(a, b),
        (Item::Number(a), Item::Float(b)) => compare_with_float(a, b),
        (Item::Float(a), Item::Number(b)) => compare_with_float(b, a).reverse(),
        (Item::Float(a), Item::Float(b)) => compare_floats(a, b),
        (Item::Nanos(a), Item::Nanos(b)) => a.cmp(&b),
        (Item::Bytes(a), Item::Bytes(b)) => a.cmp(b),
        (Item::Uuid(a), Item::Uuid(b)) => a.cmp(b),
        (Item::Uuid(a), Item::Bytes(b)) => compare_uuid(a, b),
        (Item::Bytes(a), Item::Uuid(b)) => compare_uuid(b, a).reverse(),
        // Meanings that are not comparable.
        (a, b) => rank(a).cmp(&rank(b)),
    }
}

fn rank(item: Item<'_>) -> u8 {
    match item {
        Item::Boolean(_) => 0,
        Item::Number(_) => 1,
        Item::Float(_) => 2,
        Item::Nanos(_) => 3,
        Item::Bytes(_) => 4,
        Item::Uuid(_) => 5,
    }
}

pub(super) fn compare_floats(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// A UUID beside other bytes: its own sixteen, or else its text, in lower case.
fn compare_uuid(uuid: &[u8; 16], bytes: &[u8]) -> Ordering {
    if bytes.len() == uuid.len() {
        return uuid[..].cmp(bytes);
    }
    let mut text = Vec::with_capacity(36);
    print::uuid(&mut text, uuid);
    text[..].cmp(bytes)
}

fn compare_numbers(a: Number<'_>, b: Number<'_>) -> Ordering {
    match (a.unscaled, b.unscaled) {
        (Unscaled::Short(in_a), Unscaled::Short(in_b)) if a.scale == b.scale => in_a.cmp(&in_b),
        (Unscaled::Short(in_a), Unscaled::Short(in_b)) if a.scale < b.scale => {
            let places = a.scale.abs_diff(b.scale);
            match 10_i128.checked_pow(places).and_then(|power| in_a.checked_mul(power)) {
                Some(in_a) => in_a.cmp(&in_b),
                // Beyond 128 bits, which the other is not; or zero.
                None => in_a.cmp(&0).then_with(|| 0.cmp(&in_b)),
            }
        }
        (Unscaled::Short(_), Unscaled::Short(_)) => compare_numbers(b, a).reverse(),
        _ => compare_digits(a, b),
    }
}

/// The digits of a number, and how many of them are after the point. `None` for one that is beyond any real precision.
pub(super) fn digits_of(number: Number<'_>) -> Option<(Digits, i32)> {
    let digits = match number.unscaled {
        Unscaled::Short(value) => Some(Digits::of(value)),
        Unscaled::Long(bytes) => Digits::of_bytes(bytes),
    };
    Some((digits?, number.scale))
}

/// Numbers beyond 128 bits, digit by digit.
fn compare_digits(a: Number<'_>, b: Number<'_>) -> Ordering {
    let digits = |number: &Number<'_>| digits_of(*number).map(|(digits, _)| digits);
    let (Some(in_a), Some(in_b)) = (digits(&a), digits(&b)) else { return compare_huge(a, b) };
    let sign = |digits: &Digits| match (digits.as_slice(), digits.is_negative()) {
        (b"0", _) => 0,
        (_, true) => -1,
        (_, false) => 1,
    };
    if sign(&in_a) != sign(&in_b) || sign(&in_a) == 0 {
        return sign(&in_a).cmp(&sign(&in_b));
    }
    // Digits before the point, fewer than none for zeros after it.
    let whole = |digits: &Digits, number: &Number<'_>| {
        i64::try_from(digits.as_slice().len()).unwrap_or(i64::MAX).saturating_sub(number.scale.into())
    };
    let (all_a, all_b) = (in_a.as_slice(), in_b.as_slice());
    let length = all_a.len().max(all_b.len());
    let padded = |digits: &'_ [u8]| -> Vec<u8> {
        let zeros = std::iter::repeat_n(b'0', length - digits.len());
        digits.iter().copied().chain(zeros).collect()
    };
    let magnitude = whole(&in_a, &a).cmp(&whole(&in_b, &b)).then_with(|| padded(all_a).cmp(&padded(all_b)));
    if in_a.is_negative() { magnitude.reverse() } else { magnitude }
}

/// Numbers of which one is beyond any real precision: by their bytes, so that only those of one scale are equal.
fn compare_huge(a: Number<'_>, b: Number<'_>) -> Ordering {
    let bytes = |number: &Number<'_>| match number.unscaled {
        Unscaled::Short(value) => shortest(&value.to_be_bytes()).to_vec(),
        Unscaled::Long(bytes) => shortest(bytes).to_vec(),
    };
    let (in_a, in_b) = (bytes(&a), bytes(&b));
    let is_negative = |bytes: &[u8]| bytes.first().is_some_and(|byte| *byte >= 0x80);
    let lengths = in_a.len().cmp(&in_b.len());
    let lengths = if is_negative(&in_a) { lengths.reverse() } else { lengths };
    is_negative(&in_b)
        .cmp(&is_negative(&in_a))
        .then(lengths)
        .then_with(|| in_a.cmp(&in_b))
        .then_with(|| a.scale.cmp(&b.scale))
}

/// An integer of 64 bits beside a float, exactly: neither is rounded to the other's type.
fn compare_with_float(number: Number<'_>, float: f64) -> Ordering {
    const FRACTION_BITS: u32 = 52;
    const BIAS: u32 = 1023;
    let Unscaled::Short(integer) = number.unscaled else { return Ordering::Less };
    if float.is_nan() {
        return Ordering::Less;
    }
    let bits = float.to_bits();
    let exponent = u32::try_from(bits >> FRACTION_BITS & 0x7ff).unwrap_or_default();
    let fraction = bits & ((1 << FRACTION_BITS) - 1);
    // The magnitude is this times 2^(exponent - BIAS - FRACTION_BITS); of subnormals it is less than 1 in any case.
    let significand = u128::from(fraction | u64::from(exponent > 0) << FRACTION_BITS);
    let (whole, has_rest) = match exponent.checked_sub(BIAS + FRACTION_BITS) {
        // Beyond all integers of 64 bits.
        Some(shift) if shift > 12 => (u128::MAX, false),
        Some(shift) => (significand << shift, false),
        None => {
            let shift = BIAS + FRACTION_BITS - exponent;
            let whole = significand.checked_shr(shift).unwrap_or(0);
            (whole, whole.checked_shl(shift).unwrap_or(0) != significand)
        }
    };
    let of_magnitudes =
        integer.unsigned_abs().cmp(&whole).then(if has_rest { Ordering::Less } else { Ordering::Equal });
    let is_zero = whole == 0 && !has_rest;
    match (integer.signum(), float.is_sign_negative() && !is_zero) {
        (-1, true) => of_magnitudes.reverse(),
        (-1, false) => Ordering::Less,
        (0, true) | (1, true) => Ordering::Greater,
        _ => of_magnitudes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INT32: Meaning = Meaning::Integer { bit_width: 32, is_signed: true };
    const INT64: Meaning = Meaning::Integer { bit_width: 64, is_signed: true };
    const UINT64: Meaning = Meaning::Integer { bit_width: 64, is_signed: false };

    fn decimal(scale: i32) -> Meaning {
        Meaning::Decimal { precision: 38, scale }
    }

    /// Checks the order of two values, both ways.
    #[track_caller]
    fn check(a: (Meaning, Value<'_>), b: (Meaning, Value<'_>), expected: Ordering) {
        assert!(are_comparable(a.0, b.0) && are_comparable(b.0, a.0), "{a:?} {b:?}");
        assert_eq!(compare(item(a.0, a.1), item(b.0, b.1)), expected, "{a:?} {b:?}");
        assert_eq!(compare(item(b.0, b.1), item(a.0, a.1)), expected.reverse(), "{b:?} {a:?}");
    }

    use Ordering::{Equal, Greater, Less};

    #[test]
    fn integers_of_any_width() {
        check((INT32, Value::Int32(-7)), (INT64, Value::Int64(-7)), Equal);
        check((UINT64, Value::Int64(-1)), (INT64, Value::Int64(-1)), Greater);
        check(
            (UINT64, Value::Int64(-1)),
            (decimal(0), Value::Bytes(&[0, 255, 255, 255, 255, 255, 255, 255, 255])),
            Equal,
        );
        let narrow = Meaning::Integer { bit_width: 32, is_signed: false };
        check((narrow, Value::Int32(-1)), (INT64, Value::Int64(i64::from(u32::MAX))), Equal);
    }

    #[test]
    fn decimals_of_any_scale() {
        check((decimal(1), Value::Int32(15)), (decimal(3), Value::Bytes(&[0x05, 0xdc])), Equal);
        check((decimal(1), Value::Int32(-15)), (decimal(3), Value::Int64(-1501)), Greater);
        check((decimal(0), Value::Bytes(&[])), (decimal(9), Value::Bytes(&[0, 0])), Equal);
        check((INT64, Value::Int64(3)), (decimal(2), Value::Int32(300)), Equal);
        // What is beyond 128 bits when it gets the other's scale.
        let most = i128::MAX.to_be_bytes();
        for (value, expected) in [(1, Less), (-1, Less), (i64::MAX, Less)] {
            check((decimal(38), Value::Int64(value)), (decimal(0), Value::Bytes(&most)), expected);
        }
        check((decimal(30), Value::Bytes(&most)), (decimal(0), Value::Int64(170_141_183)), Greater);
        check((decimal(30), Value::Bytes(&most)), (decimal(0), Value::Int64(170_141_184)), Less);
        check((decimal(60), Value::Int64(0)), (decimal(0), Value::Int64(0)), Equal);
        check((decimal(60), Value::Int64(0)), (decimal(0), Value::Int64(1)), Less);
        // 2^136, and a tenth of 10 times that.
        let (mut long, mut ten_times) = ([0; 18], [0; 19]);
        (long[0], ten_times[1]) = (1, 10);
        check((decimal(3), Value::Bytes(&long)), (decimal(4), Value::Bytes(&ten_times)), Equal);
        ten_times[18] = 1;
        check((decimal(3), Value::Bytes(&long)), (decimal(4), Value::Bytes(&ten_times)), Less);
        check((decimal(3), Value::Bytes(&long)), (decimal(0), Value::Int32(-1)), Greater);
        let huge = [1; 600];
        check((decimal(3), Value::Bytes(&huge)), (decimal(3), Value::Bytes(&huge)), Equal);
        check((decimal(3), Value::Bytes(&huge)), (decimal(0), Value::Bytes(&long)), Greater);
    }

    #[test]
    fn integers_beside_floats_are_exact() {
        let double = |value: f64| (Meaning::Double, Value::Double(value));
        let two_53 = 9_007_199_254_740_992_i64;
        for (integer, float, expected) in [
            (0, 0.0, Equal),
            (0, -0.0, Equal),
            (0, -0.5, Greater),
            (0, f64::MIN_POSITIVE, Less),
            (0, 5e-324, Less),
            (3, 3.0, Equal),
            (3, 3.5, Less),
            (-3, -3.5, Greater),
            (-3, -3.0, Equal),
            (-3, 3.0, Less),
            (3, -3.0, Greater),
            (two_53 + 1, 9_007_199_254_740_992.0, Greater),
            (two_53, 9_007_199_254_740_992.0, Equal),
            (i64::MAX, 9_223_372_036_854_775_808.0, Less),
            (i64::MIN, -9_223_372_036_854_775_808.0, Equal),
            (i64::MAX, f64::INFINITY, Less),
            (i64::MIN, f64::NEG_INFINITY, Greater),
            (i64::MAX, f64::NAN, Less),
            (i64::MAX, 1e300, Less),
        ] {
            check((INT64, Value::Int64(integer)), double(float), expected);
        }
        check((UINT64, Value::Int64(-1)), double(18_446_744_073_709_551_616.0), Less);
        check((UINT64, Value::Int64(i64::MIN)), double(9_223_372_036_854_775_808.0), Equal);
        assert!(!are_comparable(decimal(1), Meaning::Double));
    }

    #[test]
    fn floats_are_numbers() {
        let float = |value: f32| (Meaning::Float, Value::Float(value));
        let double = |value: f64| (Meaning::Double, Value::Double(value));
        check(float(0.5), double(0.5), Equal);
        check(float(0.1), double(0.1), Greater);
        check(double(-0.0), double(0.0), Equal);
        check(double(f64::NAN), double(-f64::NAN), Equal);
        check(double(f64::NAN), double(f64::INFINITY), Greater);
        check((Meaning::Float16, Value::Bytes(&[0, 0x3c])), double(1.0), Equal);
    }

    #[test]
    fn times_of_any_unit() {
        let timestamp = |unit, is_adjusted_to_utc| Meaning::Timestamp { unit, is_adjusted_to_utc };
        let (millis, nanos) = (timestamp(TimeUnit::Millis, true), timestamp(TimeUnit::Nanos, false));
        check((millis, Value::Int64(-7)), (nanos, Value::Int64(-7_000_000)), Equal);
        check((millis, Value::Int64(-7)), (nanos, Value::Int64(-7_000_001)), Greater);
        check((millis, Value::Int64(i64::MAX)), (nanos, Value::Int64(i64::MAX)), Greater);
        let mut int96 = [0; 12];
        int96[..8].copy_from_slice(&1_000_000_001_i64.to_le_bytes());
        int96[8..].copy_from_slice(&2_440_589_i32.to_le_bytes());
        check((Meaning::Int96, Value::Bytes(&int96)), (nanos, Value::Int64(86_401_000_000_001)), Equal);
        let time = |unit| Meaning::Time { unit, is_adjusted_to_utc: true };
        check((time(TimeUnit::Millis), Value::Int32(5)), (time(TimeUnit::Micros), Value::Int64(5000)), Equal);
        assert!(!are_comparable(time(TimeUnit::Millis), millis) && !are_comparable(Meaning::Date, millis));
        assert!(!are_comparable(INT64, millis) && !are_comparable(INT32, Meaning::Date));
    }

    #[test]
    fn bytes_and_text() {
        check((Meaning::String, Value::Bytes(b"a")), (Meaning::Bytes, Value::Bytes(b"a")), Equal);
        check((Meaning::Json, Value::Bytes(b"a")), (Meaning::Enum, Value::Bytes(b"ab")), Less);
        let uuid = *b"\xab234567890123456";
        check((Meaning::Uuid, Value::Bytes(&uuid)), (Meaning::Bytes, Value::Bytes(&uuid)), Equal);
        let text = b"ab323334-3536-3738-3930-313233343536";
        check((Meaning::Uuid, Value::Bytes(&uuid)), (Meaning::String, Value::Bytes(text)), Equal);
        let capital = b"AB323334-3536-3738-3930-313233343536";
        check((Meaning::Uuid, Value::Bytes(&uuid)), (Meaning::String, Value::Bytes(capital)), Greater);
        assert!(!are_comparable(Meaning::String, INT64) && !are_comparable(Meaning::String, Meaning::Bson));
        assert!(
            !are_comparable(Meaning::Bytes, decimal(0)) && !are_comparable(Meaning::Bytes, Meaning::Int96)
        );
        assert!(are_comparable(Meaning::Null, INT64) && are_comparable(Meaning::Bson, Meaning::Bytes));
        assert!(!are_comparable(Meaning::Bytes, Meaning::Float16));
    }
}
