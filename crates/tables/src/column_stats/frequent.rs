//! The most frequent values.

use std::collections::HashMap;

use super::value::PlainValue;

/// Bytes of a value that are kept, at most.
const FREQUENT_BYTES_MAX: usize = 256;

/// Values that are handed out, at most.
const HANDED_OUT: usize = 10;

/// A value that is frequent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FrequentValue {
    /// The value; of a long one the first 256 bytes.
    pub value: PlainValue,
    /// How often it is there, at least.
    pub at_least: u64,
    /// How often it is there, at most. The same, if it was counted from the first one on.
    pub at_most: u64,
}

/// Counts of at most so many values: when they are more, the smaller half of the counts is forgotten, and the others lose as
/// much. So a count is too small by what was lost, at most, and no value that is more frequent than that is missing.
///
/// Source: Misra and Gries, "Finding repeated elements"; Anderson and others, "A high-performance algorithm for identifying
/// frequent items in data streams" (2017), which forgets by halves.
#[derive(Debug)]
pub(super) struct Frequent {
    counts: HashMap<u64, (u64, Kept)>,
    most: usize,
    /// What each value may have lost.
    lost: u64,
}

/// A value: most are short, and many are forgotten soon.
#[derive(Debug)]
enum Kept {
    Short(u8, [u8; 16]),
    Long(Box<PlainValue>),
}

impl Frequent {
    /// Of at most `most` values.
    pub(super) fn new(most: usize) -> Frequent {
        Frequent { counts: HashMap::new(), most, lost: 0 }
    }

    pub(super) fn add(&mut self, hash: u64, value: &[u8], count: u64) {
        let (known, _) = self.counts.entry(hash).or_insert_with(|| (0, Kept::of(value)));
        *known = known.saturating_add(count);
        if self.counts.len() > self.most {
            self.forget();
        }
    }

    fn forget(&mut self) {
        let mut counts: Vec<u64> = self.counts.values().map(|(count, _)| *count).collect();
        let middle = counts.len() / 2;
        let median = *counts.select_nth_unstable(middle).1;
        self.lost = self.lost.saturating_add(median);
        self.counts.retain(|_, (count, _)| {
            *count = count.saturating_sub(median);
            *count > 0
        });
    }

    pub(super) fn finish(self) -> Vec<FrequentValue> {
        let lost = self.lost;
        let certain = self.counts.into_values().filter(|(count, _)| *count > lost);
        let mut frequent: Vec<FrequentValue> = certain
            .map(|(count, value)| FrequentValue {
                value: value.into_plain(),
                at_least: count,
                at_most: count.saturating_add(lost),
            })
            .collect();
        frequent.sort_by(|a, b| b.at_least.cmp(&a.at_least).then_with(|| a.value.bytes.cmp(&b.value.bytes)));
        // Among many that are there once, none is frequent.
        let is_all = lost == 0 && frequent.len() <= HANDED_OUT;
        frequent.retain(|value| is_all || value.at_least > 1);
        frequent.truncate(HANDED_OUT);
        frequent
    }
}

impl Kept {
    fn of(value: &[u8]) -> Kept {
        let mut short = [0; 16];
        match (short.get_mut(..value.len()), u8::try_from(value.len())) {
            (Some(bytes), Ok(length)) => {
                bytes.copy_from_slice(value);
                Kept::Short(length, short)
            }
            _ => Kept::Long(Box::new(PlainValue::of(value, FREQUENT_BYTES_MAX))),
        }
    }

    fn into_plain(self) -> PlainValue {
        match self {
            Kept::Short(length, bytes) => PlainValue::of(&bytes[..usize::from(length)], FREQUENT_BYTES_MAX),
            Kept::Long(value) => *value,
        }
    }
}

#[cfg(test)]
mod tests {
    use marquetry_parquet::bloom::hash;

    use super::*;

    fn frequent(values: impl Iterator<Item = u64>, most: usize) -> Vec<(u64, u64, u64)> {
        let mut counts = Frequent::new(most);
        for value in values {
            let bytes = value.to_le_bytes();
            counts.add(hash(&bytes), &bytes, 1);
            assert!(counts.counts.len() <= most);
        }
        let number = |value: &FrequentValue| u64::from_le_bytes(value.value.bytes[..].try_into().unwrap());
        counts.finish().iter().map(|value| (number(value), value.at_least, value.at_most)).collect()
    }

    #[test]
    fn few_values_are_counted() {
        let values = [7, 3, 7, 7, 9, 3];
        assert_eq!(frequent(values.into_iter(), 16), [(7, 3, 3), (3, 2, 2), (9, 1, 1)]);
        assert_eq!(frequent(0..1000, 1024), [], "each is there once");
    }

    #[test]
    fn frequent_values_are_found_among_many() {
        // A third is 1, a sixth 2, and the others are different.
        let value = |at: u64| match at % 6 {
            0 | 1 => 1,
            2 => 2,
            _ => 1_000 + at,
        };
        let found = frequent((0..60_000).map(value), 64);
        assert_eq!(found.iter().map(|(number, ..)| *number).collect::<Vec<_>>(), [1, 2]);
        for ((_, at_least, at_most), count) in found.iter().zip([20_000, 10_000]) {
            assert!(*at_least <= count && count <= *at_most && at_most - at_least < 2_000, "{found:?}");
        }
        assert_eq!(frequent(0..60_000, 64), []);
    }

    #[test]
    fn long_values_are_cut() {
        let mut counts = Frequent::new(16);
        let long = vec![b'x'; 1000];
        counts.add(1, &long, 5);
        counts.add(2, b"", 4);
        let found = counts.finish();
        assert_eq!(found[0].value, PlainValue { bytes: long[..FREQUENT_BYTES_MAX].to_vec(), is_cut: true });
        assert_eq!(found[1].value, PlainValue { bytes: Vec::new(), is_cut: false });
    }
}
