//! The Arrow types of a Parquet schema.
//!
//! Source: parquet-format's `LogicalTypes.md`; Arrow's `Schema.fbs`, and its canonical extension types.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY};
use arrow_schema::{
    DECIMAL32_MAX_PRECISION, DECIMAL64_MAX_PRECISION, DECIMAL128_MAX_PRECISION, DECIMAL256_MAX_PRECISION,
    DataType, Field, FieldRef, Fields, IntervalUnit,
};
use marquetry_base::{Error, Limits, Result, print};
use marquetry_parquet::batch::Assembler;
use marquetry_parquet::schema::{
    EdgeAlgorithm, Leaf, LogicalType, Meaning, NodeKind, PhysicalType, Schema, Shape, ShapeKind, TimeUnit,
};

use crate::plan::{Plan, PlanKind};
use crate::stored::{self, Matched, Siblings};

/// The metadata key for a field's Parquet field id, as in pyarrow and parquet-rs.
pub(crate) const FIELD_ID_KEY: &str = "PARQUET:field_id";

/// Choices for Parquet types that have more than one Arrow type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrowOptions {
    /// DECIMALs of up to 9 digits on INT32 become Decimal32, and those of up to 18 on INT64 Decimal64, without a
    /// copy. Off by default: they are widened to Decimal128, as in pyarrow and parquet-rs, because many programs do
    /// not know the narrower types.
    pub narrow_decimals: bool,
    /// The unit of INT96 timestamps: nanoseconds by default, as in pyarrow and parquet-rs. Nanoseconds reach from 1677
    /// to 2262; a timestamp outside of that is an error. A coarser unit rounds down, towards the past.
    pub int96_unit: TimeUnit,
}

impl Default for ArrowOptions {
    fn default() -> ArrowOptions {
        ArrowOptions { narrow_decimals: false, int96_unit: TimeUnit::Nanos }
    }
}

/// The Arrow schema of `leaves`, which are those passed as
/// [`ReadOptions::leaves`](marquetry_parquet::read::ReadOptions::leaves); `None` for all. Its fields are the root's
/// children that contain any of these leaves, in the order of their first listed leaves.
///
/// # Errors
///
/// `Misuse` for a leaf that does not exist or is listed twice; `Corrupt` for LIST and MAP groups that no rule makes
/// one; `Unsupported` for types that Arrow lacks: DECIMALs of more than 76 digits.
pub fn arrow_schema(schema: &Schema, leaves: Option<&[usize]>) -> Result<arrow_schema::Schema> {
    let plans = plans(schema, leaves, ArrowOptions::default())?;
    Ok(arrow_schema::Schema::new(fields_of(plans.iter())))
}

/// Applies a file's own Arrow schema, whose fields correspond to the root's children, or have their names.
///
/// # Errors
///
/// `Corrupt` if they are to correspond and it has another number of fields.
pub(crate) fn apply_stored(
    schema: &Schema,
    columns: &mut [Column],
    stored: &arrow_schema::Schema,
    matched: Matched,
) -> Result<()> {
    let (ours, theirs) = (schema.children(0).count(), stored.fields().len());
    if matched == Matched::ByPlace && ours != theirs {
        return Err(Error::corrupt(format!(
            "an Arrow schema with {theirs} fields in a file with {ours} columns"
        )));
    }
    let fields = Siblings::of(matched, schema, 0, stored.fields());
    for column in columns {
        if let Some(stored) = fields.get(&column.plan) {
            column.become_field(stored::field(schema, &column.plan, stored, matched));
        }
    }
    Ok(())
}

/// A child of the root, and its conversion.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) plan: Plan,
    pub(crate) assembler: Assembler,
    /// The type that the file's writer had, or that is asked for, to which the plan's array is converted at the end;
    /// `None` if it is the same.
    pub(crate) stored: Option<FieldRef>,
}

impl Column {
    /// The field that it becomes.
    pub(crate) fn field(&self) -> &FieldRef {
        self.stored.as_ref().unwrap_or(&self.plan.field)
    }

