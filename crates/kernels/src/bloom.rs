//! Split-block Bloom filters: blocks of 256 bits, where a value sets one bit in each of eight words (BloomFilter.md,
//! "Technical Approach").
//!
//! The upper half of a value's hash selects its block, the lower half its bits.
//!
//! Speed: a load, an operation and a store of a block for each hash bound it, where the filter is in a cache;
//! elsewhere memory does. `docs/bench/kernels.md` has its distance from a copy of as many bytes (`make
//! bench-kernels`).
//!
//! NEON: counted in its loops, not measured, [`matches()`] takes 6 instructions a block, and [`rate`] 15; the portable forms take 24 and 28.

use alloc::vec::Vec;

use crate::cpu::{Isa, dispatch, isa};
use crate::error::Error;

/// A block, in memory as in the file (on little-endian processors).
pub type Block = [u32; 8];

/// The factors of the lower half of a hash, one for each word.
const SALTS: [u32; 8] =
    [0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d, 0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31];

/// The upper five bits of a product select a bit of a word.
const WORD_SHIFT: u32 = 27;

/// The unit of [`rate`]: a block whose bits are all set counts this much.
pub const RATE_UNIT: u64 = 1 << 40;

/// The index of a hash's block, out of `blocks`.
#[inline(always)]
#[must_use]
pub fn block_of(hash: u64, blocks: u32) -> u32 {
    (((hash >> 32) * u64::from(blocks)) >> 32) as u32
}

/// Whether a block has all bits of a hash set. If not, the value was never inserted.
#[must_use]
pub fn contains(block: &Block, hash: u64) -> bool {
    block.iter().zip(bits_of(hash)).all(|(word, bit)| word & bit != 0)
}

/// Inserts hashes into a filter of `blocks` blocks. The blocks are in segments of `1 << segment_bits` each, or all in
/// one.
///
/// # Errors
///
/// `Mismatch` if there are fewer.
pub fn insert(
    segments: &mut [Vec<Block>],
    segment_bits: u32,
    blocks: u32,
    hashes: &[u64],
) -> Result<(), Error> {
    insert_with(isa(), segments, segment_bits, blocks, hashes)
}

/// Which of some blocks, as they are in the file, have all bits of a hash set: a bit for each of them in `bits`, the first
/// block's the lowest of the first word. Bits beyond the last block are unset.
///
/// # Errors
///
/// `Mismatch` if `bits` has not one word for each 64 blocks, rounded up.
pub fn matches(blocks: &[[u8; 32]], hash: u64, bits: &mut [u64]) -> Result<(), Error> {
    matches_with(isa(), blocks, hash, bits)
}

/// Joins each pair of neighbours; the result is in the first half. It equals a filter of half as many blocks with the
/// same hashes, because the index of a hash's block is halved.
pub fn fold(blocks: &mut [Block]) {
    fold_with(isa(), blocks);
}

/// The false-positive rate: the sum over all blocks, in units of [`RATE_UNIT`]. At most 2^24 blocks at a time, so
/// that the sum does not overflow.
#[must_use]
pub fn rate(blocks: &[Block]) -> u64 {
    rate_with(isa(), blocks)
}

/// The [`rate`] of the filter that [`fold`] would leave.
#[must_use]
pub fn folded_rate(blocks: &[Block]) -> u64 {
    folded_rate_with(isa(), blocks)
}

fn insert_with(
    isa: Isa,
    segments: &mut [Vec<Block>],
    segment_bits: u32,
    blocks: u32,
    hashes: &[u64],
) -> Result<(), Error> {
    // No contract beyond the features.
    dispatch!(isa,
        avx512: insert_avx512(segments, segment_bits, blocks, hashes),
        avx2: insert_avx2(segments, segment_bits, blocks, hashes),
        portable: insert_portable(segments, segment_bits, blocks, hashes),
    )
}

fn matches_with(isa: Isa, blocks: &[[u8; 32]], hash: u64, bits: &mut [u64]) -> Result<(), Error> {
    if bits.len() != blocks.len().div_ceil(64) {
        return Err(Error::Mismatch);
    }
    // No contract beyond the features.
    dispatch!(isa,
        avx512: matches_avx512(blocks, hash, bits),
        avx2: matches_avx2(blocks, hash, bits),
        neon: neon::matches(blocks, hash, bits),
        portable: matches_portable(blocks, hash, bits),
    );
    Ok(())
}

fn fold_with(isa: Isa, blocks: &mut [Block]) {
    // No contract beyond the features.
    dispatch!(isa,
        avx512: fold_avx512(blocks),
        avx2: fold_avx2(blocks),
        portable: fold_portable(blocks),
    );
}

