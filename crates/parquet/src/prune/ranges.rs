//! Sets of values: the ranges that a predicate accepts.
//!
//! Every comparison of a column with literals is a set of ranges: `x = 5` is one range of one value, `x <> 5` are two,
//! `x IN (1, 3)` and `x LIKE 'ab%'` are ranges, and `NOT` is the complement. So there is one way to ask whether a value is
//! accepted, whether a value between two bounds may be, and whether all values between them are.

use alloc::vec::Vec;
use core::cmp::Ordering;

use marquetry_base::Bytes;
use marquetry_base::twos_complement::to_i128;

use super::{Known, Order, compare_bytes};
use crate::scalar::{float_of_half, int96_nanos};
use crate::schema::{Meaning, PhysicalType};

/// How predicates compare the values of a leaf: by a number, or byte by byte.
///
/// All numbers have keys of 128 bits that are in the order of the values and equal where the values are: integers and
/// unscaled decimals themselves, INT96 timestamps their nanoseconds since 1970. Of floating-point numbers it is a key of the
/// binary64; −0 equals +0, and NaN equals NaN and is greater than infinity, as in PostgreSQL, DuckDB and Polars. A narrower type
/// that is read as a wider one has the same keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// By number.
    Number,
    /// Byte by byte, unsigned.
    Bytes,
    /// Byte by byte, but only equality means anything: INTERVAL, geometries, types that this version does not know.
    Equality,
}

impl Comparison {
    /// How the values of a leaf with this meaning are compared.
    pub fn of(meaning: Meaning, physical_type: PhysicalType) -> Comparison {
        match meaning.read_as(physical_type) {
            Meaning::Boolean
            | Meaning::Integer { .. }
            | Meaning::Float16
            | Meaning::Float
            | Meaning::Double
            | Meaning::Decimal { .. }
            | Meaning::Date
            | Meaning::Time { .. }
            | Meaning::Timestamp { .. }
            | Meaning::Int96 => Comparison::Number,
            Meaning::Uuid
            | Meaning::String
            | Meaning::Enum
            | Meaning::Json
            | Meaning::Bson
            | Meaning::Bytes => Comparison::Bytes,
            Meaning::Null
            | Meaning::Interval
            | Meaning::Geometry
            | Meaning::Geography
            | Meaning::Unrecognised => Comparison::Equality,
        }
    }
}

/// The key of NaN: greater than that of infinity.
pub const NAN_KEY: i128 = i64::MAX as i128;

/// The key of a floating-point number.
///
/// ```
/// use marquetry_parquet::prune::double_key;
///
/// assert_eq!(double_key(-0.0), double_key(0.0));
/// assert!(double_key(-1.5) < double_key(-1.0) && double_key(f64::INFINITY) < double_key(f64::NAN));
/// ```
#[must_use]
#[inline]
pub fn double_key(value: f64) -> i128 {
    i128::from(narrow_double_key(value))
}

