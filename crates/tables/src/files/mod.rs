//! Many files as one table: found, their footers read, their schemas joined, their columns chosen.

mod any;
mod choose;
mod columns;
mod filtered;
mod format;
mod gathered;
mod hive;
mod look;
mod map;
mod options;
mod parquet;
mod parquet_rows;
mod part;
mod partial;
mod replaced;
mod searched;
mod selected;
mod survey;
mod unchanged;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::{Error, Limits, Result};
use marquetry_io::store::{SearchedAggregates, Store};
use marquetry_parquet::batch::{Batch, RowSelection, Values};
use marquetry_parquet::format::{KeyValue, SortingColumn};
use marquetry_parquet::prune::{Predicate, Verdict};
use marquetry_parquet::read::Conform;
use marquetry_parquet::schema::{Plan as _, Schema};

use crate::key_values::{are_writes, holds_for_any_columns};
use crate::source::with_unknown_rows;
use crate::subject::named;
use crate::{
    Batches, BytesRead, Cancel, ColumnPath, Filter, Note, Partials, Piece, PieceOptions, Source, Table,
};

pub use any::AnyFile;
pub use format::{FileFormat, FormatFile, FoundFile, WantedColumns};
pub use gathered::{DataFile, Gathered, find};
pub use hive::Hive;
pub use map::{Extent, ExtentKind, FileMap, MapOptions, MappedPage, MappedPageKind};
pub use options::FilesOptions;
pub use parquet::ParquetFile;
pub use survey::{Survey, SurveyedFile, SurveyedSchema, Tally};
pub(crate) use unchanged::of_all as unchanged_files;
pub use unchanged::unchanged;

use filtered::{FoundRows, Nothing};
use gathered::{FileSchema, Opened, Plan};
use part::Part;
use partial::{Computed, PartialRows};
use searched::{SearchedRows, Searches, Wanted};
use selected::SelectedRows;

/// Files read as one table: Parquet files, directories of them, and patterns.
///
/// Columns are matched by name at every level, whatever their order and the spelling of lists and maps. Directories
/// such as `year=2024` are columns. Rows are in the order of the files' names, sorted bytewise.
///
/// ```no_run
/// use marquetry_tables::{ColumnPath, Source};
/// use marquetry_tables::files::{Files, FilesOptions};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let mut options = FilesOptions::default();
/// options.columns = Some(ColumnPath::parse_list("id, place.lat")?);
/// let trips = Files::open(["trips/"], &options)?;
/// println!("{} rows of {}", trips.table().rows.unwrap_or(0), trips.table().name);
/// # Ok(())
/// # }
/// ```
pub struct Files {
    table: Table,
    pieces: Vec<Piece>,
    /// For each piece its file, and the row groups of it.
    places: Vec<(usize, Range<usize>)>,
    gathered: Arc<Gathered>,
    options: FilesOptions,
    /// How each schema is read as the table's.
    conforms: Vec<Arc<Conform>>,
    /// Of the columns in the paths, those that are in the table.
    constants: Vec<usize>,
}

