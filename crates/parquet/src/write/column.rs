//! One column of the open row group: entries in, pages out.

mod closing;

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Error, Input, Limit, Price, RELEASE_PRICE, Release, Result};

use super::bloom::{BloomBuilder, Entries};
use super::chooser::Asked;
use super::chunk::{Chunk, PageRecord, Sending};
use super::coding::{Chosen, Coding, choose, looks_at_values};
use super::encoder::{Body, LevelEncoder, Slice};
use super::geospatial::GeospatialBuilder;
use super::long_rows::{LongRow, LongRows};
use super::options::WriteOptions;
use super::out::Out;
use super::page::{PageMaker, Ways};
use super::page_bloom::PageBloomBuilder;
use super::part::{self, Cursor, PART_PRICE, Part, Room};
use super::sample::Sample;
use super::statistics::{Bounds, BoundsOf, NUMBER_PRICE, STRING_PRICE};
use crate::batch::{ColumnBatch, Maxima, Values, check_column};
use crate::encoding::delta::encode::BLOCK_MAX;
use crate::format::{Encoding, GeospatialStatistics};
use crate::growing::SLICE_BYTES;
use crate::schema::{PhysicalType, Schema};

/// The price of counting a level.
const HISTOGRAM_PRICE: Price = Price::per_kilovalue(1 << 10);

/// The maximum cost of choosing an encoding: a sample of about a thousand values is encoded in several ways.
const CHOICE_UNITS: u64 = 215_000;

/// Bytes that a column grows by although it takes nothing: the headers of pages, and what a codec adds.
const SLACK_BYTES: u64 = 4 << 10;
/// Allocations of a column that are freed when it is dropped, about.
const RELEASED_PARTS: usize = 16;
/// Bytes that a dictionary allocates at once, at most, besides what doubles.
const DICTIONARY_SLACK_BYTES: u64 = 128 << 10;

/// What all columns use, one after the other.
pub(super) struct Shared {
    pub(super) options: Arc<WriteOptions>,
    pub(super) schema: Arc<Schema>,
    /// The file stores an Arrow schema.
    pub(super) has_arrow_schema: bool,
    /// The maximum number of rows of the row group.
    pub(super) group_rows_max: u64,
    pub(super) maker: PageMaker,
    pub(super) room: Room,
    /// Dictionary indices of the values of a part.
    pub(super) indices: Vec<u32>,
}

/// A column of the open row group. Small until it has values: a table may have a hundred thousand columns.
#[derive(Debug)]
pub(super) struct ColumnWriter {
    leaf: usize,
    physical_type: PhysicalType,
    maxima: Maxima,
    bounds_of: Option<BoundsOf>,
    repetition: LevelEncoder,
    definition: LevelEncoder,
    cursor: Cursor,
    /// The column of the current batch has been validated.
    is_checked: bool,
    /// The encoder has taken only part of a value.
    is_in_value: bool,
    /// The encoding is chosen in the next step.
    is_choosing: bool,
    /// The rows so far are all that the chunk has.
    is_whole: bool,
    /// The previous chunk's choice, while it is valid.
    choice: Option<Chosen>,
    ways: Ways,
    /// The chunk's first values, all of them in the open page, until they are encoded.
    sample: Option<Box<Sample>>,
    coding: Option<Coding>,
    page: OpenPage,
    /// The last row, as far as it was taken.
    row: LongRow,
    closing: Closing,
    /// If a Bloom filter is requested.
    bloom: Option<Box<BloomBuilder>>,
    /// If Bloom filters of pages are requested.
    page_bloom: Option<Box<PageBloomBuilder>>,
    /// Of geometries.
    geospatial: Option<Box<GeospatialBuilder>>,
    pub(super) chunk: Chunk,
}

/// By how many bytes a column may grow, besides what it takes: as pages are made, and dictionaries.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Slack {
    pub(super) size: u64,
    pub(super) held: u64,
}

/// The page that is being filled.
#[derive(Debug, Default)]
struct OpenPage {
    rows: usize,
    entries: usize,
    values: usize,
    /// Bytes of values, without lengths.
    bytes: usize,
    bounds: Bounds,
    long: LongRows,
    /// How often each repetition level occurs, then each definition level, if there are more than two levels.
    histogram: Vec<u64>,
}

