//! The columns of the primary key.

use alloc::vec::Vec;
use core::mem;
use core::ops::Range;

use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::{Budget, Bytes, Error, Price, Result};
use marquetry_parquet::batch::ColumnBatch;

use super::append::{append_values, empty_like};
use super::cells::Filling;
use super::decode::{Decoder, Effort, Found, Progress};
use super::leaf::{LeafBuilder, Source};
use super::plan::ColumnPlan;
use super::rows::{NO_ROW, Rows};
use super::shape::Multi;
use crate::sstable::batch::{Cells, EntryKind, MutationBatch, Sparse, Values, number_of};

/// The price of a key, and of a row that repeats it.
const KEY_PRICE: Price = Price::per_kilovalue(25 << 10);
const REPEAT_PRICE: Price = Price::per_kilovalue(2 << 10);
/// Keys and elements of keys that are read between two looks at the budget.
const SLICE_ELEMENTS: usize = 512;

/// What a key column cannot have of a value.
#[derive(Debug)]
pub(super) struct Odd {
    pub(super) rows: Range<usize>,
    /// The bytes; `None` for a null in the middle of a bound.
    pub(super) value: Option<Vec<u8>>,
}

/// Columns, what they cannot have exactly, and in how many rows they have null for a value that they cannot hold.
pub(super) type Made = (Vec<ColumnBatch>, Vec<Odd>, u64);

/// A column of the partition key that is being made.
#[derive(Debug)]
pub(super) struct PartitionKey {
    leaves: Vec<LeafBuilder>,
    decoder: Decoder,
    odd: Vec<Odd>,
    partition: usize,
    /// Rows of that partition that have it.
    rows: usize,
    /// Whether its value is read to some part, for the next row.
    is_within: bool,
    lost: u64,
}

impl PartitionKey {
    pub(super) fn new(plan: &ColumnPlan, keys: &Bytes) -> PartitionKey {
        PartitionKey {
            leaves: builders(plan, core::slice::from_ref(keys)),
            decoder: Decoder::default(),
            odd: Vec::new(),
            partition: 0,
            rows: 0,
            is_within: false,
            lost: 0,
        }
    }