impl Files {
    /// Opens files as one table. Everything that can be wrong before the first row is found here.
    ///
    /// # Errors
    ///
    /// `Io` for files that are missing or cannot be read, `Corrupt` and `LimitExceeded` for their footers, `Conversion` for files
    /// that do not fit together ([`Detail::AdmittedBy`](marquetry_base::Detail) names the options that would admit
    /// them, such as [`union`](FilesOptions::union)), `Misuse` for columns that no file has.
    pub fn open<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>, options: &FilesOptions) -> Result<Files> {
        let paths: Vec<PathBuf> = paths.into_iter().map(|path| path.as_ref().to_path_buf()).collect();
        let gathered = Gathered::read(&paths, options)?;
        Files::of_some(Arc::new(gathered), options.clone())
    }

    /// A file that is being written, as rows of the schema that it was written as. Columns that are not in it have the same value
    /// in all rows.
    pub(crate) fn of_written(
        store: &Arc<dyn Store>,
        files: impl Iterator<Item = (PathBuf, String, Vec<Option<Values>>)>,
        schema: &Arc<Schema>,
        constants: &[&str],
        limits: Limits,
    ) -> Result<Files> {
        let opened = files.map(|(path, name, constants)| {
            let file = ParquetFile::open_as(name, (store, &path), None, limits)?;
            Ok(Opened { file: AnyFile::Parquet(file), constants })
        });
        let gathered = Gathered::of(opened, Vec::new())?;
        let (numbers, options) = ((0..constants.len()).collect(), FilesOptions::default());
        Files::with(Arc::new(gathered), options, Arc::clone(schema), constants, numbers)
    }

    /// As [`Files::of`], of files that may have more columns than were opened.
    fn of_some(gathered: Arc<Gathered>, options: FilesOptions) -> Result<Files> {
        match Files::of(Arc::clone(&gathered), options.clone()) {
            Err(_) if gathered.is_partial => Files::of(Arc::new(gathered.complete()?), options),
            files => files,
        }
    }

    fn of(gathered: Arc<Gathered>, options: FilesOptions) -> Result<Files> {
        let chosen = choose::choose(&gathered, options.columns.as_deref(), options.union)?;
        // Files of one schema have it as they spell it.
        let schema = match (chosen, &*gathered.schemas, gathered.partitions.is_empty()) {
            (Some(schema), ..) => Arc::new(schema),
            (None, [only], true) => Arc::clone(only.schema()),
            (None, ..) => Arc::clone(&gathered.unified.schema),
        };
        let partitions = gathered.partitions.clone();
        let constants: Vec<usize> = (0..partitions.len())
            .filter(|&number| schema.child_of_root(&partitions[number].name).is_some())
            .collect();
        let names: Vec<&str> = constants.iter().map(|&number| partitions[number].name.as_str()).collect();
        Files::with(gathered, options, schema, &names, constants)
    }

    fn with(
        gathered: Arc<Gathered>,
        options: FilesOptions,
        schema: Arc<Schema>,
        constant_names: &[&str],
        constants: Vec<usize>,
    ) -> Result<Files> {
        let mut table = Table::new(gathered.name(), Arc::clone(&schema));
        let (files, schemas) = (&gathered.files, &gathered.schemas);
        let conform = |of: &FileSchema| {
            let plan = Conform::plan(Arc::clone(of.schema()), Arc::clone(&schema), constant_names);
            plan.at_once().map(Arc::new).map_err(|error| named(error, files[of.file].name()))
        };
        let conforms = schemas.iter().map(conform).collect::<Result<Vec<_>>>()?;
        let sum = |of: fn(&DataFile) -> Option<u64>| {
            files.iter().try_fold(0_u64, |sum, file| Some(sum.saturating_add(of(file)?)))
        };
        table.rows = sum(DataFile::rows);
        table.bytes = sum(DataFile::bytes);
        table.notes = notes(files);
        table.row_groups = sum(|file| file.row_groups().map(u64_of));
        let has_all = !gathered.is_partial && matches!(&**schemas, [only] if *only.schema() == schema);
        let holds = |it: &KeyValue| has_all || holds_for_any_columns(it);
        (table.key_values, table.of_all_columns) = gathered.key_values.iter().cloned().partition(holds);
        for (footer, of) in schemas.iter().filter_map(|of| Some((of.footer()?, of.schema()))) {
            table.note_durations_of(&footer.key_values, of);
        }
        // Rows that were sorted in one row group are in any part of it; those of two need not be.
        if let ([_], Some(footer), true) = (&**files, schemas.first().and_then(FileSchema::footer), has_all)
            && let (1, Some(group)) = (footer.row_groups.len(), footer.row_groups.first())
        {
            let is_column = |by: &&SortingColumn| usize_of_u32(by.column) < schema.leaves().len();
            table.order = group.sorting_columns.iter().take_while(is_column).copied().collect();
        }
        let (mut pieces, mut places) = (Vec::new(), Vec::new());
        for (number, file) in files.iter().enumerate() {
            let tag = file.tag();
            for Part { groups, rows, bytes, splits } in file.pieces(&conforms[file.schema]) {
                // The files count: of a row group, the rows before it, too.
                let tag = tag.map(str::to_owned);
                pieces.push(Piece { first_row: None, rows, bytes, splits, tag, ..Piece::of(file.name()) });
                places.push((number, groups));
            }
        }
        let opened = Files { table, pieces, places, gathered, options, conforms, constants };
        // What cannot be read at all is known by the schema.
        for schema in &opened.gathered.schemas {
            let file = &opened.gathered.files[schema.file];
            file.check(opened.plan(file))?;
        }
        Ok(opened)
    }

    /// The files, in the order of their rows.
    pub fn files(&self) -> &[DataFile] {
        &self.gathered.files
    }

    /// Whether files have writes, of the mapping `full`, which are no writes as these files are read: beside rows, or with other columns than were
    /// written. Where writes are executed, deletions would become rows.
    pub fn has_lost_writes(&self) -> bool {
        self.gathered.of_writes > 0 && !self.table.key_values.iter().any(are_writes)
    }

    /// The same files with only these columns, in this order.
    ///
    /// # Errors
    ///
    /// As [`Files::open`].
    pub fn with_columns(&self, columns: Vec<ColumnPath>) -> Result<Files> {
        let options = FilesOptions { columns: Some(columns), ..self.options.clone() };
        Files::of_some(Arc::clone(&self.gathered), options)
    }

    /// The same files, once more.
    fn again(&self) -> Result<Files> {
        Files::of(Arc::clone(&self.gathered), self.options.clone())
    }

    /// The files of each piece where their store searches them, and the pieces.
    fn searched_pieces(&self) -> (Vec<Range<usize>>, Vec<Piece>) {
        let searched = Searches::pieces(self.files().len());
        let piece = |of: &Range<usize>| {
            let files = &self.files()[of.clone()];
            let bytes = files.iter().map(DataFile::bytes).sum();
            let name = files.first().map_or("", DataFile::name);
            Piece { first_row: None, bytes, ..Piece::of(name) }
        };
        let pieces = searched.iter().map(piece).collect();
        (searched, pieces)
    }

    /// How a file is read, and what it has in the columns in its path.
    fn plan(&self, file: &DataFile) -> Plan {
        let constants = self.constants.iter().map(|&at| file.constants.get(at).cloned().flatten());
        (Arc::clone(&self.conforms[file.schema]), constants.collect())
    }
}