/// What is being done to end the page.
#[derive(Debug)]
enum Closing {
    No,
    /// Its values are being finished.
    Values,
    /// It is with the maker of pages.
    Making(Box<PageRecord>),
    /// The dictionary is being finished.
    Dictionary,
    /// Its entries (this many) are inserted into the Bloom filter, read from its page.
    Entries(Box<(Entries, Body)>, usize),
    /// The page maker works on the dictionary's page.
    MakingDictionary,
}

/// Its pages; what else it holds goes in one piece, when it is dropped.
impl Release for ColumnWriter {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        if !self.chunk.release(budget) {
            return false;
        }
        let rest = self.held().saturating_sub(self.chunk.held);
        budget.charge(RELEASE_PRICE, usize::try_from(rest).unwrap_or(usize::MAX), RELEASED_PARTS);
        true
    }
}

impl ColumnWriter {
    /// A column without values.
    ///
    /// # Errors
    ///
    /// `Unsupported` for a leaf that cannot be written; `Misuse` for an encoding that its type does not allow.
    pub(super) fn new(leaf: usize, schema: &Schema, options: &WriteOptions) -> Result<ColumnWriter> {
        let found = &schema.leaves()[leaf];
        let asked = options.of(leaf);
        asked.check_leaf(schema, leaf, &options.limits)?;
        let level = |level: u16| u8::try_from(level).unwrap_or(u8::MAX);
        let maxima =
            Maxima { definition: level(found.definition_max), repetition: level(found.repetition_max) };
        let logical_type = schema.node_of(found).logical_type.as_ref();
        let bounds_of = BoundsOf::new(found.physical_type, logical_type, asked.bounds_bytes_max);
        let geospatial = GeospatialBuilder::new(found.physical_type, logical_type);
        let values_max = if maxima.repetition > 0 { u64::MAX } else { options.row_group_rows };
        Ok(ColumnWriter {
            leaf,
            physical_type: found.physical_type,
            maxima,
            bounds_of: bounds_of.filter(|_| asked.bounds),
            repetition: LevelEncoder::new(maxima.repetition),
            definition: LevelEncoder::new(maxima.definition),
            cursor: Cursor::default(),
            is_checked: false,
            is_in_value: false,
            is_choosing: false,
            is_whole: false,
            choice: None,
            ways: Ways::default(),
            sample: None,
            coding: None,
            page: OpenPage::default(),
            row: LongRow::default(),
            closing: Closing::No,
            bloom: asked.bloom.map(|asked| Box::new(BloomBuilder::new(asked, values_max))),
            page_bloom: asked.page_bloom.filter(|_| options.page_index).map(|asked| {
                let rows_max = if maxima.repetition > 0 { u64::MAX } else { u64_of(options.page_rows) };
                Box::new(PageBloomBuilder::new(asked, rows_max))
            }),
            geospatial: geospatial.filter(|_| asked.bounds).map(Box::new),
            chunk: Chunk::default(),
        })
    }

    /// There are no bounds for types without an order, such as geometries and intervals.
    pub(super) fn bounds_of(&self) -> Option<&BoundsOf> {
        self.bounds_of.as_ref()
    }

    pub(super) fn physical_type(&self) -> PhysicalType {
        self.physical_type
    }

    pub(super) fn maxima(&self) -> Maxima {
        self.maxima
    }

    /// Bytes in memory: pages, the open page, the dictionary, hashes of values.
    pub(super) fn held(&self) -> u64 {
        let sample = self.sample.as_ref().map_or(0, |sample| sample.held());
        let coding = self.coding.as_ref().map_or(0, |coding| {
            coding.encoder.bytes()
                + coding.dictionary.as_ref().map_or(0, |dictionary| dictionary.held())
                + coding.translation_held()
        });
        let hashes = self.bloom.as_ref().map_or(0, |bloom| bloom.held())
            + self.page_bloom.as_ref().map_or(0, |bloom| bloom.held())
            + self.chunk.page_filters.as_ref().map_or(0, |filters| filters.held());
        self.chunk.held + u64_of(sample + coding + hashes + self.repetition.bytes() + self.definition.bytes())
    }

