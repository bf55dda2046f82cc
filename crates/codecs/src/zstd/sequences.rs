//! The sequences of a block: literals to copy, and matches. RFC 8878, section 3.1.1.3.2.

use core::hint::black_box;
use core::ops::Range;

use marquetry_base::Result;
use marquetry_base::cast::{low_u8, low_u32, u64_of, usize_of_u32};

use super::bits::{Backward, Word};
use super::fse::{Distribution, Table};
use super::literals::{Literals, WIDE};
use super::window::{PART_BYTES, SLACK, Target};
use super::work::{BLOCK_TOO_LONG, Work};
use crate::block::Fault;
use marquetry_kernels::lz::copy_back;

/// The sequences of a block, as far as they are not executed.
///
/// Some are decoded at once, before the first of them is executed: so the processor looks for what they refer to side
/// by side, where that is far back.
#[derive(Debug)]
pub(super) struct Sequences {
    /// Of the lengths of literals, of offsets, and of the lengths of matches.
    tables: [Table; 3],
    /// A block before had tables.
    has_tables: bool,
    /// The last three offsets, the latest first.
    recent: [u32; 3],
    /// Where the sequences are in the buffer.
    pub(super) section: Range<usize>,
    bits: Backward,
    states: [usize; 3],
    /// Those that are not decoded yet.
    left: usize,
    batch: [Sequence; BATCH],
    /// Those of the batch that are not executed.
    next: Range<usize>,
}

/// Literals, then a match.
#[derive(Debug, Clone, Copy, Default)]
struct Sequence {
    literals: usize,
    length: usize,
    distance: usize,
}

const BATCH: usize = 32;

/// Bits of a word that leave enough for the length of literals, of 16 bits at most, and three states, of 26.
const TAKEN_MAX: usize = 57 - 16 - 26;

const FIRST_OFFSETS: [u32; 3] = [1, 4, 8];

/// What a table is of.
struct Kind {
    /// Its states, at most, as a power of two.
    log_max: u32,
    /// What each of its symbols stands for: the least value, and the bits that are added.
    values: fn(usize) -> (u32, u8),
    symbols: usize,
    /// The distribution of tables that are not described.
    usual: &'static [i16],
    usual_log: u32,
}

const KINDS: [Kind; 3] = [
    Kind { log_max: 9, values: literals_of, symbols: 36, usual: &LITERALS_USUAL, usual_log: 6 },
    Kind { log_max: 8, values: offset_of, symbols: 32, usual: &OFFSETS_USUAL, usual_log: 5 },
    Kind { log_max: 9, values: match_of, symbols: 53, usual: &MATCHES_USUAL, usual_log: 6 },
];

#[rustfmt::skip]
const LITERALS_USUAL: [i16; 36] = [
    4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2,
    2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1,
];
#[rustfmt::skip]
const OFFSETS_USUAL: [i16; 29] = [
    1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1,
];
#[rustfmt::skip]
const MATCHES_USUAL: [i16; 53] = [
    1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1,
];

/// The least lengths of the symbols that do not stand for one length, and the bits that are added.
const LITERALS: [(u32, u8); 20] = [
    (16, 1),
    (18, 1),
    (20, 1),
    (22, 1),
    (24, 2),
    (28, 2),
    (32, 3),
    (40, 3),
    (48, 4),
    (64, 6),
    (128, 7),
    (256, 8),
    (512, 9),
    (1 << 10, 10),
    (1 << 11, 11),
    (1 << 12, 12),
    (1 << 13, 13),
    (1 << 14, 14),
    (1 << 15, 15),
    (1 << 16, 16),
];
const MATCHES: [(u32, u8); 21] = [
    (35, 1),
    (37, 1),
    (39, 1),
    (41, 1),
    (43, 2),
    (47, 2),
    (51, 3),
    (59, 3),
    (67, 4),
    (83, 4),
    (99, 5),
    (131, 7),
    (259, 8),
    (515, 9),
    (1_027, 10),
    (2_051, 11),
    (4_099, 12),
    (8_195, 13),
    (16_387, 14),
    (32_771, 15),
    (65_539, 16),
];

