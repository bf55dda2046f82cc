//! Byte arrays to Arrow's string views, without copying long ones; and back, to consecutive bytes.
//!
//! A view is 16 bytes, here a `u128`, from its low end: the length (`u32`); up to 12 bytes of data, zero-padded, or,
//! for a longer value, its first four bytes, the number of its buffer (`u32`) and its offset there (`u32`). (Arrow
//! Columnar Format, "Variable-size Binary View Layout".)
//!
//! PLAIN's own form, length then bytes, *is* the view of a short value: it takes one unaligned load and a mask.

use alloc::vec::Vec;
use core::mem::MaybeUninit;
use core::{fmt, ptr};

use crate::Error;

/// The longest value that is stored in its view.
pub const INLINE_MAX: usize = 12;

/// Why no further view could be created. Positions are in the slice that was passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StringsError {
    /// The input ends before or within the value that begins at `at`.
    Truncated {
        /// Where the value begins.
        at: usize,
    },
    /// The value that begins at `at` is longer than the limit.
    TooLong {
        /// Where the value begins.
        at: usize,
        /// The length it claims, in bytes.
        len: u32,
    },
    /// A length is negative.
    Negative {
        /// Which of the lengths.
        index: usize,
    },
    /// The buffer ends beyond 2³¹ − 1, the limit of Arrow's signed offsets.
    BufferTooLong,
}

impl fmt::Display for StringsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { at } => write!(f, "the data end within the byte array at {at}"),
            Self::TooLong { at, len } => {
                write!(f, "the byte array at {at} claims {len} bytes, more than the limit")
            }
            Self::Negative { index } => write!(f, "byte array length {index} is negative"),
            Self::BufferTooLong => f.write_str("a buffer of byte arrays is 2 GiB or longer"),
        }
    }
}

impl core::error::Error for StringsError {}

/// The view of one value at `offset` of buffer number `buffer`.
///
/// The length of a slice beyond `u32` is truncated; values are bounded by 2 GiB buffers.
#[inline]
#[must_use]
pub fn view(bytes: &[u8], buffer: u32, offset: u32) -> u128 {
    let len = bytes.len() as u32;
    if bytes.len() <= INLINE_MAX {
        let mut inline = [0u8; 16];
        inline[..4].copy_from_slice(&len.to_le_bytes());
        inline[4..4 + bytes.len()].copy_from_slice(bytes);
        return u128::from_le_bytes(inline);
    }
    let prefix = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    u128::from(len) | u128::from(prefix) << 32 | u128::from(high(buffer, offset)) << 64
}

/// Creates views of PLAIN BYTE_ARRAY values (Encodings.md, "Plain": a 4-byte length, then the bytes), from `*at` on,
/// until `out` is full or the input ends. Returns how many, and moves `*at` after the last.
///
/// `input` is buffer number `buffer`, or is at offset `base` in it. A value longer than `value_max` is refused.
///
/// # Errors
///
/// Only if not even one view could be created, so that no value is lost to an error in a later one: `Truncated` if the
/// value at `*at` is incomplete, also at the input's very end; `TooLong` if it exceeds `value_max`; `BufferTooLong`. An
/// empty `out` is `Ok(0)`.
pub fn plain(
    input: &[u8],
    at: &mut usize,
    buffer: u32,
    base: u32,
    value_max: u32,
    out: &mut [u128],
) -> Result<usize, StringsError> {
    fits(base, input.len())?;
    let (mut next, mut made) = (*at, 0);
    // How many lengths in a row were equal, and how many of them start a run. If lengths seldom repeat, a run is not
    // worth its end, a mispredicted branch.
    let (mut equal, mut before) = (0, u32::MAX);
    let mut enough = RUN_STARTS_AFTER;
    // Up to `room` there are 16 bytes to load. A value that ends beyond it, or is otherwise unusual, ends this loop;
    // the rest is processed one by one. (One comparison then bounds both the value and the next load.)
    if let Some(room) = input.len().checked_sub(LOAD).filter(|&room| next <= room) {
        let place = Place::new(buffer, base);
        while made < out.len() {
            // SAFETY: `next <= room`, at first and, by the check below, ever after.
            let (word, len) = unsafe { (Word::load(input, next), length(input, next)) };
            // In 64 bits, where it cannot wrap.
            let after = next as u64 + 4 + u64::from(len);
            if after > room as u64 || len > value_max {
                break;
            }
            word.select(len, place.of(next + 4)).store(&mut out[made]);
            made += 1;
            next = after as usize;
            equal = if len == before { equal + 1 } else { 0 };
            before = len;
            if equal >= enough {
                let run = plain_run(input, room, next, len, place, &mut out[made..]);
                made += run;
                next += run * (4 + len as usize);
                equal = 0;
                enough =
                    if run >= RUN_PAYS { RUN_STARTS_AFTER } else { (enough * 2).min(RUN_STARTS_AFTER_MOST) };
            }
        }
    }
    while made < out.len() {
        match plain_one(input, next, buffer, base, value_max) {
            Ok((view, len)) => {
                out[made] = view;
                made += 1;
                next += 4 + len as usize;
            }
            Err(error) if made == 0 => return Err(error),
            Err(_) => break,
        }
    }
    *at = next;
    Ok(made)
}

