//! The prefix sums of DELTA_BINARY_PACKED (Encodings.md, "Delta Encoding").
//!
//! A block has one minimum delta; a miniblock packs each delta minus that minimum with its own width. Value `i` is then
//! `last + sum of (minimum + packed[k]) for k in 0..=i`, in arithmetic that wraps at the type's width.
//!
//! Speed: the sum bounds it, four or five shuffles for each register of values; the next register waits for one addition only. `docs/bench/kernels.md`
//! has its distance from a copy of as many bytes (`make bench-kernels`).
//!
//! NEON: counted in its loops, not measured, a value of a block takes 3.9 instructions (INT32) or 6.2 (INT64), unpacking included.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod generic;
#[cfg(target_arch = "aarch64")]
mod neon;

use crate::cpu::{Isa, dispatch, isa};
use crate::error::{Error, need_bits};
use crate::plain::cast_mut;
use crate::unpack::{bits_through, u32_with, u64_with};

/// Values summed at a time.
const PIECE: usize = 1024;

/// Sums unpacked deltas to values. `last` is the value before the first; it becomes the last value of `out`.
///
/// # Errors
///
/// `Mismatch` if `deltas` and `out` differ in length.
pub fn prefix_sum_i32(last: &mut i32, min_delta: i32, deltas: &[u32], out: &mut [i32]) -> Result<(), Error> {
    if deltas.len() != out.len() {
        return Err(Error::Mismatch);
    }
    // In pieces that stay in the first-level cache between the copy and the sum.
    for (values, deltas) in out.chunks_mut(PIECE).zip(deltas.chunks(PIECE)) {
        cast_mut::<i32, u32>(values).copy_from_slice(deltas);
        sum_i32_with(isa(), last, min_delta, values);
    }
    Ok(())
}

/// [`prefix_sum_i32`] for INT64.
///
/// # Errors
///
/// `Mismatch` if `deltas` and `out` differ in length.
pub fn prefix_sum_i64(last: &mut i64, min_delta: i64, deltas: &[u64], out: &mut [i64]) -> Result<(), Error> {
    if deltas.len() != out.len() {
        return Err(Error::Mismatch);
    }
    // In pieces that stay in the first-level cache between the copy and the sum.
    for (values, deltas) in out.chunks_mut(PIECE).zip(deltas.chunks(PIECE)) {
        cast_mut::<i64, u64>(values).copy_from_slice(deltas);
        sum_i64_with(isa(), last, min_delta, values);
    }
    Ok(())
}

/// Unpacks `out.len()` deltas of `width` bits, beginning with delta `first` of the miniblock that `input` begins with,
/// and sums them to values. `last` is the value before the first; it becomes the last value of `out`.
///
/// # Errors
///
/// `Width` above 32; `Short` if `input` ends before delta `first + out.len()`. Then `last` and `out` are unchanged.
pub fn miniblock_i32(
    width: u32,
    input: &[u8],
    first: usize,
    min_delta: i32,
    last: &mut i32,
    out: &mut [i32],
) -> Result<(), Error> {
    miniblock_i32_with(isa(), width, input, first, min_delta, last, out)
}

/// [`miniblock_i32`] for INT64, of at most 64 bits.
///
/// # Errors
///
/// `Width` above 64; `Short` if `input` ends before delta `first + out.len()`. Then `last` and `out` are unchanged.
pub fn miniblock_i64(
    width: u32,
    input: &[u8],
    first: usize,
    min_delta: i64,
    last: &mut i64,
    out: &mut [i64],
) -> Result<(), Error> {
    miniblock_i64_with(isa(), width, input, first, min_delta, last, out)
}

/// Decodes a block's miniblocks, of `values` deltas each, which are consecutive in `input`; `widths` has the width of
/// each. Returns the number of bytes read. `last` is the value before the first; it becomes the last value of `out`.
///
/// # Errors
///
/// `Mismatch` unless `out` has exactly as many values, a multiple of 32; `Width` above 32; `Short` if `input` ends
/// before they do. Then `last` and `out` are unchanged.
pub fn block_i32(
    widths: &[u8],
    values: usize,
    input: &[u8],
    min_delta: i32,
    last: &mut i32,
    out: &mut [i32],
) -> Result<usize, Error> {
    block_i32_with(isa(), widths, values, input, min_delta, last, out)
}

