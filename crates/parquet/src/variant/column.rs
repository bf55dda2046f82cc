//! The types of shredded values' columns.
//!
//! Source: `VariantShredding.md`, "Shredded Value Types".

use alloc::format;

use marquetry_base::{Error, Result, twos_complement};

use super::Primitive;
use crate::schema::{LogicalType, Meaning, PhysicalType, TimeUnit};

/// The type of a column `typed_value` that holds primitives: converts the column's values to [`Primitive`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShreddedType {
    physical_type: PhysicalType,
    meaning: Meaning,
}

/// Maximum digits of a decimal.
const DECIMAL_PRECISION_MAX: i32 = 38;

impl ShreddedType {
    /// The type of a column.
    ///
    /// # Errors
    ///
    /// `Unsupported` for a type that the format does not allow for shredding.
    pub fn new(physical_type: PhysicalType, logical_type: Option<&LogicalType>) -> Result<ShreddedType> {
        let meaning = Meaning::of(physical_type, logical_type);
        let is_shredded = match meaning {
            Meaning::Boolean
            | Meaning::Integer { is_signed: true, .. }
            | Meaning::Float
            | Meaning::Double
            | Meaning::Decimal { precision: 1..=DECIMAL_PRECISION_MAX, .. }
            | Meaning::Date
            | Meaning::Time { unit: TimeUnit::Micros, is_adjusted_to_utc: false }
            | Meaning::Timestamp { unit: TimeUnit::Micros | TimeUnit::Nanos, .. }
            | Meaning::String
            | Meaning::Uuid => true,
            Meaning::Bytes => physical_type == PhysicalType::ByteArray,
            _ => false,
        };
        if is_shredded {
            return Ok(ShreddedType { physical_type, meaning });
        }
        Err(Error::unsupported(match logical_type {
            Some(logical_type) => format!("a variant shredded as {physical_type} {logical_type}"),
            None => format!("a variant shredded as {physical_type}"),
        }))
    }

