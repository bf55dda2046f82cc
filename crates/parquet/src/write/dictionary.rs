//! Dictionaries: they hold each value once, and columns hold indices.

mod numbers;
mod strings;
mod table;
mod work;

use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::{Budget, Bytes, Error, Price, RELEASE_PRICE, Result};
use marquetry_kernels::plain::{as_bytes, cast as cast_slice};

use super::encoder::{Body, Slice};
use crate::batch::{ByteArrays, FixedBytes, Values};
use crate::encoding::other_type;
use crate::encoding::output::Output;
use crate::growing::{COPY_PRICE, ROOM_PRICE};
use crate::schema::PhysicalType;
use numbers::{Number, Numbers};
use strings::Strings;
pub use work::DictionaryLimits;
use work::{AT_ONCE, Work};

/// The price of a value that is found in its first slot; for strings, per byte as well.
const NUMBER_PRICE: Price = Price::per_kilovalue(5 << 10);
const STRING_PRICE: Price = Price { kib: 200, kilovalue: 16 << 10 };
/// The price of each further slot that is probed, of a new entry, and of an entry that is moved as the table grows.
const PROBE_PRICE: Price = Price::per_kilovalue(6 << 10);
const NEW_PRICE: Price = Price::per_kilovalue(35 << 10);
const MOVED_PRICE: Price = Price::per_kilovalue(12 << 10);
/// The additional price of a value in a dictionary that is too large for caches.
const FAR_PRICE: Price = Price::per_kilovalue(20 << 10);
const FAR_ENTRIES: usize = 1 << 17;

/// Bytes of an array of entries, which is allocated at once: enough for a page of 20,000 rows.
const ARRAY_BYTES_MAX: usize = 320 << 10;

/// Builds the dictionary of a column chunk.
///
/// Entries are numbered in order of arrival. Each call does a bounded amount of work: the hash table grows one part at
/// a time. Therefore some values become a new entry each time they occur: those longer than 64 KiB, which are
/// stored in slices, new ones beyond 1,048,576 entries, and those whose hash nearly equals hundreds of others, or of which as many
/// as have 128 KiB begin alike, too, as if crafted. The dictionary's size then
/// soon shows that it does not pay.
#[derive(Debug)]
pub struct DictionaryBuilder {
    kind: Kind,
    physical: PhysicalType,
    limits: DictionaryLimits,
    /// The page, while it is being written, and how many pieces of entries are in it.
    page: Option<(Output, usize)>,
    /// The page is written: the rest is released.
    is_written: bool,
}

/// What [`DictionaryBuilder::intern`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interned {
    /// The number of values that got an index.
    pub values: usize,
    /// The next value is new and exceeds the limits. Values already in the dictionary are still found.
    pub full: bool,
}

#[derive(Debug)]
enum Kind {
    Fours(Numbers<u32>),
    Eights(Numbers<u64>),
    /// Strings of one length; or of any length, each preceded by its length.
    Fixed(usize, Strings),
    Strings(Strings),
    /// Booleans, which have no dictionary.
    None,
}

impl DictionaryBuilder {
    /// An empty dictionary of values of a type; BOOLEAN has no dictionaries.
    pub fn new(physical: PhysicalType, limits: DictionaryLimits) -> DictionaryBuilder {
        let kind = match physical {
            PhysicalType::Int32 | PhysicalType::Float => Kind::Fours(Numbers::default()),
            PhysicalType::Int64 | PhysicalType::Double => Kind::Eights(Numbers::default()),
            PhysicalType::ByteArray => Kind::Strings(Strings::new(true)),
            PhysicalType::Int96 | PhysicalType::FixedLenByteArray(_) => {
                Kind::Fixed(physical.width().unwrap_or(0), Strings::new(false))
            }
            PhysicalType::Boolean => Kind::None,
        };
        DictionaryBuilder { kind, physical, limits, page: None, is_written: false }
    }

    /// Appends the indices of values to `indices`, and adds new values to the dictionary; floats are equal if their
    /// bits are. Stops when the budget is spent, but never without progress, or when the dictionary is full. It may have
    /// stored only part of a long value, and then expects that value again, first.
    ///
    /// # Errors
    ///
    /// `Misuse` for values of another type; an error if memory cannot be allocated.
    pub fn intern(
        &mut self,
        values: Slice<'_>,
        indices: &mut Vec<u32>,
        budget: &mut Budget<'_>,
    ) -> Result<Interned> {
        let mut done = 0;
        while done < values.len() {
            let rest = values.part(done..values.len());
            let (mut out, mut work) = ([0; AT_ONCE], Work::default());
            let now = self.intern_some(rest, &mut out, &mut work)?;
            let far = if self.len() > FAR_ENTRIES { now } else { 0 };
            budget.charge_units(work.units(self.is_numbers(), now, far));
            indices.try_reserve(now).map_err(|_| Error::out_of_memory(now * 4))?;
            indices.extend_from_slice(&out[..now]);
            done += now;
            if work.full {
                return Ok(Interned { values: done, full: true });
            }
            if budget.is_spent() {
                break;
            }
        }
        Ok(Interned { values: done, full: false })
    }

