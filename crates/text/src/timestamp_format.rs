//! Dates and timestamps in other forms than ISO 8601's, described as `strptime` has it.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use marquetry_base::calendar::{self, TimeUnit};
use marquetry_base::{Error, Result, print};

/// How dates and timestamps are written: `%d.%m.%Y %H:%M:%S`.
///
/// | | |
/// |---|---|
/// | `%Y`, `%y` | the year; its last two digits (69 to 99 are 1969 to 1999, others 2000 to 2068) |
/// | `%m`, `%b`, `%B` | the month; its English name, short or long, in any case |
/// | `%d`, `%e` | the day of the month |
/// | `%H`, `%I`, `%p` | the hour; one of twelve, and `AM` or `PM` |
/// | `%M`, `%S`, `%f` | the minute, the second, up to nine digits of its fraction |
/// | `%z`, `%Z` | `Z`, `+01:00`, `+0100`, `+01`; `UTC`, `GMT`, `Z` |
/// | `%a`, `%A` | the English name of the weekday, which is not checked |
/// | `%s` | seconds since 1970, instead of all others |
/// | `%F`, `%D`, `%T`, `%R` | `%Y-%m-%d`, `%m/%d/%y`, `%H:%M:%S`, `%H:%M` |
/// | `%%`, a space | a percent sign; spaces, at least one |
///
/// Numbers may lack leading zeros. Everything else is written as it is. Without an hour it is a date.
///
/// ```
/// use marquetry_text::TimestampFormat;
///
/// let format: TimestampFormat = "%d.%m.%Y %H:%M".parse()?;
/// assert_eq!(format.to_string(), "%d.%m.%Y %H:%M");
/// assert!("%d.%m.".parse::<TimestampFormat>().is_err(), "no year");
/// # Ok::<(), marquetry_base::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimestampFormat {
    text: String,
    items: Vec<Item>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Item {
    Byte(u8),
    Spaces,
    Year,
    ShortYear,
    Month,
    MonthName,
    Day,
    Hour,
    Hour12,
    HalfDay,
    Minute,
    Second,
    Fraction,
    Offset,
    Zone,
    Weekday,
    Epoch,
}

impl FromStr for TimestampFormat {
    type Err = Error;

    /// # Errors
    ///
    /// `Misuse` for the option `timestamp_format`: a letter that means nothing, or no day.
    fn from_str(text: &str) -> Result<TimestampFormat> {
        let wrong = |what: String| Error::option("timestamp_format", what);
        let mut items = Vec::new();
        let mut bytes = text.bytes();
        while let Some(byte) = bytes.next() {
            let several: &[Item] = match byte {
                b' ' => &[Item::Spaces],
                b'%' => match bytes.next() {
                    Some(b'Y') => &[Item::Year],
                    Some(b'y') => &[Item::ShortYear],
                    Some(b'm') => &[Item::Month],
                    Some(b'b' | b'B' | b'h') => &[Item::MonthName],
                    Some(b'd' | b'e') => &[Item::Day],
                    Some(b'H') => &[Item::Hour],
                    Some(b'I') => &[Item::Hour12],
                    Some(b'p' | b'P') => &[Item::HalfDay],
                    Some(b'M') => &[Item::Minute],
                    Some(b'S') => &[Item::Second],
                    Some(b'f') => &[Item::Fraction],
                    Some(b'z') => &[Item::Offset],
                    Some(b'Z') => &[Item::Zone],
                    Some(b'a' | b'A') => &[Item::Weekday],
                    Some(b's') => &[Item::Epoch],
                    Some(b'F') => &[Item::Year, Item::Byte(b'-'), Item::Month, Item::Byte(b'-'), Item::Day],
                    Some(b'D') => {
                        &[Item::Month, Item::Byte(b'/'), Item::Day, Item::Byte(b'/'), Item::ShortYear]
                    }
                    Some(b'T') => {
                        &[Item::Hour, Item::Byte(b':'), Item::Minute, Item::Byte(b':'), Item::Second]
                    }
                    Some(b'R') => &[Item::Hour, Item::Byte(b':'), Item::Minute],
                    Some(b'%') => &[Item::Byte(b'%')],
                    Some(other) => {
                        let letter = char::from(other);
                        return Err(wrong(format!(
                            "%{letter} is not known; known are %Y %y %m %b %B %d %e %H %I %p %M %S %f %z %Z %a %A %s %F %D %T %R and %%"
                        )));
                    }
                    None => return Err(wrong("a letter is missing after the last %".to_string())),
                },
                other => &[Item::Byte(other)],
            };
            items.extend_from_slice(several);
        }
        let has = |wanted: &[Item]| items.iter().any(|item| wanted.contains(item));
        let has_day =
            has(&[Item::Year, Item::ShortYear]) && has(&[Item::Month, Item::MonthName]) && has(&[Item::Day]);
        if !has_day && !has(&[Item::Epoch]) {
            let what = "a year, a month and a day are needed, such as %Y, %m and %d; or %s";
            return Err(wrong(what.to_string()));
        }
        if has(&[Item::Hour12]) && !has(&[Item::HalfDay]) {
            return Err(wrong("%I needs %p, which says the half of the day".to_string()));
        }
        Ok(TimestampFormat { text: text.to_string(), items })
    }
}

