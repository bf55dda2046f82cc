//! The literals of a block. RFC 8878, section 3.1.1.3.1.

use core::ops::Range;

use marquetry_base::Result;
use marquetry_base::cast::usize_of;

use super::bits::Backward;
use super::huffman::{SYMBOLS_AT_ONCE, TREE_ELEMENTS, Tree};
use super::window::{SLACK, Target};
use super::work::{BLOCK_BYTES_MAX, Work, reserve};
use crate::block::Fault;

/// The literals of a block, as far as they are not copied.
#[derive(Debug, Default)]
pub(super) struct Literals {
    /// Those that are not in the block as they are.
    memory: Vec<u8>,
    /// They are in the block.
    is_raw: bool,
    /// Where they are.
    left: Range<usize>,
    tree: Tree,
    /// A block before had a tree.
    has_tree: bool,
    /// Those that are being decoded; the others are empty.
    streams: [Stream; 4],
}

/// Literals that are decoded one after the other.
#[derive(Debug, Clone, Default)]
struct Stream {
    bits: Backward,
    /// Where they go.
    to: Range<usize>,
}

/// Streams that are shorter are not four.
const FOUR_STREAMS_MIN: usize = 6;
/// Bytes of the lengths of the first three.
const LENGTHS_BYTES: usize = 6;
/// The longest header.
const HEADER_BYTES_MAX: usize = 5;

/// The costs of a literal that is decoded, in elements: in one of four streams, and in a stream alone.
const LITERAL_ELEMENTS: usize = 2;
const SINGLE_ELEMENTS: usize = 4;
/// The cost of a block's literals besides.
const SECTION_ELEMENTS: usize = 100;
/// Literals that are decoded without looking at what was done, of each stream.
const STREAM_PART: usize = 512;

/// Literals, and bytes of a match, that are copied at once, with what is after them.
pub(super) const WIDE: usize = 16;

impl Literals {
    /// Forgets the frame before.
    pub(super) fn begin_frame(&mut self) -> Result<()> {
        self.has_tree = false;
        reserve(&mut self.memory, BLOCK_BYTES_MAX + SLACK)
    }

    /// Bytes of memory.
    pub(super) fn held(&self) -> usize {
        self.memory.capacity()
    }

    /// Reads the header at the start of a range of the buffer, and the tree if there is one. Returns where the literals
    /// end there. A block has at most `most` of them.
    pub(super) fn begin(
        &mut self,
        buffer: &[u8],
        range: Range<usize>,
        most: usize,
        work: &mut Work,
    ) -> Result<usize, Fault> {
        const SHORT: Fault = Fault::Malformed("the literals of a block end after it");
        work.elements += SECTION_ELEMENTS;
        let bytes = &buffer[range.clone()];
        // The shortest block has a header of literals, and one of sequences.
        if bytes.len() < 2 {
            return Err(SHORT);
        }
        let mut word = [0; 8];
        let there = bytes.len().min(HEADER_BYTES_MAX);
        word[..there].copy_from_slice(&bytes[..there]);
        let word = u64::from_le_bytes(word);
        let field = |from: u32, bits: u32| usize_of(word >> from & ((1 << bits) - 1)).unwrap_or(usize::MAX);
        let (kind, form) = (field(0, 2), field(2, 2));
        let (header, length, packed, streams) = match (kind, form) {
            (0 | 1, 0 | 2) => (1, field(3, 5), None, 0),
            (0 | 1, 1) => (2, field(4, 12), None, 0),
            (0 | 1, _) => (3, field(4, 20), None, 0),
            (_, 0) => (3, field(4, 10), Some(field(14, 10)), 1),
            (_, 1) => (3, field(4, 10), Some(field(14, 10)), 4),
            (_, 2) => (4, field(4, 14), Some(field(18, 14)), 4),
            _ => (5, field(4, 18), Some(field(22, 18)), 4),
        };
        let packed = packed.unwrap_or(if kind == 0 { length } else { 1 });
        // (The library wants five bytes, whatever the header needs.)
        if header + packed > bytes.len() || (kind > 1 && bytes.len() < HEADER_BYTES_MAX) {
            return Err(SHORT);
        }
        if length > most {
            return Err(Fault::Malformed("a block has more literals than it may have bytes"));
        }
        let start = range.start + header;
        let end = start + packed;
        self.streams = Default::default();
        self.is_raw = kind == 0;
        self.left = if self.is_raw { start..end } else { 0..length };
        if self.is_raw {
            return Ok(end);
        }
        let room = length + SLACK;
        if self.memory.len() < room {
            work.fresh(room - self.memory.len());
            self.memory.resize(room, 0);
        }
        if kind == 1 {
            work.bytes(length);
            self.memory[..length].fill(buffer[start]);
            return Ok(end);
        }
        let mut at = start;
        if kind == 2 {
            work.elements += TREE_ELEMENTS;
            at += self.tree.read(buffer, start, end)?;
            self.has_tree = true;
        }
        if !self.has_tree {
            return Err(Fault::Malformed(
                "the literals of a block use the tree of another block, and there is none",
            ));
        }
        self.begin_streams(buffer, at..end, length, streams)?;
        Ok(end)
    }

