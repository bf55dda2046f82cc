//! ZSTD: one Zstandard frame (RFC 8878), with its content's size and without a checksum, as other writers of Parquet
//! write it.
//!
//! The library compresses a block in one call, of up to 128 KiB. Here blocks are smaller, so that at the usual levels a
//! call is no longer than a step may be.

use marquetry_base::{Error, Levels, Price, Result};
use zstd_safe::zstd_sys::ZSTD_EndDirective;
use zstd_safe::{CCtx, CParameter, InBuffer, OutBuffer, ResetDirective, compress_bound, get_error_name};

use super::stream::{Called, Stream};

/// From `ZSTD_minCLevel()`, which is limited by the target length, to `ZSTD_maxCLevel()`.
pub(super) const LEVELS: Levels = Levels { least: -(1 << 17), most: 22, default: 3 };

/// Writes a page as one frame.
pub(crate) struct Zstd {
    level: i32,
    context: CCtx<'static>,
}

/// The prices of bytes and calls, by level. Measured (`examples/compress.rs`).
const PRICE_FAST: Price = Price { kib: 5_000, kilovalue: 30_000 << 10 };
const PRICE_USUAL: Price = Price { kib: 6_500, kilovalue: 30_000 << 10 };
const PRICE_HIGH: Price = Price { kib: 12_500, kilovalue: 40_000 << 10 };
const PRICE_HIGHER: Price = Price { kib: 60_000, kilovalue: 100_000 << 10 };
const PRICE_BEST: Price = Price { kib: 1_000_000, kilovalue: 500_000 << 10 };

/// The bytes of a block and the price of a level. Up to [`BOUNDED_LEVEL_MAX`] blocks are as large as 250,000 units
/// allow; above it, a step is a block, which takes milliseconds.
const fn effort(level: i32) -> (usize, Price) {
    match level {
        ..=2 => (32 << 10, PRICE_FAST),
        3..=4 => (32 << 10, PRICE_USUAL),
        5..=BOUNDED_LEVEL_MAX => (16 << 10, PRICE_HIGH),
        7..=12 => (32 << 10, PRICE_HIGHER),
        _ => (32 << 10, PRICE_BEST),
    }
}

/// The highest level at which a step costs no more than 250,000 units.
pub(super) const BOUNDED_LEVEL_MAX: i32 = 6;

impl Zstd {
    pub(crate) fn new(level: i32) -> Result<Zstd> {
        let context = CCtx::try_create().ok_or_else(|| Error::out_of_memory(size_of::<Zstd>()))?;
        let mut zstd = Zstd { level, context };
        zstd.set(CParameter::CompressionLevel(level))?;
        let most = u32::try_from(zstd.chunk_bytes()).unwrap_or(u32::MAX);
        zstd.set(CParameter::MaxBlockSize(most))?;
        Ok(zstd)
    }

    fn set(&mut self, parameter: CParameter) -> Result<()> {
        self.context.set_parameter(parameter).map_err(failed)?;
        Ok(())
    }
}

impl Stream for Zstd {
    fn start(&mut self, uncompressed: usize) -> Result<()> {
        self.context.reset(ResetDirective::SessionOnly).map_err(failed)?;
        self.context.set_pledged_src_size(Some(uncompressed as u64)).map_err(failed)?;
        Ok(())
    }

    fn chunk_bytes(&self) -> usize {
        effort(self.level).0
    }

    fn price(&self) -> Price {
        effort(self.level).1
    }

    fn call(&mut self, chunk: &[u8], last: bool, room: &mut [u8]) -> Result<Called> {
        let length = room.len();
        let (mut from, mut to) = (InBuffer::around(chunk), OutBuffer::around(room));
        let end = if last { ZSTD_EndDirective::ZSTD_e_end } else { ZSTD_EndDirective::ZSTD_e_continue };
        let left = self.context.compress_stream2(&mut to, &mut from, end).map_err(failed)?;
        let (consumed, produced) = (from.pos(), to.pos());
        let is_done = if last { left == 0 } else { consumed == chunk.len() && produced < length };
        Ok(Called { consumed, produced, is_done })
    }

    /// The library's bound, plus a header for each smaller block.
    fn bound(&self, uncompressed: usize) -> usize {
        compress_bound(uncompressed) + 3 * (uncompressed / self.chunk_bytes() + 1)
    }

    fn held_bytes(&self) -> usize {
        self.context.sizeof()
    }
}

fn failed(code: usize) -> Error {
    Error::internal(format!("zstd fails: {}", get_error_name(code)))
}
