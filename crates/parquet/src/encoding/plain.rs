//! PLAIN: one value after the other.
//!
//! Source: `Encodings.md`, "Plain".

pub(crate) mod encode;

use marquetry_base::{Bytes, Error, Result, cast};
use marquetry_kernels::{Plain, plain, strings, utf8};

use super::stream::Stream;
use super::{BufferIndex, Decoded, check_text_on, not_text, too_few_values};
use crate::growing::SLICE_BYTES;

/// A decoder of values of one width.
#[derive(Debug, Clone)]
pub(crate) struct PlainFixed {
    stream: Stream,
    /// Bytes of the next value that were skipped, while values are skipped.
    skipped: usize,
}

impl PlainFixed {
    /// A decoder of the values that `stream` is.
    pub(crate) fn new(stream: Stream) -> PlainFixed {
        PlainFixed { stream, skipped: 0 }
    }

    /// The stream that it reads.
    pub(crate) fn stream(&mut self) -> &mut Stream {
        &mut self.stream
    }

    /// The same, to look at.
    pub(crate) fn peek_stream(&self) -> &Stream {
        &self.stream
    }

    /// How many of the next `count` values of `width` bytes have arrived; none if the stream needs bytes first. Checked
    /// before wide ones are allocated.
    pub(crate) fn values_there(&mut self, count: usize, width: usize) -> Result<usize> {
        match self.stream.there().len().checked_div(width) {
            None => Ok(count),
            Some(0) if count > 0 && self.stream.has(width) => Err(too_few_values()),
            Some(there) => Ok(there.min(count)),
        }
    }

    /// Decodes numbers, as many as have arrived.
    pub(crate) fn decode<T: Plain>(&mut self, out: &mut [T]) -> Result<usize> {
        let values = self.values_there(out.len(), size_of::<T>())?;
        let bytes = values * size_of::<T>();
        plain::copy(&self.stream.there()[..bytes], &mut out[..values]);
        self.stream.advance(bytes);
        Ok(values)
    }

    /// Skips values of `width` bytes, as many as have arrived. Decoding can continue once all are skipped.
    pub(crate) fn skip(&mut self, count: usize, width: usize) -> Result<usize> {
        if width == 0 {
            return Ok(count);
        }
        let bytes = count.saturating_mul(width) - self.skipped;
        if bytes > self.stream.left() {
            return Err(too_few_values());
        }
        let there = self.stream.there().len().min(bytes);
        self.stream.advance(there);
        if there < bytes {
            self.stream.has(1);
        }
        self.skipped += there;
        let values = self.skipped / width;
        self.skipped %= width;
        Ok(values)
    }

    /// Copies bytes of values, as many as have arrived.
    pub(crate) fn decode_bytes(&mut self, out: &mut [u8]) -> Result<usize> {
        if out.len() > self.stream.left() {
            return Err(too_few_values());
        }
        self.stream.has(out.len().min(1));
        let there = self.stream.there();
        let bytes = there.len().min(out.len());
        plain::copy(&there[..bytes], &mut out[..bytes]);
        self.stream.advance(bytes);
        Ok(bytes)
    }
}

/// Which byte strings a column accepts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Accept {
    /// The longest, in bytes.
    pub(crate) value_bytes_max: u32,
    /// The bytes that each must have, where all have as many: one of another length is refused before it is built.
    pub(crate) width: Option<usize>,
    /// Only UTF-8.
    pub(crate) only_text: bool,
}

/// A decoder of BYTE_ARRAY: each a length of four bytes and the bytes. The views point into the chunk.
#[derive(Debug, Clone)]
pub(crate) struct PlainByteArray {
    stream: Stream,
    accept: Accept,
    /// Bytes of the next value that have been checked to be UTF-8, if it is long.
    checked: usize,
}

/// Bytes of a value's length.
const LENGTH_BYTES: usize = 4;

impl PlainByteArray {
    /// A decoder of the values that `stream` is.
    pub(crate) fn new(stream: Stream, accept: Accept) -> PlainByteArray {
        PlainByteArray { stream, accept, checked: 0 }
    }

    /// The stream that it reads.
    pub(crate) fn stream(&mut self) -> &mut Stream {
        &mut self.stream
    }

    /// The same, to look at.
    pub(crate) fn peek_stream(&self) -> &Stream {
        &self.stream
    }

    /// The bytes that the views of the next call point into.
    pub(crate) fn bytes(&self) -> &Bytes {
        self.stream.chunk().0
    }

    /// Creates views of the next values; `buffer` is the number that the chunk will have.
    pub(crate) fn decode(&mut self, buffer: BufferIndex, out: &mut [u128]) -> Result<Decoded> {
        let longest = self.accept.value_bytes_max;
        let (chunk, start) = self.stream.chunk();
        // UTF-8 is checked a slice at a time.
        let end = if self.accept.only_text { chunk.len().min(start + SLICE_BYTES) } else { chunk.len() };
        let (bytes, mut at) = (&chunk[..end], start);
        // Values before an invalid one are returned first; the next call then reports what is wrong with it.
        match strings::plain(bytes, &mut at, buffer, 0, longest, out) {
            Ok(values) => {
                let mut decoded = Decoded::values(values);
                if self.accept.only_text {
                    check_plain_text(&bytes[start..at], &out[..values])?;
                    decoded.bytes = at - start;
                }
                self.stream.advance(at - start);
                Ok(decoded)
            }
            Err(strings::StringsError::Truncated { .. }) => self.decode_one(buffer, out),
            Err(error) => Err(string_error(error, longest)),
        }
    }

