//! Writing RLE_DICTIONARY: a page's indices, with as few bits as its largest one needs.

use alloc::vec::Vec;

use marquetry_base::{Budget, Error, RELEASE_PRICE, Result};

use super::hybrid::encode::HybridEncoder;
use super::output::Body;
use crate::growing::COPY_PRICE;

/// Indices per piece: 128 KiB.
const PIECE: usize = 32 << 10;

/// Indices that are copied between two checks of the budget.
const SLICE: usize = 4096;

/// Pieces whose memory is reused for the next page.
const PIECES_KEPT: usize = 4;

/// An encoder of indices. It keeps a page's indices, because their width precedes them.
#[derive(Debug, Default)]
pub(crate) struct IndexEncoder {
    pieces: Vec<Vec<u32>>,
    /// The piece that is being filled, or encoded.
    piece: usize,
    values: usize,
    /// All indices' bits.
    bits: u32,
    /// The page, while it is being built, and how much of the piece is in it.
    page: Option<(HybridEncoder, usize)>,
}

impl IndexEncoder {
    /// Takes as many indices as the budget pays for, and returns how many.
    pub(crate) fn put(&mut self, indices: &[u32], budget: &mut Budget<'_>) -> Result<usize> {
        let mut done = 0;
        while done < indices.len() {
            if self.pieces.get(self.piece).is_some_and(|piece| piece.len() == PIECE) {
                self.piece += 1;
            }
            if self.piece == self.pieces.len() {
                self.pieces.push(Vec::new());
            }
            let piece = &mut self.pieces[self.piece];
            let now = (indices.len() - done).min(SLICE).min(PIECE - piece.len());
            let now = &indices[done..done + now];
            budget.charge(COPY_PRICE, now.len() * 4, 0);
            piece.try_reserve(now.len()).map_err(|_| Error::out_of_memory(now.len() * 4))?;
            piece.extend_from_slice(now);
            self.bits |= now.iter().fold(0, |all, index| all | index);
            self.values += now.len();
            done += now.len();
            if budget.is_spent() {
                break;
            }
        }
        Ok(done)
    }

    /// Bytes of the page, if it ended here and had no runs.
    pub(crate) fn bytes(&self) -> usize {
        1 + self.values.div_ceil(8) * self.width() as usize
    }

    /// Ends the page. `None` if the budget is spent first.
    pub(crate) fn finish(&mut self, budget: &mut Budget<'_>) -> Result<Option<Body>> {
        if self.page.is_none() {
            let mut page = HybridEncoder::new(self.width(), false);
            page.put_width()?;
            (self.page, self.piece) = (Some((page, 0)), 0);
        }
        let Some((page, at)) = &mut self.page else { return Err(Error::internal("no page")) };
        while let Some(piece) = self.pieces.get_mut(self.piece) {
            while *at < piece.len() {
                *at += page.put(&piece[*at..], budget)?;
                if budget.is_spent() && *at < piece.len() {
                    return Ok(None);
                }
            }
            if self.piece < PIECES_KEPT {
                piece.clear();
            } else {
                budget.charge(RELEASE_PRICE, piece.capacity() * 4, 1);
                *piece = Vec::new();
            }
            *at = 0;
            self.piece += 1;
        }
        let body = page.finish(false)?;
        let mut pieces = core::mem::take(&mut self.pieces);
        pieces.truncate(PIECES_KEPT);
        *self = IndexEncoder { pieces, ..IndexEncoder::default() };
        Ok(Some(body))
    }

    /// The page's indices, which will not be encoded after all.
    pub(crate) fn into_pieces(self) -> Vec<Vec<u32>> {
        self.pieces
    }

    fn width(&self) -> u32 {
        u32::BITS - self.bits.leading_zeros()
    }
}
