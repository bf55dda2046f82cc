//! Batches in the form that a mapping writes: flat columns as they are, nested ones assembled.

use alloc::boxed::Box;
use alloc::vec::Vec;

use marquetry_base::{Budget, Error, Release, Result, release_all};
use marquetry_parquet::batch::{Array, Assembler, ColumnBatch};

/// A batch with the columns of a [`Mapping`](super::Mapping), ready to be written: the result of
/// [`Mapping::assemble`](super::Mapping::assemble).
#[derive(Debug)]
pub struct MappedBatch {
    pub(super) rows: usize,
    pub(super) first_row: u64,
    pub(super) row_group: usize,
    /// In the order of [`Mapping::columns`](super::Mapping::columns).
    pub(super) columns: Vec<MappedValues>,
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

/// A batch that is being made ready: see [`Mapping::assembling`](super::Mapping::assembling).
#[derive(Debug)]
pub struct Assembling {
    pub(super) rows: usize,
    pub(super) first_row: u64,
    pub(super) row_group: usize,
    /// The columns of the batch, until they are taken, and how many were.
    pub(super) batches: Vec<Option<ColumnBatch>>,
    pub(super) taken: usize,
    /// The leaves of the nested column at hand, and what assembles them.
    pub(super) nested: Option<Box<(Vec<ColumnBatch>, Assembler)>>,
    /// The leaves of nested columns that are assembled: what of them is not shared with the arrays is released with this.
    pub(super) used: Vec<Vec<ColumnBatch>>,
    /// The columns that are ready.
    pub(super) columns: Vec<MappedValues>,
}

impl Assembling {
    /// The column of a leaf: the next one, or the one with the leaf's number, if the batch has all leaves of the schema.
    pub(super) fn take(&mut self, leaf: usize) -> Result<ColumnBatch> {
        let next = self.taken;
        self.taken += 1;
        let is_it = |at: &usize| matches!(self.batches.get(*at), Some(Some(batch)) if batch.leaf == leaf);
        let found = [next, leaf].into_iter().find(is_it).and_then(|at| self.batches[at].take());
        found.ok_or_else(|| Error::misuse("the batch lacks leaves of Mapping::leaves"))
    }
}

/// For a batch that is no longer wanted, or was made ready.
impl Release for Assembling {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        // The memory of the assembler itself is that of one column's arrays.
        if let Some(nested) = self.nested.take() {
            self.used.push(nested.0);
        }
        release_all(&mut [&mut self.batches, &mut self.used, &mut self.columns], budget)
    }
}

/// For a batch that is no longer wanted.
impl Release for MappedBatch {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.rows = 0;
        self.columns.release(budget)
    }
}

impl Release for MappedValues {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        match self {
            MappedValues::RowNumber => true,
            MappedValues::Flat(column) => column.release(budget),
            MappedValues::Nested(array) => array.release(budget),
        }
    }
}
