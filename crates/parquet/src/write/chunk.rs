//! The column chunk of the open row group: its pages and their metadata.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::Range;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Bytes, Input, Limits, Release, Segmented, release_all};

use super::long_rows::Held;
use super::out::Out;
use super::page::Page;
use super::page_bloom::PageFilters;
use super::statistics::{Bounds, BoundsOf, Short};
use crate::bloom::Filter;
use crate::format::{BoundaryOrder, Encoding, PageBloomPlace};

/// The cost of sending a page, and recording it.
const PAGE_UNITS: u64 = 100;
/// The cost of each piece of a page; one that was spilled is looked up, and released.
const PIECE_UNITS: u64 = 30;
const SPILLED_PIECE_UNITS: u64 = 120;
/// The cost of releasing what is known of a page.
const RECORD_UNITS: u64 = 250;
/// Spilled bytes that are read at a time.
const READ_BYTES: u64 = 512 << 10;
/// Bytes of a page in the offset index, and in the column index besides its bounds and levels, at most: numbers of ten
/// and five bytes, with their fields.
const OFFSET_INDEX_BYTES: u64 = 40;
const COLUMN_INDEX_BYTES: u64 = 24;
const VARINT_BYTES: usize = 10;
/// The part of all memory that an index may be: readers hold ten times as much of both.
const INDEX_PART: u64 = 32;

/// The chunk as far as it is written.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    pub(super) dictionary_page: Option<(PagePlace, u32)>,
    pub(super) pages: Segmented<PageRecord>,
    pub(super) rows: u64,
    pub(super) entries: u64,
    pub(super) nulls: u64,
    /// Bytes of values, without lengths.
    pub(super) value_bytes: u64,
    pub(super) bounds: Bounds,
    pub(super) histogram: Vec<u64>,
    pub(super) uncompressed_bytes: u64,
    pub(super) compressed_bytes: u64,
    /// The number of pages of each type and encoding.
    pub(super) encodings: Vec<(i32, Encoding, i32)>,
    /// What readers hold of it, if that is more than usual.
    pub(super) long: Held,
    /// Bytes of its column index, at most.
    column_index_bytes: u64,
    /// Entries of the dictionary, if it has every value.
    pub(super) distinct: Option<u64>,
    /// Where the dictionary's page and the first data page are in the file, once known.
    pub(super) dictionary_page_offset: Option<u64>,
    pub(super) data_page_offset: u64,
    /// The Bloom filter, once the chunk is ended; and where it is, once it is sent.
    pub(super) filter: Option<Box<Filter>>,
    pub(super) filter_place: Option<(u64, Option<u32>)>,
    /// Those of its pages, once the chunk is ended; and what is announced of them, once they are sent.
    pub(super) page_filters: Option<Box<PageFilters>>,
    pub(super) page_bloom: Option<PageBloomPlace>,
    /// Bytes of pages in memory, and the number of pages that are not.
    pub(super) held: u64,
    moved_pages: usize,
    /// Pages that have been sent. Without a dictionary, its page, which would be the first, counts as sent.
    sent: usize,
    /// Bytes of the page after them that are on their way already.
    begun: u64,
    /// The bounds of the pages so far are not in ascending (or descending) order.
    is_not_ascending: bool,
    is_not_descending: bool,
    /// A page has values and no bounds.
    pub(super) has_unbounded_page: bool,
    /// The last page that has bounds.
    last_bounded: Option<usize>,
}

/// A page of the chunk. Small: a row group of a wide table has very many.
#[derive(Debug)]
pub(super) struct PageRecord {
    pub(super) place: PagePlace,
    pub(super) encoding: Encoding,
    pub(super) bytes: u32,
    pub(super) entries: u32,
    pub(super) nulls: u32,
    pub(super) nans: u32,
    /// The first row's number in the row group.
    pub(super) first_row: u64,
    pub(super) value_bytes: u64,
    /// Lower and upper bound, as they are written.
    pub(super) bounds: Option<[Short; 2]>,
    pub(super) histogram: Option<Box<[u64]>>,
}

/// Where a page is.
#[derive(Debug)]
pub(super) enum PagePlace {
    /// In memory.
    Held(Box<[Bytes]>),
    /// In the spill object, from this byte on.
    Spilled(u64),
    /// In the file, from this byte on.
    Sent(u64),
}

