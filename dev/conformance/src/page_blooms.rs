//! Bloom filters of pages, held against the values of their pages.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Bytes, Error, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_parquet::batch::{Layout, RowSelection};
use marquetry_parquet::bloom;
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::read::{BatchReader, ChunkIndex, PageBloom, PageBloomProbe, PageSet, ReadOptions};

use crate::canonical::{self, FILE, with_bytes};
use crate::hostile::{self, Manner, Random};

/// The different values of some rows of a column chunk, as PLAIN has them, without lengths.
///
/// # Errors
///
/// The reader's.
pub fn values(
    bytes: &Bytes,
    metadata: &Arc<FileMetaData>,
    (row_group, leaf): (usize, usize),
    rows: Range<u64>,
) -> Result<BTreeSet<Vec<u8>>> {
    let options = ReadOptions {
        row_groups: Some(row_group..row_group + 1),
        leaves: Some(vec![leaf]),
        layout: Layout::Dense,
        ..ReadOptions::default()
    };
    let codecs = Arc::new(StandardCodecs::default());
    let mut reader = BatchReader::new(FILE, Arc::clone(metadata), codecs, options)?;
    reader.select(row_group, RowSelection::of(rows)?)?;
    let mut all = BTreeSet::new();
    canonical::read(&mut reader, bytes, Manner::KIND, |batch| {
        let values = &batch.columns[0].values;
        (0..values.len()).for_each(|index| {
            with_bytes(values, index, |value| {
                all.insert(value.to_vec());
            });
        });
    })?;
    Ok(all)
}

/// What the filters say of values: which pages may have each; `None` where they are not what was announced.
///
/// # Errors
///
/// The probe's.
pub fn probe<'a>(
    bytes: &Bytes,
    bloom: PageBloom,
    values: impl IntoIterator<Item = &'a [u8]>,
    manner: Manner,
) -> Result<Vec<Option<PageSet>>> {
    let hashes: Vec<u64> = values.into_iter().map(bloom::hash).collect();
    let asked = hashes.len();
    let mut probe = PageBloomProbe::new(FILE, bloom, hashes);
    let mut found = Vec::new();
    hostile::run(&mut probe, FILE, bytes, manner, |pages| {
        found.push(pages);
        Ok(())
    })?;
    assert_eq!(found.len(), asked, "a product for each hash");
    Ok(found)
}

/// What was found out about a chunk's filters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// The row group and the leaf.
    pub chunk: (usize, usize),
    /// The filters.
    pub bloom: PageBloom,
    /// The different values of each page.
    pub values: Vec<usize>,
    /// How often a page was said to have a value that it does not have, and how often that was asked.
    pub false_ones: usize,
    /// See `false_ones`.
    pub tried: usize,
}

/// The rows of each page of a chunk.
pub fn pages_of(index: &ChunkIndex, group_rows: u64) -> Vec<Range<u64>> {
    let pages = &index.offset_index.pages;
    let first = |page: usize| pages.get(page).map_or(group_rows, |page| page.first_row);
    (0..pages.len()).map(|page| first(page)..first(page + 1)).collect()
}

/// Checks the page filters of all chunks that have some: that there are as many as pages, and that each finds the values
/// of its page.
///
/// # Errors
///
/// Where one does not; the reader's and the probe's.
pub fn check(bytes: &Bytes, metadata: &Arc<FileMetaData>, manner: Manner) -> Result<Vec<Checked>> {
    let mut checked = Vec::new();
    let mut random = Random(4711);
    for index in canonical::indexes(bytes, metadata)? {
        let chunk = (index.row_group, index.leaf);
        let Some(bloom) = PageBloom::of(metadata, chunk.0, chunk.1) else { continue };
        let wrong = |what: String| {
            Error::corrupt(what).at(|at| {
                at.row_group = Some(u64_of(chunk.0));
                at.column = Some(metadata.schema.leaf_path(chunk.1));
            })
        };
        let pages = pages_of(&index, metadata.row_groups[chunk.0].rows);
        if pages.len() != bloom.pages() {
            return Err(wrong(format!("{} filters of {} pages", bloom.pages(), pages.len())));
        }
        let of_pages: Vec<BTreeSet<Vec<u8>>> =
            pages.into_iter().map(|rows| values(bytes, metadata, chunk, rows)).collect::<Result<_>>()?;
        let mut all: BTreeSet<Vec<u8>> = of_pages.iter().flatten().cloned().collect();
        let length = all.iter().map(Vec::len).max().unwrap_or(8).max(8);
        all.extend((0..100).map(|_| (0..length).map(|_| random.byte()).collect::<Vec<u8>>()));
        let found = probe(bytes, bloom, all.iter().map(Vec::as_slice), manner)?;
        let (mut false_ones, mut tried) = (0, 0);
        for (value, found) in all.iter().zip(found) {
            let found = found.ok_or_else(|| wrong("filters that are not believed".into()))?;
            for (page, values) in of_pages.iter().enumerate() {
                let is_there = values.contains(value);
                if is_there && !found.contains(page) {
                    return Err(wrong(format!("page {page} does not find {value:?}")));
                }
                tried += usize::from(!is_there);
                false_ones += usize::from(!is_there && found.contains(page));
            }
        }
        let values = of_pages.iter().map(BTreeSet::len).collect();
        checked.push(Checked { chunk, bloom, values, false_ones, tried });
    }
    Ok(checked)
}
