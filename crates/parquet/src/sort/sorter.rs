//! Batches in, the same rows in order out.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{
    Budget, Bytes, Codec, Codecs, Error, Failed, Limits, Machine, Object, Price, Result, Step, check_supply,
};

use super::group::{Group, Grouping};
use super::key::Keys;
use super::producer::{Block, Common, Producer, Run};
use super::run::RunWork;
use super::stored::Storing;
use crate::batch::Batch;
use crate::batch::store::{rows_max, value_bytes};
use crate::format::{Compression, Encoding, SortingColumn};
use crate::going::Going;
use crate::schema::Schema;
use crate::write::{ColumnOptions, Fed, FileWriter, WriteOptions};

/// Sorts rows: takes batches, and then hands out the same rows in order. The sort is stable.
///
/// ```text
/// feed(batch) -> Taken | Full(batch)      when step answers Ready(Sorted::Room)
/// finish()                                after the last one
/// step(budget) -> Ready(Sorted::Room) | Ready(Sorted::Rows(batch)) | Append(spill, bytes) | Need(demand) | Yield | Done | error
/// ```
///
/// Batches have all leaves of the schema, as [`FileWriter::feed`] takes them. In the output, flat columns are spaced
/// and nested ones have levels.
///
/// Rows are held until they take [`SortOptions::memory_bytes`]; then they are appended to the spill object in runs, each
/// of half as many bytes, and read back after the last row has arrived. If they never take as much, nothing is written.
pub struct Sorter {
    common: Common,
    options: SortOptions,
    state: State,
    fed: Option<Batch>,
    is_finished: bool,
    /// Maximum rows of a batch that is handed out, and of one of a block.
    batch_rows: usize,
    block_rows: usize,
    /// The last rows that were taken, which become a block.
    group: Group,
    /// What is held besides, and its bytes.
    blocks: Vec<Block>,
    held: u64,
    /// How much of that is half of the memory: the first run.
    half: Option<Half>,
    /// Runs are written elsewhere, and the one that is.
    shares: bool,
    outside: Outside,
    /// Nothing can be done before it is.
    is_waiting: bool,
    /// Bytes of rows that are being written.
    spilling: u64,
    /// Rows of the blocks, and the bytes of one, on the average, of those that were held last.
    held_rows: u64,
    row_bytes: u64,
    /// Rows that were taken.
    rows: u64,
    /// Bytes in the spill object.
    spilled: u64,
    /// Runs in the order that their rows came in. Those that were merged of others come first.
    merged: Vec<Run>,
    runs: VecDeque<Run>,
    failed: Failed,
}

/// How rows are sorted.
#[derive(Debug, Clone)]
pub struct SortOptions {
    /// The approximate bytes of rows held before they are spilled; merging runs takes as much. However few they are, a batch
    /// is held, and two runs are merged at once.
    pub memory_bytes: u64,
    /// How runs are compressed.
    pub compression: Compression,
}

impl Default for SortOptions {
    fn default() -> SortOptions {
        SortOptions { memory_bytes: 512 << 20, compression: Compression::Codec(Codec::Lz4Raw) }
    }
}

/// What a [`Sorter`] answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Sorted {
    /// There is room for a batch; feed one, or [finish](Sorter::finish).
    Room,
    /// The next rows in order.
    Rows(Batch),
}

enum State {
    /// Rows of a batch that is handed out are limited by what a row takes: by these leaves, from this one on, and those
    /// before it take so many bytes.
    Measuring {
        leaf: usize,
        row_bytes: usize,
    },
    Filling,
    /// The batch that was fed is made one of which any row can be taken.
    Storing(Box<Storing>),
    /// The rows of the last batch are sorted, from this one on.
    Sorting(usize),
    /// The group becomes a block.
    Grouping(Box<Grouping>),
    /// Rows are written as a run.
    Spilling {
        work: Box<RunWork>,
        is_merged: bool,
    },
    /// Rows are handed out.
    Sending(Box<Producer>),
    End,
}

/// A part of what is held: the first blocks.
#[derive(Debug, Clone, Copy)]
struct Half {
    blocks: usize,
    held: u64,
    rows: u64,
}

