//! The key of a partition, read where it begins in the data.

use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Budget, Bytes, Codecs, Demand, Error, Limits, Object, Release, Result, check_supply};

use crate::sstable::chunks::{Chunks, Filled, Packing, Window, of_data};

/// Bytes of a key's length.
const LENGTH_BYTES: u64 = 2;
/// Bytes that are read at first: most keys have fewer.
const FIRST_BYTES: u64 = 128;

/// Reads a partition's key from Data.db: the chunks it is in, and no others.
#[derive(Debug)]
pub(super) struct KeyReader {
    chunks: Chunks,
    /// Whole chunks, so that a key in them is read wherever it is.
    window: Window,
    /// Where the window begins in the data.
    start: u64,
    /// Where the key is.
    at: u64,
    /// Up to where chunks are being read.
    end: u64,
    /// No chunk is being put into the window.
    is_complete: bool,
}

/// What a [`KeyReader`] came to.
pub(super) enum Read {
    Key(Vec<u8>),
    Need(Demand),
    Yield,
}

impl KeyReader {
    pub(super) fn new(data: Object, packing: Packing, codecs: Arc<dyn Codecs>, limits: Limits) -> KeyReader {
        KeyReader {
            chunks: Chunks::new(data, packing, codecs, limits),
            window: Window::default(),
            start: 0,
            at: 0,
            end: 0,
            is_complete: true,
        }
    }

    pub(super) fn object(&self) -> Object {
        self.chunks.object()
    }

    /// The length of the data; what to ask for before that is known.
    pub(super) fn data_bytes(&self) -> Result<u64, Demand> {
        self.chunks.data_bytes().ok_or_else(|| Demand::length(self.chunks.object()))
    }

    /// Begins to read the key of the partition at this place in the data. What the window has of it is not read again.
    pub(super) fn begin(&mut self, at: u64) {
        let held = self.start..self.start.saturating_add(u64_of(self.window.bytes().len()));
        if !self.is_complete || !held.contains(&at) {
            self.window.consume(usize::MAX);
            (self.start, self.end) = (at, at);
        }
        (self.at, self.is_complete) = (at, true);
    }

    /// Goes on. The length of the data is known.
    pub(super) fn advance(&mut self, budget: &mut Budget<'_>) -> Result<Read> {
        self.go_on(budget).map_err(of_data)
    }

    fn go_on(&mut self, budget: &mut Budget<'_>) -> Result<Read> {
        let data_bytes = self.chunks.data_bytes().unwrap_or(0);
        loop {
            // (While a chunk is being copied, the window is not what it will be.)
            if self.is_complete {
                let window = self.window.bytes();
                let before = usize_of(self.at - self.start).unwrap_or(usize::MAX);
                let bytes = window.get(before..).unwrap_or_default();
                let needed = match bytes.split_first_chunk() {
                    Some((length, rest)) => {
                        let length = u16::from_be_bytes(*length);
                        if let Some(key) = rest.get(..usize::from(length)) {
                            return Ok(Read::Key(key.to_vec()));
                        }
                        LENGTH_BYTES + u64::from(length)
                    }
                    None => FIRST_BYTES,
                };
                let end = self.at.saturating_add(needed).min(data_bytes);
                // The window may have more than was asked for: all up to the end of a chunk.
                let held = self.at.saturating_add(u64_of(bytes.len()));
                if self.end < end && held < end {
                    self.read_to(end)?;
                }
            }
            self.is_complete = false;
            match self.chunks.fill(&mut self.window, budget)? {
                Filled::More => self.is_complete = true,
                Filled::Need(demand) => return Ok(Read::Need(demand)),
                Filled::Yield => return Ok(Read::Yield),
                Filled::End => {
                    return Err(Error::corrupt(alloc::format!(
                        "no partition begins at byte {} of the uncompressed data",
                        self.at
                    )));
                }
            }
            if budget.is_spent() {
                return Ok(Read::Yield);
            }
        }
    }

    /// Begins to read from the key up to there.
    fn read_to(&mut self, end: u64) -> Result<()> {
        self.window.consume(usize::MAX);
        self.start = self.chunks.chunk_start(self.at.min(end));
        self.chunks.begin(&(self.start..end), None)?;
        // Up to the end of a chunk, so that none is asked for again for a key after this one.
        self.end = self.chunks.chunk_end(end.saturating_sub(1));
        Ok(())
    }

    pub(super) fn supply(&mut self, range: &core::ops::Range<u64>, bytes: Bytes) -> Result<()> {
        check_supply(range, &bytes, self.chunks.file_bytes())?;
        self.chunks.supply(range.start, bytes)
    }

    pub(super) fn supply_length(&mut self, length: u64) -> Result<()> {
        match self.chunks.file_bytes() {
            Some(known) if known != length => Err(Error::misuse("an object whose length changes")),
            _ => {
                self.chunks.set_file_bytes(length);
                Ok(())
            }
        }
    }

    /// Where a chunk begins in the file, as errors say it.
    pub(super) fn file_offset(&self, data_offset: u64) -> u64 {
        self.chunks.file_offset(data_offset)
    }
}

impl Release for KeyReader {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.window.release(budget) && self.chunks.release(budget)
    }
}

const _: () = assert!(FIRST_BYTES > LENGTH_BYTES);
