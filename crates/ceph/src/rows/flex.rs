//! FlexBuffers, as far as rows have them: a vector of numbers, truth values and texts.
//!
//! Source: `flexbuffers.h`, and FlatBuffers' `internals.md`. A buffer ends with its root, the root's type (u8), and the root's width in bytes (u8).
//! A type is a kind in its upper six bits, and in its lower two the logarithm of a width. A vector has its length, its elements, all of one
//! width, and then their types. An element that is not a number or a truth value is the distance back to it. Before a text is its length.

use marquetry_base::cast::{nearest_f32, u64_of};
use marquetry_base::{Error, Result};

/// A value of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value<'a> {
    Null,
    Int(i64),
    Uint(u64),
    Float(f64),
    Bool(bool),
    Text(&'a str),
}

/// The kinds that are known.
const NULL: u8 = 0;
const INT: u8 = 1;
const UINT: u8 = 2;
const FLOAT: u8 = 3;
const KEY: u8 = 4;
const STRING: u8 = 5;
const INDIRECT_INT: u8 = 6;
const INDIRECT_UINT: u8 = 7;
const INDIRECT_FLOAT: u8 = 8;
const VECTOR: u8 = 10;
const BOOL: u8 = 26;

#[cold]
fn wrong() -> Error {
    Error::corrupt("a FlexBuffer that refers to what it does not have")
}

/// A row's values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row<'a> {
    buffer: &'a [u8],
    at: usize,
    width: usize,
    pub(super) length: usize,
}

impl<'a> Row<'a> {
    #[inline]
    pub(super) fn of(buffer: &'a [u8]) -> Result<Row<'a>> {
        let [rest @ .., root_type, width] = buffer else { return Err(wrong()) };
        let width = usize::from(*width);
        if root_type >> 2 != VECTOR || !matches!(width, 1 | 2 | 4 | 8) {
            return Err(Error::unsupported("a row that is not a vector"));
        }
        let root = rest.len().checked_sub(width).ok_or_else(wrong)?;
        let at = back(buffer, root, width)?;
        let width = width_of(*root_type);
        let length = at.checked_sub(width).ok_or_else(wrong)?;
        let length = usize::try_from(unsigned(buffer, length, width)?).map_err(|_| wrong())?;
        let end = length.checked_mul(width + 1).and_then(|bytes| bytes.checked_add(at));
        if end.is_none_or(|end| end > buffer.len()) {
            return Err(wrong());
        }
        Ok(Row { buffer, at, width, length })
    }

    /// A value; null after the last.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Result<Value<'a>> {
        if index >= self.length {
            return Ok(Value::Null);
        }
        let Row { buffer, at, width, length } = *self;
        let kind = buffer.get(at + length * width + index).copied().ok_or_else(wrong)?;
        let at = at + index * width;
        Ok(match kind >> 2 {
            INT => Value::Int(signed(buffer, at, width)?),
            UINT => Value::Uint(unsigned(buffer, at, width)?),
            FLOAT => Value::Float(float(buffer, at, width)?),
            _ => self.get_other(kind, at)?,
        })
    }

    /// A value that is at a place, and no number there.
    fn get_other(&self, kind: u8, at: usize) -> Result<Value<'a>> {
        let Row { buffer, width, .. } = *self;
        let inner = width_of(kind);
        Ok(match kind >> 2 {
            NULL => Value::Null,
            BOOL => Value::Bool(unsigned(buffer, at, width)? != 0),
            INDIRECT_INT => Value::Int(signed(buffer, back(buffer, at, width)?, inner)?),
            INDIRECT_UINT => Value::Uint(unsigned(buffer, back(buffer, at, width)?, inner)?),
            INDIRECT_FLOAT => Value::Float(float(buffer, back(buffer, at, width)?, inner)?),
            STRING | KEY => text(self.text_bytes(kind, at)?)?,
            kind => return Err(Error::unsupported(format!("values of the FlexBuffers kind {kind} in rows"))),
        })
    }

    /// How long the text is that a value is; 0 if it is none.
    pub(super) fn text_length(&self, index: usize) -> Result<usize> {
        if index >= self.length {
            return Ok(0);
        }
        let kind = self.buffer.get(self.at + self.length * self.width + index).copied().ok_or_else(wrong)?;
        match kind >> 2 {
            STRING | KEY => Ok(self.text_bytes(kind, self.at + index * self.width)?.len()),
            _ => Ok(0),
        }
    }

    /// The bytes of a text to which the distance at a place leads.
    fn text_bytes(&self, kind: u8, at: usize) -> Result<&'a [u8]> {
        let Row { buffer, width, .. } = *self;
        let start = back(buffer, at, width)?;
        if kind >> 2 == KEY {
            let rest = buffer.get(start..).ok_or_else(wrong)?;
            let end = rest.iter().position(|byte| *byte == 0);
            return end.and_then(|end| rest.get(..end)).ok_or_else(wrong);
        }
        let inner = width_of(kind);
        let length = unsigned(buffer, start.checked_sub(inner).ok_or_else(wrong)?, inner)?;
        let end = usize::try_from(length).ok().and_then(|length| start.checked_add(length));
        end.and_then(|end| buffer.get(start..end)).ok_or_else(wrong)
    }
}

