//! From the leaves of nested columns to arrays: a slice at a time, into memory that is reused.
//!
//! A field's offsets and validity come from its first leaf, 64 entries at a time; every other leaf is only compared with
//! the leaf before it.

mod plan;
mod slices;
mod values;
mod work;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Error, Failed, Limits, Price, Release, Result, Segmented, release_all};

use super::{Array, ArrayKind};
use super::{Batch, ColumnBatch};
use crate::schema::{Schema, Shape};
use plan::{Field, Kind, Planning};
use work::{Fault, Leaf, Made, Memory, Scratch, Task, Work};

/// The price of looking at an entry once.
const ENTRY_PRICE: Price = Price::per_kilovalue(300);
/// What a field costs besides its entries.
const FIELD_UNITS: u64 = 400;

/// Assembles the arrays of one field of the root, batch after batch.
///
/// [`step`](Assembler::step) does part of the work, [`assemble`](Assembler::assemble) all of it in one call. It takes
/// about a nanosecond for each entry of each leaf, and less for each entry of each list, map or nullable struct. A
/// field's levels are taken from its first leaf; the other leaves are compared with it, once each. Values without nulls
/// are shared with the batch; others are copied, with a slot for each null. The memory of arrays that are no longer
/// shared is reused.
///
/// The fields are planned in the first steps.
#[derive(Debug)]
pub struct Assembler {
    schema: Arc<Schema>,
    core: Core,
    failed: Failed,
}

/// An assembler, without the schema that names columns in errors.
#[derive(Debug)]
struct Core {
    /// Until all fields are planned.
    planning: Option<Planning>,
    fields: Segmented<Field>,
    /// The memory of the fields that were assembled once.
    memory: Segmented<Memory>,
    limits: Limits,
    /// The field at hand, and what is done of it.
    at: usize,
    task: Task,
    scratch: Scratch,
    /// The structs, lists and maps around it.
    open: Vec<Open>,
}

/// A struct, list or map whose fields are being assembled.
#[derive(Debug)]
struct Open {
    field: usize,
    made: Made,
    /// Slots of what is in it.
    slots: usize,
    /// What is in it, as far as it is assembled, and how much that will be.
    arrays: Vec<Array>,
    count: usize,
}

impl Assembler {
    /// Creates an assembler for a child of the root of a schema, by its node, with these leaves, which must be ascending
    /// (those of other columns do not matter); `None`: with all. `limits` bound the output: nulls take room in values of
    /// a fixed length.
    pub fn new(schema: Arc<Schema>, node: usize, leaves: Option<Arc<[usize]>>, limits: &Limits) -> Assembler {
        let core = Core::of(Planning::of(schema.shape(node), leaves), limits);
        Assembler { schema, core, failed: Failed::default() }
    }

    /// Returns the array of a batch. Its columns must include all of the shape's leaves; `column_of` finds a leaf's
    /// column.
    ///
    /// # Errors
    ///
    /// `Misuse` for a missing leaf; `Corrupt`, naming the row group, the column and the row, if the columns' levels
    /// contradict each other; `LimitExceeded` for lists of more than 2³¹ − 1 elements in a batch, for more bytes than
    /// [`Limits::total_bytes`], and for more than 255 levels; those of [`Shape::kind`]. Errors are sticky.
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
        self.core.step(&self.schema, rows, column_of, budget).map_err(|fault| {
            let path = fault.leaf.map(|leaf| self.schema.leaf_path(leaf));
            self.failed.set(fault.error.at(|place| {
                if path.is_some() {
                    place.column = path;
                }
                place.row = fault.row.map(|row| first_row.saturating_add(u64_of(row)));
            }))
        })
    }
}

impl Core {
    fn of(planning: Planning, limits: &Limits) -> Core {
        Core {
            planning: Some(planning),
            fields: Segmented::new(),
            memory: Segmented::new(),
            limits: *limits,
            at: 0,
            task: Task::default(),
            scratch: Scratch::default(),
            open: Vec::new(),
        }
    }

