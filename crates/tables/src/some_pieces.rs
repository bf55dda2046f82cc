//! Some pieces of any table.

use std::ops::Range;
use std::sync::Arc;

use marquetry_base::{Error, Result};
use marquetry_parquet::batch::RowSelection;

use crate::{Batches, Cancel, Piece, PieceOptions, Source, Table};

/// The same table, of which only these of its [pieces](Source::pieces) are read: for readers that share a table among them, such as the tasks of
/// a job on several machines. Columns and rows are chosen first, because pieces may be others for fewer columns.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use marquetry_tables::files::{Files, FilesOptions};
/// use marquetry_tables::{Source, some_pieces};
///
/// # fn main() -> marquetry_base::Result<()> {
/// let trips: Arc<dyn Source> = Arc::new(Files::open(["trips/"], &FilesOptions::default())?);
/// let half = trips.pieces().len() / 2;
/// let first = some_pieces(&trips, 0..half)?;
/// assert_eq!(first.pieces(), &trips.pieces()[..half]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// `Misuse` for pieces that the table has not.
pub fn some_pieces(source: &Arc<dyn Source>, pieces: Range<usize>) -> Result<Arc<dyn Source>> {
    let all = source.pieces();
    let Some(some) = all.get(pieces.clone()) else {
        let Range { start, end } = pieces;
        return Err(Error::misuse(format!("pieces {start} to {end} of a table that has {}", all.len())));
    };
    let mut table = source.table().clone();
    let sum = |of: fn(&Piece) -> Option<u64>| {
        some.iter().try_fold(0_u64, |sum, piece| Some(sum.saturating_add(of(piece)?)))
    };
    (table.rows, table.bytes) = (sum(|piece| piece.rows), sum(|piece| piece.bytes));
    if some.len() < all.len() {
        table.row_groups = None;
    }
    Ok(Arc::new(Share { source: Arc::clone(source), table, pieces }))
}

/// A table without the pieces before and after its share.
struct Share {
    source: Arc<dyn Source>,
    table: Table,
    pieces: Range<usize>,
}

impl Share {
    /// The number of a piece in the whole table.
    fn of_all(&self, piece: usize) -> Result<usize> {
        let number = self.pieces.start.checked_add(piece).filter(|number| self.pieces.contains(number));
        number.ok_or_else(|| Error::misuse("a piece that there is none of"))
    }
}

impl Source for Share {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        self.source.pieces().get(self.pieces.clone()).unwrap_or_default()
    }

    fn open(&self, piece: usize, options: &PieceOptions) -> Result<Box<dyn Batches>> {
        self.source.open(self.of_all(piece)?, options)
    }

    fn open_rows(
        &self,
        piece: usize,
        rows: RowSelection,
        options: &PieceOptions,
    ) -> Result<Option<Box<dyn Batches>>> {
        self.source.open_rows(self.of_all(piece)?, rows, options)
    }

    fn lines_of(&self, piece: usize, rows: &[u64], cancel: &Cancel) -> Option<Vec<u64>> {
        self.source.lines_of(self.of_all(piece).ok()?, rows, cancel)
    }
}

#[cfg(test)]
mod tests {
    use marquetry_base::ErrorKind;
    use marquetry_parquet::batch::{Batch, Values};
    use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};

    use super::*;
    use crate::{Filter, Reading, ReadingOptions, filter, limit};

    /// Pieces of two rows each: those of piece `n` are `10 n` and `10 n + 1`.
    struct Tens(Table, Vec<Piece>);

    struct Once(Option<Batch>);

    impl Batches for Once {
        fn next(&mut self) -> Result<Option<Batch>> {
            Ok(self.0.take())
        }
    }

    impl Source for Tens {
        fn table(&self) -> &Table {
            &self.0
        }

        fn pieces(&self) -> &[Piece] {
            &self.1
        }

        fn open(&self, piece: usize, _: &PieceOptions) -> Result<Box<dyn Batches>> {
            let first = 10 * i64::try_from(piece).unwrap();
            Ok(Box::new(Once(Some(Batch::of_values([vec![first, first + 1].into()])?))))
        }
    }

    fn tens(pieces: usize) -> Arc<dyn Source> {
        let id = FieldDef::new("id", FieldType::Leaf(PhysicalType::Int64, None)).required();
        let mut table = Table::new("tens", Arc::new(Schema::of_fields(&[id]).unwrap()));
        (table.rows, table.row_groups) = (Some(2 * pieces as u64), Some(pieces as u64));
        let piece = |number| Piece { rows: Some(2), bytes: Some(16), ..Piece::of(format!("tens/{number}")) };
        Arc::new(Tens(table, (0..pieces).map(piece).collect()))
    }

    fn ids(source: &Arc<dyn Source>) -> Vec<i64> {
        let options = ReadingOptions { threads: Some(0), ..ReadingOptions::default() };
        let mut reading = Reading::new(Arc::clone(source), options).unwrap();
        let mut ids = Vec::new();
        while let Some((_, batch)) = reading.next_batch().unwrap() {
            match &batch.columns[0].values {
                Values::Int64(values) => ids.extend(values.iter().copied()),
                other => panic!("{other:?}"),
            }
        }
        ids
    }

    #[test]
    fn only_these_pieces_are_read() {
        let all = tens(4);
        let some = some_pieces(&all, 1..3).unwrap();
        assert_eq!(some.pieces(), &all.pieces()[1..3]);
        assert_eq!(
            (some.table().rows, some.table().bytes, some.table().row_groups),
            (Some(4), Some(32), None)
        );
        assert_eq!(ids(&some), [10, 11, 20, 21]);
        // Of all the shares of a table, each row is in one.
        let shares = (0..4).flat_map(|piece| ids(&some_pieces(&all, piece..piece + 1).unwrap()));
        assert_eq!(shares.collect::<Vec<_>>(), ids(&all));
        assert_eq!(some_pieces(&all, 0..4).unwrap().table().row_groups, Some(4));
        assert!(ids(&some_pieces(&all, 2..2).unwrap()).is_empty());
    }

    #[test]
    fn rows_are_chosen_among_them() {
        let all = tens(4);
        let some = some_pieces(&all, 1..4).unwrap();
        assert_eq!(ids(&limit(&some, 3)), [10, 11, 20]);
        assert_eq!(ids(&filter(&some, &Filter::new("id >= 11 AND id <> 30")).unwrap()), [11, 20, 21, 31]);
        let chosen = filter(&all, &Filter::new("id >= 11")).unwrap();
        assert_eq!(ids(&some_pieces(&chosen, 0..2).unwrap()), [11]);
    }

    #[test]
    fn pieces_that_are_not_there_are_refused() {
        let all = tens(2);
        #[expect(clippy::reversed_empty_ranges, reason = "it is to be refused")]
        let wrong = [0..3, 3..3, 2..1];
        for pieces in wrong {
            let error = some_pieces(&all, pieces).map(drop).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Misuse);
            assert!(error.to_string().contains("has 2"), "{error}");
        }
        let some = some_pieces(&all, 1..2).unwrap();
        assert_eq!(some.open(1, &PieceOptions::default()).map(drop).unwrap_err().kind(), ErrorKind::Misuse);
    }
}