fn literals_of(symbol: usize) -> (u32, u8) {
    match symbol.checked_sub(16) {
        None => (low_u32(u64_of(symbol)), 0),
        Some(symbol) => LITERALS[symbol],
    }
}

fn match_of(symbol: usize) -> (u32, u8) {
    match symbol.checked_sub(32) {
        None => (low_u32(u64_of(symbol + MATCH_MIN)), 0),
        Some(symbol) => MATCHES[symbol],
    }
}

/// Offsets are numbers above three; the others stand for recent offsets.
fn offset_of(symbol: usize) -> (u32, u8) {
    let bits = low_u8(u64_of(symbol));
    ((1u32 << bits).saturating_sub(3), bits)
}

const MATCH_MIN: usize = 3;

/// The costs of a block's sequences, of a table and of each of its states, of a sequence, and of one that is executed with
/// care, in elements.
const SECTION_ELEMENTS: usize = 100;
const TABLE_ELEMENTS: usize = 500;
const STATE_ELEMENTS: usize = 3;
const SEQUENCE_ELEMENTS: usize = 16;
const CAREFUL_ELEMENTS: usize = 20;

/// A match from so far back is not in a core's own caches, and costs so many elements more. From farther back, its page
/// is not in the core's table of pages either.
const FAR_BYTES: usize = 256 << 10;
const FAR_ELEMENTS: usize = 30;
const FARTHER_BYTES: usize = 8 << 20;
const FARTHER_ELEMENTS: usize = 60;

/// Literals and a match that are copied at once.
const SHORT_MAX: usize = 512;

impl Default for Sequences {
    fn default() -> Sequences {
        Sequences {
            tables: Default::default(),
            has_tables: false,
            recent: FIRST_OFFSETS,
            section: 0..0,
            bits: Backward::default(),
            states: [0; 3],
            left: 0,
            batch: [Sequence::default(); BATCH],
            next: 0..0,
        }
    }
}

impl Sequences {
    /// Forgets the frame before.
    pub(super) fn begin_frame(&mut self) {
        (self.has_tables, self.recent) = (false, FIRST_OFFSETS);
    }

    /// Reads the header, at the start of the section.
    pub(super) fn begin(&mut self, buffer: &[u8], work: &mut Work) -> Result<(), Fault> {
        let range = self.section.clone();
        const SHORT: Fault = Fault::Malformed("the sequences of a block are cut short");
        work.elements += SECTION_ELEMENTS;
        self.next = 0..0;
        let (count, mut at) = match buffer[range.clone()] {
            [255, low, high, ..] => (usize::from(u16::from_le_bytes([low, high])) + 0x7f00, 3),
            [first @ 128..=254, second, ..] => ((usize::from(first) - 128) << 8 | usize::from(second), 2),
            [count @ ..128, ..] => (count.into(), 1),
            _ => return Err(SHORT),
        };
        at += range.start;
        self.left = count;
        self.bits = Backward::default();
        if count == 0 {
            return match at == range.end {
                true => Ok(()),
                false => Err(Fault::Malformed("a block without sequences goes on after its literals")),
            };
        }
        let modes = *buffer[..range.end].get(at).ok_or(SHORT)?;
        at += 1;
        if modes & 3 != 0 {
            return Err(Fault::Malformed("a reserved bit is not zero"));
        }
        for (nth, (kind, table)) in KINDS.iter().zip(&mut self.tables).enumerate() {
            let bytes = &buffer[at..range.end];
            match modes >> (6 - 2 * nth) & 3 {
                0 => {
                    work.elements += TABLE_ELEMENTS / 2 + (STATE_ELEMENTS << kind.usual_log);
                    table.build(&Distribution::of(kind.usual, kind.usual_log), kind.values);
                }
                1 => {
                    let symbol = usize::from(*bytes.first().ok_or(SHORT)?);
                    if symbol >= kind.symbols {
                        return Err(Fault::Malformed("a table of a block has a symbol out of range"));
                    }
                    table.set_single((kind.values)(symbol));
                    at += 1;
                }
                2 => {
                    const BAD: Fault = Fault::Malformed("a block has a bad table");
                    work.elements += TABLE_ELEMENTS + (STATE_ELEMENTS << kind.log_max);
                    let (distribution, length) = Distribution::read(bytes, kind.symbols).ok_or(BAD)?;
                    if distribution.log > kind.log_max {
                        return Err(BAD);
                    }
                    table.build(&distribution, kind.values);
                    at += length;
                }
                _ if self.has_tables => {}
                _ => {
                    return Err(Fault::Malformed(
                        "a block uses the table of another block, and there is none",
                    ));
                }
            }
        }
        self.has_tables = true;
        self.bits = Backward::new(buffer, at..range.end).ok_or(SHORT)?;
        for (state, table) in self.states.iter_mut().zip(&self.tables) {
            let mut word = Word { bits: self.bits.ahead(buffer), taken: 0 };
            *state = usize_of_u32(word.take(table.log));
            self.bits.skip(word.taken);
        }
        Ok(())
    }

