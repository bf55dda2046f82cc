//! Values of an answer as cells.

use marquetry_base::{Error, Result};

use super::times::Timed;
use crate::sstable::batch::{Cells, number_of};
use crate::sstable::marshal::MarshalType;
use crate::sstable::{counter, push_empty, push_value};

/// Where the times of elements of lists begin: 1970, in units of 100 ns since 1582-10-15, as UUIDs have them.
const LIST_TICKS: u64 = 0x01b2_1dd2_1381_4000;

/// A length that means null.
const NULL: i32 = -1;

/// The value of a column in a row, taken apart into cells of an entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct Value<'a> {
    pub(super) entry: u32,
    pub(super) kind: &'a MarshalType,
    pub(super) bytes: &'a [u8],
    /// What is selected with it.
    pub(super) write_time: Option<&'a [u8]>,
    pub(super) ttl: Option<&'a [u8]>,
    pub(super) has_times: bool,
}

impl Value<'_> {
    /// Adds its cells to a column's, and calls `timed` for each: its number, and what times it has.
    ///
    /// # Errors
    ///
    /// `Corrupt` for what is no value of its type.
    pub(super) fn add_to(self, cells: &mut Cells, timed: &mut dyn FnMut(u32, Timed)) -> Result<()> {
        match self.kind {
            MarshalType::List(_) | MarshalType::Set(_) | MarshalType::Map(..) => {
                self.add_elements(cells, timed)
            }
            MarshalType::User { fields, .. } => self.add_fields(fields.len(), cells, timed),
            kind if kind.is_counter() => {
                let count = self.bytes.try_into().map_err(|_| other_length())?;
                let value = counter::of_total(i64::from_be_bytes(count));
                self.add_simple(&value, cells, timed)
            }
            _ => self.add_simple(self.bytes, cells, timed),
        }
    }

    fn add_simple(self, value: &[u8], cells: &mut Cells, timed: &mut dyn FnMut(u32, Timed)) -> Result<()> {
        let number = begin(cells, self.entry);
        push(cells, number, self.kind, value)?;
        let time = self.write_time.map(number_of_8).transpose()?;
        let ttl = self.ttl.map(number_of_4).transpose()?;
        timed(number, Timed { is_known: self.has_times, write_time: time, ttl });
        Ok(())
    }

    fn add_elements(self, cells: &mut Cells, timed: &mut dyn FnMut(u32, Timed)) -> Result<()> {
        let mut elements = Sequence::new(self.bytes)?;
        let count = elements.left;
        let mut times = self.times(count, count)?;
        for at in 0..count {
            let number = begin(cells, self.entry);
            let first = elements.next()?.ok_or_else(null_element)?;
            match self.kind {
                MarshalType::Map(..) => {
                    cells.paths.push(first);
                    let value = elements.value()?.ok_or_else(null_element)?;
                    push_value(&mut cells.values, value);
                }
                MarshalType::List(_) => {
                    cells.paths.push(&list_path(at));
                    push_value(&mut cells.values, first);
                }
                _ => {
                    cells.paths.push(first);
                    push_value(&mut cells.values, &[]);
                }
            }
            timed(number, times.next(at, at)?);
        }
        elements.expect_end()
    }

    fn add_fields(self, fields: usize, cells: &mut Cells, timed: &mut dyn FnMut(u32, Timed)) -> Result<()> {
        let mut rest = Rest(self.bytes);
        let mut set = 0;
        let mut counting = Rest(self.bytes);
        for _ in 0..fields {
            if counting.0.is_empty() {
                break;
            }
            set += usize::from(counting.value()?.is_some());
        }
        let mut times = self.times(set, fields)?;
        let mut cell = 0;
        for field in 0..fields {
            // Fields that were added since the value was written are missing.
            if rest.0.is_empty() {
                break;
            }
            let Some(value) = rest.value()? else { continue };
            let number = begin(cells, self.entry);
            let path =
                u16::try_from(field).map_err(|_| Error::corrupt("a user-defined type of too many fields"))?;
            cells.paths.push(&path.to_be_bytes());
            push_value(&mut cells.values, value);
            timed(number, times.next(cell, field)?);
            cell += 1;
        }
        match rest.0.is_empty() {
            true => Ok(()),
            false => Err(Error::corrupt(
                "a value of a user-defined type with more fields than the type had when the table was opened",
            )),
        }
    }

    /// The times of its cells: of each, or of each field of its type.
    fn times(&self, cells: usize, fields: usize) -> Result<ElementTimes<'_>> {
        let write_times = self.write_time.map(Sequence::new).transpose()?;
        let by_field = match &write_times {
            Some(times) if times.left == cells => false,
            Some(times) if times.left == fields => true,
            None => false,
            Some(_) => return Err(Error::corrupt("write times of other elements than there are")),
        };
        let ttls = self.ttl.map(Sequence::new).transpose()?;
        Ok(ElementTimes { is_known: self.has_times, by_field, at: 0, write_times, ttls })
    }
}

