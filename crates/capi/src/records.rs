//! The machine that reads records, as events.

use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Budget, Error, Release, Result, Step, release_all};
use marquetry_parquet::batch::Batch;
use marquetry_parquet::record::{Program, RecordSink, Records, Value};
use marquetry_parquet::schema::{NodeKind, Plan};

use crate::abi::{
    marquetry_event, marquetry_event_kind, marquetry_field_info, marquetry_reader_options, marquetry_status,
};
use crate::arguments;
use crate::error::answer;
use crate::footer::Metadata;
use crate::handles::{self, marquetry_error, marquetry_machine, marquetry_metadata};
use crate::machine::{Product, Work, make, with_machine};
use crate::reader::{Reader, Wanted};
use crate::text::Text;

/// Units that a step spends on events at most: so many are some thousand events, which are kept until the next step.
const EVENTS_UNITS: u64 = 50_000;

/// Reads batches, and turns them into events.
pub(crate) struct Events {
    /// Dropped before what it borrows from: the program and the batch.
    records: Option<Records<'static>>,
    program: Arc<Program>,
    batch: Option<Arc<Batch>>,
    pub(crate) reader: Reader,
    fields: Vec<(Text, i64)>,
    sink: Sink,
    /// The events at hand are the batch's last.
    is_last: bool,
}

// SAFETY: the pointers in the events lead into the batch, which is shared by reference count and kept until they are cleared.
unsafe impl Send for Events {}

#[derive(Default)]
struct Sink(Vec<marquetry_event>);

impl Events {
    fn new(metadata: &Metadata, wanted: Wanted) -> Result<Events> {
        let schema = &metadata.file.schema;
        let leaves = wanted.options.leaves.clone().map(Arc::from);
        let program = Program::plan(Arc::clone(schema), leaves).at_once()?;
        let mut fields = Vec::new();
        for field in program.fields() {
            let leaf = match schema.nodes()[field.node].kind {
                NodeKind::Leaf { leaf } => i64::try_from(leaf).unwrap_or(-1),
                NodeKind::Group { .. } => -1,
            };
            fields.push((Text::new(&schema.path(field.node))?, leaf));
        }
        let reader = Reader::new(&metadata.file, wanted)?;
        let (records, batch) = (None, None);
        Ok(Events {
            records,
            program: Arc::new(program),
            batch,
            reader,
            fields,
            sink: Sink::default(),
            is_last: false,
        })
    }

    pub(crate) fn step(&mut self, budget: &mut Budget<'_>) -> Result<Step<()>> {
        self.sink.0.clear();
        if self.is_last {
            self.records = None;
            if let Some(batch) = self.batch.as_mut().and_then(Arc::get_mut)
                && !batch.release(budget)
            {
                return Ok(Step::Yield);
            }
            (self.batch, self.is_last) = (None, false);
        }
        let records = match &mut self.records {
            Some(records) => records,
            None => {
                let batch = match self.reader.step(budget)? {
                    Step::Ready(batch) => Arc::new(batch),
                    Step::Need(demand) => return Ok(Step::Need(demand)),
                    Step::Append(..) => return Err(Error::internal("a reader that writes")),
                    Step::Yield => return Ok(Step::Yield),
                    Step::Done => return Ok(Step::Done),
                };
                // SAFETY: both are behind an `Arc`, so they stay where they are although this struct moves. They are not changed, and not dropped
                // before `records`, which is dropped first where the batch is replaced (`is_last`), and is the first field.
                let (program, lent): (&'static Program, &'static Batch) =
                    unsafe { (&*Arc::as_ptr(&self.program), &*Arc::as_ptr(&batch)) };
                self.batch = Some(batch);
                self.records.insert(program.records(lent)?)
            }
        };
        let units = budget.left().min(EVENTS_UNITS);
        let mut part = Budget::new(units);
        let is_done = records.step(&mut self.sink, &mut part)?;
        budget.charge_units(part.spent());
        self.is_last = is_done;
        Ok(if self.sink.0.is_empty() { Step::Yield } else { Step::Ready(()) })
    }

    pub(crate) fn release(&mut self, budget: &mut Budget<'_>) -> bool {
        // What borrows from the batch goes first.
        self.records = None;
        release_all(&mut [&mut self.sink.0, &mut self.batch, &mut self.reader], budget)
    }
}

impl Release for marquetry_event {}

impl Sink {
    fn add(&mut self, kind: marquetry_event_kind, field: usize) -> Result<&mut marquetry_event> {
        let refused = |events: &Vec<marquetry_event>| {
            Error::out_of_memory(events.len().saturating_mul(size_of::<marquetry_event>()))
        };
        if self.0.try_reserve(1).is_err() {
            return Err(refused(&self.0));
        }
        let field = u32::try_from(field).unwrap_or(u32::MAX);
        let data = core::ptr::null();
        self.0.push(marquetry_event { kind, field, integer: 0, real: 0.0, data, length: 0 });
        self.0.last_mut().ok_or_else(|| Error::internal("an event that is not there"))
    }
}

impl RecordSink for Sink {
    fn start_record(&mut self) -> Result<()> {
        self.add(marquetry_event_kind::StartRecord, usize::MAX).map(drop)
    }

