//! Which numbers are within bounds: a bit for each.
//!
//! Speed: loads bound it, comparisons, and narrowing to bits. `docs/bench/kernels.md` has its distance from a
//! copy of as many bytes (`make bench-kernels`).
//!
//! NEON: counted in its loop, not measured, an `i32` takes 1.0 instructions.

mod generic;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "x86_64")]
mod x86;

use self::generic::WORD;
use crate::bits;
use crate::cpu::{Isa, dispatch, isa};
use crate::error::Error;

/// Sets the bits of the numbers from the first bound to the last, both included, and clears the others.
///
/// # Errors
///
/// `Mismatch` as in [`i32`](fn@i32).
pub fn u32(values: &[u32], bounds: [u32; 2], out: &mut [u64]) -> Result<(), Error> {
    u32_with(isa(), values, bounds, false, out)
}

/// The implementation for each type of numbers.
macro_rules! private {
    ($name:ident, $with:ident, $number:ty, $avx2:ident, $avx512:ident) => {
        fn $with(
            isa: Isa,
            values: &[$number],
            bounds: [$number; 2],
            has_nan: bool,
            out: &mut [u64],
        ) -> Result<(), Error> {
            if out.len() != values.len().div_ceil(WORD) {
                return Err(Error::Mismatch);
            }
            // No contract beyond the features.
            dispatch!(isa,
                avx512: x86::$avx512(values, bounds, has_nan, out),
                avx2: x86::$avx2(values, bounds, has_nan, out),
                neon: neon::$name(values, bounds, has_nan, out),
                portable: generic::$name(values, bounds, has_nan, out, bits::pack),
            );
            Ok(())
        }
    };
}

/// The same for each type of numbers.
macro_rules! kernel {
    ($(#[$attribute:meta])* $name:ident, $with:ident, $number:ty, $avx2:ident, $avx512:ident) => {
        $(#[$attribute])*
        ///
        /// # Errors
        ///
        /// `Mismatch` if `out` does not have a word for every 64 values, the last of which may be fewer.
        pub fn $name(values: &[$number], bounds: [$number; 2], has_nan: bool, out: &mut [u64]) -> Result<(), Error> {
            $with(isa(), values, bounds, has_nan, out)
        }

        private!($name, $with, $number, $avx2, $avx512);
    };
}

kernel!(
    /// Sets the bits of the numbers from the first bound to the last, both included, and clears the others.
    ///
    /// Numbers are compared by how far they are from the first bound, which is the same for signed and for unsigned ones: so the
    /// bounds' order is of either kind, whichever the values are. No number is a NaN.
    i32, i32_with, i32, i32_avx2, i32_avx512
);
private!(u32, u32_with, u32, u32_avx2, u32_avx512);
kernel!(
    /// [`i32`](fn@i32) for INT64.
    i64, i64_with, i64, i64_avx2, i64_avx512
);
kernel!(
    /// Sets the bits of the numbers from the first bound to the last, both included, and clears the others. Zeros of either sign are equal. A
    /// NaN is set where `has_nan`.
    f32, f32_with, f32, f32_avx2, f32_avx512
);
kernel!(
    /// [`f32`](fn@f32) for DOUBLE.
    f64, f64_with, f64, f64_avx2, f64_avx512
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Random, rounds};
    use std::vec;
    use std::vec::Vec;

    fn set(out: &[u64], at: usize) -> bool {
        out[at / WORD] >> (at % WORD) & 1 == 1
    }

    #[test]
    fn whole_numbers_are_compared_by_either_sign() {
        let mut random = Random::new(5);
        for _ in 0..rounds(300) {
            let shift = random.below(64) as u32;
            let values: Vec<i64> = (0..random.below(300)).map(|_| (random.next() as i64) >> shift).collect();
            let [a, b] = [0; 2].map(|_: i32| (random.next() as i64) >> shift);
            let narrow: Vec<i32> = values.iter().map(|value| *value as i32).collect();
            for isa in Isa::all() {
                let mut out = vec![7; values.len().div_ceil(WORD)];
                let bounds = [a.min(b), a.max(b)];
                i64_with(isa, &values, bounds, false, &mut out).unwrap();
                let expected = |at: usize| (bounds[0]..=bounds[1]).contains(&values[at]);
                assert!((0..values.len()).all(|at| set(&out, at) == expected(at)), "{isa:?}");
                let bounds = [(a as u64).min(b as u64), (a as u64).max(b as u64)];
                i64_with(isa, &values, bounds.map(|it| it as i64), false, &mut out).unwrap();
                let expected = |at: usize| (bounds[0]..=bounds[1]).contains(&(values[at] as u64));
                assert!((0..values.len()).all(|at| set(&out, at) == expected(at)), "{isa:?}");
                let bounds = [(a as i32).min(b as i32), (a as i32).max(b as i32)];
                i32_with(isa, &narrow, bounds, false, &mut out).unwrap();
                let expected = |at: usize| (bounds[0]..=bounds[1]).contains(&narrow[at]);
                assert!((0..values.len()).all(|at| set(&out, at) == expected(at)), "{isa:?}");
                assert!(
                    !values.len().is_multiple_of(WORD) || out.is_empty() || values.len() / WORD == out.len()
                );
                // Bits beyond the last value are clear.
                let beyond = values.len()..out.len() * WORD;
                assert!(beyond.into_iter().all(|at| !set(&out, at)));
            }
        }
        assert_eq!(i32(&[1; 65], [0, 1], false, &mut [0]), Err(Error::Mismatch));
    }

    #[test]
    fn reals_are_compared_by_value() {
        let mut random = Random::new(6);
        let special = [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.5, -1.5, f64::MIN_POSITIVE];
        for _ in 0..rounds(300) {
            let mut any = || special[random.below(special.len())];
            let values: Vec<f64> = (0..200).map(|_| any()).collect();
            let narrow: Vec<f32> = values.iter().map(|value| *value as f32).collect();
            let (a, b) = (any(), any());
            for (isa, has_nan) in Isa::all().into_iter().flat_map(|isa| [(isa, true), (isa, false)]) {
                let mut out = vec![7; 4];
                f64_with(isa, &values, [a, b], has_nan, &mut out).unwrap();
                let is_in = |value: f64, a: f64, b: f64| match value.is_nan() {
                    true => has_nan,
                    false => a <= value && value <= b,
                };
                // Bounds are numbers.
                if !a.is_nan() && !b.is_nan() {
                    assert!((0..200).all(|at| set(&out, at) == is_in(values[at], a, b)), "{isa:?} {a} {b}");
                    f32_with(isa, &narrow, [a as f32, b as f32], has_nan, &mut out).unwrap();
                    let is_in = |at: usize| is_in(narrow[at].into(), (a as f32).into(), (b as f32).into());
                    assert!((0..200).all(|at| set(&out, at) == is_in(at)), "{isa:?} {a} {b}");
                }
            }
        }
    }
}
