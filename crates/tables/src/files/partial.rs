//! Partial aggregates of Parquet files, computed by their store where they are, as an object class of Ceph does: only these travel.

use std::sync::Arc;

use marquetry_base::{Bytes, Codecs, Error, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_io::memory::Memory;
use marquetry_io::store::{
    FoundRows as Answer, Search, Searched, SearchedAggregates, SearchedObject, Searching,
};
use marquetry_io::{ByteSources, drive};
use marquetry_parquet::batch::{Batch, Values};
use marquetry_parquet::find::Report;
use marquetry_parquet::prune::Predicate;
use marquetry_parquet::read::{BatchReader, FooterReader, ReadOptions};

use super::filtered::FoundRows;
use super::gathered::{Gathered, Plan};
use super::parquet::FILE;
use crate::aggregate::Fold;
use crate::subject::named;
use crate::{Batches, Filter, Partials, PieceOptions};

/// A file whose aggregates are computed.
pub(super) struct Computed {
    /// Its place among the files.
    pub(super) number: usize,
    pub(super) plan: Plan,
    /// The predicate over its leaves.
    pub(super) predicate: Option<Predicate>,
}

/// The partial aggregates of a piece, file by file: those of one are put together, so that it is whole or nothing if it is declined in the end.
pub(super) struct PartialRows {
    gathered: Arc<Gathered>,
    files: Vec<Computed>,
    partials: Arc<Partials>,
    filter: Option<Filter>,
    options: PieceOptions,
    results: Option<Box<dyn Searching>>,
    /// The file of which answers come, what they have, and what its search did.
    at: usize,
    fold: Fold,
    reports: Vec<Report>,
}

impl PartialRows {
    /// Asks the store of files for them. A filter is that of the predicates.
    pub(super) fn open(
        gathered: &Arc<Gathered>,
        files: Vec<Computed>,
        (partials, aggregates): (&Arc<Partials>, SearchedAggregates),
        filter: Option<&Filter>,
        options: &PieceOptions,
    ) -> Result<PartialRows> {
        let (mut objects, mut store) = (Vec::with_capacity(files.len()), None);
        for wanted in &files {
            let (of, path, version) = gathered.files[wanted.number]
                .place()
                .ok_or_else(|| Error::internal("a file that no store searches"))?;
            store.get_or_insert(of);
            let (path, version) = (path.to_path_buf(), version.clone());
            objects.push(SearchedObject { path, version, leaves: Vec::new() });
        }
        let store = store.ok_or_else(|| Error::internal("a search of no files"))?;
        let (predicate, cancel) = (filter.map(|filter| filter.text().to_owned()), options.cancel.clone());
        let search = Search { objects, predicate, aggregates: Some(aggregates), limit: None };
        let results = Some(store.search(search, Arc::new(move || cancel.is_set()))?);
        let options = PieceOptions { limit: None, ..options.clone() };
        let (fold, partials) = (Fold::of_partials(partials), Arc::clone(partials));
        let (gathered, filter) = (Arc::clone(gathered), filter.cloned());
        Ok(PartialRows {
            gathered,
            files,
            partials,
            filter,
            options,
            results,
            at: 0,
            fold,
            reports: Vec::new(),
        })
    }

    /// Ends the file at hand, if there were answers.
    fn end(&mut self, next: usize) -> Result<Batch> {
        self.at = next;
        let done = std::mem::replace(&mut self.fold, Fold::of_partials(&self.partials)).partial()?;
        if let Some(filter) = &self.filter {
            for mut report in self.reports.drain(..) {
                // Of aggregates, it counted the groups.
                report.found = 0;
                filter.add(&report);
            }
            filter.add(&Report::of_tested(0, self.counted(&done)));
        }
        Ok(done)
    }

    /// The rows that were found.
    fn counted(&self, batch: &Batch) -> u64 {
        match batch.columns.get(self.partials.count_leaf()).map(|column| &column.values) {
            Some(Values::Int64(counts)) => counts.iter().map(|count| count.cast_unsigned()).sum(),
            _ => 0,
        }
    }

    /// Adds an answer. False for one that has other types than were asked for.
    fn answered(&mut self, answer: Answer) -> Result<bool> {
        let name = self.gathered.files[self.wanted(answer.object)?.number].name();
        let batches =
            decoded(answer.file, answer.rows, &self.partials).map_err(|error| named(error, name))?;
        let Some(batches) = batches else { return Ok(false) };
        batches.into_iter().try_for_each(|batch| self.fold.add(batch))?;
        self.reports.push(Report::of_numbers(&answer.report));
        Ok(true)
    }

    fn wanted(&self, object: usize) -> Result<&Computed> {
        self.files.get(object).ok_or_else(|| Error::internal("rows of a file that is not searched"))
    }

    /// Computes those of a file here.
    fn here(&mut self, object: usize) -> Result<Batch> {
        let wanted = self.wanted(object)?;
        let file = &self.gathered.files[wanted.number];
        let parquet = file.parquet()?;
        let groups = 0..parquet.metadata().row_groups.len();
        let mut rows: Box<dyn Batches> = match (&wanted.predicate, &self.filter) {
            (Some(predicate), Some(filter)) => {
                let (plan, predicate) = (wanted.plan.clone(), predicate.clone());
                Box::new(FoundRows::new(parquet, groups, plan, predicate, filter, &self.options)?)
            }
            _ => {
                let schema = &self.gathered.schemas[file.schema];
                file.open(&groups, schema, wanted.plan.clone(), &self.options)?
            }
        };
        let mut fold = Fold::of_rows(&self.partials);
        while let Some(batch) = rows.next()? {
            self.options.cancel.check()?;
            fold.add(batch)?;
        }
        // What was answered before does not count.
        self.fold = Fold::of_partials(&self.partials);
        self.reports.clear();
        self.at = object + 1;
        fold.partial()
    }
}

impl Batches for PartialRows {
    fn next(&mut self) -> Result<Option<Batch>> {
        loop {
            self.options.cancel.check()?;
            let Some(results) = &mut self.results else { return Ok(None) };
            let (object, answer) = match results.next()? {
                Some(Searched::Found(answer)) => (answer.object, Some(answer)),
                Some(Searched::Declined { object, .. }) => (object, None),
                None => {
                    self.results = None;
                    return self.end(self.files.len()).map(Some);
                }
            };
            if object < self.at {
                // It was computed here, though answers still came.
                continue;
            }
            // The file before it is complete.
            let done = if object > self.at { Some(self.end(object)?) } else { None };
            let is_taken = match answer {
                Some(answer) => self.answered(answer)?,
                None => false,
            };
            match (is_taken, done) {
                (true, None) => {}
                (true, Some(done)) => return Ok(Some(done)),
                (false, None) => return self.here(object).map(Some),
                (false, Some(done)) => {
                    let mut both = Fold::of_partials(&self.partials);
                    both.add(done)?;
                    both.add(self.here(object)?)?;
                    return both.partial().map(Some);
                }
            }
        }
    }
}

/// Partial aggregates that came as a Parquet file: their names do not matter, their types do. `None` if these are others.
fn decoded(bytes: Bytes, rows: u64, partials: &Partials) -> Result<Option<Vec<Batch>>> {
    if rows == 0 {
        return Ok(Some(Vec::new()));
    }
    let read = ReadOptions::default();
    let sources = ByteSources::new().with(FILE, Memory::new("what its store computed", bytes));
    let metadata = drive(&mut FooterReader::new(FILE, read.limits), &sources)?;
    let metadata = metadata.ok_or_else(|| Error::internal("a footer's reader ended without a footer"))?;
    let types = |schema: &marquetry_parquet::schema::Schema| -> Vec<_> {
        let leaves = schema.leaves().iter();
        leaves.map(|leaf| (leaf.physical_type, leaf.definition_max, leaf.repetition_max)).collect()
    };
    if types(&metadata.schema) != types(partials.schema()) {
        return Ok(None);
    }
    if metadata.rows != rows {
        return Err(Error::corrupt("its store computed another number of aggregates than it said"));
    }
    let codecs: Arc<dyn Codecs> = Arc::new(StandardCodecs::new(read.limits));
    let mut reader = BatchReader::new(FILE, metadata, codecs, read)?;
    let mut batches = Vec::new();
    while let Some(batch) = drive(&mut reader, &sources)? {
        batches.push(batch);
    }
    Ok(Some(batches))
}
