//! The batch that a merge fills.

use alloc::collections::VecDeque;
use core::ops::Range;

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Budget, Error, Price, Release, Result, release_all};

use super::plan::Plan;
use super::rules::{Life, Marker};
use crate::sstable::batch::{
    Cells, Continues, Deletion, Entries, EntryKind, Expiry, MutationBatch, NO_TIMESTAMP, Sparse, Strings,
    Values, number_of,
};
use crate::sstable::data::fill::{continue_entry, continue_partition, push_empty, push_value};

/// Entries, or partitions, after which a batch is full.
pub(super) const BATCH_ENTRIES: usize = 8192;
/// Bytes after which a batch is full, and of a row after which it is continued in the next batch.
const BATCH_BYTES: usize = 512 << 10;
/// Bytes of a value that are copied in one go.
const PART_BYTES: usize = 64 << 10;

/// The price of an entry, and of a partition; and of their bytes.
pub(super) const ENTRY_PRICE: Price = Price { kib: 150, kilovalue: 60 << 10 };
/// The price of a cell, and of the bytes of its value and path.
pub(super) const CELL_PRICE: Price = Price { kib: 150, kilovalue: 55 << 10 };
/// The price of a part of a long value, which is copied into new memory.
const PART_PRICE: Price = Price { kib: 350, kilovalue: 100 << 10 };
/// The price of a number or string that is copied with others, in arrays.
pub(super) const COPY_PRICE: Price = Price { kib: 150, kilovalue: 3 << 10 };

/// Batches that are filled, and handed out.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) batch: MutationBatch,
    pub(super) ready: VecDeque<MutationBatch>,
    pub(super) spare: Option<MutationBatch>,
    /// The last partition may go on; and its last row.
    is_open: bool,
    is_row_open: bool,
    /// Bytes of the batch, and of its last row.
    bytes: usize,
    row_bytes: usize,
    /// What the cells of the last row are like.
    marker: Marker,
}

/// A value of which only parts are copied at a time.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) input: usize,
    pub(super) number: usize,
    /// Bytes that are copied.
    at: usize,
}

impl Output {
    pub(super) fn new(plan: &Plan) -> Output {
        Output {
            batch: plan.batch(),
            ready: VecDeque::new(),
            spare: None,
            is_open: false,
            is_row_open: false,
            bytes: 0,
            row_bytes: 0,
            marker: Marker::NONE,
        }
    }

    /// Nothing is in the batch but what it continues.
    pub(super) fn is_blank(&self) -> bool {
        let (partitions, entries) = match self.batch.continues {
            Continues::Nothing => (0, 0),
            Continues::Partition => (1, 0),
            Continues::Entry => (1, 1),
        };
        self.batch.partitions.ends.len() == partitions
            && self.batch.entries.kinds.len() == entries
            && self.bytes == 0
    }

    /// Hands out the batch if it has room for fewer entries than so many.
    pub(super) fn make_room(&mut self, entries: usize, partitions: usize, plan: &Plan) {
        let (have, begun) = (self.batch.entries.kinds.len(), self.batch.partitions.ends.len());
        if !self.is_blank()
            && (have + entries > BATCH_ENTRIES
                || begun + partitions > BATCH_ENTRIES
                || self.bytes >= BATCH_BYTES)
        {
            self.hand_out(plan);
        }
    }

    /// Hands out the batch, and begins another one.
    pub(super) fn hand_out(&mut self, plan: &Plan) {
        let mut next = self.spare.take().unwrap_or_else(|| plan.batch());
        self.batch.is_open = self.is_open;
        if self.is_open {
            next.continues = Continues::Partition;
            continue_partition(&self.batch, &mut next);
            if self.is_row_open {
                next.continues = Continues::Entry;
                continue_entry(&self.batch, &mut next);
            }
        }
        (self.bytes, self.row_bytes) = (0, 0);
        self.ready.push_back(core::mem::replace(&mut self.batch, next));
    }

    /// Hands out the last batch.
    pub(super) fn finish(&mut self, plan: &Plan) {
        if !self.is_blank() {
            self.hand_out(plan);
        }
    }

    /// Hands out a batch of an input as it is.
    pub(super) fn pass(&mut self, batch: MutationBatch, plan: &Plan) {
        self.finish(plan);
        self.batch.clear_small(BATCH_BYTES);
        self.is_open = batch.is_open;
        if batch.is_open {
            self.batch.continues = Continues::Partition;
            continue_partition(&batch, &mut self.batch);
        }
        self.ready.push_back(batch);
    }

