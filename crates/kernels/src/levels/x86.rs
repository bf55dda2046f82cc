//! The portable twins, with single instructions for comparisons, extractions and expansions.

use core::arch::x86_64::*;

use super::entries::{Entries, Slots};
use super::generic::*;
use crate::compact::chosen::OF_8;

/// At most 64 levels, the bytes beyond them zero.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn load_avx512(levels: &[u8]) -> __m512i {
    // SAFETY: the mask selects the slice's levels, 64 at most; masked-out levels are not accessed.
    unsafe { _mm512_maskz_loadu_epi8(loaded(levels), levels.as_ptr().cast()) }
}

/// A bit for each of the levels, 64 at most.
#[inline(always)]
fn loaded(levels: &[u8]) -> u64 {
    if levels.is_empty() { 0 } else { ones(levels.len()) }
}

#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn at_least_avx512(levels: &[u8], least: u8) -> u64 {
    _mm512_mask_cmpge_epu8_mask(loaded(levels), load_avx512(levels), _mm512_set1_epi8(least as i8))
}

#[target_feature(enable = "avx2")]
#[inline]
fn at_least_avx2(levels: &[u8], least: u8) -> u64 {
    let mut padded = [0u8; BLOCK];
    let whole: &[u8; BLOCK] = match levels.try_into() {
        Ok(whole) => whole,
        Err(_) => {
            let count = levels.len().min(BLOCK);
            padded[..count].copy_from_slice(&levels[..count]);
            &padded
        }
    };
    let least = _mm256_set1_epi8(least as i8);
    let (halves, _) = whole.as_chunks::<32>();
    let half = |half: &[u8; 32]| {
        // SAFETY: a chunk is 32 bytes.
        let all = unsafe { _mm256_loadu_si256(half.as_ptr().cast()) };
        // A level is at least the threshold if it is the maximum of both.
        u64::from(_mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_max_epu8(all, least), all)) as u32)
    };
    (half(&halves[0]) | half(&halves[1]) << 32) & loaded(levels)
}

#[target_feature(enable = "avx512f,avx512bw,popcnt,bmi1,bmi2")]
pub(super) fn count_avx512(levels: &[u8], least: u8) -> usize {
    count_of(levels, least, |levels, least| at_least_avx512(levels, least))
}

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(super) fn count_avx2(levels: &[u8], least: u8) -> usize {
    count_of(levels, least, |levels, least| at_least_avx2(levels, least))
}

#[target_feature(enable = "avx512f,avx512bw,popcnt,bmi1,bmi2")]
pub(super) fn find_avx512(levels: &[u8], least: u8, skip: usize, flip: u64) -> Option<usize> {
    find_of(levels, least, skip, flip, |levels, least| at_least_avx512(levels, least))
}

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(super) fn find_avx2(levels: &[u8], least: u8, skip: usize, flip: u64) -> Option<usize> {
    find_of(levels, least, skip, flip, |levels, least| at_least_avx2(levels, least))
}

#[target_feature(enable = "avx512f,avx512bw,popcnt,bmi1,bmi2")]
pub(super) fn validity_avx512(
    entries: Entries<'_>,
    slots: Slots,
    present: u8,
    validity: &mut [u8],
    first: usize,
) -> (usize, usize) {
    let at_least = |levels: &[u8], least: u8| at_least_avx512(levels, least);
    validity_of(entries, slots, present, validity, first, at_least, |word, mask| _pext_u64(word, mask))
}

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(super) fn validity_avx2(
    entries: Entries<'_>,
    slots: Slots,
    present: u8,
    validity: &mut [u8],
    first: usize,
) -> (usize, usize) {
    let at_least = |levels: &[u8], least: u8| at_least_avx2(levels, least);
    validity_of(entries, slots, present, validity, first, at_least, |word, mask| _pext_u64(word, mask))
}

