//! Physical and logical types.

use alloc::string::String;
use core::fmt;

pub use marquetry_base::calendar::TimeUnit;

/// How a leaf's values are stored (`Type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PhysicalType {
    /// One bit.
    Boolean,
    /// 32 bits, little-endian.
    Int32,
    /// 64 bits, little-endian.
    Int64,
    /// 96 bits: deprecated timestamps, made of the nanoseconds in the day (64 bits) and the Julian day (32 bits).
    Int96,
    /// IEEE 754 binary32.
    Float,
    /// IEEE 754 binary64.
    Double,
    /// Bytes of any length.
    ByteArray,
    /// Bytes of a fixed length.
    FixedLenByteArray(u32),
}

impl PhysicalType {
    /// The length of a PLAIN value in bytes, if it is fixed. `None` for booleans, which are bits.
    pub fn width(self) -> Option<usize> {
        match self {
            PhysicalType::Int32 | PhysicalType::Float => Some(4),
            PhysicalType::Int64 | PhysicalType::Double => Some(8),
            PhysicalType::Int96 => Some(12),
            PhysicalType::FixedLenByteArray(width) => Some(marquetry_base::cast::usize_of_u32(width)),
            PhysicalType::Boolean | PhysicalType::ByteArray => None,
        }
    }
}

impl fmt::Display for PhysicalType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PhysicalType::Boolean => f.write_str("BOOLEAN"),
            PhysicalType::Int32 => f.write_str("INT32"),
            PhysicalType::Int64 => f.write_str("INT64"),
            PhysicalType::Int96 => f.write_str("INT96"),
            PhysicalType::Float => f.write_str("FLOAT"),
            PhysicalType::Double => f.write_str("DOUBLE"),
            PhysicalType::ByteArray => f.write_str("BYTE_ARRAY"),
            PhysicalType::FixedLenByteArray(width) => write!(f, "FIXED_LEN_BYTE_ARRAY({width})"),
        }
    }
}

/// How often a field occurs in its parent (`FieldRepetitionType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Repetition {
    /// Once.
    Required,
    /// Once or not at all.
    Optional,
    /// Any number of times.
    Repeated,
}

impl fmt::Display for Repetition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Repetition::Required => "required",
            Repetition::Optional => "optional",
            Repetition::Repeated => "repeated",
        })
    }
}

/// What a field means (`LogicalType`, or the equivalent `ConvertedType`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogicalType {
    /// UTF-8 text.
    String,
    /// A map's outer group.
    Map,
    /// A map's repeated group, by an older annotation.
    MapKeyValue,
    /// A list's outer group.
    List,
    /// Text from a fixed set.
    Enum,
    /// A decimal number, stored as its unscaled value.
    Decimal {
        /// Digits after the point.
        scale: i32,
        /// Digits in all.
        precision: i32,
    },
    /// Days since 1970-01-01.
    Date,
    /// The time of day.
    Time {
        /// An instant's (true) or a wall clock's (false).
        is_adjusted_to_utc: bool,
        /// Its unit.
        unit: TimeUnit,
    },
    /// Time since 1970-01-01 00:00.
    Timestamp {
        /// An instant (true) or a wall clock's reading (false).
        is_adjusted_to_utc: bool,
        /// Its unit.
        unit: TimeUnit,
    },
    /// An integer of 8, 16, 32 or 64 bits.
    Integer {
        /// Its bits.
        bit_width: u8,
        /// Signed or not.
        is_signed: bool,
    },
    /// Months, days and milliseconds, each an unsigned 32-bit number (only a converted type).
    Interval,
    /// Always null (`NullType`).
    Unknown,
    /// JSON text.
    Json,
    /// BSON.
    Bson,
    /// A UUID, big-endian.
    Uuid,
    /// IEEE 754 binary16, little-endian.
    Float16,
    /// A VARIANT group.
    Variant {
        /// The specification's version.
        version: Option<i8>,
    },
    /// Planar geometry, in WKB.
    Geometry {
        /// The coordinate reference system; OGC:CRS84 when absent.
        crs: Option<String>,
    },
    /// Geometry on an ellipsoid, in WKB.
    Geography {
        /// The coordinate reference system; OGC:CRS84 when absent.
        crs: Option<String>,
        /// How edges run; spherical when absent.
        algorithm: Option<EdgeAlgorithm>,
    },
    /// A FILE group.
    File,
    /// A type that this version does not know: the field is read as its physical type.
    Unrecognised {
        /// Its field in the union `LogicalType`.
        number: i16,
        /// It has fields, which are not kept, so it cannot be written.
        has_fields: bool,
    },
}

/// How edges between points run (`EdgeInterpolationAlgorithm`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EdgeAlgorithm {
    /// Great circles.
    Spherical,
    /// Vincenty's formulae.
    Vincenty,
    /// Thomas's.
    Thomas,
    /// Andoyer's.
    Andoyer,
    /// Karney's.
    Karney,
    /// An algorithm that this version does not know.
    Unknown(i32),
}