    /// Executes sequences; true once that was all. The block may still become `most` bytes.
    pub(super) fn execute(
        &mut self,
        buffer: &[u8],
        literals: &mut Literals,
        target: &mut Target<'_>,
        most: usize,
        work: &mut Work,
    ) -> Result<bool> {
        let block_end = target.at + most;
        loop {
            while !self.next.is_empty() {
                self.run(buffer, literals, target, block_end, work);
                if work.is_tired() {
                    return Ok(false);
                }
                self.part(buffer, literals, target, block_end, work)?;
            }
            if self.left == 0 {
                return match self.bits.is_exhausted() {
                    true => Ok(true),
                    false => Err(target.bad("the sequences of a block do not end where its bits do")),
                };
            }
            if work.is_tired() {
                return Ok(false);
            }
            self.decode(buffer).map_err(|what| target.bad(what))?;
            work.elements += self.next.len() * SEQUENCE_ELEMENTS + self.touch(target);
        }
    }

    /// Executes sequences of the batch as long as they are short, far from the end of the room, and of bytes in front of it.
    #[inline(always)]
    fn run(
        &mut self,
        buffer: &[u8],
        literals: &mut Literals,
        target: &mut Target<'_>,
        block_end: usize,
        work: &mut Work,
    ) {
        let Range { start: from, end: from_end } = literals.range();
        let memory = literals.bytes(buffer);
        let (start, end) =
            (target.at, target.end.min(block_end).min(target.bytes.len().saturating_sub(SLACK)));
        let reach_from = target.start;
        let bytes = &mut *target.bytes;
        let (mut at, mut from_at) = (start, from);
        let mut done = 0;
        for &Sequence { literals, length, distance } in &self.batch[self.next.clone()] {
            let to = at + literals;
            if literals > WIDE
                || from_at + literals > from_end
                || length > SHORT_MAX
                || to + length > end
                || distance > to - reach_from
                || distance == 0
            {
                break;
            }
            let (Some(source), Some(room)) = (
                memory.get(from_at..).and_then(|bytes| bytes.first_chunk::<WIDE>()),
                bytes.get_mut(at..).and_then(|bytes| bytes.first_chunk_mut::<WIDE>()),
            ) else {
                break;
            };
            *room = *source;
            if distance >= WIDE && length <= 2 * WIDE {
                let source = to - distance;
                bytes.copy_within(source..source + WIDE, to);
                bytes.copy_within(source + WIDE..source + 2 * WIDE, to + WIDE);
            } else if !copy_back(bytes, to, distance, length) {
                break;
            }
            from_at += literals;
            at = to + length;
            done += 1;
        }
        self.next.start += done;
        literals.skip(from_at - from);
        work.bytes(at - start);
        target.at = at;
    }

