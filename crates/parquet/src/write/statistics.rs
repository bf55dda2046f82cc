//! Statistics: bounds and counts of pages and chunks.
//!
//! Source: `Statistics`, `ColumnOrder`, `ColumnIndex` and `SizeStatistics` of parquet.thrift.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cmp::Ordering;

use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::{Bytes, Price};
use marquetry_kernels::bounds;

use super::encoder::Slice;
use crate::batch::INLINE_BYTES_MAX;
use crate::encoding::view::length;
use crate::format::{ColumnOrder, Statistics};
use crate::prune::{DECIMAL_BOUND_BYTES_MAX, Order};
use crate::schema::{LogicalType, Meaning, PhysicalType};

/// The price of looking at a value: a number, or a string, which is compared and copied only as far as bounds may reach.
pub(super) const NUMBER_PRICE: Price = Price::per_kilovalue(2 << 10);
pub(super) const STRING_PRICE: Price = Price { kib: 200, kilovalue: 12 << 10 };

/// A FIXED_LEN_BYTE_ARRAY that is longer has no bounds: readers expect bounds of the type's length, so they cannot be
/// truncated. Nor can decimals be, of which no longer bounds are read.
const FIXED_BYTES_MAX: usize = DECIMAL_BOUND_BYTES_MAX;

/// Which values have bounds, and in which order.
#[derive(Debug, Clone, Copy)]
pub(super) struct BoundsOf {
    order: Order,
    /// Strings are truncated to this many bytes.
    bytes_max: usize,
    /// They are cut between characters.
    is_text: bool,
}

impl BoundsOf {
    /// The order of a leaf's values, if any.
    pub(super) fn new(
        physical_type: PhysicalType,
        logical_type: Option<&LogicalType>,
        bytes_max: usize,
    ) -> Option<BoundsOf> {
        let order = Order::of(physical_type, logical_type, ColumnOrder::TypeDefined)?;
        let is_text = Meaning::of(physical_type, logical_type).is_text();
        let bytes_max = match physical_type {
            PhysicalType::ByteArray if order == Order::Bytes => bytes_max,
            // Numbers cannot be truncated.
            PhysicalType::ByteArray => FIXED_BYTES_MAX,
            _ => usize::MAX,
        };
        let is_short = physical_type.width().is_none_or(|width| width <= FIXED_BYTES_MAX);
        is_short.then_some(BoundsOf { order, bytes_max, is_text })
    }

    /// Bytes of strings that are compared at most.
    pub(super) fn compared_bytes(&self, values: Slice<'_>) -> usize {
        match values {
            Slice::Fixed { bytes, .. } => bytes.len(),
            Slice::ByteArray(views, _) => {
                views.iter().map(|view| usize_of_u32(length(*view)).min(self.bytes_max)).sum()
            }
            _ => 0,
        }
    }

    /// Compares two bounds.
    pub(super) fn compare(&self, left: &[u8], right: &[u8]) -> Option<Ordering> {
        self.order.compare(left, right)
    }

    /// Whether values can be NaN.
    pub(super) fn is_floating(&self) -> bool {
        self.order.is_floating()
    }
}

/// The smallest and largest of some values, and the number of NaNs.
///
/// Only the first bytes of strings are kept: as many as bounds may have, and whether there were more. That is enough,
/// because truncation keeps the order.
#[derive(Debug, Clone, Default)]
pub(super) struct Bounds {
    min: Option<Cut>,
    max: Option<Cut>,
    nans: u64,
    /// One of the values cannot be bounded: then there are no bounds.
    is_unbounded: bool,
}

/// The first bytes of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cut {
    bytes: Short,
    /// There were more bytes.
    is_cut: bool,
}

/// A few bytes; up to 22 need no allocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Short {
    Here(u8, [u8; 22]),
    Elsewhere(Box<[u8]>),
}

impl Short {
    pub(super) fn new(bytes: &[u8]) -> Short {
        match u8::try_from(bytes.len()) {
            Ok(length) if length <= 22 => {
                let mut here = [0; 22];
                here[..bytes.len()].copy_from_slice(bytes);
                Short::Here(length, here)
            }
            _ => Short::Elsewhere(bytes.into()),
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Short::Here(length, bytes) => &bytes[..usize::from(*length)],
            Short::Elsewhere(bytes) => bytes,
        }
    }
}