/// [`block_i32`] for INT64, of at most 64 bits.
///
/// # Errors
///
/// `Mismatch` unless `out` has exactly as many values, a multiple of 32; `Width` above 64; `Short` if `input` ends
/// before they do. Then `last` and `out` are unchanged.
pub fn block_i64(
    widths: &[u8],
    values: usize,
    input: &[u8],
    min_delta: i64,
    last: &mut i64,
    out: &mut [i64],
) -> Result<usize, Error> {
    block_i64_with(isa(), widths, values, input, min_delta, last, out)
}

/// Checks a block. Returns the bytes of its miniblocks, and the largest width.
fn check_block(
    widths: &[u8],
    values: usize,
    input: &[u8],
    out: usize,
    width_max: u8,
) -> Result<(usize, u8), Error> {
    if !values.is_multiple_of(32) || Some(out) != widths.len().checked_mul(values) {
        return Err(Error::Mismatch);
    }
    let (mut sum, mut largest) = (0, 0);
    for &width in widths {
        sum += usize::from(width);
        largest = largest.max(width);
    }
    if largest > width_max {
        return Err(Error::Width { width: largest.into() });
    }
    need_bits(sum.checked_mul(values), input.len())?;
    Ok((sum * (values / 8), largest))
}

fn block_i32_with(
    isa: Isa,
    widths: &[u8],
    values: usize,
    input: &[u8],
    min_delta: i32,
    last: &mut i32,
    out: &mut [i32],
) -> Result<usize, Error> {
    let (bytes, largest) = check_block(widths, values, input, out.len(), 32)?;
    #[cfg(target_arch = "x86_64")]
    if isa.level() == crate::cpu::Level::Avx512 && u32::from(largest) <= crate::unpack::avx512::WIDTH_U32_MAX
    {
        // SAFETY: the `Isa` proves the features; no width is larger; `check_block` found the room and the bits.
        unsafe { avx512::block_i32(widths, values, input, min_delta, last, out) };
        return Ok(bytes);
    }
    #[cfg(target_arch = "x86_64")]
    if isa.level() == crate::cpu::Level::Avx2
        && usize::from(largest) <= crate::unpack::shuffles::WIDTH_U32_MAX
    {
        // SAFETY: as above.
        unsafe { avx2::block_i32(widths, values, input, min_delta, last, out) };
        return Ok(bytes);
    }
    #[cfg(target_arch = "aarch64")]
    if isa.level() == crate::cpu::Level::Neon
        && usize::from(largest) <= crate::unpack::shuffles::WIDTH_U32_MAX
    {
        // SAFETY: the `Isa` proves the features; no width is larger; `check_block` found the room and the bits.
        unsafe { neon::block_i32(widths, values, input, min_delta, last, out) };
        return Ok(bytes);
    }
    let _ = largest;
    let mut at = 0;
    for (&width, out) in widths.iter().zip(out.chunks_exact_mut(values.max(1))) {
        miniblock_i32_with(isa, width.into(), &input[at..], 0, min_delta, last, out)?;
        at += usize::from(width) * (values / 8);
    }
    Ok(bytes)
}

