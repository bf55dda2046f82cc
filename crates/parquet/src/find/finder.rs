//! Finding the rows for which a predicate is true.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::{
    Budget, Bytes, Codecs, Error, ErrorKind, Failed, Machine, Object, Price, Release, Result, Step,
    release_all,
};

use super::judged::{Indexes, Judged, Outcome};
use super::pages::ChunkPages;
use super::reading::Reading;
use super::report::{Report, Structures};
use crate::batch::{Layout, RowSelection};
use crate::bloom;
use crate::format::{FileMetaData, OffsetIndex};
use crate::growing::release_in_step;
use crate::prune::{Evaluator, LeafOrder, Operation, Predicate, Test, Verdict, compile};
use crate::read::{
    BatchReader, BloomPlace, BloomProbe, PageBloom, PageBloomProbe, PageIndexReader, PageSet, ReadOptions,
};

/// What a row group costs, and each of its tests that is judged.
const GROUP_UNITS: u64 = 200;
const JUDGE_PRICE: Price = Price::per_kilovalue(100 << 10);
/// What it costs to make a sub-machine.
const MACHINE_UNITS: u64 = 2_000;
/// Values that are looked up in a Bloom filter, at most: of more, one is likely there.
const PROBES_MAX: usize = 1024;
/// Bytes of page indexes that are kept for further searches.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// Options of a [`RowFinder`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FindOptions {
    /// How columns are read; of its row groups rows are found. Its leaves do not matter.
    pub read: ReadOptions,
    /// What is used to leave out row groups and pages.
    pub structures: Structures,
    /// Leaves whose pages are located, too, in row groups with rows that are found: those that will be read.
    pub locate: Vec<usize>,
    /// Rows that are wanted: when so many are found, it is done.
    pub limit: u64,
}

impl Default for FindOptions {
    fn default() -> FindOptions {
        let (read, structures) = (ReadOptions::default(), Structures::default());
        FindOptions { read, structures, locate: Vec::new(), limit: u64::MAX }
    }
}

/// The rows of a row group for which a predicate is true.
#[derive(Debug)]
pub struct Found {
    /// The row group.
    pub row_group: usize,
    /// Its rows; at least one. What [`BatchReader::select`] takes.
    pub rows: RowSelection,
    /// Where the pages of leaves are, as far as that was read: of the leaves that are tested, and of
    /// [`FindOptions::locate`]. What [`BatchReader::locate`] takes.
    pub pages: Vec<(usize, Arc<OffsetIndex>)>,
}

/// Finds the rows of a file for which a [`Predicate`] is true: one product a row group that has some, in order.
///
/// Of each row group it looks first at what is at hand, then at what is small, and reads values last: the statistics of
/// the chunks; Bloom filters, where these decide about the row group, of which it reads one block a value; the page
/// index; and then those pages of the tested columns that can have such rows. What follows from bounds alone is not
/// read at all.
///
/// Page indexes are kept, within 64 MiB: [`start`](RowFinder::start) begins another search in the same file with them.
///
/// ```
/// # use std::sync::Arc;
/// # use marquetry_base::{Codecs, Object, Result};
/// # use marquetry_parquet::format::FileMetaData;
/// # use marquetry_parquet::find::{FindOptions, RowFinder};
/// # use marquetry_parquet::prune::{Predicate, Ranges, Test};
/// # fn example(metadata: Arc<FileMetaData>, codecs: Arc<dyn Codecs>) -> Result<RowFinder> {
/// let seven = Predicate::Test(Test::accepting(0, Ranges::of_keys(7, 7)));
/// RowFinder::new(Object(0), metadata, codecs, seven, FindOptions::default())
/// # }
/// ```
pub struct RowFinder {
    object: Object,
    metadata: Arc<FileMetaData>,
    codecs: Arc<dyn Codecs>,
    options: FindOptions,
    /// The predicate in postfix form, with its tests; and the leaves that it tests, ascending.
    program: Vec<Operation>,
    tests: Vec<Test>,
    /// Of each test: the order of its leaf's bounds, and the hashes of its values, if it can be asked of a Bloom filter.
    orders: Vec<LeafOrder>,
    hashes: Vec<Option<Vec<u64>>>,
    evaluator: Evaluator,
    leaves: Vec<usize>,
    /// Row groups not begun.
    row_groups: Range<usize>,
    stage: Stage,
    /// What is known of the tests in the row group at hand.
    verdicts: Vec<Verdict>,
    /// Page indexes, by row group and leaf.
    pages: Indexes,
    kept_bytes: usize,
    /// Where the blocks of Bloom filters are, by row group and leaf, and what was read of the last one: several tests may ask it, one
    /// after the other.
    filters: BTreeMap<(usize, usize), BloomPlace>,
    /// Chunks, by row group and leaf, whose pages have Bloom filters that are not what was announced.
    distrusted: BTreeSet<(usize, usize)>,
    filter: FilterBytes,
    report: Report,
    failed: Failed,
}

