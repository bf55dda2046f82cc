//! The rows of a row group that can pass, by what is said of its pages.

use alloc::boxed::Box;
use alloc::vec::Vec;

use marquetry_base::{Budget, Error, Machine as _, Result, Step};

use super::super::judged::Outcome;
use super::super::reading::Reading;
use super::super::stage::{How, Released, Stage, Turn};
use super::{JUDGE_PRICE, MACHINE_UNITS, RowFinder};
use crate::batch::{Combine, RowSelection};
use crate::read::{PageBloomProbe, PageSet};

impl RowFinder {
    /// Judges the pages of each test, and puts their rows together.
    pub(super) fn judge_pages(&mut self, budget: &mut Budget<'_>) -> Result<Turn> {
        let Stage::Judge(judged, before) = &mut self.stage else {
            return Err(Error::internal("no pages to judge"));
        };
        let (hashes, uses) = (&self.hashes, self.options.structures.page_bloom);
        let (row_group, tests) = (judged.row_group, &self.program.tests);
        let distrusted = &self.distrusted_blooms;
        let may_ask = |test: usize| uses && !distrusted.contains(&(row_group, tests[test].leaf));
        let outcome = judged.step(
            (&self.program.operations, tests, self.known.tests()),
            |test| hashes.get(test)?.as_ref().filter(|_| may_ask(test)).map(Vec::len),
            (&self.pages, &self.distrusted),
            &self.metadata,
            &mut self.report,
            budget,
        )?;
        match (outcome, before.take()) {
            (Outcome::Yield, reading) => {
                *before = reading;
                return Ok(Some(Step::Yield));
            }
            (Outcome::Ask(test, bloom), _) => {
                let mut judged = core::mem::take(judged);
                let hashes = self.hashes.get(test).cloned().flatten().unwrap_or_default();
                budget.charge_units(MACHINE_UNITS);
                budget.charge(JUDGE_PRICE, 0, hashes.len());
                let left = PageSet::none(bloom.pages());
                let probe = match judged.probe.take().filter(|probe| *probe.bloom() == bloom) {
                    Some(probe) => Box::new(probe.again(hashes)),
                    None => Box::new(PageBloomProbe::new(self.object, bloom, hashes)),
                };
                self.stage = Stage::PageBloom { judged, test, probe, left };
            }
            (Outcome::Rows(rows), before) => match self.first_row_of(row_group) {
                0 => self.go_on(row_group, rows, before),
                first => {
                    let rest = first..self.metadata.row_groups[row_group].rows;
                    let rest = rows.combine(RowSelection::of(rest)?, Combine::Intersection);
                    self.stage = Stage::Narrow { row_group, rows: Box::new(rest), before };
                }
            },
        }
        Ok(None)
    }

    /// Asks the Bloom filters of pages about a test.
    pub(super) fn ask_page_blooms(&mut self, budget: &mut Budget<'_>) -> Result<Turn> {
        let Stage::PageBloom { probe, left, .. } = &mut self.stage else {
            return Err(Error::internal("no filters of pages to ask"));
        };
        let answer = match probe.step(budget)? {
            Step::Ready(Some(pages)) => {
                left.add(&pages)?;
                return Ok(None);
            }
            Step::Ready(None) => {
                self.distrusted_blooms.insert(probe.bloom().chunk());
                self.report.page_bloom.distrusted += 1;
                None
            }
            Step::Done => Some(core::mem::take(left)),
            Step::Need(demand) => return Ok(Some(Step::Need(demand))),
            Step::Yield | Step::Append(..) => return Ok(Some(Step::Yield)),
        };
        let Stage::PageBloom { mut judged, test, probe, .. } =
            core::mem::replace(&mut self.stage, Stage::Done)
        else {
            return Err(Error::internal("filters of pages that are not asked"));
        };
        judged.sets.insert(test, answer);
        judged.probe = Some(probe);
        self.stage = Stage::Judge(judged, None);
        Ok(None)
    }

    /// Leaves out rows before the first that is searched.
    pub(super) fn narrow(&mut self, budget: &mut Budget<'_>) -> Result<Turn> {
        let Stage::Narrow { row_group, rows, before } = &mut self.stage else {
            return Err(Error::internal("no rows to narrow"));
        };
        let Some(rows) = rows.step(budget)? else { return Ok(Some(Step::Yield)) };
        let (row_group, before) = (*row_group, before.take());
        self.go_on(row_group, rows, before);
        Ok(None)
    }

    /// Goes on with the rows that can pass; `before` is what was about to be read before more rows were ruled out.
    fn go_on(&mut self, row_group: usize, rows: RowSelection, before: Option<Box<Reading>>) {
        let all = self.metadata.row_groups[row_group].rows;
        self.stage = match before {
            None => Stage::Open { row_group, rows, how: How::Asking },
            Some(reading) if rows.rows() < reading.wanted.as_ref().map_or(all, RowSelection::rows) => {
                let open = Stage::Open { row_group, rows, how: How::Asked };
                Stage::Release(Released::Reading(reading), Box::new(open))
            }
            Some(reading) => self.read(reading),
        };
    }
}
