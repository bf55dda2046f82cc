//! Comparing two tables.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Error, Result};
use marquetry_parquet::batch::{Batch, ColumnBatch, Values};
use marquetry_parquet::schema::{Leaf, Schema};

use crate::detached::detached_column;
use crate::entries::{Entries, is_same_value};
use crate::{Cancel, Reading, ReadingOptions, Source};

/// How two tables are compared.
///
/// ```
/// let mut options = marquetry_tables::DiffOptions::default();
/// options.rows_shown = 10;
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DiffOptions {
    /// How many of the first differing rows are kept for each column.
    pub rows_shown: usize,
    /// Cancels the comparison.
    pub cancel: Cancel,
}

impl Default for DiffOptions {
    fn default() -> DiffOptions {
        DiffOptions { rows_shown: 3, cancel: Cancel::new() }
    }
}

/// The differences of two tables. Each pair has the first table's item, then the second's.
///
/// [`diff`] has an example.
///
/// ```
/// assert!(marquetry_tables::Differences::default().is_none());
/// ```
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Differences {
    /// Rows that both have.
    pub compared: u64,
    /// The numbers of rows, if they differ.
    pub rows: Option<[u64; 2]>,
    /// Columns that only the first table has, and columns that only the second has.
    pub only: [Vec<String>; 2],
    /// Columns whose types differ, with these types.
    pub types: Vec<(String, [String; 2])>,
    /// Columns whose values differ.
    pub values: Vec<ColumnDifference>,
}

/// A column whose values differ in some rows.
#[derive(Debug)]
#[non_exhaustive]
pub struct ColumnDifference {
    /// Its name.
    pub name: String,
    /// Its index among the columns of each table.
    pub column: [usize; 2],
    /// Rows that differ.
    pub rows: u64,
    /// The first of them: the row's number in both tables, and the column of each in that row: a batch of one row, whose leaves
    /// are the column's.
    pub shown: Vec<(u64, [Batch; 2])>,
}

impl Differences {
    /// True if there are no differences.
    pub fn is_none(&self) -> bool {
        self.rows.is_none()
            && self.only.iter().all(Vec::is_empty)
            && self.types.is_empty()
            && self.values.is_empty()
    }
}

/// Compares two tables, row by row, in order. Columns are equal if their names and types are, values if their bits
/// are: NaN equals itself, and 0 differs from −0. How files are written (encodings, codecs, pages, row groups) makes
/// no difference. `report` receives the number of rows compared so far.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use marquetry_tables::files::{Files, FilesOptions};
/// use marquetry_tables::{DiffOptions, Source, diff};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let open = |path: &str| -> marquetry_base::Result<Arc<dyn Source>> {
///     Ok(Arc::new(Files::open([path], &FilesOptions::default())?))
/// };
/// let found = diff([&open("a.parquet")?, &open("b.parquet")?], &DiffOptions::default(), &mut |_| {})?;
/// for column in &found.values {
///     println!("{} differs in {} rows", column.name, column.rows);
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// The sources' errors; [`Cancelled`](marquetry_base::ErrorKind::Cancelled).
pub fn diff(
    [a, b]: [&Arc<dyn Source>; 2],
    options: &DiffOptions,
    report: &mut dyn FnMut(u64),
) -> Result<Differences> {
    let (mut found, mut columns) = compare_schemas(&a.table().schema, &b.table().schema);
    let known = a.table().rows.zip(b.table().rows);
    let (mut a, mut b) = (Side::new(a, options)?, Side::new(b, options)?);
    let mut done = 0;
    while a.fill()? && b.fill()? {
        let rows = a.left().min(b.left());
        for column in &mut columns {
            let mut differing = Vec::new();
            for (a_leaf, b_leaf) in column.leaves[0].clone().zip(column.leaves[1].clone()) {
                differing.extend(differing_rows(&a.leaf(a_leaf, rows)?, &b.leaf(b_leaf, rows)?));
            }
            differing.sort_unstable();
            differing.dedup();
            column.difference.rows += u64_of(differing.len());
            let room = options.rows_shown.saturating_sub(column.difference.shown.len());
            for row in differing.into_iter().take(room) {
                let [in_a, in_b] = &column.leaves;
                let shown = [a.row(row, in_a.clone())?, b.row(row, in_b.clone())?];
                column.difference.shown.push((done + u64_of(row), shown));
            }
        }
        a.at += rows;
        b.at += rows;
        done += u64_of(rows);
        report(done);
    }
    // Of text it is known only now.
    let rows = match known {
        Some((in_a, in_b)) => [in_a, in_b],
        None => [done + a.rest()?, done + b.rest()?],
    };
    found.rows = (rows[0] != rows[1]).then_some(rows);
    found.compared = done;
    let differs = |difference: &ColumnDifference| difference.rows > 0;
    found.values = columns.into_iter().map(|column| column.difference).filter(differs).collect();
    Ok(found)
}

