//! Which values of an array are in a set of ranges.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Budget, Bytes, Error, Price, Result};
use marquetry_kernels::within;

use super::ranges::{decimal_key, narrow_double_key};
use super::{Comparison, Order, Ranges, compare_bytes};
use crate::batch::Values;
use crate::format::ColumnOrder;
use crate::scalar::{float_of_half, int96_nanos};
use crate::schema::{Leaf, Meaning, Schema};

/// Values that are looked at together, at most.
pub(crate) const SLICE_VALUES: usize = 1024;
/// A bit for each of them.
pub(crate) type SliceBits = [u64; SLICE_VALUES / 64];

/// The price of comparing a number with one range, of a number of more than 64 bits, of a look at one of many ranges, and of a byte string.
const NARROW_PRICE: Price = Price::per_kilovalue(1 << 10);
const WIDE_PRICE: Price = Price::per_kilovalue(12 << 10);
/// As [`WIDE_PRICE`]; and each byte beyond sixteen, which may repeat the sign.
const DECIMAL_PRICE: Price = Price { kib: 1500, kilovalue: 12 << 10 };
/// The longest decimal that is looked at: it is done in one go.
const DECIMAL_BYTES_MAX: usize = 16 << 10;
const LOOK_PRICE: Price = Price::per_kilovalue(4 << 10);
const BYTES_PRICE: Price = Price { kib: 100, kilovalue: 20 << 10 };
/// The price of looking an index up.
const INDEX_PRICE: Price = Price::per_kilovalue(2 << 10);

/// Says which values of a leaf are in a set.
#[derive(Debug)]
pub(crate) struct Matcher {
    ranges: Ranges,
    /// The same for numbers of at most 64 bits, whose order signed 64 bits have.
    narrow: Vec<[i64; 2]>,
    order: Order,
    /// Of the ranges, so many are looked at for a value, and so many bytes of each at most.
    looks: usize,
    literal_bytes: usize,
    /// The only byte string of the set, if it has one.
    only: Option<Bytes>,
    /// The dictionary that was looked at last.
    dictionary: Option<Looked>,
}

/// A dictionary, and which of its values are in the set.
#[derive(Debug)]
struct Looked {
    dictionary: Arc<Values>,
    /// A bit for each value that was looked at, and how many were.
    bits: Vec<u64>,
    looked: usize,
    /// The first and the last of those that are in it, once all are looked at, if they follow each other: then indices are compared
    /// with them. Most often it is one.
    run: Option<[u32; 2]>,
    /// None is in it.
    is_empty: bool,
}

/// The order of a leaf's values, of whatever they mean: bytes where nothing says another.
pub(crate) fn order_of(schema: &Schema, leaf: &Leaf) -> Order {
    let logical_type = schema.node_of(leaf).logical_type.as_ref();
    match Meaning::of(leaf.physical_type, logical_type).read_as(leaf.physical_type) {
        Meaning::Int96 => Order::Int96,
        _ => Order::of(leaf.physical_type, logical_type, ColumnOrder::TypeDefined).unwrap_or(Order::Bytes),
    }
}

impl Matcher {
    /// For values of a leaf.
    ///
    /// # Errors
    ///
    /// `Misuse` for ranges of bytes where the leaf has numbers, and the other way round.
    pub(crate) fn new(schema: &Schema, leaf: &Leaf, ranges: &Ranges) -> Result<Matcher> {
        let node = schema.node_of(leaf);
        let meaning = Meaning::of(leaf.physical_type, node.logical_type.as_ref());
        let is_of_numbers = Comparison::of(meaning, leaf.physical_type) == Comparison::Number;
        if is_of_numbers != matches!(ranges, Ranges::Numbers(_)) {
            return Err(Error::misuse(alloc::format!("ranges that do not suit the column {:?}", node.name)));
        }
        let order = order_of(schema, leaf);
        let (mut narrow, mut literal_bytes) = (Vec::new(), 0);
        match ranges {
            Ranges::Numbers(ranges) => {
                narrow = ranges.iter().filter_map(|range| narrowed(*range, order)).collect();
            }
            Ranges::Bytes(ranges) => {
                let lengths = ranges
                    .iter()
                    .map(|(first, end)| first.len().max(end.as_ref().map_or(0, |end| end.len())));
                literal_bytes = lengths.max().unwrap_or(0);
            }
        }
        let looks = usize_of_u32(ranges.len().max(1).ilog2()) + 1;
        let only = ranges.only_bytes();
        Ok(Matcher { ranges: ranges.clone(), narrow, order, looks, literal_bytes, only, dictionary: None })
    }

