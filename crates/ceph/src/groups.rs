//! Aggregates by groups of rows that have the same values in some columns.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array, new_empty_array};
use arrow_schema::{Field, Schema, SchemaRef};
use arrow_select::concat::concat;
use arrow_select::take::take;
use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::{Error, Price, Result};

use crate::aggregate::{Aggregates, Asking, COMPARED_BYTES, FOLD_PRICE, compared, has_order};
use crate::compact::{compact, fitting_rows};
use crate::failure::of_arrow;
use crate::host::{Host, price_of};
use crate::keys::Keys;
use crate::states::of_bytes;

/// Groups of one answer after which it is full; its values and aggregates in all of them; and bytes of those that have no fixed length.
const GROUPS_MAX: usize = 4096;
const CELLS_MAX: usize = 64 << 10;
const HELD_BYTES_MAX: usize = 4 << 20;
/// What it costs to look up a row's group: the values of its key, and their bytes.
const KEY_PRICE: Price = Price { kib: 1 << 10, kilovalue: 15 << 10 };
/// What a new group costs, and each of its aggregates and columns: it is kept, and written.
const GROUP_UNITS: u64 = 500;
const CELL_UNITS: u64 = 200;
/// Units after which no further rows of a first batch are taken, unless more is left of a call.
const SLICE_UNITS: u64 = 1_000_000;
/// Rows that are added at a time, at most and at least; and values and aggregates of as many groups, which all of them may make.
const ROWS_AT_ONCE: (usize, usize) = (8, 256);
const CELLS_AT_ONCE: usize = 4096;

/// Groups that are being aggregated.
pub(crate) struct Groups {
    schema: SchemaRef,
    /// The places of the columns whose values make a group.
    keys: Vec<usize>,
    numbers: Keys,
    /// Of each group.
    aggregates: Aggregates,
    /// How many there are.
    groups: usize,
    /// Of each key column, the values of new groups, batch by batch; and the bytes of those that have no fixed length.
    values: Vec<Vec<ArrayRef>>,
    value_bytes: usize,
    /// Groups and bytes that there were before the rows that were added last.
    before: (usize, usize),
}

impl Groups {
    pub(crate) fn new(asked: &[Asking], keys: &[usize], schema: &SchemaRef) -> Result<Groups> {
        let fields = || keys.iter().map(|key| schema.field(*key));
        for field in fields() {
            if !has_order(field.data_type()) {
                let message =
                    format!("rows are not grouped by {}, which is {}", field.name(), field.data_type());
                return Err(Error::unsupported(message));
            }
        }
        Ok(Groups {
            schema: SchemaRef::clone(schema),
            keys: keys.to_vec(),
            numbers: Keys::new(fields().map(Field::data_type)),
            // What is wrong with an aggregate is wrong without a row, too.
            aggregates: Aggregates::new(asked, schema)?,
            groups: 0,
            values: vec![Vec::new(); keys.len()],
            value_bytes: 0,
            before: (0, 0),
        })
    }

    /// A group's values and aggregates.
    fn width(&self) -> usize {
        self.keys.len() + self.aggregates.len()
    }

    /// Bytes of keys, and of values that aggregates keep.
    fn held_bytes(&self) -> usize {
        self.numbers.held_bytes() + self.value_bytes + self.aggregates.held_bytes()
    }

    /// Whether it has as many groups as an answer may have, or would have them with as many more as came last: of a batch that has more, the rest
    /// would be decoded for nothing.
    pub(crate) fn is_full(&self) -> bool {
        let (groups, bytes) = (self.groups, self.held_bytes());
        let more = (groups.saturating_sub(self.before.0), bytes.saturating_sub(self.before.1));
        self.is_over(groups + more.0, bytes + more.1)
    }

    /// Whether it has as many groups as an answer may have.
    pub(crate) fn has_all(&self) -> bool {
        self.is_over(self.groups, self.held_bytes())
    }

    fn is_over(&self, groups: usize, bytes: usize) -> bool {
        groups >= GROUPS_MAX || groups.saturating_mul(self.width()) >= CELLS_MAX || bytes >= HELD_BYTES_MAX
    }

    /// Units, about, to add so many rows with so many values, if their groups are there.
    pub(crate) fn units_of(&self, rows: u64, values: u64) -> u64 {
        let folded = values.max(rows.saturating_mul(u64_of(self.aggregates.len())));
        let keys = price_of(KEY_PRICE, 0, rows.saturating_mul(u64_of(self.keys.len())));
        price_of(FOLD_PRICE, 0, folded).saturating_add(keys)
    }

    /// Rows that are added at a time: no more groups than these may be made beyond those that an answer may have.
    pub(crate) fn rows_at_once(&self) -> usize {
        (CELLS_AT_ONCE / self.width().max(1)).clamp(ROWS_AT_ONCE.0, ROWS_AT_ONCE.1)
    }

    /// Adds the rows of a batch, from its first on: how many, at least one. Not all if that takes more than is left of the call, or
    /// the answer is full.
    pub(crate) fn add(&mut self, batch: &RecordBatch, host: &mut Host<'_>) -> Result<usize> {
        let rows = fitting_rows(batch, COMPARED_BYTES, |batch| self.aggregates.compared_bytes(batch))?;
        // Without a group, the answer would not get on.
        let least = if self.groups == 0 { SLICE_UNITS } else { 1 };
        self.add_some(&batch.slice(0, rows), host.left_with_page().max(least), host)
    }

