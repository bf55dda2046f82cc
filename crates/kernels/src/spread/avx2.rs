//! AVX2: values go to the lanes whose bit is set by a permutation that is looked up.

use super::places::places;
use core::arch::x86_64::*;

static PLACES_4: [[u8; 8]; 256] = places::<256, 1, 8>();
static PLACES_8: [[u8; 8]; 16] = places::<16, 2, 8>();
static PLACES_16: [[u8; 8]; 4] = places::<4, 4, 8>();

/// The lowest values of `dense` to the lanes, of `size` bytes each, whose bit of `set` is set; zero to the others. `size` is 4, 8 or 16, and
/// `set` has no more bits than a vector has lanes.
#[inline]
#[target_feature(enable = "avx2")]
fn expand(dense: __m256i, size: usize, set: u64) -> __m256i {
    let places: &[u8; 8] = match size {
        4 => &PLACES_4[set as usize & 255],
        8 => &PLACES_8[set as usize & 15],
        _ => &PLACES_16[set as usize & 3],
    };
    let places = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(i64::from_le_bytes(*places)));
    let there = _mm256_cmpgt_epi32(_mm256_set1_epi32(8), places);
    _mm256_and_si256(_mm256_permutevar8x32_epi32(dense, places), there)
}

/// Whole vectors of at most 64 slots. How many values were taken, and how many slots filled.
///
/// # Safety
///
/// The processor has the features; `T` has 4, 8 or 16 bytes and no padding; `dense` has as many values as bits are set in `word`,
/// which are among the lowest `slots.len()`.
#[target_feature(enable = "avx2,popcnt")]
pub(super) unsafe fn out_of_place<T>(dense: &[T], slots: &mut [T], word: u64) -> (usize, usize) {
    let size = size_of::<T>();
    let lanes = 32 / size;
    let (mut word, mut taken, mut filled) = (word, 0, 0);
    while filled + lanes <= slots.len() && taken + lanes <= dense.len() {
        let set = word & ((1 << lanes) - 1);
        word >>= lanes;
        // SAFETY: a vector of `lanes` values, and one of slots, is left of each.
        unsafe {
            let vector = _mm256_loadu_si256(dense.as_ptr().add(taken).cast());
            _mm256_storeu_si256(slots.as_mut_ptr().add(filled).cast(), expand(vector, size, set));
        }
        taken += set.count_ones() as usize;
        filled += lanes;
    }
    (taken, filled)
}

/// 64 rows.
///
/// # Safety
///
/// The processor has the features; `T` has 4, 8 or 16 bytes and no padding; `64 <= rows <= values.len()`; `left` is
/// at most the bits set in `word` plus `rows - 64`, and at least the bits set in `word`.
#[target_feature(enable = "avx2,popcnt")]
pub(super) unsafe fn mixed<T>(values: &mut [T], left: usize, rows: usize, word: u64) {
    let size = size_of::<T>();
    let lanes = 32 / size;
    let base = values.as_mut_ptr();
    let (mut left, mut rows, mut word) = (left, rows, word);
    for _ in 0..64 / lanes {
        // The uppermost `lanes` rows.
        let set = word >> (64 - lanes);
        word <<= lanes;
        rows -= lanes;
        left -= set.count_ones() as usize;
        // SAFETY: `left` values now belong to the rows below `rows`, so `left <= rows`, and a vector of `lanes` values from `left` on ends
        // at or before `rows + lanes`, which is within `values`. The store covers the rows `rows..rows + lanes`; values still to move
        // lie below `left <= rows`, so none is overwritten.
        unsafe {
            let dense = _mm256_loadu_si256(base.add(left).cast());
            _mm256_storeu_si256(base.add(rows).cast(), expand(dense, size, set));
        }
    }
}
