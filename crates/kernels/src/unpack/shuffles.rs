//! How byte shuffles of 16 bytes (AVX2's, NEON's) unpack a group of eight values, and how far their loads may go.

/// The widest value that, beginning at any bit of a byte, fits four bytes.
pub(crate) const WIDTH_U32_MAX: usize = 25;
/// The widest value that, beginning at any bit of a byte, fits eight bytes.
pub(crate) const WIDTH_U64_MAX: usize = 57;

/// How 16 values of at most 7 bits, which take `2 * width` bytes, become bytes in two times eight lanes of 16 bits: each lane gets the two
/// bytes that its value may be in. Multiplied by its factor, which is the shift to the left that brings the value's lowest bit to bit 8, the
/// value is in the lane's upper byte, with bits of the next one above it. (Neither AVX2 nor SSE shifts 16 bits by a number of their own.)
#[repr(C, align(16))]
#[derive(Clone, Copy)]
pub(super) struct Sixteens {
    /// The first eight values, which begin on a byte; the others begin `width` bytes on.
    pub(super) low: [u8; 16],
    pub(super) high: [u8; 16],
    pub(super) factors: [u16; 8],
}

pub(super) static SIXTEENS: [Sixteens; 8] = {
    let mut all = [Sixteens { low: [0; 16], high: [0; 16], factors: [0; 8] }; 8];
    let mut width = 1;
    while width < 8 {
        let mut lane = 0;
        while lane < 8 {
            let (byte, shift) = (lane * width / 8, lane * width % 8);
            assert!(shift + width <= 16 && byte + 1 + width < 16);
            let mut k = 0;
            while k < 2 {
                all[width].low[2 * lane + k] = (byte + k) as u8;
                all[width].high[2 * lane + k] = (byte + k + width) as u8;
                k += 1;
            }
            all[width].factors[lane] = 1 << (8 - shift);
            lane += 1;
        }
        width += 1;
    }
    all
};

/// For the two halves of a vector: which bytes of its load each lane gets, and how far the lane is shifted.
#[repr(C, align(32))]
#[derive(Clone, Copy)]
pub(super) struct Control<const LANES: usize, Lane> {
    pub(super) bytes: [u8; 32],
    pub(super) shifts: [Lane; LANES],
}

/// Eight values of `width` bits take `width` bytes; the upper half loads from byte `width / 2`.
pub(super) static EIGHTS: [Control<8, u32>; WIDTH_U32_MAX + 1] = {
    let mut all = [Control { bytes: [0; 32], shifts: [0; 8] }; WIDTH_U32_MAX + 1];
    let mut width = 1;
    while width <= WIDTH_U32_MAX {
        let mut lane = 0;
        while lane < 8 {
            // Bits from the beginning of this half's load.
            let bit = lane * width - lane / 4 * (width / 2 * 8);
            let mut byte = 0;
            while byte < 4 {
                assert!(bit / 8 + byte < 16 && bit % 8 + width <= 32);
                all[width].bytes[lane * 4 + byte] = (bit / 8 + byte) as u8;
                byte += 1;
            }
            all[width].shifts[lane] = (bit % 8) as u32;
            lane += 1;
        }
        width += 1;
    }
    all
};

/// Four values, two per half; each half loads from the byte that its first value begins in. `[0]` is for the first four
/// of a group of eight, which begin on a byte, `[1]` for the others.
pub(super) static FOURS: [[Control<4, u64>; 2]; WIDTH_U64_MAX + 1] = {
    let mut all = [[Control { bytes: [0; 32], shifts: [0; 4] }; 2]; WIDTH_U64_MAX + 1];
    let mut width = 1;
    while width <= WIDTH_U64_MAX {
        let mut lane = 0;
        while lane < 8 {
            let bit = lane / 2 * 2 * width % 8 + lane % 2 * width;
            let control = &mut all[width][lane / 4];
            let mut byte = 0;
            while byte < 8 {
                assert!(bit / 8 + byte < 16 && bit % 8 + width <= 64);
                control.bytes[lane % 4 * 8 + byte] = (bit / 8 + byte) as u8;
                byte += 1;
            }
            control.shifts[lane % 4] = (bit % 8) as u64;
            lane += 1;
        }
        width += 1;
    }
    all
};

/// The most bytes that a group's loads reach, for the padded copy of the last groups.
pub(super) const REACH_MAX: usize = 64;

/// The `step` bytes of a group, or as many as are left, with room for its loads after them.
pub(crate) fn pad(input: &[u8], step: usize) -> [u8; REACH_MAX] {
    let mut padded = [0u8; REACH_MAX];
    let count = step.min(input.len());
    padded[..count].copy_from_slice(&input[..count]);
    padded
}

/// How many of `blocks` blocks, `step` bytes apart, can be read from `bytes` bytes by loads that reach `reach` bytes.
/// It divides only if the last block's load does not fit: a division takes as long as a run of 32 values. (Two
/// comparisons per block instead of a count made the AVX2 loop half as fast again.)
#[inline(always)]
pub(crate) fn full_loads(bytes: usize, step: usize, reach: usize, blocks: usize) -> usize {
    if blocks == 0 || bytes < reach {
        0
    } else if (blocks - 1) * step <= bytes - reach {
        blocks
    } else {
        (bytes - reach) / step + 1
    }
}
