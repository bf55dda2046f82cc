//! AVX2: a byte shuffle within each 128-bit half moves each lane's bytes into place, a shift by lane its bits.

use super::generic;
use super::shuffles::{EIGHTS, FOURS, WIDTH_U32_MAX, WIDTH_U64_MAX, full_loads, pad};
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

/// How eight values of one width, 1 to 25, are unpacked.
pub(crate) struct Eights {
    bytes: __m256i,
    shifts: __m256i,
    mask: __m256i,
    second: usize,
}

impl Eights {
    /// `width` is from 1 to [`WIDTH_U32_MAX`]; others are taken as the widest.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn new(width: u32) -> Self {
        let control = &EIGHTS[(width as usize).min(WIDTH_U32_MAX)];
        // SAFETY: both fields are 32 bytes.
        let (bytes, shifts) = unsafe { (whole(&raw const control.bytes), whole(&raw const control.shifts)) };
        let mask = _mm256_set1_epi32((u32::MAX >> (32 - width)) as i32);
        Self { bytes, shifts, mask, second: width as usize / 2 }
    }

    /// How many bytes are loaded, at most 28.
    #[inline(always)]
    pub(crate) fn reach(&self) -> usize {
        self.second + 16
    }

    /// # Safety
    ///
    /// [`Self::reach`] bytes can be read from `from`.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) unsafe fn unpack(&self, from: *const u8) -> __m256i {
        // SAFETY: the caller's promise.
        let lanes = unsafe { halves(from, from.add(self.second)) };
        _mm256_and_si256(_mm256_srlv_epi32(_mm256_shuffle_epi8(lanes, self.bytes), self.shifts), self.mask)
    }
}

/// How two times four values of one width, 1 to 57, are unpacked.
pub(crate) struct Fours {
    bytes: [__m256i; 2],
    shifts: [__m256i; 2],
    mask: __m256i,
    /// The bytes that values 2, 4 and 6 of a group begin in.
    starts: [usize; 3],
}

impl Fours {
    /// `width` is from 1 to [`WIDTH_U64_MAX`]; others are taken as the widest.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) fn new(width: u32) -> Self {
        let step = (width as usize).min(WIDTH_U64_MAX);
        let controls = &FOURS[step];
        // SAFETY: each field is 32 bytes.
        let bytes = [0, 1].map(|k: usize| unsafe { whole(&raw const controls[k].bytes) });
        // SAFETY: as above.
        let shifts = [0, 1].map(|k: usize| unsafe { whole(&raw const controls[k].shifts) });
        let mask = _mm256_set1_epi64x((u64::MAX >> (64 - width)) as i64);
        Self { bytes, shifts, mask, starts: [2 * step / 8, 4 * step / 8, 6 * step / 8] }
    }

    /// How many bytes are loaded, at most 58.
    #[inline(always)]
    pub(crate) fn reach(&self) -> usize {
        self.starts[2] + 16
    }

    /// # Safety
    ///
    /// [`Self::reach`] bytes can be read from `from`.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) unsafe fn unpack(&self, from: *const u8) -> [__m256i; 2] {
        // SAFETY: the caller's promise.
        let lanes = unsafe {
            [
                halves(from, from.add(self.starts[0])),
                halves(from.add(self.starts[1]), from.add(self.starts[2])),
            ]
        };
        let unpack = |k: usize| {
            let words = _mm256_srlv_epi64(_mm256_shuffle_epi8(lanes[k], self.bytes[k]), self.shifts[k]);
            _mm256_and_si256(words, self.mask)
        };
        [unpack(0), unpack(1)]
    }
}

/// # Safety
///
/// The processor has the features; `width` is from 1 to [`WIDTH_U32_MAX`]; `input` holds `out.len() * width` bits.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn u32(width: u32, input: &[u8], out: &mut [u32]) {
    let step = width as usize;
    let eights = Eights::new(width);
    let fast = full_loads(input.len(), step, eights.reach(), out.len() / 8);
    let (from, to) = (input.as_ptr(), out.as_mut_ptr());
    for group in 0..fast {
        // SAFETY: `group * step + reach <= input.len()` by `full_loads`, and `group * 8 + 8 <= out.len()`.
        unsafe {
            _mm256_storeu_si256(to.add(group * 8).cast(), eights.unpack(from.add(group * step)));
        }
    }
    // Value `done` begins at byte `at`, which the contract puts within the input.
    let (done, mut at) = (fast * 8, fast * step);
    for rest in out[done..].chunks_mut(8) {
        let padded = pad(&input[at..], step);
        let mut values = [0u32; 8];
        // SAFETY: `reach < REACH_MAX`; `values` is 32 bytes.
        unsafe { _mm256_storeu_si256(values.as_mut_ptr().cast(), eights.unpack(padded.as_ptr())) };
        rest.copy_from_slice(&values[..rest.len()]);
        at += step;
    }
}

/// # Safety
///
/// The processor has the features; `width` is from 1 to [`WIDTH_U64_MAX`]; `input` holds `out.len() * width` bits.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn u64(width: u32, input: &[u8], out: &mut [u64]) {
    let step = width as usize;
    let fours = Fours::new(width);
    let fast = full_loads(input.len(), step, fours.reach(), out.len() / 8);
    let (from, to) = (input.as_ptr(), out.as_mut_ptr());
    for group in 0..fast {
        // SAFETY: `group * step + reach <= input.len()` by `full_loads`, and `group * 8 + 8 <= out.len()`.
        unsafe {
            let [first, last] = fours.unpack(from.add(group * step));
            _mm256_storeu_si256(to.add(group * 8).cast(), first);
            _mm256_storeu_si256(to.add(group * 8 + 4).cast(), last);
        }
    }
    let (done, mut at) = (fast * 8, fast * step);
    for rest in out[done..].chunks_mut(8) {
        let padded = pad(&input[at..], step);
        let mut values = [0u64; 8];
        // SAFETY: `reach < REACH_MAX`; `values` is 64 bytes.
        unsafe {
            let [first, last] = fours.unpack(padded.as_ptr());
            _mm256_storeu_si256(values.as_mut_ptr().cast(), first);
            _mm256_storeu_si256(values.as_mut_ptr().add(4).cast(), last);
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
