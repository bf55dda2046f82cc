//! What a text can hold of a table, and how it is read back.

use marquetry_base::{Error, Faults, Result};
use marquetry_parquet::print;
use marquetry_parquet::schema::{Leaf, LogicalType, NodeKind, Schema, Shape, ShapeKind};

use super::{Column, ColumnType, Columns, Format, Scalar};
use crate::Table;
use crate::subject::named;

/// Checks that a text of this format can hold a table.
///
/// # Errors
///
/// About the table, everything that it cannot hold, in one error.
pub(super) fn check(table: &Table, format: Format, nested_as_json: bool) -> Result<()> {
    let schema = &*table.schema;
    let is_nested = |node: &usize| match schema.nodes()[*node].kind {
        NodeKind::Leaf { leaf } => !schema.leaves()[leaf].is_flat(),
        NodeKind::Group { .. } => true,
    };
    let name = |node: usize| schema.nodes()[node].name.to_string();
    let mut wrong: Vec<Error> = Vec::new();
    if format != Format::JsonLines && schema.leaves().is_empty() {
        let what = format!("{} cannot hold rows without columns; JSON lines can", name_of(format));
        wrong.push(Error::conversion(what));
    }
    if format == Format::JsonLines || nested_as_json {
        let shapes = schema.children(0).filter(is_nested).map(|node| print::shape(schema, node));
        wrong.extend(shapes.filter_map(Result::err));
    } else {
        let nested: Vec<String> = schema.children(0).filter(is_nested).map(name).collect();
        if !nested.is_empty() {
            let nested = nested.join(", ");
            let what = format!("{} cannot hold nested columns ({nested}); JSON lines can", name_of(format));
            wrong.push(Error::conversion(what));
        }
    }
    for name in schema.children(0).map(name) {
        if format == Format::Tsv && name.contains(['\t', '\n', '\r']) {
            let what = format!("TSV has no quotes, but a name contains a tab or a line end: {name:?}");
            wrong.push(Error::conversion(what));
        }
    }
    let error = match wrong.len() {
        0 => return Ok(()),
        1 => wrong.swap_remove(0),
        _ => {
            let said = wrong.iter().map(|error| match &error.place().column {
                Some(column) => format!("{} (column {column})", error.message()),
                None => error.message().to_owned(),
            });
            Error::conversion(said.collect::<Vec<_>>().join("; "))
        }
    };
    Err(error.at(|place| place.object = Some(table.name.clone())))
}

fn name_of(format: Format) -> &'static str {
    match format {
        Format::Tsv => "TSV",
        Format::JsonLines => "JSON lines",
        _ => "CSV",
    }
}

/// A table's columns in the words in which text is declared, as [`Columns`] reads them.
///
/// # Errors
///
/// `Conversion` for columns of types that have no word, in one error: geometries, variants, maps without values.
pub fn columns_of(table: &Table) -> Result<Columns> {
    let mut faults = Faults::default();
    let mut columns = Vec::new();
    for node in table.schema.children(0) {
        let name = table.schema.nodes()[node].name.to_string();
        let no_word = || {
            let error = Error::conversion("its type has no word");
            error.at(|place| place.column = Some(name.clone()))
        };
        let shape = faults.take(print::shape(&table.schema, node));
        let column_type =
            shape.and_then(|shape| faults.take(column_type(shape, scalar).map_err(|_| no_word())));
        columns.extend(column_type.map(|column_type| Column { name: name.clone(), column_type }));
    }
    faults.into_result().map_err(|error| named(error, &table.name))?;
    Ok(columns.into())
}

