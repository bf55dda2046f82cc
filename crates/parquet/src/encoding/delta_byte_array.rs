//! DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY: byte strings with delta-encoded lengths, and with shared prefixes.
//!
//! Source: `Encodings.md`, "Delta-length byte array" and "Delta Strings".

use alloc::vec::Vec;

use marquetry_base::{Bytes, Error, Limits, Result};
use marquetry_kernels::{strings, utf8};

use super::delta::{Delta, stream_bytes};
use super::plain::{Accept, not_text, string_error};
use super::{BufferIndex, too_few_values};

/// Lengths that are decoded at a time.
const LENGTHS_MAX: usize = 256;
/// Lengths that [`DeltaByteArray::values_within`] decodes at a time.
const LOOK_AHEAD: usize = 64;

/// A decoder of DELTA_LENGTH_BYTE_ARRAY: all lengths, then all bytes. The views point into the page.
#[derive(Debug, Clone)]
pub(crate) struct DeltaLengthByteArray {
    lengths: Delta<i32>,
    bytes: Bytes,
    at: usize,
    accept: Accept,
}

impl DeltaLengthByteArray {
    /// A decoder of the values that `bytes` are.
    pub(crate) fn new(bytes: Bytes, accept: Accept) -> Result<DeltaLengthByteArray> {
        let at = stream_bytes(&bytes)?;
        Ok(DeltaLengthByteArray { lengths: Delta::new(bytes.slice(..at))?, bytes, at, accept })
    }

    /// The bytes that views point into.
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Makes views of the next values; `buffer` is the number under which the page's bytes will be known.
    pub(crate) fn decode(&mut self, buffer: BufferIndex, out: &mut [u128]) -> Result<()> {
        for out in out.chunks_mut(LENGTHS_MAX) {
            let mut lengths = [0; LENGTHS_MAX];
            let lengths = &mut lengths[..out.len()];
            self.lengths.decode(lengths)?;
            check_lengths(lengths, self.accept.value_bytes_max)?;
            let start = self.at;
            let made = strings::lengths_to_views(lengths, &self.bytes, &mut self.at, buffer, 0, out)
                .map_err(|error| string_error(error, self.accept.value_bytes_max))?;
            if made < out.len() {
                return Err(Error::corrupt("a value reaches beyond the page's end"));
            }
            if self.accept.only_text {
                check_text(&self.bytes[start..self.at], lengths)?;
            }
        }
        Ok(())
    }

    /// The next value's bytes.
    fn next(&mut self) -> Result<&[u8]> {
        let mut length = [0];
        self.lengths.decode(&mut length)?;
        check_lengths(&length, self.accept.value_bytes_max)?;
        let length = usize::try_from(length[0]).map_err(|_| negative_length())?;
        let value =
            self.bytes.get(self.at..).and_then(|rest| rest.get(..length)).ok_or_else(too_few_values)?;
        self.at += length;
        Ok(value)
    }
}

/// A decoder of DELTA_BYTE_ARRAY: each value is a prefix of the one before and a suffix of its own.
#[derive(Debug, Clone)]
pub(crate) struct DeltaByteArray {
    prefixes: Delta<i32>,
    suffixes: DeltaLengthByteArray,
    /// The value before.
    last: Vec<u8>,
    accept: Accept,
}

impl DeltaByteArray {
    /// A decoder of the values that `bytes` are.
    pub(crate) fn new(bytes: Bytes, accept: Accept) -> Result<DeltaByteArray> {
        let prefixes_end = stream_bytes(&bytes)?;
        let prefixes = Delta::new(bytes.slice(..prefixes_end))?;
        let suffixes =
            DeltaLengthByteArray::new(bytes.slice(prefixes_end..), Accept { only_text: false, ..accept })?;
        Ok(DeltaByteArray { prefixes, suffixes, last: Vec::new(), accept })
    }

    /// Takes the first prefix to be one of `last`, the last value of the page before: see [`prefixes_go_on`].
    pub(crate) fn go_on_from(&mut self, last: Vec<u8>) {
        self.last = last;
    }

    /// The last value.
    pub(crate) fn into_last(self) -> Vec<u8> {
        self.last
    }

