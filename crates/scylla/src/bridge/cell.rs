//! Values as the native protocol serialises them (`native_protocol_v5.spec`, section 6).

use alloc::vec::Vec;
use core::net::IpAddr;

use marquetry_base::cast;
use marquetry_base::twos_complement::shortest;

use super::value::Value;

/// Whether a cell has a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cell {
    /// Null: nothing was appended.
    Null,
    /// A value, possibly of no bytes (an empty text).
    Value,
}

impl Cell {
    /// True for [`Cell::Value`].
    pub fn is_value(self) -> bool {
        self == Cell::Value
    }
}

/// Appends a value, without its length.
pub(super) fn write(out: &mut Vec<u8>, value: &Value<'_>) {
    match value {
        Value::Boolean(value) => out.push(u8::from(*value)),
        Value::Tinyint(value) => out.extend_from_slice(&value.to_be_bytes()),
        Value::Smallint(value) => out.extend_from_slice(&value.to_be_bytes()),
        Value::Int(value) => out.extend_from_slice(&value.to_be_bytes()),
        Value::Bigint(value) | Value::Time(value) | Value::Timestamp(value) => {
            out.extend_from_slice(&value.to_be_bytes());
        }
        Value::Unsigned(value) => varint(out, &i128::from(*value).to_be_bytes()),
        Value::Varint(bytes) => varint(out, bytes),
        Value::Float(value) => out.extend_from_slice(&value.to_bits().to_be_bytes()),
        Value::Double(value) => out.extend_from_slice(&value.to_bits().to_be_bytes()),
        Value::Decimal { unscaled, scale } => {
            out.extend_from_slice(&scale.to_be_bytes());
            varint(out, &unscaled.to_be_bytes());
        }
        Value::DecimalBytes { unscaled, scale } => {
            out.extend_from_slice(&scale.to_be_bytes());
            varint(out, unscaled);
        }
        // Unsigned, with 1970-01-01 in the middle of the range: the same bits with the sign inverted.
        Value::Date(days) => out.extend_from_slice(&(days ^ i32::MIN).to_be_bytes()),
        Value::Duration { months, days, nanos } => {
            vint(out, (*months).into());
            vint(out, (*days).into());
            vint(out, *nanos);
        }
        Value::Uuid(bytes) | Value::Timeuuid(bytes) => out.extend_from_slice(bytes),
        Value::Inet(IpAddr::V4(address)) => out.extend_from_slice(&address.octets()),
        Value::Inet(IpAddr::V6(address)) => out.extend_from_slice(&address.octets()),
        Value::Text { bytes, .. } | Value::Blob(bytes) => out.extend_from_slice(bytes),
    }
}

/// A `varint` from big-endian two's complement bytes: the fewest that hold it, as the servers themselves write it. They
/// accept longer ones, but then equal keys would not have equal bytes.
fn varint(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(shortest(bytes));
}

/// Part of a duration: zigzag-encoded; the first byte's leading ones count the bytes that follow it.
fn vint(out: &mut Vec<u8>, value: i64) {
    let zigzag = cast::bits_u64(value << 1 ^ value >> 63);
    // The first byte loses one bit for each further byte: 7 bits per byte, but 64 in nine.
    let significant = 64 - zigzag.leading_zeros().min(63);
    let further = ((significant - 1) / 7).min(8);
    let ones = !(0xff_u32 >> further) & 0xff;
    let mut bytes = [0; 9];
    bytes[1..].copy_from_slice(&zigzag.to_be_bytes());
    let start = 8 - cast::usize_of_u32(further);
    bytes[start] |= cast::low_u8(ones.into());
    out.extend_from_slice(&bytes[start..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vints() {
        let written = |value| {
            let mut out = Vec::new();
            vint(&mut out, value);
            out
        };
        // Zigzag 0, 1, 2, 127, 128.
        assert_eq!(written(0), [0]);
        assert_eq!(written(-1), [1]);
        assert_eq!(written(1), [2]);
        assert_eq!(written(-64), [127]);
        assert_eq!(written(64), [0x80, 128]);
        assert_eq!(written(-8192), [0xbf, 0xff]);
        assert_eq!(written(8192), [0xc0, 0x40, 0]);
        // Zigzag 2^56 - 1 has eight bytes, 2^56 has nine.
        assert_eq!(written(-(1 << 55)), [0xfe, 255, 255, 255, 255, 255, 255, 255]);
        assert_eq!(written(1 << 55), [0xff, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(written(i64::MAX), [255, 255, 255, 255, 255, 255, 255, 255, 254]);
        assert_eq!(written(i64::MIN), [255; 9]);
        // Every length reads back.
        for shift in 0..63 {
            for value in [1_i64 << shift, -(1 << shift), (1 << shift) - 1] {
                let bytes = written(value);
                let further = bytes[0].leading_ones() as usize;
                assert_eq!(bytes.len(), further + 1);
                let first = u64::from(bytes[0]) & (0xff >> further);
                let zigzag = bytes[1..].iter().fold(first, |number, byte| number << 8 | u64::from(*byte));
                let sign = if zigzag & 1 == 1 { u64::MAX } else { 0 };
                assert_eq!(cast::bits_i64(zigzag >> 1 ^ sign), value);
            }
        }
    }

    #[test]
    fn varints_are_shortest() {
        for (bytes, shortest) in [
            (&[0, 0, 0][..], &[0][..]),
            (&[0, 0x80], &[0, 0x80]),
            (&[0, 0x7f], &[0x7f]),
            (&[0xff, 0xff], &[0xff]),
            (&[0xff, 0x7f], &[0xff, 0x7f]),
            (&[0xff, 0xff, 0x80, 1], &[0x80, 1]),
        ] {
            let mut out = Vec::new();
            varint(&mut out, bytes);
            assert_eq!(out, shortest);
        }
    }
}