/// A run that is written elsewhere.
#[derive(Default)]
enum Outside {
    #[default]
    None,
    /// It waits for the host.
    Ready(Box<RunWork>),
    Away,
}

/// Blocks or runs that are merged at once: each of them is looked at for each batch that is handed out.
const SOURCES_MAX: usize = 4096;

/// Bytes and rows of a row group of a run: of each run that is merged, about so much is held, some of it more than once.
const GROUP_BYTES_MAX: u64 = 2 << 20;
const GROUP_BYTES_MIN: u64 = 64 << 10;
const GROUP_ROWS_MAX: u64 = 64 << 10;
/// How often a row group is held: compressed, its pages, and the batch.
const GROUP_TIMES: u64 = 4;
/// Bytes of a page that are not values, about, and so of a row group for each column.
const COLUMN_BYTES: u64 = 1 << 10;

/// A batch that is held is more than the half of it: with less, a half without a batch would become a run, again and again.
const MEMORY_BYTES_MIN: u64 = 2;

/// Rows and bytes of a batch that is handed out, at most, and rows of one of a block.
const BATCH_ROWS: usize = 8192;
const BATCH_BYTES: usize = 64 << 20;
const BLOCK_ROWS: usize = 32 << 10;

/// The price of measuring a leaf, and how many are measured at a time.
const LEAF_PRICE: Price = Price::per_kilovalue(20 << 10);
const LEAVES_AT_ONCE: usize = 1024;

impl Sorter {
    /// A sorter of rows of `schema` by these leaves, the most significant first. `spill` must be empty.
    ///
    /// # Errors
    ///
    /// As [`Keys::new`].
    pub fn new(
        schema: Arc<Schema>,
        by: &[SortingColumn],
        codecs: Arc<dyn Codecs>,
        spill: Object,
        options: SortOptions,
    ) -> Result<Sorter> {
        let keys = Keys::new(&schema, by)?;
        let memory_bytes = options.memory_bytes.max(MEMORY_BYTES_MIN);
        let options = SortOptions { memory_bytes, ..options };
        Ok(Sorter {
            common: Common { schema, keys, codecs, spill },
            options,
            batch_rows: BATCH_ROWS,
            block_rows: BLOCK_ROWS,
            state: State::Measuring { leaf: 0, row_bytes: 1 },
            fed: None,
            is_finished: false,
            group: Group::default(),
            blocks: Vec::new(),
            held: 0,
            half: None,
            shares: false,
            outside: Outside::None,
            is_waiting: false,
            spilling: 0,
            held_rows: 0,
            row_bytes: 1,
            rows: 0,
            spilled: 0,
            merged: Vec::new(),
            runs: VecDeque::new(),
            failed: Failed::default(),
        })
    }

    /// Hands over rows. There is room for one batch at a time.
    ///
    /// # Errors
    ///
    /// `Misuse` after [`Sorter::finish`], and for a batch of another number of columns. Other mismatches with the
    /// schema are returned by the steps that process it. Also the sorter's earlier failure.
    pub fn feed(&mut self, batch: Batch) -> Result<Fed> {
        self.failed.check()?;
        if self.is_finished {
            return Err(Error::misuse("rows for what is finished"));
        }
        batch.check_columns(&self.common.schema)?;
        if self.fed.is_some() || !matches!(self.state, State::Measuring { .. } | State::Filling) {
            return Ok(Fed::Full(batch));
        }
        if batch.rows > 0 {
            self.fed = Some(batch);
        }
        Ok(Fed::Taken)
    }

    /// Ends the input: nothing more will be fed.
    pub fn finish(&mut self) {
        self.is_finished = true;
    }

    /// Rows that were taken so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes that were written to the spill object so far.
    pub fn spilled_bytes(&self) -> u64 {
        self.spilled
    }

