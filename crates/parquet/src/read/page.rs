//! From a column chunk's bytes to its pages: headers, checksums, decompression.
//!
//! A page's body is a [`Stream`], supplied a chunk at a time ([`PageReader::fill`]). One that is not longer than a window is
//! one chunk. Of a longer one each chunk begins with what its reader has not consumed of the one before, and as long as it
//! is read, its CRC is computed as its bytes are.

use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::{u64_of, usize_of, usize_of_u32};
use marquetry_base::{
    Budget, Bytes, Codec, Codecs, Decompressor, Demand, Error, Input, Limits, Object, Pool, Price, Priority,
    Result, Status, Want,
};

use super::ReadOptions;
use super::windowed::Windowed;
use crate::encoding::stream::Stream;
use crate::format::thrift::Stop;
use crate::format::{ColumnChunk, Compression, PageHeader, PageKind, Skim, WHOLE_BYTES_MAX};
use crate::growing::{COPY_PRICE, Growing, SLICE_BYTES};

/// Bytes asked for to read a page header: most need less than 100; statistics make them longer.
const HEADER_GUESS_BYTES: u64 = 1 << 10;
/// A CRC's price: 64 bytes a nanosecond at best, 4 at worst.
const CRC_PRICE: Price = Price::per_kib(100);
/// A page header's price.
const HEADER_PRICE: Price = Price { kib: 1024, kilovalue: 300 << 10 };
/// Bytes by which a column chunk may be longer than the footer says. Early parquet-mr forgot the dictionary page's header
/// in its sum (PARQUET-816).
pub(super) const FORGOTTEN_BYTES_MAX: u64 = 100;
/// Memory that a page's decompression starts with, if it may become larger: it grows as bytes are produced.
const ROOM_MIN: usize = 64 << 10;
/// Bytes of an uncompressed page that are joined, at least, where they come in pieces.
const JOINT_BYTES: usize = 4 << 10;
/// The longest history of a decompressor that is copied to the front of each window.
const HISTORY_BYTES_MAX: usize = 128 << 10;

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
    verify_first_bytes: u64,
    window_bytes: usize,
    read_bytes: u64,
}

/// Decompressors that the columns of a reader share: each has its own from a page's start to its end.
pub(super) struct Decompressors {
    codecs: Arc<dyn Codecs>,
    idle: Vec<Idle>,
}

/// A decompressor that is in no page.
struct Idle {
    codec: Codec,
    /// Whether it is for pages that are longer than a window.
    is_windowed: bool,
    decompressor: Box<dyn Decompressor>,
}

/// Decompressors that are kept for later, at most: large tables read a few columns at a time.
const IDLE_MAX: usize = 4;

impl Decompressors {
    /// None yet; they come from `codecs` when they are wanted.
    pub(super) fn new(codecs: Arc<dyn Codecs>) -> Decompressors {
        Decompressors { codecs, idle: Vec::new() }
    }

    fn take(&mut self, codec: Codec, is_windowed: bool) -> Result<Box<dyn Decompressor>> {
        let fits = |idle: &Idle| idle.codec == codec && idle.is_windowed == is_windowed;
        if let Some(at) = self.idle.iter().position(fits) {
            return Ok(self.idle.swap_remove(at).decompressor);
        }
        let decompressor = self.codecs.decompressor(codec)?;
        let refers_far = decompressor.history_bytes() > HISTORY_BYTES_MAX;
        Ok(if is_windowed && refers_far { Box::new(Windowed::new(decompressor)) } else { decompressor })
    }

    fn put_back(&mut self, codec: Codec, is_windowed: bool, decompressor: Box<dyn Decompressor>) {
        if self.idle.len() == IDLE_MAX {
            self.idle.remove(0);
        }
        self.idle.push(Idle { codec, is_windowed, decompressor });
    }
}

enum Expects {
    /// A page header; one that is long, or came in pieces, is being skimmed.
    Header(Option<Box<Skim>>),
    /// The body of a page.
    Body(Box<Body>),
}

