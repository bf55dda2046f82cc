//! Numbers at random.

/// Numbers that a seed decides: the same on every machine.
///
/// Source: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators" (SplitMix64).
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    /// The numbers of a seed; of each `stream` others.
    pub(super) fn new(seed: u64, stream: u64) -> Random {
        let of_seed = Random(seed).next();
        Random(Random(of_seed ^ stream).next())
    }

    /// Any of 2^64 numbers.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `end`, which is not 0, each as likely as the others.
    ///
    /// Source: Lemire, "Fast Random Integer Generation in an Interval".
    pub(super) fn below(&mut self, end: u64) -> u64 {
        let unfair = end.wrapping_neg() % end;
        loop {
            let product = u128::from(self.next()) * u128::from(end);
            let [low, high] = [product & u128::from(u64::MAX), product >> 64];
            if low >= u128::from(unfair) {
                return u64::try_from(high).unwrap_or(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_below_another_are_equally_likely() {
        let mut random = Random::new(1, 2);
        for end in [1, 2, 3, 7, 10] {
            let mut counts = vec![0_u64; 10];
            for _ in 0..end * 10_000 {
                counts[usize::try_from(random.below(end)).unwrap()] += 1;
            }
            for (number, count) in (0..).zip(counts) {
                assert!(
                    if number < end { (9_600..10_400).contains(&count) } else { count == 0 },
                    "{end}: {count}"
                );
            }
        }
        assert_eq!(random.below(1), 0);
        assert!(random.below(u64::MAX) < u64::MAX);
    }

    #[test]
    fn streams_of_a_seed_differ() {
        let first = |seed, stream| Random::new(seed, stream).next();
        let numbers = [first(0, 0), first(0, 1), first(1, 0), first(1, 1)];
        for (at, number) in numbers.iter().enumerate() {
            assert!(!numbers[..at].contains(number));
        }
        assert_eq!(first(7, 3), first(7, 3));
    }
}
