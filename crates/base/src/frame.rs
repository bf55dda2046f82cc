//! Frames: messages of numbered fields, for requests and answers that cross from one program to another.
//!
//! ```text
//! frame   magic (4 bytes, which name what it is and its version), then fields
//! field   number (u16), flags (u16), length (u32), as many bytes; all little-endian
//! ```
//!
//! A field may occur several times. Of a number that it does not know, a reader ignores a field whose flags say that it
//! may ([`Field::is_optional`]), and refuses any other, so that a newer writer is never understood in part.

use alloc::format;
use alloc::vec::Vec;

use crate::cast::{low_u32, u64_of, usize_of_u32};
use crate::{Error, Result};

/// The flag of a field that a reader may ignore.
const OPTIONAL: u16 = 1;
/// Bytes of a field before its own.
const HEAD_BYTES: usize = 8;

/// A frame that is written.
///
/// ```
/// use marquetry_base::{Fields, Frame};
///
/// let mut frame = Frame::new(*b"ABC1");
/// frame.push(1, b"name").push_u64(2, 7);
/// let bytes = frame.into_bytes();
/// let mut fields = Fields::of(&bytes, *b"ABC1")?;
/// let (name, count) = (fields.next().unwrap()?, fields.next().unwrap()?);
/// assert_eq!((name.number, name.text()?, count.u64()?), (1, "name", 7));
/// assert!(Fields::of(&bytes, *b"ABC2").is_err());
/// # Ok::<(), marquetry_base::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Frame {
    bytes: Vec<u8>,
}

impl Frame {
    /// A frame without fields.
    pub fn new(magic: [u8; 4]) -> Frame {
        Frame { bytes: magic.to_vec() }
    }

    /// Adds a field. One of 4 GiB or more, which nobody writes, is cut.
    pub fn push(&mut self, number: u16, bytes: &[u8]) -> &mut Frame {
        self.add(number, 0, bytes)
    }

    /// Adds a field that a reader may ignore.
    pub fn push_optional(&mut self, number: u16, bytes: &[u8]) -> &mut Frame {
        self.add(number, OPTIONAL, bytes)
    }

    /// Adds a number.
    pub fn push_u64(&mut self, number: u16, value: u64) -> &mut Frame {
        self.push(number, &value.to_le_bytes())
    }

    /// Adds the head of a last field, whose bytes, so many of them, are sent after those of the frame: they need not be copied into it. A
    /// field of 4 GiB or more, which nobody writes, is said to have less.
    ///
    /// ```
    /// use marquetry_base::Frame;
    ///
    /// let (mut whole, mut head) = (Frame::new(*b"ABC1"), Frame::new(*b"ABC1"));
    /// whole.push(1, b"rows");
    /// head.push_head(1, 4);
    /// assert_eq!(whole.into_bytes(), [head.into_bytes().as_slice(), b"rows"].concat());
    /// ```
    pub fn push_head(&mut self, number: u16, length: usize) -> &mut Frame {
        self.add_head(number, 0, length);
        self
    }

    /// The frame.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn add(&mut self, number: u16, flags: u16, bytes: &[u8]) -> &mut Frame {
        let length = self.add_head(number, flags, bytes.len());
        self.bytes.extend_from_slice(&bytes[..length.min(bytes.len())]);
        self
    }

    /// Adds what is before a field's bytes: how many it says there are.
    fn add_head(&mut self, number: u16, flags: u16, length: usize) -> usize {
        let length = low_u32(u64_of(length).min(u32::MAX.into()));
        self.bytes.extend_from_slice(&number.to_le_bytes());
        self.bytes.extend_from_slice(&flags.to_le_bytes());
        self.bytes.extend_from_slice(&length.to_le_bytes());
        usize_of_u32(length)
    }
}

/// The fields of a frame, in order.
#[derive(Debug, Clone)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