    /// Lets the host have runs written elsewhere while more rows are collected: from now on the sorter hands out the
    /// [work](RunWork). The rows come in the same order, and in the same batches.
    ///
    /// ```text
    /// next_run()                   a run to be written, which any thread may do
    /// return_run(work)             once it is done
    /// awaits_run()                 after a step that returned Yield: only next_run and return_run lead on
    /// ```
    ///
    /// Runs that are merged to longer ones are not shared.
    pub fn share(&mut self) {
        self.shares = true;
    }

    /// The run to be written, if there is one.
    pub fn next_run(&mut self) -> Option<RunWork> {
        match core::mem::replace(&mut self.outside, Outside::Away) {
            Outside::Ready(work) => Some(*work),
            other => {
                self.outside = other;
                None
            }
        }
    }

    /// Takes back what has written a run.
    ///
    /// # Errors
    ///
    /// `Misuse` for a run that is not complete, or not of this sorter.
    pub fn return_run(&mut self, work: RunWork) -> Result<()> {
        match (&self.outside, work.run()) {
            (Outside::Away, Some(run)) if run.start == self.spilled => {
                self.outside = Outside::None;
                self.end_run(run, false);
                Ok(())
            }
            _ => Err(Error::misuse("a run that is not complete, or of another sorter")),
        }
    }

    /// Whether the last step ended because nothing can be done before a run is [returned](Sorter::return_run).
    pub fn awaits_run(&self) -> bool {
        self.is_waiting
    }

    /// Runs that are in the spill object and not merged yet.
    pub fn runs(&self) -> usize {
        self.runs.len() + self.merged.len()
    }

    /// The approximate bytes of the rows that it holds.
    pub fn held(&self) -> u64 {
        self.group.held() + self.held + self.spilling
    }

    fn advance(&mut self, budget: &mut Budget<'_>) -> Result<Step<Sorted>> {
        self.is_waiting = false;
        loop {
            let answer = match &mut self.state {
                State::Measuring { .. } => {
                    self.measure(budget);
                    None
                }
                State::Filling => self.fill()?,
                State::Storing(storing) => {
                    let stored = storing.step(&self.common.schema, budget);
                    if self.in_input(stored)? {
                        self.hold();
                    }
                    None
                }
                State::Sorting(first) => {
                    let sorted = self.group.sort(first, &self.common.keys, budget);
                    let is_unpaid = sorted.as_ref().is_ok_and(Option::is_none);
                    match self.in_input(sorted)? {
                        Some(rows) => (self.rows, self.state) = (self.rows + rows, State::Filling),
                        None => {}
                    }
                    is_unpaid.then_some(Step::Yield)
                }
                State::Grouping(grouping) => match grouping.step(&self.common, budget)? {
                    false => Some(Step::Yield),
                    true => {
                        self.end_block();
                        None
                    }
                },
                State::Spilling { .. } => self.spill(budget)?,
                State::Sending(producer) => match producer.step(&self.common, budget)? {
                    Going::Done(Some(batch)) => Some(Step::Ready(Sorted::Rows(batch))),
                    Going::Need(demand) => Some(Step::Need(demand)),
                    Going::Yield => Some(Step::Yield),
                    Going::Done(None) => {
                        self.state = State::End;
                        None
                    }
                },
                State::End => Some(Step::Done),
            };
            if let Some(answer) = answer {
                return Ok(answer);
            }
            if budget.is_spent() {
                return Ok(Step::Yield);
            }
        }
    }

    /// Measures a row, a slice of its leaves.
    fn measure(&mut self, budget: &mut Budget<'_>) {
        let State::Measuring { leaf, row_bytes } = &mut self.state else { return };
        let leaves = self.common.schema.leaves();
        let end = leaves.len().min(*leaf + LEAVES_AT_ONCE);
        for at in *leaf..end {
            let physical_type = leaves[at].physical_type;
            *row_bytes = row_bytes.saturating_add(value_bytes(physical_type));
            self.block_rows = rows_max(physical_type).min(self.block_rows);
        }
        budget.charge(LEAF_PRICE, 0, end - *leaf);
        *leaf = end;
        if end == leaves.len() {
            self.block_rows = (BATCH_BYTES / *row_bytes).clamp(1, self.block_rows);
            self.batch_rows = self.block_rows.min(self.batch_rows);
            self.state = State::Filling;
        }
    }

