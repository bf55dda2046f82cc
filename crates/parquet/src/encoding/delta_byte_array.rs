//! DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY: byte strings with delta-encoded lengths, and with shared prefixes.
//!
//! Source: `Encodings.md`, "Delta-length byte array" and "Delta Strings".

pub(crate) mod encode;

use alloc::vec::Vec;

use marquetry_base::{Budget, Bytes, Error, Limit, Release, Result};
use marquetry_kernels::{strings, utf8};

use super::delta::{Delta, StreamEnd};
use super::plain::{Accept, string_error};
use super::stream::{FIRST_BYTES, Stream};
use super::{BufferIndex, Decoded, check_text_on, not_text, too_few_values};
use crate::growing::{Growing, ROOM_SLICE_BYTES, SLICE_BYTES};
use crate::memory::Memory;

/// Bytes of values that are built at a time, in new memory: a quarter of what is read or copied at a time. Longer
/// values are built in slices.
pub(crate) const BUILT_BYTES: usize = SLICE_BYTES / 4;

/// Room for what is built at a time.
pub(crate) const BUILT_ROOM: usize = BUILT_BYTES + strings::APPEND_SLACK;

/// Lengths that are decoded at a time.
const LENGTHS_MAX: usize = 256;

/// The streams of lengths at the start of a page, while their ends are looked for.
#[derive(Debug)]
pub(crate) struct LeadingStreams {
    /// What follows those found so far.
    rest: Stream,
    count: usize,
    found: Vec<Stream>,
    end: Option<StreamEnd>,
}

impl LeadingStreams {
    /// Looks for `count` delta-encoded streams at the start of `page`, which must be held.
    pub(crate) fn new(page: Stream, count: usize) -> LeadingStreams {
        LeadingStreams { rest: page, count, found: Vec::new(), end: None }
    }

    /// The stream that needs bytes.
    pub(crate) fn starved(&mut self) -> Option<&mut Stream> {
        let end = self.end.iter_mut().map(StreamEnd::stream);
        self.found.iter_mut().chain(end).chain([&mut self.rest]).find(|stream| stream.is_starved())
    }

    /// Continues. True once all are found; false if a stream needs bytes first, and after a slice's work, which is
    /// added to `work`.
    pub(crate) fn step(&mut self, work: &mut usize) -> Result<bool> {
        while self.found.len() < self.count {
            let end = match &mut self.end {
                Some(end) => end,
                None if self.rest.has(FIRST_BYTES) => self.end.insert(StreamEnd::new(&self.rest)?),
                None => return Ok(false),
            };
            let Some(bytes) = end.step(work)? else { return Ok(false) };
            self.found.push(self.rest.part(0, bytes));
            self.rest.skip(bytes)?;
            self.end = None;
        }
        // Their decoders begin with their headers.
        Ok(self.found.iter_mut().all(|stream| stream.has(FIRST_BYTES)))
    }

    /// The last of those that were found.
    fn pop(&mut self) -> Result<Lengths> {
        let stream = self.found.pop().ok_or_else(|| Error::internal("a stream that was not found"))?;
        Ok(Lengths { delta: Delta::new(stream)?, ahead: [0; LENGTHS_MAX], next: 0, end: 0 })
    }
}

/// Lengths, decoded a few ahead.
#[derive(Debug, Clone)]
struct Lengths {
    delta: Delta<i32>,
    ahead: [i32; LENGTHS_MAX],
    next: usize,
    end: usize,
}

impl Lengths {
    /// The next lengths: at most `count`, which must not be 0, and none if the stream needs bytes first.
    fn ahead(&mut self, count: usize) -> Result<&[i32]> {
        if self.next == self.end {
            let left = usize::try_from(self.delta.left()).unwrap_or(usize::MAX);
            if left == 0 {
                return Err(too_few_values());
            }
            self.next = 0;
            self.end = self.delta.decode(&mut self.ahead[..count.min(left).min(LENGTHS_MAX)])?;
        }
        let ahead = &self.ahead[self.next..self.end];
        Ok(&ahead[..ahead.len().min(count)])
    }

