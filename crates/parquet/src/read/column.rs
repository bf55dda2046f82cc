//! One column: from its pages to its part of a batch.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use marquetry_base::cast::usize_of;
use marquetry_base::{Budget, Bytes, Demand, Error, Input, Limits, Object, Pool, Price, Priority, Result};
use marquetry_kernels::levels;

use super::builder::{Builder, ROOM_PRICE};
use super::dictionary::{Decoded, DictionaryDecoder, Entries};
use super::levels::{NestedLeaf, PageLevels};
use super::page::{Decompressors, Next, Page, PageReader};
use super::values::{ValueDecoder, prefixed};
use super::{ColumnBatch, ReadOptions};
use crate::encoding::delta_byte_array::prefixes_go_on;
use crate::encoding::hybrid::Hybrid;
use crate::encoding::plain::Accept;
use crate::format::{ColumnChunk, Encoding, FileMetaData, PageKind};
use crate::schema::{LogicalType, PhysicalType};

/// The fewest rows decoded at a time, however small the budget: what a step's progress is made of.
const SLICE_ROWS_MIN: usize = 64;
/// The most.
const SLICE_ROWS_MAX: usize = 8192;
/// The price of a row's definition level.
const LEVEL_PRICE: Price = Price::per_kilovalue(300);
/// The price of a row's slot, where some of a slice are null.
const SPREAD_PRICE: Price = Price::per_kilovalue(1500);
/// What a slice costs beside its values, and what a page costs.
const SLICE_UNITS: u64 = 50;

/// Bytes of a dictionary page that are one buffer of its strings' views; one string may be longer.
const DICTIONARY_CHUNK_BYTES: usize = 1 << 20;
/// Levels that are looked at at a time where a batch of a nested leaf is cut, and their price.
const CUT_ENTRIES: usize = 32 << 10;
const CUT_PRICE: Price = Price::per_kilovalue(150);

/// Reads one leaf, row group after row group.
pub(super) struct ColumnReader {
    leaf: usize,
    path: alloc::string::String,
    physical_type: PhysicalType,
    is_nullable: bool,
    keep_dictionaries: bool,
    limits: Limits,
    accept: Accept,
    row_group: usize,
    /// The levels, of a leaf that is not flat.
    nested: Option<NestedLeaf>,
    /// Rows of the chunk that are in no batch yet.
    rows_left: u64,
    /// Entries of the chunk that no page has given yet: values, nulls, and lists without an element. Of a flat leaf, rows.
    entries_left: u64,
    pages: Option<PageReader>,
    dictionary: Dictionary,
    page: Option<DataPage>,
    /// True where DELTA_BYTE_ARRAY pages go on from the one before; and then the last value of that.
    prefixes_go_on: bool,
    last_value: Vec<u8>,
    builder: Builder,
    bodies: Pool<u8>,
    /// Decoded rows that the last batch had no place for.
    spare: Option<ColumnBatch>,
    spare_bytes: usize,
    cut: Cut,
}

/// Where a batch of a nested leaf is to be cut, as far as that is found.
#[derive(Default)]
struct Cut {
    rows: usize,
    entries: usize,
    values: usize,
}

enum Dictionary {
    None,
    Decoding { decoder: Box<DictionaryDecoder>, body: Bytes },
    Whole(Entries),
}

impl Dictionary {
    /// Bytes held.
    fn held(&self) -> usize {
        match self {
            Dictionary::None => 0,
            Dictionary::Decoding { decoder, body } => decoder.held() + body.len(),
            Dictionary::Whole(entries) => entries.held(),
        }
    }

    fn entries(&self) -> Option<&Entries> {
        match self {
            Dictionary::Whole(entries) => Some(entries),
            _ => None,
        }
    }

    /// Decodes until all is decoded or the budget is spent.
    fn step(&mut self, physical_type: PhysicalType, budget: &mut Budget<'_>) -> Result<()> {
        while let Dictionary::Decoding { decoder, body } = self {
            match decoder.step(budget)? {
                Decoded::Some => return Ok(()),
                Decoded::Chunk { at, bytes } => {
                    let end = at.saturating_add(bytes.max(DICTIONARY_CHUNK_BYTES)).min(body.len());
                    decoder.supply(body.slice(at.min(end)..end));
                }
                Decoded::All => {
                    if let Dictionary::Decoding { decoder, .. } = core::mem::replace(self, Dictionary::None) {
                        *self = Dictionary::Whole(decoder.finish(physical_type));
                    }
                }
            }
        }
        Ok(())
    }
}

