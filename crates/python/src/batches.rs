//! The rows of a table, batch by batch: to Python, and as Arrow's C stream.

use std::collections::VecDeque;
use std::fmt;
use std::mem::forget;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::{Mutex, PoisonError};

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch as ArrowBatch, RecordBatchReader};
use arrow_schema::{ArrowError, Schema as ArrowSchema, SchemaRef};
use marquetry::{Error, Reader, RecordBatches, Result};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::{misuse, raised};
use crate::interpreter::with_interpreter;
use crate::pending::{Pending, words_of};
use crate::schema::{RecordBatch, Schema, requested, schema_capsule};
use crate::waiting::Signals;

/// Why a batch is not handed out; and why there are no more after an error.
const ELSEWHERE: &str = "these batches are being read by another thread";
const ENDED: &str = "an error ended these batches before the last row: read the table again";
/// Bytes of values of a batch, about: what takes a batch has work with each, such as to keep it in a list, or to pass it from C to Python.
const BATCH_BYTES: usize = 4 << 20;

/// Rows that are read in the process that began it. A child that was forked has none of the threads that read them: there it fails, instead of waiting
/// for them, and nothing is freed, because that waits, too.
pub(crate) struct Rows {
    /// Batches that come first: those that were read when a signal's handler raised something.
    waiting: VecDeque<ArrowBatch>,
    /// `None` after the last batch, and after an error.
    batches: Option<RecordBatches>,
    /// What the columns are to those who take them. Text is bytes to arrow-rs here, because it would check each string again.
    schema: SchemaRef,
    process: u32,
    /// Of a stream, whose readers cannot pass on what a signal's handler raises.
    signals: Option<Signals>,
    /// What it raised, which has ended the stream.
    pending: Option<Pending>,
    /// An error ended the rows: what is missing is not to be taken for none.
    has_failed: bool,
}

impl Rows {
    /// The rows of a reader; with the types that are asked for, as far as they are other layouts of the same values.
    fn of(reader: &Reader, requested: Option<&ArrowSchema>) -> Result<Rows> {
        let mut batches = reader.clone().batch_bytes(BATCH_BYTES).record_batches()?.with_text_as_bytes();
        if let Some(requested) = requested {
            batches.request(requested)?;
        }
        let (schema, process) = (batches.schema(), process::id());
        Ok(Rows {
            waiting: VecDeque::new(),
            batches: Some(batches),
            schema,
            process,
            signals: None,
            pending: None,
            has_failed: false,
        })
    }

    /// Gives other types, from the next batch on.
    fn request(&mut self, requested: &ArrowSchema) -> Result<()> {
        if let Some(batches) = &mut self.batches {
            batches.request(requested)?;
            self.schema = batches.schema();
        }
        Ok(())
    }

    /// The error of a stream that a signal has ended. Its reader makes an exception of its own of it: Python raises ours after that, or instead.
    fn interrupted(&mut self) -> Option<Error> {
        let raised = self.signals.as_ref()?.take()?;
        let handed_on = with_interpreter(|py| {
            // The text comes first: it may be Python that makes it.
            let text = words_of(py, &raised);
            (text, Pending::new(py, raised))
        });
        let Some((text, pending)) = handed_on else { return Some(Error::cancelled()) };
        self.pending = Some(pending);
        Some(Error::cancelled().reworded(text))
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        if self.process != process::id() {
            forget(self.batches.take());
            return;
        }
        if let (Some(pending), Some(signals)) = (&self.pending, &self.signals)
            && signals.are_of_this_thread()
        {
            pending.raise_instead();
        }
        // A signal that came while the last rows were read, of a reader that does not ask for more.
        drop(self.interrupted());
        // What was raised is Python's.
        if let Some(pending) = self.pending.take() {
            with_interpreter(|_| drop(pending));
        }
    }
}

/// An error as Arrow's stream passes it on: its text has no NUL, which ends a text of C.
#[derive(Debug)]
struct Told(Error);

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_string().replace('\0', "\\0"))
    }
}

impl std::error::Error for Told {}

impl Iterator for Rows {
    type Item = Result<ArrowBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let external = |error: Error| Some(Err(ArrowError::ExternalError(Box::new(Told(error)))));
        if self.process != process::id() {
            let why = "the rows are read by threads of the process that was forked: open the table again";
            return external(Error::misuse(why));
        }
        if let Some(batch) = self.waiting.pop_front() {
            return Some(Ok(batch));
        }
        if self.has_failed {
            return external(Error::misuse(ENDED));
        }
        let batches = self.batches.as_mut()?;
        // Other libraries call this from C, through which no panic passes.
        let Ok(next) = catch_unwind(AssertUnwindSafe(|| batches.next())) else {
            // What cleans up after a bug may run into it again.
            forget(self.batches.take());
            self.has_failed = true;
            return external(Error::internal("reading rows has panicked"));
        };
        if let Some(Ok(_)) = next {
            return next;
        }
        self.batches = None;
        let failed = match (self.interrupted(), next) {
            (Some(interrupted), _) => interrupted,
            (None, Some(Err(error))) => ours(&error),
            (None, _) => return None,
        };
        self.has_failed = true;
        external(failed)
    }
}

