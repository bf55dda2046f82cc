//! One row that several inputs have, or that something was deleted of.
//!
//! It is merged column by column, and in a complex column path by path: what the inputs have of a cell are *candidates*, of which one
//! counts. An input whose batch ends in the row goes on with its next one, so rows of any size take the memory of a batch.

use alloc::vec::Vec;
use core::cmp::Ordering;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Error, Limit, Limits, Price, Result};

use super::input::{Cell, Input, Poll};
use super::options::{Liveness, MergeOptions, Ties};
use super::output::{CELL_PRICE, ENTRY_PRICE, Output, Part};
use super::plan::Plan;
use super::rules::{Life, Marker, compare_cells, compare_counters, deletes, later, supersedes};
use crate::sstable::batch::{Deletion, EntryKind, MutationBatch, Values, number_of};
use crate::sstable::compare::compare_bytes;
use crate::sstable::counter;

/// The price of a look at a column of a row in one input.
const COLUMN_PRICE: Price = Price::per_kilovalue(9 << 10);
/// The price of comparing values.
const COMPARE_PRICE: Price = Price { kib: 100, kilovalue: 14 << 10 };
/// Bytes of values that are compared in one go.
const COMPARED_BYTES: usize = 64 << 10;
/// Columns or cells after which the host is asked whether it wants to go on.
const CELLS_AT_ONCE: u32 = 64;

/// A row that is merged.
#[derive(Debug)]
pub(super) struct Row {
    /// The inputs that have it.
    pub(super) versions: Vec<usize>,
    kind: EntryKind,
    marker: Marker,
    deletion: Option<Deletion>,
    shadowable: Option<Deletion>,
    /// The deletion of the row, or of what it is in; and with that of the complex column that is merged.
    active: Option<Deletion>,
    active_in_column: Option<Deletion>,
    column: usize,
    columns_end: usize,
    /// The deletion of the complex column is known, and its cells come next.
    is_in_column: bool,
    /// The row is in the output.
    is_begun: bool,
    candidates: Vec<usize>,
    contest: Option<Contest>,
    part: Option<Part>,
    /// A counter's value that is merged.
    shards: Vec<u8>,
}

/// Which of the candidates counts.
#[derive(Debug)]
struct Contest {
    best: Option<Best>,
    /// The next candidate, and how many bytes of its value are equal to the best one's.
    next: usize,
    compared: usize,
}

#[derive(Debug, Clone, Copy)]
struct Best {
    input: usize,
    cell: Cell,
    /// Its value is that of several counters.
    is_merged: bool,
}

/// How a part of the work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Done,
    /// An input must have its next batch.
    Need(usize),
    Yield,
}

/// What a row is merged with.
pub(super) struct Context<'a> {
    pub(super) plan: &'a Plan,
    pub(super) options: &'a MergeOptions,
    pub(super) inputs: &'a mut [Input],
    pub(super) output: &'a mut Output,
    pub(super) spent: &'a mut Vec<MutationBatch>,
    /// The first of the inputs that have the partition, and its deletion.
    pub(super) partition: (usize, Option<Deletion>),
    /// The partition is in the output.
    pub(super) is_partition_begun: &'a mut bool,
}

impl Row {
    pub(super) fn new() -> Row {
        Row {
            versions: Vec::new(),
            kind: EntryKind::Row,
            marker: Marker::NONE,
            deletion: None,
            shadowable: None,
            active: None,
            active_in_column: None,
            column: 0,
            columns_end: 0,
            is_in_column: false,
            is_begun: false,
            candidates: Vec::new(),
            contest: None,
            part: None,
            shards: Vec::new(),
        }
    }

