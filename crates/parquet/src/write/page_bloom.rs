//! The Bloom filters of a chunk's pages: one for each page, collected as the page is, and written block by block when
//! its row group ends.

use alloc::boxed::Box;
use alloc::vec::Vec;

use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::{Budget, Bytes, Price, Release, Result, Segmented, release_all};
use marquetry_kernels::bloom::Block;
use marquetry_kernels::crc32::crc32;
use marquetry_kernels::plain;
use marquetry_kernels::xxh64::Pieces;

use super::bloom::BloomBuilder;
use super::encoder::Slice;
use super::options::{BloomOptions, PageBloomOptions};
use super::out::Out;
use crate::bloom::{BLOCK_BYTES, Filter};
use crate::format::PageBloomPlace;
use crate::growing::{ROOM_PRICE, release_in_step};

/// The price of writing a page's block, which is seldom in a cache, and of its CRC.
const BLOCK_PRICE: Price = Price::per_kilovalue(32 << 10);

/// Blocks that are written before the budget is looked at again.
const BLOCKS_AT_ONCE: usize = 512;
/// A row costs as much as this many blocks, besides its own.
const ROW_BLOCKS: usize = 4;
/// Bytes that are sent together: pieces of so many are not copied once more.
const PIECE_BYTES: usize = 32 << 10;

/// Bytes by which the filters of a chunk's pages grow at most with so many values: their hashes, and filters of pages of a single
/// value, or of more, which the next power of two may double.
pub(super) fn growth_of(options: PageBloomOptions, values: u64) -> u64 {
    // A block of one value lets pass one in 32⁸ others.
    const RATE_OF_ONE: f64 = 1e-12;
    let one = if options.fpp >= RATE_OF_ONE { BLOCK_BYTES } else { options.page_bytes_max };
    let filters = values.saturating_mul(2 * u64::from(one) + 4);
    16 * values + filters.min(options.bytes_max.saturating_add(2 * u64::from(options.page_bytes_max)))
}

/// Collects the filters of a chunk's pages.
///
/// The hashes of a page become a filter that is as small as the page allows, because only the chunk's end decides how
/// large all filters are: as the largest of them. A smaller one is *unfolded* then: each block is written several times,
/// which is what folding undoes, so its rate stays.
#[derive(Debug)]
pub(super) struct PageBloomBuilder {
    bytes_max: u64,
    page_bytes_max: u32,
    /// The filter of the open page.
    page: BloomBuilder,
    /// Those of the pages before it.
    filters: Box<PageFilters>,
    /// They take too much memory: the rest of the chunk is not hashed.
    is_given_up: bool,
}

impl PageBloomBuilder {
    /// For pages of at most `values_max` values.
    pub(super) fn new(options: PageBloomOptions, values_max: u64) -> PageBloomBuilder {
        let PageBloomOptions { fpp, page_bytes_max, bytes_max } = options;
        PageBloomBuilder {
            bytes_max,
            page_bytes_max,
            page: BloomBuilder::new(BloomOptions { fpp, bytes_max: page_bytes_max }, values_max),
            filters: Box::default(),
            is_given_up: false,
        }
    }

    /// Bytes of memory that it takes.
    pub(super) fn held(&self) -> usize {
        self.page.held() + self.filters.held()
    }

    /// Bytes that the filter of the open page has at most.
    pub(super) fn page_bytes_max(&self) -> u64 {
        self.page_bytes_max.into()
    }

    /// Adds the values of a part to the open page, as [`BloomBuilder::take`] does.
    pub(super) fn take(&mut self, values: Slice<'_>, budget: &mut Budget<'_>) -> Result<bool> {
        if self.is_given_up { Ok(true) } else { self.page.take(values, budget) }
    }

    /// The next values are a new part.
    pub(super) fn end_part(&mut self) {
        self.page.end_part();
    }

    /// Ends the open page, whose number is given: ending it again has no effect. False if the budget is spent first.
    pub(super) fn end_page(&mut self, page: usize, budget: &mut Budget<'_>) -> Result<bool> {
        if self.is_given_up {
            return Ok(release_in_step(&mut *self.filters, budget));
        }
        if self.filters.pages() > page {
            return Ok(true);
        }
        let Some(filter) = self.page.finish(budget)? else { return Ok(false) };
        self.filters.add(&filter, budget);
        self.is_given_up = self.filters.bytes() > self.bytes_max;
        Ok(!self.is_given_up)
    }

    /// Returns the filters of the chunk, whose pages have all ended, and resets the builder. `None` if they would take
    /// too much memory, or have been returned.
    pub(super) fn end_chunk(&mut self) -> Option<Box<PageFilters>> {
        self.is_given_up = false;
        let filters = core::mem::take(&mut self.filters);
        (filters.pages() > 0).then_some(filters)
    }
}

