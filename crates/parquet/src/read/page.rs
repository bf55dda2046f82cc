//! From a column chunk's bytes to its pages: headers, checksums, decompression.

use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::{u64_of, usize_of, usize_of_u32};
use marquetry_base::{
    Budget, Bytes, Codec, Codecs, Decompressor, Demand, Error, Input, Limits, Object, Price, Priority,
    Progress, Result, Status, Want,
};

use super::ReadOptions;
use crate::format::thrift::Stop;
use crate::format::{ColumnChunk, Compression, PageHeader, PageKind};

/// Bytes asked for to read a page header: most need less than 100; statistics make them longer.
const HEADER_GUESS_BYTES: u64 = 1 << 10;
/// A CRC's price: 64 bytes a nanosecond at best, 4 at worst.
const CRC_PRICE: Price = Price::per_kib(100);
/// Bytes whose CRC is computed at a time.
const CRC_SLICE_BYTES: u64 = 256 << 10;
/// A page header's price.
const HEADER_PRICE: Price = Price { kib: 1024, kilovalue: 300 << 10 };
/// A copy's price, of bytes that came in several pieces.
const COPY_PRICE: Price = Price::per_kib(150);
/// Bytes by which a column chunk may be longer than the footer says. Early parquet-mr forgot the dictionary page's header
/// in its sum (PARQUET-816).
pub(super) const FORGOTTEN_BYTES_MAX: u64 = 100;
/// Room that a page's decompression starts with, if it may become larger: it grows as bytes arrive.
const ROOM_MIN: usize = 64 << 10;
/// Bytes of room that are made at a time, and their price: memory that was never used has to be had from the system.
const ROOM_SLICE_BYTES: usize = 256 << 10;
const ROOM_PRICE: Price = Price::per_kib(150);
/// Bytes that are copied at a time.
const COPY_SLICE_BYTES: usize = 256 << 10;

/// A page, whole and decompressed.
#[derive(Debug, Clone)]
pub(super) struct Page {
    /// What its header says of it.
    pub(super) kind: PageKind,
    /// V2: repetition levels, then definition levels, which are never compressed. V1: empty.
    pub(super) levels: Bytes,
    /// V1: levels and values. V2 and dictionaries: values.
    pub(super) body: Bytes,
}

/// Reads the pages of one column chunk, one after the other.
pub(super) struct PageReader {
    object: Object,
    /// Where the next page header, or the body of the current page, starts.
    at: u64,
    /// Where the chunk ends.
    end: u64,
    /// Where it ends at the latest, if its length in the footer should be too small.
    end_max: u64,
    /// Pages begun, dictionary pages included.
    pages: u64,
    compression: Compression,
    expects: Expects,
    limits: Limits,
    verify_crc: bool,
    read_bytes: u64,
}

/// The decompressors that all columns of a reader share. A page is decompressed without another one's in between: a column
/// that yields in its middle is the one that goes on.
pub(super) struct Decompressors {
    codecs: Arc<dyn Codecs>,
    open: Vec<(Codec, Box<dyn Decompressor>)>,
}

impl Decompressors {
    /// None yet; they come from `codecs` when they are wanted.
    pub(super) fn new(codecs: Arc<dyn Codecs>) -> Decompressors {
        Decompressors { codecs, open: Vec::new() }
    }

    fn of(&mut self, codec: Codec) -> Result<&mut dyn Decompressor> {
        let at = match self.open.iter().position(|(known, _)| *known == codec) {
            Some(at) => at,
            None => {
                self.open.push((codec, self.codecs.decompressor(codec)?));
                self.open.len() - 1
            }
        };
        Ok(&mut *self.open[at].1)
    }
}

enum Expects {
    /// A page header, in this many bytes.
    Header { ask: u64 },
    /// The body of a page.
    Body(PageHeader),
    /// Nothing from outside: the CRC of the body, which stands there, is being computed.
    Crc { header: PageHeader, body: Range<u64>, done: u64, crc: u32 },
    /// Nothing from outside: the body is being decompressed, or put together.
    Room(Unpacking),
}

/// A page whose body is being decompressed, or put together of several pieces.
struct Unpacking {
    kind: PageKind,
    levels: Bytes,
    /// Where the bytes are that are not consumed yet.
    packed: Range<u64>,
    /// `None` where they are not compressed.
    codec: Option<Codec>,
    /// What the bytes become, as far as there is room for it.
    room: Vec<u8>,
    produced: usize,
    total: usize,
    /// The room to begin with.
    first: usize,
    started: bool,
}

/// What [`PageReader::next`] answers.
pub(super) enum Next {
    /// A page.
    Page(Page),
    /// A page is wanted, but its bytes are not there: see [`PageReader::want`].
    Need,
    /// The budget is spent.
    Yield,
    /// The chunk has no more bytes.
    End,
}

