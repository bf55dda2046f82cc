//! Values of a leaf with a slot for each null.

use alloc::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Bitmap, Budget, Error, Limit, Limits, Release, Result};
use marquetry_kernels::{Plain, bits, spread};

use super::slices::{SLICE, SLICE_BYTES, disagree};
use crate::batch::store::Store;
use crate::batch::{ByteArrays, ColumnBatch, FixedBytes, Layout, Values};

/// Memory for the values of a leaf, by type.
#[derive(Debug, Default)]
pub(super) enum Spread {
    #[default]
    Nothing,
    Bytes(Store<u8>),
    Indices(Store<u32>),
    Int32(Store<i32>),
    Int64(Store<i64>),
    Float(Store<f32>),
    Double(Store<f64>),
    Views(Store<u128>),
}

/// The memory of one kind. There may have been another, if plain values took over from a dictionary.
macro_rules! store {
    ($spread:expr, $kind:ident) => {{
        if !matches!($spread, Spread::$kind(_)) {
            *$spread = Spread::$kind(Store::default());
        }
        match $spread {
            Spread::$kind(store) => store,
            _ => return Err(Error::internal("memory of another kind")),
        }
    }};
}

impl Release for Spread {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        match self {
            Spread::Nothing => true,
            Spread::Bytes(store) => store.release(budget),
            Spread::Indices(store) => store.release(budget),
            Spread::Int32(store) => store.release(budget),
            Spread::Int64(store) => store.release(budget),
            Spread::Float(store) => store.release(budget),
            Spread::Double(store) => store.release(budget),
            Spread::Views(store) => store.release(budget),
        }
    }
}

impl Spread {
    /// Processes a slice of the slots; `there` says which have a value. Returns how many it looked at, and the values
    /// after the last slice. `slot` and `value` are the next ones.
    pub(super) fn slice(
        &mut self,
        column: &ColumnBatch,
        length: usize,
        there: Option<&Bitmap>,
        (slot, value): (&mut usize, &mut usize),
        limits: &Limits,
    ) -> Result<(usize, Option<Values>)> {
        let values = &column.values;
        let is_spaced = column.levels.is_none() && column.layout == Layout::Spaced;
        let Some(there) = there.filter(|_| !is_spaced) else {
            // No nulls, or spaced already: shared as they are.
            return if values.len() == length { Ok((0, Some(values.clone()))) } else { Err(disagree()) };
        };
        if there.len() != length {
            return Err(disagree());
        }
        let width = match values {
            Values::Int96(values) | Values::FixedLenByteArray(values) => values.width(),
            _ => 1,
        };
        // Whole words, unless values are large.
        let slots = (SLICE_BYTES / width.max(1)).clamp(1, SLICE).min(length.saturating_sub(*slot));
        let first = there.offset() + *slot;
        let count = bits::count_ones(there.bytes(), first, slots).map_err(|_| disagree())?;
        let (range, part) = (*value..*value + count, *slot..*slot + slots);
        if range.end > values.len() {
            return Err(disagree());
        }
        *slot += slots;
        *value += count;
        if *slot == length && *value != values.len() {
            return Err(disagree());
        }
        let validity = (&**there.bytes(), first);
        let mut filled = 0;
        /// Spreads plain values, and returns them after the last slice.
        macro_rules! plain {
            ($kind:ident, $dense:expr) => {{
                let store = store!(self, $kind);
                let (out, new) = store.room_of(length, part.start, part.len())?;
                filled = new;
                spread_plain(&$dense[range], out, validity)?;
                (part.end == length).then(|| store.share(length)).transpose()?
            }};
        }
        let made = match values {
            Values::Int32(dense) => plain!(Int32, dense).map(Values::Int32),
            Values::Int64(dense) => plain!(Int64, dense).map(Values::Int64),
            Values::Float(dense) => plain!(Float, dense).map(Values::Float),
            Values::Double(dense) => plain!(Double, dense).map(Values::Double),
            Values::Dictionary(indices, entries) => {
                plain!(Indices, indices).map(|indices| Values::Dictionary(indices, Arc::clone(entries)))
            }
            Values::ByteArray(dense) => plain!(Views, dense.views())
                .map(|views| Values::ByteArray(ByteArrays::new(views, Arc::clone(dense.buffers())))),
            Values::Boolean(dense) => {
                let bytes = length.div_ceil(8);
                let store = store!(self, Bytes);
                let (out, _) = store.room_of(bytes, 0, part.end.div_ceil(8))?;
                let dense = (&**dense.bytes(), dense.offset() + range.start);
                spread::copy_bits(dense, out, part.start, validity, slots).map_err(|_| disagree())?;
                match part.end == length {
                    true => Some(Values::Boolean(Bitmap::new(store.share(bytes)?, 0, length))),
                    false => None,
                }
            }
            Values::Int96(dense) => {
                self.fixed(dense, length, range.start, part, validity, limits)?.map(Values::Int96)
            }
            Values::FixedLenByteArray(dense) => {
                self.fixed(dense, length, range.start, part, validity, limits)?.map(Values::FixedLenByteArray)
            }
        };
        // A wide value costs as much as entries of the same size; new memory, as much again.
        Ok((slots * (width / size_of::<u32>()).max(1) + filled / 2, made))
    }

    fn fixed(
        &mut self,
        dense: &FixedBytes,
        length: usize,
        mut value: usize,
        part: core::ops::Range<usize>,
        (validity, first): (&[u8], usize),
        limits: &Limits,
    ) -> Result<Option<FixedBytes>> {
        let width = dense.width();
        // Zeros that no byte of the file represents.
        let bytes = length.saturating_mul(width);
        limits.check(Limit::TotalBytes, u64_of(bytes))?;
        let store = store!(self, Bytes);
        let (out, _) = store.room_of(bytes, part.start * width, part.len() * width)?;
        for at in 0..part.len() {
            let out = &mut out[at * width..(at + 1) * width];
            if bits::get(validity, first + at) == Some(true) {
                out.copy_from_slice(dense.get(value));
                value += 1;
            } else {
                out.fill(0);
            }
        }
        Ok(match part.end == length {
            true => Some(FixedBytes::new(width, length, store.share(bytes)?)),
            false => None,
        })
    }
}

fn spread_plain<T: Plain>(dense: &[T], out: &mut [T], (validity, first): (&[u8], usize)) -> Result<()> {
    spread::copy(dense, out, validity, first).map_err(|_| disagree())
}
