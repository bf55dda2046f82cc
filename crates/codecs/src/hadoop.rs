//! Hadoop's framing, for codecs without a framing of their own.
//!
//! Hadoop's `BlockCompressorStream` writes consecutive blocks: the uncompressed size of the block, then chunks until
//! that size is reached, each with the size of its compressed bytes and those bytes. Sizes are 32 bits, big-endian. A
//! chunk does not refer to anything outside itself. (Arrow C++ reads and writes blocks of one chunk only; Hadoop splits
//! a write that exceeds its buffer, 256 KiB by default, into several chunks of one block.)

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Codec, Result};

use crate::block::{Block, Room, Stop};
use crate::page::Page;

/// Reads a page of such blocks, whose chunks are blocks of the codec.
#[derive(Debug)]
pub(crate) struct Hadoop<B> {
    codec: Codec,
    expect: Expect,
    chunk: B,
    /// Uncompressed bytes that the current block still lacks.
    block_owed: usize,
    /// Compressed bytes of the page that were decoded.
    decoded: usize,
}

#[derive(Debug, Clone, Copy)]
enum Expect {
    BlockSize,
    ChunkSize,
    /// The chunk's bytes, `left` of which are left; `is_empty` until it has produced any.
    Chunk {
        left: usize,
        is_empty: bool,
    },
}

/// The sizes that start a block of one chunk.
pub(crate) const BLOCK_HEADER_BYTES: usize = 2 * SIZE_BYTES;

const SIZE_BYTES: usize = size_of::<u32>();

/// The cost of reading a size and beginning a chunk, in elements.
const SIZE_ELEMENTS: usize = 4;

impl<B: Block> Hadoop<B> {
    pub(crate) fn new(codec: Codec) -> Hadoop<B> {
        Hadoop { codec, expect: Expect::BlockSize, chunk: B::default(), block_owed: 0, decoded: 0 }
    }

    /// Continues to decode a page of `compressed` bytes.
    pub(crate) fn decode(
        &mut self,
        input: &[u8],
        compressed: usize,
        page: &Page,
        room: &mut Room<'_>,
    ) -> Result<(usize, Stop)> {
        let (began, mut at) = (room.at, 0);
        let result = loop {
            match self.expect {
                Expect::BlockSize => {
                    let Some(size) = size(&input[at..]) else { break Ok((at, Stop::Input)) };
                    at += SIZE_BYTES;
                    room.elements += SIZE_ELEMENTS;
                    if size > page.owed() - (room.at - began) {
                        break Err(page.too_long());
                    }
                    self.block_owed = size;
                    self.expect = Expect::ChunkSize;
                }
                Expect::ChunkSize => {
                    let Some(size) = size(&input[at..]) else { break Ok((at, Stop::Input)) };
                    at += SIZE_BYTES;
                    room.elements += SIZE_ELEMENTS;
                    let left = compressed - self.decoded - at;
                    if size > left {
                        break Err(page.corrupt(format_args!(
                            "a chunk of {size} compressed bytes, but only {left} are left"
                        )));
                    }
                    self.chunk = B::default();
                    self.expect = Expect::Chunk { left: size, is_empty: true };
                }
                Expect::Chunk { left, is_empty } => {
                    let before = room.at;
                    let bytes = &input[at..];
                    let bytes = &bytes[..bytes.len().min(left)];
                    let (consumed, stop) = self.chunk(bytes, room)?;
                    let produced = room.at - before;
                    at += consumed;
                    self.block_owed -= produced;
                    let (shown, left) = (bytes.len() == left, left - consumed);
                    let is_empty = is_empty && produced == 0;
                    self.expect = Expect::Chunk { left, is_empty };
                    match stop {
                        Stop::Room if self.block_owed == 0 => {
                            break Err(page.corrupt("a chunk has more than its block's bytes"));
                        }
                        // All of the chunk has arrived.
                        Stop::Input if shown => {
                            if left > 0 || !self.chunk.may_end() {
                                break Err(page.corrupt("a chunk is cut short"));
                            }
                            // Arrow C++ writes an empty block as a chunk that becomes nothing. Elsewhere such chunks
                            // would make no progress.
                            if is_empty && self.block_owed > 0 {
                                break Err(page.corrupt("a chunk has no data"));
                            }
                            self.expect =
                                if self.block_owed == 0 { Expect::BlockSize } else { Expect::ChunkSize };
                        }
                        stop => break Ok((at, stop)),
                    }
                }
            }
        };
        self.decoded += at;
        result
    }

    /// Continues decoding a chunk; the room is limited to the rest of its block.
    fn chunk(&mut self, input: &[u8], room: &mut Room<'_>) -> Result<(usize, Stop)> {
        let end = room.end.min(room.at.saturating_add(self.block_owed));
        let mut part = Room { output: &mut *room.output, end, until: room.until.min(end), ..*room };
        let decoded = self.chunk.decode(input, &mut part).map_err(|fault| fault.into_error(self.codec));
        let (at, elements) = (part.at, part.elements);
        room.at = at;
        room.elements = elements;
        decoded
    }

    /// True between two blocks. Hadoop ends some streams with the size of a block that does not follow.
    pub(crate) fn may_end(&self) -> bool {
        match self.expect {
            Expect::BlockSize => true,
            Expect::ChunkSize => self.block_owed == 0,
            Expect::Chunk { .. } => false,
        }
    }
}

fn size(input: &[u8]) -> Option<usize> {
    Some(usize_of_u32(u32::from_be_bytes(*input.first_chunk()?)))
}

/// The first two sizes of a page in this framing.
pub(crate) fn first_sizes(input: &[u8]) -> Option<(u32, u32)> {
    let &[b0, b1, b2, b3, c0, c1, c2, c3] = input.first_chunk::<BLOCK_HEADER_BYTES>()?;
    Some((u32::from_be_bytes([b0, b1, b2, b3]), u32::from_be_bytes([c0, c1, c2, c3])))
}