fn text(bytes: &[u8]) -> Result<Value<'_>> {
    let text = core::str::from_utf8(bytes);
    text.map(Value::Text).map_err(|_| Error::corrupt("a text of a row that is not UTF-8"))
}

#[inline]
fn width_of(kind: u8) -> usize {
    1 << (kind & 3)
}

/// Where the distance at a place leads.
#[inline]
fn back(buffer: &[u8], at: usize, width: usize) -> Result<usize> {
    let distance = usize::try_from(unsigned(buffer, at, width)?).ok();
    distance.and_then(|distance| at.checked_sub(distance)).ok_or_else(wrong)
}

/// A number of so many bytes.
#[inline]
fn unsigned(buffer: &[u8], at: usize, width: usize) -> Result<u64> {
    // A copy of so many bytes as a variable says would be a call.
    let bytes = buffer.get(at..).unwrap_or_default();
    let number = match width {
        1 => bytes.first().map(|byte| u64::from(*byte)),
        2 => bytes.first_chunk().map(|bytes| u64::from(u16::from_le_bytes(*bytes))),
        4 => bytes.first_chunk().map(|bytes| u64::from(u32::from_le_bytes(*bytes))),
        _ => bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes)),
    };
    number.ok_or_else(wrong)
}

#[inline]
fn signed(buffer: &[u8], at: usize, width: usize) -> Result<i64> {
    let unused = 64_usize.saturating_sub(8 * width);
    Ok((unsigned(buffer, at, width)? << unused).cast_signed() >> unused)
}

#[inline]
fn float(buffer: &[u8], at: usize, width: usize) -> Result<f64> {
    let bits = unsigned(buffer, at, width)?;
    match width {
        8 => Ok(f64::from_bits(bits)),
        4 => u32::try_from(bits).map(|bits| f64::from(f32::from_bits(bits))).map_err(|_| wrong()),
        _ => Err(Error::unsupported("floating-point numbers of 16 bits in rows")),
    }
}

/// The bytes of a row: those that the FlexBuffers library's builder makes of the same values.
pub(super) fn write(values: &[Value<'_>], into: &mut Vec<u8>) {
    into.clear();
    // Texts come first. Of each: its place, and the logarithm of the width of its length.
    let mut places = Vec::with_capacity(values.len());
    for value in values {
        let Value::Text(text) = value else {
            places.push((0, 0));
            continue;
        };
        let width = width_for(u64_of(text.len()));
        align(into, 1 << width);
        put(into, u64_of(text.len()), 1 << width);
        places.push((into.len(), width));
        into.extend_from_slice(text.as_bytes());
        into.push(0);
    }
    // The smallest width that all elements fit, and the length.
    let least = |value: &Value<'_>| match value {
        Value::Null | Value::Bool(_) | Value::Text(_) => 0,
        Value::Int(number) => {
            let doubled = number << 1;
            let bits = if *number >= 0 { doubled } else { !doubled };
            width_for(bits.cast_unsigned())
        }
        Value::Uint(number) => width_for(*number),
        // As the library's builder has it: in 32 bits if that is exact.
        Value::Float(number) => {
            if narrow(*number).is_some() {
                2
            } else {
                3
            }
        }
    };
    let mut width = values.iter().map(least).max().unwrap_or(0).max(width_for(u64_of(values.len())));
    while width < 3 {
        let bytes = 1 << width;
        let start = into.len().next_multiple_of(bytes);
        let distance = |(at, value): (usize, &Value<'_>)| match value {
            Value::Text(_) => u64_of(start + (at + 1) * bytes - places[at].0),
            _ => 0,
        };
        let farthest = values.iter().enumerate().map(distance).max().unwrap_or(0);
        if width_for(farthest) <= width {
            break;
        }
        width += 1;
    }
    let bytes = 1 << width;
    align(into, bytes);
    put(into, u64_of(values.len()), bytes);
    let start = into.len();
    for (value, (place, _)) in values.iter().zip(&places) {
        match value {
            Value::Null => put(into, 0, bytes),
            Value::Bool(value) => put(into, u64::from(*value), bytes),
            Value::Int(number) => put(into, number.cast_unsigned(), bytes),
            Value::Uint(number) => put(into, *number, bytes),
            Value::Float(number) => match narrow(*number) {
                Some(narrow) if bytes == 4 => put(into, narrow.to_bits().into(), bytes),
                _ => put(into, number.to_bits(), bytes),
            },
            Value::Text(_) => {
                let distance = u64_of(into.len() - place);
                put(into, distance, bytes);
            }
        }
    }
    for (value, (_, of_length)) in values.iter().zip(&places) {
        into.push(match value {
            Value::Null => NULL << 2 | width,
            Value::Bool(_) => BOOL << 2 | width,
            Value::Int(_) => INT << 2 | width,
            Value::Uint(_) => UINT << 2 | width,
            Value::Float(_) => FLOAT << 2 | width,
            Value::Text(_) => STRING << 2 | of_length,
        });
    }
    // The root.
    let mut root = 0;
    while root < 3 && width_for(u64_of(into.len().next_multiple_of(1 << root) - start)) > root {
        root += 1;
    }
    align(into, 1 << root);
    let distance = u64_of(into.len() - start);
    put(into, distance, 1 << root);
    into.push(VECTOR << 2 | width);
    into.push(1 << root);
}