    /// Sets the bits of those values of a range, which is no longer than a slice, that are in the set. Returns how many it looked at:
    /// at least one, if there is one, and all if the budget is not spent before.
    pub(crate) fn step(
        &mut self,
        values: &Values,
        range: Range<usize>,
        bits: &mut SliceBits,
        budget: &mut Budget<'_>,
    ) -> Result<usize> {
        bits.fill(0);
        if range.len() > SLICE_VALUES {
            return Err(Error::internal("more values than are looked at together"));
        }
        let outside = || Error::internal("values that are not there");
        let is_signed = !matches!(self.order, Order::Unsigned32 | Order::Unsigned64);
        macro_rules! narrow {
            ($values:expr, $within:expr, $key:expr) => {{
                let values = $values.get(range.clone()).ok_or_else(outside)?;
                self.narrow(values, $within, $key, bits, budget)?
            }};
        }
        Ok(match (values, self.order) {
            (Values::Int32(values), _) if is_signed => {
                narrow!(values, bounds::signed32, |value: &i32| i64::from(*value))
            }
            (Values::Int32(values), _) => {
                narrow!(values, bounds::unsigned32, |value: &i32| i64::from(value.cast_unsigned()))
            }
            (Values::Int64(values), _) if is_signed => {
                narrow!(values, bounds::signed64, |value: &i64| *value)
            }
            (Values::Int64(values), _) => {
                narrow!(values, bounds::unsigned64, |value: &i64| *value ^ i64::MIN)
            }
            (Values::Float(values), _) => {
                narrow!(values, bounds::float, |value: &f32| narrow_double_key((*value).into()))
            }
            (Values::Double(values), _) => {
                narrow!(values, bounds::double, |value: &f64| narrow_double_key(*value))
            }
            (Values::Boolean(values), _) => {
                let ranges = &self.ranges;
                let accepted = [ranges.has_key(0), ranges.has_key(1)];
                self.wide(range, bits, budget, |at| Some(accepted[usize::from(values.get(at))]))?
            }
            (Values::Int96(values), _) => {
                let ranges = &self.ranges;
                self.wide(range, bits, budget, |at| {
                    Some(ranges.has_key(int96_nanos(values.get(at).try_into().ok()?)))
                })?
            }
            (Values::FixedLenByteArray(values), Order::Float16 | Order::Float16Total) => {
                let ranges = &self.ranges;
                self.wide(range, bits, budget, |at| {
                    let half = u16::from_le_bytes(values.get(at).try_into().ok()?);
                    Some(ranges.has_key(i128::from(narrow_double_key(float_of_half(half).into()))))
                })?
            }
            (Values::FixedLenByteArray(values), Order::Decimal) => {
                self.decimals(range, bits, budget, |at| values.get(at))?
            }
            (Values::ByteArray(values), Order::Decimal) => {
                self.decimals(range, bits, budget, |at| values.get(at))?
            }
            (Values::FixedLenByteArray(values), _) => self.bytes(range, bits, budget, |at| values.get(at)),
            (Values::ByteArray(values), _) => self.bytes(range, bits, budget, |at| values.get(at)),
            (Values::Dictionary(indices, dictionary), _) => {
                let indices = indices.get(range).ok_or_else(outside)?;
                return self.indices(indices, dictionary, bits, budget);
            }
        })
    }

