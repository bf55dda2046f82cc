//! The end of a row group: writes its column chunks in order, and keeps their metadata until the file ends.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::usize_of;
use marquetry_base::{Budget, Bytes, Error, Input, Limits, Release, Result, Segmented, release_all};
use marquetry_kernels::xxh64::Pieces;

use super::chunk::{Chunk, Sending};
use super::column::{ColumnWriter, Shared, has_histograms, repetitions_of};
use super::footer::FooterRoom;
use super::long_rows::HeldOfAll;
use super::options::WriteOptions;
use super::out::Out;
use super::statistics::BoundsOf;
use super::work::Columns;
use crate::batch::Maxima;
use crate::bloom::Filter;
use crate::format::locator::Announcement;
use crate::format::write::{
    ChunkPlaces, FooterSource, GroupHead, IndexSteps, PageBounds, PageSource, write_bloom_header,
    write_chunk, write_chunk_metadata,
};
use crate::format::{
    BloomFilterHeader, BoundaryOrder, ColumnChunk, ColumnOrder, Encoding, KeyValue, PageEncodingStats,
    PageLocation, SizeStatistics, SortingColumn,
};
use crate::going::Going;
use crate::schema::{PhysicalType, Schema};
use crate::thrift::Writer;

/// The cost of recording a chunk.
const CHUNK_UNITS: u64 = 1000;

/// Ends a row group, resumably, column by column. The first round sends their chunks, which are contiguous; the second,
/// the Bloom filters that follow them. Then all positions are known, and their metadata is serialized.
#[derive(Debug)]
pub(super) struct GroupSteps {
    column: usize,
    /// Columns from this one on must not end yet.
    until: usize,
    stage: Stage,
    record: GroupRecord,
    /// What readers hold of it, if that is more than usual.
    held: HeldOfAll,
}

/// What is done to a column.
#[derive(Debug)]
enum Stage {
    /// Its last page is ended, and its dictionary.
    End,
    /// Its pages are sent.
    Send,
    /// Its column index is written.
    ColumnIndex(Box<IndexSteps>),
    /// Its offset index is written.
    OffsetIndex(Box<IndexSteps>),
    /// What is known of its pages is released.
    Release,
    /// Its Bloom filters are sent, and its metadata is written: the second round.
    Filter,
}

/// What [`GroupSteps::step`] returns.
#[derive(Debug)]
pub(super) enum Ended {
    /// The row group is written.
    Whole,
    /// This many columns have ended, and the next one must not end yet.
    Column(usize),
}

/// A row group that is written.
#[derive(Debug, Clone, Copy, Default)]
struct GroupRecord {
    rows: u64,
    uncompressed_bytes: u64,
    compressed_bytes: u64,
    offset: u64,
    /// Its rows are in the order of `Ending::sorting_columns`.
    is_sorted: bool,
}

impl GroupSteps {
    /// A row group of `rows` rows that begins at `offset` in the file.
    pub(super) fn new(rows: u64, offset: u64) -> GroupSteps {
        let record = GroupRecord { rows, offset, ..GroupRecord::default() };
        GroupSteps { column: 0, until: usize::MAX, stage: Stage::End, record, held: HeldOfAll::default() }
    }

    /// The same, but no column may end yet.
    pub(super) fn by_columns(rows: u64, offset: u64) -> GroupSteps {
        GroupSteps { until: 0, ..GroupSteps::new(rows, offset) }
    }

    /// The first column that is not written.
    pub(super) fn column(&self) -> usize {
        self.column
    }

    /// Rows of the row group.
    pub(super) fn rows(&self) -> u64 {
        self.record.rows
    }

    /// The next column may be ended, too.
    pub(super) fn end_column(&mut self) {
        self.until = self.column + 1;
    }

