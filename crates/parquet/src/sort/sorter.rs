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

use super::dictionaries::Dictionaries;
use super::gather::Kept;
use super::group::{Group, GroupWork, Sizing};
use super::key::Keys;
use super::producer::{Block, Common, Producer, Run};
use super::run::RunWork;
use super::stored::Storing;
use super::work::{Kind, SortWork};
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
/// Rows are held until they take seven eighths of [`SortOptions::memory_bytes`]; then they are appended to the spill object
/// in runs, each of half as many bytes, and read back after the last row has arrived. If they never take as much, nothing is
/// written.
pub struct Sorter {
    common: Common,
    options: SortOptions,
    state: State,
    fed: Option<Batch>,
    /// A batch that was looked at, and is in no group yet.
    sized: Option<(Batch, Sizing)>,
    is_finished: bool,
    /// Maximum rows of a batch that is handed out, and of one of a block.
    batch_rows: usize,
    block_rows: usize,
    /// The last rows that were taken, which become a block when there are enough of them; and whether they are to become one now.
    group: Group,
    flushes: bool,
    /// What columns keep of their dictionaries.
    dictionaries: Dictionaries,
    /// Groups that were begun, and the blocks of the last ones, as far as they are done.
    groups: u64,
    arriving: VecDeque<Arriving>,
    arriving_bytes: u64,
    /// Blocks that are held, and their bytes.
    blocks: Vec<Block>,
    batches: usize,
    held: u64,
    /// How much of that is half of the memory: the first run.
    half: Option<Half>,
    /// Work is done elsewhere, and that which nobody has taken yet.
    shares: bool,
    ready: VecDeque<SortWork>,
    /// A run is among it, or was taken.
    is_run_away: bool,
    /// Nothing can be done before work is returned.
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
    /// Rows that will come, about, if that is known: if it is seen that they will not fit, runs are written from the beginning, while more
    /// rows are collected.
    pub rows: Option<u64>,
    /// Hand out values as indices and a dictionary, where all batches had them so and their dictionaries were small.
    pub keep_dictionaries: bool,
}