/// Parts of the Bloom filter of a row group's leaf.
#[derive(Default)]
struct FilterBytes {
    of: (usize, usize),
    parts: Vec<(Range<u64>, Bytes)>,
}

/// Parts of a Bloom filter that are kept, at most.
const FILTER_PARTS_MAX: usize = 256;

/// Filters whose blocks are located, at most.
const FILTERS_MAX: usize = 1 << 12;

/// What is being done with the row group at hand.
enum Stage {
    /// The next one begins.
    Begin,
    /// Bloom filters are asked, of these tests and those behind them.
    Bloom { row_group: usize, test: usize, probe: Option<Box<Probing>> },
    /// Page indexes are read, of the leaves that are tested.
    Index { row_group: usize, reader: Option<Box<PageIndexReader>> },
    /// The order of bounds is checked.
    Check { row_group: usize, leaf: usize, pages: Box<ChunkPages>, reader: Box<PageIndexReader> },
    /// The pages of each test are judged, and put together.
    Judge(Box<Judged>),
    /// Bloom filters of pages are asked about a test; its pages so far.
    PageBloom { judged: Box<Judged>, test: usize, probe: Box<PageBloomProbe>, left: PageSet },
    /// Columns are read.
    Read(Box<Reading>),
    /// Columns were read that are released; then these rows are handed out.
    Release(Box<Reading>),
    /// The places of the pages are read that will be wanted.
    Locate { row_group: usize, rows: RowSelection, reader: Option<Box<PageIndexReader>> },
    /// Nothing more is wanted.
    Done,
}

struct Probing {
    probe: BloomProbe,
    /// Answers that are still to come.
    left: usize,
}

impl RowFinder {
    /// A finder in `object`, whose footer is `metadata`.
    ///
    /// # Errors
    ///
    /// `Misuse` for row groups or leaves that do not exist, and for ranges that do not suit a leaf's type.
    pub fn new(
        object: Object,
        metadata: Arc<FileMetaData>,
        codecs: Arc<dyn Codecs>,
        predicate: Predicate,
        options: FindOptions,
    ) -> Result<RowFinder> {
        let evaluator = Evaluator::new(&Predicate::Or(Vec::new()), &metadata.schema, &[])?;
        let mut finder = RowFinder {
            object,
            metadata,
            codecs,
            options,
            program: Vec::new(),
            tests: Vec::new(),
            orders: Vec::new(),
            hashes: Vec::new(),
            evaluator,
            leaves: Vec::new(),
            row_groups: 0..0,
            stage: Stage::Done,
            verdicts: Vec::new(),
            pages: Indexes::new(),
            kept_bytes: 0,
            filters: BTreeMap::new(),
            distrusted: BTreeSet::new(),
            filter: FilterBytes::default(),
            report: Report::default(),
            failed: Failed::default(),
        };
        finder.start(predicate)?;
        Ok(finder)
    }

