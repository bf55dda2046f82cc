//! ZSTD: Zstandard frames (RFC 8878), one or more per page, including skippable ones.
//!
//! The library gets one block at a time, the least that it decodes in one call. If the host holds the complete page, it
//! decodes straight into it. Otherwise it keeps a window of its own and copies from that, which costs up to a tenth for
//! text, and twice the time for incompressible data.

use marquetry_base::{Budget, Codec, Decompressor, Error, Limit, Price, Progress, Result, Status};
use zstd_safe::zstd_sys::ZSTD_ErrorCode;
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, ResetDirective, get_error_name};

use crate::page::{Page, Ratio, corrupt};

/// The decompressor of Zstandard frames.
pub(crate) struct Zstd {
    context: DCtx<'static>,
    window_bytes_max: u64,
    page: Page,
    /// The host holds the complete page, of this many bytes.
    whole: Option<usize>,
    /// The number of bytes that the library needs next: a header, or a block and the header that follows it.
    wanted: usize,
    /// The last call filled its output: more may be ready without further input.
    ready: bool,
    /// A frame just ended, so the page may end.
    may_end: bool,
}

/// A block is decoded in one call: Block_Maximum_Size, RFC 8878, section 3.1.1.2.4.
const BLOCK_BYTES_MAX: usize = 128 << 10;

/// The smallest block: 3 bytes of header and, in a run-length block, one that repeats.
const BLOCK_COMPRESSED_BYTES_MIN: usize = 4;

/// The smallest window that the library supports, as a power of two (`ZSTD_WINDOWLOG_ABSOLUTEMIN`).
const WINDOW_LOG_MIN: u32 = 10;

/// The largest window that the library supports, as a power of two (`ZSTD_WINDOWLOG_MAX`).
const WINDOW_LOG_MAX: u32 = if usize::BITS >= 64 { 31 } else { 30 };

/// The best ratio: a block repeats one byte.
const RATIO_MAX: Ratio = Ratio { output: BLOCK_BYTES_MAX, input: BLOCK_COMPRESSED_BYTES_MIN };

/// The prices of uncompressed bytes and of calls (a header, or a block). Measured at 40 to 1,900 for 1 KiB; most
/// expensive are small blocks with entropy tables of their own (`examples/prices.rs`): a block has up to four of them,
/// whatever it decodes to. A large block takes more units than the default budget has.
///
/// What no price can see, and no budget divide: the library decodes a block at once, and where each of its 43,000
/// matches is of three bytes from another place megabytes back, that takes 0.5 ms (windows of 8 MiB) to 1.2 ms (of 64
/// MiB), and not 0.2 ms. No encoder writes such a block: it is nearly as long as what it becomes.
const PRICE: Price = Price { kib: 1_700, kilovalue: 5_000 << 10 };

/// The price of compressed bytes at worst, if they become next to nothing. Empty frames are measured at 8,700
/// (`examples/prices.rs`). Blocks that only describe entropy tables were not measured; they are estimated at 4,000 for
/// the 40 bytes or more that they need.
const PRICE_OVERHEAD: Price = Price::per_kib(100_000);

/// Bytes of a call that can be expensive without producing anything: a call is one block, which describes at most four
/// entropy tables.
const TABLES_BYTES_MAX: usize = 256;

/// A frame begins with a header of at least this many bytes.
const HEADER_BYTES_MIN: usize = 5;

/// Compressed bytes of a call that needs more than a block has: a skippable frame.
const SKIP_BYTES: usize = 1 << 10;

/// A block's header, and what zstd needs of a block together with the next header.
const BLOCK_HEADER_BYTES: usize = 3;
const WANTED_MAX: usize = BLOCK_BYTES_MAX + BLOCK_HEADER_BYTES;

impl Zstd {
    /// A reader that refuses windows of more than `window_bytes_max`, rounded to a power of two.
    pub(crate) fn new(window_bytes_max: u64) -> Result<Zstd> {
        let mut context = DCtx::try_create().ok_or_else(|| Error::out_of_memory(BLOCK_BYTES_MAX))?;
        let log = window_bytes_max.checked_ilog2().unwrap_or(0).clamp(WINDOW_LOG_MIN, WINDOW_LOG_MAX);
        set(&mut context, DParameter::WindowLogMax(log))?;
        Ok(Zstd {
            context,
            window_bytes_max,
            page: Page::none(Codec::Zstd),
            whole: None,
            wanted: HEADER_BYTES_MIN,
            ready: false,
            may_end: false,
        })
    }
}

fn set(context: &mut DCtx<'static>, parameter: DParameter) -> Result<()> {
    match context.set_parameter(parameter) {
        Ok(_) => Ok(()),
        Err(code) => Err(Error::internal(format!("zstd refuses a parameter: {}", get_error_name(code)))),
    }
}

