//! An input of a merge: its batch, and how far it was used.

use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::{Error, Result};

use super::rules::{Life, Marker};
use crate::sstable::batch::{
    Cells, Continues, Deletion, EntryKind, MutationBatch, Strings, Values, number_of,
};

/// A stream of batches, of which one is used, and the next one may be there already.
#[derive(Debug)]
pub(super) struct Input {
    pub(super) batch: MutationBatch,
    next: Option<MutationBatch>,
    /// No more batches will come.
    pub(super) is_finished: bool,
    /// The last batch that came ends inside of a partition.
    is_open: bool,
    /// The partition of the batch that is used, the entry that is next, and the end of the partition's entries here.
    pub(super) partition: usize,
    pub(super) entry: usize,
    pub(super) end: usize,
    pub(super) token: i64,
    /// By column.
    cursors: Vec<Cursor>,
    /// The deletion of the range that is open.
    pub(super) open: Option<Deletion>,
    /// What the cells of the current row are like.
    marker: Marker,
    /// If the current row goes on in the next batch: the last column that has any of it in this one, once that is known.
    last_column: Option<Option<usize>>,
    /// What of the batch can be copied; known once it was looked at.
    traits: Option<Traits>,
    /// Bytes that batches hold.
    pub(super) held: u64,
}

/// How far a column was used: places in its lists.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cursor {
    pub(super) cell: u32,
    timestamps: u32,
    expiries: u32,
    tombstones: u32,
    empties: u32,
}

/// What of a batch can be copied as it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Traits {
    /// Rows, if only what is alive is wanted: nothing in them is deleted or expires, and each has a write time.
    pub(super) has_plain_rows: bool,
    /// Partitions, too: those that begin and end here have rows, and there are no static ones.
    pub(super) has_plain_partitions: bool,
    /// A column has so many bytes that they are not copied in one go.
    pub(super) is_large: bool,
}

/// Bytes of a column that are copied in one go.
const COLUMN_BYTES_MAX: usize = 512 << 10;

/// Whether there is something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Poll {
    Some,
    /// Here it ends.
    End,
    /// The next batch will say.
    Need,
}

/// A cell, but for its value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cell {
    pub(super) number: usize,
    pub(super) timestamp: i64,
    pub(super) life: Life,
    pub(super) is_empty: bool,
}

impl Input {
    pub(super) fn new(columns: usize) -> Input {
        Input {
            batch: MutationBatch::default(),
            next: None,
            is_finished: false,
            is_open: false,
            partition: 0,
            entry: 0,
            end: 0,
            token: i64::MIN,
            cursors: alloc::vec![Cursor::default(); columns],
            open: None,
            marker: Marker::NONE,
            last_column: None,
            traits: None,
            held: 0,
        }
    }

    pub(super) fn has_room(&self) -> bool {
        self.next.is_none() && !self.is_finished
    }

    /// Takes a batch, for which there is room.
    pub(super) fn feed(&mut self, batch: MutationBatch) -> Result<()> {
        if batch.continues != Continues::Nothing && !self.is_open {
            return Err(Error::misuse("a batch that goes on with a partition that has ended"));
        }
        if batch.continues != Continues::Nothing && batch.partitions.ends.is_empty()
            || batch.continues == Continues::Entry && batch.partitions.ends.first() == Some(&0)
        {
            return Err(Error::misuse("a batch that lacks what it goes on with"));
        }
        self.is_open = batch.is_open;
        self.held += held(&batch);
        self.next = Some(batch);
        Ok(())
    }

    /// Whether the next batch goes on with this one's last partition; `None` if it has not come.
    pub(super) fn next_continues(&self) -> Option<Continues> {
        match &self.next {
            Some(next) => Some(next.continues),
            None if self.is_finished => Some(Continues::Nothing),
            None => None,
        }
    }

    /// Goes on with the next batch. Returns the one that was used.
    fn shift(&mut self) -> MutationBatch {
        let used = core::mem::replace(&mut self.batch, self.next.take().unwrap_or_default());
        self.held = self.held.saturating_sub(held(&used));
        self.cursors.fill(Cursor::default());
        (self.partition, self.entry) = (0, 0);
        self.end = self.batch.entries_of(0).end;
        (self.last_column, self.traits) = (None, None);
        used
    }

