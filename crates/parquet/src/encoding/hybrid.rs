//! RLE / bit-packing hybrid: levels, booleans and dictionary indices.
//!
//! Source: `Encodings.md`, "Run Length Encoding / Bit-Packing Hybrid".

pub(crate) mod encode;

use marquetry_base::{Error, Result};
use marquetry_kernels::gather::Segmented;
use marquetry_kernels::{Plain, bits, dictionary, gather, unpack};

use super::stream::Stream;
use super::{VARINT_BYTES_MAX, too_few_values, varint};

/// A decoder of hybrid runs of numbers of one width.
#[derive(Debug, Clone)]
pub(crate) struct Hybrid {
    stream: Stream,
    width: u32,
    run: Run,
    /// Runs that began since they were last [taken](Hybrid::take_runs).
    begun: usize,
}

#[derive(Debug, Clone, Copy)]
enum Run {
    /// `left` times `value`.
    Repeated { value: u32, left: usize },
    /// `left` bit-packed numbers. The next is number `first`, below eight, of the group at the stream's position.
    Packed { first: usize, left: usize },
}

/// Runs that may begin at a time: a run of one value costs many times as much as a value of a long run.
const RUNS_MAX: usize = 512;

/// Bits of a register.
const WORD_BITS: usize = 64;

/// Bits of a run that fit into a register after those of an incomplete byte.
const SHORT_BITS: usize = 56;

/// The widest numbers that the encoding has.
pub(crate) const WIDTH_MAX: u32 = 32;

impl Hybrid {
    /// A decoder of runs that are all of `stream`.
    pub(crate) fn new(stream: Stream, width: u32) -> Hybrid {
        let run = Run::Repeated { value: 0, left: 0 };
        Hybrid { stream, width: width.min(WIDTH_MAX), run, begun: 0 }
    }

    /// The stream that it reads.
    pub(crate) fn stream(&mut self) -> &mut Stream {
        &mut self.stream
    }

    /// The same, to look at.
    pub(crate) fn peek_stream(&self) -> &Stream {
        &self.stream
    }

    /// Runs that began since the last call. After too many, nothing is decoded until this is called.
    pub(crate) fn take_runs(&mut self) -> usize {
        core::mem::take(&mut self.begun)
    }

    /// The current run, as far as it has arrived; the next one at its end. `None` if the stream needs bytes first, and
    /// after [`RUNS_MAX`] runs.
    #[inline]
    fn run(&mut self) -> Result<Option<Run>> {
        if let Run::Repeated { left: 0, .. } | Run::Packed { left: 0, .. } = self.run
            && !self.next_run()?
        {
            return Ok(None);
        }
        let Run::Packed { first, left } = self.run else { return Ok(Some(self.run)) };
        let width = self.width as usize;
        // Complete groups of eight numbers; the last one's padding may be cut off at the page's end.
        let bits = self.stream.there().len().saturating_mul(8);
        match bits.checked_div(width).map_or(left, |there| there.saturating_sub(first).min(left)) {
            0 if self.stream.has(width) => Err(too_few_values()),
            0 => Ok(None),
            left => Ok(Some(Run::Packed { first, left })),
        }
    }

    /// Begins the next run. False if the stream needs bytes first, and after [`RUNS_MAX`] runs.
    fn next_run(&mut self) -> Result<bool> {
        if self.begun == RUNS_MAX {
            return Ok(false);
        }
        if self.stream.left() == 0 {
            return Err(too_few_values());
        }
        let value_bytes = (self.width as usize).div_ceil(8);
        if !self.stream.has(VARINT_BYTES_MAX + value_bytes) {
            return Ok(false);
        }
        let there = self.stream.there();
        let mut at = 0;
        let header = varint(there, &mut at)?;
        let count = usize::try_from(header >> 1).unwrap_or(usize::MAX);
        if count == 0 {
            return Err(Error::corrupt("a run of no values"));
        }
        self.run = if header & 1 == 1 {
            Run::Packed { first: 0, left: count.saturating_mul(8) }
        } else {
            let raw = there.get(at..at + value_bytes).ok_or_else(too_few_values)?;
            let mut value = [0; 4];
            value[..value_bytes].copy_from_slice(raw);
            at += value_bytes;
            Run::Repeated { value: u32::from_le_bytes(value), left: count }
        };
        self.stream.advance(at);
        self.begun += 1;
        Ok(true)
    }

