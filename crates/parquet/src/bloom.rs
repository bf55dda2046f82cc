//! Split-block Bloom filters: which values a column chunk may contain, and which it certainly does not.
//!
//! A value is identified by its [`hash`]; [`BloomProbe`](crate::read::BloomProbe) looks hashes up in a file's filter,
//! and with [`BloomOptions`](crate::write::BloomOptions) a writer writes filters.
//!
//! Source: parquet-format's `BloomFilter.md`.

use alloc::vec::Vec;

use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::{Budget, Bytes, Error, Price, Result};
use marquetry_kernels::bloom::{self, Block, RATE_UNIT};
use marquetry_kernels::{plain, xxh64};

use crate::growing::ROOM_PRICE;

/// Bytes of a block.
pub const BLOCK_BYTES: u32 = 32;

/// Bytes of the largest filter that other implementations read.
pub const FILTER_BYTES_MAX: u32 = 128 << 20;

/// The hash of a value in filters: of its PLAIN bytes, without the length of a BYTE_ARRAY.
///
/// ```
/// use marquetry_parquet::bloom;
///
/// assert_eq!(bloom::hash(b""), 0xef46_db37_51d8_e999);
/// let (int64, text) = (bloom::hash(&7i64.to_le_bytes()), bloom::hash("a text".as_bytes()));
/// assert_ne!(int64, text);
/// ```
#[must_use]
pub fn hash(plain: &[u8]) -> u64 {
    xxh64::of_bytes(plain)
}

/// The price of inserting a hash into a filter, only part of which may be in a cache.
pub(crate) const INSERT_PRICE: Price = Price::per_kilovalue(10 << 10);
/// The price of looking at all bits of a filter, or of folding its blocks.
const FOLD_PRICE: Price = Price::per_kib(120);

/// The logarithm of the number of blocks in a segment: 32 KiB, as much new memory as is allocated at a time.
const SEGMENT_BITS: u32 = 10;
const SEGMENT_BLOCKS: u32 = 1 << SEGMENT_BITS;

/// A complete filter in memory; its number of blocks is a power of two.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Filter {
    segments: Vec<Vec<Block>>,
    /// The number of blocks once it is [grown](Filter::grow).
    blocks: u32,
}

impl Filter {
    /// A filter that will have this many blocks, a power of two.
    pub(crate) fn new(blocks: u32) -> Filter {
        debug_assert!(blocks.is_power_of_two() && blocks <= FILTER_BYTES_MAX / BLOCK_BYTES);
        Filter { segments: Vec::new(), blocks }
    }

    /// Blocks.
    #[cfg(test)]
    pub(crate) fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Bytes of its blocks.
    pub(crate) fn bytes(&self) -> u32 {
        self.blocks * BLOCK_BYTES
    }

    /// Bytes of memory that it takes.
    pub(crate) fn held(&self) -> usize {
        self.segments.iter().map(|segment| segment.capacity() * size_of::<Block>()).sum()
    }

