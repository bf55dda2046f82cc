//! The rows of a table that another one lacks, or has otherwise.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use marquetry_base::{Detail, Error, Result};
use marquetry_parquet::batch::Batch;

use super::options::DiffOptions;
use super::schemas;
use super::sides::{Key, Matched, Side};
use super::tokens::TokenOrder;
use super::{Column, mark_changed};
use crate::source::with_unknown_rows;
use crate::subject::named;
use crate::{Batches, Piece, PieceOptions, Source, Table};

/// The rows of `source` that `other` lacks, or has with other values in the columns that both have; by the [key](DiffOptions::key), in its
/// order. It is what makes `other` as `source`, written to it, but for rows that only `other` has.
///
/// Both tables are read and sorted when the piece is opened, in bounded memory; tables of clusters, if they have the same
/// key, are read side by side. Values are compared as [`diff`](crate::diff()) does.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use marquetry_tables::files::{Files, FilesOptions};
/// use marquetry_tables::{ColumnPath, DiffOptions, Source, missing};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let open = |path: &str| -> marquetry_base::Result<Arc<dyn Source>> {
///     Ok(Arc::new(Files::open([path], &FilesOptions::default())?))
/// };
/// let mut options = DiffOptions::default();
/// options.key = ColumnPath::parse_list("day, trip")?;
/// let left = missing(&open("all.parquet")?, &open("some.parquet")?, &options)?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `Misuse` without a key, or for one that a table lacks; `Conversion` for columns whose values cannot be compared. When rows are read:
/// `Conversion` if two rows of the source have one key, because then it is not clear which of them is to be there.
pub fn missing(
    source: &Arc<dyn Source>,
    other: &Arc<dyn Source>,
    options: &DiffOptions,
) -> Result<Arc<dyn Source>> {
    let tables = [source.table(), other.table()];
    let tokens = TokenOrder::of(tables, &options.key, &options.limits).filter(|_| !options.key.is_empty());
    let key = Key::resolve(options, tables, tokens.as_ref())?;
    let key = key.ok_or_else(|| Error::option("key", "rows are matched by a key"))?;
    let paired = schemas::pair(tables, options)?;
    if !paired.differences.incomparable.is_empty() {
        let fields = paired.differences.incomparable.iter();
        let fields: Vec<String> =
            fields.map(|(field, [a, b])| format!("{field} ({a}, and {b} there)")).collect();
        let what =
            format!("values that cannot be compared with those of {}: {}", tables[1].name, fields.join(", "));
        return Err(named(Error::conversion(what).with(Detail::AdmittedBy(&["types"])), &tables[0].name));
    }
    let (mut table, _) = with_unknown_rows(source.table(), &[]);
    (table.order, table.bytes) = (Vec::new(), None);
    let pieces = [Piece { first_row: None, ..Piece::of(table.name.clone()) }];
    let [source, other] = [source, other].map(Arc::clone);
    Ok(Arc::new(Missing { sources: [source, other], key, tokens, options: options.clone(), table, pieces }))
}

struct Missing {
    sources: [Arc<dyn Source>; 2],
    key: Key,
    /// Both come in the order of tokens, and need not be sorted.
    tokens: Option<TokenOrder>,
    options: DiffOptions,
    table: Table,
    pieces: [Piece; 1],
}

impl Source for Missing {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn open(&self, _: usize, options: &PieceOptions) -> Result<Box<dyn Batches>> {
        let mut own = self.options.clone();
        (own.cancel, own.bytes_read) = (options.cancel.clone(), options.bytes_read.clone());
        // Those of the other table count, too: rows of both may seem to be the same.
        own.lost = [options.lost.clone(), options.lost.clone()];
        let tables = [self.sources[0].table(), self.sources[1].table()];
        let mut columns = Vec::new();
        for pair in schemas::pair(tables, &own)?.columns {
            columns.push(Column::new(pair, tables.map(|table| (&table.schema, &*table.name)), &own)?);
        }
        let side = |side: usize| {
            Side::new(&self.sources[side], Some((&self.key, self.tokens.as_ref())), side, &own, &mut |_| {})
        };
        let sides = [side(0)?, side(1)?];
        let name = self.table.name.clone();
        Ok(Box::new(MissingRows { sides, columns, name, found: None, options: own }))
    }
}

struct MissingRows {
    sides: [Side; 2],
    columns: Vec<Column>,
    name: String,
    /// A batch, and the rows of it that are to be handed out.
    found: Option<(Batch, VecDeque<Range<usize>>)>,
    options: DiffOptions,
}

impl Batches for MissingRows {
    fn next(&mut self) -> Result<Option<Batch>> {
        loop {
            if let Some((batch, rows)) = &mut self.found {
                if let Some(rows) = rows.pop_front() {
                    return Ok(Some(batch.slice(rows)));
                }
                self.found = None;
            }
            self.options.cancel.check()?;
            if !self.sides[0].fill()? {
                return Ok(None);
            }
            let rows = if self.sides[1].fill()? {
                self.compared()?
            } else {
                let rest = Matched::rest(&mut self.sides[0], true)?;
                rest.collect()
            };
            if self.sides[0].repeated_keys > 0 {
                let what = "two rows have one key: it is not clear which of them is to be there";
                return Err(named(Error::conversion(what), &self.name));
            }
            self.found = self.sides[0].batch_at_hand().map(|batch| (batch, ranges(rows)));
        }
    }
}

impl MissingRows {
    /// The rows of the batch at hand that the other table lacks or has otherwise, as far as its own batch reaches.
    fn compared(&mut self) -> Result<Vec<usize>> {
        let matched = Matched::by_key(&mut self.sides)?;
        let mut changed = vec![false; matched.rows[0].len()];
        mark_changed(&mut self.columns, &self.sides, &matched, &mut changed)?;
        let start = matched.rows[0].start;
        let changed = changed.iter().enumerate().filter(|(_, is_changed)| **is_changed);
        let mut rows: Vec<usize> =
            changed.map(|(row, _)| start + row).chain(matched.only[0].iter().copied()).collect();
        rows.sort_unstable();
        Ok(rows)
    }
}

/// Rows that follow each other, together.
fn ranges(rows: Vec<usize>) -> VecDeque<Range<usize>> {
    let mut ranges: VecDeque<Range<usize>> = VecDeque::new();
    for row in rows {
        match ranges.back_mut() {
            Some(range) if range.end == row => range.end += 1,
            _ => ranges.push_back(row..row + 1),
        }
    }
    ranges
}
