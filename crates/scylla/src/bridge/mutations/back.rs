//! A batch of Parquet on its way back to a batch of writes.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;

use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::{Budget, Bytes, Error, Limits, Price, Result};
use marquetry_parquet::batch::{Batch, ColumnBatch, Value, Values as Natural};

use super::elements::{Cell, Merging};
use super::encode::{LeafReader, complete, encode, readers};
use super::flat::{self, RowTimes};
use super::listed::{List, expiry, seconds};
use super::plan::{ColumnPlan, MutationLeaves, Plan};
use super::rows::{NO_ROW, RowKind};
use super::shape::{Kind, Multi};
use crate::sstable::TableColumns;
use crate::sstable::batch::{
    Cells, ClusteringColumn, Continues, Deletion, EntryKind, Expiry, MutationBatch, NO_TIMESTAMP, Values,
    number_of,
};
use crate::sstable::murmur3_token;

/// The price of a row of a column that is looked at, and of a value with its bytes.
const LOOK_PRICE: Price = Price::per_kilovalue(12 << 10);
const VALUE_PRICE: Price = Price { kib: 600, kilovalue: 60 << 10 };
/// What the columns of `mutation` in a row cost, and the row itself, in values of a key.
const MUTATION_VALUES: usize = 3;
/// The most bytes of a partition key, and of a clustering value: their lengths have 16 bits.
const KEY_BYTES_MAX: usize = 0xffff;
/// Rows between two looks at the budget.
const SLICE_ROWS: usize = 256;
/// Nulls of a column of single values that cost as much as a look at a row: bits of a word.
const FLAT_NULLS: usize = 32;

/// What the last batch ended with.
#[derive(Debug, Default)]
pub(super) struct Last {
    /// The key of its last partition, once there was one, its token if partitions must be in order, and its deletion.
    key: Option<Vec<u8>>,
    token: i64,
    deletion: Option<Deletion>,
    /// The last row, if it is the end of a range: its clustering values.
    end: Option<(EntryKind, Vec<u8>)>,
    /// Partitions must be in the order of their tokens.
    pub(super) is_in_order: bool,
}

/// A batch that is being made.
#[derive(Debug)]
pub(super) struct Back {
    batch: MutationBatch,
    leaves: MutationLeaves,
    stage: Stage,
    list: List,
    columns: Vec<ColumnBatch>,
    rows: usize,
    row: usize,
    /// The row of each entry, if that is asked for.
    entry_rows: Option<Vec<u32>>,
    /// What was read of rows.
    of_rows: RowTimes,
    /// The readers of the columns of this stage, and for each of those where it is in the list.
    readers: Vec<Vec<LeafReader>>,
    listed_at: Vec<usize>,
    /// The kind of the column of this stage, if it can be read many rows at a time; and of those the rows with a value.
    flat: Option<Kind>,
    present: Vec<u32>,
    /// The partition key of a row, its clustering values, and a value.
    key: Vec<u8>,
    clustering: Clustering,
    scratch: Vec<u8>,
    merging: Merging,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    List,
    Rows,
    Column(usize),
}

impl Back {
    /// Keeps the row of each entry, if they are counted.
    pub(super) fn new(plan: &Plan, columns: &TableColumns, batch: &Batch, is_counted: bool) -> Back {
        let leaves = plan.mutation.clone().unwrap_or_default();
        let mut made = MutationBatch::default();
        let kinds = columns.clustering.iter().map(|column| &column.kind);
        made.entries.clustering = kinds
            .map(|kind| ClusteringColumn {
                values: Values::of(kind.fixed_bytes()),
                ..ClusteringColumn::default()
            })
            .collect();
        made.columns = columns
            .cells()
            .map(|column| Cells { values: Values::of(column.kind.fixed_bytes()), ..Cells::default() })
            .collect();
        Back {
            batch: made,
            stage: Stage::List,
            list: List::new(batch, &leaves.cells, plan.names.len()),
            leaves,
            columns: batch.columns.clone(),
            rows: batch.rows,
            row: 0,
            entry_rows: is_counted.then(Vec::new),
            of_rows: RowTimes::default(),
            readers: Vec::new(),
            listed_at: Vec::new(),
            flat: None,
            present: Vec::new(),
            key: Vec::new(),
            clustering: Clustering::default(),
            scratch: Vec::new(),
            merging: Merging::default(),
        }
    }

