//! `varint` and `decimal`: integers of any length, and their scale.

use alloc::vec::Vec;

use marquetry_base::print::{DIGITS_BYTES_MAX, Digits};
use marquetry_base::twos_complement::shortest;

use super::{LiteralError, from_blob};

/// The longest integer, in bytes, that is written as decimal digits. A longer one is written as bytes, in
/// `blobAsVarint(0x…)`; the value is the same.
pub const VARINT_TEXT_BYTES_MAX: usize = DIGITS_BYTES_MAX;

/// A `varint` from its big-endian two's complement bytes, any number of them.
///
/// # Errors
/// [`LiteralError::EmptyNumber`].
pub fn varint(out: &mut Vec<u8>, big_endian: &[u8]) -> Result<(), LiteralError> {
    let bytes = number(big_endian)?;
    match Digits::of_bytes(bytes) {
        Some(digits) => digits.integer(out),
        None => from_blob(out, "Varint", &[bytes]),
    }
    Ok(())
}

/// A `decimal`, `unscaled` × 10^-`scale`; see [`decimal_bytes`].
pub fn decimal(out: &mut Vec<u8>, unscaled: impl Into<i128>, scale: i32) {
    let unscaled = unscaled.into();
    if !scaled(out, &Digits::of(unscaled), scale) {
        from_blob(out, "Decimal", &[&scale.to_be_bytes(), shortest(&unscaled.to_be_bytes())]);
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
    let bytes = number(big_endian)?;
    let is_written = Digits::of_bytes(bytes).is_some_and(|digits| scaled(out, &digits, scale));
    if !is_written {
        from_blob(out, "Decimal", &[&scale.to_be_bytes(), bytes]);
    }
    Ok(())
}

/// The largest scale that is always written with a decimal point, whatever the number of digits. Parquet's usual
/// decimals have at most 38 digits.
pub const PLAIN_SCALE_MAX: usize = 40;

/// Up to this many digits before the decimal point, any number is below the largest double, 1.79…E308.
const INTEGRAL_DIGITS_MAX: i64 = 308;

/// Writes digits with their scale. If the servers could not parse that, writes nothing and returns false.
fn scaled(out: &mut Vec<u8>, digits: &Digits, scale: i32) -> bool {
    let count = digits.as_slice().len();
    // A slice is never longer than i64::MAX bytes.
    let integral = i64::try_from(count).unwrap_or(i64::MAX).saturating_sub(i64::from(scale));
    let is_zero = digits.as_slice() == b"0";
    if scale == i32::MIN || (scale != 0 && integral > INTEGRAL_DIGITS_MAX && !is_zero) {
        return false;
    }
    match usize::try_from(scale) {
        Ok(fraction) if fraction < count || fraction <= PLAIN_SCALE_MAX => digits.fixed(out, fraction),
        _ => digits.scientific(out, -i64::from(scale)),
    }
    true
}

/// The fewest bytes of a number.
fn number(big_endian: &[u8]) -> Result<&[u8], LiteralError> {
    if big_endian.is_empty() { Err(LiteralError::EmptyNumber) } else { Ok(shortest(big_endian)) }
}
