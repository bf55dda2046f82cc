//! Dates and times in ISO 8601, of the proleptic Gregorian calendar, for any number of days.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{integer, two_digits};
use crate::calendar::{DAY_SECONDS, TimeUnit, civil};

/// A day, counted from 1970-01-01: `2024-02-29`; years beyond 0000 to 9999 with a sign and at least six digits, as ISO 8601's
/// expanded form: `+010000-01-01`.
#[inline]
pub fn date(out: &mut Vec<u8>, days: i64) {
    let (year, month, day) = civil(days);
    // Neither is negative.
    let ([a, b], [c, d]) = (two_digits(month.unsigned_abs()), two_digits(day.unsigned_abs()));
    if let 0..=9999 = year {
        let ([e, f], [g, h]) = (two_digits(year.unsigned_abs() / 100), two_digits(year.unsigned_abs()));
        out.extend_from_slice(&[e, f, g, h, b'-', a, b, b'-', c, d]);
    } else {
        out.push(if year < 0 { b'-' } else { b'+' });
        let year = year.unsigned_abs();
        if year < 1_000_000 {
            [year / 10_000, year / 100, year].iter().for_each(|pair| out.extend(two_digits(*pair)));
        } else {
            integer(out, year);
        }
        out.extend_from_slice(&[b'-', a, b, b'-', c, d]);
    }
}

/// A time of day, with all digits of its unit: `03:04:05.678`. What is outside of a day is shown as it is: `25:00:00.000`,
/// `-00:00:01.000`.
pub fn time(out: &mut Vec<u8>, units: i64, unit: TimeUnit) {
    if units < 0 {
        out.push(b'-');
    }
    clock(out, units.unsigned_abs(), unit);
}

/// A time since 1970-01-01 00:00, with all digits of its unit: `2024-02-29T03:04:05.678`.
#[inline]
pub fn timestamp(out: &mut Vec<u8>, units: i64, unit: TimeUnit) {
    // Of a constant the divisions are multiplications.
    let (day, of_day) = match unit {
        TimeUnit::Millis => day_and_rest::<{ TimeUnit::Millis.per_day() }>(units),
        TimeUnit::Micros => day_and_rest::<{ TimeUnit::Micros.per_day() }>(units),
        TimeUnit::Nanos => day_and_rest::<{ TimeUnit::Nanos.per_day() }>(units),
    };
    date(out, day);
    out.push(b'T');
    clock(out, of_day, unit);
}

#[inline]
fn day_and_rest<const PER_DAY: i64>(units: i64) -> (i64, u64) {
    (units.div_euclid(PER_DAY), units.rem_euclid(PER_DAY).unsigned_abs())
}

/// Nanoseconds since 1970-01-01 00:00, as many as INT96 has: as [`timestamp`]. Days beyond 64 bits are taken as the last.
pub fn timestamp_nanos(out: &mut Vec<u8>, nanos: i128) {
    let per_day = i128::from(TimeUnit::Nanos.per_day());
    date(out, i64::try_from(nanos.div_euclid(per_day)).unwrap_or(i64::MAX));
    out.push(b'T');
    clock(out, u64::try_from(nanos.rem_euclid(per_day)).unwrap_or(0), TimeUnit::Nanos);
}

/// `text` of a time or timestamp without the zeros at the end of its fraction: for people.
pub fn without_zeros(text: &str) -> String {
    let (digits, zone) = match text.strip_suffix('Z') {
        Some(digits) => (digits, "Z"),
        None => (text, ""),
    };
    match digits.rsplit_once('.') {
        Some((seconds, fraction)) => {
            let fraction = fraction.trim_end_matches('0');
            let point = if fraction.is_empty() { "" } else { "." };
            format!("{seconds}{point}{fraction}{zone}")
        }
        None => text.to_string(),
    }
}