    /// Works on.
    ///
    /// # Errors
    ///
    /// The codec's errors, and an error if memory cannot be allocated.
    pub(super) fn step(
        &mut self,
        columns: &mut Columns,
        shared: &mut Shared,
        out: &mut Out,
        spilled: &mut Input,
        ending: &mut Ending,
        budget: &mut Budget<'_>,
    ) -> Result<Going<Ended, Range<u64>>> {
        loop {
            let Some(column) = columns.get_mut(self.column) else {
                if matches!(self.stage, Stage::Filter) {
                    let is_sorted = ending.is_sorted;
                    ending.groups.push(GroupRecord { is_sorted, ..self.record });
                    ending.rows += self.record.rows;
                    ending.held_to_read = ending.held_to_read.max(self.held);
                    return Ok(Going::Done(Ended::Whole));
                }
                (self.column, self.stage) = (0, Stage::Filter);
                continue;
            };
            if self.column == self.until {
                return Ok(Going::Done(Ended::Column(self.column)));
            }
            match &mut self.stage {
                Stage::End => {
                    if !column.end_chunk(shared, budget)? {
                        return Ok(Going::Yield);
                    }
                    self.stage = Stage::Send;
                }
                Stage::Send => match column.chunk.send(out, spilled, budget) {
                    Sending::Page => {}
                    Sending::Done => self.stage = Stage::ColumnIndex(Box::default()),
                    Sending::Missing(range) => return Ok(Going::Need(range)),
                },
                Stage::ColumnIndex(steps) => {
                    let [is_accepted, _] = column.chunk.has_indexes(&shared.options.limits);
                    let pages = Pages::of(column);
                    if pages.has_bounds
                        && shared.options.page_index
                        && is_accepted
                        && !steps.column_index(&pages, &mut ending.column_indexes.writer, budget)
                    {
                        return Ok(Going::Yield);
                    }
                    ending.column_indexes.end()?;
                    self.stage = Stage::OffsetIndex(Box::default());
                }
                Stage::OffsetIndex(steps) => {
                    let [_, is_accepted] = column.chunk.has_indexes(&shared.options.limits);
                    let pages = Pages::of(column);
                    if shared.options.page_index
                        && is_accepted
                        && !steps.offset_index(&pages, &mut ending.offset_indexes.writer, budget)
                    {
                        return Ok(Going::Yield);
                    }
                    ending.offset_indexes.end()?;
                    if let Some(filters) = &mut column.chunk.page_filters
                        && !is_accepted
                    {
                        filters.withdraw();
                    }
                    self.stage = Stage::Release;
                }
                Stage::Release => {
                    if !column.chunk.release_pages(budget) {
                        return Ok(Going::Yield);
                    }
                    (self.column, self.stage) = (self.column + 1, Stage::End);
                }
                Stage::Filter => {
                    let chunk = &mut column.chunk;
                    if let Some(filter) = chunk.filter.take() {
                        chunk.filter_place = Some(send_filter(*filter, out, budget));
                    }
                    if !send_page_filters(chunk, &shared.schema, self.column, out, budget) {
                        return Ok(Going::Yield);
                    }
                    self.write_metadata(column, shared, ending)?;
                    drop(column.take_chunk());
                    budget.charge_units(CHUNK_UNITS);
                    self.column += 1;
                }
            }
            if budget.is_spent() || out.is_ready() {
                return Ok(Going::Yield);
            }
        }
    }