impl Source for Files {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn open(&self, piece: usize, options: &PieceOptions) -> Result<Box<dyn Batches>> {
        let (number, groups) = &self.places[piece];
        let file = &self.gathered.files[*number];
        let batches = file.open(groups, &self.gathered.schemas[file.schema], self.plan(file), options)?;
        if !file.is_parquet() {
            return Ok(batches);
        }
        let bytes = self.pieces[piece].bytes.unwrap_or(0);
        Ok(Box::new(CountedPiece { batches, bytes, bytes_read: options.bytes_read.clone() }))
    }

    fn open_rows(
        &self,
        piece: usize,
        rows: RowSelection,
        options: &PieceOptions,
    ) -> Result<Option<Box<dyn Batches>>> {
        let (number, groups) = &self.places[piece];
        let file = &self.gathered.files[*number];
        if !file.is_parquet() {
            return Ok(None);
        }
        let some = SelectedRows::open(file.parquet()?, groups.clone(), rows, self.plan(file), options)?;
        Ok(Some(Box::new(some)))
    }

    fn lines_of(&self, piece: usize, rows: &[u64], cancel: &Cancel) -> Option<Vec<u64>> {
        let (number, _) = self.places.get(piece)?;
        self.gathered.files.get(*number)?.lines_of(rows, cancel)
    }

    fn project(&self, columns: &[ColumnPath]) -> Result<Option<Arc<dyn Source>>> {
        Ok(Some(Arc::new(self.with_columns(columns.to_vec())?)))
    }

    fn partials(&self, partials: &Arc<Partials>) -> Result<Option<Arc<dyn Source>>> {
        if !Searches::are_by_store(&self.gathered) {
            return Ok(None);
        }
        PartialFiles::open(self, None, partials)
    }