/// The same in 64 bits.
#[inline]
pub(crate) fn narrow_double_key(value: f64) -> i64 {
    if value.is_nan() {
        return i64::MAX;
    }
    // Adding +0 makes −0 +0.
    let bits = (value + 0.0).to_bits().cast_signed();
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

/// The number with a key; the inverse of [`double_key`].
fn double_of_key(key: i128) -> Option<f64> {
    let key = i64::try_from(key).ok()?;
    let bits = if key < 0 { key ^ i64::MAX } else { key };
    Some(f64::from_bits(bits.cast_unsigned()))
}

/// The real numbers from the first to the last whose keys are in a range, and whether NaN's is. If there are none, the first is greater than
/// the last.
pub(crate) fn real_bounds([first, last]: [i64; 2]) -> ([f64; 2], bool) {
    let most = narrow_double_key(f64::INFINITY);
    let least = narrow_double_key(f64::NEG_INFINITY);
    // What is beyond infinity, but for the key of NaN, is no number's; nor is the one below that of zero, which −0 does not have.
    let (low, high) = (first.max(least), if last == -1 { -2 } else { last.min(most) });
    let number = |key| double_of_key(i128::from(key)).filter(|number| !number.is_nan());
    let bounds = match (number(low), number(high)) {
        (Some(low_bound), Some(high_bound)) if low <= high => [low_bound, high_bound],
        _ => [f64::INFINITY, f64::NEG_INFINITY],
    };
    (bounds, last == i64::MAX)
}

/// The widest decimal that is encoded to be hashed: schemas can claim any width.
const DECIMAL_PLAIN_BYTES_MAX: usize = 4096;

/// The key of a big-endian two's complement number. What 128 bits do not hold is the nearest that they do: no literal
/// has as many digits.
#[must_use]
pub(crate) fn decimal_key(bytes: &[u8]) -> i128 {
    match (to_i128(bytes), bytes.first()) {
        (Some(key), _) => key,
        (None, Some(0x80..)) => i128::MIN,
        (None, _) => i128::MAX,
    }
}

impl Order {
    /// The key of a value as statistics store it. `None` for bytes, and for what is not a value of the type.
    pub(crate) fn key(self, value: &[u8]) -> Option<i128> {
        if !self.is_valid(value) {
            return None;
        }
        fn le<const N: usize>(value: &[u8]) -> Option<[u8; N]> {
            value.try_into().ok()
        }
        Some(match self {
            Order::Boolean => i128::from(value[0] & 1),
            Order::Signed32 => i32::from_le_bytes(le(value)?).into(),
            Order::Signed64 => i64::from_le_bytes(le(value)?).into(),
            Order::Unsigned32 => u32::from_le_bytes(le(value)?).into(),
            Order::Unsigned64 => u64::from_le_bytes(le(value)?).into(),
            Order::Float | Order::FloatTotal => double_key(f32::from_le_bytes(le(value)?).into()),
            Order::Double | Order::DoubleTotal => double_key(f64::from_le_bytes(le(value)?)),
            Order::Float16 | Order::Float16Total => {
                double_key(float_of_half(u16::from_le_bytes(le(value)?)).into())
            }
            Order::Int96 => int96_nanos(le(value)?),
            Order::Decimal => decimal_key(value),
            Order::Bytes => return None,
        })
    }
}

/// A set of values of a leaf, as disjoint ranges in order; no two of them touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ranges {
    /// Of keys: the first and the last.
    Numbers(Vec<[i128; 2]>),
    /// Of bytes: the first, and the one after the last, or `None` for all that follow.
    Bytes(Vec<(Bytes, Option<Bytes>)>),
}

/// What bounds say about values and a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// No value is in it.
    None,
    /// Some may be.
    Some,
    /// All are.
    All,
}

impl Verdict {
    /// Of two conditions, both.
    #[must_use]
    pub fn and(self, other: Verdict) -> Verdict {
        match (self, other) {
            (Verdict::None, _) | (_, Verdict::None) => Verdict::None,
            (Verdict::All, Verdict::All) => Verdict::All,
            _ => Verdict::Some,
        }
    }

    /// Of two conditions, either.
    #[must_use]
    pub fn or(self, other: Verdict) -> Verdict {
        match (self, other) {
            (Verdict::All, _) | (_, Verdict::All) => Verdict::All,
            (Verdict::None, Verdict::None) => Verdict::None,
            _ => Verdict::Some,
        }
    }
}

impl Ranges {
    /// No value, of numbers or of bytes.
    pub fn none(comparison: Comparison) -> Ranges {
        match comparison {
            Comparison::Number => Ranges::Numbers(Vec::new()),
            Comparison::Bytes | Comparison::Equality => Ranges::Bytes(Vec::new()),
        }
    }

    /// All values.
    pub fn all(comparison: Comparison) -> Ranges {
        Ranges::none(comparison).complement()
    }

    /// Numbers by their keys, from the first to the last, both included; none where the first is greater.
    pub fn of_keys(first: i128, last: i128) -> Ranges {
        Ranges::Numbers(if first <= last { alloc::vec![[first, last]] } else { Vec::new() })
    }

    /// One byte string.
    pub fn of_bytes(value: Bytes) -> Ranges {
        let after = after(&value);
        Ranges::Bytes(alloc::vec![(value, Some(after))])
    }

    /// Byte strings that are less than `value`; with `is_inclusive` itself, too.
    pub fn bytes_before(value: &Bytes, is_inclusive: bool) -> Ranges {
        let end = if is_inclusive { after(value) } else { value.clone() };
        Ranges::Bytes(if end.is_empty() { Vec::new() } else { alloc::vec![(Bytes::new(), Some(end))] })
    }

