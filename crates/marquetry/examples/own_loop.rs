//! Files read in turn by a loop of one's own, on one thread: `cargo run --example own_loop -- trips.parquet more.parquet`.
//!
//! Each turn is one step of one file, or one read for it by `pread`. A loop over epoll or io_uring has the same shape: there
//! a read is begun in one turn and supplied in another. (The driver `marquetry::io::drive` is for programs that wait.)

use std::env;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use marquetry::base::{Budget, Bytes, Demand, Error, Limits, Machine, Object, Priority, Step, Want};
use marquetry::codecs::StandardCodecs;
use marquetry::parquet::read::{BatchReader, FooterReader, ReadOptions};

/// The machine's name for its only file.
const FILE: Object = Object(0);

/// A file, and how far it is read.
struct Task {
    file: File,
    work: Work,
    rows: usize,
}

enum Work {
    Footer(Box<FooterReader>),
    Rows(Box<BatchReader>),
    Done,
}

fn io(error: std::io::Error) -> Error {
    Error::io(error.to_string()).caused_by(error)
}

/// Supplies what a machine cannot go on without.
fn supply(machine: &mut impl Machine, file: &File, demand: Demand) -> marquetry::Result<()> {
    for want in demand.wants {
        match want {
            Want::Length(object) => machine.supply_length(object, file.metadata().map_err(io)?.len())?,
            Want::Range(object, range, Priority::Now) => {
                let length =
                    usize::try_from(range.end - range.start).map_err(|_| Error::misuse("too long"))?;
                let mut bytes = vec![0; length];
                file.read_exact_at(&mut bytes, range.start).map_err(io)?;
                machine.supply(object, range, Bytes::from(bytes))?;
            }
            Want::Range(_, _, Priority::Soon) => {}
        }
    }
    Ok(())
}

impl Task {
    /// One turn.
    fn turn(&mut self) -> marquetry::Result<()> {
        let budget = &mut Budget::default();
        match &mut self.work {
            Work::Done => {}
            Work::Footer(reader) => match reader.step(budget)? {
                Step::Need(demand) => supply(&mut **reader, &self.file, demand)?,
                Step::Ready(metadata) => {
                    let codecs = Arc::new(StandardCodecs::default());
                    let reader = BatchReader::new(FILE, metadata, codecs, ReadOptions::default())?;
                    self.work = Work::Rows(Box::new(reader));
                }
                Step::Yield | Step::Append(..) | Step::Done => {}
            },
            Work::Rows(reader) => match reader.step(budget)? {
                Step::Need(demand) => supply(&mut **reader, &self.file, demand)?,
                Step::Ready(batch) => self.rows += batch.rows,
                Step::Done => self.work = Work::Done,
                Step::Yield | Step::Append(..) => {}
            },
        }
        Ok(())
    }
}

fn main() -> marquetry::Result<()> {
    let mut tasks = Vec::new();
    for path in env::args_os().skip(1) {
        let work = Work::Footer(Box::new(FooterReader::new(FILE, Limits::DEFAULT)));
        tasks.push(Task { file: File::open(path).map_err(io)?, work, rows: 0 });
    }
    let (mut turns, mut longest) = (0, Duration::ZERO);
    while tasks.iter().any(|task| !matches!(task.work, Work::Done)) {
        for task in &mut tasks {
            let began = Instant::now();
            task.turn()?;
            (turns, longest) = (turns + 1, longest.max(began.elapsed()));
        }
    }
    let rows: usize = tasks.iter().map(|task| task.rows).sum();
    println!("{rows} rows in {turns} turns");
    eprintln!("the longest turn took {longest:?}, reads included");
    Ok(())
}
