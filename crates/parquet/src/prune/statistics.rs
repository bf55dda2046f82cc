//! Statistics, as far as they can be trusted.
//!
//! Source: `Statistics`, `ColumnOrder` and `ColumnIndex` of parquet.thrift. Each rule quotes the sentence that it
//! follows, or names the writers' bug that it guards against.

use core::cmp::Ordering;

use marquetry_base::Segmented;
use marquetry_base::cast::usize_of_u32;

use super::Order;
use crate::format::{ColumnChunk, ColumnIndex, ColumnOrder, FileMetaData, Statistics};
use crate::schema::{LogicalType, Meaning, PhysicalType};

/// A bound of values, PLAIN-encoded, but BYTE_ARRAY without a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound<'a> {
    /// No value is beyond it. It need not be one of the values, and bounds of bytes may be truncated.
    pub value: &'a [u8],
    /// Whether it is one of the values: `None` if the writer did not say. A zero whose sign was changed to widen the
    /// bound is not.
    pub is_exact: Option<bool>,
}

/// What is known about the values of a column chunk or page without reading them. `None` means unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Known<'a> {
    /// No value that is neither null nor NaN is smaller. With [`Known::is_only_nans`] it is a NaN.
    pub min: Option<Bound<'a>>,
    /// No value that is neither null nor NaN is larger. With [`Known::is_only_nans`] it is a NaN.
    pub max: Option<Bound<'a>>,
    /// Entries, nulls included.
    pub values: Option<u64>,
    /// Nulls.
    pub nulls: Option<u64>,
    /// NaNs; 0 for types that have none.
    pub nans: Option<u64>,
    /// Distinct values.
    pub distinct: Option<u64>,
    /// Every entry is null. False if unknown.
    pub is_only_nulls: bool,
    /// Every entry is null or NaN, and some are NaN. False if unknown.
    pub is_only_nans: bool,
}

/// The longest bound that is looked at: two are compared in one go.
pub(crate) const BOUND_BYTES_MAX: usize = 64 << 10;
/// The longest bound of a decimal that is looked at: of six hundred digits. The writer makes none that is longer.
pub(crate) const DECIMAL_BOUND_BYTES_MAX: usize = 256;

/// How a leaf's values are ordered, for all of its statistics.
#[derive(Debug, Clone, Copy)]
pub struct LeafOrder {
    physical_type: PhysicalType,
    /// Of `min_value` and `max_value`.
    order: Option<Order>,
    /// Of the deprecated `min` and `max`.
    deprecated: Option<Order>,
    /// Whether the deprecated bounds are only valid if they are equal: they were compared as signed numbers, but the
    /// values are not signed.
    deprecated_if_equal: bool,
    is_nullable: bool,
    is_floating: bool,
}

impl LeafOrder {
    /// The order of a leaf. `None` if the schema has no such leaf.
    pub fn of(metadata: &FileMetaData, leaf: usize) -> Option<LeafOrder> {
        let column_order = metadata.column_orders.get(leaf).copied();
        let leaf = metadata.schema.leaves().get(leaf)?;
        let logical_type = metadata.schema.node_of(leaf).logical_type.as_ref();
        Some(LeafOrder::new(leaf.physical_type, logical_type, column_order, leaf.definition_max > 0))
    }

    pub(crate) fn new(
        physical_type: PhysicalType,
        logical_type: Option<&LogicalType>,
        column_order: Option<ColumnOrder>,
        is_nullable: bool,
    ) -> LeafOrder {
        // "Without column_orders, the meaning of the min_value and max_value fields […] is undefined."
        let order = column_order.and_then(|order| Order::of(physical_type, logical_type, order));
        // "These fields encode min and max values determined by signed comparison only", whatever the type. They are
        // never used for bytes: parquet-mr before 1.8 wrote wrong ones (PARQUET-251), and others compared bytes as
        // signed.
        let is_of_bytes = |order: &Order| matches!(order, Order::Bytes | Order::Decimal | Order::Float16);
        let deprecated = Order::of(physical_type, logical_type, ColumnOrder::TypeDefined);
        let deprecated = deprecated.filter(|order| !is_of_bytes(order));
        LeafOrder {
            physical_type,
            order,
            deprecated,
            deprecated_if_equal: matches!(deprecated, Some(Order::Unsigned32 | Order::Unsigned64)),
            is_nullable,
            is_floating: Meaning::of(physical_type, logical_type).is_floating(),
        }
    }