    /// The next length, as a number of bytes; `None` if the stream needs bytes first.
    fn peek(&mut self, ahead: usize) -> Result<Option<usize>> {
        match self.ahead(ahead)?.first() {
            Some(&length) => usize::try_from(length).map(Some).map_err(|_| negative_length()),
            None => Ok(None),
        }
    }
}

/// A decoder of DELTA_LENGTH_BYTE_ARRAY: all lengths, then all bytes. The views point into the page.
#[derive(Debug, Clone)]
pub(crate) struct DeltaLengthByteArray {
    lengths: Lengths,
    bytes: Stream,
    accept: Accept,
    /// Bytes of the next value that have been checked to be UTF-8, if it is long.
    checked: usize,
}

impl DeltaLengthByteArray {
    /// A decoder of a page whose stream of lengths has been found.
    pub(crate) fn new(mut streams: LeadingStreams, accept: Accept) -> Result<DeltaLengthByteArray> {
        Ok(DeltaLengthByteArray { lengths: streams.pop()?, bytes: streams.rest, accept, checked: 0 })
    }

    /// The bytes that the views of the next call point into.
    pub(crate) fn bytes(&self) -> &Bytes {
        self.bytes.chunk().0
    }

    /// The stream that needs bytes.
    pub(crate) fn starved(&mut self) -> Option<&mut Stream> {
        [self.lengths.delta.stream(), &mut self.bytes].into_iter().find(|stream| stream.is_starved())
    }

    /// The stream of the values' bytes.
    pub(crate) fn peek_stream(&self) -> &Stream {
        &self.bytes
    }

    /// Creates views of the next values; `buffer` is the number that the chunk will have.
    pub(crate) fn decode(&mut self, buffer: BufferIndex, out: &mut [u128]) -> Result<Decoded> {
        let longest = self.accept.value_bytes_max;
        let mut decoded = Decoded::default();
        while decoded.values < out.len() && decoded.bytes < SLICE_BYTES {
            let lengths = self.lengths.ahead(out.len() - decoded.values)?;
            if lengths.is_empty() {
                break;
            }
            check_lengths(lengths, longest)?;
            let (chunk, start) = self.bytes.chunk();
            // UTF-8 is checked a slice at a time.
            let end = if self.accept.only_text { chunk.len().min(start + SLICE_BYTES) } else { chunk.len() };
            let (bytes, mut at) = (&chunk[..end], start);
            let views = &mut out[decoded.values..];
            let made = match strings::lengths_to_views(lengths, bytes, &mut at, buffer, 0, views) {
                Ok(made) => made,
                Err(strings::StringsError::Truncated { .. }) if decoded.values > 0 => break,
                Err(strings::StringsError::Truncated { .. }) => return self.decode_one(buffer, out),
                Err(error) => return Err(string_error(error, longest)),
            };
            if self.accept.only_text {
                check_text(&bytes[start..at], &lengths[..made])?;
                decoded.bytes += at - start;
            }
            self.bytes.advance(at - start);
            self.lengths.next += made;
            decoded.values += made;
        }
        Ok(decoded)
    }

    /// Creates the view of one value that is long, or does not end in the chunk.
    fn decode_one(&mut self, buffer: BufferIndex, out: &mut [u128]) -> Result<Decoded> {
        let Some(length) = self.lengths.peek(1)? else { return Ok(Decoded::default()) };
        if length > self.bytes.left() {
            return Err(Error::corrupt("a value reaches beyond the page's end"));
        }
        if !self.bytes.has(length) {
            return Ok(Decoded::default());
        }
        let value = &self.bytes.there()[..length];
        let mut decoded = Decoded::default();
        if self.accept.only_text {
            decoded.bytes = check_text_on(value, &mut self.checked, SLICE_BYTES)?;
            if self.checked < length {
                return Ok(decoded);
            }
            self.checked = 0;
        }
        let offset = u32::try_from(self.bytes.chunk().1).ok().filter(|&at| at <= i32::MAX.cast_unsigned());
        let offset = offset.ok_or_else(|| string_error(strings::StringsError::BufferTooLong, 0))?;
        out[0] = strings::view(value, buffer, offset);
        self.bytes.advance(length);
        self.lengths.next += 1;
        decoded.values = 1;
        Ok(decoded)
    }
}

