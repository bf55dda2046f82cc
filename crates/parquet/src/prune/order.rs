//! The orders of values.
//!
//! Source: `ColumnOrder` of parquet.thrift; LogicalTypes.md, the sort orders of the types.

use core::cmp::Ordering;

use marquetry_base::twos_complement::shortest;

use crate::format::ColumnOrder;
use crate::scalar::{float_of_half, int96_parts};
use crate::schema::{LogicalType, Meaning, PhysicalType};

/// How the values of a leaf are ordered. Values are compared as stored in statistics: PLAIN, but BYTE_ARRAY without a
/// length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// False before true.
    Boolean,
    /// Signed integers of 32 bits: INT32 with its signed types, DATE, TIME, DECIMAL.
    Signed32,
    /// Signed integers of 64 bits: INT64 with its signed types, TIME, TIMESTAMP, DECIMAL.
    Signed64,
    /// Unsigned integers of 8, 16 and 32 bits.
    Unsigned32,
    /// Unsigned integers of 64 bits.
    Unsigned64,
    /// FLOAT by value: −0 equals +0, and NaN is unordered.
    Float,
    /// DOUBLE, likewise.
    Double,
    /// FLOAT16, likewise.
    Float16,
    /// FLOAT by IEEE 754's totalOrder: −NaN, −∞, …, −0, +0, …, +∞, +NaN.
    FloatTotal,
    /// DOUBLE, likewise.
    DoubleTotal,
    /// FLOAT16, likewise.
    Float16Total,
    /// INT96 timestamps: by day, then by nanoseconds in the day, both signed.
    Int96,
    /// BYTE_ARRAY and FIXED_LEN_BYTE_ARRAY byte by byte, unsigned.
    Bytes,
    /// DECIMAL on bytes: big-endian two's complement numbers.
    Decimal,
}

impl Order {
    /// The order of a leaf's statistics. `None` if none is defined, or if the column order is invalid or unknown:
    /// then its bounds must be ignored.
    pub fn of(
        physical_type: PhysicalType,
        logical_type: Option<&LogicalType>,
        column_order: ColumnOrder,
    ) -> Option<Order> {
        let is_total = match column_order {
            ColumnOrder::TypeDefined => false,
            // "If TYPE_ORDER is used for an INT96 column, readers should ignore all statistics."
            ColumnOrder::Int96Timestamp => {
                return (Meaning::of(physical_type, logical_type) == Meaning::Int96).then_some(Order::Int96);
            }
            ColumnOrder::Ieee754Total => true,
            ColumnOrder::Unknown(_) => return None,
        };
        let order = match Meaning::of(physical_type, logical_type) {
            // "undefined", or unknown here. A column of nulls has no values to order.
            Meaning::Interval
            | Meaning::Geometry
            | Meaning::Geography
            | Meaning::Null
            | Meaning::Int96
            | Meaning::Unrecognised => return None,
            Meaning::Float if is_total => Order::FloatTotal,
            Meaning::Double if is_total => Order::DoubleTotal,
            Meaning::Float16 if is_total => Order::Float16Total,
            // "Only columns of physical type FLOAT or DOUBLE, or logical type FLOAT16 may use this ordering."
            _ if is_total => return None,
            Meaning::Float => Order::Float,
            Meaning::Double => Order::Double,
            Meaning::Float16 => Order::Float16,
            Meaning::Boolean => Order::Boolean,
            Meaning::Integer { bit_width, is_signed } => match (bit_width, is_signed) {
                (64, true) => Order::Signed64,
                (64, false) => Order::Unsigned64,
                (_, true) => Order::Signed32,
                (_, false) => Order::Unsigned32,
            },
            Meaning::Date | Meaning::Time { .. } | Meaning::Timestamp { .. } | Meaning::Decimal { .. } => {
                match physical_type {
                    PhysicalType::Int32 => Order::Signed32,
                    PhysicalType::Int64 => Order::Signed64,
                    _ => Order::Decimal,
                }
            }
            Meaning::Uuid
            | Meaning::String
            | Meaning::Enum
            | Meaning::Json
            | Meaning::Bson
            | Meaning::Bytes => Order::Bytes,
        };
        Some(order)
    }

