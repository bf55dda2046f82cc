//! Columns that are tested and handed out are decoded once: what a search had of the rows that it found is kept until they are handed out.

use std::collections::VecDeque;
use std::mem::discriminant;
use std::sync::Arc;

use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::{Bitmap, Bytes, Error, Price, Result};
use marquetry_parquet::batch::{
    Batch, ByteArrays, ColumnBatch, FixedBytes, INLINE_BYTES_MAX, Layout, Values,
};
use marquetry_parquet::find::RowFinder;
use marquetry_parquet::read::BatchReader;

use crate::host::{Driven, Host};
use crate::parquet_rows::batch_bytes;

/// What a value costs that is kept, and its bytes.
const KEEP_PRICE: Price = Price { kib: 300, kilovalue: 10 << 10 };
/// What a value costs that is put together with others, and its bytes.
const JOIN_PRICE: Price = Price { kib: 300, kilovalue: 4 << 10 };
/// Bytes of values that are put together, about: what an answer takes at once is not much longer.
const JOINED_BYTES: usize = 512 << 10;

/// What a search has of some leaves, in the rows that it found.
pub(crate) struct Kept {
    leaves: Vec<usize>,
    /// Whether values stay indices of dictionaries.
    keeps_dictionaries: bool,
    parts: VecDeque<Batch>,
    rows: u64,
    /// There are columns that cannot be kept.
    is_broken: bool,
}

impl Kept {
    /// Of these leaves, which the search tests, in the order in which they are handed out.
    pub(crate) fn of(leaves: Vec<usize>, keeps_dictionaries: bool) -> Kept {
        Kept { leaves, keeps_dictionaries, parts: VecDeque::new(), rows: 0, is_broken: false }
    }

    /// Takes what the search has found since the last time.
    pub(crate) fn take(&mut self, finder: &mut RowFinder, host: &mut Host<'_>) {
        for (batch, found) in finder.take_tested() {
            if !self.is_broken {
                self.is_broken = self.add(&batch, &found, host).is_none();
            }
        }
    }

    /// The same, if it is all of so many rows that were found: some may have been found without a look at their values.
    pub(crate) fn all_of(self, rows: u64) -> Option<Kept> {
        (!self.is_broken && self.rows == rows).then_some(self)
    }

    /// Adds those of the rows of a batch that have been found; `None` if that has other columns than flat ones.
    fn add(&mut self, batch: &Batch, found: &Bitmap, host: &mut Host<'_>) -> Option<()> {
        let rows = ones(found);
        let column = |leaf: &usize| {
            let column = batch.columns.iter().find(|column| column.leaf == *leaf)?;
            chosen(column, &rows, self.keeps_dictionaries)
        };
        let columns = self.leaves.iter().map(column).collect::<Option<Vec<ColumnBatch>>>()?;
        let bytes: usize = columns.iter().map(|column| bytes_of(&column.values)).sum();
        host.charge(KEEP_PRICE.of(bytes, rows.len() * columns.len()) + KEEP_PRICE.of(0, batch.rows / 64));
        self.rows += u64_of(rows.len());
        let Batch { row_group, first_row, .. } = *batch;
        self.parts.push_back(Batch { row_group, first_row, rows: rows.len(), columns });
        Some(())
    }

    /// The next rows, so many at most. Where few rows of a batch were found, those of several are put together: whoever takes them does so batch
    /// by batch, and an answer has a message for each.
    fn next(&mut self, most: usize, host: &mut Host<'_>) -> Result<Option<Batch>> {
        let Some(first) = self.part(most) else { return Ok(None) };
        let (mut rows, mut bytes, mut parts) = (first.rows, batch_bytes(&first), vec![first]);
        while rows < most
            && bytes < JOINED_BYTES
            && let Some(next) = self.parts.front().filter(|next| are_alike(&parts[0], next))
        {
            bytes = bytes.saturating_add(batch_bytes(next));
            let part = self.part(most - rows);
            rows += part.as_ref().map_or(0, |part| part.rows);
            parts.extend(part);
        }
        if parts.len() == 1 {
            return Ok(parts.pop());
        }
        host.charge(JOIN_PRICE.of(bytes, rows * parts[0].columns.len()));
        joined(&parts).map(Some)
    }

    /// The next part, or so many of its rows.
    fn part(&mut self, most: usize) -> Option<Batch> {
        let part = self.parts.pop_front()?;
        if part.rows <= most {
            return Some(part);
        }
        self.parts.push_front(part.slice(most..part.rows));
        Some(part.slice(0..most))
    }
}

