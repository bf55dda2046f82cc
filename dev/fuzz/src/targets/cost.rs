//! What calls cost, on files and texts at the extremes of their formats: right ones, nearly right ones, and lies.
//!
//! What comes out is not looked at: the other targets do. So a run is all calls of machines, of which [`meter`] sees each.

use std::ops::Range;
use std::sync::Arc;

use marquetry_base::{Budget, Bytes, Codec, Error, Limits, Machine, Object, Result, Step, Want};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical::FILE;
use marquetry_parquet::batch::{Assembler, Batch, Layout, RowSelection, Values};
use marquetry_parquet::format::{Compression, FileMetaData, SortingColumn};
use marquetry_parquet::read::{BatchReader, FooterReader, PageIndexReader, PageScanner, ReadOptions};
use marquetry_parquet::record::{Program, RecordSink, ShredOptions, Shredder, Value};
use marquetry_parquet::schema::{PhysicalType, Plan, Schema};
use marquetry_parquet::sort::{SortOptions, Sorted, Sorter};
use marquetry_parquet::write::{
    BloomOptions, ColumnOptions, FileWriter, PageBloomOptions, PageVersion, Room, WriteOptions,
};
use marquetry_text::read::{Read, Sampled, TextReader, TextSampler};
use marquetry_text::{Format, Header, TextOptions};

use crate::choices::Choices;
use crate::edit::Edit;
use crate::extremes;
use crate::host::{LIMITS, Watched, at_once, check_error, structure_units};
use crate::meter::{self, SLICE_UNITS_MAX};
use crate::targets::SPILL;
use crate::targets::write::encodings;

/// Units of a run, about: when they are spent, the host has enough. A file may take minutes.
const UNITS_MAX: u64 = 5_000_000;

/// Steps of a run, where each has next to no budget.
const STEPS_MAX: u64 = 20_000;

/// Bytes that are held beside what the limits allow: what is in the middle of being made, and a batch's successor.
const SLACK_BYTES: u64 = 8 << 20;

/// Bytes of a shredded batch: values that are one in the file are copied, until the host has enough.
const SHREDDED_BYTES: u64 = 64 << 20;

/// How often a text's bytes are held, at the most: a field of a byte becomes a column with a name, or a value in it.
const TEXT_TIMES: u64 = 64;

/// How often a footer's bytes are held, at the most: three bytes become a structure of some hundreds.
const FOOTER_TIMES: u64 = 64;

/// A file or a text.
pub(crate) fn run(data: &[u8]) {
    let choices = &mut Choices::new(data);
    match choices.byte() % 8 {
        0 => text(choices),
        _ => file(choices),
    }
}

/// A host that lets a machine do so much in a step, and hands bytes over in such pieces.
struct Host {
    bytes: Bytes,
    units: u64,
    piece_bytes: u64,
    /// What it has enough of.
    units_left: u64,
    steps_left: u64,
}

impl Host {
    fn choose(bytes: Bytes, choices: &mut Choices<'_>) -> Host {
        let piece_bytes = choices.pick(&[1 << 20, u64::MAX, 64 << 10, 1_000]).max(bytes.len() as u64 / 2_000);
        Host {
            bytes,
            units: choices.pick(&[Budget::DEFAULT_UNITS, Budget::DEFAULT_UNITS, 0, 20_000]),
            piece_bytes,
            units_left: UNITS_MAX,
            steps_left: STEPS_MAX,
        }
    }

