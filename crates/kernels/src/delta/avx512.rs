//! AVX-512: unpacked and summed in registers. The sum of all values before a vector is added last, so that the next one waits for one
//! addition only.

use crate::unpack::avx512::{Control32, Control64, LOAD, load};
use crate::unpack::shuffles::full_loads;
use core::arch::x86_64::*;

/// The sums of 16 lanes: each lane, its predecessors, and the ramp.
#[inline]
#[target_feature(enable = "avx512f")]
fn sum16(deltas: __m512i, ramp: __m512i) -> __m512i {
    let zero = _mm512_setzero_si512();
    let mut x = deltas;
    x = _mm512_add_epi32(x, _mm512_alignr_epi32::<15>(x, zero));
    x = _mm512_add_epi32(x, _mm512_alignr_epi32::<14>(x, zero));
    x = _mm512_add_epi32(x, _mm512_alignr_epi32::<12>(x, zero));
    x = _mm512_add_epi32(x, _mm512_alignr_epi32::<8>(x, zero));
    _mm512_add_epi32(x, ramp)
}

/// `min_delta` times 1, 2, … 16.
#[inline]
#[target_feature(enable = "avx512f")]
fn ramp16(min_delta: i32) -> __m512i {
    let steps = _mm512_set_epi32(16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1);
    _mm512_mullo_epi32(steps, _mm512_set1_epi32(min_delta))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn sum8(deltas: __m512i, ramp: __m512i) -> __m512i {
    let zero = _mm512_setzero_si512();
    let mut x = deltas;
    x = _mm512_add_epi64(x, _mm512_alignr_epi64::<7>(x, zero));
    x = _mm512_add_epi64(x, _mm512_alignr_epi64::<6>(x, zero));
    x = _mm512_add_epi64(x, _mm512_alignr_epi64::<4>(x, zero));
    _mm512_add_epi64(x, ramp)
}

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn ramp8(min_delta: i64) -> __m512i {
    _mm512_mullo_epi64(_mm512_set_epi64(8, 7, 6, 5, 4, 3, 2, 1), _mm512_set1_epi64(min_delta))
}

/// # Safety
///
/// The processor has the features; `width` is from 1 to `unpack::avx512::WIDTH_U32_MAX`; `input` holds
/// `out.len() * width` bits.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub(super) unsafe fn miniblock_i32(
    width: u32,
    input: &[u8],
    min_delta: i32,
    last: &mut i32,
    out: &mut [i32],
) {
    let control = Control32::new(width);
    let (ramp, top) = (ramp16(min_delta), _mm512_set1_epi32(15));
    let step = 2 * width as usize;
    let mut carry = _mm512_set1_epi32(*last);
    let (from, to) = (input.as_ptr(), out.as_mut_ptr());
    let fast = full_loads(input.len(), step, LOAD, out.len() / 16);
    for block in 0..fast {
        // SAFETY: `block * step + LOAD <= input.len()` by `full_loads`, and `block * 16 + 16 <= out.len()`.
        unsafe {
            let deltas = control.unpack(_mm512_loadu_si512(from.add(block * step).cast()));
            let sums = sum16(deltas, ramp);
            _mm512_storeu_si512(to.add(block * 16).cast(), _mm512_add_epi32(sums, carry));
            carry = _mm512_add_epi32(carry, _mm512_permutexvar_epi32(top, sums));
        }
    }
    // Delta `done` begins at byte `at`, which the contract puts within the input.
    let (mut done, mut at) = (fast * 16, fast * step);
    while done < out.len() {
        let left = out.len() - done;
        let mask = if left >= 16 { u16::MAX } else { (1 << left) - 1 };
        // SAFETY: `at < input.len()`, because delta `done` is in the input; the load's mask ends at the input's end,
        // the store's at the output's.
        unsafe {
            let deltas = control.unpack(load(from.add(at), input.len() - at));
            let sums = sum16(deltas, ramp);
            _mm512_mask_storeu_epi32(to.add(done).cast(), mask, _mm512_add_epi32(sums, carry));
            let top = _mm512_set1_epi32(left.min(16) as i32 - 1);
            carry = _mm512_add_epi32(carry, _mm512_permutexvar_epi32(top, sums));
        }
        done += 16;
        at += step;
    }
    *last = _mm512_cvtsi512_si32(carry);
}

/// # Safety
///
/// The processor has the features; `width` is from 1 to 63; `input` holds `out.len() * width` bits.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi,avx512vbmi2")]
pub(super) unsafe fn miniblock_i64(
    width: u32,
    input: &[u8],
    min_delta: i64,
    last: &mut i64,
    out: &mut [i64],
) {
    let control = Control64::new(width);
    let (ramp, top) = (ramp8(min_delta), _mm512_set1_epi64(7));
    let step = width as usize;
    let mut carry = _mm512_set1_epi64(*last);
    let (from, to) = (input.as_ptr(), out.as_mut_ptr());
    let fast = full_loads(input.len(), step, LOAD, out.len() / 8);
    for block in 0..fast {
        // SAFETY: `block * step + LOAD <= input.len()` by `full_loads`, and `block * 8 + 8 <= out.len()`.
        unsafe {
            let deltas = control.unpack(_mm512_loadu_si512(from.add(block * step).cast()));
            let sums = sum8(deltas, ramp);
            _mm512_storeu_si512(to.add(block * 8).cast(), _mm512_add_epi64(sums, carry));
            carry = _mm512_add_epi64(carry, _mm512_permutexvar_epi64(top, sums));
        }
    }
    // Delta `done` begins at byte `at`, which the contract puts within the input.
    let (mut done, mut at) = (fast * 8, fast * step);
    while done < out.len() {
        let left = out.len() - done;
        let mask = if left >= 8 { u8::MAX } else { (1 << left) - 1 };
        // SAFETY: as in `miniblock_i32`.
        unsafe {
            let deltas = control.unpack(load(from.add(at), input.len() - at));
            let sums = sum8(deltas, ramp);
            _mm512_mask_storeu_epi64(to.add(done).cast(), mask, _mm512_add_epi64(sums, carry));
            let top = _mm512_set1_epi64(left.min(8) as i64 - 1);
            carry = _mm512_add_epi64(carry, _mm512_permutexvar_epi64(top, sums));
        }
        done += 8;
        at += step;
    }
    *last = _mm_cvtsi128_si64(_mm512_castsi512_si128(carry));
}