    /// Goes on with the column of this number; `None` if the budget is spent before it is complete.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`](marquetry_base::ErrorKind::Corrupt) for a key that is not one of as many columns.
    pub(super) fn step(
        &mut self,
        plans: &[ColumnPlan],
        number: usize,
        batch: &MutationBatch,
        keys: &Bytes,
        rows: &Rows,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Made>> {
        let plan = &plans[number];
        let source = Source { bytes: keys, buffer: 0 };
        source.check()?;
        let is_leaf = plan.shapes.leaf().is_some();
        let mut work = Effort::new(SLICE_ELEMENTS);
        while self.partition < batch.partitions.ends.len() {
            work.take(1);
            let of = rows.of_partition(self.partition);
            let key = batch.partitions.keys.range(self.partition).unwrap_or_default();
            let range = match plans.len() {
                _ if of.is_empty() => key,
                1 => key,
                count => component(keys, key, number, count)?,
            };
            while self.rows < of.len() && work.is_left() {
                work.take(1);
                let progress = match self.is_within {
                    true => self.decoder.run(&plan.shapes, source, &mut self.leaves, &mut work),
                    false => {
                        let PartitionKey { decoder, leaves, .. } = self;
                        decoder.begin(&plan.shapes, 0, source, range.clone(), 0, leaves, &mut work)
                    }
                };
                self.is_within = progress == Progress::More;
                let Progress::Done(found) = progress else { break };
                if found == Found::Nothing {
                    self.leaves.iter_mut().for_each(|leaf| leaf.push_null(0, 0));
                }
                if found != Found::Exact && self.rows == 0 {
                    self.lost += self.decoder.lost(found) * u64_of(of.len());
                    let value = Some(keys.get(range.clone()).unwrap_or_default().to_vec());
                    self.odd.push(Odd { rows: of.clone(), value });
                }
                self.rows += 1;
                if is_leaf {
                    self.leaves.iter_mut().for_each(|leaf| leaf.repeat(of.len() - 1));
                    self.rows = of.len();
                }
            }
            if self.rows == of.len() {
                budget.charge(REPEAT_PRICE, 0, of.len());
                (self.partition, self.rows) = (self.partition + 1, 0);
            }
            if !work.is_left() {
                budget.charge(KEY_PRICE, 0, work.done());
                work = Effort::new(SLICE_ELEMENTS);
                if budget.is_spent() {
                    return Ok(None);
                }
            }
        }
        budget.charge(KEY_PRICE, 0, work.done());
        Ok(Some((finished(plan, &mut self.leaves, rows.count)?, mem::take(&mut self.odd), self.lost)))
    }
}

/// A value of a key of several: each has its length of 16 bits before it, and a zero byte after it.
///
/// # Errors
///
/// [`ErrorKind::Corrupt`](marquetry_base::ErrorKind::Corrupt) for a key of another number of columns.
pub(super) fn component(keys: &[u8], key: Range<usize>, number: usize, count: usize) -> Result<Range<usize>> {
    let bad = || Error::corrupt(alloc::format!("a partition key that is not one of {count} columns"));
    let mut at = key.start;
    let mut found = key.start..key.start;
    for component in 0..count {
        let length = keys.get(at..key.end).and_then(|rest| rest.first_chunk::<2>()).ok_or_else(bad)?;
        let start = at + 2;
        let end = start + usize::from(u16::from_be_bytes(*length));
        if end >= key.end || keys.get(end) != Some(&0) {
            return Err(bad());
        }
        if component == number {
            found = start..end;
        }
        at = end + 1;
    }
    if at == key.end { Ok(found) } else { Err(bad()) }
}

/// A clustering column that is being made: as if each row had a cell.
#[derive(Debug)]
pub(super) struct Clustering {
    cells: Cells,
    filling: Filling,
}

impl Clustering {
    /// Begins with the column of this number.
    ///
    /// # Errors
    ///
    /// As [`Filling::new`]'s.
    pub(super) fn new(
        plan: &ColumnPlan,
        number: usize,
        batch: &mut MutationBatch,
        rows: &Rows,
        budget: &mut Budget<'_>,
    ) -> Result<Clustering> {
        let Some(column) = batch.entries.clustering.get_mut(number) else {
            return Err(Error::misuse("a batch of fewer clustering columns than the table's"));
        };
        // Those without a value are deleted.
        let absent = absent(number, &batch.entries.kinds, &batch.entries.prefixes, &column.nulls);
        let mut cells = Cells {
            entries: (0..number_of(batch.entries.kinds.len())).collect(),
            values: mem::take(&mut column.values),
            empties: column.empties.clone(),
            ..Cells::default()
        };
        cells.empties.retain(|empty| absent.binary_search(empty).is_err());
        cells.tombstones = Sparse { values: alloc::vec![0; absent.len()], at: absent };
        if !rows.are_entries() {
            spread(&mut cells, &batch.entries.kinds, rows);
        }
        budget.charge(REPEAT_PRICE, 0, cells.len());
        let filling = Filling::new(plan, &mut cells)?;
        Ok(Clustering { cells, filling })
    }