    /// A call with a budget; `None` when there was enough.
    fn call<T>(&mut self, work: impl FnOnce(&mut Budget<'_>) -> T) -> Option<T> {
        if self.units_left == 0 || self.steps_left == 0 {
            return None;
        }
        let mut budget = Budget::new(self.units);
        let result = work(&mut budget);
        self.units_left = self.units_left.saturating_sub(budget.spent());
        self.steps_left -= 1;
        Some(result)
    }

    /// Drives a machine to its next product; `None` at its end, at its error, or when there was enough.
    fn next<M: Machine>(&mut self, machine: &mut Watched<M>) -> Option<M::Product> {
        loop {
            match self.call(|budget| machine.step(budget))? {
                Err(error) => {
                    check_error(&error);
                    return None;
                }
                Ok(Step::Done) => return None,
                Ok(Step::Ready(product)) => return Some(product),
                Ok(Step::Yield | Step::Append(..)) => {}
                Ok(Step::Need(demand)) => {
                    for want in demand.wants {
                        let result = match want {
                            Want::Length(object) => machine.supply_length(object, self.bytes.len() as u64),
                            Want::Range(object, range, _) => self.supply(machine, object, range),
                        };
                        result.expect("bytes that were asked for");
                    }
                }
            }
        }
    }

    fn supply<M: Machine>(&self, machine: &mut Watched<M>, object: Object, range: Range<u64>) -> Result<()> {
        if range.end > self.bytes.len() as u64 {
            machine.fail(object, range, Error::corrupt("the file ends before"));
            return Ok(());
        }
        let mut at = range.start;
        while at < range.end {
            let end = range.end.min(at.saturating_add(self.piece_bytes));
            machine.supply(object, at..end, self.bytes.slice(at as usize..end as usize))?;
            at = end;
        }
        Ok(())
    }
}

/// What is done with batches.
enum Work {
    Nothing,
    Arrays(Vec<Assembler>),
    Records(Program),
    Shredded(Program, Box<Shredder>),
    Written(Box<Watched<FileWriter>>),
    Sorted(Box<Watched<Sorter>>),
}

fn file(choices: &mut Choices<'_>) {
    let limits = choices.pick(&[LIMITS, Limits::DEFAULT, Limits { total_bytes: 4 << 20, ..LIMITS }]);
    let mut bytes = extremes::file(choices);
    if choices.once_in(4) {
        let mut wrong = bytes.to_vec();
        Edit::several(choices, 3).iter().for_each(|edit| edit.apply(&mut wrong));
        bytes = wrong.into();
    }
    let mut host = Host::choose(bytes.clone(), choices);
    let file_bytes = bytes.len() as u64;
    // Anything may be taken for a footer.
    meter::start(file_bytes, SLACK_BYTES + FOOTER_TIMES * limits.footer_bytes.min(file_bytes));
    let mut footer = Watched::at_once(FooterReader::new(FILE, limits), structure_units(&limits));
    let metadata = host.next(&mut footer);
    meter::release("FooterReader::release", host.units, footer.into_machine());
    let Some(metadata) = metadata else { return meter::check_peak() };
    let columns = metadata.schema.leaves().len() as u64;
    let most = limits.total_of(file_bytes, columns).1 + FOOTER_TIMES * metadata.footer_bytes;
    meter::allow(most.saturating_add(SLACK_BYTES));
    match choices.byte() % 8 {
        0 => indexes(&mut host, &metadata, limits),
        1 => scan(&mut host, &metadata, limits),
        _ => batches(&mut host, &metadata, limits, choices),
    }
    meter::release("FileMetaData::release", host.units, metadata);
    meter::check_peak();
}

fn indexes(host: &mut Host, metadata: &Arc<FileMetaData>, limits: Limits) {
    let options = ReadOptions { limits, ..ReadOptions::default() };
    let reader = || PageIndexReader::new(FILE, Arc::clone(metadata), &options);
    let Ok(reader) = meter::made_of("PageIndexReader::new", metadata.schema.leaves().len(), reader) else {
        return;
    };
    let mut reader = Watched::at_once(reader, structure_units(&limits));
    while let Some(index) = host.next(&mut reader) {
        meter::release("ChunkIndex::release", host.units, index);
    }
    meter::release("PageIndexReader::release", host.units, reader.into_machine());
}

fn scan(host: &mut Host, metadata: &Arc<FileMetaData>, limits: Limits) {
    let scanner = || PageScanner::new(FILE, metadata, 0, 0, limits);
    let Ok(scanner) = meter::call_free("PageScanner::new", scanner) else { return };
    let mut scanner = Watched::at_once(scanner, structure_units(&limits));
    while host.next(&mut scanner).is_some() {}
}

fn batches(host: &mut Host, metadata: &Arc<FileMetaData>, limits: Limits, choices: &mut Choices<'_>) {
    let options = ReadOptions {
        batch_rows: choices.pick(&[8_192, 1, 1_000, 100_000, usize::MAX]),
        batch_bytes: choices.pick(&[64 << 20, 1, 100_000]),
        layout: choices.pick(&[Layout::Spaced, Layout::Dense]),
        keep_dictionaries: choices.once_in(2),
        verify_utf8: choices.once_in(2),
        read_bytes: choices.pick(&[8 << 20, 1_000, 64 << 10, u64::MAX]),
        limits,
        ..ReadOptions::default()
    };
    let codecs = Arc::new(StandardCodecs::new(limits));
    let reader = || BatchReader::new(FILE, Arc::clone(metadata), codecs, options);
    let Ok(mut reader) = meter::made_of("BatchReader::new", metadata.schema.leaves().len(), reader) else {
        return;
    };
    if choices.once_in(4) && !metadata.row_groups.is_empty() {
        let (mut rows, budget) = (RowSelection::none(), &mut Budget::unlimited());
        let step = choices.pick(&[2, 3, 1_000]);
        (0..metadata.row_groups[0].rows.min(100_000)).step_by(step).for_each(|row| {
            let _ = rows.push(row..row + 1, budget);
        });
        let _ = reader.select(0, rows);
    }
    let Ok(mut work) = Work::choose(host, metadata, choices) else { return };
    let mut reader = Watched::at_once(reader, at_once(metadata).max(structure_units(&limits)));
    let mut taken = Some(());
    while let (Some(()), Some(batch)) = (taken, host.next(&mut reader)) {
        taken = work.take(host, &batch);
        meter::release("Batch::release", host.units, batch);
    }
    meter::release("BatchReader::release", host.units, reader.into_machine());
    work.end(host);
}

/// Units of the longest value: it is told in one call, however long it is.
fn told_at_once(batch: &Batch) -> u64 {
    fn of(values: &Values) -> usize {
        match values {
            Values::ByteArray(values) => (0..values.len()).map(|at| values.get(at).len()).max().unwrap_or(0),
            Values::FixedLenByteArray(values) => values.width(),
            Values::Dictionary(_, values) => of(values),
            _ => 0,
        }
    }
    batch.columns.iter().map(|column| of(&column.values)).max().unwrap_or(0) as u64
}

impl Work {
    fn choose(host: &Host, metadata: &FileMetaData, choices: &mut Choices<'_>) -> Result<Work> {
        let schema = || Arc::clone(&metadata.schema);
        let codecs = || Arc::new(StandardCodecs::default());
        let program = || planned(host, "Program", Program::plan(schema(), None));
        Ok(match choices.byte() % 8 {
            0 | 1 => {
                let made = |node| {
                    meter::made_of("Assembler::new", metadata.schema.leaves().len(), || {
                        Assembler::new(schema(), node, None, &LIMITS)
                    })
                };
                Work::Arrays(metadata.schema.children(0).map(made).collect())
            }
            2 => Work::Records(program()?),
            3 => {
                meter::allow_more(SHREDDED_BYTES);
                let shredder = Shredder::plan(schema(), None, ShredOptions::default());
                Work::Shredded(program()?, Box::new(planned(host, "Shredder::plan", shredder)?))
            }
            4 => {
                let options = write_options(&metadata.schema, choices);
                let writer = || FileWriter::new(FILE, schema(), codecs(), options);
                let writer = meter::made_of("FileWriter::new", metadata.schema.leaves().len(), writer)?;
                Work::Written(Box::new(Watched::at_once(writer, Budget::DEFAULT_UNITS)))
            }
            5 => {
                let by = [SortingColumn { column: 0, descending: choices.once_in(2), nulls_first: false }];
                let options = SortOptions {
                    memory_bytes: choices.pick(&[512 << 20, 1, 1 << 20]),
                    ..SortOptions::default()
                };
                let sorter = || Sorter::new(schema(), &by, codecs(), SPILL, options);
                let sorter = meter::made_of("Sorter::new", metadata.schema.leaves().len(), sorter)?;
                Work::Sorted(Box::new(Watched::at_once(sorter, Budget::DEFAULT_UNITS)))
            }
            _ => Work::Nothing,
        })
    }

