//! Many SSTables as one: their batches, merged.
//!
//! ```text
//!  DataReader ──► batches of the table ──┐
//!  DataReader ──► batches of the table ──┼──► Merger ──► batches of the table, in the order of tokens, keys and clustering values
//!  …                                   ──┘
//! ```
//!
//! Each cell, row marker and deletion that the inputs have is in the output once, unless it is *shadowed*: a newer one took its place, or
//! something deletes it that is as new or newer. Nothing is purged: tombstones and what has expired stay, as in a compaction that may drop
//! nothing. Or, with [`MergeOptions::live_at`], the output is what a SELECT would return at that time: neither tombstones and expired cells,
//! nor rows without anything alive (in views, [`Liveness`] says, without a live marker). (Static rows stay entries of their own. A partition of which only they are alive has no others.)
//!
//! # Which write counts
//!
//! | of | the one that counts |
//! |---|---|
//! | cells of the same row, column and path | the newest; of equal write times, a tombstone before a cell that expires before one that does not; then the later local deletion time; then [see `Ties`]; then the greater value, by its bytes, unsigned |
//! | counters | all: of each shard the one with the later clock, a global one before a local one (which are added) before a remote one; but a tombstone before all, however old |
//! | row markers | as cells; one that is expired for good (of views) before others |
//! | deletions | the newest; then the later local deletion time |
//! | a shadowable deletion of a row | as others, unless the row marker is newer than it |
//! | bounds of ranges | where the newest deletion that is open in any input changes, there is a bound; so equal ranges that meet become one |
//!
//! These are the rules of Cassandra since 3.0.19, 3.11.5 and 4.0 (`Cells.java`, `Row.java`, `RangeTombstoneMarker.java`, `CounterContext.java`),
//! and of ScyllaDB (`atomic_cell.cc`, `mutation_partition.cc`). Where they differ:
//!
//! * of two cells with equal write times and expiry, ScyllaDB and the newest Cassandra take the one with the lower TTL, others the greater
//!   value: [`Ties`];
//! * a row of ScyllaDB may have a shadowable deletion *and* another one, one of Cassandra has either. Both are kept here, as ScyllaDB does;
//!   Cassandra drops the other one if the shadowable one is newer, and what it deleted may be back when the row is;
//! * before those versions, Cassandra compared values before expiry times, and took what had expired when it compared for a tombstone.
//!
//! Inputs must be sorted. What only one input has is copied as it is, without a look at its cells, so it is as consistent as that input is.
//! Merged batches say nothing of places in files ([`Partitions::offsets`](super::batch::Partitions::offsets) are 0).
//!
//! # How it works
//!
//! Inputs wait in a heap by their next partition. Those with the same one are a *group*, and wait in another heap by their next entry.
//! Entries at the same place are merged: bounds by what is open then, rows cell by cell (`row.rs`). A run of partitions, or of rows,
//! that come before all others' is copied in arrays (`output.rs`), and a batch that is such a run is handed out itself. So the output of one
//! input is what came in, if nothing need be dropped.
//!
//! In memory are one batch of each input, two where a batch ends inside of a partition, and those that are filled.

mod heap;
mod input;
mod options;
mod output;
mod plan;
mod row;
mod rules;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::Range;

use marquetry_base::{Budget, Error, Failed, Limit, Price, Release, Result, release_all};

use self::heap::Heap;
use self::input::{Cursor, Input, Poll, Traits};
use self::output::{ENTRY_PRICE, Output};
use self::plan::{Plan, side};
use self::row::{Context, Flow, ROW_PRICE, Row};
use self::rules::supersedes;
use super::TableColumns;
use super::batch::{Continues, Deletion, EntryKind, MutationBatch, number_of};

pub use self::options::{Liveness, MergeOptions, Partitioner, Ties};
pub(crate) use self::rules::{Life, Marker, compare_cells, deletes, later};

/// The price of a token: of the key's bytes.
const TOKEN_PRICE: Price = Price { kib: 1 << 10, kilovalue: 25 << 10 };
/// The price of comparing the places of two entries or partitions, and of their bytes.
const ORDER_PRICE: Price = Price { kib: 100, kilovalue: 15 << 10 };
/// The price of a look at an entry, or a column, of a new batch.
const LOOK_PRICE: Price = Price::per_kilovalue(4 << 10);
/// Entries, or cells, that are copied in one go.
const COPIED_AT_ONCE: usize = 2048;
/// Batches that are kept for whoever wants to fill them again.
const SPENT_MAX: usize = 4;