impl Bounds {
    /// Adds values.
    pub(super) fn add(&mut self, of: &BoundsOf, values: Slice<'_>) {
        match values {
            Slice::Boolean { bits, first, values } => {
                let ones = marquetry_kernels::bits::count_ones(bits, first, values).unwrap_or(0);
                if ones < values {
                    self.take(of, &[0]);
                }
                if ones > 0 {
                    self.take(of, &[1]);
                }
            }
            Slice::Int32(values) if of.order == Order::Unsigned32 => {
                self.take_both(of, bounds::u32(bytemuck::cast_slice(values)));
            }
            Slice::Int32(values) => self.take_both(of, bounds::i32(values)),
            Slice::Int64(values) if of.order == Order::Unsigned64 => {
                self.take_both(of, bounds::u64(bytemuck::cast_slice(values)));
            }
            Slice::Int64(values) => self.take_both(of, bounds::i64(values)),
            Slice::Float(values) => {
                let found = bounds::f32(values);
                self.nans += u64_of(found.nans);
                self.take_both(of, found.bounds);
            }
            Slice::Double(values) => {
                let found = bounds::f64(values);
                self.nans += u64_of(found.nans);
                self.take_both(of, found.bounds);
            }
            Slice::ByteArray(views, buffers) => self.add_strings(of, views, buffers),
            Slice::Fixed { width, values, bytes } => self.add_fixed(of, width, values, bytes),
            // Bounds are those of the dictionary's values, not of indices.
            Slice::Indices(_) => {}
        }
    }

    fn add_strings(&mut self, of: &BoundsOf, views: &[u128], buffers: &[Bytes]) {
        let is_by_bytes = of.order == Order::Bytes;
        let mut keys = self.keys(is_by_bytes);
        // The last two that were compared: the smallest and the largest, if they occur often.
        let (mut compared, mut next) = ([None; 2], 0);
        for view in views {
            let words: &[u32; 4] = bytemuck::cast_ref(view);
            // The first bytes show that most values are neither the smallest nor the largest; every view has four of
            // them.
            let four = u64::from(words[1].swap_bytes());
            if keys.0 >> 32 < four && four < keys.1 >> 32 {
                continue;
            }
            let length = words[0] as usize;
            let value = if length <= INLINE_BYTES_MAX {
                let bytes: &[u8; 16] = bytemuck::cast_ref(view);
                let key = four << 32 | u64::from(words[2].swap_bytes());
                if keys.0 < key && key < keys.1 {
                    continue;
                }
                &bytes[4..4 + length]
            } else {
                let start = words[3] as usize;
                let value =
                    buffers.get(words[2] as usize).and_then(|buffer| buffer.get(start..)?.get(..length));
                let value = value.unwrap_or(&[]);
                let key = key_of(value);
                if keys.0 < key && key < keys.1 {
                    continue;
                }
                value
            };
            if compared.contains(&Some(*view)) {
                continue;
            }
            (compared[next], next) = (Some(*view), 1 - next);
            self.take(of, value);
            keys = self.keys(is_by_bytes);
        }
    }

    fn add_fixed(&mut self, of: &BoundsOf, width: usize, values: usize, bytes: &[u8]) {
        // What makes a key of the first bytes that is in the order of the values.
        let flipped = match of.order {
            Order::Bytes => Some(0),
            Order::Decimal => Some(1 << 127),
            _ => None,
        };
        let keys = |bounds: &Bounds| match (&bounds.min, &bounds.max, flipped) {
            (Some(min), Some(max), Some(flipped)) => {
                [min, max].map(|bound| long_key_of(bound.bytes.bytes()) ^ flipped)
            }
            _ => [u128::MAX, 0],
        };
        // The key of a short value is all of it.
        let is_whole = width <= 16;
        let mut between = keys(self);
        for at in 0..values {
            let value = &bytes[at * width..(at + 1) * width];
            let key = long_key_of(value) ^ flipped.unwrap_or(0);
            let [min, max] = between;
            if min < key && key < max || is_whole && min <= key && key <= max {
                continue;
            }
            self.take(of, value);
            between = keys(self);
        }
    }

    /// The [keys](key_of) of the smallest and the largest value. No key is between them if there is no value, or values
    /// are not ordered by their bytes.
    fn keys(&self, is_by_bytes: bool) -> (u64, u64) {
        match (&self.min, &self.max) {
            (Some(min), Some(max)) if is_by_bytes => (key_of(min.bytes.bytes()), key_of(max.bytes.bytes())),
            _ => (u64::MAX, 0),
        }
    }

