//! The tested columns, read: their dictionaries first, and then their rows.

use alloc::boxed::Box;
use alloc::sync::Arc;

use marquetry_base::{Budget, Demand, Error, Result, Step, Want};

use super::super::judged::Judged;
use super::super::reading::Reading;
use super::super::stage::{How, Released, Stage, Turn};
use super::super::{dictionaries, dispensable};
use super::{MACHINE_UNITS, RowFinder};
use crate::batch::{Layout, RowSelection};
use crate::prune::{Counts, Verdict};
use crate::read::BatchReader;

impl RowFinder {
    /// Begins to read the tested columns of the rows that can pass.
    pub(super) fn open_columns(&mut self, budget: &mut Budget<'_>) -> Result<Turn> {
        let Stage::Open { row_group, rows, how } = &mut self.stage else {
            return Err(Error::internal("no rows to read"));
        };
        let (row_group, rows, how) = (*row_group, core::mem::take(rows), *how);
        self.open(row_group, rows, how, budget)?;
        Ok(None)
    }

    /// The same, of these.
    fn open(
        &mut self,
        row_group: usize,
        rows: RowSelection,
        how: How,
        budget: &mut Budget<'_>,
    ) -> Result<()> {
        let group = &self.metadata.row_groups[row_group];
        if rows.is_empty() {
            self.stage = Stage::Begin;
            return Ok(());
        }
        let kept = self.reader.as_mut().is_some_and(|reader| reader.go_to(row_group));
        let mut reader = match self.reader.take().filter(|_| kept) {
            Some(reader) => reader,
            None => {
                budget.charge_units(MACHINE_UNITS);
                let mut read = self.options.read.clone();
                read.leaves = Some(self.program.leaves.clone());
                (read.layout, read.keep_dictionaries) = (Layout::Spaced, true);
                let (metadata, codecs) = (Arc::clone(&self.metadata), Arc::clone(&self.codecs));
                Box::new(BatchReader::one_by_one(self.object, metadata, codecs, read, row_group)?)
            }
        };
        let wanted = (rows.rows() < group.rows).then_some(rows);
        let mut takes_shortcuts = wanted.is_some();
        if let Some(rows) = &wanted {
            reader.select(row_group, rows.clone())?;
        }
        for (leaf, tests) in self.program.leaves.iter().zip(&self.page_tests) {
            let pages = self.pages.get(&(row_group, *leaf));
            if let Some(pages) = pages.filter(|_| wanted.is_some()) {
                reader.locate(row_group, *leaf, Arc::clone(&pages.offset_index))?;
            }
            // Where an index has bounds, headers say the same again.
            let has_bounds = pages.is_some_and(|pages| pages.has_bounds());
            if let Some(tests) = tests
                && self.options.structures.statistics
                && !has_bounds
                && how != How::Plainly
            {
                reader.judge(row_group, *leaf, Arc::clone(tests))?;
                takes_shortcuts = true;
            }
        }
        let mut reading = Box::new(Reading::new(row_group, reader, wanted));
        reading.takes_shortcuts = takes_shortcuts;
        reading.is_again = how == How::Plainly;
        if how == How::Asking && self.options.structures.dictionary {
            let pages_of = |leaf| self.pages.get(&(row_group, leaf)).map(|pages| pages.len());
            let asking = dictionaries::Asking::new(
                reading,
                (&self.program, &self.known),
                &self.metadata,
                pages_of,
                &mut self.report.dictionary,
                budget,
            );
            match asking {
                Ok(asking) => {
                    self.stage = Stage::Dictionary(Box::new(asking));
                    return Ok(());
                }
                Err(without) => reading = without,
            }
        }
        self.stage = self.read(reading);
        Ok(())
    }

    /// Asks dictionaries, where they list every value of a chunk.
    pub(super) fn ask_dictionaries(&mut self, budget: &mut Budget<'_>) -> Result<Turn> {
        let Stage::Dictionary(asking) = &mut self.stage else {
            return Err(Error::internal("no dictionaries to ask"));
        };
        let step = asking.step(
            (&self.program, &mut self.known, &mut self.matchers),
            (&self.metadata, self.options.structures.statistics),
            &mut self.report.dictionary,
            budget,
        );
        let verdict = match step {
            Ok(Step::Ready(verdict)) => verdict,
            Ok(Step::Need(demand)) => return Ok(Some(Step::Need(demand))),
            Ok(_) => return Ok(Some(Step::Yield)),
            Err(error) => {
                self.read_plainly(error)?;
                return Ok(None);
            }
        };
        let Stage::Dictionary(asking) = core::mem::replace(&mut self.stage, Stage::Done) else {
            return Err(Error::internal("a dictionary that is not read"));
        };
        let dictionaries::Asking { reading, has_learned, .. } = *asking;
        let row_group = reading.row_group;
        self.stage = match verdict {
            Verdict::None => Stage::Release(Released::Reading(reading), Box::new(Stage::Begin)),
            Verdict::All => {
                let then = self.all_rows(row_group)?;
                Stage::Release(Released::Reading(reading), Box::new(then))
            }
            // Other pages may be ruled out by what is known now.
            Verdict::Some if has_learned => Stage::Judge(Box::new(Judged::again(row_group)), Some(reading)),
            Verdict::Some => self.read(reading),
        };
        Ok(None)
    }

