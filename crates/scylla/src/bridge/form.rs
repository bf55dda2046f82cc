//! The forms that values are written in: text, cells, and bytes that are equal where CQL's values are.

use alloc::format;
use alloc::vec::Vec;

use marquetry_base::{Error, Result};

use super::convert::Value;
use super::{cell, text};
use crate::cql::literal;

/// How a value's parts are put together.
pub(super) trait Form {
    /// Whether sets and maps are written in one order, that of their elements' and keys' bytes.
    const IS_ORDERED: bool = false;

    /// A value that has no parts.
    fn value(out: &mut Vec<u8>, value: &Value<'_>) -> Result<()>;
    /// Begins a list, set or map, and says where.
    fn begin(out: &mut Vec<u8>, bracket: u8) -> usize;
    /// Ends a list, set or map of so many items, with the position that [`Form::begin`] said.
    fn end(out: &mut Vec<u8>, at: usize, items: usize, bracket: u8) -> Result<()>;
    /// Begins an item or a field, which stands after `before`, and says where.
    fn begin_item(out: &mut Vec<u8>, before: &[u8]) -> usize;
    /// Ends an item or a field, with the position that [`Form::begin_item`] said.
    fn end_item(out: &mut Vec<u8>, at: usize) -> Result<()>;
    /// A field that is null.
    fn null_item(out: &mut Vec<u8>, before: &[u8]);
    /// Begins the fields of a user-defined type.
    fn begin_fields(out: &mut Vec<u8>);
    /// The name of the next field, with a colon.
    fn label(out: &mut Vec<u8>, is_first: bool, label: &[u8]);
    /// Ends the fields of a user-defined type.
    fn end_fields(out: &mut Vec<u8>);
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
}

/// The native protocol's cells, versions 3 to 5 (`native_protocol_v5.spec`, sections 6.11, 6.12, 6.17 and 6.23).
#[derive(Debug)]
pub(super) enum Cells {}

/// The bytes of a number of items, and of an item's length.
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
}

/// Room for a number.
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

/// Bytes that are equal exactly where the servers take two values of a column for equal.
///
/// They are those of [`Cells`], but for NaNs, of which there is one, and for the order in sets and maps. (Decimals of one column
/// have one scale, so equal ones are equal bytes. Minus zero is not zero.)
#[derive(Debug)]
pub(super) enum Identity {}

impl Form for Identity {
    const IS_ORDERED: bool = true;

    fn value(out: &mut Vec<u8>, value: &Value<'_>) -> Result<()> {
        match value {
            Value::Float(number) if number.is_nan() => Cells::value(out, &Value::Float(f32::NAN)),
            Value::Double(number) if number.is_nan() => Cells::value(out, &Value::Double(f64::NAN)),
            value => Cells::value(out, value),
        }
    }

    fn begin(out: &mut Vec<u8>, bracket: u8) -> usize {
        Cells::begin(out, bracket)
    }

    fn end(out: &mut Vec<u8>, at: usize, items: usize, bracket: u8) -> Result<()> {
        Cells::end(out, at, items, bracket)
    }

    fn begin_item(out: &mut Vec<u8>, before: &[u8]) -> usize {
        Cells::begin_item(out, before)
    }

    fn end_item(out: &mut Vec<u8>, at: usize) -> Result<()> {
        Cells::end_item(out, at)
    }

    fn null_item(out: &mut Vec<u8>, before: &[u8]) {
        Cells::null_item(out, before);
    }

    fn begin_fields(_out: &mut Vec<u8>) {}

    fn label(_out: &mut Vec<u8>, _is_first: bool, _label: &[u8]) {}

    fn end_fields(_out: &mut Vec<u8>) {}
}
