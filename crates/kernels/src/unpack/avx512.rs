//! AVX-512 with VBMI: one byte permutation moves each lane's bytes into place, one multishift (or a shift by lane) its
//! bits.

use super::shuffles::full_loads;
use core::arch::x86_64::*;

/// Bytes of one full load.
pub(crate) const LOAD: usize = 64;

/// Where 16 values of `width` bits, which take `2 * width` bytes, are: for each 64-bit lane, the eight bytes that hold
/// its two values; for each output byte, the bit of that lane at which it begins.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Pairs {
    bytes: [u8; 64],
    bits: [u8; 64],
}

/// The widths for which two values fit eight bytes, wherever in a byte a pair can begin.
pub(crate) const WIDTH_U32_MAX: u32 = 30;

static PAIRS: [Pairs; WIDTH_U32_MAX as usize + 1] = {
    let mut all = [Pairs { bytes: [0; 64], bits: [0; 64] }; WIDTH_U32_MAX as usize + 1];
    let mut width = 1;
    while width <= WIDTH_U32_MAX as usize {
        let mut lane = 0;
        while lane < 8 {
            let start = 2 * lane * width;
            assert!(start % 8 + 2 * width <= 64);
            let mut byte = 0;
            while byte < 8 {
                // Bytes past the block's `2 * width` (at most 66) carry bits that the mask drops.
                all[width].bytes[lane * 8 + byte] = ((start / 8 + byte) % 64) as u8;
                let bit = start % 8 + byte / 4 * width + byte % 4 * 8;
                all[width].bits[lane * 8 + byte] = (bit % 64) as u8;
                byte += 1;
            }
            lane += 1;
        }
        width += 1;
    }
    all
};

/// Where 8 values of `width` bits, which take `width` bytes, are: for each 64-bit lane its eight bytes, and the bit of
/// the first at which the value begins.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Singles {
    bytes: [u8; 64],
    shifts: [u64; 8],
}

static SINGLES: [Singles; 64] = {
    let mut all = [Singles { bytes: [0; 64], shifts: [0; 8] }; 64];
    let mut width = 1;
    while width < 64 {
        let mut lane = 0;
        while lane < 8 {
            let start = lane * width;
            let mut byte = 0;
            while byte < 8 {
                all[width].bytes[lane * 8 + byte] = ((start / 8 + byte) % 64) as u8;
                byte += 1;
            }
            all[width].shifts[lane] = (start % 8) as u64;
            lane += 1;
        }
        width += 1;
    }
    all
};

/// The controls of one width of 32-bit values, in registers.
#[derive(Clone, Copy)]
pub(crate) struct Control32 {
    bytes: __m512i,
    bits: __m512i,
    mask: __m512i,
}

/// 64 values of at most eight bits: each 64-bit lane gets the bytes of eight of them, and shifts them apart.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub(super) fn u8(width: u32, input: &[u8], out: &mut [u8]) {
    let bytes = width as usize;
    let done = if width == 1 { bits(input, out) } else { 0 };
    let (input, out) = (&input[done / 8..], &mut out[done..]);
    // Byte `i` of lane `k` is byte `k * width + i`; what is beyond the lane's values is masked below.
    let (mut place, mut shift) = ([0u8; 64], [0u8; 64]);
    for (at, (place, shift)) in place.iter_mut().zip(&mut shift).enumerate() {
        *place = (at / 8 * bytes + at % 8) as u8;
        *shift = (at % 8 * bytes) as u8;
    }
    // SAFETY: arrays of 64 bytes.
    let (place, shift) =
        unsafe { (_mm512_loadu_si512(place.as_ptr().cast()), _mm512_loadu_si512(shift.as_ptr().cast())) };
    let mask = _mm512_set1_epi8((u8::MAX >> (8 - width)) as i8);
    for (number, out) in out.chunks_mut(64).enumerate() {
        let rest = input.get(number * 8 * bytes..).unwrap_or_default();
        let wanted = rest.len().min(64);
        let loaded = if wanted == 0 { 0 } else { u64::MAX >> (64 - wanted) };
        // SAFETY: the mask selects bytes of `rest`; masked-out bytes are not accessed.
        let packed = unsafe { _mm512_maskz_loadu_epi8(loaded, rest.as_ptr().cast()) };
        let lanes = _mm512_permutexvar_epi8(place, packed);
        let values = _mm512_and_si512(_mm512_multishift_epi64_epi8(shift, lanes), mask);
        let stored = u64::MAX >> (64 - out.len());
        // SAFETY: the mask selects `out.len()` bytes, 1 to 64; masked-out bytes are not accessed.
        unsafe { _mm512_mask_storeu_epi8(out.as_mut_ptr().cast(), stored, values) };
    }
}

/// Of width 1: bits are a mask. How many values were done.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) fn bits(input: &[u8], out: &mut [u8]) -> usize {
    let mut done = 0;
    for (to, from) in out.as_chunks_mut::<64>().0.iter_mut().zip(input.as_chunks::<8>().0) {
        let values = _mm512_maskz_set1_epi8(u64::from_le_bytes(*from), 1);
        // SAFETY: a chunk is 64 bytes.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), values) };
        done += 64;
    }
    done
}

