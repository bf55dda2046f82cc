//! Which leaf types can be read as which others without losing anything.
//!
//! * Integers become wider ones; unsigned ones may also become wider signed ones. FLOAT becomes DOUBLE.
//! * DECIMALs of one scale become those of the larger precision: INT32 and INT64 stay integers, other carriers become BYTE_ARRAY.
//! * ENUM and JSON become STRING. FIXED_LEN_BYTE_ARRAY without a logical type becomes BYTE_ARRAY.
//!
//! Nothing else: whether INT64 becomes DOUBLE, days become timestamps, or micro- become nanoseconds, can depend on the values.

use alloc::string::{String, ToString};

use super::{LogicalType, Meaning, PhysicalType, Schema};

/// The type of a leaf. An annotation that only repeats the physical type is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeafType {
    pub(crate) physical: PhysicalType,
    pub(crate) logical: Option<LogicalType>,
}

/// How the values of a leaf become those of a wider type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Widening {
    /// As they are.
    None,
    /// INT32 to INT64, by sign.
    SignExtend,
    /// INT32 to INT64, unsigned.
    ZeroExtend,
    /// FLOAT to DOUBLE.
    Double,
    /// INT32, INT64 or FIXED_LEN_BYTE_ARRAY to BYTE_ARRAY, the most significant byte first.
    Bytes,
}

impl LeafType {
    /// A leaf's, by its index.
    pub(crate) fn of(schema: &Schema, leaf: usize) -> Option<LeafType> {
        let leaf = schema.leaves.get(leaf)?;
        Some(LeafType::new(leaf.physical_type, schema.nodes[leaf.node].logical_type.as_ref()))
    }

    pub(crate) fn new(physical: PhysicalType, logical: Option<&LogicalType>) -> LeafType {
        let repeats = Meaning::of(physical, logical) == Meaning::of(physical, None);
        LeafType { physical, logical: logical.filter(|_| !repeats).cloned() }
    }

    /// True for UNKNOWN, whose values are all null and fit any other type.
    pub(crate) fn is_null(&self) -> bool {
        self.meaning() == Meaning::Null
    }

    /// The narrowest type that holds the values of both.
    pub(crate) fn join(&self, other: &LeafType) -> Option<LeafType> {
        use PhysicalType::{ByteArray, Double, FixedLenByteArray, Float, Int32, Int64};
        if self == other {
            return Some(self.clone());
        }
        if let (Some(a), Some(b)) = (self.integer(), other.integer()) {
            return join_integers(a, b);
        }
        match (&self.logical, &other.logical) {
            (None, None) => match (self.physical, other.physical) {
                (Float | Double, Float | Double) => Some(LeafType { physical: Double, logical: None }),
                (ByteArray | FixedLenByteArray(_), ByteArray | FixedLenByteArray(_)) => {
                    Some(LeafType { physical: ByteArray, logical: None })
                }
                _ => None,
            },
            (
                Some(LogicalType::Decimal { scale, precision: one }),
                Some(LogicalType::Decimal { scale: same, precision: other_precision }),
            ) if scale == same => {
                let physical = match (self.physical, other.physical) {
                    (a, b) if a == b => a,
                    (Int32 | Int64, Int32 | Int64) => Int64,
                    _ => ByteArray,
                };
                let precision = *one.max(other_precision);
                Some(LeafType { physical, logical: Some(LogicalType::Decimal { scale: *scale, precision }) })
            }
            _ if self.meaning().is_text() && other.meaning().is_text() => {
                Some(LeafType { physical: ByteArray, logical: Some(LogicalType::String) })
            }
            _ => None,
        }
    }

    /// How values of this type become values of `wider`. `None` if that could lose something.
    pub(crate) fn widen(&self, wider: &LeafType) -> Option<Widening> {
        use PhysicalType::{ByteArray, Double, FixedLenByteArray, Float, Int32, Int64};
        if self.join(wider).as_ref() != Some(wider) {
            return None;
        }
        let is_unsigned = self.integer().is_some_and(|(_, is_signed)| !is_signed);
        Some(match (self.physical, wider.physical) {
            (Int32, Int64) if is_unsigned => Widening::ZeroExtend,
            (Int32, Int64) => Widening::SignExtend,
            (Float, Double) => Widening::Double,
            (Int32 | Int64 | FixedLenByteArray(_), ByteArray) => Widening::Bytes,
            (from, to) if from == to => Widening::None,
            _ => return None,
        })
    }

    fn meaning(&self) -> Meaning {
        Meaning::of(self.physical, self.logical.as_ref())
    }

    /// Bits and signedness of an integer.
    fn integer(&self) -> Option<(u8, bool)> {
        match self.meaning() {
            Meaning::Integer { bit_width, is_signed } => Some((bit_width, is_signed)),
            _ => None,
        }
    }