    /// Numbers of at most 64 bits, by their keys.
    fn narrow<T>(
        &self,
        values: &[T],
        within: impl Fn(&[T], [i64; 2], &mut [u64]) -> Result<()>,
        key: impl Fn(&T) -> i64,
        bits: &mut SliceBits,
        budget: &mut Budget<'_>,
    ) -> Result<usize> {
        let words = &mut bits[..values.len().div_ceil(64)];
        match self.narrow[..] {
            [] => {}
            [range] => {
                within(values, range, words)?;
                budget.charge(NARROW_PRICE, 0, values.len());
            }
            [one, other] => {
                let mut more: SliceBits = [0; SLICE_VALUES / 64];
                let more = &mut more[..words.len()];
                within(values, one, words)?;
                within(values, other, more)?;
                words.iter_mut().zip(more).for_each(|(word, more)| *word |= *more);
                budget.charge(NARROW_PRICE, 0, 2 * values.len());
            }
            _ => {
                each(values.len(), bits, |at| {
                    let key = key(&values[at]);
                    let found = self.narrow.partition_point(|[_, last]| *last < key);
                    self.narrow.get(found).is_some_and(|[first, _]| *first <= key)
                });
                budget.charge(LOOK_PRICE, 0, values.len() * (self.looks + 1));
            }
        }
        Ok(values.len())
    }

    fn wide(
        &self,
        range: Range<usize>,
        bits: &mut SliceBits,
        budget: &mut Budget<'_>,
        accepts: impl Fn(usize) -> Option<bool>,
    ) -> Result<usize> {
        for (at, value) in range.clone().enumerate() {
            let accepted =
                accepts(value).ok_or_else(|| Error::internal("a value of another width than its type"))?;
            bits[at / 64] |= u64::from(accepted) << (at % 64);
            if at % 64 == 63 {
                budget.charge(WIDE_PRICE, 0, 64);
                budget.charge(LOOK_PRICE, 0, 64 * self.looks);
                if budget.is_spent() {
                    return Ok(at + 1);
                }
            }
        }
        budget.charge(WIDE_PRICE, 0, range.len() % 64);
        budget.charge(LOOK_PRICE, 0, range.len() % 64 * self.looks);
        Ok(range.len())
    }

    /// Numbers of any length, whose first bytes may be nothing but their sign.
    fn decimals<'a>(
        &self,
        range: Range<usize>,
        bits: &mut SliceBits,
        budget: &mut Budget<'_>,
        value: impl Fn(usize) -> &'a [u8],
    ) -> Result<usize> {
        let mut unpaid = (0, 0);
        for (at, number) in range.clone().enumerate() {
            let value = value(number);
            if value.len() > DECIMAL_BYTES_MAX {
                let message = format!("a decimal of {} bytes: at most {DECIMAL_BYTES_MAX}", value.len());
                return Err(Error::too_large(message));
            }
            // No bytes are no number.
            let accepted = !value.is_empty() && self.ranges.has_key(decimal_key(value));
            bits[at / 64] |= u64::from(accepted) << (at % 64);
            unpaid = (unpaid.0 + value.len().saturating_sub(size_of::<i128>()), unpaid.1 + 1);
            if unpaid.1 == 64 || unpaid.0 >= DECIMAL_BYTES_MAX || at + 1 == range.len() {
                budget.charge(DECIMAL_PRICE, unpaid.0, unpaid.1);
                budget.charge(LOOK_PRICE, 0, unpaid.1 * self.looks);
                unpaid = (0, 0);
                if budget.is_spent() {
                    return Ok(at + 1);
                }
            }
        }
        Ok(range.len())
    }

    fn bytes<'a>(
        &self,
        range: Range<usize>,
        bits: &mut SliceBits,
        budget: &mut Budget<'_>,
        value: impl Fn(usize) -> &'a [u8],
    ) -> usize {
        let one_range = match &self.ranges {
            Ranges::Bytes(ranges) if ranges.len() == 1 => ranges.first(),
            _ => None,
        };
        for (at, number) in range.clone().enumerate() {
            let value = value(number);
            let accepted = match (&self.only, one_range) {
                (Some(only), _) => is_equal(only, value),
                (None, Some((first, end))) => {
                    compare_bytes(first, value).is_le()
                        && end.as_ref().is_none_or(|end| compare_bytes(value, end).is_lt())
                }
                (None, None) => self.ranges.has_bytes(value),
            };
            bits[at / 64] |= u64::from(accepted) << (at % 64);
            // Two bounds are looked at.
            let compared = 2 * value.len().min(self.literal_bytes);
            budget.charge(BYTES_PRICE, compared * self.looks, self.looks);
            if budget.is_spent() {
                return at + 1;
            }
        }
        range.len()
    }

    /// Indices into a dictionary: each of its values is looked at once. Returns no index at all if the budget is spent before all of them
    /// are.
    fn indices(
        &mut self,
        indices: &[u32],
        values: &Arc<Values>,
        bits: &mut SliceBits,
        budget: &mut Budget<'_>,
    ) -> Result<usize> {
        let known = self.dictionary.take().filter(|known| Arc::ptr_eq(&known.dictionary, values));
        let mut known = known.unwrap_or_else(|| Looked::new(values));
        while known.looked < values.len() {
            let end = values.len().min(known.looked + SLICE_VALUES);
            let done = self.step(values, known.looked..end, bits, budget)?;
            known.add(bits, done);
            budget.charge(INDEX_PRICE, 0, done);
            if budget.is_spent() && known.looked < values.len() {
                self.dictionary = Some(known);
                return Ok(0);
            }
        }
        bits.fill(0);
        if let Some([first, last]) = known.run {
            let words = &mut bits[..indices.len().div_ceil(64)];
            within::u32(indices, [first, last], words).map_err(|_| not_a_word())?;
            budget.charge(NARROW_PRICE, 0, indices.len());
        } else if !known.is_empty {
            each(indices.len(), bits, |at| {
                let index = usize_of_u32(indices[at]);
                known.bits.get(index / 64).copied().unwrap_or(0) >> (index % 64) & 1 == 1
            });
            budget.charge(INDEX_PRICE, 0, indices.len());
        }
        self.dictionary = Some(known);
        Ok(indices.len())
    }
}

