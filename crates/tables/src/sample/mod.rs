//! Some rows of any table, chosen at random.

mod choice;
mod random;
mod reservoir;

use std::ops::Range;
use std::sync::Arc;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Error, Result};
use marquetry_parquet::batch::{Batch, RowSelection};

use crate::kept::Kept;
use crate::source::{open_piece, open_piece_rows};
use crate::{Batches, ColumnPath, Piece, PieceOptions, Source, Table, project};
use choice::Choice;
use reservoir::Reservoir;

/// The same table, of which only `rows` rows are read: chosen uniformly at random, each at most once, and in the table's order. All of
/// them, if it has no more.
///
/// Where the number of rows is known before they are read (Parquet files), of each piece only the chosen rows are read, and of these
/// only the pages that have one, as far as there is a page index ([`Source::open_rows`]). Which rows are chosen depends on
/// `seed` and on how many there are, not on columns or threads.
///
/// Otherwise (text, rows that are left of a filter) all rows are read, one piece after the other, and the memory of
/// at most twice the chosen ones is taken. They have the table's name, and batches have the numbers of their first rows alone.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use marquetry_tables::files::{Files, FilesOptions};
/// use marquetry_tables::{Source, sample};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let trips: Arc<dyn Source> = Arc::new(Files::open(["trips/"], &FilesOptions::default())?);
/// let some = sample(&trips, 1_000, 7)?;
/// assert!(some.table().rows.is_none_or(|rows| rows <= 1_000));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `Misuse` for more than a thousand million rows of a table whose number of rows is not known.
pub fn sample(source: &Arc<dyn Source>, rows: u64, seed: u64) -> Result<Arc<dyn Source>> {
    let known: Option<Vec<u64>> = source.pieces().iter().map(|piece| piece.rows).collect();
    let Some(of_pieces) = known else { return Reservoir::over(source, rows, seed) };
    let all = of_pieces.iter().try_fold(0_u64, |sum, rows| sum.checked_add(*rows));
    let all = all.ok_or_else(|| Error::misuse("a table of 2^64 rows"))?;
    if rows >= all {
        return Ok(Arc::clone(source));
    }
    let choice = Choice::new(all, rows, seed);
    let mut table = source.table().clone();
    (table.rows, table.row_groups, table.bytes) = (Some(rows), None, None);
    let (mut pieces, mut parts) = (Vec::new(), Vec::new());
    let (mut end, mut known) = (0, None);
    for (of, (piece, rows)) in source.pieces().iter().zip(of_pieces).enumerate() {
        let range = end..end + rows;
        end = range.end;
        let chosen = choice.count(range.clone(), &mut known);
        if chosen > 0 {
            let (rows, bytes, first_row, splits) = (Some(chosen), None, None, false);
            pieces.push(Piece { rows, bytes, first_row, splits, ..piece.clone() });
            parts.push(Part { of, rows: range });
        }
    }
    Ok(Arc::new(Sampled { source: Arc::clone(source), table, pieces, parts, choice, rows, seed }))
}

/// A table of which rows were chosen by their numbers.
struct Sampled {
    source: Arc<dyn Source>,
    table: Table,
    pieces: Vec<Piece>,
    /// For each piece, what it is.
    parts: Vec<Part>,
    choice: Choice,
    rows: u64,
    seed: u64,
}

/// A piece that has chosen rows, and its rows in the table.
struct Part {
    of: usize,
    rows: Range<u64>,
}

impl Source for Sampled {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn open(&self, piece: usize, options: &PieceOptions) -> Result<Box<dyn Batches>> {
        let Part { of, rows } = &self.parts[piece];
        let chosen = self.choice.rows(rows.clone())?;
        if let Some(batches) = open_piece_rows(self.source.as_ref(), *of, chosen.clone(), options)? {
            return Ok(batches);
        }
        let inner = PieceOptions { limit: None, ..options.clone() };
        Ok(Box::new(Dropping {
            batches: open_piece(self.source.as_ref(), *of, &inner)?,
            kept: Kept::new(&self.table.schema, options.batch_rows),
            chosen,
            next: 0,
            left: options.limit.unwrap_or(u64::MAX),
        }))
    }

    fn project(&self, columns: &[ColumnPath]) -> Result<Option<Arc<dyn Source>>> {
        sample(&project(&self.source, columns)?, self.rows, self.seed).map(Some)
    }
}

/// Batches of which the rows are dropped that were not chosen.
struct Dropping {
    batches: Box<dyn Batches>,
    kept: Kept,
    chosen: RowSelection,
    /// The number of the next row.
    next: u64,
    left: u64,
}

impl Dropping {
    fn next_rows(&mut self) -> Result<Option<Batch>> {
        loop {
            if self.kept.is_full() || u64_of(self.kept.rows()) >= self.left {
                return Ok(self.kept.finish());
            }
            // What follows the last of them need not be read.
            let is_over = self.chosen.next_run(self.next).is_none();
            let Some(batch) = (if is_over { None } else { self.batches.next()? }) else {
                return Ok(self.kept.finish());
            };
            let rows = self.next..self.next + u64_of(batch.rows);
            self.next = rows.end;
            let chosen =
                (0..).zip(rows).filter_map(|(place, row)| self.chosen.contains(row).then_some(place));
            let chosen: Vec<u32> = chosen.collect();
            if let Some(full) = self.kept.keep(batch, &chosen)? {
                return Ok(Some(full));
            }
        }
    }
}

impl Batches for Dropping {
    fn next(&mut self) -> Result<Option<Batch>> {
        if self.left == 0 {
            return Ok(None);
        }
        let Some(mut batch) = self.next_rows()? else { return Ok(None) };
        if u64_of(batch.rows) > self.left {
            batch = batch.slice(0..usize_of(self.left).unwrap_or(usize::MAX));
        }
        self.left -= u64_of(batch.rows);
        Ok(Some(batch))
    }
}
