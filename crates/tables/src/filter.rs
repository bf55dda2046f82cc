//! The rows of a table for which a predicate is true.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Bitmap, Budget, Detail, Error, Result};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::prune::{Evaluator, Predicate, Report, Structures};
use marquetry_parquet::read::Conform;
use marquetry_parquet::schema::{Plan as _, Schema};
use marquetry_text::predicate::{self, PredicateError};

use crate::parquet::{Gathered, Plain};
use crate::project::Conformed;
use crate::source::open_piece;
use crate::{
    Batches, Cancel, ColumnPath, Piece, PieceOptions, Reading, ReadingOptions, Source, Table, project,
};

/// Rows of a batch that is made of rows of several.
const BATCH_ROWS: usize = 8192;
/// Bytes of rows that are handed out, however few they are.
const GATHERED_BYTES: u64 = 4 << 20;

/// Which rows are wanted: a [predicate](marquetry_text::predicate) as people write it, and how rows are searched for.
///
/// ```
/// use marquetry_tables::Filter;
///
/// let filter = Filter::new("fare > 20.5 AND city IN ('Rome', 'Oslo')");
/// assert_eq!(filter.report().found, 0);
/// ```
#[derive(Clone)]
pub struct Filter {
    text: String,
    structures: Structures,
    report: Arc<Mutex<Report>>,
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filter").field("text", &self.text).finish_non_exhaustive()
    }
}

impl Filter {
    /// Rows for which this is true. It is parsed when a table is known.
    pub fn new(text: impl Into<String>) -> Filter {
        Filter { text: text.into(), structures: Structures::default(), report: Arc::default() }
    }

    /// The same, with these structures of Parquet files only.
    #[must_use]
    pub fn using(mut self, structures: Structures) -> Filter {
        self.structures = structures;
        self
    }

    /// What has been found so far, and by what. Of sources that have nothing to search by it has the rows alone.
    pub fn report(&self) -> Report {
        *self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What may be used to leave out rows.
    pub(crate) fn structures(&self) -> Structures {
        self.structures
    }

    /// Adds what a part of the search did.
    pub(crate) fn add(&self, report: &Report) {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).add(report);
    }

    /// The text of the predicate.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is a predicate over a table's columns.
    ///
    /// # Errors
    ///
    /// What is wrong, and where.
    pub fn check(&self, table: &Table) -> Result<(), PredicateError> {
        predicate::parse(&self.text, &table.schema).map(drop)
    }

    /// The predicate over a table's columns.
    fn predicate(&self, schema: &Arc<Schema>) -> Result<Predicate> {
        predicate::parse(&self.text, schema).map_err(|error| {
            let message = format!("{error}, at byte {} of the predicate", error.at.start);
            Error::misuse(message).with(Detail::Option("where"))
        })
    }
}

/// The rows of a table for which a predicate is true; columns are those of the table.
///
/// A source that can find rows by itself does: Parquet files leave out row groups and pages by their statistics, Bloom
/// filters and page index, and read other columns only where rows were found. Of others, all rows are read and tested.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use marquetry_tables::files::{Files, FilesOptions};
/// use marquetry_tables::{Filter, Source, filter};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let trips: Arc<dyn Source> = Arc::new(Files::open(["trips/"], &FilesOptions::default())?);
/// let dear = filter(&trips, &Filter::new("fare > 100 AND tip IS NOT NULL"))?;
/// assert_eq!(dear.table().rows, None);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `Misuse` for what is no predicate of this table, with its place in the text. [`Filter::check`] has it in parts.
pub fn filter(source: &Arc<dyn Source>, wanted: &Filter) -> Result<Arc<dyn Source>> {
    let predicate = wanted.predicate(&source.table().schema)?;
    if let Some(filtered) = source.filter(&predicate, wanted)? {
        return Ok(filtered);
    }
    Filtered::over(source, None, wanted)
}

/// A table's description, and its pieces, when nobody knows how many of its rows are left.
pub(crate) fn with_unknown_rows(table: &Table, pieces: &[Piece]) -> (Table, Vec<Piece>) {
    let mut table = table.clone();
    (table.rows, table.row_groups) = (None, None);
    let piece = |piece: &Piece| Piece { first_row: None, rows: None, ..piece.clone() };
    (table, pieces.iter().map(piece).collect())
}

/// A table whose rows are tested as they come.
struct Filtered {
    source: Arc<dyn Source>,
    /// The columns that are wanted, if not all, and the table without the others.
    columns: Option<Vec<ColumnPath>>,
    table: Table,
    pieces: Vec<Piece>,
    /// What is read: the wanted columns, and those that are tested.
    read: Arc<dyn Source>,
    predicate: Predicate,
    /// How what is read becomes the table.
    conform: Arc<Conform>,
    filter: Filter,
}

impl Filtered {
    fn over(
        source: &Arc<dyn Source>,
        columns: Option<Vec<ColumnPath>>,
        filter: &Filter,
    ) -> Result<Arc<dyn Source>> {
        let all = &source.table().schema;
        let (wanted, read) = match &columns {
            None => (Arc::clone(source), Arc::clone(source)),
            Some(columns) => {
                let mut read = columns.clone();
                let mut there = Vec::new();
                for column in columns {
                    there.extend(column.leaves(all)?);
                }
                for leaf in filter.predicate(all)?.leaves() {
                    if !there.contains(&leaf) {
                        read.push(ColumnPath::of_leaf(all, leaf));
                    }
                }
                (project(source, columns)?, project(source, &read)?)
            }
        };
        let (table, pieces) = with_unknown_rows(wanted.table(), source.pieces());
        let predicate = filter.predicate(&read.table().schema)?;
        let (from, to) = (Arc::clone(&read.table().schema), Arc::clone(&table.schema));
        let conform = Arc::new(Conform::plan(from, to, &[]).at_once()?);
        let (source, filter) = (Arc::clone(source), filter.clone());
        Ok(Arc::new(Filtered { source, columns, table, pieces, read, predicate, conform, filter }))
    }
}

