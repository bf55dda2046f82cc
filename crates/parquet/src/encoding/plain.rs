//! PLAIN: one value after the other.
//!
//! Source: `Encodings.md`, "Plain".

use marquetry_base::{Bytes, Error, Result, cast};
use marquetry_kernels::{Plain, plain, strings, utf8};

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

/// Which byte strings a column takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Accept {
    /// The longest, in bytes.
    pub(crate) value_bytes_max: u32,
    /// Only UTF-8.
    pub(crate) only_text: bool,
}

/// A decoder of BYTE_ARRAY: each a length of four bytes and the bytes. The views point into the page.
#[derive(Debug, Clone)]
pub(crate) struct PlainByteArray {
    bytes: Bytes,
    at: usize,
    accept: Accept,
}

impl PlainByteArray {
    /// A decoder of the values that `bytes` are.
    pub(crate) fn new(bytes: Bytes, accept: Accept) -> PlainByteArray {
        PlainByteArray { bytes, at: 0, accept }
    }

    /// The bytes that views point into.
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Makes views of the next values; `buffer` is the number under which the page's bytes will be known.
    pub(crate) fn decode(&mut self, buffer: BufferIndex, mut out: &mut [u128]) -> Result<()> {
        // Values before a bad one are made first; the next call then says what is wrong with it.
        while !out.is_empty() {
            let start = self.at;
            let longest = self.accept.value_bytes_max;
            let made = strings::plain(&self.bytes, &mut self.at, buffer, 0, longest, out)
                .map_err(|error| string_error(error, longest))?;
            if self.accept.only_text {
                check_plain_text(&self.bytes[start..self.at], out.get(..made).unwrap_or_default())?;
            }
            out = out.get_mut(made..).filter(|_| made > 0).ok_or_else(too_few_values)?;
        }
        Ok(())
    }
}

/// Checks that values are UTF-8, which stand in `plain` each behind its length, and have `views`.
pub(crate) fn check_plain_text(plain: &[u8], views: &[u128]) -> Result<()> {
    // Where no length is beyond 127, its four bytes are ASCII: so they end any character that a value leaves unfinished, and
    // all is UTF-8 exactly if each value is.
    let longest = views.iter().map(|&view| cast::low_u32(low_u64(view))).max().unwrap_or(0);
    if longest < 128 && utf8::valid(plain) {
        return Ok(());
    }
    let mut at = 0;
    for &view in views {
        let start = at + 4;
        at = start + cast::usize_of_u32(cast::low_u32(low_u64(view)));
        if !plain.get(start..at).is_some_and(utf8::valid) {
            return Err(not_text());
        }
    }
    Ok(())
}

/// The low half of a view.
#[expect(clippy::cast_possible_truncation, reason = "the low bits are what is asked for")]
fn low_u64(view: u128) -> u64 {
    view as u64
}

/// A value of a text column that is not.
pub(crate) fn not_text() -> Error {
    Error::corrupt("text that is not UTF-8")
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

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn check(values: &[&[u8]]) -> Result<()> {
        let mut page = Vec::new();
        for value in values {
            page.extend(u32::try_from(value.len()).unwrap().to_le_bytes());
            page.extend(*value);
        }
        let mut views = alloc::vec![0; values.len()];
        PlainByteArray::new(page.into(), Accept { value_bytes_max: 1000, only_text: true })
            .decode(1, &mut views)
    }

    #[test]
    fn text_is_checked_value_by_value() {
        let long = "é".repeat(100);
        assert!(check(&[b"", "é".as_bytes(), b"a"]).is_ok());
        assert!(check(&[long.as_bytes(), b"a"]).is_ok());
        assert!(check(&[b"\xc3", b"\xa9"]).is_err());
        assert!(check(&[&long.as_bytes()[..199], b"a"]).is_err());
        // A length whose bytes would go on a character: 0xa9 is 169.
        assert!(check(&[b"a\xc3", "a".repeat(169).as_bytes()]).is_err());
        assert_eq!(check(&[b"a", b"\xff"]).unwrap_err().message(), "text that is not UTF-8");
    }
}