/// The body of a page, while it is read.
struct Body {
    /// What the header says, until the page begins.
    header: Option<PageHeader>,
    /// Where the bytes are that are not consumed yet: those of the last chunk are, unless it is kept in the input.
    packed: Range<u64>,
    /// Where the levels of a V2 page end, which are never compressed.
    levels_end: u64,
    /// Bytes that are needed from where `packed` starts on.
    needs: u64,
    /// The CRC that the bytes should have, if that is to be checked; what it is so far, and up to where.
    crc: Option<u32>,
    sum: u32,
    checked: u64,
    /// Bytes of a chunk at a time, if the body is longer.
    window_bytes: usize,
    /// `None` where they are not compressed.
    codec: Option<Codec>,
    decompressor: Option<Box<dyn Decompressor>>,
    /// Bytes that they become, and those that they became so far.
    total: usize,
    produced: usize,
    /// Decompression has begun, and has come to its end; of what is not compressed, the last chunk was supplied.
    is_started: bool,
    is_unpacked: bool,
    /// The chunk that is being made.
    window: Option<Window>,
    /// The last chunk that was decompressed, whose end the next one begins with.
    before: Bytes,
    /// The last chunk is a part of the input, which still has it.
    is_kept: bool,
}

/// A chunk that is being decompressed, or put together.
struct Window {
    bytes: Growing,
    /// Bytes at its front that were there before, and those of them that are not consumed.
    front: usize,
    tail: usize,
    /// Bytes that there is room for before its bytes come; and that it will have.
    first: usize,
    goal: usize,
}

/// What [`PageReader::next_header`] answers.
pub(super) enum Header {
    /// A header, and where it stands.
    Whole(PageHeader, Range<u64>),
    /// One is wanted, but its bytes are not there: see [`PageReader::want`].
    Need,
    /// The budget is spent.
    Yield,
}

/// What [`PageReader::next`] answers.
pub(super) enum Next {
    /// A page: its kind, and the stream of its body. V2: repetition levels, then definition levels, then values.
    Page(PageKind, Stream),
    /// A page is wanted, but its bytes are not there: see [`PageReader::want`].
    Need,
    /// The budget is spent.
    Yield,
    /// The chunk has no more bytes.
    End,
}

