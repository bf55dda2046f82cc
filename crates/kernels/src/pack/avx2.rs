//! AVX2: the portable form, compiled with AVX2, which vectorises some of its shifts.
//!
//! Unlike AVX-512, not `pext`: it takes hundreds of cycles on the first AMD processors that have it.

use super::generic;

#[target_feature(enable = "avx2,bmi2")]
pub(super) fn u32(width: u32, values: &[u32], out: &mut [u8]) {
    generic::u32(width, values, out);
}

#[target_feature(enable = "avx2,bmi2")]
pub(super) fn u64(width: u32, values: &[u64], out: &mut [u8]) {
    generic::u64(width, values, out);
}

#[target_feature(enable = "avx2,bmi2")]
pub(super) fn u8(width: u32, values: &[u8], out: &mut [u8]) {
    generic::u8(width, values, out);
}
