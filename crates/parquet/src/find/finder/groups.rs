//! A row group: begun, and asked for by what is at hand and what is small.

use alloc::boxed::Box;

use marquetry_base::{Budget, Error, Result, Step};

use super::super::blooms;
use super::super::stage::{Stage, Turn};
use super::{JUDGE_PRICE, RowFinder};
use crate::prune::{BOUND_BYTES_MAX, Verdict};

/// What a row group costs.
const GROUP_UNITS: u64 = 200;
/// What a row group costs of which no rows are wanted: a search in the ranges.
const LEFT_OUT_UNITS: u64 = 100;
/// Bytes of page indexes that are kept for further searches.
const KEPT_BYTES_MAX: usize = 64 << 20;

impl RowFinder {
    /// Begins the next row group that is searched.
    pub(super) fn begin_next(&mut self, budget: &mut Budget<'_>) -> Result<Turn> {
        let next = self.row_groups.next().filter(|_| self.report.found < self.options.limit);
        let Some(row_group) = next else {
            self.stage = Stage::Done;
            return Ok(None);
        };
        if self.is_left_out(row_group) {
            budget.charge_units(LEFT_OUT_UNITS);
            return Ok(None);
        }
        self.begin(row_group, budget)?;
        Ok(None)
    }

    /// Whether a row group has no rows of [`FindOptions::ranges`].
    fn is_left_out(&self, row_group: usize) -> bool {
        let (group, ranges) = (&self.metadata.row_groups[row_group], &self.options.ranges);
        let first = ranges.partition_point(|range| range.end <= group.first_row);
        !ranges.is_empty()
            && ranges.get(first).is_none_or(|range| range.start >= group.first_row.saturating_add(group.rows))
    }

    /// Begins a row group: what do the statistics of its chunks say?
    fn begin(&mut self, row_group: usize, budget: &mut Budget<'_>) -> Result<()> {
        if self.kept_bytes > KEPT_BYTES_MAX {
            // They are shared with whoever is still reading; what is not is freed here, at most this much.
            self.pages.clear();
            self.kept_bytes = 0;
        }
        let group = &self.metadata.row_groups[row_group];
        let tests = &self.program.tests;
        budget.charge_units(GROUP_UNITS);
        budget.charge(JUDGE_PRICE, 0, tests.len());
        self.report.row_groups += 1;
        self.report.rows += group.rows;
        let uses = self.options.structures.statistics;
        let schema = &self.metadata.schema;
        let (mut has_any, mut bytes) = (false, 0);
        self.known.begin(&self.program, |number| {
            let (test, order) = (&tests[number], &self.orders[number]);
            match group.columns.get(test.leaf).filter(|_| uses) {
                Some(chunk) => {
                    if let Some(statistics) = &chunk.statistics {
                        has_any = true;
                        let bounds = [&statistics.min_value, &statistics.max_value];
                        bytes += bounds
                            .iter()
                            .map(|bound| bound.as_ref().map_or(0, |bound| bound.len().min(BOUND_BYTES_MAX)))
                            .sum::<usize>();
                    }
                    test.judge(&order.of_chunk(chunk), order, schema)
                }
                None => Verdict::Some,
            }
        });
        budget.charge(JUDGE_PRICE, bytes, 0);
        let verdict = self.known.verdict();
        let counts = &mut self.report.statistics;
        match verdict {
            Verdict::Some if !has_any => counts.absent += 1,
            Verdict::Some => counts.undecided += 1,
            Verdict::None | Verdict::All => counts.pruned += 1,
        }
        self.stage = match verdict {
            _ if group.rows == 0 => Stage::Begin,
            Verdict::None => Stage::Begin,
            Verdict::Some if self.options.structures.bloom => {
                let asking = blooms::Asking::new(
                    row_group,
                    (&self.program, &self.known, &self.hashes),
                    &self.metadata,
                    (&self.blooms, &mut self.report.bloom),
                    budget,
                );
                Stage::Bloom { row_group, asking: Box::new(asking) }
            }
            Verdict::Some => Stage::Index { row_group, reader: None },
            Verdict::All => self.all_rows(row_group)?,
        };
        Ok(())
    }

    /// Asks Bloom filters about the row group.
    pub(super) fn ask_blooms(&mut self, budget: &mut Budget<'_>) -> Result<Turn> {
        let Stage::Bloom { row_group, asking } = &mut self.stage else {
            return Err(Error::internal("no Bloom filters to ask"));
        };
        let step = asking.step(
            (self.object, &self.metadata),
            (&self.program, &mut self.known, &self.hashes),
            (&mut self.blooms, &mut self.report.bloom),
            budget,
        )?;
        self.stage = match step {
            Step::Ready(true) => Stage::Begin,
            Step::Ready(false) => Stage::Index { row_group: *row_group, reader: None },
            Step::Need(demand) => return Ok(Some(Step::Need(demand))),
            _ => return Ok(Some(Step::Yield)),
        };
        Ok(None)
    }
}
