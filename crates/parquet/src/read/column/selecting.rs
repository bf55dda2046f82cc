//! Rows that are not wanted: pages, and parts of pages, that are stepped over.

use alloc::boxed::Box;
use alloc::format;

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Error, Input, Result};

use super::super::data_page::DataPage;
use super::super::levels::NestedLeaf;
use super::super::work::Work;
use super::{ColumnReader, Expects, too_many_rows};
use crate::schema::PhysicalType;

/// Bytes of pages that follow each other which are looked ahead for, where only some pages are wanted.
const READ_BYTES_MAX: u64 = 8 << 20;
impl ColumnReader {
    /// Rows of the chunk that are in a batch, or were stepped over; of a nested leaf, those that were begun.
    pub(super) fn position(&self) -> u64 {
        self.chunk.rows.saturating_sub(self.chunk.rows_left)
    }

    /// True where every value must be decoded, wanted or not: those of a page go on from the one before.
    pub(super) fn decodes_all(&self) -> bool {
        self.column.prefixes_go_on
            && matches!(
                self.column.physical_type,
                PhysicalType::ByteArray | PhysicalType::FixedLenByteArray(_)
            )
    }

    /// True where values were stepped over that must be decoded before the page ends.
    pub(super) fn has_values_behind(&self) -> bool {
        self.decodes_all() && self.page().is_some_and(|page| page.behind > 0)
    }

    /// Goes on to the next page with a wanted row, if it is known where pages are.
    pub(super) fn seek(&mut self, input: Option<&mut Input>) -> Result<()> {
        let (position, decodes_all) = (self.position(), self.decodes_all());
        let (Some(selected), Some(pages)) = (&mut self.selected, &mut self.pages) else { return Ok(()) };
        let Some(first) = selected.first_page().filter(|_| !decodes_all && pages.is_between()) else {
            return Ok(());
        };
        let Some((number, page)) = selected.seek(position) else { return Ok(()) };
        let end = selected.wanted_end(number, READ_BYTES_MAX).unwrap_or(u64::MAX);
        let start = pages.at();
        if start < first.offset {
            // The dictionary.
            let end = if number == 0 { end } else { first.offset };
            return pages.jump(start, 0, end);
        }
        pages.jump(page.offset, number as u64 + 1, end)?;
        if let Some(input) = input {
            input.release(start..page.offset);
        }
        if page.offset > start {
            self.chunk.rows_left = self.chunk.rows.saturating_sub(page.first_row);
            if let Some(nested) = &mut self.nested {
                nested.start();
            }
        }
        Ok(())
    }

    /// Steps over a data page whose header says that it has so many entries, if none of them is wanted.
    pub(super) fn pass_page(&mut self, entries: u32, work: &mut Work<'_, '_>) -> Result<()> {
        let (position, decodes_all) = (self.position(), self.decodes_all());
        if decodes_all {
            return Ok(());
        }
        let Some(selected) = self.selected.as_mut().filter(|_| self.nested.is_none()) else {
            return self.rule_out(entries, work);
        };
        let (header_entries, entries) = (entries, u64::from(entries));
        if let Some(end) = selected.page_end()
            && end.checked_sub(position) != Some(entries)
        {
            let message =
                format!("a page of {entries} rows, where the page index has one that ends with row {end}");
            return Err(Error::corrupt(message));
        }
        if selected.passes(position, entries) {
            self.chunk.rows_left = self.chunk.rows_left.checked_sub(entries).ok_or_else(too_many_rows)?;
            self.chunk.entries_left =
                self.chunk.entries_left.checked_sub(entries).ok_or_else(too_many_rows)?;
            self.pages()?.pass(work);
            return Ok(());
        }
        self.rule_out(header_entries, work)
    }

    /// Steps over a data page whose header says that no value in it passes a test: its rows are taken for null.
    fn rule_out(&mut self, entries: u32, work: &mut Work<'_, '_>) -> Result<()> {
        let (Some(judged), Some(pages)) = (&mut self.judged, &mut self.pages) else { return Ok(()) };
        let Some(kind) = pages.kind() else { return Ok(()) };
        work.budget.charge_units(judged.by.units());
        if !judged.by.rule_out(kind, &mut judged.counts) {
            return Ok(());
        }
        pages.pass(work);
        self.chunk.entries_left =
            self.chunk.entries_left.checked_sub(entries.into()).ok_or_else(too_many_rows)?;
        let rows = usize_of_u32(entries);
        self.expects = Expects::Values(Box::new(DataPage::of_nulls(rows, self.nested.is_some())));
        Ok(())
    }

    /// Steps over the rest of the page if no row of it is wanted.
    pub(super) fn pass_unwanted(&mut self, work: &mut Work<'_, '_>) -> Result<()> {
        let (position, decodes_all) = (self.position(), self.decodes_all());
        let (Some(selected), Expects::Values(page), Some(pages)) =
            (&mut self.selected, &mut self.expects, &mut self.pages)
        else {
            return Ok(());
        };
        let ahead = self.nested.as_ref().map_or(0, NestedLeaf::ahead);
        if page.entries_left + ahead == 0 {
            // Nothing of it was wanted, so nothing but its levels was read.
            if !(page.is_used || decodes_all && page.behind > 0) {
                pages.pass(work);
                self.check_page_end()?;
                self.close();
            }
            return Ok(());
        }
        let is_over = match &self.nested {
            None => selected.passes(position, page.entries_left as u64),
            Some(nested) => {
                let is_whole =
                    !selected.takes_row || nested.repetition_max == 0 || (ahead > 0 && nested.begins_row());
                let rows = selected.page_end().map_or(u64::MAX, |end| end.saturating_sub(position));
                is_whole && selected.passes(position, rows)
            }
        };
        if !is_over || decodes_all {
            return Ok(());
        }
        match &mut self.nested {
            None => self.chunk.rows_left = self.chunk.rows_left.saturating_sub(page.entries_left as u64),
            Some(nested) => {
                let end = selected.page_end().unwrap_or(self.chunk.rows);
                self.chunk.rows_left = self.chunk.rows_left.min(self.chunk.rows.saturating_sub(end));
                selected.takes_row = false;
                nested.start();
            }
        }
        page.entries_left = 0;
        if !(page.is_used && pages.is_unverified()) {
            pages.pass(work);
            self.close();
        }
        Ok(())
    }

    /// Checks that a page of a nested leaf had the rows that the page index says.
    pub(super) fn check_page_end(&self) -> Result<()> {
        let Some(selected) = self.selected.as_ref().filter(|_| self.nested.is_some()) else { return Ok(()) };
        match selected.page_end() {
            Some(end) if end != self.position() && !self.decodes_all() => Err(Error::corrupt(format!(
                "a page that ends with row {}, where the page index has one that ends with row {end}",
                self.position()
            ))),
            _ => Ok(()),
        }
    }
}
