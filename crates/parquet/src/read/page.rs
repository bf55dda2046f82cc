//! From a column chunk's bytes to its pages, header by header.
//!
//! A page's body is a [`Stream`], supplied a chunk at a time ([`PageReader::fill`]). One that is not longer than a window is
//! one chunk. Of a longer one each chunk begins with what its reader has not consumed of the one before, and as long as it
//! is read, its CRC is computed as its bytes are.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::u64_of;
use marquetry_base::{
    Budget, Demand, Detail, Error, Input, Limit, Limits, Object, Price, Priority, Release, Result, Want,
};

use super::ReadOptions;
use super::body::Body;
use super::options::LargePages;
use super::work::Work;
use crate::encoding::stream::Stream;
use crate::format::{ColumnChunk, Compression, FileMetaData, PageHeader, PageKind};
use crate::going::{Going, done};
use crate::thrift::{Skim, Stop, WHOLE_BYTES_MAX};

/// Bytes asked for to read a page header: most need less than 100; statistics make them longer.
const HEADER_GUESS_BYTES: u64 = 1 << 10;
/// The price of a page: its header, and what is built to read it. Measured at 0.4 to 1.2 µs, of pages of one value; on
/// processors with smaller caches, at more than twice that.
const HEADER_PRICE: Price = Price { kib: 1024, kilovalue: 1_400 << 10 };
/// Bytes by which a column chunk may be longer than the footer says. Early parquet-mr forgot the dictionary page's header
/// in its sum (PARQUET-816): then its last page is cut, in its body or in its header.
pub(super) const FORGOTTEN_BYTES_MAX: u64 = 100;

/// Reads the pages of one column chunk, one after the other.
pub(super) struct PageReader {
    object: Object,
    /// Where the next page header, or the body of the current page, starts.
    at: u64,
    /// Where the chunk ends, as far as is known.
    end: u64,
    /// Where it ends by its length in the footer; and at the latest, if that should be too small.
    end_stated: u64,
    end_max: u64,
    /// Pages begun, dictionary pages included.
    pages: u64,
    compression: Compression,
    /// V2 pages are compressed, whatever they say.
    always_compressed: bool,
    expects: Expects,
    limits: Limits,
    verify_crc: bool,
    verify_first_bytes: u64,
    large_pages: LargePages,
    window_bytes: usize,
    read_bytes: u64,
    /// Where that ends which is wanted, as far as it is known that what follows is not.
    wanted_end: u64,
}

enum Expects {
    /// A page header; one that is long, or came in pieces, is being skimmed.
    Header(Option<Box<Skim>>),
    /// The body of a page.
    Body(Box<Body>),
}

/// What [`PageReader::next`] finds.
pub(super) enum Found {
    /// The header of a data page of so many entries: the next call begins to read its body, unless the page is [passed](PageReader::pass).
    Header(u32),
    /// A page: its kind, and the stream of its body. V2: repetition levels, then definition levels, then values.
    Page(PageKind, Stream),
    /// The chunk has no more bytes.
    End,
}

/// Whether a writer says of V2 pages that they are not compressed, and compresses them: Arrow C++ before 3.0, which was
/// called otherwise then (ARROW-10353).
fn denies_compression(created_by: &str) -> bool {
    created_by.starts_with("parquet-cpp version ")
}

impl Release for PageReader {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        match &mut self.expects {
            Expects::Header(skim) => skim.release(budget),
            Expects::Body(body) => body.release(budget),
        }
    }
}