impl PageReader {
    /// A reader of `chunk`, a part of `object`.
    pub(super) fn new(
        object: Object,
        chunk: &ColumnChunk,
        footer_start: u64,
        options: &ReadOptions,
    ) -> Result<PageReader> {
        if chunk.encrypted {
            return Err(Error::unsupported("an encrypted column"));
        }
        // An empty name names no file.
        if let Some(path) = chunk.file_path.as_deref().filter(|path| !path.is_empty()) {
            return Err(Error::unsupported(format!("a column chunk in another file, {path:?}")));
        }
        if let Compression::Unknown(number) = chunk.compression {
            return Err(Error::unsupported(format!("the unknown compression codec {number}")));
        }
        let start = chunk.first_page_offset();
        let end = start.checked_add(chunk.compressed_bytes).filter(|&end| end <= footer_start).ok_or_else(
            || {
                let bytes = chunk.compressed_bytes;
                Error::corrupt(format!("a column chunk of {bytes} bytes that reaches into the footer"))
                    .at_offset(start)
            },
        )?;
        Ok(PageReader {
            object,
            at: start,
            end,
            end_max: end.saturating_add(FORGOTTEN_BYTES_MAX).min(footer_start),
            pages: 0,
            compression: chunk.compression,
            expects: Expects::Header { ask: HEADER_GUESS_BYTES },
            limits: options.limits,
            verify_crc: options.verify_crc,
            read_bytes: options.read_bytes.max(1),
        })
    }

    /// The part of the object that is not read yet.
    pub(super) fn range(&self) -> Range<u64> {
        self.at..self.end
    }

    /// The number of the page that was last begun, counted from 0.
    pub(super) fn page(&self) -> Option<u64> {
        self.pages.checked_sub(1)
    }

    /// The offset that an error is told with.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Bytes held of the page that is being read.
    pub(super) fn held(&self) -> usize {
        match &self.expects {
            Expects::Header { .. } | Expects::Body(_) => 0,
            // The body itself is held by the input.
            Expects::Crc { .. } => 0,
            Expects::Room(page) => page.levels.len() + page.room.len(),
        }
    }

    /// Asks for what is missing of the next header or body, and for what follows it, up to `read_bytes`.
    pub(super) fn want(&self, input: &Input, priority: Priority, demand: &mut Demand) {
        let needed = self.needed();
        let Some(missing) = input.missing(needed.clone()) else { return };
        let ahead = self.at.saturating_add(self.read_bytes).min(self.end).max(needed.end);
        demand.push(Want::Range(self.object, missing.start..ahead, priority));
    }

    fn needed(&self) -> Range<u64> {
        let bytes = match &self.expects {
            Expects::Header { ask } => *ask,
            Expects::Body(header) => header.compressed_bytes.into(),
            Expects::Crc { .. } | Expects::Room(_) => 0,
        };
        self.at..self.at.saturating_add(bytes).min(self.end)
    }

    /// Reads the next page header, and leaves the body unread: the next call of this or of `next` follows it.
    pub(super) fn next_header(
        &mut self,
        input: &mut Input,
        budget: &mut Budget<'_>,
    ) -> Result<Option<(PageHeader, Range<u64>)>> {
        if self.at >= self.end {
            return Ok(None);
        }
        let Expects::Header { ask } = self.expects else {
            return Err(Error::internal("a page header where a body is read"));
        };
        let range = self.needed();
        let Some(bytes) = input.contiguous(range.clone())? else { return Ok(None) };
        match PageHeader::read(&bytes) {
            Ok((header, length)) => {
                budget.charge(HEADER_PRICE, length, 1);
                Limits::check("page_header_bytes", self.limits.page_header_bytes, length as u64)?;
                let start = self.at;
                self.pages += 1;
                self.at += length as u64;
                input.release(start..self.at);
                let page_end = self.at.saturating_add(header.compressed_bytes.into());
                if page_end > self.end && page_end <= self.end_max {
                    self.end = page_end;
                }
                let left = self.end.saturating_sub(self.at);
                if u64::from(header.compressed_bytes) > left {
                    return Err(Error::corrupt(format!(
                        "a page of {} bytes in a column chunk with {left} left",
                        header.compressed_bytes
                    )));
                }
                Ok(Some((header, start..self.at)))
            }
            Err(Stop::End) if range.end < self.end => {
                budget.charge(HEADER_PRICE, bytes.len(), 1);
                Limits::check("page_header_bytes", self.limits.page_header_bytes, ask + 1)?;
                self.expects =
                    Expects::Header { ask: ask.saturating_mul(2).min(self.limits.page_header_bytes) };
                self.next_header(input, budget)
            }
            Err(stop) => Err(stop.into_error("a page header", self.at, bytes.len())),
        }
    }

