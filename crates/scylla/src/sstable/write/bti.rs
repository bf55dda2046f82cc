//! Partitions.db and Rows.db: tries (`PartitionIndexBuilder.java`, `RowIndexWriter.java`, `BtiTableWriter.java`).

use alloc::vec::Vec;

use marquetry_base::cast::{bits_i64, low_u8, u64_of};
use marquetry_base::{Budget, Error, Release, Result};

use super::blocks::{Block, EndedPartition};
use super::clustering::Clustering;
use super::comparable::Comparable;
use super::out::Out;
use super::trie::{Payload, TrieWriter};
use crate::sstable::batch::Deletion;
use crate::sstable::toc::Component;
use crate::sstable::token::token_of;
use crate::sstable::version::Version;
use crate::sstable::vint;

/// What says that a payload begins with a byte of the key's hash, or ends with a deletion.
const HAS_HASH: u8 = 8;
const HAS_DELETION: u8 = 8;

/// The index of an SSTable with tries.
#[derive(Debug)]
pub(super) struct TrieIndex {
    version: Version,
    comparable: Comparable,
    partitions: TrieWriter,
    partitions_bytes: u64,
    /// The last key, as the trie has it, and what it points to; and how many of its bytes the one before makes necessary.
    last: Vec<u8>,
    last_payload: Payload,
    needed: usize,
    keys: u64,
    rows: TrieWriter,
    rows_bytes: u64,
    /// The blocks of the partition; the last values of the last block, and what separates it from the one before.
    blocks: u64,
    last_row: Vec<u8>,
    separator: Vec<u8>,
    scratch: Vec<u8>,
}

