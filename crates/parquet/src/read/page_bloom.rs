//! Looking values up in the Bloom filters of a chunk's pages.

use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::{u64_of, usize_of, usize_of_u32};
use marquetry_base::{
    Budget, Bytes, Demand, Error, Failed, Input, Machine, Object, Price, Priority, Result, Step, Want,
    check_supply,
};
use marquetry_kernels::bloom;
use marquetry_kernels::crc32::crc32;

use crate::bloom::BLOCK_BYTES;
use crate::format::{FileMetaData, PageBloomPlace};

/// The Bloom filters of a chunk's data pages: one for each, all of the same number of blocks, stored block by block. So
/// all pages are asked for a value by reading a single *row*: the value's block of each page's filter.
///
/// Their CRCs are not checked before they are read; what is known is that the chunk's metadata announces them, that the
/// announcement was made for this chunk, and that they are within the file.
///
/// Page `i` here is page `i` of the chunk's [offset index](crate::format::OffsetIndex): use them together only if
/// [`pages`](PageBloom::pages) is its number of pages.
///
/// Source: `docs/page-bloom.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageBloom {
    place: PageBloomPlace,
    /// Where the first row starts in the file.
    start: u64,
    row_group: usize,
    leaf: usize,
}

/// Bytes of the CRC after each row.
const CRC_BYTES: u64 = 4;

impl PageBloom {
    /// The filters of a leaf's pages in a row group. `None` if there are none that can be believed: nothing announces
    /// them, or the announcement was made for another chunk, or was changed, or says something that cannot be. Also if
    /// there is no such chunk.
    pub fn of(metadata: &FileMetaData, row_group: usize, leaf: usize) -> Option<PageBloom> {
        let chunk = metadata.row_groups.get(row_group)?.columns.get(leaf)?;
        if chunk.key_values.is_empty() || chunk.encrypted || chunk.file_path.is_some() {
            return None;
        }
        let place = PageBloomPlace::announced(&metadata.schema, metadata.schema.leaves().get(leaf)?, chunk)?;
        let start = chunk.first_page_offset().checked_add(place.distance)?;
        let found = PageBloom { place, start, row_group, leaf };
        let end = found.row_bytes().checked_mul(place.blocks.into())?.checked_add(start)?;
        let is_after_pages = place.distance >= chunk.compressed_bytes;
        let is_of_pages = place.pages > 0 && u64::from(place.pages) <= chunk.values && place.blocks > 0;
        (is_after_pages && is_of_pages && end <= metadata.footer_start).then_some(found)
    }

    /// The row group and the leaf of the chunk.
    pub fn chunk(&self) -> (usize, usize) {
        (self.row_group, self.leaf)
    }

    /// The chunk's data pages, each of which has a filter.
    pub fn pages(&self) -> usize {
        usize_of_u32(self.place.pages)
    }

    /// Blocks of 32 bytes of each filter.
    pub fn blocks(&self) -> u32 {
        self.place.blocks
    }

    /// Where they are in the file, CRCs included.
    pub fn range(&self) -> Range<u64> {
        self.start..self.start + self.row_bytes() * u64::from(self.place.blocks)
    }

    /// Bytes that are read for a hash.
    pub fn row_bytes(&self) -> u64 {
        u64::from(self.place.pages) * u64::from(BLOCK_BYTES) + CRC_BYTES
    }

    /// The row that has the blocks of a hash: its number, and where it is in the file, its CRC included.
    pub fn row(&self, hash: u64) -> (u32, Range<u64>) {
        let row = bloom::block_of(hash, self.place.blocks);
        let start = self.start + self.row_bytes() * u64::from(row);
        (row, start..start + self.row_bytes())
    }
}

/// A set of a chunk's data pages: those that may have a value. Of the others it is certain that they do not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PageSet {
    /// A bit for each page; those beyond the last are unset.
    bits: Vec<u64>,
    pages: usize,
}

impl PageSet {
    /// None of a chunk's `pages` pages.
    pub fn none(pages: usize) -> PageSet {
        PageSet { bits: alloc::vec![0; pages.div_ceil(64)], pages }
    }

    /// Pages of the chunk.
    pub fn pages(&self) -> usize {
        self.pages
    }

    /// Whether a page is in the set.
    pub fn contains(&self, page: usize) -> bool {
        self.bits.get(page / 64).is_some_and(|word| word >> (page % 64) & 1 == 1)
    }

    /// How many pages are in the set.
    pub fn count(&self) -> usize {
        self.bits.iter().map(|word| usize_of_u32(word.count_ones())).sum()
    }

