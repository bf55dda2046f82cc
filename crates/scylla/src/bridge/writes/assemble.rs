//! From sorted records to batches of writes.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;

use marquetry_base::{Error, Result};

use super::elements::{Cellular, list_path};
use super::merged::{ColumnForm, Merged, replaced};
use super::record::{Record, Slot};
use crate::sstable::batch::{
    Cells, ClusteringColumn, Continues, Deletion, EntryKind, Expiry, MutationBatch, NO_TIMESTAMP, Values,
    number_of,
};
use crate::sstable::compare::Comparator;
use crate::sstable::marshal::MarshalType;
use crate::sstable::merge::Life;
use crate::sstable::{TableColumns, push_empty, push_value};

/// Rows and bytes of a batch, but for what the last row has more.
const BATCH_ROWS: usize = 8192;
const BATCH_BYTES: usize = 4 << 20;
/// What a cell takes besides its bytes, about.
const CELL_BYTES: usize = 16;

/// Makes batches of writes from records, which are given in the order of their keys.
#[derive(Debug)]
pub struct RowAssembler {
    table: Table,
    /// The record that came last, and its key. The next one may be of the same row.
    held_key: Vec<u8>,
    held: Vec<u8>,
    is_held: bool,
    /// What it is merged of, if several records had its key.
    merged: Option<Merged>,
    rows: u64,
    batch: MutationBatch,
    bytes: usize,
    ready: VecDeque<MutationBatch>,
}

/// What is known of the table.
#[derive(Debug)]
struct Table {
    clustering: Vec<MarshalType>,
    statics: Vec<ColumnForm>,
    regulars: Vec<ColumnForm>,
    /// Empty arrays for the values of all columns.
    empty: Vec<Values>,
    now_s: u32,
}

impl RowAssembler {
    /// For a table with these columns. `now_s` is the time of deletions, in seconds since 1970.
    ///
    /// # Errors
    ///
    /// As [`Comparator::new`]'s.
    pub fn new(columns: &Arc<TableColumns>, now_s: u32) -> Result<RowAssembler> {
        let forms = |all: &[crate::sstable::statistics::HeaderColumn]| {
            let form = |column: &crate::sstable::statistics::HeaderColumn| {
                Ok(ColumnForm {
                    cellular: Cellular::of(&column.kind),
                    paths: Comparator::of_paths(&column.kind)?,
                })
            };
            all.iter().map(form).collect::<Result<Vec<_>>>()
        };
        let mut table = Table {
            clustering: columns.clustering.iter().map(|column| column.kind.clone()).collect(),
            statics: forms(&columns.statics)?,
            regulars: forms(&columns.regulars)?,
            empty: Vec::new(),
            now_s,
        };
        table.empty = columns.cells().map(|column| Values::of(column.kind.fixed_bytes())).collect();
        let batch = table.batch();
        Ok(RowAssembler {
            table,
            held_key: Vec::new(),
            held: Vec::new(),
            is_held: false,
            merged: None,
            rows: 0,
            batch,
            bytes: 0,
            ready: VecDeque::new(),
        })
    }

