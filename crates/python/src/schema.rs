//! Arrow's schemas and record batches, which others take as capsules.

use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, to_ffi};
use arrow_array::{Array, RecordBatch as ArrowBatch, StructArray};
use arrow_schema::{Schema as ArrowSchema, SchemaRef};
use marquetry::Error;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};

use crate::error::raised;

/// The capsule of a schema.
pub(crate) fn schema_capsule<'py>(py: Python<'py>, schema: &SchemaRef) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(&**schema);
    let schema = schema.map_err(|error| raised(py, &Error::internal(error.to_string())))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

/// The schema that those who take rows ask for: a struct of their columns.
pub(crate) fn requested(capsule: &Bound<'_, PyAny>) -> PyResult<ArrowSchema> {
    let py = capsule.py();
    let capsule = capsule.cast::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(c"arrow_schema"))?.cast::<FFI_ArrowSchema>();
    // SAFETY: a capsule of this name holds an `ArrowSchema`, as the PyCapsule interface has it, for as long as it lives, which the caller sees to. It is
    // only read.
    let schema = unsafe { pointer.as_ref() };
    // arrow-rs panics where there is no name, or no format any more.
    let read = catch_unwind(AssertUnwindSafe(|| ArrowSchema::try_from(schema)));
    let why = match read {
        Ok(Ok(schema)) => return Ok(schema),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "it was released, or breaks the rules of Arrow's C interface".to_owned(),
    };
    Err(raised(py, &Error::misuse(format!("the schema that is asked for cannot be read: {why}"))))
}

/// The columns of a table, as Arrow's schema. `pyarrow.schema` takes it.
#[pyclass(frozen, module = "marquetry")]
pub(crate) struct Schema(pub(crate) SchemaRef);

#[pymethods]
impl Schema {
    /// The columns' names.
    #[getter]
    fn names(&self) -> Vec<&str> {
        self.0.fields().iter().map(|field| field.name().as_str()).collect()
    }

    fn __len__(&self) -> usize {
        self.0.fields().len()
    }

    /// Each column: its name, its Arrow type as text, and whether it can be null.
    #[getter]
    fn fields(&self) -> Vec<(&str, String, bool)> {
        let fields = self.0.fields().iter();
        fields.map(|it| (it.name().as_str(), it.data_type().to_string(), it.is_nullable())).collect()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.0)
    }

    fn __repr__(&self) -> String {
        let mut text = "marquetry.Schema".to_owned();
        for (name, data_type, nullable) in self.fields() {
            let not_null = if nullable { "" } else { " not null" };
            text.push_str(&format!("\n  {name}: {data_type}{not_null}"));
        }
        text
    }
}

/// Some rows of a table. `pyarrow.record_batch` takes them without a copy.
#[pyclass(frozen, module = "marquetry")]
pub(crate) struct RecordBatch {
    /// Text is bytes here, which were checked to be text.
    pub(crate) rows: ArrowBatch,
    /// What the columns are.
    pub(crate) schema: SchemaRef,
}

#[pymethods]
impl RecordBatch {
    #[getter]
    fn num_rows(&self) -> usize {
        self.rows.num_rows()
    }

    #[getter]
    fn num_columns(&self) -> usize {
        self.rows.num_columns()
    }

    #[getter]
    fn schema(&self) -> Schema {
        Schema(self.schema.clone())
    }

    fn __len__(&self) -> usize {
        self.rows.num_rows()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    /// The schema and the rows. They are given in the types that they have, whatever is asked for: the interface allows that.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let _ = requested_schema;
        let rows = StructArray::from(self.rows.clone());
        let (array, _): (FFI_ArrowArray, FFI_ArrowSchema) =
            to_ffi(&rows.to_data()).map_err(|error| raised(py, &Error::internal(error.to_string())))?;
        Ok((schema_capsule(py, &self.schema)?, PyCapsule::new_with_value(py, array, c"arrow_array")?))
    }

    fn __repr__(&self) -> String {
        format!("<marquetry.RecordBatch: {} rows, {} columns>", self.rows.num_rows(), self.rows.num_columns())
    }
}
