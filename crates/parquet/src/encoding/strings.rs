//! Byte strings, from views to the bytes of a page.

use marquetry_base::{Budget, Bytes, Price, Result, cast};

use super::Part;
use super::output::Output;
use super::view::{length, view_bytes};
use crate::growing::SLICE_BYTES;

/// The price of a byte string.
pub(crate) const STRING_PRICE: Price = Price { kib: 200, kilovalue: 5 << 10 };

/// Byte strings that are written at a time.
pub(crate) const STRINGS_AT_ONCE: usize = 256;

/// Writes some strings, each preceded by its length if `LENGTHS`, and returns how many. Of a long one it writes a slice
/// at a time, which `part` keeps track of.
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
            put_part(out, part, value, budget)
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
    let piece = part.next(value)?;
    budget.charge(STRING_PRICE, piece.len(), 0);
    out.put(piece)?;
    Ok(usize::from(part.is_done(value)))
}
