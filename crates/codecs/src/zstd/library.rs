//! Frames that the C library decodes: a block in a call, the least that it does.

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Budget, Codec, Error, Price, Result};
use zstd_safe::zstd_sys::ZSTD_ErrorCode;
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, ResetDirective, get_error_name};

use super::work::{BLOCK_BYTES_MAX, BLOCK_HEADER_BYTES, Done, Stop};
use crate::page::{Page, corrupt};

/// The library, and what it needs next.
pub(super) struct Library {
    context: DCtx<'static>,
    /// Bytes that it holds besides its buffers.
    context_bytes: usize,
    /// The number of bytes that it needs next: a block and the header that follows it.
    wanted: usize,
    /// The last call filled its output: more may be ready without further input.
    ready: bool,
}

/// The prices of uncompressed bytes and of calls (a header, or a block). Measured at 40 to 1,900 for 1 KiB; most
/// expensive are small blocks with entropy tables of their own (`examples/prices.rs`): a block has up to four of them,
/// whatever it decodes to. A large block takes more units than the default budget has.
///
/// What no price could see, and no budget divide, is where a block's matches are from. Its 43,000 matches of three bytes
/// take 0.5 ms if each is from another place within 8 MiB, and 1.2 ms within 64 MiB: such frames are not the library's
/// ([`OWN_REACH_MIN`](super::OWN_REACH_MIN)). Within 2 MiB they take 0.3 ms; and 0.43 ms, or 1.9 ns a unit, in a window that
/// is being filled again, where the library cannot foresee on which side of its end a match is.
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

/// The largest window that the library supports, as a power of two (`ZSTD_WINDOWLOG_MAX`).
const WINDOW_LOG_MAX: u32 = if usize::BITS >= 64 { 31 } else { 30 };

/// Compressed bytes of a call that needs more than a block has: a skippable frame.
const SKIP_BYTES: usize = 1 << 10;

/// What zstd needs of a block together with the next header.
const WANTED_MAX: usize = BLOCK_BYTES_MAX + BLOCK_HEADER_BYTES;

/// What the library is given to read.
pub(super) enum Input<'input> {
    /// A frame's header, complete.
    Header(&'input [u8]),
    /// What follows it.
    More(&'input [u8]),
}

impl Library {
    pub(super) fn new() -> Result<Library> {
        let mut context = DCtx::try_create().ok_or_else(|| Error::out_of_memory(BLOCK_BYTES_MAX))?;
        // Windows are checked before the library sees their headers.
        set(&mut context, DParameter::WindowLogMax(WINDOW_LOG_MAX))?;
        Ok(Library { context_bytes: context.sizeof(), context, wanted: 0, ready: false })
    }

    /// Lets all pages refer to a dictionary, which it copies.
    pub(super) fn load_dictionary(&mut self, dictionary: &[u8]) -> Result<()> {
        let loaded = self.context.load_dictionary(dictionary);
        loaded.map_err(|code| {
            Error::corrupt(format!("a dictionary that zstd refuses: {}", get_error_name(code)))
        })?;
        self.context_bytes = self.context.sizeof();
        Ok(())
    }

    /// Begins a page, which the host holds or not.
    pub(super) fn start(&mut self, is_whole: bool) -> Result<()> {
        (self.wanted, self.ready) = (0, false);
        match self.context.reset(ResetDirective::SessionOnly) {
            Ok(_) => set(&mut self.context, DParameter::StableOutBuffer(is_whole)),
            Err(code) => Err(Error::internal(format!("zstd cannot be reset: {}", get_error_name(code)))),
        }
    }

    /// Units of the next call, at the most.
    pub(super) fn next_units(page: &Page) -> u64 {
        // A page's last block is shorter.
        PRICE.of(page.owed().min(BLOCK_BYTES_MAX), 1)
    }

    /// Bytes that it allocates beyond those that it has, for a frame with this window and content.
    pub(super) fn lacks(&self, window: u64, content: Option<u64>) -> Result<usize> {
        // (`ZSTD_decodingBufferSize_internal`)
        let block = window.min(u64_of(BLOCK_BYTES_MAX));
        let most = window + 2 * block + BEHIND_WINDOW_BYTES;
        let bytes = block.max(4) + content.map_or(most, |content| most.min(content));
        let bytes = usize_of(bytes).ok_or_else(|| Error::out_of_memory(usize::MAX))?;
        Ok(bytes.saturating_sub(self.context.sizeof().saturating_sub(self.context_bytes)))
    }

    /// Bytes of memory.
    pub(super) fn held(&self) -> usize {
        self.context.sizeof()
    }

    /// True if it has nothing to do. (The library counts idle calls and fails after some.)
    pub(super) fn lacks_input(&self, from: &Input<'_>) -> bool {
        self.bytes(from).is_empty() && !self.ready
    }

    /// What a call is shown.
    fn bytes<'input>(&self, from: &Input<'input>) -> &'input [u8] {
        match *from {
            Input::Header(bytes) => bytes,
            Input::More(bytes) => {
                let wanted = if self.wanted > WANTED_MAX { SKIP_BYTES } else { self.wanted };
                &bytes[..bytes.len().min(wanted.max(1))]
            }
        }
    }

    /// Reads a header or decodes a block. `output` is the page from its first byte, if the host holds it, or room for a
    /// part of it; the next byte goes to `at`.
    pub(super) fn call(
        &mut self,
        from: &Input<'_>,
        output: &mut [u8],
        at: usize,
        is_whole: bool,
        page: &Page,
        budget: &mut Budget<'_>,
    ) -> Result<Done> {
        let bytes = self.bytes(from);
        let room = output.len() - at;
        let (mut input, mut to) = (InBuffer::around(bytes), OutBuffer::around_pos(output, at));
        let hint = self.context.decompress_stream(&mut to, &mut input);
        let (taken, produced) = (input.pos(), to.pos() - at);
        // (A call that did nothing, which happens at most once, is no progress to yield for.)
        if taken + produced > 0 {
            budget.charge(PRICE, produced, 1);
        }
        if taken > produced {
            budget.charge(PRICE_OVERHEAD, (taken - produced).min(TABLES_BYTES_MAX), 0);
        }
        let hint = hint.map_err(|code| failed(code, page))?;
        if page.owed() == 0 && produced > 0 {
            return Err(page.too_long());
        }
        // A header was counted as it arrived.
        let consumed = if matches!(from, Input::Header(_)) { 0 } else { taken };
        if let Input::More(all) = from
            && taken + produced == 0
            && !all.is_empty()
        {
            return Err(page.corrupt("its data lead nowhere"));
        }
        self.wanted = hint;
        self.ready = !is_whole && produced == room;
        let stop = if hint == 0 { Stop::End } else { Stop::Block };
        Ok(Done { consumed, produced, stop })
    }
}

fn set(context: &mut DCtx<'static>, parameter: DParameter) -> Result<()> {
    match context.set_parameter(parameter) {
        Ok(_) => Ok(()),
        Err(code) => Err(Error::internal(format!("zstd refuses a parameter: {}", get_error_name(code)))),
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
