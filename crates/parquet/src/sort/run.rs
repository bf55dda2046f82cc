//! Sorted rows on their way to the spill object.

use alloc::boxed::Box;
use core::ops::Range;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Bytes, Error, Failed, Machine, Object, Result, Step};

use super::is_paid_for;
use super::producer::{Common, Producer, Run};
use crate::going::Going;
use crate::write::{Fed, FileWriter};

/// A run that is being written: returns the bytes to append to the spill object, from merged rows that it holds.
pub(super) struct RunWork {
    common: Common,
    producer: Box<Producer>,
    writer: Box<FileWriter>,
    /// Where it starts in the spill object, and its bytes so far.
    start: u64,
    bytes: u64,
    is_done: bool,
    failed: Failed,
}

impl RunWork {
    pub(super) fn new(common: Common, producer: Producer, writer: FileWriter, start: u64) -> RunWork {
        RunWork {
            common,
            producer: Box::new(producer),
            writer: Box::new(writer),
            start,
            bytes: 0,
            is_done: false,
            failed: Failed::default(),
        }
    }

    /// Its bytes in the spill object, once they are all appended.
    pub(super) fn run(&self) -> Option<Run> {
        self.is_done.then_some(self.start..self.start + self.bytes)
    }

    /// Works on, up to a point where the budget is to be looked at. `None` there.
    fn advance(&mut self, budget: &mut Budget<'_>) -> Result<Option<Step<()>>> {
        Ok(match self.writer.step(budget)? {
            Step::Append(object, bytes) => {
                self.bytes += u64_of(bytes.len());
                Some(Step::Append(object, bytes))
            }
            Step::Yield => Some(Step::Yield),
            Step::Need(_) => return Err(Error::internal("a run's writer that reads")),
            Step::Ready(_) if !is_paid_for(1, budget) => Some(Step::Yield),
            Step::Ready(_) => match self.producer.step(&self.common, budget)? {
                Going::Done(Some(rows)) => match self.writer.feed(rows.batch)? {
                    Fed::Taken => None,
                    Fed::Full(_) => return Err(Error::internal("a writer that asked for rows has no room")),
                },
                Going::Need(demand) => Some(Step::Need(demand)),
                Going::Yield => Some(Step::Yield),
                Going::Done(None) => {
                    self.writer.finish();
                    None
                }
            },
            Step::Done => {
                self.is_done = true;
                Some(Step::Done)
            }
        })
    }
}

impl Machine for RunWork {
    type Product = ();

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<()>> {
        Failed::run(
            self,
            |work| &mut work.failed,
            |work| loop {
                if let Some(answer) = work.advance(budget)? {
                    return Ok(answer);
                }
                if budget.is_spent() {
                    return Ok(Step::Yield);
                }
            },
        )
    }

    fn supply(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()> {
        self.producer.supply(object, &range, &bytes)
    }

    fn supply_length(&mut self, _object: Object, _length: u64) -> Result<()> {
        Err(Error::misuse("a length that was not asked for"))
    }

    fn fail(&mut self, _object: Object, _range: Range<u64>, reason: Error) {
        self.failed.set(reason);
    }
}
