//! Sorted rows, a batch at a time: from memory, or from runs.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::{u64_of, usize_of};
use marquetry_base::{
    Budget, Bytes, Codecs, Demand, Error, Limits, Machine, Object, Price, Result, Step, Want,
};

use super::gather::{Gathering, Kept, Measuring};
use super::is_paid_for;
use super::key::Keys;
use super::merge::{Merge, Pick, Picked};
use super::pieces::Piece;
use super::stored::{Rows, Stored, Storing};
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
    pub(super) keys: Arc<Keys>,
    pub(super) codecs: Arc<dyn Codecs>,
    pub(super) spill: Object,
}

/// Sorted rows in the spill object: a Parquet file of these bytes.
pub(super) type Run = Range<u64>;

/// Rows in memory, in order: batches, one after the other.
pub(super) type Block = Vec<Stored>;

/// Merges what is sorted in parts.
pub(super) struct Producer {
    /// Batches that rows are picked from: those in memory, and the current one of each run.
    stored: Vec<Stored>,
    /// What the merge's pieces come from. Empty if it has them all.
    sources: Vec<Source>,
    merge: Merge,
    /// Maximum rows of a batch that is returned.
    batch_rows: usize,
    /// What becomes of columns whose dictionaries are kept.
    kept: Kept,
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
    /// Gets the first rows of sources, from this one on.
    Starting(usize),
    /// The first rows are compared.
    Building,
    Picking,
    Measuring(Measuring),
    Gathering(Box<Gathering>, usize),
    /// The next rows of a source are got.
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

/// Sorted rows, a piece of which takes part in the merge.
enum Source {
    /// A block: its batches that are left, and the first row that is in no piece yet.
    Memory { stored: Range<usize>, next_row: usize },
    /// A run, whose current batch is this one.
    Run { reader: Box<RunReader>, stored: usize },
}

impl Producer {
    /// Of batches, and sorted pieces of them.
    pub(super) fn of_pieces(stored: Vec<Stored>, pieces: Vec<Piece>, batch_rows: usize) -> Producer {
        Producer::new(stored, Vec::new(), Merge::of(pieces), (batch_rows, Kept::Indices))
    }

    /// Of runs, and of blocks that came after them.
    ///
    /// # Errors
    ///
    /// If a run cannot be a Parquet file.
    pub(super) fn of(
        runs: &[Run],
        blocks: Vec<Block>,
        common: &Common,
        (batch_rows, kept): (usize, Kept),
    ) -> Result<Producer> {
        let mut sources = Vec::with_capacity(runs.len() + blocks.len());
        for (stored, run) in runs.iter().enumerate() {
            sources.push(Source::Run { reader: Box::new(RunReader::new(run.clone(), common)?), stored });
        }
        let mut stored: Vec<Stored> = runs.iter().map(|_| Stored::default()).collect();
        // It is not known of runs.
        let mut commons = alloc::vec![0; runs.len()];
        for block in blocks {
            let start = stored.len();
            commons.push(block.iter().map(|stored| stored.common).min().unwrap_or(0));
            stored.extend(block);
            sources.push(Source::Memory { stored: start..stored.len(), next_row: 0 });
        }
        let merge = Merge::of_empty(commons.into_iter());
        Ok(Producer::new(stored, sources, merge, (batch_rows, kept)))
    }

    fn new(
        stored: Vec<Stored>,
        sources: Vec<Source>,
        merge: Merge,
        (batch_rows, kept): (usize, Kept),
    ) -> Producer {
        Producer {
            stored,
            sources,
            merge,
            batch_rows,
            kept,
            picks: Vec::new(),
            stage: Stage::Starting(0),
            then: Then::Picking,
            rows: 0,
            released: Released::default(),
        }
    }

