//! Decompression of a page's body, a chunk at a time.

use alloc::boxed::Box;
use alloc::format;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Budget, Bytes, Codec, Decompressor, Error, Release, Result, Status, release_all};

use super::packed::Packed;
use crate::encoding::stream::Stream;
use crate::going::Going;
use crate::growing::{COPY_PRICE, Growing, SLICE_BYTES};
use crate::read::decompressors::{Chunks, Decompressors};
use crate::read::work::Work;

/// Memory that a page's decompression starts with, if it may become larger: it grows as bytes are produced.
const ROOM_MIN: usize = 64 << 10;

/// Compressed bytes that become chunks.
pub(super) struct Unpacking {
    codec: Codec,
    chunks: Chunks,
    /// Bytes of a chunk at a time, if they are more in all.
    window_bytes: usize,
    /// Bytes that they become, and those that they became so far.
    total: usize,
    produced: usize,
    /// Taken for the first chunk, kept between chunks, put back after the last one.
    decompressor: Option<Box<dyn Decompressor>>,
    /// Bytes that it has or will have: what was admitted counts until it is allocated.
    admitted: usize,
    /// Decompression has begun.
    is_started: bool,
    /// The chunk that is being made.
    window: Option<Window>,
    /// The last chunk, whose end the next one begins with.
    before: Bytes,
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

/// What [`Unpacking::step`] made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unpacked {
    /// A chunk, after which others come.
    Chunk,
    /// The last one.
    Last,
}

impl Release for Unpacking {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.window, &mut self.before], budget)
    }
}

impl Release for Window {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.bytes.release(budget)
    }
}

impl Unpacking {
    /// Of what becomes `total` bytes in chunks of `window_bytes` at most.
    pub(super) fn new(codec: Codec, chunks: Chunks, total: usize, window_bytes: usize) -> Unpacking {
        Unpacking {
            codec,
            chunks,
            window_bytes,
            total,
            produced: 0,
            decompressor: None,
            admitted: 0,
            is_started: false,
            window: None,
            before: Bytes::new(),
        }
    }

    /// Bytes that are yet to be produced.
    pub(super) fn left(&self) -> usize {
        self.total - self.produced
    }

    /// True where a window has room for what the stream has not consumed, and for what it wants in one piece: it has room for what the
    /// codec may refer to, too, and begins in the window before.
    pub(super) fn has_room_for(&self, stream: &Stream) -> bool {
        stream.wanted() <= self.window_bytes - self.window_bytes / 8
            && stream.there().len() <= self.before.len()
    }

    /// Bytes of the last chunk, which is kept for what the next one refers to.
    pub(super) fn history(&self) -> usize {
        self.before.len()
    }

    /// Bytes held, beside the last chunk, and what the input holds.
    pub(super) fn held(&self) -> usize {
        self.window.as_ref().map_or(0, |window| window.bytes.held())
            + self
                .decompressor
                .as_ref()
                .map_or(0, |decompressor| decompressor.held_bytes().max(self.admitted))
    }

    /// Returns the decompressor where the body is not read to its end.
    pub(super) fn give_back(self, decompressors: &mut Decompressors) {
        if let Some(decompressor) = self.decompressor {
            decompressors.put_back(self.codec, self.chunks, decompressor);
        }
    }

    /// Decompresses the next chunk, for `stream`, of at most `most` bytes beside what it begins with.
    pub(super) fn step(
        &mut self,
        stream: &mut Stream,
        most: usize,
        packed: &mut Packed,
        work: &mut Work<'_, '_>,
    ) -> Result<Going<Unpacked>> {
        let mut decompressor = match self.decompressor.take() {
            Some(decompressor) => decompressor,
            None => work.decompressors.take(self.codec, self.chunks, &mut work.memory)?,
        };
        let mut window = match self.window.take() {
            Some(window) => window,
            None => self.window((stream, most), packed, decompressor.history_bytes(), work)?,
        };
        let filled = self.fill(&mut window, packed, &mut *decompressor, work)?;
        let Going::Done(unpacked) = filled else {
            (self.window, self.decompressor) = (Some(window), Some(decompressor));
            return Ok(filled);
        };
        let at = window.front - window.tail;
        let (memory, length) = window.bytes.into_parts();
        let chunk = Bytes::from_owner(work.pool.share(memory, length));
        stream.supply(chunk.clone(), at, self.left());
        match unpacked {
            Unpacked::Last => {
                work.memory.move_away(decompressor.held_bytes());
                work.decompressors.put_back(self.codec, self.chunks, decompressor);
            }
            Unpacked::Chunk => (self.before, self.decompressor) = (chunk, Some(decompressor)),
        }
        Ok(filled)
    }