/// A column that both tables have, in the same types.
struct Column {
    /// Its leaves in each.
    leaves: [Range<usize>; 2],
    difference: ColumnDifference,
}

/// A column's name, its number and its leaves.
fn columns(schema: &Schema) -> Vec<(&str, usize, Range<usize>)> {
    let column = |(at, node): (usize, usize)| {
        let leaves: Vec<usize> = schema.leaves_of(node).collect();
        let range = leaves.first().map_or(0..0, |first| *first..first + leaves.len());
        (&*schema.nodes()[node].name, at, range)
    };
    schema.children(0).enumerate().map(column).collect()
}

fn compare_schemas(a: &Schema, b: &Schema) -> (Differences, Vec<Column>) {
    let mut found = Differences::default();
    let (in_a, in_b) = (columns(a), columns(b));
    let by_name: HashMap<&str, usize> = in_b.iter().enumerate().map(|(at, column)| (column.0, at)).collect();
    let names: HashSet<&str> = in_a.iter().map(|column| column.0).collect();
    let of = |names: &mut dyn Iterator<Item = &str>| names.map(str::to_string).collect();
    found.only = [
        of(&mut in_a.iter().map(|column| column.0).filter(|name| !by_name.contains_key(name))),
        of(&mut in_b.iter().map(|column| column.0).filter(|name| !names.contains(name))),
    ];
    let mut both = Vec::new();
    for (name, a_at, a_leaves) in &in_a {
        let Some((_, b_at, b_leaves)) = by_name.get(name).and_then(|at| in_b.get(*at)) else { continue };
        let types = |schema: &Schema, leaves: &Range<usize>| {
            let types: Vec<String> =
                leaves.clone().map(|leaf| type_of(schema, &schema.leaves()[leaf])).collect();
            types.join(", ")
        };
        let [in_a, in_b] = [types(a, a_leaves), types(b, b_leaves)];
        if in_a == in_b {
            let (name, column) = (name.to_string(), [*a_at, *b_at]);
            let difference = ColumnDifference { name, column, rows: 0, shown: Vec::new() };
            both.push(Column { leaves: [a_leaves.clone(), b_leaves.clone()], difference });
        } else {
            found.types.push((name.to_string(), [in_a, in_b]));
        }
    }
    (found, both)
}

/// A leaf's type and what is around it, below its column.
fn type_of(schema: &Schema, leaf: &Leaf) -> String {
    let node = schema.node_of(leaf);
    let mut text = format!("{} {}", node.repetition, leaf.physical_type);
    if let Some(logical_type) = &node.logical_type {
        text += &format!(" {logical_type}");
    }
    if leaf.definition_max > 1 || leaf.repetition_max > 0 {
        let path = schema.path(leaf.node);
        let below = path.split_once('.').map_or("", |(_, below)| below);
        text += &format!(" ({below}, levels up to {} and {})", leaf.definition_max, leaf.repetition_max);
    }
    text
}

/// One of the tables: the batch at hand, and its next row.
struct Side {
    reading: Reading,
    batch: Option<Batch>,
    at: usize,
}

impl Side {
    fn new(source: &Arc<dyn Source>, options: &DiffOptions) -> Result<Side> {
        let reading = ReadingOptions { cancel: options.cancel.clone(), ..ReadingOptions::default() };
        Ok(Side { reading: Reading::new(Arc::clone(source), reading)?, batch: None, at: 0 })
    }

    /// Passes over the rows that are left; returns how many they are.
    fn rest(&mut self) -> Result<u64> {
        let mut rows = 0;
        while self.fill()? {
            rows += u64_of(self.left());
            self.at += self.left();
        }
        Ok(rows)
    }

    fn left(&self) -> usize {
        self.batch.as_ref().map_or(0, |batch| batch.rows - self.at)
    }

