//! AVX2: bytes are joined by pairs, fours and eights in multiplications that add neighbours, and a shuffle moves the eights together;
//! numbers of at most 8 bits are narrowed to bytes first. Those of at most 15 are joined by shifts of their own for each lane. Wider ones
//! are packed by the portable form, compiled with AVX2, which vectorises some of its shifts.
//!
//! Not `pext`: it takes hundreds of cycles on the first AMD processors that have it, and joins eight values at a time elsewhere.

use super::generic;
use crate::unpack::shuffles::full_loads;
use core::arch::x86_64::*;

/// Values of a register of bytes.
const BLOCK: usize = 32;

/// # Safety
///
/// The processor has the features; `width` is from 1 to 31; `out` has the bytes that the values take.
#[target_feature(enable = "avx2,bmi2")]
pub(super) unsafe fn u32(width: u32, values: &[u32], out: &mut [u8]) {
    // Of a single block, as DELTA_BINARY_PACKED has them, making the factors takes more instructions than they save.
    let done = match width {
        // SAFETY: the caller's promise.
        1..=8 if values.len() > BLOCK => unsafe { narrow(width, values, out) },
        // SAFETY: as above.
        9..=15 if values.len() > BLOCK => unsafe { by_eights(width, values, out) },
        _ => 0,
    };
    generic::u32(width, &values[done..], &mut out[done / 8 * width as usize..]);
}

/// The portable form: shifts by constants, to which AVX2 has nothing to add.
#[target_feature(enable = "avx2")]
pub(super) fn u64(width: u32, values: &[u64], out: &mut [u8]) {
    generic::u64(width, values, out);
}

/// # Safety
///
/// The processor has the features; `width` is from 1 to 7; `out` has the bytes that the values take.
#[target_feature(enable = "avx2,bmi2")]
pub(super) unsafe fn u8(width: u32, values: &[u8], out: &mut [u8]) {
    if values.len() < BLOCK {
        // Sooner done than the factors are made.
        return generic::u8(width, values, out);
    }
    let step = width as usize;
    let join = Join::new(width);
    let blocks = full_loads(out.len(), 4 * step, join.reach(), values.len() / BLOCK);
    for block in 0..blocks {
        // SAFETY: `block * 32 + 32 <= values.len()`, and `block * 4 * step + reach <= out.len()` by `full_loads`.
        unsafe {
            let bytes = _mm256_loadu_si256(values.as_ptr().add(block * BLOCK).cast());
            join.store(bytes, out.as_mut_ptr().add(block * 4 * step));
        }
    }
    let done = blocks * BLOCK;
    generic::u8_by(width, &values[done..], &mut out[done / 8 * step..], |eight| join.eight(eight));
}

/// Widths up to 8. How many values were packed: blocks of 32, as long as there is room for each store.
///
/// # Safety
///
/// The processor has the features; `width` is from 1 to 8.
#[inline]
#[target_feature(enable = "avx2,bmi2")]
unsafe fn narrow(width: u32, values: &[u32], out: &mut [u8]) -> usize {
    let step = width as usize;
    let join = Join::new(width);
    let mask = _mm256_set1_epi32(i32::from(u8::MAX >> (8 - width)));
    // Narrowing works within 128-bit halves: fours of the lower halves come first.
    let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    let blocks = full_loads(out.len(), 4 * step, join.reach(), values.len() / BLOCK);
    for block in 0..blocks {
        let from: *const __m256i = values[block * BLOCK..][..BLOCK].as_ptr().cast();
        // SAFETY: `k < 4`, and four vectors of 32 bytes are what the slice above holds.
        let load = |k: usize| _mm256_and_si256(unsafe { _mm256_loadu_si256(from.add(k)) }, mask);
        let [low, high] = [_mm256_packus_epi32(load(0), load(1)), _mm256_packus_epi32(load(2), load(3))];
        let bytes = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order);
        // SAFETY: `block * 4 * step + reach <= out.len()` by `full_loads`.
        unsafe { join.store(bytes, out.as_mut_ptr().add(block * 4 * step)) };
    }
    blocks * BLOCK
}

