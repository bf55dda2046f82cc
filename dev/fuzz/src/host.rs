//! Reading as a target does it: watched, and told row by row.

use std::any::type_name;
use std::ops::Range;
use std::sync::Arc;

use marquetry_base::{Budget, Bytes, Codec, Error, ErrorKind, Limits, Machine, Object, Result, Step};
use marquetry_codecs::StandardCodecs;
use marquetry_conformance::canonical::{FILE, with_bytes};
use marquetry_conformance::hostile::{self, Manner};
use marquetry_conformance::records;
use marquetry_parquet::batch::{Batch, ColumnBatch, Layout};
use marquetry_parquet::format::{Compression, FileMetaData, FooterColumns};
use marquetry_parquet::read::{BatchReader, FooterReader, ReadOptions};
use marquetry_parquet::schema::Schema;

use crate::canary::{Canary, is_planted};
use crate::choices::Choices;
use crate::meter::{self, BLOCK_UNITS_MAX, SLICE_UNITS_MAX};

/// Steps that the work on a small file may take, in bytes of input and output: more is a machine that hangs.
const STEPS_MAX: u64 = 20_000_000;

/// Rows of a column that are looked at: a few bytes can stand for billions of nulls.
pub const ROWS_MAX: usize = 3_000;

/// Memory that reading may hold at its peak beside what its limits allow: a batch and its successor, an assembler's arrays.
const PEAK_BYTES_MAX: u64 = 48 << 20;

/// Memory that a byte of the file may take: a field of three bytes becomes a structure of some hundreds, in a vector that
/// doubles.
const PEAK_BYTES_PER_BYTE: u64 = 1024;

/// A machine that is watched: its calls are [bounded](meter), and it does not hang. A planted fault sits in here.
#[derive(Debug)]
pub struct Watched<M> {
    machine: M,
    /// Units that a step may charge, if its budget is less.
    at_once: u64,
    steps: u64,
    supplies: u64,
    ballast: Vec<Vec<u8>>,
}

impl<M: Machine> Watched<M> {
    /// Watches a machine.
    pub fn new(machine: M) -> Watched<M> {
        Watched { machine, at_once: 0, steps: 0, supplies: 0, ballast: Vec::new() }
    }

    /// Watches a machine that may do so much at once.
    pub fn at_once(machine: M, at_once: u64) -> Watched<M> {
        Watched { at_once, ..Watched::new(machine) }
    }

    /// The machine, which is no longer watched.
    pub fn into_machine(self) -> M {
        self.machine
    }

    /// The machine, for what is no step.
    pub fn machine(&mut self) -> &mut M {
        &mut self.machine
    }
}

impl<M: Machine> Machine for Watched<M> {
    type Product = M::Product;

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<M::Product>> {
        self.steps += 1;
        let (machine, ballast, steps) = (&mut self.machine, &mut self.ballast, self.steps);
        let step = meter::call(type_name::<M>(), self.at_once, budget, |budget| {
            let step = machine.step(budget);
            if is_planted(Canary::Units) && steps.is_multiple_of(13) {
                budget.charge_units(Budget::DEFAULT_UNITS + SLICE_UNITS_MAX);
            }
            if is_planted(Canary::Memory) && matches!(step, Ok(Step::Ready(_))) && ballast.is_empty() {
                ballast.resize_with(512, || vec![1; 512 << 10]);
            }
            step
        });
        assert!(self.steps < STEPS_MAX, "a machine that does not come to an end");
        step
    }

    fn supply(&mut self, object: Object, range: Range<u64>, bytes: Bytes) -> Result<()> {
        self.supplies += 1;
        if is_planted(Canary::Panic) && bytes.len() == 3 {
            assert!(self.supplies % 7 < 5, "the planted panic");
        }
        if is_planted(Canary::Bytes) && self.supplies > 2 && bytes.len() == 1 {
            return self.machine.supply(object, range, vec![bytes[0] ^ 0x40].into());
        }
        meter::call_free("supply", || self.machine.supply(object, range, bytes))
    }

