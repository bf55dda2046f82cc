//! `marquetry diff`: whether two tables are the same, and where they are not.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::PathBuf;

use clap::Args;

use marquetry_base::cast::u64_of;
use marquetry_parquet::batch::{Batch, ColumnBatch, Layout, Values};
use marquetry_parquet::schema::{Leaf, Schema};

use crate::dataset::{DataFile, Dataset, Rows, TableArgs};
use crate::failure::{Failure, Outcome};
use crate::numbers::{plural, thousands};
use crate::output::{Interrupted, Output};
use crate::progress::{Goes, Progress};
use crate::rows::RowText;
use crate::table::printable;

/// Say where two tables differ
#[derive(Debug, Args)]
#[command(
    long_about = "Say where two tables differ.

Columns are the same where their names and types are, values where their bits are: NaN equals itself, and 0 is not -0. Rows are \
compared in their order. How files are made (encodings, codecs, pages, row groups) makes no difference.

Of each column that differs it is said in how many rows, and what the first of them hold. The exit code is 1 where there is a \
difference.",
    after_help = "\
Examples:
  marquetry diff trips.parquet copy.parquet
  marquetry diff trips/ 'copies/*.parquet' --columns id,fare"
)]
pub(crate) struct Diff {
    /// A Parquet file, a directory of them, or a pattern; or CSV or JSON lines
    #[arg(value_name = "A")]
    a: PathBuf,

    /// Another
    #[arg(value_name = "B")]
    b: PathBuf,

    #[command(flatten)]
    table: TableArgs,

    /// Rows to show of each column that differs
    #[arg(long, value_name = "N", default_value_t = 3)]
    show: usize,

    /// No progress bar
    #[arg(long, short)]
    quiet: bool,
}

impl Diff {
    pub(crate) fn run(&self, interrupted: Interrupted) -> Outcome {
        let open = |path: &PathBuf| Dataset::open(std::slice::from_ref(path), &self.table, &interrupted);
        let (a, b) = (open(&self.a)?, open(&self.b)?);
        let (a_name, b_name) = (self.a.to_string_lossy(), self.b.to_string_lossy());
        let (a_name, b_name) = (printable(&a_name), printable(&b_name));
        let found = compare([&a, &b], None, self.show, self.quiet, &interrupted)?;
        let mut output = Output::new(interrupted);
        if found.is_none() {
            let columns = plural(a.names.len(), "column");
            let line = format!("the same: {} rows of {columns}\n", thousands(found.compared));
            output.text().extend_from_slice(line.as_bytes());
            return output.flush();
        }
        output.text().extend_from_slice(found.lines(&a_name, &b_name).as_bytes());
        output.flush()?;
        Err(Failure::refused(format!("{a_name} and {b_name} differ")))
    }
}

/// Where two tables differ.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    /// Rows that both have.
    compared: u64,
    /// Rows, where one has more than the other.
    rows: Option<[u64; 2]>,
    /// Columns that only the first, or only the second has.
    only: [Vec<String>; 2],
    /// Leaves of other types, and what these are.
    types: Vec<(String, [String; 2])>,
    /// Columns whose values differ.
    values: Vec<ColumnDifference>,
}

/// A column whose values differ in some rows.
#[derive(Debug)]
struct ColumnDifference {
    name: String,
    rows: u64,
    /// The first of them, and the two values.
    shown: Vec<(u64, [String; 2])>,
}

impl Differences {
    /// True where there are none.
    pub(crate) fn is_none(&self) -> bool {
        self.rows.is_none()
            && self.only.iter().all(Vec::is_empty)
            && self.types.is_empty()
            && self.values.is_empty()
    }