    /// The batch, and the row of each of its entries if that was asked for.
    pub(super) fn into_batch(self) -> (MutationBatch, Option<Vec<u32>>) {
        (self.batch, self.entry_rows)
    }

    /// Goes on; false if the budget is spent before all is done. A row may say something about the `held` batch before this one.
    ///
    /// # Errors
    ///
    /// As [`Unmapper::step`](super::Unmapper::step)'s.
    pub(super) fn step(
        &mut self,
        plan: &Plan,
        names: &BTreeMap<Bytes, u32>,
        limits: &Limits,
        mut held: Option<&mut MutationBatch>,
        last: &mut Last,
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        loop {
            match self.stage {
                Stage::List => {
                    if !self.list.step(&self.leaves.cells, names, limits, budget)? {
                        return Ok(false);
                    }
                    self.begin_rows(plan);
                }
                Stage::Rows => {
                    let end = self.rows.min(self.row + SLICE_ROWS);
                    while self.row < end {
                        let row = self.row;
                        self.read_row(plan, held.as_deref_mut(), last)
                            .map_err(|error| error.at(|place| place.row = Some(u64_of(row))))?;
                        self.row += 1;
                    }
                    let values = plan.keys.len() + plan.clustering.len() + MUTATION_VALUES;
                    budget.charge(VALUE_PRICE, 0, SLICE_ROWS * values);
                    if self.row == self.rows {
                        self.begin_column(plan, 0);
                    }
                }
                Stage::Column(number) if number < plan.cells.len() => {
                    self.read_checked(plan, number, budget).map_err(|error| {
                        let column = alloc::string::String::from_utf8_lossy(&plan.names[number]).into_owned();
                        error.at(|place| place.column = Some(column))
                    })?;
                    if self.row == self.rows {
                        self.begin_column(plan, number + 1);
                    }
                }
                Stage::Column(_) => return Ok(true),
            }
            if budget.is_spent() {
                return Ok(false);
            }
        }
    }

    fn begin_rows(&mut self, plan: &Plan) {
        (self.stage, self.row) = (Stage::Rows, 0);
        let keys = plan.keys.iter().chain(&plan.clustering);
        self.readers = keys.map(|column| self.readers_of(column)).collect();
        let MutationLeaves {
            kind,
            write_time,
            row_marker,
            ttl,
            expires_at,
            deleted_at,
            local_deletion_time,
            ..
        } = self.leaves;
        let flat = [
            Some(kind),
            Some(write_time),
            Some(row_marker),
            ttl,
            expires_at,
            deleted_at,
            local_deletion_time,
        ];
        let leaf = |leaf: Option<usize>| {
            let is_required = leaf == Some(kind) || leaf == Some(row_marker);
            let column = leaf.and_then(|leaf| self.columns.get(leaf));
            column.map(|column| LeafReader::new(column, u8::from(!is_required))).into_iter().collect()
        };
        let flat: Vec<Vec<LeafReader>> = flat.into_iter().map(leaf).collect();
        self.readers.extend(flat);
        // Of the marker, and of keys.
        let places = core::iter::once(0).chain(plan.cells.len() + 1..plan.names.len() + 1);
        self.listed_at = places.map(|place| self.list.start_of(place)).collect();
    }

    fn begin_column(&mut self, plan: &Plan, number: usize) {
        (self.stage, self.row) = (Stage::Column(number), 0);
        // What was read is freed column by column: all arrays of a batch at once would be a long step.
        self.readers.clear();
        let before = number.checked_sub(1).and_then(|before| plan.cells.get(before));
        if let Some(column) = before {
            let leaves = column.first_leaf..column.first_leaf + column.shapes.leaves.len();
            for leaf in self.columns.get_mut(leaves).unwrap_or_default() {
                (leaf.values, leaf.validity, leaf.levels) = (Natural::Int32(Vec::new().into()), None, None);
            }
        }
        if let Some(column) = plan.cells.get(number) {
            self.readers = alloc::vec![self.readers_of(column)];
            self.listed_at = alloc::vec![self.list.start_of(number + 1)];
            let leaf = self.columns.get(column.first_leaf).zip(self.batch.columns.get(number));
            self.flat = leaf.and_then(|(leaf, cells)| flat::kind_of(column, leaf, cells));
        }
    }

