//! NEON: a table lookup moves each lane's bytes into place, a shift by lane its bits.

use super::generic;
use super::shuffles::{EIGHTS, FOURS, SIXTEENS, WIDTH_U32_MAX, WIDTH_U64_MAX, full_loads, pad};
use core::arch::aarch64::*;

/// 16 values at a time (64 of width 1), then eight.
///
/// # Safety
///
/// `width` is from 1 to 7; `input` holds `out.len() * width` bits.
#[target_feature(enable = "neon")]
pub(super) unsafe fn u8(width: u32, input: &[u8], out: &mut [u8]) {
    let step = width as usize;
    let done = if width == 1 { bits(input, out) } else { 0 };
    let (input, out) = (&input[done / 8 * step..], &mut out[done..]);
    let control = &SIXTEENS[step & 7];
    // SAFETY: each field is 16 bytes.
    let (low, high, factors) = unsafe {
        (vld1q_u8(control.low.as_ptr()), vld1q_u8(control.high.as_ptr()), vld1q_u16(control.factors.as_ptr()))
    };
    let mask = vdupq_n_u8(u8::MAX >> (8 - width));
    // Each value in the upper byte of a lane.
    let lanes = |packed, bytes| {
        vreinterpretq_u8_u16(vmulq_u16(vreinterpretq_u16_u8(vqtbl1q_u8(packed, bytes)), factors))
    };
    let blocks = full_loads(input.len(), 2 * step, 16, out.len() / 16);
    for block in 0..blocks {
        // SAFETY: `block * 2 * step + 16 <= input.len()` by `full_loads`, and `block * 16 + 16 <= out.len()`.
        unsafe {
            let packed = vld1q_u8(input.as_ptr().add(block * 2 * step));
            let values = vuzp2q_u8(lanes(packed, low), lanes(packed, high));
            vst1q_u8(out.as_mut_ptr().add(block * 16), vandq_u8(values, mask));
        }
    }
    // Value `done` begins a byte, which is within the input or its end.
    let done = blocks * 16;
    generic::u8_by(width, &input[done / 8 * step..], &mut out[done..], |word| {
        let eight = lanes(vcombine_u8(vcreate_u8(word), vcreate_u8(0)), low);
        let values = vandq_u8(vuzp2q_u8(eight, eight), mask);
        vgetq_lane_u64::<0>(vreinterpretq_u64_u8(values)).to_le_bytes()
    });
}

/// Of width 1: 64 values at a time, how many were done.
#[inline]
#[target_feature(enable = "neon")]
fn bits(input: &[u8], out: &mut [u8]) -> usize {
    let mut done = 0;
    for (to, from) in out.as_chunks_mut::<64>().0.iter_mut().zip(input.as_chunks::<8>().0) {
        crate::neon::store(crate::neon::bools(u64::from_le_bytes(*from)), to);
        done += 64;
    }
    done
}

/// How eight values of one width, 1 to 25, are unpacked.
pub(crate) struct Eights {
    bytes: [uint8x16_t; 2],
    shifts: [int32x4_t; 2],
    mask: uint32x4_t,
    second: usize,
}

impl Eights {
    /// `width` is from 1 to [`WIDTH_U32_MAX`]; others are taken as the widest.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(crate) fn new(width: u32) -> Self {
        let control = &EIGHTS[(width as usize).min(WIDTH_U32_MAX)];
        // SAFETY: both fields are 32 bytes.
        let (bytes, shifts) = unsafe {
            let (bytes, shifts) = (control.bytes.as_ptr(), control.shifts.as_ptr().cast::<i32>());
            ([vld1q_u8(bytes), vld1q_u8(bytes.add(16))], [vld1q_s32(shifts), vld1q_s32(shifts.add(4))])
        };
        // A shift to the left by less than nothing is one to the right.
        let shifts = shifts.map(|shifts| vnegq_s32(shifts));
        Self { bytes, shifts, mask: vdupq_n_u32(u32::MAX >> (32 - width)), second: width as usize / 2 }
    }

    /// How many bytes are loaded, at most 28.
    #[inline(always)]
    pub(crate) fn reach(&self) -> usize {
        self.second + 16
    }

    /// # Safety
    ///
    /// [`Self::reach`] bytes can be read from `from`.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(crate) unsafe fn unpack(&self, from: *const u8) -> [uint32x4_t; 2] {
        // SAFETY: the caller's promise.
        let packed = unsafe { [vld1q_u8(from), vld1q_u8(from.add(self.second))] };
        let unpack = |half: usize| {
            let lanes = vreinterpretq_u32_u8(vqtbl1q_u8(packed[half], self.bytes[half]));
            vandq_u32(vshlq_u32(lanes, self.shifts[half]), self.mask)
        };
        [unpack(0), unpack(1)]
    }
}

