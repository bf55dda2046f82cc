//! The order of values, as servers sort rows by clustering columns and cells by paths.
//!
//! A value without bytes comes before all others (and after them in a reversed column). Otherwise it depends on the type:
//!
//! | type | order |
//! |---|---|
//! | `ascii`, `text`, `blob`, `inet`, `date`, `time` | bytes, unsigned |
//! | `tinyint`, `smallint`, `int`, `bigint`, `timestamp`, `varint` | numbers |
//! | `float`, `double` | numbers; -0 before 0, NaN last |
//! | `decimal` | by value: 1.0 and 1.00 are the same key |
//! | `boolean` | false, true |
//! | `uuid` | by version; version 1 by time and then by its last eight bytes, others by their bytes, all unsigned |
//! | `timeuuid` | by time, then by its last eight bytes, each signed |
//! | tuples, user-defined types | by their members in turn; null before all others; members that are missing are null |
//! | frozen lists, sets, maps | by their elements in turn, then the shorter one first |
//! | vectors | by their elements in turn |
//! | composites | by their parts in turn, each followed by its end-of-component byte; static ones first |
//!
//! Sources: `compareCustom` of the classes in Cassandra's `db/marshal`, since 4.0. ScyllaDB has the same order. `duration`, counters and
//! dynamic composites have none here. Two classes that no table has been made with for years are taken for the ones that replaced them:
//! `DateType` (which sorts times before 1970 last) and `LexicalUUIDType`; merging such SSTables fails, because their rows are not in order.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::cmp::Ordering;

use marquetry_base::cast::{bits_u32, bits_u64, low_u32, usize_of, usize_of_u32};
use marquetry_base::{Error, Result, twos_complement};

use super::batch::Values;
use super::marshal::MarshalType;
use super::vint;
use crate::cql::CqlType;

/// The most bytes of a value that is or has a decimal. Two with different scales are brought to one scale, for which each byte is
/// multiplied with each: this takes some 0.07 ms.
const DECIMAL_BYTES_MAX: usize = 1024;

/// Compares values of one type.
#[derive(Debug, Clone)]
pub struct Comparator {
    order: Order,
    has_decimals: bool,
}

#[derive(Debug, Clone)]
enum Order {
    Bytes,
    Boolean,
    /// Big-endian, of one or two bytes.
    Short,
    Int,
    Long,
    Float,
    Double,
    Varint,
    Decimal,
    Uuid,
    TimeUuid,
    /// Of a list or set.
    Elements(Box<Order>),
    Map(Box<Order>, Box<Order>),
    Tuple(Vec<Order>),
    /// The length of an element, if it is fixed.
    Vector(Box<Order>, u32, Option<usize>),
    Composite(Vec<Order>),
    Reversed(Box<Order>),
}

impl Comparator {
    /// What compares values of this type: single values, so of a collection or user-defined type it is the frozen one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](marquetry_base::ErrorKind::Unsupported) for types that are not sorted.
    pub fn new(kind: &MarshalType) -> Result<Comparator> {
        let mut has_decimals = false;
        let order = Order::new(kind, &mut has_decimals)?;
        Ok(Comparator { order, has_decimals })
    }

    /// What compares the paths of a column's cells. `None` if it has one cell only.
    ///
    /// # Errors
    ///
    /// As [`Comparator::new`]'s.
    pub fn of_paths(kind: &MarshalType) -> Result<Option<Comparator>> {
        let order = match kind {
            MarshalType::List(_) => Order::TimeUuid,
            MarshalType::User { .. } => Order::Short,
            MarshalType::Set(element) => return Comparator::new(element).map(Some),
            MarshalType::Map(key, _) => return Comparator::new(key).map(Some),
            _ => return Ok(None),
        };
        Ok(Some(Comparator { order, has_decimals: false }))
    }

