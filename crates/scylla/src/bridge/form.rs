//! The forms in which values are written: as text, as cells, and as bytes in the order of CQL's values.

use alloc::format;
use alloc::vec::Vec;
use core::net::IpAddr;

use marquetry_base::{Error, Result, cast, twos_complement};

use super::value::Value;
use super::{cell, text};
use crate::cql::literal;
use crate::sstable::vint;
use crate::sstable::write::push_decimal;

/// How the parts of a value are combined.
pub(super) trait Form {
    /// A value that has no parts.
    fn value(out: &mut Vec<u8>, value: &Value<'_>) -> Result<()>;
    /// Begins a list, set or map, and returns its position.
    fn begin(out: &mut Vec<u8>, bracket: u8) -> usize;
    /// Ends a list, set or map of `items` items, at the position that [`Form::begin`] returned.
    fn end(out: &mut Vec<u8>, at: usize, items: usize, bracket: u8) -> Result<()>;
    /// Begins an item or a field, which follows `before`, and returns its position.
    fn begin_item(out: &mut Vec<u8>, before: &[u8]) -> usize;
    /// Ends an item or a field, at the position that [`Form::begin_item`] returned.
    fn end_item(out: &mut Vec<u8>, at: usize) -> Result<()>;
    /// A field that is null.
    fn null_item(out: &mut Vec<u8>, before: &[u8]);
    /// Begins the fields of a user-defined type.
    fn begin_fields(out: &mut Vec<u8>);
    /// The name of the next field, with a colon.
    fn label(out: &mut Vec<u8>, is_first: bool, label: &[u8]);
    /// Ends the fields of a user-defined type.
    fn end_fields(out: &mut Vec<u8>);
    /// Begins the members of a tuple.
    fn begin_tuple(_out: &mut Vec<u8>) {}
    /// Ends the members of a tuple.
    fn end_tuple(_out: &mut Vec<u8>) {}
    /// Begins a vector, whose elements stand one after the other: their number is that of the type.
    fn begin_vector(_out: &mut Vec<u8>) {}
    /// Begins an element of a vector, which follows `before`.
    fn begin_part(_out: &mut Vec<u8>, _before: &[u8]) {}
    /// Ends an element of a vector, which began at a position, if elements differ in length.
    fn end_part(_out: &mut Vec<u8>, _at: usize) {}
    /// Ends a vector.
    fn end_vector(_out: &mut Vec<u8>) {}
}

/// CQL literals.
#[derive(Debug)]
pub(super) enum Text {}

impl Form for Text {
    #[inline]
    fn value(out: &mut Vec<u8>, value: &Value<'_>) -> Result<()> {
        text::write(out, value)
    }

    fn begin(out: &mut Vec<u8>, bracket: u8) -> usize {
        out.push(bracket);
        0
    }

    fn end(out: &mut Vec<u8>, _at: usize, _items: usize, bracket: u8) -> Result<()> {
        out.push(bracket);
        Ok(())
    }

    #[inline]
    fn begin_item(out: &mut Vec<u8>, before: &[u8]) -> usize {
        out.extend_from_slice(before);
        0
    }

    #[inline]
    fn end_item(_out: &mut Vec<u8>, _at: usize) -> Result<()> {
        Ok(())
    }

    fn null_item(out: &mut Vec<u8>, before: &[u8]) {
        out.extend_from_slice(before);
        literal::null(out);
    }

    fn begin_fields(out: &mut Vec<u8>) {
        out.push(b'{');
    }

    fn label(out: &mut Vec<u8>, is_first: bool, label: &[u8]) {
        out.extend_from_slice(if is_first { b"" } else { b", " });
        out.extend_from_slice(label);
    }

    fn end_fields(out: &mut Vec<u8>) {
        out.push(b'}');
    }

    fn begin_tuple(out: &mut Vec<u8>) {
        out.push(b'(');
    }

    fn end_tuple(out: &mut Vec<u8>) {
        out.push(b')');
    }

    fn begin_vector(out: &mut Vec<u8>) {
        out.push(b'[');
    }

    fn begin_part(out: &mut Vec<u8>, before: &[u8]) {
        out.extend_from_slice(before);
    }