    fn supply_length(&mut self, object: Object, length: u64) -> Result<()> {
        meter::call_free("supply_length", || self.machine.supply_length(object, length))
    }

    fn fail(&mut self, object: Object, range: Range<u64>, reason: Error) {
        meter::call_free("fail", || self.machine.fail(object, range, reason));
    }
}

/// A host's manner.
pub fn manner(choices: &mut Choices<'_>) -> Manner {
    match choices.byte() % 6 {
        0 => Manner::USUAL,
        1 => Manner::DISORDERLY,
        2 => Manner::ONE_BYTE,
        _ => Manner {
            seed: choices.word(2) << 3 | 5,
            budget: budget(choices),
            piece_bytes: choices.pick(&[1, 2, 3, 7, 30, 200, 5000, u64::MAX]),
            late: choices.once_in(2),
            shuffled: choices.once_in(2),
            generous: choices.once_in(2),
        },
    }
}

/// A manner that comes to an end: of large files, a host has larger pieces.
pub fn for_file(manner: Manner, bytes: &Bytes) -> Manner {
    Manner { piece_bytes: manner.piece_bytes.max(bytes.len() as u64 / 400), ..manner }
}

/// Units of a step.
pub fn budget(choices: &mut Choices<'_>) -> u64 {
    choices.pick(&[Budget::DEFAULT_UNITS, 0, 1, 60, 500, 3_000, 20_000, u64::MAX])
}

/// Bounds that small files keep, and those that claim too much do not: so that no input takes long.
pub const LIMITS: Limits = Limits {
    footer_bytes: 1 << 20,
    page_header_bytes: 64 << 10,
    structure_bytes: 16 << 10,
    page_index_bytes: 1 << 20,
    page_bytes: 1 << 20,
    dictionary_bytes: 1 << 20,
    value_bytes: 256 << 10,
    window_bytes: 1 << 20,
    nesting: 64,
    total_bytes: 12 << 20,
    expansion: u64::MAX,
};

/// What a reader is asked for, but for leaves.
pub fn options(choices: &mut Choices<'_>) -> ReadOptions {
    let batch_rows = choices.pick(&[1000, 1, 2, 7, 63, 64, 65, 200, 8192]);
    ReadOptions {
        batch_rows,
        layout: choices.pick(&[Layout::Spaced, Layout::Dense]),
        keep_dictionaries: choices.once_in(2),
        verify_utf8: choices.once_in(4),
        read_bytes: choices.pick(&[8 << 20, 1, 20, 300, 4000]),
        limits: LIMITS,
        ..ReadOptions::default()
    }
}

/// Rows of the leaves that were read, and how it ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// Of each leaf asked for, each row's bytes.
    pub leaves: Vec<Vec<Vec<u8>>>,
    /// Why there are no more: an error, or nothing.
    pub error: Option<Error>,
    /// There are more, at which nobody looked.
    pub is_cut: bool,
}

/// Reads a footer.
///
/// # Errors
///
/// The machine's.
pub fn footer(bytes: &Bytes, limits: Limits, manner: Manner) -> Result<Arc<FileMetaData>> {
    let mut machine = Watched::new(FooterReader::new(FILE, limits));
    let mut found = None;
    hostile::run(&mut machine, FILE, bytes, manner, |metadata| {
        found = Some(metadata);
        Ok(())
    })?;
    found.ok_or_else(|| Error::internal("a footer without metadata"))
}

/// The same, as far as it is of these columns, those that are there.
///
/// # Errors
///
/// The machine's.
pub fn footer_of(
    bytes: &Bytes,
    limits: Limits,
    columns: FooterColumns,
    manner: Manner,
) -> Result<Arc<FileMetaData>> {
    let columns = columns.allow_missing();
    let mut machine = Watched::new(FooterReader::of_columns(FILE, limits, columns));
    let mut found = None;
    hostile::run(&mut machine, FILE, bytes, manner, |metadata| {
        found = Some(metadata);
        Ok(())
    })?;
    found.ok_or_else(|| Error::internal("a footer without metadata"))
}