    /// Goes on; `None` if the budget is spent before the column is complete.
    ///
    /// # Errors
    ///
    /// As [`Filling::step`]'s.
    pub(super) fn step(
        &mut self,
        plan: &ColumnPlan,
        number: usize,
        batch: &MutationBatch,
        rows: &Rows,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Made>> {
        let Clustering { cells, filling } = self;
        let Some(columns) = filling.step(plan, cells, &Rows::each(rows.count), budget)? else {
            return Ok(None);
        };
        let mut odd = Vec::new();
        for row in &filling.raws {
            let at = usize_of_u32(*row);
            let mut value = Vec::new();
            match &cells.values {
                Values::Strings(strings) => {
                    let range = strings.range(at).unwrap_or_default();
                    value.extend_from_slice(filling.values.get(range).unwrap_or_default());
                }
                _ if cells.empties.binary_search(row).is_ok() => {}
                numbers => numbers.append_bytes(at, &mut value),
            }
            // By now a cell has the number of its row.
            let row = cells.entries.get(at).map_or(at, |row| usize_of_u32(*row));
            odd.push(Odd { rows: row..row + 1, value: Some(value) });
        }
        for entry in &batch.entries.clustering[number].nulls {
            // A row without a value for a clustering column has none; a bound may just end before it.
            let is_bound = batch.entries.kinds.get(usize_of_u32(*entry)).is_some_and(|kind| !kind.is_row());
            let is_within =
                batch.entries.prefixes.get(*entry).is_none_or(|prefix| usize_of_u32(prefix) > number);
            let row = rows.of(*entry);
            if is_bound && is_within && row != NO_ROW {
                let row = usize_of_u32(row);
                odd.push(Odd { rows: row..row + rows_of(&batch.entries.kinds, *entry), value: None });
            }
        }
        Ok(Some((columns, odd, filling.lost)))
    }
}

/// Entries that have no value for a clustering column.
fn absent(number: usize, kinds: &[EntryKind], prefixes: &Sparse<u32>, nulls: &[u32]) -> Vec<u32> {
    let mut absent = nulls.to_vec();
    if kinds.contains(&EntryKind::Static) {
        let statics = kinds.iter().enumerate().filter(|(_, kind)| **kind == EntryKind::Static);
        absent.extend(statics.map(|(entry, _)| number_of(entry)));
    }
    let short =
        prefixes.at.iter().zip(&prefixes.values).filter(|(_, prefix)| usize_of_u32(**prefix) <= number);
    absent.extend(short.map(|(entry, _)| *entry));
    absent.sort_unstable();
    absent.dedup();
    absent
}

/// From one value an entry to one a row: those of entries without a row go, and those of boundaries are there twice.
fn spread(cells: &mut Cells, kinds: &[EntryKind], rows: &Rows) {
    let mut spread = Cells { values: empty_like(&cells.values), ..Cells::default() };
    let mut absent = cells.tombstones.at.iter().copied().peekable();
    let mut empties = cells.empties.iter().copied().peekable();
    for entry in 0..cells.len() {
        let number = number_of(entry);
        let is_absent = absent.next_if_eq(&number).is_some();
        let is_empty = empties.next_if_eq(&number).is_some();
        let row = rows.of(number);
        if row == NO_ROW {
            continue;
        }
        for row in row..row + number_of(rows_of(kinds, number)) {
            let cell = number_of(spread.entries.len());
            if is_absent {
                spread.tombstones.push(cell, 0);
            }
            if is_empty {
                spread.empties.push(cell);
            }
            spread.entries.push(row);
            append_values(&cells.values, entry..entry + 1, &mut spread.values);
        }
    }
    *cells = spread;
}

/// The rows of an entry: a boundary has two.
fn rows_of(kinds: &[EntryKind], entry: u32) -> usize {
    1 + usize::from(kinds.get(usize_of_u32(entry)).is_some_and(|kind| kind.is_boundary()))
}

/// Empty columns.
pub(super) fn builders(plan: &ColumnPlan, buffers: &[Bytes]) -> Vec<LeafBuilder> {
    debug_assert!(plan.multi == Multi::No || !plan.shapes.leaves.is_empty());
    let leaves = plan.shapes.leaves.iter().map(|leaf| {
        let mut builder = LeafBuilder::new(leaf.kind.physical(), leaf.definition, leaf.repetition > 0);
        builder.set_buffers(buffers);
        builder
    });
    leaves.collect()
}

/// The columns, of so many rows.
///
/// # Errors
///
/// As [`LeafBuilder::finish`]'s.
pub(super) fn finished(
    plan: &ColumnPlan,
    leaves: &mut [LeafBuilder],
    rows: usize,
) -> Result<Vec<ColumnBatch>> {
    let leaves = leaves.iter_mut().enumerate();
    leaves.map(|(number, leaf)| leaf.finish(plan.first_leaf + number, rows)).collect()
}