    fn end_vector(out: &mut Vec<u8>) {
        out.push(b']');
    }
}

/// The native protocol's cells, versions 3 to 5 (`native_protocol_v5.spec`, sections 6.11, 6.12, 6.17 and 6.23).
#[derive(Debug)]
pub(super) enum Cells {}

/// Bytes of a number of items, and of an item's length.
const NUMBER_BYTES: usize = 4;
/// The length of a field that is null.
const NULL: i32 = -1;

impl Form for Cells {
    #[inline]
    fn value(out: &mut Vec<u8>, value: &Value<'_>) -> Result<()> {
        cell::write(out, value);
        Ok(())
    }

    fn begin(out: &mut Vec<u8>, _bracket: u8) -> usize {
        room(out)
    }

    fn end(out: &mut Vec<u8>, at: usize, items: usize, _bracket: u8) -> Result<()> {
        fill(out, at, items, "items in a list, set or map")
    }

    #[inline]
    fn begin_item(out: &mut Vec<u8>, _before: &[u8]) -> usize {
        room(out)
    }

    #[inline]
    fn end_item(out: &mut Vec<u8>, at: usize) -> Result<()> {
        let length = out.len().saturating_sub(at + NUMBER_BYTES);
        fill(out, at, length, "bytes of a value")
    }

    fn null_item(out: &mut Vec<u8>, _before: &[u8]) {
        out.extend_from_slice(&NULL.to_be_bytes());
    }

    fn begin_fields(_out: &mut Vec<u8>) {}

    fn label(_out: &mut Vec<u8>, _is_first: bool, _label: &[u8]) {}

    fn end_fields(_out: &mut Vec<u8>) {}

    /// Its length comes before it, in the form that only vectors have: seven bits in a byte, of which the leading ones count those that follow
    /// (`VectorType.java` of Cassandra, and its `VIntCoding.java`).
    fn end_part(out: &mut Vec<u8>, at: usize) {
        let mut length = Vec::new();
        vint::push_unsigned(&mut length, cast::u64_of(out.len().saturating_sub(at)));
        out.splice(at..at, length);
    }
}

/// Space for a number.
#[inline]
fn room(out: &mut Vec<u8>) -> usize {
    let at = out.len();
    out.extend_from_slice(&[0; NUMBER_BYTES]);
    at
}

#[inline]
fn fill(out: &mut [u8], at: usize, number: usize, what: &str) -> Result<()> {
    let Ok(number) = i32::try_from(number) else {
        return Err(Error::conversion(format!("{number} {what}, more than CQL's protocol can say")));
    };
    match out.get_mut(at..at + NUMBER_BYTES) {
        Some(room) => room.copy_from_slice(&number.to_be_bytes()),
        None => return Err(Error::internal("the room for a number is gone")),
    }
    Ok(())
}

/// Bytes that compare, as unsigned bytes, as the servers compare values of one column. Equal bytes mean equal values.
///
/// The servers keep sets and maps in this order. They sort one that is a column's value, but not one inside another
/// value; out of order, it would not equal the same set from another client.
///
/// Source: the `compareCustom` of the types in Cassandra 5.0's `org.apache.cassandra.db.marshal`; ScyllaDB has the same orders.
#[derive(Debug)]
pub(super) enum Order {}

/// Before an item, or a field that is not null.
const THERE: u8 = 1;
/// At the end of items, and in place of a null field: less than anything else.
const NOT_THERE: u8 = 0;

impl Form for Order {
    #[inline]
    fn value(out: &mut Vec<u8>, value: &Value<'_>) -> Result<()> {
        match value {
            Value::Boolean(value) => out.push(u8::from(*value)),
            Value::Tinyint(value) => out.extend_from_slice(&(value ^ i8::MIN).to_be_bytes()),
            Value::Smallint(value) => out.extend_from_slice(&(value ^ i16::MIN).to_be_bytes()),
            Value::Int(value) | Value::Date(value) => {
                out.extend_from_slice(&(value ^ i32::MIN).to_be_bytes());
            }
            Value::Bigint(value) | Value::Time(value) | Value::Timestamp(value) => {
                out.extend_from_slice(&(value ^ i64::MIN).to_be_bytes());
            }
            Value::Unsigned(value) => out.extend_from_slice(&value.to_be_bytes()),
            Value::Varint(bytes) => integer_order(out, bytes),
            // -0.0 is less than 0.0, and there is one NaN, the largest number.
            Value::Float(value) => {
                let bits = if value.is_nan() { f32::NAN } else { *value }.to_bits();
                let bits = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
                out.extend_from_slice(&bits.to_be_bytes());
            }
            Value::Double(value) => {
                let bits = if value.is_nan() { f64::NAN } else { *value }.to_bits();
                let bits = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
                out.extend_from_slice(&bits.to_be_bytes());
            }
            // By what they are worth, whatever their scale: 1.50 equals 1.5.
            Value::Decimal { .. } | Value::DecimalBytes { .. } => {
                let mut bytes = Vec::new();
                cell::write(&mut bytes, value);
                push_decimal(&bytes, out)?;
            }
            // Servers compare them by their bytes.
            Value::Duration { .. } => {
                let mut bytes = Vec::new();
                cell::write(&mut bytes, value);
                bytes_order(out, &bytes);
            }
            Value::Uuid(bytes) => uuid_order(out, bytes),
            Value::Timeuuid(bytes) => timeuuid_order(out, bytes),
            Value::Inet(IpAddr::V4(address)) => bytes_order(out, &address.octets()),
            Value::Inet(IpAddr::V6(address)) => bytes_order(out, &address.octets()),
            Value::Text { bytes, .. } | Value::Blob(bytes) => bytes_order(out, bytes),
        }
        Ok(())
    }

