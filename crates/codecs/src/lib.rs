//! Decompression and compression of Parquet pages, behind the engine's trait [`Codecs`].
//!
//! | codec | decompression | what matches refer to | compression |
//! |---|---|---|---|
//! | SNAPPY | here, over a kernel | the page | here, over a kernel |
//! | LZ4_RAW | here, over a kernel | the page | here, over a kernel |
//! | LZ4 (deprecated) | the same; Hadoop's framing, LZ4 frames and bare blocks told apart here | the page | the same, in Hadoop's framing |
//! | LZO | here, over a kernel; Hadoop's framing, python-lzo's header and bare blocks told apart here | the page | none |
//! | GZIP | here, over a kernel; members framed here | the page | `zlib-rs`, levels 0 to 9 |
//! | BROTLI | here, with the dictionary of `brotli-decompressor` | the page | `brotli`, qualities 0 to 11 |
//! | ZSTD | `zstd-safe`, the streaming decoder, a block at a time | the page, or its window where the page is not held | `zstd-safe`, levels to 22 |
//!
//! All decompressors keep the same promises (the module `pieces` keeps them for all codecs but ZSTD):
//!
//! * A page becomes exactly as many bytes as announced, from exactly the bytes it has, or an error says which it is not.
//!   Bytes after the end of a page's data are an error. (parquet-rs is as strict; Arrow C++ is for all codecs but GZIP,
//!   of which it ignores what follows.)
//! * What a page announces is never allocated by a decompressor, and `start` refuses announcements that the compressed
//!   bytes cannot become by the codec's largest possible ratio.
//! * They stop anywhere, and no step costs more than the default budget. There is no other path for small pages: in steps,
//!   pages of 8 KiB to 1 MiB take -60 % to +15 % more time than in one call of the crates that do no more than that
//!   (`examples/one_shot.rs`).
//! * A failed page fails again until the next `start`, which makes the decompressor as good as new.
//!
//! And so do all compressors:
//!
//! * The same bytes become the same page, however input, room and budgets are cut, and whatever was compressed before.
//! * They stop anywhere. No step costs more than the default budget up to [`bounded_level_max`]; above it a step is as long as the
//!   library takes for a block, which nothing can interrupt.
//! * Where the whole page is shown nothing is copied; else Snappy and LZ4 keep a window of 192 KiB of it (and LZ4 literals that
//!   are not written yet: their number comes before them). The libraries are given chunks of 1 to 32 KiB, so that their steps are
//!   short: beside one call for the whole page that makes pages up to 3 % larger (BROTLI 5; ZSTD 3: 0.7 %, GZIP: 0.1 %).
//! * Snappy and LZ4 have no levels; Snappy has another compressor, for words. Pages of columns, beside those of `snap` and `lz4_flex`, are up to 9 %
//!   smaller (small numbers in small pages 28 %) and up to 8 % larger (runs), and take from two fifths less to a quarter longer; what does not
//!   compress takes twice as long (`examples/compress.rs`).
#![forbid(unsafe_code)]

use marquetry_base::{Codec, Codecs, Compressor, Decompressor, Limits, Result};

mod block;
mod brotli;
mod compress;
mod gzip;
mod hadoop;
mod inflate;
mod lz4;
mod lz4_frame;
mod lzo;
mod page;
mod pieces;
mod snappy;
mod zstd;

pub use compress::{bounded_level_max, levels};

/// All codecs of the Parquet format.
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
    /// Codecs whose decompressors keep within `limits` ([`Limits::window_bytes`]).
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
        })
    }

    fn compressor(&self, codec: Codec, level: Option<i32>) -> Result<Box<dyn Compressor>> {
        compress::compressor(codec, level)
    }

    fn other_compressor(&self, codec: Codec) -> Result<Option<Box<dyn Compressor>>> {
        compress::other_compressor(codec)
    }
}
