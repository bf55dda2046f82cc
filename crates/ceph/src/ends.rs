//! Where a call best ends in a row group. The next call knows a row and no more: a page that this one stopped in the middle of is decompressed
//! once more, from its beginning. So a call ends where pages begin, as far as its share allows.
//!
//! What rows cost is estimated from the footer, by the sizes of their chunks and the prices of codecs and encodings, before they are read. It
//! need not be exact: what a call does is charged as it is done.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Codec, Price, Result};
use marquetry_parquet::format::{ColumnChunk, Compression, FileMetaData, OffsetIndex};
use marquetry_parquet::schema::PhysicalType;

use crate::host::{Host, price_of};
use crate::located::locate;
use crate::output::Output;

/// What a value costs to decode, about, with its part of a batch; and bytes of a page, with their checksum, beside a codec.
const VALUE_PRICE: Price = Price { kib: 300, kilovalue: 8 << 10 };
/// What a page costs of which values are stepped over: it is decompressed.
const PAGE_PRICE: Price = Price { kib: 300, kilovalue: 1 << 10 };
/// What it costs to leave out some of the values of a page.
const DROP_PRICE: Price = Price::per_kilovalue(2 << 10);
/// What it costs to begin a leaf whose pages are read, about: two reads, of its dictionary and of a page.
const BEGIN_UNITS: u64 = 20_000;
/// The part that is added to an estimate, as a divisor: a call that takes a little more than was expected ends in the middle of a page.
const MARGIN: u64 = 16;
/// What bytes that a codec decompresses cost, about.
const FAST_PRICE: u32 = 600;
const ZSTD_PRICE: u32 = 1_700;
const SLOW_PRICE: u32 = 3_000;
/// What a text costs that becomes one of Arrow's, about.
const ARROW_TEXT_UNITS: u64 = 12;
/// Bytes of a text beside its own: its length, or a view, which has short ones.
const TEXT_BYTES: u64 = 8;
/// What it costs to look for a page of a leaf, by a row.
const FIND_PRICE: Price = Price::per_kilovalue(40 << 10);
/// What it costs to look at a leaf.
const LEAF_PRICE: Price = Price::per_kilovalue(60 << 10);
/// What a byte of an offset index costs, about; and the part of a share, as a divisor, that is spent on indexes which only say where a call best ends.
const INDEX_PRICE: Price = Price::per_kib(4 << 10);
const LOOK_UP: u64 = 8;
/// Leaves whose pages count: those that cost most. And pages of each that are looked at, of those which begin last before a row.
const LEAVES_MAX: usize = 16;
const PAGES_MAX: usize = 8;
/// Rows of a page, where nothing says how many it has.
const PAGE_ROWS: u64 = 20_000;

/// What the rows of a row group cost, and where its pages begin.
pub(crate) struct Ends {
    pub(crate) row_group: usize,
    rows: u64,
    /// Units to read the columns of all rows that are found; and what is handed out of them: values, those of them that are texts, and their bytes.
    read_units: u64,
    values: u64,
    texts: u64,
    bytes: u64,
    /// Units that each call takes to begin these columns, whatever rows it reads: their dictionaries, above all.
    opening: u64,
    /// Leaves that are read or tested, and the units to begin their pages: the costliest first.
    leaves: Vec<(usize, u64)>,
    /// Their pages, once they are looked up.
    pages: Option<Vec<Pages>>,
    page_rows: u64,
}

/// Where the pages of a leaf are; the units to begin all of them, and their bytes.
struct Pages {
    leaf: usize,
    index: Arc<OffsetIndex>,
    units: u64,
    bytes: u64,
}

impl Pages {
    /// The page that has begun before a row, and goes on with it: its units, and its rows, of so many of the row group.
    fn begun(&self, row: u64, rows: u64) -> Option<(u64, Range<u64>)> {
        let pages = &self.index.pages;
        let at = pages.partition_point(|page| page.first_row <= row).checked_sub(1)?;
        let page = pages.get(at).filter(|page| page.first_row < row)?;
        let end = pages.get(at + 1).map_or(rows, |next| next.first_row);
        Some((scaled(self.units, page.compressed_bytes.into(), self.bytes), page.first_row..end))
    }
}

