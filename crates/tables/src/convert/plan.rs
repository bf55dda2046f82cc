//! Which leaves are converted, and how.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use marquetry_base::{Detail, Error, Faults, Result};
use marquetry_parquet::schema::{
    Meaning, NodeKind, PathError, PathPart, PhysicalType, Schema, Shape, ShapeKind, TimeUnit,
};
use marquetry_text::{ColumnType, Scalar, TypeOf, Types};

use crate::ColumnPath;

/// What becomes of a leaf's values.
#[derive(Debug, Clone)]
pub(super) struct Conversion {
    pub(super) from: Meaning,
    pub(super) to: Scalar,
    pub(super) how: How,
}

/// How values become those of another type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// Their bits mean the same.
    Relabel,
    /// All are null.
    Nulls,
    /// A number as a number.
    Number,
    /// Units of time: so many of the new one for each, or so many of the old one for each new one.
    Units { times: i64, per: i64 },
    /// Times by way of nanoseconds in 128 bits.
    Nanos,
    /// Bytes of one length as bytes of another kind.
    Bytes,
    /// By their text: from text, to text, or between numbers.
    Text,
}

/// What remains of the order of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OrderKept {
    /// All of it: different values stay different.
    Strict,
    /// Different values may become equal, so rows that are now equal need not be in order by later columns.
    Monotone,
    /// Nothing is known.
    Nothing,
}

impl Conversion {
    /// What remains of the order of the values.
    pub(super) fn order_kept(&self) -> OrderKept {
        let digits = |meaning: Meaning| match meaning {
            Meaning::Float16 => Some(11),
            Meaning::Float => Some(24),
            Meaning::Double => Some(53),
            _ => None,
        };
        let digits_wanted = match self.to {
            Scalar::Float16 => 11,
            Scalar::Float => 24,
            Scalar::Double => 53,
            // As integers, −0 is 0, and some writers order these.
            _ => 0,
        };
        match (self.how, digits(self.from)) {
            (How::Number, Some(digits)) if digits > digits_wanted => OrderKept::Monotone,
            (How::Number | How::Units { .. }, _) => OrderKept::Strict,
            _ => OrderKept::Nothing,
        }
    }

    /// The error for a value.
    pub(super) fn misfit(&self, shown: &str) -> Error {
        Error::conversion(format!("{shown} does not fit {}", self.to.with_article()))
    }
}

/// The conversions of a schema's leaves; those that change nothing are left out, but for durations, which are numbers by them.
///
/// # Errors
///
/// Everything that is wrong with the types.
pub(super) fn plan(
    schema: &Arc<Schema>,
    types: &Types,
    durations: &[usize],
) -> Result<BTreeMap<usize, Conversion>> {
    let mut faults = Faults::default();
    let mut conversions = BTreeMap::new();
    let mut has_missing = false;
    for of in types.as_slice() {
        match find(schema, of) {
            Ok(shape) => add(shape, &of.column_type, &mut conversions, &mut faults),
            Err(error) => {
                let path = ColumnPath { text: of.dotted(), parts: of.path.clone() };
                let fault = path.fault(schema, error, !has_missing);
                has_missing = true;
                faults.add(fault.with(Detail::Option("types")));
            }
        }
    }
    faults.into_result()?;
    conversions.retain(|leaf, conversion: &mut Conversion| {
        let held = schema.leaves().get(*leaf).map(|leaf| leaf.physical_type);
        let logical = schema.leaves().get(*leaf).and_then(|leaf| schema.node_of(leaf).logical_type.clone());
        let (physical, wanted) = conversion.to.types();
        !(held == Some(physical) && logical == wanted) || durations.contains(leaf)
    });
    Ok(conversions)
}

/// What a path leads to.
fn find<'a>(schema: &'a Schema, of: &TypeOf) -> Result<Shape<'a>, PathError> {
    let (node, used) = child_of(schema, 0, &of.path).ok_or_else(|| missing(&of.path, None))?;
    below(schema.shape(node), &of.path[used..])
}