/// What [`PageReader::fill`] answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fill {
    /// The stream has what it wanted.
    Filled,
    /// Bytes are missing: see [`PageReader::want`].
    Need,
    /// The budget is spent.
    Yield,
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
            expects: Expects::Header(None),
            limits: options.limits,
            verify_crc: options.verify_crc,
            verify_first_bytes: options.verify_first_bytes,
            window_bytes: options.window_bytes.max(1),
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

    /// Bytes held of the page that is being read, beside what the input and the page's stream hold.
    pub(super) fn held(&self) -> usize {
        match &self.expects {
            Expects::Header(_) => 0,
            Expects::Body(body) => body.window.as_ref().map_or(0, |window| window.bytes.held()),
        }
    }

    /// True while the current page's values leave before its CRC is known to be right.
    pub(super) fn is_unverified(&self) -> bool {
        match &self.expects {
            Expects::Header(_) => false,
            Expects::Body(body) => body.is_unverified(),
        }
    }

    /// Asks for what is missing of the next header or body, and for what follows it, up to `read_bytes`.
    pub(super) fn want(&self, input: &Input, priority: Priority, demand: &mut Demand) {
        let needed = self.needed();
        let Some(missing) = input.missing(needed.clone()) else { return };
        let ahead = needed.start.saturating_add(self.read_bytes).min(self.end).max(needed.end);
        demand.push(Want::Range(self.object, missing.start..ahead, priority));
    }

    fn needed(&self) -> Range<u64> {
        let (from, bytes) = match &self.expects {
            Expects::Header(None) => (self.at, HEADER_GUESS_BYTES),
            Expects::Header(Some(skim)) => {
                // No more than a header may have; and a byte more, to see that it has more.
                let left = (self.at.saturating_add(self.limits.page_header_bytes).saturating_add(1))
                    .saturating_sub(skim.at());
                (skim.at(), skim.wants().max(HEADER_GUESS_BYTES).min(left))
            }
            Expects::Body(body) => (body.packed.start, body.needs),
        };
        from..from.saturating_add(bytes).min(self.end)
    }

    /// Reads the next page header, and leaves the body unread: the next call of this or of `next` follows it.
    pub(super) fn next_header(&mut self, input: &mut Input, budget: &mut Budget<'_>) -> Result<Header> {
        let Expects::Header(skim) = &mut self.expects else {
            return Err(Error::internal("a page header where a body is read"));
        };
        let header = match skim.take() {
            Some(skim) => self.skim_header(skim, input, budget)?,
            None => {
                let left = self.end - self.at;
                let piece = input.segment(self.at, left.min(u64_of(WHOLE_BYTES_MAX)));
                if piece.is_empty() {
                    return Ok(Header::Need);
                }
                let read = PageHeader::read(&piece);
                let looked_at = read.as_ref().map_or(piece.len(), |(_, length)| *length);
                budget.charge(HEADER_PRICE, looked_at, 1);
                match read {
                    Ok((header, length)) => Header::Whole(header, self.at..self.at + u64_of(length)),
                    Err(Stop::End) => {
                        let skim = Box::new(PageHeader::skim(self.at, &self.limits));
                        if budget.is_spent() {
                            self.expects = Expects::Header(Some(skim));
                            return Ok(Header::Yield);
                        }
                        self.skim_header(skim, input, budget)?
                    }
                    Err(stop) => return Err(PageHeader::error(stop, self.at)),
                }
            }
        };
        let Header::Whole(header, range) = header else { return Ok(header) };
        self.check_header(range.end - range.start)?;
        self.pages += 1;
        self.at = range.end;
        input.release(range.clone());
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
        Ok(Header::Whole(header, range))
    }

    /// Skims a header on, and lets go of what is skimmed.
    fn skim_header(
        &mut self,
        mut skim: Box<Skim>,
        input: &mut Input,
        budget: &mut Budget<'_>,
    ) -> Result<Header> {
        let end = self.end.min(self.at.saturating_add(self.limits.page_header_bytes).saturating_add(1));
        loop {
            let piece = input.segment(skim.at(), end - skim.at());
            if piece.is_empty() && skim.wants() > 0 {
                self.check_header(skim.at() - self.at)?;
                if skim.at() < end {
                    self.expects = Expects::Header(Some(skim));
                    return Ok(Header::Need);
                }
                return Err(PageHeader::fault_of(&skim, PageHeader::error(Stop::End, self.at)));
            }
            let is_whole = skim.step(&piece, budget).map_err(|fault| PageHeader::fault_of(&skim, fault))?;
            input.release(self.at..skim.at());
            if is_whole {
                budget.charge(HEADER_PRICE, skim.digest_bytes(), 1);
                return Ok(Header::Whole(PageHeader::of_skim(&skim)?, self.at..skim.at()));
            }
            if budget.is_spent() {
                self.expects = Expects::Header(Some(skim));
                return Ok(Header::Yield);
            }
        }
    }

    /// Checks a header's length, as far as it is known.
    fn check_header(&self, length: u64) -> Result<()> {
        // However it came, the same number is told.
        let limit = self.limits.page_header_bytes;
        Limits::check("page_header_bytes", limit, length.min(limit.saturating_add(1)))
    }

    /// Steps over the body of the page whose header was read last.
    pub(super) fn skip_body(&mut self, header: &PageHeader, input: &mut Input) {
        let start = self.at;
        self.at += u64::from(header.compressed_bytes);
        input.release(start..self.at);
        self.expects = Expects::Header(None);
    }

    /// Begins the next page that holds data or a dictionary. What is left of the one before is looked at, and dropped.
    pub(super) fn next(
        &mut self,
        input: &mut Input,
        decompressors: &mut Decompressors,
        pool: &mut Pool<u8>,
        budget: &mut Budget<'_>,
    ) -> Result<Next> {
        loop {
            match &mut self.expects {
                Expects::Header(_) => {
                    if self.at >= self.end {
                        return Ok(Next::End);
                    }
                    let header = match self.next_header(input, budget)? {
                        Header::Whole(header, _) => header,
                        Header::Need => return Ok(Next::Need),
                        Header::Yield => return Ok(Next::Yield),
                    };
                    Limits::check("page_bytes", self.limits.page_bytes, header.compressed_bytes.into())?;
                    Limits::check("page_bytes", self.limits.page_bytes, header.uncompressed_bytes.into())?;
                    if let PageKind::Other(_) = header.kind {
                        self.skip_body(&header, input);
                        if budget.is_spent() {
                            return Ok(Next::Yield);
                        }
                    } else {
                        let body = self.body(header);
                        // Errors in the page are told with the place behind it, wherever its chunks end.
                        self.at = body.packed.end;
                        self.expects = Expects::Body(Box::new(body));
                    }
                }
                Expects::Body(body) => {
                    let done = match &body.header {
                        Some(_) => body.check_first(input, budget)?,
                        None => self.finish(input, decompressors, pool, budget)?,
                    };
                    match done {
                        Fill::Filled => {}
                        Fill::Need => return Ok(Next::Need),
                        Fill::Yield => return Ok(Next::Yield),
                    }
                    if let Expects::Body(body) = &mut self.expects
                        && let Some(header) = body.header.take()
                    {
                        let stream = body.open(&header, self.compression)?;
                        return Ok(Next::Page(header.kind, stream));
                    }
                }
            }
        }
    }

    /// Ends the current page, whose values are all decoded: what is left of its body is looked at, and dropped.
    pub(super) fn finish(
        &mut self,
        input: &mut Input,
        decompressors: &mut Decompressors,
        pool: &mut Pool<u8>,
        budget: &mut Budget<'_>,
    ) -> Result<Fill> {
        let Expects::Body(body) = &mut self.expects else { return Ok(Fill::Filled) };
        let finished = body.finish(input, decompressors, pool, budget)?;
        if finished == Fill::Filled {
            self.expects = Expects::Header(None);
        }
        Ok(finished)
    }

    /// Supplies the stream of the current page with the bytes that it wants.
    pub(super) fn fill(
        &mut self,
        stream: &mut Stream,
        input: &mut Input,
        decompressors: &mut Decompressors,
        pool: &mut Pool<u8>,
        budget: &mut Budget<'_>,
    ) -> Result<Fill> {
        let Expects::Body(body) = &mut self.expects else {
            return Err(Error::internal("bytes of a page that is at its end"));
        };
        let filled = body.fill(stream, input, decompressors, pool, budget)?;
        if filled == Fill::Filled && body.is_done() {
            input.release(body.packed.clone());
            self.expects = Expects::Header(None);
        }
        Ok(filled)
    }

    /// The body of the page whose header was read last.
    fn body(&self, header: PageHeader) -> Body {
        let packed = self.at..self.at + u64::from(header.compressed_bytes);
        let bytes = u64::from(header.compressed_bytes);
        let crc = header.crc.filter(|_| self.verify_crc);
        let fits = bytes.max(header.uncompressed_bytes.into()) <= u64_of(self.window_bytes);
        let is_first = fits || (crc.is_some() && bytes <= self.verify_first_bytes);
        Body {
            needs: if is_first { bytes } else { 0 },
            levels_end: packed.start,
            crc,
            sum: 0,
            checked: packed.start,
            packed,
            header: Some(header),
            window_bytes: self.window_bytes,
            codec: None,
            decompressor: None,
            total: 0,
            produced: 0,
            is_started: false,
            is_unpacked: false,
            window: None,
            before: Bytes::new(),
            is_kept: false,
        }
    }
}