/// Rows that are handed out, batch by batch: columns that are read, beside those that were kept.
pub(crate) struct Parts {
    /// `None`: all columns were kept.
    reader: Option<BatchReader>,
    kept: Option<Kept>,
    /// Of each column: whether it is one that was kept.
    are_kept: Vec<bool>,
    /// Rows that are handed out at a time, at most, where all columns were kept.
    batch_rows: usize,
    /// What was read, and has not been handed out.
    read: Option<Batch>,
}

impl Parts {
    /// Of the columns of these leaves, in this order. The reader has all of them, or those that are not kept.
    pub(crate) fn new(
        leaves: &[usize],
        (reader, kept): (Option<BatchReader>, Option<Kept>),
        batch_rows: usize,
    ) -> Parts {
        let is_kept = |leaf: &usize| kept.as_ref().is_some_and(|kept| kept.leaves.contains(leaf));
        let are_kept = leaves.iter().map(is_kept).collect();
        Parts { reader, kept, are_kept, batch_rows, read: None }
    }

    /// Whether rows were read that have not been handed out.
    pub(crate) fn has_more(&self) -> bool {
        self.read.is_some()
    }

    /// The next rows, `left` at most if none are read. Works until the call has spent `units`, or for a first batch as long as that takes.
    pub(crate) fn next(
        &mut self,
        (left, is_first): (u64, bool),
        units: u64,
        host: &mut Host<'_>,
    ) -> Result<Driven<Batch>> {
        if let Some(reader) = &mut self.reader
            && self.read.is_none()
        {
            match host.drive_until(reader, units, |_| !is_first)? {
                Driven::Ready(batch) if self.kept.is_some() => self.read = Some(batch),
                driven => return Ok(driven),
            }
        }
        let Some(kept) = &mut self.kept else { return Ok(Driven::Done) };
        let left = usize::try_from(left).unwrap_or(usize::MAX).min(self.batch_rows);
        // As many as both have.
        let most = self.read.as_ref().map_or(left, |read| read.rows);
        let Some(part) = kept.next(most, host)? else { return Ok(Driven::Done) };
        let Some(read) = self.read.take() else { return Ok(Driven::Ready(part)) };
        if part.rows < read.rows {
            self.read = Some(read.slice(part.rows..read.rows));
        }
        let Batch { row_group, first_row, rows, columns } = read.slice(0..part.rows);
        let (mut of_kept, mut of_read) = (part.columns.into_iter(), columns.into_iter());
        let columns =
            self.are_kept.iter().map(|is_kept| if *is_kept { of_kept.next() } else { of_read.next() });
        let columns = columns.collect::<Option<Vec<ColumnBatch>>>();
        let columns = columns.ok_or_else(|| Error::internal("a column that was neither kept nor read"))?;
        Ok(Driven::Ready(Batch { row_group, first_row, rows, columns }))
    }
}

/// The places of the bits that are set.
fn ones(bits: &Bitmap) -> Vec<usize> {
    let mut places = Vec::new();
    if !bits.offset().is_multiple_of(8) {
        places.extend((0..bits.len()).filter(|at| bits.get(*at)));
        return places;
    }
    let bytes = &bits.bytes()[bits.offset() / 8..];
    for (at, bytes) in bytes[..bits.len().div_ceil(8)].chunks(8).enumerate() {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        let mut word = u64::from_le_bytes(word);
        while word != 0 {
            places.push(64 * at + usize_of_u32(word.trailing_zeros()));
            word &= word - 1;
        }
    }
    // What is beyond the end may be anything.
    places.truncate(places.partition_point(|at| *at < bits.len()));
    places
}

/// Some rows of a column; `None` if it is not a flat one with a slot for each row.
fn chosen(column: &ColumnBatch, rows: &[usize], keeps_dictionaries: bool) -> Option<ColumnBatch> {
    if column.levels.is_some() || column.layout != Layout::Spaced || column.provisional {
        return None;
    }
    let validity: Option<Bitmap> =
        column.validity.as_ref().map(|validity| rows.iter().map(|row| validity.get(*row)).collect());
    let nulls = validity.as_ref().map_or(0, |validity| validity.iter().filter(|is_there| !is_there).count());
    Some(ColumnBatch {
        leaf: column.leaf,
        rows: rows.len(),
        nulls,
        validity: validity.filter(|_| nulls > 0),
        values: values_at(&column.values, rows, keeps_dictionaries),
        layout: Layout::Spaced,
        levels: None,
        provisional: false,
    })
}

