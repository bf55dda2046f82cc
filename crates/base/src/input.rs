//! The bytes of one object that a machine has been given and still needs.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

use bytes::Bytes;

use crate::cast::{u64_of, usize_of};
use crate::{Error, Result};

/// Supplied bytes of one object, kept by reference in segments that do not overlap.
///
/// Pieces may come in any order and may overlap what is there already (the first to come is kept).
#[derive(Debug, Default, Clone)]
pub struct Input {
    /// Start offset to segment. No segment is empty; none overlaps another.
    segments: BTreeMap<u64, Bytes>,
    held: u64,
}

impl Input {
    /// Nothing supplied yet.
    pub fn new() -> Input {
        Input::default()
    }

    /// Keeps `bytes` that stand at `start` in the object.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Misuse`](crate::ErrorKind::Misuse) when the range ends beyond what a `u64` can hold.
    pub fn supply(&mut self, start: u64, mut bytes: Bytes) -> Result<()> {
        let mut at = start;
        if at.checked_add(u64_of(bytes.len())).is_none() {
            return Err(Error::misuse("bytes supplied beyond the end of any object"));
        }
        // What an earlier segment covers already.
        if let Some((&before, segment)) = self.segments.range(..=at).next_back() {
            let covered = (before + u64_of(segment.len())).saturating_sub(at);
            let covered = usize_of(covered).unwrap_or(usize::MAX).min(bytes.len());
            at += u64_of(covered);
            bytes = bytes.slice(covered..);
        }
        while !bytes.is_empty() {
            let next = self.segments.range(at..).next().map(|(&next, segment)| (next, u64_of(segment.len())));
            let gap = next
                .map_or(bytes.len(), |(next, _)| usize_of(next - at).unwrap_or(usize::MAX).min(bytes.len()));
            if gap > 0 {
                self.held += u64_of(gap);
                self.segments.insert(at, bytes.slice(..gap));
            }
            let skip = gap + next.map_or(0, |(_, length)| usize_of(length).unwrap_or(usize::MAX));
            let skip = skip.min(bytes.len());
            at += u64_of(skip);
            bytes = bytes.slice(skip..);
        }
        Ok(())
    }

    /// The first part of `range` that is not there, or `None` when all of it is.
    pub fn missing(&self, range: Range<u64>) -> Option<Range<u64>> {
        let mut at = range.start;
        if let Some((&before, segment)) = self.segments.range(..=at).next_back() {
            at = at.max(before + u64_of(segment.len()));
        }
        while at < range.end {
            match self.segments.range(at..).next() {
                Some((&next, segment)) if next == at => at += u64_of(segment.len()),
                Some((&next, _)) => return Some(at..next.min(range.end)),
                None => return Some(at..range.end),
            }
        }
        None
    }

    /// Bytes from `start` on that are there without a gap, at most `length`, as far as one segment reaches. Empty when
    /// the byte at `start` is not there.
    pub fn segment(&self, start: u64, length: u64) -> Bytes {
        let Some((&before, segment)) = self.segments.range(..=start).next_back() else { return Bytes::new() };
        match usize_of(start - before) {
            Some(skip) if skip < segment.len() => {
                let take = usize_of(length).unwrap_or(usize::MAX).min(segment.len() - skip);
                segment.slice(skip..skip + take)
            }
            _ => Bytes::new(),
        }
    }

    /// The bytes of `range` in one piece, or `None` when some are missing. Copies only where `range` spans segments.
    ///
    /// # Errors
    ///
    /// When the memory for a copy cannot be had.
    pub fn contiguous(&self, range: Range<u64>) -> Result<Option<Bytes>> {
        let length = range.end.saturating_sub(range.start);
        let first = self.segment(range.start, length);
        if u64_of(first.len()) == length {
            return Ok(Some(first));
        }
        if self.missing(range.clone()).is_some() {
            return Ok(None);
        }
        let capacity = usize_of(length).ok_or_else(|| Error::out_of_memory(usize::MAX))?;
        let mut whole = Vec::new();
        whole.try_reserve_exact(capacity).map_err(|_| Error::out_of_memory(capacity))?;
        let mut at = range.start;
        while at < range.end {
            let piece = self.segment(at, range.end - at);
            at += u64_of(piece.len());
            whole.extend_from_slice(&piece);
        }
        Ok(Some(Bytes::from(whole)))
    }