    fn readers_of(&self, column: &ColumnPlan) -> Vec<LeafReader> {
        let leaves = column.first_leaf..column.first_leaf + column.shapes.leaves.len();
        readers(&column.shapes, self.columns.get(leaves).unwrap_or_default())
    }

    /// Reads what a row is, and its key.
    fn read_row(&mut self, plan: &Plan, held: Option<&mut MutationBatch>, last: &mut Last) -> Result<()> {
        let mut clustering = core::mem::take(&mut self.clustering);
        let read = self.read_row_with(plan, held, last, &mut clustering);
        self.clustering = clustering;
        read
    }

    fn read_row_with(
        &mut self,
        plan: &Plan,
        mut held: Option<&mut MutationBatch>,
        last: &mut Last,
        clustering: &mut Clustering,
    ) -> Result<()> {
        self.read_key(plan)?;
        let first = plan.keys.len() + plan.clustering.len();
        let kind = match self.take(first)? {
            Some(Value::Bytes(name)) => {
                let known = RowKind::ALL.iter().find(|kind| kind.name().as_bytes() == name);
                *known.ok_or_else(|| Error::corrupt("a row of a kind that is not known"))?
            }
            _ => return Err(Error::corrupt("a row without a kind")),
        };
        let write_time = match self.take(first + 1)? {
            Some(Value::Int64(time)) => Some(time),
            _ => None,
        };
        let has_marker = self.take(first + 2)? == Some(Value::Boolean(true));
        let mut number = |place: usize| -> Result<Option<i64>> {
            Ok(match self.take(first + place)? {
                Some(Value::Int32(value)) => Some(value.into()),
                Some(Value::Int64(value)) => Some(value),
                _ => None,
            })
        };
        let (ttl, expires_at) = (number(3)?, number(4)?);
        let (deleted_at, local) = (number(5)?, number(6)?);
        let row_expiry = expiry(ttl.map(seconds).transpose()?, expires_at.map(seconds).transpose()?)?;
        let deletion = match (deleted_at, local) {
            (Some(timestamp), Some(local)) => Some(Deletion { timestamp, local_deletion: seconds(local)? }),
            (None, None) => None,
            _ => return Err(Error::corrupt("half a deletion")),
        };
        self.of_rows.times.push(write_time.unwrap_or(NO_TIMESTAMP));
        self.of_rows.expiries.push(row_expiry.unwrap_or(Expiry::NEVER));
        self.of_rows.has_expiries |= row_expiry.is_some();
        // Unless the row has cells, and a marker.
        self.of_rows.entries.push(NO_ROW);
        self.of_rows.markers.push(NO_TIMESTAMP);
        self.of_rows.marker_expiries.push(Expiry::NEVER);
        let row = number_of(self.row);
        let mut at = self.listed_at[0];
        let of_marker = self.list.of_row(0, &mut at, row);
        self.listed_at[0] = at;
        let is_new = self.begin_partition(kind, deletion, last)?;
        if self.batch.continues == Continues::Partition
            && let Some(held) = &mut held
        {
            held.is_open = true;
        }
        self.read_clustering(plan, clustering)?;
        if matches!(kind, RowKind::PartitionDeletion | RowKind::Partition) {
            last.end = None;
            return Ok(());
        }
        if let Some((end, same)) = last.end.take()
            && !is_new
            && let Some(boundary) = boundary(end, kind)
            && same == clustering.bytes
        {
            let start = deletion.ok_or_else(undeleted)?;
            let batch = match (self.batch.entries.kinds.is_empty(), held) {
                (true, Some(held)) => held,
                _ => &mut self.batch,
            };
            if let Some(kind) = batch.entries.kinds.last_mut() {
                *kind = boundary;
                batch.entries.starts.push(number_of(batch.entries.kinds.len() - 1), start);
            }
            return Ok(());
        }
        let entry = number_of(self.batch.entries.kinds.len());
        let entries = &mut self.batch.entries;
        let kind = match kind {
            RowKind::Static => EntryKind::Static,
            RowKind::RangeStart => EntryKind::InclusiveStart,
            RowKind::RangeStartExclusive => EntryKind::ExclusiveStart,
            RowKind::RangeEnd => EntryKind::InclusiveEnd,
            RowKind::RangeEndExclusive => EntryKind::ExclusiveEnd,
            _ => EntryKind::Row,
        };
        entries.kinds.push(kind);
        if let Some(rows) = &mut self.entry_rows {
            rows.push(row);
        }
        self.of_rows.has_statics |= kind == EntryKind::Static;
        if kind.is_row()
            && let Some(of_row) = self.of_rows.entries.last_mut()
        {
            *of_row = entry;
        }
        if !kind.is_row() && deletion.is_none() {
            return Err(undeleted());
        }
        if let Some(deletion) = deletion {
            entries.deletions.push(entry, deletion);
        }
        if matches!(kind, EntryKind::InclusiveEnd | EntryKind::ExclusiveEnd) {
            last.end = Some((kind, clustering.bytes.clone()));
        }
        push_clustering(entries, kind, clustering)?;
        let mut marker = (write_time, row_expiry.unwrap_or(Expiry::NEVER));
        for at in of_marker {
            let Some(listed) = self.list.get(at) else { continue };
            if let (Some(timestamp), Some(local_deletion)) = (listed.deleted_at, listed.local_deletion) {
                entries.shadowables.push(entry, Deletion { timestamp, local_deletion });
                continue;
            }
            marker = (listed.write_time.or(marker.0), listed.expiry.unwrap_or(marker.1));
        }
        if has_marker {
            let time = marker.0.ok_or_else(|| Error::corrupt("a row marker without a write time"))?;
            entries.timestamps.push(time);
            if let Some(of_row) = self.of_rows.markers.last_mut() {
                *of_row = time;
            }
            if marker.1 != Expiry::NEVER {
                entries.expiries.push(entry, marker.1);
                self.of_rows.has_expiries = true;
                if let Some(of_row) = self.of_rows.marker_expiries.last_mut() {
                    *of_row = marker.1;
                }
            }
        } else {
            entries.timestamps.push(NO_TIMESTAMP);
        }
        if let Some(end) = self.batch.partitions.ends.last_mut() {
            *end = entry + 1;
        }
        Ok(())
    }