    /// Compares two values, as CQL's protocol has them. Values that are not of the type compare somehow.
    pub fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        self.order.compare(left, right)
    }

    /// Checks that a value is not so long that it takes too long to compare.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](marquetry_base::ErrorKind::Unsupported) for decimals of more than 1,024 bytes, and for longer values that
    /// have decimals in them.
    pub fn check(&self, value: &[u8]) -> Result<()> {
        if self.has_decimals && value.len() > DECIMAL_BYTES_MAX {
            return Err(Error::unsupported(
                "keys with decimals of more than 1,024 bytes, if they are sorted",
            ));
        }
        Ok(())
    }

    /// Compares two values that have bytes.
    #[inline]
    pub(super) fn compare_at(
        &self,
        (left, left_at): (&Values, usize),
        (right, right_at): (&Values, usize),
    ) -> Ordering {
        let (order, is_reversed) = match &self.order {
            Order::Reversed(inner) => (&**inner, true),
            order => (order, false),
        };
        let found = match (order, left, right) {
            (Order::Int, Values::Four(left), Values::Four(right)) => {
                left.get(left_at).cmp(&right.get(right_at))
            }
            (Order::Long, Values::Eight(left), Values::Eight(right)) => {
                left.get(left_at).cmp(&right.get(right_at))
            }
            (_, Values::Strings(left), Values::Strings(right)) => {
                let (left, right) = (left.get(left_at), right.get(right_at));
                order.compare(left.unwrap_or_default(), right.unwrap_or_default())
            }
            _ => {
                let (mut left_bytes, mut right_bytes) = ([0; 16], [0; 16]);
                let left = number(left, left_at, &mut left_bytes);
                order.compare(left, number(right, right_at, &mut right_bytes))
            }
        };
        if is_reversed { found.reverse() } else { found }
    }

    /// Whether values are sorted in descending order.
    pub(super) fn is_reversed(&self) -> bool {
        matches!(self.order, Order::Reversed(_))
    }
}

/// A number of an array as bytes.
fn number<'a>(values: &'a Values, at: usize, bytes: &'a mut [u8; 16]) -> &'a [u8] {
    match values {
        Values::None(_) => &[],
        Values::One(values) => values.get(at..=at).unwrap_or_default(),
        Values::Four(values) => fill(bytes, values.get(at).copied().unwrap_or_default().to_be_bytes()),
        Values::Eight(values) => fill(bytes, values.get(at).copied().unwrap_or_default().to_be_bytes()),
        Values::Sixteen(values) => fill(bytes, values.get(at).copied().unwrap_or_default()),
        Values::Strings(strings) => strings.get(at).unwrap_or_default(),
    }
}

fn fill<const N: usize>(bytes: &mut [u8; 16], number: [u8; N]) -> &[u8] {
    let part = &mut bytes[..N];
    part.copy_from_slice(&number);
    part
}

/// Compares two values of one array type by their bytes, unsigned, as cells with equal times are compared.
pub(super) fn compare_bytes(left: (&Values, usize), right: (&Values, usize)) -> Ordering {
    match (left.0, right.0) {
        (Values::Four(of_left), Values::Four(of_right)) => {
            of_left.get(left.1).map(|it| bits_u32(*it)).cmp(&of_right.get(right.1).map(|it| bits_u32(*it)))
        }
        (Values::Eight(of_left), Values::Eight(of_right)) => {
            of_left.get(left.1).map(|it| bits_u64(*it)).cmp(&of_right.get(right.1).map(|it| bits_u64(*it)))
        }
        _ => {
            let (mut left_bytes, mut right_bytes) = ([0; 16], [0; 16]);
            number(left.0, left.1, &mut left_bytes).cmp(number(right.0, right.1, &mut right_bytes))
        }
    }
}

impl Order {
    fn new(kind: &MarshalType, has_decimals: &mut bool) -> Result<Order> {
        let mut inner = |kind: &MarshalType| Order::new(kind, has_decimals);
        let boxed = |order: Result<Order>| order.map(Box::new);
        Ok(match kind {
            MarshalType::Native(native) => {
                let order = Order::of_native(native)?;
                *has_decimals |= matches!(order, Order::Decimal);
                order
            }
            MarshalType::Empty => Order::Bytes,
            MarshalType::List(element) | MarshalType::Set(element) => Order::Elements(boxed(inner(element))?),
            MarshalType::Map(key, value) => Order::Map(boxed(inner(key))?, boxed(inner(value))?),
            MarshalType::Tuple(members) => Order::Tuple(members.iter().map(inner).collect::<Result<_>>()?),
            MarshalType::User { fields, .. } => {
                Order::Tuple(fields.iter().map(|(_, kind)| inner(kind)).collect::<Result<_>>()?)
            }
            MarshalType::Vector(element, count) => {
                let bytes = element.fixed_bytes().map(usize_of_u32);
                Order::Vector(boxed(inner(element))?, count.get(), bytes)
            }
            MarshalType::Frozen(of) => inner(of)?,
            MarshalType::Reversed(of) => match inner(of)? {
                Order::Reversed(twice) => *twice,
                order => Order::Reversed(Box::new(order)),
            },
            MarshalType::Composite(members) => {
                Order::Composite(members.iter().map(inner).collect::<Result<_>>()?)
            }
            MarshalType::DynamicComposite(_) => {
                return Err(Error::unsupported("the order of keys that each name their type"));
            }
        })
    }