impl Body {
    /// Waits for the whole body, if it is to be had before its values, and checks its CRC.
    fn check_first(&mut self, input: &Input, budget: &mut Budget<'_>) -> Result<Fill> {
        let whole = self.packed.clone();
        if self.needs < whole.end - whole.start {
            return Ok(Fill::Filled);
        }
        if input.missing(whole.clone()).is_some() {
            return Ok(Fill::Need);
        }
        self.check(input, whole.end, budget)
    }

    /// Begins to take the body apart: the stream of what it becomes.
    fn open(&mut self, header: &PageHeader, compression: Compression) -> Result<Stream> {
        let bytes = self.packed.end - self.packed.start;
        let uncompressed = usize_of_u32(header.uncompressed_bytes);
        let (levels, is_compressed) = match &header.kind {
            PageKind::DataV2(page) => {
                let levels = u64::from(page.repetition_bytes) + u64::from(page.definition_bytes);
                if levels > bytes || levels > u64_of(uncompressed) {
                    return Err(Error::corrupt(format!(
                        "levels of {levels} bytes in a page of {bytes} bytes, {uncompressed} uncompressed"
                    )));
                }
                (levels, page.is_compressed)
            }
            _ => (0, true),
        };
        self.levels_end = self.packed.start + levels;
        self.total = uncompressed - usize_of(levels).unwrap_or(uncompressed);
        self.codec = match compression {
            Compression::Codec(codec) if is_compressed => Some(codec),
            _ => None,
        };
        // A page whose values are all null holds none, and some writers then leave out the codec's empty frame.
        let packed = bytes - levels;
        if self.codec.is_none() || (packed == 0 && self.total == 0) {
            self.codec = None;
            if packed != u64_of(self.total) {
                return Err(Error::corrupt(format!(
                    "an uncompressed page of {bytes} bytes that should have {uncompressed}"
                )));
            }
        }
        Ok(Stream::coming(uncompressed))
    }

