//! From Parquet's columns back to the bytes of CQL values.

use alloc::format;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::str;

use marquetry_base::cast::{bits_u32, low_u8, low_u32, u64_of};
use marquetry_base::print::DIGITS_BYTES_MAX;
use marquetry_base::twos_complement::shortest;
use marquetry_base::{Error, Result};
use marquetry_kernels::utf8;
use marquetry_parquet::batch::{ColumnBatch, Layout, Value};

use super::shape::{Form, Kind, Shapes};
use crate::sstable::vint;

/// A leaf that is read entry by entry.
#[derive(Debug)]
pub(super) struct LeafReader {
    column: ColumnBatch,
    definition_max: u8,
    entry: usize,
    value: usize,
}

impl LeafReader {
    pub(super) fn new(column: &ColumnBatch, definition_max: u8) -> LeafReader {
        LeafReader { column: column.clone(), definition_max, entry: 0, value: 0 }
    }

    /// The column.
    pub(super) fn column(&self) -> &ColumnBatch {
        &self.column
    }

    /// The number of the next entry.
    pub(super) fn entry(&self) -> usize {
        self.entry
    }

    /// Where the value of the next entry is, or would be.
    pub(super) fn value_at(&self) -> usize {
        if self.is_spaced() { self.entry } else { self.value }
    }

    fn is_spaced(&self) -> bool {
        self.column.levels.is_none() && self.column.layout == Layout::Spaced
    }

    /// Passes over entries, of which so many have a value.
    pub(super) fn skip(&mut self, entries: usize, values: usize) {
        self.entry += entries;
        self.value += values;
    }

    /// The definition level of the next entry.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`](marquetry_base::ErrorKind::Corrupt) if there is none.
    #[inline]
    pub(super) fn definition(&self) -> Result<u8> {
        match &self.column.levels {
            Some(levels) => levels.definition.get(self.entry).copied().ok_or_else(out_of_entries),
            None if self.entry >= self.column.rows => Err(out_of_entries()),
            None if self.column.is_null(self.entry) => Ok(self.definition_max.saturating_sub(1)),
            None => Ok(self.definition_max),
        }
    }

    /// The repetition level of the next entry; 0 beyond the last.
    #[inline]
    pub(super) fn repetition(&self) -> u8 {
        let repetition = self.column.levels.as_ref().and_then(|levels| levels.repetition.as_ref());
        repetition.and_then(|levels| levels.get(self.entry)).copied().unwrap_or(0)
    }

    /// The next entry, which is taken: its value, or `None` if it has none.
    ///
    /// # Errors
    ///
    /// As [`LeafReader::definition`]'s.
    #[inline]
    pub(super) fn take(&mut self) -> Result<Option<Value<'_>>> {
        let is_there = self.definition()? == self.definition_max;
        let at = self.value_at();
        self.entry += 1;
        if !is_there {
            return Ok(None);
        }
        self.value += 1;
        Value::of_values(&self.column.values, at).map(Some).ok_or_else(out_of_entries)
    }
}

fn out_of_entries() -> Error {
    Error::corrupt("a column with fewer entries than others")
}

/// The readers of a column's leaves.
pub(super) fn readers(shapes: &Shapes, columns: &[ColumnBatch]) -> Vec<LeafReader> {
    columns
        .iter()
        .zip(&shapes.leaves)
        .map(|(column, leaf)| LeafReader::new(column, leaf.definition))
        .collect()
}

/// What a natural value lacks, so that only bytes that are listed beside it can say what it is.
pub(super) type Lack = Option<&'static str>;

