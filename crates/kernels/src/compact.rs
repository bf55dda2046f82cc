//! From one slot per row to dense values: the inverse of [`spread`](crate::spread).
//!
//! Speed: a compression for each register of values bounds it, with AVX2 the look-up of its shuffle; the portable
//! form is bounded by a store for each value. `docs/bench/kernels.md` has its distance from a copy of as many bytes
//! (`make bench-kernels`).
//!
//! NEON: counted in its loops, not measured, where some values of 64 are null a byte takes 0.8 instructions, a value of 4 bytes 1.7, one of 8
//! 3.4, and a bit 0.6 beside its loads and stores. (The portable form: 10 a value, and 1.0 a bit.)

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) mod chosen;
mod generic;
#[cfg(target_arch = "aarch64")]
mod neon;

use crate::bits;
use crate::cpu::{Isa, dispatch, isa};
use crate::error::{Error, need_bits};
use crate::extract;
use crate::plain::Plain;

/// Copies the values whose bit is set to the front of `out`, in order, with bits from bit `first` of `validity` on.
/// Returns how many. The contents of `out` after them are undefined.
///
/// # Errors
///
/// `Short` if `validity` has too few bits; `Mismatch` if `out` and `values` differ in length.
pub fn values<T: Plain>(values: &[T], validity: &[u8], first: usize, out: &mut [T]) -> Result<usize, Error> {
    values_with(isa(), values, validity, first, out)
}

/// The same in place: moves the values whose bit is set to the front; returns how many. Those after them are undefined.
///
/// # Errors
///
/// `Short` if `keep` has too few bits.
pub fn in_place<T: Plain>(values: &mut [T], keep: &[u8], first: usize) -> Result<usize, Error> {
    in_place_with(isa(), values, keep, first)
}

/// Values that are moved together aside, and then to their place: by vectors, which is less than to move them one by one where they are.
const ASIDE: usize = 256;

fn in_place_with<T: Plain>(isa: Isa, values: &mut [T], keep: &[u8], first: usize) -> Result<usize, Error> {
    need_bits(first.checked_add(values.len()), keep.len())?;
    if size_of::<T>() > 16 || values.len() < 64 {
        return Ok(one_by_one(values, keep, first));
    }
    let (mut done, mut aside) = (0, [T::ZERO; ASIDE]);
    for start in (0..values.len()).step_by(ASIDE) {
        let count = (values.len() - start).min(ASIDE);
        if bits::count_ones(keep, first + start, count)? == count {
            values.copy_within(start..start + count, done);
            done += count;
            continue;
        }
        let kept = values_with(isa, &values[start..start + count], keep, first + start, &mut aside[..count])?;
        values[done..done + kept].copy_from_slice(&aside[..kept]);
        done += kept;
    }
    Ok(done)
}

fn one_by_one<T: Plain>(values: &mut [T], keep: &[u8], first: usize) -> usize {
    let mut done = 0;
    for start in (0..values.len()).step_by(64) {
        let count = (values.len() - start).min(64);
        let word = bits::read(keep, first + start, count);
        if word.count_ones() as usize == count {
            values.copy_within(start..start + count, done);
            done += count;
        } else if word != 0 {
            // Each value is written, and the next over it unless its bit is set: no branch that depends on the bits.
            for bit in 0..count {
                values[done] = values[start + bit];
                done += (word >> bit & 1) as usize;
            }
        }
    }
    done
}

/// The same in place for strings of `width` bytes, one after the other; returns how many.
///
/// # Errors
///
/// `Mismatch` if `values` ends within a string; `Short` if `keep` has too few bits.
pub fn fixed_in_place(width: usize, values: &mut [u8], keep: &[u8], first: usize) -> Result<usize, Error> {
    let count = values.len().checked_div(width).unwrap_or(0);
    if count * width != values.len() {
        return Err(Error::Mismatch);
    }
    need_bits(first.checked_add(count), keep.len())?;
    let mut done = 0;
    runs(keep, first, count, |start, length| {
        values.copy_within(start * width..(start + length) * width, done * width);
        done += length;
    });
    Ok(done)
}

