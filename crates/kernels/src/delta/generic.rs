//! The portable twins.

#[inline]
pub(super) fn sum_i32(last: &mut i32, min_delta: i32, values: &mut [i32]) {
    let mut sum = *last;
    for value in values {
        sum = sum.wrapping_add(value.wrapping_add(min_delta));
        *value = sum;
    }
    *last = sum;
}

#[inline]
pub(super) fn sum_i64(last: &mut i64, min_delta: i64, values: &mut [i64]) {
    let mut sum = *last;
    for value in values {
        sum = sum.wrapping_add(value.wrapping_add(min_delta));
        *value = sum;
    }
    *last = sum;
}