    #[inline]
    fn advance(&mut self, values: usize) {
        match &mut self.run {
            Run::Repeated { left, .. } => *left -= values,
            Run::Packed { first, left } => {
                let next = *first + values;
                *left -= values;
                *first = next % 8;
                self.stream.advance(next / 8 * self.width as usize);
            }
        }
    }

    /// Decodes numbers, as many as have arrived.
    pub(crate) fn decode(&mut self, out: &mut [u32]) -> Result<usize> {
        let mut done = 0;
        while done < out.len() {
            let Some(run) = self.run()? else { break };
            let out = &mut out[done..];
            let take = match run {
                Run::Repeated { value, left } => {
                    let take = left.min(out.len());
                    out[..take].fill(value);
                    take
                }
                Run::Packed { first, left } => {
                    let take = left.min(out.len());
                    unpack::u32_from(self.width, self.stream.there(), first, &mut out[..take])
                        .map_err(|_| too_few_values())?;
                    take
                }
            };
            self.advance(take);
            done += take;
        }
        Ok(done)
    }

    /// Skips numbers, as many as have arrived, by runs.
    pub(crate) fn skip(&mut self, values: usize) -> Result<usize> {
        let mut done = 0;
        while done < values {
            let Some(Run::Repeated { left, .. } | Run::Packed { left, .. }) = self.run()? else { break };
            let take = left.min(values - done);
            self.advance(take);
            done += take;
        }
        Ok(done)
    }

    /// Skips numbers of one bit, as many as have arrived. Returns how many, and how many are ones.
    pub(crate) fn skip_bits(&mut self, values: usize) -> Result<(usize, usize)> {
        let (mut done, mut ones) = (0, 0);
        while done < values {
            let Some(run) = self.run()? else { break };
            let (Run::Repeated { left, .. } | Run::Packed { left, .. }) = run;
            let take = left.min(values - done);
            ones += match run {
                Run::Repeated { value: 0, .. } => 0,
                Run::Repeated { value: 1, .. } => take,
                Run::Repeated { .. } => return Err(Error::corrupt("a level or boolean beyond 1")),
                Run::Packed { first, .. } => {
                    bits::count_ones(self.stream.there(), first, take).map_err(|_| no_room())?
                }
            };
            self.advance(take);
            done += take;
        }
        Ok((done, ones))
    }

