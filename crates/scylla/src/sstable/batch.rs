//! What travels: a batch of the writes that SSTables hold, column by column.
//!
//! An SSTable is a list of partitions; a partition has a deletion, perhaps a static row, and then rows and bounds of range tombstones,
//! in order. Here a static row, a row and a bound are all *entries*, numbered through the batch; an entry has cells in columns. A
//! [`MutationBatch`] is three tables:
//!
//! ```text
//! partitions   key, deletion, the end of its entries                     one a partition
//! entries      kind, clustering values, write time, deletion             one a row or bound
//! columns[c]   the entry it is of, value (path)                          one a cell
//! ```
//!
//! **What is usual costs nothing.** Writes are of rows: the cells of a row mostly have its write time and TTL, and are not deleted. So a
//! cell is *like its row* unless a [`Sparse`] list says otherwise, and lists that nothing is in are not allocated. What a reader of
//! values wants (which entry, what value) is dense, and nothing else is.
//!
//! | list | a cell or entry that is not in it |
//! |---|---|
//! | [`Cells::timestamps`] | has the write time of its row |
//! | [`Cells::expiries`] | expires as its row does, or not at all if that does not |
//! | [`Cells::tombstones`] | is not deleted |
//! | [`Cells::empties`] | has its value in [`Cells::values`]; only columns of a fixed length have such a list |
//! | [`Entries::expiries`] | does not expire (and is alive if it has a [write time](Entries::timestamps)) |
//! | [`Entries::deletions`], [`Partitions::deletions`] | is not deleted |
//! | [`Cells::deletions`] | of this complex column nothing is deleted in that row |
//!
//! A cell that does not expire in a row that does is in [`Cells::expiries`], with a TTL of 0.
//!
//! **A batch stands on its own.** It ends where it is full, at best between entries; a row of more than a batch's bytes is continued in
//! the next one. [`MutationBatch::continues`] says that the first partition, or the first entry, is the one that the batch before it
//! ended with. Its key, clustering values, times and deletions are there again, so that nobody has to remember them; its cells are not.
//!
//! **Values are as CQL's protocol has them** (big-endian bytes), except that those of one, four, eight or sixteen bytes, if the type fixes
//! that length, are numbers in arrays, which a mapping can pass on as they are: see [`Values`]. Strings lie end to end in one array.
//!
//! The same form is meant for merges of many SSTables, and for their writer. Arrays are plain vectors with one owner: a mapping takes
//! those it passes on, and gives the rest back to the reader, which fills them again
//! ([`DataReader::recycle`](super::DataReader::recycle)).

use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Budget, Release, release_all};

/// The write time of a row that has none: only some of its cells were written.
pub const NO_TIMESTAMP: i64 = i64::MIN;

/// The local deletion time of what is not deleted and does not expire.
pub const NO_DELETION_TIME: u32 = u32::MAX;

/// Writes, column by column. See the [module](self).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MutationBatch {
    /// What the first partition and entry are, seen from the batch before.
    pub continues: Continues,
    /// Whether the last partition goes on in the next batch. If a row does, the next batch says so.
    pub is_open: bool,
    /// The partitions.
    pub partitions: Partitions,
    /// The rows, and the bounds of range tombstones.
    pub entries: Entries,
    /// The cells: of the static columns, then of the others, in the order of the
    /// [header](super::statistics::SerializationHeader).
    pub columns: Vec<Cells>,
}

/// What a batch goes on with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Continues {
    /// A partition of its own.
    #[default]
    Nothing,
    /// The last batch's last partition.
    Partition,
    /// The last batch's last entry, in the same partition.
    Entry,
}

/// The partitions of a batch.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Partitions {
    /// Their keys, as they are stored: the value itself, or, if several columns are in the key, each with its length of 16 bits before it
    /// and a zero byte after it.
    pub keys: Strings,
    /// Where each begins in the data, uncompressed.
    pub offsets: Vec<u64>,
    /// The number of the first entry that is no longer in it.
    pub ends: Vec<u32>,
    /// Deletions of partitions.
    pub deletions: Sparse<Deletion>,
}

