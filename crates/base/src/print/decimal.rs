//! Decimals: the digits of integers of any length, and their scale.

use alloc::vec::Vec;

use super::integer;

/// The longest integer, in bytes, whose digits [`Digits::of_bytes`] makes. Changing the base takes time by the square of the length:
/// less than 0.1 ms here.
pub const DIGITS_BYTES_MAX: usize = 512;

/// An integer's sign and the decimal digits of its magnitude, the first one first and no zeros before it, but for zero itself.
#[derive(Debug)]
pub struct Digits {
    is_negative: bool,
    storage: Storage,
}

#[derive(Debug)]
enum Storage {
    /// Up to 128 bits: 39 digits, of which these are used.
    Short([u8; 39], usize),
    Long(Vec<u8>),
}

impl Digits {
    /// The digits of an integer.
    pub fn of(value: i128) -> Digits {
        let mut buffer = itoa::Buffer::new();
        let text = buffer.format(value.unsigned_abs()).as_bytes();
        let mut digits = [0; 39];
        digits[..text.len()].copy_from_slice(text);
        Digits { is_negative: value < 0, storage: Storage::Short(digits, text.len()) }
    }

    /// The digits of a big-endian two's complement integer. `None` for more than [`DIGITS_BYTES_MAX`] bytes, and for none at all, which
    /// are no number.
    pub fn of_bytes(big_endian: &[u8]) -> Option<Digits> {
        let is_negative = *big_endian.first()? >= 0x80;
        if let Some(value) = crate::twos_complement::to_i128(big_endian) {
            return Some(Digits::of(value));
        }
        if big_endian.len() > DIGITS_BYTES_MAX {
            return None;
        }
        let digits = long_digits(magnitude(big_endian, is_negative));
        Some(Digits { is_negative, storage: Storage::Long(digits) })
    }

    /// Whether the integer is less than zero.
    pub fn is_negative(&self) -> bool {
        self.is_negative
    }

    /// The digits, without the sign.
    pub fn as_slice(&self) -> &[u8] {
        match &self.storage {
            Storage::Short(digits, used) => &digits[..*used],
            Storage::Long(digits) => digits,
        }
    }

    /// Appends the integer: `-123`.
    pub fn integer(&self, out: &mut Vec<u8>) {
        self.fixed(out, 0);
    }

    /// Appends the integer × 10^-`scale` with so many digits after its point: `-0.05`, `12.00`.
    pub fn fixed(&self, out: &mut Vec<u8>, scale: usize) {
        if self.is_negative {
            out.push(b'-');
        }
        let digits = self.as_slice();
        match digits.len().checked_sub(scale) {
            _ if scale == 0 => out.extend_from_slice(digits),
            Some(whole) if whole > 0 => {
                let (before, after) = digits.split_at(whole);
                out.extend_from_slice(before);
                out.push(b'.');
                out.extend_from_slice(after);
            }
            _ => {
                out.extend_from_slice(b"0.");
                out.resize(out.len() + scale - digits.len(), b'0');
                out.extend_from_slice(digits);
            }
        }
    }

    /// Appends the integer × 10^`exponent`: `-123E+5`, `7E-40`.
    pub fn scientific(&self, out: &mut Vec<u8>, exponent: i64) {
        self.fixed(out, 0);
        out.extend_from_slice(if exponent < 0 { b"E" } else { b"E+" });
        integer(out, exponent);
    }
}

/// The absolute value in 32-bit limbs, least significant first.
fn magnitude(bytes: &[u8], is_negative: bool) -> Vec<u32> {
    let mut limbs: Vec<u32> = bytes
        .rchunks(4)
        .map(|chunk| {
            let mut limb = [if is_negative { 0xff } else { 0 }; 4];
            limb[4 - chunk.len()..].copy_from_slice(chunk);
            u32::from_be_bytes(limb)
        })
        .collect();
    if is_negative {
        let mut carry = true;
        for limb in &mut limbs {
            (*limb, carry) = (!*limb).overflowing_add(u32::from(carry));
        }
        // -2^(32n) needs one limb more.
        if carry {
            limbs.push(1);
        }
    }
    limbs
}

/// Divides by 10^9 until nothing is left, nine digits a time.
fn long_digits(mut limbs: Vec<u32>) -> Vec<u8> {
    const BASE: u64 = 1_000_000_000;
    let mut groups = Vec::with_capacity(limbs.len() * 32 / 29 + 1);
    loop {
        while limbs.last() == Some(&0) {
            limbs.pop();
        }
        if limbs.is_empty() {
            break;
        }
        let mut remainder = 0;
        for limb in limbs.iter_mut().rev() {
            let part = remainder << 32 | u64::from(*limb);
            // A remainder of 10^9, and the quotient of (below 10^9 × 2^32) / 10^9, are below 2^32.
            *limb = crate::cast::low_u32(part / BASE);
            remainder = part % BASE;
        }
        groups.push(crate::cast::low_u32(remainder));
    }
    let mut digits = Vec::with_capacity(groups.len() * 9);
    for (at, group) in groups.iter().rev().enumerate() {
        let mut buffer = itoa::Buffer::new();
        let text = buffer.format(*group).as_bytes();
        if at > 0 {
            digits.resize(digits.len() + 9 - text.len(), b'0');
        }
        digits.extend_from_slice(text);
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::super::printed;
    use super::*;

    #[test]
    fn every_digit() {
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
            let digits = Digits::of(unscaled);
            assert_eq!(printed(|out| digits.fixed(out, scale)), wanted);
            let digits = Digits::of_bytes(&unscaled.to_be_bytes()).unwrap();
            assert_eq!(printed(|out| digits.fixed(out, scale)), wanted);
        }
        assert_eq!(printed(|out| Digits::of(-123).scientific(out, 5)), "-123E+5");
        assert_eq!(printed(|out| Digits::of(7).scientific(out, -40)), "7E-40");
        assert_eq!(printed(|out| Digits::of(-7).integer(out)), "-7");
    }

    #[test]
    fn long_integers() {
        let of = |bytes: &[u8]| Digits::of_bytes(bytes).map(|digits| printed(|out| digits.integer(out)));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[0xff; 40]).as_deref(), Some("-1"));
        // -2^159, the smallest of 20 bytes: its magnitude fills the limbs.
        let mut bytes = [0; 20];
        bytes[0] = 0x80;
        assert_eq!(of(&bytes).as_deref(), Some("-730750818665451459101842416358141509827966271488"));
        let mut bytes = alloc::vec![0; DIGITS_BYTES_MAX];
        bytes[0] = 1;
        assert_eq!(of(&bytes).unwrap().len(), 1231);
        bytes.push(0);
        assert_eq!(of(&bytes), None);
    }
}