    /// Lets go of the bytes of `range`; what stands around it stays.
    pub fn release(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        // The segment that the range begins in the middle of.
        if let Some((&before, segment)) = self.segments.range_mut(..range.start).next_back() {
            let keep = range.start - before;
            if let Some(keep) = usize_of(keep).filter(|&keep| keep < segment.len()) {
                let tail = segment.split_off(keep);
                self.held -= u64_of(tail.len());
                self.keep_from(range.start, tail, range.end);
            }
        }
        while let Some((&start, _)) = self.segments.range(range.start..range.end).next() {
            let Some(segment) = self.segments.remove(&start) else { return };
            self.held -= u64_of(segment.len());
            if self.keep_from(start, segment, range.end) {
                return;
            }
        }
    }

    /// Keeps the part of a segment at `start` that stands at or behind `from`. True when there is one.
    fn keep_from(&mut self, start: u64, segment: Bytes, from: u64) -> bool {
        match usize_of(from.saturating_sub(start)).filter(|&skip| skip < segment.len()) {
            Some(skip) => {
                let kept = segment.slice(skip..);
                self.held += u64_of(kept.len());
                self.segments.insert(start.max(from), kept);
                true
            }
            None => false,
        }
    }

    /// Lets go of everything.
    pub fn clear(&mut self) {
        self.segments.clear();
        self.held = 0;
    }

    /// Bytes held.
    pub fn held(&self) -> u64 {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(range: Range<u64>) -> Bytes {
        range.map(|at| b'a' + u8::try_from(at % 26).unwrap()).collect::<Vec<u8>>().into()
    }

    #[test]
    fn pieces_in_any_order_and_overlapping() {
        let mut input = Input::new();
        for range in [10..20, 4..6, 0..4, 3..12, 18..30, 0..30] {
            input.supply(range.start, text(range)).unwrap();
        }
        assert_eq!(input.held(), 30);
        assert_eq!(input.missing(0..30), None);
        assert_eq!(input.missing(5..40), Some(30..40));
        assert_eq!(input.contiguous(0..30).unwrap().unwrap(), text(0..30));
        assert_eq!(input.contiguous(11..13).unwrap().unwrap(), text(11..13));
        assert_eq!(input.contiguous(29..31).unwrap(), None);
        input.release(0..15);
        assert_eq!((input.held(), input.missing(14..16)), (15, Some(14..15)));
        assert_eq!(input.segment(15, 100), text(15..20));
    }

    #[test]
    fn every_split_of_a_range_reads_the_same() {
        let whole = text(0..12);
        for a in 0..12u64 {
            for b in a..12 {
                let mut input = Input::new();
                for range in [b..12, 0..a, a..b] {
                    if !range.is_empty() {
                        input.supply(range.start, text(range)).unwrap();
                    }
                }
                assert_eq!(input.contiguous(0..12).unwrap().unwrap(), whole);
                assert_eq!(input.held(), 12);
            }
        }
    }

    #[test]
    fn any_part_can_be_released() {
        for start in 0..12u64 {
            for end in start..=12 {
                for cut in 0..12u64 {
                    let mut input = Input::new();
                    for range in [0..cut, cut..12] {
                        input.supply(range.start, text(range)).unwrap();
                    }
                    input.release(start..end);
                    assert_eq!(input.held(), 12 - (end - start), "{start}..{end} of a cut at {cut}");
                    for at in 0..12 {
                        assert_eq!(input.missing(at..at + 1).is_some(), (start..end).contains(&at));
                    }
                    assert_eq!(input.contiguous(0..start).unwrap().unwrap(), text(0..start));
                    assert_eq!(input.contiguous(end..12).unwrap().unwrap(), text(end..12));
                }
            }
        }
    }

    #[test]
    fn gaps_are_told() {
        let mut input = Input::new();
        assert_eq!(input.missing(3..9), Some(3..9));
        input.supply(5, text(5..7)).unwrap();
        assert_eq!(input.missing(3..9), Some(3..5));
        assert_eq!(input.missing(5..9), Some(7..9));
        assert!(input.supply(u64::MAX, text(0..2)).is_err());
        assert!(input.segment(2, 1).is_empty());
        assert_eq!(input.missing(6..6), None);
    }
}
