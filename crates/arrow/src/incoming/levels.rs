//! Definition and repetition levels of nested arrays.
//!
//! Source: parquet-format's `README.md`, "Nested Encoding"; Arrow's columnar format.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field};
use marquetry_base::{Error, Result};
use marquetry_parquet::batch::Levels;

use super::live::{Live, live_of};

/// A field's entries: as many as a leaf at this level has.
#[derive(Debug, Clone)]
pub(super) struct Slots {
    /// The definition level of each.
    pub(super) definition: Vec<u8>,
    /// The repetition level of each, if the field is in a list.
    repetition: Option<Vec<u8>>,
    /// The slots of the array for the entries that are defined at this level, in order.
    pub(super) live: Live,
    /// The definition level of those.
    level: u8,
    /// Lists around it.
    lists: u8,
}

/// Visits each leaf below an array of `rows` rows, in order, with its array, its field and its entries.
///
/// # Errors
///
/// `Misuse` for nulls in a field that is not nullable; the errors of `leaf`.
pub(super) fn walk(
    array: &ArrayRef,
    field: &Field,
    rows: usize,
    leaf: &mut dyn FnMut(&ArrayRef, &Field, Slots) -> Result<()>,
) -> Result<()> {
    let all =
        Slots { definition: vec![0; rows], repetition: None, live: Live::Range(0..rows), level: 0, lists: 0 };
    below(array, field, all, leaf)
}

/// It recurses as deep as the types are nested, which is checked beforehand.
fn below(
    array: &ArrayRef,
    field: &Field,
    slots: Slots,
    leaf: &mut dyn FnMut(&ArrayRef, &Field, Slots) -> Result<()>,
) -> Result<()> {
    let slots = slots.of_array(array.as_ref(), field)?;
    match array.data_type() {
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            fields
                .iter()
                .zip(columns)
                .try_for_each(|(field, column)| below(column, field, slots.clone(), leaf))
        }
        DataType::List(element) => {
            let list = array.as_list::<i32>();
            let offsets = list.value_offsets();
            let bounds = |slot: usize| index(offsets[slot].into())..index(offsets[slot + 1].into());
            below(list.values(), element, slots.elements(bounds)?, leaf)
        }
        DataType::LargeList(element) => {
            let list = array.as_list::<i64>();
            let offsets = list.value_offsets();
            let bounds = |slot: usize| index(offsets[slot])..index(offsets[slot + 1]);
            below(list.values(), element, slots.elements(bounds)?, leaf)
        }
        DataType::FixedSizeList(element, length) => {
            let (list, length) = (array.as_fixed_size_list(), index((*length).into()));
            let bounds = |slot: usize| slot * length..(slot + 1) * length;
            below(list.values(), element, slots.elements(bounds)?, leaf)
        }
        DataType::Map(entries, _) => {
            let (map, DataType::Struct(pair)) = (array.as_map(), entries.data_type()) else {
                return Err(Error::internal("a map whose entries are not pairs"));
            };
            let offsets = map.value_offsets();
            let bounds = |slot: usize| index(offsets[slot].into())..index(offsets[slot + 1].into());
            let slots = slots.elements(bounds)?;
            // Keys are never null, whatever their field says.
            let key = Arc::new(pair[0].as_ref().clone().with_nullable(false));
            below(map.keys(), &key, slots.clone(), leaf)?;
            below(map.values(), &pair[1], slots, leaf)
        }
        _ => leaf(array, field, slots),
    }
}

/// An offset, which Arrow has checked.
fn index(offset: i64) -> usize {
    usize::try_from(offset).unwrap_or(0)
}

impl Slots {
    /// Entries.
    pub(super) fn entries(&self) -> usize {
        self.definition.len()
    }

    pub(super) fn into_levels(self) -> Levels {
        Levels { definition: self.definition.into(), repetition: self.repetition.map(Into::into) }
    }

    /// With the nulls of an array.
    fn of_array(mut self, array: &dyn Array, field: &Field) -> Result<Slots> {
        // All slots of Null are null, whatever its field says.
        let is_nullable = field.is_nullable() || *array.data_type() == DataType::Null;
        let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        if !is_nullable {
            // Below a null, slots may be null: those do not count.
            let is_null = |slot| nulls.as_ref().is_some_and(|nulls| nulls.is_null(slot));
            if self.live.iter().any(is_null) {
                let name = field.name().clone();
                let error = Error::misuse("nulls in a field that is not nullable by its schema");
                return Err(error.at(|place| place.column = Some(name)));
            }
            return Ok(self);
        }
        let level = self.level + 1;
        match nulls {
            None => {
                self.definition.iter_mut().filter(|it| **it == self.level).for_each(|it| *it = level);
            }
            Some(nulls) => {
                let mut live = Vec::with_capacity(self.live.len());
                if self.level == 0 && self.repetition.is_none() && matches!(self.live, Live::Range(_)) {
                    // Of a column of the root each row is an entry.
                    let Live::Picks(picks) = live_of(array) else { return Err(Error::internal("no null")) };
                    picks.iter().for_each(|slot| self.definition[*slot] = level);
                    live = picks;
                } else {
                    let mut slots = self.live.iter();
                    for definition in self.definition.iter_mut().filter(|it| **it == self.level) {
                        let Some(slot) = slots.next() else { break };
                        if nulls.is_valid(slot) {
                            *definition = level;
                            live.push(slot);
                        }
                    }
                }
                self.live = Live::Picks(live);
            }
        }
        self.level = level;
        Ok(self)
    }

    /// The entries of a list's elements; `bounds` returns the elements of each slot.
    fn elements(self, bounds: impl Fn(usize) -> Range<usize>) -> Result<Slots> {
        let (level, lists) = (self.level + 1, self.lists + 1);
        let (mut definition, mut repetition) = (Vec::new(), Vec::new());
        let mut live = Vec::new();
        let mut slots = self.live.iter();
        for (entry, &defined) in self.definition.iter().enumerate() {
            let repeated = self.repetition.as_ref().map_or(0, |levels| levels[entry]);
            let elements = match defined == self.level {
                true => bounds(slots.next().ok_or_else(|| Error::internal("an entry without a slot"))?),
                false => 0..0,
            };
            if elements.is_empty() {
                definition.push(defined);
                repetition.push(repeated);
                continue;
            }
            definition.resize(definition.len() + elements.len(), level);
            repetition.push(repeated);
            repetition.resize(definition.len(), lists);
            live.extend(elements);
        }
        // Usually they are contiguous.
        let live = match (live.first(), live.last()) {
            (Some(&first), Some(&last)) if last - first + 1 == live.len() && live.is_sorted() => {
                Live::Range(first..last + 1)
            }
            (None, _) | (_, None) => Live::Range(0..0),
            _ => Live::Picks(live),
        };
        drop(slots);
        Ok(Slots { definition, repetition: Some(repetition), live, level, lists })
    }
}
