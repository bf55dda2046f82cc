//! The portable forms, compiled with wider vectors: intrinsics would not improve on them.

use super::generic;
use crate::bits;

macro_rules! x86 {
    ($name:ident, $number:ty, $avx2:ident, $avx512:ident) => {
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
        pub(super) fn $avx512(values: &[$number], bounds: [$number; 2], has_nan: bool, out: &mut [u64]) {
            generic::$name(values, bounds, has_nan, out, bits::pack);
        }

        #[target_feature(enable = "avx2")]
        pub(super) fn $avx2(values: &[$number], bounds: [$number; 2], has_nan: bool, out: &mut [u64]) {
            generic::$name(values, bounds, has_nan, out, bits::pack);
        }
    };
}

x86!(i32, i32, i32_avx2, i32_avx512);
x86!(u32, u32, u32_avx2, u32_avx512);
x86!(i64, i64, i64_avx2, i64_avx512);
x86!(f32, f32, f32_avx2, f32_avx512);
x86!(f64, f64, f64_avx2, f64_avx512);
