//! Batches in, a file out.

mod release;
mod sharing;

use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::{Range, RangeInclusive};

use marquetry_base::cast::u64_of;
use marquetry_base::{
    Budget, Bytes, Codecs, Demand, Error, Failed, Input, Machine, Object, Price, Result, Step, check_supply,
};

use super::column::{ColumnWriter, Shared};
use super::footer::{FooterRoom, Tail};
use super::group::{Ended, Ending, GroupSteps};
use super::locator::LocatorSteps;
use super::options::{WriteOptions, check_names};
use super::out::Out;
use super::page::PageMaker;
use super::part::Room as PartRoom;
use super::released::Released;
use super::sharing::Sharing;
use super::work::{Columns, Strip};
use crate::batch::{Batch, ColumnBatch};
use crate::format::{ARROW_SCHEMA_KEY, MAGIC};
use crate::going::Going;
use crate::schema::Schema;

/// Rows that all columns take before the next ones are begun, at least and at most. With many, what a column keeps stays in a core's
/// caches: its dictionary above all.
const STRIP_ROWS: RangeInclusive<u64> = 8 << 10..=64 << 10;
/// But with no more than this part of a row group's bytes, or of those that are held, so that neither is much larger than it should be.
const STRIP_PART: u64 = 16;
/// So many bytes of each column are held, though that be more than the bound, up to so many times: smaller pages cost more than they spare.
const COLUMN_HELD_BYTES: u64 = 1 << 10;
const COLUMNS_HELD_TIMES: u64 = 4;
/// The part of what is held that is moved out of memory at a time.
const SPILLED_PART: u64 = 8;
/// What building a column costs, what releasing one does, and what visiting one does.
const BUILD_UNITS: u64 = 2_000;
const RELEASE_UNITS: u64 = 4_000;
const COLUMN_PRICE: Price = Price::per_kilovalue(120 << 10);
/// The price of looking at a pair of metadata.
const PAIR_PRICE: Price = Price::per_kilovalue(10 << 10);

/// Writes a file: takes batches, and returns the bytes to append.
///
/// ```text
/// feed(batch) -> Taken | Full(batch)      when step answers Ready(Room); or
/// feed_column(column) -> Taken | Full(column)
/// finish()                                after the last one
/// step(budget) -> Ready(Room) | Append(object, bytes) | Need(demand) | Yield | Done | error
/// ```
///
/// The columns of a batch are the leaves of the schema, all of them, in order; in the form in which the reader hands
/// them out: flat ones with validity, dense or spaced, nested ones with levels. Batches may be of any size, and need
/// not end where row groups do.
///
/// Pages are encoded and compressed as rows arrive, and written when their row group ends, because a column chunk is
/// contiguous. Until then they are held, or moved to [`WriteOptions::spill`]. Those of a row group's first column are
/// written at once, unless they refer to a dictionary.
///
/// A row group may also be fed [by columns](FileWriter::feed_column), each of them complete. Then only the column
/// being written is held.
pub struct FileWriter {
    file: Object,
    shared: Shared,
    columns: Columns,
    /// If the columns' work is done elsewhere.
    sharing: Option<Sharing>,
    state: State,
    batch: Option<Pending>,
    column: Option<ColumnBatch>,
    /// What was taken.
    released: Released,
    is_finished: bool,
    /// Where the open row group begins in the file, and its rows.
    group_offset: u64,
    group_rows: u64,
    /// Bytes of the open row group, about, and those of them that are in memory.
    group_bytes: u64,
    held: u64,
    /// Bytes of pages that are whole, of those.
    held_pages: u64,
    /// What [`WriteOptions::held_bytes_max`] is now.
    held_bytes_max: u64,
    /// Pages are moved out of memory once so much is held; the next page to be ended for it is that of this column.
    spill_at: u64,
    spill_next: usize,
    /// Rows of all batches.
    rows: u64,
    out: Out,
    spill_out: Out,
    spilled: Input,
    ending: Ending,
    failed: Failed,
}

/// What [`FileWriter::feed`] did with a batch, or [`FileWriter::feed_column`] with a column.
#[derive(Debug, Clone, PartialEq)]
pub enum Fed<T = Batch> {
    /// It was taken.
    Taken,
    /// There is no room yet; the input is returned. There will be room when [`Machine::step`] returns [`Room`].
    Full(T),
}

