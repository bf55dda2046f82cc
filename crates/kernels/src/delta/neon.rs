//! NEON: sums of four, or of two; the sum of all before them is added last, so that the next ones wait for one addition only.
//!
//! Two numbers of 64 bits a vector save nothing beside one addition each where the deltas are in memory, so there it is the portable form.
//! Those of a block are summed as they are unpacked, and are not in memory at all.

use crate::unpack::neon::{Eights, Fours};
use crate::unpack::shuffles::pad;
use core::arch::aarch64::*;

/// The sums of 4 lanes: each lane, its predecessors, and the ramp.
#[inline]
#[target_feature(enable = "neon")]
fn sum4(deltas: int32x4_t, ramp: int32x4_t) -> int32x4_t {
    let zero = vdupq_n_s32(0);
    let mut x = deltas;
    x = vaddq_s32(x, vextq_s32::<3>(zero, x));
    x = vaddq_s32(x, vextq_s32::<2>(zero, x));
    vaddq_s32(x, ramp)
}

/// `min_delta` times 1, 2, 3 and 4.
#[inline]
#[target_feature(enable = "neon")]
fn ramp4(min_delta: i32) -> int32x4_t {
    let steps: [i32; 4] = core::array::from_fn(|k| min_delta.wrapping_mul(k as i32 + 1));
    // SAFETY: `steps` is 16 bytes.
    unsafe { vld1q_s32(steps.as_ptr()) }
}

/// # Safety
///
/// No width is above `unpack::shuffles::WIDTH_U32_MAX`; `values` is a multiple of 8; `out` has room for `values` per width, and `input` has
/// the bits of all of them.
#[target_feature(enable = "neon")]
pub(super) unsafe fn block_i32(
    widths: &[u8],
    values: usize,
    input: &[u8],
    min_delta: i32,
    last: &mut i32,
    out: &mut [i32],
) {
    let ramp = ramp4(min_delta);
    let mut before = vdupq_n_s32(*last);
    let (mut to, mut at) = (out.as_mut_ptr(), 0);
    for &width in widths {
        let step = usize::from(width);
        let eights = Eights::new(u32::from(width).max(1));
        for _ in 0..values / 8 {
            let deltas = if width == 0 {
                [vdupq_n_u32(0); 2]
            } else if input.len() - at >= eights.reach() {
                // SAFETY: `reach` bytes follow `at`.
                unsafe { eights.unpack(input.as_ptr().add(at)) }
            } else {
                let padded = pad(&input[at..], step);
                // SAFETY: what is padded is as long as any group reaches.
                unsafe { eights.unpack(padded.as_ptr()) }
            };
            for deltas in deltas {
                let sums = sum4(vreinterpretq_s32_u32(deltas), ramp);
                // SAFETY: `to` is the number of a half of a group, and each is within `out`.
                unsafe {
                    vst1q_s32(to, vaddq_s32(sums, before));
                    to = to.add(4);
                }
                before = vaddq_s32(before, vdupq_laneq_s32::<3>(sums));
            }
            at += step;
        }
    }
    *last = vgetq_lane_s32::<0>(before);
}

/// # Safety
///
/// No width is above `unpack::shuffles::WIDTH_U64_MAX`; `values` is a multiple of 8; `out` has room for `values` per width, and `input` has
/// the bits of all of them.
#[target_feature(enable = "neon")]
pub(super) unsafe fn block_i64(
    widths: &[u8],
    values: usize,
    input: &[u8],
    min_delta: i64,
    last: &mut i64,
    out: &mut [i64],
) {
    let zero = vdupq_n_s64(0);
    let ramp = vsetq_lane_s64::<0>(min_delta, vdupq_n_s64(min_delta.wrapping_mul(2)));
    let mut before = vdupq_n_s64(*last);
    let (mut to, mut at) = (out.as_mut_ptr(), 0);
    for &width in widths {
        let step = usize::from(width);
        let fours = Fours::new(u32::from(width).max(1));
        for _ in 0..values / 8 {
            let deltas = if width == 0 {
                [vdupq_n_u64(0); 4]
            } else if input.len() - at >= fours.reach() {
                // SAFETY: `reach` bytes follow `at`.
                unsafe { fours.unpack(input.as_ptr().add(at)) }
            } else {
                let padded = pad(&input[at..], step);
                // SAFETY: what is padded is as long as any group reaches.
                unsafe { fours.unpack(padded.as_ptr()) }
            };
            for deltas in deltas {
                let deltas = vreinterpretq_s64_u64(deltas);
                let sums = vaddq_s64(vaddq_s64(deltas, vextq_s64::<1>(zero, deltas)), ramp);
                // SAFETY: `to` is the number of a quarter of a group, and each is within `out`.
                unsafe {
                    vst1q_s64(to, vaddq_s64(sums, before));
                    to = to.add(2);
                }
                before = vaddq_s64(before, vdupq_laneq_s64::<1>(sums));
            }
            at += step;
        }
    }
    *last = vgetq_lane_s64::<0>(before);
}

#[target_feature(enable = "neon")]
pub(super) fn sum_i32(last: &mut i32, min_delta: i32, values: &mut [i32]) {
    let ramp = ramp4(min_delta);
    let mut before = vdupq_n_s32(*last);
    let (blocks, rest) = values.as_chunks_mut::<4>();
    for block in blocks {
        // SAFETY: the block is 16 bytes, read and written.
        unsafe {
            let sums = sum4(vld1q_s32(block.as_ptr()), ramp);
            vst1q_s32(block.as_mut_ptr(), vaddq_s32(sums, before));
            before = vaddq_s32(before, vdupq_laneq_s32::<3>(sums));
        }
    }
    *last = vgetq_lane_s32::<0>(before);
    super::generic::sum_i32(last, min_delta, rest);
}
