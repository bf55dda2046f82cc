//! Filter.db: the Bloom filter of the partition keys.
//!
//! It has the number of hashes, the number of words of 64 bits, and these. The bits of a key are `second + i × first`, for each hash `i`, by
//! the remainder of the division by the number of bits, where `first` and `second` are the halves of the key's hash (the one that tokens
//! are of). Up to `me` (and in ScyllaDB's `ms` and `mt`) the bytes of each word are big-endian; from `na` on they are as they are in memory.
//! (`BloomFilterSerializer.java`, `BloomFilter.java`, `OffHeapBitSet.java`.)

use marquetry_base::cast::bits_i64;
use marquetry_base::{Budget, Error, Limits, Object, Release, Result};

use super::elements::{ComponentReader, Elements, Going, Parser};
use super::token::murmur3_hash;
use super::version::Version;

/// The most hashes: Cassandra's tables end at 20.
const HASHES_MAX: u32 = 64;
/// Bytes before the words.
const HEADER_BYTES: u64 = 8;
const WORD_BYTES: u64 = 8;

/// What is asked for at a time.
const BLOCK_BYTES: u64 = 64;

/// Looks a key up in Filter.db: its product is false if the SSTable does not have the key, and true if it may have it.
///
/// Asks for the object's length, for its first bytes, and then for one block for each hash, until one says no.
pub type FilterReader = ComponentReader<FilterParser>;

/// What a [`FilterReader`] has read.
#[derive(Debug)]
pub struct FilterParser {
    has_swapped_words: bool,
    hash: [u64; 2],
    /// Hashes and bits, once they are known.
    header: Option<(u32, u64)>,
    /// The hash that is looked at next.
    next: u32,
}

impl FilterReader {
    /// A look-up of a serialized partition key in the Filter.db that `object` is, of an SSTable of this version.
    pub fn new(object: Object, version: Version, key: &[u8], limits: Limits) -> FilterReader {
        let parser = FilterParser {
            has_swapped_words: version.has_swapped_filter_words(),
            hash: murmur3_hash(key),
            header: None,
            next: 0,
        };
        ComponentReader::of(Elements::in_blocks(object, "Filter.db", BLOCK_BYTES, &limits), parser)
    }
}

impl Parser for FilterParser {
    type Product = bool;

    fn next(&mut self, elements: &mut Elements, budget: &mut Budget<'_>) -> Result<Going<Option<bool>>> {
        Ok(match self.header {
            None => self.read_header(elements, budget)?.map(|()| None),
            Some((hashes, _)) if self.next == hashes => Going::Done(Some(true)),
            Some((_, bits)) => self.bit(bits, elements, budget)?.map(|is_set| (!is_set).then_some(false)),
        })
    }
}

impl FilterParser {
    fn read_header(&mut self, elements: &mut Elements, budget: &mut Budget<'_>) -> Result<Going<()>> {
        let length = elements.component_bytes();
        if elements.left() > HEADER_BYTES {
            elements.seek(0..HEADER_BYTES);
        }
        let read = elements.next(budget, |cursor| Ok((cursor.u32()?, cursor.count()?)))?;
        let (hashes, words) = match read {
            Going::Done((hashes, words)) => (hashes, u64::from(words)),
            Going::Need(demand) => return Ok(Going::Need(demand)),
        };
        if hashes == 0 || hashes > HASHES_MAX {
            return Err(elements.fault(Error::corrupt(alloc::format!("{hashes} hashes")).at_offset(0)));
        }
        if words == 0 || length != HEADER_BYTES + words * WORD_BYTES {
            return Err(elements.corrupt("another number of words than there is room for", 4));
        }
        self.header = Some((hashes, words * 64));
        Ok(Going::Done(()))
    }

    /// Looks at the bit of the next hash.
    fn bit(&mut self, bits: u64, elements: &mut Elements, budget: &mut Budget<'_>) -> Result<Going<bool>> {
        let [first, second] = self.hash;
        let sum = bits_i64(second.wrapping_add(first.wrapping_mul(u64::from(self.next))));
        // The remainder has the sign of the number, in Java as here.
        let bit = (sum % bits_i64(bits)).unsigned_abs();
        let byte = match self.has_swapped_words {
            true => bit / 64 * WORD_BYTES + (WORD_BYTES - 1 - bit % 64 / 8),
            false => bit / 8,
        };
        let at = HEADER_BYTES + byte;
        if elements.at() != at || elements.left() != 1 {
            elements.seek(at..at + 1);
        }
        Ok(elements.next(budget, |cursor| cursor.u8())?.map(|byte| {
            self.next += 1;
            byte >> (bit % 8) & 1 == 1
        }))
    }
}

impl Release for FilterParser {}
