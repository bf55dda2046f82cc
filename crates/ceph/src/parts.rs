//! Where the parts of an object are that a copy of its pages has: pages, Bloom filters, and bounds of pages.

use std::ops::Range;

use marquetry_base::cast::u64_of;
use marquetry_base::{Error, Result};
use marquetry_parquet::format::{ColumnChunk, FileMetaData, PAGE_BLOOM_KEY};

/// Where a chunk's pages are.
pub(crate) fn pages_of(chunk: &ColumnChunk, metadata: &FileMetaData) -> Result<Range<u64>> {
    let start = chunk.first_page_offset();
    let end = start.checked_add(chunk.compressed_bytes).filter(|end| *end <= metadata.footer_start);
    end.map(|end| start..end).ok_or_else(|| Error::corrupt("a column chunk that is not in the object"))
}

/// Whether the first page of a chunk is its dictionary, and the footer says so. Some writers set an offset that means that there is none.
pub(crate) fn has_dictionary(chunk: &ColumnChunk) -> bool {
    let first = chunk.first_page_offset();
    chunk.dictionary_page_offset == Some(first) && first < chunk.data_page_offset
}

/// Checks that copies of an object's chunks can be written.
pub(crate) fn check(metadata: &FileMetaData) -> Result<()> {
    let is_elsewhere = |chunk: &ColumnChunk| chunk.file_path.is_some() || chunk.encrypted;
    let mut chunks = metadata.row_groups.iter().flat_map(|group| group.columns.iter());
    if metadata.encryption.is_some() || chunks.any(is_elsewhere) {
        return Err(Error::unsupported("chunks that are in other files, or encrypted"));
    }
    Ok(())
}

/// Where the Bloom filters are of chunks of some row groups, and then the bounds of their pages, in order.
pub(crate) fn extras(metadata: &FileMetaData, groups: Range<usize>) -> Result<Vec<Range<u64>>> {
    let chunks = || {
        let groups = metadata.row_groups.iter_from(groups.start).take(groups.end - groups.start);
        groups.flat_map(|group| group.columns.iter())
    };
    let blooms = chunks().filter_map(bloom_of);
    let bounds = chunks().filter_map(bounds_of);
    let range = |(offset, length): (u64, u32)| {
        let end = offset.checked_add(length.into()).filter(|end| *end <= metadata.footer_start);
        end.map(|end| offset..end).ok_or_else(|| Error::corrupt("an index that is not in the object"))
    };
    blooms.chain(bounds).map(range).collect()
}

/// A chunk's Bloom filter, if it is known how long it is.
fn bloom_of(chunk: &ColumnChunk) -> Option<(u64, u32)> {
    chunk.bloom_filter.and_then(|(offset, length)| Some((offset, length?)))
}

/// The bounds of a chunk's pages, which nobody finds if it is not known where the pages are.
fn bounds_of(chunk: &ColumnChunk) -> Option<(u64, u32)> {
    chunk.column_index.filter(|_| chunk.offset_index.is_some())
}

/// Where the next Bloom filter and the next bounds go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places {
    bloom: u64,
    bounds: u64,
}

impl Places {
    /// All of them are copied to `start`, in the order of [`extras`].
    pub(crate) fn new(metadata: &FileMetaData, groups: Range<usize>, start: u64) -> Places {
        let groups = metadata.row_groups.iter_from(groups.start).take(groups.end - groups.start);
        let chunks = groups.flat_map(|group| group.columns.iter());
        let blooms: u64 = chunks.filter_map(bloom_of).map(|(_, length)| u64::from(length)).sum();
        Places { bloom: start, bounds: start.saturating_add(blooms) }
    }

    /// Says of a chunk where its own are. Where its pages are is to be written again.
    pub(crate) fn set(&mut self, chunk: &mut ColumnChunk) {
        let place = |at: &mut u64, length: u32| {
            let here = *at;
            *at = at.saturating_add(length.into());
            here
        };
        chunk.column_index = bounds_of(chunk).map(|(_, length)| (place(&mut self.bounds, length), length));
        chunk.bloom_filter =
            bloom_of(chunk).map(|(_, length)| (place(&mut self.bloom, length), Some(length)));
        chunk.offset_index = None;
        // Of pages' Bloom filters, the announcement is bound to what the chunk was.
        chunk.key_values.retain(|pair| pair.key != PAGE_BLOOM_KEY);
    }
}

/// The bytes of ranges.
pub(crate) fn bytes_of(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().fold(0, |all, range| all.saturating_add(range.end - range.start))
}

/// The part of some ranges, one after the other, that begins after `skipped` of their bytes: of one range, and at most `most` bytes.
pub(crate) fn next_part(ranges: &[Range<u64>], mut skipped: u64, most: usize) -> Option<Range<u64>> {
    for range in ranges {
        let length = range.end - range.start;
        if skipped < length {
            let start = range.start + skipped;
            return Some(start..range.end.min(start.saturating_add(u64_of(most.max(1)))));
        }
        skipped -= length;
    }
    None
}
