//! The numbers that DELTA_BINARY_PACKED packs: differences of neighbours, minus the smallest of them (Encodings.md,
//! "Delta Encoding").
//!
//! The inverse of [`delta`](crate::delta). All arithmetic wraps at the type's width.
//!
//! Speed: loads and stores bound it; it goes over the values twice, as the least difference is known last.
//! `docs/bench/kernels.md` has its distance from a copy of as many bytes (`make bench-kernels`).
//!
//! NEON: the portable form is compiled to vectors.

mod generic;
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::cpu::{Isa, dispatch, isa};
use crate::error::Error;

/// Computes the differences of `values`, each to the previous value and the first one to `before`, minus the smallest
/// difference, which is returned. Returns 0 for no values.
///
/// # Errors
///
/// `Mismatch` if `values` and `out` differ in length.
pub fn i32(before: i32, values: &[i32], out: &mut [u32]) -> Result<i32, Error> {
    i32_with(isa(), before, values, out)
}

/// [`i32`](fn@i32) for INT64.
///
/// # Errors
///
/// `Mismatch` if `values` and `out` differ in length.
pub fn i64(before: i64, values: &[i64], out: &mut [u64]) -> Result<i64, Error> {
    i64_with(isa(), before, values, out)
}

/// The number of bits that the largest value needs.
#[must_use]
pub fn width_u32(values: &[u32]) -> u32 {
    u32::BITS - values.iter().fold(0, |all, value| all | value).leading_zeros()
}

/// The number of bits that the largest value needs.
#[must_use]
pub fn width_u64(values: &[u64]) -> u32 {
    u64::BITS - values.iter().fold(0, |all, value| all | value).leading_zeros()
}

fn i32_with(isa: Isa, before: i32, values: &[i32], out: &mut [u32]) -> Result<i32, Error> {
    if values.len() != out.len() {
        return Err(Error::Mismatch);
    }
    // No contract beyond the features.
    Ok(dispatch!(isa,
        avx512: x86::i32_avx512(before, values, out),
        avx2: x86::i32_avx2(before, values, out),
        portable: generic::i32(before, values, out),
    ))
}

fn i64_with(isa: Isa, before: i64, values: &[i64], out: &mut [u64]) -> Result<i64, Error> {
    if values.len() != out.len() {
        return Err(Error::Mismatch);
    }
    // No contract beyond the features.
    Ok(dispatch!(isa,
        avx512: x86::i64_avx512(before, values, out),
        avx2: x86::i64_avx2(before, values, out),
        portable: generic::i64(before, values, out),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Random, rounds};
    use std::vec;
    use std::vec::Vec;

    #[test]
    fn differences_sum_up_to_the_values() {
        let mut random = Random::new(71);
        for round in 0..rounds(400) {
            let length = random.below(150);
            let shift = random.below(64) as u32;
            let wide: Vec<i64> = (0..length).map(|_| (random.next() as i64) >> shift).collect();
            let narrow: Vec<i32> = wide.iter().map(|&value| value as i32).collect();
            let before = [0, i64::MIN, i64::MAX, -7][round % 4];
            for isa in Isa::all() {
                let mut out = vec![9; length];
                let min = i64_with(isa, before, &wide, &mut out).unwrap();
                let deltas: Vec<i64> = (0..length)
                    .map(|i| wide[i].wrapping_sub(if i == 0 { before } else { wide[i - 1] }))
                    .collect();
                assert_eq!(min, deltas.iter().copied().min().unwrap_or(0));
                assert!(deltas.iter().zip(&out).all(|(d, o)| d.wrapping_sub(min) as u64 == *o), "{isa:?}");
                let (mut last, mut again) = (before, vec![0; length]);
                crate::delta::prefix_sum_i64(&mut last, min, &out, &mut again).unwrap();
                assert_eq!(again, wide);
                let largest = out.iter().copied().max().unwrap_or(0);
                assert_eq!(width_u64(&out), 64 - largest.leading_zeros());

                let mut out = vec![9; length];
                let min = i32_with(isa, before as i32, &narrow, &mut out).unwrap();
                let (mut last, mut again) = (before as i32, vec![0; length]);
                crate::delta::prefix_sum_i32(&mut last, min, &out, &mut again).unwrap();
                assert_eq!(again, narrow);
                assert!(length == 0 || out.contains(&0), "less the smallest");
                let largest = out.iter().copied().max().unwrap_or(0);
                assert_eq!(width_u32(&out), 32 - largest.leading_zeros());
            }
        }
        assert_eq!(i32(0, &[1], &mut []), Err(Error::Mismatch));
        assert_eq!(i64(0, &[], &mut [1]), Err(Error::Mismatch));
    }
}
