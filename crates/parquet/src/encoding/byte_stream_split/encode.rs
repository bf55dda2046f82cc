//! Writing BYTE_STREAM_SPLIT.

use alloc::vec::Vec;

use marquetry_base::{Budget, Error, Price, Release, Result};
use marquetry_kernels::bss;

use super::super::other_type;
use super::super::output::{Body, PIECE_BYTES};
use crate::batch::Slice;
use crate::growing::{ROOM_PRICE, ROOM_SLICE_BYTES, SLICE_BYTES};

/// The price of splitting: per byte, and per piece of a stream.
const SPLIT_PRICE: Price = Price { kib: 300, kilovalue: 20 << 10 };

/// Bytes of values that are split at a time.
const BLOCK_BYTES: usize = 4 << 10;
/// Streams that a slice of a value is written to, where a value has more.
const STREAMS_AT_ONCE: usize = 2 << 10;

/// An encoder of values of one width. It keeps a page's values: where a stream starts depends on their number.
#[derive(Debug)]
pub(crate) struct SplitEncoder {
    width: usize,
    /// The values, in pieces of complete values.
    pieces: Vec<Vec<u8>>,
    values: usize,
    /// The page, while it is being built, in pieces of maximum length.
    page: Vec<Vec<u8>>,
    room: usize,
    /// Values in the page, and bytes there of a wide one behind them.
    split: usize,
    split_bytes: usize,
}

impl SplitEncoder {
    /// An encoder of values of `width` bytes, from 1 to [`SLICE_BYTES`].
    pub(crate) fn new(width: usize) -> SplitEncoder {
        SplitEncoder {
            width,
            pieces: Vec::new(),
            values: 0,
            page: Vec::new(),
            room: 0,
            split: 0,
            split_bytes: 0,
        }
    }

    /// Takes as many values as the budget pays for, and returns how many.
    pub(crate) fn put(&mut self, values: Slice<'_>, budget: &mut Budget<'_>) -> Result<usize> {
        let (width, bytes) = values.fixed().ok_or_else(other_type)?;
        if width != self.width {
            return Err(other_type());
        }
        let piece_bytes = PIECE_BYTES / width * width;
        let mut done = 0;
        while done < bytes.len() {
            if self.pieces.last().is_none_or(|piece| piece.len() == piece_bytes) {
                self.pieces.push(Vec::new());
            }
            let Some(piece) = self.pieces.last_mut() else { break };
            let slice = (SLICE_BYTES / width * width).min(piece_bytes - piece.len());
            let now = &bytes[done..bytes.len().min(done + slice)];
            budget.charge(ROOM_PRICE, now.len(), 0);
            let needed = piece.len() + now.len();
            if needed > piece.capacity() {
                // No more than a piece will have.
                let goal = (2 * piece.capacity()).clamp(needed, piece_bytes);
                piece.try_reserve_exact(goal - piece.len()).map_err(|_| Error::out_of_memory(goal))?;
            }
            piece.extend_from_slice(now);
            done += now.len();
            if budget.is_spent() {
                break;
            }
        }
        self.values += done / width;
        Ok(done / width)
    }

    /// Bytes of the page so far.
    pub(crate) fn bytes(&self) -> usize {
        self.values * self.width
    }

    /// Ends the page. `None` if the budget is spent first.
    pub(crate) fn finish(&mut self, budget: &mut Budget<'_>) -> Result<Option<Body>> {
        let is_split = self.split == self.values;
        if !self.make_room(budget)? || !self.split(budget)? || (!is_split && budget.is_spent()) {
            return Ok(None);
        }
        // The memory of one piece is reused.
        while self.pieces.len() > 1
            && let Some(last) = self.pieces.last_mut()
        {
            if !last.release(budget) {
                return Ok(None);
            }
            self.pieces.pop();
        }
        let mut body = Body::default();
        for piece in core::mem::take(&mut self.page) {
            body.push(piece.into());
        }
        let mut pieces = core::mem::take(&mut self.pieces);
        pieces.iter_mut().for_each(Vec::clear);
        *self = SplitEncoder { pieces, ..SplitEncoder::new(self.width) };
        Ok(Some(body))
    }