    fn is_unverified(&self) -> bool {
        self.crc.is_some() && self.checked < self.packed.end
    }

    /// True when nothing of the body is left to be looked at.
    fn is_done(&self) -> bool {
        self.is_unpacked && !self.is_unverified()
    }

    /// Computes the CRC up to `end`, in slices; at the body's end it must be right.
    fn check(&mut self, input: &Input, end: u64, budget: &mut Budget<'_>) -> Result<Fill> {
        let Some(expected) = self.crc else { return Ok(Fill::Filled) };
        while self.checked < end {
            let slice = input.segment(self.checked, (end - self.checked).min(u64_of(SLICE_BYTES)));
            if slice.is_empty() {
                return Ok(Fill::Need);
            }
            self.sum = marquetry_kernels::crc32::crc32(self.sum, &slice);
            self.checked += u64_of(slice.len());
            budget.charge(CRC_PRICE, slice.len(), 0);
            if self.checked < end && budget.is_spent() {
                return Ok(Fill::Yield);
            }
        }
        if self.checked == self.packed.end && self.sum != expected {
            return Err(Error::corrupt(format!(
                "the page's CRC is {:08x}, its header says {expected:08x}",
                self.sum
            )));
        }
        Ok(Fill::Filled)
    }

    fn fill(
        &mut self,
        stream: &mut Stream,
        input: &mut Input,
        decompressors: &mut Decompressors,
        pool: &mut Pool<u8>,
        budget: &mut Budget<'_>,
    ) -> Result<Fill> {
        if self.is_kept {
            // The input has the last chunk still: the next one begins where the stream stands.
            let start = self.packed.start;
            self.packed.start += u64_of(stream.chunk().1);
            input.release(start..self.packed.start);
            stream.rewind();
            self.is_kept = false;
        }
        if self.packed.start < self.levels_end || self.codec.is_none() {
            self.fill_as_is(stream, input, budget)
        } else {
            self.unpack(stream, input, decompressors, pool, budget)
        }
    }

    /// Supplies bytes that are not compressed: a part of the input, where one piece of it has what is wanted.
    fn fill_as_is(
        &mut self,
        stream: &mut Stream,
        input: &mut Input,
        budget: &mut Budget<'_>,
    ) -> Result<Fill> {
        let start = self.packed.start;
        let end = if start < self.levels_end { self.levels_end } else { self.packed.end };
        let left = usize_of(end - start).unwrap_or(usize::MAX);
        let tail = stream.there().len();
        let wanted = stream.wanted().max(1).min(tail.saturating_add(left));
        if self.window.is_some() || tail > 0 {
            return self.gather(wanted, stream, input, budget);
        }
        let mut piece = input.segment(start, u64_of(left.min(wanted.max(self.window_bytes))));
        if piece.len() < wanted {
            if wanted > SLICE_BYTES {
                return self.gather(wanted, stream, input, budget);
            }
            let most = start + u64_of(left.min(wanted.max(JOINT_BYTES)));
            let there = input.missing(start..most).map_or(most, |missing| missing.start);
            if there - start < u64_of(wanted) {
                self.needs = u64_of(wanted);
                return Ok(Fill::Need);
            }
            piece = input.contiguous(start..there)?.unwrap_or_default();
            budget.charge(COPY_PRICE, piece.len(), 0);
        }
        let checked = self.check(input, start + u64_of(piece.len()), budget)?;
        if checked == Fill::Filled {
            let behind = self.behind(start + u64_of(piece.len()));
            stream.supply(piece, 0, behind);
            self.is_kept = true;
        }
        Ok(checked)
    }

    /// Bytes that follow a chunk of what is not compressed, which ends at this place.
    fn behind(&mut self, at: u64) -> usize {
        let left = usize_of(self.packed.end - at).unwrap_or(usize::MAX);
        if self.codec.is_none() {
            self.is_unpacked = left == 0;
            return left;
        }
        usize_of(self.levels_end - at).unwrap_or(usize::MAX).saturating_add(self.total)
    }

