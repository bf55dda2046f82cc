//! Records from columns, as events, and columns from records: Dremel's assembly and striping without record objects.
//!
//! A schema's shapes are compiled to a program that runs over the columns of a [`Batch`], a few instructions per
//! value. Its whole state is its position in the program and in the columns, so it can stop and continue anywhere,
//! however large a record is. A [`Shredder`] turns the same events back into columns.
//!
//! Source: Melnik et al., "Dremel: Interactive Analysis of Web-Scale Datasets" (VLDB 2010), section 4.3; the levels are
//! those of parquet-format's `README.md`, "Nested Encoding".

mod column;
mod program;
mod shred;

use core::ops::Range;

use marquetry_base::{Budget, Error, Failed, Price, Result, Segmented};

pub use crate::batch::Value;
use crate::batch::{Batch, ColumnBatch, Layout};
use crate::growing::{COPY_PRICE, SLICE_BYTES};
use program::Op;
pub use program::{Field, FieldForm, Program, ProgramPlan};
pub use shred::{ShredOptions, ShredPlan, Shredder};

/// Receives the events of records.
///
/// `field` is an index into [`Program::fields`]: the field that the event is about. In a struct, each field's event
/// follows in the order of the schema. In a map, keys and values alternate, or there are only keys, if the schema or
/// the projection has no values.
///
/// # Errors
///
/// An error ends the assembly, which returns it.
pub trait RecordSink {
    /// Begins a row.
    fn start_record(&mut self) -> Result<()>;
    /// A row ends.
    fn end_record(&mut self) -> Result<()>;
    /// Begins a struct that is not null.
    fn start_struct(&mut self, field: usize) -> Result<()>;
    /// A struct ends.
    fn end_struct(&mut self, field: usize) -> Result<()>;
    /// Begins a list that is not null; it may be empty.
    fn start_list(&mut self, field: usize) -> Result<()>;
    /// A list ends.
    fn end_list(&mut self, field: usize) -> Result<()>;
    /// Begins a map that is not null; it may be empty.
    fn start_map(&mut self, field: usize) -> Result<()>;
    /// A map ends.
    fn end_map(&mut self, field: usize) -> Result<()>;
    /// A field that is null.
    fn null(&mut self, field: usize) -> Result<()>;
    /// A leaf's value.
    fn value(&mut self, field: usize, value: Value<'_>) -> Result<()>;
}

/// The price of an instruction, without the handling of its event.
const OP_PRICE: Price = Price::per_kilovalue(5 << 10);
/// Instructions between two looks at the budget.
const OPS_SLICE: usize = 256;
/// Columns that can be looked at in the time of an instruction.
const COLUMNS_PER_OP: usize = 8;
/// Of more columns than these, each has left the caches when it is looked at again: then an instruction, and a look at a
/// column, take as long as so many instructions.
const NEAR_COLUMNS: usize = 512;
const OPS_PER_FAR_COLUMN: usize = 10;
/// Columns that are looked at between two looks at the budget.
const COLUMNS_SLICE: usize = 256;

/// The records of one batch.
#[derive(Debug)]
pub struct Records<'a> {
    program: &'a Program,
    batch: &'a Batch,
    /// The columns, as far as they are begun; after the last row, as far as they are not released.
    columns: Segmented<Cursor<'a>>,
    /// The next instruction, and a segment of them, with the number of its first.
    at: usize,
    ops: &'a [Op],
    ops_start: usize,
    /// An instruction that looks at many columns: those that it has looked at, and what it found.
    looked: usize,
    absent: bool,
    rows_left: usize,
    /// Bytes of byte strings that were told and are not charged yet.
    told: usize,
    /// Whether all columns are begun.
    has_begun: bool,
    failed: Failed,
}

/// A place in a column.
#[derive(Debug)]
struct Cursor<'a> {
    batch: &'a ColumnBatch,
    definition: Option<&'a [u8]>,
    repetition: Option<&'a [u8]>,
    /// The definition level of a value.
    definition_max: u8,
    entry: usize,
    entries: usize,
    /// The next value's index.
    value: usize,
}

impl Program {
    /// The records of a batch, which must have the program's leaves, in order.
    ///
    /// # Errors
    ///
    /// `Misuse` for a batch of another number of columns. The first steps report other columns.
    pub fn records<'a>(&'a self, batch: &'a Batch) -> Result<Records<'a>> {
        if batch.columns.len() != self.leaves().len() {
            return Err(other_columns());
        }
        Ok(Records {
            program: self,
            batch,
            columns: Segmented::new(),
            at: 0,
            ops: &[],
            ops_start: 0,
            looked: 0,
            absent: false,
            rows_left: batch.rows,
            told: 0,
            has_begun: false,
            failed: Failed::default(),
        })
    }
}

fn other_columns() -> Error {
    Error::misuse("a batch of other columns than the program's")
}