/// A data page, somewhere in its middle.
struct DataPage {
    levels: Levels,
    values: ValueDecoder,
    entries_left: usize,
    /// Nulls still to come, where the header counts them.
    nulls_left: Option<usize>,
    bytes: usize,
}

/// The levels of a page.
enum Levels {
    /// Of a nested leaf.
    Nested(PageLevels),
    /// None: every row has a value.
    Required,
    /// Hybrid runs of one bit.
    Hybrid(Hybrid),
    /// Bits, of the deprecated BIT_PACKED, most significant bit first; and the next one's number.
    Bits(Bytes, usize),
}

/// What [`ColumnReader::advance`] answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Advance {
    /// The batch has the rows asked for, or as many as it may have.
    Full,
    /// Bytes are missing: see [`ColumnReader::want`].
    Need,
    /// The budget is spent.
    Yield,
}

impl ColumnReader {
    /// A reader of a leaf.
    pub(super) fn new(number: usize, metadata: &FileMetaData, options: &ReadOptions) -> Result<ColumnReader> {
        let schema = &metadata.schema;
        let leaf = schema.leaves().get(number).ok_or_else(|| Error::internal("a leaf that is not there"))?;
        let logical_type = schema.node_of(leaf).logical_type.as_ref();
        let is_text =
            matches!(logical_type, Some(LogicalType::String | LogicalType::Enum | LogicalType::Json));
        // The format's own lengths are signed 32-bit numbers.
        let value_bytes_max =
            u32::try_from(options.limits.value_bytes).unwrap_or(u32::MAX).min(i32::MAX as u32);
        let accept = Accept { value_bytes_max, only_text: is_text && options.verify_utf8 };
        if let PhysicalType::FixedLenByteArray(width) = leaf.physical_type {
            Limits::check("value_bytes", options.limits.value_bytes, width.into())
                .map_err(|error| error.at(|place| place.column = Some(leaf.path.clone())))?;
        }
        Ok(ColumnReader {
            leaf: number,
            path: leaf.path.clone(),
            physical_type: leaf.physical_type,
            is_nullable: leaf.definition_max > 0,
            keep_dictionaries: options.keep_dictionaries,
            limits: options.limits,
            accept,
            row_group: 0,
            nested: if leaf.is_flat() { None } else { Some(NestedLeaf::new(schema, leaf)?) },
            rows_left: 0,
            entries_left: 0,
            pages: None,
            dictionary: Dictionary::None,
            page: None,
            prefixes_go_on: metadata.created_by.as_deref().is_some_and(prefixes_go_on),
            last_value: Vec::new(),
            builder: Builder::new(
                leaf.physical_type,
                options.batch_rows,
                options.layout,
                options.keep_dictionaries && leaf.is_flat(),
            ),
            bodies: Pool::new(),
            spare: None,
            spare_bytes: 0,
            cut: Cut::default(),
        })
    }

    /// The leaf's number.
    pub(super) fn leaf(&self) -> usize {
        self.leaf
    }

    /// Begins a column chunk.
    pub(super) fn start(
        &mut self,
        object: Object,
        row_group: usize,
        rows: u64,
        chunk: &ColumnChunk,
        footer_start: u64,
        options: &ReadOptions,
    ) -> Result<()> {
        self.row_group = row_group;
        self.rows_left = rows;
        self.entries_left = chunk.values;
        self.page = None;
        self.last_value = Vec::new();
        self.dictionary = Dictionary::None;
        self.spare = None;
        self.spare_bytes = 0;
        if let Some(nested) = &mut self.nested {
            nested.start();
        }
        let is_repeated = self.nested.as_ref().is_some_and(|nested| nested.repetition_max > 0);
        if !chunk.encrypted && (if is_repeated { chunk.values < rows } else { chunk.values != rows }) {
            let error = Error::corrupt(format!("{} values in a row group of {rows} rows", chunk.values));
            return Err(self.place(error));
        }
        self.pages =
            Some(PageReader::new(object, chunk, footer_start, options).map_err(|error| self.place(error))?);
        Ok(())
    }

    /// Rows that are decoded and not handed out.
    pub(super) fn rows(&self) -> usize {
        self.spare.as_ref().map_or(self.builder.rows, |spare| spare.rows)
    }

