//! Sorted rows, a batch at a time: from memory, or from runs.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{
    Budget, Bytes, Codecs, Demand, Error, Limits, Machine, Object, Price, Result, Step, Want,
};

use super::gather::{Gathering, Measuring};
use super::is_paid_for;
use super::key::Keys;
use super::merge::{Merge, Pick, Picked};
use super::pieces::Piece;
use super::stored::{Stored, Storing};
use crate::batch::Batch;
use crate::going::{Going, done};
use crate::read::{BatchReader, FooterReader, ReadOptions};
use crate::schema::Schema;
use crate::write::released::Released;

/// The price of releasing a sorted piece, which is three allocations.
const RELEASE_PRICE: Price = Price { kib: 64, kilovalue: 600 << 10 };

/// What everything that sorts rows has in common.
#[derive(Clone)]
pub(super) struct Common {
    pub(super) schema: Arc<Schema>,
    pub(super) keys: Keys,
    pub(super) codecs: Arc<dyn Codecs>,
    pub(super) spill: Object,
    /// Maximum rows of a batch that is returned.
    pub(super) batch_rows: usize,
}

/// Sorted rows in the spill object: a Parquet file of these bytes.
pub(super) type Run = Range<u64>;

/// Merges what is sorted in parts.
pub(super) struct Producer {
    /// Batches that rows are picked from: for runs, the current one of each.
    stored: Vec<Stored>,
    /// Empty if all rows are in memory.
    runs: Vec<RunReader>,
    merge: Merge,
    picks: Vec<Pick>,
    stage: Stage,
    /// What follows once the picked rows are gathered.
    then: Then,
    rows: u64,
    /// Rows that were picked.
    released: Released,
}

#[derive(Debug)]
enum Stage {
    /// Reads the first rows of runs, from this one on.
    Starting(usize),
    /// The first rows are compared.
    Building,
    Picking,
    Measuring(Measuring),
    Gathering(Box<Gathering>, usize),
    /// More of a run is read.
    Refilling(usize),
    /// Releases memory.
    Clearing,
    End,
}

#[derive(Debug, Clone, Copy)]
enum Then {
    Picking,
    Refilling(usize),
    Clearing,
}

impl Producer {
    /// For rows in memory: their batches, and sorted pieces of them.
    pub(super) fn of_memory(stored: Vec<Stored>, pieces: Vec<Piece>) -> Producer {
        Producer::new(stored, Vec::new(), Merge::of(pieces))
    }

    /// Of runs.
    ///
    /// # Errors
    ///
    /// If a run cannot be a Parquet file.
    pub(super) fn of_runs(runs: &[Run], common: &Common) -> Result<Producer> {
        let stored = runs.iter().map(|_| Stored::default()).collect();
        let readers =
            runs.iter().map(|run| RunReader::new(run.clone(), common)).collect::<Result<Vec<_>>>()?;
        Ok(Producer::new(stored, readers, Merge::of_empty(runs.len())))
    }

    fn new(stored: Vec<Stored>, runs: Vec<RunReader>, merge: Merge) -> Producer {
        Producer {
            stored,
            runs,
            merge,
            picks: Vec::new(),
            stage: Stage::Starting(0),
            then: Then::Picking,
            rows: 0,
            released: Released::default(),
        }
    }