impl<'a> Records<'a> {
    /// Emits records until the budget is spent (returns false) or the batch ends (returns true).
    ///
    /// # Errors
    ///
    /// `Misuse` for a batch of other columns than the program's; `Corrupt`, naming the row and the column, if the
    /// columns' levels contradict each other; also the sink's errors. Errors are sticky.
    pub fn step<S: RecordSink>(&mut self, sink: &mut S, budget: &mut Budget<'_>) -> Result<bool> {
        Failed::run(self, |records| &mut records.failed, |records| records.run(sink, budget))
    }

    fn run<S: RecordSink>(&mut self, sink: &mut S, budget: &mut Budget<'_>) -> Result<bool> {
        if !self.has_begun && (!self.begin(budget)? || budget.is_spent()) {
            return Ok(false);
        }
        loop {
            let mut done = 0;
            while done < OPS_SLICE && self.told < SLICE_BYTES && self.rows_left > 0 {
                let looked = self.one(sink)?;
                done += match self.batch.columns.len() <= NEAR_COLUMNS {
                    true => 1 + looked / COLUMNS_PER_OP,
                    false => (1 + looked) * OPS_PER_FAR_COLUMN,
                };
            }
            budget.charge(OP_PRICE, 0, done);
            // A sink does at least as much with a value's bytes as to copy them.
            budget.charge(COPY_PRICE, core::mem::take(&mut self.told), 0);
            if self.rows_left == 0 {
                return self.end(budget);
            }
            if budget.is_spent() {
                return Ok(false);
            }
        }
    }

    /// Begins with the columns. False if the budget is spent first.
    fn begin(&mut self, budget: &mut Budget<'_>) -> Result<bool> {
        let (columns, leaves) = (&self.batch.columns, self.program.leaves());
        while self.columns.len() < columns.len() {
            let from = self.columns.len();
            let end = columns.len().min(from + OPS_SLICE / OPS_PER_FAR_COLUMN);
            for (column, leaf) in columns[from..end].iter().zip(leaves.iter_from(from)) {
                if column.leaf != leaf.number {
                    return Err(other_columns());
                }
                self.columns.push(Cursor::new(column, leaf.definition_max));
            }
            budget.charge(OP_PRICE, 0, (end - from) * OPS_PER_FAR_COLUMN);
            if budget.is_spent() && end < columns.len() {
                return Ok(false);
            }
        }
        self.has_begun = true;
        Ok(true)
    }