/// The same number in 32 bits, if it is one of them.
fn narrow(number: f64) -> Option<f32> {
    nearest_f32(number).filter(|narrow| f64::from(*narrow).to_bits() == number.to_bits())
}

/// The logarithm of the width in bytes that a number needs.
fn width_for(number: u64) -> u8 {
    match number {
        0..=0xff => 0,
        0x100..=0xffff => 1,
        0x1_0000..=0xffff_ffff => 2,
        _ => 3,
    }
}

fn align(into: &mut Vec<u8>, bytes: usize) {
    into.resize(into.len().next_multiple_of(bytes), 0);
}

fn put(into: &mut Vec<u8>, number: u64, bytes: usize) {
    into.extend_from_slice(&number.to_le_bytes()[..bytes]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_as_they_were_written() {
        let long = "a text of more than 255 bytes ".repeat(20);
        let rows: [&[Value<'_>]; 5] = [
            &[],
            &[Value::Int(-1), Value::Uint(200), Value::Bool(true), Value::Null],
            &[Value::Text(""), Value::Text("a"), Value::Int(i64::MIN), Value::Int(300)],
            &[Value::Text(&long), Value::Float(1.5), Value::Float(0.1), Value::Uint(u64::MAX)],
            &[Value::Int(127), Value::Int(-128), Value::Int(128), Value::Int(-129)],
        ];
        let mut bytes = Vec::new();
        for values in rows {
            write(values, &mut bytes);
            let row = Row::of(&bytes).unwrap();
            let read: Vec<Value<'_>> = (0..row.length).map(|at| row.get(at).unwrap()).collect();
            assert_eq!(read, values);
            // Whatever bytes say, nothing beyond them is read.
            for at in 0..bytes.len() {
                let mut broken = bytes.clone();
                broken[at] ^= 0xff;
                if let Ok(row) = Row::of(&broken) {
                    for at in 0..row.length.min(10) {
                        let _ = row.get(at);
                    }
                }
                let _ = Row::of(&bytes[..at]).map(|row| row.get(0).is_ok());
            }
        }
    }

    #[test]
    fn bytes_are_those_of_the_flexbuffers_library() {
        // What the builder of the library for Python (25.12) makes of vectors of the same values.
        let cases: [(&[Value<'_>], &[u8]); 3] = [
            (
                &[Value::Int(7), Value::Text("ab"), Value::Bool(true)],
                &[2, 97, 98, 0, 3, 7, 5, 1, 4, 20, 104, 6, 40, 1],
            ),
            (
                &[Value::Int(7), Value::Text("ab"), Value::Float(1.5), Value::Null, Value::Int(-300)],
                &[
                    2, 97, 98, 0, 5, 0, 0, 0, 7, 0, 0, 0, 11, 0, 0, 0, 0, 0, 192, 63, 0, 0, 0, 0, 212, 254,
                    255, 255, 6, 20, 14, 2, 6, 25, 42, 1,
                ],
            ),
            (
                &[Value::Int(-1), Value::Uint(200), Value::Bool(true), Value::Null],
                &[4, 255, 200, 1, 0, 4, 8, 104, 0, 8, 40, 1],
            ),
        ];
        let mut bytes = Vec::new();
        for (values, expected) in cases {
            write(values, &mut bytes);
            assert_eq!(bytes, expected, "{values:?}");
        }
        let (long, short) = ("x".repeat(300), "y".repeat(10));
        write(&[Value::Text(&long), Value::Text(&short), Value::Int(70_000)], &mut bytes);
        let end = [0, 0, 3, 0, 0, 0, 62, 1, 0, 0, 20, 0, 0, 0, 112, 17, 1, 0, 21, 20, 6, 15, 42, 1];
        assert_eq!((bytes[..2].to_vec(), &bytes[bytes.len() - end.len()..]), (vec![44, 1], &end[..]));
    }
}