    /// Entries.
    pub fn len(&self) -> usize {
        match &self.kind {
            Kind::Fours(numbers) => numbers.len(),
            Kind::Eights(numbers) => numbers.len(),
            Kind::Strings(strings) | Kind::Fixed(_, strings) => strings.len(),
            Kind::None => 0,
        }
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether some entries may equal each other: see [`DictionaryBuilder`].
    pub(super) fn may_repeat(&self) -> bool {
        match &self.kind {
            Kind::Fours(numbers) => numbers.may_repeat(),
            Kind::Eights(numbers) => numbers.may_repeat(),
            Kind::Strings(strings) | Kind::Fixed(_, strings) => strings.may_repeat(),
            Kind::None => false,
        }
    }

    /// The bytes of its page.
    pub fn bytes(&self) -> usize {
        match &self.kind {
            Kind::Fours(numbers) => numbers.len() * 4,
            Kind::Eights(numbers) => numbers.len() * 8,
            Kind::Strings(strings) | Kind::Fixed(_, strings) => strings.bytes(),
            Kind::None => 0,
        }
    }

    /// Bytes of its entries when they are read: strings are views and their bytes.
    pub(super) fn decoded_bytes(&self) -> usize {
        match &self.kind {
            Kind::Strings(strings) => strings.bytes() + strings.len() * size_of::<u128>(),
            _ => self.bytes(),
        }
    }

    /// Bytes of memory that it takes, approximately.
    pub fn held(&self) -> usize {
        match &self.kind {
            Kind::Fours(numbers) => numbers.held(),
            Kind::Eights(numbers) => numbers.held(),
            Kind::Strings(strings) | Kind::Fixed(_, strings) => strings.held(),
            Kind::None => 0,
        }
    }

    /// Returns the body of the dictionary's page and empties the dictionary for the next chunk. `None` if the budget
    /// is spent; call again.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated.
    pub fn finish(&mut self, budget: &mut Budget<'_>) -> Result<Option<Body>> {
        let page = self.page.get_or_insert_default();
        if !self.is_written {
            self.is_written = match &self.kind {
                Kind::Fours(numbers) => write(numbers, page, budget)?,
                Kind::Eights(numbers) => write(numbers, page, budget)?,
                // They are the page's pieces already.
                Kind::Strings(strings) | Kind::Fixed(_, strings) => strings.ended().map(|()| true)?,
                Kind::None => true,
            };
        }
        if !self.is_written {
            return Ok(None);
        }
        loop {
            let released = match &mut self.kind {
                Kind::Fours(numbers) => numbers.pop(),
                Kind::Eights(numbers) => numbers.pop(),
                Kind::Strings(strings) | Kind::Fixed(_, strings) => strings.pop(),
                Kind::None => None,
            };
            let Some(bytes) = released else { return self.take_page().map(Some) };
            budget.charge(RELEASE_PRICE, bytes, 1);
            if budget.is_spent() {
                return Ok(None);
            }
        }
    }

    /// The page, once it is written and all else is released.
    fn take_page(&mut self) -> Result<Body> {
        self.is_written = false;
        let (mut page, _) = self.page.take().unwrap_or_default();
        let empty = DictionaryBuilder::new(self.physical, self.limits).kind;
        match core::mem::replace(&mut self.kind, empty) {
            Kind::Strings(strings) | Kind::Fixed(_, strings) => {
                let mut body = Body::default();
                strings.into_pieces().into_iter().for_each(|piece| body.push(piece.into()));
                Ok(body)
            }
            Kind::Fours(_) | Kind::Eights(_) | Kind::None => page.finish(&[]),
        }
    }

    /// Whether its entries can be returned as [values](DictionaryBuilder::into_values).
    pub(super) fn has_values(&self) -> bool {
        let is_there = match &self.kind {
            Kind::Strings(strings) => strings.has_views(),
            Kind::None => false,
            _ => true,
        };
        is_there && self.array_bytes() <= ARRAY_BYTES_MAX
    }

    /// The entries as values, from a dictionary that is given up.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated.
    pub(super) fn into_values(self, budget: &mut Budget<'_>) -> Result<Values> {
        budget.charge(COPY_PRICE, self.array_bytes(), 0);
        let physical = self.physical;
        Ok(match (self.kind, physical) {
            (Kind::Fours(numbers), PhysicalType::Int32) => {
                Values::Int32(array(&numbers, u32::cast_signed)?.into())
            }
            (Kind::Fours(numbers), _) => Values::Float(array(&numbers, f32::from_bits)?.into()),
            (Kind::Eights(numbers), PhysicalType::Int64) => {
                Values::Int64(array(&numbers, u64::cast_signed)?.into())
            }
            (Kind::Eights(numbers), _) => Values::Double(array(&numbers, f64::from_bits)?.into()),
            (Kind::Fixed(width, strings), _) => {
                let values = strings.len();
                let bytes = strings.into_pieces().concat();
                Values::FixedLenByteArray(FixedBytes::new(width, values, bytes.into()))
            }
            (Kind::Strings(strings), _) => {
                let (views, pieces) = strings.into_entries();
                let buffers: Vec<Bytes> = pieces.into_iter().map(Bytes::from).collect();
                Values::ByteArray(ByteArrays::new(views.into(), Arc::new(buffers)))
            }
            (Kind::None, _) => return Err(other_type()),
        })
    }

    /// Bytes of an array of its entries.
    fn array_bytes(&self) -> usize {
        match &self.kind {
            Kind::Strings(strings) => strings.len() * size_of::<u128>(),
            _ => self.bytes(),
        }
    }

    fn is_numbers(&self) -> bool {
        matches!(self.kind, Kind::Fours(_) | Kind::Eights(_))
    }

    /// Interns up to [`AT_ONCE`] values and returns how many.
    fn intern_some(&mut self, values: Slice<'_>, out: &mut [u32; AT_ONCE], work: &mut Work) -> Result<usize> {
        let limits = self.limits;
        let of_width = |width: usize| limits.entries.min(limits.bytes / width);
        match (&mut self.kind, values) {
            (Kind::Fours(numbers), Slice::Int32(values)) => {
                numbers.intern(cast_slice(values), of_width(4), out, work)
            }
            (Kind::Fours(numbers), Slice::Float(values)) => {
                numbers.intern(cast_slice(values), of_width(4), out, work)
            }
            (Kind::Eights(numbers), Slice::Int64(values)) => {
                numbers.intern(cast_slice(values), of_width(8), out, work)
            }
            (Kind::Eights(numbers), Slice::Double(values)) => {
                numbers.intern(cast_slice(values), of_width(8), out, work)
            }
            (Kind::Strings(strings), Slice::ByteArray(views, buffers)) => {
                strings.intern_views(views, buffers, limits, out, work)
            }
            (Kind::Fixed(expected, strings), Slice::Fixed { width, values, bytes }) if width == *expected => {
                strings.intern_fixed(width, values, bytes, limits, out, work)
            }
            _ => Err(other_type()),
        }
    }
}

/// The entries as they are in an array.
fn array<T: Number, U>(numbers: &Numbers<T>, turn: impl Fn(T) -> U) -> Result<Vec<U>> {
    let mut array = Vec::new();
    let bytes = numbers.len() * size_of::<U>();
    array.try_reserve_exact(numbers.len()).map_err(|_| Error::out_of_memory(bytes))?;
    array.extend(numbers.segments().iter().flatten().map(|&number| turn(number)));
    Ok(array)
}

/// Writes entries to a page; true once all are written.
fn write<T: Number>(
    numbers: &Numbers<T>,
    (page, done): &mut (Output, usize),
    budget: &mut Budget<'_>,
) -> Result<bool> {
    let segments = numbers.segments();
    while let Some(segment) = segments.get(*done) {
        budget.charge(COPY_PRICE, size_of_val(&**segment), 0);
        page.put(as_bytes(segment))?;
        *done += 1;
        if budget.is_spent() {
            return Ok(*done == segments.len());
        }
    }
    Ok(true)
}

impl Work {
    fn units(&self, numbers: bool, values: usize, far: usize) -> u64 {
        let value = if numbers { NUMBER_PRICE } else { STRING_PRICE };
        let rest =
            [(PROBE_PRICE, self.probes), (NEW_PRICE, self.new), (MOVED_PRICE, self.moved), (FAR_PRICE, far)];
        let rest: u64 =
            rest.into_iter().filter(|(_, count)| *count > 0).map(|(price, count)| price.of(0, count)).sum();
        let stored = if self.stored > 0 { ROOM_PRICE.of(self.stored, 0) } else { 0 };
        value.of(self.bytes, values) + rest + stored
    }
}

#[cfg(test)]
mod tests;
