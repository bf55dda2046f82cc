//! The page index of column chunks.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::u64_of;
use marquetry_base::{
    Budget, Bytes, Demand, Error, Failed, Input, Limit, Limits, Machine, Object, Price, Priority, Release,
    Result, Step, Want, check_supply, release_all,
};

use super::ReadOptions;
use super::page::FORGOTTEN_BYTES_MAX;
use crate::format::{
    ColumnChunk, ColumnIndex, ColumnIndexParser, FileMetaData, MAGIC, OffsetIndex, OffsetIndexParser,
};

/// The page index of a column chunk, as far as the writer wrote it, checked against the footer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkIndex {
    /// The row group's index.
    pub row_group: usize,
    /// The leaf's index.
    pub leaf: usize,
    /// The positions of its data pages.
    pub offset_index: OffsetIndex,
    /// The bounds of the pages' values, if the writer wrote them. It has as many pages.
    pub column_index: Option<ColumnIndex>,
}

impl Release for ChunkIndex {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.offset_index, &mut self.column_index], budget)
    }
}

/// Reads the page index of the chosen row groups and leaves: one product for each column chunk that has one, row
/// group by row group.
///
/// Writers put all indexes of a file side by side, so ranges close to each other are requested as one, about a
/// mebibyte ahead. The products are checked: all lists have one entry per page; pages are in order, inside their
/// chunk, and begin with ascending rows of their row group. Bounds are as in the file: [`crate::prune`] says which
/// can be trusted. Their lists are in pieces, however many pages there are; bounds share the bytes that the host supplied.
#[derive(Debug)]
pub struct PageIndexReader {
    object: Object,
    metadata: Arc<FileMetaData>,
    limits: Limits,
    row_groups: Range<usize>,
    leaves: Vec<usize>,
    /// Column indexes are read, too.
    reads_bounds: bool,
    /// The chunk that is being read: chunks are counted through all chosen row groups.
    at: usize,
    /// Bytes of all indexes read: more than the file has cannot be.
    read_bytes: u64,
    /// What is asked for together: ranges in order and apart, and the chunk behind the last one that they are for.
    window: Vec<Range<u64>>,
    window_end: usize,
    input: Input,
    expects: Expects,
    /// A product that contradicts itself.
    wrong: Option<ChunkIndex>,
    failed: Failed,
}

#[derive(Debug)]
enum Expects {
    /// The bytes of the current chunk's indexes.
    Bytes,
    /// Nothing from outside: the column index is being decoded; the offset index is there, too.
    Column(ColumnIndexParser, Range<u64>),
    /// Nothing from outside: the offset index is being decoded.
    Offset(OffsetIndexParser, Option<ColumnIndex>),
}

/// Bytes of indexes that are asked for together, unless a single chunk's are more.
const WINDOW_BYTES: u64 = 1 << 20;

/// Chunks whose indexes are asked for together: they are looked at in one go.
const WINDOW_CHUNKS: usize = 256;

/// Bytes between two indexes that are asked for along with them: a request costs more than these.
const GAP_BYTES_MAX: u64 = 8 << 10;

/// What it costs to look at a chunk, and to place its indexes in a window.
const CHUNK_PRICE: Price = Price::per_kilovalue(100 * 1024);

/// Bytes of memory that a byte of an index becomes at most: a count of one byte becomes one of eight.
const DECODED_BYTES_PER_BYTE: u64 = 9;

impl PageIndexReader {
    /// A reader of the page index of [`ReadOptions::row_groups`] and [`ReadOptions::leaves`], which keeps [`ReadOptions::limits`].
    ///
    /// # Errors
    ///
    /// `Misuse` for row groups or leaves that do not exist.
    pub fn new(
        object: Object,
        metadata: Arc<FileMetaData>,
        options: &ReadOptions,
    ) -> Result<PageIndexReader> {
        let groups = metadata.row_groups.len();
        let row_groups = options.row_groups.clone().unwrap_or(0..groups);
        if row_groups.start > row_groups.end || row_groups.end > groups {
            return Err(Error::misuse(format!("row groups {row_groups:?} of a file of {groups}")));
        }
        let all = metadata.schema.leaves().len();
        let leaves = options.leaves.clone().unwrap_or_else(|| (0..all).collect());
        if let Some(leaf) = leaves.iter().find(|leaf| **leaf >= all) {
            return Err(Error::misuse(format!("leaf {leaf} of a schema of {all}")));
        }
        Ok(PageIndexReader {
            object,
            metadata,
            limits: options.limits,
            row_groups,
            leaves,
            reads_bounds: true,
            at: 0,
            read_bytes: 0,
            window: Vec::new(),
            window_end: 0,
            input: Input::new(),
            expects: Expects::Bytes,
            wrong: None,
            failed: Failed::default(),
        })
    }

    /// The same, but only where pages are is read: no column index, and no chunk that has nothing else.
    #[must_use]
    pub fn without_bounds(self) -> PageIndexReader {
        PageIndexReader { reads_bounds: false, ..self }
    }

