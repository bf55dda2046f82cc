//! Casts between integer widths, in one place, each with the reason that it loses nothing.

/// Widens to `u64`. `usize` is at most 64 bits wide on every target Rust has.
#[inline]
pub const fn u64_of(value: usize) -> u64 {
    value as u64
}

/// `None` if the address space is too small.
#[inline]
pub fn usize_of(value: u64) -> Option<usize> {
    usize::try_from(value).ok()
}

/// Widens to `usize`. Targets of less than 32 bits are not supported; an assertion checks this.
#[inline]
pub const fn usize_of_u32(value: u32) -> usize {
    const { assert!(usize::BITS >= 32) }
    value as usize
}

/// A length or offset from the file. Thrift has only signed numbers; `None` if negative.
#[inline]
pub fn unsigned(value: i64) -> Option<u64> {
    u64::try_from(value).ok()
}

/// The same bits, read as signed.
#[inline]
#[expect(clippy::cast_possible_wrap, reason = "the wrap is what is asked for")]
pub const fn bits_i32(value: u32) -> i32 {
    value as i32
}

/// The same bits, read as signed.
#[inline]
#[expect(clippy::cast_possible_wrap, reason = "the wrap is what is asked for")]
pub const fn bits_i64(value: u64) -> i64 {
    value as i64
}

/// The same bits, read as unsigned.
#[inline]
#[expect(clippy::cast_sign_loss, reason = "the wrap is what is asked for")]
pub const fn bits_u32(value: i32) -> u32 {
    value as u32
}

/// The same bits, read as unsigned.
#[inline]
#[expect(clippy::cast_sign_loss, reason = "the wrap is what is asked for")]
pub const fn bits_u64(value: i64) -> u64 {
    value as u64
}

/// The low 32 bits.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the low bits are what is asked for")]
pub const fn low_u32(value: u64) -> u32 {
    value as u32
}

/// The low 8 bits.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the low bits are what is asked for")]
pub const fn low_u8(value: u64) -> u8 {
    value as u8
}

/// An integer as a binary64, if that holds it exactly.
pub fn exact_f64(value: i128) -> Option<f64> {
    let magnitude = value.unsigned_abs();
    let bits = (u128::BITS - magnitude.leading_zeros()).saturating_sub(magnitude.trailing_zeros());
    // With at most 53 significant bits nothing is rounded.
    (bits <= f64::MANTISSA_DIGITS).then_some(value as f64)
}

/// A binary64 without a fraction as an integer, if 128 bits hold it.
#[allow(clippy::cast_possible_truncation, reason = "what would be cut off is found by the way back")]
pub fn integer_of_f64(value: f64) -> Option<i128> {
    // 2^126, which is far from where the cast saturates.
    const ABOVE: f64 = 85_070_591_730_234_615_865_843_651_857_942_052_864.0;
    if !(-ABOVE..ABOVE).contains(&value) {
        return None;
    }
    let integer = value as i128;
    (integer as f64 == value).then_some(integer)
}

/// The binary32 next to a binary64. `None` for a finite number that is too large.
#[allow(clippy::cast_possible_truncation, reason = "the nearest is what is asked for")]
pub fn nearest_f32(value: f64) -> Option<f32> {
    let nearest = value as f32;
    (nearest.is_finite() || !value.is_finite()).then_some(nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_floats() {
        for (value, is_exact) in [
            (0, true),
            (1 << 53, true),
            ((1 << 53) + 1, false),
            (-(1 << 60), true),
            (i128::MIN, true),
            (i128::MAX, false),
        ] {
            assert_eq!(exact_f64(value).is_some(), is_exact, "{value}");
        }
        assert_eq!(integer_of_f64(-3.0), Some(-3));
        assert_eq!(integer_of_f64(1e30), Some(1_000_000_000_000_000_019_884_624_838_656));
        for value in [0.5, 1e300, f64::NAN, f64::INFINITY] {
            assert_eq!(integer_of_f64(value), None, "{value}");
        }
        assert_eq!(nearest_f32(0.1), Some(0.1));
        assert_eq!((nearest_f32(1e39), nearest_f32(f64::INFINITY)), (None, Some(f32::INFINITY)));
    }
}
