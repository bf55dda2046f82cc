//! The levels of a nested leaf, from its pages to its batch.

use alloc::format;
use alloc::vec::Vec;

use marquetry_base::{Bytes, Error, ErrorKind, Result};
use marquetry_kernels::unpack;

use super::values::prefixed;
use crate::encoding::hybrid::Hybrid;
use crate::format::Encoding;
use crate::schema::Leaf;

/// Levels that are unpacked at a time.
const SCRATCH: usize = 512;

/// The levels of one page.
#[derive(Debug)]
pub(super) struct PageLevels {
    definition: LevelDecoder,
    repetition: LevelDecoder,
}

/// Levels of one kind.
#[derive(Debug)]
enum LevelDecoder {
    /// All are 0, and none is in the file.
    Zero,
    Hybrid {
        runs: Hybrid,
        max: u8,
    },
    /// The deprecated BIT_PACKED: the next one's number.
    BitPacked {
        bytes: Bytes,
        max: u8,
        next: usize,
    },
}

/// The bits that levels up to `max` take.
fn width(max: u8) -> u32 {
    u8::BITS - max.leading_zeros()
}

impl LevelDecoder {
    /// V2: runs that are all of `bytes`.
    fn hybrid(bytes: Bytes, max: u8) -> LevelDecoder {
        if max == 0 {
            LevelDecoder::Zero
        } else {
            LevelDecoder::Hybrid { runs: Hybrid::new(bytes, width(max)), max }
        }
    }

    /// V1: levels at the start of `body`; what follows them.
    fn split(body: Bytes, max: u8, entries: usize, encoding: Encoding) -> Result<(LevelDecoder, Bytes)> {
        if max == 0 {
            return Ok((LevelDecoder::Zero, body));
        }
        match encoding {
            Encoding::Rle => {
                let (levels, rest) = prefixed(&body)?;
                Ok((LevelDecoder::hybrid(levels, max), rest))
            }
            Encoding::BitPacked => {
                let bytes = entries.saturating_mul(width(max) as usize).div_ceil(8);
                if bytes > body.len() {
                    return Err(Error::corrupt("the page ends before its last level"));
                }
                let rest = body.slice(bytes..);
                Ok((LevelDecoder::BitPacked { bytes: body.slice(..bytes), max, next: 0 }, rest))
            }
            other => Err(Error::corrupt(format!("levels encoded as {other}"))),
        }
    }

    fn decode(&mut self, out: &mut [u8]) -> Result<()> {
        match self {
            LevelDecoder::Zero => out.fill(0),
            LevelDecoder::Hybrid { runs, max } => {
                let mut scratch = [0u32; SCRATCH];
                for out in out.chunks_mut(SCRATCH) {
                    let scratch = &mut scratch[..out.len()];
                    runs.decode(scratch)?;
                    let mut largest = 0;
                    for (level, &found) in out.iter_mut().zip(&*scratch) {
                        largest = largest.max(found);
                        *level = found.to_le_bytes()[0];
                    }
                    check(largest, *max)?;
                }
            }
            LevelDecoder::BitPacked { bytes, max, next } => {
                let mut scratch = [0u16; SCRATCH];
                for out in out.chunks_mut(SCRATCH) {
                    let scratch = &mut scratch[..out.len()];
                    unpack::msb_u16(width(*max), bytes, *next, scratch)
                        .map_err(|_| Error::corrupt("the page ends before its last level"))?;
                    *next += out.len();
                    for (level, &found) in out.iter_mut().zip(&*scratch) {
                        check(found.into(), *max)?;
                        *level = found.to_le_bytes()[0];
                    }
                }
            }
        }
        Ok(())
    }
}

fn check(level: u32, max: u8) -> Result<()> {
    if level <= max.into() {
        Ok(())
    } else {
        Err(Error::corrupt(format!("the level {level}, where {max} is the largest")))
    }
}