/// There is room for a batch; feed one, or [finish](FileWriter::finish).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room;

/// The batch that is being taken.
struct Pending {
    batch: Arc<Batch>,
    /// Rows that all columns have taken.
    taken: usize,
    /// Rows that they are to take together, and the column whose turn it is.
    until: usize,
    column: usize,
}

#[derive(Debug)]
enum State {
    /// Nothing is written; pairs of metadata are looked through from this one on, then columns are built.
    Building(usize),
    /// Batches are taken.
    Rows,
    /// Pages are moved out of memory: so many columns were asked for theirs. Where that is not enough, they are asked for those that are
    /// open, too.
    Spilling {
        visited: usize,
        with_open: bool,
        /// The pages of a column are on their way.
        is_moving: bool,
    },
    /// A row group is taken and written column by column.
    Columns(GroupSteps),
    /// The row group is being written.
    Group(GroupSteps),
    /// The page index is being written.
    Index,
    /// The footer locator is being written.
    Locator(Box<LocatorSteps>),
    /// The footer is being written.
    Footer(Tail),
    /// Everything is written: columns and metadata are released.
    Releasing,
    End,
}

impl FileWriter {
    /// A writer of a table of `schema` to `file`, which must be empty.
    ///
    /// # Errors
    ///
    /// `Misuse` for options that contradict themselves or the schema. Errors that concern a single column, or a pair of
    /// metadata, are returned by the first steps, which look at each of them.
    pub fn new(
        file: Object,
        schema: Arc<Schema>,
        codecs: Arc<dyn Codecs>,
        mut options: WriteOptions,
    ) -> Result<FileWriter> {
        options.check(&schema)?;
        options.bound_begun(schema.leaves().len());
        if options.spill == Some(file) {
            return Err(Error::misuse("the file is to be its own spill object"));
        }
        let key_values = core::mem::take(&mut options.key_values);
        let ending = Ending::new(Arc::clone(&schema), &options, key_values);
        let maker = PageMaker::new(codecs, options.crc, options.limits);
        let held_bytes_max = options.held_bytes_max;
        let shared = Shared {
            group_rows_max: options.row_group_rows,
            options: Arc::new(options),
            schema,
            has_arrow_schema: false,
            maker,
            room: PartRoom::default(),
            indices: Vec::new(),
        };
        Ok(FileWriter {
            file,
            shared,
            columns: Columns::default(),
            sharing: None,
            state: State::Building(0),
            batch: None,
            column: None,
            released: Released::default(),
            is_finished: false,
            group_offset: 0,
            group_rows: 0,
            group_bytes: 0,
            held: 0,
            held_pages: 0,
            held_bytes_max,
            spill_at: 0,
            spill_next: 0,
            rows: 0,
            out: Out::default(),
            spill_out: Out::default(),
            spilled: Input::new(),
            ending,
            failed: Failed::default(),
        })
    }

    /// Hands over rows. There is room for one batch at a time.
    ///
    /// # Errors
    ///
    /// `Misuse` after [`FileWriter::finish`], and for a batch of another number of columns. Other mismatches with the
    /// schema are returned by the steps that process it. Also the writer's earlier failure.
    pub fn feed(&mut self, batch: Batch) -> Result<Fed> {
        self.failed.check()?;
        if self.is_finished {
            return Err(Error::misuse("rows for a file that is finished"));
        }
        batch.check_columns(&self.shared.schema)?;
        if self.batch.is_some() {
            return Ok(Fed::Full(batch));
        }
        if self.column.is_some() || matches!(self.state, State::Columns(_)) {
            return Err(Error::misuse("rows, for a row group that is fed by columns"));
        }
        if batch.rows > 0 {
            self.batch = Some(Pending { batch: Arc::new(batch), taken: 0, until: 0, column: 0 });
        }
        Ok(Fed::Taken)
    }

