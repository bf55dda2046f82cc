//! Rows of a table, column by column.

use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::{Bitmap, Budget, Buffer, Error, Release, Result, release_all};
use marquetry_kernels::levels as kernel;

use super::Values;

/// Rows of one row group, column by column.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The row group's index.
    pub row_group: usize,
    /// The first row's number in the file.
    pub first_row: u64,
    /// Rows; the same in every column.
    pub rows: usize,
    /// The requested columns, in the requested order. They are one allocation: more than 6,000 columns take 1 MiB or
    /// more.
    pub columns: Vec<ColumnBatch>,
}

impl Batch {
    /// A batch of columns that have a value in every row, for a writer: one column per leaf of its schema, in order.
    ///
    /// ```
    /// use marquetry_parquet::batch::Batch;
    ///
    /// let batch = Batch::of_values([vec![1_i64, 2].into(), ["a", "b"].into_iter().collect()])?;
    /// assert_eq!((batch.rows, batch.columns.len()), (2, 2));
    /// # Ok::<(), marquetry_base::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `Misuse` for columns of different lengths.
    pub fn of_values(columns: impl IntoIterator<Item = Values>) -> Result<Batch> {
        let mut batch = Batch { row_group: 0, first_row: 0, rows: 0, columns: Vec::new() };
        for (leaf, values) in columns.into_iter().enumerate() {
            let rows = values.len();
            if leaf > 0 && rows != batch.rows {
                return Err(Error::misuse(format!("a column of {rows} rows beside one of {}", batch.rows)));
            }
            batch.rows = rows;
            let (validity, layout, levels) = (None, Layout::Spaced, None);
            let column =
                ColumnBatch { leaf, rows, nulls: 0, validity, values, layout, levels, provisional: false };
            batch.columns.push(column);
        }
        Ok(batch)
    }

    /// Some of its rows.
    ///
    /// # Panics
    ///
    /// When the range reaches beyond the rows, as for slices.
    #[must_use]
    pub fn slice(&self, rows: Range<usize>) -> Batch {
        if rows == (0..self.rows) {
            return self.clone();
        }
        Batch {
            row_group: self.row_group,
            first_row: self.first_row + marquetry_base::cast::u64_of(rows.start),
            rows: rows.len(),
            columns: self.columns.iter().map(|column| column.slice(rows.clone())).collect(),
        }
    }
}

impl Release for Batch {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        self.rows = 0;
        self.columns.release(budget)
    }
}

/// One column's part of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnBatch {
    /// The leaf's index in the schema.
    pub leaf: usize,
    /// Rows.
    pub rows: usize,
    /// Null rows; in a nested leaf, entries without a value.
    pub nulls: usize,
    /// A bit per row: present (1) or null (0). `None` if no row is null.
    pub validity: Option<Bitmap>,
    /// The values.
    pub values: Values,
    /// The layout of the values.
    pub layout: Layout,
    /// The levels of a nested leaf, whose values are always dense and which has no validity. `None` for a flat one.
    pub levels: Option<Levels>,
    /// Some of the values come from a large page whose CRC has not been checked yet. If it turns out wrong, the reader
    /// fails at the page's end. The column's next batch that is not provisional, or the reader's end, confirms that it
    /// was right.
    ///
    /// Always false unless the reader was created with
    /// [`LargePages::Provisional`](crate::read::LargePages::Provisional).
    pub provisional: bool,
}

/// The levels of a nested leaf: an entry for each value, null, and list that is null or empty.
#[derive(Debug, Clone, PartialEq)]
pub struct Levels {
    /// The definition level of each entry.
    pub definition: Buffer<u8>,
    /// The repetition level of each entry: 0 begins a row. `None` if the leaf is not in a list, where each entry is a
    /// row.
    pub repetition: Option<Buffer<u8>>,
}

/// The layout of values in a column with nulls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Layout {
    /// One value per row; a null's is zero or empty. This is Arrow's layout.
    #[default]
    Spaced,
    /// Only the values that are not null, in order. This is the file's layout.
    Dense,
}

