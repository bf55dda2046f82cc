//! CQL values, one at a time.

use alloc::borrow::Cow;
use alloc::vec::Vec;
use core::net::IpAddr;

/// A CQL value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value<'a> {
    Boolean(bool),
    Tinyint(i8),
    Smallint(i16),
    Int(i32),
    Bigint(i64),
    /// Of a `varint`.
    Unsigned(u64),
    /// Big-endian two's complement, at least one byte.
    Varint(Vec<u8>),
    Float(f32),
    Double(f64),
    Decimal {
        unscaled: i64,
        scale: i32,
    },
    /// Big-endian two's complement, at least one byte.
    DecimalBytes {
        unscaled: Cow<'a, [u8]>,
        scale: i32,
    },
    /// Days since 1970-01-01.
    Date(i32),
    /// Nanoseconds of the day, less than a day.
    Time(i64),
    /// Milliseconds since 1970-01-01 00:00 UTC.
    Timestamp(i64),
    /// All of one sign.
    Duration {
        months: i32,
        days: i32,
        nanos: i64,
    },
    Uuid([u8; 16]),
    /// Of version 1.
    Timeuuid([u8; 16]),
    Inet(IpAddr),
    /// UTF-8. `is_plain`: ASCII without a single quote, so that nothing needs escaping.
    Text {
        bytes: Cow<'a, [u8]>,
        is_plain: bool,
    },
    Blob(Cow<'a, [u8]>),
}

impl Value<'_> {
    /// The bytes of a value whose length varies and may be zero.
    pub(super) fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Value::Text { bytes, .. } | Value::Blob(bytes) => Some(bytes),
            _ => None,
        }
    }
}
