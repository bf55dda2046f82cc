//! The columns of batches, whose values are printed one by one.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::u64_of;
use marquetry_base::{Error, Limits, Result};

use super::cells::{Cells, Memo};
use super::form::{Form, Json, Unprintable};
use super::nested::{self, NestedColumn, View};
use super::piece::Piece;
use super::value::{Shown, json, value};
use super::{InvalidUtf8, not_utf8};
use crate::batch::{Array, Assembler, Batch, ColumnBatch, Layout, Value, Values};
use crate::schema::{Meaning, NodeKind, Schema};

/// Prints the columns of a schema, batch after batch: the root's children, with everything below them. Their names are
/// [unique](Schema::with_unique_names), so that nothing is lost in JSON.
#[derive(Debug)]
pub struct Columns {
    pub(super) schema: Arc<Schema>,
    fields: Vec<Field>,
    /// What stands before each value: in JSON `{"name":`.
    befores: Vec<Piece>,
    invalid_utf8: InvalidUtf8,
    /// Of variants.
    limits: Limits,
}

#[derive(Debug)]
enum Field {
    Flat {
        meaning: Meaning,
        memo: Memo,
        /// The position of the next value of a column with dense values.
        cursor: usize,
    },
    /// The range of its leaves in a batch, where they are in the schema's order, and their assembler.
    Nested(Range<usize>, Box<Assembler>),
}

impl Columns {
    /// For batches of all leaves of `schema`. This is planning work, in one call.
    ///
    /// # Errors
    ///
    /// Those of [`Shape::kind`](crate::schema::Shape::kind); `Unsupported` for what JSON has no form for: empty groups.
    pub fn new(schema: &Arc<Schema>, invalid_utf8: InvalidUtf8, limits: &Limits) -> Result<Columns> {
        Columns::of_form::<Json>(schema, invalid_utf8, limits)
    }

    /// For [fields](BatchColumns::field) of a form.
    pub(super) fn of_form<F: Form>(
        schema: &Arc<Schema>,
        invalid_utf8: InvalidUtf8,
        limits: &Limits,
    ) -> Result<Columns> {
        let schema = schema.with_unique_names().map_or_else(|| Arc::clone(schema), Arc::new);
        let count = schema.children(0).count();
        let field = |node: usize| match schema.nodes()[node].kind {
            NodeKind::Leaf { leaf } if schema.leaves()[leaf].is_flat() => {
                let leaf = &schema.leaves()[leaf];
                let meaning = schema.meaning_of(leaf).read_as(leaf.physical_type);
                Ok(Field::Flat { meaning, memo: Memo::of(count), cursor: 0 })
            }
            _ => {
                let shape = nested::shape(&schema, node)?;
                let assembler = Assembler::new(Arc::clone(&schema), node, None, limits);
                Ok(Field::Nested(shape.leaves(), Box::new(assembler)))
            }
        };
        let before = |(at, node): (usize, usize)| F::before(at, &schema.nodes()[node].name);
        Ok(Columns {
            fields: schema.children(0).map(field).collect::<Result<_>>()?,
            befores: schema.children(0).enumerate().map(before).collect(),
            schema,
            invalid_utf8,
            limits: *limits,
        })
    }