    /// The value that a BOOLEAN is.
    ///
    /// # Errors
    ///
    /// `Misuse` for a column of another type.
    pub fn boolean(&self, value: bool) -> Result<Primitive<'static>> {
        match self.physical_type {
            PhysicalType::Boolean => Ok(Primitive::Boolean(value)),
            _ => Err(self.misused()),
        }
    }

    /// The value that an INT32 is.
    ///
    /// # Errors
    ///
    /// `Corrupt` for one beyond its logical type's bits; `Misuse` for a column of another type.
    pub fn int32(&self, value: i32) -> Result<Primitive<'static>> {
        let beyond = |_| Error::corrupt(format!("the shredded value {value} has more bits than its type"));
        match (self.meaning, self.physical_type) {
            (Meaning::Integer { bit_width: 8, .. }, _) => {
                value.try_into().map(Primitive::Int8).map_err(beyond)
            }
            (Meaning::Integer { bit_width: 16, .. }, _) => {
                value.try_into().map(Primitive::Int16).map_err(beyond)
            }
            (Meaning::Integer { bit_width: 32, .. }, _) => Ok(Primitive::Int32(value)),
            (Meaning::Date, _) => Ok(Primitive::Date(value)),
            (Meaning::Decimal { scale, .. }, PhysicalType::Int32) => {
                Ok(Primitive::Decimal4 { unscaled: value, scale: self.scale(scale)? })
            }
            _ => Err(self.misused()),
        }
    }

    /// The value that an INT64 is.
    ///
    /// # Errors
    ///
    /// `Misuse` for a column of another type.
    pub fn int64(&self, value: i64) -> Result<Primitive<'static>> {
        match (self.meaning, self.physical_type) {
            (Meaning::Integer { bit_width: 64, .. }, _) => Ok(Primitive::Int64(value)),
            (Meaning::Decimal { scale, .. }, PhysicalType::Int64) => {
                Ok(Primitive::Decimal8 { unscaled: value, scale: self.scale(scale)? })
            }
            (Meaning::Time { .. }, _) => Ok(Primitive::Time(value)),
            (Meaning::Timestamp { unit, is_adjusted_to_utc }, _) => Ok(match (unit, is_adjusted_to_utc) {
                (TimeUnit::Nanos, true) => Primitive::TimestampNanos(value),
                (TimeUnit::Nanos, false) => Primitive::TimestampNtzNanos(value),
                (_, true) => Primitive::Timestamp(value),
                (_, false) => Primitive::TimestampNtz(value),
            }),
            _ => Err(self.misused()),
        }
    }

    /// The value that a FLOAT is.
    ///
    /// # Errors
    ///
    /// `Misuse` for a column of another type.
    pub fn float(&self, value: f32) -> Result<Primitive<'static>> {
        match self.physical_type {
            PhysicalType::Float => Ok(Primitive::Float(value)),
            _ => Err(self.misused()),
        }
    }

    /// The value that a DOUBLE is.
    ///
    /// # Errors
    ///
    /// `Misuse` for a column of another type.
    pub fn double(&self, value: f64) -> Result<Primitive<'static>> {
        match self.physical_type {
            PhysicalType::Double => Ok(Primitive::Double(value)),
            _ => Err(self.misused()),
        }
    }

    /// Converts a BYTE_ARRAY or FIXED_LEN_BYTE_ARRAY.
    ///
    /// # Errors
    ///
    /// `Corrupt` for text that is not UTF-8, or a decimal of more than 16 bytes; `Misuse` for a column of another type.
    pub fn bytes<'a>(&self, value: &'a [u8]) -> Result<Primitive<'a>> {
        match (self.meaning, self.physical_type) {
            (Meaning::Bytes, _) => Ok(Primitive::Binary(value)),
            (Meaning::String, _) => match core::str::from_utf8(value) {
                Ok(text) => Ok(Primitive::String(text)),
                Err(_) => Err(super::value::not_utf8()),
            },
            (Meaning::Uuid, _) => value.try_into().map(Primitive::Uuid).map_err(|_| self.misused()),
            (
                Meaning::Decimal { scale, .. },
                PhysicalType::ByteArray | PhysicalType::FixedLenByteArray(_),
            ) => Ok(Primitive::Decimal16 { unscaled: big_endian(value)?, scale: self.scale(scale)? }),
            _ => Err(self.misused()),
        }
    }

    /// A scale is no more than the precision.
    fn scale(&self, scale: i32) -> Result<u8> {
        u8::try_from(scale).map_err(|_| self.misused())
    }

    fn misused(&self) -> Error {
        Error::misuse(format!("a shredded value of another type than its column's, {}", self.physical_type))
    }
}

