//! Leaves of two tables that hold the same: which of their rows differ.

use std::ops::Range;

use marquetry_parquet::batch::{ColumnBatch, Value, Values};
use marquetry_parquet::schema::Meaning;

use super::numbers::are_equal;
use super::values::{compare, compare_floats, item};
use crate::entries::Entries;

/// A leaf of the first table, and the leaf of the second that it is compared with.
#[derive(Debug)]
pub(super) struct LeafPair {
    /// Each leaf, by its index in its schema.
    pub(super) leaves: [usize; 2],
    pub(super) meanings: [Meaning; 2],
    /// One of them at least has numbers as text, and both have numbers.
    pub(super) are_numbers: bool,
    /// The one is FLOAT and the other DOUBLE, and a load would make a FLOAT of it: it has the digits that FLOAT has.
    pub(super) narrows: bool,
    /// A column that has nothing inside is as one that is null.
    pub(super) empty_is_null: bool,
    /// Rows of the first table are not compared if what is missing there, in common numbers, is this or something around it.
    pub(super) kept: Option<u16>,
    /// Both have one physical type and one meaning.
    pub(super) is_alike: bool,
    /// What each definition level of either means, in common numbers: the first of all structs, lists and values around
    /// the leaf, and itself, that is missing there.
    pub(super) levels: [Vec<u16>; 2],
}

/// Consecutive rows of the first table, and as many of the second that they are compared with.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Run {
    /// The first row of either.
    pub(super) at: [usize; 2],
    pub(super) rows: usize,
}

impl LeafPair {
    /// Marks the rows of the first table that differ from those of the second that they are compared with.
    pub(super) fn mark(&self, [a, b]: [&ColumnBatch; 2], runs: &[Run], marks: &mut [bool]) {
        let is_flat = a.levels.is_none() && b.levels.is_none();
        let are_all = runs == [Run { at: [0, 0], rows: a.rows }] && a.rows == b.rows;
        if are_all && self.is_alike && (is_flat || self.levels[0] == self.levels[1]) && is_same(a, b) {
            return;
        }
        let rows = [Rows::of(a, &self.levels[0]), Rows::of(b, &self.levels[1])];
        let mut mark =
            |is_same: &dyn Fn(usize, usize) -> bool| rows_that_differ(self, &rows, runs, marks, is_same);
        let is_bytes = self.is_alike && !matches!(self.meanings[0], Meaning::Decimal { .. });
        match (&a.values, &b.values) {
            (a, b) if self.are_numbers => mark(&|at_a, at_b| {
                let values = (Value::of_values(a, at_a), Value::of_values(b, at_b));
                let (Some(in_a), Some(in_b)) = values else { return false };
                are_equal(item(self.meanings[0], in_a), item(self.meanings[1], in_b))
            }),
            (Values::Float(a), Values::Double(b)) if self.narrows => {
                mark(&|at_a, at_b| compare_floats(a[at_a].into(), narrow(b[at_b])).is_eq());
            }
            (Values::Double(a), Values::Float(b)) if self.narrows => {
                mark(&|at_a, at_b| compare_floats(narrow(a[at_a]), b[at_b].into()).is_eq());
            }
            (Values::Int32(a), Values::Int32(b)) if self.is_alike => mark(&|at_a, at_b| a[at_a] == b[at_b]),
            (Values::Int64(a), Values::Int64(b)) if self.is_alike => mark(&|at_a, at_b| a[at_a] == b[at_b]),
            (Values::Double(a), Values::Double(b)) => {
                mark(&|at_a, at_b| compare_floats(a[at_a], b[at_b]).is_eq());
            }
            (Values::ByteArray(a), Values::ByteArray(b)) if is_bytes => {
                mark(&|at_a, at_b| a.get(at_a) == b.get(at_b));
            }
            (a, b) => mark(&|at_a, at_b| {
                let values = (Value::of_values(a, at_a), Value::of_values(b, at_b));
                let (Some(in_a), Some(in_b)) = values else { return false };
                compare(item(self.meanings[0], in_a), item(self.meanings[1], in_b)).is_eq()
            }),
        }
    }
}

