//! From a row of a batch, or of several, to its bytes (`UnfilteredSerializer.java`, `Cell.java`, `Columns.java`).

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use marquetry_base::cast::{bits_u64, u64_of, usize_of_u32};
use marquetry_base::{Budget, Error, Limit, Limits, Price, Release, Result};

use super::body::{Body, SEGMENT_BYTES};
use super::collector::Collector;
use super::statistics::sign_extended;
use crate::sstable::batch::{
    Cells, Deletion, Expiry, MutationBatch, NO_DELETION_TIME, NO_TIMESTAMP, Sparse, Values, number_of,
};
use crate::sstable::counter;
use crate::sstable::elements::name;
use crate::sstable::flags::{
    EXPIRES_AS_ROW, HAS_ALL_COLUMNS, HAS_COMPLEX_DELETION, HAS_DELETION, HAS_EXTENDED_FLAGS,
    HAS_ROW_TIMESTAMP, HAS_TIMESTAMP, HAS_TTL, IS_DELETED, IS_EMPTY, IS_EXPIRING, IS_SHADOWABLE, IS_STATIC,
};
use crate::sstable::statistics::SerializationHeader;
use crate::sstable::version::Version;
use crate::sstable::vint;

/// The price of a column that is looked at, and of a cell that is written.
const LOOK_PRICE: Price = Price::per_kilovalue(12 << 10);
const CELL_PRICE: Price = Price { kib: 400, kilovalue: 80 << 10 };
/// Columns or cells between two looks at the budget.
const SLICE: usize = 256;
const TWO_CELLS: &str = "two cells of a column that has one in a row";
/// The latest local deletion time of versions before `oa`: their number for none is one more.
const LEGACY_LOCAL_DELETION_MAX: u32 = 0x7fff_fffe;
/// Columns of which rows say in a bitmap which are there; more are listed.
const BITMAP_COLUMNS_MAX: usize = 63;
/// The most bytes of a row whose cells are written in one go.
const PLAIN_BYTES_MAX: usize = 4 << 10;
/// The most bytes of a cell besides those of a string.
const PLAIN_CELL_BYTES: usize = 1 + 16;

/// A batch whose rows are written, and how far they were.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) batch: MutationBatch,
    /// The number of its first entry, of all that the writer was fed.
    pub(super) first_entry: u64,
    /// Every cell has its row's write time and TTL, and a value.
    is_plain: bool,
    cursors: Vec<Cursor>,
    /// The partition and the entry that come next.
    pub(super) partition: usize,
    pub(super) entry: usize,
}

/// Where the next cell of a column is, and its places in the lists.
#[derive(Debug, Clone, Copy, Default)]
struct Cursor {
    cell: usize,
    timestamp: usize,
    expiry: usize,
    tombstone: usize,
    empty: usize,
    deletion: usize,
}

impl Part {
    pub(super) fn new(batch: MutationBatch, first_entry: u64) -> Part {
        let is_plain = |cells: &Cells| {
            cells.timestamps.is_empty()
                && cells.expiries.is_empty()
                && cells.tombstones.is_empty()
                && cells.empties.is_empty()
        };
        Part {
            is_plain: batch.columns.iter().all(is_plain),
            cursors: alloc::vec![Cursor::default(); batch.columns.len()],
            batch,
            first_entry,
            partition: 0,
            entry: 0,
        }
    }

    /// Checks that all that a batch has was written, once its last entry was.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Misuse`](marquetry_base::ErrorKind::Misuse) for cells of entries that are not there, or not of the column's kind.
    pub(super) fn check_end(&self) -> Result<()> {
        let is_left = |(cells, cursor): (&Cells, &Cursor)| {
            cursor.cell < cells.entries.len()
                || cursor.deletion < cells.deletions.at.len()
                || cursor.timestamp < cells.timestamps.at.len()
                || cursor.expiry < cells.expiries.at.len()
                || cursor.tombstone < cells.tombstones.at.len()
                || cursor.empty < cells.empties.len()
        };
        match self.batch.columns.iter().zip(&self.cursors).any(is_left) {
            true => Err(Error::misuse("a batch with cells that are in none of its rows")),
            false => Ok(()),
        }
    }

