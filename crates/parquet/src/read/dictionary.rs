//! Dictionaries: decoded slice by slice, kept in segments, looked up.

use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Budget, Bytes, Detail, Error, Limit, Limits, Price, Release, Result, release_all};
use marquetry_kernels::{Plain, plain, strings, utf8};

use crate::batch::store::{ARRAY_BYTES_MAX, value_bytes};
use crate::batch::{ByteArrays, FixedBytes, Values};
use crate::encoding::plain::{Accept, check_plain_text, string_error};
use crate::encoding::{not_text, too_few_values};
use crate::format::Encoding;
use crate::growing::{COPY_PRICE, ROOM_PRICE};
use crate::memory::Memory;
use crate::prune::{Matcher, SLICE_VALUES, SliceBits};
use crate::schema::PhysicalType;

/// Bytes of a segment, at most. Half of what an array may have, since a segment has a power of two of entries.
const SEGMENT_BYTES_MAX: usize = 512 << 10;
/// Bytes of the page that are decoded at a time; one string may be more.
const SLICE_BYTES_MAX: usize = 32 << 10;
/// Entries that are decoded at a time.
const SLICE_ENTRIES_MAX: usize = 1024;
/// Entries of a dictionary that is handed out, at most: whatever its values are, and are made to be, they take less than 1 MiB.
const KEPT_ENTRIES_MAX: usize = ARRAY_BYTES_MAX / size_of::<u128>();

/// What the work on dictionaries costs.
mod price {
    use super::Price;

    /// Copy a number, in memory that has its own price.
    pub(super) const NUMBERS: Price = Price::per_kib(200);
    /// Read a length, make a view.
    pub(super) const VIEWS: Price = Price::per_kilovalue(10_000);
    /// Check that a string is text.
    pub(super) const TEXT: Price = Price::per_kib(150);
    /// Unpack an index and look it up in segments, which are in no cache. Bytes are paid beside it.
    pub(super) const SEGMENTED: Price = Price { kib: 100, kilovalue: 20_000 };
}

/// A dictionary's entries.
#[derive(Debug)]
pub(crate) enum Entries {
    /// In one array, as those of almost all files are.
    Whole(Arc<Values>),
    /// In segments: an array would have 1 MiB or more.
    Segmented(Box<Segmented>),
}

/// The entries of a large dictionary.
#[derive(Debug)]
pub(crate) struct Segmented {
    pub(super) segments: Segments,
    /// Each segment but the last has `1 << shift` entries; if one entry is more than a segment has, they have parts of
    /// it.
    pub(super) shift: u32,
    pub(super) entries: usize,
    is_int96: bool,
    buffers: Arc<Vec<Bytes>>,
}

/// Arrays of values.
#[derive(Debug)]
pub(crate) enum Segments {
    Int32(Vec<Vec<i32>>),
    Int64(Vec<Vec<i64>>),
    Float(Vec<Vec<f32>>),
    Double(Vec<Vec<f64>>),
    /// Of byte strings of one width.
    Fixed(usize, Vec<Vec<u8>>),
    /// Of views.
    ByteArray(Vec<Vec<u128>>),
}

/// The same for each kind of segments.
macro_rules! each {
    ($segments:expr, $each:ident => $do:expr) => {
        match $segments {
            Segments::Int32($each) => $do,
            Segments::Int64($each) => $do,
            Segments::Float($each) => $do,
            Segments::Double($each) => $do,
            Segments::Fixed(_, $each) => $do,
            Segments::ByteArray($each) => $do,
        }
    };
}

impl Entries {
    /// Those in one array.
    pub(super) fn whole(&self) -> Option<&Values> {
        match self {
            Entries::Whole(values) => Some(values),
            Entries::Segmented(_) => None,
        }
    }

    /// Those that are handed out where dictionaries are kept. Of a large one most entries are in no batch: its values are looked up.
    pub(super) fn kept(&self) -> Option<&Arc<Values>> {
        match self {
            Entries::Whole(values) if values.len() <= KEPT_ENTRIES_MAX => Some(values),
            _ => None,
        }
    }

    /// The buffers that views point into.
    pub(super) fn buffers(&self) -> Option<&Arc<Vec<Bytes>>> {
        match self {
            Entries::Whole(values) => match &**values {
                Values::ByteArray(values) => Some(values.buffers()),
                _ => None,
            },
            Entries::Segmented(segmented) => Some(&segmented.buffers),
        }
    }

