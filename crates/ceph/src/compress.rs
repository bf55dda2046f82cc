//! An object whose pages are compressed in another way, where it is, by many small calls.
//!
//! ```text
//! before      pages │ indexes │ footer
//! pages       pages │ indexes │ new pages … │ note │ footer            a bit more by each call
//! switched    (free)          │ new pages │ indexes │ note │ new footer
//! move        copies … (free) │ new pages │ indexes │ note │ new footer
//! cut         copies │ indexes │ newer footer
//! ```
//!
//! Whenever a reader comes, the object is a Parquet file of the same rows: what a call writes is written completely or not at all, and only two
//! calls write another footer. A call that ends half-way leaves a [`Note`] where the next one goes on, whoever makes it. If nobody does, the
//! object stays as it is, with bytes that nothing refers to, until it is compressed again.
//!
//! Values are not decoded, so bounds, indexes and Bloom filters stay as they are. The last write makes the object shorter, which a class cannot
//! do: its client does it in the same operation. So a call asks for that, and its client does both in the next one.

use std::sync::Arc;

use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::{Bytes, Codec, Error, Limit, Result};
use marquetry_parquet::format::{
    ColumnChunk, Compression, FileMetaData, MAGIC, OffsetIndex, PageHeader, PageKind,
};
use marquetry_parquet::thrift::Stop;

use crate::answer::Answer;
use crate::host::{Host, LIMITS};
use crate::moves::{Moves, append_positions, footer_of, moved_tail, positions};
use crate::note::{Move, Note, Pages, Stage};
use crate::page::{Recoder, Target};
use crate::parts::{Places, check, extras, has_dictionary, next_part, pages_of};
use crate::request::{Request, Step};

/// The part of a share below which no further page is begun.
const LEFT_MIN: u64 = 8;
/// Bytes that are read of the object at a time.
const READ_BYTES: u64 = 128 << 10;
/// Bytes of a page's header, about: that many are looked at first.
const HEADER_BYTES: u64 = 1 << 10;

/// The codec of a name.
fn codec(name: &str) -> Result<Compression> {
    Ok(match name {
        "uncompressed" => Compression::Uncompressed,
        "snappy" => Compression::Codec(Codec::Snappy),
        "gzip" => Compression::Codec(Codec::Gzip),
        "zstd" => Compression::Codec(Codec::Zstd),
        "lz4_raw" => Compression::Codec(Codec::Lz4Raw),
        "brotli" => Compression::Codec(Codec::Brotli),
        other => return Err(Error::misuse(format!("'{other}' is no codec that is written"))),
    })
}

/// Does the next share of it, or says what its client has to do, or that there is nothing more.
pub(crate) fn compress(host: &mut Host<'_>, request: &Request<'_>) -> Result<Answer> {
    let name = request.codec.ok_or_else(|| Error::misuse("no codec to compress by"))?;
    let target = Target { compression: codec(name)?, level: request.level };
    let metadata = host.whole_footer()?;
    check(&metadata)?;
    let footer = host.read(&(metadata.footer_start..metadata.file_bytes()))?;
    let found = Note::find(host, &metadata, &footer)?;
    let object = Compressed { metadata, footer, target };
    match (request.step, found) {
        (Step::Finish, Some((note, _))) if note.target == target => {
            object.finish(note.stage, request.length, host)
        }
        (Step::Finish, _) => Err(Error::misuse("nothing is to be finished")),
        // What another one began is not this one's to undo.
        (Step::Abandon, Some((Note { target: of, stage: Stage::Pages(pages) }, _))) if of == target => {
            Ok(object.cut(pages.start + u64_of(object.footer.len())))
        }
        (Step::Begin | Step::GoOn, Some((note, start)))
            if note.target == target && note.stage != Stage::Stays =>
        {
            match note.stage {
                Stage::Pages(pages) => object.pages(pages, host),
                Stage::Move(moved) => object.go_on_moving(moved, start, host),
                Stage::Stays => Ok(object.answer()),
            }
        }
        // Of another one's, nothing is known of the level.
        (Step::GoOn, Some((note, _))) if note.stage == Stage::Stays && note.target == target => {
            Ok(object.answer())
        }
        (Step::GoOn, Some(_)) => Err(Error::io("another compression of the object was begun meanwhile")),
        // Whoever began it must not take for done what another one wrote in its place.
        (Step::GoOn, None) if !object.has_codec() || object.is_free_before_pages() => {
            Err(Error::io("the object was changed meanwhile, or its compression undone"))
        }
        (Step::Begin, found) if !object.is_done(found.as_ref().map(|(note, _)| &note.stage)) => {
            // After what another one left, which is free at the end: a write cannot make the object shorter.
            let start = object.metadata.footer_start;
            object.pages(Pages { start, ..Pages::default() }, host)
        }
        (Step::Begin | Step::GoOn | Step::Abandon, _) => Ok(object.answer()),
    }
}

