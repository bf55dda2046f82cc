//! A page's announced sizes, and how much of it is done.

use marquetry_base::{Codec, Error, ErrorKind, Progress, Result, Status};

/// The page that a decompressor works on.
#[derive(Debug)]
pub(crate) struct Page {
    codec: Codec,
    state: State,
    compressed: usize,
    uncompressed: usize,
    consumed: usize,
    produced: usize,
}

#[derive(Debug)]
enum State {
    /// No page was started, or the last one has ended.
    Idle,
    Working,
    Failed(Error),
}

/// A codec's largest possible ratio, as a fraction, with its reason at the constant's definition.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ratio {
    pub(crate) output: usize,
    pub(crate) input: usize,
}

impl Page {
    pub(crate) fn none(codec: Codec) -> Page {
        Page { codec, state: State::Idle, compressed: 0, uncompressed: 0, consumed: 0, produced: 0 }
    }

    /// Starts a page if its sizes are possible.
    pub(crate) fn start(&mut self, compressed: usize, uncompressed: usize, ratio_max: Ratio) -> Result<()> {
        *self = Page { state: State::Working, compressed, uncompressed, ..Page::none(self.codec) };
        // In 128 bits, neither product overflows.
        if uncompressed as u128 * ratio_max.input as u128 > compressed as u128 * ratio_max.output as u128 {
            let error = self.corrupt(format_args!(
                "{compressed} compressed bytes cannot expand to the announced {uncompressed}"
            ));
            self.fail(&error);
            return Err(error);
        }
        Ok(())
    }

    /// Fails the page.
    pub(crate) fn fail(&mut self, error: &Error) {
        self.state = State::Failed(error.clone());
    }

    /// Runs a step's work: checks the order of calls and the announced sizes, and makes errors sticky.
    pub(crate) fn step(
        &mut self,
        input: usize,
        last: bool,
        work: impl FnOnce(&mut Page) -> Result<Progress>,
    ) -> Result<Progress> {
        match &self.state {
            State::Working => {}
            State::Idle => return Err(Error::misuse("a decompressor was stepped without a page")),
            State::Failed(error) => return Err(error.clone()),
        }
        let (left, produced) = (self.compressed - self.consumed, self.produced);
        let result = if input > left || (last && input < left) {
            let is = if last { "ends after" } else { "has" };
            Err(Error::misuse(format!(
                "a page announced with {} compressed bytes {is} {}",
                self.compressed,
                self.consumed.saturating_add(input)
            )))
        } else {
            work(self)
        };
        match &result {
            Ok(progress) => {
                debug_assert_eq!(self.compressed - left + progress.consumed, self.consumed);
                debug_assert_eq!(produced + progress.produced, self.produced);
                if progress.status == Status::End {
                    self.state = State::Idle;
                }
            }
            Err(error) => self.fail(error),
        }
        result
    }

    /// Counts work done.
    pub(crate) fn advance(&mut self, consumed: usize, produced: usize) {
        self.consumed += consumed;
        self.produced += produced;
    }

    /// True for a page of no compressed bytes. (It has no uncompressed bytes either: `start` has checked that.)
    pub(crate) fn is_empty(&self) -> bool {
        self.compressed == 0
    }

    /// Compressed bytes not yet consumed.
    pub(crate) fn unread(&self) -> usize {
        self.compressed - self.consumed
    }

    /// Uncompressed bytes not yet produced.
    pub(crate) fn owed(&self) -> usize {
        self.uncompressed - self.produced
    }

    /// The error for an invalid page.
    pub(crate) fn corrupt(&self, what: impl core::fmt::Display) -> Error {
        corrupt(self.codec, what)
    }

    /// The page ended before it was complete.
    pub(crate) fn too_short(&self) -> Error {
        let (produced, uncompressed) = (self.produced, self.uncompressed);
        self.corrupt(format_args!("it has {produced} uncompressed bytes, not the announced {uncompressed}"))
    }

    /// The error for compressed bytes that end in the middle of something.
    pub(crate) fn truncated(&self) -> Error {
        let (produced, uncompressed) = (self.produced, self.uncompressed);
        self.corrupt(format_args!("it is cut short after {produced} of {uncompressed} uncompressed bytes"))
    }

    /// The error for a page with more data than announced.
    pub(crate) fn too_long(&self) -> Error {
        self.corrupt(format_args!("it has more than the announced {} uncompressed bytes", self.uncompressed))
    }
}

/// The error for a page that does not fit its codec.
pub(crate) fn corrupt(codec: Codec, what: impl core::fmt::Display) -> Error {
    Error::new(ErrorKind::Corrupt, format!("corrupt {} page: {what}", codec.name()))
}
