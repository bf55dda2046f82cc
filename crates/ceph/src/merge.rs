//! Rows that are added to an object: those of a Parquet file that comes with the request.
//!
//! ```text
//! before   pages, indexes of the object │ footer
//! after    pages, indexes of the object │ those of the file │ positions of its pages │ footer of both
//! ```
//!
//! Nothing that the object has is moved or decoded, and nothing of the file: only positions are others. All of it is one write, from the old
//! footer on, which an OSD carries out completely or not at all; so a reader finds the object as it was, or as it is.

use std::sync::Arc;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Error, Result};
use marquetry_parquet::format::{FileMetaData, MAGIC};

use crate::answer::Answer;
use crate::host::Host;
use crate::moves::{Moves, append_positions, footer_of, positions};
use crate::request::Request;

/// Adds the rows of the request's file.
pub(crate) fn merge(host: &mut Host<'_>, request: &Request<'_>) -> Result<Answer> {
    let mut file = request.file.ok_or_else(|| Error::misuse("no file whose rows are to be added"))?;
    if !file.starts_with(&MAGIC) {
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
    let mut positions = positions(&mut added, &more, 0..more.row_groups.len())?.into_iter().peekable();
    let before = metadata.rows;
    let all = Arc::make_mut(&mut metadata);
    for (number, group) in more.row_groups.iter().enumerate() {
        if group.rows == 0 {
            // Its chunks may have positions, of no pages.
            while positions.next_if(|((of, _), _)| *of == number).is_some() {}
            continue;
        }
        let mut group = moves.group(group)?;
        group.first_row += before;
        group.ordinal = group.ordinal.and_then(|_| i16::try_from(all.row_groups.len()).ok());
        for (leaf, chunk) in group.columns.iter_mut().enumerate() {
            if let Some((_, mut index)) = positions.next_if(|(of, _)| *of == (number, leaf)) {
                moves.index(&mut index)?;
                append_positions(chunk, &index, &mut bytes, moves.to)?;
            } else {
                // Nobody finds bounds of pages of which nothing says where they are.
                chunk.column_index = None;
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

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Int64Array, RecordBatch};
    use marquetry::tables::parquet::ParquetOptions;
    use marquetry_arrow::FromArrow;
    use marquetry_base::Frame;
    use marquetry_parquet::format::OffsetIndex;

    use super::*;
    use crate::RadosObject;
    use crate::request::{REQUEST, RequestField, Share};

    struct InMemory(Vec<u8>);

    impl RadosObject for InMemory {
        fn length(&mut self) -> Result<u64> {
            self.0.as_slice().length()
        }

        fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<()> {
            self.0.as_slice().read(offset, into)
        }

        fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
            self.0.truncate(usize_of(offset).unwrap());
            self.0.extend_from_slice(bytes);
            Ok(())
        }
    }

    fn with_footer<T>(object: &mut InMemory, work: impl FnOnce(&mut Host<'_>, Arc<FileMetaData>) -> T) -> T {
        let mut host = Host::new(object, Share::default());
        let metadata = host.whole_footer().unwrap();
        work(&mut host, metadata)
    }

    #[test]
    fn positions_of_pages_are_kept_after_a_row_group_without_rows() {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..2000));
        let batch = RecordBatch::try_from_iter([("id", ids)]).unwrap();
        let mut options = ParquetOptions::default();
        (options.write.row_group_rows, options.write.page_rows) = (1000, 100);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ids.parquet");
        let schema = FromArrow::new(&batch.schema()).unwrap().schema().as_ref().clone();
        let mut writer = marquetry::Writer::with(&path, schema, options).unwrap();
        writer.write_arrow(&batch).unwrap();
        writer.finish().unwrap();
        let file = std::fs::read(path).unwrap();

        // The same, after an empty row group whose chunk has positions of no pages.
        let with_empty = with_footer(&mut InMemory(file.clone()), |host, mut metadata| {
            let empty = OffsetIndex::default().to_bytes();
            let end = metadata.footer_start;
            let all = Arc::make_mut(&mut metadata);
            let mut group = all.row_groups[0].clone();
            group.rows = 0;
            for chunk in group.columns.iter_mut() {
                (chunk.values, chunk.column_index) = (0, None);
                chunk.offset_index = Some((end, u32::try_from(empty.len()).unwrap()));
            }
            all.row_groups = std::iter::once(group).chain(all.row_groups.iter().cloned()).collect();
            let footer = footer_of(&metadata, host).unwrap();
            [&file[..usize_of(end).unwrap()], &empty, &footer].concat()
        });
        let mut object = InMemory(file);
        let mut frame = Frame::new(REQUEST);
        frame.push(RequestField::File as u16, &with_empty);
        crate::change(crate::Method::Merge, &mut object, &frame.into_bytes()).unwrap();
        with_footer(&mut object, |host, metadata| {
            assert_eq!((metadata.rows, metadata.row_groups.len()), (4000, 4));
            let positions = positions(host, &metadata, 0..4).unwrap();
            let pages: Vec<usize> = positions.iter().map(|(_, index)| index.pages.len()).collect();
            assert_eq!(pages, [10; 4]);
        });
    }
}
