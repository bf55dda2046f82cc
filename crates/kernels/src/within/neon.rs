//! The portable forms, with an instruction for the words: the compiler turns the comparisons into vectors by itself.

use super::generic;
use crate::neon::pack;

macro_rules! neon {
    ($name:ident, $number:ty) => {
        #[target_feature(enable = "neon")]
        pub(super) fn $name(values: &[$number], bounds: [$number; 2], has_nan: bool, out: &mut [u64]) {
            generic::$name(values, bounds, has_nan, out, |bytes| pack(bytes));
        }
    };
}

neon!(i32, i32);
neon!(u32, u32);
neon!(i64, i64);
neon!(f32, f32);
neon!(f64, f64);