    /// Does it with a batch; `None` when there is no more to do.
    fn take(&mut self, host: &mut Host, batch: &Batch) -> Option<()> {
        match self {
            Work::Nothing => {}
            Work::Arrays(assemblers) => {
                for assembler in assemblers {
                    let column = |leaf: usize| batch.columns.get(leaf);
                    let step = |budget: &mut Budget<'_>| {
                        meter::call("Assembler", 0, budget, |budget| assembler.step(batch, &column, budget))
                    };
                    let array = until(host, step)?;
                    meter::release("Array::release", host.units, array);
                }
            }
            Work::Records(program) => {
                let mut records = program.records(batch).ok()?;
                let at_once = told_at_once(batch);
                until(host, |budget| {
                    meter::call("Records", at_once, budget, |budget| done(records.step(&mut Nothing, budget)))
                })?;
            }
            Work::Shredded(program, shredder) => {
                let mut records = program.records(batch).ok()?;
                let at_once = SLICE_UNITS_MAX + told_at_once(batch);
                until(host, |budget| {
                    meter::call("Shredder", at_once, budget, |budget| {
                        // What is told is charged beside the telling: a slice of each.
                        let mut part = Budget::new(budget.left() / 8);
                        let told = records.step(&mut **shredder, &mut part);
                        budget.charge_units(part.spent());
                        shredder.charge(budget);
                        done(told)
                    })
                })?;
                let shredded = until(host, |budget| {
                    meter::call("Shredder::take", 0, budget, |budget| shredder.take(budget))
                })?;
                meter::release("Batch::release", host.units, shredded);
            }
            Work::Written(writer) => {
                let Room = host.next(writer)?;
                meter::call_free("FileWriter::feed", || writer.machine().feed(batch.clone())).ok()?;
            }
            Work::Sorted(sorter) => {
                let Sorted::Room = host.next(sorter)? else { return None };
                meter::call_free("Sorter::feed", || sorter.machine().feed(batch.clone())).ok()?;
            }
        }
        Some(())
    }