/// The values at these places. Where there is none, as in an empty dictionary for a null, it is zero or empty.
fn values_at(values: &Values, places: &[usize], keeps_dictionaries: bool) -> Values {
    match values {
        Values::Boolean(bits) => Values::Boolean(places.iter().map(|at| bits.get(*at)).collect()),
        Values::Int32(values) => picked(values, places).into(),
        Values::Int64(values) => picked(values, places).into(),
        Values::Float(values) => picked(values, places).into(),
        Values::Double(values) => picked(values, places).into(),
        Values::ByteArray(values) => {
            let views = picked(values.views(), places);
            Values::ByteArray(ByteArrays::new(views.into(), Arc::clone(values.buffers())))
        }
        Values::Int96(values) => Values::Int96(fixed(values, places)),
        Values::FixedLenByteArray(values) => Values::FixedLenByteArray(fixed(values, places)),
        Values::Dictionary(indices, entries) => {
            let indices = picked(indices, places);
            if keeps_dictionaries {
                return Values::Dictionary(indices.into(), Arc::clone(entries));
            }
            let places: Vec<usize> = indices.into_iter().map(usize_of_u32).collect();
            values_at(entries, &places, false)
        }
    }
}

fn picked<T: Copy + Default>(values: &[T], places: &[usize]) -> Vec<T> {
    places.iter().map(|at| values.get(*at).copied().unwrap_or_default()).collect()
}

fn fixed(values: &FixedBytes, places: &[usize]) -> FixedBytes {
    let (width, all) = (values.width(), values.bytes());
    let mut bytes = Vec::with_capacity(width * places.len());
    for at in places {
        match all.get(at * width..(at + 1) * width) {
            Some(value) => bytes.extend_from_slice(value),
            None => bytes.resize(bytes.len() + width, 0),
        }
    }
    FixedBytes::new(width, places.len(), bytes.into())
}

/// Whether the rows of two parts can be put together: their values are of the same form, and of the same dictionaries.
fn are_alike(one: &Batch, other: &Batch) -> bool {
    let is_alike = |(one, other): (&ColumnBatch, &ColumnBatch)| match (&one.values, &other.values) {
        (Values::Dictionary(_, one), Values::Dictionary(_, other)) => Arc::ptr_eq(one, other),
        (one, other) => discriminant(one) == discriminant(other),
    };
    one.row_group == other.row_group && one.columns.iter().zip(&other.columns).all(is_alike)
}

/// The rows of parts that are [alike](are_alike), one after the other.
fn joined(parts: &[Batch]) -> Result<Batch> {
    let Some(first) = parts.first() else { return Err(Error::internal("no parts to put together")) };
    let column = |at: usize| {
        let columns: Vec<&ColumnBatch> = parts.iter().filter_map(|part| part.columns.get(at)).collect();
        let leaf = columns.first()?.leaf;
        let (rows, nulls) =
            columns.iter().fold((0, 0), |(rows, nulls), of| (rows + of.rows, nulls + of.nulls));
        let are_there = columns.iter().flat_map(|of| (0..of.rows).map(move |row| !of.is_null(row)));
        let validity = (nulls > 0).then(|| are_there.collect());
        let values: Vec<&Values> = columns.iter().map(|of| &of.values).collect();
        let (values, layout, levels) = (joined_values(&values)?, Layout::Spaced, None);
        Some(ColumnBatch { leaf, rows, nulls, validity, values, layout, levels, provisional: false })
    };
    let columns = (0..first.columns.len()).map(column).collect::<Option<Vec<ColumnBatch>>>();
    let columns =
        columns.ok_or_else(|| Error::internal("columns that are put together, and are not alike"))?;
    let Batch { row_group, first_row, .. } = *first;
    Ok(Batch { row_group, first_row, rows: parts.iter().map(|part| part.rows).sum(), columns })
}

