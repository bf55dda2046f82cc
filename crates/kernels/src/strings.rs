//! Byte arrays to Arrow's string views, without copying long ones; and back, to consecutive bytes.
//!
//! A view is 16 bytes, here a `u128`, from its low end: the length (`u32`); up to 12 bytes of data, zero-padded, or,
//! for a longer value, its first four bytes, the number of its buffer (`u32`) and its offset there (`u32`). (Arrow
//! Columnar Format, "Variable-size Binary View Layout".)
//!
//! PLAIN's own form, length then bytes, *is* the view of a short value: it takes one unaligned load and a mask.
//!
//! Speed: where lengths vary, the load of a length bounds [`plain`], which the next value's place waits for (five
//! cycles and two additions); where they are the same, a load and a store for each value. `docs/bench/kernels.md`
//! has its distance from a copy of as many bytes (`make bench-kernels`).

mod append;
#[cfg(test)]
mod tests;
mod word;

use core::fmt;

pub use append::{APPEND_SLACK, Joined, append, join};
pub use word::INLINE_MAX;
use word::{LOAD, Word, length};

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
        while made < count {
            let (left, out) = (&lengths[made..], &mut out[made..]);
            if let (Some(eight), Some(out)) = (left.first_chunk(), out.first_chunk_mut())
                && let Some(len) = of_one_length(eight)
                && next as u64 + EQUAL as u64 * u64::from(len) <= room as u64
            {
                // SAFETY: the eight end within `room`, so that each begins there.
                unsafe { equal(data, next, len, place, out) };
                next += EQUAL * len as usize;
                made += EQUAL;
                continue;
            }
            // Those that are not all of one length are looked at one by one, before it is asked again.
            let before = made;
            for (&length, to) in left.iter().zip(out).take(EQUAL) {
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
            if made < count.min(before + EQUAL) {
                break;
            }
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

/// Lengths that are compared at once: views of values of one length do not wait for each other's place, and what depends
/// on the length is computed once.
const EQUAL: usize = 8;

/// The length that all have, if they have the same.
#[inline(always)]
fn of_one_length(lengths: &[i32; EQUAL]) -> Option<u32> {
    let first = lengths[0];
    let differs = lengths.iter().fold(0, |differs, length| differs | (length ^ first));
    (differs == 0).then_some(first as u32)
}

/// Views of values that are all `len` bytes long, from `at` on.
///
/// # Safety
///
/// `data` has [`LOAD`] bytes from where each begins.
#[inline(always)]
unsafe fn equal(data: &[u8], at: usize, len: u32, place: Place, out: &mut [u128; EQUAL]) {
    for (number, to) in out.iter_mut().enumerate() {
        let at = at + number * len as usize;
        // SAFETY: the caller's promise.
        let word = unsafe { Word::load(data, at) };
        word.below(len).select(len, place.of(at)).store(to);
    }
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
