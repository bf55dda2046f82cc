//! Writing the hybrid of runs and bit-packed numbers.
//!
//! A page is examined in groups of eight. Equal numbers from the start of a group on become a run, if that takes fewer
//! bytes than bit-packing them; otherwise the group is bit-packed. The result depends only on the numbers, not on how
//! they are split into calls.

use alloc::vec::Vec;

use marquetry_base::{Budget, Error, Price, Result, cast};
use marquetry_kernels::{bits, pack};

use super::super::output::{Body, Output};
use super::super::{VARINT_BYTES_MAX, put_varint};

/// The price of a number, wherever runs end.
pub(crate) const NUMBER_PRICE: Price = Price::per_kilovalue(2 << 10);
/// The price of a number of one bit, from a bitmap.
const BIT_PRICE: Price = Price::per_kilovalue(1500);
/// The price of bits that are all equal.
const SAME_PRICE: Price = Price::per_kilovalue(60);

/// Numbers that are examined between two checks of the budget.
const SLICE: usize = 4096;

/// Maximum groups of a bit-packed run: as many as a header of two bytes can count. Writers of shorter runs spend a byte
/// for every 504 numbers.
const GROUPS_MAX: usize = (1 << 13) - 1;

/// Maximum numbers of a run: readers count them in signed 32-bit numbers.
const RUN_MAX: usize = (1 << 30) - 1;

/// Bytes after the bit-packed ones that make bit-packing faster.
const SLACK: usize = 16;

/// Bytes of the length before levels and booleans.
pub(crate) const LENGTH_BYTES: usize = 4;

/// A number that is encoded.
pub(crate) trait HybridNumber: Copy + Into<u32> + PartialEq + Default {
    /// Bit-packs complete groups; false if there is no room.
    fn pack(width: u32, values: &[Self], out: &mut [u8]) -> bool;
}

impl HybridNumber for u8 {
    fn pack(width: u32, values: &[u8], out: &mut [u8]) -> bool {
        pack::u8(width, values, out).is_ok()
    }
}

impl HybridNumber for u32 {
    fn pack(width: u32, values: &[u32], out: &mut [u8]) -> bool {
        pack::u32(width, values, out).is_ok()
    }
}

/// An encoder of numbers of one width.
#[derive(Debug, Default)]
pub(crate) struct HybridEncoder {
    out: Output,
    width: u32,
    /// There is space for the length before the first run.
    length: bool,
    /// Groups that are bit-packed, but not written: their number must precede them.
    packed: Vec<u8>,
    groups: usize,
    /// An incomplete group that will be bit-packed.
    begun: [u32; 8],
    begun_count: usize,
    /// How often `run_of` has occurred since the last group. 0 while a group is incomplete.
    run: usize,
    run_of: u32,
}

impl HybridEncoder {
    /// An encoder of numbers of `width` bits, at most 32. With `length`, space is reserved for the length in bytes
    /// before them.
    pub(crate) fn new(width: u32, length: bool) -> HybridEncoder {
        HybridEncoder { width, length, ..HybridEncoder::default() }
    }

    /// Writes the width before all numbers, in one byte.
    pub(crate) fn put_width(&mut self) -> Result<()> {
        self.out.put(&[cast::low_u8(self.width.into())])
    }

    /// Bytes, if it ended here, about.
    pub(crate) fn bytes(&self) -> usize {
        let open =
            if self.run >= self.least_run() { self.run_bytes() } else { self.run * self.width as usize / 8 };
        self.out.len() + self.packed.len() + open + self.begun_count
    }

    /// Takes as many numbers as the budget pays for, and returns how many.
    pub(crate) fn put<T: HybridNumber>(&mut self, values: &[T], budget: &mut Budget<'_>) -> Result<usize> {
        let mut done = 0;
        while done < values.len() {
            let now = &values[done..values.len().min(done + SLICE)];
            budget.charge(NUMBER_PRICE, 0, now.len());
            self.put_slice(now)?;
            done += now.len();
            if budget.is_spent() {
                break;
            }
        }
        Ok(done)
    }