impl Release for ColumnBatch {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        (self.rows, self.nulls) = (0, 0);
        release_all(&mut [&mut self.validity, &mut self.values, &mut self.levels], budget)
    }
}

impl Release for Levels {
    fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        release_all(&mut [&mut self.definition, &mut self.repetition], budget)
    }
}

impl ColumnBatch {
    /// True when the row is null.
    #[inline]
    pub fn is_null(&self, row: usize) -> bool {
        self.validity.as_ref().is_some_and(|validity| !validity.get(row))
    }

    /// Some of its rows.
    ///
    /// # Panics
    ///
    /// When the range reaches beyond the rows, as for slices.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> ColumnBatch {
        assert!(range.start <= range.end && range.end <= self.rows, "rows {range:?} of {}", self.rows);
        if let Some(levels) = &self.levels {
            return self.slice_nested(levels, range);
        }
        let ones = |range: Range<usize>| match &self.validity {
            Some(validity) => {
                let first = validity.offset() + range.start;
                // `Bitmap` has as many bits as it says.
                marquetry_kernels::bits::count_ones(validity.bytes(), first, range.len()).unwrap_or(0)
            }
            None => range.len(),
        };
        let there = ones(range.clone());
        let values = match self.layout {
            Layout::Spaced => range.clone(),
            Layout::Dense => {
                let before = ones(0..range.start);
                before..before + there
            }
        };
        let nulls = range.len() - there;
        ColumnBatch {
            leaf: self.leaf,
            rows: range.len(),
            nulls,
            validity: self.validity.as_ref().filter(|_| nulls > 0).map(|validity| validity.slice(range)),
            values: self.values.slice(values),
            layout: self.layout,
            levels: None,
            provisional: self.provisional,
        }
    }

    fn slice_nested(&self, levels: &Levels, range: Range<usize>) -> ColumnBatch {
        let entries = match &levels.repetition {
            None => range.clone(),
            Some(repetition) => {
                // Where a row begins; the end, for the one after the last.
                let start_of =
                    |row: usize| kernel::find_below(repetition, 1, row).unwrap_or(repetition.len());
                let start = start_of(range.start);
                start..if range.is_empty() { start } else { start_of(range.end) }
            }
        };
        // An entry has a value if its definition level is the leaf's maximum. That isn't known here, but follows from
        // the number of values: a batch without values has none in any part.
        let largest = levels.definition.iter().max().filter(|_| !self.values.is_empty());
        let there = |entries: Range<usize>| {
            largest.map_or(0, |&largest| kernel::count(&levels.definition[entries], largest))
        };
        let before = there(0..entries.start);
        let values = there(entries.clone());
        self.part_of_nested(levels, range.len(), entries, before..before + values)
    }

    /// Splits the batch of a nested leaf in two: the first `rows`, with their `entries` and `values`, and the rest.
    pub(crate) fn split_nested(
        &self,
        levels: &Levels,
        rows: usize,
        entries: usize,
        values: usize,
    ) -> (ColumnBatch, ColumnBatch) {
        let (all_entries, all_values) = (levels.definition.len(), self.values.len());
        (
            self.part_of_nested(levels, rows, 0..entries, 0..values),
            self.part_of_nested(levels, self.rows - rows, entries..all_entries, values..all_values),
        )
    }

    /// Some rows of a nested leaf: these entries, and these values.
    pub(crate) fn part_of_nested(
        &self,
        levels: &Levels,
        rows: usize,
        entries: Range<usize>,
        values: Range<usize>,
    ) -> ColumnBatch {
        ColumnBatch {
            leaf: self.leaf,
            rows,
            nulls: entries.len() - values.len(),
            validity: None,
            values: self.values.slice(values),
            layout: self.layout,
            levels: Some(Levels {
                definition: levels.definition.slice(entries.clone()),
                repetition: levels.repetition.as_ref().map(|repetition| repetition.slice(entries)),
            }),
            provisional: self.provisional,
        }
    }
}