/// Creates views of consecutive values from `*at` on whose lengths are given (DELTA_LENGTH_BYTE_ARRAY), as many as both
/// `lengths` and `out` have. Returns their number, and moves `*at` after the last.
///
/// `data` is buffer number `buffer`, or is at offset `base` in it.
///
/// # Errors
///
/// Only if not even one view could be created: `Negative` length (index 0), `Truncated`, `BufferTooLong`.
pub fn lengths_to_views(
    lengths: &[i32],
    data: &[u8],
    at: &mut usize,
    buffer: u32,
    base: u32,
    out: &mut [u128],
) -> Result<usize, StringsError> {
    fits(base, data.len())?;
    let count = lengths.len().min(out.len());
    let (lengths, out) = (&lengths[..count], &mut out[..count]);
    let (mut next, mut made) = (*at, 0);
    // As in `plain`.
    if let Some(room) = data.len().checked_sub(LOAD).filter(|&room| next <= room) {
        let place = Place::new(buffer, base);
        for (&length, to) in lengths.iter().zip(out.iter_mut()) {
            // A negative length is a huge unsigned one, and ends beyond any room.
            let len = length as u32;
            let after = next as u64 + u64::from(len);
            if after > room as u64 {
                break;
            }
            // SAFETY: `next <= room`, at first and, by the check above, ever after.
            let word = unsafe { Word::load(data, next) };
            word.below(len).select(len, place.of(next)).store(to);
            next = after as usize;
            made += 1;
        }
    }
    for (index, (&length, to)) in lengths.iter().zip(out).enumerate().skip(made) {
        let bytes = match usize::try_from(length) {
            Ok(len) => {
                data.get(next..).and_then(|rest| rest.get(..len)).ok_or(StringsError::Truncated { at: next })
            }
            Err(_) => Err(StringsError::Negative { index }),
        };
        match bytes {
            Ok(bytes) => *to = view(bytes, buffer, base.wrapping_add(next as u32)),
            Err(error) if made == 0 => return Err(error),
            Err(_) => break,
        }
        next += length as usize;
        made += 1;
    }
    *at = next;
    Ok(made)
}

/// The bytes that [`append`] may write after the last string.
pub const APPEND_SLACK: usize = BLOCK;

/// Strings no longer than `BLOCKS_MAX` are copied in blocks of this many bytes, which is faster than copies of any
/// length.
const BLOCK: usize = 32;
const BLOCKS_MAX: usize = 8 * BLOCK;

/// Appends strings, given as views into `buffers`, to `out`: each preceded by its length if `LENGTHS` (Encodings.md,
/// "Plain"), otherwise without (DELTA_LENGTH_BYTE_ARRAY's data). `out` does not grow: it needs capacity for the
/// strings and for [`APPEND_SLACK`] bytes more.
///
/// # Errors
///
/// `Mismatch` if a view points outside the buffers; `Short` if the capacity is too small. Then `out` is unchanged.
pub fn append<const LENGTHS: bool>(
    views: &[u128],
    buffers: &[impl AsRef<[u8]>],
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let length_bytes = if LENGTHS { 4 } else { 0 };
    let start = out.len();
    let room = out.spare_capacity_mut();
    let mut at = 0;
    for view in views {
        let length = *view as u32 as usize;
        // At most 2³² + 36 bytes after `at`, which is within existing memory.
        let end = at as u64 + length_bytes as u64 + length as u64;
        if end + APPEND_SLACK as u64 > room.len() as u64 {
            return Err(Error::Short { needed: length, given: room.len() - at });
        }
        // The view's first bytes are its length and, of a short string, all that follows.
        let first = if LENGTHS { *view } else { *view >> 32 };
        // SAFETY: 16 bytes, fewer than `APPEND_SLACK`, which the check above has shown to follow `at`.
        unsafe { room.as_mut_ptr().add(at).cast::<u128>().write_unaligned(first) };
        if length > INLINE_MAX {
            let (buffer, offset) = ((*view >> 64) as u32 as usize, (*view >> 96) as u32 as usize);
            let from = buffers.get(buffer).and_then(|buffer| buffer.as_ref().get(offset..));
            let from = from.filter(|from| length <= from.len()).ok_or(Error::Mismatch)?;
            let in_blocks = length.next_multiple_of(BLOCK);
            let to = room[at + length_bytes..].as_mut_ptr().cast::<u8>();
            if length <= BLOCKS_MAX && in_blocks <= from.len() {
                for block in (0..in_blocks).step_by(BLOCK) {
                    // SAFETY: `from` has `in_blocks` bytes. So has the room after `to`: fewer than `length + BLOCK`,
                    // which the check at the loop's start has shown to exist. `out` is borrowed alone: they do not
                    // overlap.
                    unsafe { ptr::copy_nonoverlapping(from.as_ptr().add(block), to.add(block), BLOCK) };
                }
            } else {
                // SAFETY: `from` has `length` bytes, and so has the room after `to`; see above.
                unsafe { ptr::copy_nonoverlapping(from.as_ptr(), to, length) };
            }
        }
        at += length_bytes + length;
    }
    // SAFETY: the strings are consecutive from `start` on, `at` bytes in total, and each was written: the short ones
    // with their views, which have 12 bytes after their length.
    unsafe { out.set_len(start + at) };
    Ok(())
}