    /// Creates the view of one value that is long, or does not end in the chunk.
    fn decode_one(&mut self, buffer: BufferIndex, out: &mut [u128]) -> Result<Decoded> {
        let at = self.stream.chunk().1;
        let truncated = || string_error(strings::StringsError::Truncated { at }, 0);
        if !self.stream.has(LENGTH_BYTES) {
            return Ok(Decoded::default());
        }
        let length = u32::from_le_bytes(*self.stream.there().first_chunk().ok_or_else(truncated)?);
        let longest = self.accept.value_bytes_max;
        if length > longest {
            return Err(string_error(strings::StringsError::TooLong { at, len: length }, longest));
        }
        let bytes = LENGTH_BYTES + cast::usize_of_u32(length);
        if bytes > self.stream.left() {
            return Err(truncated());
        }
        if !self.stream.has(bytes) {
            return Ok(Decoded::default());
        }
        let value = &self.stream.there()[LENGTH_BYTES..bytes];
        let mut decoded = Decoded::default();
        if self.accept.only_text {
            decoded.bytes = check_text_on(value, &mut self.checked, SLICE_BYTES)?;
            if self.checked < value.len() {
                return Ok(decoded);
            }
            self.checked = 0;
        }
        let offset =
            u32::try_from(at + LENGTH_BYTES).ok().filter(|&offset| offset <= i32::MAX.cast_unsigned());
        let offset = offset.ok_or_else(|| string_error(strings::StringsError::BufferTooLong, 0))?;
        out[0] = strings::view(value, buffer, offset);
        self.stream.advance(bytes);
        decoded.values = 1;
        Ok(decoded)
    }
}

/// Checks that values are UTF-8. In `plain` each is preceded by its length; `views` are their views.
pub(crate) fn check_plain_text(plain: &[u8], views: &[u128]) -> Result<()> {
    // If no length is above 127, its four bytes are ASCII and end any character that a value leaves incomplete: so
    // everything is UTF-8 exactly if each value is.
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

/// The error for an invalid byte string.
pub(crate) fn string_error(error: strings::StringsError, value_bytes_max: u32) -> Error {
    match error {
        strings::StringsError::Negative { .. } => Error::corrupt("a value of negative length"),
        strings::StringsError::BufferTooLong => Error::internal("a page beyond 4 GiB"),
        strings::StringsError::Truncated { .. } => Error::corrupt("a value reaches beyond the page's end"),
        strings::StringsError::TooLong { len, .. } if len > i32::MAX.cast_unsigned() => {
            Error::corrupt("a value of negative length")
        }
        strings::StringsError::TooLong { len, .. } => {
            match marquetry_base::Limit::ValueBytes.check(value_bytes_max.into(), len.into()) {
                Err(error) => error,
                Ok(()) => Error::internal("a value within the limit was refused"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::stream::{feed, in_segments};
    use super::*;
    use alloc::vec::Vec;

    fn check(values: &[&[u8]]) -> Result<()> {
        let mut page = Vec::new();
        for value in values {
            page.extend(u32::try_from(value.len()).unwrap().to_le_bytes());
            page.extend(*value);
        }
        let mut views = alloc::vec![0; values.len()];
        for segment in [1, 5, 100, 1000] {
            let stream = in_segments(&page, segment);
            let mut decoder =
                PlainByteArray::new(stream, Accept { value_bytes_max: 1000, width: None, only_text: true });
            let mut done = 0;
            while done < views.len() {
                done += decoder.decode(1, &mut views[done..])?.values;
                feed(decoder.stream());
            }
            assert_eq!(decoder.stream().left(), 0);
        }
        Ok(())
    }

    #[test]
    fn text_is_checked_value_by_value() {
        let long = "é".repeat(100);
        assert!(check(&[b"", "é".as_bytes(), b"a"]).is_ok());
        assert!(check(&[long.as_bytes(), b"a"]).is_ok());
        assert!(check(&[b"\xc3", b"\xa9"]).is_err());
        assert!(check(&[&long.as_bytes()[..199], b"a"]).is_err());
        // A length whose bytes would continue a character: 0xa9 is 169.
        assert!(check(&[b"a\xc3", "a".repeat(169).as_bytes()]).is_err());
        assert_eq!(check(&[b"a", b"\xff"]).unwrap_err().message(), "text that is not UTF-8");
    }
    #[test]
    fn a_long_text_is_checked_in_slices() {
        let check_long = |text: &[u8]| {
            let mut page = Vec::from(u32::try_from(text.len()).unwrap().to_le_bytes());
            page.extend(text);
            let accept = Accept { value_bytes_max: u32::MAX, width: None, only_text: true };
            let mut decoder = PlainByteArray::new(Bytes::from(page).into(), accept);
            let (mut calls, mut view) = (0, [0]);
            loop {
                let decoded = decoder.decode(1, &mut view)?;
                calls += 1;
                assert!(decoded.bytes <= SLICE_BYTES, "{} bytes at once", decoded.bytes);
                if decoded.values == 1 {
                    return Ok(calls);
                }
            }
        };
        for shift in 0..4 {
            let mut text = "x".repeat(shift) + &"\u{1f9e9}".repeat(SLICE_BYTES);
            assert!(check_long(text.as_bytes()).unwrap() >= 4);
            text.push('é');
            let cut = text.len() - 1;
            let error: Error = check_long(&text.as_bytes()[..cut]).unwrap_err();
            assert_eq!(error.message(), "text that is not UTF-8");
        }
        assert!(check_long(&[0xa9; 3 * SLICE_BYTES]).is_err());
    }
}
