//! Definition and repetition levels, a byte each, to offsets, validity and what else arrays are made of.
//!
//! An *entry* has one of each; repetition levels are absent where all are 0. Two levels determine which entries are
//! the slots of an array (its rows or its elements): see [`Slots`].
//!
//! Source: parquet-format's `README.md`, "Nested Encoding".

use crate::bits;
use crate::cpu::{Isa, dispatch, isa};
use crate::error::{Error, need_bits};

/// The levels of entries.
#[derive(Clone, Copy, Debug)]
pub struct Entries<'a> {
    /// The definition level of each entry.
    pub definition: &'a [u8],
    /// The repetition level of each entry. `None` if all are 0.
    pub repetition: Option<&'a [u8]>,
}

/// Which entries are slots: those of at most this repetition level and at least this definition level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slots {
    /// The highest repetition level of a slot.
    pub repetition: u8,
    /// The lowest definition level of a slot.
    pub definition: u8,
}

impl<'a> Entries<'a> {
    /// The number of entries.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        self.definition.len()
    }

    /// True when there are none.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.definition.is_empty()
    }

    /// The entries from `first` on, at most `count`. Entries without a repetition level are left out.
    #[must_use]
    pub fn part(self, first: usize, count: usize) -> Entries<'a> {
        let cut = |levels: &'a [u8]| {
            let rest = levels.get(first..).unwrap_or_default();
            &rest[..count.min(rest.len())]
        };
        let definition = cut(self.definition);
        match self.repetition.map(cut) {
            None => Entries { definition, repetition: None },
            Some(repetition) => {
                let both = definition.len().min(repetition.len());
                Entries { definition: &definition[..both], repetition: Some(&repetition[..both]) }
            }
        }
    }

    #[inline]
    fn check(self) -> Result<(), Error> {
        match self.repetition {
            Some(repetition) if repetition.len() != self.definition.len() => Err(Error::Mismatch),
            _ => Ok(()),
        }
    }
}

/// How many levels are at least `least`.
#[must_use]
pub fn count(levels: &[u8], least: u8) -> usize {
    count_with(isa(), levels, least)
}

/// The index of the level below `limit` that comes after `skip` such levels.
#[must_use]
pub fn find_below(levels: &[u8], limit: u8, skip: usize) -> Option<usize> {
    find_with(isa(), levels, limit, skip, u64::MAX)
}

/// The index of the level of at least `least` that comes after `skip` such levels.
#[must_use]
pub fn find_from(levels: &[u8], least: u8, skip: usize) -> Option<usize> {
    find_with(isa(), levels, least, skip, 0)
}

/// Counts the slots among the entries, and how many of them are present: those with a definition level of at least
/// `present`. Sets the bits of `validity` from `first` on, one per slot: present (1) or null (0).
///
/// # Errors
///
/// `Mismatch` for levels of two lengths, `Short` unless `validity` has a bit for each entry; then nothing is set.
pub fn validity(
    entries: Entries<'_>,
    slots: Slots,
    present: u8,
    validity: &mut [u8],
    first: usize,
) -> Result<(usize, usize), Error> {
    entries.check()?;
    need_bits(first.checked_add(entries.len()), validity.len())?;
    Ok(validity_with(isa(), entries, slots, present, validity, first))
}

/// Counts the slots among the entries, and the elements of their lists. `out` gets, for each slot, the number of
/// elements before it plus `before`.
///
/// # Errors
///
/// `Mismatch` for levels of two lengths, `Short` unless `out` has room for each entry, `OutOfRange` if more elements
/// may precede a slot than an `i32` can count; then `out` is unchanged.
pub fn offsets(
    entries: Entries<'_>,
    slots: Slots,
    elements: Slots,
    before: i32,
    out: &mut [i32],
) -> Result<(usize, usize), Error> {
    entries.check()?;
    if out.len() < entries.len() {
        return Err(Error::Short { needed: entries.len().saturating_mul(4), given: out.len() * 4 });
    }
    let most = i32::try_from(entries.len()).ok().and_then(|count| before.checked_add(count));
    if most.is_none() {
        return Err(Error::OutOfRange { index: u32::MAX, entries: entries.len() });
    }
    Ok(offsets_with(isa(), entries, slots, elements, before, out))
}

