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
    for leaf in missing {
        let mut options = Host::read_options();
        (options.leaves, options.row_groups) = (Some(vec![leaf]), Some(row_group..row_group + 1));
        let mut reader = PageIndexReader::new(OBJECT, Arc::clone(metadata), &options)?.without_bounds();
        match host.finish(&mut reader) {
            Ok(Some(index)) => located.push((leaf, Arc::new(index.offset_index))),
            Ok(None) => {}
            // Rows are found without it, by reading more.
            Err(error) if is_dispensable(&error) => {}
            Err(error) => return Err(error),
        }
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
