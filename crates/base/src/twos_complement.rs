//! Integers of any length as big-endian two's complement bytes: the unscaled values of DECIMAL, CQL's `varint` and `decimal`.

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

#[cfg(test)]
mod tests {
    use super::*;

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