    pub(super) fn begin_partition(&mut self, key: &[u8], deletion: Option<Deletion>) {
        let partitions = &mut self.batch.partitions;
        let number = number_of(partitions.ends.len());
        partitions.keys.push(key);
        partitions.offsets.push(0);
        partitions.ends.push(number_of(self.batch.entries.kinds.len()));
        if let Some(deletion) = deletion {
            partitions.deletions.push(number, deletion);
        }
        self.bytes += key.len() + 16;
        self.is_open = true;
    }

    pub(super) fn end_partition(&mut self) {
        self.is_open = false;
    }

    /// Adds an entry with the clustering values of another one.
    pub(super) fn push_entry(&mut self, kind: EntryKind, (from, at): (&Entries, usize), bytes: usize) -> u32 {
        let entries = &mut self.batch.entries;
        let entry = number_of(entries.kinds.len());
        entries.kinds.push(kind);
        entries.timestamps.push(NO_TIMESTAMP);
        for (to, from) in entries.clustering.iter_mut().zip(&from.clustering) {
            copy_value((&from.values, at), &mut to.values);
            let has = |list: &[u32]| !list.is_empty() && list.binary_search(&number_of(at)).is_ok();
            to.nulls.extend(has(&from.nulls).then_some(entry));
            to.empties.extend(has(&from.empties).then_some(entry));
        }
        if let Some(end) = self.batch.partitions.ends.last_mut() {
            *end = entry + 1;
        }
        self.bytes += bytes + 16 + 8 * from.clustering.len();
        entry
    }

    /// Adds a row, whose cells come next.
    pub(super) fn begin_row(
        &mut self,
        kind: EntryKind,
        marker: Marker,
        from: (&Entries, usize),
        bytes: usize,
    ) {
        self.push_entry(kind, from, bytes);
        if let Some(time) = self.batch.entries.timestamps.last_mut() {
            *time = marker.timestamp;
        }
        if let Some(expiry) = marker.expiry {
            let entry = self.last_entry();
            self.batch.entries.expiries.push(entry, expiry);
        }
        self.marker = marker;
        self.row_bytes = 0;
        self.is_row_open = true;
    }

    pub(super) fn end_row(&mut self) {
        self.is_row_open = false;
    }

    pub(super) fn last_entry(&self) -> u32 {
        number_of(self.batch.entries.kinds.len()).saturating_sub(1)
    }

    /// Adds a cell of the row, but for its value, if the batch has room for it. Else the row goes on in another one.
    pub(super) fn push_cell(
        &mut self,
        column: usize,
        path: Option<&[u8]>,
        timestamp: i64,
        life: Life,
        plan: &Plan,
    ) {
        if self.row_bytes >= BATCH_BYTES {
            self.hand_out(plan);
        }
        let (entry, marker) = (self.last_entry(), self.marker);
        let cells = &mut self.batch.columns[column];
        let number = number_of(cells.entries.len());
        cells.entries.push(entry);
        if let Some(path) = path {
            cells.paths.push(path);
        }
        if timestamp != marker.timestamp {
            cells.timestamps.push(number, timestamp);
        }
        match life {
            Life::Dead(local) => cells.tombstones.push(number, local),
            Life::Expiring(expiry) if marker.expiry != Some(expiry) => cells.expiries.push(number, expiry),
            Life::Live if marker.expiry.is_some() => cells.expiries.push(number, Expiry::NEVER),
            Life::Expiring(_) | Life::Live => {}
        }
        self.note_bytes(path.map_or(0, <[u8]>::len) + 8);
    }

    fn note_bytes(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.row_bytes += bytes;
    }

    /// Adds the value of the cell that was added last. Returns the part that is left of a long one.
    pub(super) fn push_value(
        &mut self,
        column: usize,
        (from, number): (&Cells, usize),
        is_empty: bool,
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        let cells = &mut self.batch.columns[column];
        if is_empty {
            push_empty(cells, number_of(cells.entries.len()).saturating_sub(1), true);
            return Ok(true);
        }
        let mut bytes = 16;
        if let (Values::Strings(from), Values::Strings(to)) = (&from.values, &mut cells.values) {
            bytes = from.range(number).map_or(0, |range| range.len());
            if bytes > PART_BYTES {
                budget.charge(COPY_PRICE, to.bytes.len(), 1);
                to.bytes.try_reserve_exact(bytes).map_err(|_| Error::out_of_memory(bytes))?;
                return Ok(false);
            }
        }
        copy_value((&from.values, number), &mut cells.values);
        self.note_bytes(bytes);
        budget.charge(CELL_PRICE, bytes, 0);
        Ok(true)
    }