    /// Bytes held: of pages, of the dictionary, of the batch being filled and of the rows that are left of one.
    pub(super) fn held(&self) -> u64 {
        let pages = self.pages.as_ref().map_or(0, PageReader::held);
        let page = self.page.as_ref().map_or(0, |page| page.bytes);
        (pages + page + self.dictionary.held() + self.builder.held() + self.spare_bytes) as u64
    }

    /// True when `rows` cannot grow before a batch is taken.
    pub(super) fn has_spare(&self) -> bool {
        self.spare.is_some()
    }

    /// Asks for what [`Advance::Need`] waits for.
    pub(super) fn want(&self, input: &Input, priority: Priority, demand: &mut Demand) {
        if let Some(pages) = &self.pages {
            pages.want(input, priority, demand);
        }
    }

    /// Decodes until the batch has `target` rows.
    pub(super) fn advance(
        &mut self,
        target: usize,
        input: &mut Input,
        decompressors: &mut Decompressors,
        budget: &mut Budget<'_>,
    ) -> Result<Advance> {
        self.try_advance(target, input, decompressors, budget).map_err(|error| self.place(error))
    }

    fn try_advance(
        &mut self,
        target: usize,
        input: &mut Input,
        decompressors: &mut Decompressors,
        budget: &mut Budget<'_>,
    ) -> Result<Advance> {
        if self.spare.is_some() {
            return Ok(Advance::Full);
        }
        let target = target.min(self.builder.capacity);
        while !self.has_rows(target) {
            if let Some(page) = &mut self.page {
                let ahead = self.nested.as_ref().map_or(0, NestedLeaf::ahead);
                if page.entries_left + ahead > 0 {
                    let goes_on = if self.nested.is_some() {
                        self.decode_nested(target, budget)?
                    } else {
                        !self.builder.is_heavy(page.bytes) && self.decode(target, budget)?
                    };
                    if !goes_on {
                        return Ok(Advance::Full);
                    }
                    if budget.is_spent() {
                        return Ok(Advance::Yield);
                    }
                    continue;
                }
                self.close();
            }
            if let Dictionary::Decoding { .. } = &self.dictionary {
                self.dictionary.step(self.physical_type, budget)?;
                if budget.is_spent() {
                    return Ok(Advance::Yield);
                }
                continue;
            }
            let Some(pages) = &mut self.pages else {
                return Err(Error::internal("a column without a chunk"));
            };
            let bodies = core::cell::RefCell::new(&mut self.bodies);
            let next = pages.next(
                input,
                decompressors,
                budget,
                |length| bodies.borrow_mut().take_memory(length),
                |room, length| share_body(&mut bodies.borrow_mut(), room, length),
            )?;
            match next {
                Next::Page(page) => self.open(page)?,
                Next::Need => return Ok(Advance::Need),
                Next::Yield => return Ok(Advance::Yield),
                Next::End => {
                    return Err(Error::corrupt(format!(
                        "the column chunk ends {} rows and {} entries early",
                        self.rows_left, self.entries_left
                    )));
                }
            }
            budget.charge_units(SLICE_UNITS);
            if budget.is_spent() {
                return Ok(Advance::Yield);
            }
        }
        Ok(Advance::Full)
    }

    /// True when the batch has `target` whole rows.
    fn has_rows(&self, target: usize) -> bool {
        if self.builder.rows < target {
            return false;
        }
        match &self.nested {
            Some(nested) if nested.repetition_max > 0 => {
                // The last row is whole when the next one begins, or the chunk ends.
                let page_left = self.page.as_ref().map_or(0, |page| page.entries_left);
                if nested.ahead() > 0 && self.rows_left > 0 {
                    nested.begins_row()
                } else {
                    nested.ahead() == 0 && page_left == 0 && self.entries_left == 0
                }
            }
            _ => true,
        }
    }

