//! `date`, `time`, `timestamp` and `duration`.

use alloc::vec::Vec;

use marquetry_base::calendar::TimeUnit;
use marquetry_base::print;

use super::LiteralError;

/// The nanoseconds of a day: a `time` is below it.
pub const DAY_NANOS: i64 = TimeUnit::Nanos.per_day();

/// A `date` from days since 1970-01-01.
///
/// Years 0001 to 9999 are `'YYYY-MM-DD'`, of the proleptic Gregorian calendar that both servers use
/// for dates. Others, for which the servers' spellings differ, are the raw number of days with
/// 1970-01-01 at 2^31, which both accept; so every `i32` has its literal.
pub fn date(out: &mut Vec<u8>, days: i32) {
    if (DATE_TEXT_MIN_DAYS..=DATE_TEXT_MAX_DAYS).contains(&days) {
        out.push(b'\'');
        print::date(out, days.into());
        out.push(b'\'');
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
    out.push(b'\'');
    print::time(out, nanos, TimeUnit::Nanos);
    out.push(b'\'');
    Ok(())
}

/// A `timestamp` from milliseconds since 1970-01-01T00:00Z.
///
/// Years 1583 to 9999 are `'YYYY-MM-DDTHH:MM:SS.mmmZ'`. Others are the integer: before 1582-10-15 Cassandra reads a
/// text by the Julian calendar, before 1400 ScyllaDB does not read it at all, and neither reads years of five digits.
pub fn timestamp(out: &mut Vec<u8>, millis: i64) {
    if (TIMESTAMP_TEXT_MIN_MILLIS..TIMESTAMP_TEXT_END_MILLIS).contains(&millis) {
        out.push(b'\'');
        print::timestamp(out, millis, TimeUnit::Millis);
        out.extend_from_slice(b"Z'");
    } else {
        super::integer(out, millis);
    }
}

/// A `duration` such as `1mo2d3ns`, `-5ns` or `0ns`.
///
/// # Errors
/// [`LiteralError::DurationSigns`] if a part is negative and another positive; [`LiteralError::DurationOutOfRange`] for
/// the smallest `i32` and `i64`, which the servers refuse.
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
const TIMESTAMP_TEXT_MIN_MILLIS: i64 = -141_349 * TimeUnit::Millis.per_day();
/// After 9999-12-31.
const TIMESTAMP_TEXT_END_MILLIS: i64 = (DATE_TEXT_MAX_DAYS as i64 + 1) * TimeUnit::Millis.per_day();
