//! Filter.db: the Bloom filter, once the number of keys is known. What it is, [the reader](crate::sstable::filter) says.

use alloc::vec::Vec;

use marquetry_base::cast::{bits_i64, u64_of, usize_of};
use marquetry_base::{Budget, Price, Release, Segmented};

use super::out::{COPY_PRICE, Out};
use crate::sstable::toc::Component;
use crate::sstable::version::Version;

/// The price of a key: some bits, each in another cache line.
const KEY_PRICE: Price = Price::per_kilovalue(80 << 10);
/// Keys, or bytes, between two looks at the budget.
const SLICE_KEYS: usize = 256;
const SLICE_BYTES: usize = 64 << 10;

/// The share of false positives by bits a key (its row) and hashes, as servers count with them (`BloomCalculations.java`, after Fan, Cao,
/// Almeida and Broder, "Summary cache"): the best of a row is at its end or near it.
const SHARES: [&[f64]; 21] = [
    &[1.0],
    &[1.0, 1.0],
    &[1.0, 0.393, 0.400],
    &[1.0, 0.283, 0.237, 0.253],
    &[1.0, 0.221, 0.155, 0.147, 0.160],
    &[1.0, 0.181, 0.109, 0.092, 0.092, 0.101],
    &[1.0, 0.154, 0.0804, 0.0609, 0.0561, 0.0578, 0.0638],
    &[1.0, 0.133, 0.0618, 0.0423, 0.0359, 0.0347, 0.0364],
    &[1.0, 0.118, 0.0489, 0.0306, 0.024, 0.0217, 0.0216, 0.0229],
    &[1.0, 0.105, 0.0397, 0.0228, 0.0166, 0.0141, 0.0133, 0.0135, 0.0145],
    &[1.0, 0.0952, 0.0329, 0.0174, 0.0118, 0.00943, 0.00844, 0.00819, 0.00846],
    &[1.0, 0.0869, 0.0276, 0.0136, 0.00864, 0.0065, 0.00552, 0.00513, 0.00509],
    &[1.0, 0.08, 0.0236, 0.0108, 0.00646, 0.00459, 0.00371, 0.00329, 0.00314],
    &[1.0, 0.074, 0.0203, 0.00875, 0.00492, 0.00332, 0.00255, 0.00217, 0.00199, 0.00194],
    &[1.0, 0.0689, 0.0177, 0.00718, 0.00381, 0.00244, 0.00179, 0.00146, 0.00129, 0.00121, 0.0012],
    &[1.0, 0.0645, 0.0156, 0.00596, 0.003, 0.00183, 0.00128, 0.001, 0.000852, 0.000775, 0.000744],
    &[
        1.0, 0.0606, 0.0138, 0.005, 0.00239, 0.00139, 0.000935, 0.000702, 0.000574, 0.000505, 0.00047,
        0.000459,
    ],
    &[
        1.0, 0.0571, 0.0123, 0.00423, 0.00193, 0.00107, 0.000692, 0.000499, 0.000394, 0.000335, 0.000302,
        0.000287, 0.000284,
    ],
    &[
        1.0, 0.054, 0.0111, 0.00362, 0.00158, 0.000839, 0.000519, 0.00036, 0.000275, 0.000226, 0.000198,
        0.000183, 0.000176,
    ],
    &[
        1.0, 0.0513, 0.00998, 0.00312, 0.0013, 0.000663, 0.000394, 0.000264, 0.000194, 0.000155, 0.000132,
        0.000118, 0.000111, 0.000109,
    ],
    &[
        1.0, 0.0488, 0.00906, 0.0027, 0.00108, 0.00053, 0.000303, 0.000196, 0.00014, 0.000108, 8.89e-05,
        7.77e-05, 7.12e-05, 6.79e-05, 6.71e-05,
    ],
];
/// Bits that a filter has besides those for its keys.
const EXCESS_BITS: u64 = 20;

/// The hashes of keys, and then the filter.
#[derive(Debug)]
pub(super) struct Filter {
    share: f64,
    hashes: Segmented<[u64; 2]>,
    words: Vec<Vec<u8>>,
    spec: Option<Spec>,
    next: usize,
    written: usize,
}

#[derive(Debug, Clone, Copy)]
struct Spec {
    hashes: u32,
    bits: u64,
}

impl Filter {
    pub(super) fn new(share: f64) -> Filter {
        Filter { share, hashes: Segmented::new(), words: Vec::new(), spec: None, next: 0, written: 0 }
    }

