//! From the bytes of partitions to batches.
//!
//! A parser is shown the bytes that follow what it consumed, as many as there are, and reads one *element* after the other: a partition's
//! beginning, the beginning of a row, a bound, a cell. An element is read whole or not at all: if its bytes end too early, it is read again
//! once there are more. Only values of some length are taken in parts, and lists of columns.
//!
//! Sources: `UnfilteredSerializer.java`, `Cell.java`, `Columns.java`, `ClusteringPrefix.java`, `DeletionTime.java` of Cassandra 5.0;
//! `sstables-3-data-file-format.rst` and `mx/reader.cc` of ScyllaDB.

use alloc::format;
use alloc::vec::Vec;

use marquetry_base::cast::{bits_i64, u64_of, usize_of, usize_of_u32};
use marquetry_base::{Error, Limit, Limits, Result};

use super::fill::{continue_entry, continue_partition, note_growth, push_empty, push_value};
use super::layout::{BITMAP_COLUMNS_MAX, Layout};
use super::value::{Large, Next, SLICE_BYTES};
use crate::sstable::batch::{
    Continues, Deletion, EntryKind, Expiry, MutationBatch, NO_DELETION_TIME, NO_TIMESTAMP, Values, number_of,
};
use crate::sstable::elements::{Cursor, Fault};
use crate::sstable::flags::{
    END_OF_PARTITION, EXPIRES_AS_ROW, HAS_ALL_COLUMNS, HAS_COMPLEX_DELETION, HAS_DELETION,
    HAS_EXTENDED_FLAGS, HAS_ROW_TIMESTAMP, HAS_SHADOWABLE, HAS_TIMESTAMP, HAS_TTL, IS_DELETED, IS_EMPTY,
    IS_EXPIRING, IS_MARKER, IS_SHADOWABLE, IS_STATIC,
};

/// The most entries of a batch, and the most partitions.
pub(super) const BATCH_ENTRIES: usize = 8192;
/// Bytes of data after which a batch is full. So many bytes of strings are moved at most as their array grows.
pub(super) const BATCH_BYTES: u64 = 512 << 10;
/// Elements after which a budget is asked; and [`SLICE_BYTES`].
const SLICE_ELEMENTS: usize = 512;
/// The longest value that is not read in parts.
const VALUE_BYTES_WHOLE: u64 = 4 << 10;

/// A parser of partitions.
#[derive(Debug)]
pub(super) struct Parser {
    pub(super) layout: Layout,
    batch: MutationBatch,
    expects: Expects,
    row: Row,
    /// Where in the element's bytes the values of clustering columns are: null, empty, or a start and an end.
    clustering: Vec<Clustering>,
    large: Large,
    /// Where the batch begins in the data.
    batch_start: u64,
    /// The partition's end was not read, and an entry of it was.
    is_open: bool,
    has_entries: bool,
    value_bytes_max: u64,
    path_bytes_max: u64,
    /// Bytes that were moved as arrays grew.
    moved: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expects {
    /// A partition, or the end.
    Partition,
    /// A row, a bound, or the partition's end.
    Unfiltered,
    /// The numbers of columns that a row has, or lacks.
    Listed { left: u32, is_present: bool, next: u32 },
    /// The row's next cell, or its end.
    Cells,
    /// The rest of a cell's value.
    Value,
}

/// The row whose cells are read.
#[derive(Debug, Clone, Copy)]
struct Row {
    entry: u32,
    /// Where it ends in the data.
    end: u64,
    timestamp: i64,
    expiry: Option<Expiry>,
    has_complex_deletion: bool,
    is_static: bool,
    present: Present,
    /// The next column that it may have, and the next place in the list of those that it has.
    next: usize,
    /// The cells of the current complex column that are still to be read.
    cells_left: Option<u32>,
}

/// Which columns a row has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Present {
    All,
    Bits(u64),
    /// Those in `listed`.
    Listed,
}

#[derive(Debug, Clone, Copy)]
enum Clustering {
    Null,
    Empty,
    At(usize, usize),
}

/// Why a parser stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// It needs more bytes.
    Short,
    /// The batch is full.
    Full,
    /// Enough for one slice.
    Tired,
    /// Here the data end, or the part of them that is read.
    End,
}

