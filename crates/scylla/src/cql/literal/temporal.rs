//! `date`, `time`, `timestamp` and `duration`.

use alloc::vec::Vec;

use marquetry_base::calendar::civil;

use super::LiteralError;

/// The nanoseconds of a day: a `time` is below it.
pub const DAY_NANOS: i64 = 86_400_000_000_000;

/// A `date` from days since 1970-01-01.
///
/// Years 0001 to 9999 are `'YYYY-MM-DD'`, of the proleptic Gregorian calendar that both servers use
/// for dates. Others, for which the servers' spellings differ, are the raw number of days with
/// 1970-01-01 at 2^31, which both accept; so every `i32` has its literal.
pub fn date(out: &mut Vec<u8>, days: i32) {
    if (DATE_TEXT_MIN_DAYS..=DATE_TEXT_MAX_DAYS).contains(&days) {
        let mut text = *b"'0000-00-00'";
        put_date(&mut text[1..11], days);
        out.extend_from_slice(&text);
    } else {
        super::integer(out, i64::from(days) + (1 << 31));
    }
}

/// A `time` from nanoseconds since midnight, `'HH:MM:SS.nnnnnnnnn'`.
///
/// # Errors
/// [`LiteralError::TimeOutOfDay`].
pub fn time(out: &mut Vec<u8>, nanos: i64) -> Result<(), LiteralError> {
    if !(0..DAY_NANOS).contains(&nanos) {
        return Err(LiteralError::TimeOutOfDay { nanos });
    }
    let mut text = *b"'00:00:00.000000000'";
    put_time(&mut text[1..9], small(nanos / 1_000_000_000));
    put_digits(&mut text[10..19], small(nanos % 1_000_000_000));
    out.extend_from_slice(&text);
    Ok(())
}

/// A `timestamp` from milliseconds since 1970-01-01T00:00Z.
///
/// Years 1583 to 9999 are `'YYYY-MM-DDTHH:MM:SS.mmmZ'`. Others are the integer: before 1582-10-15
/// Cassandra reads a text by the Julian calendar, before 1400 ScyllaDB reads none, and neither
/// reads five-digit years.
pub fn timestamp(out: &mut Vec<u8>, millis: i64) {
    const DAY_MILLIS: i64 = 86_400_000;
    let (day, of_day) = (millis.div_euclid(DAY_MILLIS), millis.rem_euclid(DAY_MILLIS));
    match i32::try_from(day) {
        Ok(day) if (TIMESTAMP_TEXT_MIN_DAYS..=DATE_TEXT_MAX_DAYS).contains(&day) => {
            let mut text = *b"'0000-00-00T00:00:00.000Z'";
            put_date(&mut text[1..11], day);
            put_time(&mut text[12..20], small(of_day / 1000));
            put_digits(&mut text[21..24], small(of_day % 1000));
            out.extend_from_slice(&text);
        }
        _ => super::integer(out, millis),
    }
}

/// A `duration` such as `1mo2d3ns`, `-5ns` or `0ns`.
///
/// # Errors
/// [`LiteralError::DurationSigns`] when a part is negative and another positive;
/// [`LiteralError::DurationOutOfRange`] for the smallest `i32` and `i64`, which the servers refuse.
pub fn duration(out: &mut Vec<u8>, months: i32, days: i32, nanos: i64) -> Result<(), LiteralError> {
    let negative = months < 0 || days < 0 || nanos < 0;
    if negative && (months > 0 || days > 0 || nanos > 0) {
        return Err(LiteralError::DurationSigns);
    }
    if months == i32::MIN || days == i32::MIN || nanos == i64::MIN {
        return Err(LiteralError::DurationOutOfRange);
    }
    if negative {
        out.push(b'-');
    }
    let mut part = |count: u64, unit: &[u8]| {
        super::integer(out, count);
        out.extend_from_slice(unit);
    };
    if months != 0 {
        part(months.unsigned_abs().into(), b"mo");
    }
    if days != 0 {
        part(days.unsigned_abs().into(), b"d");
    }
    if nanos != 0 || (months, days) == (0, 0) {
        part(nanos.unsigned_abs(), b"ns");
    }
    Ok(())
}

/// 0001-01-01.
const DATE_TEXT_MIN_DAYS: i32 = -719_162;
/// 9999-12-31.
const DATE_TEXT_MAX_DAYS: i32 = 2_932_896;
/// 1583-01-01.
const TIMESTAMP_TEXT_MIN_DAYS: i32 = -141_349;

/// Writes `YYYY-MM-DD` for a day of the years 0001 to 9999.
fn put_date(text: &mut [u8], days: i32) {
    let (year, month, day) = civil(days.into());
    put_digits(&mut text[0..4], small(year));
    put_digits(&mut text[5..7], small(month));
    put_digits(&mut text[8..10], small(day));
}

/// Writes `HH:MM:SS`.
fn put_time(text: &mut [u8], second_of_day: u32) {
    put_digits(&mut text[0..2], second_of_day / 3600);
    put_digits(&mut text[3..5], second_of_day / 60 % 60);
    put_digits(&mut text[6..8], second_of_day % 60);
}

/// Fills `text` with the last digits of `value`.
fn put_digits(text: &mut [u8], mut value: u32) {
    for digit in text.iter_mut().rev() {
        *digit = b"0123456789"[(value % 10) as usize];
        value /= 10;
    }
}

/// A part of a day: from 0 to below 10^9.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the callers' values are remainders or quotients below 10^9, and not negative"
)]
fn small(value: i64) -> u32 {
    debug_assert!(u32::try_from(value).is_ok());
    value as u32
}