/// A decoder of DELTA_BYTE_ARRAY: each value is a prefix of the previous one and a suffix of its own.
#[derive(Debug, Clone)]
pub(crate) struct DeltaByteArray {
    prefixes: Lengths,
    suffixes: Lengths,
    bytes: Stream,
    /// The value before.
    last: Value,
    /// A long value that is being built.
    building: Option<Building>,
    accept: Accept,
}

/// A value that was built.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// A value that its user copies.
    Short(Vec<u8>),
    /// A value of more than [`BUILT_BYTES`], which its user shares.
    Long(Bytes),
}

impl Release for Value {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        match self {
            Value::Short(value) => value.release(budget),
            Value::Long(value) => value.release(budget),
        }
    }
}

/// A long value, while it is being built.
#[derive(Debug, Clone)]
struct Building {
    value: Growing,
    prefix: usize,
    length: usize,
    checked: usize,
}

/// What [`DeltaByteArray::next`] did.
#[derive(Debug)]
pub(crate) enum Built<'a> {
    /// Built a value.
    Value(&'a Value),
    /// It worked on a long value, as many bytes of it.
    Some(usize),
    /// Nothing: a stream needs bytes first.
    Starved,
}

impl Default for Value {
    fn default() -> Value {
        Value::Short(Vec::new())
    }
}

impl Value {
    /// The bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Value::Short(bytes) => bytes,
            Value::Long(bytes) => bytes,
        }
    }
}

impl DeltaByteArray {
    /// A decoder of a page whose streams of lengths have been found.
    pub(crate) fn new(mut streams: LeadingStreams, accept: Accept) -> Result<DeltaByteArray> {
        let (suffixes, prefixes) = (streams.pop()?, streams.pop()?);
        let (bytes, last) = (streams.rest, Value::default());
        Ok(DeltaByteArray { prefixes, suffixes, bytes, last, building: None, accept })
    }

    /// Takes the first prefix from `last`, the last value of the previous page: see [`prefixes_go_on`].
    pub(crate) fn go_on_from(&mut self, last: Value) {
        self.last = last;
    }

    /// The last value.
    pub(crate) fn into_last(self) -> Value {
        self.last
    }

    /// The last value that was built.
    pub(crate) fn last(&self) -> &Value {
        &self.last
    }

    /// Bytes held of values that are being built, and of streams beside their segments.
    pub(crate) fn held(&self) -> usize {
        self.building.as_ref().map_or(0, |building| building.value.held()) + self.bytes.held()
    }

    /// The stream that needs bytes.
    pub(crate) fn starved(&mut self) -> Option<&mut Stream> {
        [self.prefixes.delta.stream(), self.suffixes.delta.stream(), &mut self.bytes]
            .into_iter()
            .find(|stream| stream.is_starved())
    }