    fn has_cell(&self, column: usize, entry: u32) -> bool {
        let cell = self.cursors.get(column).map_or(0, |cursor| cursor.cell);
        self.batch.columns.get(column).and_then(|cells| cells.entries.get(cell)) == Some(&entry)
    }

    /// The deletion of a complex column in a row, which is the next that the column has.
    fn deletion(&mut self, column: usize, entry: u32, is_taken: bool) -> Option<Deletion> {
        let (cursor, cells) = (self.cursors.get_mut(column)?, self.batch.columns.get(column)?);
        let found = next_of(&cells.deletions, cursor.deletion, entry)?;
        cursor.deletion += usize::from(is_taken);
        Some(found)
    }
}

/// What a list has at this place, if it is of this number.
#[inline]
fn next_of<T: Copy>(list: &Sparse<T>, at: usize, number: u32) -> Option<T> {
    (list.at.get(at) == Some(&number)).then(|| list.values.get(at).copied()).flatten()
}

/// How rows are stored.
#[derive(Debug)]
pub(super) struct RowLayout {
    pub(super) version: Version,
    timestamp_min: i64,
    local_deletion_min: u32,
    ttl_min: u32,
    columns: Vec<Column>,
    statics: usize,
    /// Each column has a cell in a row at the most, of a value.
    is_plain: bool,
}

#[derive(Debug)]
struct Column {
    name: String,
    fixed: Option<u32>,
    is_complex: bool,
    is_counter: bool,
}

impl RowLayout {
    pub(super) fn new(version: Version, header: &SerializationHeader) -> RowLayout {
        let columns = header.statics.iter().chain(&header.regulars).map(|column| Column {
            name: name(&column.name),
            fixed: column.kind.fixed_bytes(),
            is_complex: column.kind.is_multi_cell(),
            is_counter: column.kind.is_counter(),
        });
        let columns: Vec<Column> = columns.collect();
        RowLayout {
            version,
            timestamp_min: header.timestamp_min,
            local_deletion_min: header.local_deletion_min,
            ttl_min: header.ttl_min,
            is_plain: columns.iter().all(|column| !column.is_complex && !column.is_counter),
            columns,
            statics: header.statics.len(),
        }
    }

    pub(super) fn has_statics(&self) -> bool {
        self.statics > 0
    }

    fn columns_of(&self, is_static: bool) -> core::ops::Range<usize> {
        if is_static { 0..self.statics } else { self.statics..self.columns.len() }
    }

    /// Whether a batch is one for such rows.
    pub(super) fn fits(&self, batch: &MutationBatch, clustering: &[Option<u32>]) -> bool {
        let same = |values: &Values, fixed: Option<u32>| {
            core::mem::discriminant(values) == core::mem::discriminant(&Values::of(fixed))
        };
        batch.columns.len() == self.columns.len()
            && batch.entries.clustering.len() == clustering.len()
            && batch
                .columns
                .iter()
                .zip(&self.columns)
                .all(|(cells, column)| same(&cells.values, column.fixed))
            && batch.entries.clustering.iter().zip(clustering).all(|(of, fixed)| same(&of.values, *fixed))
    }

    fn timestamp(&self, timestamp: i64) -> u64 {
        bits_u64(timestamp.wrapping_sub(self.timestamp_min))
    }

    fn local_deletion(&self, seconds: u32) -> Result<u64> {
        let stored = if self.version.has_unsigned_deletion_time() { seconds } else { legacy(seconds)? };
        Ok(sign_extended(stored.wrapping_sub(self.local_deletion_min)))
    }

    fn ttl(&self, ttl: u32) -> u64 {
        sign_extended(ttl.wrapping_sub(self.ttl_min))
    }