    /// Adds two numbers, which are little-endian, as in files.
    fn take_both<T: bytemuck::NoUninit>(&mut self, of: &BoundsOf, bounds: Option<(T, T)>) {
        if let Some((min, max)) = bounds {
            self.take(of, bytemuck::bytes_of(&min));
            self.take(of, bytemuck::bytes_of(&max));
        }
    }

    /// Adds one value.
    fn take(&mut self, of: &BoundsOf, value: &[u8]) {
        if of.order.is_nan(value) {
            self.nans += 1;
            return;
        }
        let is_cut = value.len() > of.bytes_max;
        if is_cut && of.order != Order::Bytes || !of.order.is_valid(value) {
            self.is_unbounded = true;
            return;
        }
        self.take_cut(of, &value[..value.len().min(of.bytes_max)], is_cut);
    }

    fn take_cut(&mut self, of: &BoundsOf, value: &[u8], is_cut: bool) {
        let compare = |bound: &Cut| of.order.compare(value, bound.bytes.bytes());
        let new = || Some(Cut { bytes: Short::new(value), is_cut });
        match self.min.as_mut().map(|min| (compare(min), min)) {
            None | Some((Some(Ordering::Less), _)) => self.min = new(),
            // A complete one is smaller than all truncated ones that begin with it.
            Some((Some(Ordering::Equal), min)) => min.is_cut &= is_cut,
            Some(_) => {}
        }
        match self.max.as_mut().map(|max| (compare(max), max)) {
            None | Some((Some(Ordering::Greater), _)) => self.max = new(),
            // A truncated one is larger.
            Some((Some(Ordering::Equal), max)) => max.is_cut |= is_cut,
            Some(_) => {}
        }
    }

    /// Adds the bounds of other values.
    pub(super) fn merge(&mut self, of: &BoundsOf, other: &Bounds) {
        for cut in [&other.min, &other.max].into_iter().flatten() {
            self.take_cut(of, cut.bytes.bytes(), cut.is_cut);
        }
        self.nans += other.nans;
        self.is_unbounded |= other.is_unbounded;
    }

    /// NaNs.
    pub(super) fn nans(&self) -> u64 {
        self.nans
    }

    /// The bounds to be written: lower and upper, and whether each is one of the values. `None` if nothing bounds all
    /// values.
    pub(super) fn finish(&self, of: &BoundsOf) -> Option<[(Vec<u8>, bool); 2]> {
        let (Some(min), Some(max), false) = (&self.min, &self.max, self.is_unbounded) else { return None };
        // "If the computed min is zero, −0.0 should be written", and +0.0 as a maximum.
        let widened = |value: &Cut, is_lower| match of.order.widened_zero(value.bytes.bytes(), is_lower) {
            Some(zero) => zero.to_vec(),
            None => value.bytes.bytes().to_vec(),
        };
        let (mut lower, mut upper) = (widened(min, true), widened(max, false));
        if min.is_cut && of.is_text {
            lower.truncate(end_of_text(&lower));
        }
        if max.is_cut {
            upper = match of.is_text {
                true => text_above(upper),
                false => bytes_above(upper),
            }?;
        }
        Some([(lower, !min.is_cut), (upper, !max.is_cut)])
    }

    /// The statistics of these values and `nulls` nulls.
    pub(super) fn statistics(&self, of: Option<&BoundsOf>, nulls: u64) -> Statistics {
        let mut statistics = Statistics { null_count: Some(nulls), ..Statistics::default() };
        if let Some(of) = of {
            if let Some([(min, is_min_exact), (max, is_max_exact)]) = self.finish(of) {
                statistics.min_value = Some(min.into());
                statistics.max_value = Some(max.into());
                statistics.is_min_value_exact = Some(is_min_exact);
                statistics.is_max_value_exact = Some(is_max_exact);
            }
            statistics.nan_count = of.is_floating().then_some(self.nans);
        }
        statistics
    }
}

/// The first eight bytes as a number, padded with zeros: of two values with different keys, the one with the lower key
/// is smaller.
fn key_of(value: &[u8]) -> u64 {
    match value.first_chunk() {
        Some(first) => u64::from_be_bytes(*first),
        None => {
            let mut first = [0; 8];
            first[..value.len()].copy_from_slice(value);
            u64::from_be_bytes(first)
        }
    }
}