    /// Makes it become another one, whose type the plan's array [can be converted to](crate::retype).
    pub(crate) fn become_field(&mut self, field: FieldRef) {
        self.stored = (field != self.plan.field).then_some(field);
    }

    /// Decides how its leaves are made: see [`Plan::aim`].
    pub(crate) fn aim(&mut self, text_is_bytes: bool) {
        let target = self.field().data_type().clone();
        self.plan.aim(&target, text_is_bytes);
    }
}

/// The columns that contain `leaves`.
pub(crate) fn columns(
    schema: &Arc<Schema>,
    leaves: Option<&[usize]>,
    options: ArrowOptions,
) -> Result<Vec<Column>> {
    let ascending: Option<Arc<[usize]>> = leaves.map(|leaves| ascending(leaves).into());
    let column = |plan: Plan| {
        let assembler = Assembler::new(Arc::clone(schema), plan.node, ascending.clone(), &Limits::DEFAULT);
        Column { plan, assembler, stored: None }
    };
    Ok(plans(schema, leaves, options)?.into_iter().map(column).collect())
}

fn ascending(leaves: &[usize]) -> Vec<usize> {
    let mut leaves = leaves.to_vec();
    leaves.sort_unstable();
    leaves
}

/// The plans of the root's children that contain `leaves`.
fn plans(schema: &Schema, leaves: Option<&[usize]>, options: ArrowOptions) -> Result<Vec<Plan>> {
    let Some(leaves) = leaves else {
        let column = |node: usize| plan(schema.shape(node), options, true);
        return schema.children(0).map(column).collect();
    };
    let mut wanted = vec![false; schema.leaves().len()];
    for &leaf in leaves {
        match wanted.get_mut(leaf) {
            None => {
                return Err(Error::misuse(format!("leaf {leaf} of a schema of {}", schema.leaves().len())));
            }
            Some(true) => return Err(Error::misuse(format!("leaf {leaf} is asked for twice"))),
            Some(wanted) => *wanted = true,
        }
    }
    let only = ascending(leaves);
    // For each leaf, the root's child above it, until that was taken.
    let mut child_of = vec![None; schema.leaves().len()];
    for child in schema.children(0) {
        schema.leaves_of(child).for_each(|leaf| child_of[leaf] = Some(child));
    }
    let mut columns = Vec::new();
    for &leaf in leaves {
        let Some(child) = child_of[leaf] else { continue };
        schema.leaves_of(child).for_each(|leaf| child_of[leaf] = None);
        if let Some(shape) = schema.shape(child).only(&only) {
            columns.push(plan(shape, options, true)?);
        }
    }
    Ok(columns)
}

/// The fields of plans.
pub(crate) fn fields_of<'a>(plans: impl Iterator<Item = &'a Plan>) -> Fields {
    plans.map(|plan| Arc::clone(&plan.field)).collect()
}

