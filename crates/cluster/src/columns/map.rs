//! Which part of a version holds which bytes of the file.

use std::ops::Range;

use marquetry_base::cast::u64_of;
use marquetry_base::{Error, Limit, Limits, Result};

use super::part::Part;

/// Bytes of the file that follow each other, and are in one part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) part: Part,
    pub(super) start: u64,
    pub(super) end: u64,
}

/// The segments of a file, in its order, without holes. A part may have several.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Map {
    segments: Vec<Segment>,
}

impl Map {
    /// Adds bytes after those that are there.
    pub(super) fn push(&mut self, part: Part, bytes: u64) {
        let start = self.bytes();
        match self.segments.last_mut() {
            Some(last) if last.part == part => last.end += bytes,
            _ => self.segments.push(Segment { part, start, end: start + bytes }),
        }
    }

    /// The bytes of the file.
    pub(super) fn bytes(&self) -> u64 {
        self.segments.last().map_or(0, |last| last.end)
    }

    /// The parts, each once.
    pub(super) fn parts(&self) -> Vec<Part> {
        let mut parts: Vec<Part> = self.segments.iter().map(|segment| segment.part).collect();
        parts.sort_unstable();
        parts.dedup();
        parts
    }

    /// The segments that have bytes of a range, each with what it has of it.
    pub(super) fn holding(&self, range: Range<u64>) -> impl Iterator<Item = (Segment, Range<u64>)> {
        let Range { start, end } = range;
        let first = self.segments.partition_point(|segment| segment.end <= start);
        let those = self.segments.iter().skip(first).take_while(move |segment| segment.start < end);
        those.map(move |it| (*it, it.start.max(start)..it.end.min(end)))
    }

    /// The parts that hold a range.
    #[cfg(test)]
    pub(super) fn parts_of(&self, range: &Range<u64>) -> Vec<(Part, Range<u64>)> {
        self.holding(range.clone()).map(|(segment, range)| (segment.part, range)).collect()
    }

    /// As bytes: of each segment the column (zigzag), the row group, the shard and its bytes, all as LEB128.
    pub(super) fn encoded(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for Segment { part, start, end } in &self.segments {
            let column = i64::from(part.column);
            add(&mut out, (column << 1 ^ column >> 63).unsigned_abs());
            add(&mut out, u64::from(part.row_group.unsigned_abs()));
            add(&mut out, u64::from(part.shard.unsigned_abs()));
            add(&mut out, end - start);
        }
        out
    }

    /// Reads what was [encoded](Map::encoded) for a file of this length. It is limited as the footer is, which says more of each of its chunks.
    ///
    /// # Errors
    ///
    /// `Corrupt`; `LimitExceeded` for more segments than take `footer_bytes` in memory.
    pub(super) fn decode(mut bytes: &[u8], file_bytes: u64, limits: &Limits) -> Result<Map> {
        let wrong = || Error::corrupt("the map of the file's parts is damaged");
        // Each number ends with a byte below 128, and a segment has four.
        let most = bytes.iter().filter(|byte| **byte < 0x80).count() / 4;
        let memory = most.saturating_mul(size_of::<Segment>());
        check(limits, u64_of(memory))?;
        let mut map = Map::default();
        map.segments.try_reserve_exact(most).map_err(|_| Error::out_of_memory(memory))?;
        while !bytes.is_empty() {
            let mut next = || take(&mut bytes).ok_or_else(wrong);
            let (column, row_group, shard, length) = (next()?, next()?, next()?, next()?);
            let column = i64::try_from(column >> 1).map_err(|_| wrong())? ^ -i64::from(column & 1 == 1);
            let column = i32::try_from(column).map_err(|_| wrong())?;
            let number = |number: u64| i32::try_from(number).map_err(|_| wrong());
            let part = Part { column, row_group: number(row_group)?, shard: number(shard)? };
            let is_within = map.bytes().checked_add(length).is_some_and(|end| end <= file_bytes);
            if length == 0 || !is_within {
                return Err(wrong());
            }
            map.push(part, length);
        }
        if map.bytes() == file_bytes { Ok(map) } else { Err(wrong()) }
    }
}