    /// Puts together a long value that is not compressed: the input need never have all of it.
    fn gather(
        &mut self,
        wanted: usize,
        stream: &mut Stream,
        input: &mut Input,
        budget: &mut Budget<'_>,
    ) -> Result<Fill> {
        let tail = stream.there().len();
        let mut window = match self.window.take() {
            Some(window) => window,
            None => Window { bytes: Growing::default(), front: tail, tail, first: 0, goal: wanted },
        };
        let filled = self.gather_into(&mut window, stream, input, budget)?;
        if filled == Fill::Filled {
            let behind = self.behind(self.packed.start);
            stream.supply(window.bytes.into_vec().into(), 0, behind);
        } else {
            self.window = Some(window);
        }
        Ok(filled)
    }

    fn gather_into(
        &mut self,
        window: &mut Window,
        stream: &Stream,
        input: &mut Input,
        budget: &mut Budget<'_>,
    ) -> Result<Fill> {
        while window.bytes.len() < window.goal {
            let copied = window.bytes.len();
            if !window.bytes.grow(copied + 1, window.goal, budget)? {
                return Ok(Fill::Yield);
            }
            let room = (window.bytes.room() - copied).min(window.goal - copied).min(SLICE_BYTES);
            let slice = if copied < window.tail {
                let tail = &stream.there()[copied..];
                window.bytes.append(&tail[..tail.len().min(room)]);
                tail.len().min(room)
            } else {
                let piece = input.segment(self.packed.start, u64_of(room));
                if piece.is_empty() {
                    self.needs = 1;
                    return Ok(Fill::Need);
                }
                let start = self.packed.start;
                // No more than a slice, so it is checked at once.
                self.check(input, start + u64_of(piece.len()), budget)?;
                window.bytes.append(&piece);
                self.packed.start += u64_of(piece.len());
                input.release(start..self.packed.start);
                piece.len()
            };
            budget.charge(COPY_PRICE, slice, 0);
            if window.bytes.len() < window.goal && budget.is_spent() {
                return Ok(Fill::Yield);
            }
        }
        Ok(Fill::Filled)
    }

    /// Decompresses the next chunk.
    fn unpack(
        &mut self,
        stream: &mut Stream,
        input: &mut Input,
        decompressors: &mut Decompressors,
        pool: &mut Pool<u8>,
        budget: &mut Budget<'_>,
    ) -> Result<Fill> {
        let Some(codec) = self.codec else { return Err(Error::internal("a page that is not compressed")) };
        let is_windowed = self.total > self.window_bytes;
        let mut decompressor = match self.decompressor.take() {
            Some(decompressor) => decompressor,
            None => decompressors.take(codec, is_windowed)?,
        };
        let mut window = match self.window.take() {
            Some(window) => window,
            None => self.window(stream, decompressor.history_bytes(), pool)?,
        };
        let filled = self.unpack_into(&mut window, &mut *decompressor, input, budget)?;
        if filled != Fill::Filled {
            (self.window, self.decompressor) = (Some(window), Some(decompressor));
            return Ok(filled);
        }
        let at = window.front - window.tail;
        let (memory, length) = window.bytes.into_parts();
        let chunk = if length > self.window_bytes {
            // One long value: that memory is not kept for another.
            Bytes::from(memory).slice(..length)
        } else {
            Bytes::from_owner(pool.share(memory, length))
        };
        stream.supply(chunk.clone(), at, self.total - self.produced);
        if self.is_unpacked {
            decompressors.put_back(codec, is_windowed, decompressor);
        } else {
            self.before = chunk;
            self.decompressor = Some(decompressor);
        }
        Ok(filled)
    }

    /// The next window, in memory that is not filled yet.
    fn window(&mut self, stream: &Stream, history: usize, pool: &mut Pool<u8>) -> Result<Window> {
        let tail = stream.there().len();
        let front = tail.max(history.min(self.before.len()));
        let room = self.window_bytes.saturating_sub(front).max(self.window_bytes / 4);
        let more = room.max(stream.wanted().saturating_sub(tail)).max(1).min(self.total - self.produced);
        let goal = front + more;
        // Memory grows as bytes are produced, but there is some to begin with.
        let packed = usize_of(self.packed.end - self.packed.start).unwrap_or(usize::MAX);
        let some = packed.saturating_mul(4).max(ROOM_MIN).min(self.window_bytes.max(ROOM_MIN));
        let first = goal.min(front + some);
        let bytes = Growing::within(pool.take_memory(first)?);
        Ok(Window { bytes, front, tail, first, goal })
    }