    /// Decides what is done next: nothing is half done.
    fn fill(&mut self) -> Result<Option<Step<Sorted>>> {
        let is_outside = !matches!(self.outside, Outside::None);
        let is_spilling = is_outside || self.runs() > 0;
        let memory = self.options.memory_bytes;
        if self.half.is_none() && self.held >= memory / 2 {
            self.half = Some(Half { blocks: self.blocks.len(), held: self.held, rows: self.held_rows });
        }
        // While a run is written, there is room for another.
        let is_full =
            self.held >= if is_spilling { memory / 2 } else { memory } || self.blocks.len() >= SOURCES_MAX;
        let is_last = self.is_finished && self.fed.is_none();
        let held = self.group.held() + self.held;
        if self.group.is_full(self.block_rows) || !self.group.is_empty() && (is_last || held >= memory) {
            self.state = State::Grouping(Box::new(Grouping::new(&mut self.group, self.block_rows)));
        } else if is_full {
            if is_outside {
                return Ok(self.wait());
            }
            self.begin_run(is_spilling)?;
        } else if let Some(batch) = self.fed.take() {
            self.state = State::Storing(Box::new(Group::storing(batch)));
        } else if !self.is_finished {
            return Ok(Some(Step::Ready(Sorted::Room)));
        } else if is_outside {
            return Ok(self.wait());
        } else {
            self.merge()?;
        }
        Ok(None)
    }

    fn wait(&mut self) -> Option<Step<Sorted>> {
        self.is_waiting = true;
        Some(Step::Yield)
    }

    /// The batch can be held.
    fn hold(&mut self) {
        if let State::Storing(storing) = core::mem::replace(&mut self.state, State::Sorting(0)) {
            self.group.add(storing.finish());
        }
    }

    /// The group is a block.
    fn end_block(&mut self) {
        if let State::Grouping(grouping) = core::mem::replace(&mut self.state, State::Filling) {
            let block = grouping.finish();
            self.held += block.iter().map(|stored| stored.held).sum::<u64>();
            self.held_rows += block.iter().map(|stored| u64_of(stored.rows)).sum::<u64>();
            self.blocks.push(block);
        }
    }

