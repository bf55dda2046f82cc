//! BROTLI: one stream (RFC 7932), by the crate `brotli`.
//!
//! The library gathers a metablock of up to 16 MiB before it writes it. Here each chunk is a metablock.

use brotli::enc::StandardAlloc;
use brotli::enc::encode::{BrotliEncoderOperation, BrotliEncoderParameter, BrotliEncoderStateStruct};
use marquetry_base::{Error, Levels, Price, Result};

use super::stream::{Called, Stream};

pub(super) const LEVELS: Levels = Levels { least: 0, most: 11, default: BOUNDED_QUALITY_MAX };

/// Writes a page as one stream.
pub(crate) struct Brotli {
    quality: i32,
    state: Box<BrotliEncoderStateStruct<StandardAlloc>>,
}

/// The prices of bytes and calls, by quality. Measured (`examples/compress.rs`).
const PRICE_FASTEST: Price = Price { kib: 6_000, kilovalue: 30_000 << 10 };
const PRICE_FAST: Price = Price { kib: 12_000, kilovalue: 50_000 << 10 };
const PRICE_USUAL: Price = Price { kib: 24_000, kilovalue: 50_000 << 10 };
const PRICE_HIGH: Price = Price { kib: 60_000, kilovalue: 100_000 << 10 };
const PRICE_HIGHER: Price = Price { kib: 800_000, kilovalue: 500_000 << 10 };
const PRICE_BEST: Price = Price { kib: 9_000_000, kilovalue: 5_000_000 << 10 };

/// The bytes of a chunk and the price of a quality. Up to [`BOUNDED_QUALITY_MAX`], chunks are as large as 250,000
/// units allow; above it, a step is a chunk, which takes milliseconds, and up to 400 ms at 11.
const fn effort(quality: i32) -> (usize, Price) {
    match quality {
        ..=1 => (32 << 10, PRICE_FASTEST),
        2..=4 => (16 << 10, PRICE_FAST),
        BOUNDED_QUALITY_MAX => (8 << 10, PRICE_USUAL),
        6..=7 => (32 << 10, PRICE_HIGH),
        8..=10 => (32 << 10, PRICE_HIGHER),
        _ => (32 << 10, PRICE_BEST),
    }
}

/// The highest quality at which a step costs no more than 250,000 units.
pub(super) const BOUNDED_QUALITY_MAX: i32 = 5;

impl Brotli {
    pub(crate) fn new(quality: i32) -> Brotli {
        Brotli { quality, state: Box::new(BrotliEncoderStateStruct::new(StandardAlloc::default())) }
    }
}

impl Stream for Brotli {
    fn start(&mut self, uncompressed: usize) -> Result<()> {
        *self.state = BrotliEncoderStateStruct::new(StandardAlloc::default());
        let hint = u32::try_from(uncompressed).unwrap_or(u32::MAX);
        // A window that holds the page, minus 16 bytes from a power of two; at most 2^22, as is usual.
        let window = (uncompressed + 16).max(2).next_power_of_two().ilog2().clamp(10, 22);
        let set = [
            (BrotliEncoderParameter::BROTLI_PARAM_QUALITY, self.quality.unsigned_abs()),
            (BrotliEncoderParameter::BROTLI_PARAM_LGWIN, window),
            (BrotliEncoderParameter::BROTLI_PARAM_SIZE_HINT, hint),
        ];
        for (parameter, value) in set {
            if !self.state.set_parameter(parameter, value) {
                return Err(Error::internal("brotli refuses a parameter"));
            }
        }
        Ok(())
    }

    fn chunk_bytes(&self) -> usize {
        effort(self.quality).0
    }

    fn price(&self) -> Price {
        effort(self.quality).1
    }

    fn call(&mut self, chunk: &[u8], last: bool, room: &mut [u8]) -> Result<Called> {
        let operation = if last {
            BrotliEncoderOperation::BROTLI_OPERATION_FINISH
        } else {
            BrotliEncoderOperation::BROTLI_OPERATION_FLUSH
        };
        let (mut left, mut consumed) = (chunk.len(), 0);
        let (mut room_left, mut produced) = (room.len(), 0);
        let works = self.state.compress_stream(
            operation,
            &mut left,
            chunk,
            &mut consumed,
            &mut room_left,
            room,
            &mut produced,
            &mut None,
            &mut |_, _, _, _| (),
        );
        if !works {
            return Err(Error::internal("brotli fails"));
        }
        let is_done =
            left == 0 && if last { self.state.is_finished() } else { !self.state.has_more_output() };
        Ok(Called { consumed, produced, is_done })
    }

    fn bound(&self, uncompressed: usize) -> usize {
        uncompressed + 16 * (uncompressed / self.chunk_bytes() + 2) + 16
    }

    /// The library does not report it, and releases nearly all of it after a page.
    fn held_bytes(&self) -> usize {
        size_of::<BrotliEncoderStateStruct<StandardAlloc>>()
    }
}