    /// Bytes of the chunk so far, approximately.
    pub(super) fn size(&self) -> u64 {
        let sample = self.sample.as_ref().map_or(0, |sample| sample.plain_bytes());
        let coding = self.coding.as_ref().map_or(0, |coding| {
            coding.encoder.bytes() + coding.dictionary.as_ref().map_or(0, |dictionary| dictionary.bytes())
        });
        self.chunk.compressed_bytes
            + u64_of(sample + coding + self.repetition.bytes() + self.definition.bytes())
    }

    /// By how much it may grow at most, besides what it takes: the open page and the dictionary as they are closed, and
    /// encoded again.
    pub(super) fn slack(&self) -> Slack {
        let undone = self.coding.as_ref().map_or(0, |coding| coding.undone_bytes_max());
        let open = self.size().saturating_sub(self.chunk.compressed_bytes);
        let held = self.held().saturating_sub(self.chunk.held);
        let dictionary = if self.has_no_dictionary() { 0 } else { DICTIONARY_SLACK_BYTES };
        // Only a codec adds to what is encoded for good; what is counted or chosen by may double.
        let has_bloom = self.bloom.is_some() || self.page_bloom.is_some();
        let part = if self.has_no_dictionary() && self.sample.is_none() && !has_bloom { 4 } else { 1 };
        let more = u64_of(undone) + SLACK_BYTES;
        let dictionary = dictionary + self.page_bloom.as_ref().map_or(0, |bloom| bloom.page_bytes_max());
        Slack { size: open / part + more, held: held / part + more + dictionary }
    }

    /// The rest of the chunk has no dictionary.
    pub(super) fn has_no_dictionary(&self) -> bool {
        self.coding.as_ref().is_some_and(|coding| coding.dictionary.is_none())
    }

    /// Sends the pages that need not wait for the end of their row group: those of its first unfinished column, if that
    /// has no dictionary, or the dictionary's page is done. Before the first values, that is unknown. False if the budget
    /// is spent first.
    pub(super) fn send_pages(&mut self, out: &mut Out, budget: &mut Budget<'_>) -> bool {
        let is_first_known = self.coding.as_ref().is_some_and(|coding| coding.dictionary.is_none());
        if is_first_known && matches!(self.closing, Closing::No) {
            // Spilled pages are read back when the row group ends; what follows them waits until then.
            let mut nothing = Input::new();
            while let Sending::Page = self.chunk.send(out, &mut nothing, budget) {
                if budget.is_spent() {
                    return self.chunk.is_sent();
                }
            }
        }
        true
    }

    /// The row of the batch that is being taken; while a page is ended, its last row.
    pub(super) fn row(&self, column: &ColumnBatch) -> usize {
        let begins_row = part::repetition_of(column, self.maxima)
            .is_none_or(|levels| levels.get(self.cursor.entry).is_none_or(|level| *level == 0));
        let is_begun = !begins_row || self.is_ending_page();
        self.cursor.row.saturating_sub(usize::from(is_begun))
    }

    /// True while a page is being ended.
    pub(super) fn is_ending_page(&self) -> bool {
        !matches!(self.closing, Closing::No)
    }

    /// The batch is done with.
    pub(super) fn end_batch(&mut self, column: &ColumnBatch) -> Result<()> {
        let values = column.values.len();
        let is_right = match column.levels.is_none() && column.layout == crate::batch::Layout::Spaced {
            true => values == column.rows,
            false => values == self.cursor.value,
        };
        (self.cursor, self.is_checked) = (Cursor::default(), false);
        if is_right {
            Ok(())
        } else {
            Err(Error::misuse(alloc::format!("a batch of {values} values, which levels do not tell of")))
        }
    }