fn block_i64_with(
    isa: Isa,
    widths: &[u8],
    values: usize,
    input: &[u8],
    min_delta: i64,
    last: &mut i64,
    out: &mut [i64],
) -> Result<usize, Error> {
    let (bytes, largest) = check_block(widths, values, input, out.len(), 64)?;
    #[cfg(target_arch = "x86_64")]
    if isa.level() == crate::cpu::Level::Avx512 && largest < 64 {
        // SAFETY: the `Isa` proves the features; no width is larger; `check_block` found the room and the bits.
        unsafe { avx512::block_i64(widths, values, input, min_delta, last, out) };
        return Ok(bytes);
    }
    #[cfg(target_arch = "x86_64")]
    if isa.level() == crate::cpu::Level::Avx2
        && usize::from(largest) <= crate::unpack::shuffles::WIDTH_U64_MAX
    {
        // SAFETY: as above.
        unsafe { avx2::block_i64(widths, values, input, min_delta, last, out) };
        return Ok(bytes);
    }
    #[cfg(target_arch = "aarch64")]
    if isa.level() == crate::cpu::Level::Neon
        && usize::from(largest) <= crate::unpack::shuffles::WIDTH_U64_MAX
    {
        // SAFETY: the `Isa` proves the features; no width is larger; `check_block` found the room and the bits.
        unsafe { neon::block_i64(widths, values, input, min_delta, last, out) };
        return Ok(bytes);
    }
    let _ = largest;
    let mut at = 0;
    for (&width, out) in widths.iter().zip(out.chunks_exact_mut(values.max(1))) {
        miniblock_i64_with(isa, width.into(), &input[at..], 0, min_delta, last, out)?;
        at += usize::from(width) * (values / 8);
    }
    Ok(bytes)
}

fn miniblock_i32_with(
    isa: Isa,
    width: u32,
    input: &[u8],
    first: usize,
    min_delta: i32,
    last: &mut i32,
    out: &mut [i32],
) -> Result<(), Error> {
    if width > 32 {
        return Err(Error::Width { width: width as usize });
    }
    need_bits(bits_through(width, first, out.len()), input.len())?;
    #[cfg(target_arch = "x86_64")]
    if let (crate::cpu::Level::Avx512, 1..=crate::unpack::avx512::WIDTH_U32_MAX) = (isa.level(), width)
        && (first * width as usize).is_multiple_of(8)
    {
        let input = &input[first * width as usize / 8..];
        // SAFETY: the `Isa` proves the features; `width` is in the range; `input` holds the deltas' bits.
        unsafe { avx512::miniblock_i32(width, input, min_delta, last, out) };
        return Ok(());
    }
    u32_with(isa, width, input, first, cast_mut(out))?;
    sum_i32_with(isa, last, min_delta, out);
    Ok(())
}

fn miniblock_i64_with(
    isa: Isa,
    width: u32,
    input: &[u8],
    first: usize,
    min_delta: i64,
    last: &mut i64,
    out: &mut [i64],
) -> Result<(), Error> {
    if width > 64 {
        return Err(Error::Width { width: width as usize });
    }
    need_bits(bits_through(width, first, out.len()), input.len())?;
    #[cfg(target_arch = "x86_64")]
    if let (crate::cpu::Level::Avx512, 1..=63) = (isa.level(), width)
        && (first * width as usize).is_multiple_of(8)
    {
        let input = &input[first * width as usize / 8..];
        // SAFETY: the `Isa` proves the features; `width` is in the range; `input` holds the deltas' bits.
        unsafe { avx512::miniblock_i64(width, input, min_delta, last, out) };
        return Ok(());
    }
    u64_with(isa, width, input, first, cast_mut(out))?;
    sum_i64_with(isa, last, min_delta, out);
    Ok(())
}

/// Sums in place: `values` holds the packed deltas, then the values.
fn sum_i32_with(isa: Isa, last: &mut i32, min_delta: i32, values: &mut [i32]) {
    // No contract beyond the features.
    dispatch!(isa,
        avx512: avx512::sum_i32(last, min_delta, values),
        avx2: avx2::sum_i32(last, min_delta, values),
        neon: neon::sum_i32(last, min_delta, values),
        portable: generic::sum_i32(last, min_delta, values),
    );
}