    /// What it costs to look a value up, where that is more than in [`Entries::Whole`].
    pub(super) fn price(&self) -> Option<Price> {
        match self {
            Entries::Whole(_) => None,
            Entries::Segmented(_) => Some(price::SEGMENTED),
        }
    }

    /// Says which of the entries from `start` on are in a set, by a bit for each: how many it looked at. At least one, if there is one;
    /// `None` for entries that are too wide to be looked at in one go, or of which one is too wide to be looked at: no row need have it.
    pub(crate) fn test(
        &self,
        start: usize,
        matcher: &mut Matcher,
        bits: &mut SliceBits,
        budget: &mut Budget<'_>,
    ) -> Result<Option<usize>> {
        let end = self.len().min(start + SLICE_VALUES);
        match self {
            Entries::Whole(values) => unless_wide(matcher.step(values, start..end, bits, budget)),
            Entries::Segmented(segmented) => {
                let Some(part) = segmented.part(start..end) else { return Ok(None) };
                // A copy, which is not kept: of strings, of their views.
                budget.charge(COPY_PRICE, part.len() * segmented.segments.width(), 0);
                unless_wide(matcher.step(&part, 0..part.len(), bits, budget))
            }
        }
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        match self {
            Entries::Whole(values) => values.len(),
            Entries::Segmented(segmented) => segmented.entries,
        }
    }

    /// Bytes of an entry of byte strings of one width, from byte `start` on: at most `most`, and fewer where a segment
    /// ends. `None` for an entry that is not there.
    pub(super) fn part(&self, entry: usize, start: usize, most: usize) -> Option<&[u8]> {
        let (bytes, at) = match self {
            Entries::Whole(values) => match &**values {
                Values::FixedLenByteArray(values) | Values::Int96(values) if entry < values.len() => {
                    (values.get(entry), start)
                }
                _ => return None,
            },
            Entries::Segmented(segmented) => {
                let Segments::Fixed(width, segments) = &segmented.segments else { return None };
                if entry >= segmented.entries {
                    return None;
                }
                let at = entry.checked_mul(*width)?.checked_add(start)?;
                let length = segment_bytes(*width, segmented.shift);
                (&**segments.get(at / length)?, at % length)
            }
        };
        let rest = bytes.get(at..)?;
        Some(&rest[..rest.len().min(most)])
    }

    /// Bytes held.
    pub(super) fn held(&self) -> usize {
        let strings = self.buffers().map_or(0, |buffers| buffers.iter().map(Bytes::len).sum());
        let values = match self {
            Entries::Whole(values) => match &**values {
                Values::ByteArray(values) => size_of_val(&**values.views()),
                Values::FixedLenByteArray(values) | Values::Int96(values) => values.bytes().len(),
                Values::Int32(values) => size_of_val(&**values),
                Values::Float(values) => size_of_val(&**values),
                values => values.len() * size_of::<u64>(),
            },
            Entries::Segmented(segmented) => segmented.segments.held(),
        };
        values + strings
    }
}

impl Segmented {
    /// A copy of some of these entries, from the first on: of those in its segment. `None` if that would be much for one of them.
    fn part(&self, entries: Range<usize>) -> Option<Values> {
        fn copy<T: Clone>(
            segments: &[Vec<T>],
            shift: u32,
            Range { start, end }: &Range<usize>,
        ) -> Option<Vec<T>> {
            let (segment, at) = (segments.get(start >> shift)?, start & ((1 << shift) - 1));
            Some(segment.get(at..segment.len().min(at + (end - start)))?.to_vec())
        }
        let shift = self.shift;
        Some(match &self.segments {
            Segments::Int32(segments) => Values::Int32(copy(segments, shift, &entries)?.into()),
            Segments::Int64(segments) => Values::Int64(copy(segments, shift, &entries)?.into()),
            Segments::Float(segments) => Values::Float(copy(segments, shift, &entries)?.into()),
            Segments::Double(segments) => Values::Double(copy(segments, shift, &entries)?.into()),
            Segments::ByteArray(segments) => {
                let views = copy(segments, shift, &entries)?;
                Values::ByteArray(ByteArrays::new(views.into(), Arc::clone(&self.buffers)))
            }
            Segments::Fixed(width, segments) => {
                if *width > SLICE_BYTES_MAX {
                    return None;
                }
                let (segment, at) =
                    (segments.get(entries.start >> shift)?, entries.start & ((1 << shift) - 1));
                let most = entries.len().min((SLICE_BYTES_MAX / (*width).max(1)).max(1));
                let rest = segment.get(at * width..)?;
                let bytes = &rest[..rest.len().min(most * width)];
                let count = bytes.len().checked_div(*width).unwrap_or(most);
                let values = FixedBytes::new(*width, count, bytes.to_vec().into());
                if self.is_int96 { Values::Int96(values) } else { Values::FixedLenByteArray(values) }
            }
        })
    }
}