/// A nested leaf, and the levels of its current page that are decoded but not in a batch.
///
/// Where a row ends is only known when the next one begins, so levels are decoded ahead of values.
#[derive(Debug)]
pub(super) struct NestedLeaf {
    pub(super) definition_max: u8,
    pub(super) repetition_max: u8,
    definition: Vec<u8>,
    repetition: Vec<u8>,
    next: usize,
    /// No entry of the chunk was decoded yet.
    is_first: bool,
}

impl NestedLeaf {
    /// For a leaf that is not flat.
    pub(super) fn new(leaf: &Leaf) -> Result<NestedLeaf> {
        let level = |max: u16| {
            u8::try_from(max)
                .map_err(|_| Error::new(ErrorKind::LimitExceeded, "more than 255 levels of nesting"))
        };
        Ok(NestedLeaf {
            definition_max: level(leaf.definition_max)?,
            repetition_max: level(leaf.repetition_max)?,
            definition: Vec::new(),
            repetition: Vec::new(),
            next: 0,
            is_first: true,
        })
    }

    /// Begins a column chunk.
    pub(super) fn start(&mut self) {
        self.definition.clear();
        self.repetition.clear();
        self.next = 0;
        self.is_first = true;
    }

    /// Takes the levels from a V1 page's body; what follows them.
    pub(super) fn split_v1(
        &self,
        body: Bytes,
        entries: usize,
        repetition: Encoding,
        definition: Encoding,
    ) -> Result<(PageLevels, Bytes)> {
        let (repetition, body) = LevelDecoder::split(body, self.repetition_max, entries, repetition)?;
        let (definition, body) = LevelDecoder::split(body, self.definition_max, entries, definition)?;
        Ok((PageLevels { definition, repetition }, body))
    }

    /// The levels of a V2 page.
    pub(super) fn levels_v2(&self, repetition: Bytes, definition: Bytes) -> PageLevels {
        PageLevels {
            definition: LevelDecoder::hybrid(definition, self.definition_max),
            repetition: LevelDecoder::hybrid(repetition, self.repetition_max),
        }
    }

    /// Entries decoded ahead.
    pub(super) fn ahead(&self) -> usize {
        self.definition.len() - self.next
    }

    /// Decodes `entries` ahead, once none is left.
    pub(super) fn decode_ahead(&mut self, levels: &mut PageLevels, entries: usize) -> Result<()> {
        self.next = 0;
        self.definition.clear();
        self.definition.resize(entries, 0);
        levels.definition.decode(&mut self.definition)?;
        if self.repetition_max > 0 {
            self.repetition.clear();
            self.repetition.resize(entries, 0);
            levels.repetition.decode(&mut self.repetition)?;
            if self.is_first && self.repetition.first().is_some_and(|&level| level != 0) {
                return Err(Error::corrupt("a column chunk that begins in the middle of a row"));
            }
        }
        self.is_first = self.is_first && entries == 0;
        Ok(())
    }

    /// True when the next entry, which must be decoded ahead, begins a row.
    pub(super) fn begins_row(&self) -> bool {
        self.repetition_max == 0 || self.repetition.get(self.next) == Some(&0)
    }

    /// How many of the entries ahead belong to the current row and `rows` more, and how many rows they begin.
    pub(super) fn within(&self, rows: usize) -> (usize, usize) {
        if self.repetition_max == 0 {
            let entries = self.ahead().min(rows);
            return (entries, entries);
        }
        let ahead = &self.repetition[self.next..];
        let begun = ahead.iter().filter(|&&level| level == 0).count();
        if begun <= rows {
            return (ahead.len(), begun);
        }
        let starts = ahead.iter().enumerate().filter(|(_, level)| **level == 0);
        let behind = starts.map(|(at, _)| at).nth(rows).unwrap_or(ahead.len());
        (behind, rows)
    }

    /// The next `entries` levels: definition, and repetition where there are any.
    pub(super) fn take(&mut self, entries: usize) -> (&[u8], &[u8]) {
        let taken = self.next..self.next + entries;
        self.next += entries;
        (&self.definition[taken.clone()], self.repetition.get(taken).unwrap_or_default())
    }
}