/// An object that is being compressed.
struct Compressed {
    metadata: Arc<FileMetaData>,
    /// The footer's own bytes.
    footer: Bytes,
    target: Target,
}

impl Compressed {
    fn answer(&self) -> Answer {
        Answer { rows: self.metadata.rows, ..Answer::default() }
    }

    /// The client is to cut the object.
    fn cut(&self, length: u64) -> Answer {
        Answer { cut: Some(length), ..self.answer() }
    }

    /// Whether all chunks are as they are wanted, beside what a note says. What level they are of is not known.
    fn is_done(&self, noted: Option<&Stage>) -> bool {
        let is_in_place = match noted {
            None => !self.is_free_before_pages(),
            Some(stage) => *stage == Stage::Stays,
        };
        self.target.level.is_none() && self.has_codec() && is_in_place
    }

    /// Whether there is something before the first page which none is in: pages were being moved there when the object was changed, or it was
    /// written so.
    fn is_free_before_pages(&self) -> bool {
        let chunks = self.metadata.row_groups.iter().flat_map(|group| group.columns.iter());
        let used = chunks.filter(|chunk| chunk.compressed_bytes > 0);
        used.map(ColumnChunk::first_page_offset).min().is_some_and(|first| first > front())
    }

    /// Whether all chunks are of the wanted codec.
    fn has_codec(&self) -> bool {
        let mut chunks = self.metadata.row_groups.iter().flat_map(|group| group.columns.iter());
        chunks.all(|chunk| chunk.compression == self.target.compression)
    }

    /// The chunk of that number, row group by row group.
    fn chunk(&self, number: u32) -> Option<&ColumnChunk> {
        let (number, leaves) = (usize_of_u32(number), self.metadata.schema.leaves().len());
        let group = self.metadata.row_groups.get(number.checked_div(leaves)?)?;
        group.columns.get(number % leaves)
    }

    /// Writes as many pages as the share pays for, at least one.
    fn pages(&self, mut pages: Pages, host: &mut Host<'_>) -> Result<Answer> {
        let base = pages.end();
        let extras = extras(&self.metadata, 0..self.metadata.row_groups.len())?;
        let mut recoder = Recoder::new(self.target)?;
        let (mut window, mut out) = (Window::default(), Vec::new());
        let (mut is_first, mut ends) = (true, false);
        loop {
            let is_spent = ends || host.left() <= host.share().units / LEFT_MIN;
            if !is_first && (is_spent || out.len() >= host.share().answer_bytes) {
                let note = Note { target: self.target, stage: Stage::Pages(pages) };
                out.extend_from_slice(&note.bytes(&self.footer)?);
                out.extend_from_slice(&self.footer);
                host.write(base, &out)?;
                return Ok(self.answer());
            }
            if let Some(chunk) = self.chunk(pages.chunks) {
                let at = (pages.chunks, pages.offset);
                self.page(chunk, &mut pages, (&mut recoder, &mut window), (&mut out, is_first), host)?;
                // What does not fit into what is left of this call has the next one for itself.
                ends = at == (pages.chunks, pages.offset);
            } else if let Some(part) = next_part(&extras, pages.copied, host.share().answer_bytes) {
                let bytes = host.read(&part)?;
                pages.copied += u64_of(bytes.len());
                out.extend_from_slice(&bytes);
            } else {
                return self.switch(&pages, out, base, host);
            }
            is_first = false;
        }
    }