    /// Hands over the next complete column of a row group. There is room for one at a time. The columns are the
    /// leaves of the schema, in order; the last one ends the row group, whatever [`WriteOptions::row_group_rows`] and
    /// [`WriteOptions::row_group_bytes`] say. Other row groups may be fed by rows.
    ///
    /// # Errors
    ///
    /// `Misuse` after [`FileWriter::finish`], for a column of no rows, and while rows fed by batches are not yet a
    /// complete row group. Other mismatches are returned by the steps that process it. Also the writer's earlier
    /// failure.
    pub fn feed_column(&mut self, column: ColumnBatch) -> Result<Fed<ColumnBatch>> {
        self.failed.check()?;
        if self.is_finished {
            return Err(Error::misuse("a column for a file that is finished"));
        }
        if self.column.is_some() {
            return Ok(Fed::Full(column));
        }
        match self.state {
            State::Columns(_) => {}
            State::Rows if self.batch.is_none() && self.group_rows == 0 => {
                if column.rows == 0 {
                    return Err(Error::misuse("a row group of no rows"));
                }
                let steps = GroupSteps::by_columns(u64_of(column.rows), self.group_offset);
                self.shared.group_rows_max = u64_of(column.rows);
                self.state = State::Columns(steps);
            }
            State::Rows | State::Spilling { .. } | State::Group(_) => {
                return Err(Error::misuse("a column, for a row group that is fed by rows"));
            }
            State::Building(_)
            | State::Index
            | State::Locator(_)
            | State::Footer(_)
            | State::Releasing
            | State::End => {
                return Ok(Fed::Full(column));
            }
        }
        self.column = Some(column);
        Ok(Fed::Taken)
    }

    /// Ends the input: nothing more will be fed.
    pub fn finish(&mut self) {
        self.is_finished = true;
    }

    /// Withdraws [`WriteOptions::sorting_columns`]: the rows that follow are in another order. Row groups that are
    /// complete keep the declaration; the open one and later ones are written without it.
    pub fn withdraw_order(&mut self) {
        self.ending.withdraw_order();
    }

    /// Replaces [`WriteOptions::held_bytes_max`], for the rows that follow: several writers may share what there is.
    pub fn hold_at_most(&mut self, bytes: u64) {
        self.held_bytes_max = bytes;
        self.spill_at = self.held_max();
    }

    /// Rows that were taken so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Row groups that are written so far.
    pub fn row_groups(&self) -> usize {
        self.ending.groups()
    }

    /// The approximate bytes that it holds: pages that wait for their row group, dictionaries, metadata.
    pub fn held(&self) -> u64 {
        self.held + self.ending.held() + self.shared.maker.held() + self.spilled.held()
    }

    fn advance(&mut self, budget: &mut Budget<'_>) -> Result<Step<Room>> {
        self.wait_no_more();
        loop {
            if let Some(bytes) = self.out.take() {
                return Ok(Step::Append(self.file, bytes));
            }
            if let (Some(bytes), Some(spill)) = (self.spill_out.take(), self.shared.options.spill) {
                return Ok(Step::Append(spill, bytes));
            }
            if !self.released.step(budget) {
                return Ok(Step::Yield);
            }
            let answer = match &mut self.state {
                State::Building(_) => self.build(budget)?,
                State::Rows if self.sharing.is_some() => self.share_rows(budget)?,
                State::Rows => self.take_rows(budget)?,
                State::Spilling { .. } => self.spill(budget)?,
                State::Columns(_) => self.take_column(budget)?,
                State::Group(_) => self.end_group(budget)?,
                State::Index => {
                    if !self.ending.send_index(&mut self.out, budget) {
                        self.out.seal();
                        self.state = if self.shared.options.locator {
                            let steps = LocatorSteps::new(&self.ending, self.out.position());
                            State::Locator(Box::new(steps))
                        } else {
                            State::Footer(Tail::new(FooterRoom::of(&self.shared.options)))
                        };
                    }
                    None
                }
                State::Locator(steps) => {
                    if let Some(found) = steps.step(&mut self.ending, &mut self.out, budget)? {
                        self.ending.announce(found, self.out.position());
                        self.state = State::Footer(Tail::new(FooterRoom::of(&self.shared.options)));
                    }
                    None
                }
                State::Footer(tail) => match tail.step(&mut self.ending, budget)? {
                    Some(bytes) => Some(Step::Append(self.file, bytes)),
                    None => {
                        if tail.is_done() {
                            self.state = State::Releasing;
                        }
                        None
                    }
                },
                State::Releasing => {
                    if self.columns.pop() || self.ending.pop_key_value() {
                        budget.charge_units(RELEASE_UNITS);
                    } else {
                        self.state = State::End;
                    }
                    None
                }
                State::End => Some(Step::Done),
            };
            if let Some(answer) = answer {
                return Ok(answer);
            }
            if budget.is_spent() && !self.out.is_ready() && !self.spill_out.is_ready() {
                return Ok(Step::Yield);
            }
        }
    }

