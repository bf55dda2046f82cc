//! Shared, immutable arrays of values, and the pool that recycles their memory.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;
use core::ops::{Deref, Range};

use crate::{Budget, Release};

/// A shared slice of values. Cloning and slicing cost one reference count, never a copy.
#[derive(Clone)]
pub struct Buffer<T> {
    values: Arc<Vec<T>>,
    start: usize,
    length: usize,
}

impl<T> Buffer<T> {
    /// A part of the buffer.
    ///
    /// # Panics
    ///
    /// When the range reaches beyond the buffer, as for slices.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Buffer<T> {
        assert!(range.start <= range.end && range.end <= self.length, "range {range:?} of {}", self.length);
        Buffer { values: Arc::clone(&self.values), start: self.start + range.start, length: range.len() }
    }

    /// The vector itself, if nothing else shares it.
    pub fn into_vec(self) -> Option<Vec<T>> {
        if self.start == 0 && self.length == self.values.len() {
            Arc::try_unwrap(self.values).ok()
        } else {
            None
        }
    }

    /// The shared vector that backs the buffer, and the buffer's range in it: for zero-copy hand-over.
    pub fn into_parts(self) -> (Arc<Vec<T>>, Range<usize>) {
        (self.values, self.start..self.start + self.length)
    }
}

impl<T> From<Vec<T>> for Buffer<T> {
    fn from(values: Vec<T>) -> Buffer<T> {
        let length = values.len();
        Buffer { values: Arc::new(values), start: 0, length }
    }
}

impl<T> Default for Buffer<T> {
    fn default() -> Buffer<T> {
        Vec::new().into()
    }
}

impl<T> Deref for Buffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.values[self.start..self.start + self.length]
    }
}

impl<T> AsRef<[T]> for Buffer<T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<T: Release> Release for Buffer<T> {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let Some(values) = Arc::get_mut(&mut self.values) else { return true };
        (self.start, self.length) = (0, 0);
        values.release(budget)
    }
}

impl<T: fmt::Debug> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: PartialEq> PartialEq for Buffer<T> {
    fn eq(&self, other: &Buffer<T>) -> bool {
        **self == **other
    }
}

/// Memory for buffers of one kind, reused once nothing else shares it.
///
/// A decoder fills the vector from [`Pool::take`], shares it with [`Pool::share`], and gets the same memory back
/// later if the reader of the batch has dropped it by then. So steady reading allocates nothing and touches memory
/// that is still in the cache.
#[derive(Debug)]
pub struct Pool<T> {
    shared: Vec<Arc<Vec<T>>>,
    /// The most vectors that it tracks.
    most: usize,
}

/// The most vectors that a pool tracks, where a batch has one. A reader that drops each batch before the next needs two; one that keeps
/// more gets new memory.
const POOL_VECTORS_MAX: usize = 4;

/// Bytes by which memory that is used again may be larger than what is asked for, besides a quarter of that.
const FITTING_BYTES: usize = 64 << 10;

impl<T: Clone + Default> Pool<T> {
    /// An empty pool.
    pub const fn new() -> Pool<T> {
        Pool::of_at_most(POOL_VECTORS_MAX)
    }

    /// An empty pool that tracks at most so many vectors, for batches that have several; at least one.
    pub const fn of_at_most(vectors: usize) -> Pool<T> {
        Pool { shared: Vec::new(), most: vectors }
    }

    /// A vector of `length` values, zero or left over from an earlier use.
    ///
    /// # Errors
    ///
    /// [`Detail::OutOfMemory`](crate::Detail::OutOfMemory) when the memory cannot be allocated.
    pub fn take(&mut self, length: usize) -> crate::Result<Vec<T>> {
        let free = self.shared.iter_mut().position(|shared| Arc::get_mut(shared).is_some());
        let mut values = match free {
            Some(free) => Arc::try_unwrap(self.shared.swap_remove(free)).unwrap_or_default(),
            None => Vec::new(),
        };
        if values.len() < length {
            values
                .try_reserve_exact(length - values.len())
                .map_err(|_| crate::Error::out_of_memory(length.saturating_mul(size_of::<T>())))?;
            values.resize(length, T::default());
        }
        Ok(values)
    }

