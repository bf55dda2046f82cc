//! The body of a page: checksum and decompression, a chunk at a time.

mod packed;
mod unpacking;

use alloc::boxed::Box;
use alloc::format;
use core::ops::Range;

use marquetry_base::cast::{u64_of, usize_of, usize_of_u32};
use marquetry_base::{Budget, Error, Release, Result, release_all};

use self::packed::Packed;
use self::unpacking::{Unpacked, Unpacking};
use super::decompressors::{Chunks, Decompressors};
use super::options::LargePages;
use super::work::Work;
use crate::encoding::stream::Stream;
use crate::format::{Compression, PageHeader, PageKind};
use crate::going::{Going, done};
use crate::growing::{COPY_PRICE, Joining, SLICE_BYTES};

/// Bytes of an uncompressed page that are joined, at least, where they come in pieces.
const JOINT_BYTES: usize = 4 << 10;

/// The body of a page, while it is read.
pub(super) struct Body {
    packed: Packed,
    /// Bytes of a chunk at a time, if the body is longer.
    window_bytes: usize,
    expects: Expects,
    /// How the values are decompressed; `None` where they are not compressed.
    unpacking: Option<Unpacking>,
    last: Last,
    /// The stream's chunk is not the last that was decompressed, but was put together.
    is_apart: bool,
}

/// What of a body comes next.
enum Expects {
    /// That it is opened: its CRC may have to be checked before.
    Opening(PageHeader),
    /// The levels of a V2 page, which end here. They are never compressed.
    Levels(u64),
    /// Values; or all of a page that is not V2.
    Values,
    /// Nothing: the last chunk was supplied.
    End,
}

/// What became of the last chunk, or becomes of the next one.
enum Last {
    /// It was supplied, and the input has nothing of it.
    Supplied,
    /// It is a part of the input, which still has it.
    Kept,
    /// It is being put together, of several pieces.
    Long(Box<Joining>),
}

impl Release for Body {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let mut none = ();
        let long: &mut dyn Release = match &mut self.last {
            Last::Long(long) => &mut **long,
            Last::Supplied | Last::Kept => &mut none,
        };
        release_all(&mut [&mut self.unpacking, long], budget)
    }
}

impl Body {
    /// The body of a page whose header ends at `start`, and whose CRC is `crc`, if that is to be checked.
    pub(super) fn new(
        header: PageHeader,
        start: u64,
        crc: Option<u32>,
        window_bytes: usize,
        first: (u64, LargePages),
    ) -> Body {
        let bytes = u64::from(header.compressed_bytes);
        let fits = bytes.max(header.uncompressed_bytes.into()) <= u64_of(window_bytes);
        Body {
            packed: Packed::new(start..start + bytes, crc, (fits, leaves_early(&header.kind)), first),
            window_bytes,
            expects: Expects::Opening(header),
            unpacking: None,
            last: Last::Supplied,
            is_apart: false,
        }
    }

    /// Where its bytes are that are not consumed yet.
    pub(super) fn range(&self) -> Range<u64> {
        self.packed.range.clone()
    }

    /// What the header says of a page that is not open yet.
    pub(super) fn kind(&self) -> Option<&PageKind> {
        if let Expects::Opening(header) = &self.expects { Some(&header.kind) } else { None }
    }

    /// The entries of a data page that is not open yet.
    pub(super) fn entries(&self) -> Option<u32> {
        match self.kind()? {
            PageKind::Data(page) => Some(page.values),
            PageKind::DataV2(page) => Some(page.values),
            PageKind::Dictionary(_) | PageKind::Other(_) => None,
        }
    }

    /// Returns the decompressor of a page that is not read to its end.
    pub(super) fn give_back(self, decompressors: &mut Decompressors) {
        if let Some(unpacking) = self.unpacking {
            unpacking.give_back(decompressors);
        }
    }

    /// Bytes held, beside what the input and the page's stream hold.
    pub(super) fn held(&self) -> usize {
        // The stream has another chunk then.
        let history = |unpacking: &Unpacking| if self.is_apart { unpacking.history() } else { 0 };
        let long = if let Last::Long(long) = &self.last { long.held() } else { 0 };
        self.unpacking.as_ref().map_or(0, |unpacking| unpacking.held() + history(unpacking)) + long
    }

    /// The bytes without which it does not go on, and where those end that are worth asking for with them.
    pub(super) fn needed(&self) -> (Range<u64>, u64) {
        self.packed.needed()
    }

    /// True while values leave before the CRC is known to be right.
    pub(super) fn is_unverified(&self) -> bool {
        self.packed.is_unverified()
    }

    /// True when nothing of the body is left to be looked at.
    pub(super) fn is_done(&self) -> bool {
        matches!(self.expects, Expects::End) && !self.packed.is_unchecked()
    }

    /// True once it is [open](Body::open).
    pub(super) fn is_open(&self) -> bool {
        !matches!(self.expects, Expects::Opening(_))
    }