    fn build(&mut self, budget: &mut Budget<'_>) -> Result<Option<Step<Room>>> {
        let State::Building(pair) = &mut self.state else { return Ok(None) };
        while let Some(found) = self.ending.key_value(*pair) {
            check_names("a key of metadata", found.key.len(), &self.shared.options.limits)?;
            self.shared.has_arrow_schema |= found.key == ARROW_SCHEMA_KEY;
            budget.charge(PAIR_PRICE, 0, 1);
            *pair += 1;
            if budget.is_spent() {
                return Ok(None);
            }
        }
        let leaves = self.shared.schema.leaves();
        while self.columns.len() < leaves.len() {
            let leaf = self.columns.len();
            let column = ColumnWriter::new(leaf, &self.shared.schema, &self.shared.options)?;
            self.columns.push(column);
            self.ending.add_column();
            budget.charge_units(BUILD_UNITS);
            if budget.is_spent() {
                return Ok(None);
            }
        }
        self.out.push(Bytes::from_static(&MAGIC), budget);
        self.group_offset = self.out.position();
        self.spill_at = self.held_max();
        self.state = State::Rows;
        Ok(None)
    }

    /// Does what is due between two strips. `None` if that is to take the next one.
    fn begin_strip(&mut self) -> Result<Option<Option<Step<Room>>>> {
        let options = &self.shared.options;
        let is_full =
            self.group_rows >= options.row_group_rows || self.group_bytes >= options.row_group_bytes;
        if self.group_rows > 0 && is_full {
            return Ok(Some(self.begin_group()));
        }
        if self.batch.is_none() {
            return Ok(Some(match self.is_finished {
                false => Some(Step::Ready(Room)),
                true if self.group_rows > 0 => self.begin_group(),
                true => {
                    self.ending.check_rows(&options.limits, self.out.position())?;
                    self.state = State::Index;
                    None
                }
            }));
        }
        if options.spill.is_some() && self.held >= self.spill_at {
            self.state = State::Spilling { visited: 0, with_open: false, is_moving: false };
            return Ok(Some(None));
        }
        Ok(None)
    }

    fn take_rows(&mut self, budget: &mut Budget<'_>) -> Result<Option<Step<Room>>> {
        if self.batch.as_ref().is_none_or(|pending| pending.until == pending.taken) {
            if let Some(answer) = self.begin_strip()? {
                return Ok(answer);
            }
            if let Some(pending) = &mut self.batch {
                let rows = strip_rows(&self.shared.options, self.group_rows, self.group_bytes);
                let rows = usize::try_from(rows).unwrap_or(usize::MAX);
                pending.until = pending.taken + rows.min(pending.batch.rows - pending.taken);
            }
        }
        let Some(pending) = &mut self.batch else { return Ok(None) };
        while let Some(column) = self.columns.get_mut(pending.column) {
            let (held, size, pages) = (column.held(), column.size(), column.chunk.held);
            // Pages of the first column go ahead of those that wait for their row group.
            let out = (pending.column == 0).then_some(&mut self.out);
            let strip =
                Strip { batch: Arc::clone(&pending.batch), until: pending.until, first_row: self.rows };
            let taken = strip.take(pending.column, column, &mut self.shared, out, budget);
            self.held_pages = self.held_pages.wrapping_add(column.chunk.held.wrapping_sub(pages));
            let (held, size) = (column.held().wrapping_sub(held), column.size().wrapping_sub(size));
            self.held = self.held.wrapping_add(held);
            self.group_bytes = self.group_bytes.wrapping_add(size);
            let is_taken = taken?;
            // Not before: codecs do nothing where a budget is begun, and does not pay for what they do at least.
            budget.charge(COLUMN_PRICE, 0, 1);
            if !is_taken {
                return Ok((!self.out.is_ready()).then_some(Step::Yield));
            }
            pending.column += 1;
            if budget.is_spent() {
                break;
            }
        }
        if pending.column == self.columns.len() {
            self.group_rows += u64_of(pending.until - pending.taken);
            (pending.taken, pending.column) = (pending.until, 0);
            if pending.taken == pending.batch.rows {
                self.rows += u64_of(pending.taken);
                let batch = self.batch.take().and_then(|pending| Arc::into_inner(pending.batch));
                self.released.columns(batch.map(|batch| batch.columns).unwrap_or_default());
            }
        }
        Ok(None)
    }