    /// Builds values as long as they are short and their bytes are there, at the end of `built`, which is buffer number `buffer`, and makes views of
    /// them. No value where the next is for [`DeltaByteArray::next`]: a long one, one of which bytes are missing, one that is an error.
    /// `reserve` makes room for at most [`BUILT_ROOM`] bytes.
    pub(crate) fn next_short(
        &mut self,
        buffer: BufferIndex,
        built: &mut Vec<u8>,
        views: &mut [u128],
        reserve: impl FnOnce(&mut Vec<u8>, usize) -> Result<()>,
    ) -> Result<Decoded> {
        let (None, Value::Short(last)) = (&self.building, &mut self.last) else {
            return Ok(Decoded::default());
        };
        let (prefixes, suffixes) = (self.prefixes.ahead(views.len())?, self.suffixes.ahead(views.len())?);
        let mut lengths = [0; LENGTHS_MAX];
        let mut bytes = 0;
        for ((length, &prefix), &suffix) in lengths.iter_mut().zip(prefixes).zip(suffixes) {
            *length = prefix.wrapping_add(suffix);
            bytes += u64::from(length.cast_unsigned());
        }
        let bytes = usize::try_from(bytes).map_or(BUILT_BYTES, |bytes| bytes.min(BUILT_BYTES));
        reserve(built, bytes + strings::APPEND_SLACK)?;
        let longest = usize::try_from(self.accept.value_bytes_max).unwrap_or(usize::MAX);
        let mut at = built.len();
        let joined = strings::join(prefixes, suffixes, self.bytes.there(), last, (longest, bytes), built);
        let Some(last_bytes) = joined.values.checked_sub(1).map(|index| lengths[index]) else {
            return Ok(Decoded::default());
        };
        let lengths = &lengths[..joined.values];
        if self.accept.only_text {
            check_text(&built[at..], lengths)?;
        }
        let bytes = built.len() - at;
        let made = strings::lengths_to_views(lengths, built, &mut at, buffer, 0, views);
        if made != Ok(joined.values) {
            return Err(Error::internal("values that were built have no views"));
        }
        // The next call begins with it.
        last.clear();
        let from = built.len() - usize::try_from(last_bytes).unwrap_or(0).min(built.len());
        last.try_reserve(built.len() - from).map_err(|_| Error::out_of_memory(built.len() - from))?;
        last.extend_from_slice(&built[from..]);
        self.bytes.advance(joined.taken);
        self.prefixes.next += joined.values;
        self.suffixes.next += joined.values;
        Ok(Decoded { values: joined.values, bytes })
    }

    /// Builds the next value, or a slice of it; the caller needs `count` more.
    pub(crate) fn next(&mut self, count: usize, memory: &mut Memory) -> Result<Built<'_>> {
        if self.building.is_some() {
            return self.build(memory);
        }
        let Some(prefix) = self.prefixes.peek(count)? else { return Ok(Built::Starved) };
        if prefix > self.last.bytes().len() {
            return Err(Error::corrupt(alloc::format!(
                "a prefix of {prefix} bytes of a value of {}",
                self.last.bytes().len()
            )));
        }
        let Some(suffix) = self.suffixes.peek(count)? else { return Ok(Built::Starved) };
        if suffix > self.bytes.left() {
            return Err(too_few_values());
        }
        let length = prefix + suffix;
        Limit::ValueBytes.check(self.accept.value_bytes_max.into(), length as u64)?;
        if let Some(width) = self.accept.width {
            check_width(length, width)?;
        }
        if length > BUILT_BYTES {
            let value = Growing::default();
            self.building = Some(Building { value, prefix, length, checked: 0 });
        } else if !self.bytes.has(suffix) {
            return Ok(Built::Starved);
        }
        self.prefixes.next += 1;
        self.suffixes.next += 1;
        if self.building.is_some() {
            return self.build(memory);
        }
        let mut value = match core::mem::take(&mut self.last) {
            Value::Short(value) => value,
            Value::Long(value) => Vec::from(&value[..prefix]),
        };
        value.truncate(prefix);
        value.try_reserve(suffix).map_err(|_| Error::out_of_memory(length))?;
        value.extend_from_slice(&self.bytes.there()[..suffix]);
        self.bytes.advance(suffix);
        if self.accept.only_text && !utf8::valid(&value) {
            return Err(not_text());
        }
        self.last = Value::Short(value);
        Ok(Built::Value(&self.last))
    }

    /// Continues a long value, by a slice.
    fn build(&mut self, memory: &mut Memory) -> Result<Built<'_>> {
        let Some(Building { value, prefix, length, checked }) = &mut self.building else {
            return Err(Error::internal("no value to build"));
        };
        // Both parts are available, so the value is as long as its lengths say.
        if !value.grow(*length, *length, memory, &mut Budget::new(0))? {
            return Ok(Built::Some(ROOM_SLICE_BYTES));
        }
        let copied = value.len();
        if copied < *prefix {
            let end = (*prefix).min(copied + BUILT_BYTES);
            value.append(&self.last.bytes()[copied..end]);
            return Ok(Built::Some(end - copied));
        }
        if copied < *length {
            if !self.bytes.has(1) {
                return Ok(Built::Starved);
            }
            let there = self.bytes.there();
            let bytes = there.len().min(*length - copied).min(BUILT_BYTES);
            value.append(&there[..bytes]);
            self.bytes.advance(bytes);
            return Ok(Built::Some(bytes));
        }
        if self.accept.only_text && *checked < *length {
            return Ok(Built::Some(check_text_on(value.bytes(), checked, BUILT_BYTES)?));
        }
        let value = self.building.take().map(|building| building.value.into_vec()).unwrap_or_default();
        self.last = Value::Long(value.into());
        Ok(Built::Value(&self.last))
    }
}