    /// The order of the bounds of [`LeafOrder::of_statistics`] and [`LeafOrder::of_page`], by which they can be
    /// compared. `None` if there are no bounds.
    pub fn order(&self) -> Option<Order> {
        self.order.or(self.deprecated)
    }

    /// Whether values can be NaN.
    pub fn is_floating(&self) -> bool {
        self.is_floating
    }

    /// What is known about a column chunk.
    pub fn of_chunk<'a>(&self, chunk: &'a ColumnChunk) -> Known<'a> {
        match &chunk.statistics {
            Some(statistics) => self.of_statistics(statistics, Some(chunk.values)),
            // Its metadata may be encrypted, too.
            None if chunk.encrypted => Known::default(),
            None => self.counted(Known { values: Some(chunk.values), ..Known::default() }),
        }
    }

    /// What is known of values about which nothing is said.
    pub(crate) fn of_nothing(&self) -> Known<'static> {
        self.counted(Known::default())
    }

    /// What is known about the values that `statistics` describe. `values` is their number, nulls included, if known.
    pub fn of_statistics<'a>(&self, statistics: &'a Statistics, values: Option<u64>) -> Known<'a> {
        // A count above the number of entries is invalid.
        let count = |count: Option<u64>| count.filter(|count| values.is_none_or(|values| *count <= values));
        let known = self.counted(Known {
            values,
            nulls: count(statistics.null_count),
            nans: count(statistics.nan_count),
            distinct: count(statistics.distinct_count),
            ..Known::default()
        });
        let (min, max) = (statistics.min_value.as_deref(), statistics.max_value.as_deref());
        if let Some(order) = self.order
            && (min.is_some() || max.is_some())
        {
            let min = min.map(|value| Bound { value, is_exact: statistics.is_min_value_exact });
            let max = max.map(|value| Bound { value, is_exact: statistics.is_max_value_exact });
            return self.bounded(known, order, min, max);
        }
        let (min, max) = (statistics.deprecated_min.as_deref(), statistics.deprecated_max.as_deref());
        match self.deprecated {
            Some(order) if !self.deprecated_if_equal || min == max => {
                let bound = |value| Bound { value, is_exact: None };
                self.bounded(known, order, min.map(bound), max.map(bound))
            }
            _ => known,
        }
    }

    /// What a column index says about a page, without the number of entries.
    pub fn of_page<'a>(&self, index: &'a ColumnIndex, page: usize) -> Known<'a> {
        let count = |counts: &Option<Segmented<u64>>| counts.as_ref()?.get(page).copied();
        let known = self.counted(Known {
            nulls: count(&index.null_counts),
            nans: count(&index.nan_counts),
            ..Known::default()
        });
        match (index.null_pages.get(page), self.order) {
            // "If true, a page contains only null values." parquet-mr says so, too, of pages that were written without statistics, and
            // then counts no nulls, or the column has none.
            (Some(true), _) => Known { is_only_nulls: known.nulls != Some(0), ..known },
            (Some(false), Some(order)) => {
                let bound = |value| Some(Bound { value, is_exact: None });
                let (min, max) = (index.min_values.get(page), index.max_values.get(page));
                self.bounded(known, order, bound(min), bound(max))
            }
            _ => known,
        }
    }

    /// Completes the counts with what follows from the type and the other counts.
    fn counted<'a>(&self, mut known: Known<'a>) -> Known<'a> {
        if !self.is_nullable {
            known.nulls = Some(0);
        }
        // "If this field is not present, readers MUST assume NaNs may be present", for types that have them.
        if !self.is_floating {
            known.nans = Some(0);
        }
        let Some(values) = known.values else { return known };
        if values == 0 {
            return Known { nulls: Some(0), nans: Some(0), distinct: Some(0), ..known };
        }
        known.is_only_nulls = known.nulls == Some(values);
        // "nan_count + null_count == num_values".
        let nulls_and_nans = known.nulls.zip(known.nans).and_then(|(nulls, nans)| nulls.checked_add(nans));
        known.is_only_nans = nulls_and_nans == Some(values) && known.nans > Some(0);
        known
    }

    /// Adds the bounds that can be trusted.
    fn bounded<'a>(
        &self,
        known: Known<'a>,
        order: Order,
        min: Option<Bound<'a>>,
        max: Option<Bound<'a>>,
    ) -> Known<'a> {
        let is_valid = |bound: &Bound<'_>| order.is_valid(bound.value) && self.fits(order, bound.value);
        let (min, max) = (min.filter(is_valid), max.filter(is_valid));
        let is_nan = |bound: &Option<Bound<'_>>| bound.is_some_and(|bound| order.is_nan(bound.value));
        match (is_nan(&min), is_nan(&max)) {
            (false, false) => {}
            // "If all non-null values are NaN, the smallest and largest NaN values": in totalOrder they are bounds, if no count
            // contradicts.
            (true, true) if order.is_total() => {
                let values =
                    known.values.zip(known.nulls).map(|(values, nulls)| values.saturating_sub(nulls));
                let is_contradicted = known.nans.zip(values).is_some_and(|(nans, values)| nans != values);
                if is_contradicted
                    || order.compare(min.map_or(&[], |it| it.value), max.map_or(&[], |it| it.value))
                        == Some(Ordering::Greater)
                {
                    return known;
                }
                return Known { min, max, is_only_nans: true, ..known };
            }
            // "If the min is a NaN, it should be ignored", and the max. As Arrow C++ and parquet-java do, the other
            // bound is ignored with it: a writer that compared with a NaN got the other side wrong, too.
            _ => return known,
        }
        // If there are only nulls and NaNs, there is nothing to bound.
        if known.is_only_nulls || known.is_only_nans {
            return known;
        }
        // "If the min is +0, the row group may contain -0 values as well. If the max is -0, […] +0".
        let widen = |bound: Bound<'a>, is_lower| match order.widened_zero(bound.value, is_lower) {
            Some(value) if value != bound.value => Bound { value, is_exact: Some(false) },
            _ => bound,
        };
        let (min, max) = (min.map(|min| widen(min, true)), max.map(|max| widen(max, false)));
        if are_crossed(order, min, max) { known } else { Known { min, max, ..known } }
    }

    /// Whether a bound has a length that is looked at, and possible for a FIXED_LEN_BYTE_ARRAY. Bytes may be truncated; numbers may
    /// not.
    fn fits(&self, order: Order, value: &[u8]) -> bool {
        if value.len() > BOUND_BYTES_MAX || order == Order::Decimal && value.len() > DECIMAL_BOUND_BYTES_MAX {
            return false;
        }
        match self.physical_type {
            PhysicalType::FixedLenByteArray(width) if order == Order::Bytes => {
                value.len() <= usize_of_u32(width)
            }
            PhysicalType::FixedLenByteArray(width) => value.len() == usize_of_u32(width),
            _ => true,
        }
    }
}

