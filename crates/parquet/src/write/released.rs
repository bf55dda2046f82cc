//! Batches that are no longer needed, released a column, or a buffer of strings, at a time.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use marquetry_base::{Bitmap, Budget, Buffer, Bytes};

use crate::batch::{ColumnBatch, Levels, Values};
use crate::growing::RELEASE_PRICE;

/// Columns and buffers to release. What somebody else still has is not released here, and costs nothing. A buffer of
/// strings is released at once, however long it is: there is no way to release part of it.
#[derive(Default)]
pub(crate) struct Released {
    columns: Vec<ColumnBatch>,
    buffers: Vec<Bytes>,
    /// Arrays of more than [`PIECE_BYTES`].
    arrays: Vec<Box<dyn Array + Send + Sync>>,
    /// Bytes of other arrays that are not charged yet.
    small_bytes: usize,
}

/// The list of columns is itself released in pieces of so many.
const COLUMNS_AT_ONCE: usize = 4096;
/// What releasing a column costs besides its large arrays, as bytes.
const COLUMN_BYTES: usize = 4 << 10;
/// Bytes of an array that are released at a time. Allocators shrink memory of this size where it is.
const PIECE_BYTES: usize = 512 << 10;

/// An array that is released piece by piece.
trait Array {
    /// Releases its last piece, and returns the bytes. `None` if none is left.
    fn cut(&mut self) -> Option<usize>;
}

impl<T> Array for Vec<T> {
    fn cut(&mut self) -> Option<usize> {
        let before = self.capacity();
        self.truncate(self.len().min(before.saturating_sub(PIECE_BYTES / size_of::<T>().max(1))));
        self.shrink_to_fit();
        (before > 0).then(|| (before - self.capacity()) * size_of::<T>())
    }
}

impl fmt::Debug for Released {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left = [self.columns.len(), self.buffers.len(), self.arrays.len()];
        f.debug_tuple("Released").field(&left).finish()
    }
}

impl Released {
    /// Adds columns.
    pub(crate) fn columns(&mut self, columns: Vec<ColumnBatch>) {
        if self.columns.is_empty() {
            self.columns = columns;
        } else {
            self.columns.extend(columns);
        }
    }

    /// Adds values.
    pub(crate) fn values(&mut self, values: Values) {
        match values {
            Values::Boolean(bits) => self.bits(bits),
            Values::Int32(values) => self.array(values),
            Values::Int64(values) => self.array(values),
            Values::Float(values) => self.array(values),
            Values::Double(values) => self.array(values),
            Values::Int96(values) | Values::FixedLenByteArray(values) => {
                let bytes = values.bytes().clone();
                drop(values);
                self.array(bytes);
            }
            Values::ByteArray(values) => {
                let (views, buffers) = (values.views().clone(), Arc::clone(values.buffers()));
                drop(values);
                self.array(views);
                let buffers = Arc::into_inner(buffers).unwrap_or_default();
                if self.buffers.is_empty() {
                    self.buffers = buffers;
                } else {
                    self.buffers.extend(buffers);
                }
            }
            Values::Dictionary(indices, values) => {
                self.array(indices);
                if let Some(values) = Arc::into_inner(values) {
                    self.values(values);
                }
            }
        }
    }

    fn column(&mut self, column: ColumnBatch) {
        let ColumnBatch { values, validity, levels, .. } = column;
        self.values(values);
        if let Some(validity) = validity {
            self.bits(validity);
        }
        if let Some(Levels { definition, repetition }) = levels {
            self.array(definition);
            repetition.into_iter().for_each(|repetition| self.array(repetition));
        }
    }

    fn bits(&mut self, bits: Bitmap) {
        let bytes = bits.bytes().clone();
        drop(bits);
        self.array(bytes);
    }

    fn array<T: Send + Sync + 'static>(&mut self, buffer: Buffer<T>) {
        let Some(values) = Arc::into_inner(buffer.into_parts().0) else { return };
        let bytes = values.capacity() * size_of::<T>();
        if bytes > PIECE_BYTES {
            self.arrays.push(Box::new(values));
        } else {
            self.small_bytes += bytes;
        }
    }

    /// Whether nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.columns.is_empty() && self.buffers.is_empty() && self.arrays.is_empty()
    }

    /// Releases some. True once nothing is left.
    pub(crate) fn step(&mut self, budget: &mut Budget<'_>) -> bool {
        while !self.is_empty() {
            let bytes = if let Some(array) = self.arrays.last_mut() {
                let cut = array.cut();
                if cut.is_none() {
                    self.arrays.pop();
                }
                cut.unwrap_or(0)
            } else if let Some(buffer) = self.buffers.pop() {
                if buffer.is_unique() { buffer.len() } else { 0 }
            } else {
                self.columns.pop().into_iter().for_each(|column| self.column(column));
                if self.columns.capacity() > self.columns.len() + COLUMNS_AT_ONCE {
                    self.columns.shrink_to_fit();
                }
                COLUMN_BYTES + core::mem::take(&mut self.small_bytes)
            };
            budget.charge(RELEASE_PRICE, bytes, 1);
            if budget.is_spent() {
                break;
            }
        }
        self.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Batch, ByteArrays};

    #[test]
    fn arrays_and_buffers_are_released_in_pieces() {
        let kept = Bytes::from(alloc::vec![1; 3 << 20]);
        let buffers: Vec<Bytes> =
            (0..10).map(|at| Bytes::from(alloc::vec![at; 100_000])).chain([kept.clone()]).collect();
        let strings = ByteArrays::new(alloc::vec![0_u128; 1 << 18].into(), Arc::new(buffers));
        let numbers = Values::Int64(alloc::vec![7; 1 << 18].into());
        let shared = Values::Double(alloc::vec![7.0; 1 << 18].into());
        let dictionary = Values::Dictionary(alloc::vec![0; 1 << 18].into(), Arc::new(numbers));
        let columns = [Values::ByteArray(strings), dictionary, shared.clone()];
        let batch = Batch::of_values(columns).unwrap();
        let mut released = Released::default();
        released.columns(batch.columns);
        let (mut steps, mut units) = (0, 0);
        loop {
            let mut budget = Budget::new(0);
            let is_done = released.step(&mut budget);
            assert!(budget.spent() <= RELEASE_PRICE.of(PIECE_BYTES, 1), "{budget:?}");
            (steps, units) = (steps + 1, units + budget.spent());
            if is_done {
                break;
            }
        }
        // What is shared is not charged: views, numbers and indices of 7 MiB, and buffers of a million bytes.
        let bytes = (7 << 20) + 1_000_000;
        let least = RELEASE_PRICE.of(bytes, 0);
        let of_steps = 110 * steps + 3 * RELEASE_PRICE.of(COLUMN_BYTES, 0);
        assert!((least..least + of_steps).contains(&units), "{units} units, where {least} are due");
        assert!((7 * 2 + 10..7 * 2 + 30).contains(&steps), "{steps} steps");
        assert!(kept.is_unique() && shared.len() == 1 << 18);
    }
}
