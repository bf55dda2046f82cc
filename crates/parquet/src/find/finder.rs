//! Finding the rows for which a predicate is true.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::{
    Budget, Bytes, Codecs, Demand, Error, Failed, Machine, Object, Price, Release, Result, Step, Want,
    release_all,
};

use super::blooms::{self, Blooms};
use super::judged::{Indexes, Judged, Outcome};
use super::options::{FindOptions, Found, Stopped};
use super::pages::ChunkPages;
use super::program::{Known, Program};
use super::reading::Reading;
use super::report::{Report, Structures};
use super::{dictionaries, dispensable};
use crate::batch::{Batch, Combine, Combining, Layout, RowSelection};
use crate::bloom;
use crate::format::FileMetaData;
use crate::growing::release_in_step;
use crate::prune::{Counts, Evaluator, LeafOrder, Matcher, Predicate, Test, Verdict};
use crate::read::{BatchReader, PageBloom, PageBloomProbe, PageIndexReader, PageSet, PageTests};
use crate::schema::Schema;

/// What a row group costs, and each of its tests that is judged.
const GROUP_UNITS: u64 = 200;
const JUDGE_PRICE: Price = Price::per_kilovalue(100 << 10);
/// What a row group costs of which no rows are wanted: a search in the ranges.
const LEFT_OUT_UNITS: u64 = 100;
/// What it costs to make a sub-machine.
const MACHINE_UNITS: u64 = 2_000;
/// Values that are looked up in a Bloom filter, at most: of more, one is likely there.
const PROBES_MAX: usize = 1024;
/// Bytes of page indexes that are kept for further searches.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// Finds the rows of a file for which a [`Predicate`] is true: one product a row group that has some, in order.
///
/// Of each row group it looks first at what is at hand, then at what is small, and reads values last: the statistics of
/// the chunks; Bloom filters, where these decide about the row group, of which it reads one block a value; the page
/// index; dictionaries, where they list every value of a chunk; and then those pages of the tested columns that can have such rows,
/// by their headers, too, where no index says so. What follows from bounds alone is not read at all.
///
/// What is corrupt and can be done without is not used: a page index, a Bloom filter. The report counts it.
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
    program: Program,
    /// Of each test: the order of its leaf's bounds; the hashes of its values, if it can be asked of a Bloom filter; and what tests
    /// entries of dictionaries, once it was used.
    orders: Vec<LeafOrder>,
    hashes: Vec<Option<Vec<u64>>>,
    matchers: Vec<Option<Matcher>>,
    /// Of each leaf that is tested: what pages are judged by, if nothing else says what they have.
    page_tests: Vec<Option<Arc<PageTests>>>,
    evaluator: Evaluator,
    /// What read the row group before, to read the next one.
    reader: Option<Box<BatchReader>>,
    /// Row groups not begun.
    row_groups: Range<usize>,
    stage: Stage,
    /// What is known of the tests in the row group at hand.
    known: Known,
    /// Page indexes, by row group and leaf, and those that are corrupt.
    pages: Indexes,
    kept_bytes: usize,
    distrusted: BTreeSet<(usize, usize)>,
    /// Chunks, by row group and leaf, whose pages have Bloom filters that are not what was announced.
    distrusted_blooms: BTreeSet<(usize, usize)>,
    blooms: Blooms,
    report: Report,
    failed: Failed,
}

/// What is being done with the row group at hand.
enum Stage {
    /// The next one begins.
    Begin,
    /// Bloom filters are asked.
    Bloom { row_group: usize, asking: Box<blooms::Asking> },
    /// Page indexes are read, of the leaves that are tested.
    Index { row_group: usize, reader: Option<Box<PageIndexReader>> },
    /// The order of bounds is checked.
    Check { row_group: usize, leaf: usize, pages: Box<ChunkPages>, reader: Box<PageIndexReader> },
    /// The pages of each test are judged, and put together. If that was done before, what was about to be read then.
    Judge(Box<Judged>, Option<Box<Reading>>),
    /// Of the rows that can pass those before [`FindOptions::first_row`] are left out.
    Narrow { row_group: usize, rows: Box<Combining>, before: Option<Box<Reading>> },
    /// Bloom filters of pages are asked about a test; its pages so far.
    PageBloom { judged: Box<Judged>, test: usize, probe: Box<PageBloomProbe>, left: PageSet },
    /// These rows of the columns are about to be read.
    Open { row_group: usize, rows: RowSelection, how: How },
    /// Dictionaries are asked.
    Dictionary(Box<dictionaries::Asking>),
    /// Columns are read.
    Read(Box<Reading>),
    /// What is not needed any more is released; then it goes on.
    Release(Released, Box<Stage>),
    /// The places of the pages are read that will be wanted.
    Locate { row_group: usize, rows: RowSelection, reader: Option<Box<PageIndexReader>> },
    /// Nothing more is wanted.
    Done,
}

