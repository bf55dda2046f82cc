//! Values as they are read from text: the one place for digits, dates, times, bytes and UUIDs, as [`print`](crate::print) is for the way
//! back. `None` means that the text is not such a value: nothing is rounded, truncated or guessed.

use alloc::vec::Vec;

use crate::calendar::{self, TimeUnit};

/// A 64-bit integer: digits, optionally after a sign.
#[inline]
pub fn integer(text: &[u8]) -> Option<i64> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() {
        return None;
    }
    // 18 digits are no overflow.
    if digits.len() > 18 {
        return core::str::from_utf8(text).ok()?.parse().ok();
    }
    let mut value = 0_i64;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value * 10 + i64::from(digit);
    }
    Some(if is_negative { -value } else { value })
}

/// A binary64: a decimal fraction, optionally with an exponent, and what else Rust reads (`inf`, `NaN`, `+1`), except numbers
/// that are too large.
#[inline]
pub fn double(text: &[u8]) -> Option<f64> {
    let value: f64 = core::str::from_utf8(text).ok()?.parse().ok()?;
    (!value.is_infinite() || is_infinity(text)).then_some(value)
}

/// A binary32.
#[inline]
pub fn float(text: &[u8]) -> Option<f32> {
    let value: f32 = core::str::from_utf8(text).ok()?.parse().ok()?;
    (!value.is_infinite() || is_infinity(text)).then_some(value)
}

/// Whether a text that parsed as infinite means infinity, rather than a number that is too large.
#[cold]
fn is_infinity(text: &[u8]) -> bool {
    !text.iter().any(u8::is_ascii_digit)
}

/// `true` or `false`, in any case.
pub fn boolean(text: &[u8]) -> Option<bool> {
    if text.eq_ignore_ascii_case(b"true") {
        Some(true)
    } else if text.eq_ignore_ascii_case(b"false") {
        Some(false)
    } else {
        None
    }
}

/// A number that consists only of digits.
fn digits(text: &[u8]) -> Option<i64> {
    let all = !text.is_empty() && text.len() <= 18 && text.iter().all(u8::is_ascii_digit);
    all.then(|| text.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0')))
}

/// The day of `2024-02-29`, counted from 1970-01-01.
pub fn date(text: &[u8]) -> Option<i32> {
    i32::try_from(day(text)?).ok()
}

/// The same. Years beyond 0000 to 9999 have a sign and at least six digits, as they are printed: `+010000-01-01`.
fn day(text: &[u8]) -> Option<i64> {
    let [year @ .., b'-', m1, m2, b'-', d1, d2] = text else { return None };
    let (month, day) = (digits(&[*m1, *m2])?, digits(&[*d1, *d2])?);
    match year {
        [_, _, _, _] => calendar::days(digits(year)?, month, day),
        [sign @ (b'+' | b'-'), year @ ..] if (6..=9).contains(&year.len()) => {
            let year = if *sign == b'-' { -digits(year)? } else { digits(year)? };
            calendar::days_of_any_year(year, month, day)
        }
        _ => None,
    }
}

/// A point in time as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamp {
    /// Since 1970-01-01 00:00, by the clock that the text shows.
    pub seconds: i64,
    /// Of the second.
    pub nanos: i64,
    /// How far that clock is ahead of UTC, in minutes, if the text says so.
    pub offset: Option<i64>,
}

