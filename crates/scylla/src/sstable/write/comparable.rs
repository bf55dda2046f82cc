//! Values as bytes that are in their order: what tries have as keys.
//!
//! Cassandra's `ByteComparable.md` describes the forms, and `ClusteringComparator.java` what is around them; integers of any length are as
//! its version `OSS50` has them. A test compares all with what Cassandra 5.0 makes (`comparable.txt`).

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use marquetry_base::cast::{bits_u64, low_u8, u64_of};
use marquetry_base::print::{DIGITS_BYTES_MAX, Digits};
use marquetry_base::{Error, Result};

use super::clustering::{Clustering, side};
use crate::cql::CqlType;
use crate::sstable::batch::EntryKind;
use crate::sstable::marshal::MarshalType;
use crate::sstable::vint;

/// Before a value; one that is null; one without bytes, in either order; after the last.
pub(super) const NEXT: u8 = 0x40;
const NEXT_NULL: u8 = 0x3e;
const NEXT_EMPTY: u8 = 0x3f;
const NEXT_EMPTY_REVERSED: u8 = 0x41;
pub(super) const END: u8 = 0x38;
/// After the last value of a bound: before, or after, all that have more.
const BEFORE_MORE: u8 = 0x20;
const AFTER_MORE: u8 = 0x60;

/// Makes the bytes of clustering values.
#[derive(Debug, Clone)]
pub(crate) struct Comparable {
    columns: Vec<Form>,
}

#[derive(Debug, Clone)]
enum Form {
    Escaped,
    Boolean,
    /// Big-endian: with a sign, or without one.
    Signed,
    Unsigned,
    Float,
    Long,
    Varint,
    Decimal,
    Uuid,
    TimeUuid,
    Nothing,
    /// Of a list or set; of a map.
    Elements(Box<Form>),
    Map(Box<Form>, Box<Form>),
    Tuple(Vec<Form>),
    /// The length of an element, if it is fixed.
    Vector(Box<Form>, u32, Option<u32>),
    Reversed(Box<Form>),
}

impl Comparable {
    /// For clustering columns of these types.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](marquetry_base::ErrorKind::Unsupported) for types that have no such bytes here.
    pub(crate) fn new(columns: &[MarshalType]) -> Result<Comparable> {
        Ok(Comparable { columns: columns.iter().map(Form::new).collect::<Result<_>>()? })
    }

    /// Adds the bytes of clustering values.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`](marquetry_base::ErrorKind::Corrupt) for values that are none of their type.
    pub(super) fn push(&self, clustering: &Clustering, out: &mut Vec<u8>) -> Result<()> {
        for (number, column) in self.columns.iter().enumerate().take(clustering.len()) {
            match clustering.value(number) {
                None => out.push(NEXT_NULL),
                Some(value) => column.push_next(value, out)?,
            }
        }
        out.push(match (clustering.kind, side(clustering.kind)) {
            (EntryKind::Row, _) => END,
            (_, core::cmp::Ordering::Less) => BEFORE_MORE,
            _ => AFTER_MORE,
        });
        Ok(())
    }
}

impl Comparable {
    /// Adds the bytes of a row's value of one clustering column. After the last one, [`Comparable::push_row_end`].
    ///
    /// # Errors
    ///
    /// As for all of them.
    pub(crate) fn push_value(&self, column: usize, value: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let column =
            self.columns.get(column).ok_or_else(|| Error::internal("a clustering column too many"))?;
        column.push_next(value, out)
    }

    /// Adds what is after a row's values.
    pub(crate) fn push_row_end(out: &mut Vec<u8>) {
        out.push(END);
    }
}

impl Form {
    /// Adds the bytes of a clustering value, after what is before it.
    fn push_next(&self, value: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let at = out.len();
        out.push(NEXT);
        if !self.push(value, out)? {
            let is_reversed = matches!(self, Form::Reversed(_));
            out[at] = if is_reversed { NEXT_EMPTY_REVERSED } else { NEXT_EMPTY };
        }
        Ok(())
    }

