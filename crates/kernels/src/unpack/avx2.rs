//! AVX2: a byte shuffle within each 128-bit half moves each lane's bytes into place, a shift by lane its bits; a multiplication where
//! lanes are too narrow for such shifts.

use super::generic;
use super::shuffles::{EIGHTS, FOURS, SIXTEENS, WIDTH_U32_MAX, WIDTH_U64_MAX, full_loads, pad};
use core::arch::x86_64::*;

/// 32 values at a time, then eight.
///
/// Not `pdep`, which takes hundreds of cycles on the first AMD processors that have it, and moves eight values.
///
/// # Safety
///
/// The processor has the features; `width` is from 1 to 7; `input` holds `out.len() * width` bits.
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(super) unsafe fn u8(width: u32, input: &[u8], out: &mut [u8]) {
    if out.len() <= 8 {
        // Sooner done than the multiplication.
        return generic::u8(width, input, out);
    }
    let step = width as usize;
    let done = match width {
        _ if out.len() < 32 => 0,
        1 => bits(input, out),
        // SAFETY: the caller's promise.
        _ => unsafe { thirty_twos(step, input, out) },
    };
    let control = &SIXTEENS[step & 7];
    // SAFETY: both fields are 16 bytes.
    let (bytes, factors) = unsafe {
        (_mm_loadu_si128(control.low.as_ptr().cast()), _mm_loadu_si128(control.factors.as_ptr().cast()))
    };
    let mask = 0x0101_0101_0101_0101 * u64::from(u8::MAX >> (8 - width));
    // Value `done` begins a byte, which is within the input or its end.
    generic::u8_by(width, &input[done / 8 * step..], &mut out[done..], |word| {
        let lanes = _mm_shuffle_epi8(_mm_cvtsi64_si128(word as i64), bytes);
        let values = _mm_srli_epi16::<8>(_mm_mullo_epi16(lanes, factors));
        (_mm_cvtsi128_si64(_mm_packus_epi16(values, values)) as u64 & mask).to_le_bytes()
    });
}

/// Of width 1: each byte of a register gets the byte that its bit is in. How many values were done.
#[inline]
#[target_feature(enable = "avx2")]
fn bits(input: &[u8], out: &mut [u8]) -> usize {
    let mut done = 0;
    for (to, from) in out.as_chunks_mut::<32>().0.iter_mut().zip(input.as_chunks::<4>().0) {
        // SAFETY: a chunk is 32 bytes.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), bools(u32::from_le_bytes(*from))) };
        done += 32;
    }
    done
}

/// A byte of 0 or 1 for each bit.
#[inline]
#[target_feature(enable = "avx2")]
pub(crate) fn bools(word: u32) -> __m256i {
    let bytes = _mm256_setr_epi64x(0, 0x0101_0101_0101_0101, 0x0202_0202_0202_0202, 0x0303_0303_0303_0303);
    let bits = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64 as i64);
    let there = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(word as i32), bytes), bits);
    _mm256_min_epu8(there, _mm256_set1_epi8(1))
}

/// Blocks of 32 values of 2 to 7 bits, as many as their loads reach. How many values were done.
///
/// # Safety
///
/// `step`, the width, is from 2 to 7.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn thirty_twos(step: usize, input: &[u8], out: &mut [u8]) -> usize {
    let control = &SIXTEENS[step & 7];
    let both = |half: *const u8| {
        // SAFETY: each field of the control is 16 bytes.
        _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(half.cast()) })
    };
    let (low, high) = (both(control.low.as_ptr()), both(control.high.as_ptr()));
    let factors = both(control.factors.as_ptr().cast());
    let mask = _mm256_set1_epi8((u8::MAX >> (8 - step)) as i8);
    let blocks = full_loads(input.len(), 4 * step, 2 * step + 16, out.len() / 32);
    for block in 0..blocks {
        // SAFETY: `block * 4 * step + 2 * step + 16 <= input.len()` by `full_loads`, and `block * 32 + 32 <= out.len()`.
        unsafe {
            let from = input.as_ptr().add(block * 4 * step);
            // Each half has 16 values.
            let packed = halves(from, from.add(2 * step));
            let [low, high] = [low, high].map(|bytes| {
                _mm256_srli_epi16::<8>(_mm256_mullo_epi16(_mm256_shuffle_epi8(packed, bytes), factors))
            });
            let values = _mm256_and_si256(_mm256_packus_epi16(low, high), mask);
            _mm256_storeu_si256(out.as_mut_ptr().add(block * 32).cast(), values);
        }
    }
    blocks * 32
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

/// Widths beyond [`WIDTH_U32_MAX`], as numbers of 64 bits of which the lower halves are kept.
///
/// # Safety
///
/// The processor has the features; `width` is from 26 to 31; `input` holds `out.len() * width` bits.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn u32_wide(width: u32, input: &[u8], out: &mut [u32]) {
    let step = width as usize;
    let fours = Fours::new(width);
    let narrow = |[first, last]: [__m256i; 2]| {
        let halves =
            _mm256_shuffle_ps::<0b10_00_10_00>(_mm256_castsi256_ps(first), _mm256_castsi256_ps(last));
        // Values 0, 1, 4 and 5 are in the lower half.
        _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_castps_si256(halves))
    };
    let fast = full_loads(input.len(), step, fours.reach(), out.len() / 8);
    let (from, to) = (input.as_ptr(), out.as_mut_ptr());
    for group in 0..fast {
        // SAFETY: `group * step + reach <= input.len()` by `full_loads`, and `group * 8 + 8 <= out.len()`.
        unsafe {
            let values = narrow(fours.unpack(from.add(group * step)));
            _mm256_storeu_si256(to.add(group * 8).cast(), values);
        }
    }
    let (done, mut at) = (fast * 8, fast * step);
    for rest in out[done..].chunks_mut(8) {
        let padded = pad(&input[at..], step);
        let mut values = [0u32; 8];
        // SAFETY: `reach < REACH_MAX`; `values` is 32 bytes.
        unsafe {
            _mm256_storeu_si256(values.as_mut_ptr().cast(), narrow(fours.unpack(padded.as_ptr())));
        }
        rest.copy_from_slice(&values[..rest.len()]);
        at += step;
    }
}

/// The portable form for the widths without a shuffle, compiled with shifts by any number.
#[target_feature(enable = "avx2,bmi2")]
pub(super) fn u64_portably(width: u32, input: &[u8], out: &mut [u64]) {
    generic::u64(width, input, out);
}
