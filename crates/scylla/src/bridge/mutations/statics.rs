//! Static rows, whose values the `logical` mapping has in each row of their partition.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem;
use core::ops::Range;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Bytes, Price, Result};
use marquetry_parquet::batch::ColumnBatch;

use super::append::{SLICE_BYTES, append_cells, append_part, bytes_of, empty_like, move_cells};
use super::cells::{Filling, check_text};
use super::decode::{Decoder, Effort, Found, Progress};
use super::keys::{builders, finished};
use super::leaf::{LeafBuilder, Source};
use super::plan::ColumnPlan;
use super::rows::Rows;
use super::shape::{Kind, Multi};
use crate::sstable::batch::{Cells, Continues, EntryKind, MutationBatch, Strings, Values, number_of};

/// The price of a row that repeats a value, and of an element of one.
const REPEAT_PRICE: Price = Price::per_kilovalue(3 << 10);
const ELEMENT_PRICE: Price = Price { kib: 200, kilovalue: 40 << 10 };
/// Bytes of static collections and groups in the rows of one batch of Parquet, each of which repeats them. If a row alone has more, it is a batch.
const REPEATED_BYTES_MAX: u64 = 16 << 20;
/// Bytes of a cell besides those of its strings.
const CELL_BYTES: u64 = 32;

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

/// Static columns in the rows of a batch: in as many rows at a time as fit a batch of Parquet.
#[derive(Debug, Default)]
pub(super) struct Repeating {
    /// The rows that are being made.
    rows: Range<usize>,
    /// The column that is.
    number: usize,
    doing: Option<Doing>,
    /// Values of columns, by number, that the rows have null for, because the columns cannot hold them.
    pub(super) lost: Vec<(usize, u64)>,
}

#[derive(Debug)]
enum Doing {
    Leaf(Box<Leaf>),
    Elements(Box<Elements>),
}

/// Where static cells are, and the rows that repeat them.
#[derive(Clone, Copy)]
pub(super) struct Sources<'a> {
    pub(super) batch: &'a MutationBatch,
    pub(super) rows: &'a Rows,
    /// Of the partition that the batch goes on with.
    pub(super) statics: &'a Statics,
}

impl<'a> Sources<'a> {
    /// The cells of a static column, of this number, in a partition.
    fn cells(&self, number: usize, partition: usize) -> Option<(&'a Cells, Range<usize>)> {
        let Sources { batch, statics, .. } = *self;
        let entries = batch.entries_of(partition);
        let is_here = batch.entries.kinds.get(entries.start) == Some(&EntryKind::Static);
        if is_here && !entries.is_empty() {
            let cells = batch.columns.get(number)?;
            return Some((cells, cells_of(cells, number_of(entries.start))));
        }
        if partition > 0 || batch.continues == Continues::Nothing {
            return None;
        }
        statics.columns.get(number).map(|cells| (cells, 0..cells.len()))
    }

    /// The end of the rows from this one on that fit a batch of Parquet: at least one, if there is one.
    fn fitting(&self, plans: &[ColumnPlan], from: usize, budget: &mut Budget<'_>) -> usize {
        if plans.iter().all(is_leaf) {
            return self.rows.count;
        }
        let (mut end, mut left) = (from, REPEATED_BYTES_MAX);
        let mut partition = self.rows.partition_of(from).0;
        while end < self.rows.count {
            let of;
            (partition, of) = self.rows.partition_from(partition, end);
            let several = plans.iter().enumerate().filter(|(_, plan)| !is_leaf(plan));
            let parts = several.filter_map(|(number, _)| self.cells(number, partition));
            let bytes: u64 = parts.map(|(cells, range)| bytes_in(cells, &range)).sum();
            budget.charge(REPEAT_PRICE, 0, plans.len() + 1);
            let most = left.checked_div(bytes).and_then(|rows| usize::try_from(rows).ok());
            let rows = most.unwrap_or(usize::MAX).max(usize::from(end == from)).min(of - end);
            end += rows;
            left = left.saturating_sub(bytes.saturating_mul(u64_of(rows)));
            if end < of {
                break;
            }
        }
        end
    }
}

