//! NEON: two neighbours are joined by a shift of both to the right, which brings the upper one to where it belongs, and a choice of bits: those of the
//! lower one from before the shift. So bytes become pairs, fours and eights; numbers of at most 16 bits are narrowed first. Wider ones
//! are packed by the portable form.

use super::generic;
use crate::unpack::shuffles::full_loads;
use core::arch::aarch64::*;

/// Values of a register of bytes.
const BLOCK: usize = 16;

/// # Safety
///
/// `width` is from 1 to 7; `out` has the bytes that the values take.
#[target_feature(enable = "neon")]
pub(super) unsafe fn u8(width: u32, values: &[u8], out: &mut [u8]) {
    if values.len() < BLOCK {
        // Sooner done than the masks are made.
        return generic::u8(width, values, out);
    }
    let step = width as usize;
    let join = Join::new(width);
    let done = if width == 1 {
        bits(values, out)
    } else {
        let blocks = full_loads(out.len(), 2 * step, BLOCK, values.len() / BLOCK);
        for block in 0..blocks {
            // SAFETY: `block * 16 + 16 <= values.len()`, and `block * 2 * step + 16 <= out.len()` by `full_loads`.
            unsafe {
                let bytes = vld1q_u8(values.as_ptr().add(block * BLOCK));
                vst1q_u8(out.as_mut_ptr().add(block * 2 * step), join.sixteen(bytes));
            }
        }
        blocks * BLOCK
    };
    generic::u8_by(width, &values[done..], &mut out[done / 8 * step..], |eight| join.eight(eight));
}

/// # Safety
///
/// `width` is from 1 to 31; `out` has the bytes that the values take.
#[target_feature(enable = "neon")]
pub(super) unsafe fn u32(width: u32, values: &[u32], out: &mut [u8]) {
    // Of a single block, as DELTA_BINARY_PACKED has them, the portable form packs all at once, and nothing again that was left.
    let done = match width {
        // SAFETY: the caller's promise.
        1..=8 if values.len() > 2 * BLOCK => unsafe { narrow(width, values, out) },
        // SAFETY: as above.
        9..=15 if values.len() > 2 * BLOCK => unsafe { by_eights(width, values, out) },
        _ => 0,
    };
    generic::u32(width, &values[done..], &mut out[done / 8 * width as usize..]);
}

/// Of width 1: 64 values at a time, how many were packed.
#[inline]
#[target_feature(enable = "neon")]
fn bits(values: &[u8], out: &mut [u8]) -> usize {
    let one = vdupq_n_u8(1);
    let mut done = 0;
    for (block, word) in values.as_chunks::<64>().0.iter().zip(out.as_chunks_mut::<8>().0) {
        let set = crate::neon::load(block).map(|bytes| vtstq_u8(bytes, one));
        *word = crate::neon::mask(set).to_le_bytes();
        done += 64;
    }
    done
}

/// Widths up to 8. How many values were packed: blocks of 16, as long as there is room for each store.
///
/// # Safety
///
/// `width` is from 1 to 8.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn narrow(width: u32, values: &[u32], out: &mut [u8]) -> usize {
    let step = width as usize;
    let join = Join::new(width);
    let blocks = full_loads(out.len(), 2 * step, BLOCK, values.len() / BLOCK);
    for block in 0..blocks {
        // SAFETY: `block * 16 + 16 <= values.len()`: four vectors of four; and `block * 2 * step + 16 <= out.len()` by `full_loads`.
        unsafe {
            let from = values.as_ptr().add(block * BLOCK);
            let bytes = vuzp1q_u8(
                vreinterpretq_u8_u16(halves(from)),
                vreinterpretq_u8_u16(halves(from.add(BLOCK / 2))),
            );
            vst1q_u8(out.as_mut_ptr().add(block * 2 * step), join.sixteen(bytes));
        }
    }
    blocks * BLOCK
}

/// The lower halves of eight numbers.
///
/// # Safety
///
/// Eight numbers can be read from `from`.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn halves(from: *const u32) -> uint16x8_t {
    // SAFETY: the caller's promise.
    let (low, high) = unsafe { (vld1q_u32(from), vld1q_u32(from.add(4))) };
    vuzp1q_u16(vreinterpretq_u16_u32(low), vreinterpretq_u16_u32(high))
}

