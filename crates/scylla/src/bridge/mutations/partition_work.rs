//! A batch of writes on its way to partitions of the `verbatim` mapping.

use alloc::vec::Vec;
use core::mem;
use core::ops::Range;

use marquetry_base::cast::{bits_i32, usize_of_u32};
use marquetry_base::{Budget, Bytes, Error, Price, Result};
use marquetry_parquet::batch::Batch;

use super::cells::number_bytes;
use super::decode::{Decoder, Effort, Found, Progress};
use super::keys::component;
use super::leaf::{LeafBuilder, Source, Store};
use super::rows::{NO_ROW, ruled_out};
use super::shape::Multi;
use super::survey::Walk;
use super::verbatim::{ColumnPlan, DeletionPlan, LeafPlan, ValuePlan, Verbatim};
use crate::sstable::batch::{
    Cells, Continues, Deletion, EntryKind, Expiry, MutationBatch, NO_DELETION_TIME, NO_TIMESTAMP, Sparse,
    Values, number_of,
};

/// The price of a place for a cell, and of a cell.
const PLACE_PRICE: Price = Price::per_kilovalue(15 << 10);
const CELL_PRICE: Price = Price::per_kilovalue(80 << 10);
/// Places between two looks at the budget.
const SLICE: usize = 512;

/// Flags of rows (`UnfilteredSerializer.java`).
const HAS_TIMESTAMP: i32 = 0x04;
const HAS_TTL: i32 = 0x08;
const HAS_DELETION: i32 = 0x10;
const HAS_ALL_COLUMNS: i32 = 0x20;
const HAS_COMPLEX_DELETION: i32 = 0x40;
const HAS_EXTENDED_FLAGS: i32 = 0x80;
const IS_STATIC: i32 = 0x01;
const HAS_SHADOWABLE_DELETION: i32 = 0x02;
const IS_BOUND: i32 = 0x02;

/// Flags of cells (`Cell.java`).
const IS_DELETED: i32 = 0x01;
const IS_EXPIRING: i32 = 0x02;
const HAS_EMPTY_VALUE: i32 = 0x04;
const USES_ROW_TIMESTAMP: i32 = 0x08;
const USES_ROW_TTL: i32 = 0x10;

/// A place for a row, or for a static row.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// [`NO_ROW`]: the partition has none.
    entry: u32,
    repetition: u8,
}

/// A batch that is being mapped.
#[derive(Debug)]
pub(super) struct PartitionWork {
    pub(super) batch: MutationBatch,
    leaves: Vec<LeafBuilder>,
    statics: Vec<Place>,
    rows: Vec<Place>,
    partitions: Range<usize>,
    /// Columns of each entry that have something, and whether it deletes all of one.
    columns: Vec<u32>,
    deletes: Vec<bool>,
    /// The next column, and its next place and cell. Before the first column comes what rows have besides.
    column: Option<usize>,
    place: usize,
    cell: usize,
    values: Bytes,
    paths: Bytes,
    decoder: Decoder,
}

impl PartitionWork {
    pub(super) fn new(
        plan: &Verbatim,
        batch: MutationBatch,
        without_first: bool,
        budget: &mut Budget<'_>,
    ) -> Result<PartitionWork> {
        if batch.columns.len() != plan.columns.len() {
            return Err(Error::misuse("a batch of other columns than the table's"));
        }
        let builder = |leaf: &LeafPlan| LeafBuilder::new(leaf.physical, leaf.definition, leaf.has_repetition);
        let mut work = PartitionWork {
            leaves: plan.leaves.iter().map(builder).collect(),
            statics: Vec::new(),
            rows: Vec::new(),
            partitions: 0..0,
            columns: alloc::vec![0; batch.entries.kinds.len()],
            deletes: alloc::vec![false; batch.entries.kinds.len()],
            column: None,
            place: 0,
            cell: 0,
            values: Bytes::new(),
            paths: Bytes::new(),
            decoder: Decoder::default(),
            batch,
        };
        work.find_places(without_first);
        work.count_columns();
        let cells: usize = work.batch.columns.iter().map(|cells| cells.len() + 1).sum();
        budget.charge(PLACE_PRICE, 0, work.rows.len() + cells / 4);
        Ok(work)
    }

