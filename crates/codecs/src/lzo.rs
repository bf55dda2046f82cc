//! LZO: blocks of LZO1X.
//!
//! The format says that pages hold the LZO library's output, and does not mention framing. What writers do:
//!
//! * Parquet Java uses Hadoop's codec, so its pages are in Hadoop's framing. (Trino, Presto, Velox and StarRocks read
//!   that.)
//! * fastparquet uses python-lzo, which puts a byte and the uncompressed size before the block.
//! * No writer of a bare block is known, but that is what the format literally says.
//!
//! A page's first eight bytes distinguish the three: python-lzo's has its byte and the announced size, Hadoop's two
//! plausible sizes.

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Codec, Price, Result};
use marquetry_kernels::lz::lzo;

use crate::block::{Block, Fault, Room, Stop};
use crate::hadoop::{BLOCK_HEADER_BYTES, Hadoop, first_sizes};
use crate::page::{Page, Ratio};
use crate::pieces::Format;

/// Reader of a page of LZO1X.
#[derive(Debug, Default)]
pub(crate) struct Lzo {
    compressed: usize,
    uncompressed: usize,
    layout: Layout,
}

#[derive(Debug, Default)]
enum Layout {
    /// Not determined yet.
    #[default]
    Unknown,
    Hadoop(Hadoop<Instructions>),
    Bare(Instructions),
}

/// What python-lzo writes before a block, by the level of compression; then the uncompressed size, big-endian.
const PYTHON_FIRST_BYTES: [u8; 2] = [0xf0, 0xf1];
const PYTHON_HEADER_BYTES: usize = 5;

/// The shortest block: its end.
const BLOCK_BYTES_MIN: usize = 3;

/// The most that a byte can do is to lengthen a match by 255.
const RATIO_MAX: Ratio = Ratio { output: 255, input: 1 };

impl Format for Lzo {
    const CODEC: Codec = Codec::Lzo;

    const RATIO_MAX: Ratio = RATIO_MAX;

    /// Measured (`examples/prices.rs`): instructions at 3 to 8 ns.
    const PRICE: Price = Price { kib: 150, kilovalue: 8 << 10 };

    /// The farthest match (M4) reaches 48 KiB back.
    const HISTORY_BYTES: usize = 48 << 10;

    fn start(&mut self, compressed: usize, uncompressed: usize) {
        *self = Lzo { compressed, uncompressed, layout: Layout::Unknown };
    }

    fn decode(&mut self, input: &[u8], page: &Page, room: &mut Room<'_>) -> Result<(usize, Stop)> {
        let mut skipped = 0;
        if let Layout::Unknown = self.layout {
            if input.len() < BLOCK_HEADER_BYTES.min(self.compressed) {
                return Ok((0, Stop::Input));
            }
            (self.layout, skipped) = layout(input, self.compressed, self.uncompressed);
        }
        let (consumed, stop) = match &mut self.layout {
            Layout::Hadoop(blocks) => blocks.decode(input, self.compressed, page, room),
            Layout::Bare(block) => {
                block.decode(&input[skipped..], room).map_err(|fault| fault.into_error(Codec::Lzo))
            }
            Layout::Unknown => Ok((0, Stop::Input)),
        }?;
        Ok((skipped + consumed, stop))
    }

    fn may_end(&self) -> bool {
        match &self.layout {
            Layout::Hadoop(blocks) => blocks.may_end(),
            Layout::Bare(block) => block.may_end(),
            Layout::Unknown => false,
        }
    }
}

/// The layout, and how many bytes precede its first.
fn layout(input: &[u8], compressed: usize, uncompressed: usize) -> (Layout, usize) {
    if is_python(input, uncompressed) {
        return (Layout::Bare(Instructions::default()), PYTHON_HEADER_BYTES);
    }
    if is_hadoop(input, compressed, uncompressed) {
        return (Layout::Hadoop(Hadoop::new(Codec::Lzo)), 0);
    }
    (Layout::Bare(Instructions::default()), 0)
}

fn is_python(input: &[u8], uncompressed: usize) -> bool {
    let Some(&[first, s0, s1, s2, s3]) = input.first_chunk::<PYTHON_HEADER_BYTES>() else { return false };
    PYTHON_FIRST_BYTES.contains(&first) && usize_of_u32(u32::from_be_bytes([s0, s1, s2, s3])) == uncompressed
}

/// True for plausible sizes. In a bare block these would be a few literals that happen to look like sizes.
fn is_hadoop(input: &[u8], compressed: usize, uncompressed: usize) -> bool {
    let Some((block, chunk)) = first_sizes(input) else {
        // The size of an empty block.
        return input == [0; 4];
    };
    let (block, chunk, chunks) = (usize_of_u32(block), usize_of_u32(chunk), compressed - BLOCK_HEADER_BYTES);
    if block == 0 {
        return uncompressed == 0;
    }
    // A page of one chunk is one, whatever uncompressed size its header claims.
    (BLOCK_BYTES_MIN..=chunks).contains(&chunk) && (block <= uncompressed || chunk == chunks)
}

/// Decodes a block's instructions. Linux, Documentation/staging/lzo.rst.
#[derive(Debug, Default)]
struct Instructions {
    expect: Expect,
    /// What preceded the next instruction: see the kernel.
    before: u8,
    produced: usize,
}

#[derive(Debug, Default, Clone, Copy)]
enum Expect {
    /// The first byte, which may be a number of literals.
    #[default]
    First,
    Instruction,
    /// The rest of a length.
    Length {
        length: usize,
        what: What,
    },
    /// A match's distance.
    Distance {
        length: usize,
        nearest: usize,
    },
    /// A match, followed by literals.
    Match {
        distance: usize,
        left: usize,
        literals: u8,
    },
    /// Literals, and what they mean for the next instruction.
    Literals {
        left: usize,
        before: u8,
    },
    End,
}

