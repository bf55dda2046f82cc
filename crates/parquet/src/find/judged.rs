//! The rows of a row group that its page indexes do not rule out.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Error, Result};

use super::pages::{ChunkPages, Judging};
use super::report::Report;
use crate::batch::{Combine, Combining, RowSelection};
use crate::format::FileMetaData;
use crate::prune::{Operation, Test, Verdict};

/// Page indexes, by row group and leaf.
pub(super) type Indexes = BTreeMap<(usize, usize), Arc<ChunkPages>>;

/// Judges the pages of each test, and puts their rows together.
#[derive(Default)]
pub(super) struct Judged {
    pub(super) row_group: usize,
    next: usize,
    judging: Judging,
    stack: Vec<RowSelection>,
    combining: Option<Combining>,
}

impl Judged {
    /// Of a row group whose page indexes are read.
    pub(super) fn new(row_group: usize) -> Judged {
        Judged { row_group, ..Judged::default() }
    }

    /// Puts the rows of the tests together. `None` if the budget is spent first.
    pub(super) fn step(
        &mut self,
        (program, tests, verdicts): (&[Operation], &[Test], &[Verdict]),
        pages: &Indexes,
        metadata: &FileMetaData,
        report: &mut Report,
        budget: &mut Budget<'_>,
    ) -> Result<Option<RowSelection>> {
        let group_rows = metadata.row_groups[self.row_group].rows;
        let all = || RowSelection::of(0..group_rows);
        while let Some(operation) = program.get(self.next) {
            let rows = match *operation {
                Operation::All(true) => all()?,
                Operation::All(false) => RowSelection::none(),
                Operation::Test(number) => {
                    let (test, verdict) = (&tests[number], verdicts[number]);
                    let known = pages.get(&(self.row_group, test.leaf));
                    match (verdict, known) {
                        (Verdict::None, _) => RowSelection::none(),
                        (Verdict::All, _) => all()?,
                        (Verdict::Some, Some(chunk)) if chunk.has_bounds() => {
                            let made = self.judging.step(test, chunk, &metadata.schema, budget)?;
                            let Some(rows) = made else { return Ok(None) };
                            let (judging, pages) = (core::mem::take(&mut self.judging), u64_of(chunk.len()));
                            report.index.pruned += judging.pruned;
                            report.index.undecided += pages.saturating_sub(judging.pruned);
                            rows
                        }
                        _ => {
                            report.index.absent += 1;
                            all()?
                        }
                    }
                }
                Operation::And | Operation::Or => {
                    let combining = match &mut self.combining {
                        Some(combining) => combining,
                        None => {
                            let (Some(right), Some(left)) = (self.stack.pop(), self.stack.pop()) else {
                                return Err(Error::internal("an operation without two sets of rows"));
                            };
                            let how = match operation {
                                Operation::And => Combine::Intersection,
                                _ => Combine::Union,
                            };
                            self.combining.insert(left.combine(right, how))
                        }
                    };
                    let Some(rows) = combining.step(budget)? else { return Ok(None) };
                    self.combining = None;
                    rows
                }
            };
            self.stack.push(rows);
            self.next += 1;
            if budget.is_spent() && self.next < program.len() {
                return Ok(None);
            }
        }
        self.stack.pop().map(Some).ok_or_else(|| Error::internal("a predicate without rows"))
    }
}