/// The rows of a batch, and the bounds of its range tombstones.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Entries {
    /// What they are.
    pub kinds: Vec<EntryKind>,
    /// Values of the clustering columns: each has one for every entry, which means nothing for static rows, beyond the end of a
    /// [bound](Entries::prefixes), and for those that the column lists as null or empty.
    pub clustering: Vec<ClusteringColumn>,
    /// Bounds that have values for only so many of the first clustering columns.
    pub prefixes: Sparse<u32>,
    /// The write times of rows, in microseconds since 1970 by convention; [`NO_TIMESTAMP`] for those without, and for bounds.
    pub timestamps: Vec<i64>,
    /// When rows expire. (Only what says that a row exists, and those of its cells that do as it does.)
    pub expiries: Sparse<Expiry>,
    /// Deletions of rows; of what is in a range that begins or ends here; at a bound where one ends and another begins, of that which ends.
    pub deletions: Sparse<Deletion>,
    /// At a bound where one range ends and another begins: the deletion of that which begins.
    pub starts: Sparse<Deletion>,
    /// Deletions of rows that no longer count once the row has a later write time. (Of views' rows; a row of ScyllaDB may have one besides
    /// a deletion that does.)
    pub shadowables: Sparse<Deletion>,
}

/// A clustering column's values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClusteringColumn {
    /// The values.
    pub values: Values,
    /// Entries whose value is null (only in tables made without CQL).
    pub nulls: Vec<u32>,
    /// Entries whose value has no bytes, if the type has a fixed length. (Others have an empty string.)
    pub empties: Vec<u32>,
}

/// What an entry is. The numbers are those of the format (`ClusteringPrefix.java`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum EntryKind {
    /// A range ends before the clustering values.
    ExclusiveEnd = 0,
    /// A range begins with the clustering values.
    InclusiveStart = 1,
    /// One range ends before the clustering values, and another begins with them.
    ExclusiveEndInclusiveStart = 2,
    /// The static row.
    Static = 3,
    /// A row.
    Row = 4,
    /// One range ends with the clustering values, and another begins after them.
    InclusiveEndExclusiveStart = 5,
    /// A range ends with the clustering values.
    InclusiveEnd = 6,
    /// A range begins after the clustering values.
    ExclusiveStart = 7,
}

impl EntryKind {
    /// The bound that a number stands for; `None` for other numbers, and those of rows.
    pub fn bound(number: u8) -> Option<EntryKind> {
        Some(match number {
            0 => EntryKind::ExclusiveEnd,
            1 => EntryKind::InclusiveStart,
            2 => EntryKind::ExclusiveEndInclusiveStart,
            5 => EntryKind::InclusiveEndExclusiveStart,
            6 => EntryKind::InclusiveEnd,
            7 => EntryKind::ExclusiveStart,
            _ => return None,
        })
    }

    /// Whether one range ends here and another begins.
    pub fn is_boundary(self) -> bool {
        matches!(self, EntryKind::ExclusiveEndInclusiveStart | EntryKind::InclusiveEndExclusiveStart)
    }

    /// Whether it is a row, static or not.
    pub fn is_row(self) -> bool {
        matches!(self, EntryKind::Static | EntryKind::Row)
    }
}

/// A deletion: of what was written at or before a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deletion {
    /// The last write time that is deleted.
    pub timestamp: i64,
    /// When the server deleted it: seconds since 1970. (Versions before `oa` store 32 bits with a sign; some files of Cassandra 3 have times
    /// after 2038 that became negative there. The bits are kept, so they are right here.)
    pub local_deletion: u32,
}

/// When something expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expiry {
    /// The TTL that it was written with, in seconds. 0: it does not expire.
    pub ttl: u32,
    /// When it expires: seconds since 1970. [`NO_DELETION_TIME`] if it does not.
    pub local_deletion: u32,
}

