//! Rows of the table as those that it holds.

use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Error, Result};
use marquetry_parquet::batch::{Batch, ColumnBatch, Layout, Value, Values};
use marquetry_parquet::print::{self, Shown};
use marquetry_parquet::record::{ShredOptions, Shredder};
use marquetry_parquet::schema::{Meaning, PhysicalType, Plan as _, Repetition, Schema};
use marquetry_scylla::packed::{Packing, Sinks};
use marquetry_tables::{Batches, ColumnPath};

use super::carrier::{Carrier, flat_leaf};
use super::description::Description;
use super::laying::packing;

/// How rows of the table become those that it holds, or some columns of them.
#[derive(Debug)]
pub(super) struct Unlaying {
    columns: Vec<Column>,
    /// Columns of the result.
    leaves: usize,
    /// The columns of the key, to say which row is damaged: names, leaves of the table, what they mean.
    key: Vec<(String, usize, Meaning)>,
}

/// A column of the table, and what is made of it.
#[derive(Debug)]
enum Column {
    Leaf {
        /// The leaf of the table.
        from: usize,
        carrier: Carrier,
        to: PhysicalType,
        /// The leaf of the result.
        at: usize,
        name: String,
        is_required: bool,
    },
    Cell {
        from: usize,
        packing: Arc<Packing>,
        sinks: Sinks,
        schema: Arc<Schema>,
        /// The leaves of the described schema that are wanted, and those of the result that they are.
        wanted: Arc<[usize]>,
        at: Vec<usize>,
        name: String,
        /// A cell that is null is a record whose only field is null.
        may_be_null: bool,
    },
}

impl Unlaying {
    /// Plans the rows' columns with these numbers, which ascend, of a table of this schema.
    ///
    /// # Errors
    ///
    /// `Corrupt` for a table that lacks a column, or has it in another type than its description says.
    pub(super) fn new(described: &Description, numbers: &[usize], table: &Schema) -> Result<Unlaying> {
        let all = &described.schema;
        let nodes: Vec<usize> = all.children(0).collect();
        // Where each wanted leaf is in the result.
        let mut places = vec![None; all.leaves().len()];
        let mut leaves = 0;
        for node in numbers.iter().filter_map(|number| nodes.get(*number)) {
            for leaf in all.leaves_of(*node) {
                places[leaf] = Some(leaves);
                leaves += 1;
            }
        }
        let (mut columns, mut key) = (Vec::new(), Vec::new());
        let mut is_held = vec![false; nodes.len()];
        for held in &described.columns {
            let Some(node) = nodes.get(held.number).copied() else { continue };
            is_held[held.number] = true;
            let carrier = Carrier::of(all, node);
            let leaf = flat_leaf(all, node).filter(|_| carrier != Carrier::Packed);
            if !numbers.contains(&held.number) && !held.is_key {
                continue;
            }
            let to = leaf.map_or(PhysicalType::ByteArray, |leaf| leaf.physical_type);
            let from = column_of(table, &held.name, carrier.read_as(to))?;
            let name = all.path(node);
            if held.is_key {
                let meaning =
                    table.leaves().get(from).map(|leaf| table.meaning_of(leaf).read_as(leaf.physical_type));
                key.push((name.clone(), from, meaning.unwrap_or(Meaning::Bytes)));
            }
            if !numbers.contains(&held.number) {
                continue;
            }
            let is_required = all.nodes()[node].repetition == Repetition::Required;
            columns.push(match (leaf, places.get(all.leaves_of(node).start).copied().flatten()) {
                (Some(_), Some(at)) => Column::Leaf { from, carrier, to, at, name, is_required },
                _ => cell(all, all.leaves_of(node).collect(), &places, (from, name))?,
            });
        }
        if let Some(cell_name) = &described.cell {
            let rest = nodes.iter().enumerate().filter(|(number, _)| !is_held[*number]);
            let leaves: Vec<usize> = rest.flat_map(|(_, node)| all.leaves_of(*node)).collect();
            if leaves.iter().any(|leaf| places[*leaf].is_some()) {
                let from = column_of(table, cell_name, PhysicalType::ByteArray)?;
                let mut column = cell(all, leaves, &places, (from, cell_name.clone()))?;
                if let Column::Cell { may_be_null, .. } = &mut column {
                    *may_be_null = false;
                }
                columns.push(column);
            }
        }
        Ok(Unlaying { columns, leaves, key })
    }

