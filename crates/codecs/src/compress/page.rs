//! The page that a compressor works on, and the checks on the order of calls.

use marquetry_base::{Budget, Compressor, Error, Progress, Result, Status};

/// Compresses pages, under the checks of [`Paged`].
pub(crate) trait Pack: Send {
    /// Begins a page of `uncompressed` bytes.
    fn start(&mut self, uncompressed: usize) -> Result<()>;

    /// Continues to compress, as [`Compressor::step`] does; it also reports consumed bytes to the page.
    fn pack(
        &mut self,
        page: &mut Plain,
        input: &[u8],
        output: &mut [u8],
        budget: &mut Budget<'_>,
    ) -> Result<Progress>;

    /// The maximum compressed size of a page of `uncompressed` bytes.
    fn bound(&self, uncompressed: usize) -> usize;

    /// Bytes of memory that it holds.
    fn held_bytes(&self) -> usize;
}

/// A compressor with checks on the order of calls and on announced lengths.
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
    /// Whether the first bytes passed were the complete page; `None` before any were.
    whole: Option<bool>,
}

#[derive(Debug)]
enum State {
    /// No page was started, or the last one has ended.
    Idle,
    Working,
    Failed(Error),
}

/// A page's length has 32 bits in its header, with a sign.
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

    /// Runs a step's work: checks the order of calls and the announced length, and makes errors sticky.
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

    /// True if each step gets the complete page.
    pub(crate) fn is_whole(&self) -> bool {
        self.whole == Some(true)
    }
}
