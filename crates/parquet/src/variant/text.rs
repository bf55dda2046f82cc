//! Numbers and times as text.

use alloc::vec::Vec;

use marquetry_base::calendar::civil;

/// An integer.
pub(super) fn integer(out: &mut Vec<u8>, value: impl itoa::Integer) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// `unscaled × 10^-scale`, every digit of it.
pub(super) fn decimal(out: &mut Vec<u8>, unscaled: i128, scale: u8) {
    if unscaled < 0 {
        out.push(b'-');
    }
    padded(out, unscaled.unsigned_abs(), usize::from(scale) + 1);
    if scale > 0 {
        out.insert(out.len() - usize::from(scale), b'.');
    }
}

/// The number with zeros before it, up to `digits` digits.
fn padded(out: &mut Vec<u8>, value: u128, digits: usize) {
    let mut buffer = itoa::Buffer::new();
    let text = buffer.format(value);
    out.resize(out.len() + digits.saturating_sub(text.len()), b'0');
    out.extend_from_slice(text.as_bytes());
}

/// A day, counted from 1970-01-01, in ISO 8601: `2024-02-29`; years beyond 0000 to 9999 in its expanded form, with a sign
/// and at least six digits.
pub(super) fn date(out: &mut Vec<u8>, days: i64) {
    let (year, month, day) = civil(days);
    if (0..=9999).contains(&year) {
        padded(out, year.unsigned_abs().into(), 4);
    } else {
        out.push(if year < 0 { b'-' } else { b'+' });
        padded(out, year.unsigned_abs().into(), 6);
    }
    out.push(b'-');
    padded(out, month.unsigned_abs().into(), 2);
    out.push(b'-');
    padded(out, day.unsigned_abs().into(), 2);
}

/// A time since midnight: `03:04:05.678000`. What is outside of a day is shown as it is: `25:00:00.000000`, `-00:00:01.000000`.
pub(super) fn time(out: &mut Vec<u8>, micros: i64) {
    if micros < 0 {
        out.push(b'-');
    }
    clock(out, micros.unsigned_abs(), MICROS);
}

/// A time since 1970: `2024-02-29T03:04:05.678000`.
pub(super) fn timestamp(out: &mut Vec<u8>, value: i64, unit: Unit) {
    let of_a_day = unit.per_second.cast_signed() * 86_400;
    date(out, value.div_euclid(of_a_day));
    out.push(b'T');
    clock(out, value.rem_euclid(of_a_day).unsigned_abs(), unit);
}

/// A unit of time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unit {
    per_second: u64,
    digits: usize,
}

/// Microseconds.
pub(super) const MICROS: Unit = Unit { per_second: 1_000_000, digits: 6 };
/// Nanoseconds.
pub(super) const NANOS: Unit = Unit { per_second: 1_000_000_000, digits: 9 };

fn clock(out: &mut Vec<u8>, value: u64, unit: Unit) {
    let seconds = value / unit.per_second;
    padded(out, (seconds / 3600).into(), 2);
    out.push(b':');
    padded(out, (seconds / 60 % 60).into(), 2);
    out.push(b':');
    padded(out, (seconds % 60).into(), 2);
    out.push(b'.');
    padded(out, (value % unit.per_second).into(), unit.digits);
}

/// A UUID: `f24f9b64-81fa-49d1-b74e-8c09a6e31c56`.
pub(super) fn uuid(out: &mut Vec<u8>, bytes: &[u8; 16]) {
    for (at, &byte) in bytes.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        out.extend([HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
    }
}

/// The digits of base 16.
pub(super) const HEX: &[u8; 16] = b"0123456789abcdef";

/// Bytes in base 64 (RFC 4648, section 4), with padding. A multiple of three bytes can be followed by more.
pub(super) fn base64(out: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for three in bytes.chunks(3) {
        let mut word = [0; 4];
        word[1..=three.len()].copy_from_slice(three);
        let word = u32::from_be_bytes(word);
        for digit in 0..4 {
            let index = word >> (18 - 6 * digit) & 63;
            out.push(if digit <= three.len() { DIGITS[index as usize] } else { b'=' });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn decimals_have_every_digit() {
        for (unscaled, scale, wanted) in [
            (0, 0, "0"),
            (0, 2, "0.00"),
            (-5, 2, "-0.05"),
            (1234, 2, "12.34"),
            (-1234, 4, "-0.1234"),
            (1200, 2, "12.00"),
            (i128::MIN, 0, "-170141183460469231731687303715884105728"),
            (i128::MAX, 38, "1.70141183460469231731687303715884105727"),
            (1, 38, "0.00000000000000000000000000000000000001"),
        ] {
            assert_eq!(text(|out| decimal(out, unscaled, scale)), wanted);
        }
    }

    #[test]
    fn dates_and_times() {
        for (days, wanted) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (19_782, "2024-02-29"),
            (-719_528, "0000-01-01"),
            (-719_529, "-000001-12-31"),
            (2_932_896, "9999-12-31"),
            (2_932_897, "+010000-01-01"),
            (i64::from(i32::MAX), "+5881580-07-11"),
            (i64::from(i32::MIN), "-5877641-06-23"),
        ] {
            assert_eq!(text(|out| date(out, days)), wanted);
        }
        assert_eq!(text(|out| time(out, 45_234_123_456)), "12:33:54.123456");
        assert_eq!(text(|out| time(out, 90_000_000_000)), "25:00:00.000000");
        assert_eq!(text(|out| time(out, -1_000_001)), "-00:00:01.000001");
        assert_eq!(text(|out| time(out, i64::MIN)), "-2562047788:00:54.775808");
        assert_eq!(text(|out| timestamp(out, -1, MICROS)), "1969-12-31T23:59:59.999999");
        assert_eq!(text(|out| timestamp(out, i64::MIN, NANOS)), "1677-09-21T00:12:43.145224192");
        assert_eq!(text(|out| timestamp(out, i64::MAX, MICROS)), "+294247-01-10T04:00:54.775807");
    }

    #[test]
    fn base64_of_any_length() {
        for (bytes, wanted) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
        ] {
            assert_eq!(text(|out| base64(out, bytes.as_bytes())), wanted);
        }
        assert_eq!(text(|out| base64(out, &[0xff, 0xef, 0xbe])), "/+++");
    }
}