impl Release for Entries {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        match self {
            Entries::Whole(values) => values.release(budget),
            Entries::Segmented(segmented) => {
                release_all(&mut [&mut segmented.segments, &mut segmented.buffers], budget)
            }
        }
    }
}

impl Release for Segments {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        each!(self, segments => segments.release(budget))
    }
}

impl Segments {
    fn new(physical_type: PhysicalType) -> Result<Segments> {
        Ok(match physical_type {
            PhysicalType::Boolean => return Err(Error::corrupt("a dictionary of booleans")),
            PhysicalType::Int32 => Segments::Int32(Vec::new()),
            PhysicalType::Int64 => Segments::Int64(Vec::new()),
            PhysicalType::Float => Segments::Float(Vec::new()),
            PhysicalType::Double => Segments::Double(Vec::new()),
            PhysicalType::Int96 => Segments::Fixed(12, Vec::new()),
            PhysicalType::FixedLenByteArray(width) => Segments::Fixed(usize_of_u32(width), Vec::new()),
            PhysicalType::ByteArray => Segments::ByteArray(Vec::new()),
        })
    }

    /// Bytes of an entry in a segment.
    fn width(&self) -> usize {
        match self {
            Segments::Int32(_) | Segments::Float(_) => 4,
            Segments::Int64(_) | Segments::Double(_) => 8,
            Segments::Fixed(width, _) => *width,
            Segments::ByteArray(_) => size_of::<u128>(),
        }
    }

    fn held(&self) -> usize {
        fn of<T>(segments: &[Vec<T>]) -> usize {
            // All but the last are as large as the first.
            let first = segments.first().map_or(0, |first| first.capacity() * size_of::<T>());
            first * segments.len()
        }
        each!(self, segments => of(segments))
    }
}

/// What was looked at, but for an entry that is refused because it is too wide.
fn unless_wide(looked: Result<usize>) -> Result<Option<usize>> {
    match looked {
        Err(error) if error.detail() == Some(Detail::TooLarge) => Ok(None),
        looked => looked.map(Some),
    }
}

/// Bytes of a segment of byte strings of one width: `1 << shift` of them, or a part of one.
fn segment_bytes(width: usize, shift: u32) -> usize {
    if width > SEGMENT_BYTES_MAX { SEGMENT_BYTES_MAX } else { width.saturating_mul(1 << shift).max(1) }
}

/// The next `count` values, at most, of segments of `length` values each; `left` are still to come. They are zero.
fn extend<'s, T: Plain>(
    segments: &'s mut Vec<Vec<T>>,
    length: usize,
    (count, left): (usize, usize),
    memory: &mut Memory,
) -> Result<&'s mut [T]> {
    if segments.last().is_none_or(|last| last.len() == length) {
        let mut segment = Vec::new();
        let capacity = length.min(left);
        memory.admit(capacity.saturating_mul(size_of::<T>()))?;
        segment
            .try_reserve_exact(capacity)
            .map_err(|_| Error::out_of_memory(capacity.saturating_mul(size_of::<T>())))?;
        segments.push(segment);
    }
    let Some(last) = segments.last_mut() else { return Err(Error::internal("no segment")) };
    let start = last.len();
    last.resize(start + count.min(length - start), T::ZERO);
    Ok(&mut last[start..])
}

