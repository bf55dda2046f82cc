//! Parts of a file that come to another place, and the footer that says where they are then.

use std::ops::Range;
use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Error, Machine, Result, Step};
use marquetry_parquet::format::{ColumnChunk, FileMetaData, OffsetIndex, PAGE_BLOOM_KEY, RowGroup};
use marquetry_parquet::read::PageIndexReader;
use marquetry_parquet::write::FooterWriter;

use crate::host::{Host, OBJECT};

/// Where the pages of each chunk of some row groups are, as far as it has an index: by row group and leaf, in order.
pub(crate) fn positions(
    host: &mut Host<'_>,
    metadata: &Arc<FileMetaData>,
    groups: Range<usize>,
) -> Result<Vec<((usize, usize), OffsetIndex)>> {
    let mut options = Host::read_options();
    options.row_groups = Some(groups);
    let mut reader = PageIndexReader::new(OBJECT, Arc::clone(metadata), &options)?.without_bounds();
    let mut positions = Vec::new();
    while let Some(index) = host.finish(&mut reader)? {
        positions.push(((index.row_group, index.leaf), index.offset_index));
    }
    Ok(positions)
}

/// Writes where a chunk's pages are: after `bytes`, which begin at `base` of the object.
pub(crate) fn append_positions(
    chunk: &mut ColumnChunk,
    index: &OffsetIndex,
    bytes: &mut Vec<u8>,
    base: u64,
) -> Result<()> {
    let written = index.to_bytes();
    let length = u32::try_from(written.len()).map_err(|_| Error::too_large("a page index"))?;
    chunk.offset_index = Some((base + u64_of(bytes.len()), length));
    bytes.extend_from_slice(&written);
    Ok(())
}

/// Bytes that are moved.
pub(crate) struct Moves {
    pub(crate) from: Range<u64>,
    pub(crate) to: u64,
}

impl Moves {
    /// Where bytes are then.
    pub(crate) fn moved(&self, offset: u64, length: u64) -> Result<u64> {
        let end = offset.checked_add(length).filter(|end| offset >= self.from.start && *end <= self.from.end);
        end.map(|_| offset - self.from.start + self.to)
            .ok_or_else(|| Error::corrupt("a part of the file is not in the file"))
    }

    /// Where pages are then.
    pub(crate) fn index(&self, index: &mut OffsetIndex) -> Result<()> {
        for page in index.pages.iter_mut() {
            page.offset = self.moved(page.offset, page.compressed_bytes.into())?;
        }
        Ok(())
    }

    /// A row group whose chunks are moved: without the positions of their pages, which are to be written again.
    pub(crate) fn group(&self, group: &RowGroup) -> Result<RowGroup> {
        let mut group = group.clone();
        group.file_offset = None;
        for chunk in group.columns.iter_mut() {
            self.chunk(chunk)?;
        }
        Ok(group)
    }

    fn chunk(&self, chunk: &mut ColumnChunk) -> Result<()> {
        if chunk.file_path.is_some() || chunk.encrypted {
            return Err(Error::unsupported("chunks that are in other files, or encrypted, are not merged"));
        }
        let first = chunk.first_page_offset();
        self.moved(first, chunk.compressed_bytes)?;
        // Some writers set one that means that there is none.
        chunk.dictionary_page_offset =
            chunk.dictionary_page_offset.filter(|offset| *offset == first && first < chunk.data_page_offset);
        let pages = chunk.dictionary_page_offset.map(|offset| self.moved(offset, 0)).transpose()?;
        chunk.dictionary_page_offset = pages;
        chunk.data_page_offset = self.moved(chunk.data_page_offset, 0)?;
        if let Some((offset, length)) = &mut chunk.bloom_filter {
            *offset = self.moved(*offset, length.unwrap_or(0).into())?;
        }
        if let Some((offset, length)) = &mut chunk.column_index {
            *offset = self.moved(*offset, (*length).into())?;
        }
        if chunk.offset_index.is_none() {
            chunk.column_index = None;
        }
        // It has positions of its own: see `merge`. Of pages' Bloom filters, the announcement is bound to what the chunk was.
        chunk.offset_index = None;
        chunk.key_values.retain(|pair| pair.key != PAGE_BLOOM_KEY);
        Ok(())
    }
}

/// The schema, row groups and all else of a file whose bytes have been moved; and what follows them: where its pages are, and its footer.
pub(crate) fn moved_tail(
    host: &mut Host<'_>,
    metadata: &Arc<FileMetaData>,
    moves: &Moves,
) -> Result<Vec<u8>> {
    let mut positions = positions(host, metadata, 0..metadata.row_groups.len())?.into_iter().peekable();
    let base = moves.to + (moves.from.end - moves.from.start);
    let mut bytes = Vec::new();
    let mut all = FileMetaData::clone(metadata);
    for (number, group) in all.row_groups.iter_mut().enumerate() {
        *group = moves.group(group)?;
        for (leaf, chunk) in group.columns.iter_mut().enumerate() {
            if let Some((_, mut index)) = positions.next_if(|(of, _)| *of == (number, leaf)) {
                moves.index(&mut index)?;
                append_positions(chunk, &index, &mut bytes, base)?;
            }
        }
    }
    bytes.extend_from_slice(&footer_of(&Arc::new(all), host)?);
    Ok(bytes)
}

/// The bytes of a footer, with its length and the magic.
pub(crate) fn footer_of(metadata: &Arc<FileMetaData>, host: &mut Host<'_>) -> Result<Vec<u8>> {
    let mut writer = FooterWriter::new(OBJECT, Arc::clone(metadata))?;
    let mut footer = Vec::new();
    loop {
        let mut budget = Budget::new(Budget::DEFAULT_UNITS);
        let step = writer.step(&mut budget);
        host.charge(budget.spent());
        match step? {
            Step::Append(_, bytes) => footer.extend_from_slice(&bytes),
            Step::Yield => {}
            Step::Done => return Ok(footer),
            Step::Ready(()) | Step::Need(_) => return Err(Error::internal("a writer that reads")),
        }
    }
}
