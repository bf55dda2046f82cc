//! AVX2: sums within the 128-bit halves, then adds the lower half's total to the upper half. The sum of all values before them is added
//! last, so that the next vector waits for one addition only.

use crate::unpack::avx2::{Eights, Fours};
use crate::unpack::shuffles::pad;
use core::arch::x86_64::*;

/// The sums of 8 lanes: each lane, its predecessors, and the ramp.
#[inline]
#[target_feature(enable = "avx2")]
fn sum8(deltas: __m256i, ramp: __m256i) -> __m256i {
    let mut x = deltas;
    x = _mm256_add_epi32(x, _mm256_slli_si256::<4>(x));
    x = _mm256_add_epi32(x, _mm256_slli_si256::<8>(x));
    // Zero for the lower half, the lower half's last lane for the upper.
    let lower = _mm256_shuffle_epi32::<0xff>(_mm256_permute2x128_si256::<0x08>(x, x));
    _mm256_add_epi32(_mm256_add_epi32(x, lower), ramp)
}

/// `min_delta` times 1, 2, … 8.
#[inline]
#[target_feature(enable = "avx2")]
fn ramp8(min_delta: i32) -> __m256i {
    _mm256_mullo_epi32(_mm256_set_epi32(8, 7, 6, 5, 4, 3, 2, 1), _mm256_set1_epi32(min_delta))
}

#[inline]
#[target_feature(enable = "avx2")]
fn sum4(deltas: __m256i, ramp: __m256i) -> __m256i {
    let x = _mm256_add_epi64(deltas, _mm256_slli_si256::<8>(deltas));
    let lower = _mm256_permute2x128_si256::<0x08>(x, x);
    _mm256_add_epi64(_mm256_add_epi64(x, _mm256_unpackhi_epi64(lower, lower)), ramp)
}

/// `min_delta` times 1, 2, 3 and 4.
#[inline]
#[target_feature(enable = "avx2")]
fn ramp4(min_delta: i64) -> __m256i {
    let step = |k: i64| min_delta.wrapping_mul(k);
    _mm256_set_epi64x(step(4), step(3), step(2), step(1))
}

/// # Safety
///
/// The processor has the features; no width is above `unpack::shuffles::WIDTH_U32_MAX`; `values` is a multiple of 8;
/// `out` has room for `values` per width, and `input` has the bits of all of them.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn block_i32(
    widths: &[u8],
    values: usize,
    input: &[u8],
    min_delta: i32,
    last: &mut i32,
    out: &mut [i32],
) {
    let (ramp, top) = (ramp8(min_delta), _mm256_set1_epi32(7));
    let mut before = _mm256_set1_epi32(*last);
    let (mut to, mut at) = (out.as_mut_ptr(), 0);
    for &width in widths {
        let step = usize::from(width);
        let eights = Eights::new(u32::from(width).max(1));
        for _ in 0..values / 8 {
            let sums = if width == 0 {
                ramp
            } else if input.len() - at >= eights.reach() {
                // SAFETY: `reach` bytes follow `at`.
                sum8(unsafe { eights.unpack(input.as_ptr().add(at)) }, ramp)
            } else {
                let padded = pad(&input[at..], step);
                // SAFETY: what is padded is as long as any group reaches.
                sum8(unsafe { eights.unpack(padded.as_ptr()) }, ramp)
            };
            // SAFETY: `to` is the number of a group, and each is within `out`.
            unsafe {
                _mm256_storeu_si256(to.cast(), _mm256_add_epi32(sums, before));
                to = to.add(8);
            }
            before = _mm256_add_epi32(before, _mm256_permutevar8x32_epi32(sums, top));
            at += step;
        }
    }
    *last = _mm256_cvtsi256_si32(before);
}

/// # Safety
///
/// The processor has the features; no width is above `unpack::shuffles::WIDTH_U64_MAX`; `values` is a multiple of 8;
/// `out` has room for `values` per width, and `input` has the bits of all of them.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn block_i64(
    widths: &[u8],
    values: usize,
    input: &[u8],
    min_delta: i64,
    last: &mut i64,
    out: &mut [i64],
) {
    let ramp = ramp4(min_delta);
    let mut before = _mm256_set1_epi64x(*last);
    let (mut to, mut at) = (out.as_mut_ptr(), 0);
    for &width in widths {
        let step = usize::from(width);
        let fours = Fours::new(u32::from(width).max(1));
        for _ in 0..values / 8 {
            let deltas = if width == 0 {
                [_mm256_setzero_si256(); 2]
            } else if input.len() - at >= fours.reach() {
                // SAFETY: `reach` bytes follow `at`.
                unsafe { fours.unpack(input.as_ptr().add(at)) }
            } else {
                let padded = pad(&input[at..], step);
                // SAFETY: what is padded is as long as any group reaches.
                unsafe { fours.unpack(padded.as_ptr()) }
            };
            for deltas in deltas {
                let sums = sum4(deltas, ramp);
                // SAFETY: `to` is the number of a half of a group, and each is within `out`.
                unsafe {
                    _mm256_storeu_si256(to.cast(), _mm256_add_epi64(sums, before));
                    to = to.add(4);
                }
                before = _mm256_add_epi64(before, _mm256_permute4x64_epi64::<0xff>(sums));
            }
            at += step;
        }
    }
    *last = _mm_cvtsi128_si64(_mm256_castsi256_si128(before));
}

#[target_feature(enable = "avx2")]
pub(super) fn sum_i32(last: &mut i32, min_delta: i32, values: &mut [i32]) {
    let (ramp, top) = (ramp8(min_delta), _mm256_set1_epi32(7));
    let mut before = _mm256_set1_epi32(*last);
    let (blocks, rest) = values.as_chunks_mut::<8>();
    for block in blocks {
        let at: *mut __m256i = block.as_mut_ptr().cast();
        // SAFETY: `block` is 32 bytes, read and written unaligned.
        unsafe {
            let sums = sum8(_mm256_loadu_si256(at), ramp);
            _mm256_storeu_si256(at, _mm256_add_epi32(sums, before));
            before = _mm256_add_epi32(before, _mm256_permutevar8x32_epi32(sums, top));
        }
    }
    *last = _mm256_cvtsi256_si32(before);
    super::generic::sum_i32(last, min_delta, rest);
}

#[target_feature(enable = "avx2")]
pub(super) fn sum_i64(last: &mut i64, min_delta: i64, values: &mut [i64]) {
    let ramp = ramp4(min_delta);
    let mut before = _mm256_set1_epi64x(*last);
    let (blocks, rest) = values.as_chunks_mut::<4>();
    for block in blocks {
        let at: *mut __m256i = block.as_mut_ptr().cast();
        // SAFETY: `block` is 32 bytes, read and written unaligned.
        unsafe {
            let sums = sum4(_mm256_loadu_si256(at), ramp);
            _mm256_storeu_si256(at, _mm256_add_epi64(sums, before));
            before = _mm256_add_epi64(before, _mm256_permute4x64_epi64::<0xff>(sums));
        }
    }
    *last = _mm_cvtsi128_si64(_mm256_castsi256_si128(before));
    super::generic::sum_i64(last, min_delta, rest);
}
