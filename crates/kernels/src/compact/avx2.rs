//! AVX2: the lanes of a vector whose bit is set are moved together by a permutation that is looked up. Of lanes of 16 bytes that was no
//! faster than a store of each value.

use super::chosen::{OF_4, OF_8};
use super::generic;
use crate::plain::Plain;
use core::arch::x86_64::*;

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(super) fn values<T: Plain>(values: &[T], validity: &[u8], first: usize, out: &mut [T]) -> usize {
    generic::values_by(values, validity, first, out, |values, word, out| {
        let whole = values.len() == 64 && out.len() == 64;
        match size_of::<T>() {
            // SAFETY: there are 64 of each, and `T: Plain` has no padding and accepts any bits.
            1 if whole => unsafe { bytes(values.as_ptr().cast(), word, out.as_mut_ptr().cast()) },
            // SAFETY: as above.
            4 | 8 if whole => unsafe { lanes(values, word, out) },
            _ => generic::each(values, word, out),
        }
    })
}

/// 64 bytes, eight at a time.
///
/// # Safety
///
/// The processor has the features; 64 bytes can be read from `from`, and written to `to`.
#[inline]
#[target_feature(enable = "avx2,popcnt")]
unsafe fn bytes(from: *const u8, word: u64, to: *mut u8) {
    let mut done = 0;
    for number in 0..8 {
        let set = word >> (8 * number) & 255;
        let places = _mm_cvtsi64_si128(i64::from_le_bytes(OF_8[set as usize]));
        // SAFETY: `8 * number + 8 <= 64`, and no more bytes are done than were looked at: `done <= 8 * number`.
        unsafe {
            let eight = _mm_shuffle_epi8(_mm_loadl_epi64(from.add(8 * number).cast()), places);
            _mm_storel_epi64(to.add(done).cast(), eight);
        }
        done += set.count_ones() as usize;
    }
}

/// 64 values.
///
/// # Safety
///
/// The processor has the features; `T` has 4 or 8 bytes, no padding, and accepts any bits; there are 64 values, and as many places.
#[inline]
#[target_feature(enable = "avx2,popcnt")]
unsafe fn lanes<T>(values: &[T], word: u64, out: &mut [T]) {
    let lanes = 32 / size_of::<T>();
    let mut done = 0;
    for number in 0..64 / lanes {
        let set = word >> (lanes * number) & ((1 << lanes) - 1);
        let places = match lanes {
            8 => &OF_8[set as usize & 255],
            _ => &OF_4[set as usize & 15],
        };
        let places = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(i64::from_le_bytes(*places)));
        // SAFETY: a vector is `lanes` values; `lanes * number + lanes <= 64`, and no more values are done than were looked at:
        // `done <= lanes * number`.
        unsafe {
            let vector = _mm256_loadu_si256(values.as_ptr().add(lanes * number).cast());
            let there = _mm256_permutevar8x32_epi32(vector, places);
            _mm256_storeu_si256(out.as_mut_ptr().add(done).cast(), there);
        }
        done += set.count_ones() as usize;
    }
}

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(super) fn bits(values: (&[u8], usize), validity: (&[u8], usize), count: usize, out: &mut [u8]) -> usize {
    generic::bits_by(values, validity, count, out, |word, mask| _pext_u64(word, mask))
}

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2,pclmulqdq")]
pub(super) fn bits_slow_pext(
    values: (&[u8], usize),
    validity: (&[u8], usize),
    count: usize,
    out: &mut [u8],
) -> usize {
    generic::bits_by(values, validity, count, out, |word, mask| crate::extract::avx2(word, mask))
}