    /// Begins another search, in the same row groups of the same file. What was read of its page index is kept.
    ///
    /// # Errors
    ///
    /// As those of [`RowFinder::new`], and the error that it has failed with.
    pub fn start(&mut self, predicate: Predicate) -> Result<()> {
        self.failed.check()?;
        let metadata = &self.metadata;
        let groups = metadata.row_groups.len();
        let row_groups = self.options.read.row_groups.clone().unwrap_or(0..groups);
        if row_groups.start > row_groups.end || row_groups.end > groups {
            return Err(Error::misuse(format!("row groups {row_groups:?} of {groups}")));
        }
        let (mut program, mut tests, mut orders) = (Vec::new(), Vec::new(), Vec::new());
        compile(&predicate, &mut program, &mut |test| {
            let leaves = metadata.schema.leaves().len();
            let order = LeafOrder::of(metadata, test.leaf);
            orders.push(order.ok_or_else(|| Error::misuse(format!("leaf {} of {leaves}", test.leaf)))?);
            tests.push(test.clone());
            Ok(tests.len() - 1)
        })?;
        let leaves = predicate.leaves();
        self.evaluator = Evaluator::new(&predicate, &metadata.schema, &leaves)?;
        let hashes = |test: &Test| {
            let values = test.plain_values(&metadata.schema, PROBES_MAX)?;
            Some(values.iter().map(|value| bloom::hash(value)).collect())
        };
        self.hashes = tests.iter().map(hashes).collect();
        (self.program, self.tests, self.orders) = (program, tests, orders);
        (self.leaves, self.row_groups, self.stage) = (leaves, row_groups, Stage::Begin);
        self.filter = FilterBytes::default();
        self.report = Report::default();
        Ok(())
    }

    /// What was found out so far, and by what.
    pub fn report(&self) -> &Report {
        &self.report
    }

