//! NEON: sums of four; the sum of all before them is added last, so that the next four wait for one addition only.
//!
//! Two numbers of 64 bits a vector save nothing beside one addition each.

use core::arch::aarch64::*;

#[target_feature(enable = "neon")]
pub(super) fn sum_i32(last: &mut i32, min_delta: i32, values: &mut [i32]) {
    let steps: [i32; 4] = core::array::from_fn(|k| min_delta.wrapping_mul(k as i32 + 1));
    // SAFETY: `steps` is 16 bytes.
    let ramp = unsafe { vld1q_s32(steps.as_ptr()) };
    let zero = vdupq_n_s32(0);
    let mut before = vdupq_n_s32(*last);
    let (blocks, rest) = values.as_chunks_mut::<4>();
    for block in blocks {
        // SAFETY: the block is 16 bytes.
        let mut x = unsafe { vld1q_s32(block.as_ptr()) };
        x = vaddq_s32(x, vextq_s32::<3>(zero, x));
        x = vaddq_s32(x, vextq_s32::<2>(zero, x));
        x = vaddq_s32(x, ramp);
        // SAFETY: as above, written.
        unsafe { vst1q_s32(block.as_mut_ptr(), vaddq_s32(x, before)) };
        before = vaddq_s32(before, vdupq_laneq_s32::<3>(x));
    }
    *last = vgetq_lane_s32::<0>(before);
    super::generic::sum_i32(last, min_delta, rest);
}