    /// Writes the chunk's metadata for the footer, with the positions of its filters.
    fn write_metadata(
        &mut self,
        column: &mut ColumnWriter,
        shared: &Shared,
        ending: &mut Ending,
    ) -> Result<()> {
        let geospatial_statistics = column.take_geospatial().map(Box::new);
        let chunk = &column.chunk;
        let mut encodings: Vec<Encoding> = chunk.encodings.iter().map(|(_, encoding, _)| *encoding).collect();
        if column.maxima().definition > 0 {
            encodings.push(Encoding::Rle);
        }
        encodings.sort_unstable();
        encodings.dedup();
        let stats = chunk.encodings.iter().map(|&(page_type, encoding, count)| PageEncodingStats {
            page_type,
            encoding,
            count,
        });
        let of = column.bounds_of();
        let mut statistics = chunk.bounds.statistics(of, chunk.nulls);
        // Positive and negative zeros are two entries, and there may be many NaNs.
        statistics.distinct_count = chunk.distinct.filter(|_| of.is_some_and(|of| !of.is_floating()));
        let mut told = ColumnChunk {
            compression: shared.options.of(self.column).compression,
            encodings,
            values: chunk.entries,
            uncompressed_bytes: chunk.uncompressed_bytes,
            compressed_bytes: chunk.compressed_bytes,
            data_page_offset: chunk.data_page_offset,
            dictionary_page_offset: chunk.dictionary_page_offset,
            statistics: Some(Box::new(statistics)),
            size_statistics: size_statistics(column).map(Box::new),
            geospatial_statistics,
            encoding_stats: stats.collect(),
            bloom_filter: chunk.filter_place,
            ..ColumnChunk::default()
        };
        let (schema, leaf) = (&shared.schema, &shared.schema.leaves()[self.column]);
        let announced = chunk.page_bloom.map(|place| place.announce(schema, leaf, &told));
        told.key_values.extend(announced);
        if ending.metadata.length > shared.options.footer_bytes_max / 2 {
            (told.size_statistics, told.encoding_stats) = (None, Vec::new());
        }
        write_chunk_metadata(&mut ending.metadata.writer, schema, leaf, &told);
        ending.metadata.end()?;
        FooterRoom::of(&shared.options).check(ending.metadata.length)?;
        self.held.add(self.column, &chunk.long, ending.rows);
        self.record.uncompressed_bytes += chunk.uncompressed_bytes;
        self.record.compressed_bytes += chunk.compressed_bytes;
        Ok(())
    }
}

/// Sends a filter. Returns its position, and its length with its header.
fn send_filter(filter: Filter, out: &mut Out, budget: &mut Budget<'_>) -> (u64, Option<u32>) {
    let start = out.position();
    let header = write_bloom_header(BloomFilterHeader { bytes: filter.bytes() });
    out.push(header.into(), budget);
    filter.into_pieces().for_each(|piece| out.push(piece, budget));
    (start, u32::try_from(out.position() - start).ok())
}

/// Sends the filters of a chunk's pages, if there are any. False if the budget is spent first, or a piece is ready to be
/// appended.
fn send_page_filters(
    chunk: &mut Chunk,
    schema: &Schema,
    leaf: usize,
    out: &mut Out,
    budget: &mut Budget<'_>,
) -> bool {
    let distance = out.position() - chunk.first_page_offset();
    let Some(filters) = &mut chunk.page_filters else { return true };
    let mut hash = Pieces::default();
    hash.add(schema.leaf_path(leaf).as_bytes());
    [chunk.entries, chunk.nulls, chunk.uncompressed_bytes, chunk.compressed_bytes]
        .iter()
        .for_each(|number| hash.add(&number.to_le_bytes()));
    if let Some(place) = filters.begin(distance, hash) {
        chunk.page_bloom = Some(place);
    }
    let is_sent = filters.send(out, budget);
    if is_sent {
        chunk.page_filters = None;
    }
    is_sent
}

fn size_statistics(column: &ColumnWriter) -> Option<SizeStatistics> {
    let maxima = column.maxima();
    let is_bytes = column.physical_type() == PhysicalType::ByteArray;
    if !is_bytes && !has_histograms(maxima) {
        return None;
    }
    let (repetition, definition) = histograms(&column.chunk.histogram, maxima);
    Some(SizeStatistics {
        unencoded_byte_array_data_bytes: is_bytes.then_some(column.chunk.value_bytes),
        repetition_level_histogram: repetition.to_vec(),
        definition_level_histogram: definition.to_vec(),
    })
}

/// A histogram of repetition levels and one of definition levels.
fn histograms(both: &[u64], maxima: Maxima) -> (&[u64], &[u64]) {
    both.split_at_checked(repetitions_of(maxima)).unwrap_or_default()
}

/// The pages of a chunk, as the source of its indexes.
struct Pages<'a> {
    chunk: &'a Chunk,
    maxima: Maxima,
    /// The chunk has a column index: every page that has values has bounds.
    has_bounds: bool,
    is_floating: bool,
    is_bytes: bool,
}

impl Pages<'_> {
    fn of(column: &ColumnWriter) -> Pages<'_> {
        let of = column.bounds_of();
        Pages {
            chunk: &column.chunk,
            maxima: column.maxima(),
            has_bounds: of.is_some() && !column.chunk.has_unbounded_page,
            is_floating: of.is_some_and(BoundsOf::is_floating),
            is_bytes: column.physical_type() == PhysicalType::ByteArray,
        }
    }
}