/// The values of all parts, one after the other; `None` if they are of different forms.
fn joined_values(parts: &[&Values]) -> Option<Values> {
    Some(match *parts.first()? {
        Values::Boolean(_) => {
            let mut bits: Vec<&Bitmap> = Vec::with_capacity(parts.len());
            for part in parts {
                let Values::Boolean(part) = *part else { return None };
                bits.push(part);
            }
            Values::Boolean(bits.into_iter().flat_map(|part| part.iter()).collect())
        }
        Values::Int32(_) => all_of(parts, |part| match part {
            Values::Int32(of) => Some(&of[..]),
            _ => None,
        })?
        .into(),
        Values::Int64(_) => all_of(parts, |part| match part {
            Values::Int64(of) => Some(&of[..]),
            _ => None,
        })?
        .into(),
        Values::Float(_) => all_of(parts, |part| match part {
            Values::Float(of) => Some(&of[..]),
            _ => None,
        })?
        .into(),
        Values::Double(_) => all_of(parts, |part| match part {
            Values::Double(of) => Some(&of[..]),
            _ => None,
        })?
        .into(),
        Values::ByteArray(_) => Values::ByteArray(joined_texts(parts)?),
        Values::Int96(_) => Values::Int96(joined_fixed(parts)?),
        Values::FixedLenByteArray(_) => Values::FixedLenByteArray(joined_fixed(parts)?),
        Values::Dictionary(_, entries) => {
            let indices = all_of(parts, |part| match part {
                Values::Dictionary(of, _) => Some(&of[..]),
                _ => None,
            })?;
            Values::Dictionary(indices.into(), Arc::clone(entries))
        }
    })
}

fn all_of<T: Copy>(parts: &[&Values], of: impl Fn(&Values) -> Option<&[T]>) -> Option<Vec<T>> {
    let mut all = Vec::new();
    for part in parts {
        all.extend_from_slice(of(part)?);
    }
    Some(all)
}

fn joined_fixed(parts: &[&Values]) -> Option<FixedBytes> {
    let (mut width, mut count, mut bytes) = (None, 0, Vec::new());
    for part in parts {
        let (Values::Int96(part) | Values::FixedLenByteArray(part)) = *part else { return None };
        if *width.get_or_insert(part.width()) != part.width() {
            return None;
        }
        bytes.extend_from_slice(part.bytes());
        count += part.len();
    }
    Some(FixedBytes::new(width?, count, bytes.into()))
}

/// Texts stay where they are: the buffers are those of all parts, and views name them by other numbers.
fn joined_texts(parts: &[&Values]) -> Option<ByteArrays> {
    let (mut views, mut buffers): (Vec<u128>, Vec<Bytes>) = (Vec::new(), Vec::new());
    let mut last: Option<(&Arc<Vec<Bytes>>, u32)> = None;
    for part in parts {
        let Values::ByteArray(part) = *part else { return None };
        let known = last.filter(|(known, _)| Arc::ptr_eq(known, part.buffers()));
        let first = match known {
            Some((_, first)) => first,
            None => u32::try_from(buffers.len()).ok()?,
        };
        if known.is_none() {
            buffers.extend(part.buffers().iter().cloned());
        }
        last = Some((part.buffers(), first));
        views.extend(part.views().iter().map(|view| moved(*view, first)));
    }
    Some(ByteArrays::new(views.into(), Arc::new(buffers)))
}

/// A view whose buffer comes after so many others.
fn moved(view: u128, by: u32) -> u128 {
    let mut bytes = view.to_le_bytes();
    if let ([length, _, number, _], []) = bytes.as_chunks_mut::<4>()
        && usize_of_u32(u32::from_le_bytes(*length)) > INLINE_BYTES_MAX
    {
        *number = u32::from_le_bytes(*number).saturating_add(by).to_le_bytes();
    }
    u128::from_le_bytes(bytes)
}

