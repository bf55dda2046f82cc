//! Two tables that were compared, and the text of what is found.

use std::sync::Arc;

use marquetry::base::Limits;
use marquetry::parquet::print::{Columns, InvalidUtf8};
use marquetry::tables::{Differences, RowId, Source};

use crate::failure::Outcome;
use crate::rows::ColumnText;

/// The tables, and what is found.
pub(super) struct Compared {
    pub(super) sources: [Arc<dyn Source>; 2],
    pub(super) names: [String; 2],
    pub(super) found: Differences,
    pub(super) limits: Limits,
}

impl Compared {
    /// The JSON of a column of each table, by its index among their columns.
    pub(super) fn column_texts(&self, column: [usize; 2]) -> Outcome<[ColumnText; 2]> {
        let text = |side: usize| ColumnText::new(self.sources[side].table(), column[side], &self.limits);
        Ok([text(0)?, text(1)?])
    }

    /// The names of the key's columns, and their values in a row; of a row without a key, its number.
    pub(super) fn row_name(&self, row: &RowId, side: usize) -> Outcome<Vec<(String, String)>> {
        let (RowId::Key(batch), Some(schemas)) = (row, &self.found.key) else {
            let RowId::Number(number) = row else { return Ok(Vec::new()) };
            return Ok(vec![("row".to_string(), number.to_string())]);
        };
        let schema = &schemas[side];
        let mut columns = Columns::new(schema, InvalidUtf8::Bytes, &self.limits)?;
        let named = columns.visit(batch, |columns| {
            let mut named = Vec::new();
            for (column, node) in schema.children(0).enumerate() {
                let mut text = Vec::new();
                columns.json(0, column, &mut text)?;
                named.push((schema.nodes()[node].name.clone(), String::from_utf8_lossy(&text).into_owned()));
            }
            Ok(named)
        });
        Ok(named.flatten()?)
    }
}
