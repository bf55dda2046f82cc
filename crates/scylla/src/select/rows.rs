//! Rows of an answer, gathered into batches of writes.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;
use core::ops::Range;

use marquetry_base::cast::u64_of;
use marquetry_base::{Error, Result};

use super::cells::{Value, other_length};
use super::selection::{Selection, Times};
use super::times::{Marker, RowTimes};
use crate::sstable::batch::{
    Cells, ClusteringColumn, Continues, EntryKind, MutationBatch, NO_TIMESTAMP, Values, number_of,
};
use crate::sstable::marshal::MarshalType;
use crate::sstable::{TableColumns, push_value};

/// A batch has so many bytes, or so many rows, at least, if there are more rows.
const BATCH_BYTES: u64 = 4 << 20;
const BATCH_ROWS: usize = 32 << 10;
/// The most bytes of values of a batch: their places are numbers of 32 bits.
const BYTES_MAX: u64 = 1 << 31;

/// Gathers the rows of a [`Selection`], which come in the order of the table: by token, then by clustering columns.
///
/// 1. [`push`](SelectedRows::push) rows, until it [is full](SelectedRows::is_full) or there are no more for now;
/// 2. [`take`](SelectedRows::take) the batch, and go on.
///
/// A batch may end within a partition; the next one says so.
#[derive(Debug)]
pub struct SelectedRows {
    selection: Arc<Selection>,
    unknown_time: i64,
    /// Rows have markers.
    marker: Marker,
    batch: MutationBatch,
    bytes: u64,
    /// The key of the partition that the last row was of, and of the next one.
    key: Vec<u8>,
    next_key: Vec<u8>,
    /// There was a row, and its partition may go on.
    is_open: bool,
    times: RowTimes,
}

impl SelectedRows {
    /// Nothing yet. What has no write time that a server would tell gets `unknown_time`, in microseconds since 1970.
    pub fn new(selection: Arc<Selection>, unknown_time: i64) -> SelectedRows {
        let columns = selection.columns();
        let has_counters = columns.cells().any(|column| column.kind.is_counter());
        SelectedRows {
            batch: empty_batch(columns),
            unknown_time,
            marker: if has_counters { Marker::Missing } else { Marker::Assumed },
            bytes: 0,
            key: Vec::new(),
            next_key: Vec::new(),
            is_open: false,
            times: RowTimes::default(),
            selection,
        }
    }

    /// Adds a row: its values, in the order of the statement, `None` for nulls. `now` is when it was asked for, in seconds since 1970, which is
    /// what times to live count from.
    ///
    /// # Errors
    ///
    /// `Corrupt` for what is no row of the selection. What was added before stays valid, but no row can be added any more.
    pub fn push(&mut self, row: &[Option<&[u8]>], now: u32) -> Result<()> {
        let selection = Arc::clone(&self.selection);
        let columns = selection.columns();
        if row.len() != selection.width() {
            return Err(Error::corrupt(alloc::format!(
                "a row of {} columns, and {} were selected",
                row.len(),
                selection.width()
            )));
        }
        let part = |range: Range<usize>| row.get(range).unwrap_or_default();
        let clustering_at = columns.partition_key.len();
        let cells_at = clustering_at + columns.clustering.len();
        let times_at = cells_at + columns.cells().len();
        let clustering = part(clustering_at..cells_at);
        let values = part(cells_at..times_at);
        let row = Row { columns, values, times: part(times_at..row.len()), now };
        let statics = columns.statics.len();
        let is_static_only = statics > 0 && clustering.first().is_some_and(Option::is_none);
        if self.begin_partition(part(0..clustering_at))?
            && (is_static_only || values.iter().take(statics).any(Option::is_some))
        {
            self.begin_entry(EntryKind::Static);
            for column in &mut self.batch.entries.clustering {
                column.values.push_nothing();
            }
            self.add_cells(&row, 0..statics, Marker::Missing)?;
        }
        if !is_static_only {
            self.begin_entry(EntryKind::Row);
            self.add_clustering(columns, clustering)?;
            self.add_cells(&row, statics..columns.cells().len(), self.marker)?;
        }
        self.is_open = !is_static_only;
        match self.bytes <= BYTES_MAX {
            true => Ok(()),
            false => Err(Error::too_large("rows of more than 2 GiB in a batch")),
        }
    }

    /// Whether the batch is as large as batches should be.
    pub fn is_full(&self) -> bool {
        self.bytes >= BATCH_BYTES || self.batch.entries.kinds.len() >= BATCH_ROWS
    }

    /// The batch. `None` if there is no row in it.
    pub fn take(&mut self) -> Option<MutationBatch> {
        if self.batch.entries.kinds.is_empty() {
            return None;
        }
        self.bytes = 0;
        let mut batch = mem::replace(&mut self.batch, empty_batch(self.selection.columns()));
        batch.is_open = self.is_open;
        Some(batch)
    }

