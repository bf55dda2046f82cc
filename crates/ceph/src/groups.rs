//! Aggregates by groups of rows that have the same values in some columns.

use std::collections::{BTreeMap, HashMap};

use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array, downcast_primitive_array, new_empty_array};
use arrow_schema::{Field, Schema, SchemaRef};
use arrow_select::concat::{concat, concat_batches};
use arrow_select::take::{take, take_record_batch};
use marquetry_base::{Error, Result};

use crate::aggregate::{Aggregates, Function, bytes_of, has_order};
use crate::compact::compact;
use crate::failure::of_arrow;

/// Groups of one answer after which it is full: a batch may bring as many more as it has rows.
const GROUPS_MAX: usize = 4096;

/// Groups that are being aggregated.
pub(crate) struct Groups {
    asked: Vec<(String, Option<usize>, Function)>,
    schema: SchemaRef,
    /// The places of the columns whose values make a group.
    keys: Vec<usize>,
    numbers: HashMap<Vec<u8>, usize>,
    /// Of each group.
    aggregates: Vec<Aggregates>,
    /// Of each key column, the values of new groups, batch by batch.
    values: Vec<Vec<ArrayRef>>,
}

impl Groups {
    pub(crate) fn new(
        asked: &[(String, Option<usize>, Function)],
        keys: &[usize],
        schema: &SchemaRef,
    ) -> Result<Groups> {
        for field in keys.iter().map(|key| schema.field(*key)) {
            if !has_order(field.data_type()) {
                let message =
                    format!("rows are not grouped by {}, which is {}", field.name(), field.data_type());
                return Err(Error::unsupported(message));
            }
        }
        // What is wrong with an aggregate is wrong without a row, too.
        Aggregates::new(asked, schema)?;
        Ok(Groups {
            asked: asked.to_vec(),
            schema: SchemaRef::clone(schema),
            keys: keys.to_vec(),
            numbers: HashMap::new(),
            aggregates: Vec::new(),
            values: vec![Vec::new(); keys.len()],
        })
    }

    pub(crate) fn is_full(&self) -> bool {
        self.aggregates.len() >= GROUPS_MAX
    }

    /// Adds the rows of a batch. The number of groups that they are in.
    pub(crate) fn add(&mut self, batch: &RecordBatch) -> Result<usize> {
        let mut keys: Vec<Vec<u8>> = vec![Vec::new(); batch.num_rows()];
        for key in &self.keys {
            append_keys(batch.column(*key), &mut keys)?;
        }
        let (mut rows_of, mut new) = (BTreeMap::<usize, Vec<u32>>::new(), Vec::new());
        for (row, key) in (0_u32..).zip(keys) {
            let next = self.aggregates.len();
            let group = *self.numbers.entry(key).or_insert(next);
            if group == next {
                self.aggregates.push(Aggregates::new(&self.asked, &self.schema)?);
                new.push(row);
            }
            rows_of.entry(group).or_default().push(row);
        }
        let new = UInt32Array::from(new);
        for (key, values) in self.keys.iter().zip(&mut self.values).filter(|_| !new.is_empty()) {
            values.push(compact(&take(batch.column(*key), &new, None).map_err(of_arrow)?)?);
        }
        let groups = rows_of.len();
        for (group, rows) in rows_of {
            if groups == 1 {
                self.aggregates[group].add(batch)?;
            } else {
                let rows = take_record_batch(batch, &UInt32Array::from(rows)).map_err(of_arrow)?;
                self.aggregates[group].add(&rows)?;
            }
        }
        Ok(groups)
    }

    /// A record batch with a row for each group: its values in the columns that make it, then its aggregates.
    pub(crate) fn finish(self) -> Result<RecordBatch> {
        let none = Aggregates::new(&self.asked, &self.schema)?.finish()?.slice(0, 0);
        let mut parts = Vec::new();
        for aggregates in self.aggregates {
            parts.push(aggregates.finish()?);
        }
        let all = concat_batches(&none.schema(), std::iter::once(&none).chain(&parts)).map_err(of_arrow)?;
        let (mut fields, mut columns): (Vec<Field>, Vec<ArrayRef>) = (Vec::new(), Vec::new());
        for (key, values) in self.keys.iter().zip(&self.values) {
            let field = self.schema.field(*key);
            let values: Vec<&dyn Array> = values.iter().map(|values| &**values).collect();
            columns.push(match values.as_slice() {
                [] => new_empty_array(field.data_type()),
                values => concat(values).map_err(of_arrow)?,
            });
            fields.push(field.clone());
        }
        fields.extend(none.schema().fields().iter().map(|field| field.as_ref().clone()));
        columns.extend(all.columns().iter().map(ArrayRef::clone));
        RecordBatch::try_new(SchemaRef::new(Schema::new(fields)), columns).map_err(of_arrow)
    }
}

/// Adds each row's value to its key: whether there is one, its length, and its bytes.
fn append_keys(array: &ArrayRef, keys: &mut [Vec<u8>]) -> Result<()> {
    let append = |key: &mut Vec<u8>, value: Option<&[u8]>| {
        key.push(u8::from(value.is_some()));
        if let Some(value) = value {
            key.extend_from_slice(&value.len().to_le_bytes());
            key.extend_from_slice(value);
        }
    };
    downcast_primitive_array!(
        array => {
            for (key, value) in keys.iter_mut().zip(array.iter()) {
                append(key, value.as_ref().map(arrow_buffer::ToByteSlice::to_byte_slice));
            }
        }
        _ => {
            let value = bytes_of(array).ok_or_else(|| Error::internal("groups by values without an order"))?;
            for (at, key) in keys.iter_mut().enumerate() {
                append(key, array.is_valid(at).then(|| value(at)));
            }
        }
    );
    Ok(())
}
