//! Row groups of an object as a file of their own, in pieces: nothing is decoded, and nothing written. What becomes of it is its client's
//! affair: a class reaches one object.

use std::ops::Range;
use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Error, Result, Segmented};
use marquetry_parquet::format::{FileMetaData, MAGIC};

use crate::answer::Answer;
use crate::cursor::Cursor;
use crate::host::Host;
use crate::moves::{append_positions, footer_of, positions};
use crate::parts::{Places, bytes_of, check, extras, has_dictionary, next_part, pages_of};
use crate::request::Request;

/// A piece of the file, from where the cursor says.
pub(crate) fn split(host: &mut Host<'_>, request: &Request<'_>) -> Result<Answer> {
    let (metadata, mark) = host.marked_footer()?;
    check(&metadata)?;
    let groups = groups_of(&metadata, request)?;
    let mut at = 0;
    if let Some(cursor) = request.cursor {
        cursor.check(mark)?;
        at = cursor.row;
    }
    let magic = u64_of(MAGIC.len());
    let mut parts = Vec::new();
    for group in metadata.row_groups.iter_from(groups.start).take(groups.end - groups.start) {
        for chunk in &group.columns {
            parts.push(pages_of(chunk, &metadata)?);
        }
    }
    parts.extend(extras(&metadata, groups.clone())?);
    let body = magic.saturating_add(bytes_of(&parts));
    let room = host.share().answer_bytes.max(1);
    let (mut data, mut is_done) = (Vec::new(), false);
    while data.len() < room && !is_done && (data.is_empty() || host.left() > 0) {
        let most = room - data.len();
        if at < magic {
            data.extend_from_slice(&MAGIC);
            at = magic;
        } else if let Some(part) = next_part(&parts, at - magic, most) {
            let bytes = host.read(&part)?;
            data.extend_from_slice(&bytes);
            at += u64_of(bytes.len());
        } else {
            let tail = tail(&metadata, groups.clone(), host)?;
            let from = usize::try_from(at - body).ok().filter(|from| *from <= tail.len());
            let from = from.ok_or_else(|| Error::misuse("a cursor to bytes that the file does not have"))?;
            let some = &tail[from..tail.len().min(from.saturating_add(most))];
            data.extend_from_slice(some);
            at += u64_of(some.len());
            is_done = from + some.len() == tail.len();
        }
    }
    let rows = metadata.row_groups.iter_from(groups.start).take(groups.end - groups.start);
    let rows = rows.map(|group| group.rows).sum();
    let cursor = (!is_done).then_some(Cursor { row_group: 0, row: at, mark });
    let row_groups = Some(u64_of(metadata.row_groups.len()));
    Ok(Answer { data: Some(data), cursor, rows, row_groups, ..Answer::default() })
}

fn groups_of(metadata: &FileMetaData, request: &Request<'_>) -> Result<Range<usize>> {
    let all = metadata.row_groups.len();
    let (start, end) = request.row_groups.unwrap_or((0, u64_of(all)));
    let (start, end) = (usize::try_from(start), usize::try_from(end));
    let (Ok(start), Ok(end)) = (start, end) else { return Err(Error::misuse("row groups of no object")) };
    if start > end || end > all {
        return Err(Error::misuse(format!("row groups {start} to {end} of an object that has {all}")));
    }
    Ok(start..end)
}

/// Where the pages are, and the footer.
fn tail(metadata: &Arc<FileMetaData>, groups: Range<usize>, host: &mut Host<'_>) -> Result<Vec<u8>> {
    let magic = u64_of(MAGIC.len());
    let mut made = FileMetaData::clone(metadata);
    made.row_groups = Segmented::default();
    let mut pages = magic;
    for group in metadata.row_groups.iter_from(groups.start).take(groups.end - groups.start) {
        for chunk in &group.columns {
            pages = pages.saturating_add(chunk.compressed_bytes);
        }
    }
    let mut places = Places::new(metadata, groups.clone(), pages);
    let base = pages.saturating_add(bytes_of(&extras(metadata, groups.clone())?));
    let mut positions = positions(host, metadata, groups.clone())?.into_iter().peekable();
    let (mut at, mut bytes, mut rows) = (magic, Vec::new(), 0_u64);
    for number in groups {
        let mut group = metadata.row_groups[number].clone();
        (group.file_offset, group.first_row) = (None, rows);
        group.ordinal = group.ordinal.and_then(|_| i16::try_from(made.row_groups.len()).ok());
        rows = rows.saturating_add(group.rows);
        for (leaf, chunk) in group.columns.iter_mut().enumerate() {
            let first = chunk.first_page_offset();
            let moved = |offset: u64| offset.checked_sub(first).map(|offset| offset + at);
            let is_wrong = || Error::corrupt("a page that is not in its column chunk");
            chunk.dictionary_page_offset = has_dictionary(chunk).then_some(at);
            chunk.data_page_offset = moved(chunk.data_page_offset.max(first)).ok_or_else(is_wrong)?;
            let index = positions.next_if(|(of, _)| *of == (number, leaf)).map(|(_, index)| index);
            places.set(chunk);
            match index {
                None => chunk.column_index = None,
                Some(mut index) => {
                    for page in index.pages.iter_mut() {
                        page.offset = moved(page.offset).ok_or_else(is_wrong)?;
                    }
                    append_positions(chunk, &index, &mut bytes, base)?;
                }
            }
            at = at.saturating_add(chunk.compressed_bytes);
        }
        made.row_groups.push(group);
    }
    made.rows = rows;
    bytes.extend_from_slice(&footer_of(&Arc::new(made), host)?);
    Ok(bytes)
}
