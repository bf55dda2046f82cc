//! Bytes that are computed where they are read: a file of a gibibyte that takes no memory.

use std::ops::Range;

use marquetry_base::Bytes;
use marquetry_base::cast::{u64_of, usize_of};

/// A sequence of parts, each of which is bytes, or bytes that repeat.
#[derive(Debug, Clone, Default)]
pub struct Computed {
    parts: Vec<Part>,
    length: u64,
}

#[derive(Debug, Clone)]
struct Part {
    start: u64,
    unit: Bytes,
    count: u64,
}

impl Computed {
    /// Nothing yet.
    pub fn new() -> Computed {
        Computed::default()
    }

    /// How many bytes it is.
    pub fn len(&self) -> u64 {
        self.length
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// And then these bytes.
    #[must_use]
    pub fn bytes(self, bytes: impl Into<Bytes>) -> Computed {
        self.repeat(bytes, 1)
    }

    /// And then these bytes, so many times.
    #[must_use]
    pub fn repeat(mut self, unit: impl Into<Bytes>, count: u64) -> Computed {
        let unit = unit.into();
        if !unit.is_empty() && count > 0 {
            let start = self.length;
            self.length += u64_of(unit.len()) * count;
            self.parts.push(Part { start, unit, count });
        }
        self
    }

    /// And then all of another.
    #[must_use]
    pub fn then(self, other: Computed) -> Computed {
        other.parts.into_iter().fold(self, |all, part| all.repeat(part.unit, part.count))
    }

    /// The parts: bytes, and how often they stand there.
    pub fn parts(&self) -> impl Iterator<Item = (&Bytes, u64)> {
        self.parts.iter().map(|part| (&part.unit, part.count))
    }

    /// The bytes of a range.
    ///
    /// # Panics
    ///
    /// When the range reaches beyond them, as slices do.
    pub fn read(&self, range: Range<u64>) -> Bytes {
        assert!(range.start <= range.end && range.end <= self.length, "{range:?} of {}", self.length);
        let length = usize_of(range.end - range.start).expect("a range that memory can hold");
        let first = self.parts.partition_point(|part| part.start <= range.start).saturating_sub(1);
        let mut out = Vec::with_capacity(length);
        for part in &self.parts[first..] {
            let unit = u64_of(part.unit.len());
            let end = part.start + unit * part.count;
            let at = range.start + u64_of(out.len());
            if part.count == 1 && out.is_empty() && at + u64_of(length) <= end {
                let skip = usize_of(at - part.start).expect("inside");
                return part.unit.slice(skip..skip + length);
            }
            if at >= end {
                continue;
            }
            let (start, wanted) =
                (out.len(), (length - out.len()).min(usize_of(end - at).unwrap_or(usize::MAX)));
            let skip = usize_of((at - part.start) % unit).expect("inside");
            let first = [&part.unit[skip..], &part.unit[..skip]];
            first
                .iter()
                .for_each(|some| out.extend_from_slice(&some[..some.len().min(start + wanted - out.len())]));
            // What repeats is copied from what is there, twice as much each time.
            while out.len() < start + wanted {
                let more = (out.len() - start).min(start + wanted - out.len());
                out.extend_from_within(start..start + more);
            }
            if out.len() == length {
                break;
            }
        }
        out.into()
    }

    /// All bytes, in pieces of some size.
    pub fn each(&self, mut take: impl FnMut(&[u8])) {
        const PIECE_BYTES: u64 = 256 << 10;
        let mut at = 0;
        while at < self.length {
            let end = self.length.min(at + PIECE_BYTES);
            take(&self.read(at..end));
            at = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_range_can_be_read() {
        let computed = Computed::new()
            .bytes(&b"head"[..])
            .repeat(&b"abc"[..], 5)
            .then(Computed::new().bytes(&b""[..]).repeat(&b"x"[..], 3).bytes(&b"tail"[..]));
        let whole = b"headabcabcabcabcabcxxxtail";
        assert_eq!(computed.len(), u64_of(whole.len()));
        for start in 0..=whole.len() {
            for end in start..=whole.len() {
                assert_eq!(computed.read(u64_of(start)..u64_of(end)), whole[start..end], "{start}..{end}");
            }
        }
        let mut all = Vec::new();
        computed.each(|piece| all.extend_from_slice(piece));
        assert_eq!(all, whole);
    }
}
