//! ZSTD: Zstandard frames (RFC 8878), one or more per page, including skippable ones.
//!
//! The library gets one block at a time, the least that it decodes in one call. If the host holds the complete page, it
//! decodes straight into it. Otherwise it keeps a window of its own and copies from that, which costs up to a tenth for
//! text, and twice the time for incompressible data. A frame's header says how far back it refers, which may be any
//! number: the header that the library gets says no more than the page has, and the host is asked for that memory first.

use marquetry_base::cast::{u64_of, usize_of};
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
    /// The header of the next frame, as far as it has arrived; complete, while the host is asked for memory.
    header: Header,
    /// A frame's header comes next.
    begins: bool,
    /// The number of bytes that the library needs next: a block and the header that follows it.
    wanted: usize,
    /// Bytes that the library holds besides its buffers.
    context_bytes: usize,
    /// The last call filled its output: more may be ready without further input.
    ready: bool,
    /// A frame just ended, so the page may end.
    may_end: bool,
}

/// A block is decoded in one call: Block_Maximum_Size, RFC 8878, section 3.1.1.2.4.
const BLOCK_BYTES_MAX: usize = 128 << 10;

/// The smallest block: 3 bytes of header and, in a run-length block, one that repeats.
const BLOCK_COMPRESSED_BYTES_MIN: usize = 4;

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

/// Bytes that the library has behind a window for copies that go too far (`WILDCOPY_OVERLENGTH`, twice).
const BEHIND_WINDOW_BYTES: u64 = 64;

/// Compressed bytes of a call that needs more than a block has: a skippable frame.
const SKIP_BYTES: usize = 1 << 10;

/// A block's header, and what zstd needs of a block together with the next header.
const BLOCK_HEADER_BYTES: usize = 3;
const WANTED_MAX: usize = BLOCK_BYTES_MAX + BLOCK_HEADER_BYTES;

impl Zstd {
    /// A reader that refuses windows of more than `window_bytes_max`.
    pub(crate) fn new(window_bytes_max: u64) -> Result<Zstd> {
        let mut context = DCtx::try_create().ok_or_else(|| Error::out_of_memory(BLOCK_BYTES_MAX))?;
        // Windows are checked here, before the library sees their headers.
        set(&mut context, DParameter::WindowLogMax(WINDOW_LOG_MAX))?;
        Ok(Zstd {
            context_bytes: context.sizeof(),
            context,
            window_bytes_max,
            page: Page::none(Codec::Zstd),
            whole: None,
            header: Header::default(),
            begins: true,
            wanted: 0,
            ready: false,
            may_end: false,
        })
    }
}

/// Bytes of a frame's header, at most: magic, descriptor, window, dictionary, content size.
const HEADER_BYTES_MAX: usize = 18;
/// Bytes of it that tell how long it is.
const HEADER_BYTES_MIN: usize = 5;
/// Bytes of a skippable frame's header: magic and length.
const SKIPPABLE_HEADER_BYTES: usize = 8;
const MAGIC: u32 = 0xfd2f_b528;
const SKIPPABLE_MAGIC: u32 = 0x184d_2a50;
/// The smallest window that the format has (RFC 8878, section 3.1.1.1.2).
const WINDOW_BYTES_MIN: u64 = 1 << 10;

/// The header of a frame (RFC 8878, section 3.1.1.1), as far as it has arrived.
#[derive(Debug, Default)]
struct Header {
    bytes: [u8; HEADER_BYTES_MAX],
    length: usize,
}

impl Header {
    /// Takes the bytes that it lacks; returns how many these are.
    fn take(&mut self, input: &[u8]) -> usize {
        let mut taken = 0;
        while !self.is_complete() && taken < input.len() {
            let bytes = (self.needed() - self.length).min(input.len() - taken);
            self.bytes[self.length..self.length + bytes].copy_from_slice(&input[taken..taken + bytes]);
            (self.length, taken) = (self.length + bytes, taken + bytes);
        }
        taken
    }

    fn is_complete(&self) -> bool {
        self.length == self.needed()
    }

    fn magic(&self) -> u32 {
        self.bytes.first_chunk().map_or(0, |magic| u32::from_le_bytes(*magic))
    }

    /// Bytes that it has in all, as far as is known.
    fn needed(&self) -> usize {
        if self.length < HEADER_BYTES_MIN {
            return HEADER_BYTES_MIN;
        }
        match self.magic() {
            MAGIC => self.content_at() + self.content_bytes(),
            magic if magic & !15 == SKIPPABLE_MAGIC => SKIPPABLE_HEADER_BYTES,
            // The library says what is wrong with it.
            _ => HEADER_BYTES_MIN,
        }
    }

    fn has_window(&self) -> bool {
        self.bytes[4] & 1 << 5 == 0
    }

    fn content_at(&self) -> usize {
        let dictionary = [0, 1, 2, 4][usize::from(self.bytes[4] & 3)];
        HEADER_BYTES_MIN + usize::from(self.has_window()) + dictionary
    }

    fn content_bytes(&self) -> usize {
        match self.bytes[4] >> 6 {
            0 => usize::from(!self.has_window()),
            size => 1 << size,
        }
    }