    /// Allocates the page, filled with zeros, a slice at a time. False if the budget is spent first.
    fn make_room(&mut self, budget: &mut Budget<'_>) -> Result<bool> {
        while self.room < self.bytes() {
            let left = self.bytes() - self.room;
            if self.page.last().is_none_or(|piece| piece.len() == PIECE_BYTES) {
                let bytes = left.min(PIECE_BYTES);
                let mut piece = Vec::new();
                piece.try_reserve_exact(bytes).map_err(|_| Error::out_of_memory(bytes))?;
                self.page.push(piece);
            }
            let Some(piece) = self.page.last_mut() else { break };
            let more = left.min(ROOM_SLICE_BYTES).min(PIECE_BYTES - piece.len());
            budget.charge(ROOM_PRICE, more, 0);
            piece.resize(piece.len() + more, 0);
            self.room += more;
            if budget.is_spent() && self.room < self.bytes() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Splits the values into the page. False if the budget is spent first.
    fn split(&mut self, budget: &mut Budget<'_>) -> Result<bool> {
        let width = self.width;
        if width > STREAMS_AT_ONCE {
            return Ok(self.split_wide(budget));
        }
        let piece_values = PIECE_BYTES / width;
        let block = (BLOCK_BYTES / width).max(1);
        // Not kept: there may be a hundred thousand encoders.
        let mut scratch = Vec::new();
        let most = block.min(self.values) * width;
        scratch.try_reserve_exact(most).map_err(|_| Error::out_of_memory(most))?;
        while self.split < self.values {
            let (piece, first) = (self.split / piece_values, self.split % piece_values);
            let piece = &self.pieces[piece][first * width..];
            let values = (piece.len() / width).min(block);
            scratch.resize(values * width, 0);
            bss::split(width, &piece[..values * width], values, &mut scratch)
                .map_err(|_| Error::internal("no room for streams"))?;
            for (number, stream) in scratch.chunks_exact(values).enumerate() {
                write_at(&mut self.page, number * self.values + self.split, stream);
            }
            budget.charge(SPLIT_PRICE, values * width, width);
            self.split += values;
            if budget.is_spent() && self.split < self.values {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The same for values of so many streams that they are split a slice of a value at a time.
    fn split_wide(&mut self, budget: &mut Budget<'_>) -> bool {
        let (width, piece_values) = (self.width, PIECE_BYTES / self.width);
        while self.split < self.values {
            let (piece, first) = (self.split / piece_values, self.split % piece_values * width);
            let streams = self.split_bytes..width.min(self.split_bytes + STREAMS_AT_ONCE);
            let bytes = &self.pieces[piece][first + streams.start..first + streams.end];
            for (stream, byte) in streams.clone().zip(bytes) {
                write_at(&mut self.page, stream * self.values + self.split, core::slice::from_ref(byte));
            }
            budget.charge(SPLIT_PRICE, streams.len(), streams.len());
            self.split_bytes = streams.end % width;
            self.split += usize::from(self.split_bytes == 0);
            if budget.is_spent() && self.split < self.values {
                return false;
            }
        }
        true
    }
}

/// Writes bytes into pieces, of which all but the last are full.
fn write_at(pieces: &mut [Vec<u8>], at: usize, bytes: &[u8]) {
    let (mut piece, mut start, mut bytes) = (at / PIECE_BYTES, at % PIECE_BYTES, bytes);
    while let (Some(to), false) = (pieces.get_mut(piece), bytes.is_empty()) {
        let (now, later) = bytes.split_at(bytes.len().min(to.len() - start));
        to[start..start + now.len()].copy_from_slice(now);
        (piece, start, bytes) = (piece + 1, 0, later);
    }
}
