//! Decompression of Parquet pages, behind the engine's trait [`Codecs`].
//!
//! | codec | implementation | kind |
//! |---|---|---|
//! | SNAPPY | `snap`, raw blocks | one-shot |
//! | LZ4_RAW | `lz4_flex`, safe decoder | one-shot |
//! | GZIP | `flate2` over `zlib-rs`, members framed here | resumable |
//! | ZSTD | `zstd-safe`, the streaming decoder | resumable |
//!
//! BROTLI, LZ4 (Hadoop's) and LZO are not supported.
//!
//! All of them keep the same promises (the modules `streaming` and `oneshot` keep them once for all codecs):
//!
//! * A page becomes exactly as many bytes as announced, from exactly the bytes it has, or an error says which it is not.
//!   Bytes after the end of a page's data are an error. (parquet-rs is as strict; Arrow C++ is for all codecs but GZIP,
//!   of which it ignores what follows.)
//! * What a page announces is never allocated by a decompressor, and `start` refuses announcements that the compressed
//!   bytes cannot become by the codec's largest possible ratio.
//! * A failed page fails again until the next `start`, which makes the decompressor as good as new.
#![forbid(unsafe_code)]

use marquetry_base::{Codec, Codecs, Decompressor, Error, Limits, Result};

mod gzip;
mod lz4;
mod oneshot;
mod page;
mod snappy;
mod streaming;
mod zstd;

/// The codecs that Parquet files are written with today: SNAPPY, GZIP, ZSTD and LZ4_RAW.
///
/// ```
/// use marquetry_base::{Budget, Codec, Codecs, Status};
/// use marquetry_codecs::StandardCodecs;
///
/// let mut snappy = StandardCodecs::default().decompressor(Codec::Snappy).unwrap();
/// let page = [5, 4 << 2, b'h', b'e', b'l', b'l', b'o'];
/// snappy.start(page.len(), 5).unwrap();
/// let mut text = [0; 5];
/// let progress = snappy.step(&page, true, &mut text, &mut Budget::default()).unwrap();
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
            Codec::Snappy => Box::new(oneshot::OneShot::new(snappy::Snappy::default())),
            Codec::Lz4Raw => Box::new(oneshot::OneShot::new(lz4::Lz4Raw)),
            Codec::Gzip => Box::new(streaming::Streaming::new(gzip::Gzip::new())),
            Codec::Zstd => Box::new(streaming::Streaming::new(zstd::Zstd::new(self.limits.window_bytes)?)),
            Codec::Brotli | Codec::Lz4 | Codec::Lzo => {
                return Err(Error::unsupported(format!("the codec {} is not supported", codec.name())));
            }
        })
    }
}
