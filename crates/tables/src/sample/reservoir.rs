//! Rows that are chosen as they come, of a table whose number of rows is not known.

use std::sync::Arc;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{Detail, Error, Result};
use marquetry_parquet::batch::Batch;

use super::random::Random;
use crate::parquet::{Gathered, Plain};
use crate::source::open_piece;
use crate::subject::named;
use crate::{Batches, ColumnPath, Piece, PieceOptions, Source, Table, project};

/// Rows that can be chosen, at most: twice as many are numbered in 32 bits.
const ROWS_MAX: u64 = 1_000_000_000;
/// Rows that are kept in any case before some of them are dropped.
const KEPT_ROWS_MIN: usize = 8192;
/// Rows of a batch, unless fewer are wanted.
const BATCH_ROWS: usize = 8192;

/// A table of one piece, all of whose rows are read, and some are kept.
///
/// Each row has a number at random, and the rows with the smallest are kept; so they stay in order.
pub(super) struct Reservoir {
    source: Arc<dyn Source>,
    table: Table,
    piece: [Piece; 1],
    rows: usize,
    seed: u64,
}

impl Reservoir {
    pub(super) fn over(source: &Arc<dyn Source>, rows: u64, seed: u64) -> Result<Arc<dyn Source>> {
        let few = usize_of(rows).filter(|_| rows <= ROWS_MAX);
        let few = few.ok_or_else(|| {
            let message =
                format!("at most {ROWS_MAX} rows can be chosen of a table whose number of rows is not known");
            Error::misuse(message).with(Detail::Option("sample"))
        })?;
        let mut table = source.table().clone();
        (table.rows, table.row_groups) = (None, None);
        let mut piece = Piece::of("");
        (piece.first_row, piece.bytes) = (None, table.bytes);
        piece.splits = source.pieces().iter().any(|piece| piece.splits);
        Ok(Arc::new(Reservoir { source: Arc::clone(source), table, piece: [piece], rows: few, seed }))
    }
}

impl Source for Reservoir {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        &self.piece
    }

    fn open(&self, _piece: usize, options: &PieceOptions) -> Result<Box<dyn Batches>> {
        Ok(Box::new(Kept {
            source: Arc::clone(&self.source),
            options: options.clone(),
            rows: self.rows,
            random: Random::new(self.seed, 0),
            chosen: None,
        }))
    }

    fn project(&self, columns: &[ColumnPath]) -> Result<Option<Arc<dyn Source>>> {
        Reservoir::over(&project(&self.source, columns)?, u64_of(self.rows), self.seed).map(Some)
    }
}

/// The rows that are kept.
struct Kept {
    source: Arc<dyn Source>,
    options: PieceOptions,
    rows: usize,
    random: Random,
    /// What was chosen, once all rows were read, and the next row of it.
    chosen: Option<(Batch, usize)>,
}

impl Kept {
    /// Reads all rows.
    fn choose(&mut self) -> Result<Batch> {
        let schema = Arc::clone(&self.source.table().schema);
        let leaves = || 0..schema.leaves().len();
        let options = PieceOptions { limit: None, keep_dictionaries: false, ..self.options.clone() };
        let mut gathered = Gathered::new(&schema);
        if self.rows == 0 {
            return Ok(gathered.finish());
        }
        // The numbers of those that were gathered; rows whose numbers are not smaller than `least` are not kept.
        let (mut numbers, mut least): (Vec<u64>, u64) = (Vec::new(), u64::MAX);
        let keep_fewest = |numbers: &mut Vec<u64>, gathered: &mut Gathered| {
            if numbers.len() <= self.rows {
                return Ok(None);
            }
            let mut sorted: Vec<(u64, u32)> = numbers.iter().copied().zip(0..).collect();
            // Those before it are kept: exactly as many as are wanted.
            let (kept, first, _) = sorted.select_nth_unstable(self.rows);
            let mut places: Vec<u32> = kept.iter().map(|(_, place)| *place).collect();
            places.sort_unstable();
            let plain = Plain::of(gathered.finish(), &schema, &[])?;
            gathered.take(&plain, leaves(), &places)?;
            let least = first.0;
            let mut places = places.into_iter().peekable();
            let mut place = 0;
            numbers.retain(|_| {
                let is_kept = places.next_if_eq(&place).is_some();
                place += 1;
                is_kept
            });
            Ok::<_, Error>(Some(least))
        };
        let room = KEPT_ROWS_MIN.max(2 * self.rows);
        for (number, piece) in self.source.pieces().iter().enumerate() {
            let about = |error| named(error, &piece.name);
            let mut batches = open_piece(self.source.as_ref(), number, &options).map_err(about)?;
            while let Some(batch) = batches.next().map_err(about)? {
                options.cancel.check()?;
                let mut kept = Vec::new();
                for (row, _) in (0_u32..).zip(0..batch.rows) {
                    let number = self.random.next();
                    if number < least {
                        kept.push(row);
                        numbers.push(number);
                    }
                }
                if !kept.is_empty() {
                    gathered.take(&Plain::of(batch, &schema, &[])?, leaves(), &kept)?;
                }
                if numbers.len() >= room {
                    least = keep_fewest(&mut numbers, &mut gathered)?.unwrap_or(least);
                }
            }
        }
        keep_fewest(&mut numbers, &mut gathered)?;
        Ok(gathered.finish())
    }
}

impl Batches for Kept {
    fn next(&mut self) -> Result<Option<Batch>> {
        if self.chosen.is_none() {
            let limit = self.options.limit.and_then(usize_of).unwrap_or(usize::MAX);
            let chosen = self.choose()?;
            let rows = chosen.rows.min(limit);
            self.chosen = Some((chosen.slice(0..rows), 0));
        }
        let Some((batch, next)) = &mut self.chosen else { return Ok(None) };
        let rows = (batch.rows - *next).min(self.options.batch_rows.unwrap_or(BATCH_ROWS).max(1));
        let start = std::mem::replace(next, *next + rows);
        Ok((rows > 0).then(|| batch.slice(start..start + rows)))
    }
}
