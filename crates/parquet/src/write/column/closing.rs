//! How the pages and the chunk of a column end.

use alloc::boxed::Box;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Error, Limit, Result};

use super::super::bloom::Entries;
use super::super::chunk::{PagePlace, PageRecord};
use super::super::encoder::{Body, Encoder, LevelEncoder};
use super::super::options::PageVersion;
use super::super::page::{Page, Stored, Way};
use super::super::statistics::Short;
use super::{Closing, ColumnWriter, OpenPage, Shared, values_max};
use crate::format::{
    Compression, DataPageHeader, DataPageHeaderV2, DictionaryPageHeader, Encoding, PageKind,
};

/// Page types of the format.
const DATA_PAGE: i32 = 0;
const DICTIONARY_PAGE: i32 = 2;
const DATA_PAGE_V2: i32 = 3;

impl ColumnWriter {
    /// Ends the open page and the rest of the chunk: its dictionary, its Bloom filter. False if the budget is spent
    /// first.
    pub(in crate::write) fn end_chunk(
        &mut self,
        shared: &mut Shared,
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        self.is_whole = true;
        if !self.end_page(shared, budget)? {
            return Ok(false);
        }
        let has_dictionary = self.coding.as_ref().is_some_and(|coding| coding.dictionary.is_some());
        if has_dictionary {
            self.closing = Closing::Dictionary;
            if !self.close_page(shared, budget)? {
                return Ok(false);
            }
        }
        if self.coding.take().is_some_and(|coding| coding.has_left_chosen()) {
            self.choice = None;
        }
        if let Some(bloom) = &mut self.page_bloom
            && self.chunk.page_filters.is_none()
        {
            let filters = bloom.end_chunk();
            self.chunk.page_filters = filters.filter(|filters| filters.pages() == self.chunk.pages.len());
        }
        if let Some(bloom) = &mut self.bloom
            && self.chunk.filter.is_none()
        {
            self.chunk.filter = bloom.finish(budget)?;
            return Ok(self.chunk.filter.is_some());
        }
        Ok(true)
    }

    /// Ends the open page, if any, and releases the memory that was kept for the next. False if the budget is spent
    /// first.
    pub(in crate::write) fn end_early(
        &mut self,
        shared: &mut Shared,
        budget: &mut Budget<'_>,
    ) -> Result<bool> {
        if self.page.entries == 0 && !self.is_ending_page() {
            return Ok(true);
        }
        let is_ended = self.end_page(shared, budget)?;
        if let Some(coding) = &mut self.coding
            && is_ended
        {
            *coding.encoder = Encoder::new(coding.encoding, self.physical_type)?;
            coding.release_translation();
        }
        Ok(is_ended)
    }

    /// Ends the open page, if any. False if the budget is spent first.
    fn end_page(&mut self, shared: &mut Shared, budget: &mut Budget<'_>) -> Result<bool> {
        if matches!(self.closing, Closing::No) && self.page.entries > 0 {
            self.closing = Closing::Values;
        }
        self.close_page(shared, budget)
    }

    /// Continues ending a page. False if the budget is spent first.
    pub(super) fn close_page(&mut self, shared: &mut Shared, budget: &mut Budget<'_>) -> Result<bool> {
        loop {
            let done = match &self.closing {
                Closing::No => return Ok(true),
                Closing::Values => self.finish_values(shared, budget)?,
                Closing::Dictionary => self.finish_dictionary(shared, budget)?,
                Closing::Entries(..) => self.hash_dictionary(shared, budget)?,
                Closing::Making(_) | Closing::MakingDictionary => match shared.maker.step(budget)? {
                    Some(page) => {
                        match core::mem::replace(&mut self.closing, Closing::No) {
                            Closing::Making(record) => self.keep(*record, page, shared.options.page_version),
                            _ => self.chunk.keep_dictionary(page),
                        }
                        if !self.has_left_dictionary() {
                            return Ok(true);
                        }
                        self.closing = Closing::Dictionary;
                        true
                    }
                    None => false,
                },
            };
            if !done || budget.is_spent() {
                return Ok(false);
            }
        }
    }

