//! The entries of a column: which belong to each row, and where their values are.

use std::ops::Range;

use marquetry_base::cast::usize_of_u32;
use marquetry_parquet::batch::{ColumnBatch, Layout, Values};

/// The entries of a batch's rows, in order.
pub(crate) struct Entries<'a> {
    column: &'a ColumnBatch,
    /// The entry that comes next.
    next: usize,
    /// Of each entry, where its value is.
    values: Vec<Option<usize>>,
}

impl<'a> Entries<'a> {
    pub(crate) fn of(column: &'a ColumnBatch) -> Entries<'a> {
        let is_there: Vec<bool> = match &column.levels {
            // The largest definition level here is that of values, unless there are none.
            Some(levels) => {
                let there = levels.definition.iter().copied().max().filter(|_| !column.values.is_empty());
                levels.definition.iter().map(|level| Some(*level) == there).collect()
            }
            None => (0..column.rows).map(|row| !column.is_null(row)).collect(),
        };
        let is_spaced = column.levels.is_none() && column.layout == Layout::Spaced;
        let mut dense = 0;
        let place = |(row, is_there): (usize, &bool)| {
            is_there.then(|| {
                dense += 1;
                if is_spaced { row } else { dense - 1 }
            })
        };
        let values = is_there.iter().enumerate().map(place).collect();
        Entries { column, next: 0, values }
    }

    /// The column that they are of.
    pub(crate) fn column(&self) -> &'a ColumnBatch {
        self.column
    }

    /// The entries of a row; rows are asked for in order.
    pub(crate) fn row(&mut self, row: usize) -> Range<usize> {
        let Some(repetition) = self.column.levels.as_ref().and_then(|levels| levels.repetition.as_ref())
        else {
            return row..row + 1;
        };
        let start = self.next;
        self.next = (start + 1..repetition.len()).find(|at| repetition[*at] == 0).unwrap_or(repetition.len());
        start..self.next
    }

    /// An entry's definition level, and its repetition level; 0 of a flat column.
    pub(crate) fn levels_of(&self, entry: usize) -> u16 {
        let Some(levels) = &self.column.levels else { return 0 };
        let repetition = levels.repetition.as_ref().map_or(0, |levels| levels[entry]);
        u16::from_be_bytes([levels.definition[entry], repetition])
    }

    /// Where its value is; of a null nowhere.
    pub(crate) fn value_of(&self, entry: usize) -> Option<usize> {
        self.values.get(entry).copied().flatten()
    }
}

/// Whether two values of one physical type are the same, bit by bit.
#[inline]
pub(crate) fn is_same_value((a, at_a): (&Values, usize), (b, at_b): (&Values, usize)) -> bool {
    match (a, b) {
        (Values::Boolean(a), Values::Boolean(b)) => a.get(at_a) == b.get(at_b),
        (Values::Int32(a), Values::Int32(b)) => a[at_a] == b[at_b],
        (Values::Int64(a), Values::Int64(b)) => a[at_a] == b[at_b],
        (Values::Float(a), Values::Float(b)) => a[at_a].to_bits() == b[at_b].to_bits(),
        (Values::Double(a), Values::Double(b)) => a[at_a].to_bits() == b[at_b].to_bits(),
        (Values::ByteArray(a), Values::ByteArray(b)) => a.get(at_a) == b.get(at_b),
        (Values::Int96(a), Values::Int96(b))
        | (Values::FixedLenByteArray(a), Values::FixedLenByteArray(b)) => a.get(at_a) == b.get(at_b),
        (Values::Dictionary(indices, entries), _) => {
            is_same_value((entries, usize_of_u32(indices[at_a])), (b, at_b))
        }
        (_, Values::Dictionary(indices, entries)) => {
            is_same_value((a, at_a), (entries, usize_of_u32(indices[at_b])))
        }
        _ => false,
    }
}