fn rate_with(isa: Isa, blocks: &[Block]) -> u64 {
    // No contract beyond the features.
    dispatch!(isa,
        avx512: rate_avx512(blocks),
        avx2: rate_avx2(blocks),
        neon: neon::rate(blocks),
        portable: rate_portable(blocks),
    )
}

fn folded_rate_with(isa: Isa, blocks: &[Block]) -> u64 {
    // No contract beyond the features.
    dispatch!(isa,
        avx512: folded_rate_avx2(blocks),
        avx2: folded_rate_avx2(blocks),
        neon: neon::folded_rate(blocks),
        portable: folded_rate_portable(blocks),
    )
}

#[inline(always)]
fn bits_of(hash: u64) -> Block {
    let key = hash as u32;
    SALTS.map(|salt| 1 << (key.wrapping_mul(salt) >> WORD_SHIFT))
}

#[inline(always)]
fn joined(left: &Block, right: &Block) -> Block {
    let mut both = *left;
    both.iter_mut().zip(right).for_each(|(word, other)| *word |= other);
    both
}

/// How many of 2^40 hashes that select this block have all their bits set: the product of the set bits per word.
#[inline(always)]
fn found_in(block: &Block) -> u64 {
    block.iter().map(|word| u64::from(word.count_ones())).product()
}

#[inline(always)]
fn insert_portable(
    segments: &mut [Vec<Block>],
    segment_bits: u32,
    blocks: u32,
    hashes: &[u64],
) -> Result<(), Error> {
    // No index has as many bits as a `usize`, or there is memory for no such filter: then all are in one segment.
    let segment_bits = segment_bits.min(usize::BITS - 1);
    let mask = (1usize << segment_bits) - 1;
    for &hash in hashes {
        let at = block_of(hash, blocks) as usize;
        let segment = segments.get_mut(at >> segment_bits);
        let Some(block) = segment.and_then(|segment| segment.get_mut(at & mask)) else {
            return Err(Error::Mismatch);
        };
        let bits = bits_of(hash);
        block.iter_mut().zip(bits).for_each(|(word, bit)| *word |= bit);
    }
    Ok(())
}

#[inline(always)]
fn matches_portable(blocks: &[[u8; 32]], hash: u64, bits: &mut [u64]) {
    let wanted = bits_of(hash);
    for (some, word) in blocks.chunks(64).zip(bits) {
        *word = some.iter().enumerate().fold(0, |found, (at, block)| {
            let (words, _) = block.as_chunks::<4>();
            let missing = wanted
                .iter()
                .zip(words)
                .fold(0, |missing, (bit, word)| missing | (bit & !u32::from_le_bytes(*word)));
            found | (u64::from(missing == 0) << at)
        });
    }
}

#[inline(always)]
fn fold_portable(blocks: &mut [Block]) {
    for at in 0..blocks.len() / 2 {
        blocks[at] = joined(&blocks[2 * at], &blocks[2 * at + 1]);
    }
}

#[inline(always)]
fn rate_portable(blocks: &[Block]) -> u64 {
    blocks.iter().map(found_in).sum()
}

#[inline(always)]
fn folded_rate_portable(blocks: &[Block]) -> u64 {
    let (pairs, _) = blocks.as_chunks::<2>();
    pairs.iter().map(|[left, right]| found_in(&joined(left, right))).sum()
}

/// The portable forms, compiled with wider vectors: intrinsics would not improve on them.
macro_rules! x86 {
    ($features:literal, $insert:ident, $matches:ident, $fold:ident, $rate:ident) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $features)]
        fn $insert(
            segments: &mut [Vec<Block>],
            segment_bits: u32,
            blocks: u32,
            hashes: &[u64],
        ) -> Result<(), Error> {
            insert_portable(segments, segment_bits, blocks, hashes)
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $features)]
        fn $matches(blocks: &[[u8; 32]], hash: u64, bits: &mut [u64]) {
            matches_portable(blocks, hash, bits);
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $features)]
        fn $fold(blocks: &mut [Block]) {
            fold_portable(blocks);
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = $features)]
        fn $rate(blocks: &[Block]) -> u64 {
            rate_portable(blocks)
        }
    };
}
x86!("avx2,bmi1,bmi2,popcnt", insert_avx2, matches_avx2, fold_avx2, rate_avx2);
x86!(
    "avx512f,avx512bw,avx512vl,avx512dq,avx512vpopcntdq,popcnt",
    insert_avx512,
    matches_avx512,
    fold_avx512,
    rate_avx512
);

