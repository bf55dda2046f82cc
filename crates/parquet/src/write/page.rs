//! From the body of a page to its bytes in the file: compression, checksum, header; a slice at a time.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Bytes, Codec, Codecs, Compressor, Error, Limit, Limits, Price, Result, Status};
use marquetry_kernels::crc32;

use super::encoder::Body;
use crate::format::write::write_page_header;
use crate::format::{Compression, DataPageHeaderV2, Encoding, PageHeader, PageKind};
use crate::growing::{COPY_PRICE, ROOM_PRICE, SLICE_BYTES, release_in_step};

/// What a checksum costs, of bytes that are not in a cache.
const CRC_PRICE: Price = Price::per_kib(200);
/// The cost of a page besides its bytes: its header, and its memory.
const PAGE_UNITS: u64 = 500;

/// Parts of a body are joined up to this many bytes: codecs are faster on one piece, and hosts do not dislike a piece
/// of this size.
const JOINED_BYTES_MAX: usize = 960 << 10;
/// Memory for a codec's output, which is copied from there in one go.
const ROOM_BYTES: usize = 128 << 10;
/// Space for a page's header before a codec's output.
const HEADER_BYTES: usize = 64;
/// Smaller pieces of a page are copied to memory of just their size, unless they are in such memory.
const SMALL_BYTES: usize = 64 << 10;

/// The part of its bytes that a page must take, if it may be [stored](Stored): readers hold 16 times a file's bytes by
/// default, and some values twice.
const STORED_PART: usize = 8;
/// The bytes of a row whose page may be stored. Pages of smaller ones are within what readers hold of any file, unless many
/// columns have them.
pub(super) const STORED_BYTES_MIN: u64 = 64 << 20;

/// A page as written to the file, with its header.
#[derive(Debug)]
pub(super) struct Page {
    /// Its bytes. No piece has 1 MiB or more.
    pub(super) pieces: Vec<Bytes>,
    /// Bytes in all.
    pub(super) bytes: u32,
    /// Bytes in all before compression.
    pub(super) uncompressed_bytes: u32,
    /// It is a [stored](Stored) one.
    pub(super) is_stored: bool,
    /// Which compressor was found to be better, if both were tried.
    pub(super) found: Option<Way>,
}

/// A page as it is written if compression makes it too small: see [`WriteOptions::limits`](super::WriteOptions::limits).
pub(super) struct Stored {
    pub(super) header: DataPageHeaderV2,
    pub(super) levels: Body,
    pub(super) values: Body,
}

/// Which of a codec's compressors, if it has two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// The one selected by the level.
    Usual,
    /// The [other](Codecs::other_compressor), which is faster.
    Other,
    /// Both are tried: the other one wins unless its page is more than a hundredth larger.
    Both,
}

/// If a codec has two compressors, both are tried on one page of a chunk to find the better: on the fourth of at least
/// this many bytes. Pages before it are not, because no more may follow.
const TRIED_PAGE_BYTES: usize = 64 << 10;
const TRIED_PAGE: usize = 4;

/// Which compressor a column's pages get.
#[derive(Debug, Default)]
pub(super) struct Ways {
    /// The result for pages of an encoding.
    found: Option<(Encoding, Way)>,
    /// Pages of the chunk that are not small.
    large_pages: usize,
}

impl Ways {
    /// The compressor of a page of `bytes`, if no level is set.
    pub(super) fn next(&mut self, encoding: Encoding, bytes: usize) -> Way {
        if bytes < TRIED_PAGE_BYTES {
            return Way::Usual;
        }
        self.large_pages += 1;
        match self.found {
            _ if self.large_pages == TRIED_PAGE => {
                self.found = Some((encoding, Way::Usual));
                Way::Both
            }
            Some((found_for, way)) if found_for == encoding => way,
            _ => Way::Usual,
        }
    }

    /// Records the result of a page that was compressed by both.
    pub(super) fn keep(&mut self, found: Option<Way>) {
        if let (Some(found), Some((_, way))) = (found, &mut self.found) {
            *way = found;
        }
    }

    /// The chunk has no more pages.
    pub(super) fn end_chunk(&mut self) {
        self.large_pages = 0;
    }
}

/// Turns bodies into pages, one after the other, for all columns.
pub(super) struct PageMaker {
    codecs: Arc<dyn Codecs>,
    /// Those that were used.
    compressors: Vec<(Kind, Box<dyn Compressor>)>,
    crc: bool,
    limits: Limits,
    stage: Stage,
    /// The compressor of this page.
    compressor: Option<usize>,
    /// A second compressor for it, and the result of the first.
    also: Option<usize>,
    before: Option<Body>,
    found: Option<Way>,
    kind: Option<PageKind>,
    /// The page, if it may be stored, and whether it is.
    stored: Option<Stored>,
    is_stored: bool,
    /// What precedes the compressed part, as it is.
    plain: Body,
    /// The part that is compressed if there is a codec.
    input: Body,
    uncompressed: usize,
    /// Memory for joined parts and for a codec's output, reused from page to page.
    joined: Vec<u8>,
    room: Vec<u8>,
    /// Bytes of that memory that are filled.
    filled: usize,
    /// The body in the file.
    output: Body,
    checksum: u32,
    /// Bodies that are no longer needed.
    released: Vec<Bytes>,
}