impl Default for SortOptions {
    fn default() -> SortOptions {
        SortOptions {
            memory_bytes: 512 << 20,
            compression: Compression::Codec(Codec::Lz4Raw),
            rows: None,
            keep_dictionaries: false,
        }
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
    /// The strings of a small batch are copied: otherwise many batches would hold what little of each points into.
    Copying(Box<Storing>, Vec<bool>),
    /// The bytes of a batch are counted, and the entries of its dictionaries looked up.
    Sizing(Batch, Sizing),
    /// The columns' dictionaries are put together.
    Settling,
    /// A group is sorted, or a run written: one that was merged of others, or the blocks.
    Working {
        work: Box<SortWork>,
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

/// A group, its bytes, and its block once it is there.
struct Arriving {
    bytes: u64,
    block: Option<Result<Block>>,
}

/// Groups and their bytes, by the memory, whose blocks are not counted yet: as many, however many threads there are, so that runs do not
/// depend on it.
const AHEAD: usize = 8;
const AHEAD_PART: u64 = 8;
/// Bytes of dictionaries, by the memory.
const DICTIONARIES_PART: u64 = 16;
/// Bytes of a group, at most: it is sorted within the cache.
const GROUP_BYTES_MAX: u64 = 4 << 20;
/// Batches of fewer rows are copied as they come.
const FEW_ROWS: usize = 1024;

/// Batches in memory, or runs, that are merged at once: each of them is looked at for each batch that is handed out.
const SOURCES_MAX: usize = 4096;

/// Bytes and rows of a row group of a run: of each run that is merged, about so much is held, some of it more than once.
const ROW_GROUP_BYTES_MAX: u64 = 2 << 20;
const ROW_GROUP_BYTES_MIN: u64 = 64 << 10;
const ROW_GROUP_ROWS_MAX: u64 = 64 << 10;
/// How often a row group is held: compressed, its pages, and the batch.
const ROW_GROUP_TIMES: u64 = 4;
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
        let keys = Arc::new(Keys::new(&schema, by)?);
        let memory_bytes = options.memory_bytes.max(MEMORY_BYTES_MIN);
        let options = SortOptions { memory_bytes, ..options };
        Ok(Sorter {
            common: Common { schema, keys, codecs, spill },
            options,
            batch_rows: BATCH_ROWS,
            block_rows: BLOCK_ROWS,
            state: State::Measuring { leaf: 0, row_bytes: 1 },
            fed: None,
            sized: None,
            is_finished: false,
            group: Group::default(),
            flushes: false,
            dictionaries: Dictionaries::new(memory_bytes / DICTIONARIES_PART),
            groups: 0,
            arriving: VecDeque::new(),
            arriving_bytes: 0,
            blocks: Vec::new(),
            batches: 0,
            held: 0,
            half: None,
            shares: false,
            ready: VecDeque::new(),
            is_run_away: false,
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
            (self.fed, self.flushes) = (Some(batch), false);
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

    /// Bytes of the runs that were written to the spill object so far.
    pub fn spilled_bytes(&self) -> u64 {
        self.spilled
    }

    /// Has everything looked at that was taken: the next `Room` is answered once all of it is sorted, and after what is wrong with it. Ends
    /// with the next batch.
    pub fn flush(&mut self) {
        self.flushes = true;
    }

    /// Lets the host have work done elsewhere while more rows are collected: from now on the sorter hands it
    /// [out](SortWork). The rows come in the same order, and in the same batches.
    ///
    /// ```text
    /// next_work()                   work to be done, which any thread may do
    /// return_work(work)             once it is done
    /// awaits_work()                 after a step that returned Yield: only next_work and return_work lead on
    /// ```
    ///
    /// What is merged in the end is not shared, nor are runs that are merged to longer ones.
    pub fn share(&mut self) {
        self.shares = true;
    }

    /// Work to be done, if there is some.
    pub fn next_work(&mut self) -> Option<SortWork> {
        self.ready.pop_front()
    }

    /// Takes back work that is done.
    ///
    /// # Errors
    ///
    /// `Misuse` for work that is not complete, or that this sorter does not wait for.
    pub fn return_work(&mut self, work: SortWork) -> Result<()> {
        self.accept(work, false)
    }

    /// Whether the last step ended because nothing can be done before work is [returned](Sorter::return_work).
    pub fn awaits_work(&self) -> bool {
        self.is_waiting
    }

    /// Runs that are in the spill object and not merged yet.
    pub fn runs(&self) -> usize {
        self.runs.len() + self.merged.len()
    }

    /// The approximate bytes of the rows that it holds.
    pub fn held(&self) -> u64 {
        self.group.bytes() + self.arriving_bytes + self.held + self.spilling + self.dictionaries.bytes()
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
                State::Copying(storing, _) => {
                    if storing.step(&self.common.schema, budget)? {
                        self.copied();
                    }
                    None
                }
                State::Sizing(batch, sizing) => {
                    let (arrived, schema) = ((&*batch, &self.group), &self.common.schema);
                    if sizing.step(arrived, schema, &mut self.dictionaries, budget)?
                        && let State::Sizing(batch, sizing) =
                            core::mem::replace(&mut self.state, State::Filling)
                    {
                        self.sized = Some((batch, sizing));
                    }
                    None
                }
                State::Settling => {
                    if self.dictionaries.settle(budget)? {
                        self.state = State::Filling;
                    }
                    None
                }
                State::Working { .. } => self.work(budget)?,
                State::Sending(producer) => match producer.step(&self.common, budget)? {
                    Going::Done(Some(rows)) => Some(Step::Ready(Sorted::Rows(rows.batch))),
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
            if !leaves[at].is_flat() {
                // Where their rows begin is looked up in one go.
                self.block_rows = self.block_rows.min(BATCH_ROWS);
            }
            self.dictionaries.push(&leaves[at]);
        }
        budget.charge(LEAF_PRICE, 0, end - *leaf);
        *leaf = end;
        if end == leaves.len() {
            // Rows are compared by values.
            self.common.keys.leaves().for_each(|leaf| self.dictionaries.close(leaf));
            budget.charge(LEAF_PRICE, 0, self.common.keys.len());
            self.block_rows = (BATCH_BYTES / *row_bytes).clamp(1, self.block_rows);
            self.batch_rows = self.block_rows.min(self.batch_rows);
            self.state = State::Filling;
        }
    }

    /// Decides what is done next: nothing is half done.
    fn fill(&mut self) -> Result<Option<Step<Sorted>>> {
        let memory = self.options.memory_bytes;
        let has_all = self.fed.is_none() && self.sized.is_none();
        let is_last = self.is_finished && has_all;
        let flushes = is_last || self.flushes && has_all;
        let has_other = self.sized.as_ref().is_some_and(|(_, sizing)| sizing.differs());
        // Blocks are counted in the order of their groups, as late as there is room for more of them.
        let ahead = memory / AHEAD_PART;
        // Dictionaries may take a little more than is meant for them.
        let room = memory - ahead - self.dictionaries.bytes().min(memory / DICTIONARIES_PART);
        let has_many = self.arriving.len() >= AHEAD || self.arriving_bytes >= ahead;
        if !self.arriving.is_empty() && (has_many || flushes && self.group.is_empty()) {
            return self.hold();
        }
        if self.half.is_none() && self.held >= room / 2 {
            self.half = Some(Half { blocks: self.blocks.len(), held: self.held, rows: self.held_rows });
        }
        // While a run is written, there is room for another.
        let is_spilling = self.is_run_away || self.runs() > 0 || self.will_spill(room);
        let is_full = self.held >= if is_spilling { room / 2 } else { room } || self.batches >= SOURCES_MAX;
        let group_bytes = (ahead / u64_of(AHEAD)).clamp(1, GROUP_BYTES_MAX);
        if is_full {
            if self.is_run_away {
                return Ok(self.wait());
            }
            if self.dictionaries.entries().is_none() {
                self.state = State::Settling;
                return Ok(None);
            }
            self.begin_run(is_spilling)?;
        } else if self.group.is_full(self.block_rows, group_bytes)
            || (flushes || has_other) && !self.group.is_empty()
        {
            self.begin_group();
        } else if let Some((batch, sizing)) = self.sized.take() {
            self.collect(batch, sizing);
        } else if let Some(batch) = self.fed.take() {
            self.state = State::Sizing(batch, Sizing::default());
        } else if !self.is_finished {
            return Ok(Some(Step::Ready(Sorted::Room)));
        } else if self.is_run_away {
            return Ok(self.wait());
        } else if self.dictionaries.entries().is_none() {
            self.state = State::Settling;
        } else {
            self.merge()?;
        }
        Ok(None)
    }

    /// Whether half of the rows that have room are there, and those that will come have none.
    fn will_spill(&self, room: u64) -> bool {
        let is_too_much = |rows: u64| {
            let bytes = u128::from(rows) * u128::from(self.held) / u128::from(self.held_rows.max(1));
            bytes > room.into()
        };
        self.half.is_some() && self.options.rows.is_some_and(is_too_much)
    }

    fn wait(&mut self) -> Option<Step<Sorted>> {
        self.is_waiting = true;
        Some(Step::Yield)
    }

    /// Adds a batch to the group, which can have it.
    fn collect(&mut self, batch: Batch, sizing: Sizing) {
        self.rows += u64_of(batch.rows);
        if batch.rows < FEW_ROWS {
            let (kept, keeps) = sizing.into_kept();
            self.state = State::Copying(Box::new(Storing::keeping(batch, kept, true)), keeps);
        } else {
            self.group.add(batch, sizing);
        }
    }

    /// The strings of a batch are copied.
    fn copied(&mut self) {
        if let State::Copying(storing, keeps) = core::mem::replace(&mut self.state, State::Filling) {
            self.group.add_stored(storing.finish(), keeps);
        }
    }

    /// The group is to become a block.
    fn begin_group(&mut self) {
        let bytes = self.group.bytes();
        let place = (self.groups, self.rows - self.group.rows());
        let work = GroupWork::new(&mut self.group, self.common.clone(), self.block_rows, place);
        self.groups += 1;
        self.arriving_bytes += bytes;
        self.arriving.push_back(Arriving { bytes, block: None });
        self.begin(SortWork::group(work));
    }

    /// Work is to be done, here or elsewhere.
    fn begin(&mut self, work: SortWork) {
        if self.shares {
            self.ready.push_back(work);
        } else {
            self.state = State::Working { work: Box::new(work), is_merged: false };
        }
    }

    /// Counts the first block that is arriving, or waits for it.
    fn hold(&mut self) -> Result<Option<Step<Sorted>>> {
        if self.arriving.front().is_none_or(|first| first.block.is_none()) {
            return Ok(self.wait());
        }
        if let Some(Arriving { bytes, block: Some(block) }) = self.arriving.pop_front() {
            let block = block?;
            self.arriving_bytes -= bytes;
            self.held += block.iter().map(|stored| stored.held).sum::<u64>();
            self.held_rows += block.iter().map(|stored| u64_of(stored.rows)).sum::<u64>();
            self.batches += block.len();
            self.blocks.push(block);
        }
        Ok(None)
    }

    /// The blocks become a run, all of them or the first half.
    fn begin_run(&mut self, is_all: bool) -> Result<()> {
        let mut blocks = core::mem::take(&mut self.blocks);
        let (mut held, mut rows) = (self.held, self.held_rows);
        if let Some(half) = self.half.take().filter(|half| !is_all && half.blocks < blocks.len()) {
            self.blocks = blocks.split_off(half.blocks);
            (held, rows) = (half.held, half.rows);
        }
        self.batches = self.blocks.iter().map(Vec::len).sum();
        self.row_bytes = held.checked_div(rows).unwrap_or(0).max(1);
        (self.held, self.held_rows, self.spilling) = (self.held - held, self.held_rows - rows, held);
        // The run has values: they are looked up as it is written.
        let how = (self.batch_rows, self.kept(true)?);
        let run = self.run(Producer::of(&[], blocks, &self.common, how)?)?;
        self.is_run_away = true;
        self.begin(run);
        Ok(())
    }

    fn run(&self, producer: Producer) -> Result<SortWork> {
        Ok(SortWork::run(RunWork::new(self.common.clone(), producer, self.writer()?, self.spilled)))
    }

    /// What becomes of columns whose dictionaries are kept, where they are merged.
    fn kept(&self, stay: bool) -> Result<Kept> {
        let entries = self.dictionaries.entries();
        let entries = entries.ok_or_else(|| Error::internal("dictionaries that are not put together"))?;
        Ok(Kept::Values { entries: Arc::clone(entries), stay })
    }

    /// Takes what work has made.
    fn accept(&mut self, work: SortWork, is_merged: bool) -> Result<()> {
        let wrong = || Error::misuse("work that is not complete, or that nobody waits for");
        match work.0 {
            Kind::Sorted(number, block) => {
                let first = self.groups - u64_of(self.arriving.len());
                let at = number.checked_sub(first).and_then(usize_of);
                let slot = at.and_then(|at| self.arriving.get_mut(at)).filter(|slot| slot.block.is_none());
                slot.ok_or_else(wrong)?.block = Some(block);
            }
            Kind::Run(work) => {
                let run = work.run().filter(|run| run.start == self.spilled).ok_or_else(wrong)?;
                self.end_run(run, is_merged);
            }
            Kind::Group(_) => return Err(wrong()),
        }
        Ok(())
    }

    /// A run is in the spill object.
    fn end_run(&mut self, run: Run, is_merged: bool) {
        (self.spilled, self.spilling, self.is_run_away) = (run.end, 0, false);
        if is_merged {
            self.merged.push(run);
        } else {
            self.runs.push_back(run);
        }
    }

    /// Bytes of a row group of a run.
    fn row_group_bytes(&self) -> u64 {
        let share = (self.options.memory_bytes / 64).clamp(ROW_GROUP_BYTES_MIN, ROW_GROUP_BYTES_MAX);
        share.max(u64_of(self.common.schema.leaves().len()) * COLUMN_BYTES)
    }

    /// A writer of a run.
    fn writer(&self) -> Result<FileWriter> {
        let group_bytes = self.row_group_bytes();
        let options = WriteOptions {
            column: ColumnOptions {
                compression: self.options.compression,
                encoding: Some(Encoding::Plain),
                dictionary: false,
                bounds: false,
                ..ColumnOptions::default()
            },
            row_group_bytes: group_bytes,
            row_group_rows: (group_bytes / self.row_bytes).clamp(1, ROW_GROUP_ROWS_MAX),
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
        let runs = self.options.memory_bytes / (ROW_GROUP_TIMES * self.row_group_bytes());
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
            self.batches = 0;
            let how = (self.batch_rows, self.kept(self.options.keep_dictionaries)?);
            let producer = Producer::of(&runs, blocks, &self.common, how)?;
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
            runs => {
                let how = (self.batch_rows, self.kept(false)?);
                let producer = Producer::of(runs, Vec::new(), &self.common, how)?;
                self.state = State::Working { work: Box::new(self.run(producer)?), is_merged: true };
            }
        }
        Ok(())
    }

    /// Does work.
    fn work(&mut self, budget: &mut Budget<'_>) -> Result<Option<Step<Sorted>>> {
        let State::Working { work, .. } = &mut self.state else { return Ok(None) };
        match work.step(budget)? {
            Step::Done => {
                if let State::Working { work, is_merged } =
                    core::mem::replace(&mut self.state, State::Filling)
                {
                    self.accept(*work, is_merged)?;
                }
                Ok(None)
            }
            answer => Ok(Some(answer.map(|()| Sorted::Room))),
        }
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
            State::Working { work, .. } => work.supply(object, range, bytes),
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
