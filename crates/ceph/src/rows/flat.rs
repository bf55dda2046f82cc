//! FlatBuffers, read where they are: every offset is checked when it is followed, so bytes need not be verified before.
//!
//! Source: FlatBuffers' `internals.md`. Little-endian. A table begins with the distance back to its vtable (i32), which has its own length, the
//! table's, and the distance of each field from the table's start, or 0 (u16 each). Vectors and strings are behind an offset (u32), and begin
//! with their length (u32).

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Error, Result};

/// A table in a buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table<'a> {
    buffer: &'a [u8],
    at: usize,
    /// Where its vtable is, and the fields that this has.
    vtable: usize,
    fields: usize,
}

/// A vector in a buffer: where its elements begin, and how many there are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Vector<'a> {
    buffer: &'a [u8],
    at: usize,
    pub(super) length: usize,
}

#[cold]
pub(super) fn wrong() -> Error {
    Error::corrupt("a FlatBuffer that refers to what it does not have")
}

/// `N` bytes at a place.
#[inline]
fn bytes<const N: usize>(buffer: &[u8], at: usize) -> Result<[u8; N]> {
    let bytes = buffer.get(at..).and_then(|rest| rest.first_chunk::<N>());
    bytes.copied().ok_or_else(wrong)
}

#[inline]
fn number(buffer: &[u8], at: usize) -> Result<u32> {
    bytes(buffer, at).map(u32::from_le_bytes)
}

/// Where the offset at a place leads.
#[inline]
fn follow(buffer: &[u8], at: usize) -> Result<usize> {
    at.checked_add(usize_of_u32(number(buffer, at)?)).ok_or_else(wrong)
}

impl<'a> Table<'a> {
    /// The root of a buffer.
    pub(super) fn root(buffer: &'a [u8]) -> Result<Table<'a>> {
        Table::at(buffer, follow(buffer, 0)?)
    }

    #[inline]
    fn at(buffer: &'a [u8], at: usize) -> Result<Table<'a>> {
        let back = i64::from(i32::from_le_bytes(bytes(buffer, at)?));
        let vtable =
            i64::try_from(at).ok().and_then(|at| usize::try_from(at - back).ok()).ok_or_else(wrong)?;
        let length = usize::from(u16::from_le_bytes(bytes(buffer, vtable)?));
        Ok(Table { buffer, at, vtable, fields: (length / 2).saturating_sub(2) })
    }

    /// Where a field is; `None` if it is not there, so that it has its default.
    #[inline]
    fn field(&self, number: usize) -> Result<Option<usize>> {
        if number >= self.fields {
            return Ok(None);
        }
        let distance = u16::from_le_bytes(bytes(self.buffer, self.vtable + 4 + 2 * number)?);
        Ok((distance > 0).then(|| self.at + usize::from(distance)))
    }

    pub(super) fn i32(&self, field: usize) -> Result<i32> {
        let at = self.field(field)?;
        at.map_or(Ok(0), |at| bytes(self.buffer, at).map(i32::from_le_bytes))
    }

    pub(super) fn u32(&self, field: usize) -> Result<u32> {
        let at = self.field(field)?;
        at.map_or(Ok(0), |at| bytes(self.buffer, at).map(u32::from_le_bytes))
    }

    pub(super) fn bool(&self, field: usize) -> Result<bool> {
        let at = self.field(field)?;
        at.map_or(Ok(false), |at| bytes(self.buffer, at).map(|[byte]: [u8; 1]| byte != 0))
    }

    /// A vector of elements of so many bytes; an empty one if it is not there.
    #[inline]
    pub(super) fn vector(&self, field: usize, element_bytes: usize) -> Result<Vector<'a>> {
        let Some(at) = self.field(field)? else {
            return Ok(Vector { buffer: self.buffer, at: 0, length: 0 });
        };
        let start = follow(self.buffer, at)?;
        let length = usize_of_u32(number(self.buffer, start)?);
        let at = start.checked_add(4).ok_or_else(wrong)?;
        let end = length.checked_mul(element_bytes).and_then(|bytes| at.checked_add(bytes));
        if end.is_none_or(|end| end > self.buffer.len()) {
            return Err(wrong());
        }
        Ok(Vector { buffer: self.buffer, at, length })
    }

    /// A vector of bytes.
    #[inline]
    pub(super) fn bytes(&self, field: usize) -> Result<&'a [u8]> {
        let vector = self.vector(field, 1)?;
        Ok(&self.buffer[vector.at..vector.at + vector.length])
    }

    pub(super) fn text(&self, field: usize) -> Result<&'a str> {
        core::str::from_utf8(self.bytes(field)?).map_err(|_| Error::corrupt("a text that is not UTF-8"))
    }
}

impl<'a> Vector<'a> {
    /// A table of a vector of them.
    #[inline]
    pub(super) fn table(&self, index: usize) -> Result<Table<'a>> {
        if index >= self.length {
            return Err(wrong());
        }
        Table::at(self.buffer, follow(self.buffer, self.at + 4 * index)?)
    }

    /// A number of a vector of them; 0 after its end.
    #[inline]
    pub(super) fn u64(&self, index: usize) -> Result<u64> {
        if index >= self.length {
            return Ok(0);
        }
        bytes(self.buffer, self.at + 8 * index).map(u64::from_le_bytes)
    }
}
