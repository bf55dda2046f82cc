//! Batches whose columns are found once, for all their cells.

use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use marquetry_base::{Error, Result};
use marquetry_parquet::batch::{Array, Layout};

use super::batch::{MappedBatch, MappedValues};
use super::convert::{Slots, Source};
use super::form::Cells;
use super::mapping::{ColumnKind, KeyRole, null_key};
use super::plan::NestedColumn;
use super::render::Renderer;
use super::{Cell, Mapping, cell};

/// A batch whose columns are bound to those of its [`Mapping`]: the result of [`Mapping::bind`]. It writes cells one by one.
#[derive(Debug)]
pub struct BoundBatch<'a> {
    mapping: &'a Mapping,
    batch: &'a MappedBatch,
    /// In the order of [`Mapping::columns`].
    pub(super) columns: Vec<Bound<'a>>,
    /// If partitions can have static columns alone: the first clustering column.
    clustering: Option<usize>,
    renderer: Renderer,
}

/// A column's values of one batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound<'a> {
    /// The bytes of the validity bitmap, and the position of its first bit.
    validity: Option<(&'a [u8], usize)>,
    pub(super) values: BoundValues<'a>,
    pub(super) key: KeyRole,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum BoundValues<'a> {
    Plain(Source<'a>),
    Dictionary(Slots<'a>),
    /// Values that are converted to another type.
    Cast(Slots<'a>),
    Nested(&'a NestedColumn, &'a Array),
}

impl Mapping {
    /// Binds the columns of a batch to the mapping's, to write its cells one by one. `first_row_number` is the number of
    /// the batch's first row, for the column of row numbers.
    ///
    /// # Errors
    ///
    /// `Misuse` for a batch of another mapping or of the layout `Dense` with nulls.
    pub fn bind<'b>(&'b self, batch: &'b MappedBatch, first_row_number: u64) -> Result<BoundBatch<'b>> {
        BoundBatch::new(self, batch, first_row_number)
    }
}

impl<'a> BoundBatch<'a> {
    fn new(mapping: &'a Mapping, batch: &'a MappedBatch, first_row_number: u64) -> Result<BoundBatch<'a>> {
        let columns = 0..mapping.columns().len();
        let columns = columns.map(|column| bind(mapping, column, batch, first_row_number));
        let clustering = mapping.table().clustering.first().filter(|_| mapping.has_statics());
        Ok(BoundBatch {
            mapping,
            batch,
            columns: columns.collect::<Result<_>>()?,
            clustering: clustering.map(|(column, _)| *column),
            renderer: Renderer::default(),
        })
    }

    /// The mapping.
    pub fn mapping(&self) -> &'a Mapping {
        self.mapping
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.batch.rows
    }

    /// The first row's number in the file.
    pub fn first_row(&self) -> u64 {
        self.batch.first_row
    }

    /// Appends one value as the native protocol (versions 3 to 5) serialises it, without its length. A null appends
    /// nothing.
    ///
    /// `column` is a position in [`Mapping::columns`], `row` one in the batch.
    ///
    /// # Errors
    ///
    /// `Conversion`, with row and column, or the path in it: a value that its type cannot hold; a null in the key, or
    /// an empty partition key; a null in a list, set or map, and equal keys of a map. `LimitExceeded`: more than 256
    /// MiB. `Misuse`: a column or row that does not exist, or an index beyond its dictionary. `out` is then as it was.
    pub fn write_cell(&mut self, column: usize, row: usize, out: &mut Vec<u8>) -> Result<Cell> {
        let Some(&bound) = self.columns.get(column) else {
            return Err(Error::misuse(format!("column {column} of {}", self.columns.len())));
        };
        if row >= self.batch.rows {
            return Err(Error::misuse(format!("row {row} of a batch of {} rows", self.batch.rows)));
        }
        let start = out.len();
        let written = match bound.is_null(row) {
            true if bound.key == KeyRole::None => return Ok(Cell::Null),
            true => Err(null_key()),
            false => self.write_value(bound, row, out),
        };
        match written {
            Ok(()) => Ok(Cell::Value),
            Err(error) => {
                out.truncate(start);
                Err(self.mapping.at(column, self.batch, row, error))
            }
        }
    }

    #[inline]
    fn write_value(&mut self, bound: Bound<'a>, row: usize, out: &mut Vec<u8>) -> Result<()> {
        let value = match bound.values {
            BoundValues::Plain(source) => source.value(row)?,
            BoundValues::Dictionary(slots) | BoundValues::Cast(slots) => slots.value(row)?,
            BoundValues::Nested(nested, array) => {
                let start = out.len();
                self.renderer.write::<Cells>(self.mapping.rules(), &nested.plan, array, row, out)?;
                return bound.key.check_length(out.len() - start);
            }
        };
        bound.key.check(&value)?;
        cell::write(out, &value);
        Ok(())
    }

    /// Whether a row is a partition of which only static columns have values: clustering columns and all others are
    /// null. False for a row that does not exist.
    pub fn is_static_row(&self, row: usize) -> bool {
        let is_null = |column: usize| self.columns.get(column).is_some_and(|bound| bound.is_null(row));
        if row >= self.batch.rows || !self.clustering.is_some_and(is_null) {
            return false;
        }
        let mut has_value = false;
        let is_one = |(column, bound): (usize, &Bound<'_>)| {
            if self.mapping.is_static(column) {
                has_value |= !bound.is_null(row);
                return true;
            }
            bound.is_null(row) != bound.key.is_of_partition()
        };
        self.columns.iter().enumerate().all(is_one) && has_value
    }
}

/// A column's values in a batch.
fn bind<'a>(
    mapping: &'a Mapping,
    column: usize,
    batch: &'a MappedBatch,
    first_row_number: u64,
) -> Result<Bound<'a>> {
    let (Some((kind, key)), Some(values)) = (mapping.kind_of(column), batch.columns.get(column)) else {
        return Err(Error::misuse(format!("column {column} of {}", batch.columns.len())));
    };
    let wrong = |why: &'static str| {
        let name = mapping.columns().get(column).map(|column| column.name.as_str().to_string());
        Err(Error::misuse(why).at(|place| place.column = name))
    };
    let has_rows = |length| length >= batch.rows;
    let (validity, values) = match (kind, values) {
        (ColumnKind::RowNumber, MappedValues::RowNumber) => {
            (None, BoundValues::Plain(Source::RowNumber(first_row_number)))
        }
        (ColumnKind::Flat(leaf), MappedValues::Flat(values)) => {
            if values.layout == Layout::Dense && values.validity.is_some() {
                return wrong("the batch has the layout Dense; Spaced is needed");
            }
            if !has_rows(values.values.len()) {
                return wrong("the numbers of values and rows of the batch differ");
            }
            let Some(slots) = leaf.bind(&values.values) else {
                return wrong("the types of the batch differ from the schema's");
            };
            let bound = match slots {
                Slots { cast: Some(_), .. } => BoundValues::Cast(slots),
                Slots { indices: None, source, .. } => BoundValues::Plain(source),
                _ => BoundValues::Dictionary(slots),
            };
            (values.validity.as_ref(), bound)
        }
        (ColumnKind::Nested(nested), MappedValues::Nested(array)) => {
            (array.validity.as_ref(), BoundValues::Nested(nested, array))
        }
        _ => return wrong("the batch is of another mapping"),
    };
    if !validity.is_none_or(|validity| has_rows(validity.len())) {
        return wrong("the numbers of values and rows of the batch differ");
    }
    let validity = validity.map(|validity| (&**validity.bytes(), validity.offset()));
    Ok(Bound { validity, values, key })
}

impl Bound<'_> {
    pub(super) fn has_nulls(&self) -> bool {
        self.validity.is_some()
    }

    #[inline]
    pub(super) fn is_null(&self, row: usize) -> bool {
        self.validity.is_some_and(|(bytes, offset)| {
            let bit = offset + row;
            bytes[bit / 8] >> (bit % 8) & 1 == 0
        })
    }
}