    /// Passes the page to the page maker, once its values are finished.
    fn finish_values(&mut self, shared: &mut Shared, budget: &mut Budget<'_>) -> Result<bool> {
        if self.sample.is_some() && !self.settle(shared, budget)? || !self.undo(shared, budget)? {
            return Ok(false);
        }
        if let Some(bloom) = &mut self.page_bloom
            && !bloom.end_page(self.chunk.pages.len(), budget)?
        {
            return Ok(false);
        }
        let (encoding, body) = match &mut self.coding {
            Some(coding) => match coding.encoder.finish(budget)? {
                Some(body) => (coding.encoding, body),
                None => return Ok(false),
            },
            // The chunk has no value so far.
            None => (Encoding::Plain, Body::default()),
        };
        let chunk_values = values_max(shared, self.is_whole, self.maxima);
        if let Some(coding) = &mut self.coding {
            coding.end_page(self.physical_type, &body, chunk_values)?;
        }
        let version = shared.options.page_version;
        let with_length = version == PageVersion::V1;
        let level_body = |encoder: &mut LevelEncoder, max: u8| match max {
            0 => Ok(Body::default()),
            _ => encoder.finish(with_length),
        };
        let repetition = level_body(&mut self.repetition, self.maxima.repetition)?;
        let definition = level_body(&mut self.definition, self.maxima.definition)?;
        let page = core::mem::take(&mut self.page);
        let options = shared.options.of(self.leaf);
        let header = |[repetition, definition]: [&Body; 2]| -> Result<DataPageHeaderV2> {
            Ok(DataPageHeaderV2 {
                values: count(page.entries)?,
                nulls: count(page.entries - page.values)?,
                rows: count(page.rows)?,
                encoding,
                definition_bytes: count(definition.len())?,
                repetition_bytes: count(repetition.len())?,
                is_compressed: true,
                statistics: None,
            })
        };
        let is_compressed = options.compression != Compression::Uncompressed;
        let stored = if is_compressed && shared.options.may_store(page.long.bytes) {
            let [mut repetition, definition] = [&repetition, &definition]
                .map(|levels| if with_length { levels.without_length() } else { levels.clone() });
            let header = header([&repetition, &definition])?;
            repetition.append(definition);
            Some(Stored { header, levels: repetition, values: body.clone() })
        } else {
            None
        };
        let v2 = PageKind::DataV2(header([&repetition, &definition])?);
        let mut levels = repetition;
        levels.append(definition);
        let (plain, input, kind) = match version {
            PageVersion::V1 => {
                levels.append(body);
                let kind = PageKind::Data(DataPageHeader {
                    values: count(page.entries)?,
                    encoding,
                    definition_encoding: Encoding::Rle,
                    repetition_encoding: Encoding::Rle,
                    statistics: None,
                });
                (Body::default(), levels, kind)
            }
            PageVersion::V2 => (levels, body, v2),
        };
        self.chunk.long.add_page(input.len(), encoding.has_streams());
        let record = self.record(page, encoding)?;
        let (compression, level): (Compression, _) = (options.compression, options.level);
        let way = if level.is_some() { Way::Usual } else { self.ways.next(encoding, input.len()) };
        shared.maker.start(kind, plain, input, compression, (level, way))?;
        if let Some(stored) = stored {
            shared.maker.or_stored(stored);
        }
        self.closing = Closing::Making(Box::new(record));
        Ok(true)
    }

    /// Keeps a page that is made.
    fn keep(&mut self, record: PageRecord, page: Page, version: PageVersion) {
        self.ways.keep(page.found);
        let is_v1 = version == PageVersion::V1 && !page.is_stored;
        self.chunk.count_page(if is_v1 { DATA_PAGE } else { DATA_PAGE_V2 }, record.encoding);
        self.chunk.keep(record, page);
    }