    fn why_no_partials(&self) -> Option<Note> {
        Searches::refused(&self.gathered, "aggregated")
    }

    fn filter(&self, predicate: &Predicate, filter: &Filter) -> Result<Option<Arc<dyn Source>>> {
        let filtered = FilteredFiles::new(self, predicate, filter)?;
        Ok(filtered.map(|filtered| Arc::new(filtered) as Arc<dyn Source>))
    }
}

/// What is to be known of how files are read: the same of several once, with the first of them unless it is of all.
fn notes(files: &[DataFile]) -> Vec<Note> {
    let mut notes: Vec<(Note, &str, usize)> = Vec::new();
    for (note, name) in files.iter().filter_map(|file| Some((file.note()?, file.name()))) {
        match notes.iter_mut().find(|(known, ..)| *known == note) {
            Some((.., more)) => *more += 1,
            None => notes.push((note, name, 0)),
        }
    }
    let with_names = |(note, name, more): (Note, &str, usize)| match (files.len() - more, more) {
        (1, _) => note,
        (_, 0) => Note { text: format!("in {name}, {}", note.text), ..note },
        (_, 1) => Note { text: format!("in {name} and 1 more file, {}", note.text), ..note },
        (_, more) => Note { text: format!("in {name} and {more} more files, {}", note.text), ..note },
    };
    notes.into_iter().map(with_names).collect()
}

/// Files as one table, of which only some rows are read.
struct FilteredFiles {
    /// The files with all columns, over which the predicate is.
    all: Files,
    /// The files with the columns that are wanted.
    wanted: Files,
    table: Table,
    pieces: Vec<Piece>,
    predicate: Predicate,
    filter: Filter,
    searches: Searches,
    /// If their store searches them: the files of each piece.
    searched: Vec<Range<usize>>,
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
        let over_file = |file: &DataFile| translated(files, file, predicate);
        let searches = Searches::of(&files.gathered, over_file, filter)?;
        let (all, wanted) = (files.again()?, files.again()?);
        FilteredFiles::of(all, wanted, predicate.clone(), filter.clone(), searches).map(Some)
    }

    fn of(
        all: Files,
        wanted: Files,
        predicate: Predicate,
        filter: Filter,
        searches: Searches,
    ) -> Result<FilteredFiles> {
        let (mut table, mut pieces) = with_unknown_rows(wanted.table(), wanted.pieces());
        table.notes.extend(searches.note.clone());
        let mut searched = Vec::new();
        if searches.by_store {
            (searched, pieces) = wanted.searched_pieces();
        }
        Ok(FilteredFiles { all, wanted, table, pieces, predicate, filter, searches, searched })
    }

    /// The predicate over a file's own leaves.
    fn over_file(&self, number: usize) -> Result<Predicate> {
        over_file(&self.all, &self.wanted.files()[number], &self.predicate)
    }

    /// Some rows of some files, which their store searches.
    fn open_searched(&self, files: Range<usize>, options: &PieceOptions) -> Result<Box<dyn Batches>> {
        let wanted = |number: usize| {
            let plan = self.wanted.plan(&self.wanted.files()[number]);
            Ok(Wanted { number, plan, predicate: self.over_file(number)? })
        };
        let files = files.map(wanted).collect::<Result<_>>()?;
        Ok(Box::new(SearchedRows::open(&self.wanted.gathered, files, &self.filter, options)?))
    }
}

