//! Which rows are chosen, of a table whose number of rows is known.

use std::collections::BTreeSet;
use std::ops::Range;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Budget, Error, Result};
use marquetry_parquet::batch::RowSelection;

use super::random::Random;

/// Rows of a block, at least: as many as a selection keeps together.
const BLOCK_ROWS_MIN: u64 = 1 << 16;
/// Blocks, at most: of more rows, they are larger.
const BLOCKS_MAX: u64 = 1 << 16;
/// Of how many rows one is chosen where each of them is looked at, at most: fewer are drawn.
const DENSE: u64 = 32;

/// Rows, chosen at random without replacement: how many of each block is drawn first, and which of a block when they are asked for. So
/// it takes memory for blocks, not for rows, and any range is known without those before it.
#[derive(Debug)]
pub(super) struct Choice {
    all: u64,
    block_rows: u64,
    /// For each block, how many of its rows are chosen.
    counts: Vec<u64>,
    seed: u64,
}

impl Choice {
    /// Of `all` rows, `rows`, which are no more.
    pub(super) fn new(all: u64, rows: u64, seed: u64) -> Choice {
        let block_rows = all.div_ceil(BLOCKS_MAX).next_power_of_two().max(BLOCK_ROWS_MIN);
        let blocks = usize_of(all.div_ceil(block_rows)).unwrap_or(0);
        let block = |number: usize| u64_of(number) * block_rows;
        let sizes: Vec<u64> = (0..blocks).map(|number| block_rows.min(all - block(number))).collect();
        // Of the rows that are left, those that are drawn, or if that are fewer, those that are not.
        let is_of_most = rows > all / 2;
        let drawn = if is_of_most { all - rows } else { rows };
        let (mut left, mut random) = (Left::new(&sizes), Random::new(seed, u64::MAX));
        let mut counts = vec![0; blocks];
        for number in 0..drawn {
            let place = left.take(random.below(all - number));
            if let Some(count) = counts.get_mut(place) {
                *count += 1;
            }
        }
        if is_of_most {
            counts.iter_mut().zip(sizes).for_each(|(count, size)| *count = size - *count);
        }
        Choice { all, block_rows, counts, seed }
    }

    /// How many rows of a range are chosen. `known` has the chosen rows of a block that was looked at before, and gets the last.
    pub(super) fn count(&self, range: Range<u64>, known: &mut Option<(usize, Vec<u64>)>) -> u64 {
        let mut count = 0;
        for (number, block) in self.blocks(&range) {
            if range.start <= block.start && block.end <= range.end {
                count += self.counts.get(number).copied().unwrap_or(0);
                continue;
            }
            let (number, rows) = known
                .take()
                .filter(|(known, _)| *known == number)
                .unwrap_or_else(|| (number, self.chosen(number, block)));
            let before = |end: u64| rows.partition_point(|row| *row < end);
            count += u64_of(before(range.end) - before(range.start));
            *known = Some((number, rows));
        }
        count
    }

    /// The chosen rows of a range, counted from its start.
    pub(super) fn rows(&self, range: Range<u64>) -> Result<RowSelection> {
        let mut rows = RowSelection::none();
        for (number, block) in self.blocks(&range) {
            for row in self.chosen(number, block) {
                if range.contains(&row) {
                    let row = row - range.start;
                    rows.push(row..row + 1, &mut Budget::unlimited())?;
                }
            }
        }
        if rows.rows() > range.end - range.start {
            return Err(Error::internal("more rows than there are"));
        }
        Ok(rows)
    }

    /// The blocks that have rows of a range, and their rows.
    fn blocks(&self, range: &Range<u64>) -> impl Iterator<Item = (usize, Range<u64>)> + use<> {
        let (all, block_rows) = (self.all, self.block_rows);
        let numbers =
            if range.is_empty() { 0..0 } else { range.start / block_rows..range.end.div_ceil(block_rows) };
        numbers.filter_map(move |number| {
            let start = number * block_rows;
            Some((usize_of(number)?, start..all.min(start + block_rows)))
        })
    }

