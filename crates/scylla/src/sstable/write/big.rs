//! Index.db and Summary.db: an entry a partition, and a sample of these (`BigFormatPartitionWriter.java`, `RowIndexEntry.java`,
//! `IndexSummary.java`).

use alloc::vec::Vec;

use marquetry_base::cast::{bits_i64, u64_of};
use marquetry_base::{Budget, Limit, Limits, Release, Result, Segmented};

use super::blocks::{Block, EndedPartition};
use super::body::Body;
use super::out::Out;
use crate::sstable::toc::Component;
use crate::sstable::version::Version;
use crate::sstable::vint;

/// A sample is taken of one of so many partitions: `min_index_interval`, 128 by default, at the full sampling level, which is the same number.
const INTERVAL: u32 = 128;
/// What the widths of blocks are stored as differences from (`IndexInfo.java`).
const WIDTH_BASE: i64 = 64 << 10;

/// The index of an SSTable without tries.
#[derive(Debug)]
pub(super) struct BigIndex {
    version: Version,
    fixed: Vec<Option<u32>>,
    bytes_max: u64,
    /// The blocks of the partition, and where each begins among them.
    blocks: Body,
    starts: Segmented<u32>,
    /// The entry's bytes before the blocks.
    head: Vec<u8>,
    /// What is written next of an entry.
    stage: Stage,
    /// Bytes of Index.db.
    position: u64,
    keys: u32,
    samples: Body,
    sample_starts: Segmented<u32>,
    sample_bytes: u64,
    summary_stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    Head,
    Segment(usize),
    Starts(usize),
    Keys,
}

impl BigIndex {
    pub(super) fn new(version: Version, fixed: Vec<Option<u32>>, limits: &Limits) -> BigIndex {
        BigIndex {
            version,
            fixed,
            bytes_max: limits.page_index_bytes,
            blocks: Body::default(),
            starts: Segmented::new(),
            head: Vec::new(),
            stage: Stage::Head,
            position: 0,
            keys: 0,
            samples: Body::default(),
            sample_starts: Segmented::new(),
            sample_bytes: 0,
            summary_stage: Stage::Head,
        }
    }

    /// Adds a block of the partition.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::LimitExceeded`](marquetry_base::ErrorKind::LimitExceeded) for a partition of too many: they are held up to its end.
    pub(super) fn add_block(&mut self, block: &Block) -> Result<()> {
        let mut bytes = Vec::new();
        block.first.write_prefix(&self.fixed, &mut bytes);
        block.last.write_prefix(&self.fixed, &mut bytes);
        vint::push_unsigned(&mut bytes, block.start);
        vint::push_signed(&mut bytes, bits_i64(block.bytes).wrapping_sub(WIDTH_BASE));
        bytes.push(u8::from(block.open_at_end.is_some()));
        if block.open_at_end.is_some() {
            super::rows::push_partition_deletion(&mut bytes, block.open_at_end, self.version)?;
        }
        let held = u64_of(self.blocks.len());
        Limit::PageIndexBytes.check(self.bytes_max, held + u64_of(bytes.len()))?;
        self.starts.push(u32::try_from(held).unwrap_or(u32::MAX));
        self.blocks.push(&bytes);
        Ok(())
    }

    /// Whether the partition has blocks so far.
    pub(super) fn has_blocks(&self) -> bool {
        !self.starts.is_empty()
    }

    /// Begins the entry of a partition.
    ///
    /// # Errors
    ///
    /// As [`BigIndex::add_block`]'s, for a summary of too many bytes.
    pub(super) fn begin_entry(&mut self, partition: &EndedPartition<'_>) -> Result<()> {
        if self.keys.is_multiple_of(INTERVAL) {
            Limit::PageIndexBytes
                .check(self.bytes_max, self.sample_bytes + u64_of(partition.key.len()) + 8)?;
            self.sample_starts.push(u32::try_from(self.sample_bytes).unwrap_or(u32::MAX));
            self.samples.push(partition.key);
            self.samples.push(&self.position.to_le_bytes());
            self.sample_bytes += u64_of(partition.key.len()) + 8;
        }
        self.keys = self.keys.saturating_add(1);
        self.head.clear();
        self.head.extend(u16::try_from(partition.key.len()).unwrap_or(u16::MAX).to_be_bytes());
        self.head.extend(partition.key);
        vint::push_unsigned(&mut self.head, partition.position);
        self.stage = Stage::Head;
        if self.starts.len() < 2 {
            if self.has_blocks() {
                self.blocks.clear();
                self.starts = Segmented::new();
            }
            vint::push_unsigned(&mut self.head, 0);
            return Ok(());
        }
        let mut more = Vec::new();
        vint::push_unsigned(&mut more, partition.head_bytes);
        super::rows::push_partition_deletion(&mut more, partition.deletion, self.version)?;
        vint::push_unsigned(&mut more, u64_of(self.starts.len()));
        let bytes = more.len() + self.blocks.len() + 4 * self.starts.len();
        vint::push_unsigned(&mut self.head, u64_of(bytes));
        self.head.extend(more);
        Ok(())
    }

