//! What a unit of a budget is, in nanoseconds, for each price in the code.
//!
//! A budget bounds time only as far as prices are right. Each [`Case`] is a file in which nearly all that is charged is charged at one price, in the
//! best, the usual or the worst shape of input for the code that the price is of. Its reading is timed step by step, beside what the
//! steps charged. The prices of the codecs have a table of their own: `cargo run --release -p marquetry-codecs --example prices`.
//! So have those of the encoders: `cargo run --release -p marquetry-parquet --example encode`.
//!
//! A price that no case names is noticed by a test of `dev/xtask`.

mod files;
mod finding;
mod plans;
mod release;
mod text;
mod values;

use std::sync::Arc;

use bytes::Bytes;
use marquetry_base::cast::usize_of;
use marquetry_base::{Budget, Error, Limits, Machine, Object, Release, Result, Step, Want};
use marquetry_codecs::StandardCodecs;
use marquetry_parquet::batch::{Assembler, RowSelection};
use marquetry_parquet::find::{FindOptions, RowFinder};
use marquetry_parquet::format::{FileMetaData, FooterColumns};
use marquetry_parquet::prune::{Evaluator, Predicate, Ranges, Test};
use marquetry_parquet::read::{
    BatchReader, Conform, ConformReader, FooterReader, PageIndexReader, ReadOptions,
};
use marquetry_parquet::record::{Program, RecordSink, ShredOptions, Shredder, Value};
use marquetry_parquet::schema::{Plan, Schema};

use crate::stall::{Call, Calls};

pub use plans::Planned;
pub use text::Text;

const FILE: Object = Object(0);

/// A file whose reading is charged at one price, nearly.
#[derive(Clone, Debug)]
pub struct Case {
    /// The constant: its file below `crates/*/src`, and its name there.
    pub price: &'static str,
    /// What is in the file.
    pub name: String,
    /// What the price is paid for: bytes where `per_byte`, else values.
    pub amount: usize,
    /// Whether it is paid for bytes.
    pub per_byte: bool,
    /// What is timed.
    pub work: Work,
    /// The file.
    pub file: Bytes,
}

/// What of a reading is timed.
#[derive(Clone, Debug)]
pub enum Work {
    /// The footer.
    Footer,
    /// The footer, read for none of its columns.
    NoColumns,
    /// The page index, which comes in pieces of at most so many bytes.
    Index {
        /// The most bytes of a piece.
        piece_bytes: u64,
    },
    /// Batches, of pages that come in pieces of at most so many bytes, whose strings are checked or not.
    Batches {
        /// The most bytes of a piece.
        piece_bytes: u64,
        /// Checks that strings are UTF-8.
        verify_utf8: bool,
    },
    /// Batches of every other row.
    EveryOther,
    /// Values of the first leaf that are tested, the batches' own reading aside.
    Tested(Predicate),
    /// Pages of the first leaf that are judged by their bounds, the index's own reading with them.
    Judged,
    /// Arrays of nested columns, the batches' own reading aside.
    Arrays,
    /// Records, the batches' own reading aside.
    Records,
    /// Records that are told and shredded again, the batches' own reading aside.
    Shredded,
    /// Batches as those of the schema of that file.
    Conform(Bytes),
    /// Releasing what was read in pieces of at most 64 KiB: the page index, the batches, the metadata.
    Release,
    /// What is made of the schema alone.
    Plan(Planned),
    /// The file is text.
    Text(Text),
}

impl Work {
    /// Batches of pages in one piece, of which strings are not checked.
    pub const BATCHES: Work = Work::Batches { piece_bytes: u64::MAX, verify_utf8: false };
}

impl Case {
    fn new(price: &'static str, name: impl Into<String>, amount: usize, file: Bytes) -> Case {
        Case { price, name: name.into(), amount, per_byte: false, work: Work::BATCHES, file }
    }

    fn bytes(self) -> Case {
        Case { per_byte: true, ..self }
    }

    fn work(self, work: Work) -> Case {
        Case { work, ..self }
    }
}