/// True for files by parquet-mr before 1.8.0, which took a page's first prefix from the last value of the previous page
/// (PARQUET-246). `created_by` is the footer's.
pub(crate) fn prefixes_go_on(created_by: &str) -> bool {
    let Some(rest) = created_by.strip_prefix("parquet-mr") else { return false };
    // Early ones have no version at all.
    let Some(version) = rest.strip_prefix(" version ") else { return true };
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(major), Some(minor)) => (major, minor) < (1, 8),
        _ => false,
    }
}

/// Checks that consecutive values with these `lengths` are UTF-8: that all of them together are, and that each begins
/// at a character.
fn check_text(values: &[u8], lengths: &[i32]) -> Result<()> {
    // No value begins within a character where each has one byte. (To look at where values begin takes longer than the rest.)
    if values.is_ascii() {
        return Ok(());
    }
    let mut at = 0;
    let mut begins = true;
    for &length in lengths {
        begins &= values.get(at).is_none_or(|&byte| utf8::is_boundary(byte));
        at += usize::try_from(length).unwrap_or(0);
    }
    if begins && utf8::valid(values) { Ok(()) } else { Err(not_text()) }
}

fn check_lengths(lengths: &[i32], value_bytes_max: u32) -> Result<()> {
    // As unsigned numbers, negative lengths are larger than any limit.
    let longest = lengths.iter().map(|&length| length.cast_unsigned()).max().unwrap_or(0);
    if longest <= value_bytes_max {
        return Ok(());
    }
    if longest > i32::MAX as u32 {
        return Err(negative_length());
    }
    Limit::ValueBytes.check(value_bytes_max.into(), longest.into())
}

/// An error for a value of another width than the column's.
pub(crate) fn check_width(bytes: usize, width: usize) -> Result<()> {
    if bytes == width {
        return Ok(());
    }
    Err(Error::corrupt(alloc::format!("a value of {bytes} bytes, not {width}")))
}

fn negative_length() -> Error {
    Error::corrupt("a negative length of a value or prefix")
}

#[cfg(test)]
mod tests {
    use super::super::stream::{feed, in_segments};
    use super::*;

    const ACCEPT: Accept = Accept { value_bytes_max: 100, width: None, only_text: false };

    /// A delta stream of fewer than 33 small numbers: one block of 128 in 4 miniblocks, differences in 8 bits.
    fn stream(numbers: &[i8]) -> Vec<u8> {
        let zigzag = |value: i16| u8::try_from(((value << 1) ^ (value >> 15)).cast_unsigned()).unwrap();
        let count = u8::try_from(numbers.len()).unwrap();
        let first = i16::from(numbers[0]);
        let mut out = Vec::from([0x80, 0x01, 4, count, zigzag(first)]);
        let deltas: Vec<i16> =
            numbers.windows(2).map(|pair| i16::from(pair[1]) - i16::from(pair[0])).collect();
        if let Some(min) = deltas.iter().min() {
            out.extend([zigzag(*min), 8, 0, 0, 0]);
            let mut packed: Vec<u8> = deltas.iter().map(|delta| u8::try_from(delta - min).unwrap()).collect();
            packed.resize(32, 0);
            out.extend(packed);
        }
        out
    }

