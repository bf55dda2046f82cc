//! The body of a page: checksum and decompression, a chunk at a time.

use alloc::boxed::Box;
use alloc::format;
use core::ops::Range;

use marquetry_base::cast::{u64_of, usize_of, usize_of_u32};
use marquetry_base::{Bytes, Codec, Decompressor, Error, Input, Pool, Price, Result, Status};

use super::decompressors::{Chunks, Decompressors};
use super::options::LargePages;
use super::values::ValueDecoder;
use super::work::{Going, Work};
use crate::encoding::stream::Stream;
use crate::format::{Compression, PageHeader, PageKind};
use crate::growing::{COPY_PRICE, Growing, Joining, SLICE_BYTES};

/// A CRC's price: 64 bytes a nanosecond at best, 4 at worst.
const CRC_PRICE: Price = Price::per_kib(100);
/// Memory that a page's decompression starts with, if it may become larger: it grows as bytes are produced.
const ROOM_MIN: usize = 64 << 10;
/// Bytes of an uncompressed page that are joined, at least, where they come in pieces.
const JOINT_BYTES: usize = 4 << 10;

/// The body of a page, while it is read.
pub(super) struct Body {
    /// What the header says, until the page begins.
    pub(super) header: Option<PageHeader>,
    /// Where the bytes are that are not consumed yet: those of the last chunk are, unless it is kept in the input.
    pub(super) packed: Range<u64>,
    /// Where the levels of a V2 page end, which are never compressed.
    levels_end: u64,
    /// Bytes that are needed from where `packed` starts on.
    pub(super) needs: u64,
    /// The CRC that the bytes should have, if that is to be checked; what it is so far, and up to where.
    crc: Option<u32>,
    sum: u32,
    checked: u64,
    checking: Checking,
    /// Bytes of a chunk at a time, if the body is longer.
    window_bytes: usize,
    /// `None` where they are not compressed.
    codec: Option<Codec>,
    chunks: Chunks,
    decompressor: Option<Box<dyn Decompressor>>,
    /// Bytes that they become, and those that they became so far.
    total: usize,
    produced: usize,
    /// Decompression has begun, and has come to its end; of what is not compressed, the last chunk was supplied.
    is_started: bool,
    is_unpacked: bool,
    /// The chunk that is being made; or one that is longer than a window.
    window: Option<Window>,
    long: Option<Box<Long>>,
    /// The last chunk that was decompressed, whose end the next one begins with.
    before: Bytes,
    /// The last chunk is a part of the input, which still has it.
    is_kept: bool,
}

/// When a body's bytes are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Checking {
    /// Before its values leave, while all of it is kept.
    Whole,
    /// Before its values leave: it is being read for that alone, and will be read again.
    Alone,
    /// It was read alone, and was right; this is the second time.
    Again,
    /// As it is taken apart.
    Along,
}

/// A chunk that is being decompressed.
struct Window {
    bytes: Growing,
    /// Bytes at its front that were there before, and those of them that are not consumed.
    front: usize,
    tail: usize,
    /// Bytes that there is room for before its bytes come; and that it will have.
    first: usize,
    goal: usize,
}

/// A chunk that is being put together, of `goal` bytes or more.
struct Long {
    pieces: Joining,
    goal: usize,
}
impl Body {
    /// The body of a page whose header ends at `start`, and whose CRC is `crc`, if that is to be checked.
    pub(super) fn new(
        header: PageHeader,
        start: u64,
        crc: Option<u32>,
        window_bytes: usize,
        (verify_first_bytes, large_pages): (u64, LargePages),
    ) -> Body {
        let bytes = u64::from(header.compressed_bytes);
        let packed = start..start + bytes;
        let fits = bytes.max(header.uncompressed_bytes.into()) <= u64_of(window_bytes);
        let checking = if fits || (crc.is_some() && bytes <= verify_first_bytes) {
            Checking::Whole
        } else if crc.is_some() && large_pages == LargePages::ReadTwice && leaves_early(&header.kind) {
            Checking::Alone
        } else {
            Checking::Along
        };
        Body {
            needs: if checking == Checking::Whole { bytes } else { 0 },
            levels_end: start,
            crc,
            sum: 0,
            checked: start,
            checking,
            packed,
            header: Some(header),
            window_bytes,
            codec: None,
            chunks: Chunks::One,
            decompressor: None,
            total: 0,
            produced: 0,
            is_started: false,
            is_unpacked: false,
            window: None,
            long: None,
            before: Bytes::new(),
            is_kept: false,
        }
    }