    /// How many columns there are.
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether there is no column.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Prepares the columns of a batch and passes them to `visit`.
    ///
    /// # Errors
    ///
    /// `Corrupt`, `Unsupported` and `LimitExceeded` for nested columns whose levels or variants are invalid; `Misuse`
    /// for a batch of other leaves.
    pub fn visit<R>(&mut self, batch: &Batch, visit: impl FnOnce(&mut BatchColumns<'_>) -> R) -> Result<R> {
        let arrays = self.assemble(batch)?;
        self.visit_assembled(batch, &arrays, visit)
    }

    /// The nested columns of a batch. Cursors are reset.
    pub(super) fn assemble(&mut self, batch: &Batch) -> Result<Vec<Array>> {
        let mut arrays = Vec::new();
        let mut next = 0;
        for field in &mut self.fields {
            match field {
                Field::Flat { cursor, .. } => {
                    *cursor = 0;
                    next += 1;
                }
                Field::Nested(leaves, assembler) => {
                    let columns = batch.columns.get(next..next + leaves.len()).unwrap_or_default();
                    next += leaves.len();
                    let column_of = |leaf: usize| columns.get(leaf.checked_sub(leaves.start)?);
                    arrays.push(assembler.assemble(batch, &column_of)?);
                }
            }
        }
        if next != batch.columns.len() {
            return Err(Error::misuse("a batch of other leaves than the schema"));
        }
        Ok(arrays)
    }

    /// Like [`Columns::visit`], for arrays that were assembled before.
    pub(super) fn visit_assembled<R>(
        &mut self,
        batch: &Batch,
        arrays: &[Array],
        visit: impl FnOnce(&mut BatchColumns<'_>) -> R,
    ) -> Result<R> {
        let Columns { schema, fields, befores, invalid_utf8, limits } = self;
        let view = |array| {
            View::new(schema, array).map_err(|error: Error| {
                error.at(|place| {
                    place.column.get_or_insert_with(|| schema.path(array.node));
                    place.row_group.get_or_insert(u64_of(batch.row_group));
                })
            })
        };
        let views: Vec<View<'_>> = arrays.iter().map(view).collect::<Result<_>>()?;
        let columns = columns(batch, fields, &views, limits);
        Ok(visit(&mut BatchColumns {
            columns,
            befores,
            schema,
            first_row: batch.first_row,
            rows: batch.rows,
            invalid_utf8: *invalid_utf8,
        }))
    }

    /// The name of a column.
    fn name(schema: &Schema, column: usize) -> String {
        let node = schema.children(0).nth(column).and_then(|node| schema.nodes().get(node));
        node.map_or_else(String::new, |node| node.name.to_string())
    }
}

fn columns<'a>(
    batch: &'a Batch,
    fields: &'a mut [Field],
    views: &'a [View<'a>],
    limits: &Limits,
) -> Vec<Column<'a>> {
    let mut leaves = batch.columns.iter();
    let mut views = views.iter();
    let column = |field: &'a mut Field| match field {
        Field::Flat { meaning, memo, cursor } => leaves.next().map(|column| {
            let values = match &column.values {
                Values::Dictionary(_, dictionary) => {
                    memo.begin(dictionary);
                    &**dictionary
                }
                values => values,
            };
            Column::Flat { column, meaning: *meaning, cursor, cells: Cells::new(values, *meaning), memo }
        }),
        Field::Nested(below, _) => {
            if let Some(last) = below.len().checked_sub(1) {
                leaves.nth(last);
            }
            views.next().map(|view| Column::Nested(Box::new(NestedColumn::new(view, limits))))
        }
    };
    fields.iter_mut().filter_map(column).collect()
}

/// The columns of a batch. Rows are counted from the batch's first. The values of a column must be requested in the
/// order of the rows, and each once.
#[derive(Debug)]
pub struct BatchColumns<'a> {
    columns: Vec<Column<'a>>,
    befores: &'a [Piece],
    schema: &'a Schema,
    first_row: u64,
    rows: usize,
    invalid_utf8: InvalidUtf8,
}

/// A column of a batch.
#[derive(Debug)]
enum Column<'a> {
    /// Dense values need a cursor; spaced ones are at their row's index.
    Flat {
        column: &'a ColumnBatch,
        meaning: Meaning,
        cursor: &'a mut usize,
        /// Its values, or the dictionary's.
        cells: Cells<'a>,
        memo: &'a mut Memo,
    },
    Nested(Box<NestedColumn<'a>>),
}

/// What is in a row of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    /// Null.
    Null,
    /// A value, for [`value`](super::value()).
    Value(Meaning, Value<'a>),
    /// A struct, list or map, a variant, or a repeated field: [`BatchColumns::json`] prints it.
    Nested,
}

impl<'a> BatchColumns<'a> {
    /// How many columns there are.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether there is no column.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// What is in a row of a column. [`Cell::Null`] if there is no such column.
    ///
    /// # Errors
    ///
    /// With row and column: `Conversion` with [`Detail::NotUtf8`](marquetry_base::Detail) for invalid UTF-8, if that is
    /// an error.
    pub fn cell(&mut self, row: usize, column: usize) -> Result<Cell<'a>> {
        let found = match self.columns.get_mut(column) {
            Some(Column::Flat { column, meaning, cursor, .. }) => {
                let (column, meaning): (&'a ColumnBatch, _) = (column, *meaning);
                let found = place_of(column, row, cursor).and_then(|at| Value::of_values(&column.values, at));
                found.map_or(Cell::Null, |value| Cell::Value(meaning, value))
            }
            Some(Column::Nested(column)) if !column.is_null(row) => Cell::Nested,
            _ => Cell::Null,
        };
        match found {
            Cell::Value(meaning, Value::Bytes(bytes))
                if meaning.is_text()
                    && self.invalid_utf8 == InvalidUtf8::Error
                    && !marquetry_kernels::utf8::valid(bytes) =>
            {
                Err(self.error(row, column, Unprintable::NotText(None)))
            }
            found => Ok(found),
        }
    }

