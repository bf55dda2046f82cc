//! How many values are different.

use std::collections::HashSet;

use marquetry_base::cast::usize_of;

/// Different values that are counted one by one; of more, their number is estimated.
const EXACT_MAX: usize = 1024;
const EXACT_MAX_OF_MANY: usize = 64;
/// Bits of a hash that choose a register. The standard error is 1.04 / √2^bits: 0.8 % and 3.3 %.
const BITS: u32 = 14;
const BITS_OF_MANY: u32 = 10;

/// How many values are different.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distinct {
    /// So many.
    Exactly(u64),
    /// About so many.
    About(u64),
}

impl Default for Distinct {
    fn default() -> Distinct {
        Distinct::Exactly(0)
    }
}

impl Distinct {
    /// Not more than there are values.
    pub(super) fn of_values(self, values: u64) -> Distinct {
        match self {
            Distinct::About(count) => Distinct::About(count.min(values)),
            exactly => exactly,
        }
    }

    /// The number, exact or not.
    pub fn get(self) -> u64 {
        match self {
            Distinct::Exactly(count) | Distinct::About(count) => count,
        }
    }
}

/// Counts different hashes: few of them one by one, more by what is most unlikely among them.
///
/// Source: Flajolet and others, "HyperLogLog: the analysis of a near-optimal cardinality estimation algorithm"; the estimate is that of
/// Ertl, "New cardinality estimation algorithms for HyperLogLog sketches" (2017), which has no bias where values are few.
///
/// ```
/// use marquetry_tables::{Distinct, DistinctCounter};
///
/// let mut counter = DistinctCounter::new();
/// for hash in [7, 9, 7] {
///     counter.add(hash);
/// }
/// assert_eq!(counter.count(), Distinct::Exactly(2));
/// ```
#[derive(Debug)]
pub struct DistinctCounter {
    few: HashSet<u64>,
    exact_max: usize,
    bits: u32,
    /// For each register the longest run of zeros that a hash began with after the register's bits, and one; none as long as all hashes
    /// are kept.
    registers: Vec<u8>,
}

impl Default for DistinctCounter {
    fn default() -> DistinctCounter {
        DistinctCounter::new()
    }
}

impl DistinctCounter {
    /// Counts up to 1024 hashes exactly; of more, with a standard error of 0.8 %, in 16 KiB.
    pub fn new() -> DistinctCounter {
        DistinctCounter::of_one(false)
    }

    /// For one of very many columns, or for one that may take more memory.
    pub(super) fn of_one(is_of_many: bool) -> DistinctCounter {
        let (exact_max, bits) =
            if is_of_many { (EXACT_MAX_OF_MANY, BITS_OF_MANY) } else { (EXACT_MAX, BITS) };
        DistinctCounter { few: HashSet::new(), exact_max, bits, registers: Vec::new() }
    }

    /// Adds a hash, all of whose bits must be as good as random.
    pub fn add(&mut self, hash: u64) {
        if !self.registers.is_empty() {
            self.register(hash);
            return;
        }
        self.few.insert(hash);
        if self.few.len() > self.exact_max {
            self.registers = vec![0; 1 << self.bits];
            for hash in std::mem::take(&mut self.few) {
                self.register(hash);
            }
        }
    }

    fn register(&mut self, hash: u64) {
        let place = usize_of(hash >> (64 - self.bits)).unwrap_or(0);
        // At most 64 − bits zeros.
        let zeros = (hash << self.bits | 1 << (self.bits - 1)).leading_zeros();
        let run = u8::try_from(zeros + 1).unwrap_or(u8::MAX);
        if let Some(register) = self.registers.get_mut(place) {
            *register = run.max(*register);
        }
    }

    /// How many different hashes were added.
    pub fn count(&self) -> Distinct {
        if self.registers.is_empty() {
            return Distinct::Exactly(u64::try_from(self.few.len()).unwrap_or(u64::MAX));
        }
        let longest = usize::try_from(64 - self.bits + 1).unwrap_or(0);
        let mut counts = vec![0_u32; longest + 1];
        for register in &self.registers {
            if let Some(count) = counts.get_mut(usize::from(*register)) {
                *count += 1;
            }
        }
        let registers = f64::from(1_u32 << self.bits);
        let share = |run: usize| f64::from(counts[run]) / registers;
        let mut sum = registers * tau(1.0 - share(longest));
        for run in (1..longest).rev() {
            sum = 0.5 * (sum + f64::from(counts[run]));
        }
        sum += registers * sigma(share(0));
        let estimate = registers * registers / (2.0 * std::f64::consts::LN_2 * sum);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "casts of floats saturate"
        )]
        let count = estimate.round() as u64;
        Distinct::About(count)
    }
}

/// x + Σ x^(2^k) 2^(k−1)
fn sigma(share: f64) -> f64 {
    let (mut power, mut weight, mut sum) = (share, 1.0, share);
    while power < 1.0 {
        power *= power;
        let before = sum;
        sum += power * weight;
        weight += weight;
        if sum <= before {
            return sum;
        }
    }
    f64::INFINITY
}

/// (1 − x − Σ (1 − x^(2^−k))² 2^−k) / 3
fn tau(share: f64) -> f64 {
    if share <= 0.0 || share >= 1.0 {
        return 0.0;
    }
    let (mut root, mut weight, mut sum) = (share, 1.0, 1.0 - share);
    loop {
        root = root.sqrt();
        let before = sum;
        weight *= 0.5;
        sum -= (1.0 - root) * (1.0 - root) * weight;
        if sum >= before {
            return sum / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use marquetry_parquet::bloom::hash;

    use super::*;

    fn counted(values: u64, is_of_many: bool) -> Distinct {
        let mut counter = DistinctCounter::of_one(is_of_many);
        for value in (0..values).chain(0..values / 2) {
            counter.add(hash(&value.to_le_bytes()));
        }
        counter.count()
    }

    #[test]
    fn few_are_counted_and_many_are_estimated() {
        for values in [0, 1, 2, 1024] {
            assert_eq!(counted(values, false), Distinct::Exactly(values));
        }
        for values in [1025, 3_000, 10_000, 12_345, 20_000, 50_000, 100_000, 1_000_000] {
            for (is_of_many, most) in [(false, 4), (true, 9)] {
                let Distinct::About(count) = counted(values, is_of_many) else { panic!("{values}") };
                let off = count.abs_diff(values) * 100 / values;
                assert!(off <= most, "{count} of {values}: {off} %");
            }
        }
    }

    #[test]
    fn registers_at_their_ends() {
        let mut counter = DistinctCounter::of_one(false);
        (0..16_384_u64).for_each(|place| counter.add(place << 50));
        // No hash has more zeros, in every register.
        assert!(counter.registers.iter().all(|run| *run == 51));
        assert!(counter.count().get() > 1 << 50);
    }
}
