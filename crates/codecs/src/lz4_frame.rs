//! LZ4 frames, as parquet-rs wrote them into LZ4 pages before version 27. lz4/doc/lz4_Frame_format.md.

use core::hash::Hasher;

use marquetry_base::{Codec, Detail, Result};
use twox_hash::XxHash32;

use crate::block::{Block, Room, Stop};
use crate::lz4_block::Sequences;
use crate::page::corrupt;

const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];

// Bits of FLG, the first byte of the descriptor.
const VERSION_MASK: u8 = 0b1100_0000;
const VERSION_1: u8 = 0b0100_0000;
const FLAG_BLOCK_CHECKSUM: u8 = 1 << 4;
const FLAG_CONTENT_SIZE: u8 = 1 << 3;
const FLAG_CONTENT_CHECKSUM: u8 = 1 << 2;
const FLAG_RESERVED: u8 = 1 << 1;
const FLAG_DICTIONARY: u8 = 1;

/// Set in the size of a block that is not compressed.
const BLOCK_UNCOMPRESSED: u32 = 1 << 31;

/// The cost of a descriptor, a size or a checksum, in elements.
const PART_ELEMENTS: usize = 8;

/// True for a page of frames. No page in Hadoop's framing starts like this: its chunk would take a gigabyte for a block
/// of 66 MiB.
pub(crate) fn is_frame(input: &[u8]) -> bool {
    input.starts_with(&MAGIC) && input.get(MAGIC.len()).is_some_and(|flags| flags & VERSION_MASK == VERSION_1)
}

/// Reads a page of one or more frames.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    expect: Expect,
    flags: u8,
    /// The uncompressed size that the frame's descriptor announces.
    content: Option<u64>,
    /// The uncompressed bytes that it has.
    produced: u64,
    /// Blocks of a frame may refer to earlier ones. Frames of independent blocks are not treated differently.
    block: Sequences,
    block_hash: XxHash32,
    content_hash: XxHash32,
}

#[derive(Debug, Default, Clone, Copy)]
enum Expect {
    #[default]
    Descriptor,
    BlockSize,
    Block {
        left: usize,
    },
    Stored {
        left: usize,
    },
    BlockChecksum,
    ContentChecksum,
}

impl Frames {
    pub(crate) fn decode(&mut self, input: &[u8], room: &mut Room<'_>) -> Result<(usize, Stop)> {
        let mut at = 0;
        loop {
            let bytes = &input[at..];
            match self.expect {
                Expect::Descriptor => {
                    let Some(length) = self.descriptor(bytes)? else { return Ok((at, Stop::Input)) };
                    at += length;
                    self.expect = Expect::BlockSize;
                }
                Expect::BlockSize => {
                    let Some(&size) = bytes.first_chunk() else { return Ok((at, Stop::Input)) };
                    at += size.len();
                    self.block_size(u32::from_le_bytes(size))?;
                }
                Expect::Block { left } => {
                    let part = &bytes[..bytes.len().min(left)];
                    let before = room.at;
                    let (consumed, stop) =
                        self.block.decode(part, room).map_err(|fault| fault.into_error(Codec::Lz4))?;
                    self.count(&part[..consumed], &room.output[before..room.at]);
                    at += consumed;
                    let (shown, left) = (part.len() == left, left - consumed);
                    self.expect = Expect::Block { left };
                    match stop {
                        // All of the block has arrived.
                        Stop::Input if shown => {
                            if left > 0 || !self.block.may_end() {
                                return Err(corrupt(Codec::Lz4, "a block of a frame is cut short"));
                            }
                            self.end_block()?;
                        }
                        stop => return Ok((at, stop)),
                    }
                }
                Expect::Stored { left: 0 } => self.end_block()?,
                Expect::Stored { left } => {
                    if let Some(stop) = room.stop() {
                        return Ok((at, stop));
                    }
                    let before = room.at;
                    let length = room.literals(bytes, left);
                    self.block.stored(length);
                    self.count(&bytes[..length], &room.output[before..room.at]);
                    at += length;
                    self.expect = Expect::Stored { left: left - length };
                    if length < left && at == input.len() {
                        return Ok((at, Stop::Input));
                    }
                }
                Expect::BlockChecksum => {
                    let Some(&checksum) = bytes.first_chunk() else { return Ok((at, Stop::Input)) };
                    at += checksum.len();
                    check(checksum, self.block_hash.finish_32(), "a block")?;
                    self.expect = Expect::BlockSize;
                }
                Expect::ContentChecksum => {
                    let Some(&checksum) = bytes.first_chunk() else { return Ok((at, Stop::Input)) };
                    at += checksum.len();
                    check(checksum, self.content_hash.finish_32(), "a frame")?;
                    self.end()?;
                }
            }
            if !matches!(self.expect, Expect::Block { .. } | Expect::Stored { .. }) {
                room.elements += PART_ELEMENTS;
            }
        }
    }