    /// Writes a deletion's times.
    pub(super) fn push_deletion(&self, deletion: Option<Deletion>, out: &mut Vec<u8>) -> Result<()> {
        let none = Deletion { timestamp: NO_TIMESTAMP, local_deletion: NO_DELETION_TIME };
        let deletion = deletion.unwrap_or(none);
        vint::push_unsigned(out, self.timestamp(deletion.timestamp));
        vint::push_unsigned(out, self.local_deletion(deletion.local_deletion)?);
        Ok(())
    }
}

/// A local deletion time as versions before `oa` store it.
fn legacy(seconds: u32) -> Result<u32> {
    match seconds {
        NO_DELETION_TIME => Ok(LEGACY_LOCAL_DELETION_MAX + 1),
        ..=LEGACY_LOCAL_DELETION_MAX => Ok(seconds),
        _ => Err(Error::unsupported(
            "a deletion or an expiry after 2038-01-19T03:14:06Z, for which only the versions oa and da have room",
        )),
    }
}

/// Writes the deletion of a partition, or of a range that is open at a place that an index has: not as a difference.
pub(super) fn push_partition_deletion(
    out: &mut Vec<u8>,
    deletion: Option<Deletion>,
    version: Version,
) -> Result<()> {
    const IS_LIVE: u8 = 0x80;
    if !version.has_unsigned_deletion_time() {
        let (timestamp, seconds) = match deletion {
            Some(deletion) => (deletion.timestamp, deletion.local_deletion),
            None => (NO_TIMESTAMP, NO_DELETION_TIME),
        };
        out.extend(legacy(seconds)?.to_be_bytes());
        out.extend(timestamp.to_be_bytes());
        return Ok(());
    }
    match deletion {
        None => out.push(IS_LIVE),
        Some(deletion) if deletion.timestamp < 0 => {
            return Err(Error::unsupported(
                "a deletion of a partition, or of a range of many rows, at a negative write time, for which the versions oa and da have no room",
            ));
        }
        Some(deletion) => {
            out.extend(deletion.timestamp.to_be_bytes());
            out.extend(deletion.local_deletion.to_be_bytes());
        }
    }
    Ok(())
}

/// Writes one row after the other.
#[derive(Debug, Default)]
pub(super) struct RowWriter {
    is_static: bool,
    /// The row's number in the first part. `None`: a static row without anything.
    entry: Option<u32>,
    /// In how many parts it is.
    parts: usize,
    timestamp: i64,
    expiry: Option<Expiry>,
    has_complex_deletion: bool,
    flags: [u8; 2],
    /// The columns that it has.
    present: Vec<usize>,
    stage: Stage,
    body: Body,
    scratch: Vec<u8>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
enum Stage {
    #[default]
    Done,
    /// Which columns it has: this one next.
    Look(usize),
    Head,
    /// The numbers of columns that it has or lacks, from this one on.
    Listed(usize),
    /// This of the columns that it has.
    Column(usize),
    /// Its cells in this part.
    Cells(usize, usize),
    /// The rest of a value.
    Value(usize, usize, usize),
}

impl RowWriter {
    /// Begins the row that the first part has next; or a static row without anything.
    pub(super) fn begin(
        &mut self,
        parts: &VecDeque<Part>,
        count: usize,
        is_static: bool,
        layout: &RowLayout,
    ) {
        let part = if count > 0 { parts.front() } else { None };
        (self.is_static, self.parts, self.has_complex_deletion) = (is_static, count, false);
        self.entry = part.map(|part| number_of(part.entry));
        (self.timestamp, self.expiry) = (NO_TIMESTAMP, None);
        if let (Some(part), Some(entry)) = (part, self.entry) {
            let entries = &part.batch.entries;
            self.timestamp = entries.timestamps.get(part.entry).copied().unwrap_or(NO_TIMESTAMP);
            self.expiry = entries.expiries.get(entry).filter(|expiry| expiry.ttl > 0);
        }
        self.present.clear();
        self.body.clear();
        self.stage = Stage::Look(layout.columns_of(is_static).start);
    }