    /// Takes a number `count` times.
    pub(crate) fn put_run(&mut self, value: u32, mut count: usize) -> Result<()> {
        while count > 0 {
            if self.run > 0 {
                if self.run_of == value {
                    self.run += count;
                    return Ok(());
                }
                self.settle()?;
            } else if self.begun_count > 0 {
                self.begin(value)?;
                count -= 1;
            } else {
                (self.run_of, self.run) = (value, count);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Takes as many numbers of one bit as the budget pays for, and returns how many.
    pub(crate) fn put_bits(
        &mut self,
        bits: &[u8],
        first: usize,
        count: usize,
        budget: &mut Budget<'_>,
    ) -> Result<usize> {
        let mut done = 0;
        while done < count {
            let take = (count - done).min(SLICE);
            let units = self.put_bits_slice(bits, first + done, take)?;
            budget.charge_units(units);
            done += take;
            if budget.is_spent() {
                break;
            }
        }
        Ok(done)
    }

    /// Ends the page and returns its bytes. With `with_length`, which requires reserved space, they are preceded by
    /// their length in four bytes.
    pub(crate) fn finish(&mut self, with_length: bool) -> Result<Body> {
        // At the end, a run pays whenever it is shorter than the groups.
        let groups_bytes = self.run.div_ceil(8) * self.width as usize + usize::from(self.groups == 0);
        if self.run > 0 && self.run_bytes() < groups_bytes {
            self.write_run()?;
        }
        self.settle()?;
        if self.begun_count > 0 {
            self.begun[self.begun_count..].fill(0);
            let group = self.begun;
            self.pack_groups(&group)?;
        }
        self.write_packed()?;
        let mut out = core::mem::take(&mut self.out);
        let mut length = [0; LENGTH_BYTES];
        if with_length {
            if out.len() == 0 {
                out.leave_head(LENGTH_BYTES)?;
            }
            length = u32::try_from(out.len()).map_err(|_| too_long())?.to_le_bytes();
        }
        *self = HybridEncoder::new(self.width, self.length);
        out.finish(if with_length { &length } else { &[] })
    }

    fn put_slice<T: HybridNumber>(&mut self, mut values: &[T]) -> Result<()> {
        while let Some(&first) = values.first() {
            if self.run > 0 {
                let same = same(values, self.run_of);
                self.run += same;
                values = &values[same..];
                if !values.is_empty() {
                    self.settle()?;
                }
            } else if self.begun_count > 0 {
                self.begin(first.into())?;
                values = &values[1..];
            } else {
                let (groups, rest) = values.as_chunks::<8>();
                let packed = groups.iter().take_while(|group| !is_uniform(group)).count();
                self.pack_groups(&values[..packed * 8])?;
                values = &values[packed * 8..];
                if let Some(group) = groups.get(packed) {
                    (self.run_of, self.run) = (group[0].into(), 8);
                    values = &values[8..];
                } else if let Some(&first) = rest.first() {
                    (self.run_of, self.run) = (first.into(), 1);
                    values = &values[1..];
                }
            }
        }
        Ok(())
    }

    /// Takes a few thousand bits and returns what that cost.
    fn put_bits_slice(&mut self, bytes: &[u8], first: usize, count: usize) -> Result<u64> {
        let (mut at, mut same_bits) = (0, 0);
        while at < count {
            let n = (count - at).min(64);
            let word = bits::word(bytes, first + at, n);
            let ones = usize::try_from(word.trailing_ones()).unwrap_or(0).min(n);
            let zeros = usize::try_from(word.trailing_zeros()).unwrap_or(0).min(n);
            if self.run > 0 {
                let same = if self.run_of == 1 { ones } else { zeros };
                self.run += same;
                at += same;
                same_bits += same;
                if same < n {
                    self.settle()?;
                }
            } else if self.begun_count > 0 {
                self.begin(cast::low_u32(word & 1))?;
                at += 1;
            } else if n < 8 || ones.max(zeros) >= 8 {
                let same = ones.max(zeros);
                (self.run_of, self.run) = (cast::low_u32(word & 1), same);
                at += same;
            } else {
                // Groups are bytes here.
                let raw = word.to_le_bytes();
                let most = (n / 8).min(GROUPS_MAX - self.groups);
                let groups = raw[..most].iter().take_while(|&&byte| byte != 0 && byte != 0xff).count();
                self.room_for_groups(groups)?;
                self.packed.extend_from_slice(&raw[..groups]);
                self.groups += groups;
                if self.groups == GROUPS_MAX {
                    self.write_packed()?;
                }
                at += groups * 8;
            }
        }
        Ok(SAME_PRICE.of(0, same_bits) + BIT_PRICE.of(0, count - same_bits))
    }

    /// Adds a number to a group that will be bit-packed.
    fn begin(&mut self, value: u32) -> Result<()> {
        self.begun[self.begun_count] = value;
        self.begun_count += 1;
        if self.begun_count == 8 {
            self.begun_count = 0;
            let group = self.begun;
            self.pack_group(&group)?;
        }
        Ok(())
    }

    /// Ends the run: writes it if that pays, otherwise bit-packs its numbers.
    fn settle(&mut self) -> Result<()> {
        if self.run == 0 {
            return Ok(());
        }
        if self.run >= self.least_run() {
            return self.write_run();
        }
        let group = [self.run_of; 8];
        let (groups, run) = (self.run / 8, self.run);
        self.run = 0;
        for _ in 0..groups {
            self.pack_group(&group)?;
        }
        (self.begun, self.begun_count) = (group, run % 8);
        Ok(())
    }

    /// The shortest run that is written. A run needs a header. If bit-packed groups precede it, those that follow it
    /// will most likely need a header of their own; if none do, its own groups would have needed one. (What follows is
    /// not known yet. For rows with a twentieth of nulls, and for runs of two values, this gives the smallest pages.)
    /// Runs shorter than a group, which would be slow to read, are never written.
    fn least_run(&self) -> usize {
        if self.width == 0 {
            return 1;
        }
        let bytes = self.value_bytes() + if self.groups > 0 { 2 } else { 0 };
        (8 * bytes / self.width as usize + 1).max(8)
    }

    fn value_bytes(&self) -> usize {
        self.width.div_ceil(8) as usize
    }

    /// Bytes of the run.
    fn run_bytes(&self) -> usize {
        let header = put_varint(&mut [0; VARINT_BYTES_MAX], cast::u64_of(self.run) << 1);
        header + self.value_bytes()
    }

    fn write_run(&mut self) -> Result<()> {
        self.write_packed()?;
        while self.run > 0 {
            let count = self.run.min(RUN_MAX);
            self.write_header(cast::u64_of(count) << 1)?;
            self.out.put(&self.run_of.to_le_bytes()[..self.value_bytes()])?;
            self.run -= count;
        }
        Ok(())
    }

    /// Packs a group.
    fn pack_group(&mut self, group: &[u32; 8]) -> Result<()> {
        if self.width != 1 {
            return self.pack_groups(group);
        }
        // Of bits, it is a byte: not worth a call.
        self.room_for_groups(1)?;
        let byte = group.iter().rev().fold(0, |byte, bit| byte << 1 | bit);
        self.packed.push(cast::low_u8(byte.into()));
        self.groups += 1;
        if self.groups == GROUPS_MAX { self.write_packed() } else { Ok(()) }
    }

    /// Bit-packs complete groups.
    fn pack_groups<T: HybridNumber>(&mut self, mut values: &[T]) -> Result<()> {
        while !values.is_empty() {
            let groups = (values.len() / 8).min(GROUPS_MAX - self.groups);
            let start = self.packed.len();
            let bytes = groups * self.width as usize;
            self.room_for_groups(groups)?;
            self.packed.resize(start + bytes + SLACK, 0);
            if !T::pack(self.width, &values[..groups * 8], &mut self.packed[start..]) {
                return Err(Error::internal("no room for packed numbers"));
            }
            self.packed.truncate(start + bytes);
            self.groups += groups;
            values = &values[groups * 8..];
            if self.groups == GROUPS_MAX {
                self.write_packed()?;
            }
        }
        Ok(())
    }

    fn room_for_groups(&mut self, groups: usize) -> Result<()> {
        let bytes = groups * self.width as usize + SLACK;
        self.packed.try_reserve(bytes).map_err(|_| Error::out_of_memory(bytes))
    }

    /// Writes the bit-packed groups.
    fn write_packed(&mut self) -> Result<()> {
        if self.groups > 0 {
            self.write_header(cast::u64_of(self.groups) << 1 | 1)?;
            self.out.put(&self.packed)?;
            self.packed.clear();
            self.groups = 0;
        }
        Ok(())
    }

    fn write_header(&mut self, header: u64) -> Result<()> {
        let mut bytes = [0; VARINT_BYTES_MAX];
        let length = put_varint(&mut bytes, header);
        if self.length && self.out.len() == 0 {
            self.out.leave_head(LENGTH_BYTES)?;
        }
        self.out.put(&bytes[..length])
    }
}

/// The error for a page that is longer than its length can say.
fn too_long() -> Error {
    Error::too_large("levels or booleans of 4 GiB or more in one page")
}

/// How many of the first numbers are `value`.
fn same<T: HybridNumber>(values: &[T], value: u32) -> usize {
    let (groups, _) = values.as_chunks::<16>();
    // Sixteen at a time are compared, without a branch for each.
    let all = |group: &&[T; 16]| group.iter().fold(true, |same, &number| same & (number.into() == value));
    let sure = groups.iter().take_while(all).count() * 16;
    sure + values[sure..].iter().take_while(|&&number| number.into() == value).count()
}

/// True if all numbers of a group are equal.
#[inline]
fn is_uniform<T: HybridNumber>(group: &[T; 8]) -> bool {
    // Without a branch for each.
    group.iter().fold(true, |same, value| same & (*value == group[0]))
}

#[cfg(test)]
mod tests {
    use super::super::Hybrid;
    use super::*;
    use alloc::vec;
    use marquetry_base::Bytes;

    fn joined(body: &Body) -> Vec<u8> {
        body.pieces().concat()
    }

    /// Numbers of `width` bits, some in runs, from a seed.
    fn numbers(width: u32, count: usize, seed: u64) -> Vec<u32> {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mask = cast::low_u32(u64::MAX >> (64 - width.max(1))) * u32::from(width > 0);
        let mut all = Vec::new();
        while all.len() < count {
            let random = next();
            let length = [1, 1, 1, 3, 7, 8, 9, 15, 16, 17, 40, 300][(random % 12) as usize];
            let value = cast::low_u32(next()) & mask;
            let length = length.min(count - all.len());
            all.extend(core::iter::repeat_n(value, length));
        }
        all
    }

    fn encode<T: HybridNumber>(width: u32, values: &[T], slice: usize) -> Vec<u8> {
        let mut encoder = HybridEncoder::new(width, false);
        for values in values.chunks(slice.max(1)) {
            let mut done = 0;
            while done < values.len() {
                done += encoder.put(&values[done..], &mut Budget::new(0)).unwrap();
            }
        }
        joined(&encoder.finish(false).unwrap())
    }

    fn decode(bytes: Vec<u8>, width: u32, count: usize) -> Vec<u32> {
        let mut out = vec![7; count];
        let mut decoder = Hybrid::new(Bytes::from(bytes).into(), width);
        let mut done = 0;
        while done < count {
            done += decoder.decode(&mut out[done..]).unwrap();
            decoder.take_runs();
        }
        out
    }

    #[test]
    fn numbers_come_back_whatever_the_slices() {
        for width in 0..=32 {
            for (seed, count) in [0, 1, 2, 7, 8, 9, 31, 64, 100, 999, 5000].into_iter().enumerate() {
                let values = numbers(width, count, seed as u64 + u64::from(width) * 100 + 1);
                let bytes = encode(width, &values, usize::MAX);
                assert_eq!(decode(bytes.clone(), width, count), values, "{count} of {width} bits");
                for slice in [1, 3, 8, 13, 100] {
                    assert_eq!(encode(width, &values, slice), bytes, "{count} of {width} bits by {slice}");
                }
                let packed = count.div_ceil(8) * width as usize;
                let most = packed + 3 + packed / 16;
                assert!(bytes.len() <= most, "{} bytes for {count} of {width} bits", bytes.len());
            }
        }
    }

    #[test]
    fn bytes_bits_runs_and_numbers_are_the_same() {
        for (seed, count) in [0, 1, 5, 8, 64, 65, 200, 1000, 70_000, 200_000].into_iter().enumerate() {
            let values = if seed % 2 == 0 {
                numbers(1, count, 9)
            } else {
                (0..count).map(|at| u32::from(at * at % 7 < 3)).collect()
            };
            let expected = encode(1, &values, usize::MAX);
            let narrow: Vec<u8> = values.iter().map(|&value| u8::from(value == 1)).collect();
            assert_eq!(encode(1, &narrow, 100), expected);
            for offset in [0, 1, 9] {
                let bitmap: marquetry_base::Bitmap = core::iter::repeat_n(true, offset)
                    .chain(values.iter().map(|&value| value == 1))
                    .collect();
                for slice in [1000, 7, 64, 4096 + 8].into_iter().filter(|&slice| slice * 5000 > count) {
                    let mut encoder = HybridEncoder::new(1, false);
                    let mut at = 0;
                    while at < count {
                        let take = slice.min(count - at);
                        at +=
                            encoder.put_bits(bitmap.bytes(), offset + at, take, &mut Budget::new(0)).unwrap();
                    }
                    assert_eq!(joined(&encoder.finish(false).unwrap()), expected, "{count} by {slice}");
                }
            }
            let mut encoder = HybridEncoder::new(1, false);
            for run in values.chunk_by(|a, b| a == b) {
                encoder.put_run(run[0], run.len()).unwrap();
            }
            assert_eq!(joined(&encoder.finish(false).unwrap()), expected);
        }
    }

    #[test]
    fn small_is_what_can_be() {
        // One run, of any length.
        assert_eq!(encode(3, &[5u32; 3], 1), [6, 5]);
        assert_eq!(encode(20, &[5u32; 100], 7), [200, 1, 5, 0, 0]);
        assert_eq!(encode(0, &[0u32; 1000], 7), [208, 15]);
        // A run of 8 single bits among others takes more than the byte that it replaces.
        let mixed: Vec<u32> = (0..64).map(|at| u32::from(at % 2 == 0 && !(16..32).contains(&at))).collect();
        assert_eq!(encode(1, &mixed, 64).len(), 9);
        // Bit-packed runs are long.
        let alternating: Vec<u32> = (0..65_528).map(|at| at % 2).collect();
        assert_eq!(encode(1, &alternating, 1000).len(), 8191 + 2);
    }

    #[test]
    fn a_length_in_front() {
        for with_length in [false, true] {
            for count in [0usize, 1, 100, 100_000] {
                let values: Vec<u8> = (0..count).map(|at| u8::from(at % 3 == 0)).collect();
                let mut encoder = HybridEncoder::new(1, true);
                for _ in 0..2 {
                    encoder.put(&values, &mut Budget::unlimited()).unwrap();
                    let body = joined(&encoder.finish(with_length).unwrap());
                    let mut expected = encode(1, &values, 100);
                    if with_length {
                        expected.splice(..0, u32::try_from(expected.len()).unwrap().to_le_bytes());
                    }
                    assert_eq!(body, expected);
                }
            }
        }
    }

    #[test]
    fn runs_of_any_length() {
        let mut encoder = HybridEncoder::new(1, false);
        for _ in 0..3 {
            encoder.put_run(1, RUN_MAX).unwrap();
        }
        let body = joined(&encoder.finish(false).unwrap());
        assert_eq!(body, [0xfe, 0xff, 0xff, 0xff, 7, 1].repeat(3));
    }
}
