//! Rows, or partial results, are put together group by group.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::sync::Arc;

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Error, Result};
use marquetry_parquet::batch::{Batch, ColumnBatch, FixedBytes, Layout, Value, Values};
use marquetry_parquet::schema::{PhysicalType, Schema};

use super::form::canonical;
use super::partials::Partials;
use super::state::{Part, State, with_plain};
use crate::spaced;

/// Groups, at most: all of them are in memory.
const GROUPS_MAX: usize = 1 << 22;
/// Bytes that they take, at most: texts that make groups, or are the smallest of one, may be of any length.
const BYTES_MAX: usize = 1 << 30;

/// Groups of rows, as far as rows came.
pub(crate) struct Fold {
    of: Arc<Partials>,
    /// Partial results are put together, not rows.
    is_merge: bool,
    /// A group's number, by its key: of each value whether there is one, its length, and its bytes.
    numbers: HashMap<Vec<u8>, usize>,
    groups: Vec<Group>,
    /// Bytes that the groups take, and may take.
    bytes: usize,
    bytes_max: usize,
}

struct Group {
    /// The values that make it, PLAIN, but BYTE_ARRAY without a length.
    values: Vec<Option<Vec<u8>>>,
    states: Vec<State>,
}

impl Fold {
    pub(crate) fn of_rows(of: &Arc<Partials>) -> Fold {
        let (of, numbers) = (Arc::clone(of), HashMap::new());
        Fold { of, is_merge: false, numbers, groups: Vec::new(), bytes: 0, bytes_max: BYTES_MAX }
    }

    pub(crate) fn of_partials(of: &Arc<Partials>) -> Fold {
        Fold { is_merge: true, ..Fold::of_rows(of) }
    }

    /// Adds the rows of a batch.
    pub(crate) fn add(&mut self, batch: Batch) -> Result<()> {
        let (batch, of) = (spaced(batch), Arc::clone(&self.of));
        let column = |leaf: usize| {
            let column = batch.columns.get(leaf).filter(|column| column.rows == batch.rows);
            column.ok_or_else(|| Error::misuse("a batch of another schema"))
        };
        let group_at = |(place, leaf): (usize, &usize)| column(if self.is_merge { place } else { *leaf });
        let keys = of.groups.iter().enumerate().map(group_at).collect::<Result<Vec<_>>>()?;
        let part_at = |(place, part): (usize, &Part)| match part.leaf {
            _ if self.is_merge => column(of.groups.len() + place).map(Some),
            Some(leaf) => column(leaf).map(Some),
            None => Ok(None),
        };
        let parts = of.parts.iter().enumerate().map(part_at).collect::<Result<Vec<_>>>()?;
        let orders = of.group_orders()?;
        let mut key = Vec::new();
        for row in 0..batch.rows {
            key.clear();
            for (column, (order, physical_type)) in keys.iter().zip(&orders) {
                match value(column, row)? {
                    None => key.push(0),
                    Some(value) => with_plain(value, |bytes| {
                        append(&mut key, &canonical(*order, *physical_type, bytes))
                    })?,
                }
            }
            let group = match self.numbers.get(key.as_slice()) {
                Some(group) => *group,
                None => {
                    let values = keys.iter().zip(&orders).map(|(column, (order, physical_type))| {
                        let plain = |bytes: &[u8]| canonical(*order, *physical_type, bytes).into_owned();
                        Ok(value(column, row)?.map(|value| with_plain(value, plain)))
                    });
                    let values = values.collect::<Result<_>>()?;
                    self.begin(key.clone(), values)?
                }
            };
            let Some(Group { states, .. }) = self.groups.get_mut(group) else { continue };
            for ((state, part), column) in states.iter_mut().zip(&of.parts).zip(&parts) {
                let value = match column {
                    Some(column) => value(column, row)?,
                    None => None,
                };
                let before = state.bytes();
                state.add(part, value, self.is_merge)?;
                self.bytes = self.bytes - before + state.bytes();
            }
        }
        self.check()
    }