    /// The row's flags, and the extended ones, once its body is complete.
    pub(super) fn flags(&self) -> (u8, u8) {
        (self.flags[0], self.flags[1])
    }

    /// What is after the length of the row before it.
    pub(super) fn body(&self) -> &Body {
        &self.body
    }

    /// Goes on; false if the budget is spent before the body is complete.
    ///
    /// # Errors
    ///
    /// For what the version cannot store, a batch that contradicts itself, or a value or row beyond the limits.
    pub(super) fn step(
        &mut self,
        parts: &mut VecDeque<Part>,
        layout: &RowLayout,
        collector: &mut Collector,
        limits: &Limits,
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        loop {
            match self.stage {
                Stage::Done => return Ok(true),
                Stage::Look(column) => {
                    if !self.plain(parts, layout, collector, limits, budget)? {
                        self.look(parts, layout, column, budget);
                    }
                }
                Stage::Head => self.head(parts, layout, collector)?,
                Stage::Listed(from) => self.listed(layout, from, budget),
                Stage::Column(at) => self.column(parts, layout, collector, at, budget)?,
                Stage::Cells(at, part) => {
                    self.cells(parts, layout, collector, at, part, limits.value_bytes, budget)?;
                }
                Stage::Value(at, part, done) => self.value(parts, at, part, done, budget)?,
            }
            // A row is held whole.
            Limit::TotalBytes.check(limits.total_bytes, u64_of(self.body.len()))?;
            if self.stage == Stage::Done {
                return Ok(true);
            }
            if budget.is_spent() {
                return Ok(false);
            }
        }
    }

    /// The entry in a part of the row: what follows the first begins with it.
    fn entry_of(&self, part: usize) -> u32 {
        if part == 0 { self.entry.unwrap_or(0) } else { 0 }
    }

    /// Writes the row, if it is a short one whose cells are all like it, as most are; false if it is not. What it writes is what the stages do.
    fn plain(
        &mut self,
        parts: &mut VecDeque<Part>,
        layout: &RowLayout,
        collector: &mut Collector,
        limits: &Limits,
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        let columns = layout.columns_of(self.is_static);
        let (Some(part), Some(entry)) = (parts.front_mut(), self.entry) else { return Ok(false) };
        let may_be = layout.is_plain
            && part.is_plain
            && self.parts == 1
            && self.timestamp != NO_TIMESTAMP
            && columns.len() <= BITMAP_COLUMNS_MAX
            && limits.value_bytes >= u64_of(PLAIN_BYTES_MAX);
        if !may_be {
            return Ok(false);
        }
        let mut bytes = 0;
        let cells = part.batch.columns[columns.clone()].iter().zip(&part.cursors[columns.clone()]);
        for (column, (cells, cursor)) in columns.clone().zip(cells) {
            if cells.entries.get(cursor.cell) == Some(&entry) {
                self.present.push(column);
                bytes += PLAIN_CELL_BYTES;
                if let Values::Strings(strings) = &cells.values {
                    bytes += strings.range(cursor.cell).map_or(0, |range| range.len());
                }
            }
        }
        budget.charge(LOOK_PRICE, 0, columns.len() + 1);
        if bytes > PLAIN_BYTES_MAX {
            self.present.clear();
            return Ok(false);
        }
        self.head(parts, layout, collector)?;
        let Some(part) = parts.front_mut() else { return Err(Error::internal("a row of no part")) };
        let as_row = HAS_ROW_TIMESTAMP | if self.expiry.is_some() { EXPIRES_AS_ROW } else { 0 };
        let out = self.body.room_for(bytes);
        for &column in &self.present {
            let (cells, cursor) = (&part.batch.columns[column], &mut part.cursors[column]);
            let of = &layout.columns[column];
            let at = cursor.cell;
            match &cells.values {
                Values::Strings(strings) => {
                    let value = strings.get(at).unwrap_or_default();
                    if let Some(fixed) = of.fixed
                        && !value.is_empty()
                        && value.len() != usize_of_u32(fixed)
                    {
                        let what = format!("{} bytes of a type of {fixed}", value.len());
                        return Err(at_column(Error::corrupt(what), of));
                    }
                    if value.is_empty() {
                        out.push(as_row | IS_EMPTY);
                    } else {
                        out.push(as_row);
                        if of.fixed.is_none() {
                            vint::push_unsigned(out, u64_of(value.len()));
                        }
                        out.extend_from_slice(value);
                    }
                }
                Values::None(_) => out.push(as_row | IS_EMPTY),
                numbers => {
                    out.push(as_row);
                    numbers.append_bytes(at, out);
                }
            }
            cursor.cell += 1;
            if cells.entries.get(cursor.cell) == Some(&entry) {
                return Err(at_column(Error::misuse(TWO_CELLS), of));
            }
        }
        if !self.present.is_empty() {
            collector.cells_as_row(u64_of(self.present.len()), self.timestamp, self.expiry);
        }
        budget.charge(CELL_PRICE, bytes, 2 * self.present.len());
        self.end(parts, collector)?;
        Ok(true)
    }

