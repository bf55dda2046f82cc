//! The bytes of a text that are being processed: pieces of one size, however they are fed.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::vec::Vec;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Bytes, Detail, Error, ErrorKind, Limit, Pool, Price, Result};
use marquetry_parquet::write::Fed;

/// Bytes of a piece: it stays in a core's cache, along with its results.
pub(super) const PIECE_BYTES: usize = 512 << 10;
/// The price of copying a byte, into memory that may be new.
pub(super) const COPY_PRICE: Price = Price::per_kib(450);
/// Bytes that are copied at once.
const COPY_SLICE_BYTES: usize = 64 << 10;

/// The part of a text from the first byte that is still needed. Positions in it are counted from there.
///
/// It is one piece, unless a row is longer than that: then pieces are added until the row ends, and
/// [joined](Window::join). So the result does not depend on how the bytes arrive.
#[derive(Debug)]
pub(super) struct Window {
    piece_bytes: usize,
    row_bytes: u64,
    pool: Pool<u8>,
    /// What was fed and is not copied yet.
    fed: Bytes,
    is_finished: bool,
    /// The rest of the last window, which comes before that.
    rest: Bytes,
    /// Pieces before the last one.
    before: VecDeque<Bytes>,
    base: usize,
    /// The last byte before the last piece.
    byte_before: Option<u8>,
    /// The last piece, while it is filled, and when it is full.
    filling: Vec<u8>,
    piece: Option<Bytes>,
    is_last: bool,
    whole: Vec<u8>,
    /// Where the window begins in the text.
    offset: u64,
}

/// What [`Window::fill`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Filled {
    /// The last piece is full, or the text has ended.
    Ready,
    /// It takes more bytes.
    Room,
    /// The budget is spent.
    Yield,
}

/// The last piece of a window.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) text: &'a [u8],
    /// Where it begins in the window.
    pub(super) base: usize,
    /// The byte before it.
    pub(super) byte_before: Option<u8>,
    /// It is the last.
    pub(super) is_last: bool,
}

impl View<'_> {
    /// Where the window ends.
    pub(super) fn end(&self) -> usize {
        self.base + self.text.len()
    }

    /// The byte at a position in the piece, or just before it.
    pub(super) fn byte(&self, place: usize) -> Option<u8> {
        match place.checked_sub(self.base) {
            Some(at) => self.text.get(at).copied(),
            None => self.byte_before.filter(|_| place + 1 == self.base),
        }
    }
}

impl Window {
    /// An empty window, with pieces of `piece_bytes` and rows of at most `row_bytes`.
    pub(super) fn new(piece_bytes: usize, row_bytes: u64) -> Window {
        Window {
            piece_bytes: piece_bytes.max(1),
            row_bytes,
            pool: Pool::new(),
            fed: Bytes::new(),
            is_finished: false,
            rest: Bytes::new(),
            before: VecDeque::new(),
            base: 0,
            byte_before: None,
            filling: Vec::new(),
            piece: None,
            is_last: false,
            whole: Vec::new(),
            offset: 0,
        }
    }

    /// Begins again, at another place of the text; the memory is used again.
    pub(super) fn restart(&mut self, offset: u64) {
        let (pool, mut filling) = (core::mem::take(&mut self.pool), core::mem::take(&mut self.filling));
        filling.clear();
        *self = Window { pool, filling, offset, ..Window::new(self.piece_bytes, self.row_bytes) };
    }

    /// Takes bytes, if there is room.
    pub(super) fn feed(&mut self, bytes: Bytes) -> Result<Fed<Bytes>> {
        if self.is_finished {
            return Err(Error::misuse("bytes for a text that is finished"));
        }
        if !self.fed.is_empty() {
            return Ok(Fed::Full(bytes));
        }
        self.fed = bytes;
        Ok(Fed::Taken)
    }

    /// Ends the text: nothing more will be fed.
    pub(super) fn finish(&mut self) {
        self.is_finished = true;
    }

    /// Fills the last piece.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated.
    pub(super) fn fill(&mut self, budget: &mut Budget<'_>) -> Result<Filled> {
        if self.piece.is_some() {
            return Ok(Filled::Ready);
        }
        if self.filling.capacity() == 0 {
            self.filling = self.pool.take_memory(self.piece_bytes)?;
            self.filling.clear();
        }
        loop {
            let room = self.piece_bytes - self.filling.len();
            let source = if self.rest.is_empty() { &mut self.fed } else { &mut self.rest };
            if room == 0 || (source.is_empty() && self.is_finished) {
                self.is_last = room > 0;
                let filled = core::mem::take(&mut self.filling);
                let length = filled.len();
                // Batches keep the memory alive; then it returns to the pool.
                self.piece = Some(Bytes::from_owner(self.pool.share(filled, length)));
                return Ok(Filled::Ready);
            }
            if source.is_empty() {
                return Ok(Filled::Room);
            }
            let part = source.split_to(source.len().min(room).min(COPY_SLICE_BYTES));
            self.filling.extend_from_slice(&part);
            budget.charge(COPY_PRICE, part.len(), 0);
            if source.is_empty() {
                // It may hold memory that it was part of.
                *source = Bytes::new();
            }
            if budget.is_spent() {
                return Ok(Filled::Yield);
            }
        }
    }