    /// Records the page, and counts it in the chunk.
    fn record(&mut self, page: OpenPage, encoding: Encoding) -> Result<PageRecord> {
        let nulls = u64_of(page.entries - page.values);
        let chunk = &mut self.chunk;
        chunk.long.add_rows(&page.long, encoding == Encoding::RleDictionary);
        let record = PageRecord {
            place: PagePlace::Held(Box::default()),
            encoding,
            bytes: 0,
            entries: count(page.entries)?,
            nulls: count(page.entries - page.values)?,
            // At most the number of values, which the page's header counts with 31 bits.
            nans: u32::try_from(page.bounds.nans()).unwrap_or(u32::MAX),
            first_row: chunk.rows,
            value_bytes: u64_of(page.bytes),
            bounds: self.bounds_of.as_ref().and_then(|of| {
                let [(min, _), (max, _)] = page.bounds.finish(of)?;
                Some([Short::new(&min), Short::new(&max)])
            }),
            histogram: (!page.histogram.is_empty()).then(|| page.histogram.clone().into()),
        };
        chunk.rows += u64_of(page.rows);
        chunk.entries += u64_of(page.entries);
        chunk.nulls += nulls;
        chunk.value_bytes += u64_of(page.bytes);
        if let Some(of) = &self.bounds_of {
            chunk.bounds.merge(of, &page.bounds);
            chunk.order(of, &record, chunk.pages.len());
        }
        if chunk.histogram.is_empty() {
            chunk.histogram = page.histogram;
        } else {
            chunk.histogram.iter_mut().zip(&page.histogram).for_each(|(all, here)| *all += here);
        }
        Ok(record)
    }

    /// No more pages refer to the dictionary: its memory can be released, and pages that must follow its own page can
    /// be sent.
    fn has_left_dictionary(&self) -> bool {
        self.coding
            .as_ref()
            .is_some_and(|coding| coding.dictionary.is_some() && coding.encoding != Encoding::RleDictionary)
    }

    fn finish_dictionary(&mut self, shared: &Shared, budget: &mut Budget<'_>) -> Result<bool> {
        let dictionary = self.coding.as_mut().and_then(|coding| coding.dictionary.as_mut());
        let Some(dictionary) = dictionary else { return Err(Error::internal("no dictionary")) };
        let (entries, decoded) = (dictionary.len(), dictionary.decoded_bytes());
        let is_distinct = !dictionary.may_repeat();
        shared.options.limits.check(Limit::DictionaryBytes, u64_of(decoded))?;
        self.chunk.long.add_dictionary(decoded);
        let Some(body) = dictionary.finish(budget)? else { return Ok(false) };
        // An abandoned dictionary does not have all values, and another may have some of them twice.
        if let Some(coding) = &mut self.coding {
            coding.dictionary = None;
            let is_exact = is_distinct && coding.encoding == Encoding::RleDictionary;
            self.chunk.distinct = is_exact.then(|| u64_of(entries));
        }
        self.closing = Closing::Entries(Box::new((Entries::default(), body)), entries);
        Ok(true)
    }

    /// Inserts the dictionary's entries into the Bloom filter, if any, and passes its page to the page maker.
    fn hash_dictionary(&mut self, shared: &mut Shared, budget: &mut Budget<'_>) -> Result<bool> {
        let Closing::Entries(page, entries) = &mut self.closing else {
            return Err(Error::internal("no dictionary's page"));
        };
        let (hashed, body) = &mut **page;
        if let Some(bloom) = &mut self.bloom
            && !hashed.step(body, *entries, self.physical_type.width(), bloom, budget)?
        {
            return Ok(false);
        }
        let (entries, body) = (*entries, core::mem::take(body));
        self.chunk.count_page(DICTIONARY_PAGE, Encoding::Plain);
        let header =
            DictionaryPageHeader { values: count(entries)?, encoding: Encoding::Plain, is_sorted: None };
        let options = shared.options.of(self.leaf);
        let kind = PageKind::Dictionary(header);
        let level = (options.level, Way::Usual);
        shared.maker.start(kind, Body::default(), body, options.compression, level)?;
        self.closing = Closing::MakingDictionary;
        Ok(true)
    }
}

/// A count, which the format stores as a signed number of 32 bits.
fn count(count: usize) -> Result<u32> {
    i32::try_from(count)
        .map(i32::cast_unsigned)
        .map_err(|_| Error::too_large("a page of more than 2,147,483,647 entries"))
}