    /// Executes the next sequence of the batch, or a part of it, with care.
    fn part(
        &mut self,
        buffer: &[u8],
        literals: &mut Literals,
        target: &mut Target<'_>,
        block_end: usize,
        work: &mut Work,
    ) -> Result<()> {
        let Some(sequence) = self.batch[self.next.clone()].first_mut() else { return Ok(()) };
        let &mut Sequence { literals: count, length, distance } = sequence;
        if count > literals.left() {
            return Err(target.bad("a sequence has more literals than its block"));
        }
        if count + length > block_end - target.at {
            return Err(target.bad(BLOCK_TOO_LONG));
        }
        if count + length > target.room() {
            return Err(target.page.too_long());
        }
        let count = count.min(PART_BYTES);
        let length = length.min(PART_BYTES - count);
        work.elements += CAREFUL_ELEMENTS;
        work.bytes(count + length);
        literals.append(buffer, target, count);
        sequence.literals -= count;
        if length > 0 {
            if !target.copy(distance, length) {
                return Err(target.bad(match target.before {
                    0 => "a match refers to bytes before its frame",
                    _ => "a match refers to bytes beyond its window",
                }));
            }
            sequence.length -= length;
        }
        self.next.start += usize::from(sequence.length == 0);
        Ok(())
    }

    /// Decodes a batch.
    fn decode(&mut self, buffer: &[u8]) -> Result<(), &'static str> {
        let (count, mut left) = (self.left.min(BATCH), self.left);
        let [literals, offsets, matches] = &self.tables;
        let [mut literals_state, mut offsets_state, mut matches_state] = self.states;
        let (mut bits, mut recent) = (self.bits, self.recent);
        for sequence in &mut self.batch[..count] {
            let literal = *literals.state(literals_state);
            let offset = *offsets.state(offsets_state);
            let matched = *matches.state(matches_state);
            let mut word = Word { bits: bits.ahead(buffer), taken: 0 };
            let distance = if offset.more > 1 {
                recent = [offset.base + word.take(offset.more), recent[0], recent[1]];
                recent[0]
            } else {
                let nth = offset.more + u8::from(literal.base == 0);
                let nth = if offset.more == 0 { nth.into() } else { u32::from(nth) + word.take(1) };
                match nth {
                    0 => {}
                    1 => recent = [recent[1], recent[0], recent[2]],
                    2 => recent = [recent[2], recent[0], recent[1]],
                    _ => {
                        if recent[0] == 1 {
                            return Err("a match refers to no byte before it");
                        }
                        recent = [recent[0] - 1, recent[0], recent[1]];
                    }
                }
                recent[0]
            };
            let length = matched.base + word.take(matched.more);
            if word.taken > TAKEN_MAX {
                bits.skip(word.taken);
                word = Word { bits: bits.ahead(buffer), taken: 0 };
            }
            let count = literal.base + word.take(literal.more);
            *sequence = Sequence {
                literals: usize_of_u32(count),
                length: usize_of_u32(length),
                distance: usize_of_u32(distance),
            };
            left -= 1;
            if left > 0 {
                literals_state = usize::from(literal.next) + usize_of_u32(word.take(literal.bits));
                matches_state = usize::from(matched.next) + usize_of_u32(word.take(matched.bits));
                offsets_state = usize::from(offset.next) + usize_of_u32(word.take(offset.bits));
            }
            bits.skip(word.taken);
            if bits.is_overrun() {
                return Err("the sequences of a block have more bits than there are");
            }
        }
        self.left = left;
        self.states = [literals_state, offsets_state, matches_state];
        (self.bits, self.recent, self.next) = (bits, recent, 0..count);
        Ok(())
    }

    /// Looks at what the batch refers to, if it is far back; returns what that costs, in elements.
    fn touch(&self, target: &Target<'_>) -> usize {
        let batch = &self.batch[self.next.clone()];
        let back = |bytes| batch.iter().filter(|sequence| sequence.distance >= bytes).count();
        let far = back(FAR_BYTES);
        if far == 0 {
            return 0;
        }
        let mut touched = 0;
        for sequence in batch {
            // (Not exactly: the bytes of the batch itself are not counted.)
            let place = target.place(sequence.distance).unwrap_or(0);
            touched ^= target.bytes.get(place).copied().unwrap_or(0);
        }
        black_box(touched);
        far * FAR_ELEMENTS + back(FARTHER_BYTES) * FARTHER_ELEMENTS
    }
}
