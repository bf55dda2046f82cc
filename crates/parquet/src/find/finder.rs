//! Finding the rows for which a predicate is true.

mod columns;
mod groups;
mod indexes;
mod rows;

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::u64_of;
use marquetry_base::{
    Bitmap, Budget, Bytes, Codecs, Error, Failed, Machine, Object, Price, Release, Result, Step, release_all,
};

use super::blooms::Blooms;
use super::judged::Indexes;
use super::options::{FindOptions, Found, Stopped};
use super::program::{Known, Program};
use super::reading::Reading;
use super::report::Report;
use super::stage::{Released, Stage, Turn};
use crate::batch::{Batch, RowSelection};
use crate::bloom;
use crate::format::FileMetaData;
use crate::prune::{Evaluator, LeafOrder, Matcher, Predicate, Test};
use crate::read::{BatchReader, PageTests};
use crate::schema::Schema;

/// The price of a test of a row group that is judged, and of the bytes of its bounds.
const JUDGE_PRICE: Price = Price { kib: 200, kilovalue: 100 << 10 };
/// What it costs to make a sub-machine.
const MACHINE_UNITS: u64 = 2_000;
/// Values that are looked up in a Bloom filter, at most: of more, one is likely there.
const PROBES_MAX: usize = 1024;

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
    /// Tested batches that have rows which were found, and these, if they are to be kept.
    tested: Vec<(Batch, Bitmap)>,
    report: Report,
    failed: Failed,
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
            tested: Vec::new(),
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
        self.tested.clear();
        self.report = Report::default();
        Ok(())
    }

    /// What was found out so far, and by what.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Batches of the tested leaves, in order, that have rows which were found since it was asked last, with a bit for each of a batch's rows:
    /// whether it was found. Empty without [`FindOptions::keep_tested`].
    ///
    /// They need not be all rows that are found: not those which are found by what is said of them alone, nor those beside pages that are
    /// ruled out by their headers. And a row group that is read again has some of them twice. They are all, and once, if they are as many
    /// as the rows that [`Found`] has.
    pub fn take_tested(&mut self) -> Vec<(Batch, Bitmap)> {
        core::mem::take(&mut self.tested)
    }

    /// Where the search is: the row group at hand, and the first of its rows that is not searched; its number of rows if all others are ruled
    /// out. `None` once it is done.
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
                Stage::Read(reading) => (reading.row_group, self.next_row(reading)),
                Stage::Locate { row_group, .. } => (*row_group, self.metadata.row_groups[*row_group].rows),
                Stage::Release(_, then) => {
                    stage = &**then;
                    continue;
                }
            };
        };
        Some((row_group, next_row.max(self.first_row_of(row_group))))
    }

    /// The first row that is neither tested nor, as all after it, ruled out.
    fn next_row(&self, reading: &Reading) -> u64 {
        let rows = self.metadata.row_groups[reading.row_group].rows;
        let are_ruled_out = reading.wanted.as_ref().is_some_and(|wanted| wanted.end() <= reading.next_row);
        if are_ruled_out { rows } else { reading.next_row }
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
            let turn = match self.stage {
                Stage::Begin => self.begin_next(budget)?,
                Stage::Bloom { .. } => self.ask_blooms(budget)?,
                Stage::Index { .. } => self.read_indexes(budget)?,
                Stage::Check { .. } => self.check_index(budget)?,
                Stage::Judge(..) => self.judge_pages(budget)?,
                Stage::PageBloom { .. } => self.ask_page_blooms(budget)?,
                Stage::Narrow { .. } => self.narrow(budget)?,
                Stage::Open { .. } => self.open_columns(budget)?,
                Stage::Dictionary(_) => self.ask_dictionaries(budget)?,
                Stage::Read(_) => self.read_columns(budget)?,
                Stage::Release(..) => self.release_used(budget),
                Stage::Locate { .. } => self.locate_pages(budget)?,
                Stage::Done => Some(Step::Done),
            };
            if let Some(step) = turn {
                return Ok(step);
            }
        }
    }

    /// Releases what is not needed any more, and goes on.
    fn release_used(&mut self, budget: &mut Budget<'_>) -> Turn {
        if let Stage::Release(released, then) = &mut self.stage {
            if !released.step(budget) {
                return Some(Step::Yield);
            }
            self.stage = core::mem::replace(&mut **then, Stage::Done);
        }
        None
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
        if !stage || !self.reader.release(budget) || !self.tested.release(budget) {
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
