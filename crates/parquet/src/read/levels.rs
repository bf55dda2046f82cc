//! The levels of a nested leaf, from its pages to its batch.

use alloc::format;
use alloc::vec::Vec;

use marquetry_base::{Error, Result};
use marquetry_kernels::{levels, unpack};

use super::opening::Part;
use crate::encoding::hybrid::{Hybrid, beyond_levels};
use crate::encoding::stream::Stream;
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
    /// All are 0, and none is in the file, or none is looked at.
    Zero,
    Hybrid {
        runs: Hybrid,
        max: u8,
    },
    /// The deprecated BIT_PACKED: the next one's number, below eight, of those where the stream stands.
    BitPacked {
        stream: Stream,
        max: u8,
        next: usize,
    },
}

/// The bits that levels up to `max` take.
fn width(max: u8) -> u32 {
    u8::BITS - max.leading_zeros()
}

/// What a V1 page has of levels up to `max`.
pub(super) fn part_of_v1(max: u8, entries: usize, encoding: Encoding) -> Result<Part> {
    match encoding {
        _ if max == 0 => Ok(Part::Absent),
        Encoding::Rle => Ok(Part::Prefixed),
        Encoding::BitPacked => Ok(Part::Bytes(entries.saturating_mul(width(max) as usize).div_ceil(8))),
        other => Err(Error::corrupt(format!("levels encoded as {other}"))),
    }
}

impl LevelDecoder {
    fn new(stream: Stream, max: u8, encoding: Encoding) -> LevelDecoder {
        match encoding {
            _ if max == 0 => LevelDecoder::Zero,
            Encoding::BitPacked => LevelDecoder::BitPacked { stream, max, next: 0 },
            _ => LevelDecoder::Hybrid { runs: Hybrid::new(stream, width(max)), max },
        }
    }

    /// The stream that wants bytes.
    fn starved(&mut self) -> Option<&mut Stream> {
        let stream = match self {
            LevelDecoder::Zero => return None,
            LevelDecoder::Hybrid { runs, .. } => runs.stream(),
            LevelDecoder::BitPacked { stream, .. } => stream,
        };
        stream.is_starved().then_some(stream)
    }

    /// Runs begun since this was last asked.
    fn take_runs(&mut self) -> usize {
        match self {
            LevelDecoder::Hybrid { runs, .. } => runs.take_runs(),
            LevelDecoder::Zero | LevelDecoder::BitPacked { .. } => 0,
        }
    }

    /// Decodes levels, as many as are there.
    fn decode(&mut self, out: &mut [u8]) -> Result<usize> {
        match self {
            LevelDecoder::Zero => {
                out.fill(0);
                Ok(out.len())
            }
            LevelDecoder::Hybrid { runs, max } => runs.decode_levels(*max, out),
            LevelDecoder::BitPacked { stream, max, next } => {
                let width = width(*max);
                let mut scratch = [0u16; SCRATCH];
                let mut done = 0;
                while done < out.len() {
                    let there = (stream.there().len() * 8 / width as usize).saturating_sub(*next);
                    if there == 0 {
                        if stream.has(width as usize) {
                            return Err(Error::corrupt("the page ends before its last level"));
                        }
                        break;
                    }
                    let take = (out.len() - done).min(SCRATCH).min(there);
                    let scratch = &mut scratch[..take];
                    unpack::msb_u16(width, stream.there(), *next, scratch)
                        .map_err(|_| Error::corrupt("the page ends before its last level"))?;
                    for (level, &found) in out[done..].iter_mut().zip(&*scratch) {
                        *level = u8::try_from(found)
                            .ok()
                            .filter(|level| level <= max)
                            .ok_or_else(|| beyond_levels(found.into(), *max))?;
                    }
                    // Eight levels begin at a byte.
                    stream.advance((*next + take) / 8 * width as usize);
                    *next = (*next + take) % 8;
                    done += take;
                }
                Ok(done)
            }
        }
    }
}

impl PageLevels {
    /// The stream that wants bytes.
    pub(super) fn starved(&mut self) -> Option<&mut Stream> {
        self.definition.starved().or_else(|| self.repetition.starved())
    }