    /// Steps over the body of the page whose header was read last.
    pub(super) fn skip_body(&mut self, header: &PageHeader, input: &mut Input) {
        let start = self.at;
        self.at += u64::from(header.compressed_bytes);
        input.release(start..self.at);
        self.expects = Expects::Header { ask: HEADER_GUESS_BYTES };
    }

    /// Reads the next page that holds data or a dictionary.
    pub(super) fn next(
        &mut self,
        input: &mut Input,
        decompressors: &mut Decompressors,
        budget: &mut Budget<'_>,
        mut room: impl FnMut(usize) -> Result<Vec<u8>>,
        mut share: impl FnMut(Vec<u8>, usize) -> Bytes,
    ) -> Result<Next> {
        loop {
            match core::mem::replace(&mut self.expects, Expects::Header { ask: HEADER_GUESS_BYTES }) {
                Expects::Header { ask } => {
                    if self.at >= self.end {
                        return Ok(Next::End);
                    }
                    self.expects = Expects::Header { ask };
                    let Some((header, _)) = self.next_header(input, budget)? else { return Ok(Next::Need) };
                    Limits::check("page_bytes", self.limits.page_bytes, header.compressed_bytes.into())?;
                    Limits::check("page_bytes", self.limits.page_bytes, header.uncompressed_bytes.into())?;
                    if let PageKind::Other(_) = header.kind {
                        self.skip_body(&header, input);
                        if budget.is_spent() {
                            return Ok(Next::Yield);
                        }
                    } else {
                        self.expects = Expects::Body(header);
                    }
                }
                Expects::Body(header) => {
                    let body = self.at..self.at + u64::from(header.compressed_bytes);
                    if input.missing(body.clone()).is_some() {
                        self.expects = Expects::Body(header);
                        return Ok(Next::Need);
                    }
                    self.at = body.end;
                    self.expects = Expects::Crc { header, body, done: 0, crc: 0 };
                }
                Expects::Crc { header, body, mut done, mut crc } => {
                    if let (Some(expected), true) = (header.crc, self.verify_crc) {
                        if body.start + done < body.end {
                            let left = body.end - body.start - done;
                            let slice = input.segment(body.start + done, left.min(CRC_SLICE_BYTES));
                            crc = marquetry_kernels::crc32::crc32(crc, &slice);
                            done += u64_of(slice.len());
                            budget.charge(CRC_PRICE, slice.len(), 0);
                            self.expects = Expects::Crc { header, body, done, crc };
                            if budget.is_spent() {
                                return Ok(Next::Yield);
                            }
                            continue;
                        }
                        if crc != expected {
                            return Err(Error::corrupt(format!(
                                "the page's CRC is {crc:08x}, its header says {expected:08x}"
                            )));
                        }
                    }
                    match self.open(header, body, input, budget, &mut room)? {
                        Opened::Page(page) => return Ok(Next::Page(page)),
                        Opened::Packed(page) => self.expects = Expects::Room(page),
                    }
                }
                Expects::Room(mut page) => {
                    if !page.step(input, decompressors, budget)? {
                        self.expects = Expects::Room(page);
                        return Ok(Next::Yield);
                    }
                    let Unpacking { kind, levels, room, total, .. } = page;
                    return Ok(Next::Page(Page { kind, levels, body: share(room, total) }));
                }
            }
        }
    }

    /// Takes a whole page apart, and begins its decompression where it needs one.
    fn open(
        &mut self,
        header: PageHeader,
        body: Range<u64>,
        input: &mut Input,
        budget: &mut Budget<'_>,
        room: &mut impl FnMut(usize) -> Result<Vec<u8>>,
    ) -> Result<Opened> {
        let uncompressed = usize_of_u32(header.uncompressed_bytes);
        let (levels_bytes, is_compressed) = match &header.kind {
            PageKind::DataV2(page) => {
                let levels = u64::from(page.repetition_bytes) + u64::from(page.definition_bytes);
                if levels > body.end - body.start || levels > u64_of(uncompressed) {
                    return Err(Error::corrupt(format!(
                        "levels of {levels} bytes in a page of {} bytes, {uncompressed} uncompressed",
                        body.end - body.start
                    )));
                }
                (levels, page.is_compressed)
            }
            _ => (0, true),
        };
        let packed = body.start + levels_bytes..body.end;
        let levels = whole(input, body.start..packed.start, budget)?;
        input.release(body.start..packed.start);
        let total = uncompressed - levels.len();
        let codec = match self.compression {
            Compression::Codec(codec) if is_compressed => Some(codec),
            _ => None,
        };
        let packed_bytes = packed.end - packed.start;
        // A page whose values are all null holds none, and some writers then leave out the codec's empty frame.
        if codec.is_none() || (packed_bytes == 0 && total == 0) {
            if packed_bytes != u64_of(total) {
                return Err(Error::corrupt(format!(
                    "an uncompressed page of {} bytes that should have {uncompressed}",
                    body.end - body.start
                )));
            }
            let piece = input.segment(packed.start, packed_bytes);
            if piece.len() == total {
                input.release(packed);
                return Ok(Opened::Page(Page { kind: header.kind, levels, body: piece }));
            }
        }
        // Room grows as bytes are produced, but there is some to begin with.
        let some = usize_of(packed_bytes).unwrap_or(usize::MAX).saturating_mul(4).max(ROOM_MIN);
        let first = some.min(total);
        let room = room(first)?;
        Ok(Opened::Packed(Unpacking {
            kind: header.kind,
            levels,
            packed,
            codec,
            room,
            produced: 0,
            total,
            first,
            started: false,
        }))
    }
}

