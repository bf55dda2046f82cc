//! The columns of the primary key.

use alloc::vec::Vec;
use core::mem;
use core::ops::Range;

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Budget, Bytes, Error, Price, Result};
use marquetry_parquet::batch::ColumnBatch;

use super::append::{append_values, empty_like};
use super::cells::Filling;
use super::decode::{Decoder, Found, Progress};
use super::leaf::{LeafBuilder, Source};
use super::plan::ColumnPlan;
use super::rows::{NO_ROW, Rows, number_of};
use super::shape::Multi;
use crate::sstable::batch::{Cells, EntryKind, MutationBatch, Sparse, Values};

/// The price of a key, and of a row that repeats it.
const KEY_PRICE: Price = Price::per_kilovalue(25 << 10);
const REPEAT_PRICE: Price = Price::per_kilovalue(2 << 10);
/// Elements of a value of a key that are read in one go: a key has 64 KiB.
const ALL_ELEMENTS: usize = 1 << 20;

/// What a key column cannot have of a value.
#[derive(Debug)]
pub(super) struct Odd {
    pub(super) rows: Range<usize>,
    /// The bytes; `None` for a null in the middle of a bound.
    pub(super) value: Option<Vec<u8>>,
}

/// A column of the partition key, of this number.
///
/// # Errors
///
/// [`ErrorKind::Corrupt`](marquetry_base::ErrorKind::Corrupt) for a key that is not one of as many columns.
pub(super) fn partition_key(
    plans: &[ColumnPlan],
    number: usize,
    batch: &MutationBatch,
    keys: &Bytes,
    rows: &Rows,
    budget: &mut Budget<'_>,
) -> Result<(Vec<ColumnBatch>, Vec<Odd>)> {
    let plan = &plans[number];
    let mut leaves = builders(plan, core::slice::from_ref(keys));
    let mut decoder = Decoder::default();
    let mut odd = Vec::new();
    let source = Source { bytes: keys, buffer: 0 };
    source.check()?;
    let mut work = ALL_ELEMENTS;
    for partition in 0..batch.partitions.ends.len() {
        let of = rows.of_partition(partition);
        if of.is_empty() {
            continue;
        }
        let key = batch.partitions.keys.range(partition).unwrap_or_default();
        let range = match plans.len() {
            1 => key,
            count => component(keys, key, number, count)?,
        };
        let found = repeated(plan, &mut decoder, source, range.clone(), of.len(), &mut leaves, &mut work)?;
        if found != Found::Exact {
            odd.push(Odd { rows: of, value: Some(keys.get(range).unwrap_or_default().to_vec()) });
        }
    }
    budget.charge(KEY_PRICE, 0, batch.partitions.ends.len() + (ALL_ELEMENTS - work));
    budget.charge(REPEAT_PRICE, 0, rows.count);
    Ok((finished(plan, &mut leaves, rows.count)?, odd))
}

/// Adds a value to so many rows.
fn repeated(
    plan: &ColumnPlan,
    decoder: &mut Decoder,
    source: Source<'_>,
    range: Range<usize>,
    times: usize,
    leaves: &mut [LeafBuilder],
    work: &mut usize,
) -> Result<Found> {
    let is_leaf = plan.shapes.leaf().is_some();
    let mut found = Found::Exact;
    for _ in 0..(if is_leaf { 1 } else { times }) {
        found = match decoder.begin(&plan.shapes, 0, source, range.clone(), 0, leaves, work) {
            Progress::Done(found) => found,
            Progress::More => return Err(Error::too_large("a key of more than a million elements")),
        };
        if found == Found::Nothing {
            leaves.iter_mut().for_each(|leaf| leaf.push_null(0, 0));
        }
    }
    if is_leaf {
        leaves.iter_mut().for_each(|leaf| leaf.repeat(times - 1));
    }
    Ok(found)
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

/// A clustering column, of this number.
///
/// # Errors
///
/// As [`Filling::step`]'s.
pub(super) fn clustering(
    plan: &ColumnPlan,
    number: usize,
    batch: &mut MutationBatch,
    rows: &Rows,
    budget: &mut Budget<'_>,
) -> Result<(Vec<ColumnBatch>, Vec<Odd>)> {
    let Some(column) = batch.entries.clustering.get_mut(number) else {
        return Err(Error::misuse("a batch of fewer clustering columns than the table's"));
    };
    // As if each entry had a cell: those without a value are deleted.
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
    let mut filling = Filling::new(plan, &mut cells)?;
    let all_rows = Rows::each(rows.count);
    let columns = loop {
        // What 64 KiB of clustering values, and 8,192 rows, cost.
        if let Some(columns) = filling.step(plan, &mut cells, &all_rows, budget)? {
            break columns;
        }
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
        let is_within = batch.entries.prefixes.get(*entry).is_none_or(|prefix| usize_of_u32(prefix) > number);
        let row = rows.of(*entry);
        if is_bound && is_within && row != NO_ROW {
            let row = usize_of_u32(row);
            odd.push(Odd { rows: row..row + rows_of(&batch.entries.kinds, *entry), value: None });
        }
    }
    Ok((columns, odd))
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
