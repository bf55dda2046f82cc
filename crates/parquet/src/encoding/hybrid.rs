//! RLE / bit-packing hybrid: levels, booleans and dictionary indices.
//!
//! Source: `Encodings.md`, "Run Length Encoding / Bit-Packing Hybrid".

use marquetry_base::{Bytes, Error, Result};
use marquetry_kernels::gather::Segmented;
use marquetry_kernels::{Plain, bits, dictionary, gather, unpack};

use super::{too_few_values, varint};

/// A decoder of hybrid runs of numbers of one width.
#[derive(Debug, Clone)]
pub(crate) struct Hybrid {
    bytes: Bytes,
    at: usize,
    width: u32,
    run: Run,
}

#[derive(Debug, Clone, Copy)]
enum Run {
    /// `left` times `value`.
    Repeated { value: u32, left: usize },
    /// `left` packed numbers, the next of which is number `first` of those that start at byte `start`.
    Packed { start: usize, first: usize, left: usize },
}

/// The widest numbers that the encoding has.
pub(crate) const WIDTH_MAX: u32 = 32;

impl Hybrid {
    /// A decoder of runs that are all of `bytes`.
    pub(crate) fn new(bytes: Bytes, width: u32) -> Hybrid {
        Hybrid { bytes, at: 0, width: width.min(WIDTH_MAX), run: Run::Repeated { value: 0, left: 0 } }
    }

    /// Starts the next run if the current one is at its end.
    fn run(&mut self) -> Result<Run> {
        if let Run::Repeated { left: 1.., .. } | Run::Packed { left: 1.., .. } = self.run {
            return Ok(self.run);
        }
        if self.at >= self.bytes.len() {
            return Err(too_few_values());
        }
        let header = varint(&self.bytes, &mut self.at)?;
        let count = usize::try_from(header >> 1).unwrap_or(usize::MAX);
        if count == 0 {
            return Err(Error::corrupt("a run of no values"));
        }
        let rest = self.bytes.len() - self.at;
        let width = self.width as usize;
        self.run = if header & 1 == 1 {
            // Groups of eight. The last group's padding may be cut off at the page's end.
            let packed_bytes = count.saturating_mul(width).min(rest);
            let values = count.saturating_mul(8);
            let left = (packed_bytes * 8).checked_div(width).map_or(values, |there| values.min(there));
            if left == 0 {
                return Err(too_few_values());
            }
            let start = self.at;
            self.at += packed_bytes;
            Run::Packed { start, first: 0, left }
        } else {
            let value_bytes = width.div_ceil(8);
            let raw = self.bytes.get(self.at..self.at + value_bytes).ok_or_else(too_few_values)?;
            let mut value = [0; 4];
            value[..value_bytes].copy_from_slice(raw);
            self.at += value_bytes;
            Run::Repeated { value: u32::from_le_bytes(value), left: count }
        };
        Ok(self.run)
    }

    fn advance(&mut self, values: usize) {
        match &mut self.run {
            Run::Repeated { left, .. } => *left -= values,
            Run::Packed { first, left, .. } => {
                *first += values;
                *left -= values;
            }
        }
    }

    /// Decodes numbers.
    pub(crate) fn decode(&mut self, mut out: &mut [u32]) -> Result<()> {
        while !out.is_empty() {
            let run = self.run()?;
            let take = match run {
                Run::Repeated { value, left } => {
                    let take = left.min(out.len());
                    out[..take].fill(value);
                    take
                }
                Run::Packed { start, first, left } => {
                    let take = left.min(out.len());
                    unpack::u32_from(self.width, &self.bytes[start..], first, &mut out[..take])
                        .map_err(|_| too_few_values())?;
                    take
                }
            };
            self.advance(take);
            out = &mut out[take..];
        }
        Ok(())
    }

    /// Decodes levels, of which `max` is the largest.
    pub(crate) fn decode_levels(&mut self, max: u8, mut out: &mut [u8]) -> Result<()> {
        while !out.is_empty() {
            let run = self.run()?;
            let take = match run {
                Run::Repeated { value, left } => {
                    let level = u8::try_from(value).ok().filter(|&level| level <= max);
                    let take = left.min(out.len());
                    out[..take].fill(level.ok_or_else(|| beyond_levels(value, max))?);
                    take
                }
                Run::Packed { start, first, left } => {
                    let take = left.min(out.len());
                    let out = &mut out[..take];
                    unpack::u8_from(self.width, &self.bytes[start..], first, out)
                        .map_err(|_| too_few_values())?;
                    // Of so many bits no level can be larger.
                    if u32::from(max) + 1 < 1 << self.width {
                        let largest = out.iter().fold(0, |largest, &level| level.max(largest));
                        if largest > max {
                            return Err(beyond_levels(largest.into(), max));
                        }
                    }
                    take
                }
            };
            self.advance(take);
            out = &mut out[take..];
        }
        Ok(())
    }