    /// The whole batch, of which nothing was used.
    pub(super) fn take(&mut self) -> MutationBatch {
        self.held = self.held.saturating_sub(held(&self.batch));
        (self.partition, self.entry, self.end) = (0, 0, 0);
        core::mem::take(&mut self.batch)
    }

    /// Finds the next partition.
    pub(super) fn poll_partition(&mut self, spent: &mut Vec<MutationBatch>) -> Result<Poll> {
        loop {
            if self.partition < self.batch.partitions.ends.len() {
                let entries = self.batch.entries_of(self.partition);
                (self.entry, self.end) = (entries.start, entries.end);
                return Ok(Poll::Some);
            }
            match self.next_continues() {
                None => return Ok(Poll::Need),
                Some(_) if self.next.is_none() => return Ok(Poll::End),
                Some(Continues::Nothing) => spent.push(self.shift()),
                Some(_) => return Err(Error::misuse("a batch that goes on with a partition that has ended")),
            }
        }
    }

    /// Goes on with the next batch, if that goes on with the last partition of this one, which was used.
    pub(super) fn poll_continuation(&mut self, spent: &mut Vec<MutationBatch>) -> Poll {
        match self.next_continues() {
            None => Poll::Need,
            Some(Continues::Nothing) => Poll::End,
            Some(_) => {
                spent.push(self.shift());
                Poll::Some
            }
        }
    }

    /// Whether this is the batch's last partition, and it may go on in the next one.
    pub(super) fn is_open_partition(&self) -> bool {
        self.batch.is_open && self.partition + 1 == self.batch.partitions.ends.len()
    }

    /// Finds the partition's next entry. If that is the batch's last one, the next batch, which may go on with it, is there, too.
    pub(super) fn poll_entry(&mut self, spent: &mut Vec<MutationBatch>) -> Poll {
        loop {
            let is_open = self.is_open_partition();
            if self.entry < self.end {
                let is_known = !is_open || self.entry + 1 < self.end || self.next_continues().is_some();
                return if is_known { Poll::Some } else { Poll::Need };
            }
            if !is_open {
                return Poll::End;
            }
            match self.next_continues() {
                None => return Poll::Need,
                Some(Continues::Nothing) => return Poll::End,
                Some(_) => spent.push(self.shift()),
            }
        }
    }

    /// Whether the entry is a row that goes on in the next batch. `None`: the next batch, which has not come, will say.
    pub(super) fn row_continues(&self) -> Option<bool> {
        if !self.is_open_partition() || self.entry + 1 < self.end {
            return Some(false);
        }
        self.next_continues().map(|continues| continues == Continues::Entry)
    }

    pub(super) fn key(&self) -> &[u8] {
        self.batch.partitions.keys.get(self.partition).unwrap_or_default()
    }

    pub(super) fn partition_deletion(&self) -> Option<Deletion> {
        self.batch.partitions.deletions.get(number_of(self.partition))
    }

    pub(super) fn kind(&self) -> EntryKind {
        self.batch.entries.kinds.get(self.entry).copied().unwrap_or(EntryKind::Row)
    }

    /// What says that the current row exists; notes it for its cells.
    pub(super) fn begin_row(&mut self) -> Marker {
        let (entries, at) = (&self.batch.entries, number_of(self.entry));
        let timestamp = entries.timestamps.get(self.entry).copied();
        self.marker = Marker {
            timestamp: timestamp.unwrap_or(Marker::NONE.timestamp),
            expiry: if entries.expiries.is_empty() { None } else { entries.expiries.get(at) },
        };
        self.marker
    }