    /// Runs begun since this was last asked: without asking, there is an end to what is decoded.
    pub(super) fn take_runs(&mut self) -> usize {
        self.definition.take_runs() + self.repetition.take_runs()
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
    /// How many are being decoded, and how many definition and repetition levels of them are; all 0 if none are.
    wanted: usize,
    decoded: [usize; 2],
    /// The definition level of the entry before those that are decoded; `None` at the chunk's start.
    before: Option<u8>,
}

/// Checks that a byte counts the levels of a leaf.
pub(super) fn check_levels(leaf: &Leaf) -> Result<()> {
    let most = leaf.definition_max.max(leaf.repetition_max);
    u8::try_from(most).map(drop).map_err(|_| Error::too_large("more than 255 levels of nesting"))
}

impl NestedLeaf {
    /// For a leaf that is not flat.
    pub(super) fn new(schema: &Schema, leaf: &Leaf) -> Result<NestedLeaf> {
        let level = |max: u16| {
            u8::try_from(max).map_err(|_| {
                Error::too_large("more than 255 levels of nesting")
                    .at(|place| place.column = Some(schema.path(leaf.node)))
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
            wanted: 0,
            decoded: [0; 2],
            before: None,
        })
    }

    /// Begins a column chunk.
    pub(super) fn start(&mut self) {
        self.definition.clear();
        self.repetition.clear();
        self.next = 0;
        (self.wanted, self.decoded) = (0, [0; 2]);
        self.before = None;
    }

    /// What a V1 page has of levels: repetition, then definition.
    pub(super) fn parts_of_v1(
        &self,
        entries: usize,
        repetition: Encoding,
        definition: Encoding,
    ) -> Result<[Part; 2]> {
        Ok([
            part_of_v1(self.repetition_max, entries, repetition)?,
            part_of_v1(self.definition_max, entries, definition)?,
        ])
    }

    /// The levels of a page, of their encodings: repetition, then definition.
    ///
    /// The header of a V2 page has the number of its rows as well, which is not believed: Arrow C++ before version 12 wrote that
    /// of its entries (GH-34086), and the Go writer by fraugster is one off wherever a page ends. Nothing depends on it.
    pub(super) fn levels(
        &self,
        [repetition, definition]: [Stream; 2],
        encodings: [Encoding; 2],
    ) -> PageLevels {
        PageLevels {
            definition: LevelDecoder::new(definition, self.definition_max, encodings[1]),
            repetition: LevelDecoder::new(repetition, self.repetition_max, encodings[0]),
        }
    }

    /// The levels of a page of rows that are taken for null.
    pub(super) fn null_levels() -> PageLevels {
        PageLevels { definition: LevelDecoder::Zero, repetition: LevelDecoder::Zero }
    }

    /// Entries decoded ahead.
    pub(super) fn ahead(&self) -> usize {
        if self.wanted > 0 { 0 } else { self.definition.len() - self.next }
    }

    /// Decodes `entries` ahead, or those that it was in the middle of, once none is left; how many. `None` where a stream wants
    /// bytes first.
    pub(super) fn decode_ahead(&mut self, page: &mut PageLevels, entries: usize) -> Result<Option<usize>> {
        if self.wanted == 0 {
            (self.next, self.wanted, self.decoded) = (0, entries, [0; 2]);
            // What is left over in it is overwritten.
            self.definition.resize(entries, 0);
            self.repetition.resize(if self.repetition_max > 0 { entries } else { 0 }, 0);
        }
        self.decoded[0] += page.definition.decode(&mut self.definition[self.decoded[0]..])?;
        if self.decoded[0] < self.wanted {
            return Ok(None);
        }
        if self.repetition_max > 0 {
            self.decoded[1] += page.repetition.decode(&mut self.repetition[self.decoded[1]..])?;
            if self.decoded[1] < self.wanted {
                return Ok(None);
            }
            if self.before.is_none() && self.repetition.first().is_some_and(|&level| level != 0) {
                return Err(Error::corrupt("a column chunk that begins in the middle of a row"));
            }
            if !levels::are_elements(&self.definition, &self.repetition, &self.elements, self.before) {
                self.drop_hidden()?;
            }
            self.before = self.definition.last().copied().or(self.before);
        }
        Ok(Some(core::mem::take(&mut self.wanted)))
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

    /// Rows that begin in the next `entries`.
    pub(super) fn rows_in(&self, entries: usize) -> usize {
        match self.repetition_max {
            0 => entries,
            _ => rows_of(self.repetition.get(self.next..self.next + entries).unwrap_or_default()),
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

    /// Entries before that of the value behind the next `values`, which must be ahead.
    pub(super) fn entries_of(&self, values: usize) -> usize {
        let ahead = self.definition.get(self.next..).unwrap_or_default();
        levels::find_from(ahead, self.definition_max, values).unwrap_or(0)
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
