//! LZ4_RAW: one LZ4 block, without a frame. LZ4, deprecated: whatever writers took it for.
//!
//! Three kinds of LZ4 pages were written, and the first byte tells them apart:
//!
//! * Hadoop's framing, by Parquet Java, Arrow C++ 1.0 and later, ClickHouse and Spark: the size of the first block, below
//!   256 MiB, starts with a byte below 16.
//! * LZ4 frames, by parquet-rs before 27.0: a magic number.
//! * A bare block, by Arrow C++ before 1.0 and fastparquet: its first byte counts the first literals in its upper half. There
//!   are some, for a match has nothing to refer to; so it is at least 16, but for the block of nothing, which is one zero.
//!
//! (Arrow C++ takes what it can decompress as Hadoop's for Hadoop's and everything else for a bare block; parquet-rs tries
//! Hadoop's, frames and a bare block in turn. So would an error say only that the last attempt failed, and a bomb cost thrice.)

use lz4_flex::block::{DecompressError, decompress_into};
use marquetry_base::{Codec, Error, Price, Result};

use crate::hadoop::{BLOCK_HEADER_BYTES, Chunks, Layout, first_sizes};
use crate::lz4_frame;
use crate::oneshot::Block;
use crate::page::{Ratio, corrupt};

#[derive(Debug)]
pub(crate) struct Lz4Raw;

/// The best that a byte can do is to lengthen a match by 255.
const RATIO_MAX: Ratio = Ratio { output: 255, input: 1 };

/// Measured at 20 to 350 for what encoders write, 1,800 for nothing but overlapping matches of four bytes
/// (`examples/prices.rs`).
const PRICE: Price = Price::per_kib(2_000);

impl Block for Lz4Raw {
    const CODEC: Codec = Codec::Lz4Raw;
    const RATIO_MAX: Ratio = RATIO_MAX;
    const PRICE: Price = PRICE;

    fn length(&self, _: &[u8]) -> Result<Option<usize>> {
        Ok(None)
    }

    fn decompress(&mut self, input: &[u8], output: &mut [u8]) -> Result<usize> {
        let announced = output.len();
        decompress_into(input, output).map_err(|error| failed(Self::CODEC, error, announced))
    }
}

/// The deprecated codec.
#[derive(Debug)]
pub(crate) struct Lz4;

/// The smallest first byte of a bare block that is not empty: one literal.
const BARE_FIRST_BYTE_MIN: u8 = 1 << 4;

impl Chunks for Lz4 {
    const CODEC: Codec = Codec::Lz4;
    const RATIO_MAX: Ratio = RATIO_MAX;
    const PRICE: Price = PRICE;

    fn layout(input: &[u8], uncompressed: usize) -> Layout {
        if lz4_frame::is_frame(input) {
            return Layout::Whole(lz4_frame::decompress);
        }
        let is_hadoop = match input {
            [0] => false,
            [first, ..] if *first < BARE_FIRST_BYTE_MIN => true,
            // Blocks of 256 MiB and more: where the sizes can be true, they are taken for sizes.
            _ => first_sizes(input).is_some_and(|(block, chunk)| {
                let fits = |size: u32, max: usize| usize::try_from(size).is_ok_and(|size| size <= max);
                fits(block, uncompressed) && fits(chunk, input.len() - BLOCK_HEADER_BYTES)
            }),
        };
        if is_hadoop { Layout::Hadoop } else { Layout::Whole(Self::chunk) }
    }

    fn chunk(input: &[u8], output: &mut [u8]) -> Result<usize> {
        let room = output.len();
        decompress_into(input, output).map_err(|error| failed(Self::CODEC, error, room))
    }
}

/// The error of a block that should have become `announced` bytes.
pub(crate) fn failed(codec: Codec, error: DecompressError, announced: usize) -> Error {
    match error {
        DecompressError::OutputTooSmall { .. } => {
            corrupt(codec, format_args!("it has more than the announced {announced} uncompressed bytes"))
        }
        error => corrupt(codec, error),
    }
}
