//! Rows that a table of a cluster lacks, or has otherwise.

use std::sync::Arc;

use marquetry::Target;
use marquetry::scylla::bridge::mutations::MutationMapping;
use marquetry::tables::{ColumnPath, Described, DiffOptions, Key, Source, missing};

use super::Copying;
use crate::failure::{Failure, Outcome};

/// Of the source's rows those that the destination does not have, by its key.
pub(super) fn of(
    copying: &Copying<'_>,
    source: &Arc<dyn Source>,
    target: &Target,
    memory_bytes: u64,
) -> Outcome<Arc<dyn Source>> {
    if Described::of(source.table())?.is_some_and(|it| it.mapping == MutationMapping::Full) {
        return Err(Failure::usage(
            "--missing-only compares rows, and these are writes: --mapping logical makes rows of them",
        ));
    }
    let there = copying.rows.table.open_destination(target.address(), copying.interrupted)?;
    let table = there.source().table();
    let Some(Key { partition, clustering }) = &table.key else {
        return Err(Failure::usage("--missing-only needs a table with a key"));
    };
    let clustering = clustering.iter().filter_map(|by| usize::try_from(by.column).ok());
    let name = |leaf: usize| {
        let leaf = table.schema.leaves().get(leaf)?;
        Some(ColumnPath::of([table.schema.node_of(leaf).name.as_str()]))
    };
    let mut options = DiffOptions::default();
    options.key = partition.iter().copied().chain(clustering).filter_map(name).collect();
    options.memory_bytes = memory_bytes;
    (options.threads, options.cancel) = (copying.threads.get(), copying.interrupted.cancel());
    Ok(missing(source, there.source(), &options)?)
}