    /// Begins to take the body apart, once its CRC is checked, if that is to be done first: what page it is, and the stream of what the
    /// body becomes.
    pub(super) fn open(
        &mut self,
        (compression, always_compressed): (Compression, bool),
        work: &mut Work<'_, '_>,
    ) -> Result<Going<(PageKind, Stream)>> {
        done!(self.packed.check_first(work)?);
        let Expects::Opening(header) = core::mem::replace(&mut self.expects, Expects::Values) else {
            return Err(Error::internal("a page that is open"));
        };
        let bytes = self.packed.len();
        let uncompressed = usize_of_u32(header.uncompressed_bytes);
        let (levels, is_compressed) = match &header.kind {
            PageKind::DataV2(page) => {
                let levels = u64::from(page.repetition_bytes) + u64::from(page.definition_bytes);
                if levels > bytes || levels > u64_of(uncompressed) {
                    return Err(Error::corrupt(format!(
                        "levels of {levels} bytes in a page of {bytes} bytes, {uncompressed} uncompressed"
                    )));
                }
                (levels, page.is_compressed || always_compressed)
            }
            _ => (0, true),
        };
        if levels > 0 {
            self.expects = Expects::Levels(self.packed.range.start + levels);
        }
        let total = uncompressed - usize_of(levels).unwrap_or(uncompressed);
        let packed = bytes - levels;
        let is_held = match &header.kind {
            PageKind::Dictionary(_) | PageKind::Other(_) => false,
            kind => !leaves_early(kind),
        };
        let chunks = match (total > self.window_bytes, is_held) {
            (false, _) => Chunks::One,
            (true, false) => Chunks::Passing,
            (true, true) => Chunks::Held,
        };
        match compression {
            // A page whose values are all null holds none, and some writers then leave out the codec's empty frame. A page
            // that says it is not compressed, and has another length, is, whoever wrote it.
            Compression::Codec(codec)
                if (is_compressed || packed != u64_of(total)) && (packed > 0 || total > 0) =>
            {
                self.unpacking = Some(Unpacking::new(codec, chunks, total, self.window_bytes));
            }
            _ if packed != u64_of(total) => {
                return Err(Error::corrupt(format!(
                    "an uncompressed page of {bytes} bytes that should have {uncompressed}"
                )));
            }
            _ => {}
        }
        Ok(Going::Done((header.kind, Stream::coming(uncompressed))))
    }

    /// Supplies the page's stream with the bytes that it wants.
    pub(super) fn fill(&mut self, stream: &mut Stream, work: &mut Work<'_, '_>) -> Result<Going> {
        if let Last::Kept = self.last {
            // The input has the last chunk still: the next one begins where the stream stands.
            self.consume(self.packed.range.start + u64_of(stream.chunk().1), work);
            stream.rewind();
        }
        if let Last::Long(_) = self.last {
            return self.put_together(stream, work);
        }
        match &self.unpacking {
            Some(unpacking) if !self.is_as_is() && unpacking.has_room_for(stream) => {
                let unpacked = self.unpack(stream, usize::MAX, work)?;
                self.is_apart &= unpacked != Going::Done(());
                Ok(unpacked)
            }
            Some(_) if !self.is_as_is() => self.put_together(stream, work),
            _ => self.fill_as_is(stream, work),
        }
    }

    /// Consumes the bytes before `at`, and with them a chunk that is kept. Where the levels end, values come next.
    fn consume(&mut self, at: u64, work: &mut Work<'_, '_>) {
        self.packed.consume(at, work.input);
        if let Last::Kept = self.last {
            self.last = Last::Supplied;
        }
        if let Expects::Levels(end) = self.expects
            && self.packed.range.start >= end
        {
            self.expects = Expects::Values;
        }
    }

    /// True where the next bytes are not compressed.
    fn is_as_is(&self) -> bool {
        matches!(self.expects, Expects::Levels(_)) || self.unpacking.is_none()
    }

    /// Bytes left of what is not compressed.
    fn left_as_is(&self) -> usize {
        let end = if let Expects::Levels(end) = self.expects { end } else { self.packed.range.end };
        usize_of(end - self.packed.range.start).unwrap_or(usize::MAX)
    }

    /// Bytes that follow a chunk which ends at this place.
    fn behind(&mut self, at: u64) -> usize {
        let Some(unpacking) = &self.unpacking else {
            let left = usize_of(self.packed.range.end - at).unwrap_or(usize::MAX);
            if left == 0 {
                self.expects = Expects::End;
            }
            return left;
        };
        let levels = if let Expects::Levels(end) = self.expects { end - at } else { 0 };
        usize_of(levels).unwrap_or(usize::MAX).saturating_add(unpacking.left())
    }

