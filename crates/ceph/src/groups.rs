//! Aggregates by groups of rows that have the same values in some columns.

use std::collections::{BTreeMap, HashMap};

use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array, downcast_primitive_array, new_empty_array};
use arrow_buffer::ToByteSlice;
use arrow_schema::{Field, Schema, SchemaRef};
use arrow_select::concat::concat;
use arrow_select::take::{take, take_record_batch};
use marquetry_base::cast::u64_of;
use marquetry_base::{Error, Price, Result};

use crate::aggregate::{Aggregates, Asking, COMPARED_BYTES, FOLD_PRICE, bytes_of, compared, has_order};
use crate::compact::{compact, fitting_rows};
use crate::failure::of_arrow;
use crate::host::{Host, price_of};

/// Groups of one answer after which it is full; its values and aggregates in all of them; and bytes of those that have no fixed length.
const GROUPS_MAX: usize = 4096;
const CELLS_MAX: usize = 64 << 10;
const HELD_BYTES_MAX: usize = 4 << 20;
/// What it costs to look up a row's group: the values of its key, and their bytes.
const KEY_PRICE: Price = Price { kib: 1 << 10, kilovalue: 30 << 10 };
/// What a group costs that has rows in a batch, and each of its aggregates and columns; and these once more when it is a new one, which is written.
const GROUP_UNITS: u64 = 1_000;
const CELL_UNITS: u64 = 300;
/// Units after which no further rows of a first batch are taken, unless more is left of a call.
const SLICE_UNITS: u64 = 1_000_000;
/// Rows of a batch that is taken as a whole, at most and at least.
const WHOLE_ROWS: (usize, usize) = (8, 256);

/// Groups that are being aggregated.
pub(crate) struct Groups {
    /// Of a group without rows.
    none: Aggregates,
    schema: SchemaRef,
    /// The places of the columns whose values make a group.
    keys: Vec<usize>,
    numbers: HashMap<Vec<u8>, usize>,
    /// Of each group.
    aggregates: Vec<Aggregates>,
    /// Of each key column, the values of new groups, batch by batch.
    values: Vec<Vec<ArrayRef>>,
    /// Bytes of keys, and of values that aggregates keep.
    held_bytes: usize,
    /// Groups and bytes that there were before the rows that were added last.
    before: (usize, usize),
}

impl Groups {
    pub(crate) fn new(asked: &[Asking], keys: &[usize], schema: &SchemaRef) -> Result<Groups> {
        for field in keys.iter().map(|key| schema.field(*key)) {
            if !has_order(field.data_type()) {
                let message =
                    format!("rows are not grouped by {}, which is {}", field.name(), field.data_type());
                return Err(Error::unsupported(message));
            }
        }
        Ok(Groups {
            // What is wrong with an aggregate is wrong without a row, too.
            none: Aggregates::new(asked, schema)?,
            schema: SchemaRef::clone(schema),
            keys: keys.to_vec(),
            numbers: HashMap::new(),
            aggregates: Vec::new(),
            values: vec![Vec::new(); keys.len()],
            held_bytes: 0,
            before: (0, 0),
        })
    }

    /// A group's values and aggregates.
    fn width(&self) -> usize {
        self.keys.len() + self.none.len()
    }

    /// Whether it has as many groups as an answer may have, or would have them with as many more as came last: of a batch that has more, the rest
    /// would be decoded for nothing.
    pub(crate) fn is_full(&self) -> bool {
        let (groups, bytes) = (self.aggregates.len(), self.held_bytes);
        let more = (groups.saturating_sub(self.before.0), bytes.saturating_sub(self.before.1));
        self.is_over(groups + more.0, bytes + more.1)
    }

    /// Whether it has as many groups as an answer may have.
    pub(crate) fn has_all(&self) -> bool {
        self.is_over(self.aggregates.len(), self.held_bytes)
    }

    fn is_over(&self, groups: usize, bytes: usize) -> bool {
        groups >= GROUPS_MAX || groups.saturating_mul(self.width()) >= CELLS_MAX || bytes >= HELD_BYTES_MAX
    }

    /// Units, about, to add so many rows with so many values, if their groups are there.
    pub(crate) fn units_of(&self, rows: u64, values: u64) -> u64 {
        let folded = values.max(rows.saturating_mul(u64_of(self.none.len())));
        let keys = price_of(KEY_PRICE, 0, rows.saturating_mul(u64_of(self.keys.len())));
        price_of(FOLD_PRICE, 0, folded).saturating_add(keys)
    }

    /// Rows of a batch that [`add_all`](Groups::add_all) takes in about a millisecond.
    pub(crate) fn rows_at_once(&self) -> usize {
        let new = GROUP_UNITS + 2 * CELL_UNITS * u64_of(self.width());
        usize::try_from(SLICE_UNITS / new).unwrap_or(usize::MAX).clamp(WHOLE_ROWS.0, WHOLE_ROWS.1)
    }

    /// Adds the rows of a batch, from its first on: how many, at least one. Not all if that takes more than is left of the call, or
    /// the answer is full.
    pub(crate) fn add(&mut self, batch: &RecordBatch, host: &mut Host<'_>) -> Result<usize> {
        let rows = fitting_rows(batch, COMPARED_BYTES, |batch| self.none.compared_bytes(batch))?;
        // Without a group, the answer would not get on.
        let least = if self.aggregates.is_empty() { SLICE_UNITS } else { 1 };
        self.add_some(&batch.slice(0, rows), host.left_with_page().max(least), host)
    }

