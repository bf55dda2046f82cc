//! The chunks of Data.db: checked, decompressed, and put one behind the other.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::{u64_of, usize_of, usize_of_u32};
use marquetry_base::{
    Budget, Bytes, Codecs, Decompressor, Demand, Error, Input, Limit, Limits, Object, Price, Priority,
    Release, Result, Status, Want, release_all,
};
use marquetry_kernels::crc32;

use super::checksums::Checksums;
use super::compression_info::{CHECKSUM_BYTES, CompressionInfo, Compressor, EMPTY_CHUNKS_MAX};
use super::elements::CRC_PRICE;

/// Bytes that are asked for at a time, and as many that will be needed next.
const READ_BYTES: u64 = 1 << 20;
/// Bytes of a chunk of data that have no checksums.
const UNCHECKED_BYTES: u32 = 64 << 10;
/// The CRC-32 of nothing: that of an empty chunk.
const EMPTY_SUM: u32 = 0;
/// The smallest chunk: those of servers have a kibibyte at least. An element is looked at again with every chunk.
const CHUNK_BYTES_MIN: u32 = 256;
/// Bytes that are checked, copied or cleared in one go.
const SLICE_BYTES: usize = 64 << 10;

/// The price of copying a byte, or clearing it in new memory.
const COPY_PRICE: Price = Price::per_kib(450);

/// What Data.db is made of, beside itself.
#[derive(Debug, Clone)]
pub enum Packing {
    /// It is compressed: what CompressionInfo.db says.
    Compressed(Arc<CompressionInfo>),
    /// It is not compressed: what CRC.db says, if it is there.
    Plain(Option<Arc<Checksums>>),
}

/// Decompressed bytes that were not used yet, with room for more behind them.
#[derive(Debug, Default)]
pub(super) struct Window {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Window {
    /// The bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Uses bytes at its start.
    pub(super) fn consume(&mut self, bytes: usize) {
        self.start = self.start.saturating_add(bytes).min(self.end);
    }
}

/// What [`Chunks::fill`] did.
pub(super) enum Filled {
    /// The window has a chunk more.
    More,
    /// It needs bytes of the file.
    Need(Demand),
    /// The budget is spent.
    Yield,
    /// There are no more chunks.
    End,
}

/// A reader of chunks.
pub(super) struct Chunks {
    object: Object,
    packing: Packing,
    codecs: Arc<dyn Codecs>,
    decompressor: Option<Box<dyn Decompressor>>,
    limits: Limits,
    file_bytes: Option<u64>,
    input: Input,
    /// The next chunk, and the one after the last that is wanted.
    next: usize,
    last: usize,
    /// Bytes at the start of the first chunk that are not wanted.
    skip: usize,
    state: State,
    /// The checksum that the file must have, and that of the bytes so far.
    digest: Option<(u32, u32)>,
}

/// What is done with the next chunk.
#[derive(Debug, Clone, PartialEq)]
enum State {
    /// Nothing yet.
    Idle,
    /// Room is made in the window. (The codec has been asked before whether so few bytes can become so many.)
    Room { bytes: usize, then: Unpack, left: Range<u64> },
    /// Its checksum is computed.
    Check { left: Range<u64>, sum: u32 },
    /// It is copied.
    Copy { left: Range<u64> },
    /// It is decompressed.
    Unpack { left: Range<u64>, produced: usize },
}

/// How a chunk's bytes get into the window.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Unpack {
    Copy,
    Decompress,
}

impl Chunks {
    pub(super) fn new(object: Object, packing: Packing, codecs: Arc<dyn Codecs>, limits: Limits) -> Chunks {
        Chunks {
            object,
            packing,
            codecs,
            decompressor: None,
            limits,
            file_bytes: None,
            input: Input::new(),
            next: 0,
            last: 0,
            skip: 0,
            state: State::Idle,
            digest: None,
        }
    }

    /// The data's bytes, uncompressed, once the file's length is known.
    pub(super) fn data_bytes(&self) -> Option<u64> {
        let file_bytes = self.file_bytes?;
        Some(match &self.packing {
            Packing::Compressed(info) => info.data_bytes,
            Packing::Plain(_) => file_bytes,
        })
    }

    pub(super) fn file_bytes(&self) -> Option<u64> {
        self.file_bytes
    }

