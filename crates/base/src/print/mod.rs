//! How values are printed: the one place for digits, dates, times, bytes and JSON's escapes.
//!
//! Every function appends to a buffer of bytes, and nothing goes through formatting machinery. What is a format's own stands with
//! the format (the quotes of CQL's literals, the forms of VARIANT in JSON) and calls these for the rest.

mod decimal;
pub mod json;
mod text;
mod time;

pub use decimal::{DIGITS_BYTES_MAX, Digits};
pub use text::{csv_field, is_harmful, printable};
pub use time::{date, time, timestamp, timestamp_nanos, without_zeros};

use alloc::vec::Vec;

/// Integers of Rust, of which [`integer`] writes all.
pub use itoa::Integer;

/// `true` or `false`.
pub fn boolean(out: &mut Vec<u8>, value: bool) {
    out.extend_from_slice(if value { b"true" } else { b"false" });
}

/// An integer.
#[inline]
pub fn integer(out: &mut Vec<u8>, value: impl Integer) {
    // A printer of our own that copied all its room at once was no quicker.
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// A binary32: the fewest digits that read back to the same bits, always with a point or an exponent; `NaN`, `Infinity`,
/// `-Infinity`.
pub fn float(out: &mut Vec<u8>, value: f32) {
    if value.is_finite() {
        out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
    } else {
        not_finite(out, value.is_nan(), value < 0.0);
    }
}

/// A binary64, as [`float`].
pub fn double(out: &mut Vec<u8>, value: f64) {
    if value.is_finite() {
        out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
    } else {
        not_finite(out, value.is_nan(), value < 0.0);
    }
}

fn not_finite(out: &mut Vec<u8>, is_nan: bool, is_negative: bool) {
    out.extend_from_slice(match (is_nan, is_negative) {
        (true, _) => b"NaN".as_slice(),
        (false, false) => b"Infinity",
        (false, true) => b"-Infinity",
    });
}

/// Bytes: `0x` and two lower-case hexadecimal digits each.
pub fn bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(bytes.len() * 2 + 2);
    out.extend_from_slice(b"0x");
    hex(out, bytes);
}

/// Bytes: two lower-case hexadecimal digits each.
pub fn hex(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut digits = [0; 64];
    for chunk in bytes.chunks(digits.len() / 2) {
        let filled = &mut digits[..chunk.len() * 2];
        for (pair, byte) in filled.chunks_exact_mut(2).zip(chunk) {
            pair.copy_from_slice(&HEX_PAIRS[usize::from(*byte)]);
        }
        out.extend_from_slice(filled);
    }
}

/// A UUID, from its 16 bytes in the order they are written: `f24f9b64-81fa-49d1-b74e-8c09a6e31c56`.
pub fn uuid(out: &mut Vec<u8>, bytes: &[u8; 16]) {
    const PLACES: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
    let mut digits = [b'-'; 36];
    for (place, byte) in PLACES.iter().zip(bytes) {
        digits[*place..*place + 2].copy_from_slice(&HEX_PAIRS[usize::from(*byte)]);
    }
    out.extend_from_slice(&digits);
}

/// Bytes in base 64 (RFC 4648, section 4), with padding. After a multiple of three bytes more may be appended.
pub fn base64(out: &mut Vec<u8>, bytes: &[u8]) {
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

/// The bytes of a text in [base 64](base64). `None` for what is none, or has no padding.
pub fn of_base64(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let mut rest = text;
    while let Some((four, after)) = rest.split_first_chunk::<4>() {
        let digits = four.iter().rposition(|byte| *byte != b'=').map_or(0, |last| last + 1);
        if digits < 2 || (digits < 4 && !after.is_empty()) {
            return None;
        }
        let mut word = 0_u32;
        for (at, byte) in four.iter().enumerate() {
            let digit = match byte {
                b'A'..=b'Z' => byte - b'A',
                b'a'..=b'z' => byte - b'a' + 26,
                b'0'..=b'9' => byte - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                b'=' if at >= digits => 0,
                _ => return None,
            };
            word = word << 6 | u32::from(digit);
        }
        bytes.extend_from_slice(word.to_be_bytes().get(1..digits)?);
        rest = after;
    }
    rest.is_empty().then_some(bytes)
}

/// The two lower-case hexadecimal digits of every byte.
const HEX_PAIRS: [[u8; 2]; 256] = {
    let digits = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        pairs[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    pairs
};

/// The decimal digits of a number below 100; of others the last two.
#[inline]
fn two_digits(value: u64) -> [u8; 2] {
    const PAIRS: [[u8; 2]; 100] = {
        let mut pairs = [[b'0'; 2]; 100];
        let mut value: u8 = 0;
        while value < 100 {
            pairs[value as usize] = [b'0' + value / 10, b'0' + value % 10];
            value += 1;
        }
        pairs
    };
    PAIRS[(value % 100) as usize]
}

/// What a function appends, for tests.
#[cfg(test)]
fn printed(write: impl FnOnce(&mut Vec<u8>)) -> alloc::string::String {
    // What stands before must stay.
    let mut out = alloc::vec![b'('];
    write(&mut out);
    alloc::string::String::from_utf8(out).unwrap().split_off(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(printed(|out| boolean(out, true)), "true");
        assert_eq!(printed(|out| boolean(out, false)), "false");
        assert_eq!(printed(|out| integer(out, i64::MIN)), "-9223372036854775808");
        assert_eq!(printed(|out| integer(out, u8::MAX)), "255");
        assert_eq!(printed(|out| float(out, 0.1)), "0.1");
        assert_eq!(printed(|out| float(out, -f32::NAN)), "NaN");
        assert_eq!(printed(|out| double(out, -0.0)), "-0.0");
        assert_eq!(printed(|out| double(out, 0.1 + 0.2)), "0.30000000000000004");
        assert_eq!(printed(|out| double(out, f64::INFINITY)), "Infinity");
        assert_eq!(printed(|out| double(out, f64::NEG_INFINITY)), "-Infinity");
        for value in 0..100 {
            assert_eq!(two_digits(value).as_slice(), alloc::format!("{value:02}").as_bytes());
        }
    }

    #[test]
    fn bytes_and_uuids() {
        assert_eq!(printed(|out| bytes(out, b"")), "0x");
        let all: Vec<u8> = (0..=255).collect();
        let expected: alloc::string::String = all.iter().map(|byte| alloc::format!("{byte:02x}")).collect();
        assert_eq!(printed(|out| hex(out, &all)), expected);
        let number = 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff_u128;
        assert_eq!(printed(|out| uuid(out, &number.to_be_bytes())), "00112233-4455-6677-8899-aabbccddeeff");
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
            assert_eq!(printed(|out| base64(out, bytes.as_bytes())), wanted);
        }
        assert_eq!(printed(|out| base64(out, &[0xff, 0xef, 0xbe])), "/+++");
    }

    #[test]
    fn base64_is_read_as_it_is_printed() {
        for length in 0..20_u8 {
            let bytes: Vec<u8> = (0..length).map(|byte| byte.wrapping_mul(77)).collect();
            let mut text = Vec::new();
            base64(&mut text, &bytes);
            assert_eq!(of_base64(&text), Some(bytes));
        }
        for wrong in ["A", "A===", "AA=A", "AA==AAAA", "AA*A", "AAAAA"] {
            assert_eq!(of_base64(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
