//! Rows as those of the table: before they are mapped to its columns, and loaded.

use std::collections::BTreeMap;
use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Bitmap, Budget, Error, Faults, Result};
use marquetry_parquet::batch::{Batch, ColumnBatch, Layout, Values};
use marquetry_parquet::record::Program;
use marquetry_parquet::schema::{
    FieldDef, FieldType, NodeKind, PhysicalType, Plan as _, Repetition, Schema, Shape, ShapeKind,
};
use marquetry_scylla::packed::{CellWriter, Packing};

use super::carrier::{Carrier, flat_leaf};
use super::description::{Description, Held};
use crate::rows::Unfit;

/// Bytes of a column's cells that are made at a time, unless one has more. What batches are bounded by is not what cells are: a text that is in a
/// dictionary once is in each of its rows' records.
const CELLS_BYTES: usize = 8 << 20;

/// Makes rows of the table of the rows that a source has.
#[derive(Debug)]
pub(crate) struct Laying {
    schema: Arc<Schema>,
    columns: Vec<Laid>,
    /// What the rows call the columns of the table that hold a leaf.
    names: Vec<(String, String)>,
    /// Leaves of the rows, and their names, that may be null where rows come from, and never are in the table.
    never_null: Vec<(usize, String)>,
}

/// A column of the table, by leaves of the rows.
#[derive(Debug)]
enum Laid {
    /// A leaf as it is.
    Leaf(usize),
    /// Columns as a packed cell.
    Cell {
        packing: Arc<Packing>,
        /// For each leaf of the packing's program its number there, and the rows' leaf.
        leaves: Vec<(usize, usize)>,
        /// A record of one column that is null is null.
        is_null_kept: bool,
    },
}

impl Laying {
    /// Plans the rows of a described table of rows of this schema, by the names of columns; of these only, if some are named.
    ///
    /// # Errors
    ///
    /// `Conversion`: all columns that the description lacks, or has otherwise, or that are missing.
    pub(crate) fn new(described: &Description, schema: &Schema, names: Option<&[String]>) -> Result<Laying> {
        let named = |name: &String| {
            schema.child_of_root(name).or_else(|| schema.child_of_root(&name.to_ascii_lowercase()))
        };
        let wanted = match names {
            Some(names) => names.iter().filter_map(named).collect(),
            None => schema.children(0).collect(),
        };
        let (never_null, faults) = (Vec::new(), Faults::default());
        let mut planning = Planning { described, schema, wanted, never_null, faults };
        let (mut fields, mut columns, mut names) = (Vec::new(), Vec::new(), Vec::new());
        let nodes: Vec<usize> = described.schema.children(0).collect();
        planning.expect_known();
        for Held { name, number, is_key } in &described.columns {
            let Some(node) = nodes.get(*number).copied() else { continue };
            let Some(found) = planning.find(node, *is_key || described.cell.is_some()) else { continue };
            let carrier = Carrier::of(&described.schema, node);
            if *is_key && carrier == Carrier::Packed {
                let what = "a column of the key has a single value, of a type that CQL has in keys";
                planning.fault(node, what.to_owned());
                continue;
            }
            let (field, column) = match (carrier, flat_leaf(&described.schema, node)) {
                (Carrier::Packed, _) | (_, None) => planning.cell(name, &[(node, found)])?,
                (_, Some(leaf)) => {
                    let (physical, logical) = carrier.loaded(&described.schema, leaf);
                    let field = FieldDef::new(name, FieldType::Leaf(physical, logical));
                    let leaf = schema.leaves_of(found).start;
                    let is_required = schema.nodes()[found].repetition == Repetition::Required;
                    let field = if is_required { field.required() } else { field };
                    planning.note_never_null(node, found);
                    (field, Laid::Leaf(leaf))
                }
            };
            fields.push(field);
            columns.push(column);
            names.push((name.clone(), described.schema.path(node)));
        }
        if let Some(cell) = &described.cell {
            let is_held = |number: &usize| described.columns.iter().any(|held| held.number == *number);
            let rest: Vec<usize> =
                (0..nodes.len()).filter(|number| !is_held(number)).map(|it| nodes[it]).collect();
            let found: Vec<(usize, usize)> =
                rest.iter().filter_map(|node| Some((*node, planning.find(*node, true)?))).collect();
            if found.len() == rest.len() {
                let (field, column) = planning.cell(cell, &found)?;
                fields.push(field);
                columns.push(column);
            }
        }
        let Planning { never_null, faults, .. } = planning;
        faults.into_result()?;
        Ok(Laying { schema: Arc::new(Schema::of_fields(&fields)?), columns, names, never_null })
    }