    /// How many of the next `count` values are at most `bytes_max` bytes in all; at least one. All of them, should there be
    /// fewer values than that.
    ///
    /// Prefixes make long values of few bytes: whoever builds values must stop in time, and cannot after the fact.
    pub(crate) fn values_within(&self, count: usize, bytes_max: usize) -> usize {
        let longest = self.last.len() + self.suffixes.bytes.len() - self.suffixes.at;
        if longest.saturating_mul(count) <= bytes_max {
            return count;
        }
        let (mut prefixes, mut suffixes) = (self.prefixes.clone(), self.suffixes.lengths.clone());
        let left = usize::try_from(prefixes.left().min(suffixes.left())).unwrap_or(usize::MAX);
        let (mut bytes, mut fit) = (0usize, 0);
        while fit < count.min(left) {
            let (mut prefix, mut suffix) = ([0; LOOK_AHEAD], [0; LOOK_AHEAD]);
            let ahead = LOOK_AHEAD.min(count.min(left) - fit);
            if prefixes.decode(&mut prefix[..ahead]).is_err()
                || suffixes.decode(&mut suffix[..ahead]).is_err()
            {
                // What is wrong is told when the lengths are used.
                return fit.max(1);
            }
            for (&prefix, &suffix) in prefix[..ahead].iter().zip(&suffix[..ahead]) {
                let length = i64::from(prefix).max(0) + i64::from(suffix).max(0);
                bytes = bytes.saturating_add(usize::try_from(length).unwrap_or(usize::MAX));
                if bytes > bytes_max {
                    return fit.max(1);
                }
                fit += 1;
            }
        }
        count
    }

    /// Appends the next value's bytes to `built`, whose own end is not looked at; says how many they are.
    pub(crate) fn append(&mut self, built: &mut Vec<u8>) -> Result<usize> {
        let mut prefix = [0];
        self.prefixes.decode(&mut prefix)?;
        let prefix = usize::try_from(prefix[0]).map_err(|_| negative_length())?;
        if prefix > self.last.len() {
            return Err(Error::corrupt(alloc::format!(
                "a prefix of {prefix} bytes of a value of {}",
                self.last.len()
            )));
        }
        let suffix = self.suffixes.next()?;
        let length = prefix + suffix.len();
        Limits::check("value_bytes", self.accept.value_bytes_max.into(), length as u64)?;
        self.last.truncate(prefix);
        self.last.try_reserve(suffix.len()).map_err(|_| Error::out_of_memory(length))?;
        self.last.extend_from_slice(suffix);
        if self.accept.only_text && !utf8::valid(&self.last) {
            return Err(not_text());
        }
        built.try_reserve(length).map_err(|_| Error::out_of_memory(length))?;
        built.extend_from_slice(&self.last);
        Ok(length)
    }
}

/// True for files by parquet-mr before 1.8.0, which took a page's first prefix from the last value of the page before
/// (PARQUET-246). `created_by` is the footer's.
pub(crate) fn prefixes_go_on(created_by: &str) -> bool {
    let Some(rest) = created_by.strip_prefix("parquet-mr") else { return false };
    // Early ones name no version at all.
    let Some(version) = rest.strip_prefix(" version ") else { return true };
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(major), Some(minor)) => (major, minor) < (1, 8),
        _ => false,
    }
}

/// Checks that values are UTF-8, which stand one after the other and have `lengths`: all together are, and each begins with a
/// character.
fn check_text(values: &[u8], lengths: &[i32]) -> Result<()> {
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
    Limits::check("value_bytes", value_bytes_max.into(), longest.into())
}

