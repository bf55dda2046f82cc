//! From dense values, as Parquet stores a nullable column, to one slot a row, as Arrow has it.

use crate::Plain;
use crate::bits;
use crate::cpu::{Isa, isa};
use crate::error::Error;

/// Moves the first `dense` of `values` to the slots whose validity bit is set, in order; the others become zero. Slot
/// `i` is valid where bit `validity_bit + i` of `validity` is set.
///
/// Works from the end, so no value is overwritten before it has moved.
///
/// # Errors
///
/// `Short` if `validity` has fewer bits than there are slots; `Mismatch` unless exactly `dense` of them are set. Then
/// nothing has moved.
pub fn in_place<T: Plain>(
    values: &mut [T],
    dense: usize,
    validity: &[u8],
    validity_bit: usize,
) -> Result<(), Error> {
    in_place_with(isa(), values, dense, validity, validity_bit)
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
    // Rows below `rows` are not made yet; their values are the first `left`.
    let (mut rows, mut left) = (values.len(), dense);
    // `left == rows`: the rest is valid throughout and lies where it should. `left == 0`: it is null throughout.
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

/// Makes the `count` rows, at most 64, that end at `rows`, from the dense values that end at `left`. As many values
/// are below `left` as bits are set in `word` and below it in the bitmap.
fn mixed<T: Plain>(isa: Isa, values: &mut [T], left: usize, rows: usize, count: usize, word: u64) {
    #[cfg(target_arch = "x86_64")]
    if isa.level() == crate::cpu::Level::Avx512 && count == 64 && matches!(size_of::<T>(), 4 | 8 | 16) {
        // SAFETY: the `Isa` proves the features, the size is one of the three; the bitmap has `left` bits set in its
        // first `rows` (counted by `in_place_with`), `word` holds the last 64 of them, and `rows <= values.len()`.
        unsafe { x86::mixed(values, left, rows, word) };
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
    // Aside, then out to the set bits. (Slot by slot, a choice made without a branch took three times as long, with one
    // six times.)
    let mut aside = [T::ZERO; 64];
    aside[..ones].copy_from_slice(&slots[left - ones..left]);
    let slots = &mut slots[rows - count..];
    slots.fill(T::ZERO);
    let mut word = word;
    for value in &aside[..ones] {
        slots[word.trailing_zeros() as usize] = *value;
        word &= word - 1;
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use core::arch::x86_64::*;

    /// 64 rows by expansion: the values of a vector go to the lanes whose bit is set.
    ///
    /// # Safety
    ///
    /// The processor has the features; `T` has 4, 8 or 16 bytes and no padding; `64 <= rows <= values.len()`; `left` is
    /// at most the bits set in `word` plus `rows - 64`, and at least the bits set in `word`.
    #[target_feature(enable = "avx512f,avx512bw,popcnt,bmi1,bmi2")]
    pub(super) unsafe fn mixed<T>(values: &mut [T], left: usize, rows: usize, word: u64) {
        let lanes = 64 / size_of::<T>();
        let base = values.as_mut_ptr();
        let (mut left, mut rows) = (left, rows);
        let mut word = word;
        for _ in 0..64 / lanes {
            // The uppermost `lanes` rows.
            let mask = word >> (64 - lanes);
            word <<= lanes;
            rows -= lanes;
            left -= mask.count_ones() as usize;
            // SAFETY: `left` values now belong to the rows below `rows`, so `left <= rows`, and a vector of `lanes`
            // values from `left` on ends at or before `rows + lanes`, which is within `values`. The store covers the
            // rows `rows..rows + lanes`; values still to move lie below `left <= rows`, so none is overwritten.
            unsafe {
                let dense = _mm512_loadu_si512(base.add(left).cast());
                let spread = match size_of::<T>() {
                    4 => _mm512_maskz_expand_epi32(mask as u16, dense),
                    8 => _mm512_maskz_expand_epi64(mask as u8, dense),
                    // Two 64-bit lanes a value.
                    _ => _mm512_maskz_expand_epi64(_pdep_u64(mask, 0x55) as u8 * 3, dense),
                };
                _mm512_storeu_si512(base.add(rows).cast(), spread);
            }
        }
    }
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
    fn short_validity_is_refused() {
        let mut values = [1u32; 9];
        assert_eq!(in_place(&mut values, 8, &[0xff], 0), Err(Error::Short { needed: 2, given: 1 }));
        assert_eq!(in_place::<u32>(&mut [], 0, &[], 0), Ok(()));
    }
}