/// A compressor's codec and level, and whether it is the other one.
type Kind = (Codec, Option<i32>, bool);

/// What must be done next with the page, and the progress.
#[derive(Debug, Clone, Copy)]
enum Stage {
    Idle,
    /// Parts are joined: from a byte of a piece on.
    Join {
        piece: usize,
        at: usize,
    },
    /// The joined bytes, or the pieces, are compressed.
    Compress {
        piece: usize,
        at: usize,
    },
    /// The codec's output is kept, before it goes on from there.
    Keep {
        piece: usize,
        at: usize,
        is_end: bool,
    },
    /// What the page was compressed from is released.
    Release,
    /// The checksum is computed.
    Checksum {
        piece: usize,
        at: usize,
    },
}

impl PageMaker {
    pub(super) fn new(codecs: Arc<dyn Codecs>, crc: bool, limits: Limits) -> PageMaker {
        PageMaker {
            codecs,
            compressors: Vec::new(),
            crc,
            limits,
            stage: Stage::Idle,
            compressor: None,
            also: None,
            before: None,
            found: None,
            kind: None,
            stored: None,
            is_stored: false,
            plain: Body::default(),
            input: Body::default(),
            uncompressed: 0,
            joined: Vec::new(),
            room: Vec::new(),
            filled: 0,
            output: Body::default(),
            checksum: 0,
            released: Vec::new(),
        }
    }

    /// The codecs that it uses.
    pub(super) fn codecs(&self) -> Arc<dyn Codecs> {
        Arc::clone(&self.codecs)
    }

    /// Makes the pages of another file from now on.
    pub(super) fn adopt(&mut self, crc: bool, limits: Limits) {
        (self.crc, self.limits) = (crc, limits);
    }

    /// Begins a page: `plain`, then `input`, which is compressed. `kind` must be complete, except for whether a V2 page
    /// is compressed.
    ///
    /// # Errors
    ///
    /// If there is no such codec, or it does not have the level; the limit, if readers accept no page of so many bytes.
    pub(super) fn start(
        &mut self,
        mut kind: PageKind,
        plain: Body,
        input: Body,
        compression: Compression,
        (level, way): (Option<i32>, Way),
    ) -> Result<()> {
        (self.also, self.before, self.found) = (None, None, None);
        (self.stored, self.is_stored) = (None, false);
        self.uncompressed = plain.len() + input.len();
        self.check(self.uncompressed)?;
        // Nothing is compressed to something, which some readers reject.
        let is_skipped = matches!(kind, PageKind::DataV2(_)) && input.is_empty();
        self.compressor = match compression {
            Compression::Codec(codec) if !is_skipped => {
                let other = if way == Way::Usual { None } else { self.other_of(codec)? };
                if way == Way::Other && other.is_some() {
                    other
                } else {
                    self.also = other;
                    Some(self.compressor_of(codec, level)?)
                }
            }
            _ => None,
        };
        self.stage = match self.compressor {
            None => Stage::Checksum { piece: 0, at: 0 },
            Some(number) => {
                self.compressors[number].1.start(input.len())?;
                self.joined.clear();
                self.filled = 0;
                let is_joined = input.pieces().len() > 1 && input.len() <= JOINED_BYTES_MAX;
                match is_joined {
                    true => Stage::Join { piece: 0, at: 0 },
                    false => Stage::Compress { piece: 0, at: 0 },
                }
            }
        };
        if let (PageKind::DataV2(page), None) = (&mut kind, self.compressor) {
            page.is_compressed = false;
        }
        (self.plain, self.input, self.checksum) = (plain, input, 0);
        self.output = match self.compressor {
            None => self.whole_input(),
            Some(_) => Body::default(),
        };
        self.kind = Some(kind);
        Ok(())
    }

    /// The page that was begun may be stored: it is if compression makes it [`STORED_PART`] times smaller.
    pub(super) fn or_stored(&mut self, stored: Stored) {
        self.stored = Some(stored);
    }

    /// Checks that readers accept a page's bytes.
    fn check(&self, bytes: usize) -> Result<()> {
        self.limits.check(Limit::PageBytes, u64_of(bytes))
    }

    fn compressor_of(&mut self, codec: Codec, level: Option<i32>) -> Result<usize> {
        let kind = (codec, level, false);
        match self.known(kind) {
            Some(number) => Ok(number),
            None => Ok(self.add(kind, self.codecs.compressor(codec, level)?)),
        }
    }

