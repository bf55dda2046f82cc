//! A long list in several allocations.

use alloc::vec::Vec;
use core::fmt;
use core::ops::{Index, IndexMut};

/// A list that grows without moving its values, in segments of 128 to 256 KiB: for lists that a file may make long,
/// such as the column chunks of a wide table. No operation allocates or copies more than one segment.
#[derive(Clone)]
pub struct Segmented<T> {
    /// All but the last hold [`Segmented::SEGMENT`] values.
    segments: Vec<Vec<T>>,
    length: usize,
}

/// The least bytes of a segment, if it is full. glibc maps allocations from this size on, and unmaps each when it is
/// freed; what is smaller stays in its heap until it is all returned at once.
const SEGMENT_BYTES: usize = 128 << 10;

impl<T> Segmented<T> {
    /// Values per segment: a power of two, so that a position is found by shifting.
    const SEGMENT: usize = {
        let size = if size_of::<T>() == 0 { 1 } else { size_of::<T>() };
        SEGMENT_BYTES.div_ceil(size).next_power_of_two()
    };

    /// An empty list.
    pub const fn new() -> Segmented<T> {
        Segmented { segments: Vec::new(), length: 0 }
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.length
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Adds a value at the end.
    #[inline]
    pub fn push(&mut self, value: T) {
        match self.segments.last_mut() {
            Some(last) if last.len() < Self::SEGMENT => last.push(value),
            _ => self.push_segment(value),
        }
        self.length += 1;
    }

    #[cold]
    fn push_segment(&mut self, value: T) {
        // The first segment grows as a vector does, but from one value: many lists have only one. The others will be
        // filled.
        let mut segment = Vec::with_capacity(if self.segments.is_empty() { 1 } else { Self::SEGMENT });
        segment.push(value);
        self.segments.push(segment);
    }

    /// Removes the last value.
    pub fn pop(&mut self) -> Option<T> {
        let last = self.segments.last_mut()?;
        let value = last.pop()?;
        if last.is_empty() {
            self.segments.pop();
        }
        self.length -= 1;
        Some(value)
    }

    /// Drops the last segment and returns its bytes; at the end, the list of segments.
    pub(crate) fn pop_segment(&mut self) -> Option<usize> {
        if let Some(last) = self.segments.pop() {
            self.length -= last.len();
            return Some(last.capacity() * size_of::<T>());
        }
        let held = self.segments.capacity() * size_of::<Vec<T>>();
        self.segments = Vec::new();
        (held > 0).then_some(held)
    }

    /// The value at `index`, if there is one.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        self.segments.get(index / Self::SEGMENT)?.get(index % Self::SEGMENT)
    }

    /// The value at `index`, mutably.
    #[inline]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        self.segments.get_mut(index / Self::SEGMENT)?.get_mut(index % Self::SEGMENT)
    }

    /// The segment that the value at `index` is in: the index of its first value, and all its values. For loops that
    /// stay in a segment.
    pub fn segment_of(&self, index: usize) -> Option<(usize, &[T])> {
        let segment = self.segments.get(index / Self::SEGMENT).filter(|_| index < self.length)?;
        Some((index - index % Self::SEGMENT, segment))
    }

    /// The first value.
    pub fn first(&self) -> Option<&T> {
        self.get(0)
    }

    /// The last value.
    pub fn last(&self) -> Option<&T> {
        self.segments.last()?.last()
    }

    /// The last value, mutably.
    pub fn last_mut(&mut self) -> Option<&mut T> {
        self.segments.last_mut()?.last_mut()
    }

    /// All values, in order.
    pub fn iter(&self) -> SegmentedIter<'_, T> {
        self.iter_from(0)
    }

    /// The values from `index` on.
    pub fn iter_from(&self, index: usize) -> SegmentedIter<'_, T> {
        SegmentedIter { list: self, next: index.min(self.length), end: self.length }
    }

    /// The number of leading values for which `is_before` is true, given that it is false for all that follow them.
    pub fn partition_point(&self, mut is_before: impl FnMut(&T) -> bool) -> usize {
        let segment = self.segments.partition_point(|segment| segment.last().is_some_and(&mut is_before));
        let within = self.segments.get(segment).map_or(0, |values| values.partition_point(&mut is_before));
        // If it is true for all values: the last segment may not be full.
        (segment * Self::SEGMENT + within).min(self.length)
    }

    /// All values, in order, mutably.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.segments.iter_mut().flatten()
    }
}

/// The values of a [`Segmented`] list.
#[derive(Debug)]
pub struct SegmentedIter<'a, T> {
    list: &'a Segmented<T>,
    next: usize,
    end: usize,
}

impl<T> Clone for SegmentedIter<'_, T> {
    fn clone(&self) -> Self {
        SegmentedIter { list: self.list, next: self.next, end: self.end }
    }
}

