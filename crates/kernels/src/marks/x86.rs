//! Compares 32 or 64 bytes at a time.

use core::arch::x86_64::*;

use super::BLOCK_BYTES;

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
pub(super) fn find_avx512(blocks: &[[u8; BLOCK_BYTES]], bytes: [u8; 3], out: &mut [[u64; 3]]) {
    let wanted = bytes.map(|byte| _mm512_set1_epi8(byte.cast_signed()));
    for (block, masks) in blocks.iter().zip(out) {
        // SAFETY: the block has as many bytes as are loaded.
        let block = unsafe { _mm512_loadu_si512(block.as_ptr().cast()) };
        *masks = wanted.map(|byte| _mm512_cmpeq_epi8_mask(block, byte));
    }
}

#[target_feature(enable = "avx2")]
pub(super) fn find_avx2(blocks: &[[u8; BLOCK_BYTES]], bytes: [u8; 3], out: &mut [[u64; 3]]) {
    let wanted = bytes.map(|byte| _mm256_set1_epi8(byte.cast_signed()));
    for (block, masks) in blocks.iter().zip(out) {
        let (low, high) = block.split_at(BLOCK_BYTES / 2);
        // SAFETY: each half has as many bytes as are loaded.
        let halves = [low, high].map(|half| unsafe { _mm256_loadu_si256(half.as_ptr().cast()) });
        *masks = wanted.map(|byte| {
            let [low, high] = halves
                .map(|half| u64::from(_mm256_movemask_epi8(_mm256_cmpeq_epi8(half, byte)).cast_unsigned()));
            high << 32 | low
        });
    }
}
