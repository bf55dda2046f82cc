//! Resolving the chosen columns in all files.

use marquetry_base::{Detail, Error, Faults, Result};
use marquetry_parquet::schema::{DifferenceKind, NodeKind, PathError, Projection, Schema};

use super::gathered::Gathered;
use crate::ColumnPath;
use crate::names::{NAMES_LISTED_MAX, listed};
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
    let mut projection = Projection::new(all);
    match wanted {
        Some(wanted) => {
            for wanted in wanted {
                if let Err(error) = projection.add(&wanted.parts) {
                    faults.add(cannot_add(gathered, wanted, error, faults.is_empty()));
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
    let projected = wanted.map(|_| projection.schema().map_err(refused)).transpose()?;
    let schema = projected.as_ref().unwrap_or(all);
    if schema.children(0).next().is_none() {
        return Err(refused(Error::conversion("the file has no columns")));
    }
    Ok(projected)
}

/// Why a column that a person names cannot be taken. The first error lists the names that there are.
fn cannot_add(gathered: &Gathered, wanted: &ColumnPath, error: PathError, lists_names: bool) -> Error {
    let (schema, subject) = (&gathered.unified.schema, gathered.name());
    let wrong = |message: String| named(Error::option("columns", message), &subject);
    match error {
        PathError::NoSuchField { name, node: None } => {
            let missing = match lists_names {
                true => no_such("column", &name, "its columns", schema, schema.children(0)),
                false => format!("there is no column {name:?}"),
            };
            named(Error::misuse(missing), &subject)
        }
        PathError::NoSuchField { name, node: Some(node) } => {
            let place = schema.path(node);
            let missing = match schema.nodes()[node].kind {
                NodeKind::Leaf { .. } => {
                    format!("the column {place:?} holds values, and no field {name:?}")
                }
                NodeKind::Group { .. } => {
                    let missing = no_such("field", &name, "it holds", schema, schema.children(node));
                    format!("the column {place:?}: {missing}")
                }
            };
            named(Error::misuse(missing), &subject)
        }
        PathError::Twice => wrong(format!("names {:?} twice", wanted.text)),
        PathError::Variant { node } => {
            wrong(format!("the column {:?} is a VARIANT, of which no part can be taken", schema.path(node)))
        }
        PathError::Broken(error) => named(error, &subject),
    }
}

fn no_such(
    what: &str,
    name: &str,
    they: &str,
    schema: &Schema,
    nodes: impl Iterator<Item = usize>,
) -> String {
    let mut nodes = nodes.map(|node| schema.nodes()[node].name.as_str());
    // Quoted where a comma or a space would mislead, as a list of columns is read.
    let names: Vec<&str> = nodes.by_ref().take(NAMES_LISTED_MAX).collect();
    let are = if what == "column" { " are" } else { "" };
    let has = match (names.len(), nodes.count()) {
        (0, _) => "it has none".to_string(),
        (_, 0) => format!("{they}{are} {}", listed(&names, ", ")),
        (_, more) => format!("{they}{are} {} and {more} more", listed(&names, ", ")),
    };
    format!("there is no {what} {name:?}; {has}")
}

/// Finds the differences of the files that matter.
fn check_differences(
    gathered: &Gathered,
    projection: &Projection<'_>,
    may_differ: bool,
    faults: &mut Faults,
) {
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
            DifferenceKind::Twice { source } if what == "column" => {
                wrong(source, format!("two columns have the name {path:?}, so neither can be meant"))
                    .with(Detail::AdmittedBy(&["columns"]))
            }
            DifferenceKind::Twice { source } => {
                let node = &schema.nodes()[difference.node];
                let message = format!("a group with two fields of the name {:?}", node.name);
                named(Error::unsupported(message), name(source))
                    .at(|place| place.column = Some(schema.path(node.parent)))
            }
            DifferenceKind::Broken { source, error } => named(error.clone(), name(source)),
        });
    }
}
