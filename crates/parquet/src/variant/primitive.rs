//! Values that contain no others.
//!
//! Source: `VariantEncoding.md`, "Encoding types".

use alloc::format;
use alloc::vec::Vec;

use marquetry_base::{Error, Result};

/// A value that contains no others.
///
/// The columns `typed_value` of shredded variants hold them too: [`ShreddedType`](super::ShreddedType) converts the
/// values of such a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Primitive<'a> {
    /// Null, which is a value and not the absence of one.
    Null,
    /// BOOLEAN.
    Boolean(bool),
    /// INT(8, true).
    Int8(i8),
    /// INT(16, true).
    Int16(i16),
    /// INT(32, true).
    Int32(i32),
    /// INT(64, true).
    Int64(i64),
    /// FLOAT.
    Float(f32),
    /// DOUBLE.
    Double(f64),
    /// `unscaled × 10^-scale`, of at most 9 digits.
    Decimal4 {
        /// The digits.
        unscaled: i32,
        /// Digits after the point, at most [`Primitive::SCALE_MAX`].
        scale: u8,
    },
    /// `unscaled × 10^-scale`, of at most 18 digits.
    Decimal8 {
        /// The digits.
        unscaled: i64,
        /// Digits after the point, at most [`Primitive::SCALE_MAX`].
        scale: u8,
    },
    /// `unscaled × 10^-scale`, of at most 38 digits.
    Decimal16 {
        /// The digits.
        unscaled: i128,
        /// Digits after the point, at most [`Primitive::SCALE_MAX`].
        scale: u8,
    },
    /// Days since 1970-01-01.
    Date(i32),
    /// Microseconds since midnight, in no time zone.
    Time(i64),
    /// Microseconds since 1970, UTC.
    Timestamp(i64),
    /// Microseconds since 1970, in no time zone.
    TimestampNtz(i64),
    /// Nanoseconds since 1970, UTC.
    TimestampNanos(i64),
    /// Nanoseconds since 1970, in no time zone.
    TimestampNtzNanos(i64),
    /// Bytes.
    Binary(&'a [u8]),
    /// Text.
    String(&'a str),
    /// A UUID, its bytes as they are written.
    Uuid([u8; 16]),
}

/// The numbers of the types in a value's header.
mod type_id {
    pub(super) const NULL: u8 = 0;
    pub(super) const TRUE: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const INT8: u8 = 3;
    pub(super) const INT16: u8 = 4;
    pub(super) const INT32: u8 = 5;
    pub(super) const INT64: u8 = 6;
    pub(super) const DOUBLE: u8 = 7;
    pub(super) const DECIMAL4: u8 = 8;
    pub(super) const DECIMAL8: u8 = 9;
    pub(super) const DECIMAL16: u8 = 10;
    pub(super) const DATE: u8 = 11;
    pub(super) const TIMESTAMP: u8 = 12;
    pub(super) const TIMESTAMP_NTZ: u8 = 13;
    pub(super) const FLOAT: u8 = 14;
    pub(super) const BINARY: u8 = 15;
    pub(super) const STRING: u8 = 16;
    pub(super) const TIME: u8 = 17;
    pub(super) const TIMESTAMP_NANOS: u8 = 18;
    pub(super) const TIMESTAMP_NTZ_NANOS: u8 = 19;
    pub(super) const UUID: u8 = 20;
}

/// The longest text whose length fits into the header.
const SHORT_STRING_BYTES_MAX: usize = 63;

/// The basic types, the two low bits of a value's first byte.
pub(super) const BASIC_PRIMITIVE: u8 = 0;
pub(super) const BASIC_SHORT_STRING: u8 = 1;
pub(super) const BASIC_OBJECT: u8 = 2;
pub(super) const BASIC_ARRAY: u8 = 3;

/// A primitive, except that text is not yet checked to be UTF-8.
pub(super) enum Raw<'a> {
    Text(&'a [u8]),
    Other(Primitive<'a>),
}

/// The length in bytes of the data after the header of a primitive of type `id`; `data` begins with it.
pub(super) fn data_bytes(id: u8, data: &[u8]) -> Result<usize> {
    Ok(match id {
        type_id::NULL | type_id::TRUE | type_id::FALSE => 0,
        type_id::INT8 => 1,
        type_id::INT16 => 2,
        type_id::INT32 | type_id::DATE | type_id::FLOAT => 4,
        type_id::INT64
        | type_id::DOUBLE
        | type_id::TIMESTAMP
        | type_id::TIMESTAMP_NTZ
        | type_id::TIME
        | type_id::TIMESTAMP_NANOS
        | type_id::TIMESTAMP_NTZ_NANOS => 8,
        type_id::DECIMAL4 => 5,
        type_id::DECIMAL8 => 9,
        type_id::DECIMAL16 => 17,
        type_id::UUID => 16,
        type_id::BINARY | type_id::STRING => {
            super::number(data, 0, 4).and_then(|length| length.checked_add(4)).ok_or_else(cut_off)?
        }
        _ => return Err(Error::unsupported(format!("a variant of primitive type {id}"))),
    })
}

/// The primitive of type `id` that `data` is.
pub(super) fn read(id: u8, data: &[u8]) -> Result<Raw<'_>> {
    use Primitive as P;
    Ok(Raw::Other(match id {
        type_id::NULL => P::Null,
        type_id::TRUE => P::Boolean(true),
        type_id::FALSE => P::Boolean(false),
        type_id::INT8 => P::Int8(i8::from_le_bytes(array(data)?)),
        type_id::INT16 => P::Int16(i16::from_le_bytes(array(data)?)),
        type_id::INT32 => P::Int32(i32::from_le_bytes(array(data)?)),
        type_id::INT64 => P::Int64(int64(data)?),
        type_id::DOUBLE => P::Double(f64::from_le_bytes(array(data)?)),
        type_id::FLOAT => P::Float(f32::from_le_bytes(array(data)?)),
        type_id::DECIMAL4 => {
            let (scale, digits) = decimal(data)?;
            P::Decimal4 { unscaled: i32::from_le_bytes(array(digits)?), scale }
        }
        type_id::DECIMAL8 => {
            let (scale, digits) = decimal(data)?;
            P::Decimal8 { unscaled: int64(digits)?, scale }
        }
        type_id::DECIMAL16 => {
            let (scale, digits) = decimal(data)?;
            P::Decimal16 { unscaled: i128::from_le_bytes(array(digits)?), scale }
        }
        type_id::DATE => P::Date(i32::from_le_bytes(array(data)?)),
        type_id::TIME => P::Time(int64(data)?),
        type_id::TIMESTAMP => P::Timestamp(int64(data)?),
        type_id::TIMESTAMP_NTZ => P::TimestampNtz(int64(data)?),
        type_id::TIMESTAMP_NANOS => P::TimestampNanos(int64(data)?),
        type_id::TIMESTAMP_NTZ_NANOS => P::TimestampNtzNanos(int64(data)?),
        type_id::UUID => P::Uuid(array(data)?),
        type_id::BINARY => P::Binary(data.get(4..).ok_or_else(cut_off)?),
        type_id::STRING => return Ok(Raw::Text(data.get(4..).ok_or_else(cut_off)?)),
        _ => return Err(Error::unsupported(format!("a variant of primitive type {id}"))),
    }))
}

fn array<const N: usize>(data: &[u8]) -> Result<[u8; N]> {
    data.try_into().map_err(|_| cut_off())
}

fn int64(data: &[u8]) -> Result<i64> {
    Ok(i64::from_le_bytes(array(data)?))
}

fn decimal(data: &[u8]) -> Result<(u8, &[u8])> {
    match data.split_first() {
        Some((&scale, digits)) if scale <= Primitive::SCALE_MAX => Ok((scale, digits)),
        Some((scale, _)) => Err(Error::corrupt(format!("a variant's decimal of scale {scale}"))),
        None => Err(cut_off()),
    }
}

impl Primitive<'_> {
    /// The largest scale of a decimal.
    pub const SCALE_MAX: u8 = 38;

    /// Encodes the value to the end of `out`.
    ///
    /// # Errors
    ///
    /// `Misuse` for a scale above [`Primitive::SCALE_MAX`]; `Conversion` for text or bytes of more than 4 GiB.
    pub(super) fn encode(&self, out: &mut Vec<u8>) -> Result<()> {
        if let Primitive::Decimal4 { scale, .. }
        | Primitive::Decimal8 { scale, .. }
        | Primitive::Decimal16 { scale, .. } = *self
            && scale > Primitive::SCALE_MAX
        {
            return Err(Error::misuse(format!("a variant's decimal of scale {scale}")));
        }
        let mut put = |id: u8, parts: [&[u8]; 2]| {
            out.push(id << 2 | BASIC_PRIMITIVE);
            parts.iter().for_each(|part| out.extend_from_slice(part));
        };
        match *self {
            Primitive::Null => put(type_id::NULL, [&[], &[]]),
            Primitive::Boolean(true) => put(type_id::TRUE, [&[], &[]]),
            Primitive::Boolean(false) => put(type_id::FALSE, [&[], &[]]),
            Primitive::Int8(value) => put(type_id::INT8, [&value.to_le_bytes(), &[]]),
            Primitive::Int16(value) => put(type_id::INT16, [&value.to_le_bytes(), &[]]),
            Primitive::Int32(value) => put(type_id::INT32, [&value.to_le_bytes(), &[]]),
            Primitive::Int64(value) => put(type_id::INT64, [&value.to_le_bytes(), &[]]),
            Primitive::Float(value) => put(type_id::FLOAT, [&value.to_le_bytes(), &[]]),
            Primitive::Double(value) => put(type_id::DOUBLE, [&value.to_le_bytes(), &[]]),
            Primitive::Decimal4 { unscaled, scale } => {
                put(type_id::DECIMAL4, [&[scale], &unscaled.to_le_bytes()]);
            }
            Primitive::Decimal8 { unscaled, scale } => {
                put(type_id::DECIMAL8, [&[scale], &unscaled.to_le_bytes()]);
            }
            Primitive::Decimal16 { unscaled, scale } => {
                put(type_id::DECIMAL16, [&[scale], &unscaled.to_le_bytes()]);
            }
            Primitive::Date(days) => put(type_id::DATE, [&days.to_le_bytes(), &[]]),
            Primitive::Time(micros) => put(type_id::TIME, [&micros.to_le_bytes(), &[]]),
            Primitive::Timestamp(micros) => put(type_id::TIMESTAMP, [&micros.to_le_bytes(), &[]]),
            Primitive::TimestampNtz(micros) => put(type_id::TIMESTAMP_NTZ, [&micros.to_le_bytes(), &[]]),
            Primitive::TimestampNanos(nanos) => put(type_id::TIMESTAMP_NANOS, [&nanos.to_le_bytes(), &[]]),
            Primitive::TimestampNtzNanos(nanos) => {
                put(type_id::TIMESTAMP_NTZ_NANOS, [&nanos.to_le_bytes(), &[]]);
            }
            Primitive::Uuid(bytes) => put(type_id::UUID, [&bytes, &[]]),
            Primitive::Binary(bytes) => put(type_id::BINARY, [&length(bytes)?, bytes]),
            Primitive::String(text) if text.len() <= SHORT_STRING_BYTES_MAX => {
                let length = u8::try_from(text.len()).unwrap_or(0);
                out.push(length << 2 | BASIC_SHORT_STRING);
                out.extend_from_slice(text.as_bytes());
            }
            Primitive::String(text) => {
                put(type_id::STRING, [&length(text.as_bytes())?, text.as_bytes()]);
            }
        }
        Ok(())
    }
}

fn length(bytes: &[u8]) -> Result<[u8; 4]> {
    u32::try_from(bytes.len()).map(u32::to_le_bytes).map_err(|_| {
        Error::conversion(format!("{} bytes are more than a variant's text can have", bytes.len()))
    })
}

pub(super) fn cut_off() -> Error {
    Error::corrupt("a variant's value reaches beyond its end")
}