    fn take(&mut self, place: usize) -> Result<Option<Value<'_>>> {
        match self.readers.get_mut(place).and_then(|readers| readers.first_mut()) {
            Some(reader) => reader.take(),
            None => Ok(None),
        }
    }

    /// Reads the partition key, as SSTables have it.
    fn read_key(&mut self, plan: &Plan) -> Result<()> {
        self.key.clear();
        for number in 0..plan.keys.len() {
            self.scratch.clear();
            let is_there = self.key_value(plan, number, &plan.keys[number])?.unwrap_or(false);
            if !is_there {
                return Err(Error::corrupt("a row without a partition key"));
            }
            let Ok(length) = u16::try_from(self.scratch.len()) else {
                return Err(too_long(plan, number, self.scratch.len()));
            };
            if plan.keys.len() > 1 {
                self.key.extend(length.to_be_bytes());
            }
            self.key.extend_from_slice(&self.scratch);
            if plan.keys.len() > 1 {
                self.key.push(0);
            }
        }
        if self.key.len() > KEY_BYTES_MAX {
            let what = format!("a partition key of {} bytes; servers store {KEY_BYTES_MAX}", self.key.len());
            return Err(Error::conversion(what));
        }
        Ok(())
    }

    /// Reads a value of a key column into `scratch`: whether there is one; `None` if a null is listed.
    fn key_value(&mut self, plan: &Plan, number: usize, column: &ColumnPlan) -> Result<Option<bool>> {
        let place = plan.cells.len() + 1 + number;
        let mut at = self.listed_at[number + 1];
        let listed = self.list.of_row(place, &mut at, number_of(self.row));
        self.listed_at[number + 1] = at;
        let mut lack = None;
        let is_there = encode(&column.shapes, 0, &mut self.readers[number], &mut self.scratch, &mut lack)?;
        let Some(listed) = self.list.get(listed.start).filter(|_| !listed.is_empty()) else {
            complete(lack)?;
            return Ok(Some(is_there));
        };
        self.scratch.clear();
        match self.list.slice(&listed.value) {
            Some(value) => {
                self.scratch.extend_from_slice(value);
                Ok(Some(true))
            }
            None => Ok(None),
        }
    }

    /// Reads the clustering values.
    fn read_clustering(&mut self, plan: &Plan, clustering: &mut Clustering) -> Result<()> {
        let Clustering { places, bytes } = clustering;
        places.clear();
        bytes.clear();
        for (number, column) in plan.clustering.iter().enumerate() {
            self.scratch.clear();
            places.push(match self.key_value(plan, plan.keys.len() + number, column)? {
                Some(true) if self.scratch.len() > KEY_BYTES_MAX => {
                    return Err(too_long(plan, plan.keys.len() + number, self.scratch.len()));
                }
                Some(true) => {
                    bytes.extend_from_slice(&self.scratch);
                    Place::Value(bytes.len())
                }
                Some(false) => Place::Absent,
                None => Place::Null,
            });
        }
        Ok(())
    }

    /// Begins another partition, if the row is of one.
    fn begin_partition(
        &mut self,
        kind: RowKind,
        deletion: Option<Deletion>,
        last: &mut Last,
    ) -> Result<bool> {
        let is_same = last.key.as_ref() == Some(&self.key);
        let is_first = self.batch.partitions.ends.is_empty();
        if is_same && matches!(kind, RowKind::PartitionDeletion | RowKind::Partition) {
            return Err(Error::corrupt("the deletion of a partition after something of it"));
        }
        if is_same && !is_first {
            return Ok(false);
        }
        if last.is_in_order && !is_same {
            let (before, token) = (last.token, murmur3_token(&self.key));
            last.token = token;
            if last.key.as_ref().is_some_and(|key| (before, key) > (token, &self.key)) {
                return Err(Error::conversion(
                    "a partition whose token is less than that of the one before it: rows must be in the order of tokens, and those of a partition together",
                ));
            }
        }
        let partitions = &mut self.batch.partitions;
        partitions.keys.bytes.extend_from_slice(&self.key);
        partitions.keys.ends.push(number_of(partitions.keys.bytes.len()));
        partitions.offsets.push(0);
        partitions.ends.push(number_of(self.batch.entries.kinds.len()));
        if is_same {
            self.batch.continues = Continues::Partition;
        } else {
            last.deletion = deletion.filter(|_| kind == RowKind::PartitionDeletion);
            last.key.get_or_insert_default().clone_from(&self.key);
        }
        if let Some(deletion) = last.deletion {
            partitions.deletions.push(number_of(partitions.ends.len() - 1), deletion);
        }
        Ok(!is_same)
    }

    /// Reads the cells of some rows in a column, and checks that those rows are of the column's kind, static or not.
    fn read_checked(&mut self, plan: &Plan, number: usize, budget: &mut Budget<'_>) -> Result<()> {
        let before = self
            .batch
            .columns
            .get(number)
            .map_or((0, 0), |cells| (cells.entries.len(), cells.deletions.at.len()));
        self.read_slice(plan, number, budget)?;
        let is_static = number < plan.statics;
        if !is_static && !self.of_rows.has_statics {
            return Ok(());
        }
        let Some(cells) = self.batch.columns.get(number) else { return Ok(()) };
        let new = cells.entries.iter().skip(before.0).chain(cells.deletions.at.iter().skip(before.1));
        let kinds = &self.batch.entries.kinds;
        let suits = |entry: &u32| {
            kinds.get(usize_of_u32(*entry)).is_some_and(|kind| (*kind == EntryKind::Static) == is_static)
        };
        match new.copied().all(|entry| suits(&entry)) {
            true => Ok(()),
            false => Err(Error::corrupt(match is_static {
                true => "a value of a static column in a row that is not static",
                false => "a value of a regular column in a static row",
            })),
        }
    }

    /// Reads the cells of some rows in a column: of those where nothing is listed, at once, if they are single values.
    fn read_slice(&mut self, plan: &Plan, number: usize, budget: &mut Budget<'_>) -> Result<()> {
        let end = self.rows.min(self.row + SLICE_ROWS);
        while self.row < end {
            let row = self.row;
            let listed = self.list.row_at(number + 1, self.listed_at[0]).map_or(end, |row| end.min(row));
            if let Some(kind) = self.flat
                && listed > row
            {
                let Back { readers, of_rows, batch, present, .. } = self;
                let Some(reader) = readers.first_mut().and_then(|readers| readers.first_mut()) else {
                    return Err(Error::internal("a column without a reader"));
                };
                let cells = &mut batch.columns[number];
                let (cells, bytes) = flat::read(reader, kind, row..listed, of_rows, cells, present)?;
                budget.charge(VALUE_PRICE, bytes, 0);
                budget.charge(LOOK_PRICE, 0, cells + (listed - row).div_ceil(FLAT_NULLS));
                self.row = listed;
                continue;
            }
            self.read_cells(plan, number, budget)
                .map_err(|error| error.at(|place| place.row = Some(u64_of(row))))?;
            budget.charge(LOOK_PRICE, 0, 1);
            self.row += 1;
        }
        Ok(())
    }

    /// Reads the cells of a row in a column.
    fn read_cells(&mut self, plan: &Plan, number: usize, budget: &mut Budget<'_>) -> Result<()> {
        let column = &plan.cells[number];
        let row = number_of(self.row);
        let entry = self.of_rows.entries[self.row];
        let Back { list, batch, merging, listed_at, readers, .. } = self;
        let listed = list.of_row(number + 1, &mut listed_at[0], row);
        let readers = &mut readers[0];
        let is_null =
            readers.first().map_or(Ok(true), |reader| reader.definition().map(|level| level == 0))?;
        if is_null && listed.is_empty() {
            for reader in readers {
                reader.take()?;
            }
            return Ok(());
        }
        if entry == NO_ROW {
            return Err(flat::without_cells());
        }
        let cells = &mut batch.columns[number];
        merging.read(column, readers, list, listed)?;
        budget.charge(VALUE_PRICE, merging.bytes(), merging.cells());
        if let Some(deletion) = merging.deletion {
            if column.multi == Multi::No {
                return Err(Error::corrupt("the deletion of a collection that is none"));
            }
            cells.deletions.push(entry, deletion);
        }
        let of_rows = &self.of_rows;
        let (marker, own_expiry) = (of_rows.markers[self.row], of_rows.marker_expiries[self.row]);
        let (row_time, row_expiry) = (of_rows.times[self.row], of_rows.expiries[self.row]);
        merging.each(list, |cell| {
            let number = number_of(cells.entries.len());
            cells.entries.push(entry);
            let time = cell.write_time.unwrap_or(row_time);
            if time == NO_TIMESTAMP {
                return Err(flat::without_time());
            }
            if time != marker {
                cells.timestamps.push(number, time);
            }
            if let Some(path) = cell.path {
                cells.paths.bytes.extend_from_slice(path);
                cells.paths.ends.push(number_of(cells.paths.bytes.len()));
            }
            let expiry = cell.expiry.unwrap_or(row_expiry);
            match cell.local_deletion {
                Some(local) => cells.tombstones.push(number, local),
                None if expiry != own_expiry => cells.expiries.push(number, expiry),
                None => {}
            }
            if push_value(&mut cells.values, cell)? {
                cells.empties.push(number);
            }
            Ok(())
        })
    }
}