    /// The chosen rows of a block, in order.
    fn chosen(&self, number: usize, block: Range<u64>) -> Vec<u64> {
        let (rows, count) = (block.end - block.start, self.counts.get(number).copied().unwrap_or(0));
        let mut random = Random::new(self.seed, u64_of(number));
        if count.saturating_mul(DENSE) < rows {
            // Source: Bentley and Floyd, "A sample of brilliance".
            let mut chosen = BTreeSet::new();
            for last in rows - count..rows {
                let row = block.start + random.below(last + 1);
                if !chosen.insert(row) {
                    chosen.insert(block.start + last);
                }
            }
            return chosen.into_iter().collect();
        }
        // Source: Knuth, The Art of Computer Programming, volume 2, 3.4.2, algorithm S.
        let mut wanted = count;
        block
            .clone()
            .filter(|row| {
                let is_chosen = wanted > 0 && random.below(block.end - row) < wanted;
                wanted -= u64::from(is_chosen);
                is_chosen
            })
            .collect()
    }
}

/// How many rows of each block are left.
///
/// Source: Fenwick, "A new data structure for cumulative frequency tables".
struct Left(Vec<u64>);

impl Left {
    fn new(sizes: &[u64]) -> Left {
        // From 1 on: each has the sum of as many as its lowest bit says.
        let mut sums: Vec<u64> = std::iter::once(0).chain(sizes.iter().copied()).collect();
        for at in 1..sums.len() {
            let parent = at + (at & at.wrapping_neg());
            if parent < sums.len() {
                sums[parent] += sums[at];
            }
        }
        Left(sums)
    }

    /// Takes a row, by its number among those that are left. Returns its block.
    fn take(&mut self, mut row: u64) -> usize {
        let mut block = 0;
        let mut step = self.0.len().next_power_of_two();
        while step > 0 {
            // Passing blocks; the sums on the way to the one that it is in lose a row.
            let at = block + step;
            if let Some(sum) = self.0.get_mut(at) {
                if row >= *sum {
                    row -= *sum;
                    block = at;
                } else {
                    *sum -= 1;
                }
            }
            step /= 2;
        }
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_of(choice: &Choice, all: u64) -> Vec<u64> {
        let (rows, mut at, mut numbers) = (choice.rows(0..all).unwrap(), 0, Vec::new());
        while let Some(run) = rows.next_run(at) {
            at = run.end;
            numbers.extend(run);
        }
        numbers
    }

    #[test]
    fn as_many_rows_as_asked_whatever_the_ranges() {
        for (all, rows) in [
            (1, 0),
            (1, 1),
            (10, 3),
            (10, 9),
            (65_536, 1),
            (65_537, 65_536),
            (1_000_000, 17),
            (1_000_000, 400_000),
            (1_000_000, 999_999),
        ] {
            let choice = Choice::new(all, rows, 5);
            let numbers = all_of(&choice, all);
            assert_eq!(
                (u64_of(numbers.len()), choice.count(0..all, &mut None)),
                (rows, rows),
                "{rows} of {all}"
            );
            assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]) && numbers.iter().all(|row| *row < all));
            // In parts, the same.
            let (mut start, mut parts, mut known) = (0, Vec::<u64>::new(), None);
            for end in [all / 7, all / 3, all * 2 / 3, all] {
                let part = choice.rows(start..end).unwrap();
                assert_eq!(part.rows(), choice.count(start..end, &mut known));
                parts.extend(
                    numbers.iter().filter(|row| (start..end).contains(row) && part.contains(**row - start)),
                );
                start = end;
            }
            assert_eq!(parts, numbers, "{rows} of {all}");
        }
    }

    #[test]
    fn rows_are_equally_likely() {
        // Of small tables each row, and of large ones each block, is chosen as often as others.
        let mut counts = [0_u32; 10];
        for seed in 0..20_000 {
            all_of(&Choice::new(10, 3, seed), 10).iter().for_each(|row| counts[usize_of(*row).unwrap()] += 1);
        }
        assert!(counts.iter().all(|count| (5_700..6_300).contains(count)), "{counts:?}");
        let choice = Choice::new(10 << 16, 100_000, 3);
        assert!(choice.counts.iter().all(|count| (9_500..10_500).contains(count)), "{:?}", choice.counts);
        let again = Choice::new(10 << 16, 100_000, 3);
        assert_eq!(all_of(&again, 10 << 16), all_of(&choice, 10 << 16));
    }

    #[test]
    fn of_more_rows_than_anyone_has() {
        let choice = Choice::new(u64::MAX >> 1, 1_000, 1);
        assert_eq!(choice.counts.iter().sum::<u64>(), 1_000);
        assert_eq!(choice.count(0..u64::MAX >> 1, &mut None), 1_000);
    }
}