/// All cases. `thousands` is the size of each: so many thousands of values.
pub fn cases(thousands: usize) -> Vec<Case> {
    let cases = [values::cases, files::cases, finding::cases, plans::cases, release::cases, text::cases];
    cases.iter().flat_map(|cases| cases(thousands)).collect()
}

/// Reads a case once; says what was charged. `calls` times each step of what is priced.
///
/// # Errors
/// The readers'.
pub fn read(case: &Case, batch_rows: usize, calls: &mut Calls) -> Result<u64> {
    let mut timer = Timer { calls, is_on: matches!(case.work, Work::Footer | Work::NoColumns), units: 0 };
    if let Work::Text(of) = case.work {
        return text::read(case, of, batch_rows, &mut timer);
    }
    let whole = |machine: &mut FooterReader, timer: &mut Timer<'_>, file: &Bytes| {
        let metadata = timer.next(machine, file, u64::MAX)?;
        metadata.ok_or_else(|| Error::internal("a footer reader without metadata"))
    };
    let mut footer = match case.work {
        Work::NoColumns => FooterReader::of_columns(FILE, Limits::TRUSTED, FooterColumns::default()),
        _ => FooterReader::new(FILE, Limits::TRUSTED),
    };
    let metadata = whole(&mut footer, &mut timer, &case.file)?;
    let mut options = ReadOptions {
        limits: Limits::TRUSTED,
        batch_rows,
        batch_bytes: usize::MAX,
        // A chunk in one piece, but where pieces are what is priced.
        read_bytes: u64::MAX,
        ..ReadOptions::default()
    };
    match &case.work {
        Work::Footer | Work::NoColumns | Work::Text(_) => {}
        Work::Plan(planned) => {
            timer.is_on = true;
            plans::make(*planned, &metadata.schema, &mut timer)?;
        }
        Work::Index { piece_bytes } => {
            timer.is_on = true;
            let mut reader = PageIndexReader::new(FILE, metadata, &options)?;
            while timer.next(&mut reader, &case.file, *piece_bytes)?.is_some() {}
        }
        Work::Batches { piece_bytes, verify_utf8 } => {
            timer.is_on = true;
            options.verify_utf8 = *verify_utf8;
            let mut reader = batches(metadata, options)?;
            while timer.next(&mut reader, &case.file, *piece_bytes)?.is_some() {}
        }
        Work::EveryOther => {
            let (mut rows, budget) = (RowSelection::none(), &mut Budget::unlimited());
            for row in (0..metadata.row_groups[0].rows).step_by(2) {
                rows.push(row..row + 1, budget)?;
            }
            timer.is_on = true;
            let mut reader = batches(metadata, options)?;
            reader.select(0, rows)?;
            while timer.next(&mut reader, &case.file, u64::MAX)?.is_some() {}
        }
        Work::Tested(predicate) => {
            options.keep_dictionaries = true;
            let mut evaluator = Evaluator::new(predicate, &metadata.schema, &[0])?;
            let mut reader = batches(metadata, options)?;
            while let Some(batch) = timer.next(&mut reader, &case.file, u64::MAX)? {
                timer.is_on = true;
                while timer.step(|budget| evaluator.step(&batch, budget))?.is_none() {}
                timer.is_on = false;
            }
        }
        Work::Judged => {
            timer.is_on = true;
            let mut find = FindOptions::default();
            find.read = options;
            find.structures.statistics = false;
            let never =
                Predicate::Test(Test::accepting(0, Ranges::of_keys(i64::MIN.into(), i64::MIN.into())));
            let codecs = Arc::new(StandardCodecs::default());
            let mut finder = RowFinder::new(FILE, metadata, codecs, never, find)?;
            while timer.next(&mut finder, &case.file, u64::MAX)?.is_some() {}
        }
        Work::Arrays => {
            let mut assemblers = assemblers(&metadata.schema);
            let mut reader = batches(metadata, options)?;
            while let Some(batch) = timer.next(&mut reader, &case.file, u64::MAX)? {
                timer.is_on = true;
                for assembler in &mut assemblers {
                    let column = |leaf: usize| batch.columns.get(leaf);
                    while timer.step(|budget| assembler.step(&batch, &column, budget))?.is_none() {}
                }
                timer.is_on = false;
            }
        }
        Work::Records => {
            let program = Program::plan(Arc::clone(&metadata.schema), None).at_once()?;
            let mut reader = batches(metadata, options)?;
            let mut sink = Nothing;
            while let Some(batch) = timer.next(&mut reader, &case.file, u64::MAX)? {
                timer.is_on = true;
                let mut records = program.records(&batch)?;
                while !timer.step(|budget| records.step(&mut sink, budget))? {}
                timer.is_on = false;
            }
        }
        Work::Shredded => {
            let shred = ShredOptions { batch_rows: usize::MAX, ..ShredOptions::default() };
            let mut shredder = Shredder::plan(Arc::clone(&metadata.schema), None, shred).at_once()?;
            let program = Arc::clone(shredder.program());
            let mut reader = batches(metadata, options)?;
            while let Some(batch) = timer.next(&mut reader, &case.file, u64::MAX)? {
                timer.is_on = true;
                let mut records = program.records(&batch)?;
                let mut tell = |budget: &mut Budget<'_>| {
                    let mut part = Budget::new(budget.left() / 8);
                    let told = records.step(&mut shredder, &mut part);
                    budget.charge_units(part.spent());
                    shredder.charge(budget);
                    told
                };
                while !timer.step(&mut tell)? {}
                while timer.step(|budget| shredder.take(budget))?.is_none() {}
                timer.is_on = false;
            }
        }
        Work::Release => release(metadata, options, &case.file, &mut timer)?,
        Work::Conform(other) => {
            let mut footer = FooterReader::new(FILE, Limits::TRUSTED);
            let table = whole(&mut footer, &mut timer, other)?;
            let conform =
                Conform::plan(Arc::clone(&metadata.schema), Arc::clone(&table.schema), &[]).at_once()?;
            let conform = Arc::new(conform);
            timer.is_on = true;
            let codecs = Arc::new(StandardCodecs::default());
            let mut reader = ConformReader::new(FILE, metadata, codecs, options, conform, Vec::new())?;
            while timer.next(&mut reader, &case.file, u64::MAX)?.is_some() {}
        }
    }
    Ok(timer.units)
}

