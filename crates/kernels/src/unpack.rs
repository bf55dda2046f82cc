//! Bit-packed integers.
//!
//! Parquet packs the values of its RLE/bit-packed hybrid and of DELTA_BINARY_PACKED from the least significant bit of
//! the first byte upwards (Encodings.md, "Run Length Encoding / Bit-Packing Hybrid"); value `i` of width `w` begins at
//! bit `i * w`. The deprecated BIT_PACKED levels go from the most significant bit down ("Bit-packed (Deprecated)").
//!
//! Speed: shuffles, shifts and masks bound it, at most four for each register of values; at widths of 32 and 64
//! stores do. `docs/bench/kernels.md` has its distance from a copy of as many bytes (`make bench-kernels`).
//!
//! NEON: counted in its loops, not measured, a byte takes 0.7 instructions (0.3 of width 1), a `u32` 1.6 (2.6 of more than 25 bits), a `u64`
//! 2.8.

#[cfg(target_arch = "x86_64")]
pub(crate) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) mod avx512;
mod generic;
#[cfg(target_arch = "aarch64")]
pub(crate) mod neon;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) mod shuffles;
#[cfg(test)]
mod tests;

use crate::cpu::{Isa, dispatch, isa};
use crate::error::{Error, need_bits};
use crate::plain;

/// Unpacks `out.len()` values of `width` bits.
///
/// # Errors
///
/// `Width` beyond 32; `Short` if `input` holds fewer than `ceil(out.len() * width / 8)` bytes. Then `out` is unchanged.
pub fn u32(width: u32, input: &[u8], out: &mut [u32]) -> Result<(), Error> {
    u32_with(isa(), width, input, 0, out)
}

/// Unpacks `out.len()` values of `width` bits, beginning with value `first` of the run that `input` begins with.
///
/// So a run may be unpacked in pieces of any length; pieces of complete groups of eight are fastest.
///
/// # Errors
///
/// Those of [`u32`](fn@u32); `input` must reach as far as value `first + out.len()`.
pub fn u32_from(width: u32, input: &[u8], first: usize, out: &mut [u32]) -> Result<(), Error> {
    u32_with(isa(), width, input, first, out)
}

/// Unpacks `out.len()` values of `width` bits.
///
/// # Errors
///
/// `Width` beyond 64; `Short` if `input` holds too few bytes. Then `out` is unchanged.
pub fn u64(width: u32, input: &[u8], out: &mut [u64]) -> Result<(), Error> {
    u64_with(isa(), width, input, 0, out)
}

/// Unpacks `out.len()` values of `width` bits, beginning with value `first` of the run that `input` begins with.
///
/// # Errors
///
/// Those of [`u64`](fn@u64); `input` must reach as far as value `first + out.len()`.
pub fn u64_from(width: u32, input: &[u8], first: usize, out: &mut [u64]) -> Result<(), Error> {
    u64_with(isa(), width, input, first, out)
}

/// Unpacks levels of at most 8 bits, a byte each.
///
/// # Errors
///
/// `Width` beyond 8; otherwise as [`u32_from`].
pub fn u8_from(width: u32, input: &[u8], first: usize, out: &mut [u8]) -> Result<(), Error> {
    u8_with(isa(), width, input, first, out)
}

/// Unpacks levels of the deprecated BIT_PACKED encoding, most significant bit first, beginning with value `first`.
///
/// No writer has used it since 2013, so only the portable form exists.
///
/// # Errors
///
/// `Width` beyond 16; `Short` if `input` ends before value `first + out.len()`. Then `out` is unchanged.
pub fn msb_u16(width: u32, input: &[u8], first: usize, out: &mut [u16]) -> Result<(), Error> {
    if width > 16 {
        return Err(Error::Width { width: width as usize });
    }
    need_bits(bits_through(width, first, out.len()), input.len())?;
    generic::msb_u16(width, input, first, out);
    Ok(())
}

/// The bits that values `0..first + count` take, unless that overflows.
#[inline]
pub(crate) fn bits_through(width: u32, first: usize, count: usize) -> Option<usize> {
    first.checked_add(count)?.checked_mul(width as usize)
}

/// How many of `count` values, from value `first` on, come before one that begins on a byte.
#[inline]
fn head(width: u32, first: usize, count: usize) -> usize {
    if (first * width as usize).is_multiple_of(8) { 0 } else { (8 - first % 8).min(count) }
}