    /// What a person is told.
    pub(crate) fn lines(&self, a: &str, b: &str) -> String {
        let mut text = String::new();
        let mut line = |line: String| text.push_str(&(line + "\n"));
        for (names, table) in self.only.iter().zip([a, b]) {
            names.iter().for_each(|name| line(format!("column {}: only in {table}", printable(name))));
        }
        for (path, [in_a, in_b]) in &self.types {
            line(format!("column {}: {in_a} in {a}, {in_b} in {b}", printable(path)));
        }
        if let Some([in_a, in_b]) = self.rows {
            line(format!("rows: {} in {a}, {} in {b}", thousands(in_a), thousands(in_b)));
        }
        for column in &self.values {
            let rows = match column.rows {
                1 => "1 row differs".to_string(),
                rows => format!("{} rows differ", thousands(rows)),
            };
            line(format!("column {}: {rows}", printable(&column.name)));
            for (row, [in_a, in_b]) in &column.shown {
                line(format!("  row {row}: {} in {a}", printable(in_a)));
                line(format!("  row {row}: {} in {b}", printable(in_b)));
            }
        }
        text
    }
}

/// Compares two tables, of the first as many rows as a limit leaves; of the values of each column that differs so many rows are kept.
pub(crate) fn compare(
    [a, b]: [&Dataset; 2],
    limit: Option<u64>,
    shown: usize,
    quiet: bool,
    interrupted: &Interrupted,
) -> Outcome<Differences> {
    let (mut found, mut columns) = compare_schemas(a.schema(), b.schema());
    let known = a.known_rows(limit).zip(b.known_rows(None));
    let progress = Progress::new(a.rows(limit).min(b.rows(None)), quiet, Goes::Elsewhere);
    let (mut a, mut b) = (Side::new(a, limit), Side::new(b, None));
    let mut done = 0;
    while a.fill()? && b.fill()? {
        interrupted.check()?;
        let rows = a.left().min(b.left());
        for column in &mut columns {
            let mut differing = Vec::new();
            for (a_leaf, b_leaf) in column.leaves[0].clone().zip(column.leaves[1].clone()) {
                differing.extend(differing_rows(&a.leaf(a_leaf, rows)?, &b.leaf(b_leaf, rows)?));
            }
            differing.sort_unstable();
            differing.dedup();
            column.difference.rows += u64_of(differing.len());
            for row in differing {
                if column.difference.shown.len() == shown {
                    break;
                }
                let texts = [a.text(column.at[0], row)?, b.text(column.at[1], row)?];
                column.difference.shown.push((done + u64_of(row), texts));
            }
        }
        a.at += rows;
        b.at += rows;
        done += u64_of(rows);
        progress.rows(done);
    }
    progress.clear();
    // Of text it is known only now.
    let rows = match known {
        Some((in_a, in_b)) => [in_a, in_b],
        None => [done + a.rest()?, done + b.rest()?],
    };
    found.rows = (rows[0] != rows[1]).then_some(rows);
    found.compared = done;
    found.values = columns
        .into_iter()
        .map(|column| column.difference)
        .filter(|difference| difference.rows > 0)
        .collect();
    Ok(found)
}

/// A column that both tables have, in the same types.
struct Column {
    /// Its number among the columns of each, and its leaves there.
    at: [usize; 2],
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
            let difference = ColumnDifference { name: name.to_string(), rows: 0, shown: Vec::new() };
            both.push(Column {
                at: [*a_at, *b_at],
                leaves: [a_leaves.clone(), b_leaves.clone()],
                difference,
            });
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
        let below = leaf.path.split_once('.').map_or("", |(_, below)| below);
        text += &format!(" ({below}, levels up to {} and {})", leaf.definition_max, leaf.repetition_max);
    }
    text
}

/// One of the tables: the batch at hand, and its next row.
struct Side<'a> {
    dataset: &'a Dataset,
    files: std::slice::Iter<'a, DataFile>,
    open: Option<(&'a DataFile, Rows)>,
    batch: Option<Batch>,
    at: usize,
    /// Rows that are still to be read, where a limit says so.
    wanted: Option<u64>,
    text: Option<RowText>,
}