    /// The schema of the rows of the table.
    pub(crate) fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// An error about a column of the table, as one about the rows' column that it holds.
    pub(crate) fn in_words_of_rows(&self, error: Error) -> Error {
        error.replaced(|place| {
            let held = self.names.iter().find(|(held, _)| place.column.as_ref() == Some(held));
            if let Some((_, name)) = held {
                place.column = Some(name.clone());
            }
        })
    }

    /// The rows that cannot be rows of the table, in order: `Conversion`, with row and column, for a null in a column that is never null there.
    ///
    /// # Errors
    ///
    /// None but for a batch of other columns.
    pub(crate) fn unfit(&self, batch: &Batch) -> Result<Vec<Unfit>> {
        let mut unfit = BTreeMap::new();
        for (leaf, name) in &self.never_null {
            let column = of_batch(batch, *leaf)?;
            let rows = if column.nulls > 0 { column.rows } else { 0 };
            for row in (0..rows).filter(|row| column.is_null(*row)) {
                unfit.entry(row).or_insert(name);
            }
        }
        let unfit = unfit.into_iter().map(|(in_batch, name)| {
            let error = Error::conversion("null, in a column of the table that is never null");
            let error = error.at(|place| {
                place.column = Some(name.clone());
                place.row = Some(batch.first_row.saturating_add(u64_of(in_batch)));
            });
            Unfit { in_batch, error }
        });
        Ok(unfit.collect())
    }

    /// The first of these rows as rows of the table: as many as take some MiB of cells, and at least one. None is [unfit](Laying::unfit).
    ///
    /// # Errors
    ///
    /// `Corrupt` for levels that contradict each other; `Internal` for nulls that the table has not.
    pub(crate) fn lay(&self, batch: &Batch) -> Result<Batch> {
        self.lay_within(batch, CELLS_BYTES)
    }

    /// The same; a column's cells are enough if they have so many bytes.
    pub(super) fn lay_within(&self, batch: &Batch, bytes_max: usize) -> Result<Batch> {
        for (leaf, name) in &self.never_null {
            if of_batch(batch, *leaf)?.nulls > 0 {
                let error = Error::internal("a null that was not looked for");
                return Err(error.at(|place| place.column = Some(name.clone())));
            }
        }
        let mut columns = Vec::with_capacity(self.columns.len());
        let mut rows = batch.rows;
        for (number, column) in self.columns.iter().enumerate() {
            let mut laid = match column {
                Laid::Leaf(leaf) => {
                    let mut laid = of_batch(batch, *leaf)?.clone();
                    // Twelve bytes, which mean nothing to the table.
                    if let Values::Int96(values) = laid.values {
                        laid.values = Values::FixedLenByteArray(values);
                    }
                    laid
                }
                Laid::Cell { packing, leaves, is_null_kept } => {
                    cells((batch, rows), packing, leaves, *is_null_kept, bytes_max)?
                }
            };
            laid.leaf = number;
            rows = rows.min(laid.rows);
            columns.push(laid);
        }
        for column in columns.iter_mut().filter(|column| column.rows > rows) {
            *column = column.slice(0..rows);
        }
        Ok(Batch { row_group: batch.row_group, first_row: batch.first_row, rows, columns })
    }
}