    /// The entries of a data page that was not begun yet.
    pub(super) fn entries(&self) -> Option<u32> {
        match &self.header.as_ref()?.kind {
            PageKind::Data(page) => Some(page.values),
            PageKind::DataV2(page) => Some(page.values),
            PageKind::Dictionary(_) | PageKind::Other(_) => None,
        }
    }

    /// Gives back what a page has that is not read to its end.
    pub(super) fn give_back(self, decompressors: &mut Decompressors) {
        if let (Some(codec), Some(decompressor)) = (self.codec, self.decompressor) {
            decompressors.put_back(codec, self.chunks, decompressor);
        }
    }

    /// Bytes held, beside what the input and the page's stream hold.
    pub(super) fn held(&self) -> usize {
        self.window.as_ref().map_or(0, |window| window.bytes.held())
            + self.decompressor.as_ref().map_or(0, |decompressor| decompressor.held_bytes())
            + self.long.as_ref().map_or(0, |long| long.pieces.held())
    }

    /// The bytes without which it does not go on, and where those end that are worth asking for with them.
    pub(super) fn needed(&self) -> (Range<u64>, u64) {
        let (from, bytes, end) = match self.checking {
            // What follows the page is wanted after it was read again.
            Checking::Alone => (self.checked, 1, self.packed.end),
            _ => (self.packed.start, self.needs, u64::MAX),
        };
        (from..from.saturating_add(bytes), end)
    }

    /// Checks the CRC of a body that is to be checked before its values leave.
    pub(super) fn check_first(&mut self, work: &mut Work<'_, '_>) -> Result<Going> {
        let whole = self.packed.clone();
        match self.checking {
            Checking::Whole if work.input.missing(whole.clone()).is_some() => Ok(Going::Need),
            Checking::Whole => self.check(whole.end, work),
            Checking::Alone => {
                let start = self.checked;
                let checked = self.check(whole.end, work)?;
                work.input.release(start..self.checked);
                if checked == Going::Done(()) {
                    (self.sum, self.checked, self.checking) = (0, whole.start, Checking::Again);
                }
                Ok(checked)
            }
            Checking::Again | Checking::Along => Ok(Going::Done(())),
        }
    }