    /// Brings a column of the current row to hand: goes on with the next batch if the row does, and nothing of the column or a later one
    /// (or, `after` a column's beginning, of a later one) is left in this one.
    ///
    /// `Need`: the next batch, which has not come, will say.
    pub(super) fn settle(&mut self, column: usize, after: bool, spent: &mut Vec<MutationBatch>) -> Poll {
        loop {
            if self.has_cell(column) {
                return Poll::Some;
            }
            match self.row_continues() {
                Some(false) => return Poll::End,
                None => return Poll::Need,
                Some(true) => {}
            }
            let last = match self.last_column {
                Some(last) => last,
                None => *self.last_column.insert(self.find_last_column()),
            };
            if last.is_some_and(|last| last > column || last == column && !after) {
                return Poll::End;
            }
            spent.push(self.shift());
        }
    }

    /// Finds the row's end, after all of its cells.
    pub(super) fn end_row(&mut self, spent: &mut Vec<MutationBatch>) -> Poll {
        loop {
            match self.row_continues() {
                Some(false) => return Poll::End,
                Some(true) => spent.push(self.shift()),
                None => return Poll::Need,
            }
        }
    }

    /// The last column that has anything of the batch's last entry.
    fn find_last_column(&self) -> Option<usize> {
        let entry = number_of(self.entry);
        let has =
            |cells: &Cells| cells.entries.last() == Some(&entry) || cells.deletions.at.last() == Some(&entry);
        self.batch.columns.iter().rposition(has)
    }

    /// Whether the current row has a cell of the column that was not used.
    #[inline]
    pub(super) fn has_cell(&mut self, column: usize) -> bool {
        let (cells, cursor) = (&self.batch.columns[column], &mut self.cursors[column]);
        seek(&cells.entries, &mut cursor.cell, number_of(self.entry))
    }

    /// The cell at hand.
    #[inline]
    pub(super) fn cell(&mut self, column: usize) -> Cell {
        let (cells, cursor) = (&self.batch.columns[column], &mut self.cursors[column]);
        let number = cursor.cell;
        let timestamp = match listed(&cells.timestamps.at, &mut cursor.timestamps, number) {
            Some(at) => cells.timestamps.values.get(at).copied().unwrap_or(self.marker.timestamp),
            None => self.marker.timestamp,
        };
        let like_row = self.marker.expiry.map_or(Life::Live, Life::Expiring);
        let mut life = match listed(&cells.expiries.at, &mut cursor.expiries, number) {
            Some(at) => match cells.expiries.values.get(at) {
                Some(expiry) if expiry.ttl > 0 => Life::Expiring(*expiry),
                _ => Life::Live,
            },
            None => like_row,
        };
        if let Some(at) = listed(&cells.tombstones.at, &mut cursor.tombstones, number) {
            life = Life::Dead(cells.tombstones.values.get(at).copied().unwrap_or_default());
        }
        let is_empty = listed(&cells.empties, &mut cursor.empties, number).is_some();
        Cell { number: usize_of_u32(number), timestamp, life, is_empty }
    }

    /// The path of the cell at hand.
    pub(super) fn path(&self, column: usize) -> &[u8] {
        let cell = usize_of_u32(self.cursors[column].cell);
        self.batch.columns[column].paths.get(cell).unwrap_or_default()
    }

    /// Moves past the cell at hand.
    pub(super) fn use_cell(&mut self, column: usize) {
        self.cursors[column].cell += 1;
    }

    /// The column's cells of these entries that were not used, at most so many. Moves past them, and says whether they are all.
    pub(super) fn cells_of(
        &mut self,
        column: usize,
        entries: &Range<usize>,
        most: usize,
    ) -> (Range<usize>, bool) {
        let (cells, cursor) = (&self.batch.columns[column], &mut self.cursors[column]);
        seek(&cells.entries, &mut cursor.cell, number_of(entries.start));
        let start = usize_of_u32(cursor.cell);
        let rest = cells.entries.get(start..).unwrap_or_default();
        let end = match cells.entries.last() {
            // All of it, mostly.
            Some(last) if *last < number_of(entries.end) => cells.entries.len(),
            _ => start + rest.partition_point(|entry| *entry < number_of(entries.end)),
        };
        let range = start..end.min(start + most);
        cursor.cell = number_of(range.end);
        (range.clone(), range.end == end)
    }

