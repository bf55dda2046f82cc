//! AVX2: the portable form, compiled with it.

use super::generic;
use crate::plain::Plain;

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(super) fn values<T: Plain>(values: &[T], validity: &[u8], first: usize, out: &mut [T]) -> usize {
    generic::values_by(values, validity, first, out, generic::each)
}

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(super) fn bits(values: (&[u8], usize), validity: (&[u8], usize), count: usize, out: &mut [u8]) -> usize {
    generic::bits_by(values, validity, count, out, |word, mask| core::arch::x86_64::_pext_u64(word, mask))
}

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2,pclmulqdq")]
pub(super) fn bits_slow_pext(
    values: (&[u8], usize),
    validity: (&[u8], usize),
    count: usize,
    out: &mut [u8],
) -> usize {
    generic::bits_by(values, validity, count, out, |word, mask| crate::extract::avx2(word, mask))
}
