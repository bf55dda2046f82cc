//! What the values of a leaf mean.
//!
//! Source: `LogicalTypes.md`. This is the one place that interprets a physical type and its annotation together: code
//! that prints values, orders them, or maps them to another system's types uses [`Meaning`].

use super::build::check_annotation;
use super::{Leaf, LogicalType, PhysicalType, Schema, TimeUnit};

/// What the values of a leaf mean: its physical type and its annotation, together.
///
/// The enum is not `#[non_exhaustive]`: code that maps values has to decide about each meaning, and the compiler
/// points out a new one.
///
/// ```
/// use marquetry_parquet::schema::{LogicalType, Meaning, PhysicalType};
///
/// assert_eq!(Meaning::of(PhysicalType::Int32, None), Meaning::Integer { bit_width: 32, is_signed: true });
/// assert_eq!(Meaning::of(PhysicalType::ByteArray, Some(&LogicalType::Json)), Meaning::Json);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Meaning {
    /// UNKNOWN: all values are null.
    Null,
    /// BOOLEAN.
    Boolean,
    /// INT and UINT of 8, 16 and 32 bits in INT32, of 64 bits in INT64; an INT32 or INT64 without annotation is signed.
    Integer {
        /// 8, 16, 32 or 64. A file may still hold values beyond 8 or 16 bits.
        bit_width: u8,
        /// Signed or not.
        is_signed: bool,
    },
    /// FLOAT16: IEEE 754 binary16, little-endian, in two bytes.
    Float16,
    /// FLOAT: IEEE 754 binary32.
    Float,
    /// DOUBLE: IEEE 754 binary64.
    Double,
    /// DECIMAL: an unscaled integer in INT32, INT64, or bytes (big-endian two's complement).
    Decimal {
        /// Digits in all, at least 1.
        precision: i32,
        /// Digits after the point, from 0 to `precision`.
        scale: i32,
    },
    /// DATE: days since 1970-01-01, in INT32.
    Date,
    /// TIME: the time of day; milliseconds in INT32, other units in INT64.
    Time {
        /// Its unit.
        unit: TimeUnit,
        /// An instant's (true) or a wall clock's (false).
        is_adjusted_to_utc: bool,
    },
    /// TIMESTAMP: time since 1970-01-01 00:00, in INT64.
    Timestamp {
        /// Its unit.
        unit: TimeUnit,
        /// An instant (true) or a wall clock's reading (false).
        is_adjusted_to_utc: bool,
    },
    /// INT96: deprecated timestamps, which [`scalar::int96_nanos`](crate::scalar::int96_nanos) reads.
    Int96,
    /// INTERVAL: months, days and milliseconds, each an unsigned 32-bit number, in twelve bytes.
    Interval,
    /// UUID: sixteen bytes, big-endian.
    Uuid,
    /// STRING: UTF-8.
    String,
    /// ENUM: UTF-8, one of a set of texts.
    Enum,
    /// JSON: UTF-8.
    Json,
    /// BSON.
    Bson,
    /// BYTE_ARRAY or FIXED_LEN_BYTE_ARRAY without annotation.
    Bytes,
    /// GEOMETRY, in WKB.
    Geometry,
    /// GEOGRAPHY, in WKB.
    Geography,
    /// An annotation that this version does not know, or that does not suit the physical type (schemas never have the
    /// latter). Values are those of the physical type, see [`Meaning::read_as`], but their order is unknown.
    Unrecognised,
}

impl Meaning {
    /// The meaning of values of a physical type with an annotation: that of
    /// [`Node::logical_type`](super::Node::logical_type), which already accounts for the older converted types.
    pub fn of(physical_type: PhysicalType, logical_type: Option<&LogicalType>) -> Meaning {
        if check_annotation(logical_type, physical_type).is_err() {
            return Meaning::Unrecognised;
        }
        let Some(logical_type) = logical_type else { return Meaning::of_physical(physical_type) };
        match *logical_type {
            LogicalType::String => Meaning::String,
            LogicalType::Enum => Meaning::Enum,
            LogicalType::Decimal { scale, precision } => Meaning::Decimal { precision, scale },
            LogicalType::Date => Meaning::Date,
            LogicalType::Time { is_adjusted_to_utc, unit } => Meaning::Time { unit, is_adjusted_to_utc },
            LogicalType::Timestamp { is_adjusted_to_utc, unit } => {
                Meaning::Timestamp { unit, is_adjusted_to_utc }
            }
            LogicalType::Integer { bit_width, is_signed } => Meaning::Integer { bit_width, is_signed },
            LogicalType::Interval => Meaning::Interval,
            LogicalType::Unknown => Meaning::Null,
            LogicalType::Json => Meaning::Json,
            LogicalType::Bson => Meaning::Bson,
            LogicalType::Uuid => Meaning::Uuid,
            LogicalType::Float16 => Meaning::Float16,
            LogicalType::Geometry { .. } => Meaning::Geometry,
            LogicalType::Geography { .. } => Meaning::Geography,
            // Those of groups, and unknown ones.
            LogicalType::Map
            | LogicalType::MapKeyValue
            | LogicalType::List
            | LogicalType::Variant { .. }
            | LogicalType::File
            | LogicalType::Unrecognised { .. } => Meaning::Unrecognised,
        }
    }