/// A dictionary, while it is being decoded.
///
/// Its page may come in chunks: each begins with the first byte that was not decoded of the one before. So none need be large, but for
/// a string that is.
#[derive(Debug)]
pub(super) struct DictionaryDecoder {
    /// Bytes of the page, where they stand in it, and how many are decoded.
    chunk: Bytes,
    position: usize,
    at: usize,
    body_bytes: usize,
    /// The chunks that views point into; the last one is not cut yet to what was decoded.
    buffers: Vec<Bytes>,
    /// Bytes of the next string that are found to be text.
    checked: usize,
    segments: Segments,
    shift: u32,
    decoded: usize,
    entries: usize,
    accept: Accept,
}

/// What [`DictionaryDecoder::step`] answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decoded {
    /// All entries.
    All,
    /// As many as the budget paid for.
    Some,
    /// What the chunk has: the page is wanted from `at` on, `bytes` at least in one piece.
    Chunk { at: usize, bytes: usize },
}

impl Release for DictionaryDecoder {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.chunk, &mut self.buffers, &mut self.segments], budget)
    }
}

impl DictionaryDecoder {
    /// A decoder of a dictionary page of `entries` values in `body_bytes` bytes, none of which it has yet.
    pub(super) fn new(
        encoding: Encoding,
        physical_type: PhysicalType,
        body_bytes: usize,
        entries: usize,
        accept: Accept,
        limits: &Limits,
    ) -> Result<DictionaryDecoder> {
        if !matches!(encoding, Encoding::Plain | Encoding::PlainDictionary) {
            return Err(Error::unsupported(format!("a dictionary encoded as {encoding}"))
                .with(Detail::Encoding(encoding.number())));
        }
        let segments = Segments::new(physical_type)?;
        // The least that a value needs; so what is claimed is what the bytes can be.
        let least = match physical_type {
            PhysicalType::ByteArray => 4,
            _ => physical_type.width().unwrap_or(0),
        };
        if least.checked_mul(entries).is_none_or(|bytes| bytes > body_bytes) {
            return Err(Error::corrupt(format!("a dictionary of {entries} entries in {body_bytes} bytes")));
        }
        // Strings are views and the page that these point into. An entry without a byte counts, too.
        let strings = if physical_type == PhysicalType::ByteArray { body_bytes } else { 0 };
        let bytes = entries.saturating_mul(value_bytes(physical_type).max(1));
        limits.check(Limit::DictionaryBytes, (bytes.saturating_add(strings)) as u64)?;
        Ok(DictionaryDecoder {
            chunk: Bytes::new(),
            position: 0,
            at: 0,
            body_bytes,
            buffers: Vec::new(),
            checked: 0,
            segments,
            shift: shift_of(value_bytes(physical_type), entries),
            decoded: 0,
            entries,
            accept,
        })
    }

    /// Takes the page's bytes from where [`Decoded::Chunk`] said.
    pub(super) fn supply(&mut self, chunk: Bytes) {
        self.cut_buffer();
        self.position += self.at;
        (self.chunk, self.at, self.checked) = (chunk, 0, 0);
        if matches!(self.segments, Segments::ByteArray(_)) {
            self.buffers.push(self.chunk.clone());
        }
    }

    /// Decodes until the budget is spent.
    pub(super) fn step(&mut self, memory: &mut Memory, budget: &mut Budget<'_>) -> Result<Decoded> {
        while self.decoded < self.entries {
            let wanted = match self.segments {
                Segments::ByteArray(_) => self.strings(memory, budget)?,
                Segments::Fixed(..) => self.fixed(memory, budget)?,
                Segments::Int32(_) | Segments::Float(_) => self.numbers(4, memory, budget)?,
                Segments::Int64(_) | Segments::Double(_) => self.numbers(8, memory, budget)?,
            };
            if let Some(bytes) = wanted {
                return if self.position + self.chunk.len() < self.body_bytes {
                    Ok(Decoded::Chunk { at: self.position + self.at, bytes })
                } else {
                    Err(too_few_values())
                };
            }
            if budget.is_spent() && self.decoded < self.entries {
                return Ok(Decoded::Some);
            }
        }
        Ok(Decoded::All)
    }