    fn look(&mut self, parts: &mut VecDeque<Part>, layout: &RowLayout, from: usize, budget: &mut Budget<'_>) {
        let columns = layout.columns_of(self.is_static);
        let end = columns.end.min(from + SLICE);
        for column in from..end {
            let mut is_there = false;
            for number in 0..self.parts {
                let entry = self.entry_of(number);
                let Some(part) = parts.get_mut(number) else { continue };
                is_there |= part.has_cell(column, entry);
                if layout.columns[column].is_complex && part.deletion(column, entry, false).is_some() {
                    (is_there, self.has_complex_deletion) = (true, true);
                }
            }
            if is_there {
                self.present.push(column);
            }
        }
        budget.charge(LOOK_PRICE, 0, (end - from) * self.parts.max(1) + 1);
        self.stage = if end == columns.end { Stage::Head } else { Stage::Look(end) };
    }

    /// What a row says of itself.
    fn head(&mut self, parts: &VecDeque<Part>, layout: &RowLayout, collector: &mut Collector) -> Result<()> {
        let columns = layout.columns_of(self.is_static).len();
        let (mut flags, mut extended) = (0, if self.is_static { IS_STATIC } else { 0 });
        let (mut deletion, mut shadowable) = (None, None);
        if let (Some(part), Some(entry)) = (parts.front(), self.entry) {
            deletion = part.batch.entries.deletions.get(entry);
            shadowable = part.batch.entries.shadowables.get(entry);
        }
        // One that is no later than the other deletes nothing more.
        if let (Some(of), Some(other)) = (deletion, shadowable)
            && other.timestamp <= of.timestamp
        {
            shadowable = None;
        }
        if deletion.is_some() && shadowable.is_some() {
            return Err(Error::unsupported(
                "a row with a deletion and a later shadowable one, as only ScyllaDB stores them",
            ));
        }
        self.scratch.clear();
        if self.timestamp != NO_TIMESTAMP {
            flags |= HAS_TIMESTAMP;
            vint::push_unsigned(&mut self.scratch, layout.timestamp(self.timestamp));
            if let Some(expiry) = self.expiry {
                flags |= HAS_TTL;
                vint::push_unsigned(&mut self.scratch, layout.ttl(expiry.ttl));
                vint::push_unsigned(&mut self.scratch, layout.local_deletion(expiry.local_deletion)?);
            }
            collector.liveness(self.timestamp, self.expiry);
        } else if self.expiry.is_some() {
            return Err(Error::misuse("a row that expires, and has no write time"));
        }
        if let Some(deletion) = deletion.or(shadowable) {
            flags |= HAS_DELETION;
            extended |= if shadowable.is_some() { IS_SHADOWABLE } else { 0 };
            layout.push_deletion(Some(deletion), &mut self.scratch)?;
            collector.deletion(deletion);
        }
        flags |= if self.has_complex_deletion { HAS_COMPLEX_DELETION } else { 0 };
        flags |= if extended != 0 { HAS_EXTENDED_FLAGS } else { 0 };
        let mut next = Stage::Column(0);
        if self.present.len() == columns {
            flags |= HAS_ALL_COLUMNS;
        } else if columns <= BITMAP_COLUMNS_MAX {
            let first = layout.columns_of(self.is_static).start;
            let present = self.present.iter().fold(0_u64, |bits, column| bits | 1 << (column - first));
            vint::push_unsigned(&mut self.scratch, !present & ((1 << columns) - 1));
        } else {
            vint::push_unsigned(&mut self.scratch, u64_of(columns - self.present.len()));
            next = Stage::Listed(0);
        }
        self.flags = [flags, extended];
        self.body.push(&self.scratch);
        self.stage = next;
        Ok(())
    }

