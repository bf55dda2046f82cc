//! Memory for arrays. It grows in slices, as values arrive.

use alloc::boxed::Box;
use alloc::vec::Vec;

use marquetry_base::{Budget, Buffer, Error, Pool, Result};
use marquetry_kernels::{Plain, spread};

use crate::growing::{RELEASE_PRICE, ROOM_PRICE, ROOM_SLICE_BYTES};
use crate::schema::PhysicalType;

/// Maximum bytes of one array: allocators of hosts that never wait dislike a contiguous MiB. Only a row that needs more
/// gets more.
pub(crate) const ARRAY_BYTES_MAX: usize = (1 << 20) - 1;
/// Bytes that an array starts with if its batch may become larger. It grows as values arrive: neither the rows that a
/// host would accept nor the width that a schema claims are there yet.
const ROOM_BYTES_MIN: usize = 256 << 10;

/// Bytes that a value takes in its array; for byte strings, the size of a view.
pub(crate) fn value_bytes(physical_type: PhysicalType) -> usize {
    match physical_type {
        PhysicalType::Boolean => 1,
        PhysicalType::ByteArray => size_of::<u128>(),
        _ => physical_type.width().unwrap_or(0),
    }
}

/// Rows that an array of at most [`ARRAY_BYTES_MAX`] has room for; at least one.
pub(crate) fn rows_max(physical_type: PhysicalType) -> usize {
    let rows = ARRAY_BYTES_MAX / value_bytes(physical_type).max(1);
    // Whole words of bits, if any: bit-packed values, which come in groups of eight, are unpacked best from a word's
    // start.
    (rows - rows % 64).max(rows.min(63)).max(1)
}

/// Memory for one array of the batch, reused from batch to batch.
#[derive(Debug)]
pub(crate) struct Store<T> {
    values: Vec<T>,
    /// Larger memory, which the values are being moved to. Boxed, because there are many columns and this is rare.
    #[expect(clippy::box_collection, reason = "a column is small, and seldom has any")]
    larger: Option<Box<Vec<T>>>,
    pool: Pool<T>,
}

impl<T: Copy + Default> Default for Store<T> {
    fn default() -> Store<T> {
        Store { values: Vec::new(), larger: None, pool: Pool::new() }
    }
}

impl<T: Copy + Default> Store<T> {
    /// Values that are moved or filled at a time.
    const SLICE: usize = ROOM_SLICE_BYTES / size_of::<T>();

