//! Byte strings, out of views, to the bytes of a page.

use marquetry_base::{Budget, Bytes, Error, Price, Result, cast};

use super::output::Output;
use super::{Part, beyond_buffers, view_bytes};
use crate::growing::SLICE_BYTES;
use crate::read::INLINE_BYTES_MAX;

/// What a byte string costs.
pub(crate) const STRING_PRICE: Price = Price { kib: 200, kilovalue: 5 << 10 };

/// Byte strings that are written at a time.
pub(crate) const STRINGS_AT_ONCE: usize = 256;

/// The longest string that is copied as a block of that length: several times as fast as a copy of any length.
const BLOCK: usize = 32;

/// Strings of more bytes on the average are appended one by one: making room for them all would touch it twice.
const LONG: usize = 64;

/// Bytes behind the last string that a block may be written to.
const SLACK: usize = BLOCK;

/// Writes some strings, each behind its length if `LENGTHS`; says how many. Of a long one it writes a slice at a time, which
/// `part` remembers.
pub(crate) fn put<const LENGTHS: bool>(
    out: &mut Output,
    part: &mut Part,
    views: &[u128],
    buffers: &[Bytes],
    budget: &mut Budget<'_>,
) -> Result<usize> {
    let now = &views[..views.len().min(STRINGS_AT_ONCE)];
    let lengths = if LENGTHS { now.len() * 4 } else { 0 };
    let bytes = now.iter().map(|&view| u64::from(length(view))).sum::<u64>() + cast::u64_of(lengths);
    match cast::usize_of(bytes).filter(|&bytes| bytes <= SLICE_BYTES) {
        Some(bytes) if part.is_none() => {
            budget.charge(STRING_PRICE, bytes, now.len());
            if bytes > now.len() * LONG {
                for view in now {
                    let raw = view.to_le_bytes();
                    out.put(if LENGTHS { &raw[..4] } else { &[] })?;
                    out.put(view_bytes(&raw, buffers)?)?;
                }
                return Ok(now.len());
            }
            write::<LENGTHS>(now, buffers, out.room(bytes + SLACK)?)?;
            out.give_back(SLACK);
            Ok(now.len())
        }
        // Together they are too much: one by one.
        _ => {
            let Some(view) = now.first() else { return Ok(0) };
            let raw = view.to_le_bytes();
            let value = view_bytes(&raw, buffers)?;
            if LENGTHS && part.is_none() {
                out.put(&raw[..4])?;
            }
            budget.charge(STRING_PRICE, 0, 1);
            put_part(out, part, value, budget)
        }
    }
}

/// Writes a slice of a value; 1 when that was its end.
pub(crate) fn put_part(
    out: &mut Output,
    part: &mut Part,
    value: &[u8],
    budget: &mut Budget<'_>,
) -> Result<usize> {
    let piece = part.next(value)?;
    budget.charge(STRING_PRICE, piece.len(), 0);
    out.put(piece)?;
    Ok(usize::from(part.is_done(value)))
}

/// The length that a view says.
#[inline]
pub(crate) fn length(view: u128) -> u32 {
    let [l0, l1, l2, l3, ..] = view.to_le_bytes();
    u32::from_le_bytes([l0, l1, l2, l3])
}

/// Writes strings to the start of `room`, which has [`SLACK`] bytes more than they need.
fn write<const LENGTHS: bool>(views: &[u128], buffers: &[Bytes], mut room: &mut [u8]) -> Result<()> {
    for view in views {
        let length = length(*view) as usize;
        // The block's first bytes are right for a short string, and as its length for any.
        let raw = if LENGTHS { *view } else { *view >> 32 }.to_le_bytes();
        *room.first_chunk_mut().ok_or_else(no_room)? = raw;
        let (_, behind) = room.split_at_mut(if LENGTHS { 4 } else { 0 });
        if length > INLINE_BYTES_MAX {
            let [.., b0, b1, b2, b3, o0, o1, o2, o3] = view.to_le_bytes();
            let buffer = buffers.get(u32::from_le_bytes([b0, b1, b2, b3]) as usize);
            let from = buffer.and_then(|buffer| buffer.get(u32::from_le_bytes([o0, o1, o2, o3]) as usize..));
            let from = from.ok_or_else(beyond_buffers)?;
            match (from.first_chunk::<BLOCK>(), behind.first_chunk_mut::<BLOCK>()) {
                (Some(from), Some(to)) if length <= BLOCK => *to = *from,
                _ => {
                    let from = from.get(..length).ok_or_else(beyond_buffers)?;
                    behind.get_mut(..length).ok_or_else(no_room)?.copy_from_slice(from);
                }
            }
        }
        room = behind.get_mut(length..).ok_or_else(no_room)?;
    }
    Ok(())
}

fn no_room() -> Error {
    Error::internal("no room for byte strings")
}