    fn end_record(&mut self) -> Result<()> {
        self.add(marquetry_event_kind::EndRecord, usize::MAX).map(drop)
    }

    fn start_struct(&mut self, field: usize) -> Result<()> {
        self.add(marquetry_event_kind::StartStruct, field).map(drop)
    }

    fn end_struct(&mut self, field: usize) -> Result<()> {
        self.add(marquetry_event_kind::EndStruct, field).map(drop)
    }

    fn start_list(&mut self, field: usize) -> Result<()> {
        self.add(marquetry_event_kind::StartList, field).map(drop)
    }

    fn end_list(&mut self, field: usize) -> Result<()> {
        self.add(marquetry_event_kind::EndList, field).map(drop)
    }

    fn start_map(&mut self, field: usize) -> Result<()> {
        self.add(marquetry_event_kind::StartMap, field).map(drop)
    }

    fn end_map(&mut self, field: usize) -> Result<()> {
        self.add(marquetry_event_kind::EndMap, field).map(drop)
    }

    fn null(&mut self, field: usize) -> Result<()> {
        self.add(marquetry_event_kind::Null, field).map(drop)
    }

    fn value(&mut self, field: usize, value: Value<'_>) -> Result<()> {
        match value {
            Value::Boolean(value) => self.add(marquetry_event_kind::Boolean, field)?.integer = value.into(),
            Value::Int32(value) => self.add(marquetry_event_kind::Int32, field)?.integer = value.into(),
            Value::Int64(value) => self.add(marquetry_event_kind::Int64, field)?.integer = value,
            Value::Float(value) => self.add(marquetry_event_kind::Float, field)?.real = value.into(),
            Value::Double(value) => self.add(marquetry_event_kind::Double, field)?.real = value,
            Value::Bytes(bytes) => {
                let event = self.add(marquetry_event_kind::Bytes, field)?;
                (event.data, event.length) = (bytes.as_ptr(), bytes.len());
            }
        }
        Ok(())
    }
}

/// Makes a machine that reads rows of a file as records. Its products are events: `marquetry_events`.
///
/// * `metadata`: in, borrowed during the call.
/// * `options`: in, borrowed; NULL: the defaults, all rows of all columns.
/// * `machine`: out, owned by the host.
/// * `error`: out, owned by the host; may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_records_new(
    metadata: *const marquetry_metadata,
    options: *const marquetry_reader_options,
    machine: *mut *mut marquetry_machine,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    make(machine, error, || {
        handles::with::<Metadata, _>(metadata, |metadata| {
            let wanted = Wanted::of(&metadata.file, options)?;
            Events::new(metadata, wanted).map(Work::Events)
        })
    })
}

/// The number of fields that events are about: `field` is below it, but for the beginning and the end of a record.
///
/// * `machine`: in, borrowed.
/// * `count`: out.
/// * `error`: out, owned by the host; may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_records_fields(
    machine: *mut marquetry_machine,
    count: *mut u64,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    let done = with_machine(machine, |machine| match &machine.work {
        Work::Events(events) => arguments::put(count, u64_of(events.fields.len())),
        _ => Err(Error::misuse("the fields of a machine that does not read records")),
    });
    answer(done, error)
}

/// Says what a field is.
///
/// * `machine`: in, borrowed. Texts in `info` are borrowed from it, until it is freed.
/// * `field`: from 0. A field comes before those in it.
/// * `info`: out; `struct_size` must be set.
/// * `error`: out, owned by the host; may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_records_field(
    machine: *mut marquetry_machine,
    field: u64,
    info: *mut marquetry_field_info,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    let done = with_machine(machine, |machine| {
        let Work::Events(events) = &machine.work else {
            return Err(Error::misuse("the fields of a machine that does not read records"));
        };
        let found = usize::try_from(field).ok().and_then(|at| events.fields.get(at));
        let (path, column) =
            found.ok_or_else(|| Error::misuse(format!("field {field} of {}", events.fields.len())))?;
        arguments::answer(info, marquetry_field_info { struct_size: 0, path: path.lent(), column: *column })
    });
    answer(done, error)
}

/// The events that a step has made, after `READY`. They need not end where a record does. Until they are fetched, steps answer `READY` again; the step
/// after that goes on.
///
/// * `machine`: in, borrowed.
/// * `events`, `count`: out; the array, and what it points to, is borrowed until the machine's next step or release, or until it is freed.
/// * `error`: out, owned by the host; may be NULL.
#[unsafe(no_mangle)]
pub extern "C" fn marquetry_events(
    machine: *mut marquetry_machine,
    events: *mut *const marquetry_event,
    count: *mut usize,
    error: *mut *mut marquetry_error,
) -> marquetry_status {
    let done = with_machine(machine, |machine| {
        let (Some(Product::Events { are_fetched }), Work::Events(found)) =
            (&mut machine.product, &machine.work)
        else {
            return Err(Error::misuse("there are no events"));
        };
        if events.is_null() {
            return Err(Error::misuse("an answer is to be written to NULL"));
        }
        arguments::put(count, found.sink.0.len())?;
        *are_fetched = true;
        arguments::put(events, found.sink.0.as_ptr())
    });
    answer(done, error)
}