    /// Its bytes.
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Makes it ask for no larger window than the page has bytes to come, because no match refers to what is before the
    /// page. Returns the bytes that the library allocates for it, if the page is not held.
    fn window_memory(&mut self, page: &Page, window_bytes_max: u64) -> Result<usize> {
        let Some((window, content)) = self.sizes() else { return Ok(0) };
        let owed = u64_of(page.owed());
        if content.is_some_and(|content| content > owed) {
            return Err(page.too_long());
        }
        let window = window.min(owed.max(WINDOW_BYTES_MIN));
        if window > window_bytes_max {
            return Err(Error::limit(
                Limit::WindowBytes,
                format!("a ZSTD frame's window is more than the limit window_bytes of {window_bytes_max}"),
            ));
        }
        let window = self.cut_window(window);
        // (`ZSTD_decodingBufferSize_internal`)
        let block = window.min(u64_of(BLOCK_BYTES_MAX));
        let most = window + 2 * block + BEHIND_WINDOW_BYTES;
        let bytes = block.max(4) + content.map_or(most, |content| most.min(content));
        usize_of(bytes).ok_or_else(|| Error::out_of_memory(usize::MAX))
    }

    /// The bytes of the window that it asks for, and those of the frame's content if it says them. `None` if it is not a
    /// frame's.
    fn sizes(&self) -> Option<(u64, Option<u64>)> {
        if self.magic() != MAGIC {
            return None;
        }
        let (at, bytes) = (self.content_at(), self.content_bytes());
        let mut number = [0; 8];
        number[..bytes].copy_from_slice(&self.bytes[at..at + bytes]);
        // Sizes in two bytes begin with 256.
        let content = u64::from_le_bytes(number).saturating_add(if bytes == 2 { 256 } else { 0 });
        let window = if self.has_window() { window_of(self.bytes[HEADER_BYTES_MIN]) } else { content };
        Some((window, (bytes > 0).then_some(content)))
    }

    /// Asks for a window of `bytes`, or the next larger one there is; returns it. Blocks are not larger than a window, so
    /// it stays as large as one block.
    fn cut_window(&mut self, bytes: u64) -> u64 {
        if !self.has_window() {
            return bytes;
        }
        let descriptor = &mut self.bytes[HEADER_BYTES_MIN];
        let bytes = bytes.max(u64_of(BLOCK_BYTES_MAX)).min(window_of(*descriptor));
        *descriptor = (0..*descriptor).find(|smaller| window_of(*smaller) >= bytes).unwrap_or(*descriptor);
        window_of(*descriptor)
    }
}

/// Bytes of the window that a descriptor stands for.
fn window_of(descriptor: u8) -> u64 {
    let base = WINDOW_BYTES_MIN << (descriptor >> 3);
    base + base / 8 * u64::from(descriptor & 7)
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
        (self.header, self.begins) = (Header::default(), true);
        (self.wanted, self.ready) = (0, false);
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
        let Zstd { context, window_bytes_max, page, whole, header, begins, context_bytes, .. } = self;
        let (wanted, ready, may_end) = (&mut self.wanted, &mut self.ready, &mut self.may_end);
        page.step(input.len(), last, |page| {
            if history > output.len() {
                return Err(Error::misuse("what a decompressor produced before is more than its output"));
            }
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
                // (If it is complete already, the host was asked for memory, and goes on.)
                if *begins && !header.is_complete() {
                    let taken = header.take(&input[consumed..]);
                    (consumed, *may_end) = (consumed + taken, false);
                    page.advance(taken, 0);
                    if !header.is_complete() {
                        if page.unread() == 0 {
                            return Err(page.truncated());
                        }
                        break Status::NeedInput;
                    }
                    let needed = header.window_memory(page, *window_bytes_max)?;
                    let held = context.sizeof().saturating_sub(*context_bytes);
                    if whole.is_none() && needed > held {
                        break Status::NeedMemory(needed - held);
                    }
                }
                let from = if *begins {
                    header.bytes()
                } else {
                    let from = &input[consumed..];
                    let bytes = if *wanted > WANTED_MAX { SKIP_BYTES } else { *wanted };
                    &from[..from.len().min(bytes.max(1))]
                };
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
                        let room = output.get_mut(history + produced..).unwrap_or_default();
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
                let hint = hint.map_err(|code| failed(code, page))?;
                if page.owed() == 0 && made > 0 {
                    return Err(page.too_long());
                }
                // A header was counted as it arrived.
                let taken = if *begins { 0 } else { taken };
                if taken + made == 0 && !*begins && consumed < input.len() {
                    return Err(page.corrupt("its data lead nowhere"));
                }
                (*wanted, *begins, *may_end) = (hint, hint == 0, hint == 0);
                if hint == 0 {
                    *header = Header::default();
                }
                *ready = whole.is_none() && made == room;
                (consumed, produced) = (consumed + taken, produced + made);
                page.advance(taken, made);
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

fn failed(code: usize, page: &Page) -> Error {
    // The library's codes are the negated numbers of `ZSTD_ErrorCode`.
    let is = |number: ZSTD_ErrorCode| code.wrapping_neg() == number as usize;
    if is(ZSTD_ErrorCode::ZSTD_error_memory_allocation) {
        Error::out_of_memory(page.owed())
            .reworded("the memory for a ZSTD frame's window could not be allocated")
    } else if is(ZSTD_ErrorCode::ZSTD_error_dstSize_tooSmall) {
        page.too_long()
    } else if is(ZSTD_ErrorCode::ZSTD_error_dstBuffer_wrong) {
        Error::misuse("the output is not the same memory, as was promised")
    } else {
        corrupt(Codec::Zstd, get_error_name(code))
    }
}
