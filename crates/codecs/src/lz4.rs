//! LZ4_RAW: one LZ4 block, without a frame.

use lz4_flex::block::{DecompressError, decompress_into};
use marquetry_base::{Codec, Price, Result};

use crate::oneshot::Block;
use crate::page::{Ratio, corrupt};

#[derive(Debug)]
pub(crate) struct Lz4Raw;

impl Block for Lz4Raw {
    const CODEC: Codec = Codec::Lz4Raw;

    /// The best that a byte can do is to lengthen a match by 255.
    const RATIO_MAX: Ratio = Ratio { output: 255, input: 1 };

    /// Measured at 20 to 350 for what encoders write, 1,800 for nothing but overlapping matches of four bytes
    /// (`examples/prices.rs`).
    const PRICE: Price = Price::per_kib(2_000);

    fn length(&self, _: &[u8]) -> Result<Option<usize>> {
        Ok(None)
    }

    fn decompress(&mut self, input: &[u8], output: &mut [u8]) -> Result<usize> {
        let announced = output.len();
        decompress_into(input, output).map_err(|error| match error {
            DecompressError::OutputTooSmall { .. } => corrupt(
                Self::CODEC,
                format_args!("it has more than the announced {announced} uncompressed bytes"),
            ),
            error => corrupt(Self::CODEC, error),
        })
    }
}