    fn advance(&mut self, budget: &mut Budget<'_>) -> Result<Step<Found>> {
        loop {
            // What was done since the step began is progress.
            if budget.spent() > 0 && budget.is_spent() && !matches!(self.stage, Stage::Done) {
                return Ok(Step::Yield);
            }
            match &mut self.stage {
                Stage::Done => return Ok(Step::Done),
                Stage::Begin => {
                    let Some(row_group) =
                        self.row_groups.next().filter(|_| self.report.found < self.options.limit)
                    else {
                        self.stage = Stage::Done;
                        continue;
                    };
                    self.begin(row_group, budget)?;
                }
                Stage::Bloom { row_group, test, probe } => {
                    let row_group = *row_group;
                    let Some(probing) = probe else {
                        let from = *test;
                        match self.next_probe(row_group, from, budget)? {
                            Some((test, probing)) => {
                                self.stage = Stage::Bloom { row_group, test, probe: Some(Box::new(probing)) };
                            }
                            None => self.stage = Stage::Index { row_group, reader: None },
                        }
                        continue;
                    };
                    let is_there = match probing.probe.step(budget) {
                        Ok(Step::Ready(is_there)) => is_there,
                        Ok(Step::Done) => false,
                        Ok(Step::Need(demand)) => return Ok(Step::Need(demand)),
                        Ok(Step::Yield | Step::Append(..)) => return Ok(Step::Yield),
                        // A filter of a kind that is not known says nothing.
                        Err(error) if error.kind() == ErrorKind::Unsupported => true,
                        Err(error) => return Err(error),
                    };
                    let leaf = self.tests[*test].leaf;
                    if let Some(place) = probing.probe.place()
                        && self.filters.len() < FILTERS_MAX
                    {
                        self.filters.insert((row_group, leaf), place);
                    }
                    probing.left = probing.left.saturating_sub(1);
                    if !is_there && probing.left > 0 {
                        continue;
                    }
                    let test = *test;
                    if is_there {
                        self.report.bloom.undecided += 1;
                    } else {
                        self.verdicts[test] = Verdict::None;
                        if self.judge() == Verdict::None {
                            self.report.bloom.pruned += 1;
                            self.stage = Stage::Begin;
                            continue;
                        }
                    }
                    self.stage = Stage::Bloom { row_group, test: test + 1, probe: None };
                }
                Stage::Index { row_group, reader } => {
                    let row_group = *row_group;
                    let reader = match reader {
                        Some(reader) => reader,
                        None => match self.index_reader(row_group, budget)? {
                            Some(new) => {
                                self.stage = Stage::Index { row_group, reader: Some(Box::new(new)) };
                                continue;
                            }
                            None => {
                                self.begin_judging(row_group);
                                continue;
                            }
                        },
                    };
                    match reader.step(budget)? {
                        Step::Ready(chunk) => {
                            let order = LeafOrder::of(&self.metadata, chunk.leaf);
                            let order = order.ok_or_else(|| Error::internal("an index of no leaf"))?;
                            let rows = self.metadata.row_groups[row_group].rows;
                            let Stage::Index { reader: Some(reader), .. } =
                                core::mem::replace(&mut self.stage, Stage::Done)
                            else {
                                return Err(Error::internal("an index without a reader"));
                            };
                            let pages = ChunkPages::new(
                                chunk.offset_index,
                                chunk.column_index,
                                order,
                                rows,
                                index_bytes(&self.metadata, row_group, chunk.leaf),
                            )
                            .with_bloom(self.page_bloom(row_group, chunk.leaf));
                            let (leaf, pages) = (chunk.leaf, Box::new(pages));
                            self.stage = Stage::Check { row_group, leaf, pages, reader };
                        }
                        Step::Done => self.begin_judging(row_group),
                        Step::Need(demand) => return Ok(Step::Need(demand)),
                        Step::Yield | Step::Append(..) => return Ok(Step::Yield),
                    }
                }
                Stage::Check { pages, .. } => {
                    if !pages.check(budget) {
                        return Ok(Step::Yield);
                    }
                    let Stage::Check { row_group, leaf, pages, reader } =
                        core::mem::replace(&mut self.stage, Stage::Done)
                    else {
                        return Err(Error::internal("an index that is not checked"));
                    };
                    self.kept_bytes += pages.held();
                    self.pages.insert((row_group, leaf), Arc::from(pages));
                    self.stage = Stage::Index { row_group, reader: Some(reader) };
                }
                Stage::Judge(judged) => {
                    let (hashes, uses) = (&self.hashes, self.options.structures.page_bloom);
                    let (row_group, tests, distrusted) = (judged.row_group, &self.tests, &self.distrusted);
                    let may_ask = |test: usize| uses && !distrusted.contains(&(row_group, tests[test].leaf));
                    let outcome = judged.step(
                        (&self.program, &self.tests, &self.verdicts),
                        |test| hashes.get(test)?.as_ref().filter(|_| may_ask(test)).map(Vec::len),
                        &self.pages,
                        &self.metadata,
                        &mut self.report,
                        budget,
                    )?;
                    match outcome {
                        Outcome::Yield => return Ok(Step::Yield),
                        Outcome::Ask(test, bloom) => {
                            let judged = core::mem::take(judged);
                            let hashes = self.hashes.get(test).cloned().flatten().unwrap_or_default();
                            budget.charge_units(MACHINE_UNITS);
                            budget.charge(JUDGE_PRICE, 0, hashes.len());
                            let left = PageSet::none(bloom.pages());
                            let probe = Box::new(PageBloomProbe::new(self.object, bloom, hashes));
                            self.stage = Stage::PageBloom { judged, test, probe, left };
                        }
                        Outcome::Rows(rows) => {
                            let row_group = judged.row_group;
                            self.begin_reading(row_group, rows, budget)?;
                        }
                    }
                }
                Stage::PageBloom { judged, test, probe, left } => {
                    let answer = match probe.step(budget)? {
                        Step::Ready(Some(pages)) => {
                            left.add(&pages)?;
                            continue;
                        }
                        Step::Ready(None) => {
                            self.distrusted.insert(probe.bloom().chunk());
                            None
                        }
                        Step::Done => Some(core::mem::take(left)),
                        Step::Need(demand) => return Ok(Step::Need(demand)),
                        Step::Yield | Step::Append(..) => return Ok(Step::Yield),
                    };
                    judged.sets.insert(*test, answer);
                    let judged = core::mem::take(judged);
                    self.stage = Stage::Judge(judged);
                }
                Stage::Read(reading) => {
                    match reading.step(&mut self.evaluator, self.options.limit, &mut self.report, budget)? {
                        Step::Ready(()) => {
                            let stage = core::mem::replace(&mut self.stage, Stage::Done);
                            let Stage::Read(reading) = stage else {
                                return Err(Error::internal("a column that is not read"));
                            };
                            self.stage = Stage::Release(reading);
                        }
                        Step::Need(demand) => return Ok(Step::Need(demand)),
                        _ => return Ok(Step::Yield),
                    }
                }
                Stage::Release(reading) => {
                    if !release_in_step(&mut **reading, budget) {
                        return Ok(Step::Yield);
                    }
                    let (row_group, rows) = (reading.row_group, core::mem::take(&mut reading.found));
                    self.stage = Stage::Begin;
                    if !rows.is_empty() {
                        self.stage = Stage::Locate { row_group, rows, reader: None };
                    }
                }
                Stage::Locate { row_group, rows, reader } => {
                    let row_group = *row_group;
                    let reader = match reader {
                        Some(reader) => reader,
                        None => {
                            let rows = core::mem::take(rows);
                            match self.locator(row_group, budget)? {
                                Some(new) => {
                                    let reader = Some(Box::new(new));
                                    self.stage = Stage::Locate { row_group, rows, reader };
                                    continue;
                                }
                                None => return Ok(Step::Ready(self.found(row_group, rows))),
                            }
                        }
                    };
                    match reader.step(budget)? {
                        Step::Ready(chunk) => {
                            let order = LeafOrder::of(&self.metadata, chunk.leaf);
                            let order = order.ok_or_else(|| Error::internal("an index of no leaf"))?;
                            let rows = self.metadata.row_groups[row_group].rows;
                            let pages = ChunkPages::new(chunk.offset_index, None, order, rows, 0)
                                .with_bloom(self.page_bloom(row_group, chunk.leaf));
                            self.kept_bytes += pages.held();
                            self.pages.insert((row_group, chunk.leaf), Arc::new(pages));
                        }
                        Step::Done => {
                            let rows = core::mem::take(rows);
                            return Ok(Step::Ready(self.found(row_group, rows)));
                        }
                        Step::Need(demand) => return Ok(Step::Need(demand)),
                        Step::Yield | Step::Append(..) => return Ok(Step::Yield),
                    }
                }
            }
        }
    }