    /// Decodes numbers of one bit into a bitmap at bit `at`; says how many are ones.
    pub(crate) fn decode_bits(&mut self, out: &mut [u8], mut at: usize, mut values: usize) -> Result<usize> {
        let mut ones = 0;
        while values > 0 {
            let run = self.run()?;
            let take = match run {
                Run::Repeated { value, left } => {
                    if value > 1 {
                        return Err(Error::corrupt("a level or boolean beyond 1"));
                    }
                    let take = left.min(values);
                    bits::fill(out, at, take, value == 1).map_err(|_| no_room())?;
                    ones += if value == 1 { take } else { 0 };
                    take
                }
                Run::Packed { start, first, left } => {
                    let take = left.min(values);
                    bits::copy(&self.bytes[start..], first, out, at, take).map_err(|_| no_room())?;
                    ones += bits::count_ones(&self.bytes[start..], first, take).map_err(|_| no_room())?;
                    take
                }
            };
            self.advance(take);
            at += take;
            values -= take;
        }
        Ok(ones)
    }

    /// Decodes indices and looks them up.
    pub(crate) fn look_up<T: Plain>(&mut self, dictionary: &[T], mut out: &mut [T]) -> Result<()> {
        while !out.is_empty() {
            let run = self.run()?;
            let take = match run {
                Run::Repeated { value, left } => {
                    let take = left.min(out.len());
                    let value =
                        dictionary.get(value as usize).ok_or_else(|| beyond_dictionary(dictionary.len()))?;
                    out[..take].fill(*value);
                    take
                }
                Run::Packed { start, first, left } => {
                    let take = left.min(out.len());
                    dictionary::decode(self.width, &self.bytes[start..], first, dictionary, &mut out[..take])
                        .map_err(|_| beyond_dictionary(dictionary.len()))?;
                    take
                }
            };
            self.advance(take);
            out = &mut out[take..];
        }
        Ok(())
    }

    /// Decodes indices and looks them up in a dictionary in segments.
    pub(crate) fn look_up_segmented<T: Plain>(
        &mut self,
        dictionary: Segmented<'_, T>,
        mut out: &mut [T],
    ) -> Result<()> {
        let beyond = || beyond_dictionary(dictionary.entries());
        while !out.is_empty() {
            let run = self.run()?;
            let take = match run {
                Run::Repeated { value, left } => {
                    let take = left.min(out.len());
                    out[..take].fill(dictionary.get(value).ok_or_else(beyond)?);
                    take
                }
                Run::Packed { start, first, left } => {
                    let take = left.min(out.len());
                    let packed = &self.bytes[start..];
                    dictionary::decode_segmented(self.width, packed, first, dictionary, &mut out[..take])
                        .map_err(|_| beyond())?;
                    take
                }
            };
            self.advance(take);
            out = &mut out[take..];
        }
        Ok(())
    }

    /// Decodes indices of byte strings of one width and looks them up. `indices` is room to work in.
    pub(crate) fn look_up_fixed(
        &mut self,
        dictionary: &[u8],
        width: usize,
        indices: &mut [u32],
        out: &mut [u8],
    ) -> Result<()> {
        self.decode(indices)?;
        gather::fixed(dictionary, width, indices, out)
            .map_err(|_| beyond_dictionary(dictionary.len() / width.max(1)))
    }
}

/// A bitmap too short for what it was to take.
fn no_room() -> Error {
    Error::internal("no room for levels or booleans")
}

/// A level that the leaf cannot have.
pub(crate) fn beyond_levels(level: u32, max: u8) -> Error {
    Error::corrupt(alloc::format!("the level {level}, where {max} is the largest"))
}