    /// Begins the partition of a row, unless it is the one that the last row was of; true if it is another.
    fn begin_partition(&mut self, key: &[Option<&[u8]>]) -> Result<bool> {
        self.next_key.clear();
        for value in key {
            let value = value.ok_or_else(|| Error::corrupt("a null in a partition key"))?;
            if key.len() == 1 {
                self.next_key.extend_from_slice(value);
                continue;
            }
            let length = u16::try_from(value.len());
            let length = length.map_err(|_| Error::corrupt("a partition key of more than 64 KiB"))?;
            self.next_key.extend_from_slice(&length.to_be_bytes());
            self.next_key.extend_from_slice(value);
            self.next_key.push(0);
        }
        let is_same = self.is_open && self.key == self.next_key;
        let partitions = &mut self.batch.partitions;
        if !is_same || partitions.ends.is_empty() {
            if partitions.ends.is_empty() && is_same {
                self.batch.continues = Continues::Partition;
            }
            partitions.keys.push(&self.next_key);
            partitions.offsets.push(0);
            partitions.ends.push(number_of(self.batch.entries.kinds.len()));
            self.bytes += u64_of(self.next_key.len());
        }
        mem::swap(&mut self.key, &mut self.next_key);
        Ok(!is_same)
    }

    /// Begins an entry of the last partition.
    fn begin_entry(&mut self, kind: EntryKind) {
        self.batch.entries.kinds.push(kind);
        self.bytes += 16;
        if let Some(end) = self.batch.partitions.ends.last_mut() {
            *end = number_of(self.batch.entries.kinds.len());
        }
    }

    fn add_clustering(&mut self, columns: &TableColumns, values: &[Option<&[u8]>]) -> Result<()> {
        let entry = number_of(self.batch.entries.kinds.len().saturating_sub(1));
        let each = self.batch.entries.clustering.iter_mut().zip(&columns.clustering).zip(values);
        for ((column, key), value) in each {
            let Some(value) = value else {
                column.nulls.push(entry);
                column.values.push_nothing();
                continue;
            };
            self.bytes += u64_of(value.len());
            match key.kind.fixed_bytes() {
                Some(_) if value.is_empty() => {
                    if !matches!(column.values, Values::Strings(_) | Values::None(_)) {
                        column.empties.push(entry);
                    }
                    column.values.push_nothing();
                }
                Some(fixed) if u32::try_from(value.len()) != Ok(fixed) => return Err(other_length()),
                _ => push_value(&mut column.values, value),
            }
        }
        Ok(())
    }

    /// Adds the cells of some columns to the last entry, and its times.
    fn add_cells(&mut self, row: &Row<'_>, columns: Range<usize>, marker: Marker) -> Result<()> {
        let SelectedRows { batch, times, bytes, selection, .. } = self;
        let entry = number_of(batch.entries.kinds.len().saturating_sub(1));
        let all = row.columns.cells().enumerate().skip(columns.start).take(columns.len());
        let before =
            row.columns.cells().take(columns.start).filter(|it| selection.has_times(&it.kind)).count();
        let mut time_at = 2 * before;
        let knows_times = selection.times() != Times::None;
        for (number, column) in all {
            let has_times = selection.has_times(&column.kind);
            let time = |at: usize| row.times.get(at).copied().flatten().filter(|_| has_times);
            let (write_time, ttl) = (time(time_at), time(time_at + 1));
            time_at += 2 * usize::from(has_times);
            let value = row.values.get(number).copied().flatten();
            let (Some(value), Some(cells)) = (value, batch.columns.get_mut(number)) else { continue };
            *bytes += u64_of(value.len()) + 16;
            let value = Value { entry, kind: &column.kind, bytes: value, write_time, ttl, has_times };
            let added = value.add_to(cells, &mut |cell, timed| {
                if knows_times {
                    times.add(number, cell, timed);
                }
            });
            added.map_err(|error| about(error, &column.name))?;
        }
        if knows_times {
            times.finish(batch, marker, row.now, self.unknown_time);
        } else {
            batch.entries.timestamps.push(NO_TIMESTAMP);
        }
        Ok(())
    }
}

/// A row of an answer.
struct Row<'a> {
    columns: &'a TableColumns,
    values: &'a [Option<&'a [u8]>],
    times: &'a [Option<&'a [u8]>],
    now: u32,
}

/// An error of a column.
fn about(error: Error, name: &[u8]) -> Error {
    let name = alloc::string::String::from_utf8_lossy(name).into_owned();
    error.at(|place| place.column = Some(name))
}

/// A batch with the arrays that these columns have.
fn empty_batch(columns: &TableColumns) -> MutationBatch {
    let cells = |kind: &MarshalType| Cells { values: Values::of(kind.fixed_bytes()), ..Cells::default() };
    let mut batch = MutationBatch {
        columns: columns.cells().map(|column| cells(&column.kind)).collect(),
        ..MutationBatch::default()
    };
    batch.entries.clustering = columns
        .clustering
        .iter()
        .map(|key| ClusteringColumn {
            values: Values::of(key.kind.fixed_bytes()),
            ..ClusteringColumn::default()
        })
        .collect();
    batch
}