impl Expiry {
    /// Of a cell that does not expire, in a row that does.
    pub const NEVER: Expiry = Expiry { ttl: 0, local_deletion: NO_DELETION_TIME };
}

/// What only some cells or entries have: their numbers, ascending, and what they have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sparse<T> {
    /// The numbers of the cells or entries.
    pub at: Vec<u32>,
    /// What they have.
    pub values: Vec<T>,
}

impl<T> Default for Sparse<T> {
    fn default() -> Sparse<T> {
        Sparse { at: Vec::new(), values: Vec::new() }
    }
}

impl<T: Copy> Sparse<T> {
    /// Adds what the cell or entry with this number has, which comes after all others.
    #[inline]
    pub fn push(&mut self, at: u32, value: T) {
        self.at.push(at);
        self.values.push(value);
    }

    /// What the cell or entry with this number has. For loops over all of them, walk along the lists instead.
    pub fn get(&self, at: u32) -> Option<T> {
        self.at.binary_search(&at).ok().and_then(|found| self.values.get(found).copied())
    }

    /// True if none has it.
    pub fn is_empty(&self) -> bool {
        self.at.is_empty()
    }

    fn clear(&mut self) {
        self.at.clear();
        self.values.clear();
    }
}

/// The cells of a column.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cells {
    /// The entry that each is of, ascending. Only a column of a collection or user-defined type has several in an entry.
    pub entries: Vec<u32>,
    /// The values: one a cell, which means nothing for those that are deleted or empty. Those of a set's cells are empty.
    pub values: Values,
    /// Of a collection or user-defined type, what of it the cell is: a set's element, a map's key, a list's time UUID, the number of a field
    /// (16 bits, big-endian). Empty for other columns.
    pub paths: Strings,
    /// Write times that are not the row's.
    pub timestamps: Sparse<i64>,
    /// When cells expire, if not as the row does.
    pub expiries: Sparse<Expiry>,
    /// Cells that are deleted, and when the server did that: seconds since 1970.
    pub tombstones: Sparse<u32>,
    /// Cells whose value has no bytes, if the type has a fixed length. (Others have an empty string.)
    pub empties: Vec<u32>,
    /// By entry: what of a collection or user-defined type was deleted at once, as a new value replaces it.
    pub deletions: Sparse<Deletion>,
}

impl Cells {
    /// The number of cells.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

/// Values of one type.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Of no bytes: so many.
    None(usize),
    /// Of one byte.
    One(Vec<u8>),
    /// Of four bytes: `int`; or the bits of a `float`.
    Four(Vec<i32>),
    /// Of eight bytes: `bigint`, `timestamp`; or the bits of a `double`.
    Eight(Vec<i64>),
    /// Of sixteen bytes: `uuid`, `timeuuid`.
    Sixteen(Vec<[u8; 16]>),
    /// Of any length; or of another one that is the same for all, as vectors of numbers have (which are big-endian).
    Strings(Strings),
}

impl Default for Values {
    fn default() -> Values {
        Values::None(0)
    }
}