/// How a row group is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// Dictionaries are asked first.
    Asking,
    /// They were asked.
    Asked,
    /// Page by page: what is said of pages elsewhere was wrong.
    Plainly,
}

enum Released {
    Reading(Box<Reading>),
    /// What was read last and selected, where the reader is kept.
    Rest(Option<Batch>, Option<RowSelection>),
    Reader(Box<BatchReader>),
    Index(Box<PageIndexReader>),
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
            program: Program::default(),
            orders: Vec::new(),
            hashes: Vec::new(),
            matchers: Vec::new(),
            page_tests: Vec::new(),
            evaluator,
            reader: None,
            row_groups: 0..0,
            stage: Stage::Done,
            known: Known::default(),
            pages: Indexes::new(),
            kept_bytes: 0,
            distrusted: BTreeSet::new(),
            distrusted_blooms: BTreeSet::new(),
            blooms: Blooms::default(),
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
        let first = self.options.first_row;
        if first > 0 && metadata.row_groups.get(row_groups.start).is_none_or(|group| group.rows <= first) {
            return Err(Error::misuse(format!(
                "a search from row {first} of a row group that ends before it"
            )));
        }
        let program = Program::of(&predicate)?;
        let leaves = metadata.schema.leaves().len();
        let orders = program.tests.iter().map(|test| {
            let order = LeafOrder::of(metadata, test.leaf);
            order.ok_or_else(|| Error::misuse(format!("leaf {} of {leaves}", test.leaf)))
        });
        self.orders = orders.collect::<Result<_>>()?;
        self.evaluator = Evaluator::new(&predicate, &metadata.schema, &program.leaves)?;
        self.hashes = program.tests.iter().map(|test| hashes(test, &metadata.schema)).collect();
        self.matchers = program.tests.iter().map(|_| None).collect();
        self.page_tests = page_tests(&program, metadata);
        let other = self.reader.take_if(|_| self.program.leaves != program.leaves);
        let release = |reader| Stage::Release(Released::Reader(reader), Box::new(Stage::Begin));
        self.stage = other.map_or(Stage::Begin, release);
        (self.program, self.row_groups) = (program, row_groups);
        self.blooms.start();
        self.report = Report::default();
        Ok(())
    }

    /// What was found out so far, and by what.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Where the search is: the row group at hand, and the first of its rows that is not searched. `None` once it is done.
    pub fn position(&self) -> Option<(usize, u64)> {
        let mut stage = &self.stage;
        let (row_group, next_row) = loop {
            break match stage {
                Stage::Done => return None,
                Stage::Begin => (self.row_groups.clone().next()?, 0),
                Stage::Bloom { row_group, .. }
                | Stage::Index { row_group, .. }
                | Stage::Check { row_group, .. }
                | Stage::Narrow { row_group, .. }
                | Stage::Open { row_group, .. } => (*row_group, 0),
                Stage::Judge(judged, _) | Stage::PageBloom { judged, .. } => (judged.row_group, 0),
                Stage::Dictionary(asking) => (asking.reading.row_group, 0),
                Stage::Read(reading) => (reading.row_group, reading.next_row),
                Stage::Locate { row_group, .. } => (*row_group, self.metadata.row_groups[*row_group].rows),
                Stage::Release(_, then) => {
                    stage = &**then;
                    continue;
                }
            };
        };
        Some((row_group, next_row.max(self.first_row_of(row_group))))
    }

    /// Ends the search where it is, for a host whose time is up: another finder goes on from there
    /// ([`FindOptions::first_row`]). What it holds is dropped. `None` if it is done.
    ///
    /// # Errors
    ///
    /// The error that it has failed with.
    pub fn stop(&mut self) -> Result<Option<Stopped>> {
        self.failed.check()?;
        let Some((row_group, next_row)) = self.position() else { return Ok(None) };
        let mut stage = core::mem::replace(&mut self.stage, Stage::Done);
        while let Stage::Release(_, then) = stage {
            stage = *then;
        }
        let rows = match stage {
            Stage::Read(reading) => reading.found,
            Stage::Locate { rows, .. } => rows,
            _ => RowSelection::none(),
        };
        let found = (!rows.is_empty()).then(|| self.found(row_group, rows));
        self.stage = Stage::Done;
        Ok(Some(Stopped { row_group, next_row, found }))
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
                    if self.is_left_out(row_group) {
                        budget.charge_units(LEFT_OUT_UNITS);
                        continue;
                    }
                    self.begin(row_group, budget)?;
                }
                Stage::Bloom { row_group, asking } => {
                    let step = asking.step(
                        (self.object, &self.metadata),
                        (&self.program, &mut self.known, &self.hashes),
                        (&mut self.blooms, &mut self.report.bloom),
                        budget,
                    )?;
                    self.stage = match step {
                        Step::Ready(true) => Stage::Begin,
                        Step::Ready(false) => Stage::Index { row_group: *row_group, reader: None },
                        Step::Need(demand) => return Ok(Step::Need(demand)),
                        _ => return Ok(Step::Yield),
                    };
                }
                Stage::Index { row_group, reader } => {
                    let row_group = *row_group;
                    let Some(reader) = reader else {
                        self.stage = match self.index_reader(row_group, budget)? {
                            Some(new) => Stage::Index { row_group, reader: Some(Box::new(new)) },
                            None => Stage::Judge(Box::new(Judged::new(row_group)), None),
                        };
                        continue;
                    };
                    match reader.step(budget) {
                        Ok(Step::Ready(chunk)) => {
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
                        Ok(Step::Done) => {
                            self.stage = Stage::Judge(Box::new(Judged::new(row_group)), None);
                        }
                        Ok(Step::Need(demand)) => return Ok(Step::Need(demand)),
                        Ok(Step::Yield | Step::Append(..)) => return Ok(Step::Yield),
                        Err(error) => self.distrust(error)?,
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
                Stage::Judge(judged, before) => {
                    let (hashes, uses) = (&self.hashes, self.options.structures.page_bloom);
                    let (row_group, tests) = (judged.row_group, &self.program.tests);
                    let distrusted = &self.distrusted_blooms;
                    let may_ask = |test: usize| uses && !distrusted.contains(&(row_group, tests[test].leaf));
                    let outcome = judged.step(
                        (&self.program.operations, tests, self.known.tests()),
                        |test| hashes.get(test)?.as_ref().filter(|_| may_ask(test)).map(Vec::len),
                        (&self.pages, &self.distrusted),
                        &self.metadata,
                        &mut self.report,
                        budget,
                    )?;
                    match (outcome, before.take()) {
                        (Outcome::Yield, reading) => {
                            *before = reading;
                            return Ok(Step::Yield);
                        }
                        (Outcome::Ask(test, bloom), _) => {
                            let mut judged = core::mem::take(judged);
                            let hashes = self.hashes.get(test).cloned().flatten().unwrap_or_default();
                            budget.charge_units(MACHINE_UNITS);
                            budget.charge(JUDGE_PRICE, 0, hashes.len());
                            let left = PageSet::none(bloom.pages());
                            let probe = match judged.probe.take().filter(|probe| *probe.bloom() == bloom) {
                                Some(probe) => Box::new(probe.again(hashes)),
                                None => Box::new(PageBloomProbe::new(self.object, bloom, hashes)),
                            };
                            self.stage = Stage::PageBloom { judged, test, probe, left };
                        }
                        (Outcome::Rows(rows), before) => match self.first_row_of(row_group) {
                            0 => self.go_on(row_group, rows, before),
                            first => {
                                let rest = first..self.metadata.row_groups[row_group].rows;
                                let rest = rows.combine(RowSelection::of(rest)?, Combine::Intersection);
                                self.stage = Stage::Narrow { row_group, rows: Box::new(rest), before };
                            }
                        },
                    }
                }
                Stage::Narrow { row_group, rows, before } => {
                    let Some(rows) = rows.step(budget)? else { return Ok(Step::Yield) };
                    let (row_group, before) = (*row_group, before.take());
                    self.go_on(row_group, rows, before);
                }
                Stage::PageBloom { probe, left, .. } => {
                    let answer = match probe.step(budget)? {
                        Step::Ready(Some(pages)) => {
                            left.add(&pages)?;
                            continue;
                        }
                        Step::Ready(None) => {
                            self.distrusted_blooms.insert(probe.bloom().chunk());
                            self.report.page_bloom.distrusted += 1;
                            None
                        }
                        Step::Done => Some(core::mem::take(left)),
                        Step::Need(demand) => return Ok(Step::Need(demand)),
                        Step::Yield | Step::Append(..) => return Ok(Step::Yield),
                    };
                    let Stage::PageBloom { mut judged, test, probe, .. } =
                        core::mem::replace(&mut self.stage, Stage::Done)
                    else {
                        return Err(Error::internal("filters of pages that are not asked"));
                    };
                    judged.sets.insert(test, answer);
                    judged.probe = Some(probe);
                    self.stage = Stage::Judge(judged, None);
                }
                Stage::Open { row_group, rows, how } => {
                    let (row_group, rows, how) = (*row_group, core::mem::take(rows), *how);
                    self.open(row_group, rows, how, budget)?;
                }
                Stage::Dictionary(asking) => {
                    let step = asking.step(
                        (&self.program, &mut self.known, &mut self.matchers),
                        (&self.metadata, self.options.structures.statistics),
                        &mut self.report.dictionary,
                        budget,
                    );
                    let verdict = match step {
                        Ok(Step::Ready(verdict)) => verdict,
                        Ok(Step::Need(demand)) => return Ok(Step::Need(demand)),
                        Ok(_) => return Ok(Step::Yield),
                        Err(error) => {
                            self.read_plainly(error)?;
                            continue;
                        }
                    };
                    let Stage::Dictionary(asking) = core::mem::replace(&mut self.stage, Stage::Done) else {
                        return Err(Error::internal("a dictionary that is not read"));
                    };
                    let dictionaries::Asking { reading, has_learned, .. } = *asking;
                    let row_group = reading.row_group;
                    self.stage = match verdict {
                        Verdict::None => Stage::Release(Released::Reading(reading), Box::new(Stage::Begin)),
                        Verdict::All => {
                            let then = self.all_rows(row_group)?;
                            Stage::Release(Released::Reading(reading), Box::new(then))
                        }
                        // Other pages may be ruled out by what is known now.
                        Verdict::Some if has_learned => {
                            Stage::Judge(Box::new(Judged::again(row_group)), Some(reading))
                        }
                        Verdict::Some => self.read(reading),
                    };
                }
                Stage::Read(reading) => {
                    let limit = self.options.limit;
                    match reading.step(&mut self.evaluator, limit, &mut self.report, budget) {
                        Ok(Step::Ready(())) => {
                            let row_group = reading.row_group;
                            let rows = core::mem::take(&mut reading.found);
                            let Counts { absent, undecided, pruned, .. } = reading.reader.judged();
                            self.report.page_statistics.absent += absent;
                            self.report.page_statistics.undecided += undecided;
                            self.report.page_statistics.pruned += pruned;
                            let then = match rows.is_empty() {
                                true => Stage::Begin,
                                false => Stage::Locate { row_group, rows, reader: None },
                            };
                            self.release_reading(then)?;
                        }
                        Ok(Step::Need(demand)) if reading.is_again => return Ok(Step::Need(in_two(demand))),
                        Ok(Step::Need(demand)) => return Ok(Step::Need(demand)),
                        Ok(_) => return Ok(Step::Yield),
                        Err(error) => self.read_plainly(error)?,
                    }
                }
                Stage::Release(released, then) => {
                    let is_released = match released {
                        Released::Reading(reading) => release_in_step(&mut **reading, budget),
                        Released::Rest(batch, rows) => release_all(&mut [batch, rows], budget),
                        Released::Reader(reader) => release_in_step(&mut **reader, budget),
                        Released::Index(reader) => release_in_step(&mut **reader, budget),
                    };
                    if !is_released {
                        return Ok(Step::Yield);
                    }
                    self.stage = core::mem::replace(&mut **then, Stage::Done);
                }
                Stage::Locate { row_group, rows, reader } => {
                    let row_group = *row_group;
                    let Some(reader) = reader else {
                        let rows = core::mem::take(rows);
                        let leaves = self.options.locate.clone();
                        match self.missing_indexes(row_group, &leaves, false, budget)? {
                            Some(new) => {
                                let reader = Some(Box::new(new));
                                self.stage = Stage::Locate { row_group, rows, reader };
                                continue;
                            }
                            None => return Ok(Step::Ready(self.found(row_group, rows))),
                        }
                    };
                    match reader.step(budget) {
                        Ok(Step::Ready(chunk)) => {
                            let order = LeafOrder::of(&self.metadata, chunk.leaf);
                            let order = order.ok_or_else(|| Error::internal("an index of no leaf"))?;
                            let rows = self.metadata.row_groups[row_group].rows;
                            let pages = ChunkPages::new(chunk.offset_index, None, order, rows, 0)
                                .with_bloom(self.page_bloom(row_group, chunk.leaf));
                            self.kept_bytes += pages.held();
                            self.pages.insert((row_group, chunk.leaf), Arc::new(pages));
                        }
                        Ok(Step::Done) => {
                            let rows = core::mem::take(rows);
                            return Ok(Step::Ready(self.found(row_group, rows)));
                        }
                        Ok(Step::Need(demand)) => return Ok(Step::Need(demand)),
                        Ok(Step::Yield | Step::Append(..)) => return Ok(Step::Yield),
                        Err(error) => self.distrust(error)?,
                    }
                }
            }
        }
    }

    /// Whether a row group has no rows of [`FindOptions::ranges`].
    fn is_left_out(&self, row_group: usize) -> bool {
        let (group, ranges) = (&self.metadata.row_groups[row_group], &self.options.ranges);
        let first = ranges.partition_point(|range| range.end <= group.first_row);
        !ranges.is_empty()
            && ranges.get(first).is_none_or(|range| range.start >= group.first_row.saturating_add(group.rows))
    }

    /// Begins a row group: what do the statistics of its chunks say?
    fn begin(&mut self, row_group: usize, budget: &mut Budget<'_>) -> Result<()> {
        if self.kept_bytes > KEPT_BYTES_MAX {
            // They are shared with whoever is still reading; what is not is freed here, at most this much.
            self.pages.clear();
            self.kept_bytes = 0;
        }
        let group = &self.metadata.row_groups[row_group];
        let tests = &self.program.tests;
        budget.charge_units(GROUP_UNITS);
        budget.charge(JUDGE_PRICE, 0, tests.len());
        self.report.row_groups += 1;
        self.report.rows += group.rows;
        let uses = self.options.structures.statistics;
        let schema = &self.metadata.schema;
        let mut has_any = false;
        self.known.begin(&self.program, |number| {
            let (test, order) = (&tests[number], &self.orders[number]);
            match group.columns.get(test.leaf).filter(|_| uses) {
                Some(chunk) => {
                    has_any |= chunk.statistics.is_some();
                    test.judge(&order.of_chunk(chunk), order, schema)
                }
                None => Verdict::Some,
            }
        });
        let verdict = self.known.verdict();
        let counts = &mut self.report.statistics;
        match verdict {
            Verdict::Some if !has_any => counts.absent += 1,
            Verdict::Some => counts.undecided += 1,
            Verdict::None | Verdict::All => counts.pruned += 1,
        }
        self.stage = match verdict {
            _ if group.rows == 0 => Stage::Begin,
            Verdict::None => Stage::Begin,
            Verdict::Some if self.options.structures.bloom => {
                let asking = blooms::Asking::new(
                    row_group,
                    (&self.program, &self.known, &self.hashes),
                    &self.metadata,
                    (&self.blooms, &mut self.report.bloom),
                    budget,
                );
                Stage::Bloom { row_group, asking: Box::new(asking) }
            }
            Verdict::Some => Stage::Index { row_group, reader: None },
            Verdict::All => self.all_rows(row_group)?,
        };
        Ok(())
    }

    /// All rows of a row group are found that are searched.
    fn all_rows(&mut self, row_group: usize) -> Result<Stage> {
        let rows = RowSelection::of(self.first_row_of(row_group)..self.metadata.row_groups[row_group].rows)?;
        self.report.found += rows.rows();
        Ok(Stage::Locate { row_group, rows, reader: None })
    }

    /// The first row of a row group that is searched.
    fn first_row_of(&self, row_group: usize) -> u64 {
        let first = self.options.read.row_groups.as_ref().map_or(0, |groups| groups.start);
        if row_group == first { self.options.first_row } else { 0 }
    }

    /// Goes on with the rows that can pass; `before` is what was about to be read before more rows were ruled out.
    fn go_on(&mut self, row_group: usize, rows: RowSelection, before: Option<Box<Reading>>) {
        let all = self.metadata.row_groups[row_group].rows;
        self.stage = match before {
            None => Stage::Open { row_group, rows, how: How::Asking },
            Some(reading) if rows.rows() < reading.wanted.as_ref().map_or(all, RowSelection::rows) => {
                let open = Stage::Open { row_group, rows, how: How::Asked };
                Stage::Release(Released::Reading(reading), Box::new(open))
            }
            Some(reading) => self.read(reading),
        };
    }

    /// A reader of the indexes of the leaves that are tested; `None` if all that there are are at hand.
    fn index_reader(&mut self, row_group: usize, budget: &mut Budget<'_>) -> Result<Option<PageIndexReader>> {
        let Structures { index, page_bloom, .. } = self.options.structures;
        // What Bloom filters say of pages says something of rows only with the places of pages.
        let is_useful = |leaf: &usize| index || page_bloom && self.page_bloom(row_group, *leaf).is_some();
        let leaves: Vec<usize> = self.program.leaves.iter().copied().filter(is_useful).collect();
        self.missing_indexes(row_group, &leaves, index, budget)
    }

    /// The Bloom filters of a chunk's pages, if they are to be asked.
    fn page_bloom(&self, row_group: usize, leaf: usize) -> Option<PageBloom> {
        self.options.structures.page_bloom.then(|| PageBloom::of(&self.metadata, row_group, leaf)).flatten()
    }

    /// A reader of those indexes of leaves that are not at hand, and not distrusted.
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
                _ if self.distrusted.contains(&(row_group, *leaf)) => {}
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

    /// Goes on without the page index that its reader has this error about.
    fn distrust(&mut self, error: Error) -> Result<()> {
        let (row_group, reader, rows) = match core::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Index { row_group, reader: Some(reader) } => (row_group, reader, None),
            Stage::Locate { row_group, rows, reader: Some(reader) } => (row_group, reader, Some(rows)),
            _ => return Err(error),
        };
        let Some(chunk) = reader.at_chunk().filter(|_| dispensable(&error)) else { return Err(error) };
        self.distrusted.insert(chunk);
        let then = match rows {
            None => Stage::Index { row_group, reader: None },
            Some(rows) => {
                self.report.index.distrusted += 1;
                Stage::Locate { row_group, rows, reader: None }
            }
        };
        self.stage = Stage::Release(Released::Index(reader), Box::new(then));
        Ok(())
    }

    /// Begins to read the tested columns of rows.
    fn open(
        &mut self,
        row_group: usize,
        rows: RowSelection,
        how: How,
        budget: &mut Budget<'_>,
    ) -> Result<()> {
        let group = &self.metadata.row_groups[row_group];
        if rows.is_empty() {
            self.stage = Stage::Begin;
            return Ok(());
        }
        let kept = self.reader.as_mut().is_some_and(|reader| reader.go_to(row_group));
        let mut reader = match self.reader.take().filter(|_| kept) {
            Some(reader) => reader,
            None => {
                budget.charge_units(MACHINE_UNITS);
                let mut read = self.options.read.clone();
                read.leaves = Some(self.program.leaves.clone());
                (read.layout, read.keep_dictionaries) = (Layout::Spaced, true);
                let (metadata, codecs) = (Arc::clone(&self.metadata), Arc::clone(&self.codecs));
                Box::new(BatchReader::one_by_one(self.object, metadata, codecs, read, row_group)?)
            }
        };
        let wanted = (rows.rows() < group.rows).then_some(rows);
        let mut takes_shortcuts = wanted.is_some();
        if let Some(rows) = &wanted {
            reader.select(row_group, rows.clone())?;
        }
        for (leaf, tests) in self.program.leaves.iter().zip(&self.page_tests) {
            let pages = self.pages.get(&(row_group, *leaf));
            if let Some(pages) = pages.filter(|_| wanted.is_some()) {
                reader.locate(row_group, *leaf, Arc::clone(&pages.offset_index))?;
            }
            // Where an index has bounds, headers say the same again.
            let has_bounds = pages.is_some_and(|pages| pages.has_bounds());
            if let Some(tests) = tests
                && self.options.structures.statistics
                && !has_bounds
                && how != How::Plainly
            {
                reader.judge(row_group, *leaf, Arc::clone(tests))?;
                takes_shortcuts = true;
            }
        }
        let mut reading = Box::new(Reading::new(row_group, reader, wanted));
        reading.takes_shortcuts = takes_shortcuts;
        reading.is_again = how == How::Plainly;
        if how == How::Asking && self.options.structures.dictionary {
            let pages_of = |leaf| self.pages.get(&(row_group, leaf)).map(|pages| pages.len());
            let asking = dictionaries::Asking::new(
                reading,
                (&self.program, &self.known),
                &self.metadata,
                pages_of,
                &mut self.report.dictionary,
                budget,
            );
            match asking {
                Ok(asking) => {
                    self.stage = Stage::Dictionary(Box::new(asking));
                    return Ok(());
                }
                Err(without) => reading = without,
            }
        }
        self.stage = self.read(reading);
        Ok(())
    }

    /// Reads what was opened.
    fn read(&mut self, reading: Box<Reading>) -> Stage {
        let group = &self.metadata.row_groups[reading.row_group];
        self.report.tested += reading.wanted.as_ref().map_or(group.rows, RowSelection::rows);
        Stage::Read(reading)
    }

    /// Reads the row group at hand again, page by page, if the error that it was read with may be due to an index or a header that says
    /// of pages what is not so. That is not used any more.
    fn read_plainly(&mut self, error: Error) -> Result<()> {
        let mut reading = match core::mem::replace(&mut self.stage, Stage::Done) {
            Stage::Read(reading) => reading,
            Stage::Dictionary(asking) => asking.reading,
            _ => return Err(error),
        };
        let row_group = reading.row_group;
        if !(reading.takes_shortcuts && dispensable(&error)) {
            // It may be much to drop.
            self.stage = Stage::Release(Released::Reading(reading), Box::new(Stage::Done));
            return Err(error);
        }
        self.report.found = self.report.found.saturating_sub(reading.found.rows());
        for leaf in &self.program.leaves {
            if let Some(pages) = self.pages.remove(&(row_group, *leaf)) {
                self.distrusted.insert((row_group, *leaf));
                self.report.index.distrusted += 1;
                reading.distrusted.push(pages);
            }
        }
        self.report.page_statistics.distrusted += reading.reader.judged().pruned;
        self.evaluator.restart();
        let rows = RowSelection::of(self.first_row_of(row_group)..self.metadata.row_groups[row_group].rows)?;
        let open = Stage::Open { row_group, rows, how: How::Plainly };
        self.stage = Stage::Release(Released::Reading(reading), Box::new(open));
        Ok(())
    }

    /// Releases what was read, and goes on with `then`. The reader is kept, unless it is in the middle of the row group.
    fn release_reading(&mut self, then: Stage) -> Result<()> {
        let Stage::Read(reading) = core::mem::replace(&mut self.stage, Stage::Done) else {
            return Err(Error::internal("a column that is not read"));
        };
        let released = if reading.reader.is_through() {
            let Reading { reader, used, wanted, .. } = *reading;
            self.reader = Some(reader);
            Released::Rest(used, wanted)
        } else {
            Released::Reading(reading)
        };
        self.stage = Stage::Release(released, Box::new(then));
        Ok(())
    }

    fn found(&mut self, row_group: usize, rows: RowSelection) -> Found {
        self.stage = Stage::Begin;
        let leaves = self.program.leaves.iter().chain(&self.options.locate);
        let pages = leaves.filter_map(|leaf| {
            let pages = self.pages.get(&(row_group, *leaf))?;
            Some((*leaf, Arc::clone(&pages.offset_index)))
        });
        Found { row_group, rows, pages: pages.collect() }
    }
}