    fn new(kind: &MarshalType) -> Result<Form> {
        let boxed = |kind: &MarshalType| Form::new(kind).map(Box::new);
        let unsupported = || Err(Error::unsupported(format!("an index of rows by values of {kind}")));
        Ok(match kind {
            MarshalType::Native(native) => match native {
                CqlType::Ascii | CqlType::Text | CqlType::Blob | CqlType::Inet => Form::Escaped,
                CqlType::Boolean => Form::Boolean,
                CqlType::Tinyint | CqlType::Smallint | CqlType::Int | CqlType::Timestamp => Form::Signed,
                CqlType::Date | CqlType::Time => Form::Unsigned,
                CqlType::Float | CqlType::Double => Form::Float,
                CqlType::Bigint => Form::Long,
                CqlType::Varint => Form::Varint,
                CqlType::Decimal => Form::Decimal,
                CqlType::Uuid => Form::Uuid,
                CqlType::Timeuuid => Form::TimeUuid,
                _ => return unsupported(),
            },
            MarshalType::Empty => Form::Nothing,
            MarshalType::List(element) | MarshalType::Set(element) => Form::Elements(boxed(element)?),
            MarshalType::Map(key, value) => Form::Map(boxed(key)?, boxed(value)?),
            MarshalType::Tuple(members) => Form::Tuple(members.iter().map(Form::new).collect::<Result<_>>()?),
            MarshalType::User { fields, .. } => {
                Form::Tuple(fields.iter().map(|(_, kind)| Form::new(kind)).collect::<Result<_>>()?)
            }
            MarshalType::Vector(element, count) => {
                Form::Vector(boxed(element)?, count.get(), element.fixed_bytes())
            }
            MarshalType::Frozen(inner) => Form::new(inner)?,
            MarshalType::Reversed(inner) => Form::Reversed(boxed(inner)?),
            MarshalType::Composite(_) | MarshalType::DynamicComposite(_) => return unsupported(),
        })
    }

    /// Adds the bytes of a value; false if it has none, as empty values of most types have not.
    fn push(&self, value: &[u8], out: &mut Vec<u8>) -> Result<bool> {
        if value.is_empty() {
            return Ok(match self {
                Form::Escaped => {
                    push_escaped(value, out);
                    true
                }
                Form::Reversed(inner) => inverted(out, |out| inner.push(value, out))?,
                _ => false,
            });
        }
        match self {
            Form::Escaped => push_escaped(value, out),
            Form::Boolean => out.push(u8::from(value.iter().any(|byte| *byte != 0))),
            Form::Signed => push_flipped(value, 0x80, out),
            Form::Unsigned => out.extend_from_slice(value),
            Form::Float => match value.first() {
                Some(0x80..) => out.extend(value.iter().map(|byte| !byte)),
                _ => push_flipped(value, 0x80, out),
            },
            Form::Long => match value.first_chunk::<8>() {
                Some(number) if value.len() == 8 => push_number(i64::from_be_bytes(*number), out),
                _ => return Err(bad("a bigint that has not eight bytes")),
            },
            Form::Varint => push_varint(value, out),
            Form::Decimal => push_decimal(value, out)?,
            Form::Uuid | Form::TimeUuid => match <[u8; 16]>::try_from(value) {
                Ok(uuid) => push_uuid(u128::from_be_bytes(uuid), matches!(self, Form::TimeUuid), out),
                Err(_) => return Err(bad("a UUID that has not sixteen bytes")),
            },
            Form::Nothing => return Ok(false),
            Form::Reversed(inner) => return inverted(out, |out| inner.push(value, out)),
            Form::Elements(element) => push_listed(value, &[element], out)?,
            Form::Map(key, element) => push_listed(value, &[key, element], out)?,
            Form::Tuple(members) => push_tuple(value, members, out)?,
            Form::Vector(element, count, fixed) => push_vector(value, element, *count, *fixed, out)?,
        }
        Ok(true)
    }

    /// Adds a part of a value, after what is before it.
    fn push_part(&self, value: Option<&[u8]>, out: &mut Vec<u8>) -> Result<()> {
        let at = out.len();
        out.push(NEXT);
        let has_bytes = match value {
            Some(value) => self.push(value, out)?,
            None => false,
        };
        if !has_bytes {
            out[at] = NEXT_NULL;
        }
        Ok(())
    }
}

fn bad(message: &'static str) -> Error {
    Error::corrupt(message)
}

/// Inverts what is added.
fn inverted(out: &mut Vec<u8>, push: impl FnOnce(&mut Vec<u8>) -> Result<bool>) -> Result<bool> {
    let start = out.len();
    let has_bytes = push(out)?;
    out.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
    Ok(has_bytes)
}

fn push_flipped(value: &[u8], bits: u8, out: &mut Vec<u8>) {
    let at = out.len();
    out.extend_from_slice(value);
    if let Some(first) = out.get_mut(at) {
        *first ^= bits;
    }
}

/// Adds bytes so that where they end can be seen: a zero is the end, and those of the value are escaped.
pub(crate) fn push_escaped(value: &[u8], out: &mut Vec<u8>) {
    let mut in_zeros = false;
    for byte in value {
        match (in_zeros, byte) {
            (false, 0) => {
                out.push(0);
                in_zeros = true;
            }
            (true, 0) => out.push(0xfe),
            (true, _) => {
                out.extend([0xff, *byte]);
                in_zeros = false;
            }
            (false, _) => out.push(*byte),
        }
    }
    out.push(if in_zeros { 0xfe } else { 0 });
}