impl PageSource for Pages<'_> {
    fn pages(&self) -> usize {
        self.chunk.pages.len()
    }

    fn bounds(&self, page: usize) -> Option<PageBounds<'_>> {
        let page = self.chunk.pages.get(page)?;
        let (repetition, definition) = histograms(page.histogram.as_deref().unwrap_or_default(), self.maxima);
        let bounds = page.bounds.as_ref();
        Some(PageBounds {
            is_null: bounds.is_none(),
            min: bounds.map_or(&[], |[min, _]| min.bytes()),
            max: bounds.map_or(&[], |[_, max]| max.bytes()),
            nulls: Some(page.nulls.into()),
            nans: self.is_floating.then_some(page.nans.into()),
            repetition,
            definition,
        })
    }

    fn boundary_order(&self) -> BoundaryOrder {
        self.chunk.boundary_order()
    }

    fn location(&self, page: usize) -> PageLocation {
        let page = &self.chunk.pages[page];
        PageLocation {
            offset: page.offset().unwrap_or(0),
            compressed_bytes: page.bytes,
            first_row: page.first_row,
        }
    }

    fn unencoded_bytes(&self, page: usize) -> Option<u64> {
        self.chunk.pages.get(page).map(|page| page.value_bytes).filter(|_| self.is_bytes)
    }
}

/// Serialized structures, one per chunk, that wait for their place in the file: as bytes they take little memory.
#[derive(Debug, Default)]
struct Structures {
    writer: Writer,
    /// Bytes of each. 0: the chunk has none.
    lengths: Segmented<u32>,
    /// Bytes of all.
    length: u64,
}

impl Release for Structures {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.writer, &mut self.lengths], budget)
    }
}

impl Structures {
    /// What was written since the last call is a chunk's.
    fn end(&mut self) -> Result<()> {
        let length = u32::try_from(self.writer.length() - self.length)
            .map_err(|_| Error::too_large("the metadata of a column chunk of 4 GiB"))?;
        self.length = self.writer.length();
        self.lengths.push(length);
        Ok(())
    }
}

/// What the end of the file will contain.
#[derive(Debug)]
pub(super) struct Ending {
    schema: Arc<Schema>,
    sorting_columns: Vec<SortingColumn>,
    /// Row groups that are written now have that order.
    is_sorted: bool,
    key_values: Vec<KeyValue>,
    created_by: String,
    column_orders: Segmented<ColumnOrder>,
    version: i32,
    groups: Segmented<GroupRecord>,
    /// Rows of all of them.
    rows: u64,
    /// What readers hold of the row group of which that is the most.
    held_to_read: HeldOfAll,
    metadata: Structures,
    column_indexes: Structures,
    offset_indexes: Structures,
    /// For the footer: the metadata that is not yet rewritten, the next chunk, and where its indexes are.
    pieces: VecDeque<Bytes>,
    chunk: usize,
    column_index_at: u64,
    offset_index_at: u64,
    /// The footer locator that is announced, and where the footer starts.
    locator: Option<(Announcement, u64)>,
}

impl Release for GroupRecord {}

impl Release for Ending {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let Ending {
            key_values,
            column_orders,
            groups,
            metadata,
            column_indexes,
            offset_indexes,
            pieces,
            ..
        } = self;
        release_all(
            &mut [key_values, column_orders, groups, metadata, column_indexes, offset_indexes, pieces],
            budget,
        )
    }
}

/// Where the next chunk's metadata is, of all that is held, and where its indexes are in the file.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cursor {
    /// The piece of metadata, and the byte of it.
    piece: usize,
    byte: usize,
    column_index_at: u64,
    offset_index_at: u64,
}

