//! What the page index says of each page.

use std::collections::HashMap;
use std::sync::Arc;

use marquetry_base::{Error, ErrorKind, Result};
use marquetry_parquet::read::{ChunkIndex, PageIndexReader, ReadOptions};
use marquetry_tables::Cancel;
use marquetry_tables::files::ParquetFile;

use crate::describe::ColumnStatistics;

/// A page, as the page index describes it.
#[derive(Default)]
pub(super) struct IndexedPage {
    /// Its first row, counted from the file's first.
    pub(super) first_row: u64,
    pub(super) rows: Option<u64>,
    pub(super) nulls: Option<u64>,
    pub(super) min: Option<String>,
    pub(super) max: Option<String>,
}

/// The pages of a file by their offsets; what is wrong with its page index is given beside those that are described before it.
pub(super) fn pages(
    file: &ParquetFile,
    cancel: &Cancel,
) -> Result<(HashMap<u64, IndexedPage>, Option<Error>)> {
    let mut pages = HashMap::new();
    let options = ReadOptions { limits: file.limits(), ..ReadOptions::default() };
    let reader = PageIndexReader::new(ParquetFile::object(), Arc::clone(file.metadata()), &options);
    let read = reader.and_then(|reader| {
        file.run(reader, |index| {
            add(file, &index, &mut pages);
            cancel.check()
        })
    });
    match read {
        Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::Cancelled | ErrorKind::Internal) => {
            Err(error)
        }
        read => Ok((pages, read.err())),
    }
}

fn add(file: &ParquetFile, index: &ChunkIndex, pages: &mut HashMap<u64, IndexedPage>) {
    let metadata = &**file.metadata();
    let Some(group) = metadata.row_groups.get(index.row_group) else { return };
    let leaf = metadata.schema.leaves().get(index.leaf);
    let statistics = leaf.and_then(|leaf| ColumnStatistics::of(metadata, index.leaf, leaf));
    for (number, page) in index.offset_index.pages.iter().enumerate() {
        let known = statistics.zip(index.column_index.as_ref());
        let known = known.map(|(statistics, column)| (statistics, statistics.order.of_page(column, number)));
        let mut indexed = IndexedPage {
            first_row: group.first_row.saturating_add(page.first_row),
            rows: index.offset_index.rows(number, group.rows),
            ..IndexedPage::default()
        };
        if let Some((statistics, known)) = known {
            indexed.nulls = known.nulls;
            (indexed.min, indexed.max) = (statistics.text(known.min), statistics.text(known.max));
        }
        pages.insert(page.offset, indexed);
    }
}
