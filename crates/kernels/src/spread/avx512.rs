//! AVX-512: values expand to the lanes whose bit is set.

use core::arch::x86_64::*;

/// At most 64 slots by expansion: the values of a vector go to the lanes whose bit is set.
///
/// # Safety
///
/// The processor has the features; `T` has 4, 8 or 16 bytes and no padding; `dense` has as many values as bits are set in `word`,
/// which are among the lowest `slots.len()`.
#[target_feature(enable = "avx512f,avx512bw,popcnt,bmi1,bmi2")]
pub(super) unsafe fn out_of_place<T>(dense: &[T], slots: &mut [T], word: u64) {
    // Lanes of 8 bytes, or of 4: a value of 16 bytes is two.
    let lanes_a_value = size_of::<T>().div_ceil(8);
    let lanes = if size_of::<T>() == 4 { 16 } else { 8 };
    let values = lanes / lanes_a_value;
    let (mut word, mut taken) = (word, 0);
    for at in (0..slots.len()).step_by(values) {
        let bits = word & ((1 << values) - 1);
        word >>= values;
        let count = bits.count_ones() as usize;
        let left = (slots.len() - at).min(values) * lanes_a_value;
        let (loaded, stored) = ((1u32 << (count * lanes_a_value)) - 1, (1u32 << left) - 1);
        // SAFETY: the masks select the `count` values from `taken` on, which are within `dense`, because that many
        // bits are set; and the slots from `at` on, as many as exist. Masked-out lanes are not accessed; pointers
        // are within or at the slices' ends.
        unsafe {
            let (from, to) = (dense.as_ptr().add(taken), slots.as_mut_ptr().add(at));
            match size_of::<T>() {
                4 => {
                    let dense = _mm512_maskz_loadu_epi32(loaded as u16, from.cast());
                    let spread = _mm512_maskz_expand_epi32(bits as u16, dense);
                    _mm512_mask_storeu_epi32(to.cast(), stored as u16, spread);
                }
                size => {
                    let dense = _mm512_maskz_loadu_epi64(loaded as u8, from.cast());
                    let bits = if size == 8 { bits as u8 } else { _pdep_u64(bits, 0x55) as u8 * 3 };
                    _mm512_mask_storeu_epi64(to.cast(), stored as u8, _mm512_maskz_expand_epi64(bits, dense));
                }
            }
        }
        taken += count;
    }
}

/// 64 rows by expansion: the values of a vector go to the lanes whose bit is set.
///
/// # Safety
///
/// The processor has the features; `T` has 4, 8 or 16 bytes and no padding; `64 <= rows <= values.len()`; `left` is
/// at most the bits set in `word` plus `rows - 64`, and at least the bits set in `word`.
#[target_feature(enable = "avx512f,avx512bw,popcnt,bmi1,bmi2")]
pub(super) unsafe fn mixed<T>(values: &mut [T], left: usize, rows: usize, word: u64) {
    let lanes = 64 / size_of::<T>();
    let base = values.as_mut_ptr();
    let (mut left, mut rows) = (left, rows);
    let mut word = word;
    for _ in 0..64 / lanes {
        // The uppermost `lanes` rows.
        let mask = word >> (64 - lanes);
        word <<= lanes;
        rows -= lanes;
        left -= mask.count_ones() as usize;
        // SAFETY: `left` values now belong to the rows below `rows`, so `left <= rows`, and a vector of `lanes`
        // values from `left` on ends at or before `rows + lanes`, which is within `values`. The store covers the
        // rows `rows..rows + lanes`; values still to move lie below `left <= rows`, so none is overwritten.
        unsafe {
            let dense = _mm512_loadu_si512(base.add(left).cast());
            let spread = match size_of::<T>() {
                4 => _mm512_maskz_expand_epi32(mask as u16, dense),
                8 => _mm512_maskz_expand_epi64(mask as u8, dense),
                // Two 64-bit lanes a value.
                _ => _mm512_maskz_expand_epi64(_pdep_u64(mask, 0x55) as u8 * 3, dense),
            };
            _mm512_storeu_si512(base.add(rows).cast(), spread);
        }
    }
}
