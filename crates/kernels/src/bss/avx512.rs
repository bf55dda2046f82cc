//! AVX-512: one permutation groups the bytes of a vector's values; exchanges of words or lanes of several vectors
//! collect those of one stream.

use core::arch::x86_64::*;

/// Values a block.
const BLOCK: usize = 64;

/// Splits values; returns how many were done. What is left, and values of other widths, AVX2 splits.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx2,bmi1,bmi2")]
pub(super) fn split(width: usize, values: &[u8], stride: usize, out: &mut [u8]) -> usize {
    let done = match width {
        4 => fours(values, stride, out),
        8 => eights(values, stride, out),
        _ => 0,
    };
    done + super::avx2::split(width, &values[done * width..], stride, &mut out[done..])
}

/// The permutation that puts byte `k` of value `i` of `width` bytes at place `k * (64 / width) + i`.
const fn permutation(width: usize) -> [u8; 64] {
    let mut places = [0; 64];
    let mut at = 0;
    while at < 64 {
        let values = 64 / width;
        places[at] = (at % values * width + at / values) as u8;
        at += 1;
    }
    places
}

const FOURS: [u8; 64] = permutation(4);
const EIGHTS: [u8; 64] = permutation(8);

#[inline]
#[target_feature(enable = "avx512f")]
fn load(bytes: &[u8; 64]) -> __m512i {
    // SAFETY: an array of 64 bytes.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn store(vector: __m512i, out: &mut [u8]) {
    let to = &mut out[..64];
    // SAFETY: a slice of 64 bytes.
    unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), vector) }
}

/// Lane `j` of vector `i` becomes lane `i` of vector `j`.
#[inline]
#[target_feature(enable = "avx512f")]
fn lanes([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    let (ab_even, cd_even) = (_mm512_shuffle_i64x2::<0x88>(a, b), _mm512_shuffle_i64x2::<0x88>(c, d));
    let (ab_odd, cd_odd) = (_mm512_shuffle_i64x2::<0xdd>(a, b), _mm512_shuffle_i64x2::<0xdd>(c, d));
    [
        _mm512_shuffle_i64x2::<0x88>(ab_even, cd_even),
        _mm512_shuffle_i64x2::<0x88>(ab_odd, cd_odd),
        _mm512_shuffle_i64x2::<0xdd>(ab_even, cd_even),
        _mm512_shuffle_i64x2::<0xdd>(ab_odd, cd_odd),
    ]
}

#[inline]
#[target_feature(enable = "avx512f,avx512vbmi")]
fn fours(values: &[u8], stride: usize, out: &mut [u8]) -> usize {
    let places = load(&FOURS);
    let mut done = 0;
    for block in values.as_chunks::<64>().0.as_chunks::<4>().0 {
        let [a, b, c, d] = [load(&block[0]), load(&block[1]), load(&block[2]), load(&block[3])];
        let by_stream = lanes([
            _mm512_permutexvar_epi8(places, a),
            _mm512_permutexvar_epi8(places, b),
            _mm512_permutexvar_epi8(places, c),
            _mm512_permutexvar_epi8(places, d),
        ]);
        for (k, stream) in by_stream.into_iter().enumerate() {
            store(stream, &mut out[k * stride + done..]);
        }
        done += BLOCK;
    }
    done
}

#[inline]
#[target_feature(enable = "avx512f,avx512vbmi")]
fn eights(values: &[u8], stride: usize, out: &mut [u8]) -> usize {
    let places = load(&EIGHTS);
    let mut done = 0;
    for block in values.as_chunks::<64>().0.as_chunks::<8>().0 {
        let mut pairs = [[_mm512_setzero_si512(); 4]; 2];
        for (number, two) in block.as_chunks::<2>().0.iter().enumerate() {
            let first = _mm512_permutexvar_epi8(places, load(&two[0]));
            let second = _mm512_permutexvar_epi8(places, load(&two[1]));
            // Lane `j`: eight values and the next eight of stream `2j`, or `2j + 1`.
            pairs[0][number] = _mm512_unpacklo_epi64(first, second);
            pairs[1][number] = _mm512_unpackhi_epi64(first, second);
        }
        for (odd, pairs) in pairs.into_iter().enumerate() {
            for (j, stream) in lanes(pairs).into_iter().enumerate() {
                store(stream, &mut out[(2 * j + odd) * stride + done..]);
            }
        }
        done += BLOCK;
    }
    done
}