/// For processors with a slow `pext`. Elsewhere, on a Zen 3, it took 1.5 to 1.9 times as long as that where some slots are null, and up to
/// 1.08 times where all or none are.
#[target_feature(enable = "avx2,popcnt,bmi1,bmi2,pclmulqdq")]
pub(super) fn validity_avx2_slow_pext(
    entries: Entries<'_>,
    slots: Slots,
    present: u8,
    validity: &mut [u8],
    first: usize,
) -> (usize, usize) {
    let at_least = |levels: &[u8], least: u8| at_least_avx2(levels, least);
    validity_of(entries, slots, present, validity, first, at_least, |word, mask| {
        crate::extract::avx2(word, mask)
    })
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,popcnt,bmi1,bmi2")]
pub(super) fn offsets_avx512(
    entries: Entries<'_>,
    slots: Slots,
    elements: Slots,
    before: i32,
    out: &mut [i32],
) -> (usize, usize) {
    let at_least = |levels: &[u8], least: u8| at_least_avx512(levels, least);
    let ranks = |slots: u64, elements: u64, before: i32, out: &mut [i32]| {
        // With few slots, one by one is faster.
        if slots.count_ones() < 12 {
            ranks_portable(slots, elements, before, out)
        } else {
            ranks_avx512(slots, elements, before, out)
        }
    };
    offsets_of(entries, slots, elements, before, out, at_least, ranks)
}

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(super) fn offsets_avx2(
    entries: Entries<'_>,
    slots: Slots,
    elements: Slots,
    before: i32,
    out: &mut [i32],
) -> (usize, usize) {
    let at_least = |levels: &[u8], least: u8| at_least_avx2(levels, least);
    offsets_of(entries, slots, elements, before, out, at_least, ranks_portable)
}

/// Like [`ranks_portable`]: prefix sums of bytes count the ones below every bit; those of the slots are moved together.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,avx512vbmi2,popcnt,bmi1,bmi2")]
#[inline]
fn ranks_avx512(slots: u64, elements: u64, before: i32, out: &mut [i32]) -> usize {
    let count = slots.count_ones() as usize;
    // Sums within eight bytes by one multiplication each, then the sums of all previous eights.
    let flags = _mm512_maskz_set1_epi8(elements, 1);
    let mut sums = _mm512_add_epi8(flags, _mm512_slli_epi64::<8>(flags));
    sums = _mm512_add_epi8(sums, _mm512_slli_epi64::<16>(sums));
    sums = _mm512_add_epi8(sums, _mm512_slli_epi64::<32>(sums));
    // For the eights: byte 7 of each lane, the lanes before it, …
    let totals = _mm512_srli_epi64::<56>(sums);
    let zero = _mm512_setzero_si512();
    let mut through = _mm512_add_epi64(totals, _mm512_alignr_epi64::<7>(totals, zero));
    through = _mm512_add_epi64(through, _mm512_alignr_epi64::<6>(through, zero));
    through = _mm512_add_epi64(through, _mm512_alignr_epi64::<4>(through, zero));
    let below = _mm512_sub_epi64(through, totals);
    // … in all bytes of the lane; and without the flag itself.
    let below = _mm512_shuffle_epi8(
        below,
        _mm512_set_epi64(
            0x0808_0808_0808_0808,
            0,
            0x0808_0808_0808_0808,
            0,
            0x0808_0808_0808_0808,
            0,
            0x0808_0808_0808_0808,
            0,
        ),
    );
    let ranks = _mm512_sub_epi8(_mm512_add_epi8(sums, below), flags);
    let ranks = _mm512_maskz_compress_epi8(slots, ranks);
    let before = _mm512_set1_epi32(before);
    let quarters = [
        _mm512_castsi512_si128(ranks),
        _mm512_extracti32x4_epi32::<1>(ranks),
        _mm512_extracti32x4_epi32::<2>(ranks),
        _mm512_extracti32x4_epi32::<3>(ranks),
    ];
    for (quarter, out) in quarters.into_iter().zip(out[..count].chunks_mut(16)) {
        let ranks = _mm512_add_epi32(_mm512_cvtepu8_epi32(quarter), before);
        let mask = u16::MAX >> (16 - out.len());
        // SAFETY: the mask selects as many numbers as the chunk has, 1 to 16; masked-out ones are not accessed.
        unsafe { _mm512_mask_storeu_epi32(out.as_mut_ptr(), mask, ranks) };
    }
    count
}

#[target_feature(enable = "avx512f,avx512bw,popcnt,bmi1,bmi2")]
pub(super) fn differ_avx512(left: Entries<'_>, right: Entries<'_>, definition: u8) -> Option<usize> {
    differ_of(left, right, definition)
}

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(super) fn differ_avx2(left: Entries<'_>, right: Entries<'_>, definition: u8) -> Option<usize> {
    differ_of(left, right, definition)
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt,bmi1,bmi2")]
pub(super) fn keep_avx512(
    definition: &[u8],
    repetition: &[u8],
    most: u8,
    definition_out: &mut [u8],
    repetition_out: &mut [u8],
) -> usize {
    let mut kept = 0;
    for at in (0..definition.len()).step_by(BLOCK) {
        let levels = load_avx512(block(repetition, at));
        let mask =
            _mm512_mask_cmple_epu8_mask(loaded(block(repetition, at)), levels, _mm512_set1_epi8(most as i8));
        let count = mask.count_ones() as usize;
        if count == 0 {
            continue;
        }
        let definitions = _mm512_maskz_compress_epi8(mask, load_avx512(block(definition, at)));
        let repetitions = _mm512_maskz_compress_epi8(mask, levels);
        let (definition_out, repetition_out) =
            (&mut definition_out[kept..kept + count], &mut repetition_out[kept..kept + count]);
        // SAFETY: the mask selects as many bytes as either slice has; masked-out ones are not accessed.
        unsafe {
            _mm512_mask_storeu_epi8(definition_out.as_mut_ptr().cast(), ones(count), definitions);
            _mm512_mask_storeu_epi8(repetition_out.as_mut_ptr().cast(), ones(count), repetitions);
        }
        kept += count;
    }
    kept
}

/// Eight entries at a time, moved together by a shuffle that is looked up.
#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(super) fn keep_avx2(
    definition: &[u8],
    repetition: &[u8],
    most: u8,
    definition_out: &mut [u8],
    repetition_out: &mut [u8],
) -> usize {
    let (mut kept, mut at) = (0, 0);
    let blocks = definition.as_chunks::<BLOCK>().0.iter().zip(repetition.as_chunks::<BLOCK>().0);
    for (definition, repetition) in blocks {
        let mask = most.checked_add(1).map_or(u64::MAX, |beyond| !at_least_avx2(repetition, beyond));
        at += BLOCK;
        // No more are kept than were looked at, so there is room for all of these.
        let (definition_out, repetition_out) =
            (&mut definition_out[kept..][..BLOCK], &mut repetition_out[kept..][..BLOCK]);
        if mask == u64::MAX {
            definition_out.copy_from_slice(definition);
            repetition_out.copy_from_slice(repetition);
        } else {
            // SAFETY: all four have 64 bytes.
            unsafe {
                keep_some(
                    definition,
                    repetition,
                    mask,
                    definition_out.as_mut_ptr(),
                    repetition_out.as_mut_ptr(),
                );
            }
        }
        kept += mask.count_ones() as usize;
    }
    let (definition_out, repetition_out) = (&mut definition_out[kept..], &mut repetition_out[kept..]);
    kept + keep_portable(&definition[at..], &repetition[at..], most, definition_out, repetition_out)
}

/// # Safety
///
/// The processor has the features; 64 bytes can be written to each of the last two.
#[inline]
#[target_feature(enable = "avx2,popcnt")]
unsafe fn keep_some(
    definition: &[u8; BLOCK],
    repetition: &[u8; BLOCK],
    mask: u64,
    definition_out: *mut u8,
    repetition_out: *mut u8,
) {
    let mut done = 0;
    for number in 0..8 {
        let set = mask >> (8 * number) & 255;
        let places = _mm_cvtsi64_si128(i64::from_le_bytes(OF_8[set as usize]));
        for (from, to) in [(definition, definition_out), (repetition, repetition_out)] {
            // SAFETY: `8 * number + 8 <= 64`, and no more are done than were looked at: `done <= 8 * number`.
            unsafe {
                let eight = _mm_loadl_epi64(from.as_ptr().add(8 * number).cast());
                _mm_storel_epi64(to.add(done).cast(), _mm_shuffle_epi8(eight, places));
            }
        }
        done += set.count_ones() as usize;
    }
}

#[target_feature(enable = "avx512f,avx512bw,popcnt,bmi1,bmi2")]
pub(super) fn are_elements_avx512(definition: &[u8], repetition: &[u8], elements: &[u8]) -> bool {
    are_elements_of(definition, repetition, elements, |levels, least| at_least_avx512(levels, least))
}

#[target_feature(enable = "avx2,popcnt,bmi1,bmi2")]
pub(super) fn are_elements_avx2(definition: &[u8], repetition: &[u8], elements: &[u8]) -> bool {
    are_elements_of(definition, repetition, elements, |levels, least| at_least_avx2(levels, least))
}