impl Control32 {
    /// `width` from 1 to `WIDTH_U32_MAX`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    pub(crate) fn new(width: u32) -> Self {
        let pairs = &PAIRS[width as usize];
        // SAFETY: both fields are 64 bytes long, and aligned to 64 by the struct.
        let (bytes, bits) = unsafe {
            (
                _mm512_load_si512((&raw const pairs.bytes).cast()),
                _mm512_load_si512((&raw const pairs.bits).cast()),
            )
        };
        Self { bytes, bits, mask: _mm512_set1_epi32((u32::MAX >> (32 - width)) as i32) }
    }

    /// The 16 values at the beginning of `block`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    pub(crate) fn unpack(self, block: __m512i) -> __m512i {
        let lanes = _mm512_permutexvar_epi8(self.bytes, block);
        _mm512_and_si512(_mm512_multishift_epi64_epi8(self.bits, lanes), self.mask)
    }
}

/// The controls of one width of 64-bit values, in registers.
#[derive(Clone, Copy)]
pub(crate) struct Control64 {
    bytes: __m512i,
    shifts: __m512i,
    mask: __m512i,
    wide: bool,
}

impl Control64 {
    /// `width` from 1 to 63.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2")]
    pub(crate) fn new(width: u32) -> Self {
        let singles = &SINGLES[width as usize];
        // SAFETY: both fields are 64 bytes long, and aligned to 64 by the struct.
        let (bytes, shifts) = unsafe {
            (
                _mm512_load_si512((&raw const singles.bytes).cast()),
                _mm512_load_si512((&raw const singles.shifts).cast()),
            )
        };
        let mask = _mm512_set1_epi64((u64::MAX >> (64 - width)) as i64);
        // From 58 bits on a value may reach into a ninth byte.
        Self { bytes, shifts, mask, wide: width > 57 }
    }

    /// The 8 values at the beginning of `block`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2")]
    pub(crate) fn unpack(self, block: __m512i) -> __m512i {
        let low = _mm512_permutexvar_epi8(self.bytes, block);
        let values = if self.wide {
            // The next eight bytes; past the block's end the index wraps, to bits that the mask drops.
            let next = _mm512_add_epi8(self.bytes, _mm512_set1_epi8(8));
            let high = _mm512_permutexvar_epi8(next, block);
            _mm512_shrdv_epi64(low, high, self.shifts)
        } else {
            _mm512_srlv_epi64(low, self.shifts)
        };
        _mm512_and_si512(values, self.mask)
    }
}

/// Up to 64 bytes from `from`, zeros after them; `available` may be more.
///
/// # Safety
///
/// `available` bytes from `from` on can be read.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
pub(crate) unsafe fn load(from: *const u8, available: usize) -> __m512i {
    let mask = if available >= LOAD { u64::MAX } else { (1 << available) - 1 };
    // SAFETY: the mask selects at most `available` bytes; masked-out bytes are not accessed.
    unsafe { _mm512_maskz_loadu_epi8(mask, from.cast()) }
}

/// # Safety
///
/// The processor has the features; `width` is from 1 to [`WIDTH_U32_MAX`]; `input` holds `out.len() * width` bits.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub(super) unsafe fn u32(width: u32, input: &[u8], out: &mut [u32]) {
    let control = Control32::new(width);
    let step = 2 * width as usize;
    let (from, to) = (input.as_ptr(), out.as_mut_ptr());
    let fast = full_loads(input.len(), step, LOAD, out.len() / 16);
    for block in 0..fast {
        // SAFETY: `block * step + LOAD <= input.len()` by `full_loads`; `block * 16 + 16 <= out.len()`, because `fast`
        // is at most `out.len() / 16`.
        unsafe {
            let bytes = _mm512_loadu_si512(from.add(block * step).cast());
            _mm512_storeu_si512(to.add(block * 16).cast(), control.unpack(bytes));
        }
    }
    // Value `done` begins at byte `at`, which the contract puts within the input.
    let (mut done, mut at) = (fast * 16, fast * step);
    while done < out.len() {
        let left = out.len() - done;
        let mask = if left >= 16 { u16::MAX } else { (1 << left) - 1 };
        // SAFETY: `at < input.len()`, because value `done` is in the input; the load's mask ends at the input's end,
        // the store's at the output's.
        unsafe {
            let bytes = load(from.add(at), input.len() - at);
            _mm512_mask_storeu_epi32(to.add(done).cast(), mask, control.unpack(bytes));
        }
        done += 16;
        at += step;
    }
}

/// # Safety
///
/// The processor has the features; `width` is from 1 to 63; `input` holds `out.len() * width` bits.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2")]
pub(super) unsafe fn u64(width: u32, input: &[u8], out: &mut [u64]) {
    let control = Control64::new(width);
    let step = width as usize;
    let (from, to) = (input.as_ptr(), out.as_mut_ptr());
    let fast = full_loads(input.len(), step, LOAD, out.len() / 8);
    for block in 0..fast {
        // SAFETY: `block * step + LOAD <= input.len()` by `full_loads`; `block * 8 + 8 <= out.len()`, because `fast` is
        // at most `out.len() / 8`.
        unsafe {
            let bytes = _mm512_loadu_si512(from.add(block * step).cast());
            _mm512_storeu_si512(to.add(block * 8).cast(), control.unpack(bytes));
        }
    }
    // Value `done` begins at byte `at`, which the contract puts within the input.
    let (mut done, mut at) = (fast * 8, fast * step);
    while done < out.len() {
        let left = out.len() - done;
        let mask = if left >= 8 { u8::MAX } else { (1 << left) - 1 };
        // SAFETY: as in `u32`.
        unsafe {
            let bytes = load(from.add(at), input.len() - at);
            _mm512_mask_storeu_epi64(to.add(done).cast(), mask, control.unpack(bytes));
        }
        done += 8;
        at += step;
    }
}