    /// Adds a counter's value.
    pub(super) fn push_bytes(&mut self, column: usize, bytes: &[u8]) {
        push_value(&mut self.batch.columns[column].values, bytes);
        self.note_bytes(bytes.len());
    }

    /// Adds a part of a long value. True after the last one.
    pub(super) fn push_part(
        &mut self,
        column: usize,
        part: &mut Part,
        from: &Cells,
        budget: &mut Budget<'_>,
    ) -> bool {
        let (Values::Strings(from), Values::Strings(to)) =
            (&from.values, &mut self.batch.columns[column].values)
        else {
            return true;
        };
        let value = from.get(part.number).unwrap_or_default();
        let end = value.len().min(part.at + PART_BYTES);
        let slice = value.get(part.at..end).unwrap_or_default();
        to.bytes.extend_from_slice(slice);
        budget.charge(PART_PRICE, slice.len(), 1);
        part.at = end;
        let is_done = end == value.len();
        if is_done {
            to.close();
        }
        self.note_bytes(slice.len());
        is_done
    }

    /// Adds partitions of an input, whose entries come next: the one with the number `from_entry` will have the number `base`. The first
    /// partition may be the one that is open.
    pub(super) fn copy_partitions(
        &mut self,
        from: &MutationBatch,
        range: Range<usize>,
        (from_entry, base): (usize, usize),
    ) {
        for partition in range {
            if !(partition == 0 && from.continues != Continues::Nothing) {
                let deletion = from.partitions.deletions.get(number_of(partition));
                self.begin_partition(from.partitions.keys.get(partition).unwrap_or_default(), deletion);
            }
            let end = from.entries_of(partition).end.saturating_sub(from_entry) + base;
            if let Some(last) = self.batch.partitions.ends.last_mut() {
                *last = number_of(end);
            }
        }
    }

    /// Adds entries of an input, but not their cells.
    pub(super) fn copy_entries(&mut self, from: &Entries, range: &Range<usize>, budget: &mut Budget<'_>) {
        let to = &mut self.batch.entries;
        let shift = Shift { from: range.clone(), to: to.kinds.len() };
        let slice = |range: &Range<usize>| range.start.min(from.kinds.len())..range.end.min(from.kinds.len());
        let range = slice(range);
        to.kinds.extend_from_slice(&from.kinds[range.clone()]);
        to.timestamps.extend_from_slice(&from.timestamps[range.clone()]);
        let mut bytes = 16 * range.len();
        for (from, to) in from.clustering.iter().zip(&mut to.clustering) {
            bytes += copy_values(&from.values, &range, &mut to.values) + 8 * range.len();
            shift.list(&from.nulls, &mut to.nulls);
            shift.list(&from.empties, &mut to.empties);
        }
        shift.sparse(&from.prefixes, &mut to.prefixes);
        shift.sparse(&from.expiries, &mut to.expiries);
        shift.sparse(&from.deletions, &mut to.deletions);
        shift.sparse(&from.starts, &mut to.starts);
        shift.sparse(&from.shadowables, &mut to.shadowables);
        budget.charge(COPY_PRICE, bytes, range.len() * (1 + from.clustering.len()));
        self.bytes += bytes;
    }

    /// Says where the last partition ends: with the last entry.
    pub(super) fn close_entries(&mut self) {
        if let Some(end) = self.batch.partitions.ends.last_mut() {
            *end = number_of(self.batch.entries.kinds.len());
        }
    }

    /// Adds cells of an input. Their entry with the number `entries.start` has the number `base` here.
    pub(super) fn copy_cells(
        &mut self,
        column: usize,
        from: &Cells,
        range: &Range<usize>,
        entries: (usize, usize),
        budget: &mut Budget<'_>,
    ) {
        let to = &mut self.batch.columns[column];
        let shift = Shift { from: range.clone(), to: to.entries.len() };
        let (entries_from, entries_to) = (number_of(entries.0), number_of(entries.1));
        let numbers = from.entries.get(range.clone()).unwrap_or_default();
        to.entries
            .extend(numbers.iter().map(|entry| entry.wrapping_sub(entries_from).wrapping_add(entries_to)));
        let mut bytes = copy_values(&from.values, range, &mut to.values) + 8 * range.len();
        if !from.paths.is_empty() {
            bytes += copy_strings(&from.paths, range, &mut to.paths);
        }
        shift.sparse(&from.timestamps, &mut to.timestamps);
        shift.sparse(&from.expiries, &mut to.expiries);
        shift.sparse(&from.tombstones, &mut to.tombstones);
        shift.list(&from.empties, &mut to.empties);
        budget.charge(COPY_PRICE, bytes, 2 * range.len() + 4);
        self.bytes += bytes;
    }