/// ISO 8601's calendar date and time: `2024-02-29T12:34:56.789Z`. A space may replace the `T`, the seconds and the zone
/// are optional, and offsets are like `+01:00`. A date alone is its midnight.
pub fn timestamp(text: &[u8]) -> Option<Timestamp> {
    let is_expanded = matches!(text.first(), Some(b'+' | b'-'));
    let day_bytes = match is_expanded {
        true => text.iter().position(|byte| matches!(byte, b'T' | b't' | b' ')).unwrap_or(text.len()),
        false => 10,
    };
    let (written, rest) = text.split_at_checked(day_bytes)?;
    let days = day(written)?;
    let Some((b'T' | b't' | b' ', rest)) = rest.split_first() else {
        return rest.is_empty().then_some(Timestamp { seconds: days * 86_400, nanos: 0, offset: None });
    };
    let end = rest.iter().position(|byte| matches!(byte, b'Z' | b'z' | b'+' | b'-')).unwrap_or(rest.len());
    let (clock, zone) = rest.split_at(end);
    let offset = match zone {
        [] => None,
        [b'Z' | b'z'] => Some(0),
        [sign, h1, h2] => Some(offset(*sign, &[*h1, *h2], b"00")?),
        [sign, h1, h2, m1, m2] | [sign, h1, h2, b':', m1, m2] => {
            Some(offset(*sign, &[*h1, *h2], &[*m1, *m2])?)
        }
        _ => return None,
    };
    let nanos = time(clock)?;
    Some(Timestamp { seconds: days * 86_400 + nanos / NANOS, nanos: nanos % NANOS, offset })
}

/// Seconds since 1970 of a point in time as people write it: in ISO 8601 (`2024-02-29T12:34:56+01:00`, in UTC if it has no offset; a date
/// alone is its midnight), or the number of seconds. A fraction is cut off.
///
/// ```
/// use marquetry_base::parse::unix_seconds;
///
/// assert_eq!(unix_seconds("1970-01-02 00:00:01"), Some(86_401));
/// assert_eq!(unix_seconds("1970-01-02T01:00:00.5+01:00"), Some(86_400));
/// assert_eq!(unix_seconds("-5"), Some(-5));
/// assert_eq!(unix_seconds("soon"), None);
/// ```
pub fn unix_seconds(text: &str) -> Option<i64> {
    let text = text.trim();
    if let Ok(seconds) = text.parse() {
        return Some(seconds);
    }
    let time = timestamp(text.as_bytes())?;
    Some(time.seconds - 60 * time.offset.unwrap_or(0))
}

fn offset(sign: u8, hours: &[u8], minutes: &[u8]) -> Option<i64> {
    let (hours, minutes) = (digits(hours)?, digits(minutes)?);
    let all = hours * 60 + minutes;
    (hours < 24 && minutes < 60).then_some(if sign == b'-' { -all } else { all })
}

const NANOS: i64 = 1_000_000_000;

/// The nanoseconds since midnight of `12:34`, `12:34:56` or `12:34:56.789`.
pub fn time(text: &[u8]) -> Option<i64> {
    let [h1, h2, b':', m1, m2, rest @ ..] = text else { return None };
    let (hours, minutes) = (digits(&[*h1, *h2])?, digits(&[*m1, *m2])?);
    let (seconds, nanos) = match rest {
        [] => (0, 0),
        [b':', s1, s2] => (digits(&[*s1, *s2])?, 0),
        [b':', s1, s2, b'.' | b',', fraction @ ..] if (1..=9).contains(&fraction.len()) => {
            let scale = 10_i64.pow(9 - u32::try_from(fraction.len()).ok()?);
            (digits(&[*s1, *s2])?, digits(fraction)? * scale)
        }
        _ => return None,
    };
    let is_time = hours < 24 && minutes < 60 && seconds < 60;
    is_time.then_some(((hours * 60 + minutes) * 60 + seconds) * NANOS + nanos)
}

/// The same in a unit; `None` if that loses digits. A `Z` may follow the time in UTC.
pub fn time_in(text: &[u8], unit: TimeUnit, is_utc: bool) -> Option<i64> {
    let text = text.strip_suffix(b"Z").filter(|_| is_utc).unwrap_or(text);
    let (nanos, nanos_of_unit) = (time(text)?, NANOS / unit.per_second());
    (nanos % nanos_of_unit == 0).then_some(nanos / nanos_of_unit)
}

