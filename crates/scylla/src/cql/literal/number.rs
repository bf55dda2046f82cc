//! `varint` and `decimal`: integers of any length, and their scale.

use super::{LiteralError, from_blob};
use alloc::vec::Vec;

/// The longest integer, in bytes, that is written as decimal digits. Changing base takes time by the
/// square of the length (less than 0.1 ms here), so a longer one is written as its bytes, in
/// `blobAsVarint(0x…)`; the value is the same.
pub const VARINT_TEXT_BYTES_MAX: usize = 512;

/// A `varint` from its big-endian two's complement bytes, as many as there are.
///
/// # Errors
/// [`LiteralError::EmptyNumber`].
pub fn varint(out: &mut Vec<u8>, big_endian: &[u8]) -> Result<(), LiteralError> {
    let bytes = shortest(big_endian)?;
    match Digits::of(bytes) {
        Some(digits) => {
            if digits.negative {
                out.push(b'-');
            }
            out.extend_from_slice(digits.as_slice());
        }
        None => from_blob(out, "Varint", &[bytes]),
    }
    Ok(())
}

/// A `decimal`, `unscaled` × 10^-`scale`; see [`decimal_bytes`].
pub fn decimal(out: &mut Vec<u8>, unscaled: impl Into<i128>, scale: i32) {
    let unscaled = unscaled.into();
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(unscaled.unsigned_abs()).as_bytes();
    if !scaled(out, unscaled < 0, digits, scale) {
        let bytes = unscaled.to_be_bytes();
        from_blob(out, "Decimal", &[&scale.to_be_bytes(), trim(&bytes)]);
    }
}

/// A `decimal` from the big-endian two's complement bytes of its unscaled value, and its scale.
///
/// Both are kept: `1.50` is not `1.5`. A scale of up to [`PLAIN_SCALE_MAX`] is written with a decimal
/// point, others with an exponent (`123E+5`).
///
/// Cassandra 5.0 cannot parse a literal with a point or an exponent whose value is beyond the largest
/// double (it converts to one on the way); such values, and integers of more than
/// [`VARINT_TEXT_BYTES_MAX`] bytes, are written as bytes, in `blobAsDecimal(0x…)`.
///
/// # Errors
/// [`LiteralError::EmptyNumber`].
pub fn decimal_bytes(out: &mut Vec<u8>, big_endian: &[u8], scale: i32) -> Result<(), LiteralError> {
    let bytes = shortest(big_endian)?;
    let written = match Digits::of(bytes) {
        Some(digits) => scaled(out, digits.negative, digits.as_slice(), scale),
        None => false,
    };
    if !written {
        from_blob(out, "Decimal", &[&scale.to_be_bytes(), bytes]);
    }
    Ok(())
}

/// The largest scale that is written with a decimal point whatever the number of digits. Parquet's
/// usual decimals have at most 38 digits.
pub const PLAIN_SCALE_MAX: usize = 40;

/// Digits before the decimal point with which any number is below the largest double, 1.79…E308.
const INTEGRAL_DIGITS_MAX: i64 = 308;

/// Writes digits with their scale, or nothing (and false) when the servers could not parse it.
fn scaled(out: &mut Vec<u8>, negative: bool, digits: &[u8], scale: i32) -> bool {
    // A slice is never longer than i64::MAX bytes.
    let integral = i64::try_from(digits.len()).unwrap_or(i64::MAX).saturating_sub(i64::from(scale));
    let is_zero = digits == b"0";
    let Some(exponent) = scale.checked_neg() else { return false };
    if scale != 0 && integral > INTEGRAL_DIGITS_MAX && !is_zero {
        return false;
    }
    if negative {
        out.push(b'-');
    }
    match usize::try_from(scale) {
        Ok(0) => out.extend_from_slice(digits),
        Ok(fraction) if fraction < digits.len() => {
            let (before, after) = digits.split_at(digits.len() - fraction);
            out.extend_from_slice(before);
            out.push(b'.');
            out.extend_from_slice(after);
        }
        Ok(fraction) if fraction <= PLAIN_SCALE_MAX => {
            out.extend_from_slice(b"0.");
            out.resize(out.len() + fraction - digits.len(), b'0');
            out.extend_from_slice(digits);
        }
        _ => {
            out.extend_from_slice(digits);
            out.extend_from_slice(if exponent < 0 { b"E".as_slice() } else { b"E+" });
            super::integer(out, exponent);
        }
    }
    true
}

/// Two's complement bytes without the leading ones that only repeat the sign.
fn shortest(big_endian: &[u8]) -> Result<&[u8], LiteralError> {
    if big_endian.is_empty() { Err(LiteralError::EmptyNumber) } else { Ok(trim(big_endian)) }
}

fn trim(mut bytes: &[u8]) -> &[u8] {
    while let [first, second, ..] = bytes {
        let repeats = match first {
            0x00 => *second < 0x80,
            0xff => *second >= 0x80,
            _ => false,
        };
        if !repeats {
            break;
        }
        bytes = &bytes[1..];
    }
    bytes
}

/// The decimal digits of an integer's magnitude, most significant first, no leading zeros but for zero.
struct Digits {
    negative: bool,
    storage: Storage,
}

enum Storage {
    /// Up to 128 bits: 39 digits, of which these are used.
    Short([u8; 39], usize),
    Long(Vec<u8>),
}

impl Digits {
    /// Of two's complement bytes; none when there are more than [`VARINT_TEXT_BYTES_MAX`].
    fn of(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > VARINT_TEXT_BYTES_MAX {
            return None;
        }
        let negative = bytes.first().is_some_and(|first| *first >= 0x80);
        let storage = if bytes.len() <= 16 {
            let mut wide = [if negative { 0xff } else { 0 }; 16];
            wide[16 - bytes.len()..].copy_from_slice(bytes);
            let mut buffer = itoa::Buffer::new();
            let text = buffer.format(i128::from_be_bytes(wide).unsigned_abs()).as_bytes();
            let mut digits = [0; 39];
            digits[..text.len()].copy_from_slice(text);
            Storage::Short(digits, text.len())
        } else {
            Storage::Long(long_digits(magnitude(bytes, negative)))
        };
        Some(Self { negative, storage })
    }

    fn as_slice(&self) -> &[u8] {
        match &self.storage {
            Storage::Short(digits, used) => &digits[..*used],
            Storage::Long(digits) => digits,
        }
    }
}

/// The absolute value in 32-bit limbs, least significant first.
fn magnitude(bytes: &[u8], negative: bool) -> Vec<u32> {
    let mut limbs: Vec<u32> = bytes
        .rchunks(4)
        .map(|chunk| {
            let mut limb = [if negative { 0xff } else { 0 }; 4];
            limb[4 - chunk.len()..].copy_from_slice(chunk);
            u32::from_be_bytes(limb)
        })
        .collect();
    if negative {
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
            *limb = low32(part / BASE);
            remainder = part % BASE;
        }
        groups.push(low32(remainder));
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

/// A value that is below 2^32: a remainder of 10^9, or the quotient of (below 10^9 × 2^32) / 10^9.
#[expect(clippy::cast_possible_truncation, reason = "the callers' values are below 2^32, see above")]
fn low32(value: u64) -> u32 {
    debug_assert!(u32::try_from(value).is_ok());
    value as u32
}