    /// Takes the next records, each with its key.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Misuse`](marquetry_base::ErrorKind::Misuse) for a record that is none, or not after the one before it.
    pub fn push<'r>(&mut self, records: impl IntoIterator<Item = (&'r [u8], &'r [u8])>) -> Result<()> {
        let (mut held_key, mut held) = (core::mem::take(&mut self.held_key), core::mem::take(&mut self.held));
        let mut last = None;
        {
            let mut before = self.is_held.then_some((&*held_key, &*held));
            for (key, record) in records {
                let order = before.map_or(Ordering::Less, |(before, _)| before.cmp(key));
                match (order, before) {
                    (Ordering::Equal, Some((_, first))) => {
                        self.merge(first, record)?;
                        continue;
                    }
                    (Ordering::Greater, _) => {
                        return Err(Error::misuse("records of rows that are not in the order of their keys"));
                    }
                    (_, Some((_, before))) => self.emit(before, Some(record))?,
                    (_, None) => {}
                }
                (before, last) = (Some((key, record)), Some((key, record)));
            }
        }
        if let Some((key, record)) = last {
            held_key.clear();
            held_key.extend_from_slice(key);
            held.clear();
            held.extend_from_slice(record);
            self.is_held = true;
        }
        (self.held_key, self.held) = (held_key, held);
        Ok(())
    }

    /// Merges a record with those of its key before it, of which this is the first.
    fn merge(&mut self, first: &[u8], record: &[u8]) -> Result<()> {
        let clustering = self.table.clustering.len();
        let added = Record::read(record)?;
        let forms = self.table.forms(added.is_static);
        let mut merged = match self.merged.take() {
            Some(merged) => merged,
            None => {
                let mut merged = Merged::new(forms.len());
                merged.add(&Record::read(first)?, forms, self.table.now_s, clustering)?;
                merged
            }
        };
        merged.add(&added, forms, self.table.now_s, clustering)?;
        self.merged = Some(merged);
        Ok(())
    }

    /// Takes notice that there is no further record.
    ///
    /// # Errors
    ///
    /// As [`RowAssembler::push`]'s.
    pub fn finish(&mut self) -> Result<()> {
        if self.is_held {
            let held = core::mem::take(&mut self.held);
            self.emit(&held, None)?;
            self.is_held = false;
        }
        if !self.batch.entries.kinds.is_empty() {
            self.hand_out(false);
        }
        Ok(())
    }

    /// The next batch that is complete.
    pub fn take_ready(&mut self) -> Option<MutationBatch> {
        self.ready.pop_front()
    }

    /// Rows so far, static ones included: those of one key count once.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds the row of a record to the batch, or the one that it was merged to. `next` is the record after it.
    fn emit(&mut self, record: &[u8], next: Option<&[u8]>) -> Result<()> {
        let record = Record::read(record)?;
        let mut row = RowOf { table: &self.table, batch: &mut self.batch, bytes: &mut self.bytes };
        match self.merged.take() {
            None => row.single(&record)?,
            Some(mut merged) => {
                merged.finish(self.table.forms(record.is_static));
                row.merged(&record, &merged)?;
            }
        }
        self.rows += 1;
        if self.batch.entries.kinds.len() >= BATCH_ROWS || self.bytes >= BATCH_BYTES {
            let goes_on = match next {
                Some(next) => Record::read(next)?.key == record.key,
                None => false,
            };
            self.hand_out(goes_on);
            if goes_on {
                self.batch.continues = Continues::Partition;
                begin_partition(&mut self.batch, record.key);
            }
        }
        Ok(())
    }

    fn hand_out(&mut self, goes_on: bool) {
        let next = self.table.batch();
        let mut made = core::mem::replace(&mut self.batch, next);
        made.is_open = goes_on;
        self.bytes = 0;
        self.ready.push_back(made);
    }
}

impl Table {
    fn forms(&self, is_static: bool) -> &[ColumnForm] {
        if is_static { &self.statics } else { &self.regulars }
    }

    fn batch(&self) -> MutationBatch {
        let mut batch = MutationBatch::default();
        batch.entries.clustering = self
            .clustering
            .iter()
            .map(|kind| ClusteringColumn {
                values: Values::of(kind.fixed_bytes()),
                ..ClusteringColumn::default()
            })
            .collect();
        batch.columns =
            self.empty.iter().map(|values| Cells { values: values.clone(), ..Cells::default() }).collect();
        batch
    }
}

fn begin_partition(batch: &mut MutationBatch, key: &[u8]) {
    batch.partitions.keys.push(key);
    batch.partitions.offsets.push(0);
    batch.partitions.ends.push(number_of(batch.entries.kinds.len()));
}

/// Adds a row to a batch.
struct RowOf<'a> {
    table: &'a Table,
    batch: &'a mut MutationBatch,
    bytes: &'a mut usize,
}

/// What a cell may be like.
#[derive(Clone, Copy)]
struct Like {
    entry: u32,
    timestamp: i64,
    expiry: Option<Expiry>,
}