/// Appends the bytes of the next value of a node. False for a null. It recurses as deep as types do.
///
/// `lack` becomes what the value lacks, if it does.
///
/// # Errors
///
/// [`ErrorKind::Conversion`](marquetry_base::ErrorKind::Conversion) for a value that is none of the type;
/// [`ErrorKind::Corrupt`](marquetry_base::ErrorKind::Corrupt) for columns that contradict each other.
pub(super) fn encode(
    shapes: &Shapes,
    node: usize,
    readers: &mut [LeafReader],
    out: &mut Vec<u8>,
    lack: &mut Lack,
) -> Result<bool> {
    let shape = &shapes.nodes[node];
    let first = shape.leaves.start;
    let definition = match readers.get(first) {
        Some(reader) => reader.definition()?,
        None => return Err(Error::internal("a type without leaves")),
    };
    if definition < shape.definition {
        for reader in &mut readers[shape.leaves.clone()] {
            reader.take()?;
        }
        return Ok(false);
    }
    match &shape.form {
        Form::Leaf(kind) => {
            let value = readers[first].take()?.ok_or_else(out_of_entries)?;
            match kind {
                Kind::Counter => *lack = Some("the shards of a counter"),
                kind => scalar(*kind, value, out)?,
            }
        }
        Form::Duration => {
            for reader in &mut readers[shape.leaves.clone()] {
                match reader.take()? {
                    Some(Value::Int32(part)) => vint::push_signed(out, part.into()),
                    Some(Value::Int64(part)) => vint::push_signed(out, part),
                    _ => return Err(Error::corrupt("a duration without all its parts")),
                }
            }
        }
        Form::Fields(fields) => {
            for field in fields {
                item(shapes, *field, readers, out, lack)?;
            }
        }
        Form::List(_) | Form::Map(..) => {
            let start = out.len();
            out.extend_from_slice(&[0; 4]);
            let mut count = 0_u64;
            elements(shapes, node, readers, |readers| {
                count += 1;
                match shape.form {
                    Form::Map(key, value) => {
                        if !item(shapes, key, readers, out, lack)? {
                            return Err(Error::corrupt("a map with a null for a key"));
                        }
                        item(shapes, value, readers, out, lack).map(drop)
                    }
                    Form::List(element) => item(shapes, element, readers, out, lack).map(drop),
                    _ => Ok(()),
                }
            })?;
            let count = i32::try_from(count).map_err(|_| too_long())?;
            out[start..start + 4].copy_from_slice(&count.to_be_bytes());
        }
        Form::Vector { element, count, element_bytes } => {
            let mut found = 0_u32;
            elements(shapes, node, readers, |readers| {
                found = found.saturating_add(1);
                let start = out.len();
                if !encode(shapes, *element, readers, out, lack)? {
                    *lack = Some("an element of a vector");
                }
                let length = u64_of(out.len() - start);
                match element_bytes {
                    Some(bytes) if u64::from(*bytes) != length => {
                        *lack = Some("an element of a vector, of its length");
                    }
                    Some(_) => {}
                    None => {
                        let mut before = Vec::new();
                        vint::push_unsigned(&mut before, length);
                        out.splice(start..start, before);
                    }
                }
                Ok(())
            })?;
            if found != *count {
                *lack = Some("elements of a vector");
            }
        }
    }
    Ok(true)
}

/// Checks that a value lacks nothing.
///
/// # Errors
///
/// [`ErrorKind::Conversion`](marquetry_base::ErrorKind::Conversion) if it does.
pub(super) fn complete(lack: Lack) -> Result<()> {
    match lack {
        None => Ok(()),
        Some(what) => Err(Error::conversion(format!("{what} is missing, and is not in the list of cells"))),
    }
}

/// Calls `each` for each element of the list, map or vector that is next.
///
/// # Errors
///
/// Those of `each`.
pub(super) fn elements(
    shapes: &Shapes,
    node: usize,
    readers: &mut [LeafReader],
    mut each: impl FnMut(&mut [LeafReader]) -> Result<()>,
) -> Result<()> {
    let shape = &shapes.nodes[node];
    let first = shape.leaves.start;
    let repetition = match &shape.form {
        Form::List(element) | Form::Vector { element, .. } | Form::Map(element, _) => {
            shapes.nodes[*element].repetition
        }
        _ => return Err(Error::internal("elements of what has none")),
    };
    if readers[first].definition()? == shape.definition {
        for reader in &mut readers[shape.leaves.clone()] {
            reader.take()?;
        }
        return Ok(());
    }
    loop {
        each(readers)?;
        if readers[first].repetition() != repetition {
            return Ok(());
        }
    }
}

/// An element or a field: its length, and its bytes; -1 for a null. False for one.
fn item(
    shapes: &Shapes,
    node: usize,
    readers: &mut [LeafReader],
    out: &mut Vec<u8>,
    lack: &mut Lack,
) -> Result<bool> {
    let start = out.len();
    out.extend_from_slice(&(-1_i32).to_be_bytes());
    let is_there = encode(shapes, node, readers, out, lack)?;
    if is_there {
        let length = i32::try_from(out.len() - start - 4).map_err(|_| too_long())?;
        out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    }
    Ok(is_there)
}