impl Repeating {
    /// Makes the static columns of the next rows; those rows once they are complete, `None` if the budget is spent first.
    ///
    /// # Errors
    ///
    /// As [`Filling::step`]'s.
    pub(super) fn step(
        &mut self,
        plans: &[ColumnPlan],
        sources: Sources<'_>,
        made: &mut Vec<ColumnBatch>,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Range<usize>>> {
        if self.number == 0 && self.doing.is_none() {
            self.rows.end = sources.fitting(plans, self.rows.start, budget);
        }
        while let Some(plan) = plans.get(self.number) {
            let (number, rows) = (self.number, self.rows.clone());
            let doing = self.doing.get_or_insert_with(|| match is_leaf(plan) {
                true => Doing::Leaf(Box::new(Leaf::new(plan, rows.start))),
                false => Doing::Elements(Box::new(Elements::new(sources.batch, number, rows.start))),
            });
            let (columns, lost) = match doing {
                Doing::Leaf(leaf) => (leaf.step(plan, number, sources, &rows, budget)?, leaf.lost),
                Doing::Elements(elements) => {
                    let columns = elements.step(plan, number, sources, &rows, budget)?;
                    (columns, elements.filling.as_ref().map_or(0, |filling| filling.lost))
                }
            };
            let Some(columns) = columns else { return Ok(None) };
            self.lost.extend((lost > 0).then_some((number, lost)));
            made.extend(columns);
            (self.doing, self.number) = (None, number + 1);
        }
        let rows = self.rows.clone();
        (self.rows, self.number) = (rows.end..rows.end, 0);
        Ok(Some(rows))
    }
}

/// A column of one leaf: a value is made once for all rows of its partition.
#[derive(Debug)]
struct Leaf {
    leaves: Vec<LeafBuilder>,
    decoder: Decoder,
    row: usize,
    /// A partition before that of the row, or that one.
    partition: usize,
    /// Of its value, what is copied, and the rest.
    copied: Strings,
    part: usize,
    /// A value that is copied, and how much of it is UTF-8.
    value: Option<Bytes>,
    checked: usize,
    /// Rows that have null for a value that the column cannot hold.
    lost: u64,
}

impl Leaf {
    fn new(plan: &ColumnPlan, row: usize) -> Leaf {
        Leaf {
            leaves: builders(plan, &[]),
            decoder: Decoder::default(),
            row,
            partition: 0,
            copied: Strings::default(),
            part: 0,
            value: None,
            checked: 0,
            lost: 0,
        }
    }

    fn step(
        &mut self,
        plan: &ColumnPlan,
        number: usize,
        sources: Sources<'_>,
        rows: &Range<usize>,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Vec<ColumnBatch>>> {
        while self.row < rows.end {
            let (partition, of) = sources.rows.partition_from(self.partition, self.row);
            self.partition = partition;
            let times = of.min(rows.end) - self.row;
            let alive = sources.cells(number, partition).and_then(|(cells, mut range)| {
                let is_alive = |cell: &usize| cells.tombstones.get(number_of(*cell)).is_none();
                range.find(is_alive).map(|cell| (cells, cell))
            });
            match alive {
                Some((cells, cell)) => {
                    let Some(bytes) = self.value(cells, cell, budget) else { return Ok(None) };
                    let is_text = plan.shapes.leaf() == Some(Kind::Text);
                    let Some(is_valid) =
                        (if is_text { check_text(&bytes, &mut self.checked, budget) } else { Some(true) })
                    else {
                        self.value = Some(bytes);
                        return Ok(None);
                    };
                    let is_lost = !self.push(plan, &bytes, is_valid, budget);
                    self.lost += if is_lost { u64_of(times) } else { 0 };
                    self.leaves.iter_mut().for_each(|leaf| leaf.repeat(times - 1));
                    self.checked = 0;
                }
                None => self.leaves.iter_mut().for_each(|leaf| leaf.push_nulls(0, times)),
            }
            budget.charge(REPEAT_PRICE, 0, times + 1);
            self.row += times;
            if budget.is_spent() && self.row < rows.end {
                return Ok(None);
            }
        }
        finished(plan, &mut self.leaves, rows.len()).map(Some)
    }

    /// The bytes of a value; `None` if the budget is spent before they are copied.
    fn value(&mut self, cells: &Cells, cell: usize, budget: &mut Budget<'_>) -> Option<Bytes> {
        if let Some(value) = self.value.take() {
            return Some(value);
        }
        let Values::Strings(strings) = &cells.values else {
            let mut bytes = Vec::new();
            if cells.empties.binary_search(&number_of(cell)).is_err() {
                cells.values.append_bytes(cell, &mut bytes);
            }
            return Some(bytes.into());
        };
        loop {
            let before = self.copied.bytes.len();
            let is_complete = append_part(strings, cell, &mut self.part, SLICE_BYTES, &mut self.copied);
            budget.charge(ELEMENT_PRICE, self.copied.bytes.len() - before, 0);
            if is_complete {
                return Some(mem::take(&mut self.copied).bytes.into());
            }
            if budget.is_spent() {
                return None;
            }
        }
    }

    /// Adds the value of a row; false if the column cannot hold it, and has null for it.
    fn push(&mut self, plan: &ColumnPlan, bytes: &Bytes, is_valid: bool, budget: &mut Budget<'_>) -> bool {
        let Leaf { leaves, decoder, .. } = self;
        let buffer = leaves.iter_mut().map(|leaf| leaf.add_buffer(bytes)).next().unwrap_or_default();
        let kind = plan.shapes.leaf();
        if is_valid && matches!(kind, Some(Kind::Text | Kind::Bytes)) {
            for leaf in leaves.iter_mut() {
                leaf.values.push_view(bytes, buffer, 0);
                leaf.close(0);
            }
            return true;
        }
        let mut work = Effort::new(usize::MAX);
        let source = Source { bytes, buffer };
        let is_nothing = !is_valid
            || decoder.begin(&plan.shapes, 0, source, 0..bytes.len(), 0, leaves, &mut work)
                == Progress::Done(Found::Nothing);
        if is_nothing {
            leaves.iter_mut().for_each(|leaf| leaf.push_null(0, 0));
        }
        budget.charge(ELEMENT_PRICE, 0, work.done());
        !is_nothing
    }
}

/// A column of several leaves, or cells: as if each row had them.
#[derive(Debug)]
struct Elements {
    all: Cells,
    row: usize,
    /// Cells of that row that are copied, and bytes of the next one.
    cell: usize,
    part: usize,
    filling: Option<Filling>,
}

impl Elements {
    fn new(batch: &MutationBatch, number: usize, row: usize) -> Elements {
        let like = batch.columns.get(number).map(|cells| empty_like(&cells.values));
        let all = Cells { values: like.unwrap_or_default(), ..Cells::default() };
        Elements { all, row, cell: 0, part: 0, filling: None }
    }

