//! Rows of Parquet files that their store finds where they are, as an object class of Ceph does: only these rows travel.

use std::ops::Range;
use std::sync::Arc;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Bytes, Codecs, Error, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_io::memory::Memory;
use marquetry_io::store::{self, Search, SearchedObject, Searching};
use marquetry_io::{ByteSources, drive};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::find::{Report, Structures};
use marquetry_parquet::prune::Predicate;
use marquetry_parquet::read::{BatchReader, Conformer, FooterReader, ReadOptions};
use marquetry_parquet::schema::Schema;
use marquetry_text::predicate;

use super::filtered::FoundRows;
use super::gathered::{DataFile, Gathered, Plan};
use super::parquet::FILE;
use crate::subject::named;
use crate::{Batches, Filter, Note, PieceOptions};

/// Files of a piece: a store searches some of them at a time, whatever the number of threads that read pieces, because they only wait.
const FILES_OF_PIECE: usize = 16;
/// Rows of a batch that has no columns, at most.
const COUNTED_ROWS: usize = 1 << 20;

/// Who searches files.
#[derive(Debug, Clone, Default)]
pub(super) struct Searches {
    /// Their store, where they are.
    pub(super) by_store: bool,
    /// Why it does not, where others of its kind do.
    pub(super) note: Option<Note>,
}

impl Searches {
    /// Of rows of files for which a predicate is true; `over_file` is the predicate over a file's own leaves. The store is given its text, which
    /// must mean the same for each file.
    pub(super) fn of(
        gathered: &Gathered,
        over_file: impl Fn(&DataFile) -> Result<Option<Predicate>>,
        filter: &Filter,
    ) -> Result<Searches> {
        let here = Searches::default();
        if filter.structures() != Structures::default() {
            return Ok(here);
        }
        let mut by_schema: Vec<Option<Predicate>> = Vec::new();
        for file in &gathered.files {
            let Some((store, path, _)) = file.place() else { return Ok(here) };
            match store.searches(path) {
                Some(Ok(())) => {}
                None => return Ok(here),
                Some(Err(error)) => {
                    return Ok(Searches { note: Some(refused(&error, "searched")), ..here });
                }
            }
            if by_schema.is_empty() {
                let parsed = |text: &str, schema| predicate::parse(text, schema).ok();
                by_schema.extend(gathered.schemas.iter().map(|of| parsed(filter.text(), of.schema())));
            }
            let parsed = by_schema.get(file.schema).and_then(Option::as_ref);
            if parsed.is_none() || parsed != over_file(file)?.as_ref() {
                return Ok(here);
            }
        }
        Ok(Searches { by_store: !gathered.files.is_empty(), ..here })
    }

    /// Whether the store of all files searches them where they are.
    pub(super) fn are_by_store(gathered: &Gathered) -> bool {
        let is_searched = |file: &DataFile| {
            file.place().is_some_and(|(store, path, _)| matches!(store.searches(path), Some(Ok(()))))
        };
        !gathered.files.is_empty() && gathered.files.iter().all(is_searched)
    }

    /// Why the store of files does not search them, if others of its kind do; and what becomes of their bytes here.
    pub(super) fn refused(gathered: &Gathered, done: &str) -> Option<Note> {
        gathered.files.iter().find_map(|file| {
            let (store, path, _) = file.place()?;
            store.searches(path)?.err().map(|error| refused(&error, done))
        })
    }

    /// The files of each piece.
    pub(super) fn pieces(files: usize) -> Vec<Range<usize>> {
        (0..files).step_by(FILES_OF_PIECE).map(|at| at..files.min(at + FILES_OF_PIECE)).collect()
    }
}

fn refused(error: &Error, done: &str) -> Note {
    Note::of(format!("{}; its bytes are read, and {done} here", error.message()))
}

/// A file that is searched.
pub(super) struct Wanted {
    /// Its place among the files.
    pub(super) number: usize,
    pub(super) plan: Plan,
    /// The predicate over its leaves.
    pub(super) predicate: Predicate,
}

/// Rows that a store finds in files, one file after the other. What it declines is searched here.
pub(super) struct SearchedRows {
    gathered: Arc<Gathered>,
    files: Vec<Wanted>,
    /// Of each file, the rows that were handed out.
    done: Vec<u64>,
    results: Box<dyn Searching>,
    open: Option<Open>,
    left: u64,
    filter: Filter,
    options: PieceOptions,
}

