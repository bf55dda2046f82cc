//! Batches of rows from a file's column chunks.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{
    Budget, Bytes, Codecs, Demand, Error, Failed, Input, Limit, Machine, Object, Price, Priority, Release,
    Result, Segmented, Step, check_supply, release_all,
};

use super::column::{ColumnReader, Target};
use super::decompressors::Decompressors;
use super::dictionary::Entries;
use super::judge::PageTests;
use super::selected::Selected;
use super::{Conform, ReadOptions};
use crate::batch::store::{row_bytes, rows_max};
use crate::batch::{Batch, ColumnBatch, RowSelection};
use crate::format::{FileMetaData, OffsetIndex};
use crate::going::Going;
use crate::growing::release_in_step;
use crate::memory::Memory;
use crate::prune::Counts;

/// Columns behind the one that waits whose bytes are asked for with it.
const LOOK_AHEAD_COLUMNS: usize = 64;
/// What starting a column chunk costs.
const CHUNK_UNITS: u64 = 300;
/// The price of looking at a column, to go on with it or to hand out its batch, or for both at once, beside its values: where there are hundreds,
/// its state and its memory have left the caches since it was looked at last.
const COLUMN_PRICE: Price = Price::per_kilovalue(6_000 << 10);
/// What a row group costs beside its chunks.
const GROUP_UNITS: u64 = 50;
/// What building a column costs.
const BUILD_UNITS: u64 = 500;
/// Leaves that are measured together, and the price of each; and of a row group, each of which is memory that nobody has looked
/// at lately.
const MEASURED_AT_ONCE: usize = 4096;
/// Row groups that are measured by a reader that goes from one to another.
const MEASURED_OF_MANY: usize = 64;
const MEASURE_PRICE: Price = Price::per_kilovalue(5 << 10);
const MEASURE_GROUP_PRICE: Price = Price::per_kilovalue(20 << 10);

/// The part of all memory that a batch may take.
const BATCH_SHARE: u64 = 4;

/// The leaves that a reader reads.
pub(super) enum Wanted {
    /// So many, all of them.
    All(usize),
    /// These.
    These(Vec<usize>),
    /// Those that are read as another schema's.
    Read(Arc<Conform>),
}

impl Wanted {
    fn len(&self) -> usize {
        match self {
            Wanted::All(leaves) => *leaves,
            Wanted::These(leaves) => leaves.len(),
            Wanted::Read(conform) => conform.reads().len(),
        }
    }

    fn leaf(&self, at: usize) -> usize {
        match self {
            Wanted::All(_) => at,
            Wanted::These(leaves) => leaves[at],
            Wanted::Read(conform) => conform.reads()[at],
        }
    }
}

/// Reads rows in batches, column by column, row group after row group.
///
/// A batch never spans row groups. All columns of a batch have the same rows; it may have fewer than
/// [`ReadOptions::batch_rows`], where a row group ends, where values are large, and where a kept dictionary ends.
pub struct BatchReader {
    object: Object,
    metadata: Arc<FileMetaData>,
    decompressors: Decompressors,
    options: ReadOptions,
    /// The columns, as far as they are built: each is when it is first begun. At the end they are released.
    columns: Segmented<ColumnReader>,
    is_measured: bool,
    /// The leaves wanted, and how many of them are measured; and how many row groups are, up to which.
    wanted: Wanted,
    measured: usize,
    measured_groups: usize,
    measured_end: usize,
    /// Bytes of a row, of those that are measured, and the most rows of a row group.
    row_bytes: usize,
    group_rows: u64,
    /// Bytes that all columns may hold before each is held to its share of them.
    batch_held: u64,
    input: Input,
    /// Row groups not begun.
    row_groups: Range<usize>,
    /// What is known of them, by their numbers.
    selections: BTreeMap<usize, Selection>,
    current: Option<RowGroup>,
    failed: Failed,
    /// Bytes that the columns hold, and the limit on all that is held.
    held: u64,
    total: (Limit, u64),
}

/// What is known of a row group before it begins.
#[derive(Default)]
struct Selection {
    /// The rows that are wanted, if not all are.
    rows: Option<Arc<RowSelection>>,
    /// Where the pages of a leaf are.
    pages: BTreeMap<usize, Arc<OffsetIndex>>,
    /// What pages of a leaf are judged by.
    judges: BTreeMap<usize, Arc<PageTests>>,
}