    /// What is left to do after the last.
    fn end(&mut self, host: &mut Host) {
        match self {
            Work::Written(writer) => {
                writer.machine().finish();
                while host.next(writer).is_some() {}
            }
            Work::Sorted(sorter) => {
                sorter.machine().finish();
                while let Some(sorted) = host.next(sorter) {
                    if let Sorted::Rows(batch) = sorted {
                        meter::release("Batch::release", host.units, batch);
                    }
                }
            }
            Work::Arrays(assemblers) => {
                let all = core::mem::take(assemblers);
                all.into_iter().for_each(|it| meter::release("Assembler::release", host.units, it));
            }
            _ => {}
        }
    }
}

/// What is made of a schema, in steps.
fn planned<P: Plan>(host: &Host, what: &'static str, mut plan: P) -> Result<P::Made> {
    loop {
        let made = meter::call(what, 0, &mut Budget::new(host.units), |budget| plan.step(budget))?;
        if let Some(made) = made {
            return Ok(made);
        }
    }
}

/// What is made once it is done.
fn done(is_done: Result<bool>) -> Result<Option<()>> {
    is_done.map(|is_done| is_done.then_some(()))
}

/// Steps until one has made something.
fn until<T>(host: &mut Host, mut step: impl FnMut(&mut Budget<'_>) -> Result<Option<T>>) -> Option<T> {
    loop {
        match host.call(&mut step)? {
            Ok(Some(made)) => return Some(made),
            Ok(None) => {}
            Err(error) => {
                check_error(&error);
                return None;
            }
        }
    }
}

fn write_options(schema: &Schema, choices: &mut Choices<'_>) -> WriteOptions {
    let physical = schema.leaves()[0].physical_type;
    let encodings = encodings(physical);
    let encoding = (!choices.once_in(3)).then(|| choices.pick(encodings));
    let has_bloom = physical != PhysicalType::Boolean && choices.once_in(4);
    let codec =
        choices.pick(&[None, Some(Codec::Snappy), Some(Codec::Lz4Raw), Some(Codec::Gzip), Some(Codec::Zstd)]);
    let column = ColumnOptions {
        encoding,
        compression: codec.map_or(Compression::Uncompressed, Compression::Codec),
        bounds: choices.once_in(2),
        bounds_bytes_max: choices.pick(&[64, 1, 4_096]),
        bloom: has_bloom.then_some(BloomOptions { fpp: 0.01, bytes_max: 1 << 20 }),
        page_bloom: has_bloom.then(PageBloomOptions::default),
        ..ColumnOptions::default()
    };
    let defaults = WriteOptions::default();
    WriteOptions {
        column,
        page_version: choices.pick(&[PageVersion::V1, PageVersion::V2]),
        page_rows: choices.pick(&[20_000, 1, 1_000, usize::MAX]),
        page_bytes: choices.pick(&[defaults.page_bytes, 1, 10_000]),
        dictionary_bytes: choices.pick(&[defaults.dictionary_bytes, 0, 1, 10_000]),
        row_group_rows: choices.pick(&[defaults.row_group_rows, 1, 1_000]),
        crc: choices.once_in(2),
        page_index: choices.once_in(2),
        held_bytes_max: defaults.held_bytes_max,
        ..defaults
    }
}

/// A text, sampled and read.
fn text(choices: &mut Choices<'_>) {
    let (format, text) = extremes::text(choices);
    let bytes = Bytes::from(text);
    let mut host = Host::choose(bytes.clone(), choices);
    let mut options = TextOptions::default();
    options.header = choices.pick(&[Header::Auto, Header::Yes, Header::No]);
    options.short_rows = choices.once_in(4);
    options.infer_bytes = choices.pick(&[16 << 20, 0, 100_000]);
    options.delimiter = (format == Format::Csv).then_some(b',');
    options.limits = choices.pick(&[Limits::DEFAULT, LIMITS]);
    meter::start(bytes.len() as u64, SLACK_BYTES + TEXT_TIMES * bytes.len() as u64);
    read_text(&mut host, format, &options);
    meter::check_peak();
}

fn read_text(host: &mut Host, format: Format, options: &TextOptions) -> Option<()> {
    let mut sampler = meter::call_free("TextSampler::new", || TextSampler::new(format, options)).ok()?;
    let mut at = 0;
    let sample = loop {
        match host
            .call(|budget| meter::call("TextSampler", 0, budget, |budget| sampler.step(budget)))?
            .ok()?
        {
            Step::Ready(Sampled::Sample(sample)) => break sample,
            Step::Ready(Sampled::Room) => match host.piece(&mut at) {
                Some(bytes) => drop(meter::call_free("TextSampler::feed", || sampler.feed(bytes)).ok()?),
                None => sampler.finish(),
            },
            _ => {}
        }
    };
    let form = sample.form().ok()?;
    let mut options = marquetry_text::read::ReadOptions::default();
    options.limits = LIMITS;
    let mut reader =
        meter::made_of("TextReader::new", form.schema().leaves().len(), || TextReader::new(&form, options))
            .ok()?;
    let mut at = 0;
    loop {
        match host.call(|budget| meter::call("TextReader", 0, budget, |budget| reader.step(budget)))?.ok()? {
            Step::Ready(Read::Room) => match host.piece(&mut at) {
                Some(bytes) => drop(meter::call_free("TextReader::feed", || reader.feed(bytes)).ok()?),
                None => reader.finish(),
            },
            Step::Ready(Read::Rows(batch)) => meter::release("Batch::release", host.units, batch),
            Step::Done => return Some(()),
            _ => {}
        }
    }
}

impl Host {
    /// The next piece of a text.
    fn piece(&self, at: &mut usize) -> Option<Bytes> {
        let end = self.bytes.len().min(at.saturating_add(self.piece_bytes.min(64 << 10) as usize));
        let piece = self.bytes.slice(*at..end);
        *at = end;
        (!piece.is_empty()).then_some(piece)
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
    fn value(&mut self, _field: usize, _value: Value<'_>) -> Result<()> {
        Ok(())
    }
}