impl Source for Filtered {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn open(&self, piece: usize, options: &PieceOptions) -> Result<Box<dyn Batches>> {
        let plan = (Arc::clone(&self.conform), Vec::new());
        Conformed::open(plan, options, |leaves, options| {
            let schema = &self.read.table().schema;
            let inner = PieceOptions { limit: None, ..options.clone() };
            let all: Vec<usize> = (0..schema.leaves().len()).collect();
            Ok(Box::new(Tested {
                batches: open_piece(self.read.as_ref(), piece, &inner)?,
                evaluator: Evaluator::new(&self.predicate, schema, &all)?,
                schema: Arc::clone(schema),
                gathered: Gathered::new(schema),
                first_row: 0,
                leaves: leaves.to_vec(),
                left: options.limit.unwrap_or(u64::MAX),
                filter: self.filter.clone(),
            }))
        })
    }

    fn line_of(&self, piece: usize, row: u64, cancel: &Cancel) -> Option<u64> {
        self.source.line_of(piece, row, cancel)
    }

    fn project(&self, columns: &[ColumnPath]) -> Result<Option<Arc<dyn Source>>> {
        if self.columns.is_some() {
            return Ok(None);
        }
        Filtered::over(&self.source, Some(columns.to_vec()), &self.filter).map(Some)
    }
}

/// Batches of which the rows are kept that pass.
struct Tested {
    batches: Box<dyn Batches>,
    evaluator: Evaluator,
    schema: Arc<Schema>,
    /// Rows that were kept of batches of which few were, and the number of the first of them.
    gathered: Gathered,
    first_row: u64,
    /// The leaves that are wanted, of those that are read.
    leaves: Vec<usize>,
    left: u64,
    filter: Filter,
}

impl Tested {
    /// The next batch, or none of it.
    fn step(&mut self) -> Result<Option<Option<Batch>>> {
        let Some(batch) = self.batches.next()? else {
            let rest = self.gathered.rows() > 0;
            return Ok(rest.then(|| Some(self.take_gathered())));
        };
        let bits = self.evaluator.step(&batch, &mut Budget::unlimited())?;
        let bits = bits.ok_or_else(|| Error::internal("a budget without an end is spent"))?;
        let rows = rows_of(&bits);
        self.filter.add(&Report::of_tested(u64_of(batch.rows), u64_of(rows.len())));
        if rows.len() == batch.rows && self.gathered.rows() == 0 {
            return Ok(Some(Some(batch)));
        }
        let Some(first) = rows.first() else { return Ok(Some(None)) };
        if self.gathered.rows() == 0 {
            self.first_row = batch.first_row.saturating_add(u64::from(*first));
        }
        let plain = Plain::of(batch, &self.schema)?;
        self.gathered.take(&plain, 0..self.schema.leaves().len(), &rows)?;
        let is_enough = self.gathered.rows() >= BATCH_ROWS || self.gathered.bytes() >= GATHERED_BYTES;
        Ok(Some(is_enough.then(|| self.take_gathered())))
    }

    fn take_gathered(&mut self) -> Batch {
        let mut batch = self.gathered.finish();
        batch.first_row = self.first_row;
        batch
    }
}

impl Batches for Tested {
    fn next(&mut self) -> Result<Option<Batch>> {
        while self.left > 0 {
            let Some(step) = self.step()? else { return Ok(None) };
            let Some(mut batch) = step else { continue };
            if u64_of(batch.rows) > self.left {
                batch = batch.slice(0..usize_of(self.left).unwrap_or(usize::MAX));
            }
            self.left -= u64_of(batch.rows);
            let mut columns: Vec<_> = batch.columns.drain(..).map(Some).collect();
            let pick = |leaf: &usize| columns.get_mut(*leaf).and_then(Option::take);
            batch.columns = self.leaves.iter().filter_map(pick).collect();
            return Ok(Some(batch));
        }
        Ok(None)
    }
}

/// The numbers of the bits that are set.
fn rows_of(bits: &Bitmap) -> Vec<u32> {
    bits.iter().zip(0..).filter_map(|(is_set, row)| is_set.then_some(row)).collect()
}

/// Counts the rows of a table: from what is known of it, or else by reading as little of them as possible.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use marquetry_tables::files::{Files, FilesOptions};
/// use marquetry_tables::{Filter, ReadingOptions, Source, count, filter};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let trips: Arc<dyn Source> = Arc::new(Files::open(["trips/"], &FilesOptions::default())?);
/// let dear = filter(&trips, &Filter::new("fare > 100"))?;
/// println!("{} of {:?}", count(&dear, &ReadingOptions::default())?, trips.table().rows);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Those of reading.
pub fn count(source: &Arc<dyn Source>, options: &ReadingOptions) -> Result<u64> {
    let limit = options.piece.limit.unwrap_or(u64::MAX);
    if let Some(rows) = source.table().rows {
        return Ok(rows.min(limit));
    }
    // One column says how many rows there are.
    let schema = &source.table().schema;
    let first = schema.children(0).next().map(|node| ColumnPath::of([schema.nodes()[node].name.as_str()]));
    let narrow = match first {
        Some(first) => project(source, &[first])?,
        None => Arc::clone(source),
    };
    let mut reading = Reading::new(narrow, options.clone())?;
    let mut rows = 0;
    while let Some((_, batch)) = reading.next_batch()? {
        rows += u64_of(batch.rows);
    }
    Ok(rows)
}