    fn other_of(&mut self, codec: Codec) -> Result<Option<usize>> {
        let kind = (codec, None, true);
        match self.known(kind) {
            Some(number) => Ok(Some(number)),
            None => Ok(self.codecs.other_compressor(codec)?.map(|other| self.add(kind, other))),
        }
    }

    fn known(&self, kind: Kind) -> Option<usize> {
        self.compressors.iter().position(|known| known.0 == kind)
    }

    fn add(&mut self, kind: Kind, compressor: Box<dyn Compressor>) -> usize {
        self.compressors.push((kind, compressor));
        self.compressors.len() - 1
    }

    /// The body as it is without a codec.
    fn whole_input(&mut self) -> Body {
        let mut body = core::mem::take(&mut self.plain);
        body.append(core::mem::take(&mut self.input));
        body
    }

    /// Works on. `None` when the budget is spent.
    ///
    /// # Errors
    ///
    /// The codec's errors; `LimitExceeded` for a page beyond 2 GiB.
    pub(super) fn step(&mut self, budget: &mut Budget<'_>) -> Result<Option<Page>> {
        loop {
            match self.stage {
                Stage::Idle => return Err(Error::internal("a page that was not begun")),
                Stage::Join { piece, at } => self.join(piece, at, budget)?,
                Stage::Compress { piece, at } => {
                    if self.compress(piece, at, budget)? == Status::Yield {
                        return Ok(None);
                    }
                }
                Stage::Keep { piece, at, is_end } => {
                    budget.charge(ROOM_PRICE, self.filled, 0);
                    self.keep_filled()?;
                    self.stage = Stage::Compress { piece, at };
                    if is_end {
                        self.end_compression()?;
                    }
                }
                Stage::Release => {
                    if !release_in_step(&mut self.released, budget) {
                        return Ok(None);
                    }
                    self.stage = Stage::Checksum { piece: 0, at: 0 };
                }
                Stage::Checksum { piece, at } => {
                    if !self.crc || piece == self.output.pieces().len() {
                        budget.charge_units(PAGE_UNITS);
                        return self.finish().map(Some);
                    }
                    let bytes = &self.output.pieces()[piece];
                    let end = bytes.len().min(at + SLICE_BYTES);
                    self.checksum = crc32(self.checksum, &bytes[at..end]);
                    budget.charge(CRC_PRICE, end - at, 0);
                    let next = if end == bytes.len() { (piece + 1, 0) } else { (piece, end) };
                    self.stage = Stage::Checksum { piece: next.0, at: next.1 };
                }
            }
            if budget.is_spent() {
                return Ok(None);
            }
        }
    }

    fn join(&mut self, piece: usize, at: usize, budget: &mut Budget<'_>) -> Result<()> {
        let Some(bytes) = self.input.pieces().get(piece) else {
            self.stage = Stage::Compress { piece: 0, at: 0 };
            return Ok(());
        };
        let end = bytes.len().min(at + SLICE_BYTES);
        let missing = self.input.len() - self.joined.len();
        self.joined.try_reserve_exact(missing).map_err(|_| Error::out_of_memory(missing))?;
        self.joined.extend_from_slice(&bytes[at..end]);
        budget.charge(COPY_PRICE, end - at, 0);
        self.stage = match end == bytes.len() {
            true => Stage::Join { piece: piece + 1, at: 0 },
            false => Stage::Join { piece, at: end },
        };
        Ok(())
    }

    /// Continues compressing. A codec also yields before the budget is spent, if the rest is less than its smallest
    /// piece of work.
    fn compress(&mut self, piece: usize, at: usize, budget: &mut Budget<'_>) -> Result<Status> {
        let Some(number) = self.compressor else { return Err(Error::internal("a page without a codec")) };
        let compressor = &mut self.compressors[number].1;
        if self.room.is_empty() {
            self.room.try_reserve_exact(ROOM_BYTES).map_err(|_| Error::out_of_memory(ROOM_BYTES))?;
            self.room.resize(ROOM_BYTES, 0);
        }
        let (input, is_last) = match self.input.pieces() {
            _ if !self.joined.is_empty() => (&self.joined[at..], true),
            [] => (&[][..], true),
            pieces => (&pieces[piece][at..], piece + 1 == pieces.len()),
        };
        let length = input.len();
        let progress = compressor.step(input, is_last, &mut self.room[self.filled..], budget)?;
        self.filled += progress.produced;
        let (piece, at) = match progress.consumed == length && !is_last {
            true => (piece + 1, 0),
            false => (piece, at + progress.consumed),
        };
        let is_end = progress.status == Status::End;
        self.stage = match is_end || progress.status == Status::NeedRoom {
            true => Stage::Keep { piece, at, is_end },
            false => Stage::Compress { piece, at },
        };
        if progress.status == Status::NeedInput && is_last && progress.consumed == 0 {
            return Err(Error::internal("a codec that wants more than there is"));
        }
        Ok(progress.status)
    }

