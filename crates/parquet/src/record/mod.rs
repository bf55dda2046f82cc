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

use alloc::vec::Vec;

use marquetry_base::{Budget, Error, Failed, Price, Result};

pub use crate::batch::Value;
use crate::batch::{Batch, ColumnBatch, Layout};
use program::Op;
pub use program::{Field, Program};
pub use shred::{ShredOptions, Shredder};

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

/// The records of one batch.
#[derive(Debug)]
pub struct Records<'a> {
    program: &'a Program,
    batch: &'a Batch,
    columns: Vec<Cursor<'a>>,
    /// The next instruction.
    at: usize,
    rows_left: usize,
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
    /// `Misuse` for a batch of other columns.
    pub fn records<'a>(&'a self, batch: &'a Batch) -> Result<Records<'a>> {
        let same =
            batch.columns.iter().map(|column| column.leaf).eq(self.leaves().iter().map(|leaf| leaf.number));
        if !same {
            return Err(Error::misuse("a batch of other columns than the program's"));
        }
        let columns = batch
            .columns
            .iter()
            .zip(self.leaves())
            .map(|(column, leaf)| {
                let levels = column.levels.as_ref();
                let definition = levels.map(|levels| &*levels.definition);
                let repetition = levels.and_then(|levels| levels.repetition.as_deref());
                let entries = definition.map_or(column.rows, <[u8]>::len);
                Cursor {
                    batch: column,
                    definition,
                    repetition,
                    definition_max: leaf.definition_max,
                    entry: 0,
                    entries,
                    value: 0,
                }
            })
            .collect();
        Ok(Records { program: self, batch, columns, at: 0, rows_left: batch.rows, failed: Failed::default() })
    }
}

impl<'a> Records<'a> {
    /// Emits records until the budget is spent (returns false) or the batch ends (returns true).
    ///
    /// # Errors
    ///
    /// `Corrupt`, naming the row and the column, if the columns' levels contradict each other; also the sink's errors.
    /// Errors are sticky.
    pub fn step<S: RecordSink>(&mut self, sink: &mut S, budget: &mut Budget<'_>) -> Result<bool> {
        Failed::run(self, |records| &mut records.failed, |records| records.run(sink, budget))
    }

    fn run<S: RecordSink>(&mut self, sink: &mut S, budget: &mut Budget<'_>) -> Result<bool> {
        loop {
            let mut done = 0;
            while done < OPS_SLICE {
                if self.rows_left == 0 {
                    budget.charge(OP_PRICE, 0, done);
                    return Ok(true);
                }
                done += 1 + self.one(sink)? / COLUMNS_PER_OP;
            }
            budget.charge(OP_PRICE, 0, done);
            if budget.is_spent() {
                return Ok(false);
            }
        }
    }

    /// Runs one instruction. Returns how many columns it looked at.
    #[inline]
    fn one<S: RecordSink>(&mut self, sink: &mut S) -> Result<usize> {
        let op = self.program.ops[self.at];
        self.at += 1;
        match op {
            Op::StartRecord => sink.start_record()?,
            Op::EndRecord => {
                let repeated = self.program.repeated();
                for &column in repeated {
                    if self.column(column)?.repetition() != 0 {
                        return Err(self.contradiction(column));
                    }
                }
                sink.end_record()?;
                self.rows_left -= 1;
                self.at = 0;
                if self.rows_left == 0 {
                    self.check_end()?;
                }
                return Ok(repeated.len());
            }
            Op::Null { field, definition, first, behind, skip } => {
                if self.is_absent(definition, first, behind)? {
                    sink.null(field)?;
                    self.at = skip;
                }
                return Ok(behind - first);
            }
            Op::Value { field, column } => {
                let cursor = self.column(column)?;
                let is_value = cursor.definition() == Some(cursor.definition_max);
                match if is_value { cursor.take_value() } else { None } {
                    Some(value) => sink.value(field, value)?,
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
                if self.is_absent(definition, first, behind)? {
                    self.at = skip;
                }
                return Ok(behind - first);
            }
            Op::Repeat { repetition, first, behind, back } => {
                let again = self.column(first)?.repetition() == repetition;
                // All leaves below a list must have the same number of elements, and elements only of lists that have
                // begun.
                for column in first..behind {
                    let next = self.column(column)?.repetition();
                    if next > repetition || (next == repetition) != again {
                        return Err(self.contradiction(column));
                    }
                }
                if again {
                    self.at = back;
                }
                return Ok(behind - first);
            }
        }
        Ok(0)
    }

    #[inline]
    fn column(&mut self, column: usize) -> Result<&mut Cursor<'a>> {
        self.columns
            .get_mut(column)
            .ok_or_else(|| Error::internal("a program of more columns than the batch"))
    }

    /// True if the next entry is below a definition level, on which all leaves of a field must agree. Then it is
    /// skipped: it is the only entry for the field.
    #[inline]
    fn is_absent(&mut self, definition: u8, first: usize, behind: usize) -> Result<bool> {
        let absent = self.column(first)?.definition().is_some_and(|level| level < definition);
        for column in first..behind {
            let cursor = self.column(column)?;
            match cursor.definition() {
                Some(level) if (level < definition) == absent => {}
                _ => return Err(self.contradiction(column)),
            }
            if absent {
                cursor.take_null();
            }
        }
        Ok(absent)
    }

    /// Checks, after the last row, that no column has more.
    fn check_end(&self) -> Result<()> {
        match self.columns.iter().position(|column| column.entry != column.entries) {
            Some(column) => Err(self.contradiction(column)),
            None => Ok(()),
        }
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
