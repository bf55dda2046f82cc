//! A variant's dictionary of field names.
//!
//! Source: `VariantEncoding.md`, "Metadata encoding".

use alloc::format;
use core::cmp::Ordering;

use marquetry_base::{Error, Result};

use super::{number, utf16_order};

/// The names of a variant's fields, by number.
#[derive(Debug, Clone, Copy)]
pub struct Metadata<'a> {
    // Three words, because it is copied with every value: lengths of a BYTE_ARRAY are below 2^32, and the rest of the
    // header is read again.
    bytes: &'a [u8],
    /// Where the names start; the offsets end there.
    names: u32,
    len: u32,
}

/// The only version.
const VERSION: u8 = 1;

impl Metadata<'static> {
    /// Metadata of no names.
    pub const EMPTY: Metadata<'static> = Metadata { bytes: &[VERSION, 0, 0], names: 3, len: 0 };
}

impl<'a> Metadata<'a> {
    /// The metadata that `bytes` begin with. What follows is ignored.
    ///
    /// # Errors
    ///
    /// `Corrupt` if the bytes end too early, or the offsets do not begin with 0 or descend; `Unsupported` for a version other
    /// than 1.
    pub fn new(bytes: &'a [u8]) -> Result<Metadata<'a>> {
        let &header = bytes.first().ok_or_else(|| Error::corrupt("a variant's metadata of no bytes"))?;
        if header & 0x0f != VERSION {
            return Err(Error::unsupported(format!("a variant's metadata of version {}", header & 0x0f)));
        }
        let offset_bytes = usize::from(header >> 6) + 1;
        let len = number(&bytes[1..], 0, offset_bytes).ok_or_else(cut_off)?;
        let start = 1 + offset_bytes;
        let names = len
            .checked_add(1)
            .and_then(|offsets| offsets.checked_mul(offset_bytes))
            .and_then(|offsets| start.checked_add(offsets))
            .filter(|&names| names <= bytes.len())
            .ok_or_else(cut_off)?;
        let offsets = &bytes[start..names];
        if number(offsets, 0, offset_bytes) != Some(0) {
            return Err(Error::corrupt("a variant's first field name does not begin at 0"));
        }
        // Names that overlap could be longer, in total, than the metadata.
        let mut before = Some(0);
        for id in 1..=len {
            let offset = number(offsets, id, offset_bytes);
            if offset < before {
                return Err(Error::corrupt("the field names of a variant are not in their order"));
            }
            before = offset;
        }
        let end = before
            .and_then(|end| names.checked_add(end))
            .filter(|&end| end <= bytes.len())
            .ok_or_else(cut_off)?;
        let (Ok(names), Ok(len)) = (u32::try_from(names), u32::try_from(len)) else {
            return Err(Error::corrupt("a variant's metadata of 4 GiB and more"));
        };
        Ok(Metadata { bytes: &bytes[..end], names, len })
    }

    /// Names.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// True if there is no name.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The encoded metadata: what follows it begins after this many bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// True if the writer declared the names to be sorted and unique.
    pub fn is_sorted(&self) -> bool {
        self.header() & 0x10 != 0
    }

    /// Name number `id`.
    ///
    /// # Errors
    ///
    /// `Corrupt` if there is no such name, or it is not UTF-8.
    pub fn name(&self, id: usize) -> Result<&'a str> {
        let name = self.name_bytes(id).ok_or_else(|| {
            Error::corrupt(format!("a variant's field has name {id} of {}, which is not there", self.len))
        })?;
        core::str::from_utf8(name).map_err(|_| Error::corrupt("a variant's field name is not UTF-8"))
    }

    /// The number of a name. If several are equal, any of them. If the names are declared to be sorted, it is searched
    /// for; but some writers declare it falsely, so all names are looked at before it is missing.
    pub fn find(&self, name: &str) -> Option<usize> {
        let name = name.as_bytes();
        let name_at = |id| self.name_bytes(id);
        let found = if self.is_sorted() { find_sorted(self.len(), name_at, name) } else { None };
        found.or_else(|| find_unsorted(self.len(), name_at, name))
    }

    /// Name number `id`, not checked to be UTF-8.
    pub(super) fn name_bytes(&self, id: usize) -> Option<&'a [u8]> {
        if id >= self.len() {
            return None;
        }
        let width = usize::from(self.header() >> 6) + 1;
        let (offsets, names) = self.bytes.split_at_checked(self.names as usize)?;
        let offsets = offsets.get(1 + width..)?;
        names.get(number(offsets, id, width)?..number(offsets, id + 1, width)?)
    }

    fn header(&self) -> u8 {
        self.bytes.first().copied().unwrap_or(VERSION)
    }
}

/// Finds a name among sorted ones: first by the format's order, then by the order that some writers use.
pub(super) fn find_sorted<'a>(
    len: usize,
    name_at: impl Fn(usize) -> Option<&'a [u8]>,
    name: &[u8],
) -> Option<usize> {
    [|left: &[u8], right: &[u8]| left.cmp(right), utf16_order].into_iter().find_map(|order| {
        let (mut low, mut high) = (0, len);
        while low < high {
            let middle = low + (high - low) / 2;
            match order(name_at(middle)?, name) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Some(middle),
                Ordering::Greater => high = middle,
            }
        }
        None
    })
}

/// Finds a name among any.
pub(super) fn find_unsorted<'a>(
    len: usize,
    name_at: impl Fn(usize) -> Option<&'a [u8]>,
    name: &[u8],
) -> Option<usize> {
    (0..len).find(|&id| name_at(id) == Some(name))
}

fn cut_off() -> Error {
    Error::corrupt("a variant's metadata ends too early")
}
