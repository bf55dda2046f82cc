//! A writer whose columns' work is done by others, in any order.

use std::ops::Range;

use marquetry_base::{Budget, Bytes, Error, Machine, Object, Result, Step};
use marquetry_parquet::write::{ColumnWorker, FileWriter, Room};

use crate::hostile::Random;

/// A [`FileWriter`] with workers that take turns at random. It is driven as the writer itself is.
pub struct SharedWriter {
    /// The writer, to be fed.
    pub writer: FileWriter,
    workers: Vec<(ColumnWorker, bool)>,
    random: Random,
}

impl SharedWriter {
    /// Has the work of a writer done by this many workers.
    ///
    /// # Errors
    ///
    /// As [`FileWriter::share`].
    pub fn new(mut writer: FileWriter, workers: usize, ahead: usize, seed: u64) -> Result<SharedWriter> {
        writer.share(ahead)?;
        let workers = (0..workers).map(|_| (writer.worker(), false)).collect();
        Ok(SharedWriter { writer, workers, random: Random(seed | 1) })
    }

    /// Lets one worker work.
    fn work(&mut self, budget: &mut Budget<'_>) -> Result<()> {
        let at = self.random.index(self.workers.len());
        let (worker, is_busy) = &mut self.workers[at];
        if !*is_busy {
            let Some(work) = self.writer.next_work() else { return Ok(()) };
            worker.start(work)?;
            *is_busy = true;
        }
        if let Some(work) = worker.step(budget) {
            *is_busy = false;
            self.writer.return_work(work);
        }
        Ok(())
    }
}

impl Machine for SharedWriter {
    type Product = Room;

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<Room>> {
        let step = self.writer.step(budget)?;
        if self.writer.awaits_work() {
            assert_eq!(step, Step::Yield, "a writer that awaits work and goes on");
            assert!(self.writer.has_open_work(), "a writer that awaits work, and there is none");
            self.work(&mut Budget::new(budget.left()))?;
        } else if matches!(step, Step::Yield | Step::Append(..)) && self.random.below(2) == 0 {
            self.work(&mut Budget::new(budget.left()))?;
        }
        Ok(step)
    }

    fn supply(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()> {
        self.writer.supply(object, range, bytes)
    }

    fn supply_length(&mut self, object: Object, length: u64) -> Result<()> {
        self.writer.supply_length(object, length)
    }

    fn fail(&mut self, object: Object, range: Range<u64>, reason: Error) {
        self.writer.fail(object, range, reason);
    }
}