    fn begin_streams(
        &mut self,
        buffer: &[u8],
        range: Range<usize>,
        length: usize,
        count: usize,
    ) -> Result<(), Fault> {
        const BAD: Fault = Fault::Malformed("the literals of a block have streams of bad lengths");
        let stream = |bytes, to| {
            Ok(Stream { bits: Backward::new(buffer, bytes).ok_or(Fault::Malformed(NOT_USED_UP))?, to })
        };
        if count == 1 {
            self.streams[0] = stream(range, 0..length)?;
            return Ok(());
        }
        let bytes = &buffer[range.clone()];
        if length < FOUR_STREAMS_MIN || bytes.len() < LENGTHS_BYTES {
            return Err(BAD);
        }
        let quarter = length.div_ceil(4);
        let (mut at, mut to) = (range.start + LENGTHS_BYTES, 0);
        for (nth, one) in self.streams[..3].iter_mut().enumerate() {
            let bytes = usize::from(u16::from_le_bytes([bytes[2 * nth], bytes[2 * nth + 1]]));
            if range.end - at < bytes {
                return Err(BAD);
            }
            *one = stream(at..at + bytes, to..to + quarter)?;
            (at, to) = (at + bytes, to + quarter);
        }
        self.streams[3] = stream(at..range.end, to..length)?;
        Ok(())
    }

    /// Goes on with decoding; true once all literals are there.
    pub(super) fn decode(&mut self, buffer: &[u8], work: &mut Work) -> Result<bool, Fault> {
        while !self.streams[0].to.is_empty() {
            if work.is_tired() {
                return Ok(false);
            }
            // The last stream is up to three literals shorter than the others.
            let groups = self.streams[3].to.len().min(STREAM_PART) / SYMBOLS_AT_ONCE;
            if groups > 0 {
                work.elements += 4 * groups * SYMBOLS_AT_ONCE * LITERAL_ELEMENTS;
                self.decode_four(buffer, groups)?;
            } else {
                work.elements += self.decode_one_by_one(buffer) * SINGLE_ELEMENTS;
            }
            if self.streams.iter().any(|stream| stream.bits.is_overrun()) {
                return Err(Fault::Malformed(NOT_USED_UP));
            }
        }
        if !self.streams.iter().all(|stream| stream.bits.is_exhausted()) {
            return Err(Fault::Malformed(NOT_USED_UP));
        }
        Ok(true)
    }

    /// Decodes groups of literals of four streams, side by side.
    fn decode_four(&mut self, buffer: &[u8], groups: usize) -> Result<(), Fault> {
        let Literals { memory, streams, tree, .. } = self;
        let length = groups * SYMBOLS_AT_ONCE;
        let parts = streams.each_ref().map(|stream| stream.to.start..stream.to.start + length);
        let parts = memory.get_disjoint_mut(parts);
        let parts = parts.map_err(|_| Fault::Malformed("streams of literals that overlap"))?;
        let [a, b, c, d] = parts.map(|part| part.as_chunks_mut::<SYMBOLS_AT_ONCE>().0);
        let mut bits = streams.each_ref().map(|stream| stream.bits);
        for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
            tree.decode(&mut bits[0], buffer, a);
            tree.decode(&mut bits[1], buffer, b);
            tree.decode(&mut bits[2], buffer, c);
            tree.decode(&mut bits[3], buffer, d);
            if bits[0].is_overrun() | bits[1].is_overrun() | bits[2].is_overrun() | bits[3].is_overrun() {
                break;
            }
        }
        for (stream, bits) in streams.iter_mut().zip(bits) {
            stream.bits = bits;
            stream.to.start += length;
        }
        Ok(())
    }

    /// Decodes literals of each stream, and returns how many.
    fn decode_one_by_one(&mut self, buffer: &[u8]) -> usize {
        let mut decoded = 0;
        for stream in &mut self.streams {
            let length = stream.to.len().min(STREAM_PART);
            let to = &mut self.memory[stream.to.start..stream.to.start + length];
            for to in to.chunks_mut(SYMBOLS_AT_ONCE) {
                self.tree.decode(&mut stream.bits, buffer, to);
                if stream.bits.is_overrun() {
                    break;
                }
            }
            stream.to.start += length;
            decoded += length;
        }
        decoded
    }

    /// How many are left.
    pub(super) fn left(&self) -> usize {
        self.left.len()
    }

    /// What they are in, and where.
    pub(super) fn bytes<'block>(&'block self, buffer: &'block [u8]) -> &'block [u8] {
        if self.is_raw { buffer } else { &self.memory }
    }

    /// See [`Literals::bytes`].
    pub(super) fn range(&self) -> Range<usize> {
        self.left.clone()
    }

    /// Counts literals as copied.
    pub(super) fn skip(&mut self, count: usize) {
        self.left.start += count;
    }

    /// Appends literals, of which there are as many, and for which there is room.
    pub(super) fn append(&mut self, buffer: &[u8], target: &mut Target<'_>, count: usize) {
        let from = self.left.start;
        target.append(&self.bytes(buffer)[from..from + count]);
        self.skip(count);
    }
}

/// A stream has more bits than its literals, or less, or no mark where they begin. The library looks at none of this if it
/// decodes four streams side by side, as it does on some processors.
pub(super) const NOT_USED_UP: &str = "the literals of a block do not end where their stream does";
