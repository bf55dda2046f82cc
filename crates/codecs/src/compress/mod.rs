//! Compression: the mirror of the decompressors.

use marquetry_base::{Budget, Codec, Compressor, Error, Levels, Progress, Result, Status};

mod brotli;
mod gzip;
mod hadoop;
mod lz4;
mod sequences;
mod snappy;
mod stream;
mod zstd;

use hadoop::Hadoop;
use sequences::Sequences;
use stream::Streamed;

/// The levels of a codec; `None` for one that has none, and is always as fast as can be.
///
/// Defaults are what is small for its time. (Others take 1 or 3 for ZSTD, 6 or 9 for GZIP, 1 or 8 for BROTLI. ZSTD's 3 takes as long
/// as 1 on pages of real columns, and makes them a tenth smaller.)
pub const fn levels(codec: Codec) -> Option<Levels> {
    match codec {
        Codec::Gzip => Some(gzip::LEVELS),
        Codec::Zstd => Some(zstd::LEVELS),
        Codec::Brotli => Some(brotli::LEVELS),
        Codec::Snappy | Codec::Lz4Raw | Codec::Lz4 | Codec::Lzo => None,
    }
}

/// The highest level at which no step of a codec costs more than the default budget. Above it a step is as long as the library takes
/// for a block of 32 KiB: for ZSTD up to a millisecond from 7 on and 40 at 19; for BROTLI two at 6, 9 at 8, 400 at 11.
pub const fn bounded_level_max(codec: Codec) -> Option<i32> {
    match codec {
        Codec::Gzip => Some(gzip::LEVELS.most),
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
        Codec::Lzo => return Err(Error::unsupported("compression by LZO, which is only read")),
    })
}

/// Another compressor for `codec`, if there is one: of SNAPPY, one that looks for long matches.
pub(crate) fn other_compressor(codec: Codec) -> Result<Option<Box<dyn Compressor>>> {
    Ok(match codec {
        Codec::Snappy => Some(Box::new(Paged::new(Sequences::<snappy::Snappy<true>>::new()?))),
        _ => None,
    })
}

/// The level that is meant; 0 where there are none.
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

/// What compresses pages, of which [`Paged`] keeps account.
pub(crate) trait Pack: Send {
    /// Begins a page of `uncompressed` bytes.
    fn start(&mut self, uncompressed: usize) -> Result<()>;

    /// Compresses on, as [`Compressor::step`] does; what it consumes it tells the page, too.
    fn pack(
        &mut self,
        page: &mut Plain,
        input: &[u8],
        output: &mut [u8],
        budget: &mut Budget<'_>,
    ) -> Result<Progress>;

    /// The most that a page of so many bytes becomes.
    fn bound(&self, uncompressed: usize) -> usize;

    /// Bytes of memory that it holds.
    fn held_bytes(&self) -> usize;
}

/// A compressor that is held to the order of calls and to what it is told.
pub(crate) struct Paged<P> {
    page: Plain,
    pack: P,
}

impl<P: Pack> Paged<P> {
    pub(crate) fn new(pack: P) -> Paged<P> {
        Paged { page: Plain::none(), pack }
    }
}

impl<P: Pack> Compressor for Paged<P> {
    fn start(&mut self, uncompressed: usize) -> Result<()> {
        self.page.start(uncompressed)?;
        self.pack.start(uncompressed).inspect_err(|error| self.page.fail(error))
    }

    fn step(
        &mut self,
        input: &[u8],
        last: bool,
        output: &mut [u8],
        budget: &mut Budget<'_>,
    ) -> Result<Progress> {
        self.page.step(input.len(), last, |page| self.pack.pack(page, input, output, budget))
    }

    fn bound(&self, uncompressed: usize) -> usize {
        self.pack.bound(uncompressed)
    }

    fn held_bytes(&self) -> usize {
        self.pack.held_bytes()
    }
}

/// The page that a compressor works on.
#[derive(Debug)]
pub(crate) struct Plain {
    state: State,
    /// Its bytes, and those that were consumed.
    length: usize,
    consumed: usize,
    /// The first bytes shown were all that there are; `None` before any were.
    whole: Option<bool>,
}

#[derive(Debug)]
enum State {
    /// No page was started, or the last one ended.
    Idle,
    Working,
    Failed(Error),
}

/// A page's header has 32 bits for its length, and a sign.
const PAGE_BYTES_MAX: usize = i32::MAX.cast_unsigned() as usize;

impl Plain {
    pub(crate) const fn none() -> Plain {
        Plain { state: State::Idle, length: 0, consumed: 0, whole: None }
    }

    /// Begins a page.
    pub(crate) fn start(&mut self, length: usize) -> Result<()> {
        *self = Plain { state: State::Working, length, ..Plain::none() };
        if length > PAGE_BYTES_MAX {
            let error = Error::misuse(format!("a page of {length} bytes, more than a page may have"));
            self.fail(&error);
            return Err(error);
        }
        Ok(())
    }

    /// Fails the page.
    pub(crate) fn fail(&mut self, error: &Error) {
        self.state = State::Failed(error.clone());
    }

    /// Runs a step's work: keeps it to the order of calls and to the announced length, and keeps its failure.
    pub(crate) fn step(
        &mut self,
        input: usize,
        last: bool,
        work: impl FnOnce(&mut Plain) -> Result<Progress>,
    ) -> Result<Progress> {
        match &self.state {
            State::Working => {}
            State::Idle => return Err(Error::misuse("a compressor was stepped without a page")),
            State::Failed(error) => return Err(error.clone()),
        }
        let left = self.unread();
        if self.whole.is_none() && (input > 0 || left == 0) {
            self.whole = Some(input == left);
        }
        let result = if input > left || (last || self.whole == Some(true)) && input < left {
            let (is, shown) = (if last { "ends after" } else { "has" }, self.consumed.saturating_add(input));
            Err(Error::misuse(format!("a page announced with {} bytes {is} {shown}", self.length)))
        } else {
            work(self)
        };
        match &result {
            Ok(progress) if progress.status == Status::End => self.state = State::Idle,
            Ok(_) => {}
            Err(error) => self.fail(error),
        }
        result
    }

    /// Counts bytes that were consumed.
    pub(crate) fn advance(&mut self, consumed: usize) {
        self.consumed += consumed;
    }

    /// The page's bytes.
    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Bytes not yet consumed.
    pub(crate) fn unread(&self) -> usize {
        self.length - self.consumed
    }

    /// True when each step is shown the whole page.
    pub(crate) fn is_whole(&self) -> bool {
        self.whole == Some(true)
    }
}