    /// The next page of a chunk, or the chunk's end. Nothing, if the page takes more than is left of the call and is not its first.
    fn page(
        &self,
        chunk: &ColumnChunk,
        pages: &mut Pages,
        (recoder, window): (&mut Recoder, &mut Window),
        (out, is_first): (&mut Vec<u8>, bool),
        host: &mut Host<'_>,
    ) -> Result<()> {
        let all = pages_of(chunk, &self.metadata)?;
        if pages.counts.len() <= usize_of_u32(pages.chunks) {
            pages.counts.push(0);
        }
        let at = all.start.saturating_add(pages.offset);
        if at >= all.end {
            (pages.chunks, pages.offset) = (pages.chunks + 1, 0);
            return Ok(());
        }
        let (header, head) = window.header(at..all.end, host)?;
        let affords = recoder.affords(chunk.compression, &header, is_first, host);
        if !affords.map_err(|error| error.at_offset(at))? {
            return Ok(());
        }
        let end = at + u64_of(head) + u64::from(header.compressed_bytes);
        if end > all.end {
            return Err(Error::corrupt("a page that is longer than its column chunk").at_offset(at));
        }
        let is_dictionary = matches!(header.kind, PageKind::Dictionary(_));
        if is_dictionary && pages.offset > 0 || pages.offset == 0 && has_dictionary(chunk) && !is_dictionary {
            return Err(Error::corrupt("a dictionary that is not the first page").at_offset(at));
        }
        let bytes = window.bytes(at..end, all.end, host)?;
        let (head, body) = bytes.split_at_checked(head).ok_or_else(|| Error::internal("a short read"))?;
        let written = recoder.recode(chunk.compression, (&header, head, body), (out, is_first), host);
        let Some(written) = written.map_err(|error| error.at_offset(at))? else { return Ok(()) };
        pages.written.push(written);
        if let Some(count) = pages.counts.last_mut() {
            *count += 1;
        }
        pages.offset = end - all.start;
        Ok(())
    }

    /// All is copied: readers are referred to it.
    fn switch(&self, pages: &Pages, mut out: Vec<u8>, base: u64, host: &mut Host<'_>) -> Result<Answer> {
        let all = 0..self.metadata.row_groups.len();
        let body = pages.end();
        let pages_bytes: u64 = pages.written.iter().map(|page| u64::from(page.bytes)).sum();
        let mut places = Places::new(&self.metadata, all.clone(), pages.start + pages_bytes);
        let mut positions = positions(host, &self.metadata, all.clone())?.into_iter().peekable();
        let (mut metadata, mut at) = (FileMetaData::clone(&self.metadata), pages.start);
        let (mut counts, mut written) = (pages.counts.iter(), pages.written.as_slice());
        for (number, group) in metadata.row_groups.iter_mut().enumerate() {
            let (mut bytes, mut growth) = (0, 0);
            for (leaf, chunk) in group.columns.iter_mut().enumerate() {
                let count = counts.next().map_or(0, |count| usize_of_u32(*count));
                let (own, rest) = written
                    .split_at_checked(count)
                    .ok_or_else(|| Error::internal("pages that were not written"))?;
                written = rest;
                let old_first = chunk.first_page_offset();
                let has_dictionary = has_dictionary(chunk) && !own.is_empty();
                let first = own.first().filter(|_| has_dictionary).map_or(0, |page| u64::from(page.bytes));
                chunk.dictionary_page_offset = has_dictionary.then_some(at);
                chunk.data_page_offset = at + first;
                chunk.compression = self.target.compression;
                chunk.compressed_bytes = own.iter().map(|page| u64::from(page.bytes)).sum();
                let more: i64 = own.iter().map(|page| i64::from(page.growth)).sum();
                chunk.uncompressed_bytes = chunk.uncompressed_bytes.saturating_add_signed(more);
                places.set(chunk);
                // Data pages alone are listed.
                let index = positions.next_if(|(of, _)| *of == (number, leaf)).map(|(_, index)| index);
                let is_of = |index: &OffsetIndex| {
                    let is_of_all = index.pages.first().is_none_or(|page| page.offset == old_first);
                    count.wrapping_sub(index.pages.len()) == usize::from(!is_of_all)
                };
                let index = index.filter(is_of);
                match index {
                    None => chunk.column_index = None,
                    Some(mut index) => {
                        let listed = &own[count - index.pages.len()..];
                        let mut next = at + chunk.compressed_bytes
                            - listed.iter().map(|page| u64::from(page.bytes)).sum::<u64>();
                        for (place, page) in index.pages.iter_mut().zip(listed) {
                            (place.offset, place.compressed_bytes) = (next, page.bytes);
                            next += u64::from(page.bytes);
                        }
                        append_positions(chunk, &index, &mut out, base)?;
                    }
                }
                at += chunk.compressed_bytes;
                (bytes, growth) = (bytes + chunk.compressed_bytes, growth + more);
            }
            group.compressed_bytes = group.compressed_bytes.map(|_| bytes);
            group.uncompressed_bytes = group.uncompressed_bytes.saturating_add_signed(growth);
            group.file_offset = None;
        }
        let footer = footer_of(&Arc::new(metadata), host)?;
        let moved = Move { from: pages.start, length: body - pages.start, done: 0 };
        // What grew stays where it is, after bytes that are free.
        let stage = if fits(moved) { Stage::Move(moved) } else { Stage::Stays };
        let note = Note { target: self.target, stage }.bytes(&footer)?;
        // An object is not made shorter by a write: of the note before, which is longer, nothing is left after the footer.
        let end = base + u64_of(out.len() + note.len() + footer.len());
        let padding = usize::try_from(self.metadata.file_bytes().saturating_sub(end)).unwrap_or(0);
        out.resize(out.len() + padding, 0);
        out.extend_from_slice(&note);
        out.extend_from_slice(&footer);
        host.write(base, &out)?;
        Ok(self.answer())
    }

