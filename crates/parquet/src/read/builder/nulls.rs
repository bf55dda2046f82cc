//! Slots of nulls, of columns whose layout has them: zero, whatever the memory had before.

use alloc::format;

use marquetry_base::{Budget, Error, Result};

use super::{Builder, NULL_BYTES_MAX, Output, prepare};
use crate::batch::Layout;
use crate::batch::store::Store;
use crate::growing::{COPY_PRICE, SLICE_BYTES};
use crate::memory::Memory;

impl Builder {
    /// Clears the slot of the next row of a flat leaf, which is null, where it is as wide as is done in slices. False when the budget is
    /// spent before; then call again, and add nothing before. (Those of others are cleared at [`end_slice`](Builder::end_slice).)
    pub(in crate::read) fn clear_wide_null(
        &mut self,
        memory: &mut Memory,
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        if self.layout == Layout::Dense || self.holds_indices != Some(false) || !self.is_wide() {
            return Ok(true);
        }
        self.clear(self.values, 1, memory, budget)
    }

    /// True for byte strings of which one is decoded in slices, whatever its encoding.
    fn is_wide(&self) -> bool {
        matches!(&self.output, Output::Fixed(width, _) if *width > SLICE_BYTES)
    }

    /// Bytes of the slots of `rows` rows that [`end_slice`](Builder::end_slice) moves or clears, where they are byte strings of one width.
    pub(in crate::read) fn spread_bytes(&self, rows: usize) -> usize {
        match &self.output {
            Output::Fixed(width, _)
                if self.layout == Layout::Spaced
                    && self.holds_indices == Some(false)
                    && *width <= SLICE_BYTES =>
            {
                rows * *width
            }
            _ => 0,
        }
    }

    /// Makes slots zero, as those of nulls are, in room that it makes for them. False when the budget is spent before; then call again.
    pub(super) fn clear(
        &mut self,
        at: usize,
        slots: usize,
        memory: &mut Memory,
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        let (capacity, end, done) = (self.capacity, at + slots, &mut self.cleared);
        if slots == 0 {
            return Ok(true);
        }
        if self.holds_indices == Some(true) {
            return clear(&mut self.indices, (capacity, at, end), done, memory, budget);
        }
        match &mut self.output {
            Output::Int32(store) => clear(store, (capacity, at, end), done, memory, budget),
            Output::Int64(store) => clear(store, (capacity, at, end), done, memory, budget),
            Output::Float(store) => clear(store, (capacity, at, end), done, memory, budget),
            Output::Double(store) => clear(store, (capacity, at, end), done, memory, budget),
            Output::ByteArray(store, _) => clear(store, (capacity, at, end), done, memory, budget),
            Output::Boolean(store) => {
                let place = (capacity.div_ceil(8), at / 8, end.div_ceil(8));
                clear(store, place, done, memory, budget)
            }
            Output::Fixed(width, store) => {
                check_null(*width)?;
                let place = (capacity.saturating_mul(*width), at * *width, end * *width);
                clear(store, place, done, memory, budget)
            }
        }
    }
}

/// Makes the values `at..end` of an array zero, a slice at a time, of which `done` are. False when the budget is spent before.
fn clear<T: Copy + Default>(
    store: &mut Store<T>,
    (capacity, at, end): (usize, usize, usize),
    done: &mut usize,
    memory: &mut Memory,
    budget: &mut Budget<'_>,
) -> Result<bool> {
    while at + *done < end {
        let start = at + *done;
        let some = (end - start).min(SLICE_BYTES / size_of::<T>());
        // From their first on, as the row is prepared: where that changes, what was moved to larger memory is moved again.
        if !prepare(store, (capacity, at, start + some), memory, budget)? {
            return Ok(false);
        }
        store.room(capacity, start, some)?.fill(T::default());
        budget.charge(COPY_PRICE, some * size_of::<T>(), 0);
        *done += some;
        if start + some < end && budget.is_spent() {
            return Ok(false);
        }
    }
    *done = 0;
    Ok(true)
}