impl<'a> Side<'a> {
    fn new(dataset: &'a Dataset, limit: Option<u64>) -> Side<'a> {
        let files = dataset.files().iter();
        Side { dataset, files, open: None, batch: None, at: 0, wanted: limit, text: None }
    }

    /// Passes over the rows that are left; says how many they are.
    fn rest(&mut self) -> Outcome<u64> {
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
    fn fill(&mut self) -> Outcome<bool> {
        while self.left() == 0 {
            (self.batch, self.at) = (None, 0);
            if let Some((file, rows)) = &mut self.open {
                self.batch = rows.next().map_err(|error| file.failure(&error))?;
                if let Some(batch) = &self.batch {
                    self.wanted = self.wanted.map(|wanted| wanted.saturating_sub(u64_of(batch.rows)));
                    continue;
                }
            }
            let Some(file) = self.files.next().filter(|_| self.wanted != Some(0)) else { return Ok(false) };
            self.open = Some((file, self.dataset.read(file, self.wanted, false)?));
        }
        Ok(true)
    }

    /// The next rows of a leaf.
    fn leaf(&self, leaf: usize, rows: usize) -> Outcome<ColumnBatch> {
        let column = self.batch.as_ref().and_then(|batch| batch.columns.get(leaf));
        let column = column.ok_or_else(|| Failure::bug("a leaf that no batch has"))?;
        Ok(column.slice(self.at..self.at + rows))
    }

    /// A column's value in a row from the next one on.
    fn text(&mut self, column: usize, row: usize) -> Outcome<String> {
        let (Some(batch), Some((file, _))) = (&self.batch, &self.open) else {
            return Err(Failure::bug("a row of no batch"));
        };
        let text = match &mut self.text {
            Some(text) => text,
            none => none.insert(RowText::new(self.dataset)?),
        };
        text.of(self.dataset, file, batch, self.at + row, column)
    }
}

/// The rows in which the same leaf differs in two batches of as many rows.
fn differing_rows(a: &ColumnBatch, b: &ColumnBatch) -> Vec<usize> {
    if is_same(a, b) {
        return Vec::new();
    }
    let (mut a, mut b) = (Entries::of(a), Entries::of(b));
    let mut differing = Vec::new();
    for row in 0..a.column.rows {
        let (in_a, in_b) = (a.row(row), b.row(row));
        let is_same = in_a.len() == in_b.len()
            && in_a.clone().zip(in_b.clone()).all(|(at_a, at_b)| {
                let levels = |entries: &Entries<'_>, at: usize| {
                    entries.column.levels.as_ref().map(|levels| {
                        (levels.definition[at], levels.repetition.as_ref().map(|levels| levels[at]))
                    })
                };
                let values = (a.value_of(at_a), b.value_of(at_b));
                levels(&a, at_a) == levels(&b, at_b)
                    && match values {
                        (None, None) => true,
                        (Some(at_a), Some(at_b)) => {
                            is_same_value(&a.column.values, at_a, &b.column.values, at_b)
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

fn is_same_value(a: &Values, at_a: usize, b: &Values, at_b: usize) -> bool {
    match (a, b) {
        (Values::Boolean(a), Values::Boolean(b)) => a.get(at_a) == b.get(at_b),
        (Values::Int32(a), Values::Int32(b)) => a[at_a] == b[at_b],
        (Values::Int64(a), Values::Int64(b)) => a[at_a] == b[at_b],
        (Values::Float(a), Values::Float(b)) => a[at_a].to_bits() == b[at_b].to_bits(),
        (Values::Double(a), Values::Double(b)) => a[at_a].to_bits() == b[at_b].to_bits(),
        (Values::ByteArray(a), Values::ByteArray(b)) => a.get(at_a) == b.get(at_b),
        (Values::Int96(a), Values::Int96(b))
        | (Values::FixedLenByteArray(a), Values::FixedLenByteArray(b)) => a.get(at_a) == b.get(at_b),
        _ => false,
    }
}

/// Where the rows of a batch are, one after the other.
pub(crate) struct Entries<'a> {
    column: &'a ColumnBatch,
    /// The entry that comes next, and of each entry where its value is.
    next: usize,
    values: Vec<Option<usize>>,
}

impl<'a> Entries<'a> {
    pub(crate) fn of(column: &'a ColumnBatch) -> Entries<'a> {
        let is_there: Vec<bool> = match &column.levels {
            // The largest definition level that stands here is that of values, unless there are none.
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

    /// An entry's definition level, and its repetition level behind that; 0 of a flat column.
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

#[cfg(test)]
mod tests {
    use super::*;

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
