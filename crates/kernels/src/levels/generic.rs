//! The portable twins, and what they have in common with the others.

use super::entries::{Entries, Slots};
use crate::bits;

/// Levels that are compared at a time: a bit each in a word.
pub(super) const BLOCK: usize = 64;

/// A word of the comparison of at most 64 levels; the bits beyond them are zero.
#[inline(always)]
pub(super) fn at_least_portable(levels: &[u8], least: u8) -> u64 {
    let mut bytes = [0u8; BLOCK];
    for (byte, level) in bytes.iter_mut().zip(levels) {
        *byte = u8::from(*level >= least);
    }
    bits::pack(&bytes)
}

/// The block from `at` on: as many levels as there are, at most 64.
#[inline(always)]
pub(super) fn block(levels: &[u8], at: usize) -> &[u8] {
    &levels[at..levels.len().min(at + BLOCK)]
}

/// As many ones as levels.
#[inline(always)]
pub(super) fn ones(count: usize) -> u64 {
    u64::MAX >> (BLOCK - count.clamp(1, BLOCK))
}

#[inline(always)]
pub(super) fn count_of(levels: &[u8], least: u8, at_least: impl Fn(&[u8], u8) -> u64) -> usize {
    levels.chunks(BLOCK).map(|levels| at_least(levels, least).count_ones() as usize).sum()
}

/// `flip` turns the comparison round.
#[inline(always)]
pub(super) fn find_of(
    levels: &[u8],
    least: u8,
    mut skip: usize,
    flip: u64,
    at_least: impl Fn(&[u8], u8) -> u64,
) -> Option<usize> {
    for (number, levels) in levels.chunks(BLOCK).enumerate() {
        let mut found = (at_least(levels, least) ^ flip) & ones(levels.len());
        let there = found.count_ones() as usize;
        if skip < there {
            for _ in 0..skip {
                found &= found - 1;
            }
            return Some(number * BLOCK + found.trailing_zeros() as usize);
        }
        skip -= there;
    }
    None
}

/// Of a block, which entries are slots.
#[inline(always)]
pub(super) fn slots_in(
    entries: Entries<'_>,
    at: usize,
    slots: Slots,
    at_least: &impl Fn(&[u8], u8) -> u64,
) -> u64 {
    let definition = block(entries.definition, at);
    let mut found =
        if slots.definition == 0 { ones(definition.len()) } else { at_least(definition, slots.definition) };
    if let (Some(repetition), Some(beyond)) = (entries.repetition, slots.repetition.checked_add(1)) {
        found &= !at_least(block(repetition, at), beyond);
    }
    found
}

#[inline(always)]
pub(super) fn validity_of(
    entries: Entries<'_>,
    slots: Slots,
    present: u8,
    validity: &mut [u8],
    first: usize,
    at_least: impl Fn(&[u8], u8) -> u64,
    extract: impl Fn(u64, u64) -> u64,
) -> (usize, usize) {
    let (mut there, mut bit) = (0, first);
    // The bits of the last byte, or word, that is not full yet.
    let mut pending = u64::from(validity.get(bit / 8).copied().unwrap_or(0)) & ((1 << (bit % 8)) - 1);
    for at in (0..entries.len()).step_by(BLOCK) {
        let found = slots_in(entries, at, slots, &at_least);
        let present = extract(at_least(block(entries.definition, at), present), found);
        let count = found.count_ones() as usize;
        there += present.count_ones() as usize;
        let (byte, shift) = (bit / 8, bit % 8);
        let word = pending | present << shift;
        let above = if shift == 0 { 0 } else { present >> (BLOCK - shift) };
        match validity.get_mut(byte..byte + 8) {
            Some(room) => room.copy_from_slice(&word.to_le_bytes()),
            // What lies beyond the last bit is zero, or beyond the bitmap.
            None => {
                let room = validity.get_mut(byte..).unwrap_or_default();
                room.iter_mut().zip(word.to_le_bytes()).for_each(|(room, byte)| *room = byte);
            }
        }
        bit += count;
        let whole = bit / 8 - byte;
        pending = if whole == 8 {
            // At most seven bits.
            if let Some(ninth) = validity.get_mut(byte + 8)
                && bit % 8 != 0
            {
                *ninth = above as u8;
            }
            above
        } else {
            word >> (whole * 8)
        } & ((1 << (bit % 8)) - 1);
    }
    (bit - first, there)
}

