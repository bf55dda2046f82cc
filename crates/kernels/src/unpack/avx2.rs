//! AVX2: a byte shuffle within each 128-bit half moves each lane's bytes into place, a shift by lane its bits.

use super::generic;
use super::shuffles::{EIGHTS, FOURS, full_loads, pad};
use core::arch::x86_64::*;

/// Eight values per word, moved to bytes by one instruction.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) fn u8(width: u32, input: &[u8], out: &mut [u8]) {
    let places = 0x0101_0101_0101_0101 * u64::from(u8::MAX >> (8 - width));
    generic::u8_by(width, input, out, |word| _pdep_u64(word, places).to_le_bytes());
}

/// A vector of two 16-byte loads.
///
/// # Safety
///
/// 16 bytes can be read from `low` and from `high`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn halves(low: *const u8, high: *const u8) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe { _mm256_loadu2_m128i(high.cast(), low.cast()) }
}

/// # Safety
///
/// 32 bytes can be read from `from`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn whole<T>(from: *const T) -> __m256i {
    // SAFETY: the caller's promise.
    unsafe { _mm256_loadu_si256(from.cast()) }
}

/// # Safety
///
/// The processor has the features; `width` is from 1 to 25; `input` holds `out.len() * width` bits.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn u32(width: u32, input: &[u8], out: &mut [u32]) {
    let step = width as usize;
    let control = &EIGHTS[step];
    // SAFETY: both fields are 32 bytes.
    let (bytes, shifts) = unsafe { (whole(&raw const control.bytes), whole(&raw const control.shifts)) };
    let mask = _mm256_set1_epi32((u32::MAX >> (32 - width)) as i32);
    let unpack =
        |lanes: __m256i| _mm256_and_si256(_mm256_srlv_epi32(_mm256_shuffle_epi8(lanes, bytes), shifts), mask);
    let second = step / 2;
    let fast = full_loads(input.len(), step, second + 16, out.len() / 8);
    let (from, to) = (input.as_ptr(), out.as_mut_ptr());
    for group in 0..fast {
        // SAFETY: `group * step + second + 16 <= input.len()` by `full_loads`, and `group * 8 + 8 <= out.len()`.
        unsafe {
            let from = from.add(group * step);
            _mm256_storeu_si256(to.add(group * 8).cast(), unpack(halves(from, from.add(second))));
        }
    }
    // Value `done` begins at byte `at`, which the contract puts within the input.
    let (done, mut at) = (fast * 8, fast * step);
    for rest in out[done..].chunks_mut(8) {
        let padded = pad(&input[at..], step);
        let mut values = [0u32; 8];
        // SAFETY: `second + 16 <= 28 < REACH_MAX`; `values` is 32 bytes.
        unsafe {
            let lanes = halves(padded.as_ptr(), padded.as_ptr().add(second));
            _mm256_storeu_si256(values.as_mut_ptr().cast(), unpack(lanes));
        }
        rest.copy_from_slice(&values[..rest.len()]);
        at += step;
    }
}

/// # Safety
///
/// The processor has the features; `width` is from 1 to 57; `input` holds `out.len() * width` bits.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn u64(width: u32, input: &[u8], out: &mut [u64]) {
    let step = width as usize;
    let [low, high] = &FOURS[step];
    // SAFETY: each field is 32 bytes.
    let (low_bytes, low_shifts, high_bytes, high_shifts) = unsafe {
        (
            whole(&raw const low.bytes),
            whole(&raw const low.shifts),
            whole(&raw const high.bytes),
            whole(&raw const high.shifts),
        )
    };
    let mask = _mm256_set1_epi64x((u64::MAX >> (64 - width)) as i64);
    // The bytes that values 2, 4 and 6 of a group begin in.
    let starts = [2 * step / 8, 4 * step / 8, 6 * step / 8];
    let first_four = |at: *const u8| {
        // SAFETY: the closure's callers let 16 bytes be read from each of the group's starts.
        let lanes = unsafe { halves(at, at.add(starts[0])) };
        _mm256_and_si256(_mm256_srlv_epi64(_mm256_shuffle_epi8(lanes, low_bytes), low_shifts), mask)
    };
    let last_four = |at: *const u8| {
        // SAFETY: as above.
        let lanes = unsafe { halves(at.add(starts[1]), at.add(starts[2])) };
        _mm256_and_si256(_mm256_srlv_epi64(_mm256_shuffle_epi8(lanes, high_bytes), high_shifts), mask)
    };
    let fast = full_loads(input.len(), step, starts[2] + 16, out.len() / 8);
    let (from, to) = (input.as_ptr(), out.as_mut_ptr());
    for group in 0..fast {
        // SAFETY: `group * step + starts[2] + 16 <= input.len()` by `full_loads`, and `group * 8 + 8 <= out.len()`.
        unsafe {
            let from = from.add(group * step);
            _mm256_storeu_si256(to.add(group * 8).cast(), first_four(from));
            _mm256_storeu_si256(to.add(group * 8 + 4).cast(), last_four(from));
        }
    }
    let (done, mut at) = (fast * 8, fast * step);
    for rest in out[done..].chunks_mut(8) {
        let padded = pad(&input[at..], step);
        let mut values = [0u64; 8];
        // SAFETY: `starts[2] + 16 <= 58 < REACH_MAX`; `values` is 64 bytes.
        unsafe {
            _mm256_storeu_si256(values.as_mut_ptr().cast(), first_four(padded.as_ptr()));
            _mm256_storeu_si256(values.as_mut_ptr().add(4).cast(), last_four(padded.as_ptr()));
        }
        rest.copy_from_slice(&values[..rest.len()]);
        at += step;
    }
}

/// The portable form for the widths without a shuffle; compiled with AVX2, which vectorises its shifts.
#[target_feature(enable = "avx2,bmi2")]
pub(super) fn u32_portably(width: u32, input: &[u8], out: &mut [u32]) {
    generic::u32(width, input, out);
}

/// As [`u32_portably`].
#[target_feature(enable = "avx2,bmi2")]
pub(super) fn u64_portably(width: u32, input: &[u8], out: &mut [u64]) {
    generic::u64(width, input, out);
}