/// A number in two's complement, most significant byte first. In longer ones, the excess may only repeat the sign.
fn big_endian(bytes: &[u8]) -> Result<i128> {
    twos_complement::to_i128(bytes).ok_or_else(|| {
        Error::corrupt(format!("a shredded decimal of {} bytes is beyond 128 bits", bytes.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_base::ErrorKind;

    #[test]
    fn the_document_s_table() {
        use LogicalType as L;
        use PhysicalType as P;
        let of =
            |physical_type, logical_type: L| ShreddedType::new(physical_type, Some(&logical_type)).unwrap();
        let plain = |physical_type| ShreddedType::new(physical_type, None).unwrap();
        let int = |bit_width| L::Integer { bit_width, is_signed: true };
        let timestamp = |is_adjusted_to_utc, unit| L::Timestamp { is_adjusted_to_utc, unit };
        let decimal = |precision| L::Decimal { scale: 2, precision };
        let time = L::Time { is_adjusted_to_utc: false, unit: TimeUnit::Micros };
        for (made, wanted) in [
            (plain(P::Boolean).boolean(true), Primitive::Boolean(true)),
            (of(P::Int32, int(8)).int32(-128), Primitive::Int8(-128)),
            (of(P::Int32, int(16)).int32(-129), Primitive::Int16(-129)),
            (of(P::Int32, int(32)).int32(1), Primitive::Int32(1)),
            (plain(P::Int32).int32(1), Primitive::Int32(1)),
            (of(P::Int64, int(64)).int64(1), Primitive::Int64(1)),
            (plain(P::Int64).int64(1), Primitive::Int64(1)),
            (plain(P::Float).float(0.5), Primitive::Float(0.5)),
            (plain(P::Double).double(0.5), Primitive::Double(0.5)),
            (of(P::Int32, decimal(9)).int32(-5), Primitive::Decimal4 { unscaled: -5, scale: 2 }),
            (of(P::Int64, decimal(18)).int64(-5), Primitive::Decimal8 { unscaled: -5, scale: 2 }),
            (of(P::ByteArray, decimal(38)).bytes(&[0xfb]), Primitive::Decimal16 { unscaled: -5, scale: 2 }),
            (
                of(P::FixedLenByteArray(17), decimal(38)).bytes(&[0xff; 17]),
                Primitive::Decimal16 { unscaled: -1, scale: 2 },
            ),
            (of(P::ByteArray, decimal(38)).bytes(&[]), Primitive::Decimal16 { unscaled: 0, scale: 2 }),
            (of(P::Int32, L::Date).int32(7), Primitive::Date(7)),
            (of(P::Int64, time).int64(7), Primitive::Time(7)),
            (of(P::Int64, timestamp(true, TimeUnit::Micros)).int64(7), Primitive::Timestamp(7)),
            (of(P::Int64, timestamp(true, TimeUnit::Nanos)).int64(7), Primitive::TimestampNanos(7)),
            (of(P::Int64, timestamp(false, TimeUnit::Micros)).int64(7), Primitive::TimestampNtz(7)),
            (of(P::Int64, timestamp(false, TimeUnit::Nanos)).int64(7), Primitive::TimestampNtzNanos(7)),
            (plain(P::ByteArray).bytes(b"\xff"), Primitive::Binary(b"\xff")),
            (of(P::ByteArray, L::String).bytes(b"text"), Primitive::String("text")),
            (of(P::FixedLenByteArray(16), L::Uuid).bytes(&[3; 16]), Primitive::Uuid([3; 16])),
        ] {
            assert_eq!(made.unwrap(), wanted);
        }
        for (physical_type, logical_type, message) in [
            (
                P::Int32,
                Some(L::Integer { bit_width: 32, is_signed: false }),
                "a variant shredded as INT32 UINT(32)",
            ),
            (P::FixedLenByteArray(4), None, "a variant shredded as FIXED_LEN_BYTE_ARRAY(4)"),
            (P::Int96, None, "a variant shredded as INT96"),
            (P::ByteArray, Some(L::Json), "a variant shredded as BYTE_ARRAY JSON"),
        ] {
            let error = ShreddedType::new(physical_type, logical_type.as_ref()).unwrap_err();
            assert_eq!((error.kind(), error.message()), (ErrorKind::Unsupported, message));
        }
        for logical_type in [
            timestamp(true, TimeUnit::Millis),
            L::Decimal { scale: 39, precision: 39 },
            L::Decimal { scale: -1, precision: 3 },
            int(8),
            L::Time { is_adjusted_to_utc: true, unit: TimeUnit::Micros },
        ] {
            assert!(ShreddedType::new(P::Int64, Some(&logical_type)).is_err(), "{logical_type}");
        }
    }

    #[test]
    fn values_that_their_type_cannot_have() {
        use PhysicalType as P;
        let int8 = LogicalType::Integer { bit_width: 8, is_signed: true };
        let int8 = ShreddedType::new(P::Int32, Some(&int8)).unwrap();
        assert_eq!(int8.int32(128).unwrap_err().kind(), ErrorKind::Corrupt);
        let text = ShreddedType::new(P::ByteArray, Some(&LogicalType::String)).unwrap();
        assert_eq!(text.bytes(b"\xff").unwrap_err().kind(), ErrorKind::Corrupt);
        for wrong in [text.int32(1), text.int64(1), text.boolean(true), text.float(1.0), int8.bytes(b"")] {
            assert_eq!(wrong.unwrap_err().kind(), ErrorKind::Misuse);
        }
        for (bytes, wanted) in [
            (&[1; 17][..], None),
            (&[0xfe; 17], None),
            (&[0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], None),
            (&[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], Some(i128::MIN)),
            (&[0, 0, 1, 0], Some(256)),
        ] {
            assert_eq!(big_endian(bytes).ok(), wanted);
        }
    }
}