fn u8_with(isa: Isa, width: u32, input: &[u8], first: usize, out: &mut [u8]) -> Result<(), Error> {
    if width > 8 {
        return Err(Error::Width { width: width as usize });
    }
    need_bits(bits_through(width, first, out.len()), input.len())?;
    if width == 0 {
        out.fill(0);
        return Ok(());
    }
    let (start, rest) = out.split_at_mut(head(width, first, out.len()));
    generic::each(width, input, first, start.iter_mut(), |value| value as u8);
    if rest.is_empty() {
        return Ok(());
    }
    let input = &input[(first + start.len()) * width as usize / 8..];
    if width == 8 {
        plain::copy(input, rest);
        return Ok(());
    }
    // The contract beyond the features: 1 <= width <= 7, and `input` holds `rest.len() * width` bits, as in `u32_with`.
    dispatch!(isa,
        avx512: avx512::u8(width, input, rest),
        avx2: avx2::u8(width, input, rest),
        neon: neon::u8(width, input, rest),
        portable: generic::u8(width, input, rest),
    );
    Ok(())
}

pub(crate) fn u32_with(
    isa: Isa,
    width: u32,
    input: &[u8],
    first: usize,
    out: &mut [u32],
) -> Result<(), Error> {
    if width > 32 {
        return Err(Error::Width { width: width as usize });
    }
    need_bits(bits_through(width, first, out.len()), input.len())?;
    if width == 0 {
        out.fill(0);
        return Ok(());
    }
    let (start, rest) = out.split_at_mut(head(width, first, out.len()));
    generic::each(width, input, first, start.iter_mut(), |value| value as u32);
    if rest.is_empty() {
        return Ok(());
    }
    let input = &input[(first + start.len()) * width as usize / 8..];
    match width {
        32 => drop(plain::copy(input, rest)),
        // The contract beyond the features: 1 <= width <= 31 (25 for NEON and 30 for AVX-512), and `need_bits` has shown that
        // `input`, cut at the first value's byte, still holds `rest.len() * width` bits.
        1..=25 => dispatch!(isa,
            avx512: avx512::u32(width, input, rest),
            avx2: avx2::u32(width, input, rest),
            neon: neon::u32(width, input, rest),
            portable: generic::u32(width, input, rest),
        ),
        26..=30 => dispatch!(isa,
            avx512: avx512::u32(width, input, rest),
            avx2: avx2::u32_wide(width, input, rest),
            neon: neon::u32_wide(width, input, rest),
            portable: generic::u32(width, input, rest),
        ),
        // Two values of 31 bits may straddle nine bytes, which is too much for one multishift.
        _ => dispatch!(isa,
            avx512: avx2::u32_wide(width, input, rest),
            avx2: avx2::u32_wide(width, input, rest),
            neon: neon::u32_wide(width, input, rest),
            portable: generic::u32(width, input, rest),
        ),
    }
    Ok(())
}

pub(crate) fn u64_with(
    isa: Isa,
    width: u32,
    input: &[u8],
    first: usize,
    out: &mut [u64],
) -> Result<(), Error> {
    if width > 64 {
        return Err(Error::Width { width: width as usize });
    }
    need_bits(bits_through(width, first, out.len()), input.len())?;
    if width == 0 {
        out.fill(0);
        return Ok(());
    }
    let (start, rest) = out.split_at_mut(head(width, first, out.len()));
    generic::each(width, input, first, start.iter_mut(), |value| value);
    if rest.is_empty() {
        return Ok(());
    }
    let input = &input[(first + start.len()) * width as usize / 8..];
    match width {
        64 => drop(plain::copy(input, rest)),
        // The contract beyond the features: 1 <= width <= 63 (57 for AVX2 and NEON), and `input` holds `rest.len() * width`
        // bits, as in `u32_with`.
        1..=57 => dispatch!(isa,
            avx512: avx512::u64(width, input, rest),
            avx2: avx2::u64(width, input, rest),
            neon: neon::u64(width, input, rest),
            portable: generic::u64(width, input, rest),
        ),
        _ => dispatch!(isa,
            avx512: avx512::u64(width, input, rest),
            avx2: avx2::u64_portably(width, input, rest),
            portable: generic::u64(width, input, rest),
        ),
    }
    Ok(())
}
