//! Columns that are tested and handed out are decoded once: what a search had of the rows that it found is kept until they are handed out.

use std::collections::VecDeque;
use std::sync::Arc;

use marquetry_base::cast::{u64_of, usize_of_u32};
use marquetry_base::{Bitmap, Error, Price, Result};
use marquetry_parquet::batch::{Batch, ByteArrays, ColumnBatch, FixedBytes, Layout, Values};
use marquetry_parquet::find::RowFinder;
use marquetry_parquet::read::BatchReader;

use crate::host::{BATCH_ROWS, Driven, Host};

/// What a value costs that is kept, and its bytes.
const KEEP_PRICE: Price = Price { kib: 300, kilovalue: 10 << 10 };

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

    /// The next rows, so many at most.
    fn next(&mut self, most: usize) -> Option<Batch> {
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
    /// What was read, and has not been handed out.
    read: Option<Batch>,
}

impl Parts {
    /// Of the columns of these leaves, in this order. The reader has all of them, or those that are not kept.
    pub(crate) fn new(leaves: &[usize], reader: Option<BatchReader>, kept: Option<Kept>) -> Parts {
        let is_kept = |leaf: &usize| kept.as_ref().is_some_and(|kept| kept.leaves.contains(leaf));
        let are_kept = leaves.iter().map(is_kept).collect();
        Parts { reader, kept, are_kept, read: None }
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
        let left = usize::try_from(left).unwrap_or(usize::MAX).min(BATCH_ROWS);
        // As many as both have.
        let most = self.read.as_ref().map_or(left, |read| read.rows);
        let Some(part) = kept.next(most) else { return Ok(Driven::Done) };
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