/// The columns as which a text of this schema is read back the same, bit by bit; decimals by value.
///
/// # Errors
///
/// `Misuse` for the option `verify`, in one error: for columns of types that no column of a text has (geometries, variants,
/// maps without values, decimals of more than 38 digits), and for a column without a name, which a reader of CSV and TSV
/// gives one.
pub(super) fn readable(schema: &Schema, format: Format) -> Result<Columns> {
    let mut faults = Faults::default();
    let fault = |node: usize, what: String| {
        let path = schema.path(node);
        let path = if path.is_empty() { "\"\"".to_string() } else { path };
        Error::option("verify", what).at(|place| place.column = Some(path))
    };
    let mut columns = Vec::new();
    for node in schema.children(0) {
        let name = schema.nodes()[node].name.to_string();
        if name.is_empty() && format != Format::JsonLines {
            faults.add(fault(node, format!("{} is read back with another name", name_of(format))));
            continue;
        }
        let column_type = print::shape(schema, node).and_then(|shape| {
            column_type(shape, held).map_err(|node| {
                let what = type_of(schema, node);
                fault(node, format!("text is not read back as {what}, bit by bit"))
            })
        });
        columns.extend(faults.take(column_type).map(|column_type| Column { name, column_type }));
    }
    faults.into_result()?;
    let columns = Columns::from(columns);
    // What can be null in them is all that may differ.
    let read = columns.schema()?;
    let depths = |schema: &Schema| schema.leaves().iter().map(|leaf| leaf.repetition_max).collect::<Vec<_>>();
    if depths(&read) != depths(schema) {
        return Err(Error::internal("columns of text that are not those of its table"));
    }
    Ok(columns)
}

/// The type of a node, for messages.
fn type_of(schema: &Schema, node: usize) -> String {
    let found = &schema.nodes()[node];
    let annotation = found.logical_type.as_ref();
    match (&found.kind, annotation) {
        (NodeKind::Leaf { leaf }, Some(logical)) => {
            format!("{} {logical}", schema.leaves()[*leaf].physical_type)
        }
        (NodeKind::Leaf { leaf }, None) => schema.leaves()[*leaf].physical_type.to_string(),
        (NodeKind::Group { .. }, Some(LogicalType::Map | LogicalType::MapKeyValue)) => {
            "a map without values".to_string()
        }
        (NodeKind::Group { .. }, Some(logical)) => logical.to_string(),
        (NodeKind::Group { .. }, None) => "a group".to_string(),
    }
}

/// The type of a text's column; the node that has none.
fn column_type(shape: Shape<'_>, scalar: fn(&Schema, &Leaf) -> Option<Scalar>) -> Result<ColumnType, usize> {
    let schema = shape.schema();
    let none = shape.node;
    Ok(match shape.kind().map_err(|_| none)? {
        ShapeKind::Leaf => {
            let NodeKind::Leaf { leaf } = schema.nodes()[shape.node].kind else { return Err(none) };
            ColumnType::Scalar(scalar(schema, &schema.leaves()[leaf]).ok_or(none)?)
        }
        ShapeKind::List(_, element) => ColumnType::List(Box::new(column_type(element, scalar)?)),
        // A variant is a struct of bytes here, and JSON of any form in the text.
        ShapeKind::Struct(_) if schema.nodes()[shape.node].logical_type.is_some() => return Err(none),
        ShapeKind::Struct(fields) => {
            let field = |field: Shape<'_>| {
                let name = schema.nodes()[field.node].name.to_string();
                Ok(Column { name, column_type: column_type(field, scalar)? })
            };
            ColumnType::Struct(fields.map(field).collect::<Result<_, usize>>()?)
        }
        ShapeKind::Map(_, key, Some(value)) => match column_type(key, scalar)? {
            ColumnType::Scalar(key) if key != Scalar::Unknown => {
                ColumnType::Map(key, Box::new(column_type(value, scalar)?))
            }
            _ => return Err(key.node),
        },
        ShapeKind::Map(_, _, None) => return Err(none),
    })
}

/// The word for a leaf's type.
fn scalar(schema: &Schema, leaf: &Leaf) -> Option<Scalar> {
    Scalar::of_meaning(schema.meaning_of(leaf), leaf.physical_type)
}

/// The type as which a leaf's values are read back bit by bit, or decimals by value.
fn held(schema: &Schema, leaf: &Leaf) -> Option<Scalar> {
    let found = match scalar(schema, leaf)? {
        // Nulls have no bits.
        Scalar::Unknown => return Some(Scalar::Unknown),
        // A file may hold values beyond 8 and 16 bits.
        Scalar::Integer(8 | 16) => Scalar::Integer(32),
        Scalar::Unsigned(8 | 16) => Scalar::Unsigned(32),
        found => found,
    };
    match found {
        found if found.types().0 == leaf.physical_type => Some(found),
        // Decimals are compared by value, and bytes may hold more digits than they are said to.
        Scalar::Decimal { scale, .. } => Some(Scalar::Decimal { precision: 38, scale }),
        _ => None,
    }
}