impl Rows {
    /// Whether all were read, or an error has ended them.
    fn is_done(&self) -> bool {
        self.waiting.is_empty() && self.batches.is_none()
    }
}

impl RecordBatchReader for Rows {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// The capsule of a stream of rows, which anything that speaks Arrow's PyCapsule interface takes, once. A signal ends it if it is read by the thread
/// that made it.
pub(crate) fn stream_capsule<'py>(
    py: Python<'py>,
    reader: &Reader,
    requested_schema: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let requested = requested_schema.map(requested).transpose()?;
    let (mut rows, signals) = begun(py, reader, requested.as_ref())?;
    rows.signals = Some(signals);
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(rows)), c"arrow_array_stream")
}

/// Rows that begin to be read, and what looks for signals of this thread meanwhile.
fn begun(py: Python<'_>, reader: &Reader, requested: Option<&ArrowSchema>) -> PyResult<(Rows, Signals)> {
    let signals = Signals::of_this_thread();
    let reader = reader.clone().cancel(signals.cancel());
    let rows = py.detach(|| Rows::of(&reader, requested));
    // What a signal's handler raised is no cancellation.
    let rows = rows.map_err(|error| signals.take().unwrap_or_else(|| raised(py, &error)))?;
    Ok((rows, signals))
}

/// The rows of a table, a record batch at a time. Also a stream of those that are left.
#[pyclass(frozen, module = "marquetry")]
pub(crate) struct Batches {
    schema: SchemaRef,
    /// What is left of the rows; `None` once that is a stream.
    left: Mutex<Option<Rows>>,
    signals: Signals,
}

impl Batches {
    pub(crate) fn of(py: Python<'_>, reader: &Reader) -> PyResult<Batches> {
        let (rows, signals) = begun(py, reader, None)?;
        Ok(Batches { schema: rows.schema(), left: Mutex::new(Some(rows)), signals })
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        // Threads that read are waited for, and may want the interpreter themselves.
        let rows = self.left.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(rows) = rows {
            Python::attach(|py| py.detach(|| drop(rows)));
        }
    }
}

#[pymethods]
impl Batches {
    #[getter]
    fn schema(&self) -> Schema {
        Schema(self.schema.clone())
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        let next = py.detach(|| {
            let mut left = self.left.try_lock().ok()?;
            Some(left.as_mut().and_then(Iterator::next).transpose())
        });
        match next.ok_or_else(|| misuse(py, ELSEWHERE))? {
            Ok(Some(batch)) => match py.check_signals() {
                Ok(()) => Ok(Some(RecordBatch { rows: batch, schema: self.schema.clone() })),
                Err(raised) => {
                    // Whoever catches it goes on with this batch.
                    py.detach(|| {
                        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
                        left.as_mut().map(|rows| rows.waiting.push_front(batch))
                    });
                    Err(raised)
                }
            },
            // A signal may have been met while the last rows were read.
            Ok(None) => self.signals.take().map_or(Ok(None), Err),
            Err(error) => Err(self.signals.take().unwrap_or_else(|| raised(py, &ours(&error)))),
        }
    }

    /// Ends what reads, on another thread: it gets `Cancelled`.
    #[pyo3(name = "_cancel")]
    fn cancel(&self) {
        self.signals.end();
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    /// The rows that are left, as a stream: then there are none here.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let requested = requested_schema.as_ref().map(requested).transpose()?;
        let mut left = self.left.try_lock().map_err(|_| misuse(py, ELSEWHERE))?;
        if left.as_ref().is_some_and(|rows| rows.has_failed) {
            return Err(misuse(py, ENDED));
        }
        let Some(mut rows) = left.take_if(|rows| !rows.is_done()) else {
            return Err(misuse(py, "these batches were read already"));
        };
        // Those that wait were made already.
        if let (Some(requested), true) = (&requested, rows.waiting.is_empty())
            && let Err(error) = rows.request(requested)
        {
            *left = Some(rows);
            return Err(raised(py, &error));
        }
        rows.signals = Some(self.signals.clone());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(rows)), c"arrow_array_stream")
    }
}

/// An error that went through Arrow.
pub(crate) fn ours(error: &ArrowError) -> Error {
    if let ArrowError::ExternalError(inner) = error {
        if let Some(Told(ours)) = inner.downcast_ref::<Told>() {
            return ours.clone();
        }
        if let Some(ours) = inner.downcast_ref::<Error>() {
            return ours.clone();
        }
    }
    Error::internal(error.to_string())
}