    fn page(prefixes: &[i8], lengths: &[i8], bytes: &[u8]) -> Vec<u8> {
        let mut page = stream(prefixes);
        page.extend(stream(lengths));
        page.extend(bytes);
        page
    }

    fn found(page: &[u8], segment: usize, count: usize) -> LeadingStreams {
        let mut streams = LeadingStreams::new(in_segments(page, segment), count);
        while !streams.step(&mut 0).unwrap() {
            streams.starved().into_iter().for_each(feed);
        }
        streams
    }

    fn lengths(page: &[u8], accept: Accept) -> DeltaLengthByteArray {
        DeltaLengthByteArray::new(found(page, page.len(), 1), accept).unwrap()
    }

    fn words(page: &[u8], accept: Accept) -> DeltaByteArray {
        DeltaByteArray::new(found(page, page.len(), 2), accept).unwrap()
    }

    impl DeltaByteArray {
        /// Appends the next value's bytes to `built` and returns how many there are.
        fn append(&mut self, built: &mut Vec<u8>) -> Result<usize> {
            loop {
                if let Built::Value(value) = self.next(1, &mut Memory::unlimited())? {
                    built.extend_from_slice(value.bytes());
                    return Ok(value.bytes().len());
                }
                self.starved().into_iter().for_each(feed);
            }
        }
    }

    #[test]
    fn the_example_of_the_document() {
        // axis, axle, babble, babyhood: from axis|le|babble|yhood.
        let page_of_words = page(&[0, 2, 0, 3], &[4, 2, 6, 5], b"axislebabbleyhood");
        for segment in 1..100 {
            let mut words = DeltaByteArray::new(found(&page_of_words, segment, 2), ACCEPT).unwrap();
            let mut built = Vec::new();
            let lengths: Vec<usize> = (0..4).map(|_| words.append(&mut built).unwrap()).collect();
            assert_eq!(
                (lengths.as_slice(), built.as_slice()),
                (&[4, 4, 6, 8][..], &b"axisaxlebabblebabyhood"[..])
            );
            assert!(words.append(&mut built).is_err());
        }
        // The lengths add up to 18 bytes, and there are no more.
        let page = page(&[0, 2, 0, 3], &[5, 3, 5, 5], b"axisbeanbabblesble");
        let mut others = words(&page, ACCEPT);
        let mut built = Vec::new();
        assert_eq!((0..4).map(|_| others.append(&mut built).unwrap()).sum::<usize>(), 5 + 5 + 5 + 8);
    }

    #[test]
    fn long_values_are_built_in_slices() {
        // A value of more than three slices, and one that shares most of it; then a short one that shares its start.
        let long = 3 * BUILT_BYTES + 17;
        let text: Vec<u8> = (0..long).map(|at| b'a' + u8::try_from(at % 26).unwrap()).collect();
        let mut page = delta_stream(&[0, long - 5, 3]);
        page.extend(delta_stream(&[long, 2, 1]));
        page.extend(&text);
        page.extend(b"xyz");
        let accept = Accept { value_bytes_max: u32::MAX, width: None, only_text: true };
        for segment in [BUILT_BYTES / 3, page.len()] {
            let mut decoder = DeltaByteArray::new(found(&page, segment, 2), accept).unwrap();
            let mut found = Vec::new();
            while found.len() < 3 {
                match decoder.next(3, &mut Memory::unlimited()).unwrap() {
                    Built::Value(value) => found.push(value.clone()),
                    Built::Some(bytes) => assert!(bytes <= ROOM_SLICE_BYTES),
                    Built::Starved => decoder.starved().into_iter().for_each(feed),
                }
            }
            assert_eq!(found[0].bytes(), text);
            assert_eq!(found[1].bytes(), [&text[..long - 5], b"xy"].concat());
            assert_eq!(found[2].bytes(), b"abcz");
            assert!(matches!(found[..], [Value::Long(_), Value::Long(_), Value::Short(_)]));
        }
        let last = page.len() - 4;
        page[last] = 0xff;
        let mut decoder = words(&page, accept);
        assert!(decoder.append(&mut Vec::new()).is_err(), "not UTF-8 near its end");
    }