    /// Works up to the next batch; `None` after the last.
    pub(super) fn step(
        &mut self,
        common: &Common,
        budget: &mut Budget<'_>,
    ) -> Result<Going<Option<Batch>, Demand>> {
        loop {
            match &mut self.stage {
                Stage::Starting(run) => {
                    let run = *run;
                    if run == self.runs.len() {
                        self.stage = Stage::Building;
                    } else {
                        done!(self.refill(run, common, budget)?);
                        self.stage = Stage::Starting(run + 1);
                    }
                }
                Stage::Building => {
                    if self.merge.build(budget) {
                        self.stage = Stage::Picking;
                    }
                }
                Stage::Picking => {
                    let is_in_memory = self.runs.is_empty();
                    match self.merge.pick(&mut self.picks, common.batch_rows, is_in_memory, budget)? {
                        Picked::Spent => return Ok(Going::Yield),
                        Picked::Enough => self.gather(Then::Picking),
                        Picked::All => self.gather(Then::Clearing),
                        // The current batch has more rows, or rows that were picked still need it.
                        Picked::Exhausted(run) if self.has_more_at_hand(run) => {
                            self.stage = Stage::Refilling(run)
                        }
                        Picked::Exhausted(run) => self.gather(Then::Refilling(run)),
                    }
                }
                Stage::Measuring(measuring) => {
                    let Some(rows) = measuring.step(&common.schema, &self.stored, &self.picks, budget) else {
                        return Ok(Going::Yield);
                    };
                    self.stage = Stage::Gathering(Box::new(Gathering::new(rows, &common.schema)?), rows);
                }
                Stage::Gathering(gathering, rows) => {
                    let rows = *rows;
                    let gathered = gathering.step(&common.schema, &self.stored, &self.picks, budget)?;
                    let Some(columns) = gathered else { return Ok(Going::Yield) };
                    self.picks.drain(..rows);
                    let batch = Batch { row_group: 0, first_row: self.rows, rows, columns };
                    self.rows += u64_of(rows);
                    self.gather(self.then);
                    return Ok(Going::Done(Some(batch)));
                }
                Stage::Refilling(run) => {
                    let run = *run;
                    done!(self.refill(run, common, budget)?);
                    self.merge.go_on(run, budget);
                    self.stage = Stage::Picking;
                }
                Stage::Clearing => {
                    if !self.clear(budget) {
                        return Ok(Going::Yield);
                    }
                    self.stage = Stage::End;
                }
                Stage::End => return Ok(Going::Done(None)),
            }
            if budget.is_spent() {
                return Ok(Going::Yield);
            }
        }
    }

    /// Takes bytes of the spill object.
    pub(super) fn supply(&mut self, object: Object, range: &Range<u64>, bytes: &Bytes) -> Result<()> {
        self.runs.iter_mut().try_for_each(|run| run.supply(object, range, bytes))
    }

    /// Sets what follows once everything picked is gathered, which happens now if anything was.
    fn gather(&mut self, then: Then) {
        self.then = then;
        self.stage = match then {
            _ if !self.picks.is_empty() => Stage::Measuring(Measuring::new(self.picks.len())),
            Then::Picking => Stage::Picking,
            Then::Refilling(run) => Stage::Refilling(run),
            Then::Clearing => Stage::Clearing,
        };
    }

    fn has_more_at_hand(&self, run: usize) -> bool {
        match (self.runs.get(run), self.stored.get(run)) {
            (Some(reader), Some(stored)) => reader.next_row < stored.rows,
            _ => false,
        }
    }

    /// Passes the next rows of a run to the merge; none at its end.
    fn refill(&mut self, run: usize, common: &Common, budget: &mut Budget<'_>) -> Result<Going<(), Demand>> {
        let (Some(reader), Some(stored)) = (self.runs.get_mut(run), self.stored.get_mut(run)) else {
            return Err(Error::internal("a run that is not there"));
        };
        loop {
            if !is_paid_for(1, budget) {
                return Ok(Going::Yield);
            }
            if reader.next_row < stored.rows {
                if !Piece::is_paid_for(budget) {
                    return Ok(Going::Yield);
                }
                let source =
                    u32::try_from(run).map_err(|_| Error::internal("more runs than are merged at once"))?;
                let rows = reader.next_row..stored.rows;
                let piece = Piece::new(&common.keys, &stored.columns, source, rows, true, budget)?;
                reader.next_row += piece.len();
                self.merge.replace(run, piece);
                return Ok(Going::Done(()));
            }
            if let Some(storing) = &mut reader.storing {
                if !storing.step(&common.schema, budget)? {
                    return Ok(Going::Yield);
                }
                *stored = reader.storing.take().map(Storing::finish).unwrap_or_default();
                reader.next_row = 0;
                continue;
            }
            if !stored.release(&mut self.released, budget) || !self.released.step(budget) {
                return Ok(Going::Yield);
            }
            stored.rows = 0;
            match reader.read(common, budget)? {
                Step::Ready(batch) => reader.storing = Some(Storing::new(batch, false)),
                Step::Need(demand) => return Ok(Going::Need(demand)),
                Step::Yield => return Ok(Going::Yield),
                Step::Done => return Ok(Going::Done(())),
                Step::Append(..) => return Err(Error::internal("a reader that writes")),
            }
        }
    }

