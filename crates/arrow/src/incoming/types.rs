//! The Parquet types of an Arrow schema.

use arrow_schema::extension::EXTENSION_TYPE_NAME_KEY;
use arrow_schema::{DataType, Field, IntervalUnit, TimeUnit as Unit};
use marquetry_base::{Error, Result};
use marquetry_parquet::schema::{FieldDef, FieldType, LogicalType, PhysicalType, TimeUnit};

use crate::schema::FIELD_ID_KEY;

/// The deepest nesting of types. A Parquet schema has a limit of its own, which is reported first.
const DEPTH_MAX: usize = 64;

/// The columns of a schema.
pub(super) fn fields(schema: &arrow_schema::Schema) -> Result<Vec<FieldDef>> {
    schema.fields().iter().map(|field| def(field, 1)).collect()
}

fn def(field: &Field, depth: usize) -> Result<FieldDef> {
    let field_type = field_type(field, depth).map_err(|error| {
        let path = match &error.place().column {
            Some(below) => format!("{}.{below}", field.name()),
            None => field.name().clone(),
        };
        error.replaced(|place| place.column = Some(path))
    })?;
    let field_id = field.metadata().get(FIELD_ID_KEY).and_then(|id| id.parse().ok());
    // All values of Null are null, whatever its field says.
    let is_nullable = field.is_nullable() || *field.data_type() == DataType::Null;
    Ok(FieldDef { name: field.name().clone(), is_nullable, field_id, field_type })
}

fn field_type(field: &Field, depth: usize) -> Result<FieldType> {
    if depth > DEPTH_MAX {
        let what = format!("types nested more than {DEPTH_MAX} deep");
        return Err(Error::too_large(what));
    }
    let extension = field.metadata().get(EXTENSION_TYPE_NAME_KEY).map(String::as_str);
    let below = |field: &Field| def(field, depth + 1).map(Box::new);
    Ok(match field.data_type() {
        DataType::Struct(fields) if fields.is_empty() => {
            return Err(Error::unsupported("a struct without fields"));
        }
        DataType::Struct(fields) => {
            let fields = fields.iter().map(|field| def(field, depth + 1)).collect::<Result<_>>()?;
            let is_variant = extension == Some("arrow.parquet.variant");
            FieldType::Struct(fields, is_variant.then_some(LogicalType::Variant { version: None }))
        }
        DataType::List(element) | DataType::LargeList(element) | DataType::FixedSizeList(element, _) => {
            FieldType::List(below(element)?)
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) if pair.len() == 2 => {
                let key = below(&pair[0])?.required();
                FieldType::Map(Box::new(key), Some(below(&pair[1])?))
            }
            _ => return Err(Error::misuse("a map whose entries are not pairs")),
        },
        DataType::Dictionary(_, values) => {
            let (physical, logical) = leaf(values, extension)?;
            FieldType::Leaf(physical, logical)
        }
        other => {
            let (physical, logical) = leaf(other, extension)?;
            FieldType::Leaf(physical, logical)
        }
    })
}

/// How a leaf type is written. Times in seconds are written as milliseconds, because Parquet has no seconds.
fn leaf(data_type: &DataType, extension: Option<&str>) -> Result<(PhysicalType, Option<LogicalType>)> {
    use PhysicalType::{Boolean, ByteArray, Double, FixedLenByteArray, Float, Int32, Int64};
    let integer = |bit_width, is_signed| Some(LogicalType::Integer { bit_width, is_signed });
    let time = |unit| Some(LogicalType::Time { is_adjusted_to_utc: false, unit });
    Ok(match data_type {
        DataType::Null => (Int32, Some(LogicalType::Unknown)),
        DataType::Boolean => (Boolean, None),
        DataType::Int8 => (Int32, integer(8, true)),
        DataType::Int16 => (Int32, integer(16, true)),
        DataType::Int32 => (Int32, None),
        DataType::Int64 | DataType::Duration(_) => (Int64, None),
        DataType::UInt8 => (Int32, integer(8, false)),
        DataType::UInt16 => (Int32, integer(16, false)),
        DataType::UInt32 => (Int32, integer(32, false)),
        DataType::UInt64 => (Int64, integer(64, false)),
        DataType::Float16 => (FixedLenByteArray(2), Some(LogicalType::Float16)),
        DataType::Float32 => (Float, None),
        DataType::Float64 => (Double, None),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let is_json = extension == Some("arrow.json");
            (ByteArray, Some(if is_json { LogicalType::Json } else { LogicalType::String }))
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => (ByteArray, None),
        DataType::FixedSizeBinary(width) => {
            let width = u32::try_from(*width).ok().filter(|width| *width > 0);
            let width = width.ok_or_else(|| Error::unsupported("values of no bytes"))?;
            let is_uuid = extension == Some("arrow.uuid") && width == 16;
            (FixedLenByteArray(width), is_uuid.then_some(LogicalType::Uuid))
        }
        DataType::Date32 | DataType::Date64 => (Int32, Some(LogicalType::Date)),
        DataType::Time32(_) => (Int32, time(TimeUnit::Millis)),
        DataType::Time64(Unit::Microsecond) => (Int64, time(TimeUnit::Micros)),
        DataType::Time64(_) => (Int64, time(TimeUnit::Nanos)),
        DataType::Timestamp(unit, zone) => {
            let unit = match unit {
                Unit::Second | Unit::Millisecond => TimeUnit::Millis,
                Unit::Microsecond => TimeUnit::Micros,
                Unit::Nanosecond => TimeUnit::Nanos,
            };
            (Int64, Some(LogicalType::Timestamp { is_adjusted_to_utc: zone.is_some(), unit }))
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            (FixedLenByteArray(12), Some(LogicalType::Interval))
        }
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => {
            if *scale < 0 {
                return Err(Error::unsupported(format!("decimals of the scale {scale}")));
            }
            let decimal = LogicalType::Decimal { scale: (*scale).into(), precision: (*precision).into() };
            let physical = match precision {
                0..=9 => Int32,
                10..=18 => Int64,
                _ => FixedLenByteArray(decimal_bytes(*precision)),
            };
            (physical, Some(decimal))
        }
        other => return Err(Error::unsupported(format!("Parquet has no type for {other}"))),
    })
}

/// The number of bytes that hold every decimal of this precision, with its sign.
pub(super) fn decimal_bytes(precision: u8) -> u32 {
    // log2(10) is less than 3.322.
    let bits = u32::from(precision) * 3322 / 1000 + 2;
    bits.div_ceil(8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_buffer::i256;

    #[test]
    fn decimals_have_room() {
        for precision in 1..=76_u8 {
            let largest = (0..precision).fold(i256::ZERO, |value, _| {
                value.wrapping_mul(i256::from_i128(10)).wrapping_add(i256::from_i128(9))
            });
            let bytes = usize::try_from(decimal_bytes(precision)).unwrap();
            let held = largest.to_be_bytes();
            assert!(
                held[..32 - bytes].iter().all(|byte| *byte == 0) && held[32 - bytes] < 0x80,
                "{precision}"
            );
        }
    }
}
