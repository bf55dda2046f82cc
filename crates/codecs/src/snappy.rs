//! SNAPPY: raw Snappy blocks, without Snappy's framing format.

use marquetry_base::{Codec, Price, Result};
use snap::raw::{Decoder, decompress_len};

use crate::oneshot::Block;
use crate::page::{Ratio, corrupt};

#[derive(Debug, Default)]
pub(crate) struct Snappy {
    decoder: Decoder,
}

impl Block for Snappy {
    const CODEC: Codec = Codec::Snappy;

    /// The best that an element can do is a copy with a two-byte offset: 3 bytes for 64.
    const RATIO_MAX: Ratio = Ratio { output: 64, input: 3 };

    /// Measured at 40 to 560 for what encoders write, 3,500 for nothing but overlapping copies of four bytes
    /// (`examples/prices.rs`).
    const PRICE: Price = Price::per_kib(4_000);

    fn length(&self, input: &[u8]) -> Result<Option<usize>> {
        decompress_len(input).map(Some).map_err(|error| corrupt(Self::CODEC, error))
    }

    fn decompress(&mut self, input: &[u8], output: &mut [u8]) -> Result<usize> {
        self.decoder.decompress(input, output).map_err(|error| corrupt(Self::CODEC, error))
    }
}