fn undeleted() -> Error {
    Error::corrupt("a bound of a range that is not deleted")
}

/// A value of a key column, by its number among them, that no server stores.
#[cold]
fn too_long(plan: &Plan, number: usize, length: usize) -> Error {
    let name = plan.names.get(plan.cells.len() + number);
    let name = name.map(|name| alloc::string::String::from_utf8_lossy(name).into_owned());
    let what = format!("a value of the primary key of {length} bytes; servers store {KEY_BYTES_MAX}");
    Error::conversion(what).at(|place| place.column = name)
}

/// What a boundary is whose first half is this.
fn boundary(end: EntryKind, start: RowKind) -> Option<EntryKind> {
    match (end, start) {
        (EntryKind::ExclusiveEnd, RowKind::RangeStart) => Some(EntryKind::ExclusiveEndInclusiveStart),
        (EntryKind::InclusiveEnd, RowKind::RangeStartExclusive) => {
            Some(EntryKind::InclusiveEndExclusiveStart)
        }
        _ => None,
    }
}

/// The clustering values of a row: where each ends in the bytes, or that it is null, or not there.
#[derive(Debug, Default)]
struct Clustering {
    places: Vec<Place>,
    bytes: Vec<u8>,
}

/// A clustering value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It ends here.
    Value(usize),
    /// A null within a bound.
    Null,
    /// Not there: a null, or beyond the end of a bound.
    Absent,
}