/// What a step of a [`Merger`] ended with.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "as in `Step`, a product is moved once")]
pub enum MergeStep {
    /// A batch.
    Ready(MutationBatch),
    /// The input of this number must be [fed](Merger::feed) or [finished](Merger::finish).
    Need(usize),
    /// The budget is spent.
    Yield,
    /// Nothing more will come.
    Done,
}

/// Merges the batches of SSTables. See the [module](self).
///
/// Each input may be fed one batch before it is asked for. Batches do not depend on when that happens, nor on budgets.
#[derive(Debug)]
pub struct Merger {
    plan: Plan,
    options: MergeOptions,
    inputs: Vec<Input>,
    output: Output,
    /// Batches of inputs that were used up.
    spent: Vec<MutationBatch>,
    state: State,
    /// Inputs whose next partition is not known yet; and the others, by that.
    waiting: Vec<usize>,
    partitions: Heap,
    /// The inputs that have the partition; those whose next entry is not known yet; and the others, by that.
    group: Vec<usize>,
    entries_waiting: Vec<usize>,
    entries: Heap,
    /// The partition's deletion, that of the range that is open, and in how many inputs one is open.
    partition_deletion: Option<Deletion>,
    open: Option<Deletion>,
    opens: usize,
    is_partition_begun: bool,
    row: Row,
    failed: Failed,
}

#[derive(Debug)]
enum State {
    /// The next partition.
    Partitions,
    /// Partitions that only this input has.
    Through(usize),
    /// The next entry of the group's partition.
    Entries,
    /// A row of it.
    Row,
    /// A run of entries that are copied.
    Copy(Copy),
    Done,
}

/// Entries of an input that are copied.
#[derive(Debug)]
struct Copy {
    input: usize,
    entries: Range<usize>,
    /// The number that the first one has in the output.
    base: usize,
    /// How many of them, and of the columns, are copied.
    copied: usize,
    column: usize,
    /// The first partition after those that are copied; `None` if they are a part of one.
    partition_end: Option<usize>,
}

impl Merger {
    /// A merger of so many inputs.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](marquetry_base::ErrorKind::Unsupported) if a key or path is of a type that is
    /// [not sorted](super::compare). [`ErrorKind::LimitExceeded`](marquetry_base::ErrorKind::LimitExceeded) for too many inputs of too many
    /// columns.
    #[expect(clippy::needless_pass_by_value, reason = "as other machines' constructors have it")]
    pub fn new(table: Arc<TableColumns>, inputs: usize, options: MergeOptions) -> Result<Merger> {
        let plan = Plan::new(&table)?;
        plan.check_cursors(inputs, size_of::<Cursor>(), &options.limits)?;
        Ok(Merger {
            inputs: (0..inputs).map(|_| Input::new(plan.columns.len())).collect(),
            output: Output::new(&plan),
            spent: Vec::new(),
            state: State::Partitions,
            waiting: (0..inputs).rev().collect(),
            partitions: Heap::default(),
            group: Vec::new(),
            entries_waiting: Vec::new(),
            entries: Heap::default(),
            partition_deletion: None,
            open: None,
            opens: 0,
            is_partition_begun: false,
            row: Row::new(),
            failed: Failed::default(),
            plan,
            options,
        })
    }

    /// Whether an input may be fed.
    pub fn has_room(&self, input: usize) -> bool {
        self.inputs.get(input).is_some_and(Input::has_room)
    }

    /// Gives an input its next batch.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Misuse`](marquetry_base::ErrorKind::Misuse) for a batch that is not one of the table, or does not go on with the one before it,
    /// or that was not asked for. [`ErrorKind::LimitExceeded`](marquetry_base::ErrorKind::LimitExceeded) if all that is held is too large.
    pub fn feed(&mut self, input: usize, batch: MutationBatch) -> Result<()> {
        self.failed.check()?;
        if !self.has_room(input) {
            return Err(Error::misuse("a batch that a merger has no room for"));
        }
        self.plan.check(&batch)?;
        self.inputs[input].feed(batch)?;
        let held = self.inputs.iter().fold(0, |sum: u64, input| sum.saturating_add(input.held));
        self.options.limits.check(Limit::TotalBytes, held).map_err(|error| self.failed.set(error))
    }