    /// Adds all rows of a batch.
    pub(crate) fn add_all(&mut self, batch: &RecordBatch, host: &mut Host<'_>) -> Result<()> {
        self.add_some(batch, u64::MAX, host).map(|_| ())
    }

    /// Adds rows of a batch until that has taken so many units, or the answer is full, at least one: how many. All, if `u64::MAX` may be taken.
    fn add_some(&mut self, batch: &RecordBatch, units_max: u64, host: &mut Host<'_>) -> Result<usize> {
        let keys = self.keys.iter().map(|key| key_of(batch.column(*key)));
        let keys = keys.collect::<Result<Vec<AppendKey<'_>>>>()?;
        let cells = CELL_UNITS * u64_of(self.width());
        let per_row = FOLD_PRICE.of(0, self.none.len().max(batch.num_columns()));
        let (mut rows_of, mut new) = (BTreeMap::<usize, Vec<u32>>::new(), Vec::new());
        let (mut taken, mut units, mut key) = (0, 0_u64, Vec::new());
        self.before = (self.aggregates.len(), self.held_bytes);
        for row in 0_u32.. {
            let is_enough = units_max < u64::MAX && taken > 0 && (units >= units_max || self.has_all());
            if taken == batch.num_rows() || is_enough {
                break;
            }
            key.clear();
            keys.iter().for_each(|append| append(taken, &mut key));
            units += per_row + KEY_PRICE.of(key.len(), keys.len());
            let group = match self.numbers.get(key.as_slice()) {
                Some(group) => *group,
                None => {
                    let group = self.aggregates.len();
                    self.held_bytes += key.len();
                    self.numbers.insert(key.clone(), group);
                    self.aggregates.push(self.none.clone());
                    new.push(row);
                    units += cells;
                    group
                }
            };
            let rows = rows_of.entry(group).or_insert_with(|| {
                units += GROUP_UNITS + cells;
                Vec::new()
            });
            rows.push(row);
            taken += 1;
        }
        host.charge(units);
        let batch = &batch.slice(0, taken);
        host.charge(compared(self.none.compared_bytes(batch)));
        let new = UInt32Array::from(new);
        for (key, values) in self.keys.iter().zip(&mut self.values).filter(|_| !new.is_empty()) {
            values.push(compact(&take(batch.column(*key), &new, None).map_err(of_arrow)?)?);
        }
        let is_one = rows_of.len() == 1;
        for (group, rows) in rows_of {
            let aggregates = &mut self.aggregates[group];
            let held = aggregates.held_bytes();
            if is_one {
                aggregates.add(batch)?;
            } else {
                aggregates.add(&take_record_batch(batch, &UInt32Array::from(rows)).map_err(of_arrow)?)?;
            }
            self.held_bytes = (self.held_bytes + aggregates.held_bytes()).saturating_sub(held);
        }
        Ok(taken)
    }

    /// A record batch with a row for each group: its values in the columns that make it, then its aggregates.
    pub(crate) fn finish(self) -> Result<RecordBatch> {
        let all = self.none.finish_all(&self.aggregates)?;
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
        fields.extend(all.schema().fields().iter().map(|field| field.as_ref().clone()));
        columns.extend(all.columns().iter().map(ArrayRef::clone));
        RecordBatch::try_new(SchemaRef::new(Schema::new(fields)), columns).map_err(of_arrow)
    }
}

/// Adds a row's value to its key.
type AppendKey<'a> = Box<dyn Fn(usize, &mut Vec<u8>) + 'a>;

/// What adds the values of a column to keys: whether there is one, its length, and its bytes.
fn key_of(array: &ArrayRef) -> Result<AppendKey<'_>> {
    fn append(key: &mut Vec<u8>, value: Option<&[u8]>) {
        key.push(u8::from(value.is_some()));
        if let Some(value) = value {
            key.extend_from_slice(&value.len().to_le_bytes());
            key.extend_from_slice(value);
        }
    }
    Ok(downcast_primitive_array!(
        array => Box::new(move |row: usize, key: &mut Vec<u8>| {
            let value = array.is_valid(row).then(|| array.value(row));
            append(key, value.as_ref().map(ToByteSlice::to_byte_slice));
        }) as AppendKey<'_>,
        _ => {
            let value = bytes_of(array).ok_or_else(|| Error::internal("groups by values without an order"))?;
            Box::new(move |row: usize, key: &mut Vec<u8>| {
                append(key, array.is_valid(row).then(|| value(row)));
            })
        }
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::StringArray;

    use super::*;
    use crate::aggregate::Function;
    use crate::request::Share;

    #[test]
    fn what_is_not_kept_any_more_is_not_counted() {
        let of_text = |text: &str| {
            let columns = ["key", text].map(|text| Arc::new(StringArray::from(vec![text])) as ArrayRef);
            RecordBatch::try_from_iter(["key", "text"].into_iter().zip(columns)).unwrap()
        };
        let (long, short) = (of_text(&"z".repeat(100_000)), of_text("a"));
        let asked = [("min(text)".to_owned(), Some(1), Function::Min)];
        let mut groups = Groups::new(&asked, &[0], &long.schema()).unwrap();
        let mut object: &[u8] = &[];
        let mut host = Host::new(&mut object, Share::default());
        groups.add_all(&long, &mut host).unwrap();
        assert!(groups.held_bytes >= 100_000);
        groups.add_all(&short, &mut host).unwrap();
        assert!(groups.held_bytes < 10_000, "{} bytes", groups.held_bytes);
        assert_eq!(groups.finish().unwrap().num_rows(), 1);
    }
}