    /// Copies numbers of `width` bytes; says how many bytes more of the page are needed, where the chunk has no number any more.
    fn numbers(
        &mut self,
        width: usize,
        memory: &mut Memory,
        budget: &mut Budget<'_>,
    ) -> Result<Option<usize>> {
        /// The same for each kind of numbers.
        fn copy<T: Plain>(
            segments: &mut Vec<Vec<T>>,
            length: usize,
            (bytes, left): (&[u8], usize),
            memory: &mut Memory,
        ) -> Result<usize> {
            let out = extend(segments, length, (bytes.len() / size_of::<T>(), left), memory)?;
            Ok(plain::copy(bytes, out))
        }
        let left = self.entries - self.decoded;
        let count = ((self.chunk.len() - self.at) / width).min(SLICE_BYTES_MAX / width).min(left);
        if count == 0 {
            return Ok(Some(width));
        }
        let bytes = (&self.chunk[self.at..self.at + count * width], left);
        let length = 1 << self.shift;
        let made = match &mut self.segments {
            Segments::Int32(segments) => copy(segments, length, bytes, memory)?,
            Segments::Int64(segments) => copy(segments, length, bytes, memory)?,
            Segments::Float(segments) => copy(segments, length, bytes, memory)?,
            Segments::Double(segments) => copy(segments, length, bytes, memory)?,
            Segments::Fixed(..) | Segments::ByteArray(_) => {
                return Err(Error::internal("a dictionary that is not of numbers"));
            }
        };
        self.at += made * width;
        self.decoded += made;
        budget.charge(price::NUMBERS, made * width, 0);
        budget.charge(ROOM_PRICE, made * width, 0);
        Ok(None)
    }

    /// The same for byte strings of one width, which may be long: their bytes are copied whatever value they are of.
    fn fixed(&mut self, memory: &mut Memory, budget: &mut Budget<'_>) -> Result<Option<usize>> {
        let Segments::Fixed(width, segments) = &mut self.segments else {
            return Err(Error::internal("a dictionary of another type"));
        };
        let (width, copied) = (*width, self.position + self.at);
        let left = self.entries * width - copied;
        let count = left.min(SLICE_BYTES_MAX).min(self.chunk.len() - self.at);
        if count == 0 && left > 0 {
            return Ok(Some(1));
        }
        if count > 0 {
            let out = extend(segments, segment_bytes(width, self.shift), (count, left), memory)?;
            let count = out.len();
            out.copy_from_slice(&self.chunk[self.at..self.at + count]);
            self.at += count;
            budget.charge(price::NUMBERS, count, 0);
            budget.charge(ROOM_PRICE, count, 0);
        }
        self.decoded = (self.position + self.at).checked_div(width).unwrap_or(self.entries);
        Ok(None)
    }

    /// Makes views of strings; says how many bytes of the page are needed in one piece, where the chunk has no whole string any more.
    fn strings(&mut self, memory: &mut Memory, budget: &mut Budget<'_>) -> Result<Option<usize>> {
        let buffer = match u32::try_from(self.buffers.len()) {
            Ok(buffers @ 1..) => buffers - 1,
            // Nothing was supplied yet.
            Ok(0) => return Ok(Some(1)),
            Err(_) => return Err(Error::internal("too many chunks of a dictionary")),
        };
        let longest = self.accept.value_bytes_max;
        let is_last = self.position + self.chunk.len() >= self.body_bytes;
        let rest = &self.chunk[self.at..];
        let mut end = self.chunk.len().min(self.at + SLICE_BYTES_MAX);
        match rest.first_chunk::<4>().map(|length| u32::from_le_bytes(*length)) {
            // One by one: it is refused, or it is long.
            Some(length) if length <= longest && 4 + usize_of_u32(length) > SLICE_BYTES_MAX => {
                let bytes = 4 + usize_of_u32(length);
                if bytes > rest.len() && !is_last {
                    return Ok(Some(bytes));
                }
                end = self.chunk.len().min(self.at + bytes);
                if let Some(value) = rest.get(4..bytes).filter(|_| self.accept.only_text)
                    && !check_slice(value, &mut self.checked, budget)?
                {
                    return Ok(None);
                }
            }
            Some(length) if length <= longest && 4 + usize_of_u32(length) > rest.len() && !is_last => {
                return Ok(Some(4 + usize_of_u32(length)));
            }
            None if !is_last => return Ok(Some(4)),
            _ => {}
        }
        let Segments::ByteArray(segments) = &mut self.segments else {
            return Err(Error::internal("a dictionary of another type"));
        };
        let left = self.entries - self.decoded;
        let length = 1usize << self.shift;
        let start = self.at;
        let out = extend(segments, length, (SLICE_ENTRIES_MAX.min(left), left), memory)?;
        let room = out.len();
        let made = match strings::plain(&self.chunk[..end], &mut self.at, buffer, 0, longest, out) {
            Ok(made) => made,
            Err(error) => return Err(string_error(error, longest)),
        };
        let bytes = self.at - start;
        if self.accept.only_text {
            // A long one is alone, and was checked before.
            if core::mem::take(&mut self.checked) == 0 {
                check_plain_text(&self.chunk[start..self.at], out.get(..made).unwrap_or_default())?;
            }
            budget.charge(price::TEXT, bytes.min(SLICE_BYTES_MAX), 0);
        }
        if let Some(last) = segments.last_mut() {
            last.truncate(last.len() - (room - made));
        }
        self.decoded += made;
        budget.charge(price::VIEWS, 0, made);
        budget.charge(ROOM_PRICE, made * size_of::<u128>(), 0);
        Ok(None)
    }