    /// Says that an input has no more batches.
    pub fn finish(&mut self, input: usize) {
        if let Some(input) = self.inputs.get_mut(input) {
            input.is_finished = true;
        }
    }

    /// Goes on merging.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`](marquetry_base::ErrorKind::Corrupt) for inputs that are not in order, or have ranges that do not end.
    pub fn step(&mut self, budget: &mut Budget<'_>) -> Result<MergeStep> {
        Failed::run(self, |machine| &mut machine.failed, |machine| machine.advance(budget))
    }

    /// Gives back a batch that is no longer wanted: its arrays are filled again.
    pub fn recycle(&mut self, mut batch: MutationBatch) {
        if self.plan.check(&batch).is_ok() {
            batch.clear_small(512 << 10);
            self.output.spare = Some(batch);
        }
    }

    /// A batch of an input that was used up, for [its reader to fill again](super::DataReader::recycle). Those that nobody takes are released.
    pub fn take_spent(&mut self) -> Option<MutationBatch> {
        self.spent.pop()
    }

    fn advance(&mut self, budget: &mut Budget<'_>) -> Result<MergeStep> {
        loop {
            if let Some(batch) = self.output.ready.pop_front() {
                return Ok(MergeStep::Ready(batch));
            }
            if self.spent.len() > SPENT_MAX {
                if self.spent[0].release(budget) {
                    self.spent.swap_remove(0);
                }
                if budget.is_spent() {
                    return Ok(MergeStep::Yield);
                }
                continue;
            }
            let flow = match &mut self.state {
                State::Partitions => self.next_partition(budget)?,
                State::Through(input) => {
                    let input = *input;
                    self.through(input, budget)
                }
                State::Entries => self.next_entry(budget)?,
                State::Row => self.merge_row(budget)?,
                State::Copy(_) => self.copy(budget),
                State::Done => return Ok(MergeStep::Done),
            };
            match flow {
                Flow::Done if !budget.is_spent() || !self.output.ready.is_empty() => {}
                Flow::Done | Flow::Yield => return Ok(MergeStep::Yield),
                Flow::Need(input) => return Ok(MergeStep::Need(input)),
            }
        }
    }

    /// Finds the inputs that have the next partition.
    fn next_partition(&mut self, budget: &mut Budget<'_>) -> Result<Flow> {
        while let Some(number) = self.waiting.last().copied() {
            let input = &mut self.inputs[number];
            match input.poll_partition(&mut self.spent)? {
                Poll::Need => return Ok(Flow::Need(number)),
                Poll::End => {}
                Poll::Some => {
                    let token = self.options.partitioner.token(input.key());
                    budget.charge(TOKEN_PRICE, input.key().len(), 1);
                    if token < input.token {
                        return Err(not_sorted("partitions"));
                    }
                    input.token = token;
                    budget.charge(ORDER_PRICE, input.key().len(), self.partitions.comparisons());
                    let inputs = &self.inputs;
                    let less =
                        |left: usize, right: usize| compare_partitions(&inputs[left], &inputs[right]).is_lt();
                    self.partitions.push(number, less);
                }
            }
            self.waiting.pop();
            if budget.is_spent() {
                return Ok(Flow::Yield);
            }
        }
        let inputs = &self.inputs;
        let less = |left: usize, right: usize| compare_partitions(&inputs[left], &inputs[right]).is_lt();
        self.group.clear();
        while let Some(first) = self.partitions.first() {
            if self.group.first().is_some_and(|group| less(*group, first)) {
                break;
            }
            budget.charge(ORDER_PRICE, inputs[first].key().len(), self.partitions.comparisons());
            self.group.extend(self.partitions.pop(less));
        }
        let Some(first) = self.group.first().copied() else {
            self.output.finish(&self.plan);
            self.state = State::Done;
            return Ok(Flow::Done);
        };
        self.state = if self.group.len() == 1 && self.can_copy_partitions(first, budget) {
            State::Through(first)
        } else {
            self.begin_group();
            State::Entries
        };
        Ok(Flow::Done)
    }