/// How four times two values of one width, 1 to 57, are unpacked.
pub(crate) struct Fours {
    bytes: [uint8x16_t; 4],
    shifts: [int64x2_t; 4],
    mask: uint64x2_t,
    /// The bytes that values 2, 4 and 6 of a group begin in.
    starts: [usize; 3],
}

impl Fours {
    /// `width` is from 1 to [`WIDTH_U64_MAX`]; others are taken as the widest.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(crate) fn new(width: u32) -> Self {
        let step = (width as usize).min(WIDTH_U64_MAX);
        let controls = &FOURS[step];
        // SAFETY: each field is 32 bytes, and half of it is read from its beginning or its middle.
        let bytes = [0, 1, 2, 3]
            .map(|pair: usize| unsafe { vld1q_u8(controls[pair / 2].bytes.as_ptr().add(pair % 2 * 16)) });
        // SAFETY: as above.
        let shifts = [0, 1, 2, 3].map(|pair: usize| unsafe {
            vnegq_s64(vld1q_s64(controls[pair / 2].shifts.as_ptr().cast::<i64>().add(pair % 2 * 2)))
        });
        let mask = vdupq_n_u64(u64::MAX >> (64 - width));
        Self { bytes, shifts, mask, starts: [2 * step / 8, 4 * step / 8, 6 * step / 8] }
    }

    /// How many bytes are loaded, at most 58.
    #[inline(always)]
    pub(crate) fn reach(&self) -> usize {
        self.starts[2] + 16
    }

    /// The values, and above their bits those of the next ones.
    ///
    /// # Safety
    ///
    /// [`Self::reach`] bytes can be read from `from`.
    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn shifted(&self, from: *const u8) -> [uint64x2_t; 4] {
        let [second, third, fourth] = self.starts;
        // SAFETY: the caller's promise: the starts are in ascending order.
        let packed = unsafe {
            [
                vld1q_u8(from),
                vld1q_u8(from.add(second)),
                vld1q_u8(from.add(third)),
                vld1q_u8(from.add(fourth)),
            ]
        };
        let shift = |pair: usize| {
            vshlq_u64(vreinterpretq_u64_u8(vqtbl1q_u8(packed[pair], self.bytes[pair])), self.shifts[pair])
        };
        [shift(0), shift(1), shift(2), shift(3)]
    }

    /// # Safety
    ///
    /// [`Self::reach`] bytes can be read from `from`.
    #[inline]
    #[target_feature(enable = "neon")]
    pub(crate) unsafe fn unpack(&self, from: *const u8) -> [uint64x2_t; 4] {
        // SAFETY: the caller's promise.
        unsafe { self.shifted(from) }.map(|pair| vandq_u64(pair, self.mask))
    }

    /// The lower halves.
    ///
    /// # Safety
    ///
    /// [`Self::reach`] bytes can be read from `from`.
    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn narrowed(&self, from: *const u8) -> [uint32x4_t; 2] {
        // SAFETY: the caller's promise.
        let [a, b, c, d] = unsafe { self.shifted(from) }.map(|pair| vreinterpretq_u32_u64(pair));
        let mask = vreinterpretq_u32_u64(self.mask);
        let mask = vuzp1q_u32(mask, mask);
        [vandq_u32(vuzp1q_u32(a, b), mask), vandq_u32(vuzp1q_u32(c, d), mask)]
    }
}

