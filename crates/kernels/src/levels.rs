//! Definition and repetition levels, a byte each, to offsets, validity and other parts of arrays.
//!
//! An *entry* has one of each; repetition levels are absent where all are 0. Two levels determine which entries are
//! the slots of an array (its rows or its elements): see [`Slots`].
//!
//! Source: parquet-format's `README.md`, "Nested Encoding".
//!
//! Speed: counts of bits bound it, and their sums, which wait for one another; [`keep`] is bounded by the look-up
//! of a shuffle for eight entries, searches and counts by loads. `docs/bench/kernels.md` has its distance from a
//! copy of as many bytes (`make bench-kernels`).
//!
//! NEON: counted in its loops, not measured, an entry takes 1.6 instructions in [`keep`] where some of 64 are left out, and 0.2 in [`count`];
//! in [`offsets`] 2.1 of those that are after the comparisons, unless slots are few. (The portable forms: 12 an entry, and 17 a slot.)

mod entries;
mod generic;
#[cfg(target_arch = "aarch64")]
mod neon;
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::cpu::{Isa, dispatch, isa};
use crate::error::{Error, need_bits};
use generic::{
    are_elements_of, at_least_portable, count_of, differ_of, find_of, keep_portable, offsets_of,
    ranks_portable, validity_of,
};

pub use entries::{Entries, Slots};

/// How many levels are at least `least`.
#[must_use]
pub fn count(levels: &[u8], least: u8) -> usize {
    count_with(isa(), levels, least)
}

/// The index of the level below `limit` that follows `skip` such levels.
#[must_use]
pub fn find_below(levels: &[u8], limit: u8, skip: usize) -> Option<usize> {
    find_with(isa(), levels, limit, skip, u64::MAX)
}

/// The index of the level of at least `least` that follows `skip` such levels.
#[must_use]
pub fn find_from(levels: &[u8], least: u8, skip: usize) -> Option<usize> {
    find_with(isa(), levels, least, skip, 0)
}

/// Counts the slots among the entries, and how many of them are present: those with a definition level of at least
/// `present`. Sets the bits of `validity` from `first` on, one per slot: present (1) or null (0). Up to eight bytes after that
/// of the last slot may be cleared, as far as the bitmap has them.
///
/// # Errors
///
/// `Mismatch` if the levels differ in number, `Short` unless `validity` has a bit for each entry; nothing is set then.
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
/// elements before it plus `before`. Numbers after those of the slots, up to one for each entry, are
/// undefined.
///
/// # Errors
///
/// `Mismatch` if the levels differ in number, `Short` unless `out` has room for each entry, `OutOfRange` if more
/// elements may precede a slot than an `i32` can count; then `out` is unchanged.
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

/// Keeps the entries with at most a given repetition level: copies their levels to the start of both outputs and
/// returns their number.
///
/// # Errors
///
/// `Mismatch` if the levels differ in number, `Short` unless there is room for all entries; nothing is copied then.
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

/// True if each second or later element of a list, and the entry before it, are elements by their definition levels.
/// `elements` has the definition level of an element of each list around the leaf, outermost first. `before` is the
/// definition level of the entry before the first; `None` at the very start, where the first entry's own level is used.
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

fn count_with(isa: Isa, levels: &[u8], least: u8) -> usize {
    // No contract beyond the features.
    dispatch!(isa,
        avx512: x86::count_avx512(levels, least),
        avx2: x86::count_avx2(levels, least),
        neon: neon::count(levels, least),
        portable: count_of(levels, least, at_least_portable),
    )
}

fn find_with(isa: Isa, levels: &[u8], least: u8, skip: usize, flip: u64) -> Option<usize> {
    // No contract beyond the features.
    dispatch!(isa,
        avx512: x86::find_avx512(levels, least, skip, flip),
        avx2: x86::find_avx2(levels, least, skip, flip),
        neon: neon::find(levels, least, skip, flip),
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
        avx2: match isa.slow_pext() {
            true => x86::validity_avx2_slow_pext(entries, slots, present, validity, first),
            false => x86::validity_avx2(entries, slots, present, validity, first),
        },
        neon: neon::validity(entries, slots, present, validity, first),
        portable: validity_of(entries, slots, present, validity, first, at_least_portable, crate::extract::portable),
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
        neon: neon::offsets(entries, slots, elements, before, out),
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
        neon: neon::keep(definition, repetition, most, definition_out, repetition_out),
        portable: keep_portable(definition, repetition, most, definition_out, repetition_out),
    )
}

fn are_elements_with(isa: Isa, definition: &[u8], repetition: &[u8], elements: &[u8]) -> bool {
    // No contract beyond the features.
    dispatch!(isa,
        avx512: x86::are_elements_avx512(definition, repetition, elements),
        avx2: x86::are_elements_avx2(definition, repetition, elements),
        neon: neon::are_elements(definition, repetition, elements),
        portable: are_elements_of(definition, repetition, elements, at_least_portable),
    )
}

#[cfg(test)]
mod tests;