/// Used with AVX-512, too: there the compiler gathers the same word of several blocks, which took three times as long on a Zen 4.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt")]
fn folded_rate_avx2(blocks: &[Block]) -> u64 {
    folded_rate_portable(blocks)
}

#[cfg(target_arch = "aarch64")]
mod neon {
    //! A block is two vectors. (Of the portable forms of these, the compiler makes vectors of the same word of several blocks, which are
    //! loaded one by one. Those of `insert` and `fold` it vectorises as one would by hand.)

    use super::{Block, bits_of, matches_portable};
    use core::arch::aarch64::*;

    #[inline]
    #[target_feature(enable = "neon")]
    fn load(block: &[u8; 32]) -> [uint8x16_t; 2] {
        // SAFETY: the block is two times 16 bytes.
        unsafe { [vld1q_u8(block.as_ptr()), vld1q_u8(block.as_ptr().add(16))] }
    }

    #[inline]
    #[target_feature(enable = "neon")]
    fn load_words(block: &Block) -> [uint8x16_t; 2] {
        // SAFETY: the block is two times four words.
        let [low, high] = unsafe { [vld1q_u32(block.as_ptr()), vld1q_u32(block.as_ptr().add(4))] };
        [vreinterpretq_u8_u32(low), vreinterpretq_u8_u32(high)]
    }

    #[target_feature(enable = "neon")]
    pub(super) fn matches(blocks: &[[u8; 32]], hash: u64, bits: &mut [u64]) {
        let wanted = load_words(&bits_of(hash));
        let (whole, rest) = blocks.as_chunks::<64>();
        let (words, last) = bits.split_at_mut(whole.len());
        for (some, word) in whole.iter().zip(words) {
            let (sixteens, _) = some.as_chunks::<16>();
            *word = crate::neon::mask([0, 1, 2, 3].map(|k: usize| of_sixteen(&sixteens[k], wanted)));
        }
        matches_portable(rest, hash, last);
    }

    /// A byte for each block: all its bits if the block has all those that are wanted, else none.
    #[inline]
    #[target_feature(enable = "neon")]
    fn of_sixteen(blocks: &[[u8; 32]; 16], wanted: [uint8x16_t; 2]) -> uint8x16_t {
        let missing = |at: usize| {
            let [low, high] = load(&blocks[at]);
            vreinterpretq_u32_u8(vorrq_u8(vbicq_u8(wanted[0], low), vbicq_u8(wanted[1], high)))
        };
        // The largest word of each of four blocks; of those that miss nothing it is zero.
        let four = |at: usize| {
            let (first, last) =
                (vpmaxq_u32(missing(at), missing(at + 1)), vpmaxq_u32(missing(at + 2), missing(at + 3)));
            vreinterpretq_u16_u32(vceqzq_u32(vpmaxq_u32(first, last)))
        };
        let eight = |at: usize| vreinterpretq_u8_u16(vuzp1q_u16(four(at), four(at + 4)));
        vuzp1q_u8(eight(0), eight(8))
    }

    #[target_feature(enable = "neon")]
    pub(super) fn rate(blocks: &[Block]) -> u64 {
        let mut sum = 0;
        for block in blocks {
            sum += found_in(load_words(block));
        }
        sum
    }

    #[target_feature(enable = "neon")]
    pub(super) fn folded_rate(blocks: &[Block]) -> u64 {
        let mut sum = 0;
        for [left, right] in blocks.as_chunks::<2>().0 {
            let (left, right) = (load_words(left), load_words(right));
            sum += found_in([vorrq_u8(left[0], right[0]), vorrq_u8(left[1], right[1])]);
        }
        sum
    }

    /// As the portable one's: the product of the set bits per word.
    #[inline]
    #[target_feature(enable = "neon")]
    fn found_in(block: [uint8x16_t; 2]) -> u64 {
        let [low, high] = block.map(|half| vpaddlq_u16(vpaddlq_u8(vcntq_u8(half))));
        // Of two words at most 2^10, of four 2^20.
        let twos = vmulq_u32(low, high);
        let fours = vmul_u32(vget_low_u32(twos), vget_high_u32(twos));
        u64::from(vget_lane_u32::<0>(fours)) * u64::from(vget_lane_u32::<1>(fours))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Random, rounds};
    use std::vec;

