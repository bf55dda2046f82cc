//! The columns of a predicate, read and tested.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::cast::u64_of;
use marquetry_base::{Bitmap, Budget, Error, Machine as _, Price, Release, Result, Step, release_all};

use super::pages::ChunkPages;
use super::report::Report;
use crate::batch::{Batch, RowSelection};
use crate::growing::release_in_step;
use crate::prune::Evaluator;
use crate::read::BatchReader;

/// The price of adding a run of found rows.
const RUN_PRICE: Price = Price::per_kilovalue(60 << 10);

/// Reads rows of a row group, and tests them.
pub(super) struct Reading {
    pub(super) row_group: usize,
    pub(super) reader: Box<BatchReader>,
    /// The rows that can pass; `None`: all.
    pub(super) wanted: Option<RowSelection>,
    /// The batch that is being tested.
    pub(super) batch: Option<Batch>,
    /// What was tested, and is not released yet.
    pub(super) used: Option<Batch>,
    pub(super) found: RowSelection,
    /// The row after those that were tested.
    pub(super) next_row: u64,
    /// Page indexes that are not to be used any more.
    pub(super) distrusted: Vec<Arc<ChunkPages>>,
    /// It depends on what indexes and headers say of pages.
    pub(super) takes_shortcuts: bool,
    /// It is read for the second time.
    pub(super) is_again: bool,
}

impl Reading {
    /// Of a row group that a reader is about to begin.
    pub(super) fn new(row_group: usize, reader: Box<BatchReader>, wanted: Option<RowSelection>) -> Reading {
        Reading {
            row_group,
            reader,
            wanted,
            batch: None,
            used: None,
            found: RowSelection::none(),
            next_row: 0,
            distrusted: Vec::new(),
            takes_shortcuts: false,
            is_again: false,
        }
    }

    /// Reads and tests. Ready once all rows are tested, or `limit` are found in all. Batches that have some go to `kept`, with them.
    pub(super) fn step(
        &mut self,
        evaluator: &mut Evaluator,
        limit: u64,
        (report, mut kept): (&mut Report, Option<&mut Vec<(Batch, Bitmap)>>),
        budget: &mut Budget<'_>,
    ) -> Result<Step<()>> {
        loop {
            if self.used.is_some() {
                if !release_in_step(&mut self.used, budget) {
                    return Ok(Step::Yield);
                }
                self.used = None;
                if budget.is_spent() {
                    return Ok(Step::Yield);
                }
            }
            let Some(batch) = &self.batch else {
                if self.reader.is_through() {
                    return Ok(Step::Ready(()));
                }
                match self.reader.step(budget)? {
                    Step::Ready(batch) => self.batch = Some(batch),
                    Step::Need(demand) => return Ok(Step::Need(demand)),
                    Step::Yield | Step::Append(..) => return Ok(Step::Yield),
                    Step::Done => return Ok(Step::Ready(())),
                }
                if budget.is_spent() {
                    return Ok(Step::Yield);
                }
                continue;
            };
            let Some(bits) = evaluator.step(batch, budget)? else { return Ok(Step::Yield) };
            let before = self.found.rows();
            // The bits are of the rows that are wanted, one after the other.
            let first_row = self.reader.metadata().row_groups[self.row_group].first_row;
            let (mut row, mut at) = (batch.first_row.saturating_sub(first_row), 0);
            while at < bits.len() {
                let left = u64_of(bits.len() - at);
                let run = match &self.wanted {
                    None => row..row + left,
                    Some(rows) => {
                        let run = rows.next_run(row);
                        run.ok_or_else(|| Error::internal("a batch of rows that are not wanted"))?
                    }
                };
                let start = run.start.max(row);
                let count = left.min(run.end - start);
                let end = at + usize::try_from(count).unwrap_or(0);
                self.found.push_bits(start, &bits.slice(at..end), budget)?;
                budget.charge(RUN_PRICE, 0, 1);
                (row, at) = (start + count, end);
            }
            self.next_row = row;
            let count = self.found.rows() - before;
            report.found += count;
            // Of pages that were ruled out by their headers it has nulls, which other columns may have found.
            let keeps = count > 0 && self.reader.judged().pruned == 0;
            match kept.as_mut().filter(|_| keeps) {
                Some(kept) => kept.extend(self.batch.take().map(|batch| (batch, bits))),
                None => self.used = self.batch.take(),
            }
            if report.found >= limit {
                return Ok(Step::Ready(()));
            }
            if budget.is_spent() {
                return Ok(Step::Yield);
            }
        }
    }
}

impl Release for Reading {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let Reading { used, batch, reader, found, wanted, distrusted, .. } = self;
        release_all(&mut [used, batch, &mut **reader, found, wanted, distrusted], budget)
    }
}