impl Looked {
    fn new(dictionary: &Arc<Values>) -> Looked {
        let dictionary = Arc::clone(dictionary);
        Looked { dictionary, bits: Vec::new(), looked: 0, run: None, is_empty: true }
    }

    /// Adds the bits of the next values. Slices begin anywhere: where a budget was spent.
    fn add(&mut self, bits: &SliceBits, count: usize) {
        for at in 0..count {
            let number = self.looked + at;
            if number / 64 == self.bits.len() {
                self.bits.push(0);
            }
            let bit = bits[at / 64] >> (at % 64) & 1;
            self.bits[number / 64] |= bit << (number % 64);
            if bit == 1 {
                let index = u32::try_from(number).unwrap_or(u32::MAX);
                self.run = match self.run {
                    _ if self.is_empty => Some([index, index]),
                    Some([first, last]) if last + 1 == index => Some([first, index]),
                    _ => None,
                };
                self.is_empty = false;
            }
        }
        self.looked += count;
    }
}

/// The bits of numbers whose keys are in a range, of each kind.
mod bounds {
    use marquetry_base::Result;
    use marquetry_kernels::within;

    use super::super::ranges::{narrow_double_key, real_bounds};
    use super::not_a_word;

    pub(super) fn signed32(values: &[i32], [first, last]: [i64; 2], out: &mut [u64]) -> Result<()> {
        let (first, last) = (first.max(i32::MIN.into()), last.min(i32::MAX.into()));
        match (i32::try_from(first), i32::try_from(last)) {
            (Ok(first), Ok(last)) if first <= last => {
                within::i32(values, [first, last], false, out).map_err(|_| not_a_word())
            }
            _ => none(out),
        }
    }

    pub(super) fn unsigned32(values: &[i32], [first, last]: [i64; 2], out: &mut [u64]) -> Result<()> {
        let (first, last) = (first.max(0), last.min(u32::MAX.into()));
        match (u32::try_from(first), u32::try_from(last)) {
            (Ok(first), Ok(last)) if first <= last => {
                let bounds = [first.cast_signed(), last.cast_signed()];
                within::i32(values, bounds, false, out).map_err(|_| not_a_word())
            }
            _ => none(out),
        }
    }

    pub(super) fn signed64(values: &[i64], bounds: [i64; 2], out: &mut [u64]) -> Result<()> {
        within::i64(values, bounds, false, out).map_err(|_| not_a_word())
    }

    pub(super) fn unsigned64(values: &[i64], [first, last]: [i64; 2], out: &mut [u64]) -> Result<()> {
        // Keys are moved into signed numbers.
        within::i64(values, [first ^ i64::MIN, last ^ i64::MIN], false, out).map_err(|_| not_a_word())
    }