    /// `INT64`, `BYTE_ARRAY STRING`.
    pub(crate) fn describe(&self) -> String {
        match &self.logical {
            Some(logical) => alloc::format!("{} {logical}", self.physical),
            None => self.physical.to_string(),
        }
    }
}

fn join_integers((a, a_signed): (u8, bool), (b, b_signed): (u8, bool)) -> Option<LeafType> {
    let (bit_width, is_signed) = if a_signed == b_signed {
        (a.max(b), a_signed)
    } else {
        let (signed, unsigned) = if a_signed { (a, b) } else { (b, a) };
        // A signed number that holds all unsigned ones needs one more bit.
        (if signed > unsigned { signed } else { unsigned.checked_mul(2)? }, true)
    };
    let physical = match bit_width {
        ..=32 => PhysicalType::Int32,
        64 => PhysicalType::Int64,
        _ => return None,
    };
    Some(LeafType::new(physical, Some(&LogicalType::Integer { bit_width, is_signed })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn types() -> Vec<LeafType> {
        use PhysicalType::*;
        let mut all = Vec::new();
        for (physical, widths) in [(Int32, &[8, 16, 32][..]), (Int64, &[64])] {
            for &bit_width in widths {
                for is_signed in [true, false] {
                    all.push(LeafType::new(physical, Some(&LogicalType::Integer { bit_width, is_signed })));
                }
            }
        }
        for physical in [
            Boolean,
            Int32,
            Int64,
            Int96,
            Float,
            Double,
            ByteArray,
            FixedLenByteArray(5),
            FixedLenByteArray(9),
        ] {
            all.push(LeafType::new(physical, None));
        }
        for physical in [Int32, Int64, ByteArray, FixedLenByteArray(5)] {
            for (precision, scale) in [(5, 2), (9, 2), (9, 3)] {
                all.push(LeafType::new(physical, Some(&LogicalType::Decimal { scale, precision })));
            }
        }
        for logical in [LogicalType::String, LogicalType::Enum, LogicalType::Json, LogicalType::Bson] {
            all.push(LeafType::new(ByteArray, Some(&logical)));
        }
        all.push(LeafType::new(Int32, Some(&LogicalType::Date)));
        all
    }

    /// Joining is commutative and idempotent, and both types can always be widened to the result.
    #[test]
    fn joins_hold_both() {
        let all = types();
        let mut joined = 0;
        for a in &all {
            assert_eq!(a.widen(a), Some(Widening::None));
            for b in &all {
                let Some(join) = a.join(b) else {
                    assert_eq!(b.join(a), None);
                    continue;
                };
                assert_eq!(b.join(a).as_ref(), Some(&join), "{a:?} {b:?}");
                assert!(a.widen(&join).is_some() && b.widen(&join).is_some(), "{a:?} {b:?} {join:?}");
                joined += usize::from(a != b);
            }
        }
        assert!(joined > 100, "{joined}");
    }

    #[test]
    fn what_widens_and_what_does_not() {
        use PhysicalType::*;
        let plain = |physical| LeafType::new(physical, None);
        let integer = |physical, bit_width, is_signed| {
            LeafType::new(physical, Some(&LogicalType::Integer { bit_width, is_signed }))
        };
        assert_eq!(plain(Int32).widen(&plain(Int64)), Some(Widening::SignExtend));
        assert_eq!(integer(Int32, 32, false).widen(&plain(Int64)), Some(Widening::ZeroExtend));
        assert_eq!(integer(Int32, 8, false).join(&integer(Int32, 8, true)), Some(integer(Int32, 16, true)));
        assert_eq!(integer(Int64, 64, false).join(&plain(Int32)), None);
        assert_eq!(plain(Int64).widen(&plain(Int32)), None);
        assert_eq!(plain(Float).widen(&plain(Double)), Some(Widening::Double));
        assert_eq!(plain(Int32).join(&plain(Double)), None);
        assert_eq!(plain(Int32).join(&LeafType::new(Int32, Some(&LogicalType::Date))), None);
        assert_eq!(plain(ByteArray).join(&LeafType::new(ByteArray, Some(&LogicalType::String))), None);
        let decimal = |physical, precision| {
            LeafType::new(physical, Some(&LogicalType::Decimal { scale: 2, precision }))
        };
        assert_eq!(decimal(Int32, 9).join(&decimal(Int64, 5)), Some(decimal(Int64, 9)));
        assert_eq!(
            decimal(FixedLenByteArray(5), 9).join(&decimal(FixedLenByteArray(16), 38)),
            Some(decimal(ByteArray, 38))
        );
    }
}
