//! AVX2: sums within the 128-bit halves, then adds the lower half's total to the upper half.

use core::arch::x86_64::*;

#[target_feature(enable = "avx2")]
pub(super) fn sum_i32(last: &mut i32, min_delta: i32, values: &mut [i32]) {
    let steps = _mm256_set_epi32(8, 7, 6, 5, 4, 3, 2, 1);
    let ramp = _mm256_mullo_epi32(steps, _mm256_set1_epi32(min_delta));
    let top = _mm256_set1_epi32(7);
    let mut carry = _mm256_set1_epi32(*last);
    let (blocks, rest) = values.as_chunks_mut::<8>();
    for block in blocks {
        let at: *mut __m256i = block.as_mut_ptr().cast();
        // SAFETY: `block` is 32 bytes, read unaligned.
        let mut x = unsafe { _mm256_loadu_si256(at) };
        x = _mm256_add_epi32(x, _mm256_slli_si256::<4>(x));
        x = _mm256_add_epi32(x, _mm256_slli_si256::<8>(x));
        // Zero for the lower half, the lower half's last lane for the upper.
        let lower = _mm256_shuffle_epi32::<0xff>(_mm256_permute2x128_si256::<0x08>(x, x));
        x = _mm256_add_epi32(_mm256_add_epi32(x, lower), ramp);
        x = _mm256_add_epi32(x, carry);
        // SAFETY: as above, written.
        unsafe { _mm256_storeu_si256(at, x) };
        carry = _mm256_permutevar8x32_epi32(x, top);
    }
    *last = _mm256_cvtsi256_si32(carry);
    super::generic::sum_i32(last, min_delta, rest);
}

#[target_feature(enable = "avx2")]
pub(super) fn sum_i64(last: &mut i64, min_delta: i64, values: &mut [i64]) {
    let step = |k: i64| min_delta.wrapping_mul(k);
    let ramp = _mm256_set_epi64x(step(4), step(3), step(2), step(1));
    let mut carry = _mm256_set1_epi64x(*last);
    let (blocks, rest) = values.as_chunks_mut::<4>();
    for block in blocks {
        let at: *mut __m256i = block.as_mut_ptr().cast();
        // SAFETY: `block` is 32 bytes, read unaligned.
        let mut x = unsafe { _mm256_loadu_si256(at) };
        x = _mm256_add_epi64(x, _mm256_slli_si256::<8>(x));
        let lower = _mm256_permute2x128_si256::<0x08>(x, x);
        x = _mm256_add_epi64(x, _mm256_unpackhi_epi64(lower, lower));
        x = _mm256_add_epi64(_mm256_add_epi64(x, ramp), carry);
        // SAFETY: as above, written.
        unsafe { _mm256_storeu_si256(at, x) };
        carry = _mm256_permute4x64_epi64::<0xff>(x);
    }
    *last = _mm_cvtsi128_si64(_mm256_castsi256_si128(carry));
    super::generic::sum_i64(last, min_delta, rest);
}