/// Finds the rows' columns, and takes note of all that is wrong.
struct Planning<'a> {
    described: &'a Description,
    schema: &'a Schema,
    /// The rows' columns that are wanted.
    wanted: Vec<usize>,
    never_null: Vec<(usize, String)>,
    faults: Faults,
}

impl Planning<'_> {
    fn fault(&mut self, node: usize, what: String) {
        let name = self.described.schema.path(node);
        self.faults.add(Error::conversion(what).at(|place| place.column = Some(name)));
    }

    /// Takes note of columns that the table lacks.
    fn expect_known(&mut self) {
        let known = &self.described.schema;
        for node in self.wanted.iter().copied() {
            let name = &self.schema.nodes()[node].name;
            if known.child_of_root(name).is_none() {
                let error = Error::conversion("the table has no such column");
                self.faults.add(error.at(|place| place.column = Some(name.clone())));
            }
        }
    }

    /// The rows' column for a column of the description, if it has the same type. One that is missing is a fault if it is needed.
    fn find(&mut self, node: usize, is_needed: bool) -> Option<usize> {
        let described = self.described;
        let wanted = described.schema.nodes().get(node)?;
        let found = self.schema.child_of_root(&wanted.name).filter(|found| self.wanted.contains(found));
        let Some(found) = found else {
            if is_needed || wanted.repetition == Repetition::Required {
                self.fault(node, "the rows lack this column of the table".to_owned());
            }
            return None;
        };
        if !is_alike(described.schema.shape(node), self.schema.shape(found), true) {
            let [wanted, found] =
                [(&*described.schema, node), (self.schema, found)].map(|(schema, node)| word(schema, node));
            self.fault(node, format!("the table has it as {wanted}, and the rows as {found}"));
            return None;
        }
        Some(found)
    }

    /// Takes note of a column that is never null in the table, where the rows' may be. Of nested ones, those that may be null are others.
    fn note_never_null(&mut self, node: usize, found: usize) {
        let is_required =
            |schema: &Schema, node: usize| schema.nodes()[node].repetition == Repetition::Required;
        let may_be_null = flat_leaf(self.schema, found).is_some() && !is_required(self.schema, found);
        if may_be_null && is_required(&self.described.schema, node) {
            self.never_null.push((self.schema.leaves_of(found).start, self.described.schema.path(node)));
        }
    }

    /// A column of packed cells of these columns.
    fn cell(&mut self, name: &str, columns: &[(usize, usize)]) -> Result<(FieldDef, Laid)> {
        let mut leaves = Vec::new();
        for (node, found) in columns {
            self.note_never_null(*node, *found);
            leaves.extend(self.described.schema.leaves_of(*node).zip(self.schema.leaves_of(*found)));
        }
        let packing = packing(&self.described.schema, leaves.iter().map(|(own, _)| *own))?;
        let is_null_kept = packing.is_one_nullable() && self.described.cell.is_none();
        let field = FieldDef::new(name, FieldType::Leaf(PhysicalType::ByteArray, None));
        let field = if is_null_kept { field } else { field.required() };
        Ok((field, Laid::Cell { packing, leaves, is_null_kept }))
    }
}

/// How records of some leaves of a schema are cells.
pub(super) fn packing(schema: &Arc<Schema>, leaves: impl Iterator<Item = usize>) -> Result<Arc<Packing>> {
    let program = Program::plan(Arc::clone(schema), Some(leaves.collect())).at_once()?;
    Packing::new(Arc::new(program)).map(Arc::new)
}

/// A column of a batch.
fn of_batch(batch: &Batch, leaf: usize) -> Result<&ColumnBatch> {
    batch.columns.get(leaf).ok_or_else(|| Error::internal("a batch without a column"))
}