impl Unpacking {
    /// Decompresses on, or copies; true when the page is whole.
    fn step(
        &mut self,
        input: &mut Input,
        decompressors: &mut Decompressors,
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        loop {
            if !self.started {
                if self.room.len() < self.first {
                    self.make_room(self.first, budget);
                    if budget.is_spent() {
                        return Ok(false);
                    }
                    continue;
                }
                if let Some(codec) = self.codec {
                    let packed = usize_of(self.packed.end - self.packed.start).unwrap_or(usize::MAX);
                    let whole = self.room.len() >= self.total;
                    decompressors.of(codec)?.start(packed, self.total, whole)?;
                }
                self.started = true;
            }
            let left = self.packed.end - self.packed.start;
            let piece = input.segment(self.packed.start, left);
            let last = u64_of(piece.len()) == left;
            let end = self.room.len().min(self.total);
            let progress = match self.codec {
                Some(codec) => decompressors.of(codec)?.step(
                    &piece,
                    last,
                    &mut self.room[..end],
                    self.produced,
                    budget,
                )?,
                None => self.copy(&piece, budget),
            };
            let consumed = self.packed.start + u64_of(progress.consumed);
            input.release(self.packed.start..consumed);
            self.packed.start = consumed;
            self.produced += progress.produced;
            match progress.status {
                Status::End if self.produced == self.total => return Ok(true),
                Status::End => {
                    return Err(Error::corrupt(format!(
                        "a page of {} bytes that should have {}",
                        self.produced, self.total
                    )));
                }
                Status::NeedInput if last && progress.consumed == piece.len() => {
                    return Err(Error::corrupt("a page's body that ends early"));
                }
                Status::NeedRoom if end == self.total => {
                    return Err(Error::corrupt(format!(
                        "a page larger than the {} bytes it should have",
                        self.total
                    )));
                }
                Status::NeedRoom => {
                    if self.room.len() == self.room.capacity() {
                        let larger = self.room.len().saturating_mul(2).min(self.total);
                        budget.charge(COPY_PRICE, self.room.len(), 0);
                        self.room
                            .try_reserve_exact(larger - self.room.len())
                            .map_err(|_| Error::out_of_memory(larger))?;
                    }
                    self.make_room(self.total, budget);
                }
                Status::NeedInput | Status::Yield => {}
            }
            if progress.status == Status::Yield || budget.is_spent() {
                return Ok(false);
            }
        }
    }

    /// Makes more of the memory there is into room, up to `end`.
    fn make_room(&mut self, end: usize, budget: &mut Budget<'_>) {
        let end = end.min(self.room.capacity()).min(self.room.len() + ROOM_SLICE_BYTES);
        budget.charge(ROOM_PRICE, end - self.room.len(), 0);
        self.room.resize(end, 0);
    }

    /// Copies a slice of a page that is not compressed.
    fn copy(&mut self, piece: &[u8], budget: &mut Budget<'_>) -> Progress {
        let length = piece.len().min(COPY_SLICE_BYTES).min(self.room.len() - self.produced);
        budget.charge(COPY_PRICE, length, 0);
        self.room[self.produced..self.produced + length].copy_from_slice(&piece[..length]);
        let status = match self.produced + length {
            produced if produced == self.total => Status::End,
            _ if length < piece.len().min(COPY_SLICE_BYTES) => Status::NeedRoom,
            _ => Status::NeedInput,
        };
        Progress { consumed: length, produced: length, status }
    }
}

enum Opened {
    Page(Page),
    Packed(Unpacking),
}

/// The bytes of `range`, which are there, in one piece.
fn whole(input: &Input, range: Range<u64>, budget: &mut Budget<'_>) -> Result<Bytes> {
    let length = range.end - range.start;
    let piece = input.segment(range.start, length);
    if u64_of(piece.len()) == length {
        return Ok(piece);
    }
    budget.charge(COPY_PRICE, usize_of(length).unwrap_or(usize::MAX), 0);
    input.contiguous(range)?.ok_or_else(|| Error::internal("a page's levels are not there"))
}