/// Releases all that is in a file, after its readers are dropped: nothing of it is shared any more.
fn release(
    metadata: Arc<FileMetaData>,
    options: ReadOptions,
    file: &Bytes,
    timer: &mut Timer<'_>,
) -> Result<()> {
    const PIECE_BYTES: u64 = 64 << 10;
    let mut held: Vec<Box<dyn Release>> = Vec::new();
    let mut indexes = PageIndexReader::new(FILE, Arc::clone(&metadata), &options)?;
    while let Some(index) = timer.next(&mut indexes, file, PIECE_BYTES)? {
        held.push(Box::new(index));
    }
    let mut reader = batches(Arc::clone(&metadata), options)?;
    while let Some(batch) = timer.next(&mut reader, file, PIECE_BYTES)? {
        held.push(Box::new(batch));
    }
    drop((indexes, reader));
    held.insert(0, Box::new(metadata));
    timer.is_on = true;
    while let Some(mut thing) = held.pop() {
        while !timer.step(|budget| thing.release(budget)) {}
    }
    Ok(())
}

fn batches(metadata: Arc<FileMetaData>, options: ReadOptions) -> Result<BatchReader> {
    BatchReader::new(FILE, metadata, Arc::new(StandardCodecs::default()), options)
}

fn assemblers(schema: &Arc<Schema>) -> Vec<Assembler> {
    let assembler = |node| Assembler::new(Arc::clone(schema), node, None, &Limits::TRUSTED);
    schema.children(0).map(assembler).collect()
}