    /// Whether no page is in the set.
    pub fn is_empty(&self) -> bool {
        self.bits.iter().all(|word| *word == 0)
    }

    /// Adds the pages of another set: those that may have one value or another.
    ///
    /// # Errors
    ///
    /// `Misuse` if it is of a chunk of another number of pages.
    pub fn add(&mut self, other: &PageSet) -> Result<()> {
        if self.pages != other.pages {
            return Err(Error::misuse(format!("sets of {} and of {} pages", self.pages, other.pages)));
        }
        self.bits.iter_mut().zip(&other.bits).for_each(|(word, more)| *word |= more);
        Ok(())
    }

    /// The pages of the set, as runs of neighbours, ascending.
    pub fn runs(&self) -> impl Iterator<Item = Range<usize>> {
        let mut at = 0;
        core::iter::from_fn(move || {
            let start = self.next(at, true)?;
            at = self.next(start, false).unwrap_or(self.pages);
            Some(start..at)
        })
    }

    /// The first page from `from` on that is in the set, or is not.
    fn next(&self, from: usize, is_in: bool) -> Option<usize> {
        let mut page = from;
        while page < self.pages {
            let word = self.bits.get(page / 64)?;
            let rest = if is_in { *word } else { !word } >> (page % 64);
            if rest != 0 {
                page += usize_of_u32(rest.trailing_zeros());
                return (page < self.pages).then_some(page);
            }
            page = (page / 64 + 1) * 64;
        }
        None
    }
}

/// Asks the Bloom filters of a chunk's pages for hashes: one product for each [hash](crate::bloom::hash), in order, the
/// pages that may have a value with it. `None` where the filters are not what was announced, so that nothing is known of
/// any page: then they should not be asked again.
///
/// For each hash it reads a single range, of 32 bytes a page and a CRC, which is checked before the product is handed
/// out. Up to 256 ranges, or 4 MiB, are asked for together.
#[derive(Debug)]
pub struct PageBloomProbe {
    object: Object,
    bloom: PageBloom,
    hashes: Vec<u64>,
    /// The hash that is next.
    at: usize,
    /// Hashes whose rows were asked for.
    asked: usize,
    /// Of the row at hand: pages that were looked at, those that may have the hash, and the CRC.
    pages: usize,
    bits: Vec<u64>,
    crc: u32,
    input: Input,
    failed: Failed,
}

/// The price of looking for a hash in a page's block, and of its CRC.
const LOOK_PRICE: Price = Price::per_kib(250);
/// What it costs to begin a row and to hand out its pages.
const ROW_UNITS: u64 = 300;

/// Pages that are looked at together: 16 KiB.
const PAGES_AT_ONCE: usize = 512;
/// Rows that are asked for together, and their bytes.
const WINDOW_ROWS: usize = 256;
const WINDOW_BYTES: u64 = 4 << 20;
/// What it costs to put one of them in order.
const ASK_UNITS: u64 = 100;

impl PageBloomProbe {
    /// A probe of these filters in `object`, the file that they were found in.
    pub fn new(object: Object, bloom: PageBloom, hashes: Vec<u64>) -> PageBloomProbe {
        PageBloomProbe {
            object,
            bloom,
            hashes,
            at: 0,
            asked: 0,
            pages: 0,
            bits: Vec::new(),
            crc: 0,
            input: Input::new(),
            failed: Failed::default(),
        }
    }

    /// A probe of the same filters for other hashes. What was read last is not read again.
    pub(crate) fn again(self, hashes: Vec<u64>) -> PageBloomProbe {
        let PageBloomProbe { object, bloom, input, failed, .. } = self;
        PageBloomProbe { input, failed, ..PageBloomProbe::new(object, bloom, hashes) }
    }

    /// The filters that it asks.
    pub fn bloom(&self) -> &PageBloom {
        &self.bloom
    }

