//! GZIP: one member (RFC 1952), whose deflate stream is `zlib-rs`'s.

use crc32fast::Hasher;
use marquetry_base::cast::low_u32;
use marquetry_base::{Error, Levels, Price, Result};
use zlib_rs::{Deflate, DeflateConfig, DeflateFlush, Status};

use super::stream::{Called, Stream};

pub(super) const LEVELS: Levels = Levels { least: 0, most: 9, default: 6 };

/// Writes a page as one member.
pub(crate) struct Gzip {
    level: i32,
    deflate: Deflate,
    crc: Hasher,
    length: u64,
    /// The part of the frame to be written, and how much of it was.
    frame: [u8; HEADER_BYTES],
    frame_bytes: usize,
    written: usize,
    /// The deflate stream has ended.
    ended: bool,
}

const HEADER_BYTES: usize = 10;
const TRAILER_BYTES: usize = 8;

/// Deflate, no flags, no time, no hint, an unknown system.
const HEADER: [u8; HEADER_BYTES] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/// What zlib-rs does not report: a window of twice 32 KiB, two tables, and pending output.
pub(super) const HELD_BYTES: usize = (64 << 10) + (128 << 10) + (64 << 10) + (64 << 10);

/// The prices of bytes and calls, by level. Measured (`examples/compress.rs`): the longest calls are one that also
/// writes a block of 16,384 symbols, and one at level 8 with periodic data.
const PRICE_FASTEST: Price = Price { kib: 14_000, kilovalue: 40_000 << 10 };
const PRICE_FAST: Price = Price { kib: 15_000, kilovalue: 60_000 << 10 };
const PRICE_USUAL: Price = Price { kib: 30_000, kilovalue: 60_000 << 10 };
const PRICE_HIGH: Price = Price { kib: 75_000, kilovalue: 60_000 << 10 };
const PRICE_BEST: Price = Price { kib: 190_000, kilovalue: 60_000 << 10 };

/// The bytes of a chunk and the price of a level: chunks are as large as 250,000 units allow.
pub(super) const fn effort(level: i32) -> (usize, Price) {
    match level {
        ..=1 => (8 << 10, PRICE_FASTEST),
        2..=5 => (8 << 10, PRICE_FAST),
        6 => (4 << 10, PRICE_USUAL),
        7 => (2 << 10, PRICE_HIGH),
        _ => (1 << 10, PRICE_BEST),
    }
}

impl Gzip {
    pub(crate) fn new(level: i32) -> Gzip {
        Gzip {
            level,
            // No zlib header; the largest window.
            deflate: Deflate::new_with_config(DeflateConfig {
                window_bits: -15,
                level,
                ..DeflateConfig::default()
            }),
            crc: Hasher::new(),
            length: 0,
            frame: HEADER,
            frame_bytes: 0,
            written: 0,
            ended: false,
        }
    }

    fn write_frame(&mut self, room: &mut [u8]) -> usize {
        let left = &self.frame[self.written..self.frame_bytes];
        let take = left.len().min(room.len());
        room[..take].copy_from_slice(&left[..take]);
        self.written += take;
        take
    }
}

impl Stream for Gzip {
    fn start(&mut self, _: usize) -> Result<()> {
        self.deflate.reset();
        (self.crc, self.length) = (Hasher::new(), 0);
        (self.frame, self.frame_bytes, self.written, self.ended) = (HEADER, HEADER_BYTES, 0, false);
        Ok(())
    }

    fn chunk_bytes(&self) -> usize {
        effort(self.level).0
    }

    fn price(&self) -> Price {
        effort(self.level).1
    }

    fn call(&mut self, chunk: &[u8], last: bool, room: &mut [u8]) -> Result<Called> {
        let mut produced = self.write_frame(room);
        let mut consumed = 0;
        if !self.ended {
            let flush = if last { DeflateFlush::Finish } else { DeflateFlush::NoFlush };
            let (before_in, before_out) = (self.deflate.total_in(), self.deflate.total_out());
            let status = self
                .deflate
                .compress(chunk, &mut room[produced..], flush)
                .map_err(|error| Error::internal(format!("zlib-rs fails: {}", error.as_str())))?;
            let count = |now: u64, before: u64| usize::try_from(now - before).unwrap_or(0);
            consumed = count(self.deflate.total_in(), before_in);
            produced += count(self.deflate.total_out(), before_out);
            self.crc.update(&chunk[..consumed]);
            self.length += consumed as u64;
            if status == Status::StreamEnd {
                self.ended = true;
                let crc = core::mem::take(&mut self.crc).finalize().to_le_bytes();
                self.frame[..4].copy_from_slice(&crc);
                self.frame[4..TRAILER_BYTES].copy_from_slice(&low_u32(self.length).to_le_bytes());
                (self.frame_bytes, self.written) = (TRAILER_BYTES, 0);
                produced += self.write_frame(&mut room[produced..]);
            }
        }
        let is_written = self.written == self.frame_bytes;
        let is_done = if last { self.ended && is_written } else { produced < room.len() };
        Ok(Called { consumed, produced, is_done })
    }

    /// Stored blocks, which all levels fall back to: 5 bytes for each 16 KiB or more, and less than one per 64 bytes at
    /// the one level that does not.
    fn bound(&self, uncompressed: usize) -> usize {
        uncompressed + uncompressed / 8 + 64 + HEADER_BYTES + TRAILER_BYTES
    }

    fn held_bytes(&self) -> usize {
        HELD_BYTES
    }
}