    /// The last piece, once it is filled.
    pub(super) fn view(&self) -> View<'_> {
        View {
            text: self.piece.as_deref().unwrap_or_default(),
            base: self.base,
            byte_before: self.byte_before,
            is_last: self.is_last,
        }
    }

    /// Whether the window is one piece.
    pub(super) fn is_whole(&self) -> bool {
        self.before.is_empty() && self.whole.is_empty()
    }

    /// All of the window, if it is one piece.
    pub(super) fn bytes(&self) -> Bytes {
        self.piece.clone().unwrap_or_default()
    }

    /// Where the window begins in the text.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Continues with a piece that must be filled. It begins with the window from `from` on; if that is all of the
    /// window, the window grows by a piece.
    ///
    /// # Errors
    ///
    /// `LimitExceeded` for a row that is too long.
    pub(super) fn advance(&mut self, from: usize) -> Result<()> {
        let Some(piece) = self.piece.take() else {
            return Err(Error::internal("a piece that is not filled"));
        };
        if from > 0 {
            let at = from.checked_sub(self.base);
            let at = at.ok_or_else(|| Error::internal("a row that ends in pieces that are not joined"))?;
            self.rest = piece.slice(at.min(piece.len())..);
            self.offset += u64_of(from);
            self.before.clear();
            (self.base, self.byte_before) = (0, None);
            return Ok(());
        }
        self.base += piece.len();
        self.byte_before = piece.last().copied();
        self.before.push_back(piece);
        if u64_of(self.base) > self.row_bytes {
            return Err(self.too_long());
        }
        Ok(())
    }

    /// The error for a row that is too long.
    #[cold]
    pub(super) fn too_long(&self) -> Error {
        too_long(self.row_bytes)
    }

    /// Joins the pieces. False if the budget is spent first.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated.
    pub(super) fn join(&mut self, budget: &mut Budget<'_>) -> Result<bool> {
        if self.is_whole() {
            return Ok(true);
        }
        if self.whole.capacity() == 0 {
            let length = self.base + self.piece.as_ref().map_or(0, Bytes::len);
            self.whole.try_reserve_exact(length).map_err(|_| Error::out_of_memory(length))?;
        }
        while let Some(piece) = self.before.front_mut().or(self.piece.as_mut()) {
            let part = piece.split_to(piece.len().min(COPY_SLICE_BYTES));
            self.whole.extend_from_slice(&part);
            // New memory, and memory that is released.
            budget.charge(COPY_PRICE, 2 * part.len(), 0);
            if piece.is_empty() && self.before.pop_front().is_none() {
                break;
            }
            if budget.is_spent() {
                return Ok(false);
            }
        }
        self.piece = Some(core::mem::take(&mut self.whole).into());
        (self.base, self.byte_before) = (0, None);
        Ok(true)
    }
}

/// The error for a row of more than `row_bytes`.
#[cold]
pub(super) fn too_long(row_bytes: u64) -> Error {
    let what =
        format!("a row of more than {row_bytes} bytes (is a quote not closed, or a line end missing?)");
    Error::new(ErrorKind::LimitExceeded, what).with(Detail::Limit(Limit::ValueBytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fills a window with a text that arrives in parts of `part` bytes.
    fn fill(window: &mut Window, text: &mut &[u8], part: usize) {
        loop {
            match window.fill(&mut Budget::new(0)).unwrap() {
                Filled::Ready => return,
                Filled::Yield => {}
                Filled::Room if text.is_empty() => window.finish(),
                Filled::Room => {
                    let (first, rest) = text.split_at(part.min(text.len()));
                    *text = rest;
                    assert_eq!(window.feed(Bytes::copy_from_slice(first)), Ok(Fed::Taken));
                }
            }
        }
    }

    #[test]
    fn pieces_do_not_depend_on_how_bytes_come() {
        let text: Vec<u8> = (0..=250).collect();
        for part in [1, 7, 16, 100, 1000] {
            let mut window = Window::new(16, 1000);
            let mut rest = &text[..];
            let mut found = Vec::new();
            loop {
                fill(&mut window, &mut rest, part);
                let view = window.view();
                assert!(view.is_last || view.text.len() == 16);
                let taken = if view.is_last { view.text.len() } else { 13 };
                found.extend_from_slice(&view.text[..taken]);
                if view.is_last {
                    break;
                }
                window.advance(taken).unwrap();
                assert_eq!(window.offset(), u64_of(found.len()));
            }
            assert_eq!(found, text);
            assert!(window.feed(Bytes::new()).is_err());
        }
    }

    #[test]
    fn a_long_row_is_joined_in_slices() {
        let text: Vec<u8> = (0..1_000_000_u32).map(|at| at.to_le_bytes()[1]).collect();
        let mut window = Window::new(100_000, 1_000_000);
        let mut rest = &text[..];
        for piece in 0..9 {
            fill(&mut window, &mut rest, 70_000);
            let view = window.view();
            assert_eq!((view.base, view.byte(view.base)), (piece * 100_000, Some(text[piece * 100_000])));
            assert_eq!(
                view.byte(view.base.wrapping_sub(1)),
                piece.checked_sub(1).map(|_| text[view.base - 1])
            );
            window.advance(0).unwrap();
        }
        fill(&mut window, &mut rest, 70_000);
        let mut steps = 1;
        while !window.join(&mut Budget::new(0)).unwrap() {
            steps += 1;
        }
        assert!(steps > 10 && window.is_whole());
        assert_eq!(window.bytes(), text);
        window.advance(999_990).unwrap();
        fill(&mut window, &mut rest, 1);
        assert_eq!((window.view().text, window.view().is_last), (&text[999_990..], true));
        let mut short = Window::new(10, 25);
        let mut rest = &text[..];
        for _ in 0..2 {
            fill(&mut short, &mut rest, 3);
            short.advance(0).unwrap();
        }
        fill(&mut short, &mut rest, 3);
        let error = short.advance(0).unwrap_err();
        assert_eq!(error.detail(), Some(Detail::Limit(Limit::ValueBytes)));
    }
}