/// What a slice of parsing did.
pub(super) struct Parsed {
    pub(super) consumed: usize,
    pub(super) elements: usize,
    /// Bytes that were moved as arrays grew.
    pub(super) moved: usize,
    pub(super) stop: Stop,
}

/// What follows an element.
enum Flow {
    Next,
    Stop(Stop),
}

impl Parser {
    /// A parser of data that begin at this place.
    pub(super) fn new(layout: Layout, start: u64, limits: &Limits) -> Parser {
        Parser {
            batch: layout.batch(),
            expects: Expects::Partition,
            row: Row {
                entry: 0,
                end: 0,
                timestamp: NO_TIMESTAMP,
                expiry: None,
                has_complex_deletion: false,
                is_static: false,
                present: Present::All,
                next: 0,
                cells_left: None,
            },
            clustering: Vec::new(),
            large: Large::default(),
            batch_start: start,
            is_open: false,
            has_entries: false,
            value_bytes_max: limits.value_bytes,
            path_bytes_max: limits.structure_bytes,
            moved: 0,
            layout,
        }
    }

    /// Reads a slice of elements from `bytes`, which begin at `base` in the data, and whose last partition ends at `end`.
    ///
    /// An error has the place in the data.
    pub(super) fn run(&mut self, bytes: &[u8], base: u64, end: u64) -> Result<Parsed> {
        let mut cursor = Cursor::new(bytes);
        let mut elements = 0;
        let stop = loop {
            let start = cursor.at();
            match self.element(&mut cursor, base, end, &mut elements) {
                Ok(Flow::Next) => {}
                Ok(Flow::Stop(stop)) => break stop,
                Err(Fault::Short) => {
                    cursor.set(start.max(cursor.kept()));
                    break Stop::Short;
                }
                Err(Fault::Bad(error)) => return Err(error.at_offset(base + u64_of(cursor.at()))),
            }
            elements += 1;
            if elements >= SLICE_ELEMENTS || cursor.at() >= SLICE_BYTES {
                break Stop::Tired;
            }
        };
        Ok(Parsed { consumed: cursor.at(), elements, moved: core::mem::take(&mut self.moved), stop })
    }

    #[inline]
    fn element(
        &mut self,
        cursor: &mut Cursor<'_>,
        base: u64,
        end: u64,
        elements: &mut usize,
    ) -> Result<Flow, Fault> {
        match self.expects {
            Expects::Cells => self.cells(cursor, base, elements),
            Expects::Unfiltered | Expects::Partition if self.is_full(base + u64_of(cursor.at())) => {
                Ok(Flow::Stop(Stop::Full))
            }
            Expects::Unfiltered => self.unfiltered(cursor, base, end),
            Expects::Partition if self.is_at_end(base + u64_of(cursor.at()), end) => {
                Ok(Flow::Stop(Stop::End))
            }
            Expects::Partition if base + u64_of(cursor.at()) > end => {
                Err(bad("a partition that goes on after the end of what is read"))
            }
            Expects::Partition => self.partition(cursor, base),
            Expects::Listed { left, is_present, next } => self.listed(cursor, left, is_present, next),
            Expects::Value => self.value(cursor),
        }
    }

    /// Whether this place in the data is their end, and no partition goes on there.
    pub(super) fn is_at_end(&self, at: u64, end: u64) -> bool {
        self.expects == Expects::Partition && at == end
    }

    fn is_full(&self, at: u64) -> bool {
        self.batch.entries.kinds.len() >= BATCH_ENTRIES
            || self.batch.partitions.ends.len() >= BATCH_ENTRIES
            || at - self.batch_start >= BATCH_BYTES
    }

    /// A partition's key and deletion.
    fn partition(&mut self, cursor: &mut Cursor<'_>, base: u64) -> Result<Flow, Fault> {
        let offset = base + u64_of(cursor.at());
        let key = cursor.short_bytes()?;
        let deletion = if self.layout.is_unsigned { deletion(cursor)? } else { legacy_deletion(cursor)? };
        let partitions = &mut self.batch.partitions;
        let number = number_of(partitions.ends.len());
        note_growth(&mut self.moved, &partitions.keys, key.len());
        partitions.keys.push(key);
        partitions.offsets.push(offset);
        partitions.ends.push(number_of(self.batch.entries.kinds.len()));
        if let Some(deletion) = deletion {
            partitions.deletions.push(number, deletion);
        }
        (self.is_open, self.has_entries, self.expects) = (true, false, Expects::Unfiltered);
        Ok(Flow::Next)
    }