/// What the length is for.
#[derive(Debug, Clone, Copy)]
enum What {
    Literals,
    /// A match, with the number that is added to its distance.
    Match {
        nearest: usize,
    },
}

/// A first byte above this is a number of literals, with this added.
const FIRST_LITERALS: u8 = 17;

/// The distance of a match that marks the end instead; and its length.
const END_DISTANCE: usize = 0x4000;
const END_LENGTH: usize = 3;

/// What each byte of a length adds, except the last.
const LENGTH_BYTE: usize = 255;

impl Block for Instructions {
    fn decode(&mut self, input: &[u8], room: &mut Room<'_>) -> Result<(usize, Stop), Fault> {
        let mut at = 0;
        loop {
            match self.expect {
                Expect::First => {
                    let Some(&first) = input.get(at) else { return Ok((at, Stop::Input)) };
                    self.expect = Expect::Instruction;
                    if let Some(literals @ 1..) = first.checked_sub(FIRST_LITERALS) {
                        at += 1;
                        let before = literals.min(lzo::AFTER_RUN);
                        self.expect = Expect::Literals { left: usize::from(literals), before };
                    }
                }
                Expect::Instruction => {
                    at += room.run(&mut self.produced, |to| lzo::run(&input[at..], to, &mut self.before));
                    let Some((expect, bytes)) = head(&input[at..], self.before) else {
                        return Ok((at, Stop::Input));
                    };
                    (self.expect, at) = (expect, at + bytes);
                }
                Expect::Length { length, what } => {
                    let zeros = input[at..].iter().take_while(|&&byte| byte == 0).count();
                    let length = length.saturating_add(zeros.saturating_mul(LENGTH_BYTE));
                    at += zeros;
                    room.elements += zeros;
                    let Some(&last) = input.get(at) else {
                        self.expect = Expect::Length { length, what };
                        return Ok((at, Stop::Input));
                    };
                    at += 1;
                    let length = length.saturating_add(usize::from(last));
                    self.expect = match what {
                        What::Literals => Expect::Literals { left: length, before: lzo::AFTER_RUN },
                        What::Match { nearest } => Expect::Distance { length, nearest },
                    };
                }
                Expect::Distance { length, nearest } => {
                    let Some(&place) = input[at..].first_chunk() else { return Ok((at, Stop::Input)) };
                    at += 2;
                    let [low, _] = place;
                    let distance = nearest + usize::from(u16::from_le_bytes(place) >> 2);
                    self.expect = if distance != END_DISTANCE || nearest == 1 {
                        Expect::Match { distance, left: length, literals: low & 3 }
                    } else if length == END_LENGTH {
                        Expect::End
                    } else {
                        return Err(Fault::Malformed("a match of a wrong length ends a block"));
                    };
                }
                Expect::Match { distance, left, literals } => {
                    if let Some(stop) = room.stop() {
                        return Ok((at, stop));
                    }
                    let length = room.copy(distance, left, self.produced)?;
                    self.produced += length;
                    self.expect = if length == left {
                        Expect::Literals { left: usize::from(literals), before: literals }
                    } else {
                        Expect::Match { distance, left: left - length, literals }
                    };
                }
                Expect::Literals { left: 0, before } => {
                    self.before = before;
                    self.expect = Expect::Instruction;
                }
                Expect::Literals { left, before } => {
                    if let Some(stop) = room.stop() {
                        return Ok((at, stop));
                    }
                    let length = room.literals(&input[at..], left);
                    (at, self.produced) = (at + length, self.produced + length);
                    self.expect = Expect::Literals { left: left - length, before };
                    if length < left && at == input.len() {
                        return Ok((at, Stop::Input));
                    }
                }
                Expect::End if at < input.len() => {
                    return Err(Fault::Malformed("a block ends before its bytes do"));
                }
                Expect::End => return Ok((at, Stop::Input)),
            }
        }
    }

    fn may_end(&self) -> bool {
        matches!(self.expect, Expect::End)
    }
}

/// An instruction's contents, and its number of bytes. `None` if some are missing.
fn head(input: &[u8], before: u8) -> Option<(Expect, usize)> {
    let (&code, rest) = input.split_first()?;
    let bits = usize::from(code);
    let short = |distance: usize, left: usize| {
        let second = usize::from(*rest.first()?);
        let shift = if bits >= 64 { 3 } else { 2 };
        Some((Expect::Match { distance: distance + (second << shift), left, literals: code & 3 }, 2))
    };
    let long = |length: usize, length_max: usize, nearest: usize| match length {
        0 => (Expect::Length { length: length_max + 2, what: What::Match { nearest } }, 1),
        _ => (Expect::Distance { length: length + 2, nearest }, 1),
    };
    match code {
        64.. => short(1 + (bits >> 2 & 7), (bits >> 5) + 1),
        32.. => Some(long(bits & 31, 31, 1)),
        16.. => Some(long(bits & 7, 7, END_DISTANCE + ((bits & 8) << 11))),
        0 if before == 0 => Some((Expect::Length { length: 18, what: What::Literals }, 1)),
        _ if before == 0 => Some((Expect::Literals { left: bits + 3, before: lzo::AFTER_RUN }, 1)),
        _ if before == lzo::AFTER_RUN => short(1 + 2048 + (bits >> 2), 3),
        _ => short(1 + (bits >> 2), 2),
    }
}
