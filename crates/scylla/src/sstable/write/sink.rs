//! Data.db: bytes in chunks, compressed or not, with their checksums.

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Compressor as Coder, Error, Result, Segmented, Status};
use marquetry_kernels::crc32;

use super::options::WriteCompression;
use super::out::Out;
use crate::sstable::compression_info::Compressor;
use crate::sstable::elements::CRC_PRICE;
use crate::sstable::toc::Component;
use crate::sstable::version::Version;

/// Bytes of a chunk that is not compressed: those of `ChecksummedSequentialWriter`.
const PLAIN_CHUNK_BYTES: usize = 64 << 10;
/// No chunk is stored as it is: what servers write for a `min_compress_ratio` of 0, their default.
const COMPRESSED_BYTES_MAX: u32 = 0x7fff_ffff;

/// Where the data go.
pub(super) struct Sink {
    version: Version,
    compression: Option<WriteCompression>,
    coder: Option<Box<dyn Coder>>,
    chunk_bytes: usize,
    chunk: Vec<u8>,
    /// Bytes of the chunk that the coder has consumed, once it works on it.
    consumed: Option<usize>,
    /// What the chunk has become so far.
    room: Vec<u8>,
    produced: usize,
    /// Uncompressed bytes, and those of the file.
    position: u64,
    file_bytes: u64,
    /// The checksum of the file.
    digest: u32,
    /// Of compressed data where chunks begin, or else their checksums.
    offsets: Segmented<u64>,
    sums: Segmented<u32>,
}

impl Sink {
    pub(super) fn new(
        version: Version,
        compression: Option<WriteCompression>,
        coder: Option<Box<dyn Coder>>,
    ) -> Sink {
        let chunk_bytes = match &compression {
            Some(compression) => compression.chunk_bytes,
            None => PLAIN_CHUNK_BYTES,
        };
        Sink {
            version,
            compression,
            coder,
            chunk_bytes,
            chunk: Vec::with_capacity(chunk_bytes),
            consumed: None,
            room: Vec::new(),
            produced: 0,
            position: 0,
            file_bytes: 0,
            digest: 0,
            offsets: Segmented::new(),
            sums: Segmented::new(),
        }
    }