    /// A vector with capacity for `length` values, and not much more; with any capacity if that is 0. It is empty, or
    /// holds values of an earlier use; the caller extends it as needed, so a large new vector is not filled in one go.
    ///
    /// # Errors
    ///
    /// [`Detail::OutOfMemory`](crate::Detail::OutOfMemory) when the memory cannot be allocated.
    pub fn take_memory(&mut self, length: usize) -> crate::Result<Vec<T>> {
        if let Some(fitting) = self.fitting(length) {
            return Ok(Arc::try_unwrap(self.shared.swap_remove(fitting)).unwrap_or_default());
        }
        // One that is too small makes place for another: its contents are useless, and growing would copy them.
        let small = self.free().find(|(_, capacity)| *capacity < length);
        if let Some((small, _)) = small {
            self.shared.swap_remove(small);
        }
        let mut values = Vec::new();
        values
            .try_reserve_exact(length)
            .map_err(|_| crate::Error::out_of_memory(length.saturating_mul(size_of::<T>())))?;
        Ok(values)
    }

    /// Bytes that [`Pool::take_memory`] would allocate: none if it has a vector of about this length.
    pub fn allocates(&self, length: usize) -> usize {
        if self.fitting(length).is_some() { 0 } else { length.saturating_mul(size_of::<T>()) }
    }

    /// Bytes of the vectors that nothing else shares.
    pub fn idle_bytes(&self) -> usize {
        self.free().map(|(_, capacity)| capacity.saturating_mul(size_of::<T>())).sum()
    }

    /// The vectors that nothing else shares: their places and capacities.
    fn free(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let shared = self.shared.iter().enumerate();
        shared.filter(|(_, it)| Arc::strong_count(it) == 1).map(|(number, it)| (number, it.capacity()))
    }

    /// A vector with this capacity, or a little more: what is shared should not keep much more alive than it has.
    fn fitting(&self, length: usize) -> Option<usize> {
        if length == 0 {
            return self.free().next().map(|(number, _)| number);
        }
        let most = length.saturating_add(length / 4).saturating_add(FITTING_BYTES / size_of::<T>().max(1));
        let mut free = self.free();
        free.find(|(_, capacity)| (length..=most).contains(capacity)).map(|(number, _)| number)
    }

    /// Shares the first `length` values of a vector from [`Pool::take`] or [`Pool::take_memory`].
    pub fn share(&mut self, values: Vec<T>, length: usize) -> Buffer<T> {
        let values = Arc::new(values);
        let length = length.min(values.len());
        if self.shared.len() >= self.most && !self.shared.is_empty() {
            // The reader keeps its batches: drop the oldest vector, whose memory will not come back soon.
            self.shared.remove(0);
        }
        self.shared.push(Arc::clone(&values));
        Buffer { values, start: 0, length }
    }
}

impl<T: Clone + Default> Default for Pool<T> {
    fn default() -> Pool<T> {
        Pool::new()
    }
}

impl<T: Release> Release for Pool<T> {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.shared.release(budget)
    }
}

/// A shared bitmap: bits in bytes, the least significant bit first (Arrow's order).
#[derive(Clone)]
pub struct Bitmap {
    bytes: Buffer<u8>,
    offset: usize,
    length: usize,
}

impl Bitmap {
    /// A bitmap of `length` bits, the first of which is bit `offset` of `bytes`.
    ///
    /// # Panics
    ///
    /// When `bytes` is too short.
    pub fn new(bytes: Buffer<u8>, offset: usize, length: usize) -> Bitmap {
        assert!(bytes.len().saturating_mul(8) >= offset.saturating_add(length), "a bitmap too short");
        Bitmap { bytes, offset, length }
    }

    /// The number of bits.
    pub fn len(&self) -> usize {
        self.length
    }

    /// True when there are no bits.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The bit at `index`, counted from the bitmap's start; false beyond its end.
    #[inline]
    pub fn get(&self, index: usize) -> bool {
        if index >= self.length {
            return false;
        }
        let bit = self.offset + index;
        self.bytes[bit / 8] >> (bit % 8) & 1 == 1
    }