    /// Whether these bytes are a valid value. NaN is one. Only bounds that are compared bytewise may be shorter than
    /// the type.
    pub fn is_valid(self, value: &[u8]) -> bool {
        match self {
            Order::Boolean => value.len() == 1,
            Order::Signed32 | Order::Unsigned32 | Order::Float | Order::FloatTotal => value.len() == 4,
            Order::Signed64 | Order::Unsigned64 | Order::Double | Order::DoubleTotal => value.len() == 8,
            Order::Float16 | Order::Float16Total => value.len() == 2,
            Order::Int96 => value.len() == 12,
            Order::Bytes => true,
            Order::Decimal => !value.is_empty(),
        }
    }

    /// Compares two values. `None` if one of them is not of the type, or is NaN in an order without NaN.
    pub fn compare(self, left: &[u8], right: &[u8]) -> Option<Ordering> {
        match self {
            Order::Boolean => Some((bytes::<1>(left)?[0] & 1).cmp(&(bytes::<1>(right)?[0] & 1))),
            Order::Signed32 => by(left, right, i32::from_le_bytes, Ord::cmp),
            Order::Signed64 => by(left, right, i64::from_le_bytes, Ord::cmp),
            Order::Unsigned32 => by(left, right, u32::from_le_bytes, Ord::cmp),
            Order::Unsigned64 => by(left, right, u64::from_le_bytes, Ord::cmp),
            Order::Float => f32_of(left)?.partial_cmp(&f32_of(right)?),
            Order::Double => f64_of(left)?.partial_cmp(&f64_of(right)?),
            Order::Float16 => half_of(left)?.partial_cmp(&half_of(right)?),
            Order::FloatTotal => by(left, right, f32::from_le_bytes, f32::total_cmp),
            Order::DoubleTotal => by(left, right, f64::from_le_bytes, f64::total_cmp),
            Order::Float16Total => by(left, right, half_rank, Ord::cmp),
            Order::Int96 => {
                let key = |bytes| {
                    let (nanos, day) = int96_parts(bytes);
                    (day, nanos)
                };
                by(left, right, key, Ord::cmp)
            }
            Order::Bytes => Some(compare_bytes(left, right)),
            Order::Decimal => compare_decimals(left, right),
        }
    }

    /// Whether values can be NaN.
    pub fn is_floating(self) -> bool {
        self.is_total() || matches!(self, Order::Float | Order::Double | Order::Float16)
    }

    /// Whether it is IEEE 754's totalOrder.
    pub fn is_total(self) -> bool {
        matches!(self, Order::FloatTotal | Order::DoubleTotal | Order::Float16Total)
    }

    /// Whether a value is NaN.
    pub fn is_nan(self, value: &[u8]) -> bool {
        let is_nan = match self {
            Order::Float | Order::FloatTotal => f32_of(value).map(f32::is_nan),
            Order::Double | Order::DoubleTotal => f64_of(value).map(f64::is_nan),
            Order::Float16 | Order::Float16Total => half_of(value).map(f32::is_nan),
            _ => None,
        };
        is_nan == Some(true)
    }

    /// For a zero of floating-point numbers, the zero that widens the bound, in orders where both zeros are equal: −0
    /// as a lower bound, +0 as an upper one. `None` for all other values.
    pub(crate) fn widened_zero(self, value: &[u8], is_lower: bool) -> Option<&'static [u8]> {
        let (is_zero, lower): (bool, &'static [u8]) = match self {
            Order::Float => (f32_of(value) == Some(0.0), &[0, 0, 0, 0x80]),
            Order::Double => (f64_of(value) == Some(0.0), &[0, 0, 0, 0, 0, 0, 0, 0x80]),
            Order::Float16 => (half_of(value) == Some(0.0), &[0, 0x80]),
            _ => return None,
        };
        let upper = &[0; 8][..lower.len()];
        is_zero.then_some(if is_lower { lower } else { upper })
    }
}

fn bytes<const N: usize>(value: &[u8]) -> Option<[u8; N]> {
    value.try_into().ok()
}

fn by<const N: usize, T>(
    left: &[u8],
    right: &[u8],
    read: impl Fn([u8; N]) -> T,
    compare: impl Fn(&T, &T) -> Ordering,
) -> Option<Ordering> {
    Some(compare(&read(bytes(left)?), &read(bytes(right)?)))
}

fn f32_of(value: &[u8]) -> Option<f32> {
    bytes(value).map(f32::from_le_bytes)
}

