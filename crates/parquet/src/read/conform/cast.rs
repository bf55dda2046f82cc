//! Values as those of a wider type, without the slots of nulls, and with other levels: in slices.

use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::{Bitmap, Budget, Buffer, Bytes, Error, Price, Release, Result, release_all};
use marquetry_kernels::strings;

use super::LeafPlan;
use crate::batch::{ByteArrays, ColumnBatch, FixedBytes, Layout, Levels, Values};
use crate::growing::{COPY_PRICE, ROOM_PRICE};
use crate::schema::Widening;

/// What a level, or a value that is changed, costs.
pub(super) const VALUE_PRICE: Price = Price::per_kilovalue(3 << 10);
/// Levels or values that are changed at a time.
const SLICE: usize = 4096;
/// Bytes of values of a fixed length that are copied at a time; one value may be more.
const SLICE_BYTES: usize = 32 << 10;

/// A dictionary that was widened, and what became of it: batch after batch has the same one.
pub(super) type LastDictionary = Option<(Arc<Values>, Arc<Values>)>;

impl Release for Change {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.definition, &mut self.compact, &mut self.partial], budget)
    }
}

impl Release for Partial {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let Partial { bytes, repetition, int32, int64, float, double, views, indices, .. } = self;
        release_all(&mut [bytes, repetition, int32, int64, float, double, views, indices], budget)
    }
}

/// A column that is being changed.
#[derive(Debug, Default)]
pub(super) struct Change {
    definition: Option<Buffer<u8>>,
    compact: Option<Values>,
    partial: Partial,
}

/// An array that is being made of another: of the latter, how many are looked at; of the former, what there is. Only one of its
/// vectors is in use at a time, but for levels, of which there are two kinds.
#[derive(Debug, Default)]
pub(super) struct Partial {
    at: usize,
    /// Bits that there are.
    picked: usize,
    bytes: Vec<u8>,
    repetition: Vec<u8>,
    int32: Vec<i32>,
    int64: Vec<i64>,
    float: Vec<f32>,
    double: Vec<f64>,
    views: Vec<u128>,
    indices: Vec<u32>,
}

impl Change {
    /// Does a part of the change of a column, whose levels are mapped by a level of the other schema for each of the
    /// file's, if they do not stay; gives the changed one after the last. `None` when the budget is spent: call again, with
    /// the same column.
    pub(super) fn step(
        &mut self,
        column: &ColumnBatch,
        (map, widening, plan): (Option<&[u8]>, Widening, &LeafPlan),
        last: &mut LastDictionary,
        budget: &mut Budget<'_>,
    ) -> Result<Option<ColumnBatch>> {
        if let (Some(map), None) = (map, &self.definition) {
            let Some(definition) = self.partial.definition(column, map, budget)? else { return Ok(None) };
            self.definition = Some(definition);
        }
        // The values of a nested leaf are those that are there.
        let validity = column.validity.as_ref().filter(|_| column.layout == Layout::Spaced);
        if let (Some(_), Some(validity), None) = (map, validity, &self.compact) {
            let Some(compact) = self.partial.compact(&column.values, validity, budget)? else {
                return Ok(None);
            };
            self.compact = Some(compact);
        }
        let values = self.compact.as_ref().unwrap_or(&column.values);
        let Some(values) = self.partial.widen(values, widening, last, budget)? else { return Ok(None) };
        self.compact = None;
        let Some(definition) = self.definition.take() else {
            return Ok(Some(ColumnBatch { values, ..column.clone() }));
        };
        let repetition = match &column.levels {
            Some(levels) => levels.repetition.clone(),
            None if plan.has_repetition => return Err(Error::internal("a flat leaf below a list")),
            None => None,
        };
        Ok(Some(ColumnBatch {
            leaf: column.leaf,
            rows: column.rows,
            nulls: definition.len().saturating_sub(values.len()),
            values,
            validity: None,
            layout: Layout::Dense,
            levels: Some(Levels { definition, repetition }),
            provisional: column.provisional,
        }))
    }
}

