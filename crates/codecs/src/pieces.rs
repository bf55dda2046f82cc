//! Pages read in pieces of any size, into room of any size: the decompressor for formats whose matches refer to the
//! page itself.

use marquetry_base::{Budget, Codec, Decompressor, Error, Price, Progress, Result, Status};

use crate::block::{Room, Stop};
use crate::page::{Page, Ratio};

/// A format that is decoded in slices.
pub(crate) trait Format: Send {
    const CODEC: Codec;

    /// The largest possible ratio.
    const RATIO_MAX: Ratio;

    /// The price of uncompressed or compressed bytes, whichever are more, and of elements: a literal or a match of
    /// any length; other work counts as a number of elements.
    const PRICE: Price;

    /// How far back matches refer, in data from the format's known encoders.
    const HISTORY_BYTES: usize;

    /// Discards everything and begins a page of `compressed` bytes that should become `uncompressed` bytes.
    fn start(&mut self, compressed: usize, uncompressed: usize);

    /// Continues to decode. Returns the bytes consumed and why it stopped. If it needs more, it leaves an incomplete
    /// head of `input`, shorter than [`HEAD_BYTES_MAX`].
    fn decode(&mut self, input: &[u8], page: &Page, room: &mut Room<'_>) -> Result<(usize, Stop)>;

    /// How far back matches of the page may refer, if its header says so and was read.
    fn history_bytes(&self) -> Option<usize> {
        None
    }

    /// True if the page may end here.
    fn may_end(&self) -> bool;

    /// Bytes of its tables, if they are allocated.
    fn table_bytes(&self) -> usize {
        0
    }
}

/// Every head (a tag, a token, the sizes of a block, the descriptor of a frame) is shorter than this.
pub(crate) const HEAD_BYTES_MAX: usize = 24;

/// Maximum and minimum bytes of a slice, compressed or not: few enough that elements fit into the processor's cache,
/// and enough that the work per slice hardly matters.
const SLICE_BYTES_MAX: usize = 64 << 10;
const SLICE_BYTES_MIN: usize = 4 << 10;

/// The decompressor of a [`Format`].
#[derive(Debug)]
pub(crate) struct Pieces<F> {
    format: F,
    page: Page,
    carried: Carried,
}

/// The beginning of something whose end has not arrived.
#[derive(Debug, Default)]
struct Carried {
    bytes: [u8; HEAD_BYTES_MAX],
    length: usize,
}

impl<F: Format> Pieces<F> {
    pub(crate) fn new(format: F) -> Pieces<F> {
        Pieces { format, page: Page::none(F::CODEC), carried: Carried::default() }
    }
}

impl<F: Format> Decompressor for Pieces<F> {
    fn start(&mut self, compressed: usize, uncompressed: usize, _whole: bool) -> Result<()> {
        self.carried.length = 0;
        self.format.start(compressed, uncompressed);
        self.page.start(compressed, uncompressed, F::RATIO_MAX)
    }

    fn step(
        &mut self,
        input: &[u8],
        last: bool,
        output: &mut [u8],
        history: usize,
        budget: &mut Budget<'_>,
    ) -> Result<Progress> {
        let Pieces { format, page, carried } = self;
        page.step(input.len(), last, |page| decompress(format, page, carried, input, output, history, budget))
    }

    fn history_bytes(&self) -> usize {
        self.format.history_bytes().unwrap_or(F::HISTORY_BYTES)
    }

