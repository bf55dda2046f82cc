//! Marquetry's own part: its machines, driven as a reactor drives them.

use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use marquetry_base::cast::usize_of;
use marquetry_base::{Budget, Error, Limits, Machine, Object, Release, Step, Want};
use marquetry_codecs::StandardCodecs;
use marquetry_parquet::batch::{Assembler, Batch};
use marquetry_parquet::format::FileMetaData;
use marquetry_parquet::read::{BatchReader, FooterReader, PageIndexReader, ReadOptions};
use marquetry_parquet::record::Program;
use marquetry_parquet::schema::{Plan, Schema};

use super::{Call, Calls, Read};

const FILE: Object = Object(0);

/// The most bytes that the host reads at a time: so the largest piece of memory is a reader's.
const PIECE_BYTES: u64 = 1 << 20;

/// What a default limit refuses is read here; but no more is held than by default, on a machine of any size.
const LIMITS: Limits = Limits { total_bytes: Limits::DEFAULT.total_bytes, ..Limits::TRUSTED };

/// Where the bytes are.
#[derive(Debug)]
pub enum Source {
    /// In memory.
    Memory(Bytes),
    /// On the disk, of that length.
    Disk(std::fs::File, u64),
}

impl Source {
    /// Opens a file: to be read into memory, or to be read piece by piece.
    ///
    /// # Errors
    /// Those of the file system, with the file's name.
    pub fn open(path: &str, in_memory: bool) -> Result<Self, String> {
        let opened = || {
            if in_memory {
                return Ok(Self::Memory(std::fs::read(path)?.into()));
            }
            let file = std::fs::File::open(path)?;
            let length = file.metadata()?.len();
            Ok(Self::Disk(file, length))
        };
        opened().map_err(|error: std::io::Error| format!("{path}: {error}"))
    }

    /// The file's length in bytes.
    pub fn length(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::Disk(_, length) => *length,
        }
    }

    /// Some of it; nothing beyond its end.
    ///
    /// # Errors
    /// Those of reading the file.
    pub fn bytes(&self, range: Range<u64>) -> std::io::Result<Bytes> {
        let place = |at: u64| usize_of(at).unwrap_or(usize::MAX);
        match self {
            Self::Memory(bytes) => Ok(bytes.slice(place(range.start)..place(range.end))),
            Self::Disk(file, _) => {
                let mut piece = vec![0; place(range.end - range.start)];
                file.read_exact_at(&mut piece, range.start)?;
                Ok(piece.into())
            }
        }
    }
}

/// Reads the file once, its page index, all columns, in slots of Arrow's layout, nested ones as arrays; every step with a budget of [`Budget::DEFAULT_UNITS`], or
/// without an end. What is read is let go at once.
pub fn read(source: &Source, calls: Option<&mut Calls>, unlimited: bool) -> Read {
    let mut host = Host { source, calls, unlimited };
    match host.read() {
        Ok(rows) => Read::Rows(rows),
        Err(error) => Read::Refused(error.to_string()),
    }
}

struct Host<'host> {
    source: &'host Source,
    calls: Option<&'host mut Calls>,
    unlimited: bool,
}