impl<'a, T> Iterator for SegmentedIter<'a, T> {
    type Item = &'a T;

    #[inline]
    fn next(&mut self) -> Option<&'a T> {
        if self.next >= self.end {
            return None;
        }
        let value = self.list.get(self.next);
        self.next += 1;
        value
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.end - self.next, Some(self.end - self.next))
    }

    fn nth(&mut self, skip: usize) -> Option<&'a T> {
        self.next = self.next.saturating_add(skip).min(self.end);
        self.next()
    }
}

impl<T> DoubleEndedIterator for SegmentedIter<'_, T> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.next >= self.end {
            return None;
        }
        self.end -= 1;
        self.list.get(self.end)
    }
}

impl<T> ExactSizeIterator for SegmentedIter<'_, T> {}

impl<T> Default for Segmented<T> {
    fn default() -> Segmented<T> {
        Segmented::new()
    }
}

impl<T> Index<usize> for Segmented<T> {
    type Output = T;

    #[inline]
    fn index(&self, index: usize) -> &T {
        &self.segments[index / Self::SEGMENT][index % Self::SEGMENT]
    }
}

impl<T> IndexMut<usize> for Segmented<T> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self.segments[index / Self::SEGMENT][index % Self::SEGMENT]
    }
}

impl<'a, T> IntoIterator for &'a Segmented<T> {
    type Item = &'a T;
    type IntoIter = SegmentedIter<'a, T>;

    fn into_iter(self) -> SegmentedIter<'a, T> {
        self.iter()
    }
}

impl<T> Extend<T> for Segmented<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.push(value));
    }
}

impl<T> FromIterator<T> for Segmented<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Segmented<T> {
        let mut list = Segmented::new();
        list.extend(values);
        list
    }
}

impl<T> From<Vec<T>> for Segmented<T> {
    fn from(values: Vec<T>) -> Segmented<T> {
        values.into_iter().collect()
    }
}

impl<T: PartialEq> PartialEq for Segmented<T> {
    fn eq(&self, other: &Segmented<T>) -> bool {
        self.segments == other.segments
    }
}

impl<T: Eq> Eq for Segmented<T> {}

impl<T: fmt::Debug> fmt::Debug for Segmented<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_list() {
        let list: Segmented<u64> = (0..100_000).collect();
        assert_eq!((list.len(), list.first(), list.last()), (100_000, Some(&0), Some(&99_999)));
        assert!(list.iter().copied().eq(0..100_000));
        assert!(list.iter().rev().copied().eq((0..100_000).rev()));
        assert!(list.iter_from(70_000).copied().eq(70_000..100_000));
        assert_eq!((list[65_537], list.get(100_000), list.iter().nth(99_999)), (65_537, None, Some(&99_999)));
        assert_eq!(list, (0..100_000).collect::<Vec<_>>().into());
        assert_ne!(list, (1..100_001).collect());
        for point in [0, 1, 16_383, 16_384, 16_385, 99_999, 100_000] {
            assert_eq!(list.partition_point(|value| *value < point), usize::try_from(point).unwrap());
        }
        assert_eq!(Segmented::<u8>::new().partition_point(|_| true), 0);
        let (start, segment) = list.segment_of(40_000).unwrap();
        assert_eq!((start, segment.len(), segment[0]), (32_768, 16_384, 32_768));
        assert_eq!(list.segment_of(99_999).map(|(start, segment)| start + segment.len()), Some(100_000));
        assert_eq!(list.segment_of(100_000), None);
        let mut list = list;
        list.iter_mut().for_each(|value| *value += 1);
        list[99_999] = 7;
        assert_eq!((list[0], list.last()), (1, Some(&7)));
        assert!(Segmented::<u8>::new().last().is_none());
    }

    #[test]
    fn values_are_taken_from_its_end() {
        let mut list: Segmented<u64> = (0..40_000).collect();
        for left in (0..40_000).rev() {
            assert_eq!((list.pop(), list.len()), (Some(left), usize::try_from(left).unwrap()));
            assert_eq!(list.last().copied(), left.checked_sub(1));
            list.push(7);
            assert_eq!(list.pop(), Some(7));
        }
        assert_eq!((list.pop(), list.segments.len()), (None, 0));
    }

    #[test]
    fn no_segment_is_large() {
        let list: Segmented<[u64; 40]> = (0..10_000).map(|at| [at; 40]).collect();
        assert!(list.segments.len() > 15);
        for segment in &list.segments {
            assert!(segment.capacity() * size_of::<[u64; 40]>() < 2 * SEGMENT_BYTES);
        }
        assert_eq!(Segmented::<[u8; 1 << 20]>::SEGMENT, 1);
        assert_eq!(Segmented::<()>::SEGMENT, SEGMENT_BYTES);
    }
}