    /// Takes rows of a batch up to row `until`, and sends each page as soon as it is complete, if it has where to. False if
    /// the budget is spent first.
    pub(super) fn advance(
        &mut self,
        column: &ColumnBatch,
        until: usize,
        shared: &mut Shared,
        mut out: Option<&mut Out>,
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        if !self.is_checked {
            check_column(column, self.physical_type, self.maxima)?;
            self.is_checked = true;
        }
        loop {
            if !matches!(self.closing, Closing::No) && !self.close_page(shared, budget)? {
                return Ok(false);
            }
            if let Some(out) = out.as_deref_mut()
                && !self.send_pages(out, budget)
            {
                return Ok(false);
            }
            if self.has_reached(column, until) {
                return Ok(true);
            }
            if self.must_close(column, shared) {
                self.closing = Closing::Values;
                continue;
            }
            let rows_left = self.page_rows(shared).saturating_sub(self.page.rows);
            let part = Part::next(column, self.maxima, self.cursor, until, rows_left)?;
            budget.charge(PART_PRICE, 0, part.entries.len());
            if u64_of(part.bytes) > shared.options.limits.value_bytes {
                budget.charge(PART_PRICE, 0, part.entries.len());
                let limits = &shared.options.limits;
                let longer = part.longer(column, self.maxima, self.cursor.value, limits.value_bytes);
                if let Some((entry, bytes)) = longer {
                    // The error names its row.
                    let rows = part::repetition_of(column, self.maxima).map_or(entry, |levels| {
                        levels[self.cursor.entry..entry].iter().filter(|level| **level == 0).count()
                            + self.cursor.row
                    });
                    (self.cursor.entry, self.cursor.row) = (entry, rows);
                    limits.check(Limit::ValueBytes, bytes)?;
                }
            }
            if part.entries.is_empty() {
                return Err(Error::misuse("a batch with fewer rows than it says"));
            }
            if self.must_settle(&part, shared) {
                if !self.settle(shared, budget)? {
                    return Ok(false);
                }
                // The dictionary may be abandoned now, as it would be if the budget had been spent before this point.
                continue;
            }
            if !self.is_in_value && self.is_too_much(&part, column, shared)? {
                self.closing = Closing::Values;
                continue;
            }
            if !self.take(column, &part, shared, budget)? {
                return Ok(false);
            }
            if budget.is_spent() {
                return Ok(matches!(self.closing, Closing::No) && self.has_reached(column, until));
            }
        }
    }

    /// Whether the batch's rows before `until` have been taken.
    fn has_reached(&self, column: &ColumnBatch, until: usize) -> bool {
        match part::repetition_of(column, self.maxima) {
            None => self.cursor.row >= until,
            Some(levels) => {
                self.cursor.row >= until && levels.get(self.cursor.entry).is_none_or(|level| *level == 0)
            }
        }
    }

    /// Whether the page must end before the next entry, whatever that is.
    fn must_close(&self, column: &ColumnBatch, shared: &Shared) -> bool {
        let begins_row = part::repetition_of(column, self.maxima)
            .is_none_or(|levels| levels.get(self.cursor.entry).is_none_or(|level| *level == 0));
        begins_row
            && !self.is_in_value
            && self.page.entries > 0
            && (self.page.rows >= self.page_rows(shared)
                || self.coding.as_ref().is_some_and(|coding| coding.is_leaving))
    }

    /// Maximum rows of the page. One in DELTA_BINARY_PACKED ends with a block: after the first value, all blocks are
    /// full.
    fn page_rows(&self, shared: &Shared) -> usize {
        let most = shared.options.page_rows;
        let is_packed = |coding: &Coding| coding.encoding == Encoding::DeltaBinaryPacked;
        match self.maxima.repetition == 0 && self.coding.as_ref().is_some_and(is_packed) {
            true if most > BLOCK_MAX => most - (most - 1) % BLOCK_MAX,
            _ => most,
        }
    }