/// An error for nulls that would take much room.
fn check_null(width: usize) -> Result<()> {
    if width <= NULL_BYTES_MAX {
        return Ok(());
    }
    Err(Error::too_large(format!("a null of {width} bytes: at most {NULL_BYTES_MAX} where nulls take room")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{ColumnBatch, Values};
    use crate::schema::PhysicalType;

    /// Ends a batch of `rows` nulls in steps of a budget of `units`; the units of the largest step.
    fn nulls(builder: &mut Builder, rows: usize, units: u64) -> u64 {
        let (mut memory, mut largest) = (Memory::unlimited(), 0);
        builder.validity(rows).unwrap().fill(0);
        builder.end_slice(rows, 0).unwrap();
        loop {
            let mut budget = Budget::new(units);
            let is_held = builder.hold(false, &mut memory, &mut budget).unwrap();
            largest = largest.max(budget.spent());
            if is_held {
                return largest;
            }
        }
    }

    fn finished(builder: &mut Builder, physical_type: PhysicalType) -> ColumnBatch {
        builder.finish(0, physical_type, None).unwrap()
    }

    /// Of a batch whose first values are null it is known late whether it holds indices: its slots are cleared then, in memory that had
    /// the values of the batch before.
    #[test]
    fn slots_before_the_first_value_are_zero_in_memory_that_is_used_again() {
        let mut builder = Builder::new(PhysicalType::ByteArray, 100, Layout::Spaced, true);
        let mut memory = Memory::unlimited();
        assert!(builder.hold(false, &mut memory, &mut Budget::unlimited()).unwrap());
        let Output::ByteArray(store, _) = &mut builder.output else { panic!("no views") };
        store.room(100, 0, 100).unwrap().fill(u128::MAX);
        builder.values = 100;
        builder.end_slice(100, 100).unwrap();
        let Values::ByteArray(before) = finished(&mut builder, PhysicalType::ByteArray).values else {
            panic!("no views")
        };
        let place = before.views().as_ptr();
        drop(before);
        nulls(&mut builder, 100, 0);
        let batch = finished(&mut builder, PhysicalType::ByteArray);
        let Values::ByteArray(values) = &batch.values else { panic!("no views") };
        assert_eq!((values.views().as_ptr(), batch.nulls), (place, 100));
        assert!(values.views().iter().all(|view| *view == 0));
    }

    #[test]
    fn wide_slots_are_cleared_in_slices() {
        const WIDTH: usize = 300_000;
        let physical_type = PhysicalType::FixedLenByteArray(300_000);
        let slice = COPY_PRICE.of(SLICE_BYTES, 0) + crate::growing::ROOM_PRICE.of(2 * SLICE_BYTES, 0);
        let mut builder = Builder::new(physical_type, 3, Layout::Spaced, true);
        // In memory that had the values of the batch before.
        assert!(builder.hold(false, &mut Memory::unlimited(), &mut Budget::unlimited()).unwrap());
        let Output::Fixed(_, store) = &mut builder.output else { panic!("no byte strings") };
        store.room(3 * WIDTH, 0, 3 * WIDTH).unwrap().fill(0xff);
        builder.values = 3;
        builder.end_slice(3, 3).unwrap();
        let Values::FixedLenByteArray(before) = finished(&mut builder, physical_type).values else {
            panic!("no byte strings")
        };
        let place = before.bytes().as_ptr();
        drop(before);
        assert!(nulls(&mut builder, 3, 0) <= slice);
        let batch = finished(&mut builder, physical_type);
        let Values::FixedLenByteArray(values) = &batch.values else { panic!("no byte strings") };
        assert_eq!(values.bytes().as_ptr(), place);
        assert!((0..3).all(|row| values.get(row).iter().all(|byte| *byte == 0)));
        // Row by row, as a page is decoded, in memory that grows; and the slot is there when the row ends.
        let mut builder = Builder::new(physical_type, 3, Layout::Spaced, false);
        let (mut memory, mut steps) = (Memory::unlimited(), 0);
        for row in 1..4 {
            builder.validity(row).unwrap();
            let mut spent = 0;
            loop {
                let mut budget = Budget::new(0);
                steps += 1;
                assert!(steps < 1000, "no end");
                let is_clear = builder.prepare(1, &mut memory, &mut budget).unwrap()
                    && builder.clear_wide_null(&mut memory, &mut budget).unwrap();
                assert!(budget.spent() <= slice, "{}", budget.spent());
                spent += budget.spent();
                if is_clear {
                    break;
                }
            }
            assert!(spent >= COPY_PRICE.of(WIDTH, 0), "{spent}");
            builder.end_slice(1, 0).unwrap();
        }
        assert!(steps >= 3 * WIDTH / SLICE_BYTES);
        assert_eq!(finished(&mut builder, physical_type).nulls, 3);
    }

    /// What was cleared of values says nothing of indices.
    #[test]
    fn slots_of_another_kind_are_cleared_from_the_start() {
        let mut builder = Builder::new(PhysicalType::FixedLenByteArray(300_000), 3, Layout::Spaced, true);
        let mut memory = Memory::unlimited();
        builder.validity(3).unwrap().fill(0);
        builder.end_slice(3, 0).unwrap();
        for _ in 0..5 {
            assert!(!builder.hold(false, &mut memory, &mut Budget::new(0)).unwrap());
        }
        assert!(builder.cleared > 0);
        assert!(builder.hold(true, &mut memory, &mut Budget::unlimited()).unwrap());
        assert_eq!(builder.indices.values(), [0; 3]);
        assert_eq!(builder.cleared, 0);
    }

    /// Larger memory that takes several steps to move to, while the row is prepared anew in each.
    #[test]
    fn wide_slots_in_memory_that_grows() {
        let physical_type = PhysicalType::FixedLenByteArray(1_048_000);
        for units in [0, 20_000, 150_000] {
            let mut builder = Builder::new(physical_type, 1, Layout::Spaced, false);
            let mut memory = Memory::unlimited();
            builder.validity(1).unwrap();
            let steps = (0..).take_while(|_| {
                let mut budget = Budget::new(units);
                !(builder.prepare(1, &mut memory, &mut budget).unwrap()
                    && builder.clear_wide_null(&mut memory, &mut budget).unwrap())
            });
            assert!(steps.take(1000).count() < 1000, "no end by {units} units");
            builder.end_slice(1, 0).unwrap();
            assert_eq!(finished(&mut builder, physical_type).nulls, 1);
        }
    }

    #[test]
    fn slots_wider_than_nulls_may_be_are_refused() {
        let mut builder = Builder::new(PhysicalType::FixedLenByteArray(1 << 20), 1, Layout::Spaced, false);
        let error = builder.clear_wide_null(&mut Memory::unlimited(), &mut Budget::unlimited()).unwrap_err();
        assert!(error.message().starts_with("a null of 1048576 bytes"), "{error}");
    }
}