/// Widths from 9 to 15: eight values take `width` bytes, four of them, in each half of a register, at most 60 bits. How many values
/// were packed: groups of eight, as long as there is room for each store. (Of 16 bits the portable form, which the compiler knows to be
/// a narrowing, is nearly twice as fast. Of more, four take more than a word.)
///
/// # Safety
///
/// The processor has the features; `width` is from 9 to 15.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn by_eights(width: u32, values: &[u32], out: &mut [u8]) -> usize {
    let (step, gap) = (width as usize, 32 - width);
    let mask = _mm256_set1_epi32((1 << width) - 1);
    let up = _mm256_set1_epi64x(i64::from(gap));
    let [down, pair] = [gap, 2 * width].map(|count| _mm_cvtsi32_si128(count as i32));
    // The upper four begin `4 * width` bits on: that many bytes, and half a byte where the width is odd.
    let (bytes, bits) = (step / 2, i64::from(width % 2 * 4));
    let half = _mm256_setr_epi64x(0, 0, bits, bits);
    let mut places = [0x80_u8; 32];
    for byte in 0..8 {
        places[byte] = byte as u8;
        places[16 + bytes + byte] = byte as u8;
    }
    // SAFETY: the array is 32 bytes.
    let places = unsafe { _mm256_loadu_si256(places.as_ptr().cast()) };
    let groups = full_loads(out.len(), step, 16, values.len() / 8);
    for group in 0..groups {
        // SAFETY: `group * 8 + 8 <= values.len()`.
        let eight = unsafe { _mm256_loadu_si256(values.as_ptr().add(group * 8).cast()) };
        // The lower ones of two to the upper end of their 32 bits, then both down to the lower end of 64.
        let pairs = _mm256_srl_epi64(_mm256_sllv_epi32(_mm256_and_si256(eight, mask), up), down);
        let fours = _mm256_or_si256(pairs, _mm256_sll_epi64(_mm256_srli_si256::<8>(pairs), pair));
        let placed = _mm256_shuffle_epi8(_mm256_sllv_epi64(fours, half), places);
        let packed = _mm_or_si128(_mm256_castsi256_si128(placed), _mm256_extracti128_si256::<1>(placed));
        // SAFETY: `group * step + 16 <= out.len()` by `full_loads`.
        unsafe { _mm_storeu_si128(out.as_mut_ptr().add(group * step).cast(), packed) };
    }
    groups * 8
}

/// How 32 bytes are packed.
struct Join {
    width: u32,
    mask: __m256i,
    pairs: __m256i,
    fours: __m256i,
    up: __m256i,
    down: __m128i,
    keep: __m256i,
}

impl Join {
    /// `width` is from 1 to 8; of the others, the bytes are kept as they are.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn new(width: u32) -> Self {
        let w = width.clamp(1, 7);
        let mut keep = [0x80; 16];
        for (to, byte) in keep.iter_mut().zip((0..w).chain(8..8 + w)) {
            *to = byte as u8;
        }
        let gap = 32 - 4 * w;
        Self {
            width,
            mask: _mm256_set1_epi8((u8::MAX >> (8 - w)) as i8),
            // 1, and as much as the second value is to the left of the first.
            pairs: _mm256_set1_epi16((1_u16 << (8 + w) | 1) as i16),
            fours: _mm256_set1_epi32(1 << (16 + 2 * w) | 1),
            up: _mm256_set1_epi64x(i64::from(gap)),
            down: _mm_cvtsi32_si128(gap as i32),
            // SAFETY: the array is 16 bytes.
            keep: _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(keep.as_ptr().cast()) }),
        }
    }

    /// How many bytes [`Self::store`] writes: the values take `4 * width` of them.
    #[inline(always)]
    fn reach(&self) -> usize {
        match self.width {
            1 => 4,
            2..=7 => 2 * self.width as usize + 16,
            _ => BLOCK,
        }
    }

    /// Eight values in each 64 bits, from the lowest on.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn eights(&self, bytes: __m256i) -> __m256i {
        // At most 127, so bytes with a sign; and the factors, at most 128, are those without.
        let pairs = _mm256_maddubs_epi16(self.pairs, _mm256_and_si256(bytes, self.mask));
        // At most 14 bits, and as many of the factors.
        let fours = _mm256_madd_epi16(pairs, self.fours);
        // The lower fours to the upper end of their 32 bits, then both down to the lower end of 64.
        _mm256_srl_epi64(_mm256_sllv_epi32(fours, self.up), self.down)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn eight(&self, eight: [u8; 8]) -> u64 {
        let bytes = _mm256_zextsi128_si256(_mm_cvtsi64_si128(i64::from_le_bytes(eight)));
        _mm_cvtsi128_si64(_mm256_castsi256_si128(self.eights(bytes))) as u64
    }

    /// # Safety
    ///
    /// [`Self::reach`] bytes can be written to `to`.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn store(&self, bytes: __m256i, to: *mut u8) {
        match self.width {
            1 => {
                // The lowest bit of each byte as its sign.
                let bits = _mm256_movemask_epi8(_mm256_slli_epi16::<7>(bytes));
                // SAFETY: the caller's promise; `to` need not be aligned.
                unsafe { to.cast::<i32>().write_unaligned(bits) };
            }
            2..=7 => {
                let packed = _mm256_shuffle_epi8(self.eights(bytes), self.keep);
                // SAFETY: the caller's promise.
                unsafe {
                    _mm_storeu_si128(to.cast(), _mm256_castsi256_si128(packed));
                    let high = to.add(2 * self.width as usize);
                    _mm_storeu_si128(high.cast(), _mm256_extracti128_si256::<1>(packed));
                }
            }
            // SAFETY: the caller's promise.
            _ => unsafe { _mm256_storeu_si256(to.cast(), bytes) },
        }
    }
}
