//! Keys: the values that rows are sorted by, as bytes that compare as the rows do.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::{bits_u32, bits_u64, low_u32, u64_of, usize_of_u32};
use marquetry_base::twos_complement::shortest;
use marquetry_base::{Error, Result};

use crate::batch::{ColumnBatch, Layout, Values};
use crate::format::{ColumnOrder, SortingColumn};
use crate::prune::Order;
use crate::scalar::{float_of_half, int96_parts};
use crate::schema::{PhysicalType, Schema};

/// Maximum bytes of a row's key, because a comparison is never interrupted. Cassandra's keys have the same limit.
pub const KEY_BYTES_MAX: usize = 65_535;

/// Maximum columns of a key, because a row's key is created in one go.
pub const KEY_COLUMNS_MAX: usize = 1024;

/// The columns that rows are sorted by, most significant first.
///
/// Values have the order that the format defines for their type ([`Order`]). Where it leaves the order open, −0 equals
/// 0, NaN is greater than all numbers, and INT96 is ordered as timestamps. Nulls are first or last as requested, in
/// either direction.
#[derive(Debug, Clone)]
pub struct Keys {
    columns: Vec<KeyColumn>,
}

#[derive(Debug, Clone)]
struct KeyColumn {
    leaf: usize,
    path: String,
    order: Order,
    is_optional: bool,
    descending: bool,
    nulls_first: bool,
}

/// The byte before a value, or in place of a null. These bytes are in the order of the rows.
const NULL_FIRST: u8 = 0;
const VALUE: u8 = 1;
const NULL_LAST: u8 = 2;

impl Keys {
    /// Keys for rows of `schema`, sorted by these leaves.
    ///
    /// # Errors
    ///
    /// `Misuse` for a leaf that does not exist or is named twice, and for an empty list; `Unsupported` for a nested
    /// leaf, or one whose type has no order; `LimitExceeded` for more than [`KEY_COLUMNS_MAX`] columns.
    pub fn new(schema: &Schema, columns: &[SortingColumn]) -> Result<Keys> {
        if columns.is_empty() {
            return Err(Error::misuse("rows sorted by no column"));
        }
        if columns.len() > KEY_COLUMNS_MAX {
            let why = format!("rows sorted by {} columns, of {KEY_COLUMNS_MAX} at most", columns.len());
            return Err(Error::too_large(why));
        }
        let mut keys = Keys { columns: Vec::with_capacity(columns.len()) };
        for column in columns {
            let number = usize_of_u32(column.column);
            let leaf = schema.leaves().get(number).ok_or_else(|| {
                Error::misuse(format!("sorted by leaf {number} of {}", schema.leaves().len()))
            })?;
            let at_column = |error: Error| error.at(|place| place.column = Some(schema.leaf_path(number)));
            if leaf.repetition_max > 0 || leaf.definition_max > 1 {
                return Err(at_column(Error::unsupported("sorting by a column that is nested")));
            }
            if keys.columns.iter().any(|known| known.leaf == number) {
                return Err(at_column(Error::misuse("rows sorted by the same column twice")));
            }
            let logical_type = schema.node_of(leaf).logical_type.as_ref();
            let column_order = match leaf.physical_type {
                PhysicalType::Int96 => ColumnOrder::Int96Timestamp,
                _ => ColumnOrder::TypeDefined,
            };
            let order = Order::of(leaf.physical_type, logical_type, column_order).ok_or_else(|| {
                at_column(Error::unsupported("sorting by a column whose type has no order"))
            })?;
            keys.columns.push(KeyColumn {
                leaf: number,
                path: schema.leaf_path(number),
                order,
                is_optional: leaf.definition_max > 0,
                descending: column.descending,
                nulls_first: column.nulls_first,
            });
        }
        Ok(keys)
    }

    /// Columns.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// The leaves that they are.
    pub(super) fn leaves(&self) -> impl Iterator<Item = usize> {
        self.columns.iter().map(|key| key.leaf)
    }