fn negative_length() -> Error {
    Error::corrupt("a negative length of a value or prefix")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCEPT: Accept = Accept { value_bytes_max: 100, only_text: false };

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

    fn page(prefixes: &[i8], lengths: &[i8], bytes: &[u8]) -> Bytes {
        let mut page = stream(prefixes);
        page.extend(stream(lengths));
        page.extend(bytes);
        page.into()
    }

    #[test]
    fn the_example_of_the_document() {
        let page = page(&[0, 2, 0, 3], &[5, 3, 5, 5], b"axisbeanbabblesble"[..].into());
        // axis, axle, babble, babyhood: made of axis|le|babble|yhood.
        let page_of_words = super::tests::page(&[0, 2, 0, 3], &[4, 2, 6, 5], b"axislebabbleyhood");
        let mut words = DeltaByteArray::new(page_of_words, ACCEPT).unwrap();
        let mut built = Vec::new();
        let lengths: Vec<usize> = (0..4).map(|_| words.append(&mut built).unwrap()).collect();
        assert_eq!(
            (lengths.as_slice(), built.as_slice()),
            (&[4, 4, 6, 8][..], &b"axisaxlebabblebabyhood"[..])
        );
        assert!(words.append(&mut built).is_err());
        // Lengths of 18 bytes in all are all there is.
        let mut others = DeltaByteArray::new(page, ACCEPT).unwrap();
        assert_eq!((0..4).map(|_| others.append(&mut built).unwrap()).sum::<usize>(), 5 + 5 + 5 + 8);
    }

    #[test]
    fn values_are_counted_before_they_are_built() {
        // Values of 9, 10, 11 and 12 bytes.
        let four = page(&[0, 9, 10, 11], &[9, 1, 1, 1], b"123456789abc");
        let mut decoder = DeltaByteArray::new(four, ACCEPT).unwrap();
        for (bytes_max, fit) in [(0, 1), (9, 1), (18, 1), (19, 2), (30, 3), (41, 3), (42, 4), (1000, 4)] {
            assert_eq!(decoder.values_within(4, bytes_max), fit, "{bytes_max} bytes");
        }
        // Nulls make rows more than values.
        assert_eq!((decoder.values_within(50, 42), decoder.values_within(50, 30)), (50, 3));
        let mut built = Vec::new();
        assert_eq!((0..3).map(|_| decoder.append(&mut built).unwrap()).sum::<usize>(), 30);
        assert_eq!((decoder.values_within(1, 0), decoder.values_within(9, 12)), (1, 9));
    }

    #[test]
    fn text_is_checked_value_by_value() {
        let texts = |lengths: &[i8], bytes: &[u8]| {
            let mut page = stream(lengths);
            page.extend(bytes);
            let accept = Accept { only_text: true, ..ACCEPT };
            DeltaLengthByteArray::new(page.into(), accept).unwrap().decode(0, &mut [0; 2][..lengths.len()])
        };
        assert!(texts(&[2, 1], "éa".as_bytes()).is_ok());
        // Together they are UTF-8, but a character is cut in two.
        assert_eq!(texts(&[1, 2], "éa".as_bytes()).unwrap_err().message(), "text that is not UTF-8");
        assert!(texts(&[1, 1], b"a\xff").is_err());
        let accept = Accept { only_text: true, ..ACCEPT };
        let mut shared = DeltaByteArray::new(page(&[0, 1], &[2, 1], b"\xc3\xa9\xaa"), accept).unwrap();
        let mut built = Vec::new();
        assert!(shared.append(&mut built).is_ok() && shared.append(&mut built).is_ok());
        assert_eq!(built, "éê".as_bytes());
        let mut cut = DeltaByteArray::new(page(&[0, 1], &[2, 1], b"\xc3\xa9a"), accept).unwrap();
        assert!(cut.append(&mut built).is_ok() && cut.append(&mut built).is_err());
    }

    #[test]
    fn bad_lengths() {
        let append = |prefixes: &[i8], lengths: &[i8], bytes: &[u8]| {
            let mut decoder =
                DeltaByteArray::new(page(prefixes, lengths, bytes), Accept { value_bytes_max: 6, ..ACCEPT })
                    .unwrap();
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
    fn a_page_that_goes_on_from_the_one_before() {
        let mut first = DeltaByteArray::new(page(&[0, 3], &[5, 1], b"abcdex"), ACCEPT).unwrap();
        let mut built = Vec::new();
        assert_eq!((first.append(&mut built).unwrap(), first.append(&mut built).unwrap()), (5, 4));
        let mut second = DeltaByteArray::new(page(&[4, 5], &[1, 0], b"y"), ACCEPT).unwrap();
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
        let mut decoder = DeltaLengthByteArray::new(bytes.into(), ACCEPT).unwrap();
        let error = decoder.decode(0, &mut [0; 3]).unwrap_err();
        assert_eq!(error.message(), "a value reaches beyond the page's end");
    }

    #[test]
    fn lengths_become_views() {
        let mut bytes = stream(&[2, 0, 13]);
        let start = bytes.len();
        bytes.extend(b"ab0123456789abc");
        let mut decoder = DeltaLengthByteArray::new(bytes.into(), ACCEPT).unwrap();
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