    /// A chosen chunk, by its place among them: row group, leaf, chunk. `None` behind the last.
    fn chunk(&self, at: usize) -> Option<(usize, usize, &ColumnChunk)> {
        let group = self.row_groups.start + at.checked_div(self.leaves.len())?;
        let leaf = *self.leaves.get(at % self.leaves.len())?;
        let group_columns = &self.metadata.row_groups.get(group)?.columns;
        (group < self.row_groups.end).then_some((group, leaf, group_columns.get(leaf)?))
    }

    /// The row group and leaf of the chunk whose indexes are being read: of those that an error is about.
    pub(crate) fn at_chunk(&self) -> Option<(usize, usize)> {
        self.chunk(self.at).map(|(row_group, leaf, _)| (row_group, leaf))
    }

    fn current(&self) -> Result<(usize, usize, &ColumnChunk)> {
        self.chunk(self.at).ok_or_else(|| Error::internal("a chunk that is not there"))
    }

    fn advance(&mut self, budget: &mut Budget<'_>) -> Result<Step<ChunkIndex>> {
        loop {
            match core::mem::replace(&mut self.expects, Expects::Bytes) {
                Expects::Bytes => {
                    let Some((_, _, chunk)) = self.chunk(self.at) else { return Ok(Step::Done) };
                    if self.bounds_of(chunk).is_none() && chunk.offset_index.is_none() {
                        self.at += 1;
                        budget.charge(CHUNK_PRICE, 0, 1);
                        if budget.is_spent() {
                            return Ok(Step::Yield);
                        }
                        continue;
                    }
                    let (offset, column) = self.indexes()?;
                    if self.at >= self.window_end {
                        self.open_window(budget);
                    }
                    budget.charge(CHUNK_PRICE, 0, 1);
                    let demand = self.demand(&offset, column.as_ref());
                    if !demand.is_empty() {
                        return Ok(Step::Need(demand));
                    }
                    self.read_bytes += length(&offset) + column.as_ref().map_or(0, length);
                    self.expects = match column {
                        Some(column) => Expects::Column(ColumnIndexParser::new(column, &self.limits), offset),
                        None => self.offset_parser(offset, None)?,
                    };
                }
                Expects::Column(mut parser, offset) => {
                    let (_, leaf, _) = self.current()?;
                    let leaf = &self.metadata.schema.leaves()[leaf];
                    let step = parser.step(leaf.definition_max, leaf.repetition_max, &self.input, budget);
                    let Ok(Some(index)) = step else {
                        self.expects = Expects::Column(parser, offset);
                        return step.map(|_| Step::Yield);
                    };
                    self.expects = self.offset_parser(offset, Some(index))?;
                }
                Expects::Offset(mut parser, column_index) => {
                    let step = parser.step(&self.input, budget);
                    let Ok(Some(offset_index)) = step else {
                        self.expects = Expects::Offset(parser, column_index);
                        return step.map(|_| Step::Yield);
                    };
                    let (row_group, leaf, _) = self.current()?;
                    let pages = offset_index.pages.len();
                    let other = column_index.as_ref().map(ColumnIndex::pages).filter(|&it| it != pages);
                    let chunk = ChunkIndex { row_group, leaf, offset_index, column_index };
                    if let Some(other) = other {
                        self.wrong = Some(chunk);
                        return Err(Error::corrupt(format!(
                            "a column index of {other} pages beside an offset index of {pages}"
                        )));
                    }
                    self.at += 1;
                    return Ok(Step::Ready(chunk));
                }
            }
        }
    }

    /// Where the current chunk's indexes are: of its pages' places, and of their bounds. Checked.
    fn indexes(&self) -> Result<(Range<u64>, Option<Range<u64>>)> {
        let (_, _, chunk) = self.current()?;
        if chunk.encrypted {
            return Err(Error::encrypted("the page index of an encrypted column"));
        }
        if chunk.file_path.is_some() {
            return Err(Error::unsupported("a column chunk in another file"));
        }
        let room = MAGIC.len() as u64..self.metadata.footer_start;
        let place = |what: &str, (offset, length): (u64, u32)| {
            let end =
                offset.checked_add(length.into()).filter(|&end| end <= room.end && offset >= room.start);
            let end = end.ok_or_else(|| {
                Error::corrupt(format!(
                    "{what} of {length} bytes at {offset}, in a file with room for {room:?}"
                ))
            })?;
            self.limits.check(Limit::PageIndexBytes, length.into())?;
            Ok(offset..end)
        };
        let offset =
            chunk.offset_index.ok_or_else(|| Error::corrupt("a column index without an offset index"))?;
        let offset = place("an offset index", offset)?;
        let column = self.bounds_of(chunk).map(|column| place("a column index", column)).transpose()?;
        let bytes = length(&offset) + column.as_ref().map_or(0, length);
        self.limits.check(Limit::TotalBytes, bytes.saturating_mul(DECODED_BYTES_PER_BYTE))?;
        if self.read_bytes + bytes > length(&room) {
            return Err(Error::corrupt("page indexes that are longer together than the file"));
        }
        Ok((offset, column))
    }

