//! Freeing memory in slices.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use bytes::Bytes;

use crate::{Budget, Price, Segmented};

/// What can be released in slices: dropping it at once takes time for every page of its memory and for every
/// allocation.
///
/// A host that must not stall releases products and machines before it drops them:
///
/// ```
/// use marquetry_base::{Budget, Release};
///
/// let mut product = vec![0_u64; 1 << 20];
/// while !product.release(&mut Budget::default()) {
///     // Other work's turn.
/// }
/// drop(product);
/// ```
///
/// What is shared costs a reference count, and is released by whoever releases it last. (Where two threads drop their
/// shares at the same moment, neither may be the last when it looks: the second then frees all of it at once. And
/// [`Bytes`] with an owner, such as a host's, are freed as the owner is, whole; they are charged up to 1 MiB.)
///
/// One large allocation, such as an array, shrinks from its end: its tail is returned to the allocator with every
/// slice. glibc does that in place. An allocator that copies instead is noticed at the first slice that does, and the
/// rest is then freed at once, as dropping does.
///
/// What `free` itself does is the allocator's. glibc may return all that is free at the heap's end to the system in one
/// call (11 ms for 240 MB), and merges the small blocks that were freed when a larger one is asked for or freed (3 to 5
/// ms after those of a hundred thousand columns). A host that cannot have that sets `M_TRIM_THRESHOLD` so high that it
/// never does the first, `M_MXFAST` to 0 against the second, and `M_MMAP_THRESHOLD` to 128 KiB, so that segments and
/// arrays are not in the heap.
pub trait Release {
    /// Releases as much as the budget pays for, and one slice even if that is nothing: 128 KiB of an allocation, 1 MiB of
    /// what has another owner. True when nothing is left but what is cheap to drop; false if the budget does not pay for
    /// another slice: call again.
    ///
    /// What has been released in part is empty or has lost its end. It must be released further, or dropped.
    ///
    /// The default is right for what owns no memory.
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let _ = budget;
        true
    }
}

/// The price of releasing: bytes, which the system takes back page by page, and allocations.
pub const RELEASE_PRICE: Price = Price { kib: 128, kilovalue: 300 << 10 };

/// The most bytes of one allocation that are released at a time.
const SLICE_BYTES: usize = 128 << 10;

/// The most bytes that are charged for [`Bytes`] whose memory somebody else owns: they cannot say whether they are the
/// last that hold it.
const SHARED_BYTES_MAX: usize = 1 << 20;

/// True if the budget does not pay for a slice, or a segment of a [`Segmented`] list.
fn is_low(budget: &mut Budget<'_>) -> bool {
    budget.left() < RELEASE_PRICE.of(2 * SLICE_BYTES, 1) || budget.is_spent()
}

/// Releases several things, one after the other: for what consists of parts. True once all of them are released.
///
/// A part that is released already costs nothing. So every call goes on with the next one, however small its budget.
pub fn release_all(parts: &mut [&mut dyn Release], budget: &mut Budget<'_>) -> bool {
    for part in parts {
        let before = budget.spent();
        if !part.release(budget) || (budget.spent() > before && is_low(budget)) {
            return false;
        }
    }
    true
}

macro_rules! owns_no_memory {
    ($($plain:ty),*) => { $(impl Release for $plain {})* };
}

owns_no_memory!((), bool, u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, f32, f64);

impl<A: Release, B: Release> Release for (A, B) {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.0, &mut self.1], budget)
    }
}

impl<T: Release, const N: usize> Release for [T; N] {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let mut parts = self.each_mut().map(|part| part as &mut dyn Release);
        release_all(&mut parts, budget)
    }
}

/// A name, which is short: it is freed when it is dropped.
impl Release for Arc<str> {
    fn release(&mut self, _budget: &mut Budget<'_>) -> bool {
        true
    }
}

impl<T: Release> Release for Vec<T> {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        if !core::mem::needs_drop::<T>() {
            self.clear();
        }
        while let Some(last) = self.last_mut() {
            if !last.release(budget) {
                return false;
            }
            self.pop();
            budget.charge(RELEASE_PRICE, 0, 1);
            if is_low(budget) {
                return false;
            }
        }
        release_memory(self, budget)
    }
}

/// Releases the memory of a vector that is empty.
fn release_memory<T>(memory: &mut Vec<T>, budget: &mut Budget<'_>) -> bool {
    loop {
        let held = memory.capacity().saturating_mul(size_of::<T>());
        if held == 0 {
            return true;
        }
        if held > SLICE_BYTES {
            let start = memory.as_ptr();
            memory.shrink_to((held - SLICE_BYTES) / size_of::<T>().max(1));
            let left = memory.capacity().saturating_mul(size_of::<T>());
            if memory.as_ptr() == start && left < held {
                budget.charge(RELEASE_PRICE, held - left, 0);
                if is_low(budget) {
                    return false;
                }
                continue;
            }
            // The allocator copies: every further slice would cost as much as all of them.
        }
        budget.charge(RELEASE_PRICE, held, 1);
        *memory = Vec::new();
        return true;
    }
}

