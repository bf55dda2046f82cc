//! ZSTD: Zstandard frames (RFC 8878), one or more a page, skippable ones too.

use marquetry_base::{Codec, Error, ErrorKind, Price, Result};
use zstd_safe::zstd_sys::ZSTD_ErrorCode;
use zstd_safe::{DCtx, DParameter, InBuffer, OutBuffer, ResetDirective, get_error_name};

use crate::page::{Ratio, corrupt};
use crate::streaming::{Slice, Stream};

/// Resumable reader of Zstandard frames.
pub(crate) struct Zstd {
    context: DCtx<'static>,
    window_bytes_max: u64,
    /// The last slice's output was filled: more may be ready without further input.
    ready: bool,
}

/// A block is decoded at once, whatever the slice: Block_Maximum_Size, RFC 8878, section 3.1.1.2.4.
const BLOCK_BYTES_MAX: usize = 128 << 10;

/// The smallest block: 3 bytes of header and, in a run-length block, one that repeats.
const BLOCK_COMPRESSED_BYTES_MIN: usize = 4;

/// The smallest window the library knows, as a power of two (`ZSTD_WINDOWLOG_ABSOLUTEMIN`).
const WINDOW_LOG_MIN: u32 = 10;

/// The largest window the library knows, as a power of two (`ZSTD_WINDOWLOG_MAX`).
const WINDOW_LOG_MAX: u32 = if usize::BITS >= 64 { 31 } else { 30 };

impl Zstd {
    /// A reader that refuses windows of more than `window_bytes_max`, as far as powers of two can say it.
    pub(crate) fn new(window_bytes_max: u64) -> Result<Zstd> {
        let mut context = DCtx::try_create().ok_or_else(|| Error::out_of_memory(BLOCK_BYTES_MAX))?;
        let log = window_bytes_max.checked_ilog2().unwrap_or(0).clamp(WINDOW_LOG_MIN, WINDOW_LOG_MAX);
        context.set_parameter(DParameter::WindowLogMax(log)).map_err(|code| {
            Error::internal(format!("zstd refuses a window of 2^{log} bytes: {}", get_error_name(code)))
        })?;
        Ok(Zstd { context, window_bytes_max, ready: false })
    }

    fn error(&self, code: usize) -> Error {
        // The library's codes are the negated numbers of `ZSTD_ErrorCode`.
        let is = |number: ZSTD_ErrorCode| code.wrapping_neg() == number as usize;
        if is(ZSTD_ErrorCode::ZSTD_error_frameParameter_windowTooLarge) {
            Error::new(
                ErrorKind::LimitExceeded,
                format!(
                    "a ZSTD frame's window is more than the limit window_bytes of {}",
                    self.window_bytes_max
                ),
            )
        } else if is(ZSTD_ErrorCode::ZSTD_error_memory_allocation) {
            Error::new(ErrorKind::LimitExceeded, "the memory for a ZSTD frame's window could not be had")
        } else {
            corrupt(Codec::Zstd, get_error_name(code))
        }
    }
}

impl Stream for Zstd {
    const CODEC: Codec = Codec::Zstd;

    /// A block repeats one byte.
    const RATIO_MAX: Ratio = Ratio { output: BLOCK_BYTES_MAX, input: BLOCK_COMPRESSED_BYTES_MIN };

    /// Measured at 40 to 1,900 (`examples/prices.rs`); the most for small blocks with entropy tables of their own.
    const PRICE: Price = Price::per_kib(2_000);

    /// Empty frames are measured at 8,700 (`examples/prices.rs`). Blocks that do nothing but describe entropy tables were
    /// not measured; they are reckoned at some 4,000 for the 40 bytes or more that they need.
    const PRICE_OVERHEAD: Price = Price::per_kib(100_000);

    /// A block, for less is not decoded at a time.
    const SLICE_OUTPUT_BYTES: usize = BLOCK_BYTES_MAX;

    /// 0.2 ms at the worst.
    const SLICE_INPUT_BYTES: usize = 2 << 10;

    fn reset(&mut self, _: usize) -> Result<()> {
        self.ready = false;
        match self.context.reset(ResetDirective::SessionOnly) {
            Ok(_) => Ok(()),
            Err(code) => Err(Error::internal(format!("zstd cannot be reset: {}", get_error_name(code)))),
        }
    }

    fn slice(&mut self, input: &[u8], output: &mut [u8]) -> Result<Slice> {
        // The library counts idle calls and fails after some.
        if input.is_empty() && !self.ready {
            return Ok(Slice { consumed: 0, produced: 0, worked: 0, may_end: false });
        }
        let room = output.len();
        let (mut from, mut to) = (InBuffer::around(input), OutBuffer::around(output));
        let hint = self.context.decompress_stream(&mut to, &mut from);
        let (consumed, produced) = (from.pos(), to.pos());
        let hint = hint.map_err(|code| self.error(code))?;
        self.ready = produced == room;
        Ok(Slice { consumed, produced, worked: produced, may_end: hint == 0 })
    }
}
