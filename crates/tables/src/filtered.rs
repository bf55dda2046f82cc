//! The rows of a table for which a predicate is true.

use std::sync::Arc;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Bitmap, Budget, Error, Result};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::find::Report;
use marquetry_parquet::prune::{Evaluator, Predicate};
use marquetry_parquet::read::Conform;
use marquetry_parquet::schema::{Plan as _, Schema};

use crate::parquet::{Gathered, Plain};
use crate::project::Conformed;
use crate::source::{open_piece, with_unknown_rows};
use crate::{
    Batches, Cancel, ColumnPath, Filter, Piece, PieceOptions, Reading, ReadingOptions, Source, Table, project,
};

/// Rows of a batch that is made of rows of several.
const BATCH_ROWS: usize = 8192;
/// Bytes of rows that are handed out, however few they are.
const GATHERED_BYTES: u64 = 4 << 20;

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
        let over_all = filter.predicate(all)?;
        let (wanted, read) = match &columns {
            None => (Arc::clone(source), Arc::clone(source)),
            Some(columns) => {
                let mut read = columns.clone();
                let mut there = Vec::new();
                for column in columns {
                    there.extend(column.leaves(all)?);
                }
                for leaf in over_all.leaves() {
                    if !there.contains(&leaf) {
                        read.push(ColumnPath::of_leaf(all, leaf));
                    }
                }
                (project(source, columns)?, project(source, &read)?)
            }
        };
        let (table, pieces) = with_unknown_rows(wanted.table(), source.pieces());
        // Names may mean something else in the projection: a map without its keys is a list.
        let projected = Conform::plan(Arc::clone(all), Arc::clone(&read.table().schema), &[]).at_once()?;
        let place = |leaf: usize| projected.reads().iter().position(|read| *read == leaf);
        let predicate = over_all.map_leaves(&place);
        let predicate = predicate.ok_or_else(|| Error::internal("a column that is tested, and not read"))?;
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
        let is_enough = u64_of(self.gathered.rows()) >= self.left
            || self.gathered.rows() >= BATCH_ROWS
            || self.gathered.bytes() >= GATHERED_BYTES;
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
