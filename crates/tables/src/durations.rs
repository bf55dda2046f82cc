//! CQL's durations as text, for what has no nested columns.

use std::sync::Arc;

use marquetry_base::{Error, Result};
use marquetry_parquet::batch::{Batch, ByteArrays, ColumnBatch, Layout, Value, Values};
use marquetry_parquet::schema::{Column, LogicalType, PhysicalType, Plan as _, Projection, Schema, Union};
use marquetry_scylla::cql::{CqlType, literal};
use marquetry_scylla::sstable::marshal::MarshalType;

use crate::described::columns_of;
use crate::entries::Entries;
use crate::{Batches, ColumnPath, Piece, PieceOptions, Source, Table, project};

/// The same table, with durations as text, as CQL reads them: `1mo2d5ns`. They are groups of months, days and nanoseconds otherwise, which CSV and
/// TSV cannot have. A table that does not [say](crate::Described) that it has durations is returned as it is.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use marquetry_tables::files::{Files, FilesOptions};
/// use marquetry_tables::{Source, durations_as_text};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let unloaded: Arc<dyn Source> = Arc::new(Files::open(["trips.parquet"], &FilesOptions::default())?);
/// let flat = durations_as_text(&unloaded)?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Those of [`project`](crate::project()). When rows are read: `Conversion` for a duration whose parts differ in sign, which CQL does not have.
pub fn durations_as_text(source: &Arc<dyn Source>) -> Result<Arc<dyn Source>> {
    let all = source.table();
    let durations = durations_of(all);
    if durations.is_empty() {
        return Ok(Arc::clone(source));
    }
    let schema = &all.schema;
    let mut others = Projection::new(Arc::clone(schema));
    let mut kept = Vec::new();
    for node in schema.children(0).filter(|node| !durations.contains(node)) {
        others.add_column(node).map_err(|_| Error::internal("a column that is there cannot be chosen"))?;
        kept.extend(schema.leaves_of(node));
    }
    let mut union = Union::new();
    union.add(Arc::new(others.plan().at_once()?));
    let text = |node: &usize| Column {
        name: schema.nodes()[*node].name.clone(),
        physical_type: PhysicalType::ByteArray,
        logical_type: Some(LogicalType::String),
    };
    let made = union.with(durations.iter().map(text)).plan().at_once()?.schema;
    let mut table = Table::new(all.name.clone(), made);
    (table.rows, table.row_groups, table.bytes) = (all.rows, all.row_groups, all.bytes);
    table.notes.clone_from(&all.notes);
    let first_leaves = durations.iter().map(|node| schema.leaves_of(*node).start).collect();
    let flat: Arc<dyn Source> =
        Arc::new(Flat { source: Arc::clone(source), table, kept: kept.into(), durations: first_leaves });
    // In the order that they had.
    let names: Vec<ColumnPath> =
        schema.children(0).map(|node| ColumnPath::of([schema.nodes()[node].name.as_str()])).collect();
    project(&flat, &names)
}

/// The groups that are durations.
fn durations_of(table: &Table) -> Vec<usize> {
    let Some(columns) = columns_of(table) else { return Vec::new() };
    let named: Vec<&[u8]> = columns
        .cells()
        .filter(|cell| cell.kind == MarshalType::Native(CqlType::Duration))
        .map(|cell| &*cell.name)
        .collect();
    let is_one = |node: &usize| is_duration(&table.schema, *node, &named);
    table.schema.children(0).filter(is_one).collect()
}

fn is_duration(schema: &Schema, node: usize, named: &[&[u8]]) -> bool {
    let types = [PhysicalType::Int32, PhysicalType::Int32, PhysicalType::Int64];
    let parts = schema.children(node).map(|part| &*schema.nodes()[part].name);
    let leaves = schema.leaves_of(node).map(|leaf| schema.leaves()[leaf].physical_type);
    named.contains(&schema.nodes()[node].name.as_bytes())
        && parts.eq(["months", "days", "nanoseconds"])
        && leaves.eq(types)
}

struct Flat {
    source: Arc<dyn Source>,
    table: Table,
    /// Leaves that stay, and the first of each duration's.
    kept: Arc<[usize]>,
    durations: Arc<[usize]>,
}

impl Source for Flat {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        self.source.pieces()
    }

    fn open(&self, piece: usize, options: &PieceOptions) -> Result<Box<dyn Batches>> {
        let batches = self.source.open(piece, options)?;
        Ok(Box::new(FlatRows {
            batches,
            kept: Arc::clone(&self.kept),
            durations: Arc::clone(&self.durations),
        }))
    }
}

struct FlatRows {
    batches: Box<dyn Batches>,
    kept: Arc<[usize]>,
    durations: Arc<[usize]>,
}

impl Batches for FlatRows {
    fn next(&mut self) -> Result<Option<Batch>> {
        let Some(batch) = self.batches.next()? else { return Ok(None) };
        let Batch { row_group, first_row, rows, columns: all } = batch;
        let column = |leaf: usize| all.get(leaf).ok_or_else(|| Error::internal("a batch without a leaf"));
        let mut columns = self.kept.iter().map(|leaf| column(*leaf).cloned()).collect::<Result<Vec<_>>>()?;
        for first in &*self.durations {
            columns.push(text_of([column(*first)?, column(first + 1)?, column(first + 2)?])?);
        }
        columns.iter_mut().enumerate().for_each(|(leaf, column)| column.leaf = leaf);
        Ok(Some(Batch { row_group, first_row, rows, columns }))
    }
}

/// Months, days and nanoseconds as text.
fn text_of(parts: [&ColumnBatch; 3]) -> Result<ColumnBatch> {
    let rows = parts[0].rows;
    let entries = parts.map(Entries::of);
    let (mut bytes, mut lengths, mut validity) =
        (Vec::new(), Vec::with_capacity(rows), Vec::with_capacity(rows));
    for row in 0..rows {
        let part = |at: usize| {
            entries[at].value_of(row).and_then(|value| Value::of_values(&parts[at].values, value))
        };
        let start = bytes.len();
        let is_there = match (part(0), part(1), part(2)) {
            (Some(Value::Int32(months)), Some(Value::Int32(days)), Some(Value::Int64(nanos))) => {
                let written = literal::duration(&mut bytes, months, days, nanos);
                written.map_err(|error| {
                    Error::conversion(error.to_string())
                        .at(|place| place.row = Some(marquetry_base::cast::u64_of(row)))
                })?;
                true
            }
            _ => false,
        };
        lengths.push(bytes.len() - start);
        validity.push(is_there);
    }
    let nulls = validity.iter().filter(|is_there| !**is_there).count();
    Ok(ColumnBatch {
        leaf: 0,
        rows,
        nulls,
        validity: (nulls > 0).then(|| validity.into_iter().collect()),
        values: Values::ByteArray(ByteArrays::from_lengths(bytes.into(), lengths)?),
        layout: Layout::Spaced,
        levels: None,
        provisional: false,
    })
}
