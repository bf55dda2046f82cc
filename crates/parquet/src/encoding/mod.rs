//! The encodings of levels and values, one module each.
//!
//! A decoder reads a `stream::Stream`: some of a page's bytes, and a position in them. It decodes into its caller's
//! slices, any number of values at a time, and can stop anywhere: where bytes are missing, and where a call has done
//! enough.
//!
//! Source: parquet-format's `Encodings.md`.

pub(crate) mod alp;
pub(crate) mod byte_stream_split;
pub(crate) mod delta;
pub(crate) mod delta_byte_array;
pub(crate) mod hybrid;
pub(crate) mod indices;
pub(crate) mod output;
pub(crate) mod plain;
pub(crate) mod stream;
pub(crate) mod strings;
pub(crate) mod view;

use marquetry_base::{Error, Result};
use marquetry_kernels::utf8;

/// The buffer that a byte string's view will point into, by its number.
pub(crate) type BufferIndex = u32;

/// What a call of a decoder did. It decodes fewer values than requested if a stream needs bytes first, and once it has
/// copied, built or checked about [`SLICE_BYTES`](crate::growing::SLICE_BYTES): a larger value takes several calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Decoded {
    /// Values.
    pub(crate) values: usize,
    /// Bytes that were copied, built or checked, if that depends on more than the number of values.
    pub(crate) bytes: usize,
}

impl Decoded {
    /// Values whose cost depends only on their number.
    pub(crate) fn values(values: usize) -> Decoded {
        Decoded { values, bytes: 0 }
    }
}

/// Checks `slice` more bytes of a long value that must be UTF-8, after the first `checked`. Returns how many were
/// checked.
pub(crate) fn check_text_on(value: &[u8], checked: &mut usize, slice: usize) -> Result<usize> {
    let start = *checked;
    let mut end = value.len().min(start + slice);
    // A slice ends at the end of a character, which has at most four bytes.
    for _ in 1..4 {
        if end > start && value.get(end).is_some_and(|&byte| !utf8::is_boundary(byte)) {
            end -= 1;
        }
    }
    if !utf8::valid(&value[start..end]) {
        return Err(not_text());
    }
    *checked = end;
    Ok(end - start)
}

/// How much is done of a value that is long enough to be written in slices.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Part(usize);

impl Part {
    /// The next slice of the value, at most `most` bytes.
    ///
    /// # Errors
    ///
    /// If it is shorter than what was done already: then it is a different value.
    pub(crate) fn next<'a>(&mut self, value: &'a [u8], most: usize) -> Result<&'a [u8]> {
        let rest = value.get(self.0..).ok_or_else(|| Error::misuse("another value in the middle of one"))?;
        let now = &rest[..rest.len().min(most)];
        self.0 += now.len();
        Ok(now)
    }

    /// True if all of the value is done, which also resets it.
    pub(crate) fn is_done(&mut self, value: &[u8]) -> bool {
        let done = self.0 >= value.len();
        if done {
            self.0 = 0;
        }
        done
    }

    /// True if no value is partly done.
    pub(crate) fn is_none(self) -> bool {
        self.0 == 0
    }

    /// An error in the middle of a value.
    pub(crate) fn ended(self) -> Result<()> {
        if self.0 == 0 { Ok(()) } else { Err(Error::misuse("a page that ends in the middle of a value")) }
    }
}

pub(crate) fn not_text() -> Error {
    Error::corrupt("text that is not UTF-8")
}

/// The error for values of another type than the encoder's.
pub(crate) fn other_type() -> Error {
    Error::misuse("values of another type than the encoder's")
}

/// The error for a page with fewer values than its header claims.
pub(crate) fn too_few_values() -> Error {
    Error::corrupt("the page ends before its last value")
}

/// Maximum bytes of a 64-bit number.
pub(crate) const VARINT_BYTES_MAX: usize = 10;

/// Reads an unsigned LEB128 number of at most 64 bits at `at`, and moves `at` after it.
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

/// The zigzag form of a number.
pub(crate) fn to_zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

/// Writes an unsigned LEB128 number and returns how many bytes it took.
pub(crate) fn put_varint(out: &mut [u8; VARINT_BYTES_MAX], mut value: u64) -> usize {
    for (at, byte) in out.iter_mut().enumerate() {
        *byte = value.to_le_bytes()[0] & 0x7f;
        value >>= 7;
        if value == 0 {
            return at + 1;
        }
        *byte |= 0x80;
    }
    VARINT_BYTES_MAX
}