    /// Decodes one slice of the current page of a nested leaf. False when the batch must end first.
    fn decode_nested(&mut self, target: usize, budget: &mut Budget<'_>) -> Result<bool> {
        let (Some(page), Some(nested)) = (&mut self.page, &mut self.nested) else {
            return Err(Error::internal("no page to decode"));
        };
        let dictionary = self.dictionary.entries();
        let price = page.values.price(dictionary);
        let affordable = budget.values_left(price).clamp(SLICE_ROWS_MIN, SLICE_ROWS_MAX);
        let affordable = affordable.min(self.builder.slice_entries());
        if nested.ahead() == 0 {
            let entries = page.entries_left.min(affordable);
            let Levels::Nested(levels) = &mut page.levels else {
                return Err(Error::internal("a nested leaf without levels"));
            };
            nested.decode_ahead(levels, entries)?;
            page.entries_left -= entries;
            budget.charge_units(LEVEL_PRICE.of(0, entries * 2));
        }
        let is_admitted =
            self.builder.admits_dictionary(buffers_of(dictionary)) || !page.values.is_dictionary();
        if nested.begins_row()
            && (self.builder.is_heavy(page.bytes) || self.builder.is_large() || !is_admitted)
        {
            return Ok(false);
        }
        if !is_admitted {
            return Err(Error::corrupt("a dictionary in the middle of a row"));
        }
        if nested.begins_row() && self.rows_left == 0 {
            return Err(Error::corrupt("a column chunk of more rows than its row group"));
        }
        // Where a row is large, it is taken slice by slice; a batch ends only between rows. So it is in a slice of large values.
        let rows_max = usize_of(self.rows_left).unwrap_or(usize::MAX).min(target - self.builder.rows);
        let entries = nested.within(rows_max, affordable);
        let left = self.builder.entries_left();
        let entries = if entries > left { nested.whole_rows(entries, left) } else { entries };
        let there = nested.values_in(entries);
        let slice = page.values.slice_values(&self.builder, there).min(there);
        let entries = if slice < there { nested.entries_of(slice.max(1)) } else { entries };
        if !self.builder.prepare_levels(entries, nested.repetition_max > 0, budget)?
            || !self.builder.prepare(slice, budget)?
        {
            return Ok(true);
        }
        let (definition, repetition, rows) = nested.take(entries);
        self.builder.add_levels(definition, repetition)?;
        // A few bytes of runs can stand for a row of billions of entries.
        Limits::check("total_bytes", self.limits.total_bytes, self.builder.held() as u64)?;
        self.rows_left -= rows as u64;
        self.builder.rows += rows;
        let (values_before, copied_before) = (self.builder.values, self.builder.copied_bytes());
        page.values.decode(&mut self.builder, dictionary, slice)?;
        let copied = self.builder.copied_bytes() - copied_before;
        budget.charge(price, copied, self.builder.values - values_before);
        budget.charge_units(SLICE_UNITS);
        Ok(true)
    }

    /// Decodes one slice of the current page. False when the batch must end first.
    fn decode(&mut self, target: usize, budget: &mut Budget<'_>) -> Result<bool> {
        let Some(page) = &mut self.page else { return Err(Error::internal("no page to decode")) };
        let dictionary = self.dictionary.entries();
        let wants_indices = self.keep_dictionaries
            && page.values.is_dictionary()
            && dictionary.is_some_and(|entries| entries.kept().is_some());
        let has_values = !matches!(page.values, ValueDecoder::Nothing);
        if has_values && self.builder.holds_indices.is_some_and(|holds| holds != wants_indices) {
            return Ok(false);
        }
        if !self.builder.admits_dictionary(buffers_of(dictionary)) && page.values.is_dictionary() {
            return Ok(false);
        }
        let price = page.values.price(dictionary);
        let affordable = budget.values_left(price).clamp(SLICE_ROWS_MIN, SLICE_ROWS_MAX);
        let rows = (target - self.builder.rows).min(page.entries_left).min(affordable);
        let rows = page.values.slice_values(&self.builder, rows);
        if !self.builder.prepare(rows, budget)? {
            return Ok(true);
        }
        let at = self.builder.rows;
        let there = match &mut page.levels {
            Levels::Nested(_) => return Err(Error::internal("a flat leaf with levels of a nested one")),
            Levels::Required => {
                // Another page of the batch may have nulls; then this one's rows must be marked too.
                if self.is_nullable {
                    marquetry_kernels::bits::fill(self.builder.validity(at + rows)?, at, rows, true)
                        .map_err(|_| Error::internal("no room for validity"))?;
                }
                rows
            }
            Levels::Hybrid(hybrid) => hybrid.decode_bits(self.builder.validity(at + rows)?, at, rows)?,
            Levels::Bits(bytes, bit) => {
                let short = |_| Error::corrupt("the page ends before its last level");
                let first = *bit % 8;
                let packed = bytes.get(*bit / 8..(*bit + rows).div_ceil(8)).unwrap_or_default();
                let usual: Vec<u8> = packed.iter().map(|byte| byte.reverse_bits()).collect();
                marquetry_kernels::bits::copy(&usual, first, self.builder.validity(at + rows)?, at, rows)
                    .map_err(short)?;
                let ones = marquetry_kernels::bits::count_ones(&usual, first, rows).map_err(short)?;
                *bit += rows;
                ones
            }
        };
        if let Some(nulls_left) = &mut page.nulls_left {
            *nulls_left = nulls_left
                .checked_sub(rows - there)
                .ok_or_else(|| Error::corrupt("a page with more nulls than its header says"))?;
        }
        if there > 0 && self.builder.holds_indices.is_none() {
            let filled = self.builder.hold(wants_indices)?;
            budget.charge(ROOM_PRICE, filled, 0);
        }
        let copied_before = self.builder.copied_bytes();
        page.values.decode(&mut self.builder, dictionary, there)?;
        self.builder.end_slice(rows, there)?;
        page.entries_left -= rows;
        self.rows_left = self.rows_left.saturating_sub(rows as u64);
        if page.entries_left == 0 && page.nulls_left.is_some_and(|nulls| nulls > 0) {
            return Err(Error::corrupt("a page with fewer nulls than its header says"));
        }
        let copied = self.builder.copied_bytes() - copied_before;
        budget.charge(price, copied, there);
        if there < rows {
            budget.charge(SPREAD_PRICE, 0, rows);
        }
        budget.charge_units(LEVEL_PRICE.of(0, rows) + SLICE_UNITS);
        Ok(true)
    }

