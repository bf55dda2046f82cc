//! Rows that a table of a cluster lacks, or has otherwise.

use std::sync::Arc;

use marquetry::Target;
use marquetry::scylla::bridge::mutations::MutationMapping;
use marquetry::tables::{ColumnPath, Described, DiffOptions, Source, missing};

use super::Copying;
use crate::args::{Nulls, TimestampsAs};
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
    if copying.rows.timestamps_as == Some(TimestampsAs::Millis) {
        return Err(Failure::usage(
            "--timestamps-as millis cuts digits off, and --missing-only would take such rows for others each time: copy them to a file \
             with such timestamps first",
        ));
    }
    let there = copying.rows.table.open_destination(target.address(), copying.interrupted)?;
    let table = there.source().table();
    let mut options = DiffOptions::default();
    let keys = Described::of(table)?.map(|it| [it.columns.partition_key, it.columns.clustering].concat());
    options.key = keys.iter().flatten().map(|key| ColumnPath::of([key.name.as_str()])).collect();
    if options.key.is_empty() {
        return Err(Failure::usage("--missing-only needs a table of the layout rows with a key"));
    }
    options.memory_bytes = memory_bytes;
    (options.as_loaded, options.keeps_nulls) = (true, copying.rows.nulls == Nulls::Unset);
    (options.threads, options.cancel) = (copying.threads.get(), copying.interrupted.cancel());
    Ok(missing(source, there.source(), &options)?)
}