/// What [`join`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Joined {
    /// Values that were built.
    pub values: usize,
    /// Bytes of `data` that are in them.
    pub taken: usize,
}

/// Builds values that begin as the one before (DELTA_BYTE_ARRAY; Encodings.md, "Delta Strings"), one after the other at the end of `out`: of each,
/// `prefixes` bytes of the value before, and then `suffixes` bytes of `data`, which are taken from its start on. `last` is the value before the
/// first.
///
/// It ends where one of the two lists does, and before a value that cannot be built: a length is negative, the prefix longer than the value
/// before, the value longer than `value_max`; `data` ends within it; or all would be more than `bytes_max`, or more than `out` has capacity
/// for, with [`APPEND_SLACK`] bytes more. `out` does not grow.
pub fn join(
    prefixes: &[i32],
    suffixes: &[i32],
    data: &[u8],
    last: &[u8],
    (value_max, bytes_max): (usize, usize),
    out: &mut Vec<u8>,
) -> Joined {
    let start = out.len();
    let room = out.spare_capacity_mut();
    let end_max = bytes_max.min(room.len().saturating_sub(APPEND_SLACK));
    let value_max = value_max.min(i32::MAX as usize);
    let to = room.as_mut_ptr();
    let (mut at, mut taken, mut values) = (0, 0, 0);
    let mut before = last.len();
    for (&prefix, &suffix) in prefixes.iter().zip(suffixes) {
        // Negative lengths are larger than any value.
        let (prefix, suffix) = (prefix as u32, suffix as u32);
        let length = u64::from(prefix) + u64::from(suffix);
        if length > value_max as u64
            || prefix as usize > before
            || suffix as usize > data.len() - taken
            || length > (end_max - at) as u64
        {
            break;
        }
        let (prefix, suffix, length) = (prefix as usize, suffix as usize, length as usize);
        // Here the room has `length + APPEND_SLACK` bytes from `at` on: `end_max` leaves as many.
        if values == 0 || prefix > BLOCKS_MAX {
            let from = match values {
                0 => last.as_ptr().cast(),
                // SAFETY: the value before is the last `before <= at` bytes before `at`.
                _ => unsafe { to.add(at - before) },
            };
            // SAFETY: both are of `prefix <= before` bytes: `last`, or the value before, which ends where this one begins, so that
            // they do not overlap; and the room from `at` on.
            unsafe { ptr::copy_nonoverlapping(from, to.add(at), prefix) };
        } else {
            for block in (0..prefix).step_by(BLOCK) {
                // SAFETY: a block begins within the prefix, so the one that is read ends less than `BLOCK` bytes after the value
                // before, that is after `at`, and the one that is written less than `BLOCK` bytes after this value's prefix: both are
                // in the room. They may overlap, but one is read before the other is written, and what a later block reads of the
                // value before is before `at`, where nothing is written. What is not written yet is copied as what it is, and
                // written over by this value's suffix, or by the next value.
                unsafe {
                    let bytes =
                        to.add(at - before + block).cast::<[MaybeUninit<u8>; BLOCK]>().read_unaligned();
                    to.add(at + block).cast::<[MaybeUninit<u8>; BLOCK]>().write_unaligned(bytes);
                }
            }
        }
        let (from, behind) = (data[taken..].as_ptr().cast::<MaybeUninit<u8>>(), at + prefix);
        let in_blocks = suffix.next_multiple_of(BLOCK);
        if suffix <= BLOCKS_MAX && in_blocks <= data.len() - taken {
            for block in (0..in_blocks).step_by(BLOCK) {
                // SAFETY: `data` has `in_blocks` bytes from `taken` on. So has the room after the prefix: fewer than `BLOCK` bytes more
                // than the value has. `out` is borrowed alone: they do not overlap.
                unsafe { ptr::copy_nonoverlapping(from.add(block), to.add(behind + block), BLOCK) };
            }
        } else {
            // SAFETY: `data` has `suffix` bytes from `taken` on, and so has the room after the prefix; see above.
            unsafe { ptr::copy_nonoverlapping(from, to.add(behind), suffix) };
        }
        at += length;
        taken += suffix;
        values += 1;
        before = length;
    }
    // SAFETY: the values are consecutive from `start` on, `at` bytes in total, and each was written: its prefix, then its suffix.
    unsafe { out.set_len(start + at) };
    Joined { values, taken }
}

/// Equal lengths before the next one is assumed to be equal, too.
const RUN_STARTS_AFTER: u32 = 3;
/// … after runs that were too short.
const RUN_STARTS_AFTER_MOST: u32 = 64;
/// A run of fewer values costs more, because of the branch that ends it, than it saves.
const RUN_PAYS: usize = 16;

/// `BufferTooLong` unless Arrow can represent every offset.
fn fits(base: u32, bytes: usize) -> Result<(), StringsError> {
    match (base as usize).checked_add(bytes) {
        Some(end) if end <= i32::MAX as usize => Ok(()),
        _ => Err(StringsError::BufferTooLong),
    }
}