    /// Begins a row that `versions` have, inside of what was deleted by `active`.
    pub(super) fn begin(&mut self, active: Option<Deletion>, context: &mut Context<'_>) {
        let live_at = context.options.live_at;
        let (mut marker, mut deletion, mut shadowable) = (Marker::NONE, None, None);
        for version in &self.versions {
            let input = &mut context.inputs[*version];
            self.kind = input.kind();
            let found = input.begin_row();
            if found.is_some() && found.supersedes(marker, context.options.ties) {
                marker = found;
            }
            let (entries, at) = (&input.batch.entries, number_of(input.entry));
            if !entries.deletions.is_empty() {
                deletion = later(deletion, entries.deletions.get(at));
            }
            if !entries.shadowables.is_empty() {
                shadowable = later(shadowable, entries.shadowables.get(at));
            }
        }
        // What was written after it brings the row back.
        shadowable = shadowable.filter(|shadowable| marker.timestamp <= shadowable.timestamp);
        deletion = deletion.filter(|deletion| supersedes(*deletion, active));
        shadowable = shadowable.filter(|shadowable| supersedes(*shadowable, later(active, deletion)));
        self.active = later(later(active, deletion), shadowable);
        if deletes(self.active, marker.timestamp) {
            marker = Marker::NONE;
        }
        let mut is_hidden = false;
        if let Some(now) = live_at {
            is_hidden = match context.options.liveness {
                Liveness::Anything => false,
                Liveness::NotMoved => marker.is_moved_at(now),
                Liveness::NotExpired => shadowable.is_some() || marker.is_some() && !marker.is_live_at(now),
                Liveness::Marker => !marker.is_live_at(now),
            };
            is_hidden &= self.kind == EntryKind::Row;
            (deletion, shadowable) = (None, None);
            marker = if marker.is_live_at(now) { marker } else { Marker::NONE };
        }
        (self.marker, self.deletion, self.shadowable) = (marker, deletion, shadowable);
        let columns = context.plan.columns_of(self.kind);
        // Of a row that is not alive, no cell is looked at.
        self.column = if is_hidden { columns.end } else { columns.start };
        self.columns_end = columns.end;
        (self.is_in_column, self.is_begun) = (false, false);
        // A static row exists only as far as it has cells.
        let is_live_static = live_at.is_some() && self.kind == EntryKind::Static;
        if (marker.is_some() || deletion.is_some() || shadowable.is_some()) && !is_live_static {
            self.put(context);
        }
    }

    /// Merges columns, as many as the budget pays for.
    pub(super) fn advance(&mut self, context: &mut Context<'_>, budget: &mut Budget<'_>) -> Result<Flow> {
        let mut count = 0;
        loop {
            let flow = self.advance_once(context, budget)?;
            if let Some(flow) = flow {
                return Ok(flow);
            }
            count += 1;
            if budget.left() == 0 || count % CELLS_AT_ONCE == 0 && budget.is_spent() {
                return Ok(Flow::Yield);
            }
        }
    }

    fn advance_once(&mut self, context: &mut Context<'_>, budget: &mut Budget<'_>) -> Result<Option<Flow>> {
        if let Some(part) = &mut self.part {
            let from = &context.inputs[part.input].batch.columns[self.column];
            if context.output.push_part(self.column, part, from, budget) {
                self.part = None;
                self.use_candidates(context);
            }
            return Ok(None);
        }
        if let Some(contest) = &mut self.contest {
            let is_over = contest.advance(
                (&self.candidates, self.column, self.active_in_column),
                &mut self.shards,
                (context.inputs, context.plan, context.options),
                budget,
            )?;
            if is_over {
                self.put_winner(context, budget)?;
            }
            return Ok(None);
        }
        if self.column == self.columns_end {
            // A row may go on in another batch without a cell.
            for version in &self.versions {
                if context.inputs[*version].end_row(context.spent) == Poll::Need {
                    return Ok(Some(Flow::Need(*version)));
                }
            }
            context.output.end_row();
            return Ok(Some(Flow::Done));
        }
        budget.charge(COLUMN_PRICE, 0, self.versions.len());
        match context.plan.columns[self.column].paths.is_some() {
            true => self.complex(context, budget),
            false => self.simple(context),
        }
    }

    /// Finds the candidates of a column with one cell a row.
    fn simple(&mut self, context: &mut Context<'_>) -> Result<Option<Flow>> {
        self.candidates.clear();
        for version in &self.versions {
            match context.inputs[*version].settle(self.column, false, context.spent) {
                Poll::Some => self.candidates.push(*version),
                Poll::End => {}
                Poll::Need => return Ok(Some(Flow::Need(*version))),
            }
        }
        if self.candidates.is_empty() {
            self.column += 1;
        } else {
            self.active_in_column = self.active;
            self.contest = Some(Contest::new());
        }
        Ok(None)
    }