    /// What a partition consists of.
    fn unfiltered(&mut self, cursor: &mut Cursor<'_>, base: u64, end: u64) -> Result<Flow, Fault> {
        let start = cursor.at();
        let flags = cursor.u8()?;
        if flags & END_OF_PARTITION != 0 {
            if flags != END_OF_PARTITION {
                return Err(bad(format!("the flags {flags:#04x} of a partition's end")));
            }
            (self.is_open, self.expects) = (false, Expects::Partition);
            return Ok(Flow::Next);
        }
        let extended = if flags & HAS_EXTENDED_FLAGS != 0 { cursor.u8()? } else { 0 };
        if flags & IS_MARKER != 0 {
            if flags & !(IS_MARKER | HAS_EXTENDED_FLAGS) != 0 || extended != 0 {
                return Err(bad(format!("the flags {flags:#04x} {extended:#04x} of a bound")));
            }
            return self.bound(cursor, base, end);
        }
        if extended & !(IS_STATIC | IS_SHADOWABLE | HAS_SHADOWABLE) != 0
            || flags & (HAS_TIMESTAMP | HAS_TTL) == HAS_TTL
        {
            return Err(bad(format!("the flags {flags:#04x} {extended:#04x} of a row")));
        }
        let is_static = extended & IS_STATIC != 0;
        if is_static && self.has_entries {
            return Err(bad("a static row after another row"));
        }
        self.clustering.clear();
        if !is_static {
            self.clustering_values(cursor, self.layout.clustering.len())?;
        }
        let bytes = cursor.vint()?;
        let row_end = after(base, cursor, bytes, end)?;
        let is_first = self.batch.entries.kinds.is_empty() && self.batch.partitions.ends.len() <= 1;
        if row_end - self.batch_start > BATCH_BYTES && !is_first {
            // It would be cut in two.
            cursor.set(start);
            return Ok(Flow::Stop(Stop::Full));
        }
        self.row_head(cursor, flags, extended, row_end)?;
        if self.expects == Expects::Unfiltered && base + u64_of(cursor.at()) != row_end {
            return Err(bad("a row with another length than it says"));
        }
        Ok(Flow::Next)
    }

    /// What a row says of itself, from the length of what is before it to its columns.
    #[inline]
    fn row_head(&mut self, cursor: &mut Cursor<'_>, flags: u8, extended: u8, end: u64) -> Result<(), Fault> {
        let is_static = extended & IS_STATIC != 0;
        // How long the row or bound before it is. Nobody reads that.
        cursor.vint()?;
        let layout = &self.layout;
        let (mut timestamp, mut expiry) = (NO_TIMESTAMP, None);
        if flags & HAS_TIMESTAMP != 0 {
            timestamp = layout.timestamp(cursor.vint()?);
            if flags & HAS_TTL != 0 {
                let ttl = layout.ttl(cursor.vint()?)?;
                expiry = Some(Expiry { ttl, local_deletion: layout.local_deletion(cursor.vint()?)? });
            }
        }
        let (mut deletion, mut shadowable) = (None, None);
        if flags & HAS_DELETION != 0 {
            deletion = layout.deletion(cursor.vint()?, cursor.vint()?)?;
            if extended & IS_SHADOWABLE != 0 {
                (deletion, shadowable) = (None, deletion);
            }
        }
        if extended & HAS_SHADOWABLE != 0 {
            shadowable = layout.deletion(cursor.vint()?, cursor.vint()?)?;
        }
        let columns = layout.columns_of(is_static).len();
        let (present, expects) = if flags & HAS_ALL_COLUMNS != 0 {
            (if columns == 0 { Present::Bits(0) } else { Present::All }, Expects::Cells)
        } else {
            presence(cursor.vint()?, columns)?
        };
        let says_nothing = present == Present::Bits(0);
        if is_static && says_nothing && timestamp == NO_TIMESTAMP && deletion.or(shadowable).is_none() {
            // Tables with static columns have a static row in every partition.
            self.expects = Expects::Unfiltered;
            return Ok(());
        }
        let kind = if is_static { EntryKind::Static } else { EntryKind::Row };
        let entry = self.push_entry(kind, timestamp, cursor);
        let entries = &mut self.batch.entries;
        if let Some(expiry) = expiry {
            entries.expiries.push(entry, expiry);
        }
        if let Some(deletion) = deletion {
            entries.deletions.push(entry, deletion);
        }
        if let Some(deletion) = shadowable {
            entries.shadowables.push(entry, deletion);
        }
        self.row = Row {
            entry,
            end,
            timestamp,
            expiry,
            has_complex_deletion: flags & HAS_COMPLEX_DELETION != 0,
            is_static,
            present,
            next: 0,
            cells_left: None,
        };
        self.expects = if says_nothing { Expects::Unfiltered } else { expects };
        if matches!(expects, Expects::Listed { .. }) {
            self.large.listed.clear();
        }
        Ok(())
    }