    /// Whether the page would be too large with this part. A dictionary is left before a value that exceeds it alone: it
    /// would be copied, and looked for in vain.
    fn is_too_much(&mut self, part: &Part, column: &ColumnBatch, shared: &Shared) -> Result<bool> {
        if !part.begins_row(column, self.maxima) {
            return Ok(false);
        }
        let (is_empty, plain_bytes) = (self.page.entries == 0, self.plain_bytes(part));
        let levels = self.repetition.bytes() + self.definition.bytes();
        let Some(coding) = &mut self.coding else {
            let sample = self.sample.as_ref().map_or(0, |sample| sample.plain_bytes());
            return Ok(!is_empty && sample + levels + plain_bytes > shared.options.page_bytes);
        };
        let (bytes, decoded) = shared.options.dictionary_max();
        let is_long = part.bytes > SLICE_BYTES && part.bytes >= bytes.min(decoded);
        if is_long && coding.encoding == Encoding::RleDictionary {
            if self.page.values > 0 {
                coding.is_leaving = true;
                return Ok(true);
            }
            coding.leave(self.physical_type)?;
        }
        let bytes = coding.encoder.bytes() + levels;
        let more = match coding.encoding {
            Encoding::RleDictionary => part.values * 4,
            _ => plain_bytes,
        };
        Ok(!is_empty && bytes + more > shared.options.page_bytes)
    }

    /// Bytes of a part's values in PLAIN.
    fn plain_bytes(&self, part: &Part) -> usize {
        let lengths = if self.physical_type == PhysicalType::ByteArray { 4 * part.values } else { 0 };
        part.bytes + lengths
    }

    /// Whether the chunk's first values must be encoded before these are taken: there are enough to choose by, or these
    /// are too long to keep.
    fn must_settle(&self, part: &Part, shared: &Shared) -> bool {
        part.values > 0
            && match (&self.coding, &self.sample) {
                (Some(_), sample) => sample.is_some(),
                (None, sample) => {
                    part.bytes > SLICE_BYTES
                        || self.choice.is_some()
                        || !looks_at_values(shared.options.of(self.leaf))
                        || sample.as_ref().is_some_and(|sample| sample.is_full())
                }
            }
    }