    /// Finds the deletion of a complex column, and then the candidates of its next path.
    fn complex(&mut self, context: &mut Context<'_>, budget: &mut Budget<'_>) -> Result<Option<Flow>> {
        let column = self.column;
        self.candidates.clear();
        for version in &self.versions {
            let input = &mut context.inputs[*version];
            match input.settle(column, self.is_in_column, context.spent) {
                Poll::Some => self.candidates.push(*version),
                Poll::End => {}
                Poll::Need => return Ok(Some(Flow::Need(*version))),
            }
        }
        if !self.is_in_column {
            self.begin_complex(context);
            return Ok(None);
        }
        let Some(comparator) = &context.plan.columns[column].paths else { return Ok(None) };
        // Those with the least path.
        let (inputs, mut bytes, mut kept) = (&*context.inputs, 0, 0);
        for at in 0..self.candidates.len() {
            let version = self.candidates[at];
            let path = inputs[version].path(column);
            comparator.check(path)?;
            bytes += path.len();
            let found = match self.candidates.first().filter(|_| kept > 0) {
                Some(first) => comparator.compare(path, inputs[*first].path(column)),
                None => Ordering::Equal,
            };
            match found {
                Ordering::Less => kept = 0,
                Ordering::Equal => {}
                Ordering::Greater => continue,
            }
            self.candidates[kept] = version;
            kept += 1;
        }
        self.candidates.truncate(kept);
        budget.charge(COMPARE_PRICE, 2 * bytes, self.versions.len());
        if self.candidates.is_empty() {
            self.is_in_column = false;
            self.column += 1;
        } else {
            self.contest = Some(Contest::new());
        }
        Ok(None)
    }

    fn begin_complex(&mut self, context: &mut Context<'_>) {
        let mut deletion = None;
        for version in &self.versions {
            deletion = later(deletion, context.inputs[*version].complex_deletion(self.column));
        }
        self.active_in_column = self.active;
        if let Some(deletion) = deletion.filter(|deletion| supersedes(*deletion, self.active)) {
            self.active_in_column = Some(deletion);
            if context.options.live_at.is_none() {
                self.put(context);
                let entry = context.output.last_entry();
                context.output.batch.columns[self.column].deletions.push(entry, deletion);
            }
        }
        self.is_in_column = true;
    }

    /// Adds the row to the output, if it is not there.
    fn put(&mut self, context: &mut Context<'_>) {
        if self.is_begun {
            return;
        }
        self.is_begun = true;
        let Some(version) = self.versions.first() else { return };
        context.output.make_room(1, 0, context.plan);
        context.begin_partition();
        let input = &context.inputs[*version];
        let (entries, at) = (&input.batch.entries, input.entry);
        let bytes = context.plan.bytes_of(entries, at);
        context.output.begin_row(self.kind, self.marker, (entries, at), bytes);
        let entry = context.output.last_entry();
        let to = &mut context.output.batch.entries;
        if let Some(deletion) = self.deletion {
            to.deletions.push(entry, deletion);
        }
        if let Some(deletion) = self.shadowable {
            to.shadowables.push(entry, deletion);
        }
    }

    /// Adds the cell that counts to the output, unless it is deleted.
    fn put_winner(&mut self, context: &mut Context<'_>, budget: &mut Budget<'_>) -> Result<()> {
        let is_wanted =
            |best: &Best| context.options.live_at.is_none_or(|now| best.cell.life.is_live_at(now));
        let Some(best) = self.contest.take().and_then(|contest| contest.best).filter(is_wanted) else {
            self.use_candidates(context);
            return Ok(());
        };
        let (column, life) = (self.column, best.cell.life);
        self.put(context);
        let from = &context.inputs[best.input];
        let is_complex = context.plan.columns[column].paths.is_some();
        let path = is_complex.then(|| from.path(column));
        budget.charge(CELL_PRICE, path.map_or(0, <[u8]>::len), 1);
        context.output.push_cell(column, path, best.cell.timestamp, life, context.plan);
        if best.is_merged {
            context.output.push_bytes(column, &self.shards);
        } else {
            let cells = &from.batch.columns[column];
            let number = best.cell.number;
            if !context.output.push_value(column, (cells, number), best.cell.is_empty, budget)? {
                self.part = Some(Part::new(best.input, number));
                return Ok(());
            }
        }
        self.use_candidates(context);
        Ok(())
    }

    /// Moves past the candidates.
    fn use_candidates(&mut self, context: &mut Context<'_>) {
        if context.plan.columns[self.column].paths.is_none() {
            self.column += 1;
            return;
        }
        for version in &self.candidates {
            context.inputs[*version].use_cell(self.column);
        }
    }
}

impl Context<'_> {
    /// Adds the partition to the output, if it is not there.
    pub(super) fn begin_partition(&mut self) {
        if !*self.is_partition_begun {
            *self.is_partition_begun = true;
            let (input, deletion) = self.partition;
            let deletion = deletion.filter(|_| self.options.live_at.is_none());
            self.output.begin_partition(self.inputs[input].key(), deletion);
        }
    }
}

impl Contest {
    fn new() -> Contest {
        Contest { best: None, next: 0, compared: 0 }
    }