/// The high half of a long value's view.
#[inline(always)]
fn high(buffer: u32, offset: u32) -> u64 {
    u64::from(buffer) | u64::from(offset) << 32
}

/// Where long values are: the high half of the view of one at position 0.
#[derive(Clone, Copy)]
struct Place(u64);

impl Place {
    fn new(buffer: u32, base: u32) -> Self {
        Self(high(buffer, base))
    }

    /// The high half of the view of a value at `at`; `fits` has shown that the offset does not overflow.
    #[inline(always)]
    fn of(self, at: usize) -> u64 {
        self.0.wrapping_add((at as u64) << 32)
    }
}

/// The length at `at`, by a load of its own: from a vector register it would arrive three cycles later, and the next
/// value's position waits for it.
///
/// # Safety
///
/// `at + LOAD <= input.len()`.
#[inline(always)]
unsafe fn length(input: &[u8], at: usize) -> u32 {
    debug_assert!(at + LOAD <= input.len());
    // SAFETY: the caller's promise.
    unsafe { input.as_ptr().add(at).cast::<u32>().read_unaligned() }
}

/// Bytes loaded for a value, whatever its length.
const LOAD: usize = 16;

/// What a view keeps of the 16 bytes at a value's length: for a length up to 12 the length and the data, and for all
/// longer ones (entry 13) the length and the prefix.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
static KEEP: [Word; INLINE_MAX + 2] = {
    let mut keep = [Word::of(u64::MAX as u128); INLINE_MAX + 2];
    let mut len = 0;
    while len <= INLINE_MAX {
        keep[len] = Word::of(u128::MAX >> (96 - 8 * len));
        len += 1;
    }
    keep
};

#[cfg(target_arch = "x86_64")]
use sse2::Word;

#[cfg(target_arch = "x86_64")]
mod sse2 {
    //! SSE2, which every x86-64 has. (As a `u128`, a word is split into halves, with twice the instructions.)

    use super::{INLINE_MAX, KEEP, LOAD};
    use core::arch::x86_64::*;

    /// 16 bytes on their way to a view.
    #[derive(Clone, Copy)]
    pub(super) struct Word(__m128i);

    impl Word {
        pub(super) const fn of(bits: u128) -> Self {
            // SAFETY: both are 16 bytes without padding, and any bits are values of both.
            Self(unsafe { core::mem::transmute::<u128, __m128i>(bits) })
        }

        /// # Safety
        ///
        /// `at + LOAD <= bytes.len()`.
        #[inline(always)]
        pub(super) unsafe fn load(bytes: &[u8], at: usize) -> Self {
            debug_assert!(at + LOAD <= bytes.len());
            // SAFETY: the caller's promise.
            Self(unsafe { _mm_loadu_si128(bytes.as_ptr().add(at).cast()) })
        }

        /// The bytes moved up by four, with `len` below them: as in PLAIN.
        #[inline(always)]
        pub(super) fn below(self, len: u32) -> Self {
            // SAFETY: every x86-64 has SSE2.
            Self(unsafe { _mm_or_si128(_mm_slli_si128::<4>(self.0), _mm_cvtsi32_si128(len as i32)) })
        }

        /// The view of a value whose length and first bytes these are. No branch distinguishes short from long: it
        /// would be unpredictable for mixed data.
        #[inline(always)]
        pub(super) fn select(self, len: u32, place: u64) -> Self {
            let class = (len as usize).min(INLINE_MAX + 1);
            let place = if len as usize > INLINE_MAX { place } else { 0 };
            // SAFETY: every x86-64 has SSE2.
            Self(unsafe {
                let place = _mm_slli_si128::<8>(_mm_cvtsi64_si128(place as i64));
                _mm_or_si128(_mm_and_si128(self.0, KEEP[class].0), place)
            })
        }

        #[inline(always)]
        pub(super) fn store(self, to: &mut u128) {
            // SAFETY: a `u128` is 16 bytes, written unaligned.
            unsafe { _mm_storeu_si128((&raw mut *to).cast(), self.0) }
        }
    }
}

#[cfg(target_arch = "aarch64")]
use neon::Word;

#[cfg(target_arch = "aarch64")]
mod neon {
    //! NEON, which AArch64's programs may use like any other instruction.

    use super::{INLINE_MAX, KEEP, LOAD};
    use core::arch::aarch64::*;

    /// 16 bytes on their way to a view.
    #[derive(Clone, Copy)]
    pub(super) struct Word(uint8x16_t);

    impl Word {
        pub(super) const fn of(bits: u128) -> Self {
            // SAFETY: both are 16 bytes without padding, and any bits are values of both.
            Self(unsafe { core::mem::transmute::<u128, uint8x16_t>(bits) })
        }

        /// # Safety
        ///
        /// `at + LOAD <= bytes.len()`.
        #[inline(always)]
        pub(super) unsafe fn load(bytes: &[u8], at: usize) -> Self {
            debug_assert!(at + LOAD <= bytes.len());
            // SAFETY: the caller's promise.
            Self(unsafe { vld1q_u8(bytes.as_ptr().add(at)) })
        }

        /// The bytes moved up by four, with `len` below them: as in PLAIN.
        #[inline(always)]
        pub(super) fn below(self, len: u32) -> Self {
            // SAFETY: NEON is part of the target.
            Self(unsafe { vextq_u8::<12>(vreinterpretq_u8_u32(vdupq_n_u32(len)), self.0) })
        }

