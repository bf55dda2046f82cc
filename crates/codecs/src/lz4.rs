//! LZ4_RAW: one LZ4 block, without a frame. LZ4, deprecated: whatever writers took it to mean.
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
//! and a bare block in turn. Then an error would only describe the last attempt, and a bomb would cost three times as
//! much.)

use marquetry_base::{Codec, Price, Result};

use crate::block::{Block, Room, Stop};
use crate::hadoop::{BLOCK_HEADER_BYTES, Hadoop, first_sizes};
use crate::lz4_block::Sequences;
use crate::lz4_frame::{Frames, is_frame};
use crate::page::{Page, Ratio};
use crate::pieces::Format;

/// The most that a byte can do is to lengthen a match by 255.
const RATIO_MAX: Ratio = Ratio { output: 255, input: 1 };

/// Offsets have 16 bits.
pub(crate) const HISTORY_BYTES: usize = 64 << 10;

/// Reads a page that is one LZ4 block.
#[derive(Debug, Default)]
pub(crate) struct Lz4Raw {
    block: Sequences,
    /// Bytes before the page that it may refer to.
    before: usize,
}

impl Lz4Raw {
    /// A reader of pages that may refer to so many bytes before them.
    pub(crate) fn after(before: usize) -> Lz4Raw {
        Lz4Raw { block: Sequences::default(), before }
    }
}

impl Format for Lz4Raw {
    const CODEC: Codec = Codec::Lz4Raw;
    const RATIO_MAX: Ratio = RATIO_MAX;

    /// Measured (`examples/prices.rs`): sequences written by encoders at 2 to 7 ns, the shortest matches at 7.
    const PRICE: Price = Price { kib: 150, kilovalue: 8 << 10 };

    const HISTORY_BYTES: usize = HISTORY_BYTES;

    fn start(&mut self, _: usize, _: usize) {
        self.block = Sequences::default();
        self.block.stored(self.before);
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
    /// Not determined yet.
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

    /// Includes the checksums of frames, of which there are up to two.
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
        // Blocks of 256 MiB and more: plausible sizes are taken for sizes.
        _ => first_sizes(input).is_some_and(|(block, chunk)| {
            let fits = |size: u32, max: usize| usize::try_from(size).is_ok_and(|size| size <= max);
            fits(block, uncompressed) && fits(chunk, compressed - BLOCK_HEADER_BYTES)
        }),
    };
    if is_hadoop { Layout::Hadoop(Hadoop::new(Codec::Lz4)) } else { Layout::Bare(Sequences::default()) }
}