fn below<'a>(shape: Shape<'a>, path: &[PathPart]) -> Result<Shape<'a>, PathError> {
    let Some(first) = path.first() else { return Ok(shape) };
    let schema = shape.schema();
    let is = |name: &str| first.text == name;
    match shape.kind().map_err(PathError::Broken)? {
        ShapeKind::Leaf => Err(missing(path, Some(shape.node))),
        ShapeKind::Struct(_) if schema.nodes()[shape.node].logical_type.is_some() => {
            Err(PathError::Variant { node: shape.node })
        }
        ShapeKind::Struct(fields) => {
            let (node, used) =
                child_of(schema, shape.node, path).ok_or_else(|| missing(path, Some(shape.node)))?;
            let field = fields.into_iter().find(|field| field.node == node);
            below(field.ok_or_else(|| missing(path, Some(shape.node)))?, &path[used..])
        }
        ShapeKind::List(_, element) => {
            // A group's own field takes precedence over the list's name for its element.
            let is_struct = matches!(element.kind(), Ok(ShapeKind::Struct(_)));
            let is_field = is_struct && child_of(schema, element.node, path).is_some();
            match is("element") && !is_field {
                true => below(element, &path[1..]),
                false if is_struct => below(element, path),
                false => Err(missing(path, Some(shape.node))),
            }
        }
        ShapeKind::Map(_, key, _) if is("key") => below(key, &path[1..]),
        ShapeKind::Map(_, _, Some(value)) if is("value") => below(value, &path[1..]),
        ShapeKind::Map(..) => Err(missing(path, Some(shape.node))),
    }
}

fn missing(path: &[PathPart], node: Option<usize>) -> PathError {
    let name = path.iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join(".");
    PathError::NoSuchField { name, node }
}

/// The child of a group that a path begins with, and how many of the path's parts name it: the longest name wins.
pub(super) fn child_of(schema: &Schema, group: usize, path: &[PathPart]) -> Option<(usize, usize)> {
    let parts = path.iter().take_while(|part| !part.is_whole).count().max(1).min(path.len());
    let by_name = |name: &str| schema.children(group).find(|child| schema.nodes()[*child].name == name);
    (1..=parts).rev().find_map(|used| {
        let name = path[..used].iter().map(|part| part.text.as_str()).collect::<Vec<_>>().join(".");
        Some((by_name(&name).or_else(|| by_name(&name.to_ascii_lowercase()))?, used))
    })
}

/// Adds the conversions of all leaves of a column.
fn add(
    shape: Shape<'_>,
    wanted: &ColumnType,
    conversions: &mut BTreeMap<usize, Conversion>,
    faults: &mut Faults,
) {
    let schema = shape.schema();
    let at = |error: Error| error.at(|place| place.column = Some(schema.path(shape.node)));
    let kind = match shape.kind() {
        Ok(kind) => kind,
        Err(error) => return faults.add(at(error)),
    };
    let misfit = |found: &str| at(Error::conversion(format!("{found} has no conversion to {wanted}")));
    match (kind, wanted) {
        (ShapeKind::Leaf, ColumnType::Scalar(to)) => {
            let NodeKind::Leaf { leaf } = schema.nodes()[shape.node].kind else { return };
            let Some(found) = schema.leaves().get(leaf) else { return };
            let physical = found.physical_type;
            let from = schema.meaning_of(found).read_as(physical);
            match how(from, physical, *to) {
                Some(how) => {
                    conversions.insert(leaf, Conversion { from, to: *to, how });
                }
                None => faults.add(misfit(&word(from, physical))),
            }
        }
        (ShapeKind::List(_, element), ColumnType::List(wanted)) => add(element, wanted, conversions, faults),
        (ShapeKind::Map(_, key, Some(value)), ColumnType::Map(wanted_key, wanted)) => {
            add(key, &ColumnType::Scalar(*wanted_key), conversions, faults);
            add(value, wanted, conversions, faults);
        }
        (ShapeKind::Struct(fields), ColumnType::Struct(wanted_fields)) => {
            let fields: Vec<Shape<'_>> = fields.collect();
            let name = |field: &Shape<'_>| schema.nodes()[field.node].name.as_str();
            let is_wanted = |field: &Shape<'_>| wanted_fields.iter().any(|it| it.name == name(field));
            if fields.len() != wanted_fields.len() || !fields.iter().all(is_wanted) {
                return faults.add(misfit("a struct of other fields"));
            }
            for field in fields {
                let wanted = wanted_fields.iter().find(|it| it.name == name(&field));
                wanted.into_iter().for_each(|it| add(field, &it.column_type, conversions, faults));
            }
        }
        (ShapeKind::Leaf, _) => faults.add(misfit("a column of single values")),
        (ShapeKind::List(..), _) => faults.add(misfit("a list")),
        (ShapeKind::Map(..), _) => faults.add(misfit("a map")),
        (ShapeKind::Struct(_), _) => faults.add(misfit("a struct")),
    }
}