    /// True between two frames.
    pub(crate) fn may_end(&self) -> bool {
        matches!(self.expect, Expect::Descriptor)
    }

    /// Reads a frame's descriptor. Returns its length if it is complete.
    fn descriptor(&mut self, input: &[u8]) -> Result<Option<usize>> {
        let magic = &input[..input.len().min(MAGIC.len())];
        if magic != &MAGIC[..magic.len()] {
            return Err(corrupt(Codec::Lz4, "an LZ4 frame is followed by bytes that are not a frame"));
        }
        let Some(&flags) = input.get(MAGIC.len()) else { return Ok(None) };
        if flags & VERSION_MASK != VERSION_1 || flags & (FLAG_RESERVED | FLAG_DICTIONARY) != 0 {
            return Err(Codec::Lz4.unsupported(format!("LZ4 frame with flags {flags:#010b}")));
        }
        // The flags and the maximum block size, which decompression in place does not need.
        let fixed = MAGIC.len() + 2;
        let size = if flags & FLAG_CONTENT_SIZE != 0 { size_of::<u64>() } else { 0 };
        let Some(&checksum) = input.get(fixed + size) else { return Ok(None) };
        if XxHash32::oneshot(0, &input[MAGIC.len()..fixed + size]).to_le_bytes()[1] != checksum {
            let what = "the checksum of a frame's descriptor does not match";
            return Err(corrupt(Codec::Lz4, what).with(Detail::Checksum));
        }
        *self = Frames { flags, ..Frames::default() };
        if size > 0 {
            self.content = input[fixed..].first_chunk().map(|&content| u64::from_le_bytes(content));
        }
        Ok(Some(fixed + size + 1))
    }

    fn block_size(&mut self, size: u32) -> Result<()> {
        let left = marquetry_base::cast::usize_of_u32(size & !BLOCK_UNCOMPRESSED);
        if size == 0 {
            if self.flags & FLAG_CONTENT_CHECKSUM == 0 {
                return self.end();
            }
            self.expect = Expect::ContentChecksum;
        } else {
            self.block.next_block();
            self.block_hash = XxHash32::default();
            self.expect = match size & BLOCK_UNCOMPRESSED {
                0 => Expect::Block { left },
                _ => Expect::Stored { left },
            };
        }
        Ok(())
    }

    /// Counts a block's uncompressed bytes.
    fn count(&mut self, compressed: &[u8], uncompressed: &[u8]) {
        self.produced += marquetry_base::cast::u64_of(uncompressed.len());
        if self.flags & FLAG_BLOCK_CHECKSUM != 0 {
            self.block_hash.write(compressed);
        }
        if self.flags & FLAG_CONTENT_CHECKSUM != 0 {
            self.content_hash.write(uncompressed);
        }
    }

    fn end_block(&mut self) -> Result<()> {
        self.expect = match self.flags & FLAG_BLOCK_CHECKSUM {
            0 => Expect::BlockSize,
            _ => Expect::BlockChecksum,
        };
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        let produced = self.produced;
        match self.content {
            Some(content) if content != produced => Err(corrupt(
                Codec::Lz4,
                format_args!("a frame has {produced} bytes, but its descriptor says {content}"),
            )),
            _ => {
                self.expect = Expect::Descriptor;
                Ok(())
            }
        }
    }
}

fn check(checksum: [u8; 4], computed: u32, whose: &str) -> Result<()> {
    let checksum = u32::from_le_bytes(checksum);
    if checksum != computed {
        return Err(corrupt(
            Codec::Lz4,
            format_args!("the checksum of {whose} is {computed:08x}, not {checksum:08x}"),
        ));
    }
    Ok(())
}