    /// Works up to the next rows; `None` after the last.
    pub(super) fn step(
        &mut self,
        common: &Common,
        budget: &mut Budget<'_>,
    ) -> Result<Going<Option<Rows>, Demand>> {
        loop {
            match &mut self.stage {
                Stage::Starting(source) => {
                    let source = *source;
                    if source == self.sources.len() {
                        self.stage = Stage::Building;
                    } else {
                        done!(self.refill(source, common, budget)?);
                        self.stage = Stage::Starting(source + 1);
                    }
                }
                Stage::Building => {
                    if self.merge.build(budget) {
                        self.stage = Stage::Picking;
                    }
                }
                Stage::Picking => {
                    let has_all = self.sources.is_empty();
                    match self.merge.pick(&mut self.picks, self.batch_rows, has_all, budget)? {
                        Picked::Spent => return Ok(Going::Yield),
                        Picked::Enough => self.gather(Then::Picking),
                        Picked::All => self.gather(Then::Clearing),
                        Picked::Exhausted(source) if self.is_kept(source) => {
                            self.stage = Stage::Refilling(source)
                        }
                        // Rows that were picked need the batch that is about to be replaced.
                        Picked::Exhausted(source) => self.gather(Then::Refilling(source)),
                    }
                }
                Stage::Measuring(measuring) => {
                    let Some(rows) = measuring.step(&common.schema, &self.stored, &self.picks, budget) else {
                        return Ok(Going::Yield);
                    };
                    let gathering = Gathering::new(rows, &common.schema, self.kept.clone())?;
                    self.stage = Stage::Gathering(Box::new(gathering), rows);
                }
                Stage::Gathering(gathering, rows) => {
                    let rows = *rows;
                    let (schema, first) = (&common.schema, self.rows);
                    let gathered = gathering.step(schema, &self.stored, &self.picks, first, budget)?;
                    let Some(gathered) = gathered else { return Ok(Going::Yield) };
                    self.picks.drain(..rows);
                    self.rows += u64_of(rows);
                    self.gather(self.then);
                    return Ok(Going::Done(Some(gathered)));
                }
                Stage::Refilling(source) => {
                    let source = *source;
                    done!(self.refill(source, common, budget)?);
                    self.merge.go_on(source, budget);
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

    /// Leading bytes that the keys of all rows share, once there are rows.
    pub(super) fn common(&self) -> usize {
        self.merge.common()
    }

    /// Takes bytes of the spill object.
    pub(super) fn supply(&mut self, object: Object, range: &Range<u64>, bytes: &Bytes) -> Result<()> {
        self.sources.iter_mut().try_for_each(|source| match source {
            Source::Run { reader, .. } => reader.supply(object, range, bytes),
            Source::Memory { .. } => Ok(()),
        })
    }

    /// Sets what follows once everything picked is gathered, which happens now if anything was.
    fn gather(&mut self, then: Then) {
        self.then = then;
        self.stage = match then {
            _ if !self.picks.is_empty() => Stage::Measuring(Measuring::new(self.picks.len())),
            Then::Picking => Stage::Picking,
            Then::Refilling(source) => Stage::Refilling(source),
            Then::Clearing => Stage::Clearing,
        };
    }

    /// Whether the next piece of a source leaves the batches that rows were picked from where they are.
    fn is_kept(&self, source: usize) -> bool {
        match self.sources.get(source) {
            Some(Source::Run { reader, stored }) => {
                self.stored.get(*stored).is_some_and(|stored| reader.next_row < stored.rows)
            }
            Some(Source::Memory { .. }) => true,
            None => false,
        }
    }

    /// Passes the next rows of a source to the merge; none at its end.
    fn refill(
        &mut self,
        source: usize,
        common: &Common,
        budget: &mut Budget<'_>,
    ) -> Result<Going<(), Demand>> {
        let next = match self.sources.get_mut(source) {
            Some(Source::Memory { stored, next_row }) => {
                let rows_of = |at: usize| self.stored.get(at).map_or(0, |stored| stored.rows);
                if *next_row == rows_of(stored.start) {
                    (stored.start, *next_row) = ((stored.start + 1).min(stored.end), 0);
                }
                (stored.start < stored.end).then_some((stored.start, next_row))
            }
            Some(Source::Run { reader, stored }) => {
                let at = *stored;
                let Some(stored) = self.stored.get_mut(at) else {
                    return Err(Error::internal("a run without a batch"));
                };
                let has_rows = done!(reader.next_batch(stored, &mut self.released, common, budget)?);
                has_rows.then_some((at, &mut reader.next_row))
            }
            None => return Err(Error::internal("a source that is not there")),
        };
        let Some((at, next_row)) = next else { return Ok(Going::Done(())) };
        if !Piece::is_paid_for(budget) {
            return Ok(Going::Yield);
        }
        let number =
            u32::try_from(at).map_err(|_| Error::internal("more batches than are merged at once"))?;
        let Some(stored) = self.stored.get(at) else {
            return Err(Error::internal("a batch that is missing"));
        };
        let piece = Piece::new(&common.keys, &stored.columns, number, *next_row..stored.rows, true, budget)?;
        *next_row += piece.len();
        self.merge.replace(source, piece);
        Ok(Going::Done(()))
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

    /// Replaces the current batch by the next one, if all of its rows are in pieces. False at the end.
    fn next_batch(
        &mut self,
        stored: &mut Stored,
        released: &mut Released,
        common: &Common,
        budget: &mut Budget<'_>,
    ) -> Result<Going<bool, Demand>> {
        loop {
            if !is_paid_for(1, budget) {
                return Ok(Going::Yield);
            }
            if self.next_row < stored.rows {
                return Ok(Going::Done(true));
            }
            if let Some(storing) = &mut self.storing {
                if !storing.step(&common.schema, budget)? {
                    return Ok(Going::Yield);
                }
                *stored = self.storing.take().map(Storing::finish).unwrap_or_default();
                self.next_row = 0;
                continue;
            }
            if !stored.release(released, budget) || !released.step(budget) {
                return Ok(Going::Yield);
            }
            (stored.rows, self.next_row) = (0, 0);
            match self.read(common, budget)? {
                Step::Ready(batch) => self.storing = Some(Storing::new(batch, false)),
                Step::Need(demand) => return Ok(Going::Need(demand)),
                Step::Yield => return Ok(Going::Yield),
                Step::Done => return Ok(Going::Done(false)),
                Step::Append(..) => return Err(Error::internal("a reader that writes")),
            }
        }
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
