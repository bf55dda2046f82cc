//! Variants as JSON.

use alloc::vec::Vec;

use marquetry_base::calendar::TimeUnit;
use marquetry_base::print::{self, Digits};
use marquetry_base::{Failed, Limit, Limits, Result};

use super::value::{Elements, Fields, Shape, not_utf8};
use super::{Primitive, Variant};

impl Variant<'_> {
    /// Appends the value as JSON to `out`: see [`JsonWriter`] for how.
    ///
    /// # Errors
    ///
    /// `Corrupt`, `Unsupported` or `LimitExceeded` for errors anywhere in the value; `LimitExceeded` if the text is
    /// longer than [`Limits::value_bytes`]. `out` then holds what was written before.
    pub fn to_json(&self, limits: &Limits, out: &mut Vec<u8>) -> Result<()> {
        let mut writer = JsonWriter::new(*self, limits);
        while !writer.write(out, usize::MAX)? {}
        Ok(())
    }
}

/// Writes a variant as JSON, a piece at a time.
///
/// | variant | JSON |
/// |---|---|
/// | integers, decimals | numbers with all their digits: `-0.05`, `12.00` |
/// | float, double | numbers with the fewest digits that read back to the same value; `"NaN"`, `"Infinity"`, `"-Infinity"` |
/// | date, time, timestamps | strings in ISO 8601 with all digits of their unit: `"2024-02-29T03:04:05.678000Z"`, the `Z` only in UTC |
/// | binary | a string in base 64 (RFC 4648, section 4) |
/// | uuid | a string: `"f24f9b64-81fa-49d1-b74e-8c09a6e31c56"` |
/// | objects | the fields in the value's own order, which is that of their names |
///
/// There is no white space.
#[derive(Debug)]
pub struct JsonWriter<'a> {
    /// The objects and arrays that are open.
    open: Vec<Open<'a>>,
    next: Next<'a>,
    /// Bytes that may still be written.
    bytes_left: u64,
    bytes_max: u64,
    failed: Failed,
}

#[derive(Debug)]
struct Open<'a> {
    items: Items<'a>,
    first: bool,
}

#[derive(Debug)]
enum Items<'a> {
    Fields(Fields<'a>),
    Elements(Elements<'a>),
}

/// What must be written next.
#[derive(Debug, Clone, Copy)]
enum Next<'a> {
    Value(Variant<'a>),
    /// The rest of a string; if it is a name, its value follows.
    Text(&'a [u8], Option<Variant<'a>>),
    /// The rest of a string in base 64.
    Base64(&'a [u8]),
    /// The next of the innermost open object or array.
    Item,
    Nothing,
}

/// Bytes of a text that are written at a time; for base 64, complete groups of three.
const PIECE_BYTES: usize = 3 << 10;

impl<'a> JsonWriter<'a> {
    /// A writer for `variant`, of at most [`Limits::value_bytes`].
    pub fn new(variant: Variant<'a>, limits: &Limits) -> JsonWriter<'a> {
        JsonWriter {
            open: Vec::new(),
            next: Next::Value(variant),
            bytes_left: limits.value_bytes,
            bytes_max: limits.value_bytes,
            failed: Failed::default(),
        }
    }

    /// Appends to `out` until about `bytes` more are written; true when that was the last. It may exceed that by some
    /// tens of kilobytes.
    ///
    /// # Errors
    ///
    /// As [`Variant::to_json`]. After an error it is the same again.
    pub fn write(&mut self, out: &mut Vec<u8>, bytes: usize) -> Result<bool> {
        Failed::run(self, |writer| &mut writer.failed, |writer| writer.write_some(out, bytes))
    }

    fn write_some(&mut self, out: &mut Vec<u8>, bytes: usize) -> Result<bool> {
        let enough = out.len().saturating_add(bytes.max(1));
        while !matches!(self.next, Next::Nothing) && out.len() < enough {
            let before = out.len();
            self.next = self.advance(out)?;
            let written = (out.len() - before) as u64;
            match self.bytes_left.checked_sub(written) {
                Some(left) => self.bytes_left = left,
                None => {
                    Limit::ValueBytes.check(self.bytes_max, self.bytes_max - self.bytes_left + written)?
                }
            }
        }
        Ok(matches!(self.next, Next::Nothing))
    }

    fn advance(&mut self, out: &mut Vec<u8>) -> Result<Next<'a>> {
        match self.next {
            Next::Value(variant) => self.begin(out, variant),
            Next::Text(text, None) => write_text(out, text),
            Next::Text(text, Some(value)) => match write_text(out, text)? {
                Next::Text(rest, _) => Ok(Next::Text(rest, Some(value))),
                _ => {
                    out.push(b':');
                    Ok(Next::Value(value))
                }
            },
            Next::Base64(bytes) => Ok(write_base64(out, bytes)),
            Next::Item => self.item(out),
            Next::Nothing => Ok(Next::Nothing),
        }
    }

    /// Writes a value, or begins it.
    fn begin(&mut self, out: &mut Vec<u8>, variant: Variant<'a>) -> Result<Next<'a>> {
        match variant.shape()? {
            Shape::Text(text) => {
                out.push(b'"');
                return write_text(out, text);
            }
            Shape::Primitive(Primitive::Binary(bytes)) => {
                out.push(b'"');
                return Ok(write_base64(out, bytes));
            }
            Shape::Primitive(value) => primitive(out, value),
            Shape::Object(object) => {
                out.push(b'{');
                self.open.push(Open { items: Items::Fields(object.fields()), first: true });
            }
            Shape::Array(array) => {
                out.push(b'[');
                self.open.push(Open { items: Items::Elements(array.elements()), first: true });
            }
        }
        Ok(Next::Item)
    }

    /// Writes the next item of the innermost open object or array, or ends it.
    fn item(&mut self, out: &mut Vec<u8>) -> Result<Next<'a>> {
        let Some(open) = self.open.last_mut() else { return Ok(Next::Nothing) };
        let before = if open.first { &b""[..] } else { b"," };
        open.first = false;
        match &mut open.items {
            Items::Fields(fields) => {
                if let Some(field) = fields.next() {
                    let (name, value) = field?;
                    out.extend_from_slice(before);
                    out.push(b'"');
                    if let Next::Text(rest, _) = write_text(out, name.as_bytes())? {
                        return Ok(Next::Text(rest, Some(value)));
                    }
                    out.push(b':');
                    return self.begin(out, value);
                }
                out.push(b'}');
            }
            Items::Elements(elements) => {
                if let Some(value) = elements.next() {
                    out.extend_from_slice(before);
                    return self.begin(out, value?);
                }
                out.push(b']');
            }
        }
        self.open.pop();
        Ok(Next::Item)
    }
}

/// Writes text and the string's end, or a piece of it.
fn write_text<'a>(out: &mut Vec<u8>, text: &'a [u8]) -> Result<Next<'a>> {
    let (piece, rest) = piece_of(text)?;
    print::json::escape(out, piece);
    if rest.is_empty() {
        out.push(b'"');
        return Ok(Next::Item);
    }
    Ok(Next::Text(rest, None))
}

