//! From dense values, as Parquet stores a nullable column, to one slot per row, as in Arrow.
//!
//! Speed: an expansion for each register of values bounds it; below AVX-512, the look-up of its shuffle.
//! `docs/bench/kernels.md` has its distance from a copy of as many bytes (`make bench-kernels`).
//!
//! NEON: counted in its loops, not measured, a slot in place takes 2.2 instructions of 4 bytes, 6 of 8 and 11 of 16.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod deposit;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod places;

use crate::Plain;
use crate::bits;
use crate::cpu::{Isa, dispatch, isa};
use crate::error::{Error, need_bits};

/// Moves the first `dense` of `values` to the slots whose validity bit is set, in order; the others become zero. Slot
/// `i` is valid if bit `validity_bit + i` of `validity` is set.
///
/// Works from the end, so no value is overwritten before it has moved.
///
/// # Errors
///
/// `Short` if `validity` has fewer bits than there are slots; `Mismatch` unless exactly `dense` of them are set. Then
/// nothing is moved.
pub fn in_place<T: Plain>(
    values: &mut [T],
    dense: usize,
    validity: &[u8],
    validity_bit: usize,
) -> Result<(), Error> {
    in_place_with(isa(), values, dense, validity, validity_bit)
}

/// Moves `dense` to the slots of `out` whose validity bit is set, in order; the others become zero. Slot `i` is valid
/// if bit `validity_bit + i` of `validity` is set.
///
/// # Errors
///
/// `Short` if `validity` has fewer bits than there are slots; `Mismatch` unless exactly as many are set as there are dense values.
/// Then `out` is unchanged.
pub fn copy<T: Plain>(dense: &[T], out: &mut [T], validity: &[u8], validity_bit: usize) -> Result<(), Error> {
    copy_with(isa(), dense, out, validity, validity_bit)
}

/// The same for bits: moves the bits of `dense`, from its given start on, to `count` slots of `out`, from `out_bit` on.
///
/// # Errors
///
/// `Short` if any of the three bitmaps has fewer bits than are needed. Then `out` is unchanged.
pub fn copy_bits(
    (dense, dense_bit): (&[u8], usize),
    out: &mut [u8],
    out_bit: usize,
    (validity, validity_bit): (&[u8], usize),
    count: usize,
) -> Result<(), Error> {
    let ones = bits::count_ones(validity, validity_bit, count)?;
    need_bits(dense_bit.checked_add(ones), dense.len())?;
    need_bits(out_bit.checked_add(count), out.len())?;
    copy_bits_with(isa(), (dense, dense_bit), (out, out_bit), (validity, validity_bit), count);
    Ok(())
}