    /// Whether the partitions of an input's batch can be copied as they are.
    fn can_copy_partitions(&mut self, input: usize, budget: &mut Budget<'_>) -> bool {
        if self.options.live_at.is_none() {
            return true;
        }
        self.look(input, budget).has_plain_partitions
    }

    fn look(&mut self, input: usize, budget: &mut Budget<'_>) -> Traits {
        let input = &mut self.inputs[input];
        let (traits, is_new) = input.traits();
        if is_new {
            budget.charge(LOOK_PRICE, 0, 2 * input.batch.entries.kinds.len() + input.batch.columns.len());
        }
        traits
    }

    /// Begins a partition that is merged entry by entry.
    fn begin_group(&mut self) {
        self.partition_deletion = None;
        for number in &self.group {
            let input = &mut self.inputs[*number];
            self.partition_deletion = later(self.partition_deletion, input.partition_deletion());
            input.open = None;
        }
        (self.open, self.opens) = (None, 0);
        self.entries_waiting.clone_from(&self.group);
        self.is_partition_begun = false;
        if self.options.live_at.is_none() {
            self.output.make_room(0, 1, &self.plan);
            self.context().1.begin_partition();
        }
    }

    fn context(&mut self) -> (&mut Row, Context<'_>) {
        let context = Context {
            plan: &self.plan,
            options: &self.options,
            inputs: &mut self.inputs,
            output: &mut self.output,
            spent: &mut self.spent,
            partition: (self.group.first().copied().unwrap_or_default(), self.partition_deletion),
            is_partition_begun: &mut self.is_partition_begun,
        };
        (&mut self.row, context)
    }

    /// Goes on with partitions that only one input has, up to one that is not before the others' next ones.
    fn through(&mut self, number: usize, budget: &mut Budget<'_>) -> Flow {
        let input = &mut self.inputs[number];
        if input.partition >= input.batch.partitions.ends.len() {
            match input.poll_continuation(&mut self.spent) {
                Poll::Need => return Flow::Need(number),
                Poll::End => {
                    self.output.end_partition();
                    self.waiting.push(number);
                    self.state = State::Partitions;
                    return Flow::Done;
                }
                Poll::Some => {}
            }
            if !self.can_copy_partitions(number, budget) {
                return self.leave_through(number);
            }
        }
        let mut end = self.run_end(number, budget);
        let input = &self.inputs[number];
        if self.options.live_at.is_some() && input.batch.is_open && end == input.batch.partitions.ends.len() {
            // Of a row that goes on in the next batch, or comes there first, something may be deleted.
            let continues = match input.batch.entries_of(end - 1).is_empty() {
                true => Continues::Entry,
                false => match input.next_continues() {
                    None => return Flow::Need(number),
                    Some(continues) => continues,
                },
            };
            match continues {
                Continues::Entry if end == input.partition + 1 => return self.leave_through(number),
                Continues::Entry => end -= 1,
                Continues::Nothing | Continues::Partition => {}
            }
        }
        let input = &mut self.inputs[number];
        let (start, from) = (input.partition, input.entry);
        let batch = &input.batch;
        let is_open = batch.is_open && end == batch.partitions.ends.len();
        if start == 0 && from == 0 && end == batch.partitions.ends.len() {
            self.output.pass(input.take(), &self.plan);
            if !is_open {
                self.waiting.push(number);
                self.state = State::Partitions;
            }
            return Flow::Done;
        }
        let to = batch.entries_of(end - 1).end;
        self.output.make_room(to - from, end - start, &self.plan);
        // A row that the last batch ended with goes on in the last entry of the output, or else as its first.
        let (mut base, mut copied) = (self.output.batch.entries.kinds.len(), 0);
        if start == 0 && from == 0 && batch.continues == Continues::Entry {
            if base > 0 {
                (base, copied) = (base - 1, 1);
            } else {
                self.output.batch.continues = Continues::Entry;
            }
        }
        self.output.copy_partitions(batch, start..end, (from, base));
        budget.charge(ENTRY_PRICE, batch.partitions.keys.bytes.len() / 8, end - start);
        self.state = State::Copy(Copy {
            input: number,
            entries: from..to,
            base,
            copied,
            column: 0,
            partition_end: Some(end),
        });
        Flow::Done
    }