impl Decompressor for Zstd {
    fn start(&mut self, compressed: usize, uncompressed: usize, whole: bool) -> Result<()> {
        self.page.start(compressed, uncompressed, RATIO_MAX)?;
        self.whole = whole.then_some(uncompressed);
        (self.wanted, self.ready) = (HEADER_BYTES_MIN, false);
        // Page V2: zero bytes may be compressed to zero bytes.
        self.may_end = compressed == 0;
        let reset = match self.context.reset(ResetDirective::SessionOnly) {
            Ok(_) => set(&mut self.context, DParameter::StableOutBuffer(whole)),
            Err(code) => Err(Error::internal(format!("zstd cannot be reset: {}", get_error_name(code)))),
        };
        reset.inspect_err(|error| self.page.fail(error))
    }

    fn step(
        &mut self,
        input: &[u8],
        last: bool,
        output: &mut [u8],
        history: usize,
        budget: &mut Budget<'_>,
    ) -> Result<Progress> {
        let Zstd { context, window_bytes_max, page, whole, wanted, ready, may_end } = self;
        page.step(input.len(), last, |page| {
            let (mut consumed, mut produced) = (0, 0);
            let status = loop {
                if page.unread() == 0 && *may_end {
                    if page.owed() > 0 {
                        return Err(page.too_short());
                    }
                    break Status::End;
                }
                // What the next block may cost; a page's last block is shorter.
                let next = PRICE.of(page.owed().min(BLOCK_BYTES_MAX), 1);
                if budget.spent() > 0 && (budget.left() < next || budget.is_spent()) {
                    break Status::Yield;
                }
                let from = &input[consumed..];
                let bytes = if *wanted > WANTED_MAX { SKIP_BYTES } else { *wanted };
                let from = &from[..from.len().min(bytes.max(1))];
                // The library counts idle calls and fails after some.
                if from.is_empty() && !*ready {
                    if page.unread() == 0 {
                        return Err(page.truncated());
                    }
                    break Status::NeedInput;
                }
                let mut too_much = [0];
                let (to, at) = match *whole {
                    Some(length) => {
                        let at = history + produced;
                        if output.len() < length || page.owed() != length - at.min(length) {
                            return Err(Error::misuse("the output is not the whole page, as was promised"));
                        }
                        (&mut output[..length], at)
                    }
                    None => {
                        let Some(room) = output.get_mut(history + produced..) else {
                            return Err(Error::misuse(
                                "what a decompressor produced before is more than its output",
                            ));
                        };
                        let length = room.len().min(page.owed()).min(BLOCK_BYTES_MAX);
                        match length {
                            0 if page.owed() > 0 => break Status::NeedRoom,
                            // If no output is expected, any output is too much.
                            0 => (&mut too_much[..], 0),
                            _ => (&mut room[..length], 0),
                        }
                    }
                };
                let room = to.len() - at;
                let (mut from, mut to) = (InBuffer::around(from), OutBuffer::around_pos(to, at));
                let hint = context.decompress_stream(&mut to, &mut from);
                let (taken, made) = (from.pos(), to.pos() - at);
                // (A call that did nothing, which happens at most once, is no progress to yield for.)
                if taken + made > 0 {
                    budget.charge(PRICE, made, 1);
                }
                if taken > made {
                    budget.charge(PRICE_OVERHEAD, (taken - made).min(TABLES_BYTES_MAX), 0);
                }
                let hint = hint.map_err(|code| failed(code, page, *window_bytes_max))?;
                if page.owed() == 0 && made > 0 {
                    return Err(page.too_long());
                }
                (*wanted, *may_end) = (if hint == 0 { HEADER_BYTES_MIN } else { hint }, hint == 0);
                *ready = whole.is_none() && made == room;
                (consumed, produced) = (consumed + taken, produced + made);
                page.advance(taken, made);
                if taken + made == 0 && consumed < input.len() {
                    return Err(page.corrupt("its data lead nowhere"));
                }
            };
            Ok(Progress { consumed, produced, status })
        })
    }

    /// 0: it has a window of its own.
    fn history_bytes(&self) -> usize {
        0
    }

    fn held_bytes(&self) -> usize {
        size_of::<Self>() + self.context.sizeof()
    }
}

fn failed(code: usize, page: &Page, window_bytes_max: u64) -> Error {
    // The library's codes are the negated numbers of `ZSTD_ErrorCode`.
    let is = |number: ZSTD_ErrorCode| code.wrapping_neg() == number as usize;
    if is(ZSTD_ErrorCode::ZSTD_error_frameParameter_windowTooLarge) {
        Error::limit(
            Limit::WindowBytes,
            format!("a ZSTD frame's window is more than the limit window_bytes of {window_bytes_max}"),
        )
    } else if is(ZSTD_ErrorCode::ZSTD_error_memory_allocation) {
        Error::out_of_memory(marquetry_base::cast::usize_of(window_bytes_max).unwrap_or(usize::MAX))
            .reworded("the memory for a ZSTD frame's window could not be allocated")
    } else if is(ZSTD_ErrorCode::ZSTD_error_dstSize_tooSmall) {
        page.too_long()
    } else if is(ZSTD_ErrorCode::ZSTD_error_dstBuffer_wrong) {
        Error::misuse("the output is not the same memory, as was promised")
    } else {
        corrupt(Codec::Zstd, get_error_name(code))
    }
}