/// The first entry in which two leaves differ, in repetition level, or in definition level up to `definition`. `None`
/// if they agree as far as both reach.
#[must_use]
pub fn differ(left: Entries<'_>, right: Entries<'_>, definition: u8) -> Option<usize> {
    differ_with(isa(), left, right, definition)
}

/// Keeps the entries of at most a given repetition level: copies their levels to the start of both outputs and
/// returns their number.
///
/// # Errors
///
/// `Mismatch` for levels of two lengths, `Short` unless there is room for all entries; then nothing is copied.
pub fn keep(
    definition: &[u8],
    repetition: &[u8],
    most: u8,
    definition_out: &mut [u8],
    repetition_out: &mut [u8],
) -> Result<usize, Error> {
    Entries { definition, repetition: Some(repetition) }.check()?;
    let room = definition_out.len().min(repetition_out.len());
    if room < definition.len() {
        return Err(Error::Short { needed: definition.len(), given: room });
    }
    Ok(keep_with(isa(), definition, repetition, most, definition_out, repetition_out))
}

/// True when each further element of a list, and the entry before it, is an element by its definition level. `elements` are the
/// definition levels of an element of each list around the leaf, from the outermost on; `before` is the definition level of the entry
/// before the first, whose own stands for it where it is the very first.
///
/// Entries beyond the shorter of both levels are not looked at.
#[must_use]
pub fn are_elements(definition: &[u8], repetition: &[u8], elements: &[u8], before: Option<u8>) -> bool {
    let (Some(&first), Some(&level)) = (definition.first(), repetition.first()) else { return true };
    let before = before.unwrap_or(first);
    let element = usize::from(level).checked_sub(1).and_then(|list| elements.get(list));
    if element.is_some_and(|&element| first.min(before) < element) {
        return false;
    }
    let pairs = definition.len().min(repetition.len());
    are_elements_with(isa(), &definition[..pairs], &repetition[..pairs], elements)
}

/// Levels that are compared at a time: a bit each in a word.
const BLOCK: usize = 64;

/// A word of the comparison of at most 64 levels; the bits beyond them are zero.
#[inline(always)]
fn at_least_portable(levels: &[u8], least: u8) -> u64 {
    let mut bytes = [0u8; BLOCK];
    for (byte, level) in bytes.iter_mut().zip(levels) {
        *byte = u8::from(*level >= least);
    }
    bits::pack(&bytes)
}

/// The bits of `word` where `mask` has ones, moved together.
#[inline(always)]
fn extract_portable(word: u64, mut mask: u64) -> u64 {
    if mask == u64::MAX {
        return word;
    }
    let (mut out, mut at) = (0, 0);
    while mask != 0 {
        out |= (word >> mask.trailing_zeros() & 1) << at;
        at += 1;
        mask &= mask - 1;
    }
    out
}

/// The block from `at` on: as many levels as there are, at most 64.
#[inline(always)]
fn block(levels: &[u8], at: usize) -> &[u8] {
    &levels[at..levels.len().min(at + BLOCK)]
}

/// As many ones as levels.
#[inline(always)]
fn ones(count: usize) -> u64 {
    u64::MAX >> (BLOCK - count.clamp(1, BLOCK))
}

#[inline(always)]
fn count_of(levels: &[u8], least: u8, at_least: impl Fn(&[u8], u8) -> u64) -> usize {
    levels.chunks(BLOCK).map(|levels| at_least(levels, least).count_ones() as usize).sum()
}

