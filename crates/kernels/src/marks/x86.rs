//! Compares 16, 32 or 64 bytes at a time.

use core::arch::x86_64::*;

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512dq")]
pub(super) fn find_avx512(blocks: &[[u8; 64]], bytes: [u8; 4], out: &mut [[u64; 4]]) {
    let wanted = bytes.map(|byte| _mm512_set1_epi8(byte.cast_signed()));
    for (block, masks) in blocks.iter().zip(out) {
        // SAFETY: the block has as many bytes as are loaded.
        let block = unsafe { _mm512_loadu_si512(block.as_ptr().cast()) };
        *masks = wanted.map(|byte| _mm512_cmpeq_epi8_mask(block, byte));
    }
}

#[target_feature(enable = "avx2")]
pub(super) fn find_avx2(blocks: &[[u8; 64]], bytes: [u8; 4], out: &mut [[u64; 4]]) {
    let wanted = bytes.map(|byte| _mm256_set1_epi8(byte.cast_signed()));
    for (block, masks) in blocks.iter().zip(out) {
        let (low, high) = block.split_at(32);
        // SAFETY: each half has as many bytes as are loaded.
        let halves = [low, high].map(|half| unsafe { _mm256_loadu_si256(half.as_ptr().cast()) });
        *masks = wanted.map(|byte| {
            let [low, high] = halves
                .map(|half| u64::from(_mm256_movemask_epi8(_mm256_cmpeq_epi8(half, byte)).cast_unsigned()));
            high << 32 | low
        });
    }
}

/// All processors of the architecture have SSE2.
pub(super) fn find_sse2(blocks: &[[u8; 64]], bytes: [u8; 4], out: &mut [[u64; 4]]) {
    // SAFETY: SSE2 is part of x86-64; and each part of the block has as many bytes as are loaded.
    unsafe {
        let wanted = bytes.map(|byte| _mm_set1_epi8(byte.cast_signed()));
        for (block, masks) in blocks.iter().zip(out) {
            let (parts, _) = block.as_chunks::<16>();
            for (byte, mask) in wanted.into_iter().zip(masks) {
                *mask = parts.iter().rev().fold(0, |mask, part| {
                    let equal = _mm_cmpeq_epi8(_mm_loadu_si128(part.as_ptr().cast()), byte);
                    mask << 16 | u64::from(_mm_movemask_epi8(equal).cast_unsigned())
                });
            }
        }
    }
}