    /// What follows from the verdicts.
    fn judge(&self) -> Verdict {
        let mut stack = Vec::new();
        for operation in &self.program {
            let verdict = match operation {
                Operation::Test(number) => self.verdicts.get(*number).copied().unwrap_or(Verdict::Some),
                Operation::All(true) => Verdict::All,
                Operation::All(false) => Verdict::None,
                Operation::And | Operation::Or => {
                    let (Some(right), Some(left)) = (stack.pop(), stack.pop()) else { return Verdict::Some };
                    let both = if matches!(operation, Operation::And) { Verdict::and } else { Verdict::or };
                    both(left, right)
                }
            };
            stack.push(verdict);
        }
        stack.pop().unwrap_or(Verdict::Some)
    }

    /// Begins a row group: what do the statistics of its chunks say?
    fn begin(&mut self, row_group: usize, budget: &mut Budget<'_>) -> Result<()> {
        if self.kept_bytes > KEPT_BYTES_MAX {
            // They are shared with whoever is still reading; what is not is freed here, at most this much.
            self.pages.clear();
            self.kept_bytes = 0;
        }
        let group = &self.metadata.row_groups[row_group];
        budget.charge_units(GROUP_UNITS);
        budget.charge(JUDGE_PRICE, 0, self.tests.len());
        self.report.row_groups += 1;
        self.report.rows += group.rows;
        let uses = self.options.structures.statistics;
        let schema = &self.metadata.schema;
        self.verdicts.clear();
        let mut has_any = false;
        for (test, order) in self.tests.iter().zip(&self.orders) {
            let verdict = match group.columns.get(test.leaf).filter(|_| uses) {
                Some(chunk) => {
                    has_any |= chunk.statistics.is_some();
                    test.judge(&order.of_chunk(chunk), order, schema)
                }
                None => Verdict::Some,
            };
            self.verdicts.push(verdict);
        }
        let verdict = self.judge();
        let counts = &mut self.report.statistics;
        match verdict {
            Verdict::Some if !has_any => counts.absent += 1,
            Verdict::Some => counts.undecided += 1,
            Verdict::None | Verdict::All => counts.pruned += 1,
        }
        self.stage = match verdict {
            _ if group.rows == 0 => Stage::Begin,
            Verdict::None => Stage::Begin,
            Verdict::Some => Stage::Bloom { row_group, test: 0, probe: None },
            Verdict::All => {
                self.report.found += group.rows;
                let rows = RowSelection::of(0..group.rows)?;
                Stage::Locate { row_group, rows, reader: None }
            }
        };
        Ok(())
    }