enum Open {
    /// Rows that came as a file.
    File { reader: Box<BatchReader>, sources: ByteSources<Memory>, first_row: u64, conformer: Conformer },
    /// Rows of which nothing is read.
    Counted { rows: u64, first_row: u64, conformer: Conformer },
    /// Rows that are found here, but for the first ones.
    Here { rows: Box<FoundRows>, skip: u64 },
}

impl SearchedRows {
    pub(super) fn open(
        gathered: &Arc<Gathered>,
        files: Vec<Wanted>,
        filter: &Filter,
        options: &PieceOptions,
    ) -> Result<SearchedRows> {
        let mut objects = Vec::with_capacity(files.len());
        let mut store = None;
        for wanted in &files {
            let file = &gathered.files[wanted.number];
            let (of, path, version) =
                file.place().ok_or_else(|| Error::internal("a file that no store searches"))?;
            store.get_or_insert(of);
            let schema = gathered.schemas[file.schema].schema();
            let leaves = leaves_of(&wanted.plan).into_iter().map(|leaf| names_of(schema, leaf)).collect();
            objects.push(SearchedObject { path: path.to_path_buf(), version: version.clone(), leaves });
        }
        let store = store.ok_or_else(|| Error::internal("a search of no files"))?;
        let predicate = Some(filter.text().to_owned());
        let search = Search { objects, predicate, aggregates: None, limit: options.limit };
        let cancel = options.cancel.clone();
        let results = store.search(search, Arc::new(move || cancel.is_set()))?;
        let (done, left) = (vec![0; files.len()], options.limit.unwrap_or(u64::MAX));
        let (gathered, filter, options) = (Arc::clone(gathered), filter.clone(), options.clone());
        Ok(SearchedRows { gathered, files, done, results, open: None, left, filter, options })
    }

    fn next_rows(&mut self) -> Result<Option<Batch>> {
        loop {
            if let Some(open) = &mut self.open {
                if let Some(batch) = open.next(&self.options)? {
                    return Ok(Some(batch));
                }
                self.open = None;
            }
            self.options.cancel.check()?;
            let Some(next) = self.results.next()? else { return Ok(None) };
            match next {
                store::Searched::Found(found) => {
                    self.filter.add(&Report::of_numbers(&found.report));
                    if found.rows > 0 {
                        self.open = Some(self.found(found)?);
                    }
                }
                store::Searched::Declined { object, .. } => self.open = Some(self.here(object)?),
            }
        }
    }

    fn found(&mut self, found: store::FoundRows) -> Result<Open> {
        let store::FoundRows { object, rows, first_row, file: bytes, .. } = found;
        let (Some(wanted), Some(done)) = (self.files.get(object), self.done.get_mut(object)) else {
            return Err(Error::internal("rows of a file that is not searched"));
        };
        *done += rows;
        let file = &self.gathered.files[wanted.number];
        let schema = self.gathered.schemas[file.schema].schema();
        let opened = opened(bytes, (rows, first_row), (schema, &wanted.plan), &self.options);
        opened.map_err(|error| named(error, file.name()))
    }

    /// Searches a file here, for the rows that have not come.
    fn here(&self, object: usize) -> Result<Open> {
        let (Some(wanted), Some(skip)) = (self.files.get(object), self.done.get(object)) else {
            return Err(Error::internal("rows of a file that is not searched"));
        };
        let file = self.gathered.files[wanted.number].parquet()?;
        let groups = 0..file.metadata().row_groups.len();
        let options = PieceOptions { limit: None, ..self.options.clone() };
        let (plan, predicate) = (wanted.plan.clone(), wanted.predicate.clone());
        let rows = FoundRows::new(file, groups, plan, predicate, &self.filter, &options)?;
        Ok(Open::Here { rows: Box::new(rows), skip: *skip })
    }
}

impl Batches for SearchedRows {
    fn next(&mut self) -> Result<Option<Batch>> {
        if self.left == 0 {
            return Ok(None);
        }
        let Some(mut batch) = self.next_rows()? else { return Ok(None) };
        if u64_of(batch.rows) > self.left {
            batch = batch.slice(0..usize_of(self.left).unwrap_or(usize::MAX));
        }
        self.left -= u64_of(batch.rows);
        Ok(Some(batch))
    }
}

