//! What a text can hold of a table, and how it is read back.

use marquetry_base::{Error, Result};
use marquetry_parquet::print;
use marquetry_parquet::schema::{
    FieldType, Leaf, Meaning, NodeKind, PhysicalType, Schema, Shape, ShapeKind, TimeUnit,
};

use super::{Column, ColumnType, Columns, Format, Scalar};
use crate::Table;

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

/// The columns as which a text of this schema is read back the same, bit by bit. `None` if there are none: for types
/// that no column of a text has (unsigned integers, INT96, FLOAT16, intervals, times of other units than nanoseconds,
/// decimals that are held in another way), for maps, where levels would differ, and for a column without a name, which
/// a reader of CSV and TSV gives one.
pub(super) fn readable(schema: &Schema, format: Format) -> Option<Columns> {
    if format != Format::JsonLines && schema.child_of_root("").is_some() {
        return None;
    }
    let column = |node: usize| {
        let name = schema.nodes()[node].name.to_string();
        let shape = print::shape(schema, node).ok()?;
        Some(Column { name, column_type: column_type(shape)? })
    };
    let columns = Columns::from(schema.children(0).map(column).collect::<Option<Vec<_>>>()?);
    let read = columns.schema().ok()?;
    let is_same = |(one, other): (&Leaf, &Leaf)| {
        let has_levels = |leaf: &Leaf| (leaf.definition_max, leaf.repetition_max);
        (one.is_flat() && other.is_flat()) || has_levels(one) == has_levels(other)
    };
    let is_all = read.leaves().len() == schema.leaves().len();
    (is_all && read.leaves().iter().zip(schema.leaves().iter()).all(is_same)).then_some(columns)
}

fn column_type(shape: Shape<'_>) -> Option<ColumnType> {
    let schema = shape.schema();
    Some(match shape.kind().ok()? {
        ShapeKind::Leaf => {
            let NodeKind::Leaf { leaf } = schema.nodes()[shape.node].kind else { return None };
            ColumnType::Scalar(scalar(schema, &schema.leaves()[leaf])?)
        }
        ShapeKind::List(_, element) => ColumnType::List(Box::new(column_type(element)?)),
        // A variant is a struct of bytes here, and JSON of any form in the text.
        ShapeKind::Struct(_) if schema.nodes()[shape.node].logical_type.is_some() => return None,
        ShapeKind::Struct(fields) => {
            let field = |field: Shape<'_>| {
                let name = schema.nodes()[field.node].name.to_string();
                Some(Column { name, column_type: column_type(field)? })
            };
            ColumnType::Struct(fields.map(field).collect::<Option<_>>()?)
        }
        // They are written as arrays of entries, and read as objects.
        ShapeKind::Map(..) => return None,
    })
}

/// The type as which a leaf's values are read back the same.
fn scalar(schema: &Schema, leaf: &Leaf) -> Option<Scalar> {
    let physical = leaf.physical_type;
    Some(match (schema.meaning_of(leaf).read_as(physical), physical) {
        (Meaning::Boolean, PhysicalType::Boolean) => Scalar::Boolean,
        (Meaning::Integer { is_signed: true, .. }, PhysicalType::Int32) => Scalar::Integer(32),
        (Meaning::Integer { is_signed: true, .. }, PhysicalType::Int64) => Scalar::Integer(64),
        (Meaning::Float, PhysicalType::Float) => Scalar::Float,
        (Meaning::Double, PhysicalType::Double) => Scalar::Double,
        (Meaning::String | Meaning::Enum | Meaning::Json, PhysicalType::ByteArray) => Scalar::Text,
        (Meaning::Bytes | Meaning::Bson, PhysicalType::ByteArray | PhysicalType::FixedLenByteArray(_)) => {
            Scalar::Blob
        }
        (Meaning::Date, PhysicalType::Int32) => Scalar::Date,
        (Meaning::Time { unit: TimeUnit::Nanos, .. }, PhysicalType::Int64) => Scalar::Time,
        (Meaning::Timestamp { unit, is_adjusted_to_utc }, PhysicalType::Int64) => {
            Scalar::Timestamp { unit, is_instant: is_adjusted_to_utc }
        }
        (Meaning::Uuid, PhysicalType::FixedLenByteArray(16)) => Scalar::Uuid,
        (Meaning::Decimal { precision, scale }, _) => {
            let number = |number: i32| u32::try_from(number).ok();
            let decimal = Scalar::Decimal { precision: number(precision)?, scale: number(scale)? };
            let FieldType::Leaf(held, _) = decimal.field_type() else { return None };
            return (held == physical).then_some(decimal);
        }
        _ => return None,
    })
}
