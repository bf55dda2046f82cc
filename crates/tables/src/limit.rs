//! The first rows of any table, or those after them.

use std::ops::Range;
use std::sync::Arc;

use marquetry_base::Result;
use marquetry_base::cast::{u64_of, usize_of};
use marquetry_parquet::batch::{Batch, RowSelection};

use crate::source::{open_piece, open_piece_rows};
use crate::subject::named;
use crate::{Batches, Cancel, ColumnPath, Piece, PieceOptions, Source, Table, project};

/// The same table, of which only the first rows are read.
///
/// Pieces stay pieces as far as their numbers of rows are known. From there on, as nobody knows which piece has the
/// last of the rows, they are read one after the other, as one piece: if there are several, it has the table's name,
/// and errors count rows from its start.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use marquetry_tables::files::{Files, FilesOptions};
/// use marquetry_tables::{Source, limit};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let trips: Arc<dyn Source> = Arc::new(Files::open(["trips/"], &FilesOptions::default())?);
/// let first = limit(&trips, 1_000);
/// assert!(first.table().rows.is_none_or(|rows| rows <= 1_000));
/// # Ok(())
/// # }
/// ```
pub fn limit(source: &Arc<dyn Source>, rows: u64) -> Arc<dyn Source> {
    cut(source, 0, rows)
}

/// The same table without its first rows.
///
/// Pieces of which no row is wanted are not opened. In a piece whose first rows are not wanted, Parquet files read only pages with
/// rows that are ([`Source::open_rows`]); of others, rows are read and dropped. As in [`limit`], pieces stay pieces as far as their
/// numbers of rows are known. Rows of which errors tell are counted from the first that is read.
pub fn offset(source: &Arc<dyn Source>, rows: u64) -> Arc<dyn Source> {
    if rows == 0 { Arc::clone(source) } else { cut(source, rows, u64::MAX) }
}

/// Of a table, at most `rows` rows after the first `skip`.
fn cut(source: &Arc<dyn Source>, skip: u64, rows: u64) -> Arc<dyn Source> {
    let mut table = source.table().clone();
    table.rows = table.rows.map(|all| all.saturating_sub(skip).min(rows));
    table.bytes = None;
    let all = source.pieces();
    let (mut pieces, mut parts) = (Vec::new(), Vec::new());
    let (mut unwanted, mut left) = (skip, rows);
    for (number, piece) in all.iter().enumerate() {
        if left == 0 {
            break;
        }
        let (of, limit) = match piece.rows {
            Some(rows) if rows <= unwanted && unwanted > 0 => {
                unwanted -= rows;
                continue;
            }
            Some(rows) => (number..number + 1, left.min(rows - unwanted)),
            None => (number..all.len(), left),
        };
        let mut first = if of.len() == 1 { piece.clone() } else { Piece::of("") };
        (first.rows, first.bytes) = (piece.rows.map(|_| limit), None);
        first.splits = all[of.clone()].iter().any(|piece| piece.splits);
        pieces.push(first);
        left = if piece.rows.is_some() { left - limit } else { 0 };
        parts.push(Part { of, skip: std::mem::take(&mut unwanted), limit });
    }
    Arc::new(Cut { source: Arc::clone(source), table, pieces, parts, skip, rows })
}

/// Some rows of a table, one after the other.
struct Cut {
    source: Arc<dyn Source>,
    table: Table,
    pieces: Vec<Piece>,
    /// For each piece, what it is.
    parts: Vec<Part>,
    skip: u64,
    rows: u64,
}

/// Of some pieces, which are read one after the other, so many rows after those that are skipped.
struct Part {
    of: Range<usize>,
    skip: u64,
    limit: u64,
}

impl Source for Cut {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn open(&self, piece: usize, options: &PieceOptions) -> Result<Box<dyn Batches>> {
        let Part { of, skip, limit } = &self.parts[piece];
        let left = options.limit.map_or(*limit, |wanted| wanted.min(*limit));
        let (source, options) = (Arc::clone(&self.source), options.clone());
        let mut some = Rows { source, options, of: of.clone(), open: None, skip: *skip, left };
        some.open_next()?;
        Ok(Box::new(some))
    }

    fn lines_of(&self, piece: usize, rows: &[u64], cancel: &Cancel) -> Option<Vec<u64>> {
        let Part { of, skip, .. } = self.parts.get(piece)?;
        // The rows of several pieces are numbered together.
        if of.len() == 1 && *skip == 0 { self.source.lines_of(of.start, rows, cancel) } else { None }
    }

    fn project(&self, columns: &[ColumnPath]) -> Result<Option<Arc<dyn Source>>> {
        Ok(Some(cut(&project(&self.source, columns)?, self.skip, self.rows)))
    }
}

/// Where a piece ends at the latest: the format's own numbers are signed.
const ROWS_MAX: u64 = i64::MAX.cast_unsigned();

/// Rows of some pieces, one after the other.
struct Rows {
    source: Arc<dyn Source>,
    options: PieceOptions,
    /// Pieces that were not opened yet.
    of: Range<usize>,
    /// The piece that is open, and its name.
    open: Option<(Box<dyn Batches>, String)>,
    /// Rows that are not wanted, before those that are.
    skip: u64,
    left: u64,
}

impl Rows {
    fn open_next(&mut self) -> Result<()> {
        self.open = None;
        let Some(piece) = self.of.next() else { return Ok(()) };
        let name = self.source.pieces().get(piece).map_or("", |piece| &piece.name).to_string();
        let limited = |rows: u64| {
            let limit = (rows < u64::MAX).then_some(rows);
            PieceOptions { limit, ..self.options.clone() }
        };
        let open = || {
            if self.skip > 0 {
                let rest = RowSelection::of(self.skip..ROWS_MAX.max(self.skip))?;
                let rest = open_piece_rows(self.source.as_ref(), piece, rest, &limited(self.left))?;
                if let Some(rest) = rest {
                    return Ok((rest, 0));
                }
            }
            let options = limited(self.left.saturating_add(self.skip));
            Ok((open_piece(self.source.as_ref(), piece, &options)?, self.skip))
        };
        let (opened, skip) = open().map_err(|error| named(error, &name))?;
        (self.open, self.skip) = (Some((opened, name)), skip);
        Ok(())
    }
}

impl Batches for Rows {
    fn next(&mut self) -> Result<Option<Batch>> {
        while self.left > 0
            && let Some((batches, name)) = &mut self.open
        {
            let Some(mut batch) = batches.next().map_err(|error| named(error, name))? else {
                self.options.cancel.check()?;
                self.open_next()?;
                continue;
            };
            let unwanted = self.skip.min(u64_of(batch.rows));
            self.skip -= unwanted;
            if unwanted > 0 {
                if unwanted == u64_of(batch.rows) {
                    continue;
                }
                batch = batch.slice(usize_of(unwanted).unwrap_or(usize::MAX)..batch.rows);
            }
            if u64_of(batch.rows) > self.left {
                batch = batch.slice(0..usize_of(self.left).unwrap_or(usize::MAX));
            }
            self.left -= u64_of(batch.rows);
            return Ok(Some(batch));
        }
        Ok(None)
    }
}
