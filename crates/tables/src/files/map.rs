//! What every byte of a Parquet file is for.

use std::ops::Range;

use marquetry_base::cast::u64_of;
use marquetry_base::{Error, ErrorKind, Result};
use marquetry_parquet::format::{ColumnChunk, Encoding, PageHeader, PageKind};
use marquetry_parquet::read::{BloomProbe, PageBloom, PageInfo, PageScanner};

use super::parquet::ParquetFile;
use crate::Cancel;

/// Bytes of the magic at a file's start.
const MAGIC_BYTES: u64 = 4;
/// Bytes after the footer: its length and the magic.
const TAIL_BYTES: u64 = 8;
/// Faults that are kept; of a file that is broken all through, the first say enough.
const FAULTS_MAX: usize = 20;

/// How a file is mapped.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MapOptions {
    /// Pages to list at most. Column chunks after these are listed as one extent each. 0: no page header is read.
    pub pages_max: u64,
    /// Cancels reading the pages' headers.
    pub cancel: Cancel,
}

impl Default for MapOptions {
    fn default() -> MapOptions {
        MapOptions { pages_max: u64::MAX, cancel: Cancel::new() }
    }
}

/// What every byte of a Parquet file is for: its pages, indexes, filters, footer, and the gaps between them.
///
/// The extents are in the order of the file, without holes and overlaps: their bytes add up to the file's length, whatever its footer
/// claims.
///
/// ```no_run
/// use marquetry_base::Limits;
/// use marquetry_tables::files::{ExtentKind, FileMap, MapOptions, ParquetFile};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let trips = ParquetFile::open("trips.parquet".as_ref(), Limits::default())?;
/// let map = FileMap::of(&trips, &MapOptions::default())?;
/// let gaps = map.extents.iter().filter(|extent| extent.kind == ExtentKind::Gap);
/// println!("{} bytes of no use", gaps.map(|extent| extent.bytes).sum::<u64>());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct FileMap {
    /// The parts of the file.
    pub extents: Vec<Extent>,
    /// Column chunks whose pages are not listed, because there are more than [`MapOptions::pages_max`].
    pub chunks_unlisted: u64,
    /// Bytes that two parts claim; the one that starts first has them here.
    pub overlapping_bytes: u64,
    /// What could not be read, such as a page's header that is corrupt: the first of them. Their bytes are listed as
    /// [`ExtentKind::Pages`] or [`ExtentKind::BloomFilter`].
    pub faults: Vec<Error>,
}

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Extent {
    /// Where it starts.
    pub offset: u64,
    /// Its bytes, at least 1.
    pub bytes: u64,
    /// The row group and the leaf that it belongs to.
    pub chunk: Option<(usize, usize)>,
    /// What it is.
    pub kind: ExtentKind,
}

/// What a part of a file is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExtentKind {
    /// The magic at the start.
    Magic,
    /// A page with its header.
    Page(MappedPage),
    /// All pages of a column chunk, or those that could not be listed.
    Pages,
    /// The bounds of a column chunk's pages.
    ColumnIndex,
    /// The positions of a column chunk's pages.
    OffsetIndex,
    /// A column chunk's Bloom filter, with its header; or those of its pages.
    BloomFilter,
    /// The footer.
    Footer,
    /// The footer's length and the magic at the end.
    Tail,
    /// Bytes that nothing in the footer refers to: padding, or what a writer left.
    Gap,
}

/// A page, as its header describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MappedPage {
    /// Its kind.
    pub kind: MappedPageKind,
    /// Bytes of its header.
    pub header_bytes: u32,
    /// Bytes before compression, without the header.
    pub uncompressed_bytes: u32,
    /// Values, nulls included; of a dictionary, its entries.
    pub values: u32,
    /// Nulls, if the header counts them.
    pub nulls: Option<u64>,
    /// The values' encoding. `None` for other pages.
    pub encoding: Option<Encoding>,
    /// Whether it has a CRC.
    pub has_crc: bool,
}

/// The kind of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MappedPageKind {
    /// `DATA_PAGE`.
    Data,
    /// `DATA_PAGE_V2`.
    DataV2,
    /// `DICTIONARY_PAGE`.
    Dictionary,
    /// A type that readers skip.
    Other(i32),
}