impl fmt::Display for TimestampFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What a text says, as far as it was read.
#[derive(Default)]
struct Parts {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    is_afternoon: Option<bool>,
    minute: i64,
    second: i64,
    nanos: i64,
    /// Minutes ahead of UTC.
    offset: Option<i64>,
}

impl TimestampFormat {
    /// Writes what a text says as ISO 8601 has it. `None` if it does not have this form.
    pub(crate) fn rewrite(&self, text: &[u8], out: &mut Vec<u8>) -> Option<()> {
        let mut parts = Parts::default();
        let (mut rest, mut epoch) = (text, None);
        for item in &self.items {
            match item {
                Item::Byte(byte) => rest = rest.strip_prefix(core::slice::from_ref(byte))?,
                Item::Spaces => {
                    let spaces = rest.iter().take_while(|byte| **byte == b' ').count();
                    rest = rest.get(spaces..).filter(|_| spaces > 0)?;
                }
                Item::Year => parts.year = number(&mut rest, 4)?,
                Item::ShortYear => {
                    let year = number(&mut rest, 2)?;
                    parts.year = if year >= 69 { 1900 + year } else { 2000 + year };
                }
                Item::Month => parts.month = number(&mut rest, 2)?,
                Item::MonthName => parts.month = name(&mut rest, &MONTHS)?,
                Item::Day => parts.day = number(&mut rest, 2)?,
                Item::Hour => parts.hour = number(&mut rest, 2)?,
                Item::Hour12 => {
                    let hour = number(&mut rest, 2)?;
                    parts.hour = (1..=12).contains(&hour).then_some(hour % 12)?;
                }
                Item::HalfDay => {
                    let (half, after) = rest.split_at_checked(2)?;
                    parts.is_afternoon = Some(match half.to_ascii_lowercase().as_slice() {
                        b"am" => false,
                        b"pm" => true,
                        _ => return None,
                    });
                    rest = after;
                }
                Item::Minute => parts.minute = number(&mut rest, 2)?,
                Item::Second => parts.second = number(&mut rest, 2)?,
                Item::Fraction => {
                    let before = rest.len();
                    let fraction = number(&mut rest, 9)?;
                    let digits = u32::try_from(before - rest.len()).ok()?;
                    parts.nanos = fraction * 10_i64.pow(9 - digits);
                }
                Item::Offset => parts.offset = Some(offset(&mut rest)?),
                Item::Zone => {
                    let is_utc = |zone: &&[u8]| {
                        rest.get(..zone.len()).is_some_and(|start| start.eq_ignore_ascii_case(zone))
                    };
                    let zone = [&b"UTC"[..], b"GMT", b"Z"].into_iter().find(is_utc)?;
                    (rest, parts.offset) = (&rest[zone.len()..], Some(0));
                }
                Item::Weekday => {
                    name(&mut rest, &WEEKDAYS)?;
                }
                Item::Epoch => epoch = Some(signed(&mut rest)?),
            }
        }
        rest.is_empty().then_some(())?;
        if let Some(seconds) = epoch {
            let seconds = EPOCHS.contains(&seconds).then_some(seconds)?;
            print::timestamp(out, seconds * 1000, TimeUnit::Millis);
            out.push(b'Z');
            return Some(());
        }
        if let Some(is_afternoon) = parts.is_afternoon {
            let hour = parts.hour % 12;
            parts.hour = if is_afternoon { hour + 12 } else { hour };
        }
        calendar::days(parts.year, parts.month, parts.day)?;
        let has_clock = |item: &Item| matches!(item, Item::Hour | Item::Hour12 | Item::Minute | Item::Second);
        parts.write(self.items.iter().any(has_clock), out)
    }
}

impl Parts {
    fn write(&self, has_clock: bool, out: &mut Vec<u8>) -> Option<()> {
        let year = (0..=9999).contains(&self.year).then_some(self.year)?;
        digits(out, year, 4);
        for part in [self.month, self.day] {
            out.push(b'-');
            digits(out, part, 2);
        }
        if !has_clock {
            return Some(());
        }
        for (mark, part) in [(b'T', self.hour), (b':', self.minute), (b':', self.second)] {
            out.push(mark);
            digits(out, part, 2);
        }
        if self.nanos > 0 {
            out.push(b'.');
            digits(out, self.nanos, 9);
        }
        match self.offset {
            None => {}
            Some(0) => out.push(b'Z'),
            Some(offset) => {
                out.push(if offset < 0 { b'-' } else { b'+' });
                digits(out, offset.abs() / 60, 2);
                out.push(b':');
                digits(out, offset.abs() % 60, 2);
            }
        }
        Some(())
    }
}