    fn held_bytes(&self) -> usize {
        size_of::<Self>() + self.format.table_bytes()
    }
}

fn decompress<F: Format>(
    format: &mut F,
    page: &mut Page,
    carried: &mut Carried,
    input: &[u8],
    output: &mut [u8],
    history: usize,
    budget: &mut Budget<'_>,
) -> Result<Progress> {
    if history > output.len() {
        return Err(Error::misuse("a decompressor's output is shorter than what it produced before"));
    }
    // At worst, each byte is an element.
    let worst = Price::per_kib(F::PRICE.kib.saturating_add(F::PRICE.kilovalue));
    let (mut consumed, mut at) = (0, history);
    let status = loop {
        // Page V2: zero bytes may be compressed to zero bytes.
        if page.is_empty() {
            break Status::End;
        }
        let paid = budget.bytes_left(worst);
        if budget.spent() > 0 && (paid < 2 * SLICE_BYTES_MIN || budget.is_spent()) {
            break Status::Yield;
        }
        // A slice exceeds its end by less than the smallest slice.
        let slice_bytes = paid.saturating_sub(SLICE_BYTES_MIN).clamp(SLICE_BYTES_MIN, SLICE_BYTES_MAX);
        let end = output.len().min(at + page.owed());
        let until = end.min(at + slice_bytes);
        let mut room = Room { output: &mut *output, at, end, until, elements: 0, elements_max: slice_bytes };
        let left = &input[consumed..];
        let slice = &left[..left.len().min(slice_bytes)];
        let before = carried.length;
        let (taken, stop) = match before {
            0 => format.decode(slice, page, &mut room)?,
            _ => carried.decode(format, slice, page, &mut room)?,
        };
        let (produced, elements) = (room.at - at, room.elements);
        budget.charge(F::PRICE, taken.max(produced), elements);
        page.advance(taken, produced);
        (consumed, at) = (consumed + taken, at + produced);
        let went_on = taken + produced + elements > 0 || carried.length != before;
        match stop {
            Stop::Room if page.owed() == 0 => return Err(page.too_long()),
            Stop::Room if at == output.len() => break Status::NeedRoom,
            Stop::Input if slice.len() == left.len() && before == 0 => {
                let rest = &input[consumed..];
                if page.unread() > rest.len() {
                    carried.keep(rest)?;
                    page.advance(rest.len(), 0);
                    consumed += rest.len();
                    break Status::NeedInput;
                }
                if !rest.is_empty() || !format.may_end() {
                    return Err(page.truncated());
                }
                if page.owed() > 0 {
                    return Err(page.too_short());
                }
                break Status::End;
            }
            // All input was added to the carried bytes.
            Stop::Input if consumed == input.len() && carried.length > 0 => {
                if page.unread() == 0 {
                    return Err(page.truncated());
                }
                break Status::NeedInput;
            }
            _ if !went_on => return Err(Error::internal("a decompressor makes no progress")),
            _ => {}
        }
    };
    Ok(Progress { consumed, produced: at - history, status })
}

impl Carried {
    fn keep(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(to) = self.bytes.get_mut(..bytes.len()) else {
            return Err(Error::internal("a decompressor leaves more than the beginning of something"));
        };
        to.copy_from_slice(bytes);
        self.length = bytes.len();
        Ok(())
    }

    /// Decodes the carried bytes together with the first bytes of `input`. Returns how many of those were consumed.
    fn decode<F: Format>(
        &mut self,
        format: &mut F,
        input: &[u8],
        page: &Page,
        room: &mut Room<'_>,
    ) -> Result<(usize, Stop)> {
        let mut joined = [0; 2 * HEAD_BYTES_MAX];
        let carried = self.length;
        let added = input.len().min(HEAD_BYTES_MAX);
        joined[..carried].copy_from_slice(&self.bytes[..carried]);
        joined[carried..carried + added].copy_from_slice(&input[..added]);
        let (consumed, stop) = format.decode(&joined[..carried + added], page, room)?;
        if let Some(taken) = consumed.checked_sub(carried) {
            self.length = 0;
            return Ok((taken, stop));
        }
        if stop == Stop::Input {
            self.keep(&joined[consumed..carried + added])?;
            return Ok((added, stop));
        }
        self.keep(&joined[consumed..carried])?;
        Ok((0, stop))
    }
}
