//! SNAPPY: one raw block. google/snappy, format_description.txt.
//!
//! Google's encoder forgets everything every 64 KiB; here matches refer to anything less than 64 KiB back, as the
//! format allows.

use marquetry_base::Price;
use marquetry_kernels::lz::pack::{Cursor, Input, Packed, Sequence, Table};
use marquetry_kernels::lz::snappy;

use super::sequences::{Format, Part};

/// Writes a page as one Snappy block, with long matches if `LONG`.
#[derive(Debug)]
pub(crate) struct Snappy<const LONG: bool> {
    left: Sequence,
    /// The tag of these literals was written.
    tagged: Option<usize>,
}

impl<const LONG: bool> Default for Snappy<LONG> {
    fn default() -> Self {
        Snappy { left: Sequence { literals: 0, distance: 0, length: 0 }, tagged: None }
    }
}

/// Literals of one element: their number takes at most two bytes after the tag.
const LITERALS_MAX: usize = 1 << 16;

impl<const LONG: bool> Format for Snappy<LONG> {
    /// Measured (`examples/compress.rs`), except for matches, whose price is what pages of short strings cost on a busy
    /// machine.
    const PRICE: Price = Price { kib: 800, kilovalue: 16 << 10 };

    const LITERALS_AT_END: usize = 0;

    const LITERALS_MAX: Option<usize> = Some(LITERALS_MAX);

    /// The length, and tags of literals: more than 60 literals and the match after them may take one byte more than
    /// they represent.
    fn bound(uncompressed: usize) -> usize {
        5 + uncompressed + uncompressed / 64 + 3
    }

    fn start(&mut self, uncompressed: usize) -> Part {
        *self = Self::default();
        let (mut bytes, mut at, mut left) = ([0; 8], 0, uncompressed);
        while left >= 0x80 {
            bytes[at] = marquetry_base::cast::low_u8(left as u64) | 0x80;
            (at, left) = (at + 1, left >> 7);
        }
        bytes[at] = marquetry_base::cast::low_u8(left as u64);
        Part::Bytes(bytes, at + 1)
    }

    fn pack(input: Input<'_>, cursor: &mut Cursor, table: &mut Table, output: &mut [u8]) -> Packed {
        match LONG {
            true => snappy::pack_long(input, cursor, table, output),
            false => snappy::pack(input, cursor, table, output),
        }
    }

    fn begin(&mut self, sequence: Sequence) {
        self.left = sequence;
    }

    fn part(&mut self) -> Option<Part> {
        if let Some(literals) = self.tagged.take() {
            return Some(Part::Literals(literals));
        }
        let left = &mut self.left;
        let (element, bytes) = if left.literals > 0 {
            let literals = left.literals.min(LITERALS_MAX);
            left.literals -= literals;
            self.tagged = Some(literals);
            snappy::literal_tag(literals)
        } else if left.length > 0 {
            let length = snappy::first_copy(left.length);
            left.length -= length;
            snappy::copy(left.distance, length)
        } else {
            return None;
        };
        let [b0, b1, b2, b3] = element;
        Some(Part::Bytes([b0, b1, b2, b3, 0, 0, 0, 0], bytes))
    }
}