    /// Lets go of a page whose entries are all decoded.
    fn close(&mut self) {
        if let Some(DataPage { values: ValueDecoder::DeltaByteArray(delta), .. }) = self.page.take()
            && self.prefixes_go_on
        {
            self.last_value = delta.into_last();
        }
    }

    /// Takes in a page: a dictionary or data.
    fn open(&mut self, page: Page) -> Result<()> {
        self.builder.next_page();
        let page_bytes = page.body.len();
        let (entries, encoding, nulls, levels, values) = match page.kind {
            PageKind::Dictionary(header) => {
                if !matches!(self.dictionary, Dictionary::None) {
                    return Err(Error::corrupt("a second dictionary in a column chunk"));
                }
                let decoder = DictionaryDecoder::new(
                    header.encoding,
                    self.physical_type,
                    page.body.len(),
                    header.values as usize,
                    self.accept,
                    &self.limits,
                )?;
                self.dictionary = Dictionary::Decoding { decoder: Box::new(decoder), body: page.body };
                return Ok(());
            }
            PageKind::Data(header) => {
                let entries = header.values as usize;
                let (levels, values) = match (self.is_nullable, header.definition_encoding) {
                    _ if self.nested.is_some() => {
                        let Some(nested) = &self.nested else { return Err(Error::internal("no levels")) };
                        let (repetition, definition) =
                            (header.repetition_encoding, header.definition_encoding);
                        let (levels, values) = nested.split_v1(page.body, entries, repetition, definition)?;
                        (Levels::Nested(levels), values)
                    }
                    (false, _) => (Levels::Required, page.body),
                    (true, Encoding::Rle) => {
                        let (levels, values) = prefixed(&page.body)?;
                        (Levels::Hybrid(Hybrid::new(levels, 1)), values)
                    }
                    (true, Encoding::BitPacked) => {
                        let bytes = entries.div_ceil(8);
                        if bytes > page.body.len() {
                            return Err(Error::corrupt("the page ends before its last level"));
                        }
                        (Levels::Bits(page.body.slice(..bytes), 0), page.body.slice(bytes..))
                    }
                    (true, other) => {
                        return Err(Error::corrupt(format!("definition levels encoded as {other}")));
                    }
                };
                (entries, header.encoding, None, levels, values)
            }
            PageKind::DataV2(header) => {
                if header.nulls > header.values {
                    return Err(Error::corrupt(format!(
                        "{} nulls among {} values",
                        header.nulls, header.values
                    )));
                }
                let repetition = page.levels.slice(..header.repetition_bytes as usize);
                let definition = page.levels.slice(header.repetition_bytes as usize..);
                let levels = if let Some(nested) = &self.nested {
                    Levels::Nested(nested.levels_v2(repetition, definition))
                } else if self.is_nullable {
                    Levels::Hybrid(Hybrid::new(definition, 1))
                } else {
                    Levels::Required
                };
                // None at all is not believed: Arrow Go counts no nulls where it writes no statistics. The levels know.
                let is_counted = self.is_nullable && self.nested.is_none() && header.nulls > 0;
                let nulls = is_counted.then_some(header.nulls as usize);
                (header.values as usize, header.encoding, nulls, levels, page.body)
            }
            PageKind::Other(_) => return Ok(()),
        };
        self.entries_left = self.entries_left.checked_sub(entries as u64).ok_or_else(|| {
            Error::corrupt(format!(
                "a page of {entries} values in a column chunk that has {} left",
                self.entries_left
            ))
        })?;
        let dictionary = self.dictionary.entries();
        let mut values = ValueDecoder::new(encoding, self.physical_type, values, dictionary, self.accept)?;
        if let ValueDecoder::DeltaByteArray(delta) = &mut values {
            delta.go_on_from(core::mem::take(&mut self.last_value));
        }
        self.page =
            Some(DataPage { levels, values, entries_left: entries, nulls_left: nulls, bytes: page_bytes });
        Ok(())
    }

