//! The elements of an SSTable, one after the other: the beginning of a partition, its rows and bounds, its end.

use alloc::format;
use alloc::vec::Vec;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Error, Release, Result};

use super::blocks::EndedPartition;
use super::rows::{self, RowLayout};
use super::{Index, KEY_BYTES_MAX, PARTITION_PRICE, Partition, ROW_PRICE, SstableWriter, State};
use crate::sstable::batch::{Continues, EntryKind, MutationBatch, NO_DELETION_TIME, NO_TIMESTAMP, number_of};
use crate::sstable::flags::{END_OF_PARTITION, HAS_EXTENDED_FLAGS, IS_MARKER};
use crate::sstable::token::{murmur3_hash, token_of};
use crate::sstable::vint;

impl SstableWriter {
    /// The header's least times are those of the first batch: what comes later may be less, and is a negative difference then.
    pub(super) fn begin(&mut self, batch: &MutationBatch) {
        let cells = &batch.columns;
        let deletions = [&batch.partitions.deletions, &batch.entries.deletions, &batch.entries.starts];
        let rows = batch.entries.timestamps.iter().copied().filter(|timestamp| *timestamp != NO_TIMESTAMP);
        let deleted = || {
            let complex = cells.iter().flat_map(|cells| &cells.deletions.values);
            deletions.into_iter().flat_map(|list| &list.values).chain(complex)
        };
        let of_cells = cells.iter().flat_map(|cells| &cells.timestamps.values).copied();
        let timestamps = rows.chain(of_cells).chain(deleted().map(|deletion| deletion.timestamp));
        let expiries = || {
            let of_cells = cells.iter().flat_map(|cells| &cells.expiries.values);
            batch.entries.expiries.values.iter().chain(of_cells).filter(|expiry| expiry.ttl > 0)
        };
        let tombstones = cells.iter().flat_map(|cells| &cells.tombstones.values).copied();
        let locals = tombstones
            .chain(deleted().map(|deletion| deletion.local_deletion))
            .chain(expiries().map(|expiry| expiry.local_deletion))
            .filter(|seconds| *seconds != NO_DELETION_TIME);
        self.header.timestamp_min = timestamps.min().unwrap_or(crate::sstable::statistics::TIMESTAMP_EPOCH);
        self.header.local_deletion_min =
            locals.min().unwrap_or(crate::sstable::statistics::DELETION_TIME_EPOCH);
        self.header.ttl_min = expiries().map(|expiry| expiry.ttl).min().unwrap_or(0);
        self.layout = Some(RowLayout::new(self.options.version, &self.header));
    }

    /// Begins the next element. False if there is none yet.
    pub(super) fn element(&mut self, budget: &mut Budget<'_>) -> Result<bool> {
        if let Some(front) = self.parts.front()
            && front.partition >= front.batch.partitions.ends.len()
        {
            front.check_end()?;
            // Freeing it is what the next batch's reader would do.
            if let Some(part) = self.parts.front_mut()
                && !part.release(budget)
            {
                return Ok(true);
            }
            self.parts.pop_front();
            return Ok(true);
        }
        let Some(front) = self.parts.front() else {
            if !self.is_finished {
                return Ok(false);
            }
            // A reader that has found the end of the partition after its last batch has nothing more to say.
            if self.partition.is_open {
                return self.end_partition().map(|()| true);
            }
            if self.collector.partitions == 0 {
                return Err(Error::misuse("an SSTable without partitions"));
            }
            self.state = State::LastChunk;
            return Ok(true);
        };
        if !self.partition.is_open {
            let key = front.batch.partitions.keys.get(front.partition).unwrap_or_default();
            let hash = murmur3_hash(key);
            let token = if key.is_empty() { i64::MIN } else { token_of(hash) };
            if self.ends_before(token) {
                self.state = State::LastChunk;
                return Ok(true);
            }
            return self.begin_partition(hash, token, budget).map(|()| true);
        }
        let batch = &front.batch;
        let end = batch.entries_of(front.partition).end;
        if front.entry < end {
            return self.begin_entry(budget);
        }
        let is_last = front.partition + 1 == batch.partitions.ends.len();
        if is_last && batch.is_open {
            if let Some(front) = self.parts.front_mut() {
                front.partition += 1;
            }
            return Ok(true);
        }
        self.end_partition().map(|()| true)
    }