/// [`values`] for strings of `width` bytes, one after the other; returns how many.
///
/// # Errors
///
/// Those of [`values`]; also `Mismatch` if `values` ends within a string.
pub fn fixed(
    width: usize,
    values: &[u8],
    validity: &[u8],
    first: usize,
    out: &mut [u8],
) -> Result<usize, Error> {
    let count = values.len().checked_div(width).unwrap_or(0);
    if count * width != values.len() || out.len() < values.len() {
        return Err(Error::Mismatch);
    }
    need_bits(first.checked_add(count), validity.len())?;
    let mut done = 0;
    runs(validity, first, count, |start, length| {
        let from = &values[start * width..(start + length) * width];
        out[done..done + from.len()].copy_from_slice(from);
        done += from.len();
    });
    Ok(done.checked_div(width).unwrap_or(0))
}

/// The same for bits: copies the bits whose bit in `validity` is set to the front of `out`, which must be zero before.
/// There are `count` of them, from bit `values_first` of `values` on. Returns how many were copied.
///
/// # Errors
///
/// `Short` if a bitmap has too few bits.
pub fn bits(
    values: &[u8],
    values_first: usize,
    validity: &[u8],
    first: usize,
    count: usize,
    out: &mut [u8],
) -> Result<usize, Error> {
    bits_with(isa(), values, values_first, validity, first, count, out)
}

fn bits_with(
    isa: Isa,
    values: &[u8],
    values_first: usize,
    validity: &[u8],
    first: usize,
    count: usize,
    out: &mut [u8],
) -> Result<usize, Error> {
    need_bits(values_first.checked_add(count), values.len())?;
    need_bits(first.checked_add(count), validity.len())?;
    need_bits(Some(count), out.len())?;
    // No contract beyond the features.
    Ok(dispatch!(isa,
        avx512: avx512::bits((values, values_first), (validity, first), count, out),
        avx2: match isa.slow_pext() {
            true => avx2::bits_slow_pext((values, values_first), (validity, first), count, out),
            false => avx2::bits((values, values_first), (validity, first), count, out),
        },
        neon: neon::bits((values, values_first), (validity, first), count, out),
        portable: generic::bits_by((values, values_first), (validity, first), count, out, extract::portable),
    ))
}

fn values_with<T: Plain>(
    isa: Isa,
    values: &[T],
    validity: &[u8],
    first: usize,
    out: &mut [T],
) -> Result<usize, Error> {
    if out.len() < values.len() {
        return Err(Error::Mismatch);
    }
    need_bits(first.checked_add(values.len()), validity.len())?;
    // No contract beyond the features.
    Ok(dispatch!(isa,
        avx512: avx512::values(values, validity, first, out),
        avx2: avx2::values(values, validity, first, out),
        neon: neon::values(values, validity, first, out),
        portable: generic::values_by(values, validity, first, out, generic::each),
    ))
}

