//! How compression comes into the engine: by these traits, so that the engine depends on no codec.

use alloc::boxed::Box;

use crate::{Budget, Error, Result};

/// A compression codec of the Parquet format (`CompressionCodec` in parquet.thrift), but for UNCOMPRESSED.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Codec {
    /// Raw Snappy blocks.
    Snappy,
    /// GZIP members (RFC 1952).
    Gzip,
    /// LZO, framed as Hadoop does.
    Lzo,
    /// Brotli streams (RFC 7932).
    Brotli,
    /// The deprecated LZ4: Hadoop's framing, LZ4 frames or bare blocks.
    Lz4,
    /// Zstandard frames (RFC 8878).
    Zstd,
    /// One raw LZ4 block.
    Lz4Raw,
}

impl Codec {
    /// The name that the format gives it.
    pub const fn name(self) -> &'static str {
        match self {
            Codec::Snappy => "SNAPPY",
            Codec::Gzip => "GZIP",
            Codec::Lzo => "LZO",
            Codec::Brotli => "BROTLI",
            Codec::Lz4 => "LZ4",
            Codec::Zstd => "ZSTD",
            Codec::Lz4Raw => "LZ4_RAW",
        }
    }
}

/// The compression levels of a codec, all that are between the least and the most: the higher, the smaller and slower.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Levels {
    /// The fastest.
    pub least: i32,
    /// The smallest.
    pub most: i32,
    /// What is taken where none is asked for.
    pub default: i32,
}

/// A source of decompressors and compressors.
pub trait Codecs: Send + Sync {
    /// A decompressor for `codec`, to be used for any number of pages, one after the other.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for a codec that this source does not have.
    fn decompressor(&self, codec: Codec) -> Result<Box<dyn Decompressor>>;

    /// A compressor for `codec` at `level` (`None`: its default one), to be used for any number of pages, one after the other.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for a codec that this source cannot write, which is all
    /// of them unless it says otherwise; [`ErrorKind::Misuse`](crate::ErrorKind::Misuse) for a level that the codec does not
    /// have, with those that it has.
    fn compressor(&self, codec: Codec, level: Option<i32>) -> Result<Box<dyn Compressor>> {
        let _ = level;
        Err(Error::unsupported(alloc::format!("compression by {}", codec.name())))
    }

    /// Another compressor for `codec`, that is faster than the default one, and makes no larger pages of some data, but much larger ones of
    /// other: which of the two is better is to be tried. `None` where there is none.
    ///
    /// # Errors
    ///
    /// As [`Codecs::compressor`]'s.
    fn other_compressor(&self, codec: Codec) -> Result<Option<Box<dyn Compressor>>> {
        let _ = codec;
        Ok(None)
    }
}

/// Decompresses one page at a time, and stops anywhere.
///
/// The order of calls: [`start`](Decompressor::start), then [`step`](Decompressor::step) until its status is
/// [`Status::End`] or it fails; then `start` again for the next page.
///
/// Most formats find what a match refers to in the output itself, so a step sees the end of what was produced before. A
/// host that holds the whole page shows all of it. One that reads a large page through a window shows as much as it keeps,
/// [`history_bytes`](Decompressor::history_bytes) or more; data that refer to something farther back are then refused.
pub trait Decompressor: Send {
    /// Begins a page of `compressed` bytes that should become `uncompressed` bytes.
    ///
    /// `whole` promises that every step is shown room for the whole page, from its first byte to its last, and each time
    /// the same memory: then nothing needs a window.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) where no input of that length can become that much.
    fn start(&mut self, compressed: usize, uncompressed: usize, whole: bool) -> Result<()>;

    /// Decompresses on. `input` is what was not yet consumed (`last`: nothing follows it). `output[..history]` is the end of
    /// what was produced before, `output[history..]` is room. What lies in the room behind what a step produces means
    /// nothing: copies are faster where they may write some bytes too many.
    ///
    /// All of `input` is consumed before more is asked for. Where units of `budget` were spent before, which was progress, and
    /// what is left does not pay for the smallest piece of work, nothing is done.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) for input that is not of this codec or that would become more
    /// than announced; [`ErrorKind::LimitExceeded`](crate::ErrorKind::LimitExceeded) for windows beyond the limit, and for
    /// what refers to bytes that the host has not kept; [`ErrorKind::Misuse`](crate::ErrorKind::Misuse) for a host that
    /// does not keep to the order of calls or to what it promised.
    fn step(
        &mut self,
        input: &[u8],
        last: bool,
        output: &mut [u8],
        history: usize,
        budget: &mut Budget<'_>,
    ) -> Result<Progress>;

    /// How much a host that reads through a window keeps: as far back as the data of known encoders refer; or, once room is asked for, as
    /// far as those of this page may, if its beginning tells. 0 for codecs with a window of their own.
    fn history_bytes(&self) -> usize;

    /// Bytes of memory that it holds itself: its tables, and its window if it has one.
    fn held_bytes(&self) -> usize;
}

/// Compresses one page at a time, and stops anywhere.
///
/// The order of calls: [`start`](Compressor::start), then [`step`](Compressor::step) until its status is [`Status::End`] or
/// it fails; then `start` again for the next page.
///
/// The same bytes become the same page, however input, room and budgets are cut, and whatever the compressor was used for
/// before.
pub trait Compressor: Send {
    /// Begins a page of `uncompressed` bytes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Misuse`](crate::ErrorKind::Misuse) for more than a page may have, 2^31 - 1.
    fn start(&mut self, uncompressed: usize) -> Result<()>;

    /// Compresses on. `input` is what was not yet consumed (`last`: nothing follows it), never less of it than the step before
    /// was shown. `output` is room, what lies in it behind what a step produces means nothing.
    ///
    /// Pieces may be of any size. What a codec has to see again it keeps itself, unless the first step is shown the whole page:
    /// then nothing need be copied, and nothing may be consumed until the page is whole. So a step that comes on may neither
    /// consume nor produce.
    ///
    /// Where it wants more input, all that there was is consumed. Where units of `budget` were spent before, which was progress,
    /// and what is left does not pay for the smallest piece of work, nothing is done.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Misuse`](crate::ErrorKind::Misuse) for a host that does not keep to the order of calls, or to the length that
    /// it announced; [`ErrorKind::LimitExceeded`](crate::ErrorKind::LimitExceeded) where memory cannot be had.
    fn step(
        &mut self,
        input: &[u8],
        last: bool,
        output: &mut [u8],
        budget: &mut Budget<'_>,
    ) -> Result<Progress>;

    /// The most bytes that a page of `uncompressed` bytes becomes.
    fn bound(&self, uncompressed: usize) -> usize;

    /// Bytes of memory that it holds, from page to page.
    fn held_bytes(&self) -> usize;
}

/// What one [`Decompressor::step`] or [`Compressor::step`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the input that are done with.
    pub consumed: usize,
    /// Bytes written to the start of the room.
    pub produced: usize,
    /// Why it stopped.
    pub status: Status,
}

/// Why a [`Decompressor::step`] or [`Compressor::step`] stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It wants more input.
    NeedInput,
    /// It wants more room.
    NeedRoom,
    /// The budget is spent.
    Yield,
    /// The page is whole.
    End,
}
