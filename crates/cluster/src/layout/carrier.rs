//! What a column of the table holds of a leaf.

use marquetry_base::cast::usize_of_u32;
use marquetry_base::parse;
use marquetry_base::twos_complement::shortest;
use marquetry_parquet::batch::{ByteArrays, ColumnBatch, FixedBytes, Value, Values};
use marquetry_parquet::schema::{Leaf, LogicalType, Meaning, NodeKind, PhysicalType, Schema, TimeUnit};

/// What a column of the table holds of a column of the rows, so that nothing of it is lost.
///
/// | leaf | column |
/// |---|---|
/// | BOOLEAN, FLOAT, DOUBLE, integers of up to 64 bits with a sign, UINT(8), UINT(16), DATE, UUID | as in the layout `rows` |
/// | UINT(32), UINT(64) | `bigint`, `varint` |
/// | TIMESTAMP(MILLIS) | `timestamp` |
/// | TIMESTAMP of other units, TIME | `bigint`, `int`: the number |
/// | DECIMAL of up to 38 digits | `decimal` |
/// | STRING, ENUM, JSON | `text` |
/// | BYTE_ARRAY, BSON, GEOMETRY, GEOGRAPHY | `blob` |
/// | FIXED_LEN_BYTE_ARRAY, FLOAT16, INTERVAL, INT96 | `blob`: the bytes |
/// | all else: what is nested, DECIMAL of more digits, UNKNOWN | `blob`: a packed cell |
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carrier {
    /// The numbers and bytes of the leaf.
    Same,
    /// UINT(32) as `bigint`.
    Unsigned32,
    /// UINT(64) as `varint`.
    Unsigned64,
    /// `decimal`. What has more digits than the type says, and fits the leaf, is a value all the same.
    Decimal { scale: u32 },
    /// So many bytes as `blob`.
    Fixed(usize),
    /// A packed cell.
    Packed,
}

/// The most digits of a decimal that 128 bits hold.
const DIGITS_MAX: u32 = 38;

impl Carrier {
    /// The carrier of a child of the schema's root.
    pub(super) fn of(schema: &Schema, node: usize) -> Carrier {
        let Some(leaf) = flat_leaf(schema, node) else { return Carrier::Packed };
        let fixed = |other: Carrier| match leaf.physical_type {
            PhysicalType::FixedLenByteArray(width) => Carrier::Fixed(usize_of_u32(width)),
            PhysicalType::Int96 => Carrier::Fixed(12),
            _ => other,
        };
        match schema.meaning_of(leaf).read_as(leaf.physical_type) {
            Meaning::Null => Carrier::Packed,
            Meaning::Integer { bit_width: 32, is_signed: false } => Carrier::Unsigned32,
            Meaning::Integer { bit_width: 64, is_signed: false } => Carrier::Unsigned64,
            Meaning::Decimal { precision, scale } => {
                let digits = u32::try_from(precision).ok().zip(u32::try_from(scale).ok());
                match digits.filter(|(precision, _)| *precision <= DIGITS_MAX) {
                    Some((_, scale)) => Carrier::Decimal { scale },
                    None => Carrier::Packed,
                }
            }
            Meaning::Uuid => Carrier::Same,
            _ => fixed(Carrier::Same),
        }
    }

    /// The type of the column that rows are loaded from: the one of which [`Mapping`](marquetry_scylla::bridge::Mapping) makes the table's.
    pub(super) fn loaded(self, schema: &Schema, leaf: &Leaf) -> (PhysicalType, Option<LogicalType>) {
        let logical = || schema.node_of(leaf).logical_type.clone();
        let kept = || match logical() {
            Some(LogicalType::String | LogicalType::Enum | LogicalType::Json) => Some(LogicalType::String),
            Some(LogicalType::Timestamp { unit: TimeUnit::Millis, is_adjusted_to_utc }) => {
                Some(LogicalType::Timestamp { unit: TimeUnit::Millis, is_adjusted_to_utc })
            }
            Some(it @ (LogicalType::Date | LogicalType::Uuid | LogicalType::Integer { .. })) => Some(it),
            _ => None,
        };
        match self {
            Carrier::Same => (leaf.physical_type, kept()),
            Carrier::Unsigned32 | Carrier::Unsigned64 | Carrier::Decimal { .. } => {
                (leaf.physical_type, logical())
            }
            Carrier::Fixed(width) => {
                (PhysicalType::FixedLenByteArray(u32::try_from(width).unwrap_or(u32::MAX)), None)
            }
            Carrier::Packed => (PhysicalType::ByteArray, None),
        }
    }

    /// The type of the column that rows are read from, as a server's are in Parquet.
    pub(super) fn read_as(self, leaf: PhysicalType) -> PhysicalType {
        match self {
            Carrier::Same => leaf,
            Carrier::Unsigned32 => PhysicalType::Int64,
            Carrier::Unsigned64 | Carrier::Decimal { .. } | Carrier::Fixed(_) | Carrier::Packed => {
                PhysicalType::ByteArray
            }
        }
    }

