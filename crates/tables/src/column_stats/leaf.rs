//! A leaf's values, as they come.

use std::cmp::Ordering;
use std::sync::Arc;

use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::twos_complement::shortest;
use marquetry_base::{Error, Result};
use marquetry_parquet::batch::{ColumnBatch, Layout, Value, Values};
use marquetry_parquet::bloom::hash;
use marquetry_parquet::format::ColumnOrder;
use marquetry_parquet::prune::Order;
use marquetry_parquet::schema::{Leaf, Meaning, PhysicalType, Schema};

use super::distinct::{Distinct, DistinctCounter};
use super::frequent::{Frequent, FrequentValue};
use super::value::PlainValue;

/// Bytes of a bound that are kept, at most, where bytes are compared.
const BOUND_BYTES_MAX: usize = 4096;

/// Leaves from which on each takes less memory.
const MANY_LEAVES: usize = 4096;
/// Values whose frequency is counted, of a leaf, and of all leaves together.
const COUNTED_MAX: usize = 512;
const COUNTED_MIN: usize = 16;
const COUNTED_OF_ALL: usize = 1 << 20;

/// What the values of a leaf are like.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct LeafStats {
    /// Entries: values and nulls, and what stands for lists that are empty.
    pub entries: u64,
    /// Entries without a value.
    pub nulls: u64,
    /// NaNs, which are values.
    pub nans: u64,
    /// The smallest value that is not NaN, by the order of the leaf's type. `None` if it has none.
    pub min: Option<PlainValue>,
    /// The greatest.
    pub max: Option<PlainValue>,
    /// Different values. Both zeros are one, and all NaNs are.
    pub distinct: Distinct,
    /// The most frequent values, the most frequent one first; at most ten. Missing are those that may be less frequent
    /// than others that are not here: of a leaf whose values are all different there is none.
    pub frequent: Vec<FrequentValue>,
    /// Of BYTE_ARRAY: bytes of all values, and of the longest.
    pub bytes: Option<(u64, u64)>,
}

impl LeafStats {
    /// Entries with a value.
    pub fn values(&self) -> u64 {
        self.entries.saturating_sub(self.nulls)
    }

    /// Of BYTE_ARRAY: the bytes of a value, on average.
    #[expect(clippy::cast_precision_loss, reason = "a mean needs no more digits")]
    pub fn bytes_mean(&self) -> Option<f64> {
        self.bytes.filter(|_| self.values() > 0).map(|(bytes, _)| bytes as f64 / self.values() as f64)
    }
}

/// What is known of a leaf's values so far.
pub(super) struct LeafSummary {
    order: Option<Order>,
    stats: LeafStats,
    distinct: DistinctCounter,
    frequent: Frequent,
    /// The dictionary of the last values, and how often each of its entries came.
    dictionary: Option<(Arc<Values>, Vec<u64>)>,
}

impl LeafSummary {
    /// Of one of so many leaves.
    pub(super) fn new(schema: &Schema, leaf: &Leaf, leaves: usize) -> LeafSummary {
        let logical_type = schema.node_of(leaf).logical_type.as_ref();
        let column_order = match schema.meaning_of(leaf).read_as(leaf.physical_type) {
            Meaning::Int96 => ColumnOrder::Int96Timestamp,
            _ => ColumnOrder::TypeDefined,
        };
        let bytes = (leaf.physical_type == PhysicalType::ByteArray).then_some((0, 0));
        LeafSummary {
            order: Order::of(leaf.physical_type, logical_type, column_order),
            stats: LeafStats { bytes, ..LeafStats::default() },
            distinct: DistinctCounter::of_one(leaves > MANY_LEAVES),
            frequent: Frequent::new((COUNTED_OF_ALL / leaves.max(1)).clamp(COUNTED_MIN, COUNTED_MAX)),
            dictionary: None,
        }
    }

