//! Columns from records, which arrive as events: Dremel's striping, the inverse of assembly.
//!
//! Source: Melnik et al., "Dremel: Interactive Analysis of Web-Scale Datasets" (VLDB 2010), section 4.2; the levels are those of
//! parquet-format's `README.md`, "Nested Encoding".

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Bytes, Error, Failed, Price, Result, Segmented};

use super::column::ColumnBuilder;
use super::program::{Field, FieldKind, Program, ProgramPlan, ROOT};
use super::{RecordSink, Value};
use crate::batch::{Batch, ColumnBatch, Layout};
use crate::growing::COPY_PRICE;
use crate::schema::{FIELD_PRICE, Plan, Schema};

/// The price of an event, and of an entry that it adds to a column.
const EVENT_PRICE: Price = Price::per_kilovalue(12 << 10);
const ENTRY_PRICE: Price = Price::per_kilovalue(4 << 10);
/// The cost of returning a column.
const COLUMN_UNITS: u64 = 150;
/// Fields that could be planned in the time that it takes to begin with a column.
const FIELDS_PER_COLUMN: usize = 3;
/// Bytes of an array after which a batch is full, so that another row of the same size makes no array of 1 MiB. An entry
/// counts as a view.
const ARRAY_BYTES: usize = 512 << 10;

/// Builds batches from events: a [`RecordSink`] whose batches are for a [`FileWriter`](crate::write::FileWriter).
///
/// ```text
/// start_record, …, end_record          events, about the fields of the program
/// charge(budget)                       what they cost; each is small work, but for a value's bytes that are copied
/// is_full() -> true                    time to take the batch: it would become large
/// take(budget) -> Some(batch) | None   None: the budget is spent, take again
/// ```
///
/// Events are those that [`Records`](super::Records) emits, in that order, except that the fields of a struct or record
/// may come in any order, and missing ones are null. A field of a struct may occur once; every value of a list is its
/// next element.
///
/// Its work adds to that of the event source: a host that steps [`Records`](super::Records) gives those an eighth of
/// its budget.
///
/// Pass a long value to [`Shredder::shared`], which keeps it by reference. [`RecordSink::value`] copies it, in one
/// call.
///
/// After an error it stays failed.
#[derive(Debug)]
pub struct Shredder {
    program: Arc<Program>,
    options: ShredOptions,
    columns: Segmented<ColumnBuilder>,
    /// The open record, structs, lists and maps, the record first.
    open: Vec<Frame>,
    /// For each field of a struct, the number of the struct that it last occurred in.
    seen: Segmented<u64>,
    structs: u64,
    /// The number of the current batch's first row, and its rows.
    first_row: u64,
    rows: usize,
    is_full: bool,
    work: Work,
    /// The finished columns of the batch that is being taken.
    taken: Vec<ColumnBatch>,
    failed: Failed,
}

/// When a batch of a [`Shredder`] is full, and how it is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShredOptions {
    /// Rows.
    pub batch_rows: usize,
    /// Bytes of strings.
    pub batch_bytes: usize,
    /// The layout of flat columns with nulls.
    pub layout: Layout,
}

impl Default for ShredOptions {
    fn default() -> ShredOptions {
        ShredOptions { batch_rows: 8192, batch_bytes: 16 << 20, layout: Layout::Dense }
    }
}

/// An open record, struct, list or map.
#[derive(Debug, Clone, Copy)]
struct Frame {
    /// The field; of the record, [`ROOT`].
    field: usize,
    kind: FrameKind,
    /// The repetition level of the first entry in it.
    repetition: u8,
    /// Events about its contents.
    events: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrameKind {
    /// A struct or the record, of this number.
    Struct(u64),
    List,
    Map,
}

/// Work that is not charged yet.
#[derive(Debug, Clone, Copy, Default)]
struct Work {
    events: usize,
    entries: usize,
    bytes: usize,
}

/// The [`Plan`] of a [`Shredder`].
#[derive(Debug)]
pub struct ShredPlan {
    program: Option<ProgramPlan>,
    shredder: Shredder,
}

impl Plan for ShredPlan {
    type Made = Shredder;