    /// Where the next byte will be in the data, uncompressed.
    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Bytes of the file so far.
    pub(super) fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// Takes as many bytes as the chunk has room for; returns the others. A full chunk must be [sealed](Sink::seal) first.
    pub(super) fn take<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let (part, rest) = bytes.split_at(bytes.len().min(self.room()));
        self.chunk.extend_from_slice(part);
        self.position += u64_of(part.len());
        rest
    }

    /// How many more bytes the chunk has room for.
    pub(super) fn room(&self) -> usize {
        self.chunk_bytes - self.chunk.len()
    }

    /// Whether the chunk is full.
    pub(super) fn is_full(&self) -> bool {
        self.chunk.len() == self.chunk_bytes
    }

    /// Whether there is a chunk that was not written yet.
    pub(super) fn has_rest(&self) -> bool {
        !self.chunk.is_empty()
    }

    /// Writes the chunk; false if the budget is spent before that is done.
    ///
    /// # Errors
    ///
    /// The compressor's.
    pub(super) fn seal(&mut self, out: &mut Out, budget: &mut Budget<'_>) -> Result<bool> {
        let before = if self.is_lz4() { 4 } else { 0 };
        let Some(coder) = &mut self.coder else {
            let sum = crc32(0, &self.chunk);
            budget.charge(CRC_PRICE, 2 * self.chunk.len(), 1);
            match &self.compression {
                // As they are, in chunks with checksums.
                Some(_) => self.append_chunk(out, false),
                None => {
                    self.sums.push(sum);
                    self.digest = crc32(self.digest, &self.chunk);
                    self.file_bytes += u64_of(self.chunk.len());
                    out.push(&Component::Data, &self.chunk, budget);
                    self.chunk.clear();
                }
            }
            return Ok(true);
        };
        if self.consumed.is_none() {
            coder.start(self.chunk.len())?;
            self.room.resize(before + coder.bound(self.chunk.len()), 0);
            (self.consumed, self.produced) = (Some(0), before);
        }
        loop {
            let consumed = self.consumed.unwrap_or(0);
            let input = self.chunk.get(consumed..).unwrap_or_default();
            let room = self.room.get_mut(self.produced..).unwrap_or_default();
            let progress = coder.step(input, true, room, budget)?;
            self.consumed = Some(consumed + progress.consumed);
            self.produced += progress.produced;
            match progress.status {
                Status::End => break,
                Status::Yield => return Ok(false),
                Status::NeedMemory(_) => {}
                Status::NeedInput => {
                    return Err(Error::internal("a compressor that wants more than a chunk"));
                }
                Status::NeedRoom => {
                    let bytes = self.room.len() + self.chunk_bytes;
                    self.room.resize(bytes, 0);
                }
            }
        }
        if before > 0 {
            let bytes = u32::try_from(self.chunk.len()).unwrap_or(u32::MAX);
            self.room[..4].copy_from_slice(&bytes.to_le_bytes());
        }
        budget.charge(CRC_PRICE, 2 * self.produced, 1);
        self.append_chunk(out, true);
        Ok(true)
    }

    fn append_chunk(&mut self, out: &mut Out, is_coded: bool) {
        let bytes = if is_coded { &self.room[..self.produced] } else { &self.chunk[..] };
        let sum = crc32(0, bytes).to_be_bytes();
        self.digest = crc32(crc32(self.digest, bytes), &sum);
        self.offsets.push(self.file_bytes);
        self.file_bytes += u64_of(bytes.len() + sum.len());
        out.push_now(&Component::Data, bytes);
        out.push_now(&Component::Data, &sum);
        self.chunk.clear();
        self.consumed = None;
    }

    fn is_lz4(&self) -> bool {
        self.compression.as_ref().is_some_and(|compression| compression.compressor == Compressor::Lz4)
    }

    /// What CompressionInfo.db has before the offsets, if the data are compressed.
    pub(super) fn compression_info(&self) -> Option<Vec<u8>> {
        let compression = self.compression.as_ref()?;
        let mut bytes = Vec::new();
        let text = |bytes: &mut Vec<u8>, text: &str| {
            bytes.extend(u16::try_from(text.len()).unwrap_or(0).to_be_bytes());
            bytes.extend(text.as_bytes());
        };
        text(&mut bytes, compression.compressor.name());
        let options = self.options();
        bytes.extend(u32::try_from(options.len()).unwrap_or(0).to_be_bytes());
        for (name, value) in options {
            text(&mut bytes, name);
            text(&mut bytes, &value);
        }
        bytes.extend(u32::try_from(self.chunk_bytes).unwrap_or(0).to_be_bytes());
        if self.version.has_max_compressed_length() {
            bytes.extend(COMPRESSED_BYTES_MAX.to_be_bytes());
        }
        bytes.extend(self.position.to_be_bytes());
        bytes.extend(u32::try_from(self.offsets.len()).unwrap_or(u32::MAX).to_be_bytes());
        Some(bytes)
    }

    /// The compressor's options, as the servers that write this version store them.
    fn options(&self) -> Vec<(&'static str, String)> {
        let level = self.compression.as_ref().and_then(|compression| compression.level);
        match level {
            Some(level) if self.compressor() == Some(Compressor::Zstd) => {
                alloc::vec![("compression_level", level.to_string())]
            }
            _ => Vec::new(),
        }
    }

    fn compressor(&self) -> Option<Compressor> {
        self.compression.as_ref().map(|compression| compression.compressor)
    }

    /// Where chunks begin, in the file.
    pub(super) fn offsets(&self) -> &Segmented<u64> {
        &self.offsets
    }

    /// The checksums of chunks that are not compressed.
    pub(super) fn sums(&self) -> &Segmented<u32> {
        &self.sums
    }

    /// Bytes of a chunk.
    pub(super) fn chunk_bytes(&self) -> usize {
        self.chunk_bytes
    }

    /// The checksum of Data.db.
    pub(super) fn digest(&self) -> u32 {
        self.digest
    }
}