impl Values {
    /// An empty array for values of a type whose length is fixed, or not.
    pub fn of(fixed_bytes: Option<u32>) -> Values {
        match fixed_bytes {
            Some(0) => Values::None(0),
            Some(1) => Values::One(Vec::new()),
            Some(4) => Values::Four(Vec::new()),
            Some(8) => Values::Eight(Vec::new()),
            Some(16) => Values::Sixteen(Vec::new()),
            Some(_) | None => Values::Strings(Strings::default()),
        }
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        match self {
            Values::None(count) => *count,
            Values::One(values) => values.len(),
            Values::Four(values) => values.len(),
            Values::Eight(values) => values.len(),
            Values::Sixteen(values) => values.len(),
            Values::Strings(strings) => strings.len(),
        }
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value at `index`, as bytes of the protocol, big-endian; appended to `bytes`. Nothing beyond the end.
    pub fn append_bytes(&self, index: usize, bytes: &mut Vec<u8>) {
        match self {
            Values::None(_) => {}
            Values::One(values) => bytes.extend(values.get(index)),
            // As slices: byte by byte they take several times as long.
            Values::Four(values) => {
                if let Some(value) = values.get(index) {
                    bytes.extend_from_slice(&value.to_be_bytes());
                }
            }
            Values::Eight(values) => {
                if let Some(value) = values.get(index) {
                    bytes.extend_from_slice(&value.to_be_bytes());
                }
            }
            Values::Sixteen(values) => {
                if let Some(value) = values.get(index) {
                    bytes.extend_from_slice(value);
                }
            }
            Values::Strings(strings) => bytes.extend_from_slice(strings.get(index).unwrap_or_default()),
        }
    }

    /// Adds a value that means nothing.
    #[inline]
    pub(crate) fn push_nothing(&mut self) {
        match self {
            Values::None(count) => *count += 1,
            Values::One(values) => values.push(0),
            Values::Four(values) => values.push(0),
            Values::Eight(values) => values.push(0),
            Values::Sixteen(values) => values.push([0; 16]),
            Values::Strings(strings) => strings.push(&[]),
        }
    }

    fn clear(&mut self) {
        match self {
            Values::None(count) => *count = 0,
            Values::One(values) => values.clear(),
            Values::Four(values) => values.clear(),
            Values::Eight(values) => values.clear(),
            Values::Sixteen(values) => values.clear(),
            Values::Strings(strings) => strings.clear(),
        }
    }
}

/// Byte strings, end to end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Strings {
    /// Where each ends.
    pub ends: Vec<u32>,
    /// Their bytes.
    pub bytes: Vec<u8>,
}

impl Strings {
    /// The number of strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The string at `index`.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        self.bytes.get(self.range(index)?)
    }

    /// Where the string at `index` is.
    #[inline]
    pub fn range(&self, index: usize) -> Option<Range<usize>> {
        let end = *self.ends.get(index)?;
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        Some(usize_of_u32(start)..usize_of_u32(end))
    }

    /// Adds a string. Its caller makes sure that all of them together have less than 4 GiB.
    #[inline]
    pub(crate) fn push(&mut self, string: &[u8]) {
        self.bytes.extend_from_slice(string);
        self.close();
    }

    /// Ends a string whose bytes were added.
    #[inline]
    pub(super) fn close(&mut self) {
        self.ends.push(u32::try_from(self.bytes.len()).unwrap_or(u32::MAX));
    }

    fn clear(&mut self) {
        self.ends.clear();
        self.bytes.clear();
    }
}

/// A number of things in a batch, of which there are never more than 32 bits count: each takes a byte of data at least.
#[inline]
pub(crate) fn number_of(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl MutationBatch {
    /// The entries of a partition.
    pub fn entries_of(&self, partition: usize) -> Range<usize> {
        let ends = &self.partitions.ends;
        let start = partition.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
        usize_of_u32(start)..usize_of_u32(ends.get(partition).copied().unwrap_or(start))
    }

    /// Empties it. Memory is kept, except that of strings with more bytes than two batches have.
    pub(super) fn clear_small(&mut self, batch_bytes: usize) {
        for cells in &mut self.columns {
            if let Values::Strings(strings) = &mut cells.values
                && strings.bytes.capacity() > 2 * batch_bytes
            {
                strings.bytes = Vec::new();
            }
        }
        self.clear();
    }

    fn clear(&mut self) {
        (self.continues, self.is_open) = (Continues::Nothing, false);
        let Partitions { keys, offsets, ends, deletions } = &mut self.partitions;
        keys.clear();
        offsets.clear();
        ends.clear();
        deletions.clear();
        let Entries { kinds, clustering, prefixes, timestamps, expiries, deletions, starts, shadowables } =
            &mut self.entries;
        kinds.clear();
        prefixes.clear();
        timestamps.clear();
        expiries.clear();
        deletions.clear();
        starts.clear();
        shadowables.clear();
        for ClusteringColumn { values, nulls, empties } in clustering {
            values.clear();
            nulls.clear();
            empties.clear();
        }
        for cells in &mut self.columns {
            let Cells { entries, values, paths, timestamps, expiries, tombstones, empties, deletions } =
                cells;
            entries.clear();
            values.clear();
            paths.clear();
            timestamps.clear();
            expiries.clear();
            tombstones.clear();
            empties.clear();
            deletions.clear();
        }
    }
}

impl Release for EntryKind {}
impl Release for Deletion {}
impl Release for Expiry {}

impl<T: Release> Release for Sparse<T> {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.at, &mut self.values], budget)
    }
}