    /// Appends what is in a row of a column as JSON. After an error, discard what was appended.
    ///
    /// # Errors
    ///
    /// With row and column: `Conversion` with [`Detail::NotUtf8`](marquetry_base::Detail) for invalid UTF-8, if that is
    /// an error; the errors of an invalid variant. `Misuse` if there is no such column.
    pub fn json(&mut self, row: usize, column: usize, out: &mut Vec<u8>) -> Result<()> {
        let invalid_utf8 = self.invalid_utf8;
        let Some(found) = self.columns.get_mut(column) else {
            return Err(Error::misuse("a column that is not there"));
        };
        let written = match found {
            Column::Flat { column, meaning, cursor, .. } => match place_of(column, row, cursor) {
                Some(at) => Value::of_values(&column.values, at)
                    .and_then(|found| json(out, *meaning, found, invalid_utf8))
                    .ok_or(Unprintable::NotText(None)),
                None => {
                    out.extend_from_slice(b"null");
                    Ok(())
                }
            },
            Column::Nested(found) => found.write(row, invalid_utf8, out),
        };
        written.map_err(|why| self.error(row, column, why))
    }

    /// Appends a field of a line: what stands before the value, and the value.
    #[inline]
    pub(super) fn field<F: Form>(
        &mut self,
        row: usize,
        column: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Unprintable> {
        let before = &self.befores[column];
        match &mut self.columns[column] {
            Column::Flat { column, meaning, cursor, cells, memo } => match place_of(column, row, cursor) {
                Some(place) => {
                    let written = match &column.values {
                        Values::Dictionary(indices, _) => indices
                            .get(place)
                            .and_then(|&index| memo.write::<F>(cells, index, before, self.invalid_utf8, out)),
                        _ => {
                            before.write(out);
                            cells.write::<F>(place, self.invalid_utf8, out)
                        }
                    };
                    written.ok_or_else(|| why_not::<F>(column, place, *meaning, self.invalid_utf8))
                }
                None => {
                    before.write(out);
                    out.extend_from_slice(F::NULL);
                    Ok(())
                }
            },
            Column::Nested(column) => {
                before.write(out);
                if column.is_null(row) {
                    out.extend_from_slice(F::NULL);
                    return Ok(());
                }
                F::nested(out, |out| column.write(row, self.invalid_utf8, out))
            }
        }
    }

    /// The error for a value that cannot be printed.
    #[cold]
    pub(super) fn error(&self, row: usize, column: usize, why: Unprintable) -> Error {
        let row = self.first_row + u64_of(row);
        let name = || Columns::name(self.schema, column);
        match why {
            Unprintable::NotText(node) => not_utf8().at(|place| {
                place.column = Some(node.map_or_else(name, |node| self.schema.path(node)));
                place.row = Some(row);
            }),
            Unprintable::Engine(error) => error.at(|place| {
                place.column = Some(name());
                place.row = Some(row);
            }),
        }
    }
}

/// Why a value was not written.
#[cold]
fn why_not<F: Form>(
    column: &ColumnBatch,
    place: usize,
    meaning: Meaning,
    invalid_utf8: InvalidUtf8,
) -> Unprintable {
    match Value::of_values(&column.values, place).map(|found| value(&mut Vec::new(), meaning, found)) {
        Some(Shown::Text(text)) => F::refusal(text),
        Some(Shown::NotText(bytes)) => {
            invalid_utf8.text(bytes).map_or(Unprintable::NotText(None), |text| F::refusal(&text))
        }
        _ => Unprintable::NotText(None),
    }
}

/// The index of a row's value, or `None` for a null.
#[inline]
fn place_of(column: &ColumnBatch, row: usize, cursor: &mut usize) -> Option<usize> {
    if column.is_null(row) {
        return None;
    }
    let at = match column.layout {
        Layout::Spaced => row,
        Layout::Dense => *cursor,
    };
    *cursor += 1;
    Some(at)
}
