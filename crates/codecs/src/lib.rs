//! Decompression and compression of Parquet pages, for the engine's trait [`Codecs`].
//!
//! | codec | decompression | what matches refer to | compression |
//! |---|---|---|---|
//! | SNAPPY | here, over a kernel | the page | here, over a kernel |
//! | LZ4_RAW | here, over a kernel | the page | here, over a kernel |
//! | LZ4 (deprecated) | the same; Hadoop's framing, LZ4 frames and bare blocks told apart here | the page | the same, in Hadoop's framing |
//! | LZO | here, over a kernel; Hadoop's framing, python-lzo's header and bare blocks told apart here | the page | none |
//! | GZIP | here, over a kernel; members framed here | the page | `zlib-rs`, levels 0 to 9 |
//! | ZLIB (of SSTables) | the same; the stream framed here | the page | none yet |
//! | BROTLI | here, with the dictionary of `brotli-decompressor` | the page | `brotli`, qualities 0 to 11 |
//! | ZSTD | `zstd-safe`, streaming, a block at a time; here, if a frame can refer back more than 2 MiB | the page, or its window if not held | `zstd-safe`, levels to 22 |
//!
//! LZ4_RAW and ZSTD also come with a dictionary, as ScyllaDB has them (`dictionary`).
//!
//! All decompressors give the same guarantees (through the module `pieces`, except ZSTD):
//!
//! * A page expands to exactly the announced number of bytes, from exactly the bytes it has; otherwise an error says
//!   what differs. Bytes after the end of a page's data are an error. (parquet-rs is as strict; Arrow C++ is for all
//!   codecs but GZIP, where it ignores what follows.)
//! * A decompressor never allocates what a page announces, and `start` refuses sizes beyond the codec's largest
//!   possible ratio.
//! * They can stop anywhere, and no step costs more than the default budget. Small pages take the same path: pages of 8
//!   KiB to 1 MiB take between 60 % less and 15 % more time than one call of the one-shot crates
//!   (`examples/one_shot.rs`).
//! * A failed page keeps failing until the next `start`, which resets the decompressor completely.
//!
//! All compressors:
//!
//! * The output depends only on the page's bytes: not on how input, room and budgets are split, nor on earlier pages.
//! * They can stop anywhere. No step costs more than the default budget up to [`bounded_level_max`]; above it a step
//!   takes as long as the library's call for a block, which cannot be interrupted.
//! * If the complete page is passed, nothing is copied. Otherwise Snappy and LZ4 keep a window of 192 KiB of it (and
//!   LZ4 the literals that are not written yet, because their number comes first). The libraries get chunks of 1 to 32
//!   KiB, so that their steps are short; compared with one call for the complete page, this makes pages up to 3 %
//!   larger (BROTLI 5; ZSTD 3: 0.7 %, GZIP: 0.1 %).
//! * Snappy and LZ4 have no levels; Snappy has a second compressor, for words. Compared with `snap` and `lz4_flex`,
//!   pages of columns are up to 9 % smaller (28 % for small numbers in small pages) and up to 8 % larger (runs), and
//!   take between two fifths less and a quarter more time; incompressible data take twice as long
//!   (`examples/compress.rs`).
#![forbid(unsafe_code)]

use marquetry_base::{Codec, Codecs, Compressor, Decompressor, Limits, Result};

mod block;
mod brotli;
mod compress;
mod dictionary;
mod gzip;
mod hadoop;
mod inflate;
mod lz4;
mod lz4_block;
mod lz4_frame;
mod lzo;
mod page;
mod pieces;
mod snappy;
mod zlib;
mod zstd;

pub use compress::{bounded_level_max, levels};

/// All codecs of the Parquet format, and of SSTables.
///
/// ```
/// use marquetry_base::{Budget, Codec, Codecs, Status};
/// use marquetry_codecs::StandardCodecs;
///
/// let mut snappy = StandardCodecs::default().decompressor(Codec::Snappy).unwrap();
/// let page = [5, 4 << 2, b'h', b'e', b'l', b'l', b'o'];
/// snappy.start(page.len(), 5, true).unwrap();
/// let mut text = [0; 5];
/// let progress = snappy.step(&page, true, &mut text, 0, &mut Budget::default()).unwrap();
/// assert_eq!((progress.status, &text), (Status::End, b"hello"));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StandardCodecs {
    limits: Limits,
}

impl StandardCodecs {
    /// Codecs whose decompressors respect `limits` ([`Limits::window_bytes`]).
    pub fn new(limits: Limits) -> StandardCodecs {
        StandardCodecs { limits }
    }
}

impl Codecs for StandardCodecs {
    fn decompressor(&self, codec: Codec) -> Result<Box<dyn Decompressor>> {
        Ok(match codec {
            Codec::Snappy => Box::new(pieces::Pieces::new(snappy::Snappy::default())),
            Codec::Lz4Raw => Box::new(pieces::Pieces::new(lz4::Lz4Raw::default())),
            Codec::Gzip => Box::new(pieces::Pieces::new(gzip::Gzip::default())),
            Codec::Zstd => Box::new(zstd::Zstd::new(self.limits.window_bytes)?),
            Codec::Brotli => Box::new(pieces::Pieces::new(brotli::Brotli::default())),
            Codec::Lz4 => Box::new(pieces::Pieces::new(lz4::Lz4::default())),
            Codec::Lzo => Box::new(pieces::Pieces::new(lzo::Lzo::default())),
            Codec::Zlib => Box::new(pieces::Pieces::new(zlib::Zlib::default())),
        })
    }

    fn decompressor_with_dictionary(&self, codec: Codec, dictionary: &[u8]) -> Result<Box<dyn Decompressor>> {
        dictionary::check_length(codec, dictionary)?;
        Ok(match codec {
            Codec::Lz4Raw => Box::new(dictionary::Lz4WithDictionary::new(dictionary)?),
            Codec::Zstd => Box::new(zstd::Zstd::with_dictionary(self.limits.window_bytes, dictionary)?),
            other => return Err(other.unsupported(format!("{} with a dictionary", other.name()))),
        })
    }

    fn compressor(&self, codec: Codec, level: Option<i32>) -> Result<Box<dyn Compressor>> {
        compress::compressor(codec, level)
    }

    fn other_compressor(&self, codec: Codec) -> Result<Option<Box<dyn Compressor>>> {
        compress::other_compressor(codec)
    }
}
