//! Aggregates of any table: computed here, or by who has its rows, part by part.

mod asked;
mod fold;
mod form;
mod partials;
mod state;

use std::sync::Arc;

use marquetry_base::cast::usize_of;
use marquetry_base::{Detail, Error, Result};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::schema::Schema;

pub use asked::Aggregates;
pub(crate) use fold::Fold;
pub use partials::Partials;

use crate::subject::named;
use crate::{Batches, ColumnPath, Piece, PieceOptions, Reading, ReadingOptions, Source, Table, project};

/// Aggregates of a table, as a table: of all rows one row, of groups a row for each, in the order of the values that make them; nulls are last.
/// Columns are called what was asked for. They are computed when they are read: by the source itself, where it can, as objects of Ceph are; and
/// else of the columns that are needed.
///
/// * `count(*)` counts rows, `count(x)` values that are not null; all others leave nulls out, and are null if there is no value.
/// * `sum` of integers and decimals is exact: an INT64, and DECIMAL(38). That of floating-point numbers depends on the order of additions, in its
///   last digits. `avg` is a DOUBLE.
/// * `min` and `max` are by the order of the column's type. NaN is after all numbers, whatever its sign, and −0 before 0. In groups, all NaNs are equal, −0 equals
///   0, and a decimal equals the same one of more bytes.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use marquetry_tables::files::{Files, FilesOptions};
/// use marquetry_tables::{Aggregates, ColumnPath, Source, aggregate};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let trips: Arc<dyn Source> = Arc::new(Files::open(["trips/"], &FilesOptions::default())?);
/// let asked = Aggregates::parse("count(*), avg(fare)")?.by(ColumnPath::parse_list("city")?);
/// let by_city = aggregate(&trips, &asked)?;
/// assert_eq!(by_city.table().schema.leaves().len(), 3);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `Misuse` for columns that the table lacks, that are nested, or have no such aggregate. Reading it: `LimitExceeded` for a sum that is too
/// large, millions of groups, or groups that take more than 1 GiB of memory.
pub fn aggregate(source: &Arc<dyn Source>, asked: &Aggregates) -> Result<Arc<dyn Source>> {
    let all = source.table();
    let planned = plan(source, asked).map_err(|error| named(error, &all.name));
    let (rows, is_merge, of) = planned?;
    let mut table = Table::new(all.name.clone(), Arc::clone(&of.result));
    table.notes.clone_from(&all.notes);
    if !is_merge && !of.counts_rows_alone() {
        table.notes.extend(rows.why_no_partials());
    }
    table.bytes = all.bytes;
    let piece = Piece { bytes: all.bytes, first_row: None, splits: true, ..Piece::of("") };
    let known = all.rows.filter(|_| of.counts_rows_alone());
    Ok(Arc::new(Aggregated { rows, is_merge, of, table, piece: [piece], known }))
}

/// The rows that are read, or partial results, and how they are put together.
fn plan(source: &Arc<dyn Source>, asked: &Aggregates) -> Result<(Arc<dyn Source>, bool, Arc<Partials>)> {
    let schema = &source.table().schema;
    let mut leaves: Vec<usize> = Vec::new();
    let mut place = |column: &ColumnPath, option: &'static str| -> Result<usize> {
        let leaf = flat_leaf(column, schema).map_err(|error| error.with(Detail::Option(option)))?;
        Ok(leaves.iter().position(|known| *known == leaf).unwrap_or_else(|| {
            leaves.push(leaf);
            leaves.len() - 1
        }))
    };
    let groups = asked.groups.iter().map(|column| place(column, asked::GROUPS_OPTION));
    let groups = groups.collect::<Result<Vec<_>>>()?;
    let wanted = asked.wanted.iter().map(|wanted| {
        let column = wanted.column.as_ref();
        column.map(|column| place(column, asked::OPTION)).transpose()
    });
    let wanted = wanted.collect::<Result<Vec<_>>>()?;
    let rows = some_columns(source, schema, &leaves)?;
    let of = Arc::new(Partials::plan(asked, &rows.table().schema, (groups, &wanted))?);
    if !leaves.is_empty()
        && let Some(partials) = rows.partials(&of)?
    {
        return Ok((partials, true, of));
    }
    Ok((rows, false, of))
}

/// The leaf of a column that is no field of a struct, either: those of a struct stay together when columns are chosen, in the struct's order.
fn flat_leaf(column: &ColumnPath, schema: &Arc<Schema>) -> Result<usize> {
    let leaf = column.flat_leaf(schema)?;
    match schema.leaves().get(leaf) {
        Some(found) if schema.node_of(found).parent == 0 => Ok(leaf),
        _ => Err(Error::misuse(format!("the column {} is nested", column.dotted()))),
    }
}

/// The table with the columns that are needed: of none, those by which rows are counted.
fn some_columns(source: &Arc<dyn Source>, schema: &Schema, leaves: &[usize]) -> Result<Arc<dyn Source>> {
    if leaves.is_empty() {
        if let Some(without) = source.without_columns()? {
            return Ok(without);
        }
        let first =
            schema.children(0).next().map(|node| ColumnPath::of([schema.nodes()[node].name.as_str()]));
        return first.map_or_else(|| Ok(Arc::clone(source)), |first| project(source, &[first]));
    }
    let columns: Vec<ColumnPath> = leaves.iter().map(|leaf| ColumnPath::of_leaf(schema, *leaf)).collect();
    project(source, &columns)
}

/// A table of aggregates.
struct Aggregated {
    rows: Arc<dyn Source>,
    is_merge: bool,
    of: Arc<Partials>,
    table: Table,
    piece: [Piece; 1],
    /// The rows, if all that is wanted is how many there are, and it is known.
    known: Option<u64>,
}

impl Source for Aggregated {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        &self.piece
    }

    fn open(&self, _piece: usize, options: &PieceOptions) -> Result<Box<dyn Batches>> {
        let fold = if self.is_merge { Fold::of_partials(&self.of) } else { Fold::of_rows(&self.of) };
        let rows = (self.known.is_none()).then(|| Arc::clone(&self.rows));
        let known = self.known.unwrap_or(0);
        Ok(Box::new(Computed { rows, fold: Some(fold), known, options: options.clone() }))
    }
}

/// Aggregates that are computed when they are asked for.
struct Computed {
    rows: Option<Arc<dyn Source>>,
    fold: Option<Fold>,
    known: u64,
    options: PieceOptions,
}

impl Batches for Computed {
    fn next(&mut self) -> Result<Option<Batch>> {
        let Some(mut fold) = self.fold.take() else { return Ok(None) };
        fold.count(self.known)?;
        if let Some(rows) = self.rows.take() {
            let mut options = ReadingOptions::default();
            options.piece.bytes_read = self.options.bytes_read.clone();
            options.piece.lost = self.options.lost.clone();
            (options.threads, options.cancel) = (Some(self.options.threads), self.options.cancel.clone());
            let mut reading = Reading::new(rows, options)?;
            while let Some((_, batch)) = reading.next_batch()? {
                fold.add(batch)?;
            }
        }
        let result = fold.result()?;
        let limit = self.options.limit.and_then(usize_of).unwrap_or(usize::MAX);
        Ok(Some(result.slice(0..result.rows.min(limit))).filter(|batch| batch.rows > 0))
    }
}