/// The filters of a chunk's pages.
#[derive(Debug, Default)]
pub(super) struct PageFilters {
    /// The blocks of the pages' filters, one filter after the other.
    blocks: Segmented<Block>,
    /// How many each of them has, powers of two; and the largest of them.
    sizes: Segmented<u32>,
    most: u32,
    /// The hash of all blocks.
    content: Pieces,
    /// While they are sent: what was sent of them.
    sending: Option<Sending>,
    /// They must not be sent: the chunk has no offset index. (Or they are being sent.)
    is_withdrawn: bool,
}

/// Filters on their way to the file.
#[derive(Debug)]
struct Sending {
    place: PageBloomPlace,
    /// The row at hand, the page in it that is next, and where that page's filter starts among the blocks.
    row: u32,
    page: usize,
    start: usize,
    /// The row's CRC, up to that page.
    crc: u32,
    /// Bytes that are not sent.
    bytes: Vec<u8>,
}

impl PageFilters {
    /// Bytes of memory that they take.
    pub(super) fn held(&self) -> usize {
        self.blocks.len() * size_of::<Block>() + self.sizes.len() * size_of::<u32>()
    }

    /// Their number.
    pub(super) fn pages(&self) -> usize {
        self.sizes.len()
    }

    /// Bytes of all blocks in the file.
    fn bytes(&self) -> u64 {
        u64_of(self.pages()) * u64::from(self.most) * u64::from(BLOCK_BYTES)
    }

    /// Adds the filter of the next page.
    fn add(&mut self, filter: &Filter, budget: &mut Budget<'_>) {
        let blocks = filter.bytes() / BLOCK_BYTES;
        for segment in filter.segments() {
            self.content.add(plain::as_bytes(segment.as_flattened()));
            self.blocks.extend(segment.iter().copied());
        }
        self.sizes.push(blocks);
        self.most = self.most.max(blocks);
        budget.charge(ROOM_PRICE, usize_of_u32(filter.bytes()), 0);
    }

    /// They must not be sent.
    pub(super) fn withdraw(&mut self) {
        self.is_withdrawn = true;
    }

    /// Begins to send them, so many bytes after the start of their chunk's first page. `chunk` is the hash of what the
    /// chunk is. Returns what is announced; `None` if they must not be sent, or are being sent.
    pub(super) fn begin(&mut self, distance: u64, mut chunk: Pieces) -> Option<PageBloomPlace> {
        if core::mem::replace(&mut self.is_withdrawn, true) {
            return None;
        }
        chunk.add(&self.content.finish().to_le_bytes());
        let pages = u32::try_from(self.pages()).ok()?;
        let place = PageBloomPlace { pages, blocks: self.most, distance, id: chunk.finish() };
        let crc = place.crc_of_row(0);
        self.sending = Some(Sending { place, row: 0, page: 0, start: 0, crc, bytes: Vec::new() });
        Some(place)
    }

    /// Sends them, and releases them. False if the budget is spent first, or a piece is ready to be appended.
    pub(super) fn send(&mut self, out: &mut Out, budget: &mut Budget<'_>) -> bool {
        while let Some(sending) = &mut self.sending {
            let rows = sending.place.blocks;
            if sending.row == rows || sending.bytes.len() >= PIECE_BYTES {
                out.push(Bytes::from(core::mem::take(&mut sending.bytes)), budget);
                if sending.row == rows {
                    self.sending = None;
                }
            } else {
                sending.step(&self.blocks, &self.sizes);
                budget.charge(BLOCK_PRICE, 0, BLOCKS_AT_ONCE.min(self.sizes.len() + ROW_BLOCKS));
            }
            if budget.is_spent() || out.is_ready() {
                return false;
            }
        }
        release_in_step(self, budget)
    }
}

impl Sending {
    /// Adds some blocks of the row at hand, and its CRC at its end.
    fn step(&mut self, blocks: &Segmented<Block>, sizes: &Segmented<u32>) {
        let from = self.bytes.len();
        for &size in sizes.iter_from(self.page).take(BLOCKS_AT_ONCE) {
            // As if all hashes had been inserted into a filter of as many blocks as the largest has.
            let at = u64::from(self.row) * u64::from(size) / u64::from(self.place.blocks);
            let block = usize::try_from(at).ok().and_then(|at| blocks.get(self.start + at));
            self.bytes.extend_from_slice(plain::as_bytes(block.unwrap_or(&[u32::MAX; 8])));
            self.start += usize_of_u32(size);
            self.page += 1;
        }
        self.crc = crc32(self.crc, &self.bytes[from..]);
        if self.page == sizes.len() {
            self.bytes.extend_from_slice(&self.crc.to_le_bytes());
            (self.row, self.page, self.start) = (self.row + 1, 0, 0);
            self.crc = self.place.crc_of_row(self.row);
        }
    }
}

impl Release for PageFilters {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.blocks, &mut self.sizes], budget)
    }
}
