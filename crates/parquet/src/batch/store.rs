//! Memory for arrays. It grows in slices, as values arrive.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::mem;

use marquetry_base::{Budget, Buffer, Error, Pool, Release, Result, release_all};
use marquetry_kernels::{Plain, spread};

use crate::growing::{COPY_PRICE, ROOM_PRICE, ROOM_SLICE_BYTES};
use crate::schema::{Leaf, PhysicalType};

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

/// Bytes of a row in a leaf, by its type.
pub(crate) fn row_bytes(leaf: &Leaf) -> usize {
    value_bytes(leaf.physical_type) + bytes_beside(leaf)
}

/// Bytes of a row that a leaf takes beside its values: levels, validity, indices of a dictionary on the way.
fn bytes_beside(leaf: &Leaf) -> usize {
    let levels = if leaf.is_flat() { 1 } else { 2 };
    match leaf.physical_type {
        PhysicalType::Int96 | PhysicalType::FixedLenByteArray(_) => levels + size_of::<u32>(),
        _ => levels,
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
///
/// It grows to larger memory up to [`ARRAY_BYTES_MAX`]. An array beyond that, of a row that needs it, is collected in
/// parts, and [joined](Store::join) once its length is known: so nothing large is moved or released at once.
#[derive(Debug)]
pub(crate) struct Store<T> {
    /// The array, or its last part.
    values: Vec<T>,
    /// The state of an array that outgrew its memory. Boxed, because there are many columns and this is rare.
    growing: Option<Box<Growing<T>>>,
    pool: Pool<T>,
    /// Values of the array before: the next one will probably need as much, and finds its memory in the pool.
    last: usize,
}

/// Of an array that outgrows its memory.
#[derive(Debug)]
struct Growing<T> {
    /// Larger memory, which the values are being moved to, and the room after those before `start`.
    larger: Vec<T>,
    start: usize,
    /// The parts of a large array before the last, and the number of their values.
    parts: VecDeque<Vec<T>>,
    length: usize,
    /// Memory for all parts, in which they are being joined, and the values of the first part that it has already.
    whole: Vec<T>,
    copied: usize,
}

impl<T: Copy + Default> Default for Store<T> {
    fn default() -> Store<T> {
        Store { values: Vec::new(), growing: None, pool: Pool::new(), last: 0 }
    }
}

impl<T> Default for Growing<T> {
    fn default() -> Growing<T> {
        Growing {
            larger: Vec::new(),
            start: 0,
            parts: VecDeque::new(),
            length: 0,
            whole: Vec::new(),
            copied: 0,
        }
    }
}

impl<T: Copy + Default> Store<T> {
    /// Values that are moved or filled at a time.
    const SLICE: usize = ROOM_SLICE_BYTES / size_of::<T>();
    /// Values of a part, at most.
    const PART: usize = ARRAY_BYTES_MAX / size_of::<T>();

    /// Makes room for the values `at..end`, in an array that will probably need `capacity`, so that [`Store::room`]
    /// finds it. If larger memory is needed, the values are moved to it in slices. Returns false if the budget is spent
    /// first: then call again.
    pub(crate) fn prepare(
        &mut self,
        capacity: usize,
        at: usize,
        end: usize,
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        let (start, end) = self.place(at, end)?;
        if let Some(growing) = &mut self.growing
            && growing.start != start
        {
            // Room that was moved before it had values may have them by now.
            growing.larger.truncate(growing.start);
            growing.start = start;
        }
        if end <= self.values.len() {
            return Ok(true);
        }
        if end > self.values.capacity() {
            let needed = self.needed(capacity, end);
            if self.values.is_empty() {
                self.values = self.pool.take_memory(needed)?;
            } else {
                self.growing.get_or_insert_default().start = start;
                if !self.move_to(needed, end, budget)? {
                    return Ok(false);
                }
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

    /// Bytes that [`Store::prepare`] or [`Store::room`] allocates for the values `at..end`.
    #[inline]
    pub(crate) fn grows_bytes(&self, capacity: usize, at: usize, end: usize) -> usize {
        let before = self.growing.as_ref().map_or(0, |growing| growing.length);
        if end.saturating_sub(before) <= self.values.capacity() {
            return 0;
        }
        self.larger_bytes(capacity, at.saturating_sub(before), end.saturating_sub(before))
    }

    fn larger_bytes(&self, capacity: usize, start: usize, end: usize) -> usize {
        let length = end - start;
        if end > self.part_length() && start > 0 {
            return Self::PART.max(length) * size_of::<T>();
        }
        let larger = self.growing.as_ref().map_or(0, |growing| growing.larger.capacity());
        if end <= self.values.capacity().max(larger) {
            return 0;
        }
        let needed = self.needed(capacity, end);
        if self.values.is_empty() { self.pool.allocates(needed) } else { needed * size_of::<T>() }
    }

    /// Where the values `at..end` of the array are in its last part. If they would make that too large, they begin
    /// another one.
    fn place(&mut self, at: usize, end: usize) -> Result<(usize, usize)> {
        let before = self.growing.as_ref().map_or(0, |growing| growing.length);
        let Some(start) = at.checked_sub(before) else {
            return Err(Error::internal("values of a part that is complete"));
        };
        let length = end - at;
        if start + length <= self.part_length() || start == 0 {
            return Ok((start, start + length));
        }
        let mut part = Vec::new();
        part.try_reserve_exact(Self::PART.max(length))
            .map_err(|_| Error::out_of_memory(Self::PART * size_of::<T>()))?;
        // Bits: the first of them are in the last byte of those before.
        part.extend_from_slice(self.values.get(start..).unwrap_or_default());
        self.values.truncate(start);
        let growing = self.growing.get_or_insert_default();
        growing.larger = Vec::new();
        growing.length += self.values.len();
        growing.parts.push_back(mem::replace(&mut self.values, part));
        Ok((0, length))
    }

    /// Values that the last part has at most: more than usual, where it has been joined ahead.
    fn part_length(&self) -> usize {
        self.values.capacity().max(Self::PART)
    }

    /// Moves the values to memory for `needed`, or to what an earlier call has allocated for at least `end`.
    fn move_to(&mut self, needed: usize, end: usize, budget: &mut Budget<'_>) -> Result<bool> {
        let growing = self.growing.get_or_insert_default();
        let larger = &mut growing.larger;
        if larger.capacity() < end {
            *larger = Vec::new();
            larger
                .try_reserve_exact(needed)
                .map_err(|_| Error::out_of_memory(needed.saturating_mul(size_of::<T>())))?;
        }
        while larger.len() < self.values.len() {
            let moved = larger.len();
            let slice = moved..self.values.len().min(moved + Self::SLICE);
            budget.charge(ROOM_PRICE, slice.len() * size_of::<T>(), 0);
            larger.extend_from_slice(&self.values[slice]);
            if larger.len() < self.values.len() && budget.is_spent() {
                return Ok(false);
            }
        }
        self.values = mem::take(larger);
        if growing.length == 0 {
            self.growing = None;
        }
        Ok(true)
    }

    /// Bytes that joining the parts of a large array allocates, in memory for `length` values.
    pub(crate) fn joins_bytes(&self, length: usize) -> usize {
        match &self.growing {
            Some(growing) if growing.length > 0 && growing.whole.capacity() == 0 => {
                length.saturating_mul(size_of::<T>())
            }
            _ => 0,
        }
    }

    /// True if the array is large, and its parts are not joined.
    pub(crate) fn has_parts(&self) -> bool {
        self.growing.as_ref().is_some_and(|growing| growing.length > 0)
    }

    /// True while parts are being joined.
    pub(crate) fn is_joining(&self) -> bool {
        self.growing.as_ref().is_some_and(|growing| growing.whole.capacity() > 0)
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
        let is_pooled = self.values.is_empty() && self.pool.allocates(self.last) == 0;
        let needed = if is_pooled { needed.max(self.last) } else { needed };
        let most = ARRAY_BYTES_MAX / size_of::<T>();
        if end <= most { needed.min(most) } else { needed }
    }

    /// Room for the values `at..at + length`, in an array that will probably need `capacity`. Values before `at` are
    /// kept; those of a large array are out of reach once a part of it has ended before `at`. The array must be small or
    /// [prepared](Store::prepare): otherwise this call allocates it.
    pub(crate) fn room(&mut self, capacity: usize, at: usize, length: usize) -> Result<&mut [T]> {
        let (start, end) = self.place(at, at + length)?;
        if self.values.len() < end && !self.prepare(capacity, at, at + length, &mut Budget::unlimited())? {
            return Err(Error::internal("a budget without an end is spent"));
        }
        Ok(&mut self.values[start..end])
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

    /// The values.
    pub(crate) fn values(&self) -> &[T] {
        &self.values
    }

    /// Bytes allocated for the array.
    pub(crate) fn held(&self) -> usize {
        let growing = self.growing.as_ref().map_or(0, |growing| {
            // Parts have their memory until they are joined.
            let parts = growing.parts.len() * Self::PART;
            growing.larger.capacity() + parts + growing.whole.capacity()
        });
        (self.values.capacity() + growing) * size_of::<T>() + self.pool.idle_bytes()
    }

    /// Returns the array, with `length` values. A large one must be [joined](Store::join); its memory is not reused.
    pub(crate) fn share(&mut self, length: usize) -> Result<Buffer<T>> {
        if self.has_parts() {
            return Err(Error::internal("an array whose parts are not joined"));
        }
        let values = mem::take(&mut self.values);
        self.growing = None;
        self.last = length.min(Self::PART);
        if length > Self::PART {
            let (length, all) = (length.min(values.len()), Buffer::from(values));
            return Ok(all.slice(0..length));
        }
        Ok(self.pool.share(values, length))
    }
}

impl<T: Copy + Default + Release> Store<T> {
    /// Joins the parts of a large array of `length` values, in slices; each part is released once it is copied. There will
    /// be room for `total` values. Returns false if the budget is spent first: then call again, and add nothing before.
    pub(crate) fn join(&mut self, length: usize, total: usize, budget: &mut Budget<'_>) -> Result<bool> {
        let Some(growing) = self.growing.as_deref_mut().filter(|growing| growing.length > 0) else {
            return Ok(true);
        };
        if growing.whole.capacity() == 0 {
            self.values.truncate(length.saturating_sub(growing.length));
            growing.parts.push_back(mem::take(&mut self.values));
            growing
                .whole
                .try_reserve_exact(total.max(length))
                .map_err(|_| Error::out_of_memory(total.saturating_mul(size_of::<T>())))?;
        }
        while let Some(part) = growing.parts.front_mut() {
            if growing.copied < part.len() {
                let slice = growing.copied..part.len().min(growing.copied + Self::SLICE);
                let bytes = slice.len() * size_of::<T>();
                budget.charge(COPY_PRICE, bytes, 0);
                budget.charge(ROOM_PRICE, bytes, 0);
                growing.copied = slice.end;
                growing.whole.extend_from_slice(&part[slice]);
            }
            if growing.copied == part.len() {
                // It is empty from now on, and released in slices.
                growing.copied = 0;
                if !part.release(budget) {
                    return Ok(false);
                }
                growing.parts.pop_front();
            }
            if budget.is_spent() && !growing.parts.is_empty() {
                return Ok(false);
            }
        }
        self.values = mem::take(&mut growing.whole);
        self.growing = None;
        Ok(true)
    }
}

/// Releases what the pool keeps for reuse, too.
impl<T: Release> Release for Store<T> {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.pool, &mut self.growing, &mut self.values], budget)
    }
}

impl<T: Release> Release for Growing<T> {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.length = 0;
        release_all(&mut [&mut self.larger, &mut self.whole, &mut self.parts], budget)
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
    use marquetry_base::RELEASE_PRICE;

    #[test]
    fn memory_that_was_handed_out_is_given_back_an_array_at_a_time() {
        let mut store = Store::<u64>::default();
        let handed_out: Vec<Buffer<u64>> = (0..3)
            .map(|_| {
                store.room(1_000, 0, 1_000).unwrap();
                store.share(1_000).unwrap()
            })
            .collect();
        drop(handed_out);
        let (mut steps, mut units) = (0, 0);
        loop {
            let mut budget = Budget::new(0);
            let is_done = store.release(&mut budget);
            (steps, units) = (steps + 1, units + budget.spent());
            if is_done {
                break;
            }
        }
        assert!(steps >= 4, "{steps} steps for three arrays, and one that finds that nothing is left");
        assert!(units >= RELEASE_PRICE.of(3 * 8_000, 3), "{units}");
    }

    /// Room that is being moved when less of it is asked for, which gets its values where it was: they are not lost.
    #[test]
    fn budgets_that_change_lose_nothing() {
        let mut store = Store::<u64>::default();
        let (mut at, mut seed) = (0, 7_u64);
        while at < 60_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // What is prepared is not always used up.
            let (units, rows, used) = if seed >> 63 == 0 { (100_000, 8_192, 1_000) } else { (500, 100, 100) };
            if store.prepare(100_000, at, at + rows, &mut Budget::new(units)).unwrap() {
                let room = store.room(100_000, at, used).unwrap();
                (at as u64..).zip(room).for_each(|(value, slot)| *slot = value);
                at += used;
            }
        }
        let values = store.share(at).unwrap();
        assert!((0..).zip(values.iter()).all(|(number, value)| number == *value));
    }

    /// Adds values in slices, with this budget for each call; returns the largest units of a call.
    fn fill(store: &mut Store<u32>, values: u32, slice: usize, units: u64) -> u64 {
        let (mut at, mut largest) = (0, 0);
        while at < values as usize {
            let end = (at + slice).min(values as usize);
            loop {
                let mut budget = Budget::new(units);
                let (held, grows) = (store.held(), store.grows_bytes(8_192, at, end));
                let is_ready = store.prepare(8_192, at, end, &mut budget).unwrap();
                assert!(store.held() <= held + grows, "{} of {held} and {grows}", store.held());
                largest = largest.max(budget.spent());
                if is_ready {
                    break;
                }
            }
            let room = store.room(8_192, at, end - at).unwrap();
            room.iter_mut().zip(u32::try_from(at).unwrap()..).for_each(|(value, number)| *value = number);
            at = end;
        }
        largest
    }

    #[test]
    fn a_large_array_is_collected_in_parts_and_joined() {
        for (values, slice) in [(262_143, 8_192), (262_144, 8_192), (1_000_003, 8_192), (3_000_000, 77)] {
            let mut store = Store::<u32>::default();
            let largest = fill(&mut store, values, slice, 0);
            let room = ROOM_PRICE.of(ROOM_SLICE_BYTES, 0);
            assert!(largest <= 2 * room, "{largest} units for {values} values: moved, and filled");
            let length = values as usize;
            assert!(store.held() < length * 4 + (3 << 20), "{}", store.held());
            assert_eq!(store.joins_bytes(length) > 0, length > Store::<u32>::PART);
            let mut steps = 0;
            loop {
                let mut budget = Budget::new(0);
                let is_done = store.join(length, length, &mut budget).unwrap();
                let copied = room + COPY_PRICE.of(ROOM_SLICE_BYTES, 0);
                assert!(budget.spent() <= copied + RELEASE_PRICE.of(130 << 10, 1), "a slice of a part");
                steps += 1;
                if is_done {
                    break;
                }
                assert!(store.is_joining() && store.share(length).is_err());
            }
            assert!(steps >= if length > Store::<u32>::PART { length * 4 / ROOM_SLICE_BYTES } else { 1 });
            let array = store.share(length).unwrap();
            assert!(array.iter().copied().eq(0..values));
            assert_eq!(store.held(), 0);
            // What was large is not kept for later.
            drop(array);
            let mut budget = Budget::unlimited();
            assert!(store.pool.release(&mut budget));
            assert!(budget.spent() <= RELEASE_PRICE.of(ARRAY_BYTES_MAX, 4), "{} units", budget.spent());
        }
    }

    #[test]
    fn a_part_begins_with_what_is_behind_the_last_value() {
        let mut store = Store::<u8>::default();
        // Bits, eleven at a time: a byte is filled by two of them.
        let bits = 9_000_000;
        let mut at = 0;
        while at < bits {
            let end = (at + 11).min(bits);
            let room = store.room(100, at / 8, end.div_ceil(8) - at / 8).unwrap();
            for bit in at..end {
                let byte = &mut room[bit / 8 - at / 8];
                *byte = *byte & !(1 << (bit % 8)) | u8::from(bit % 3 == 0) << (bit % 8);
            }
            at = end;
        }
        let bytes = bits / 8;
        assert!(store.room(100, 0, 1).is_err(), "a part that is complete");
        assert!(store.join(bytes, bytes, &mut Budget::unlimited()).unwrap());
        let array = store.share(bytes).unwrap();
        assert!((0..bits).all(|bit| array[bit / 8] >> (bit % 8) & 1 == u8::from(bit % 3 == 0)));
    }

    #[test]
    fn an_array_that_is_joined_ahead_stays_where_it_is() {
        let (values, total) = (400_000, 3_000_000);
        let mut store = Store::<u32>::default();
        fill(&mut store, values, 8_192, u64::MAX);
        assert!(store.has_parts());
        let length = values as usize;
        while !store.join(length, total, &mut Budget::new(0)).unwrap() {}
        let at = store.values().as_ptr();
        for start in (length..total).step_by(8_000) {
            let end = total.min(start + 8_000);
            assert_eq!(store.grows_bytes(8_192, start, end), 0);
            while !store.prepare(8_192, start, end, &mut Budget::new(0)).unwrap() {}
            let room = store.room(8_192, start, end - start).unwrap();
            room.iter_mut().zip(u32::try_from(start).unwrap()..).for_each(|(value, number)| *value = number);
        }
        assert!(!store.has_parts() && store.held() == total * 4);
        let array = store.share(total).unwrap();
        assert!(array.as_ptr() == at && array.iter().copied().eq(0..u32::try_from(total).unwrap()));
        // One that is longer than was said goes on in parts.
        fill(&mut store, values, 8_192, u64::MAX);
        assert!(store.join(length, length + 10, &mut Budget::unlimited()).unwrap());
        store.prepare(8_192, length, length + 100_000, &mut Budget::unlimited()).unwrap();
        assert!(store.has_parts());
    }

    #[test]
    fn the_parts_of_a_large_array_are_released_one_by_one() {
        let mut store = Store::<u32>::default();
        fill(&mut store, 2_000_000, 8_192, u64::MAX);
        let mut steps = 1;
        let mut largest = 0;
        loop {
            let (before, mut budget) = (store.held(), Budget::new(0));
            let is_done = store.release(&mut budget);
            largest = largest.max(before - store.held());
            if is_done {
                break;
            }
            steps += 1;
        }
        assert!(steps > 7 && store.held() == 0, "{steps} steps");
        assert!(largest <= Store::<u32>::PART * 4, "{largest} bytes in a step");
    }
}