/// A DOUBLE with the digits that FLOAT has.
fn narrow(value: f64) -> f64 {
    marquetry_base::cast::nearest_f32(value).map_or(value, f64::from)
}

/// Marks the rows whose levels or values differ.
fn rows_that_differ(
    LeafPair { empty_is_null, kept, .. }: &LeafPair,
    [a, b]: &[Rows<'_>; 2],
    runs: &[Run],
    marks: &mut [bool],
    is_same: &dyn Fn(usize, usize) -> bool,
) {
    let common = |(missing, repetition): (u16, u8)| {
        (if *empty_is_null && missing == 1 { 0 } else { missing }, repetition)
    };
    for run in runs {
        for row in 0..run.rows {
            let (in_a, in_b) = (a.entries_of(run.at[0] + row), b.entries_of(run.at[1] + row));
            if let (Some(kept), Some(first)) = (*kept, in_a.clone().next())
                && let ((missing, _), None) = a.entry(first)
                && missing <= kept
            {
                continue;
            }
            let are_same = in_a.len() == in_b.len()
                && in_a.zip(in_b).all(|(in_a, in_b)| match (a.entry(in_a), b.entry(in_b)) {
                    ((level, Some(at_a)), (same, Some(at_b))) => level == same && is_same(at_a, at_b),
                    ((level, None), (same, None)) => common(level) == common(same),
                    _ => false,
                });
            if let Some(mark) = marks.get_mut(run.at[0] + row).filter(|_| !are_same) {
                *mark = true;
            }
        }
    }
}

/// The rows of a leaf, which can be looked at in any order.
struct Rows<'a> {
    entries: Entries<'a>,
    /// The entries of each row, of a leaf in a list.
    ranges: Option<Vec<Range<usize>>>,
    /// What its definition levels mean.
    levels: &'a [u16],
}

impl<'a> Rows<'a> {
    fn of(column: &'a ColumnBatch, levels: &'a [u16]) -> Rows<'a> {
        let mut entries = Entries::of(column);
        let is_in_list = column.levels.as_ref().is_some_and(|levels| levels.repetition.is_some());
        let ranges = is_in_list.then(|| (0..column.rows).map(|row| entries.row(row)).collect());
        Rows { entries, ranges, levels }
    }

    fn entries_of(&self, row: usize) -> Range<usize> {
        match &self.ranges {
            Some(ranges) => ranges.get(row).cloned().unwrap_or_default(),
            None => row..row + 1,
        }
    }

    /// What an entry's levels mean, and where its value is.
    fn entry(&self, entry: usize) -> ((u16, u8), Option<usize>) {
        let value = self.entries.value_of(entry);
        let (definition, repetition) = match &self.entries.column().levels {
            Some(levels) => {
                let repetition = levels.repetition.as_ref().map_or(0, |levels| levels[entry]);
                (self.levels.get(usize::from(levels.definition[entry])), repetition)
            }
            None if value.is_some() => (self.levels.last(), 0),
            None => (self.levels.first(), 0),
        };
        ((definition.copied().unwrap_or_default(), repetition), value)
    }
}

