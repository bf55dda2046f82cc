//! Bloom filters, held against the values of their chunks.

use std::collections::BTreeSet;
use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Bytes, Error, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_parquet::batch::Layout;
use marquetry_parquet::bloom;
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::read::{BatchReader, BloomProbe, ReadOptions};

use crate::canonical::{self, FILE, with_bytes};
use crate::hostile::{self, Manner};

/// The different values of a column chunk, as PLAIN has them, without lengths.
///
/// # Errors
///
/// The reader's.
pub fn values(
    bytes: &Bytes,
    metadata: &Arc<FileMetaData>,
    row_group: usize,
    leaf: usize,
) -> Result<BTreeSet<Vec<u8>>> {
    let options = ReadOptions {
        row_groups: Some(row_group..row_group + 1),
        leaves: Some(vec![leaf]),
        layout: Layout::Dense,
        ..ReadOptions::default()
    };
    let codecs = Arc::new(StandardCodecs::default());
    let mut reader = BatchReader::new(FILE, Arc::clone(metadata), codecs, options)?;
    let mut all = BTreeSet::new();
    canonical::read(&mut reader, bytes, Manner::KIND, |batch| {
        let values = &batch.columns[0].values;
        for index in 0..values.len() {
            with_bytes(values, index, |value| {
                if !all.contains(value) {
                    all.insert(value.to_vec());
                }
            });
        }
    })?;
    Ok(all)
}

/// What the filter of a chunk says of values: whether each may be there.
///
/// # Errors
///
/// The probe's.
pub fn probe<'a>(
    bytes: &Bytes,
    metadata: &Arc<FileMetaData>,
    (row_group, leaf): (usize, usize),
    values: impl IntoIterator<Item = &'a [u8]>,
    manner: Manner,
) -> Result<Vec<bool>> {
    let hashes: Vec<u64> = values.into_iter().map(bloom::hash).collect();
    let mut probe = BloomProbe::new(FILE, metadata, row_group, leaf, hashes)?;
    let mut found = Vec::new();
    hostile::run(&mut probe, FILE, bytes, manner, |is_there| {
        found.push(is_there);
        Ok(())
    })?;
    Ok(found)
}

/// Checks that each filter of a file finds all values of its chunk; says of how many different ones that was, by row group and leaf.
///
/// # Errors
///
/// Where one does not; the reader's and the probe's.
pub fn check(bytes: &Bytes, metadata: &Arc<FileMetaData>) -> Result<Vec<(usize, usize, usize)>> {
    let mut checked = Vec::new();
    for (row_group, group) in metadata.row_groups.iter().enumerate() {
        for (leaf, chunk) in group.columns.iter().enumerate() {
            if chunk.bloom_filter.is_none() {
                continue;
            }
            let values = values(bytes, metadata, row_group, leaf)?;
            let place = (row_group, leaf);
            let found = probe(bytes, metadata, place, values.iter().map(Vec::as_slice), Manner::USUAL)?;
            if found.len() != values.len() || found.contains(&false) {
                return Err(Error::corrupt("a Bloom filter that does not find a value of its chunk").at(
                    |at| {
                        at.row_group = Some(u64_of(row_group));
                        at.column = Some(metadata.schema.leaf_path(leaf));
                    },
                ));
            }
            checked.push((row_group, leaf, values.len()));
        }
    }
    Ok(checked)
}
