//! Batches in the form that a mapping writes: flat columns as they are, nested ones assembled.

use alloc::boxed::Box;
use alloc::vec::Vec;

use marquetry_parquet::batch::{Array, ColumnBatch};

use super::render::Renderer;

/// A batch with the columns of a [`Mapping`](super::Mapping), ready to be written: the result of
/// [`Mapping::assemble`](super::Mapping::assemble).
#[derive(Debug)]
pub struct MappedBatch {
    pub(super) rows: usize,
    pub(super) first_row: u64,
    pub(super) row_group: usize,
    /// In the order of [`Mapping::columns`](super::Mapping::columns).
    pub(super) columns: Vec<MappedValues>,
    /// For [`Mapping::write_cell`](super::Mapping::write_cell), which writes cells one by one.
    pub(super) renderer: Renderer,
}

/// A column's values.
#[derive(Debug)]
pub(super) enum MappedValues {
    RowNumber,
    Flat(Box<ColumnBatch>),
    Nested(Box<Array>),
}

impl MappedBatch {
    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The first row's number in the file.
    pub fn first_row(&self) -> u64 {
        self.first_row
    }
}