    /// Adds rows of which nothing is known but how many they are: of all rows alone, without groups.
    pub(super) fn count(&mut self, rows: u64) -> Result<()> {
        self.all()?;
        let counted = self.groups.first_mut().and_then(|group| group.states.first_mut());
        if let Some(State::Count(count)) = counted {
            *count += rows;
        }
        Ok(())
    }

    /// A group that has no rows yet: its number.
    fn begin(&mut self, key: Vec<u8>, values: Vec<Option<Vec<u8>>>) -> Result<usize> {
        let number = self.groups.len();
        if number >= GROUPS_MAX {
            return Err(Error::too_large(format!("aggregates of more than {GROUPS_MAX} groups")));
        }
        let states: Vec<State> = self.of.parts.iter().map(State::new).collect();
        let lengths = values.iter().flatten().map(Vec::len).sum::<usize>() + key.len();
        let held = size_of_val(&*values) + size_of_val(&*states) + size_of::<(Vec<u8>, usize, Group)>();
        self.bytes = self.bytes.saturating_add(lengths + held);
        self.check()?;
        self.numbers.insert(key, number);
        self.groups.push(Group { values, states });
        Ok(number)
    }

    /// Whether the groups take no more bytes than they may.
    fn check(&self) -> Result<()> {
        if self.bytes > self.bytes_max {
            return Err(Error::too_large(format!(
                "aggregates of groups of more than {} bytes",
                self.bytes_max
            )));
        }
        Ok(())
    }

    /// All rows are one group, unless columns make groups: even if there are none.
    fn all(&mut self) -> Result<()> {
        if self.of.groups.is_empty() && self.groups.is_empty() {
            self.begin(Vec::new(), Vec::new())?;
        }
        Ok(())
    }

    /// Partial results: a row for each group.
    pub(crate) fn partial(mut self) -> Result<Batch> {
        self.all()?;
        let rows = self.groups.into_iter().map(|Group { mut values, states }| {
            values.extend(states.iter().map(State::plain));
            values
        });
        batch_of(&self.of.schema, rows.collect())
    }

    /// The result: a row for each group, in the order of the values that make them; nulls are last.
    pub(super) fn result(mut self) -> Result<Batch> {
        self.all()?;
        let orders = self.of.group_orders()?;
        self.groups.sort_by(|a, b| {
            let compared = a.values.iter().zip(&b.values).zip(&orders);
            let compared = compared.map(|((a, b), (order, _))| match (a, b) {
                (Some(a), Some(b)) => order.compare(a, b).unwrap_or_else(|| a.cmp(b)),
                _ => b.is_some().cmp(&a.is_some()),
            });
            compared.fold(Ordering::Equal, Ordering::then)
        });
        let mut rows = Vec::with_capacity(self.groups.len());
        for Group { mut values, states } in self.groups {
            values.extend(self.of.finished(&states)?);
            rows.push(values);
        }
        batch_of(&self.of.result, rows)
    }
}

/// The value of a column with slots for nulls, in a row.
fn value(column: &ColumnBatch, row: usize) -> Result<Option<Value<'_>>> {
    if column.is_null(row) {
        return Ok(None);
    }
    let value = Value::of_values(&column.values, row);
    value.map(Some).ok_or_else(|| Error::misuse("a batch with fewer values than rows"))
}

/// Adds a value to a key, which has 0 for null.
fn append(key: &mut Vec<u8>, bytes: &[u8]) -> Result<()> {
    let length = u32::try_from(bytes.len()).map_err(|_| Error::too_large("a value that makes a group"))?;
    key.push(1);
    key.extend_from_slice(&length.to_le_bytes());
    key.extend_from_slice(bytes);
    Ok(())
}

