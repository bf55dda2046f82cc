//! Dictionary lookup: `out[i] = dict[indices[i]]`, every index checked.

use crate::Plain;
use crate::cpu::{Isa, dispatch, isa};
use crate::error::Error;

/// Indices checked, then looked up, at a time; they stay in the first-level cache in between.
const PIECE: usize = 512;

/// Looks every index up.
///
/// # Errors
///
/// `Mismatch` if `indices` and `out` differ in length; `OutOfRange` if an index is outside the dictionary, `out` then
/// holding some of the values.
pub fn values<T: Plain>(dict: &[T], indices: &[u32], out: &mut [T]) -> Result<(), Error> {
    values_with(isa(), dict, indices, out)
}

/// Looks values of `width` bytes up that lie one after the other in `dict` (FIXED_LEN_BYTE_ARRAY).
///
/// A `dict` that ends within an entry ends before it.
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
    // A copy of constant length is a load and a store; of any length, a call.
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

/// The largest of `values`; 0 of none.
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

/// Looks indices up that are known to be in the dictionary.
///
/// One load after the other. AVX-512's gathers were 12 % (8 bytes) to 22 % (4 bytes) faster here, and are several times
/// slower on the many processors whose microcode guards them against Gather Data Sampling.
///
/// # Safety
///
/// Every index is below `dict.len()`.
#[inline]
pub(crate) unsafe fn lookup<T: Plain>(dict: &[T], indices: &[u32], out: &mut [T]) {
    for (to, &index) in out.iter_mut().zip(indices) {
        // SAFETY: the caller's promise.
        *to = unsafe { *dict.get_unchecked(index as usize) };
    }
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

/// The portable form, made vectors by the compiler.
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