fn too_long() -> Error {
    Error::conversion("a value of 2 GiB or more")
}

fn scalar(kind: Kind, value: Value<'_>, out: &mut Vec<u8>) -> Result<()> {
    match (kind, value) {
        (Kind::Boolean, Value::Boolean(value)) => out.push(value.into()),
        (Kind::Int, Value::Int32(value)) => out.extend(value.to_be_bytes()),
        (Kind::Tinyint, Value::Int32(value)) => {
            out.extend(i8::try_from(value).map_err(|_| beyond("tinyint"))?.to_be_bytes());
        }
        (Kind::Smallint, Value::Int32(value)) => {
            out.extend(i16::try_from(value).map_err(|_| beyond("smallint"))?.to_be_bytes());
        }
        (Kind::Date, Value::Int32(days)) => out.extend((bits_u32(days) ^ 1 << 31).to_be_bytes()),
        (Kind::Bigint | Kind::Timestamp | Kind::Time, Value::Int64(value)) => out.extend(value.to_be_bytes()),
        (Kind::Float, Value::Float(value)) => out.extend(value.to_bits().to_be_bytes()),
        (Kind::Double, Value::Double(value)) => out.extend(value.to_bits().to_be_bytes()),
        (Kind::Bytes, Value::Bytes(bytes)) => out.extend_from_slice(bytes),
        (Kind::Uuid, Value::Bytes(bytes)) if bytes.len() == 16 => out.extend_from_slice(bytes),
        (Kind::Text, Value::Bytes(bytes)) => {
            if !utf8::valid(bytes) {
                return Err(Error::conversion("text that is not UTF-8"));
            }
            out.extend_from_slice(bytes);
        }
        (Kind::Inet, Value::Bytes(bytes)) => {
            let address = str::from_utf8(bytes).ok().and_then(|text| text.parse().ok());
            match address {
                Some(IpAddr::V4(address)) => out.extend(address.octets()),
                Some(IpAddr::V6(address)) => out.extend(address.octets()),
                None => return Err(Error::conversion("text that is no address of the Internet")),
            }
        }
        (Kind::Varint, Value::Bytes(text)) => integer(text, &[], out).ok_or_else(|| not_a("varint"))?,
        (Kind::Decimal, Value::Bytes(text)) => decimal(text, out).ok_or_else(|| not_a("decimal"))?,
        _ => return Err(Error::misuse("a column of another type")),
    }
    Ok(())
}

fn beyond(kind: &str) -> Error {
    Error::conversion(format!("a number beyond {kind}"))
}

fn not_a(kind: &str) -> Error {
    Error::conversion(format!("text that is no {kind}, or a very long one"))
}

/// The most digits that are read: somewhat more than are written.
const DIGITS_MAX: usize = DIGITS_BYTES_MAX * 5 / 2;

/// Scale and unscaled value of a decimal: `-12.50`, `7E-40`.
fn decimal(text: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (number, exponent) = match text.iter().position(|byte| matches!(byte, b'E' | b'e')) {
        Some(at) => {
            let exponent = text.get(at + 1..)?;
            let exponent = exponent.strip_prefix(b"+").unwrap_or(exponent);
            (&text[..at], str::from_utf8(exponent).ok()?.parse::<i64>().ok()?)
        }
        None => (text, 0),
    };
    let (before, after) = match number.iter().position(|byte| *byte == b'.') {
        Some(at) => (&number[..at], &number[at + 1..]),
        None => (number, &[][..]),
    };
    let scale = i64::try_from(after.len()).ok()?.checked_sub(exponent)?;
    out.extend(i32::try_from(scale).ok()?.to_be_bytes());
    integer(before, after, out)
}

