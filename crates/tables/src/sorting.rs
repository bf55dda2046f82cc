//! Sorting rows on their way.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Bytes, Error, Object, Result};
use marquetry_codecs::StandardCodecs;
use marquetry_io::blocking::SpillFile;
use marquetry_io::{ByteSink, ByteSinks, drive_into_while};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::format::SortingColumn;
use marquetry_parquet::schema::Schema;
use marquetry_parquet::sort::{SortOptions, Sorted, Sorter};
use marquetry_parquet::write::Fed;

use crate::Cancel;

/// The bytes of rows that are sorted in memory by default.
pub const SORT_MEMORY_BYTES: u64 = 512 << 20;

/// The spill object, for rows beyond the memory limit.
const SPILL: Object = Object(0);

/// Rows that are being sorted.
pub(crate) struct Sorting {
    sorter: Sorter,
    spill: Stoppable,
    /// Rows that were taken, and where they come from: a stretch for each piece, and after each gap in one.
    rows: u64,
    stretches: Vec<Stretch>,
}

/// Rows that were taken one after the other, as they are in their piece.
struct Stretch {
    /// The number of the first, among all that were taken, and in its object.
    start: u64,
    first_row: u64,
    piece: usize,
}

impl Sorting {
    /// Sorts by leaves of a schema. Rows beyond `memory_bytes` go to a nameless file beside `scratch`.
    ///
    /// # Errors
    ///
    /// As for [`Sorter::new`]; and if no file can be created there.
    pub(crate) fn new(
        schema: &Arc<Schema>,
        by: &[SortingColumn],
        memory_bytes: u64,
        cancel: &Cancel,
        scratch: Option<&Path>,
    ) -> Result<Sorting> {
        let sort = SortOptions { memory_bytes, ..SortOptions::default() };
        let sorter = Sorter::new(Arc::clone(schema), by, Arc::new(StandardCodecs::default()), SPILL, sort)?;
        let spill = Stoppable { file: SpillFile::create(scratch)?, cancel: cancel.clone() };
        Ok(Sorting { sorter, spill, rows: 0, stretches: Vec::new() })
    }

    /// Takes rows of a piece.
    pub(crate) fn push(&mut self, batch: Batch, piece: usize) -> Result<()> {
        let goes_on = |last: &Stretch| {
            last.piece == piece && last.first_row + (self.rows - last.start) == batch.first_row
        };
        if !self.stretches.last().is_some_and(goes_on) {
            self.stretches.push(Stretch { start: self.rows, first_row: batch.first_row, piece });
        }
        self.rows += u64_of(batch.rows);
        match self.drive()? {
            Some(Sorted::Room) => {}
            _ => return Err(Error::internal("a sorter that has no room for rows")),
        }
        match self.sorter.feed(batch)? {
            Fed::Taken => Ok(()),
            Fed::Full(_) => Err(Error::internal("a sorter that asked for rows has no room for them")),
        }
    }

    /// The piece of a row, and its number in its object; the sorter numbers rows as they were taken.
    pub(crate) fn origin(&self, row: u64) -> Option<(usize, u64)> {
        let after = self.stretches.partition_point(|stretch| stretch.start <= row);
        let stretch = self.stretches.get(after.checked_sub(1)?)?;
        Some((stretch.piece, stretch.first_row + (row - stretch.start)))
    }

    /// The next rows in order, after all were taken. `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Batch>> {
        self.sorter.finish();
        match self.drive()? {
            Some(Sorted::Rows(batch)) => Ok(Some(batch)),
            Some(Sorted::Room) => Err(Error::internal("a sorter that wants more rows than there are")),
            None => Ok(None),
        }
    }

    fn drive(&mut self) -> Result<Option<Sorted>> {
        let cancel = self.spill.cancel.clone();
        let mut sinks = ByteSinks::new().with(SPILL, &mut self.spill);
        drive_into_while(&mut self.sorter, &mut sinks, || cancel.check())
    }

    /// The bytes that were spilled.
    pub(crate) fn spilled_bytes(&self) -> u64 {
        self.sorter.spilled_bytes()
    }
}

/// The spill file. Operations on it may take long, and end if the work is cancelled.
struct Stoppable {
    file: SpillFile,
    cancel: Cancel,
}

impl ByteSink for Stoppable {
    fn name(&self) -> &str {
        self.file.name()
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.cancel.check()?;
        self.file.append(bytes)
    }

    fn read(&mut self, range: Range<u64>) -> Result<Bytes> {
        self.cancel.check()?;
        self.file.read(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Batches, Piece, PieceOptions, Reading, ReadingOptions, Source, Table};
    use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType};

    /// Pieces of single rows, which it does not number.
    struct Singles(Table, Vec<Piece>);

    struct Single(i64);

    impl Source for Singles {
        fn table(&self) -> &Table {
            &self.0
        }

        fn pieces(&self) -> &[Piece] {
            &self.1
        }

        fn open(&self, _: usize, _: &PieceOptions) -> Result<Box<dyn Batches>> {
            Ok(Box::new(Single(ROWS)))
        }
    }

    impl Batches for Single {
        fn next(&mut self) -> Result<Option<Batch>> {
            self.0 -= 1;
            (self.0 >= 0).then(|| Batch::of_values([vec![self.0].into()])).transpose()
        }
    }

    const ROWS: i64 = 500;

    /// What is kept of the rows' origin grows with pieces, and not with batches.
    #[test]
    fn origins_take_little() {
        let id = FieldDef::new("id", FieldType::Leaf(PhysicalType::Int64, None)).required();
        let schema = Arc::new(Schema::of_fields(&[id]).unwrap());
        let pieces = ["a", "b"].map(Piece::of).to_vec();
        let source = Arc::new(Singles(Table::new("singles", Arc::clone(&schema)), pieces));
        let mut reading = Reading::new(source, ReadingOptions::default()).unwrap();
        let by = [SortingColumn { column: 0, descending: false, nulls_first: false }];
        let mut sorting = Sorting::new(&schema, &by, SORT_MEMORY_BYTES, &Cancel::new(), None).unwrap();
        while let Some((piece, batch)) = reading.next_batch().unwrap() {
            sorting.push(batch, piece).unwrap();
        }
        assert_eq!((sorting.rows, sorting.stretches.len()), (1_000, 2));
        assert_eq!(
            [499, 500, 999].map(|row| sorting.origin(row)),
            [Some((0, 499)), Some((1, 0)), Some((1, 499))]
        );
    }
}