    fn begin_group(&mut self) -> Option<Step<Room>> {
        self.state = State::Group(GroupSteps::new(self.group_rows, self.group_offset));
        None
    }

    /// Takes the column that was fed, and writes it.
    fn take_column(&mut self, budget: &mut Budget<'_>) -> Result<Option<Step<Room>>> {
        let State::Columns(steps) = &mut self.state else { return Ok(None) };
        let number = steps.column();
        if let Some(batch) = &self.column {
            let Some(column) = self.columns.get_mut(number) else {
                return Err(Error::internal("a column of no leaf"));
            };
            let out = Some(&mut self.out);
            let taken = match u64_of(batch.rows) == steps.rows() {
                true => column.advance(batch, batch.rows, &mut self.shared, out, budget),
                false => Err(Error::misuse(format!(
                    "a column of {} rows, in a row group of {}",
                    batch.rows,
                    steps.rows()
                ))),
            };
            let ended = taken.and_then(|is_taken| {
                if is_taken {
                    column.end_batch(batch)?;
                }
                Ok(is_taken)
            });
            self.held = column.held();
            let (schema, row) = (&self.shared.schema, self.rows + u64_of(column.row(batch)));
            let is_taken = ended.map_err(|error| {
                error.at(|at| {
                    at.column = Some(schema.leaf_path(number));
                    at.row = Some(row);
                })
            })?;
            budget.charge(COLUMN_PRICE, 0, 1);
            if !is_taken {
                return Ok((!self.out.is_ready()).then_some(Step::Yield));
            }
            self.released.columns(self.column.take().into_iter().collect());
            steps.end_column();
        }
        let rows = steps.rows();
        Ok(match self.step_group(budget)? {
            Going::Yield if self.out.is_ready() => None,
            Going::Yield => Some(Step::Yield),
            Going::Need(_) => return Err(Error::internal("a page that was moved away")),
            Going::Done(Ended::Column(columns)) if self.is_finished => {
                let all = self.columns.len();
                return Err(Error::misuse(format!("a row group of {columns} columns, of {all}")));
            }
            Going::Done(Ended::Column(_)) => {
                self.held = 0;
                Some(Step::Ready(Room))
            }
            Going::Done(Ended::Whole) => {
                self.rows += rows;
                self.begin_rows();
                None
            }
        })
    }

    /// Works on at the end of the row group.
    fn step_group(&mut self, budget: &mut Budget<'_>) -> Result<Going<Ended, Range<u64>>> {
        // Those of earlier batches, and of this one.
        let mut rows = self.rows + self.batch.as_ref().map_or(0, |pending| u64_of(pending.taken));
        let steps = match &mut self.state {
            State::Group(steps) => steps,
            State::Columns(steps) => {
                rows += steps.rows();
                steps
            }
            _ => return Err(Error::internal("no row group")),
        };
        let stepped = steps.step(
            &mut self.columns,
            &mut self.shared,
            &mut self.out,
            &mut self.spilled,
            &mut self.ending,
            budget,
        );
        let (schema, number) = (&self.shared.schema, steps.column());
        stepped.map_err(|error| {
            error.at(|at| {
                at.column = (number < schema.leaves().len()).then(|| schema.leaf_path(number));
                // The page that ends it is what may be wrong.
                at.row = rows.checked_sub(1);
            })
        })
    }

    /// The row group is written: the next one begins.
    fn begin_rows(&mut self) {
        self.out.seal();
        self.spilled.clear();
        self.group_offset = self.out.position();
        self.shared.group_rows_max = self.shared.options.row_group_rows;
        (self.group_rows, self.group_bytes, self.held, self.held_pages) = (0, 0, 0, 0);
        (self.spill_at, self.spill_next) = (self.held_max(), 0);
        self.share_again();
        self.state = State::Rows;
    }