/// # Safety
///
/// `width` is from 1 to [`WIDTH_U32_MAX`]; `input` holds `out.len() * width` bits.
#[target_feature(enable = "neon")]
pub(super) unsafe fn u32(width: u32, input: &[u8], out: &mut [u32]) {
    let step = width as usize;
    let eights = Eights::new(width);
    let fast = full_loads(input.len(), step, eights.reach(), out.len() / 8);
    let (from, to) = (input.as_ptr(), out.as_mut_ptr());
    for group in 0..fast {
        // SAFETY: `group * step + reach <= input.len()` by `full_loads`, and `group * 8 + 8 <= out.len()`.
        unsafe {
            let [first, last] = eights.unpack(from.add(group * step));
            vst1q_u32(to.add(group * 8), first);
            vst1q_u32(to.add(group * 8 + 4), last);
        }
    }
    // Value `done` begins at byte `at`, which the contract puts within the input.
    let (done, mut at) = (fast * 8, fast * step);
    for rest in out[done..].chunks_mut(8) {
        let padded = pad(&input[at..], step);
        let mut values = [0u32; 8];
        // SAFETY: `reach < REACH_MAX`; `values` is 32 bytes.
        unsafe {
            let [first, last] = eights.unpack(padded.as_ptr());
            vst1q_u32(values.as_mut_ptr(), first);
            vst1q_u32(values.as_mut_ptr().add(4), last);
        }
        rest.copy_from_slice(&values[..rest.len()]);
        at += step;
    }
}

/// # Safety
///
/// `width` is from 1 to [`WIDTH_U64_MAX`]; `input` holds `out.len() * width` bits.
#[target_feature(enable = "neon")]
pub(super) unsafe fn u64(width: u32, input: &[u8], out: &mut [u64]) {
    let step = width as usize;
    let fours = Fours::new(width);
    let unpack = |from: *const u8, to: *mut u64| {
        // SAFETY: the closure's callers let `reach` bytes be read, and 64 be written: four pairs.
        unsafe {
            let [a, b, c, d] = fours.unpack(from);
            vst1q_u64(to, a);
            vst1q_u64(to.add(2), b);
            vst1q_u64(to.add(4), c);
            vst1q_u64(to.add(6), d);
        }
    };
    let fast = full_loads(input.len(), step, fours.reach(), out.len() / 8);
    for group in 0..fast {
        // SAFETY: `group * step + reach <= input.len()` by `full_loads`, and `group * 8 + 8 <= out.len()`.
        unsafe { unpack(input.as_ptr().add(group * step), out.as_mut_ptr().add(group * 8)) };
    }
    let (done, mut at) = (fast * 8, fast * step);
    for rest in out[done..].chunks_mut(8) {
        let padded = pad(&input[at..], step);
        let mut values = [0u64; 8];
        // `reach < REACH_MAX`; `values` is 64 bytes.
        unpack(padded.as_ptr(), values.as_mut_ptr());
        rest.copy_from_slice(&values[..rest.len()]);
        at += step;
    }
}

/// Widths beyond [`WIDTH_U32_MAX`], as numbers of 64 bits of which the lower halves are kept.
///
/// # Safety
///
/// `width` is from 26 to 31; `input` holds `out.len() * width` bits.
#[target_feature(enable = "neon")]
pub(super) unsafe fn u32_wide(width: u32, input: &[u8], out: &mut [u32]) {
    let step = width as usize;
    let fours = Fours::new(width);
    let unpack = |from: *const u8, to: *mut u32| {
        // SAFETY: the closure's callers let `reach` bytes be read, and 32 be written: two fours.
        unsafe {
            let [first, last] = fours.narrowed(from);
            vst1q_u32(to, first);
            vst1q_u32(to.add(4), last);
        }
    };
    let fast = full_loads(input.len(), step, fours.reach(), out.len() / 8);
    for group in 0..fast {
        // SAFETY: `group * step + reach <= input.len()` by `full_loads`, and `group * 8 + 8 <= out.len()`.
        unsafe { unpack(input.as_ptr().add(group * step), out.as_mut_ptr().add(group * 8)) };
    }
    let (done, mut at) = (fast * 8, fast * step);
    for rest in out[done..].chunks_mut(8) {
        let padded = pad(&input[at..], step);
        let mut values = [0u32; 8];
        // `reach < REACH_MAX`; `values` is 32 bytes.
        unpack(padded.as_ptr(), values.as_mut_ptr());
        rest.copy_from_slice(&values[..rest.len()]);
        at += step;
    }
}
