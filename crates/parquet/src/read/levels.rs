//! The levels of a nested leaf, from its pages to its batch.

use alloc::format;
use alloc::vec::Vec;

use marquetry_base::{Bytes, Error, ErrorKind, Result};
use marquetry_kernels::{levels, unpack};

use super::values::prefixed;
use crate::encoding::hybrid::{Hybrid, beyond_levels};
use crate::format::Encoding;
use crate::schema::{Leaf, Repetition, Schema};

/// Levels of the deprecated encoding that are unpacked at a time.
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
            LevelDecoder::Hybrid { runs, max } => runs.decode_levels(*max, out)?,
            LevelDecoder::BitPacked { bytes, max, next } => {
                let mut scratch = [0u16; SCRATCH];
                for out in out.chunks_mut(SCRATCH) {
                    let scratch = &mut scratch[..out.len()];
                    unpack::msb_u16(width(*max), bytes, *next, scratch)
                        .map_err(|_| Error::corrupt("the page ends before its last level"))?;
                    *next += out.len();
                    for (level, &found) in out.iter_mut().zip(&*scratch) {
                        *level = u8::try_from(found)
                            .ok()
                            .filter(|level| level <= max)
                            .ok_or_else(|| beyond_levels(found.into(), *max))?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// A nested leaf, and the levels of its current page that are decoded but not in a batch.
///
/// Where a row ends is only known when the next one begins, so levels are decoded ahead of values.
#[derive(Debug)]
pub(super) struct NestedLeaf {
    pub(super) definition_max: u8,
    pub(super) repetition_max: u8,
    /// The definition level of an element of each list around the leaf, from the outermost on.
    elements: Vec<u8>,
    definition: Vec<u8>,
    repetition: Vec<u8>,
    next: usize,
    /// The definition level of the entry before those that are decoded; `None` at the chunk's start.
    before: Option<u8>,
}

impl NestedLeaf {
    /// For a leaf that is not flat.
    pub(super) fn new(schema: &Schema, leaf: &Leaf) -> Result<NestedLeaf> {
        let level = |max: u16| {
            u8::try_from(max).map_err(|_| {
                Error::new(ErrorKind::LimitExceeded, "more than 255 levels of nesting")
                    .at(|place| place.column = Some(leaf.path.clone()))
            })
        };
        let definition_max = level(leaf.definition_max)?;
        let mut elements = Vec::new();
        let (mut definition, mut node) = (definition_max, leaf.node);
        while node != 0 {
            let repetition = schema.nodes()[node].repetition;
            if repetition == Repetition::Repeated {
                elements.push(definition);
            }
            definition -= u8::from(repetition != Repetition::Required);
            node = schema.nodes()[node].parent;
        }
        elements.reverse();
        Ok(NestedLeaf {
            definition_max,
            repetition_max: level(leaf.repetition_max)?,
            elements,
            definition: Vec::new(),
            repetition: Vec::new(),
            next: 0,
            before: None,
        })
    }

    /// Begins a column chunk.
    pub(super) fn start(&mut self) {
        self.definition.clear();
        self.repetition.clear();
        self.next = 0;
        self.before = None;
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
    ///
    /// Its header has the number of its rows as well, which is not believed: Arrow C++ before version 12 wrote that of its
    /// entries (GH-34086), and the Go writer by fraugster is one off wherever a page ends. Nothing depends on it.
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
    pub(super) fn decode_ahead(&mut self, page: &mut PageLevels, entries: usize) -> Result<()> {
        self.next = 0;
        // What is left over in it is overwritten.
        self.definition.resize(entries, 0);
        page.definition.decode(&mut self.definition)?;
        if self.repetition_max > 0 {
            self.repetition.resize(entries, 0);
            page.repetition.decode(&mut self.repetition)?;
            if self.before.is_none() && self.repetition.first().is_some_and(|&level| level != 0) {
                return Err(Error::corrupt("a column chunk that begins in the middle of a row"));
            }
            if !levels::are_elements(&self.definition, &self.repetition, &self.elements, self.before) {
                self.drop_hidden()?;
            }
            self.before = self.definition.last().copied().or(self.before);
        }
        Ok(())
    }

    /// Drops the entries of elements that a null hides.
    ///
    /// The format knows none, but DuckDB writes them: a null of its fixed-size ARRAY is followed by as many nulls more, at the
    /// same definition level, as an array has elements.
    fn drop_hidden(&mut self) -> Result<()> {
        let (mut kept, mut before) = (0, self.before.unwrap_or(0));
        for at in 0..self.definition.len() {
            let (definition, repetition) = (self.definition[at], self.repetition[at]);
            if let Some(&element) =
                repetition.checked_sub(1).and_then(|list| self.elements.get(usize::from(list)))
                && definition.min(before) < element
            {
                // One level less than an element has an empty list.
                if definition == before && definition + 1 < element {
                    continue;
                }
                return Err(Error::corrupt("levels of an element of a list that is not there"));
            }
            self.definition[kept] = definition;
            self.repetition[kept] = repetition;
            kept += 1;
            before = definition;
        }
        self.definition.truncate(kept);
        self.repetition.truncate(kept);
        Ok(())
    }

    /// True when the next entry, which must be decoded ahead, begins a row.
    pub(super) fn begins_row(&self) -> bool {
        self.repetition_max == 0 || self.repetition.get(self.next) == Some(&0)
    }

    /// How many of the entries ahead belong to the current row and `rows` more; `entries` at most.
    pub(super) fn within(&self, rows: usize, entries: usize) -> usize {
        let entries = entries.min(self.ahead());
        if self.repetition_max == 0 {
            return entries.min(rows);
        }
        let ahead = self.repetition.get(self.next..self.next + entries).unwrap_or_default();
        levels::find_below(ahead, 1, rows).unwrap_or(entries)
    }

    /// How many of the next `entries` to take, more than `left` of which no batch should have: up to the last row that begins among so
    /// many, or else up to the next one's begin.
    pub(super) fn whole_rows(&self, entries: usize, left: usize) -> usize {
        if self.repetition_max == 0 {
            return entries.min(left.max(1));
        }
        let ahead = self.repetition.get(self.next..self.next + entries).unwrap_or_default();
        let (head, rest) = ahead.split_at(entries.min(left.saturating_add(1)));
        match head.iter().rposition(|&level| level == 0) {
            Some(last @ 1..) => last,
            _ => levels::find_below(rest, 1, 0).map_or(entries, |next| head.len() + next),
        }
    }

    /// Values in the next `entries`.
    pub(super) fn values_in(&self, entries: usize) -> usize {
        // Of a leaf that is not flat, the largest level is never 0.
        levels::count(
            self.definition.get(self.next..self.next + entries).unwrap_or_default(),
            self.definition_max,
        )
    }

    /// Entries up to the one of the last of `values`, with it.
    pub(super) fn entries_of(&self, values: usize) -> usize {
        let ahead = self.definition.get(self.next..).unwrap_or_default();
        let last = values.checked_sub(1).and_then(|last| levels::find_from(ahead, self.definition_max, last));
        last.map_or(0, |at| at + 1)
    }

    /// The next `entries` levels: definition, repetition where there are any, and the rows that begin with them.
    pub(super) fn take(&mut self, entries: usize) -> (&[u8], &[u8], usize) {
        let taken = self.next..self.next + entries;
        self.next += entries;
        let repetition = self.repetition.get(taken.clone()).unwrap_or_default();
        let rows = if self.repetition_max == 0 { entries } else { rows_of(repetition) };
        (&self.definition[taken], repetition, rows)
    }
}

/// Rows that begin.
fn rows_of(repetition: &[u8]) -> usize {
    repetition.len() - levels::count(repetition, 1)
}