impl PageRecord {
    /// Bytes that it takes of a column index, at most.
    fn column_index_bytes(&self) -> u64 {
        let bounds = self.bounds.iter().flatten().map(|bound| bound.bytes().len()).sum::<usize>();
        let levels = self.histogram.as_ref().map_or(0, |levels| levels.len());
        u64_of(bounds + levels * VARINT_BYTES) + COLUMN_INDEX_BYTES
    }

    /// Where it is in the file, once known.
    pub(super) fn offset(&self) -> Option<u64> {
        if let PagePlace::Sent(offset) = self.place { Some(offset) } else { None }
    }
}

/// What [`Chunk::send`] did.
#[derive(Debug)]
pub(super) enum Sending {
    /// The next page is on its way; or a part of it, if the budget is spent.
    Page,
    /// All pages are.
    Done,
    /// The next page begins with these bytes of the spill object, which must be read back.
    Missing(Range<u64>),
}

impl Release for PagePlace {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let PagePlace::Held(pieces) = self else { return true };
        let mut left = core::mem::take(pieces).into_vec();
        let is_done = left.release(budget);
        *pieces = left.into();
        is_done
    }
}

impl Release for PageRecord {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.place.release(budget)
    }
}

impl Release for Chunk {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        let dictionary = self.dictionary_page.as_mut();
        let is_done = dictionary.is_none_or(|(place, _)| place.release(budget));
        is_done && release_all(&mut [&mut self.pages, &mut self.histogram], budget)
    }
}

impl Chunk {
    /// Sends the next page on its way to the file.
    pub(super) fn send(&mut self, out: &mut Out, spilled: &mut Input, budget: &mut Budget<'_>) -> Sending {
        let start = out.position() - self.begun;
        if self.sent == 0 {
            match &self.dictionary_page {
                Some(_) => self.dictionary_page_offset = Some(start),
                None => self.sent = 1,
            }
        }
        let page = self.sent.checked_sub(1);
        let (place, bytes) = match (page, &mut self.dictionary_page) {
            (None, Some((place, bytes))) => (place, *bytes),
            (None, None) => return Sending::Done,
            (Some(at), _) => match self.pages.get_mut(at) {
                Some(record) => (&mut record.place, record.bytes),
                None => return Sending::Done,
            },
        };
        match core::mem::replace(place, PagePlace::Sent(start)) {
            PagePlace::Held(pieces) => {
                budget.charge_units(u64_of(pieces.len()) * PIECE_UNITS);
                pieces.into_iter().for_each(|piece| out.push(piece, budget));
                self.held = self.held.saturating_sub(u64::from(bytes));
            }
            PagePlace::Spilled(at) => {
                let range = at..at + u64::from(bytes);
                if let Some(missing) = spilled.missing(range.start + self.begun..range.end) {
                    *place = PagePlace::Spilled(at);
                    return Sending::Missing(missing.start..self.run_end(range.end).max(missing.end));
                }
                while range.start + self.begun < range.end {
                    let next = range.start + self.begun;
                    let piece = spilled.segment(next, range.end - next);
                    let bytes = u64_of(piece.len());
                    spilled.release(next..next + bytes);
                    self.begun += bytes;
                    budget.charge_units(SPILLED_PIECE_UNITS);
                    out.push(piece, budget);
                    if budget.is_spent() && next + bytes < range.end {
                        *place = PagePlace::Spilled(at);
                        return Sending::Page;
                    }
                }
                self.begun = 0;
            }
            PagePlace::Sent(_) => return Sending::Done,
        }
        debug_assert_eq!(out.position() - start, u64::from(bytes), "a page of another length");
        if page == Some(0) {
            self.data_page_offset = start;
        }
        budget.charge_units(PAGE_UNITS);
        self.sent += 1;
        Sending::Page
    }

    /// Where its first page is in the file, once that is sent.
    pub(super) fn first_page_offset(&self) -> u64 {
        self.dictionary_page_offset.unwrap_or(self.data_page_offset)
    }

    /// Whether all pages so far were sent.
    pub(super) fn is_sent(&self) -> bool {
        self.sent > self.pages.len()
    }