/// Writes bytes and the string's end, or a piece of them.
fn write_base64<'a>(out: &mut Vec<u8>, bytes: &'a [u8]) -> Next<'a> {
    let (piece, rest) = bytes.split_at(bytes.len().min(PIECE_BYTES));
    print::base64(out, piece);
    if rest.is_empty() {
        out.push(b'"');
        return Next::Item;
    }
    Next::Base64(rest)
}

/// The text to be written next, and the rest.
fn piece_of(text: &[u8]) -> Result<(&str, &[u8])> {
    let (piece, rest) = text.split_at(text.len().min(PIECE_BYTES));
    match core::str::from_utf8(piece) {
        Ok(valid) => Ok((valid, rest)),
        // A character that was cut belongs to the rest.
        Err(error) if error.error_len().is_none() && !rest.is_empty() => {
            let (piece, rest) = text.split_at(error.valid_up_to());
            Ok((core::str::from_utf8(piece).map_err(|_| not_utf8())?, rest))
        }
        Err(_) => Err(not_utf8()),
    }
}

/// Appends a value that is short.
fn primitive(out: &mut Vec<u8>, value: Primitive<'_>) {
    let quoted = |out: &mut Vec<u8>, write: &dyn Fn(&mut Vec<u8>)| {
        out.push(b'"');
        write(out);
        out.push(b'"');
    };
    match value {
        Primitive::Null => out.extend_from_slice(b"null"),
        Primitive::Boolean(value) => print::boolean(out, value),
        Primitive::Int8(value) => print::integer(out, value),
        Primitive::Int16(value) => print::integer(out, value),
        Primitive::Int32(value) => print::integer(out, value),
        Primitive::Int64(value) => print::integer(out, value),
        Primitive::Float(value) if value.is_finite() => print::float(out, value),
        Primitive::Double(value) if value.is_finite() => print::double(out, value),
        // JSON has no such numbers.
        Primitive::Float(value) => quoted(out, &|out| print::float(out, value)),
        Primitive::Double(value) => quoted(out, &|out| print::double(out, value)),
        Primitive::Decimal4 { unscaled, scale } => decimal(out, unscaled.into(), scale),
        Primitive::Decimal8 { unscaled, scale } => decimal(out, unscaled.into(), scale),
        Primitive::Decimal16 { unscaled, scale } => decimal(out, unscaled, scale),
        Primitive::Date(days) => quoted(out, &|out| print::date(out, days.into())),
        Primitive::Time(micros) => quoted(out, &|out| print::time(out, micros, TimeUnit::Micros)),
        Primitive::TimestampNtz(micros) => {
            quoted(out, &|out| print::timestamp(out, micros, TimeUnit::Micros));
        }
        Primitive::TimestampNtzNanos(nanos) => {
            quoted(out, &|out| print::timestamp(out, nanos, TimeUnit::Nanos));
        }
        Primitive::Timestamp(micros) => quoted(out, &|out| {
            print::timestamp(out, micros, TimeUnit::Micros);
            out.push(b'Z');
        }),
        Primitive::TimestampNanos(nanos) => quoted(out, &|out| {
            print::timestamp(out, nanos, TimeUnit::Nanos);
            out.push(b'Z');
        }),
        Primitive::Binary(bytes) => quoted(out, &|out| print::base64(out, bytes)),
        Primitive::String(value) => quoted(out, &|out| print::json::escape(out, value)),
        Primitive::Uuid(bytes) => quoted(out, &|out| print::uuid(out, &bytes)),
    }
}

/// `unscaled × 10^-scale`, every digit of it.
fn decimal(out: &mut Vec<u8>, unscaled: i128, scale: u8) {
    Digits::of(unscaled).fixed(out, scale.into());
}