impl Ending {
    pub(super) fn new(schema: Arc<Schema>, options: &WriteOptions, key_values: Vec<KeyValue>) -> Ending {
        let own = concat!("marquetry version ", env!("CARGO_PKG_VERSION"));
        Ending {
            schema,
            sorting_columns: options.sorting_columns.clone(),
            is_sorted: true,
            key_values,
            created_by: options.created_by.clone().unwrap_or_else(|| own.into()),
            column_orders: Segmented::new(),
            version: match options.page_version {
                super::PageVersion::V1 => 1,
                super::PageVersion::V2 => 2,
            },
            groups: Segmented::new(),
            rows: 0,
            held_to_read: HeldOfAll::default(),
            metadata: Structures::default(),
            column_indexes: Structures::default(),
            offset_indexes: Structures::default(),
            pieces: VecDeque::new(),
            chunk: 0,
            column_index_at: 0,
            offset_index_at: 0,
            locator: None,
        }
    }

    /// A locator is announced in the footer, which starts there.
    pub(super) fn announce(&mut self, found: Option<Announcement>, footer_start: u64) {
        self.locator = found.map(|found| (found, footer_start));
    }

    /// Gathers the pieces of metadata, so that chunks can be read in any order.
    pub(super) fn keep_metadata(&mut self) {
        while let Some(piece) = self.metadata.writer.take() {
            self.pieces.push_back(piece);
        }
    }

    /// Where the first chunk is.
    pub(super) fn first_cursor(&self) -> Cursor {
        let (column_index_at, offset_index_at) = (self.column_index_at, self.offset_index_at);
        Cursor { piece: 0, byte: 0, column_index_at, offset_index_at }
    }

    /// Moves on, past a chunk.
    pub(super) fn advance(&self, chunk: usize, cursor: &mut Cursor) {
        let length = |structures: &Structures| structures.lengths.get(chunk).copied().unwrap_or(0);
        cursor.column_index_at += u64::from(length(&self.column_indexes));
        cursor.offset_index_at += u64::from(length(&self.offset_indexes));
        cursor.byte += usize_of(length(&self.metadata).into()).unwrap_or(0);
        while let Some(piece) = self.pieces.get(cursor.piece).filter(|piece| piece.len() <= cursor.byte) {
            (cursor.piece, cursor.byte) = (cursor.piece + 1, cursor.byte - piece.len());
        }
    }

    /// A copy of the metadata of the chunk that a cursor is at.
    pub(super) fn metadata_at(&self, chunk: usize, cursor: &Cursor) -> Vec<u8> {
        let mut left = usize_of(self.metadata.lengths.get(chunk).copied().unwrap_or(0).into()).unwrap_or(0);
        let (mut piece, mut byte, mut out) = (cursor.piece, cursor.byte, Vec::with_capacity(left));
        while left > 0 {
            let Some(rest) = self.pieces.get(piece).and_then(|piece| piece.get(byte..)) else { break };
            let part = rest.get(..left).unwrap_or(rest);
            out.extend_from_slice(part);
            (piece, byte, left) = (piece + 1, 0, left - part.len());
        }
        out
    }

    /// Writes the chunk that a cursor is at, with this metadata.
    pub(super) fn write_chunk_at(
        &self,
        chunk: usize,
        cursor: &Cursor,
        writer: &mut Writer,
        metadata: impl FnOnce(&mut Writer),
    ) {
        let length = |structures: &Structures| structures.lengths.get(chunk).copied().unwrap_or(0);
        let mut at = *cursor;
        let places = ChunkPlaces {
            column_index: place(&mut at.column_index_at, length(&self.column_indexes)),
            offset_index: place(&mut at.offset_index_at, length(&self.offset_indexes)),
        };
        write_chunk(writer, None, places, metadata);
    }

    /// Row groups from the one at hand on have no order.
    pub(super) fn withdraw_order(&mut self) {
        self.is_sorted = false;
    }

    /// A pair of metadata.
    pub(super) fn key_value(&self, pair: usize) -> Option<&KeyValue> {
        self.key_values.get(pair)
    }

    /// Releases a pair of metadata. False if none is left.
    pub(super) fn pop_key_value(&mut self) -> bool {
        self.key_values.pop().is_some()
    }

    /// Counts one more column.
    pub(super) fn add_column(&mut self) {
        self.column_orders.push(ColumnOrder::TypeDefined);
    }

    /// The number of row groups, rows, and bytes of pages that were written.
    pub(super) fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Bytes that are held.
    pub(super) fn held(&self) -> u64 {
        self.metadata.length + self.column_indexes.length + self.offset_indexes.length
    }

