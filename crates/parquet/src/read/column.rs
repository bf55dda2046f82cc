//! One column: from its pages to its part of a batch.

mod batches;
mod cut;
mod decoding;
mod dictionary_page;
mod first;
mod pages;
mod selecting;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{
    Budget, Bytes, Demand, Error, Input, Limit, Limits, Object, Pool, Price, Priority, Release, Result,
    release_all,
};

use super::ReadOptions;
use super::builder::Builder;
use super::data_page::{DataPage, SKIP_UNITS};
use super::decompressors::Decompressors;
use super::dictionary::Entries;
use super::judge::PageTests;
use super::levels::{NestedLeaf, check_levels};
use super::opening::Opening;
use super::page::{Found, PageReader};
use super::released::Released;
use super::selected::Selected;
use super::work::Work;
use crate::batch::ColumnBatch;
use crate::encoding::delta_byte_array::{Value, prefixes_go_on};
use crate::encoding::plain::Accept;
use crate::format::{ColumnChunk, FileMetaData};
use crate::going::{Going, done};
use crate::memory::Memory;
use crate::prune::Counts;
use crate::schema::{Leaf, PhysicalType, Schema};
use cut::Cut;
use dictionary_page::DictionaryPage;

/// The fewest rows decoded at a time, however small the budget: what a step's progress is made of.
const SLICE_ROWS_MIN: usize = 64;
/// The most.
const SLICE_ROWS_MAX: usize = 8192;
/// The price of a row's definition level.
const LEVEL_PRICE: Price = Price::per_kilovalue(300);
/// The price of a row's slot, where some of a slice are null.
const SPREAD_PRICE: Price = Price::per_kilovalue(1500);
/// The same of byte strings of one width, by their bytes too.
const FIXED_SPREAD_PRICE: Price = Price { kib: 150, kilovalue: 7500 };
/// What a slice costs beside its values, and what a page costs.
const SLICE_UNITS: u64 = 50;
/// What a run of wanted rows costs that is a slice of its own: the rows before it are stepped over, and so are their values.
const RUN_UNITS: u64 = 2 * SLICE_UNITS + SKIP_UNITS;
/// What it costs to look whether runs are so short that they are decoded together.
const LOOK_UNITS: u64 = 50;
/// And of each run of wanted rows that is seen there.
const SEEN_RUN_UNITS: u64 = 12;
/// The price of a row, or of an entry, of those of which some are to be dropped: its levels and its value are moved.
const KEEP_PRICE: Price = Price::per_kilovalue(4000);
/// The price of a value beside that, of byte strings of one width.
const FIXED_KEEP_PRICE: Price = Price { kib: 150, kilovalue: 6000 };

/// Bytes of a chunk that is released in slices: more than a window has, for a value that is longer.
const LARGE_CHUNK_BYTES: usize = 1 << 20;

/// What a batch should have of a column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub(super) rows: usize,
    /// Bytes of pages that it may hold: with more, it ends before it has as many rows.
    pub(super) pages: usize,
}

/// Reads one leaf, row group after row group.
pub(super) struct ColumnReader {
    column: Column,
    chunk: Chunk,
    /// The levels, of a leaf that is not flat.
    nested: Option<NestedLeaf>,
    /// The rows that are wanted, if not all are.
    selected: Option<Box<Selected>>,
    /// What pages are judged by before they are decoded.
    judged: Option<Box<Judged>>,
    pages: Option<PageReader>,
    /// Where the chunk's data pages begin, by the footer.
    data_offset: u64,
    expects: Expects,
    /// The chunk's dictionary, once it is decoded.
    dictionary: Option<Entries>,
    /// The last value of the page before, where DELTA_BYTE_ARRAY pages go on from it.
    last_value: Value,
    builder: Builder,
    bodies: Pool<u8>,
    /// What is done with, and not released yet.
    released: Box<Released>,
    /// The page's chunk, if it is large: what is dropped with the page's decoder is then not the last that holds it.
    large: Bytes,
    spare: Spare,
    /// Parts of the batch are being joined before its last row ends.
    joins_ahead: bool,
    /// Bytes held, when that was counted last for all columns.
    recounted: u64,
}

