//! Dictionary lookup: `out[i] = dict[indices[i]]`, every index checked.
//!
//! Speed: two loads and a store for each value bound it: one value a cycle. `docs/bench/kernels.md` has its
//! distance from a copy of as many bytes (`make bench-kernels`).
//!
//! NEON: the portable form; of [`max_u32`], it is compiled to vectors.

use alloc::vec::Vec;

use crate::Plain;
use crate::cpu::{Isa, dispatch, isa};
use crate::error::Error;

/// Indices that are checked, then looked up, at a time; they stay in the first-level cache in between.
const PIECE: usize = 512;

/// Looks every index up.
///
/// # Errors
///
/// `Mismatch` if `indices` and `out` differ in length; `OutOfRange` if an index is outside the dictionary: then `out`
/// holds some of the values.
pub fn values<T: Plain>(dict: &[T], indices: &[u32], out: &mut [T]) -> Result<(), Error> {
    values_with(isa(), dict, indices, out)
}

/// Looks up values of `width` bytes, which are consecutive in `dict` (FIXED_LEN_BYTE_ARRAY).
///
/// If `dict` ends within an entry, that entry does not count.
///
/// # Errors
///
/// `Width` of 0; `Mismatch` if `out` is not `indices.len() * width` bytes; `OutOfRange` as in [`values`].
pub fn fixed(dict: &[u8], width: usize, indices: &[u32], out: &mut [u8]) -> Result<(), Error> {
    macro_rules! arrays {
        ($($n:literal)+) => {
            match width {
                $($n => return values(dict.as_chunks::<$n>().0, indices, chunks_mut::<$n>(out)?),)+
                0 => return Err(Error::Width { width }),
                _ => {}
            }
        };
    }
    // A copy of constant length is a load and a store; otherwise, it is a call.
    arrays!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 20 32);
    if indices.len().checked_mul(width) != Some(out.len()) {
        return Err(Error::Mismatch);
    }
    check(isa(), indices, dict.len() / width)?;
    for (to, &index) in out.chunks_exact_mut(width).zip(indices) {
        let at = index as usize * width;
        to.copy_from_slice(&dict[at..at + width]);
    }
    Ok(())
}

/// A dictionary in segments of `1 << shift` entries each, except that the last may have fewer. So a dictionary of any
/// size needs no large allocation.
#[derive(Clone, Copy, Debug)]
pub struct Segmented<'a, T> {
    segments: &'a [Vec<T>],
    shift: u32,
    entries: usize,
}