    /// Cuts the last buffer to what views point into.
    fn cut_buffer(&mut self) {
        match self.buffers.last_mut() {
            Some(last) if self.at > 0 => last.truncate(self.at),
            _ => drop(self.buffers.pop()),
        }
    }

    /// Bytes held: of the entries, and of the page's chunks that views point into, or else of the last.
    pub(super) fn held(&self) -> usize {
        let chunks = match self.segments {
            Segments::ByteArray(_) => self.buffers.iter().map(Bytes::len).sum(),
            _ => self.chunk.len(),
        };
        self.segments.held() + chunks
    }

    /// The dictionary, once all is decoded.
    pub(super) fn finish(mut self, physical_type: PhysicalType) -> Entries {
        self.cut_buffer();
        let buffers = Arc::new(self.buffers);
        if each!(&self.segments, segments => segments.len()) > 1 {
            let (segments, shift, entries) = (self.segments, self.shift, self.entries);
            let is_int96 = physical_type == PhysicalType::Int96;
            return Entries::Segmented(Box::new(Segmented { segments, shift, entries, is_int96, buffers }));
        }
        fn only<T>(mut segments: Vec<Vec<T>>) -> Vec<T> {
            segments.pop().unwrap_or_default()
        }
        let values = match self.segments {
            Segments::Int32(segments) => Values::Int32(only(segments).into()),
            Segments::Int64(segments) => Values::Int64(only(segments).into()),
            Segments::Float(segments) => Values::Float(only(segments).into()),
            Segments::Double(segments) => Values::Double(only(segments).into()),
            Segments::ByteArray(segments) => {
                Values::ByteArray(ByteArrays::new(only(segments).into(), buffers))
            }
            Segments::Fixed(width, segments) => {
                let values = FixedBytes::new(width, self.entries, only(segments).into());
                match physical_type {
                    PhysicalType::Int96 => Values::Int96(values),
                    _ => Values::FixedLenByteArray(values),
                }
            }
        };
        Entries::Whole(Arc::new(values))
    }
}

/// Of the entries in a segment, each of `value_bytes`, the logarithm: all, where they are less than 1 MiB.
fn shift_of(value_bytes: usize, entries: usize) -> u32 {
    if value_bytes.checked_mul(entries).is_some_and(|bytes| bytes <= ARRAY_BYTES_MAX) {
        // More entries than a page can have.
        return i32::BITS - 1;
    }
    (SEGMENT_BYTES_MAX / value_bytes.max(1)).checked_ilog2().unwrap_or(0)
}

/// Checks a slice of a long string, from what is checked already on. True when that was the last.
fn check_slice(value: &[u8], checked: &mut usize, budget: &mut Budget<'_>) -> Result<bool> {
    /// Bytes of a character, at most.
    const CHARACTER_BYTES_MAX: usize = 4;
    let rest = value.get(*checked..).unwrap_or_default();
    let mut slice = rest.len().min(SLICE_BYTES_MAX);
    if slice < rest.len() {
        // Back to where a character begins.
        let end = (0..CHARACTER_BYTES_MAX).find(|back| utf8::is_boundary(rest[slice - back]));
        slice -= end.ok_or_else(not_text)?;
    }
    if !utf8::valid(&rest[..slice]) {
        return Err(not_text());
    }
    *checked += slice;
    budget.charge(price::TEXT, slice, 0);
    Ok(*checked == value.len())
}

#[cfg(test)]
mod tests;
