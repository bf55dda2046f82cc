//! Zlib: one stream (RFC 1950), which `zlib-rs` writes with its header and checksum. Only SSTables have such.

use marquetry_base::{Error, Levels, Price, Result};
use zlib_rs::{Deflate, DeflateConfig, DeflateFlush, Status};

use super::gzip::{self, effort};
use super::stream::{Called, Stream};

pub(super) const LEVELS: Levels = gzip::LEVELS;

/// Bytes of the header and of the checksum.
const FRAME_BYTES: usize = 2 + 4;

/// Writes a chunk as one stream.
pub(crate) struct Zlib {
    level: i32,
    deflate: Deflate,
    ended: bool,
}

impl Zlib {
    pub(crate) fn new(level: i32) -> Zlib {
        // With a zlib header; the largest window.
        let config = DeflateConfig { window_bits: 15, level, ..DeflateConfig::default() };
        Zlib { level, deflate: Deflate::new_with_config(config), ended: false }
    }
}

impl Stream for Zlib {
    fn start(&mut self, _: usize) -> Result<()> {
        self.deflate.reset();
        self.ended = false;
        Ok(())
    }

    fn chunk_bytes(&self) -> usize {
        effort(self.level).0
    }

    fn price(&self) -> Price {
        effort(self.level).1
    }

    fn call(&mut self, chunk: &[u8], last: bool, room: &mut [u8]) -> Result<Called> {
        let flush = if last { DeflateFlush::Finish } else { DeflateFlush::NoFlush };
        let (before_in, before_out) = (self.deflate.total_in(), self.deflate.total_out());
        if !self.ended {
            let status = self
                .deflate
                .compress(chunk, room, flush)
                .map_err(|error| Error::internal(format!("zlib-rs fails: {}", error.as_str())))?;
            self.ended = status == Status::StreamEnd;
        }
        let count = |now: u64, before: u64| usize::try_from(now - before).unwrap_or(0);
        let consumed = count(self.deflate.total_in(), before_in);
        let produced = count(self.deflate.total_out(), before_out);
        let is_done = if last { self.ended } else { produced < room.len() };
        Ok(Called { consumed, produced, is_done })
    }

    /// As GZIP's: the deflate stream is the same.
    fn bound(&self, uncompressed: usize) -> usize {
        uncompressed + uncompressed / 8 + 64 + FRAME_BYTES
    }

    fn held_bytes(&self) -> usize {
        gzip::HELD_BYTES
    }
}