/// A number that is not negative, with leading zeros.
fn digits(out: &mut Vec<u8>, value: i64, width: u32) {
    for place in (0..width).rev() {
        let digit = u8::try_from(value / 10_i64.pow(place) % 10).unwrap_or(0);
        out.push(b'0' + digit);
    }
}

/// A number of at most so many digits.
fn number(rest: &mut &[u8], digits_max: usize) -> Option<i64> {
    let digits = rest.iter().take(digits_max).take_while(|byte| byte.is_ascii_digit()).count();
    let (number, after) = rest.split_at(digits);
    *rest = after;
    let value = number.iter().fold(0_i64, |value, digit| value * 10 + i64::from(digit - b'0'));
    (digits > 0).then_some(value)
}

fn signed(rest: &mut &[u8]) -> Option<i64> {
    let is_negative = rest.first() == Some(&b'-');
    if is_negative {
        *rest = &rest[1..];
    }
    // Twelve digits are the year 33658.
    let value = number(rest, 12)?;
    Some(if is_negative { -value } else { value })
}

/// `Z`, or hours and maybe minutes, after a sign.
fn offset(rest: &mut &[u8]) -> Option<i64> {
    let (sign, after) = rest.split_first()?;
    *rest = after;
    let sign = match sign {
        b'Z' | b'z' => return Some(0),
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let hours = two(rest)?;
    let after = rest.strip_prefix(b":").unwrap_or(rest);
    let minutes = match after.first() {
        Some(byte) if byte.is_ascii_digit() => {
            *rest = after;
            two(rest)?
        }
        _ => 0,
    };
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes))
}

/// Two digits.
fn two(rest: &mut &[u8]) -> Option<i64> {
    let before = rest.len();
    let value = number(rest, 2)?;
    (before - rest.len() == 2).then_some(value)
}

/// The seconds of the years 0 to 9999.
const EPOCHS: core::ops::RangeInclusive<i64> = -62_167_219_200..=253_402_300_799;
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// A name or its first three letters, in any case; which one it is, counted from 1.
fn name(rest: &mut &[u8], names: &[&str]) -> Option<i64> {
    let letters = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let (word, after) = rest.split_at(letters);
    *rest = after;
    let is_it = |name: &&str| {
        let name = name.as_bytes();
        word.eq_ignore_ascii_case(name) || name.get(..3).is_some_and(|short| word.eq_ignore_ascii_case(short))
    };
    let at = names.iter().position(is_it)?;
    i64::try_from(at + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(format: &str, text: &str) -> Option<String> {
        let mut out = Vec::new();
        let format: TimestampFormat = format.parse().unwrap();
        format.rewrite(text.as_bytes(), &mut out).map(|()| String::from_utf8(out).unwrap())
    }

    #[test]
    fn forms_become_iso_8601() {
        for (format, text, expected) in [
            ("%d.%m.%Y", "29.2.2024", Some("2024-02-29")),
            ("%d.%m.%Y", "30.02.2024", None),
            ("%d.%m.%Y", "29.02.2024 ", None),
            ("%m/%d/%y %I:%M %p", "02/29/24 12:05 am", Some("2024-02-29T00:05:00")),
            ("%m/%d/%y %I:%M %p", "2/29/69 11:05 PM", None),
            ("%D %I:%M%p", "12/31/69 12:05PM", Some("1969-12-31T12:05:00")),
            ("%a %d %b %Y %T %Z", "Thu 29 FEB 2024 01:02:03 GMT", Some("2024-02-29T01:02:03Z")),
            ("%A, %B %e, %Y", "Thursday, February 29, 2024", Some("2024-02-29")),
            ("%Y%m%d%H%M%S", "20240229010203", Some("2024-02-29T01:02:03")),
            ("%F %T.%f%z", "2024-02-29 01:02:03.5-0130", Some("2024-02-29T01:02:03.500000000-01:30")),
            ("%F %R %z", "2024-02-29   01:02 +02", Some("2024-02-29T01:02:00+02:00")),
            ("%F %R %z", "2024-02-2901:02 +02", None),
            ("%s", "1709164801", Some("2024-02-29T00:00:01.000Z")),
            ("%s", "-1", Some("1969-12-31T23:59:59.000Z")),
            ("%s", "999999999999", None),
            ("%d%%%m%%%Y", "1%2%2024", Some("2024-02-01")),
            ("%d %b %Y", "1 Mai 2024", None),
            ("%F %I %p", "2024-02-29 13 pm", None),
        ] {
            assert_eq!(rewritten(format, text).as_deref(), expected, "{format} {text}");
        }
    }

    #[test]
    fn what_is_no_form_is_said() {
        for (format, said) in [
            ("%d.%m.", "a year, a month and a day are needed"),
            ("%Q", "%Q is not known"),
            ("%Y%m%d%", "a letter is missing"),
            ("%F %I", "%I needs %p"),
        ] {
            let error = format.parse::<TimestampFormat>().unwrap_err();
            assert!(error.message().contains(said), "{format}: {error}");
        }
    }
}
