//! Resolving the chosen columns in all files.

use std::sync::Arc;

use marquetry_base::{Budget, Detail, Error, Faults, Result};
use marquetry_parquet::schema::{DifferenceKind, Plan as _, Projection, Schema};

use super::gathered::Gathered;
use crate::ColumnPath;
use crate::subject::named;

/// Chooses columns, all if none are named, and makes sure that they can be read from all files together: which must have the
/// same, unless they may differ. `None` where all columns are chosen.
///
/// The work grows with the number of columns, not with its square: tables of machine learning have 100,000.
pub(super) fn choose(
    gathered: &Gathered,
    wanted: Option<&[ColumnPath]>,
    may_differ: bool,
) -> Result<Option<Schema>> {
    let all = &gathered.unified.schema;
    let mut faults = Faults::default();
    let mut projection = Projection::new(Arc::clone(all));
    match wanted {
        Some(wanted) => {
            for wanted in wanted {
                if let Err(error) = projection.add(&wanted.parts, &mut Budget::unlimited()) {
                    let fault = wanted.fault(all, error, faults.is_empty()).with(Detail::Option("columns"));
                    faults.add(named(fault, &gathered.name()));
                }
            }
        }
        None => {
            for node in all.children(0) {
                // Each node is another one.
                let _ = projection.add_column(node);
            }
        }
    }
    check_differences(gathered, &projection, may_differ, &mut faults);
    faults.into_result()?;
    let refused = |error| named(error, &gathered.name());
    wanted.map(|_| projection.plan().at_once().map_err(refused)).transpose()
}

/// Finds the differences of the files that matter.
fn check_differences(gathered: &Gathered, projection: &Projection, may_differ: bool, faults: &mut Faults) {
    let schema = &gathered.unified.schema;
    for difference in &gathered.unified.differences {
        if (may_differ && difference.kind.is_bridged()) || !projection.has(difference.node) {
            continue;
        }
        let name = |source: &usize| gathered.name_of(*source);
        let path = schema.path(difference.node);
        let what = if schema.nodes()[difference.node].parent == 0 { "column" } else { "field" };
        let wrong = |source: &usize, why: String| named(Error::conversion(why), name(source));
        faults.add(match &difference.kind {
            DifferenceKind::Missing { with, without } => {
                wrong(without, format!("there is no {what} {path:?}, which {} has", name(with)))
                    .with(Detail::AdmittedBy(&["union", "columns"]))
            }
            DifferenceKind::Widened { one: (first, one), other: (second, other) } => {
                wrong(second, format!("the {what} {path:?} is {other}, but {one} in {}", name(first)))
                    .with(Detail::AdmittedBy(&["union", "columns"]))
            }
            DifferenceKind::Clash { one: (first, one), other: (second, other) } => wrong(
                second,
                format!(
                    "the {what} {path:?} is {other}, but {one} in {}, and no type holds the values of both",
                    name(first)
                ),
            )
            .with(Detail::AdmittedBy(&["columns"])),
            // The tables here have unique names.
            DifferenceKind::Twice { source } => {
                named(Error::internal(format!("two fields have the name {path:?}")), name(source))
            }
            DifferenceKind::Broken { source, error } => named(error.clone(), name(source)),
        });
    }
}
