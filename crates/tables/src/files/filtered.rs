//! Rows of Parquet files for which a predicate is true: searched for by what the files say about their values.

use std::ops::Range;
use std::sync::Arc;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Codecs, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_io::drive;
use marquetry_parquet::batch::Batch;
use marquetry_parquet::find::{FindOptions, Found, Report, RowFinder};
use marquetry_parquet::prune::Predicate;
use marquetry_parquet::read::ConformReader;

use super::gathered::Plan;
use super::parquet::{FILE, ParquetFile, Sources};
use crate::{Batches, Filter, PieceOptions};

/// No rows.
pub(super) struct Nothing;

impl Batches for Nothing {
    fn next(&mut self) -> Result<Option<Batch>> {
        Ok(None)
    }
}

/// Rows that are found, a row group at a time: first which they are, then their columns.
pub(super) struct FoundRows {
    file: ParquetFile,
    plan: Plan,
    options: PieceOptions,
    sources: Sources,
    finder: RowFinder,
    /// Of the row group at hand.
    reader: Option<Box<ConformReader>>,
    left: u64,
    filter: Filter,
    /// What of the search is in the filter's report.
    reported: Report,
}

impl FoundRows {
    pub(super) fn new(
        file: ParquetFile,
        groups: Range<usize>,
        plan: Plan,
        predicate: Predicate,
        filter: &Filter,
        options: &PieceOptions,
    ) -> Result<FoundRows> {
        let left = options.limit.unwrap_or(u64::MAX);
        let options = PieceOptions { limit: None, ..options.clone() };
        let sources = file.sources(&options.cancel)?;
        let mut find = FindOptions::default();
        find.read = file.read_options(groups, &PieceOptions::default());
        find.structures = filter.structures();
        find.locate = plan.0.reads().iter().copied().collect();
        find.limit = left;
        let codecs: Arc<dyn Codecs> = Arc::new(StandardCodecs::new(file.limits()));
        let finder = RowFinder::new(FILE, Arc::clone(file.metadata()), codecs, predicate, find);
        let finder = finder.map_err(|error| file.named(error))?;
        let filter = filter.clone();
        Ok(FoundRows {
            file,
            plan,
            options,
            sources,
            finder,
            reader: None,
            left,
            filter,
            reported: Report::default(),
        })
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
            let found = drive(&mut self.finder, &self.sources);
            // Before the rows are handed out: whoever takes the last of them may not ask again.
            self.report();
            let Some(Found { row_group, rows, pages, .. }) = found? else { return Ok(None) };
            let (conform, constants) = self.plan.clone();
            let groups = row_group..row_group + 1;
            let mut reader = self.file.reader(groups, conform, constants, &self.options)?;
            if rows.rows() < self.file.metadata().row_groups[row_group].rows {
                reader.select(row_group, rows)?;
                for (leaf, pages) in pages {
                    reader.locate(row_group, leaf, pages)?;
                }
            }
            self.reader = Some(Box::new(reader));
        }
    }

    /// Adds what was searched since the last time.
    fn report(&mut self) {
        let report = *self.finder.report();
        self.filter.add(&report.since(&self.reported));
        self.reported = report;
    }
}

impl Batches for FoundRows {
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
