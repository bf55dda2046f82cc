//! Writes an element of the schema (`SchemaElement`, `LogicalType`).

use super::chunk::number_of;
use crate::schema::{
    ConvertedType, EdgeAlgorithm, LogicalType, Node, NodeKind, PhysicalType, Repetition, Schema, TimeUnit,
};
use crate::thrift::{FieldWriter, Writer};

/// Writes a node with this many children. With `completes_types`, a logical type is also written as its equivalent
/// converted type.
pub(crate) fn write_element(
    writer: &mut Writer,
    schema: &Schema,
    index: usize,
    node: &Node,
    children: u32,
    completes_types: bool,
) {
    let same = || node.logical_type.as_ref().filter(|_| completes_types).and_then(ConvertedType::of);
    let converted_type = node.converted_type.or_else(same);
    writer.structure(|fields| {
        if let NodeKind::Leaf { leaf } = node.kind {
            let physical_type = schema.leaves()[leaf].physical_type;
            fields.i32(1, number_of(physical_type));
            if let PhysicalType::FixedLenByteArray(width) = physical_type {
                fields.u32(2, width);
            }
        }
        // The root's repetition is meaningless, so none is written.
        if index > 0 {
            fields.i32(3, number_of_repetition(node.repetition));
        }
        fields.binary(4, node.name_in_file().as_bytes());
        if let NodeKind::Group { .. } = node.kind {
            fields.u32(5, children);
        }
        if let Some(converted_type) = converted_type {
            fields.i32(6, converted_type.0);
        }
        if let Some(LogicalType::Decimal { scale, precision }) = node.logical_type {
            fields.i32(7, scale);
            fields.i32(8, precision);
        }
        if let Some(id) = node.field_id {
            fields.i32(9, id);
        }
        if let Some(logical_type) = &node.logical_type
            && !(node.is_older_only && converted_type.is_some())
            && !matches!(logical_type, LogicalType::Interval | LogicalType::MapKeyValue)
        {
            fields.structure(10, |fields| write_logical_type(fields, logical_type));
        }
    });
}

/// Writes the one field of the union `LogicalType`. INTERVAL and `MAP_KEY_VALUE` have none: they exist only as
/// converted types.
fn write_logical_type(fields: &mut FieldWriter<'_>, logical_type: &LogicalType) {
    let mut time = |id, is_adjusted_to_utc, unit| {
        fields.structure(id, |fields| {
            fields.bool(1, is_adjusted_to_utc);
            fields.structure(2, |fields| {
                fields.empty(match unit {
                    TimeUnit::Millis => 1,
                    TimeUnit::Micros => 2,
                    TimeUnit::Nanos => 3,
                });
            });
        });
    };
    match logical_type {
        LogicalType::Interval | LogicalType::MapKeyValue => {}
        LogicalType::String => fields.empty(1),
        LogicalType::Map => fields.empty(2),
        LogicalType::List => fields.empty(3),
        LogicalType::Enum => fields.empty(4),
        LogicalType::Decimal { scale, precision } => fields.structure(5, |fields| {
            fields.i32(1, *scale);
            fields.i32(2, *precision);
        }),
        LogicalType::Date => fields.empty(6),
        LogicalType::Time { is_adjusted_to_utc, unit } => time(7, *is_adjusted_to_utc, *unit),
        LogicalType::Timestamp { is_adjusted_to_utc, unit } => time(8, *is_adjusted_to_utc, *unit),
        LogicalType::Integer { bit_width, is_signed } => fields.structure(10, |fields| {
            fields.i8(1, bit_width.cast_signed());
            fields.bool(2, *is_signed);
        }),
        LogicalType::Unknown => fields.empty(11),
        LogicalType::Json => fields.empty(12),
        LogicalType::Bson => fields.empty(13),
        LogicalType::Uuid => fields.empty(14),
        LogicalType::Float16 => fields.empty(15),
        LogicalType::Variant { version } => fields.structure(16, |fields| {
            if let Some(version) = version {
                fields.i8(1, *version);
            }
        }),
        LogicalType::Geometry { crs } => fields.structure(17, |fields| {
            if let Some(crs) = crs {
                fields.binary(1, crs.as_bytes());
            }
        }),
        LogicalType::Geography { crs, algorithm } => fields.structure(18, |fields| {
            if let Some(crs) = crs {
                fields.binary(1, crs.as_bytes());
            }
            if let Some(algorithm) = algorithm {
                fields.i32(2, number_of_algorithm(*algorithm));
            }
        }),
        LogicalType::File => fields.empty(19),
        LogicalType::Unrecognised { number, .. } => fields.empty(*number),
    }
}

fn number_of_repetition(repetition: Repetition) -> i32 {
    match repetition {
        Repetition::Required => 0,
        Repetition::Optional => 1,
        Repetition::Repeated => 2,
    }
}

fn number_of_algorithm(algorithm: EdgeAlgorithm) -> i32 {
    match algorithm {
        EdgeAlgorithm::Spherical => 0,
        EdgeAlgorithm::Vincenty => 1,
        EdgeAlgorithm::Thomas => 2,
        EdgeAlgorithm::Andoyer => 3,
        EdgeAlgorithm::Karney => 4,
        EdgeAlgorithm::Unknown(number) => number,
    }
}
