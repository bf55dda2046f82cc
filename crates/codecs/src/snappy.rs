//! SNAPPY: raw Snappy blocks, without Snappy's framing format. google/snappy, format_description.txt.

use marquetry_base::{Codec, Price, Result};
use marquetry_kernels::lz::snappy;

use crate::block::{Block, Fault, Room, Stop};
use crate::page::{Page, Ratio};
use crate::pieces::Format;

/// Reads a page that is one Snappy block.
#[derive(Debug, Default)]
pub(crate) struct Snappy {
    elements: Elements,
    /// Bits of the uncompressed length read so far; the length once it is complete.
    length: Option<usize>,
}

/// The longest uncompressed length, 32 bits in groups of seven.
const LENGTH_BYTES_MAX: usize = 5;

impl Format for Snappy {
    const CODEC: Codec = Codec::Snappy;

    /// The most that an element can do is a copy with a two-byte offset: 3 bytes for 64.
    const RATIO_MAX: Ratio = Ratio { output: 64, input: 3 };

    /// Measured (`examples/prices.rs`): elements written by encoders at 1 to 4 ns; the shortest copies, each of the
    /// previous one's output, at 7.
    const PRICE: Price = Price { kib: 150, kilovalue: 6 << 10 };

    /// The format has offsets of 32 bits, but all known encoders split their input into pieces of 64 KiB.
    const HISTORY_BYTES: usize = 64 << 10;

    fn start(&mut self, _: usize, _: usize) {
        *self = Snappy::default();
    }

    fn decode(&mut self, input: &[u8], page: &Page, room: &mut Room<'_>) -> Result<(usize, Stop)> {
        let mut consumed = 0;
        if self.length.is_none() {
            let head = &input[..input.len().min(LENGTH_BYTES_MAX)];
            let Some(last) = head.iter().position(|byte| byte & 0x80 == 0) else {
                if head.len() == LENGTH_BYTES_MAX {
                    return Err(page.corrupt("its uncompressed length takes more than five bytes"));
                }
                return Ok((0, Stop::Input));
            };
            let length =
                head[..=last].iter().rev().fold(0u64, |length, byte| length << 7 | u64::from(byte & 0x7f));
            let owed = page.owed();
            if usize::try_from(length) != Ok(owed) {
                return Err(page.corrupt(format_args!(
                    "its data announce {length} uncompressed bytes, its header {owed}"
                )));
            }
            self.length = Some(owed);
            consumed = last + 1;
        }
        let (decoded, stop) = self
            .elements
            .decode(&input[consumed..], room)
            .map_err(|fault| fault.into_error(Codec::Snappy))?;
        Ok((consumed + decoded, stop))
    }

    fn may_end(&self) -> bool {
        self.length.is_some() && self.elements.may_end()
    }
}

/// Decodes a block's elements, which follow its length.
#[derive(Debug, Default)]
struct Elements {
    expect: Expect,
    produced: usize,
}

#[derive(Debug, Default, Clone, Copy)]
enum Expect {
    #[default]
    Tag,
    Literal {
        left: usize,
    },
    Copy {
        distance: usize,
        left: usize,
    },
}

/// A tag's length field of this or more gives the number of length bytes that follow it, minus one.
const LENGTH_FOLLOWS: usize = 60;

impl Block for Elements {
    fn decode(&mut self, input: &[u8], room: &mut Room<'_>) -> Result<(usize, Stop), Fault> {
        let mut at = 0;
        loop {
            match self.expect {
                Expect::Tag => {
                    at += room.run(&mut self.produced, |to| snappy::run(&input[at..], to));
                    let Some(expect) = head(&input[at..]) else { return Ok((at, Stop::Input)) };
                    if let Some(stop) = room.stop() {
                        return Ok((at, stop));
                    }
                    let bytes;
                    (self.expect, bytes) = expect;
                    at += bytes;
                }
                Expect::Literal { left } => {
                    if let Some(stop) = room.stop() {
                        return Ok((at, stop));
                    }
                    let length = room.literals(&input[at..], left);
                    (at, self.produced) = (at + length, self.produced + length);
                    if length == left {
                        self.expect = Expect::Tag;
                    } else {
                        self.expect = Expect::Literal { left: left - length };
                        if at == input.len() {
                            return Ok((at, Stop::Input));
                        }
                    }
                }
                Expect::Copy { distance, left } => {
                    if let Some(stop) = room.stop() {
                        return Ok((at, stop));
                    }
                    let length = room.copy(distance, left, self.produced)?;
                    self.produced += length;
                    self.expect = if length == left {
                        Expect::Tag
                    } else {
                        Expect::Copy { distance, left: left - length }
                    };
                }
            }
        }
    }

    fn may_end(&self) -> bool {
        matches!(self.expect, Expect::Tag)
    }
}

/// The contents of a tag and its bytes, and their number. `None` if some are missing.
fn head(input: &[u8]) -> Option<(Expect, usize)> {
    let (&tag, rest) = input.split_first()?;
    let length = usize::from(tag >> 2);
    Some(match tag & 3 {
        0 if length < LENGTH_FOLLOWS => (Expect::Literal { left: length + 1 }, 1),
        0 => {
            let bytes = length + 1 - LENGTH_FOLLOWS;
            (Expect::Literal { left: number(rest.get(..bytes)?).saturating_add(1) }, 1 + bytes)
        }
        1 => {
            let distance = usize::from(tag >> 5) << 8 | number(rest.get(..1)?);
            (Expect::Copy { distance, left: 4 + (length & 7) }, 2)
        }
        2 => (Expect::Copy { distance: number(rest.get(..2)?), left: length + 1 }, 3),
        _ => (Expect::Copy { distance: number(rest.get(..4)?), left: length + 1 }, 5),
    })
}

/// A little-endian number of at most four bytes.
fn number(bytes: &[u8]) -> usize {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | usize::from(byte))
}