/// The plan for a shape. `has_id`: the node's field id belongs to this field, not to a list around it.
fn plan(shape: Shape<'_>, options: ArrowOptions, has_id: bool) -> Result<Plan> {
    let schema = shape.schema();
    let node = &schema.nodes()[shape.node];
    let mut metadata = HashMap::new();
    if let Some(id) = node.field_id.filter(|_| has_id) {
        metadata.insert(FIELD_ID_KEY.to_owned(), id.to_string());
    }
    let element = |element: Shape<'_>| plan(element, options, element.node != shape.node).map(Box::new);
    let (data_type, kind) = match shape.kind()? {
        ShapeKind::Leaf => {
            let NodeKind::Leaf { leaf } = node.kind else {
                return Err(Error::internal("the shape of a leaf that is a group"));
            };
            let data_type = leaf_type(schema, &schema.leaves()[leaf], options)
                .map_err(|error| error.at(|place| place.column = Some(schema.leaf_path(leaf))))?;
            (data_type, PlanKind::Leaf(leaf))
        }
        ShapeKind::Struct(fields) => {
            let fields: Vec<Plan> = fields.map(|field| plan(field, options, true)).collect::<Result<_>>()?;
            (DataType::Struct(fields_of(fields.iter())), PlanKind::Struct(fields))
        }
        // A map without values is a set of keys, for which Arrow only has lists.
        ShapeKind::List(_, inner) | ShapeKind::Map(_, inner, None) => {
            let inner = element(inner)?;
            (DataType::List(Arc::clone(&inner.field)), PlanKind::List(inner))
        }
        ShapeKind::Map(_, key, Some(value)) => {
            let name = &schema.nodes()[schema.nodes()[key.node].parent].name;
            let (mut key, value) = (element(key)?, element(value)?);
            // Arrow's keys are never null. The format's should not be either; a null key is an error.
            if key.field.is_nullable() {
                key.field = Arc::new(key.field.as_ref().clone().with_nullable(false));
            }
            let fields = fields_of([&*key, &*value].into_iter());
            let entries: FieldRef = Arc::new(Field::new_struct(name, fields, false));
            (DataType::Map(Arc::clone(&entries), false), PlanKind::Map { entries, key, value })
        }
    };
    if matches!(kind, PlanKind::Leaf(_) | PlanKind::Struct(_))
        && let Some((name, of)) = node.logical_type.as_ref().and_then(extension)
    {
        metadata.insert(EXTENSION_TYPE_NAME_KEY.to_owned(), name.to_owned());
        metadata.insert(EXTENSION_TYPE_METADATA_KEY.to_owned(), of);
    }
    // All slots of Null are null, whatever the repetition says.
    let is_nullable = shape.is_nullable || data_type == DataType::Null;
    let field = Field::new(node.name_in_file(), data_type, is_nullable).with_metadata(metadata);
    Ok(Plan { node: shape.node, field: Arc::new(field), made: None, kind })
}

/// The Arrow type of a leaf.
fn leaf_type(schema: &Schema, leaf: &Leaf, options: ArrowOptions) -> Result<DataType> {
    let physical_type = leaf.physical_type;
    Ok(match schema.meaning_of(leaf).read_as(physical_type) {
        Meaning::Null => DataType::Null,
        Meaning::String | Meaning::Enum | Meaning::Json => DataType::Utf8View,
        Meaning::Decimal { precision, scale } => decimal_type(physical_type, precision, scale, options)?,
        Meaning::Date => DataType::Date32,
        Meaning::Time { unit: TimeUnit::Millis, .. } => DataType::Time32(time_unit(TimeUnit::Millis)),
        Meaning::Time { unit, .. } => DataType::Time64(time_unit(unit)),
        Meaning::Timestamp { unit, is_adjusted_to_utc } => {
            DataType::Timestamp(time_unit(unit), is_adjusted_to_utc.then(|| "UTC".into()))
        }
        Meaning::Int96 => DataType::Timestamp(time_unit(options.int96_unit), None),
        Meaning::Integer { bit_width, is_signed } => match (bit_width, is_signed) {
            (8, true) => DataType::Int8,
            (8, false) => DataType::UInt8,
            (16, true) => DataType::Int16,
            (16, false) => DataType::UInt16,
            (32, true) => DataType::Int32,
            (32, false) => DataType::UInt32,
            (64, true) => DataType::Int64,
            (64, false) => DataType::UInt64,
            _ => return Err(Error::unsupported(format!("integers of {bit_width} bits"))),
        },
        // pyarrow returns the twelve bytes, parquet-rs days and milliseconds without the months. This type has all
        // three.
        Meaning::Interval => DataType::Interval(IntervalUnit::MonthDayNano),
        Meaning::Boolean => DataType::Boolean,
        Meaning::Float16 => DataType::Float16,
        Meaning::Float => DataType::Float32,
        Meaning::Double => DataType::Float64,
        // `read_as` never returns the last of these.
        Meaning::Uuid
        | Meaning::Bson
        | Meaning::Bytes
        | Meaning::Geometry
        | Meaning::Geography
        | Meaning::Unrecognised => match physical_type {
            PhysicalType::FixedLenByteArray(width) => DataType::FixedSizeBinary(
                i32::try_from(width).map_err(|_| Error::unsupported(format!("values of {width} bytes")))?,
            ),
            _ => DataType::BinaryView,
        },
    })
}