/// Checks the bytes of a map, in cells or in memory.
///
/// # Errors
///
/// `LimitExceeded`.
pub(super) fn check(limits: &Limits, bytes: u64) -> Result<()> {
    let checked = limits.check(Limit::FooterBytes, bytes);
    checked.map_err(|error| {
        let message = format!("the map of the file's parts: {}", error.message());
        error.reworded(message)
    })
}

fn add(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        let digit = u64::from(first & 0x7f);
        if digit << shift >> shift != digit {
            return None;
        }
        number |= digit << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(column: i32, row_group: i32, shard: i32) -> Part {
        Part { column, row_group, shard }
    }

    fn some() -> Map {
        let mut map = Map::default();
        map.push(Part::FOOTER, 4);
        map.push(part(0, 0, 0), 100);
        map.push(part(0, 0, 0), 28);
        map.push(part(70_000, 3, 1), 1 << 40);
        map.push(part(i32::MAX, i32::MAX, i32::MAX), 1);
        map.push(part(i32::MIN, 0, 0), 1);
        map.push(Part::FOOTER, 300);
        map
    }

    #[test]
    fn a_map_is_read_as_it_was_written() {
        let map = some();
        assert_eq!(map.segments.len(), 6);
        assert_eq!(map.parts().len(), 5);
        assert_eq!(Map::decode(&map.encoded(), map.bytes(), &Limits::DEFAULT), Ok(map));
        assert_eq!(Map::decode(&[], 0, &Limits::DEFAULT), Ok(Map::default()));
    }

    #[test]
    fn ranges_are_found() {
        let map = some();
        assert_eq!(map.parts_of(&(2..10)), [(Part::FOOTER, 2..4), (part(0, 0, 0), 4..10)]);
        assert_eq!(map.parts_of(&(4..132)), [(part(0, 0, 0), 4..132)]);
        assert_eq!(map.parts_of(&(7..7)), [(part(0, 0, 0), 7..7)]);
        let end = map.bytes();
        assert_eq!(map.parts_of(&(end - 8..end)), [(Part::FOOTER, end - 8..end)]);
        assert!(map.parts_of(&(end..end + 1)).is_empty());
    }

    #[test]
    fn damage_is_said() {
        let map = some();
        let (bytes, length) = (map.encoded(), map.bytes());
        let decode = |bytes: &[u8], length: u64| Map::decode(bytes, length, &Limits::DEFAULT);
        for end in 0..bytes.len() {
            assert!(decode(&bytes[..end], length).is_err(), "{end}");
        }
        assert!(decode(&bytes, length + 1).is_err() && decode(&bytes, length - 1).is_err());
        // No bytes; too many digits.
        assert!(decode(&[0, 0, 0, 0], 0).is_err());
        assert!(decode(&[0xff; 11], 1).is_err());
        let most = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(take(&mut &most[..]), Some(u64::MAX));
        assert_eq!(take(&mut &[&most[..9], &[0x02]].concat()[..]), None);
    }
    /// Of four bytes a segment, which takes eight times as many.
    #[test]
    fn segments_are_limited_before_they_are_allocated() {
        let bytes: Vec<u8> = (0..1000_u32).flat_map(|nth| [0, u8::from(nth % 2 == 1), 0, 1]).collect();
        let memory = 1000 * size_of::<Segment>();
        let limits = |bytes: usize| Limits { footer_bytes: u64_of(bytes), ..Limits::DEFAULT };
        let map = Map::decode(&bytes, 1000, &limits(memory)).unwrap();
        assert_eq!((map.segments.len(), map.segments.capacity()), (1000, 1000));
        let error = Map::decode(&bytes, 1000, &limits(memory - 1)).unwrap_err();
        assert_eq!(error.detail(), Some(marquetry_base::Detail::Limit(Limit::FooterBytes)), "{error}");
        assert!(memory > 7 * bytes.len());
    }
}