#[inline(always)]
pub(super) fn offsets_of(
    entries: Entries<'_>,
    slots: Slots,
    elements: Slots,
    before: i32,
    out: &mut [i32],
    at_least: impl Fn(&[u8], u8) -> u64,
    spread: impl Fn(u64, u64, i32, &mut [i32]) -> usize,
) -> (usize, usize) {
    let (mut slot, mut found) = (0, 0usize);
    for at in (0..entries.len()).step_by(BLOCK) {
        let slots = slots_in(entries, at, slots, &at_least);
        let elements = slots_in(entries, at, elements, &at_least);
        // No more than entries: `i32` was seen to count them.
        slot += spread(slots, elements, before + found as i32, &mut out[slot..]);
        found += elements.count_ones() as usize;
    }
    (slot, found)
}

/// Writes, for each one of `slots`, the ones of `elements` below it and `before`; says how many.
#[inline(always)]
pub(super) fn ranks_portable(mut slots: u64, elements: u64, before: i32, out: &mut [i32]) -> usize {
    let count = slots.count_ones() as usize;
    for out in &mut out[..count] {
        let below = (slots & slots.wrapping_neg()).wrapping_sub(1);
        *out = before + (elements & below).count_ones() as i32;
        slots &= slots.wrapping_sub(1);
    }
    count
}

#[inline(always)]
pub(super) fn differ_of(left: Entries<'_>, right: Entries<'_>, definition: u8) -> Option<usize> {
    let length = left.len().min(right.len());
    let (a, b) = (&left.definition[..length], &right.definition[..length]);
    for at in (0..length).step_by(BLOCK) {
        let mut differ = 0;
        for (a, b) in block(a, at).iter().zip(block(b, at)) {
            differ |= (*a).min(definition) ^ (*b).min(definition);
        }
        let level = |levels: Option<&[u8]>, at: usize| levels.map_or(0, |levels| levels[at]);
        match (left.repetition, right.repetition) {
            (None, None) => {}
            (Some(a), Some(b)) => {
                let (a, b) = (block(&a[..length], at), block(&b[..length], at));
                for (a, b) in a.iter().zip(b) {
                    differ |= a ^ b;
                }
            }
            (Some(some), None) | (None, Some(some)) => {
                block(&some[..length], at).iter().for_each(|level| differ |= level);
            }
        }
        if differ != 0 {
            return (at..length).find(|&at| {
                a[at].min(definition) != b[at].min(definition)
                    || level(left.repetition, at) != level(right.repetition, at)
            });
        }
    }
    None
}

#[inline(always)]
pub(super) fn keep_portable(
    definition: &[u8],
    repetition: &[u8],
    most: u8,
    definition_out: &mut [u8],
    repetition_out: &mut [u8],
) -> usize {
    let mut kept = 0;
    for (&definition, &repetition) in definition.iter().zip(repetition) {
        // Never more are kept than were looked at.
        definition_out[kept] = definition;
        repetition_out[kept] = repetition;
        kept += usize::from(repetition <= most);
    }
    kept
}

#[inline(always)]
pub(super) fn are_elements_of(
    definition: &[u8],
    repetition: &[u8],
    elements: &[u8],
    at_least: impl Fn(&[u8], u8) -> u64,
) -> bool {
    for (number, &element) in elements.iter().enumerate() {
        let Ok(level) = u8::try_from(number + 1) else { return true };
        let mut before = 1;
        for at in (0..definition.len()).step_by(BLOCK) {
            let are = at_least(block(definition, at), element);
            let repetition = block(repetition, at);
            let mut further = at_least(repetition, level);
            if number + 1 < elements.len() {
                further &= !at_least(repetition, level + 1);
            }
            // The first of all was looked at already.
            if at == 0 {
                further &= !1;
            }
            if further & !(are & (are << 1 | before)) != 0 {
                return false;
            }
            before = are >> (BLOCK - 1);
        }
    }
    true
}
