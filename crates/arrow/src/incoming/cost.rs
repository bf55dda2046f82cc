//! What converting rows of a record batch costs, before it is done.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use marquetry_base::Price;

use super::leaf::LastDictionary;

/// The price of an entry, at each level of a nested column: what says whether it is there, its value, and the bytes that are copied of it.
pub(super) const ENTRY_PRICE: Price = Price { kib: 150, kilovalue: 12 << 10 };
/// What an array costs, besides its entries.
const ARRAY_UNITS: u64 = 800;

/// Of arrays so far.
struct Cost<'a> {
    entries: usize,
    bytes: usize,
    arrays: u64,
    /// For each leaf, the dictionary that is converted already; those of the leaves not visited.
    dictionaries: &'a [LastDictionary],
}

/// What rows cost.
pub(super) fn units(record_batch: &RecordBatch, rows: Range<usize>, dictionaries: &[LastDictionary]) -> u64 {
    let mut cost = Cost { entries: 0, bytes: 0, arrays: 0, dictionaries };
    record_batch.columns().iter().for_each(|array| cost.add(array, rows.clone()));
    ENTRY_PRICE.of(cost.bytes, cost.entries).saturating_add(cost.arrays.saturating_mul(ARRAY_UNITS))
}

impl Cost<'_> {
    /// Adds slots of an array. It recurses as deep as the types are nested, which is checked beforehand.
    fn add(&mut self, array: &ArrayRef, slots: Range<usize>) {
        self.arrays += 1;
        self.entries = self.entries.saturating_add(slots.len());
        match array.data_type() {
            DataType::Struct(_) => {
                array.as_struct().columns().iter().for_each(|column| self.add(column, slots.clone()));
            }
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                self.add(list.values(), elements(list.value_offsets(), slots));
            }
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                self.add(list.values(), elements(list.value_offsets(), slots));
            }
            DataType::FixedSizeList(_, length) => {
                let length = usize::try_from(*length).unwrap_or(0);
                let elements = slots.start.saturating_mul(length)..slots.end.saturating_mul(length);
                self.add(array.as_fixed_size_list().values(), elements);
            }
            DataType::Map(..) => {
                let map = array.as_map();
                let pairs = elements(map.value_offsets(), slots);
                self.add(map.keys(), pairs.clone());
                self.add(map.values(), pairs);
            }
            _ => self.add_leaf(array, slots),
        }
    }

    fn add_leaf(&mut self, array: &ArrayRef, slots: Range<usize>) {
        let last = self.dictionaries.split_first().and_then(|(last, rest)| {
            self.dictionaries = rest;
            last.as_ref()
        });
        let width = match array.data_type() {
            DataType::Dictionary(..) => {
                let entries = array.as_any_dictionary().values();
                if last.is_none_or(|(known, _)| !Arc::ptr_eq(known, entries)) {
                    self.entries = self.entries.saturating_add(entries.len());
                }
                4
            }
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary => 16,
            DataType::Utf8View | DataType::BinaryView => 16,
            DataType::FixedSizeBinary(width) => usize::try_from(*width).unwrap_or(0),
            other => other.primitive_width().unwrap_or(1),
        };
        self.bytes = self.bytes.saturating_add(width.saturating_mul(slots.len()));
    }
}

/// The elements of the lists in these slots.
fn elements<O: Copy + TryInto<usize>>(offsets: &[O], slots: Range<usize>) -> Range<usize> {
    let at = |slot: usize| offsets.get(slot).and_then(|&offset| offset.try_into().ok()).unwrap_or(0);
    let start = at(slots.start);
    start..at(slots.end).max(start)
}