/// The row group that is being read.
struct RowGroup {
    number: usize,
    /// What is wanted of it; and the first of its rows that may be in the next batch.
    selection: Selection,
    position: u64,
    /// The file's row that it begins with.
    first_row: u64,
    /// Rows that are wanted and in no batch.
    rows_left: u64,
    /// Columns whose chunks are begun.
    started: usize,
    /// Columns that are done with the current batch, from the first on, and the fewest rows that one of them has.
    full: usize,
    full_rows: usize,
    /// The fewest rows that a column has left over from the batch before.
    spare_rows: usize,
    /// Rows of the current batch, once all columns are full.
    rows: Option<usize>,
    /// The parts of the current batch that are taken, of the first columns, and the bytes that these held. A column that is full is still in the
    /// caches, where there are hundreds: what it has is taken at once, and given back if a later one has fewer rows.
    taken: Vec<ColumnBatch>,
    taken_bytes: u64,
}

impl BatchReader {
    /// A reader of `object`, whose footer is `metadata`.
    ///
    /// # Errors
    ///
    /// `Misuse` for row groups that do not exist, or a batch of no rows. The first steps report leaves that do not exist,
    /// and why a column cannot be read.
    pub fn new(
        object: Object,
        metadata: Arc<FileMetaData>,
        codecs: Arc<dyn Codecs>,
        mut options: ReadOptions,
    ) -> Result<BatchReader> {
        let all = Wanted::All(metadata.schema.leaves().len());
        let wanted = options.leaves.take().map_or(all, Wanted::These);
        BatchReader::of(object, metadata, codecs, options, wanted)
    }

    /// Like [`BatchReader::new`], for one row group after the other: first this one, then those that it
    /// [goes to](BatchReader::go_to).
    pub(crate) fn one_by_one(
        object: Object,
        metadata: Arc<FileMetaData>,
        codecs: Arc<dyn Codecs>,
        options: ReadOptions,
        row_group: usize,
    ) -> Result<BatchReader> {
        let mut reader = BatchReader::new(object, metadata, codecs, options)?;
        // Not all of them: a reader may be made for each. Batches of larger ones after these are smaller than they could be.
        reader.measured_groups = row_group;
        reader.measured_end = reader.row_groups.end.min(row_group + MEASURED_OF_MANY);
        reader.row_groups = row_group..row_group + 1;
        Ok(reader)
    }

    /// Like [`BatchReader::new`], of these leaves.
    pub(super) fn of(
        object: Object,
        metadata: Arc<FileMetaData>,
        codecs: Arc<dyn Codecs>,
        options: ReadOptions,
        wanted: Wanted,
    ) -> Result<BatchReader> {
        let groups = metadata.row_groups.len();
        if options.batch_rows == 0 {
            return Err(Error::misuse("batches of no rows"));
        }
        let row_groups = options.row_groups.clone().unwrap_or(0..groups);
        if row_groups.start > row_groups.end || row_groups.end > groups {
            return Err(Error::misuse(format!("row groups {row_groups:?} of {groups}")));
        }
        let total = options.limits.total_of(metadata.file_bytes(), wanted.len() as u64);
        Ok(BatchReader {
            object,
            metadata,
            decompressors: Decompressors::new(codecs),
            options,
            columns: Segmented::new(),
            is_measured: false,
            wanted,
            measured: 0,
            measured_groups: row_groups.start,
            measured_end: row_groups.end,
            row_bytes: 0,
            batch_held: 0,
            group_rows: 1,
            input: Input::new(),
            row_groups,
            selections: BTreeMap::new(),
            current: None,
            failed: Failed::default(),
            held: 0,
            total,
        })
    }

    /// What is read.
    pub fn metadata(&self) -> &Arc<FileMetaData> {
        &self.metadata
    }

    /// The row group that the next step begins, if it begins one: the last moment to [`select`](BatchReader::select) its rows.
    pub fn begins(&self) -> Option<usize> {
        let is_over = self.current.as_ref().is_none_or(|group| group.rows_left == 0);
        self.row_groups.clone().next().filter(|_| is_over && !self.failed.is_set())
    }

