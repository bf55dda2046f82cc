//! From the leaves of nested columns to arrays: a slice at a time, into memory that is reused.
//!
//! A field's offsets and validity come from its first leaf, 64 entries at a time; every other leaf is only compared with
//! the leaf before it.

mod plan;
mod slices;
mod values;
mod work;

use alloc::boxed::Box;
use alloc::vec::Vec;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Error, Failed, Limits, Price, Release, Result, release_all};

use super::{Array, ArrayKind};
use super::{Batch, ColumnBatch};
use crate::schema::{Paths, Schema, Shape};
use plan::{Field, Kind};
use work::{Fault, Leaf, Made, Memory, Scratch, Task, Work};

/// The price of looking at an entry once.
const ENTRY_PRICE: Price = Price::per_kilovalue(300);
/// What a field costs besides its entries.
const FIELD_UNITS: u64 = 200;

/// Assembles the arrays of one field of the root, batch after batch.
///
/// [`step`](Assembler::step) does part of the work, [`assemble`](Assembler::assemble) all of it in one call. It takes
/// about a nanosecond for each entry of each leaf, and less for each entry of each list, map or nullable struct. A
/// field's levels are taken from its first leaf; the other leaves are compared with it, once each. Values without nulls
/// are shared with the batch; others are copied, with a slot for each null. The memory of arrays that are no longer
/// shared is reused.
#[derive(Debug)]
pub struct Assembler {
    fields: Vec<Field>,
    memory: Vec<Memory>,
    limits: Limits,
    paths: Paths,
    made: Vec<Made>,
    task: Task,
    scratch: Scratch,
    failed: Failed,
}

impl Assembler {
    /// Creates an assembler for a shape of a schema. `limits` bound the output: nulls take room in values of a fixed
    /// length.
    ///
    /// # Errors
    ///
    /// `LimitExceeded` for more than 255 levels.
    pub fn new(schema: &Schema, shape: &Shape, limits: &Limits) -> Result<Assembler> {
        Assembler::of(shape, limits, Paths::new(schema, shape.leaves.clone()))
    }

    /// Like [`Assembler::new`], for errors that name no column.
    pub(crate) fn of(shape: &Shape, limits: &Limits, paths: Paths) -> Result<Assembler> {
        let fields = plan::fields(shape)?;
        let memory = fields.iter().map(|_| Memory::default()).collect();
        Ok(Assembler {
            made: Vec::with_capacity(fields.len()),
            fields,
            memory,
            limits: *limits,
            paths,
            task: Task::default(),
            scratch: Scratch::default(),
            failed: Failed::default(),
        })
    }