/// As [`key_of`], of sixteen bytes.
fn long_key_of(value: &[u8]) -> u128 {
    match value.first_chunk() {
        Some(first) => u128::from_be_bytes(*first),
        None => {
            let number = value.iter().fold(0, |number, &byte| number << 8 | u128::from(byte));
            let missing = 8 * (16 - u32::try_from(value.len()).unwrap_or(0));
            number.checked_shl(missing).unwrap_or(0)
        }
    }
}

/// Where the last complete character of truncated text ends; if it is not text, the end.
fn end_of_text(text: &[u8]) -> usize {
    match core::str::from_utf8(text) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => text.len(),
    }
}

/// The shortest text that is greater than all that begin with this one, if any.
fn text_above(mut text: Vec<u8>) -> Option<Vec<u8>> {
    text.truncate(end_of_text(&text));
    let Ok(mut characters) = alloc::string::String::from_utf8(text.clone()) else { return bytes_above(text) };
    while let Some(last) = characters.pop() {
        // The next character, over those that are none.
        let next = (u32::from(last) + 1..=u32::from(char::MAX)).find_map(char::from_u32);
        if let Some(next) = next {
            characters.push(next);
            return Some(characters.into_bytes());
        }
    }
    None
}

/// The shortest bytes that are greater than all that begin with these, if any.
fn bytes_above(mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    while let Some(last) = bytes.pop() {
        if last < u8::MAX {
            bytes.push(last + 1);
            return Some(bytes);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::ByteArrays;

    fn of(physical_type: PhysicalType, logical_type: Option<LogicalType>) -> BoundsOf {
        BoundsOf::new(physical_type, logical_type.as_ref(), 8).unwrap()
    }

    fn strings(is_text: bool, values: &[&[u8]]) -> Option<[(Vec<u8>, bool); 2]> {
        let of = of(PhysicalType::ByteArray, is_text.then_some(LogicalType::String));
        let all = Bytes::from(values.concat());
        let arrays = ByteArrays::from_lengths(all, values.iter().map(|value| value.len())).unwrap();
        let mut bounds = Bounds::default();
        bounds.add(&of, Slice::ByteArray(arrays.views(), arrays.buffers()));
        // Merged from single values it is the same.
        let mut merged = Bounds::default();
        for at in 0..values.len() {
            let mut one = Bounds::default();
            one.add(&of, Slice::ByteArray(&arrays.views()[at..=at], arrays.buffers()));
            merged.merge(&of, &one);
        }
        assert_eq!(merged.finish(&of), bounds.finish(&of));
        bounds.finish(&of)
    }

    fn exact(min: &[u8], max: &[u8]) -> Option<[(Vec<u8>, bool); 2]> {
        Some([(min.to_vec(), true), (max.to_vec(), true)])
    }

    #[test]
    fn strings_are_cut_and_stay_bounds() {
        assert_eq!(strings(false, &[b"bb", b"a", b"", b"c"]), exact(b"", b"c"));
        assert_eq!(
            strings(false, &[b"mmmmm", b"aaaaa", b"zzzzz", b"nnnnnnnnnnnnnn"]),
            exact(b"aaaaa", b"zzzzz")
        );
        let cut = strings(false, &[b"aaaaaaaaaa", b"zzzzzzzzzz"]);
        assert_eq!(cut, Some([(b"aaaaaaaa".to_vec(), false), (b"zzzzzzz{".to_vec(), false)]));
        // The complete one is smaller, the truncated one larger.
        let mixed = strings(false, &[b"aaaaaaaaaa", b"aaaaaaaa"]);
        assert_eq!(mixed, Some([(b"aaaaaaaa".to_vec(), true), (b"aaaaaaab".to_vec(), false)]));
        assert_eq!(strings(false, &[&[0xff; 9]]), None);
        assert_eq!(strings(false, &[&[0xff; 8]]), exact(&[0xff; 8], &[0xff; 8]));
        assert_eq!(strings(false, &[]), None);
    }

    #[test]
    fn text_is_cut_between_characters() {
        let text = "aaaaaaa\u{e9}b".as_bytes();
        assert_eq!(
            strings(true, &[text]),
            Some([(b"aaaaaaa".to_vec(), false), (b"aaaaaab".to_vec(), false)])
        );
        // The character before the surrogates, and the last of all.
        let last = "\u{d7ff}\u{10ffff}\u{10ffff}".as_bytes();
        let [_, (above, is_exact)] = strings(true, &[last]).unwrap();
        assert_eq!((core::str::from_utf8(&above), is_exact), (Ok("\u{e000}"), false));
        assert_eq!(strings(true, &["\u{10ffff}\u{10ffff}\u{10ffff}".as_bytes()]), None);
    }

    #[test]
    fn floating_point_numbers() {
        let doubles = of(PhysicalType::Double, None);
        let mut bounds = Bounds::default();
        bounds.add(&doubles, Slice::Double(&[f64::NAN]));
        assert_eq!((bounds.finish(&doubles), bounds.nans()), (None, 1));
        bounds.add(&doubles, Slice::Double(&[0.0, f64::NAN, -f64::NAN]));
        let statistics = bounds.statistics(Some(&doubles), 4);
        assert_eq!(statistics.min_value.as_deref(), Some(&(-0.0f64).to_le_bytes()[..]));
        assert_eq!(statistics.max_value.as_deref(), Some(&0.0f64.to_le_bytes()[..]));
        assert_eq!((statistics.nan_count, statistics.null_count), (Some(3), Some(4)));
        bounds.add(&doubles, Slice::Double(&[1.5, f64::INFINITY]));
        let [_, (max, _)] = bounds.finish(&doubles).unwrap();
        assert_eq!(max, f64::INFINITY.to_le_bytes());
    }

    #[test]
    fn of_fixed_width_by_their_first_bytes() {
        let mut random = 1_u64;
        let mut byte = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            random.to_be_bytes()[0]
        };
        for width in [1_usize, 2, 7, 15, 16, 17, 40] {
            for few in [2, 255] {
                let values: Vec<Vec<u8>> =
                    (0..200).map(|_| (0..width).map(|_| byte() % few * (255 / few)).collect()).collect();
                let slice = Slice::Fixed { width, values: 200, bytes: &values.concat() };
                let physical = PhysicalType::FixedLenByteArray(u32::try_from(width).unwrap());
                let decimal = LogicalType::Decimal { scale: 0, precision: 1 };
                for logical in [None, Some(decimal)] {
                    let is_signed = logical.is_some();
                    let of = of(physical, logical);
                    let mut bounds = Bounds::default();
                    bounds.add(&of, slice);
                    let key = |value: &&Vec<u8>| {
                        let mut key = (*value).clone();
                        key[0] ^= if is_signed { 0x80 } else { 0 };
                        key
                    };
                    let least = values.iter().min_by_key(key).unwrap().clone();
                    let most = values.iter().max_by_key(key).unwrap().clone();
                    assert_eq!(
                        bounds.finish(&of),
                        Some([(least, true), (most, true)]),
                        "{width} {few} {is_signed}"
                    );
                }
            }
        }
    }

    #[test]
    fn by_the_order_of_the_type() {
        let bounds_of = |of: BoundsOf, values: Slice<'_>| {
            let mut bounds = Bounds::default();
            bounds.add(&of, values);
            bounds.finish(&of).map(|both| both.map(|(value, _)| value))
        };
        let numbers = Slice::Int32(&[3, -1, 7]);
        let four = |value: i32| value.to_le_bytes().to_vec();
        let unsigned = LogicalType::Integer { bit_width: 32, is_signed: false };
        let signed = bounds_of(of(PhysicalType::Int32, None), numbers);
        assert_eq!(signed, Some([four(-1), four(7)]));
        assert_eq!(bounds_of(of(PhysicalType::Int32, Some(unsigned)), numbers), Some([four(3), four(-1)]));
        let decimals = Slice::Fixed { width: 2, values: 3, bytes: &[0, 5, 0xff, 0, 1, 0] };
        let decimal = LogicalType::Decimal { scale: 0, precision: 4 };
        let fixed = PhysicalType::FixedLenByteArray(2);
        assert_eq!(
            bounds_of(of(fixed, Some(decimal)), decimals),
            Some([[0xff, 0].to_vec(), [1, 0].to_vec()])
        );
        assert_eq!(bounds_of(of(fixed, None), decimals), Some([[0, 5].to_vec(), [0xff, 0].to_vec()]));
        let bits = Slice::Boolean { bits: &[0b100], first: 1, values: 2 };
        assert_eq!(bounds_of(of(PhysicalType::Boolean, None), bits), Some([[0].to_vec(), [1].to_vec()]));
        assert!(BoundsOf::new(PhysicalType::Int96, None, 8).is_none());
        assert!(BoundsOf::new(PhysicalType::FixedLenByteArray(257), None, 8).is_none());
    }
}