/// What a type is called.
fn word(meaning: Meaning, physical: PhysicalType) -> String {
    match Scalar::of_meaning(meaning, physical) {
        Some(scalar) => scalar.to_string(),
        None => match meaning {
            Meaning::Geometry => "a geometry".to_string(),
            Meaning::Geography => "a geography".to_string(),
            Meaning::Decimal { precision, scale } => format!("decimal({precision}, {scale})"),
            _ => physical.to_string(),
        },
    }
}

/// How values of this meaning become values of that type. `None` if they cannot.
fn how(from: Meaning, physical: PhysicalType, to: Scalar) -> Option<How> {
    use Meaning as M;
    use Scalar as S;
    let seconds = |unit: TimeUnit| unit.per_second();
    let units = |from: i64, to: i64| match from.cmp(&to) {
        Ordering::Less => How::Units { times: to / from, per: 1 },
        Ordering::Equal => How::Relabel,
        Ordering::Greater => How::Units { times: 1, per: from / to },
    };
    let is_number = |to: Scalar| {
        matches!(to, S::Integer(_) | S::Unsigned(_) | S::Float16 | S::Float | S::Double | S::Decimal { .. })
    };
    Some(match (from, to) {
        (M::Null, _) => How::Nulls,
        (M::String | M::Enum | M::Json, S::Text | S::Enum | S::Json) => How::Relabel,
        (M::String | M::Enum | M::Json, _) | (_, S::Text) => How::Text,
        (M::Boolean, S::Boolean) | (M::Interval, S::Interval) => How::Relabel,
        // A decimal of more digits than 128 bits hold.
        (M::Decimal { precision, .. }, _) if precision > 38 && is_number(to) => How::Text,
        (M::Decimal { .. }, S::Float16 | S::Float | S::Double) => How::Text,
        (M::Float16 | M::Float | M::Double, S::Decimal { .. }) => How::Text,
        (
            M::Integer { .. } | M::Decimal { .. } | M::Float16 | M::Float | M::Double,
            S::Integer(_) | S::Unsigned(_) | S::Float16 | S::Float | S::Double | S::Decimal { .. },
        ) => How::Number,
        (M::Date, S::Date) => How::Relabel,
        // The unit is that of the type which somebody asked for; nothing guesses it. Instants are counted from 1970, local times are not.
        (M::Integer { is_signed: true, .. }, S::Timestamp { is_instant: true, .. }) => {
            How::Units { times: 1, per: 1 }
        }
        (M::Date, S::Timestamp { unit, .. }) => How::Units { times: 86_400 * seconds(unit), per: 1 },
        (M::Timestamp { unit, .. }, S::Date) => How::Units { times: 1, per: 86_400 * seconds(unit) },
        (M::Timestamp { unit, .. }, S::Timestamp { unit: wanted, .. })
        | (M::Time { unit, .. }, S::Time { unit: wanted, .. }) => units(seconds(unit), seconds(wanted)),
        (M::Int96, S::Timestamp { .. } | S::Date | S::Int96) | (M::Timestamp { .. } | M::Date, S::Int96) => {
            How::Nanos
        }
        (M::Uuid | M::Bytes | M::Bson, S::Uuid | S::Fixed(_) | S::Blob | S::Bson) => {
            match (physical, to.types().0) {
                (from, to) if from == to => How::Relabel,
                _ => How::Bytes,
            }
        }
        _ => return None,
    })
}