impl Host<'_> {
    fn read(&mut self) -> Result<u64, Error> {
        let mut footer = FooterReader::new(FILE, LIMITS);
        let metadata =
            self.next(&mut footer)?.ok_or_else(|| Error::internal("a footer reader without metadata"))?;
        self.release(footer);
        let codecs = Arc::new(StandardCodecs::default());
        let options = ReadOptions { limits: LIMITS, ..ReadOptions::default() };
        self.index(&metadata, &options)?;
        let mut assemblers = self.assemblers(&metadata.schema);
        self.program(&metadata.schema)?;
        let made = Arc::clone(&metadata);
        let mut reader = self.time(Call::New, || BatchReader::new(FILE, made, codecs, options))?;
        let mut rows = 0;
        while let Some(batch) = self.next(&mut reader)? {
            rows += batch.rows as u64;
            for assembler in &mut assemblers {
                self.assemble(assembler, &batch)?;
            }
            self.release(batch);
        }
        self.release(reader);
        self.release(assemblers);
        self.release(metadata);
        Ok(rows)
    }

    /// Reads the page index, where there is one.
    fn index(&mut self, metadata: &Arc<FileMetaData>, options: &ReadOptions) -> Result<(), Error> {
        let metadata = Arc::clone(metadata);
        let mut reader = self.time(Call::New, || PageIndexReader::new(FILE, metadata, options))?;
        while let Some(index) = self.next(&mut reader)? {
            self.release(index);
        }
        self.release(reader);
        Ok(())
    }

    /// Drops something as a host does that must not stall: in slices.
    fn release(&mut self, mut thing: impl Release) {
        while !self.time(Call::Drop, || thing.release(&mut Budget::default())) {}
        self.time(Call::Drop, || drop(thing));
    }

    /// Makes the program of its records.
    fn program(&mut self, schema: &Arc<Schema>) -> Result<(), Error> {
        let mut plan = self.time(Call::New, || Program::plan(Arc::clone(schema), None));
        let program = loop {
            if let Some(program) = self.step(|budget| plan.step(budget))? {
                break program;
            }
        };
        self.time(Call::Drop, || drop((plan, program)));
        Ok(())
    }

    /// One for each column of the table that is nested. Flat ones are arrays as they come.
    fn assemblers(&mut self, schema: &Arc<Schema>) -> Vec<Assembler> {
        let is_nested = |node: &usize| schema.leaves_of(*node).any(|leaf| !schema.leaves()[leaf].is_flat());
        let nested = schema.children(0).filter(is_nested);
        let made = |node| self.time(Call::New, || Assembler::new(Arc::clone(schema), node, None, &LIMITS));
        nested.map(made).collect()
    }

    /// Drives a machine to its next product.
    fn next<M: Machine>(&mut self, machine: &mut M) -> Result<Option<M::Product>, Error> {
        loop {
            match self.step(|budget| machine.step(budget))? {
                Step::Ready(product) => return Ok(Some(product)),
                Step::Done => return Ok(None),
                Step::Yield => {}
                Step::Append(..) => return Err(Error::internal("a reader that writes")),
                Step::Need(demand) => {
                    for want in &demand.wants {
                        match want {
                            Want::Length(object) => machine.supply_length(*object, self.source.length())?,
                            Want::Range(object, range, _) => self.supply(machine, *object, range.clone())?,
                        }
                    }
                    self.time(Call::Drop, || drop(demand));
                }
            }
        }
    }

    fn supply<M: Machine>(
        &mut self,
        machine: &mut M,
        object: Object,
        range: Range<u64>,
    ) -> Result<(), Error> {
        let mut at = range.start;
        while at < range.end {
            let piece = at..range.end.min(at + PIECE_BYTES);
            let bytes =
                self.source.bytes(piece.clone()).map_err(|error| Error::internal(error.to_string()))?;
            at = piece.end;
            self.time(Call::Supply, || machine.supply(object, piece, bytes))?;
        }
        Ok(())
    }

    fn assemble(&mut self, assembler: &mut Assembler, batch: &Batch) -> Result<(), Error> {
        loop {
            let column = |leaf: usize| batch.columns.get(leaf);
            if let Some(array) = self.step(|budget| assembler.step(batch, &column, budget))? {
                self.release(array);
                return Ok(());
            }
        }
    }

    fn step<T>(&mut self, work: impl FnOnce(&mut Budget<'_>) -> T) -> T {
        let mut budget = if self.unlimited { Budget::unlimited() } else { Budget::default() };
        let done = self.time(Call::Step, || work(&mut budget));
        if let Some(calls) = &mut self.calls {
            calls.charged(budget.spent());
        }
        done
    }

    fn time<T>(&mut self, call: Call, work: impl FnOnce() -> T) -> T {
        match &mut self.calls {
            Some(calls) => calls.time(call, work),
            None => work(),
        }
    }
}
