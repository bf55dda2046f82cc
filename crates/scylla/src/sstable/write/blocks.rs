//! Which part of a large partition is where: blocks of rows, and the range that is deleted where each begins
//! (`SortedTablePartitionWriter.java`).

use super::clustering::Clustering;
use crate::sstable::batch::Deletion;

/// A block of rows.
#[derive(Debug, Clone, Default)]
pub(super) struct Block {
    pub(super) first: Clustering,
    pub(super) last: Clustering,
    /// Where it begins in the partition, and its bytes.
    pub(super) start: u64,
    pub(super) bytes: u64,
    /// The deletion of the range that begins before it and does not end there.
    pub(super) open: Option<Deletion>,
    /// The same where it ends.
    pub(super) open_at_end: Option<Deletion>,
}

/// The block that rows are added to.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    block: Block,
    is_begun: bool,
    open: Option<Deletion>,
    block_bytes: u64,
}

impl Blocks {
    pub(super) fn new(block_bytes: u64) -> Blocks {
        Blocks { block_bytes, ..Blocks::default() }
    }

    /// Begins a partition.
    pub(super) fn begin(&mut self) {
        (self.is_begun, self.open) = (false, None);
    }

    /// Takes notice of a row or bound that begins `at` this place in the partition.
    pub(super) fn add(&mut self, clustering: &Clustering, at: u64, bound: Option<Option<Deletion>>) {
        if !self.is_begun {
            self.is_begun = true;
            self.block.first.clone_from(clustering);
            (self.block.start, self.block.open) = (at, self.open);
        }
        self.block.last.clone_from(clustering);
        if let Some(open) = bound {
            self.open = open;
        }
    }

    /// The block, if it is full at this place, or there is to be no other one.
    pub(super) fn take(&mut self, at: u64, is_last: bool) -> Option<&Block> {
        let bytes = at.saturating_sub(self.block.start);
        if !self.is_begun || (bytes < self.block_bytes && !is_last) {
            return None;
        }
        self.is_begun = false;
        (self.block.bytes, self.block.open_at_end) = (bytes, self.open);
        Some(&self.block)
    }
}

/// A partition whose end was written.
#[derive(Debug, Clone, Copy)]
pub(super) struct EndedPartition<'a> {
    pub(super) key: &'a [u8],
    pub(super) hash: [u64; 2],
    /// Where it begins in the data.
    pub(super) position: u64,
    pub(super) deletion: Option<Deletion>,
    /// Bytes before its first row, and before the mark of its end.
    pub(super) head_bytes: u64,
    pub(super) rows_end: u64,
}