/// The predicate over the leaves of a file that can be searched.
fn over_file(all: &Files, file: &DataFile, predicate: &Predicate) -> Result<Predicate> {
    translated(all, file, predicate)?.ok_or_else(|| Error::internal("a file that cannot be searched"))
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
        let batches: Box<dyn Batches> = match self.searched.get(piece) {
            Some(files) => self.open_searched(files.clone(), options)?,
            None => {
                let (number, groups) = &self.wanted.places[piece];
                let file = &self.wanted.files()[*number];
                let predicate = self.over_file(*number)?;
                // What is in the file's path may decide alone.
                match predicate.judge(&mut |_| Verdict::Some) {
                    Verdict::None => Box::new(Nothing),
                    _ => Box::new(FoundRows::new(
                        file.parquet()?,
                        groups.clone(),
                        self.wanted.plan(file),
                        predicate,
                        &self.filter,
                        options,
                    )?),
                }
            }
        };
        let bytes = self.pieces[piece].bytes.unwrap_or(0);
        Ok(Box::new(CountedPiece { batches, bytes, bytes_read: options.bytes_read.clone() }))
    }

    fn project(&self, columns: &[ColumnPath]) -> Result<Option<Arc<dyn Source>>> {
        let wanted = self.wanted.with_columns(columns.to_vec())?;
        let (predicate, filter) = (self.predicate.clone(), self.filter.clone());
        let files = FilteredFiles::of(self.all.again()?, wanted, predicate, filter, self.searches.clone())?;
        Ok(Some(Arc::new(files)))
    }

    fn partials(&self, partials: &Arc<Partials>) -> Result<Option<Arc<dyn Source>>> {
        if !self.searches.by_store {
            return Ok(None);
        }
        let found = Some((&self.all, &self.predicate, &self.filter));
        PartialFiles::open(&self.wanted, found, partials)
    }

    fn without_columns(&self) -> Result<Option<Arc<dyn Source>>> {
        self.project(&[])
    }
}

/// Partial aggregates of files, which their store computes.
struct PartialFiles {
    files: Files,
    /// Of which rows: those for which a predicate over all columns is true.
    found: Option<(Files, Predicate, Filter)>,
    table: Table,
    pieces: Vec<Piece>,
    /// The files of each piece.
    places: Vec<Range<usize>>,
    partials: Arc<Partials>,
    aggregates: SearchedAggregates,
}

impl PartialFiles {
    /// `None` if not all files have the columns that are needed as they are, or some are in the paths: these count, even if files have them, too.
    fn open(
        files: &Files,
        found: Option<(&Files, &Predicate, &Filter)>,
        partials: &Arc<Partials>,
    ) -> Result<Option<Arc<dyn Source>>> {
        let Some((functions, groups)) = partials.requests() else { return Ok(None) };
        if !files.constants.is_empty() || !files.gathered.schemas.iter().all(|of| partials.is_of(of.schema()))
        {
            return Ok(None);
        }
        let found = match found {
            Some((all, predicate, filter)) => Some((all.again()?, predicate.clone(), filter.clone())),
            None => None,
        };
        let (places, pieces) = files.searched_pieces();
        let table = Table::new(files.table.name.clone(), Arc::clone(partials.schema()));
        let (files, partials) = (files.again()?, Arc::clone(partials));
        let aggregates = SearchedAggregates { functions, groups };
        Ok(Some(Arc::new(PartialFiles { files, found, table, pieces, places, partials, aggregates })))
    }
}

impl Source for PartialFiles {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn open(&self, piece: usize, options: &PieceOptions) -> Result<Box<dyn Batches>> {
        let computed = |number: usize| {
            let file = &self.files.files()[number];
            let over = |(all, predicate, _): &(Files, Predicate, Filter)| over_file(all, file, predicate);
            let predicate = self.found.as_ref().map(over).transpose()?;
            Ok(Computed { number, plan: self.files.plan(file), predicate })
        };
        let files = self.places.get(piece).cloned().unwrap_or_default();
        let files = files.map(computed).collect::<Result<_>>()?;
        let asked = (&self.partials, self.aggregates.clone());
        let filter = self.found.as_ref().map(|(_, _, filter)| filter);
        Ok(Box::new(PartialRows::open(&self.files.gathered, files, asked, filter, options)?))
    }
}

/// Counts a piece when its rows are read.
struct CountedPiece {
    batches: Box<dyn Batches>,
    /// Its bytes, until they are counted.
    bytes: u64,
    bytes_read: BytesRead,
}

impl Batches for CountedPiece {
    fn next(&mut self) -> Result<Option<Batch>> {
        let next = self.batches.next()?;
        if next.is_none() {
            self.bytes_read.add(std::mem::take(&mut self.bytes));
        }
        Ok(next)
    }
}