impl Timestamp {
    /// The instant, or the local time if there is no zone, in a unit; `None` if that loses digits or is out of range.
    pub fn in_unit(self, unit: TimeUnit) -> Option<i64> {
        let seconds = self.seconds - self.offset.unwrap_or(0) * 60;
        let nanos_of_unit = NANOS / unit.per_second();
        if self.nanos % nanos_of_unit != 0 {
            return None;
        }
        // Of the earliest time in a unit, the seconds alone are out of range.
        let units =
            i128::from(seconds) * i128::from(unit.per_second()) + i128::from(self.nanos / nanos_of_unit);
        i64::try_from(units).ok()
    }
}

/// An unsigned integer of so many bits.
pub fn unsigned(text: &[u8], bits: u8) -> Option<u64> {
    let digits = text.strip_prefix(b"+").unwrap_or(text);
    let is_digits = digits.first().is_some_and(u8::is_ascii_digit);
    let value: u64 = is_digits.then(|| core::str::from_utf8(digits).ok()?.parse().ok()).flatten()?;
    value.checked_shr(bits.into()).unwrap_or(0).eq(&0).then_some(value)
}

/// An interval as it is printed, `P1M2DT3.004S`; each part may be missing. Months, days and milliseconds, as the format
/// holds them.
pub fn interval(text: &[u8]) -> Option<[u8; 12]> {
    let mut parts = [0_u32; 3];
    let rest = text.strip_prefix(b"P")?;
    let (date, clock) = match rest.iter().position(|byte| *byte == b'T') {
        Some(at) => (&rest[..at], Some(&rest[at + 1..])),
        None => (rest, None),
    };
    let mut has_parts = false;
    let mut number = |rest: &mut &[u8], unit: u8| -> Option<Option<u64>> {
        let end = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if rest.get(end) != Some(&unit) || end == 0 {
            return Some(None);
        }
        let value = u64::try_from(digits(&rest[..end])?).ok()?;
        *rest = &rest[end + 1..];
        has_parts = true;
        Some(Some(value))
    };
    let mut rest = date;
    let years = number(&mut rest, b'Y')?.unwrap_or(0);
    let months = number(&mut rest, b'M')?.unwrap_or(0);
    parts[0] = u32::try_from(years.checked_mul(12)?.checked_add(months)?).ok()?;
    let weeks = number(&mut rest, b'W')?.unwrap_or(0);
    let days = number(&mut rest, b'D')?.unwrap_or(0);
    parts[1] = u32::try_from(weeks.checked_mul(7)?.checked_add(days)?).ok()?;
    rest.is_empty().then_some(())?;
    if let Some(mut rest) = clock {
        (!rest.is_empty()).then_some(())?;
        let hours = number(&mut rest, b'H')?.unwrap_or(0);
        let minutes = number(&mut rest, b'M')?.unwrap_or(0);
        let whole = hours.checked_mul(60)?.checked_add(minutes)?.checked_mul(60_000)?;
        let millis = match rest.strip_suffix(b"S") {
            Some(seconds) => u64::try_from(decimal(seconds, 18, 3).filter(|it| *it >= 0)?).ok()?,
            None => rest.is_empty().then_some(0)?,
        };
        has_parts |= !rest.is_empty();
        parts[2] = u32::try_from(whole.checked_add(millis)?).ok()?;
    }
    let mut bytes = [0; 12];
    for (place, part) in bytes.chunks_exact_mut(4).zip(parts) {
        place.copy_from_slice(&part.to_le_bytes());
    }
    has_parts.then_some(bytes)
}

/// A UUID: 32 hexadecimal digits, with hyphens in the usual places.
pub fn uuid(text: &[u8]) -> Option<[u8; 16]> {
    let mut hex = [0; 32];
    let mut at = 0;
    for (place, byte) in text.iter().enumerate() {
        if matches!(place, 8 | 13 | 18 | 23) && text.len() == 36 {
            if *byte != b'-' {
                return None;
            }
        } else {
            *hex.get_mut(at)? = *byte;
            at += 1;
        }
    }
    let mut uuid = [0; 16];
    (at == 32).then_some(())?;
    for (byte, pair) in uuid.iter_mut().zip(hex.chunks(2)) {
        *byte = hex_byte(pair)?;
    }
    Some(uuid)
}

