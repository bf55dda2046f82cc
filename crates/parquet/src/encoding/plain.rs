//! PLAIN: one value after the other.
//!
//! Source: `Encodings.md`, "Plain".

use marquetry_base::{Bytes, Error, Result};
use marquetry_kernels::{Plain, plain, strings};

use super::{BufferIndex, too_few_values};

/// A decoder of values of one width.
#[derive(Debug, Clone)]
pub(crate) struct PlainFixed {
    bytes: Bytes,
    at: usize,
}

impl PlainFixed {
    /// A decoder of the values that `bytes` are.
    pub(crate) fn new(bytes: Bytes) -> PlainFixed {
        PlainFixed { bytes, at: 0 }
    }

    /// An error unless `count` values of `width` bytes are left: asked before room is made for wide ones.
    pub(crate) fn check_left(&self, count: usize, width: usize) -> Result<()> {
        match count.checked_mul(width) {
            Some(bytes) if bytes <= self.bytes.len() - self.at => Ok(()),
            _ => Err(too_few_values()),
        }
    }

    /// Decodes numbers.
    pub(crate) fn decode<T: Plain>(&mut self, out: &mut [T]) -> Result<()> {
        let length = size_of_val(out);
        let values = self.bytes.get(self.at..self.at + length).ok_or_else(too_few_values)?;
        plain::copy(values, out);
        self.at += length;
        Ok(())
    }

    /// Copies byte strings of one width, as many as `out` has room for.
    pub(crate) fn decode_bytes(&mut self, out: &mut [u8]) -> Result<()> {
        let values = self.bytes.get(self.at..self.at + out.len()).ok_or_else(too_few_values)?;
        out.copy_from_slice(values);
        self.at += out.len();
        Ok(())
    }
}

/// A decoder of BYTE_ARRAY: each a length of four bytes and the bytes. The views point into the page.
#[derive(Debug, Clone)]
pub(crate) struct PlainByteArray {
    bytes: Bytes,
    at: usize,
    value_bytes_max: u32,
}

impl PlainByteArray {
    /// A decoder of the values that `bytes` are.
    pub(crate) fn new(bytes: Bytes, value_bytes_max: u32) -> PlainByteArray {
        PlainByteArray { bytes, at: 0, value_bytes_max }
    }

    /// The bytes that views point into.
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Makes views of the next values; `buffer` is the number under which the page's bytes will be known.
    pub(crate) fn decode(&mut self, buffer: BufferIndex, mut out: &mut [u128]) -> Result<()> {
        // Values before a bad one are made first; the next call then says what is wrong with it.
        while !out.is_empty() {
            let made = strings::plain(&self.bytes, &mut self.at, buffer, 0, self.value_bytes_max, out)
                .map_err(|error| string_error(error, self.value_bytes_max))?;
            out = out.get_mut(made..).filter(|_| made > 0).ok_or_else(too_few_values)?;
        }
        Ok(())
    }
}

/// A byte string that cannot be.
pub(crate) fn string_error(error: strings::StringsError, value_bytes_max: u32) -> Error {
    match error {
        strings::StringsError::Negative { .. } => Error::corrupt("a value of negative length"),
        strings::StringsError::BufferTooLong => Error::internal("a page beyond 4 GiB"),
        strings::StringsError::Truncated { .. } => Error::corrupt("a value reaches beyond the page's end"),
        strings::StringsError::TooLong { len, .. } if len > i32::MAX.cast_unsigned() => {
            Error::corrupt("a value of negative length")
        }
        strings::StringsError::TooLong { len, .. } => {
            match marquetry_base::Limits::check("value_bytes", value_bytes_max.into(), len.into()) {
                Err(error) => error,
                Ok(()) => Error::internal("a value within the limit was refused"),
            }
        }
    }
}