    /// The next test from `from` on whose filter can decide about the row group, and a probe of it.
    fn next_probe(
        &mut self,
        row_group: usize,
        from: usize,
        budget: &mut Budget<'_>,
    ) -> Result<Option<(usize, Probing)>> {
        if !self.options.structures.bloom {
            return Ok(None);
        }
        let group = &self.metadata.row_groups[row_group];
        budget.charge(JUDGE_PRICE, 0, self.tests.len());
        let mut candidates = Vec::new();
        for (number, test) in self.tests.iter().enumerate().skip(from) {
            if self.verdicts[number] != Verdict::Some || self.hashes[number].is_none() {
                continue;
            }
            if group.columns.get(test.leaf).is_some_and(|chunk| chunk.bloom_filter.is_some()) {
                candidates.push(number);
            } else if from == 0 {
                self.report.bloom.absent += 1;
            }
        }
        let Some(&number) = candidates.first() else { return Ok(None) };
        // If none of their values were there, would that decide?
        candidates.iter().for_each(|number| self.verdicts[*number] = Verdict::None);
        let decides = self.judge() == Verdict::None;
        candidates.iter().for_each(|number| self.verdicts[*number] = Verdict::Some);
        let Some(hashes) = self.hashes[number].clone().filter(|_| decides) else { return Ok(None) };
        budget.charge(JUDGE_PRICE, 0, hashes.len());
        budget.charge_units(MACHINE_UNITS);
        let (left, leaf) = (hashes.len(), self.tests[number].leaf);
        let mut probe = BloomProbe::new(self.object, &self.metadata, row_group, leaf, hashes)?;
        if self.filter.of != (row_group, leaf) {
            self.filter = FilterBytes { of: (row_group, leaf), parts: Vec::new() };
        }
        if let Some(place) = self.filters.get(&(row_group, leaf)) {
            probe = probe.located(*place);
        }
        for (range, bytes) in &self.filter.parts {
            Machine::supply(&mut probe, self.object, range.clone(), bytes.clone())?;
        }
        Ok(Some((number, Probing { probe, left })))
    }

