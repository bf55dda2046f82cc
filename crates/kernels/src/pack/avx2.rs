//! AVX2: the portable form, compiled with it, which makes vectors of some of its shifts.
//!
//! Not `pext`, as for AVX-512: the first processors of AMD that have it take hundreds of cycles for one.

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