/// A cell for each of the first rows: of so many, or as many as have so many bytes.
fn cells(
    (batch, rows): (&Batch, usize),
    packing: &Arc<Packing>,
    leaves: &[(usize, usize)],
    is_null_kept: bool,
    bytes_max: usize,
) -> Result<ColumnBatch> {
    let mut columns = Vec::with_capacity(leaves.len());
    for (own, leaf) in leaves {
        let mut column = of_batch(batch, *leaf)?.clone();
        column.leaf = *own;
        columns.push(column);
    }
    let records = Batch { columns, ..*batch }.slice(0..rows);
    let mut writer = CellWriter::new(Arc::clone(packing));
    let mut records = packing.program().records(&records)?;
    while !records.step(&mut writer, &mut Budget::default())? {
        if writer.bytes() >= bytes_max && !writer.are_null().is_empty() {
            break;
        }
    }
    let are_null = writer.are_null().to_vec();
    let nulls = if is_null_kept { are_null.iter().filter(|is_null| **is_null).count() } else { 0 };
    let validity: Option<Bitmap> = (nulls > 0).then(|| are_null.iter().map(|is_null| !is_null).collect());
    let values = Values::ByteArray(writer.take()?);
    let (leaf, layout) = (0, Layout::Spaced);
    Ok(ColumnBatch {
        leaf,
        rows: are_null.len(),
        nulls,
        validity,
        values,
        layout,
        levels: None,
        provisional: false,
    })
}

/// Whether a column is as another one, but for what does not matter to its values: the spelling of lists and maps, numbers of fields, and of flat
/// ones whether they may be null.
fn is_alike(one: Shape<'_>, other: Shape<'_>, is_top: bool) -> bool {
    let (Ok(x), Ok(y)) = (one.kind(), other.kind()) else { return false };
    let node =
        |shape: Shape<'_>| shape.schema().nodes().get(shape.node).map(|node| node.logical_type.clone());
    let same = match (x, y) {
        (ShapeKind::Leaf, ShapeKind::Leaf) => {
            let physical = |shape: Shape<'_>| match shape.schema().nodes().get(shape.node)?.kind {
                NodeKind::Leaf { leaf } => shape.schema().leaves().get(leaf).map(|leaf| leaf.physical_type),
                NodeKind::Group { .. } => None,
            };
            let is_flat = is_top && one.definition <= 1;
            return physical(one) == physical(other)
                && node(one) == node(other)
                && (is_flat || one.is_nullable == other.is_nullable);
        }
        (ShapeKind::Struct(x), ShapeKind::Struct(y)) => {
            let (x, y): (Vec<Shape<'_>>, Vec<Shape<'_>>) = (x.collect(), y.collect());
            let name =
                |shape: Shape<'_>| shape.schema().nodes().get(shape.node).map(|node| node.name.clone());
            node(one) == node(other)
                && x.len() == y.len()
                && x.iter().zip(&y).all(|(x, y)| name(*x) == name(*y) && is_alike(*x, *y, false))
        }
        (ShapeKind::List(_, x), ShapeKind::List(_, y)) => is_alike(x, y, false),
        (ShapeKind::Map(_, key, value), ShapeKind::Map(_, other_key, other_value)) => {
            is_alike(key, other_key, false)
                && match (value, other_value) {
                    (Some(x), Some(y)) => is_alike(x, y, false),
                    (None, None) => true,
                    _ => false,
                }
        }
        _ => false,
    };
    same && one.is_nullable == other.is_nullable
}

/// A type, for people.
pub(super) fn word(schema: &Schema, node: usize) -> String {
    let Some(it) = schema.nodes().get(node) else { return String::new() };
    let logical = it.logical_type.as_ref().map(|it| format!(" ({it})")).unwrap_or_default();
    match it.kind {
        NodeKind::Leaf { leaf } => format!("{}{logical}", schema.leaves()[leaf].physical_type),
        NodeKind::Group { .. } => {
            let fields: Vec<String> = schema
                .children(node)
                .map(|child| format!("{} {}", schema.nodes()[child].name, word(schema, child)))
                .collect();
            format!("{} group{logical} of {}", it.repetition, fields.join(", "))
        }
    }
}