/// An index that the dictionary does not have.
pub(crate) fn beyond_dictionary(entries: usize) -> Error {
    Error::corrupt(alloc::format!("an index beyond a dictionary of {entries} entries"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    /// 3 times 5, then 0..8 packed in 3 bits (the example of the format's document), then 300 times 7.
    const RUNS: [u8; 9] = [0x06, 5, 0x03, 0x88, 0xc6, 0xfa, 0xd8, 0x04, 7];

    fn expected() -> Vec<u32> {
        let mut all = vec![5, 5, 5, 0, 1, 2, 3, 4, 5, 6, 7];
        all.extend([7; 300]);
        all
    }

    #[test]
    fn any_slices() {
        for slice in 1..20 {
            let mut hybrid = Hybrid::new(Bytes::from_static(&RUNS), 3);
            let mut all = vec![0; 311];
            for out in all.chunks_mut(slice) {
                hybrid.decode(out).unwrap();
            }
            assert_eq!(all, expected());
            assert!(hybrid.decode(&mut [0]).is_err());
        }
    }

    #[test]
    fn levels() {
        for slice in 1..20 {
            let mut hybrid = Hybrid::new(Bytes::from_static(&RUNS), 3);
            let mut all = vec![0; 311];
            for out in all.chunks_mut(slice) {
                hybrid.decode_levels(7, out).unwrap();
            }
            assert!(all.iter().map(|&level| u32::from(level)).eq(expected()));
            assert!(hybrid.decode_levels(7, &mut [0]).is_err());
        }
        let fails = |max| {
            let mut hybrid = Hybrid::new(Bytes::from_static(&RUNS), 3);
            alloc::string::String::from(hybrid.decode_levels(max, &mut [0; 311]).unwrap_err().message())
        };
        assert_eq!(fails(4), "the level 5, where 4 is the largest");
        assert_eq!(fails(6), "the level 7, where 6 is the largest");
    }

    #[test]
    fn looks_up() {
        let dictionary: Vec<i64> = (0..8).map(|i| i * 100).collect();
        let mut out = vec![0; 311];
        Hybrid::new(Bytes::from_static(&RUNS), 3).look_up(&dictionary, &mut out).unwrap();
        assert!(out.iter().zip(expected()).all(|(&value, index)| value == i64::from(index) * 100));
        let error =
            Hybrid::new(Bytes::from_static(&RUNS), 3).look_up(&dictionary[..7], &mut out).unwrap_err();
        assert_eq!(error.message(), "an index beyond a dictionary of 7 entries");

        let segments: Vec<Vec<i64>> = dictionary.chunks(2).map(<[i64]>::to_vec).collect();
        let mut again = vec![0; 311];
        let segmented = Segmented::new(&segments, 1).unwrap();
        Hybrid::new(Bytes::from_static(&RUNS), 3).look_up_segmented(segmented, &mut again).unwrap();
        assert!(again.iter().zip(expected()).all(|(&value, index)| value == i64::from(index) * 100));
        for segments in [&segments[..3], &segments[..2]] {
            let segmented = Segmented::new(segments, 1).unwrap();
            let error = Hybrid::new(Bytes::from_static(&RUNS), 3)
                .look_up_segmented(segmented, &mut again)
                .unwrap_err();
            assert!(error.message().starts_with("an index beyond a dictionary of "));
        }
    }

    #[test]
    fn bits_of_any_offset() {
        // 5 ones, 8 packed bits 0b1010_0101, 20 zeros.
        let bytes = Bytes::from_static(&[0x0a, 1, 0x03, 0b1010_0101, 0x28, 0]);
        for offset in 0..9 {
            let mut out = [0xff; 8];
            let ones = Hybrid::new(bytes.clone(), 1).decode_bits(&mut out, offset, 33).unwrap();
            assert_eq!(ones, 9);
            let got: Vec<bool> =
                (0..33).map(|i| out[(offset + i) / 8] >> ((offset + i) % 8) & 1 == 1).collect();
            assert_eq!(got[..5], [true; 5]);
            assert_eq!(got[5..13], [true, false, true, false, false, true, false, true]);
            assert_eq!(got[13..], [false; 20]);
        }
        assert!(Hybrid::new(Bytes::from_static(&[0x04, 2]), 1).decode_bits(&mut [0], 0, 1).is_err());
    }

    #[test]
    fn bad_runs() {
        let fails = |bytes: &'static [u8], width| {
            Hybrid::new(Bytes::from_static(bytes), width).decode(&mut [0; 9]).unwrap_err()
        };
        assert_eq!(fails(&[0x00], 3).message(), "a run of no values");
        assert_eq!(fails(&[0x01], 3).message(), "a run of no values");
        assert_eq!(fails(&[0x03], 3).message(), "the page ends before its last value");
        assert_eq!(fails(&[0x12], 9).message(), "the page ends before its last value");
        assert_eq!(fails(&[0x03, 1, 2, 3], 3).message(), "the page ends before its last value");
        assert_eq!(fails(&[0xff; 12], 3).message(), "a number in the page is longer than 64 bits");
    }

    #[test]
    fn a_cut_last_group_gives_what_is_there() {
        let mut hybrid = Hybrid::new(Bytes::from_static(&[0x03, 0x88]), 3);
        let mut out = [9; 2];
        hybrid.decode(&mut out).unwrap();
        assert_eq!(out, [0, 1]);
        assert!(hybrid.decode(&mut [0]).is_err());
    }
}