    /// Allocates memory for all its blocks, whose bits are all unset. False if the budget is spent first: call it until
    /// it returns true.
    ///
    /// # Errors
    ///
    /// If the memory cannot be allocated.
    pub(crate) fn grow(&mut self, budget: &mut Budget<'_>) -> Result<bool> {
        let segment = usize_of_u32(self.blocks.min(SEGMENT_BLOCKS));
        let segments = usize_of_u32(self.blocks.div_ceil(SEGMENT_BLOCKS));
        while self.segments.len() < segments {
            let mut blocks: Vec<Block> = Vec::new();
            let bytes = segment * size_of::<Block>();
            blocks.try_reserve_exact(segment).map_err(|_| Error::out_of_memory(bytes))?;
            blocks.resize(segment, [0; 8]);
            self.segments.push(blocks);
            budget.charge(ROOM_PRICE, bytes, 0);
            if budget.is_spent() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Inserts hashes, all in one go.
    pub(crate) fn insert(&mut self, hashes: &[u64]) -> Result<()> {
        bloom::insert(&mut self.segments, SEGMENT_BITS, self.blocks, hashes)
            .map_err(|_| Error::internal("a Bloom filter that has not grown"))
    }

    /// Whether a hash may have been inserted.
    #[cfg(test)]
    fn contains(&self, hash: u64) -> bool {
        let at = bloom::block_of(hash, self.blocks);
        let segment = &self.segments[usize_of_u32(at / SEGMENT_BLOCKS)];
        bloom::contains(&segment[usize_of_u32(at % SEGMENT_BLOCKS)], hash)
    }

    /// Its blocks, in segments.
    pub(crate) fn segments(&self) -> impl Iterator<Item = &[Block]> {
        self.segments.iter().map(Vec::as_slice)
    }

    /// Its blocks as bytes, in pieces; nothing is copied.
    pub(crate) fn into_pieces(self) -> impl Iterator<Item = Bytes> {
        self.segments.into_iter().map(|segment| Bytes::from_owner(Segment(segment)))
    }
}

/// Blocks that are shared as bytes.
struct Segment(Vec<Block>);

impl AsRef<[u8]> for Segment {
    fn as_ref(&self) -> &[u8] {
        plain::as_bytes(self.0.as_flattened())
    }
}

/// Makes a filter as small as possible: it is folded as long as its false-positive rate, which its bits determine
/// exactly, stays within the target.
#[derive(Debug)]
pub(crate) struct Folding {
    fpp: f64,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// Computes the rate after folding: segments so far, and the sum of their rates.
    Look { segment: usize, rate: u64 },
    /// Folds: segments so far.
    Fold { segment: usize },
    /// It is as small as it may be.
    Done,
}

impl Folding {
    /// Folds until the false-positive rate would exceed `fpp`.
    pub(crate) fn new(fpp: f64) -> Folding {
        Folding { fpp, stage: Stage::Look { segment: 0, rate: 0 } }
    }

    /// Works on: true when it is done.
    pub(crate) fn step(&mut self, filter: &mut Filter, budget: &mut Budget<'_>) -> bool {
        loop {
            match &mut self.stage {
                Stage::Done => return true,
                Stage::Look { .. } if filter.blocks == 1 => self.stage = Stage::Done,
                Stage::Look { segment, rate } => match filter.segments.get(*segment) {
                    Some(blocks) => {
                        *rate += bloom::folded_rate(blocks);
                        *segment += 1;
                        budget.charge(FOLD_PRICE, size_of_val(&**blocks), 0);
                    }
                    None => {
                        let is_rare = share(*rate, filter.blocks / 2) <= self.fpp;
                        self.stage = if is_rare { Stage::Fold { segment: 0 } } else { Stage::Done };
                    }
                },
                Stage::Fold { segment } => match fold_segment(filter, *segment) {
                    Some(bytes) => {
                        *segment += 1;
                        budget.charge(FOLD_PRICE, bytes, 0);
                    }
                    None => {
                        filter.blocks /= 2;
                        filter.segments.truncate(usize_of_u32(filter.blocks.div_ceil(SEGMENT_BLOCKS)));
                        self.stage = Stage::Look { segment: 0, rate: 0 };
                    }
                },
            }
            if budget.is_spent() {
                return matches!(self.stage, Stage::Done);
            }
        }
    }
}

/// Folds a segment into the half where it belongs. Returns its bytes; `None` after the last.
fn fold_segment(filter: &mut Filter, number: usize) -> Option<usize> {
    let mut blocks = core::mem::take(filter.segments.get_mut(number)?);
    bloom::fold(&mut blocks);
    let half = blocks.len() / 2;
    let bytes = size_of_val(&*blocks);
    match number % 2 {
        // A single segment gets shorter; otherwise the next one is folded into the second half.
        0 => {
            if filter.segments.len() == 1 {
                blocks.truncate(half);
                blocks.shrink_to_fit();
            }
            filter.segments[number / 2] = blocks;
        }
        _ => filter.segments[number / 2][half..].copy_from_slice(&blocks[..half]),
    }
    Some(bytes)
}

fn share(rate: u64, blocks: u32) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a share needs no more digits")]
    let (rate, all) = (rate as f64, (RATE_UNIT * u64::from(blocks)) as f64);
    rate / all
}

/// The expected false-positive rate of a filter with this many hashes per block.
///
/// The number of hashes in a block has a Poisson distribution, and each of them sets one of 32 bits in each word.
fn expected_rate(values_per_block: f64) -> f64 {
    let (mut weight, mut all, mut found) = (1.0, 0.0, 0.0);
    let (mut unset, mut count) = (1.0, 0.0);
    while count <= values_per_block || weight > all * 1e-18 {
        let set: f64 = 1.0 - unset;
        let squared = set * set;
        let fourth = squared * squared;
        all += weight;
        found += weight * fourth * fourth;
        count += 1.0;
        weight *= values_per_block / count;
        unset *= 31.0 / 32.0;
    }
    found / all
}

/// The highest load of a block: four of five bits are set then, and more than one of ten hashes is a false positive.
const VALUES_PER_BLOCK_MAX: u64 = 1 << 8;

/// The smallest power of two of blocks that keeps the false-positive rate for `values` distinct values within `fpp`;
/// but at most `blocks_max`, a power of two.
pub(crate) fn blocks_for(values: u64, fpp: f64, blocks_max: u32) -> u32 {
    let least = values.div_ceil(VALUES_PER_BLOCK_MAX).next_power_of_two();
    let mut blocks = u32::try_from(least).unwrap_or(blocks_max).min(blocks_max);
    #[expect(clippy::cast_precision_loss, reason = "a share needs no more digits")]
    let values = values as f64;
    while blocks < blocks_max && expected_rate(values / f64::from(blocks)) > fpp {
        blocks *= 2;
    }
    blocks
}

/// Whether a block, as stored in the file, has all bits of a hash.
pub(crate) fn block_contains(block: &[u8; 32], hash: u64) -> bool {
    let (words, _) = block.as_chunks::<4>();
    let mut read = [0; 8];
    read.iter_mut().zip(words).for_each(|(word, bytes)| *word = u32::from_le_bytes(*bytes));
    bloom::contains(&read, hash)
}

/// Where a hash's block starts in a filter of `filter_bytes` bytes.
pub(crate) fn block_offset(hash: u64, filter_bytes: u32) -> u64 {
    u64::from(bloom::block_of(hash, filter_bytes / BLOCK_BYTES)) * u64::from(BLOCK_BYTES)
}

/// Bytes of this many hashes.
pub(crate) fn hash_bytes(hashes: usize) -> u64 {
    u64_of(hashes) * u64_of(size_of::<u64>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_base::cast::low_u32;

    fn made(blocks: u32, hashes: &[u64]) -> Filter {
        let mut filter = Filter::new(blocks);
        while !filter.grow(&mut Budget::new(1)).unwrap() {}
        filter.insert(hashes).unwrap();
        filter
    }

    fn hashes(of: core::ops::Range<u64>) -> Vec<u64> {
        of.map(|value| hash(&value.to_le_bytes())).collect()
    }

    fn fold(filter: &mut Filter, fpp: f64) {
        let mut folding = Folding::new(fpp);
        while !folding.step(filter, &mut Budget::new(1)) {}
    }

    /// The share of values that are found without having been inserted.
    fn seen_rate(filter: &Filter, tries: u64) -> f64 {
        let others = hashes(1 << 40..(1 << 40) + tries);
        let found = others.iter().filter(|&&hash| filter.contains(hash)).count();
        f64::from(low_u32(u64_of(found))) / f64::from(low_u32(tries))
    }

    #[test]
    fn a_folded_filter_is_one_made_small() {
        let all = hashes(0..20_000);
        let mut filter = made(1 << 14, &all);
        for _ in 0..14 {
            let mut folding = Folding { fpp: 0.0, stage: Stage::Fold { segment: 0 } };
            while matches!(folding.stage, Stage::Fold { .. }) {
                folding.step(&mut filter, &mut Budget::new(1));
            }
            let small = made(filter.blocks(), &all);
            assert!(filter == small, "of {} blocks", filter.blocks());
        }
        assert_eq!(filter.blocks(), 1);
    }

    #[test]
    fn it_is_folded_to_the_smallest_that_is_good_enough() {
        for (values, fpp) in [(0, 0.01), (1, 0.01), (50, 0.1), (1000, 0.01), (50_000, 0.05), (9_000, 0.0001)]
        {
            let all = hashes(0..values);
            let mut filter = made(1 << 15, &all);
            fold(&mut filter, fpp);
            assert!(all.iter().all(|&hash| filter.contains(hash)));
            // The measured rate is the expected one, except where it is a matter of luck.
            let expected = blocks_for(values, fpp, 1 << 15);
            assert!(
                filter.blocks() == expected || filter.blocks() * 2 == expected,
                "{} blocks for {values} values and {fpp}, where {expected} were expected",
                filter.blocks()
            );
            if fpp >= 0.01 {
                let seen = seen_rate(&filter, 100_000);
                assert!(seen < fpp * 1.2 + 0.001, "{seen} of {fpp}, {values} values");
            }
            let mut again = filter.clone();
            fold(&mut again, fpp);
            assert_eq!(again, filter);
        }
    }

    #[test]
    fn the_expected_rate_is_seen() {
        for (values, blocks) in [(16_000, 1024), (10_000, 256), (40_000, 4096), (200_000, 4096)] {
            let filter = made(blocks, &hashes(0..values));
            let told = share(filter.segments.iter().map(|blocks| bloom::rate(blocks)).sum(), blocks);
            let expected = expected_rate(f64::from(low_u32(values)) / f64::from(blocks));
            assert!((told / expected - 1.0).abs() < 0.1, "{told} where {expected} is expected");
            if expected > 0.001 {
                let seen = seen_rate(&filter, 200_000);
                assert!((seen / told - 1.0).abs() < 0.2, "{seen} where {told} is told");
            }
        }
        // Bits per value, from the paper that the format's document cites: 10.5 for a rate of 0.01.
        assert!((expected_rate(256.0 / 10.5) - 0.01).abs() < 0.0005);
        assert!((expected_rate(256.0 / 16.9) - 0.001).abs() < 0.0001);
        assert_eq!((expected_rate(0.0), blocks_for(0, 0.5, 8)), (0.0, 1));
    }

    #[test]
    fn sizes_are_powers_of_two_within_bounds() {
        assert_eq!(blocks_for(1 << 20, 0.01, 1 << 20) * BLOCK_BYTES, 2 << 20);
        assert_eq!(blocks_for(u64::MAX, 0.01, 1 << 15), 1 << 15);
        assert_eq!(blocks_for(u64::MAX, 0.999, 1 << 22), 1 << 22);
        let mut before = 0;
        for values in (0..100_000).step_by(777) {
            let blocks = blocks_for(values, 0.02, 1 << 22);
            assert!(blocks.is_power_of_two() && blocks >= before);
            before = blocks;
        }
    }

    #[test]
    fn its_bytes_are_the_formats() {
        let texts = ["hello", "parquet", "bloom", "filter"];
        let filter = made(32, &texts.map(|text| hash(text.as_bytes())));
        let bytes: Vec<u8> = filter.clone().into_pieces().flat_map(|piece| piece.to_vec()).collect();
        assert_eq!(bytes.len(), 1024);
        for text in texts {
            let hash = hash(text.as_bytes());
            let at = usize::try_from(block_offset(hash, 1024)).unwrap();
            assert!(block_contains(bytes[at..at + 32].try_into().unwrap(), hash));
        }
        assert!(!filter.contains(hash(b"none of them")));
    }
}