    /// Makes the codec's output a piece of the body: the first one with space for the header before it.
    fn keep_filled(&mut self) -> Result<()> {
        let produced = &self.room[..self.filled];
        let free = if self.output.is_empty() { HEADER_BYTES } else { 0 };
        let mut memory = Vec::new();
        memory.try_reserve_exact(free + produced.len()).map_err(|_| Error::out_of_memory(produced.len()))?;
        memory.resize(free, 0);
        memory.extend_from_slice(produced);
        self.output.append(Body::with_room(memory, free));
        self.filled = 0;
        Ok(())
    }

    fn end_compression(&mut self) -> Result<()> {
        if let Some(also) = self.also.take() {
            self.before = Some(core::mem::take(&mut self.output));
            self.compressors[also].1.start(self.input.len())?;
            (self.compressor, self.stage) = (Some(also), Stage::Compress { piece: 0, at: 0 });
            return Ok(());
        }
        if let Some(before) = self.before.take() {
            let is_better = self.output.len() <= before.len() + before.len() / 100;
            self.found = Some(if is_better { Way::Other } else { Way::Usual });
            let worse = if is_better { before } else { core::mem::replace(&mut self.output, before) };
            self.released.extend(worse.into_pieces());
        }
        self.stage = Stage::Release;
        if let Some(stored) = self.stored.take() {
            if self.output.len() < self.uncompressed / STORED_PART {
                self.store(stored);
                return Ok(());
            }
            self.released.extend(stored.levels.into_pieces());
            self.released.extend(stored.values.into_pieces());
        }
        if let Some(PageKind::DataV2(page)) = &mut self.kind {
            page.is_compressed = self.output.len() < self.input.len();
            if !page.is_compressed {
                self.compressor = None;
                let input = self.whole_input();
                self.released.extend(core::mem::replace(&mut self.output, input).into_pieces());
                return Ok(());
            }
        }
        let mut body = core::mem::take(&mut self.plain);
        body.append(core::mem::take(&mut self.output));
        self.output = body;
        self.released.extend(core::mem::take(&mut self.input).into_pieces());
        Ok(())
    }

    /// Takes the page as it is.
    fn store(&mut self, stored: Stored) {
        let Stored { header, levels, values } = stored;
        self.kind = Some(PageKind::DataV2(DataPageHeaderV2 { is_compressed: false, ..header }));
        (self.is_stored, self.compressor) = (true, None);
        self.uncompressed = levels.len() + values.len();
        let compressed = core::mem::replace(&mut self.output, levels);
        self.output.append(values);
        for body in [compressed, core::mem::take(&mut self.plain), core::mem::take(&mut self.input)] {
            self.released.extend(body.into_pieces());
        }
    }

    fn finish(&mut self) -> Result<Page> {
        self.stage = Stage::Idle;
        let body = core::mem::take(&mut self.output);
        self.check(body.len())?;
        let Some(kind) = self.kind.take() else { return Err(Error::internal("a page of no kind")) };
        let header = write_page_header(&PageHeader {
            kind,
            uncompressed_bytes: signed_u32(self.uncompressed)?,
            compressed_bytes: signed_u32(body.len())?,
            crc: self.crc.then_some(self.checksum),
        });
        let uncompressed_bytes = signed_u32(header.len() + self.uncompressed)?;
        let mut page = Body::default();
        page.push(header.into());
        page.append(body);
        let bytes = signed_u32(page.len())?;
        let is_tight = self.compressor.is_some() && page.pieces().len() == 1;
        let pieces = if is_tight || page.len() > SMALL_BYTES {
            page.into_pieces()
        } else {
            let mut whole = Vec::with_capacity(page.len());
            page.pieces().iter().for_each(|piece| whole.extend_from_slice(piece));
            alloc::vec![whole.into()]
        };
        let (is_stored, found) = (self.is_stored, self.found.take());
        Ok(Page { pieces, bytes, uncompressed_bytes, is_stored, found })
    }

    /// Bytes of memory that it keeps from page to page.
    pub(super) fn held(&self) -> u64 {
        let compressors: usize = self.compressors.iter().map(|known| known.1.held_bytes()).sum();
        u64_of(compressors + self.room.capacity() + self.joined.capacity())
    }
}

/// A length, which the format stores as a signed number of 32 bits.
fn signed_u32(bytes: usize) -> Result<u32> {
    i32::try_from(bytes).map(i32::cast_unsigned).map_err(|_| {
        let why = alloc::format!("a page of {bytes} bytes: the format counts them with 31 bits");
        Error::too_large(why)
    })
}
