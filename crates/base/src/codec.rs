//! The traits that bring compression into the engine, so that the engine depends on no codec.

use alloc::borrow::Cow;
use alloc::boxed::Box;

use crate::{Budget, Detail, Error, Result};

/// A compression codec of the Parquet format (`CompressionCodec` in parquet.thrift), except UNCOMPRESSED; and one of SSTables.
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
    /// One zlib stream (RFC 1950): what SSTables call Deflate. No codec of Parquet.
    Zlib,
}

impl Codec {
    /// The codec's name in the format.
    pub const fn name(self) -> &'static str {
        match self {
            Codec::Snappy => "SNAPPY",
            Codec::Gzip => "GZIP",
            Codec::Lzo => "LZO",
            Codec::Brotli => "BROTLI",
            Codec::Lz4 => "LZ4",
            Codec::Zstd => "ZSTD",
            Codec::Lz4Raw => "LZ4_RAW",
            Codec::Zlib => "ZLIB",
        }
    }

    /// The number that Parquet gives it; -1 for what is not of Parquet.
    pub const fn number(self) -> i32 {
        match self {
            Codec::Snappy => 1,
            Codec::Gzip => 2,
            Codec::Lzo => 3,
            Codec::Brotli => 4,
            Codec::Lz4 => 5,
            Codec::Zstd => 6,
            Codec::Lz4Raw => 7,
            Codec::Zlib => -1,
        }
    }

    /// The error for a codec that is not available.
    pub fn unsupported(self, message: impl Into<Cow<'static, str>>) -> Error {
        Error::unsupported(message).with(Detail::Codec(self.number()))
    }
}

/// The range of a codec's compression levels. Higher levels compress better, and are slower.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Levels {
    /// The lowest level: the fastest.
    pub least: i32,
    /// The highest level: the smallest output.
    pub most: i32,
    /// The level used if none is asked for.
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

    /// A decompressor for `codec`, of pages that may also refer to a dictionary: to bytes that precede each of them, as it were. In ZSTD
    /// the dictionary may be one that was trained (RFC 8878, section 5), which has tables, too.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for a codec that knows no dictionaries, which is every codec by default,
    /// and for a dictionary that is too large; [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) for one whose tables are wrong.
    fn decompressor_with_dictionary(&self, codec: Codec, dictionary: &[u8]) -> Result<Box<dyn Decompressor>> {
        let _ = dictionary;
        Err(codec.unsupported(alloc::format!("{} with a dictionary", codec.name())))
    }

    /// A compressor for `codec` at `level` (`None`: its default one), to be used for any number of pages, one after the other.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) for a codec that this source cannot write, which is all
    /// of them by default; [`ErrorKind::Misuse`](crate::ErrorKind::Misuse) for a level out of range; the message
    /// names the range.
    fn compressor(&self, codec: Codec, level: Option<i32>) -> Result<Box<dyn Compressor>> {
        let _ = level;
        Err(codec.unsupported(alloc::format!("compression by {}", codec.name())))
    }

    /// An alternative compressor for `codec`: faster than the default one, and as good for some data, but much worse
    /// for other. Which is better must be tried. `None` if the codec has only one.
    ///
    /// # Errors
    ///
    /// As for [`Codecs::compressor`].
    fn other_compressor(&self, codec: Codec) -> Result<Option<Box<dyn Compressor>>> {
        let _ = codec;
        Ok(None)
    }
}

/// Decompresses one page at a time, and can stop anywhere.
///
/// The order of calls: [`start`](Decompressor::start), then [`step`](Decompressor::step) until its status is
/// [`Status::End`] or it fails; then `start` again for the next page.
///
/// In most formats a match refers to earlier output, so a step is shown the end of what was produced before. A host
/// that holds the whole page shows all of it. One that reads a large page through a window shows as much as it keeps,
/// [`history_bytes`](Decompressor::history_bytes) or more; data that refer farther back are then refused.
pub trait Decompressor: Send {
    /// Begins a page of `compressed` bytes that should become `uncompressed` bytes.
    ///
    /// `whole` promises that every step is shown room for the whole page, from its first byte to its last, in the
    /// same memory each time. Then no window is needed.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) if no input of that length can expand to that much.
    fn start(&mut self, compressed: usize, uncompressed: usize, whole: bool) -> Result<()>;

