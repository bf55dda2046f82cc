//! A table from hashes to entries' numbers, with bounded work per call.
//!
//! It uses open addressing with linear probing. Small tables are one part; larger ones have 64 parts, each of which
//! grows alone, so that no more than a 64th of the entries move at once. Entries are never removed.

use alloc::vec::Vec;

use marquetry_base::{Error, Result, cast};

/// The entry of a slot that has none.
pub(super) const NONE: u32 = u32::MAX;

/// The maximum number of entries: a part then has about 16,384.
const ENTRIES_MAX: usize = 1 << 20;

/// Maximum slots that are probed for a value. With a reasonable hash a few dozen suffice in the largest table; values
/// crafted to have the same hash are given up.
const PROBES_MAX: usize = 256;

/// Slots of the first table.
const FIRST_SLOTS: usize = 128;

/// A table of more slots is split into parts: up to 16 KiB, which stay in a core's first-level cache.
const WHOLE_SLOTS_MAX: usize = 1 << 12;

/// The logarithm of the number of parts.
const PART_BITS: u32 = 6;

/// Minimum slots per entry, in a table of one part: with fewer, too many values are not found in their first slot. And
/// in a table of 64 parts: with more, it would no longer stay in a core's second-level cache.
const WHOLE_SLOTS_PER_ENTRY: usize = 4;
const PART_SLOTS_PER_ENTRY: usize = 2;

/// The bits of a hash that are used: first those of the part, then those of the slot.
const HASH_BITS: u32 = u32::BITS;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// One, or `1 << PART_BITS`; empty before the first entry.
    parts: Vec<Part>,
    /// The upper bits of a hash that select its part: 0 if there is only one.
    part_bits: u32,
}

#[derive(Debug, Default)]
struct Part {
    /// Entries' numbers; a power of two of them.
    slots: Vec<u32>,
    /// The bits of a hash that do not select its slot.
    shift: u32,
    /// The number of slots in use.
    filled: usize,
}

/// The result of looking up a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// This one.
    Entry(u32),
    /// Nowhere; here it would be.
    Free(Place),
    /// Too many others have nearly the same hash.
    Crowded,
}

/// A free slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    part: usize,
    slot: usize,
}

impl Found {
    /// Where a new entry is stored; `entries` includes it. `None` if the table does not accept it.
    pub(super) fn place(self, entries: usize) -> Option<Place> {
        match self {
            Found::Free(place) if entries <= ENTRIES_MAX => Some(place),
            _ => None,
        }
    }
}

impl Table {
    /// The entry in a hash's first slot, or [`NONE`]: most often the right one, if it exists.
    #[inline(always)]
    pub(super) fn first(&self, hash: u32) -> u32 {
        match self.parts.get(self.part(hash)) {
            Some(part) => part.slots.get(self.start(part, hash)).copied().unwrap_or(NONE),
            None => NONE,
        }
    }

    #[inline(always)]
    fn part(&self, hash: u32) -> usize {
        // In 64 bits, because 32-bit numbers cannot be shifted by 32.
        (u64::from(hash) << self.part_bits >> HASH_BITS) as usize
    }

    /// A hash's first slot: the uppermost bits after the part's, which are the best of a product.
    #[inline(always)]
    fn start(&self, part: &Part, hash: u32) -> usize {
        (hash << self.part_bits >> part.shift) as usize
    }

    /// The entry with this hash for which `is` returns true. Adds the number of probed slots to `probes`.
    pub(super) fn find(&self, hash: u32, is: impl Fn(u32) -> bool, probes: &mut usize) -> Found {
        let number = self.part(hash);
        let Some(part) = self.parts.get(number) else { return Found::Free(Place { part: 0, slot: 0 }) };
        let (start, mask) = (self.start(part, hash), part.slots.len() - 1);
        for probe in 0..PROBES_MAX.min(part.slots.len()) {
            *probes += 1;
            let slot = (start + probe) & mask;
            match part.slots[slot] {
                NONE => return Found::Free(Place { part: number, slot }),
                entry if is(entry) => return Found::Entry(entry),
                _ => {}
            }
        }
        Found::Crowded
    }