impl FileMap {
    /// Maps a file. It reads the headers of the pages and of those Bloom filters whose length the footer does not say.
    ///
    /// # Errors
    ///
    /// `Io` if the file cannot be read, or was changed; `Cancelled`. Corrupt headers are among the [`faults`](FileMap::faults).
    pub fn of(file: &ParquetFile, options: &MapOptions) -> Result<FileMap> {
        let mut map = FileMap::default();
        let metadata = file.metadata();
        let mut found = vec![
            Extent { offset: 0, bytes: MAGIC_BYTES, chunk: None, kind: ExtentKind::Magic },
            Extent {
                offset: metadata.footer_start,
                bytes: metadata.footer_bytes,
                chunk: None,
                kind: ExtentKind::Footer,
            },
            Extent {
                offset: file.bytes().saturating_sub(TAIL_BYTES),
                bytes: TAIL_BYTES,
                chunk: None,
                kind: ExtentKind::Tail,
            },
        ];
        let mut pages_left = options.pages_max;
        for (row_group, group) in metadata.row_groups.iter().enumerate() {
            for (leaf, chunk) in group.columns.iter().enumerate() {
                // Data in another file has no place in this one.
                if chunk.file_path.is_some() {
                    continue;
                }
                options.cancel.check()?;
                let place = (row_group, leaf);
                map.add_pages(file, place, chunk, &mut pages_left, &mut found)?;
                map.add_filter(file, place, chunk, &mut found)?;
                let mut add = |at: Option<(u64, u32)>, kind| {
                    if let Some((offset, bytes)) = at {
                        found.push(Extent { offset, bytes: bytes.into(), chunk: Some(place), kind });
                    }
                };
                add(chunk.column_index, ExtentKind::ColumnIndex);
                add(chunk.offset_index, ExtentKind::OffsetIndex);
            }
        }
        map.lay(found, file.bytes());
        Ok(map)
    }

    /// The pages of a chunk, each an extent; or all of them as one, where they cannot be or need not be listed.
    fn add_pages(
        &mut self,
        file: &ParquetFile,
        place: (usize, usize),
        chunk: &ColumnChunk,
        pages_left: &mut u64,
        found: &mut Vec<Extent>,
    ) -> Result<()> {
        let start = chunk.first_page_offset();
        let end = start.saturating_add(chunk.compressed_bytes);
        let mut at = start;
        let first = found.len();
        let listed = if *pages_left == 0 || chunk.encrypted {
            self.chunks_unlisted += u64::from(!chunk.encrypted && chunk.compressed_bytes > 0);
            Ok(())
        } else {
            PageScanner::new(ParquetFile::object(), file.metadata(), place.0, place.1, file.limits())
                .and_then(|scanner| {
                    file.run(scanner, |page| {
                        let bytes = u64::from(page.header_bytes) + u64::from(page.header.compressed_bytes);
                        let kind = ExtentKind::Page(MappedPage::of(&page));
                        found.push(Extent { offset: page.offset, bytes, chunk: Some(place), kind });
                        at = page.offset.saturating_add(bytes);
                        if *pages_left < u64_of(found.len() - first) {
                            return Err(Error::cancelled());
                        }
                        Ok(())
                    })
                })
        };
        let left = pages_left.checked_sub(u64_of(found.len() - first));
        match (left, listed) {
            (Some(left), Ok(())) => *pages_left = left,
            (Some(left), Err(error)) => {
                *pages_left = left;
                self.fault(error)?;
            }
            // A chunk is listed with all of its pages or with none.
            (None, _) => {
                found.truncate(first);
                (*pages_left, at) = (0, start);
                self.chunks_unlisted += 1;
            }
        }
        if at < end {
            found.push(Extent { offset: at, bytes: end - at, chunk: Some(place), kind: ExtentKind::Pages });
        }
        Ok(())
    }

    fn add_filter(
        &mut self,
        file: &ParquetFile,
        place: (usize, usize),
        chunk: &ColumnChunk,
        found: &mut Vec<Extent>,
    ) -> Result<()> {
        if let Some(of_pages) = PageBloom::of(file.metadata(), place.0, place.1) {
            let Range { start: offset, end } = of_pages.range();
            let kind = ExtentKind::BloomFilter;
            found.push(Extent { offset, bytes: end - offset, chunk: Some(place), kind });
        }
        let Some((offset, bytes)) = chunk.bloom_filter else { return Ok(()) };
        let mut add = |bytes| {
            found.push(Extent { offset, bytes, chunk: Some(place), kind: ExtentKind::BloomFilter });
        };
        if let Some(bytes) = bytes {
            add(bytes.into());
            return Ok(());
        }
        let probed = BloomProbe::new(ParquetFile::object(), file.metadata(), place.0, place.1, Vec::new())
            .and_then(|mut probe| {
                file.run(&mut probe, |_| Ok::<(), Error>(()))?;
                Ok(probe.range())
            });
        match probed {
            Ok(range) => add(range.map_or(0, |range| range.end - range.start)),
            Err(error) => self.fault(error)?,
        }
        Ok(())
    }

