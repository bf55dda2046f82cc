//! NEON: 16 values at a time. Stores that interleave join two and four streams, loads that do the inverse split them; eight streams are
//! joined by zipping bytes, then pairs, then quadruples, and split by unzipping.

use super::generic;
use core::arch::aarch64::*;

/// Values a block.
const BLOCK: usize = 16;

/// Joins complete blocks and returns how many values they held. Widths other than 2, 4 and 8 have none.
#[target_feature(enable = "neon")]
pub(super) fn blocks<const W: usize>(streams: [&[u8]; W], out: &mut [u8]) -> usize {
    let count = streams.iter().map(|stream| stream.len()).min().unwrap_or(0).min(out.len() / W.max(1));
    let blocks = count / BLOCK;
    for block in 0..blocks {
        let at = block * BLOCK;
        // SAFETY: `at + 16 <= count`, which no stream is shorter than.
        let load = |k: usize| unsafe { vld1q_u8(streams[k].as_ptr().add(at)) };
        let to = out[at * W..][..BLOCK * W].as_mut_ptr();
        match W {
            // SAFETY: the slice above holds 2 times 16 bytes.
            2 => unsafe { vst2q_u8(to, uint8x16x2_t(load(0), load(1))) },
            // SAFETY: the slice above holds 4 times 16 bytes.
            4 => unsafe { vst4q_u8(to, uint8x16x4_t(load(0), load(1), load(2), load(3))) },
            8 => {
                // Bytes of streams 0 and 4, 1 and 5, 2 and 6, 3 and 7; of 0, 2, 4 and 6, 1, 3, 5 and 7; of all.
                let [a, b, c, d] = [0, 1, 2, 3].map(|k| zip(load(k), load(k + 4)));
                let even = [zip(a[0], c[0]), zip(a[1], c[1])];
                let odd = [zip(b[0], d[0]), zip(b[1], d[1])];
                for (half, (even, odd)) in even.into_iter().zip(odd).enumerate() {
                    for (quarter, (even, odd)) in even.into_iter().zip(odd).enumerate() {
                        for (part, vector) in zip(even, odd).into_iter().enumerate() {
                            // SAFETY: the slice above holds 8 vectors.
                            unsafe { vst1q_u8(to.add(16 * (4 * half + 2 * quarter + part)), vector) };
                        }
                    }
                }
            }
            _ => return 0,
        }
    }
    blocks * BLOCK
}

/// The bytes of two vectors in turn.
#[inline]
#[target_feature(enable = "neon")]
fn zip(a: uint8x16_t, b: uint8x16_t) -> [uint8x16_t; 2] {
    [vzip1q_u8(a, b), vzip2q_u8(a, b)]
}

/// Every other byte of two vectors, and those between.
#[inline]
#[target_feature(enable = "neon")]
fn unzip(a: uint8x16_t, b: uint8x16_t) -> [uint8x16_t; 2] {
    [vuzp1q_u8(a, b), vuzp2q_u8(a, b)]
}

/// Splits values, and returns how many were done. The caller has checked that `out` has room for `width` streams of `stride` bytes.
#[target_feature(enable = "neon")]
pub(super) fn split(width: usize, values: &[u8], stride: usize, out: &mut [u8]) -> usize {
    match width {
        4 => fours(values, stride, out),
        8 => eights(values, stride, out),
        _ => generic::split(width, values, stride, out),
    }
}

#[inline]
#[target_feature(enable = "neon")]
fn fours(values: &[u8], stride: usize, out: &mut [u8]) -> usize {
    let mut done = 0;
    for block in values.as_chunks::<{ 4 * BLOCK }>().0 {
        // SAFETY: the block is four vectors.
        let uint8x16x4_t(a, b, c, d) = unsafe { vld4q_u8(block.as_ptr()) };
        for (k, vector) in [a, b, c, d].into_iter().enumerate() {
            store(vector, &mut out[k * stride + done..]);
        }
        done += BLOCK;
    }
    done
}

#[inline]
#[target_feature(enable = "neon")]
fn eights(values: &[u8], stride: usize, out: &mut [u8]) -> usize {
    let mut done = 0;
    for block in values.as_chunks::<{ 8 * BLOCK }>().0 {
        // SAFETY: the block is eight vectors.
        let load = |k: usize| unsafe { vld1q_u8(block.as_ptr().add(16 * k)) };
        // Bytes 0, 2, 4 and 6, and 1, 3, 5 and 7, of four values each; then 0 and 4, 1 and 5, …; then one of all.
        let [a, b, c, d] = [0, 2, 4, 6].map(|k| unzip(load(k), load(k + 1)));
        for parity in [0, 1] {
            let (low, high) = (unzip(a[parity], b[parity]), unzip(c[parity], d[parity]));
            for pair in [0, 1] {
                for (four, vector) in unzip(low[pair], high[pair]).into_iter().enumerate() {
                    store(vector, &mut out[(parity + 2 * pair + 4 * four) * stride + done..]);
                }
            }
        }
        done += BLOCK;
    }
    done
}

#[inline]
#[target_feature(enable = "neon")]
fn store(vector: uint8x16_t, out: &mut [u8]) {
    let out = &mut out[..BLOCK];
    // SAFETY: `out` is 16 bytes.
    unsafe { vst1q_u8(out.as_mut_ptr(), vector) };
}
