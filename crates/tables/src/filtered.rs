//! The rows of a table for which a predicate is true.

use std::sync::Arc;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Bitmap, Budget, Error, Result};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::find::Report;
use marquetry_parquet::prune::{Evaluator, Predicate};
use marquetry_parquet::read::Conform;
use marquetry_parquet::schema::Plan as _;

use crate::kept::Kept;
use crate::project::{Conformed, Picked};
use crate::source::{open_piece, with_unknown_rows};
use crate::{
    Batches, ColumnPath, Filter, Piece, PieceOptions, Reading, ReadingOptions, Source, Table, project,
};

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
            let tested = Tested {
                batches: open_piece(self.read.as_ref(), piece, &inner)?,
                evaluator: Evaluator::new(&self.predicate, schema, &all)?,
                kept: Kept::new(schema, options.batch_rows),
                left: options.limit.unwrap_or(u64::MAX),
                filter: self.filter.clone(),
            };
            Ok(Box::new(Picked { batches: Box::new(tested), leaves: leaves.to_vec() }))
        })
    }

    // No `lines_of`: rows are counted from the first of a batch, between whose rows others were left out.

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
    /// Rows that were kept of batches of which few were.
    kept: Kept,
    /// Rows that are still wanted.
    left: u64,
    filter: Filter,
}

impl Tested {
    /// The next batch, or none yet.
    fn step(&mut self) -> Result<Option<Option<Batch>>> {
        let rows = self.kept.rows();
        if u64_of(rows) >= self.left || self.kept.is_full() {
            return Ok(Some(self.kept.finish()));
        }
        let Some(batch) = self.batches.next()? else { return Ok(self.kept.finish().map(Some)) };
        let bits = self.evaluator.step(&batch, &mut Budget::unlimited())?;
        let bits = bits.ok_or_else(|| Error::internal("a budget without an end is spent"))?;
        let wanted = rows_of(&bits);
        self.filter.add(&Report::of_tested(u64_of(batch.rows), u64_of(wanted.len())));
        if wanted.len() == batch.rows && rows == 0 {
            return Ok(Some(Some(batch)));
        }
        Ok(Some(self.kept.keep(batch, &wanted)?))
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
    // Or else one column says how many rows there are.
    let schema = &source.table().schema;
    let first = schema.children(0).next().map(|node| ColumnPath::of([schema.nodes()[node].name.as_str()]));
    let narrow = match (source.without_columns()?, first) {
        (Some(without), _) => without,
        (None, Some(first)) => project(source, &[first])?,
        (None, None) => Arc::clone(source),
    };
    let mut reading = Reading::new(narrow, options.clone())?;
    let mut rows = 0;
    while let Some((_, batch)) = reading.next_batch()? {
        rows += u64_of(batch.rows);
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};

    use super::*;

    /// Batches of a thousand numbers each, of which only the first two can be read.
    struct Endless(Table, [Piece; 1]);

    struct Thousands(i64);

    impl Source for Endless {
        fn table(&self) -> &Table {
            &self.0
        }

        fn pieces(&self) -> &[Piece] {
            &self.1
        }

        fn open(&self, _: usize, _: &PieceOptions) -> Result<Box<dyn Batches>> {
            Ok(Box::new(Thousands(0)))
        }
    }

    impl Batches for Thousands {
        fn next(&mut self) -> Result<Option<Batch>> {
            if self.0 == 2_000 {
                return Err(Error::io("read on"));
            }
            let first = self.0;
            self.0 += 1_000;
            Batch::of_values([(first..self.0).collect::<Vec<_>>().into()]).map(Some)
        }
    }

    fn endless() -> Arc<dyn Source> {
        let id = FieldDef::new("id", FieldType::Leaf(PhysicalType::Int64, None)).required();
        let table = Table::new("endless", Arc::new(Schema::of_fields(&[id]).unwrap()));
        Arc::new(Endless(table, [Piece::of("endless")]))
    }

    #[test]
    fn no_more_is_read_than_is_wanted() {
        for (predicate, limit) in [("id >= 998", 1_000), ("id IN (7, 1500)", 2), ("id < 2000", 2_000)] {
            let some = filter(&endless(), &Filter::new(predicate)).unwrap();
            let mut options = PieceOptions::default();
            (options.limit, options.batch_rows) = (Some(limit), Some(1_000));
            let mut batches = some.open(0, &options).unwrap();
            let mut rows = 0;
            while let Some(batch) = batches.next().unwrap() {
                assert!(batch.rows <= 1_000, "{predicate}: {} rows", batch.rows);
                rows += u64_of(batch.rows);
            }
            assert_eq!(rows, limit, "{predicate}");
        }
    }
}