impl Release for Strings {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.ends, &mut self.bytes], budget)
    }
}

impl Release for Values {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        match self {
            Values::None(_) => true,
            Values::One(values) => values.release(budget),
            Values::Four(values) => values.release(budget),
            Values::Eight(values) => values.release(budget),
            Values::Sixteen(values) => values.release(budget),
            Values::Strings(strings) => strings.release(budget),
        }
    }
}

impl Release for ClusteringColumn {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.values, &mut self.nulls, &mut self.empties], budget)
    }
}

impl Release for Cells {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let Cells { entries, values, paths, timestamps, expiries, tombstones, empties, deletions } = self;
        let parts: &mut [&mut dyn Release] =
            &mut [entries, values, paths, timestamps, expiries, tombstones, empties, deletions];
        release_all(parts, budget)
    }
}

impl Release for MutationBatch {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let Partitions { keys, offsets, ends, deletions: partition_deletions } = &mut self.partitions;
        let Entries { kinds, clustering, prefixes, timestamps, expiries, deletions, starts, shadowables } =
            &mut self.entries;
        let parts: &mut [&mut dyn Release] = &mut [
            &mut self.columns,
            keys,
            offsets,
            ends,
            partition_deletions,
            kinds,
            clustering,
            prefixes,
            timestamps,
            expiries,
            deletions,
            starts,
            shadowables,
        ];
        release_all(parts, budget)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_lie_end_to_end() {
        let mut strings = Strings::default();
        for string in [&b"ab"[..], b"", b"c"] {
            strings.push(string);
        }
        assert_eq!(strings.bytes, b"abc");
        assert_eq!([0, 1, 2].map(|at| strings.get(at).unwrap()), [&b"ab"[..], b"", b"c"]);
        assert_eq!((strings.get(3), strings.len()), (None, 3));
    }

    #[test]
    fn values_are_bytes_again() {
        for (fixed, count) in [(None, 2), (Some(0), 2), (Some(1), 2), (Some(4), 2), (Some(16), 2)] {
            let mut values = Values::of(fixed);
            values.push_nothing();
            values.push_nothing();
            let mut bytes = Vec::new();
            values.append_bytes(1, &mut bytes);
            values.append_bytes(2, &mut bytes);
            assert_eq!(bytes.len(), usize_of_u32(fixed.unwrap_or(0)));
            assert_eq!(values.len(), count);
        }
        let mut bytes = Vec::new();
        Values::Four(alloc::vec![1, -2]).append_bytes(1, &mut bytes);
        assert_eq!(bytes, [0xff, 0xff, 0xff, 0xfe]);
    }

    #[test]
    fn a_sparse_list_is_found_by_number() {
        let mut list = Sparse::default();
        list.push(3, 'a');
        list.push(7, 'b');
        assert_eq!([2, 3, 7, 8].map(|at| list.get(at)), [None, Some('a'), Some('b'), None]);
    }

    #[test]
    fn numbers_of_bounds_are_those_of_the_format() {
        for number in 0..=8 {
            let bound = EntryKind::bound(number);
            assert_eq!(bound.map(|kind| kind as u8), Some(number).filter(|it| !matches!(it, 3 | 4 | 8)));
        }
    }
}