impl<T: Release> Release for Segmented<T> {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        if core::mem::needs_drop::<T>() {
            while let Some(last) = self.last_mut() {
                if !last.release(budget) {
                    return false;
                }
                self.pop();
                budget.charge(RELEASE_PRICE, size_of::<T>(), 1);
                if is_low(budget) {
                    return false;
                }
            }
        }
        while let Some(bytes) = self.pop_segment() {
            budget.charge(RELEASE_PRICE, bytes, 1);
            if is_low(budget) {
                return false;
            }
        }
        true
    }
}

impl<T: Release> Release for VecDeque<T> {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        while let Some(last) = self.back_mut() {
            if !last.release(budget) {
                return false;
            }
            self.pop_back();
            budget.charge(RELEASE_PRICE, 0, 1);
            if is_low(budget) {
                return false;
            }
        }
        let mut memory = Vec::from(core::mem::take(self));
        let is_done = release_memory(&mut memory, budget);
        *self = memory.into();
        is_done
    }
}

impl<K: Ord, V: Release> Release for BTreeMap<K, V> {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        while let Some(mut last) = self.last_entry() {
            if !last.get_mut().release(budget) {
                return false;
            }
            last.remove();
            budget.charge(RELEASE_PRICE, size_of::<(K, V)>(), 1);
            if is_low(budget) {
                return false;
            }
        }
        true
    }
}

/// Each of the values is released in one go.
impl<T: Ord + Release> Release for BTreeSet<T> {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        while let Some(mut last) = self.pop_last() {
            while !last.release(budget) {}
            budget.charge(RELEASE_PRICE, size_of::<T>(), 1);
            if is_low(budget) {
                return false;
            }
        }
        true
    }
}

impl Release for Bytes {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let is_unique = self.is_unique();
        let bytes = core::mem::take(self);
        if !is_unique && bytes.is_empty() {
            return true;
        }
        match bytes.try_into_mut() {
            Ok(mut unique) => {
                // Else its bytes would be copied.
                unique.clear();
                let mut memory = Vec::from(unique);
                let is_done = memory.release(budget);
                if !is_done {
                    *self = memory.into();
                }
                is_done
            }
            Err(shared) => {
                let units = RELEASE_PRICE.of(shared.len().min(SHARED_BYTES_MAX), 1);
                if budget.spent() > 0 && budget.left() < units {
                    // It is the next call's; this one is at its end.
                    budget.charge_units(budget.left());
                    *self = shared;
                    return false;
                }
                budget.charge_units(units);
                drop(shared);
                true
            }
        }
    }
}

impl Release for String {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let mut memory = core::mem::take(self).into_bytes();
        let is_done = memory.release(budget);
        *self = String::from_utf8(memory).unwrap_or_default();
        is_done
    }
}

impl<T: Release> Release for Option<T> {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let is_done = self.as_mut().is_none_or(|some| some.release(budget));
        if is_done {
            *self = None;
        }
        is_done
    }
}

impl<T: Release + ?Sized> Release for Box<T> {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        (**self).release(budget)
    }
}

impl<T: Release> Release for Arc<T> {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        Arc::get_mut(self).is_none_or(|unique| unique.release(budget))
    }
}

impl<T: Release + ?Sized> Release for &mut T {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        (**self).release(budget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bitmap, Buffer, Pool};
    use alloc::format;
    use alloc::vec;

    /// Releases all, with this budget for each call: the number of calls, the largest and the sum of their units.
    fn released(mut thing: impl Release, units: u64) -> (usize, u64, u64) {
        let (mut calls, mut largest, mut sum) = (0, 0, 0);
        loop {
            let mut budget = Budget::new(units);
            let is_done = thing.release(&mut budget);
            (calls, largest, sum) = (calls + 1, largest.max(budget.spent()), sum + budget.spent());
            if is_done {
                break;
            }
            assert!(budget.spent() > 0 && calls < 1_000_000, "a call that does nothing");
        }
        let mut again = Budget::new(0);
        assert!(thing.release(&mut again) && again.spent() == 0, "what is released costs nothing");
        (calls, largest, sum)
    }

    fn price(bytes: usize) -> u64 {
        RELEASE_PRICE.of(bytes, 0)
    }