        /// The view of a value whose length and first bytes these are, without a branch, as with SSE2.
        #[inline(always)]
        pub(super) fn select(self, len: u32, place: u64) -> Self {
            let class = (len as usize).min(INLINE_MAX + 1);
            let place = if len as usize > INLINE_MAX { place } else { 0 };
            // SAFETY: NEON is part of the target.
            Self(unsafe {
                let place = vcombine_u8(vcreate_u8(0), vcreate_u8(place));
                vorrq_u8(vandq_u8(self.0, KEEP[class].0), place)
            })
        }

        #[inline(always)]
        pub(super) fn store(self, to: &mut u128) {
            // SAFETY: a `u128` is 16 bytes.
            unsafe { vst1q_u8((&raw mut *to).cast(), self.0) }
        }
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
use portable::Word;

/// The twin of `sse2` and `neon`; compiled everywhere, so that the tests compare the two.
#[cfg(any(test, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod portable {
    use super::{INLINE_MAX, LOAD};

    /// 16 bytes on their way to a view.
    #[derive(Clone, Copy)]
    pub(super) struct Word(u128);

    #[cfg_attr(
        any(target_arch = "x86_64", target_arch = "aarch64"),
        allow(dead_code, reason = "only the tests' twin")
    )]
    impl Word {
        /// # Safety
        ///
        /// `at + LOAD <= bytes.len()`.
        #[inline(always)]
        pub(super) unsafe fn load(bytes: &[u8], at: usize) -> Self {
            debug_assert!(at + LOAD <= bytes.len());
            // SAFETY: the caller's promise.
            Self(unsafe { bytes.as_ptr().add(at).cast::<u128>().read_unaligned() })
        }

        #[inline(always)]
        pub(super) fn below(self, len: u32) -> Self {
            Self(self.0 << 32 | u128::from(len))
        }

        #[inline(always)]
        pub(super) fn select(self, len: u32, place: u64) -> Self {
            // Two choices, each of a form that compiles to a conditional move.
            let class = (len as usize).min(INLINE_MAX);
            let inline = self.0 & u128::MAX >> (96 - 8 * class);
            let long = u128::from(self.0 as u64) | u128::from(place) << 64;
            Self(if len as usize > INLINE_MAX { long } else { inline })
        }

        #[inline(always)]
        pub(super) fn store(self, to: &mut u128) {
            *to = self.0;
        }
    }
}

/// Views of the values from `at` on for as long as each is `len` bytes long; returns how many.
///
/// Here the position of the next value follows from `len`, not from a load: the branch that leaves the run is
/// predicted, so that loads overlap; otherwise each would wait for the one before (about six cycles per value).
#[inline(never)]
fn plain_run(input: &[u8], room: usize, at: usize, len: u32, place: Place, out: &mut [u128]) -> usize {
    let stride = 4 + len as usize;
    // `at <= room`, and the values that end within it.
    let most = ((room - at) / stride).min(out.len());
    let mut next = at;
    for (made, to) in out[..most].iter_mut().enumerate() {
        // SAFETY: `next = at + made * stride`, and `made < (room - at) / stride`, so `next <= room`.
        let (word, found) = unsafe { (Word::load(input, next), length(input, next)) };
        if found != len {
            return made;
        }
        word.select(len, place.of(next + 4)).store(to);
        next += stride;
    }
    most
}