    /// The key of a row, for messages.
    fn key_of(&self, batch: &Batch, row: usize) -> String {
        let mut text = String::new();
        for (name, leaf, meaning) in &self.key {
            let value = batch.columns.get(*leaf).and_then(|column| Value::of_values(&column.values, row));
            let Some(value) = value else { continue };
            let mut out = Vec::new();
            let shown = match print::value(&mut out, *meaning, value) {
                Shown::Text(text) => format!("{text:?}"),
                Shown::NotText(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                _ => String::from_utf8_lossy(&out).into_owned(),
            };
            text.push_str(if text.is_empty() { "" } else { ", " });
            text.push_str(&format!("{name} = {shown}"));
        }
        text
    }
}

fn cell(
    all: &Arc<Schema>,
    leaves: Vec<usize>,
    places: &[Option<usize>],
    (from, name): (usize, String),
) -> Result<Column> {
    let packing = packing(all, leaves.iter().copied())?;
    let is_wanted = |leaf: &usize| places.get(*leaf).is_some_and(Option::is_some);
    let wanted: Arc<[usize]> = leaves.iter().copied().filter(is_wanted).collect();
    let at = wanted.iter().filter_map(|leaf| *places.get(*leaf)?).collect();
    // A group of nothing is always a part of what is around it.
    let sinks = Sinks::of(&packing, |node| {
        let mut leaves = all.leaves_of(node);
        leaves.is_empty() || leaves.any(|leaf| is_wanted(&leaf))
    });
    let (schema, may_be_null) = (Arc::clone(all), packing.is_one_nullable());
    Ok(Column::Cell { from, packing, sinks, schema, wanted, at, name, may_be_null })
}

/// The leaf of a column of the table.
fn column_of(table: &Schema, name: &str, wanted: PhysicalType) -> Result<usize> {
    let leaf = table.child_of_root(name).and_then(|node| flat_leaf(table, node).map(|leaf| (node, leaf)));
    match leaf {
        Some((node, leaf)) if leaf.physical_type == wanted => Ok(table.leaves_of(node).start),
        Some((_, leaf)) => Err(Error::corrupt(format!(
            "the table's comment says that the column {name:?} is read as {wanted}, and it is read as {}",
            leaf.physical_type
        ))),
        None => Err(Error::corrupt(format!("the table lacks the column {name:?}, which its comment names"))),
    }
}

/// The names of the columns of the table that the rows' columns with these numbers are made of, and those of its key.
pub(super) fn columns_of(described: &Description, numbers: &[usize]) -> Vec<ColumnPath> {
    let held = described.columns.iter().filter(|held| held.is_key || numbers.contains(&held.number));
    let mut names: Vec<&str> = held.map(|held| &*held.name).collect();
    let is_in_cell = |number: &usize| !described.columns.iter().any(|held| held.number == *number);
    if let Some(cell) = described.cell.as_deref().filter(|_| numbers.iter().any(is_in_cell)) {
        names.push(cell);
    }
    names.into_iter().map(|name| ColumnPath::of([name])).collect()
}

/// The rows of a piece.
pub(super) struct Unlaid {
    batches: Box<dyn Batches>,
    plan: Arc<Unlaying>,
    /// For each column of the plan, if it has cells.
    shredders: Vec<Option<Shredder>>,
    name: String,
    /// Rows before the batch at hand.
    rows: u64,
}

impl Unlaid {
    pub(super) fn new(batches: Box<dyn Batches>, plan: Arc<Unlaying>, name: String) -> Result<Unlaid> {
        // A batch is as large as the one that it is made of.
        let options =
            ShredOptions { batch_rows: usize::MAX, batch_bytes: usize::MAX, layout: Layout::Spaced };
        let shredder = |column: &Column| match column {
            Column::Leaf { .. } => Ok(None),
            Column::Cell { schema, wanted, .. } => {
                Shredder::plan(Arc::clone(schema), Some(Arc::clone(wanted)), options).at_once().map(Some)
            }
        };
        let shredders = plan.columns.iter().map(shredder).collect::<Result<_>>()?;
        Ok(Unlaid { batches, plan, shredders, name, rows: 0 })
    }

