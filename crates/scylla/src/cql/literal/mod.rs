//! Values as CQL text, appended to a byte buffer.
//!
//! Every function appends one complete literal, or nothing if it fails. This module knows CQL's quotes, its words, and
//! what the servers can parse; digits, dates and bytes come from [`marquetry_base::print`].
//!
//! A server must read back exactly the given value. If the plain literal of a type cannot represent it (see
//! [`decimal_bytes`], [`varint`], [`inet`]), the value is written as bytes in a function call that both databases
//! support, such as `blobAsDecimal(0x…)`. What CQL cannot express at all is a [`LiteralError`].

mod number;
mod temporal;
#[cfg(test)]
mod tests;

pub use number::{PLAIN_SCALE_MAX, VARINT_TEXT_BYTES_MAX, decimal, decimal_bytes, varint};
pub use temporal::{DAY_NANOS, date, duration, time, timestamp};

use alloc::vec::Vec;
use core::fmt::{self, Write};
use core::net::IpAddr;

use marquetry_base::print;

/// Why a value has no CQL literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LiteralError {
    /// An integer or decimal of no bytes.
    EmptyNumber,
    /// A negative time, or one of a whole day or more.
    TimeOutOfDay {
        /// The time, in nanoseconds.
        nanos: i64,
    },
    /// A duration whose parts have different signs.
    DurationSigns,
    /// A duration with a part that has no positive counterpart (`i32::MIN`, `i64::MIN`), which the
    /// servers cannot parse.
    DurationOutOfRange,
    /// A text for `ascii` with another character.
    NotAscii {
        /// The character.
        found: char,
    },
}

impl fmt::Display for LiteralError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyNumber => f.write_str("a number has no bytes"),
            Self::TimeOutOfDay { nanos } => write!(f, "{nanos} ns is not a time within a day"),
            Self::DurationSigns => f.write_str("a duration's months, days and nanoseconds differ in sign"),
            Self::DurationOutOfRange => f.write_str("a duration is out of CQL's range"),
            Self::NotAscii { found } => write!(f, "{found:?} is not ASCII"),
        }
    }
}

impl core::error::Error for LiteralError {}

/// `null`, of any type.
pub fn null(out: &mut Vec<u8>) {
    out.extend_from_slice(b"null");
}

/// `true` or `false`.
pub fn boolean(out: &mut Vec<u8>, value: bool) {
    print::boolean(out, value);
}

/// An integer of any Rust type, for `tinyint`, `smallint`, `int`, `bigint`, `varint` and `counter`.
#[inline]
pub fn integer(out: &mut Vec<u8>, value: impl print::Integer) {
    print::integer(out, value);
}

/// A `float`: the shortest digits that both servers' parsers turn into the same bits.
///
/// Not-a-number is `NaN`: CQL has only one, so its sign and payload are lost. Zero keeps its sign.
#[inline]
pub fn float(out: &mut Vec<u8>, value: f32) {
    print::float(out, value);
}

/// A `double`; see [`float`].
#[inline]
pub fn double(out: &mut Vec<u8>, value: f64) {
    print::double(out, value);
}

/// A `text`: in single quotes, with single quotes doubled. Line ends, NUL and all other characters are written
/// unchanged.
pub fn text(out: &mut Vec<u8>, value: &str) {
    utf8(out, value.as_bytes());
}

/// [`text`] of bytes that are known to be UTF-8.
pub(crate) fn utf8(out: &mut Vec<u8>, bytes: &[u8]) {
    out.reserve(bytes.len() + 2);
    out.push(b'\'');
    let mut rest = bytes;
    while let Some(at) = memchr::memchr(b'\'', rest) {
        let (before, after) = rest.split_at(at + 1);
        out.extend_from_slice(before);
        out.push(b'\'');
        rest = after;
    }
    out.extend_from_slice(rest);
    out.push(b'\'');
}

/// An `ascii`, written like [`text`].
///
/// # Errors
/// [`LiteralError::NotAscii`].
pub fn ascii(out: &mut Vec<u8>, value: &str) -> Result<(), LiteralError> {
    if !value.is_ascii() {
        let found = value.chars().find(|c| !c.is_ascii()).unwrap_or(char::REPLACEMENT_CHARACTER);
        return Err(LiteralError::NotAscii { found });
    }
    text(out, value);
    Ok(())
}

/// A `blob`: `0x` and lower-case hexadecimal digits; no digits for an empty one.
pub fn blob(out: &mut Vec<u8>, value: &[u8]) {
    print::bytes(out, value);
}

/// A `uuid` or `timeuuid`, from its 16 bytes in the order in which they are written.
pub fn uuid(out: &mut Vec<u8>, value: &[u8; 16]) {
    print::uuid(out, value);
}

/// An `inet`, as a quoted address.
///
/// An IPv6 address that maps an IPv4 one (`::ffff:1.2.3.4`) becomes `blobAsInet(0x…)`, because
/// Cassandra reads its text as the IPv4 address.
pub fn inet(out: &mut Vec<u8>, value: IpAddr) {
    match value {
        IpAddr::V6(address) if address.to_ipv4_mapped().is_some() => {
            from_blob(out, "Inet", &[&address.octets()]);
        }
        other => {
            out.push(b'\'');
            // Writing to memory does not fail.
            let _ = write!(Utf8Sink(out), "{other}");
            out.push(b'\'');
        }
    }
}

/// `blobAs<Type>(0x…)` with the bytes of the parts; Cassandra (all versions) and ScyllaDB share this spelling.
fn from_blob(out: &mut Vec<u8>, type_name: &str, parts: &[&[u8]]) {
    out.extend_from_slice(b"blobAs");
    out.extend_from_slice(type_name.as_bytes());
    out.extend_from_slice(b"(0x");
    for part in parts {
        print::hex(out, part);
    }
    out.push(b')');
}

struct Utf8Sink<'a>(&'a mut Vec<u8>);

impl Write for Utf8Sink<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}
