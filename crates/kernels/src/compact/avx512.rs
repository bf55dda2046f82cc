//! AVX-512: `vpcompress` of 16 or 8 values.

use super::generic;
use crate::plain::Plain;
use core::arch::x86_64::*;

#[target_feature(enable = "avx512f,avx512bw,avx512vl,popcnt,bmi1,bmi2")]
pub(super) fn values<T: Plain>(values: &[T], validity: &[u8], first: usize, out: &mut [T]) -> usize {
    generic::values_by(values, validity, first, out, |values, word, out| match size_of::<T>() {
        4 if values.len() == 64 => fours(values, word, out),
        8 if values.len() == 64 => eights(values, word, out),
        _ => generic::each(values, word, out),
    })
}

/// 64 values of four bytes; `out` has as many places.
#[inline]
#[target_feature(enable = "avx512f,popcnt")]
fn fours<T: Plain>(values: &[T], word: u64, out: &mut [T]) {
    let mut done = 0;
    for (number, sixteen) in values.as_chunks::<16>().0.iter().enumerate() {
        let mask = (word >> (number * 16)) as u16;
        // SAFETY: a chunk is 64 bytes.
        let there = _mm512_maskz_compress_epi32(mask, unsafe { _mm512_loadu_si512(sixteen.as_ptr().cast()) });
        let to = &mut out[done..done + 16];
        // SAFETY: `to` is 64 bytes; `T: Plain` accepts any bits.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), there) };
        done += mask.count_ones() as usize;
    }
}

/// 64 values of eight bytes; `out` has as many places.
#[inline]
#[target_feature(enable = "avx512f,popcnt")]
fn eights<T: Plain>(values: &[T], word: u64, out: &mut [T]) {
    let mut done = 0;
    for (number, eight) in values.as_chunks::<8>().0.iter().enumerate() {
        let mask = (word >> (number * 8)) as u8;
        // SAFETY: a chunk is 64 bytes.
        let there = _mm512_maskz_compress_epi64(mask, unsafe { _mm512_loadu_si512(eight.as_ptr().cast()) });
        let to = &mut out[done..done + 8];
        // SAFETY: `to` is 64 bytes; `T: Plain` accepts any bits.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), there) };
        done += mask.count_ones() as usize;
    }
}

#[target_feature(enable = "avx512f,popcnt,bmi1,bmi2")]
pub(super) fn bits(values: (&[u8], usize), validity: (&[u8], usize), count: usize, out: &mut [u8]) -> usize {
    generic::bits_by(values, validity, count, out, |word, mask| _pext_u64(word, mask))
}