    pub(super) fn add(&mut self, hash: [u64; 2]) {
        self.hashes.push(hash);
    }

    /// Writes the filter; false if the budget is spent before that is done.
    pub(super) fn write(&mut self, version: Version, out: &mut Out, budget: &mut Budget<'_>) -> bool {
        let spec = *self.spec.get_or_insert_with(|| Spec::new(self.share, u64_of(self.hashes.len())));
        let words = spec.bits / 64;
        if self.next == 0 && self.written == 0 && self.words.is_empty() {
            out.push(&Component::Filter, &spec.hashes.to_be_bytes(), budget);
            out.push(&Component::Filter, &u32::try_from(words).unwrap_or(u32::MAX).to_be_bytes(), budget);
        }
        let bytes = usize_of(words * 8).unwrap_or(usize::MAX);
        while self.words.len() * SLICE_BYTES < bytes {
            self.words.push(alloc::vec![0; SLICE_BYTES.min(bytes - self.words.len() * SLICE_BYTES)]);
            budget.charge(COPY_PRICE, SLICE_BYTES, 1);
            if budget.is_spent() {
                return false;
            }
        }
        while self.next < self.hashes.len() {
            let end = self.hashes.len().min(self.next + SLICE_KEYS);
            for number in self.next..end {
                self.set(self.hashes[number], spec, version);
            }
            budget.charge(KEY_PRICE, 0, (end - self.next) * (1 + spec.hashes_usize()) / 4 + 1);
            self.next = end;
            if budget.is_spent() {
                return false;
            }
        }
        while self.written < self.words.len() {
            let words = core::mem::take(&mut self.words[self.written]);
            out.push(&Component::Filter, &words, budget);
            self.written += 1;
            if budget.is_spent() {
                return false;
            }
        }
        self.hashes.release(budget)
    }

    fn set(&mut self, [first, second]: [u64; 2], spec: Spec, version: Version) {
        let mut sum = second;
        for _ in 0..spec.hashes {
            // The remainder has the sign of the number, in Java as here.
            let bit = (bits_i64(sum) % bits_i64(spec.bits)).unsigned_abs();
            let byte = match version.has_swapped_filter_words() {
                true => bit / 64 * 8 + (7 - bit % 64 / 8),
                false => bit / 8,
            };
            let byte = usize_of(byte).unwrap_or(0);
            if let Some(byte) =
                self.words.get_mut(byte / SLICE_BYTES).and_then(|it| it.get_mut(byte % SLICE_BYTES))
            {
                *byte |= 1 << (bit % 8);
            }
            sum = sum.wrapping_add(first);
        }
    }
}

impl Spec {
    /// The fewest bits a key, and then the fewest hashes, that make no larger a share of false positives.
    fn new(share: f64, keys: u64) -> Spec {
        let best = |shares: &[f64]| {
            let least = shares.iter().copied().fold(f64::MAX, f64::min);
            shares.iter().position(|share| *share == least).unwrap_or(0).max(1)
        };
        let mut bits_a_key = 2;
        while bits_a_key + 1 < SHARES.len() && SHARES[bits_a_key][best(SHARES[bits_a_key])] > share {
            bits_a_key += 1;
        }
        let mut hashes = best(SHARES[bits_a_key]);
        while hashes > 1 && SHARES[bits_a_key][hashes - 1] <= share {
            hashes -= 1;
        }
        let bits = keys * u64_of(bits_a_key) + EXCESS_BITS;
        Spec { hashes: u32::try_from(hashes).unwrap_or(1), bits: bits.div_ceil(64) * 64 }
    }

    fn hashes_usize(self) -> usize {
        marquetry_base::cast::usize_of_u32(self.hashes)
    }
}

impl Release for Filter {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.hashes.release(budget) && self.words.release(budget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_bits_and_hashes_as_servers_take() {
        let of = |share| {
            let spec = Spec::new(share, 1_000_000);
            (spec.hashes, spec.bits)
        };
        // What Cassandra 5.0 writes for bloom_filter_fp_chance = 0.01, 0.1 and 0.001.
        assert_eq!(of(0.01).0, 5);
        assert_eq!(of(0.01).1, (10_000_020_u64).div_ceil(64) * 64);
        assert_eq!(of(0.1).1, (5_000_020_u64).div_ceil(64) * 64);
        assert_eq!(of(0.1).0, 3);
        assert_eq!(of(1e-5).1, (20_000_020_u64).div_ceil(64) * 64);
    }
}