    /// The numbers of the columns that a row has or lacks.
    fn listed(
        &mut self,
        cursor: &mut Cursor<'_>,
        left: u32,
        is_present: bool,
        next: u32,
    ) -> Result<Flow, Fault> {
        let columns = number_of(self.layout.columns_of(self.row.is_static).len());
        let number = if left == 0 { u64::from(columns) } else { cursor.vint()? };
        let Some(number) = u32::try_from(number).ok().filter(|number| *number >= next && *number <= columns)
        else {
            return Err(bad("numbers of columns that are not ascending"));
        };
        if left > 0 && number == columns {
            return Err(bad("the number of a column beyond the last"));
        }
        match (is_present, left) {
            (true, 0) => {}
            (true, _) => self.large.listed.push(number),
            // Those before the one that it lacks.
            (false, _) => self.large.listed.extend(next..number),
        }
        self.expects = match left {
            0 => Expects::Cells,
            _ => Expects::Listed { left: left - 1, is_present, next: number + 1 },
        };
        Ok(Flow::Next)
    }

    /// A bound of one or two ranges.
    fn bound(&mut self, cursor: &mut Cursor<'_>, base: u64, end: u64) -> Result<Flow, Fault> {
        let number = cursor.u8()?;
        let Some(kind) = EntryKind::bound(number) else {
            return Err(bad(format!("a bound of kind {number}")));
        };
        let count = usize::from(cursor.u16()?);
        let columns = self.layout.clustering.len();
        if count > columns {
            return Err(bad(format!("a bound of {count} values, where clustering keys have {columns}")));
        }
        self.clustering.clear();
        self.clustering_values(cursor, count)?;
        let bytes = cursor.vint()?;
        let bound_end = after(base, cursor, bytes, end)?;
        cursor.vint()?;
        let layout = &self.layout;
        let deletion = layout.deletion(cursor.vint()?, cursor.vint()?)?;
        let start = if kind.is_boundary() { layout.deletion(cursor.vint()?, cursor.vint()?)? } else { None };
        if base + u64_of(cursor.at()) != bound_end {
            return Err(bad("a bound with another length than it says"));
        }
        if deletion.is_none() || start.is_none() == kind.is_boundary() {
            return Err(bad("a range of rows that are not deleted"));
        }
        let entry = self.push_entry(kind, NO_TIMESTAMP, cursor);
        let entries = &mut self.batch.entries;
        if count < columns {
            entries.prefixes.push(entry, number_of(count));
        }
        if let Some(deletion) = deletion {
            entries.deletions.push(entry, deletion);
        }
        if let Some(start) = start {
            entries.starts.push(entry, start);
        }
        Ok(Flow::Next)
    }

    /// Finds the values of so many clustering columns. They are kept once their entry is complete.
    #[inline]
    fn clustering_values(&mut self, cursor: &mut Cursor<'_>, count: usize) -> Result<(), Fault> {
        let mut header = 0;
        for (at, fixed) in self.layout.clustering[..count].iter().enumerate() {
            // Each group of 32 begins with two bits for each of its values.
            if at % 32 == 0 {
                header = cursor.vint()?;
            }
            let bits = header >> (at % 32 * 2) & 3;
            self.clustering.push(match bits {
                0 => {
                    let bytes = match fixed {
                        Some(bytes) => u64::from(*bytes),
                        None => cursor.vint()?,
                    };
                    Limit::StructureBytes.check(self.path_bytes_max, bytes)?;
                    let start = cursor.at();
                    cursor.long(bytes)?;
                    Clustering::At(start, cursor.at())
                }
                1 => Clustering::Empty,
                _ => Clustering::Null,
            });
        }
        Ok(())
    }

