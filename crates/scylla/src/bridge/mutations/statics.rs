//! Static rows, whose values the `logical` mapping has in each row of their partition.

use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Bytes, Error, Price, Result};
use marquetry_parquet::batch::ColumnBatch;

use super::append::{append_cells, bytes_of, empty_like};
use super::cells::Filling;
use super::decode::{Decoder, Found, Progress};
use super::keys::{builders, finished};
use super::leaf::Source;
use super::plan::ColumnPlan;
use super::rows::{Rows, number_of};
use super::shape::Multi;
use crate::sstable::batch::{Cells, Continues, EntryKind, MutationBatch, Values};

/// The price of a row that repeats a value, and of an element of one.
const REPEAT_PRICE: Price = Price::per_kilovalue(3 << 10);
const ELEMENT_PRICE: Price = Price::per_kilovalue(40 << 10);
/// Bytes of a static value in the rows of one batch, each of which repeats it.
const REPEATED_BYTES_MAX: u64 = 64 << 20;

/// The static row of the partition that the next batch goes on with.
#[derive(Debug, Default)]
pub(super) struct Statics {
    columns: Vec<Cells>,
    pub(super) has_static: bool,
    pub(super) has_row: bool,
}

impl Statics {
    /// Keeps the static row of a batch's last partition, if that goes on.
    pub(super) fn keep(&mut self, batch: &MutationBatch, statics: usize, budget: &mut Budget<'_>) {
        let last = batch.partitions.ends.len().saturating_sub(1);
        let entries = batch.entries_of(last);
        let is_new = last > 0 || batch.continues == Continues::Nothing;
        if !batch.is_open || is_new {
            self.columns.clear();
        }
        if !batch.is_open || batch.entries.kinds.get(entries.start) != Some(&EntryKind::Static) {
            return;
        }
        let entry = number_of(entries.start);
        self.columns.clear();
        for cells in batch.columns.iter().take(statics) {
            let mut kept = Cells { values: empty_like(&cells.values), ..Cells::default() };
            let range = cells_of(cells, entry);
            budget.charge(ELEMENT_PRICE, 0, range.len() + 1);
            append_cells(cells, range, 0, &mut kept);
            self.columns.push(kept);
        }
    }
}

/// A static column, in all rows of a batch.
///
/// # Errors
///
/// [`ErrorKind::Unsupported`](marquetry_base::ErrorKind::Unsupported) for so many elements in so many rows that they do not fit a batch.
pub(super) fn static_columns(
    plan: &ColumnPlan,
    number: usize,
    batch: &MutationBatch,
    rows: &Rows,
    statics: &Statics,
    budget: &mut Budget<'_>,
) -> Result<Vec<ColumnBatch>> {
    budget.charge(REPEAT_PRICE, 0, rows.count + 1);
    let parts = (0..batch.partitions.ends.len()).filter_map(|partition| {
        let of = rows.of_partition(partition);
        let first = batch.entries_of(partition).start;
        let is_here = batch.entries.kinds.get(first) == Some(&EntryKind::Static)
            && batch.entries_of(partition).contains(&first);
        let cells = match is_here {
            true => Some((&batch.columns[number], cells_of(&batch.columns[number], number_of(first)))),
            false if partition == 0 && batch.continues != Continues::Nothing => {
                statics.columns.get(number).map(|cells| (cells, 0..cells.len()))
            }
            false => None,
        };
        cells.filter(|_| !of.is_empty()).map(|(cells, range)| (of, cells, range))
    });
    match plan.shapes.leaf() {
        Some(_) if plan.multi == Multi::No => repeated(plan, parts, rows.count),
        _ => elements(plan, &batch.columns[number].values, parts, rows.count, budget),
    }
}

/// A column of one leaf.
fn repeated<'a>(
    plan: &ColumnPlan,
    parts: impl Iterator<Item = (Range<usize>, &'a Cells, Range<usize>)>,
    rows: usize,
) -> Result<Vec<ColumnBatch>> {
    let mut leaves = builders(plan, &[]);
    let mut decoder = Decoder::default();
    let mut done = 0;
    for (of, cells, range) in parts {
        let alive = range.clone().find(|cell| cells.tombstones.get(number_of(*cell)).is_none());
        let Some(cell) = alive else { continue };
        let mut bytes = Vec::new();
        if cells.empties.binary_search(&number_of(cell)).is_err() {
            cells.values.append_bytes(cell, &mut bytes);
        }
        leaves.iter_mut().for_each(|leaf| leaf.push_nulls(0, of.start - done));
        let (length, mut work) = (bytes.len(), usize::MAX);
        let bytes = Bytes::from(bytes);
        let buffer = leaves.iter_mut().map(|leaf| leaf.add_buffer(&bytes)).next().unwrap_or_default();
        let source = Source { bytes: &bytes, buffer };
        let found = decoder.begin(&plan.shapes, 0, source, 0..length, 0, &mut leaves, &mut work);
        if found == Progress::Done(Found::Nothing) {
            leaves.iter_mut().for_each(|leaf| leaf.push_null(0, 0));
        }
        leaves.iter_mut().for_each(|leaf| leaf.repeat(of.len() - 1));
        done = of.end;
    }
    leaves.iter_mut().for_each(|leaf| leaf.push_nulls(0, rows - done));
    finished(plan, &mut leaves, rows)
}

/// A column of several leaves, or cells: as if each row had them.
fn elements<'a>(
    plan: &ColumnPlan,
    like: &Values,
    parts: impl Iterator<Item = (Range<usize>, &'a Cells, Range<usize>)>,
    rows: usize,
    budget: &mut Budget<'_>,
) -> Result<Vec<ColumnBatch>> {
    let mut all = Cells { values: empty_like(like), ..Cells::default() };
    for (of, cells, range) in parts {
        if u64_of(of.len()).saturating_mul(bytes_of(cells)) > REPEATED_BYTES_MAX {
            return Err(Error::unsupported("a static column of many elements, in each of many rows"));
        }
        budget.charge(ELEMENT_PRICE, 0, of.len() * range.len());
        for row in of {
            append_cells(cells, range.clone(), number_of(row), &mut all);
        }
    }
    let mut filling = Filling::new(plan, &mut all)?;
    let each = Rows::each(rows);
    loop {
        if let Some(columns) = filling.step(plan, &mut all, &each, budget)? {
            return Ok(columns);
        }
    }
}

/// The cells of an entry.
pub(super) fn cells_of(cells: &Cells, entry: u32) -> Range<usize> {
    let start = cells.entries.partition_point(|it| *it < entry);
    let end = start + cells.entries.get(start..).unwrap_or_default().partition_point(|it| *it == entry);
    start..end
}
