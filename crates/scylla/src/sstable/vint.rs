//! Cassandra's integers of variable length.
//!
//! The number of leading one bits of the first byte is the number of bytes that follow it. What is left of the first byte, and those
//! bytes, are the number, the most significant byte first; so a number takes one to nine bytes. (Cassandra:
//! `utils/vint/VIntCoding.java`.)

use alloc::vec::Vec;

use marquetry_base::cast::{bits_i64, bits_u64, usize_of_u32};

/// The most bytes of a number.
pub const VINT_BYTES_MAX: usize = 9;

/// An unsigned number at the start of `bytes`, and how many bytes it takes. `None` if the bytes end first.
///
/// ```
/// use marquetry_scylla::sstable::vint::unsigned;
///
/// assert_eq!(unsigned(&[0x7f, 1]), Some((127, 1)));
/// assert_eq!(unsigned(&[0b1000_0001, 2]), Some((258, 2)));
/// assert_eq!(unsigned(&[0b1100_0001, 2]), None);
/// ```
#[inline]
pub fn unsigned(bytes: &[u8]) -> Option<(u64, usize)> {
    let (&first, rest) = bytes.split_first()?;
    if first < 0x80 {
        return Some((u64::from(first), 1));
    }
    let extra = usize_of_u32(first.leading_ones());
    // Eight bytes at once, wherever there are as many; those beyond the number are shifted out.
    if let Some(word) = rest.first_chunk::<8>() {
        let word = u64::from_be_bytes(*word);
        if extra == 8 {
            return Some((word, 9));
        }
        let low = word >> (64 - 8 * extra);
        return Some((u64::from(first & (0x7f >> extra)) << (8 * extra) | low, 1 + extra));
    }
    slow(first, extra, rest)
}

#[cold]
fn slow(first: u8, extra: usize, rest: &[u8]) -> Option<(u64, usize)> {
    let high = if extra >= 7 { 0 } else { u64::from(first & (0x7f >> extra)) };
    let value = rest.get(..extra)?.iter().fold(high, |value, &byte| value << 8 | u64::from(byte));
    Some((value, 1 + extra))
}

/// A signed number at the start of `bytes`, in zigzag encoding, and how many bytes it takes. `None` if the bytes end first.
pub fn signed(bytes: &[u8]) -> Option<(i64, usize)> {
    let (value, length) = unsigned(bytes)?;
    Some((bits_i64(value >> 1) ^ -bits_i64(value & 1), length))
}

/// Appends an unsigned number, in as few bytes as it takes.
#[inline]
pub(crate) fn push_unsigned(out: &mut Vec<u8>, value: u64) {
    let Ok(small) = u8::try_from(value) else { return push_long(out, value) };
    if small < 0x80 {
        out.push(small);
    } else {
        push_long(out, value);
    }
}

fn push_long(out: &mut Vec<u8>, value: u64) {
    let bits = usize_of_u32(64 - (value | 1).leading_zeros());
    if bits > 56 {
        out.push(0xff);
        out.extend_from_slice(&value.to_be_bytes());
        return;
    }
    // Each byte has room for seven bits, but for the ninth. Eight bytes are copied at once, and those that are too many taken back.
    let extra = (bits - 1) / 7;
    let marked = value | u64::from(!(0xff_u8 >> extra)) << (8 * extra);
    let end = out.len() + extra + 1;
    out.extend_from_slice(&(marked << (56 - 8 * extra)).to_be_bytes());
    out.truncate(end);
}

/// The bytes that an unsigned number takes.
#[inline]
pub(crate) fn unsigned_bytes(value: u64) -> usize {
    let bits = usize_of_u32(64 - (value | 1).leading_zeros());
    if bits > 56 { 9 } else { (bits - 1) / 7 + 1 }
}

/// Appends a signed number, in zigzag encoding.
pub(crate) fn push_signed(out: &mut Vec<u8>, value: i64) {
    push_unsigned(out, bits_u64(value << 1 ^ value >> 63));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `VIntCoding.writeUnsignedVInt` writes it.
    fn written(value: u64) -> Vec<u8> {
        let bits = usize_of_u32(64 - (value | 1).leading_zeros());
        let length = (1..9).find(|bytes| bits <= 7 * bytes).unwrap_or(9);
        let mut bytes = Vec::new();
        if length == 9 {
            bytes.push(0xff);
            bytes.extend(value.to_be_bytes());
            return bytes;
        }
        bytes.extend(&value.to_be_bytes()[8 - length..]);
        if length > 1 {
            bytes[0] |= !(0xff_u8 >> (length - 1));
        }
        bytes
    }

    #[test]
    fn numbers_of_every_length_are_read_with_and_without_what_follows() {
        let mut values: Vec<u64> =
            (0..64).flat_map(|bit| [1_u64 << bit, (1 << bit) - 1, (1 << bit) + 1]).collect();
        values.extend([u64::MAX, u64::MAX / 3]);
        for value in values {
            let bytes = written(value);
            let mut pushed = alloc::vec![7];
            push_unsigned(&mut pushed, value);
            assert_eq!(pushed[1..], bytes, "{value}");
            assert_eq!(unsigned_bytes(value), bytes.len(), "{value}");
            assert_eq!(unsigned(&bytes), Some((value, bytes.len())), "{value}");
            for end in 0..bytes.len() {
                assert_eq!(unsigned(&bytes[..end]), None, "{value}, {end} bytes");
            }
            let mut followed = bytes.clone();
            followed.extend([0xa5; 9]);
            assert_eq!(unsigned(&followed), Some((value, bytes.len())), "{value}");
        }
    }

    #[test]
    fn zigzag() {
        for (value, bytes) in [(0, [0]), (-1, [1]), (1, [2]), (-2, [3]), (63, [126])] {
            assert_eq!(signed(&bytes), Some((value, 1)));
            let mut pushed = Vec::new();
            push_signed(&mut pushed, value);
            assert_eq!(pushed, bytes);
        }
        assert_eq!(signed(&[0xff; 9]), Some((i64::MIN, 9)));
    }
}
