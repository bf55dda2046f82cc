//! The rows of a part, and the file that they go to.

use std::ops::RangeInclusive;
use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Error, Result};
use marquetry_parquet::batch::{Batch, RowSelection};

use super::Parts;
use super::state::Part;
use crate::parquet::NewParquetFile;
use crate::{Batches, Cancel, Destination, Piece, PieceOptions, Source, Table, Wants, Written};

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

/// The file of a part: it is written down in the state before it appears.
pub(super) struct OfPart<'a> {
    pub(super) file: NewParquetFile,
    pub(super) part: Option<Part>,
    pub(super) parts: &'a mut Parts,
}

impl Destination for OfPart<'_> {
    fn name(&self) -> &str {
        self.file.name()
    }

    fn cancelled_by(&mut self, cancel: &Cancel) {
        self.file.cancelled_by(cancel);
    }

    fn set_threads(&mut self, threads: usize) {
        self.file.set_threads(threads);
    }

    fn set_sorting(&mut self, memory_bytes: Option<u64>) {
        self.file.set_sorting(memory_bytes);
    }

    fn begin(&mut self, table: &Table) -> Result<Wants> {
        self.file.begin(table)
    }

    fn rows_from(&mut self, object: &str) {
        self.file.rows_from(object);
    }

    fn write(&mut self, batch: Batch) -> Result<()> {
        if let Some(part) = &mut self.part {
            part.rows += u64_of(batch.rows);
        }
        self.file.write(batch)
    }

    fn drain(&mut self) -> Result<()> {
        self.file.drain()
    }

    fn finish(&mut self) -> Result<Written> {
        let written = self.file.finish()?;
        if let Some(part) = &mut self.part {
            part.bytes = written.bytes;
        }
        Ok(written)
    }

    fn written(&self) -> Result<Option<Box<dyn Source>>> {
        self.file.written()
    }

    fn commit(&mut self) -> Result<()> {
        let Some(mut part) = self.part.take() else {
            return Err(Error::misuse("a part that was written before"));
        };
        let has_rows = part.rows > 0;
        if !has_rows {
            part.file = None;
        }
        self.parts.parts.push(part);
        let appeared = self.parts.save().and_then(|()| if has_rows { self.file.commit() } else { Ok(()) });
        if appeared.is_err() {
            // Its rows are not there. The file of the state may have it: it counts if its file is there.
            self.parts.parts.pop();
        }
        appeared
    }

    fn settle(&mut self) {
        self.file.settle();
    }
}

/// The name of the file of a part: by its first token, in the order of tokens.
pub(super) fn name_of(tokens: &RangeInclusive<i64>) -> String {
    format!("part-{:016x}.parquet", tokens.start().cast_unsigned() ^ 1 << 63)
}
