//! LZ4_RAW: one LZ4 block, without a frame. LZ4, deprecated: whatever writers took that to mean.
//!
//! Writers made three kinds of LZ4 pages, which the first byte distinguishes:
//!
//! * Hadoop's framing, by Parquet Java, Arrow C++ 1.0 and later, ClickHouse and Spark: the size of the first block, below
//!   256 MiB, starts with a byte below 16.
//! * LZ4 frames, by parquet-rs before 27.0: a magic number.
//! * A bare block, by Arrow C++ before 1.0 and fastparquet: its first byte counts the first literals in its upper
//!   half. A block starts with literals, because a match has nothing to refer to yet; so the byte is at least 16,
//!   except in an empty block, which is one zero byte.
//!
//! (Arrow C++ reads a page as Hadoop's if that succeeds, otherwise as a bare block; parquet-rs tries Hadoop's, frames
//! and a bare block in turn. Then an error would only say that the last attempt failed, and a bomb would cost three
//! times as much.)

use marquetry_base::{Codec, Price, Result};
use marquetry_kernels::lz::lz4;

use crate::block::{Block, Fault, Room, Stop};
use crate::hadoop::{BLOCK_HEADER_BYTES, Hadoop, first_sizes};
use crate::lz4_frame::{Frames, is_frame};
use crate::page::{Page, Ratio};
use crate::pieces::Format;

/// The best that a byte can do is to lengthen a match by 255.
const RATIO_MAX: Ratio = Ratio { output: 255, input: 1 };

/// Offsets have 16 bits.
const HISTORY_BYTES: usize = 64 << 10;

/// Reader of a page that is one LZ4 block.
#[derive(Debug, Default)]
pub(crate) struct Lz4Raw {
    block: Sequences,
}

impl Format for Lz4Raw {
    const CODEC: Codec = Codec::Lz4Raw;
    const RATIO_MAX: Ratio = RATIO_MAX;

    /// Measured (`examples/prices.rs`): sequences of what encoders write at 2 to 7 ns, the shortest matches at 7.
    const PRICE: Price = Price { kib: 150, kilovalue: 8 << 10 };

    const HISTORY_BYTES: usize = HISTORY_BYTES;

    fn start(&mut self, _: usize, _: usize) {
        *self = Lz4Raw::default();
    }

    fn decode(&mut self, input: &[u8], _: &Page, room: &mut Room<'_>) -> Result<(usize, Stop)> {
        self.block.decode(input, room).map_err(|fault| fault.into_error(Codec::Lz4Raw))
    }

    fn may_end(&self) -> bool {
        self.block.may_end()
    }
}

/// Reader of a page of the deprecated codec.
#[derive(Debug, Default)]
pub(crate) struct Lz4 {
    compressed: usize,
    uncompressed: usize,
    layout: Layout,
}

#[derive(Debug, Default)]
enum Layout {
    /// Not told yet.
    #[default]
    Unknown,
    Hadoop(Hadoop<Sequences>),
    Frames(Frames),
    Bare(Sequences),
}

/// The smallest first byte of a bare block that is not empty: one literal.
const BARE_FIRST_BYTE_MIN: u8 = 1 << 4;

impl Format for Lz4 {
    const CODEC: Codec = Codec::Lz4;
    const RATIO_MAX: Ratio = RATIO_MAX;

    /// With the checksums of frames, of which there are up to two.
    const PRICE: Price = Price { kib: 500, kilovalue: 8 << 10 };

    const HISTORY_BYTES: usize = HISTORY_BYTES;

    fn start(&mut self, compressed: usize, uncompressed: usize) {
        *self = Lz4 { compressed, uncompressed, layout: Layout::Unknown };
    }

    fn decode(&mut self, input: &[u8], page: &Page, room: &mut Room<'_>) -> Result<(usize, Stop)> {
        if let Layout::Unknown = self.layout {
            if input.len() < BLOCK_HEADER_BYTES.min(self.compressed) {
                return Ok((0, Stop::Input));
            }
            self.layout = layout(input, self.compressed, self.uncompressed);
        }
        match &mut self.layout {
            Layout::Hadoop(blocks) => blocks.decode(input, self.compressed, page, room),
            Layout::Frames(frames) => frames.decode(input, room),
            Layout::Bare(block) => block.decode(input, room).map_err(|fault| fault.into_error(Codec::Lz4)),
            Layout::Unknown => Ok((0, Stop::Input)),
        }
    }

    fn may_end(&self) -> bool {
        match &self.layout {
            Layout::Hadoop(blocks) => blocks.may_end(),
            Layout::Frames(frames) => frames.may_end(),
            Layout::Bare(block) => block.may_end(),
            Layout::Unknown => false,
        }
    }
}

/// Determines the layout from a page's first bytes, so that each page is read in one way and errors refer to that
/// way.
fn layout(input: &[u8], compressed: usize, uncompressed: usize) -> Layout {
    if is_frame(input) {
        return Layout::Frames(Frames::default());
    }
    let is_hadoop = match input {
        [0] if compressed == 1 => false,
        [first, ..] if *first < BARE_FIRST_BYTE_MIN => true,
        // Blocks of 256 MiB and more: where the sizes can be true, they are taken for sizes.
        _ => first_sizes(input).is_some_and(|(block, chunk)| {
            let fits = |size: u32, max: usize| usize::try_from(size).is_ok_and(|size| size <= max);
            fits(block, uncompressed) && fits(chunk, compressed - BLOCK_HEADER_BYTES)
        }),
    };
    if is_hadoop { Layout::Hadoop(Hadoop::new(Codec::Lz4)) } else { Layout::Bare(Sequences::default()) }
}