    /// Adds an entry with the clustering values that were found.
    #[inline]
    fn push_entry(&mut self, kind: EntryKind, timestamp: i64, cursor: &Cursor<'_>) -> u32 {
        let entries = &mut self.batch.entries;
        let entry = number_of(entries.kinds.len());
        entries.kinds.push(kind);
        entries.timestamps.push(timestamp);
        for (at, column) in entries.clustering.iter_mut().enumerate() {
            match self.clustering.get(at) {
                Some(Clustering::At(start, end)) => {
                    let value = cursor.slice(*start, *end);
                    if let Values::Strings(strings) = &column.values {
                        note_growth(&mut self.moved, strings, value.len());
                    }
                    push_value(&mut column.values, value);
                }
                other => {
                    let is_string = matches!(column.values, Values::Strings(_));
                    match other {
                        Some(Clustering::Null) => column.nulls.push(entry),
                        Some(Clustering::Empty) if !is_string => column.empties.push(entry),
                        _ => {}
                    }
                    column.values.push_nothing();
                }
            }
        }
        if let Some(end) = self.batch.partitions.ends.last_mut() {
            *end = entry + 1;
        }
        self.has_entries = true;
        entry
    }

    /// Cells of the row, up to its end or as many as a slice has.
    fn cells(&mut self, cursor: &mut Cursor<'_>, base: u64, elements: &mut usize) -> Result<Flow, Fault> {
        loop {
            cursor.keep();
            let at = base + u64_of(cursor.at());
            let Some(number) = self.next_column() else {
                if at != self.row.end {
                    return Err(bad("a row with another length than it says"));
                }
                self.expects = Expects::Unfiltered;
                return Ok(Flow::Next);
            };
            if at - self.batch_start >= BATCH_BYTES {
                return Ok(Flow::Stop(Stop::Full));
            }
            if *elements >= SLICE_ELEMENTS || cursor.at() >= SLICE_BYTES {
                return Ok(Flow::Next);
            }
            *elements += 1;
            let column = self.layout.columns_of(self.row.is_static).start + number;
            if !self.layout.columns[column].is_complex {
                if self.cell(cursor, base, column)? == Next::Cell {
                    self.row.next += 1;
                    continue;
                }
                self.row.next += 1;
                return Ok(Flow::Next);
            }
            match self.row.cells_left {
                None => self.complex_head(cursor, column)?,
                Some(0) => {
                    self.row.cells_left = None;
                    self.row.next += 1;
                }
                Some(left) => {
                    let next = self.cell(cursor, base, column)?;
                    self.row.cells_left = Some(left - 1);
                    if next == Next::Part {
                        return Ok(Flow::Next);
                    }
                }
            }
        }
    }

    /// The column whose cell is next, by its number among the row's. Moves to it.
    #[inline]
    fn next_column(&mut self) -> Option<usize> {
        let next = self.row.next;
        match self.row.present {
            Present::All => (next < self.layout.columns_of(self.row.is_static).len()).then_some(next),
            Present::Bits(bits) => {
                let rest = bits.checked_shr(number_of(next)).filter(|rest| *rest != 0)?;
                self.row.next = next + usize_of_u32(rest.trailing_zeros());
                Some(self.row.next)
            }
            Present::Listed => self.large.listed.get(next).map(|number| usize_of_u32(*number)),
        }
    }

    /// The deletion of a complex column, and the number of its cells.
    fn complex_head(&mut self, cursor: &mut Cursor<'_>, column: usize) -> Result<(), Fault> {
        let mut deletion = None;
        if self.row.has_complex_deletion {
            deletion = self.layout.deletion(cursor.vint()?, cursor.vint()?)?;
        }
        let count = cursor.vint()?;
        let count = u32::try_from(count).map_err(|_| bad("more cells than a row can have"))?;
        if let Some(deletion) = deletion {
            self.batch.columns[column].deletions.push(self.row.entry, deletion);
        }
        self.row.cells_left = Some(count);
        Ok(())
    }

