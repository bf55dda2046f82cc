//! PLAIN fixed-width values, and typed slices as bytes.
//!
//! Speed: memory bounds [`copy`]; stores, where everything is in the caches. `docs/bench/kernels.md` has its distance
//! from a copy of as many bytes (`make bench-kernels`).
//!
//! NEON: the portable form, which is the C library's copy.

#[cfg(target_arch = "x86_64")]
mod avx2;

use crate::cpu::{Isa, dispatch, isa};

mod sealed {
    pub trait Sealed {}
}

/// A fixed-width value whose memory is its Parquet bytes.
///
/// # Safety
///
/// Implementors have no padding, accept every bit pattern, hold no pointer and no cell, and their memory, on the
/// little-endian processors this crate compiles for, is laid out as in Parquet's PLAIN encoding and Arrow's buffers.
/// The trait is sealed.
pub unsafe trait Plain:
    sealed::Sealed + Copy + PartialEq + core::fmt::Debug + Send + Sync + 'static
{
    /// All bits zero: the value in the slot of a null.
    const ZERO: Self;
}

macro_rules! plain {
    ($($type:ty = $zero:expr),+) => {$(
        impl sealed::Sealed for $type {}
        // SAFETY: a primitive number: no padding, every bit pattern is a value, little-endian in memory.
        unsafe impl Plain for $type {
            const ZERO: Self = $zero;
        }
    )+};
}
plain!(
    u8 = 0,
    i8 = 0,
    u16 = 0,
    i16 = 0,
    u32 = 0,
    i32 = 0,
    u64 = 0,
    i64 = 0,
    u128 = 0,
    i128 = 0,
    f32 = 0.0,
    f64 = 0.0
);

impl<const N: usize> sealed::Sealed for [u8; N] {}
// SAFETY: an array of bytes: no padding, every bit pattern is a value, the order is the file's.
unsafe impl<const N: usize> Plain for [u8; N] {
    const ZERO: Self = [0; N];
}

/// Copies as many complete values as `input` holds and `out` has room for, and returns their number. `input` need not
/// be aligned.
pub fn copy<T: Plain>(input: &[u8], out: &mut [T]) -> usize {
    let width = size_of::<T>();
    if width == 0 {
        return out.len();
    }
    let count = (input.len() / width).min(out.len());
    copy_with(isa(), &input[..count * width], as_bytes_mut(&mut out[..count]));
    count
}

/// Fewer bytes are copied by the C library, wherever they are.
const LONG: usize = 512;

/// Bytes of a page of memory, and how many behind `from`, in pages, `to` begins at most where the C library's copy may be slow.
const PAGE: usize = 4096;
const CLOSE: usize = 64;

/// Copies all of `from` to `to`, which is as long: by the C library, which is the fastest where it comes from memory (AVX2 took 3 to 7 %
/// longer, and to fetch ahead did not help). But on a Zen 4 its `rep movsb` (glibc before 2.39) is a tenth as fast, 3 bytes a nanosecond, where
/// `to` begins a little behind `from` in pages: then, not so.
fn copy_with(isa: Isa, from: &[u8], to: &mut [u8]) {
    let behind = to.as_ptr().addr().wrapping_sub(from.as_ptr().addr()) % PAGE;
    let done = if from.len() < LONG || !(1..CLOSE).contains(&behind) {
        0
    } else {
        // No contract beyond the features.
        dispatch!(isa,
            avx512: avx2::blocks(from, to),
            avx2: avx2::blocks(from, to),
            portable: 0,
        )
    };
    to[done..].copy_from_slice(&from[done..]);
}