/// What is known of the column in all row groups.
struct Column {
    leaf: usize,
    /// For its name, in errors.
    metadata: Arc<FileMetaData>,
    physical_type: PhysicalType,
    is_nullable: bool,
    keep_dictionaries: bool,
    /// True where DELTA_BYTE_ARRAY pages go on from the one before.
    prefixes_go_on: bool,
    accept: Accept,
    limits: Limits,
}

/// The chunk that is being read.
#[derive(Default)]
struct Chunk {
    row_group: usize,
    /// Rows of the chunk, and those of them that are neither in a batch nor stepped over.
    rows: u64,
    rows_left: u64,
    /// Entries of the chunk that no page has given yet: values, nulls, and lists without an element. Of a flat leaf, rows.
    entries_left: u64,
}

/// What of a chunk comes next.
enum Expects {
    /// The next page.
    Page,
    /// The levels of a page, and all of a page that is to be held.
    Levels(Box<Opening>),
    /// The entries of the dictionary.
    Entries(Box<DictionaryPage>),
    /// The values of a data page.
    Values(Box<DataPage>),
}

/// What pages are judged by, and what came of it.
struct Judged {
    by: Arc<PageTests>,
    counts: Counts,
}

/// Decoded rows that the last batch had no place for.
#[derive(Default)]
struct Spare {
    batch: Option<ColumnBatch>,
    bytes: usize,
    cut: Cut,
}

impl ColumnReader {
    /// Checks that a leaf can be read, whether or not it has rows.
    pub(super) fn check(schema: &Schema, leaf: &Leaf, options: &ReadOptions) -> Result<()> {
        let checked = match leaf.physical_type {
            PhysicalType::FixedLenByteArray(width) => options.limits.check(Limit::ValueBytes, width.into()),
            _ => Ok(()),
        };
        checked
            .and_then(|()| check_levels(leaf))
            .map_err(|error| error.at(|place| place.column = Some(schema.path(leaf.node))))
    }

    /// A reader of a leaf.
    pub(super) fn new(
        number: usize,
        metadata: &Arc<FileMetaData>,
        options: &ReadOptions,
    ) -> Result<ColumnReader> {
        let schema = &metadata.schema;
        let leaf = schema.leaves().get(number).ok_or_else(|| Error::internal("a leaf that is not there"))?;
        let is_text = schema.meaning_of(leaf).is_text();
        // The format's own lengths are signed 32-bit numbers.
        let value_bytes_max =
            u32::try_from(options.limits.value_bytes).unwrap_or(u32::MAX).min(i32::MAX as u32);
        let (width, only_text) = (leaf.physical_type.width(), is_text && options.verify_utf8);
        let accept = Accept { value_bytes_max, width, only_text };
        Self::check(schema, leaf, options)?;
        let column = Column {
            leaf: number,
            metadata: Arc::clone(metadata),
            physical_type: leaf.physical_type,
            is_nullable: leaf.definition_max > 0,
            keep_dictionaries: options.keep_dictionaries,
            prefixes_go_on: metadata.created_by.as_deref().is_some_and(prefixes_go_on),
            accept,
            limits: options.limits,
        };
        Ok(ColumnReader {
            column,
            chunk: Chunk::default(),
            nested: if leaf.is_flat() { None } else { Some(NestedLeaf::new(schema, leaf)?) },
            selected: None,
            judged: None,
            pages: None,
            data_offset: 0,
            expects: Expects::Page,
            dictionary: None,
            last_value: Value::default(),
            builder: Builder::new(
                leaf.physical_type,
                options.batch_rows,
                options.layout,
                options.keep_dictionaries && leaf.is_flat(),
            ),
            bodies: Pool::new(),
            released: Box::default(),
            large: Bytes::new(),
            spare: Spare::default(),
            joins_ahead: false,
            recounted: 0,
        })
    }