    /// Sets the file's length.
    pub(super) fn set_file_bytes(&mut self, bytes: u64) {
        self.file_bytes = Some(bytes);
    }

    /// Begins to read this part of the data, whose `digest` is checked if it is all of them.
    pub(super) fn begin(&mut self, range: &Range<u64>, digest: Option<u32>) -> Result<()> {
        let (file_bytes, data_bytes) = (self.file_bytes.unwrap_or(0), self.data_bytes().unwrap_or(0));
        let chunk_bytes = self.chunk_bytes();
        let fault = |message: alloc::string::String| Err(Error::corrupt(message));
        if chunk_bytes < CHUNK_BYTES_MIN {
            return fault(format!("chunks of {chunk_bytes} bytes"));
        }
        let largest = u64::from(chunk_bytes).min(data_bytes);
        self.limits.check(Limit::PageBytes, largest)?;
        let chunks = data_bytes.div_ceil(u64::from(chunk_bytes));
        match &self.packing {
            Packing::Compressed(info) => {
                let end = info.offsets.last().map_or(Some(0), |last| last.checked_add(CHECKSUM_BYTES));
                if u64_of(info.chunks()) < chunks || end.is_none_or(|end| end > file_bytes) {
                    return fault(format!("chunks that end beyond the file's {file_bytes} bytes"));
                }
            }
            Packing::Plain(Some(checksums)) => {
                let (sums, first) = (&checksums.sums, usize_of(chunks).unwrap_or(usize::MAX));
                let has_enough = (first..=first.saturating_add(EMPTY_CHUNKS_MAX)).contains(&sums.len());
                if !has_enough || !(first..sums.len()).all(|after| sums.get(after) == Some(&EMPTY_SUM)) {
                    return fault(format!("checksums of {} chunks for {chunks}", sums.len()));
                }
            }
            Packing::Plain(_) => {}
        }
        let number = |at: u64| usize_of(at).unwrap_or(usize::MAX);
        self.next = number(range.start / u64::from(chunk_bytes));
        self.last = number(range.end.div_ceil(u64::from(chunk_bytes)));
        self.skip = number(range.start % u64::from(chunk_bytes));
        if *range == (0..data_bytes) {
            self.digest = digest.map(|digest| (digest, 0));
            if let Packing::Compressed(info) = &self.packing {
                // Those at the end that are empty are part of the file.
                self.last = info.chunks();
            }
        }
        Ok(())
    }

    /// Puts the next chunk behind what the window holds.
    pub(super) fn fill(&mut self, window: &mut Window, budget: &mut Budget<'_>) -> Result<Filled> {
        loop {
            let filled = self.advance(window, budget).map_err(|error| self.at_chunk(error))?;
            match filled {
                None if budget.is_spent() => return Ok(Filled::Yield),
                None => {}
                Some(filled) => return Ok(filled),
            }
        }
    }

    /// Where the next chunk begins in the file; of what was just read, rather than the next one, where that is known.
    pub(super) fn file_offset(&self, data_offset: u64) -> u64 {
        let chunk = data_offset / u64::from(self.chunk_bytes().max(1));
        match &self.packing {
            Packing::Compressed(info) => {
                usize_of(chunk).and_then(|chunk| info.offsets.get(chunk)).copied().unwrap_or(0)
            }
            Packing::Plain(_) => data_offset,
        }
    }

    /// Whether offsets in the file are not those in the data.
    pub(super) fn is_compressed(&self) -> bool {
        matches!(self.packing, Packing::Compressed(_))
    }

    /// Where the chunk begins in the data that this place is in.
    pub(super) fn chunk_start(&self, data_offset: u64) -> u64 {
        data_offset - data_offset % u64::from(self.chunk_bytes().max(1))
    }

    /// Where it ends, if it is not the last one.
    pub(super) fn chunk_end(&self, data_offset: u64) -> u64 {
        self.chunk_start(data_offset).saturating_add(u64::from(self.chunk_bytes()))
    }

    fn at_chunk(&self, error: Error) -> Error {
        match self.chunk_file(self.next) {
            Ok(range) => error.at_offset(range.start),
            Err(_) => error,
        }
    }

    fn chunk_bytes(&self) -> u32 {
        match &self.packing {
            Packing::Compressed(info) => info.chunk_bytes,
            Packing::Plain(Some(checksums)) => checksums.chunk_bytes,
            Packing::Plain(None) => UNCHECKED_BYTES,
        }
    }

