//! The dictionary of a chunk, read before anything else of it.

use marquetry_base::{Budget, Input, Result};

use super::super::decompressors::Decompressors;
use super::super::dictionary::Entries;
use super::super::page::Found;
use super::super::work::Work;
use super::{ColumnReader, Expects, SLICE_UNITS};
use crate::going::{Going, done};
use crate::memory::Memory;

impl ColumnReader {
    /// The chunk's dictionary, once it is decoded.
    pub(in crate::read) fn dictionary(&self) -> Option<&Entries> {
        self.dictionary.as_ref()
    }

    /// Decodes the chunk's dictionary, if it has one: whether it does. What follows is not asked for.
    pub(in crate::read) fn advance_dictionary(
        &mut self,
        input: &mut Input,
        decompressors: &mut Decompressors,
        memory: Memory,
        budget: &mut Budget<'_>,
    ) -> Result<Going<bool>> {
        let mut pool = core::mem::take(&mut self.bodies);
        let work = &mut Work { input, decompressors, pool: &mut pool, memory, budget };
        let going = self.try_dictionary(work);
        self.bodies = pool;
        going.map_err(|error| self.place(error))
    }

    fn try_dictionary(&mut self, work: &mut Work<'_, '_>) -> Result<Going<bool>> {
        let end = self.data_offset;
        self.pages()?.want_before(end);
        while self.dictionary.is_none() {
            self.count(work)?;
            if !self.released.is_empty() {
                work.memory.changed();
                if !self.released.step(work.budget) {
                    return Ok(Going::Yield);
                }
            }
            done!(self.feed(work)?);
            match &mut self.expects {
                Expects::Values(_) => break,
                Expects::Entries(page) => {
                    if page.step(&mut work.memory, work.budget)? {
                        self.end_dictionary();
                        continue;
                    }
                }
                Expects::Levels(_) => done!(self.open_on(work)?),
                Expects::Page => {
                    work.memory.changed();
                    match done!(self.pages()?.next(true, work)?) {
                        // The page is not passed: what reads it next begins with its body.
                        Found::Header(_) | Found::End => break,
                        Found::Page(kind, body) => self.open(kind, body)?,
                    }
                    work.budget.charge_units(SLICE_UNITS);
                }
            }
            if work.budget.is_spent() {
                return Ok(Going::Yield);
            }
        }
        self.pages()?.want_before(u64::MAX);
        Ok(Going::Done(self.dictionary.is_some()))
    }
}