/// The same ranges, each in two parts: hosts take a machine that asks for the same again, as soon as it has it, for one that does not
/// get on.
fn in_two(demand: Demand) -> Demand {
    let mut parts = Demand::default();
    for want in demand.wants {
        match want {
            Want::Range(object, range, priority) if range.end - range.start > 1 => {
                parts.push(Want::Range(object, range.start..range.start + 1, priority));
                parts.push(Want::Range(object, range.start + 1..range.end, priority));
            }
            other => parts.push(other),
        }
    }
    parts
}

/// The hashes of the values that a test accepts, if it is of so few that a filter can be asked for them.
fn hashes(test: &Test, schema: &Schema) -> Option<Vec<u64>> {
    let values = test.plain_values(schema, PROBES_MAX)?;
    Some(values.iter().map(|value| bloom::hash(value)).collect())
}

/// Of each leaf that is tested, what its pages can be judged by.
fn page_tests(program: &Program, metadata: &Arc<FileMetaData>) -> Vec<Option<Arc<PageTests>>> {
    let mut tests: Vec<Vec<&Test>> = program.leaves.iter().map(|_| Vec::new()).collect();
    for test in &program.tests {
        if let Ok(at) = program.leaves.binary_search(&test.leaf) {
            tests[at].push(test);
        }
    }
    let of = |(leaf, tests): (&usize, Vec<&Test>)| PageTests::of(metadata, *leaf, &tests).map(Arc::new);
    program.leaves.iter().zip(tests).map(of).collect()
}

