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
                let vectors = joined([0, 1, 2, 3, 4, 5, 6, 7].map(load));
                for (number, vector) in vectors.into_iter().enumerate() {
                    // SAFETY: the slice above holds 8 vectors.
                    unsafe { vst1q_u8(to.add(16 * number), vector) };
                }
            }
            _ => return 0,
        }
    }
    blocks * BLOCK
}

/// Joins 16 values of eight streams at a time, for widths of 8 and more; the last eight streams may overlap those
/// before. `streams` begins at the first value of stream 0, and the next stream's lies `total` bytes on. Returns the
/// number of complete values.
#[target_feature(enable = "neon")]
pub(super) fn by_eights(width: usize, streams: &[u8], total: usize, out: &mut [u8]) -> usize {
    let blocks = out.len() / width.max(8) / BLOCK;
    let whole = blocks * BLOCK;
    if width < 8
        || (width - 1).checked_mul(total).and_then(|n| n.checked_add(whole)).is_none_or(|n| n > streams.len())
    {
        return 0;
    }
    for block in 0..blocks {
        let done = block * BLOCK;
        let mut k = 0;
        loop {
            let from = streams[k * total + done..].as_ptr();
            // SAFETY: `k + i < width` and `done + 16 <= whole`, so the load ends within
            // `(width - 1) * total + whole`, which is at most `streams.len()`.
            let load = |i: usize| unsafe { vld1q_u8(from.add(i * total)) };
            let vectors = joined([0, 1, 2, 3, 4, 5, 6, 7].map(load));
            for (number, two) in vectors.into_iter().enumerate() {
                let value = done + 2 * number;
                // SAFETY: values `value` and `value + 1` are below `whole`, so theirs end within
                // `whole * width <= out.len()`; and `k + 8 <= width`.
                unsafe {
                    let to = out.as_mut_ptr().add(value * width + k);
                    vst1_u8(to, vget_low_u8(two));
                    vst1_u8(to.add(width), vget_high_u8(two));
                }
            }
            if k + 8 == width {
                break;
            }
            k = (k + 8).min(width - 8);
        }
    }
    whole
}

/// Of 16 values, byte after byte of all of them, all eight bytes: two values a vector.
#[inline]
#[target_feature(enable = "neon")]
fn joined([s0, s1, s2, s3, s4, s5, s6, s7]: [uint8x16_t; 8]) -> [uint8x16_t; 8] {
    // Bytes 0 and 4, 1 and 5, 2 and 6, 3 and 7; …
    let ([a, e], [b, f]) = (zip(s0, s4), zip(s1, s5));
    let ([c, g], [d, h]) = (zip(s2, s6), zip(s3, s7));
    // … of the first eight values 0, 2, 4 and 6, 1, 3, 5 and 7, and the same of the others; …
    let ([a, c], [b, d]) = (zip(a, c), zip(b, d));
    let ([e, g], [f, h]) = (zip(e, g), zip(f, h));
    // … all.
    let ([v0, v1], [v2, v3]) = (zip(a, b), zip(c, d));
    let ([v4, v5], [v6, v7]) = (zip(e, f), zip(g, h));
    [v0, v1, v2, v3, v4, v5, v6, v7]
}

/// The inverse of [`joined`].
#[inline]
#[target_feature(enable = "neon")]
fn parted([v0, v1, v2, v3, v4, v5, v6, v7]: [uint8x16_t; 8]) -> [uint8x16_t; 8] {
    // Bytes 0, 2, 4 and 6, and 1, 3, 5 and 7, of four values each; …
    let ([a, e], [b, f]) = (unzip(v0, v1), unzip(v2, v3));
    let ([c, g], [d, h]) = (unzip(v4, v5), unzip(v6, v7));
    // … of eight values 0 and 4, and 2 and 6, and 1 and 5, and 3 and 7; …
    let ([a, b], [c, d]) = (unzip(a, b), unzip(c, d));
    let ([e, f], [g, h]) = (unzip(e, f), unzip(g, h));
    // … of all values one.
    let ([s0, s4], [s2, s6]) = (unzip(a, c), unzip(b, d));
    let ([s1, s5], [s3, s7]) = (unzip(e, g), unzip(f, h));
    [s0, s1, s2, s3, s4, s5, s6, s7]
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

/// Splits values and returns how many were done: blocks of 16, and of the rest what the portable form can. The caller has checked that `out`
/// has room for `width` streams of `stride` bytes.
#[target_feature(enable = "neon")]
pub(super) fn split(width: usize, values: &[u8], stride: usize, out: &mut [u8]) -> usize {
    let done = match width {
        2 => split_twos(values, stride, out),
        4 => split_fours(values, stride, out),
        8.. => split_eights(width, values, stride, out),
        _ => 0,
    };
    done + generic::split(width, &values[done * width..], stride, &mut out[done..])
}

#[inline]
#[target_feature(enable = "neon")]
fn split_twos(values: &[u8], stride: usize, out: &mut [u8]) -> usize {
    let mut done = 0;
    for block in values.as_chunks::<{ 2 * BLOCK }>().0 {
        // SAFETY: the block is two vectors.
        let uint8x16x2_t(a, b) = unsafe { vld2q_u8(block.as_ptr()) };
        store(a, &mut out[done..]);
        store(b, &mut out[stride + done..]);
        done += BLOCK;
    }
    done
}

#[inline]
#[target_feature(enable = "neon")]
fn split_fours(values: &[u8], stride: usize, out: &mut [u8]) -> usize {
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

/// Eight bytes of each value at a time; the last eight may overlap those before.
#[inline]
#[target_feature(enable = "neon")]
fn split_eights(width: usize, values: &[u8], stride: usize, out: &mut [u8]) -> usize {
    let mut done = 0;
    for block in values.chunks_exact(BLOCK * width) {
        let mut k = 0;
        loop {
            let load = |pair: usize| {
                // SAFETY: `pair < 8` and `k + 8 <= width`, so the second of the two values is at most the block's last, and both loads end
                // within it.
                unsafe {
                    let first = block.as_ptr().add(2 * pair * width + k);
                    vcombine_u8(vld1_u8(first), vld1_u8(first.add(width)))
                }
            };
            let streams = parted([0, 1, 2, 3, 4, 5, 6, 7].map(load));
            for (j, stream) in streams.into_iter().enumerate() {
                store(stream, &mut out[(k + j) * stride + done..]);
            }
            if k + 8 == width {
                break;
            }
            k = (k + 8).min(width - 8);
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
    unsafe { vst1q_u8(out.as_mut_ptr(), vector) }
}