/// True if the lower bound is above the upper one: how they were computed is unknown, so neither can be trusted.
fn are_crossed(order: Order, min: Option<Bound<'_>>, max: Option<Bound<'_>>) -> bool {
    let compared = min.zip(max).and_then(|(min, max)| order.compare(min.value, max.value));
    compared == Some(Ordering::Greater)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use marquetry_base::Bytes;

    const DECIMAL: LogicalType = LogicalType::Decimal { scale: 2, precision: 9 };
    const UINT: LogicalType = LogicalType::Integer { bit_width: 32, is_signed: false };

    fn leaf(
        physical_type: PhysicalType,
        logical_type: Option<LogicalType>,
        order: Option<ColumnOrder>,
    ) -> LeafOrder {
        LeafOrder::new(physical_type, logical_type.as_ref(), order, true)
    }

    fn typed(physical_type: PhysicalType, logical_type: Option<LogicalType>) -> LeafOrder {
        leaf(physical_type, logical_type, Some(ColumnOrder::TypeDefined))
    }

    /// What takes long to compare bounds nothing.
    #[test]
    fn bounds_that_are_too_long() {
        let known = |order: &LeafOrder, length: usize| {
            let statistics = Statistics {
                min_value: bytes(&vec![0; length]),
                max_value: bytes(&vec![1; length]),
                ..Statistics::default()
            };
            let known = order.of_statistics(&statistics, None);
            (known.min.is_some(), known.max.is_some())
        };
        let (strings, decimals) =
            (typed(PhysicalType::ByteArray, None), typed(PhysicalType::ByteArray, Some(DECIMAL)));
        assert_eq!(known(&strings, BOUND_BYTES_MAX), (true, true));
        assert_eq!(known(&strings, BOUND_BYTES_MAX + 1), (false, false));
        assert_eq!(known(&decimals, DECIMAL_BOUND_BYTES_MAX), (true, true));
        assert_eq!(known(&decimals, DECIMAL_BOUND_BYTES_MAX + 1), (false, false));
    }

    fn bytes(value: &[u8]) -> Option<Bytes> {
        Some(Bytes::copy_from_slice(value))
    }

    fn new(min: &[u8], max: &[u8]) -> Statistics {
        Statistics { min_value: bytes(min), max_value: bytes(max), ..Statistics::default() }
    }

    fn old(min: &[u8], max: &[u8]) -> Statistics {
        Statistics { deprecated_min: bytes(min), deprecated_max: bytes(max), ..Statistics::default() }
    }

    /// The bounds' bytes.
    fn bounds(leaf: LeafOrder, statistics: &Statistics) -> Option<(Vec<u8>, Vec<u8>)> {
        let known = leaf.of_statistics(statistics, Some(10));
        assert_eq!(known.min.is_some(), known.max.is_some());
        known.min.zip(known.max).map(|(min, max)| (min.value.to_vec(), max.value.to_vec()))
    }

    #[test]
    fn deprecated_bounds_only_of_signed_numbers() {
        let of = |physical, logical, min: &[u8], max: &[u8]| {
            bounds(typed(physical, logical), &old(min, max)).is_some()
        };
        assert!(of(PhysicalType::Int32, None, &[1, 0, 0, 0], &[2, 0, 0, 0]));
        assert!(of(PhysicalType::Int32, Some(DECIMAL), &[1, 0, 0, 0], &[2, 0, 0, 0]));
        assert!(of(PhysicalType::Boolean, None, &[0], &[1]));
        assert!(of(PhysicalType::Double, None, &1.0f64.to_le_bytes(), &2.0f64.to_le_bytes()));
        assert!(!of(PhysicalType::Int32, Some(UINT), &[1, 0, 0, 0], &[2, 0, 0, 0]));
        assert!(of(PhysicalType::Int32, Some(UINT), &[9, 0, 0, 0x80], &[9, 0, 0, 0x80]));
        assert!(!of(PhysicalType::ByteArray, Some(LogicalType::String), b"a", b"b"));
        assert!(!of(PhysicalType::ByteArray, None, b"a", b"a"));
        assert!(!of(PhysicalType::FixedLenByteArray(2), Some(DECIMAL), &[0, 1], &[0, 2]));
        assert!(!of(PhysicalType::Int96, None, &[0; 12], &[1; 12]));
        // They are valid even without a column order; the newer ones then mean nothing.
        let no_order = leaf(PhysicalType::Int32, None, None);
        assert!(bounds(no_order, &old(&[1, 0, 0, 0], &[2, 0, 0, 0])).is_some());
        assert!(bounds(no_order, &new(&[1, 0, 0, 0], &[2, 0, 0, 0])).is_none());
    }

    #[test]
    fn nans_are_ignored_by_value_and_bounds_in_total_order() {
        let nan = f32::NAN.to_le_bytes();
        let (one, two) = (1.0f32.to_le_bytes(), 2.0f32.to_le_bytes());
        let by_value = typed(PhysicalType::Float, None);
        assert!(bounds(by_value, &new(&one, &two)).is_some());
        for (min, max) in [(nan, two), (one, nan), (nan, nan)] {
            assert_eq!(bounds(by_value, &new(&min, &max)), None);
        }
        let usual = new(&one, &two);
        let known = by_value.of_statistics(&usual, Some(10));
        assert_eq!((known.nans, known.is_only_nans), (None, false));
        let total = leaf(PhysicalType::Float, None, Some(ColumnOrder::Ieee754Total));
        assert!(total.of_statistics(&new(&nan, &nan), Some(10)).is_only_nans);
        assert_eq!(bounds(total, &new(&one, &nan)), None);
        // Three NaNs and one null among ten values are not all.
        let mut some = new(&nan, &nan);
        (some.nan_count, some.null_count) = (Some(3), Some(1));
        let known = total.of_statistics(&some, Some(10));
        assert_eq!((known.min, known.is_only_nans), (None, false));
        some.nan_count = Some(9);
        let known = total.of_statistics(&some, Some(10));
        assert!(known.min.is_some() && known.is_only_nans);
    }

    #[test]
    fn zeros_reach_both_ways() {
        let (plus, minus) = (0.0f64.to_le_bytes(), (-0.0f64).to_le_bytes());
        let mut zeros = new(&plus, &minus);
        (zeros.is_min_value_exact, zeros.is_max_value_exact) = (Some(true), Some(true));
        let known = typed(PhysicalType::Double, None).of_statistics(&zeros, Some(10));
        assert_eq!(known.min, Some(Bound { value: &minus, is_exact: Some(false) }));
        assert_eq!(known.max, Some(Bound { value: &plus, is_exact: Some(false) }));
        let half = typed(PhysicalType::FixedLenByteArray(2), Some(LogicalType::Float16));
        assert_eq!(bounds(half, &new(&[0, 0], &[0, 0x80])), Some((vec![0, 0x80], vec![0, 0])));
        // In totalOrder, +0 above −0 is valid, and −0 above +0 is not.
        let total = leaf(PhysicalType::Double, None, Some(ColumnOrder::Ieee754Total));
        assert_eq!(bounds(total, &new(&plus, &plus)), Some((plus.to_vec(), plus.to_vec())));
        assert_eq!(bounds(total, &new(&plus, &minus)), None);
    }

    #[test]
    fn int96_only_in_its_own_order() {
        let values = new(&[0; 12], &[1; 12]);
        assert_eq!(bounds(typed(PhysicalType::Int96, None), &values), None);
        assert!(
            bounds(leaf(PhysicalType::Int96, None, Some(ColumnOrder::Int96Timestamp)), &values).is_some()
        );
    }

    #[test]
    fn bytes_may_be_cut_and_numbers_may_not() {
        let text = typed(PhysicalType::ByteArray, Some(LogicalType::String));
        let mut cut = new(b"ab", b"b");
        cut.is_max_value_exact = Some(false);
        let known = text.of_statistics(&cut, None);
        assert_eq!(known.min, Some(Bound { value: b"ab", is_exact: None }));
        assert_eq!(known.max, Some(Bound { value: b"b", is_exact: Some(false) }));
        let fixed = PhysicalType::FixedLenByteArray(4);
        assert!(bounds(typed(fixed, None), &new(b"a", b"b")).is_some());
        assert!(bounds(typed(fixed, None), &new(b"aaaaa", b"bbbbb")).is_none());
        assert!(bounds(typed(fixed, Some(DECIMAL)), &new(&[0], &[1])).is_none());
        assert!(bounds(typed(PhysicalType::ByteArray, Some(DECIMAL)), &new(&[0xff], &[1, 0])).is_some());
        assert!(bounds(typed(PhysicalType::Int32, None), &new(&[1], &[2])).is_none());
    }

    #[test]
    fn pages_of_nulls_that_have_none() {
        let mut index = ColumnIndex { null_pages: [true].into_iter().collect(), ..ColumnIndex::default() };
        let is_null = |index: &ColumnIndex, is_nullable| {
            let order = Some(ColumnOrder::TypeDefined);
            LeafOrder::new(PhysicalType::Int32, None, order, is_nullable).of_page(index, 0).is_only_nulls
        };
        assert!(is_null(&index, true) && !is_null(&index, false));
        index.null_counts = Some([0].into_iter().collect());
        assert!(!is_null(&index, true));
        index.null_counts = Some([3].into_iter().collect());
        assert!(is_null(&index, true) && !is_null(&index, false));
    }

    #[test]
    fn what_contradicts_itself_is_not_known() {
        let int = typed(PhysicalType::Int32, None);
        assert_eq!(bounds(int, &new(&[2, 0, 0, 0], &[1, 0, 0, 0])), None);
        let mut counts = new(&[1, 0, 0, 0], &[2, 0, 0, 0]);
        (counts.null_count, counts.distinct_count) = (Some(11), Some(11));
        let known = int.of_statistics(&counts, Some(10));
        assert_eq!((known.nulls, known.distinct, known.nans), (None, None, Some(0)));
        counts.null_count = Some(10);
        let known = int.of_statistics(&counts, Some(10));
        assert_eq!((known.is_only_nulls, known.min), (true, None));
        let required = LeafOrder::new(PhysicalType::Int32, None, Some(ColumnOrder::TypeDefined), false);
        assert_eq!(required.of_statistics(&counts, Some(10)).nulls, Some(0));
    }
}