    pub(super) fn double(values: &[f64], range: [i64; 2], out: &mut [u64]) -> Result<()> {
        let (bounds, has_nan) = real_bounds(range);
        within::f64(values, bounds, has_nan, out).map_err(|_| not_a_word())
    }

    pub(super) fn float(values: &[f32], range: [i64; 2], out: &mut [u64]) -> Result<()> {
        let ([first, last], has_nan) = real_bounds(range);
        // The nearest that are within.
        #[allow(clippy::cast_possible_truncation, reason = "rounded, and then corrected")]
        let (mut low, mut high) = (first as f32, last as f32);
        if narrow_double_key(low.into()) < narrow_double_key(first) {
            low = low.next_up();
        }
        if narrow_double_key(high.into()) > narrow_double_key(last) {
            high = high.next_down();
        }
        within::f32(values, [low, high], has_nan, out).map_err(|_| not_a_word())
    }

    fn none(out: &mut [u64]) -> Result<()> {
        out.fill(0);
        Ok(())
    }
}

fn not_a_word() -> Error {
    Error::internal("bits of another number of values")
}

/// Whether two byte strings are equal: most that are not differ near their beginning, which is looked at in place.
#[inline]
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    match (one.first_chunk::<16>(), other.first_chunk()) {
        (Some(head), Some(other_head)) => {
            u128::from_le_bytes(*head) == u128::from_le_bytes(*other_head) && one == other
        }
        _ => one == other,
    }
}

/// Sets the bit of each number below `count` that is accepted.
#[inline]
fn each(count: usize, bits: &mut SliceBits, accepts: impl Fn(usize) -> bool) {
    for (number, word) in bits.iter_mut().enumerate() {
        let first = number * 64;
        if first >= count {
            break;
        }
        let bits = 64.min(count - first);
        let mut made = 0;
        for bit in 0..bits {
            made |= u64::from(accepts(first + bit)) << bit;
        }
        *word = made;
    }
}