    /// Makes room for the values up to `end`, in an array that will probably need `capacity`, so that [`Store::room`]
    /// finds it. If larger memory is needed, the values are moved to it in slices. Returns false if the budget is spent
    /// first: then call again.
    pub(crate) fn prepare(&mut self, capacity: usize, end: usize, budget: &mut Budget<'_>) -> Result<bool> {
        if end <= self.values.len() {
            return Ok(true);
        }
        if end > self.values.capacity() {
            let needed = self.needed(capacity, end);
            if self.values.is_empty() {
                self.values = self.pool.take_memory(needed)?;
            } else if !self.move_to(needed, end, budget)? {
                return Ok(false);
            }
        }
        while self.values.len() < end {
            let filled = end.min(self.values.len() + Self::SLICE);
            budget.charge(ROOM_PRICE, (filled - self.values.len()) * size_of::<T>(), 0);
            self.values.resize(filled, T::default());
            if filled < end && budget.is_spent() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Moves the values to memory for `needed`, or to what an earlier call has allocated for at least `end`.
    fn move_to(&mut self, needed: usize, end: usize, budget: &mut Budget<'_>) -> Result<bool> {
        let mut larger = match self.larger.take() {
            Some(larger) if larger.capacity() >= end => larger,
            _ => {
                let mut larger = Vec::new();
                larger
                    .try_reserve_exact(needed)
                    .map_err(|_| Error::out_of_memory(needed.saturating_mul(size_of::<T>())))?;
                Box::new(larger)
            }
        };
        while larger.len() < self.values.len() {
            let moved = larger.len();
            let slice = moved..self.values.len().min(moved + Self::SLICE);
            budget.charge(ROOM_PRICE, slice.len() * size_of::<T>(), 0);
            larger.extend_from_slice(&self.values[slice]);
            if larger.len() < self.values.len() && budget.is_spent() {
                self.larger = Some(larger);
                return Ok(false);
            }
        }
        self.values = *larger;
        Ok(true)
    }

    /// The length to allocate, to have room up to `end`.
    fn needed(&self, capacity: usize, end: usize) -> usize {
        let doubled = self.values.len().saturating_mul(2);
        // Lists have more entries than rows; how many more is only known as they arrive.
        let needed = if end > capacity {
            doubled.max(end)
        } else {
            capacity.min(doubled.max(ROOM_BYTES_MIN / size_of::<T>())).max(end)
        };
        let most = ARRAY_BYTES_MAX / size_of::<T>();
        if end <= most { needed.min(most) } else { needed }
    }

    /// Room for the values `at..at + length`, in an array that will probably need `capacity`. Values before `at` are
    /// kept. The array must be small or [prepared](Store::prepare): otherwise this call allocates it.
    pub(crate) fn room(&mut self, capacity: usize, at: usize, length: usize) -> Result<&mut [T]> {
        let end = at + length;
        if self.values.len() < end && !self.prepare(capacity, end, &mut Budget::unlimited())? {
            return Err(Error::internal("a budget without an end is spent"));
        }
        Ok(&mut self.values[at..end])
    }

    /// The same for an array that will have `total` values. Its memory is allocated at once, but only filled up to the
    /// end of the requested room. Also returns the number of bytes that were filled.
    pub(crate) fn room_of(&mut self, total: usize, at: usize, length: usize) -> Result<(&mut [T], usize)> {
        let end = at + length;
        if self.values.capacity() < total.max(end) {
            if at > 0 {
                return Err(Error::internal("an array that is longer than was said"));
            }
            self.values = Vec::new();
            self.values = self.pool.take_memory(total.max(end))?;
        }
        let filled = end.saturating_sub(self.values.len());
        if filled > 0 {
            self.values.resize(end, T::default());
        }
        Ok((&mut self.values[at..end], filled * size_of::<T>()))
    }

    /// Releases the memory, including what the pool keeps for reuse. True once none is left.
    pub(crate) fn let_go(&mut self, budget: &mut Budget<'_>) -> bool {
        while let Some(bytes) = self.pool.pop() {
            budget.charge(RELEASE_PRICE, bytes, 1);
            if budget.is_spent() {
                return false;
            }
        }
        budget.charge(RELEASE_PRICE, self.held(), 0);
        (self.values, self.larger) = (Vec::new(), None);
        true
    }

    /// The values.
    pub(crate) fn values(&self) -> &[T] {
        &self.values
    }

    /// Bytes allocated for the array.
    pub(crate) fn held(&self) -> usize {
        (self.values.capacity() + self.larger.as_ref().map_or(0, |larger| larger.capacity())) * size_of::<T>()
    }

    /// Returns the array, with `length` values.
    pub(crate) fn share(&mut self, length: usize) -> Buffer<T> {
        let values = core::mem::take(&mut self.values);
        self.pool.share(values, length)
    }
}

impl<T: Plain + Default> Store<T> {
    /// Moves the `there` values at `at` to those of the `rows` slots whose bit of `validity`, from bit `at` on, is set.
    /// The other slots become zero.
    pub(crate) fn spread(&mut self, at: usize, there: usize, rows: usize, validity: &[u8]) -> Result<()> {
        let room = self.room(at + rows, at, rows)?;
        spread::in_place(room, there, validity, at).map_err(|_| disagree())
    }
}

/// The error for validity and values that belong to different rows.
pub(crate) fn disagree() -> Error {
    Error::internal("validity and values disagree")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_was_handed_out_is_given_back_an_array_at_a_time() {
        let mut store = Store::<u64>::default();
        let handed_out: Vec<Buffer<u64>> = (0..3)
            .map(|_| {
                store.room(1_000, 0, 1_000).unwrap();
                store.share(1_000)
            })
            .collect();
        drop(handed_out);
        let (mut steps, mut units) = (0, 0);
        loop {
            let mut budget = Budget::new(0);
            let is_done = store.let_go(&mut budget);
            (steps, units) = (steps + 1, units + budget.spent());
            if is_done {
                break;
            }
        }
        assert_eq!(steps, 4, "one more finds that nothing is left");
        assert!(units >= RELEASE_PRICE.of(3 * 8_000, 3), "{units}");
    }
}