    /// Adds the values of a batch.
    pub(super) fn add(&mut self, column: &ColumnBatch) -> Result<()> {
        let entries = column.levels.as_ref().map_or(column.rows, |levels| levels.definition.len());
        self.stats.entries = self.stats.entries.saturating_add(u64_of(entries));
        self.stats.nulls = self.stats.nulls.saturating_add(u64_of(column.nulls));
        let is_spaced = column.levels.is_none() && column.layout == Layout::Spaced;
        let places = (0..column.values.len()).filter(|place| !is_spaced || !column.is_null(*place));
        let Values::Dictionary(indices, values) = &column.values else {
            for place in places {
                self.value_at(&column.values, place, 1)?;
            }
            return Ok(());
        };
        if self.dictionary.as_ref().is_none_or(|(known, _)| !Arc::ptr_eq(known, values)) {
            self.end_dictionary()?;
            self.dictionary = Some((Arc::clone(values), vec![0; values.len()]));
        }
        let Some((_, counts)) = &mut self.dictionary else { return Ok(()) };
        for place in places {
            let count = indices.get(place).and_then(|index| counts.get_mut(usize_of_u32(*index)));
            *count.ok_or_else(no_value)? += 1;
        }
        Ok(())
    }

    /// What all of its values are like.
    pub(super) fn finish(mut self) -> LeafStats {
        // It was looked at before.
        let _ = self.end_dictionary();
        let values = self.stats.entries.saturating_sub(self.stats.nulls);
        LeafStats {
            distinct: self.distinct.count().of_values(values),
            frequent: self.frequent.finish(),
            ..self.stats
        }
    }

    fn end_dictionary(&mut self) -> Result<()> {
        let Some((values, counts)) = self.dictionary.take() else { return Ok(()) };
        for (entry, count) in counts.into_iter().enumerate().filter(|(_, count)| *count > 0) {
            self.value_at(&values, entry, count)?;
        }
        Ok(())
    }

    fn value_at(&mut self, values: &Values, place: usize, count: u64) -> Result<()> {
        match Value::of_values(values, place).ok_or_else(no_value)? {
            Value::Boolean(value) => self.value(&[u8::from(value)], count),
            Value::Int32(value) => self.value(&value.to_le_bytes(), count),
            Value::Int64(value) => self.value(&value.to_le_bytes(), count),
            // Both zeros are one value, and so are all NaNs.
            Value::Float(value) => {
                let one = if value.is_nan() { f32::NAN } else { value + 0.0 };
                self.value(&one.to_le_bytes(), count);
            }
            Value::Double(value) => {
                let one = if value.is_nan() { f64::NAN } else { value + 0.0 };
                self.value(&one.to_le_bytes(), count);
            }
            Value::Bytes(value) => match self.order {
                Some(Order::Float16 | Order::Float16Total) => self.half(value, count),
                Some(Order::Decimal) => self.value(shortest(value), count),
                _ => self.value(value, count),
            },
        }
        if let (Some((sum, most)), Value::Bytes(value)) =
            (&mut self.stats.bytes, Value::of_values(values, place).ok_or_else(no_value)?)
        {
            let bytes = u64_of(value.len());
            *sum = sum.saturating_add(bytes.saturating_mul(count));
            *most = (*most).max(bytes);
        }
        Ok(())
    }

    fn half(&mut self, value: &[u8], count: u64) {
        const NAN: [u8; 2] = 0x7e00_u16.to_le_bytes();
        match value {
            [0, 0x80] => self.value(&[0, 0], count),
            _ if Order::Float16.is_nan(value) => self.value(&NAN, count),
            _ => self.value(value, count),
        }
    }

    fn value(&mut self, value: &[u8], count: u64) {
        let hash = hash(value);
        self.distinct.add(hash);
        self.frequent.add(hash, value, count);
        let Some(order) = self.order else { return };
        if order.is_nan(value) {
            self.stats.nans = self.stats.nans.saturating_add(count);
            return;
        }
        // Where bytes are compared, of a long value its beginning is the smallest and the greatest of beginnings.
        let compared = if order == Order::Bytes { &value[..value.len().min(BOUND_BYTES_MAX)] } else { value };
        for (bound, is_beyond) in
            [(&mut self.stats.min, Ordering::Less), (&mut self.stats.max, Ordering::Greater)]
        {
            let is_new = match bound {
                None => order.is_valid(value),
                Some(bound) => order.compare(compared, &bound.bytes) == Some(is_beyond),
            };
            if is_new {
                *bound = Some(PlainValue::of(value, compared.len()));
            }
        }
    }
}

#[cold]
fn no_value() -> Error {
    Error::internal("a value that is not there")
}
