//! The page that a compressor works on, and what holds it to the order of calls.

use marquetry_base::{Budget, Compressor, Error, Progress, Result, Status};

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