    /// Decodes levels of at most `max`, as many as have arrived.
    pub(crate) fn decode_levels(&mut self, max: u8, out: &mut [u8]) -> Result<usize> {
        let mut done = 0;
        while done < out.len() {
            let Some(run) = self.run()? else { break };
            let out = &mut out[done..];
            let take = match run {
                Run::Repeated { value, left } => {
                    let level = u8::try_from(value).ok().filter(|&level| level <= max);
                    let take = left.min(out.len());
                    out[..take].fill(level.ok_or_else(|| beyond_levels(value, max))?);
                    take
                }
                Run::Packed { first, left } => {
                    let take = left.min(out.len());
                    let out = &mut out[..take];
                    unpack::u8_from(self.width, self.stream.there(), first, out)
                        .map_err(|_| too_few_values())?;
                    // No level of this width can be larger.
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
            done += take;
        }
        Ok(done)
    }

    /// Decodes numbers of one bit into a bitmap at bit `at`, as many as have arrived. Returns how many, and how many
    /// are ones.
    pub(crate) fn decode_bits(&mut self, out: &mut [u8], at: usize, values: usize) -> Result<(usize, usize)> {
        self.bits::<true>(out, at, values)
    }

    /// The same where nobody asks how many are ones: to count them takes as long as to copy them.
    pub(crate) fn decode_booleans(&mut self, out: &mut [u8], at: usize, values: usize) -> Result<usize> {
        self.bits::<false>(out, at, values).map(|(done, _)| done)
    }

    /// Decodes bits; counts ones if `COUNTS`.
    fn bits<const COUNTS: bool>(
        &mut self,
        out: &mut [u8],
        at: usize,
        values: usize,
    ) -> Result<(usize, usize)> {
        let (mut done, mut ones) = (0, 0);
        while done < values {
            let (short, short_ones) = self.short_runs::<COUNTS>(out, at + done, values - done);
            (done, ones) = (done + short, ones + short_ones);
            let Some(run) = self.run()? else { break };
            let take = match run {
                Run::Repeated { value, left } => {
                    if value > 1 {
                        return Err(Error::corrupt("a level or boolean beyond 1"));
                    }
                    let take = left.min(values - done);
                    bits::fill(out, at + done, take, value == 1).map_err(|_| no_room())?;
                    ones += if value == 1 { take } else { 0 };
                    take
                }
                Run::Packed { first, left } => {
                    let take = left.min(values - done);
                    let packed = self.stream.there();
                    bits::copy(packed, first, out, at + done, take).map_err(|_| no_room())?;
                    if COUNTS {
                        ones += bits::count_ones(packed, first, take).map_err(|_| no_room())?;
                    }
                    take
                }
            };
            self.advance(take);
            done += take;
        }
        Ok((done, ones))
    }

    /// Decodes the following short runs of bits in a register. Returns how many bits, and how many are ones. Anything
    /// unusual is left to the caller: a long or invalid run, the stream's end, the last of the requested bits.
    #[inline]
    fn short_runs<const COUNTS: bool>(&mut self, out: &mut [u8], at: usize, values: usize) -> (usize, usize) {
        let (Run::Repeated { left: 0, .. } | Run::Packed { left: 0, .. }) = self.run else { return (0, 0) };
        if self.width != 1 || values <= WORD_BITS {
            return (0, 0);
        }
        let (there, last) = (self.stream.there(), (at + values - WORD_BITS) / 8);
        let (mut from, mut to, mut filled, mut ones) = (0, at / 8, at % 8, 0);
        let mut word = out.get(to).map_or(0, |&begun| u64::from(begun) & ((1 << filled) - 1));
        while self.begun < RUNS_MAX && to < last {
            let Some([header, run @ ..]) = there.get(from..).and_then(|there| there.first_chunk::<9>())
            else {
                break;
            };
            let (header, run) = (usize::from(*header), u64::from_le_bytes(*run));
            let (bits, count, bytes) = match header & 1 {
                1 => (run, header / 2 * 8, header / 2),
                _ if run & 0xff <= 1 => ((run & 1).wrapping_neg(), header / 2, 1),
                _ => break,
            };
            if count == 0 || count > SHORT_BITS {
                break;
            }
            let bits = bits & ((1 << count) - 1);
            word |= bits << filled;
            ones += if COUNTS { bits.count_ones() as usize } else { 0 };
            let Some(room) = out.get_mut(to..).and_then(|out| out.first_chunk_mut::<8>()) else { break };
            *room = word.to_le_bytes();
            filled += count;
            to += filled / 8;
            word >>= filled & !7;
            filled %= 8;
            from += 1 + bytes;
            self.begun += 1;
        }
        self.stream.advance(from);
        (to * 8 + filled - at, ones)
    }

    /// Decodes indices and looks them up, as many as have arrived.
    pub(crate) fn look_up<T: Plain>(&mut self, dictionary: &[T], out: &mut [T]) -> Result<usize> {
        let mut done = 0;
        while done < out.len() {
            let Some(run) = self.run()? else { break };
            let out = &mut out[done..];
            let take = match run {
                Run::Repeated { value, left } => {
                    let take = left.min(out.len());
                    let value =
                        dictionary.get(value as usize).ok_or_else(|| beyond_dictionary(dictionary.len()))?;
                    out[..take].fill(*value);
                    take
                }
                Run::Packed { first, left } => {
                    let take = left.min(out.len());
                    let packed = self.stream.there();
                    dictionary::decode(self.width, packed, first, dictionary, &mut out[..take])
                        .map_err(|_| beyond_dictionary(dictionary.len()))?;
                    take
                }
            };
            self.advance(take);
            done += take;
        }
        Ok(done)
    }

    /// Decodes indices and looks them up in a dictionary in segments, as many as have arrived.
    pub(crate) fn look_up_segmented<T: Plain>(
        &mut self,
        dictionary: Segmented<'_, T>,
        out: &mut [T],
    ) -> Result<usize> {
        let beyond = || beyond_dictionary(dictionary.entries());
        let mut done = 0;
        while done < out.len() {
            let Some(run) = self.run()? else { break };
            let out = &mut out[done..];
            let take = match run {
                Run::Repeated { value, left } => {
                    let take = left.min(out.len());
                    out[..take].fill(dictionary.get(value).ok_or_else(beyond)?);
                    take
                }
                Run::Packed { first, left } => {
                    let take = left.min(out.len());
                    let packed = self.stream.there();
                    dictionary::decode_segmented(self.width, packed, first, dictionary, &mut out[..take])
                        .map_err(|_| beyond())?;
                    take
                }
            };
            self.advance(take);
            done += take;
        }
        Ok(done)
    }

    /// Decodes indices of byte strings of one width and looks them up, as many as have arrived. `indices` is scratch
    /// memory. A dictionary of values of no bytes has entries nevertheless.
    pub(crate) fn look_up_fixed(
        &mut self,
        (dictionary, entries): (&[u8], usize),
        width: usize,
        indices: &mut [u32],
        out: &mut [u8],
    ) -> Result<usize> {
        let values = self.decode(indices)?;
        if width == 0 {
            let is_there = |index: &u32| (*index as usize) < entries;
            return if indices[..values].iter().all(is_there) {
                Ok(values)
            } else {
                Err(beyond_dictionary(entries))
            };
        }
        gather::fixed(dictionary, width, &indices[..values], &mut out[..values * width])
            .map_err(|_| beyond_dictionary(entries))?;
        Ok(values)
    }
}

/// The error for a bitmap that is too short.
fn no_room() -> Error {
    Error::internal("no room for levels or booleans")
}

/// The error for a level above the leaf's maximum.
pub(crate) fn beyond_levels(level: u32, max: u8) -> Error {
    Error::corrupt(alloc::format!("the level {level}, where {max} is the largest"))
}

/// The error for an index beyond the dictionary.
pub(crate) fn beyond_dictionary(entries: usize) -> Error {
    Error::corrupt(alloc::format!("an index beyond a dictionary of {entries} entries"))
}

#[cfg(test)]
mod tests {
    use super::super::stream::{feed, in_segments};
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use marquetry_base::Bytes;

    /// 3 times 5, then 0..8 bit-packed with 3 bits (the example of the format's document), then 300 times 7.
    const RUNS: [u8; 9] = [0x06, 5, 0x03, 0x88, 0xc6, 0xfa, 0xd8, 0x04, 7];

    fn expected() -> Vec<u32> {
        let mut all = vec![5, 5, 5, 0, 1, 2, 3, 4, 5, 6, 7];
        all.extend([7; 300]);
        all
    }

    fn hybrid(bytes: &'static [u8], width: u32) -> Hybrid {
        Hybrid::new(Bytes::from_static(bytes).into(), width)
    }

    #[test]
    fn any_slices_and_segments() {
        for slice in 1..20 {
            for segment in 1..10 {
                let mut hybrid = Hybrid::new(in_segments(&RUNS, segment), 3);
                let mut all = vec![0; 311];
                for mut out in all.chunks_mut(slice) {
                    while !out.is_empty() {
                        let done = hybrid.decode(out).unwrap();
                        feed(hybrid.stream());
                        out = &mut out[done..];
                    }
                }
                assert_eq!(all, expected());
                assert!(hybrid.decode(&mut [0]).is_err());
            }
        }
    }

    #[test]
    fn numbers_are_stepped_over() {
        for first in 0..311 {
            for segment in [1, 3, 9] {
                let mut hybrid = Hybrid::new(in_segments(&RUNS, segment), 3);
                let mut skipped = 0;
                while skipped < first {
                    skipped += hybrid.skip(first - skipped).unwrap();
                    feed(hybrid.stream());
                }
                let mut next = [0];
                while hybrid.decode(&mut next).unwrap() == 0 {
                    feed(hybrid.stream());
                }
                assert_eq!(next[0], expected()[first]);
            }
        }
        // Ones are counted: 20 times 1, eight bit-packed ones, of which three are set, and 7 times 0.
        let bits: [u8; 6] = [40, 1, 3, 0b0010_0110, 14, 0];
        for first in 0..35 {
            let mut hybrid = Hybrid::new(in_segments(&bits, 2), 1);
            let (mut rows, mut ones) = (0, 0);
            for end in [first, 35] {
                while rows < end {
                    let (some, set) = hybrid.skip_bits(end - rows).unwrap();
                    (rows, ones) = (rows + some, ones + set);
                    feed(hybrid.stream());
                }
            }
            assert_eq!(ones, 23);
        }
    }

    #[test]
    fn long_packed_runs_in_small_segments() {
        // 50 groups of 8 numbers of 13 bits, cut off in the last one, of which five are left.
        let numbers: Vec<u32> = (0..397u32).map(|number| number * 19 % 8192).collect();
        let mut bytes = vec![101];
        let mut packed = vec![0u8; (397 * 13usize).div_ceil(8)];
        for (at, number) in numbers.iter().enumerate() {
            for bit in 0..13 {
                let place = at * 13 + bit;
                packed[place / 8] |= u8::from(number >> bit & 1 == 1) << (place % 8);
            }
        }
        bytes.extend(packed);
        let words: Vec<i64> = (0..8192).collect();
        for segment in [1, 2, 13, 14, 26, 100, 1000] {
            let mut hybrid = Hybrid::new(in_segments(&bytes, segment), 13);
            let mut found = vec![0; 397];
            let mut done = 0;
            while done < 397 {
                let end = (done + 29).min(397);
                done += hybrid.look_up(&words, &mut found[done..end]).unwrap();
                feed(hybrid.stream());
            }
            assert!(found.iter().zip(&numbers).all(|(&found, &number)| found == i64::from(number)));
            assert!(hybrid.decode(&mut [0]).is_err(), "no more than what is there");
        }
    }

    #[test]
    fn runs_are_counted_and_so_many_are_decoded_at_a_time() {
        let ones: Vec<u8> = (0..2000).flat_map(|at| [2, u8::from(at % 3 == 0)]).collect();
        let mut decoder = Hybrid::new(marquetry_base::Bytes::from(ones).into(), 1);
        let (mut all, mut runs) = (Vec::new(), Vec::new());
        while all.len() < 2000 {
            let mut out = vec![9; 2000 - all.len()];
            let done = decoder.decode(&mut out).unwrap();
            assert_eq!(decoder.decode(&mut out[done..]).unwrap(), 0, "more than what is paid for");
            all.extend_from_slice(&out[..done]);
            runs.push(decoder.take_runs());
        }
        assert!(all.iter().copied().eq((0..2000).map(|at| u32::from(at % 3 == 0))));
        assert_eq!(runs, [RUNS_MAX, RUNS_MAX, RUNS_MAX, 2000 - 3 * RUNS_MAX]);
    }

    #[test]
    fn levels() {
        for slice in 1..20 {
            let mut it = hybrid(&RUNS, 3);
            let mut all = vec![0; 311];
            for out in all.chunks_mut(slice) {
                it.decode_levels(7, out).unwrap();
            }
            assert!(all.iter().map(|&level| u32::from(level)).eq(expected()));
            assert!(it.decode_levels(7, &mut [0]).is_err());
        }
        let fails = |max| {
            let mut it = hybrid(&RUNS, 3);
            alloc::string::String::from(it.decode_levels(max, &mut [0; 311]).unwrap_err().message())
        };
        assert_eq!(fails(4), "the level 5, where 4 is the largest");
        assert_eq!(fails(6), "the level 7, where 6 is the largest");
    }

    #[test]
    fn looks_up() {
        let dictionary: Vec<i64> = (0..8).map(|i| i * 100).collect();
        let mut out = vec![0; 311];
        hybrid(&RUNS, 3).look_up(&dictionary, &mut out).unwrap();
        assert!(out.iter().zip(expected()).all(|(&value, index)| value == i64::from(index) * 100));
        let error = hybrid(&RUNS, 3).look_up(&dictionary[..7], &mut out).unwrap_err();
        assert_eq!(error.message(), "an index beyond a dictionary of 7 entries");

        let segments: Vec<Vec<i64>> = dictionary.chunks(2).map(<[i64]>::to_vec).collect();
        let mut again = vec![0; 311];
        let segmented = Segmented::new(&segments, 1).unwrap();
        hybrid(&RUNS, 3).look_up_segmented(segmented, &mut again).unwrap();
        assert!(again.iter().zip(expected()).all(|(&value, index)| value == i64::from(index) * 100));
        for segments in [&segments[..3], &segments[..2]] {
            let segmented = Segmented::new(segments, 1).unwrap();
            let error = hybrid(&RUNS, 3).look_up_segmented(segmented, &mut again).unwrap_err();
            assert!(error.message().starts_with("an index beyond a dictionary of "));
        }
    }

    #[test]
    fn bits_of_any_offset() {
        // 5 ones, 8 bit-packed ones 0b1010_0101, 20 zeros.
        let bytes = Bytes::from_static(&[0x0a, 1, 0x03, 0b1010_0101, 0x28, 0]);
        for offset in 0..9 {
            let mut out = [0xff; 8];
            let mut hybrid = Hybrid::new(bytes.clone().into(), 1);
            assert_eq!(hybrid.decode_bits(&mut out, offset, 33).unwrap(), (33, 9));
            let got: Vec<bool> =
                (0..33).map(|i| out[(offset + i) / 8] >> ((offset + i) % 8) & 1 == 1).collect();
            assert_eq!(got[..5], [true; 5]);
            assert_eq!(got[5..13], [true, false, true, false, false, true, false, true]);
            assert_eq!(got[13..], [false; 20]);
            let mut again = [0xff; 8];
            let mut hybrid = Hybrid::new(bytes.clone().into(), 1);
            assert_eq!(hybrid.decode_booleans(&mut again, offset, 33).unwrap(), 33);
            assert_eq!(again, out);
        }
        assert!(hybrid(&[0x04, 2], 1).decode_bits(&mut [0], 0, 1).is_err());
    }

    #[test]
    fn bad_runs() {
        let fails = |bytes: &'static [u8], width| hybrid(bytes, width).decode(&mut [0; 9]).unwrap_err();
        assert_eq!(fails(&[0x00], 3).message(), "a run of no values");
        assert_eq!(fails(&[0x01], 3).message(), "a run of no values");
        assert_eq!(fails(&[0x03], 3).message(), "the page ends before its last value");
        assert_eq!(fails(&[0x12], 9).message(), "the page ends before its last value");
        assert_eq!(fails(&[0x03, 1, 2, 3], 3).message(), "the page ends before its last value");
        assert_eq!(fails(&[0xff; 12], 3).message(), "a number in the page is longer than 64 bits");
    }

    #[test]
    fn a_cut_last_group_gives_what_is_there() {
        let mut it = hybrid(&[0x03, 0x88], 3);
        let mut out = [9; 2];
        it.decode(&mut out).unwrap();
        assert_eq!(out, [0, 1]);
        assert!(it.decode(&mut [0]).is_err());
    }
}