    /// An error of a batch that was fed tells the row among all that were.
    fn in_input<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| match error.place().row {
            Some(row) => {
                let number = self.rows + row;
                error.replaced(|place| place.row = Some(number))
            }
            None => error,
        })
    }

    /// The blocks become a run, all of them or the first half.
    fn begin_run(&mut self, is_all: bool) -> Result<()> {
        let mut blocks = core::mem::take(&mut self.blocks);
        let (mut held, mut rows) = (self.held, self.held_rows);
        if let Some(half) = self.half.take().filter(|half| !is_all && half.blocks < blocks.len()) {
            self.blocks = blocks.split_off(half.blocks);
            (held, rows) = (half.held, half.rows);
        }
        self.row_bytes = held.checked_div(rows).unwrap_or(0).max(1);
        (self.held, self.held_rows, self.spilling) = (self.held - held, self.held_rows - rows, held);
        let producer = Producer::of(&[], blocks, &self.common, self.batch_rows)?;
        if self.shares {
            self.outside = Outside::Ready(Box::new(self.run(producer)?));
            return Ok(());
        }
        self.write(producer, false)
    }

    fn run(&self, producer: Producer) -> Result<RunWork> {
        Ok(RunWork::new(self.common.clone(), producer, self.writer()?, self.spilled))
    }

    fn write(&mut self, producer: Producer, is_merged: bool) -> Result<()> {
        self.state = State::Spilling { work: Box::new(self.run(producer)?), is_merged };
        Ok(())
    }

    /// A run is in the spill object.
    fn end_run(&mut self, run: Run, is_merged: bool) {
        (self.spilled, self.spilling) = (run.end, 0);
        if is_merged {
            self.merged.push(run);
        } else {
            self.runs.push_back(run);
        }
    }

    /// Bytes of a row group of a run.
    fn group_bytes(&self) -> u64 {
        let share = (self.options.memory_bytes / 64).clamp(GROUP_BYTES_MIN, GROUP_BYTES_MAX);
        share.max(u64_of(self.common.schema.leaves().len()) * COLUMN_BYTES)
    }

    /// A writer of a run.
    fn writer(&self) -> Result<FileWriter> {
        let group_bytes = self.group_bytes();
        let options = WriteOptions {
            column: ColumnOptions {
                compression: self.options.compression,
                encoding: Some(Encoding::Plain),
                dictionary: false,
                bounds: false,
                ..ColumnOptions::default()
            },
            row_group_bytes: group_bytes,
            row_group_rows: (group_bytes / self.row_bytes).clamp(1, GROUP_ROWS_MAX),
            page_index: false,
            // It is read here.
            limits: Limits::TRUSTED,
            ..WriteOptions::default()
        };
        let (schema, codecs) = (Arc::clone(&self.common.schema), Arc::clone(&self.common.codecs));
        FileWriter::new(self.common.spill, schema, codecs, options)
    }

    /// Runs that are merged at once.
    fn runs_max(&self) -> usize {
        let runs = self.options.memory_bytes / (GROUP_TIMES * self.group_bytes());
        usize_of(runs).unwrap_or(usize::MAX).clamp(2, SOURCES_MAX)
    }

    /// Merges everything, if it is not too much; else the blocks become a run, or some runs a longer one.
    fn merge(&mut self) -> Result<()> {
        let most = self.runs_max();
        // Runs take memory, too.
        let memory = self.options.memory_bytes;
        let taken = u64_of(self.runs()).saturating_mul(memory / u64_of(most));
        let has_room = taken == 0 || self.blocks.is_empty() || self.held <= memory.saturating_sub(taken);
        if self.runs() <= most && has_room {
            let runs: Vec<Run> = self.merged.drain(..).chain(self.runs.drain(..)).collect();
            let blocks = core::mem::take(&mut self.blocks);
            let producer = Producer::of(&runs, blocks, &self.common, self.batch_rows)?;
            (self.held, self.state) = (0, State::Sending(Box::new(producer)));
            return Ok(());
        }
        if !self.blocks.is_empty() {
            return self.begin_run(true);
        }
        if self.runs.is_empty() {
            self.runs = core::mem::take(&mut self.merged).into();
        }
        let runs: Vec<Run> = self.runs.drain(..most.min(self.runs.len())).collect();
        match &*runs {
            // Nothing is gained by one.
            [only] => self.merged.push(only.clone()),
            runs => self.write(Producer::of(runs, Vec::new(), &self.common, self.batch_rows)?, true)?,
        }
        Ok(())
    }

    /// Writes a run.
    fn spill(&mut self, budget: &mut Budget<'_>) -> Result<Option<Step<Sorted>>> {
        let State::Spilling { work, is_merged } = &mut self.state else { return Ok(None) };
        let answer = work.advance(budget)?;
        self.spilled = work.position();
        let (Some(Step::Done), Some(run), is_merged) = (&answer, work.run(), *is_merged) else {
            return Ok(answer.map(|step| step.map(|()| Sorted::Room)));
        };
        self.end_run(run, is_merged);
        self.state = State::Filling;
        Ok(None)
    }
}

impl Machine for Sorter {
    type Product = Sorted;

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Sorted>> {
        Failed::run(self, |machine| &mut machine.failed, |machine| machine.advance(budget))
    }

    fn supply(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()> {
        if object != self.common.spill {
            return Err(Error::misuse("an object that this machine does not read"));
        }
        check_supply(&range, &bytes, Some(self.spilled))?;
        match &mut self.state {
            State::Spilling { work, .. } => work.supply(object, range, bytes),
            State::Sending(producer) => producer.supply(object, &range, &bytes),
            _ => Ok(()),
        }
    }

    fn supply_length(&mut self, _object: Object, _length: u64) -> Result<()> {
        Err(Error::misuse("a length that was not asked for"))
    }

    fn fail(&mut self, _object: Object, _range: Range<u64>, reason: Error) {
        self.failed.set(reason);
    }
}
