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
