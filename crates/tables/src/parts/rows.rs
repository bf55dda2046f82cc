//! The rows of a part, and the name of the file that they go to.

use std::ops::RangeInclusive;
use std::sync::Arc;

use marquetry_base::{Error, Result};
use marquetry_parquet::batch::RowSelection;

use crate::{Batches, Piece, PieceOptions, Source, Table};

/// Some pieces of a source, one after the other.
pub(super) struct PartOf {
    source: Arc<dyn Source>,
    table: Table,
    pub(super) pieces: Vec<Piece>,
    first: usize,
    pub(super) tokens: RangeInclusive<i64>,
}

impl PartOf {
    /// Pieces from one on that follow each other without tokens between them, at most so many.
    pub(super) fn new(source: Arc<dyn Source>, first: usize, most: usize) -> Result<PartOf> {
        let none = || {
            Error::option(
                "state",
                "rows that are not read by ranges of tokens cannot be copied in parts, which go on",
            )
        };
        let all = source.pieces();
        let mut pieces: Vec<Piece> = Vec::new();
        let mut tokens: Option<(i64, i64)> = None;
        for piece in all.iter().skip(first).take(most) {
            let (start, end) = piece.tokens.ok_or_else(none)?;
            tokens = match tokens {
                None => Some((start, end)),
                // What is between was copied before, or is not wanted: it is none of this part's.
                Some((_, before)) if before.checked_add(1) != Some(start) => break,
                Some((first, _)) => Some((first, end)),
            };
            pieces.push(piece.clone());
        }
        let (start, end) = tokens.ok_or_else(none)?;
        let mut table = source.table().clone();
        (table.rows, table.bytes, table.row_groups) = (None, None, None);
        Ok(PartOf { source, table, pieces, first, tokens: start..=end })
    }
}

impl Source for PartOf {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn open(&self, piece: usize, options: &PieceOptions) -> Result<Box<dyn Batches>> {
        self.source.open(self.first + piece, options)
    }

    fn open_rows(
        &self,
        piece: usize,
        rows: RowSelection,
        options: &PieceOptions,
    ) -> Result<Option<Box<dyn Batches>>> {
        self.source.open_rows(self.first + piece, rows, options)
    }
}

/// The name of the file of a part: by its first token, in the order of tokens.
pub(super) fn name_of(tokens: &RangeInclusive<i64>) -> String {
    format!("part-{:016x}.parquet", tokens.start().cast_unsigned() ^ 1 << 63)
}