    /// The leaf's number.
    pub(super) fn leaf(&self) -> usize {
        self.column.leaf
    }

    /// Begins a column chunk, of so many rows, of which some may be selected. Pages that `judge` rules out are not decoded.
    pub(super) fn start(
        &mut self,
        object: Object,
        row_group: usize,
        (rows, selected, judge): (u64, Option<Selected>, Option<Arc<PageTests>>),
        chunk: &ColumnChunk,
        options: &ReadOptions,
    ) -> Result<()> {
        self.chunk = Chunk { row_group, rows, rows_left: rows, entries_left: chunk.values };
        self.data_offset = chunk.data_page_offset;
        self.released.selected(core::mem::replace(&mut self.selected, selected.map(Box::new)));
        self.judged = judge.map(|by| Box::new(Judged { by, counts: Counts::default() }));
        self.close();
        self.set_last_value(Value::default());
        self.release_dictionary();
        (self.spare.batch, self.spare.bytes) = (None, 0);
        if let Some(nested) = &mut self.nested {
            nested.start();
        }
        let is_repeated = self.nested.as_ref().is_some_and(|nested| nested.repetition_max > 0);
        if !chunk.encrypted && (if is_repeated { chunk.values < rows } else { chunk.values != rows }) {
            let error = Error::corrupt(format!("{} values in a row group of {rows} rows", chunk.values));
            return Err(self.place(error));
        }
        self.pages = Some(
            PageReader::new(object, chunk, &self.column.metadata, options)
                .map_err(|error| self.place(error))?,
        );
        self.seek(None).map_err(|error| self.place(error))
    }

    /// What came of judging pages since the chunk began.
    pub(super) fn judged(&self) -> Counts {
        self.judged.as_ref().map_or(Counts::default(), |judged| judged.counts)
    }

    /// Rows that are decoded and not handed out.
    pub(super) fn rows(&self) -> usize {
        self.spare.batch.as_ref().map_or(self.builder.rows, |spare| spare.rows)
    }

    /// Changes what the columns hold in all by what has changed of this one since it did so last, and returns what it holds. (Memory
    /// that was handed out is this column's again when the host drops it.)
    pub(super) fn recount(&mut self, all: &mut u64) -> u64 {
        let held = self.held();
        *all = all.saturating_add(held).saturating_sub(self.recounted);
        self.recounted = held;
        held
    }

    /// Bytes held: of pages, of the dictionary, of the batch being filled and of the rows that are left of one.
    pub(super) fn held(&self) -> u64 {
        let pages = self.pages.as_ref().map_or(0, PageReader::held);
        let page = match &self.expects {
            Expects::Page => 0,
            Expects::Levels(opening) => opening.held(),
            Expects::Entries(page) => page.held(),
            Expects::Values(page) => page.held + page.values.held(&self.builder),
        };
        let entries = self.dictionary.as_ref().map_or(0, Entries::held) + self.released.held();
        let bodies = self.bodies.idle_bytes();
        (pages + page + entries + bodies + self.builder.held() + self.spare.bytes) as u64
    }

    /// True when `rows` cannot grow before a batch is taken.
    pub(super) fn has_spare(&self) -> bool {
        self.spare.batch.is_some()
    }

    /// Asks for what [`Going::Need`] waits for.
    pub(super) fn want(&self, input: &Input, priority: Priority, demand: &mut Demand) {
        let Some(pages) = &self.pages else { return };
        pages.want(input, priority, demand);
        if let Some(selected) = self.selected.as_ref().filter(|_| !self.decodes_all()) {
            pages.want_ahead(|end, bytes| selected.wanted_ahead(end, bytes), input, demand);
        }
    }

