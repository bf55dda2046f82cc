//! Codecs by libraries that keep a window of their own and stop anywhere.

use marquetry_base::{Budget, Codec, Decompressor, Error, Price, Progress, Result, Status};

use crate::page::{Page, Ratio};

/// A codec that decompresses in slices of any size.
pub(crate) trait Stream: Send {
    const CODEC: Codec;

    /// The largest possible ratio.
    const RATIO_MAX: Ratio;

    /// What uncompressed bytes cost.
    const PRICE: Price;

    /// What compressed bytes cost at the worst, where they become next to nothing. No encoder writes such data, but a
    /// hostile file may be made of it.
    const PRICE_OVERHEAD: Price;

    /// Uncompressed bytes of a slice.
    const SLICE_OUTPUT_BYTES: usize;

    /// Compressed bytes of a slice: bounds the work on data that become nothing.
    const SLICE_INPUT_BYTES: usize;

    /// Forgets everything, also after an error, and begins a page that announces `uncompressed` bytes.
    fn reset(&mut self, uncompressed: usize) -> Result<()>;

    /// Decompresses a slice.
    fn slice(&mut self, input: &[u8], output: &mut [u8]) -> Result<Slice>;
}

/// What became of a slice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slice {
    pub(crate) consumed: usize,
    pub(crate) produced: usize,
    /// Uncompressed bytes to pay for: those produced, unless the codec decompresses ahead of its output.
    pub(crate) worked: usize,
    /// The page may end here: a member or frame just did.
    pub(crate) may_end: bool,
}

/// The decompressor of a [`Stream`] codec.
#[derive(Debug)]
pub(crate) struct Streaming<S> {
    stream: S,
    page: Page,
    may_end: bool,
}

impl<S: Stream> Streaming<S> {
    pub(crate) fn new(stream: S) -> Streaming<S> {
        Streaming { stream, page: Page::none(S::CODEC), may_end: false }
    }
}

impl<S: Stream> Decompressor for Streaming<S> {
    fn start(&mut self, compressed: usize, uncompressed: usize, _whole: bool) -> Result<()> {
        self.page.start(compressed, uncompressed, S::RATIO_MAX)?;
        // Page V2: nothing may be compressed to nothing.
        self.may_end = compressed == 0;
        self.stream.reset(uncompressed).inspect_err(|error| self.page.fail(error))
    }

    fn step(
        &mut self,
        input: &[u8],
        last: bool,
        output: &mut [u8],
        history: usize,
        budget: &mut Budget<'_>,
    ) -> Result<Progress> {
        let Streaming { stream, page, may_end } = self;
        let Some(room) = output.get_mut(history..) else {
            return Err(Error::misuse("what a decompressor produced before is more than its output"));
        };
        page.step(input.len(), last, |page| decompress(stream, page, may_end, input, room, budget))
    }

    fn history_bytes(&self) -> usize {
        0
    }
}

fn decompress<S: Stream>(
    stream: &mut S,
    page: &mut Page,
    may_end: &mut bool,
    input: &[u8],
    output: &mut [u8],
    budget: &mut Budget<'_>,
) -> Result<Progress> {
    // Where the budget pays for the whole page at its worst, it is not cut into slices: zstd then needs no window.
    let whole = budget.bytes_left(S::PRICE_OVERHEAD) >= page.unread()
        && budget.bytes_left(S::PRICE) >= page.owed()
        && input.len() == page.unread()
        && output.len() >= page.owed();
    let (mut consumed, mut produced) = (0, 0);
    let status = loop {
        if page.unread() == 0 && *may_end {
            if page.owed() > 0 {
                return Err(page.too_short());
            }
            break Status::End;
        }
        let (input_max, output_max) = if whole {
            (usize::MAX, usize::MAX)
        } else {
            (
                slice_bytes(S::SLICE_INPUT_BYTES, budget.bytes_left(S::PRICE_OVERHEAD)),
                slice_bytes(S::SLICE_OUTPUT_BYTES, budget.bytes_left(S::PRICE)),
            )
        };
        let from = &input[consumed..];
        let from = &from[..from.len().min(input_max)];
        // What is owed never reaches beyond the announced size; when nothing is owed, whatever comes is too much.
        let mut too_much = [0];
        let room = (output.len() - produced).min(page.owed()).min(output_max);
        let to = match room {
            0 if page.owed() > 0 => break Status::NeedRoom,
            0 => &mut too_much[..],
            room => &mut output[produced..produced + room],
        };
        let slice = stream.slice(from, to)?;
        budget.charge(S::PRICE, slice.worked, 0);
        if slice.consumed > slice.worked {
            budget.charge(S::PRICE_OVERHEAD, slice.consumed - slice.worked, 0);
        }
        if page.owed() == 0 && slice.produced > 0 {
            return Err(page.too_long());
        }
        consumed += slice.consumed;
        produced += slice.produced;
        page.advance(slice.consumed, slice.produced);
        if slice.consumed + slice.produced == 0 {
            if page.unread() == 0 {
                return Err(page.truncated());
            }
            if consumed < input.len() {
                return Err(page.corrupt("its data lead nowhere"));
            }
            break Status::NeedInput;
        }
        *may_end = slice.may_end;
        if consumed == input.len() && page.unread() > 0 && slice.produced == 0 {
            break Status::NeedInput;
        }
        if budget.is_spent() && !(page.unread() == 0 && *may_end) {
            break Status::Yield;
        }
    };
    Ok(Progress { consumed, produced, status })
}

/// A slice's length: what the budget still pays for, but never so little that calls cost more than the work.
fn slice_bytes(bytes_max: usize, paid: usize) -> usize {
    const SHARE_MIN: usize = 4;
    paid.clamp(bytes_max / SHARE_MIN, bytes_max)
}