    fn find_places(&mut self, without_first: bool) {
        let batch = &self.batch;
        let count = batch.partitions.ends.len();
        // A partition of which nothing is left here was mapped with the batch before.
        let is_rest =
            batch.continues != Continues::Nothing && batch.entries_of(0).len() <= usize::from(without_first);
        self.partitions = usize::from(is_rest).min(count)..count;
        for partition in self.partitions.clone() {
            let mut fixed = NO_ROW;
            let before = self.rows.len();
            for entry in batch.entries_of(partition) {
                if entry == 0 && without_first {
                    continue;
                }
                if batch.entries.kinds[entry] == EntryKind::Static {
                    fixed = number_of(entry);
                } else {
                    let repetition = u8::from(self.rows.len() > before);
                    self.rows.push(Place { entry: number_of(entry), repetition });
                }
            }
            if self.rows.len() == before {
                self.rows.push(Place { entry: NO_ROW, repetition: 0 });
            }
            self.statics.push(Place { entry: fixed, repetition: 0 });
        }
    }

    fn count_columns(&mut self) {
        for cells in &self.batch.columns {
            let mut last = None;
            for entry in &cells.entries {
                if last != Some(entry) {
                    self.columns[usize_of_u32(*entry)] += 1;
                    last = Some(entry);
                }
            }
            for entry in &cells.deletions.at {
                self.deletes[usize_of_u32(*entry)] = true;
                if cells.entries.binary_search(entry).is_err() {
                    self.columns[usize_of_u32(*entry)] += 1;
                }
            }
        }
    }

    /// Goes on; the batch once it is complete, `None` if the budget is spent first.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](marquetry_base::ErrorKind::Unsupported) for values that are none of their type, to the byte.
    pub(super) fn step(&mut self, plan: &Verbatim, budget: &mut Budget<'_>) -> Result<Option<Batch>> {
        loop {
            match self.column {
                None => {
                    self.headers(plan)?;
                    self.rows(plan)?;
                    budget.charge(CELL_PRICE, 0, self.rows.len() + self.statics.len());
                    self.begin_column(Some(0));
                }
                Some(number) if number < plan.columns.len() => {
                    if self.cells(plan, number, budget)? {
                        self.begin_column(Some(number + 1));
                    }
                }
                Some(_) => break,
            }
            if budget.is_spent() {
                return Ok(None);
            }
        }
        let rows = self.partitions.len();
        let leaves = self.leaves.iter_mut().enumerate();
        let columns = leaves.map(|(leaf, builder)| builder.finish(leaf, rows)).collect::<Result<Vec<_>>>()?;
        Ok(Some(Batch { row_group: 0, first_row: 0, rows, columns }))
    }

    fn begin_column(&mut self, column: Option<usize>) {
        (self.column, self.place, self.cell) = (column, 0, 0);
        let Some(cells) = column.and_then(|column| self.batch.columns.get_mut(column)) else { return };
        self.values = match &mut cells.values {
            Values::Strings(strings) => mem::take(&mut strings.bytes).into(),
            _ => Bytes::new(),
        };
        self.paths = mem::take(&mut cells.paths.bytes).into();
    }

    /// Keys and deletions of partitions.
    fn headers(&mut self, plan: &Verbatim) -> Result<()> {
        let keys: Bytes = mem::take(&mut self.batch.partitions.keys.bytes).into();
        let source = Source { bytes: &keys, buffer: 0 };
        for value in &plan.keys {
            for leaf in &mut self.leaves[value.first..value.first + value.shapes.leaves.len()] {
                leaf.set_buffers(core::slice::from_ref(&keys));
            }
        }
        for partition in self.partitions.clone() {
            let key = self.batch.partitions.keys.range(partition).unwrap_or_default();
            for (number, value) in plan.keys.iter().enumerate() {
                let range = match plan.keys.len() {
                    1 => key.clone(),
                    count => component(&keys, key.clone(), number, count)?,
                };
                put(&mut self.decoder, &mut self.leaves, value, source, Some(range), 0)?;
            }
            let deletion = self.batch.partitions.deletions.get(number_of(partition));
            delete(&mut self.leaves, plan.partition[0], deletion, 0, 0)?;
            delete(&mut self.leaves, plan.partition[1], None, 0, 0)?;
        }
        let Some(flags) = plan.static_flags else { return Ok(()) };
        for place in &self.statics {
            if place.entry == NO_ROW {
                self.leaves[flags].push_null(0, 0);
                self.leaves[flags + 1].push_null(0, 0);
            } else {
                let of_row = row_flags(&self.batch, place.entry, &self.columns, &self.deletes, plan);
                push_int(&mut self.leaves[flags], of_row, 0);
                push_int(&mut self.leaves[flags + 1], IS_STATIC, 0);
            }
        }
        Ok(())
    }