    /// Chooses the encoding, and encodes the values that the choice was based on. False if the budget is spent first.
    fn settle(&mut self, shared: &mut Shared, budget: &mut Budget<'_>) -> Result<bool> {
        let options = shared.options.of(self.leaf);
        if self.coding.is_none() {
            let choice = match self.choice {
                Some(choice) => choice,
                None => {
                    // A choice is made in one go: if necessary, in a step of its own.
                    if budget.left() < CHOICE_UNITS && !self.is_choosing && looks_at_values(options) {
                        self.is_choosing = true;
                        return Ok(false);
                    }
                    self.is_choosing = false;
                    let (is_whole, values_max) = (self.is_whole, values_max(shared, false, self.maxima));
                    let sample = self.sample.get_or_insert_with(|| Box::new(Sample::new(self.physical_type)));
                    let (values, are_all) = sample.all();
                    let chunk_values = if is_whole && are_all { u64_of(values.len()) } else { values_max };
                    let leaf = &shared.schema.leaves()[self.leaf];
                    let logical_type = shared.schema.node_of(leaf).logical_type.as_ref();
                    let plain_strings = Asked::plain_strings_of(logical_type, shared.has_arrow_schema);
                    let of_file = &shared.options;
                    let file = (of_file.page_version, plain_strings, of_file.dictionary_bytes);
                    choose(options, file, self.physical_type, values, chunk_values, budget)?
                }
            };
            self.choice = Some(choice);
            self.coding = Some(Coding::new(choice, self.physical_type, options.encoding.is_some())?);
            if budget.is_spent() {
                return Ok(false);
            }
        }
        let dictionary_max = shared.options.dictionary_max();
        let Some(mut sample) = self.sample.take() else { return Ok(true) };
        while let Some((values, bytes)) = sample.next() {
            let is_taken = self.encode(values, bytes, (&mut shared.indices, dictionary_max), budget)?;
            if is_taken {
                let count = values.len();
                sample.end_part(count);
            }
            if !is_taken || budget.is_spent() {
                self.sample = Some(sample);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Encodes the open page again if it is the first with a dictionary, and that does not pay. False if the budget is
    /// spent first.
    fn undo(&mut self, shared: &mut Shared, budget: &mut Budget<'_>) -> Result<bool> {
        let Some(coding) = &mut self.coding else { return Ok(true) };
        let undone = match coding.take_undone() {
            Some(undone) => Some(undone),
            None => {
                let bounds = (values_max(shared, self.is_whole, self.maxima), shared.options.page_bytes);
                coding.give_up(self.physical_type, bounds, budget)?;
                coding.take_undone()
            }
        };
        let Some(mut undone) = undone else { return Ok(true) };
        let Shared { room, indices, options, .. } = shared;
        while let Some((values, bytes)) = undone.next(&mut room.gathered, budget)? {
            let is_taken = self.encode(values, bytes, (indices, options.dictionary_max()), budget)?;
            if is_taken {
                let count = values.len();
                undone.end_part(count);
            }
            if !is_taken || budget.is_spent() {
                if let Some(coding) = &mut self.coding {
                    coding.keep_undone(undone);
                }
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes a part. False if the budget is spent in the middle of a long value.
    fn take(
        &mut self,
        column: &ColumnBatch,
        part: &Part,
        shared: &mut Shared,
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        if part.values > 0 && !self.take_values(column, part, shared, budget)? {
            self.is_in_value = true;
            return Ok(false);
        }
        self.is_in_value = false;
        let maxima = self.maxima;
        self.take_levels(column, part, budget)?;
        self.page.rows += part.rows;
        self.page.entries += part.entries.len();
        self.page.values += part.values;
        self.page.bytes += part.bytes;
        if part.begins_row(column, maxima) {
            self.row = LongRow::default();
        }
        self.row.add(part);
        let number = self.chunk.rows + u64_of(self.page.rows.saturating_sub(1));
        self.page.long.add(&self.row, (self.physical_type, maxima), number);
        self.cursor.row += part.rows;
        self.cursor.entry += part.entries.len();
        self.cursor.value += part.values;
        Ok(true)
    }

    /// Takes the values of a part. False if the budget is spent first: then the same part must be passed again.
    fn take_values(
        &mut self,
        column: &ColumnBatch,
        part: &Part,
        shared: &mut Shared,
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        let bytes = self.plain_bytes(part);
        let Shared { room: Room { compacted, gathered }, indices, options, .. } = shared;
        let mut values = part::values_of(column, part, self.cursor.value, compacted, budget)?;
        if let (Values::Dictionary(_, entries), Slice::Indices(of_batch)) = (&column.values, values) {
            // These look at each value.
            let is_plain = self.geospatial.is_none() && self.page_bloom.is_none();
            if let Some(coding) = self.coding.as_mut().filter(|_| is_plain)
                && coding.translates(entries, column.rows)
            {
                if !coding.take_translated((of_batch, entries), bytes, (gathered, indices), budget)? {
                    return Ok(false);
                }
                coding.is_leaving |= coding.is_beyond(options.dictionary_max());
                if let Some(of) = &self.bounds_of {
                    // NaNs are counted as often as they occur.
                    let added = if of.is_floating() { of_batch } else { coding.fresh() };
                    let values = gathered.look_up(entries, added, budget)?;
                    add_bounds(&mut self.page.bounds, of, values, budget);
                }
                return Ok(true);
            }
            values = gathered.look_up(entries, of_batch, budget)?;
        }
        if let Some(geospatial) = &mut self.geospatial
            && !geospatial.take(values, budget)?
        {
            return Ok(false);
        }
        if let Some(bloom) = &mut self.page_bloom
            && !bloom.take(values, budget)?
        {
            return Ok(false);
        }
        if self.coding.is_some() {
            if !self.encode(values, bytes, (indices, options.dictionary_max()), budget)? {
                return Ok(false);
            }
        } else {
            let sample = self.sample.get_or_insert_with(|| Box::new(Sample::new(self.physical_type)));
            sample.add(values, part.bytes, budget)?;
        }
        if let Some(geospatial) = &mut self.geospatial {
            geospatial.end_part();
        }
        if let Some(bloom) = &mut self.page_bloom {
            bloom.end_part();
        }
        if let Some(of) = &self.bounds_of {
            add_bounds(&mut self.page.bounds, of, values, budget);
        }
        Ok(true)
    }

    /// Passes values, which take `bytes` in PLAIN, to the encoder and the Bloom filter. False if the budget is spent in
    /// the middle of a long value.
    fn encode(
        &mut self,
        values: Slice<'_>,
        bytes: usize,
        (indices, dictionary_max): (&mut Vec<u32>, (usize, usize)),
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        let Some(coding) = &mut self.coding else { return Err(Error::internal("no encoding")) };
        // A dictionary's values are hashed once, when it ends.
        if let Some(bloom) = &mut self.bloom
            && coding.encoding != Encoding::RleDictionary
            && !bloom.take(values, budget)?
        {
            return Ok(false);
        }
        if !coding.take(values, bytes, indices, budget)? {
            return Ok(false);
        }
        if let Some(bloom) = &mut self.bloom {
            bloom.end_part();
        }
        coding.is_leaving |= coding.is_beyond(dictionary_max);
        Ok(true)
    }

    fn take_levels(&mut self, column: &ColumnBatch, part: &Part, budget: &mut Budget<'_>) -> Result<()> {
        let maxima = self.maxima;
        if maxima.definition == 0 {
            return Ok(());
        }
        let Some(levels) = &column.levels else {
            let Some(validity) = &column.validity else {
                return self.definition.put_run(1, part.entries.len());
            };
            let mut rows = part.entries.clone();
            while !rows.is_empty() {
                rows.start += self.definition.put_validity(validity, rows.clone(), budget)?;
            }
            return Ok(());
        };
        if let Some(repetition) = part::repetition_of(column, maxima) {
            put_all(&mut self.repetition, &repetition[part.entries.clone()], budget)?;
        }
        let definition = &levels.definition[part.entries.clone()];
        put_all(&mut self.definition, definition, budget)?;
        if has_histograms(maxima) {
            let repetitions = repetitions_of(maxima);
            if self.page.histogram.is_empty() {
                self.page.histogram.resize(repetitions + usize::from(maxima.definition) + 1, 0);
            }
            budget.charge(HISTOGRAM_PRICE, 0, 2 * definition.len());
            // The encoders have refused levels that are too large.
            definition.iter().for_each(|level| self.page.histogram[repetitions + usize::from(*level)] += 1);
            if let Some(repetition) = part::repetition_of(column, maxima) {
                let levels = &repetition[part.entries.clone()];
                levels.iter().for_each(|level| self.page.histogram[usize::from(*level)] += 1);
            }
        }
        Ok(())
    }

    /// The geospatial statistics of the chunk, once it has ended.
    pub(super) fn take_geospatial(&mut self) -> Option<GeospatialStatistics> {
        self.geospatial.as_mut()?.finish()
    }

    /// The chunk, once it is ended.
    pub(super) fn take_chunk(&mut self) -> Chunk {
        self.is_whole = false;
        self.ways.end_chunk();
        self.choice = self.choice.and_then(|choice| choice.after(self.chunk.rows));
        core::mem::take(&mut self.chunk)
    }
}

fn add_bounds(bounds: &mut Bounds, of: &BoundsOf, values: Slice<'_>, budget: &mut Budget<'_>) {
    let is_string = matches!(values, Slice::ByteArray(..) | Slice::Fixed { .. });
    let price = if is_string { STRING_PRICE } else { NUMBER_PRICE };
    budget.charge(price, of.compared_bytes(values), values.len());
    bounds.add(of, values);
}

/// Maximum values of a chunk; if it is complete, as many as it has.
fn values_max(shared: &Shared, is_whole: bool, maxima: Maxima) -> u64 {
    match maxima.repetition {
        _ if is_whole => 0,
        0 => shared.group_rows_max,
        _ => u64::MAX,
    }
}

fn put_all(encoder: &mut LevelEncoder, mut levels: &[u8], budget: &mut Budget<'_>) -> Result<()> {
    while !levels.is_empty() {
        let taken = encoder.put(levels, budget)?;
        levels = &levels[taken..];
    }
    Ok(())
}

/// Whether level histograms are written: with at most two levels, the number of nulls says as much.
pub(super) fn has_histograms(maxima: Maxima) -> bool {
    maxima.repetition > 0 || maxima.definition > 1
}

/// How many of a histogram's counts belong to repetition levels.
pub(super) fn repetitions_of(maxima: Maxima) -> usize {
    if maxima.repetition > 0 { usize::from(maxima.repetition) + 1 } else { 0 }
}