/// The times of the elements of one value.
struct ElementTimes<'a> {
    is_known: bool,
    by_field: bool,
    /// The number of the next one.
    at: usize,
    write_times: Option<Sequence<'a>>,
    ttls: Option<Sequence<'a>>,
}

impl<'a> ElementTimes<'a> {
    /// Of a cell that comes after all before: its number among those there are, and the field it is of.
    fn next(&mut self, cell: usize, field: usize) -> Result<Timed> {
        let wanted = if self.by_field { field } else { cell };
        let mut found = (None, None);
        while self.at <= wanted {
            let next = |list: &mut Option<Sequence<'a>>| list.as_mut().map_or(Ok(None), Sequence::next);
            found = (next(&mut self.write_times)?, next(&mut self.ttls)?);
            self.at += 1;
        }
        let write_time = found.0.map(number_of_8).transpose()?;
        let ttl = found.1.map(number_of_4).transpose()?;
        Ok(Timed { is_known: self.is_known, write_time, ttl })
    }
}

/// The path of an element of a list: a UUID of a time, which grows from one element to the next.
fn list_path(at: usize) -> [u8; 16] {
    let ticks = LIST_TICKS.wrapping_add(marquetry_base::cast::u64_of(at));
    let bytes = ticks.to_be_bytes();
    let mut path = [0; 16];
    let [high0, high1, mid0, mid1, low0, low1, low2, low3] = bytes;
    // Version 1: the low half first; the variant is in the first bits of the ninth byte.
    path[..9].copy_from_slice(&[low0, low1, low2, low3, mid0, mid1, 0x10 | (high0 & 0xf), high1, 0x80]);
    path
}

/// Begins a cell.
fn begin(cells: &mut Cells, entry: u32) -> u32 {
    let number = number_of(cells.entries.len());
    cells.entries.push(entry);
    number
}

/// Adds a value whose type may fix its length.
fn push(cells: &mut Cells, number: u32, kind: &MarshalType, value: &[u8]) -> Result<()> {
    match kind.fixed_bytes() {
        Some(_) if value.is_empty() => push_empty(cells, number, true),
        Some(fixed) if u32::try_from(value.len()) != Ok(fixed) => return Err(other_length()),
        _ => push_value(&mut cells.values, value),
    }
    Ok(())
}

pub(super) fn other_length() -> Error {
    Error::corrupt("a value of another length than its type's")
}

fn null_element() -> Error {
    Error::corrupt("a null in a collection that is not frozen")
}

fn number_of_8(bytes: &[u8]) -> Result<i64> {
    bytes.try_into().map(i64::from_be_bytes).map_err(|_| Error::corrupt("a write time that is no bigint"))
}

fn number_of_4(bytes: &[u8]) -> Result<u32> {
    let ttl = bytes.try_into().map(i32::from_be_bytes).ok().and_then(|ttl| u32::try_from(ttl).ok());
    ttl.ok_or_else(|| Error::corrupt("a time to live that is no int, or negative"))
}

/// Values of the protocol, each after its length.
#[derive(Debug, Clone, Copy)]
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    /// The next value; `None` for a null.
    fn value(&mut self) -> Result<Option<&'a [u8]>> {
        let cut = || Error::corrupt("a value that ends too early");
        let (length, rest) = self.0.split_first_chunk::<4>().ok_or_else(cut)?;
        let length = i32::from_be_bytes(*length);
        self.0 = rest;
        if length == NULL {
            return Ok(None);
        }
        let length = usize::try_from(length).map_err(|_| Error::corrupt("a value of negative length"))?;
        let (value, rest) = rest.split_at_checked(length).ok_or_else(cut)?;
        self.0 = rest;
        Ok(Some(value))
    }
}

/// The elements of a list or set, or the entries of a map, after their number.
#[derive(Debug, Clone, Copy)]
struct Sequence<'a> {
    rest: Rest<'a>,
    left: usize,
}

impl<'a> Sequence<'a> {
    fn new(bytes: &'a [u8]) -> Result<Sequence<'a>> {
        let bad = || Error::corrupt("a collection without the number of its elements");
        let (count, rest) = bytes.split_first_chunk::<4>().ok_or_else(bad)?;
        let left = usize::try_from(i32::from_be_bytes(*count)).map_err(|_| bad())?;
        // Each has a length at least, so no more are believed than there can be.
        if left > rest.len() / 4 {
            return Err(Error::corrupt("a collection with fewer elements than it says"));
        }
        Ok(Sequence { rest: Rest(rest), left })
    }

    /// The next element, or key.
    fn next(&mut self) -> Result<Option<&'a [u8]>> {
        self.left = self.left.saturating_sub(1);
        self.rest.value()
    }

    /// The value after a key.
    fn value(&mut self) -> Result<Option<&'a [u8]>> {
        self.rest.value()
    }

    fn expect_end(&self) -> Result<()> {
        match self.rest.0.is_empty() {
            true => Ok(()),
            false => Err(Error::corrupt("a collection with more elements than it says")),
        }
    }
}