impl RowOf<'_> {
    /// A row of one record.
    fn single(&mut self, record: &Record<'_>) -> Result<()> {
        let (timestamp, expiry) = match record.is_static {
            true => (NO_TIMESTAMP, None),
            false => (record.write_time_us, record.expiry),
        };
        let (like, mut rest) = self.begin(record, timestamp, expiry)?;
        let first = if record.is_static { 0 } else { self.table.statics.len() };
        for (at, form) in self.table.forms(record.is_static).iter().enumerate() {
            let slot = rest.next()?;
            let Some(cells) = self.batch.columns.get_mut(first + at) else { continue };
            let timestamp = record.write_time_us;
            if slot != Slot::Unset && form.cellular != Cellular::One {
                push_deletion(cells, like.entry, replaced(timestamp, self.table.now_s));
            }
            match slot {
                Slot::Unset => {}
                Slot::Deleted if form.cellular == Cellular::One => {
                    push_cell(cells, like, None, (timestamp, Life::Dead(self.table.now_s)), &[]);
                    *self.bytes += CELL_BYTES;
                }
                Slot::Deleted => {}
                Slot::Value(value) if form.cellular == Cellular::One => {
                    *self.bytes += CELL_BYTES + value.len();
                    push_cell(cells, like, None, (timestamp, record.life()), value);
                }
                Slot::Value(value) => {
                    let (life, mut elements, bytes) = (record.life(), 0, &mut *self.bytes);
                    form.cellular.for_each(value, |path, value| {
                        let of_list = list_path(form.cellular, timestamp, elements)?;
                        let path = path_of(form.cellular, path, &of_list);
                        elements += 1;
                        *bytes += CELL_BYTES + value.len() + path.map_or(0, <[u8]>::len);
                        push_cell(cells, like, path, (timestamp, life), value);
                        Ok(())
                    })?;
                }
            }
        }
        Ok(())
    }

    /// A row that was merged; `record` is one of those that it was merged of.
    fn merged(&mut self, record: &Record<'_>, merged: &Merged) -> Result<()> {
        let (like, _) = self.begin(record, merged.marker.timestamp, merged.marker.expiry)?;
        let first = if record.is_static { 0 } else { self.table.statics.len() };
        for (at, (form, column)) in self.table.forms(record.is_static).iter().zip(&merged.columns).enumerate()
        {
            let Some(cells) = self.batch.columns.get_mut(first + at) else { continue };
            push_deletion(cells, like.entry, column.deletion);
            for (number, cell) in (0..).zip(&column.cells) {
                let of_list = list_path(form.cellular, cell.timestamp, number)?;
                let path = path_of(form.cellular, &cell.path, &of_list);
                *self.bytes += CELL_BYTES + cell.value.len() + path.map_or(0, <[u8]>::len);
                push_cell(cells, like, path, (cell.timestamp, cell.life), &cell.value);
            }
        }
        Ok(())
    }

    /// Adds the entry, and its partition if it is the first of it. Returns what follows of the record: cells.
    fn begin<'r>(
        &mut self,
        record: &Record<'r>,
        timestamp: i64,
        expiry: Option<Expiry>,
    ) -> Result<(Like, super::record::Rest<'r>)> {
        let partitions = &self.batch.partitions;
        let last = partitions.keys.len().checked_sub(1).and_then(|last| partitions.keys.get(last));
        if last != Some(record.key) {
            begin_partition(self.batch, record.key);
            *self.bytes += record.key.len();
        }
        let entries = &mut self.batch.entries;
        let entry = number_of(entries.kinds.len());
        let mut rest = record.rest;
        entries.kinds.push(if record.is_static { EntryKind::Static } else { EntryKind::Row });
        for column in &mut entries.clustering {
            if record.is_static {
                column.values.push_nothing();
                continue;
            }
            let Slot::Value(value) = rest.next()? else {
                return Err(Error::misuse("a record of a row without its key"));
            };
            *self.bytes += value.len();
            if value.is_empty() && !matches!(column.values, Values::Strings(_) | Values::None(_)) {
                column.empties.push(entry);
                column.values.push_nothing();
            } else {
                push_value(&mut column.values, value);
            }
        }
        entries.timestamps.push(timestamp);
        if let Some(expiry) = expiry {
            entries.expiries.push(entry, expiry);
        }
        if let Some(end) = self.batch.partitions.ends.last_mut() {
            *end = number_of(self.batch.entries.kinds.len());
        }
        *self.bytes += CELL_BYTES;
        Ok((Like { entry, timestamp, expiry }, rest))
    }
}

/// The path that a cell has, if cells of its column have one.
fn path_of<'a>(cellular: Cellular, path: &'a [u8], of_list: &'a [u8; 16]) -> Option<&'a [u8]> {
    match cellular {
        Cellular::One => None,
        Cellular::List => Some(of_list),
        Cellular::Set | Cellular::Map | Cellular::User => Some(path),
    }
}

fn push_deletion(cells: &mut Cells, entry: u32, deletion: Option<Deletion>) {
    if let Some(deletion) = deletion {
        cells.deletions.push(entry, deletion);
    }
}

/// Adds a cell; what of it is not like its row goes to lists.
fn push_cell(
    cells: &mut Cells,
    like: Like,
    path: Option<&[u8]>,
    (timestamp, life): (i64, Life),
    value: &[u8],
) {
    let number = number_of(cells.entries.len());
    cells.entries.push(like.entry);
    if let Some(path) = path {
        cells.paths.push(path);
    }
    if timestamp != like.timestamp {
        cells.timestamps.push(number, timestamp);
    }
    let is_dead = matches!(life, Life::Dead(_));
    match life {
        Life::Dead(local) => cells.tombstones.push(number, local),
        Life::Live if like.expiry.is_some() => cells.expiries.push(number, Expiry::NEVER),
        Life::Expiring(expiry) if like.expiry != Some(expiry) => cells.expiries.push(number, expiry),
        Life::Live | Life::Expiring(_) => {}
    }
    if value.is_empty() {
        push_empty(cells, number, !is_dead);
    } else {
        push_value(&mut cells.values, value);
    }
}
