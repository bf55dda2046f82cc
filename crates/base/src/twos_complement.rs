//! Integers of any length as big-endian two's complement bytes: the unscaled values of DECIMAL, CQL's `varint` and `decimal`.

use alloc::vec::Vec;

/// The bytes without the leading ones that only repeat the sign. One stays, if there is any.
pub fn shortest(mut bytes: &[u8]) -> &[u8] {
    while let [first, second, ..] = bytes {
        let repeats_sign = match first {
            0x00 => *second < 0x80,
            0xff => *second >= 0x80,
            _ => false,
        };
        if !repeats_sign {
            break;
        }
        bytes = &bytes[1..];
    }
    bytes
}

/// The integer. `None` if it is beyond 128 bits. No bytes are 0.
pub fn to_i128(bytes: &[u8]) -> Option<i128> {
    let is_negative = bytes.first().is_some_and(|byte| *byte >= 0x80);
    let bytes = if bytes.len() > 16 { shortest(bytes) } else { bytes };
    let mut word = [if is_negative { 0xff } else { 0 }; 16];
    word.get_mut(16_usize.checked_sub(bytes.len())?..)?.copy_from_slice(bytes);
    Some(i128::from_be_bytes(word))
}

/// Decimal digits of an integer that [`of_digits`] takes: as many as [`Digits::of_bytes`](crate::print::Digits::of_bytes) prints.
/// Changing the base takes time by the square of the length.
pub const DIGITS_MAX: usize = 1232;

/// The fewest bytes of an integer, from its sign and the decimal digits of its magnitude. `None` for none, for more than [`DIGITS_MAX`], and
/// for anything else than digits.
pub fn of_digits(is_negative: bool, digits: &[u8]) -> Option<Vec<u8>> {
    if digits.is_empty() || digits.len() > DIGITS_MAX || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // Of the magnitude, 32 bits each, the lowest first.
    let mut words: Vec<u32> = Vec::new();
    for digits in digits.chunks(9) {
        let (mut carry, mut scale) = (0_u64, 1_u64);
        for digit in digits {
            (carry, scale) = (carry * 10 + u64::from(digit - b'0'), scale * 10);
        }
        for word in &mut words {
            let value = u64::from(*word) * scale + carry;
            (*word, carry) = (crate::cast::low_u32(value), value >> 32);
        }
        if carry > 0 {
            words.push(crate::cast::low_u32(carry));
        }
    }
    // A byte for the sign.
    let mut bytes = alloc::vec![0];
    bytes.extend(words.iter().rev().flat_map(|word| word.to_be_bytes()));
    if is_negative {
        let mut carry = true;
        for byte in bytes.iter_mut().rev() {
            (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
        }
    }
    Some(shortest(&bytes).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn digits_read_back() {
        for value in [0, 1, -1, 127, 128, -128, -129, 999_999_999, 1_000_000_000, i128::MAX, i128::MIN] {
            let text = value.unsigned_abs().to_string();
            let bytes = of_digits(value < 0, text.as_bytes()).unwrap();
            assert_eq!((shortest(&value.to_be_bytes()), to_i128(&bytes)), (&*bytes, Some(value)));
        }
        // Divided by ten again and again, the digits come back.
        let long: Vec<u8> = (0..DIGITS_MAX).map(|at| b"9307"[at % 4]).collect();
        let mut magnitude = of_digits(false, &long).unwrap();
        let mut digits = Vec::new();
        for _ in 0..DIGITS_MAX {
            let mut rest = 0;
            for byte in &mut magnitude {
                let value = rest * 256 + u32::from(*byte);
                (*byte, rest) = (crate::cast::low_u8((value / 10).into()), value % 10);
            }
            digits.insert(0, b'0' + crate::cast::low_u8(rest.into()));
        }
        assert_eq!(digits, long);
        // The negative of it is its complement, and one more.
        let sum = of_digits(true, &long)
            .unwrap()
            .iter()
            .rev()
            .zip(of_digits(false, &long).unwrap().iter().rev())
            .fold(0_u32, |carry, (one, other)| {
                let sum = u32::from(*one) + u32::from(*other) + carry;
                assert_eq!(sum % 256, 0);
                sum / 256
            });
        assert_eq!(sum, 1);
        assert_eq!(of_digits(true, b"000"), Some(alloc::vec![0]));
        for wrong in [&b""[..], b"-1", b"1.0", &[b'1'; DIGITS_MAX + 1]] {
            assert_eq!(of_digits(false, wrong), None);
        }
    }

    #[test]
    fn nothing_but_the_sign_is_left_out() {
        for (bytes, expected) in [
            (&[][..], &[][..]),
            (&[0], &[0]),
            (&[0, 0, 0], &[0]),
            (&[0, 0x80], &[0, 0x80]),
            (&[0, 0x7f], &[0x7f]),
            (&[0xff, 0xff], &[0xff]),
            (&[0xff, 0x7f], &[0xff, 0x7f]),
            (&[0xff, 0xff, 0x80, 1], &[0x80, 1]),
        ] {
            assert_eq!(shortest(bytes), expected);
        }
    }

    #[test]
    fn as_128_bits() {
        assert_eq!(to_i128(&[]), Some(0));
        assert_eq!(to_i128(&[0xff, 0x7f]), Some(-129));
        assert_eq!(to_i128(&[0, 0xff]), Some(255));
        for value in [i128::MIN, i128::MAX, -1, 0] {
            assert_eq!(to_i128(&value.to_be_bytes()), Some(value));
            let mut longer = [if value < 0 { 0xff } else { 0 }; 40];
            longer[24..].copy_from_slice(&value.to_be_bytes());
            assert_eq!(to_i128(&longer), Some(value));
            longer[23] ^= 1;
            assert_eq!(to_i128(&longer), None);
        }
    }
}
