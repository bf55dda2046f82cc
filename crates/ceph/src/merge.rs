//! Rows that are added to an object: those of a Parquet file that comes with the request.
//!
//! ```text
//! before   pages, indexes of the object │ footer
//! after    pages, indexes of the object │ those of the file │ positions of its pages │ footer of both
//! ```
//!
//! Nothing that the object has is moved or decoded, and nothing of the file: only positions are others. All of it is one write, from the old
//! footer on, which an OSD carries out completely or not at all; so a reader finds the object as it was, or as it is.

use std::ops::Range;
use std::sync::Arc;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Budget, Error, Machine, Result, Step};
use marquetry_parquet::format::{ColumnChunk, FileMetaData, OffsetIndex, PAGE_BLOOM_KEY, RowGroup};
use marquetry_parquet::read::PageIndexReader;
use marquetry_parquet::write::FooterWriter;

use crate::answer::Answer;
use crate::host::{Host, OBJECT};
use crate::request::Request;

/// Bytes before a file's first page.
const MAGIC: &[u8; 4] = b"PAR1";

/// Adds the rows of the request's file.
pub(crate) fn merge(host: &mut Host<'_>, request: &Request<'_>) -> Result<Answer> {
    let mut file = request.file.ok_or_else(|| Error::misuse("no file whose rows are to be added"))?;
    if !file.starts_with(MAGIC) {
        return Err(Error::corrupt("what is to be added is not a Parquet file"));
    }
    let whole = file;
    let mut added = Host::new(&mut file, request.share);
    let more = added.whole_footer()?;
    let mut metadata = host.whole_footer()?;
    check(&metadata, &more)?;
    let body = MAGIC.len()..usize_of(more.footer_start).unwrap_or(usize::MAX);
    let body = whole.get(body).ok_or_else(|| Error::corrupt("a file that is shorter than it says"))?;

    let moves = Moves { from: u64_of(MAGIC.len())..more.footer_start, to: metadata.footer_start };
    let mut bytes = body.to_vec();
    let mut positions = positions(&mut added, &more)?.into_iter().peekable();
    let before = metadata.rows;
    let all = Arc::make_mut(&mut metadata);
    for (number, group) in more.row_groups.iter().enumerate().filter(|(_, group)| group.rows > 0) {
        let mut group = moves.group(group)?;
        group.first_row += before;
        group.ordinal = group.ordinal.and_then(|_| i16::try_from(all.row_groups.len()).ok());
        for (leaf, chunk) in group.columns.iter_mut().enumerate() {
            if let Some((_, mut index)) = positions.next_if(|(of, _)| *of == (number, leaf)) {
                for page in index.pages.iter_mut() {
                    page.offset = moves.moved(page.offset, page.compressed_bytes.into())?;
                }
                let written = index.to_bytes();
                let length = u32::try_from(written.len()).map_err(|_| Error::too_large("a page index"))?;
                chunk.offset_index = Some((moves.to + u64_of(bytes.len()), length));
                bytes.extend_from_slice(&written);
            }
        }
        all.row_groups.push(group);
    }
    all.rows = all.rows.checked_add(more.rows).ok_or_else(|| Error::corrupt("more rows than there are"))?;
    host.charge(added.work().units);

    let (length, rows) = (all.file_bytes(), all.rows);
    let footer = footer_of(&metadata, host)?;
    // An object cannot be made shorter: of an old footer that has more than we know, nothing is left behind the new one.
    let end = moves.to + u64_of(bytes.len() + footer.len());
    let padding = usize_of(length.saturating_sub(end)).unwrap_or(0);
    bytes.resize(bytes.len() + padding, 0);
    bytes.extend_from_slice(&footer);
    host.write(moves.to, &bytes)?;
    Ok(Answer { rows, ..Answer::default() })
}

/// Checks that rows of both can be in one file.
fn check(metadata: &FileMetaData, more: &FileMetaData) -> Result<()> {
    if metadata.schema != more.schema {
        return Err(Error::misuse("the columns of the file are not those of the object"));
    }
    if metadata.encryption.is_some() || more.encryption.is_some() {
        return Err(Error::unsupported("encrypted files are not merged"));
    }
    // Bounds would mean something else than they did.
    if metadata.column_orders != more.column_orders {
        return Err(Error::unsupported("bounds of values are ordered in another way in the file"));
    }
    Ok(())
}

/// Where the pages of each chunk are that has an index, by row group and leaf, in order.
fn positions(added: &mut Host<'_>, more: &Arc<FileMetaData>) -> Result<Vec<((usize, usize), OffsetIndex)>> {
    let options = Host::read_options();
    let mut reader = PageIndexReader::new(OBJECT, Arc::clone(more), &options)?.without_bounds();
    let mut positions = Vec::new();
    while let Some(index) = added.finish(&mut reader)? {
        positions.push(((index.row_group, index.leaf), index.offset_index));
    }
    Ok(positions)
}

/// Bytes that are moved.
struct Moves {
    from: Range<u64>,
    to: u64,
}

impl Moves {
    /// Where bytes are then.
    fn moved(&self, offset: u64, length: u64) -> Result<u64> {
        let end = offset.checked_add(length).filter(|end| offset >= self.from.start && *end <= self.from.end);
        end.map(|_| offset - self.from.start + self.to)
            .ok_or_else(|| Error::corrupt("a part of the file is not in the file"))
    }

    fn group(&self, group: &RowGroup) -> Result<RowGroup> {
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

/// The bytes of a footer, with its length and the magic.
fn footer_of(metadata: &Arc<FileMetaData>, host: &mut Host<'_>) -> Result<Vec<u8>> {
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