    /// Goes on entry by entry with the partition that is next, of which something may be in the output.
    fn leave_through(&mut self, number: usize) -> Flow {
        let input = &self.inputs[number];
        let is_begun = input.partition == 0 && input.batch.continues != Continues::Nothing;
        self.begin_group();
        self.is_partition_begun = is_begun;
        self.state = State::Entries;
        Flow::Done
    }

    /// The end of the partitions of an input's batch that come before all others' next ones. The first one does.
    fn run_end(&mut self, number: usize, budget: &mut Budget<'_>) -> usize {
        let input = &self.inputs[number];
        let keys = &input.batch.partitions.keys;
        let (start, count) = (input.partition, input.batch.partitions.ends.len());
        let Some(other) = self.partitions.first().map(|other| &self.inputs[other]) else { return count };
        let mut is_before = |partition: usize| {
            let key = keys.get(partition).unwrap_or_default();
            budget.charge(TOKEN_PRICE, key.len(), 1);
            let token = self.options.partitioner.token(key);
            token.cmp(&other.token).then_with(|| key.cmp(other.key())).is_lt()
        };
        if start + 1 >= count || is_before(count - 1) {
            return count;
        }
        let most = count.min(start + COPIED_AT_ONCE);
        (start + 1..most).find(|partition| !is_before(*partition)).unwrap_or(most)
    }

    /// Copies a slice of a run.
    fn copy(&mut self, budget: &mut Budget<'_>) -> Flow {
        let State::Copy(copy) = &mut self.state else { return Flow::Done };
        let input = &mut self.inputs[copy.input];
        let count = copy.entries.len();
        if copy.copied < count {
            let end = count.min(copy.copied + COPIED_AT_ONCE);
            let range = copy.entries.start + copy.copied..copy.entries.start + end;
            self.output.copy_entries(&input.batch.entries, &range, budget);
            copy.copied = end;
            return Flow::Done;
        }
        while copy.column < self.plan.columns.len() {
            let (range, is_all) = input.cells_of(copy.column, &copy.entries, COPIED_AT_ONCE);
            let cells = &input.batch.columns[copy.column];
            self.output.copy_cells(copy.column, cells, &range, (copy.entries.start, copy.base), budget);
            if is_all {
                self.output.copy_deletions(copy.column, cells, &copy.entries, copy.base);
                copy.column += 1;
            }
            if budget.left() == 0 {
                return Flow::Yield;
            }
        }
        let number = copy.input;
        match copy.partition_end {
            Some(end) => {
                let is_open = input.batch.is_open && end == input.batch.partitions.ends.len();
                input.partition = end;
                if is_open {
                    self.state = State::Through(number);
                } else {
                    self.output.end_partition();
                    self.waiting.push(number);
                    self.state = State::Partitions;
                }
            }
            None => {
                input.entry = copy.entries.end;
                self.output.close_entries();
                self.entries_waiting.push(number);
                self.state = State::Entries;
            }
        }
        Flow::Done
    }