    /// False: rows are sorted by a column at least.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// The keys of rows that are not longer than 16 bytes, as numbers of which the first bytes are the most significant, and zeros follow the
    /// last one: where all columns are numbers, this is faster than [`append`](Keys::append). `None` for others.
    ///
    /// # Errors
    ///
    /// `Misuse`, as [`append`](Keys::append).
    pub(super) fn prefixes(&self, columns: &[ColumnBatch], rows: Range<usize>) -> Result<Option<Vec<u128>>> {
        let width = |key: &KeyColumn| Some(usize::from(key.is_optional) + key.number_bytes()?);
        let bytes = self.columns.iter().try_fold(0, |bytes, key| Some(bytes + width(key)?));
        if bytes.is_none_or(|bytes| bytes > size_of::<u128>()) {
            return Ok(None);
        }
        if let [key] = &*self.columns {
            return key.prefixes(columns, rows).map(Some);
        }
        // With the first bit that is free of each.
        let mut all: Vec<(u128, u32)> = alloc::vec![(0, u128::BITS); rows.len()];
        let push = |(key, free): &mut (u128, u32), number: u64, bits: u32| {
            *free -= bits;
            *key |= u128::from(number) << *free;
        };
        for key in &self.columns {
            let column = key.column_of(columns, rows.end)?;
            let mut number_at = |at: usize, row: usize, number: u64, bits: u32| {
                let Some(to) = all.get_mut(at) else { return };
                if key.is_optional {
                    if column.is_null(row) {
                        push(to, (if key.nulls_first { NULL_FIRST } else { NULL_LAST }).into(), 8);
                        return;
                    }
                    push(to, VALUE.into(), 8);
                }
                push(
                    to,
                    if key.descending { !number & (u64::MAX >> (u64::BITS - bits)) } else { number },
                    bits,
                );
            };
            macro_rules! numbers {
                ($values:expr, $of:expr) => {{
                    let values = $values.get(rows.clone()).ok_or_else(|| key.misfit())?;
                    for (at, value) in values.iter().enumerate() {
                        let bytes = $of(*value);
                        let bits = 8 * u32::try_from(bytes.len()).unwrap_or(8);
                        let mut whole = [0; 8];
                        whole[8 - bytes.len()..].copy_from_slice(&bytes);
                        number_at(at, rows.start + at, u64::from_be_bytes(whole), bits);
                    }
                }};
            }
            match (&column.values, key.order) {
                (Values::Int32(values), Order::Signed32) => numbers!(values, signed32),
                (Values::Int32(values), Order::Unsigned32) => {
                    numbers!(values, |value| bits_u32(value).to_be_bytes());
                }
                (Values::Int64(values), Order::Signed64) => numbers!(values, signed64),
                (Values::Int64(values), Order::Unsigned64) => {
                    numbers!(values, |value| bits_u64(value).to_be_bytes());
                }
                (Values::Float(values), Order::Float) => numbers!(values, float),
                (Values::Double(values), Order::Double) => numbers!(values, double),
                _ => return Err(key.misfit()),
            }
        }
        Ok(Some(all.into_iter().map(|(key, _)| key).collect()))
    }

    /// Appends the key of a row of a batch that has all leaves of the schema, in order. Rows are ordered as their keys
    /// are, bytewise. No key is a prefix of another.
    ///
    /// # Errors
    ///
    /// `LimitExceeded` for a key of more than [`KEY_BYTES_MAX`] bytes. `Misuse` for a batch of another schema, and
    /// for key columns with nulls that are not [`Layout::Spaced`].
    pub fn append(&self, columns: &[ColumnBatch], row: usize, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        for key in &self.columns {
            let column = key.column_of(columns, row + 1)?;
            if key.is_optional {
                if column.is_null(row) {
                    out.push(if key.nulls_first { NULL_FIRST } else { NULL_LAST });
                    continue;
                }
                out.push(VALUE);
            }
            let value_start = out.len();
            key.append_value(&column.values, row, out)?;
            if key.descending {
                out[value_start..].iter_mut().for_each(|byte| *byte = !*byte);
            }
            if out.len() - start > KEY_BYTES_MAX {
                return Err(key.too_long(out.len() - start));
            }
        }
        Ok(())
    }
}