    /// Checks, after the last row, that no column has more, and releases what is kept of them. False if the budget is
    /// spent first.
    fn end(&mut self, budget: &mut Budget<'_>) -> Result<bool> {
        while self.looked < self.columns.len() {
            let from = self.looked;
            self.looked = self.columns.len().min(from + COLUMNS_SLICE);
            let mut some = self.columns.iter_from(from).take(self.looked - from);
            if let Some(column) = some.position(|column| column.entry != column.entries) {
                return Err(self.contradiction(from + column));
            }
            budget.charge(OP_PRICE, 0, self.looked - from);
            if budget.is_spent() && self.columns.len() > OPS_SLICE {
                return Ok(false);
            }
        }
        while !self.columns.is_empty() {
            let released = self.columns.len().min(COLUMNS_SLICE);
            for _ in 0..released {
                self.columns.pop();
            }
            self.looked = self.columns.len();
            budget.charge(OP_PRICE, 0, released);
            if budget.is_spent() && !self.columns.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Runs one instruction, or a part of one. Returns how many columns it looked at.
    #[inline]
    fn one<S: RecordSink>(&mut self, sink: &mut S) -> Result<usize> {
        let op = match self.ops.get(self.at.wrapping_sub(self.ops_start)) {
            Some(op) => *op,
            None => self.turn()?,
        };
        self.at += 1;
        match op {
            Op::StartRecord => sink.start_record()?,
            Op::EndRecord => {
                let repeated = self.program.repeated();
                let part = self.part(0, repeated.len());
                for &column in repeated.iter_from(part.start).take(part.len()) {
                    if self.column(column)?.repetition() != 0 {
                        return Err(self.contradiction(column));
                    }
                }
                if self.is_last(part.end, repeated.len()) {
                    sink.end_record()?;
                    self.rows_left -= 1;
                    self.at = 0;
                }
                return Ok(part.len());
            }
            Op::Null { field, definition, first, behind, skip } => {
                let part = self.absence(definition, first, behind)?;
                if self.is_last(part.end, behind) && self.absent {
                    sink.null(field)?;
                    self.at = skip;
                }
                return Ok(part.len());
            }
            Op::Value { field, column } => {
                let cursor = self.column(column)?;
                let is_value = cursor.definition() == Some(cursor.definition_max);
                match if is_value { cursor.take_value() } else { None } {
                    Some(value) => {
                        if let Value::Bytes(bytes) = value {
                            self.told += bytes.len();
                        }
                        sink.value(field, value)?;
                    }
                    None => return Err(self.contradiction(column)),
                }
            }
            Op::StartStruct(field) => sink.start_struct(field)?,
            Op::EndStruct(field) => sink.end_struct(field)?,
            Op::StartList(field) => sink.start_list(field)?,
            Op::EndList(field) => sink.end_list(field)?,
            Op::StartMap(field) => sink.start_map(field)?,
            Op::EndMap(field) => sink.end_map(field)?,
            Op::Empty { definition, first, behind, skip } => {
                let part = self.absence(definition, first, behind)?;
                if self.is_last(part.end, behind) && self.absent {
                    self.at = skip;
                }
                return Ok(part.len());
            }
            Op::Repeat { repetition, first, behind, back } => {
                let again = self.column(first)?.repetition() == repetition;
                let part = self.part(first, behind);
                // All leaves below a list must have the same number of elements, and elements only of lists that have
                // begun.
                for column in part.clone() {
                    let next = self.column(column)?.repetition();
                    if next > repetition || (next == repetition) != again {
                        return Err(self.contradiction(column));
                    }
                }
                if self.is_last(part.end, behind) && again {
                    self.at = back;
                }
                return Ok(part.len());
            }
        }
        Ok(0)
    }

    /// The next instruction, of another segment.
    #[cold]
    fn turn(&mut self) -> Result<Op> {
        let found = self.program.ops.segment_of(self.at);
        let (start, ops) = found.ok_or_else(|| Error::internal("a program without an end"))?;
        (self.ops_start, self.ops) = (start, ops);
        let op = ops.get(self.at - start);
        op.copied().ok_or_else(|| Error::internal("a program without an end"))
    }

    #[inline]
    fn column(&mut self, column: usize) -> Result<&mut Cursor<'a>> {
        self.columns
            .get_mut(column)
            .ok_or_else(|| Error::internal("a program of more columns than the batch"))
    }

    /// The columns, of `first..behind`, that an instruction looks at next: nearly always all.
    #[inline]
    fn part(&self, first: usize, behind: usize) -> Range<usize> {
        let start = first + self.looked;
        start..behind.min(start + COLUMNS_SLICE)
    }

    /// Whether an instruction has looked at all columns. If not, it is run again.
    #[inline]
    fn is_last(&mut self, end: usize, behind: usize) -> bool {
        if end < behind {
            self.looked += COLUMNS_SLICE;
            self.at -= 1;
            return false;
        }
        self.looked = 0;
        true
    }

    /// Looks whether the next entry is below a definition level, on which all leaves of a field must agree. Then it is
    /// skipped: it is the only entry for the field. Returns the columns that were looked at.
    #[inline]
    fn absence(&mut self, definition: u8, first: usize, behind: usize) -> Result<Range<usize>> {
        let part = self.part(first, behind);
        if part.start == first {
            self.absent = self.column(first)?.definition().is_some_and(|level| level < definition);
        }
        let absent = self.absent;
        for column in part.clone() {
            let cursor = self.column(column)?;
            match cursor.definition() {
                Some(level) if (level < definition) == absent => {}
                _ => return Err(self.contradiction(column)),
            }
            if absent {
                cursor.take_null();
            }
        }
        Ok(part)
    }

    /// The error for a column whose levels do not belong to the same row as the others'.
    #[cold]
    fn contradiction(&self, column: usize) -> Error {
        let row = self.batch.first_row + (self.batch.rows - self.rows_left) as u64;
        Error::corrupt("the levels of a column contradict those of others").at(|place| {
            place.row_group = Some(self.batch.row_group as u64);
            place.row = Some(row);
            place.column = self.program.path_of(column);
        })
    }
}

impl<'a> Cursor<'a> {
    fn new(column: &'a ColumnBatch, definition_max: u8) -> Cursor<'a> {
        let levels = column.levels.as_ref();
        let definition = levels.map(|levels| &*levels.definition);
        let repetition = levels.and_then(|levels| levels.repetition.as_deref());
        let entries = definition.map_or(column.rows, <[u8]>::len);
        Cursor { batch: column, definition, repetition, definition_max, entry: 0, entries, value: 0 }
    }

    /// The next entry's definition level; `None` at the batch's end.
    #[inline]
    fn definition(&self) -> Option<u8> {
        match self.definition {
            Some(levels) => levels.get(self.entry).copied(),
            None if self.entry >= self.entries => None,
            None if self.batch.is_null(self.entry) => Some(0),
            None => Some(self.definition_max),
        }
    }

    /// The next entry's repetition level; 0 at the batch's end, where a row would begin.
    #[inline]
    fn repetition(&self) -> u8 {
        self.repetition.and_then(|levels| levels.get(self.entry)).copied().unwrap_or(0)
    }

    #[inline]
    fn take_null(&mut self) {
        self.entry += 1;
        if self.batch.layout == Layout::Spaced {
            self.value += 1;
        }
    }

    #[inline]
    fn take_value(&mut self) -> Option<Value<'a>> {
        let value = Value::of_values(&self.batch.values, self.value)?;
        self.entry += 1;
        self.value += 1;
        Some(value)
    }
}
