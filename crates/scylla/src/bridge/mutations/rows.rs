//! Which rows of Parquet the partitions and entries of a batch become.

use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::Error;
use marquetry_base::cast::usize_of_u32;

use crate::sstable::batch::{Continues, Deletion, EntryKind, MutationBatch, number_of};

/// The row of an entry that has none.
pub(super) const NO_ROW: u32 = u32::MAX;

/// What a row of Parquet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowKind {
    /// A row with something in it that is or was alive.
    Row,
    /// The static row of its partition.
    Static,
    /// A row in which nothing is alive.
    Deletion,
    PartitionDeletion,
    /// A partition without anything in it.
    Partition,
    RangeStart,
    RangeStartExclusive,
    RangeEnd,
    RangeEndExclusive,
}

impl RowKind {
    /// All of them, in the order of their numbers.
    pub(super) const ALL: [RowKind; 9] = [
        RowKind::Row,
        RowKind::Static,
        RowKind::Deletion,
        RowKind::PartitionDeletion,
        RowKind::Partition,
        RowKind::RangeStart,
        RowKind::RangeStartExclusive,
        RowKind::RangeEnd,
        RowKind::RangeEndExclusive,
    ];

    /// The text in the column `kind`.
    pub(super) fn name(self) -> &'static str {
        match self {
            RowKind::Row => "row",
            RowKind::Static => "static",
            RowKind::Deletion => "deletion",
            RowKind::PartitionDeletion => "partition_deletion",
            RowKind::Partition => "partition",
            RowKind::RangeStart => "range_start",
            RowKind::RangeStartExclusive => "range_start_exclusive",
            RowKind::RangeEnd => "range_end",
            RowKind::RangeEndExclusive => "range_end_exclusive",
        }
    }

    /// What a bound is; of a boundary, where one range ends and another begins, both.
    pub(super) fn of_bound(kind: EntryKind) -> (RowKind, Option<RowKind>) {
        match kind {
            EntryKind::Row => (RowKind::Row, None),
            EntryKind::Static => (RowKind::Static, None),
            EntryKind::ExclusiveEnd => (RowKind::RangeEndExclusive, None),
            EntryKind::InclusiveEnd => (RowKind::RangeEnd, None),
            EntryKind::InclusiveStart => (RowKind::RangeStart, None),
            EntryKind::ExclusiveStart => (RowKind::RangeStartExclusive, None),
            EntryKind::ExclusiveEndInclusiveStart => (RowKind::RangeEndExclusive, Some(RowKind::RangeStart)),
            EntryKind::InclusiveEndExclusiveStart => (RowKind::RangeEnd, Some(RowKind::RangeStartExclusive)),
        }
    }
}

/// The rows of a batch.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) count: usize,
    /// The row of each entry; of a boundary the first of its two; [`NO_ROW`]. Empty if each is of the entry's own number.
    of_entry: Vec<u32>,
    /// What the rows are; empty if all are rows, or static.
    pub(super) kinds: Vec<RowKind>,
    /// The end of each partition's rows.
    pub(super) partition_ends: Vec<u32>,
    /// Rows with a deletion.
    pub(super) deletions: Vec<(u32, Deletion)>,
}

impl Rows {
    /// As many rows, each of the entry of its own number.
    pub(super) fn each(count: usize) -> Rows {
        Rows { count, ..Rows::default() }
    }

    /// The rows of the `full` mapping: of all entries but the first, if that was mapped already.
    ///
    /// `is_bare` says whether the partition that a batch goes on with has no row yet, and afterwards the same of the last one.
    pub(super) fn full(batch: &MutationBatch, without_first: bool, is_bare: &mut bool) -> Rows {
        let mut rows = Rows::default();
        let partitions = &batch.partitions;
        let (kinds, is_row) = (&batch.entries.kinds, |kind: &EntryKind| kind.is_row());
        let is_plain = partitions.deletions.is_empty()
            && batch.entries.deletions.is_empty()
            && batch.entries.starts.is_empty()
            && !without_first
            && kinds.iter().all(is_row)
            && (0..partitions.ends.len()).all(|partition| !batch.entries_of(partition).is_empty());
        if is_plain {
            rows.count = kinds.len();
            rows.partition_ends.extend_from_slice(&partitions.ends);
            *is_bare = false;
            return rows;
        }
        rows.of_entry.resize(kinds.len(), NO_ROW);
        let mut partition_deletions =
            partitions.deletions.at.iter().zip(&partitions.deletions.values).peekable();
        for partition in 0..partitions.ends.len() {
            let is_new = partition > 0 || batch.continues == Continues::Nothing;
            let is_open = batch.is_open && partition + 1 == partitions.ends.len();
            let entries = batch.entries_of(partition);
            let deletion = partition_deletions.next_if(|(at, _)| usize_of_u32(**at) == partition);
            *is_bare = (is_new || *is_bare) && entries.is_empty() && deletion.is_none();
            if let Some((_, deletion)) = deletion {
                if is_new {
                    rows.add(RowKind::PartitionDeletion, Some(*deletion));
                }
            } else if *is_bare && !is_open {
                rows.add(RowKind::Partition, None);
            }
            rows.entries(batch, entries, without_first);
            rows.partition_ends.push(number_of(rows.count));
        }
        rows
    }