impl<'a, T: Plain> Segmented<'a, T> {
    /// The dictionary in `segments`.
    ///
    /// # Errors
    ///
    /// `Mismatch` unless each segment but the last has `1 << shift` entries, and the last at most that many.
    pub fn new(segments: &'a [Vec<T>], shift: u32) -> Result<Segmented<'a, T>, Error> {
        let full = 1usize.checked_shl(shift).filter(|_| shift < u32::BITS).ok_or(Error::Mismatch)?;
        let Some((last, others)) = segments.split_last() else {
            return Ok(Segmented { segments, shift, entries: 0 });
        };
        let before = others.len().checked_mul(full).ok_or(Error::Mismatch)?;
        if last.len() > full || others.iter().any(|segment| segment.len() != full) {
            return Err(Error::Mismatch);
        }
        Ok(Segmented { segments, shift, entries: before.saturating_add(last.len()) })
    }

    /// Its entries.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// The entry at `index`; `None` if it is beyond the end.
    #[must_use]
    pub fn get(&self, index: u32) -> Option<T> {
        let mask = (1u32 << self.shift) - 1;
        self.segments.get((index >> self.shift) as usize)?.get((index & mask) as usize).copied()
    }

    /// Looks every index up.
    ///
    /// # Errors
    ///
    /// As [`values`].
    pub fn values(&self, indices: &[u32], out: &mut [T]) -> Result<(), Error> {
        self.values_with(isa(), indices, out)
    }

    pub(crate) fn values_with(&self, isa: Isa, indices: &[u32], out: &mut [T]) -> Result<(), Error> {
        if indices.len() != out.len() {
            return Err(Error::Mismatch);
        }
        let mask = (1u32 << self.shift) - 1;
        for (indices, out) in indices.chunks(PIECE).zip(out.chunks_mut(PIECE)) {
            check(isa, indices, self.entries)?;
            for (to, &index) in out.iter_mut().zip(indices) {
                // SAFETY: `check` has shown the index to be below the number of entries, and `new` that all segments
                // but the last have `1 << shift` of them and the last has the rest: so the segment exists, and the
                // entry in it.
                let entry = unsafe {
                    self.segments
                        .get_unchecked((index >> self.shift) as usize)
                        .get_unchecked((index & mask) as usize)
                };
                copy_one(entry, to);
            }
        }
        Ok(())
    }
}

/// Looks up values of `width` bytes (FIXED_LEN_BYTE_ARRAY) in a dictionary in segments of `1 << shift` entries each, of
/// which the last may have fewer.
///
/// # Errors
///
/// Those of [`fixed`]; `OutOfRange` also for entries missing from a segment that should be full.
pub fn segmented_fixed(
    segments: &[Vec<u8>],
    shift: u32,
    width: usize,
    indices: &[u32],
    out: &mut [u8],
) -> Result<(), Error> {
    if width == 0 {
        return Err(Error::Width { width });
    }
    if indices.len().checked_mul(width) != Some(out.len()) {
        return Err(Error::Mismatch);
    }
    let shift = shift.min(u32::BITS - 1);
    let mask = (1u32 << shift) - 1;
    for (to, &index) in out.chunks_exact_mut(width).zip(indices) {
        let at = (index & mask) as usize * width;
        let entry = segments
            .get((index >> shift) as usize)
            .and_then(|segment| segment.get(at..)?.get(..width))
            .ok_or_else(|| beyond(segments, shift, width, index))?;
        to.copy_from_slice(entry);
    }
    Ok(())
}

#[cold]
fn beyond(segments: &[Vec<u8>], shift: u32, width: usize, index: u32) -> Error {
    let last = segments.last().map_or(0, |last| last.len() / width.max(1));
    Error::OutOfRange { index, entries: (segments.len().saturating_sub(1) << shift) + last }
}

/// The largest of `values`; 0 for no values.
#[must_use]
pub fn max_u32(values: &[u32]) -> u32 {
    max_with(isa(), values)
}

fn chunks_mut<const N: usize>(out: &mut [u8]) -> Result<&mut [[u8; N]], Error> {
    match out.as_chunks_mut::<N>() {
        (chunks, []) => Ok(chunks),
        _ => Err(Error::Mismatch),
    }
}

fn check(isa: Isa, indices: &[u32], entries: usize) -> Result<(), Error> {
    let index = max_with(isa, indices);
    if index as usize >= entries && !indices.is_empty() {
        return Err(Error::OutOfRange { index, entries });
    }
    Ok(())
}

pub(crate) fn values_with<T: Plain>(
    isa: Isa,
    dict: &[T],
    indices: &[u32],
    out: &mut [T],
) -> Result<(), Error> {
    if indices.len() != out.len() {
        return Err(Error::Mismatch);
    }
    for (indices, out) in indices.chunks(PIECE).zip(out.chunks_mut(PIECE)) {
        check(isa, indices, dict.len())?;
        // SAFETY: `check` has shown every index of the piece to be below `dict.len()`.
        unsafe { lookup(dict, indices, out) };
    }
    Ok(())
}

/// Looks up indices that are known to be in the dictionary.
///
/// One load after the other. AVX-512's gathers were 12 % (8 bytes) to 22 % (4 bytes) faster here, and are several times
/// slower on the many processors with microcode against Gather Data Sampling.
///
/// # Safety
///
/// Every index is below `dict.len()`.
#[inline]
pub(crate) unsafe fn lookup<T: Plain>(dict: &[T], indices: &[u32], out: &mut [T]) {
    for (to, &index) in out.iter_mut().zip(indices) {
        // SAFETY: the caller's promise.
        unsafe { copy_one(dict.get_unchecked(index as usize), to) };
    }
}

/// Copies a value as its bytes: an assignment of a `u128`, which a view is, compiles to two loads and two stores of 8 bytes each, and
/// looking up views took twice the time with them.
#[inline(always)]
fn copy_one<T: Plain>(from: &T, to: &mut T) {
    // SAFETY: two references, one of which is exclusive: they do not overlap. `Plain` has no padding, and is `Copy`.
    unsafe { core::ptr::copy_nonoverlapping(from, to, 1) };
}

pub(crate) fn max_with(isa: Isa, values: &[u32]) -> u32 {
    // No contract beyond the features.
    dispatch!(isa,
        avx512: max_avx512(values),
        avx2: max_avx2(values),
        portable: max_portable(values),
    )
}

#[inline(always)]
fn max_portable(values: &[u32]) -> u32 {
    values.iter().fold(0, |most, &value| most.max(value))
}

/// The portable form, vectorised by the compiler.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn max_avx512(values: &[u32]) -> u32 {
    max_portable(values)
}