impl Ends {
    /// Of a row group of which these leaves are handed out of rows that are found, and those are tested; some that are both are kept by the
    /// search, and are not read.
    pub(crate) fn new(
        metadata: &FileMetaData,
        row_group: usize,
        (read, tested, kept): (Option<&[usize]>, &[usize], &[usize]),
        host: &mut Host<'_>,
    ) -> Ends {
        let group = &metadata.row_groups[row_group];
        let all: Vec<usize> = match read {
            None => (0..metadata.schema.leaves().len()).collect(),
            Some(_) => Vec::new(),
        };
        let read = read.unwrap_or(&all);
        host.charge(LEAF_PRICE.of(0, read.len() + tested.len()));
        let (mut read_units, mut opening) = (0_u64, 0_u64);
        let (mut values, mut texts, mut bytes) = (0_u64, 0_u64, 0_u64);
        let mut units: BTreeMap<usize, u64> = BTreeMap::new();
        for leaf in read {
            let (Some(chunk), Some(of)) = (group.columns.get(*leaf), metadata.schema.leaves().get(*leaf))
            else {
                continue;
            };
            if !kept.contains(leaf) {
                read_units = read_units.saturating_add(units_of(chunk, VALUE_PRICE));
                opening = opening.saturating_add(BEGIN_UNITS).saturating_add(dictionary_units(chunk));
            }
            values = values.saturating_add(chunk.values);
            let is_text = of.physical_type == PhysicalType::ByteArray;
            texts = texts.saturating_add(if is_text { chunk.values } else { 0 });
            bytes = bytes.saturating_add(bytes_of(chunk, of.physical_type));
        }
        for leaf in read.iter().filter(|leaf| !kept.contains(leaf)).chain(tested) {
            let of = units.entry(*leaf).or_default();
            *of = of.saturating_add(group.columns.get(*leaf).map_or(0, |chunk| units_of(chunk, PAGE_PRICE)));
        }
        let mut leaves: Vec<(usize, u64)> = units.into_iter().collect();
        leaves.sort_by_key(|(_, units)| Reverse(*units));
        leaves.truncate(LEAVES_MAX);
        let (rows, page_rows) = (group.rows, PAGE_ROWS);
        Ends { row_group, rows, read_units, values, texts, bytes, opening, leaves, pages: None, page_rows }
    }

    /// Looks up where the pages are, as far as the object says so.
    fn look_up(&mut self, metadata: &Arc<FileMetaData>, host: &mut Host<'_>) -> Result<()> {
        if self.pages.is_some() {
            return Ok(());
        }
        // A plan can do without an index: of long ones, those of the leaves that cost most are read.
        let (group, mut left) = (&metadata.row_groups[self.row_group], host.share().units / LOOK_UP);
        let is_paid = |leaf: &usize| {
            let index = group.columns.get(*leaf).and_then(|chunk| chunk.offset_index);
            let units = price_of(INDEX_PRICE, index.map_or(0, |(_, bytes)| bytes.into()), 0);
            let is_paid = units <= left;
            left -= if is_paid { units } else { 0 };
            is_paid
        };
        let wanted: Vec<usize> = self.leaves.iter().map(|(leaf, _)| *leaf).filter(is_paid).collect();
        let mut located = Vec::new();
        locate(metadata, &wanted, self.row_group, &mut located, host)?;
        let of = |(leaf, units): &(usize, u64)| {
            let (_, index) = located.iter().find(|(found, _)| found == leaf)?;
            let bytes = group.columns.get(*leaf)?.compressed_bytes;
            Some(Pages { leaf: *leaf, index: Arc::clone(index), units: *units, bytes: bytes.max(1) })
        };
        let pages: Vec<Pages> = self.leaves.iter().filter_map(of).collect();
        if let Some(first) = pages.first() {
            self.page_rows = (self.rows / u64_of(first.index.pages.len()).max(1)).max(1);
        }
        self.pages = Some(pages);
        Ok(())
    }

    /// Where pages are, of leaves that were looked up.
    pub(crate) fn located(&self) -> impl Iterator<Item = (usize, &Arc<OffsetIndex>)> {
        self.pages.iter().flatten().map(|pages| (pages.leaf, &pages.index))
    }

    /// Rows of a page, on average, of the leaf that costs most.
    pub(crate) fn page_rows(&self) -> u64 {
        self.page_rows
    }