    /// The bytes of a chunk in the file.
    fn chunk_file(&self, number: usize) -> Result<Range<u64>> {
        let file_bytes = self.file_bytes.unwrap_or(0);
        let beyond = || Error::corrupt("a chunk beyond the file's end");
        match &self.packing {
            Packing::Compressed(info) => {
                info.chunk(number, file_bytes).filter(|chunk| chunk.start <= chunk.end).ok_or_else(beyond)
            }
            Packing::Plain(_) => {
                let bytes = u64::from(self.chunk_bytes());
                let start = u64_of(number).checked_mul(bytes).filter(|start| *start < file_bytes);
                let start = start.ok_or_else(beyond)?;
                Ok(start..file_bytes.min(start.saturating_add(bytes)))
            }
        }
    }

    /// The bytes that a chunk becomes.
    fn chunk_data(&self, number: usize) -> Result<usize> {
        let range = match &self.packing {
            Packing::Compressed(info) => info.chunk_data(number),
            Packing::Plain(_) => self.chunk_file(number)?,
        };
        usize_of(range.end - range.start).ok_or_else(|| Error::out_of_memory(usize::MAX))
    }

    fn advance(&mut self, window: &mut Window, budget: &mut Budget<'_>) -> Result<Option<Filled>> {
        match self.state.clone() {
            State::Idle => {
                if self.next >= self.last {
                    return self.end();
                }
                let chunk = self.chunk_file(self.next)?;
                self.limits.check(Limit::PageBytes, chunk.end - chunk.start)?;
                let end = if self.is_compressed() { chunk.end + CHECKSUM_BYTES } else { chunk.end };
                if let Some(missing) = self.input.missing(chunk.start..end) {
                    return Ok(Some(Filled::Need(self.demand(missing, end))));
                }
                self.state = match self.packing {
                    Packing::Plain(None) => self.unpack()?,
                    _ => State::Check { left: chunk, sum: 0 },
                };
            }
            State::Check { mut left, mut sum } => {
                if left.is_empty() {
                    self.check(left.end, sum)?;
                    self.state = self.unpack()?;
                    return Ok(None);
                }
                let slice = self.slice(&left, u64_of(SLICE_BYTES))?;
                budget.charge(CRC_PRICE, slice.len(), 1);
                sum = crc32(sum, &slice);
                if let Some((_, digest)) = &mut self.digest {
                    budget.charge(CRC_PRICE, slice.len(), 1);
                    *digest = crc32(*digest, &slice);
                }
                left.start += u64_of(slice.len());
                self.state = State::Check { left, sum };
            }
            State::Room { bytes, then, left } => {
                if window.make_room(bytes, budget)? {
                    self.state = match then {
                        Unpack::Copy => State::Copy { left },
                        Unpack::Decompress => State::Unpack { left, produced: 0 },
                    };
                }
            }
            State::Copy { mut left } => {
                if left.is_empty() {
                    return self.done(window, left.end);
                }
                let slice = self.slice(&left, u64_of(SLICE_BYTES))?;
                budget.charge(COPY_PRICE, slice.len(), 1);
                let room = window.buffer.get_mut(window.end..window.end + slice.len());
                let room = room.ok_or_else(|| Error::internal("a chunk larger than its room"))?;
                room.copy_from_slice(&slice);
                window.end += slice.len();
                left.start += u64_of(slice.len());
                self.state = State::Copy { left };
            }
            State::Unpack { left, produced } => return self.step(window, left, produced, budget),
        }
        Ok(None)
    }