    fn of_native(native: &CqlType) -> Result<Order> {
        Ok(match native {
            CqlType::Ascii
            | CqlType::Text
            | CqlType::Blob
            | CqlType::Inet
            | CqlType::Date
            | CqlType::Time => Order::Bytes,
            CqlType::Boolean => Order::Boolean,
            CqlType::Tinyint | CqlType::Smallint => Order::Short,
            CqlType::Int => Order::Int,
            CqlType::Bigint | CqlType::Timestamp => Order::Long,
            CqlType::Float => Order::Float,
            CqlType::Double => Order::Double,
            CqlType::Varint => Order::Varint,
            CqlType::Decimal => Order::Decimal,
            CqlType::Uuid => Order::Uuid,
            CqlType::Timeuuid => Order::TimeUuid,
            other => {
                return Err(Error::unsupported(alloc::format!(
                    "keys of the type {other}, which has no order"
                )));
            }
        })
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        if let Order::Reversed(order) = self {
            return order.compare(right, left);
        }
        if left.is_empty() || right.is_empty() {
            return right.is_empty().cmp(&left.is_empty());
        }
        // Of values that are not of the type, bytes are compared.
        self.compare_some(left, right).unwrap_or_else(|| left.cmp(right))
    }

    /// Compares values that have bytes. `None` if one is not of the type.
    fn compare_some(&self, left: &[u8], right: &[u8]) -> Option<Ordering> {
        fn both<const N: usize>(left: &[u8], right: &[u8]) -> Option<([u8; N], [u8; N])> {
            Some((left.try_into().ok()?, right.try_into().ok()?))
        }
        Some(match self {
            Order::Bytes => left.cmp(right),
            Order::Boolean => (left[0] != 0).cmp(&(right[0] != 0)),
            Order::Short => left[0].cast_signed().cmp(&right[0].cast_signed()).then_with(|| left.cmp(right)),
            Order::Int => {
                let (left, right) = both(left, right)?;
                i32::from_be_bytes(left).cmp(&i32::from_be_bytes(right))
            }
            Order::Long => {
                let (left, right) = both(left, right)?;
                i64::from_be_bytes(left).cmp(&i64::from_be_bytes(right))
            }
            Order::Float => {
                let (left, right) = both(left, right)?;
                let number = |bytes| Some(f32::from_be_bytes(bytes)).filter(|number| !number.is_nan());
                number(left).unwrap_or(f32::NAN).total_cmp(&number(right).unwrap_or(f32::NAN))
            }
            Order::Double => {
                let (left, right) = both(left, right)?;
                let number = |bytes| Some(f64::from_be_bytes(bytes)).filter(|number| !number.is_nan());
                number(left).unwrap_or(f64::NAN).total_cmp(&number(right).unwrap_or(f64::NAN))
            }
            Order::Varint => integers(left, right),
            Order::Decimal => {
                let (left_scale, left) = left.split_first_chunk()?;
                let (right_scale, right) = right.split_first_chunk()?;
                decimals((i32::from_be_bytes(*left_scale), left), (i32::from_be_bytes(*right_scale), right))
            }
            Order::Uuid => {
                let (left, right) = both(left, right)?;
                uuids(u128::from_be_bytes(left), u128::from_be_bytes(right))
            }
            Order::TimeUuid => {
                let (left, right) = both(left, right)?;
                time_uuids(u128::from_be_bytes(left), u128::from_be_bytes(right))
            }
            Order::Elements(order) => elements(&[order], left, right)?,
            Order::Map(key, value) => elements(&[key, value], left, right)?,
            Order::Tuple(orders) => tuples(orders, left, right)?,
            Order::Vector(order, count, fixed) => vectors(order, *count, *fixed, left, right)?,
            Order::Composite(orders) => composites(orders, left, right)?,
            Order::Reversed(order) => order.compare(right, left),
        })
    }
}

/// Integers of any length.
fn integers(left: &[u8], right: &[u8]) -> Ordering {
    let (left, right) = (twos_complement::shortest(left), twos_complement::shortest(right));
    let is_negative = |bytes: &[u8]| bytes.first().is_some_and(|byte| *byte >= 0x80);
    match (is_negative(left), is_negative(right)) {
        (false, false) => left.len().cmp(&right.len()).then_with(|| left.cmp(right)),
        (true, true) => right.len().cmp(&left.len()).then_with(|| left.cmp(right)),
        (left, right) => right.cmp(&left),
    }
}