    /// Reads only these rows of a row group, which has not begun. Of one for which this is never called all rows are read.
    ///
    /// Pages without a wanted row are not decoded, and their values are not checked. Of other pages, rows between wanted runs that are short
    /// and many are decoded and dropped; others are stepped over. Where [`locate`](BatchReader::locate) has said
    /// where the pages of a leaf are, those are not asked for either; else all of a chunk is, up to its last wanted row. Batches go on
    /// over what is left out: they have as many rows as ever, and begin at [`first_row`](Batch::first_row).
    ///
    /// # Errors
    ///
    /// `Misuse`, and nothing is changed, for a row group that has begun or is not to be read, and for rows that it does not have.
    ///
    /// # Example
    ///
    /// The selection of each row group is made when that is about to begin: after what is found in the one before, say.
    ///
    /// ```
    /// # use marquetry_base::{Budget, Machine, Result, Step};
    /// # use marquetry_parquet::batch::{Batch, RowSelection};
    /// # use marquetry_parquet::read::{BatchReader, ChunkIndex};
    /// # fn example(
    /// #     mut reader: BatchReader,
    /// #     wanted: impl Fn(usize) -> RowSelection,
    /// #     index: impl Fn(usize) -> Vec<ChunkIndex>,
    /// #     take: impl Fn(Batch),
    /// #     mut supply: impl FnMut(&mut BatchReader, marquetry_base::Demand) -> Result<()>,
    /// # ) -> Result<()> {
    /// loop {
    ///     if let Some(row_group) = reader.begins() {
    ///         reader.select(row_group, wanted(row_group))?;
    ///         for chunk in index(row_group) {
    ///             reader.locate(row_group, chunk.leaf, chunk.offset_index.into())?;
    ///         }
    ///     }
    ///     match reader.step(&mut Budget::default())? {
    ///         Step::Ready(batch) => take(batch),
    ///         Step::Need(demand) => supply(&mut reader, demand)?,
    ///         Step::Done => return Ok(()),
    ///         Step::Yield | Step::Append(..) => {}
    ///     }
    /// }
    /// # }
    /// ```
    pub fn select(&mut self, row_group: usize, rows: RowSelection) -> Result<()> {
        self.check_ahead(row_group)?;
        let there = self.metadata.row_groups[row_group].rows;
        if rows.end() > there {
            let end = rows.end();
            return Err(Error::misuse(format!("rows before {end} selected of a row group of {there}")));
        }
        self.selections.entry(row_group).or_default().rows = Some(Arc::new(rows));
        Ok(())
    }

    /// Says where the pages of a leaf are in a row group, which has not begun: what a [`PageIndexReader`](super::PageIndexReader) read.
    /// It is used where rows are [selected](BatchReader::select). An index that contradicts the pages is an error when it is noticed,
    /// but not everything can be: of a wrong one, wrong rows may be read.
    ///
    /// # Errors
    ///
    /// `Misuse`, and nothing is changed, for a row group that has begun or is not to be read, and for a leaf that is not there.
    pub fn locate(&mut self, row_group: usize, leaf: usize, pages: Arc<OffsetIndex>) -> Result<()> {
        self.check_ahead(row_group)?;
        let leaves = self.metadata.schema.leaves().len();
        if leaf >= leaves {
            return Err(Error::misuse(format!("leaf {leaf} of {leaves}")));
        }
        self.selections.entry(row_group).or_default().pages.insert(leaf, pages);
        Ok(())
    }

    /// Whether all rows that are wanted of the row groups at hand are handed out. (The next step would release what the columns hold.)
    pub(crate) fn is_through(&self) -> bool {
        self.is_measured
            && self.row_groups.is_empty()
            && self.current.as_ref().is_none_or(|group| group.rows_left == 0)
    }

    /// Reads a row group, of those that it was made for, with the columns and the memory that it has. False, and nothing is changed, in the
    /// middle of another, or after an error.
    pub(crate) fn go_to(&mut self, row_group: usize) -> bool {
        // None, or all: not where some are released or not built.
        let is_whole = self.columns.is_empty() || self.columns.len() == self.wanted.len();
        let is_ready = self.is_through() && !self.failed.is_set() && is_whole;
        if is_ready {
            (self.current, self.row_groups) = (None, row_group..row_group + 1);
            self.selections.clear();
        }
        is_ready
    }