    #[test]
    fn one_allocation_shrinks_from_its_end() {
        const BYTES: usize = 40 << 20;
        for units in [0, Budget::DEFAULT_UNITS] {
            let check = |(calls, largest, sum): (usize, u64, u64)| {
                assert!(calls >= usize::try_from(price(BYTES) / (units + price(SLICE_BYTES))).unwrap());
                assert!(largest <= units + price(SLICE_BYTES) + RELEASE_PRICE.of(0, 3), "{largest} units");
                assert!(sum >= price(BYTES), "{sum} units");
            };
            check(released(vec![1_u64; BYTES / 8], units));
            check(released(Buffer::from(vec![1_u128; BYTES / 16]), units));
            check(released(Bitmap::new(vec![1; BYTES].into(), 3, BYTES * 8 - 3), units));
            check(released(String::from_utf8(vec![b'a'; BYTES]).unwrap(), units));
            check(released(Bytes::from(vec![1; BYTES]), units));
            // All there is of a larger piece, whose memory it holds.
            let mut part = Bytes::from(vec![1; BYTES]);
            part = part.slice(7..BYTES / 2);
            check(released(part, units));
            check(released((0..BYTES as u64 / 8).collect::<Segmented<u64>>(), units));
            check(released(Some(Box::new(vec![vec![1_u8; BYTES / 10]; 10])), units));
            let parts = (0..10).map(|_| vec![1_u8; BYTES / 10]);
            check(released(parts.clone().collect::<VecDeque<_>>(), units));
            check(released((0..).zip(parts).collect::<BTreeMap<u8, _>>(), units));
        }
    }

    #[test]
    fn an_allocation_is_returned_slice_by_slice() {
        let mut memory = vec![1_u32; 1 << 20];
        let mut held = memory.capacity() * 4;
        while !memory.release(&mut Budget::new(0)) {
            let left = memory.capacity() * 4;
            assert!(memory.is_empty() && left < held && held - left <= SLICE_BYTES + 4, "{held}, {left}");
            held = left;
        }
        assert_eq!(memory.capacity(), 0);
    }

    #[test]
    fn what_is_shared_stays() {
        let bytes = Bytes::from(vec![7; 4 << 20]);
        let mut other = bytes.slice(100..);
        assert!(other.release(&mut Budget::new(0)) && other.is_empty());
        assert!(bytes.is_unique() && bytes.iter().all(|byte| *byte == 7));

        let buffer = Buffer::from(vec![7_u8; 4 << 20]);
        let mut other = buffer.slice(1..100);
        assert!(other.release(&mut Budget::new(0)));
        assert_eq!(buffer.len(), 4 << 20);
        drop(other);
        assert!(released(buffer, 0).0 >= 8);

        // Of several in one list, the last one frees the memory: in slices.
        let shared = Arc::new(vec![7_u8; 4 << 20]);
        let (calls, ..) = released(vec![Arc::clone(&shared), Arc::clone(&shared), shared], 0);
        assert!(calls >= 8 + 3);
    }

    #[test]
    fn parts_follow_each_other() {
        struct Two(Vec<u8>, Bytes, Segmented<Vec<u8>>);
        impl Release for Two {
            fn release(&mut self, budget: &mut Budget<'_>) -> bool {
                release_all(&mut [&mut self.0, &mut self.1, &mut self.2], budget)
            }
        }
        let two = Two(vec![1; 1 << 20], vec![2; 1 << 20].into(), (0..100).map(|_| vec![3; 10_000]).collect());
        let (calls, largest, sum) = released(two, 0);
        assert!(
            calls >= 104 && largest <= price(SLICE_BYTES) + RELEASE_PRICE.of(0, 2),
            "{calls} calls, {largest} units"
        );
        assert!(sum >= price((2 << 20) + 1_000_000));
    }

    #[test]
    fn a_budget_that_was_spent_before_is_no_reason_to_do_nothing() {
        let mut budget = Budget::new(0);
        budget.charge_units(1);
        let mut list: Segmented<Vec<u8>> = (0..10).map(|_| vec![0; 1 << 20]).collect();
        let mut calls = 0;
        while !list.release(&mut budget) {
            calls += 1;
            assert!(calls < 100);
        }
    }

    #[test]
    fn a_pool_releases_what_nobody_else_has() {
        let mut pool = Pool::<u64>::new();
        let values = pool.take(100_000).unwrap();
        let kept = pool.share(values, 100_000);
        let values = pool.take(300_000).unwrap();
        drop(pool.share(values, 300_000));
        let (_, _, sum) = released(pool, 0);
        assert!((price(2_400_000)..price(2_500_000)).contains(&sum), "{sum} units");
        assert_eq!(kept.len(), 100_000);
        assert!(!format!("{kept:?}").is_empty());
    }
}
