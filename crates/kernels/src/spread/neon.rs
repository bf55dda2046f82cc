//! NEON: values go to the lanes whose bit is set by a permutation that is looked up.

use super::places::places;
use crate::neon::ones_of_each;
use core::arch::aarch64::*;

static PLACES_4: [[u8; 16]; 16] = places::<16, 4, 16>();
static PLACES_8: [[u8; 16]; 4] = places::<4, 8, 16>();
static PLACES_16: [[u8; 16]; 2] = places::<2, 16, 16>();

/// The lowest values of `dense` to the lanes, of `size` bytes each, whose bit of `set` is set; zero to the others. `size` is 4, 8 or 16, and
/// `set` has no more bits than a vector has lanes.
#[inline]
#[target_feature(enable = "neon")]
fn expand(dense: uint8x16_t, size: usize, set: u64) -> uint8x16_t {
    let places: &[u8; 16] = match size {
        4 => &PLACES_4[set as usize & 15],
        8 => &PLACES_8[set as usize & 3],
        _ => &PLACES_16[set as usize & 1],
    };
    // SAFETY: 16 bytes are read.
    let places = unsafe { vld1q_u8(places.as_ptr()) };
    vqtbl1q_u8(dense, places)
}

/// Whole vectors of at most 64 slots. How many values were taken, and how many slots filled.
///
/// # Safety
///
/// The processor has the features; `T` has 4, 8 or 16 bytes and no padding; `dense` has as many values as bits are set in `word`,
/// which are among the lowest `slots.len()`.
#[target_feature(enable = "neon")]
pub(super) unsafe fn out_of_place<T>(dense: &[T], slots: &mut [T], word: u64) -> (usize, usize) {
    let size = size_of::<T>();
    let lanes = 16 / size;
    let (mut word, mut ones) = (word, ones_of_each(lanes, word));
    let (mut taken, mut filled) = (0, 0);
    while filled + lanes <= slots.len() && taken + lanes <= dense.len() {
        let (set, count) = (word & ((1 << lanes) - 1), ones & ((1 << lanes) - 1));
        (word, ones) = (word >> lanes, ones >> lanes);
        // SAFETY: a vector of `lanes` values, and one of slots, is left of each.
        unsafe {
            let vector = vld1q_u8(dense.as_ptr().add(taken).cast());
            vst1q_u8(slots.as_mut_ptr().add(filled).cast(), expand(vector, size, set));
        }
        taken += count as usize;
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
#[target_feature(enable = "neon")]
pub(super) unsafe fn mixed<T>(values: &mut [T], left: usize, rows: usize, word: u64) {
    let size = size_of::<T>();
    let lanes = 16 / size;
    let base = values.as_mut_ptr();
    let (mut left, mut rows) = (left, rows);
    let (mut word, mut ones) = (word, ones_of_each(lanes, word));
    for _ in 0..64 / lanes {
        // The uppermost `lanes` rows.
        let (set, count) = (word >> (64 - lanes), ones >> (64 - lanes));
        (word, ones) = (word << lanes, ones << lanes);
        rows -= lanes;
        left -= count as usize;
        // SAFETY: `left` values now belong to the rows below `rows`, so `left <= rows`, and a vector of `lanes` values from `left` on ends
        // at or before `rows + lanes`, which is within `values`. The store covers the rows `rows..rows + lanes`; values still to move
        // lie below `left <= rows`, so none is overwritten.
        unsafe {
            let dense = vld1q_u8(base.add(left).cast());
            vst1q_u8(base.add(rows).cast(), expand(dense, size, set));
        }
    }
}