    /// The numbers of the columns that a row has, if these are fewer than half of them, or else of those that it lacks.
    fn listed(&mut self, layout: &RowLayout, from: usize, budget: &mut Budget<'_>) {
        let columns = layout.columns_of(self.is_static);
        let lists_present = self.present.len() < columns.len() / 2;
        let end = columns.end.min(columns.start + from + SLICE);
        for column in columns.start + from..end {
            if self.present.binary_search(&column).is_ok() == lists_present {
                self.body.push_unsigned(u64_of(column - columns.start));
            }
        }
        budget.charge(LOOK_PRICE, 0, 4 * SLICE);
        self.stage = if end == columns.end { Stage::Column(0) } else { Stage::Listed(from + SLICE) };
    }

    /// Begins a column; or ends the row.
    fn column(
        &mut self,
        parts: &mut VecDeque<Part>,
        layout: &RowLayout,
        collector: &mut Collector,
        at: usize,
        budget: &mut Budget<'_>,
    ) -> Result<()> {
        let Some(&column) = self.present.get(at) else {
            return self.end(parts, collector);
        };
        if layout.columns[column].is_complex {
            let (mut deletion, mut cells) = (None, 0_usize);
            for number in 0..self.parts {
                let entry = self.entry_of(number);
                let Some(part) = parts.get_mut(number) else { continue };
                deletion = deletion.or(part.deletion(column, entry, true));
                let (from, all) = (part.cursors[column].cell, &part.batch.columns[column].entries);
                // A row's cells are together, so their end is found by halving.
                cells += all.get(from..).map_or(0, |rest| rest.partition_point(|of| *of <= entry));
            }
            self.scratch.clear();
            if self.has_complex_deletion {
                layout.push_deletion(deletion, &mut self.scratch)?;
                if let Some(deletion) = deletion {
                    collector.deletion(deletion);
                }
            }
            vint::push_unsigned(&mut self.scratch, u64_of(cells));
            self.body.push(&self.scratch);
            budget.charge(LOOK_PRICE, 0, 8 * self.parts);
        }
        self.stage = Stage::Cells(at, 0);
        Ok(())
    }