    /// Adds the deletions of a complex column of so many entries of an input.
    pub(super) fn copy_deletions(
        &mut self,
        column: usize,
        from: &Cells,
        entries: &Range<usize>,
        base: usize,
    ) {
        let shift = Shift { from: entries.clone(), to: base };
        shift.sparse(&from.deletions, &mut self.batch.columns[column].deletions);
    }
}

/// Where numbers of a list come to be.
struct Shift {
    from: Range<usize>,
    to: usize,
}

impl Shift {
    fn range(&self, list: &[u32]) -> Range<usize> {
        let place = |number: usize| list.partition_point(|at| usize_of_u32(*at) < number);
        place(self.from.start)..place(self.from.end)
    }

    fn number(&self, number: u32) -> u32 {
        number.wrapping_sub(number_of(self.from.start)).wrapping_add(number_of(self.to))
    }

    fn list(&self, from: &[u32], to: &mut alloc::vec::Vec<u32>) {
        if !from.is_empty() {
            to.extend(from[self.range(from)].iter().map(|number| self.number(*number)));
        }
    }

    fn sparse<T: Copy>(&self, from: &Sparse<T>, to: &mut Sparse<T>) {
        if !from.is_empty() {
            let range = self.range(&from.at);
            to.at.extend(from.at[range.clone()].iter().map(|number| self.number(*number)));
            to.values.extend_from_slice(from.values.get(range).unwrap_or_default());
        }
    }
}

/// Adds one value to others of the same kind.
fn copy_value((from, at): (&Values, usize), to: &mut Values) {
    match (from, to) {
        (Values::None(_), Values::None(count)) => *count += 1,
        (Values::One(from), Values::One(to)) => to.push(from.get(at).copied().unwrap_or_default()),
        (Values::Four(from), Values::Four(to)) => to.push(from.get(at).copied().unwrap_or_default()),
        (Values::Eight(from), Values::Eight(to)) => to.push(from.get(at).copied().unwrap_or_default()),
        (Values::Sixteen(from), Values::Sixteen(to)) => to.push(from.get(at).copied().unwrap_or_default()),
        (Values::Strings(from), Values::Strings(to)) => to.push(from.get(at).unwrap_or_default()),
        (_, to) => to.push_nothing(),
    }
}

/// Adds values to others of the same kind. Returns the bytes of strings, or a guess at those of numbers.
fn copy_values(from: &Values, range: &Range<usize>, to: &mut Values) -> usize {
    match (from, to) {
        (Values::None(_), Values::None(count)) => *count += range.len(),
        (Values::One(from), Values::One(to)) => to.extend_from_slice(&from[range.clone()]),
        (Values::Four(from), Values::Four(to)) => to.extend_from_slice(&from[range.clone()]),
        (Values::Eight(from), Values::Eight(to)) => to.extend_from_slice(&from[range.clone()]),
        (Values::Sixteen(from), Values::Sixteen(to)) => to.extend_from_slice(&from[range.clone()]),
        (Values::Strings(from), Values::Strings(to)) => return copy_strings(from, range, to),
        // Batches are checked when they come.
        _ => {}
    }
    8 * range.len()
}

fn copy_strings(from: &Strings, range: &Range<usize>, to: &mut Strings) -> usize {
    let start = range.start.checked_sub(1).and_then(|before| from.ends.get(before)).copied().unwrap_or(0);
    let ends = from.ends.get(range.clone()).unwrap_or_default();
    let Some(end) = ends.last() else { return 0 };
    let bytes = from.bytes.get(usize_of_u32(start)..usize_of_u32(*end)).unwrap_or_default();
    let base = number_of(to.bytes.len());
    to.bytes.extend_from_slice(bytes);
    to.ends.extend(ends.iter().map(|end| end.wrapping_sub(start).wrapping_add(base)));
    bytes.len()
}

impl Part {
    pub(super) fn new(input: usize, number: usize) -> Part {
        Part { input, number, at: 0 }
    }
}

impl Release for Output {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.batch, &mut self.ready, &mut self.spare], budget)
    }
}