    /// A reader of the indexes of the leaves that are tested; `None` if all that there are are at hand.
    fn index_reader(&mut self, row_group: usize, budget: &mut Budget<'_>) -> Result<Option<PageIndexReader>> {
        let Structures { index, page_bloom, .. } = self.options.structures;
        // What Bloom filters say of pages says something of rows only with the places of pages.
        let is_useful = |leaf: &usize| index || page_bloom && self.page_bloom(row_group, *leaf).is_some();
        let leaves: Vec<usize> = self.leaves.iter().copied().filter(is_useful).collect();
        self.missing_indexes(row_group, &leaves, index, budget)
    }

    /// The Bloom filters of a chunk's pages, if they are to be asked.
    fn page_bloom(&self, row_group: usize, leaf: usize) -> Option<PageBloom> {
        self.options.structures.page_bloom.then(|| PageBloom::of(&self.metadata, row_group, leaf)).flatten()
    }

    /// A reader of the indexes of leaves that will be read.
    fn locator(&mut self, row_group: usize, budget: &mut Budget<'_>) -> Result<Option<PageIndexReader>> {
        let leaves = self.options.locate.clone();
        self.missing_indexes(row_group, &leaves, false, budget)
    }

    fn missing_indexes(
        &mut self,
        row_group: usize,
        leaves: &[usize],
        has_bounds: bool,
        budget: &mut Budget<'_>,
    ) -> Result<Option<PageIndexReader>> {
        budget.charge(JUDGE_PRICE, 0, leaves.len());
        let columns = &self.metadata.row_groups[row_group].columns;
        let mut missing = Vec::new();
        for leaf in leaves {
            let chunk = columns.get(*leaf).filter(|chunk| chunk.offset_index.is_some() && !chunk.encrypted);
            let lacks_bounds = |pages: &Arc<ChunkPages>| {
                has_bounds && !pages.has_bounds() && chunk.is_some_and(|chunk| chunk.column_index.is_some())
            };
            match (self.pages.get(&(row_group, *leaf)), chunk) {
                (Some(pages), _) if !lacks_bounds(pages) => {}
                (_, Some(_)) => missing.push(*leaf),
                (_, None) => {}
            }
        }
        if missing.is_empty() {
            return Ok(None);
        }
        budget.charge_units(MACHINE_UNITS);
        let mut read = self.options.read.clone();
        (read.leaves, read.row_groups) = (Some(missing), Some(row_group..row_group + 1));
        let reader = PageIndexReader::new(self.object, Arc::clone(&self.metadata), &read)?;
        Ok(Some(if has_bounds { reader } else { reader.without_bounds() }))
    }

    fn begin_judging(&mut self, row_group: usize) {
        self.stage = Stage::Judge(Box::new(Judged::new(row_group)));
    }

    fn begin_reading(&mut self, row_group: usize, rows: RowSelection, budget: &mut Budget<'_>) -> Result<()> {
        let group = &self.metadata.row_groups[row_group];
        if rows.is_empty() {
            self.stage = Stage::Begin;
            return Ok(());
        }
        budget.charge_units(MACHINE_UNITS);
        let mut read = self.options.read.clone();
        (read.leaves, read.row_groups) = (Some(self.leaves.clone()), Some(row_group..row_group + 1));
        (read.layout, read.keep_dictionaries) = (Layout::Spaced, true);
        let (metadata, codecs) = (Arc::clone(&self.metadata), Arc::clone(&self.codecs));
        let mut reader = BatchReader::new(self.object, metadata, codecs, read)?;
        self.report.tested += rows.rows();
        let wanted = (rows.rows() < group.rows).then_some(rows);
        if let Some(rows) = &wanted {
            reader.select(row_group, rows.clone())?;
            for leaf in &self.leaves {
                if let Some(pages) = self.pages.get(&(row_group, *leaf)) {
                    reader.locate(row_group, *leaf, Arc::clone(&pages.offset_index))?;
                }
            }
        }
        self.stage = Stage::Read(Box::new(Reading {
            row_group,
            reader,
            wanted,
            batch: None,
            used: None,
            found: RowSelection::none(),
        }));
        Ok(())
    }