    /// Writes cells of a column.
    #[expect(clippy::too_many_arguments, reason = "parts of one state, which is borrowed in parts")]
    fn cells(
        &mut self,
        parts: &mut VecDeque<Part>,
        layout: &RowLayout,
        collector: &mut Collector,
        at: usize,
        number: usize,
        value_bytes_max: u64,
        budget: &mut Budget<'_>,
    ) -> Result<()> {
        let entry = self.entry_of(number);
        let (Some(&column), Some(part)) = (self.present.get(at), parts.get_mut(number)) else {
            return Err(Error::internal("a cell of no part"));
        };
        let of = &layout.columns[column];
        let (Some(cells), Some(cursor)) = (part.batch.columns.get(column), part.cursors.get_mut(column))
        else {
            return Err(Error::internal("a cell of no column"));
        };
        let (mut written, mut bytes) = (0, 0);
        while cells.entries.get(cursor.cell) == Some(&entry) {
            let mut cell = Cell { cells, cursor, of, layout, row: (self.timestamp, self.expiry) };
            self.scratch.clear();
            let value = cell.write(&mut self.scratch, collector).map_err(|error| at_column(error, of))?;
            self.body.push(&self.scratch);
            let value_bytes = value.len();
            Limit::ValueBytes
                .check(value_bytes_max, u64_of(value_bytes))
                .map_err(|error| at_column(error, of))?;
            bytes += value_bytes + self.scratch.len();
            written += 1;
            let rest = self.body.push_part(value);
            if !rest.is_empty() {
                budget.charge(CELL_PRICE, bytes - rest.len(), written);
                self.stage = Stage::Value(at, number, value_bytes - rest.len());
                return Ok(());
            }
            cursor.cell += 1;
            if !of.is_complex && cells.entries.get(cursor.cell) == Some(&entry) {
                return Err(at_column(Error::misuse(TWO_CELLS), of));
            }
            if written >= SLICE || bytes >= SEGMENT_BYTES {
                break;
            }
        }
        budget.charge(CELL_PRICE, bytes, written + 1);
        if cells.entries.get(cursor.cell) != Some(&entry) {
            self.stage =
                if number + 1 < self.parts { Stage::Cells(at, number + 1) } else { Stage::Column(at + 1) };
        }
        Ok(())
    }

    /// Writes a part of a long value.
    fn value(
        &mut self,
        parts: &mut VecDeque<Part>,
        at: usize,
        number: usize,
        done: usize,
        budget: &mut Budget<'_>,
    ) -> Result<()> {
        let lost = || Error::internal("a value that is gone");
        let (Some(&column), Some(part)) = (self.present.get(at), parts.get_mut(number)) else {
            return Err(lost());
        };
        let cursor = part.cursors.get_mut(column).ok_or_else(lost)?;
        let Some(Values::Strings(strings)) = part.batch.columns.get(column).map(|cells| &cells.values) else {
            return Err(lost());
        };
        let value = strings.get(cursor.cell).and_then(|value| value.get(done..)).ok_or_else(lost)?;
        let rest = self.body.push_part(value);
        let copied = value.len() - rest.len();
        budget.charge(CELL_PRICE, copied, 1);
        self.stage = if rest.is_empty() {
            cursor.cell += 1;
            Stage::Cells(at, number)
        } else {
            Stage::Value(at, number, done + copied)
        };
        Ok(())
    }

    fn end(&mut self, parts: &mut VecDeque<Part>, collector: &mut Collector) -> Result<()> {
        let says_nothing = self.is_static
            && self.flags[0] & !HAS_ALL_COLUMNS == HAS_EXTENDED_FLAGS
            && self.present.is_empty();
        if !says_nothing {
            collector.row(self.present.len());
        }
        self.stage = Stage::Done;
        // Parts of the row are over, but for the last, in which others may follow.
        for _ in 1..self.parts {
            if let Some(part) = parts.pop_front() {
                part.check_end()?;
            }
        }
        if let Some(part) = parts.front_mut().filter(|_| self.parts > 0) {
            part.entry = if self.parts > 1 { 1 } else { part.entry + 1 };
        }
        Ok(())
    }
}

fn at_column(error: Error, of: &Column) -> Error {
    error.at(|place| place.column = Some(of.name.clone()))
}

/// A cell that is written.
struct Cell<'a> {
    cells: &'a Cells,
    cursor: &'a mut Cursor,
    of: &'a Column,
    layout: &'a RowLayout,
    row: (i64, Option<Expiry>),
}

