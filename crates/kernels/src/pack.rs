//! Integers to bits: the inverse of [`unpack`](crate::unpack).
//!
//! Value `i` of width `w` begins at bit `i * w`, from the least significant bit of the first byte upwards (Encodings.md,
//! "Run Length Encoding / Bit-Packing Hybrid"). Bits of a value beyond the width are dropped; the bits of the last
//! byte after the last value are zero. If `out` is longer than the values need, its contents after them are
//! undefined; sixteen extra bytes let the last values be packed as fast as the others.
//!
//! Speed: shifts that join neighbours bound it; bytes are joined by multiplications with AVX2. `docs/bench/kernels.md` has its distance from
//! a copy of as many bytes (`make bench-kernels`). There are no forms for AVX-512: those that narrowed by its conversions and joined by `pext`
//! took, on a Zen 4, ten times as long for bytes, three times for numbers of 5 bits, twice for those of 17, and no less for `u64`, which they narrowed first.
//!
//! NEON: counted in its loops, not measured, a byte takes 0.8 instructions (0.3 of width 1), an integer of up to 8 bits 1.0, one of 9 to 15
//! bits 1.8. Wider ones are packed by the portable form.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod generic;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(test)]
mod tests;

use crate::cpu::{Isa, dispatch, isa};
use crate::error::{Error, need_bits};
use crate::unpack::bits_through;

/// Packs bytes of `width` bits; returns how many bytes they took.
///
/// # Errors
///
/// `Width` beyond 8; `Short` if `out` has fewer than `ceil(values.len() * width / 8)` bytes. Then `out` is unchanged.
pub fn u8(width: u32, values: &[u8], out: &mut [u8]) -> Result<usize, Error> {
    u8_with(isa(), width, values, out)
}

/// Packs numbers of `width` bits; returns how many bytes they took.
///
/// # Errors
///
/// `Width` beyond 32; `Short` if `out` has fewer than `ceil(values.len() * width / 8)` bytes. Then `out` is unchanged.
pub fn u32(width: u32, values: &[u32], out: &mut [u8]) -> Result<usize, Error> {
    u32_with(isa(), width, values, out)
}

/// Packs numbers of `width` bits; returns how many bytes they took.
///
/// # Errors
///
/// `Width` beyond 64; `Short` if `out` has fewer than `ceil(values.len() * width / 8)` bytes. Then `out` is unchanged.
pub fn u64(width: u32, values: &[u64], out: &mut [u8]) -> Result<usize, Error> {
    u64_with(isa(), width, values, out)
}

/// The bytes that the values take, if the width is valid and there is room for them.
fn bytes_of(width: u32, most: u32, values: usize, room: usize) -> Result<usize, Error> {
    if width > most {
        return Err(Error::Width { width: width as usize });
    }
    let bits = bits_through(width, 0, values);
    need_bits(bits, room)?;
    Ok(bits.unwrap_or(0).div_ceil(8))
}

fn u8_with(isa: Isa, width: u32, values: &[u8], out: &mut [u8]) -> Result<usize, Error> {
    let bytes = bytes_of(width, 8, values.len(), out.len())?;
    match width {
        0 => {}
        8 => out[..bytes].copy_from_slice(values),
        // The contract beyond the features: 1 <= width <= 7, and `out` has the bytes that the values take.
        _ => dispatch!(isa,
            avx512: avx2::u8(width, values, out),
            avx2: avx2::u8(width, values, out),
            neon: neon::u8(width, values, out),
            portable: generic::u8(width, values, out),
        ),
    }
    Ok(bytes)
}

fn u32_with(isa: Isa, width: u32, values: &[u32], out: &mut [u8]) -> Result<usize, Error> {
    let bytes = bytes_of(width, 32, values.len(), out.len())?;
    match width {
        0 => {}
        32 => out[..bytes].copy_from_slice(crate::plain::as_bytes(values)),
        // The contract beyond the features: 1 <= width <= 31, and `out` has the bytes that the values take.
        _ => dispatch!(isa,
            avx512: avx2::u32(width, values, out),
            avx2: avx2::u32(width, values, out),
            neon: neon::u32(width, values, out),
            portable: generic::u32(width, values, out),
        ),
    }
    Ok(bytes)
}

fn u64_with(isa: Isa, width: u32, values: &[u64], out: &mut [u8]) -> Result<usize, Error> {
    let bytes = bytes_of(width, 64, values.len(), out.len())?;
    match width {
        0 => {}
        64 => out[..bytes].copy_from_slice(crate::plain::as_bytes(values)),
        // The contract beyond the features: 1 <= width <= 63, and `out` has the bytes that the values take.
        _ => dispatch!(isa,
            avx512: avx2::u64(width, values, out),
            avx2: avx2::u64(width, values, out),
            portable: generic::u64(width, values, out),
        ),
    }
    Ok(bytes)
}