    /// What rows have besides cells.
    fn rows(&mut self, plan: &Verbatim) -> Result<()> {
        let row = &plan.row;
        let PartitionWork { batch, leaves, decoder, .. } = self;
        let mut sources = Vec::new();
        for (column, value) in batch.entries.clustering.iter_mut().zip(&plan.clustering) {
            let bytes: Bytes = match &mut column.values {
                Values::Strings(strings) => mem::take(&mut strings.bytes).into(),
                _ => Bytes::new(),
            };
            for leaf in &mut leaves[value.first..value.first + value.shapes.leaves.len()] {
                leaf.set_buffers(core::slice::from_ref(&bytes));
            }
            sources.push(bytes);
        }
        let first = plan.columns.get(plan.statics).map_or(leaves.len(), |column| column.leaves.start);
        for Place { entry, repetition } in &self.rows {
            let (entry, repetition) = (*entry, *repetition);
            if entry == NO_ROW {
                leaves[row.flags..first].iter_mut().for_each(|leaf| leaf.push_null(0, 0));
                continue;
            }
            let entries = &batch.entries;
            let at = usize_of_u32(entry);
            let kind = entries.kinds[at];
            let shadowable = entries.shadowables.get(entry);
            push_int(
                &mut leaves[row.flags],
                row_flags(batch, entry, &self.columns, &self.deletes, plan),
                repetition,
            );
            let extended = if shadowable.is_some() { HAS_SHADOWABLE_DELETION } else { 0 };
            push_int(&mut leaves[row.flags + 1], extended, repetition);
            let number = (0..8).find(|number| EntryKind::bound(*number) == Some(kind));
            maybe(leaves, row.kind, number.map(i64::from), 1, repetition)?;
            let time = Some(entries.timestamps[at]).filter(|time| *time != NO_TIMESTAMP);
            maybe(leaves, Some(row.timestamp), time, 1, repetition)?;
            let expiry = entries.expiries.get(entry);
            maybe(leaves, row.ttl, expiry.map(|it| it.ttl.into()), 1, repetition)?;
            maybe(
                leaves,
                row.local_deletion_time,
                expiry.map(|it| seconds(it.local_deletion)),
                1,
                repetition,
            )?;
            let deletions = [entries.deletions.get(entry), entries.starts.get(entry), shadowable];
            for (of, deletion) in row.deletions.iter().zip(deletions) {
                delete(leaves, *of, deletion, 1, repetition)?;
            }
            let prefix = entries.prefixes.get(entry).map_or(usize::MAX, usize_of_u32);
            for (number, ((column, value), bytes)) in
                entries.clustering.iter().zip(&plan.clustering).zip(&sources).enumerate()
            {
                let mut scratch = [0; 16];
                let is_there = number < prefix && column.nulls.binary_search(&entry).is_err();
                let is_empty = column.empties.binary_search(&entry).is_ok();
                let (source, range) = value_of(&column.values, at, is_empty, bytes, &mut scratch);
                put(decoder, leaves, value, source, is_there.then_some(range), repetition)?;
            }
        }
        Ok(())
    }