fn f64_of(value: &[u8]) -> Option<f64> {
    bytes(value).map(f64::from_le_bytes)
}

fn half_of(value: &[u8]) -> Option<f32> {
    bytes(value).map(|bytes| float_of_half(u16::from_le_bytes(bytes)))
}

/// A number that sorts as totalOrder sorts binary16: for negative ones, all bits but the sign are inverted.
fn half_rank(value: [u8; 2]) -> i16 {
    let bits = i16::from_le_bytes(value);
    if bits < 0 { bits ^ i16::MAX } else { bits }
}

/// Compares two's complement big-endian numbers of any length. `None` for no bytes, which are not a number.
fn compare_decimals(left: &[u8], right: &[u8]) -> Option<Ordering> {
    let is_negative = |value: &[u8]| Some(*value.first()? >= 0x80);
    Some(match (is_negative(left)?, is_negative(right)?) {
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (sign, _) => {
            let (left, right) = (shortest(left), shortest(right));
            // Of two positive numbers the longer is greater, of two negative ones the smaller.
            let by_length = left.len().cmp(&right.len());
            let by_length = if sign { by_length.reverse() } else { by_length };
            by_length.then_with(|| left.cmp(right))
        }
    })
}

/// Compares bytes, of which there may be none: glibc's `memcmp` takes 80 ns to compare no bytes at an address that is
/// not mapped, as that of an empty `Vec` is (the processor assists a masked load that would fault).
pub(crate) fn compare_bytes(left: &[u8], right: &[u8]) -> Ordering {
    if left.is_empty() || right.is_empty() { left.len().cmp(&right.len()) } else { left.cmp(right) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use core::cmp::Ordering::Equal;

    /// Checks that values are in order, comparing all pairs.
    #[track_caller]
    fn ascending(order: Order, values: &[&[u8]]) {
        for (a, left) in values.iter().enumerate() {
            assert!(order.is_valid(left), "{left:?}");
            for (b, right) in values.iter().enumerate() {
                assert_eq!(order.compare(left, right), Some(a.cmp(&b)), "{left:?} {right:?}");
            }
        }
    }

    #[track_caller]
    fn ascending_of<const N: usize>(order: Order, values: &[[u8; N]]) {
        ascending(order, &values.iter().map(<[u8; N]>::as_slice).collect::<Vec<_>>());
        assert!(!order.is_valid(&[0; 13]) && !order.is_valid(&[]));
        assert_eq!(order.compare(&[0; 13], &values[0]), None);
        assert_eq!(order.compare(&values[0], &[]), None);
    }

    #[test]
    fn each_order() {
        ascending_of(Order::Boolean, &[[0], [1]]);
        ascending_of(Order::Signed32, &[i32::MIN, -1, 0, 256, i32::MAX].map(i32::to_le_bytes));
        ascending_of(Order::Signed64, &[i64::MIN, -1, 0, 256, i64::MAX].map(i64::to_le_bytes));
        ascending_of(Order::Unsigned32, &[0, 256, u32::MAX].map(u32::to_le_bytes));
        ascending_of(Order::Unsigned64, &[0, 256, u64::MAX].map(u64::to_le_bytes));
        let singles = [f32::NEG_INFINITY, -1.0, 0.0, f32::MIN_POSITIVE, f32::INFINITY];
        ascending_of(Order::Float, &singles.map(f32::to_le_bytes));
        let doubles = [f64::NEG_INFINITY, -1.0, 0.0, f64::MIN_POSITIVE, f64::INFINITY];
        ascending_of(Order::Double, &doubles.map(f64::to_le_bytes));
        ascending_of(Order::Float16, &[0xfc00, 0xbc00, 0, 1, 0x7c00].map(u16::to_le_bytes));
        let total = [-f32::NAN, f32::NEG_INFINITY, -1.0, -0.0, 0.0, 1.0, f32::INFINITY, f32::NAN];
        ascending_of(Order::FloatTotal, &total.map(f32::to_le_bytes));
        ascending_of(Order::DoubleTotal, &total.map(|it| f64::from(it).to_le_bytes()));
        let halves = [0xfe00, 0xfc00, 0xbc00, 0x8000, 0, 0x3c00, 0x7c00, 0x7e00];
        ascending_of(Order::Float16Total, &halves.map(u16::to_le_bytes));
        ascending(Order::Bytes, &[b"", b"\0", b"a", b"ab", b"\x80", b"\xff\xff"]);
        ascending(
            Order::Decimal,
            &[
                &[0x80, 0, 0],
                &[0xfe, 0xff],
                &[0xff, 0],
                &[0xff, 0xff, 0x80],
                &[0xff],
                &[0],
                &[0, 1],
                &[0x7f],
                &[0, 0x80],
                &[1, 0],
            ],
        );
    }

    #[test]
    fn what_is_equal() {
        assert_eq!(Order::Decimal.compare(&[0xff], &[0xff, 0xff, 0xff]), Some(Equal));
        assert_eq!(Order::Decimal.compare(&[0, 0, 7], &[7]), Some(Equal));
        assert_eq!(Order::Decimal.compare(&[], &[7]), None);
        assert_eq!(Order::Double.compare(&(-0.0f64).to_le_bytes(), &0.0f64.to_le_bytes()), Some(Equal));
        assert_eq!(Order::Double.compare(&f64::NAN.to_le_bytes(), &0.0f64.to_le_bytes()), None);
        // Every half, compared with the order of the equal singles.
        let rank = |bits: u16| half_rank(bits.to_le_bytes());
        let single = |bits: u16| float_of_half(bits);
        for bits in 0..u16::MAX {
            assert_eq!(
                rank(bits).cmp(&rank(bits + 1)),
                single(bits).total_cmp(&single(bits + 1)),
                "{bits:#x}"
            );
        }
    }

    #[test]
    fn int96_by_day_then_by_nanoseconds() {
        let int96 = |day: i32, nanos: i64| {
            let mut bytes = [0; 12];
            bytes[..8].copy_from_slice(&nanos.to_le_bytes());
            bytes[8..].copy_from_slice(&day.to_le_bytes());
            bytes
        };
        ascending_of(
            Order::Int96,
            &[int96(-1, 9), int96(0, -1), int96(0, 0), int96(0, 1 << 40), int96(1, -5), int96(1 << 20, 0)],
        );
    }

    #[test]
    fn of_types() {
        use ColumnOrder::{Ieee754Total, Int96Timestamp, TypeDefined, Unknown};
        let of = |physical, logical: Option<LogicalType>, order| Order::of(physical, logical.as_ref(), order);
        let decimal = || Some(LogicalType::Decimal { scale: 0, precision: 9 });
        let unsigned = || Some(LogicalType::Integer { bit_width: 8, is_signed: false });
        let flba = PhysicalType::FixedLenByteArray;
        assert_eq!(of(PhysicalType::Int32, unsigned(), TypeDefined), Some(Order::Unsigned32));
        assert_eq!(of(PhysicalType::Int64, decimal(), TypeDefined), Some(Order::Signed64));
        assert_eq!(of(PhysicalType::ByteArray, decimal(), TypeDefined), Some(Order::Decimal));
        assert_eq!(of(flba(16), Some(LogicalType::Uuid), TypeDefined), Some(Order::Bytes));
        assert_eq!(of(flba(2), Some(LogicalType::Float16), TypeDefined), Some(Order::Float16));
        assert_eq!(of(flba(2), Some(LogicalType::Float16), Ieee754Total), Some(Order::Float16Total));
        assert_eq!(of(PhysicalType::Float, None, Ieee754Total), Some(Order::FloatTotal));
        assert_eq!(of(PhysicalType::Int32, None, Ieee754Total), None);
        assert_eq!(of(PhysicalType::Float, None, Int96Timestamp), None);
        assert_eq!(of(PhysicalType::Int96, None, TypeDefined), None);
        assert_eq!(of(PhysicalType::Int96, None, Int96Timestamp), Some(Order::Int96));
        assert_eq!(of(PhysicalType::Int32, None, Unknown(9)), None);
        assert_eq!(of(flba(12), Some(LogicalType::Interval), TypeDefined), None);
        assert_eq!(of(PhysicalType::ByteArray, Some(LogicalType::Geometry { crs: None }), TypeDefined), None);
        assert_eq!(
            of(
                PhysicalType::Int64,
                Some(LogicalType::Unrecognised { number: 77, has_fields: false }),
                TypeDefined
            ),
            None
        );
    }
}