    /// Checks that readers can hold the largest row of the file, whose row groups end at `end`, and a page of each column: of
    /// a small file they hold less.
    pub(super) fn check_rows(&self, limits: &Limits, end: u64) -> Result<()> {
        let checked = self.held_to_read.check(limits, end + self.held(), self.schema.leaves().len());
        checked.map_err(|(error, of)| {
            let Some((column, row)) = of else { return error };
            error.at(|place| {
                place.column = Some(self.schema.leaf_path(column));
                place.row = Some(row);
            })
        })
    }

    /// Sends the next piece of the indexes; false if none are left.
    pub(super) fn send_index(&mut self, out: &mut Out, budget: &mut Budget<'_>) -> bool {
        if self.chunk == 0 && self.column_index_at == 0 {
            self.column_index_at = out.position();
            self.offset_index_at = out.position() + self.column_indexes.length;
            self.metadata.writer.finish();
            self.column_indexes.writer.finish();
            self.offset_indexes.writer.finish();
        }
        let piece = match self.column_indexes.writer.take() {
            Some(piece) => Some(piece),
            None => self.offset_indexes.writer.take(),
        };
        let is_there = piece.is_some();
        piece.into_iter().for_each(|piece| out.push(piece, budget));
        is_there
    }

    /// Copies the next bytes of metadata.
    fn copy_metadata(&mut self, mut bytes: usize, writer: &mut Writer) {
        while bytes > 0 {
            if self.pieces.front().is_none_or(Bytes::is_empty) {
                self.pieces.pop_front();
                match self.metadata.writer.take() {
                    Some(piece) => self.pieces.push_back(piece),
                    None if self.pieces.is_empty() => return,
                    None => continue,
                }
            }
            let Some(piece) = self.pieces.front_mut() else { return };
            let part = piece.split_to(bytes.min(piece.len()));
            bytes -= part.len();
            writer.raw(&part);
        }
    }
}

/// The position of an index; advances `at` to the next one.
fn place(at: &mut u64, bytes: u32) -> Option<(u64, u32)> {
    let start = *at;
    *at += u64::from(bytes);
    (bytes > 0).then_some((start, bytes))
}

impl FooterSource for Ending {
    fn version(&self) -> i32 {
        self.version
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn completes_types(&self) -> bool {
        true
    }

    fn rows(&self) -> u64 {
        self.rows
    }

    fn groups(&self) -> usize {
        self.groups.len()
    }

    fn group(&self, group: usize) -> GroupHead<'_> {
        let found = &self.groups[group];
        GroupHead {
            rows: found.rows,
            uncompressed_bytes: found.uncompressed_bytes,
            sorting_columns: if found.is_sorted { &self.sorting_columns } else { &[] },
            file_offset: Some(found.offset),
            compressed_bytes: Some(found.compressed_bytes),
            ordinal: i16::try_from(group).ok(),
        }
    }

    fn write_chunk(&mut self, _group: usize, _leaf: usize, writer: &mut Writer) -> Result<()> {
        let length = |structures: &Structures| structures.lengths.get(self.chunk).copied().unwrap_or(0);
        let bytes = usize_of(length(&self.metadata).into()).unwrap_or(0);
        let (column_index, offset_index) = (length(&self.column_indexes), length(&self.offset_indexes));
        let places = ChunkPlaces {
            column_index: place(&mut self.column_index_at, column_index),
            offset_index: place(&mut self.offset_index_at, offset_index),
        };
        self.chunk += 1;
        write_chunk(writer, None, places, |writer| self.copy_metadata(bytes, writer));
        Ok(())
    }

    fn key_values(&self) -> usize {
        self.key_values.len()
    }

    fn key_value(&self, pair: usize) -> Option<&KeyValue> {
        self.key_values.get(pair)
    }

    fn created_by(&self) -> Option<&str> {
        Some(&self.created_by)
    }

    fn column_orders(&self) -> &Segmented<ColumnOrder> {
        &self.column_orders
    }

    fn extension(&self, before: &[u8], length: u64) -> Option<Vec<u8>> {
        let (found, footer_start) = self.locator?;
        found.announce(footer_start, length, before)
    }
}
