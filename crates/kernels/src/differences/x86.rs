//! The portable forms, compiled with wider vectors: intrinsics would not improve on them.

use super::generic;

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
pub(super) fn i32_avx512(before: i32, values: &[i32], out: &mut [u32]) -> i32 {
    generic::i32(before, values, out)
}

#[target_feature(enable = "avx2")]
pub(super) fn i32_avx2(before: i32, values: &[i32], out: &mut [u32]) -> i32 {
    generic::i32(before, values, out)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
pub(super) fn i64_avx512(before: i64, values: &[i64], out: &mut [u64]) -> i64 {
    generic::i64(before, values, out)
}

#[target_feature(enable = "avx2")]
pub(super) fn i64_avx2(before: i64, values: &[i64], out: &mut [u64]) -> i64 {
    generic::i64(before, values, out)
}