    /// Compares the next candidate, or a part of its value, with the best one. True after the last one.
    fn advance(
        &mut self,
        (candidates, column, active): (&[usize], usize, Option<Deletion>),
        shards: &mut Vec<u8>,
        (inputs, plan, options): (&mut [Input], &Plan, &MergeOptions),
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        let Some(input) = candidates.get(self.next).copied() else { return Ok(true) };
        let cell = inputs[input].cell(column);
        let challenger = Best { input, cell, is_merged: false };
        let is_last = self.next + 1 == candidates.len();
        if deletes(active, cell.timestamp) {
            self.next += 1;
            return Ok(is_last);
        }
        let Some(best) = self.best else {
            (self.best, self.next) = (Some(challenger), self.next + 1);
            return Ok(is_last);
        };
        let found = if plan.columns[column].is_counter {
            let times = ((best.cell.timestamp, best.cell.life), (cell.timestamp, cell.life));
            match compare_counters(times.0, times.1) {
                Some(found) => found,
                None => {
                    let merged = merge_counters((best, challenger), column, shards, inputs, &options.limits)?;
                    budget.charge(COMPARE_PRICE, 4 * shards.len(), 1);
                    self.best = Some(merged);
                    Ordering::Greater
                }
            }
        } else {
            match self.compare((best, challenger), column, inputs, options.ties, budget) {
                Some(found) => found,
                None => return Ok(false),
            }
        };
        if found.is_lt() {
            self.best = Some(challenger);
        }
        (self.next, self.compared) = (self.next + 1, 0);
        Ok(is_last)
    }

    /// Compares two cells. `None` if their values are long, and equal as far as they were compared.
    fn compare(
        &mut self,
        (best, challenger): (Best, Best),
        column: usize,
        inputs: &[Input],
        ties: Ties,
        budget: &mut Budget<'_>,
    ) -> Option<Ordering> {
        let (left, right) = (best.cell, challenger.cell);
        let found = compare_cells((left.timestamp, left.life), (right.timestamp, right.life), ties);
        if found.is_ne() || matches!(left.life, Life::Dead(_)) {
            return Some(found);
        }
        if left.is_empty || right.is_empty {
            return Some(right.is_empty.cmp(&left.is_empty));
        }
        let values = |best: Best| &inputs[best.input].batch.columns[column].values;
        let (left_values, right_values) = (values(best), values(challenger));
        let (Values::Strings(of_left), Values::Strings(of_right)) = (left_values, right_values) else {
            return Some(compare_bytes((left_values, left.number), (right_values, right.number)));
        };
        let rest = |bytes: Option<&[u8]>| bytes.map_or(0, <[u8]>::len);
        let (of_left, of_right) = (of_left.get(left.number), of_right.get(right.number));
        let end = self.compared + COMPARED_BYTES;
        let part = |bytes: Option<&[u8]>| {
            let length = rest(bytes);
            (self.compared.min(length), end.min(length))
        };
        let (left_part, right_part) = (part(of_left), part(of_right));
        let left_slice = of_left.unwrap_or_default().get(left_part.0..left_part.1).unwrap_or_default();
        let right_slice = of_right.unwrap_or_default().get(right_part.0..right_part.1).unwrap_or_default();
        budget.charge(COMPARE_PRICE, left_slice.len().min(right_slice.len()), 1);
        let found = left_slice.cmp(right_slice);
        if found.is_ne() || end >= rest(of_left).max(rest(of_right)) {
            return Some(found);
        }
        self.compared = end;
        None
    }
}

/// Merges the shards of two counters. What both come to is `shards`.
fn merge_counters(
    (best, other): (Best, Best),
    column: usize,
    shards: &mut Vec<u8>,
    inputs: &[Input],
    limits: &Limits,
) -> Result<Best> {
    let value = |best: Best| match &inputs[best.input].batch.columns[column].values {
        Values::Strings(strings) => Ok(strings.get(best.cell.number).unwrap_or_default()),
        _ => Err(Error::internal("a counter that is a number")),
    };
    let of_other = value(other)?;
    let merged = {
        let of_best = if best.is_merged { shards.as_slice() } else { value(best)? };
        for value in [of_best, of_other] {
            limits.check(Limit::StructureBytes, u64_of(value.len()))?;
        }
        counter::merge(of_best, of_other)?
    };
    *shards = merged;
    let cell = Cell { timestamp: best.cell.timestamp.max(other.cell.timestamp), ..best.cell };
    Ok(Best { cell, is_merged: true, ..best })
}

/// The price of a row: of what it is besides its cells, in each of its inputs.
pub(super) const ROW_PRICE: Price = ENTRY_PRICE;