    /// Releases what is known of pages. False if the budget is spent first.
    pub(super) fn release_pages(&mut self, budget: &mut Budget<'_>) -> bool {
        while self.pages.pop().is_some() {
            budget.charge_units(RECORD_UNITS);
            if budget.is_spent() {
                return self.pages.is_empty();
            }
        }
        true
    }

    /// Where the run of spilled bytes ends that begins with the next page, which ends at `end`: the following pages may
    /// be in it, too.
    fn run_end(&self, mut end: u64) -> u64 {
        let start = end;
        for record in self.pages.iter_from(self.sent) {
            match &record.place {
                PagePlace::Spilled(at) if *at == end && end - start <= READ_BYTES => {
                    end += u64::from(record.bytes);
                }
                _ => break,
            }
        }
        end
    }

    /// Spills pages from memory, in order. False if the budget is spent before all are.
    pub(super) fn move_pages(&mut self, to: &mut Out, budget: &mut Budget<'_>) -> bool {
        while let Some(page) = self.pages.get_mut(self.moved_pages) {
            if let PagePlace::Held(pieces) = &mut page.place {
                let start = to.position();
                budget.charge_units(PAGE_UNITS + u64_of(pieces.len()) * PIECE_UNITS);
                core::mem::take(pieces).into_iter().for_each(|piece| to.push(piece, budget));
                page.place = PagePlace::Spilled(start);
                self.held = self.held.saturating_sub(to.position() - start);
            }
            self.moved_pages += 1;
            if budget.is_spent() {
                return self.moved_pages == self.pages.len();
            }
        }
        true
    }

    /// Keeps a page until it can be sent.
    pub(super) fn keep(&mut self, mut record: PageRecord, page: Page) {
        self.add(&page);
        record.bytes = page.bytes;
        record.place = PagePlace::Held(page.pieces.into());
        self.column_index_bytes += record.column_index_bytes();
        self.pages.push(record);
    }

    /// Keeps the dictionary's page.
    pub(super) fn keep_dictionary(&mut self, page: Page) {
        self.add(&page);
        self.dictionary_page = Some((PagePlace::Held(page.pieces.into()), page.bytes));
    }

    pub(super) fn count_page(&mut self, page_type: i32, encoding: Encoding) {
        let known = self.encodings.iter_mut().find(|known| (known.0, known.1) == (page_type, encoding));
        match known {
            Some(known) => known.2 = known.2.saturating_add(1),
            None => self.encodings.push((page_type, encoding, 1)),
        }
    }

    fn add(&mut self, page: &Page) {
        self.compressed_bytes += u64::from(page.bytes);
        self.uncompressed_bytes += u64::from(page.uncompressed_bytes);
        self.held += u64::from(page.bytes);
    }

    /// Whether readers with these limits accept the column index, and the offset index.
    pub(super) fn has_indexes(&self, limits: &Limits) -> [bool; 2] {
        let most = limits.page_index_bytes.min(limits.total_bytes / INDEX_PART);
        let offsets = u64_of(self.pages.len()) * OFFSET_INDEX_BYTES;
        [offsets.max(self.column_index_bytes) <= most, offsets <= most]
    }

    /// Compares the bounds of a page with those of the previous page.
    pub(super) fn order(&mut self, of: &BoundsOf, record: &PageRecord, number: usize) {
        let is_null = record.nulls == record.entries;
        let Some(bounds) = &record.bounds else {
            self.has_unbounded_page |= !is_null;
            return;
        };
        let before = self.last_bounded.and_then(|at| self.pages.get(at)?.bounds.as_ref());
        if let Some(before) = before {
            let mut compare = |at: usize| match of.compare(before[at].bytes(), bounds[at].bytes()) {
                Some(Ordering::Less) => self.is_not_descending = true,
                Some(Ordering::Greater) => self.is_not_ascending = true,
                Some(Ordering::Equal) => {}
                None => (self.is_not_ascending, self.is_not_descending) = (true, true),
            };
            compare(0);
            compare(1);
        }
        self.last_bounded = Some(number);
    }

    /// How the bounds of pages are ordered.
    pub(super) fn boundary_order(&self) -> BoundaryOrder {
        match (self.is_not_ascending, self.is_not_descending) {
            (false, _) => BoundaryOrder::Ascending,
            (true, false) => BoundaryOrder::Descending,
            (true, true) => BoundaryOrder::Unordered,
        }
    }
}
