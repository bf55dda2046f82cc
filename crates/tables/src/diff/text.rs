//! The JSON that a VARIANT stands for, by which it is compared.

use std::sync::Arc;

use marquetry_base::{Error, Limits, Result};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::print::{Columns, InvalidUtf8};
use marquetry_parquet::schema::{Plan as _, Projection, Schema};

use crate::subject::named;

/// A field in each row as JSON, with what is around it, a batch at a time.
pub(super) struct Texts {
    columns: Columns,
    table: String,
    text: Vec<u8>,
    /// Where each row ends.
    ends: Vec<usize>,
}

impl Texts {
    /// Of a field, by its node.
    ///
    /// # Errors
    ///
    /// As [`Columns::new`].
    pub(super) fn new((schema, table): (&Arc<Schema>, &str), node: usize, limits: &Limits) -> Result<Texts> {
        let failed = |error: Error| named(error, table);
        let mut only = Projection::new(Arc::clone(schema));
        // It is the only one.
        let _ = only.add_field(node);
        let schema = only.plan().at_once().map_err(failed)?;
        let columns = Columns::new(&schema.into(), InvalidUtf8::Bytes, limits).map_err(failed)?;
        Ok(Texts { columns, table: table.to_string(), text: Vec::new(), ends: Vec::new() })
    }

    /// Prints a batch of the field's leaves alone.
    pub(super) fn print(&mut self, batch: &Batch) -> Result<()> {
        let Texts { columns, text, ends, .. } = self;
        text.clear();
        ends.clear();
        let printed = columns.visit(batch, |columns| -> Result<()> {
            for row in 0..batch.rows {
                columns.json(row, 0, text)?;
                ends.push(text.len());
            }
            Ok(())
        });
        printed.flatten().map_err(|error| named(error, &self.table))
    }

    /// A row that was printed.
    pub(super) fn row(&self, row: usize) -> &[u8] {
        let start = row.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(row).and_then(|end| self.text.get(start..*end)).unwrap_or_default()
    }
}
