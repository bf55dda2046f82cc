//! Arrow's schemas and record batches, which others take as capsules.

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, to_ffi};
use arrow_array::{Array, RecordBatch as ArrowBatch, StructArray};
use arrow_schema::SchemaRef;
use marquetry::Error;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::raised;

/// The capsule of a schema.
pub(crate) fn schema_capsule<'py>(py: Python<'py>, schema: &SchemaRef) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(&**schema);
    let schema = schema.map_err(|error| raised(py, &Error::internal(error.to_string())))?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
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
pub(crate) struct RecordBatch(pub(crate) ArrowBatch);

#[pymethods]
impl RecordBatch {
    #[getter]
    fn num_rows(&self) -> usize {
        self.0.num_rows()
    }

    #[getter]
    fn num_columns(&self) -> usize {
        self.0.num_columns()
    }

    #[getter]
    fn schema(&self) -> Schema {
        Schema(self.0.schema())
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.0.schema())
    }

    /// The schema and the rows. They are given in the types that they have, whatever is asked for: the interface allows that.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let _ = requested_schema;
        let rows = StructArray::from(self.0.clone());
        let (array, _): (FFI_ArrowArray, FFI_ArrowSchema) =
            to_ffi(&rows.to_data()).map_err(|error| raised(py, &Error::internal(error.to_string())))?;
        Ok((schema_capsule(py, &self.0.schema())?, PyCapsule::new_with_value(py, array, c"arrow_array")?))
    }

    fn __repr__(&self) -> String {
        format!("<marquetry.RecordBatch: {} rows, {} columns>", self.0.num_rows(), self.0.num_columns())
    }
}