/// Calls `run` with the start and length of each run of ones.
fn runs(bitmap: &[u8], first: usize, count: usize, mut run: impl FnMut(usize, usize)) {
    let (mut at, mut start) = (0, None);
    while at < count {
        let n = (count - at).min(64);
        let word = bits::read(bitmap, first + at, n);
        let mut bit = 0;
        while bit < n {
            let rest = word >> bit;
            let (same, next) = match start {
                None => (rest.trailing_zeros() as usize, true),
                Some(_) => ((!rest).trailing_zeros() as usize, false),
            };
            bit += same.min(n - bit);
            if bit < n {
                match (next, start) {
                    (true, _) => start = Some(at + bit),
                    (false, Some(from)) => {
                        run(from, at + bit - from);
                        start = None;
                    }
                    (false, None) => {}
                }
            }
        }
        at += n;
    }
    if let Some(from) = start {
        run(from, count - from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Random, bit, rounds};
    use std::vec;
    use std::vec::Vec;

    fn check<T: Plain>(make: impl Fn(u64) -> T) {
        let mut random = Random::new(81);
        for round in 0..rounds(400) {
            let (first, length) = (random.below(70), random.below(if round % 9 == 0 { 900 } else { 300 }));
            let all: Vec<T> = (0..length).map(|_| make(random.next())).collect();
            let mut bitmap = random.bytes((first + length).div_ceil(8));
            match round % 4 {
                0 => bitmap.fill(0xff),
                1 => bitmap.iter_mut().for_each(|byte| *byte &= 0x11),
                2 => bitmap.iter_mut().skip(9).take(16).for_each(|byte| *byte = 0),
                _ => {}
            }
            let there: Vec<T> = (0..length).filter(|&i| bit(&bitmap, first + i)).map(|i| all[i]).collect();
            for isa in Isa::all() {
                let mut out = vec![T::ZERO; length];
                let done = values_with(isa, &all, &bitmap, first, &mut out).unwrap();
                assert_eq!(&out[..done], there, "{isa:?}");
            }
            let mut out = vec![0; length * size_of::<T>()];
            let bytes = crate::plain::as_bytes(&all);
            let done = fixed(size_of::<T>(), bytes, &bitmap, first, &mut out).unwrap();
            assert_eq!(&out[..done * size_of::<T>()], crate::plain::as_bytes(&there));
            let mut bytes = bytes.to_vec();
            let done = fixed_in_place(size_of::<T>(), &mut bytes, &bitmap, first).unwrap();
            assert_eq!(&bytes[..done * size_of::<T>()], crate::plain::as_bytes(&there));
            for isa in Isa::all() {
                let mut values = all.clone();
                let done = in_place_with(isa, &mut values, &bitmap, first).unwrap();
                assert_eq!(&values[..done], there, "{isa:?}");
            }
        }
    }

    #[test]
    fn every_type() {
        check(|bits| bits as u8);
        check(|bits| bits as i32);
        check(|bits| bits);
        check(|bits| u128::from(bits) << 3);
        check(|bits| bits.to_le_bytes().map(|byte| byte ^ 1));
    }

    #[test]
    fn bits_of_bits() {
        let mut random = Random::new(82);
        for round in 0..rounds(800) {
            let (first, from, count) = (random.below(70), random.below(70), random.below(300));
            let mut values = random.bytes((from + count).div_ceil(8));
            let mut validity = random.bytes((first + count).div_ceil(8));
            match round % 8 {
                0 => validity.fill(0xff),
                1 => validity.iter_mut().for_each(|byte| *byte &= 0x11),
                2 => validity.iter_mut().skip(9).take(16).for_each(|byte| *byte = 0),
                3 => values.fill(0xff),
                4 => values.fill(0),
                _ => {}
            }
            let there: Vec<bool> =
                (0..count).filter(|&i| bit(&validity, first + i)).map(|i| bit(&values, from + i)).collect();
            for isa in Isa::all() {
                let mut out = vec![0; count.div_ceil(8) + random.below(2) * 9];
                let done = bits_with(isa, &values, from, &validity, first, count, &mut out).unwrap();
                assert!((done..out.len() * 8).all(|i| !bit(&out, i)));
                assert_eq!((0..done).map(|i| bit(&out, i)).collect::<Vec<_>>(), there);
            }
        }
        assert!(bits(&[0], 0, &[0, 0], 0, 9, &mut [0, 0]).is_err());
        assert!(bits(&[0, 0], 0, &[0], 0, 9, &mut [0, 0]).is_err());
        assert!(bits(&[0, 0], 0, &[0, 0], 0, 9, &mut [0]).is_err());
    }

    #[test]
    fn refusals() {
        assert_eq!(values(&[1u32; 9], &[0; 2], 0, &mut [0; 8]), Err(Error::Mismatch));
        assert_eq!(values(&[1u32; 9], &[0; 1], 0, &mut [0; 9]), Err(Error::Short { needed: 2, given: 1 }));
        assert!(values(&[1u32; 9], &[0; 1], usize::MAX, &mut [0; 9]).is_err());
        assert_eq!(fixed(4, &[1; 9], &[0; 1], 0, &mut [0; 9]), Err(Error::Mismatch));
        assert_eq!(fixed(0, &[], &[], 0, &mut []), Ok(0));
        assert_eq!(in_place(&mut [1u32; 9], &[0; 1], 0), Err(Error::Short { needed: 2, given: 1 }));
        assert!(in_place(&mut [1u32; 9], &[0; 1], usize::MAX).is_err());
        assert_eq!(fixed_in_place(4, &mut [1; 9], &[0; 1], 0), Err(Error::Mismatch));
        assert_eq!(fixed_in_place(1, &mut [1; 9], &[0; 1], 0), Err(Error::Short { needed: 2, given: 1 }));
        assert_eq!(fixed_in_place(0, &mut [], &[], 0), Ok(0));
    }
}
