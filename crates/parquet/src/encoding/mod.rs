//! The encodings of levels and values, one module each.
//!
//! A decoder holds a page's bytes and a place in them. It decodes into slices that its caller gives it, any number of
//! values at a time, and stops anywhere; how much work a call may do is the caller's to bound, by the slice.
//!
//! Source: parquet-format's `Encodings.md`.

pub(crate) mod alp;
pub(crate) mod byte_stream_split;
pub(crate) mod delta;
pub(crate) mod delta_byte_array;
pub(crate) mod hybrid;
pub(crate) mod plain;

use marquetry_base::{Error, Result};

/// Where a byte string's view will point: the number of the buffer that holds the bytes.
pub(crate) type BufferIndex = u32;

/// A page that has fewer values than its header said.
pub(crate) fn too_few_values() -> Error {
    Error::corrupt("the page ends before its last value")
}

/// Reads an unsigned LEB128 number of at most 64 bits at `at`, and moves `at` behind it.
pub(crate) fn varint(bytes: &[u8], at: &mut usize) -> Result<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte =
            *bytes.get(*at).ok_or_else(|| Error::corrupt("the page ends in the middle of a number"))?;
        *at += 1;
        if shift == 63 && byte > 1 {
            break;
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(Error::corrupt("a number in the page is longer than 64 bits"))
}

/// A zigzag number.
pub(crate) fn zigzag(raw: u64) -> i64 {
    (raw >> 1).cast_signed() ^ -((raw & 1).cast_signed())
}