    /// Moves bytes to where nothing is in use, and asks to be finished once all are there.
    fn go_on_moving(&self, mut moved: Move, note_start: u64, host: &mut Host<'_>) -> Result<Answer> {
        if !fits(moved) {
            return Err(Error::corrupt("a note about pages that would be written over"));
        }
        let left = moved.length - moved.done;
        if left == 0 {
            let tail = self.tail(moved, host)?;
            return Ok(self.cut(front() + moved.length + u64_of(tail.len())));
        }
        let some = left.min(u64_of(host.share().answer_bytes.max(1)));
        let from = moved.from + moved.done;
        let bytes = host.read(&(from..from + some))?;
        host.write(front() + moved.done, &bytes)?;
        moved.done += some;
        // As long as the note that is there.
        let note = Note { target: self.target, stage: Stage::Move(moved) };
        host.write(note_start, &note.bytes(&self.footer)?)?;
        Ok(self.answer())
    }

    /// What follows the pages at their last place.
    fn tail(&self, moved: Move, host: &mut Host<'_>) -> Result<Vec<u8>> {
        let moves = Moves { from: moved.from..moved.from + moved.length, to: front() };
        moved_tail(host, &self.metadata, &moves)
    }

    /// Writes the last footer: the client cuts the object after it, in the same operation.
    fn finish(&self, stage: Stage, length: Option<u64>, host: &mut Host<'_>) -> Result<Answer> {
        let (at, bytes) = match stage {
            Stage::Pages(pages) => (pages.start, self.footer.to_vec()),
            Stage::Move(moved) if fits(moved) && moved.done == moved.length => {
                (front() + moved.length, self.tail(moved, host)?)
            }
            Stage::Move(_) | Stage::Stays => return Err(Error::misuse("not all was moved")),
        };
        if length != Some(at + u64_of(bytes.len())) {
            return Err(Error::misuse("the object's length after it is not the one that was asked for"));
        }
        host.write(at, &bytes)?;
        Ok(self.answer())
    }
}

/// Where the first page of an object is.
fn front() -> u64 {
    u64_of(MAGIC.len())
}

/// Whether there is room before the pages for all of them.
fn fits(moved: Move) -> bool {
    front().saturating_add(moved.length) <= moved.from
}

/// Bytes of the object that were read last.
#[derive(Default)]
struct Window {
    start: u64,
    bytes: Bytes,
}

impl Window {
    /// These bytes; more are read with them, up to `end`.
    fn bytes(&mut self, range: std::ops::Range<u64>, end: u64, host: &mut Host<'_>) -> Result<Bytes> {
        let known = self.start..self.start + u64_of(self.bytes.len());
        if range.start < known.start || range.end > known.end {
            let until = range.end.max(end.min(range.start.saturating_add(READ_BYTES)));
            self.bytes = host.read(&(range.start..until))?;
            self.start = range.start;
        }
        let at = |offset: u64| usize::try_from(offset - self.start).unwrap_or(usize::MAX);
        Ok(self.bytes.slice(at(range.start)..at(range.end)))
    }

    /// The header of the page at the start of the range, in which it ends; and its length.
    fn header(&mut self, range: std::ops::Range<u64>, host: &mut Host<'_>) -> Result<(PageHeader, usize)> {
        let mut length = HEADER_BYTES;
        loop {
            let end = range.end.min(range.start.saturating_add(length));
            let bytes = self.bytes(range.start..end, range.end, host)?;
            match PageHeader::read(&bytes) {
                Err(Stop::End) if end < range.end => {
                    length *= 8;
                    LIMITS.check(Limit::PageHeaderBytes, length)?;
                }
                read => return read.map_err(|stop| stop.into_error("a page header", range.start)),
            }
        }
    }
}