/// The fewest bytes, in two's complement, of an integer whose digits may be in two parts.
fn integer(digits: &[u8], more: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let (is_negative, digits) = match digits.split_first() {
        Some((b'-', digits)) => (true, digits),
        _ => (false, digits),
    };
    let count = digits.len() + more.len();
    if count == 0 || count > DIGITS_MAX || !digits.iter().chain(more).all(u8::is_ascii_digit) {
        return None;
    }
    if count <= 38 {
        let fold = |number: i128, digit: &u8| number * 10 + i128::from(digit - b'0');
        let number = digits.iter().chain(more).fold(0, fold);
        let number = if is_negative { -number } else { number };
        out.extend_from_slice(shortest(&number.to_be_bytes()));
        return Some(());
    }
    // Limbs of 32 bits, the least significant first, times 10 for each digit.
    let mut limbs: Vec<u32> = Vec::new();
    for digit in digits.iter().chain(more) {
        let mut carry = u64::from(digit - b'0');
        for limb in &mut limbs {
            let product = u64::from(*limb) * 10 + carry;
            (*limb, carry) = (low_u32(product), product >> 32);
        }
        if carry > 0 {
            limbs.push(low_u32(carry));
        }
    }
    let mut bytes = alloc::vec![0];
    bytes.extend(limbs.iter().rev().flat_map(|limb| limb.to_be_bytes()));
    if is_negative {
        let mut carry = 1_u16;
        for byte in bytes.iter_mut().rev() {
            let sum = u16::from(!*byte) + carry;
            (*byte, carry) = (low_u8(sum.into()), sum >> 8);
        }
    }
    out.extend_from_slice(shortest(&bytes));
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bridge::mutations::decode::{Effort, Found, scalar as decode};
    use crate::bridge::mutations::leaf::{LeafBuilder, Source};
    use marquetry_parquet::schema::PhysicalType;

    /// What the text of a number is, and its bytes again.
    fn again(kind: Kind, bytes: &[u8]) -> (Found, Vec<u8>) {
        let mut leaf = LeafBuilder::new(PhysicalType::ByteArray, 0, false);
        let source = Source { bytes, buffer: 0 };
        let found = decode(kind, source, 0..bytes.len(), &mut leaf.values, &mut Effort::new(1000));
        let mut out = Vec::new();
        if found != Found::Nothing {
            leaf.close(0);
            let values = leaf.values.take();
            scalar(kind, Value::of_values(&values, 0).unwrap(), &mut out).unwrap();
        }
        (found, out)
    }

    #[test]
    fn numbers_of_any_length_are_the_same_bytes_again() {
        let mut seed = 7_u64;
        for length in (1..40).chain([100, 400, DIGITS_BYTES_MAX]) {
            for sign in [0, 0x7f, 0x80, 0xff] {
                let mut bytes = alloc::vec![sign];
                bytes.extend((1..length).map(|_| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    low_u8(seed >> 56)
                }));
                let canonical = shortest(&bytes).to_vec();
                let (found, text) = again(Kind::Varint, &bytes);
                assert_eq!(found == Found::Exact, canonical == bytes);
                assert_eq!(text, canonical);
                for scale in [0, 1, 5, 40, 41, 1000, -1, -7, i32::MAX, i32::MIN] {
                    let mut decimal = scale.to_be_bytes().to_vec();
                    decimal.extend(&canonical);
                    assert_eq!(again(Kind::Decimal, &decimal), (Found::Exact, decimal.clone()), "{scale}");
                }
            }
        }
        assert_eq!(again(Kind::Varint, &[]).0, Found::Nothing);
        assert_eq!(again(Kind::Varint, &[1; DIGITS_BYTES_MAX + 1]).0, Found::Nothing);
        assert_eq!(again(Kind::Decimal, &[0, 0, 0, 0]).0, Found::Nothing);
    }

    #[test]
    fn addresses_are_the_same_bytes_again() {
        for text in ["1.2.3.4", "::1", "::ffff:1.2.3.4", "2001:db8::7", "::"] {
            let bytes = match text.parse().unwrap() {
                IpAddr::V4(address) => address.octets().to_vec(),
                IpAddr::V6(address) => address.octets().to_vec(),
            };
            assert_eq!(again(Kind::Inet, &bytes), (Found::Exact, bytes.clone()), "{text}");
        }
        assert_eq!(again(Kind::Inet, &[1, 2, 3]).0, Found::Nothing);
    }

    #[test]
    fn text_that_is_no_number_is_refused() {
        for text in ["", "-", "1x", "1.2", "+1", " 1"] {
            assert!(scalar(Kind::Varint, Value::Bytes(text.as_bytes()), &mut Vec::new()).is_err(), "{text}");
        }
        for text in ["", ".", "1E", "1E99999999999", "1.2.3", "E5"] {
            assert!(scalar(Kind::Decimal, Value::Bytes(text.as_bytes()), &mut Vec::new()).is_err(), "{text}");
        }
    }
}
