//! The bytes of one object that a machine has been given and still needs.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Range;

use bytes::Bytes;

use crate::cast::{u64_of, usize_of};
use crate::{Budget, Error, Release, Result};

/// Supplied bytes of one object, kept by reference in segments that do not overlap.
///
/// Pieces may arrive in any order and may overlap earlier ones, whose bytes are then kept.
#[derive(Debug, Default, Clone)]
pub struct Input {
    /// Start offset to segment. No segment is empty; none overlaps another.
    segments: BTreeMap<u64, Bytes>,
    /// Start to end of each run of adjacent segments. A host that hands over small pieces asks after each of them
    /// whether a range is complete.
    runs: BTreeMap<u64, u64>,
    held: u64,
}

impl Input {
    /// Nothing supplied yet.
    pub fn new() -> Input {
        Input::default()
    }

    /// Keeps `bytes`, which start at the object's byte `start`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Misuse`](crate::ErrorKind::Misuse) when the range ends beyond what a `u64` can hold.
    pub fn supply(&mut self, start: u64, mut bytes: Bytes) -> Result<()> {
        let mut at = start;
        if at.checked_add(u64_of(bytes.len())).is_none() {
            return Err(Error::misuse("bytes supplied beyond the end of any object"));
        }
        // What an earlier segment already covers.
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
                self.cover(at..at + u64_of(gap));
                self.segments.insert(at, bytes.slice(..gap));
            }
            let skip = gap + next.map_or(0, |(_, length)| usize_of(length).unwrap_or(usize::MAX));
            let skip = skip.min(bytes.len());
            at += u64_of(skip);
            bytes = bytes.slice(skip..);
        }
        Ok(())
    }

    /// The first part of `range` that is missing, or `None` if none is. The work does not depend on the number of
    /// pieces.
    pub fn missing(&self, range: Range<u64>) -> Option<Range<u64>> {
        let covered = self.runs.range(..=range.start).next_back().map_or(0, |(_, &end)| end);
        let at = range.start.max(covered);
        if at >= range.end {
            return None;
        }
        let next = self.runs.range(at..).next().map_or(range.end, |(&next, _)| next);
        Some(at..next.min(range.end))
    }

    /// Joins a range that was wholly missing with the runs beside it.
    fn cover(&mut self, mut range: Range<u64>) {
        if let Some(end) = self.runs.remove(&range.end) {
            range.end = end;
        }
        match self.runs.range_mut(..range.start).next_back() {
            Some((_, end)) if *end == range.start => *end = range.end,
            _ => drop(self.runs.insert(range.start, range.end)),
        }
    }

    /// Takes a range out of the runs.
    fn uncover(&mut self, range: &Range<u64>) {
        if let Some((_, end)) = self.runs.range_mut(..range.start).next_back()
            && *end > range.start
        {
            let rest = range.end..core::mem::replace(end, range.start);
            if !rest.is_empty() {
                self.runs.insert(rest.start, rest.end);
                return;
            }
        }
        while let Some((&start, &end)) = self.runs.range(range.start..range.end).next() {
            self.runs.remove(&start);
            if end > range.end {
                self.runs.insert(range.end, end);
                return;
            }
        }
    }

    /// The bytes from `start` to the end of the segment that holds it, at most `length`. Empty if the byte at `start`
    /// is missing.
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

    /// The bytes of `range` in one piece, or `None` if some are missing. Copies only if `range` spans several
    /// segments.
    ///
    /// # Errors
    ///
    /// [`Detail::OutOfMemory`](crate::Detail::OutOfMemory) when the memory for a copy cannot be allocated.
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

    /// Releases the bytes of `range`, and only these.
    pub fn release(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        self.uncover(&range);
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

    /// Keeps the part of a segment at `start` that begins at or after `from`. True if there is such a part.
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

    /// Releases everything.
    pub fn clear(&mut self) {
        self.segments.clear();
        self.runs.clear();
        self.held = 0;
    }

    /// Bytes held.
    pub fn held(&self) -> u64 {
        self.held
    }
}

impl Release for Input {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        (self.runs, self.held) = (BTreeMap::new(), 0);
        self.segments.release(budget)
    }
}

/// Checks what a host supplies: as many bytes as it says, within the object where its length is known. Machines call it before
/// they take bytes in.
///
/// # Errors
///
/// [`ErrorKind::Misuse`](crate::ErrorKind::Misuse) where the range and the bytes differ in length, or the range ends beyond the
/// object.
pub fn check_supply(range: &Range<u64>, bytes: &Bytes, object_length: Option<u64>) -> Result<()> {
    if range.end.checked_sub(range.start) != Some(u64_of(bytes.len())) {
        return Err(Error::misuse(alloc::format!("{} bytes supplied as the range {range:?}", bytes.len())));
    }
    if object_length.is_some_and(|length| range.end > length) {
        return Err(Error::misuse(alloc::format!("bytes supplied beyond the object's end: {range:?}")));
    }
    Ok(())
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

    /// Against a model that knows each byte: pieces come and go in any order.
    #[test]
    fn runs_are_what_segments_are() {
        const END: u64 = 40;
        let index = |at: u64| usize_of(at).unwrap();
        let mut state = 7u64;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        for _ in 0..300 {
            let mut input = Input::new();
            let mut model = [false; 40];
            for _ in 0..30 {
                let start = below(END);
                let range = start..start + 1 + below((END - start).min(12));
                let is_there = below(3) > 0;
                if is_there {
                    input.supply(range.start, text(range.clone())).unwrap();
                } else {
                    input.release(range.clone());
                }
                range.for_each(|at| model[index(at)] = is_there);
                assert_eq!(input.held(), model.iter().filter(|there| **there).count() as u64);
                for from in 0..END {
                    let gap = (from..END).find(|&at| !model[index(at)]);
                    let end = |gap| (gap..END).find(|&at| model[index(at)]).unwrap_or(END);
                    assert_eq!(input.missing(from..END), gap.map(|gap| gap..end(gap)));
                }
                // Runs are as few as can be.
                let starts = (0..END).filter(|&at| model[index(at)] && (at == 0 || !model[index(at) - 1]));
                assert_eq!(input.runs.len(), starts.count());
            }
        }
    }

    #[test]
    fn what_is_supplied_is_checked() {
        let bytes = text(0..4);
        assert!(check_supply(&(2..6), &bytes, None).is_ok());
        assert!(check_supply(&(2..6), &bytes, Some(6)).is_ok());
        for (range, length) in
            [(2..5, None), (2..7, None), (2..6, Some(5)), (Range { start: 6, end: 2 }, None)]
        {
            let error = check_supply(&range, &bytes, length).unwrap_err();
            assert_eq!(error.kind(), crate::ErrorKind::Misuse, "{range:?} of {length:?}");
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