    fn step(&mut self, budget: &mut Budget<'_>) -> Result<Option<Shredder>> {
        if let Some(plan) = &mut self.program {
            let Some(program) = plan.step(budget)? else { return Ok(None) };
            self.program = None;
            self.shredder.program = Arc::new(program);
        }
        let Shredder { program, columns, seen, options, .. } = &mut self.shredder;
        while seen.len() < program.fields().len() {
            if let Some(leaf) = program.leaves().get(columns.len()) {
                columns.push(ColumnBuilder::new(leaf, options.layout));
            }
            seen.push(0);
            budget.charge(FIELD_PRICE, 0, FIELDS_PER_COLUMN);
            if budget.is_spent() {
                return Ok(None);
            }
        }
        let again = Shredder::empty(Arc::clone(program), *options);
        Ok(Some(core::mem::replace(&mut self.shredder, again)))
    }
}

impl Shredder {
    /// The plan of a shredder for records of these leaves of a schema, which must be in its order; `None`: of all. Its
    /// errors are those of [`Program::plan`].
    pub fn plan(schema: Arc<Schema>, leaves: Option<Arc<[usize]>>, options: ShredOptions) -> ShredPlan {
        let program = Program::plan(Arc::clone(&schema), leaves);
        let shredder = Shredder::empty(Arc::new(Program::empty(schema)), options);
        ShredPlan { program: Some(program), shredder }
    }

    /// A shredder without columns.
    fn empty(program: Arc<Program>, options: ShredOptions) -> Shredder {
        Shredder {
            program,
            options,
            columns: Segmented::new(),
            open: Vec::new(),
            seen: Segmented::new(),
            structs: 0,
            first_row: 0,
            rows: 0,
            is_full: false,
            work: Work::default(),
            taken: Vec::new(),
            failed: Failed::default(),
        }
    }

    /// The program with the fields that events are about.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// The path of a field in the schema, joined with dots. `None` if there is no such field.
    pub fn path(&self, field: usize) -> Option<String> {
        self.program.path(field)
    }

    /// The complete rows of the current batch.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Whether the current batch should be taken before the next row.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Charges the cost of the events since the last call.
    pub fn charge(&mut self, budget: &mut Budget<'_>) {
        let Work { events, entries, bytes } = core::mem::take(&mut self.work);
        budget.charge(EVENT_PRICE, 0, events);
        budget.charge(ENTRY_PRICE, 0, entries);
        budget.charge(COPY_PRICE, bytes, 0);
    }

    /// Returns the rows so far, which may be none. `None` if the budget is spent: call again, before any event.
    ///
    /// # Errors
    ///
    /// `Misuse` in the middle of a row; `LimitExceeded` if memory cannot be allocated; the shredder's earlier
    /// failure.
    pub fn take(&mut self, budget: &mut Budget<'_>) -> Result<Option<Batch>> {
        self.failed.check()?;
        if !self.open.is_empty() {
            return Err(Error::misuse("a batch that is taken in the middle of a row"));
        }
        while let Some(column) = self.columns.get_mut(self.taken.len()) {
            match column.share(self.rows, budget) {
                Ok(Some(made)) => self.taken.push(made),
                Ok(None) => return Ok(None),
                Err(error) => return self.fail(error, None),
            }
            budget.charge_units(COLUMN_UNITS);
            if budget.is_spent() && self.taken.len() < self.columns.len() {
                return Ok(None);
            }
        }
        let columns = core::mem::replace(&mut self.taken, Vec::with_capacity(self.columns.len()));
        let batch = Batch { row_group: 0, first_row: self.first_row, rows: self.rows, columns };
        self.first_row += u64_of(self.rows);
        (self.rows, self.is_full) = (0, false);
        Ok(Some(batch))
    }

    /// Adds a leaf's value, from bytes that are kept by reference, not copied.
    ///
    /// # Errors
    ///
    /// As [`RecordSink::value`].
    pub fn shared(&mut self, field: usize, value: Bytes) -> Result<()> {
        let (slot, repetition) = self.begin(field)?;
        let pushed = match (slot.kind, self.columns.get_mut(slot.first)) {
            (FieldKind::Leaf, Some(column)) => column.push_shared(value, repetition),
            _ => Err(Error::misuse("a value, where there is a group, a list or a map")),
        };
        self.end_value(slot.first, field, pushed)
    }