    /// A cell, or the beginning of one whose value is read in parts.
    #[inline]
    fn cell(&mut self, cursor: &mut Cursor<'_>, base: u64, column: usize) -> Result<Next, Fault> {
        let (layout, row) = (&self.layout, &self.row);
        let plan = layout.columns[column];
        let flags = cursor.u8()?;
        let timestamp = match flags & HAS_ROW_TIMESTAMP {
            0 => Some(layout.timestamp(cursor.vint()?)),
            _ => None,
        };
        let mut life = Life::Row;
        if flags & !(IS_EMPTY | HAS_ROW_TIMESTAMP) != 0 {
            life = self.life(cursor, flags)?;
        } else if row.expiry.is_some() {
            life = Life::Own(Expiry::NEVER);
        }
        if timestamp.is_none() && row.timestamp == NO_TIMESTAMP {
            return Err(bad("a cell with the write time of a row that has none"));
        }
        let path = match plan.is_complex {
            true => {
                let bytes = cursor.vint()?;
                Limit::StructureBytes.check(self.path_bytes_max, bytes)?;
                Some(cursor.long(bytes)?)
            }
            false => None,
        };
        let bytes = match (flags & IS_EMPTY, plan.fixed_bytes()) {
            (0, Some(fixed)) => fixed,
            (0, None) => cursor.vint()?,
            _ => 0,
        };
        // What the value may have is checked against what the row has.
        if bytes > row.end.saturating_sub(base + u64_of(cursor.at())) {
            return Err(bad("a value that is longer than its row"));
        }
        let value = match cursor.long(bytes) {
            Ok(value) => Some(value),
            Err(Fault::Short) if bytes > VALUE_BYTES_WHOLE => {
                Limit::ValueBytes.check(self.value_bytes_max, bytes)?;
                None
            }
            Err(fault) => return Err(fault),
        };
        let cells = &mut self.batch.columns[column];
        let number = number_of(cells.entries.len());
        cells.entries.push(row.entry);
        if let Some(path) = path {
            note_growth(&mut self.moved, &cells.paths, path.len());
            cells.paths.push(path);
        }
        if let Some(timestamp) = timestamp {
            cells.timestamps.push(number, timestamp);
        }
        match life {
            Life::Row => {}
            Life::Own(expiry) => cells.expiries.push(number, expiry),
            Life::Deleted(local) => cells.tombstones.push(number, local),
        }
        let Some(value) = value else {
            self.large.begin(column, bytes);
            self.expects = Expects::Value;
            return Ok(Next::Part);
        };
        if flags & IS_EMPTY == 0 {
            if let Values::Strings(strings) = &cells.values {
                note_growth(&mut self.moved, strings, value.len());
            }
            push_value(&mut cells.values, value);
        } else {
            push_empty(cells, number, !matches!(life, Life::Deleted(_)));
        }
        Ok(Next::Cell)
    }

    /// Whether a cell is deleted, or expires.
    fn life(&self, cursor: &mut Cursor<'_>, flags: u8) -> Result<Life, Fault> {
        let row = &self.row;
        match flags & !(IS_EMPTY | HAS_ROW_TIMESTAMP) {
            IS_DELETED => Ok(Life::Deleted(self.layout.local_deletion(cursor.vint()?)?)),
            IS_EXPIRING => {
                let local_deletion = self.layout.local_deletion(cursor.vint()?)?;
                Ok(Life::Own(Expiry { ttl: self.layout.ttl(cursor.vint()?)?, local_deletion }))
            }
            EXPIRES_AS_ROW if row.expiry.is_some() => Ok(Life::Row),
            _ => Err(bad(format!("the flags {flags:#04x} of a cell"))),
        }
    }

    /// A part of a value.
    fn value(&mut self, cursor: &mut Cursor<'_>) -> Result<Flow, Fault> {
        let column = self.large.column;
        let Values::Strings(strings) = &mut self.batch.columns[column].values else {
            return Err(Fault::Bad(Error::internal("a number in parts")));
        };
        let is_done = self.large.part(cursor, strings, &mut self.moved)?;
        if is_done {
            self.expects = Expects::Cells;
        }
        Ok(Flow::Next)
    }