    /// Finds the inputs that have the next entry of the partition.
    fn next_entry(&mut self, budget: &mut Budget<'_>) -> Result<Flow> {
        while let Some(number) = self.entries_waiting.last().copied() {
            let input = &mut self.inputs[number];
            match input.poll_entry(&mut self.spent) {
                Poll::Need => return Ok(Flow::Need(number)),
                Poll::End => {}
                Poll::Some => {
                    let (entries, at) = (&input.batch.entries, input.entry);
                    self.plan.check_entry(entries, at)?;
                    let bytes = self.plan.bytes_of(entries, at);
                    budget.charge(ORDER_PRICE, bytes, self.entries.comparisons() + 1);
                    let (inputs, plan) = (&self.inputs, &self.plan);
                    let less = |left: usize, right: usize| {
                        compare_entries(plan, &inputs[left], &inputs[right]).is_lt()
                    };
                    self.entries.push(number, less);
                }
            }
            self.entries_waiting.pop();
        }
        let Some(first) = self.entries.first() else {
            return self.end_group();
        };
        if let Some(end) = self.entry_run(first, budget) {
            let (inputs, plan) = (&self.inputs, &self.plan);
            self.entries.pop(|left, right| compare_entries(plan, &inputs[left], &inputs[right]).is_lt());
            let entries = self.inputs[first].entry..end;
            self.output.make_room(entries.len(), 1, &self.plan);
            self.context().1.begin_partition();
            let base = self.output.batch.entries.kinds.len();
            self.state =
                State::Copy(Copy { input: first, entries, base, copied: 0, column: 0, partition_end: None });
            return Ok(Flow::Done);
        }
        let (inputs, plan) = (&self.inputs, &self.plan);
        let less = |left: usize, right: usize| compare_entries(plan, &inputs[left], &inputs[right]).is_lt();
        let versions = &mut self.row.versions;
        versions.clear();
        while let Some(first) = self.entries.first() {
            if versions.first().is_some_and(|version| less(*version, first)) {
                break;
            }
            let bytes = plan.bytes_of(&inputs[first].batch.entries, inputs[first].entry);
            budget.charge(ORDER_PRICE, bytes, self.entries.comparisons());
            versions.extend(self.entries.pop(less));
        }
        budget.charge(ROW_PRICE, 0, versions.len());
        for version in &*versions {
            let input = &inputs[*version];
            if input.entry + 1 < input.end {
                let entries = &input.batch.entries;
                if plan.compare((entries, input.entry), (entries, input.entry + 1)).is_ge() {
                    return Err(not_sorted("rows"));
                }
            }
        }
        if inputs[first].kind().is_row() {
            let active = later(self.partition_deletion, self.open);
            let (row, mut context) = self.context();
            row.begin(active, &mut context);
            self.state = State::Row;
        } else {
            self.merge_bounds();
        }
        Ok(Flow::Done)
    }

    /// The end of the rows of an input that come before all others' next entries, and can be copied as they are; `None` if there are none.
    fn entry_run(&mut self, number: usize, budget: &mut Budget<'_>) -> Option<usize> {
        let input = &self.inputs[number];
        let is_live = self.options.live_at.is_some();
        let is_undeleted = self.opens == 0
            && (self.partition_deletion.is_none()
                || !is_live && self.partition_deletion == input.partition_deletion());
        // The last row of a batch may go on in the next one.
        let limit = if input.is_open_partition() { input.end - 1 } else { input.end };
        if !is_undeleted || input.entry >= limit || input.kind() != EntryKind::Row {
            return None;
        }
        let traits = self.look(number, budget);
        if traits.is_large || is_live && !traits.has_plain_rows {
            return None;
        }
        let (inputs, plan) = (&self.inputs, &self.plan);
        let less = |left: usize, right: usize| compare_entries(plan, &inputs[left], &inputs[right]).is_lt();
        let input = &inputs[number];
        let entries = &input.batch.entries;
        let mut end = limit;
        if let Some(other) = self.entries.second(less) {
            let other = &inputs[other];
            let price =
                |budget: &mut Budget<'_>, at| budget.charge(ORDER_PRICE, plan.bytes_of(entries, at), 1);
            let is_before =
                |at: usize| plan.compare((entries, at), (&other.batch.entries, other.entry)).is_lt();
            price(budget, input.entry);
            if !is_before(input.entry) {
                return None;
            }
            // Steps that double, and then halves.
            let (mut last, mut step) = (input.entry, 1);
            end = loop {
                let probe = last + step;
                if probe >= limit {
                    break limit;
                }
                price(budget, probe);
                if !is_before(probe) {
                    break probe;
                }
                (last, step) = (probe, 2 * step);
            };
            let mut first = last + 1;
            while first < end {
                let middle = first + (end - first) / 2;
                price(budget, middle);
                if is_before(middle) { first = middle + 1 } else { end = middle }
            }
        }
        let kinds = entries.kinds.get(input.entry..end).unwrap_or_default();
        budget.charge(LOOK_PRICE, 0, kinds.len() / 8);
        Some(input.entry + kinds.iter().position(|kind| *kind != EntryKind::Row).unwrap_or(kinds.len()))
    }

