//! NEON: the lanes of a vector whose bit is set are moved together by a permutation of bytes that is looked up. Lanes of 16 bytes are stored
//! one by one, as with AVX2.

use super::chosen::{OF_8, chosen};
use super::generic;
use crate::neon::{ones_of_each, ones_through};
use crate::plain::Plain;
use core::arch::aarch64::*;

/// Of four lanes of four bytes.
static OF_4: [[u8; 16]; 16] = chosen::<16, 4, 16>();
/// Of two lanes of eight.
static OF_2: [[u8; 16]; 4] = chosen::<4, 8, 16>();

#[target_feature(enable = "neon")]
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
/// 64 bytes can be read from `from`, and written to `to`.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn bytes(from: *const u8, word: u64, to: *mut u8) {
    let through = ones_through(word);
    let mut done = 0;
    for number in 0..8 {
        let places = &OF_8[usize::from((word >> (8 * number)) as u8)];
        // SAFETY: eight places; `8 * number + 8 <= 64`, and no more bytes are done than were looked at: `done <= 8 * number`.
        unsafe {
            let eight = vld1_u8(from.add(8 * number));
            vst1_u8(to.add(done), vtbl1_u8(eight, vld1_u8(places.as_ptr())));
        }
        done = usize::from((through >> (8 * number)) as u8);
    }
}

/// 64 values.
///
/// # Safety
///
/// `T` has 4 or 8 bytes, no padding, and accepts any bits; there are 64 values, and as many places.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn lanes<T>(values: &[T], word: u64, out: &mut [T]) {
    let lanes = 16 / size_of::<T>();
    let ones = ones_of_each(lanes, word);
    let (from, mut to) = (values.as_ptr(), out.as_mut_ptr());
    // By eights, whose vectors the compiler unrolls.
    for eight in (0..64).step_by(8) {
        let (word, ones) = (word >> eight, ones >> eight);
        for at in (0..8).step_by(lanes) {
            let places = match lanes {
                4 => &OF_4[(word >> at) as usize & 15],
                _ => &OF_2[(word >> at) as usize & 3],
            };
            let there = (ones >> at) as usize & ((1 << lanes) - 1);
            // SAFETY: 16 places. A vector is `lanes` values, and `eight + at + lanes <= 64`; no more values are done than were looked at, so
            // `to` is at most the place `eight + at`, and `there`, at most `lanes`, places from it on exist.
            unsafe {
                let vector = vld1q_u8(from.add(eight + at).cast());
                vst1q_u8(to.cast(), vqtbl1q_u8(vector, vld1q_u8(places.as_ptr())));
                to = to.add(there);
            }
        }
    }
}

#[target_feature(enable = "neon")]
pub(super) fn bits(values: (&[u8], usize), validity: (&[u8], usize), count: usize, out: &mut [u8]) -> usize {
    generic::bits_by(values, validity, count, out, |word, mask| crate::extract::neon(word, mask))
}