    /// A delta stream of three numbers of any size: one block, differences in 32 bits.
    fn delta_stream(numbers: &[usize; 3]) -> Vec<u8> {
        let numbers = numbers.map(|number| i64::try_from(number).unwrap());
        let deltas = [numbers[1] - numbers[0], numbers[2] - numbers[1]];
        let least = deltas[0].min(deltas[1]);
        let mut out = Vec::from([0x80, 0x01, 4, 3]);
        let push_zigzag = |out: &mut Vec<u8>, value: i64| {
            let mut raw = ((value << 1) ^ (value >> 63)).cast_unsigned();
            while raw >= 0x80 {
                out.push(raw.to_le_bytes()[0] | 0x80);
                raw >>= 7;
            }
            out.push(raw.to_le_bytes()[0]);
        };
        push_zigzag(&mut out, numbers[0]);
        push_zigzag(&mut out, least);
        out.extend([32, 0, 0, 0]);
        let mut packed = [0; 128];
        for (number, delta) in deltas.iter().enumerate() {
            let delta = u32::try_from(delta - least).unwrap();
            packed[number * 4..number * 4 + 4].copy_from_slice(&delta.to_le_bytes());
        }
        out.extend(packed);
        out
    }

    #[test]
    fn text_is_checked_value_by_value() {
        let decoder = lengths;
        let texts = |lengths: &[i8], bytes: &[u8]| {
            let mut page = stream(lengths);
            page.extend(bytes);
            let accept = Accept { only_text: true, ..ACCEPT };
            decoder(&page, accept).decode(0, &mut [0; 2][..lengths.len()])
        };
        assert!(texts(&[2, 1], "éa".as_bytes()).is_ok());
        // Together they are UTF-8, but a character is cut in two.
        assert_eq!(texts(&[1, 2], "éa".as_bytes()).unwrap_err().message(), "text that is not UTF-8");
        assert!(texts(&[1, 1], b"a\xff").is_err());
        let accept = Accept { only_text: true, ..ACCEPT };
        let mut shared = words(&page(&[0, 1], &[2, 1], b"\xc3\xa9\xaa"), accept);
        let mut built = Vec::new();
        assert!(shared.append(&mut built).is_ok() && shared.append(&mut built).is_ok());
        assert_eq!(built, "éê".as_bytes());
        let mut cut = words(&page(&[0, 1], &[2, 1], b"\xc3\xa9a"), accept);
        assert!(cut.append(&mut built).is_ok() && cut.append(&mut built).is_err());
    }

    #[test]
    fn bad_lengths() {
        let append = |prefixes: &[i8], lengths: &[i8], bytes: &[u8]| {
            let mut decoder = words(&page(prefixes, lengths, bytes), Accept { value_bytes_max: 6, ..ACCEPT });
            let mut built = Vec::new();
            (0..prefixes.len()).find_map(|_| decoder.append(&mut built).err()).unwrap()
        };
        assert_eq!(append(&[0, 3], &[2, 1], b"abc").message(), "a prefix of 3 bytes of a value of 2");
        assert_eq!(append(&[1], &[2], b"ab").message(), "a prefix of 1 bytes of a value of 0");
        assert_eq!(append(&[0, -1], &[2, 1], b"abc").message(), "a negative length of a value or prefix");
        assert_eq!(append(&[0, 0], &[2, -1], b"abc").message(), "a negative length of a value or prefix");
        assert_eq!(append(&[0, 0], &[2, 2], b"abc").message(), "the page ends before its last value");
        assert_eq!(
            append(&[0, 5], &[5, 2], b"abcdefg").message(),
            "7 is more than the limit value_bytes of 6"
        );
    }