/// By precision, as in pyarrow; parquet-rs goes by the width of a FIXED_LEN_BYTE_ARRAY.
fn decimal_type(
    physical_type: PhysicalType,
    precision: i32,
    scale: i32,
    options: ArrowOptions,
) -> Result<DataType> {
    let (Ok(digits), Ok(scale)) = (u8::try_from(precision), i8::try_from(scale)) else {
        return Err(Error::unsupported(format!("a decimal of {precision} digits")));
    };
    Ok(match (physical_type, digits) {
        (PhysicalType::Int32, 1..=DECIMAL32_MAX_PRECISION) if options.narrow_decimals => {
            DataType::Decimal32(digits, scale)
        }
        (PhysicalType::Int64, 1..=DECIMAL64_MAX_PRECISION) if options.narrow_decimals => {
            DataType::Decimal64(digits, scale)
        }
        (_, 1..=DECIMAL128_MAX_PRECISION) => DataType::Decimal128(digits, scale),
        (_, 1..=DECIMAL256_MAX_PRECISION) => DataType::Decimal256(digits, scale),
        _ => return Err(Error::unsupported(format!("a decimal of {precision} digits"))),
    })
}

fn time_unit(unit: TimeUnit) -> arrow_schema::TimeUnit {
    match unit {
        TimeUnit::Millis => arrow_schema::TimeUnit::Millisecond,
        TimeUnit::Micros => arrow_schema::TimeUnit::Microsecond,
        TimeUnit::Nanos => arrow_schema::TimeUnit::Nanosecond,
    }
}

/// The name and metadata of the extension type, for meanings that Arrow's own type does not express.
fn extension(logical_type: &LogicalType) -> Option<(&'static str, String)> {
    Some(match logical_type {
        LogicalType::Uuid => ("arrow.uuid", String::new()),
        LogicalType::Json => ("arrow.json", String::new()),
        LogicalType::Variant { .. } => ("arrow.parquet.variant", String::new()),
        LogicalType::Geometry { crs } => ("geoarrow.wkb", geo_metadata(crs.as_deref(), None)),
        LogicalType::Geography { crs, algorithm } => {
            let edges = algorithm.unwrap_or(EdgeAlgorithm::Spherical);
            ("geoarrow.wkb", geo_metadata(crs.as_deref(), Some(edges)))
        }
        _ => return None,
    })
}

/// GeoArrow's metadata, as Arrow C++ writes it: `{"crs":"OGC:CRS84","crs_type":"authority_code","edges":"spherical"}`.
fn geo_metadata(crs: Option<&str>, edges: Option<EdgeAlgorithm>) -> String {
    // Only what JSON requires is escaped, as in Arrow C++.
    let quoted = |text: &str| {
        let mut json = Vec::new();
        print::json::escape(&mut json, text);
        format!("\"{}\"", String::from_utf8_lossy(&json))
    };
    let mut json = String::from("{\"crs\":");
    match crs {
        None | Some("") => json.push_str("\"OGC:CRS84\",\"crs_type\":\"authority_code\""),
        Some(crs) => match crs.strip_prefix("srid:") {
            Some(srid) => {
                json.push_str(&quoted(srid));
                json.push_str(",\"crs_type\":\"srid\"");
            }
            None => json.push_str(&quoted(crs)),
        },
    }
    let edges = edges.and_then(|edges| match edges {
        EdgeAlgorithm::Spherical => Some("spherical"),
        EdgeAlgorithm::Vincenty => Some("vincenty"),
        EdgeAlgorithm::Thomas => Some("thomas"),
        EdgeAlgorithm::Andoyer => Some("andoyer"),
        EdgeAlgorithm::Karney => Some("karney"),
        EdgeAlgorithm::Unknown(_) => None,
    });
    if let Some(edges) = edges {
        json.push_str(",\"edges\":");
        json.push_str(&quoted(edges));
    }
    json.push('}');
    json
}
