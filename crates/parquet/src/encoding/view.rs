//! Views of byte strings, and the bytes that they stand for.

use marquetry_base::{Bytes, Error, Result};

use crate::batch::INLINE_BYTES_MAX;

/// The bytes of a view; `raw` are its own.
pub(crate) fn view_bytes<'a>(raw: &'a [u8; 16], buffers: &'a [Bytes]) -> Result<&'a [u8]> {
    let view = u128::from_le_bytes(*raw);
    let length = length(view) as usize;
    if length <= INLINE_BYTES_MAX { Ok(&raw[4..4 + length]) } else { far_bytes(view, buffers) }
}

/// The bytes that a long value's view points to.
#[inline]
pub(crate) fn far_bytes(view: u128, buffers: &[Bytes]) -> Result<&[u8]> {
    let [.., b0, b1, b2, b3, o0, o1, o2, o3] = view.to_le_bytes();
    let (number, start) = (u32::from_le_bytes([b0, b1, b2, b3]), u32::from_le_bytes([o0, o1, o2, o3]));
    let buffer = buffers.get(number as usize).and_then(|buffer| buffer.get(start as usize..));
    buffer.and_then(|rest| rest.get(..length(view) as usize)).ok_or_else(beyond_buffers)
}

/// Shorter values are copied rather than shared.
const SHARED_BYTES_MIN: usize = 1 << 20;

/// A long value's bytes, shared with the buffer that its view points into. `None` if the value is not long, or is less
/// than a quarter of its buffer: that is held for as long as the value.
pub(crate) fn far_shared(view: u128, buffers: &[Bytes]) -> Option<Bytes> {
    let length = length(view) as usize;
    if length < SHARED_BYTES_MIN {
        return None;
    }
    let [.., b0, b1, b2, b3, o0, o1, o2, o3] = view.to_le_bytes();
    let (number, start) = (u32::from_le_bytes([b0, b1, b2, b3]), u32::from_le_bytes([o0, o1, o2, o3]));
    let buffer = buffers.get(number as usize).filter(|buffer| length >= buffer.len() / 4)?;
    let end = (start as usize).checked_add(length).filter(|&end| end <= buffer.len())?;
    Some(buffer.slice(start as usize..end))
}

/// A view that points outside of its buffers.
pub(crate) fn beyond_buffers() -> Error {
    Error::misuse("a view that points outside of its buffers")
}

/// The length that a view says.
#[inline]
pub(crate) fn length(view: u128) -> u32 {
    let [l0, l1, l2, l3, ..] = view.to_le_bytes();
    u32::from_le_bytes([l0, l1, l2, l3])
}