impl KeyColumn {
    /// Its column of a batch, which has at least `rows` rows, with a value for each.
    fn column_of<'a>(&self, columns: &'a [ColumnBatch], rows: usize) -> Result<&'a ColumnBatch> {
        let has_rows = |column: &&ColumnBatch| {
            rows <= column.rows && (column.validity.is_none() || column.layout == Layout::Spaced)
        };
        columns.get(self.leaf).filter(has_rows).ok_or_else(|| self.misfit())
    }

    /// The same as [`Keys::prefixes`] for one column, which has numbers.
    fn prefixes(&self, columns: &[ColumnBatch], rows: Range<usize>) -> Result<Vec<u128>> {
        let column = self.column_of(columns, rows.end)?;
        let first = u128::BITS - 8;
        let (value, null) = match self.is_optional {
            true => (VALUE, if self.nulls_first { NULL_FIRST } else { NULL_LAST }),
            false => (0, 0),
        };
        let (value, null) = (u128::from(value) << first, u128::from(null) << first);
        let beside = if self.is_optional { 8 } else { 0 };
        macro_rules! numbers {
            ($values:expr, $of:expr, $number:ident) => {{
                let values = $values.get(rows.clone()).ok_or_else(|| self.misfit())?;
                let flip = if self.descending { $number::MAX } else { 0 };
                let shift = u128::BITS - $number::BITS - beside;
                let key = |number| value | u128::from($number::from_be_bytes($of(number)) ^ flip) << shift;
                match &column.validity {
                    None => values.iter().map(|number| key(*number)).collect(),
                    Some(validity) => {
                        let rows = values.iter().zip(rows);
                        rows.map(|(number, row)| if validity.get(row) { key(*number) } else { null })
                            .collect()
                    }
                }
            }};
        }
        Ok(match (&column.values, self.order) {
            (Values::Int32(values), Order::Signed32) => numbers!(values, signed32, u32),
            (Values::Int32(values), Order::Unsigned32) => {
                numbers!(values, |value| bits_u32(value).to_be_bytes(), u32)
            }
            (Values::Int64(values), Order::Signed64) => numbers!(values, signed64, u64),
            (Values::Int64(values), Order::Unsigned64) => {
                numbers!(values, |value| bits_u64(value).to_be_bytes(), u64)
            }
            (Values::Float(values), Order::Float) => numbers!(values, float, u32),
            (Values::Double(values), Order::Double) => numbers!(values, double, u64),
            _ => return Err(self.misfit()),
        })
    }

    /// Bytes of its values, if they are numbers.
    fn number_bytes(&self) -> Option<usize> {
        match self.order {
            Order::Signed32 | Order::Unsigned32 | Order::Float => Some(4),
            Order::Signed64 | Order::Unsigned64 | Order::Double => Some(8),
            _ => None,
        }
    }

    fn append_value(&self, values: &Values, index: usize, out: &mut Vec<u8>) -> Result<()> {
        match (values, self.order) {
            (Values::Dictionary(indices, values), _) if !matches!(**values, Values::Dictionary(..)) => {
                let index = indices.get(index).copied().ok_or_else(|| self.misfit())?;
                self.append_value(values, usize_of_u32(index), out)?;
            }
            (Values::Boolean(bits), Order::Boolean) => out.push(u8::from(bits.get(index))),
            (Values::Int32(values), Order::Signed32) => {
                out.extend_from_slice(&signed32(*self.of(values, index)?));
            }
            (Values::Int32(values), Order::Unsigned32) => {
                out.extend_from_slice(&bits_u32(*self.of(values, index)?).to_be_bytes());
            }
            (Values::Int64(values), Order::Signed64) => {
                out.extend_from_slice(&signed64(*self.of(values, index)?));
            }
            (Values::Int64(values), Order::Unsigned64) => {
                out.extend_from_slice(&bits_u64(*self.of(values, index)?).to_be_bytes());
            }
            (Values::Float(values), Order::Float) => {
                out.extend_from_slice(&float(*self.of(values, index)?));
            }
            (Values::Double(values), Order::Double) => {
                out.extend_from_slice(&double(*self.of(values, index)?));
            }
            (Values::Int96(values) | Values::FixedLenByteArray(values), _) => {
                if index >= values.len() {
                    return Err(self.misfit());
                }
                self.append_bytes(values.get(index), false, out)?;
            }
            (Values::ByteArray(values), _) => {
                if index >= values.len() {
                    return Err(self.misfit());
                }
                self.append_bytes(values.get(index), true, out)?;
            }
            _ => return Err(self.misfit()),
        }
        Ok(())
    }

    /// Bytes: of any length, or all of the same.
    fn append_bytes(&self, value: &[u8], of_any_length: bool, out: &mut Vec<u8>) -> Result<()> {
        if value.len() > KEY_BYTES_MAX {
            return Err(self.too_long(value.len()));
        }
        match self.order {
            Order::Bytes if of_any_length => escaped(value, out),
            Order::Bytes => out.extend_from_slice(value),
            Order::Decimal => decimal(value, out),
            Order::Float16 => {
                let half = value.try_into().map_err(|_| self.misfit())?;
                out.extend_from_slice(&float(float_of_half(u16::from_le_bytes(half))));
            }
            Order::Int96 => {
                let (nanos, day) = int96_parts(value.try_into().map_err(|_| self.misfit())?);
                out.extend_from_slice(&signed32(day));
                out.extend_from_slice(&signed64(nanos));
            }
            _ => return Err(self.misfit()),
        }
        Ok(())
    }

    fn of<'a, T>(&self, values: &'a [T], index: usize) -> Result<&'a T> {
        values.get(index).ok_or_else(|| self.misfit())
    }

    fn misfit(&self) -> Error {
        self.at(Error::misuse("a batch whose rows have no such key"))
    }

    fn too_long(&self, bytes: usize) -> Error {
        self.at(Error::too_large(format!("a sort key of {bytes} bytes; one has {KEY_BYTES_MAX} at most")))
    }

    fn at(&self, error: Error) -> Error {
        error.at(|place| place.column = Some(self.path.clone()))
    }
}