    /// Reads the tested columns, and tests their rows.
    pub(super) fn read_columns(&mut self, budget: &mut Budget<'_>) -> Result<Turn> {
        let Stage::Read(reading) = &mut self.stage else { return Err(Error::internal("no columns to read")) };
        let limit = self.options.limit;
        let kept = self.options.keep_tested.then_some(&mut self.tested);
        match reading.step(&mut self.evaluator, limit, (&mut self.report, kept), budget) {
            Ok(Step::Ready(())) => {
                let row_group = reading.row_group;
                let rows = core::mem::take(&mut reading.found);
                let Counts { absent, undecided, pruned, .. } = reading.reader.judged();
                self.report.page_statistics.absent += absent;
                self.report.page_statistics.undecided += undecided;
                self.report.page_statistics.pruned += pruned;
                let then = match rows.is_empty() {
                    true => Stage::Begin,
                    false => Stage::Locate { row_group, rows, reader: None },
                };
                self.release_reading(then)?;
            }
            Ok(Step::Need(demand)) if reading.is_again => return Ok(Some(Step::Need(in_two(demand)))),
            Ok(Step::Need(demand)) => return Ok(Some(Step::Need(demand))),
            Ok(_) => return Ok(Some(Step::Yield)),
            Err(error) => self.read_plainly(error)?,
        }
        Ok(None)
    }

    /// Reads what was opened.
    pub(super) fn read(&mut self, reading: Box<Reading>) -> Stage {
        let group = &self.metadata.row_groups[reading.row_group];
        self.report.tested += reading.wanted.as_ref().map_or(group.rows, RowSelection::rows);
        Stage::Read(reading)
    }

    /// Reads the row group at hand again, page by page, if the error that it was read with may be due to an index or a header that says
    /// of pages what is not so. That is not used any more.
    fn read_plainly(&mut self, error: Error) -> Result<()> {
        let mut reading = match core::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Read(reading) => reading,
            Stage::Dictionary(asking) => asking.reading,
            _ => return Err(error),
        };
        let row_group = reading.row_group;
        if !(reading.takes_shortcuts && dispensable(&error)) {
            // It may be much to drop.
            self.stage = Stage::Release(Released::Reading(reading), Box::new(Stage::Done));
            return Err(error);
        }
        self.report.found = self.report.found.saturating_sub(reading.found.rows());
        self.tested.clear();
        for leaf in &self.program.leaves {
            if let Some(pages) = self.pages.remove(&(row_group, *leaf)) {
                self.distrusted.insert((row_group, *leaf));
                self.report.index.distrusted += 1;
                reading.distrusted.push(pages);
            }
        }
        self.report.page_statistics.distrusted += reading.reader.judged().pruned;
        self.evaluator.restart();
        let rows = RowSelection::of(self.first_row_of(row_group)..self.metadata.row_groups[row_group].rows)?;
        let open = Stage::Open { row_group, rows, how: How::Plainly };
        self.stage = Stage::Release(Released::Reading(reading), Box::new(open));
        Ok(())
    }

    /// Releases what was read, and goes on with `then`. The reader is kept, unless it is in the middle of the row group.
    fn release_reading(&mut self, then: Stage) -> Result<()> {
        let Stage::Read(reading) = core::mem::replace(&mut self.stage, Stage::Done) else {
            return Err(Error::internal("a column that is not read"));
        };
        let released = if reading.reader.is_through() {
            let Reading { reader, used, wanted, .. } = *reading;
            self.reader = Some(reader);
            Released::Rest(used, wanted)
        } else {
            Released::Reading(reading)
        };
        self.stage = Stage::Release(released, Box::new(then));
        Ok(())
    }
}

/// The same ranges, each in two parts: hosts take a machine that asks for the same again, as soon as it has it, for one that does not
/// get on.
fn in_two(demand: Demand) -> Demand {
    let mut parts = Demand::default();
    for want in demand.wants {
        match want {
            Want::Range(object, range, priority) if range.end - range.start > 1 => {
                parts.push(Want::Range(object, range.start..range.start + 1, priority));
                parts.push(Want::Range(object, range.start + 1..range.end, priority));
            }
            other => parts.push(other),
        }
    }
    parts
}
