//! Comparing two tables: by value, in order or by key.

mod cells;
mod exact;
mod forms;
mod found;
mod leaves;
mod missing;
mod numbers;
mod options;
mod schemas;
mod sides;
mod text;
mod tokens;
mod values;

use std::sync::Arc;

use marquetry_base::Result;
use marquetry_base::cast::u64_of;
use marquetry_parquet::schema::Schema;

use crate::Source;
pub use found::{ColumnDifference, Differences, DifferentRow, RowDifferences, RowId, SchemaDifferences};
pub use missing::missing;
pub use options::DiffOptions;
use schemas::{ColumnPair, VariantPair};
use sides::{Key, Matched, Side};
use text::Texts;
use tokens::TokenOrder;

/// Compares two tables by value.
///
/// * Columns are matched by name, at every level, whatever their order. Their types may differ if their values can be compared
///   exactly: integers with all integers, decimals and floats; decimals of any scale; floats of any width; times of any unit,
///   adjusted to UTC or not, and INT96; text with text; bytes with text and all else that is held in bytes; UUIDs with
///   their text; decimals and varints of CQL that are text, as numbers (but not in a key). Nullability, and the spelling of lists and maps, make no difference to values.
/// * All NaNs are equal, and 0 equals −0. Lists, and the entries of maps, are compared in order; a VARIANT, wherever it is, as the
///   JSON that it stands for.
/// * Rows are compared in order, or by [key](DiffOptions::key): then both tables are sorted, in bounded memory. Of several rows with
///   the same key, the first is compared with the first, and so on. Null keys equal each other.
/// * Tables of clusters and of SSTables (in the mapping `logical`), whose rows come [in the order of tokens](crate::Table::is_in_token_order), are matched by their key as they come, if
///   they have the same: they are not sorted, and a column of the key may be nested, too.
/// * A value of a table of ScyllaDB or Cassandra that columns of Parquet cannot hold (an `int` of no bytes) is null when it is compared. Such values are
///   [counted](Differences::lost), and tables with other numbers of them are not equal.
/// * How files are written (encodings, codecs, pages, row groups) makes no difference.
///
/// `report` receives the number of rows passed so far: each row of either table counts when it is compared, and by key also
/// when it is sorted.
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
/// The sources' errors; `Misuse` for a key that a table lacks, or that has no order;
/// [`Cancelled`](marquetry_base::ErrorKind::Cancelled).
pub fn diff(
    sources: [&Arc<dyn Source>; 2],
    options: &DiffOptions,
    report: &mut dyn FnMut(u64),
) -> Result<Differences> {
    let tables = sources.map(|source| source.table());
    let paired = schemas::pair(tables, options)?;
    let tokens = TokenOrder::of(tables, &options.key, &options.limits);
    let key = Key::resolve(options, tables, tokens.as_ref())?;
    let mut found = Differences { schema: paired.differences, ..Differences::default() };
    let mut columns = Vec::with_capacity(paired.columns.len());
    for pair in paired.columns {
        columns.push(Column::new(pair, tables.map(|table| (&table.schema, &*table.name)), options)?);
    }
    let mut passed = 0;
    let mut pass = |rows: u64| {
        passed += rows;
        report(passed);
    };
    let by = key.as_ref().map(|key| (key, tokens.as_ref()));
    let mut side = |side: usize| Side::new(sources[side], by, side, options, &mut pass);
    let mut sides = [side(0)?, side(1)?];
    while sides[0].fill()? && sides[1].fill()? {
        options.cancel.check()?;
        let matched = match &key {
            Some(_) => Matched::by_key(&mut sides)?,
            None => Matched::in_order(&mut sides),
        };
        let mut comparison = Comparison {
            sides: &sides,
            matched: &matched,
            rows: &mut found.rows,
            options,
            is_keyed: key.is_some(),
        };
        comparison.only()?;
        comparison.columns(&mut columns)?;
        pass(matched.rows.iter().map(|rows| u64_of(rows.len())).sum());
    }
    let known = tables[0].rows.zip(tables[1].rows).filter(|_| key.is_none());
    for (side, rows) in sides.iter_mut().enumerate() {
        let compared = found.rows.compared;
        if let Some(known) = known {
            found.rows.only[side] = [known.0, known.1][side].saturating_sub(compared);
            continue;
        }
        while rows.fill()? {
            let rest = Matched::rest(rows, key.is_some())?;
            found.rows.only[side] += u64_of(rest.len());
            let room = options.rows_shown.saturating_sub(found.rows.only_shown[side].len());
            if key.is_some() {
                for row in rest.clone().take(room) {
                    found.rows.only_shown[side].push(rows.key_of(row)?);
                }
            }
            pass(u64_of(rest.len()));
        }
    }
    found.rows.total = [0, 1].map(|side: usize| found.rows.compared + found.rows.only[side]);
    found.rows.repeated_keys = [sides[0].repeated_keys, sides[1].repeated_keys];
    found.sorted_by_way_of = key
        .as_ref()
        .filter(|_| tokens.is_none())
        .map(|_| sides[0].spilled_bytes() + sides[1].spilled_bytes());
    found.key = key.map(|key| key.schemas);
    found.lost = options.lost.clone();
    let differs = |difference: &ColumnDifference| difference.rows > 0;
    found.values = columns.into_iter().map(|column| column.difference).filter(differs).collect();
    Ok(found)
}