/// Decimals, by value: each is its integer divided by ten to the power of its scale.
fn decimals((left_scale, left): (i32, &[u8]), (right_scale, right): (i32, &[u8])) -> Ordering {
    if left_scale == right_scale {
        return integers(left, right);
    }
    let sign = |bytes: &[u8]| match bytes.first() {
        Some(first) if *first >= 0x80 => -1,
        _ => i32::from(bytes.iter().any(|byte| *byte != 0)),
    };
    let (left_sign, right_sign) = (sign(left), sign(right));
    if left_sign != right_sign || left_sign == 0 {
        return left_sign.cmp(&right_sign);
    }
    let (left_limbs, right_limbs) = (magnitude(left), magnitude(right));
    let found = match i64::from(left_scale) - i64::from(right_scale) {
        difference if difference > 0 => scaled(&left_limbs, right_limbs, difference.unsigned_abs()),
        difference => scaled(&right_limbs, left_limbs, difference.unsigned_abs()).reverse(),
    };
    if left_sign < 0 { found.reverse() } else { found }
}

/// The absolute value of an integer, the lowest 32 bits first, without leading zeros.
fn magnitude(bytes: &[u8]) -> Vec<u32> {
    let is_negative = bytes.first().is_some_and(|byte| *byte >= 0x80);
    let mut carry = u64::from(is_negative);
    let mut limbs = Vec::with_capacity(bytes.len() / 4 + 1);
    for chunk in bytes.rchunks(4) {
        let mut limb = [if is_negative { 0xff } else { 0 }; 4];
        limb[4 - chunk.len()..].copy_from_slice(chunk);
        let mut word = u32::from_be_bytes(limb);
        if is_negative {
            word = !word;
        }
        let sum = u64::from(word) + carry;
        limbs.push(low_u32(sum));
        carry = sum >> 32;
    }
    if carry > 0 {
        limbs.push(low_u32(carry));
    }
    trim(&mut limbs);
    limbs
}

fn trim(limbs: &mut Vec<u32>) {
    while limbs.last() == Some(&0) {
        limbs.pop();
    }
}

/// Compares an integer with another times ten to this power. Neither is 0.
fn scaled(left: &[u32], mut right: Vec<u32>, mut power: u64) -> Ordering {
    let bits = |limbs: &[u32]| {
        let top = limbs.last().map_or(0, |limb| 32 - limb.leading_zeros());
        32 * u128::try_from(limbs.len().saturating_sub(1)).unwrap_or(u128::MAX) + u128::from(top)
    };
    // The binary logarithm of ten is between these two, divided by a million.
    let (left_bits, right_bits) = (bits(left), bits(&right));
    let (least, most) =
        (u128::from(power) * 3_321_928 / 1_000_000, u128::from(power) * 3_321_929 / 1_000_000 + 1);
    if left_bits < right_bits + least {
        return Ordering::Less;
    }
    if left_bits > right_bits + most {
        return Ordering::Greater;
    }
    while power > 0 {
        let digits = power.min(9);
        power -= digits;
        let factor = 10_u64.pow(low_u32(digits));
        let mut carry = 0;
        for limb in &mut right {
            let product = u64::from(*limb) * factor + carry;
            *limb = low_u32(product);
            carry = product >> 32;
        }
        if carry > 0 {
            right.push(low_u32(carry));
        }
    }
    left.len().cmp(&right.len()).then_with(|| left.iter().rev().cmp(right.iter().rev()))
}

/// The time of a version 1 UUID, whose highest bits come last, with the version before it.
fn time_of(uuid: u128) -> u64 {
    let high = high_half(uuid);
    high << 48 | (high << 16) & 0xffff_0000_0000 | high >> 32
}

/// The first eight bytes.
fn high_half(uuid: u128) -> u64 {
    u64::try_from(uuid >> 64).unwrap_or(u64::MAX)
}

/// The last eight bytes.
fn low_half(uuid: u128) -> u64 {
    u64::try_from(uuid & u128::from(u64::MAX)).unwrap_or(u64::MAX)
}

fn uuids(left: u128, right: u128) -> Ordering {
    let version = |uuid: u128| high_half(uuid) >> 12 & 0xf;
    version(left).cmp(&version(right)).then_with(|| {
        if version(left) == 1 {
            time_of(left).cmp(&time_of(right)).then_with(|| low_half(left).cmp(&low_half(right)))
        } else {
            left.cmp(&right)
        }
    })
}

