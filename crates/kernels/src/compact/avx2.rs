//! AVX2: the portable form, compiled with it.

use super::{each, portable};
use crate::plain::Plain;

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(super) fn values<T: Plain>(values: &[T], validity: &[u8], first: usize, out: &mut [T]) -> usize {
    portable(values, validity, first, out, each)
}