/// Bytes that were copied: of texts, their views are.
fn bytes_of(values: &Values) -> usize {
    match values {
        Values::Int96(values) | Values::FixedLenByteArray(values) => values.len() * values.width(),
        values => values.len() * size_of::<u64>(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bits_that_are_set_are_found_wherever_a_bitmap_begins() {
        let bits: Bitmap = (0..300).map(|at| at % 7 == 3 || at > 290).collect();
        for (start, end) in [(0, 300), (0, 64), (8, 299), (5, 200), (16, 16), (64, 129)] {
            let some = bits.slice(start..end);
            let expected: Vec<usize> = (0..end - start).filter(|at| some.get(*at)).collect();
            assert_eq!(ones(&some), expected, "{start}..{end}");
        }
    }

    #[test]
    fn rows_of_parts_are_put_together() {
        let part = |first_row: u64, columns: Vec<Values>| {
            let batch = Batch::of_values(columns).unwrap();
            Batch { first_row, ..batch }
        };
        let long = |text: &str| format!("{text}, and so it is longer than a view is");
        let texts = |texts: &[&str]| -> Values { texts.iter().map(|text| long(text)).collect() };
        let entries = Arc::new(texts(&["one", "two"]));
        let indices = |indices: &[u32]| Values::Dictionary(indices.to_vec().into(), Arc::clone(&entries));
        let wide = |bytes: &[u8]| {
            Values::FixedLenByteArray(FixedBytes::new(2, bytes.len() / 2, bytes.to_vec().into()))
        };
        let bits = |bits: &[bool]| Values::Boolean(bits.iter().copied().collect());
        let mut parts = [
            part(
                10,
                vec![
                    vec![1_i64, 2].into(),
                    texts(&["a", "b"]),
                    indices(&[1, 0]),
                    wide(b"aabb"),
                    bits(&[true, false]),
                ],
            ),
            part(40, vec![vec![3_i64].into(), texts(&["c"]), indices(&[1]), wide(b"cc"), bits(&[true])]),
        ];
        // A null has a place for its value.
        (parts[1].columns[0].nulls, parts[1].columns[0].validity) = (1, Some([false].into_iter().collect()));
        assert!(are_alike(&parts[0], &parts[1]));
        let made = joined(&parts).unwrap();
        let mut expected = part(
            10,
            vec![
                vec![1_i64, 2, 3].into(),
                texts(&["a", "b", "c"]),
                indices(&[1, 0, 1]),
                wide(b"aabbcc"),
                bits(&[true, false, true]),
            ],
        );
        let validity: Bitmap = [true, true, false].into_iter().collect();
        (expected.columns[0].nulls, expected.columns[0].validity) = (1, Some(validity));
        assert_eq!(made, expected);
        // Indices of another dictionary mean other values, and so do other forms.
        let of_others = Values::Dictionary(vec![0].into(), Arc::new(texts(&["one", "two"])));
        assert!(!are_alike(&part(0, vec![indices(&[0])]), &part(0, vec![of_others])));
        assert!(!are_alike(&part(0, vec![texts(&["a"])]), &part(0, vec![vec![1_i64].into()])));
        assert!(joined(&[part(0, vec![texts(&["a"])]), part(0, vec![vec![1_i64].into()])]).is_err());
    }

    #[test]
    fn parts_are_put_together_as_far_as_is_wanted() {
        let mut object: &[u8] = &[];
        let mut host = Host::new(&mut object, crate::request::Share::default());
        let mut kept = Kept::of(vec![0], false);
        for first in [0_i64, 3, 6, 9] {
            let values: Vec<i64> = (first..first + 3).collect();
            kept.parts.push_back(Batch::of_values([values.into()]).unwrap());
        }
        let mut next = |most| {
            let batch = kept.next(most, &mut host).unwrap();
            batch.map(|mut batch| batch.columns.remove(0).values)
        };
        let values = |numbers: std::ops::Range<i64>| Some(Values::from(numbers.collect::<Vec<i64>>()));
        assert_eq!([next(2), next(5), next(100)], [values(0..2), values(2..7), values(7..12)]);
        assert_eq!(next(100), None);
        assert!(host.work().units > 0);
    }

    #[test]
    fn values_of_each_kind_are_chosen() {
        let texts: Values = ["a", "a text that is longer than a view", "", "b"].into_iter().collect();
        let indices = Values::Dictionary(vec![1, 1, 3, 0].into(), Arc::new(texts.clone()));
        let chosen: Values = ["b", "a text that is longer than a view"].into_iter().collect();
        assert_eq!(values_at(&texts, &[3, 1], false), chosen);
        assert_eq!(values_at(&indices, &[2, 0], false), chosen);
        let kept = values_at(&indices, &[2, 0], true);
        assert_eq!(kept, Values::Dictionary(vec![3, 1].into(), Arc::new(texts)));
        let wide = |bytes: &[u8]| FixedBytes::new(2, bytes.len() / 2, bytes.to_vec().into());
        let values = Values::FixedLenByteArray(wide(b"aabbcc"));
        // Of nulls, in an empty dictionary, there is nothing.
        assert_eq!(values_at(&values, &[2, 9], false), Values::FixedLenByteArray(wide(b"cc\0\0")));
        let numbers = |numbers: Vec<i64>| Values::from(numbers);
        assert_eq!(values_at(&numbers(vec![5, 7]), &[1, 1, 8], false), numbers(vec![7, 7, 0]));
        let bits = Values::Boolean([true, false, true].into_iter().collect());
        assert_eq!(values_at(&bits, &[1, 2], false), Values::Boolean([false, true].into_iter().collect()));
    }
}
