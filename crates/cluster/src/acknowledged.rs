//! Which rows the cluster has acknowledged, of rows that overtake each other.

use std::collections::BTreeMap;
use std::ops::Range;

/// All rows before one, and some after it: those that were answered before an earlier one.
#[derive(Debug, Default)]
pub(crate) struct Acknowledged {
    until: u64,
    /// Ranges of rows after `until`, which do not touch each other: where each starts and ends.
    later: BTreeMap<u64, u64>,
}

impl Acknowledged {
    /// Rows before this one were acknowledged earlier.
    pub(crate) fn from(row: u64) -> Acknowledged {
        Acknowledged { until: row, later: BTreeMap::new() }
    }

    /// All rows before this one were acknowledged.
    pub(crate) fn until(&self) -> u64 {
        self.until
    }

    /// A row was acknowledged, which was not before.
    pub(crate) fn add(&mut self, row: u64) {
        self.add_all(row..row.saturating_add(1));
    }

    /// Rows were acknowledged, none of which was before, but for some before [`until`](Acknowledged::until).
    pub(crate) fn add_all(&mut self, rows: Range<u64>) {
        let (mut start, mut end) = (rows.start.max(self.until), rows.end);
        if start >= end {
            return;
        }
        if let Some((before, its_end)) =
            self.later.range(..=start).next_back().map(|(before, end)| (*before, *end))
            && its_end >= start
        {
            self.later.remove(&before);
            (start, end) = (before, end.max(its_end));
        }
        if let Some(its_end) = self.later.remove(&end) {
            end = its_end;
        }
        if start <= self.until {
            self.until = end;
        } else {
            self.later.insert(start, end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_whole_is_known() {
        let mut rows = Acknowledged::from(10);
        rows.add(11);
        rows.add(13);
        assert_eq!(rows.until(), 10);
        rows.add(10);
        assert_eq!(rows.until(), 12);
        rows.add(14);
        rows.add(16);
        rows.add(3);
        assert_eq!((rows.until(), rows.later.len()), (12, 2));
        rows.add(15);
        assert_eq!((rows.until(), rows.later.len()), (12, 1));
        rows.add(12);
        assert_eq!((rows.until(), rows.later.len()), (17, 0));
    }

    #[test]
    fn ranges_are_rows() {
        let mut rows = Acknowledged::from(10);
        rows.add_all(12..15);
        rows.add_all(16..16);
        rows.add(15);
        rows.add_all(3..9);
        assert_eq!((rows.until(), rows.later.len()), (10, 1));
        rows.add_all(8..12);
        assert_eq!((rows.until(), rows.later.len()), (16, 0));
    }

    /// In any order, compared with a set.
    #[test]
    fn any_order_gives_the_same() {
        let mut state = 1_u64;
        for _ in 0..200 {
            let mut left: Vec<u64> = (0..100).collect();
            let (mut rows, mut all) = (Acknowledged::default(), std::collections::BTreeSet::new());
            while !left.is_empty() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                // Near the front, as answers are.
                let near = usize::try_from(state >> 33).unwrap() % left.len().min(20);
                let row = left.remove(near);
                rows.add(row);
                all.insert(row);
                let whole = (0..).find(|row| !all.contains(row)).unwrap();
                assert_eq!(rows.until(), whole);
            }
            assert_eq!((rows.until(), rows.later.len()), (100, 0));
        }
    }
}
