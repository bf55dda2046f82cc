//! Single values.

use marquetry_base::cast;

use super::Values;
use crate::schema::PhysicalType;

/// A leaf's value, as its physical type holds it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// BOOLEAN.
    Boolean(bool),
    /// INT32.
    Int32(i32),
    /// INT64.
    Int64(i64),
    /// FLOAT.
    Float(f32),
    /// DOUBLE.
    Double(f64),
    /// INT96, BYTE_ARRAY and FIXED_LEN_BYTE_ARRAY.
    Bytes(&'a [u8]),
}

impl Value<'_> {
    /// A value of a batch. `None` beyond the last.
    #[inline]
    pub fn of_values(values: &Values, at: usize) -> Option<Value<'_>> {
        Some(match values {
            Values::Boolean(bits) => Value::Boolean((at < bits.len()).then(|| bits.get(at))?),
            Values::Int32(values) => Value::Int32(*values.get(at)?),
            Values::Int64(values) => Value::Int64(*values.get(at)?),
            Values::Float(values) => Value::Float(*values.get(at)?),
            Values::Double(values) => Value::Double(*values.get(at)?),
            Values::ByteArray(values) => Value::Bytes((at < values.len()).then(|| values.get(at))?),
            Values::Int96(values) | Values::FixedLenByteArray(values) => {
                Value::Bytes((at < values.len()).then(|| values.get(at))?)
            }
            Values::Dictionary(indices, values) => {
                return Value::of_values(values, cast::usize_of_u32(*indices.get(at)?));
            }
        })
    }

    /// A bound from statistics, which is PLAIN-encoded. `None` if it does not have the type's length.
    pub fn of_bound(physical_type: PhysicalType, bytes: &[u8]) -> Option<Value<'_>> {
        Some(match physical_type {
            PhysicalType::Boolean => match bytes {
                [byte] => Value::Boolean(byte & 1 == 1),
                _ => return None,
            },
            PhysicalType::Int32 => Value::Int32(i32::from_le_bytes(bytes.try_into().ok()?)),
            PhysicalType::Int64 => Value::Int64(i64::from_le_bytes(bytes.try_into().ok()?)),
            PhysicalType::Float => Value::Float(f32::from_le_bytes(bytes.try_into().ok()?)),
            PhysicalType::Double => Value::Double(f64::from_le_bytes(bytes.try_into().ok()?)),
            PhysicalType::Int96 => Value::Bytes((bytes.len() == 12).then_some(bytes)?),
            // Bounds may be truncated.
            PhysicalType::ByteArray | PhysicalType::FixedLenByteArray(_) => Value::Bytes(bytes),
        })
    }
}