/// A reader of batches.
///
/// # Errors
///
/// As [`BatchReader::new`].
pub fn reader(metadata: &Arc<FileMetaData>, options: &ReadOptions) -> Result<Watched<BatchReader>> {
    let codecs = Arc::new(StandardCodecs::new(options.limits));
    let reader = BatchReader::new(FILE, Arc::clone(metadata), codecs, options.clone())?;
    Ok(Watched::at_once(reader, at_once(metadata)))
}

/// Units that reading a file may take at once: a ZSTD block, if it has any.
pub fn at_once(metadata: &FileMetaData) -> u64 {
    let zstd = Compression::Codec(Codec::Zstd);
    let mut chunks = metadata.row_groups.iter().flat_map(|group| group.columns.iter());
    if chunks.any(|chunk| chunk.compression == zstd) { BLOCK_UNITS_MAX } else { 0 }
}

/// Units that a structure of the metadata may take: it is read in one go, at three units a byte.
pub fn structure_units(limits: &Limits) -> u64 {
    3 * limits.structure_bytes
}

/// Reads rows, at most [`ROWS_MAX`] of them, and tells what was read.
pub fn read(bytes: &Bytes, metadata: &Arc<FileMetaData>, options: &ReadOptions, manner: Manner) -> Told {
    let count = options.leaves.as_ref().map_or(metadata.schema.leaves().len(), Vec::len);
    let mut told = Told { leaves: vec![Vec::new(); count], error: None, is_cut: false };
    let result = reader(metadata, options).and_then(|mut reader| {
        hostile::run(&mut reader, FILE, bytes, manner, |batch| told.add(&metadata.schema, &batch))
    });
    told.end(result.map(|_| ()));
    told
}

/// What ends a reading that has enough.
const ENOUGH: &str = "enough was read";

impl Told {
    /// Nothing yet, of so many leaves.
    pub fn new(leaves: usize) -> Told {
        Told { leaves: vec![Vec::new(); leaves], error: None, is_cut: false }
    }

    /// Adds a batch.
    ///
    /// # Errors
    ///
    /// A made-up one, when enough was read.
    ///
    /// # Panics
    ///
    /// When the batch is not what it promises to be.
    pub fn add(&mut self, schema: &Schema, batch: &Batch) -> Result<()> {
        assert_eq!(batch.columns.len(), self.leaves.len());
        assert!(batch.rows > 0, "a batch of no rows");
        records::check_batch(schema, batch);
        let mut is_enough = false;
        for (rows, column) in self.leaves.iter_mut().zip(&batch.columns) {
            let entries = column.levels.as_ref().map_or(column.rows, |levels| levels.definition.len());
            is_enough |= rows.len() + entries > ROWS_MAX;
        }
        // Of no columns, only rows are counted.
        if is_enough || (self.leaves.is_empty() && batch.first_row > 100_000) {
            return Err(Error::io(ENOUGH));
        }
        for (rows, column) in self.leaves.iter_mut().zip(&batch.columns) {
            add_rows(column, schema.leaves()[column.leaf].definition_max, rows);
        }
        Ok(())
    }

    /// Checks that another reading, in another manner, gave the same. Where both fail, one may have handed out more rows before; of
    /// one column, both fail in the same page.
    ///
    /// # Panics
    ///
    /// When it did not.
    pub fn check_same(&self, other: &Told, how: &str) {
        let (Some(ours), Some(theirs)) = (&self.error, &other.error) else {
            assert!(self == other, "another result {how}: {:?}, and {:?}", self.error, other.error);
            return;
        };
        if self.leaves.len() == 1 {
            let of = |error: &Error| (error.place().row_group, error.place().page);
            assert_eq!(of(ours), of(theirs), "another place {how}: {ours:?}, and {theirs:?}");
        }
        for (ours, theirs) in self.leaves.iter().zip(&other.leaves) {
            let both = ours.len().min(theirs.len());
            assert!(ours[..both] == theirs[..both], "other rows {how}");
        }
    }