    fn advance(&mut self, budget: &mut Budget<'_>) -> Result<Step<Option<PageSet>>> {
        loop {
            let Some(&hash) = self.hashes.get(self.at) else { return Ok(Step::Done) };
            let (row, range) = self.bloom.row(hash);
            let pages = self.bloom.pages();
            let some = (pages - self.pages).min(PAGES_AT_ONCE);
            let start = range.start + u64_of(self.pages) * u64::from(BLOCK_BYTES);
            let end = match some {
                0 => range.end,
                _ => start + u64_of(some) * u64::from(BLOCK_BYTES),
            };
            if self.input.missing(start..end).is_some() {
                let demand = self.demand(budget);
                if !demand.is_empty() {
                    return Ok(Step::Need(demand));
                }
            }
            let Some(bytes) = self.input.contiguous(start..end)? else {
                return Err(Error::internal("a row that is there, and is not"));
            };
            if self.pages == 0 {
                budget.charge_units(ROW_UNITS);
                self.crc = self.bloom.place.crc_of_row(row);
                self.bits.clear();
            }
            if some == 0 {
                return Ok(Step::Ready(self.end_row(&bytes)));
            }
            let (blocks, _) = bytes.as_chunks();
            let words = self.bits.len();
            self.bits.resize(words + some.div_ceil(64), 0);
            bloom::matches(blocks, hash, &mut self.bits[words..])
                .map_err(|_| Error::internal("pages of another number"))?;
            self.crc = crc32(self.crc, &bytes);
            self.pages += some;
            budget.charge(LOOK_PRICE, bytes.len(), 0);
            if budget.is_spent() {
                return Ok(Step::Yield);
            }
        }
    }

    /// Ends a row, whose CRC is stored as these bytes.
    fn end_row(&mut self, crc: &[u8]) -> Option<PageSet> {
        let bits = core::mem::take(&mut self.bits);
        let pages = core::mem::take(&mut self.pages);
        self.at += 1;
        (*crc == self.crc.to_le_bytes()).then_some(PageSet { bits, pages })
    }

    /// The row of the hash that is next, and those of some after it, as far as they are missing.
    fn demand(&mut self, budget: &mut Budget<'_>) -> Demand {
        if self.asked <= self.at {
            // Several hashes may have one row.
            let next = self.hashes.get(self.at).map(|hash| self.bloom.row(*hash).1);
            if self.input.held() >= WINDOW_BYTES && next.is_some_and(|row| self.input.missing(row).is_some())
            {
                self.input.clear();
            }
            let most = usize_of(WINDOW_BYTES / self.bloom.row_bytes()).unwrap_or(WINDOW_ROWS);
            self.asked = self.hashes.len().min(self.at + most.clamp(1, WINDOW_ROWS));
        }
        let row = |hash: &u64| self.bloom.row(*hash).1;
        let mut rows: Vec<Range<u64>> = self.hashes[self.at..self.asked].iter().map(row).collect();
        budget.charge_units(ASK_UNITS * u64_of(rows.len()));
        let now = rows.first().map_or(0, |row| row.start);
        rows.sort_unstable_by_key(|row| row.start);
        rows.dedup();
        let mut demand = Demand::default();
        for row in rows {
            let priority = if row.start == now { Priority::Now } else { Priority::Soon };
            if let Some(missing) = self.input.missing(row) {
                demand.push(Want::Range(self.object, missing, priority));
            }
        }
        demand
    }
}

impl Machine for PageBloomProbe {
    type Product = Option<PageSet>;

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Option<PageSet>>> {
        let step = |machine: &mut PageBloomProbe| {
            machine
                .advance(budget)
                .map_err(|error| error.at(|place| place.row_group = Some(u64_of(machine.bloom.row_group))))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn set(pages: usize, of: impl Fn(usize) -> bool) -> PageSet {
        let mut set = PageSet::none(pages);
        (0..pages).filter(|page| of(*page)).for_each(|page| set.bits[page / 64] |= 1 << (page % 64));
        set
    }

    #[test]
    fn runs_of_pages() {
        for pages in [0, 1, 63, 64, 65, 128, 1000] {
            for step in [1, 2, 3, 64, 65, 1000] {
                for length in [1, 2, 63, 64, 200] {
                    let set = set(pages, |page| page % step < length);
                    let mut seen = PageSet::none(pages);
                    let mut end = None;
                    for run in set.runs() {
                        assert!(!run.is_empty() && end.is_none_or(|end| end < run.start));
                        end = Some(run.end);
                        run.for_each(|page| seen.bits[page / 64] |= 1 << (page % 64));
                    }
                    assert_eq!(seen, set);
                    assert_eq!(set.count(), (0..pages).filter(|page| set.contains(*page)).count());
                    assert_eq!(set.is_empty(), pages == 0);
                    assert!(!set.contains(pages));
                }
            }
        }
    }

    #[test]
    fn sets_are_added() {
        let mut even = set(70, |page| page % 2 == 0);
        even.add(&set(70, |page| page < 5)).unwrap();
        assert_eq!(even, set(70, |page| page < 5 || page % 2 == 0));
        assert_eq!(even.pages(), 70);
        assert_eq!(even.add(&PageSet::none(71)).unwrap_err().kind(), marquetry_base::ErrorKind::Misuse);
    }
}