    /// Makes sure that there is a row; false at the end.
    fn fill(&mut self) -> Result<bool> {
        while self.left() == 0 {
            (self.batch, self.at) = (self.reading.next_batch()?.map(|(_, batch)| batch), 0);
            if self.batch.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The next rows of a leaf.
    fn leaf(&self, leaf: usize, rows: usize) -> Result<ColumnBatch> {
        let column = self.batch.as_ref().and_then(|batch| batch.columns.get(leaf));
        let column = column.ok_or_else(|| Error::internal("a leaf that no batch has"))?;
        Ok(column.slice(self.at..self.at + rows))
    }

    /// A row from the next one on, copied out of its batch.
    fn row(&self, row: usize, leaves: Range<usize>) -> Result<Batch> {
        let batch = self.batch.as_ref().ok_or_else(|| Error::internal("a row of no batch"))?;
        let row = self.at + row;
        let columns = batch.columns.get(leaves).ok_or_else(|| Error::internal("a leaf that no batch has"))?;
        let columns = columns.iter().enumerate().map(|(leaf, column)| {
            let mut column = detached_column(&column.slice(row..row + 1));
            column.leaf = leaf;
            column
        });
        let first_row = batch.first_row + u64_of(row);
        Ok(Batch { row_group: batch.row_group, first_row, rows: 1, columns: columns.collect() })
    }
}

/// The rows in which the same leaf differs in two batches of as many rows.
fn differing_rows(a: &ColumnBatch, b: &ColumnBatch) -> Vec<usize> {
    if is_same(a, b) {
        return Vec::new();
    }
    let (mut a, mut b) = (Entries::of(a), Entries::of(b));
    let mut differing = Vec::new();
    for row in 0..a.column().rows {
        let (in_a, in_b) = (a.row(row), b.row(row));
        let is_same = in_a.len() == in_b.len()
            && in_a.clone().zip(in_b.clone()).all(|(at_a, at_b)| {
                let levels = |entries: &Entries<'_>, at: usize| {
                    entries.column().levels.as_ref().map(|levels| {
                        (levels.definition[at], levels.repetition.as_ref().map(|levels| levels[at]))
                    })
                };
                let values = (a.value_of(at_a), b.value_of(at_b));
                levels(&a, at_a) == levels(&b, at_b)
                    && match values {
                        (None, None) => true,
                        (Some(at_a), Some(at_b)) => {
                            is_same_value((&a.column().values, at_a), (&b.column().values, at_b))
                        }
                        _ => false,
                    }
            });
        if !is_same {
            differing.push(row);
        }
    }
    differing
}

/// True where two batches hold the same, and one look is enough to see it.
fn is_same(a: &ColumnBatch, b: &ColumnBatch) -> bool {
    let is_same_validity = match (&a.validity, &b.validity) {
        (None, None) => true,
        (Some(a), Some(b)) => a.iter().eq(b.iter()),
        _ => false,
    };
    is_same_validity
        && a.layout == b.layout
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
        let mut bits = vec![0u8; rows.div_ceil(8)];
        (0..rows).filter(|row| !nulls.contains(row)).for_each(|row| bits[row / 8] |= 1 << (row % 8));
        ColumnBatch {
            leaf: 0,
            rows,
            nulls: nulls.len(),
            validity: (!nulls.is_empty()).then(|| marquetry_base::Bitmap::new(bits.into(), 0, rows)),
            values: Values::Int32(values.into()),
            layout,
            levels: None,
            provisional: false,
        }
    }

    #[test]
    fn where_values_stand_makes_no_difference() {
        let dense = ints(vec![1, 2, 3], &[1], Layout::Dense);
        let spaced = ints(vec![1, 9, 2, 3], &[1], Layout::Spaced);
        assert!(differing_rows(&dense, &spaced).is_empty());
        assert_eq!(differing_rows(&dense, &ints(vec![1, 9, 2, 4], &[1], Layout::Spaced)), [3]);
        assert_eq!(differing_rows(&dense, &ints(vec![1, 9, 2, 3], &[2], Layout::Spaced)), [1, 2]);
        // What a null's slot holds means nothing.
        assert!(differing_rows(&spaced, &ints(vec![1, 7, 2, 3], &[1], Layout::Spaced)).is_empty());
    }

    #[test]
    fn bits_are_compared() {
        let doubles = |value: f64| {
            let mut column = ints(vec![0], &[], Layout::Dense);
            column.values = Values::Double(vec![value].into());
            column
        };
        assert!(differing_rows(&doubles(f64::NAN), &doubles(f64::NAN)).is_empty());
        assert_eq!(differing_rows(&doubles(0.0), &doubles(-0.0)), [0]);
    }
}