    /// Byte strings that begin with `prefix`.
    pub fn with_prefix(prefix: Bytes) -> Ranges {
        // The first that is greater than all of them: without the last bytes that cannot grow, the one before grows.
        let kept = prefix.iter().rposition(|byte| *byte < u8::MAX).map(|at| &prefix[..=at]);
        let end = kept.map(|kept| {
            let mut end = kept.to_vec();
            if let Some(last) = end.last_mut() {
                *last += 1;
            }
            Bytes::from(end)
        });
        Ranges::Bytes(alloc::vec![(prefix, end)])
    }

    /// How many ranges it has.
    pub fn len(&self) -> usize {
        match self {
            Ranges::Numbers(ranges) => ranges.len(),
            Ranges::Bytes(ranges) => ranges.len(),
        }
    }

    /// Whether it has no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values that are not in it.
    #[must_use]
    pub fn complement(&self) -> Ranges {
        match self {
            Ranges::Numbers(ranges) => {
                let (mut gaps, mut next) = (Vec::with_capacity(ranges.len() + 1), Some(i128::MIN));
                for [first, last] in ranges {
                    if let Some(start) = next.filter(|start| start < first) {
                        gaps.push([start, first - 1]);
                    }
                    next = last.checked_add(1);
                }
                gaps.extend(next.map(|start| [start, i128::MAX]));
                Ranges::Numbers(gaps)
            }
            Ranges::Bytes(ranges) => {
                let (mut gaps, mut next) = (Vec::with_capacity(ranges.len() + 1), Some(Bytes::new()));
                for (first, end) in ranges {
                    if let Some(start) = next.take().filter(|start| start < first) {
                        gaps.push((start, Some(first.clone())));
                    }
                    next.clone_from(end);
                }
                gaps.extend(next.map(|start| (start, None)));
                Ranges::Bytes(gaps)
            }
        }
    }

    /// The values of either of many sets.
    pub fn union(sets: impl IntoIterator<Item = Ranges>, comparison: Comparison) -> Ranges {
        let (mut numbers, mut strings) = (Vec::new(), Vec::new());
        for set in sets {
            match set {
                Ranges::Numbers(ranges) => numbers.extend(ranges),
                Ranges::Bytes(ranges) => strings.extend(ranges),
            }
        }
        match comparison {
            Comparison::Number => {
                numbers.sort_unstable();
                let mut joined: Vec<[i128; 2]> = Vec::with_capacity(numbers.len());
                for [first, last] in numbers {
                    match joined.last_mut() {
                        Some([_, end]) if first <= end.saturating_add(1) => *end = last.max(*end),
                        _ => joined.push([first, last]),
                    }
                }
                Ranges::Numbers(joined)
            }
            Comparison::Bytes | Comparison::Equality => {
                strings.sort_unstable_by(|left: &(Bytes, _), right| compare_bytes(&left.0, &right.0));
                let mut joined: Vec<(Bytes, Option<Bytes>)> = Vec::with_capacity(strings.len());
                for (first, end) in strings {
                    match joined.last_mut() {
                        Some((_, None)) => {}
                        Some((_, Some(before))) if first <= *before => {
                            if end.as_ref().is_none_or(|end| *before < *end) {
                                joined.last_mut().into_iter().for_each(|last| last.1.clone_from(&end));
                            }
                        }
                        _ => joined.push((first, end)),
                    }
                }
                Ranges::Bytes(joined)
            }
        }
    }

    /// The values of both.
    #[must_use]
    pub fn intersection(&self, other: &Ranges) -> Ranges {
        let comparison = match self {
            Ranges::Numbers(_) => Comparison::Number,
            Ranges::Bytes(_) => Comparison::Bytes,
        };
        Ranges::union([self.complement(), other.complement()], comparison).complement()
    }

    /// Whether a number is in it, by its key.
    #[inline]
    pub fn has_key(&self, key: i128) -> bool {
        match self {
            Ranges::Numbers(ranges) => {
                let at = ranges.partition_point(|[_, last]| *last < key);
                ranges.get(at).is_some_and(|[first, _]| *first <= key)
            }
            Ranges::Bytes(_) => false,
        }
    }

    /// The byte string that it has, if it has one and no other.
    pub(crate) fn only_bytes(&self) -> Option<Bytes> {
        let Ranges::Bytes(ranges) = self else { return None };
        let [(first, Some(end))] = &ranges[..] else { return None };
        // The next byte string after one is that one and a zero.
        let (zero, before) = end.split_last()?;
        (*zero == 0 && before == &first[..]).then(|| first.clone())
    }