fn time_uuids(left: u128, right: u128) -> Ordering {
    // With these bits inverted, signed bytes compare as unsigned ones.
    const SIGNS: u64 = 0x8080_8080_8080_8080;
    let time = |uuid| time_of(uuid).cast_signed();
    time(left).cmp(&time(right)).then_with(|| (low_half(left) ^ SIGNS).cmp(&(low_half(right) ^ SIGNS)))
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

fn take_i32(bytes: &mut &[u8]) -> Option<i32> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(i32::from_be_bytes(*taken))
}

/// A value after its length of 32 bits. The inner `None` is null.
fn take_member<'a>(bytes: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    match usize::try_from(take_i32(bytes)?) {
        Ok(length) => take(bytes, length).map(Some),
        Err(_) => Some(None),
    }
}

fn members(order: &Order, left: Option<&[u8]>, right: Option<&[u8]>) -> Ordering {
    match (left, right) {
        (Some(left), Some(right)) => order.compare(left, right),
        (left, right) => left.is_some().cmp(&right.is_some()),
    }
}

/// Collections, whose elements are of these types in turn: the number of elements comes first.
fn elements(orders: &[&Order], mut left: &[u8], mut right: &[u8]) -> Option<Ordering> {
    let (left_count, right_count) = (take_i32(&mut left)?, take_i32(&mut right)?);
    for _ in 0..left_count.min(right_count) {
        for order in orders {
            let found = members(order, take_member(&mut left)?, take_member(&mut right)?);
            if found.is_ne() {
                return Some(found);
            }
        }
    }
    Some(left_count.cmp(&right_count))
}

fn tuples(orders: &[Order], mut left: &[u8], mut right: &[u8]) -> Option<Ordering> {
    for order in orders {
        if left.is_empty() && right.is_empty() {
            break;
        }
        let (of_left, of_right) = (take_or_null(&mut left)?, take_or_null(&mut right)?);
        let found = members(order, of_left, of_right);
        if found.is_ne() {
            return Some(found);
        }
    }
    Some(Ordering::Equal)
}

/// The next member of a tuple. Those at its end may be missing.
fn take_or_null<'a>(bytes: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    if bytes.is_empty() { Some(None) } else { take_member(bytes) }
}

fn vectors(
    order: &Order,
    count: u32,
    fixed: Option<usize>,
    mut left: &[u8],
    mut right: &[u8],
) -> Option<Ordering> {
    let next = |bytes: &mut &'_ [u8]| -> Option<usize> {
        match fixed {
            Some(length) => Some(length),
            None => {
                let (length, used) = vint::unsigned(bytes)?;
                *bytes = bytes.get(used..)?;
                usize_of(length)
            }
        }
    };
    for _ in 0..count {
        let left_bytes = next(&mut left)?;
        let of_left = take(&mut left, left_bytes)?;
        let right_bytes = next(&mut right)?;
        let found = order.compare(of_left, take(&mut right, right_bytes)?);
        if found.is_ne() {
            return Some(found);
        }
    }
    Some(Ordering::Equal)
}

/// Parts with a length of 16 bits before each, and a byte after each. Those of static columns of old begin with a length that none has.
fn composites(orders: &[Order], mut left: &[u8], mut right: &[u8]) -> Option<Ordering> {
    fn is_static(bytes: &mut &[u8]) -> bool {
        match bytes.strip_prefix(&[0xff, 0xff]) {
            Some(rest) => {
                *bytes = rest;
                true
            }
            None => false,
        }
    }
    fn part<'a>(bytes: &mut &'a [u8]) -> Option<(&'a [u8], i8)> {
        let length = u16::from_be_bytes(take(bytes, 2)?.try_into().ok()?);
        let value = take(bytes, usize::from(length))?;
        Some((value, take(bytes, 1)?[0].cast_signed()))
    }
    let (left_is_static, right_is_static) = (is_static(&mut left), is_static(&mut right));
    if left_is_static != right_is_static {
        return Some(right_is_static.cmp(&left_is_static));
    }
    for order in orders {
        if left.is_empty() || right.is_empty() {
            break;
        }
        let ((of_left, left_end), (of_right, right_end)) = (part(&mut left)?, part(&mut right)?);
        let found = order.compare(of_left, of_right).then(left_end.cmp(&right_end));
        if found.is_ne() {
            return Some(found);
        }
    }
    Some(right.is_empty().cmp(&left.is_empty()))
}

#[cfg(test)]
mod tests;