    #[test]
    fn a_value_of_a_wrong_width_is_refused_before_it_is_built() {
        let long = 64 * BUILT_BYTES;
        let lengths = [delta_stream(&[0, 3, 0]), delta_stream(&[4, 1, long])].concat();
        let page = [&lengths[..], b"abcd", b"e", &alloc::vec![b'x'; long]].concat();
        let accept = Accept { value_bytes_max: u32::MAX, width: Some(4), only_text: false };
        let mut decoder = words(&page, accept);
        let mut built = Vec::new();
        assert_eq!((decoder.append(&mut built).unwrap(), decoder.append(&mut built).unwrap()), (4, 4));
        // Memory that admits none of it.
        let mut memory = Memory::new((Limit::TotalBytes, 1), 0, 0).unwrap();
        let error = decoder.next(1, &mut memory).unwrap_err();
        assert_eq!((error.message(), &built[..]), ("a value of 1048576 bytes, not 4", &b"abcdabce"[..]));
    }

    #[test]
    fn a_page_that_goes_on_from_the_one_before() {
        let mut first = words(&page(&[0, 3], &[5, 1], b"abcdex"), ACCEPT);
        let mut built = Vec::new();
        assert_eq!((first.append(&mut built).unwrap(), first.append(&mut built).unwrap()), (5, 4));
        let mut second = words(&page(&[4, 5], &[1, 0], b"y"), ACCEPT);
        second.go_on_from(first.into_last());
        assert_eq!((second.append(&mut built).unwrap(), second.append(&mut built).unwrap()), (5, 5));
        assert_eq!(built, b"abcdeabcxabcxyabcxy");
    }

    #[test]
    fn writers_whose_pages_go_on() {
        for old in [
            "parquet-mr",
            "parquet-mr (build 32c46643845ea8a705c35d4ec8fc654cc8ff816d)",
            "parquet-mr version 1.5.0-cdh5.4.1 (build x)",
            "parquet-mr version 1.6.0rc4 (build x)",
            "parquet-mr version 1.7.0",
            "parquet-mr version 0.9",
        ] {
            assert!(prefixes_go_on(old), "{old}");
        }
        for other in [
            "parquet-mr version 1.8.0 (build x)",
            "parquet-mr version 1.18.1",
            "parquet-mr version 2.0",
            "parquet-mr version unknown",
            "parquet-cpp-arrow version 1.0.0",
            "impala version 1.5.0",
            "",
        ] {
            assert!(!prefixes_go_on(other), "{other}");
        }
    }

    #[test]
    fn values_that_are_not_there() {
        let mut bytes = stream(&[2, 5, 1]);
        bytes.extend(b"ab012");
        let mut decoder = lengths(&bytes, ACCEPT);
        assert_eq!(decoder.decode(0, &mut [0; 3]).unwrap(), Decoded::values(1));
        let error = decoder.decode(0, &mut [0; 2]).unwrap_err();
        assert_eq!(error.message(), "a value reaches beyond the page's end");
    }

    #[test]
    fn lengths_become_views() {
        let mut bytes = stream(&[2, 0, 13]);
        let start = bytes.len();
        bytes.extend(b"ab0123456789abc");
        let mut decoder = lengths(&bytes, ACCEPT);
        let mut views = [0u128; 3];
        decoder.decode(3, &mut views).unwrap();
        assert_eq!(views[0].to_le_bytes()[..6], [2, 0, 0, 0, b'a', b'b']);
        assert_eq!(views[1], 0);
        let long = views[2].to_le_bytes();
        assert_eq!(long[..8], [13, 0, 0, 0, b'0', b'1', b'2', b'3']);
        assert_eq!(long[8..12], [3, 0, 0, 0]);
        assert_eq!(usize::from(long[12]), start + 2);
        assert!(decoder.decode(3, &mut views[..1]).is_err());
    }
}