    /// Inserts an entry at the place where it was not [found](Table::find). Returns how many entries were moved; `hash`
    /// returns an entry's hash.
    pub(super) fn insert(&mut self, place: Place, entry: u32, hash: impl Fn(u32) -> u32) -> Result<usize> {
        if self.parts.is_empty() {
            self.parts.push(Part::new(FIRST_SLOTS)?);
            let slot = self.start(&self.parts[0], hash(entry));
            self.parts[0].slots[slot] = entry;
            self.parts[0].filled = 1;
            return Ok(0);
        }
        let part = &mut self.parts[place.part];
        part.slots[place.slot] = entry;
        part.filled += 1;
        // Enough slots stay free that most values are found in their first slot.
        let least = if self.parts.len() == 1 { WHOLE_SLOTS_PER_ENTRY } else { PART_SLOTS_PER_ENTRY };
        let part = &self.parts[place.part];
        if part.filled * least <= part.slots.len() {
            return Ok(0);
        }
        let moved = part.filled;
        let slots = part.slots.len() * 2;
        if self.parts.len() > 1 || slots <= WHOLE_SLOTS_MAX {
            let old = core::mem::replace(&mut self.parts[place.part], Part::new(slots)?);
            self.add(&old.slots, &hash);
        } else {
            let mut parts = Vec::new();
            parts.try_reserve_exact(1 << PART_BITS).map_err(|_| Error::out_of_memory(slots * 4))?;
            for _ in 0..1 << PART_BITS {
                parts.push(Part::new(slots >> PART_BITS)?);
            }
            let old = core::mem::replace(&mut self.parts, parts);
            self.part_bits = PART_BITS;
            old.iter().for_each(|part| self.add(&part.slots, &hash));
        }
        Ok(moved)
    }

    /// Bytes that it takes.
    pub(super) fn held(&self) -> usize {
        self.parts.iter().map(|part| part.slots.capacity() * 4 + size_of::<Part>()).sum()
    }

    /// Releases a part, and returns its bytes. `None` once none is left.
    pub(super) fn pop(&mut self) -> Option<usize> {
        self.parts.pop().map(|part| part.slots.capacity() * 4)
    }

    /// Inserts entries that are not in the table.
    fn add(&mut self, entries: &[u32], hash: &impl Fn(u32) -> u32) {
        for &entry in entries.iter().filter(|&&entry| entry != NONE) {
            let hash = hash(entry);
            let number = self.part(hash);
            let mut slot = self.start(&self.parts[number], hash);
            let part = &mut self.parts[number];
            // Some are free.
            while part.slots[slot] != NONE {
                slot = (slot + 1) & (part.slots.len() - 1);
            }
            part.slots[slot] = entry;
            part.filled += 1;
        }
    }
}

impl Part {
    fn new(slots: usize) -> Result<Part> {
        let mut all = Vec::new();
        all.try_reserve_exact(slots).map_err(|_| Error::out_of_memory(slots * 4))?;
        all.resize(slots, NONE);
        Ok(Part { slots: all, shift: HASH_BITS - slots.trailing_zeros(), filled: 0 })
    }
}

/// The hash of a number.
#[inline(always)]
pub(super) fn hash_number(number: u64) -> u32 {
    // 2^64 divided by the golden ratio. A product's bits depend only on those below them, so the upper bits are folded
    // in first: floats have zeros in the lower ones.
    cast::low_u32((number ^ number >> 32).wrapping_mul(MIX) >> 32)
}

