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

/// Splits values and returns how many were done: blocks of 16, and of the rest what the portable form can.
#[target_feature(enable = "neon")]
pub(super) fn split(width: usize, values: &[u8], stride: usize, out: &mut [u8]) -> usize {
    let whole = values.len() / width.max(1) / BLOCK * BLOCK;
    let reach = width.checked_sub(1).and_then(|last| last.checked_mul(stride)?.checked_add(whole));
    if reach.is_none_or(|reach| reach > out.len()) {
        return 0;
    }
    let to = out.as_mut_ptr();
    let done = match width {
        // SAFETY: the last of as many streams has room for `whole` bytes, so each has.
        2 => unsafe { split_twos(values, stride, to) },
        // SAFETY: as above.
        4 => unsafe { split_fours(values, stride, to) },
        // SAFETY: as above.
        8 => unsafe { split_eights::<true>(width, values, stride, to) },
        // SAFETY: as above.
        9.. => unsafe { split_eights::<false>(width, values, stride, to) },
        _ => 0,
    };
    done + generic::split(width, &values[done * width..], stride, &mut out[done..])
}

/// # Safety
///
/// As many bytes as there are values in whole blocks can be written from `out` on, and from `stride` bytes after it.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn split_twos(values: &[u8], stride: usize, out: *mut u8) -> usize {
    let mut done = 0;
    for block in values.as_chunks::<{ 2 * BLOCK }>().0 {
        // SAFETY: the block is two vectors; it has values `done..done + 16`, for which the caller promises room in each stream.
        unsafe {
            let uint8x16x2_t(a, b) = vld2q_u8(block.as_ptr());
            vst1q_u8(out.add(done), a);
            vst1q_u8(out.add(stride + done), b);
        }
        done += BLOCK;
    }
    done
}

/// # Safety
///
/// As many bytes as there are values in whole blocks can be written from `out` on, and from one, two and three times `stride` bytes after it.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn split_fours(values: &[u8], stride: usize, out: *mut u8) -> usize {
    let mut done = 0;
    for block in values.as_chunks::<{ 4 * BLOCK }>().0 {
        // SAFETY: the block is four vectors; it has values `done..done + 16`, for which the caller promises room in each stream.
        unsafe {
            let uint8x16x4_t(a, b, c, d) = vld4q_u8(block.as_ptr());
            for (k, vector) in [a, b, c, d].into_iter().enumerate() {
                vst1q_u8(out.add(k * stride + done), vector);
            }
        }
        done += BLOCK;
    }
    done
}

/// Eight bytes of each value at a time; the last eight may overlap those before. If `IS_EIGHT`, values have no more.
///
/// # Safety
///
/// `width` is at least 8, and 8 if `IS_EIGHT`; as many bytes as there are values in whole blocks can be written from `out` on, and from each
/// multiple of `stride` bytes after it that is less than `width` times as much.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn split_eights<const IS_EIGHT: bool>(
    width: usize,
    values: &[u8],
    stride: usize,
    out: *mut u8,
) -> usize {
    let mut done = 0;
    for block in values.chunks_exact(BLOCK * width) {
        let mut k = 0;
        loop {
            let load = |pair: usize| {
                // SAFETY: `pair < 8` and `k + 8 <= width`: values `2 * pair` and the next one are of the block, and all loads end within them.
                unsafe {
                    let first = block.as_ptr().add(2 * pair * width + k);
                    match IS_EIGHT {
                        true => vld1q_u8(first),
                        false => vcombine_u8(vld1_u8(first), vld1_u8(first.add(width))),
                    }
                }
            };
            let streams = parted([0, 1, 2, 3, 4, 5, 6, 7].map(load));
            for (j, stream) in streams.into_iter().enumerate() {
                // SAFETY: `k + j < width`; the block has values `done..done + 16`, for which the caller promises room in each stream.
                unsafe { vst1q_u8(out.add((k + j) * stride + done), stream) };
            }
            if IS_EIGHT || k + 8 == width {
                break;
            }
            k = (k + 8).min(width - 8);
        }
        done += BLOCK;
    }
    done
}