    fn end_group(&mut self, budget: &mut Budget<'_>) -> Result<Option<Step<Room>>> {
        if !self.share_end()? {
            return Ok(Some(Step::Yield));
        }
        let ended = self.step_group(budget)?;
        Ok(match (ended, self.shared.options.spill) {
            (Going::Yield, _) if self.out.is_ready() => None,
            (Going::Yield, _) => Some(Step::Yield),
            (Going::Need(range), Some(spill)) => Some(Step::Need(Demand::now(spill, range))),
            (Going::Need(_), None) => return Err(Error::internal("a page that is nowhere")),
            (Going::Done(Ended::Column(_)), _) => {
                return Err(Error::internal("a row group that is not fed by columns"));
            }
            (Going::Done(Ended::Whole), _) => {
                self.begin_rows();
                None
            }
        })
    }

    /// Moves the pages of a column out of memory.
    fn spill(&mut self, budget: &mut Budget<'_>) -> Result<Option<Step<Room>>> {
        let (columns, most) = (self.columns.len(), self.held_max());
        let State::Spilling { visited, with_open, is_moving } = &mut self.state else { return Ok(None) };
        // Columns take turns in ending their open page: so that it is the largest one that is ended.
        let number = if *with_open { self.spill_next % columns.max(1) } else { *visited };
        let is_enough = self.held < most - most / SPILLED_PART;
        let is_begun = |found: &ColumnWriter| *is_moving || found.is_ending_page();
        let found = self
            .columns
            .get_mut(number)
            .filter(|found| *visited < columns && (!*with_open || !is_enough || is_begun(found)));
        let Some(found) = found else {
            // Pages are not ended for it as long as what is left fits: so it makes no difference to the file when others are moved.
            if *with_open || self.held < self.spill_at {
                if *with_open {
                    // What cannot be moved stays, whatever the bound: dictionaries, and hashes. It is not tried again before there is more.
                    let more = self.held.saturating_add((most / 2).max(1));
                    self.spill_at = if is_enough { most } else { most.max(more) };
                }
                self.spill_out.seal();
                self.state = State::Rows;
            } else {
                (*visited, *with_open) = (0, true);
            }
            return Ok(None);
        };
        let (held, size, pages) = (found.held(), found.size(), found.chunk.held);
        let is_done = *is_moving || !*with_open || found.end_early(&mut self.shared, budget)?;
        *is_moving = is_done && !found.chunk.move_pages(&mut self.spill_out, budget);
        if is_done && !*is_moving {
            *visited += 1;
            self.spill_next = if *with_open { number + 1 } else { self.spill_next };
        }
        budget.charge(COLUMN_PRICE, 0, 1);
        self.held_pages = self.held_pages.wrapping_add(found.chunk.held.wrapping_sub(pages));
        self.held = self.held.wrapping_add(found.held().wrapping_sub(held));
        self.group_bytes = self.group_bytes.wrapping_add(found.size().wrapping_sub(size));
        Ok((!is_done).then_some(Step::Yield))
    }

    /// Bytes that are held before pages are moved away.
    fn held_max(&self) -> u64 {
        let asked = self.held_bytes_max;
        let of_columns = u64_of(self.columns.len()) * COLUMN_HELD_BYTES;
        asked.max(of_columns.min(asked.saturating_mul(COLUMNS_HELD_TIMES)))
    }
}

/// Rows that all columns take together, after those of the open row group, which take so many bytes.
fn strip_rows(options: &WriteOptions, rows: u64, bytes: u64) -> u64 {
    let held = if options.spill.is_some() { options.held_bytes_max } else { u64::MAX };
    let bytes_max = options.row_group_bytes.min(held) / STRIP_PART;
    let fitting = bytes_max.saturating_mul(rows) / bytes.max(1);
    fitting.clamp(*STRIP_ROWS.start(), *STRIP_ROWS.end()).min(options.row_group_rows - rows)
}

impl Machine for FileWriter {
    type Product = Room;

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Room>> {
        Failed::run(self, |machine| &mut machine.failed, |machine| machine.advance(budget))
    }

    fn supply(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()> {
        if self.shared.options.spill != Some(object) {
            return Err(Error::misuse("an object that this machine does not read"));
        }
        check_supply(&range, &bytes, Some(self.spill_out.position()))?;
        if let State::Group(_) = self.state { self.spilled.supply(range.start, bytes) } else { Ok(()) }
    }

    fn supply_length(&mut self, _object: Object, _length: u64) -> Result<()> {
        Err(Error::misuse("a length that was not asked for"))
    }

    fn fail(&mut self, _object: Object, _range: Range<u64>, reason: Error) {
        self.failed.set(reason);
    }
}