    /// Units, about, to read and hand out so many rows that are found among `searched` ones, beside what it takes to [begin](Ends::opening).
    pub(crate) fn units(&self, searched: u64, found: u64, output: &Output) -> u64 {
        // For a single row, a page is decompressed.
        let read = searched.min(found.saturating_mul(self.page_rows));
        let dropped = if found < searched { self.part(self.values, read) } else { 0 };
        let (values, bytes) = (self.part(self.values, found), self.part(self.bytes, found));
        let parts = [
            self.part(self.read_units, read),
            price_of(DROP_PRICE, 0, dropped),
            output.units_of(found, values, bytes),
            if output.keeps_dictionaries() {
                0
            } else {
                self.part(self.texts, found).saturating_mul(ARROW_TEXT_UNITS)
            },
        ];
        let units = parts.into_iter().fold(0, u64::saturating_add);
        units.saturating_add(units / MARGIN)
    }

    /// Rows whose values have so many bytes, about; at least one.
    pub(crate) fn rows_of(&self, bytes: u64) -> u64 {
        if bytes == u64::MAX { bytes } else { scaled(bytes, self.rows, self.bytes).max(1) }
    }

    fn part(&self, of_all: u64, rows: u64) -> u64 {
        scaled(of_all, rows, self.rows)
    }

    /// Where a call best ends that began at row `first`, took `fixed` units to begin, is at `from` and could come to `most`.
    pub(crate) fn end(
        &mut self,
        metadata: &Arc<FileMetaData>,
        (first, from): (u64, u64),
        (most, fixed): (u64, u64),
        host: &mut Host<'_>,
    ) -> Result<u64> {
        if most < self.rows {
            self.look_up(metadata, host)?;
        }
        Ok(self.best((first, from), (most, fixed), host))
    }

    /// The same, by the pages that were looked up: where the units per row are the fewest, with those that the next call takes for the second
    /// time. Of rows that are as good, the last.
    pub(crate) fn best(
        &self,
        (first, from): (u64, u64),
        (most, fixed): (u64, u64),
        host: &mut Host<'_>,
    ) -> u64 {
        let most = most.max(from);
        if most >= self.rows {
            return self.rows;
        }
        let mut rows = vec![from, most];
        for pages in self.pages.iter().flatten() {
            let count = pages.index.pages.partition_point(|page| page.first_row <= most);
            let last = pages.index.pages.iter_from(count.saturating_sub(PAGES_MAX)).take(PAGES_MAX);
            rows.extend(last.map(|page| page.first_row).filter(|row| (from..=most).contains(row)));
        }
        rows.sort_unstable();
        rows.dedup();
        // Of each of these, and once before that.
        host.charge(FIND_PRICE.of(0, (rows.len() + 1) * self.leaves.len()));
        let mut best = (u128::MAX, 1, most);
        for row in rows {
            let cost = u128::from(fixed.saturating_add(self.begun(row)));
            let length = u128::from(row.saturating_sub(first).max(1));
            if cost.saturating_mul(best.1) <= best.0.saturating_mul(length) {
                best = (cost, length, row);
            }
        }
        best.2
    }

    /// The units of rows that are before this one in its pages: they are decompressed with them.
    pub(crate) fn passed(
        &mut self,
        metadata: &Arc<FileMetaData>,
        row: u64,
        host: &mut Host<'_>,
    ) -> Result<u64> {
        if row > 0 {
            self.look_up(metadata, host)?;
            host.charge(FIND_PRICE.of(0, self.leaves.len()));
        }
        let of = |pages: &Pages| {
            let (units, rows) = pages.begun(row, self.rows)?;
            Some(scaled(units, row - rows.start, rows.end.saturating_sub(rows.start)))
        };
        Ok(self.pages.iter().flatten().filter_map(of).fold(0, u64::saturating_add))
    }

    /// The units that a call takes to begin columns, and an answer, before it has rows.
    pub(crate) fn opening(&self, output: &Output) -> u64 {
        self.opening.saturating_add(output.opening())
    }

    /// The units to begin a page of each leaf, about; `None` where nothing says how long they are.
    pub(crate) fn begin_units(
        &mut self,
        metadata: &Arc<FileMetaData>,
        host: &mut Host<'_>,
    ) -> Result<Option<u64>> {
        self.look_up(metadata, host)?;
        let of = |pages: &Pages| pages.units / u64_of(pages.index.pages.len()).max(1);
        let pages = self.pages.as_ref().filter(|pages| !pages.is_empty());
        Ok(pages.map(|pages| pages.iter().map(of).fold(0, u64::saturating_add)))
    }

    /// The units of pages that have begun before a row, and go on with it.
    fn begun(&self, row: u64) -> u64 {
        let of = |pages: &Pages| pages.begun(row, self.rows).map_or(0, |(units, _)| units);
        self.pages.iter().flatten().map(of).fold(0, u64::saturating_add)
    }
}