impl<'a> Cell<'a> {
    /// Writes all but the bytes of a value that is a string, and returns these. Moves on in the lists.
    fn write(&mut self, out: &mut Vec<u8>, collector: &mut Collector) -> Result<&'a [u8]> {
        let Cell { cells, cursor, of, layout, row: (row_timestamp, row_expiry) } = self;
        let (cells, at) = (*cells, cursor.cell);
        let number = number_of(at);
        let own_timestamp = next_of(&cells.timestamps, cursor.timestamp, number);
        cursor.timestamp += usize::from(own_timestamp.is_some());
        let timestamp = own_timestamp.unwrap_or(*row_timestamp);
        if timestamp == NO_TIMESTAMP {
            return Err(Error::misuse("a cell without a write time, in a row without one"));
        }
        let own_expiry = next_of(&cells.expiries, cursor.expiry, number);
        cursor.expiry += usize::from(own_expiry.is_some());
        let tombstone = next_of(&cells.tombstones, cursor.tombstone, number);
        cursor.tombstone += usize::from(tombstone.is_some());
        let is_listed_empty = cells.empties.get(cursor.empty) == Some(&number);
        cursor.empty += usize::from(is_listed_empty);
        let expiry = own_expiry.or(*row_expiry).filter(|expiry| expiry.ttl > 0 && tombstone.is_none());
        let (string, is_empty) = match &cells.values {
            Values::Strings(strings) => {
                let value = strings.get(at).unwrap_or_default();
                (value, value.is_empty())
            }
            Values::None(_) => (&[][..], true),
            _ => (&[][..], is_listed_empty),
        };
        let has_value = !is_empty && tombstone.is_none();
        let mut flags = if has_value { 0 } else { IS_EMPTY };
        let is_as_row = timestamp == *row_timestamp;
        flags |= if is_as_row { HAS_ROW_TIMESTAMP } else { 0 };
        let expires_as_row = is_as_row && expiry.is_some() && expiry == *row_expiry;
        flags |= match (tombstone, expiry) {
            (Some(_), _) => IS_DELETED,
            (None, Some(_)) if expires_as_row => EXPIRES_AS_ROW,
            (None, Some(_)) => IS_EXPIRING,
            (None, None) => 0,
        };
        out.push(flags);
        if !is_as_row {
            vint::push_unsigned(out, layout.timestamp(timestamp));
        }
        if let Some(seconds) = tombstone {
            vint::push_unsigned(out, layout.local_deletion(seconds)?);
        } else if let Some(expiry) = expiry.filter(|_| !expires_as_row) {
            vint::push_unsigned(out, layout.local_deletion(expiry.local_deletion)?);
            vint::push_unsigned(out, layout.ttl(expiry.ttl));
        }
        collector.cell(
            timestamp,
            match tombstone {
                Some(local_deletion) => Expiry { ttl: 0, local_deletion },
                None => expiry.unwrap_or(Expiry::NEVER),
            },
        );
        if of.is_complex {
            let path = cells.paths.get(at).unwrap_or_default();
            vint::push_unsigned(out, u64_of(path.len()));
            out.extend_from_slice(path);
        }
        if !has_value {
            return Ok(&[]);
        }
        match (&cells.values, of.fixed) {
            (Values::Strings(_), Some(fixed)) => {
                if string.len() != usize_of_u32(fixed) {
                    return Err(Error::corrupt(format!("{} bytes of a type of {fixed}", string.len())));
                }
                Ok(string)
            }
            (Values::Strings(_), None) => {
                if of.is_counter {
                    collector.has_legacy_shards |= counter::has_legacy_shards(string);
                }
                vint::push_unsigned(out, u64_of(string.len()));
                Ok(string)
            }
            (numbers, _) => {
                numbers.append_bytes(at, out);
                Ok(&[])
            }
        }
    }
}

impl Release for Part {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.batch.release(budget)
    }
}

impl Release for RowWriter {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.body.release(budget)
    }
}