impl PageReader {
    /// A reader of `chunk`, a part of `object`.
    pub(super) fn new(
        object: Object,
        chunk: &ColumnChunk,
        metadata: &FileMetaData,
        options: &ReadOptions,
    ) -> Result<PageReader> {
        let footer_start = metadata.footer_start;
        if chunk.encrypted {
            return Err(Error::encrypted("an encrypted column"));
        }
        // An empty name names no file.
        if let Some(path) = chunk.file_path.as_deref().filter(|path| !path.is_empty()) {
            return Err(Error::unsupported(format!("a column chunk in another file, {path:?}")));
        }
        if let Compression::Unknown(number) = chunk.compression {
            return Err(Error::unsupported(format!("the unknown compression codec {number}"))
                .with(Detail::Codec(number)));
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
            end_stated: end,
            end_max: end.saturating_add(FORGOTTEN_BYTES_MAX).min(footer_start),
            pages: 0,
            compression: chunk.compression,
            always_compressed: metadata.created_by.as_deref().is_some_and(denies_compression),
            expects: Expects::Header(None),
            limits: options.limits,
            verify_crc: options.verify_crc,
            verify_first_bytes: options.verify_first_bytes,
            large_pages: options.large_pages,
            window_bytes: options.window_bytes.max(1),
            read_bytes: options.read_bytes.max(1),
            wanted_end: u64::MAX,
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

    /// What the header says of the page whose body is not begun.
    pub(super) fn kind(&self) -> Option<&PageKind> {
        if let Expects::Body(body) = &self.expects { body.kind() } else { None }
    }

    /// What starts at `end` or after it is not wanted, or is if that is `u64::MAX`.
    pub(super) fn want_before(&mut self, end: u64) {
        self.wanted_end = end;
    }

    /// The offset that errors report.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Bytes held of the page that is being read, beside what the input and the page's stream hold.
    pub(super) fn held(&self) -> usize {
        match &self.expects {
            Expects::Header(skim) => skim.as_ref().map_or(0, |skim| skim.held()),
            Expects::Body(body) => body.held(),
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
        let (needed, end) = self.needed();
        let Some(missing) = input.missing(needed.clone()) else { return };
        let ahead = needed.start.saturating_add(self.read_bytes).min(end).max(needed.end);
        demand.push(Want::Range(self.object, missing.start..ahead, priority));
    }

    /// Asks early for what `ranges` says: told where that ends which is asked for already, and how many bytes these may be.
    pub(super) fn want_ahead(
        &self,
        ranges: impl FnOnce(u64, u64) -> Vec<Range<u64>>,
        input: &Input,
        demand: &mut Demand,
    ) {
        if self.wanted_end == u64::MAX {
            return;
        }
        for range in ranges(self.wanted_end, self.read_bytes) {
            let range = range.start..range.end.min(self.end);
            if let Some(missing) = input.missing(range.clone()) {
                demand.push(Want::Range(self.object, missing.start..range.end, Priority::Soon));
            }
        }
    }

    /// What it does not go on without, and where that ends which is worth asking for with it.
    fn needed(&self) -> (Range<u64>, u64) {
        let (from, bytes) = match &self.expects {
            Expects::Header(None) => (self.at, HEADER_GUESS_BYTES),
            Expects::Header(Some(skim)) => {
                // No more than a header may have; and a byte more, to see that it has more.
                let left = (self.at.saturating_add(self.limits.page_header_bytes).saturating_add(1))
                    .saturating_sub(skim.at());
                (skim.at(), skim.wants().max(HEADER_GUESS_BYTES).min(left))
            }
            Expects::Body(body) => {
                let (needed, end) = body.needed();
                return (needed.start..needed.end.min(self.end), end.min(self.end).min(self.wanted_end));
            }
        };
        // A header that reaches beyond is wanted nevertheless.
        let end = if from < self.wanted_end { self.end.min(self.wanted_end) } else { self.end };
        (from..from.saturating_add(bytes).min(end), end)
    }

    /// Reads the next page header, and leaves the body unread: the next call of this or of `next` follows it. Statistics may be
    /// left out where nobody `keeps_statistics`.
    pub(super) fn next_header(
        &mut self,
        input: &mut Input,
        keeps_statistics: bool,
        budget: &mut Budget<'_>,
    ) -> Result<Going<(PageHeader, Range<u64>)>> {
        let Expects::Header(skim) = &mut self.expects else {
            return Err(Error::internal("a page header where a body is read"));
        };
        let header = match skim.take() {
            Some(skim) => self.skim_header(skim, input, budget)?,
            None => {
                let left = self.end - self.at;
                let piece = input.segment(self.at, left.min(u64_of(WHOLE_BYTES_MAX)));
                if piece.is_empty() {
                    return Ok(Going::Need(()));
                }
                let read = PageHeader::read_some(&piece, keeps_statistics);
                let looked_at = read.as_ref().map_or(piece.len(), |(_, length)| *length);
                budget.charge(HEADER_PRICE, looked_at, 1);
                match read {
                    Ok((header, length)) => Going::Done((header, self.at..self.at + u64_of(length))),
                    Err(Stop::End) => {
                        let skim = Box::new(PageHeader::skim(self.at, &self.limits));
                        if budget.is_spent() {
                            self.expects = Expects::Header(Some(skim));
                            return Ok(Going::Yield);
                        }
                        self.skim_header(skim, input, budget)?
                    }
                    Err(stop) => return Err(PageHeader::error(stop, self.at)),
                }
            }
        };
        let (header, range) = done!(header);
        self.check_header(range.end - range.start)?;
        self.pages += 1;
        self.at = range.end;
        input.release(range.clone());
        let page_end = self.at.saturating_add(header.compressed_bytes.into());
        let is_longer = page_end > self.end_stated && page_end <= self.end_max;
        self.end = if is_longer { page_end } else { self.end_stated };
        let left = self.end.saturating_sub(self.at);
        if u64::from(header.compressed_bytes) > left {
            return Err(Error::corrupt(format!(
                "a page of {} bytes in a column chunk with {left} left",
                header.compressed_bytes
            )));
        }
        Ok(Going::Done((header, range)))
    }

    /// Skims a header on, and releases what was skimmed.
    fn skim_header(
        &mut self,
        mut skim: Box<Skim>,
        input: &mut Input,
        budget: &mut Budget<'_>,
    ) -> Result<Going<(PageHeader, Range<u64>)>> {
        let longest = self.at.saturating_add(self.limits.page_header_bytes).saturating_add(1);
        loop {
            let end = self.end.min(longest);
            let piece = input.segment(skim.at(), end.saturating_sub(skim.at()));
            if piece.is_empty() && skim.wants() > 0 {
                self.check_header(skim.at() - self.at)?;
                if skim.at() >= self.end && self.end < self.end_max {
                    self.end = self.end_max;
                    continue;
                }
                if skim.at() < end {
                    self.expects = Expects::Header(Some(skim));
                    return Ok(Going::Need(()));
                }
                return Err(PageHeader::fault_of(&skim, PageHeader::error(Stop::End, self.at)));
            }
            let is_whole = skim.step(&piece, budget).map_err(|fault| PageHeader::fault_of(&skim, fault))?;
            input.release(self.at..skim.at());
            if is_whole {
                budget.charge(HEADER_PRICE, skim.digest_bytes(), 1);
                return Ok(Going::Done((PageHeader::of_skim(&skim)?, self.at..skim.at())));
            }
            if budget.is_spent() {
                self.expects = Expects::Header(Some(skim));
                return Ok(Going::Yield);
            }
        }
    }

    /// Checks a header's length, as far as it is known.
    fn check_header(&self, length: u64) -> Result<()> {
        // The same number is reported, however the header arrived.
        let limit = self.limits.page_header_bytes;
        Limit::PageHeaderBytes.check(limit, length.min(limit.saturating_add(1)))
    }

    /// Steps over the body of the page whose header was read last.
    pub(super) fn skip_body(&mut self, header: &PageHeader, input: &mut Input) {
        let start = self.at;
        self.at += u64::from(header.compressed_bytes);
        input.release(start..self.at);
        self.expects = Expects::Header(None);
    }

    /// True between two pages.
    pub(super) fn is_between(&self) -> bool {
        matches!(self.expects, Expects::Header(None))
    }

    /// Goes on at `to`, where the page of this number begins: what is before it is not wanted, nor is what stands at or behind
    /// `wanted_end`.
    pub(super) fn jump(&mut self, to: u64, page: u64, wanted_end: u64) -> Result<()> {
        if to < self.at || to >= self.end {
            let (at, end) = (self.at, self.end);
            let message = format!("the page index has a page at {to}, beyond what is left, {at} to {end}");
            return Err(Error::corrupt(message));
        }
        if to > self.at {
            (self.at, self.pages) = (to, page);
        }
        self.wanted_end = wanted_end;
        Ok(())
    }

    /// Steps over the rest of the page whose header was read last: nothing of it is wanted any more.
    pub(super) fn pass(&mut self, work: &mut Work<'_, '_>) {
        if let Expects::Body(body) = core::mem::replace(&mut self.expects, Expects::Header(None)) {
            work.input.release(body.range());
            body.give_back(work.decompressors);
        }
    }

    /// Begins the next page that holds data or a dictionary; where `by_header`, it stops behind the header of each that holds data. What
    /// is left of the page before is looked at, and dropped.
    pub(super) fn next(&mut self, by_header: bool, work: &mut Work<'_, '_>) -> Result<Going<Found>> {
        loop {
            match &mut self.expects {
                Expects::Header(_) => {
                    if self.at >= self.end {
                        return Ok(Going::Done(Found::End));
                    }
                    let (header, _) = done!(self.next_header(work.input, by_header, work.budget)?);
                    self.limits.check(Limit::PageBytes, header.compressed_bytes.into())?;
                    self.limits.check(Limit::PageBytes, header.uncompressed_bytes.into())?;
                    if let PageKind::Other(_) = header.kind {
                        self.skip_body(&header, work.input);
                        if work.budget.is_spent() {
                            return Ok(Going::Yield);
                        }
                    } else {
                        let crc = header.crc.filter(|_| self.verify_crc);
                        let first = (self.verify_first_bytes, self.large_pages);
                        let body = Body::new(header, self.at, crc, self.window_bytes, first);
                        // Errors in the page are told with the place behind it, wherever its chunks end.
                        self.at = body.range().end;
                        let entries = body.entries();
                        self.expects = Expects::Body(Box::new(body));
                        if let Some(entries) = entries.filter(|_| by_header) {
                            return Ok(Going::Done(Found::Header(entries)));
                        }
                    }
                }
                Expects::Body(body) if !body.is_open() => {
                    let opened = body.open((self.compression, self.always_compressed), work)?;
                    return Ok(opened.map(|(kind, stream)| Found::Page(kind, stream)));
                }
                Expects::Body(_) => done!(self.finish(work)?),
            }
        }
    }

    /// Ends the current page, whose values are all decoded: what is left of its body is looked at, and dropped.
    pub(super) fn finish(&mut self, work: &mut Work<'_, '_>) -> Result<Going> {
        let Expects::Body(body) = &mut self.expects else { return Ok(Going::Done(())) };
        done!(body.finish(work)?);
        self.expects = Expects::Header(None);
        Ok(Going::Done(()))
    }

    /// Supplies the stream of the current page with the bytes that it wants.
    pub(super) fn fill(&mut self, stream: &mut Stream, work: &mut Work<'_, '_>) -> Result<Going> {
        let Expects::Body(body) = &mut self.expects else {
            return Err(Error::internal("bytes of a page that is at its end"));
        };
        done!(body.fill(stream, work)?);
        if body.is_done() {
            work.input.release(body.range());
            self.expects = Expects::Header(None);
        }
        Ok(Going::Done(()))
    }
}
