//! Rows of Parquet files that were chosen by their numbers.

use std::ops::Range;
use std::sync::Arc;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Budget, Result};
use marquetry_io::drive;
use marquetry_parquet::batch::{Batch, RowSelection};
use marquetry_parquet::read::{ConformReader, PageIndexReader};

use super::gathered::Plan;
use super::parquet::{FILE, ParquetFile, Sources};
use crate::{Batches, PieceOptions};

/// The chosen rows of some row groups, one row group after the other: of each only pages that have one, as far as its offset index says
/// where they are. Row groups without one are not looked at.
pub(super) struct SelectedRows {
    file: ParquetFile,
    plan: Plan,
    options: PieceOptions,
    sources: Sources,
    /// Row groups that were not begun, and the rows of those before them.
    groups: Range<usize>,
    before: u64,
    /// What is chosen, counted from the first row of the first row group.
    rows: RowSelection,
    /// Of the row group at hand.
    reader: Option<Box<ConformReader>>,
    left: u64,
}

impl SelectedRows {
    pub(super) fn open(
        file: ParquetFile,
        groups: Range<usize>,
        rows: RowSelection,
        plan: Plan,
        options: &PieceOptions,
    ) -> Result<SelectedRows> {
        let left = options.limit.unwrap_or(u64::MAX);
        let options = PieceOptions { limit: None, ..options.clone() };
        let sources = file.sources(&options.cancel)?;
        Ok(SelectedRows { file, plan, options, sources, groups, before: 0, rows, reader: None, left })
    }

    fn next_rows(&mut self) -> Result<Option<Batch>> {
        loop {
            if let Some(reader) = &mut self.reader {
                if let Some(batch) = drive(&mut **reader, &self.sources)? {
                    return Ok(Some(batch));
                }
                self.reader = None;
            }
            self.options.cancel.check()?;
            let Some(group) = self.groups.next() else { return Ok(None) };
            let rows = self.file.metadata().row_groups[group].rows;
            let of_group = part(&self.rows, self.before..self.before.saturating_add(rows))?;
            self.before = self.before.saturating_add(rows);
            if !of_group.is_empty() {
                self.reader = Some(Box::new(self.reader(group, of_group)?));
            }
        }
    }

    /// A reader of some rows of a row group.
    fn reader(&self, group: usize, rows: RowSelection) -> Result<ConformReader> {
        let (conform, constants) = self.plan.clone();
        let leaves: Vec<usize> = conform.reads().iter().copied().collect();
        let mut reader = self.file.reader(group..group + 1, conform, constants, &self.options)?;
        if rows.rows() < self.file.metadata().row_groups[group].rows {
            reader.select(group, rows)?;
            let mut read = self.file.read_options(group..group + 1, &self.options);
            read.leaves = Some(leaves);
            let indexes = PageIndexReader::new(FILE, Arc::clone(self.file.metadata()), &read)?;
            let mut indexes = indexes.without_bounds();
            while let Some(index) = drive(&mut indexes, &self.sources)? {
                reader.locate(group, index.leaf, Arc::new(index.offset_index))?;
            }
        }
        Ok(reader)
    }
}

/// What is chosen of a range, counted from its start.
fn part(rows: &RowSelection, range: Range<u64>) -> Result<RowSelection> {
    let (mut part, mut at) = (RowSelection::none(), range.start);
    while let Some(run) = rows.next_run(at).filter(|run| run.start < range.end) {
        let run = run.start.max(range.start)..run.end.min(range.end);
        part.push(run.start - range.start..run.end - range.start, &mut Budget::unlimited())?;
        at = run.end;
    }
    Ok(part)
}

impl Batches for SelectedRows {
    fn next(&mut self) -> Result<Option<Batch>> {
        if self.left == 0 {
            return Ok(None);
        }
        let next = self.next_rows().map_err(|error| self.file.named(error))?;
        let Some(mut batch) = next else { return Ok(None) };
        if u64_of(batch.rows) > self.left {
            batch = batch.slice(0..usize_of(self.left).unwrap_or(usize::MAX));
        }
        self.left -= u64_of(batch.rows);
        Ok(Some(batch))
    }
}