    /// Whether a byte string is in it.
    #[inline]
    pub fn has_bytes(&self, value: &[u8]) -> bool {
        match self {
            Ranges::Bytes(ranges) => {
                let is_before = |end: &Option<Bytes>| {
                    end.as_ref().is_some_and(|end| compare_bytes(end, value) != Ordering::Greater)
                };
                let at = ranges.partition_point(|(_, end)| is_before(end));
                ranges.get(at).is_some_and(|(first, _)| compare_bytes(first, value) != Ordering::Greater)
            }
            Ranges::Numbers(_) => false,
        }
    }

    /// What is known of values by their bounds, of this order: are none, some or all of those in the set that are not null? For
    /// `None` it must be certain.
    pub fn judge(&self, known: &Known<'_>, order: Option<Order>) -> Verdict {
        if known.is_only_nulls || known.values == Some(0) {
            return Verdict::None;
        }
        let may_be_nan = order.is_none_or(Order::is_floating) && known.nans != Some(0);
        let of_nans = match self.has_key(NAN_KEY) {
            true => Verdict::All,
            false => Verdict::None,
        };
        if known.is_only_nans {
            return of_nans;
        }
        let of_values = match (self, order) {
            _ if self.is_empty() => Verdict::None,
            // A number whose parts are out of range is not where its bytes say.
            (_, None | Some(Order::Int96)) => Verdict::Some,
            (Ranges::Numbers(ranges), Some(order)) => {
                let key = |bound: Option<super::Bound<'_>>| order.key(bound?.value);
                // What is no NaN is less than one.
                let greatest = if order.is_floating() { NAN_KEY - 1 } else { i128::MAX };
                let (first, last) = (key(known.min).unwrap_or(i128::MIN), key(known.max).unwrap_or(greatest));
                let at = ranges.partition_point(|[_, end]| *end < first);
                match ranges.get(at) {
                    Some(range) if range[0] <= first && last <= range[1] => Verdict::All,
                    Some(range) if range[0] <= last => Verdict::Some,
                    _ => Verdict::None,
                }
            }
            (Ranges::Bytes(ranges), Some(_)) => {
                let first = known.min.map_or(&[][..], |bound| bound.value);
                let last = known.max.map(|bound| bound.value);
                let is_before = |end: &Option<Bytes>| {
                    end.as_ref().is_some_and(|end| compare_bytes(end, first) != Ordering::Greater)
                };
                let at = ranges.partition_point(|(_, end)| is_before(end));
                let Some((start, end)) = ranges.get(at) else { return Verdict::None };
                let ends_after = match (last, end) {
                    (_, None) => true,
                    (None, Some(_)) => false,
                    (Some(last), Some(end)) => compare_bytes(last, end) == Ordering::Less,
                };
                if compare_bytes(start, first) != Ordering::Greater && ends_after {
                    Verdict::All
                } else if last.is_none_or(|last| compare_bytes(start, last) != Ordering::Greater) {
                    Verdict::Some
                } else {
                    Verdict::None
                }
            }
        };
        match (may_be_nan, of_values == of_nans) {
            (true, false) => Verdict::Some,
            _ => of_values,
        }
    }

    /// Where values are by their bounds: all before the first range (`Less`), all after the last (`Greater`), or neither.
    pub(crate) fn place(&self, known: &Known<'_>, order: Order) -> Ordering {
        let (min, max) = (known.min.map(|bound| bound.value), known.max.map(|bound| bound.value));
        let (is_before, is_after) = match self {
            Ranges::Numbers(ranges) => {
                let key = |bound: Option<&[u8]>| order.key(bound?);
                let first = ranges.first().zip(key(max)).is_some_and(|([first, _], max)| max < *first);
                (first, ranges.last().zip(key(min)).is_some_and(|([_, last], min)| min > *last))
            }
            Ranges::Bytes(ranges) => {
                let first = ranges.first().zip(max);
                let last = ranges.last().and_then(|(_, end)| end.as_ref()).zip(min);
                (
                    first.is_some_and(|((first, _), max)| compare_bytes(max, first).is_lt()),
                    last.is_some_and(|(end, min)| compare_bytes(min, end).is_ge()),
                )
            }
        };
        match (is_before, is_after) {
            (true, _) => Ordering::Less,
            (_, true) => Ordering::Greater,
            _ => Ordering::Equal,
        }
    }