    fn step(
        &mut self,
        plan: &ColumnPlan,
        number: usize,
        sources: Sources<'_>,
        rows: &Range<usize>,
        budget: &mut Budget<'_>,
    ) -> Result<Option<Vec<ColumnBatch>>> {
        while self.row < rows.end {
            let (partition, of) = sources.rows.partition_of(self.row);
            match sources.cells(number, partition) {
                Some((cells, range)) => {
                    let start = range.start + self.cell;
                    let before = bytes_of(&self.all);
                    let row = number_of(self.row - rows.start);
                    let end = move_cells(cells, start..range.end, &mut self.part, row, &mut self.all);
                    let moved = usize::try_from(bytes_of(&self.all) - before).unwrap_or(usize::MAX);
                    budget.charge(ELEMENT_PRICE, moved, end - start + 1);
                    let is_complete = end == range.end;
                    self.cell = if is_complete { 0 } else { end - range.start };
                    self.row += usize::from(is_complete);
                }
                None => self.row = of.min(rows.end),
            }
            if budget.is_spent() {
                return Ok(None);
            }
        }
        if self.filling.is_none() {
            self.filling = Some(Filling::new(plan, &mut self.all)?);
        }
        let Some(filling) = &mut self.filling else { return Ok(None) };
        filling.step(plan, &mut self.all, &Rows::each(rows.len()), budget)
    }
}

fn is_leaf(plan: &ColumnPlan) -> bool {
    plan.multi == Multi::No && plan.shapes.leaf().is_some()
}

/// About the bytes of some cells, and of what is made of them.
fn bytes_in(cells: &Cells, range: &Range<usize>) -> u64 {
    let in_strings = |strings: &Strings| {
        let first = strings.range(range.start).unwrap_or_default().start;
        let last = range.end.checked_sub(1).and_then(|last| strings.range(last)).unwrap_or_default();
        if range.is_empty() { 0 } else { last.end.saturating_sub(first) }
    };
    let values = if let Values::Strings(strings) = &cells.values { in_strings(strings) } else { 0 };
    u64_of(values + in_strings(&cells.paths)) + CELL_BYTES * u64_of(range.len())
}

/// The cells of an entry.
pub(super) fn cells_of(cells: &Cells, entry: u32) -> Range<usize> {
    let start = cells.entries.partition_point(|it| *it < entry);
    let end = start + cells.entries.get(start..).unwrap_or_default().partition_point(|it| *it == entry);
    start..end
}