/// As [`max_avx512`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn max_avx2(values: &[u32]) -> u32 {
    max_portable(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Random, rounds};
    use std::vec;
    use std::vec::Vec;

    fn against_oracle<T: Plain>(dict: &[T], random: &mut Random) {
        for length in (0..70).chain([511, 512, 513, 1500]) {
            let indices: Vec<u32> = (0..length).map(|_| random.below(dict.len()) as u32).collect();
            let oracle: Vec<T> = indices.iter().map(|&i| dict[i as usize]).collect();
            for isa in Isa::all() {
                let mut out = vec![T::ZERO; length];
                values_with(isa, dict, &indices, &mut out).unwrap();
                assert_eq!(out, oracle);
                for bad in [dict.len() as u32, u32::MAX, 1 << 31] {
                    let mut wrong = indices.clone();
                    if length > 0 {
                        wrong[random.below(length)] = bad;
                        let refused = values_with(isa, dict, &wrong, &mut out);
                        assert_eq!(refused, Err(Error::OutOfRange { index: bad, entries: dict.len() }));
                    }
                }
            }
        }
    }

    #[test]
    fn every_type_against_the_oracle() {
        let mut random = Random::new(11);
        for entries in [1usize, 2, 3, 16, 17, 32, 33, 200, 1000] {
            if cfg!(miri) && entries != 17 {
                continue;
            }
            against_oracle(
                &(0..entries as u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect::<Vec<_>>(),
                &mut random,
            );
            against_oracle(&(0..entries).map(|i| i as f64 * 1.5).collect::<Vec<_>>(), &mut random);
            against_oracle(
                &(0..entries).map(|i| (i as u128) << 100 | i as u128).collect::<Vec<_>>(),
                &mut random,
            );
            against_oracle(&(0..entries).map(|i| [i as u8; 12]).collect::<Vec<_>>(), &mut random);
        }
    }

    #[test]
    fn fixed_widths() {
        let mut random = Random::new(12);
        for width in 1..40 {
            let dict = random.bytes(width * 9 + width / 2);
            let indices: Vec<u32> = (0..rounds(100)).map(|_| random.below(9) as u32).collect();
            let mut out = vec![0; indices.len() * width];
            fixed(&dict, width, &indices, &mut out).unwrap();
            for (i, &index) in indices.iter().enumerate() {
                assert_eq!(out[i * width..][..width], dict[index as usize * width..][..width]);
            }
            let refused = fixed(&dict, width, &[3, 9], &mut vec![0; 2 * width]);
            assert_eq!(refused, Err(Error::OutOfRange { index: 9, entries: 9 }));
            assert_eq!(fixed(&dict, width, &[3, 1], &mut vec![0; 2 * width + 1]), Err(Error::Mismatch));
        }
        assert_eq!(fixed(&[1], 0, &[0], &mut []), Err(Error::Width { width: 0 }));
    }

    #[test]
    fn segments_are_one_dictionary() {
        let mut random = Random::new(13);
        for entries in [1usize, 7, 8, 9, 64, 100] {
            let dict: Vec<u64> = (0..entries as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            let bytes: Vec<u8> = dict.iter().flat_map(|value| value.to_le_bytes()).collect();
            for shift in [0, 1, 3, 6, 7, 31] {
                let length = 1usize << shift.min(20);
                let segments: Vec<Vec<u64>> = dict.chunks(length).map(<[u64]>::to_vec).collect();
                let fixed_segments: Vec<Vec<u8>> = bytes.chunks(length * 8).map(<[u8]>::to_vec).collect();
                let segmented = Segmented::new(&segments, shift).unwrap();
                assert_eq!(segmented.entries(), entries);
                for at in 0..=entries {
                    assert_eq!(segmented.get(at as u32), dict.get(at).copied());
                }
                for count in [0, 1, 5, 600] {
                    let mut indices: Vec<u32> = (0..count).map(|_| random.below(entries) as u32).collect();
                    let (mut expected, mut out, mut out_fixed) =
                        (vec![0; count], vec![0; count], vec![0; count * 8]);
                    values(&dict, &indices, &mut expected).unwrap();
                    for isa in Isa::all() {
                        out.fill(0);
                        segmented.values_with(isa, &indices, &mut out).unwrap();
                        assert_eq!(out, expected);
                    }
                    segmented_fixed(&fixed_segments, shift, 8, &indices, &mut out_fixed).unwrap();
                    assert!(out_fixed.chunks(8).eq(expected.iter().map(|value| value.to_le_bytes())));
                    if let Some(last) = count.checked_sub(1) {
                        for bad in [entries as u32, u32::MAX] {
                            indices[last] = bad;
                            let refused = Err(Error::OutOfRange { index: bad, entries });
                            assert_eq!(segmented.values(&indices, &mut out), refused);
                            let found = segmented_fixed(&fixed_segments, shift, 8, &indices, &mut out_fixed);
                            assert_eq!(found, refused);
                        }
                    }
                }
            }
        }
        let none: [Vec<u32>; 0] = [];
        let empty = Segmented::new(&none, 3).unwrap();
        assert_eq!((empty.values(&[], &mut []), empty.get(0)), (Ok(()), None));
        assert_eq!(empty.values(&[0], &mut [0]), Err(Error::OutOfRange { index: 0, entries: 0 }));
        let one = [vec![1u32]];
        assert_eq!(Segmented::new(&one, 3).unwrap().values(&[0], &mut []), Err(Error::Mismatch));
        // A segment that is not full, one that is too long, and more than an index can address.
        for (segments, shift) in [([1, 2], 1), ([2, 3], 1), ([1, 1], 32)] {
            let segments = segments.map(|length| vec![0u8; length]);
            assert_eq!(Segmented::new(&segments, shift).map(|_| ()), Err(Error::Mismatch));
        }
        let one = [vec![1u8]];
        assert_eq!(segmented_fixed(&one, 3, 1, &[0], &mut []), Err(Error::Mismatch));
        assert_eq!(segmented_fixed(&one, 3, 0, &[], &mut []), Err(Error::Width { width: 0 }));
    }

    #[test]
    fn empty_dictionaries_have_no_entry_but_no_index_needs_one() {
        assert_eq!(values::<u32>(&[], &[], &mut []), Ok(()));
        assert_eq!(values(&[], &[0], &mut [1u64]), Err(Error::OutOfRange { index: 0, entries: 0 }));
        assert_eq!(values(&[1u32], &[0], &mut []), Err(Error::Mismatch));
    }

    #[test]
    fn max_finds_the_one() {
        for isa in Isa::all() {
            for length in 1..rounds(200) {
                for at in [0, length / 2, length - 1] {
                    let mut values = vec![3; length];
                    values[at] = u32::MAX - 1;
                    assert_eq!(max_with(isa, &values), u32::MAX - 1);
                }
            }
            assert_eq!(max_with(isa, &[]), 0);
        }
    }
}