/// Bytes of a chunk's column index in the file.
fn index_bytes(metadata: &FileMetaData, row_group: usize, leaf: usize) -> usize {
    let chunk = metadata.row_groups.get(row_group).and_then(|group| group.columns.get(leaf));
    usize_of_u32(chunk.and_then(|chunk| chunk.column_index).map_or(0, |(_, length)| length))
}

impl Stage {
    fn machine(&mut self) -> Option<&mut dyn Supplied> {
        match self {
            Stage::Bloom { asking, .. } => asking.probe().map(|probe| probe as &mut dyn Supplied),
            Stage::Index { reader, .. } | Stage::Locate { reader, .. } => {
                reader.as_mut().map(|reader| &mut **reader as &mut dyn Supplied)
            }
            Stage::Check { reader, .. } => Some(&mut **reader),
            Stage::PageBloom { probe, .. } => Some(&mut **probe),
            Stage::Dictionary(asking) => Some(&mut *asking.reading.reader),
            Stage::Read(reading) => Some(&mut *reading.reader),
            Stage::Begin
            | Stage::Judge(..)
            | Stage::Narrow { .. }
            | Stage::Open { .. }
            | Stage::Release(..)
            | Stage::Done => None,
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
        let kept = matches!(self.stage, Stage::Bloom { .. }).then(|| (range.clone(), bytes.clone()));
        if let Some(machine) = self.stage.machine() {
            machine.supply(object, range, bytes)?;
            if let Some((range, bytes)) = kept {
                self.blooms.keep(range, bytes);
            }
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
            Stage::Read(reading) | Stage::Release(Released::Reading(reading), _) => reading.release(budget),
            Stage::Dictionary(asking) => asking.reading.release(budget),
            Stage::Release(Released::Reader(reader), _) => reader.release(budget),
            Stage::Judge(_, reading) | Stage::Narrow { before: reading, .. } => reading.release(budget),
            Stage::Index { reader: Some(reader), .. }
            | Stage::Locate { reader: Some(reader), .. }
            | Stage::Release(Released::Index(reader), _) => reader.release(budget),
            Stage::Check { pages, reader, .. } => release_all(&mut [&mut **pages, &mut **reader], budget),
            _ => true,
        };
        if !stage || !self.reader.release(budget) {
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
