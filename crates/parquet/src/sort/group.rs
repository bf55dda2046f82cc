//! Batches as they came, and the block that becomes of them.

use alloc::vec::Vec;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Error, Result};

use super::key::Keys;
use super::pieces::Piece;
use super::producer::{Block, Common, Producer};
use super::stored::{Stored, Storing};
use crate::batch::Batch;
use crate::going::Going;

/// Bytes, batches and pieces of a group, at most: a block is made within the cache.
const GROUP_BYTES: u64 = 4 << 20;
const GROUP_BATCHES: usize = 1024;
/// Strings of a batch of fewer rows are copied at once: otherwise many batches would hold what little of each points into.
const FEW_ROWS: usize = 1024;

/// Batches in the order in which they came, each sorted in pieces.
#[derive(Debug, Default)]
pub(super) struct Group {
    stored: Vec<Stored>,
    pieces: Vec<Piece>,
    rows: usize,
    held: u64,
}

impl Group {
    /// Makes a batch one that can be [added](Group::add).
    pub(super) fn storing(batch: Batch) -> Storing {
        let copies = batch.rows < FEW_ROWS;
        Storing::new(batch, copies)
    }

    /// Adds a batch, whose rows are to be sorted.
    pub(super) fn add(&mut self, stored: Stored) {
        self.rows += stored.rows;
        self.held += stored.held;
        self.stored.push(stored);
    }

    /// Sorts rows of the last batch from `first` on, a piece at a time. Its rows, once all are sorted; `None` if the budget pays for no
    /// more.
    ///
    /// # Errors
    ///
    /// As [`Piece::new`].
    pub(super) fn sort(
        &mut self,
        first: &mut usize,
        keys: &Keys,
        budget: &mut Budget<'_>,
    ) -> Result<Option<u64>> {
        let Some(last) = self.stored.last() else { return Err(Error::internal("nothing to sort")) };
        let source = u32::try_from(self.stored.len() - 1).map_err(|_| Error::internal("too many batches"))?;
        while *first < last.rows {
            if !Piece::is_paid_for(budget) {
                return Ok(None);
            }
            let piece = Piece::new(keys, &last.columns, source, *first..last.rows, budget)?;
            *first += piece.len();
            self.held += u64_of(piece.held());
            self.pieces.push(piece);
        }
        Ok(Some(u64_of(last.rows)))
    }

    /// Whether it has no rows.
    pub(super) fn is_empty(&self) -> bool {
        self.stored.is_empty()
    }

    /// Whether it should become a block, whose batches have so many rows.
    pub(super) fn is_full(&self, block_rows: usize) -> bool {
        self.rows >= block_rows || self.held >= GROUP_BYTES || self.stored.len() >= GROUP_BATCHES
    }

    /// Bytes of memory, about.
    pub(super) fn held(&self) -> u64 {
        self.held
    }
}

/// A group on its way to a block.
pub(super) struct Grouping {
    producer: Producer,
    storing: Option<Storing>,
    block: Block,
}

impl Grouping {
    /// Takes the group.
    pub(super) fn new(group: &mut Group, block_rows: usize) -> Grouping {
        let Group { stored, pieces, .. } = core::mem::take(group);
        let producer = Producer::of_pieces(stored, pieces, block_rows);
        Grouping { producer, storing: None, block: Vec::new() }
    }

    /// Works on it. True once it is done.
    ///
    /// # Errors
    ///
    /// If memory cannot be allocated.
    pub(super) fn step(&mut self, common: &Common, budget: &mut Budget<'_>) -> Result<bool> {
        loop {
            if let Some(storing) = &mut self.storing {
                if !storing.step(&common.schema, budget)? {
                    return Ok(false);
                }
                self.block.extend(self.storing.take().map(Storing::finish));
            }
            match self.producer.step(common, budget)? {
                Going::Done(Some(batch)) => self.storing = Some(Storing::new(batch, true)),
                Going::Done(None) => return Ok(true),
                Going::Yield => return Ok(false),
                Going::Need(_) => return Err(Error::internal("rows in memory that are read")),
            }
        }
    }

    /// The block.
    pub(super) fn finish(self) -> Block {
        self.block
    }
}