    /// The values that it consists of, as PLAIN bytes of a leaf with this order, without the length of a BYTE_ARRAY: what Bloom filters
    /// hash. One value may have several encodings: both zeros. `None` if it has more than `most`, or one whose
    /// encodings are not known: NaN, INT96, decimals of any length.
    pub(crate) fn plain_values(
        &self,
        order: Order,
        physical_type: PhysicalType,
        most: usize,
    ) -> Option<Vec<Vec<u8>>> {
        let mut values = Vec::new();
        match self {
            Ranges::Numbers(ranges) => {
                for [first, last] in ranges {
                    // Numbers that follow each other are one range.
                    let count = last.checked_sub(*first).and_then(|count| usize::try_from(count).ok())?;
                    if count >= most.saturating_sub(values.len()) {
                        return None;
                    }
                    for key in *first..=*last {
                        plain_of_key(key, order, physical_type, &mut values)?;
                    }
                }
            }
            Ranges::Bytes(ranges) => {
                for (first, end) in ranges {
                    let is_one = end.as_ref().is_some_and(|end| end.strip_suffix(&[0]) == Some(&first[..]));
                    if !is_one || values.len() >= most {
                        return None;
                    }
                    values.push(first.to_vec());
                }
            }
        }
        Some(values)
    }
}

/// The first byte string that is greater.
fn after(value: &Bytes) -> Bytes {
    let mut after = Vec::with_capacity(value.len() + 1);
    after.extend_from_slice(value);
    after.push(0);
    after.into()
}

/// Adds the encodings of a number; none where no value of the type is that number. `None` if they are not known.
fn plain_of_key(
    key: i128,
    order: Order,
    physical_type: PhysicalType,
    values: &mut Vec<Vec<u8>>,
) -> Option<()> {
    let mut add = |bytes: &[u8]| values.push(bytes.to_vec());
    match order {
        Order::Boolean => add(&[u8::from(key == 1)]),
        Order::Signed32 => {
            i32::try_from(key).into_iter().for_each(|value| add(&value.to_le_bytes()));
        }
        Order::Signed64 => {
            i64::try_from(key).into_iter().for_each(|value| add(&value.to_le_bytes()));
        }
        Order::Unsigned32 => {
            u32::try_from(key).into_iter().for_each(|value| add(&value.to_le_bytes()));
        }
        Order::Unsigned64 => {
            u64::try_from(key).into_iter().for_each(|value| add(&value.to_le_bytes()));
        }
        Order::Float | Order::FloatTotal | Order::Double | Order::DoubleTotal => {
            let Some(value) = double_of_key(key).filter(|value| !value.is_nan()) else {
                return (key != NAN_KEY).then_some(());
            };
            let zeros = [0.0, -0.0];
            let several = if value == 0.0 { &zeros[..] } else { &[value][..] };
            for value in several {
                if matches!(order, Order::Double | Order::DoubleTotal) {
                    add(&value.to_le_bytes());
                    continue;
                }
                #[expect(clippy::cast_possible_truncation, reason = "compared with what it was")]
                let single = *value as f32;
                if f64::from(single) == *value {
                    add(&single.to_le_bytes());
                }
            }
        }
        Order::Decimal => {
            let PhysicalType::FixedLenByteArray(width) = physical_type else { return None };
            let width = usize::try_from(width).ok().filter(|width| *width <= DECIMAL_PLAIN_BYTES_MAX)?;
            // The keys at both ends stand for all numbers beyond them, too.
            if width > size_of::<i128>() && matches!(key, i128::MIN | i128::MAX) {
                return None;
            }
            let bytes = key.to_be_bytes();
            let sign = if key < 0 { u8::MAX } else { 0 };
            let mut value = alloc::vec![sign; width];
            let kept = width.min(bytes.len());
            value[width - kept..].copy_from_slice(&bytes[bytes.len() - kept..]);
            if decimal_key(&value) == key {
                add(&value);
            }
        }
        // Several encodings of one half would be one more case; filters of FLOAT16 are rare.
        Order::Float16 | Order::Float16Total | Order::Int96 | Order::Bytes => return None,
    }
    Some(())
}