    fn begin(_out: &mut Vec<u8>, _bracket: u8) -> usize {
        0
    }

    fn end(out: &mut Vec<u8>, _at: usize, _items: usize, _bracket: u8) -> Result<()> {
        out.push(NOT_THERE);
        Ok(())
    }

    #[inline]
    fn begin_item(out: &mut Vec<u8>, _before: &[u8]) -> usize {
        out.push(THERE);
        0
    }

    #[inline]
    fn end_item(_out: &mut Vec<u8>, _at: usize) -> Result<()> {
        Ok(())
    }

    fn null_item(out: &mut Vec<u8>, _before: &[u8]) {
        out.push(NOT_THERE);
    }

    fn begin_fields(_out: &mut Vec<u8>) {}

    fn label(_out: &mut Vec<u8>, _is_first: bool, _label: &[u8]) {}

    fn end_fields(_out: &mut Vec<u8>) {}
}

/// The bytes, then two zeros; a zero among them is followed by 0xff. So no value is a prefix of another.
#[inline]
fn bytes_order(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut rest = bytes;
    while let Some(at) = memchr::memchr(0, rest) {
        let (before, after) = rest.split_at(at + 1);
        out.extend_from_slice(before);
        out.push(0xff);
        rest = after;
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(&[0, 0]);
}

/// Two's complement: sign, length, and the bytes, which compare as numbers do if sign and length are equal.
fn integer_order(out: &mut Vec<u8>, big_endian: &[u8]) {
    let bytes = twos_complement::shortest(big_endian);
    let length = cast::u64_of(bytes.len());
    let is_negative = bytes.first().is_some_and(|first| *first >= 0x80);
    out.push(u8::from(!is_negative));
    out.extend_from_slice(&if is_negative { !length } else { length }.to_be_bytes());
    out.extend_from_slice(bytes);
}

/// The version, then the time for version 1, or else the upper half; then the lower half.
fn uuid_order(out: &mut Vec<u8>, bytes: &[u8; 16]) {
    let [a, b, c, d, e, f, version, g, lower @ ..] = *bytes;
    out.push(version >> 4);
    out.extend_from_slice(&match version >> 4 {
        1 => [version, g, e, f, a, b, c, d],
        _ => [a, b, c, d, e, f, version, g],
    });
    out.extend_from_slice(&lower);
}

/// The time; then the lower half, whose bytes are signed.
fn timeuuid_order(out: &mut Vec<u8>, bytes: &[u8; 16]) {
    let [a, b, c, d, e, f, version, g, lower @ ..] = *bytes;
    out.extend_from_slice(&[version, g, e, f, a, b, c, d]);
    out.extend(lower.map(|byte| byte ^ 0x80));
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::borrow::Cow;

    fn bytes(value: &Value<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        Order::value(&mut out, value).unwrap();
        out
    }

    /// Each is less than the next.
    #[track_caller]
    fn ascending(values: &[Value<'_>]) {
        for pair in values.windows(2) {
            assert!(bytes(&pair[0]) < bytes(&pair[1]), "{:?} {:?}", pair[0], pair[1]);
        }
    }

    #[test]
    fn values_are_in_the_servers_order() {
        ascending(&[i8::MIN, -1, 0, 1, i8::MAX].map(Value::Tinyint));
        ascending(&[i16::MIN, -1, 0, 256, i16::MAX].map(Value::Smallint));
        ascending(&[i32::MIN, -256, -1, 0, 1, 256, i32::MAX].map(Value::Int));
        ascending(&[i32::MIN, -1, 0, i32::MAX].map(Value::Date));
        ascending(&[i64::MIN, -1, 0, 1 << 40, i64::MAX].map(Value::Timestamp));
        ascending(&[0, 1, 1 << 63, u64::MAX].map(Value::Unsigned));
        ascending(&[false, true].map(Value::Boolean));
        let floats =
            [f32::NEG_INFINITY, f32::MIN, -1.0, -1e-45, -0.0, 0.0, 1e-45, 1.5, f32::INFINITY, f32::NAN];
        ascending(&floats.map(Value::Float));
        ascending(&floats.map(|number| Value::Double(number.into())));
        assert_eq!(bytes(&Value::Double(-f64::NAN)), bytes(&Value::Double(f64::NAN)));
        assert_eq!(bytes(&Value::Float(f32::from_bits(0x7f80_0001))), bytes(&Value::Float(f32::NAN)));
        ascending(&[-200_i64, -3, 0, 7].map(|unscaled| Value::Decimal { unscaled, scale: 2 }));
        let numbers: [&[u8]; 8] =
            [&[0x80, 0, 0], &[0xff, 0x7f], &[0x80], &[0xff], &[0], &[0x7f], &[0, 0x80], &[1, 0, 0]];
        ascending(
            &numbers.map(|unscaled| Value::DecimalBytes { unscaled: Cow::Borrowed(unscaled), scale: 1 }),
        );
        let one: [&[u8]; 2] = [&[0xff, 0xff, 0x80], &[0x80]];
        let [one, same] =
            one.map(|unscaled| bytes(&Value::DecimalBytes { unscaled: Cow::Borrowed(unscaled), scale: 1 }));
        assert_eq!(one, same);
        // Of any scale, in either form.
        let of = |unscaled: i64, scale| Value::Decimal { unscaled, scale };
        ascending(&[
            of(-2, -3),
            of(-15, 1),
            of(-1, 0),
            of(-1, 40),
            of(0, 5),
            of(1, 40),
            of(150, 2),
            of(2, 0),
            of(1, -1),
        ]);
        assert_eq!(bytes(&of(15, 1)), bytes(&of(1500, 3)));
        assert_eq!(bytes(&of(0, 1)), bytes(&of(0, -7)));
        assert_eq!(bytes(&of(-128, 1)), one);
        let texts = ["", "\0", "\0\0", "\0a", "\u{1}", "a", "a\0", "a\0b", "aa", "ab", "b", "é"];
        ascending(&texts.map(|text| Value::Text { bytes: Cow::Borrowed(text.as_bytes()), is_plain: false }));
        ascending(&[&[][..], &[0], &[0, 0xff], &[1], &[0xff]].map(|bytes| Value::Blob(Cow::Borrowed(bytes))));
    }

    #[test]
    fn uuids_are_in_the_servers_order() {
        let uuid = |upper: u64, lower: u64| {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&upper.to_be_bytes());
            bytes[8..].copy_from_slice(&lower.to_be_bytes());
            bytes
        };
        let uuids = [
            uuid(0, 0),
            uuid(u64::MAX ^ 0xf000, 0),
            // Version 1: by its time, whose upper part is last.
            uuid(0xffff_ffff_0000_1000, 0),
            uuid(0x0000_0000_0001_1000, 0),
            uuid(0x0000_0000_0000_1001, 1),
            uuid(0x0000_0000_0000_1001, 1 << 63),
            uuid(0x1000_0000_0000_4000, 0),
            uuid(0x2000_0000_0000_4000, 0),
        ];
        ascending(&uuids.map(Value::Uuid));
        let timeuuids = [
            uuid(0xffff_ffff_0000_1000, 0),
            uuid(0x0000_0000_0001_1000, 0),
            uuid(0x0000_0000_0000_1001, 0x80 << 56),
            uuid(0x0000_0000_0000_1001, 0x80),
            uuid(0x0000_0000_0000_1001, 0),
            uuid(0x0000_0000_0000_1001, 1),
        ];
        ascending(&timeuuids.map(Value::Timeuuid));
    }
}
