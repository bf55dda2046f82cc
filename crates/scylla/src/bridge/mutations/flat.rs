//! Columns of single values, on their way back to cells: many rows at a time, where nothing is listed beside them.

use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::usize_of_u32;
use marquetry_base::{Bitmap, Error, Result};
use marquetry_kernels::utf8;
use marquetry_parquet::batch::{ColumnBatch, Layout, Values as Natural};

use super::encode::LeafReader;
use super::plan::ColumnPlan;
use super::rows::NO_ROW;
use super::shape::{Form, Kind, Multi};
use crate::sstable::batch::{Cells, Expiry, NO_TIMESTAMP, Values, number_of};

/// What the rows of a batch say for their cells.
#[derive(Debug, Default)]
pub(super) struct RowTimes {
    /// The entry of each row; [`NO_ROW`] for those that have no cells.
    pub(super) entries: Vec<u32>,
    /// The write times of rows, and of their markers.
    pub(super) times: Vec<i64>,
    pub(super) markers: Vec<i64>,
    /// When rows expire, and when their markers do.
    pub(super) expiries: Vec<Expiry>,
    pub(super) marker_expiries: Vec<Expiry>,
    /// Whether anything expires.
    pub(super) has_expiries: bool,
    /// Whether there are static rows.
    pub(super) has_statics: bool,
}

/// The kind of a column whose rows can be read many at a time: a value each, in arrays that cells can have.
pub(super) fn kind_of(plan: &ColumnPlan, column: &ColumnBatch, cells: &Cells) -> Option<Kind> {
    let Form::Leaf(kind) = plan.shapes.root().form else { return None };
    let suits = match (&column.values, &cells.values) {
        (Natural::Int32(_), Values::Four(_)) => kind == Kind::Int,
        (Natural::Float(_), Values::Four(_)) => kind == Kind::Float,
        (Natural::Int64(_), Values::Eight(_)) => matches!(kind, Kind::Bigint | Kind::Timestamp),
        (Natural::Double(_), Values::Eight(_)) => kind == Kind::Double,
        (Natural::FixedLenByteArray(_), Values::Sixteen(_)) => kind == Kind::Uuid,
        (Natural::ByteArray(_), Values::Strings(_)) => matches!(kind, Kind::Text | Kind::Bytes),
        _ => false,
    };
    (suits && plan.multi == Multi::No && column.levels.is_none()).then_some(kind)
}

/// Reads the cells of some rows of a column that [`kind_of`] has a kind for; the reader is at the first of them. Returns how many cells
/// there are, and their bytes.
///
/// # Errors
///
/// [`ErrorKind::Corrupt`](marquetry_base::ErrorKind::Corrupt) and [`ErrorKind::Conversion`](marquetry_base::ErrorKind::Conversion) as of a
/// single cell, with the number of its row.
pub(super) fn read(
    reader: &mut LeafReader,
    kind: Kind,
    rows: Range<usize>,
    of: &RowTimes,
    cells: &mut Cells,
    present: &mut Vec<u32>,
) -> Result<(usize, usize)> {
    find(reader, rows.clone(), present)?;
    let at = |row: usize| move |error: Error| error.at(|place| place.row = Some(u64::from(number_of(row))));
    let first = cells.entries.len();
    let lists = (of.entries.as_slice(), of.times.as_slice(), of.markers.as_slice());
    for row in present.iter().map(|row| usize_of_u32(*row)) {
        let (Some(&entry), Some(&time), Some(&marker)) =
            (lists.0.get(row), lists.1.get(row), lists.2.get(row))
        else {
            return Err(Error::internal("a row that was not read"));
        };
        if entry == NO_ROW {
            return Err(at(row)(without_cells()));
        }
        if time != marker {
            cells.timestamps.push(number_of(cells.entries.len()), time);
        }
        if time == NO_TIMESTAMP {
            return Err(at(row)(without_time()));
        }
        cells.entries.push(entry);
    }
    if of.has_expiries {
        for (number, row) in present.iter().map(|row| usize_of_u32(*row)).enumerate() {
            let expiry = of.expiries.get(row).copied().unwrap_or(Expiry::NEVER);
            if Some(&expiry) != of.marker_expiries.get(row) {
                cells.expiries.push(number_of(first + number), expiry);
            }
        }
    }
    let bytes = push_values(reader, kind, &rows, &mut cells.values, present)?;
    reader.skip(rows.len(), present.len());
    Ok((present.len(), bytes))
}

/// A value in a row that can have none.
pub(super) fn without_cells() -> Error {
    Error::corrupt("a value in a row that has none")
}

/// A cell of a row without a write time.
pub(super) fn without_time() -> Error {
    Error::corrupt("a cell without a write time")
}

/// The rows that have a value, of those that the reader is at.
fn find(reader: &LeafReader, rows: Range<usize>, present: &mut Vec<u32>) -> Result<()> {
    present.clear();
    let column = reader.column();
    let first = reader.entry();
    if column.rows.saturating_sub(first) < rows.len() {
        return Err(Error::corrupt("a column with fewer entries than others"));
    }
    match &column.validity {
        None => present.extend(rows.map(number_of)),
        Some(validity) => {
            let mut done = 0;
            while done < rows.len() {
                let count = (rows.len() - done).min(WORD_BITS);
                let mut word = bits_of(validity, first + done) & (u64::MAX >> (u64::BITS - number_of(count)));
                while word != 0 {
                    let bit = usize_of_u32(word.trailing_zeros());
                    present.push(number_of(rows.start + done + bit));
                    word &= word - 1;
                }
                done += count;
            }
        }
    }
    Ok(())
}

