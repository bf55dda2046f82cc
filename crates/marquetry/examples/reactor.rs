//! The machines in a reactor of one's own: nothing here waits, and nothing works for long.
//! `cargo run --example reactor -- trips.parquet`.
//!
//! A toy of a reactor: its disk answers late, in pieces, out of order; between two steps it has other work. What it
//! shows is the whole contract: step, and do what the answer says.

use std::collections::VecDeque;
use std::env;
use std::fs;
use std::sync::Arc;

use marquetry::base::{Budget, Bytes, Limits, Machine, Object, Step, Want};
use marquetry::codecs::StandardCodecs;
use marquetry::parquet::read::{BatchReader, FooterReader, ReadOptions};

/// The machine's name for the file.
const FILE: Object = Object(0);

/// What the reactor's disk was asked for, and has not answered yet.
struct Disk {
    bytes: Bytes,
    asked: VecDeque<Want>,
    turns: usize,
}

impl Disk {
    /// Answers one request, in two pieces, the second one first.
    fn poll(&mut self, machine: &mut impl Machine) -> marquetry::Result<()> {
        match self.asked.pop_front() {
            Some(Want::Length(object)) => machine.supply_length(object, self.bytes.len() as u64),
            Some(Want::Range(object, range, _)) => {
                let middle = range.start + (range.end - range.start) / 2;
                for piece in [middle..range.end, range.start..middle] {
                    let at = |offset: u64| usize::try_from(offset).expect("the file is in memory");
                    let bytes = self.bytes.slice(at(piece.start)..at(piece.end));
                    machine.supply(object, piece, bytes)?;
                }
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Drives a machine to its next product, with the reactor's other work in between.
    fn drive<M: Machine>(&mut self, machine: &mut M) -> marquetry::Result<Option<M::Product>> {
        loop {
            // A default budget is about a quarter of a millisecond of work; a host may end it earlier, by its own test.
            match machine.step(&mut Budget::default())? {
                Step::Ready(product) => return Ok(Some(product)),
                Step::Done => return Ok(None),
                // Asked again, a machine gives the same answer: so it may be asked at any time.
                Step::Need(demand) if self.asked.is_empty() => self.asked.extend(demand.wants),
                Step::Need(_) => self.poll(machine)?,
                Step::Yield => {}
                Step::Append(..) => unreachable!("a reader appends nothing"),
            }
            self.turns += 1; // Others have their turn.
        }
    }
}

fn main() -> marquetry::Result<()> {
    let path = env::args_os().nth(1).unwrap_or_else(|| "trips.parquet".into());
    let bytes = fs::read(path).map_err(|error| marquetry::Error::io(error.to_string()).caused_by(error))?;
    let mut disk = Disk { bytes: bytes.into(), asked: VecDeque::new(), turns: 0 };

    let mut footer = FooterReader::new(FILE, Limits::DEFAULT);
    let metadata = disk.drive(&mut footer)?.expect("a footer's reader has one product");
    let codecs = Arc::new(StandardCodecs::default());
    let mut reader = BatchReader::new(FILE, metadata, codecs, ReadOptions::default())?;
    let mut rows = 0;
    while let Some(batch) = disk.drive(&mut reader)? {
        rows += batch.rows;
    }
    println!("{rows} rows, and {} turns for others", disk.turns);
    Ok(())
}
