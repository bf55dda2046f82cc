//! Dates and times in ISO 8601, of the proleptic Gregorian calendar, for any number of days.

use std::io::Write;

use marquetry_base::calendar::civil;

use crate::json::two_digits;

/// A day, counted from 1970-01-01: `2024-02-29`; years beyond 0000 to 9999 with a sign and at least six digits, as ISO 8601's
/// expanded form: `+010000-01-01`.
pub(crate) fn date(out: &mut Vec<u8>, days: i64) {
    let (year, month, day) = civil(days);
    // Neither is negative.
    let [month, day] = [month, day].map(|part| two_digits(part.unsigned_abs()));
    if let 0..=9999 = year {
        let ([a, b], [c, d]) = (two_digits(year.unsigned_abs() / 100), two_digits(year.unsigned_abs()));
        out.extend_from_slice(&[a, b, c, d, b'-', month[0], month[1], b'-', day[0], day[1]]);
    } else {
        // Writing to memory does not fail.
        let _ = write!(out, "{}{:06}", if year < 0 { '-' } else { '+' }, year.unsigned_abs());
        out.extend_from_slice(&[b'-', month[0], month[1], b'-', day[0], day[1]]);
    }
}

/// A time of day: `03:04:05.678`. What is outside of a day is shown as it is: `25:00:00.000`, `-00:00:01.000`.
pub(crate) fn time(out: &mut Vec<u8>, units: i64, per_second: i64) {
    if units < 0 {
        out.push(b'-');
    }
    let per_second = per_second.unsigned_abs().max(1);
    clock(out, units.unsigned_abs() / per_second, units.unsigned_abs() % per_second, per_second);
}

/// A time since 1970: `2024-02-29T03:04:05.678`.
pub(crate) fn timestamp(out: &mut Vec<u8>, units: i128, per_second: i64) {
    let (day, of_day) = match (i64::try_from(units), per_second.max(1).checked_mul(86_400)) {
        (Ok(units), Some(per_day)) => (units.div_euclid(per_day), units.rem_euclid(per_day).unsigned_abs()),
        _ => {
            let per_day = i128::from(per_second.max(1)) * 86_400;
            // A day of 86,400 s or more has at least as many units: the quotient of any time of 96 bits is a day that fits.
            let day = i64::try_from(units.div_euclid(per_day)).unwrap_or(i64::MAX);
            (day, u64::try_from(units.rem_euclid(per_day)).unwrap_or(0))
        }
    };
    let per_second = per_second.unsigned_abs().max(1);
    date(out, day);
    out.push(b'T');
    clock(out, of_day / per_second, of_day % per_second, per_second);
}

/// `text` of a time or timestamp without the zeros at the end of its fraction: for people.
pub(crate) fn without_zeros(text: &str) -> String {
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

fn clock(out: &mut Vec<u8>, seconds: u64, fraction: u64, per_second: u64) {
    let hours = seconds / 3600;
    if hours < 100 {
        out.extend_from_slice(&two_digits(hours));
    } else {
        // Writing to memory does not fail.
        let _ = write!(out, "{hours}");
    }
    let [minutes, seconds] = [seconds / 60 % 60, seconds % 60].map(two_digits);
    out.extend_from_slice(&[b':', minutes[0], minutes[1], b':', seconds[0], seconds[1], b'.']);
    let digits = match per_second {
        1_000 => 3,
        1_000_000 => 6,
        _ => 9,
    };
    let mut text = [b'0'; 9];
    let mut rest = fraction;
    for digit in text[..digits].iter_mut().rev() {
        *digit = two_digits(rest % 10)[1];
        rest /= 10;
    }
    out.extend_from_slice(&text);
    out.truncate(out.len() - text.len() + digits);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

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
            (2_932_897, "+010000-01-01"),
            (i64::from(i32::MAX), "+5881580-07-11"),
            (i64::from(i32::MIN), "-5877641-06-23"),
        ] {
            assert_eq!(text(|out| date(out, days)), wanted);
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
        assert_eq!(text(|out| time(out, 11_045_678, 1000)), "03:04:05.678");
        assert_eq!(text(|out| time(out, 90_000_000_000, 1_000_000)), "25:00:00.000000");
        assert_eq!(text(|out| time(out, i64::MIN, 1_000_000)), "-2562047788:00:54.775808");
        assert_eq!(text(|out| time(out, -1_000_000_001, 1_000_000_000)), "-00:00:01.000000001");
        assert_eq!(text(|out| timestamp(out, -1, 1000)), "1969-12-31T23:59:59.999");
        assert_eq!(
            text(|out| timestamp(out, 1_709_175_845_000_001, 1_000_000)),
            "2024-02-29T03:04:05.000001"
        );
        assert_eq!(
            text(|out| timestamp(out, i128::from(i64::MIN), 1_000_000_000)),
            "1677-09-21T00:12:43.145224192"
        );
        assert_eq!(text(|out| timestamp(out, i128::from(i64::MAX), 1000)), "+292278994-08-17T07:12:55.807");
    }
}