/// Bits that [`bits_of`] has: those of eight bytes, wherever the first is in its byte.
const WORD_BITS: usize = 57;

/// At least [`WORD_BITS`] bits from one of a bitmap on; beyond its end they mean nothing.
fn bits_of(bits: &Bitmap, at: usize) -> u64 {
    let at = bits.offset() + at;
    let bytes = bits.bytes().get(at / 8..).unwrap_or_default();
    let word = match bytes.first_chunk::<8>() {
        Some(word) => *word,
        None => {
            let mut word = [0; 8];
            for (to, from) in word.iter_mut().zip(bytes) {
                *to = *from;
            }
            word
        }
    };
    u64::from_le_bytes(word) >> (at % 8)
}

/// Adds the values of rows. Returns their bytes.
fn push_values(
    reader: &LeafReader,
    kind: Kind,
    rows: &Range<usize>,
    values: &mut Values,
    present: &[u32],
) -> Result<usize> {
    let column = reader.column();
    // Where the values are in the array: dense, or a slot for each row.
    let start = reader.value_at();
    let is_spaced = column.layout == Layout::Spaced;
    let place = |number: usize, row: u32| match is_spaced {
        true => start + (usize_of_u32(row) - rows.start),
        false => start + number,
    };
    let places = || present.iter().enumerate().map(|(number, row)| place(number, *row));
    let is_dense = !is_spaced || present.len() == rows.len();
    let lack = || Error::corrupt("a column with fewer entries than others");
    if present.last().is_some_and(|row| place(present.len() - 1, *row) >= column.values.len()) {
        return Err(lack());
    }
    match (&column.values, values) {
        (Natural::Int32(from), Values::Four(to)) => match is_dense {
            true => to.extend_from_slice(from.get(start..start + present.len()).ok_or_else(lack)?),
            false => to.extend(places().map(|place| from[place])),
        },
        (Natural::Int64(from), Values::Eight(to)) => match is_dense {
            true => to.extend_from_slice(from.get(start..start + present.len()).ok_or_else(lack)?),
            false => to.extend(places().map(|place| from[place])),
        },
        (Natural::Float(from), Values::Four(to)) => {
            to.extend(places().map(|place| i32::from_ne_bytes(from[place].to_ne_bytes())));
        }
        (Natural::Double(from), Values::Eight(to)) => {
            to.extend(places().map(|place| i64::from_ne_bytes(from[place].to_ne_bytes())));
        }
        (Natural::FixedLenByteArray(from), Values::Sixteen(to)) => {
            for place in places() {
                let value = from.get(place).try_into();
                to.push(value.map_err(|_| Error::misuse("a column of another type"))?);
            }
            return Ok(16 * present.len());
        }
        (Natural::ByteArray(from), Values::Strings(to)) => {
            let before = to.bytes.len();
            let mut is_text = true;
            for place in places() {
                let value = from.get(place);
                // A value of valid text that begins with a whole character ends with one: the next begins there.
                is_text &= value.first().is_none_or(|byte| byte & 0xc0 != 0x80);
                to.bytes.extend_from_slice(value);
                let end = u32::try_from(to.bytes.len());
                to.ends.push(end.map_err(|_| Error::too_large("values of a batch of more than 4 GiB"))?);
            }
            let bytes = to.bytes.get(before..).unwrap_or_default();
            if kind == Kind::Text && !(is_text && utf8::valid(bytes)) {
                let wrong = places().position(|place| !utf8::valid(from.get(place))).unwrap_or(0);
                let row = present.get(wrong).copied().unwrap_or(0);
                let error = Error::conversion("text that is not UTF-8");
                return Err(error.at(|place| place.row = Some(row.into())));
            }
            return Ok(bytes.len());
        }
        _ => return Err(Error::internal("a column that is not read row by row")),
    }
    Ok(8 * present.len())
}

#[cfg(test)]
mod tests {
    use marquetry_base::Buffer;

    use super::*;

    #[test]
    fn rows_with_a_value_are_those_whose_bits_are_set() {
        let bytes: Vec<u8> = (0..40_u8).map(|byte| byte.wrapping_mul(37) ^ (byte << 3)).collect();
        for offset in [0, 1, 7, 13] {
            let length = 8 * bytes.len() - offset;
            let bits = Bitmap::new(Buffer::from(bytes.clone()), offset, length);
            let column = ColumnBatch {
                leaf: 0,
                rows: length,
                nulls: 0,
                validity: Some(bits.clone()),
                values: Natural::Int32(Buffer::from(Vec::new())),
                layout: Layout::Dense,
                levels: None,
                provisional: false,
            };
            for range in [0..length, 5..6, 50..57, 56..170, length - 3..length, 9..9] {
                let mut reader = LeafReader::new(&column, 1);
                reader.skip(range.start, 0);
                let mut present = Vec::new();
                find(&reader, range.clone(), &mut present).unwrap();
                let expected: Vec<u32> = range.filter(|row| bits.get(*row)).map(number_of).collect();
                assert_eq!(present, expected, "{offset}");
            }
            let mut reader = LeafReader::new(&column, 1);
            reader.skip(10, 0);
            assert!(find(&reader, 10..length + 1, &mut Vec::new()).is_err());
        }
    }
}
