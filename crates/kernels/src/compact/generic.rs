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

/// `extract` moves the bits of a word that a mask selects together. `out` has `count` bits.
#[inline(always)]
pub(super) fn bits_by(
    (values, values_first): (&[u8], usize),
    (validity, first): (&[u8], usize),
    count: usize,
    out: &mut [u8],
    extract: impl Fn(u64, u64) -> u64,
) -> usize {
    let mut done = 0;
    // The bits of the last word that is not full yet.
    let mut pending = 0;
    for at in (0..count).step_by(64) {
        let n = (count - at).min(64);
        let mask = bits::read(validity, first + at, n);
        let there = extract(bits::read(values, values_first + at, n), mask);
        let (held, ones) = (done % 64, mask.count_ones() as usize);
        pending |= there << held;
        if held + ones >= 64 {
            // No more bits are done than were looked at.
            let word = done / 64 * 8;
            out[word..word + 8].copy_from_slice(&pending.to_le_bytes());
            pending = if held == 0 { 0 } else { there >> (64 - held) };
        }
        done += ones;
    }
    let rest = done / 64 * 8..done.div_ceil(8);
    let bytes = rest.len();
    out[rest].copy_from_slice(&pending.to_le_bytes()[..bytes]);
    done
}