    /// Decompresses as much of a chunk as the budget pays for.
    fn step(
        &mut self,
        window: &mut Window,
        mut left: Range<u64>,
        produced: usize,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Filled>> {
        let bytes = self.chunk_data(self.next)?;
        let piece = self.input.segment(left.start, left.end - left.start);
        let is_last = u64_of(piece.len()) == left.end - left.start;
        let decompressor = self.decompressor.as_mut().ok_or_else(|| Error::internal("no decompressor"))?;
        let page = window.buffer.get_mut(window.end..window.end + bytes);
        let page = page.ok_or_else(|| Error::internal("a chunk larger than its room"))?;
        let progress = decompressor.step(&piece, is_last, page, produced, budget)?;
        left.start += u64_of(progress.consumed);
        let produced = produced + progress.produced;
        let stuck = progress.consumed == 0 && progress.produced == 0;
        match progress.status {
            Status::End if produced == bytes && left.is_empty() => {
                window.end += bytes;
                return self.done(window, left.end);
            }
            Status::End => {
                return Err(Error::corrupt(format!("a chunk of {produced} bytes that should have {bytes}")));
            }
            Status::NeedInput if is_last && stuck => return Err(Error::corrupt("a chunk that ends early")),
            Status::NeedRoom if stuck => {
                return Err(Error::corrupt(format!("a chunk of more than {bytes} bytes")));
            }
            Status::NeedMemory(more) => {
                Limit::WindowBytes.check(self.limits.window_bytes, u64_of(more))?;
            }
            Status::NeedInput | Status::NeedRoom | Status::Yield => {}
        }
        self.state = State::Unpack { left, produced };
        Ok((progress.status == Status::Yield).then_some(Filled::Yield))
    }

    /// Ends a chunk, whose bytes are in the window.
    fn done(&mut self, window: &mut Window, file_end: u64) -> Result<Option<Filled>> {
        window.consume(core::mem::take(&mut self.skip));
        let end = if self.is_compressed() { file_end + CHECKSUM_BYTES } else { file_end };
        self.input.release(0..end);
        (self.next, self.state) = (self.next + 1, State::Idle);
        Ok(Some(Filled::More))
    }

    fn end(&mut self) -> Result<Option<Filled>> {
        if let Some((stored, computed)) = self.digest.take()
            && stored != computed
        {
            let message = format!("the file's checksum is {computed:08x}, but Digest.crc32 has {stored:08x}");
            return Err(Error::checksum(message));
        }
        Ok(Some(Filled::End))
    }

    /// Compares a chunk's checksum with the one that is stored.
    fn check(&mut self, end: u64, sum: u32) -> Result<()> {
        let stored = match &self.packing {
            Packing::Compressed(_) => {
                let stored = self.input.contiguous(end..end + CHECKSUM_BYTES)?;
                let stored = stored.ok_or_else(|| Error::internal("a checksum that was released"))?;
                if let Some((_, digest)) = &mut self.digest {
                    *digest = crc32(*digest, &stored);
                }
                u32::from_be_bytes(stored.as_ref().try_into().unwrap_or_default())
            }
            Packing::Plain(Some(checksums)) => checksums.sums.get(self.next).copied().unwrap_or_default(),
            Packing::Plain(None) => sum,
        };
        if stored == sum {
            return Ok(());
        }
        Err(Error::checksum(format!("a chunk has the CRC-32 {sum:08x}, but {stored:08x} is stored")))
    }

    /// Begins to copy or to decompress a chunk.
    fn unpack(&mut self) -> Result<State> {
        let bytes = self.chunk_data(self.next)?;
        let mut left = self.chunk_file(self.next)?;
        let packed = left.end - left.start;
        let then = Unpack::Copy;
        let Packing::Compressed(info) = &self.packing else { return Ok(State::Room { bytes, then, left }) };
        if info.is_raw(packed) {
            // A last one that is shorter is filled up, so that its length says that it is as it is.
            let is_filled_up = info.compressed_bytes_max.map(u64::from) == Some(packed)
                && info.chunk_data(self.next).end == info.data_bytes
                && u64_of(bytes) < packed;
            if packed != u64_of(bytes) && !is_filled_up {
                return Err(Error::corrupt(format!("a chunk of {packed} bytes that should have {bytes}")));
            }
            left.end = left.start + u64_of(bytes);
            return Ok(State::Room { bytes, then, left });
        }
        let codec = info.compressor.codec().ok_or_else(|| Error::internal("a compressor without a codec"))?;
        if matches!(info.compressor, Compressor::Lz4 | Compressor::Lz4WithDictionary) {
            let stored = self.input.contiguous(left.start..left.end.min(left.start + 4))?;
            let stored = stored.and_then(|stored| <[u8; 4]>::try_from(stored.as_ref()).ok());
            let stored = stored.map(u32::from_le_bytes);
            if stored.map(usize_of_u32) != Some(bytes) {
                return Err(Error::corrupt(format!("a chunk that does not say that it has {bytes} bytes")));
            }
            left.start += 4;
        }
        let decompressor = match &mut self.decompressor {
            Some(decompressor) => decompressor,
            none => none.insert(match info.dictionary.as_slice() {
                [] => self.codecs.decompressor(codec)?,
                dictionary => self.codecs.decompressor_with_dictionary(codec, dictionary)?,
            }),
        };
        decompressor.start(usize_of(left.end - left.start).unwrap_or(usize::MAX), bytes, true)?;
        Ok(State::Room { bytes, then: Unpack::Decompress, left })
    }

    /// The first bytes of a range that lie together.
    fn slice(&self, range: &Range<u64>, most: u64) -> Result<Bytes> {
        let slice = self.input.segment(range.start, (range.end - range.start).min(most));
        if slice.is_empty() { Err(Error::internal("bytes of a chunk that were released")) } else { Ok(slice) }
    }

    /// Asks for bytes up to a chunk's end, or for as many as are read at a time; and for some of what follows.
    fn demand(&self, missing: Range<u64>, chunk_end: u64) -> Demand {
        let file_bytes = self.file_bytes.unwrap_or(0);
        let last = self.last.checked_sub(1).and_then(|last| self.chunk_file(last).ok());
        let file_end = last.map_or(file_bytes, |last| match self.is_compressed() {
            true => last.end + CHECKSUM_BYTES,
            false => last.end,
        });
        let end = chunk_end.max(missing.start.saturating_add(READ_BYTES).min(file_end));
        let now = self.input.missing(missing.start..end).unwrap_or(missing);
        let mut demand = Demand::now(self.object, now.clone());
        let soon = now.end..now.end.saturating_add(READ_BYTES).min(file_end);
        if let Some(soon) = self.input.missing(soon).filter(|soon| !soon.is_empty()) {
            demand.push(Want::Range(self.object, soon, Priority::Soon));
        }
        demand
    }

    /// Keeps bytes of the file.
    pub(super) fn supply(&mut self, start: u64, bytes: Bytes) -> Result<()> {
        // What comes before the next chunk was used, or is not wanted.
        let wanted = match self.file_bytes.map(|_| self.chunk_file(self.next)) {
            Some(Ok(chunk)) => chunk.start,
            _ => 0,
        };
        let skip = usize_of(wanted.saturating_sub(start)).unwrap_or(usize::MAX).min(bytes.len());
        self.input.supply(start + u64_of(skip), bytes.slice(skip..))
    }

    pub(super) fn object(&self) -> Object {
        self.object
    }
}

impl Window {
    /// Moves what it holds to its start, and makes room behind it. False if the budget is spent first.
    fn make_room(&mut self, bytes: usize, budget: &mut Budget<'_>) -> Result<bool> {
        if self.start > 0 {
            budget.charge(COPY_PRICE, self.end - self.start, 1);
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let wanted = self.end + bytes;
        if self.buffer.len() >= wanted {
            return Ok(true);
        }
        if self.buffer.capacity() < wanted {
            budget.charge(COPY_PRICE, self.end, 1);
            self.buffer.truncate(self.end);
            let more = wanted - self.buffer.len();
            self.buffer.try_reserve_exact(more).map_err(|_| Error::out_of_memory(more))?;
        }
        while self.buffer.len() < wanted {
            let slice = (wanted - self.buffer.len()).min(SLICE_BYTES);
            budget.charge(COPY_PRICE, slice, 1);
            self.buffer.resize(self.buffer.len() + slice, 0);
            if budget.is_spent() {
                return Ok(self.buffer.len() >= wanted);
            }
        }
        Ok(true)
    }
}

impl Release for Window {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        (self.start, self.end) = (0, 0);
        self.buffer.release(budget)
    }
}

/// What others hold, too, is left to them.
impl Release for Packing {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        match self {
            Packing::Compressed(info) => info.release(budget),
            Packing::Plain(sums) => sums.as_mut().is_none_or(|sums| sums.release(budget)),
        }
    }
}

impl Release for Chunks {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.decompressor = None;
        release_all(&mut [&mut self.input, &mut self.packing], budget)
    }
}

impl core::fmt::Debug for Chunks {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Chunks").field("next", &self.next).field("state", &self.state).finish_non_exhaustive()
    }
}

/// An error of Data.db.
pub(super) fn of_data(error: Error) -> Error {
    error.at(|place| place.object = Some("Data.db".to_string()))
}
