//! Byte strings, from views to the bytes of a page.

use marquetry_base::{Budget, Bytes, Price, Result, cast};

use super::Part;
use super::output::{Output, PIECE_BYTES};
use super::view::{far_shared, length, view_bytes};
use crate::growing::SLICE_BYTES;

/// The price of a byte string, which is copied to memory that was never used.
pub(crate) const STRING_PRICE: Price = Price { kib: 500, kilovalue: 5 << 10 };
/// The price of a piece of a byte string that is shared, not copied.
const SHARE_PRICE: Price = Price::per_kilovalue(100 << 10);

/// Byte strings that are written at a time.
pub(crate) const STRINGS_AT_ONCE: usize = 256;

/// Writes some strings, each preceded by its length if `LENGTHS`, and returns how many. Of a long one it writes a slice
/// at a time, which `part` keeps track of; a very long one is shared with its
/// buffer.
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
            out.put_strings::<LENGTHS>(now, buffers, bytes)?;
            Ok(now.len())
        }
        // Together they are too long: one by one.
        _ => {
            let Some(view) = now.first() else { return Ok(0) };
            let raw = view.to_le_bytes();
            let value = view_bytes(&raw, buffers)?;
            if LENGTHS && part.is_none() {
                out.put(&raw[..4])?;
            }
            budget.charge(STRING_PRICE, 0, 1);
            match far_shared(*view, buffers) {
                Some(shared) => share_part(out, part, &shared, budget),
                None => put_part(out, part, value, budget),
            }
        }
    }
}

/// Writes a slice of a value; returns 1 if that completed it.
pub(crate) fn put_part(
    out: &mut Output,
    part: &mut Part,
    value: &[u8],
    budget: &mut Budget<'_>,
) -> Result<usize> {
    let piece = part.next(value, SLICE_BYTES)?;
    budget.charge(STRING_PRICE, piece.len(), 0);
    out.put(piece)?;
    Ok(usize::from(part.is_done(value)))
}

/// Shares a piece of a value; returns 1 if that completed it.
fn share_part(out: &mut Output, part: &mut Part, value: &Bytes, budget: &mut Budget<'_>) -> Result<usize> {
    let piece = part.next(value, PIECE_BYTES)?;
    budget.charge(SHARE_PRICE, 0, 1);
    out.share(value.slice_ref(piece));
    Ok(usize::from(part.is_done(value)))
}
