//! The portable twins.

use crate::bits;
use crate::plain::Plain;

/// `some` copies those of up to 64 values whose bit is set, where some are and some are not. `out` has room for all of them.
#[inline(always)]
pub(super) fn values_by<T: Plain>(
    values: &[T],
    validity: &[u8],
    first: usize,
    out: &mut [T],
    some: impl Fn(&[T], u64, &mut [T]),
) -> usize {
    let mut done = 0;
    for (number, values) in values.chunks(64).enumerate() {
        let word = bits::read(validity, first + number * 64, values.len());
        let ones = word.count_ones() as usize;
        if ones == values.len() {
            out[done..done + ones].copy_from_slice(values);
        } else if ones > 0 {
            // No more values are done than were looked at, so there is room for all of these.
            some(values, word, &mut out[done..done + values.len()]);
        }
        done += ones;
    }
    done
}

/// Each value is written, and the next over it unless its bit is set: no branch that depends on the bits.
#[inline(always)]
pub(super) fn each<T: Plain>(values: &[T], word: u64, out: &mut [T]) {
    let mut done = 0;
    for (bit, &value) in values.iter().enumerate() {
        out[done] = value;
        done += (word >> bit & 1) as usize;
    }
}

/// The bits of `word` whose bit in `mask` is set, together.
#[inline]
pub(super) fn extract(word: u64, mut mask: u64) -> u64 {
    let (mut there, mut at) = (0, 0);
    while mask != 0 {
        there |= (word >> mask.trailing_zeros() & 1) << at;
        mask &= mask - 1;
        at += 1;
    }
    there
}
