//! Where pages are that are read.

use std::collections::HashSet;
use std::sync::Arc;

use marquetry_base::{Detail, Error, ErrorKind, Result};
use marquetry_parquet::format::{FileMetaData, OffsetIndex};
use marquetry_parquet::read::PageIndexReader;

use crate::host::{Host, OBJECT};

/// Where the pages are of leaves that are read, as far as the object says so.
pub(crate) fn locate(
    metadata: &Arc<FileMetaData>,
    leaves: &[usize],
    row_group: usize,
    located: &mut Vec<(usize, Arc<OffsetIndex>)>,
    host: &mut Host<'_>,
) -> Result<()> {
    let known: HashSet<usize> = located.iter().map(|(leaf, _)| *leaf).collect();
    let missing: Vec<usize> = leaves.iter().copied().filter(|leaf| !known.contains(leaf)).collect();
    // Of leaves that are not read, nothing is wanted.
    let wanted: HashSet<usize> = leaves.iter().copied().collect();
    located.retain(|(leaf, _)| wanted.contains(leaf));
    // All of them at once, in as few reads as that takes; if one is not to be used, one after the other.
    let before = located.len();
    match read(metadata, missing.clone(), row_group, located, host) {
        Err(error) if is_dispensable(&error) => located.truncate(before),
        done => return done,
    }
    for leaf in missing {
        match read(metadata, vec![leaf], row_group, located, host) {
            // Rows are found without it, by reading more.
            Err(error) if is_dispensable(&error) => {}
            done => done?,
        }
    }
    Ok(())
}

fn read(
    metadata: &Arc<FileMetaData>,
    leaves: Vec<usize>,
    row_group: usize,
    located: &mut Vec<(usize, Arc<OffsetIndex>)>,
    host: &mut Host<'_>,
) -> Result<()> {
    if leaves.is_empty() {
        return Ok(());
    }
    let mut options = Host::read_options();
    (options.leaves, options.row_groups) = (Some(leaves), Some(row_group..row_group + 1));
    let mut reader = PageIndexReader::new(OBJECT, Arc::clone(metadata), &options)?.without_bounds();
    while let Some(index) = host.finish(&mut reader)? {
        located.push((index.leaf, Arc::new(index.offset_index)));
    }
    Ok(())
}

/// Whether an error about an index says that this is not to be used.
fn is_dispensable(error: &Error) -> bool {
    match error.kind() {
        ErrorKind::Corrupt | ErrorKind::Unsupported => true,
        ErrorKind::LimitExceeded => matches!(error.detail(), Some(Detail::Limit(_))),
        _ => false,
    }
}
