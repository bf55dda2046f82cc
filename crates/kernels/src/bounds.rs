//! The least and the greatest of numbers, and how many are NaN.
//!
//! Speed: loads bound it, and comparisons. `docs/bench/kernels.md` has its distance from a copy of as many bytes
//! (`make bench-kernels`).
//!
//! The portable forms, compiled with wider vectors: intrinsics would not improve on them. NEON: the portable forms, which are
//! compiled to vectors.

use crate::cpu::{Isa, dispatch, isa};

macro_rules! integers {
    ($name:ident, $with:ident, $portable:ident, $avx2:ident, $avx512:ident, $number:ty) => {
        /// The least and the greatest of integers; `None` if there are none.
        pub fn $name(values: &[$number]) -> Option<($number, $number)> {
            $with(isa(), values)
        }

        fn $with(isa: Isa, values: &[$number]) -> Option<($number, $number)> {
            if values.is_empty() {
                return None;
            }
            // No contract beyond the features.
            Some(dispatch!(isa,
                avx512: $avx512(values),
                avx2: $avx2(values),
                portable: $portable(values),
            ))
        }

        #[inline(always)]
        fn $portable(values: &[$number]) -> ($number, $number) {
            let none = (<$number>::MAX, <$number>::MIN);
            values.iter().fold(none, |(least, most), &value| (least.min(value), most.max(value)))
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
        fn $avx512(values: &[$number]) -> ($number, $number) {
            $portable(values)
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2")]
        fn $avx2(values: &[$number]) -> ($number, $number) {
            $portable(values)
        }
    };
}

integers!(i32, i32_with, i32_portable, i32_avx2, i32_avx512, i32);
integers!(u32, u32_with, u32_portable, u32_avx2, u32_avx512, u32);
integers!(i64, i64_with, i64_portable, i64_avx2, i64_avx512, i64);
integers!(u64, u64_with, u64_portable, u64_avx2, u64_avx512, u64);

/// The bounds of floating-point numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Floats<T> {
    /// The least and the greatest of those that are numbers; of zeros that are bounds, either. `None` if none is a number.
    pub bounds: Option<(T, T)>,
    /// How many are NaN.
    pub nans: usize,
}

macro_rules! floats {
    ($name:ident, $with:ident, $portable:ident, $avx2:ident, $avx512:ident, $number:ty, $count:ty, $lanes:literal) => {
        /// The least and the greatest of floating-point numbers, and how many are NaN.
        pub fn $name(values: &[$number]) -> Floats<$number> {
            $with(isa(), values)
        }

        fn $with(isa: Isa, values: &[$number]) -> Floats<$number> {
            // No contract beyond the features.
            dispatch!(isa,
                avx512: $avx512(values),
                avx2: $avx2(values),
                portable: $portable(values),
            )
        }

        // Lanes, because no compiler may change the order of comparisons with NaNs by itself. Of fewer than 2^32 values in each.
        #[inline(always)]
        fn $portable(values: &[$number]) -> Floats<$number> {
            let (mut least, mut most) = ([<$number>::INFINITY; $lanes], [<$number>::NEG_INFINITY; $lanes]);
            let mut nans = 0;
            for values in values.chunks(1 << 24) {
                let mut counts = [0 as $count; $lanes];
                let (chunks, rest) = values.as_chunks::<$lanes>();
                for chunk in chunks {
                    for lane in 0..$lanes {
                        let value = chunk[lane];
                        least[lane] = if value < least[lane] { value } else { least[lane] };
                        most[lane] = if value > most[lane] { value } else { most[lane] };
                        counts[lane] += <$count>::from(value.is_nan());
                    }
                }
                for (lane, &value) in rest.iter().enumerate() {
                    least[lane] = if value < least[lane] { value } else { least[lane] };
                    most[lane] = if value > most[lane] { value } else { most[lane] };
                    counts[lane] += <$count>::from(value.is_nan());
                }
                nans += counts.iter().map(|&count| count as usize).sum::<usize>();
            }
            let least = least.into_iter().fold(<$number>::INFINITY, |least, other| if other < least { other } else { least });
            let most = most.into_iter().fold(<$number>::NEG_INFINITY, |most, other| if other > most { other } else { most });
            Floats { bounds: (nans < values.len()).then_some((least, most)), nans }
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
        fn $avx512(values: &[$number]) -> Floats<$number> {
            $portable(values)
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2")]
        fn $avx2(values: &[$number]) -> Floats<$number> {
            $portable(values)
        }
    };
}

floats!(f32, f32_with, f32_portable, f32_avx2, f32_avx512, f32, u32, 32);
floats!(f64, f64_with, f64_portable, f64_avx2, f64_avx512, f64, u64, 16);

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use super::*;
    use crate::testing::rounds;

    #[test]
    fn the_least_and_the_greatest_are_found_wherever_they_are() {
        for isa in Isa::all() {
            assert_eq!((i32_with(isa, &[]), u64_with(isa, &[])), (None, None));
            for length in 1..rounds(200) {
                for at in [0, length / 2, length - 1] {
                    let other = (at + 1) % length;
                    let mut values = vec![3; length];
                    (values[other], values[at]) = (i32::MIN, i32::MAX);
                    let least = if length == 1 { i32::MAX } else { i32::MIN };
                    assert_eq!(i32_with(isa, &values), Some((least, i32::MAX)));
                    let wide: Vec<i64> = values.iter().map(|&value| i64::from(value) << 32).collect();
                    assert_eq!(
                        i64_with(isa, &wide),
                        Some((i64::from(least) << 32, i64::from(i32::MAX) << 32))
                    );
                    // Without a sign, what was the least is greater.
                    let unsigned: Vec<u32> = values.iter().map(|&value| value.cast_unsigned()).collect();
                    let bounds = (unsigned.iter().copied().min(), unsigned.iter().copied().max());
                    assert_eq!(u32_with(isa, &unsigned), bounds.0.zip(bounds.1));
                    let unsigned: Vec<u64> = wide.iter().map(|&value| value.cast_unsigned()).collect();
                    let bounds = (unsigned.iter().copied().min(), unsigned.iter().copied().max());
                    assert_eq!(u64_with(isa, &unsigned), bounds.0.zip(bounds.1));
                }
            }
        }
    }

    #[test]
    fn nans_are_counted_and_bound_nothing() {
        for isa in Isa::all() {
            assert_eq!(f32_with(isa, &[]), Floats { bounds: None, nans: 0 });
            assert_eq!(f64_with(isa, &[f64::NAN; 40]), Floats { bounds: None, nans: 40 });
            assert_eq!(f64_with(isa, &[f64::INFINITY]).bounds, Some((f64::INFINITY, f64::INFINITY)));
            for length in 2..rounds(150) {
                for at in [0, length / 2, length - 1] {
                    let other = (at + 1) % length;
                    let mut values = vec![f32::NAN; length];
                    (values[other], values[at]) = (-7.5, 1e30);
                    let found = Floats { bounds: Some((-7.5, 1e30)), nans: length - 2 };
                    assert_eq!(f32_with(isa, &values), found);
                    let wide: Vec<f64> = values.iter().map(|&value| f64::from(value)).collect();
                    let found = Floats { bounds: Some((-7.5, f64::from(1e30_f32))), nans: length - 2 };
                    assert_eq!(f64_with(isa, &wide), found);
                }
            }
        }
    }
}