struct Timer<'calls> {
    calls: &'calls mut Calls,
    is_on: bool,
    units: u64,
}

impl Timer<'_> {
    fn step<T>(&mut self, work: impl FnOnce(&mut Budget<'_>) -> T) -> T {
        let mut budget = Budget::default();
        if !self.is_on {
            return work(&mut budget);
        }
        let done = self.calls.time(Call::Step, || work(&mut budget));
        self.calls.charged(budget.spent());
        self.units += budget.spent();
        done
    }

    /// Drives a machine to its next product.
    fn next<M: Machine>(
        &mut self,
        machine: &mut M,
        file: &Bytes,
        piece_bytes: u64,
    ) -> Result<Option<M::Product>> {
        loop {
            match self.step(|budget| machine.step(budget))? {
                Step::Ready(product) => return Ok(Some(product)),
                Step::Done => return Ok(None),
                Step::Yield => {}
                Step::Append(..) => return Err(Error::internal("a reader that writes")),
                Step::Need(demand) => {
                    for want in demand.wants {
                        let Want::Range(object, range, _) = want else {
                            machine.supply_length(FILE, file.len() as u64)?;
                            continue;
                        };
                        let mut at = range.start;
                        while at < range.end {
                            let piece = at..range.end.min(at.saturating_add(piece_bytes));
                            let place = |at: u64| usize_of(at).unwrap_or(usize::MAX);
                            let bytes = file.slice(place(piece.start)..place(piece.end));
                            at = piece.end;
                            machine.supply(object, piece, bytes)?;
                        }
                    }
                }
            }
        }
    }
}

/// Hears records and does nothing.
struct Nothing;

impl RecordSink for Nothing {
    fn start_record(&mut self) -> Result<()> {
        Ok(())
    }
    fn end_record(&mut self) -> Result<()> {
        Ok(())
    }
    fn start_struct(&mut self, _field: usize) -> Result<()> {
        Ok(())
    }
    fn end_struct(&mut self, _field: usize) -> Result<()> {
        Ok(())
    }
    fn start_list(&mut self, _field: usize) -> Result<()> {
        Ok(())
    }
    fn end_list(&mut self, _field: usize) -> Result<()> {
        Ok(())
    }
    fn start_map(&mut self, _field: usize) -> Result<()> {
        Ok(())
    }
    fn end_map(&mut self, _field: usize) -> Result<()> {
        Ok(())
    }
    fn null(&mut self, _field: usize) -> Result<()> {
        Ok(())
    }
    fn value(&mut self, _field: usize, value: Value<'_>) -> Result<()> {
        std::hint::black_box(&value);
        Ok(())
    }
}

/// Numbers that look random and are always the same (Marsaglia's xorshift).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new() -> Random {
        Random(0x9e37_79b9_7f4a_7c15)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Below a bound.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from((self.next() >> 16) % bound.max(1) as u64).unwrap_or(0)
    }

    /// Below a bound, as an index is in a file.
    pub(crate) fn index(&mut self, bound: usize) -> u32 {
        u32::try_from(self.below(bound)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work that is charged nowhere is work that no budget bounds: twice the input must cost twice as much, about. It cannot
    /// depend on the machine.
    #[test]
    fn what_is_read_is_charged() {
        let charged = |case: &Case| {
            let units = read(case, 8192, &mut Calls::default());
            units.unwrap_or_else(|error| panic!("{}, {}: {error}", case.price, case.name))
        };
        for (small, large) in cases(20).iter().zip(&cases(40)) {
            assert_eq!(small.name, large.name);
            assert!(large.amount > small.amount, "{}: {} of {}", small.name, large.amount, small.amount);
            let more = (charged(large) - charged(small)) as f64 / (large.amount - small.amount) as f64;
            // The cheapest byte there is, a CRC's, costs a tenth of a unit; the cheapest value a fifth.
            let least = if small.per_byte { 0.05 } else { 0.2 };
            assert!(more >= least, "{}, {}: {more:.3} units", small.price, small.name);
        }
    }
}
