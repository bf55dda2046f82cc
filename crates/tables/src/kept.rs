//! Rows that are kept of batches whose other rows are dropped.

use std::sync::Arc;

use marquetry_base::Result;
use marquetry_parquet::batch::Batch;
use marquetry_parquet::schema::Schema;

use crate::parquet::{Gathered, Plain};

/// Rows of a batch that is made of rows of several.
const BATCH_ROWS: usize = 8192;
/// Bytes of rows that are handed out, however few they are.
const KEPT_BYTES: u64 = 4 << 20;

/// Rows that were kept, until there are enough of them for a batch.
pub(crate) struct Kept {
    schema: Arc<Schema>,
    gathered: Gathered,
    /// The number of the first of them.
    first_row: u64,
    batch_rows: usize,
}

impl Kept {
    /// Rows of a schema, in batches of at most `batch_rows`.
    pub(crate) fn new(schema: &Arc<Schema>, batch_rows: Option<usize>) -> Kept {
        Kept {
            schema: Arc::clone(schema),
            gathered: Gathered::new(schema),
            first_row: 0,
            batch_rows: batch_rows.unwrap_or(BATCH_ROWS).max(1),
        }
    }

    pub(crate) fn rows(&self) -> usize {
        self.gathered.rows()
    }

    /// Whether they are enough for a batch.
    pub(crate) fn is_full(&self) -> bool {
        self.rows() >= self.batch_rows || self.gathered.bytes() >= KEPT_BYTES
    }

    /// Keeps rows of a batch. Returns those that were kept before, if all of them would be more than a batch.
    pub(crate) fn keep(&mut self, batch: Batch, rows: &[u32]) -> Result<Option<Batch>> {
        let Some(first) = rows.first() else { return Ok(None) };
        let full = if self.rows() + rows.len() > self.batch_rows { self.finish() } else { None };
        if self.rows() == 0 {
            self.first_row = batch.first_row.saturating_add(u64::from(*first));
        }
        let plain = Plain::of(batch, &self.schema, &[])?;
        self.gathered.take(&plain, 0..self.schema.leaves().len(), rows)?;
        Ok(full)
    }

    /// What was kept, if anything.
    pub(crate) fn finish(&mut self) -> Option<Batch> {
        if self.rows() == 0 {
            return None;
        }
        let mut batch = self.gathered.finish();
        batch.first_row = self.first_row;
        Some(batch)
    }
}
