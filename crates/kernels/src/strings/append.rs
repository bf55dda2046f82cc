//! Strings of views, and values that begin as the one before, to consecutive bytes.

use alloc::vec::Vec;
use core::mem::MaybeUninit;
use core::ptr;

use super::word::INLINE_MAX;
use crate::Error;

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
    // The first bytes of the value before, which those of the next are made of: read from memory, they would have to wait for two stores
    // to arrive there, longer than all the rest takes. (A prefix that is longer has all of them.)
    let mut head = begin(0, 0, last);
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
        if prefix <= HEAD {
            head = begin(head, prefix, &data[taken..]);
            // SAFETY: 16 bytes, fewer than `APPEND_SLACK`.
            unsafe { to.add(at).cast::<u128>().write_unaligned(head.to_le()) };
            if length <= HEAD {
                at += length;
                taken += suffix;
                values += 1;
                before = length;
                continue;
            }
        } else if values == 0 || prefix > BLOCKS_MAX {
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

/// Bytes of a value that are made in registers.
const HEAD: usize = 16;

/// The first bytes of a value: `prefix` of the value before, whose first are `before`, at most [`HEAD`], and then those of `suffix`; from
/// the low end. What follows the value's end is anything.
#[inline(always)]
fn begin(before: u128, prefix: usize, suffix: &[u8]) -> u128 {
    let suffix = match suffix.first_chunk() {
        Some(first) => u128::from_le_bytes(*first),
        None => {
            let mut first = [0; HEAD];
            first[..suffix.len()].copy_from_slice(suffix);
            u128::from_le_bytes(first)
        }
    };
    // Shifts by 128 bits, of a prefix of 16 bytes, leave nothing.
    let bits = 8 * prefix as u32;
    let kept = !u128::MAX.checked_shl(bits).unwrap_or(0);
    before & kept | suffix.checked_shl(bits).unwrap_or(0)
}
