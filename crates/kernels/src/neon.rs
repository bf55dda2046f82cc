//! What the kernels' NEON forms have in common.

use core::arch::aarch64::*;

/// Bit `n % 8` of byte `n`.
const BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];

/// A bit for each byte, from the first vector's first on: set where the byte has all its bits, as comparisons give them, clear where
/// it has none. (Three additions of neighbours, as AArch64 has no movemask: Lemire, "ARM and Intel have different performance
/// characteristics", 2017.)
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn mask(bytes: [uint8x16_t; 4]) -> u64 {
    // SAFETY: `BITS` is 16 bytes.
    let bits = unsafe { vld1q_u8(BITS.as_ptr()) };
    // The lesser of all bits or none and one of them: of an `and`, the compiler knows that no sum carries, and takes each addition of
    // neighbours for two shuffles and an `or`.
    let [a, b, c, d] = bytes.map(|bytes| vminq_u8(bytes, bits));
    let all = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));
    vget_lane_u64::<0>(vreinterpret_u64_u8(vpadd_u8(vget_low_u8(all), vget_high_u8(all))))
}

/// A byte of 0 or 1 for each bit, from the lowest on.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn bools(word: u64) -> [uint8x16_t; 4] {
    /// The bytes that the first 16 bits are in.
    const PLACES: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];
    // SAFETY: both are 16 bytes.
    let (bits, places) = unsafe { (vld1q_u8(BITS.as_ptr()), vld1q_u8(PLACES.as_ptr())) };
    let word = vcombine_u8(vcreate_u8(word), vcreate_u8(0));
    [0, 2, 4, 6].map(|byte| {
        let bytes = vqtbl1q_u8(word, vaddq_u8(places, vdupq_n_u8(byte)));
        vshrq_n_u8::<7>(vtstq_u8(bytes, bits))
    })
}

/// The four vectors of a block.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn load(block: &[u8; 64]) -> [uint8x16_t; 4] {
    // SAFETY: the block is four times 16 bytes.
    core::array::from_fn(|k| unsafe { vld1q_u8(block.as_ptr().add(16 * k)) })
}

/// The inverse of [`load`].
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn store(vectors: [uint8x16_t; 4], block: &mut [u8; 64]) {
    for (vector, to) in vectors.into_iter().zip(block.as_chunks_mut::<16>().0) {
        // SAFETY: a chunk is 16 bytes.
        unsafe { vst1q_u8(to.as_mut_ptr(), vector) };
    }
}

/// As [`bits::pack`](crate::bits::pack): bit `i` is bit 0 of byte `i`, and the bytes are 0 or 1.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn pack(bytes: &[u8; 64]) -> u64 {
    let zero = vdupq_n_u8(0);
    mask(load(bytes).map(|bytes| vcgtq_u8(bytes, zero)))
}

/// In byte `n`, how many of the lowest `8 * n + 8` bits of a word are set.
#[inline]
#[target_feature(enable = "neon")]
pub(crate) fn ones_through(word: u64) -> u64 {
    let ones = vget_lane_u64::<0>(vreinterpret_u64_u8(vcnt_u8(vcreate_u8(word))));
    // The sums are 64 at most: no byte carries into the next one.
    ones.wrapping_mul(0x0101_0101_0101_0101)
}

/// How many bits are set of each one, two or four of a word, as `bits` says, and in their place. (The processor counts bits in vector registers
/// only, to which and back it takes longer than all of this.)
#[inline(always)]
pub(crate) fn ones_of_each(bits: usize, word: u64) -> u64 {
    let of_twos = word - (word >> 1 & 0x5555_5555_5555_5555);
    match bits {
        1 => word,
        2 => of_twos,
        _ => (of_twos & 0x3333_3333_3333_3333) + (of_twos >> 2 & 0x3333_3333_3333_3333),
    }
}
