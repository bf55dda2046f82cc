//! NEON: a table lookup moves each lane's bytes into place, a shift by lane its bits.

use super::generic;
use super::shuffles::{EIGHTS, FOURS, SIXTEENS, full_loads, pad};
use core::arch::aarch64::*;

/// 16 values at a time, then eight.
///
/// # Safety
///
/// `width` is from 1 to 7; `input` holds `out.len() * width` bits.
#[target_feature(enable = "neon")]
pub(super) unsafe fn u8(width: u32, input: &[u8], out: &mut [u8]) {
    let step = width as usize;
    let control = &SIXTEENS[step & 7];
    // SAFETY: each field is 16 bytes.
    let (low, high, factors) = unsafe {
        (vld1q_u8(control.low.as_ptr()), vld1q_u8(control.high.as_ptr()), vld1q_u16(control.factors.as_ptr()))
    };
    let mask = vdup_n_u8(u8::MAX >> (8 - width));
    let unpack = |packed, bytes| {
        let lanes = vreinterpretq_u16_u8(vqtbl1q_u8(packed, bytes));
        vand_u8(vshrn_n_u16::<8>(vmulq_u16(lanes, factors)), mask)
    };
    let blocks = full_loads(input.len(), 2 * step, 16, out.len() / 16);
    for block in 0..blocks {
        // SAFETY: `block * 2 * step + 16 <= input.len()` by `full_loads`, and `block * 16 + 16 <= out.len()`.
        unsafe {
            let packed = vld1q_u8(input.as_ptr().add(block * 2 * step));
            let values = vcombine_u8(unpack(packed, low), unpack(packed, high));
            vst1q_u8(out.as_mut_ptr().add(block * 16), values);
        }
    }
    // Value `done` begins a byte, which is within the input or its end.
    let done = blocks * 16;
    generic::u8_by(width, &input[done / 8 * step..], &mut out[done..], |word| {
        let packed = vcombine_u8(vcreate_u8(word), vcreate_u8(0));
        vget_lane_u64::<0>(vreinterpret_u64_u8(unpack(packed, low))).to_le_bytes()
    });
}

/// # Safety
///
/// `width` is from 1 to 25; `input` holds `out.len() * width` bits.
#[target_feature(enable = "neon")]
pub(super) unsafe fn u32(width: u32, input: &[u8], out: &mut [u32]) {
    let step = width as usize;
    let control = &EIGHTS[step];
    // SAFETY: both fields are 32 bytes.
    let (bytes, shifts) = unsafe {
        let (bytes, shifts) = (control.bytes.as_ptr(), control.shifts.as_ptr().cast::<i32>());
        ([vld1q_u8(bytes), vld1q_u8(bytes.add(16))], [vld1q_s32(shifts), vld1q_s32(shifts.add(4))])
    };
    // A shift to the left by less than nothing is one to the right.
    let shifts = shifts.map(|shifts| vnegq_s32(shifts));
    let mask = vdupq_n_u32(u32::MAX >> (32 - width));
    let second = step / 2;
    let unpack = |from: *const u8, half: usize| {
        // SAFETY: the closure's callers let 16 bytes be read from both halves' beginnings.
        let lanes = vqtbl1q_u8(unsafe { vld1q_u8(from.add(half * second)) }, bytes[half]);
        vandq_u32(vshlq_u32(vreinterpretq_u32_u8(lanes), shifts[half]), mask)
    };
    let fast = full_loads(input.len(), step, second + 16, out.len() / 8);
    let (from, to) = (input.as_ptr(), out.as_mut_ptr());
    for group in 0..fast {
        // SAFETY: `group * step + second + 16 <= input.len()` by `full_loads`, and `group * 8 + 8 <= out.len()`.
        unsafe {
            let (from, to) = (from.add(group * step), to.add(group * 8));
            vst1q_u32(to, unpack(from, 0));
            vst1q_u32(to.add(4), unpack(from, 1));
        }
    }
    // Value `done` begins at byte `at`, which the contract puts within the input.
    let (done, mut at) = (fast * 8, fast * step);
    for rest in out[done..].chunks_mut(8) {
        let padded = pad(&input[at..], step);
        let mut values = [0u32; 8];
        // SAFETY: `second + 16 <= 28 < REACH_MAX`; `values` is 32 bytes.
        unsafe {
            vst1q_u32(values.as_mut_ptr(), unpack(padded.as_ptr(), 0));
            vst1q_u32(values.as_mut_ptr().add(4), unpack(padded.as_ptr(), 1));
        }
        rest.copy_from_slice(&values[..rest.len()]);
        at += step;
    }
}

/// # Safety
///
/// `width` is from 1 to 57; `input` holds `out.len() * width` bits.
#[target_feature(enable = "neon")]
pub(super) unsafe fn u64(width: u32, input: &[u8], out: &mut [u64]) {
    let step = width as usize;
    let controls = &FOURS[step];
    let half = |pair: usize| {
        let control = &controls[pair / 2];
        // SAFETY: each field is 32 bytes.
        unsafe {
            let bytes = vld1q_u8(control.bytes.as_ptr().add(pair % 2 * 16));
            let shifts = vld1q_s64(control.shifts.as_ptr().cast::<i64>().add(pair % 2 * 2));
            (bytes, vnegq_s64(shifts))
        }
    };
    let halves = [half(0), half(1), half(2), half(3)];
    let mask = vdupq_n_u64(u64::MAX >> (64 - width));
    // The bytes that values 0, 2, 4 and 6 of a group begin in.
    let starts = [0, 2 * step / 8, 4 * step / 8, 6 * step / 8];
    let unpack = |from: *const u8, to: *mut u64| {
        for (pair, (bytes, shifts)) in halves.into_iter().enumerate() {
            // SAFETY: the closure's callers let 16 bytes be read from each of the group's starts, and 64 be written.
            unsafe {
                let lanes = vqtbl1q_u8(vld1q_u8(from.add(starts[pair])), bytes);
                let values = vandq_u64(vshlq_u64(vreinterpretq_u64_u8(lanes), shifts), mask);
                vst1q_u64(to.add(2 * pair), values);
            }
        }
    };
    let fast = full_loads(input.len(), step, starts[3] + 16, out.len() / 8);
    for group in 0..fast {
        // SAFETY: `group * step + starts[3] + 16 <= input.len()` by `full_loads`, and `group * 8 + 8 <= out.len()`.
        unsafe { unpack(input.as_ptr().add(group * step), out.as_mut_ptr().add(group * 8)) };
    }
    let (done, mut at) = (fast * 8, fast * step);
    for rest in out[done..].chunks_mut(8) {
        let padded = pad(&input[at..], step);
        let mut values = [0u64; 8];
        // `starts[3] + 16 <= 58 < REACH_MAX`; `values` is 64 bytes.
        unpack(padded.as_ptr(), values.as_mut_ptr());
        rest.copy_from_slice(&values[..rest.len()]);
        at += step;
    }
}