    /// Cells of a column; false if there are more.
    fn cells(&mut self, plan: &Verbatim, number: usize, budget: &mut Budget<'_>) -> Result<bool> {
        let column = &plan.columns[number];
        let PartitionWork { batch, leaves, statics, rows, values, paths, decoder, place, cell, .. } = self;
        let cells = &batch.columns[number];
        if *place == 0 {
            for leaf in &mut leaves[column.leaves.clone()] {
                leaf.set_buffers(&[values.clone(), paths.clone()]);
            }
        }
        let places = if number < plan.statics { statics } else { rows };
        let end = places.len().min(*place + SLICE);
        let before = *cell;
        let mut lists = Lists {
            times: Walk::from(&cells.timestamps, *cell),
            expiries: Walk::from(&cells.expiries, *cell),
            tombstones: Walk::from(&cells.tombstones, *cell),
        };
        for Place { entry, repetition } in &places[*place..end] {
            let all = column.leaves.clone();
            if *entry == NO_ROW {
                leaves[all].iter_mut().for_each(|leaf| leaf.push_null(0, 0));
                continue;
            }
            let is_here = cells.entries.get(*cell) == Some(entry);
            let deletion = if cells.deletions.is_empty() { None } else { cells.deletions.get(*entry) };
            if !is_here && deletion.is_none() {
                leaves[all].iter_mut().for_each(|leaf| leaf.push_null(1, *repetition));
                continue;
            }
            if column.multi != Multi::No {
                delete(leaves, column.deletion, deletion, 2, *repetition)?;
                if !is_here {
                    let first = column.path.unwrap_or(column.flags);
                    leaves[first..all.end].iter_mut().for_each(|leaf| leaf.push_null(2, *repetition));
                }
            }
            let mut repetition = *repetition;
            while cells.entries.get(*cell) == Some(entry) {
                put_cell(
                    column,
                    batch,
                    cells,
                    *cell,
                    &mut lists,
                    (values, paths),
                    (decoder, leaves),
                    repetition,
                )
                .map_err(|error| error.at(|place| place.column = Some(column.name.clone())))?;
                *cell += 1;
                repetition = column.repetition;
            }
        }
        budget.charge(PLACE_PRICE, 0, end - *place);
        budget.charge(CELL_PRICE, 0, *cell - before);
        *place = end;
        Ok(end == places.len())
    }
}

struct Lists<'a> {
    times: Walk<'a, i64>,
    expiries: Walk<'a, Expiry>,
    tombstones: Walk<'a, u32>,
}

#[expect(clippy::too_many_arguments, reason = "where a cell is, and where it goes")]
fn put_cell(
    column: &ColumnPlan,
    batch: &MutationBatch,
    cells: &Cells,
    cell: usize,
    lists: &mut Lists<'_>,
    (values, paths): (&Bytes, &Bytes),
    (decoder, leaves): (&mut Decoder, &mut [LeafBuilder]),
    repetition: u8,
) -> Result<()> {
    let number = number_of(cell);
    let entry = cells.entries[cell];
    let time = lists.times.take(number);
    let own = lists.expiries.take(number);
    let local = lists.tombstones.take(number);
    let of_row = batch.entries.expiries.get(entry);
    let is_empty = cells.empties.binary_search(&number).is_ok();
    let mut scratch = [0; 16];
    let (source, range) = value_of(&cells.values, cell, is_empty, values, &mut scratch);
    let mut flags = 0;
    let mut set = |flag: i32, is_set: bool| flags |= if is_set { flag } else { 0 };
    let expires = own.or(of_row).filter(|expiry| *expiry != Expiry::NEVER);
    set(IS_DELETED, local.is_some());
    set(IS_EXPIRING, local.is_none() && expires.is_some());
    set(HAS_EMPTY_VALUE, local.is_some() || range.is_empty());
    set(USES_ROW_TIMESTAMP, time.is_none());
    set(USES_ROW_TTL, local.is_none() && own.is_none() && of_row.is_some());
    let above = column.definition;
    if let Some(path) = column.path {
        let range = cells.paths.range(cell).unwrap_or_default();
        leaves[path].values.push_view(paths.get(range.clone()).unwrap_or_default(), 1, range.start);
        leaves[path].close(repetition);
    }
    push_int(&mut leaves[column.flags], flags, repetition);
    let row_time = batch.entries.timestamps[usize_of_u32(entry)];
    maybe(leaves, Some(column.timestamp), time.filter(|_| local.is_none()), above, repetition)?;
    let own = own.filter(|own| *own != Expiry::NEVER);
    maybe(leaves, column.ttl, own.map(|own| own.ttl.into()), above, repetition)?;
    let until = local.or(own.map(|own| own.local_deletion)).map(seconds);
    maybe(leaves, Some(column.local_deletion_time), until, above, repetition)?;
    let deleted = local.map(|_| time.unwrap_or(row_time));
    maybe(leaves, Some(column.marked_for_delete_at), deleted, above, repetition)?;
    put(decoder, leaves, &column.value, source, local.is_none().then_some(range), repetition)
}

/// Where the bytes of a value are.
fn value_of<'a>(
    values: &Values,
    at: usize,
    is_empty: bool,
    bytes: &'a Bytes,
    scratch: &'a mut [u8; 16],
) -> (Source<'a>, Range<usize>) {
    match values {
        Values::Strings(strings) => (Source { bytes, buffer: 0 }, strings.range(at).unwrap_or_default()),
        _ if is_empty => (Source { bytes, buffer: 0 }, 0..0),
        numbers => {
            let length = number_bytes(numbers, at, scratch);
            (Source { bytes: scratch, buffer: 0 }, 0..length)
        }
    }
}