fn signed32(value: i32) -> [u8; 4] {
    (bits_u32(value) ^ 1 << 31).to_be_bytes()
}

fn signed64(value: i64) -> [u8; 8] {
    (bits_u64(value) ^ 1 << 63).to_be_bytes()
}

/// Numbers by value: both zeros are equal, and all NaNs are equal and greater than infinity.
fn float(value: f32) -> [u8; 4] {
    let bits = if value.is_nan() { f32::NAN.to_bits() } else { (value + 0.0).to_bits() };
    (if bits >> 31 == 1 { !bits } else { bits | 1 << 31 }).to_be_bytes()
}

fn double(value: f64) -> [u8; 8] {
    let bits = if value.is_nan() { f64::NAN.to_bits() } else { (value + 0.0).to_bits() };
    (if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }).to_be_bytes()
}

/// The bytes, and an end that is less than any byte that could follow: a zero byte is followed by another byte, which
/// the end lacks.
fn escaped(value: &[u8], out: &mut Vec<u8>) {
    const PART_BYTES: usize = 16;
    let mut end = out.len();
    out.resize(end + 2 * value.len() + 2, 0);
    for part in value.chunks(PART_BYTES) {
        if !part.contains(&0) {
            out[end..][..part.len()].copy_from_slice(part);
            end += part.len();
            continue;
        }
        // What follows a byte that is not zero is overwritten.
        let room = &mut out[end..][..2 * part.len()];
        let mut length = 0;
        for byte in part {
            (room[length], room[length + 1]) = (*byte, 0xff);
            length += 1 + usize::from(*byte == 0);
        }
        end += length;
    }
    out[end..end + 2].fill(0);
    out.truncate(end + 2);
}