/// A field of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field<'a> {
    /// What it is.
    pub number: u16,
    /// Whether a reader that does not know the number may ignore it.
    pub is_optional: bool,
    /// Its bytes.
    pub bytes: &'a [u8],
}

impl<'a> Fields<'a> {
    /// The fields of a frame of that kind and version.
    ///
    /// # Errors
    ///
    /// `Unsupported` for another magic.
    pub fn of(frame: &'a [u8], magic: [u8; 4]) -> Result<Fields<'a>> {
        match frame.split_first_chunk::<4>() {
            Some((found, rest)) if *found == magic => Ok(Fields { rest }),
            Some((found, _)) => Err(Error::unsupported(format!(
                "a message that begins with \"{}\", where \"{}\" is understood",
                found.escape_ascii(),
                magic.escape_ascii()
            ))),
            None => Err(Error::unsupported("a message of less than four bytes")),
        }
    }

    /// Bytes of the frame after the fields that were read: the last of these ends as many before the frame's end.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    fn take(&mut self) -> Option<Field<'a>> {
        let (head, rest) = self.rest.split_first_chunk::<HEAD_BYTES>()?;
        let [n0, n1, f0, f1, l0, l1, l2, l3] = *head;
        let length = usize_of_u32(u32::from_le_bytes([l0, l1, l2, l3]));
        let (bytes, rest) = rest.split_at_checked(length)?;
        self.rest = rest;
        let is_optional = u16::from_le_bytes([f0, f1]) & OPTIONAL != 0;
        Some(Field { number: u16::from_le_bytes([n0, n1]), is_optional, bytes })
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>>;

    fn next(&mut self) -> Option<Result<Field<'a>>> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.take();
        if field.is_none() {
            self.rest = &[];
        }
        Some(field.ok_or_else(|| Error::corrupt("a message that ends within a field")))
    }
}

impl<'a> Field<'a> {
    /// Its bytes as a number.
    ///
    /// # Errors
    ///
    /// `Corrupt` if they are not eight.
    pub fn u64(&self) -> Result<u64> {
        let bytes = self.bytes.try_into();
        bytes.map(u64::from_le_bytes).map_err(|_| {
            Error::corrupt(format!("field {} has {} bytes, not eight", self.number, self.bytes.len()))
        })
    }

    /// Its bytes as text.
    ///
    /// # Errors
    ///
    /// `Corrupt` if they are not UTF-8.
    pub fn text(&self) -> Result<&'a str> {
        core::str::from_utf8(self.bytes)
            .map_err(|_| Error::corrupt(format!("field {} is not UTF-8", self.number)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_is_an_error_once() {
        let mut frame = Frame::new(*b"TST1");
        frame.push(3, b"abc").push_optional(4, b"");
        let bytes = frame.into_bytes();
        let read = |bytes: &[u8]| Fields::of(bytes, *b"TST1").map(|fields| fields.collect::<Vec<_>>().len());
        assert_eq!(read(&bytes), Ok(2));
        for end in 0..bytes.len() {
            let cut = &bytes[..end];
            match Fields::of(cut, *b"TST1") {
                Err(_) => assert!(end < 4),
                Ok(fields) => {
                    let all: Vec<_> = fields.collect();
                    let is_whole = end == 4 || end == 4 + HEAD_BYTES + 3;
                    assert_eq!(all.iter().all(Result::is_ok), is_whole, "{end}");
                    assert!(all.iter().filter(|field| field.is_err()).count() <= 1);
                }
            }
        }
        let mut fields = Fields::of(&bytes, *b"TST1").unwrap();
        fields.next();
        assert_eq!(bytes[..bytes.len() - fields.left()].last_chunk::<3>(), Some(b"abc"));
        let fields: Vec<_> = Fields::of(&bytes, *b"TST1").unwrap().map(Result::unwrap).collect();
        assert_eq!((fields[0].is_optional, fields[1].is_optional), (false, true));
        assert!(fields[0].u64().is_err());
    }
}