/// `flip` turns the comparison round.
#[inline(always)]
fn find_of(
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
fn slots_in(entries: Entries<'_>, at: usize, slots: Slots, at_least: &impl Fn(&[u8], u8) -> u64) -> u64 {
    let definition = block(entries.definition, at);
    let mut found =
        if slots.definition == 0 { ones(definition.len()) } else { at_least(definition, slots.definition) };
    if let (Some(repetition), Some(beyond)) = (entries.repetition, slots.repetition.checked_add(1)) {
        found &= !at_least(block(repetition, at), beyond);
    }
    found
}

#[inline(always)]
fn validity_of(
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
fn offsets_of(
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
fn ranks_portable(mut slots: u64, elements: u64, before: i32, out: &mut [i32]) -> usize {
    let count = slots.count_ones() as usize;
    for out in &mut out[..count] {
        let below = (slots & slots.wrapping_neg()).wrapping_sub(1);
        *out = before + (elements & below).count_ones() as i32;
        slots &= slots.wrapping_sub(1);
    }
    count
}

#[inline(always)]
fn differ_of(left: Entries<'_>, right: Entries<'_>, definition: u8) -> Option<usize> {
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
fn keep_portable(
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
fn are_elements_of(
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

fn count_with(isa: Isa, levels: &[u8], least: u8) -> usize {
    // No contract beyond the features.
    dispatch!(isa,
        avx512: x86::count_avx512(levels, least),
        avx2: x86::count_avx2(levels, least),
        portable: count_of(levels, least, at_least_portable),
    )
}

fn find_with(isa: Isa, levels: &[u8], least: u8, skip: usize, flip: u64) -> Option<usize> {
    // No contract beyond the features.
    dispatch!(isa,
        avx512: x86::find_avx512(levels, least, skip, flip),
        avx2: x86::find_avx2(levels, least, skip, flip),
        portable: find_of(levels, least, skip, flip, at_least_portable),
    )
}

fn validity_with(
    isa: Isa,
    entries: Entries<'_>,
    slots: Slots,
    present: u8,
    validity: &mut [u8],
    first: usize,
) -> (usize, usize) {
    // No contract beyond the features.
    dispatch!(isa,
        avx512: x86::validity_avx512(entries, slots, present, validity, first),
        avx2: x86::validity_avx2(entries, slots, present, validity, first),
        portable: validity_of(entries, slots, present, validity, first, at_least_portable, extract_portable),
    )
}

fn offsets_with(
    isa: Isa,
    entries: Entries<'_>,
    slots: Slots,
    elements: Slots,
    before: i32,
    out: &mut [i32],
) -> (usize, usize) {
    // No contract beyond the features.
    dispatch!(isa,
        avx512: x86::offsets_avx512(entries, slots, elements, before, out),
        avx2: x86::offsets_avx2(entries, slots, elements, before, out),
        portable: offsets_of(entries, slots, elements, before, out, at_least_portable, ranks_portable),
    )
}

fn differ_with(isa: Isa, left: Entries<'_>, right: Entries<'_>, definition: u8) -> Option<usize> {
    let [left, right] = [left, right].map(|entries| entries.part(0, usize::MAX));
    // No contract beyond the features.
    dispatch!(isa,
        avx512: x86::differ_avx512(left, right, definition),
        avx2: x86::differ_avx2(left, right, definition),
        portable: differ_of(left, right, definition),
    )
}

fn keep_with(
    isa: Isa,
    definition: &[u8],
    repetition: &[u8],
    most: u8,
    definition_out: &mut [u8],
    repetition_out: &mut [u8],
) -> usize {
    // No contract beyond the features.
    dispatch!(isa,
        avx512: x86::keep_avx512(definition, repetition, most, definition_out, repetition_out),
        avx2: x86::keep_avx2(definition, repetition, most, definition_out, repetition_out),
        portable: keep_portable(definition, repetition, most, definition_out, repetition_out),
    )
}

fn are_elements_with(isa: Isa, definition: &[u8], repetition: &[u8], elements: &[u8]) -> bool {
    // No contract beyond the features.
    dispatch!(isa,
        avx512: x86::are_elements_avx512(definition, repetition, elements),
        avx2: x86::are_elements_avx2(definition, repetition, elements),
        portable: are_elements_of(definition, repetition, elements, at_least_portable),
    )
}

#[cfg(target_arch = "x86_64")]
mod x86;

#[cfg(test)]
mod tests;