impl Open {
    fn next(&mut self, options: &PieceOptions) -> Result<Option<Batch>> {
        let (conformer, batch) = match self {
            Open::File { reader, sources, first_row, conformer } => {
                let Some(mut batch) = drive(&mut **reader, sources)? else { return Ok(None) };
                batch.first_row += *first_row;
                (conformer, batch)
            }
            Open::Counted { rows, first_row, conformer } => {
                if *rows == 0 {
                    return Ok(None);
                }
                let most = conformer.batch_rows(options.batch_rows.unwrap_or(COUNTED_ROWS))?.max(1);
                let some = usize_of(*rows).unwrap_or(usize::MAX).min(most);
                let batch = Batch { row_group: 0, first_row: *first_row, rows: some, columns: Vec::new() };
                (*rows, *first_row) = (*rows - u64_of(some), *first_row + u64_of(some));
                (conformer, batch)
            }
            Open::Here { rows, skip } => loop {
                let Some(batch) = rows.next()? else { return Ok(None) };
                let known = usize_of(*skip).unwrap_or(usize::MAX).min(batch.rows);
                *skip -= u64_of(known);
                if known < batch.rows {
                    return Ok(Some(batch.slice(known..batch.rows)));
                }
            },
        };
        conformer.feed(batch)?;
        let made = conformer.step(&mut marquetry_base::Budget::unlimited())?;
        made.map(Some).ok_or_else(|| Error::internal("a budget without an end is spent"))
    }
}

/// Opens rows that were found in a file of a schema.
fn opened(
    bytes: Bytes,
    (rows, first_row): (u64, u64),
    (schema, plan): (&Schema, &Plan),
    options: &PieceOptions,
) -> Result<Open> {
    let (conform, constants) = plan.clone();
    let mut read = ReadOptions { keep_dictionaries: options.keep_dictionaries, ..ReadOptions::default() };
    let conformer = Conformer::new(conform, constants, read.layout, read.keep_dictionaries)?;
    let leaves = leaves_of(plan);
    if leaves.is_empty() {
        return Ok(Open::Counted { rows, first_row, conformer });
    }
    let sources = ByteSources::new().with(FILE, Memory::new("what its store found", bytes));
    let metadata = drive(&mut FooterReader::new(FILE, read.limits), &sources)?;
    let metadata = metadata.ok_or_else(|| Error::internal("a footer's reader ended without a footer"))?;
    let is_same = |(made, leaf): (&marquetry_parquet::schema::Leaf, &usize)| {
        schema.leaves().get(*leaf).is_some_and(|leaf| {
            (made.physical_type, made.definition_max, made.repetition_max)
                == (leaf.physical_type, leaf.definition_max, leaf.repetition_max)
        })
    };
    let found = metadata.schema.leaves();
    if metadata.rows != rows || found.len() != leaves.len() || !found.iter().zip(&leaves).all(is_same) {
        return Err(Error::corrupt("its store found other rows, or columns, than were asked for"));
    }
    // The order in which they are read may be another one than the file's.
    let place = |leaf: &usize| leaves.binary_search(leaf).ok();
    read.leaves = plan.0.reads().iter().map(place).collect();
    read.batch_rows = conformer.batch_rows(read.batch_rows.min(options.batch_rows.unwrap_or(usize::MAX)))?;
    if let Some(bytes) = options.batch_bytes.and_then(usize_of) {
        read.batch_bytes = read.batch_bytes.min(bytes);
    }
    let codecs: Arc<dyn Codecs> = Arc::new(StandardCodecs::new(read.limits));
    let reader = Box::new(BatchReader::new(FILE, metadata, codecs, read)?);
    Ok(Open::File { reader, sources, first_row, conformer })
}

/// The leaves that are read, in the file's order.
fn leaves_of(plan: &Plan) -> Vec<usize> {
    let mut leaves: Vec<usize> = plan.0.reads().iter().copied().collect();
    leaves.sort_unstable();
    leaves.dedup();
    leaves
}

/// The names on the way to a leaf.
fn names_of(schema: &Schema, leaf: usize) -> Vec<String> {
    let mut names = Vec::new();
    let mut at = schema.leaves().get(leaf).map_or(0, |leaf| leaf.node);
    while let Some(node) = schema.nodes().get(at).filter(|_| at != 0) {
        names.push(node.name.clone());
        at = node.parent;
    }
    names.reverse();
    names
}
