//! AVX2: 32 values at a time, by unpacking bytes, then pairs, then quadruples of the streams.
//!
//! AVX-512 processors run this, too: the same in 512-bit vectors needs twice as many lane moves, on one port, and was
//! no faster; both are limited by writing the values.

use core::arch::x86_64::*;

/// Values a block.
const BLOCK: usize = 32;

/// Joins complete blocks and returns how many values they held. Widths other than 2, 4 and 8 have none.
#[target_feature(enable = "avx2")]
pub(super) fn blocks<const W: usize>(streams: [&[u8]; W], out: &mut [u8]) -> usize {
    let count = streams.iter().map(|stream| stream.len()).min().unwrap_or(0).min(out.len() / W.max(1));
    let blocks = count / BLOCK;
    for block in 0..blocks {
        let at = block * BLOCK;
        // SAFETY: `at + 32 <= count`, which no stream is shorter than.
        let load = |k: usize| unsafe { _mm256_loadu_si256(streams[k].as_ptr().add(at).cast()) };
        let to: *mut __m256i = out[at * W..][..BLOCK * W].as_mut_ptr().cast();
        // SAFETY: `k < W`, and `W` vectors of 32 bytes are what the slice above holds.
        let store = |k: usize, vector: __m256i| unsafe { _mm256_storeu_si256(to.add(k), vector) };
        match W {
            2 => {
                let [low, high] = halves(bytes(load(0), load(1)));
                store(0, low);
                store(1, high);
            }
            4 => {
                let [a, b] = bytes(load(0), load(1));
                let [c, d] = bytes(load(2), load(3));
                let [p, q] = pairs(a, c);
                let [r, s] = pairs(b, d);
                let ([v0, v2], [v1, v3]) = (halves([p, q]), halves([r, s]));
                store(0, v0);
                store(1, v1);
                store(2, v2);
                store(3, v3);
            }
            8 => {
                let [a0, a1] = bytes(load(0), load(1));
                let [b0, b1] = bytes(load(2), load(3));
                let [c0, c1] = bytes(load(4), load(5));
                let [d0, d1] = bytes(load(6), load(7));
                // Values 0–7 (and 16–23) of streams 0–3 and 4–7, then values 8–15 (and 24–31).
                for (half, (a, b, c, d)) in [(a0, b0, c0, d0), (a1, b1, c1, d1)].into_iter().enumerate() {
                    let [p, q] = pairs(a, b);
                    let [r, s] = pairs(c, d);
                    let [low, high] = halves(quads(p, r));
                    store(half * 2, low);
                    store(half * 2 + 4, high);
                    let [low, high] = halves(quads(q, s));
                    store(half * 2 + 1, low);
                    store(half * 2 + 5, high);
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
#[target_feature(enable = "avx2")]
pub(super) fn by_eights(width: usize, streams: &[u8], total: usize, out: &mut [u8]) -> usize {
    const VALUES: usize = 16;
    let blocks = out.len() / width.max(8) / VALUES;
    let whole = blocks * VALUES;
    if width < 8
        || (width - 1).checked_mul(total).and_then(|n| n.checked_add(whole)).is_none_or(|n| n > streams.len())
    {
        return 0;
    }
    for block in 0..blocks {
        let done = block * VALUES;
        let mut k = 0;
        loop {
            // SAFETY: `k + i < width` and `done + 16 <= whole`, so the load ends within
            // `(width - 1) * total + whole`, which is at most `streams.len()`.
            let load =
                |i: usize| unsafe { _mm_loadu_si128(streams.as_ptr().add((k + i) * total + done).cast()) };
            let bytes = |i: usize| {
                let (a, b) = (load(i), load(i + 1));
                [_mm_unpacklo_epi8(a, b), _mm_unpackhi_epi8(a, b)]
            };
            let (a, b, c, d) = (bytes(0), bytes(2), bytes(4), bytes(6));
            for half in 0..2 {
                let pairs = |a, b| [_mm_unpacklo_epi16(a, b), _mm_unpackhi_epi16(a, b)];
                let (p, q) = (pairs(a[half], b[half]), pairs(c[half], d[half]));
                for quarter in 0..2 {
                    let two = [
                        _mm_unpacklo_epi32(p[quarter], q[quarter]),
                        _mm_unpackhi_epi32(p[quarter], q[quarter]),
                    ];
                    for (i, two) in two.into_iter().enumerate() {
                        let value = done + half * 8 + quarter * 4 + i * 2;
                        // SAFETY: values `value` and `value + 1` are below `whole`, so theirs end within
                        // `whole * width <= out.len()`; and `k + 8 <= width`.
                        unsafe {
                            let to = out.as_mut_ptr().add(value * width + k);
                            _mm_storel_epi64(to.cast(), two);
                            _mm_storeh_pd(to.add(width).cast(), _mm_castsi128_pd(two));
                        }
                    }
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

#[inline]
#[target_feature(enable = "avx2")]
fn bytes(a: __m256i, b: __m256i) -> [__m256i; 2] {
    [_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b)]
}

#[inline]
#[target_feature(enable = "avx2")]
fn pairs(a: __m256i, b: __m256i) -> [__m256i; 2] {
    [_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)]
}

#[inline]
#[target_feature(enable = "avx2")]
fn quads(a: __m256i, b: __m256i) -> [__m256i; 2] {
    [_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b)]
}

/// Unpacking works within 128-bit halves: the lower halves are a vector of the first values, the upper ones of the
/// values from 16 on.
#[inline]
#[target_feature(enable = "avx2")]
fn halves([a, b]: [__m256i; 2]) -> [__m256i; 2] {
    [_mm256_permute2x128_si256::<0x20>(a, b), _mm256_permute2x128_si256::<0x31>(a, b)]
}

/// Splits values and returns how many were done: blocks of 32, and of the rest what the portable form can. In the lower halves of the
/// vectors are the first sixteen values of a block, in the upper ones the others, so nothing is moved between the halves.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn split(width: usize, values: &[u8], stride: usize, out: &mut [u8]) -> usize {
    let done = match width {
        4 => split_fours(values, stride, out),
        8.. => split_eights(width, values, stride, out),
        _ => 0,
    };
    done + super::generic::split(width, &values[done * width..], stride, &mut out[done..])
}

/// In each half, byte `k` of value `i` of 16 bytes of values of `width` bytes goes to place `k * (16 / width) + i`.
const fn grouping(width: usize) -> [u8; 16] {
    let mut places = [0; 16];
    let mut at = 0;
    while at < 16 {
        let values = 16 / width;
        places[at] = (at % values * width + at / values) as u8;
        at += 1;
    }
    places
}

const GROUPED_FOURS: [u8; 16] = grouping(4);
const GROUPED_EIGHTS: [u8; 16] = grouping(8);

#[inline]
#[target_feature(enable = "avx2")]
fn both_halves(bytes: &[u8; 16]) -> __m256i {
    // SAFETY: an array of 16 bytes.
    _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) })
}

#[inline]
#[target_feature(enable = "avx2")]
fn words(a: __m256i, b: __m256i) -> [__m256i; 2] {
    [_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b)]
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(vector: __m256i, out: &mut [u8]) {
    let to = &mut out[..BLOCK];
    // SAFETY: a slice of 32 bytes.
    unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), vector) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn split_fours(values: &[u8], stride: usize, out: &mut [u8]) -> usize {
    let grouped = both_halves(&GROUPED_FOURS);
    let mut done = 0;
    for block in values.as_chunks::<{ BLOCK * 4 }>().0 {
        let load = |k: usize| {
            let (low, high) = (&block[k * 16..][..16], &block[64 + k * 16..][..16]);
            // SAFETY: two slices of 16 bytes.
            let four = unsafe { _mm256_loadu2_m128i(high.as_ptr().cast(), low.as_ptr().cast()) };
            // Four values' byte 0, then their byte 1, and so on.
            _mm256_shuffle_epi8(four, grouped)
        };
        // Eight values' bytes 0 and 1, and 2 and 3.
        let [a, b] = quads(load(0), load(1));
        let [c, d] = quads(load(2), load(3));
        let ([s0, s1], [s2, s3]) = (words(a, c), words(b, d));
        store(s0, &mut out[done..]);
        store(s1, &mut out[stride + done..]);
        store(s2, &mut out[2 * stride + done..]);
        store(s3, &mut out[3 * stride + done..]);
        done += BLOCK;
    }
    done
}

/// Eight bytes of each value at a time; the last eight may overlap those before.
#[inline]
#[target_feature(enable = "avx2")]
fn split_eights(width: usize, values: &[u8], stride: usize, out: &mut [u8]) -> usize {
    let grouped = both_halves(&GROUPED_EIGHTS);
    let mut done = 0;
    for block in values.chunks_exact(BLOCK * width) {
        let mut k = 0;
        loop {
            // Two values' byte 0, then their byte 1, and so on.
            // SAFETY: `i < 8` and `k + 8 <= width`, so `2 * i + 17` is below 32, and the last load ends within the block.
            let load = |i: usize| unsafe {
                let first = block.as_ptr().add(2 * i * width + k);
                let second = first.add(width);
                let (third, last) = (first.add(16 * width), second.add(16 * width));
                let low = _mm_unpacklo_epi64(_mm_loadl_epi64(first.cast()), _mm_loadl_epi64(second.cast()));
                let high = _mm_unpacklo_epi64(_mm_loadl_epi64(third.cast()), _mm_loadl_epi64(last.cast()));
                _mm256_shuffle_epi8(_mm256_set_m128i(high, low), grouped)
            };
            // Of each four values bytes 0 to 3, and 4 to 7; …
            let [a0, a4] = pairs(load(0), load(1));
            let [b0, b4] = pairs(load(2), load(3));
            let [c0, c4] = pairs(load(4), load(5));
            let [d0, d4] = pairs(load(6), load(7));
            // … of each eight values bytes 0 and 1, and 2 and 3; …
            let ([p0, p2], [q0, q2]) = (quads(a0, b0), quads(c0, d0));
            let ([p4, p6], [q4, q6]) = (quads(a4, b4), quads(c4, d4));
            // … of sixteen one byte. (A loop over arrays of vectors moved them through memory.)
            let mut put = |j: usize, [even, odd]: [__m256i; 2]| {
                store(even, &mut out[(k + j) * stride + done..]);
                store(odd, &mut out[(k + j + 1) * stride + done..]);
            };
            put(0, words(p0, q0));
            put(2, words(p2, q2));
            put(4, words(p4, q4));
            put(6, words(p6, q6));
            if k + 8 == width {
                break;
            }
            k = (k + 8).min(width - 8);
        }
        done += BLOCK;
    }
    done
}