/// Decoder of a block's sequences. lz4/doc/lz4_Block_format.md.
///
/// The rules for the last bytes of a block are for encoders and not checked: a block ends where its bytes end, after
/// literals, which may be empty. (The reference decoder wants the last five bytes to be literals.)
#[derive(Debug, Default)]
pub(crate) struct Sequences {
    expect: Expect,
    produced: usize,
}

#[derive(Debug, Default, Clone, Copy)]
enum Expect {
    #[default]
    Token,
    /// The rest of the number of literals. `matched`, here and below: the token's lower half, a match's length.
    LiteralsLength {
        length: usize,
        matched: usize,
    },
    Literals {
        left: usize,
        matched: usize,
    },
    /// Where a match refers to; or the block's end.
    Offset {
        matched: usize,
    },
    MatchLength {
        distance: usize,
        length: usize,
    },
    Match {
        distance: usize,
        left: usize,
    },
}

/// A length in a token that continues after it.
const LENGTH_GOES_ON: usize = 15;

/// A byte of a length that is not its last.
const BYTE_GOES_ON: u8 = 255;

/// The shortest match.
const MATCH_MIN: usize = 4;

impl Sequences {
    /// Starts a block that may refer to the blocks before it.
    pub(crate) fn next_block(&mut self) {
        self.expect = Expect::Token;
    }

    /// Counts bytes that such a block may refer to, too.
    pub(crate) fn stored(&mut self, bytes: usize) {
        self.produced += bytes;
    }
}

impl Block for Sequences {
    fn decode(&mut self, input: &[u8], room: &mut Room<'_>) -> Result<(usize, Stop), Fault> {
        let mut at = 0;
        loop {
            match self.expect {
                Expect::Token => {
                    at += room.run(&mut self.produced, |to| lz4::run(&input[at..], to));
                    let Some(&token) = input.get(at) else { return Ok((at, Stop::Input)) };
                    at += 1;
                    let (left, matched) = (usize::from(token >> 4), usize::from(token & 15));
                    self.expect = match left {
                        LENGTH_GOES_ON => Expect::LiteralsLength { length: left, matched },
                        _ => Expect::Literals { left, matched },
                    };
                }
                Expect::LiteralsLength { length, matched } => {
                    let (bytes, more, whole) = length_bytes(&input[at..]);
                    (at, room.elements) = (at + bytes, room.elements + bytes);
                    let left = length.saturating_add(more);
                    if !whole {
                        self.expect = Expect::LiteralsLength { length: left, matched };
                        return Ok((at, Stop::Input));
                    }
                    self.expect = Expect::Literals { left, matched };
                }
                Expect::Literals { left: 0, matched } => self.expect = Expect::Offset { matched },
                Expect::Literals { left, matched } => {
                    if let Some(stop) = room.stop() {
                        return Ok((at, stop));
                    }
                    let length = room.literals(&input[at..], left);
                    (at, self.produced) = (at + length, self.produced + length);
                    self.expect = Expect::Literals { left: left - length, matched };
                    if length < left && at == input.len() {
                        return Ok((at, Stop::Input));
                    }
                }
                Expect::Offset { matched } => {
                    let Some(&offset) = input[at..].first_chunk() else { return Ok((at, Stop::Input)) };
                    at += 2;
                    let distance = usize::from(u16::from_le_bytes(offset));
                    self.expect = match matched {
                        LENGTH_GOES_ON => Expect::MatchLength { distance, length: matched + MATCH_MIN },
                        _ => Expect::Match { distance, left: matched + MATCH_MIN },
                    };
                }
                Expect::MatchLength { distance, length } => {
                    let (bytes, more, whole) = length_bytes(&input[at..]);
                    (at, room.elements) = (at + bytes, room.elements + bytes);
                    let left = length.saturating_add(more);
                    if !whole {
                        self.expect = Expect::MatchLength { distance, length: left };
                        return Ok((at, Stop::Input));
                    }
                    self.expect = Expect::Match { distance, left };
                }
                Expect::Match { distance, left } => {
                    if let Some(stop) = room.stop() {
                        return Ok((at, stop));
                    }
                    let length = room.copy(distance, left, self.produced)?;
                    self.produced += length;
                    self.expect = if length == left {
                        Expect::Token
                    } else {
                        Expect::Match { distance, left: left - length }
                    };
                }
            }
        }
    }

    fn may_end(&self) -> bool {
        matches!(self.expect, Expect::Offset { .. } | Expect::Literals { left: 0, .. })
    }
}

/// Reads on in a length: the bytes it took, what they add, and whether they were its last.
fn length_bytes(input: &[u8]) -> (usize, usize, bool) {
    let full = input.iter().take_while(|&&byte| byte == BYTE_GOES_ON).count();
    let more = full.saturating_mul(usize::from(BYTE_GOES_ON));
    match input.get(full) {
        Some(&last) => (full + 1, more.saturating_add(usize::from(last)), true),
        None => (full, more, false),
    }
}