/// `0x` and pairs of hexadecimal digits, as `rows` prints bytes, appended to `out`.
pub fn blob(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let hex_digits = text.strip_prefix(b"0x").or(text.strip_prefix(b"0X"))?;
    hex(hex_digits, out)
}

/// Pairs of hexadecimal digits, appended to `out`.
pub fn hex(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    if !text.len().is_multiple_of(2) {
        return None;
    }
    text.chunks(2).try_for_each(|pair| hex_byte(pair).map(|byte| out.push(byte)))
}

/// The byte of two hexadecimal digits.
pub fn hex_byte(pair: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let [high, low] = pair else { return None };
    Some(digit(*high)? << 4 | digit(*low)?)
}

/// The unscaled value of a decimal number with at most `precision` digits, `scale` of them after the point.
pub fn decimal(text: &[u8], precision: u32, scale: u32) -> Option<i128> {
    let (is_negative, rest) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let (mut value, mut behind, mut has_digit) = (0_i128, None, false);
    for byte in rest {
        match (byte, &mut behind) {
            (b'.', None) => behind = Some(0),
            (b'0'..=b'9', behind) => {
                has_digit = true;
                let digit = i128::from(byte - b'0');
                if let Some(behind) = behind {
                    if *behind == scale {
                        // Only zeros may be cut off.
                        (digit == 0).then_some(())?;
                        continue;
                    }
                    *behind += 1;
                }
                value = value.checked_mul(10)?.checked_add(digit)?;
            }
            _ => return None,
        }
    }
    let value = value.checked_mul(10_i128.checked_pow(scale - behind.unwrap_or(0))?)?;
    let fits = has_digit && value < 10_i128.checked_pow(precision)?;
    fits.then_some(if is_negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers() {
        for (text, value) in [("0", 0), ("-7", -7), ("+7", 7), ("007", 7), ("9223372036854775807", i64::MAX)]
        {
            assert_eq!(integer(text.as_bytes()), Some(value), "{text}");
        }
        assert_eq!(integer(b"-9223372036854775808"), Some(i64::MIN));
        for text in ["", "-", "+", "1.5", "9223372036854775808", "1a", " 1", "1_000", "--1"] {
            assert_eq!(integer(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn times() {
        assert_eq!(date(b"2024-02-29"), Some(19_782));
        for text in ["2023-02-29", "2024-2-29", "24-02-29", "2024-02-29 ", "2024/02/29", "+024-02-29"] {
            assert_eq!(date(text.as_bytes()), None, "{text}");
        }
        assert_eq!(date(b"+010000-01-01"), Some(2_932_897));
        assert_eq!(date(b"-000001-12-31"), Some(-719_529));
        for text in ["+10000-01-01", "+010000-02-30", "010000-01-01", "+9000000000-01-01"] {
            assert_eq!(date(text.as_bytes()), None, "{text}");
        }
        let micros = |text: &str| timestamp(text.as_bytes()).and_then(|it| it.in_unit(TimeUnit::Micros));
        assert_eq!(micros("1970-01-02"), Some(86_400_000_000));
        assert_eq!(micros("1970-01-01 00:01"), Some(60_000_000));
        assert_eq!(micros("+052951-07-27T10:00:00.000000Z"), Some(1_608_822_900_000_000_000));
        assert_eq!(micros("-000001-12-31"), Some(-719_529 * 86_400_000_000));
        assert_eq!(micros("1970-01-01T00:00:01.5"), Some(1_500_000));
        assert_eq!(micros("1970-01-01T00:00:00.000001Z"), Some(1));
        assert_eq!(micros("1970-01-01T01:00:00+01:00"), Some(0));
        assert_eq!(micros("1969-12-31T23:30:00-0030"), Some(0));
        assert_eq!(micros("1969-12-31T23:59:59.9"), Some(-100_000));
        assert_eq!(micros("1970-01-01T00:00:00.0000001"), None, "a digit would be lost");
        for text in [
            "1970-01-01T24:00:00",
            "1970-01-01T",
            "1970-01-01T1:00",
            "1970-01-01T00:00:60",
            "1970-01-01T00:00:00+1",
            "1970-01-01T00:00:00 UTC",
            "1970-01-01x00:00:00",
        ] {
            assert_eq!(timestamp(text.as_bytes()), None, "{text}");
        }
        assert_eq!(timestamp(b"1970-01-01T00:00:00Z").unwrap().offset, Some(0));
        assert_eq!(timestamp(b"2262-04-12 00:00:00").unwrap().in_unit(TimeUnit::Nanos), None);
        let nanos = |text: &[u8]| timestamp(text).and_then(|it| it.in_unit(TimeUnit::Nanos));
        assert_eq!(nanos(b"1677-09-21T00:12:43.145224192Z"), Some(i64::MIN));
        assert_eq!(nanos(b"1677-09-21T00:12:43.145224191Z"), None);
        assert_eq!(nanos(b"2262-04-11T23:47:16.854775807Z"), Some(i64::MAX));
        assert_eq!(nanos(b"2262-04-11T23:47:16.854775808Z"), None);
    }

    #[test]
    fn intervals_and_unsigned_integers() {
        let parts = |text: &[u8]| {
            let bytes = interval(text)?;
            Some([0, 4, 8].map(|at| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())))
        };
        assert_eq!(parts(b"P1M2DT3.004S"), Some([1, 2, 3004]));
        assert_eq!(parts(b"P0M0DT4294967.295S"), Some([0, 0, u32::MAX]));
        assert_eq!(parts(b"P1Y2M1W1D"), Some([14, 8, 0]));
        assert_eq!(parts(b"PT1H2M0.5S"), Some([0, 0, 3_720_500]));
        for text in ["", "P", "PT", "P1", "1M", "P-1M", "PT-1S", "PT1.0001S", "P1D2M", "P4294967296D", "P1MT"]
        {
            assert_eq!(parts(text.as_bytes()), None, "{text}");
        }
        assert_eq!(unsigned(b"255", 8), Some(255));
        assert_eq!(unsigned(b"256", 8), None);
        assert_eq!(unsigned(b"18446744073709551615", 64), Some(u64::MAX));
        for text in ["-1", "", "+", "18446744073709551616", "1.0", "++1"] {
            assert_eq!(unsigned(text.as_bytes(), 64), None, "{text}");
        }
        assert_eq!(time_in(b"00:00:01.5", TimeUnit::Millis, false), Some(1500));
        assert_eq!(time_in(b"00:00:00.0001", TimeUnit::Millis, false), None, "a digit would be lost");
        assert_eq!(time_in(b"00:00:01Z", TimeUnit::Micros, true), Some(1_000_000));
        assert_eq!(time_in(b"00:00:01Z", TimeUnit::Micros, false), None);
    }

    #[test]
    fn bytes_and_decimals() {
        assert_eq!(uuid(b"00112233-4455-6677-8899-aabbccddeeff").unwrap()[15], 0xff);
        assert!(uuid(b"00112233445566778899aabbccddeeff").is_some());
        assert!(uuid(b"00112233-4455-6677-8899-aabbccddeef").is_none());
        assert!(uuid(b"0011223344556-67788-99aa-bbccddeeff-").is_none());
        let mut out = Vec::new();
        assert!(blob(b"0x00fF", &mut out).is_some() && out == [0, 255]);
        assert!(blob(b"00ff", &mut out).is_none() && blob(b"0x0", &mut out).is_none());
        assert_eq!(decimal(b"12.50", 6, 2), Some(1250));
        assert_eq!(decimal(b"-12", 6, 2), Some(-1200));
        assert_eq!(decimal(b"12.500", 6, 2), Some(1250));
        for text in ["12.505", "12345", "", ".", "1e5", "1.2.3"] {
            assert_eq!(decimal(text.as_bytes(), 6, 2), None, "{text}");
        }
    }
}
