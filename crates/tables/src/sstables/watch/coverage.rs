//! Which parts of a commit log are in files already: so it is known whether an SSTable has anything new.

use std::fmt;
use std::str::FromStr;

use marquetry_base::{Error, Result};
use marquetry_scylla::sstable::statistics::{CommitLogInterval, CommitLogPosition};

/// Intervals of a node's commit log, joined where they meet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Coverage(Vec<CommitLogInterval>);

impl Coverage {
    /// Adds intervals.
    pub(super) fn add(&mut self, intervals: &[CommitLogInterval]) {
        self.0.extend(intervals.iter().filter(|interval| interval.start <= interval.end));
        self.0.sort();
        let mut joined: Vec<CommitLogInterval> = Vec::with_capacity(self.0.len());
        for interval in self.0.drain(..) {
            match joined.last_mut() {
                Some(last) if interval.start <= last.end => last.end = last.end.max(interval.end),
                _ => joined.push(interval),
            }
        }
        self.0 = joined;
    }

    /// Takes intervals out again.
    pub(super) fn remove(&mut self, intervals: &[CommitLogInterval]) {
        for out in intervals.iter().filter(|interval| interval.start <= interval.end) {
            let rest = |its: CommitLogInterval| {
                let before = CommitLogInterval { start: its.start, end: its.end.min(out.start) };
                let after = CommitLogInterval { start: its.start.max(out.end), end: its.end };
                [before, after].into_iter().filter(|part| part.start < part.end)
            };
            self.0 = std::mem::take(&mut self.0).into_iter().flat_map(rest).collect();
        }
    }

    /// Whether all of these are in it. Of none nothing is known, so it is not.
    pub(super) fn contains_all(&self, intervals: &[CommitLogInterval]) -> bool {
        let contains = |interval: &CommitLogInterval| {
            self.0.iter().any(|its| its.start <= interval.start && interval.end <= its.end)
        };
        !intervals.is_empty() && intervals.iter().all(contains)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// `SEGMENT:BYTE-SEGMENT:BYTE`, with spaces between intervals.
impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, CommitLogInterval { start, end }) in self.0.iter().enumerate() {
            let space = if number > 0 { " " } else { "" };
            write!(f, "{space}{}:{}..{}:{}", start.segment, start.byte, end.segment, end.byte)?;
        }
        Ok(())
    }
}

impl FromStr for Coverage {
    type Err = Error;

    fn from_str(text: &str) -> Result<Coverage> {
        let position = |text: &str| {
            let (segment, byte) = text.split_once(':')?;
            Some(CommitLogPosition { segment: segment.parse().ok()?, byte: byte.parse().ok()? })
        };
        let interval = |text: &str| {
            let (start, end) = text.split_once("..")?;
            Some(CommitLogInterval { start: position(start)?, end: position(end)? })
        };
        let intervals: Option<Vec<CommitLogInterval>> = text.split_whitespace().map(interval).collect();
        let mut coverage = Coverage::default();
        coverage.add(&intervals.ok_or_else(|| Error::corrupt("not intervals of a commit log"))?);
        Ok(coverage)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intervals(text: &str) -> Vec<CommitLogInterval> {
        text.parse::<Coverage>().unwrap().0
    }

    #[test]
    fn intervals_are_joined_where_they_meet() {
        let mut coverage = Coverage::default();
        assert!(coverage.is_empty());
        for flush in ["9:0..9:5", "7:1..7:20", "7:20..8:3", "9:7..9:9"] {
            assert!(!coverage.contains_all(&intervals(flush)), "{flush}");
            coverage.add(&intervals(flush));
            assert!(coverage.contains_all(&intervals(flush)), "{flush}");
        }
        assert_eq!(coverage.to_string(), "7:1..8:3 9:0..9:5 9:7..9:9");
        // What two of these flushes were compacted into.
        assert!(coverage.contains_all(&intervals("7:1..8:3")));
        assert!(coverage.contains_all(&intervals("7:1..8:3 9:7..9:9")));
        for new in ["7:0..8:3", "9:0..9:9", "8:3..8:4", "7:1..8:3 9:10..9:11"] {
            assert!(!coverage.contains_all(&intervals(new)), "{new}");
        }
        assert!(!coverage.contains_all(&[]), "of an SSTable that came from elsewhere nothing is known");
    }

    #[test]
    fn intervals_are_taken_out_again() {
        let mut coverage: Coverage = "7:1..8:3 9:0..9:5".parse().unwrap();
        coverage.remove(&intervals("7:5..7:9 9:4..9:8 1:0..2:0"));
        assert_eq!(coverage.to_string(), "7:1..7:5 7:9..8:3 9:0..9:4");
        assert!(!coverage.contains_all(&intervals("7:5..7:9")));
    }

    #[test]
    fn what_is_written_is_read_back() {
        let text = "-1:0..3:-4 17000000001:12..17000000002:9";
        let coverage: Coverage = text.parse().unwrap();
        assert_eq!(coverage.to_string(), text);
        assert_eq!("".parse(), Ok(Coverage::default()));
        for wrong in ["1:2", "1..2", "1:2..3", "a:1..2:3"] {
            assert!(wrong.parse::<Coverage>().is_err(), "{wrong}");
        }
        // One that ends before it begins is none.
        assert!("3:0..2:0".parse::<Coverage>().unwrap().is_empty());
    }
}
