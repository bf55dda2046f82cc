//! BYTE_STREAM_SPLIT: the first bytes of all values, then the second bytes, and so on.
//!
//! Source: `Encodings.md`, "Byte Stream Split".

use marquetry_base::{Bytes, Error, Result};
use marquetry_kernels::bss;

use super::too_few_values;

/// A decoder of values of one width. It needs the page whole: its streams follow one another.
#[derive(Debug, Clone)]
pub(crate) struct ByteStreamSplit {
    bytes: Bytes,
    width: usize,
    values: usize,
    next: usize,
}

impl ByteStreamSplit {
    /// A decoder of the streams that `bytes` are.
    pub(crate) fn new(bytes: Bytes, width: usize) -> Result<ByteStreamSplit> {
        let values = bytes.len().checked_div(width).unwrap_or(0);
        if values * width != bytes.len() {
            return Err(Error::corrupt(alloc::format!(
                "{} bytes are no {width} streams of equal length",
                bytes.len()
            )));
        }
        Ok(ByteStreamSplit { bytes, width, values, next: 0 })
    }

    /// An error unless `count` values are left: asked before room is made for wide ones.
    pub(crate) fn check_left(&self, count: usize) -> Result<()> {
        if count <= self.values - self.next || self.width == 0 { Ok(()) } else { Err(too_few_values()) }
    }

    /// Decodes as many values as `out` has room for, byte by byte as PLAIN would hold them.
    pub(crate) fn decode(&mut self, out: &mut [u8]) -> Result<()> {
        if self.width == 0 {
            return if out.is_empty() { Ok(()) } else { Err(too_few_values()) };
        }
        let wanted = out.len() / self.width;
        if wanted > self.values - self.next {
            return Err(too_few_values());
        }
        bss::decode(self.width, &self.bytes, self.values, self.next, out)
            .map_err(|_| Error::internal("streams of a checked length were refused"))?;
        self.next += wanted;
        Ok(())
    }
}
