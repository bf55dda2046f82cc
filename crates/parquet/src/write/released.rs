//! Batches that are no longer needed, released in slices.

use alloc::vec::Vec;

use marquetry_base::{Budget, Release, release_all};

use crate::batch::{ColumnBatch, Values};
use crate::growing::release_in_step;

/// Columns and values to release. What somebody else still has is not released here, and costs next to nothing.
#[derive(Debug, Default)]
pub(crate) struct Released {
    columns: Vec<ColumnBatch>,
    values: Vec<Values>,
}

impl Released {
    /// Adds columns.
    pub(crate) fn columns(&mut self, columns: Vec<ColumnBatch>) {
        if self.columns.is_empty() {
            self.columns = columns;
        } else {
            self.columns.extend(columns);
        }
    }

    /// Adds values.
    pub(crate) fn values(&mut self, values: Values) {
        self.values.push(values);
    }

    /// Whether nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.columns.is_empty() && self.values.is_empty()
    }

    /// Releases some. True once nothing is left.
    pub(crate) fn step(&mut self, budget: &mut Budget<'_>) -> bool {
        self.is_empty() || release_in_step(self, budget)
    }
}

impl Release for Released {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.columns, &mut self.values], budget)
    }
}