    /// Continues to decompress. `input` is what has not been consumed yet (`last`: nothing follows it).
    /// `output[..history]` is the end of what was produced before, and `output[history..]` is room. The contents of
    /// the room after what a step produced are undefined: copies are faster if they may write a few bytes too many.
    ///
    /// All of `input` is consumed before more is asked for. If units of `budget` were spent before the call (so
    /// progress was made), and the rest does not pay for the smallest piece of work, the call does nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`](crate::ErrorKind::Corrupt) for input that is not of this codec or would expand to more
    /// than announced; [`ErrorKind::LimitExceeded`](crate::ErrorKind::LimitExceeded) for windows beyond the limit,
    /// and for references to bytes that the host has not kept; [`ErrorKind::Misuse`](crate::ErrorKind::Misuse) for a
    /// host that breaks the order of calls or its promise.
    fn step(
        &mut self,
        input: &[u8],
        last: bool,
        output: &mut [u8],
        history: usize,
        budget: &mut Budget<'_>,
    ) -> Result<Progress>;

    /// Bytes of output that a host must keep if it reads through a window: as far back as the data of known encoders
    /// refer. Once the decompressor has asked for room, it is as far back as this page may refer, if the page's
    /// header says so. 0 for codecs with a window of their own.
    fn history_bytes(&self) -> usize;

    /// Bytes of memory that the decompressor itself holds: its tables, and its window if it has one.
    fn held_bytes(&self) -> usize;
}

/// Compresses one page at a time, and can stop anywhere.
///
/// The order of calls: [`start`](Compressor::start), then [`step`](Compressor::step) until its status is [`Status::End`] or
/// it fails; then `start` again for the next page.
///
/// The output depends only on the page's bytes: not on how input, room and budgets are cut, nor on what the
/// compressor was used for before.
pub trait Compressor: Send {
    /// Begins a page of `uncompressed` bytes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Misuse`](crate::ErrorKind::Misuse) for more than a page may have: 2^31 - 1 bytes.
    fn start(&mut self, uncompressed: usize) -> Result<()>;

    /// Continues to compress. `input` is what has not been consumed yet (`last`: nothing follows it), never less of
    /// it than the step before was shown. `output` is room; its contents after what a step produced are undefined.
    ///
    /// Pieces may be of any size. A codec keeps what it has to see again, unless the first step is shown the whole
    /// page: then it need not copy anything, and may consume nothing until the page is complete. So a step may make
    /// progress although it neither consumes nor produces.
    ///
    /// If the compressor wants more input, it has consumed all it was shown. If units of `budget` were spent before
    /// the call (so progress was made), and the rest does not pay for the smallest piece of work, the call does
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Misuse`](crate::ErrorKind::Misuse) for a host that breaks the order of calls, or the length that
    /// it announced; [`ErrorKind::LimitExceeded`](crate::ErrorKind::LimitExceeded) if memory cannot be allocated.
    fn step(
        &mut self,
        input: &[u8],
        last: bool,
        output: &mut [u8],
        budget: &mut Budget<'_>,
    ) -> Result<Progress>;

    /// The most bytes that a page of `uncompressed` bytes can compress to.
    fn bound(&self, uncompressed: usize) -> usize;

    /// Bytes of memory that the compressor holds from page to page.
    fn held_bytes(&self) -> usize;
}

/// What one [`Decompressor::step`] or [`Compressor::step`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the input that were consumed.
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
    /// It is about to allocate this many bytes more than it holds, such as a window that the page's header asks for. The
    /// next call does; a host that has no room for them makes none. (Compressors allocate nothing by what data say.)
    NeedMemory(usize),
    /// The budget is spent.
    Yield,
    /// The page is complete.
    End,
}