/// A big-endian number in two's complement: its sign, its length without redundant bytes, and these bytes.
fn decimal(value: &[u8], out: &mut Vec<u8>) {
    let is_negative = value.first().is_some_and(|byte| *byte >= 0x80);
    // No bytes are 0, too.
    let digits = if value.is_empty() { &[0] } else { shortest(value) };
    // No key is longer than fits.
    let length = low_u32(u64_of(digits.len()));
    out.push(u8::from(!is_negative));
    out.extend_from_slice(&(if is_negative { !length } else { length }).to_be_bytes());
    out.extend_from_slice(digits);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{ByteArrays, FixedBytes};
    use crate::prune::Order;
    use alloc::vec;
    use core::cmp::Ordering;
    use marquetry_base::ErrorKind;

    fn column(order: Order) -> KeyColumn {
        KeyColumn {
            leaf: 0,
            path: "a".into(),
            order,
            is_optional: false,
            descending: false,
            nulls_first: false,
        }
    }

    fn key(order: Order, values: &Values, index: usize) -> Vec<u8> {
        let mut out = Vec::new();
        column(order).append_value(values, index, &mut out).unwrap();
        out
    }

    /// Keys compare as the values do in the order of their statistics.
    fn agrees(order: Order, values: &Values, plain: &[Vec<u8>]) {
        for (a, in_a) in plain.iter().enumerate() {
            for (b, in_b) in plain.iter().enumerate() {
                let expected = order.compare(in_a, in_b).unwrap();
                assert_eq!(
                    key(order, values, a).cmp(&key(order, values, b)),
                    expected,
                    "{order:?}: {in_a:?}, {in_b:?}"
                );
            }
        }
    }

    #[test]
    fn zero_bytes_are_escaped_wherever_they_stand() {
        let mut values: Vec<Vec<u8>> = [0, 1, 15, 16, 17, 40].map(|length| vec![0; length]).to_vec();
        for zero in 0..40 {
            let mut value = vec![0xff; 40];
            value[zero] = 0;
            values.push(value.clone());
            value[39 - zero] = 0;
            values.push(value);
        }
        for value in &values {
            let mut expected = vec![7];
            for byte in value {
                expected.push(*byte);
                expected.extend((*byte == 0).then_some(0xff));
            }
            expected.extend([0, 0]);
            let mut out = vec![7];
            escaped(value, &mut out);
            assert_eq!(out, expected, "{value:?}");
        }
    }

    #[test]
    fn numbers() {
        let ints = [0, 1, -1, i32::MAX, i32::MIN, 77];
        let plain = |bytes: &dyn Fn(i32) -> Vec<u8>| ints.iter().map(|&n| bytes(n)).collect::<Vec<_>>();
        let values = Values::Int32(ints.to_vec().into());
        agrees(Order::Signed32, &values, &plain(&|n| n.to_le_bytes().to_vec()));
        agrees(Order::Unsigned32, &values, &plain(&|n| n.to_le_bytes().to_vec()));
        let wide = Values::Int64(ints.map(|n| i64::from(n) << 20).to_vec().into());
        agrees(Order::Signed64, &wide, &plain(&|n| (i64::from(n) << 20).to_le_bytes().to_vec()));
        agrees(Order::Unsigned64, &wide, &plain(&|n| (i64::from(n) << 20).to_le_bytes().to_vec()));
        let floats = [0.0, -0.0, 1.5, -1.5, f32::INFINITY, f32::NEG_INFINITY, f32::MIN_POSITIVE, -1e-40];
        let plain = floats.map(|n| n.to_le_bytes().to_vec());
        agrees(Order::Float, &Values::Float(floats.to_vec().into()), &plain);
        let plain = floats.map(|n| f64::from(n).to_le_bytes().to_vec());
        agrees(Order::Double, &Values::Double(floats.map(f64::from).to_vec().into()), &plain);
        let bits = Values::Boolean([false, true].into_iter().collect());
        agrees(Order::Boolean, &bits, &[vec![0], vec![1]]);
    }

    #[test]
    fn nan_is_more_than_all() {
        let values = Values::Double(vec![f64::INFINITY, f64::NAN, -f64::NAN].into());
        assert!(key(Order::Double, &values, 0) < key(Order::Double, &values, 1));
        assert_eq!(key(Order::Double, &values, 1), key(Order::Double, &values, 2));
        let halves: Vec<u8> =
            [0x7c00_u16, 0x7e00, 0xfe00, 0x8000, 0].iter().flat_map(|n| n.to_le_bytes()).collect();
        let halves = Values::FixedLenByteArray(FixedBytes::new(2, 5, halves.into()));
        assert!(key(Order::Float16, &halves, 0) < key(Order::Float16, &halves, 1));
        assert_eq!(key(Order::Float16, &halves, 1), key(Order::Float16, &halves, 2));
        assert_eq!(key(Order::Float16, &halves, 3), key(Order::Float16, &halves, 4));
    }

    fn byte_arrays(all: &[Vec<u8>]) -> Values {
        Values::ByteArray(ByteArrays::from_lengths(all.concat().into(), all.iter().map(Vec::len)).unwrap())
    }

    #[test]
    fn strings_and_decimals() {
        let all: Vec<Vec<u8>> =
            [&b""[..], b"\0", b"\0\0", b"\0\xff", b"a", b"a\0", b"a\0b", b"ab", b"\xff", b"\xff\xff", b"b"]
                .iter()
                .map(|it| it.to_vec())
                .collect();
        agrees(Order::Bytes, &byte_arrays(&all), &all);
        let all: Vec<Vec<u8>> = [
            &[0][..],
            &[0, 0],
            &[0xff],
            &[0xff, 0xff, 0xff],
            &[0, 0x80],
            &[0x7f],
            &[1, 0],
            &[0x80],
            &[0xff, 0x7f],
            &[0x80, 0, 0],
            &[0, 0, 7],
            &[7],
        ]
        .iter()
        .map(|it| it.to_vec())
        .collect();
        agrees(Order::Decimal, &byte_arrays(&all), &all);
        let fixed: Vec<Vec<u8>> =
            [[0, 0], [0xff, 0xff], [0x7f, 1], [0x80, 1], [0, 9]].iter().map(|it| it.to_vec()).collect();
        let values = Values::FixedLenByteArray(FixedBytes::new(2, 5, fixed.concat().into()));
        agrees(Order::Decimal, &values, &fixed);
        agrees(Order::Bytes, &values, &fixed);
    }

    #[test]
    fn int96_by_day() {
        let all: Vec<Vec<u8>> = [(0_i64, -1_i32), (5, 0), (-5, 0), (1 << 40, 7), (0, 8)]
            .iter()
            .map(|(nanos, day)| [&nanos.to_le_bytes()[..], &day.to_le_bytes()].concat())
            .collect();
        agrees(Order::Int96, &Values::Int96(FixedBytes::new(12, 5, all.concat().into())), &all);
    }

    fn batch(values: Values, nulls: &[usize]) -> ColumnBatch {
        let rows = values.len();
        ColumnBatch {
            leaf: 0,
            rows,
            nulls: nulls.len(),
            validity: Some((0..rows).map(|row| !nulls.contains(&row)).collect()),
            values,
            layout: Layout::Spaced,
            levels: None,
            provisional: false,
        }
    }

    #[test]
    fn nulls_and_directions() {
        let columns = [batch(Values::Int32(vec![1, 0, 2].into()), &[1])];
        let order = |descending, nulls_first| {
            let column = KeyColumn { is_optional: true, descending, nulls_first, ..column(Order::Signed32) };
            let keys = Keys { columns: vec![column] };
            let mut rows: Vec<usize> = vec![0, 1, 2];
            rows.sort_by_key(|&row| {
                let mut out = Vec::new();
                keys.append(&columns, row, &mut out).unwrap();
                out
            });
            rows
        };
        assert_eq!(order(false, false), [0, 2, 1]);
        assert_eq!(order(false, true), [1, 0, 2]);
        assert_eq!(order(true, false), [2, 0, 1]);
        assert_eq!(order(true, true), [1, 2, 0]);
    }

    #[test]
    fn descending_strings_end_as_well() {
        let all = [b"a".to_vec(), b"ab".to_vec(), b"a\0".to_vec(), b"b".to_vec()];
        let columns = [ColumnBatch { validity: None, nulls: 0, ..batch(byte_arrays(&all), &[]) }];
        let keys = Keys { columns: vec![KeyColumn { descending: true, ..column(Order::Bytes) }] };
        let key = |row| {
            let mut out = Vec::new();
            keys.append(&columns, row, &mut out).unwrap();
            out
        };
        for a in 0..all.len() {
            for b in 0..all.len() {
                assert_eq!(key(a).cmp(&key(b)), all[b].cmp(&all[a]));
            }
        }
        assert_eq!(key(0).cmp(&key(0)), Ordering::Equal);
    }

    #[test]
    fn keys_have_a_bound() {
        let long = [vec![b'x'; KEY_BYTES_MAX + 1]];
        let columns = [ColumnBatch { validity: None, nulls: 0, ..batch(byte_arrays(&long), &[]) }];
        let keys = Keys { columns: vec![column(Order::Bytes)] };
        let error = keys.append(&columns, 0, &mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::LimitExceeded);
        assert_eq!(error.to_string(), "a sort key of 65536 bytes; one has 65535 at most (column a)");
    }

    use alloc::string::ToString;

    #[test]
    fn keys_of_numbers_are_prefixes() {
        let nulls = |values: Values, every: usize| {
            let rows = values.len();
            ColumnBatch {
                leaf: 0,
                rows,
                nulls: rows.div_ceil(every),
                validity: Some((0..rows).map(|row| row % every != 0).collect()),
                values,
                layout: Layout::Spaced,
                levels: None,
                provisional: false,
            }
        };
        let columns = [
            nulls(Values::Int32(vec![7, -7, i32::MIN, i32::MAX, 0, -1].into()), 3),
            nulls(Values::Double(vec![0.5, -0.5, f64::NAN, -0.0, 0.0, f64::INFINITY].into()), 4),
            nulls(Values::Int64(vec![1, -1, i64::MIN, i64::MAX, 0, 1 << 40].into()), 2),
        ];
        let orders = [Order::Signed32, Order::Double, Order::Unsigned64];
        let key_column = |leaf: usize, descending, nulls_first| KeyColumn {
            leaf,
            is_optional: true,
            descending,
            nulls_first,
            ..column(orders[leaf])
        };
        for (leaves, is_short) in [
            (&[0, 1][..], true),
            (&[1, 0], true),
            (&[2], true),
            (&[0], true),
            (&[1, 2], false),
            (&[0, 2, 1], false),
        ] {
            for (descending, nulls_first) in [(false, false), (false, true), (true, false), (true, true)] {
                let of = |leaf: &usize| key_column(*leaf, descending, nulls_first);
                let keys = Keys { columns: leaves.iter().map(of).collect() };
                let Some(prefixes) = keys.prefixes(&columns, 1..6).unwrap() else {
                    assert!(!is_short, "{leaves:?}");
                    continue;
                };
                assert!(is_short && prefixes.len() == 5, "{leaves:?}");
                for (row, prefix) in (1..).zip(prefixes) {
                    let mut key = Vec::new();
                    keys.append(&columns, row, &mut key).unwrap();
                    key.resize(16, 0);
                    assert_eq!(key, prefix.to_be_bytes(), "{leaves:?}, {row}");
                }
            }
        }
        let keys = Keys { columns: vec![key_column(0, false, false)] };
        assert!(keys.prefixes(&columns, 0..7).is_err() && keys.prefixes(&columns[1..], 0..1).is_err());
    }
}
