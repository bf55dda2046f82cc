//! The first rows of any table.

use std::ops::Range;
use std::sync::Arc;

use marquetry_base::Result;
use marquetry_base::cast::{u64_of, usize_of};
use marquetry_parquet::batch::Batch;

use crate::source::open_piece;
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
    let mut table = source.table().clone();
    table.rows = table.rows.map(|all| all.min(rows));
    table.bytes = None;
    let all = source.pieces();
    let (mut pieces, mut parts, mut left) = (Vec::new(), Vec::new(), rows);
    for (number, piece) in all.iter().enumerate() {
        if left == 0 {
            break;
        }
        let (of, limit) = match piece.rows {
            Some(rows) => (number..number + 1, left.min(rows)),
            None => (number..all.len(), left),
        };
        let mut first = if of.len() == 1 { piece.clone() } else { Piece::of("") };
        (first.rows, first.bytes) = (piece.rows.map(|_| limit), None);
        first.splits = all[of.clone()].iter().any(|piece| piece.splits);
        pieces.push(first);
        left = if piece.rows.is_some() { left - limit } else { 0 };
        parts.push(Part { of, limit });
    }
    Arc::new(Limited { source: Arc::clone(source), table, pieces, parts, rows })
}

/// The first rows of a table.
struct Limited {
    source: Arc<dyn Source>,
    table: Table,
    pieces: Vec<Piece>,
    /// For each piece, what it is.
    parts: Vec<Part>,
    rows: u64,
}

/// The first rows of some pieces, which are read one after the other.
struct Part {
    of: Range<usize>,
    limit: u64,
}

impl Source for Limited {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn open(&self, piece: usize, options: &PieceOptions) -> Result<Box<dyn Batches>> {
        let Part { of, limit } = &self.parts[piece];
        let left = options.limit.map_or(*limit, |wanted| wanted.min(*limit));
        let (source, options) = (Arc::clone(&self.source), options.clone());
        let mut first = First { source, options, of: of.clone(), open: None, left };
        first.open_next()?;
        Ok(Box::new(first))
    }

    fn line_of(&self, piece: usize, row: u64, cancel: &Cancel) -> Option<u64> {
        let of = &self.parts.get(piece)?.of;
        // The rows of several pieces are numbered together.
        if of.len() == 1 { self.source.line_of(of.start, row, cancel) } else { None }
    }

    fn project(&self, columns: &[ColumnPath]) -> Result<Option<Arc<dyn Source>>> {
        Ok(Some(limit(&project(&self.source, columns)?, self.rows)))
    }
}

/// The first rows of some pieces, one after the other.
struct First {
    source: Arc<dyn Source>,
    options: PieceOptions,
    /// Pieces that were not opened yet.
    of: Range<usize>,
    /// The piece that is open, and its name.
    open: Option<(Box<dyn Batches>, String)>,
    left: u64,
}

impl First {
    fn open_next(&mut self) -> Result<()> {
        self.open = None;
        if let Some(piece) = self.of.next() {
            let options = PieceOptions { limit: Some(self.left), ..self.options.clone() };
            let name = self.source.pieces().get(piece).map_or("", |piece| &piece.name).to_string();
            let opened = open_piece(self.source.as_ref(), piece, &options);
            self.open = Some((opened.map_err(|error| named(error, &name))?, name));
        }
        Ok(())
    }
}

impl Batches for First {
    fn next(&mut self) -> Result<Option<Batch>> {
        while self.left > 0
            && let Some((batches, name)) = &mut self.open
        {
            let Some(mut batch) = batches.next().map_err(|error| named(error, name))? else {
                self.options.cancel.check()?;
                self.open_next()?;
                continue;
            };
            if u64_of(batch.rows) > self.left {
                batch = batch.slice(0..usize_of(self.left).unwrap_or(usize::MAX));
            }
            self.left -= u64_of(batch.rows);
            return Ok(Some(batch));
        }
        Ok(None)
    }
}