    /// Says what pages of a leaf are judged by in a row group, which has not begun: those that are ruled out are not decoded, and their
    /// rows handed out as nulls, which [`PageTests`] has reasons for.
    pub(crate) fn judge(&mut self, row_group: usize, leaf: usize, tests: Arc<PageTests>) -> Result<()> {
        self.check_ahead(row_group)?;
        self.selections.entry(row_group).or_default().judges.insert(leaf, tests);
        Ok(())
    }

    /// What came of judging pages of the row group at hand, in all columns.
    pub(crate) fn judged(&self) -> Counts {
        let mut sum = Counts::default();
        let begun = self.current.as_ref().map_or(0, |group| group.started);
        for Counts { absent, undecided, pruned, .. } in
            self.columns.iter().take(begun).map(ColumnReader::judged)
        {
            sum.absent += absent;
            sum.undecided += undecided;
            sum.pruned += pruned;
        }
        sum
    }

    /// Reads the dictionary of a column, by its place among the leaves, before anything else of its chunk: of the row group that is begun
    /// with this, or was. False if the chunk does not begin with one.
    pub(crate) fn read_dictionary(&mut self, column: usize, budget: &mut Budget<'_>) -> Result<Step<bool>> {
        let step = |machine: &mut BatchReader| machine.advance_dictionary(column, budget);
        Failed::run(self, |machine| &mut machine.failed, step)
    }

    /// The dictionary of a column in the row group at hand, once it is read.
    pub(crate) fn dictionary(&self, column: usize) -> Option<&Entries> {
        // That of the row group before stays until the next one begins.
        let is_begun = self.current.as_ref().is_some_and(|group| column < group.started);
        self.columns.get(column).filter(|_| is_begun)?.dictionary()
    }

    fn advance_dictionary(&mut self, at: usize, budget: &mut Budget<'_>) -> Result<Step<bool>> {
        if !(self.is_measured || self.measure(budget)?)
            || !self.begin(budget)?
            || !self.start(at + 1, budget)?
        {
            return Ok(Step::Yield);
        }
        let (Some(group), Some(column)) = (&self.current, self.columns.get_mut(at)) else {
            return Err(Error::internal("a dictionary of no column"));
        };
        let own = column.recount(&mut self.held);
        let shared = self.input.held() + self.decompressors.held();
        let others = self.held.saturating_sub(own).saturating_add(shared);
        let memory =
            Memory::new(self.total, others, own).map_err(|error| column.place_in(group.number, error))?;
        let advance = column.advance_dictionary(&mut self.input, &mut self.decompressors, memory, budget)?;
        column.recount(&mut self.held);
        match advance {
            Going::Done(is_there) => Ok(Step::Ready(is_there)),
            Going::Yield => Ok(Step::Yield),
            Going::Need(()) => {
                let mut demand = Demand::default();
                column.want(&self.input, Priority::Now, &mut demand);
                Ok(Step::Need(demand))
            }
        }
    }

    fn check_ahead(&self, row_group: usize) -> Result<()> {
        self.failed.check()?;
        if self.row_groups.contains(&row_group) {
            return Ok(());
        }
        Err(Error::misuse(format!("row group {row_group} has begun, or is not read")))
    }

