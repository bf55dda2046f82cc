//! The portable twins, with vectors for comparisons, and look-ups for the compressions that NEON does not have.

use core::arch::aarch64::*;

use super::entries::{Entries, Slots};
use super::generic::*;
use crate::compact::chosen::OF_8;
use crate::neon::{load, mask, ones_through};

#[target_feature(enable = "neon")]
#[inline]
fn at_least(levels: &[u8], least: u8) -> u64 {
    let vectors = match levels.try_into() {
        Ok(whole) => load(whole),
        Err(_) => {
            let mut padded = [0u8; BLOCK];
            let count = levels.len().min(BLOCK);
            padded[..count].copy_from_slice(&levels[..count]);
            load(&padded)
        }
    };
    let least = vdupq_n_u8(least);
    let found = mask(vectors.map(|levels| vcgeq_u8(levels, least)));
    if levels.is_empty() { 0 } else { found & ones(levels.len()) }
}

/// Sums of bytes, and not of words of bits, which the processor counts in a vector register as well.
#[target_feature(enable = "neon")]
pub(super) fn count(levels: &[u8], least: u8) -> usize {
    /// Each byte of a sum gets two levels a block, and holds 255.
    const BLOCKS: usize = 127;
    let (blocks, rest) = levels.as_chunks::<BLOCK>();
    let wanted = vdupq_n_u8(least);
    let mut count = at_least(rest, least).count_ones() as usize;
    for blocks in blocks.chunks(BLOCKS) {
        let [mut left, mut right] = [vdupq_n_u8(0); 2];
        for block in blocks {
            let [a, b, c, d] = load(block).map(|levels| vcgeq_u8(levels, wanted));
            // A comparison that holds is -1.
            left = vsubq_u8(left, vaddq_u8(a, b));
            right = vsubq_u8(right, vaddq_u8(c, d));
        }
        count += usize::from(vaddlvq_u8(left)) + usize::from(vaddlvq_u8(right));
    }
    count
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
    validity_of(entries, slots, present, validity, first, at_least, |word, mask| {
        crate::extract::neon(word, mask)
    })
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
    let ranks = |slots: u64, elements: u64, before: i32, out: &mut [i32]| {
        // With few slots, one by one is sooner done; and a last block of fewer entries may lack the room.
        match out.first_chunk_mut() {
            Some(out) if slots.count_ones() >= 8 => ranks_neon(slots, elements, before, out),
            _ => ranks_portable(slots, elements, before, out),
        }
    };
    // What is beyond a number for each entry is not overwritten.
    let room = out.len().min(entries.len());
    offsets_of(entries, slots, elements, before, &mut out[..room], at_least, ranks)
}

/// Like [`ranks_portable`], eight entries at a time: of each slot, moved together by a look-up, the elements below it are counted. Numbers after
/// those of the slots become anything.
#[target_feature(enable = "neon")]
#[inline]
fn ranks_neon(slots: u64, elements: u64, before: i32, out: &mut [i32; BLOCK]) -> usize {
    let below = vcreate_u8(0x7f3f_1f0f_0703_0100);
    let before = vdupq_n_u32(before.cast_unsigned());
    let (slots_through, elements_through) = (ones_through(slots), ones_through(elements));
    let (mut done, mut earlier) = (0, 0);
    for number in 0..8 {
        let at = 8 * number;
        let places = &OF_8[usize::from((slots >> at) as u8)];
        // SAFETY: eight places.
        let below = vtbl1_u8(below, unsafe { vld1_u8(places.as_ptr()) });
        let here = vcnt_u8(vand_u8(below, vdup_n_u8((elements >> at) as u8)));
        // At most 64.
        let ranks = vmovl_u8(vadd_u8(here, vdup_n_u8(earlier)));
        let (low, high) = (vaddw_u16(before, vget_low_u16(ranks)), vaddw_high_u16(before, ranks));
        // SAFETY: no more are done than were looked at: `done <= 8 * number`, so eight numbers follow of the 64.
        unsafe {
            let to = out.as_mut_ptr().add(done).cast::<u32>();
            vst1q_u32(to, low);
            vst1q_u32(to.add(4), high);
        }
        done = usize::from((slots_through >> at) as u8);
        earlier = (elements_through >> at) as u8;
    }
    done
}

/// Eight entries at a time, moved together by a permutation that is looked up.
#[target_feature(enable = "neon")]
pub(super) fn keep(
    definition: &[u8],
    repetition: &[u8],
    most: u8,
    definition_out: &mut [u8],
    repetition_out: &mut [u8],
) -> usize {
    let (mut kept, mut at) = (0, 0);
    let most_of_each = vdupq_n_u8(most);
    let blocks = definition.as_chunks::<BLOCK>().0.iter().zip(repetition.as_chunks::<BLOCK>().0);
    for (definition, repetition) in blocks {
        let set = mask(load(repetition).map(|levels| vcleq_u8(levels, most_of_each)));
        at += BLOCK;
        // No more are kept than were looked at, so there is room for all of these.
        let (definition_out, repetition_out) =
            (&mut definition_out[kept..][..BLOCK], &mut repetition_out[kept..][..BLOCK]);
        if set == u64::MAX {
            definition_out.copy_from_slice(definition);
            repetition_out.copy_from_slice(repetition);
            kept += BLOCK;
        } else {
            let (definition_out, repetition_out) = (definition_out.as_mut_ptr(), repetition_out.as_mut_ptr());
            // SAFETY: all four have 64 bytes.
            kept += unsafe { keep_some(definition, repetition, set, definition_out, repetition_out) };
        }
    }
    let (definition_out, repetition_out) = (&mut definition_out[kept..], &mut repetition_out[kept..]);
    kept + keep_portable(&definition[at..], &repetition[at..], most, definition_out, repetition_out)
}

/// Keeps those of a block whose bit is set, and returns how many they are.
///
/// # Safety
///
/// 64 bytes can be written to each of the last two.
#[inline]
#[target_feature(enable = "neon")]
unsafe fn keep_some(
    definition: &[u8; BLOCK],
    repetition: &[u8; BLOCK],
    set: u64,
    definition_out: *mut u8,
    repetition_out: *mut u8,
) -> usize {
    let through = ones_through(set);
    let mut done = 0;
    for pair in 0..4 {
        let load = |levels: &[u8; BLOCK]| {
            // SAFETY: `16 * pair + 16 <= 64`.
            unsafe { vld1q_u8(levels.as_ptr().add(16 * pair)) }
        };
        let sixteen = [load(definition), load(repetition)];
        for half in 0..2 {
            let at = 16 * pair + 8 * half;
            let places = &OF_8[usize::from((set >> at) as u8)];
            // SAFETY: eight places.
            let places = vadd_u8(unsafe { vld1_u8(places.as_ptr()) }, vdup_n_u8(8 * half as u8));
            for (from, to) in sixteen.into_iter().zip([definition_out, repetition_out]) {
                // SAFETY: `at + 8 <= 64`, and no more are done than were looked at: `done <= at`.
                unsafe { vst1_u8(to.add(done), vqtbl1_u8(from, places)) };
            }
            done = usize::from((through >> at) as u8);
        }
    }
    done
}

#[target_feature(enable = "neon")]
pub(super) fn are_elements(definition: &[u8], repetition: &[u8], elements: &[u8]) -> bool {
    are_elements_of(definition, repetition, elements, |levels, least| at_least(levels, least))
}