    /// The slot that an event about `field` fills, and the repetition level of its entry.
    #[inline]
    fn begin(&mut self, field: usize) -> Result<(Field, u8)> {
        self.work.events += 1;
        let Some(&slot) = self.program.fields().get(field) else {
            return self.fail(Error::misuse("an event about a field that is not there"), None);
        };
        let Some(frame) = self.open.last_mut() else {
            return self.fail(Error::misuse("an event outside of a record"), Some(field));
        };
        if slot.parent != frame.field {
            return self.fail(Error::misuse("an event about a field that is not due"), Some(field));
        }
        let (first, place) = (frame.repetition, frame.events);
        frame.events += 1;
        let repetition = match frame.kind {
            FrameKind::Struct(number) => {
                if core::mem::replace(&mut self.seen[field], number) == number {
                    return self.fail(Error::misuse("a field that comes twice"), Some(field));
                }
                first
            }
            FrameKind::List | FrameKind::Map => {
                let list = frame.field;
                let arity = self.program.arity(list).max(1);
                // The first field follows its parent.
                if (place % arity == 0) != (field == list + 1) {
                    return self.fail(Error::misuse("a key or a value that is not due"), Some(field));
                }
                if place < arity { first } else { self.program.fields()[list].kind.repetition() }
            }
        };
        Ok((slot, repetition))
    }

    #[inline]
    fn end_value(&mut self, column: usize, field: usize, pushed: Result<()>) -> Result<()> {
        self.work.entries += 1;
        if let Err(error) = pushed {
            return self.fail(error, Some(field));
        }
        self.is_full |= self.columns.get(column).is_some_and(|column| {
            column.array_bytes() >= ARRAY_BYTES || column.string_bytes() >= self.options.batch_bytes
        });
        Ok(())
    }

    fn start(&mut self, field: usize, kind: FrameKind) -> Result<()> {
        let (slot, repetition) = self.begin(field)?;
        let fits = match (slot.kind, kind) {
            (FieldKind::Struct, FrameKind::Struct(_)) => true,
            (FieldKind::List { .. }, FrameKind::List) | (FieldKind::Map { .. }, FrameKind::Map) => true,
            (FieldKind::Leaf | FieldKind::Struct | FieldKind::List { .. } | FieldKind::Map { .. }, _) => {
                false
            }
        };
        if !fits {
            let what = match kind {
                FrameKind::Struct(_) => "a group",
                FrameKind::List => "a list",
                FrameKind::Map => "a map",
            };
            return self.fail(Error::misuse(format!("{what}, where there is none")), Some(field));
        }
        self.open.push(Frame { field, kind, repetition, events: 0 });
        Ok(())
    }

    fn start_of_struct(&mut self) -> FrameKind {
        self.structs += 1;
        FrameKind::Struct(self.structs)
    }

    /// Ends the innermost open frame, which must be this one.
    fn end(&mut self, field: usize, is_kind: impl Fn(FrameKind) -> bool) -> Result<Frame> {
        self.work.events += 1;
        match self.open.pop() {
            Some(frame) if frame.field == field && is_kind(frame.kind) => Ok(frame),
            _ => self.fail(Error::misuse("the end of what is not begun, or not ended inside"), None),
        }
    }

    /// Fields of a struct that did not occur are null.
    fn end_fields(&mut self, frame: Frame) -> Result<()> {
        let program = Arc::clone(&self.program);
        let FrameKind::Struct(number) = frame.kind else { return Ok(()) };
        if frame.events == program.arity(frame.field) {
            return Ok(());
        }
        for field in program.children(frame.field) {
            if self.seen[field] == number {
                continue;
            }
            self.work.events += 1;
            let slot = program.fields()[field];
            if !slot.is_nullable {
                return self.fail(Error::conversion("no value for what is required"), Some(field));
            }
            self.absent(slot.first..slot.behind, slot.definition.saturating_sub(1), frame.repetition);
        }
        Ok(())
    }

    /// Adds an entry without a value to each of these columns.
    #[inline]
    fn absent(&mut self, columns: Range<usize>, definition: u8, repetition: u8) {
        self.work.entries += columns.len();
        for column in columns {
            let Some(column) = self.columns.get_mut(column) else { return };
            column.push_null(definition, repetition);
            self.work.bytes += column.null_bytes();
            self.is_full |= column.array_bytes() >= ARRAY_BYTES;
        }
    }