/// True where two batches hold the same bits, and one look is enough to see it.
fn is_same(a: &ColumnBatch, b: &ColumnBatch) -> bool {
    let is_same_validity = match (&a.validity, &b.validity) {
        (None, None) => true,
        (Some(a), Some(b)) => a.iter().eq(b.iter()),
        _ => false,
    };
    is_same_validity
        && (a.layout == b.layout || a.validity.is_none())
        && a.levels == b.levels
        && a.values.len() == b.values.len()
        && match (&a.values, &b.values) {
            (Values::Boolean(a), Values::Boolean(b)) => a.iter().eq(b.iter()),
            (Values::Int32(a), Values::Int32(b)) => a == b,
            (Values::Int64(a), Values::Int64(b)) => a == b,
            (Values::Float(a), Values::Float(b)) => {
                a.iter().map(|it| it.to_bits()).eq(b.iter().map(|it| it.to_bits()))
            }
            (Values::Double(a), Values::Double(b)) => {
                a.iter().map(|it| it.to_bits()).eq(b.iter().map(|it| it.to_bits()))
            }
            (Values::ByteArray(a), Values::ByteArray(b)) => a.iter().eq(b.iter()),
            (Values::Int96(a), Values::Int96(b))
            | (Values::FixedLenByteArray(a), Values::FixedLenByteArray(b)) => a.bytes() == b.bytes(),
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_parquet::batch::Layout;

    fn ints(values: Vec<i32>, nulls: &[usize], layout: Layout) -> ColumnBatch {
        let rows = if layout == Layout::Spaced { values.len() } else { values.len() + nulls.len() };
        ColumnBatch {
            leaf: 0,
            rows,
            nulls: nulls.len(),
            validity: (!nulls.is_empty()).then(|| (0..rows).map(|row| !nulls.contains(&row)).collect()),
            values: Values::Int32(values.into()),
            layout,
            levels: None,
            provisional: false,
        }
    }

    fn differing_rows(meaning: Meaning, [a, b]: [&ColumnBatch; 2]) -> Vec<usize> {
        let levels = vec![0, 1];
        let pair = LeafPair {
            leaves: [0, 0],
            meanings: [meaning; 2],
            are_numbers: false,
            narrows: false,
            empty_is_null: false,
            kept: None,
            is_alike: true,
            levels: [levels.clone(), levels],
        };
        let mut marks = vec![false; a.rows];
        pair.mark([a, b], &[Run { at: [0, 0], rows: a.rows }], &mut marks);
        (0..a.rows).filter(|row| marks[*row]).collect()
    }

    #[test]
    fn where_values_stand_makes_no_difference() {
        let int = Meaning::Integer { bit_width: 32, is_signed: true };
        let dense = ints(vec![1, 2, 3], &[1], Layout::Dense);
        let spaced = ints(vec![1, 9, 2, 3], &[1], Layout::Spaced);
        let none: [usize; 0] = [];
        assert_eq!(differing_rows(int, [&dense, &spaced]), none);
        assert_eq!(differing_rows(int, [&dense, &ints(vec![1, 9, 2, 4], &[1], Layout::Spaced)]), [3]);
        assert_eq!(differing_rows(int, [&dense, &ints(vec![1, 9, 2, 3], &[2], Layout::Spaced)]), [1, 2]);
        // What a null's slot holds means nothing.
        let other = ints(vec![1, 7, 2, 3], &[1], Layout::Spaced);
        assert_eq!(differing_rows(int, [&spaced, &other]), none);
    }

    /// A null that is loaded changes nothing; the digits that FLOAT does not have are not loaded.
    #[test]
    fn rows_are_compared_as_they_are_loaded() {
        let levels = vec![0, 1];
        let mut pair = LeafPair {
            leaves: [0, 0],
            meanings: [Meaning::Double, Meaning::Float],
            are_numbers: false,
            narrows: true,
            empty_is_null: false,
            kept: Some(0),
            is_alike: false,
            levels: [levels.clone(), levels],
        };
        let (mut doubles, mut floats) =
            (ints(vec![0; 4], &[2], Layout::Spaced), ints(vec![0; 4], &[3], Layout::Spaced));
        doubles.values = Values::Double(vec![0.1, 0.25, 0.0, 0.5].into());
        floats.values = Values::Float(vec![0.1, 0.5, 7.0, 0.0].into());
        let differing = |pair: &LeafPair| {
            let mut marks = vec![false; 4];
            pair.mark([&doubles, &floats], &[Run { at: [0, 0], rows: 4 }], &mut marks);
            (0..4).filter(|row| marks[*row]).collect::<Vec<_>>()
        };
        assert_eq!(differing(&pair), [1, 3]);
        pair.kept = None;
        assert_eq!(differing(&pair), [1, 2, 3]);
        pair.narrows = false;
        assert_eq!(differing(&pair), [0, 1, 2, 3]);
    }

    #[test]
    fn floats_are_compared_as_numbers() {
        let doubles = |values: [f64; 3]| {
            let mut column = ints(vec![0; 3], &[], Layout::Dense);
            column.values = Values::Double(values.to_vec().into());
            column
        };
        let (one, other) = (doubles([f64::NAN, 0.0, 1.0]), doubles([-f64::NAN, -0.0, 1.5]));
        assert_eq!(differing_rows(Meaning::Double, [&one, &other]), [2]);
    }
}