    /// The values of a column of the table as those of the leaf; the first row that has none that it could be.
    pub(super) fn values(self, column: &ColumnBatch, leaf: PhysicalType) -> Result<Values, usize> {
        let present = |row: usize| !column.is_null(row);
        let bytes = |row: usize| match Value::of_values(&column.values, row) {
            Some(Value::Bytes(bytes)) => Some(bytes),
            _ => None,
        };
        let long = |row: usize| match Value::of_values(&column.values, row) {
            Some(Value::Int64(number)) => Some(number),
            _ => None,
        };
        let rows = 0..column.rows;
        match self {
            Carrier::Same => Ok(column.values.clone()),
            Carrier::Packed => Err(0),
            Carrier::Unsigned32 => {
                let number = |row: usize| u32::try_from(long(row)?).ok().map(u32::cast_signed);
                each(rows, present, number).map(Values::from)
            }
            Carrier::Unsigned64 => {
                let number = |row: usize| parse::unsigned(bytes(row)?, 64).map(u64::cast_signed);
                each(rows, present, number).map(Values::from)
            }
            Carrier::Fixed(width) => {
                let fixed = fixed(rows, width, |row| {
                    if present(row) {
                        bytes(row).filter(|it| it.len() == width).map(Some)
                    } else {
                        Some(None)
                    }
                })?;
                Ok(if leaf == PhysicalType::Int96 {
                    Values::Int96(fixed)
                } else {
                    Values::FixedLenByteArray(fixed)
                })
            }
            Carrier::Decimal { scale } => {
                let unscaled = |row: usize| decimal(bytes(row)?, DIGITS_MAX, scale);
                match leaf {
                    PhysicalType::Int32 => {
                        each(rows, present, |row| i32::try_from(unscaled(row)?).ok()).map(Values::from)
                    }
                    PhysicalType::Int64 => {
                        each(rows, present, |row| i64::try_from(unscaled(row)?).ok()).map(Values::from)
                    }
                    PhysicalType::FixedLenByteArray(width) => {
                        let (width, numbers) = (usize_of_u32(width), each(rows.clone(), present, unscaled)?);
                        let padded = numbers.iter().map(|number| wide(*number, width)).collect::<Vec<_>>();
                        let fixed = fixed(rows, width, |row| {
                            Some(padded.get(row)?.as_deref()).filter(Option::is_some)
                        });
                        fixed.map(Values::FixedLenByteArray)
                    }
                    _ => {
                        let numbers = each(rows, present, unscaled)?;
                        let bytes = numbers.iter().map(|number| shortest(&number.to_be_bytes()).to_vec());
                        let (mut all, mut lengths) = (Vec::new(), Vec::new());
                        for (row, bytes) in bytes.enumerate() {
                            let bytes = if present(row) { bytes } else { Vec::new() };
                            lengths.push(bytes.len());
                            all.extend(bytes);
                        }
                        // None is long.
                        ByteArrays::from_lengths(all.into(), lengths).map(Values::ByteArray).map_err(|_| 0)
                    }
                }
            }
        }
    }
}

/// The leaf that a child of the root is, if it is one.
pub(super) fn flat_leaf(schema: &Schema, node: usize) -> Option<&Leaf> {
    match schema.nodes().get(node)?.kind {
        NodeKind::Leaf { leaf } => schema.leaves().get(leaf).filter(|leaf| leaf.is_flat()),
        NodeKind::Group { .. } => None,
    }
}

/// The value of each row, zero for a null; the first row that has none.
fn each<T: Default>(
    rows: std::ops::Range<usize>,
    present: impl Fn(usize) -> bool,
    value: impl Fn(usize) -> Option<T>,
) -> Result<Vec<T>, usize> {
    rows.map(|row| if present(row) { value(row).ok_or(row) } else { Ok(T::default()) }).collect()
}

/// Values of `width` bytes, zeros for nulls (`Some(None)`); the first row that has none.
fn fixed<'a>(
    rows: std::ops::Range<usize>,
    width: usize,
    value: impl Fn(usize) -> Option<Option<&'a [u8]>>,
) -> Result<FixedBytes, usize> {
    let count = rows.len();
    let mut bytes = Vec::with_capacity(count.saturating_mul(width));
    for row in rows {
        match value(row).ok_or(row)? {
            Some(value) => bytes.extend_from_slice(value),
            None => bytes.resize(bytes.len() + width, 0),
        }
    }
    Ok(FixedBytes::new(width, count, bytes.into()))
}

/// A decimal of CQL, as text, as an integer with this scale.
fn decimal(text: &[u8], precision: u32, scale: u32) -> Option<i128> {
    let Some(at) = text.iter().position(|byte| matches!(byte, b'E' | b'e')) else {
        return parse::decimal(text, precision, scale);
    };
    let exponent = i64::from(scale).checked_add(parse::integer(text.get(at + 1..)?)?)?;
    // More than 10^38 is beyond 128 bits.
    let exponent = u32::try_from(exponent).ok().filter(|exponent| *exponent <= DIGITS_MAX)?;
    parse::decimal(text.get(..at)?, precision, exponent)
}

/// An integer in `width` bytes.
fn wide(number: i128, width: usize) -> Option<Vec<u8>> {
    let bytes = number.to_be_bytes();
    let short = shortest(&bytes);
    let sign = if number < 0 { 0xff } else { 0 };
    let mut wide = vec![sign; width.checked_sub(short.len())?];
    wide.extend_from_slice(short);
    Some(wide)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_of_any_form() {
        for (text, scale, unscaled) in [
            ("12.50", 2, Some(1250)),
            ("-0.01", 2, Some(-1)),
            ("1E-10", 10, Some(1)),
            ("-7.5E-8", 10, Some(-750)),
            ("1E+3", 0, Some(1000)),
            ("1E-3", 2, None),
            ("1E+99", 2, None),
            ("", 2, None),
            ("1E", 2, None),
        ] {
            assert_eq!(decimal(text.as_bytes(), 38, scale), unscaled, "{text}");
        }
        assert_eq!(wide(-2, 3), Some(vec![0xff, 0xff, 0xfe]));
        assert_eq!((wide(300, 1), wide(0, 1)), (None, Some(vec![0])));
    }
}