/// Adds a value, or a null.
fn put(
    decoder: &mut Decoder,
    leaves: &mut [LeafBuilder],
    plan: &ValuePlan,
    source: Source<'_>,
    range: Option<Range<usize>>,
    repetition: u8,
) -> Result<()> {
    let leaves = &mut leaves[plan.first..plan.first + plan.shapes.leaves.len()];
    let Some(range) = range else {
        let above = plan.shapes.root().definition - 1;
        leaves.iter_mut().for_each(|leaf| leaf.push_null(above, repetition));
        return Ok(());
    };
    let mut work = Effort::new(usize::MAX);
    match decoder.begin(&plan.shapes, 0, source, range, repetition, leaves, &mut work) {
        Progress::Done(Found::Exact) => Ok(()),
        _ => Err(Error::unsupported(
            "a value that is none of its type to the byte, in the mapping verbatim; the mapping full has it",
        )),
    }
}

fn push_int(leaf: &mut LeafBuilder, value: i32, repetition: u8) {
    if let Store::Int32(values) = &mut leaf.values {
        values.push(value);
    }
    leaf.close(repetition);
}

/// Adds a number or a null to a column, if it is there.
fn maybe(
    leaves: &mut [LeafBuilder],
    leaf: Option<usize>,
    value: Option<i64>,
    above: u8,
    repetition: u8,
) -> Result<()> {
    let Some(leaf) = leaf else {
        return if value.is_some() { Err(ruled_out("no TTL or deletion")) } else { Ok(()) };
    };
    let leaf = &mut leaves[leaf];
    match (value, &mut leaf.values) {
        (Some(value), Store::Int64(values)) => values.push(value),
        // Seconds have their 32 bits as Cassandra's classes do, with a sign.
        (Some(value), Store::Int32(values)) => {
            let value = i32::try_from(value).map_err(|_| Error::corrupt("a TTL of more than 31 bits"))?;
            values.push(value);
        }
        _ => {
            leaf.push_null(above, repetition);
            return Ok(());
        }
    }
    leaf.close(repetition);
    Ok(())
}

/// A local deletion time as an INT32.
fn seconds(local: u32) -> i64 {
    i64::from(bits_i32(if local == NO_DELETION_TIME { 0x7fff_ffff } else { local }))
}

fn delete(
    leaves: &mut [LeafBuilder],
    plan: DeletionPlan,
    deletion: Option<Deletion>,
    above: u8,
    repetition: u8,
) -> Result<()> {
    let Some(first) = plan.first else {
        return if deletion.is_some() { Err(ruled_out("no deletion")) } else { Ok(()) };
    };
    debug_assert!(above < plan.definition);
    let local = deletion.map(|deletion| seconds(deletion.local_deletion));
    maybe(leaves, Some(first), local, above, repetition)?;
    maybe(leaves, Some(first + 1), deletion.map(|deletion| deletion.timestamp), above, repetition)
}

/// The flags that a row, static or not, or a bound has in Data.db.
fn row_flags(batch: &MutationBatch, entry: u32, columns: &[u32], deletes: &[bool], plan: &Verbatim) -> i32 {
    let at = usize_of_u32(entry);
    let entries = &batch.entries;
    let kind = entries.kinds[at];
    if !kind.is_row() {
        return IS_BOUND;
    }
    let is_static = kind == EntryKind::Static;
    let all = if is_static { plan.statics } else { plan.columns.len() - plan.statics };
    let has = |list: &Sparse<Deletion>| list.get(entry).is_some();
    let mut flags = 0;
    let mut set = |flag: i32, is_set: bool| flags |= if is_set { flag } else { 0 };
    set(HAS_TIMESTAMP, entries.timestamps[at] != NO_TIMESTAMP);
    set(HAS_TTL, entries.expiries.get(entry).is_some());
    set(HAS_DELETION, has(&entries.deletions));
    set(HAS_ALL_COLUMNS, usize_of_u32(columns[at]) == all);
    set(HAS_COMPLEX_DELETION, deletes[at]);
    set(HAS_EXTENDED_FLAGS, is_static || has(&entries.shadowables));
    flags
}
