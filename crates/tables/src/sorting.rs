//! Sorting rows on their way.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Bytes, Error, Machine, Object, Result, Step};
use marquetry_codecs::StandardCodecs;
use marquetry_io::blocking::SpillFile;
use marquetry_io::{ByteSink, ByteSinks, drive_into_while};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::format::SortingColumn;
use marquetry_parquet::schema::Schema;
use marquetry_parquet::sort::{SortOptions, SortWork, Sorted, Sorter};
use marquetry_parquet::write::Fed;

use crate::Cancel;
use crate::lanes::spawn;

/// The bytes of rows that a copy holds by default, most of them if they are sorted.
pub const MEMORY_BYTES: u64 = 512 << 20;

/// The spill object, for rows beyond the memory limit.
const SPILL: Object = Object(0);

/// Rows that are being sorted.
pub(crate) struct Sorting {
    sorter: Sorter,
    spill: Stoppable,
    /// Do the sorter's work while the next rows are collected.
    workers: Workers,
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
    /// Sorts by leaves of a schema. Rows beyond the options' `memory_bytes` go to a nameless file beside `scratch`. What comes of it
    /// does not depend on the number of threads.
    ///
    /// # Errors
    ///
    /// As for [`Sorter::new`]; and if no file can be created there.
    pub(crate) fn new(
        schema: &Arc<Schema>,
        by: &[SortingColumn],
        options: SortOptions,
        (threads, cancel): (usize, &Cancel),
        scratch: Option<&Path>,
    ) -> Result<Sorting> {
        let codecs = Arc::new(StandardCodecs::default());
        let mut sorter = Sorter::new(Arc::clone(schema), by, codecs, SPILL, options)?;
        if threads > 1 {
            sorter.share();
        }
        let file = SpillFile::create(scratch)?;
        let name = file.name().to_owned();
        let spill = Stoppable { name, file: Arc::new(Mutex::new(file)), cancel: cancel.child() };
        Ok(Sorting { sorter, spill, workers: Workers::new(threads), rows: 0, stretches: Vec::new() })
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

    /// Finds out what is wrong with rows that were taken.
    pub(crate) fn drain(&mut self) -> Result<()> {
        self.sorter.flush();
        self.drive()?;
        // A run may still be written.
        while self.workers.at_work > 0 {
            let work = self.workers.returned()?;
            self.sorter.return_work(work)?;
        }
        Ok(())
    }

    fn drive(&mut self) -> Result<Option<Sorted>> {
        let (cancel, spill) = (self.spill.cancel.clone(), self.spill.clone());
        let mut sinks = ByteSinks::new().with(SPILL, &mut self.spill);
        let mut machine = WithWorkers { sorter: &mut self.sorter, workers: &mut self.workers, spill };
        drive_into_while(&mut machine, &mut sinks, || cancel.check())
    }

    /// The bytes that were spilled.
    pub(crate) fn spilled_bytes(&self) -> u64 {
        self.sorter.spilled_bytes()
    }
}

impl Drop for Sorting {
    fn drop(&mut self) {
        self.spill.cancel.cancel();
        while self.workers.at_work > 0 {
            // What went wrong does not matter any more.
            let _ = self.workers.returned();
        }
    }
}

/// Threads for work, one for each piece of it, and at most `most` at a time.
struct Workers {
    most: usize,
    at_work: usize,
    done: (mpsc::Sender<Result<SortWork>>, mpsc::Receiver<Result<SortWork>>),
}

impl Workers {
    fn new(most: usize) -> Workers {
        Workers { most, at_work: 0, done: mpsc::channel() }
    }

    fn start(&mut self, mut work: SortWork, mut spill: Stoppable) -> Result<()> {
        let done = self.done.0.clone();
        spawn("marquetry-sorter", move || {
            let cancel = spill.cancel.clone();
            let worked = catch_unwind(AssertUnwindSafe(|| {
                let mut sinks = ByteSinks::new().with(SPILL, &mut spill);
                while drive_into_while(&mut work, &mut sinks, || cancel.check())?.is_some() {}
                Ok(work)
            }));
            let worked = worked.unwrap_or_else(|_| Err(Error::internal("a thread that sorts has panicked")));
            // Only a sort that has ended does not take it.
            let _ = done.send(worked);
        })?;
        self.at_work += 1;
        Ok(())
    }

    /// Waits for work that is done.
    fn returned(&mut self) -> Result<SortWork> {
        if self.at_work == 0 {
            return Err(Error::internal("work that nobody does"));
        }
        self.at_work -= 1;
        self.done.1.recv().map_err(|_| Error::internal("work that is not returned"))?
    }

    /// Work that is done already, if there is some.
    fn at_hand(&mut self) -> Option<Result<SortWork>> {
        let returned = self.done.1.try_recv().ok()?;
        self.at_work -= 1;
        Some(returned)
    }
}

/// A sorter whose work is done by threads.
struct WithWorkers<'a> {
    sorter: &'a mut Sorter,
    workers: &'a mut Workers,
    spill: Stoppable,
}

impl Machine for WithWorkers<'_> {
    type Product = Sorted;

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Sorted>> {
        let step = self.sorter.step(budget)?;
        let mut awaits_work = self.sorter.awaits_work();
        while let Some(work) = self.workers.at_hand() {
            self.sorter.return_work(work?)?;
            awaits_work = false;
        }
        while self.workers.at_work < self.workers.most
            && let Some(work) = self.sorter.next_work()
        {
            self.workers.start(work, self.spill.clone())?;
        }
        if awaits_work {
            let work = self.workers.returned()?;
            self.sorter.return_work(work)?;
        }
        Ok(step)
    }

    fn supply(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()> {
        self.sorter.supply(object, range, bytes)
    }

    fn supply_length(&mut self, object: Object, length: u64) -> Result<()> {
        self.sorter.supply_length(object, length)
    }

    fn fail(&mut self, object: Object, range: Range<u64>, reason: Error) {
        self.sorter.fail(object, range, reason);
    }
}

/// The spill file. Operations on it may take long, and end if the work is cancelled.
#[derive(Clone)]
struct Stoppable {
    name: String,
    file: Arc<Mutex<SpillFile>>,
    cancel: Cancel,
}

impl Stoppable {
    fn file(&self) -> Result<MutexGuard<'_, SpillFile>> {
        self.cancel.check()?;
        Ok(self.file.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ByteSink for Stoppable {
    fn name(&self) -> &str {
        &self.name
    }

    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file()?.append(bytes)
    }

    fn read(&mut self, range: Range<u64>) -> Result<Bytes> {
        self.file()?.read(range)
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
        let options = SortOptions::default();
        let mut sorting = Sorting::new(&schema, &by, options, (1, &Cancel::new()), None).unwrap();
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