    /// Releases memory. True once none is left.
    fn clear(&mut self, budget: &mut Budget<'_>) -> bool {
        while let Some(last) = self.stored.last_mut() {
            if !last.release(&mut self.released, budget) || !self.released.step(budget) {
                return false;
            }
            self.stored.pop();
            if budget.is_spent() {
                return false;
            }
        }
        while let Some(piece) = self.merge.pop() {
            budget.charge(RELEASE_PRICE, piece.held(), 1);
            if budget.is_spent() && self.merge.len() > 0 {
                return false;
            }
        }
        true
    }
}

/// Reads a run, which is a file in part of the spill object.
struct RunReader {
    run: Run,
    reading: Reading,
    /// The batch that is being read, and the first row of the current one that is in no piece yet.
    storing: Option<Storing>,
    next_row: usize,
}

enum Reading {
    Footer(Box<FooterReader>),
    Rows(Box<BatchReader>),
}

impl RunReader {
    fn new(run: Run, common: &Common) -> Result<RunReader> {
        let mut footer = FooterReader::new(common.spill, Limits::TRUSTED);
        footer.supply_length(common.spill, run.end - run.start)?;
        Ok(RunReader { run, reading: Reading::Footer(Box::new(footer)), storing: None, next_row: 0 })
    }

    fn read(&mut self, common: &Common, budget: &mut Budget<'_>) -> Result<Step<Batch>> {
        loop {
            let step = match &mut self.reading {
                Reading::Footer(footer) => match footer.step(budget)? {
                    Step::Ready(metadata) => {
                        // It is our own file, and as large as what it was written from.
                        let options = ReadOptions { limits: Limits::TRUSTED, ..ReadOptions::default() };
                        let codecs = Arc::clone(&common.codecs);
                        self.reading = Reading::Rows(Box::new(BatchReader::new(
                            common.spill,
                            metadata,
                            codecs,
                            options,
                        )?));
                        continue;
                    }
                    Step::Need(demand) => Step::Need(demand),
                    Step::Yield => Step::Yield,
                    Step::Done | Step::Append(..) => {
                        return Err(Error::internal("a footer's reader that ends without a footer"));
                    }
                },
                Reading::Rows(rows) => rows.step(budget)?,
            };
            return Ok(match step {
                Step::Need(demand) => Step::Need(self.of_object(demand)),
                other => other,
            });
        }
    }

    /// Translates a demand for bytes of the file into one for bytes of the object.
    fn of_object(&self, mut demand: Demand) -> Demand {
        for want in &mut demand.wants {
            if let Want::Range(_, range, _) = want {
                *range = range.start + self.run.start..range.end + self.run.start;
            }
        }
        demand
    }

    fn supply(&mut self, object: Object, range: &Range<u64>, bytes: &Bytes) -> Result<()> {
        let (start, end) = (range.start.max(self.run.start), range.end.min(self.run.end));
        if start >= end {
            return Ok(());
        }
        let (Some(from), Some(to)) = (usize_of(start - range.start), usize_of(end - range.start)) else {
            return Err(Error::internal("bytes that are not in memory"));
        };
        let (bytes, within) = (bytes.slice(from..to), start - self.run.start..end - self.run.start);
        match &mut self.reading {
            Reading::Footer(footer) => footer.supply(object, within, bytes),
            Reading::Rows(rows) => rows.supply(object, within, bytes),
        }
    }
}