    /// Decodes until the batch is what is wanted.
    pub(super) fn advance(
        &mut self,
        target: Target,
        input: &mut Input,
        decompressors: &mut Decompressors,
        memory: Memory,
        budget: &mut Budget<'_>,
    ) -> Result<Going> {
        // The column's own memory is handed down beside what all columns share.
        let mut pool = core::mem::take(&mut self.bodies);
        let work = &mut Work { input, decompressors, pool: &mut pool, memory, budget };
        self.builder.pages_max = target.pages;
        let going = self.try_advance(target.rows, work);
        self.bodies = pool;
        going.map_err(|error| self.place(error))
    }

    fn try_advance(&mut self, target: usize, work: &mut Work<'_, '_>) -> Result<Going> {
        if self.spare.batch.is_some() {
            return Ok(Going::Done(()));
        }
        let target = target.min(self.builder.capacity);
        if self.builder.is_joining() && !self.joins_ahead {
            return self.end_batch(work);
        }
        loop {
            self.count(work)?;
            if self.selected.is_some() {
                self.pass_unwanted(work)?;
            }
            if self.is_page_decoded() {
                // What is wrong at a page's end is found before its last rows leave.
                done!(self.pages()?.finish(work)?);
                self.check_page_end()?;
                self.close();
            }
            if !self.released.is_empty() {
                work.memory.changed();
                if !self.released.step(work.budget) {
                    return Ok(Going::Yield);
                }
            }
            if self.has_rows(target) {
                return self.end_batch(work);
            }
            done!(self.feed(work)?);
            match &mut self.expects {
                Expects::Values(_) => {
                    done!(self.join_ahead(work)?);
                    let goes_on = match &self.nested {
                        Some(_) => self.decode_nested(target, work)?,
                        None => self.decode(target, work)?,
                    };
                    if !goes_on {
                        return self.end_batch(work);
                    }
                }
                Expects::Entries(page) => {
                    if page.step(&mut work.memory, work.budget)? {
                        self.end_dictionary();
                    }
                }
                Expects::Levels(_) => done!(self.open_on(work)?),
                Expects::Page => {
                    let is_selected = self.selected.is_some();
                    if is_selected {
                        self.seek(Some(work.input))?;
                    }
                    // The page before is dropped, and a header may be long.
                    work.memory.changed();
                    let by_header = is_selected || self.judged.is_some();
                    match done!(self.pages()?.next(by_header, work)?) {
                        Found::Header(entries) => self.pass_page(entries, work)?,
                        Found::Page(kind, body) => self.open(kind, body)?,
                        Found::End => {
                            return Err(Error::corrupt(format!(
                                "the column chunk ends {} rows and {} entries early",
                                self.chunk.rows_left, self.chunk.entries_left
                            )));
                        }
                    }
                    work.budget.charge_units(SLICE_UNITS);
                }
            }
            if work.budget.is_spent() {
                return Ok(Going::Yield);
            }
        }
    }

    /// Counts what is held, if it may be more or less than it was.
    fn count(&self, work: &mut Work<'_, '_>) -> Result<()> {
        if work.memory.is_counted() {
            return Ok(());
        }
        work.memory.count(self.held() + u64_of(work.pool.idle_bytes()))
    }

    /// The data page that is being decoded.
    fn page(&self) -> Option<&DataPage> {
        if let Expects::Values(page) = &self.expects { Some(page) } else { None }
    }

    /// True when all of the current page is decoded.
    fn is_page_decoded(&self) -> bool {
        let ahead = self.nested.as_ref().map_or(0, NestedLeaf::ahead);
        self.page().is_some_and(|page| page.entries_left + ahead == 0) && !self.has_values_behind()
    }

    /// The chunk's pages.
    fn pages(&mut self) -> Result<&mut PageReader> {
        self.pages.as_mut().ok_or_else(|| Error::internal("a column without a chunk"))
    }

