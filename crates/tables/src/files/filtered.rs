//! Rows of Parquet files for which a predicate is true: searched for by what the files say about their values.

use std::ops::Range;
use std::sync::Arc;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Codecs, Error, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_io::drive;
use marquetry_parquet::batch::Batch;
use marquetry_parquet::prune::{FindOptions, Found, Predicate, RowFinder, Verdict};
use marquetry_parquet::read::ConformReader;

use super::gathered::{DataFile, Plan};
use super::parquet::{FILE, ParquetFile, Sources};
use super::{CountedPiece, Files};
use crate::filter::with_unknown_rows;
use crate::{Batches, ColumnPath, Filter, Piece, PieceOptions, Source, Table};

/// Files as one table, of which only some rows are read.
pub(super) struct FilteredFiles {
    /// The files with all columns, over which the predicate is.
    all: Files,
    /// The files with the columns that are wanted.
    wanted: Files,
    table: Table,
    pieces: Vec<Piece>,
    predicate: Predicate,
    filter: Filter,
}

impl FilteredFiles {
    /// `None` if not every file can be searched.
    pub(super) fn new(
        files: &Files,
        predicate: &Predicate,
        filter: &Filter,
    ) -> Result<Option<FilteredFiles>> {
        for file in files.files() {
            if !file.is_parquet() || translated(files, file, predicate)?.is_none() {
                return Ok(None);
            }
        }
        let (all, wanted) = (files.again()?, files.again()?);
        FilteredFiles::of(all, wanted, predicate.clone(), filter.clone()).map(Some)
    }

    fn of(all: Files, wanted: Files, predicate: Predicate, filter: Filter) -> Result<FilteredFiles> {
        let (table, pieces) = with_unknown_rows(wanted.table(), wanted.pieces());
        Ok(FilteredFiles { all, wanted, table, pieces, predicate, filter })
    }
}

/// The predicate over a file's own leaves.
fn translated(files: &Files, file: &DataFile, predicate: &Predicate) -> Result<Option<Predicate>> {
    let (conform, constants) = files.plan(file);
    conform.translate(predicate, &constants)
}

impl Source for FilteredFiles {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn open(&self, piece: usize, options: &PieceOptions) -> Result<Box<dyn Batches>> {
        let (number, groups) = &self.wanted.places[piece];
        let file = &self.wanted.files()[*number];
        let predicate = translated(&self.all, file, &self.predicate)?;
        let predicate = predicate.ok_or_else(|| Error::internal("a file that cannot be searched"))?;
        // What is in the file's path may decide alone.
        let batches: Box<dyn Batches> = match predicate.judge(&mut |_| Verdict::Some) {
            Verdict::None => Box::new(Nothing),
            _ => Box::new(FoundRows::new(
                file.parquet()?,
                groups.clone(),
                self.wanted.plan(file),
                predicate,
                &self.filter,
                options,
            )?),
        };
        let bytes = self.pieces[piece].bytes.unwrap_or(0);
        Ok(Box::new(CountedPiece { batches, bytes, bytes_read: options.bytes_read.clone() }))
    }

    fn project(&self, columns: &[ColumnPath]) -> Result<Option<Arc<dyn Source>>> {
        let wanted = self.wanted.with_columns(columns.to_vec())?;
        let files =
            FilteredFiles::of(self.all.again()?, wanted, self.predicate.clone(), self.filter.clone())?;
        Ok(Some(Arc::new(files)))
    }
}

/// No rows.
struct Nothing;

impl Batches for Nothing {
    fn next(&mut self) -> Result<Option<Batch>> {
        Ok(None)
    }
}

/// Rows that are found, a row group at a time: first which they are, then their columns.
struct FoundRows {
    file: ParquetFile,
    plan: Plan,
    options: PieceOptions,
    sources: Sources,
    finder: RowFinder,
    /// Of the row group at hand.
    reader: Option<Box<ConformReader>>,
    left: u64,
    filter: Filter,
    is_reported: bool,
}

impl FoundRows {
    fn new(
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
        Ok(FoundRows { file, plan, options, sources, finder, reader: None, left, filter, is_reported: false })
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
            let Some(Found { row_group, rows, pages, .. }) = drive(&mut self.finder, &self.sources)? else {
                return Ok(None);
            };
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

    /// Adds what was searched, once.
    fn report(&mut self) {
        if !std::mem::replace(&mut self.is_reported, true) {
            self.filter.add(self.finder.report());
        }
    }
}

impl Drop for FoundRows {
    fn drop(&mut self) {
        self.report();
    }
}

impl Batches for FoundRows {
    fn next(&mut self) -> Result<Option<Batch>> {
        if self.left == 0 {
            return Ok(None);
        }
        let next = self.next_rows().map_err(|error| self.file.named(error))?;
        let Some(mut batch) = next else {
            self.report();
            return Ok(None);
        };
        if u64_of(batch.rows) > self.left {
            batch = batch.slice(0..usize_of(self.left).unwrap_or(usize::MAX));
        }
        self.left -= u64_of(batch.rows);
        Ok(Some(batch))
    }
}