/// The bytes of typed values.
#[inline]
#[must_use]
pub fn as_bytes<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: `Plain` has no padding, so all `size_of_val` bytes are initialised; `u8` has no alignment to keep; the
    // result borrows `values`.
    unsafe { core::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// The bytes of typed values, mutably.
#[inline]
#[must_use]
pub fn as_bytes_mut<T: Plain>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: as in `as_bytes`; and any bytes written make valid values, because `Plain` accepts every bit pattern. The
    // result borrows `values` mutably.
    unsafe { core::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

/// The same memory as values of another type of the same size: `&[i32]` as `&[u32]`, `&[f64]` as `&[u64]`.
///
/// Types of different size, or of stricter alignment, do not compile.
#[inline]
#[must_use]
pub fn cast<A: Plain, B: Plain>(values: &[A]) -> &[B] {
    const { assert!(size_of::<A>() == size_of::<B>() && align_of::<A>() >= align_of::<B>()) }
    // SAFETY: sizes are equal and the alignment suffices (asserted above); `B: Plain` accepts every bit pattern.
    unsafe { core::slice::from_raw_parts(values.as_ptr().cast(), values.len()) }
}

/// [`cast`], mutably.
#[inline]
#[must_use]
pub fn cast_mut<A: Plain, B: Plain>(values: &mut [A]) -> &mut [B] {
    const { assert!(size_of::<A>() == size_of::<B>() && align_of::<A>() >= align_of::<B>()) }
    // SAFETY: as in `cast`, and `A: Plain` accepts every bit pattern that a `B` leaves.
    unsafe { core::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), values.len()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_whole_values_from_any_offset() {
        let bytes: std::vec::Vec<u8> = (0..64).collect();
        for offset in 0..9 {
            let mut out = [0u32; 20];
            let made = copy(&bytes[offset..], &mut out);
            assert_eq!(made, (64 - offset) / 4);
            for (i, value) in out.iter().enumerate() {
                let at = offset + i * 4;
                let expected =
                    if i < made { u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) } else { 0 };
                assert_eq!(*value, expected);
            }
        }
        let mut few = [0.0f64; 2];
        assert_eq!(copy(&1.5f64.to_le_bytes(), &mut few), 1);
        assert_eq!(few, [1.5, 0.0]);
        let mut int96 = [[0u8; 12]; 3];
        assert_eq!(copy(&bytes[1..], &mut int96), 3);
        assert_eq!(int96[2][11], 36);
        assert_eq!(copy(&bytes, &mut [[0u8; 0]; 3]), 3);
    }

    #[test]
    fn copies_of_any_length_at_every_level() {
        let from: std::vec::Vec<u8> = (0..3000_u32).map(|at| (at * 7 % 251) as u8).collect();
        let mut to = std::vec![0; 2 * PAGE + from.len()];
        let step = if cfg!(miri) { 97 } else { 1 };
        for isa in Isa::all() {
            for length in (0..700).step_by(step).chain([1023, 1024, 1025, 2900]) {
                for (start, behind) in [(0, 0), (1, 1), (13, 16), (64, 33), (5, 63), (2, 64), (3, 4095)] {
                    let from = &from[start..start + length];
                    // As far behind it in a page.
                    let at =
                        from.as_ptr().addr().wrapping_add(behind).wrapping_sub(to.as_ptr().addr()) % PAGE;
                    to.fill(0xa5);
                    copy_with(isa, from, &mut to[at..at + length]);
                    assert!(to[at..at + length] == *from, "{length} from {start}, {behind} behind");
                    assert!(to[at + length] == 0xa5 && (at == 0 || to[at - 1] == 0xa5));
                }
            }
        }
    }

    #[test]
    fn casts_keep_bits() {
        assert_eq!(cast::<i32, u32>(&[-1, 2]), &[u32::MAX, 2]);
        assert_eq!(cast::<f64, u64>(&[1.0]), &[0x3ff0_0000_0000_0000]);
        let mut values = [0i64; 2];
        cast_mut::<i64, u64>(&mut values)[1] = u64::MAX;
        assert_eq!(values, [0, -1]);
        assert_eq!(as_bytes(&[0x0102u16, 3]), &[2, 1, 3, 0]);
    }
}
