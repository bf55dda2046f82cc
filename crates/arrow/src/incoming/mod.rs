//! Record batches as batches for a [`FileWriter`](marquetry_parquet::write::FileWriter).
//!
//! Nested arrays are split level by level, 8,192 rows at a time.

mod cost;
mod leaf;
mod levels;
mod live;
mod types;

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use marquetry_base::cast::u64_of;
use marquetry_base::{Bitmap, Budget, Error, Result};
use marquetry_parquet::batch::{Batch, ColumnBatch, Layout, Values};
use marquetry_parquet::format::{ARROW_SCHEMA_KEY, KeyValue};
use marquetry_parquet::schema::Schema;

use crate::stored;

/// Maximum rows of a batch, so that no array has 1 MiB or more.
const BATCH_ROWS: usize = 8192;

/// Converts record batches to batches: the inverse of [`ToArrow`](crate::ToArrow).
///
/// ```no_run
/// # use arrow_array::RecordBatch;
/// # use marquetry_arrow::FromArrow;
/// # use marquetry_parquet::write::WriteOptions;
/// # fn example(record_batch: &RecordBatch) -> marquetry_base::Result<()> {
/// let mut from_arrow = FromArrow::new(&record_batch.schema())?;
/// let options = WriteOptions { key_values: vec![from_arrow.key_value()], ..WriteOptions::default() };
/// // A FileWriter of from_arrow.schema() with these options is fed what comes of each record batch:
/// for batch in from_arrow.batches(record_batch) {
///     println!("{} rows", batch?.rows);
/// }
/// # Ok(())
/// # }
/// ```
///
/// Numbers, bits and views are copied, but the bytes of strings are not: batches keep the record batch's memory alive.
/// Values are [dense](Layout::Dense). A dictionary stays a dictionary.
#[derive(Debug)]
pub struct FromArrow {
    arrow: SchemaRef,
    schema: Arc<Schema>,
    /// For each leaf, the dictionary of its latest batch and its converted values.
    dictionaries: Vec<Option<(ArrayRef, Arc<Values>)>>,
    rows: u64,
}

impl FromArrow {
    /// For record batches with this schema. The crate's table says how its types are written.
    ///
    /// # Errors
    ///
    /// `Unsupported`, naming the column, for types that Parquet lacks: unions, list views, run-end encoded arrays,
    /// intervals of years or of days, decimals of a negative scale, structs without fields. `LimitExceeded` for types
    /// that are nested too deeply.
    pub fn new(schema: &arrow_schema::Schema) -> Result<FromArrow> {
        let fields = types::fields(schema)?;
        let parquet = Arc::new(Schema::of_fields(&fields)?);
        let dictionaries = vec![None; parquet.leaves().len()];
        Ok(FromArrow { arrow: Arc::new(schema.clone()), schema: parquet, dictionaries, rows: 0 })
    }

    /// The schema of the batches.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// The Arrow schema in the form stored in footers (`ARROW:schema`). With it, Arrow's readers restore the types that
    /// were written, including zones and dictionaries.
    pub fn key_value(&self) -> KeyValue {
        KeyValue { key: ARROW_SCHEMA_KEY.into(), value: Some(stored::encoded(&self.arrow).into()) }
    }

    /// The rows of a record batch, at most 8,192 at a time.
    ///
    /// # Errors
    ///
    /// From each batch: `Misuse` for another schema, and for nulls in a field that is not nullable; `Conversion`,
    /// naming the column, for values that the written type cannot hold: a Date64 within a day, an interval of
    /// nanoseconds.
    pub fn batches<'a>(
        &'a mut self,
        record_batch: &'a RecordBatch,
    ) -> impl Iterator<Item = Result<Batch>> + 'a {
        let rows = record_batch.num_rows();
        (0..rows).step_by(BATCH_ROWS).map(move |start| {
            let part = record_batch.slice(start, BATCH_ROWS.min(rows - start));
            self.batch(&part)
        })
    }

    /// Rows of a record batch from `start` on, which must be one of them: at most 8,192, and as many as the budget pays for, but at least
    /// one. `None` if something was spent before, and the budget does not pay for all of them any more: the caller continues in
    /// a step that begins with this.
    ///
    /// A row, and a dictionary that the batch before did not have, are converted in one piece.
    ///
    /// # Errors
    ///
    /// Those of [`FromArrow::batches`].
    pub fn part(
        &mut self,
        record_batch: &RecordBatch,
        start: usize,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Batch>> {
        let all = record_batch.num_rows();
        if start >= all {
            return Err(Error::misuse(format!("row {start} of {all}")));
        }
        let mut rows = BATCH_ROWS.min(all - start);
        let units = |rows: usize| cost::units(record_batch, start..start + rows, &self.dictionaries);
        let mut cost = units(rows);
        if cost > budget.left() && budget.spent() > 0 {
            return Ok(None);
        }
        while cost > budget.left() && rows > 1 {
            rows = rows.div_ceil(2);
            cost = units(rows);
        }
        let batch = self.batch(&record_batch.slice(start, rows))?;
        budget.charge_units(cost);
        Ok(Some(batch))
    }

    fn batch(&mut self, record_batch: &RecordBatch) -> Result<Batch> {
        let arrow = Arc::clone(&self.arrow);
        let fields = arrow.fields();
        let found = record_batch.schema();
        let is_same = |(ours, theirs): (&Arc<arrow_schema::Field>, &Arc<arrow_schema::Field>)| {
            ours.name() == theirs.name() && ours.data_type() == theirs.data_type()
        };
        if fields.len() != found.fields().len() || !fields.iter().zip(found.fields()).all(is_same) {
            return Err(Error::misuse("a record batch of another schema"));
        }
        let mut columns = Vec::with_capacity(self.schema.leaves().len());
        let rows = record_batch.num_rows();
        for (field, array) in fields.iter().zip(record_batch.columns()) {
            levels::walk(array, field, rows, &mut |array, field, slots| {
                let leaf = columns.len();
                let column = self.column(leaf, array, field, slots, rows);
                let path = || Some(self.schema.leaf_path(leaf));
                columns.push(column.map_err(|error| error.at(|place| place.column = path()))?);
                Ok(())
            })?;
        }
        let batch = Batch { row_group: 0, first_row: self.rows, rows, columns };
        self.rows += u64_of(rows);
        Ok(batch)
    }

    fn column(
        &mut self,
        leaf: usize,
        array: &ArrayRef,
        field: &arrow_schema::Field,
        slots: levels::Slots,
        rows: usize,
    ) -> Result<ColumnBatch> {
        let is_flat = self.schema.leaves().get(leaf).is_some_and(|leaf| leaf.is_flat());
        let dictionary = self
            .dictionaries
            .get_mut(leaf)
            .ok_or_else(|| Error::internal("more leaves than the schema has"))?;
        let values = leaf::values(array, field, &slots.live, dictionary)?;
        let nulls = slots.entries() - slots.live.len();
        let validity = (is_flat && nulls > 0).then(|| slots.validity());
        let levels = if is_flat { None } else { Some(slots.into_levels()) };
        let layout = Layout::Dense;
        Ok(ColumnBatch { leaf, rows, nulls, validity, values, layout, levels, provisional: false })
    }
}

impl levels::Slots {
    /// The validity of a flat column.
    fn validity(&self) -> Bitmap {
        self.definition.iter().map(|level| *level > 0).collect()
    }
}