    /// Begins to take the body apart: the stream of what it becomes.
    pub(super) fn open(&mut self, header: &PageHeader, compression: Compression) -> Result<Stream> {
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
        let is_held = match &header.kind {
            PageKind::Dictionary(_) | PageKind::Other(_) => false,
            kind => !leaves_early(kind),
        };
        self.chunks = match (self.total > self.window_bytes, is_held) {
            (false, _) => Chunks::One,
            (true, false) => Chunks::Passing,
            (true, true) => Chunks::Held,
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

    /// True while values leave before the CRC is known to be right.
    pub(super) fn is_unverified(&self) -> bool {
        self.checking == Checking::Along && self.is_unchecked()
    }

    /// True while bytes are left to be checked.
    fn is_unchecked(&self) -> bool {
        self.crc.is_some() && self.checked < self.packed.end
    }

    /// True when nothing of the body is left to be looked at.
    pub(super) fn is_done(&self) -> bool {
        self.is_unpacked && !self.is_unchecked()
    }

    /// Computes the CRC up to `end`, in slices; at the body's end it must be right.
    fn check(&mut self, end: u64, work: &mut Work<'_, '_>) -> Result<Going> {
        let Some(expected) = self.crc else { return Ok(Going::Done(())) };
        while self.checked < end {
            let slice = work.input.segment(self.checked, (end - self.checked).min(u64_of(SLICE_BYTES)));
            if slice.is_empty() {
                return Ok(Going::Need);
            }
            self.sum = marquetry_kernels::crc32::crc32(self.sum, &slice);
            self.checked += u64_of(slice.len());
            work.budget.charge(CRC_PRICE, slice.len(), 0);
            if self.checked < end && work.budget.is_spent() {
                return Ok(Going::Yield);
            }
        }
        if self.checked == self.packed.end && self.sum != expected {
            let sum = self.sum;
            return Err(Error::checksum(match self.checking {
                Checking::Again => format!(
                    "the page's CRC is {sum:08x} where it was {expected:08x} before: the file has changed"
                ),
                _ => format!("the page's CRC is {sum:08x}, its header says {expected:08x}"),
            }));
        }
        Ok(Going::Done(()))
    }

    /// Supplies the page's stream with the bytes that it wants.
    pub(super) fn fill(&mut self, stream: &mut Stream, work: &mut Work<'_, '_>) -> Result<Going> {
        if self.is_kept {
            // The input has the last chunk still: the next one begins where the stream stands.
            let start = self.packed.start;
            self.packed.start += u64_of(stream.chunk().1);
            work.input.release(start..self.packed.start);
            stream.rewind();
            self.is_kept = false;
        }
        if self.long.is_some() {
            self.put_together(stream, work)
        } else if self.is_as_is() {
            self.fill_as_is(stream, work)
        } else if stream.wanted() > self.window_bytes - self.window_bytes / 8
            || stream.there().len() > self.before.len()
        {
            // A window has room for what the codec may refer to, too; and begins in the one before.
            self.put_together(stream, work)
        } else {
            self.unpack(stream, work)
        }
    }

    /// True where the next bytes are not compressed.
    fn is_as_is(&self) -> bool {
        self.packed.start < self.levels_end || self.codec.is_none()
    }

    /// Bytes left of what is not compressed.
    fn left_as_is(&self) -> usize {
        let end = if self.packed.start < self.levels_end { self.levels_end } else { self.packed.end };
        usize_of(end - self.packed.start).unwrap_or(usize::MAX)
    }

    /// Supplies bytes that are not compressed: a part of the input, where one piece of it has what is wanted.
    fn fill_as_is(&mut self, stream: &mut Stream, work: &mut Work<'_, '_>) -> Result<Going> {
        let (start, left) = (self.packed.start, self.left_as_is());
        let wanted = stream.wanted().max(1).min(left);
        let mut piece = work.input.segment(start, u64_of(left.min(wanted.max(self.window_bytes))));
        if !stream.there().is_empty() || piece.len() < wanted && wanted > SLICE_BYTES {
            return self.put_together(stream, work);
        }
        if piece.len() < wanted {
            let most = start + u64_of(left.min(wanted.max(JOINT_BYTES)));
            let there = work.input.missing(start..most).map_or(most, |missing| missing.start);
            if there - start < u64_of(wanted) {
                self.needs = u64_of(wanted);
                return Ok(Going::Need);
            }
            piece = work.input.contiguous(start..there)?.unwrap_or_default();
            work.budget.charge(COPY_PRICE, piece.len(), 0);
        }
        let checked = self.check(start + u64_of(piece.len()), work)?;
        if checked == Going::Done(()) {
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

    /// Puts together what is wanted in one piece and no window has: pieces of the input, which need never have all of it, or windows.
    fn put_together(&mut self, stream: &mut Stream, work: &mut Work<'_, '_>) -> Result<Going> {
        let is_as_is = self.is_as_is();
        let mut long = match self.long.take() {
            Some(long) => long,
            None => {
                let tail = stream.there().len();
                let left = if is_as_is { self.left_as_is() } else { self.total - self.produced };
                let goal = stream.wanted().max(1).min(tail.saturating_add(left));
                let (chunk, at) = stream.chunk();
                let mut pieces = Joining::default();
                pieces.push(chunk.slice(at..), work.budget);
                Box::new(Long { pieces, goal })
            }
        };
        // What was put together until it failed stays: it may be much to drop.
        let done = match self.add_pieces(&mut long, work) {
            Ok(Going::Done(())) => long
                .pieces
                .join(work.budget)
                .map(|is_whole| if is_whole { Going::Done(()) } else { Going::Yield }),
            other => other,
        };
        if done == Ok(Going::Done(())) {
            let behind = if is_as_is { self.behind(self.packed.start) } else { self.total - self.produced };
            stream.supply(long.pieces.finish(), 0, behind);
        } else {
            self.long = Some(long);
        }
        done
    }

    fn add_pieces(&mut self, long: &mut Long, work: &mut Work<'_, '_>) -> Result<Going> {
        while long.pieces.len() < long.goal {
            if self.is_as_is() {
                let start = self.packed.start;
                // No more than a slice, so it is checked at once.
                let most = (long.goal - long.pieces.len()).min(SLICE_BYTES);
                let piece = work.input.segment(start, u64_of(most));
                if piece.is_empty() {
                    self.needs = 1;
                    return Ok(Going::Need);
                }
                self.check(start + u64_of(piece.len()), work)?;
                self.packed.start += u64_of(piece.len());
                work.input.release(start..self.packed.start);
                long.pieces.push(piece, work.budget);
            } else {
                let mut window = Stream::coming(self.total - self.produced);
                let filled = self.unpack(&mut window, work)?;
                if filled != Going::Done(()) {
                    return Ok(filled);
                }
                let (chunk, at) = window.chunk();
                long.pieces.push(chunk.slice(at..), work.budget);
            }
            if long.pieces.len() < long.goal && work.budget.is_spent() {
                return Ok(Going::Yield);
            }
        }
        Ok(Going::Done(()))
    }

    /// Decompresses the next chunk.
    fn unpack(&mut self, stream: &mut Stream, work: &mut Work<'_, '_>) -> Result<Going> {
        let Some(codec) = self.codec else { return Err(Error::internal("a page that is not compressed")) };
        let mut decompressor = match self.decompressor.take() {
            Some(decompressor) => decompressor,
            None => work.decompressors.take(codec, self.chunks)?,
        };
        let mut window = match self.window.take() {
            Some(window) => window,
            None => self.window(stream, decompressor.history_bytes(), work.pool)?,
        };
        let filled = self.unpack_into(&mut window, &mut *decompressor, work)?;
        if filled != Going::Done(()) {
            (self.window, self.decompressor) = (Some(window), Some(decompressor));
            return Ok(filled);
        }
        let at = window.front - window.tail;
        let (memory, length) = window.bytes.into_parts();
        let chunk = Bytes::from_owner(work.pool.share(memory, length));
        stream.supply(chunk.clone(), at, self.total - self.produced);
        if self.is_unpacked {
            work.decompressors.put_back(codec, self.chunks, decompressor);
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
        let room = self.window_bytes.saturating_sub(front).max(self.window_bytes / 8);
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
        work: &mut Work<'_, '_>,
    ) -> Result<Going> {
        if !window.bytes.grow(window.first, window.goal, work.budget)? {
            return Ok(Going::Yield);
        }
        while window.bytes.len() < window.front {
            let copied = window.bytes.len();
            let end = window.front.min(copied + SLICE_BYTES);
            let front = self.before.len().checked_sub(window.front);
            let front = front.ok_or_else(|| Error::internal("a window that begins before its page"))?;
            window.bytes.append(&self.before[front + copied..front + end]);
            work.budget.charge(COPY_PRICE, end - copied, 0);
            if work.budget.is_spent() {
                return Ok(Going::Yield);
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
            let mut piece = work.input.segment(start, self.packed.end - start);
            if piece.is_empty() && start < self.packed.end {
                self.needs = 1;
                return Ok(Going::Need);
            }
            if self.is_unchecked() {
                if self.checked <= start {
                    // No more than a slice, so it is checked at once.
                    let slice = piece.len().min(SLICE_BYTES);
                    self.check(start + u64_of(slice), work)?;
                }
                piece.truncate(usize_of(self.checked - start).unwrap_or(usize::MAX));
            }
            let is_last = start + u64_of(piece.len()) == self.packed.end;
            let filled = window.bytes.len();
            let room = window.bytes.with_room(window.goal);
            let progress = decompressor.step(&piece, is_last, room, filled, work.budget)?;
            self.packed.start += u64_of(progress.consumed);
            work.input.release(start..self.packed.start);
            window.bytes.add(progress.produced);
            self.produced += progress.produced;
            let is_full = window.bytes.len() == window.goal;
            match progress.status {
                Status::End if self.produced == self.total => {
                    self.is_unpacked = true;
                    return Ok(Going::Done(()));
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
                    if !window.bytes.grow(more, window.goal, work.budget)? {
                        return Ok(Going::Yield);
                    }
                }
                Status::NeedInput | Status::NeedRoom | Status::Yield => {}
            }
            if is_full && self.produced < self.total {
                return Ok(Going::Done(()));
            }
            if progress.status == Status::Yield || work.budget.is_spent() {
                return Ok(Going::Yield);
            }
        }
    }

    /// Looks at what was not wanted of a body, which may be wrong, and drops it.
    pub(super) fn finish(&mut self, work: &mut Work<'_, '_>) -> Result<Going> {
        if self.codec.is_some() && !self.is_unpacked {
            self.drop_before(self.levels_end, work.input);
            while !self.is_unpacked {
                let mut rest = Stream::coming(self.total - self.produced);
                let filled = self.unpack(&mut rest, work)?;
                if filled != Going::Done(()) {
                    return Ok(filled);
                }
                if work.budget.is_spent() && !self.is_unpacked {
                    return Ok(Going::Yield);
                }
            }
        }
        let checked = self.check(self.packed.end, work)?;
        match checked {
            Going::Done(()) => self.drop_before(self.packed.end, work.input),
            Going::Need | Going::Yield => self.drop_before(self.checked, work.input),
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

/// True where values of a page may leave before all of its body is read: those of a dictionary do not, nor those of a page that is held.
fn leaves_early(kind: &PageKind) -> bool {
    match kind {
        PageKind::Data(page) => !ValueDecoder::holds(page.encoding),
        PageKind::DataV2(page) => !ValueDecoder::holds(page.encoding),
        PageKind::Dictionary(_) | PageKind::Other(_) => false,
    }
}