    fn found(&mut self, row_group: usize, rows: RowSelection) -> Found {
        self.stage = Stage::Begin;
        let leaves = self.leaves.iter().chain(&self.options.locate);
        let pages = leaves.filter_map(|leaf| {
            let pages = self.pages.get(&(row_group, *leaf))?;
            Some((*leaf, Arc::clone(&pages.offset_index)))
        });
        Found { row_group, rows, pages: pages.collect() }
    }
}

/// Bytes of a chunk's column index in the file.
fn index_bytes(metadata: &FileMetaData, row_group: usize, leaf: usize) -> usize {
    let chunk = metadata.row_groups.get(row_group).and_then(|group| group.columns.get(leaf));
    usize_of_u32(chunk.and_then(|chunk| chunk.column_index).map_or(0, |(_, length)| length))
}

impl Stage {
    fn machine(&mut self) -> Option<&mut dyn Supplied> {
        match self {
            Stage::Bloom { probe, .. } => {
                probe.as_mut().map(|probing| &mut probing.probe as &mut dyn Supplied)
            }
            Stage::Index { reader, .. } | Stage::Locate { reader, .. } => {
                reader.as_mut().map(|reader| &mut **reader as &mut dyn Supplied)
            }
            Stage::Check { reader, .. } => Some(&mut **reader),
            Stage::PageBloom { probe, .. } => Some(&mut **probe),
            Stage::Read(reading) => Some(&mut reading.reader),
            Stage::Begin | Stage::Judge(_) | Stage::Release(_) | Stage::Done => None,
        }
    }
}

/// A machine, whatever it makes.
trait Supplied {
    fn supply(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()>;
    fn fail(&mut self, object: Object, range: Range<u64>, reason: Error);
}

impl<M: Machine> Supplied for M {
    fn supply(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()> {
        Machine::supply(self, object, range, bytes)
    }

    fn fail(&mut self, object: Object, range: Range<u64>, reason: Error) {
        Machine::fail(self, object, range, reason);
    }
}

impl Machine for RowFinder {
    type Product = Found;

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Found>> {
        Failed::run(self, |machine| &mut machine.failed, |machine| machine.advance(budget))
    }

    fn supply(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()> {
        if object != self.object {
            return Err(Error::misuse("an object that is not this machine's"));
        }
        self.report.bytes += u64_of(bytes.len());
        self.report.reads += 1;
        let is_kept = matches!(self.stage, Stage::Bloom { .. }) && self.filter.parts.len() < FILTER_PARTS_MAX;
        let kept = is_kept.then(|| (range.clone(), bytes.clone()));
        if let Some(machine) = self.stage.machine() {
            machine.supply(object, range, bytes)?;
            self.filter.parts.extend(kept);
        }
        Ok(())
    }

    fn supply_length(&mut self, _object: Object, _length: u64) -> Result<()> {
        Ok(())
    }

    fn fail(&mut self, object: Object, range: Range<u64>, reason: Error) {
        if object != self.object {
            return;
        }
        match self.stage.machine() {
            Some(machine) => machine.fail(object, range, reason),
            None => {
                self.failed.set(reason);
            }
        }
    }
}

/// For a finder that is no longer wanted.
impl Release for RowFinder {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.failed.set_released();
        let stage = match &mut self.stage {
            Stage::Read(reading) | Stage::Release(reading) => reading.release(budget),
            Stage::Index { reader: Some(reader), .. } | Stage::Locate { reader: Some(reader), .. } => {
                reader.release(budget)
            }
            Stage::Check { pages, reader, .. } => release_all(&mut [&mut **pages, &mut **reader], budget),
            _ => true,
        };
        if !stage {
            return false;
        }
        while let Some(mut entry) = self.pages.first_entry() {
            if let Some(pages) = Arc::get_mut(entry.get_mut())
                && !pages.release(budget)
            {
                return false;
            }
            entry.remove();
        }
        release_all(&mut [&mut self.metadata], budget)
    }
}