    /// Checks that these rows were read, of a file that is right: all of them, or as many as limits allow.
    ///
    /// # Panics
    ///
    /// When others were.
    pub fn check_expected(&self, expected: &[Vec<Vec<u8>>]) {
        let is_limit = |error: &Error| error.kind() == ErrorKind::LimitExceeded;
        assert!(self.error.as_ref().is_none_or(is_limit), "a file without a lie: {:?}", self.error);
        let is_whole = self.error.is_none() && !self.is_cut;
        for (rows, expected) in self.leaves.iter().zip(expected) {
            let is_right = if is_whole { rows == expected } else { expected.starts_with(rows) };
            assert!(is_right, "other values than were written: {} rows of {}", rows.len(), expected.len());
        }
    }

    /// How the reading ended.
    ///
    /// # Panics
    ///
    /// For an error that none should be.
    pub fn end(&mut self, result: Result<()>) {
        if let Err(error) = result {
            if error.kind() == ErrorKind::Io && error.message() == ENOUGH {
                self.is_cut = true;
            } else {
                check_error(&error);
                self.error = Some(error);
            }
        }
    }
}

/// Checks an error that a file may cause.
///
/// # Panics
///
/// For one that is ours, or says nothing.
pub fn check_error(error: &Error) {
    assert!(
        matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::Unsupported | ErrorKind::LimitExceeded),
        "an error that no file may cause: {error:?}"
    );
    assert!(!error.message().is_empty());
}

/// Adds a column's rows.
fn add_rows(column: &ColumnBatch, definition_max: u16, rows: &mut Vec<Vec<u8>>) {
    let Some(levels) = &column.levels else {
        let mut dense = 0;
        for row in 0..column.rows {
            let is_there = !column.is_null(row);
            let mut bytes = vec![u8::from(is_there)];
            if is_there {
                let index = if column.layout == Layout::Dense { dense } else { row };
                with_bytes(&column.values, index, |value| tell_value(value, &mut bytes));
                dense += 1;
            }
            rows.push(bytes);
        }
        assert_eq!(column.rows - column.nulls, dense, "nulls that are miscounted");
        return;
    };
    let mut value = 0;
    for (entry, &definition) in levels.definition.iter().enumerate() {
        let repetition = levels.repetition.as_ref().map_or(0, |levels| levels[entry]);
        if repetition == 0 {
            rows.push(Vec::new());
        }
        let row = rows.last_mut().expect("a batch begins with a row");
        row.extend([repetition, definition]);
        if u16::from(definition) == definition_max {
            with_bytes(&column.values, value, |value| tell_value(value, row));
            value += 1;
        }
    }
}

/// Appends a value: its length, and its bytes, or of a long one their sum.
pub fn tell_value(value: &[u8], row: &mut Vec<u8>) {
    row.extend((value.len() as u32).to_le_bytes());
    if value.len() <= 64 {
        row.extend(value);
    } else {
        row.extend(crc32fast::hash(value).to_le_bytes());
    }
}

/// Does some reading, which may hold only so much memory.
///
/// # Panics
///
/// When it held more.
pub fn bounded<T>(bytes: &Bytes, limits: &Limits, work: impl FnOnce() -> T) -> T {
    // Bodies, batches and their arrays are each charged to the limit, and may each be a vector that doubles.
    let allowed =
        PEAK_BYTES_MAX + PEAK_BYTES_PER_BYTE * bytes.len() as u64 + 4 * limits.total_bytes.min(1 << 30);
    meter::start(bytes.len() as u64, allowed);
    let result = work();
    meter::check_peak();
    result
}