    fn end_group(&mut self) -> Result<Flow> {
        if self.opens > 0 {
            return Err(Error::corrupt("a range of deleted rows that does not end"));
        }
        if self.is_partition_begun {
            self.output.end_partition();
        }
        for number in &self.group {
            self.inputs[*number].partition += 1;
        }
        self.waiting.append(&mut self.group);
        self.state = State::Partitions;
        Ok(Flow::Done)
    }

    fn merge_row(&mut self, budget: &mut Budget<'_>) -> Result<Flow> {
        let (row, mut context) = self.context();
        let flow = row.advance(&mut context, budget)?;
        if flow == Flow::Done {
            self.next_versions();
            self.state = State::Entries;
        }
        Ok(flow)
    }

    /// Goes on with the inputs that had the entry.
    fn next_versions(&mut self) {
        for version in &self.row.versions {
            self.inputs[*version].entry += 1;
        }
        self.entries_waiting.append(&mut self.row.versions);
    }

    /// Merges bounds at the same place: there is one in the output if the deletion changes.
    fn merge_bounds(&mut self) {
        let before = self.open;
        for version in &self.row.versions {
            let input = &mut self.inputs[*version];
            let (kind, at, entries) = (input.kind(), number_of(input.entry), &input.batch.entries);
            let open = match kind {
                EntryKind::InclusiveStart | EntryKind::ExclusiveStart => entries.deletions.get(at),
                kind if kind.is_boundary() => entries.starts.get(at),
                _ => None,
            };
            self.opens -= usize::from(input.open.is_some());
            self.opens += usize::from(open.is_some());
            input.open = open;
        }
        let opens = self.group.iter().map(|number| self.inputs[*number].open);
        let newest = opens.fold(None, later);
        let is_deleted = |open: &Deletion| {
            self.partition_deletion.is_some_and(|deletion| supersedes(deletion, Some(*open)))
        };
        self.open = newest.filter(|open| !is_deleted(open));
        if before != self.open && self.options.live_at.is_none() {
            self.put_bound(before);
        }
        self.next_versions();
    }

    fn put_bound(&mut self, before: Option<Deletion>) {
        let Some(version) = self.row.versions.first().copied() else { return };
        self.output.make_room(1, 0, &self.plan);
        self.context().1.begin_partition();
        let input = &self.inputs[version];
        let is_before = side(input.kind()).is_lt();
        let kind = match (before.is_some(), self.open.is_some(), is_before) {
            (false, _, true) => EntryKind::InclusiveStart,
            (false, _, false) => EntryKind::ExclusiveStart,
            (true, false, true) => EntryKind::ExclusiveEnd,
            (true, false, false) => EntryKind::InclusiveEnd,
            (true, true, true) => EntryKind::ExclusiveEndInclusiveStart,
            (true, true, false) => EntryKind::InclusiveEndExclusiveStart,
        };
        let (entries, at) = (&input.batch.entries, input.entry);
        let bytes = self.plan.bytes_of(entries, at);
        let entry = self.output.push_entry(kind, (entries, at), bytes);
        let to = &mut self.output.batch.entries;
        if let Some(size) = entries.prefixes.get(number_of(at)) {
            to.prefixes.push(entry, size);
        }
        if let Some(deletion) = before.or(self.open) {
            to.deletions.push(entry, deletion);
        }
        if let Some(open) = self.open.filter(|_| before.is_some()) {
            to.starts.push(entry, open);
        }
    }
}

fn compare_partitions(left: &Input, right: &Input) -> Ordering {
    left.token.cmp(&right.token).then_with(|| left.key().cmp(right.key()))
}

fn compare_entries(plan: &Plan, left: &Input, right: &Input) -> Ordering {
    plan.compare((&left.batch.entries, left.entry), (&right.batch.entries, right.entry))
}

#[cold]
fn not_sorted(what: &str) -> Error {
    Error::corrupt(alloc::format!("{what} that are not in order"))
}

/// For a merger that is no longer wanted, or has failed.
impl Release for Merger {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.failed.set_released();
        for input in &mut self.inputs {
            let (batch, next) = input.parts();
            if !release_all(&mut [batch, next], budget) {
                return false;
            }
        }
        release_all(&mut [&mut self.output, &mut self.spent], budget)
    }
}