    /// The mark of a partition's end; before it, the static row that a table with static columns has always.
    fn end_partition(&mut self) -> Result<()> {
        if self.partition.lacks_static {
            self.begin_static(0);
            return Ok(());
        }
        if self.partition.open.is_some() {
            return Err(Error::misuse("a range of deleted rows that does not end in its partition"));
        }
        if let Some(front) = self.parts.front_mut() {
            front.partition += 1;
        }
        self.partition.rows_end = self.sink.position() - self.partition.position;
        self.partition.is_open = false;
        self.head.clear();
        self.head.push(END_OF_PARTITION);
        self.state = State::Head { at: 0, has_body: false };
        Ok(())
    }

    /// A partition's key and deletion.
    fn begin_partition(&mut self, hash: [u64; 2], token: i64, budget: &mut Budget<'_>) -> Result<()> {
        let Some(front) = self.parts.front() else { return Err(Error::internal("no partition")) };
        let key = front.batch.partitions.keys.get(front.partition).unwrap_or_default();
        budget.charge(PARTITION_PRICE, 2 * key.len(), 1);
        if key.len() > KEY_BYTES_MAX {
            return Err(Error::unsupported(format!(
                "a partition key of {} bytes; 65,535 can be stored",
                key.len()
            )));
        }
        let partition = &mut self.partition;
        let is_after = partition.token.is_none_or(|before| (before, &partition.key[..]) < (token, key));
        if !is_after {
            return Err(Error::conversion(
                "partitions that are not in the order of their tokens, or one that is there twice",
            ));
        }
        let number = number_of(front.partition);
        let deletion = front.batch.partitions.deletions.get(number);
        self.head.clear();
        self.head.extend(u16::try_from(key.len()).unwrap_or(u16::MAX).to_be_bytes());
        self.head.extend(key);
        rows::push_partition_deletion(&mut self.head, deletion, self.options.version)?;
        self.collector.partition(key, deletion);
        self.filter.add(hash);
        partition.key.clear();
        partition.key.extend_from_slice(key);
        let lacks_static = self.layout.as_ref().is_some_and(RowLayout::has_statics);
        *partition = Partition {
            key: core::mem::take(&mut partition.key),
            hash,
            token: Some(token),
            is_open: true,
            position: self.sink.position(),
            deletion,
            head_bytes: u64_of(self.head.len()),
            lacks_static,
            ..Partition::default()
        };
        self.first_token.get_or_insert(token);
        self.blocks.begin();
        self.state = State::Head { at: 0, has_body: false };
        Ok(())
    }

    /// A row or bound. False if the rest of it is not there yet.
    fn begin_entry(&mut self, budget: &mut Budget<'_>) -> Result<bool> {
        // A row may go on in the batches after this one.
        let mut count = 1;
        while let Some(part) = self.parts.get(count - 1) {
            let last = part.batch.entries.kinds.len() == if count == 1 { part.entry + 1 } else { 1 };
            if !part.batch.is_open || !last {
                break;
            }
            match self.parts.get(count) {
                Some(next) if next.batch.continues == Continues::Entry => count += 1,
                Some(_) => break,
                None if self.is_finished => break,
                None => return Ok(false),
            }
        }
        let Some(front) = self.parts.front() else { return Err(Error::internal("no entry")) };
        core::mem::swap(&mut self.clustering, &mut self.before);
        self.clustering.read(&front.batch, front.entry);
        budget.charge(ROW_PRICE, self.clustering.bytes(), 1);
        let kind = self.clustering.kind;
        if kind == EntryKind::Static {
            if !self.partition.lacks_static {
                return Err(Error::misuse(
                    "a static row that is not its partition's first, or in a table without static columns",
                ));
            }
            self.begin_static(count);
            return Ok(true);
        }
        if self.partition.lacks_static {
            core::mem::swap(&mut self.clustering, &mut self.before);
            self.begin_static(0);
            return Ok(true);
        }
        self.order.check(&self.clustering)?;
        if self.partition.has_rows {
            let found = self.order.compare(&self.before, &self.clustering);
            let is_bound = !kind.is_row() && !self.before.kind.is_row();
            if found.is_gt() || (found.is_eq() && !is_bound) {
                return Err(Error::conversion(
                    "rows that are not in the order of their clustering columns, or one that is there twice",
                ));
            }
        }
        self.partition.has_rows = true;
        self.collector.clustering(&self.order, &self.clustering);
        if kind.is_row() {
            self.begin_row(count, false);
        } else {
            self.bound()?;
        }
        Ok(true)
    }