    /// Returns the array of a batch. Its columns must include all of the shape's leaves; `column_of` finds a leaf's
    /// column.
    ///
    /// # Errors
    ///
    /// `Misuse` for a missing leaf; `Corrupt`, naming the row group, the column and the row, if the columns' levels
    /// contradict each other; `LimitExceeded` for lists of more than 2³¹ − 1 elements in a batch, and for more bytes
    /// than [`Limits::total_bytes`]. Errors are sticky.
    pub fn assemble<'a>(
        &mut self,
        batch: &Batch,
        column_of: &impl Fn(usize) -> Option<&'a ColumnBatch>,
    ) -> Result<Array> {
        match self.step(batch, column_of, &mut Budget::unlimited())? {
            Some(array) => Ok(array),
            None => Err(Error::internal("a budget without an end is spent")),
        }
    }

    /// Does part of the work. Returns `None` if the budget is spent: call again, with the same batch.
    ///
    /// # Errors
    ///
    /// Those of [`Assembler::assemble`].
    pub fn step<'a>(
        &mut self,
        batch: &Batch,
        column_of: &impl Fn(usize) -> Option<&'a ColumnBatch>,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Array>> {
        let place = |error: Error| error.at(|place| place.row_group = Some(u64_of(batch.row_group)));
        self.step_of(batch.rows, batch.first_row, column_of, budget).map_err(place)
    }

    /// Like [`Assembler::step`], given only the number of rows and the number of the first.
    pub(crate) fn step_of<'a>(
        &mut self,
        rows: usize,
        first_row: u64,
        column_of: &impl Fn(usize) -> Option<&'a ColumnBatch>,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Array>> {
        self.failed.check()?;
        let step = self.run(rows, column_of, budget).and_then(|is_done| match is_done {
            true => self.finish().map(Some),
            false => Ok(None),
        });
        step.map_err(|fault| {
            let path = fault.leaf.and_then(|leaf| self.paths.of(leaf));
            self.failed.set(fault.error.at(|place| {
                place.column = path;
                place.row = fault.row.map(|row| first_row.saturating_add(u64_of(row)));
            }))
        })
    }

    /// Assembles fields until all are done, or the budget is spent.
    fn run<'a>(
        &mut self,
        rows: usize,
        column_of: &impl Fn(usize) -> Option<&'a ColumnBatch>,
        budget: &mut Budget<'_>,
    ) -> Result<bool, Fault> {
        while let Some(field) = self.fields.get(self.made.len()) {
            let length = match field.around {
                None => rows,
                Some(list) => self.made.get(list).map_or(0, |list| list.elements),
            };
            let Some(first) = field.first_leaf else {
                // An empty struct: no column could tell that it is null.
                self.made.push(Made { length, ..Made::default() });
                continue;
            };
            let leaf = Leaf::of(column(first, column_of)?);
            let mut work = Work {
                field,
                length,
                task: &mut self.task,
                memory: &mut self.memory[self.made.len()],
                scratch: &mut self.scratch,
                limits: &self.limits,
            };
            loop {
                let sibling = match field.sibling {
                    Some(sibling) if work.compares() => {
                        Some((Leaf::of(column(sibling.leaf, column_of)?), sibling))
                    }
                    _ => None,
                };
                let (entries, is_made) = work.slice(leaf, sibling).map_err(|fault| fault.of(first))?;
                budget.charge_units(ENTRY_PRICE.of(0, entries));
                if is_made {
                    break;
                }
                if budget.is_spent() {
                    return Ok(false);
                }
            }
            let task = core::mem::take(&mut self.task);
            self.made.push(Made { length, ..task.made });
            budget.charge_units(FIELD_UNITS);
            if budget.is_spent() && self.made.len() < self.fields.len() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Puts the fields together, starting with the last: the fields of a struct must be there before it.
    fn finish(&mut self) -> Result<Array, Fault> {
        let gone = || Fault::from(Error::internal("an array without a part of it"));
        let mut arrays: Vec<Array> = Vec::new();
        for (field, made) in self.fields.iter().zip(self.made.drain(..)).rev() {
            let kind = match field.kind {
                Kind::Leaf => ArrayKind::Values(made.values.ok_or_else(gone)?),
                Kind::Struct { fields } => {
                    let rest = arrays.len().checked_sub(fields).ok_or_else(gone)?;
                    let mut fields = arrays.split_off(rest);
                    fields.reverse();
                    ArrayKind::Struct(fields)
                }
                Kind::List { .. } => {
                    let element = arrays.pop().ok_or_else(gone)?;
                    ArrayKind::List(made.offsets.ok_or_else(gone)?, Box::new(element))
                }
                Kind::Map { has_values, .. } => {
                    let key = arrays.pop().ok_or_else(gone)?;
                    let value = if has_values { Some(arrays.pop().ok_or_else(gone)?) } else { None };
                    ArrayKind::Map(made.offsets.ok_or_else(gone)?, Box::new(key), value.map(Box::new))
                }
            };
            let Made { length, nulls, validity, .. } = made;
            arrays.push(Array { node: field.node, length, nulls, validity, kind });
        }
        arrays.pop().ok_or_else(gone)
    }
}

/// For an assembler that is no longer wanted, or has failed.
impl Release for Assembler {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.failed.set_released();
        let Assembler { made, task, memory, scratch, .. } = self;
        release_all(&mut [made, task, memory, scratch], budget)
    }
}

fn column<'a>(
    leaf: usize,
    column_of: &impl Fn(usize) -> Option<&'a ColumnBatch>,
) -> Result<&'a ColumnBatch, Fault> {
    column_of(leaf)
        .ok_or_else(|| Fault::from(Error::misuse("a shape with a leaf that is not in the batch")).of(leaf))
}

impl Array {
    /// Returns the array of a shape for a batch. Its columns must include all of the shape's leaves; `column_of` finds
    /// a leaf's column. For many batches an [`Assembler`] is faster, works in slices, and names the place of an error.
    ///
    /// # Errors
    ///
    /// Those of [`Assembler::assemble`], but they name no column. Rows are counted from the batch's first.
    pub fn assemble<'a>(
        shape: &Shape,
        rows: usize,
        column_of: &impl Fn(usize) -> Option<&'a ColumnBatch>,
    ) -> Result<Array> {
        let mut assembler = Assembler::of(shape, &Limits::DEFAULT, Paths::default())?;
        let array = assembler.step_of(rows, 0, column_of, &mut Budget::unlimited())?;
        array.ok_or_else(|| Error::internal("a budget without an end is spent"))
    }
}