/// A number of 64 bits: as many ones, or zeros if it is negative, as it has bytes, and then its bits.
fn push_number(number: i64, out: &mut Vec<u8>) {
    let magnitude = bits_u64(if number < 0 { !number } else { number });
    let start = out.len();
    let bits = 64 - magnitude.leading_zeros();
    let length = (bits + 1).div_ceil(7).max(1);
    if length > 8 {
        out.push(0xff);
        out.extend((magnitude | 1 << 63).to_be_bytes());
    } else {
        // So many ones and a zero before so many times seven bits, without one.
        let ones = if length == 8 { 0xff << 56 } else { ((1_u64 << length) - 1) << (7 * length) };
        let bytes = (magnitude | ones).to_be_bytes();
        let skipped = 8 - usize::try_from(length).unwrap_or(8);
        out.extend(bytes.get(skipped..).unwrap_or_default());
    }
    if number < 0 {
        out.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
    }
}

/// A number of any length: a short one as [`push_number`] has it, others after their length.
fn push_varint(value: &[u8], out: &mut Vec<u8>) {
    const SHORT_BYTES: usize = 7;
    let is_negative = value.first().is_some_and(|byte| *byte >= 0x80);
    let sign = if is_negative { 0xff } else { 0 };
    let digits = value.iter().position(|byte| *byte != sign).map_or(&[][..], |at| &value[at..]);
    if digits.len() < SHORT_BYTES {
        let mut word = [sign; 8];
        word[8 - digits.len()..].copy_from_slice(digits);
        push_number(i64::from_be_bytes(word), out);
        return;
    }
    let start = out.len();
    out.push(0xff);
    vint::push_unsigned(out, u64_of(digits.len() - SHORT_BYTES));
    if is_negative {
        out.iter_mut().skip(start).for_each(|byte| *byte = !*byte);
    }
    out.extend_from_slice(digits);
}

/// A decimal: its sign, its exponent, and its digits, two by two. Those of one worth have the same bytes.
///
/// # Errors
///
/// [`ErrorKind::Unsupported`](marquetry_base::ErrorKind::Unsupported) for one of more than 512 bytes.
pub(crate) fn push_decimal(value: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let (scale, unscaled) = value.split_first_chunk::<4>().ok_or_else(|| bad("a decimal without a scale"))?;
    let scale = i64::from(i32::from_be_bytes(*scale));
    let digits = Digits::of_bytes(unscaled).ok_or_else(|| {
        Error::unsupported(format!(
            "decimals of no bytes, or more than {DIGITS_BYTES_MAX}, which are to be in order"
        ))
    })?;
    let (is_negative, digits) = (digits.is_negative(), digits.as_slice());
    let Some(last) = digits.iter().rposition(|digit| *digit != b'0') else {
        out.push(0x80);
        return Ok(());
    };
    let significant = &digits[..=last];
    // 0.d… times ten to this power.
    let power = i64::try_from(digits.len()).unwrap_or(i64::MAX) - scale;
    let mut pairs = Vec::new();
    let is_odd = power.rem_euclid(2) == 1;
    let padded = is_odd.then_some(b'0').into_iter().chain(significant.iter().copied());
    let mut high = None;
    for digit in padded.map(|digit| digit - b'0') {
        match high.take() {
            None => high = Some(digit),
            Some(high) => pairs.push(10 * high + digit),
        }
    }
    pairs.extend(high.map(|high| 10 * high));
    let exponent = power.div_euclid(2) + i64::from(is_odd);
    let modulated = if is_negative { -exponent } else { exponent };
    let length = usize::try_from((64 - exponent.unsigned_abs().leading_zeros()).div_ceil(8)).unwrap_or(0);
    let of_length = low_u8(u64_of(length));
    let sign = if is_negative { 0 } else { 0x80 };
    out.push(sign + if modulated < 0 { 0x40 - of_length } else { 0x40 + of_length });
    out.extend(modulated.to_be_bytes().get(8 - length..).unwrap_or_default());
    if is_negative {
        // What is left after each is not negative.
        let last = pairs.len() - 1;
        for (at, pair) in pairs.iter_mut().enumerate() {
            *pair = match (at, at == last) {
                (0, true) => 0x80 - *pair,
                (0, false) => 0x80 - *pair - 1,
                (_, true) => 0x80 + 100 - *pair,
                (_, false) => 0x80 + 99 - *pair,
            };
        }
    } else {
        pairs.iter_mut().for_each(|pair| *pair += 0x80);
    }
    out.extend(pairs);
    out.push(0);
    Ok(())
}

