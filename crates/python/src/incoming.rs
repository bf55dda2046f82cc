//! Rows of any object that speaks Arrow's PyCapsule interface: a table, a data frame, a relation.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray as _;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{ArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{
    Array as _, ArrayReader as _, ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchOptions,
    RecordBatchReader, StructArray,
};
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};
use marquetry::{Error, Reader};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods, PyTuple};

use crate::error::raised;
use crate::table::Table;

/// Rows that an object gave, and whether they are still held.
pub(crate) struct Taken {
    pub(crate) reader: Reader,
    pub(crate) held: Held,
}

/// Whether somebody still holds a stream of another library's: nobody does once this is gone.
pub(crate) struct Held(Weak<()>);

impl Held {
    /// How long rows are waited for that another library is about to make, and nobody wants: an interpreter that ends meanwhile is ended by them.
    const LAST_ROWS: Duration = Duration::from_secs(2);

    /// Waits until nobody does, but not for long.
    pub(crate) fn wait(&self, py: Python<'_>) {
        let until = Instant::now() + Held::LAST_ROWS;
        py.detach(|| {
            while self.0.strong_count() > 0 && Instant::now() < until {
                thread::sleep(Duration::from_millis(1));
            }
        });
    }
}

/// The rows of an object: of a table of ours as they are, of others through Arrow.
pub(crate) fn taken(object: &Bound<'_, PyAny>) -> PyResult<Taken> {
    if let Ok(table) = object.cast::<Table>() {
        return Ok(Taken { reader: table.get().reader.clone(), held: Held(Weak::new()) });
    }
    let py = object.py();
    let name = object.get_type().name()?.to_string();
    if object.hasattr("__arrow_c_stream__")? {
        let capsule = object.call_method0("__arrow_c_stream__")?;
        let stream = stream_of(capsule.cast::<PyCapsule>()?)?;
        let held = Held(Arc::downgrade(&stream.held));
        let reader = Reader::of_record_batches(name, stream).map_err(|error| raised(py, &error))?;
        return Ok(Taken { reader, held });
    }
    if object.hasattr("__arrow_c_array__")? {
        let capsules = object.call_method0("__arrow_c_array__")?;
        let batch = batch_of(capsules.cast::<PyTuple>()?)?;
        let schema = batch.schema();
        let stream = RecordBatchIterator::new([Ok(batch)], schema);
        let reader = Reader::of_record_batches(name, stream).map_err(|error| raised(py, &error))?;
        return Ok(Taken { reader, held: Held(Weak::new()) });
    }
    let why = format!(
        "{name} has neither __arrow_c_stream__ nor __arrow_c_array__: pyarrow, Polars, DuckDB and pandas have"
    );
    Err(PyTypeError::new_err(why))
}

/// Rows of a stream of structs.
struct Structs {
    arrays: ArrayStreamReader,
    schema: SchemaRef,
    /// Dropped after the stream.
    held: Arc<()>,
}

impl Structs {
    fn of(arrays: ArrayStreamReader) -> Result<Structs, ArrowError> {
        let field = arrays.field();
        let DataType::Struct(fields) = field.data_type() else {
            let what = format!("a stream of {}, not of rows: of structs", field.data_type());
            return Err(ArrowError::CDataInterface(what));
        };
        let schema = Arc::new(Schema::new_with_metadata(fields.clone(), field.metadata().clone()));
        Ok(Structs { arrays, schema, held: Arc::new(()) })
    }

    fn batch(&self, array: &ArrayRef) -> Result<RecordBatch, ArrowError> {
        // A row that is null is none whose columns are.
        if array.null_count() > 0 {
            let what = format!("{} of {} rows are null, as a struct is", array.null_count(), array.len());
            return Err(ArrowError::CDataInterface(what));
        }
        let columns = array.as_struct().columns().to_vec();
        let options = RecordBatchOptions::new().with_row_count(Some(array.len()));
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)
    }
}

impl Iterator for Structs {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = whole(|| self.arrays.next().transpose()).transpose()?;
        Some(next.and_then(|array| self.batch(&array)))
    }
}

impl RecordBatchReader for Structs {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// Takes a stream out of its capsule.
fn stream_of(capsule: &Bound<'_, PyCapsule>) -> PyResult<Structs> {
    let py = capsule.py();
    let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
    let pointer = pointer.cast::<FFI_ArrowArrayStream>().as_ptr();
    // SAFETY: a capsule of this name holds an `ArrowArrayStream`, as the PyCapsule interface has it, for as long as the capsule
    // lives, which the caller holds. It is moved out: what is left is marked as released, so that the capsule frees nothing.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer) };
    // A stream that was taken before is refused here. Whoever made it may wait for the interpreter.
    let opened = py.detach(|| whole(|| ArrayStreamReader::try_new(stream).and_then(Structs::of)));
    opened.map_err(|error| unreadable(py, &error.to_string()))
}

/// Takes rows out of the capsules of their schema and their columns.
fn batch_of(capsules: &Bound<'_, PyTuple>) -> PyResult<RecordBatch> {
    let py = capsules.py();
    let (schema, array) = (capsules.get_item(0)?, capsules.get_item(1)?);
    let (schema, array) = (schema.cast::<PyCapsule>()?, array.cast::<PyCapsule>()?);
    let schema = schema.pointer_checked(Some(c"arrow_schema"))?.cast::<FFI_ArrowSchema>();
    let pointer = array.pointer_checked(Some(c"arrow_array"))?.cast::<FFI_ArrowArray>();
    // SAFETY: capsules of these names hold an `ArrowSchema` and an `ArrowArray` of it, as the PyCapsule interface has it, for as long
    // as they live, which the caller's tuple sees to. The schema is only read. The array is moved out: what is left is marked as
    // released, so that the capsule frees nothing; one that was taken before is refused. The array is trusted to be what its
    // schema says: that is the interface.
    let (array, schema) = unsafe {
        if pointer.as_ref().is_released() {
            return Err(unreadable(py, "the capsule was taken already"));
        }
        (FFI_ArrowArray::from_raw(pointer.as_ptr()), schema.as_ref())
    };
    let batch = whole(|| {
        // SAFETY: as above: the array is what its schema says.
        let data = unsafe { from_ffi(array, schema) }?;
        if !matches!(data.data_type(), DataType::Struct(_)) || data.nulls().is_some() {
            let what = "an array is no table: a struct without nulls is";
            return Err(ArrowError::CDataInterface(what.to_owned()));
        }
        Ok(RecordBatch::from(StructArray::from(data)))
    });
    batch.map_err(|error| unreadable(py, &error.to_string()))
}

/// What another library hands over. Where it contradicts itself, such as by its number of children, Arrow's crate panics: that is an error, too.
fn whole<T>(take: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, ArrowError> {
    catch_unwind(AssertUnwindSafe(take)).unwrap_or_else(|_| {
        Err(ArrowError::CDataInterface("its schema and its arrays contradict each other".to_owned()))
    })
}

fn unreadable(py: Python<'_>, why: &str) -> PyErr {
    raised(py, &Error::misuse(format!("the rows cannot be taken: {why}")))
}
