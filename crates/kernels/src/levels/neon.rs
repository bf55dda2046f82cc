//! The portable twins, with vectors for comparisons. (NEON has neither extractions nor compressions.)

use core::arch::aarch64::*;

use super::entries::{Entries, Slots};
use super::generic::*;
use crate::neon::{load, mask};

#[target_feature(enable = "neon")]
#[inline]
fn at_least(levels: &[u8], least: u8) -> u64 {
    let mut padded = [0u8; BLOCK];
    let whole: &[u8; BLOCK] = match levels.try_into() {
        Ok(whole) => whole,
        Err(_) => {
            let count = levels.len().min(BLOCK);
            padded[..count].copy_from_slice(&levels[..count]);
            &padded
        }
    };
    let least = vdupq_n_u8(least);
    let found = mask(load(whole).map(|levels| vcgeq_u8(levels, least)));
    if levels.is_empty() { 0 } else { found & ones(levels.len()) }
}

#[target_feature(enable = "neon")]
pub(super) fn count(levels: &[u8], least: u8) -> usize {
    count_of(levels, least, |levels, least| at_least(levels, least))
}

#[target_feature(enable = "neon")]
pub(super) fn find(levels: &[u8], least: u8, skip: usize, flip: u64) -> Option<usize> {
    find_of(levels, least, skip, flip, |levels, least| at_least(levels, least))
}

#[target_feature(enable = "neon")]
pub(super) fn validity(
    entries: Entries<'_>,
    slots: Slots,
    present: u8,
    validity: &mut [u8],
    first: usize,
) -> (usize, usize) {
    let at_least = |levels: &[u8], least: u8| at_least(levels, least);
    validity_of(entries, slots, present, validity, first, at_least, crate::extract::portable)
}

#[target_feature(enable = "neon")]
pub(super) fn offsets(
    entries: Entries<'_>,
    slots: Slots,
    elements: Slots,
    before: i32,
    out: &mut [i32],
) -> (usize, usize) {
    let at_least = |levels: &[u8], least: u8| at_least(levels, least);
    offsets_of(entries, slots, elements, before, out, at_least, ranks_portable)
}

#[target_feature(enable = "neon")]
pub(super) fn are_elements(definition: &[u8], repetition: &[u8], elements: &[u8]) -> bool {
    are_elements_of(definition, repetition, elements, |levels, least| at_least(levels, least))
}