/// A UUID: its version first. Those of version 1, which all time UUIDs are, by their time; the other half of time UUIDs has signed bytes.
fn push_uuid(uuid: u128, is_time: bool, out: &mut Vec<u8>) {
    const SIGNS: u64 = 0x8080_8080_8080_8080;
    let [high, low] = [uuid >> 64, uuid].map(|half| u64::try_from(half & u128::from(u64::MAX)).unwrap_or(0));
    let version = high >> 12 & 0xf;
    let high = if is_time || version == 1 {
        high << 48 | (high << 16 & 0xffff_0000_0000) | high >> 32
    } else {
        version << 60 | (high >> 4 & 0x0fff_ffff_ffff_f000) | (high & 0xfff)
    };
    out.extend(high.to_be_bytes());
    out.extend((if is_time { low ^ SIGNS } else { low }).to_be_bytes());
}

/// The next of the parts of a collection or tuple, each after its length of 32 bits, which is negative for null.
fn next_part<'a>(rest: &mut &'a [u8]) -> Result<Option<&'a [u8]>> {
    let short = || bad("a value of several parts that ends too early");
    let (length, after) = rest.split_first_chunk::<4>().ok_or_else(short)?;
    *rest = after;
    let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else { return Ok(None) };
    let (part, after) = rest.split_at_checked(length).ok_or_else(short)?;
    *rest = after;
    Ok(Some(part))
}

fn push_listed(value: &[u8], forms: &[&Form], out: &mut Vec<u8>) -> Result<()> {
    let (_, mut rest) = value.split_first_chunk::<4>().ok_or_else(|| bad("a collection without a length"))?;
    while !rest.is_empty() {
        for form in forms {
            let part = next_part(&mut rest)?;
            form.push_part(part, out)?;
        }
    }
    out.push(END);
    Ok(())
}

fn push_tuple(value: &[u8], members: &[Form], out: &mut Vec<u8>) -> Result<()> {
    let mut rest = value;
    // Members that are null at the end count as missing.
    let mut end = out.len();
    for form in members {
        if rest.is_empty() {
            break;
        }
        let part = next_part(&mut rest)?;
        let at = out.len();
        form.push_part(part, out)?;
        if out.get(at) != Some(&NEXT_NULL) {
            end = out.len();
        }
    }
    out.truncate(end);
    out.push(END);
    Ok(())
}

fn push_vector(
    value: &[u8],
    element: &Form,
    count: u32,
    fixed: Option<u32>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let short = || bad("a vector that ends too early");
    let mut rest = value;
    for _ in 0..count {
        let length = match fixed {
            Some(length) => u64::from(length),
            None => {
                let (length, bytes) = vint::unsigned(rest).ok_or_else(short)?;
                rest = rest.get(bytes..).unwrap_or_default();
                length
            }
        };
        let length = usize::try_from(length).map_err(|_| short())?;
        let (part, after) = rest.split_at_checked(length).ok_or_else(short)?;
        rest = after;
        element.push_part(Some(part), out)?;
    }
    out.push(END);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect()
    }

    /// Lines are a type, a value, and the bytes that `AbstractType.asComparableBytes` of Cassandra 5.0.9 makes of it, in the version OSS50.
    #[test]
    fn bytes_are_those_of_cassandra() {
        let mut count = 0;
        for line in include_str!("comparable.txt").lines() {
            let [kind, value, expected] = line.split('|').collect::<Vec<_>>()[..] else { panic!("{line}") };
            let form = Form::new(&MarshalType::parse(kind, 64).unwrap()).unwrap();
            let mut made = Vec::new();
            let has_bytes = form.push(&bytes(value), &mut made).unwrap();
            let expected = (expected != "null").then(|| bytes(expected));
            assert_eq!(has_bytes.then_some(made), expected, "{line}");
            count += 1;
        }
        assert!(count > 150, "{count}");
    }

    #[test]
    fn values_that_are_none_are_refused() {
        for (kind, value) in [
            ("LongType", "00"),
            ("UUIDType", "00"),
            ("DecimalType", "00"),
            ("FrozenType(ListType(Int32Type))", "00000001"),
            ("FrozenType(ListType(Int32Type))", "0000000100000004"),
            ("VectorType(FloatType,2)", "00000000"),
        ] {
            let form = Form::new(&MarshalType::parse(kind, 64).unwrap()).unwrap();
            let made = form.push(&bytes(value), &mut Vec::new());
            assert!(made.is_err() || value == "00000001", "{kind} {value}");
        }
        for kind in ["DurationType", "CounterColumnType", "CompositeType(Int32Type,Int32Type)"] {
            assert!(Form::new(&MarshalType::parse(kind, 64).unwrap()).is_err(), "{kind}");
        }
    }
}