/// Rows of PLAIN values, but BYTE_ARRAY without a length, as a batch.
fn batch_of(schema: &Schema, rows: Vec<Vec<Option<Vec<u8>>>>) -> Result<Batch> {
    let mut columns = Vec::with_capacity(schema.leaves().len());
    for (number, leaf) in schema.leaves().iter().enumerate() {
        let values: Vec<Option<&[u8]>> =
            rows.iter().map(|row| row.get(number).and_then(Option::as_deref)).collect();
        let nulls = values.iter().filter(|value| value.is_none()).count();
        let validity = (nulls > 0).then(|| values.iter().map(Option::is_some).collect());
        columns.push(ColumnBatch {
            leaf: number,
            rows: rows.len(),
            nulls,
            validity,
            values: values_of(leaf.physical_type, &values),
            layout: Layout::Spaced,
            levels: None,
            provisional: false,
        });
    }
    let batch = Batch { row_group: 0, first_row: 0, rows: rows.len(), columns };
    batch.check(schema)?;
    Ok(batch)
}

fn values_of(physical_type: PhysicalType, values: &[Option<&[u8]>]) -> Values {
    fn numbers<const N: usize, T>(values: &[Option<&[u8]>], of: fn([u8; N]) -> T) -> Vec<T> {
        let number = |value: &Option<&[u8]>| value.and_then(|bytes| bytes.first_chunk::<N>()).copied();
        values.iter().map(|value| of(number(value).unwrap_or([0; N]))).collect()
    }
    let fixed = |width: usize| {
        let mut bytes = Vec::with_capacity(width * values.len());
        for value in values {
            let end = bytes.len() + width;
            bytes.extend_from_slice(value.unwrap_or_default());
            bytes.resize(end, 0);
        }
        FixedBytes::new(width, values.len(), bytes.into())
    };
    match physical_type {
        PhysicalType::Boolean => {
            Values::Boolean(values.iter().map(|value| value.is_some_and(|bytes| bytes == [1])).collect())
        }
        PhysicalType::Int32 => numbers(values, i32::from_le_bytes).into(),
        PhysicalType::Int64 => numbers(values, i64::from_le_bytes).into(),
        PhysicalType::Float => numbers(values, f32::from_le_bytes).into(),
        PhysicalType::Double => numbers(values, f64::from_le_bytes).into(),
        PhysicalType::ByteArray => values.iter().map(|value| value.unwrap_or_default()).collect(),
        PhysicalType::Int96 => Values::Int96(fixed(12)),
        PhysicalType::FixedLenByteArray(width) => Values::FixedLenByteArray(fixed(usize_of_u32(width))),
    }
}

#[cfg(test)]
mod tests {
    use marquetry_base::ErrorKind;

    use super::*;
    use crate::{Aggregates, ColumnPath};
    use marquetry_parquet::schema::{FieldDef, FieldType};

    /// Groups are refused by their bytes: those of the values that make them, and of the largest in each.
    #[test]
    fn groups_take_some_memory_at_most() {
        let text = FieldDef::new("x", FieldType::Leaf(PhysicalType::ByteArray, None));
        let schema = Arc::new(Schema::of_fields(&[text]).unwrap());
        let few = |bytes_max: usize, asked: &str, groups: &[&str], leaves: &[Option<usize>]| {
            let groups: Vec<ColumnPath> = groups.iter().map(|name| ColumnPath::of([*name])).collect();
            let places = (vec![0; groups.len()], leaves);
            let asked = Aggregates::parse(asked).unwrap().by(groups);
            let of = Arc::new(Partials::plan(&asked, &schema, places).unwrap());
            let mut fold = Fold { bytes_max, ..Fold::of_rows(&of) };
            for letter in ["a", "b", "a"] {
                let long = letter.repeat(1000);
                fold.add(Batch::of_values(vec![[long.as_str()].into_iter().collect()])?)?;
            }
            fold.result()
        };
        assert_eq!(few(6000, "count(*)", &["x"], &[None]).unwrap().rows, 2);
        let refused = few(4000, "count(*)", &["x"], &[None]).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::LimitExceeded);
        assert_eq!(few(1500, "max(x)", &[], &[Some(0)]).unwrap().rows, 1);
        assert!(few(1000, "max(x)", &[], &[Some(0)]).is_err());
    }
}