impl Partial {
    /// A column's definition levels, by a table of what becomes of each.
    pub(super) fn definition(
        &mut self,
        column: &ColumnBatch,
        map: &[u8],
        budget: &mut Budget<'_>,
    ) -> Result<Option<Buffer<u8>>> {
        let highest = map.last().copied().unwrap_or(0);
        let absent = map.first().copied().unwrap_or(0);
        let (at, out) = (&mut self.at, &mut self.bytes);
        match (&column.levels, &column.validity) {
            (Some(levels), _) => {
                let of = |&level: &u8| *map.get(usize::from(level)).unwrap_or(&highest);
                collect(at, out, &levels.definition, budget, of)
            }
            (None, None) => each(at, out, column.rows, SLICE, budget, |_, out| out.push(highest)),
            (None, Some(validity)) => each(at, out, column.rows, SLICE, budget, |row, out| {
                out.push(if validity.get(row) { highest } else { absent });
            }),
        }
    }

    /// The levels of the entries that begin a slot: of at most the repetition level `most`.
    pub(super) fn slots(
        &mut self,
        definition: &Buffer<u8>,
        repetition: &Buffer<u8>,
        most: u16,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Levels>> {
        let kept = &mut self.repetition;
        if self.at == 0 {
            reserve(kept, repetition.len())?;
        }
        let made = each(&mut self.at, &mut self.bytes, repetition.len(), SLICE, budget, |entry, out| {
            if u16::from(repetition[entry]) <= most {
                out.push(definition[entry]);
                kept.push(repetition[entry]);
            }
        })?;
        let Some(made) = made else { return Ok(None) };
        let kept = core::mem::take(kept);
        if kept.len() == repetition.len() {
            // All do: nothing need be held twice.
            return Ok(Some(Levels { definition: definition.clone(), repetition: Some(repetition.clone()) }));
        }
        Ok(Some(Levels { definition: made, repetition: Some(kept.into()) }))
    }

    /// Values of a wider type. A null's slot stays zero, in whatever the type is.
    fn widen(
        &mut self,
        values: &Values,
        widening: Widening,
        last: &mut LastDictionary,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Values>> {
        if widening == Widening::None {
            return Ok(Some(values.clone()));
        }
        let Values::Dictionary(indices, dictionary) = values else {
            return self.widen_plain(values, widening, budget);
        };
        if let Some((from, to)) = last
            && Arc::ptr_eq(from, dictionary)
        {
            return Ok(Some(Values::Dictionary(indices.clone(), Arc::clone(to))));
        }
        let Some(wider) = self.widen_plain(dictionary, widening, budget)? else { return Ok(None) };
        let wider = Arc::new(wider);
        *last = Some((Arc::clone(dictionary), Arc::clone(&wider)));
        Ok(Some(Values::Dictionary(indices.clone(), wider)))
    }

    fn widen_plain(
        &mut self,
        values: &Values,
        widening: Widening,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Values>> {
        let at = &mut self.at;
        let inline = |views: Option<Buffer<u128>>| {
            views.map(|views| Values::ByteArray(ByteArrays::new(views, Arc::default())))
        };
        Ok(match (widening, values) {
            (Widening::None, values) => Some(values.clone()),
            (Widening::SignExtend, Values::Int32(values)) => {
                collect(at, &mut self.int64, values, budget, |value| i64::from(*value))?.map(Values::Int64)
            }
            (Widening::ZeroExtend, Values::Int32(values)) => {
                let of = |value: &i32| i64::from(value.cast_unsigned());
                collect(at, &mut self.int64, values, budget, of)?.map(Values::Int64)
            }
            (Widening::Double, Values::Float(values)) => {
                collect(at, &mut self.double, values, budget, |value| f64::from(*value))?.map(Values::Double)
            }
            (Widening::Bytes, Values::Int32(values)) => {
                let of = |value: &i32| strings::view(&value.to_be_bytes(), 0, 0);
                inline(collect(at, &mut self.views, values, budget, of)?)
            }
            (Widening::Bytes, Values::Int64(values)) => {
                let of = |value: &i64| strings::view(&value.to_be_bytes(), 0, 0);
                inline(collect(at, &mut self.views, values, budget, of)?)
            }
            (Widening::Bytes, Values::FixedLenByteArray(values)) => {
                let width = u32::try_from(values.width()).ok();
                let (Some(width), Ok(_)) = (width, u32::try_from(values.bytes().len())) else {
                    let message = "more than 4 GiB of values in a batch";
                    return Err(Error::too_large(message));
                };
                let mut offset = width.saturating_mul(u32::try_from(*at).unwrap_or(u32::MAX));
                let views = each(at, &mut self.views, values.len(), SLICE, budget, |row, out| {
                    out.push(strings::view(values.get(row), 0, offset));
                    offset = offset.saturating_add(width);
                })?;
                let buffers = || Arc::new(alloc::vec![Bytes::from_owner(values.bytes().clone())]);
                views.map(|views| Values::ByteArray(ByteArrays::new(views, buffers())))
            }
            (Widening::Bytes, values @ Values::ByteArray(_)) => Some(values.clone()),
            _ => return Err(Error::internal("values of another type than the schema's")),
        })
    }

    /// The values that are there, of those with a slot for each null.
    fn compact(
        &mut self,
        values: &Values,
        validity: &Bitmap,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Values>> {
        let at = &mut self.at;
        Ok(match values {
            Values::Int32(values) => pick(at, &mut self.int32, values, validity, budget)?.map(Values::Int32),
            Values::Int64(values) => pick(at, &mut self.int64, values, validity, budget)?.map(Values::Int64),
            Values::Float(values) => pick(at, &mut self.float, values, validity, budget)?.map(Values::Float),
            Values::Double(values) => {
                pick(at, &mut self.double, values, validity, budget)?.map(Values::Double)
            }
            Values::Boolean(bits) => {
                let picked = &mut self.picked;
                let there = each(at, &mut self.bytes, bits.len(), SLICE, budget, |row, out| {
                    if validity.get(row) {
                        if picked.is_multiple_of(8) {
                            out.push(0);
                        }
                        if let Some(last) = out.last_mut() {
                            *last |= u8::from(bits.get(row)) << (*picked % 8);
                        }
                        *picked += 1;
                    }
                })?;
                let Some(there) = there else { return Ok(None) };
                Some(Values::Boolean(Bitmap::new(there, 0, core::mem::take(picked))))
            }
            Values::ByteArray(values) => pick(at, &mut self.views, values.views(), validity, budget)?
                .map(|views| Values::ByteArray(ByteArrays::new(views, Arc::clone(values.buffers())))),
            Values::Int96(values) => self.pick_fixed(values, validity, budget)?.map(Values::Int96),
            Values::FixedLenByteArray(values) => {
                self.pick_fixed(values, validity, budget)?.map(Values::FixedLenByteArray)
            }
            Values::Dictionary(indices, dictionary) => {
                pick(at, &mut self.indices, indices, validity, budget)?
                    .map(|indices| Values::Dictionary(indices, Arc::clone(dictionary)))
            }
        })
    }

    fn pick_fixed(
        &mut self,
        values: &FixedBytes,
        validity: &Bitmap,
        budget: &mut Budget<'_>,
    ) -> Result<Option<FixedBytes>> {
        let width = values.width();
        if self.at == 0 {
            // Once: where the first value takes several slices, there is room already.
            let lacking = values.bytes().len().saturating_sub(self.bytes.len());
            reserve(&mut self.bytes, lacking)?;
        }
        while self.at < values.len() {
            // One value may take several slices.
            let slice = (SLICE_BYTES / width.max(1)).clamp(1, SLICE);
            let (first, before) = (self.at, self.bytes.len());
            let end = values.len().min(first + slice);
            self.at = end;
            for row in (first..end).filter(|row| validity.get(*row)) {
                let done = if width > SLICE_BYTES { before % width } else { 0 };
                let part = width.min(done + SLICE_BYTES);
                self.bytes.extend_from_slice(&values.get(row)[done..part]);
                if part < width {
                    self.at = row;
                }
            }
            budget.charge(VALUE_PRICE, 0, end - first);
            budget.charge(COPY_PRICE, self.bytes.len() - before, 0);
            budget.charge(ROOM_PRICE, self.bytes.len() - before, 0);
            if self.at < values.len() && budget.is_spent() {
                return Ok(None);
            }
        }
        self.at = 0;
        let picked: Buffer<u8> = core::mem::take(&mut self.bytes).into();
        let there =
            picked.len().checked_div(width).unwrap_or_else(|| validity.iter().filter(|bit| *bit).count());
        Ok(Some(FixedBytes::new(width, there, picked)))
    }
}

/// Does a part of what is to be done for each of `count` things, from `at` on; gives what was made after the last.
fn each<T>(
    at: &mut usize,
    out: &mut Vec<T>,
    count: usize,
    slice: usize,
    budget: &mut Budget<'_>,
    mut add: impl FnMut(usize, &mut Vec<T>),
) -> Result<Option<Buffer<T>>> {
    if *at == 0 {
        reserve(out, count)?;
    }
    while *at < count {
        let end = count.min(*at + slice);
        (*at..end).for_each(|index| add(index, out));
        budget.charge(VALUE_PRICE, 0, end - *at);
        *at = end;
        if end < count && budget.is_spent() {
            return Ok(None);
        }
    }
    *at = 0;
    Ok(Some(core::mem::take(out).into()))
}

/// The same with one thing made of each.
fn collect<T, U>(
    at: &mut usize,
    out: &mut Vec<U>,
    values: &[T],
    budget: &mut Budget<'_>,
    of: impl Fn(&T) -> U,
) -> Result<Option<Buffer<U>>> {
    if *at == 0 {
        reserve(out, values.len())?;
    }
    while *at < values.len() {
        let end = values.len().min(*at + SLICE);
        out.extend(values[*at..end].iter().map(&of));
        budget.charge(VALUE_PRICE, 0, end - *at);
        *at = end;
        if end < values.len() && budget.is_spent() {
            return Ok(None);
        }
    }
    *at = 0;
    Ok(Some(core::mem::take(out).into()))
}

fn pick<T: Copy>(
    at: &mut usize,
    out: &mut Vec<T>,
    values: &[T],
    validity: &Bitmap,
    budget: &mut Budget<'_>,
) -> Result<Option<Buffer<T>>> {
    each(at, out, values.len(), SLICE, budget, |row, out| {
        if validity.get(row) {
            out.push(values[row]);
        }
    })
}

fn reserve<T>(out: &mut Vec<T>, length: usize) -> Result<()> {
    out.try_reserve_exact(length).map_err(|_| Error::out_of_memory(length.saturating_mul(size_of::<T>())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values without the slots of nulls, in steps that are as long as a slice of them, whatever their width is.
    #[test]
    fn wide_values_are_copied_in_slices_and_paid_for() {
        for width in [3, 1000, 40_000, 300_000] {
            let rows = 3_000_000 / width;
            let bytes: Vec<u8> = (0..rows * width).map(|at: usize| (at / 7).to_le_bytes()[0]).collect();
            let values = FixedBytes::new(width, rows, bytes.into());
            let bits: Vec<u8> = (0..rows.div_ceil(8)).map(|byte| byte.to_le_bytes()[0] | 0b101).collect();
            let validity = Bitmap::new(bits.into(), 0, rows);
            let (mut partial, mut spent) = (Partial::default(), 0);
            let picked = loop {
                let mut budget = Budget::new(0);
                let picked = partial.pick_fixed(&values, &validity, &mut budget).unwrap();
                let slice = COPY_PRICE.of(SLICE_BYTES, 0) + ROOM_PRICE.of(SLICE_BYTES, 0);
                assert!(budget.spent() <= slice + VALUE_PRICE.of(0, SLICE), "{} units", budget.spent());
                spent += budget.spent();
                assert!(partial.bytes.capacity() <= rows * width, "{}", partial.bytes.capacity());
                if let Some(picked) = picked {
                    break picked;
                }
            };
            let there: Vec<usize> = (0..rows).filter(|row| validity.get(*row)).collect();
            assert_eq!(picked.len(), there.len());
            assert!(there.iter().enumerate().all(|(at, row)| picked.get(at) == values.get(*row)), "{width}");
            assert!(spent >= COPY_PRICE.of(there.len() * width, 0));
        }
    }
}