/// `of * part / whole`.
pub(crate) fn scaled(of: u64, part: u64, whole: u64) -> u64 {
    let scaled = u128::from(of) * u128::from(part) / u128::from(whole.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// The units of a chunk, about, by the price of its values and of bytes beside their codec.
fn units_of(chunk: &ColumnChunk, price: Price) -> u64 {
    let codec = match chunk.compression {
        Compression::Uncompressed | Compression::Unknown(_) => 0,
        Compression::Codec(Codec::Zstd) => ZSTD_PRICE,
        Compression::Codec(Codec::Gzip | Codec::Brotli) => SLOW_PRICE,
        Compression::Codec(_) => FAST_PRICE,
    };
    let price = Price { kib: price.kib + codec, ..price };
    price_of(price, chunk.uncompressed_bytes, chunk.values)
}

/// The units of a chunk's dictionary, about: as its pages, of which it has as many bytes as are before them.
fn dictionary_units(chunk: &ColumnChunk) -> u64 {
    let bytes = chunk.data_page_offset.saturating_sub(chunk.first_page_offset());
    scaled(units_of(chunk, VALUE_PRICE), bytes.min(chunk.compressed_bytes), chunk.compressed_bytes)
}

/// Bytes of a chunk's values as they are handed out, about.
fn bytes_of(chunk: &ColumnChunk, physical_type: PhysicalType) -> u64 {
    match (physical_type, physical_type.width()) {
        (PhysicalType::Boolean, _) => chunk.values / 8,
        (_, Some(width)) => chunk.values.saturating_mul(u64::try_from(width).unwrap_or(u64::MAX)),
        (_, None) => {
            let sizes = chunk.size_statistics.as_ref();
            let texts = sizes.and_then(|sizes| sizes.unencoded_byte_array_data_bytes);
            let texts = texts.unwrap_or(chunk.uncompressed_bytes);
            chunk.values.saturating_mul(TEXT_BYTES).saturating_add(texts)
        }
    }
}

#[cfg(test)]
mod tests {
    use marquetry_parquet::format::PageLocation;

    use super::*;
    use crate::request::Share;

    const ROWS: u64 = 10_000;

    /// Pages of so many rows, each of which takes so many units.
    fn pages(leaf: usize, page_rows: u32, units: u64) -> Pages {
        let count = ROWS.div_ceil(page_rows.into());
        let page = |at: u64| {
            let first_row = at * u64::from(page_rows);
            PageLocation { offset: 4 + first_row, compressed_bytes: page_rows, first_row }
        };
        let index = OffsetIndex { pages: (0..count).map(page).collect(), ..OffsetIndex::default() };
        Pages { leaf, index: Arc::new(index), units: units * count, bytes: count * u64::from(page_rows) }
    }

    #[test]
    fn a_call_ends_where_the_least_of_pages_has_begun() {
        let pages = vec![pages(0, 1000, 100_000), pages(1, 990, 10_000)];
        let leaves = vec![(0, 1_000_000), (1, 110_000)];
        let (values, bytes, read_units) = (ROWS, 8 * ROWS, 1_000_000);
        let page_rows = 1000;
        let ends = Ends {
            row_group: 0,
            rows: ROWS,
            read_units,
            values,
            texts: 0,
            bytes,
            opening: 0,
            leaves,
            pages: Some(pages),
            page_rows,
        };
        let mut object: &[u8] = &[];
        let mut host = Host::new(&mut object, Share::default());
        let mut best = |first: u64, from: u64, most: u64| ends.best((first, from), (most, 50_000), &mut host);
        // Where the costly pages begin, although others have then begun: 1,980 is where one of those begins.
        assert_eq!(best(0, 1, 2_500), 2_000);
        // There is none; or it is so near that the call would hardly have begun.
        assert_eq!(best(2_000, 2_400, 2_500), 2_500);
        assert_eq!(best(1_990, 1_991, 2_900), 2_900);
        assert_eq!(best(0, 1, ROWS), ROWS);
        // What was looked at is paid for: nothing for the last, the pages of two leaves before the others.
        assert!((1_000..4_000).contains(&host.work().units), "{} units", host.work().units);
        assert_eq!((ends.begun(2_000), ends.begun(2_001), ends.begun(ROWS - 1)), (10_000, 110_000, 110_000));
        assert_eq!((ends.rows_of(80), ends.rows_of(1), ends.rows_of(u64::MAX)), (10, 1, u64::MAX));
    }
}