/// # Safety
///
/// The processor has the features; no width is above `unpack::avx512::WIDTH_U32_MAX`; `values` is a multiple of 16;
/// `out` has room for `values` per width, and `input` has the bits of all of them.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
pub(super) unsafe fn block_i32(
    widths: &[u8],
    values: usize,
    input: &[u8],
    min_delta: i32,
    last: &mut i32,
    out: &mut [i32],
) {
    let (ramp, top) = (ramp16(min_delta), _mm512_set1_epi32(15));
    let mut carry = _mm512_set1_epi32(*last);
    let (from, mut to, mut at) = (input.as_ptr(), out.as_mut_ptr(), 0);
    for &width in widths {
        let control = Control32::new(u32::from(width).max(1));
        for _ in 0..values / 16 {
            // SAFETY: delta 16 of `values / 16 * 16` begins at byte `at`, which the contract puts within the input, at its end at most
            // where the width is 0; the mask of `load` ends at the input's end. 16 values fit `out`, of which `to` is a multiple of 16.
            unsafe {
                let sums = if width == 0 {
                    ramp
                } else if input.len() - at >= LOAD {
                    sum16(control.unpack(_mm512_loadu_si512(from.add(at).cast())), ramp)
                } else {
                    sum16(control.unpack(load(from.add(at), input.len() - at)), ramp)
                };
                _mm512_storeu_si512(to.cast(), _mm512_add_epi32(sums, carry));
                carry = _mm512_add_epi32(carry, _mm512_permutexvar_epi32(top, sums));
                to = to.add(16);
            }
            at += 2 * usize::from(width);
        }
    }
    *last = _mm512_cvtsi512_si32(carry);
}

/// # Safety
///
/// The processor has the features; no width is above 63; `values` is a multiple of 8; `out` has room for `values` per
/// width, and `input` has the bits of all of them.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vbmi,avx512vbmi2")]
pub(super) unsafe fn block_i64(
    widths: &[u8],
    values: usize,
    input: &[u8],
    min_delta: i64,
    last: &mut i64,
    out: &mut [i64],
) {
    let (ramp, top) = (ramp8(min_delta), _mm512_set1_epi64(7));
    let mut carry = _mm512_set1_epi64(*last);
    let (from, mut to, mut at) = (input.as_ptr(), out.as_mut_ptr(), 0);
    for &width in widths {
        let control = Control64::new(u32::from(width).max(1));
        for _ in 0..values / 8 {
            // SAFETY: as in `block_i32`, of eight values.
            unsafe {
                let sums = if width == 0 {
                    ramp
                } else if input.len() - at >= LOAD {
                    sum8(control.unpack(_mm512_loadu_si512(from.add(at).cast())), ramp)
                } else {
                    sum8(control.unpack(load(from.add(at), input.len() - at)), ramp)
                };
                _mm512_storeu_si512(to.cast(), _mm512_add_epi64(sums, carry));
                carry = _mm512_add_epi64(carry, _mm512_permutexvar_epi64(top, sums));
                to = to.add(8);
            }
            at += usize::from(width);
        }
    }
    *last = _mm_cvtsi128_si64(_mm512_castsi512_si128(carry));
}

#[target_feature(enable = "avx512f")]
pub(super) fn sum_i32(last: &mut i32, min_delta: i32, values: &mut [i32]) {
    let (ramp, top) = (ramp16(min_delta), _mm512_set1_epi32(15));
    let mut carry = _mm512_set1_epi32(*last);
    let (blocks, rest) = values.as_chunks_mut::<16>();
    for block in blocks {
        let at: *mut __m512i = block.as_mut_ptr().cast();
        // SAFETY: `block` is 64 bytes, read and written unaligned.
        unsafe {
            let sums = sum16(_mm512_loadu_si512(at), ramp);
            _mm512_storeu_si512(at, _mm512_add_epi32(sums, carry));
            carry = _mm512_add_epi32(carry, _mm512_permutexvar_epi32(top, sums));
        }
    }
    *last = _mm512_cvtsi512_si32(carry);
    super::generic::sum_i32(last, min_delta, rest);
}

#[target_feature(enable = "avx512f,avx512dq")]
pub(super) fn sum_i64(last: &mut i64, min_delta: i64, values: &mut [i64]) {
    let (ramp, top) = (ramp8(min_delta), _mm512_set1_epi64(7));
    let mut carry = _mm512_set1_epi64(*last);
    let (blocks, rest) = values.as_chunks_mut::<8>();
    for block in blocks {
        let at: *mut __m512i = block.as_mut_ptr().cast();
        // SAFETY: `block` is 64 bytes, read and written unaligned.
        unsafe {
            let sums = sum8(_mm512_loadu_si512(at), ramp);
            _mm512_storeu_si512(at, _mm512_add_epi64(sums, carry));
            carry = _mm512_add_epi64(carry, _mm512_permutexvar_epi64(top, sums));
        }
    }
    *last = _mm_cvtsi128_si64(_mm512_castsi512_si128(carry));
    super::generic::sum_i64(last, min_delta, rest);
}