    /// Keeps a fault of the data; others end the map.
    fn fault(&mut self, error: Error) -> Result<()> {
        if matches!(error.kind(), ErrorKind::Io | ErrorKind::Cancelled | ErrorKind::Internal) {
            return Err(error);
        }
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(error);
        }
        Ok(())
    }

    /// Puts extents side by side: gaps are filled, and what overlaps is cut.
    fn lay(&mut self, mut found: Vec<Extent>, length: u64) {
        found.sort_by_key(|extent| extent.offset);
        let mut at = 0;
        let mut extents: Vec<Extent> = Vec::with_capacity(found.len());
        for mut extent in found {
            let end = extent.offset.saturating_add(extent.bytes);
            let (start, kept_end) = (extent.offset.max(at), end.min(length));
            let kept = kept_end.saturating_sub(start);
            self.overlapping_bytes = self.overlapping_bytes.saturating_add(extent.bytes - kept);
            if kept == 0 {
                continue;
            }
            if start > at {
                extents.push(gap(at, start));
            }
            (extent.offset, extent.bytes) = (start, kept);
            extents.push(extent);
            at = kept_end;
        }
        if at < length {
            extents.push(gap(at, length));
        }
        self.extents = extents;
    }
}

fn gap(start: u64, end: u64) -> Extent {
    Extent { offset: start, bytes: end - start, chunk: None, kind: ExtentKind::Gap }
}

impl MappedPage {
    fn of(page: &PageInfo) -> MappedPage {
        let header: &PageHeader = &page.header;
        let nulls_of = |statistics: &Option<Box<marquetry_parquet::format::Statistics>>| {
            statistics.as_ref().and_then(|known| known.null_count)
        };
        let (kind, nulls, encoding) = match &header.kind {
            PageKind::Data(data) => (MappedPageKind::Data, nulls_of(&data.statistics), Some(data.encoding)),
            PageKind::DataV2(data) => {
                (MappedPageKind::DataV2, Some(u64::from(data.nulls)), Some(data.encoding))
            }
            PageKind::Dictionary(dictionary) => (MappedPageKind::Dictionary, None, Some(dictionary.encoding)),
            PageKind::Other(number) => (MappedPageKind::Other(*number), None, None),
        };
        MappedPage {
            kind,
            header_bytes: page.header_bytes,
            uncompressed_bytes: header.uncompressed_bytes,
            values: header.values(),
            nulls,
            encoding,
            has_crc: header.crc.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(offset: u64, bytes: u64, kind: ExtentKind) -> Extent {
        Extent { offset, bytes, chunk: None, kind }
    }

    /// Whatever a footer claims, every byte is there once.
    #[test]
    fn extents_are_side_by_side() {
        use ExtentKind::{ColumnIndex, Footer, Gap, Magic, OffsetIndex, Pages};
        let lay = |found: Vec<Extent>, length| {
            let mut map = FileMap::default();
            map.lay(found, length);
            let extents: Vec<_> =
                map.extents.iter().map(|it| (it.offset, it.bytes, it.kind.clone())).collect();
            (extents, map.overlapping_bytes)
        };
        let found = vec![
            extent(90, 10, Footer),
            extent(0, 4, Magic),
            extent(20, 30, Pages),
            // Half in the pages, all in the pages, of no bytes, in the footer and behind the end, and far behind it.
            extent(40, 20, ColumnIndex),
            extent(25, 5, OffsetIndex),
            extent(70, 0, OffsetIndex),
            extent(95, 15, OffsetIndex),
            extent(u64::MAX, 8, Pages),
        ];
        let expected = vec![
            (0, 4, Magic),
            (4, 16, Gap),
            (20, 30, Pages),
            (50, 10, ColumnIndex),
            (60, 30, Gap),
            (90, 10, Footer),
        ];
        assert_eq!(lay(found, 100), (expected, 10 + 5 + 15 + 8));
        assert_eq!(lay(Vec::new(), 7), (vec![(0, 7, Gap)], 0));
        assert_eq!(lay(vec![extent(0, 4, Magic)], 0), (Vec::new(), 4));
    }
}