    /// Measures all leaves, on which the rows of a batch depend: true once it has.
    fn measure(&mut self, budget: &mut Budget<'_>) -> Result<bool> {
        let leaves = self.metadata.schema.leaves();
        // Arrays have no more room than the rows that come.
        while self.measured_groups < self.measured_end {
            let end = self.measured_end.min(self.measured_groups + MEASURED_AT_ONCE);
            budget.charge(MEASURE_GROUP_PRICE, 0, end - self.measured_groups);
            let some =
                self.metadata.row_groups.iter_from(self.measured_groups).take(end - self.measured_groups);
            self.group_rows = some.map(|group| group.rows).fold(self.group_rows, u64::max);
            self.measured_groups = end;
            if budget.is_spent() {
                return Ok(false);
            }
        }
        while self.measured < self.wanted.len() {
            let end = self.wanted.len().min(self.measured + MEASURED_AT_ONCE);
            budget.charge(MEASURE_PRICE, 0, end - self.measured);
            for number in (self.measured..end).map(|at| self.wanted.leaf(at)) {
                let leaf = leaves.get(number);
                let leaf = leaf.ok_or_else(|| Error::misuse(format!("leaf {number} of {}", leaves.len())))?;
                ColumnReader::check(&self.metadata.schema, leaf, &self.options)?;
                self.row_bytes = self.row_bytes.saturating_add(row_bytes(leaf));
                self.options.batch_rows = self.options.batch_rows.min(rows_max(leaf.physical_type));
            }
            self.measured = end;
            if end == self.wanted.len() {
                // A batch must leave room for the pages that it is decoded from.
                let most = usize::try_from(self.total.1 / BATCH_SHARE).unwrap_or(usize::MAX);
                self.batch_held = u64_of(most);
                let rows = self.options.batch_bytes.min(most) / self.row_bytes.max(1);
                let group_rows = usize::try_from(self.group_rows).unwrap_or(usize::MAX);
                self.options.batch_rows = self.options.batch_rows.min(rows).min(group_rows).max(1);
            }
            if budget.is_spent() {
                return Ok(false);
            }
        }
        self.is_measured = true;
        Ok(true)
    }