/// The hash of bytes, of eight at least.
#[inline]
pub(super) fn hash_bytes(bytes: &[u8]) -> u32 {
    let word = |bytes: &[u8]| bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
    let mut state = [cast::u64_of(bytes.len()) ^ MIX, MIX_HIGH];
    // Two products at a time, which are independent of each other.
    let (blocks, rest) = bytes.as_chunks::<32>();
    for block in blocks {
        state[0] = fold(word(block) ^ state[0], word(&block[8..]) ^ MIX_HIGH);
        state[1] = fold(word(&block[16..]) ^ state[1], word(&block[24..]) ^ MIX);
    }
    if rest.len() > 16 {
        state[0] = fold(word(rest) ^ state[0], word(&rest[8..]) ^ MIX_HIGH);
    }
    // The last sixteen bytes; some may have been mixed in already.
    let end = |back: usize| word(&bytes[bytes.len().saturating_sub(back)..]);
    hash_words(end(16) ^ state[0], end(8) ^ state[1])
}

/// The hash of two words.
#[inline(always)]
pub(super) fn hash_words(low: u64, high: u64) -> u32 {
    // Twice: texts that differ in only a few places would leave patterns in a single product.
    cast::low_u32(fold(fold(low ^ MIX, high ^ MIX_HIGH), MIX) >> 32)
}

/// Any odd numbers with about as many ones as zeros.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
const MIX_HIGH: u64 = 0xa076_1d64_78bd_642f;

/// Both halves of a product of 128 bits, together.
#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = (u128::from(a) * u128::from(b)).to_le_bytes();
    let [low, high] =
        [0, 8].map(|at| product[at..].first_chunk().map_or(0, |half| u64::from_le_bytes(*half)));
    low ^ high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_kinds_are_spread() {
        // Ascending numbers, multiples, floats, shifted small numbers: of 100,000 each, few are found far from their
        // first slot.
        let kinds: [fn(u64) -> u64; 6] = [
            |at| at,
            |at| at * 1000,
            |at| at << 40,
            |at| (at as f64).to_bits(),
            |at| at * 86_400_000_000 + 1_600_000_000_000_000,
            |at| at | at << 32,
        ];
        for (kind, value) in kinds.iter().enumerate() {
            let (mut table, mut probes, mut most_moved) = (Table::default(), 0, 0);
            let hash = |entry: u32| hash_number(value(entry.into()));
            for entry in 0..100_000 {
                let Found::Free(place) = table.find(hash(entry), |_| false, &mut 0) else {
                    panic!("entry {entry} of kind {kind} is crowded out");
                };
                most_moved = most_moved.max(table.insert(place, entry, hash).unwrap());
            }
            let mut first = 0;
            for entry in 0..100_000 {
                let found = table.find(hash(entry), |other| other == entry, &mut probes);
                assert_eq!(found, Found::Entry(entry));
                first += u32::from(table.first(hash(entry)) == entry);
            }
            assert!(probes < 150_000 && first > 75_000, "{probes} probes, {first} at once, of kind {kind}");
            assert!(most_moved < 4096, "{most_moved} entries moved at once");
            assert!(table.held() < 100_000 * 20);
        }
    }

    #[test]
    fn hashes_of_bytes_depend_on_all_of_them() {
        let mut bytes = [7u8; 100];
        for length in 8..100 {
            let hash = hash_bytes(&bytes[..length]);
            assert_ne!(hash, hash_bytes(&bytes[..length - 1]), "{length}");
            for at in 0..length {
                bytes[at] ^= 1;
                assert_ne!(hash, hash_bytes(&bytes[..length]), "byte {at} of {length}");
                bytes[at] ^= 1;
            }
        }
        assert_ne!(hash_words(1, 2), hash_words(2, 1));
    }

    #[test]
    fn the_same_hash_is_crowded() {
        let mut table = Table::default();
        for entry in 0.. {
            match table.find(5, |_| false, &mut 0) {
                Found::Free(place) => drop(table.insert(place, entry, |_| 5).unwrap()),
                found => {
                    assert_eq!((found, entry as usize), (Found::Crowded, PROBES_MAX));
                    break;
                }
            }
        }
    }
}
