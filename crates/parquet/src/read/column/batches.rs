//! What is decoded, handed out in batches.

use marquetry_base::cast::usize_of;
use marquetry_base::{Budget, Error, Result};

use super::super::page::PageReader;
use super::super::work::Work;
use super::cut::Cut;
use super::{ColumnReader, Expects};
use crate::batch::ColumnBatch;
use crate::going::Going;

impl ColumnReader {
    /// Joins what the batch has in parts: then it can be taken.
    pub(super) fn end_batch(&mut self, work: &mut Work<'_, '_>) -> Result<Going> {
        self.count(work)?;
        // Nothing but nulls.
        if self.nested.is_none()
            && self.builder.holds_indices.is_none()
            && !self.builder.hold(false, &mut work.memory, work.budget)?
        {
            return Ok(Going::Yield);
        }
        self.join(0, work)
    }

    /// Joins what the batch has in parts, with room for what `more` entries add.
    fn join(&mut self, more: usize, work: &mut Work<'_, '_>) -> Result<Going> {
        while self.builder.has_parts() {
            // The parts of the array before are released.
            self.count(work)?;
            if !self.builder.join(more, &mut work.memory, work.budget)? {
                return Ok(Going::Yield);
            }
            work.memory.changed();
            if work.budget.is_spent() && self.builder.has_parts() {
                return Ok(Going::Yield);
            }
        }
        Ok(Going::Done(()))
    }

    /// Joins what the batch has in parts before its last row ends, if that is the chunk's last, too: then it is known how long it will
    /// be, and it need not be there twice.
    pub(super) fn join_ahead(&mut self, work: &mut Work<'_, '_>) -> Result<Going> {
        let (Expects::Values(page), Some(nested)) = (&self.expects, &self.nested) else {
            return Ok(Going::Done(()));
        };
        if self.chunk.rows_left > 0 || self.selected.is_some() || nested.repetition_max == 0 {
            return Ok(Going::Done(()));
        }
        let left = usize_of(self.chunk.entries_left).unwrap_or(usize::MAX);
        let more = left.saturating_add(page.entries_left).saturating_add(nested.ahead());
        if self.joins_ahead || self.builder.joins_ahead(more) {
            let joined = self.join(more, work)?;
            self.joins_ahead = joined != Going::Done(());
            return Ok(joined);
        }
        Ok(Going::Done(()))
    }

    /// Hands out the first `rows` of what is decoded, and keeps the rest for the next batch. `None` when the budget is spent before: then
    /// call again.
    pub(in crate::read) fn take(
        &mut self,
        rows: usize,
        budget: &mut Budget<'_>,
    ) -> Result<Option<ColumnBatch>> {
        if self.spare.batch.is_none() {
            self.spare.bytes = self.builder.held();
            let batch = self.finish().map_err(|error| self.place(error))?;
            let is_begun = self.page().is_some_and(|page| page.entries_left < page.entries);
            let is_unverified = self.pages.as_ref().is_some_and(PageReader::is_unverified);
            self.spare.batch = Some(ColumnBatch { provisional: is_begun && is_unverified, ..batch });
        }
        let Some(batch) = &self.spare.batch else { return Err(Error::internal("a column without a batch")) };
        if rows == batch.rows {
            self.spare.bytes = 0;
            return Ok(self.spare.batch.take());
        }
        let (head, rest) = match (&batch.levels, &self.nested) {
            (Some(levels), Some(nested)) => {
                if !self.spare.cut.find(levels, rows, nested.definition_max, budget) {
                    return Ok(None);
                }
                let Cut { entries, values, .. } = core::mem::take(&mut self.spare.cut);
                batch.split_nested(levels, rows, entries, values)
            }
            _ => (batch.slice(0..rows), batch.slice(rows..batch.rows)),
        };
        self.spare.batch = Some(rest);
        Ok(Some(head))
    }

    /// Takes back what was handed out last, all that was decoded, which holds so many bytes: less of it is wanted.
    pub(in crate::read) fn give_back(&mut self, batch: ColumnBatch, held: usize) {
        (self.spare.batch, self.spare.bytes) = (Some(batch), held);
    }

    /// Ends the batch.
    fn finish(&mut self) -> Result<ColumnBatch> {
        let dictionary = self.dictionary.as_ref();
        if let Some(nested) = &self.nested {
            let has_repetition = nested.repetition_max > 0;
            return self.builder.finish_nested(
                self.column.leaf,
                self.column.physical_type,
                has_repetition,
                dictionary,
            );
        }
        self.builder.finish(self.column.leaf, self.column.physical_type, dictionary)
    }
}