    /// What of a complex column was deleted at once in the current row.
    pub(super) fn complex_deletion(&self, column: usize) -> Option<Deletion> {
        let deletions = &self.batch.columns[column].deletions;
        if deletions.is_empty() { None } else { deletions.get(number_of(self.entry)) }
    }

    /// What can be copied of the batch. Says whether it had to look.
    pub(super) fn traits(&mut self) -> (Traits, bool) {
        let is_new = self.traits.is_none();
        let batch = &self.batch;
        let traits = *self.traits.get_or_insert_with(|| {
            let (entries, partitions) = (&batch.entries, &batch.partitions);
            let is_plain = |cells: &Cells| {
                cells.expiries.is_empty() && cells.tombstones.is_empty() && cells.deletions.is_empty()
            };
            let has_plain_rows = (partitions.deletions.is_empty() && entries.expiries.is_empty())
                && (entries.deletions.is_empty() && entries.shadowables.is_empty())
                && batch.columns.iter().all(is_plain)
                && (entries.timestamps.iter().zip(&entries.kinds))
                    .all(|(time, kind)| *time != Marker::NONE.timestamp || *kind != EntryKind::Row);
            let are_rows = entries.kinds.iter().all(|kind| *kind == EntryKind::Row);
            // A partition may have ended with the batch before, and one may have its first row in the next.
            let mut last = 0;
            let whole = partitions.ends.len().saturating_sub(usize::from(batch.is_open));
            let mut ends = partitions.ends.iter().take(whole);
            if batch.continues != Continues::Nothing {
                last = ends.next().copied().unwrap_or(0);
            }
            let has_rows = |end: &u32| core::mem::replace(&mut last, *end) < *end;
            let is_large = |cells: &Cells| match &cells.values {
                Values::Strings(strings) => strings.bytes.len() > COLUMN_BYTES_MAX,
                _ => false,
            };
            Traits {
                has_plain_rows,
                has_plain_partitions: has_plain_rows && are_rows && ends.all(has_rows),
                is_large: batch.columns.iter().any(is_large),
            }
        });
        (traits, is_new)
    }

    /// What the machine holds, to be released.
    pub(super) fn parts(&mut self) -> (&mut MutationBatch, &mut Option<MutationBatch>) {
        (&mut self.batch, &mut self.next)
    }
}

/// Moves to the first number of an ascending list that is at least `target`; says whether it is that.
#[inline]
fn seek(list: &[u32], cursor: &mut u32, target: u32) -> bool {
    let mut at = usize_of_u32(*cursor);
    let is_before = |at: usize| list.get(at).is_some_and(|number| *number < target);
    if is_before(at) {
        at += 1;
        if is_before(at) {
            at += list.get(at..).unwrap_or_default().partition_point(|number| *number < target);
        }
        *cursor = number_of(at);
    }
    list.get(at) == Some(&target)
}

/// Where an ascending list has a number, if it does.
#[inline]
fn listed(list: &[u32], cursor: &mut u32, target: u32) -> Option<usize> {
    if list.is_empty() {
        return None;
    }
    seek(list, cursor, target).then(|| usize_of_u32(*cursor))
}

/// Bytes that a batch holds, but for its sparse lists.
fn held(batch: &MutationBatch) -> u64 {
    let strings = |strings: &Strings| strings.bytes.capacity() + 4 * strings.ends.capacity();
    let values = |values: &Values| match values {
        Values::None(_) => 0,
        Values::One(values) => values.capacity(),
        Values::Four(values) => 4 * values.capacity(),
        Values::Eight(values) => 8 * values.capacity(),
        Values::Sixteen(values) => 16 * values.capacity(),
        Values::Strings(of) => strings(of),
    };
    let mut bytes = strings(&batch.partitions.keys) + 9 * batch.entries.kinds.capacity();
    bytes += batch.entries.clustering.iter().map(|column| values(&column.values)).sum::<usize>();
    for cells in &batch.columns {
        bytes += 4 * cells.entries.capacity() + values(&cells.values) + strings(&cells.paths);
    }
    u64_of(bytes)
}