    /// Adds all rows of a batch.
    pub(crate) fn add_all(&mut self, batch: &RecordBatch, host: &mut Host<'_>) -> Result<()> {
        self.add_some(batch, u64::MAX, host).map(|_| ())
    }

    /// Adds rows of a batch until that has taken so many units, or the answer is full: how many. All, if `u64::MAX` may be taken.
    fn add_some(&mut self, batch: &RecordBatch, units_max: u64, host: &mut Host<'_>) -> Result<usize> {
        self.before = (self.groups, self.held_bytes());
        let (mut taken, begun, at_once) = (0, host.work().units, self.rows_at_once());
        while taken < batch.num_rows() {
            let is_enough = host.work().units - begun >= units_max || self.has_all();
            if units_max < u64::MAX && taken > 0 && is_enough {
                break;
            }
            let rows = at_once.min(batch.num_rows() - taken);
            self.add_rows(&batch.slice(taken, rows), host)?;
            taken += rows;
        }
        Ok(taken)
    }

    /// Adds all of some rows.
    fn add_rows(&mut self, batch: &RecordBatch, host: &mut Host<'_>) -> Result<()> {
        let keys: Vec<&ArrayRef> = self.keys.iter().map(|key| batch.column(*key)).collect();
        let (numbers, key_bytes) = self.numbers.number(&keys)?;
        let mut new = Vec::new();
        for (row, number) in (0_u32..).zip(numbers) {
            // They have numbers in the order of their first rows.
            if usize_of_u32(*number) == self.groups {
                self.groups += 1;
                new.push(row);
            }
        }
        let (rows, aggregates) = (batch.num_rows(), &mut self.aggregates);
        let folded = FOLD_PRICE.of(0, rows * aggregates.len().max(batch.num_columns()));
        host.charge(folded + KEY_PRICE.of(key_bytes, rows * keys.len()));
        host.charge(compared(aggregates.compared_bytes(batch)));
        aggregates.grow(self.groups);
        aggregates.add_to(numbers, batch)?;
        if new.is_empty() {
            return Ok(());
        }
        host.charge(u64_of(new.len()) * (GROUP_UNITS + CELL_UNITS * u64_of(self.width())));
        let new = UInt32Array::from(new);
        for (key, values) in keys.into_iter().zip(&mut self.values) {
            let made = compact(&take(key, &new, None).map_err(of_arrow)?)?;
            self.value_bytes += bytes_of(&made);
            values.push(made);
        }
        Ok(())
    }

    /// A record batch with a row for each group: its values in the columns that make it, then its aggregates.
    pub(crate) fn finish(self) -> Result<RecordBatch> {
        let all = self.aggregates.finish()?;
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

/// Bytes of texts and bytes; none of other values.
fn bytes_of(array: &ArrayRef) -> usize {
    of_bytes!(
        array => (0..array.len()).filter(|at| array.is_valid(*at)).map(|at| array.value(at).len()).sum(),
        0
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::{Decimal128Type, UInt64Type};
    use arrow_array::{Int64Array, StringArray};

    use super::*;
    use crate::aggregate::Function;
    use crate::request::Share;

    /// An answer that is full ends within a batch, and the groups before are all that it has.
    #[test]
    fn groups_that_are_too_many_end_a_batch() {
        let rows = 20_000;
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
        let batch = RecordBatch::try_from_iter([("key", keys)]).unwrap();
        let asked = [
            ("count(*)".to_owned(), None, Function::Count),
            ("max(key)".to_owned(), Some(0), Function::Max),
            ("sum(key)".to_owned(), Some(0), Function::Sum),
        ];
        let mut object: &[u8] = &[];
        let mut host = Host::new(&mut object, Share { units: u64::MAX / 2, ..Share::default() });
        let mut groups = Groups::new(&asked, &[0], &batch.schema()).unwrap();
        let taken = groups.add(&batch, &mut host).unwrap();
        assert!(
            (GROUPS_MAX..GROUPS_MAX + ROWS_AT_ONCE.1).contains(&taken) && groups.has_all(),
            "{taken} rows"
        );
        // The same ones again make no more.
        assert_eq!(groups.add(&batch.slice(0, 100), &mut host).unwrap(), 100);
        let made = groups.finish().unwrap();
        assert_eq!(made.num_rows(), taken);
        let counts = made.column(1).as_primitive::<UInt64Type>();
        let (sums, largest) = (made.column(3).as_primitive::<Decimal128Type>(), made.column(2));
        assert_eq!(largest, made.column(0));
        assert_eq!((counts.value(99), counts.value(100)), (2, 1));
        assert_eq!((sums.value(99), sums.value(100)), (198, 100));
    }

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
        assert!(groups.held_bytes() >= 100_000);
        groups.add_all(&short, &mut host).unwrap();
        assert!(groups.held_bytes() < 10_000, "{} bytes", groups.held_bytes());
        assert_eq!(groups.finish().unwrap().num_rows(), 1);
    }
}
