//! Some columns of any table.

use std::collections::BTreeSet;
use std::sync::Arc;

use marquetry_base::{Budget, Detail, Error, Faults, Result};
use marquetry_parquet::batch::{Batch, Layout, Values};
use marquetry_parquet::format::SortingColumn;
use marquetry_parquet::read::{Conform, Conformer};
use marquetry_parquet::schema::{Plan as _, Projection, Schema};
use marquetry_scylla::sstable::TableColumns;

use crate::described::columns_of;
use crate::key_values::holds_for_any_columns;
use crate::source::open_piece;
use crate::subject::named;
use crate::{Batches, Cancel, ColumnPath, Piece, PieceOptions, Source, Table};

/// The same table, of which only these columns are read, in this order: by the source itself, where it can leave columns out.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use marquetry_tables::files::{Files, FilesOptions};
/// use marquetry_tables::{ColumnPath, Source, project};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let trips: Arc<dyn Source> = Arc::new(Files::open(["trips.parquet"], &FilesOptions::default())?);
/// let places = project(&trips, &ColumnPath::parse_list("id, place.lat, place.lon")?)?;
/// assert_eq!(places.table().schema.leaves().len(), 3);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `Misuse` for columns that the table lacks, with a list of those that it has.
pub fn project(source: &Arc<dyn Source>, columns: &[ColumnPath]) -> Result<Arc<dyn Source>> {
    if let Some(projected) = source.project(columns)? {
        return Ok(projected);
    }
    let all = source.table();
    let mut projection = Projection::new(Arc::clone(&all.schema));
    let mut faults = Faults::default();
    for column in columns {
        if let Err(error) = projection.add(&column.parts, &mut Budget::unlimited()) {
            let fault = column.fault(&all.schema, error, faults.is_empty()).with(Detail::Option("columns"));
            faults.add(named(fault, &all.name));
        }
    }
    faults.into_result()?;
    let schema = Arc::new(projection.plan().at_once().map_err(|error| named(error, &all.name))?);
    let conform = Arc::new(Conform::plan(Arc::clone(&all.schema), Arc::clone(&schema), &[]).at_once()?);
    let mut table = Table::new(all.name.clone(), schema);
    (table.rows, table.row_groups) = (all.rows, all.row_groups);
    table.notes.clone_from(&all.notes);
    // It is still that table of that cluster.
    table.identity.clone_from(&all.identity);
    table.cluster.clone_from(&all.cluster);
    table.key_values = all.key_values.iter().filter(|it| holds_for_any_columns(it)).cloned().collect();
    let of_all = all.key_values.iter().filter(|it| !holds_for_any_columns(it));
    table.of_all_columns = of_all.chain(&all.of_all_columns).cloned().collect();
    table.is_in_token_order = all.is_in_token_order
        && columns_of(all).is_some_and(|columns| has_key(&columns, &all.schema, &conform));
    let is_duration =
        |leaf: &usize| conform.reads().get(*leaf).is_some_and(|read| all.durations.contains(read));
    table.durations = (0..table.schema.leaves().len()).filter(is_duration).collect();
    // The order goes on up to the first column that is left out.
    let place = |by: &SortingColumn| {
        let leaf = conform.reads().iter().position(|read| u32::try_from(*read) == Ok(by.column))?;
        Some(SortingColumn { column: u32::try_from(leaf).ok()?, ..*by })
    };
    table.order = all.order.iter().map_while(place).collect();
    Ok(Arc::new(Projected { source: Arc::clone(source), table, conform }))
}

/// Whether the key is among the leaves that are read, with all that is in its columns.
fn has_key(columns: &TableColumns, schema: &Schema, conform: &Conform) -> bool {
    let reads: BTreeSet<usize> = conform.reads().iter().copied().collect();
    columns.partition_key.iter().chain(&columns.clustering).all(|key| {
        let column = schema.child_of_root(&key.name);
        column.is_some_and(|node| schema.leaves_of(node).all(|leaf| reads.contains(&leaf)))
    })
}

/// A table whose columns are dropped as they come.
struct Projected {
    source: Arc<dyn Source>,
    table: Table,
    conform: Arc<Conform>,
}

impl Source for Projected {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        self.source.pieces()
    }

    fn open(&self, piece: usize, options: &PieceOptions) -> Result<Box<dyn Batches>> {
        let plan = (Arc::clone(&self.conform), Vec::new());
        let schema = &self.table.schema;
        let names = schema.children(0).filter_map(|node| schema.nodes().get(node)).map(|node| &*node.name);
        let lost = options.lost.of_columns(names.map(|name| (name, name)));
        let options = &PieceOptions { lost, ..options.clone() };
        Conformed::open(plan, options, |leaves, options| {
            let (batches, leaves) = (open_piece(self.source.as_ref(), piece, options)?, leaves.to_vec());
            Ok(Box::new(Picked { batches, leaves }))
        })
    }

    fn lines_of(&self, piece: usize, rows: &[u64], cancel: &Cancel) -> Option<Vec<u64>> {
        self.source.lines_of(piece, rows, cancel)
    }
}

/// Takes the leaves that are read out of those that come.
pub(crate) struct Picked {
    pub(crate) batches: Box<dyn Batches>,
    pub(crate) leaves: Vec<usize>,
}

impl Batches for Picked {
    fn next(&mut self) -> Result<Option<Batch>> {
        let Some(mut batch) = self.batches.next()? else { return Ok(None) };
        let mut columns: Vec<_> = batch.columns.drain(..).map(Some).collect();
        let pick = |leaf: &usize| columns.get_mut(*leaf).and_then(Option::take);
        batch.columns = self.leaves.iter().filter_map(pick).collect();
        Ok(Some(batch))
    }
}

/// Batches of the leaves that a [`Conform`] reads, as those of the other schema.
pub(crate) struct Conformed {
    batches: Box<dyn Batches>,
    conformer: Conformer,
}

impl Conformed {
    /// `open` opens batches, of at most so many rows where that is said.
    pub(crate) fn open(
        (conform, constants): (Arc<Conform>, Vec<Option<Values>>),
        options: &PieceOptions,
        open: impl FnOnce(&[usize], &PieceOptions) -> Result<Box<dyn Batches>>,
    ) -> Result<Box<dyn Batches>> {
        let reads: Vec<usize> = conform.reads().iter().copied().collect();
        if conform.is_identity() && constants.is_empty() {
            return open(&reads, options);
        }
        let keeps = options.keep_dictionaries;
        let conformer = Conformer::new(Arc::clone(&conform), constants, Layout::Spaced, keeps)?;
        let wanted = options.batch_rows.unwrap_or(BATCH_ROWS);
        let rows = conformer.batch_rows(wanted)?;
        let options = PieceOptions { batch_rows: Some(rows), ..options.clone() };
        let batches = open(&reads, &options)?;
        Ok(Box::new(Conformed { batches, conformer }))
    }
}

impl Batches for Conformed {
    fn next(&mut self) -> Result<Option<Batch>> {
        let Some(batch) = self.batches.next()? else { return Ok(None) };
        self.conformer.feed(batch)?;
        match self.conformer.step(&mut Budget::unlimited())? {
            Some(batch) => Ok(Some(batch)),
            None => Err(Error::internal("a budget without an end is spent")),
        }
    }
}

/// Rows of a batch, unless fewer are wanted.
const BATCH_ROWS: usize = 8192;