fn push_clustering(
    entries: &mut crate::sstable::batch::Entries,
    kind: EntryKind,
    Clustering { places, bytes }: &Clustering,
) -> Result<()> {
    let entry = number_of(entries.kinds.len() - 1);
    let absent = places.iter().position(|place| *place == Place::Absent);
    if !kind.is_row()
        && let Some(prefix) = absent
    {
        if places[prefix..].iter().any(|place| *place != Place::Absent) {
            return Err(Error::corrupt("a bound with a value after a null"));
        }
        entries.prefixes.push(entry, number_of(prefix));
    }
    let mut start = 0;
    for (column, place) in entries.clustering.iter_mut().zip(places) {
        let mut cell = Cell::default();
        if let Place::Value(end) = place {
            cell.value = bytes.get(start..*end);
            start = *end;
        } else if *place == Place::Null || kind == EntryKind::Row {
            column.nulls.push(entry);
        }
        cell.is_dead = !matches!(place, Place::Value(_));
        if push_value(&mut column.values, cell)? {
            column.empties.push(entry);
        }
    }
    Ok(())
}

/// Adds a value; true if it is empty, and its type has another length.
fn push_value(values: &mut Values, cell: Cell<'_>) -> Result<bool> {
    let bytes = cell.value.unwrap_or_default();
    let other = || Error::conversion("a value of another length than its type's");
    if cell.is_dead || (bytes.is_empty() && !matches!(values, Values::Strings(_) | Values::None(_))) {
        push_nothing(values);
        return Ok(!cell.is_dead);
    }
    match values {
        Values::None(count) if bytes.is_empty() => *count += 1,
        Values::None(_) => return Err(other()),
        Values::One(values) => values.push(u8::from_be_bytes(bytes.try_into().map_err(|_| other())?)),
        Values::Four(values) => values.push(i32::from_be_bytes(bytes.try_into().map_err(|_| other())?)),
        Values::Eight(values) => values.push(i64::from_be_bytes(bytes.try_into().map_err(|_| other())?)),
        Values::Sixteen(values) => values.push(bytes.try_into().map_err(|_| other())?),
        Values::Strings(strings) => {
            strings.bytes.extend_from_slice(bytes);
            let end = u32::try_from(strings.bytes.len());
            strings.ends.push(end.map_err(|_| Error::too_large("values of a batch of more than 4 GiB"))?);
        }
    }
    Ok(false)
}

fn push_nothing(values: &mut Values) {
    match values {
        Values::None(count) => *count += 1,
        Values::One(values) => values.push(0),
        Values::Four(values) => values.push(0),
        Values::Eight(values) => values.push(0),
        Values::Sixteen(values) => values.push([0; 16]),
        Values::Strings(strings) => strings.ends.push(strings.ends.last().copied().unwrap_or(0)),
    }
}