/// Units since midnight.
#[inline]
fn clock(out: &mut Vec<u8>, units: u64, unit: TimeUnit) {
    let (seconds, fraction) = match unit {
        TimeUnit::Millis => (units / 1_000, units % 1_000),
        TimeUnit::Micros => (units / 1_000_000, units % 1_000_000),
        TimeUnit::Nanos => (units / 1_000_000_000, units % 1_000_000_000),
    };
    let hours = seconds / 3600;
    if hours >= 100 {
        integer(out, hours / 100);
    }
    let [[a, b], [c, d], [e, f]] = [hours, seconds / 60 % 60, seconds % 60].map(two_digits);
    let mut text = [a, b, b':', c, d, b':', e, f, b'.', 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let length = 9 + match unit {
        TimeUnit::Millis => {
            text[9] = two_digits(fraction / 100)[1];
            text[10..12].copy_from_slice(&two_digits(fraction));
            3
        }
        TimeUnit::Micros => {
            put(&mut text[9..15], [fraction / 10_000, fraction / 100, fraction]);
            6
        }
        TimeUnit::Nanos => {
            text[9] = two_digits(fraction / 100_000_000)[1];
            let pairs = [fraction / 1_000_000, fraction / 10_000, fraction / 100, fraction];
            put(&mut text[10..18], pairs);
            9
        }
    };
    // All of it, for its length is known.
    out.extend_from_slice(&text);
    out.truncate(out.len() - text.len() + length);
}

#[inline]
fn put<const N: usize>(text: &mut [u8], pairs: [u64; N]) {
    for (to, pair) in text.chunks_exact_mut(2).zip(pairs) {
        to.copy_from_slice(&two_digits(pair));
    }
}

const _: () = assert!(DAY_SECONDS * 1_000 == TimeUnit::Millis.per_day());

#[cfg(test)]
mod tests {
    use super::super::printed;
    use super::*;

    #[test]
    fn dates() {
        for (days, wanted) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (19_782, "2024-02-29"),
            (11_016, "2000-02-29"),
            (-25_508, "1900-03-01"),
            (-719_528, "0000-01-01"),
            (-719_529, "-000001-12-31"),
            (2_932_896, "9999-12-31"),
            (2_932_897, "+010000-01-01"),
            (364_522_971, "+999999-12-31"),
            (364_522_972, "+1000000-01-01"),
            (i64::from(i32::MAX), "+5881580-07-11"),
            (i64::from(i32::MIN), "-5877641-06-23"),
        ] {
            assert_eq!(printed(|out| date(out, days)), wanted);
        }
    }

    #[test]
    fn times_for_people() {
        assert_eq!(without_zeros("2024-02-29T03:04:05.678000Z"), "2024-02-29T03:04:05.678Z");
        assert_eq!(without_zeros("03:04:00.000"), "03:04:00");
        assert_eq!(without_zeros("0x00"), "0x00");
    }

    #[test]
    fn times() {
        use TimeUnit::{Micros, Millis, Nanos};
        for (units, unit, wanted) in [
            (11_045_678, Millis, "03:04:05.678"),
            (45_234_123_456, Micros, "12:33:54.123456"),
            (90_000_000_000, Micros, "25:00:00.000000"),
            (i64::MIN, Micros, "-2562047788:00:54.775808"),
            (-1_000_000_001, Nanos, "-00:00:01.000000001"),
            (86_399_987_654_321, Nanos, "23:59:59.987654321"),
            (360_000_000, Millis, "100:00:00.000"),
            (362_439_042, Millis, "100:40:39.042"),
        ] {
            assert_eq!(printed(|out| time(out, units, unit)), wanted);
        }
    }

    #[test]
    fn timestamps() {
        use TimeUnit::{Micros, Millis, Nanos};
        for (units, unit, wanted) in [
            (-1, Millis, "1969-12-31T23:59:59.999"),
            (-1, Micros, "1969-12-31T23:59:59.999999"),
            (1_709_175_845_000_001, Micros, "2024-02-29T03:04:05.000001"),
            (i64::MIN, Nanos, "1677-09-21T00:12:43.145224192"),
            (i64::MAX, Millis, "+292278994-08-17T07:12:55.807"),
            (i64::MAX, Micros, "+294247-01-10T04:00:54.775807"),
        ] {
            assert_eq!(printed(|out| timestamp(out, units, unit)), wanted);
            let nanos = i128::from(units) * i128::from(Nanos.per_second() / unit.per_second());
            let digits = wanted.len() + 9 - unit.digits();
            let padded = format!("{wanted:0<digits$}");
            assert_eq!(printed(|out| timestamp_nanos(out, nanos)), padded);
        }
    }
}