    fn unlay(&mut self, batch: &Batch) -> Result<Batch> {
        let plan = Arc::clone(&self.plan);
        let mut columns: Vec<Option<ColumnBatch>> = vec![None; plan.leaves];
        for (column, shredder) in plan.columns.iter().zip(&mut self.shredders) {
            let from = |from: usize| {
                batch
                    .columns
                    .get(from)
                    .ok_or_else(|| Error::internal("a batch without a column of its schema"))
            };
            let failed = |row: usize, name: &str, error: Error| {
                let key = plan.key_of(batch, row);
                let message = match key.is_empty() {
                    true => error.message().to_owned(),
                    false => format!("{}, in the row with {key}", error.message()),
                };
                let row = self.rows + u64_of(row);
                error.reworded(message).at(|place| {
                    place.row = Some(row);
                    place.column.get_or_insert_with(|| name.to_owned());
                })
            };
            match (column, shredder) {
                (Column::Leaf { from: leaf, carrier, to, at, name, is_required }, _) => {
                    let found = from(*leaf)?;
                    if *is_required && found.nulls > 0 {
                        let row = (0..found.rows).find(|row| found.is_null(*row)).unwrap_or(0);
                        return Err(failed(
                            row,
                            name,
                            Error::corrupt("no value, in a column that is never null"),
                        ));
                    }
                    let values = carrier.values(found, *to).map_err(|row| {
                        failed(
                            row,
                            name,
                            Error::corrupt(format!(
                                "a value that is none of {to} as the table's comment has it"
                            )),
                        )
                    })?;
                    let validity = found.validity.clone().filter(|_| found.nulls > 0);
                    place(&mut columns, *at, ColumnBatch { leaf: *at, values, validity, ..found.clone() })?;
                }
                (Column::Cell { from: leaf, packing, sinks, at, name, may_be_null, .. }, Some(shredder)) => {
                    let found = from(*leaf)?;
                    let Values::ByteArray(cells) = &found.values else {
                        return Err(Error::internal("cells that are no bytes"));
                    };
                    for row in 0..found.rows {
                        let read = match found.is_null(row) {
                            true if *may_be_null => null(shredder),
                            true => Err(Error::corrupt("a row without a record")),
                            false => packing.read(cells.get(row), sinks, shredder),
                        };
                        // The shredder counts rows as well, and does not know where it is.
                        read.map_err(|error| failed(row, name, error.replaced(|place| place.row = None)))?;
                    }
                    let made = shredder.take(&mut Budget::unlimited())?;
                    let made = made.ok_or_else(|| Error::internal("a batch without an end"))?;
                    for (mut column, at) in made.columns.into_iter().zip(at) {
                        column.leaf = *at;
                        place(&mut columns, *at, column)?;
                    }
                }
                (Column::Cell { .. }, None) => return Err(Error::internal("cells that nobody reads")),
            }
        }
        self.rows += u64_of(batch.rows);
        let columns: Option<Vec<ColumnBatch>> = columns.into_iter().collect();
        let columns = columns.ok_or_else(|| Error::internal("a column that nothing is made of"))?;
        Ok(Batch { row_group: batch.row_group, first_row: batch.first_row, rows: batch.rows, columns })
    }
}

/// A record whose only field is null.
fn null(shredder: &mut Shredder) -> Result<()> {
    use marquetry_parquet::record::RecordSink as _;
    shredder.start_record()?;
    shredder.end_record()
}

fn place(columns: &mut [Option<ColumnBatch>], at: usize, column: ColumnBatch) -> Result<()> {
    let place = columns.get_mut(at).ok_or_else(|| Error::internal("a column without a place"))?;
    *place = Some(column);
    Ok(())
}

impl Batches for Unlaid {
    fn next(&mut self) -> Result<Option<Batch>> {
        let Some(batch) = self.batches.next()? else { return Ok(None) };
        let unlaid = self.unlay(&batch);
        unlaid.map(Some).map_err(|error| {
            let name = self.name.clone();
            error.at(|place| {
                place.object.get_or_insert(name);
            })
        })
    }
}