/// One value, with separate checks.
#[cold]
#[inline(never)]
fn plain_one(
    input: &[u8],
    at: usize,
    buffer: u32,
    base: u32,
    value_max: u32,
) -> Result<(u128, u32), StringsError> {
    let truncated = StringsError::Truncated { at };
    let (prefix, rest) = input.get(at..).and_then(|rest| rest.split_first_chunk::<4>()).ok_or(truncated)?;
    let len = u32::from_le_bytes(*prefix);
    if len > value_max {
        return Err(StringsError::TooLong { at, len });
    }
    let bytes = rest.get(..len as usize).ok_or(truncated)?;
    Ok((view(bytes, buffer, base.wrapping_add(at as u32).wrapping_add(4)), len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Random, rounds};
    use std::vec;
    use std::vec::Vec;

    /// The view's fields, written out one by one.
    fn naive(bytes: &[u8], buffer: u32, offset: u32) -> u128 {
        let mut out = (bytes.len() as u32).to_le_bytes().to_vec();
        if bytes.len() <= 12 {
            out.extend_from_slice(bytes);
            out.resize(16, 0);
        } else {
            out.extend_from_slice(&bytes[..4]);
            out.extend_from_slice(&buffer.to_le_bytes());
            out.extend_from_slice(&offset.to_le_bytes());
        }
        u128::from_le_bytes(out.try_into().unwrap())
    }

    /// Strings of these lengths, consecutive in two buffers; each buffer ends with its last string.
    fn views_of(random: &mut Random, lengths: &[usize]) -> (Vec<u128>, [Vec<u8>; 2], Vec<Vec<u8>>) {
        let mut buffers = [vec![], vec![]];
        let (mut views, mut strings) = (vec![], vec![]);
        for (number, &length) in lengths.iter().enumerate() {
            let string: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
            let buffer = &mut buffers[number % 2];
            views.push(naive(&string, number as u32 % 2, buffer.len() as u32));
            buffer.extend_from_slice(&string);
            strings.push(string);
        }
        (views, buffers, strings)
    }

    #[test]
    fn appends_strings_behind_others() {
        let mut random = Random::new(7);
        for round in 0..rounds(300) {
            let most = [13, 40, 300, 3000][round % 4];
            let lengths: Vec<usize> = (0..round % 70).map(|_| random.below(most)).collect();
            let (views, buffers, strings) = views_of(&mut random, &lengths);
            let with_lengths: Vec<u8> =
                strings.iter().flat_map(|it| [&(it.len() as u32).to_le_bytes()[..], it].concat()).collect();
            for (is_plain, expected) in [(true, with_lengths), (false, strings.concat())] {
                let append = if is_plain { append::<true> } else { append::<false> };
                let mut out = Vec::with_capacity(3 + expected.len() + APPEND_SLACK);
                out.extend_from_slice(b"abc");
                append(&views, &buffers, &mut out).unwrap();
                assert_eq!((&out[..3], &out[3..]), (&b"abc"[..], &expected[..]));
                let mut short = Vec::with_capacity(expected.len());
                let capacity = short.capacity();
                let refused = append(&views, &buffers, &mut short);
                let fits = views.is_empty() || capacity >= expected.len() + APPEND_SLACK;
                assert_eq!((refused.is_ok(), short.is_empty()), (fits, !fits || expected.is_empty()));
            }
        }
    }

    #[test]
    fn joins_values_that_begin_as_the_one_before() {
        let mut random = Random::new(11);
        for round in 0..rounds(300) {
            let most = [3, 13, 40, 300, 3000][round % 5];
            let last: Vec<u8> = (0..random.below(most)).map(|_| random.next() as u8).collect();
            let (mut prefixes, mut suffixes, mut data) = (vec![], vec![], vec![]);
            let mut values: Vec<Vec<u8>> = vec![];
            for _ in 0..round % 70 {
                let before = values.last().unwrap_or(&last);
                let prefix = random.below(before.len() + 1);
                let suffix: Vec<u8> = (0..random.below(most)).map(|_| random.next() as u8).collect();
                values.push([&before[..prefix], &suffix].concat());
                prefixes.push(prefix as i32);
                suffixes.push(suffix.len() as i32);
                data.extend_from_slice(&suffix);
            }
            // With no more capacity than is needed, and with less; with a limit of a value, and of all of them.
            let all: usize = values.iter().map(Vec::len).sum();
            for (capacity, value_max, bytes_max) in [
                (all, usize::MAX, usize::MAX),
                (all, most, usize::MAX),
                (all, usize::MAX, all / 2),
                (all / 2, usize::MAX, usize::MAX),
            ] {
                let mut out = Vec::with_capacity(3 + capacity + APPEND_SLACK);
                out.extend_from_slice(b"abc");
                let room = (out.capacity() - 3 - APPEND_SLACK).min(bytes_max);
                let mut expected: Vec<u8> = vec![];
                let mut count = 0;
                for value in &values {
                    if value.len() > value_max || expected.len() + value.len() > room {
                        break;
                    }
                    expected.extend_from_slice(value);
                    count += 1;
                }
                let joined = join(&prefixes, &suffixes, &data, &last, (value_max, bytes_max), &mut out);
                let taken = suffixes[..count].iter().map(|&suffix| suffix as usize).sum();
                assert_eq!(joined, Joined { values: count, taken });
                assert_eq!((&out[..3], &out[3..]), (&b"abc"[..], &expected[..]));
            }
        }
    }

    #[test]
    fn joins_no_values_that_are_not_there() {
        let join = |prefixes: &[i32], suffixes: &[i32], data: &[u8]| {
            let mut out = Vec::with_capacity(200);
            let joined = join(prefixes, suffixes, data, b"xyz", (usize::MAX, usize::MAX), &mut out);
            (joined.values, joined.taken, out)
        };
        assert_eq!(join(&[3, 1], &[1, 1], b"ab"), (2, 2, b"xyzaxb".to_vec()));
        for (prefixes, suffixes) in [
            ([4, 0], [1, 1]),
            ([-1, 0], [1, 1]),
            ([0, 0], [-1, 1]),
            ([0, 0], [3, 0]),
            ([i32::MIN, 0], [i32::MIN, 0]),
        ] {
            assert_eq!(join(&prefixes, &suffixes, b"ab"), (0, 0, vec![]));
        }
        // The second is not: longer than the one before, beyond the data.
        assert_eq!(join(&[1, 3], &[1, 0], b"ab"), (1, 1, b"xa".to_vec()));
        assert_eq!(join(&[1, 0], &[1, 2], b"ab"), (1, 1, b"xa".to_vec()));
        assert_eq!(join(&[0, 0], &[2], b"ab"), (1, 2, b"ab".to_vec()));
    }

    #[test]
    fn appends_nothing_from_outside_of_buffers() {
        let buffer = vec![7; 100];
        for (length, number, offset, is_there) in [
            (100, 0, 0, true),
            (13, 0, 87, true),
            (13, 0, 88, false),
            (13, 1, 0, false),
            (101, 0, 0, false),
            (20, 0, u32::MAX, false),
        ] {
            let view = u128::from(length as u32) | u128::from(high(number, offset)) << 64;
            let mut out = Vec::with_capacity(1000);
            let appended = append::<false>(&[view], &[&buffer], &mut out);
            let expected = if is_there { Ok(()) } else { Err(Error::Mismatch) };
            assert_eq!((appended, out.len()), (expected, if is_there { length } else { 0 }));
        }
        let mut out = Vec::with_capacity(1000);
        let endless = u128::from(u32::MAX);
        assert!(matches!(append::<true>(&[endless], &[&buffer], &mut out), Err(Error::Short { .. })));
    }

    struct Page {
        plain: Vec<u8>,
        data: Vec<u8>,
        lengths: Vec<i32>,
        /// Offsets of the bytes in `plain` and in `data`.
        places: Vec<(usize, usize)>,
    }

    fn page(random: &mut Random, lengths: Vec<usize>) -> Page {
        let mut page = Page { plain: vec![], data: vec![], lengths: vec![], places: vec![] };
        for length in lengths {
            let bytes = random.bytes(length);
            page.plain.extend_from_slice(&(length as u32).to_le_bytes());
            page.places.push((page.plain.len(), page.data.len()));
            page.plain.extend_from_slice(&bytes);
            page.data.extend_from_slice(&bytes);
            page.lengths.push(length as i32);
        }
        page
    }

    fn shapes(random: &mut Random, shape: usize, count: usize) -> Vec<usize> {
        let usual = random.below(20);
        (0..count)
            .map(|i| match shape % 6 {
                0 => usual,
                1 => random.below(14),
                2 => random.below(40),
                3 => 11 + random.below(4),
                4 => {
                    if random.below(30) == 0 {
                        random.below(30)
                    } else {
                        usual
                    }
                }
                _ => i / 20 % 15,
            })
            .collect()
    }

    #[test]
    fn plain_and_lengths_against_the_oracle() {
        let mut random = Random::new(91);
        for round in 0..rounds(600) {
            let count = random.below(200);
            let lengths = shapes(&mut random, round, count);
            let page = page(&mut random, lengths);
            let (buffer, base) = (random.next() as u32, random.below(1 << 30) as u32);
            let expected: Vec<u128> = page
                .places
                .iter()
                .zip(&page.lengths)
                .map(|(place, &n)| naive(&page.plain[place.0..][..n as usize], buffer, base + place.0 as u32))
                .collect();
            // In slices of any size, and once in one call.
            for slice in [1 + random.below(40), count + 5] {
                let (mut at, mut made) = (0, vec![]);
                loop {
                    let mut out = vec![0; slice];
                    match plain(&page.plain, &mut at, buffer, base, 100, &mut out) {
                        Ok(n) => made.extend_from_slice(&out[..n]),
                        Err(error) => {
                            assert_eq!(error, StringsError::Truncated { at: page.plain.len() });
                            break;
                        }
                    }
                }
                assert_eq!(made, expected);
                assert_eq!(at, page.plain.len());
            }
            let mut at = 0;
            let mut out = vec![0; count];
            let n = lengths_to_views(&page.lengths, &page.data, &mut at, buffer, base, &mut out).unwrap();
            assert_eq!((n, at), (count, page.data.len()));
            for ((place, view), &length) in page.places.iter().zip(out).zip(&page.lengths) {
                assert_eq!(
                    view,
                    naive(&page.data[place.1..][..length as usize], buffer, base + place.1 as u32)
                );
            }
        }
    }

    #[test]
    fn every_truncation_keeps_the_whole_values() {
        let mut random = Random::new(92);
        for shape in 0..6 {
            let lengths = shapes(&mut random, shape, rounds(40));
            let page = page(&mut random, lengths);
            for cut in 0..page.plain.len() {
                let input = page.plain[..cut].to_vec();
                let whole = page
                    .places
                    .iter()
                    .zip(&page.lengths)
                    .take_while(|(p, n)| p.0 + **n as usize <= cut)
                    .count();
                let end = page.places[whole].0 - 4;
                let (mut at, mut out) = (0, vec![0; page.lengths.len()]);
                let made = plain(&input, &mut at, 0, 0, 100, &mut out);
                if whole == 0 {
                    assert_eq!((made, at), (Err(StringsError::Truncated { at: 0 }), 0));
                } else {
                    assert_eq!((made, at), (Ok(whole), end));
                    let next = plain(&input, &mut at, 0, 0, 100, &mut out);
                    assert_eq!((next, at), (Err(StringsError::Truncated { at: end }), end));
                }
            }
            for cut in 0..page.data.len() {
                let data = page.data[..cut].to_vec();
                let whole = page
                    .places
                    .iter()
                    .zip(&page.lengths)
                    .take_while(|(p, n)| p.1 + **n as usize <= cut)
                    .count();
                let (mut at, mut out) = (0, vec![0; page.lengths.len()]);
                let made = lengths_to_views(&page.lengths, &data, &mut at, 0, 0, &mut out);
                let expected = if whole == 0 { Err(StringsError::Truncated { at: 0 }) } else { Ok(whole) };
                assert_eq!(made, expected);
            }
        }
    }

    #[test]
    fn faults_come_after_the_values_before_them() {
        let mut random = Random::new(93);
        let mut page = page(&mut random, vec![5; 50]);
        let fault = page.places[30].0 - 4;
        for claimed in [101, u32::MAX, 1 << 31] {
            page.plain[fault..fault + 4].copy_from_slice(&claimed.to_le_bytes());
            let (mut at, mut out) = (0, [0; 60]);
            assert_eq!(plain(&page.plain, &mut at, 0, 0, 100, &mut out), Ok(30));
            let error = StringsError::TooLong { at: fault, len: claimed };
            assert_eq!(plain(&page.plain, &mut at, 0, 0, 100, &mut out), Err(error));
            assert_eq!(at, fault);
        }
        page.lengths[30] = -1;
        let (mut at, mut out) = (0, [0; 60]);
        assert_eq!(lengths_to_views(&page.lengths, &page.data, &mut at, 0, 0, &mut out), Ok(30));
        assert_eq!(at, 150);
        let rest = lengths_to_views(&page.lengths[30..], &page.data, &mut at, 0, 0, &mut out);
        assert_eq!(rest, Err(StringsError::Negative { index: 0 }));
    }

    #[test]
    fn garbage_is_read_as_the_naive_reading_has_it() {
        let mut random = Random::new(95);
        for _ in 0..rounds(2000) {
            let n = random.below(300);
            let mut input = random.bytes(n);
            // Mostly plausible lengths, so that some values precede the error.
            let mut at = 0;
            while at + 4 <= n && random.below(20) != 0 {
                let len = random.below(20) as u32;
                input[at..at + 4].copy_from_slice(&len.to_le_bytes());
                at += 4 + len as usize;
            }
            let value_max = [15, 1000, u32::MAX][random.below(3)];
            let (mut expected, mut end) = (vec![], 0);
            let fault = loop {
                let Some(prefix) = input.get(end..end + 4) else { break StringsError::Truncated { at: end } };
                let len = u32::from_le_bytes(prefix.try_into().unwrap());
                if len > value_max {
                    break StringsError::TooLong { at: end, len };
                }
                match input.get(end + 4..end + 4 + len as usize) {
                    Some(bytes) => expected.push(naive(bytes, 1, 7 + end as u32 + 4)),
                    None => break StringsError::Truncated { at: end },
                }
                end += 4 + len as usize;
            };
            let (mut at, mut out) = (0, vec![0; n + 1]);
            if !expected.is_empty() {
                assert_eq!(plain(&input, &mut at, 1, 7, value_max, &mut out), Ok(expected.len()));
                assert_eq!(out[..expected.len()], expected);
            }
            assert_eq!(at, end);
            assert_eq!(plain(&input, &mut at, 1, 7, value_max, &mut out), Err(fault));
        }
    }

    #[test]
    fn the_twins_agree() {
        let mut random = Random::new(94);
        let bytes = random.bytes(64);
        for at in 0..=48 {
            for len in (0..20).chain([1000, u32::MAX]) {
                let place = random.next();
                // SAFETY: `at + LOAD <= 64`.
                let words = unsafe { (Word::load(&bytes, at), portable::Word::load(&bytes, at)) };
                let mut views = [0; 4];
                words.0.select(len, place).store(&mut views[0]);
                words.1.select(len, place).store(&mut views[1]);
                words.0.below(len).select(len, place).store(&mut views[2]);
                words.1.below(len).select(len, place).store(&mut views[3]);
                assert_eq!((views[0], views[2]), (views[1], views[3]));
            }
        }
    }

    #[test]
    fn edges() {
        let mut at = 0;
        assert_eq!(plain(&[], &mut at, 0, 0, 9, &mut []), Ok(0));
        assert_eq!(plain(&[], &mut at, 0, 0, 9, &mut [0]), Err(StringsError::Truncated { at: 0 }));
        at = 99;
        assert_eq!(plain(&[0; 40], &mut at, 0, 0, 9, &mut [0]), Err(StringsError::Truncated { at: 99 }));
        assert_eq!(
            lengths_to_views(&[1], &[0; 40], &mut at, 0, 0, &mut [0]),
            Err(StringsError::Truncated { at: 99 })
        );
        assert_eq!(
            lengths_to_views(&[0], &[0; 40], &mut at, 0, 0, &mut [0]),
            Err(StringsError::Truncated { at: 99 })
        );
        // A value of no bytes at the very end is complete.
        let mut end = 40;
        assert_eq!(lengths_to_views(&[0, 0], &[0; 40], &mut end, 0, 0, &mut [1; 2]), Ok(2));
        at = 0;
        let far = plain(&[0; 40], &mut at, 0, i32::MAX as u32 - 39, 9, &mut [0]);
        assert_eq!(far, Err(StringsError::BufferTooLong));
        assert_eq!(plain(&[0; 40], &mut at, 0, i32::MAX as u32 - 40, 9, &mut [1; 2]), Ok(2));
        for n in 0..30 {
            let bytes: Vec<u8> = (1..=n).collect();
            assert_eq!(view(&bytes, 7, 9), naive(&bytes, 7, 9));
        }
    }
}
