//! Compression: the mirror of the decompressors.

use marquetry_base::{Codec, Compressor, Error, Levels, Result};

mod brotli;
mod gzip;
mod hadoop;
mod lz4;
mod page;
mod sequences;
mod snappy;
mod stream;
mod zlib;
mod zstd;

use hadoop::Hadoop;
use page::Paged;
use sequences::Sequences;
use stream::Streamed;

/// The levels of a codec; `None` for one without levels, which is always as fast as possible.
///
/// Defaults are small for the time that they take. (Others use 1 or 3 for ZSTD, 6 or 9 for GZIP, 1 or 8 for BROTLI.
/// ZSTD's 3 takes as long as 1 on pages of real columns, and makes them a tenth smaller.)
pub const fn levels(codec: Codec) -> Option<Levels> {
    match codec {
        Codec::Gzip => Some(gzip::LEVELS),
        Codec::Zlib => Some(zlib::LEVELS),
        Codec::Zstd => Some(zstd::LEVELS),
        Codec::Brotli => Some(brotli::LEVELS),
        Codec::Snappy | Codec::Lz4Raw | Codec::Lz4 | Codec::Lzo => None,
    }
}

/// The highest level at which no step of a codec costs more than the default budget. Above it a step takes as long as
/// the library's call for a block of 32 KiB: for ZSTD up to a millisecond from 7 on and 40 at 19; for BROTLI two at 6,
/// 9 at 8, 400 at 11.
pub const fn bounded_level_max(codec: Codec) -> Option<i32> {
    match codec {
        Codec::Gzip => Some(gzip::LEVELS.most),
        Codec::Zlib => Some(zlib::LEVELS.most),
        Codec::Zstd => Some(zstd::BOUNDED_LEVEL_MAX),
        Codec::Brotli => Some(brotli::BOUNDED_QUALITY_MAX),
        Codec::Snappy | Codec::Lz4Raw | Codec::Lz4 | Codec::Lzo => None,
    }
}

/// A compressor for `codec` at `level`.
pub(crate) fn compressor(codec: Codec, level: Option<i32>) -> Result<Box<dyn Compressor>> {
    let level = checked(codec, level)?;
    Ok(match codec {
        Codec::Snappy => Box::new(Paged::new(Sequences::<snappy::Snappy<false>>::new()?)),
        Codec::Lz4Raw => Box::new(Paged::new(Sequences::<lz4::Lz4>::new()?)),
        Codec::Lz4 => Box::new(Paged::new(Hadoop::new(Paged::new(Sequences::<lz4::Lz4>::new()?)))),
        Codec::Gzip => Box::new(Paged::new(Streamed::new(gzip::Gzip::new(level)))),
        Codec::Zstd => Box::new(Paged::new(Streamed::new(zstd::Zstd::new(level)?))),
        Codec::Brotli => Box::new(Paged::new(Streamed::new(brotli::Brotli::new(level)))),
        Codec::Lzo => return Err(codec.unsupported("compression by LZO, which is only read")),
        Codec::Zlib => Box::new(Paged::new(Streamed::new(zlib::Zlib::new(level)))),
    })
}

/// The other compressor for `codec`, if any: for SNAPPY, one that looks for long matches.
pub(crate) fn other_compressor(codec: Codec) -> Result<Option<Box<dyn Compressor>>> {
    Ok(match codec {
        Codec::Snappy => Some(Box::new(Paged::new(Sequences::<snappy::Snappy<true>>::new()?))),
        _ => None,
    })
}

/// The level to use; 0 if the codec has none.
fn checked(codec: Codec, level: Option<i32>) -> Result<i32> {
    match (levels(codec), level) {
        (Some(levels), None) => Ok(levels.default),
        (Some(levels), Some(level)) if (levels.least..=levels.most).contains(&level) => Ok(level),
        (Some(Levels { least, most, .. }), Some(level)) => Err(Error::misuse(format!(
            "{} has no level {level}, but those from {least} to {most}",
            codec.name()
        ))),
        (None, None) => Ok(0),
        (None, Some(level)) => {
            Err(Error::misuse(format!("{} has no levels, so none of {level}", codec.name())))
        }
    }
}