/// All three bitmaps have as many bits as are needed.
fn copy_bits_with(
    isa: Isa,
    dense: (&[u8], usize),
    out: (&mut [u8], usize),
    validity: (&[u8], usize),
    count: usize,
) {
    // No contract beyond the features.
    dispatch!(isa,
        avx512: copy_bits_bmi2(dense, out, validity, count),
        avx2: match isa.slow_pext() {
            true => copy_bits_by(dense, out, validity, count, deposit::portable),
            false => copy_bits_bmi2(dense, out, validity, count),
        },
        portable: copy_bits_by(dense, out, validity, count, deposit::portable),
    );
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi1,bmi2,popcnt")]
fn copy_bits_bmi2(dense: (&[u8], usize), out: (&mut [u8], usize), validity: (&[u8], usize), count: usize) {
    copy_bits_by(dense, out, validity, count, |word, mask| deposit::bmi2(word, mask));
}

#[inline(always)]
fn copy_bits_by(
    (dense, dense_bit): (&[u8], usize),
    (out, out_bit): (&mut [u8], usize),
    (validity, validity_bit): (&[u8], usize),
    count: usize,
    place: impl Fn(u64, u64) -> u64,
) {
    let mut next = dense_bit;
    bits::write(out, out_bit, count, |slot, slots| {
        let mask = bits::read(validity, validity_bit + slot, slots);
        let ones = mask.count_ones() as usize;
        if ones == 0 {
            return 0;
        }
        let word = bits::read(dense, next, ones);
        next += ones;
        place(word, mask)
    });
}

fn copy_with<T: Plain>(
    isa: Isa,
    dense: &[T],
    out: &mut [T],
    validity: &[u8],
    validity_bit: usize,
) -> Result<(), Error> {
    if bits::count_ones(validity, validity_bit, out.len())? != dense.len() {
        return Err(Error::Mismatch);
    }
    let mut rest = dense;
    for (number, slots) in out.chunks_mut(64).enumerate() {
        let word = bits::read(validity, validity_bit + number * 64, slots.len());
        // As many are left as bits are set here and above.
        let (here, above) = rest.split_at(word.count_ones() as usize);
        if here.len() == slots.len() {
            slots.copy_from_slice(here);
        } else if here.is_empty() {
            slots.fill(T::ZERO);
        } else {
            out_of_place(isa, here, slots, word);
        }
        rest = above;
    }
    Ok(())
}

/// Fills at most 64 slots from as many values as bits are set in `word`, all in its lowest `slots.len()` bits.
#[inline(always)]
fn out_of_place<T: Plain>(isa: Isa, dense: &[T], slots: &mut [T], word: u64) {
    #[cfg(target_arch = "x86_64")]
    if isa.level() == crate::cpu::Level::Avx512 && matches!(size_of::<T>(), 4 | 8 | 16) {
        // SAFETY: the `Isa` proves the features, the size is one of the three, and the callers pass as many values as
        // bits are set, all of them in the lowest `slots.len()`.
        unsafe { avx512::out_of_place(dense, slots, word) };
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if isa.level() == crate::cpu::Level::Avx2 && matches!(size_of::<T>(), 4 | 8 | 16) {
        // SAFETY: as above.
        let done = unsafe { avx2::out_of_place(dense, slots, word) };
        return rest(dense, slots, word, done);
    }
    #[cfg(target_arch = "aarch64")]
    if isa.level() == crate::cpu::Level::Neon && matches!(size_of::<T>(), 4 | 8 | 16) {
        // SAFETY: the `Isa` proves the features; all else is as the callers say.
        let done = unsafe { neon::out_of_place(dense, slots, word) };
        return rest(dense, slots, word, done);
    }
    let _ = isa;
    one_by_one(dense, slots, word);
}

/// Fills what `taken` values and `filled` slots have left.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn rest<T: Plain>(dense: &[T], slots: &mut [T], word: u64, (taken, filled): (usize, usize)) {
    one_by_one(&dense[taken..], &mut slots[filled..], word.checked_shr(filled as u32).unwrap_or(0));
}

/// The same, a value at a time.
#[inline(always)]
fn one_by_one<T: Plain>(dense: &[T], slots: &mut [T], word: u64) {
    slots.fill(T::ZERO);
    let mut word = word;
    for value in dense {
        slots[word.trailing_zeros() as usize] = *value;
        word &= word - 1;
    }
}

fn in_place_with<T: Plain>(
    isa: Isa,
    values: &mut [T],
    dense: usize,
    validity: &[u8],
    validity_bit: usize,
) -> Result<(), Error> {
    if bits::count_ones(validity, validity_bit, values.len())? != dense {
        return Err(Error::Mismatch);
    }
    // Rows below `rows` are not filled yet; their values are the first `left`.
    let (mut rows, mut left) = (values.len(), dense);
    // `left == rows`: the rest is all valid and in place. `left == 0`: it is all null.
    while left != rows && left != 0 {
        let count = if rows.is_multiple_of(64) { 64 } else { rows % 64 };
        let word = bits::read(validity, validity_bit + rows - count, count);
        let ones = word.count_ones() as usize;
        if ones == count {
            values.copy_within(left - ones..left, rows - count);
        } else if ones == 0 {
            values[rows - count..rows].fill(T::ZERO);
        } else {
            mixed(isa, values, left, rows, count, word);
        }
        rows -= count;
        left -= ones;
    }
    if left == 0 {
        values[..rows].fill(T::ZERO);
    }
    Ok(())
}

/// Fills the `count` rows, at most 64, that end at `rows`, from the dense values that end at `left`. As many values are
/// below `left` as bits are set in `word` and below it in the bitmap.
fn mixed<T: Plain>(isa: Isa, values: &mut [T], left: usize, rows: usize, count: usize, word: u64) {
    #[cfg(target_arch = "x86_64")]
    if isa.level() == crate::cpu::Level::Avx512 && count == 64 && matches!(size_of::<T>(), 4 | 8 | 16) {
        // SAFETY: the `Isa` proves the features, the size is one of the three; the bitmap has `left` bits set in its
        // first `rows` (counted by `in_place_with`), `word` holds the last 64 of them, and `rows <= values.len()`.
        unsafe { avx512::mixed(values, left, rows, word) };
        return;
    }
    #[cfg(target_arch = "x86_64")]
    if isa.level() == crate::cpu::Level::Avx2 && count == 64 && matches!(size_of::<T>(), 4 | 8 | 16) {
        // SAFETY: as above.
        unsafe { avx2::mixed(values, left, rows, word) };
        return;
    }
    #[cfg(target_arch = "aarch64")]
    if isa.level() == crate::cpu::Level::Neon && count == 64 && matches!(size_of::<T>(), 4 | 8 | 16) {
        // SAFETY: the `Isa` proves the features; all else is as the callers say.
        unsafe { neon::mixed(values, left, rows, word) };
        return;
    }
    let _ = isa;
    let slots = &mut values[..rows];
    let ones = word.count_ones() as usize;
    if size_of::<T>() > 16 {
        let mut left = left;
        for i in (0..count).rev() {
            let valid = word >> i & 1 == 1;
            left -= usize::from(valid);
            slots[rows - count + i] = if valid { slots[left] } else { T::ZERO };
        }
        return;
    }
    // Copied aside, then out to the set bits. (Slot by slot, a branchless choice took three times as long, a branch six
    // times.)
    let mut aside = [T::ZERO; 64];
    aside[..ones].copy_from_slice(&slots[left - ones..left]);
    one_by_one(&aside[..ones], &mut slots[rows - count..], word);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Random, bit, rounds};
    use std::vec::Vec;

    fn against_oracle<T: Plain>(random: &mut Random, make: impl Fn(u64) -> T) {
        for round in 0..rounds(900) {
            let rows = random.below(if round % 4 == 0 { 1000 } else { 140 });
            let offset = random.below(20);
            let mut validity = random.bytes((rows + offset).div_ceil(8));
            match round % 6 {
                0 => validity.iter_mut().for_each(|byte| *byte |= 0x77),
                1 => validity.iter_mut().for_each(|byte| *byte &= 0x11),
                2 => validity.fill(0xff),
                3 => validity.iter_mut().skip(5).step_by(20).for_each(|byte| *byte = 0),
                4 => validity
                    .iter_mut()
                    .enumerate()
                    .for_each(|(i, b)| *b = if i / 10 % 2 == 0 { 0 } else { 255 }),
                _ => {}
            }
            let dense = (0..rows).filter(|&i| bit(&validity, offset + i)).count();
            let start: Vec<T> = (0..rows).map(|_| make(random.next())).collect();
            let mut next = start.iter();
            let oracle: Vec<T> = (0..rows)
                .map(|i| if bit(&validity, offset + i) { *next.next().unwrap() } else { T::ZERO })
                .collect();
            for isa in Isa::all() {
                let mut values = start.clone();
                in_place_with(isa, &mut values, dense, &validity, offset).unwrap();
                assert_eq!(values, oracle);
                let mut out = start.clone();
                copy_with(isa, &start[..dense], &mut out, &validity, offset).unwrap();
                assert_eq!(out, oracle);
                let mut out = start.clone();
                let many = [&start[..dense], &[T::ZERO]].concat();
                assert_eq!(copy_with(isa, &many, &mut out, &validity, offset), Err(Error::Mismatch));
                assert_eq!(out, start);
                for wrong in [dense.wrapping_sub(1), dense + 1] {
                    let mut values = start.clone();
                    let refused = in_place_with(isa, &mut values, wrong, &validity, offset);
                    assert_eq!(refused, Err(Error::Mismatch));
                    assert_eq!(values, start);
                }
            }
        }
    }

    #[test]
    fn every_size_against_the_oracle() {
        let mut random = Random::new(81);
        against_oracle(&mut random, |x| x as u8);
        against_oracle(&mut random, |x| x as u16);
        against_oracle(&mut random, |x| x as i32);
        against_oracle(&mut random, |x| x as i64);
        against_oracle(&mut random, |x| (x as u32) as f32);
        against_oracle(&mut random, |x| (x as u128) << 64 | !x as u128);
        against_oracle(&mut random, |x| [x as u8, 1, (x >> 9) as u8]);
        against_oracle(&mut random, |x| [x as u8; 21]);
    }

    #[test]
    fn bits_against_the_oracle() {
        let mut random = Random::new(82);
        for round in 0..rounds(900) {
            let (count, first, out_bit, dense_bit) =
                (random.below(300), random.below(20), random.below(20), random.below(20));
            let mut validity = random.bytes((first + count).div_ceil(8));
            if round % 4 == 0 {
                validity.iter_mut().for_each(|byte| *byte |= 0x77);
            }
            let ones = (0..count).filter(|&at| bit(&validity, first + at)).count();
            let dense = random.bytes((dense_bit + ones).div_ceil(8));
            let before = random.bytes((out_bit + count).div_ceil(8));
            for isa in Isa::all() {
                let mut out = before.clone();
                let validity = (&*validity, first);
                copy_bits_with(isa, (&dense, dense_bit), (&mut out, out_bit), validity, count);
                let mut next = dense_bit;
                for at in 0..out_bit + count {
                    let expected = match at.checked_sub(out_bit) {
                        None => bit(&before, at),
                        Some(slot) if !bit(validity.0, first + slot) => false,
                        Some(_) => {
                            next += 1;
                            bit(&dense, next - 1)
                        }
                    };
                    assert_eq!(bit(&out, at), expected, "{at}, {isa:?}");
                }
            }
            let mut out = before.clone();
            assert!(
                copy_bits((&dense, dense_bit + 8), &mut out, out_bit, (&validity, first), count).is_err()
            );
            assert!(
                copy_bits((&dense, dense_bit), &mut out, out_bit + 8, (&validity, first), count).is_err()
            );
            assert!(
                copy_bits((&dense, dense_bit), &mut out, out_bit, (&validity, first + 8), count).is_err()
            );
            assert_eq!(out, before);
        }
    }

    #[test]
    fn short_validity_is_refused() {
        let mut values = [1u32; 9];
        assert_eq!(in_place(&mut values, 8, &[0xff], 0), Err(Error::Short { needed: 2, given: 1 }));
        assert_eq!(in_place::<u32>(&mut [], 0, &[], 0), Ok(()));
        assert_eq!(copy(&[1; 8], &mut values, &[0xff], 0), Err(Error::Short { needed: 2, given: 1 }));
        assert_eq!(copy::<u32>(&[], &mut [], &[], 0), Ok(()));
    }
}