    /// Supplies bytes that are not compressed: a part of the input, where one piece of it has what is wanted.
    fn fill_as_is(&mut self, stream: &mut Stream, work: &mut Work<'_, '_>) -> Result<Going> {
        let (start, left) = (self.packed.range.start, self.left_as_is());
        let wanted = stream.wanted().max(1).min(left);
        let mut piece = work.input.segment(start, u64_of(left.min(wanted.max(self.window_bytes))));
        if !stream.there().is_empty() || piece.len() < wanted && wanted > SLICE_BYTES {
            return self.put_together(stream, work);
        }
        if piece.len() < wanted {
            let most = start + u64_of(left.min(wanted.max(JOINT_BYTES)));
            let there = work.input.missing(start..most).map_or(most, |missing| missing.start);
            if there - start < u64_of(wanted) {
                self.packed.needs = u64_of(wanted);
                return Ok(Going::Need(()));
            }
            piece = work.input.contiguous(start..there)?.unwrap_or_default();
            work.budget.charge(COPY_PRICE, piece.len(), 0);
        }
        done!(self.packed.check(start + u64_of(piece.len()), work)?);
        let behind = self.behind(start + u64_of(piece.len()));
        stream.supply(piece, 0, behind);
        self.last = Last::Kept;
        Ok(Going::Done(()))
    }

    /// Puts together what is wanted in one piece and no window has: pieces of the input, which need never have all of it, or windows.
    fn put_together(&mut self, stream: &mut Stream, work: &mut Work<'_, '_>) -> Result<Going> {
        let mut long = match core::mem::replace(&mut self.last, Last::Supplied) {
            Last::Long(long) => long,
            Last::Supplied | Last::Kept => self.begin_long(stream, work.budget),
        };
        // What was put together until it failed stays: it may be much to drop.
        let done = self.add_pieces(&mut long, work);
        if done == Ok(Going::Done(())) {
            let behind = self.behind(self.packed.range.start);
            stream.supply(long.finish(), 0, behind);
        } else {
            self.last = Last::Long(long);
        }
        done
    }

    /// Begins with what the stream has not consumed, and releases its chunk: that may be long, too.
    fn begin_long(&mut self, stream: &mut Stream, budget: &mut Budget<'_>) -> Box<Joining> {
        let tail = stream.there().len();
        let left = match &self.unpacking {
            Some(unpacking) if !self.is_as_is() => unpacking.left(),
            _ => self.left_as_is(),
        };
        let mut long = Joining::new(stream.wanted().max(1).min(tail.saturating_add(left)));
        let (chunk, at) = stream.chunk();
        long.push(chunk.slice(at..), budget);
        stream.rewind();
        self.is_apart = true;
        Box::new(long)
    }

    fn add_pieces(&mut self, long: &mut Joining, work: &mut Work<'_, '_>) -> Result<Going> {
        let before = work.budget.spent();
        loop {
            if !long.join(&mut work.memory, work.budget)? {
                return Ok(Going::Yield);
            }
            if long.left() == 0 {
                return Ok(Going::Done(()));
            }
            if work.budget.spent() > before && work.budget.is_spent() {
                return Ok(Going::Yield);
            }
            if self.is_as_is() {
                let start = self.packed.range.start;
                // No more than a slice, so it is checked at once.
                let piece = work.input.segment(start, u64_of(long.left().min(SLICE_BYTES)));
                if piece.is_empty() {
                    self.packed.needs = 1;
                    return Ok(Going::Need(()));
                }
                self.packed.check(start + u64_of(piece.len()), work)?;
                self.consume(start + u64_of(piece.len()), work);
                long.push(piece, work.budget);
            } else {
                let mut window = Stream::coming(self.unpacking.as_ref().map_or(0, Unpacking::left));
                done!(self.unpack(&mut window, long.left(), work)?);
                let (chunk, at) = window.chunk();
                long.push(chunk.slice(at..), work.budget);
            }
        }
    }

    /// Decompresses the next chunk, of at most `most` bytes beside what it begins with.
    fn unpack(&mut self, stream: &mut Stream, most: usize, work: &mut Work<'_, '_>) -> Result<Going> {
        let Some(unpacking) = &mut self.unpacking else {
            return Err(Error::internal("a page that is not compressed"));
        };
        if done!(unpacking.step(stream, most, &mut self.packed, work)?) == Unpacked::Last {
            self.expects = Expects::End;
        }
        Ok(Going::Done(()))
    }

    /// Looks at what was not wanted of a body, which may be wrong, and drops it.
    pub(super) fn finish(&mut self, work: &mut Work<'_, '_>) -> Result<Going> {
        if self.unpacking.is_some() {
            if let Expects::Levels(end) = self.expects {
                self.consume(end, work);
            }
            while !matches!(self.expects, Expects::End) {
                let mut rest = Stream::coming(self.unpacking.as_ref().map_or(0, Unpacking::left));
                done!(self.unpack(&mut rest, usize::MAX, work)?);
                if work.budget.is_spent() && !matches!(self.expects, Expects::End) {
                    return Ok(Going::Yield);
                }
            }
        }
        let checked = self.packed.check(self.packed.range.end, work)?;
        let at = if checked == Going::Done(()) { self.packed.range.end } else { self.packed.checked() };
        self.consume(at, work);
        self.packed.needs = 1;
        Ok(checked)
    }
}

/// True where values of a page may leave before all of its body is read: those of a dictionary do not, nor those of a page that is held.
fn leaves_early(kind: &PageKind) -> bool {
    match kind {
        PageKind::Data(page) => !page.encoding.has_streams(),
        PageKind::DataV2(page) => !page.encoding.has_streams(),
        PageKind::Dictionary(_) | PageKind::Other(_) => false,
    }
}