/// Widths from 9 to 15: eight values take `width` bytes, four of them at most 60 bits. How many values were packed: groups of eight, as long as
/// there is room for each store.
///
/// # Safety
///
/// `width` is from 9 to 15.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn by_eights(width: u32, values: &[u32], out: &mut [u8]) -> usize {
    let (step, width) = (width as usize, width as i32);
    let (pair, pair_mask) = (vdupq_n_s32(width - 16), vdupq_n_u32((1 << width) - 1));
    let (four, four_mask) = (vdupq_n_s64(i64::from(2 * width - 32)), vdupq_n_u64((1 << (2 * width)) - 1));
    // The upper four begin `4 * width` bits on: their lower part is in the lower word, the rest in the other.
    let up = i64::from(4 * width);
    let upper = vcombine_s64(vcreate_s64(up.cast_unsigned()), vcreate_s64((up - 64).cast_unsigned()));
    let lower_mask = vcombine_u64(vcreate_u64((1 << up) - 1), vcreate_u64(0));
    let groups = full_loads(out.len(), step, 16, values.len() / 8);
    for group in 0..groups {
        // SAFETY: `group * 8 + 8 <= values.len()`.
        let eight = vreinterpretq_u32_u16(unsafe { halves(values.as_ptr().add(group * 8)) });
        let pairs = vreinterpretq_u64_u32(vbslq_u32(pair_mask, eight, vshlq_u32(eight, pair)));
        let fours = vbslq_u64(four_mask, pairs, vshlq_u64(pairs, four));
        let packed = vbslq_u64(lower_mask, fours, vshlq_u64(vdupq_laneq_u64::<1>(fours), upper));
        // SAFETY: `group * step + 16 <= out.len()` by `full_loads`.
        unsafe { vst1q_u8(out.as_mut_ptr().add(group * step), vreinterpretq_u8_u64(packed)) };
    }
    groups * 8
}

/// How bytes are packed: how far the upper ones of two, four and eight are shifted, and which bits are the lower ones'.
struct Join {
    pair: (int16x8_t, uint16x8_t),
    four: (int32x4_t, uint32x4_t),
    eight: (int64x2_t, uint64x2_t),
    /// Two times `width` bytes.
    keep: uint8x16_t,
}

impl Join {
    /// `width` is from 1 to 8.
    #[inline]
    #[target_feature(enable = "neon")]
    fn new(width: u32) -> Self {
        const PLACES: [u8; BLOCK] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
        let w = width.clamp(1, 8);
        let gap = w as i32 - 8;
        // SAFETY: the array is 16 bytes.
        let places = unsafe { vld1q_u8(PLACES.as_ptr()) };
        // After the first `width` bytes, those from the eighth on.
        let second = vandq_u8(vcgeq_u8(places, vdupq_n_u8(w as u8)), vdupq_n_u8(-gap as u8));
        Self {
            pair: (vdupq_n_s16(gap as i16), vdupq_n_u16((1 << w) - 1)),
            four: (vdupq_n_s32(2 * gap), vdupq_n_u32((1 << (2 * w)) - 1)),
            eight: (vdupq_n_s64(i64::from(4 * gap)), vdupq_n_u64((1 << (4 * w)) - 1)),
            keep: vaddq_u8(places, second),
        }
    }

    /// Eight values in each 64 bits, from the lowest on, and above them anything.
    #[inline]
    #[target_feature(enable = "neon")]
    fn eights(&self, bytes: uint8x16_t) -> uint8x16_t {
        // The upper one of two need not be masked: what is above it is above both, and above all the lower two of four are chosen.
        let bytes = vreinterpretq_u16_u8(bytes);
        let pairs = vbslq_u16(self.pair.1, bytes, vshlq_u16(bytes, self.pair.0));
        let pairs = vreinterpretq_u32_u16(pairs);
        let fours = vbslq_u32(self.four.1, pairs, vshlq_u32(pairs, self.four.0));
        let fours = vreinterpretq_u64_u32(fours);
        let eights = vbslq_u64(self.eight.1, fours, vshlq_u64(fours, self.eight.0));
        vreinterpretq_u8_u64(eights)
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn eight(&self, eight: [u8; 8]) -> u64 {
        let bytes = vcombine_u8(vcreate_u8(u64::from_le_bytes(eight)), vcreate_u8(0));
        vgetq_lane_u64::<0>(vreinterpretq_u64_u8(self.eights(bytes)))
    }

    /// 16 values in the first `2 * width` bytes.
    #[inline]
    #[target_feature(enable = "neon")]
    fn sixteen(&self, bytes: uint8x16_t) -> uint8x16_t {
        vqtbl1q_u8(self.eights(bytes), self.keep)
    }
}