    /// Whether a batch of anything was read.
    pub(super) fn has_any(&self) -> bool {
        !self.batch.entries.kinds.is_empty()
            || self.batch.partitions.ends.len() > usize::from(self.batch.continues != Continues::Nothing)
    }

    /// Hands out the batch, and begins the next one in `spare`, which is empty; at this place in the data.
    pub(super) fn take(&mut self, mut spare: MutationBatch, at: u64) -> MutationBatch {
        self.batch.is_open = self.is_open;
        if self.is_open {
            spare.continues = Continues::Partition;
            continue_partition(&self.batch, &mut spare);
            if self.expects != Expects::Unfiltered {
                spare.continues = Continues::Entry;
                continue_entry(&self.batch, &mut spare);
                self.row.entry = 0;
            }
        }
        self.batch_start = at;
        core::mem::replace(&mut self.batch, spare)
    }

    /// The batch that is being filled, and what else holds memory.
    pub(super) fn parts(&mut self) -> (&mut MutationBatch, &mut Large) {
        (&mut self.batch, &mut self.large)
    }
}

/// Whether a cell is alive.
#[derive(Debug, Clone, Copy)]
enum Life {
    /// As its row is.
    Row,
    Own(Expiry),
    Deleted(u32),
}

fn bad(message: impl Into<alloc::borrow::Cow<'static, str>>) -> Fault {
    Fault::Bad(Error::corrupt(message))
}

/// The end of what has so many bytes from here on, which must not be beyond the data's end.
#[inline]
fn after(base: u64, cursor: &Cursor<'_>, bytes: u64, end: u64) -> Result<u64, Fault> {
    let at = base + u64_of(cursor.at());
    if bytes > end.saturating_sub(at) {
        return Err(bad(format!("{bytes} bytes of a row, where {} are left", end.saturating_sub(at))));
    }
    Ok(at + bytes)
}

/// A partition's deletion, since version `oa`: one byte if there is none. Its time is not negative.
fn deletion(cursor: &mut Cursor<'_>) -> Result<Option<Deletion>, Fault> {
    const IS_LIVE: u8 = 0x80;
    let first = cursor.u8()?;
    if first & IS_LIVE != 0 {
        return if first == IS_LIVE {
            Ok(None)
        } else {
            Err(bad(format!("the flags {first:#04x} of a deletion")))
        };
    }
    let mut timestamp = [first; 8];
    timestamp[1..].copy_from_slice(cursor.take(7)?);
    Ok(Some(Deletion { timestamp: i64::from_be_bytes(timestamp), local_deletion: cursor.u32()? }))
}

/// A partition's deletion before version `oa`.
fn legacy_deletion(cursor: &mut Cursor<'_>) -> Result<Option<Deletion>, Fault> {
    let (local, timestamp) = (cursor.u32()?, bits_i64(cursor.u64()?));
    let local_deletion = if local == 0x7fff_ffff { NO_DELETION_TIME } else { local };
    Ok(Some(Deletion { timestamp, local_deletion }).filter(|deletion| deletion.timestamp != NO_TIMESTAMP))
}

/// Which of so many columns a row has, or what lists them.
fn presence(encoded: u64, columns: usize) -> Result<(Present, Expects), Fault> {
    if encoded == 0 {
        return Ok((if columns == 0 { Present::Bits(0) } else { Present::All }, Expects::Cells));
    }
    if columns <= BITMAP_COLUMNS_MAX {
        let all = (1_u64 << columns) - 1;
        if encoded & !all != 0 {
            return Err(bad(format!("a row of {columns} columns at most that lacks others")));
        }
        return Ok((Present::Bits(all & !encoded), Expects::Cells));
    }
    let Some(present) = usize_of(encoded).and_then(|missing| columns.checked_sub(missing)) else {
        return Err(bad(format!("a row of {columns} columns at most that lacks more")));
    };
    let is_present = present < columns / 2;
    let left = number_of(if is_present { present } else { columns - present });
    let listed = if present == 0 { Present::Bits(0) } else { Present::Listed };
    Ok((listed, Expects::Listed { left, is_present, next: 0 }))
}