    fn step<'a>(
        &mut self,
        schema: &Schema,
        rows: usize,
        column_of: &impl Fn(usize) -> Option<&'a ColumnBatch>,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Array>, Fault> {
        if let Some(planning) = &mut self.planning {
            if !planning.step(schema, &mut self.fields, budget)? {
                return Ok(None);
            }
            self.planning = None;
            if budget.is_spent() {
                return Ok(None);
            }
        }
        self.run(rows, column_of, budget)
    }

    /// Assembles fields until all are done, or the budget is spent.
    fn run<'a>(
        &mut self,
        rows: usize,
        column_of: &impl Fn(usize) -> Option<&'a ColumnBatch>,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Array>, Fault> {
        while let Some(field) = self.fields.get(self.at) {
            let length = self.open.last().map_or(rows, |open| open.slots);
            let made = match field.first_leaf {
                // An empty struct: no column could tell that it is null.
                None => Made { length, ..Made::default() },
                Some(first) => {
                    while self.memory.len() <= self.at {
                        self.memory.push(Memory::default());
                    }
                    let memory = self.memory.get_mut(self.at);
                    let mut work = Work {
                        field,
                        length,
                        task: &mut self.task,
                        memory: memory.ok_or_else(|| Error::internal("a field without its memory"))?,
                        scratch: &mut self.scratch,
                        limits: &self.limits,
                    };
                    if !work.run(first, column_of, budget)? {
                        return Ok(None);
                    }
                    Made { length, ..core::mem::take(&mut self.task).made }
                }
            };
            budget.charge_units(FIELD_UNITS);
            if let Some(array) = self.put(made)? {
                return Ok(Some(array));
            }
            if budget.is_spent() {
                return Ok(None);
            }
        }
        Err(gone())
    }

    /// Puts the field at hand where it belongs; returns the array of the column once that is complete.
    fn put(&mut self, made: Made) -> Result<Option<Array>, Fault> {
        let number = self.at;
        let field = self.fields.get(number).ok_or_else(gone)?;
        let (slots, count) = match field.kind {
            Kind::Leaf => (0, 0),
            Kind::Struct { fields } => (made.length, fields),
            Kind::List { .. } => (made.elements, 1),
            Kind::Map { has_values, .. } => (made.elements, 1 + usize::from(has_values)),
        };
        self.at += 1;
        let mut arrays = Vec::new();
        let bytes = count.saturating_mul(size_of::<Array>());
        arrays.try_reserve_exact(count).map_err(|_| Error::out_of_memory(bytes))?;
        let mut complete = Open { field: number, made, slots, arrays, count };
        while complete.arrays.len() == complete.count {
            let field = self.fields.get(complete.field).ok_or_else(gone)?;
            let array = array(field, complete.made, complete.arrays)?;
            let Some(mut around) = self.open.pop() else {
                self.at = 0;
                return Ok(Some(array));
            };
            around.arrays.push(array);
            complete = around;
        }
        self.open.push(complete);
        Ok(None)
    }
}

fn gone() -> Fault {
    Error::internal("an array without a part of it").into()
}

/// The array of a field, and of what is in it.
fn array(field: &Field, made: Made, arrays: Vec<Array>) -> Result<Array, Fault> {
    let kind = match field.kind {
        Kind::Leaf => ArrayKind::Values(made.values.ok_or_else(gone)?),
        Kind::Struct { .. } => ArrayKind::Struct(arrays),
        Kind::List { .. } | Kind::Map { .. } => {
            let offsets = made.offsets.ok_or_else(gone)?;
            let mut arrays = arrays.into_iter();
            let first = Box::new(arrays.next().ok_or_else(gone)?);
            match field.kind {
                Kind::Map { .. } => ArrayKind::Map(offsets, first, arrays.next().map(Box::new)),
                _ => ArrayKind::List(offsets, first),
            }
        }
    };
    let Made { length, nulls, validity, .. } = made;
    Ok(Array { node: field.node, length, nulls, validity, kind })
}

impl Work<'_> {
    /// Works on the field until it is made, or the budget is spent: then returns false.
    fn run<'a>(
        &mut self,
        first: usize,
        column_of: &impl Fn(usize) -> Option<&'a ColumnBatch>,
        budget: &mut Budget<'_>,
    ) -> Result<bool, Fault> {
        let leaf = Leaf::of(column(first, column_of)?);
        loop {
            let sibling = match self.field.sibling {
                Some(sibling) if self.compares() => {
                    Some((Leaf::of(column(sibling.leaf, column_of)?), sibling))
                }
                _ => None,
            };
            let (entries, is_made) = self.slice(leaf, sibling).map_err(|fault| fault.of(first))?;
            budget.charge_units(ENTRY_PRICE.of(0, entries));
            if is_made {
                return Ok(true);
            }
            if budget.is_spent() {
                return Ok(false);
            }
        }
    }
}

/// For an assembler that is no longer wanted, or has failed.
impl Release for Assembler {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.failed.set_released();
        let Core { open, task, memory, scratch, fields, .. } = &mut self.core;
        release_all(&mut [open, task, memory, scratch, fields], budget)
    }
}

impl Release for Open {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.made, &mut self.arrays], budget)
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
        shape: Shape<'_>,
        rows: usize,
        column_of: &impl Fn(usize) -> Option<&'a ColumnBatch>,
    ) -> Result<Array> {
        let mut core = Core::of(Planning::of(shape, shape.projection().map(Arc::from)), &Limits::DEFAULT);
        let array = core.step(shape.schema(), rows, column_of, &mut Budget::unlimited());
        let array = array.map_err(|fault| fault.error.at(|place| place.row = fault.row.map(u64_of)))?;
        array.ok_or_else(|| Error::internal("a budget without an end is spent"))
    }
}