    /// Gets the stream that wants bytes what it wants.
    fn feed(&mut self, work: &mut Work<'_, '_>) -> Result<Going> {
        let starved = match &mut self.expects {
            Expects::Page => None,
            Expects::Levels(opening) => Some(opening.body()).filter(|body| body.is_starved()),
            Expects::Entries(page) => Some(page.body()).filter(|body| body.is_starved()),
            Expects::Values(page) => page.starved(),
        };
        let (Some(stream), Some(pages)) = (starved, &mut self.pages) else { return Ok(Going::Done(())) };
        // The chunk before is dropped, and a decompressor's tables may have grown.
        work.memory.changed();
        if !stream.is_held() {
            done!(pages.fill(stream, work)?);
        } else if !stream.gather(&mut work.memory, work.budget)? {
            return Ok(Going::Yield);
        }
        let (chunk, _) = stream.chunk();
        if chunk.len() > LARGE_CHUNK_BYTES || !self.large.is_empty() {
            let large = if chunk.len() > LARGE_CHUNK_BYTES { chunk.clone() } else { Bytes::new() };
            self.released.chunk(core::mem::replace(&mut self.large, large));
        }
        Ok(if work.budget.is_spent() { Going::Yield } else { Going::Done(()) })
    }

    /// True when the batch has `target` whole rows.
    fn has_rows(&self, target: usize) -> bool {
        if self.builder.rows < target {
            return false;
        }
        match &self.nested {
            Some(nested) if nested.repetition_max > 0 => {
                // The last row is whole when the next one begins, or the chunk ends; or a page ends that the page index has.
                let page_left = self.page().map_or(0, |page| page.entries_left);
                if let Some(selected) = &self.selected
                    && (!selected.takes_row
                        || (selected.page_end().is_some() && nested.ahead() + page_left == 0))
                {
                    true
                } else if nested.ahead() > 0 && self.chunk.rows_left > 0 {
                    nested.begins_row()
                } else {
                    nested.ahead() == 0 && page_left == 0 && self.chunk.entries_left == 0
                }
            }
            _ => true,
        }
    }

    fn path(&self) -> String {
        self.column.metadata.schema.leaf_path(self.column.leaf)
    }

    /// Adds the column and a row group to an error.
    pub(super) fn place_in(&self, row_group: usize, error: Error) -> Error {
        error.at(|place| {
            place.row_group = Some(row_group as u64);
            place.column = Some(self.path());
        })
    }

    fn place(&self, error: Error) -> Error {
        error.at(|place| {
            place.row_group = Some(self.chunk.row_group as u64);
            place.column = Some(self.path());
            if let Some(pages) = &self.pages {
                place.page = pages.page();
                place.offset = Some(pages.at());
            }
        })
    }
}

/// At the end, or in the middle: it cannot be used any more.
impl Release for ColumnReader {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        if let Expects::Values(_) = self.expects {
            self.close();
        }
        self.released.chunk(core::mem::take(&mut self.large));
        self.release_dictionary();
        let mut none = ();
        let page: &mut dyn Release = match &mut self.expects {
            Expects::Page | Expects::Values(_) => &mut none,
            Expects::Levels(opening) => opening,
            Expects::Entries(page) => page,
        };
        let parts: &mut [&mut dyn Release] = &mut [
            page,
            &mut self.pages,
            &mut self.released,
            &mut self.spare.batch,
            &mut self.last_value,
            &mut self.bodies,
            &mut self.builder,
            &mut self.selected,
        ];
        release_all(parts, budget)
    }
}

fn too_many_rows() -> Error {
    Error::corrupt("a column chunk of more rows than its row group")
}

/// The buffers of a dictionary's views.
fn buffers_of(dictionary: Option<&Entries>) -> usize {
    dictionary.and_then(Entries::buffers).map_or(0, |buffers| buffers.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_small() {
        // A table may have a hundred thousand columns.
        assert!(size_of::<ColumnReader>() <= 1536, "{} bytes", size_of::<ColumnReader>());
    }
}
