//! AVX2: the portable form, compiled with it.

use super::generic;
use crate::plain::Plain;

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(super) fn values<T: Plain>(values: &[T], validity: &[u8], first: usize, out: &mut [T]) -> usize {
    generic::values_by(values, validity, first, out, generic::each)
}

/// Not `pext`, which takes hundreds of cycles on the first AMD processors that have it.
#[target_feature(enable = "bmi1")]
pub(super) fn extract(word: u64, mask: u64) -> u64 {
    generic::extract(word, mask)
}