/// A column that both tables have, and how it differs so far.
struct Column {
    pair: ColumnPair,
    /// The JSON of each VARIANT in it.
    texts: Vec<[Texts; 2]>,
    difference: ColumnDifference,
}

impl Column {
    fn new(pair: ColumnPair, tables: [(&Arc<Schema>, &str); 2], options: &DiffOptions) -> Result<Column> {
        let difference =
            ColumnDifference { name: pair.name.clone(), column: pair.column, rows: 0, shown: Vec::new() };
        let mut texts = Vec::with_capacity(pair.variants.len());
        for VariantPair { nodes, .. } in &pair.variants {
            let text = |side: usize| Texts::new(tables[side], nodes[side], &options.limits);
            texts.push([text(0)?, text(1)?]);
        }
        Ok(Column { pair, texts, difference })
    }

    /// Marks the rows, among those of the first table that were looked at, whose values differ.
    fn mark(&mut self, sides: &[Side; 2], matched: &Matched, marks: &mut [bool]) -> Result<()> {
        if let Some(cells) = &self.pair.cells {
            let part = |side: usize| sides[side].leaves(&cells.leaves(side), matched.rows[side].clone());
            return cells.mark([part(0)?, part(1)?], &matched.runs, marks);
        }
        for (VariantPair { leaves: [in_a, in_b], .. }, [a, b]) in
            self.pair.variants.iter().zip(&mut self.texts)
        {
            a.print(&sides[0].part(in_a.clone(), matched.rows[0].clone())?)?;
            b.print(&sides[1].part(in_b.clone(), matched.rows[1].clone())?)?;
            for run in &matched.runs {
                for row in 0..run.rows {
                    if let Some(mark) = marks.get_mut(run.at[0] + row) {
                        *mark |= a.row(run.at[0] + row) != b.row(run.at[1] + row);
                    }
                }
            }
        }
        for pair in &self.pair.pairs {
            let a = sides[0].leaf(pair.leaves[0], matched.rows[0].clone())?;
            let b = sides[1].leaf(pair.leaves[1], matched.rows[1].clone())?;
            pair.mark([&a, &b], &matched.runs, marks);
        }
        Ok(())
    }
}

/// Marks the rows, among those of the first table that were looked at, that differ in any column.
fn mark_changed(
    columns: &mut [Column],
    sides: &[Side; 2],
    matched: &Matched,
    changed: &mut [bool],
) -> Result<()> {
    columns.iter_mut().try_for_each(|column| column.mark(sides, matched, changed))
}

/// Rows that were matched, and what is found in them.
struct Comparison<'a> {
    sides: &'a [Side; 2],
    matched: &'a Matched,
    rows: &'a mut RowDifferences,
    options: &'a DiffOptions,
    is_keyed: bool,
}

impl Comparison<'_> {
    /// Counts the rows that only one table has.
    fn only(&mut self) -> Result<()> {
        for (side, only) in self.matched.only.iter().enumerate() {
            self.rows.only[side] += u64_of(only.len());
            let shown = &mut self.rows.only_shown[side];
            for row in only.iter().take(self.options.rows_shown.saturating_sub(shown.len())) {
                shown.push(self.sides[side].key_of(*row)?);
            }
        }
        Ok(())
    }

    /// Compares the columns of the rows that both have.
    fn columns(&mut self, columns: &mut [Column]) -> Result<()> {
        let looked_at = self.matched.rows[0].len();
        let mut changed = vec![false; looked_at];
        let mut marks = vec![false; looked_at];
        for column in columns {
            column.mark(self.sides, self.matched, &mut marks)?;
            if !marks.contains(&true) {
                continue;
            }
            let mut before = 0;
            for run in &self.matched.runs {
                for row in (0..run.rows).filter(|row| marks[run.at[0] + row]) {
                    changed[run.at[0] + row] = true;
                    column.difference.rows += 1;
                    if column.difference.shown.len() < self.options.rows_shown {
                        let rows =
                            [0, 1].map(|side: usize| self.matched.rows[side].start + run.at[side] + row);
                        let number = self.rows.compared + u64_of(before + row);
                        column.difference.shown.push(self.shown(&column.pair, rows, number)?);
                    }
                }
                before += run.rows;
            }
            marks.fill(false);
        }
        self.rows.compared += self.matched.runs.iter().map(|run| u64_of(run.rows)).sum::<u64>();
        self.rows.changed += u64_of(changed.iter().filter(|is_changed| **is_changed).count());
        Ok(())
    }

    fn shown(&self, pair: &ColumnPair, rows: [usize; 2], number: u64) -> Result<DifferentRow> {
        let [a, b] = self.sides;
        let id = if self.is_keyed { a.key_of(rows[0])? } else { RowId::Number(number) };
        let [in_a, in_b] = &pair.leaves;
        Ok(DifferentRow { id, values: [a.row(in_a.clone(), rows[0])?, b.row(in_b.clone(), rows[1])?] })
    }
}