    /// Builds a filter bit by bit.
    fn naive(blocks: u32, hashes: &[u64]) -> Vec<Block> {
        let mut filter = vec![[0; 8]; blocks as usize];
        for hash in hashes {
            let block = ((hash >> 32) * u64::from(blocks)) >> 32;
            for (word, salt) in SALTS.iter().enumerate() {
                let bit = ((u64::from(*salt) * (hash & 0xffff_ffff)) & 0xffff_ffff) >> 27;
                filter[block as usize][word] |= 1 << bit;
            }
        }
        filter
    }

    #[test]
    fn hashes_are_where_the_format_says() {
        let mut random = Random::new(97);
        for round in 0..rounds(100) {
            let blocks = 1 << random.below(8);
            let hashes: Vec<u64> = (0..random.below(400)).map(|_| random.next()).collect();
            let expected = naive(blocks, &hashes);
            let segment_bits = [3, 20, 64, u32::MAX][round % 4];
            let segment = if segment_bits == 3 { 8.min(blocks as usize) } else { blocks as usize };
            for isa in Isa::all() {
                let mut segments = vec![vec![[0; 8]; segment]; blocks as usize / segment];
                insert_with(isa, &mut segments, segment_bits, blocks, &hashes).unwrap();
                assert_eq!(segments.concat(), expected);
                let found = |hash: u64| contains(&expected[block_of(hash, blocks) as usize], hash);
                assert!(hashes.iter().all(|hash| found(*hash)));
                let mut few = vec![vec![[0; 8]; segment]; blocks as usize / segment - 1];
                let last = insert_with(isa, &mut few, segment_bits, blocks, &[u64::MAX]);
                assert_eq!(last, Err(Error::Mismatch));
            }
        }
    }

    #[test]
    fn many_blocks_are_asked_at_once() {
        let mut random = Random::new(107);
        for _ in 0..rounds(60) {
            let count = random.below(200);
            let wanted = random.next();
            let blocks: Vec<Block> = (0..count)
                .map(|_| {
                    let hashes: Vec<u64> = (0..random.below(30)).map(|_| random.next()).collect();
                    let mut block = naive(1, &hashes)[0];
                    if random.below(3) == 0 {
                        block.iter_mut().zip(bits_of(wanted)).for_each(|(word, bit)| *word |= bit);
                    }
                    block
                })
                .collect();
            let stored: Vec<[u8; 32]> = blocks
                .iter()
                .map(|block| {
                    let bytes: Vec<u8> = block.iter().flat_map(|word| word.to_le_bytes()).collect();
                    bytes.try_into().unwrap()
                })
                .collect();
            for isa in Isa::all() {
                let mut bits = vec![u64::MAX; count.div_ceil(64)];
                matches_with(isa, &stored, wanted, &mut bits).unwrap();
                for at in 0..bits.len() * 64 {
                    let expected = blocks.get(at).is_some_and(|block| contains(block, wanted));
                    assert_eq!(bits[at / 64] >> (at % 64) & 1 == 1, expected, "{isa:?}, block {at}");
                }
                bits.push(0);
                assert_eq!(matches_with(isa, &stored, wanted, &mut bits), Err(Error::Mismatch));
            }
        }
    }

    #[test]
    fn a_folded_filter_is_one_made_small() {
        let mut random = Random::new(101);
        for _ in 0..rounds(50) {
            let hashes: Vec<u64> = (0..random.below(2000)).map(|_| random.next()).collect();
            for isa in Isa::all() {
                let mut filter = naive(64, &hashes);
                for blocks in [32, 16, 8, 4, 2, 1] {
                    let small = naive(blocks, &hashes);
                    assert_eq!(folded_rate_with(isa, &filter), rate_with(isa, &small));
                    fold_with(isa, &mut filter);
                    filter.truncate(blocks as usize);
                    assert_eq!(filter, small, "{isa:?}");
                }
            }
        }
    }

    #[test]
    fn the_rate_is_that_of_hashes_that_were_not_put_there() {
        let mut random = Random::new(103);
        let hashes: Vec<u64> = (0..1200).map(|_| random.next()).collect();
        let filter = naive(64, &hashes);
        let expected: f64 = rate(&filter) as f64 / RATE_UNIT as f64 / 64.0;
        let tries = rounds(200_000);
        let found = (0..tries).map(|_| random.next());
        let found = found.filter(|hash| contains(&filter[block_of(*hash, 64) as usize], *hash)).count();
        let seen = found as f64 / tries as f64;
        assert!(cfg!(miri) || (seen / expected - 1.0).abs() < 0.2, "{seen} where {expected} is expected");
        assert_eq!(rate(&[[u32::MAX; 8]; 3]), 3 * RATE_UNIT);
        assert_eq!((rate(&[[0; 8]; 3]), rate(&[])), (0, 0));
    }
}