/// Sums in place: `values` holds the packed deltas, then the values.
fn sum_i64_with(isa: Isa, last: &mut i64, min_delta: i64, values: &mut [i64]) {
    // No contract beyond the features.
    dispatch!(isa,
        avx512: avx512::sum_i64(last, min_delta, values),
        avx2: avx2::sum_i64(last, min_delta, values),
        portable: generic::sum_i64(last, min_delta, values),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Random, packed, rounds};
    use std::vec;
    use std::vec::Vec;

    #[test]
    fn i32_miniblocks_of_every_width_and_length() {
        let mut random = Random::new(31);
        let bytes = random.bytes(32 * 160 / 8 + 8);
        for isa in Isa::all() {
            for width in (0..=32u32).step_by(if cfg!(miri) { 8 } else { 1 }) {
                for length in (0..70).chain([100, 128]).step_by(if cfg!(miri) { 23 } else { 1 }) {
                    for first in [0usize, 3, 8] {
                        let (start, min_delta) = (random.next() as i32, random.next() as i32);
                        let input = &bytes[..((first + length) * width as usize).div_ceil(8)];
                        let mut last = start;
                        let mut out = vec![0; length];
                        miniblock_i32_with(isa, width, input, first, min_delta, &mut last, &mut out).unwrap();
                        let mut sum = start;
                        for (i, value) in out.iter().enumerate() {
                            let delta = packed(input, width as usize, first + i) as i32;
                            sum = sum.wrapping_add(min_delta).wrapping_add(delta);
                            assert_eq!(*value, sum, "{isa:?} {width} {length} {first} {i}");
                        }
                        assert_eq!(last, sum);
                    }
                }
            }
        }
    }

    #[test]
    fn i64_miniblocks_of_every_width_and_length() {
        let mut random = Random::new(32);
        let bytes = random.bytes(64 * 160 / 8 + 8);
        for isa in Isa::all() {
            for width in (0..=64u32).step_by(if cfg!(miri) { 16 } else { 1 }) {
                for length in (0..40).chain([64, 100]).step_by(if cfg!(miri) { 23 } else { 1 }) {
                    for first in [0usize, 5, 16] {
                        let (start, min_delta) = (random.next() as i64, random.next() as i64);
                        let input = &bytes[..((first + length) * width as usize).div_ceil(8)];
                        let mut last = start;
                        let mut out = vec![0; length];
                        miniblock_i64_with(isa, width, input, first, min_delta, &mut last, &mut out).unwrap();
                        let mut sum = start;
                        for (i, value) in out.iter().enumerate() {
                            let delta = packed(input, width as usize, first + i) as i64;
                            sum = sum.wrapping_add(min_delta).wrapping_add(delta);
                            assert_eq!(*value, sum, "{isa:?} {width} {length} {first} {i}");
                        }
                        assert_eq!(last, sum);
                    }
                }
            }
        }
    }

    #[test]
    fn blocks_are_their_miniblocks() {
        let mut random = Random::new(34);
        let bytes = random.bytes(4 * 64 * 64 / 8 + 70);
        for isa in Isa::all() {
            for round in 0..rounds(200) {
                let (values, miniblocks) = ([32, 64][round % 2], round % 5);
                let largest = [0, 5, 30, 32, 63, 64][round % 6];
                let widths: Vec<u8> =
                    (0..miniblocks).map(|_| (random.next() % (largest + 1)) as u8).collect();
                let sum: usize = widths.iter().map(|&width| usize::from(width)).sum();
                // Followed by the next block, or nothing.
                let input = &bytes[..sum * values / 8 + [0, 3, 70][round % 3]];
                let (start, min_delta) = (random.next() as i64, random.next() as i64);
                let (mut last, mut want_last) = (start, start);
                let (mut out, mut want) = (vec![0; miniblocks * values], vec![0; miniblocks * values]);
                let mut at = 0;
                for (&width, want) in widths.iter().zip(want.chunks_mut(values)) {
                    miniblock_i64(width.into(), &input[at..], 0, min_delta, &mut want_last, want).unwrap();
                    at += usize::from(width) * values / 8;
                }
                let done = block_i64_with(isa, &widths, values, input, min_delta, &mut last, &mut out);
                assert_eq!((done, last, &out), (Ok(at), want_last, &want), "{isa:?} {widths:?}");
                if at > 0 {
                    let short =
                        block_i64_with(isa, &widths, values, &input[..at - 1], 0, &mut last, &mut out);
                    assert!(short.is_err() && last == want_last && out == want);
                }
                let (start, min_delta) = (start as i32, min_delta as i32);
                let (mut last, mut want_last) = (start, start);
                let (mut out, mut want) = (vec![0; miniblocks * values], vec![0; miniblocks * values]);
                let done = block_i32_with(isa, &widths, values, input, min_delta, &mut last, &mut out);
                if widths.iter().any(|&width| width > 32) {
                    assert!(done.is_err() && last == start);
                    continue;
                }
                let mut at = 0;
                for (&width, want) in widths.iter().zip(want.chunks_mut(values)) {
                    miniblock_i32(width.into(), &input[at..], 0, min_delta, &mut want_last, want).unwrap();
                    at += usize::from(width) * values / 8;
                }
                assert_eq!((done, last, &out), (Ok(at), want_last, &want), "{isa:?} {widths:?}");
            }
            let out = &mut [0; 32];
            assert_eq!(block_i64_with(isa, &[0], 31, &[], 0, &mut 0, out), Err(Error::Mismatch));
            assert_eq!(block_i64_with(isa, &[0, 0], 32, &[], 0, &mut 0, out), Err(Error::Mismatch));
            assert_eq!(
                block_i64_with(isa, &[65], 32, &[0; 999], 0, &mut 0, out),
                Err(Error::Width { width: 65 })
            );
        }
    }

    #[test]
    fn sums_of_unpacked_deltas() {
        let mut random = Random::new(33);
        for length in 0..rounds(150) {
            let deltas: Vec<u64> = (0..length).map(|_| random.next()).collect();
            let narrow: Vec<u32> = deltas.iter().map(|&d| d as u32).collect();
            let (mut last, mut out) = (-5, vec![0; length]);
            prefix_sum_i64(&mut last, i64::MIN, &deltas, &mut out).unwrap();
            let (mut last32, mut out32) = (-5, vec![0; length]);
            prefix_sum_i32(&mut last32, -3, &narrow, &mut out32).unwrap();
            for isa in Isa::all() {
                let mut values: Vec<i64> = deltas.iter().map(|&d| d as i64).collect();
                let mut sum = -5;
                sum_i64_with(isa, &mut sum, i64::MIN, &mut values);
                assert_eq!((&values, sum), (&out, last));
                let mut values: Vec<i32> = narrow.iter().map(|&d| d as i32).collect();
                let mut sum = -5;
                sum_i32_with(isa, &mut sum, -3, &mut values);
                assert_eq!((&values, sum), (&out32, last32));
            }
            let mut naive = -5i64;
            for (value, delta) in out.iter().zip(&deltas) {
                naive = naive.wrapping_add(i64::MIN).wrapping_add(*delta as i64);
                assert_eq!(*value, naive);
            }
        }
        assert_eq!(prefix_sum_i32(&mut 0, 0, &[1], &mut []), Err(Error::Mismatch));
        assert_eq!(prefix_sum_i64(&mut 0, 0, &[], &mut [1]), Err(Error::Mismatch));
    }

    #[test]
    fn refusals_leave_everything() {
        for isa in Isa::all() {
            let (mut last, mut out) = (7, [1i32; 33]);
            let short = miniblock_i32_with(isa, 8, &[0; 32], 0, 1, &mut last, &mut out);
            assert_eq!(short, Err(Error::Short { needed: 33, given: 32 }));
            let wide = miniblock_i32_with(isa, 33, &[0; 200], 0, 1, &mut last, &mut out);
            assert_eq!(wide, Err(Error::Width { width: 33 }));
            let far = miniblock_i32_with(isa, 8, &[0; 200], usize::MAX / 8, 1, &mut last, &mut out);
            assert!(matches!(far, Err(Error::Short { .. })));
            assert_eq!((last, out), (7, [1; 33]));
            let wide = miniblock_i64_with(isa, 65, &[0; 200], 0, 1, &mut 0, &mut [0; 3]);
            assert_eq!(wide, Err(Error::Width { width: 65 }));
        }
    }
}