    /// Where the column index of a chunk is, if it is to be read.
    fn bounds_of(&self, chunk: &ColumnChunk) -> Option<(u64, u32)> {
        chunk.column_index.filter(|_| self.reads_bounds)
    }

    /// Plans what is asked for together with the current chunk's indexes.
    fn open_window(&mut self, budget: &mut Budget<'_>) {
        self.input.clear();
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let (mut bytes, mut end) = (0u64, self.at);
        while let Some((_, _, chunk)) = self.chunk(end).filter(|_| end - self.at < WINDOW_CHUNKS) {
            let before = ranges.len();
            for (offset, length) in self.bounds_of(chunk).iter().chain(&chunk.offset_index) {
                // What cannot be is an error when its turn comes.
                let stop = offset.checked_add(u64::from(*length));
                ranges.extend(
                    stop.filter(|&stop| stop <= self.metadata.footer_start).map(|stop| *offset..stop),
                );
            }
            bytes += ranges[before..].iter().map(length).sum::<u64>();
            if bytes > WINDOW_BYTES && end > self.at {
                ranges.truncate(before);
                break;
            }
            end += 1;
        }
        budget.charge(CHUNK_PRICE, 0, end - self.at);
        self.window_end = end;
        ranges.sort_unstable_by_key(|range| range.start);
        self.window.clear();
        for range in ranges.into_iter().filter(|range| !range.is_empty()) {
            match self.window.last_mut() {
                Some(last) if range.start <= last.end.saturating_add(GAP_BYTES_MAX) => {
                    last.end = last.end.max(range.end);
                }
                _ => self.window.push(range),
            }
        }
    }

    /// What is missing of the current chunk's indexes; with it, what is missing of those of the chunks behind it.
    fn demand(&self, offset: &Range<u64>, column: Option<&Range<u64>>) -> Demand {
        let mut demand = Demand::default();
        let is_missing = |range: &Range<u64>| self.input.missing(range.clone()).is_some();
        let wanted: Vec<&Range<u64>> =
            column.into_iter().chain([offset]).filter(|it| is_missing(it)).collect();
        if wanted.is_empty() {
            return demand;
        }
        for range in &self.window {
            let Some(missing) = self.input.missing(range.clone()) else { continue };
            let is_wanted = wanted.iter().any(|it| it.start < range.end && range.start < it.end);
            let priority = if is_wanted { Priority::Now } else { Priority::Soon };
            demand.push(Want::Range(self.object, missing, priority));
        }
        demand
    }

    fn offset_parser(&self, range: Range<u64>, column_index: Option<ColumnIndex>) -> Result<Expects> {
        let (row_group, _, chunk) = self.current()?;
        let start = chunk.first_page_offset();
        let end = start.saturating_add(chunk.compressed_bytes).saturating_add(FORGOTTEN_BYTES_MAX);
        let pages = start..end.min(self.metadata.footer_start);
        let rows = self.metadata.row_groups[row_group].rows;
        Ok(Expects::Offset(OffsetIndexParser::new(range, pages, rows, &self.limits), column_index))
    }
}

/// For a reader that is no longer wanted.
impl Release for PageIndexReader {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.failed.set_released();
        let PageIndexReader { expects, wrong, input, leaves, metadata, .. } = self;
        release_all(&mut [expects, wrong, input, leaves, metadata], budget)
    }
}

impl Release for Expects {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        match self {
            Expects::Bytes => true,
            Expects::Column(parser, _) => parser.release(budget),
            Expects::Offset(parser, column_index) => release_all(&mut [parser, column_index], budget),
        }
    }
}

fn length(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

impl Machine for PageIndexReader {
    type Product = ChunkIndex;

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<ChunkIndex>> {
        let step = |machine: &mut PageIndexReader| {
            machine.advance(budget).map_err(|error| match machine.chunk(machine.at) {
                Some((row_group, leaf, _)) => error.at(|place| {
                    place.row_group = Some(u64_of(row_group));
                    place.column = Some(machine.metadata.schema.leaf_path(leaf));
                }),
                None => error,
            })
        };
        Failed::run(self, |machine| &mut machine.failed, step)
    }

    fn supply(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()> {
        if object != self.object {
            return Err(Error::misuse("an object that is not this machine's"));
        }
        check_supply(&range, &bytes, None)?;
        if self.failed.is_set() { Ok(()) } else { self.input.supply(range.start, bytes) }
    }

    fn supply_length(&mut self, _object: Object, _length: u64) -> Result<()> {
        Ok(())
    }

    fn fail(&mut self, object: Object, _range: Range<u64>, reason: Error) {
        if object == self.object {
            self.failed.set(reason);
        }
    }
}