impl TrieIndex {
    pub(super) fn new(version: Version, comparable: Comparable) -> TrieIndex {
        TrieIndex {
            version,
            comparable,
            partitions: TrieWriter::default(),
            partitions_bytes: 0,
            last: Vec::new(),
            last_payload: Payload::default(),
            needed: 0,
            keys: 0,
            rows: TrieWriter::default(),
            rows_bytes: 0,
            blocks: 0,
            last_row: Vec::new(),
            separator: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// Adds a block of the partition.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](marquetry_base::ErrorKind::Unsupported) for values that have no bytes that can be compared.
    pub(super) fn add_block(&mut self, block: &Block, out: &mut Out, budget: &mut Budget<'_>) -> Result<()> {
        if self.blocks == 0 {
            self.rows.begin(self.rows_bytes);
            self.separator.clear();
        } else {
            self.read(&block.first)?;
            // The shortest that is greater than all before it.
            let common = common(&self.last_row, &self.scratch);
            self.separator.clear();
            self.separator.extend(self.scratch.iter().take(common + 1));
        }
        let payload = self.row_payload(block.start, block.open)?;
        let separator = core::mem::take(&mut self.separator);
        self.rows.add(&separator, payload, budget)?;
        self.separator = separator;
        self.read(&block.last)?;
        core::mem::swap(&mut self.last_row, &mut self.scratch);
        self.blocks += 1;
        self.write_rows(out, budget);
        Ok(())
    }

    /// Writes the entry of a partition.
    ///
    /// # Errors
    ///
    /// As [`TrieIndex::add_block`]'s.
    pub(super) fn add(
        &mut self,
        partition: &EndedPartition<'_>,
        out: &mut Out,
        budget: &mut Budget<'_>,
    ) -> Result<()> {
        // An index of one block says nothing.
        let position = if self.blocks > 1 {
            bits_i64(self.end_rows(partition, out, budget)?)
        } else {
            !bits_i64(partition.position)
        };
        self.blocks = 0;
        let mut bytes = alloc::vec![low_u8(partition.hash[1])];
        let length = push_sized(position, &mut bytes);
        let payload = Payload::new(HAS_HASH + length - 1, &bytes);
        self.scratch.clear();
        push_key(token_of(partition.hash), partition.key, &mut self.scratch);
        if self.keys > 0 {
            let needed = common(&self.last, &self.scratch) + 1;
            self.add_last(needed, budget)?;
            self.needed = needed;
        }
        core::mem::swap(&mut self.last, &mut self.scratch);
        self.last_payload = payload;
        self.keys += 1;
        self.write_partitions(out, budget);
        Ok(())
    }

    /// Adds the key before the last one: as many bytes as tell it from its neighbours.
    fn add_last(&mut self, needed: usize, budget: &mut Budget<'_>) -> Result<()> {
        let length = needed.max(self.needed).min(self.last.len());
        self.partitions.add(self.last.get(..length).unwrap_or_default(), self.last_payload, budget)
    }

    /// Writes the rest of Partitions.db.
    ///
    /// # Errors
    ///
    /// None that a caller can cause.
    pub(super) fn finish(
        &mut self,
        first: &[u8],
        last: &[u8],
        out: &mut Out,
        budget: &mut Budget<'_>,
    ) -> Result<()> {
        self.add_last(0, budget)?;
        let root = self.partitions.finish(budget)?;
        self.write_partitions(out, budget);
        let end = self.partitions_bytes;
        let mut bytes = Vec::new();
        for key in [first, last] {
            bytes.extend(u16::try_from(key.len()).unwrap_or(u16::MAX).to_be_bytes());
            bytes.extend(key);
        }
        for number in [end, self.keys, root] {
            bytes.extend(number.to_be_bytes());
        }
        out.push(&Component::Partitions, &bytes, budget);
        Ok(())
    }

    /// Ends the trie of a partition's rows; returns where its entry is.
    fn end_rows(
        &mut self,
        partition: &EndedPartition<'_>,
        out: &mut Out,
        budget: &mut Budget<'_>,
    ) -> Result<u64> {
        // What is after all rows: one more at the first byte where the last row differs from the last separator.
        let at = common(&self.last_row, &self.separator);
        let mut end: Vec<u8> = self.last_row.iter().take(at + 1).copied().collect();
        let mut next = at + 1;
        while end.last() == Some(&0xff) {
            match self.last_row.get(next) {
                Some(byte) => end.push(*byte),
                None => return Err(Error::internal("values that end in their greatest byte")),
            }
            next += 1;
        }
        if let Some(byte) = end.last_mut() {
            *byte += 1;
        }
        let payload = self.row_payload(partition.rows_end, None)?;
        self.rows.add(&end, payload, budget)?;
        let root = self.rows.finish(budget)?;
        self.write_rows(out, budget);
        let entry = self.rows_bytes;
        let mut bytes = u16::try_from(partition.key.len()).unwrap_or(u16::MAX).to_be_bytes().to_vec();
        bytes.extend(partition.key);
        let base = entry + u64_of(bytes.len());
        vint::push_unsigned(&mut bytes, partition.position);
        vint::push_signed(&mut bytes, bits_i64(root.wrapping_sub(base)));
        vint::push_unsigned(&mut bytes, self.blocks);
        super::rows::push_partition_deletion(&mut bytes, partition.deletion, self.version)?;
        self.rows_bytes += u64_of(bytes.len());
        out.push(&Component::Rows, &bytes, budget);
        Ok(entry)
    }

    fn row_payload(&self, start: u64, open: Option<Deletion>) -> Result<Payload> {
        let mut bytes = Vec::new();
        let length = push_sized(bits_i64(start), &mut bytes);
        if open.is_none() {
            return Ok(Payload::new(length, &bytes));
        }
        super::rows::push_partition_deletion(&mut bytes, open, self.version)?;
        Ok(Payload::new(length | HAS_DELETION, &bytes))
    }

    fn read(&mut self, clustering: &Clustering) -> Result<()> {
        self.scratch.clear();
        self.comparable.push(clustering, &mut self.scratch)
    }

    fn write_rows(&mut self, out: &mut Out, budget: &mut Budget<'_>) {
        let bytes = self.rows.take();
        self.rows_bytes += u64_of(bytes.len());
        out.push(&Component::Rows, &bytes, budget);
    }

    fn write_partitions(&mut self, out: &mut Out, budget: &mut Budget<'_>) {
        let bytes = self.partitions.take();
        self.partitions_bytes += u64_of(bytes.len());
        out.push(&Component::Partitions, &bytes, budget);
    }
}

/// The bytes that two keys have in common.
fn common(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
}

/// A number with its sign, in as few bytes as it needs; returns how many.
fn push_sized(number: i64, bytes: &mut Vec<u8>) -> u8 {
    let magnitude = if number < 0 { !number } else { number };
    let bits = u64::from(64 - magnitude.leading_zeros()) + 1;
    let length = low_u8(bits.div_ceil(8));
    bytes.extend(number.to_be_bytes().get(8 - usize::from(length)..).unwrap_or_default());
    length
}

/// A partition's key as bytes that are in the order of tokens, and then of keys.
fn push_key(token: i64, key: &[u8], out: &mut Vec<u8>) {
    out.push(super::comparable::NEXT);
    out.extend((token.cast_unsigned() ^ 1 << 63).to_be_bytes());
    out.push(super::comparable::NEXT);
    super::comparable::push_escaped(key, out);
    out.push(super::comparable::END);
}

impl Release for TrieIndex {}