impl fmt::Display for LogicalType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogicalType::String => f.write_str("STRING"),
            LogicalType::Map => f.write_str("MAP"),
            LogicalType::MapKeyValue => f.write_str("MAP_KEY_VALUE"),
            LogicalType::List => f.write_str("LIST"),
            LogicalType::Enum => f.write_str("ENUM"),
            LogicalType::Decimal { scale, precision } => write!(f, "DECIMAL({precision}, {scale})"),
            LogicalType::Date => f.write_str("DATE"),
            LogicalType::Time { is_adjusted_to_utc, unit } => {
                write!(f, "TIME({unit}, {})", zone(*is_adjusted_to_utc))
            }
            LogicalType::Timestamp { is_adjusted_to_utc, unit } => {
                write!(f, "TIMESTAMP({unit}, {})", zone(*is_adjusted_to_utc))
            }
            LogicalType::Integer { bit_width, is_signed: true } => write!(f, "INT({bit_width})"),
            LogicalType::Integer { bit_width, is_signed: false } => write!(f, "UINT({bit_width})"),
            LogicalType::Interval => f.write_str("INTERVAL"),
            LogicalType::Unknown => f.write_str("UNKNOWN"),
            LogicalType::Json => f.write_str("JSON"),
            LogicalType::Bson => f.write_str("BSON"),
            LogicalType::Uuid => f.write_str("UUID"),
            LogicalType::Float16 => f.write_str("FLOAT16"),
            LogicalType::Variant { version: Some(version) } => write!(f, "VARIANT({version})"),
            LogicalType::Variant { version: None } => f.write_str("VARIANT"),
            LogicalType::Geometry { crs } => write!(f, "GEOMETRY({})", crs.as_deref().unwrap_or("OGC:CRS84")),
            LogicalType::Geography { crs, algorithm } => {
                write!(f, "GEOGRAPHY({}", crs.as_deref().unwrap_or("OGC:CRS84"))?;
                match algorithm {
                    Some(algorithm) => write!(f, ", {algorithm:?})"),
                    None => f.write_str(")"),
                }
            }
            LogicalType::File => f.write_str("FILE"),
            LogicalType::Unrecognised { number, .. } => write!(f, "LOGICAL TYPE {number}"),
        }
    }
}

fn zone(is_adjusted_to_utc: bool) -> &'static str {
    if is_adjusted_to_utc { "UTC" } else { "local" }
}

/// The older annotation (`ConvertedType`), by its number in the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConvertedType(pub i32);

impl ConvertedType {
    /// The converted type that is equivalent to a logical type (`LogicalTypes.md`, the compatibility tables). `None` if
    /// there is none, as for local times, nanoseconds and the newer types.
    pub fn of(logical_type: &LogicalType) -> Option<ConvertedType> {
        use LogicalType::{Integer, Time, Timestamp};
        use TimeUnit::{Micros, Millis};
        Some(ConvertedType(match logical_type {
            LogicalType::String => 0,
            LogicalType::Map => 1,
            LogicalType::MapKeyValue => 2,
            LogicalType::List => 3,
            LogicalType::Enum => 4,
            LogicalType::Decimal { .. } => 5,
            LogicalType::Date => 6,
            Time { is_adjusted_to_utc: true, unit: Millis } => 7,
            Time { is_adjusted_to_utc: true, unit: Micros } => 8,
            Timestamp { is_adjusted_to_utc: true, unit: Millis } => 9,
            Timestamp { is_adjusted_to_utc: true, unit: Micros } => 10,
            Integer { bit_width, is_signed } => {
                let size = match bit_width {
                    8 => 0,
                    16 => 1,
                    32 => 2,
                    64 => 3,
                    _ => return None,
                };
                if *is_signed { 15 + size } else { 11 + size }
            }
            LogicalType::Json => 19,
            LogicalType::Bson => 20,
            LogicalType::Interval => 21,
            _ => return None,
        }))
    }

    /// The equivalent logical type (`LogicalTypes.md`, the compatibility tables). `None` for a number that the format
    /// does not have.
    pub fn logical_type(self, scale: Option<i32>, precision: Option<i32>) -> Option<LogicalType> {
        let integer = |bit_width, is_signed| LogicalType::Integer { bit_width, is_signed };
        Some(match self.0 {
            0 => LogicalType::String,
            1 => LogicalType::Map,
            2 => LogicalType::MapKeyValue,
            3 => LogicalType::List,
            4 => LogicalType::Enum,
            5 => LogicalType::Decimal { scale: scale.unwrap_or(0), precision: precision.unwrap_or(0) },
            6 => LogicalType::Date,
            7 => LogicalType::Time { is_adjusted_to_utc: true, unit: TimeUnit::Millis },
            8 => LogicalType::Time { is_adjusted_to_utc: true, unit: TimeUnit::Micros },
            9 => LogicalType::Timestamp { is_adjusted_to_utc: true, unit: TimeUnit::Millis },
            10 => LogicalType::Timestamp { is_adjusted_to_utc: true, unit: TimeUnit::Micros },
            11 => integer(8, false),
            12 => integer(16, false),
            13 => integer(32, false),
            14 => integer(64, false),
            15 => integer(8, true),
            16 => integer(16, true),
            17 => integer(32, true),
            18 => integer(64, true),
            19 => LogicalType::Json,
            20 => LogicalType::Bson,
            21 => LogicalType::Interval,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_converted_types_say() {
        for number in 0..22 {
            let converted_type = ConvertedType(number);
            let logical_type = converted_type.logical_type(Some(2), Some(9)).unwrap();
            assert_eq!(ConvertedType::of(&logical_type), Some(converted_type));
        }
        let local = LogicalType::Timestamp { is_adjusted_to_utc: false, unit: TimeUnit::Micros };
        assert_eq!(ConvertedType::of(&local), None);
    }
}
