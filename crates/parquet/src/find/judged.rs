//! The rows of a row group that its page indexes do not rule out.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Error, Result};

use super::pages::{Asked, ChunkPages, Judgement, Judging};
use super::report::Report;
use crate::batch::{Combine, Combining, RowSelection};
use crate::format::FileMetaData;
use crate::prune::{Counts, Operation, Test, Verdict};
use crate::read::{PageBloom, PageBloomProbe, PageSet};

/// Page indexes, by row group and leaf.
pub(super) type Indexes = BTreeMap<(usize, usize), Arc<ChunkPages>>;

/// What came of a step.
pub(super) enum Outcome {
    /// The budget is spent.
    Yield,
    /// Bloom filters of pages are to be asked about this test; their answer goes to [`Judged::sets`].
    Ask(usize, PageBloom),
    /// The rows.
    Rows(RowSelection),
}

/// Judges the pages of each test, and puts their rows together.
#[derive(Default)]
pub(super) struct Judged {
    pub(super) row_group: usize,
    /// It was done before, when less was known of some tests: nothing is counted twice, and no filter asked.
    is_again: bool,
    next: usize,
    judging: Judging,
    /// The pages that Bloom filters leave, by test; `None` where they cannot be believed.
    pub(super) sets: BTreeMap<usize, Option<PageSet>>,
    /// The last that asked them: another test may want what it has read.
    pub(super) probe: Option<Box<PageBloomProbe>>,
    stack: Vec<RowSelection>,
    combining: Option<Combining>,
}

impl Judged {
    /// Of a row group whose page indexes are read.
    pub(super) fn new(row_group: usize) -> Judged {
        Judged { row_group, ..Judged::default() }
    }

    /// The same once more, after something was learned about tests.
    pub(super) fn again(row_group: usize) -> Judged {
        Judged { row_group, is_again: true, ..Judged::default() }
    }

    /// Puts the rows of the tests together. `hashes` says of a test how many it takes to ask Bloom filters about it.
    pub(super) fn step(
        &mut self,
        (program, tests, verdicts): (&[Operation], &[Test], &[Verdict]),
        hashes: impl Fn(usize) -> Option<usize>,
        (pages, distrusted): (&Indexes, &BTreeSet<(usize, usize)>),
        metadata: &FileMetaData,
        report: &mut Report,
        budget: &mut Budget<'_>,
    ) -> Result<Outcome> {
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
                        (Verdict::Some, Some(chunk)) if chunk.has_bounds() || chunk.bloom().is_some() => {
                            let asked = match (self.sets.get(&number), hashes(number)) {
                                (Some(Some(left)), _) => Asked::Pages(left),
                                (None, Some(hashes)) if !self.is_again => Asked::NotYet(hashes),
                                _ => Asked::Never,
                            };
                            let is_asked = matches!(asked, Asked::Pages(_));
                            let is_absent = chunk.bloom().is_none() || self.sets.get(&number) == Some(&None);
                            match self.judging.step((test, asked), chunk, &metadata.schema, budget)? {
                                Judgement::Yield => return Ok(Outcome::Yield),
                                Judgement::Ask(bloom) => return Ok(Outcome::Ask(number, bloom)),
                                Judgement::Rows(rows) => {
                                    self.sets.remove(&number);
                                    self.count(chunk, (is_asked, is_absent), report);
                                    rows
                                }
                            }
                        }
                        _ if self.is_again => all()?,
                        _ => {
                            let is_distrusted = distrusted.contains(&(self.row_group, test.leaf));
                            let Counts { absent, distrusted, .. } = &mut report.index;
                            *(if is_distrusted { distrusted } else { absent }) += 1;
                            report.page_bloom.absent += 1;
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
                    let Some(rows) = combining.step(budget)? else { return Ok(Outcome::Yield) };
                    self.combining = None;
                    rows
                }
            };
            self.stack.push(rows);
            self.next += 1;
            if budget.is_spent() && self.next < program.len() {
                return Ok(Outcome::Yield);
            }
        }
        self.stack.pop().map(Outcome::Rows).ok_or_else(|| Error::internal("a predicate without rows"))
    }

    /// Reports what decided about the pages that were judged.
    fn count(&mut self, chunk: &ChunkPages, (is_asked, is_absent): (bool, bool), report: &mut Report) {
        let Judging { pruned, pruned_by_bloom, .. } = core::mem::take(&mut self.judging);
        if self.is_again {
            return;
        }
        let pages = u64_of(chunk.len());
        if chunk.has_bounds() {
            report.index.pruned += pruned;
            report.index.undecided += pages.saturating_sub(pruned + pruned_by_bloom);
        } else {
            report.index.absent += 1;
        }
        if is_asked {
            report.page_bloom.pruned += pruned_by_bloom;
            report.page_bloom.undecided += pages.saturating_sub(pruned + pruned_by_bloom);
        } else if is_absent {
            report.page_bloom.absent += 1;
        }
    }
}