    fn of_physical(physical_type: PhysicalType) -> Meaning {
        match physical_type {
            PhysicalType::Boolean => Meaning::Boolean,
            PhysicalType::Int32 => Meaning::Integer { bit_width: 32, is_signed: true },
            PhysicalType::Int64 => Meaning::Integer { bit_width: 64, is_signed: true },
            PhysicalType::Int96 => Meaning::Int96,
            PhysicalType::Float => Meaning::Float,
            PhysicalType::Double => Meaning::Double,
            PhysicalType::ByteArray | PhysicalType::FixedLenByteArray(_) => Meaning::Bytes,
        }
    }

    /// The meaning that values are read with: that of the physical type if the annotation is unknown.
    #[must_use]
    pub fn read_as(self, physical_type: PhysicalType) -> Meaning {
        if self == Meaning::Unrecognised { Meaning::of_physical(physical_type) } else { self }
    }

    /// Whether values are UTF-8: STRING, ENUM and JSON.
    pub fn is_text(self) -> bool {
        matches!(self, Meaning::String | Meaning::Enum | Meaning::Json)
    }

    /// Whether values are numbers: integers, decimals, and floats, NaN included.
    pub fn is_number(self) -> bool {
        matches!(self, Meaning::Integer { .. } | Meaning::Decimal { .. }) || self.is_floating()
    }

    /// Whether values are times, with or without a day.
    pub fn is_time(self) -> bool {
        matches!(self, Meaning::Time { .. } | Meaning::Timestamp { .. } | Meaning::Int96)
    }

    /// Whether values can be NaN.
    pub fn is_floating(self) -> bool {
        matches!(self, Meaning::Float16 | Meaning::Float | Meaning::Double)
    }
}

impl Schema {
    /// What the values of a leaf of this schema mean.
    pub fn meaning_of(&self, leaf: &Leaf) -> Meaning {
        Meaning::of(leaf.physical_type, self.node_of(leaf).logical_type.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PHYSICAL: [PhysicalType; 10] = [
        PhysicalType::Boolean,
        PhysicalType::Int32,
        PhysicalType::Int64,
        PhysicalType::Int96,
        PhysicalType::Float,
        PhysicalType::Double,
        PhysicalType::ByteArray,
        PhysicalType::FixedLenByteArray(2),
        PhysicalType::FixedLenByteArray(12),
        PhysicalType::FixedLenByteArray(16),
    ];

    #[test]
    fn an_annotation_that_cannot_stand_there_means_nothing() {
        for (logical_type, fits) in [
            (LogicalType::Date, &[PhysicalType::Int32][..]),
            (LogicalType::Json, &[PhysicalType::ByteArray]),
            (LogicalType::Uuid, &[PhysicalType::FixedLenByteArray(16)]),
            (LogicalType::Float16, &[PhysicalType::FixedLenByteArray(2)]),
            (LogicalType::Interval, &[PhysicalType::FixedLenByteArray(12)]),
            (LogicalType::Integer { bit_width: 16, is_signed: false }, &[PhysicalType::Int32]),
            (LogicalType::Integer { bit_width: 64, is_signed: false }, &[PhysicalType::Int64]),
            (LogicalType::Unknown, &PHYSICAL),
            (LogicalType::List, &[]),
            (LogicalType::Unrecognised { number: 99, has_fields: false }, &[]),
        ] {
            for physical_type in PHYSICAL {
                let meaning = Meaning::of(physical_type, Some(&logical_type));
                let is_known = meaning != Meaning::Unrecognised;
                assert_eq!(is_known, fits.contains(&physical_type), "{logical_type} on {physical_type}");
                let read_as = meaning.read_as(physical_type);
                let plain = Meaning::of(physical_type, None);
                assert_eq!(read_as, if is_known { meaning } else { plain });
            }
        }
    }

    #[test]
    fn what_is_told_of_all() {
        let text = Meaning::of(PhysicalType::ByteArray, Some(&LogicalType::Enum));
        assert!(text.is_text() && !Meaning::of(PhysicalType::ByteArray, None).is_text());
        assert!(!Meaning::of(PhysicalType::ByteArray, Some(&LogicalType::Bson)).is_text());
        let floating = PHYSICAL.map(|physical_type| Meaning::of(physical_type, None).is_floating());
        assert_eq!(floating.iter().filter(|floating| **floating).count(), 2);
        assert!(Meaning::Float16.is_floating());
    }
}
