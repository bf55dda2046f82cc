//! LZO: blocks of LZO1X.
//!
//! The format says that pages hold what the LZO library makes, and says nothing of a framing. What writers made of it:
//!
//! * Parquet Java takes Hadoop's codec, so its pages are in Hadoop's framing. (Trino, Presto, Velox and StarRocks read that.)
//! * fastparquet takes python-lzo, which puts a byte and the uncompressed size before the block.
//! * Nobody is known to write a bare block, but that is what the format's words say.
//!
//! Any block of LZO1X ends with the same three bytes, which tells the three apart.

use lzo::{Error as LzoError, decompress_into};
use marquetry_base::{Codec, Price, Result};

use crate::hadoop::{BLOCK_HEADER_BYTES, Chunks, Layout, first_sizes};
use crate::page::{Ratio, corrupt};

#[derive(Debug)]
pub(crate) struct Lzo;

/// How each block ends: a match of nothing.
const END: [u8; 3] = [0x11, 0, 0];

/// What python-lzo writes before a block, by the level of compression; then the uncompressed size, big-endian.
const PYTHON_FIRST_BYTES: [u8; 2] = [0xf0, 0xf1];
const PYTHON_HEADER_BYTES: usize = 5;

impl Chunks for Lzo {
    const CODEC: Codec = Codec::Lzo;

    /// The best that a byte can do is to lengthen a match by 255.
    const RATIO_MAX: Ratio = Ratio { output: 255, input: 1 };

    /// Measured at 40 to 2,500 for what encoders write, 2,200 for nothing but matches of three bytes (`examples/prices.rs`): all
    /// matches are copied byte by byte. A chunk of 256 KiB, Hadoop's default, so takes up to 0.6 ms, and nothing can stop it.
    const PRICE: Price = Price::per_kib(3_000);

    fn layout(input: &[u8], uncompressed: usize) -> Layout {
        if is_python(input, uncompressed) {
            return Layout::Whole(|input, output| Self::chunk(&input[PYTHON_HEADER_BYTES..], output));
        }
        if is_bare(input) { Layout::Whole(Self::chunk) } else { Layout::Hadoop }
    }

    fn chunk(input: &[u8], output: &mut [u8]) -> Result<usize> {
        let room = output.len();
        decompress_into(input, output).map_err(|error| match error {
            LzoError::OutputOverrun => {
                corrupt(Self::CODEC, format_args!("it has more than the announced {room} uncompressed bytes"))
            }
            LzoError::InputOverrun => corrupt(Self::CODEC, "a block is cut short"),
            LzoError::LookbehindOverrun => corrupt(Self::CODEC, "a match refers to what is before the block"),
            LzoError::InputNotConsumed => corrupt(Self::CODEC, "a block ends before its bytes do"),
            LzoError::Malformed => corrupt(Self::CODEC, "a match of a wrong length ends a block"),
        })
    }
}

fn is_python(input: &[u8], uncompressed: usize) -> bool {
    let Some(&[first, s0, s1, s2, s3]) = input.first_chunk::<PYTHON_HEADER_BYTES>() else { return false };
    PYTHON_FIRST_BYTES.contains(&first)
        && usize::try_from(u32::from_be_bytes([s0, s1, s2, s3])).is_ok_and(|size| size == uncompressed)
}

/// True for a page that ends as a block does, unless its first chunk in Hadoop's framing would, too.
fn is_bare(input: &[u8]) -> bool {
    let is_hadoop = first_sizes(input).is_some_and(|(_, chunk)| {
        let chunks = &input[BLOCK_HEADER_BYTES..];
        let chunk = usize::try_from(chunk).ok().and_then(|chunk| chunks.get(..chunk));
        chunk.is_some_and(|chunk| chunk.ends_with(&END))
    });
    !is_hadoop && input.ends_with(&END)
}