    fn entries(&mut self, batch: &MutationBatch, entries: Range<usize>, without_first: bool) {
        let first = number_of(entries.start);
        let (deletions, starts) = (&batch.entries.deletions, &batch.entries.starts);
        let mut deleted = deletions.at.partition_point(|at| *at < first);
        let mut started = starts.at.partition_point(|at| *at < first);
        for entry in entries {
            let number = number_of(entry);
            let mut deletion = None;
            if deletions.at.get(deleted) == Some(&number) {
                deletion = deletions.values.get(deleted).copied();
                deleted += 1;
            }
            let mut start = None;
            if starts.at.get(started) == Some(&number) {
                start = starts.values.get(started).copied();
                started += 1;
            }
            if entry == 0 && without_first {
                continue;
            }
            self.of_entry[entry] = number_of(self.count);
            let (kind, second) = RowKind::of_bound(batch.entries.kinds[entry]);
            self.add(kind, deletion);
            if let Some(second) = second {
                self.add(second, start);
            }
        }
    }

    /// The rows of the `logical` mapping: of rows alone, and of those partitions of nothing but a static row.
    ///
    /// `has_row` says whether the partition that the batch continues had a row before.
    pub(super) fn logical(
        batch: &MutationBatch,
        without_first: bool,
        has_static: &mut bool,
        has_row: &mut bool,
    ) -> Rows {
        let mut rows = Rows::default();
        let kinds = &batch.entries.kinds;
        let partitions = batch.partitions.ends.len();
        let goes_on_with_static = *has_static && batch.continues != Continues::Nothing;
        let is_plain = !without_first
            && !goes_on_with_static
            && kinds.iter().all(|kind| *kind == EntryKind::Row)
            && (0..partitions).all(|partition| !batch.entries_of(partition).is_empty());
        if is_plain {
            rows.count = kinds.len();
            rows.partition_ends.extend_from_slice(&batch.partitions.ends);
            (*has_static, *has_row) = (false, true);
            return rows;
        }
        rows.of_entry.resize(kinds.len(), NO_ROW);
        for partition in 0..partitions {
            if partition > 0 || batch.continues == Continues::Nothing {
                (*has_static, *has_row) = (false, false);
            }
            let is_open = batch.is_open && partition + 1 == partitions;
            for entry in batch.entries_of(partition) {
                match kinds[entry] {
                    EntryKind::Row if entry > 0 || !without_first => {
                        set(&mut rows.of_entry, entry, rows.count);
                        rows.count += 1;
                        *has_row = true;
                    }
                    EntryKind::Row => *has_row = true,
                    EntryKind::Static => *has_static = true,
                    _ => {}
                }
            }
            if *has_static && !*has_row && !is_open {
                rows.count += 1;
            }
            rows.partition_ends.push(number_of(rows.count));
        }
        rows
    }

    fn add(&mut self, kind: RowKind, deletion: Option<Deletion>) {
        let row = number_of(self.count);
        self.kinds.push(kind);
        self.deletions.extend(deletion.map(|deletion| (row, deletion)));
        self.count += 1;
    }

    /// The row of an entry, or [`NO_ROW`].
    #[inline]
    pub(super) fn of(&self, entry: u32) -> u32 {
        if self.of_entry.is_empty() {
            return entry;
        }
        self.of_entry.get(usize_of_u32(entry)).copied().unwrap_or(NO_ROW)
    }

    /// Whether every entry is one row, of its own number.
    pub(super) fn are_entries(&self) -> bool {
        self.of_entry.is_empty()
    }

    /// The partition of a row, and the end of that one's rows.
    pub(super) fn partition_of(&self, row: usize) -> (usize, usize) {
        let partition = self.partition_ends.partition_point(|end| usize_of_u32(*end) <= row);
        (partition, self.partition_ends.get(partition).map_or(self.count, |end| usize_of_u32(*end)))
    }

    /// The same for a row of this partition or of one of the next: it is found by walking there.
    pub(super) fn partition_from(&self, mut partition: usize, row: usize) -> (usize, usize) {
        while let Some(end) = self.partition_ends.get(partition) {
            let end = usize_of_u32(*end);
            if end > row {
                return (partition, end);
            }
            partition += 1;
        }
        (partition, self.count)
    }

    /// The rows of a partition.
    pub(super) fn of_partition(&self, partition: usize) -> Range<usize> {
        let end = |at: usize| self.partition_ends.get(at).map_or(0, |end| usize_of_u32(*end));
        partition.checked_sub(1).map_or(0, end)..end(partition)
    }
}

fn set(of_entry: &mut [u32], entry: usize, row: usize) {
    if let Some(of) = of_entry.get_mut(entry) {
        *of = number_of(row);
    }
}

/// A fault of statistics, by which columns were left out.
pub(super) fn ruled_out(says: &'static str) -> Error {
    Error::corrupt(alloc::format!(
        "the statistics of the SSTable say that it has {says}, and it has other data"
    ))
}