    /// The next window, in memory that is not filled yet.
    fn window(
        &self,
        (stream, most): (&Stream, usize),
        packed: &Packed,
        history: usize,
        work: &mut Work<'_, '_>,
    ) -> Result<Window> {
        let tail = stream.there().len();
        let front = tail.max(history.min(self.before.len()));
        let room = self.window_bytes.saturating_sub(front).max(self.window_bytes / 8);
        let more = room.max(stream.wanted().saturating_sub(tail)).max(1).min(most).min(self.left());
        let goal = front + more;
        // Memory grows as bytes are produced, but there is some to begin with.
        let packed = usize_of(packed.len()).unwrap_or(usize::MAX);
        let some = packed.saturating_mul(4).max(ROOM_MIN).min(self.window_bytes.max(ROOM_MIN));
        // What was used before is there at once.
        let first = if work.pool.allocates(goal) == 0 { goal } else { goal.min(front + some) };
        work.memory.admit(work.pool.allocates(first))?;
        let bytes = Growing::within(work.pool.take_memory(first)?);
        Ok(Window { bytes, front, tail, first, goal })
    }

    fn fill(
        &mut self,
        window: &mut Window,
        packed: &mut Packed,
        decompressor: &mut dyn Decompressor,
        work: &mut Work<'_, '_>,
    ) -> Result<Going<Unpacked>> {
        if !window.bytes.grow(window.first, window.goal, &mut work.memory, work.budget)? {
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
            let bytes = usize_of(packed.len()).unwrap_or(usize::MAX);
            let whole = window.goal == self.total && window.bytes.room() >= self.total;
            decompressor.start(bytes, self.total, whole)?;
            self.is_started = true;
        }
        loop {
            let (start, end) = (packed.range.start, packed.range.end);
            let mut piece = work.input.segment(start, end - start);
            if piece.is_empty() && start < end {
                packed.needs = 1;
                return Ok(Going::Need(()));
            }
            if packed.is_unchecked() {
                if packed.checked() <= start {
                    // No more than a slice, so it is checked at once.
                    let slice = piece.len().min(SLICE_BYTES);
                    packed.check(start + u64_of(slice), work)?;
                }
                piece.truncate(usize_of(packed.checked() - start).unwrap_or(usize::MAX));
            }
            let is_last = start + u64_of(piece.len()) == end;
            let filled = window.bytes.len();
            let room = window.bytes.with_room(window.goal);
            let progress = decompressor.step(&piece, is_last, room, filled, work.budget)?;
            packed.consume(start + u64_of(progress.consumed), work.input);
            window.bytes.add(progress.produced);
            self.produced += progress.produced;
            let is_full = window.bytes.len() == window.goal;
            match progress.status {
                Status::End if self.produced == self.total => return Ok(Going::Done(Unpacked::Last)),
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
                    if !window.bytes.grow(more, window.goal, &mut work.memory, work.budget)? {
                        return Ok(Going::Yield);
                    }
                }
                Status::NeedMemory(bytes) => {
                    work.memory.admit(bytes)?;
                    self.admitted = decompressor.held_bytes() + bytes;
                }
                Status::NeedInput | Status::NeedRoom | Status::Yield => {}
            }
            if is_full && self.produced < self.total {
                return Ok(Going::Done(Unpacked::Chunk));
            }
            if progress.status == Status::Yield || work.budget.is_spent() {
                return Ok(Going::Yield);
            }
        }
    }
}