    fn end_elements(&mut self, frame: Frame) -> Result<()> {
        let arity = self.program.arity(frame.field).max(1);
        let slot = self.program.fields()[frame.field];
        if frame.events == 0 {
            self.absent(slot.first..slot.behind, slot.kind.definition().saturating_sub(1), frame.repetition);
        } else if !frame.events.is_multiple_of(arity) {
            return self.fail(Error::misuse("a map that ends with a key"), Some(frame.field));
        }
        Ok(())
    }

    /// Fails, now and ever after.
    #[cold]
    fn fail<T>(&mut self, error: Error, field: Option<usize>) -> Result<T> {
        self.failed.check()?;
        let path = field.and_then(|field| self.path(field));
        let row = self.first_row.saturating_add(u64_of(self.rows));
        let error = error.at(|place| {
            place.column = path;
            place.row = Some(row);
        });
        // What comes is outside of a record, and fails as this.
        self.open.clear();
        Err(self.failed.set(error))
    }
}

impl RecordSink for Shredder {
    fn start_record(&mut self) -> Result<()> {
        self.work.events += 1;
        if self.failed.is_set() || !self.open.is_empty() || !self.taken.is_empty() {
            return self.fail(Error::misuse("a row in a row, or before a batch is taken"), None);
        }
        let kind = self.start_of_struct();
        self.open.push(Frame { field: ROOT, kind, repetition: 0, events: 0 });
        Ok(())
    }

    fn end_record(&mut self) -> Result<()> {
        let frame = self.end(ROOT, |_| true)?;
        self.end_fields(frame)?;
        self.rows += 1;
        self.is_full |= self.rows >= self.options.batch_rows;
        Ok(())
    }

    fn start_struct(&mut self, field: usize) -> Result<()> {
        let kind = self.start_of_struct();
        self.start(field, kind)
    }

    fn end_struct(&mut self, field: usize) -> Result<()> {
        let frame = self.end(field, |kind| matches!(kind, FrameKind::Struct(_)))?;
        self.end_fields(frame)
    }

    fn start_list(&mut self, field: usize) -> Result<()> {
        self.start(field, FrameKind::List)
    }

    fn end_list(&mut self, field: usize) -> Result<()> {
        let frame = self.end(field, |kind| kind == FrameKind::List)?;
        self.end_elements(frame)
    }

    fn start_map(&mut self, field: usize) -> Result<()> {
        self.start(field, FrameKind::Map)
    }

    fn end_map(&mut self, field: usize) -> Result<()> {
        let frame = self.end(field, |kind| kind == FrameKind::Map)?;
        self.end_elements(frame)
    }

    /// # Errors
    ///
    /// `Conversion` for a null of a required field; `Misuse` for an event out of order.
    fn null(&mut self, field: usize) -> Result<()> {
        let (slot, repetition) = self.begin(field)?;
        if !slot.is_nullable {
            return self.fail(Error::conversion("null, where a value is required"), Some(field));
        }
        self.absent(slot.first..slot.behind, slot.definition.saturating_sub(1), repetition);
        Ok(())
    }

    /// # Errors
    ///
    /// `Misuse` for a value of another type, and for one out of order; `Conversion` for bytes that do not have the
    /// column's fixed length.
    #[inline]
    fn value(&mut self, field: usize, value: Value<'_>) -> Result<()> {
        let (slot, repetition) = self.begin(field)?;
        if let Value::Bytes(bytes) = value {
            self.work.bytes += bytes.len();
        }
        let pushed = match (slot.kind, self.columns.get_mut(slot.first)) {
            (FieldKind::Leaf, Some(column)) => column.push(value, repetition),
            _ => Err(Error::misuse("a value, where there is a group, a list or a map")),
        };
        self.end_value(slot.first, field, pushed)
    }
}

impl FieldKind {
    /// The repetition level of a further element.
    fn repetition(self) -> u8 {
        match self {
            FieldKind::List { repetition, .. } | FieldKind::Map { repetition, .. } => repetition,
            FieldKind::Leaf | FieldKind::Struct => 0,
        }
    }

    /// The definition level of an element.
    fn definition(self) -> u8 {
        match self {
            FieldKind::List { definition, .. } | FieldKind::Map { definition, .. } => definition,
            FieldKind::Leaf | FieldKind::Struct => 0,
        }
    }
}

#[cfg(test)]
mod tests;