    fn unpack_into(
        &mut self,
        window: &mut Window,
        decompressor: &mut dyn Decompressor,
        input: &mut Input,
        budget: &mut Budget<'_>,
    ) -> Result<Fill> {
        if !window.bytes.grow(window.first, window.goal, budget)? {
            return Ok(Fill::Yield);
        }
        while window.bytes.len() < window.front {
            let copied = window.bytes.len();
            let end = window.front.min(copied + SLICE_BYTES);
            let front = self.before.len().checked_sub(window.front);
            let front = front.ok_or_else(|| Error::internal("a window that begins before its page"))?;
            window.bytes.append(&self.before[front + copied..front + end]);
            budget.charge(COPY_PRICE, end - copied, 0);
            if budget.is_spent() {
                return Ok(Fill::Yield);
            }
        }
        if !self.is_started {
            let packed = usize_of(self.packed.end - self.packed.start).unwrap_or(usize::MAX);
            let whole = window.goal == self.total && window.bytes.room() >= self.total;
            decompressor.start(packed, self.total, whole)?;
            self.is_started = true;
        }
        loop {
            let start = self.packed.start;
            let mut piece = input.segment(start, self.packed.end - start);
            if piece.is_empty() && start < self.packed.end {
                self.needs = 1;
                return Ok(Fill::Need);
            }
            if self.is_unverified() {
                if self.checked <= start {
                    // No more than a slice, so it is checked at once.
                    let slice = piece.len().min(SLICE_BYTES);
                    self.check(input, start + u64_of(slice), budget)?;
                }
                piece.truncate(usize_of(self.checked - start).unwrap_or(usize::MAX));
            }
            let is_last = start + u64_of(piece.len()) == self.packed.end;
            let filled = window.bytes.len();
            let room = window.bytes.with_room(window.goal);
            let progress = decompressor.step(&piece, is_last, room, filled, budget)?;
            self.packed.start += u64_of(progress.consumed);
            input.release(start..self.packed.start);
            window.bytes.add(progress.produced);
            self.produced += progress.produced;
            let is_full = window.bytes.len() == window.goal;
            match progress.status {
                Status::End if self.produced == self.total => {
                    self.is_unpacked = true;
                    return Ok(Fill::Filled);
                }
                Status::End => {
                    return Err(Error::corrupt(format!(
                        "a page of {} bytes that should have {}",
                        self.produced, self.total
                    )));
                }
                Status::NeedInput if is_last && progress.consumed == piece.len() => {
                    return Err(Error::corrupt("a page's body that ends early"));
                }
                Status::NeedRoom if self.produced == self.total => {
                    return Err(Error::corrupt(format!(
                        "a page larger than the {} bytes it should have",
                        self.total
                    )));
                }
                Status::NeedRoom if !is_full => {
                    let more = window.bytes.room() + 1;
                    if !window.bytes.grow(more, window.goal, budget)? {
                        return Ok(Fill::Yield);
                    }
                }
                Status::NeedInput | Status::NeedRoom | Status::Yield => {}
            }
            if is_full && self.produced < self.total {
                return Ok(Fill::Filled);
            }
            if progress.status == Status::Yield || budget.is_spent() {
                return Ok(Fill::Yield);
            }
        }
    }

    /// Looks at what was not wanted of a body, which may be wrong, and drops it.
    fn finish(
        &mut self,
        input: &mut Input,
        decompressors: &mut Decompressors,
        pool: &mut Pool<u8>,
        budget: &mut Budget<'_>,
    ) -> Result<Fill> {
        if self.codec.is_some() && !self.is_unpacked {
            self.drop_before(self.levels_end, input);
            while !self.is_unpacked {
                let mut rest = Stream::coming(self.total - self.produced);
                let filled = self.unpack(&mut rest, input, decompressors, pool, budget)?;
                if filled != Fill::Filled {
                    return Ok(filled);
                }
                if budget.is_spent() && !self.is_unpacked {
                    return Ok(Fill::Yield);
                }
            }
        }
        let checked = self.check(input, self.packed.end, budget)?;
        match checked {
            Fill::Filled => self.drop_before(self.packed.end, input),
            Fill::Need | Fill::Yield => self.drop_before(self.checked, input),
        }
        self.needs = 1;
        Ok(checked)
    }

    fn drop_before(&mut self, at: u64, input: &mut Input) {
        let start = self.packed.start;
        self.packed.start = start.max(at);
        self.is_kept = false;
        input.release(start..self.packed.start);
    }
}