    /// Writes the entry; false if the budget is spent before that is done.
    pub(super) fn write_entry(&mut self, out: &mut Out, budget: &mut Budget<'_>) -> bool {
        loop {
            match self.stage {
                Stage::Head => {
                    self.position += u64_of(self.head.len());
                    out.push(&Component::Index, &self.head, budget);
                    if !self.has_blocks() {
                        return true;
                    }
                    self.stage = Stage::Segment(0);
                }
                Stage::Segment(number) => match self.blocks.segment(number) {
                    Some(segment) => {
                        self.position += u64_of(segment.len());
                        out.push(&Component::Index, segment, budget);
                        self.stage = Stage::Segment(number + 1);
                    }
                    None => self.stage = Stage::Starts(0),
                },
                Stage::Starts(at) => {
                    let starts: Vec<u8> =
                        self.starts.iter_from(at).take(SLICE).flat_map(|start| start.to_be_bytes()).collect();
                    if starts.is_empty() {
                        self.blocks.clear();
                        self.starts = Segmented::new();
                        return true;
                    }
                    self.push(&starts, out, budget);
                    self.stage = Stage::Starts(at + SLICE);
                }
                Stage::Keys => return true,
            }
            if budget.is_spent() {
                return false;
            }
        }
    }

    fn push(&mut self, bytes: &[u8], out: &mut Out, budget: &mut Budget<'_>) {
        self.position += u64_of(bytes.len());
        out.push(&Component::Index, bytes, budget);
    }

    /// Writes Summary.db; false if the budget is spent before that is done.
    pub(super) fn finish(
        &mut self,
        first: &[u8],
        last: &[u8],
        out: &mut Out,
        budget: &mut Budget<'_>,
    ) -> bool {
        let component = Component::Summary;
        let count = u32::try_from(self.sample_starts.len()).unwrap_or(u32::MAX);
        loop {
            match self.summary_stage {
                Stage::Head => {
                    let mut head = INTERVAL.to_be_bytes().to_vec();
                    head.extend(count.to_be_bytes());
                    head.extend((self.sample_bytes + 4 * u64::from(count)).to_be_bytes());
                    // All samples are kept.
                    head.extend(INTERVAL.to_be_bytes());
                    head.extend(count.to_be_bytes());
                    out.push(&component, &head, budget);
                    self.summary_stage = Stage::Starts(0);
                }
                Stage::Starts(at) => {
                    let starts: Vec<u8> = self
                        .sample_starts
                        .iter_from(at)
                        .take(SLICE)
                        .flat_map(|start| start.wrapping_add(4 * count).to_le_bytes())
                        .collect();
                    out.push(&component, &starts, budget);
                    self.summary_stage =
                        if starts.is_empty() { Stage::Segment(0) } else { Stage::Starts(at + SLICE) };
                }
                Stage::Segment(number) => match self.samples.segment(number) {
                    Some(segment) => {
                        out.push(&component, segment, budget);
                        self.summary_stage = Stage::Segment(number + 1);
                    }
                    None => self.summary_stage = Stage::Keys,
                },
                Stage::Keys => {
                    for key in [first, last] {
                        let length = u32::try_from(key.len()).unwrap_or(u32::MAX);
                        out.push(&component, &length.to_be_bytes(), budget);
                        out.push(&component, key, budget);
                    }
                    return true;
                }
            }
            if budget.is_spent() {
                return false;
            }
        }
    }
}

/// Numbers that are written at a time.
const SLICE: usize = 4096;

impl Release for BigIndex {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.blocks.release(budget)
            && self.starts.release(budget)
            && self.samples.release(budget)
            && self.sample_starts.release(budget)
    }
}