/// A range of keys, as far as values of 64 bits have them, in signed 64 bits. Unsigned ones are moved.
fn narrowed([first, last]: [i128; 2], order: Order) -> Option<[i64; 2]> {
    let (least, most) = match order {
        Order::Unsigned64 => (0, i128::from(u64::MAX)),
        _ => (i64::MIN.into(), i64::MAX.into()),
    };
    let (first, last) = (first.max(least), last.min(most));
    let narrow = |key: i128| match order {
        Order::Unsigned64 => u64::try_from(key).ok().map(|key| key.cast_signed() ^ i64::MIN),
        _ => i64::try_from(key).ok(),
    };
    if first > last { None } else { Some([narrow(first)?, narrow(last)?]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::ByteArrays;
    use crate::prune::ranges::{double_key, real_bounds};
    use crate::schema::of_lines;

    /// Bounds of real numbers have the values that their keys have.
    #[test]
    fn real_numbers_are_where_their_keys_are() {
        let tiny = f64::from_bits(1);
        let numbers = [
            f64::NAN,
            f64::NEG_INFINITY,
            f64::MIN,
            -1e39,
            f64::from(f32::MIN),
            -1.1,
            f64::from(-1.1_f32),
            -tiny,
            -0.0,
            0.0,
            tiny,
            f64::from(f32::from_bits(1)),
            1.1,
            f64::from(1.1_f32),
            f64::from(f32::MAX),
            1e39,
            f64::MAX,
            f64::INFINITY,
        ];
        let mut keys: Vec<i64> = numbers.iter().map(|number| narrow_double_key(*number)).collect();
        keys.extend(keys.clone().iter().flat_map(|key| [key.saturating_sub(1), key.saturating_add(1)]));
        keys.extend([i64::MIN, i64::MAX]);
        #[allow(clippy::cast_possible_truncation, reason = "the nearest will do")]
        let singles: Vec<f32> = numbers.iter().map(|number| *number as f32).collect();
        let is_set = |out: u64, at: usize| out >> at & 1 == 1;
        for &first in &keys {
            for &last in keys.iter().filter(|last| first <= **last) {
                let range = [first, last];
                let is_in = |key: i64| first <= key && key <= last;
                let mut out = [0];
                bounds::double(&numbers, range, &mut out).unwrap();
                for (at, number) in numbers.iter().enumerate() {
                    let key = narrow_double_key(*number);
                    assert_eq!(is_set(out[0], at), is_in(key), "{number} {range:?} {:?}", real_bounds(range));
                }
                bounds::float(&singles, range, &mut out).unwrap();
                for (at, number) in singles.iter().enumerate() {
                    let key = narrow_double_key((*number).into());
                    assert_eq!(is_set(out[0], at), is_in(key), "{number} {range:?}");
                }
            }
        }
        assert!(double_key(-tiny) < double_key(-0.0));
    }

    /// Numbers that repeat their sign are looked at to their first digit, and that is paid for; too long ones are refused.
    #[test]
    fn long_decimals_are_paid_by_the_byte() {
        let ranges = Ranges::Numbers(Vec::from([[7, 9]]));
        let matcher = |ranges: &Ranges| Matcher {
            ranges: ranges.clone(),
            narrow: Vec::new(),
            order: Order::Decimal,
            looks: 1,
            literal_bytes: 0,
            only: None,
            dictionary: None,
        };
        let value = |length: usize, number: u8| {
            let mut value = alloc::vec![0; length];
            value.extend([number]);
            value
        };
        let mut all: Vec<Vec<u8>> = (0..100).map(|at| value(9000, at)).collect();
        all.push(Vec::new());
        let arrays = |all: &[Vec<u8>]| {
            Values::ByteArray(
                ByteArrays::from_lengths(all.concat().into(), all.iter().map(Vec::len)).unwrap(),
            )
        };
        let (values, mut done, mut spent, mut found) = (arrays(&all), 0, 0, Vec::new());
        while done < all.len() {
            let (mut bits, mut budget): (SliceBits, _) = ([0; _], Budget::new(0));
            let some = matcher(&ranges).step(&values, done..all.len(), &mut bits, &mut budget).unwrap();
            assert!(budget.spent() <= DECIMAL_PRICE.of(3 * DECIMAL_BYTES_MAX, 64), "{}", budget.spent());
            spent += budget.spent();
            found.extend((0..some).filter(|at| bits[at / 64] >> (at % 64) & 1 == 1).map(|at| done + at));
            done += some;
        }
        assert_eq!(found, [7, 8, 9]);
        assert!(spent >= DECIMAL_PRICE.of(100 * 8900, 0), "{spent}");
        let values = arrays(&[value(DECIMAL_BYTES_MAX, 7)]);
        let error = matcher(&ranges).step(&values, 0..1, &mut [0; _], &mut Budget::unlimited()).unwrap_err();
        assert_eq!(error.message(), "a decimal of 16385 bytes: at most 16384");
    }

    /// Values of a dictionary that follow each other are a run of indices; others are looked up.
    #[test]
    fn indices_of_a_dictionary() {
        let schema = of_lines(&[(1, '!', "x", "")]);
        let leaf = &schema.leaves()[0];
        let dictionary = Arc::new(Values::from((0..100_i32).collect::<Vec<_>>()));
        let indices: Vec<u32> = (0..1000).map(|at| at * 7 % 100).collect();
        for wanted in
            [&[[3, 3]][..], &[[10, 40]], &[[0, 5], [70, 80]], &[[2, 2], [4, 4], [6, 99]], &[[200, 300]]]
        {
            let ranges = Ranges::Numbers(wanted.to_vec());
            let mut matcher = Matcher::new(&schema, leaf, &ranges).unwrap();
            let values = Values::Dictionary(indices.clone().into(), Arc::clone(&dictionary));
            let mut bits: SliceBits = [0; SLICE_VALUES / 64];
            let done = matcher.step(&values, 0..1000, &mut bits, &mut Budget::unlimited()).unwrap();
            assert_eq!(done, 1000);
            for (at, index) in indices.iter().enumerate() {
                let is_in = ranges.has_key((*index).into());
                assert_eq!(bits[at / 64] >> (at % 64) & 1 == 1, is_in, "{index} {wanted:?}");
            }
        }
    }
}
