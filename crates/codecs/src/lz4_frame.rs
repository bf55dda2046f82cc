//! LZ4 frames, as parquet-rs wrote them into LZ4 pages before version 27. lz4/doc/lz4_Frame_format.md.
//!
//! Blocks of a frame may refer to the 64 KiB before them, so frames are decompressed at once, like bare blocks.
//! (`lz4_flex` has a reader of frames, too; it takes one that is cut short between two blocks for a whole one, and copies
//! everything twice.)

use lz4_flex::block::{decompress_into, decompress_into_with_dict};
use marquetry_base::{Codec, Error, Result};
use twox_hash::XxHash32;

use crate::lz4::failed;
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

/// How far a block may refer to those before it.
const WINDOW_BYTES: usize = 64 << 10;

/// True for a page of frames. No page in Hadoop's framing starts so: the version's bits would make a chunk of a gigabyte
/// of one that becomes 66 MiB.
pub(crate) fn is_frame(input: &[u8]) -> bool {
    input.starts_with(&MAGIC) && input.get(MAGIC.len()).is_some_and(|flags| flags & VERSION_MASK == VERSION_1)
}

/// Decompresses frames, one or more. The number of bytes written.
pub(crate) fn decompress(input: &[u8], output: &mut [u8]) -> Result<usize> {
    let mut input = Input(input);
    let mut written = 0;
    while !input.0.is_empty() {
        written += frame(&mut input, &mut output[written..])?;
    }
    Ok(written)
}

/// Decompresses a frame. The number of bytes written.
fn frame(input: &mut Input<'_>, output: &mut [u8]) -> Result<usize> {
    if input.take::<4>()? != MAGIC {
        return Err(corrupt(Codec::Lz4, "what follows an LZ4 frame is none"));
    }
    let descriptor = input.0;
    // The second byte is the largest size of a block, which nobody needs who decompresses in place.
    let [flags, _] = input.take()?;
    if flags & VERSION_MASK != VERSION_1 || flags & (FLAG_RESERVED | FLAG_DICTIONARY) != 0 {
        return Err(Error::unsupported(format!("LZ4 frame with flags {flags:#010b}")));
    }
    let content = match flags & FLAG_CONTENT_SIZE {
        0 => None,
        _ => Some(u64::from_le_bytes(input.take()?)),
    };
    let descriptor = &descriptor[..descriptor.len() - input.0.len()];
    let [checksum] = input.take()?;
    if XxHash32::oneshot(0, descriptor).to_le_bytes()[1] != checksum {
        return Err(corrupt(Codec::Lz4, "the checksum of a frame's descriptor does not match"));
    }
    let mut written = 0;
    loop {
        let size = u32::from_le_bytes(input.take()?);
        if size == 0 {
            break;
        }
        let block = input.bytes(size & !BLOCK_UNCOMPRESSED)?;
        if flags & FLAG_BLOCK_CHECKSUM != 0 {
            input.check(block, "a block")?;
        }
        let announced = output.len();
        let (before, room) = output.split_at_mut(written);
        written += if size & BLOCK_UNCOMPRESSED != 0 {
            let Some(room) = room.get_mut(..block.len()) else {
                return Err(too_long(announced));
            };
            room.copy_from_slice(block);
            block.len()
        } else if before.is_empty() {
            decompress_into(block, room).map_err(|error| failed(Codec::Lz4, error, announced))?
        } else {
            // A frame of independent blocks, which refer to nothing, is not told from another.
            let window = &before[before.len().saturating_sub(WINDOW_BYTES)..];
            decompress_into_with_dict(block, room, window)
                .map_err(|error| failed(Codec::Lz4, error, announced))?
        };
    }
    if flags & FLAG_CONTENT_CHECKSUM != 0 {
        input.check(&output[..written], "a frame")?;
    }
    if let Some(content) = content
        && u64::try_from(written).ok() != Some(content)
    {
        return Err(corrupt(
            Codec::Lz4,
            format_args!("a frame has {written} bytes, its descriptor says {content}"),
        ));
    }
    Ok(written)
}

fn too_long(announced: usize) -> Error {
    corrupt(Codec::Lz4, format_args!("it has more than the announced {announced} uncompressed bytes"))
}

/// What is left of a page.
struct Input<'page>(&'page [u8]);

impl<'page> Input<'page> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let Some((taken, left)) = self.0.split_first_chunk() else {
            return Err(cut_short());
        };
        self.0 = left;
        Ok(*taken)
    }

    fn bytes(&mut self, length: u32) -> Result<&'page [u8]> {
        let taken = usize::try_from(length).ok().and_then(|length| self.0.split_at_checked(length));
        let Some((taken, left)) = taken else {
            return Err(cut_short());
        };
        self.0 = left;
        Ok(taken)
    }

    /// Reads the checksum of `bytes`.
    fn check(&mut self, bytes: &[u8], whose: &str) -> Result<()> {
        let checksum = u32::from_le_bytes(self.take()?);
        let computed = XxHash32::oneshot(0, bytes);
        if checksum != computed {
            return Err(corrupt(
                Codec::Lz4,
                format_args!("the checksum of {whose} is {computed:08x}, not {checksum:08x}"),
            ));
        }
        Ok(())
    }
}

fn cut_short() -> Error {
    corrupt(Codec::Lz4, "a frame is cut short")
}