    /// Hands out the first `rows` of what is decoded, and keeps the rest for the next batch. `None` when the budget is spent before: then
    /// call again.
    pub(super) fn take(&mut self, rows: usize, budget: &mut Budget<'_>) -> Result<Option<ColumnBatch>> {
        if self.spare.is_none() {
            self.spare_bytes = self.builder.held();
            let batch = self.finish(budget).map_err(|error| self.place(error))?;
            self.spare = Some(batch);
        }
        let Some(batch) = &self.spare else { return Err(Error::internal("a column without a batch")) };
        if rows == batch.rows {
            self.spare_bytes = 0;
            return Ok(self.spare.take());
        }
        let (head, rest) = match (&batch.levels, &self.nested) {
            (Some(levels), Some(nested)) => {
                if !self.cut.find(levels, rows, nested.definition_max, budget) {
                    return Ok(None);
                }
                let Cut { entries, values, .. } = core::mem::take(&mut self.cut);
                batch.split_nested(levels, rows, entries, values)
            }
            _ => (batch.slice(0..rows), batch.slice(rows..batch.rows)),
        };
        self.spare = Some(rest);
        Ok(Some(head))
    }

    /// Ends the batch.
    fn finish(&mut self, budget: &mut Budget<'_>) -> Result<ColumnBatch> {
        let dictionary = self.dictionary.entries();
        if let Some(nested) = &self.nested {
            let has_repetition = nested.repetition_max > 0;
            return self.builder.finish_nested(self.leaf, self.physical_type, has_repetition, dictionary);
        }
        if self.builder.holds_indices.is_none() {
            // Nothing but nulls.
            let filled = self.builder.hold(false)?;
            budget.charge(ROOM_PRICE, filled, 0);
        }
        self.builder.finish(self.leaf, self.physical_type, dictionary)
    }

    fn place(&self, error: Error) -> Error {
        error.at(|place| {
            place.row_group = Some(self.row_group as u64);
            place.column = Some(self.path.clone());
            if let Some(pages) = &self.pages {
                place.page = pages.page();
                place.offset = Some(pages.at());
            }
        })
    }
}

impl Cut {
    /// Looks for the entry that begins the row number `rows`, which is there, and counts the values before it. False when the budget is
    /// spent before.
    fn find(
        &mut self,
        levels: &super::Levels,
        rows: usize,
        definition_max: u8,
        budget: &mut Budget<'_>,
    ) -> bool {
        loop {
            let slice = self.entries..levels.definition.len().min(self.entries + CUT_ENTRIES);
            let found = match &levels.repetition {
                None => Some(rows - self.rows).filter(|&left| left <= slice.len()),
                Some(repetition) => levels::find_below(&repetition[slice.clone()], 1, rows - self.rows),
            };
            let slice = slice.start..slice.start + found.unwrap_or(slice.len());
            self.values += levels::count(&levels.definition[slice.clone()], definition_max);
            self.rows += match &levels.repetition {
                None => slice.len(),
                Some(repetition) => slice.len() - levels::count(&repetition[slice.clone()], 1),
            };
            self.entries = slice.end;
            budget.charge(CUT_PRICE, 0, slice.len());
            if found.is_some() || slice.end == levels.definition.len() {
                return true;
            }
            if budget.is_spent() {
                return false;
            }
        }
    }
}

/// The buffers of a dictionary's views.
fn buffers_of(dictionary: Option<&Entries>) -> usize {
    dictionary.and_then(Entries::buffers).map_or(0, |buffers| buffers.len())
}

/// Shares a decompressed page, whose memory is used again when nobody holds it.
fn share_body(pool: &mut Pool<u8>, room: Vec<u8>, length: usize) -> Bytes {
    Bytes::from_owner(pool.share(room, length))
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
