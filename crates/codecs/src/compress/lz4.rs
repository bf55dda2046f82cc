//! LZ4_RAW: one LZ4 block. lz4/doc/lz4_Block_format.md.

use marquetry_base::Price;
use marquetry_kernels::lz::lz4;
use marquetry_kernels::lz::pack::{Cursor, Input, Packed, Sequence, Table};

use super::sequences::{Format, Part};

/// Writes a page as one LZ4 block.
#[derive(Debug)]
pub(crate) struct Lz4 {
    sequence: Sequence,
    next: Next,
}

/// The next part of a sequence.
#[derive(Debug, Clone, Copy)]
enum Next {
    Token,
    /// The part of a length that did not fit into the token; then what it is the length of.
    LiteralsLength(usize),
    Literals,
    Offset,
    MatchLength(usize),
    Nothing,
}

impl Default for Lz4 {
    fn default() -> Lz4 {
        Lz4 { sequence: Sequence { literals: 0, distance: 0, length: 0 }, next: Next::Nothing }
    }
}

impl Format for Lz4 {
    /// Measured (`examples/compress.rs`), except for matches, whose price is what pages of short strings cost on a busy
    /// machine.
    const PRICE: Price = Price { kib: 800, kilovalue: 16 << 10 };

    /// "The last 5 bytes are always literals." (That no match begins in the last 12 follows from where matches are
    /// searched.)
    const LITERALS_AT_END: usize = 5;

    const LITERALS_MAX: Option<usize> = None;

    fn bound(uncompressed: usize) -> usize {
        uncompressed + uncompressed / 255 + 16
    }

    fn start(&mut self, _: usize) -> Part {
        *self = Lz4::default();
        Part::Bytes([0; 8], 0)
    }

    fn pack(input: Input<'_>, cursor: &mut Cursor, table: &mut Table, output: &mut [u8]) -> Packed {
        lz4::pack(input, cursor, table, output)
    }

    fn begin(&mut self, sequence: Sequence) {
        *self = Lz4 { sequence, next: Next::Token };
    }

    fn part(&mut self) -> Option<Part> {
        let Sequence { literals, distance, length } = self.sequence;
        loop {
            match self.next {
                Next::Token => {
                    self.next = match literals.checked_sub(lz4::LENGTH_GOES_ON) {
                        Some(rest) => Next::LiteralsLength(rest),
                        None => Next::Literals,
                    };
                    return Some(Part::Bytes([lz4::token(literals, length), 0, 0, 0, 0, 0, 0, 0], 1));
                }
                Next::LiteralsLength(rest) => {
                    let (part, rest) = length_part(rest);
                    self.next = rest.map_or(Next::Literals, Next::LiteralsLength);
                    return Some(part);
                }
                Next::Literals => {
                    self.next = if length > 0 { Next::Offset } else { Next::Nothing };
                    if literals > 0 {
                        return Some(Part::Literals(literals));
                    }
                }
                Next::Offset => {
                    self.next = match length.checked_sub(lz4::MATCH_MIN + lz4::LENGTH_GOES_ON) {
                        Some(rest) => Next::MatchLength(rest),
                        None => Next::Nothing,
                    };
                    return Some(Part::Bytes((distance as u64).to_le_bytes(), 2));
                }
                Next::MatchLength(rest) => {
                    let (part, rest) = length_part(rest);
                    self.next = rest.map_or(Next::Nothing, Next::MatchLength);
                    return Some(part);
                }
                Next::Nothing => return None,
            }
        }
    }
}

/// The next bytes of a length, and the rest of it.
fn length_part(rest: usize) -> (Part, Option<usize>) {
    const FULL: usize = 255;
    let full = (rest / FULL).min(8);
    match (full, u8::try_from(rest)) {
        (0, Ok(last)) => (Part::Bytes([last, 0, 0, 0, 0, 0, 0, 0], 1), None),
        _ => (Part::Bytes([u8::MAX; 8], full), Some(rest - full * FULL)),
    }
}