    /// Begins the next row group if there is none at hand. False if no rows of it are wanted.
    fn begin(&mut self, budget: &mut Budget<'_>) -> Result<bool> {
        if self.current.is_none() {
            let Some(number) = self.row_groups.next() else { return Ok(true) };
            let found = &self.metadata.row_groups[number];
            let selection = self.selections.remove(&number).unwrap_or_default();
            self.input.clear();
            self.current = Some(RowGroup {
                number,
                first_row: found.first_row,
                position: 0,
                rows_left: selection.rows.as_ref().map_or(found.rows, |rows| rows.rows()),
                selection,
                started: 0,
                full: 0,
                full_rows: usize::MAX,
                spare_rows: usize::MAX,
                rows: None,
                taken: Vec::new(),
                taken_bytes: 0,
            });
            budget.charge_units(GROUP_UNITS);
            if self.current.as_ref().is_some_and(|group| group.rows_left == 0) {
                // The host may want to select the rows of the next one.
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Builds and begins the columns before `end` in the row group at hand, in their order: true once they are. Not all columns at once: one that is
    /// begun shortly before it is decoded is still in the caches. Until then it holds what it has of the row group before.
    fn start(&mut self, end: usize, budget: &mut Budget<'_>) -> Result<bool> {
        let Some(group) = &mut self.current else { return Ok(true) };
        let found = &self.metadata.row_groups[group.number];
        while group.started < end.min(self.wanted.len()) {
            if group.started == self.columns.len() {
                let leaf = self.wanted.leaf(group.started);
                self.columns.push(ColumnReader::new(leaf, &self.metadata, &self.options)?);
                budget.charge_units(BUILD_UNITS);
            }
            let column = &mut self.columns[group.started];
            let chunk = &found.columns[column.leaf()];
            let selected = group.selection.rows.as_ref().map(|rows| {
                let pages = group.selection.pages.get(&column.leaf()).cloned();
                Selected::new(Arc::clone(rows), pages, found.rows)
            });
            let judge = group.selection.judges.get(&column.leaf()).cloned();
            let wanted = (found.rows, selected, judge);
            column.start(self.object, group.number, wanted, chunk, &self.options)?;
            column.recount(&mut self.held);
            group.started += 1;
            budget.charge_units(CHUNK_UNITS);
            if budget.is_spent() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn advance(&mut self, budget: &mut Budget<'_>) -> Result<Step<Batch>> {
        if !(self.is_measured || self.measure(budget)?) {
            return Ok(Step::Yield);
        }
        loop {
            if !self.begin(budget)? {
                return Ok(Step::Yield);
            }
            let Some(group) = &mut self.current else {
                // What the columns hold is released in steps, so that dropping the reader is little work.
                if !self.columns.is_empty() && !release_in_step(&mut self.columns, budget) {
                    return Ok(Step::Yield);
                }
                self.input.clear();
                self.held = 0;
                return Ok(Step::Done);
            };
            if group.rows_left == 0 {
                if self.metadata.row_groups[group.number].rows == 0
                    && !Self::check_empty(group, &self.wanted, &self.metadata, budget)?
                {
                    return Ok(Step::Yield);
                }
                self.current = None;
                if budget.is_spent() {
                    return Ok(Step::Yield);
                }
                continue;
            }
            if group.rows.is_none() {
                match self.fill(budget)? {
                    Going::Done(()) => {}
                    Going::Yield => return Ok(Step::Yield),
                    Going::Need(first) => return self.demand(first),
                }
            }
            let Some((group, rows)) = self.take(budget)? else { return Ok(Step::Yield) };
            let mut first = group.position;
            group.position += rows as u64;
            if let Some(selected) = &group.selection.rows {
                first = selected.next_run(first).map_or(first, |run| run.start);
                group.position = selected.after(first, rows as u64);
                budget.charge_units(RowSelection::units_of(rows));
            }
            let batch = Batch {
                row_group: group.number,
                first_row: group.first_row + first,
                rows,
                columns: core::mem::take(&mut group.taken),
            };
            group.rows_left -= rows as u64;
            (group.full, group.full_rows, group.rows, group.taken_bytes) = (0, usize::MAX, None, 0);
            return Ok(Step::Ready(batch));
        }
    }

    /// Decodes what each column has of the next batch, and says how many rows that has. `Need` is the column that waits.
    fn fill(&mut self, budget: &mut Budget<'_>) -> Result<Going<(), usize>> {
        let columns = self.wanted.len();
        loop {
            let Some(group) = &mut self.current else {
                return Err(Error::internal("a batch of no row group"));
            };
            let first = group.full;
            let rows_left = usize::try_from(group.rows_left).unwrap_or(usize::MAX);
            if first == columns {
                // A reader of no columns still counts rows.
                let rows = if columns == 0 { self.options.batch_rows } else { group.full_rows };
                (group.rows, group.spare_rows) = (Some(rows.min(rows_left)), usize::MAX);
                return Ok(Going::Done(()));
            }
            if !self.start(first + LOOK_AHEAD_COLUMNS, budget)? {
                return Ok(Going::Yield);
            }
            let Some(group) = &mut self.current else {
                return Err(Error::internal("a batch of no row group"));
            };
            // Spare rows of an earlier batch are handed out before more are decoded.
            let most = self.options.batch_rows.min(rows_left).min(group.spare_rows);
            let held = self.held.saturating_add(group.taken_bytes);
            let pages = if held > self.batch_held { self.batch_held / u64_of(columns) } else { u64::MAX };
            // More rows than another column has would only be held.
            let target =
                Target { rows: most.min(group.full_rows), pages: usize_of(pages).unwrap_or(usize::MAX) };
            let column = &mut self.columns[first];
            let own = column.recount(&mut self.held);
            let shared = self.input.held() + self.decompressors.held() + group.taken_bytes;
            let others = self.held.saturating_sub(own).saturating_add(shared);
            let memory =
                Memory::new(self.total, others, own).map_err(|error| column.place_in(group.number, error))?;
            let (input, decompressors) = (&mut self.input, &mut self.decompressors);
            let advance = column.advance(target, input, decompressors, memory, budget)?;
            let own = column.recount(&mut self.held);
            match advance {
                Going::Done(()) => {
                    group.full += 1;
                    group.full_rows = group.full_rows.min(column.rows());
                    budget.charge(COLUMN_PRICE, 0, 1);
                    // One that has as many rows as the batch will have at most, as all before it had.
                    if column.rows() == most && group.taken.len() == first {
                        group.taken.reserve_exact(columns - first);
                        if let Some(taken) = column.take(most, budget)? {
                            group.taken.push(taken);
                            group.taken_bytes += own.saturating_sub(column.recount(&mut self.held));
                        }
                    }
                }
                Going::Yield => return Ok(Going::Yield),
                Going::Need(()) => return Ok(Going::Need(first)),
            }
            if budget.is_spent() && group.full < columns {
                return Ok(Going::Yield);
            }
        }
    }

    /// Takes what the columns, which are full, have of the current batch, and returns how many rows that is. `None` when the budget is spent before.
    fn take(&mut self, budget: &mut Budget<'_>) -> Result<Option<(&mut RowGroup, usize)>> {
        let group = self.current.as_mut();
        let Some((rows, group)) = group.and_then(|group| Some((group.rows.filter(|&rows| rows > 0)?, group)))
        else {
            return Err(Error::internal("a batch of no rows"));
        };
        let columns = self.columns.len();
        // A later column has fewer rows.
        while group.taken.first().is_some_and(|taken| taken.rows > rows)
            && let Some(taken) = group.taken.pop()
        {
            // What each held is not known any more: on the average, that.
            let held = group.taken_bytes / u64_of(group.taken.len() + 1);
            group.taken_bytes -= held;
            let column = &mut self.columns[group.taken.len()];
            column.give_back(taken, usize_of(held).unwrap_or(usize::MAX));
            column.recount(&mut self.held);
            budget.charge(COLUMN_PRICE, 0, 1);
            if budget.is_spent() {
                return Ok(None);
            }
        }
        group.taken.reserve_exact(columns - group.taken.len());
        while group.taken.len() < columns {
            let column = &mut self.columns[group.taken.len()];
            let taken = column.take(rows, budget)?;
            if taken.is_some() && column.has_spare() {
                group.spare_rows = group.spare_rows.min(column.rows());
            }
            column.recount(&mut self.held);
            let Some(taken) = taken else { return Ok(None) };
            group.taken.push(taken);
            budget.charge(COLUMN_PRICE, 0, 1);
            if budget.is_spent() && group.taken.len() < columns {
                return Ok(None);
            }
        }
        Ok(Some((group, rows)))
    }

    /// Checks that the columns of a row group without rows have no values. False if the budget is spent first.
    fn check_empty(
        group: &mut RowGroup,
        wanted: &Wanted,
        metadata: &FileMetaData,
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        while group.started < wanted.len() {
            let leaf = wanted.leaf(group.started);
            let values = metadata.row_groups[group.number].columns[leaf].values;
            if values > 0 {
                let message = format!("a column chunk of {values} values in a row group of 0 rows");
                return Err(Error::corrupt(message).at(|place| {
                    place.row_group = Some(u64_of(group.number));
                    place.column = Some(metadata.schema.leaf_path(leaf));
                }));
            }
            group.started += 1;
            budget.charge(MEASURE_PRICE, 0, 1);
            if budget.is_spent() && group.started < wanted.len() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What the column `first` waits for, and what those behind it will want.
    fn demand(&self, first: usize) -> Result<Step<Batch>> {
        let mut demand = Demand::default();
        for (number, column) in self.columns.iter_from(first).take(LOOK_AHEAD_COLUMNS).enumerate() {
            let priority = if number == 0 { Priority::Now } else { Priority::Soon };
            column.want(&self.input, priority, &mut demand);
        }
        if demand.is_empty() {
            return Err(Error::internal("a column waits for nothing"));
        }
        Ok(Step::Need(demand))
    }

    fn check_object(&self, object: Object) -> Result<()> {
        if object == self.object {
            Ok(())
        } else {
            Err(Error::misuse("an object that is not this machine's"))
        }
    }
}

/// For a reader that is no longer wanted, in the middle of a file or after an error. At the file's end, it has released
/// everything itself.
impl Release for BatchReader {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.failed.set_released();
        let BatchReader { current, columns, input, selections, metadata, .. } = self;
        release_all(&mut [current, columns, input, selections, metadata], budget)
    }
}

impl Release for RowGroup {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.taken, &mut self.selection], budget)
    }
}

impl Release for Selection {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.rows, &mut self.pages], budget)
    }
}

impl Machine for BatchReader {
    type Product = Batch;

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Batch>> {
        Failed::run(self, |machine| &mut machine.failed, |machine| machine.advance(budget))
    }

    fn supply(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()> {
        self.check_object(object)?;
        check_supply(&range, &bytes, None)?;
        if self.current.is_some() { self.input.supply(range.start, bytes) } else { Ok(()) }
    }

    fn supply_length(&mut self, object: Object, _length: u64) -> Result<()> {
        self.check_object(object)
    }

    fn fail(&mut self, object: Object, _range: Range<u64>, reason: Error) {
        if object == self.object {
            self.failed.set(reason);
        }
    }
}