    /// A part of the bitmap.
    ///
    /// # Panics
    ///
    /// When the range reaches beyond the bitmap.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Bitmap {
        assert!(range.start <= range.end && range.end <= self.length, "range {range:?} of {}", self.length);
        Bitmap { bytes: self.bytes.clone(), offset: self.offset + range.start, length: range.len() }
    }

    /// The bytes that hold the bits.
    pub fn bytes(&self) -> &Buffer<u8> {
        &self.bytes
    }

    /// The position of the first bit in [`Bitmap::bytes`].
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// All bits, in order.
    pub fn iter(&self) -> impl Iterator<Item = bool> + '_ {
        (0..self.length).map(|index| self.get(index))
    }
}

impl Release for Bitmap {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        (self.offset, self.length) = (0, 0);
        self.bytes.release(budget)
    }
}

impl FromIterator<bool> for Bitmap {
    fn from_iter<I: IntoIterator<Item = bool>>(bits: I) -> Bitmap {
        let (mut bytes, mut length) = (Vec::new(), 0);
        for bit in bits {
            if length % 8 == 0 {
                bytes.push(0u8);
            }
            bytes[length / 8] |= u8::from(bit) << (length % 8);
            length += 1;
        }
        Bitmap { bytes: bytes.into(), offset: 0, length }
    }
}

impl PartialEq for Bitmap {
    fn eq(&self, other: &Bitmap) -> bool {
        self.length == other.length && self.iter().eq(other.iter())
    }
}

impl fmt::Debug for Bitmap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(u8::from)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn a_pool_gives_memory_back_once_it_is_free() {
        let mut pool = Pool::<u32>::new();
        let values = pool.take(100).unwrap();
        let address = values.as_ptr();
        let buffer = pool.share(values, 90);
        let kept = buffer.clone();
        drop(buffer);
        let other = pool.take(10).unwrap();
        assert_ne!(other.as_ptr(), address, "the memory is still held");
        drop(kept);
        let again = pool.take(80).unwrap();
        assert_eq!((again.as_ptr(), again.len()), (address, 100));
    }

    #[test]
    fn a_pool_gives_memory_that_is_not_filled() {
        let mut pool = Pool::<u32>::new();
        let mut values = pool.take_memory(100).unwrap();
        assert!(values.is_empty() && values.capacity() >= 100);
        values.resize(60, 7);
        drop(pool.share(values, 50));
        let again = pool.take_memory(70).unwrap();
        assert_eq!((again.len(), again[59]), (60, 7), "what it had is filled");
        drop(pool.share(again, 1));
        assert!(pool.take_memory(200).unwrap().capacity() >= 200);
    }

    #[test]
    fn a_pool_tells_what_it_allocates_and_has() {
        let mut pool = Pool::<u32>::new();
        assert_eq!((pool.allocates(100_000), pool.idle_bytes()), (400_000, 0));
        let values = pool.take_memory(100_000).unwrap();
        let shared = pool.share(values, 0);
        assert_eq!((pool.allocates(100_000), pool.idle_bytes()), (400_000, 0), "somebody else has it");
        drop(shared);
        assert_eq!((pool.allocates(100_000), pool.idle_bytes()), (0, 400_000));
        // What is much larger stays for what is large; what is smaller makes place.
        assert_eq!(pool.allocates(10_000), 40_000);
        let small = pool.take_memory(10_000).unwrap();
        assert!(small.capacity() < 50_000 && pool.idle_bytes() == 400_000);
        assert_eq!(pool.allocates(200_000), 800_000);
        assert!(pool.take_memory(200_000).unwrap().capacity() >= 200_000);
        assert_eq!(pool.idle_bytes(), 0);
    }

    #[test]
    fn slices_share() {
        let buffer = Buffer::from(vec![1, 2, 3, 4, 5]);
        let slice = buffer.slice(1..4).slice(1..3);
        assert_eq!(&*slice, [3, 4]);
        assert_eq!(slice.into_vec(), None);
        assert_eq!(buffer.into_vec(), Some(vec![1, 2, 3, 4, 5]));
    }

    #[test]
    fn bitmaps_slice_at_any_bit() {
        let bits: Vec<bool> = (0..40).map(|i| i % 3 == 0).collect();
        let bitmap: Bitmap = bits.iter().copied().collect();
        for start in 0..40 {
            let slice = bitmap.slice(start..40);
            assert!(slice.iter().eq(bits[start..].iter().copied()), "from {start}");
            assert!(!slice.get(slice.len()));
        }
    }
}