    fn begin_static(&mut self, count: usize) {
        self.partition.lacks_static = false;
        self.begin_row(count, true);
    }

    fn begin_row(&mut self, count: usize, is_static: bool) {
        if let Some(layout) = &self.layout {
            self.row.begin(&self.parts, count, is_static, layout);
        }
        self.state = State::Row { is_static };
    }

    /// What is before a row's body.
    pub(super) fn row_head(&mut self, is_static: bool) {
        let (flags, extended) = self.row.flags();
        self.head.clear();
        self.head.push(flags);
        if flags & HAS_EXTENDED_FLAGS != 0 {
            self.head.push(extended);
        }
        let mut before = 0;
        if !is_static {
            self.clustering.write_values(&self.fixed, &mut self.head);
            before = self.row_start() - self.partition.row_before;
        }
        vint::push_unsigned(&mut self.head, u64_of(vint::unsigned_bytes(before) + self.row.body().len()));
        vint::push_unsigned(&mut self.head, before);
        if !is_static {
            let at = self.row_start();
            self.blocks.add(&self.clustering, at, None);
            self.partition.row_before = at;
        }
        self.state = State::Head { at: 0, has_body: true };
    }

    /// Where the next row begins in the partition.
    fn row_start(&self) -> u64 {
        self.sink.position() - self.partition.position
    }

    /// A bound of one or two ranges.
    fn bound(&mut self) -> Result<()> {
        let at = self.row_start();
        let (Some(front), Some(layout)) = (self.parts.front_mut(), &self.layout) else {
            return Err(Error::internal("a bound of no batch"));
        };
        let number = number_of(front.entry);
        let entries = &front.batch.entries;
        let (ends, starts) = (entries.deletions.get(number), entries.starts.get(number));
        let kind = self.clustering.kind;
        if ends.is_none() || starts.is_some() != kind.is_boundary() {
            return Err(Error::misuse("a bound of a range that is not deleted"));
        }
        let opens = matches!(kind, EntryKind::InclusiveStart | EntryKind::ExclusiveStart);
        if self.partition.open.is_some() == opens {
            return Err(Error::misuse(
                "a range of deleted rows that begins in another one, or ends without having begun",
            ));
        }
        self.head.clear();
        self.head.push(IS_MARKER);
        self.clustering.write_bound(&self.fixed, &mut self.head);
        let mut body = Vec::new();
        vint::push_unsigned(&mut body, at - self.partition.row_before);
        for deletion in [ends, starts].into_iter().flatten() {
            layout.push_deletion(Some(deletion), &mut body)?;
            self.collector.deletion(deletion);
        }
        vint::push_unsigned(&mut self.head, u64_of(body.len()));
        self.head.extend(body);
        let open = if opens { ends } else { starts };
        self.partition.open = open;
        self.blocks.add(&self.clustering, at, Some(open));
        self.partition.row_before = at;
        front.entry += 1;
        self.state = State::Head { at: 0, has_body: false };
        Ok(())
    }

    /// What follows an element that went to the sink.
    pub(super) fn end_element(&mut self, budget: &mut Budget<'_>) -> Result<()> {
        self.state = State::Element;
        let at = self.row_start();
        if !self.partition.has_rows && self.partition.is_open {
            // The key, or the static row.
            self.partition.head_bytes = at;
            return Ok(());
        }
        if let Some(block) = self.blocks.take(at, !self.partition.is_open) {
            match &mut self.index {
                // The only one of its partition is not in the index.
                Index::Big(index) if !self.partition.is_open && !index.has_blocks() => {}
                Index::Big(index) => index.add_block(block)?,
                Index::Trie(index) => index.add_block(block, &mut self.out, budget)?,
            }
        }
        if self.partition.is_open {
            return Ok(());
        }
        let partition = &self.partition;
        self.collector.end_partition(at);
        let ended = EndedPartition {
            key: &partition.key,
            hash: partition.hash,
            position: partition.position,
            deletion: partition.deletion,
            head_bytes: partition.head_bytes,
            rows_end: partition.rows_end,
        };
        match &mut self.index {
            Index::Big(index) => index.begin_entry(&ended)?,
            Index::Trie(index) => index.add(&ended, &mut self.out, budget)?,
        }
        self.ended += 1;
        self.state = State::Entry;
        Ok(())
    }
}
